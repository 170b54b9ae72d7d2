/* calls.h: the call tables, and what a user sees. */
#ifndef ICF_VERIFY_CALLS_CALLS_H
#define ICF_VERIFY_CALLS_CALLS_H
#include "icf/verify/debug/dwarf.h"

/* calls.c: .debug_dcall and .debug_vcall. */
struct elfrw_err *icf_v_check_calls(struct icf_v *v, struct icf_vdwarf *in, struct icf_vdwarf *out);

/* resolve.c: what the call tables of OUT make of stacks.  (*DECIDED)[unit]: the member
 * of the note that the unit is by a stack which decides it, UINT32_MAX: there is none; to be
 * freed. */
struct elfrw_err *icf_v_resolve_calls(struct icf_v *v, uint32_t **decided);

/* symbolize.c: what the symbolizer says of OUT against what it says of IN, at all
 * places of PART (N of them, in the order of the units of debug information), at the starts of all
 * units and at all calls. */
struct elfrw_err *icf_v_check_symbolize(struct icf_v *v, struct icf_vplaces *part, size_t n);

/* slots.c: the slot that the indirect call (or jump) of a unit shows which returns to
 * SITE, an address of IN; UINT64_MAX: none. *FOUND: there is such a call.  Units are best asked for
 * in their order. */
struct icf_vslots *icf_vslots_create(const struct icf_v *v); /* NULL: no memory */
void icf_vslots_destroy(struct icf_vslots *s);
struct elfrw_err *icf_vslots_get(struct icf_vslots *s, uint32_t unit, uint64_t site, bool *found,
				 uint64_t *slot);
#endif
