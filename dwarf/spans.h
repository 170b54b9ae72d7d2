/* spans.h: overlapping ranges of addresses, made one flat, sorted, disjoint table. */
#ifndef DWARF_SPANS_H
#define DWARF_SPANS_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_span {
	uint64_t lo, hi; /* [lo, hi) */
	uint64_t id;
};

struct dwr_spans {
	struct dwr_span *data; /* owned */
	size_t len, cap;
};

/* Adds [LO, HI); nothing when it is empty.  Errors: out of memory. */
struct elfrw_err *dwr_spans_add(struct dwr_spans *spans, uint64_t lo, uint64_t hi, uint64_t id);

/* Makes SPANS sorted and disjoint.  Where several overlap, the one with the highest id wins.  With
 * KEEP the one with the lowest wins, but does not interrupt one that began earlier.  Errors: out of
 * memory. */
struct elfrw_err *dwr_spans_flatten(struct dwr_spans *spans, bool keep);

/* The span of a flat table that holds ADDRESS, or NULL. */
const struct dwr_span *dwr_spans_find(const struct dwr_spans *spans, uint64_t address);
#endif
