/* verify_die.c: every DIE of a unit against the DIE at the same offset of OUT.
 *
 * Both trees are walked side by side.  Attributes that hold no address must be equal; addresses, ranges, location lists and
 * expressions must be what the map makes of IN's.  A folded function's DIE, and those of its scopes, cover nothing but its
 * thunk any more; what they lost is in the overlay.  Most DIEs (types, declarations) have no attribute that could change:
 * for those it is enough that the same abbreviation is followed by the same bytes. */
#include "elfrw/search.h"
#include "icf/verify_debug.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif
#define MAX_ATTRS 96
#define MAX_DEPTH 1024

struct attrs {
	Dwarf_Attribute v[MAX_ATTRS];
	unsigned n;
};

/* Where the walk is. */
struct place {
	Dwarf_Die a, b;
	bool dead;	 /* inside of a function that the linker left out: its addresses mean nothing */
	uint32_t folded; /* the folded unit of the function around, or NONE */
};

/* Abbreviation A of IN and B of OUT, by address: SAME: equal, and nothing in it can change. */
struct abbrev {
	const void *a, *b;
	bool same;
};

void icf_vd_tree_deinit(struct icf_vdebug *d)
{
	free(d->abbrevs);
	d->abbrevs = NULL;
	d->n_abbrevs = d->cap_abbrevs = 0;
}

static bool is_plain(unsigned name, unsigned form)
{
	switch (name) {
	case DW_AT_low_pc:
	case DW_AT_high_pc:
	case DW_AT_entry_pc:
	case DW_AT_ranges:
	case DW_AT_stmt_list:
	case DW_AT_macros:
	case DW_AT_macro_info:
	case DW_AT_GNU_macros:
	case DW_AT_call_return_pc:
	case DW_AT_call_pc:
	case DW_AT_GNU_locviews:
	case DW_AT_LLVM_stmt_sequence:
		return false;
	}
	switch (form) {
	case DW_FORM_string:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_flag:
	case DW_FORM_flag_present:
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data16:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_implicit_const:
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
	case DW_FORM_ref_addr:
	case DW_FORM_ref_sig8:
		return true;
	case DW_FORM_data4:
	case DW_FORM_data8:
		/* In DWARF 2 and 3 these may be places in other sections. */
		return name == DW_AT_byte_size || name == DW_AT_decl_line || name == DW_AT_const_value ||
		       name == DW_AT_decl_file || name == DW_AT_call_line;
	default:
		return false;
	}
}

static bool compare_abbrevs(Dwarf_Abbrev *a, Dwarf_Abbrev *b)
{
	size_t na, nb;
	if (dwarf_getabbrevcode(a) != dwarf_getabbrevcode(b) || dwarf_getabbrevtag(a) != dwarf_getabbrevtag(b) ||
	    dwarf_abbrevhaschildren(a) != dwarf_abbrevhaschildren(b) || dwarf_getattrcnt(a, &na) ||
	    dwarf_getattrcnt(b, &nb) || na != nb)
		return false;
	for (size_t i = 0; i < na; i++) {
		unsigned xn, xf, yn, yf;
		Dwarf_Sword xc = 0, yc = 0;
		if (dwarf_getabbrevattr_data(a, i, &xn, &xf, &xc, NULL) ||
		    dwarf_getabbrevattr_data(b, i, &yn, &yf, &yc, NULL))
			return false;
		if (xn != yn || xf != yf || (xf == DW_FORM_implicit_const && xc != yc) || !is_plain(xn, xf))
			return false;
	}
	return true;
}

