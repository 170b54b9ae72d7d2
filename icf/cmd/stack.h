/* stack.h: stacks of addresses, printed with the functions that were really called. */
#ifndef ICF_CMD_STACK_H
#define ICF_CMD_STACK_H
#include "icf/cmd/sym_print.h"

struct dwr_callchain;
struct dwr_chain;
struct elfrw_image;

/* What the stacks are of, and how they are printed; everything is borrowed. */
struct icf_sym_stack_in {
	struct dwr_sym *sym;
	const char *path;
	const struct icf_sym_style *style;
	unsigned flags;   /* DWR_SYM_* */
	bool inlines;     /* false: one frame for an address */
	uint64_t adjust;  /* is subtracted from each address and vtable address */
	bool name_module; /* text names the file where it cannot name the function */
};

/* The stacks of one file, one after the other.  IN is borrowed.  What the tables for shared code
 * lack or have wrong is told on standard error, and stacks are printed without them.  Errors: out
 * of memory. */
struct icf_stack;
struct elfrw_err *icf_stack_open(const struct icf_sym_stack_in *in, struct icf_stack **ret);
void icf_stack_close(struct icf_stack *s); /* NULL is allowed */

/* The tables, or NULL; what they said of the last stack; the file as icfold folds it, whenever
 * there are tables. */
struct dwr_callchain *icf_stack_tables(const struct icf_stack *s);
const struct dwr_chain *icf_stack_chain(const struct icf_stack *s);
const struct elfrw_image *icf_stack_image(const struct icf_stack *s);

/* Decides the stack ADDR (as linked, 0 for what is not of this file), with VTABLE as
 * dwr_callchain_resolve; may be called again for the same one. */
struct elfrw_err *icf_stack_resolve(struct icf_stack *s, const uint64_t *addr,
				    const uint64_t *vtable, size_t n);

/* Prints level I of the stack that was resolved, as SHOWN; in JSON one object at DEPTH. */
struct elfrw_err *icf_stack_print(struct icf_stack *s, size_t i, uint64_t shown, unsigned depth);

/* Tells on standard error, once, what is wrong with the debug information. */
void icf_stack_warn(struct icf_stack *s);

/* Prints the one stack that the N strings ARG are, or, when N is 0, those of standard input, which
 * empty lines part.  Each string or line is an address (hexadecimal), innermost first, and may go
 * on with `vtable=ADDRESS` after a comma or spaces.  Output is flushed after each stack.  Errors:
 * standard input, out of memory; what the tables for shared code lack or have wrong is told on
 * standard error, and the stack is printed without them. */
struct elfrw_err *icf_sym_stacks(const struct icf_sym_stack_in *in, char **arg, int n);
#endif
