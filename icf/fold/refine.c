/* refine.c: see refine.h.
 *
 * The hash of a node is a sum over its edges.  Each edge contributes a term, made from its place
 * and the name of the class that it leads to.  A round splits classes by the hashes of their
 * members.  The largest part keeps the class's name; the others get new names.  Only edges into
 * renamed parts change their terms, and only nodes whose hashes changed are examined in the next
 * round.  A node is renamed at most log2(n) times, since each time its class is at most half as
 * large.  The total is m log n edges and a sort of the changed nodes, whatever the number of rounds
 * (a chain of n functions takes n).  This is Hopcroft's "process the smaller half".
 *
 * Nodes that are split from a class differ from it.  A new name is in no other hash, so nodes with
 * a changed hash differ from nodes with an unchanged one, and different sums come from different
 * terms.  Equal sums may come from different terms.  So at the end the members of each class are
 * compared with its first.  Those that differ leave, and the rounds begin again with other
 * terms. */
#include "icf/fold/refine.h"
#include <stdbool.h>
#include <stdlib.h>

struct hash {
	uint64_t lo, hi;
};

/* A run of `node`.  The hashes of its first `dirty` nodes have changed. */
struct block {
	uint32_t start, end, dirty;
};

struct user {
	uint32_t node, place;
};

struct renamed {
	uint32_t node, from;
};

struct refine {
	const struct icf_graph *g;
	struct icf_refine_cost *cost;
	uint64_t mask, salt;
	struct hash *hash;  /* by node */
	uint32_t *node;     /* nodes; those of a block are adjacent */
	uint32_t *at;       /* by node: its index in `node` */
	uint32_t *block_of; /* by node */
	struct block *block;
	uint32_t n_blocks;
	uint32_t *user_first; /* by node, into user: the edges that lead to it */
	struct user *user;
	uint32_t *queue, *next; /* blocks with dirty nodes: of this round, of the next round */
	uint32_t n_queue, n_next;
	struct renamed *renamed;
	uint32_t n_renamed;
};

static uint64_t stir(uint64_t x)
{
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93u;
	return x ^ (x >> 32);
}

/* The term of the edge at PLACE if it leads to the class NAME. */
static struct hash term(const struct refine *r, uint32_t place, uint32_t name)
{
	uint64_t x = stir(((uint64_t)place << 32 | name) + r->salt * 0x9e3779b97f4a7c15u);
	return (struct hash){ stir(x + 1) & r->mask, stir(x ^ 0xff51afd7ed558ccdu) & r->mask };
}

static uint32_t name_of(const struct refine *r, uint32_t edge)
{
	return edge < r->g->n ? r->block_of[edge] : edge;
}

static void add(const struct refine *r, struct hash *h, struct hash t)
{
	h->lo = (h->lo + t.lo) & r->mask;
	h->hi = (h->hi + t.hi) & r->mask;
}

static void take(const struct refine *r, struct hash *h, struct hash t)
{
	h->lo = (h->lo - t.lo) & r->mask;
	h->hi = (h->hi - t.hi) & r->mask;
}

static int by_hash(const void *a, const void *b, void *ctx)
{
	const struct hash *h = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (h[x].hi != h[y].hi)
		return h[x].hi < h[y].hi ? -1 : 1;
	if (h[x].lo != h[y].lo)
		return h[x].lo < h[y].lo ? -1 : 1;
	return x < y ? -1 : x > y;
}

static int by_number(const void *a, const void *b, void *ctx)
{
	const uint32_t *cls = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (cls[x] != cls[y])
		return cls[x] < cls[y] ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void deinit(struct refine *r)
{
	free(r->hash);
	free(r->node);
	free(r->at);
	free(r->block_of);
	free(r->block);
	free(r->user_first);
	free(r->user);
	free(r->queue);
	free(r->next);
	free(r->renamed);
}

static bool init(struct refine *r)
{
	size_t n = (size_t)r->g->n + 1, m = r->g->first[r->g->n];
	r->hash = malloc(n * sizeof *r->hash);
	r->node = malloc(n * sizeof *r->node);
	r->at = malloc(n * sizeof *r->at);
	r->block_of = malloc(n * sizeof *r->block_of);
	r->block = malloc(n * sizeof *r->block);
	r->user_first = calloc(n + 1, sizeof *r->user_first);
	r->user = malloc((m + 1) * sizeof *r->user);
	r->queue = malloc(n * sizeof *r->queue);
	r->next = malloc(n * sizeof *r->next);
	r->renamed = malloc(n * sizeof *r->renamed);
	return r->hash && r->node && r->at && r->block_of && r->block && r->user_first && r->user &&
	       r->queue && r->next && r->renamed;
}

/* Is node X alone in its class?  Then it stays so, and its hash does not matter. */
static bool is_alone(const struct refine *r, uint32_t x)
{
	const struct block *k = &r->block[r->block_of[x]];
	return k->end - k->start == 1;
}

/* Sorts the edges of nodes that are not alone by their targets. */
static void find_users(struct refine *r)
{
	const struct icf_graph *g = r->g;
	uint32_t *fill = r->user_first + 1;
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t e = g->first[i]; e < g->first[i + 1] && !is_alone(r, i); e++)
			if (g->edge[e] < g->n)
				fill[g->edge[e] + 1]++;
	for (uint32_t i = 0; i < g->n; i++)
		fill[i + 1] += fill[i];
	for (uint32_t i = 0; i < g->n; i++)
		for (uint32_t e = g->first[i]; e < g->first[i + 1] && !is_alone(r, i); e++)
			if (g->edge[e] < g->n)
				r->user[fill[g->edge[e]]++] = (struct user){ i, e - g->first[i] };
	/* Each fill[i] has gone on to where the next node's begin: user_first[i + 1]. */
}

