/* icfold_note.h: writer and reader of .debug_icfold (format: icfold-format(5)).
 *
 * The section holds what no other table can: the address map; the groups with their members' names,
 * DIEs and thunks; the vtable slots whose target was folded; and the overlay, which has the PC
 * ranges that were taken from the members' DIEs. */
#ifndef DWARF_CALLS_ICFOLD_NOTE_H
#define DWARF_CALLS_ICFOLD_NOTE_H
#include "dwarf/folding.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/err.h"
#include "elfrw/base/rbuf.h"
#include <stdbool.h>
#include <stdint.h>

#define DWR_ICFOLD_MAGIC           "\x89ICFOLD\n"
#define DWR_ICFOLD_VERSION         3
#define DWR_ICFOLD_VERSION_REMOVED 4 /* with the names of functions that were removed */

/* A range that a DIE lost. */
struct dwr_note_range {
	uint64_t die;        /* .debug_info offset */
	uint32_t unit;       /* the folded unit that the range lay in */
	uint64_t start, len; /* bytes, start relative to the unit's old start */
};

enum dwr_note_rows_status {
	DWR_NOTE_ROWS_NONE, /* no line rows of its own, or unknown */
	DWR_NOTE_ROWS_SAME, /* its rows name the same places as the kept function's */
	DWR_NOTE_ROWS_OWN,  /* has sequences in the line table of the artificial unit */
};

/* The place of a folded unit's line rows. */
struct dwr_note_rows {
	uint8_t status;
	uint32_t n_seqs; /* OWN: sequences that follow each other */
	uint64_t seq;    /* OWN: of the first one's first opcode, from the first opcode of the
			    artificial unit's line table: editors of debug information (debugedit)
			    move tables, and change the sizes of their headers */
};

/* The contents of the section; everything is borrowed. */
struct dwr_note_in {
	const struct dwr_rewrite_in *rw;
	const struct dwr_note_die *die; /* sorted by unit, then DIE; of kept and folded units */
	size_t n_dies;
	const struct dwr_note_range
		*range; /* sorted by DIE, then in the order of the DIE's ranges */
	size_t n_ranges;
	const struct dwr_note_rows *rows; /* map->n_units entries, or NULL */
	uint64_t artificial_unit;         /* its .debug_info offset, or UINT64_MAX */
};

/* The section's bytes; *RET is malloc'ed. */
struct elfrw_err *dwr_note_write(const struct dwr_note_in *in, uint8_t **ret, size_t *ret_size);

struct dwr_icfold_member {
	uint32_t unit;  /* index in map.unit: old range, body, thunk */
	uint32_t group; /* index in group */
	uint32_t name;  /* first name in names; there may be none */
	uint32_t n_names;
	uint32_t die; /* first DIE in dies; there may be none */
	uint32_t n_dies;
	uint64_t stand_in; /* the DIE of the artificial unit that stands for it in the call tables;
			      0: none */
	struct dwr_note_rows rows;
};

struct dwr_icfold_die {
	uint64_t die;     /* .debug_info offset */
	uint64_t overlay; /* start of its ranges and of those of the DIEs below it
			     (dwr_icfold_overlay_at); UINT64_MAX: none */
};

/* A group of functions that share one body.  The first member is the kept one. */
struct dwr_icfold_group {
	uint32_t member, n_members;
};

/* A unit that was removed because nothing uses it. */
struct dwr_icfold_removed {
	uint32_t unit;
	uint32_t name, n_names; /* in names; there may be none */
};

/* A decoded section; n_* count what the arrays hold. */
struct dwr_icfold {
	const uint8_t *data; /* borrowed */
	size_t size;
	unsigned version;
	enum dwr_policy policy;
	uint64_t artificial_unit;       /* UINT64_MAX: none */
	struct elfrw_addrmap map;       /* old to new, finished */
	struct dwr_icfold_group *group; /* owned, as all arrays; sorted by the kept unit's index */
	size_t n_groups;
	struct dwr_icfold_member *member;
	size_t n_members;
	const char **names; /* the strings are borrowed from data */
	size_t n_names;
	struct dwr_icfold_die *dies;
	size_t n_dies;
	struct dwr_vslot *vslot; /* sorted by slot */
	size_t n_vslots;
	struct dwr_icfold_removed *removed; /* sorted by unit */
	size_t n_removed;
	uint64_t overlay, overlay_size; /* place of the overlay in data */
	size_t n_overlay;               /* its entries */
	uint32_t *unit_member;          /* by unit: index of its member, UINT32_MAX: in no group */
};

/* Decodes DATA (SIZE bytes, which must outlive *RET).  Checks and decodes everything but the
 * overlay.  Errors: another magic or version, anything that does not fit. */
struct elfrw_err *dwr_icfold_read(struct dwr_icfold *ret, const uint8_t *data, size_t size);
void dwr_icfold_deinit(struct dwr_icfold *note);

/* One DIE of the overlay and its ranges. */
struct dwr_icfold_entry {
	uint64_t die;
	uint32_t n_ranges;
	struct elfrw_rbuf ranges; /* for dwr_icfold_range_next */
	uint64_t unit;            /* state of the range decoding */
};

/* The state of a walk over the overlay. */
struct dwr_icfold_walk {
	struct elfrw_rbuf r;
	const uint8_t *base;
	uint64_t die, unit;
	uint32_t n_units;
};

/* A walk over the whole overlay, or from a DIE on.  DIEs come in the order of their offsets, so
 * those of a function's scopes follow the function's DIE directly. */
struct dwr_icfold_walk dwr_icfold_overlay(const struct dwr_icfold *note);
struct dwr_icfold_walk dwr_icfold_overlay_at(const struct dwr_icfold *note,
					     const struct dwr_icfold_die *die);

/* The next entry; *MORE false at the end. */
struct elfrw_err *dwr_icfold_overlay_next(struct dwr_icfold_walk *walk,
					  struct dwr_icfold_entry *ret, bool *more);

/* The next range of ENTRY; false: there is none, or it is broken.  The range is [unit.old + start,
 * + len). */
bool dwr_icfold_range_next(struct dwr_icfold_entry *entry, struct dwr_note_range *ret);
#endif
