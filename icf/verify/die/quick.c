/* quick.c: DIEs that only moved, value by value.
 *
 * If all values of an abbreviation have fixed sizes, the attributes of each DIE stand where libdw
 * found those of the first one (die.c).  Here they are compared without asking libdw for each: what
 * cannot mean anything else as bytes (plain.c), addresses by the claim, a range by shift.c, and
 * lists of locations by loc.c.  The questions are those of die.c.  If one has another answer than
 * "equal", or if anything is unusual, die.c asks them all again, and libdw gives the values.  So
 * nothing is called wrong here.
 *
 * This rests on the two abbreviations having the same bytes (skip.c), and on values of DW_FORM_addr
 * and DW_FORM_sec_offset being little-endian numbers of 8 bytes and of the unit's offset size. */
#include "icf/verify/die/state.h"
#include "icf/verify/debug/plain.h"
#include <dwarf.h>
#include <string.h>

static enum icf_vhow how_of(int tag, unsigned code, unsigned form)
{
	if (icf_vplain_attr(code, form))
		return ICF_VSTEP_SAME;
	if (form == DW_FORM_addr && code != DW_AT_high_pc)
		return icf_vdie_behind(tag, code) ? ICF_VSTEP_END : ICF_VSTEP_POINT;
	if (code == DW_AT_high_pc)
		return ICF_VSTEP_HIGH;
	if (form != DW_FORM_sec_offset)
		return ICF_VSTEP_OTHER;
	return code == DW_AT_ranges           ? ICF_VSTEP_RANGES
	       : code == DW_AT_GNU_locviews   ? ICF_VSTEP_VIEWS
	       : icf_vplain_is_location(code) ? ICF_VSTEP_LIST
					      : ICF_VSTEP_OTHER;
}

void icf_vdie_plan(struct icf_vdebug *d, struct icf_vshape *shape)
{
	struct icf_vskip *s = d->skip;
	const bool unit = shape->tag == DW_TAG_compile_unit || shape->tag == DW_TAG_partial_unit ||
			  shape->tag == DW_TAG_type_unit || shape->tag == DW_TAG_skeleton_unit;
	shape->step = (uint32_t)s->step.len;
	shape->n_steps = 0;
	for (uint32_t i = 0; i < shape->n && !unit; i++) {
		const struct icf_vplace_of *x = &s->place.data[shape->first + i];
		const enum icf_vhow how = how_of(shape->tag, x->code, x->form);
		const uint32_t size = x->other ? 0 : icf_vskip_size(x->form, d->offset_size);
		struct icf_vstep *last = shape->n_steps ? &s->step.data[s->step.len - 1] : NULL;
		if (how == ICF_VSTEP_OTHER || size == UINT32_MAX)
			return;
		if (how == ICF_VSTEP_SAME && last && last->how == how &&
		    last->at + last->size == x->at) {
			last->size += size;
			continue;
		}
		if (how == ICF_VSTEP_SAME && !size)
			continue;
		struct icf_vstep *slot = VEC_PUSH(&s->step);
		if (!slot) {
			d->log->nomem = true;
			return;
		}
		*slot = (struct icf_vstep){ x->at, size, x->code, x->form, (uint8_t)how };
		shape->n_steps++;
	}
	shape->quick = !unit;
}

/* Is B the image of A, in the function of the values before?  false: not known. */
static bool is_near(const struct icf_vdebug *d, bool behind, uint64_t a, uint64_t b)
{
	const struct icf_vclaim *c = &d->v->claim;
	if (d->near >= c->unit.len)
		return false;
	const struct icf_vunit *x = &c->unit.data[d->near];
	return a - behind - x->old < x->end - x->old && b == x->body + (a - x->old);
}

/* The attribute of STEP in the DIE DIE, whose values begin at P. */
static Dwarf_Attribute attr_of(const struct icf_vstep *step, const Dwarf_Die *die, uint8_t *p)
{
	return (Dwarf_Attribute){
		.code = step->code, .form = step->form, .valp = p + step->at, .cu = die->cu
	};
}

/* The steps of a DIE that must be taken together. */
struct together {
	const struct icf_vstep *low, *high, *ranges, *list, *location, *views;
	unsigned n_addresses;
};

