/* core.h: the stacks of a core file or a running process, printed with the functions that were
 * really called. */
#ifndef ICF_CMD_CORE_H
#define ICF_CMD_CORE_H
#include "icf/cmd/sym_print.h"

/* What is unwound, and how it is printed; everything is borrowed. */
struct icf_core_in {
	const char *core; /* a core file, or NULL: the process */
	const char *pid;  /* its number */
	const char *exe;  /* the program's file, or NULL: where the core or process says it is */
	const struct icf_sym_style *style;
	const struct dwr_sym_options *options;
	unsigned flags; /* DWR_SYM_* */
	bool inlines;
};

/* Prints the backtrace of every thread; what goes wrong is told on standard error.  The exit
 * status: 0, or 2 when there is nothing to print a file of it is missing or the core file is not
 * whole. */
int icf_sym_core(const struct icf_core_in *in);
#endif
