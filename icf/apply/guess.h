/* guess.h: direct calls that a compiler guessed, so that a comparison of addresses chose them. */
#ifndef ICF_APPLY_GUESS_H
#define ICF_APPLY_GUESS_H

#include "elfrw/base/vec.h"
#include "icf/apply/apply.h"
#include "icf/program/call_scan.h"

/* What is known of the guesses of one caller.  All zero is valid; icf_guesses_deinit frees it. */
struct icf_guesses {
	bool *kept;          /* by unit: shared code whose address CALLER takes; NULL: no guesses */
	VEC(uint32_t) taken; /* the units that are set in KEPT */
	uint32_t caller;     /* ICF_NONE: none yet */
	const struct elfrw_section *got;
};

struct elfrw_err *icf_guesses_init(struct icf_guesses *g, const struct icf_apply *a);

/* Is C the guess of a compiler, `if (p == f) f(); else p();`?  If addresses merge, P may have been
 * any function that shares its code with f.  All direct calls of such functions count, in code that
 * takes the address of one.  Fast if calls of one caller follow each other. */
struct elfrw_err *icf_guesses_ask(struct icf_guesses *g, const struct icf_apply *a,
				  const struct icf_call *c, bool *guess);
void icf_guesses_deinit(struct icf_guesses *g);

#endif
