/* use.h: what becomes of an address that the code computes. */
#ifndef ICF_INFER_USE_H
#define ICF_INFER_USE_H
#include "icf/infer/infer.h"

/* REF of unit I refers to a place between two functions.  Do the instructions show that it moves
 * with the unit behind it?  T: scratch memory. */
bool icf_explains_gap(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref,
		      struct icf_trace *t);
#endif
