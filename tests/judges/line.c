/* line.c: does each line table of the output say of each stretch of code what the input's says?
 *
 * A table is taken as what DWARF 5, section 6.2, says that it is: sequences of rows, each of which
 * holds from its address to the next row's.  So a table becomes a bag of facts, "these bytes of the
 * output have this row", cut where functions begin and end, the input's carried through the map.
 * The two bags must be the same.  A row that holds for no byte is a fact of its own; at the border
 * of two functions it may be at either's.  The facts of folded functions are kept: those that name
 * other places than the kept function's must be in the table of the artificial unit, and nothing
 * else may be there. */
#include "tests/judges/judge.h"
#include "tests/judges/table.h"
#include <dwarf.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* That the bytes [lo, hi) of the output have the row; lo == hi: that the row stands there. */
struct fact {
	uint64_t lo, hi, other; /* other: another place where it may stand, or 0 */
	struct jrow row;
	uint32_t unit, table;
	bool may; /* it need not be there */
	bool used;
};

struct facts {
	struct fact *v;
	size_t n, cap;
};

struct jlines {
	struct jpaths paths;
	struct facts folded; /* of all units that share their code, in the input */
	struct facts own;    /* of the artificial unit, in the output */
	struct facts seen;   /* tables that were compared: lo is the offset */
};

static struct fact *tell(struct facts *s, struct fact f)
{
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 64;
		s->v = realloc(s->v, s->cap * sizeof(f));
		if (!s->v)
			abort();
	}
	s->v[s->n] = f;
	return &s->v[s->n++];
}

static struct jlines *state(struct judge *j)
{
	if (!j->lines && !(j->lines = calloc(1, sizeof(*j->lines))))
		abort();
	return j->lines;
}

/* All but the address; -1, 0, 1. */
static int row_order(const struct jrow *a, const struct jrow *b)
{
	uint64_t x[] = { a->line, a->col, a->marks, a->disc, a->isa, a->path },
		 y[] = { b->line, b->col, b->marks, b->disc, b->isa, b->path };

	for (unsigned i = 0; i < sizeof(x) / sizeof(*x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

static int by_place(const void *pa, const void *pb)
{
	const struct fact *a = pa, *b = pb;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	return row_order(&a->row, &b->row);
}

static int by_function(const void *pa, const void *pb)
{
	const struct fact *a = pa, *b = pb;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->table != b->table)
		return a->table < b->table ? -1 : 1;
	return by_place(pa, pb);
}

static void sort(struct facts *s, int (*order)(const void *, const void *))
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), order);
}

/* Is one path the other's tail?  Not every table says what its relative names count from. */
static bool same_path(const struct jpaths *p, uint32_t a, uint32_t b)
{
	const char *x = p->text[a], *y = p->text[b];
	size_t n = strlen(x), m = strlen(y);

	if (a == b)
		return true;
	if (n < m) {
		const char *t = x;
		size_t k = n;

		x = y;
		y = t;
		n = m;
		m = k;
	}
	return *y != '/' && n > m && !strcmp(x + n - m, y) && x[n - m - 1] == '/';
}

static const char *show(const struct judge *j, const struct fact *f, char *buf, size_t size)
{
	snprintf(buf, size, "[%#" PRIx64 ",%#" PRIx64 ") %s:%u:%u marks %#x disc %u", f->lo, f->hi,
		 j->lines->paths.text[f->row.path], f->row.line, f->row.col, f->row.marks,
		 f->row.disc);
	return buf;
}

/* --- from tables to facts --- */

/* The facts of one table: of bytes, of rows inside of functions, of rows at their borders. */
struct bag {
	struct facts bytes, inside, border;
};

static void free_bag(struct bag *b)
{
	free(b->bytes.v);
	free(b->inside.v);
	free(b->border.v);
}

static bool shares(const struct junit *u)
{
	return u->folded || u->has_folded;
}

