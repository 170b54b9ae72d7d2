/* line.c: the rows of the line tables, as libdw decodes them.
 *
 * Every row of the input inside a kept unit must be in the output, at the mapped address, and no
 * others.  libdw sorts the rows of all sequences by address, so a row at the boundary of two units
 * may belong to the end of the one or the start of the other: those are compared as sets, with both
 * places allowed, and the row in force at the first and last byte of every kept unit is compared
 * besides.  The rows of folded units are kept aside: those that name other places than the kept
 * unit's must be in the artificial unit. */
#include "tests/judges/judge.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
	uint64_t addr, alt; /* ALT: another place that is right too, or 0 */
	const char *file;   /* owned by libdw */
	int line, col;
	unsigned flags, isa, disc;
	uint32_t unit, cu; /* CU: number of the table */
	uint32_t order;
	bool optional, used;
};

enum { F_STMT = 1, F_BLOCK = 2, F_PROLOGUE = 4, F_EPILOGUE = 8, F_END = 16 };

struct rows {
	struct row *v;
	size_t n, cap;
};

struct jlines {
	struct rows
		group; /* rows of units that are in a group, kept or folded; addr: in the output */
	struct rows artificial;
	uint32_t n_cu;
};

static void add(struct rows *s, struct row r)
{
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 64;
		s->v = realloc(s->v, s->cap * sizeof(r));
		if (!s->v)
			abort();
	}
	r.order = (uint32_t)s->n;
	s->v[s->n++] = r;
}

/* All rows in libdw's order; false: there is no table. */
static bool read_rows(Dwarf_Die *cu, struct rows *ret)
{
	Dwarf_Lines *lines;
	size_t n;

	if (dwarf_getsrclines(cu, &lines, &n))
		return false;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i);
		struct row r = { .unit = JNONE };
		bool f = false;
		Dwarf_Addr addr = 0;

		dwarf_lineaddr(l, &addr);
		r.addr = addr;
		r.file = dwarf_linesrc(l, NULL, NULL);
		if (!r.file)
			r.file = "??";
		dwarf_lineno(l, &r.line);
		dwarf_linecol(l, &r.col);
		if (!dwarf_linebeginstatement(l, &f) && f)
			r.flags |= F_STMT;
		if (!dwarf_lineblock(l, &f) && f)
			r.flags |= F_BLOCK;
		if (!dwarf_lineprologueend(l, &f) && f)
			r.flags |= F_PROLOGUE;
		if (!dwarf_lineepiloguebegin(l, &f) && f)
			r.flags |= F_EPILOGUE;
		if (!dwarf_lineendsequence(l, &f) && f)
			r.flags |= F_END;
		/* libdw sorts an end before the rows at its address, and makes whatever comes last
		 * in the unit an end: after a row of this address it was none, after an end it may
		 * have been none. */
		if ((r.flags & F_END) && i + 1 == n && ret->n && ret->v[ret->n - 1].addr == addr) {
			r.flags &= ~(unsigned)F_END;
			r.optional = ret->v[ret->n - 1].flags & F_END;
		}
		dwarf_lineisa(l, &r.isa);
		dwarf_linediscriminator(l, &r.disc);
		add(ret, r);
	}
	return true;
}

/* File names are the same when they are equal, or when one is the other's tail: libdw does not join
 * every relative name with the compilation directory. */
static int file_cmp(const char *a, const char *b)
{
	size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;
	bool relative = (na < nb ? a : b)[0] != '/';

	if (na != nb && relative && !strcmp(a + na - n, b + nb - n) &&
	    (na < nb ? b[nb - n - 1] : a[na - n - 1]) == '/')
		return 0;
	return strcmp(a, b);
}

/* Compares all but the address. */
static int row_cmp(const struct row *a, const struct row *b)
{
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->col != b->col)
		return a->col < b->col ? -1 : 1;
	if (a->flags != b->flags)
		return a->flags < b->flags ? -1 : 1;
	if (a->disc != b->disc)
		return a->disc < b->disc ? -1 : 1;
	if (a->isa != b->isa)
		return a->isa < b->isa ? -1 : 1;
	return a->file == b->file ? 0 : file_cmp(a->file, b->file);
}

static int by_all(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return row_cmp(a, b);
}

static int by_addr(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static int by_unit(const void *pa, const void *pb)
{
	const struct row *a = pa, *b = pb;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->cu != b->cu)
		return a->cu < b->cu ? -1 : 1;
	return by_all(pa, pb);
}

static void sort(struct rows *s, int (*cmp)(const void *, const void *))
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), cmp);
}

static const char *base_name(const char *file)
{
	const char *slash = strrchr(file, '/');

	return slash ? slash + 1 : file;
}

