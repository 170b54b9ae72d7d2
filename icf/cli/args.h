/* args.h: argument lists with response files (@FILE), as the GNU tools and the linkers read
 * them. */
#ifndef ICF_CLI_ARGS_H
#define ICF_CLI_ARGS_H
#include "elfrw/base/err.h"
#include <stddef.h>

/* Starts as { 0 }. */
struct icf_args {
	const char **v; /* owned array; the strings are the caller's or lie in `text` */
	size_t n, cap;
	char **text; /* texts that were read or made; owned */
	size_t n_text;
	const char **file; /* the files that were read, in order; owned array, strings as above */
	size_t n_file;
};

/* Appends S, which is borrowed. */
struct elfrw_err *icf_args_push(struct icf_args *a, const char *s);

/* Appends ARG.  If ARG is @FILE and the file exists, appends the arguments in it instead, which may
 * again be @FILE.  White space separates arguments; quotes and backslashes protect it. */
struct elfrw_err *icf_args_expand(struct icf_args *a, const char *arg);

/* Frees TEXT (malloc; NULL: out of memory) with A, or at once on an error. */
struct elfrw_err *icf_args_own(struct icf_args *a, char *text);

/* Reads the whole small text file PATH, which is borrowed.  *RET is writable and freed with A.  The
 * error names PATH. */
struct elfrw_err *icf_args_read_text(struct icf_args *a, const char *path, char **ret);

void icf_args_deinit(struct icf_args *a);
#endif
