/* bare.c: distances in data that count from other data, and words that a linker script wrote.
 *
 * A linker script's `LONG(f - base)` has no relocation, whatever relocations were kept; without
 * kept relocations, an assembler's `.long f - base` has none either.  Such a word counts from an
 * address that its user has: from one that the same code computes, from one before the word in the
 * same data (a header, with a table behind it that has a name of its own), or from the file's first
 * byte.  So each word of 4 bytes, at any place, that may lead into the code from such an address is
 * tried with all of them; words of 8 bytes begin with such a word.
 *
 * Numbers lead to a function by chance, too.  From data behind the code only negative numbers do,
 * and few are that large: a few words at equal steps that lead to different functions are believed;
 * fewer are if they begin where the code refers to and the next thing with a name follows, or if
 * the program has little data.  From data before the code, small numbers lead there: each case
 * takes more words, and words must be aligned.  row.c has the figures.
 *
 * With kept relocations there are no other readers of words without one, so here a word also counts
 * from its own place; and with fixed addresses, it may be an address (`QUAD(f)`).
 *
 * row.c judges rows of words, names.c finds the addresses that words may count from, own.c reads
 * the words that count from nothing else.
 *
 * All that is found stays where it is; the words are never written.  Cost: one pass over the data;
 * for each word that is left, the names close before it; and for each pair of data addresses in a
 * unit, the few words at one of them. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/infer/bare/state.h"
#include "icf/infer/lanes.h"
#include <stdlib.h>

#define PIECE (256 << 10) /* bytes of data that a thread looks at in turn */

/* Does WORD lead into the code from some address of R? */
static bool leads_from(const struct icf_based *b, const struct icf_range *r, uint64_t word)
{
	return r->lo <= r->hi && word + r->hi - b->lo < b->hi - b->lo + (r->hi - r->lo);
}

static bool may_lead(const struct icf_based *b, uint64_t place, uint64_t word)
{
	const struct icf_range near = { place > ICF_BARE_BEFORE ? place - ICF_BARE_BEFORE : 0,
					place + 4 };
	return word && (leads_from(b, &near, word) || leads_from(b, &b->behind, word) ||
			leads_from(b, &b->front, word) ||
			(!b->prog->img->pic && icf_bare_in_code(b, word & UINT32_MAX)));
}

/* Something else explains a byte of the word at PLACE: a jump table, a relocation.  *NEXT and *SET,
 * which begin where some may hold the first place, move on with the places. */
static bool is_explained(const struct icf_based *b, uint64_t place, size_t *next, size_t *set)
{
	const struct icf_program *prog = b->prog;
	for (; *set < prog->dynreloc.len && prog->dynreloc.data[*set].place + 8 <= place; ++*set)
		;
	if (*set < prog->dynreloc.len && prog->dynreloc.data[*set].place < place + 4)
		return true;
	if (prog->inferred)
		return icf_bit(&b->map->table, place) || icf_bit(&b->map->table, place + 3);
	const struct icf_dataref *d = prog->dataref.data;
	for (; *next < prog->dataref.len && d[*next].place + d[*next].size <= place; ++*next)
		;
	return *next < prog->dataref.len && d[*next].place < place + 4;
}

/* A stretch of a section, from one offset up to another. */
struct piece {
	const struct elfrw_section *s;
	uint64_t from, to;
	VEC(struct icf_bare) word;
};

struct search {
	const struct icf_based *b;
	VEC(struct piece) piece;
};

static struct elfrw_err *cut(struct search *search, const struct elfrw_section *s)
{
	for (uint64_t from = 0; from < s->hdr.sh_size; from += PIECE) {
		struct piece *p = VEC_PUSH(&search->piece);
		if (!p)
			return &elfrw_err_nomem;
		p->s = s;
		p->from = from;
		p->to = s->hdr.sh_size - from > PIECE ? from + PIECE : s->hdr.sh_size;
	}
	return NULL;
}

/* The words that may lead into the code from some place of a piece: a range for each kind of
 * address that they may count from.  Without N, all may. */
struct screen {
	unsigned n;
	struct icf_lane_range range[4];
};

/* Adds the words from LO to HI. */
static void add_range(struct screen *s, int64_t lo, int64_t hi)
{
	lo = lo < INT32_MIN ? INT32_MIN : lo;
	hi = hi > INT32_MAX ? INT32_MAX : hi;
	if (lo <= hi)
		s->range[s->n++] = icf_lane_range((int32_t)lo, (int32_t)hi);
}

