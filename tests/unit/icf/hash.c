/* hash.c: hashes of graphs with circles (icf/hash/circle.c): they do not depend on how the nodes
 * are numbered or on what else is in the graph, and nodes that mean different things have different
 * hashes. */
#include "tests/unit/make/err_check.h"
#include "icf/fold/refine.h"
#include "icf/hash/state.h"
#include <stdlib.h>
#include <string.h>

#define MAX 64

struct graph {
	uint32_t n, first[MAX + 1], edge[4 * MAX], cls[MAX];
	struct icf_hash form[MAX];
};

static uint32_t pick(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

/* Nodes with KINDS kinds of form; a node of kind K has K edges. */
static void make_graph(struct graph *g, uint32_t n, uint32_t kinds, uint32_t *seed)
{
	uint32_t e = 0;
	g->n = n;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t kind = pick(seed, kinds);
		g->form[i] = (struct icf_hash){ kind, 7 };
		g->first[i] = e;
		for (uint32_t k = 0; k < kind; k++)
			g->edge[e++] = pick(seed, n);
	}
	g->first[n] = e;
}

/* G with node I as node to[I]. */
static void renumber(const struct graph *g, const uint32_t *to, struct graph *ret)
{
	uint32_t from[MAX], e = 0;
	for (uint32_t i = 0; i < g->n; i++)
		from[to[i]] = i;
	ret->n = g->n;
	for (uint32_t i = 0; i < g->n; i++) {
		ret->form[i] = g->form[from[i]];
		ret->first[i] = e;
		for (uint32_t k = g->first[from[i]]; k < g->first[from[i] + 1]; k++)
			ret->edge[e++] = to[g->edge[k]];
	}
	ret->first[g->n] = e;
}

/* B behind A, without edges between them. */
static void join(const struct graph *a, const struct graph *b, struct graph *ret)
{
	*ret = *a;
	ret->n = a->n + b->n;
	for (uint32_t i = 0; i < b->n; i++) {
		ret->form[a->n + i] = b->form[i];
		ret->first[a->n + i] = a->first[a->n] + b->first[i];
	}
	ret->first[ret->n] = a->first[a->n] + b->first[b->n];
	for (uint32_t e = 0; e < b->first[b->n]; e++)
		ret->edge[a->first[a->n] + e] = b->edge[e] + a->n;
}

static void hash(struct graph *g, struct icf_hash *ret)
{
	struct icf_hash form[MAX];
	struct icf_hasher h = { .n = g->n, .form = form, .first = g->first, .edge = g->edge };
	struct icf_refine_cost cost;
	struct icf_graph graph = { g->n, g->first, g->edge };
	memcpy(form, g->form, sizeof form);
	for (uint32_t i = 0; i < g->n; i++)
		g->cls[i] = (uint32_t)g->form[i].lo;
	be_ok(icf_refine(&graph, g->cls, 64, &cost));
	be_ok(icf_hash_circles(&h, g->cls));
	for (uint32_t i = 0; i < g->n; i++)
		ret[i] = form[g->cls[i]];
}

static bool same(const struct icf_hash *a, const struct icf_hash *b)
{
	return icf_hash_cmp(a, b) == 0;
}

static void test_numbers(void **state)
{
	(void)state;
	uint32_t seed = 5;
	for (unsigned k = 0; k < 2000; k++) {
		struct graph g, other;
		struct icf_hash a[MAX], b[MAX];
		uint32_t to[MAX];
		make_graph(&g, 1 + pick(&seed, 30), 2 + pick(&seed, 3), &seed);
		for (uint32_t i = 0; i < g.n; i++)
			to[i] = i;
		for (uint32_t i = g.n; i > 1; i--) {
			uint32_t j = pick(&seed, i), t = to[i - 1];
			to[i - 1] = to[j];
			to[j] = t;
		}
		renumber(&g, to, &other);
		hash(&g, a);
		hash(&other, b);
		for (uint32_t i = 0; i < g.n; i++)
			assert_true(same(&a[i], &b[to[i]]));
		for (uint32_t i = 0; i < g.n; i++)
			for (uint32_t j = 0; j < i; j++)
				assert_int_equal(same(&a[i], &a[j]), g.cls[i] == g.cls[j]);
	}
}

/* The hashes of one graph are the same beside another one, and nodes of both are equal exactly if
 * the partition of both together says so. */
static void test_company(void **state)
{
	(void)state;
	uint32_t seed = 11;
	for (unsigned k = 0; k < 2000; k++) {
		struct graph x, y, both;
		struct icf_hash a[MAX], b[MAX], all[MAX];
		make_graph(&x, 1 + pick(&seed, 12), 2 + pick(&seed, 2), &seed);
		make_graph(&y, 1 + pick(&seed, 12), 2 + pick(&seed, 2), &seed);
		join(&x, &y, &both);
		hash(&x, a);
		hash(&y, b);
		hash(&both, all);
		for (uint32_t i = 0; i < x.n; i++)
			assert_true(same(&a[i], &all[i]));
		for (uint32_t i = 0; i < y.n; i++)
			assert_true(same(&b[i], &all[x.n + i]));
		for (uint32_t i = 0; i < x.n; i++)
			for (uint32_t j = 0; j < y.n; j++)
				assert_int_equal(same(&a[i], &b[j]),
						 both.cls[i] == both.cls[x.n + j]);
	}
}

/* A ring of 50 equal nodes in which two are different: each node is at another distance from them,
 * and no colour is alone in the first rounds when the two are alike. */
static void test_ring(void **state)
{
	(void)state;
	for (uint32_t gap = 1; gap < 25; gap++) {
		struct graph g = { .n = 50 };
		struct icf_hash a[MAX], b[MAX];
		uint32_t to[MAX];
		for (uint32_t i = 0; i < g.n; i++) {
			g.form[i] = (struct icf_hash){ i == 0 || i == gap ? 2 : 1, 7 };
			g.first[i] = i;
			g.edge[i] = (i + 1) % g.n;
			to[i] = (i * 7 + 3) % g.n;
		}
		g.first[g.n] = g.n;
		struct graph other;
		renumber(&g, to, &other);
		hash(&g, a);
		hash(&other, b);
		for (uint32_t i = 0; i < g.n; i++) {
			assert_true(same(&a[i], &b[to[i]]));
			for (uint32_t j = 0; j < i; j++)
				assert_false(same(&a[i], &a[j]));
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_company),
		cmocka_unit_test(test_ring),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
