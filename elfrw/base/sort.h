/* sort.h: sorting of arrays that are mostly in order. */
#ifndef ELFRW_BASE_SORT_H
#define ELFRW_BASE_SORT_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sorts N elements of SIZE bytes stably.  Arrays of few ascending runs (relocation tables, lists
 * collected section by section) are merged run by run, in about N comparisons for each doubling.
 * Other arrays go to qsort().  false: out of memory, nothing changed. */
bool elfrw_sort_runs(void *base, size_t n, size_t size, int (*order)(const void *, const void *));

/* Sorts N elements of SIZE bytes, each of which begins with a number (uint64_t); most numbers lie
 * between LO and HI, evenly or in heaps.  ORDER compares the numbers first.  About three passes
 * over the elements if few are in one heap, and qsort() of each heap.  false: out of memory,
 * nothing changed. */
bool elfrw_sort_numbers(void *base, size_t n, size_t size, uint64_t lo, uint64_t hi,
			int (*order)(const void *, const void *));

/* Compare uint32_t and uint64_t, for qsort() and bsearch(). */
int elfrw_u32_order(const void *a, const void *b);
int elfrw_u64_order(const void *a, const void *b);
#endif