/* A row of the input that holds for [lo, hi), where functions are. */
static void hold(struct judge *j, struct bag *bag, const struct jrow *r, uint64_t hi,
		 uint32_t table)
{
	const struct jmap *m = &j->map;
	bool any = false;

	for (uint64_t lo = r->addr; lo < hi;) {
		uint32_t i = jmap_find(m, lo);

		if (i == JNONE) {
			/* Padding: to the next unit that ends behind it. */
			uint32_t a = 0, b = m->n;

			while (a < b) {
				uint32_t mid = a + (b - a) / 2;

				if (m->unit[mid].old <= lo)
					a = mid + 1;
				else
					b = mid;
			}
			lo = a < m->n && m->unit[a].old < hi ? m->unit[a].old : hi;
			continue;
		}
		const struct junit *u = &m->unit[i];
		uint64_t end = u->old + u->size < hi ? u->old + u->size : hi;
		struct fact f = { .lo = u->new + (lo - u->old),
				  .hi = u->new + (end - u->old),
				  .row = *r,
				  .unit = i,
				  .table = table,
				  .may = lo > r->addr };

		any = true;
		if (!u->folded || j->policy == J_ALIAS)
			tell(&bag->bytes, f);
		if (shares(u))
			tell(&j->lines->folded, f);
		lo = end;
	}
	uint64_t at;
	uint32_t before = any ? JNONE : jmap_find(m, r->addr - 1);

	/* Of padding alone: it may stand at the function's end. */
	if (before == JNONE || !jmap_end(m, r->addr, &at))
		return;
	struct fact f = {
		.lo = at, .hi = at, .row = *r, .unit = before, .table = table, .may = true
	};

	tell(&bag->border, f);
	if (shares(&m->unit[before]))
		tell(&j->lines->folded, f);
}

/* Does a function or a thunk begin there in the output? */
static bool begins(const struct jmap *m, uint64_t va)
{
	uint32_t u = jmap_find_new(m, va), t = jmap_find_thunk(m, va);

	return (u != JNONE && m->unit[u].new == va) || t != JNONE;
}

/* A row of the input that holds for nothing.  LAST: it stands where its sequence ends. */
static void stand(struct judge *j, struct bag *bag, const struct jrow *r, bool last, uint32_t table)
{
	const struct jmap *m = &j->map;
	uint32_t i = jmap_find(m, r->addr), k = r->addr ? jmap_find(m, r->addr - 1) : JNONE;
	struct fact f = { .row = *r, .table = table };
	bool alias = j->policy == J_ALIAS, gone = false;

	for (int end = 0; end < 2; end++) {
		uint32_t x = end ? k : i;

		if (x == JNONE || (end && k == i))
			continue;
		const struct junit *u = &m->unit[x];

		f.lo = f.hi = u->new + (r->addr - u->old);
		f.unit = x;
		f.may = i != k;
		if (shares(u))
			tell(&j->lines->folded, f);
	}
	if (i == k && i != JNONE) {
		if (!m->unit[i].folded || alias)
			tell(&bag->inside, f);
		return;
	}
	f.lo = f.hi = 0;
	for (int end = 0; end < 2; end++) {
		uint32_t x = end ? k : i;

		if (x == JNONE)
			continue;
		if (m->unit[x].folded && !alias) {
			gone = true;
			continue;
		}
		f.other = f.lo;
		f.lo = f.hi = m->unit[x].new + (r->addr - m->unit[x].old);
	}
	/* Where another function begins in the output, a row at the end would seem to be its. */
	f.may = gone || (last && k != JNONE && begins(m, f.lo));
	if (f.lo)
		tell(&bag->border, f);
}

static void facts_of_input(struct judge *j, struct bag *bag, const struct jtable *t, uint32_t table)
{
	for (size_t i = 0, first = 0; i < t->n; i++) {
		const struct jrow *r = &t->row[i];

		if (r->marks & JM_END) {
			first = i + 1;
			continue;
		}
		if (!jmap_exec_in(&j->map, t->row[first].addr) || i + 1 == t->n)
			continue;
		size_t end = i + 1;

		j->n_rows++;
		if (t->row[end].addr > r->addr) {
			hold(j, bag, r, t->row[end].addr, table);
			continue;
		}
		while (!(t->row[end].marks & JM_END) && t->row[end].addr == r->addr &&
		       end + 1 < t->n)
			end++;
		stand(j, bag, r, t->row[end].addr == r->addr && r->addr != t->row[first].addr,
		      table);
	}
}

