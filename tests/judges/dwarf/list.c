/* list.c: lists of locations: sets of (bytes of a function, expression), the same in both files. */
#include "tests/judges/dwarf/term.h"
#include <stdlib.h>
#include <string.h>

/* The location holds for `size` bytes from a place in a function on. Unit JNONE: for all that no
 * other location covers. */
struct location {
	struct jname at;
	struct jname end; /* if `size` is 0: another place where the location may stand */
	uint64_t size;
	Dwarf_Op *op;
	size_t n, order;
	bool may, used; /* may: it need not be there */
};

struct locations {
	struct location *v;
	size_t n, cap;
	bool unreadable;
};

static void locate(struct locations *s, struct location x)
{
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 16;
		s->v = realloc(s->v, s->cap * sizeof(x));
		if (!s->v)
			abort();
	}
	x.order = s->n;
	s->v[s->n++] = x;
}

static int location_order(const void *pa, const void *pb)
{
	const struct location *a = pa, *b = pb;
	uint64_t x[] = { a->at.unit, a->at.off, a->size, a->order },
		 y[] = { b->at.unit, b->at.off, b->size, b->order };

	for (unsigned i = 0; i < 4; i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

/* Cuts the entry [LO, HI) at the functions that it covers. */
static void cut(struct jside s, struct locations *ret, uint64_t lo, uint64_t hi, struct location x,
		bool views)
{
	const struct jmap *m = &s.j->map;
	bool alias = s.j->policy == J_ALIAS;

	if (lo == hi) {
		/* The entry covers no byte; only its views give it a meaning. Between two functions
		 * it may belong to either. */
		uint32_t u = s.out ? JNONE : jmap_find(m, lo);

		x.at = term_name_in(s, lo, lo);
		x.end = lo ? term_name_in(s, lo, lo - 1) : (struct jname){ JNONE, 0 };
		x.may = s.out || !views || x.at.unit == JNONE ||
			(u != JNONE && m->unit[u].folded && !alias);
		x.size = 0;
		if (x.at.unit == JNONE)
			x.at = x.end;
		if (x.at.unit != JNONE)
			locate(ret, x);
		x.at = x.end;
		if (s.out && x.at.unit != JNONE)
			locate(ret, x);
		return;
	}
	for (uint32_t k = 0, n = s.out ? m->n_new : m->n; k < n; k++) {
		/* Begin with the first unit that ends behind LO. */
		if (!k) {
			uint32_t b = n;

			while (k < b) {
				uint32_t mid = k + (b - k) / 2;
				const struct junit *u = &m->unit[s.out ? m->by_new[mid] : mid];

				if ((s.out ? u->new : u->old) + u->size <= lo)
					k = mid + 1;
				else
					b = mid;
			}
			if (k == n)
				return;
		}
		const struct junit *u = &m->unit[s.out ? m->by_new[k] : k];
		uint64_t start = s.out ? u->new : u->old;

		if (start >= hi)
			return;
		x.at = (struct jname){ u->kept, lo > start ? lo - start : 0 };
		x.size = (hi < start + u->size ? hi - start : u->size) - x.at.off;
		x.may = !s.out && u->folded && !alias;
		if (x.size)
			locate(ret, x);
	}
}

static struct locations read_list(struct jside s, Dwarf_Attribute *attr, bool views)
{
	struct locations ret = { 0 };
	Dwarf_Addr base, lo, hi;
	struct location x = { 0 };
	ptrdiff_t off = 0;

	while ((off = dwarf_getlocations(attr, off, &base, &lo, &hi, &x.op, &x.n)) > 0) {
		if (lo == 0 && hi == UINT64_MAX) {
			x.at = (struct jname){ JNONE, 0 };
			x.size = 0;
			x.may = false;
			locate(&ret, x);
		} else if ((s.out ? jmap_exec_out : jmap_exec_in)(&s.j->map, lo)) {
			s.j->n_locs += !s.out;
			cut(s, &ret, lo, hi, x, views);
		}
	}
	ret.unreadable = off < 0;
	if (ret.n)
		qsort(ret.v, ret.n, sizeof(*ret.v), location_order);
	return ret;
}

/* Both files, and the attribute in both. */
struct lists {
	struct jside in, out;
	Dwarf_Attribute *a, *b;
};

/* Takes the first unused location of B that stands at AT and says what X says. */
static bool take(const struct lists *l, const struct location *x, struct jname at,
		 struct locations *b)
{
	struct location key = *x;
	size_t i = 0, end = b->n;

	key.at = at;
	key.order = 0;
	while (i < end) {
		size_t mid = i + (end - i) / 2;

		if (location_order(&b->v[mid], &key) < 0)
			i = mid + 1;
		else
			end = mid;
	}
	for (; i < b->n; i++) {
		struct location *y = &b->v[i];

		if (y->at.unit != at.unit || y->at.off != at.off || y->size != x->size)
			return false;
		if (!y->used && term_same(term_expression(l->in, l->a, x->op, x->n),
					  term_expression(l->out, l->b, y->op, y->n)))
			return y->used = true;
	}
	return false;
}

/* The same at either place of X. */
static bool take_any(const struct lists *l, const struct location *x, struct locations *b)
{
	return take(l, x, x->at, b) ||
	       (!x->size && x->at.unit != JNONE && x->end.unit != JNONE && take(l, x, x->end, b));
}

void judge_list(struct judge *j, struct jpair *p, Dwarf_Attribute *x, Dwarf_Attribute *y,
		bool views)
{
	struct lists l = { { j, false }, { j, true }, x, y };
	struct locations a = read_list(l.in, x, views), b = read_list(l.out, y, views);
	bool bad = false;

	if (a.unreadable)
		j->n_skipped++;
	else if (b.unreadable)
		judge_wrong(j, J_LOC,
			    DIE_FMT ": attribute %#x: the output's list is unreadable: %s", DIE(p),
			    x->code, dwarf_errmsg(-1));
	if (a.unreadable || b.unreadable || p->dead)
		goto done;
	for (int may = 0; may < 2; may++)
		for (size_t i = 0; i < a.n && !bad; i++)
			if (a.v[i].may == may && !take_any(&l, &a.v[i], &b) && !may) {
				judge_wrong(
					j, J_LOC,
					DIE_FMT ": attribute %#x: %#" PRIx64 " bytes at %#" PRIx64
						" of %s have another location, or none",
					DIE(p), x->code, a.v[i].size, a.v[i].at.off,
					a.v[i].at.unit == JNONE ? "all"
								: j->map.unit[a.v[i].at.unit].name);
				bad = true;
			}
	for (size_t i = 0; i < b.n && !bad; i++)
		if (!b.v[i].used && !b.v[i].may && b.v[i].size &&
		    !(p->folded != JNONE && j->policy == J_DROP)) {
			judge_wrong(j, J_LOC,
				    DIE_FMT ": attribute %#x: %#" PRIx64 " bytes at %#" PRIx64
					    " of %s have a location that is not expected",
				    DIE(p), x->code, b.v[i].size, b.v[i].at.off,
				    j->map.unit[b.v[i].at.unit].name);
			bad = true;
		}
done:
	free(a.v);
	free(b.v);
}

/* The pairs of views of a list lie between DW_AT_GNU_locviews and the list itself. */
void judge_views(struct judge *j, struct jpair *p, Dwarf_Attribute v[2], Dwarf_Attribute list[2])
{
	struct jbytes s[2];
	Dwarf_Half version = 0;
	Dwarf_Word from[2], to[2];

	dwarf_cu_info(p->a.cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	for (int k = 0; k < 2; k++) {
		s[k] = j->sec[k][version >= 5 ? JS_LOCLISTS : JS_LOC];
		if (list[0].form != DW_FORM_loclistx && !dwarf_formudata(&v[k], &from[k]) &&
		    !dwarf_formudata(&list[k], &to[k]) && from[k] <= to[k] && to[k] <= s[k].n)
			continue;
		if (k)
			judge_wrong(j, J_VIEW, DIE_FMT ": views not before their list", DIE(p));
		j->n_skipped += !k;
		return;
	}
	j->n_views++;
	if (to[0] - from[0] != to[1] - from[1] ||
	    memcmp(s[0].p + from[0], s[1].p + from[1], to[0] - from[0]))
		judge_wrong(j, J_VIEW, DIE_FMT ": views differ", DIE(p));
}
