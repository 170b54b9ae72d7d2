/* rewrite.h: the only entry point to the rewriting of debug information.
 *
 * Given the input image and the address map, this makes every .debug_* section that changes: all
 * addresses mapped, one owner for each address of folded code, and the .debug_icfold note.  It
 * decides no address. */
#ifndef DWARF_REWRITE_REWRITE_H
#define DWARF_REWRITE_REWRITE_H
#include "dwarf/calls/call_sites.h"
#include "dwarf/folding.h"
#include "elfrw/base/err.h"
#include <stddef.h>
#include <stdint.h>

struct dwr_site;

/* One section of the output that differs from the input.  Sections not listed stay as they are. */
struct dwr_section_out {
	const char *name; /* borrowed from the image, or static for a new section */
	uint32_t shndx; /* in the input; 0: a new section to append (SHT_PROGBITS, not SHF_ALLOC) */
	uint8_t *data; /* owned: the bytes as they go into the file (compressed like the input's) */
	size_t size;   /* sh_size */
	uint64_t sh_flags;
	uint64_t sh_addralign;
};

struct dwr_rewrite_stats {
	uint32_t units, folded_dies, thunk_dies, emptied_scopes;
	uint32_t artificial_sequences; /* line sequences in the artificial unit */
	uint32_t vtables,
		vtables_left_out; /* objects described; those whose class is not certain */
	uint64_t artificial_unit; /* .debug_info offset of the artificial unit, UINT64_MAX without
				     one */
};

struct dwr_rewrite_out {
	struct dwr_section_out *section; /* owned; existing sections by shndx, then the new ones */
	uint32_t n_sections;
	/* The DIEs of the functions that share their code, sorted by unit, then DIE; owned.  None
	 * without .debug_icfold. */
	struct dwr_note_die *die;
	size_t n_dies;
	/* A unit states one range in a form that cannot become a list, and thunks of other units'
	 * functions lie in it: two units claim them.  The map should have no thunks. */
	bool crowded;
	bool searched;               /* IN->calls were looked for: FOUND has the answer */
	struct dwr_call_found found; /* owned */
	struct dwr_rewrite_stats stats;
};

/* The large memory that a rewriting needs for .debug_info.  To get it takes a while, and can be
 * done beside other work, before it is known what changes. */
struct dwr_rewrite_room {
	uint8_t *info; /* owned, as SITE; NULL: not made */
	struct dwr_site *site;
};

/* Makes it for IMAGE, unless .debug_info is small or compressed. */
struct elfrw_err *dwr_rewrite_room_make(const struct elfrw_image *image,
					struct dwr_rewrite_room *ret);
void dwr_rewrite_room_deinit(struct dwr_rewrite_room *room);

/* Rewrites the debug information of IN->image.  Without .debug_* sections the only possible output
 * is .debug_icfold, which is written if a unit moved or was folded.  *OUT is unchanged on failure.
 * Errors name section and offset: debug information that cannot be parsed, or cannot be kept right
 * (split DWARF). */
struct elfrw_err *dwr_rewrite(const struct dwr_rewrite_in *in, struct dwr_rewrite_out *out);
void dwr_rewrite_out_deinit(struct dwr_rewrite_out *out);
#endif