/* Are the abbreviations of A and B the same, and such that nothing may differ?  Looked up in a table of the unit at hand. */
static bool plain(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	struct abbrev *t = d->abbrevs;
	if (d->n_abbrevs * 2 >= d->cap_abbrevs) {
		size_t cap = d->cap_abbrevs ? d->cap_abbrevs * 2 : 1024;
		struct abbrev *more = calloc(cap, sizeof *more);
		if (!more)
			return false;
		for (size_t i = 0; i < d->cap_abbrevs; i++) {
			if (!t[i].a)
				continue;
			size_t k = ((uintptr_t)t[i].a >> 4) & (cap - 1);
			while (more[k].a)
				k = (k + 1) & (cap - 1);
			more[k] = t[i];
		}
		free(t);
		d->abbrevs = t = more;
		d->cap_abbrevs = cap;
	}
	size_t k = ((uintptr_t)a->abbrev >> 4) & (d->cap_abbrevs - 1);
	while (t[k].a && t[k].a != a->abbrev)
		k = (k + 1) & (d->cap_abbrevs - 1);
	if (t[k].a && t[k].b == b->abbrev)
		return t[k].same;
	d->n_abbrevs += !t[k].a;
	t[k] = (struct abbrev){ a->abbrev, b->abbrev, compare_abbrevs(a->abbrev, b->abbrev) };
	return t[k].same;
}

static int collect(Dwarf_Attribute *attr, void *arg)
{
	struct attrs *s = arg;
	if (s->n < MAX_ATTRS)
		s->v[s->n++] = *attr;
	return DWARF_CB_OK;
}

static bool has(const struct attrs *s, unsigned code)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->v[i].code == code)
			return true;
	return false;
}

/* May the value be an expression or a list of them? */
static bool is_location(unsigned code)
{
	switch (code) {
	case DW_AT_location:
	case DW_AT_string_length:
	case DW_AT_return_addr:
	case DW_AT_data_member_location:
	case DW_AT_frame_base:
	case DW_AT_segment:
	case DW_AT_static_link:
	case DW_AT_use_location:
	case DW_AT_vtable_elem_location:
	case DW_AT_data_location:
	case DW_AT_call_value:
	case DW_AT_call_data_value:
	case DW_AT_call_data_location:
	case DW_AT_call_target:
	case DW_AT_call_target_clobbered:
	case DW_AT_GNU_call_site_value:
	case DW_AT_GNU_call_site_data_value:
	case DW_AT_GNU_call_site_target:
	case DW_AT_GNU_call_site_target_clobbered:
	case DW_AT_lower_bound:
	case DW_AT_upper_bound:
	case DW_AT_count:
	case DW_AT_byte_size:
	case DW_AT_allocated:
	case DW_AT_associated:
	case DW_AT_rank:
		return true;
	default:
		return false;
	}
}

static bool is_block(unsigned form)
{
	return form == DW_FORM_exprloc || form == DW_FORM_block || form == DW_FORM_block1 || form == DW_FORM_block2 ||
	       form == DW_FORM_block4;
}

static bool is_address(unsigned form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx || form == DW_FORM_addrx1 || form == DW_FORM_addrx2 ||
	       form == DW_FORM_addrx3 || form == DW_FORM_addrx4 || form == DW_FORM_GNU_addr_index;
}

static bool is_list(Dwarf_Attribute *x)
{
	switch (x->form) {
	case DW_FORM_sec_offset:
	case DW_FORM_loclistx:
		return true;
	case DW_FORM_data4:
	case DW_FORM_data8:
		return x->code != DW_AT_data_member_location && x->code != DW_AT_byte_size &&
		       x->code != DW_AT_upper_bound && x->code != DW_AT_lower_bound && x->code != DW_AT_count;
	default:
		return false;
	}
}

