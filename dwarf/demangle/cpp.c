/* cpp.c: the cost of printing a C++ name.
 *
 * The parsed name is a graph without cycles, since a substitution shares its target.  Printing
 * walks it as a tree.  The size of that tree is a sum over the nodes, each visited once, children
 * first.  Two things are not in the graph:
 *   - A template parameter stands for an argument of a template around it.  That argument may
 *     contain parameters of the next outer template.  Each parameter counts as the largest argument
 *     in the name, in as many rounds as templates can be nested.
 *   - A pack expansion prints its pattern once for each element of the pack: the longest list of
 *     arguments in the name.
 * Both estimates are upper bounds. */
#include "dwarf/demangle/parts.h"
#include "elfrw/base/vec.h"
#include <libiberty/demangle.h>

typedef const struct demangle_component *node;

#define MAX_ROUNDS 12

#define NONE UINT32_MAX

struct slot {
	node key;
	uint64_t cost;     /* of the last round */
	uint32_t child[2]; /* their slots; NONE: no child */
	bool found;        /* `child` is known */
	bool done;         /* its children come before it in the order */
};

struct graph {
	struct slot *slot; /* a node each, as found */
	uint32_t *table;   /* of hashes, twice as large as needed: 1 + the slot; 0: empty */
	uint32_t *order;   /* slots, children first */
	uint32_t *stack;
	uint32_t mask, max; /* of the table; slots */
	uint32_t n;         /* in the order */
	uint32_t n_slots, rounds;
	uint64_t pack; /* length of the longest list of arguments */
};

/* The children of N, which may be NULL. */
static void children(node n, node ret[2])
{
	ret[0] = ret[1] = NULL;
	switch (n->type) {
	case DEMANGLE_COMPONENT_NAME:
	case DEMANGLE_COMPONENT_SUB_STD:
	case DEMANGLE_COMPONENT_OPERATOR:
	case DEMANGLE_COMPONENT_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_EXTENDED_BUILTIN_TYPE:
	case DEMANGLE_COMPONENT_TEMPLATE_PARAM:
	case DEMANGLE_COMPONENT_FUNCTION_PARAM:
	case DEMANGLE_COMPONENT_UNNAMED_TYPE:
	case DEMANGLE_COMPONENT_CHARACTER:
	case DEMANGLE_COMPONENT_NUMBER: return;
	case DEMANGLE_COMPONENT_CTOR: ret[0] = n->u.s_ctor.name; return;
	case DEMANGLE_COMPONENT_DTOR: ret[0] = n->u.s_dtor.name; return;
	case DEMANGLE_COMPONENT_EXTENDED_OPERATOR: ret[0] = n->u.s_extended_operator.name; return;
	case DEMANGLE_COMPONENT_FIXED_TYPE: ret[0] = n->u.s_fixed.length; return;
	case DEMANGLE_COMPONENT_LAMBDA:
	case DEMANGLE_COMPONENT_DEFAULT_ARG: ret[0] = n->u.s_unary_num.sub; return;
	default: ret[0] = n->u.s_binary.left; ret[1] = n->u.s_binary.right;
	}
}

/* The slot of N, made if it does not exist; NONE: the graph is too large. */
static uint32_t slot_of(struct graph *g, node n)
{
	uint32_t k = (uint32_t)(((uintptr_t)n >> 3) * 0x9e3779b97f4a7c15 >> 40) & g->mask;
	for (; g->table[k]; k = (k + 1) & g->mask)
		if (g->slot[g->table[k] - 1].key == n)
			return g->table[k] - 1;
	if (g->n_slots == g->max)
		return NONE;
	g->slot[g->n_slots] = (struct slot){ .key = n };
	g->table[k] = g->n_slots + 1;
	return g->n_slots++;
}

/* Finds the children of slot K; false: the graph is too large. */
static bool find_children(struct graph *g, uint32_t k)
{
	struct slot *s = &g->slot[k];
	node child[2];
	s->found = true;
	children(s->key, child);
	for (int i = 0; i < 2; i++) {
		s->child[i] = child[i] ? slot_of(g, child[i]) : NONE;
		if (child[i] && s->child[i] == NONE)
			return false;
	}
	return true;
}