/* Sorts the nodes by class, those of a class by their numbers. */
static void sort_nodes(struct refine *r, const uint32_t *cls)
{
	uint32_t n = r->g->n, max = 0;
	for (uint32_t i = 0; i < n; i++) {
		r->node[i] = i;
		max = cls[i] > max ? cls[i] : max;
	}
	/* Classes mostly have the numbers of nodes; then counting is enough. */
	uint32_t *at = max / 4 <= n ? calloc((size_t)max + 2, sizeof *at) : NULL;
	if (!at) {
		qsort_r(r->node, n, sizeof *r->node, by_number, (void *)cls);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		at[cls[i] + 1]++;
	for (uint32_t k = 0; k < max; k++)
		at[k + 1] += at[k];
	for (uint32_t i = 0; i < n; i++)
		r->node[at[cls[i]]++] = i;
	free(at);
}

static void first_blocks(struct refine *r, const uint32_t *cls)
{
	uint32_t n = r->g->n;
	if (n)
		sort_nodes(r, cls);
	for (uint32_t i = 0; i < n; i++) {
		if (i == 0 || cls[r->node[i]] != cls[r->node[i - 1]])
			r->block[r->n_blocks++] = (struct block){ .start = i };
		r->block[r->n_blocks - 1].end = i + 1;
		r->block_of[r->node[i]] = r->n_blocks - 1;
		r->at[r->node[i]] = i;
	}
}

/* Computes all hashes anew; all nodes that are not alone become dirty. */
static void hash_all(struct refine *r)
{
	const struct icf_graph *g = r->g;
	r->salt++;
	r->n_queue = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		r->hash[i] = (struct hash){ 0, 0 };
		if (is_alone(r, i))
			continue;
		for (uint32_t e = g->first[i]; e < g->first[i + 1]; e++)
			add(r, &r->hash[i], term(r, e - g->first[i], name_of(r, g->edge[e])));
		r->cost->steps += g->first[i + 1] - g->first[i];
	}
	for (uint32_t b = 0; b < r->n_blocks; b++)
		if (r->block[b].end - r->block[b].start > 1) {
			r->block[b].dirty = r->block[b].end - r->block[b].start;
			r->queue[r->n_queue++] = b;
		}
}

/* Makes nodes [FROM, TO) of `node` a block of their own. */
static void rename_run(struct refine *r, uint32_t from, uint32_t to)
{
	uint32_t b = r->n_blocks++;
	r->block[b] = (struct block){ .start = from, .end = to };
	for (uint32_t i = from; i < to; i++) {
		uint32_t x = r->node[i];
		r->renamed[r->n_renamed++] = (struct renamed){ x, r->block_of[x] };
		r->block_of[x] = b;
	}
}

static bool same_hash(const struct refine *r, uint32_t i, uint32_t k)
{
	const struct hash *a = &r->hash[r->node[i]], *b = &r->hash[r->node[k]];
	return a->lo == b->lo && a->hi == b->hi;
}

#define FEW 16 /* nodes that are sorted one by one */

/* Sorts the N nodes at NODE by their hashes. */
static void sort_dirty(const struct refine *r, uint32_t *node, uint32_t n)
{
	if (n > FEW)
		qsort_r(node, n, sizeof *node, by_hash, r->hash);
	for (uint32_t i = 1; i < n && n <= FEW; i++) {
		uint32_t x = node[i], k = i;
		for (; k > 0 && by_hash(&node[k - 1], &x, r->hash) > 0; k--)
			node[k] = node[k - 1];
		node[k] = x;
	}
}

