/* rewrite.h: the only entry point to the rewriting of debug information.
 *
 * Given the input image and the address map, gives every .debug_* section that changes: all addresses mapped, one owner
 * per address for what was folded, and the .debug_icfold note.  Nothing here decides an address. */
#ifndef DWARF_REWRITE_REWRITE_H
#define DWARF_REWRITE_REWRITE_H
#include "elfrw/addrmap.h"
#include "elfrw/base/err.h"
#include <stddef.h>
#include <stdint.h>

struct elfrw_image;

enum dwr_policy {
	DWR_FOLDED_OVERLAY, /* one owner per address: folded members keep DIE and rows, without a PC range; the rest is
			       in .debug_icfold */
	DWR_FOLDED_ALIAS,   /* full ranges and sequences of every member at the kept address (overlapping) */
	DWR_FOLDED_DROP,    /* low_pc 0, as linkers do */
};

/* One more name of a unit (the first one is unit_name[unit]). */
struct dwr_unit_alias {
	uint32_t unit;
	const char *name;
};

/* "Improved Identification of Vtables" (Coutant 2009): a DIE with DW_AT_location, the vtable object, and DW_AT_type, its class.  The
 * tag was proposed without a number; this one is in the vendors' range, where nobody has one. */
#define DWR_TAG_VTABLE 0x4fc1

/* A vtable slot whose target was folded: the slot's address (vtables do not move) and the member it named. */
struct dwr_vslot {
	uint64_t slot;
	uint32_t unit;
};

/* Everything is borrowed. */
struct dwr_rewrite_in {
	const struct elfrw_image *image;
	const struct elfrw_addrmap *map;
	enum dwr_policy policy;
	unsigned threads;              /* 0 and 1: none but the caller's; the result does not depend on it */
	const char *const *unit_name;  /* map->n_units entries, each may be NULL; or NULL */
	const struct dwr_unit_alias *alias; /* sorted by unit */
	size_t n_aliases;
	const struct dwr_vslot *vslot; /* sorted by slot */
	size_t n_vslots;
	const char *producer;          /* of the artificial unit: "icfold 1.0" */
	bool vtables;                  /* add the entries that name the classes of the vtables in VSLOT */
	bool note_only;                /* debug info is being stripped: write .debug_icfold alone and read nothing */
	const char *folded_unit_name;  /* of the artificial unit; NULL: "<folded functions>" */
};

/* One section of the output that differs from the input.  Sections not listed stay as they are. */
struct dwr_section_out {
	const char *name;   /* borrowed from the image, or static for a new section */
	uint32_t shndx;     /* in the input; 0: a new section to append (SHT_PROGBITS, not SHF_ALLOC) */
	uint8_t *data;      /* owned: the bytes as they go into the file (compressed like the input's) */
	size_t size;        /* sh_size */
	uint64_t sh_flags;
	uint64_t sh_addralign;
};

struct dwr_rewrite_stats {
	uint32_t units, folded_dies, thunk_dies, emptied_scopes;
	uint32_t artificial_sequences;  /* line sequences in the artificial unit */
	uint32_t vtables, vtables_left_out; /* objects described; those whose class is not certain */
	uint64_t artificial_unit;       /* .debug_info offset of the artificial unit, UINT64_MAX without one */
};

struct dwr_rewrite_out {
	struct dwr_section_out *section; /* owned; existing sections by shndx, then the new ones */
	uint32_t n_sections;
	struct dwr_rewrite_stats stats;
};

/* Rewrites the debug information of IN->image.  Without .debug_* sections the only possible output is .debug_icfold,
 * which is written when a unit moved or was folded.  *OUT is untouched on failure.  Errors name section and offset:
 * debug information that cannot be parsed, or cannot be kept right (split DWARF). */
struct elfrw_err *dwr_rewrite(const struct dwr_rewrite_in *in, struct dwr_rewrite_out *out);
void dwr_rewrite_out_deinit(struct dwr_rewrite_out *out);
#endif
