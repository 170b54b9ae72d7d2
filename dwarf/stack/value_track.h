/* value_track.h: follows registers by value numbers along straight code, to recognise virtual
 * calls.
 *
 * A value is unknown, or the 8 bytes loaded from another value plus an offset.  Equal loads without
 * a store between are equal values.  The rules know the few instructions by which compilers load
 * and copy; any other instruction makes the registers that it could write unknown.  Cost: constant
 * for an instruction, with a look at up to 32 recent values for each load. */
#ifndef DWARF_STACK_VALUE_TRACK_H
#define DWARF_STACK_VALUE_TRACK_H
#include "elfrw/base/vec.h"
#include <stdint.h>

struct elfrw_insn;
struct elfrw_effect;
struct elfrw_model;

#define DWR_TRACK_REGS 32

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
	struct dwr_track_reg reg[DWR_TRACK_REGS]; /* by the architecture's numbers */
	uint32_t epoch;                           /* of memory: a store begins a new one */
};

/* Zero it except for `model`, then forget all.  `s` may be saved and put back. */
struct dwr_track {
	const struct elfrw_model *model; /* what instructions do */
	VEC(struct dwr_track_value) value;
	struct dwr_track_state s;
	uint32_t epochs;
	bool nomem; /* sticky */
};
void dwr_track_deinit(struct dwr_track *t);

void dwr_track_forget(struct dwr_track *t, unsigned reg);
void dwr_track_forget_all(struct dwr_track *t);

/* Instruction IN, no call, has effect E. */
void dwr_track_step(struct dwr_track *t, const struct elfrw_insn *in, const struct elfrw_effect *e);

/* A call has returned. */
void dwr_track_called(struct dwr_track *t);

/* Does the indirect call IN with effect E go through a slot of an object's vtable?  The object is
 * the first argument of the call, or the second (if the first says where to put the result). */
struct dwr_track_call {
	uint32_t slot;
	struct dwr_track_reg object;
	bool second;
};
bool dwr_track_virtual(const struct dwr_track *t, const struct elfrw_insn *in,
		       const struct elfrw_effect *e, struct dwr_track_call *ret);
#endif
