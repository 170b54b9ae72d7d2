/* circle.c: hashes of nodes that refer to each other, from the graph of the classes.
 *
 * A node that is in no circle: the hash of its form and of the hashes of what it refers to.  A
 * circle here is a set of nodes that all lead to each other (a strongly connected component; found
 * in the order of Tarjan 1972, so that what a circle leads to comes first).  Its nodes are coloured
 * by their forms and by what they refer to outside of the circle, and again by the colours that
 * they refer to, until some colour belongs to one node alone.  From the node of the least such
 * colour all others are numbered in the order in which their references reach them, so the circle
 * becomes one text; the hash of a node is the hash of the text and its number.  As no two nodes of
 * the graph mean the same, there is such a colour after some rounds; hardly ever is one round not
 * enough.
 *
 * Cost: linear in nodes and edges; where no colour belongs to one node alone, a sort of the circle
 * in that round. */
#include "icf/hash/state.h"
#include <stdlib.h>
#include <string.h>

#define MAX_ROUNDS 64
#define FEW        32 /* colours that are looked at first */

struct walk {
	struct icf_hasher *h;
	const uint32_t *cls;
	struct icf_hash *hash;   /* by node: the result, or its colour; h->form at the end */
	struct icf_hash *colour; /* by place in the circle */
	uint32_t *low, *number;  /* by node, Tarjan's; number 0: not seen */
	uint32_t *local;         /* by node: its number in the circle's text */
	uint8_t *state;          /* by node: enum below */
	uint32_t *stack, n_stack;
	struct frame {
		uint32_t node, edge;
	} * call;
	uint32_t n_call, seen;
	uint32_t *order; /* of a circle */
	struct elfrw_wbuf text;
};

enum { NEW, OPEN, INSIDE, DONE }; /* INSIDE: of the circle that is being hashed */

static uint32_t target(const struct walk *w, uint32_t e)
{
	return w->cls[w->h->edge[e]];
}

static void put_hash(struct elfrw_wbuf *w, struct icf_hash h)
{
	elfrw_wbuf_u64(w, h.lo);
	elfrw_wbuf_u64(w, h.hi);
}

static struct icf_hash hash_text(struct walk *w)
{
	return icf_hash_bytes(w->text.data, w->text.len);
}

static void put_node(struct walk *w, uint8_t what, uint32_t node)
{
	elfrw_wbuf_u8(&w->text, what);
	put_hash(&w->text, w->h->form[node]);
}

static int colour_order(const void *a, const void *b)
{
	return icf_hash_cmp(a, b);
}

/* The least of the N colours in w->colour that belongs to one node only; they are sorted then.
 * false: there is none. */
static bool least_of(struct walk *w, uint32_t n, struct icf_hash *ret)
{
	if (n)
		qsort(w->colour, n, sizeof *w->colour, colour_order);
	for (uint32_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && icf_hash_cmp(&w->colour[i], &w->colour[k]) == 0;)
			k++;
		if (k - i == 1) {
			*ret = w->colour[i];
			return true;
		}
	}
	return false;
}

/* The least colour of the N nodes that belongs to one node only; false: there is none, and
 * w->colour has all, in order.  Colours are spread evenly, so it is mostly among the least few,
 * and all others need not be sorted. */
static bool least_alone(struct walk *w, const uint32_t *node, uint32_t n, struct icf_hash *ret)
{
	unsigned shift = 0;
	while (shift < 32 && n >> shift > FEW)
		shift++;
	for (;;) {
		const uint64_t most = UINT64_MAX >> shift;
		uint32_t some = 0;
		for (uint32_t i = 0; i < n; i++)
			if (w->hash[node[i]].hi <= most)
				w->colour[some++] = w->hash[node[i]];
		if (least_of(w, some, ret))
			return true;
		if (!shift)
			return false;
		shift = shift > 4 ? shift - 4 : 0;
	}
}

/* Colours the N nodes of a circle, and returns the one to begin with. */
static uint32_t colour(struct walk *w, const uint32_t *node, uint32_t n)
{
	const uint32_t *first = w->h->first;
	struct icf_hash least = { 0 };
	for (uint32_t i = 0; i < n; i++) {
		w->text.len = 0;
		put_node(w, ICF_MIX_COLOUR, node[i]);
		for (uint32_t e = first[node[i]]; e < first[node[i] + 1]; e++) {
			bool in = w->state[target(w, e)] == INSIDE;
			elfrw_wbuf_u8(&w->text, in);
			if (!in)
				put_hash(&w->text, w->hash[target(w, e)]);
		}
		w->hash[node[i]] = hash_text(w);
	}
	for (int round = 0; !least_alone(w, node, n, &least) && round < MAX_ROUNDS; round++) {
		least = w->colour[0];
		for (uint32_t i = 0; i < n; i++) {
			w->text.len = 0;
			elfrw_wbuf_u8(&w->text, ICF_MIX_ROUND);
			put_hash(&w->text, w->hash[node[i]]);
			for (uint32_t e = first[node[i]]; e < first[node[i] + 1]; e++)
				if (w->state[target(w, e)] == INSIDE)
					put_hash(&w->text, w->hash[target(w, e)]);
			w->colour[i] = hash_text(w);
		}
		for (uint32_t i = 0; i < n; i++)
			w->hash[node[i]] = w->colour[i];
	}
	for (uint32_t i = 0; i < n; i++)
		if (icf_hash_cmp(&w->hash[node[i]], &least) == 0)
			return node[i];
	return node[0];
}

