/* die.c: compares a DIE of IN with the DIE at the same offset of OUT.
 *
 * Attributes without addresses must be equal.  Addresses, ranges, location lists and expressions
 * must be the images of IN's.  DIEs that cannot have changed do not get here (skip.c).
 *
 * libdw reads each DIE once, and OUT's not at all if abbreviation and bytes are the same as IN's:
 * then its attributes are at the same distances from its start.  If the abbreviations are the same,
 * values of a fixed size that cannot have changed (plain.c) are compared as bytes.  If all values
 * of an abbreviation have fixed sizes, libdw finds the attributes of one DIE of each unit; in all
 * others they stand at the same places (DWARF 5, section 7.5.3).  The values are still libdw's. */
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/plain.h"
#include "icf/verify/debug/shift.h"
#include "icf/verify/die/state.h"
#include "icf/verify/lines/lines.h"
#include <dwarf.h>
#include <stdio.h>
#include <string.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif
#define MAX_ATTRS 96

struct attrs {
	Dwarf_Attribute v[MAX_ATTRS];
	unsigned n;
};

const char *icf_vd_die(Dwarf_Die *die, char buf[200])
{
	Dwarf_Attribute attr;
	const char *n = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	if (!n)
		n = dwarf_diename(die);
	snprintf(buf, 200, "DIE 0x%llx (tag 0x%x, %.120s)", ICF_VX(dwarf_dieoffset(die)),
		 (unsigned)dwarf_tag(die), n ? n : "no name");
	return buf;
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

static bool is_address(unsigned form)
{
	return form == DW_FORM_addr || form == DW_FORM_addrx || form == DW_FORM_addrx1 ||
	       form == DW_FORM_addrx2 || form == DW_FORM_addrx3 || form == DW_FORM_addrx4 ||
	       form == DW_FORM_GNU_addr_index;
}

static bool is_list(Dwarf_Attribute *x)
{
	switch (x->form) {
	case DW_FORM_sec_offset:
	case DW_FORM_loclistx: return true;
	case DW_FORM_data4:
	case DW_FORM_data8:
		return x->code != DW_AT_data_member_location && x->code != DW_AT_byte_size &&
		       x->code != DW_AT_upper_bound && x->code != DW_AT_lower_bound &&
		       x->code != DW_AT_count;
	default: return false;
	}
}

/* Are two places in a supplementary file the same? */
static bool same_sup(Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	uint8_t offset_size = 0;
	dwarf_cu_info(x->cu, NULL, NULL, NULL, NULL, NULL, NULL, &offset_size);
	return y->form == x->form &&
	       memcmp(x->valp, y->valp, icf_vskip_size(x->form, offset_size)) == 0;
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
	case DW_FORM_data16: return y->form == x->form && memcmp(x->valp, y->valp, 16) == 0;
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8: return y->form == x->form && memcmp(x->valp, y->valp, 8) == 0;
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
	case DW_FORM_ref_sup4: return same_sup(x, y);
	default:
		if (icf_vplain_is_block(x->form)) {
			Dwarf_Block a, b;
			return !dwarf_formblock(x, &a) && !dwarf_formblock(y, &b) &&
			       a.length == b.length && memcmp(a.data, b.data, a.length) == 0;
		}
		return x->form == y->form;
	}
}

