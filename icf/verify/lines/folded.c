/* folded.c: the rows of folded functions, once those of all parts are known.  They must be in the
 * artificial unit, unless they name the same places as the kept function's; and nothing else may be
 * there. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/walk.h"
#include <stdlib.h>
#include <string.h>

/* The first row of unit U in S (by unit). */
static size_t rows_of(const struct icf_vrow_refs *s, uint32_t u)
{
	return LOWER_BOUND(0, s->v.len, mid, s->v.data[mid]->unit < u);
}

/* Marks and discriminators are those of a row's own place: a row that only reaches over the
 * function has none. */
static bool same_marks(const struct icf_vrow *a, const struct icf_vrow *b)
{
	const unsigned marks = ICF_VROW_STMT | ICF_VROW_PROLOGUE | ICF_VROW_EPILOGUE;
	return a->optional || b->optional ||
	       (a->disc == b->disc && !((a->flags ^ b->flags) & marks));
}

static bool same_place(const struct icf_vrow *a, const struct icf_vrow *b)
{
	return same_marks(a, b) && a->addr == b->addr && a->line == b->line && a->col == b->col &&
	       (a->file == b->file || strcmp(a->file, b->file) == 0);
}

static bool same_line(const struct icf_vrow *a, const struct icf_vrow *b)
{
	return a->addr == b->addr && a->line == b->line && a->col == b->col;
}

/* Is A's line before B's, in the order of icf_vrow_by_all? */
static bool before_line(const struct icf_vrow *a, const struct icf_vrow *b)
{
	return a->addr != b->addr   ? a->addr < b->addr
	       : a->line != b->line ? a->line < b->line
				    : a->col < b->col;
}

/* A run of rows of one unit out of one table. */
struct run {
	const struct icf_vrow *const *v;
	size_t n;
};

/* The run that begins at row I of S (by unit). */
static struct run run_at(const struct icf_vrow_refs *s, size_t i)
{
	struct run r = { s->v.data + i, 0 };
	while (i + r.n < s->v.len && r.v[r.n]->unit == (*r.v)->unit && r.v[r.n]->cu == (*r.v)->cu)
		r.n++;
	return r;
}

/* Is every row of A the same place as one of B?  Both are sorted icf_vrow_by_all.  Where many rows
 * have one line, the next one of A mostly is at the next one of B. */
static bool covers(struct run a, struct run b)
{
	size_t next = 0;
	for (size_t i = 0; i < a.n; i++) {
		const struct icf_vrow *r = a.v[i];
		if (next < b.n && same_place(r, b.v[next])) {
			next++;
			continue;
		}
		size_t k = LOWER_BOUND(0, b.n, mid, before_line(b.v[mid], r));
		while (k < b.n && same_line(r, b.v[k]) && !same_place(r, b.v[k]))
			k++;
		const bool found = k < b.n && same_line(r, b.v[k]);
		if (!found && !r->optional)
			return false;
		next = found ? k + 1 : next;
	}
	return true;
}

/* Do the rows A name the same places at the same offsets as those of unit K in some table? */
static bool same_places(const struct icf_vrow_refs *s, struct run a, uint32_t k)
{
	struct run b;
	for (size_t i = rows_of(s, k); i < s->v.len && s->v.data[i]->unit == k; i += b.n) {
		b = run_at(s, i);
		if (covers(a, b) && covers(b, a))
			return true;
	}
	return false;
}

static const char *const status_text[] = { "none", "those of the kept function", "its own" };

static void check_status(struct icf_vdebug *d, uint32_t u, bool same)
{
	const struct icf_v *v = d->v;
	char name[200];
	uint32_t member = v->claim.has_note ? v->claim.note.unit_member[u] : UINT32_MAX;
	if (member == UINT32_MAX)
		return;
	unsigned have = v->claim.note.member[member].rows.status,
		 want = same ? DWR_NOTE_ROWS_SAME : DWR_NOTE_ROWS_OWN;
	/* Rows that differ only in things other than places may also be kept. */
	if (have != want && !(same && have == DWR_NOTE_ROWS_OWN))
		icf_vlog_bad(d->log, ICF_VC_NOTE, "line rows: %s: expected %s, found %s",
			     icf_v_where(&v->claim, v->claim.unit.data[u].old, name),
			     status_text[want], status_text[have]);
	icf_vd_sequence(d, u);
}

/* Which units of groups had rows, or one that only reaches over them. */
enum told { NO_ROWS, FOLDED_ROWS, KEPT_ROWS };

