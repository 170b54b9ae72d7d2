/* seen.h: completed comparisons. */
#ifndef ICF_VERIFY_DEBUG_SEEN_H
#define ICF_VERIFY_DEBUG_SEEN_H
#include "icf/verify/debug/debug.h"

/* What was compared in this part and is correct.  Out of memory sets D->log->nomem. */
enum icf_vseen_what {
	ICF_VSEEN_UNIT,
	ICF_VSEEN_LINES,
	ICF_VSEEN_RANGES,
	ICF_VSEEN_UNREADABLE,
	ICF_VSEEN_LOCATIONS
};
enum { ICF_VSEEN_LONG = 8 }; /* entries: comparing a shorter list again is faster than a look-up */
bool icf_vseen(const struct icf_vdebug *d, const struct icf_vkey *key);
uint32_t icf_vseen_add(struct icf_vdebug *d,
		       const struct icf_vkey *key); /* a number for each key */
void icf_vseen_deinit(struct icf_vdebug *d);
/* The units of DIEs A and B are next. */
void icf_vseen_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
/* The key of the lists of X in IN and Y in OUT.  MORE: whatever else the answer depends on.  false:
 * they have none. */
bool icf_vseen_list(struct icf_vdebug *d, enum icf_vseen_what what, uint64_t more,
		    Dwarf_Attribute *x, Dwarf_Attribute *y, struct icf_vkey *ret);
#endif