static void check_address(struct icf_vdebug *d, struct icf_vdie_pair *p, Dwarf_Attribute *x,
			  Dwarf_Attribute *y)
{
	int tag = p->tag;
	bool unit_die = tag == DW_TAG_compile_unit || tag == DW_TAG_partial_unit ||
			tag == DW_TAG_type_unit || tag == DW_TAG_skeleton_unit;
	Dwarf_Addr a, b;
	uint64_t want;
	enum icf_vd_how how = ICF_VD_POINT;
	char name[200];
	/* The base of a unit belongs to its ranges, which are compared as sets.  Beside a list it
	 * must be unchanged, its image, absent, or the start of a range. */
	if (unit_die && x->code == DW_AT_low_pc) {
		Dwarf_Addr base, lo, hi;
		bool ok = dwarf_formaddr(x, &a) || !dwarf_hasattr(&p->b, DW_AT_ranges);
		if (!ok && dwarf_formaddr(y, &b) == 0) {
			ok = a == b || !b || icf_vd_address(d, how, a, b, &want);
			for (ptrdiff_t off = 0;
			     !ok && (off = dwarf_ranges(&p->b, off, &base, &lo, &hi)) > 0;)
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
		icf_vlog_bad(d->log, ICF_VC_DIE_ADDRESS,
			     "address: %s, attribute 0x%x: expected one, found none",
			     icf_vd_die(&p->a, name), x->code);
		return;
	}
	if (icf_vdie_behind(tag, x->code))
		how = ICF_VD_END;
	if (icf_vd_address(d, how, a, b, &want) || (p->dead && a == b))
		return;
	/* A scope of a folded function may begin anywhere if it is empty. */
	if (p->folded != ICF_V_NONE && x->code == DW_AT_low_pc && d->policy == DWR_FOLDED_DROP)
		return;
	icf_vlog_bad(
		d->log, ICF_VC_DIE_ADDRESS,
		"address: %s, attribute 0x%x (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
		icf_vd_die(&p->a, name), x->code, ICF_VX(a), ICF_VX(want), ICF_VX(want), ICF_VX(b));
}

/* Cannot the value have changed, and has it the same bytes?  The abbreviations of both DIEs are the
 * same. */
static bool same_bytes(const struct icf_vdebug *d, const Dwarf_Attribute *x,
		       const Dwarf_Attribute *y)
{
	if (!icf_vplain_attr(x->code, x->form))
		return false;
	/* A constant of the abbreviation is not in the DIE. */
	uint32_t n =
		x->form == DW_FORM_implicit_const ? 0 : icf_vskip_size(x->form, d->offset_size);
	return n != UINT32_MAX && memcmp(x->valp, y->valp, n) == 0;
}

/* Are both expressions that mean the same (shift.c)?  Others are left to libdw. */
static bool same_exprloc(struct icf_vdebug *d, const struct icf_vdie_pair *p,
			 const Dwarf_Attribute *x, const Dwarf_Attribute *y)
{
	if (!p->alike || p->dead || !d->list_version || x->form != DW_FORM_exprloc ||
	    y->form != x->form || !d->end[0] || !d->end[1])
		return false;
	struct elfrw_rbuf a = elfrw_rbuf(x->valp, (size_t)(d->end[0] - x->valp)),
			  b = elfrw_rbuf(y->valp, (size_t)(d->end[1] - y->valp));
	uint64_t na = elfrw_rbuf_uleb(&a), nb = elfrw_rbuf_uleb(&b);
	const uint8_t *s = elfrw_rbuf_take(&a, na), *t = elfrw_rbuf_take(&b, nb);
	return s && t && na == nb && icf_vshift_expr(d, s, t, na);
}

/* Expressions are changed where they are.  libdw reads one that is cut off in its last operand, and
 * finds the next entry by DW_AT_sibling. */
static bool same_length(Dwarf_Attribute *x, Dwarf_Attribute *y)
{
	Dwarf_Block a, b;
	return dwarf_formblock(x, &a) || dwarf_formblock(y, &b) || a.length == b.length;
}

static void check_attr(struct icf_vdebug *d, struct icf_vdie_pair *p, struct attrs *sa,
		       Dwarf_Attribute *x, struct attrs *sb, Dwarf_Attribute *y)
{
	char name[200];
	switch (x->code) {
	case DW_AT_high_pc:
	case DW_AT_ranges:
	case DW_AT_stmt_list: return;
	case DW_AT_LLVM_stmt_sequence: icf_vd_stmt_sequence(d, p, x, y); return;
	case DW_AT_rnglists_base:
	case DW_AT_loclists_base:
		if (!icf_vd_same_base(d, x->code == DW_AT_rnglists_base, x, y))
			icf_vlog_bad(
				d->log, ICF_VC_DIE,
				"base: %s, attribute 0x%x: expected that of the same set, found another",
				icf_vd_die(&p->a, name), x->code);
		return;
	case DW_AT_GNU_locviews:
		for (unsigned k = 0;
		     k < sa->n && (p->folded == ICF_V_NONE || d->policy != DWR_FOLDED_DROP) &&
		     !p->dead;
		     k++)
			if (sa->v[k].code == DW_AT_location)
				icf_vd_views(d, &p->a, x, &sa->v[k], y, &sb->v[k]);
		return;
	}
	if (is_address(x->form))
		check_address(d, p, x, y);
	else if (icf_vplain_is_location(x->code) && same_exprloc(d, p, x, y))
		d->log->checked[ICF_VC_LOCATION]++;
	else if (icf_vplain_is_location(x->code) && icf_vplain_is_block(x->form)) {
		struct icf_vexpr a = { .attr = x }, b = { .attr = y };
		const char *why;
		if (!same_length(x, y))
			why = "one of the same length";
		else if (dwarf_getlocation(x, &a.op, &a.n))
			why = same_value(x, y) ? NULL : "the same bytes";
		else
			why = dwarf_getlocation(y, &b.op, &b.n) ? "an expression that libdw reads"
			      : p->dead                         ? NULL
								: icf_vd_expr(d, &a, &b);
		d->log->checked[ICF_VC_LOCATION]++;
		if (why)
			icf_vlog_bad(d->log, ICF_VC_LOCATION,
				     "expression: %s, attribute 0x%x: expected %s, found another",
				     icf_vd_die(&p->a, name), x->code, why);
	} else if (icf_vplain_is_location(x->code) && is_list(x))
		icf_vd_loclist(d, p, x, y, has(sa, DW_AT_GNU_locviews));
	else if (!same_value(x, y))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"attribute: %s, 0x%x of form 0x%x: expected the same value, found another",
			icf_vd_die(&p->a, name), x->code, x->form);
}