/* Puts the nodes reachable from ROOT in order; false: too large, or a cycle. */
static bool put_in_order(struct graph *g, node root)
{
	uint32_t *stack = g->stack, n = 1;
	stack[0] = slot_of(g, root);
	while (n) {
		uint32_t k = stack[n - 1];
		bool deeper = false;
		if (!g->slot[k].found && !find_children(g, k))
			return false;
		for (int i = 0; i < 2 && !deeper; i++) {
			uint32_t c = g->slot[k].child[i];
			if (c == NONE || c == k || g->slot[c].done)
				continue;
			if (n == g->max || g->slot[c].cost) /* marks what is on the stack */
				return false;
			g->slot[c].cost = 1;
			stack[n++] = c;
			deeper = true;
		}
		if (!deeper) {
			g->slot[k].done = true;
			g->order[g->n++] = k;
			n--;
		}
	}
	return true;
}

/* Computes the number of rounds, and the longest list of arguments. */
static void count(struct graph *g)
{
	g->rounds = 1;
	for (uint32_t i = 0; i < g->n; i++) {
		node n = g->slot[g->order[i]].key;
		uint64_t length = 0;
		if (n->type == DEMANGLE_COMPONENT_TYPED_NAME ||
		    n->type == DEMANGLE_COMPONENT_CONVERSION)
			g->rounds++;
		for (; n && n->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST && length < g->max;
		     n = n->u.s_binary.right)
			length++;
		g->pack = length > g->pack ? length : g->pack;
	}
}

/* One round: computes the costs if a template parameter costs PARAM; returns the largest cost of an
 * argument. */
static uint64_t one_round(struct graph *g, uint64_t param)
{
	uint64_t largest = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		struct slot *s = &g->slot[g->order[i]];
		uint64_t cost = 1, of[2];
		for (int k = 0; k < 2; k++)
			of[k] = s->child[k] == NONE ? 0 : g->slot[s->child[k]].cost;
		cost += of[0] + of[1];
		if (s->key->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM)
			cost += param;
		else if (s->key->type == DEMANGLE_COMPONENT_PACK_EXPANSION)
			cost *= g->pack + 1;
		else if (s->key->type == DEMANGLE_COMPONENT_TEMPLATE_ARGLIST && of[0] > largest)
			largest = of[0];
		s->cost = cost < 2 * DWR_DEMANGLE_STEPS ? cost : 2 * DWR_DEMANGLE_STEPS;
	}
	return largest;
}

static bool fits(struct graph *g, node root)
{
	uint64_t param = 0;
	if (!put_in_order(g, root))
		return false;
	count(g);
	for (uint32_t i = 0; i < MAX_ROUNDS; i++) {
		uint64_t next = one_round(g, param);
		if (g->slot[g->order[g->n - 1]].cost > DWR_DEMANGLE_STEPS)
			return false;
		if (next == param || i == g->rounds)
			return true;
		param = next;
	}
	return false;
}

#define FEW 256 /* nodes: names of functions that are no templates mostly have fewer */

/* Is the tree of ROOT so small, and without what it does not show, that it need not be measured?
 * Nodes that are shared, or in a circle, count each time. */
static bool is_small(node root)
{
	node stack[FEW + 2], child[2];
	unsigned n = 1;
	stack[0] = root;
	for (unsigned steps = 0; n && steps < FEW; steps++) {
		node at = stack[--n];
		if (at->type == DEMANGLE_COMPONENT_TEMPLATE_PARAM ||
		    at->type == DEMANGLE_COMPONENT_PACK_EXPANSION)
			return false;
		children(at, child);
		for (int i = 0; i < 2; i++)
			if (child[i])
				stack[n++] = child[i];
	}
	return !n;
}

bool dwr_demangle_cpp_fits(const struct demangle_component *tree, size_t max, bool *nomem)
{
	struct graph g = { .max = (uint32_t)max, .mask = 15 };
	*nomem = false;
	if (is_small(tree))
		return true;
	while (g.mask < 2 * max)
		g.mask = 2 * g.mask + 1;
	g.slot = malloc(max * sizeof *g.slot);
	g.table = calloc((size_t)g.mask + 1, sizeof *g.table);
	g.order = malloc(2 * max * sizeof *g.order);
	*nomem = !g.slot || !g.table || !g.order;
	bool ok = !*nomem;
	if (ok) {
		g.stack = g.order + max;
		ok = fits(&g, tree);
	}
	free(g.slot);
	free(g.table);
	free(g.order);
	return ok;
}
