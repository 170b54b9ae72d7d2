/* debug.h: debug information of the output. */
#ifndef ICF_APPLY_DEBUG_H
#define ICF_APPLY_DEBUG_H
#include "icf/apply/apply.h"

/* Rewrites every .debug_* section through the address map, and writes .debug_icfold. */
struct elfrw_err *icf_apply_debug(struct icf_apply *a);
#endif
