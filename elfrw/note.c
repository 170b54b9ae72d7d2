/* note.c: see note.h. */
#include "elfrw/note.h"
#include "elfrw/image.h"
#include <string.h>

bool elfrw_note_next(struct elfrw_rbuf *r, unsigned align, struct elfrw_note *note)
{
	*note = (struct elfrw_note){ .at = elfrw_rbuf_off(r) };
	if (elfrw_rbuf_left(r) < 12)
		return false;
	note->owner_size = elfrw_rbuf_u32(r);
	note->size = elfrw_rbuf_u32(r);
	note->type = elfrw_rbuf_u32(r);
	note->owner =
		(const char *)elfrw_rbuf_take(r, ((uint64_t)note->owner_size + 3) & ~UINT64_C(3));
	note->desc = elfrw_rbuf_off(r);
	note->data = elfrw_rbuf_take(r, note->size);
	if (r->bad)
		return false;
	/* The last note may lack its padding. */
	uint64_t pad = -elfrw_rbuf_off(r) & (align - 1);
	elfrw_rbuf_skip(r, pad < elfrw_rbuf_left(r) ? pad : elfrw_rbuf_left(r));
	note->end = elfrw_rbuf_off(r);
	return true;
}

bool elfrw_note_is(const struct elfrw_note *note, const char *owner, uint32_t type)
{
	size_t n = strlen(owner) + 1;
	return note->type == type && note->owner_size == n && !memcmp(note->owner, owner, n);
}

const uint8_t *elfrw_build_id(const struct elfrw_image *img, uint32_t *n)
{
	const struct elfrw_section *s = elfrw_image_section(img, ".note.gnu.build-id");
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->data : NULL, s && s->data ? s->hdr.sh_size : 0);
	struct elfrw_note note;
	if (!elfrw_note_next(&r, 4, &note) || !elfrw_note_is(&note, "GNU", NT_GNU_BUILD_ID))
		return NULL;
	*n = note.size;
	return note.data;
}
