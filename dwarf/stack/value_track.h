/* value_track.h: registers followed by value numbers along straight code of x86-64, to tell virtual
 * calls.
 *
 * A value is unknown, or the 8 bytes loaded from another value plus an offset; equal loads without
 * a store between are equal values.  The rules know the few instructions by which compilers load
 * and copy; every other one forgets the registers that it could write.  Cost: constant for an
 * instruction, with a look at up to 32 recent values for each load. */
#ifndef DWARF_STACK_VALUE_TRACK_H
#define DWARF_STACK_VALUE_TRACK_H
#include "elfrw/base/vec.h"
#include <stdint.h>

struct elfrw_insn;

#define DWR_TRACK_REGS 16 /* by encoding: 0 rax, 4 rsp, 7 rdi... */

/* A register holds value ID plus ADD. */
struct dwr_track_reg {
	uint32_t id;
	int32_t add;
};

struct dwr_track_value {
	bool load;
	uint32_t base, epoch; /* loaded from value BASE plus OFF */
	int32_t off;
};

struct dwr_track_state {
	struct dwr_track_reg reg[DWR_TRACK_REGS];
	uint32_t epoch; /* of memory: a store begins a new one */
};

/* Zero it, then forget all.  `s` may be saved and put back. */
struct dwr_track {
	VEC(struct dwr_track_value) value;
	struct dwr_track_state s;
	uint32_t epochs;
	bool nomem; /* sticky */
};
void dwr_track_deinit(struct dwr_track *t);

void dwr_track_forget(struct dwr_track *t, unsigned reg);
void dwr_track_forget_all(struct dwr_track *t);

/* What instruction IN at CODE, no transfer of control, does to the registers. */
void dwr_track_step(struct dwr_track *t, const struct elfrw_insn *in, const uint8_t *code);

/* A call has returned. */
void dwr_track_called(struct dwr_track *t);

/* Whether the indirect call IN goes through a slot of the vtable of an object that is the first
 * argument of the call, or the second (when the first says where to put the result). */
struct dwr_track_call {
	uint32_t slot;
	struct dwr_track_reg object;
	bool second;
};
bool dwr_track_virtual(const struct dwr_track *t, const struct elfrw_insn *in, const uint8_t *code,
		       struct dwr_track_call *ret);
#endif
