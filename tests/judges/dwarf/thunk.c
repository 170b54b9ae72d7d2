/* thunk.c: does each thunk show a line that its function begins with?
 *
 * line.c asks the same of the rows that the judge itself reads.  Here libdw reads the rows, so that
 * a mistake in the judge's own reader hides none. */
#include "tests/judges/dwarf/judge.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A line that stands at the start of unit `unit`, or in its thunk. */
struct shown {
	uint32_t unit;
	int line;
	const char *path; /* owned by libdw */
};

struct shown_list {
	struct shown *v;
	size_t n, cap;
};

static void add(struct shown_list *s, uint32_t unit, Dwarf_Line *row)
{
	struct shown x = { .unit = unit, .path = dwarf_linesrc(row, NULL, NULL) };

	if (!x.path || dwarf_lineno(row, &x.line))
		return;
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 16;
		s->v = realloc(s->v, s->cap * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = x;
}

static int by_unit(const void *pa, const void *pb)
{
	const struct shown *a = pa, *b = pb;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return strcmp(a->path, b->path);
}

/* The first unit of the input that begins at VA or behind. */
static uint32_t first_from(const struct jmap *m, uint64_t va)
{
	uint32_t a = 0, b = m->n;

	while (a < b) {
		uint32_t mid = a + (b - a) / 2;

		if (m->unit[mid].old < va)
			a = mid + 1;
		else
			b = mid;
	}
	return a;
}

/* The rows of DIE's unit that hold where functions with thunks begin in the input, or (OUT) that
 * stand in thunks of the output. */
static void read_rows(struct judge *j, int out, Dwarf_Die *die, struct shown_list *ret)
{
	const struct jmap *m = &j->map;
	Dwarf_Lines *rows;
	size_t n;

	if (dwarf_getsrclines(die, &rows, &n))
		return;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *row = dwarf_onesrcline(rows, i), *next = dwarf_onesrcline(rows, i + 1);
		Dwarf_Addr lo, hi;
		bool end;

		if (dwarf_lineaddr(row, &lo) || dwarf_lineendsequence(row, &end) || end)
			continue;
		if (out) {
			uint32_t t = jmap_find_thunk(m, lo);

			if (t != JNONE)
				add(ret, t, row);
			continue;
		}
		if (!next || dwarf_lineaddr(next, &hi) || hi <= lo)
			hi = lo + 1;
		for (uint32_t u = first_from(m, lo); u < m->n && m->unit[u].old < hi; u++)
			if (m->unit[u].thunk)
				add(ret, u, row);
	}
}

void judge_thunks(struct judge *j, Dwarf_Die *a, Dwarf_Die *b)
{
	struct jmap *m = &j->map;
	struct shown_list in = { 0 }, out = { 0 };

	if (!m->n_thunk)
		return;
	read_rows(j, 0, a, &in);
	read_rows(j, 1, b, &out);
	if (in.n)
		qsort(in.v, in.n, sizeof(*in.v), by_unit);
	for (size_t i = 0; i < in.n; i++)
		m->unit[in.v[i].unit].has_line = true;
	for (size_t i = 0; i < out.n; i++) {
		const struct shown *x = &out.v[i];
		struct junit *u = &m->unit[x->unit];

		u->thunk_has_line = true;
		j->n_thunk_rows++;
		if (!in.n || !bsearch(x, in.v, in.n, sizeof(*in.v), by_unit))
			judge_wrong(
				j, J_THUNK_LINE,
				"unit %#" PRIx64 ": libdw finds %s:%d in the thunk of %s (%#" PRIx64
				"), which does not begin with that line",
				(uint64_t)dwarf_dieoffset(a), x->path, x->line, u->name, u->thunk);
	}
	free(in.v);
	free(out.v);
}

void judge_thunks_done(struct judge *j)
{
	const struct jmap *m = &j->map;

	for (uint32_t i = 0; i < m->n_thunk; i++) {
		const struct junit *u = &m->unit[m->thunk[i]];

		if (u->has_line && !u->thunk_has_line)
			judge_wrong(j, J_THUNK_LINE,
				    "libdw finds no line in the thunk of %s (%#" PRIx64 ")",
				    u->name, u->thunk);
	}
}