/* Are two values that hold no address of code the same? */
static bool same_value(Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	switch (x->form) {
	case DW_FORM_flag:
	case DW_FORM_flag_present: {
		bool a, b;
		return !dwarf_formflag(x, &a) && !dwarf_formflag(y, &b) && a == b;
	}
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
	case DW_FORM_udata:
	case DW_FORM_sdata:
	case DW_FORM_implicit_const:
	case DW_FORM_sec_offset: {
		Dwarf_Word a, b;
		return !dwarf_formudata(x, &a) && !dwarf_formudata(y, &b) && a == b;
	}
	case DW_FORM_data16:
		return y->form == x->form && memcmp(x->valp, y->valp, 16) == 0;
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8:
		return y->form == x->form && memcmp(x->valp, y->valp, 8) == 0;
	case DW_FORM_string:
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index: {
		const char *a = dwarf_formstring(x), *b = dwarf_formstring(y);
		return (!a && !b) || (a && b && strcmp(a, b) == 0);
	}
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
	case DW_FORM_ref_addr: {
		Dwarf_Die a, b;
		if (!dwarf_formref_die(x, &a))
			return !dwarf_formref_die(y, &b);
		return dwarf_formref_die(y, &b) && dwarf_dieoffset(&a) == dwarf_dieoffset(&b);
	}
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt:
	case DW_FORM_strp_sup:
	case DW_FORM_ref_sup4:
		return y->form == x->form && memcmp(x->valp, y->valp, 4) == 0;
	default:
		if (is_block(x->form)) {
			Dwarf_Block a, b;
			return !dwarf_formblock(x, &a) && !dwarf_formblock(y, &b) && a.length == b.length &&
			       memcmp(a.data, b.data, a.length) == 0;
		}
		return x->form == y->form;
	}
}

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