static const char *show(const struct row *r, char *buf, size_t size)
{
	snprintf(buf, size, "%#" PRIx64 " %s:%d:%d%s%s%s%s disc %u", r->addr, r->file, r->line,
		 r->col, r->flags & F_STMT ? " stmt" : "", r->flags & F_BLOCK ? " block" : "",
		 r->flags & F_PROLOGUE ? " prologue_end" : "",
		 r->flags & F_EPILOGUE ? " epilogue_begin" : "", r->disc);
	return buf;
}

/* Takes an unused row equal to WANT, at ADDR, out of BAG (sorted by_all). */
static bool take(struct rows *bag, const struct row *want, uint64_t addr)
{
	struct row key = *want;
	size_t lo = 0, hi = bag->n;

	key.addr = addr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (by_all(&bag->v[mid], &key) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < bag->n && !by_all(&bag->v[lo], &key); lo++)
		if (!bag->v[lo].used)
			return bag->v[lo].used = true;
	return false;
}

/* Last row at or before ADDR in libdw's order, as dwarf_getsrc_die finds it; NULL: the address is
 * not covered. */
static const struct row *in_force(const struct rows *s, uint64_t addr)
{
	size_t lo = 0, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo && !(s->v[lo - 1].flags & F_END) ? &s->v[lo - 1] : NULL;
}

/* Does R only repeat, right behind a function, the row of its last byte?  Where the next function
 * begins there, the output need not have it: libdw would take it for that one's. */
static bool repeats(const struct rows *s, const struct row *r, uint64_t va)
{
	const struct row *last = va ? in_force(s, va - 1) : NULL;

	return last && !(r->flags & F_STMT) && last->line == r->line && last->col == r->col &&
	       !file_cmp(last->file, r->file);
}

static void compare_strict(struct judge *j, uint64_t cu, struct rows *want, struct rows *have)
{
	char x[600], y[600];

	sort(want, j->policy == J_ALIAS ? by_all : by_addr);
	sort(have, j->policy == J_ALIAS ? by_all : by_addr);
	for (size_t i = 0, k = 0; i < want->n || k < have->n;) {
		struct row *w = i < want->n ? &want->v[i] : NULL,
			   *h = k < have->n ? &have->v[k] : NULL;

		if (w && h && w->addr == h->addr && !row_cmp(w, h)) {
			i++;
			k++;
		} else if (w && h && w->addr == h->addr) {
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": row %s should be %s", cu,
				    show(h, x, sizeof(x)), show(w, y, sizeof(y)));
			i++;
			k++;
		} else if (w && (!h || w->addr < h->addr)) {
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": row %s is missing", cu,
				    show(w, x, sizeof(x)));
			i++;
		} else {
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": row %s is not expected", cu,
				    show(h, x, sizeof(x)));
			k++;
		}
	}
}

static struct jlines *state(struct judge *j)
{
	if (!j->folded_rows && !(j->folded_rows = calloc(1, sizeof(*j->folded_rows))))
		abort();
	return j->folded_rows;
}

/* Is the unit the kept one of a group, or folded? */
static bool in_group(const struct jmap *m, uint32_t u)
{
	if (m->unit[u].folded)
		return true;
	/* A group's kept unit was marked when the map was read. */
	return m->unit[u].has_folded;
}

