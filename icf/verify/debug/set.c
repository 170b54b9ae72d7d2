/* set.c: addresses and sets of addresses, carried through the map. */
#include "elfrw/base/search.h"
#include "icf/verify/debug/set.h"
#include <stdio.h>
#include <stdlib.h>

void icf_vset_free(struct icf_vset *s)
{
	VEC_FREE(&s->v);
	VEC_FREE(&s->thunk);
}

static void push_piece(struct icf_vset *s, uint32_t unit, uint64_t lo, uint64_t hi)
{
	struct icf_vpiece *p = VEC_PUSH(&s->v);
	if (p)
		*p = (struct icf_vpiece){ unit, lo, hi };
	else
		s->nomem = true;
}

static void push_thunk(struct icf_vset *s, uint32_t unit)
{
	uint32_t *p = VEC_PUSH(&s->thunk);
	if (p)
		*p = unit;
	else
		s->nomem = true;
}

/* The first unit of IN that ends behind VA. */
static uint32_t first_ending_after(const struct icf_v *v, uint64_t va)
{
	return LOWER_BOUND(0, (uint32_t)v->claim.unit.len, mid, v->claim.unit.data[mid].end <= va);
}

void icf_vset_expect(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi)
{
	const struct icf_v *v = d->v;
	for (uint32_t i = first_ending_after(v, lo);
	     i < v->claim.unit.len && v->claim.unit.data[i].old < hi; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		uint64_t from = lo > u->old ? lo : u->old, to = hi < u->end ? hi : u->end;
		if (u->thunk && from == u->old && u->end - to <= u->tail)
			push_thunk(s, i);
		if (from >= to || (u->flags & ICF_V_REMOVED) ||
		    ((u->flags & ICF_V_FOLDED) && d->policy != DWR_FOLDED_ALIAS))
			continue;
		push_piece(s, u->kept, u->body + (from - u->old), u->body + (to - u->old));
	}
}

static uint64_t new_end(const struct icf_vunit *u)
{
	return u->body + (u->end - u->old);
}

bool icf_vset_add(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi)
{
	const struct icf_v *v = d->v;
	if (lo >= hi)
		return true;
	/* The range must begin and end in code, not in fill. */
	if ((icf_v_find_new(&v->claim, lo) == ICF_V_NONE &&
	     icf_v_find_thunk(&v->claim, lo) == ICF_V_NONE) ||
	    (icf_v_find_new(&v->claim, hi - 1) == ICF_V_NONE &&
	     icf_v_find_thunk(&v->claim, hi - 1) == ICF_V_NONE))
		return false;
	const struct icf_vunit *unit = v->claim.unit.data;
	size_t a = LOWER_BOUND(0, v->claim.n_new, mid, new_end(&unit[v->claim.by_new[mid]]) <= lo);
	for (; a < v->claim.n_new && v->claim.unit.data[v->claim.by_new[a]].body < hi; a++) {
		const struct icf_vunit *u = &v->claim.unit.data[v->claim.by_new[a]];
		uint64_t end = new_end(u);
		push_piece(s, v->claim.by_new[a], lo > u->body ? lo : u->body, hi < end ? hi : end);
	}
	a = LOWER_BOUND(0, v->claim.n_thunk, mid,
			unit[v->claim.by_thunk[mid]].entry + unit[v->claim.by_thunk[mid]].thunk <=
				lo);
	bool whole = true;
	for (; a < v->claim.n_thunk && v->claim.unit.data[v->claim.by_thunk[a]].entry < hi; a++) {
		const struct icf_vunit *u = &v->claim.unit.data[v->claim.by_thunk[a]];
		whole &= lo <= u->entry && u->entry + u->thunk <= hi;
		push_thunk(s, v->claim.by_thunk[a]);
	}
	return whole;
}

static int piece_order(const void *a, const void *b)
{
	const struct icf_vpiece *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi < y->hi ? -1 : x->hi > y->hi;
}

static int u32_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* Sorts, and joins adjacent pieces inside of one unit; true: some overlapped. */
static bool normalize(struct icf_vset *s)
{
	size_t n = 0, t = 0;
	bool overlap = false;
	if (s->v.len > 1)
		qsort(s->v.data, s->v.len, sizeof *s->v.data, piece_order);
	for (size_t i = 0; i < s->v.len; i++) {
		struct icf_vpiece p = s->v.data[i], *last = n ? &s->v.data[n - 1] : NULL;
		if (last && last->unit == p.unit && p.lo <= last->hi) {
			overlap |= p.lo < last->hi;
			if (p.hi > last->hi)
				last->hi = p.hi;
		} else
			s->v.data[n++] = p;
	}
	s->v.len = n;
	if (s->thunk.len > 1)
		qsort(s->thunk.data, s->thunk.len, sizeof *s->thunk.data, u32_order);
	for (size_t i = 0; i < s->thunk.len; i++) {
		if (!t || s->thunk.data[t - 1] != s->thunk.data[i])
			s->thunk.data[t++] = s->thunk.data[i];
		else
			overlap = true;
	}
	s->thunk.len = t;
	return overlap;
}

