/* line.h: .debug_line rewritten through the address map.
 *
 * Existing tables keep their headers byte for byte, so every file index in .debug_info stays valid.
 * Sequences that move as a whole are patched.  Others are decoded, cut at the borders of runs that
 * move together, and encoded again.  The rows of folded functions leave their tables (unless the
 * policy is alias) for one artificial table at the end of the section. */
#ifndef DWARF_REWRITE_LINE_LINE_H
#define DWARF_REWRITE_LINE_LINE_H
#include "dwarf/line.h"
#include "dwarf/rewrite/rewrite.h"
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_addrmap;

/* One unit of .debug_info or .debug_types that has a DW_AT_stmt_list. */
struct dwr_rw_line_cu {
	uint64_t stmt_list;
	const char *comp_dir;      /* borrowed; NULL: none */
	uint64_t str_offsets_base; /* UINT64_MAX: none.  Only for names in the line table by
				      DW_FORM_strx* */
};

/* Everything is borrowed. */
struct dwr_rw_line_in {
	const struct elfrw_addrmap *map;
	enum dwr_policy policy;
	unsigned threads;
	uint8_t address_size; /* of the file: 4 or 8 */
	const char *name;     /* ".debug_line", for messages */
	struct dwr_bytes line;
	struct dwr_line_strings strings; /* only read for the files of folded functions */
	const struct dwr_rw_line_cu
		*cu; /* any order, a stmt_list several times (the first with a comp_dir counts) */
	size_t n_cus;
	/* Does a unit claim the code at old address VA?  NULL: all code is claimed.  Asked only for
	 * functions without rows of their own: a row that reaches over a function that no unit
	 * claims does not describe it. */
	struct elfrw_err *(*claimed)(void *arg, uint64_t va, bool *ret);
	void *claimed_arg;
	/* How many rows of one sequence, and of all functions whose rows are taken out, may be held
	 * in memory (32 bytes each); less than two million mean two million. */
	uint64_t max_rows;
	/* Name and directory of the artificial unit; NULL: DWR_FOLDED_UNIT_NAME, "/". */
	const char *folded_name, *folded_dir;
};

/* OLD_OFF in the input's .debug_line is NEW_OFF in the output's; UINT64_MAX: gone. */
struct dwr_rw_line_off {
	uint64_t old_off, new_off;
};

enum dwr_fold_rows {
	DWR_FOLD_NONE, /* not folded, no rows in the input, or the policy keeps no rows apart */
	DWR_FOLD_SAME, /* rows name the same places as the kept function's: use those */
	DWR_FOLD_OWN,  /* has sequences in the artificial table */
};

/* The result for the rows of one unit of the map. */
struct dwr_rw_line_fold {
	uint64_t seq;    /* OWN: of its first sequence's first opcode, from the artificial table's
			    first opcode */
	uint32_t n_seqs; /* OWN: the number of adjacent sequences there (one, except for functions
			    with gaps) */
	uint32_t file;   /* OWN: of its first row, index into the artificial table's files */
	uint32_t line;   /* OWN and SAME: of its first row */
	uint8_t status;  /* enum dwr_fold_rows */
};

struct dwr_rw_line_out {
	uint8_t *data; /* the new section; owned */
	size_t size;
	uint8_t *line_str; /* the new .debug_line_str, to which the artificial table's names were
			      added; owned.  NULL: it stays as it is */
	size_t line_str_size;
	struct dwr_rw_line_off
		*unit; /* one per input table (DW_AT_stmt_list), sorted by old_off; owned */
	size_t n_units;
	struct dwr_rw_line_off
		*seq; /* one per input sequence (DW_AT_LLVM_stmt_sequence), sorted by old_off;
			 owned.  A sequence that was cut: its first piece; all of it folded: gone */
	size_t n_seqs;
	struct dwr_rw_line_fold
		*fold; /* one for each unit of the map (all NONE except folded ones); owned */
	uint64_t folded_unit;    /* offset of the artificial table, 0: there is none */
	uint16_t folded_version; /* of the artificial table: 5 when the input has a v5 table, else
				    4; set in any case */
	uint8_t folded_offset_size;
	bool folded_relative; /* its unit must have no DW_AT_comp_dir, see fold.h */
	uint32_t patched, encoded, removed,
		untouched; /* sequences of the input, by what was done */
};

/* Rewrites IN->line.  *OUT is untouched on failure.  The result does not depend on IN->threads.
 * Errors: tables that cannot be read (see dwr_line_header_read), or that would have to be encoded
 * again and cannot be; sequences to be cut, or rows to be taken out, of more than max_rows. */
struct elfrw_err *dwr_rw_line(const struct dwr_rw_line_in *in, struct dwr_rw_line_out *out);
void dwr_rw_line_out_deinit(struct dwr_rw_line_out *out);

/* The new offset of the table at OLD_OFF; UINT64_MAX: no table begins there. */
uint64_t dwr_rw_line_unit_off(const struct dwr_rw_line_out *out, uint64_t old_off);

/* The new offset of the sequence at OLD_OFF; UINT64_MAX: none begins there, or it is gone. */
uint64_t dwr_rw_line_seq_off(const struct dwr_rw_line_out *out, uint64_t old_off);
#endif