void judge_lines(struct judge *j, Dwarf_Die *a, Dwarf_Die *b)
{
	const struct jmap *m = &j->map;
	struct rows in = { 0 }, out = { 0 }, want = { 0 }, have = { 0 }, edge = { 0 }, bag = { 0 };
	uint64_t cu = dwarf_dieoffset(a), r;
	char x[600], y[600];

	if (!read_rows(a, &in))
		goto out;
	if (!read_rows(b, &out)) {
		judge_wrong(j, J_LINE,
			    "unit %#" PRIx64 ": the output's line table is unreadable: %s", cu,
			    dwarf_errmsg(-1));
		goto out;
	}
	state(j)->n_cu++;
	for (size_t i = 0; i < in.n; i++) {
		struct row row = in.v[i];
		uint64_t va = row.addr;
		uint32_t u = jmap_find(m, va), prev = va ? jmap_find(m, va - 1) : JNONE;

		if ((row.flags & F_END) || !jmap_exec_in(m, va))
			continue;
		j->n_rows++;
		row.cu = state(j)->n_cu;
		if (prev != JNONE && prev != u && m->unit[prev].folded) {
			/* It may be an empty row at the end of a folded function. */
			struct row last = row;

			jmap_end(m, va, &last.addr);
			last.unit = prev;
			last.optional = true;
			add(&state(j)->group, last);
		}
		if (u == JNONE) {
			if (prev == JNONE || (m->unit[prev].folded && j->policy != J_ALIAS))
				continue;
			jmap_end(m, va, &row.addr);
			row.unit = prev;
			add(&edge, row); /* its own mark "optional" stays */
			continue;
		}
		row.addr = m->unit[u].new + (va - m->unit[u].old);
		row.unit = u;
		in.v[i].unit = u;
		if (in_group(m, u)) {
			add(&state(j)->group, row);
			if (prev != u && prev != JNONE)
				state(j)->group.v[state(j)->group.n - 1].optional = true;
		}
		if (va > m->unit[u].old && i && in.v[i - 1].addr < m->unit[u].old &&
		    !(in.v[i - 1].flags & F_END)) {
			/* Its first bytes have the row of what lies before: that may be repeated at
			 * its start. */
			struct row carried = in.v[i - 1];

			carried.addr = m->unit[u].new;
			carried.unit = u;
			carried.cu = row.cu;
			carried.optional = true;
			if (in_group(m, u))
				add(&state(j)->group, carried);
			if (!m->unit[u].folded || j->policy == J_ALIAS)
				add(&edge, carried);
		}
		if (va > m->unit[u].old) {
			if (!m->unit[u].folded || j->policy == J_ALIAS)
				add(&want, row);
			continue;
		}
		row.alt = prev != JNONE && jmap_end(m, va, &r) ? r : 0;
		row.optional = row.optional || (m->unit[u].folded && j->policy != J_ALIAS) ||
			       (prev != JNONE && m->unit[prev].folded && j->policy != J_ALIAS);
		if (row.optional && !row.alt)
			continue;
		add(&edge, row);
	}
	for (size_t i = 0; i < out.n; i++) {
		struct row row = out.v[i];
		uint32_t u = jmap_find_new(m, row.addr);

		if ((row.flags & F_END) || !jmap_exec_out(m, row.addr))
			continue;
		if (u == JNONE) {
			uint32_t t = jmap_find_thunk(m, row.addr);
			bool ok = false;

			if (t == JNONE) {
				add(&bag, row);
				continue;
			}
			/* A thunk shows the line that its function begins with. */
			for (size_t k = 0; k < in.n && !ok; k++)
				ok = in.v[k].addr == m->unit[t].old && in.v[k].line == row.line &&
				     !file_cmp(in.v[k].file, row.file);
			/* An empty row at the end of the function before. */
			if (!ok && row.addr == m->unit[t].thunk)
				add(&bag, row);
			else if (!ok)
				judge_wrong(
					j, J_LINE,
					"unit %#" PRIx64
					": row %s is in the thunk of %s, which has no such line",
					cu, show(&row, x, sizeof(x)), m->unit[t].name);
			continue;
		}
		row.unit = u;
		add(row.addr > m->unit[u].new ? &have : &bag, row);
	}
	compare_strict(j, cu, &want, &have);

	sort(&bag, by_all);
	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < edge.n; i++) {
			struct row *w = &edge.v[i];

			if (w->optional != pass || take(&bag, w, w->addr) ||
			    (w->alt && take(&bag, w, w->alt)))
				continue;
			if (!w->optional && !(w->alt && repeats(&in, w, m->unit[w->unit].old)))
				judge_wrong(
					j, J_LINE,
					"unit %#" PRIx64
					": row %s (at the start or end of a function) is missing",
					cu, show(w, x, sizeof(x)));
		}
	for (size_t i = 0; i < bag.n; i++)
		if (!bag.v[i].used && !bag.v[i].optional)
			judge_wrong(j, J_LINE,
				    "unit %#" PRIx64
				    ": row %s (at the start or end of a function) is not expected",
				    cu, show(&bag.v[i], x, sizeof(x)));

	/* The row in force at both ends of each kept unit that the table speaks of. */
	for (size_t i = 0; i < in.n && j->policy != J_ALIAS; i++) {
		uint32_t u = in.v[i].unit;

		if (u == JNONE || m->unit[u].folded || (i && in.v[i - 1].unit == u))
			continue;
		for (int end = 0; end < 2; end++) {
			uint64_t off = end ? m->unit[u].size - 1 : 0;
			const struct row *p = in_force(&in, m->unit[u].old + off),
					 *q = in_force(&out, m->unit[u].new + off);

			if (p && p->addr < m->unit[u].old)
				p = NULL; /* a row of what lies before: it need not reach here in
					     the output */
			if (p && p->addr == m->unit[u].old && (!q || row_cmp(p, q)))
				while (p && repeats(&in, p, m->unit[u].old))
					p = p > in.v && p[-1].addr == p->addr &&
							    !(p[-1].flags & F_END)
						    ? p - 1
						    : NULL;
			if (!p || (q && !row_cmp(p, q)))
				continue;
			judge_wrong(j, J_LINE,
				    "unit %#" PRIx64 ": at the %s of %s, %#" PRIx64
				    ", the line is %s, it should be %s",
				    cu, end ? "end" : "start", m->unit[u].name,
				    m->unit[u].new + off, q ? show(q, x, sizeof(x)) : "none",
				    show(p, y, sizeof(y)));
		}
	}
