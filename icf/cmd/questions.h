/* questions.h: addresses and symbols, asked one a line, and the places that answer them. */
#ifndef ICF_CMD_QUESTIONS_H
#define ICF_CMD_QUESTIONS_H
#include "icf/cmd/sym_print.h"

/* What is asked of which files, and how answers are printed; everything is borrowed. */
struct icf_questions_in {
	const struct icf_sym_style *style;
	const struct dwr_sym_options *options;
	unsigned flags;  /* DWR_SYM_* */
	bool inlines;    /* false: one frame for an address */
	uint64_t adjust; /* is subtracted from each address */
	const char *obj; /* NULL: each line names its file */
};

struct icf_questions;

/* IN is borrowed until icf_questions_close (NULL is allowed there).  Errors: out of memory. */
struct elfrw_err *icf_questions_open(const struct icf_questions_in *in, struct icf_questions **ret);
void icf_questions_close(struct icf_questions *s);

/* Prints the answers to the N questions ARG, or, when N is 0, to the lines of standard input.  What
 * is wrong with a file is told on standard error, once.  Errors: standard input, out of memory. */
struct elfrw_err *icf_questions_ask(struct icf_questions *s, char **arg, int n);

/* The file PATH, which stays open as long as S; *RET is NULL when it cannot be read, which is told
 * on standard error. *NAME is PATH's copy in S. */
struct elfrw_err *icf_questions_file(struct icf_questions *s, const char *path, const char **name,
				     struct dwr_sym **ret);

/* *STATUS becomes the exit status.  Errors: what dwr_sym_complete finds in the files that were
 * read. */
struct elfrw_err *icf_questions_complete(struct icf_questions *s, int *status);
#endif
