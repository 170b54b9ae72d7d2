/* refine.h: the coarsest stable partition of a graph. */
#ifndef ICF_FOLD_REFINE_H
#define ICF_FOLD_REFINE_H
#include "elfrw/base/err.h"
#include <stdint.h>

/* Nodes 0 to n - 1.  The edges of node I, in order, are edge[first[I]] to edge[first[I + 1] - 1].
 * An edge leads to a node, or is a number of at least n: something outside that equals only itself.
 * Borrowed. */
struct icf_graph {
	uint32_t n;
	const uint32_t *first; /* n + 1 of them */
	const uint32_t *edge;
};

struct icf_refine_cost {
	uint32_t rounds;
	uint64_t steps; /* edges examined and nodes sorted */
};

/* Splits the classes in *CLS (any numbers; the nodes of a class have equally many edges) until the
 * edges of all nodes of a class lead, one by one, to the same classes.  *CLS is then the lowest
 * node of each node's class.  HASH_BITS: the size of the hashes of a node's edges, normally 64; the
 * result does not depend on it. */
struct elfrw_err *icf_refine(const struct icf_graph *g, uint32_t *cls, unsigned hash_bits,
			     struct icf_refine_cost *cost);
#endif
