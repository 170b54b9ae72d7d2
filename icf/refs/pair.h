/* pair.h: addresses that two instructions hold together, a half each. */
#ifndef ICF_REFS_PAIR_H
#define ICF_REFS_PAIR_H
#include "elfrw/relocs.h"
#include "icf/program/program.h"

struct icf_trace;

/* The references of unit I, which was just decoded into T, are the last ones of its chunk, sorted
 * by place, and some are high halves; REL are the relocations of its section.  JUMPS: it has an
 * indirect jump.  Adds the low halves.  Both halves then name the whole address; a high half whose
 * low halves are not all known gets ICF_REF_HALF.  Writes only this unit and its chunk.  Error: an
 * address in an unwind table that is not known in full. */
struct elfrw_err *icf_pair_halves(struct icf_program *prog, const struct elfrw_relocs *rel,
				  uint32_t i, const struct icf_trace *t, bool jumps);
/* Unit I, if it is one, stays: a part of its address is in code and cannot change. */
void icf_pin_named(struct icf_program *prog, uint32_t i);
#endif