/* A thunk shows a line that its function begins with. */
static void check_thunk(struct judge *j, uint64_t cu, const struct jtable *in, uint32_t thunk,
			const struct fact *f)
{
	char x[600];

	for (size_t i = 0; i < in->n; i++)
		if (in->row[i].addr <= j->map.unit[thunk].old && in->row[i].line == f->row.line &&
		    in->row[i].path == f->row.path &&
		    (in->row[i].addr == j->map.unit[thunk].old ||
		     (i + 1 < in->n && in->row[i + 1].addr > j->map.unit[thunk].old)))
			return;
	judge_wrong(j, J_LINE,
		    "unit %#" PRIx64 ": %s is in the thunk of %s, which has no such line", cu,
		    show(j, f, x, sizeof(x)), j->map.unit[thunk].name);
}

static void facts_of_output(struct judge *j, struct bag *bag, uint64_t cu, const struct jtable *in,
			    const struct jtable *t)
{
	const struct jmap *m = &j->map;

	for (size_t i = 0, first = 0; i + 1 < t->n; i++) {
		const struct jrow *r = &t->row[i];
		uint64_t hi = t->row[i + 1].addr;

		if (r->marks & JM_END)
			first = i + 1;
		if ((r->marks & JM_END) || !jmap_exec_out(m, t->row[first].addr))
			continue;
		struct fact f = { .lo = r->addr, .hi = r->addr, .row = *r };
		uint32_t u = jmap_find_new(m, r->addr), before = jmap_find_new(m, r->addr - 1);

		if (hi <= r->addr) {
			tell(u == before && u != JNONE ? &bag->inside : &bag->border, f);
			continue;
		}
		bool any = false;

		for (uint64_t lo = r->addr; lo < hi;) {
			u = jmap_find_new(m, lo);
			uint32_t k = u == JNONE ? jmap_find_thunk(m, lo) : JNONE;
			uint64_t end = lo + 1;

			f.lo = lo;
			if (u != JNONE) {
				end = m->unit[u].new + m->unit[u].size;
				f.hi = end < hi ? end : hi;
				tell(&bag->bytes, f);
			} else if (k != JNONE) {
				end = m->unit[k].thunk + m->unit[k].thunk_size;
				check_thunk(j, cu, in, k, &f);
			}
			any |= u != JNONE || k != JNONE;
			lo = end;
		}
		/* Of fill alone: the end of the function before. */
		f.lo = f.hi = r->addr;
		f.may = true;
		if (!any)
			tell(&bag->border, f);
	}
}

/* --- comparing --- */

/* The facts of both, one for one. */
static void compare(struct judge *j, uint64_t cu, struct facts *want, struct facts *have)
{
	char x[600];

	sort(want, by_place);
	sort(have, by_place);
	for (size_t i = 0, k = 0; i < want->n || k < have->n;) {
		int order = i == want->n   ? 1
			    : k == have->n ? -1
					   : by_place(&want->v[i], &have->v[k]);

		if (order < 0 && !want->v[i].may)
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": %s is missing", cu,
				    show(j, &want->v[i], x, sizeof(x)));
		if (order > 0 && !have->v[k].may)
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": %s is not expected", cu,
				    show(j, &have->v[k], x, sizeof(x)));
		i += order <= 0;
		k += order >= 0;
	}
}

/* Takes the fact of HAVE, sorted by place, that is F with its row standing at LO. */
static bool take(struct facts *have, const struct fact *f, uint64_t lo)
{
	struct fact key = *f;
	size_t a = 0, b = have->n;

	key.lo = key.hi = lo;
	while (a < b) {
		size_t mid = a + (b - a) / 2;

		if (by_place(&have->v[mid], &key) < 0)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < have->n && !by_place(&have->v[a], &key); a++)
		if (!have->v[a].used)
			return have->v[a].used = true;
	return false;
}