out:
	free(in.v);
	free(out.v);
	free(want.v);
	free(have.v);
	free(edge.v);
	free(bag.v);
}

void judge_folded_lines(struct judge *j, Dwarf_Die *b)
{
	struct jlines *s = state(j);

	read_rows(b, &s->artificial);
}

static bool same_place(const struct row *a, const struct row *b)
{
	return a->addr == b->addr && a->line == b->line && a->col == b->col &&
	       !file_cmp(a->file, b->file);
}

/* A function as one table has it: rows [FROM, TO) of the group's rows. */
struct copy {
	size_t from, to;
};

/* The copy of unit U that begins at or after row AT; false: there are no more. */
static bool next_copy(const struct rows *s, uint32_t u, struct copy *c)
{
	size_t lo = c->to, hi = s->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (s->v[mid].unit < u)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == s->n || s->v[lo].unit != u)
		return false;
	c->from = lo;
	for (c->to = lo + 1; c->to < s->n && s->v[c->to].unit == u && s->v[c->to].cu == s->v[lo].cu;
	     c->to++)
		;
	return true;
}

static bool names_all(const struct rows *s, struct copy a, struct copy b)
{
	for (size_t i = a.from; i < a.to; i++) {
		size_t k = b.from;

		while (k < b.to && !same_place(&s->v[i], &s->v[k]))
			k++;
		if (k == b.to && !s->v[i].optional)
			return false;
	}
	return true;
}

/* Is a folded unit's line information kept?  It is when, of the tables that have the unit (a COMDAT
 * function that was dropped may lie on the one that was not), one names the places that the kept
 * unit's rows name, at the same offsets, or is whole in the artificial unit.  Else *LOST is a row
 * that is missing. */
static bool lines_kept(const struct jlines *s, uint32_t u, uint32_t kept, const struct row **lost)
{
	*lost = NULL;
	for (struct copy a = { 0 }; next_copy(&s->group, u, &a);) {
		const struct row *missing = NULL;

		for (struct copy b = { 0 }; next_copy(&s->group, kept, &b);)
			if (names_all(&s->group, a, b) && names_all(&s->group, b, a))
				return true;
		for (size_t i = a.from; i < a.to && !missing; i++)
			if (!s->group.v[i].optional &&
			    !bsearch(&s->group.v[i], s->artificial.v, s->artificial.n,
				     sizeof(struct row), by_all))
				missing = &s->group.v[i];
		if (!missing)
			return true;
		if (!*lost)
			*lost = missing;
	}
	return !*lost;
}

void judge_lines_done(struct judge *j)
{
	struct jlines *s = state(j);
	const struct jmap *m = &j->map;
	char x[600];
	struct rows all = { 0 };
	const struct row *lost;

	if (j->policy != J_OVERLAY)
		goto out;
	sort(&s->group, by_unit);
	sort(&s->artificial, by_all);
	for (size_t i = 0, e; i < s->group.n; i = e) {
		uint32_t u = s->group.v[i].unit;

		for (e = i + 1; e < s->group.n && s->group.v[e].unit == u; e++)
			;
		if (!m->unit[u].folded)
			continue;
		for (size_t k = i; k < e; k++)
			add(&all, s->group.v[k]);
		j->n_folded_rows += e - i;
		if (!m->unit[u].guessed && !lines_kept(s, u, m->unit[u].kept, &lost))
			judge_wrong(j, J_FOLDED_LINE,
				    "row %s of the folded %s is not in the artificial unit",
				    show(lost, x, sizeof(x)), m->unit[u].name);
	}
	sort(&all, by_all);
	for (size_t i = 0; i < s->artificial.n; i++) {
		const struct row *h = &s->artificial.v[i];

		/* The unit's own range is a byte that is no function's. */
		if (jmap_find_new(m, h->addr) == JNONE && jmap_find_thunk(m, h->addr) == JNONE &&
		    !strcmp(base_name(h->file), "<folded functions>"))
			continue;
		if (!(h->flags & F_END) && !bsearch(h, all.v, all.n, sizeof(*h), by_all))
			judge_wrong(j, J_FOLDED_LINE,
				    "row %s of the artificial unit is no folded function's",
				    show(h, x, sizeof(x)));
	}
out:
	free(all.v);
	free(s->group.v);
	free(s->artificial.v);
	free(s);
	j->folded_rows = NULL;
}
