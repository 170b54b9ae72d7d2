/* sym_print.h: frames as text, in the styles of llvm-symbolizer and addr2line. */
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

/* What is known about an address in code that several functions share. */
struct icf_sym_merged {
	bool decided;
	const char *by;               /* what decided it; NULL: nothing */
	const char *const *candidate; /* names; NULL: not known */
	size_t n;
};

/* The answer to one question; everything is borrowed. */
struct icf_sym_answer {
	const char *module;
	const uint64_t *address;             /* NULL: asked by symbol */
	const struct icf_sym_merged *merged; /* NULL: nothing to say */
	const struct dwr_sym_frame *frame;   /* N of them, the innermost first; none: unknown */
	size_t n;
	const char *symbol,
		*error; /* with ERROR: what was asked (or NULL), and why there is no answer */
};

/* In JSON an answer is one object, without a newline, indented DEPTH times when pretty.  Text names
 * the candidates of what is undecided after the frames, as `one of: a, b`; JSON has the key
 * "Merged".  Text prints an error as what is not known. */
void icf_sym_print(FILE *f, const struct icf_sym_style *style, const struct icf_sym_answer *answer,
		   unsigned depth);

/* A line of the input that makes no sense, as it came, but for what a terminal acts on. */
void icf_sym_print_line(FILE *f, const char *line);
#endif
