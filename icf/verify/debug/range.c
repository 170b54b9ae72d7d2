/* range.c: the ranges of a DIE, and what .debug_icfold keeps of them.
 *
 * The DIE of a folded function, and those of its scopes, cover only its thunk.  The ranges that
 * they lost are in the overlay.  Ranges are compared as sets, cut at units.  A list that many DIEs
 * share is compared for the first of them. */
#include "elfrw/base/search.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/seen.h"
#include "icf/verify/debug/set.h"
#include "icf/verify/debug/shift.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int overlay_cmp(const struct icf_voverlay *a, const struct icf_voverlay *b)
{
	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return a->len < b->len ? -1 : a->len > b->len;
}

static int overlay_order(const void *a, const void *b)
{
	return overlay_cmp(a, b);
}

typedef VEC(struct icf_voverlay) overlay_list;

/* Adds what range [LO, HI) of IN loses. */
static void lose(struct icf_vdebug *d, overlay_list *list, uint64_t die, uint64_t lo, uint64_t hi)
{
	const struct icf_v *v = d->v;
	for (uint64_t at = lo; at < hi;) {
		uint32_t i = icf_v_find(&v->claim, at);
		if (i == ICF_V_NONE) {
			/* Padding: continue at the next unit. */
			size_t a = LOWER_BOUND(0, v->claim.unit.len, mid,
					       v->claim.unit.data[mid].old <= at);
			if (a == v->claim.unit.len)
				return;
			at = v->claim.unit.data[a].old;
			continue;
		}
		const struct icf_vunit *u = &v->claim.unit.data[i];
		uint64_t to = hi < u->end ? hi : u->end;
		if ((u->flags & ICF_V_FOLDED) && !(u->flags & ICF_V_REMOVED)) {
			struct icf_voverlay *slot = VEC_PUSH(list);
			if (!slot) {
				d->log->nomem = true;
				return;
			}
			*slot = (struct icf_voverlay){ die, i, at - u->old, to - at };
		}
		at = to;
	}
}

/* The DIE's overlay must hold exactly what the DIE lost. */
static void check_overlay(struct icf_vdebug *d, Dwarf_Die *a, int tag, overlay_list *lost)
{
	uint64_t die = (uint64_t)dwarf_dieoffset(a);
	size_t n = 0, lo = d->near_overlay;
	/* The DIEs are in the order of the overlay. */
	if (lo > d->n_overlay || (lo && d->overlay[lo - 1].die >= die) ||
	    (lo < d->n_overlay && d->overlay[lo].die < die))
		lo = LOWER_BOUND(0, d->n_overlay, mid, d->overlay[mid].die < die);
	while (lo + n < d->n_overlay && d->overlay[lo + n].die == die)
		n++;
	d->overlay_seen += n;
	d->near_overlay = lo + n;
	bool unit = tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit;
	if (!n && (!lost->len || unit))
		return;
	d->log->checked[ICF_VC_OVERLAY]++;
	if (lost->len && lost->len == n)
		qsort(lost->data, lost->len, sizeof *lost->data, overlay_order);
	bool same = n == lost->len;
	for (size_t i = 0; i < n && same; i++)
		same = overlay_cmp(&d->overlay[lo + i], &lost->data[i]) == 0;
	char name[200];
	if (!same)
		icf_vlog_bad(d->log, ICF_VC_OVERLAY,
			     "overlay: %s: expected the %zu ranges that it lost, found %zu%s",
			     icf_vd_die(a, name), lost->len, n, n == lost->len ? " others" : "");
}