/* Hashes the N nodes of a circle. */
static void hash_circle(struct walk *w, const uint32_t *node, uint32_t n)
{
	const uint32_t *first = w->h->first;
	uint32_t len = 0;
	for (uint32_t i = 0; i < n; i++) {
		w->state[node[i]] = INSIDE;
		w->local[node[i]] = UINT32_MAX;
	}
	uint32_t root = colour(w, node, n);
	w->text.len = 0;
	w->local[root] = len;
	w->order[len++] = root;
	for (uint32_t i = 0; i < len; i++) {
		uint32_t x = w->order[i];
		put_node(w, ICF_MIX_CIRCLE, x);
		for (uint32_t e = first[x]; e < first[x + 1]; e++) {
			uint32_t t = target(w, e);
			bool in = w->state[t] == INSIDE;
			elfrw_wbuf_u8(&w->text, in);
			if (!in) {
				put_hash(&w->text, w->hash[t]);
				continue;
			}
			if (w->local[t] == UINT32_MAX) {
				w->local[t] = len;
				w->order[len++] = t;
			}
			elfrw_wbuf_u32(&w->text, w->local[t]);
		}
	}
	struct icf_hash all = hash_text(w);
	for (uint32_t i = 0; i < n; i++) {
		w->hash[node[i]] = icf_hash_mixed(ICF_MIX_MEMBER, all, w->local[node[i]]);
		w->state[node[i]] = DONE;
	}
}

static void hash_alone(struct walk *w, uint32_t node)
{
	w->text.len = 0;
	put_node(w, ICF_MIX_NODE, node);
	for (uint32_t e = w->h->first[node]; e < w->h->first[node + 1]; e++)
		put_hash(&w->text, w->hash[target(w, e)]);
	w->hash[node] = hash_text(w);
	w->state[node] = DONE;
}

static void enter(struct walk *w, uint32_t node)
{
	w->number[node] = w->low[node] = ++w->seen;
	w->state[node] = OPEN;
	w->stack[w->n_stack++] = node;
	w->call[w->n_call++] = (struct frame){ node, w->h->first[node] };
}

/* All edges of NODE are done.  If it is the first of a circle, the circle is on the stack from
 * there on. */
static void leave(struct walk *w, uint32_t node)
{
	if (w->low[node] == w->number[node]) {
		uint32_t top = w->n_stack;
		while (w->stack[--top] != node)
			;
		uint32_t n = w->n_stack - top;
		bool self = false;
		for (uint32_t e = w->h->first[node]; n == 1 && e < w->h->first[node + 1]; e++)
			self |= target(w, e) == node;
		if (n == 1 && !self)
			hash_alone(w, node);
		else
			hash_circle(w, w->stack + top, n);
		w->n_stack = top;
	}
	if (w->n_call) {
		uint32_t up = w->call[w->n_call - 1].node;
		if (w->low[node] < w->low[up])
			w->low[up] = w->low[node];
	}
}

static void walk_from(struct walk *w, uint32_t node)
{
	enter(w, node);
	while (w->n_call) {
		struct frame *f = &w->call[w->n_call - 1];
		if (f->edge == w->h->first[f->node + 1]) {
			w->n_call--;
			leave(w, f->node);
			continue;
		}
		uint32_t t = target(w, f->edge++);
		if (w->state[t] == NEW)
			enter(w, t);
		else if (w->state[t] == OPEN && w->number[t] < w->low[f->node])
			w->low[f->node] = w->number[t];
	}
}

struct elfrw_err *icf_hash_circles(struct icf_hasher *h, const uint32_t *cls)
{
	size_t n = (size_t)h->n + 1;
	struct walk w = { .h = h, .cls = cls };
	w.hash = malloc(n * sizeof *w.hash);
	w.colour = malloc(n * sizeof *w.colour);
	w.low = malloc(n * sizeof *w.low);
	w.number = malloc(n * sizeof *w.number);
	w.local = malloc(n * sizeof *w.local);
	w.state = calloc(n, sizeof *w.state);
	w.stack = malloc(n * sizeof *w.stack);
	w.call = malloc(n * sizeof *w.call);
	w.order = malloc(n * sizeof *w.order);
	bool ok = w.hash && w.colour && w.low && w.number && w.local && w.state && w.stack &&
		  w.call && w.order;
	for (uint32_t i = 0; i < h->n && ok; i++)
		if (cls[i] == i && w.state[i] == NEW)
			walk_from(&w, i);
	ok = ok && !w.text.bad;
	if (ok)
		memcpy(h->form, w.hash, h->n * sizeof *h->form);
	free(w.hash);
	free(w.colour);
	free(w.low);
	free(w.number);
	free(w.local);
	free(w.state);
	free(w.stack);
	free(w.call);
	free(w.order);
	elfrw_wbuf_free(&w.text);
	return ok ? NULL : &elfrw_err_nomem;
}
