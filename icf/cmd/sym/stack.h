/* stack.h: stacks of addresses, printed with the functions that were really called. */
#ifndef ICF_CMD_SYM_STACK_H
#define ICF_CMD_SYM_STACK_H
#include "icf/cmd/sym/print.h"

struct dwr_callchain;
struct dwr_chain;
struct elfrw_image;

/* The file of the stacks, and how to print them; everything is borrowed. */
struct icf_sym_stack_in {
	struct dwr_sym *sym;
	const char *path;
	const struct icf_sym_style *style;
	unsigned flags;   /* DWR_SYM_* */
	bool inlines;     /* false: one frame for an address */
	uint64_t adjust;  /* subtracted from each address and vtable address */
	bool name_module; /* text names the file if it cannot name the function */
};

/* The stacks of one file, one after the other.  IN is borrowed.  Faults of the tables for shared
 * code are reported on standard error, and stacks are printed without the tables.  Errors: out of
 * memory. */
struct icf_stack;
struct elfrw_err *icf_stack_open(const struct icf_sym_stack_in *in, struct icf_stack **ret);
void icf_stack_close(struct icf_stack *s); /* NULL is allowed */

/* The tables, or NULL; their result for the last stack; the file as the fold reads it, if there are
 * tables. */
struct dwr_callchain *icf_stack_tables(const struct icf_stack *s);
const struct dwr_chain *icf_stack_chain(const struct icf_stack *s);
const struct elfrw_image *icf_stack_image(const struct icf_stack *s);

/* Decides the stack ADDR (as linked; 0: not in this file), with VTABLE as in dwr_callchain_resolve.
 * May be called again for the same stack. */
struct elfrw_err *icf_stack_resolve(struct icf_stack *s, const uint64_t *addr,
				    const uint64_t *vtable, size_t n);

/* The answer for level I of the resolved stack, valid until the next one.  SHOWN, its address, is
 * borrowed. */
struct elfrw_err *icf_stack_answer(struct icf_stack *s, size_t i, const uint64_t *shown,
				   struct icf_sym_answer *ret);

/* Prints level I of the resolved stack, as SHOWN; in JSON as one object at DEPTH. */
struct elfrw_err *icf_stack_print(struct icf_stack *s, size_t i, uint64_t shown, unsigned depth);

/* Reports faults of the debug information on standard error, once. */
void icf_stack_warn(struct icf_stack *s);

/* Prints the one stack in the N strings ARG or, if N is 0, the stacks of standard input, divided by
 * empty lines.  Each string or line is a hexadecimal address, innermost first; `vtable=ADDRESS` may
 * follow after a comma or spaces.  Output is flushed after each stack.  Errors: standard input, out
 * of memory.  Faults of the tables for shared code are reported on standard error, and the stack is
 * printed without the tables. */
struct elfrw_err *icf_sym_stacks(const struct icf_sym_stack_in *in, char **arg, int n);
#endif
