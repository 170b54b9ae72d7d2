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

/* Merges the NA elements at A with the NB that follow them.  TMP: room for those of A. */
static void merge(const struct elements *e, char *a, size_t na, size_t nb, char *tmp)
{
	const size_t size = e->size;
	char *b = a + na * size, *to = a;
	/* Those of A that stay where they are. */
	size_t lo = 0, hi = na;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (e->order(a + mid * size, b) > 0)
			hi = mid;
		else
			lo = mid + 1;
	}
	to += lo * size;
	na -= lo;
	memcpy(tmp, to, na * size);
	if (na && nb && e->order(b + (nb - 1) * size, tmp) < 0) {
		memmove(to, b, nb * size);
		to += nb * size;
		nb = 0;
	}
	while (na && nb) {
		bool second = e->order(tmp, b) > 0;
		memcpy(to, second ? b : tmp, size);
		to += size;
		if (second) {
			b += size;
			nb--;
		} else {
			tmp += size;
			na--;
		}
	}
	memcpy(to, tmp, na * size);
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
	while (runs > 1) {
		size_t k = 0;
		for (size_t r = 0; r < runs; r += 2) {
			size_t a = start[r], b = start[r + 1];
			if (r + 1 < runs)
				merge(&e, p + a * size, b - a, start[r + 2] - b, tmp);
			start[k++] = a;
		}
		start[k] = n;
		runs = k;
	}
	free(tmp);
	return true;
}

#define HEAPS_MAX 20 /* exponent of two */
#define FEW       8  /* elements that are sorted one by one */

/* Numbers from LO on, a heap for each 1 << SHIFT of them; those outside are in the first and last.
 */
struct heaps {
	uint64_t lo;
	size_t n;
	unsigned shift;
};

static inline size_t heap_of(const struct heaps *h, const char *p)
{
	uint64_t k;
	memcpy(&k, p, sizeof k);
	k = k < h->lo ? 0 : (k - h->lo) >> h->shift;
	return k < h->n ? (size_t)k : h->n - 1;
}

/* Sorts N elements at P; TMP: room for one. */
static void sort_few(const struct elements *e, char *p, size_t n, char *tmp)
{
	size_t size = e->size;
	for (size_t i = 1; i < n; i++) {
		size_t k = i;
		while (k > 0 && e->order(p + (k - 1) * size, p + i * size) > 0)
			k--;
		if (k == i)
			continue;
		memcpy(tmp, p + i * size, size);
		memmove(p + (k + 1) * size, p + k * size, (i - k) * size);
		memcpy(p + k * size, tmp, size);
	}
}

bool elfrw_sort_numbers(void *base, size_t n, size_t size, uint64_t lo, uint64_t hi,
			int (*order)(const void *, const void *))
{
	const struct elements e = { size, order };
	struct heaps h = { .lo = lo, .n = 1 };
	char *p = base;
	if (n < 2)
		return true;
	for (unsigned bits = 0; h.n < n && bits < HEAPS_MAX; bits++)
		h.n *= 2;
	while (hi > lo && (hi - lo) >> h.shift >= h.n)
		h.shift++;
	size_t *at = calloc(h.n + 1, sizeof *at);
	char *tmp = malloc((n + 1) * size);
	if (!at || !tmp) {
		free(at);
		free(tmp);
		return false;
	}
	for (size_t i = 0; i < n; i++)
		at[heap_of(&h, p + i * size) + 1]++;
	for (size_t k = 0; k < h.n; k++)
		at[k + 1] += at[k];
	for (size_t i = 0; i < n; i++)
		memcpy(tmp + at[heap_of(&h, p + i * size)]++ * size, p + i * size, size);
	memcpy(p, tmp, n * size);
	/* Each heap now ends where the next one began. */
	for (size_t k = 0, from = 0; k < h.n; from = at[k++])
		if (at[k] - from > FEW)
			qsort(p + from * size, at[k] - from, size, order);
		else
			sort_few(&e, p + from * size, at[k] - from, tmp + n * size);
	free(at);
	free(tmp);
	return true;
}