/* Splits block B into runs of equal hashes among its dirty nodes, and the rest. */
static void split(struct refine *r, uint32_t b)
{
	struct block old = r->block[b];
	uint32_t mid = old.start + old.dirty, keep = mid, keep_end = old.end;
	sort_dirty(r, r->node + old.start, old.dirty);
	r->cost->steps += old.dirty;
	for (uint32_t i = old.start, k; i < mid; i = k) {
		for (k = i; k < mid && same_hash(r, i, k); k++)
			r->at[r->node[k]] = k;
		if (k - i > keep_end - keep) {
			keep = i;
			keep_end = k;
		}
	}
	for (uint32_t i = old.start, k; i < mid; i = k) {
		for (k = i + 1; k < mid && same_hash(r, i, k);)
			k++;
		if (i != keep)
			rename_run(r, i, k);
	}
	if (keep != mid && mid < old.end)
		rename_run(r, mid, old.end);
	r->block[b] = (struct block){ .start = keep, .end = keep_end };
}

/* The hash of X changed: makes X dirty. */
static void mark(struct refine *r, uint32_t x)
{
	uint32_t b = r->block_of[x];
	struct block *k = &r->block[b];
	uint32_t to = k->start + k->dirty, from = r->at[x];
	if (k->end - k->start == 1 || from < to)
		return;
	if (k->dirty++ == 0)
		r->next[r->n_next++] = b;
	uint32_t other = r->node[to];
	r->node[to] = x;
	r->node[from] = other;
	r->at[x] = to;
	r->at[other] = from;
}

/* One round; false: nothing split. */
static bool split_round(struct refine *r)
{
	r->n_renamed = r->n_next = 0;
	for (uint32_t i = 0; i < r->n_queue; i++)
		split(r, r->queue[i]);
	for (uint32_t i = 0; i < r->n_renamed; i++) {
		struct renamed t = r->renamed[i];
		for (uint32_t u = r->user_first[t.node]; u < r->user_first[t.node + 1]; u++) {
			struct user *s = &r->user[u];
			if (is_alone(r, s->node))
				continue;
			take(r, &r->hash[s->node], term(r, s->place, t.from));
			add(r, &r->hash[s->node], term(r, s->place, r->block_of[t.node]));
			mark(r, s->node);
		}
		r->cost->steps += r->user_first[t.node + 1] - r->user_first[t.node];
	}
	uint32_t *queue = r->queue;
	r->queue = r->next;
	r->next = queue;
	r->n_queue = r->n_next;
	return r->n_renamed != 0;
}

/* Do the edges of A and B lead to the same classes? */
static bool same_edges(const struct refine *r, uint32_t a, uint32_t b)
{
	const uint32_t *x = r->g->edge + r->g->first[a], *y = r->g->edge + r->g->first[b];
	uint32_t n = r->g->first[a + 1] - r->g->first[a];
	if (n != r->g->first[b + 1] - r->g->first[b])
		return false;
	for (uint32_t e = 0; e < n; e++)
		if (name_of(r, x[e]) != name_of(r, y[e]))
			return false;
	return true;
}

/* The proof: a node that differs from the first of its class leaves the class; true: some node did.
 * The comparison uses the old names, so nodes that leave are only marked (at their block's front)
 * until all are compared. */
static bool expel(struct refine *r)
{
	r->n_next = 0;
	for (uint32_t b = 0; b < r->n_blocks; b++) {
		struct block old = r->block[b];
		uint32_t first = r->node[old.start];
		for (uint32_t i = old.start + 1; i < old.end; i++)
			if (!same_edges(r, first, r->node[i]))
				mark(r, r->node[i]);
	}
	r->n_renamed = 0;
	for (uint32_t i = 0; i < r->n_next; i++) {
		struct block *k = &r->block[r->next[i]];
		uint32_t start = k->start, mid = start + k->dirty;
		*k = (struct block){ .start = mid, .end = k->end };
		rename_run(r, start, mid);
	}
	return r->n_next != 0;
}

static void state_classes(const struct refine *r, uint32_t *cls)
{
	for (uint32_t b = 0; b < r->n_blocks; b++) {
		uint32_t least = UINT32_MAX;
		for (uint32_t i = r->block[b].start; i < r->block[b].end; i++)
			least = r->node[i] < least ? r->node[i] : least;
		for (uint32_t i = r->block[b].start; i < r->block[b].end; i++)
			cls[r->node[i]] = least;
	}
}

struct elfrw_err *icf_refine(const struct icf_graph *g, uint32_t *cls, unsigned hash_bits,
			     struct icf_refine_cost *cost)
{
	struct refine r = { .g = g,
			    .cost = cost,
			    .mask = hash_bits < 64 ? ((uint64_t)1 << hash_bits) - 1 : UINT64_MAX };
	*cost = (struct icf_refine_cost){ 0 };
	bool ok = init(&r);
	if (ok) {
		first_blocks(&r, cls);
		find_users(&r);
		do {
			hash_all(&r);
			do
				cost->rounds++;
			while (split_round(&r));
		} while (expel(&r));
		state_classes(&r, cls);
	}
	deinit(&r);
	return ok ? NULL : &elfrw_err_nomem;
}
