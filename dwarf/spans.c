/* spans.c: turns overlapping ranges into one flat, sorted, disjoint table.
 *
 * Ranges have a priority, their id: inner and later entries have higher ids and win.  Most tables
 * are already disjoint and only need sorting.  The others are swept once from low to high with a
 * heap of open ranges: O(n log n), no tree. */
#include "dwarf/spans.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/search.h"
#include <string.h>

struct elfrw_err *dwr_spans_add(struct dwr_spans *spans, uint64_t lo, uint64_t hi, uint64_t id)
{
	if (lo >= hi)
		return NULL;
	if (spans->len == spans->cap && !VEC_RESERVE(spans, spans->len + 1))
		return &elfrw_err_nomem;
	spans->data[spans->len++] = (struct dwr_span){ lo, hi, id };
	return NULL;
}

static inline bool before(const struct dwr_span *x, const struct dwr_span *y)
{
	if (x->lo != y->lo)
		return x->lo < y->lo;
	return x->id != y->id ? x->id < y->id : x->hi < y->hi;
}

/* Merges [A, MID) and [MID, END), which are sorted, into TO. */
static void merge(const struct dwr_span *a, const struct dwr_span *mid, const struct dwr_span *end,
		  struct dwr_span *to)
{
	const struct dwr_span *b = mid;
	while (a < mid && b < end)
		*to++ = before(b, a) ? *b++ : *a++;
	memcpy(to, a, (size_t)(mid - a) * sizeof *a);
	memcpy(to + (mid - a), b, (size_t)(end - b) * sizeof *b);
}

#define RUN 8 /* spans sorted by insertion */

/* Sorts by merging, in N log N steps; qsort() would take three times as long. */
static struct elfrw_err *sort(struct dwr_spans *spans)
{
	size_t n = spans->len;
	struct dwr_span *from = spans->data, *to = malloc(n * sizeof *to), *owned = to;
	if (!to)
		return &elfrw_err_nomem;
	for (size_t i = 1; i < n; i++) {
		const struct dwr_span s = from[i];
		size_t k = i;
		for (; k % RUN && before(&s, &from[k - 1]); k--)
			from[k] = from[k - 1];
		from[k] = s;
	}
	for (size_t width = RUN; width < n; width *= 2) {
		for (size_t i = 0; i < n; i += 2 * width) {
			size_t mid = n - i < width ? n : i + width,
			       end = n - i < 2 * width ? n : i + 2 * width;
			merge(from + i, from + mid, from + end, to + i);
		}
		struct dwr_span *other = from;
		from = to;
		to = other;
	}
	if (from == owned)
		memcpy(to, from, n * sizeof *to);
	free(owned);
	return NULL;
}

/* A heap of indices in `in`, the winner on top. */
struct heap {
	const struct dwr_span *in;
	uint32_t *at;
	size_t n;
	bool lowest;
};

static bool above(const struct heap *h, uint32_t a, uint32_t b)
{
	uint64_t x = h->in[a].id, y = h->in[b].id;
	return h->lowest ? x < y : x > y;
}

static void heap_push(struct heap *h, uint32_t v)
{
	size_t i = h->n++;
	for (; i && above(h, v, h->at[(i - 1) / 2]); i = (i - 1) / 2)
		h->at[i] = h->at[(i - 1) / 2];
	h->at[i] = v;
}

static void heap_pop(struct heap *h)
{
	uint32_t v = h->at[--h->n];
	size_t i = 0;
	for (;;) {
		size_t c = 2 * i + 1;
		if (c >= h->n)
			break;
		if (c + 1 < h->n && above(h, h->at[c + 1], h->at[c]))
			c++;
		if (!above(h, h->at[c], v))
			break;
		h->at[i] = h->at[c];
		i = c;
	}
	h->at[i] = v;
}

/* Appends [lo, hi) to OUT; joins it with the last span if that continues there. */
static struct elfrw_err *emit(struct dwr_spans *out, uint64_t lo, uint64_t hi, uint64_t id)
{
	if (out->len && out->data[out->len - 1].hi == lo && out->data[out->len - 1].id == id) {
		out->data[out->len - 1].hi = hi;
		return NULL;
	}
	return dwr_spans_add(out, lo, hi, id);
}

static struct elfrw_err *sweep(const struct dwr_spans *in, struct heap *h, bool keep,
			       struct dwr_spans *out)
{
	size_t next = 0;
	uint64_t pos = 0;
	const struct dwr_span *kept = NULL; /* with KEEP: the span that must not be interrupted */
	while (next < in->len || h->n) {
		if (!h->n && pos < in->data[next].lo)
			pos = in->data[next].lo;
		while (next < in->len && in->data[next].lo <= pos)
			heap_push(h, (uint32_t)next++);
		while (h->n && in->data[h->at[0]].hi <= pos)
			heap_pop(h);
		if (kept && kept->hi <= pos)
			kept = NULL;
		const struct dwr_span *top = kept ? kept : h->n ? &in->data[h->at[0]] : NULL;
		if (!top)
			continue;
		if (keep)
			kept = top;
		uint64_t to = top->hi;
		if (next < in->len && in->data[next].lo < to)
			to = in->data[next].lo;
		ELFRW_TRY(emit(out, pos, to, top->id));
		pos = to;
	}
	return NULL;
}

struct elfrw_err *dwr_spans_flatten(struct dwr_spans *spans, bool keep)
{
	bool sorted = true, disjoint = true;
	for (size_t i = 1; i < spans->len && sorted; i++)
		sorted = !before(&spans->data[i], &spans->data[i - 1]);
	if (!sorted)
		ELFRW_TRY(sort(spans));
	for (size_t i = 1; i < spans->len && disjoint; i++)
		disjoint = spans->data[i - 1].hi <= spans->data[i].lo;
	if (disjoint)
		return NULL;
	if (spans->len > UINT32_MAX)
		return elfrw_error("too many ranges");
	struct heap h = { .in = spans->data,
			  .at = malloc(spans->len * sizeof *h.at),
			  .lowest = keep };
	struct dwr_spans out = { 0 };
	struct elfrw_err *err = h.at ? sweep(spans, &h, keep, &out) : &elfrw_err_nomem;
	free(h.at);
	if (err) {
		free(out.data);
		return err;
	}
	free(spans->data);
	*spans = out;
	return NULL;
}

const struct dwr_span *dwr_spans_find(const struct dwr_spans *spans, uint64_t address)
{
	size_t lo = LOWER_BOUND(0, spans->len, mid, spans->data[mid].hi <= address);
	return lo < spans->len && spans->data[lo].lo <= address ? &spans->data[lo] : NULL;
}
