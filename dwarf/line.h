/* line.h: line tables (.debug_line): header, tables of directories and files, programs to rows and
 * rows to programs.
 *
 * DWARF 2 to 5, section 6.2 of each, 32- and 64-bit.  VLIW tables
 * (maximum_operations_per_instruction > 1) are refused.  Rows are plain values in one flat array,
 * which the caller reuses from table to table. */
#ifndef DWARF_LINE_H
#define DWARF_LINE_H
#include "dwarf/sections.h"
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/wbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Where the names in DWARF 5 tables can lie.  All may be empty. */
struct dwr_line_strings {
	struct dwr_bytes line_str, str, str_offsets;
};

/* One header.  Offsets count from the start of the section; pointers are into its bytes. */
struct dwr_line_header {
	const char *section;    /* for messages */
	const uint8_t *data;    /* the section */
	uint64_t off;           /* of unit_length */
	uint64_t end;           /* of the whole unit */
	uint64_t tables;        /* of the directory table (v5: of directory_entry_format_count) */
	uint64_t program;       /* of the first opcode, from header_length */
	const uint8_t *lengths; /* standard_opcode_lengths; [opcode - 1], opcode < opcode_base */
	uint16_t version;
	uint8_t offset_size;  /* 4 or 8 */
	uint8_t address_size; /* v5; else 0 */
	uint8_t min_inst_length;
	uint8_t max_ops; /* v4 and up; else 1 */
	bool default_is_stmt;
	int8_t line_base;
	uint8_t line_range, opcode_base;
	uint16_t advance[256];     /* what a special opcode adds to the address, in bytes */
	int16_t line_advance[256]; /* and to the line */
};

/* Reads the header at OFF of SECTION (its name, borrowed by *RET), up to but not into the tables.
 * A unit_length of 0 is an error here: callers skip padding first.  Errors: truncated, unknown
 * version, header_length outside of the unit, a standard opcode with other than its standard number
 * of operands, VLIW. */
struct elfrw_err *dwr_line_header_read(const char *section, struct dwr_bytes sec, uint64_t off,
				       struct dwr_line_header *ret);

struct dwr_line_file {
	const char *name;   /* borrowed from a section; never NULL */
	const uint8_t *md5; /* 16 bytes, borrowed, or NULL */
	uint64_t dir;       /* as in the table; not checked */
};

/* Both tables, with the indices that rows use.  Before v5 entry 0 of FILE is unused (empty name),
 * and entry 0 of DIR stands for the compilation directory and is NULL. */
struct dwr_line_files {
	VEC(const char *) dir;
	VEC(struct dwr_line_file) file;
};

/* Reads the directory and file tables and, with DEFINED, the files that DW_LNE_define_file adds in
 * the program.  STR_OFFSETS_BASE is for DW_FORM_strx*: the unit's DW_AT_str_offsets_base, or
 * UINT64_MAX for the first table's.  FILES is emptied first; keep it for the next call, or free
 * it. */
struct elfrw_err *dwr_line_files_read(const struct dwr_line_header *h,
				      const struct dwr_line_strings *str, uint64_t str_offsets_base,
				      bool defined, struct dwr_line_files *files);
void dwr_line_files_deinit(struct dwr_line_files *files);

enum {
	DWR_ROW_STMT = 1,
	DWR_ROW_BLOCK = 2,
	DWR_ROW_END = 4, /* end_sequence: not a row, but the address past the last byte */
	DWR_ROW_PROLOGUE_END = 8,
	DWR_ROW_EPILOGUE_BEGIN = 16,
	/* How the address was reached since the row before.  GNU view numbers, which count the rows
	 * at one address, depend on it: set_address begins a new count even if the address stays
	 * the same; fixed_advance_pc does not, even if it changes. */
	DWR_ROW_VIA_SET = 32,
	DWR_ROW_VIA_FIXED = 64,
};

struct dwr_row {
	uint64_t address;
	uint32_t file, line, column, discriminator, isa;
	uint8_t flags;
};

struct dwr_rows {
	struct dwr_row *data;
	size_t len, cap;
};

/* Decodes one sequence: from the opcode at *OFF to its end_sequence, or to the end of the unit.
 * Appends its rows (the last one with DWR_ROW_END, when there is one) to ROWS and moves *OFF behind
 * it.  Rows come in program order, several at one address included.  Line numbers wrap as 32-bit
 * numbers.  Unknown opcodes are skipped by their length. */
struct elfrw_err *dwr_line_decode(const struct dwr_line_header *h, uint64_t *off,
				  struct dwr_rows *rows);

/* The result of a scan of a sequence: enough to patch it in place. */
struct dwr_line_seq {
	uint64_t off, end_off; /* of its first opcode; past its last */
	uint64_t first, end;   /* address of its first row; of its end_sequence (or last row) */
	uint64_t lo, hi;  /* all addresses lie in [lo, hi]; the tightest bounds when ascending */
	uint64_t set_off; /* of the operand of the last set_address before the first row; 0: none */
	uint32_t sets;    /* number of set_address in it */
	uint8_t set_size; /* bytes of the operand at set_off */
	uint64_t rows;    /* number of its rows, without the end */
	bool terminated;  /* has an end_sequence */
	bool ascending;   /* addresses never go back */
	bool tail;        /* its last rows stand at its end and cover no byte */
	bool defines_files; /* has a DW_LNE_define_file */
};

/* The same walk without making rows, several times as fast.  Padding behind the last sequence (zero
 * bytes) gives neither rows nor an end. */
struct elfrw_err *dwr_line_scan(const struct dwr_line_header *h, uint64_t *off,
				struct dwr_line_seq *ret);

/* One extended opcode: OFF of its 0 byte, ARG and SIZE of the bytes behind its number. */
struct dwr_line_ext {
	uint64_t off, end_off, arg;
	uint64_t size;
	uint8_t op;
};

/* Describes the next extended opcode before END and moves *OFF behind it; op 0 in *RET: there is
 * none. */
struct elfrw_err *dwr_line_next_ext(const struct dwr_line_header *h, uint64_t *off, uint64_t end,
				    struct dwr_line_ext *ret);

/* Can tables with this header be written?  See dwr_line_encode. */
bool dwr_line_can_encode(const struct dwr_line_header *h);

/* A stable sort by address, for sequences that go back.  SPARE: reusable memory.  false: out of
 * memory. */
bool dwr_line_sort(struct dwr_rows *rows, struct dwr_rows *spare);

/* A sequence to write: N rows and its end, at or above the last row.  DELTA is added to all
 * addresses.  DWR_ROW_END in the rows is ignored. */
struct dwr_line_sequence {
	const struct dwr_row *row; /* borrowed */
	size_t n;
	uint64_t end, delta;
};

/* Appends SEQ: set_address to its first row, the rows, end_sequence.  Uses H's special opcodes.
 * ADDRESS_SIZE (1 to 8) is that of the operand.  Error: H's opcode_base excludes opcodes that are
 * needed. */
struct elfrw_err *dwr_line_encode(const struct dwr_line_header *h, unsigned address_size,
				  const struct dwr_line_sequence *seq, struct elfrw_wbuf *w);

/* Fills the two tables of special opcodes from min_inst_length, line_base, line_range and
 * opcode_base. */
void dwr_line_header_finish(struct dwr_line_header *h);
#endif