/* Checks the DIE of a unit: attributes are matched by name, since a unit whose code came apart gets
 * ranges instead of bounds. */
static void check_unit_die(struct icf_vdebug *d, struct icf_vdie_pair *p, struct attrs *sa,
			   struct attrs *sb)
{
	char name[200];
	if (has(sa, DW_AT_high_pc) || has(sa, DW_AT_ranges))
		icf_vd_ranges(d, &p->a, &p->b, p->dead);
	for (unsigned i = 0; i < sa->n; i++) {
		unsigned k = 0, code = sa->v[i].code;
		while (k < sb->n && sb->v[k].code != code)
			k++;
		if (k < sb->n)
			check_attr(d, p, sa, &sa->v[i], sb, &sb->v[k]);
		else if (code != DW_AT_high_pc && code != DW_AT_low_pc && code != DW_AT_ranges)
			icf_vlog_bad(d->log, ICF_VC_DIE,
				     "tree: %s: expected attribute 0x%x, found none",
				     icf_vd_die(&p->a, name), code);
	}
	for (unsigned k = 0; k < sb->n; k++) {
		unsigned code = sb->v[k].code;
		if (!has(sa, code) && code != DW_AT_ranges && code != DW_AT_low_pc &&
		    code != DW_AT_rnglists_base &&
		    code != DW_AT_hi_user /* fills the bytes that a shorter encoding left over */)
			icf_vlog_bad(d->log, ICF_VC_DIE,
				     "tree: %s: expected no attribute 0x%x, found one",
				     icf_vd_die(&p->a, name), code);
	}
}

