/* debug.h: debug information of the output. */
#ifndef ICF_APPLY_DEBUG_H
#define ICF_APPLY_DEBUG_H
#include "icf/apply/apply.h"

/* Rewrites every .debug_* section through the address map, and makes .debug_icfold, into
 * A->rewritten.  Fills the names and slots of A->shared.  Nothing else of *A changes, so that code
 * and data can be written beside it. */
struct elfrw_err *icf_apply_debug(struct icf_apply *a);

/* Puts the result into A->out, A->shared and A->query, unless A->no_room. */
struct elfrw_err *icf_take_debug(struct icf_apply *a);
void icf_shared_deinit(struct icf_shared *shared);
#endif
