/* line.c: does each line table of the output say of each stretch of code what the input's says?
 *
 * A table is taken as what DWARF 5, section 6.2, says that it is: sequences of rows, each of which
 * holds from its address to the next row's. So a table becomes a bag of facts, "these bytes of the
 * output have this row", cut where functions begin and end. The facts of the input are carried
 * through the map. The two bags must be the same. A row that holds for no byte is a fact of its
 * own; at the border of two functions it may belong to either. Facts of folded functions that name
 * other places than those of the kept function must be in the table of the artificial unit, and
 * nothing else may be there. */
#include "tests/judges/dwarf/judge.h"
#include "tests/judges/dwarf/fact.h"
#include <dwarf.h>
#include <stdlib.h>

/* --- from tables to facts --- */

/* The facts of one table: of bytes, of rows inside of functions, of rows at their borders. */
struct bag {
	struct jfacts bytes, inside, border;
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

/* Records a row of the input that holds from its address to HI, once for each function there. */
static void hold(struct judge *j, struct bag *bag, const struct jrow *r, uint64_t hi,
		 uint32_t table)
{
	const struct jmap *m = &j->map;
	bool any = false;

	for (uint64_t lo = r->addr; lo < hi;) {
		uint32_t i = jmap_find(m, lo);

		if (i == JNONE) {
			/* Padding: go on at the next unit. */
			uint32_t a;

			JFIRST(a, m->n, m->unit[a].old <= lo);
			lo = a < m->n && m->unit[a].old < hi ? m->unit[a].old : hi;
			continue;
		}
		const struct junit *u = &m->unit[i];
		uint64_t end = u->old + u->size < hi ? u->old + u->size : hi;
		struct jfact f = { .lo = u->new + (lo - u->old),
				   .hi = u->new + (end - u->old),
				   .row = *r,
				   .unit = i,
				   .table = table,
				   .may = lo > r->addr };

		any = true;
		if (!u->folded || j->policy == J_ALIAS)
			fact_tell(&bag->bytes, f);
		if (shares(u))
			fact_tell(&j->lines->folded, f);
		lo = end;
	}
	uint64_t at;
	uint32_t before = any ? JNONE : jmap_find(m, r->addr - 1);

	/* A row of padding alone may stand at the end of the function before. */
	if (before == JNONE || !jmap_end(m, r->addr, &at))
		return;
	struct jfact f = {
		.lo = at, .hi = at, .row = *r, .unit = before, .table = table, .may = true
	};

	fact_tell(&bag->border, f);
	if (shares(&m->unit[before]))
		fact_tell(&j->lines->folded, f);
}

/* Does a function or a thunk begin there in the output? */
static bool begins(const struct jmap *m, uint64_t va)
{
	uint32_t u = jmap_find_new(m, va), t = jmap_find_thunk(m, va);

	return (u != JNONE && m->unit[u].new == va) || t != JNONE;
}

/* A row of the input that covers no byte.  LAST: the row stands where its sequence ends. */
static void stand(struct judge *j, struct bag *bag, const struct jrow *r, bool last, uint32_t table)
{
	const struct jmap *m = &j->map;
	uint32_t i = jmap_find(m, r->addr), k = r->addr ? jmap_find(m, r->addr - 1) : JNONE;
	struct jfact f = { .row = *r, .table = table };
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
			fact_tell(&j->lines->folded, f);
	}
	if (i == k && i != JNONE) {
		if (!m->unit[i].folded || alias)
			fact_tell(&bag->inside, f);
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
	/* If another function begins there in the output, the row would seem to be that function's.
	 */
	f.may = gone || (last && k != JNONE && begins(m, f.lo));
	if (f.lo)
		fact_tell(&bag->border, f);
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
			const struct jfact *f)
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
		    fact_show(j, f, x, sizeof(x)), j->map.unit[thunk].name);
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
		struct jfact f = { .lo = r->addr, .hi = r->addr, .row = *r };
		uint32_t u = jmap_find_new(m, r->addr), before = jmap_find_new(m, r->addr - 1);

		if (hi <= r->addr) {
			fact_tell(u == before && u != JNONE ? &bag->inside : &bag->border, f);
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
				fact_tell(&bag->bytes, f);
			} else if (k != JNONE) {
				end = m->unit[k].thunk + m->unit[k].thunk_size;
				check_thunk(j, cu, in, k, &f);
			}
			any |= u != JNONE || k != JNONE;
			lo = end;
		}
		/* The row holds for padding alone: it stands at the end of the function before. */
		f.lo = f.hi = r->addr;
		f.may = true;
		if (!any)
			fact_tell(&bag->border, f);
	}
}

