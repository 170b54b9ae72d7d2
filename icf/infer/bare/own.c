/* own.c: words without a relocation that lead somewhere by themselves.  Where relocations were
 * kept, nothing but the linker's script can have written them. */
#include "icf/infer/bare/state.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"

#define LONE 256 /* bytes within which three words confirm each other */

/* Where the word W leads by itself, as way WAY: from its place, from its end, as an address; 0: no
 * more ways. */
enum { OWN, END, ADDRESS, WAYS };

static uint64_t leads_to(const struct icf_based *b, const struct icf_bare *w, unsigned way)
{
	if (way != ADDRESS)
		return w->place + (way == END ? 4 : 0) + w->word;
	return b->prog->img->pic ? 0 : w->word & UINT32_MAX;
}

/* Believes each word that leads to an entry in way WAY, if that few numbers are expected to lead to
 * functions, or if they are addresses of 8 bytes; else three close together. */
static void believe_own(const struct icf_based *b, unsigned way)
{
	const double expected = (double)b->bytes * (double)b->prog->unit.len / 4294967296.;
	size_t before[2] = { SIZE_MAX, SIZE_MAX };
	for (size_t i = 0; i < b->word.len; i++) {
		const struct icf_bare *w = &b->word.data[i];
		const uint64_t to = leads_to(b, w, way);
		if (!icf_bare_is_entry(b, to))
			continue;
		const uint8_t *p =
			way == ADDRESS ? elfrw_image_at(b->prog->img, w->place, 8) : NULL;
		if (expected < 0.05 || (expected < 0.2 && !(w->place & 3)) ||
		    (p && elfrw_get64(p) == to))
			icf_pin_unit(b->prog, icf_unit_at(b->prog, to));
		if (before[0] != SIZE_MAX && w->place - b->word.data[before[0]].place < LONE) {
			icf_pin_unit(b->prog, icf_unit_at(b->prog, to));
			for (unsigned k = 0; k < 2; k++)
				icf_pin_unit(
					b->prog,
					icf_unit_at(b->prog,
						    leads_to(b, &b->word.data[before[k]], way)));
		}
		before[0] = before[1];
		before[1] = i;
	}
}

void icf_bare_own(const struct icf_based *b)
{
	for (unsigned way = 0; way < WAYS; way++)
		believe_own(b, way);
}
