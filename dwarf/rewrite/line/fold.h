/* fold.h: private to this folder: the rows taken out of line tables and the artificial table made
 * of them. */
#ifndef DWARF_REWRITE_LINE_FOLD_H
#define DWARF_REWRITE_LINE_FOLD_H
#include "dwarf/rewrite/line/line.h"

/* Rows of one input table that cover one unit of the map: row[first .. first + n) of the table's
 * `rows`, addresses relative to the unit's start, up to `end`. */
struct dwr_line_cover {
	uint32_t unit, table;
	size_t first, n;
	uint64_t end;
	bool carried; /* it has no row of its own: a row of the code before reaches over it */
};

/* The rows taken from one input table. */
struct dwr_line_taken {
	uint64_t off;       /* of the table in the input */
	bool defines_files; /* its program has DW_LNE_define_file */
	struct dwr_rows rows;
	VEC(struct dwr_line_cover) cover;
};

struct dwr_line_folds {
	const struct dwr_rw_line_in *in;
	const struct dwr_line_taken *const *table; /* n_tables */
	size_t n_tables;
	uint16_t version; /* of the artificial table */
	uint8_t offset_size;
	uint64_t base; /* where it will begin in the output */
};

/* What the folded units' rows became; owned. */
struct dwr_line_folded {
	struct elfrw_wbuf table;   /* the artificial table; empty: no unit needs one */
	struct elfrw_wbuf strings; /* what it adds to the end of .debug_line_str */
	bool relative; /* some of its paths are relative (units with a relative directory, as
			  -ffile-prefix-map=DIR=. makes them); its unit must then have no
			  directory, to which they would be appended */
};

/* Compares each folded unit's rows with those of its kept unit, fills FOLD (one for each unit of
 * the map, zeroed by the caller), and makes the artificial table in RET, zeroed by the caller, who
 * frees it after an error, too. */
struct elfrw_err *dwr_rw_line_folds(const struct dwr_line_folds *folds,
				    struct dwr_rw_line_fold *fold, struct dwr_line_folded *ret);
#endif
