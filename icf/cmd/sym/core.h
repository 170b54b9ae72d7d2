/* core.h: the stacks of a core file or a running process, printed with the functions that were
 * really called. */
#ifndef ICF_CMD_SYM_CORE_H
#define ICF_CMD_SYM_CORE_H
#include "icf/cmd/sym/print.h"

/* The core or process, and how to print it; everything is borrowed. */
struct icf_core_in {
	const char *core; /* a core file, or NULL: the process */
	const char *pid;  /* its number */
	const char *exe;  /* the program's file, or NULL: the file that the core or process names */
	const struct icf_sym_style *style;
	const struct dwr_sym_options *options;
	unsigned flags; /* DWR_SYM_* */
	bool inlines;
};

/* Prints the backtrace of every thread, and reports faults on standard error.  Returns the exit
 * status: 0, or 2 if there is nothing to print, a file is missing, or the core file is
 * truncated. */
int icf_sym_core(const struct icf_core_in *in);
#endif
