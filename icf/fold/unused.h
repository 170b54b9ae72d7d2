/* unused.h: functions that nothing in the program can reach (--gc-functions). */
#ifndef ICF_FOLD_UNUSED_H
#define ICF_FOLD_UNUSED_H
#include "icf/cli/options.h"
#include "icf/fold/unused/use.h"
#include "icf/program/program.h"

/* Sets ICF_UNIT_UNUSED, and the reason ICF_UNUSED, of all functions that no root can reach.  Does
 * nothing unless OPT asks for it, or if the program's references are not all known.  Runs when the
 * references, the tables and the pinned units are known, before eligibility.  USE, if it is not
 * NULL, becomes an array by unit of one of the shortest ways from a root; NULL if nothing was done.
 * The caller frees it.  Error: a name to be kept names no function. */
struct elfrw_err *icf_find_unused(struct icf_program *prog, const struct icf_options *opt,
				  struct icf_use **use);

/* Why nothing is removed from PROG although OPT asks for it; NULL: that is not so. */
const char *icf_unused_obstacle(const struct icf_program *prog, const struct icf_options *opt);

/* Nothing is to be removed after all. */
void icf_keep_unused(struct icf_program *prog);
#endif
