/* slot.c: slots of virtual tables whose functions' addresses code takes.
 *
 * Code compares the two: compilers do, to guess what a virtual call calls, and programs can.  Where
 * addresses do not merge, a slot and the address of its function are equal as they were in IN, and
 * those of two functions are not.  An instruction that computes the address counts here, one that
 * loads it does not: it may serve for a call. */
#include "icf/verify/state.h"
#include <stdlib.h>

bool icf_v_is_compared(const struct icf_v *v, const struct icf_vword *w)
{
	uint32_t u = w->slot ? icf_v_find(&v->claim, w->target) : ICF_V_NONE;
	return u != ICF_V_NONE && v->opt->mode == ICF_VERIFY_SAFE && v->claim.unit.data[u].taken &&
	       v->claim.unit.data[u].old == w->target;
}

/* The unit whose copy U uses and whose address U has, or U itself. */
static uint32_t merged_into(const struct icf_v *v, uint32_t u)
{
	const struct icf_vunit *x = &v->claim.unit.data[u];
	return (x->flags & ICF_V_FOLDED) && x->entry == v->claim.unit.data[x->kept].entry ? x->kept
											  : u;
}

struct elfrw_err *icf_v_check_slots(struct icf_v *v)
{
	if (v->opt->mode != ICF_VERIFY_SAFE)
		return NULL;
	/* By unit: 1 + the function whose slots are compared with the unit's address. */
	uint32_t *taken = calloc(v->claim.unit.len + 1, sizeof *taken);
	for (unsigned pass = 0; pass < 2 && taken; pass++)
		for (size_t i = 0; i < v->words.word.len; i++) {
			const struct icf_vword *w = &v->words.word.data[i];
			uint32_t u =
				w->slot && !w->lost ? icf_v_find(&v->claim, w->target) : ICF_V_NONE;
			char x[200], y[200];
			if (u == ICF_V_NONE || v->claim.unit.data[u].old != w->target)
				continue;
			uint32_t k = merged_into(v, u);
			if (pass == 0 && icf_v_is_compared(v, w))
				taken[k] = u + 1;
			if (pass == 0 || !taken[k] || taken[k] == u + 1)
				continue;
			icf_vlog_bad(
				&v->log, ICF_VC_OBSERVED,
				"slot: 0x%llx, of %s: expected another address than that of %s, with which code compares it, found 0x%llx",
				ICF_VX(w->place), icf_v_where(&v->claim, w->target, x),
				icf_v_where(&v->claim, v->claim.unit.data[taken[k] - 1].old, y),
				ICF_VX(v->claim.unit.data[u].entry));
		}
	if (!taken)
		return &elfrw_err_nomem;
	free(taken);
	return NULL;
}