static void compare_borders(struct judge *j, uint64_t cu, struct facts *want, struct facts *have)
{
	char x[600];

	sort(have, by_place);
	for (int may = 0; may < 2; may++)
		for (size_t i = 0; i < want->n; i++) {
			struct fact *w = &want->v[i];

			if (w->may == may && !take(have, w, w->lo) &&
			    !(w->other && take(have, w, w->other)) && !may)
				judge_wrong(j, J_LINE,
					    "unit %#" PRIx64
					    ": %s, at the start or end of a function, is missing",
					    cu, show(j, w, x, sizeof(x)));
		}
	for (size_t i = 0; i < have->n; i++)
		if (!have->v[i].used && !have->v[i].may)
			judge_wrong(j, J_LINE,
				    "unit %#" PRIx64
				    ": %s, at the start or end of a function, is not expected",
				    cu, show(j, &have->v[i], x, sizeof(x)));
}

static struct jline_sections sections(const struct judge *j, int out)
{
	return (struct jline_sections){ j->sec[out][JS_LINE], j->sec[out][JS_LINE_STR],
					j->sec[out][JS_STR] };
}

/* The table of a unit; false: it names none. */
static bool table_of(struct judge *j, int out, Dwarf_Die *die, struct jtable *t, uint64_t *off,
		     const char **why)
{
	struct jline_sections s = sections(j, out);
	Dwarf_Attribute attr;
	Dwarf_Word w;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_stmt_list, &attr), &w))
		return false;
	*off = w;
	*why = jtable_read(t, &state(j)->paths, &s, w,
			   dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attr)));
	return true;
}

void judge_lines(struct judge *j, Dwarf_Die *a, Dwarf_Die *b)
{
	struct jlines *s = state(j);
	struct jtable in = { 0 }, out = { 0 };
	struct bag want = { 0 }, have = { 0 };
	uint64_t cu = dwarf_dieoffset(a), off, to;
	const char *why = NULL, *broken = NULL;

	if (!table_of(j, 0, a, &in, &off, &why))
		return;
	for (size_t i = 0; i < s->seen.n && !why; i++)
		if (s->seen.v[i].lo == off)
			goto out; /* units share it */
	tell(&s->seen, (struct fact){ .lo = off });
	if (why) {
		j->n_skipped++;
		goto out;
	}
	if (!table_of(j, 1, b, &out, &to, &broken))
		broken = "there is none";
	if (broken) {
		judge_wrong(j, J_LINE, "unit %#" PRIx64 ": the output's line table: %s", cu,
			    broken);
		goto out;
	}
	facts_of_input(j, &want, &in, (uint32_t)s->seen.n);
	facts_of_output(j, &have, cu, &in, &out);
	compare(j, cu, &want.bytes, &have.bytes);
	compare(j, cu, &want.inside, &have.inside);
	compare_borders(j, cu, &want.border, &have.border);
out:
	jtable_free(&in);
	jtable_free(&out);
	free_bag(&want);
	free_bag(&have);
}

/* --- what the artificial unit should have --- */

void judge_folded_lines(struct judge *j, Dwarf_Die *b)
{
	struct jtable t = { 0 };
	uint64_t off;
	const char *why = NULL;

	if (!table_of(j, 1, b, &t, &off, &why))
		return;
	if (why)
		judge_wrong(j, J_FOLDED_LINE, "the artificial unit's line table: %s", why);
	for (size_t i = 0; i < t.n; i++)
		if (!(t.row[i].marks & JM_END))
			tell(&j->lines->own, (struct fact){ .lo = t.row[i].addr, .row = t.row[i] });
	jtable_free(&t);
}

/* The facts [from, to) of one function, out of one table. */
struct part {
	const struct fact *from, *to;
};

/* The part that begins at FROM. */
static struct part part_at(const struct facts *s, const struct fact *from)
{
	struct part p = { from, from };

	while (p.to < s->v + s->n && p.to->unit == from->unit && p.to->table == from->table)
		p.to++;
	return p;
}

static const struct fact *first_of(const struct facts *s, uint32_t unit)
{
	size_t a = 0, b = s->n;

	while (a < b) {
		size_t mid = a + (b - a) / 2;

		if (s->v[mid].unit < unit)
			a = mid + 1;
		else
			b = mid;
	}
	return s->v + a;
}

