/* calls.h: the call tables, and the results that a user sees. */
#ifndef ICF_VERIFY_CALLS_CALLS_H
#define ICF_VERIFY_CALLS_CALLS_H
#include "icf/verify/debug/dwarf.h"

/* calls.c: .debug_dcall and .debug_vcall. */
struct elfrw_err *icf_v_check_calls(struct icf_v *v, struct icf_vdwarf *in, struct icf_vdwarf *out);

/* resolve.c: resolves stacks by the call tables of OUT.  (*DECIDED)[unit]: the member of the note
 * that a stack decides for the unit; UINT32_MAX: none.  The caller frees the array. */
struct elfrw_err *icf_v_resolve_calls(struct icf_v *v, uint32_t **decided);

/* Other work, which FN does; it may write to the common log. */
struct icf_vaside {
	struct elfrw_err *(*fn)(void *arg);
	void *arg;
};
/* symbolize.c: compares the symbolizer's answers for OUT and IN, at all places of PART (N of them,
 * in the order of the units of debug information), at the starts of all units and at all calls.
 * DECIDED: see icf_v_resolve_calls().  Does ASIDE meanwhile. */
struct elfrw_err *icf_v_check_symbolize(struct icf_v *v, struct icf_vplaces *part, size_t n,
					const uint32_t *decided, const struct icf_vaside *aside);

/* slots.c: the slot that the code shows for a unit's indirect call (or jump) that returns to SITE,
 * an address of IN; UINT64_MAX: none.  *FOUND: there is such a call.  Ask for units in their
 * order. */
struct icf_vslots *icf_vslots_create(const struct icf_v *v); /* NULL: no memory */
void icf_vslots_destroy(struct icf_vslots *s);
struct elfrw_err *icf_vslots_get(struct icf_vslots *s, uint32_t unit, uint64_t site, bool *found,
				 uint64_t *slot);
#endif
