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

/* One question and its frames (none: unknown).  ADDRESS may be NULL.  In JSON this is one object,
 * without a newline; DEPTH is how far it is indented when pretty. */
void icf_sym_print(FILE *f, const struct icf_sym_style *style, const char *module,
		   const uint64_t *address, const struct dwr_sym_frame *frame, size_t n,
		   unsigned depth);

/* What is known about an address in code that several functions share. */
struct icf_sym_merged {
	bool decided;
	const char *by;               /* what decided it; NULL: nothing */
	const char *const *candidate; /* names; NULL: not known */
	size_t n;
};

/* The same with MERGED (NULL: nothing to say): text names the candidates of what is undecided after
 * the frames, as `one of: a, b`; JSON has the key "Merged". */
void icf_sym_print_merged(FILE *f, const struct icf_sym_style *style, const char *module,
			  const uint64_t *address, const struct icf_sym_merged *merged,
			  const struct dwr_sym_frame *frame, size_t n, unsigned depth);

/* JSON only: the object of a question that could not be answered.  SYMBOL may be NULL. */
void icf_sym_print_error(FILE *f, const struct icf_sym_style *style, const char *module,
			 const uint64_t *address, const char *symbol, const char *message,
			 unsigned depth);

/* A line of the input that makes no sense, as it came, but for what a terminal acts on. */
void icf_sym_print_line(FILE *f, const char *line);
#endif
