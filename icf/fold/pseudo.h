/* pseudo.h: .pseudo_probe, what clang's -fpseudo-probe-for-profiling says of functions. */
#ifndef ICF_FOLD_PSEUDO_H
#define ICF_FOLD_PSEUDO_H
#include "icf/fold/plan.h"

/* Is S a section of the form that LLVM 17 and later write: records of offsets from the start of a
 * function, which is named by a hash?  Earlier ones hold addresses. */
bool icf_pseudo_parses(const struct elfrw_section *s);

/* Writes the records of section SHNDX, which icf_pseudo_parses(), without those of folded functions
 * to W, which may be NULL.  A record of a name that several symbols have is left out, too: which
 * function it belongs to is not certain.  *OK: false if a record's function is not known or a probe
 * lies outside of it.  Fails: out of memory. */
struct elfrw_err *icf_pseudo_rewrite(const struct icf_program *prog, const struct icf_plan *plan,
				     uint32_t shndx, struct elfrw_wbuf *w, bool *ok);
#endif
