/* folded.c: line rows of folded functions: the kept function's rows name the same places, or the
 * table of the artificial unit has the rows, and nothing else is in that table. */
#include "tests/judges/dwarf/fact.h"
#include <stdlib.h>
#include <string.h>

void judge_folded_lines(struct judge *j, Dwarf_Die *b)
{
	struct jtable t = { 0 };
	uint64_t off;
	const char *why = NULL;

	if (!fact_table_of(j, 1, b, &t, &off, &why))
		return;
	if (why)
		judge_wrong(j, J_FOLDED_LINE, "the artificial unit's line table: %s", why);
	for (size_t i = 0; i < t.n; i++)
		if (!(t.row[i].marks & JM_END))
			fact_tell(&j->lines->own,
				  (struct jfact){ .lo = t.row[i].addr, .row = t.row[i] });
	jtable_free(&t);
}

/* The facts [from, to) of one function, out of one table. */
struct part {
	const struct jfact *from, *to;
};

/* The part that begins at FROM. */
static struct part part_at(const struct jfacts *s, const struct jfact *from)
{
	struct part p = { from, from };

	while (p.to < s->v + s->n && p.to->unit == from->unit && p.to->table == from->table)
		p.to++;
	return p;
}

static const struct jfact *first_of(const struct jfacts *s, uint32_t unit)
{
	uint32_t at;

	JFIRST(at, s->n, s->v[at].unit < unit);
	return s->v + at;
}

/* Does B name every place that A names: the same file, line and column at the same address? */
static bool names_all(const struct jpaths *paths, struct part a, struct part b)
{
	for (const struct jfact *f = a.from; f < a.to; f++) {
		const struct jfact *g = b.from;

		while (g < b.to &&
		       !(g->lo == f->lo && g->row.line == f->row.line && g->row.col == f->row.col &&
			 fact_same_path(paths, g->row.path, f->row.path)))
			g++;
		if (g == b.to && !f->may)
			return false;
	}
	return true;
}

/* The fact of S, sorted by place, that says of the place of F what F says, or NULL. */
static const struct jfact *says(const struct jpaths *paths, const struct jfacts *s,
				const struct jfact *f)
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
		if (!fact_row_order(&r, &f->row) &&
		    fact_same_path(paths, s->v[a].row.path, f->row.path))
			return &s->v[a];
	}
	return NULL;
}

/* Did the line rows of a folded function survive? Several tables of the input may have rows of the
 * function, since a dropped COMDAT function may lie on one that was not dropped. It is enough if
 * the rows of one table survived. Otherwise *LOST is a missing fact. */
static bool is_kept(const struct jlines *s, uint32_t unit, uint32_t kept, const struct jfact **lost)
{
	struct part p, q;

	*lost = NULL;
	for (const struct jfact *f = first_of(&s->folded, unit);
	     f < s->folded.v + s->folded.n && f->unit == unit; f = p.to) {
		const struct jfact *missing = NULL;

		p = part_at(&s->folded, f);
		for (const struct jfact *g = first_of(&s->folded, kept);
		     g < s->folded.v + s->folded.n && g->unit == kept; g = q.to) {
			q = part_at(&s->folded, g);
			if (names_all(&s->paths, p, q) && names_all(&s->paths, q, p))
				return true;
		}
		for (const struct jfact *x = p.from; x < p.to && !missing; x++)
			if (!x->may && !says(&s->paths, &s->own, x))
				missing = x;
		if (!missing)
			return true;
		if (!*lost)
			*lost = missing;
	}
	return !*lost;
}

static void check_own(struct judge *j, const struct jfacts *folded)
{
	const struct jlines *s = j->lines;
	char x[600];

	for (size_t i = 0; i < s->own.n; i++) {
		const struct jfact *f = &s->own.v[i];
		const char *path = s->paths.text[f->row.path], *slash = strrchr(path, '/');

		/* The artificial unit has a range of its own: one byte that belongs to no function.
		 */
		if (jmap_find_new(&j->map, f->lo) == JNONE &&
		    jmap_find_thunk(&j->map, f->lo) == JNONE &&
		    !strcmp(slash ? slash + 1 : path, "<folded functions>"))
			continue;
		if (!says(&s->paths, folded, f))
			judge_wrong(j, J_FOLDED_LINE,
				    "%s of the artificial unit is no folded function's",
				    fact_show(j, f, x, sizeof(x)));
	}
}

void judge_lines_done(struct judge *j)
{
	struct jlines *s = facts_of(j);
	struct jfacts folded = { 0 };
	char x[600];

	facts_sort(&s->folded, fact_by_function);
	facts_sort(&s->own, fact_by_place);
	for (size_t i = 0; i < s->folded.n && j->policy == J_OVERLAY;) {
		uint32_t u = s->folded.v[i].unit;
		const struct jfact *lost;
		size_t first = i;

		while (i < s->folded.n && s->folded.v[i].unit == u)
			i++;
		if (!j->map.unit[u].folded)
			continue;
		for (size_t k = first; k < i; k++)
			fact_tell(&folded, s->folded.v[k]);
		j->n_folded_rows += i - first;
		if (!j->map.unit[u].guessed && !is_kept(s, u, j->map.unit[u].kept, &lost))
			judge_wrong(j, J_FOLDED_LINE,
				    "%s of the folded %s is not in the artificial unit",
				    fact_show(j, lost, x, sizeof(x)), j->map.unit[u].name);
	}
	facts_sort(&folded, fact_by_place);
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
