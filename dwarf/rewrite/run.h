/* run.h: private to rewrite.c and its parts: one rewriting with everything that it makes. */
#ifndef DWARF_REWRITE_RUN_H
#define DWARF_REWRITE_RUN_H
#include "dwarf/rewrite/addr.h"
#include "dwarf/rewrite/state.h"
#include "dwarf/rewrite/vtable/vtable.h"

/* Consecutive units that are processed together: small ones share a table of abbreviations. */
struct dwr_rw_batch {
	uint32_t first, n;
};

struct dwr_rw_run {
	struct dwr_rw rw;
	struct dwr_rewrite_out out;
	VEC(struct dwr_rw_batch) batch;
	struct dwr_list_cu *cu;
	struct dwr_list_use *use;
	struct dwr_list_new *add;
	size_t n_uses, n_add;
	struct dwr_addr_table addr;
	struct dwr_rw_lists_out lists;
	size_t info_size; /* of the new .debug_info */
	struct elfrw_wbuf abbrev;
	struct dwr_rw_vtables vtables;
	uint64_t artificial;
	bool has_range;               /* the artificial unit has */
	struct dwr_note_range *range; /* that DIEs lost, for the note */
	size_t n_ranges;
};

/* ---- tables.c ---- */

struct elfrw_err *dwr_rw_rewrite_lines(struct dwr_rw_run *run);

struct elfrw_err *dwr_rw_rewrite_frame(struct dwr_rw_run *run);

struct elfrw_err *dwr_rw_rewrite_indices(struct dwr_rw_run *run);

/* ---- list_use.c ---- */

/* Rewrites the list sections and .debug_addr. */
struct elfrw_err *dwr_rw_rewrite_lists(struct dwr_rw_run *run);

/* room.c: memory for the copies of .debug_info and .debug_types, and for sites.  RW->lists has the
 * sections of lists. */
struct elfrw_err *dwr_rw_make_copies(struct dwr_rw *rw);

/* Writes the lists' new places into the DIEs of batch I of ARG, a struct dwr_rw_run; those of new
 * ranges, into the units' own DIEs. */
struct elfrw_err *dwr_rw_apply_lists(void *arg, size_t i);
struct elfrw_err *dwr_rw_apply_ranges(struct dwr_rw_run *run);

/* ---- artificial.c ---- */

/* Appends the unit that owns the rows of folded functions and the vtables.  Its own range is one
 * byte that is never a PC.  Debuggers ignore the lines of a unit without a range; and no look-up by
 * address enters a unit whose range does not hold the address. */
struct elfrw_err *dwr_rw_append_unit(struct dwr_rw_run *run);

/* ---- note.c ---- */

/* The order of struct dwr_note_die: by unit, then DIE. */
int dwr_rw_note_die_order(const void *a, const void *b);

/* Collects the DIEs and ranges for the note from what the walk and the lists have left. */
struct elfrw_err *dwr_rw_collect_note(struct dwr_rw_run *run);

/* After dwr_rw_collect_note(). */
struct elfrw_err *dwr_rw_write_note(struct dwr_rw_run *run);

/* ---- emit.c ---- */

/* A section that the input does not have is compressed if .debug_info is, so that a file is
 * consistent. */
void dwr_rw_compress_new(struct dwr_rw *rw, enum dwr_sec id);

/* Records the new contents of section ID, or of a new one with shndx 0; takes ownership of DATA.
 * Unchanged sections are not recorded. */
struct elfrw_err *dwr_rw_emit(struct dwr_rw_run *run, enum dwr_sec id, uint8_t *data, size_t size);

/* Emits the sections that the other parts have left in RUN. */
struct elfrw_err *dwr_rw_emit_sections(struct dwr_rw_run *run);

/* For qsort: existing sections by shndx, then the new ones by name. */
int dwr_rw_by_place(const void *a, const void *b);
#endif
