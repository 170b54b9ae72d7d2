/* state.h: private to this folder and those below: the state of one rewriting, and the results of
 * the walk over each unit. */
#ifndef DWARF_REWRITE_STATE_H
#define DWARF_REWRITE_STATE_H
#include "dwarf/calls/call_sites.h"
#include "dwarf/calls/icfold_note.h"
#include "dwarf/info.h"
#include "dwarf/rewrite/rewrite.h"
#include "dwarf/rewrite/line/line.h"
#include "dwarf/rewrite/lists/lists.h"
#include "dwarf/rewrite/range.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/wbuf.h"
#include <stdatomic.h>

enum dwr_site_kind {
	DWR_SITE_LIST,     /* a range list or location list; `list` says which */
	DWR_SITE_RNG_BASE, /* DW_AT_rnglists_base */
	DWR_SITE_LOC_BASE, /* DW_AT_loclists_base */
};

/* A place in .debug_info or .debug_types that refers to a section of lists. */
struct dwr_site {
	uint64_t pos;    /* of the value's bytes */
	uint64_t value;  /* offset of the list in its section */
	uint32_t in_die; /* bytes from the DIE's first byte to POS */
	int32_t views;   /* bytes from POS to the value of the DIE's DW_AT_GNU_locviews; 0: none */
	uint32_t owner;  /* unit of the map that the function around it is, or ELFRW_NO_UNIT */
	uint32_t index;  /* with `indexed` */
	uint8_t kind;    /* enum dwr_site_kind */
	uint8_t list;    /* enum dwr_list_kind */
	uint8_t purpose; /* enum dwr_purpose */
	uint8_t size;    /* of the value */
	bool indexed;
	bool function; /* a subprogram's DW_AT_ranges: its parts may be members of groups */
};

/* Bytes of .debug_info for each site, in optimized code. */
#define DWR_BYTES_PER_SITE 48

/* A slot of .debug_addr that needs a value that no mapping gives. */
struct dwr_slot {
	uint64_t off; /* in .debug_addr */
	uint64_t new;
	uint64_t pos; /* of the attribute, for messages */
};

enum dwr_abbrev_edit_kind {
	DWR_EDIT_IMPLICIT, /* the value of DW_FORM_implicit_const */
	DWR_EDIT_RANGES,   /* DW_AT_high_pc of the unit's own DIE becomes DW_AT_ranges */
};

/* A DIE that needs another declaration. */
struct dwr_abbrev_edit {
	uint64_t die; /* offset of the DIE, which begins with the code */
	uint64_t code;
	uint32_t attr;  /* index among the declaration's attributes */
	uint8_t kind;   /* enum dwr_abbrev_edit_kind */
	uint8_t filler; /* RANGES: bytes of the value that are left over, 0 or 4 */
	int64_t value;  /* IMPLICIT: the new one */
};

/* The results of the walk over one unit.  Owned arrays. */
struct dwr_rw_unit {
	struct dwr_unit_root root;
	bool has_base;
	uint64_t new_base; /* DW_AT_low_pc of the unit in the output */
	VEC(struct dwr_site) site;
	bool lent; /* `site` lies in the room of struct dwr_rw */
	VEC(struct dwr_slot) slot;
	VEC(struct dwr_abbrev_edit) edit;
	VEC(struct dwr_note_die) die;
	VEC(struct dwr_note_range) range; /* from low_pc and high_pc; in DIE order */
	VEC(struct dwr_list_range)
	cu_range; /* the unit's ranges, if low_pc and high_pc can no longer state them */
	uint64_t cu_range_pos; /* then: the place of their offset */
	VEC(uint64_t) macro;   /* offsets of units of .debug_macro */
	struct dwr_call_sites call;
	uint32_t folded_dies, thunk_dies, emptied;
	bool crowded; /* its range, which must stay one, covers thunks of other units' functions */
	uint32_t n_lists;   /* sites of kind DWR_SITE_LIST */
	uint32_t first_use; /* index of the first list use of this unit */
	uint32_t list_cu;
};

/* The state of one rewriting. */
struct dwr_rw {
	const struct dwr_rewrite_in *in;
	const struct elfrw_addrmap *map;
	struct dwr_ranger ranger;
	struct dwr_sections secs;
	struct dwr_units units;
	struct dwr_rw_unit *ru; /* one per unit of `units` */
	struct dwr_site *room;  /* for the sites of units of .debug_info, one for each
				   DWR_BYTES_PER_SITE bytes of it; NULL: each unit has its own */
	uint8_t *copy[2]; /* private copies of .debug_info and .debug_types (DWR_INFO, DWR_TYPES) */
	struct dwr_call_search search; /* goes along on the walk, if IN->calls asks for it */
	struct dwr_list_secs lists;
	uint8_t *addr_use; /* see addr.h; NULL without .debug_addr */
	struct dwr_rw_line_out line;
	bool has_line;   /* `line` is filled */
	bool has_folded; /* the map folds something */
	bool changes;    /* the map moves or folds something */
	atomic_uint_fast64_t
		list_bytes; /* of functions' range lists read in the walks over the units */
};

/* Which attributes the walk needs. */
void dwr_rw_info_want(struct dwr_want *want);

/* Walks unit I, whose root was read.  Patches in the private copy what can be decided at once, and
 * collects the rest in rw->ru[I].  TABLE: the unit's, read with dwr_rw_info_want(). */
struct elfrw_err *dwr_rw_info_unit(struct dwr_rw *rw, size_t i,
				   const struct dwr_abbrev_table *table);

/* The DIEs of functions that share their code, of all units, sorted by unit of the map, then DIE;
 * *RET is the caller's. */
struct elfrw_err *dwr_rw_shared_dies(const struct dwr_rw *rw, struct dwr_note_die **ret, size_t *n);

/* Appends the new .debug_abbrev to W (in full), and patches the headers and the edited DIEs of all
 * units in the private copies.  Appends nothing if there are no edits. */
struct elfrw_err *dwr_rw_abbrev(struct dwr_rw *rw, struct elfrw_wbuf *w);

/* Writes VALUE in SIZE bytes at P as a LEB128 of exactly that size; false: it does not fit. */
bool dwr_put_uleb(uint8_t *p, uint64_t size, uint64_t value);
bool dwr_put_sleb(uint8_t *p, uint64_t size, int64_t value);
#endif
