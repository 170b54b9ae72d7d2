/* calls.h: the call tables of the output: .debug_dcall and .debug_vcall. */
#ifndef ICF_APPLY_CALLS_H
#define ICF_APPLY_CALLS_H
#include "icf/apply/apply.h"

struct icf_call_stats {
	size_t direct;                      /* entries of .debug_dcall, tail jumps included */
	size_t virtuals;                    /* entries of .debug_vcall */
	uint64_t direct_size, virtual_size; /* of the sections, not compressed */
	size_t tail;                        /* tail jumps to shared functions */
	size_t taken;                       /* entries that came from the input's tables */
	size_t from_sites;                  /* that came from call-site DIEs */
	size_t pruned;  /* entries of the input's tables that are no longer needed */
	size_t no_die;  /* calls that have no entry because callee or caller has no DIE */
	size_t unknown; /* indirect calls with unknown callees */
};

/* Merges the input's call tables, adds the calls found in the code and in call-site DIEs, and keeps
 * only calls that folding made ambiguous.  Adds or replaces the two sections in A->out, or drops
 * them if they would be empty.  Call icf_apply_debug() first: its .debug_icfold says which DIE each
 * function has.  Does nothing if debug information is left out. */
struct elfrw_err *icf_apply_calls(struct icf_apply *a, struct icf_call_stats *stats);
#endif