/* Checks kept functions, and folded ones without rows.  TOLD: by unit.  What has no rows cannot
 * have those of a function that has none either. */
static void check_others(struct icf_vdebug *d, const uint8_t *told)
{
	const struct icf_v *v = d->v;
	char name[200];
	for (size_t i = 0; i < v->claim.note.n_members && v->claim.has_note; i++) {
		const struct dwr_icfold_member *m = &v->claim.note.member[i];
		const struct icf_vunit *u = &v->claim.unit.data[m->unit];
		bool same = (u->flags & ICF_V_FOLDED) && u->kept < v->claim.unit.len &&
			    told[u->kept] == KEPT_ROWS;
		if (told[m->unit] == FOLDED_ROWS || m->rows.status == DWR_NOTE_ROWS_NONE ||
		    (same && m->rows.status == DWR_NOTE_ROWS_SAME))
			continue;
		icf_vlog_bad(d->log, ICF_VC_NOTE, "line rows: %s: expected none, found %s",
			     icf_v_where(&v->claim, v->claim.unit.data[m->unit].old, name),
			     status_text[m->rows.status]);
	}
}

/* What the rows of folded functions ask of the artificial unit.  Its rows that one of them needs
 * are marked as used. */
struct needs {
	struct icf_vrows *art; /* sorted icf_vrow_by_all */
	VEC(uint64_t) end;     /* where sequences of such functions end */
	bool nomem;
};

/* Marks the rows equal to W; false: there is none.  Where the first is marked, all are. */
static bool mark(const struct icf_vrows *art, const struct icf_vrow *w)
{
	const size_t lo =
		LOWER_BOUND(0, art->v.len, mid, icf_vrow_by_all(&art->v.data[mid], w) < 0);
	size_t k = lo;
	while (k < art->v.len && !art->v.data[k].used && !icf_vrow_by_all(&art->v.data[k], w))
		art->v.data[k++].used = true;
	return k > lo || (lo < art->v.len && !icf_vrow_by_all(&art->v.data[lo], w));
}

/* Adds the rows R that one table needs for a folded function to NEEDS.  ANY: is one of them
 * certain?  Returns the first of these that the artificial unit has not got. */
static const struct icf_vrow *find_gap(struct needs *needs, struct run r, bool *any)
{
	const struct icf_vrow *gap = NULL;
	*any = false;
	for (size_t k = 0; k < r.n; k++) {
		const struct icf_vrow *w = r.v[k];
		uint64_t *end = w->used ? VEC_PUSH(&needs->end) : NULL;
		if (end)
			*end = w->addr;
		needs->nomem |= w->used && !end;
		*any |= !w->optional;
		if (!mark(needs->art, w) && !gap && !w->optional)
			gap = w;
	}
	return gap;
}

/* Checks the rows of the folded function U, which begin at I of the group's, and returns the index
 * behind them.  Adds them to NEEDS. */
static size_t check_folded(struct icf_vdebug *d, struct icf_vline_own *own, uint32_t u, size_t i,
			   struct needs *needs)
{
	const struct icf_v *v = d->v;
	const struct icf_vrow_refs *group = &d->by_unit;
	char x[400], name[200];
	bool certain = false, same = false, there = false;
	const size_t first = i;
	const struct icf_vrow *missing = NULL;
	/* Several tables may describe a function that the linker kept once; one of them
	 * must be correct. */
	for (struct run r; i < group->v.len && group->v.data[i]->unit == u; i += r.n) {
		r = run_at(group, i);
		bool any;
		const struct icf_vrow *gap = find_gap(needs, r, &any);
		if (!any)
			continue;
		d->log->checked[ICF_VC_FOLDED_LINE] += r.n;
		certain = true;
		same |= same_places(group, r, v->claim.unit.data[u].kept);
		there |= !gap;
		missing = gap;
	}
	if (certain)
		check_status(d, u, same);
	if (certain && there)
		icf_vline_own_check(d, own, u, group->v.data + first, i - first);
	if (certain && !same && !there)
		icf_vlog_bad(
			d->log, ICF_VC_FOLDED_LINE,
			"row: of the folded %s: expected %s in the artificial unit, found none",
			icf_v_where(&v->claim, v->claim.unit.data[u].old, name),
			icf_vrow_show(missing, x));
	return i;
}

