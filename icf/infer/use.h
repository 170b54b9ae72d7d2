/* use.h: what becomes of an address that the code computes. */
#ifndef ICF_INFER_USE_H
#define ICF_INFER_USE_H
#include "icf/infer/infer.h"

/* REF of unit I names a place between two functions.  Do the instructions tell what it is, so that
 * it goes where the unit behind it goes? T: scratch memory. */
bool icf_explains_gap(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref,
		      struct icf_trace *t);
#endif