static struct screen screen_of(const struct icf_based *b, uint64_t first, uint64_t last)
{
	const uint64_t top = (uint64_t)1 << 40;
	const struct icf_range base[] = {
		{ first > ICF_BARE_BEFORE ? first - ICF_BARE_BEFORE : 0, last + 4 },
		b->behind,
		b->front,
	};
	struct screen s = { 0 };
	if (!b->prog->img->pic) {
		if (b->hi > INT32_MAX)
			return s;
		add_range(&s, (int64_t)b->lo, (int64_t)b->hi - 1);
	}
	for (size_t k = 0; k < sizeof base / sizeof *base; k++) {
		if (base[k].lo > base[k].hi)
			continue;
		if (b->hi > top || base[k].hi > top)
			return (struct screen){ 0 };
		add_range(&s, (int64_t)(b->lo - base[k].hi), (int64_t)(b->hi - base[k].lo) - 1);
	}
	return s;
}

/* May none of the ICF_LANES words at P lead into the code? */
static inline bool leads_nowhere(const struct screen *s, const uint8_t *p)
{
	const icf_lanes_t v = icf_lanes_at(p);
	icf_lanes_t in = { 0 };
	for (unsigned k = 0; k < s->n; k++)
		in |= icf_lanes_in(v, &s->range[k]);
	return s->n && !icf_lanes_any(in & (v != 0));
}

static struct elfrw_err *find_words(void *arg, size_t i)
{
	const struct search *search = arg;
	const struct icf_based *b = search->b;
	const struct icf_program *prog = b->prog;
	struct piece *p = &search->piece.data[i];
	const unsigned step = icf_bare_unit(b);
	const uint64_t va = p->s->hdr.sh_addr, first = va + p->from;
	const struct screen screen = screen_of(b, first, va + p->to);
	size_t next = LOWER_BOUND(0, prog->dataref.len, mid,
				  prog->dataref.data[mid].place + 8 <= first),
	       set = LOWER_BOUND(0, prog->dynreloc.len, mid,
				 prog->dynreloc.data[mid].place + 8 <= first);
	for (uint64_t off = p->from + (-first & (step - 1u));
	     off < p->to && p->s->hdr.sh_size - off >= 4; off += step) {
		const uint8_t *at = p->s->data + off;
		if (step == 4 && p->s->hdr.sh_size - off >= 4 * ICF_LANES &&
		    leads_nowhere(&screen, at)) {
			off += 4 * (ICF_LANES - 1);
			continue;
		}
		uint64_t word = (uint64_t)(int64_t)(int32_t)elfrw_get32(at);
		if (!may_lead(b, va + off, word) || is_explained(b, va + off, &next, &set))
			continue;
		struct icf_bare *slot = VEC_PUSH(&p->word);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct icf_bare){ va + off, word };
	}
	return NULL;
}

static int place_order(const void *x, const void *y)
{
	const struct icf_bare *a = x, *c = y;
	return a->place < c->place ? -1 : a->place > c->place;
}

static struct elfrw_err *find_all_words(struct icf_based *b, unsigned threads)
{
	const struct elfrw_image *img = b->prog->img;
	struct search search = { .b = b };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 1; i < img->n_sections && !err; i++) {
		if (!icf_holds_data(&img->section[i]))
			continue;
		b->bytes += img->section[i].hdr.sh_size;
		err = cut(&search, &img->section[i]);
	}
	if (!err)
		err = elfrw_parallel(threads, search.piece.len, find_words, &search);
	bool sorted = true;
	for (size_t i = 0; i < search.piece.len; i++) {
		struct piece *p = &search.piece.data[i];
		if (!err && !VEC_APPEND(&b->word, p->word.data, p->word.len))
			err = &elfrw_err_nomem;
		VEC_FREE(&p->word);
	}
	VEC_FREE(&search.piece);
	for (size_t i = 1; i < b->word.len; i++)
		sorted &= b->word.data[i - 1].place < b->word.data[i].place;
	if (!sorted)
		qsort(b->word.data, b->word.len, sizeof *b->word.data, place_order);
	return err;
}

struct elfrw_err *icf_infer_bare(struct icf_program *prog, const struct icf_data_map *map,
				 unsigned threads)
{
	struct icf_based b = { .prog = prog, .map = map };
	struct icf_data_map own = { 0 };
	if (!prog->exec.len)
		return NULL;
	b.lo = prog->exec.data[0].start;
	b.hi = prog->exec.data[prog->exec.len - 1].end;
	struct elfrw_err *err = icf_bare_find_bases(&b);
	if (!err)
		err = find_all_words(&b, threads);
	if (!err && b.word.len && !map) {
		err = icf_data_map_init(prog, &own);
		b.map = &own;
	}
	if (err && err != &elfrw_err_nomem && !map) {
		/* The sections are too far apart for a map.  Relocations tell nearly all. */
		elfrw_err_free(err);
		err = NULL;
		b.word.len = 0;
	}
	if (!err && b.word.len && !prog->inferred)
		icf_bare_own(&b);
	if (!err && b.word.len)
		err = icf_bare_try_names(&b, threads);
	icf_data_map_deinit(&own);
	VEC_FREE(&b.word);
	return err;
}
