/* state.h: private to this folder: the state of one rewriting of .debug_line. */
#ifndef DWARF_REWRITE_LINE_STATE_H
#define DWARF_REWRITE_LINE_STATE_H
#include "dwarf/rewrite/line/fold.h"
#include "dwarf/rewrite/line/line.h"
#include "dwarf/rewrite/line/start.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/wbuf.h"
#include <stdatomic.h>

/* Units of the map that move together. */
struct dwr_line_run {
	uint64_t old, old_end;
	uint64_t delta; /* what to add to an old address */
	bool out;       /* one folded unit whose rows leave their table */
};

enum {
	SEQ_ROWS = 1,
	SEQ_TERMINATED = 2,
	SEQ_ASCENDING = 4,
	SEQ_DEFINES = 8,
	SEQ_LIVE = 16,
	SEQ_TAIL = 32
};

/* Data of a scanned sequence. */
struct dwr_line_scanned {
	uint64_t off;
	uint64_t lo, hi;  /* bounds of its addresses */
	uint64_t new_off; /* in the table's new bytes; UINT64_MAX: gone */
	uint32_t len;     /* bytes */
	uint32_t rows;
	uint32_t set; /* place of set_address's operand from off; 0: none */
	uint32_t sets;
	uint8_t set_size, flags;
};

struct dwr_line_patch {
	uint64_t pos, value; /* in the table's new bytes */
	uint8_t size;
};

struct dwr_line_table {
	uint64_t off, end; /* in the input */
	uint64_t new_off, size;
	VEC(struct dwr_line_scanned) seq;
	VEC(struct dwr_line_patch) patch;
	struct elfrw_wbuf w; /* its new bytes, except for patches; empty: the old ones */
	struct dwr_line_taken taken;
	uint32_t patched, encoded, removed, untouched;
	uint16_t version;
	uint8_t offset_size;
	bool named; /* by a unit's DW_AT_stmt_list; else (clang's -gline-directives-only) no one
		       who looks up an address finds its rows */
};

struct dwr_line_job {
	const struct dwr_rw_line_in *in;
	const struct elfrw_addrmap *map;
	struct dwr_line_run *run;
	uint32_t n_runs;
	uint32_t *run_of;       /* of each unit */
	uint32_t *special;      /* units whose rows or first row are wanted, sorted */
	uint32_t *special_from; /* [u]: index in special of the first one at or above u; n_units + 1
				   entries */
	struct dwr_line_starts starts;
	_Atomic uint32_t *
		owner; /* of each special unit: the lowest table that covers it, UINT32_MAX: none */
	struct dwr_line_table *table;
	size_t n_tables, cap_tables;
	atomic_size_t visits; /* units examined for sequences that span several; limited, since the
				 input controls the number */
	size_t max_visits;
	atomic_size_t kept; /* rows taken out so far */
	uint64_t max_rows;
	struct dwr_rw_line_cu *cu; /* sorted by stmt_list */
	uint8_t *data;             /* the output */
};

static inline bool dwr_line_folded(const struct elfrw_addrmap_unit *u)
{
	return u->flags & ELFRW_UNIT_FOLDED;
}

/* ---- runs.c ---- */

/* Condenses the map into JOB's runs and finds the units whose rows are wanted. */
struct elfrw_err *dwr_line_make_runs(struct dwr_line_job *job);

/* The first run that ends after VA; n_runs: none. */
uint32_t dwr_line_run_after(const struct dwr_line_job *job, uint64_t va);

/* The special units that [LO, HI) can touch: indices in job->special. */
void dwr_line_special_range(const struct dwr_line_job *job, uint64_t lo, uint64_t hi,
			    uint32_t *from, uint32_t *to);

/* Counts N examined units against the limit for a sound file. */
struct elfrw_err *dwr_line_count_visits(struct dwr_line_job *job, size_t n);

/* ---- scan.c ---- */

/* Finds the tables, which are adjacent.  Zero bytes between them are padding.  Padding ends at a
 * nonzero unit_length or, if it is not a multiple of four bytes, where a unit of .debug_info says
 * that a table begins. */
struct elfrw_err *dwr_line_find_tables(struct dwr_line_job *job);

/* Finds the sequences of table INDEX of ARG, a struct dwr_line_job.  If a unit names the table, it
 * becomes the owner of the units that it covers. */
struct elfrw_err *dwr_line_scan_table(void *arg, size_t index);

/* ---- table.c ---- */

/* Makes the new bytes of table INDEX of ARG, a struct dwr_line_job, and takes out the rows that the
 * artificial table may need. */
struct elfrw_err *dwr_line_rewrite_table(void *arg, size_t index);
#endif
