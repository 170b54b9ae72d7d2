/* set.c: sets of addresses carried through the map, and how two of them differ. */
#include "tests/judges/dwarf/judge.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void jset_free(struct jset *s)
{
	free(s->v);
	free(s->thunks);
	*s = (struct jset){ 0 };
}

static void push_piece(struct jset *s, struct jpiece p)
{
	if (p.lo >= p.hi)
		return;
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 8;
		s->v = realloc(s->v, s->cap * sizeof(*s->v));
		if (!s->v)
			abort();
	}
	s->v[s->n++] = p;
}

static void push_thunk(struct jset *s, uint32_t unit)
{
	if (s->n_thunks == s->cap_thunks) {
		s->cap_thunks = s->cap_thunks * 2 + 8;
		s->thunks = realloc(s->thunks, s->cap_thunks * sizeof(*s->thunks));
		if (!s->thunks)
			abort();
	}
	s->thunks[s->n_thunks++] = unit;
}

void jset_expect(struct jset *s, const struct judge *j, uint64_t lo, uint64_t hi)
{
	const struct jmap *m = &j->map;
	uint32_t a = 0, b = m->n;

	while (a < b) {
		uint32_t mid = a + (b - a) / 2;

		if (m->unit[mid].old + m->unit[mid].size <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < m->n && m->unit[a].old < hi; a++) {
		const struct junit *u = &m->unit[a];
		uint64_t from = lo > u->old ? lo : u->old,
			 to = hi < u->old + u->size ? hi : u->old + u->size;

		if (u->folded && u->thunk && from == u->old && to == u->old + u->size)
			push_thunk(s, a);
		if (u->folded && j->policy != J_ALIAS)
			continue;
		push_piece(s, (struct jpiece){ u->kept, u->new + (from - u->old),
					       u->new + (to - u->old) });
	}
}

bool jset_add(struct jset *s, const struct judge *j, uint64_t lo, uint64_t hi)
{
	const struct jmap *m = &j->map;
	uint32_t a = 0, b = m->n_new;

	if (lo >= hi)
		return true;
	if (!jmap_exec_out(m, lo) || !jmap_exec_out(m, hi))
		return false;
	while (a < b) {
		uint32_t mid = a + (b - a) / 2;
		const struct junit *u = &m->unit[m->by_new[mid]];

		if (u->new + u->size <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < m->n_new && m->unit[m->by_new[a]].new < hi; a++) {
		const struct junit *u = &m->unit[m->by_new[a]];

		push_piece(s, (struct jpiece){ m->by_new[a], lo > u->new ? lo : u->new,
					       hi < u->new + u->size ? hi : u->new + u->size });
	}
	for (uint32_t t = 0; t < m->n_thunk; t++) {
		const struct junit *u = &m->unit[m->thunk[t]];

		if (u->thunk < hi && lo < u->thunk + u->thunk_size)
			push_thunk(s, m->thunk[t]);
	}
	return true;
}

static int piece_order(const void *a, const void *b)
{
	const struct jpiece *x = a, *y = b;

	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi < y->hi ? -1 : x->hi > y->hi;
}

/* Sorts the pieces and joins those that touch inside one unit. */
static void normalize(struct jset *s)
{
	size_t n = 0;

	if (s->n)
		qsort(s->v, s->n, sizeof(*s->v), piece_order);
	for (size_t i = 0; i < s->n; i++) {
		if (n && s->v[n - 1].unit == s->v[i].unit && s->v[i].lo <= s->v[n - 1].hi) {
			if (s->v[i].hi > s->v[n - 1].hi)
				s->v[n - 1].hi = s->v[i].hi;
		} else {
			s->v[n++] = s->v[i];
		}
	}
	s->n = n;
}

const char *jset_differ(struct jset *want, struct jset *have, const struct judge *j, bool thunks,
			char *buf, size_t size)
{
	const struct junit *unit = j->map.unit;

	normalize(want);
	normalize(have);
	for (size_t i = 0; i < want->n || i < have->n; i++) {
		const struct jpiece *w = i < want->n ? &want->v[i] : NULL,
				    *h = i < have->n ? &have->v[i] : NULL;

		if (w && h && w->lo == h->lo && w->hi == h->hi)
			continue;
		if (w && (!h || w->lo <= h->lo))
			snprintf(buf, size, "[%#" PRIx64 ",%#" PRIx64 ") of %s is expected, %s",
				 w->lo, w->hi, unit[w->unit].name,
				 h ? "the output has other bounds" : "the output has not got it");
		else
			snprintf(buf, size, "[%#" PRIx64 ",%#" PRIx64 ") of %s is not expected",
				 h->lo, h->hi, unit[h->unit].name);
		return buf;
	}
	for (size_t i = 0; i < have->n_thunks; i++) {
		size_t k = 0;

		while (k < want->n_thunks && want->thunks[k] != have->thunks[i])
			k++;
		if (k == want->n_thunks) {
			snprintf(buf, size, "the thunk of %s at %#" PRIx64 " is not expected",
				 unit[have->thunks[i]].name, unit[have->thunks[i]].thunk);
			return buf;
		}
	}
	for (size_t i = 0; thunks && i < want->n_thunks; i++) {
		size_t k = 0;

		while (k < have->n_thunks && want->thunks[i] != have->thunks[k])
			k++;
		if (k == have->n_thunks) {
			snprintf(buf, size, "the thunk of %s at %#" PRIx64 " is missing",
				 unit[want->thunks[i]].name, unit[want->thunks[i]].thunk);
			return buf;
		}
	}
	return NULL;
}
