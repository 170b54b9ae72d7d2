/* refine.c: the coarsest stable partition: against a naive one, with hashes that collide, and what
 * it costs. */
#include "tests/unit/make/err_check.h"
#include "icf/fold/refine.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct graph {
	struct icf_graph g;
	uint32_t *first, *edge, *cls;
};

static void graph_open(struct graph *x, uint32_t n, uint32_t max_edges)
{
	x->first = calloc(n + 1, sizeof *x->first);
	x->edge = calloc(max_edges + 1, sizeof *x->edge);
	x->cls = calloc(n + 1, sizeof *x->cls);
	assert_true(x->first && x->edge && x->cls);
	x->g = (struct icf_graph){ n, x->first, x->edge };
}

static void graph_close(struct graph *x)
{
	free(x->first);
	free(x->edge);
	free(x->cls);
}

static uint32_t name(const struct graph *x, uint32_t edge)
{
	return edge < x->g.n ? x->cls[edge] : edge;
}

static bool agree(const struct graph *x, uint32_t a, uint32_t b)
{
	if (x->cls[a] != x->cls[b])
		return false;
	for (uint32_t e = 0; e < x->first[a + 1] - x->first[a]; e++)
		if (name(x, x->edge[x->first[a] + e]) != name(x, x->edge[x->first[b] + e]))
			return false;
	return true;
}

/* The partition by its definition, with n^2 comparisons in each round. */
static void naive(struct graph *x)
{
	uint32_t *next = calloc(x->g.n + 1, sizeof *next);
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < x->g.n; i++) {
			for (next[i] = 0; !agree(x, i, next[i]);)
				next[i]++;
			/* Not the lowest of its class any more. */
			more |= next[i] != x->cls[i];
		}
		memcpy(x->cls, next, x->g.n * sizeof *next);
	}
	free(next);
}

static uint32_t pick(uint32_t *seed, uint32_t n)
{
	*seed = *seed * 1664525 + 1013904223;
	return (*seed >> 8) % n;
}

static void test_naive(void **state)
{
	(void)state;
	uint32_t seed = 1;
	for (unsigned k = 0; k < 400; k++) {
		uint32_t n = 1 + pick(&seed, 40), kinds = 1 + pick(&seed, 4),
			 reach = 1 + pick(&seed, n + 2);
		struct graph x;
		graph_open(&x, n, n * 4);
		uint32_t *start = calloc(n + 1, sizeof *start), e = 0;
		for (uint32_t i = 0; i < n; i++) {
			start[i] = x.cls[i] = 100 + pick(&seed, kinds);
			for (uint32_t j = 0; j < x.cls[i] - 99 && j < 3; j++)
				x.edge[e++] = pick(&seed, 8) ? (i + n - pick(&seed, reach) % n) % n
							     : n + pick(&seed, 2);
			x.first[i + 1] = e;
		}
		uint32_t *want = calloc(n + 1, sizeof *want);
		naive(&x);
		memcpy(want, x.cls, n * sizeof *want);
		static const unsigned bits[] = { 64, 3, 1, 0 };
		for (unsigned b = 0; b < 4; b++) {
			struct icf_refine_cost cost;
			memcpy(x.cls, start, n * sizeof *start);
			be_ok(icf_refine(&x.g, x.cls, bits[b], &cost));
			assert_memory_equal(x.cls, want, n * sizeof *want);
		}
		free(start);
		free(want);
		graph_close(&x);
	}
}

/* Two chains that differ at the end: a round for each level, yet n log n steps. */
static void test_chains(void **state)
{
	(void)state;
	enum { N = 20000 };
	struct graph x;
	graph_open(&x, 2 * N, 2 * N);
	for (uint32_t i = 0; i < 2 * N; i++) {
		x.edge[i] = i % N ? i - 1 : 2 * N + i;
		x.first[i + 1] = i + 1;
	}
	struct icf_refine_cost cost;
	be_ok(icf_refine(&x.g, x.cls, 64, &cost));
	assert_true(cost.rounds >= N && cost.steps < 40 * N);
	for (uint32_t i = 0; i < 2 * N; i++)
		assert_int_equal(x.cls[i], i);
	graph_close(&x);
}

/* A ring of N nodes and one of N + 1, all of one kind, are one class. A node of another kind in a
 * third ring splits that ring in N rounds. */
static void test_rings(void **state)
{
	(void)state;
	enum { N = 20000 };
	struct graph x;
	graph_open(&x, 3 * N + 1, 3 * N + 1);
	for (uint32_t i = 0; i < 3 * N + 1; i++) {
		x.edge[i] = i == N - 1 ? 0 : i == 2 * N ? N : i == 3 * N ? 2 * N + 1 : i + 1;
		x.first[i + 1] = i + 1;
	}
	x.cls[2 * N + 7] = 1;
	struct icf_refine_cost cost;
	be_ok(icf_refine(&x.g, x.cls, 64, &cost));
	assert_true(cost.steps < 60 * N);
	for (uint32_t i = 0; i < 3 * N + 1; i++)
		assert_int_equal(x.cls[i], i <= 2 * N ? 0 : i);
	graph_close(&x);
}

/* Two nodes, each with an edge to every node of a chain. Their hashes change in every round, but
 * only by the term of one edge. */
static void test_hub(void **state)
{
	(void)state;
	enum { N = 20000 };
	struct graph x;
	graph_open(&x, 3 * N, 4 * N);
	uint32_t e = 0;
	for (uint32_t i = 0; i < 2 * N; i++) {
		x.edge[e++] = i % N ? i - 1 : 3 * N + i;
		x.first[i + 1] = e;
	}
	for (uint32_t i = 2 * N; i < 3 * N; i++) {
		x.cls[i] = 1 + (i > 2 * N + 1);
		for (uint32_t k = 0; k < N && i < 2 * N + 2; k++)
			x.edge[e++] = (i - 2 * N) * N + k;
		x.first[i + 1] = e;
	}
	struct icf_refine_cost cost;
	be_ok(icf_refine(&x.g, x.cls, 64, &cost));
	assert_true(cost.steps < 60 * N);
	assert_int_equal(x.cls[2 * N], 2 * N);
	assert_int_equal(x.cls[2 * N + 1], 2 * N + 1);
	assert_int_equal(x.cls[3 * N - 1], 2 * N + 2);
	graph_close(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_naive),
		cmocka_unit_test(test_chains),
		cmocka_unit_test(test_rings),
		cmocka_unit_test(test_hub),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
