/* perf.h: the text of `perf script` with the functions that were really called. */
#ifndef ICF_CMD_PERF_H
#define ICF_CMD_PERF_H
#include "dwarf/symbolize/symbolize.h"

struct icf_sym_perf_in {
	const char *obj; /* the file whose frames are replaced; NULL: all files with tables */
	const struct dwr_sym_options *options;
};

/* Copies the N files ARG, or standard input if N is 0, to standard output, and replaces names of
 * functions.  Errors: a file that cannot be read, out of memory; OBJ that cannot be opened or has
 * no tables. */
struct elfrw_err *icf_sym_perf(const struct icf_sym_perf_in *in, char **arg, int n);
#endif
