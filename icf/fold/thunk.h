/* thunk.h: which functions need a thunk, how long one is, and where thunks may stand. */
#ifndef ICF_FOLD_THUNK_H
#define ICF_FOLD_THUNK_H
#include "icf/fold/fold.h"

/* The size of a thunk at FROM for U that jumps to TO; 0: out of reach. */
unsigned icf_thunk_size(const struct icf_program *prog, const struct icf_unit *u, uint64_t from,
			uint64_t to);

/* What a thunk's address is a multiple of. */
uint64_t icf_thunk_align(const struct icf_unit *u);

/* Does U need a thunk once it is folded?  IN_PLACE: nothing moves. */
bool icf_needs_thunk(bool in_place, const struct icf_options *opt, const struct icf_unit *u);

/* The section whose code the thunks follow; ICF_NONE: none. */
uint32_t icf_thunk_section(const struct icf_program *prog);

/* Is VA in the part of the code where the thunks are: that of SECTION's last unit? */
bool icf_in_thunk_part(const struct icf_program *prog, uint32_t section, uint64_t va);
#endif