/* The attributes of OUT's DIE, which has the same bytes as IN's. */
static void borrow(const struct icf_vdie_pair *p, const struct attrs *sa, struct attrs *sb)
{
	sb->n = sa->n;
	for (unsigned i = 0; i < sa->n; i++) {
		const Dwarf_Attribute *x = &sa->v[i];
		bool here = x->form != DW_FORM_implicit_const;
		sb->v[i] =
			(Dwarf_Attribute){ .code = x->code,
					   .form = x->form,
					   .valp = here ? (uint8_t *)p->b.addr +
								   (x->valp - (uint8_t *)p->a.addr)
							: x->valp,
					   .cu = p->b.cu };
	}
}

/* Keeps where libdw found the attributes SA of P. */
static void keep_shape(struct icf_vdebug *d, const struct icf_vdie_pair *p, const struct attrs *sa)
{
	struct icf_vskip *s = d->skip;
	struct icf_vshape *shape = p->shape;
	*shape = (struct icf_vshape){
		.fixed = true, .tag = p->tag, .first = (uint32_t)s->place.len, .n = sa->n
	};
	for (unsigned i = 0; i < sa->n; i++) {
		const Dwarf_Attribute *x = &sa->v[i];
		struct icf_vplace_of *slot = VEC_PUSH(&s->place);
		if (!slot) {
			d->log->nomem = true;
			return;
		}
		bool here = x->form != DW_FORM_implicit_const;
		*slot = (struct icf_vplace_of){
			.code = (uint16_t)x->code,
			.form = (uint16_t)x->form,
			.at = here ? (uint32_t)(x->valp - (uint8_t *)p->a.addr) - p->values : 0,
			.other = here ? NULL : x->valp,
		};
	}
	shape->known = true;
	icf_vdie_plan(d, shape);
}

/* The attributes of P, which stand where libdw found those of another DIE with the same
 * abbreviation. */
static void use_shape(const struct icf_vdebug *d, const struct icf_vdie_pair *p, struct attrs *sa,
		      struct attrs *sb)
{
	const struct icf_vplace_of *x = d->skip->place.data + p->shape->first;
	uint8_t *a = (uint8_t *)p->a.addr + p->values, *b = (uint8_t *)p->b.addr + p->values;
	sa->n = sb->n = p->shape->n;
	for (unsigned i = 0; i < sa->n; i++) {
		Dwarf_Attribute *y = &sa->v[i], *z = &sb->v[i];
		y->code = z->code = x[i].code;
		y->form = z->form = x[i].form;
		y->valp = x[i].other ? x[i].other : a + x[i].at;
		z->valp = x[i].other ? x[i].other : b + x[i].at;
		y->cu = p->a.cu;
		z->cu = p->b.cu;
	}
}

/* Reads the attributes of both DIEs.  Where skip.c has found the end of IN's, libdw must agree:
 * what was skipped rests on such ends. */
static bool read_attrs(struct icf_vdebug *d, struct icf_vdie_pair *p, struct attrs *sa,
		       struct attrs *sb)
{
	char name[200];
	if (p->shape && p->shape->known) {
		use_shape(d, p, sa, sb);
		return true;
	}
	sa->n = sb->n = 0;
	dwarf_getattrs(&p->a, collect, sa, 0);
	if (p->equal)
		borrow(p, sa, sb);
	else
		dwarf_getattrs(&p->b, collect, sb, 0);
	unsigned last = sa->n;
	while (last && sa->v[last - 1].form == DW_FORM_implicit_const)
		last--;
	const Dwarf_Attribute *x = last ? &sa->v[last - 1] : NULL;
	if (p->end && x && sa->n < MAX_ATTRS &&
	    icf_vskip_value(x->form, x->valp, p->end, d->offset_size) != p->end) {
		icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected its end where libdw finds it",
			     icf_vd_die(&p->a, name));
		return false;
	}
	if (p->shape && p->shape->fixed && x && sa->n < MAX_ATTRS)
		keep_shape(d, p, sa);
	return true;
}

