/* icfold_layout.h: shared by writer and reader of .debug_icfold: the header's layout
 * (icfold-format(5)). */
#ifndef DWARF_CALLS_ICFOLD_LAYOUT_H
#define DWARF_CALLS_ICFOLD_LAYOUT_H
#include <stdint.h>

/* The parts, in the header's and the file's order.  Version 3 has no part NOTE_REMOVED. */
enum {
	NOTE_SECTIONS,
	NOTE_MAP,
	NOTE_GROUPS,
	NOTE_VSLOTS,
	NOTE_OVERLAY,
	NOTE_STRINGS,
	NOTE_REMOVED,
	NOTE_PARTS
};

/* Magic 8, version 2, header size 2, policy 4, artificial unit 8, trap byte 8, thunks 8 + 8; per
 * part offset, size and count, 8 bytes each. */
enum { NOTE_FIXED = 48, NOTE_HEADER_SIZE = NOTE_FIXED + NOTE_REMOVED * 24 }; /* of version 3 */

static inline unsigned dwr_note_parts(unsigned version)
{
	return version < 4 ? NOTE_REMOVED : NOTE_PARTS;
}

static inline unsigned dwr_note_header_size(unsigned version)
{
	return NOTE_FIXED + dwr_note_parts(version) * 24;
}

/* The bytes from OLD_END, the end of a unit, to the next multiple of 16, where compilers usually
 * begin the next unit. */
static inline uint64_t dwr_note_usual_gap(uint64_t old_end)
{
	return -old_end % 16;
}
#endif
