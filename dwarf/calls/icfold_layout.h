/* icfold_layout.h: shared by writer and reader of .debug_icfold: the header's layout
 * (icfold-format(5)). */
#ifndef DWARF_CALLS_ICFOLD_LAYOUT_H
#define DWARF_CALLS_ICFOLD_LAYOUT_H
#include <stdint.h>

/* The parts, in the header's and the file's order. */
enum { NOTE_SECTIONS, NOTE_MAP, NOTE_GROUPS, NOTE_VSLOTS, NOTE_OVERLAY, NOTE_STRINGS, NOTE_PARTS };

/* Magic 8, version 2, header size 2, policy 4, artificial unit 8, trap byte 8, thunks 8 + 8; per
 * part offset, size and count, 8 bytes each. */
enum { NOTE_FIXED = 48, NOTE_HEADER_SIZE = NOTE_FIXED + NOTE_PARTS * 24 };

/* The bytes from OLD_END, the end of a unit, to the next multiple of 16, where compilers usually
 * begin the next unit. */
static inline uint64_t dwr_note_usual_gap(uint64_t old_end)
{
	return -old_end % 16;
}
#endif
