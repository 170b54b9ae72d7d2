/* lines.c: the rows of the line tables, as libdw decodes them.
 *
 * Every row of IN inside of a kept unit must be in OUT at the mapped address, and no others.  libdw
 * sorts the rows of all sequences by address.  So a row at the boundary of two units may belong to
 * the end of the one or to the start of the other.  Such rows are compared as sets, with both
 * places allowed.  In addition, the row in force at the first and last byte of every kept unit is
 * compared.  The rows of units that share their code are kept.  If a folded unit's rows name other
 * places than the kept one's, they must be in the artificial unit, and nothing else may be
 * there. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/debug/seen.h"
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/state.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Removes an unused row equal to WANT, at ADDR, from BAG (sorted icf_vrow_by_all). */
static bool take(struct icf_vrows *bag, const struct icf_vrow *want, uint64_t addr)
{
	struct icf_vrow key = *want;
	key.addr = addr;
	size_t lo = LOWER_BOUND(0, bag->v.len, mid, icf_vrow_by_all(&bag->v.data[mid], &key) < 0);
	for (; lo < bag->v.len && !icf_vrow_by_all(&bag->v.data[lo], &key); lo++)
		if (!bag->v.data[lo].used)
			return bag->v.data[lo].used = true;
	return false;
}

/* The last row at or before ADDR in libdw's order; NULL: the address is not covered.  EMPTY: rows
 * that cover nothing count, as libdw would take them. */
static const struct icf_vrow *in_force(const struct icf_vrows *s, uint64_t addr, bool empty)
{
	size_t lo = LOWER_BOUND(0, s->v.len, mid, s->v.data[mid].addr <= addr);
	while (!empty && lo && s->v.data[lo - 1].empty)
		lo--;
	return lo && !(s->v.data[lo - 1].flags & ICF_VROW_END) ? &s->v.data[lo - 1] : NULL;
}

/* Compares the rows inside of units, one for one. */
static void compare(struct icf_vdebug *d, uint64_t cu, struct icf_vrows *want,
		    struct icf_vrows *have)
{
	char x[400], y[400];
	icf_vrows_sort(want, d->policy == DWR_FOLDED_ALIAS ? icf_vrow_by_all : icf_vrow_by_address);
	icf_vrows_sort(have, d->policy == DWR_FOLDED_ALIAS ? icf_vrow_by_all : icf_vrow_by_address);
	for (size_t i = 0, k = 0; i < want->v.len || k < have->v.len;) {
		struct icf_vrow *w = i < want->v.len ? &want->v.data[i] : NULL,
				*h = k < have->v.len ? &have->v.data[k] : NULL;
		if (w && h && w->addr == h->addr) {
			if (icf_vrow_cmp(w, h))
				icf_vlog_bad(d->log, ICF_VC_LINE,
					     "row: unit 0x%llx: expected %s, found %s", ICF_VX(cu),
					     icf_vrow_show(w, x), icf_vrow_show(h, y));
			i++;
			k++;
		} else if (w && (!h || w->addr < h->addr)) {
			icf_vlog_bad(d->log, ICF_VC_LINE,
				     "row: unit 0x%llx: expected %s, found none", ICF_VX(cu),
				     icf_vrow_show(w, x));
			i++;
		} else {
			icf_vlog_bad(d->log, ICF_VC_LINE,
				     "row: unit 0x%llx: expected none, found %s", ICF_VX(cu),
				     icf_vrow_show(h, x));
			k++;
		}
	}
}

/* Have the rows of X left its line table? */
static bool is_gone(const struct icf_vunit *x, bool alias)
{
	return (x->flags & ICF_V_REMOVED) || ((x->flags & ICF_V_FOLDED) && !alias);
}

struct sorting {
	struct icf_vrows in, out, want, have, edge, bag;
	VEC(uint64_t) end; /* ascending, if ENDS_KNOWN */
	bool ends_known;
};

/* The row in force at a unit's start, if no row stands there: in OUT the unit may have it at its
 * start. */
