/* hazard.h: places where code must not be: elfrw_arch.hazard. */
#ifndef ICF_FOLD_HAZARD_H
#define ICF_FOLD_HAZARD_H
#include "icf/program/program.h"

/* May unit I lie at AT?  At its old place it may. */
bool icf_may_lie_at(const struct icf_program *prog, uint32_t i, uint64_t at);
#endif
