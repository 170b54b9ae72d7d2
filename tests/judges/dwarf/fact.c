/* fact.c: facts of line tables: kept, ordered, shown. */
#include "tests/judges/dwarf/fact.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct jfact *fact_tell(struct jfacts *s, struct jfact f)
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

struct jlines *facts_of(struct judge *j)
{
	if (!j->lines && !(j->lines = calloc(1, sizeof(*j->lines))))
		abort();
	return j->lines;
}

/* All but the address; -1, 0, 1. */
int fact_row_order(const struct jrow *a, const struct jrow *b)
{
	uint64_t x[] = { a->line, a->col, a->marks, a->disc, a->isa, a->path },
		 y[] = { b->line, b->col, b->marks, b->disc, b->isa, b->path };

	for (unsigned i = 0; i < sizeof(x) / sizeof(*x); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

int fact_by_place(const void *pa, const void *pb)
{
	const struct jfact *a = pa, *b = pb;

	if (a->lo != b->lo)
		return a->lo < b->lo ? -1 : 1;
	if (a->hi != b->hi)
		return a->hi < b->hi ? -1 : 1;
	return fact_row_order(&a->row, &b->row);
}

int fact_by_function(const void *pa, const void *pb)
{
	const struct jfact *a = pa, *b = pb;

	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->table != b->table)
		return a->table < b->table ? -1 : 1;
	return fact_by_place(pa, pb);
}

void facts_sort(struct jfacts *s, int (*order)(const void *, const void *))
{
	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), order);
}

/* Is one path the other's tail?  Not every table says what its relative names count from. */
bool fact_same_path(const struct jpaths *p, uint32_t a, uint32_t b)
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

const char *fact_show(const struct judge *j, const struct jfact *f, char *buf, size_t size)
{
	snprintf(buf, size, "[%#" PRIx64 ",%#" PRIx64 ") %s:%u:%u marks %#x disc %u", f->lo, f->hi,
		 j->lines->paths.text[f->row.path], f->row.line, f->row.col, f->row.marks,
		 f->row.disc);
	return buf;
}

static struct jline_sections sections(const struct judge *j, int out)
{
	return (struct jline_sections){ j->sec[out][JS_LINE], j->sec[out][JS_LINE_STR],
					j->sec[out][JS_STR] };
}

/* The line table of a unit; false: the unit names none. */
bool fact_table_of(struct judge *j, int out, Dwarf_Die *die, struct jtable *t, uint64_t *off,
		   const char **why)
{
	struct jline_sections s = sections(j, out);
	Dwarf_Attribute attr;
	Dwarf_Word w;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_stmt_list, &attr), &w))
		return false;
	*off = w;
	*why = jtable_read(t, &facts_of(j)->paths, &s, w,
			   dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attr)));
	return true;
}
