/* log.h: logs with the functions that were really called. */
#ifndef ICF_CMD_LOG_LOG_H
#define ICF_CMD_LOG_LOG_H
#include "icf/cmd/sym/print.h"

/* How to answer; everything is borrowed. */
struct icf_sym_log_in {
	const char *obj; /* the file that logs name by this name or base name; NULL: none */
	bool has_base;   /* OBJ was loaded at BASE */
	uint64_t base;
	const struct icf_sym_style *style;
	const struct dwr_sym_options *options;
	unsigned flags; /* DWR_SYM_* */
	bool inlines;
};

/* Copies the N files ARG, or standard input if N is 0, to standard output, with functions and
 * places in stack frames (icf/trace/log_text.h).  Files that are missing are reported on standard
 * error, once.  Errors: a file that cannot be read, OBJ that cannot be opened, out of memory. */
struct elfrw_err *icf_sym_log(const struct icf_sym_log_in *in, char **arg, int n);
#endif