static void reach_over(struct icf_vdebug *d, uint64_t cu, struct sorting *s, size_t i)
{
	const struct icf_v *v = d->v;
	struct icf_vrow row = s->in.v.data[i];
	uint64_t next = i + 1 < s->in.v.len ? s->in.v.data[i + 1].addr : row.addr;
	uint32_t u = icf_v_find(&v->claim, row.addr);
	if ((row.flags & ICF_VROW_END) || row.empty ||
	    (u != ICF_V_NONE && next <= v->claim.unit.data[u].end))
		return;
	uint32_t lo = LOWER_BOUND(0, (uint32_t)v->claim.unit.len, mid,
				  v->claim.unit.data[mid].old <= row.addr);
	row.cu = cu;
	row.optional = true;
	row.flags &= ICF_VROW_STMT; /* prologue and epilogue are at the row's own place */
	for (; lo < v->claim.unit.len && v->claim.unit.data[lo].old < next; lo++) {
		const struct icf_vunit *x = &v->claim.unit.data[lo];
		row.unit = lo;
		row.addr = x->body;
		if (!is_gone(x, d->policy == DWR_FOLDED_ALIAS))
			icf_vrows_add(&s->edge, &row);
		if (icf_vlines_grouped(v, lo))
			icf_vrows_keep(d, &d->group, row);
	}
}

/* Computes the required image of ROW, which ends a sequence of IN.  libdw sometimes takes an empty
 * row at an end for the end itself, and vice versa. */
static void expect_end(struct icf_vdebug *d, struct sorting *s, struct icf_vrow row)
{
	const struct icf_v *v = d->v;
	uint64_t va = row.addr;
	uint32_t last = icf_v_find_end(&v->claim, va);
	if (last == ICF_V_NONE)
		return;
	const struct icf_vunit *x = &v->claim.unit.data[last];
	row.flags &= ~(unsigned)ICF_VROW_END;
	row.unit = last;
	row.addr = x->body + (va - x->old);
	row.optional = true;
	if (va == x->end && !is_gone(x, d->policy == DWR_FOLDED_ALIAS))
		icf_vrows_add(&s->edge, &row);
	row.used = true; /* an end */
	if (icf_vlines_grouped(v, last))
		icf_vrows_keep(d, &d->group, row);
}

/* Computes the required image of each row of IN: in code, or at the end of the last function. */
static void expect_rows(struct icf_vdebug *d, uint64_t cu, struct sorting *s)
{
	const struct icf_v *v = d->v;
	bool alias = d->policy == DWR_FOLDED_ALIAS;
	for (size_t i = 0; i < s->in.v.len; i++) {
		struct icf_vrow row = s->in.v.data[i];
		uint64_t va = row.addr;
		row.cu = cu;
		reach_over(d, cu, s, i);
		if (row.flags & ICF_VROW_END) {
			expect_end(d, s, row);
			continue;
		}
		uint32_t u = icf_v_find(&v->claim, va), prev = icf_v_find_end(&v->claim, va);
		if (prev == ICF_V_NONE && !icf_v_in_exec(&v->claim, va))
			continue;
		d->log->checked[ICF_VC_LINE]++;
		const struct icf_vunit *p = prev != ICF_V_NONE ? &v->claim.unit.data[prev] : NULL;
		bool prev_gone = p && is_gone(p, alias);
		/* At its very end, without code of its own: a folded unit may have the row in its
		 * sequence. */
		if (p && prev != u && icf_vlines_grouped(v, prev) && !row.alone) {
			struct icf_vrow last = row;
			last.addr = p->body + (va - p->old);
			last.unit = prev;
			last.optional = true;
			icf_vrows_keep(d, &d->group, last);
		}
		if (u == ICF_V_NONE || (row.empty && p && prev != u)) {
			if (!p || prev_gone)
				continue;
			row.addr = p->body + (va - p->old);
			row.unit = prev;
			row.optional = true; /* it does not describe any code */
			icf_vrows_add(&s->edge, &row);
			continue;
		}
		const struct icf_vunit *x = &v->claim.unit.data[u];
		const bool gone = is_gone(x, alias);
		row.addr = x->body + (va - x->old);
		row.unit = u;
		s->in.v.data[i].unit = u;
		if (!icf_vplace_add(&d->place, u, va - x->old, ICF_VP_ROW))
			s->want.nomem = true;
		if (icf_vlines_grouped(v, u) && !row.alone) {
			row.optional = prev != u && p && !s->in.told;
			icf_vrows_keep(d, &d->group, row);
			row.optional = false;
		}
		if (va > x->old && !gone)
			icf_vrows_add(&s->want, &row);
		if (va > x->old)
			continue;
		row.alt = p && !s->in.told ? p->body + (va - p->old) : 0;
		row.optional = gone || (prev_gone && row.alt);
		if (row.optional && !row.alt)
			continue;
		icf_vrows_add(&s->edge, &row);
	}
}

