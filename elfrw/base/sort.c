/* sort.c: see sort.h. */
#include "elfrw/base/sort.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RUNS 64

int elfrw_u32_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

int elfrw_u64_order(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

struct elements {
	size_t size;
	int (*order)(const void *, const void *);
};

/* Merges the NA elements at A and the NB that follow them into TO. */
static void merge(const struct elements *e, char *to, const char *a, size_t na, size_t nb)
{
	size_t size = e->size;
	const char *b = a + na * size;
	while (na && nb) {
		bool second = e->order(a, b) > 0;
		memcpy(to, second ? b : a, size);
		to += size;
		if (second) {
			b += size;
			nb--;
		} else {
			a += size;
			na--;
		}
	}
	memcpy(to, na ? a : b, (na ? na : nb) * size);
}

bool elfrw_sort_runs(void *base, size_t n, size_t size, int (*order)(const void *, const void *))
{
	char *p = base;
	size_t start[MAX_RUNS + 1], runs = 0;
	const struct elements e = { size, order };
	if (n < 2)
		return true;
	start[runs++] = 0;
	for (size_t i = 1; i < n; i++) {
		if (order(p + (i - 1) * size, p + i * size) <= 0)
			continue;
		if (runs == MAX_RUNS) {
			qsort(base, n, size, order);
			return true;
		}
		start[runs++] = i;
	}
	start[runs] = n;
	if (runs == 1)
		return true;
	char *tmp = malloc(n * size);
	if (!tmp)
		return false;
	char *from = p, *to = tmp;
	while (runs > 1) {
		size_t k = 0;
		for (size_t r = 0; r < runs; r += 2) {
			size_t a = start[r], b = start[r + 1], c = r + 1 < runs ? start[r + 2] : b;
			merge(&e, to + a * size, from + a * size, b - a, c - b);
			start[k++] = a;
		}
		start[k] = n;
		runs = k;
		char *swap = from;
		from = to;
		to = swap;
	}
	if (from != p)
		memcpy(p, from, n * size);
	free(tmp);
	return true;
}
