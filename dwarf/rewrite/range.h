/* range.h: maps address ranges through the address map, cut where the code moved apart. */
#ifndef DWARF_REWRITE_RANGE_H
#define DWARF_REWRITE_RANGE_H
#include "dwarf/rewrite/rewrite.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stdint.h>

/* The meaning of a range, which decides what becomes of folded units. */
enum dwr_purpose {
	DWR_FOR_UNIT, /* the code of a compilation unit (DW_AT_ranges of its DIE, .debug_aranges,
			 .gdb_index) */
	DWR_FOR_FUNCTION, /* a subprogram's own DIE: a thunk belongs to it */
	DWR_FOR_SCOPE,    /* a scope inside of a function */
	DWR_FOR_LOCATION, /* where a location holds: folded units count as their kept copies under
			     every policy; nothing holds in removed ones */
};

/* A mapped part of a range. */
struct dwr_piece {
	uint64_t begin, end; /* in the output */
	uint64_t old;        /* old address of the part's first byte */
	uint32_t unit; /* the unit of the part's first byte (FOR_UNIT, if nothing moved: of the
			  first one in it that is not folded), or ELFRW_NO_UNIT (an address that
			  the map does not cover) */
};

/* A part that lay in a folded unit and is in no piece (overlay). */
struct dwr_taken {
	uint32_t unit;
	uint64_t start, len; /* bytes; start relative to the unit's old start */
};

/* One mapped range: reusable, zeroed at first. */
struct dwr_pieces {
	VEC(struct dwr_piece) piece;
	VEC(struct dwr_taken) taken;
};

/* The map, and values computed once from it; the map is borrowed. */
struct dwr_ranger {
	const struct elfrw_addrmap *map;
	enum dwr_policy policy;
	bool ordered; /* units that are not folded lie in the output in their old order, without
			 overlap */
};

struct dwr_ranger dwr_ranger(const struct elfrw_addrmap *map, enum dwr_policy policy);

/* Appends the pieces of [BEGIN, END) to RET->piece in old order, and what was taken away to
 * RET->taken (policy overlay).
 *
 * Each part is mapped with its unit; parts that follow each other in the output with nothing but
 * padding in between are one piece.  Padding of the input vanishes.  Folded units: see enum
 * dwr_purpose and enum dwr_policy; for a folded unit with a thunk, the unit's first byte gives the
 * thunk as a piece (FOR_UNIT, FOR_FUNCTION).  If nothing moved, thunks FOR_UNIT are in one piece
 * with the code around them.  A range whose first byte is not in an executable section is one
 * unchanged piece (a tombstone, or no code), END < BEGIN included.  An empty range is one empty
 * piece at the mapped BEGIN, or nothing when its unit's code is taken away. */
struct elfrw_err *dwr_range_map(const struct dwr_ranger *ranger, enum dwr_purpose purpose,
				uint64_t begin, uint64_t end, struct dwr_pieces *ret);
void dwr_pieces_deinit(struct dwr_pieces *pieces);
#endif
