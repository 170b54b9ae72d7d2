/* known.h: what bytes that are not understood may refer to, in a file with kept relocations. */
#ifndef ICF_REFS_KNOWN_H
#define ICF_REFS_KNOWN_H
#include "elfrw/relocs.h"
#include "icf/program/program.h"

/* Pins all that unit I, which is not understood, may refer to.  REL: of its section. */
struct elfrw_err *icf_pin_known(struct icf_program *prog, const struct elfrw_relocs *rel,
				uint32_t i);
/* Pins the unit that holds VA; or, if VA is in padding, that padding with the units around it.
 * Something that is not understood may refer to VA. */
void icf_pin_place(struct icf_program *prog, uint64_t va);
/* Pins all that the high half of form FORM that names PAGE may name together with a low half. */
void icf_pin_page(struct icf_program *prog, const struct elfrw_form *form, uint64_t page);
#endif
