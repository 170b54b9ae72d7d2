/* cmd_stack.h: stacks of addresses, printed with the functions that were really called. */
#ifndef ICF_CMD_STACK_H
#define ICF_CMD_STACK_H
#include "icf/sym_print.h"

/* What the stacks are of, and how they are printed; everything is borrowed. */
struct icf_sym_stack_in {
	struct dwr_sym *sym;
	const char *path;
	const struct icf_sym_style *style;
	unsigned flags;  /* DWR_SYM_* */
	bool inlines;    /* false: one frame for an address */
	uint64_t adjust; /* is subtracted from each address and vtable address */
};

/* Prints the one stack that the N strings ARG are, or, when N is 0, those of standard input, which empty lines part.  Each
 * string or line is an address (hexadecimal), innermost first, and may go on with `vtable=ADDRESS` after a comma or
 * spaces.  Output is flushed after each stack.  Errors: standard input, out of memory; what the tables for shared code
 * lack or have wrong is told on standard error, and the stack is printed without them. */
struct elfrw_err *icf_sym_stacks(const struct icf_sym_stack_in *in, char **arg, int n);
#endif
