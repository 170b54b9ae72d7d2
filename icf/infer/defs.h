/* defs.h: which definitions of a register reach an instruction, and the bound that its index is
 * compared with on the way. */
#ifndef ICF_INFER_DEFS_H
#define ICF_INFER_DEFS_H
#include "icf/infer/effect.h"

#define ICF_MAX_DEFS 64

/* The definitions of a register that reach a place. */
struct icf_defs {
	struct icf_def def[ICF_MAX_DEFS];
	unsigned n;
	bool full; /* there were more, or the search gave up */
};

/* All definitions of register R that reach instruction AT of unit UNIT, followed through copies.
 * Call icf_trace_edges() first.  PAST_CALLS: look behind calls of functions that may preserve the
 * register.  defs.c. */
struct icf_defs icf_defs_reaching(const struct icf_program *prog, uint32_t unit,
				  struct icf_trace *t, size_t at, unsigned r, bool past_calls);

/* The number of entries that the code before instruction AT allows for index R; 0: unknown.  Only
 * comparisons count, since compilers make a table of exactly that size for them.  The width of a
 * byte and a mask only give a limit: *CAP.  bound.c. */
uint64_t icf_find_bound(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			size_t at, unsigned r, uint64_t *cap);

/* The same for a table that counts from a label in small units: the comparison may also be in front
 * of a call of a function that does not return.  *OPEN: the table may go on behind that.  It does
 * if a call returns another index, which needs no comparison; and there may be none at all, since
 * the compiler knows which values an enumeration has. */
uint64_t icf_find_packed_bound(const struct icf_program *prog, uint32_t unit,
			       const struct icf_trace *t, size_t at, unsigned r, bool *open);

/* Does control never continue behind IN? */
static inline bool icf_ends_block(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_RET ||
	       in->kind == ELFRW_INSN_TRAP || in->kind == ELFRW_INSN_JMP_IND;
}

/* Index of the first edge to the instruction at POS, or of the next one in the order. */
static inline size_t icf_first_edge(const struct icf_trace *t, uint32_t pos)
{
	return LOWER_BOUND(0, t->edge.len, mid, t->edge.data[mid].to < pos);
}

/* Is memory operand IN a word of the frame, which may hold a spilled result? */
static inline bool icf_from_frame(const struct icf_program *prog, const struct elfrw_insn *in)
{
	const struct elfrw_model *m = prog->arch->model;
	return in->index == ELFRW_REG_NONE && (in->base == m->sp || in->base == m->fp);
}
#endif