/* Does B name every place that A names: the same file, line and column at the same address? */
static bool names_all(const struct jpaths *paths, struct part a, struct part b)
{
	for (const struct fact *f = a.from; f < a.to; f++) {
		const struct fact *g = b.from;

		while (g < b.to &&
		       !(g->lo == f->lo && g->row.line == f->row.line && g->row.col == f->row.col &&
			 same_path(paths, g->row.path, f->row.path)))
			g++;
		if (g == b.to && !f->may)
			return false;
	}
	return true;
}

/* The fact of S, sorted by place, that says of the place of F what F says, or NULL. */
static const struct fact *says(const struct jpaths *paths, const struct facts *s,
			       const struct fact *f)
{
	size_t a = 0, b = s->n;

	while (a < b) {
		size_t mid = a + (b - a) / 2;

		if (s->v[mid].lo < f->lo)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < s->n && s->v[a].lo == f->lo; a++) {
		struct jrow r = s->v[a].row;

		r.path = f->row.path;
		if (!row_order(&r, &f->row) && same_path(paths, s->v[a].row.path, f->row.path))
			return &s->v[a];
	}
	return NULL;
}

/* Is what the tables say of a folded function kept?  Several may speak of it (a COMDAT function
 * that was dropped may lie on the one that was not); one of them is enough.  Else *LOST is what is
 * missing. */
static bool is_kept(const struct jlines *s, uint32_t unit, uint32_t kept, const struct fact **lost)
{
	struct part p, q;

	*lost = NULL;
	for (const struct fact *f = first_of(&s->folded, unit);
	     f < s->folded.v + s->folded.n && f->unit == unit; f = p.to) {
		const struct fact *missing = NULL;

		p = part_at(&s->folded, f);
		for (const struct fact *g = first_of(&s->folded, kept);
		     g < s->folded.v + s->folded.n && g->unit == kept; g = q.to) {
			q = part_at(&s->folded, g);
			if (names_all(&s->paths, p, q) && names_all(&s->paths, q, p))
				return true;
		}
		for (const struct fact *x = p.from; x < p.to && !missing; x++)
			if (!x->may && !says(&s->paths, &s->own, x))
				missing = x;
		if (!missing)
			return true;
		if (!*lost)
			*lost = missing;
	}
	return !*lost;
}

static void check_own(struct judge *j, const struct facts *folded)
{
	const struct jlines *s = j->lines;
	char x[600];

	for (size_t i = 0; i < s->own.n; i++) {
		const struct fact *f = &s->own.v[i];
		const char *path = s->paths.text[f->row.path], *slash = strrchr(path, '/');

		/* The unit's own range is a byte that is no function's. */
		if (jmap_find_new(&j->map, f->lo) == JNONE &&
		    jmap_find_thunk(&j->map, f->lo) == JNONE &&
		    !strcmp(slash ? slash + 1 : path, "<folded functions>"))
			continue;
		if (!says(&s->paths, folded, f))
			judge_wrong(j, J_FOLDED_LINE,
				    "%s of the artificial unit is no folded function's",
				    show(j, f, x, sizeof(x)));
	}
}

void judge_lines_done(struct judge *j)
{
	struct jlines *s = state(j);
	struct facts folded = { 0 };
	char x[600];

	sort(&s->folded, by_function);
	sort(&s->own, by_place);
	for (size_t i = 0; i < s->folded.n && j->policy == J_OVERLAY;) {
		uint32_t u = s->folded.v[i].unit;
		const struct fact *lost;
		size_t first = i;

		while (i < s->folded.n && s->folded.v[i].unit == u)
			i++;
		if (!j->map.unit[u].folded)
			continue;
		for (size_t k = first; k < i; k++)
			tell(&folded, s->folded.v[k]);
		j->n_folded_rows += i - first;
		if (!j->map.unit[u].guessed && !is_kept(s, u, j->map.unit[u].kept, &lost))
			judge_wrong(j, J_FOLDED_LINE,
				    "%s of the folded %s is not in the artificial unit",
				    show(j, lost, x, sizeof(x)), j->map.unit[u].name);
	}
	sort(&folded, by_place);
	if (j->policy == J_OVERLAY)
		check_own(j, &folded);
	free(folded.v);
	free(s->folded.v);
	free(s->own.v);
	free(s->seen.v);
	jpaths_free(&s->paths);
	free(s);
	j->lines = NULL;
}