void icf_vdie_enter(const struct icf_vdebug *d, struct icf_vdie_pair *p, uint64_t lo)
{
	p->folded = ICF_V_NONE;
	/* A function without code may be the last one. */
	p->dead = !icf_v_in_exec(&d->v->claim, lo) && !icf_v_in_end(&d->v->claim, lo);
	uint32_t u = icf_v_find(&d->v->claim, lo);
	if (!p->dead && u != ICF_V_NONE && (d->v->claim.unit.data[u].flags & ICF_V_FOLDED))
		p->folded = u;
}

static uint64_t start_of(Dwarf_Die *die)
{
	Dwarf_Addr lo, hi, base;
	return dwarf_lowpc(die, &lo) && dwarf_ranges(die, 0, &base, &lo, &hi) <= 0 ? 0 : lo;
}

static struct icf_vbounds bounds_of(struct attrs *s)
{
	struct icf_vbounds ret = { 0 };
	for (unsigned i = 0; i < s->n; i++)
		switch (s->v[i].code) {
		case DW_AT_low_pc: ret.low = &s->v[i]; break;
		case DW_AT_high_pc: ret.high = &s->v[i]; break;
		case DW_AT_ranges: ret.list = &s->v[i]; break;
		}
	return ret;
}

/* Compares the ranges of both DIEs, if IN's has some. */
static void check_ranges(struct icf_vdebug *d, struct icf_vdie_pair *p, struct attrs *sa,
			 struct attrs *sb)
{
	struct icf_vbounds x = bounds_of(sa), y = bounds_of(sb);
	if ((x.high || x.list) && !icf_vd_ranges_moved(d, p, &x, &y) &&
	    !icf_vd_ranges_lost(d, p, &x, &y))
		icf_vd_ranges(d, &p->a, &p->b, p->dead);
}

void icf_vd_die_check(struct icf_vdebug *d, struct icf_vdie_pair *p)
{
	struct attrs sa, sb;
	char name[200];
	d->log->checked[ICF_VC_DIE]++;
	p->tag = p->shape && p->shape->known ? p->shape->tag : dwarf_tag(&p->a);
	if (!p->alike &&
	    (dwarf_dieoffset(&p->a) != dwarf_dieoffset(&p->b) || p->tag != dwarf_tag(&p->b))) {
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"tree: %s: expected the same tag at the same place, found tag 0x%x at 0x%llx",
			icf_vd_die(&p->a, name), (unsigned)dwarf_tag(&p->b),
			ICF_VX(dwarf_dieoffset(&p->b)));
		return;
	}
	const bool dead = p->dead;
	const uint32_t folded = p->folded;
	if (p->shape && p->shape->known && p->shape->quick) {
		if (icf_vdie_quick(d, p))
			return;
		p->dead = dead;
		p->folded = folded;
	}
	if (!read_attrs(d, p, &sa, &sb))
		return;
	if (p->tag == DW_TAG_compile_unit || p->tag == DW_TAG_partial_unit) {
		check_unit_die(d, p, &sa, &sb);
		return;
	}
	if (sa.n != sb.n) {
		icf_vlog_bad(d->log, ICF_VC_DIE, "tree: %s: expected %u attributes, found %u",
			     icf_vd_die(&p->a, name), sa.n, sb.n);
		return;
	}
	if (p->tag == DW_TAG_subprogram && (has(&sa, DW_AT_low_pc) || has(&sa, DW_AT_ranges)))
		icf_vdie_enter(d, p, start_of(&p->a));
	check_ranges(d, p, &sa, &sb);
	for (unsigned i = 0; i < sa.n; i++) {
		if (p->alike && same_bytes(d, &sa.v[i], &sb.v[i]))
			continue;
		if (sa.v[i].code != sb.v[i].code) {
			icf_vlog_bad(d->log, ICF_VC_DIE,
				     "tree: %s: expected attribute 0x%x, found 0x%x",
				     icf_vd_die(&p->a, name), sa.v[i].code, sb.v[i].code);
			return;
		}
		check_attr(d, p, &sa, &sa.v[i], &sb, &sb.v[i]);
	}
}
