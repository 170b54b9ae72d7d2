/* rw.h: what the parts of the rewriting share; private to dwarf/rewrite.c and dwarf/rw_*.c. */
#ifndef DWR_RW_H
#define DWR_RW_H
#include "dwarf/icfold_note.h"
#include "dwarf/info.h"
#include "dwarf/rewrite.h"
#include "dwarf/rw_line.h"
#include "elfrw/addrmap.h"
#include "elfrw/vec.h"

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif
#ifndef DW_FORM_LLVM_addrx_offset
#define DW_FORM_LLVM_addrx_offset 0x2001
#endif

enum dwr_site_kind {
	DWR_SITE_RANGES, /* DW_AT_ranges, DW_AT_start_scope */
	DWR_SITE_LOC,    /* a location list */
	DWR_SITE_VIEWS,  /* DW_AT_GNU_locviews: the view pairs of the location list that follows or precedes it */
	DWR_SITE_MACRO,  /* DW_AT_macros */
};

enum {
	DWR_SITE_INDEX = 1, /* the value is an index (rnglistx, loclistx) */
	DWR_SITE_CU = 2,    /* the unit's own DIE */
	DWR_SITE_FUNC = 4,  /* a function: where its code is a thunk now, the thunk is its range */
	DWR_SITE_ABBREV = 8, /* not in the input: ranges that replace high_pc (dwr_rw_unit.cu_ranges) */
};

/* A place in .debug_info or .debug_types that names a list. */
struct dwr_site {
	uint64_t pos;   /* of the value's bytes */
	uint64_t value; /* offset or index, as it stands there */
	uint8_t size;   /* of the value */
	uint8_t kind, flags;
};

/* A slot of .debug_addr and what the attribute that uses it needs there. */
struct dwr_slot {
	uint64_t off; /* in .debug_addr */
	uint64_t new;
	uint64_t pos; /* of the attribute, for messages */
};

/* A value that stands in the abbreviation (DW_FORM_implicit_const) and must change for one DIE. */
struct dwr_implicit {
	uint64_t die;
	uint64_t code;
	uint32_t attr; /* index among the declaration's attributes */
	int64_t value;
};

struct dwr_range {
	uint64_t start, end;
};

/* What the walk over one unit found.  Owned arrays. */
struct dwr_rw_unit {
	struct dwr_unit_root root;
	uint64_t new_low;  /* the base address in the output (root.low_pc's place) */
	VEC(struct dwr_site) site;
	VEC(struct dwr_slot) slot;
	VEC(struct dwr_implicit) implicit;
	VEC(struct dwr_note_die) die;
	VEC(struct dwr_note_range) range;
	VEC(struct dwr_range) cu_range; /* new ranges, when the unit's low_pc and high_pc can no longer say them */
	uint32_t high_attr;             /* then: index of DW_AT_high_pc among the declaration's attributes, its code... */
	uint64_t high_code, high_pos;   /* ...and where its value is */
	uint32_t folded_dies, thunk_dies, emptied;
	bool changed;      /* a byte of the unit was written */
};

/* The state of one rewriting. */
struct dwr_rw {
	const struct dwr_rewrite_in *in;
	struct dwr_sections secs;
	struct dwr_units units;
	struct dwr_rw_unit *ru;    /* one per unit of UNITS */
	uint8_t *info, *types;     /* private copies of .debug_info and .debug_types; NULL when there is none */
	struct dwr_rw_line_out line;
	bool has_line;             /* LINE is filled */
	bool has_folded;           /* the map folds something */
	bool moves;                /* the map changes any address */
};

/* Walks unit I: patches all addresses in the private copy, collects the rest in rw->ru[i] (whose root was read). */
struct elfrw_err *dwr_rw_info_unit(struct dwr_rw *rw, size_t i, struct dwr_abbrev_table *table);

/* Which attributes the walk needs. */
void dwr_rw_info_want(struct dwr_want *want);

/* Writes VALUE in SIZE bytes at P as a LEB128 of exactly that size; false: it does not fit. */
bool dwr_put_uleb(uint8_t *p, uint64_t size, uint64_t value);
bool dwr_put_sleb(uint8_t *p, uint64_t size, int64_t value);
#endif
