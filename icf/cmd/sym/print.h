/* print.h: frames as text, in the styles of llvm-symbolizer and addr2line. */
#ifndef ICF_CMD_SYM_PRINT_H
#define ICF_CMD_SYM_PRINT_H
#include "dwarf/symbolize/symbolize.h"
#include <stdio.h>

enum icf_sym_output { ICF_SYM_LLVM, ICF_SYM_GNU, ICF_SYM_JSON };

struct icf_sym_style {
	enum icf_sym_output output;
	bool functions; /* print names of functions */
	bool addresses; /* print the address first */
	bool pretty;    /* one line a frame; JSON: indented */
	bool verbose;
};

/* The result for an address in code that several functions share. */
struct icf_sym_merged {
	bool decided;
	const char *by;               /* what decided it; NULL: undecided */
	const char *const *candidate; /* names; NULL: not known */
	size_t n;
};

/* The answer to one question; everything is borrowed. */
struct icf_sym_answer {
	const char *module;
	const uint64_t *address;             /* NULL: the question was a symbol */
	const struct icf_sym_merged *merged; /* NULL: nothing to say */
	const struct dwr_sym_frame *frame;   /* N of them, the innermost first; none: unknown */
	size_t n;
	const char *symbol,
		*error; /* with ERROR: the question (or NULL), and why there is no answer */
};

/* In JSON an answer is one object without a newline, indented DEPTH times if pretty.  After the
 * frames, text names the candidates of an undecided function, as `one of: a, b`; JSON has the key
 * "Merged".  Text prints an error as an unknown answer. */
void icf_sym_print(FILE *f, const struct icf_sym_style *style, const struct icf_sym_answer *answer,
		   unsigned depth);

/* Prints an invalid line of the input unchanged, except for characters that affect a terminal. */
void icf_sym_print_line(FILE *f, const char *line);
#endif
