/* own.c: words without a relocation that lead somewhere by themselves.  Where relocations were
 * kept, nothing but the linker's script can have written them. */
#include "icf/infer/bare/state.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <string.h>

#define LONE 256 /* bytes within which three words confirm each other */
#define ROW  4   /* words at equal steps that do */
#define STEP 64

/* Where the word W leads by itself, as way WAY: from its place, from its end, as an address; 0: no
 * more ways. */
enum { OWN, END, ADDRESS, WAYS };

static uint64_t leads_to(const struct icf_based *b, const struct icf_bare *w, unsigned way)
{
	if (way != ADDRESS)
		return w->place + (way == END ? 4 : 0) + w->word;
	return b->prog->img->pic ? 0 : w->word & UINT32_MAX;
}

static void pin(const struct icf_based *b, size_t i, unsigned way)
{
	icf_pin_unit(b->prog, icf_unit_at(b->prog, leads_to(b, &b->word.data[i], way)));
}

/* The last words that led to entries. */
struct hits {
	size_t at[ROW]; /* the oldest first */
	unsigned n;
};

/* Are the last N words of H at equal steps of at most STEP bytes? */
static bool in_row(const struct icf_based *b, const struct hits *h, unsigned n)
{
	const size_t *at = h->at + h->n - n;
	for (unsigned k = 1; h->n >= n && k < n; k++) {
		uint64_t step = b->word.data[at[k]].place - b->word.data[at[k - 1]].place;
		if (step > STEP || step != b->word.data[at[1]].place - b->word.data[at[0]].place)
			return false;
	}
	return h->n >= n;
}

/* Believes the words that lead to entries in way WAY: each that is aligned, if that few numbers are
 * expected to, and addresses of 8 bytes; else three close together.  The distance to code behind
 * the data is a small number, as most are: then four words at equal steps. */
static void believe_own(const struct icf_based *b, unsigned way)
{
	const double expected = (double)b->bytes * (double)b->prog->unit.len / 4294967296.;
	struct hits h = { .n = 0 };
	for (size_t i = 0; i < b->word.len; i++) {
		const struct icf_bare *w = &b->word.data[i];
		const uint64_t to = leads_to(b, w, way);
		if (!icf_bare_is_entry(b, to))
			continue;
		const uint8_t *p =
			way == ADDRESS ? elfrw_image_at(b->prog->img, w->place, 8) : NULL;
		const bool on = way != ADDRESS && !(w->word >> 63),
			   few = way != END && expected < 0.2 && !(w->place & 3);
		if ((few && !on) || (p && elfrw_get64(p) == to))
			pin(b, i, way);
		if (h.n == ROW)
			memmove(h.at, h.at + 1, --h.n * sizeof *h.at);
		h.at[h.n++] = i;
		bool close = !on && h.n >= 3 && w->place - b->word.data[h.at[h.n - 3]].place < LONE;
		for (unsigned k = close ? 3 : in_row(b, &h, ROW) ? ROW : 0; k; k--)
			pin(b, h.at[h.n - k], way);
	}
}

void icf_bare_own(const struct icf_based *b)
{
	for (unsigned way = 0; way < WAYS; way++)
		believe_own(b, way);
}
