/* claim.h: the code that the compilation units of the input claim. */
#ifndef DWARF_REWRITE_CLAIM_H
#define DWARF_REWRITE_CLAIM_H
#include "dwarf/rewrite/state.h"
#include "dwarf/spans.h"

/* Zeroed at first, except `rw`. */
struct dwr_rw_claim {
	struct dwr_rw *rw;      /* borrowed; its sections, units, roots and lists have been read */
	struct dwr_spans spans; /* owned */
	bool read, all;         /* `all`: something cannot be read */
};

/* Does a compilation unit claim the code at VA (of the input)?  The first question reads the units'
 * ranges.  CLAIM is a struct dwr_rw_claim.  Not for several threads at once.  Errors: out of
 * memory.  If ranges cannot be read, all code is claimed. */
struct elfrw_err *dwr_rw_claimed(void *claim, uint64_t va, bool *ret);
void dwr_rw_claim_deinit(struct dwr_rw_claim *claim);
#endif
