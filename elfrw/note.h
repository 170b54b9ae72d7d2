/* note.h: the notes of a section (gABI, "Note Section"). */
#ifndef ELFRW_NOTE_H
#define ELFRW_NOTE_H
#include "elfrw/base/rbuf.h"
#include <stdbool.h>
#include <stdint.h>

struct elfrw_image;

struct elfrw_note {
	const char *owner; /* OWNER_SIZE bytes, including its NUL; borrowed */
	uint32_t owner_size;
	uint32_t type;
	const uint8_t *data;    /* the descriptor; borrowed */
	uint32_t size;          /* of the descriptor */
	uint64_t at, desc, end; /* offsets: of the note, of its descriptor, of the next note */
};

/* The next note of R, with descriptors aligned to ALIGN (4 or 8) bytes.  false: there is none, or
 * it is truncated: R is then bad and note->at is its place. */
bool elfrw_note_next(struct elfrw_rbuf *r, unsigned align, struct elfrw_note *note);

/* Is NOTE of OWNER and TYPE? */
bool elfrw_note_is(const struct elfrw_note *note, const char *owner, uint32_t type);

/* The build-id of IMG, *N bytes, borrowed; NULL: it has none. */
const uint8_t *elfrw_build_id(const struct elfrw_image *img, uint32_t *n);
#endif