const char *icf_vset_differ(struct icf_vset *want, struct icf_vset *have,
			    const struct icf_vdebug *d, bool thunks, char *buf, size_t size)
{
	const struct icf_v *v = d->v;
	bool a = normalize(want), b = normalize(have);
	for (size_t i = 0; i < want->v.len || i < have->v.len; i++) {
		const struct icf_vpiece *w = i < want->v.len ? &want->v.data[i] : NULL,
					*h = i < have->v.len ? &have->v.data[i] : NULL;
		if (w && h && w->lo == h->lo && w->hi == h->hi)
			continue;
		snprintf(buf, size, "expected 0x%llx to 0x%llx, found 0x%llx to 0x%llx",
			 ICF_VX(w ? w->lo : 0), ICF_VX(w ? w->hi : 0), ICF_VX(h ? h->lo : 0),
			 ICF_VX(h ? h->hi : 0));
		return buf;
	}
	for (size_t i = 0, k = 0; i < want->thunk.len || k < have->thunk.len;) {
		uint32_t w = i < want->thunk.len ? want->thunk.data[i] : UINT32_MAX,
			 h = k < have->thunk.len ? have->thunk.data[k] : UINT32_MAX;
		if (w == h) {
			i++;
			k++;
		} else if (h < w || thunks) {
			snprintf(buf, size,
				 h < w ? "expected no thunk at 0x%llx, found one"
				       : "expected the thunk at 0x%llx, found none",
				 ICF_VX(v->claim.unit.data[h < w ? h : w].entry));
			return buf;
		} else
			i++;
	}
	return b && !a ? "expected ranges that are apart, found some that overlap" : NULL;
}

bool icf_vd_end(const struct icf_v *v, uint64_t va, uint64_t *ret)
{
	uint32_t u = icf_v_find_end(&v->claim, va);
	if (u == ICF_V_NONE)
		return false;
	*ret = v->claim.unit.data[u].body + (va - v->claim.unit.data[u].old);
	return true;
}

bool icf_vd_address(const struct icf_vdebug *d, enum icf_vd_how how, uint64_t a, uint64_t b,
		    uint64_t *want)
{
	const struct icf_v *v = d->v;
	uint64_t r;
	*want = a;
	if (!icf_v_in_exec(&v->claim, a)) {
		if (a == b || !a)
			return a == b;
		size_t i =
			LOWER_BOUND(0, v->claim.exec.len, mid, v->claim.exec.data[mid].old_end < a);
		for (; i < v->claim.exec.len && v->claim.exec.data[i].old_end == a; i++)
			if (a == v->claim.exec.data[i].old_end &&
			    (icf_vd_end(v, a, want)
				     ? b == *want || b == v->claim.exec.data[i].new_end
				     : b == v->claim.exec.data[i].new_end))
				return true;
		*want = icf_v_data(&v->claim, a);
		return b == *want;
	}
	if (how == ICF_VD_END && icf_vd_end(v, a, want))
		return *want == b;
	uint32_t u = icf_v_find(&v->claim, a);
	if (u != ICF_V_NONE) {
		const struct icf_vunit *x = &v->claim.unit.data[u];
		*want = x->body + (a - x->old);
		if (*want == b)
			return true;
		if (a == x->old) {
			/* The entry of a folded function is at its thunk.  A label at the end of a
			 * function is at that end. */
			if (x->thunk && x->entry == b)
				return true;
			if (how == ICF_VD_POINT && icf_vd_end(v, a, &r) && r == b)
				return true;
		}
		return (x->flags & ICF_V_FOLDED) && d->policy == DWR_FOLDED_DROP &&
		       !icf_v_out_exec(&v->claim, b);
	}
	if (icf_vd_end(v, a, &r) && r == b)
		return true;
	/* Between two units: no place in the output, unless it is a place there, or the section's
	 * end, if all that follows is folded. */
	size_t i = LOWER_BOUND(0, v->claim.exec.len, mid, v->claim.exec.data[mid].old_end <= a);
	return icf_v_out_exec(&v->claim, b) || !b ||
	       (i < v->claim.exec.len && b == v->claim.exec.data[i].new_end);
}