/* --- comparing --- */

/* Sorts both bags and compares them fact by fact. */
static void compare(struct judge *j, uint64_t cu, struct jfacts *want, struct jfacts *have)
{
	char x[600];

	facts_sort(want, fact_by_place);
	facts_sort(have, fact_by_place);
	for (size_t i = 0, k = 0; i < want->n || k < have->n;) {
		int order = i == want->n   ? 1
			    : k == have->n ? -1
					   : fact_by_place(&want->v[i], &have->v[k]);

		if (order < 0 && !want->v[i].may)
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": %s is missing", cu,
				    fact_show(j, &want->v[i], x, sizeof(x)));
		if (order > 0 && !have->v[k].may)
			judge_wrong(j, J_LINE, "unit %#" PRIx64 ": %s is not expected", cu,
				    fact_show(j, &have->v[k], x, sizeof(x)));
		i += order <= 0;
		k += order >= 0;
	}
}

/* The first fact of HAVE, sorted by place, that is F with its row standing at LO; *END: behind the
 * last one. */
static struct jfact *same_at(struct jfacts *have, const struct jfact *f, uint64_t lo,
			     struct jfact **end)
{
	struct jfact key = *f;
	size_t a, b;

	key.lo = key.hi = lo;
	JFIRST(a, have->n, fact_by_place(&have->v[a], &key) < 0);
	for (b = a; b < have->n && !fact_by_place(&have->v[b], &key);)
		b++;
	*end = have->v + b;
	return have->v + a;
}

/* Takes a fact of HAVE for F, whose row stands at one of two places. If all facts there are taken,
 * a fact that took one moves to its own other place if possible. SEARCH: another number for each
 * call from outside. */
static bool take(struct jfacts *have, const struct jfact *f, size_t search)
{
	uint64_t place[] = { f->lo, f->other };

	for (int displace = 0; displace < 2; displace++)
		for (int k = 0; k < 2; k++) {
			struct jfact *end, *x;

			if (!place[k])
				continue;
			for (x = same_at(have, f, place[k], &end); x < end; x++) {
				if (x->by && (!displace || x->search == search))
					continue;
				x->search = search;
				if (x->by && !take(have, x->by, search))
					continue;
				x->by = f;
				return true;
			}
		}
	return false;
}

static void compare_borders(struct judge *j, uint64_t cu, struct jfacts *want, struct jfacts *have)
{
	char x[600];
	size_t search = 0;

	facts_sort(have, fact_by_place);
	for (int may = 0; may < 2; may++)
		for (size_t i = 0; i < want->n; i++) {
			struct jfact *w = &want->v[i];

			if (w->may == may && !take(have, w, ++search) && !may)
				judge_wrong(j, J_LINE,
					    "unit %#" PRIx64
					    ": %s, at the start or end of a function, is missing",
					    cu, fact_show(j, w, x, sizeof(x)));
		}
	for (size_t i = 0; i < have->n; i++)
		if (!have->v[i].by && !have->v[i].may)
			judge_wrong(j, J_LINE,
				    "unit %#" PRIx64
				    ": %s, at the start or end of a function, is not expected",
				    cu, fact_show(j, &have->v[i], x, sizeof(x)));
}

void judge_lines(struct judge *j, Dwarf_Die *a, Dwarf_Die *b)
{
	struct jlines *s = facts_of(j);
	struct jtable in = { 0 }, out = { 0 };
	struct bag want = { 0 }, have = { 0 };
	uint64_t cu = dwarf_dieoffset(a), off, to;
	const char *why = NULL, *broken = NULL;

	if (!fact_table_of(j, 0, a, &in, &off, &why))
		return;
	for (size_t i = 0; i < s->seen.n && !why; i++)
		if (s->seen.v[i].lo == off)
			goto out; /* units share it */
	fact_tell(&s->seen, (struct jfact){ .lo = off });
	if (why) {
		j->n_skipped++;
		goto out;
	}
	if (!fact_table_of(j, 1, b, &out, &to, &broken))
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
