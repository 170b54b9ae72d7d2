/* sort.h: sorting of arrays that are mostly in order. */
#ifndef ELFRW_BASE_SORT_H
#define ELFRW_BASE_SORT_H
#include <stdbool.h>
#include <stddef.h>

/* Sorts N elements of SIZE bytes stably.  Arrays of few ascending runs (relocation tables, lists
 * collected section by section) are merged run by run, in about N comparisons for each doubling.
 * Other arrays go to qsort().  false: out of memory, nothing changed. */
bool elfrw_sort_runs(void *base, size_t n, size_t size, int (*order)(const void *, const void *));

/* Compare uint32_t and uint64_t, for qsort() and bsearch(). */
int elfrw_u32_order(const void *a, const void *b);
int elfrw_u64_order(const void *a, const void *b);
#endif
