/* claim.h: which code the compilation units of the input say is theirs. */
#ifndef DWARF_REWRITE_CLAIM_H
#define DWARF_REWRITE_CLAIM_H
#include "dwarf/rewrite/state.h"
#include "dwarf/spans.h"

/* Zeroed at first, but for `rw`. */
struct dwr_rw_claim {
	struct dwr_rw *rw;      /* borrowed; its sections, units, roots and lists have been read */
	struct dwr_spans spans; /* owned */
	bool read, all;         /* `all`: something cannot be read */
};

/* Is the code at VA (of the input) of a compilation unit?  Reads the units' ranges when it is first
 * asked.  CLAIM is a struct dwr_rw_claim.  Not for several threads at once.  Errors: out of memory;
 * where ranges cannot be read, all code is claimed. */
struct elfrw_err *dwr_rw_claimed(void *claim, uint64_t va, bool *ret);
void dwr_rw_claim_deinit(struct dwr_rw_claim *claim);
#endif