static void push_end(struct sorting *s, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&s->end);
	if (slot)
		*slot = va;
	s->in.nomem |= !slot;
}

/* Where sequences of OUT may end because those of IN do. */
static void find_ends(const struct icf_v *v, struct sorting *s)
{
	s->ends_known = true;
	for (size_t i = 0; i < s->in.v.len; i++) {
		const struct icf_vrow *r = &s->in.v.data[i];
		if (!(r->flags & ICF_VROW_END))
			continue;
		const uint32_t last = icf_v_find_end(&v->claim, r->addr);
		if (last != ICF_V_NONE)
			push_end(s, v->claim.unit.data[last].body +
					    (r->addr - v->claim.unit.data[last].old));
		/* A sequence that is only an end ends nothing: it is at a place. */
		uint64_t place;
		if ((i == 0 || (r[-1].flags & ICF_VROW_END)) &&
		    icf_v_code(&v->claim, r->addr, &place))
			push_end(s, place);
	}
	if (s->end.len)
		qsort(s->end.data, s->end.len, sizeof *s->end.data, elfrw_u64_order);
}

/* A sequence of OUT must end where one of IN does, or where a unit or a thunk ends. */
static bool is_end(const struct icf_v *v, struct sorting *s, uint64_t va)
{
	uint32_t u = icf_v_find_new(&v->claim, va - 1), t = icf_v_find_thunk(&v->claim, va - 1);
	if (u != ICF_V_NONE ? va == v->claim.unit.data[u].body + (v->claim.unit.data[u].end -
								  v->claim.unit.data[u].old)
			    : t != ICF_V_NONE && va == v->claim.unit.data[t].entry +
								 v->claim.unit.data[t].thunk)
		return true;
	if (!s->ends_known)
		find_ends(v, s);
	return s->end.len && bsearch(&va, s->end.data, s->end.len, sizeof va, elfrw_u64_order);
}

/* The end of a sequence must repeat the row before it, or the empty row there. */
static bool end_says(const struct icf_v *v, const struct sorting *s, const struct icf_vrow *r)
{
	uint32_t u = icf_v_find_new(&v->claim, r->addr - 1);
	if (u == ICF_V_NONE)
		return true;
	uint64_t old = v->claim.unit.data[u].old + (r->addr - v->claim.unit.data[u].body);
	size_t lo = LOWER_BOUND(0, s->in.v.len, mid, s->in.v.data[mid].addr <= old);
	/* All rows at the place, and the last one before it. */
	while (lo--) {
		const struct icf_vrow *w = &s->in.v.data[lo];
		if (w->line == r->line && w->col == r->col && strcmp(w->file, r->file) == 0)
			return true;
		if (w->addr < old)
			return false;
	}
	return true;
}

static bool same_line(const struct icf_vrow *a, const struct icf_vrow *b)
{
	return a->line == b->line && a->col == b->col && strcmp(a->file, b->file) == 0;
}

/* Does each sequence of OUT cover something?  Not if sequences of IN do not. */
static void check_empty(struct icf_vdebug *d, uint64_t cu, const struct sorting *s)
{
	size_t in = 0, out = 0;
	uint64_t addr;
	bool any = icf_vrows_next_empty(&s->in, &in, &addr);
	while (d->policy != DWR_FOLDED_ALIAS && icf_vrows_next_empty(&s->out, &out, &addr)) {
		uint32_t t = icf_v_find_thunk(&d->v->claim, addr);
		if (!icf_v_out_exec(&d->v->claim, addr) ||
		    (any && (t == ICF_V_NONE || d->v->claim.unit.data[t].entry != addr)))
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LINE,
			"end: unit 0x%llx: expected a sequence that covers code, found none from 0x%llx on",
			ICF_VX(cu), ICF_VX(addr));
	}
}

/* The end ROW of a sequence of OUT. */
static void check_end(struct icf_vdebug *d, uint64_t cu, struct sorting *s,
		      const struct icf_vrow *row)
{
	const struct icf_v *v = d->v;
	char text[400];
	/* Its rows are compared. */
	if (row->alone || !icf_v_out_exec(&v->claim, row->addr - 1))
		return;
	if (!is_end(v, s, row->addr))
		icf_vlog_bad(
			d->log, ICF_VC_LINE,
			"end: unit 0x%llx: expected sequences to end with their functions, found %s",
			ICF_VX(cu), icf_vrow_show(row, text));
	else if (d->policy != DWR_FOLDED_ALIAS && !end_says(v, s, row))
		icf_vlog_bad(d->log, ICF_VC_LINE,
			     "end: unit 0x%llx: expected the line of the row before, found %s",
			     ICF_VX(cu), icf_vrow_show(row, text));
}