static int owner_order(const void *a, const void *b)
{
	const struct icf_vowner *x = a, *y = b;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static void note_owner(struct icf_vdebug *d, uint64_t die, uint64_t lo)
{
	const struct icf_v *v = d->v;
	uint32_t u = icf_v_find(&v->claim, lo);
	if (u == ICF_V_NONE || v->claim.unit.data[u].old != lo || icf_v_removed(&v->claim, u) ||
	    !((v->claim.unit.data[u].flags & ICF_V_FOLDED) || v->claim.unit.data[u].shared))
		return;
	struct icf_vowner *slot = VEC_PUSH(&d->owner);
	if (slot)
		*slot = (struct icf_vowner){ u, die };
	else
		d->log->nomem = true;
}

/* Removes duplicates among the owners from FROM on, which are of one DIE. */
static void single_owners(struct icf_vdebug *d, size_t from)
{
	size_t n = from;
	if (d->owner.len > from + 1)
		qsort(d->owner.data + from, d->owner.len - from, sizeof *d->owner.data,
		      owner_order);
	for (size_t i = from; i < d->owner.len; i++)
		if (i == from || d->owner.data[i].unit != d->owner.data[n - 1].unit)
			d->owner.data[n++] = d->owner.data[i];
	d->owner.len = n;
}

/* Is VA the image of a bound of a range of DIE A of IN, or of the range's part in some unit? */
static bool is_image(const struct icf_vdebug *d, Dwarf_Die *a, uint64_t va)
{
	const struct icf_v *v = d->v;
	Dwarf_Addr base, lo, hi;
	uint64_t want;
	for (ptrdiff_t off = 0; (off = dwarf_ranges(a, off, &base, &lo, &hi)) > 0;) {
		if (icf_vd_address(d, ICF_VD_POINT, lo, va, &want) ||
		    icf_vd_address(d, ICF_VD_END, hi, va, &want))
			return true;
		uint32_t u = icf_v_find_new(&v->claim, va);
		/* A unit in the middle of the range. */
		for (uint32_t i = icf_v_find(&v->claim, lo);
		     u != ICF_V_NONE && i != ICF_V_NONE && i < v->claim.unit.len &&
		     v->claim.unit.data[i].old < hi;
		     i++)
			if (v->claim.unit.data[i].body == va)
				return true;
	}
	return false;
}

/* Is VA where a range of DIE A would be, whose code was removed? */
static bool is_removed(const struct icf_vdebug *d, Dwarf_Die *a, uint64_t va)
{
	const struct icf_vclaim *c = &d->v->claim;
	Dwarf_Addr base, lo, hi;
	for (ptrdiff_t off = 0; (off = dwarf_ranges(a, off, &base, &lo, &hi)) > 0;) {
		uint32_t u = icf_v_find(c, lo);
		if (icf_v_removed(c, u) && va == lo - c->unit.data[u].old)
			return true;
	}
	return false;
}

struct range {
	uint64_t lo, hi;
};
typedef VEC(struct range) range_list;

static void add_range(struct icf_vdebug *d, range_list *list, uint64_t lo, uint64_t hi)
{
	struct range *slot = VEC_PUSH(list);
	if (slot)
		*slot = (struct range){ lo, hi };
	else
		d->log->nomem = true;
}

static int range_order(const void *a, const void *b)
{
	const struct range *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi < y->hi ? -1 : x->hi > y->hi;
}

/* Ranges of code that the linker left out must be the same, in any order. */
static bool dead_ranges_same(range_list *a, range_list *b)
{
	if (a->len != b->len)
		return false;
	if (!a->len)
		return true;
	qsort(a->data, a->len, sizeof *a->data, range_order);
	qsort(b->data, b->len, sizeof *b->data, range_order);
	for (size_t i = 0; i < a->len; i++)
		if (range_order(&a->data[i], &b->data[i]) != 0)
			return false;
	return true;
}

/* Can the unit's range become several?  Ranges replace DW_AT_high_pc.  Its form may be too small
 * for them (64-bit DWARF with DW_FORM_data4).  Thunks, away from the rest, then have no unit. */
static bool has_room(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Die die;
	uint8_t offset_size = 0;
	if (dwarf_hasattr(unit, DW_AT_ranges) || !dwarf_attr(unit, DW_AT_high_pc, &attr) ||
	    !dwarf_cu_die(unit->cu, &die, NULL, NULL, NULL, &offset_size, NULL, NULL))
		return true;
	return attr.form == DW_FORM_addr || attr.form == DW_FORM_data8 ||
	       (attr.form == DW_FORM_data4 && offset_size == 4);
}

/* A correct list: the units of which it made DIEs owners, and what it loses. */
struct kept {
	uint32_t id;
	VEC(uint32_t) owner;
	overlay_list lost;
};
struct icf_vranges {
	VEC(struct kept) v; /* by id */
};

void icf_vd_ranges_deinit(struct icf_vdebug *d)
{
	struct icf_vranges *r = d->ranges;
	for (size_t i = 0; r && i < r->v.len; i++) {
		VEC_FREE(&r->v.data[i].owner);
		VEC_FREE(&r->v.data[i].lost);
	}
	if (r)
		VEC_FREE(&r->v);
	free(r);
	d->ranges = NULL;
}

/* Records that the list of KEY, with OWNER[0 .. N) and LOST, is correct. */
static void keep_list(struct icf_vdebug *d, const struct icf_vkey *key,
		      const struct icf_vowner *owner, size_t n, const overlay_list *lost)
{
	struct icf_vranges *r = d->ranges ? d->ranges : calloc(1, sizeof *r);
	d->ranges = r;
	struct kept k = { 0 }, *slot = r ? VEC_PUSH(&r->v) : NULL;
	if (!slot) {
		d->log->nomem = true;
		return;
	}
	*slot = k;
	slot->id = icf_vseen_add(d, key);
	if (!VEC_RESERVE(&slot->owner, n) || !VEC_RESERVE(&slot->lost, lost->len)) {
		d->log->nomem = true;
		return;
	}
	for (size_t i = 0; i < n; i++)
		slot->owner.data[slot->owner.len++] = owner[i].unit;
	for (size_t i = 0; i < lost->len; i++)
		slot->lost.data[slot->lost.len++] = lost->data[i];
}

/* The list of KEY was correct for another DIE, so it is for this one.  The time is linear in the
 * overlay's entries for it. */
static void repeat_list(struct icf_vdebug *d, const struct icf_vkey *key, Dwarf_Die *die,
			bool overlaid)
{
	struct icf_vranges *r = d->ranges;
	uint32_t id = icf_vseen_add(d, key);
	size_t i = LOWER_BOUND(0, r->v.len, mid, r->v.data[mid].id < id);
	struct kept *k = i < r->v.len && r->v.data[i].id == id ? &r->v.data[i] : NULL;
	d->log->checked[ICF_VC_DIE_RANGE]++;
	for (size_t j = 0; k && j < k->owner.len; j++) {
		struct icf_vowner *slot = VEC_PUSH(&d->owner);
		if (slot)
			*slot = (struct icf_vowner){ k->owner.data[j],
						     (uint64_t)dwarf_dieoffset(die) };
		else
			d->log->nomem = true;
	}
	if (k && overlaid)
		check_overlay(d, die, dwarf_tag(die), &k->lost);
}

/* The key for the ranges of both DIEs, if both are lists that others may share. */
static bool ranges_key(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, bool dead,
		       struct icf_vkey *ret)
{
	Dwarf_Attribute x, y;
	int tag = dwarf_tag(a);
	if (tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit ||
	    !dwarf_attr(a, DW_AT_ranges, &x) || !dwarf_attr(b, DW_AT_ranges, &y) ||
	    dwarf_hasattr(a, DW_AT_high_pc) || dwarf_hasattr(b, DW_AT_high_pc))
		return false;
	return icf_vseen_list(d, ICF_VSEEN_RANGES, (uint64_t)dead << 1 | (tag == DW_TAG_subprogram),
			      &x, &y, ret);
}

/* The ranges of DIE A in IN and those of B in OUT. */
struct ranges {
	Dwarf_Die *a, *b;
	bool dead;
	int tag;
	size_t n; /* ranges on both sides */
	struct icf_vset want, have;
	range_list dead_in, dead_out; /* of code that the linker left out */
	overlay_list lost;
	char buf[200];
};

/* If nothing of folded functions is kept, their ranges may be empty ones anywhere. */
static bool empties_count(const struct icf_vdebug *d)
{
	return d->policy != DWR_FOLDED_DROP;
}

/* Reads what is expected, and adds the DIE to the owners of units.  false: libdw cannot read the
 * list. */
static bool expect_ranges(struct icf_vdebug *d, struct ranges *r)
{
	size_t n_owners = d->owner.len;
	uint64_t die = (uint64_t)dwarf_dieoffset(r->a);
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	while ((off = dwarf_ranges(r->a, off, &base, &lo, &hi)) > 0) {
		r->n++;
		/* A function without code may be the last one. */
		const bool code = icf_v_in_exec(&d->v->claim, lo) ||
				  (lo >= hi && icf_v_in_end(&d->v->claim, lo));
		if (r->dead || ((lo < hi || empties_count(d)) && !code))
			add_range(d, &r->dead_in, lo, hi);
		if (lo >= hi || r->dead || !icf_v_in_exec(&d->v->claim, lo))
			continue;
		icf_vset_expect(&r->want, d, lo, hi);
		if (r->tag == DW_TAG_subprogram)
			note_owner(d, die, lo);
		lose(d, &r->lost, die, lo, hi);
	}
	single_owners(d, n_owners);
	return off == 0;
}

/* Reads the ranges of OUT.  NULL, or what is wrong with one of them. */
static const char *read_ranges(struct icf_vdebug *d, struct ranges *r)
{
	const char *why = NULL;
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	while ((off = dwarf_ranges(r->b, off, &base, &lo, &hi)) > 0) {
		r->n++;
		bool counts = lo < hi || (empties_count(d) && !is_removed(d, r->a, lo));
		const bool code = icf_v_out_exec(&d->v->claim, lo) ||
				  (lo >= hi && icf_v_out_end(&d->v->claim, lo));
		if (r->dead || (counts && !code))
			add_range(d, &r->dead_out, lo, hi);
		if (lo >= hi && !r->dead && code && (lo > hi || !is_image(d, r->a, lo))) {
			snprintf(
				r->buf, sizeof r->buf,
				"expected empty ranges where the input's begin, found 0x%llx to 0x%llx",
				ICF_VX(lo), ICF_VX(hi));
			why = r->buf;
		} else if (!r->dead && !icf_vset_add(&r->have, d, lo, hi) &&
			   icf_v_out_exec(&d->v->claim, lo)) {
			snprintf(r->buf, sizeof r->buf,
				 "expected code to the end, found 0x%llx to 0x%llx", ICF_VX(lo),
				 ICF_VX(hi));
			why = r->buf;
		}
	}
	return off < 0 ? "expected ranges that libdw reads, found others" : why;
}

/* NULL if the ranges of OUT are those that are expected; otherwise the difference. */
static const char *ranges_differ(struct icf_vdebug *d, struct ranges *r)
{
	bool owner = r->tag == DW_TAG_subprogram || r->tag == DW_TAG_compile_unit ||
		     r->tag == DW_TAG_partial_unit;
	const char *why = read_ranges(d, r);
	if (!owner)
		r->want.thunk.len = 0;
	if (!why)
		why = icf_vset_differ(&r->want, &r->have, d,
				      owner && d->policy == DWR_FOLDED_OVERLAY &&
					      (r->tag == DW_TAG_subprogram || has_room(r->a)),
				      r->buf, sizeof r->buf);
	if (!why && !dead_ranges_same(&r->dead_in, &r->dead_out))
		why = "expected the ranges of code that was left out to be what they were, found others";
	return why;
}

static void free_ranges(struct ranges *r)
{
	VEC_FREE(&r->lost);
	VEC_FREE(&r->dead_in);
	VEC_FREE(&r->dead_out);
	icf_vset_free(&r->want);
	icf_vset_free(&r->have);
}

void icf_vd_ranges(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, bool dead)
{
	struct icf_vkey key = { 0 };
	bool keyed = ranges_key(d, a, b, dead, &key),
	     overlaid = d->policy == DWR_FOLDED_OVERLAY && d->v->claim.has_note;
	size_t n_owners = d->owner.len;
	char name[200];
	struct icf_vkey broken = key;
	broken.v[0] ^= ICF_VSEEN_RANGES ^ ICF_VSEEN_UNREADABLE;
	if (keyed && icf_vseen(d, &broken))
		return;
	if (keyed && icf_vseen(d, &key)) {
		repeat_list(d, &key, a, overlaid);
		return;
	}
	struct ranges r = { .a = a, .b = b, .dead = dead, .tag = dwarf_tag(a) };
	if (expect_ranges(d, &r)) {
		const char *why = ranges_differ(d, &r);
		d->log->checked[ICF_VC_DIE_RANGE]++;
		if (why)
			icf_vlog_bad(d->log, ICF_VC_DIE_RANGE, "ranges: %s: %s",
				     icf_vd_die(a, name), why);
		else if (keyed && r.n > ICF_VSEEN_LONG)
			keep_list(d, &key, d->owner.data + n_owners, d->owner.len - n_owners,
				  &r.lost);
		if (overlaid)
			check_overlay(d, a, r.tag, &r.lost);
	} else if (keyed && r.n > ICF_VSEEN_LONG) /* libdw cannot tell even for the input */
		icf_vseen_add(d, &broken);
	d->log->nomem |= r.want.nomem | r.have.nomem;
	free_ranges(&r);
}

#define NO_START UINT64_MAX /* of a range without code */

/* Is the only range of both DIEs moved?  *LO: where IN's starts. */
static bool bounds_moved(struct icf_vdebug *d, const struct icf_vbounds *x,
			 const struct icf_vbounds *y, uint64_t *lo)
{
	Dwarf_Addr a, b;
	Dwarf_Word na, nb;
	uint32_t unit;
	*lo = NO_START;
	if (x->low->form != DW_FORM_addr || y->low->form != DW_FORM_addr ||
	    x->high->form == DW_FORM_addr || x->high->form != y->high->form ||
	    dwarf_formaddr(x->low, &a) || dwarf_formaddr(y->low, &b) ||
	    dwarf_formudata(x->high, &na) || dwarf_formudata(y->high, &nb))
		return false;
	*lo = na ? a : NO_START;
	return icf_vshift_range(d, a, a + na, b, b + nb, &unit);
}

bool icf_vd_ranges_moved(struct icf_vdebug *d, struct icf_vdie_pair *p, const struct icf_vbounds *x,
			 const struct icf_vbounds *y)
{
	struct icf_vshift s;
	enum icf_vshift_step step;
	overlay_list none = { 0 };
	uint64_t start[ICF_VSEEN_LONG / 2], die = (uint64_t)dwarf_dieoffset(&p->a);
	size_t n = 0, n_owners = d->owner.len;
	/* The usual forms: a start and a size, or a list. */
	if (p->dead || (x->high != NULL) == (x->list != NULL) || !x->high != !y->high ||
	    !x->list != !y->list || (x->high && (!x->low || !y->low)))
		return false;
	if (x->high) {
		if (!bounds_moved(d, x, y, &start[n++]))
			return false;
	} else {
		if (!icf_vshift_begin(d, true, x->list, y->list, &s))
			return false;
		for (; (step = icf_vshift_next(&s)) == ICF_VSHIFT_SAME;
		     start[n++] = s.empty ? NO_START : s.lo)
			if (n == sizeof start / sizeof *start)
				return false;
		if (step != ICF_VSHIFT_END)
			return false;
	}
	d->log->checked[ICF_VC_DIE_RANGE]++;
	for (size_t i = 0; i < n && p->tag == DW_TAG_subprogram; i++)
		if (start[i] != NO_START)
			note_owner(d, die, start[i]);
	single_owners(d, n_owners);
	if (d->policy == DWR_FOLDED_OVERLAY && d->v->claim.has_note)
		check_overlay(d, &p->a, p->tag, &none);
	return true;
}

/* A few ranges of a DIE. */
struct few {
	struct span {
		uint64_t lo, hi;
	} v[ICF_VSEEN_LONG / 2];
	size_t n;
};

/* Reads the ranges of side I (0: IN, 1: OUT), whose attributes are X and Y on both sides; false:
 * there are more, or they have another form than usual. */
static bool read_few(struct icf_vdebug *d, const struct icf_vbounds *x, const struct icf_vbounds *y,
		     int i, struct few *ret)
{
	const struct icf_vbounds *z = i ? y : x;
	struct icf_vshift s;
	ret->n = 0;
	if (z->high) {
		Dwarf_Addr lo;
		Dwarf_Word size;
		if (!z->low || z->low->form != DW_FORM_addr || z->high->form == DW_FORM_addr ||
		    dwarf_formaddr(z->low, &lo) || dwarf_formudata(z->high, &size))
			return false;
		ret->v[ret->n++] = (struct span){ lo, lo + size };
		return true;
	}
	if (!icf_vshift_begin(d, true, x->list, y->list, &s))
		return false;
	uint64_t lo, hi;
	bool more;
	while (icf_vshift_one(&s, i, &more, &lo, &hi) && more) {
		if (ret->n == sizeof ret->v / sizeof *ret->v)
			return false;
		ret->v[ret->n++] = (struct span){ lo, hi };
	}
	return !more;
}

bool icf_vd_ranges_lost(struct icf_vdebug *d, struct icf_vdie_pair *p, const struct icf_vbounds *x,
			const struct icf_vbounds *y)
{
	const struct icf_vclaim *c = &d->v->claim;
	const uint64_t die = (uint64_t)dwarf_dieoffset(&p->a);
	const size_t n_owners = d->owner.len;
	struct few in, out;
	if (p->dead || p->folded == ICF_V_NONE || d->policy != DWR_FOLDED_OVERLAY || !c->has_note ||
	    (x->high != NULL) == (x->list != NULL) || !x->high != !y->high ||
	    !x->list != !y->list || !read_few(d, x, y, 0, &in) || !read_few(d, x, y, 1, &out))
		return false;
	const struct icf_vunit *u = &c->unit.data[p->folded];
	if ((u->flags & ICF_V_REMOVED) || u->thunk)
		return false;
	for (size_t i = 0; i < in.n; i++)
		if (in.v[i].lo < u->old || in.v[i].hi <= in.v[i].lo || in.v[i].hi > u->end)
			return false;
	/* What is left is empty, at the images of starts. */
	for (size_t k = 0; k < out.n; k++) {
		size_t i = 0;
		while (i < in.n && out.v[k].lo != u->body + (in.v[i].lo - u->old))
			i++;
		if (i == in.n || out.v[k].lo != out.v[k].hi)
			return false;
	}
	overlay_list lost = { 0 };
	d->log->checked[ICF_VC_DIE_RANGE]++;
	for (size_t i = 0; i < in.n; i++) {
		if (p->tag == DW_TAG_subprogram)
			note_owner(d, die, in.v[i].lo);
		lose(d, &lost, die, in.v[i].lo, in.v[i].hi);
	}
	single_owners(d, n_owners);
	check_overlay(d, &p->a, p->tag, &lost);
	VEC_FREE(&lost);
	return true;
}
