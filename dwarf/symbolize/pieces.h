/* pieces.h: all code of a file, function by function: for those who write out what a symbolizer
 * knows.  It says of each address what dwr_sym_frames() says. */
#ifndef DWARF_SYMBOLIZE_PIECES_H
#define DWARF_SYMBOLIZE_PIECES_H
#include "dwarf/symbolize/symbolize.h"

/* A run of code of one function. */
struct dwr_sym_piece {
	uint64_t lo, hi;
	uint64_t unit; /* .debug_info offset of the unit that the function is of, or
			  DWR_SYM_NO_DIE */
	uint64_t die;  /* of the function; DWR_SYM_NO_DIE: only the symbol table knows it */
	bool several;  /* then: several symbols have the address */
};

struct dwr_sym_pieces {
	struct dwr_sym_piece *data; /* owned */
	size_t len, cap;
};

/* Lists the code of all functions of SYM's debug information, then of symbols for the rest of the
 * executable sections; ascending and disjoint.  *RET is zeroed by the caller, who frees it with
 * VEC_FREE().  Errors: out of memory.  Cost: a walk over all of .debug_info. */
struct elfrw_err *dwr_sym_pieces(struct dwr_sym *sym, struct dwr_sym_pieces *ret);

/* Code with one place of a line table. */
struct dwr_sym_row {
	uint64_t lo, hi;
	const char *file; /* NULL: not known */
	uint32_t line, column, discriminator;
};

/* An inlined copy of a function. */
struct dwr_sym_copy {
	uint64_t die;
	uint32_t parent;      /* index of the copy around it; UINT32_MAX: none */
	uint32_t depth;       /* 0: directly in the function */
	uint32_t range, n;    /* its code: first in the ranges, and how many, ascending */
	const char *function; /* demangled; NULL: not known */
	const char *linkage;  /* NULL: not known */
	const char *call_file;
	uint32_t call_line, call_column;
	const char *start_file;
	uint32_t start_line;
};

struct dwr_sym_code {
	uint64_t lo, hi;
};

/* The inside of a piece; the caller zeroes it once and reuses it. */
struct dwr_sym_insides {
	struct {
		struct dwr_sym_row *data; /* owned, as all; ascending, disjoint */
		size_t len, cap;
	} row;
	struct {
		struct dwr_sym_copy *data; /* those around come before those inside */
		size_t len, cap;
	} copy;
	struct {
		struct dwr_sym_code *data;
		size_t len, cap;
	} range;
	bool crowded; /* it has more copies than are listed: none is */
};

/* Reads the inside of PIECE.  MEMBER: that of the function MEMBER of dwr_sym_note(), which shares
 * the code with others, instead; UINT32_MAX: none.  Errors: out of memory. */
struct elfrw_err *dwr_sym_read_insides(struct dwr_sym *sym, const struct dwr_sym_piece *piece,
				       uint32_t member, struct dwr_sym_insides *ret);
void dwr_sym_insides_deinit(struct dwr_sym_insides *insides);
#endif
