/* questions.h: answers questions about addresses and symbols, one a line. */
#ifndef ICF_CMD_SYM_QUESTIONS_H
#define ICF_CMD_SYM_QUESTIONS_H
#include "icf/cmd/sym/print.h"

/* The files and addresses in question, and how to print answers; everything is borrowed. */
struct icf_questions_in {
	const struct icf_sym_style *style;
	const struct dwr_sym_options *options;
	unsigned flags;  /* DWR_SYM_* */
	bool inlines;    /* false: one frame for an address */
	uint64_t adjust; /* subtracted from each address */
	const char *obj; /* NULL: each line names its file */
};

struct icf_questions;

/* IN is borrowed until icf_questions_close, which accepts NULL.  Errors: out of memory. */
struct elfrw_err *icf_questions_open(const struct icf_questions_in *in, struct icf_questions **ret);
void icf_questions_close(struct icf_questions *s);

/* Prints the answers to the N questions ARG or, if N is 0, to the lines of standard input.  Faults
 * of a file are reported on standard error, once.  Errors: standard input, out of memory. */
struct elfrw_err *icf_questions_ask(struct icf_questions *s, char **arg, int n);

/* The file PATH, which stays open as long as S.  *RET is NULL if the file cannot be read, which is
 * reported on standard error.  *NAME is S's copy of PATH. */
struct elfrw_err *icf_questions_file(struct icf_questions *s, const char *path, const char **name,
				     struct dwr_sym **ret);

/* Sets *STATUS to the exit status.  Errors: those of dwr_sym_complete for the files that were
 * read. */
struct elfrw_err *icf_questions_complete(struct icf_questions *s, int *status);
#endif
