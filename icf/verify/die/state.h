/* state.h: shared by the files that compare DIEs. */
#ifndef ICF_VERIFY_DIE_STATE_H
#define ICF_VERIFY_DIE_STATE_H
#include "icf/verify/die/skip.h"

/* Is the address behind an instruction? */
static inline bool icf_vdie_behind(int tag, unsigned code)
{
	return code == DW_AT_call_return_pc ||
	       (tag == DW_TAG_GNU_call_site && code == DW_AT_low_pc);
}

/* die.c: P's DIE is that of a function which begins at LO: sets what holds for all DIEs below. */
void icf_vdie_enter(const struct icf_vdebug *d, struct icf_vdie_pair *p, uint64_t lo);
/* quick.c: plans how DIEs of SHAPE, which is known, are compared, if all its attributes are
 * usual. */
void icf_vdie_plan(struct icf_vdebug *d, struct icf_vshape *shape);
/* Compares the DIEs of P, for whose shape there is a plan.  false: libdw must say, and nothing was
 * recorded, except in what icf_vdie_enter() sets. */
bool icf_vdie_quick(struct icf_vdebug *d, struct icf_vdie_pair *p);
#endif