/* Compares all but ranges and lists; false: libdw must say. */
static bool take_steps(const struct icf_vdebug *d, const struct icf_vdie_pair *p, const uint8_t *a,
		       const uint8_t *b, struct together *ret)
{
	const struct icf_vstep *s = d->skip->step.data + p->shape->step,
			       *end = s + p->shape->n_steps;
	for (; s < end; s++) {
		const bool behind = s->how == ICF_VSTEP_END;
		uint64_t want, x, y;
		switch (s->how) {
		case ICF_VSTEP_SAME:
			if (!p->equal && memcmp(a + s->at, b + s->at, s->size) != 0)
				return false;
			break;
		case ICF_VSTEP_POINT:
		case ICF_VSTEP_END:
			x = elfrw_get64(a + s->at);
			y = elfrw_get64(b + s->at);
			if (!is_near(d, behind, x, y) &&
			    !icf_vd_address(d, behind ? ICF_VD_END : ICF_VD_POINT, x, y, &want))
				return false;
			if (s->code == DW_AT_low_pc)
				ret->low = s;
			ret->n_addresses++;
			break;
		case ICF_VSTEP_HIGH: ret->high = s; break;
		case ICF_VSTEP_RANGES: ret->ranges = s; break;
		case ICF_VSTEP_VIEWS: ret->views = s; break;
		default:
			ret->list = ret->list ? ret->list : s;
			if (s->code == DW_AT_location)
				ret->location = s;
		}
	}
	return true;
}

/* Are the ranges of P, in steps T, those that moved with a function, or that a folded one lost? */
static bool ranges_alike(struct icf_vdebug *d, struct icf_vdie_pair *p, uint8_t *a, uint8_t *b,
			 const struct together *t)
{
	const struct icf_vstep *step[3] = { t->low, t->high, t->ranges };
	Dwarf_Attribute x[3], y[3];
	for (int i = 0; i < 3; i++)
		if (step[i]) {
			x[i] = attr_of(step[i], &p->a, a);
			y[i] = attr_of(step[i], &p->b, b);
		}
	const struct icf_vbounds in = { t->low ? &x[0] : NULL, t->high ? &x[1] : NULL,
					t->ranges ? &x[2] : NULL },
				 out = { t->low ? &y[0] : NULL, t->high ? &y[1] : NULL,
					 t->ranges ? &y[2] : NULL };
	return icf_vd_ranges_moved(d, p, &in, &out) || icf_vd_ranges_lost(d, p, &in, &out);
}

bool icf_vdie_quick(struct icf_vdebug *d, struct icf_vdie_pair *p)
{
	uint8_t *a = (uint8_t *)p->a.addr + p->values, *b = (uint8_t *)p->b.addr + p->values;
	struct together t = { 0 };
	if (p->dead || !take_steps(d, p, a, b, &t))
		return false;
	if (p->tag == DW_TAG_subprogram && (t.low || t.ranges)) {
		if (!t.low)
			return false;
		icf_vdie_enter(d, p, elfrw_get64(a + t.low->at));
	}
	if (p->dead || ((t.high || t.ranges) && !ranges_alike(d, p, a, b, &t)))
		return false;
	d->log->checked[ICF_VC_DIE_ADDRESS] += t.n_addresses;
	const struct icf_vstep *s = t.list,
			       *end = d->skip->step.data + p->shape->step + p->shape->n_steps;
	for (; s && s < end; s++) {
		Dwarf_Attribute x = attr_of(s, &p->a, a), y = attr_of(s, &p->b, b);
		if (s->how == ICF_VSTEP_LIST)
			icf_vd_loclist(d, p, &x, &y, t.views != NULL);
	}
	if (t.views && t.location && (p->folded == ICF_V_NONE || d->policy != DWR_FOLDED_DROP)) {
		Dwarf_Attribute va = attr_of(t.views, &p->a, a), vb = attr_of(t.views, &p->b, b),
				la = attr_of(t.location, &p->a, a),
				lb = attr_of(t.location, &p->b, b);
		icf_vd_views(d, &p->a, &va, &la, &vb, &lb);
	}
	return true;
}
