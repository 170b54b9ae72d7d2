/* call_scan.h: who calls whom, read from the code before folding, while every target still names
 * one function. */
#ifndef ICF_PROGRAM_CALL_SCAN_H
#define ICF_PROGRAM_CALL_SCAN_H
#include "elfrw/addrmap.h"
#include "icf/program/program.h"

/* A call or a tail jump to a unit that is folded, or that others are folded into. */
struct icf_call {
	uint64_t site;           /* old address after the instruction */
	uint32_t caller, callee; /* units */
	bool tail;
};

/* A call through slot SLOT of the vtable of an object, which is the first or second argument. */
struct icf_vcall {
	uint64_t site;
	uint32_t caller, slot;
};

struct icf_calls {
	VEC(struct icf_call) call; /* both are sorted by site */
	VEC(struct icf_vcall) vcall;
	VEC(uint64_t) indirect; /* other indirect calls: the code does not show the callee */
};

/* Decodes again the units that call or jump to a shared unit, are shared, or (with INDIRECT) call
 * indirectly.  Cost: linear in their instructions.  The result does not depend on THREADS. */
struct elfrw_err *icf_scan_calls(const struct icf_program *prog, const struct elfrw_addrmap *map,
				 bool indirect, unsigned threads, struct icf_calls *ret);
void icf_calls_deinit(struct icf_calls *calls);

/* Appends the virtual calls of one unit to VCALL and INDIRECT (call_virtual.c).  LABEL: the jump
 * targets in the unit, sorted; one for each jump, and two if a jump table names the target. */
struct icf_labels {
	uint64_t *data; /* owned */
	size_t len, cap;
};
struct elfrw_err *icf_scan_virtual(const struct icf_program *prog, uint32_t unit,
				   const struct icf_labels *label, struct icf_calls *ret);
#endif