/* Sorts the rows of OUT into those inside of units, at their starts, and in thunks. */
static void sort_rows(struct icf_vdebug *d, uint64_t cu, struct sorting *s)
{
	const struct icf_v *v = d->v;
	char text[400], name[200];
	uint32_t u = ICF_V_NONE;
	for (size_t i = 0; i < s->out.v.len; i++) {
		struct icf_vrow row = s->out.v.data[i];
		if (row.flags & ICF_VROW_END) {
			check_end(d, cu, s, &row);
			continue;
		}
		/* Mostly in the unit of the row before; a unit is in code. */
		if (u == ICF_V_NONE ||
		    row.addr - v->claim.unit.data[u].body >=
			    v->claim.unit.data[u].end - v->claim.unit.data[u].old) {
			if (!icf_v_out_exec(&v->claim, row.addr))
				continue;
			u = icf_v_find_new(&v->claim, row.addr);
		}
		if (u != ICF_V_NONE) {
			row.unit = u;
			icf_vrows_add(row.addr > v->claim.unit.data[u].body ? &s->have : &s->bag,
				      &row);
			continue;
		}
		uint32_t t = icf_v_find_thunk(&v->claim, row.addr);
		if (t == ICF_V_NONE) {
			icf_vrows_add(&s->bag, &row);
			continue;
		}
		/* A thunk shows the first line of its function. */
		const struct icf_vrow *first = in_force(&s->in, v->claim.unit.data[t].old, false);
		bool ok = first && same_line(first, &row);
		for (size_t k = 0; k < s->in.v.len && !ok; k++) {
			const struct icf_vrow *x = &s->in.v.data[k];
			ok = x->addr == v->claim.unit.data[t].old &&
			     (s->in.told ? x->first : !x->empty) && same_line(x, &row);
		}
		/* Or it ends what lies before the first thunk. */
		if (!ok && icf_v_find_new(&v->claim, row.addr - 1) != ICF_V_NONE)
			icf_vrows_add(&s->bag, &row);
		else if (!ok)
			icf_vlog_bad(
				d->log, ICF_VC_LINE,
				"row: unit 0x%llx, thunk of %s: expected the line that it begins with, found %s",
				ICF_VX(cu), icf_v_where(&v->claim, v->claim.unit.data[t].old, name),
				icf_vrow_show(&row, text));
	}
}

/* Is ADDR in code of IN, or at the end of code?  *NEAR: where such an address was last. */
static bool touches_in(const struct icf_v *v, uint64_t addr, const struct icf_vexec **near)
{
	const struct icf_vexec *e = *near;
	if (e && addr > e->old && addr < e->old_end)
		return true;
	uint64_t at = icf_v_in_exec(&v->claim, addr) ? addr : addr - 1;
	if (!icf_v_in_exec(&v->claim, at))
		return false;
	*near = &v->claim.exec.data[LOWER_BOUND(0, v->claim.exec.len, mid,
						v->claim.exec.data[mid].old_end <= at)];
	return true;
}

/* The same for OUT. */
static bool touches_out(const struct icf_v *v, uint64_t addr, const struct icf_vexec **near)
{
	if (*near && addr > (*near)->new &&addr < (*near)->new_end)
		return true;
	const struct icf_vexec *e = icf_v_out_exec(&v->claim, addr);
	if (!e)
		e = icf_v_out_exec(&v->claim, addr - 1);
	*near = e ? e : *near;
	return e != NULL;
}

/* Rows of code that the linker left out mean nothing, and must not change. */
static void compare_dead(struct icf_vdebug *d, uint64_t cu, struct sorting *s)
{
	const struct icf_vexec *in = NULL, *out = NULL;
	char x[400], y[400];
	size_t i = 0, k = 0;
	for (;;) {
		while (i < s->in.v.len && touches_in(d->v, s->in.v.data[i].addr, &in))
			i++;
		while (k < s->out.v.len && touches_out(d->v, s->out.v.data[k].addr, &out))
			k++;
		const struct icf_vrow *a = i < s->in.v.len ? &s->in.v.data[i] : NULL,
				      *b = k < s->out.v.len ? &s->out.v.data[k] : NULL;
		if (!a && !b)
			return;
		if (!a || !b || a->addr != b->addr || icf_vrow_cmp(a, b)) {
			icf_vlog_bad(d->log, ICF_VC_LINE,
				     "row: unit 0x%llx, outside of the code: expected %s, found %s",
				     ICF_VX(cu), a ? icf_vrow_show(a, x) : "none",
				     b ? icf_vrow_show(b, y) : "none");
			return;
		}
		i++;
		k++;
	}
}