/* What range [LO, HI) of IN loses. */
static void lose(struct icf_vdebug *d, overlay_list *list, uint64_t die, uint64_t lo, uint64_t hi)
{
	const struct icf_v *v = d->v;
	for (uint64_t at = lo; at < hi;) {
		uint32_t i = icf_v_find(v, at);
		if (i == ICF_V_NONE) {
			/* Padding: on to the next unit. */
			uint32_t a = 0, b = (uint32_t)v->unit.len;
			while (a < b) {
				uint32_t mid = a + (b - a) / 2;
				if (v->unit.data[mid].old <= at)
					a = mid + 1;
				else
					b = mid;
			}
			if (a == v->unit.len)
				return;
			at = v->unit.data[a].old;
			continue;
		}
		const struct icf_vunit *u = &v->unit.data[i];
		uint64_t to = hi < u->end ? hi : u->end;
		if (u->flags & ICF_V_FOLDED) {
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

/* The overlay of the DIE has exactly what it lost. */
static void check_overlay(struct icf_vdebug *d, struct place *p, overlay_list *lost)
{
	uint64_t die = (uint64_t)dwarf_dieoffset(&p->a);
	size_t n = 0, lo = LOWER_BOUND(0, d->n_overlay, mid, d->overlay[mid].die < die);
	while (lo + n < d->n_overlay && d->overlay[lo + n].die == die)
		n++;
	d->overlay_seen += n;
	int tag = dwarf_tag(&p->a);
	bool unit = tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit;
	if (!n && (!lost->len || unit))
		return;
	d->log->checked[ICF_VC_OVERLAY]++;
	if (lost->len)
		qsort(lost->data, lost->len, sizeof *lost->data, overlay_order);
	bool same = n == lost->len;
	for (size_t i = 0; i < n && same; i++)
		same = overlay_cmp(&d->overlay[lo + i], &lost->data[i]) == 0;
	char name[200];
	if (!same)
		icf_vlog_bad(d->log, ICF_VC_OVERLAY, "overlay: %s: expected the %zu ranges that it lost, found %zu%s",
			     icf_vd_die(&p->a, name), lost->len, n, n == lost->len ? " others" : "");
}

static void note_owner(struct icf_vdebug *d, uint64_t die, uint64_t lo)
{
	const struct icf_v *v = d->v;
	uint32_t u = icf_v_find(v, lo);
	if (u == ICF_V_NONE || v->unit.data[u].old != lo ||
	    !((v->unit.data[u].flags & ICF_V_FOLDED) || v->unit.data[u].shared))
		return;
	for (size_t i = d->owner.len; i > 0 && d->owner.data[i - 1].die == die; i--)
		if (d->owner.data[i - 1].unit == u)
			return;
	struct icf_vowner *slot = VEC_PUSH(&d->owner);
	if (slot)
		*slot = (struct icf_vowner){ u, die };
	else
		d->log->nomem = true;
}

/* Does a range of DIE A of IN, or the part of one in some unit, begin or end where VA is the image of? */
static bool is_image(const struct icf_vdebug *d, Dwarf_Die *a, uint64_t va)
{
	const struct icf_v *v = d->v;
	Dwarf_Addr base, lo, hi;
	uint64_t want;
	for (ptrdiff_t off = 0; (off = dwarf_ranges(a, off, &base, &lo, &hi)) > 0;) {
		if (icf_vd_address(d, ICF_VD_POINT, lo, va, &want) || icf_vd_address(d, ICF_VD_END, hi, va, &want))
			return true;
		uint32_t u = icf_v_find_new(v, va);
		/* A unit in the middle of the range. */
		for (uint32_t i = icf_v_find(v, lo);
		     u != ICF_V_NONE && i != ICF_V_NONE && i < v->unit.len && v->unit.data[i].old < hi; i++)
			if (v->unit.data[i].body == va)
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

/* Ranges of code that the linker left out are the same, in any order. */
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

/* Can the unit's range become several?  Ranges take the place of DW_AT_high_pc; its form may be too small for them (64-bit DWARF
 * with DW_FORM_data4), and thunks, away from the rest, are without a unit then. */
static bool has_room(Dwarf_Die *unit)
{
	Dwarf_Attribute attr;
	Dwarf_Die die;
	uint8_t offset_size = 0;
	if (dwarf_hasattr(unit, DW_AT_ranges) || !dwarf_attr(unit, DW_AT_high_pc, &attr) ||
	    !dwarf_cu_die(unit->cu, &die, NULL, NULL, NULL, &offset_size, NULL, NULL))
		return true;
	return attr.form == DW_FORM_addr || attr.form == DW_FORM_data8 || (attr.form == DW_FORM_data4 && offset_size == 4);
}

static void check_ranges(struct icf_vdebug *d, struct place *p)
{
	struct icf_vset want = { 0 }, have = { 0 };
	range_list dead_in = { 0 }, dead_out = { 0 };
	/* With nothing kept of folded functions their ranges are empty ones anywhere. */
	const bool empties = d->policy != DWR_FOLDED_DROP;
	overlay_list lost = { 0 };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t off = 0;
	int tag = dwarf_tag(&p->a);
	bool owner = tag == DW_TAG_subprogram || tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit,
	     readable = true;
	const char *why = NULL;
	char buf[200], name[200];
	while ((off = dwarf_ranges(&p->a, off, &base, &lo, &hi)) > 0) {
		if (p->dead || ((lo < hi || empties) && !icf_v_in_exec(d->v, lo)))
			add_range(d, &dead_in, lo, hi);
		if (lo >= hi || p->dead || !icf_v_in_exec(d->v, lo))
			continue;
		icf_vset_expect(&want, d, lo, hi);
		if (tag == DW_TAG_subprogram)
			note_owner(d, (uint64_t)dwarf_dieoffset(&p->a), lo);
		lose(d, &lost, (uint64_t)dwarf_dieoffset(&p->a), lo, hi);
	}
	if (off < 0)
		goto out; /* libdw cannot tell for the input */
	off = 0;
	while ((off = dwarf_ranges(&p->b, off, &base, &lo, &hi)) > 0) {
		if (p->dead || ((lo < hi || empties) && !icf_v_out_exec(d->v, lo)))
			add_range(d, &dead_out, lo, hi);
		if (lo >= hi && !p->dead && icf_v_out_exec(d->v, lo) && (lo > hi || !is_image(d, &p->a, lo))) {
			snprintf(buf, sizeof buf,
				 "expected empty ranges where the input's begin, found 0x%llx to 0x%llx", ICF_VX(lo),
				 ICF_VX(hi));
			why = buf;
		} else if (!p->dead && !icf_vset_add(&have, d, lo, hi) && icf_v_out_exec(d->v, lo)) {
			snprintf(buf, sizeof buf, "expected code to the end, found 0x%llx to 0x%llx", ICF_VX(lo),
				 ICF_VX(hi));
			why = buf;
		}
	}
	if (off < 0) {
		readable = false;
		why = "expected ranges that libdw reads, found others";
	}
	if (!owner)
		want.thunk.len = 0;
	if (!why && readable)
		why = icf_vset_differ(&want, &have, d,
				      owner && d->policy == DWR_FOLDED_OVERLAY && (tag == DW_TAG_subprogram || has_room(&p->a)), buf, sizeof buf);
	if (!why && readable && !dead_ranges_same(&dead_in, &dead_out))
		why = "expected the ranges of code that was left out to be what they were, found others";
	d->log->checked[ICF_VC_DIE_RANGE]++;
	if (why)
		icf_vlog_bad(d->log, ICF_VC_DIE_RANGE, "ranges: %s: %s", icf_vd_die(&p->a, name), why);
	if (d->policy == DWR_FOLDED_OVERLAY && d->v->has_note)
		check_overlay(d, p, &lost);
out:
	d->log->nomem |= want.nomem | have.nomem;
	VEC_FREE(&lost);
	VEC_FREE(&dead_in);
	VEC_FREE(&dead_out);
	icf_vset_free(&want);
	icf_vset_free(&have);
}

static void check_address(struct icf_vdebug *d, struct place *p, Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	int tag = dwarf_tag(&p->a);
	bool unit_die = tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit || tag == DW_TAG_type_unit ||
			tag == DW_TAG_skeleton_unit;
	Dwarf_Addr a, b;
	uint64_t want;
	enum icf_vd_how how = ICF_VD_POINT;
	char name[200];
	/* The base of a unit is used up by the ranges, which are compared as sets; but beside a list it is what it was, its
	 * image, none, or where a range begins. */
	if (unit_die && x->code == DW_AT_low_pc) {
		Dwarf_Addr base, lo, hi;
		bool ok = dwarf_formaddr(x, &a) || !dwarf_hasattr(&p->b, DW_AT_ranges);
		if (!ok && dwarf_formaddr(y, &b) == 0) {
			ok = a == b || !b || icf_vd_address(d, how, a, b, &want);
			for (ptrdiff_t off = 0; !ok && (off = dwarf_ranges(&p->b, off, &base, &lo, &hi)) > 0;)
				ok = lo == b;
		}
		if (!ok)
			icf_vlog_bad(d->log, ICF_VC_DIE_ADDRESS,
				     "base: %s (0x%llx): expected it or its image, found another",
				     icf_vd_die(&p->a, name), ICF_VX(a));
		return;
	}
	if (dwarf_formaddr(x, &a))
		return;
	d->log->checked[ICF_VC_DIE_ADDRESS]++;
	if (dwarf_formaddr(y, &b)) {
		icf_vlog_bad(d->log, ICF_VC_DIE_ADDRESS, "address: %s, attribute 0x%x: expected one, found none",
			     icf_vd_die(&p->a, name), x->code);
		return;
	}
	if (x->code == DW_AT_call_return_pc || (tag == DW_TAG_GNU_call_site && x->code == DW_AT_low_pc))
		how = ICF_VD_END;
	if (icf_vd_address(d, how, a, b, &want) || (p->dead && a == b))
		return;
	/* A scope of a folded function may begin anywhere, as long as it is empty. */
	if (p->folded != ICF_V_NONE && x->code == DW_AT_low_pc && d->policy == DWR_FOLDED_DROP)
		return;
	icf_vlog_bad(d->log, ICF_VC_DIE_ADDRESS,
		     "address: %s, attribute 0x%x (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
		     icf_vd_die(&p->a, name), x->code, ICF_VX(a), ICF_VX(want), ICF_VX(want), ICF_VX(b));
}

static void check_attr(struct icf_vdebug *d, struct place *p, struct attrs *sa, Dwarf_Attribute *x, struct attrs *sb,
		       Dwarf_Attribute *y)
{
	char name[200];
	switch (x->code) {
	case DW_AT_high_pc:
	case DW_AT_ranges:
	case DW_AT_stmt_list:
	case DW_AT_LLVM_stmt_sequence:
	case DW_AT_addr_base:
	case DW_AT_str_offsets_base:
	case DW_AT_rnglists_base:
	case DW_AT_loclists_base:
	case DW_AT_GNU_addr_base:
	case DW_AT_GNU_ranges_base:
	case DW_AT_macros:
	case DW_AT_GNU_macros:
		return; /* what they stand for is compared */
	case DW_AT_GNU_locviews:
		for (unsigned k = 0; k < sa->n && (p->folded == ICF_V_NONE || d->policy != DWR_FOLDED_DROP) && !p->dead;
		     k++)
			if (sa->v[k].code == DW_AT_location)
				icf_vd_views(d, &p->a, x, &sa->v[k], y, &sb->v[k]);
		return;
	}
	if (is_address(x->form))
		check_address(d, p, x, y);
	else if (is_location(x->code) && is_block(x->form)) {
		Dwarf_Op *a, *b;
		size_t na, nb;
		const char *why;
		if (dwarf_getlocation(x, &a, &na))
			why = same_value(x, y) ? NULL : "the same bytes";
		else
			why = dwarf_getlocation(y, &b, &nb) ? "an expression that libdw reads"
			      : p->dead			    ? NULL
							    : icf_vd_expr(d, x, a, na, y, b, nb);
		d->log->checked[ICF_VC_LOCATION]++;
		if (why)
			icf_vlog_bad(d->log, ICF_VC_LOCATION,
				     "expression: %s, attribute 0x%x: expected %s, found another",
				     icf_vd_die(&p->a, name), x->code, why);
	} else if (is_location(x->code) && is_list(x))
		icf_vd_loclist(d, &p->a, p->dead, p->folded, x, y, has(sa, DW_AT_GNU_locviews));
	else if (!same_value(x, y))
		icf_vlog_bad(d->log, ICF_VC_DIE,
			     "attribute: %s, 0x%x of form 0x%x: expected the same value, found another",
			     icf_vd_die(&p->a, name), x->code, x->form);
}

/* The DIE of a unit: its attributes by name, because one whose code came apart gets ranges for its bounds. */
static void check_unit_die(struct icf_vdebug *d, struct place *p, struct attrs *sa, struct attrs *sb)
{
	char name[200];
	if (has(sa, DW_AT_high_pc) || has(sa, DW_AT_ranges))
		check_ranges(d, p);
	for (unsigned i = 0; i < sa->n; i++) {
		unsigned k = 0, code = sa->v[i].code;
		while (k < sb->n && sb->v[k].code != code)
			k++;
		if (k < sb->n)
			check_attr(d, p, sa, &sa->v[i], sb, &sb->v[k]);
		else if (code != DW_AT_high_pc && code != DW_AT_low_pc && code != DW_AT_ranges)
			icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected attribute 0x%x, found none",
				     icf_vd_die(&p->a, name), code);
	}
	for (unsigned k = 0; k < sb->n; k++) {
		unsigned code = sb->v[k].code;
		if (!has(sa, code) && code != DW_AT_ranges && code != DW_AT_low_pc && code != DW_AT_rnglists_base &&
		    code != DW_AT_hi_user /* fills what a shorter encoding left */)
			icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected no attribute 0x%x, found one",
				     icf_vd_die(&p->a, name), code);
	}
}

/* The whole of one DIE. */
static void check_die(struct icf_vdebug *d, struct place *p)
{
	struct attrs sa, sb;
	Dwarf_Addr lo, hi, base;
	int tag = dwarf_tag(&p->a);
	char name[200];
	sa.n = sb.n = 0;
	if (dwarf_dieoffset(&p->a) != dwarf_dieoffset(&p->b) || tag != dwarf_tag(&p->b)) {
		icf_vlog_bad(d->log, ICF_VC_DIE,
			     "tree: %s: expected the same tag at the same place, found tag 0x%x at 0x%llx",
			     icf_vd_die(&p->a, name), (unsigned)dwarf_tag(&p->b), ICF_VX(dwarf_dieoffset(&p->b)));
		return;
	}
	dwarf_getattrs(&p->a, collect, &sa, 0);
	dwarf_getattrs(&p->b, collect, &sb, 0);
	bool unit = tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit;
	if (unit) {
		check_unit_die(d, p, &sa, &sb);
		return;
	}
	if (sa.n != sb.n) {
		icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected %u attributes, found %u", icf_vd_die(&p->a, name),
			     sa.n, sb.n);
		return;
	}
	if (tag == DW_TAG_subprogram && (has(&sa, DW_AT_low_pc) || has(&sa, DW_AT_ranges))) {
		p->folded = ICF_V_NONE;
		if (dwarf_lowpc(&p->a, &lo) && dwarf_ranges(&p->a, 0, &base, &lo, &hi) <= 0)
			lo = 0;
		p->dead = !icf_v_in_exec(d->v, lo);
		uint32_t u = icf_v_find(d->v, lo);
		if (!p->dead && u != ICF_V_NONE && (d->v->unit.data[u].flags & ICF_V_FOLDED))
			p->folded = u;
	}
	if (has(&sa, DW_AT_high_pc) || has(&sa, DW_AT_ranges))
		check_ranges(d, p);
	for (unsigned i = 0; i < sa.n; i++) {
		if (sa.v[i].code != sb.v[i].code) {
			icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected attribute 0x%x, found 0x%x",
				     icf_vd_die(&p->a, name), sa.v[i].code, sb.v[i].code);
			return;
		}
		check_attr(d, p, &sa, &sa.v[i], &sb, &sb.v[i]);
	}
}

/* DIE P ends where the DIEs NA and NB begin (NULL: not known): the quick way, if there is one. */
static void check(struct icf_vdebug *d, struct place *p, const void *na, const void *nb)
{
	d->log->checked[ICF_VC_DIE]++;
	if (na && nb && dwarf_tag(&p->a) == dwarf_tag(&p->b)) {
		size_t size = (size_t)((const char *)na - (const char *)p->a.addr),
		       other = (size_t)((const char *)nb - (const char *)p->b.addr);
		if (size == other && memcmp(p->a.addr, p->b.addr, size) == 0 && plain(d, &p->a, &p->b))
			return;
	}
	check_die(d, p);
}

struct elfrw_err *icf_vd_tree(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	struct place *stack = malloc(MAX_DEPTH * sizeof *stack);
	int depth = 0;
	char name[200];
	if (!stack)
		return &elfrw_err_nomem;
	if (d->abbrevs)
		memset(d->abbrevs, 0, d->cap_abbrevs * sizeof(struct abbrev));
	d->n_abbrevs = 0;
	stack[0] = (struct place){ .a = *a, .b = *b, .folded = ICF_V_NONE };
	for (bool more = true; more;) {
		struct place *p = &stack[depth], *c = p + 1;
		if (depth + 1 == MAX_DEPTH) {
			free(stack);
			return elfrw_error("%s: more than %d levels of DIEs", d->v->in.path, MAX_DEPTH);
		}
		/* Both sides must agree on having children, and on where they end. */
		dwarf_tag(&p->a);
		dwarf_tag(&p->b);
		int ra = dwarf_child(&p->a, &c->a), rb = dwarf_child(&p->b, &c->b);
		if (ra == 0 && rb == 0) {
			check(d, p, c->a.addr, c->b.addr);
			c->dead = p->dead;
			c->folded = p->folded;
			depth++;
			continue;
		}
		bool checked = false;
		if (ra != rb)
			icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected the same children, found others",
				     icf_vd_die(&p->a, name));
		for (more = false; depth > 0 && !more; depth -= !more) {
			p = &stack[depth];
			Dwarf_Die na, nb;
			ra = dwarf_siblingof(&p->a, &na);
			rb = dwarf_siblingof(&p->b, &nb);
			if (!checked)
				check(d, p, ra == 0 ? na.addr : NULL, rb == 0 ? nb.addr : NULL);
			checked = true;
			if (ra != rb)
				icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected the same siblings, found others",
					     icf_vd_die(&p->a, name));
			more = ra == 0 && rb == 0;
			if (!more)
				continue;
			*p = (struct place){
				.a = na, .b = nb, .dead = stack[depth - 1].dead, .folded = stack[depth - 1].folded
			};
		}
		if (!checked)
			check(d, p, NULL, NULL);
	}
	free(stack);
	return d->log->nomem ? &elfrw_err_nomem : NULL;
}
