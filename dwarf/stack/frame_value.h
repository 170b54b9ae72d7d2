/* frame_value.h: the arguments of functions on a stack, by debug information, read in a stopped
 * program. */
#ifndef DWARF_STACK_FRAME_VALUE_H
#define DWARF_STACK_FRAME_VALUE_H
#include "dwarf/stack/callchain.h"
#include "dwarf/symbolize/unit.h"

/* A stopped program, or its core.  Addresses are those of the running program; levels count in the
 * current stack.  Both functions return false for unknown values. */
struct dwr_process {
	void *ctx;
	bool (*memory)(void *ctx, uint64_t address, uint64_t *word);
	bool (*reg)(void *ctx, size_t level, unsigned reg,
		    uint64_t *value); /* DWARF's number, as unwound */
	uint64_t bias;                /* what is added to an address as linked */
};

/* One stack of one file; everything but the scratch is borrowed.  Zero it before filling it in. */
struct dwr_stack {
	struct dwr_sym *sym;
	struct dwr_callchain *cc;
	const struct elfrw_arch *arch;
	const struct dwr_process *process;
	const uint64_t *addr; /* as linked, innermost first: a PC, then return addresses; 0: not of
				 this file */
	size_t n;
	struct dwr_abbrev_table table; /* scratch */
	struct dwr_list list;
};
void dwr_stack_deinit(struct dwr_stack *stack);

/* The DIE of the function whose code level LEVEL is in (of shared code: of the kept function);
 * false: none. */
bool dwr_stack_function(struct dwr_stack *stack, size_t level, uint64_t *die);

/* The value of register REG when level LEVEL made its current call, from a call site parameter of
 * the function DIE.  Memory is not read: it may have changed since. */
bool dwr_stack_passed(struct dwr_stack *stack, size_t level, uint64_t die, unsigned reg,
		      uint64_t *value);

/* The object of the member function DIE, whose code level LEVEL is in: the place of its artificial
 * first parameter. */
bool dwr_stack_this(struct dwr_stack *stack, size_t level, uint64_t die, uint64_t *value);

/* Does the function DIE return nothing, or something that fits registers, so that its first
 * argument is the first one passed?  false also if unknown. */
bool dwr_stack_returns_plain(struct dwr_stack *stack, uint64_t die);
#endif
