/* call_scan.h: who calls whom, read from the code before folding, when every target still names one
 * function. */
#ifndef ICF_PROGRAM_CALL_SCAN_H
#define ICF_PROGRAM_CALL_SCAN_H
#include "elfrw/addrmap.h"
#include "icf/program/program.h"

/* A call or a tail jump whose callee is folded, or kept for others. */
struct icf_call {
	uint64_t site;           /* old address after the instruction */
	uint32_t caller, callee; /* units */
	bool tail;
};

/* A call through slot SLOT of the vtable of an object that is its first or second argument. */
struct icf_vcall {
	uint64_t site;
	uint32_t caller, slot;
};

struct icf_calls {
	VEC(struct icf_call) call; /* sorted by site, as the others */
	VEC(struct icf_vcall) vcall;
	VEC(uint64_t) indirect; /* the other indirect calls: the code does not tell */
};

/* Decodes again those units that call or jump to a shared one, are shared, or call indirectly
 * (INDIRECT: that is wanted).  Cost: linear in their instructions.  The result does not depend on
 * THREADS. */
struct elfrw_err *icf_scan_calls(const struct icf_program *prog, const struct elfrw_addrmap *map,
				 bool indirect, unsigned threads, struct icf_calls *ret);
void icf_calls_deinit(struct icf_calls *calls);

/* Virtual calls of one unit (call_virtual.c): appends to VCALL and INDIRECT.  LABEL are the
 * addresses in the unit that something jumps to: sorted, as often as there are jumps, and twice
 * when a jump table names them. */
struct icf_labels {
	uint64_t *data; /* owned */
	size_t len, cap;
};
struct elfrw_err *icf_scan_virtual(const struct icf_program *prog, uint32_t unit,
				   const struct icf_labels *label, struct icf_calls *ret);
#endif