static void compare_edges(struct icf_vdebug *d, uint64_t cu, struct sorting *s)
{
	char x[400];
	icf_vrows_sort(&s->bag, icf_vrow_by_all);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < s->edge.v.len; i++) {
			struct icf_vrow *w = &s->edge.v.data[i];
			if (w->optional != pass || take(&s->bag, w, w->addr) ||
			    (w->alt && take(&s->bag, w, w->alt)))
				continue;
			if (!w->optional)
				icf_vlog_bad(
					d->log, ICF_VC_LINE,
					"row: unit 0x%llx: expected %s at the start or end of a function, found none",
					ICF_VX(cu), icf_vrow_show(w, x));
		}
	for (size_t i = 0; i < s->bag.v.len; i++)
		if (!s->bag.v.data[i].used)
			icf_vlog_bad(
				d->log, ICF_VC_LINE,
				"row: unit 0x%llx: expected none at the start or end of a function, found %s",
				ICF_VX(cu), icf_vrow_show(&s->bag.v.data[i], x));
}

/* Compares the row in force at both ends of each kept unit of the table. */
static void compare_ends(struct icf_vdebug *d, uint64_t cu, struct sorting *s)
{
	const struct icf_v *v = d->v;
	char x[400], y[400], name[200];
	for (size_t i = 0; i < s->in.v.len && d->policy != DWR_FOLDED_ALIAS; i++) {
		uint32_t u = s->in.v.data[i].unit;
		if (u == ICF_V_NONE || (v->claim.unit.data[u].flags & ICF_V_FOLDED) ||
		    (i && s->in.v.data[i - 1].unit == u))
			continue;
		const struct icf_vunit *t = &v->claim.unit.data[u];
		for (int end = 0; end < 2; end++) {
			uint64_t off = end ? t->end - t->old - 1 : 0;
			const struct icf_vrow *p = in_force(&s->in, t->old + off, false),
					      *q = in_force(&s->out, t->body + off, false),
					      *seems = in_force(&s->out, t->body + off, true);
			/* A row of the code before need not reach here in OUT.  A row that only
			 * ends here must not seem to. */
			if (!p || p->addr < t->old ||
			    (q && seems && !icf_vrow_cmp(p, q) && !icf_vrow_cmp(p, seems)))
				continue;
			icf_vlog_bad(
				d->log, ICF_VC_LINE,
				"line: unit 0x%llx, %s of %s (-> 0x%llx): expected %s, found %s",
				ICF_VX(cu), end ? "end" : "start",
				icf_v_where(&v->claim, t->old, name), ICF_VX(t->body + off),
				icf_vrow_show(p, x), seems ? icf_vrow_show(seems, y) : "none");
		}
	}
}

static void set_comp_dir(struct icf_vdebug *d, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	d->comp_dir = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attr));
}

/* The memory is reused from unit to unit: allocating it again costs more than the comparison. */
static struct sorting *scratch(struct icf_vdebug *d)
{
	struct sorting *s = d->rows ? d->rows : calloc(1, sizeof *s);
	d->rows = s;
	if (s) {
		s->end.len = 0;
		s->ends_known = false;
		s->in.v.len = s->out.v.len = s->want.v.len = s->have.v.len = s->edge.v.len =
			s->bag.v.len = 0;
	}
	return s;
}

void icf_vd_lines_deinit(struct icf_vdebug *d)
{
	struct sorting *s = d->rows;
	if (!s)
		return;
	VEC_FREE(&s->in.v);
	VEC_FREE(&s->in.hollow);
	VEC_FREE(&s->out.v);
	VEC_FREE(&s->out.hollow);
	VEC_FREE(&s->want.v);
	VEC_FREE(&s->have.v);
	VEC_FREE(&s->edge.v);
	VEC_FREE(&s->bag.v);
	VEC_FREE(&s->end);
	free(s);
	d->rows = NULL;
}

/* Did a unit of this part have the same tables, or this much of them?  File names may begin with
 * the unit's directory.  Of several units' directories the first counts, as for libdw, which reads
 * a table once. */
