/* refine.h: the coarsest stable partition of a graph. */
#ifndef ICF_FOLD_REFINE_H
#define ICF_FOLD_REFINE_H
#include "elfrw/base/err.h"
#include <stdint.h>

/* Nodes 0 to n - 1; node I's edges, in their order, are edge[first[I]] to edge[first[I + 1] - 1].
 * An edge leads to a node, or is a number of n or more: something outside that is the same only as
 * itself.  Borrowed. */
struct icf_graph {
	uint32_t n;
	const uint32_t *first; /* n + 1 of them */
	const uint32_t *edge;
};

struct icf_refine_cost {
	uint32_t rounds;
	uint64_t steps; /* edges looked at and nodes put in order */
};

/* Splits the classes that *CLS states (any numbers; the nodes of a class have equally many edges)
 * until the edges of all nodes of a class lead, one by one, to the same classes; *CLS is then the
 * lowest node of each node's class.  HASH_BITS: of the hashes that stand for a node's edges
 * meanwhile, 64 in earnest; the result does not depend on it. */
struct elfrw_err *icf_refine(const struct icf_graph *g, uint32_t *cls, unsigned hash_bits,
			     struct icf_refine_cost *cost);
#endif
