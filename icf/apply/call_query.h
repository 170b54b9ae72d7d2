/* call_query.h: what the call tables (calls.h) will need of .debug_info.  It is known before
 * .debug_info is rewritten, so the rewriting looks for it on its own walk. */
#ifndef ICF_APPLY_CALL_QUERY_H
#define ICF_APPLY_CALL_QUERY_H
#include "icf/apply/apply.h"

/* Scans the code for calls, into A->query: shared functions that have a name, which no other
 * function has, and take part in a call, as caller or callee, may need the DIE of their
 * declaration.  Nothing if no function shares its code, or the output has no call tables. */
struct elfrw_err *icf_apply_query(struct icf_apply *a);
void icf_call_query_deinit(struct icf_call_query *query);
#endif
