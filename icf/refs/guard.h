/* guard.h: functions whose addresses code takes. */
#ifndef ICF_REFS_GUARD_H
#define ICF_REFS_GUARD_H
#include "icf/program/program.h"

/* Sets the SLOT and GUARDED flags. */
void icf_find_guarded(struct icf_program *prog);

/* Does D refer to its function's own address, and not to the code that it shares? */
bool icf_means_entry(const struct icf_program *prog, const struct icf_dataref *d);

/* The function whose address REF of U takes, or ICF_NONE.  GOT: the global offset table, or
 * NULL. */
uint32_t icf_taken_by(const struct icf_program *prog, const struct elfrw_section *got,
		      const struct icf_unit *u, const struct icf_ref *ref);
#endif
