/* folding.h: what was folded, and how debug information describes it: the types that the rewriting
 * and the call tables share. */
#ifndef DWARF_FOLDING_H
#define DWARF_FOLDING_H
#include "elfrw/addrmap.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_image;
struct dwr_call_wanted;
struct dwr_rewrite_room;

enum dwr_policy {
	DWR_FOLDED_OVERLAY, /* one owner for each address: folded members keep DIE and rows, without
			       a PC range; the rest is in .debug_icfold */
	DWR_FOLDED_ALIAS,   /* full ranges and sequences of every member at the kept address
			       (overlapping) */
	DWR_FOLDED_DROP,    /* low_pc 0, as linkers do */
};

/* One more name of a unit (the first one is unit_name[unit]). */
struct dwr_unit_alias {
	uint32_t unit;
	const char *name;
	bool shown; /* symbolizers print this name; of a unit's names at most one has it, and
		       without it they print unit_name[unit] */
};

/* "Improved Identification of Vtables" (Coutant 2009): a DIE with DW_AT_location, the vtable
 * object, and DW_AT_type, its class.  The tag was proposed without a number; this number is an
 * unused one in the vendors' range. */
#define DWR_TAG_VTABLE 0x4fc1

/* A vtable slot whose target was folded: the slot's address (vtables do not move) and the member it
 * named. */
struct dwr_vslot {
	uint64_t slot;
	uint32_t unit;
};

/* A function's DIE in .debug_info: one of its ranges begins where UNIT begins. */
struct dwr_note_die {
	uint32_t unit;
	uint64_t die; /* .debug_info offset */
};

#define DWR_FOLDED_UNIT_NAME "<folded functions>"

/* Everything is borrowed. */
struct dwr_rewrite_in {
	const struct elfrw_image *image;
	const struct elfrw_addrmap *map;
	enum dwr_policy policy;
	unsigned threads; /* 0 and 1: only the caller's thread; the result does not depend on it */
	const char *const *unit_name;       /* map->n_units entries, each may be NULL; or NULL */
	const struct dwr_unit_alias *alias; /* sorted by unit */
	size_t n_aliases;
	const struct dwr_vslot *vslot; /* sorted by slot */
	size_t n_vslots;
	const char *producer; /* of the artificial unit: "icfold 1.0" */
	bool vtables;         /* add the entries that name the classes of the vtables in VSLOT */
	bool note_only; /* debug info is being stripped: write .debug_icfold alone and read nothing
			 */
	const char *folded_unit_name; /* of the artificial unit; NULL: DWR_FOLDED_UNIT_NAME */
	struct dwr_rewrite_room
		*room; /* for IMAGE; its contents are taken.  NULL: made when needed */
	const struct dwr_call_wanted
		*calls; /* is looked for on the walk, if there is one; or NULL */
};
#endif
