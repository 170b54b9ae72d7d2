/* fit.c: does every reference of the code reach its target in the new layout?
 *
 * Closing up brings code together, but the copy that a folded function leaves may be far from its
 * users, and code moves away from data.  An address that a linker relaxed to one instruction gets
 * two again (ICF_REF_RELAXED).  Any other reference that does not reach any more is what pins: its
 * unit and its target stay, so that the distance is what it was, and the plan is made again without
 * them.  Each round pins more; after a few, all that could fail is pinned.
 *
 * Cost: nothing where all forms that are not glued reach across the file; else each reference is
 * written once into scratch memory. */
#include "icf/fold/plan.h"
#include <string.h>

#define ROUNDS 4 /* in which only what fails is pinned */

/* By form: could a reference of it fall short? */
static bool find_short(const struct icf_program *prog, bool ret[ELFRW_FORMS_MAX])
{
	const struct elfrw_arch *arch = prog->arch;
	uint64_t lo, hi;
	bool any = false;
	elfrw_image_span(prog->img, &lo, &hi);
	for (unsigned i = 0; i < arch->n_forms; i++) {
		uint64_t reach = elfrw_form_reach(&arch->form[i]);
		ret[i] = reach > arch->near_reach && reach < hi - lo &&
			 arch->form[i].base != ELFRW_BASE_ZERO;
		any |= ret[i];
	}
	return any;
}

static bool pin(struct icf_program *prog, uint32_t i)
{
	struct icf_unit *u = i != ICF_NONE ? &prog->unit.data[i] : NULL;
	if (!u || (u->flags & ICF_UNIT_PINNED))
		return false;
	u->flags |= ICF_UNIT_PINNED;
	prog->n_pinned++;
	if (u->reason == ICF_OK)
		u->reason = ICF_GLUED;
	return true;
}

/* Reference REF of unit I, in the layout of MAP. */
static bool fits(const struct icf_program *prog, const struct elfrw_addrmap *map, uint32_t i,
		 const struct icf_ref *ref)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct elfrw_form *form = icf_ref_form(prog, ref);
	uint8_t field[8];
	uint64_t place = icf_ref_place(u, ref) + (map->unit[i].body - u->start);
	uint64_t to = ref->unit == ICF_NONE
			      ? ref->target
			      : elfrw_addrmap_in_unit(&map->unit[ref->unit], ref->target,
						      ref->kind != ICF_REF_BRANCH);
	memcpy(field, icf_unit_bytes(prog, u) + ref->off, form->bytes);
	if (elfrw_form_write(form, field, place, to))
		return true;
	if (!(ref->flags & ICF_REF_RELAXED))
		return false;
	memcpy(field, icf_unit_bytes(prog, u) + ref->off - prog->arch->fill_size, sizeof field);
	return prog->arch->expand(field, place - prog->arch->fill_size, to);
}

/* Pins what falls short in PLAN, or, if ALL, what could in any; was there anything? */
static bool pin_short(struct icf_program *prog, const struct icf_plan *plan, bool all)
{
	bool falls[ELFRW_FORMS_MAX], any = false;
	if (!find_short(prog, falls))
		return false;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		if ((!all && plan->kept[i] != i) || (prog->unit.data[i].flags & ICF_UNIT_UNUSED))
			continue;
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++) {
			if (!falls[ref[r].form] || (!all && fits(prog, &plan->map, i, &ref[r])) ||
			    (all && (ref[r].flags & ICF_REF_RELAXED)))
				continue;
			any |= pin(prog, i);
			any |= pin(prog, ref[r].unit);
		}
	}
	return any;
}

bool icf_pin_short(struct icf_program *prog, const struct icf_plan *plan, unsigned round)
{
	if (!pin_short(prog, plan, false))
		return false;
	if (round >= ROUNDS)
		pin_short(prog, plan, true);
	/* What the plan decided is open again. */
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (u->reason == ICF_UNIQUE || u->reason == ICF_ADDRESS_OBSERVED ||
		    u->reason == ICF_PARTNER_STAYS)
			u->reason = u->flags & ICF_UNIT_PINNED ? ICF_GLUED : ICF_OK;
	}
	return true;
}
