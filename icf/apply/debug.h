/* debug.h: debug information of the output. */
#ifndef ICF_APPLY_DEBUG_H
#define ICF_APPLY_DEBUG_H
#include "icf/apply/apply.h"

/* Rewrites every .debug_* section through the address map, writes .debug_icfold, and fills
 * A->shared. */
struct elfrw_err *icf_apply_debug(struct icf_apply *a);
void icf_shared_deinit(struct icf_shared *shared);
#endif