/* Checks the end H of a sequence of the artificial unit. */
static void check_end(struct icf_vdebug *d, const struct icf_vrow *h, const struct needs *needs)
{
	const struct icf_v *v = d->v;
	char x[400];
	/* A sequence ends with its function; the unit's own one is one byte long. */
	uint32_t u = icf_v_find_new(&v->claim, h->addr - 1);
	bool end = u != ICF_V_NONE &&
		   h->addr == v->claim.unit.data[u].body +
				      (v->claim.unit.data[u].end - v->claim.unit.data[u].old);
	end = end ||
	      (u != ICF_V_NONE && needs->end.len &&
	       bsearch(&h->addr, needs->end.data, needs->end.len, sizeof h->addr, elfrw_u64_order));
	if (!end && !(v->claim.has_note && v->claim.note.map.trap_byte &&
		      h->addr == v->claim.note.map.trap_byte + 1))
		icf_vlog_bad(
			d->log, ICF_VC_FOLDED_LINE,
			"end: artificial unit: expected sequences to end with their functions, found %s",
			icf_vrow_show(h, x));
}

/* Checks the row H of the artificial unit; true: it is the row of the unit's own byte. */
static bool check_artificial(struct icf_vdebug *d, const struct icf_vrow *h,
			     const struct needs *needs)
{
	const struct icf_v *v = d->v;
	char x[400];
	if (h->flags & ICF_VROW_END)
		check_end(d, h, needs);
	/* The unit's own range is one byte that is never a PC. */
	bool trap = v->claim.has_note && v->claim.note.map.trap_byte &&
		    h->addr == v->claim.note.map.trap_byte && !h->empty;
	size_t n = strlen(h->file), m = strlen(ICF_VD_ARTIFICIAL);
	if (trap && !(h->flags & ICF_VROW_END) &&
	    (n < m || strcmp(h->file + n - m, ICF_VD_ARTIFICIAL) != 0 || h->line != 1))
		icf_vlog_bad(
			d->log, ICF_VC_FOLDED_LINE,
			"row: artificial unit: expected no other file for its own byte, found %s",
			icf_vrow_show(h, x));
	if ((h->flags & ICF_VROW_END) || trap)
		return trap && !(h->flags & ICF_VROW_END);
	if (!h->used)
		icf_vlog_bad(d->log, ICF_VC_FOLDED_LINE,
			     "row: of the artificial unit: expected a folded function's, found %s",
			     icf_vrow_show(h, x));
	return false;
}

struct elfrw_err *icf_vd_folded_lines(struct icf_vdebug *d)
{
	const struct icf_v *v = d->v;
	const struct icf_vrow_refs *group = &d->by_unit;
	struct icf_vrows *art = &d->artificial;
	struct needs needs = { .art = art };
	if (d->policy != DWR_FOLDED_OVERLAY)
		return NULL;
	uint8_t *told = calloc(v->claim.unit.len + 1, 1);
	if (!told)
		return &elfrw_err_nomem;
	struct icf_vline_own table;
	icf_vline_own_open(d, &table);
	icf_vrows_sort(art, icf_vrow_by_all);
	for (size_t i = 0; i < group->v.len;) {
		uint32_t u = group->v.data[i]->unit;
		if (v->claim.unit.data[u].flags & ICF_V_FOLDED) {
			told[u] = FOLDED_ROWS;
			i = check_folded(d, &table, u, i, &needs);
		} else {
			told[u] = KEPT_ROWS;
			i += run_at(group, i).n;
		}
	}
	icf_vline_own_close(&table);
	check_others(d, told);
	free(told);
	if (needs.end.len)
		qsort(needs.end.data, needs.end.len, sizeof *needs.end.data, elfrw_u64_order);
	bool own = false, ends = false; /* the unit's own row is there, and the end behind it */
	const uint64_t byte = v->claim.has_note ? v->claim.note.map.trap_byte : 0;
	for (size_t i = 0; i < art->v.len; i++) {
		const struct icf_vrow *h = &art->v.data[i];
		own |= check_artificial(d, h, &needs);
		ends |= (h->flags & ICF_VROW_END) && h->addr == byte + 1;
	}
	if (art->v.len && byte && !(own && ends))
		icf_vlog_bad(
			d->log, ICF_VC_FOLDED_LINE,
			"row: artificial unit: expected one for its own byte 0x%llx alone, found %s",
			ICF_VX(byte), own ? "one without an end" : "none");
	VEC_FREE(&needs.end);
	return needs.nomem ? &elfrw_err_nomem : NULL;
}