enum much { HEADER, NAKED, DIRECTORY };
static bool lines_seen(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, enum much much)
{
	Dwarf_Attribute attr;
	Dwarf_Word from, to;
	if (dwarf_formudata(dwarf_attr(a, DW_AT_stmt_list, &attr), &from) ||
	    dwarf_formudata(dwarf_attr(b, DW_AT_stmt_list, &attr), &to))
		return false;
	for (uint64_t m = much; m <= DIRECTORY; m++)
		if (icf_vseen(d, &(struct icf_vkey){ { ICF_VSEEN_LINES, from, to, m } }))
			return true;
	icf_vseen_add(d, &(struct icf_vkey){ { ICF_VSEEN_LINES, from, to, much } });
	return false;
}

/* Compares the rows of OUT's unit B with those that are expected. */
static void compare_tables(struct icf_vdebug *d, uint64_t cu, struct sorting *s, Dwarf_Die *b)
{
	if (!icf_vrows_read(d->v, &d->out, b, &s->out)) {
		icf_vlog_bad(d->log, ICF_VC_LINE,
			     "table: unit 0x%llx: expected one that libdw reads, found: %s",
			     ICF_VX(cu), dwarf_errmsg(-1));
		return;
	}
	icf_vrows_check_lengths(d, cu, &s->in, &s->out);
	check_empty(d, cu, s);
	sort_rows(d, cu, s);
	compare(d, cu, &s->want, &s->have);
	compare_edges(d, cu, s);
	if (d->policy != DWR_FOLDED_DROP)
		compare_dead(d, cu, s);
	compare_ends(d, cu, s);
}

/* If the table only moved, keeps its rows, and is done with it. */
static bool keep_moved(struct icf_vdebug *d, uint64_t cu, Dwarf_Die *a, Dwarf_Die *b)
{
	Dwarf_Attribute attr;
	Dwarf_Word from, to;
	if (dwarf_formudata(dwarf_attr(a, DW_AT_stmt_list, &attr), &from) ||
	    dwarf_formudata(dwarf_attr(b, DW_AT_stmt_list, &attr), &to) ||
	    !icf_vd_lines_moved(d, from, to))
		return false;
	icf_vd_line_header(d, cu, a, b);
	icf_vd_lines_keep_moved(d, cu, from);
	return true;
}

struct elfrw_err *icf_vd_lines(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	set_comp_dir(d, a);
	uint64_t cu = (uint64_t)dwarf_dieoffset(a);
	/* A type unit shares the table of its compilation unit for the names of files; libdw would
	 * read it for each. */
	int tag = dwarf_tag(a);
	if (tag == DW_TAG_type_unit) {
		if (!lines_seen(d, a, b, HEADER))
			icf_vd_line_header(d, cu, a, b);
		return d->log->nomem ? &elfrw_err_nomem : NULL;
	}
	struct sorting *s = scratch(d);
	if (!s)
		return &elfrw_err_nomem;
	if (lines_seen(d, a, b, d->comp_dir ? DIRECTORY : NAKED))
		return d->log->nomem ? &elfrw_err_nomem : NULL;
	if (!keep_moved(d, cu, a, b) && icf_vrows_read(d->v, &d->in, a, &s->in)) {
		icf_vd_line_header(d, cu, a, b);
		expect_rows(d, cu, s);
		compare_tables(d, cu, s, b);
	}
	bool nomem = s->in.nomem || s->out.nomem || s->want.nomem || s->have.nomem ||
		     s->edge.nomem || s->bag.nomem || d->group.nomem;
	return nomem ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *icf_vd_artificial_lines(struct icf_vdebug *d, Dwarf_Die *b)
{
	struct icf_vrows rows = { 0 };
	set_comp_dir(d, b);
	if (!icf_vrows_read(d->v, &d->out, b, &rows))
		icf_vlog_bad(d->log, ICF_VC_FOLDED_LINE,
			     "table: artificial unit: expected one that libdw reads, found: %s",
			     dwarf_errmsg(-1));
	icf_vrows_check_lengths(d, (uint64_t)dwarf_dieoffset(b), NULL, &rows);
	icf_vrows_keep_all(d, &d->artificial, &rows);
	bool nomem = rows.nomem || d->artificial.nomem;
	VEC_FREE(&rows.v);
	VEC_FREE(&rows.hollow);
	return nomem ? &elfrw_err_nomem : NULL;
}
