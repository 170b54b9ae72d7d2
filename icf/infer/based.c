/* based.c: distances in data that count from other data, and words that a linker script wrote.
 *
 * A linker script's `LONG(f - base)` has no relocation, whatever relocations were kept; without
 * kept relocations, an assembler's `.long f - base` has none either.  Such a word counts from an
 * address that its user has: from one that the same code computes, from one before the word in the
 * same data (a header, with a table behind it that has a name of its own), or from the file's first
 * byte.  So each word of 4 bytes, at any place, that may lead into the code from such an address is
 * tried with all of them; words of 8 bytes begin with such a word.
 *
 * Numbers lead to a function by chance, too.  From data behind the code only negative numbers do,
 * and few are that large: three words at equal steps that lead to different functions are believed;
 * one or two are if they begin where the code refers to and the next thing with a name follows.
 * From data before the code, small numbers lead there: each case takes one word more, and words
 * must be aligned.
 *
 * With kept relocations there are no other readers of words without one, so here a word also counts
 * from its own place; and with fixed addresses, it may be an address (`QUAD(f)`).
 *
 * All that is found stays where it is; the words are never written.  Cost: one pass over the data;
 * for each word that is left, the names close before it; and for each pair of data addresses in a
 * unit, the few words at one of them. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/parts.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <stdlib.h>

#define BEFORE    1024        /* bytes from a name to a word that counts from it */
#define NAMES     8           /* that are tried, if they lie before the code */
#define BEHIND    256         /* bytes from where code refers to, to the first word of a table */
#define MAX_STEP  64          /* bytes from one word of a table to the next */
#define MAX_ZEROS 8           /* in a row */
#define MAX_BASES 64          /* addresses that words are tried with in one unit */
#define MET       64          /* places that were met in a unit */
#define WORDS     4096        /* that one thread looks at, one after the other */
#define RUN       512         /* the same of units */
#define ANY_BYTE  (64 << 10)  /* bytes of data: if there are more, only aligned words count */
#define MUCH      (256 << 10) /* bytes of data: if there are more, a table needs one word more */
#define HUGE      (16 << 20)  /* and another one */
#define LONE      256         /* bytes within which three words confirm each other */

/* A word that nothing explains, and that may lead into the code. */
struct bare {
	uint64_t place, word; /* extended by its sign */
};

/* Addresses from LO to HI; none if HI < LO. */
struct range {
	uint64_t lo, hi;
};

struct based {
	struct icf_program *prog;
	const struct icf_data_map *map;
	uint64_t lo, hi;            /* of the code */
	uint64_t image;             /* the file's first byte, or UINT64_MAX: nobody asks for it */
	struct range front, behind; /* the addresses of data that code computes, on either side of
				       the code */
	uint64_t bytes;             /* of data */
	VEC(struct bare) word;      /* by place */
};

static bool in_code(const struct based *b, uint64_t va)
{
	return va - b->lo < b->hi - b->lo;
}

/* --- which words --- */

/* Does WORD lead into the code from some address of R? */
static bool leads_from(const struct based *b, const struct range *r, uint64_t word)
{
	return r->lo <= r->hi && word + r->hi - b->lo < b->hi - b->lo + (r->hi - r->lo);
}

static bool may_lead(const struct based *b, uint64_t place, uint64_t word)
{
	const struct range near = { place > BEFORE ? place - BEFORE : 0, place + 4 };
	return word && (leads_from(b, &near, word) || leads_from(b, &b->behind, word) ||
			leads_from(b, &b->front, word) ||
			(!b->prog->img->pic && in_code(b, word & UINT32_MAX)));
}

/* Something else explains a byte of the word at PLACE: a jump table, a relocation.  *NEXT and *SET,
 * which begin as 0, move on with the places. */
static bool is_explained(const struct based *b, uint64_t place, size_t *next, size_t *set)
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

static struct elfrw_err *find_words(struct based *b, const struct elfrw_section *s, unsigned step)
{
	const uint64_t size = s->hdr.sh_size, va = s->hdr.sh_addr;
	size_t next = 0, set = 0;
	for (uint64_t off = -va & (step - 1u); off <= size && size - off >= 4; off += step) {
		uint64_t word = (uint64_t)(int64_t)(int32_t)elfrw_get32(s->data + off);
		if (!may_lead(b, va + off, word) || is_explained(b, va + off, &next, &set))
			continue;
		struct bare *slot = VEC_PUSH(&b->word);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct bare){ va + off, word };
	}
	return NULL;
}

static int place_order(const void *x, const void *y)
{
	const struct bare *a = x, *c = y;
	return a->place < c->place ? -1 : a->place > c->place;
}

static unsigned unit_of(const struct based *b)
{
	return b->bytes > ANY_BYTE ? 4 : 1;
}

static struct elfrw_err *find_all_words(struct based *b)
{
	const struct elfrw_image *img = b->prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++)
		b->bytes += icf_holds_data(&img->section[i]) ? img->section[i].hdr.sh_size : 0;
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (icf_holds_data(&img->section[i]))
			ELFRW_TRY(find_words(b, &img->section[i], unit_of(b)));
	bool sorted = true;
	for (size_t i = 1; i < b->word.len; i++)
		sorted &= b->word.data[i - 1].place < b->word.data[i].place;
	if (!sorted)
		qsort(b->word.data, b->word.len, sizeof *b->word.data, place_order);
	return NULL;
}

/* --- tables --- */

/* Words at equal steps. */
struct row {
	uint64_t last;    /* place */
	unsigned step, n; /* different functions */
};

static bool is_entry(const struct based *b, uint64_t va)
{
	return in_code(b, va) && icf_bit(&b->map->entry, va);
}

static bool is_bare(const struct based *b, uint64_t place)
{
	size_t k = LOWER_BOUND(0, b->word.len, mid, b->word.data[mid].place < place);
	return k < b->word.len && b->word.data[k].place == place;
}

/* The row of words STEP bytes apart that begins with W, all counted from BASE. */
static struct row row_from(const struct based *b, const struct bare *w, uint64_t base,
			   unsigned step)
{
	uint64_t seen[4] = { w->word };
	struct row r = { w->place, step, 1 };
	const uint8_t *p;
	unsigned zeros = 0;
	for (uint64_t at = w->place + step;
	     zeros <= MAX_ZEROS && (p = elfrw_image_at(b->prog->img, at, 4)) != NULL; at += step) {
		uint64_t word = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
		zeros = word ? 0 : zeros + 1;
		if (!word)
			continue;
		if (!is_entry(b, base + word) || !is_bare(b, at))
			break;
		unsigned k = 0;
		while (k < r.n && seen[k] != word)
			k++;
		if (k == r.n && r.n < sizeof seen / sizeof *seen)
			seen[r.n++] = word;
		r.last = at;
	}
	return r;
}

static void pin_row(const struct based *b, const struct bare *w, uint64_t base, const struct row *r)
{
	for (uint64_t at = w->place; at <= r->last; at += r->step) {
		const uint8_t *p = elfrw_image_at(b->prog->img, at, 4);
		uint64_t word = p ? (uint64_t)(int64_t)(int32_t)elfrw_get32(p) : 0;
		if (word)
			icf_pin_unit(b->prog, icf_unit_at(b->prog, base + word));
	}
}

/* Where words are looked for that count from an address. */
struct table {
	uint64_t base, start; /* START: to where the code refers, or 0 */
	uint64_t done;        /* words before this place were judged */
	bool few;             /* its code calls sums, or so it seems */
};

/* How many functions in a row are no chance; FRONT: counted from before the code. */
static unsigned enough(const struct based *b, const struct table *t, bool front, bool filled)
{
	if (!filled)
		return 3 + front + (b->bytes > MUCH) + (b->bytes > HUGE);
	return !front ? 1 : t->few ? 2 : 3;
}

/* Does the row R, from where code refers to, end with its object?  A lone word has 8 bytes at most,
 * and is no variable. */
static bool fills_object(const struct based *b, const struct row *r)
{
	const unsigned size = r->n > 1 ? r->step : 8;
	const uint32_t sec = elfrw_image_section_at(b->prog->img, r->last);
	if (r->n == 1 && (r->step > 4 || (b->prog->img->section[sec].hdr.sh_flags & SHF_WRITE)))
		return false;
	return icf_next_named(b->prog, b->map, r->last, size + 1) - r->last <= size;
}

/* W leads to an entry from T's base.  Is it a number, or does a table begin here? */
static void judge(const struct based *b, const struct bare *w, struct table *t)
{
	const bool front = t->base < b->hi;
	if (front && (w->place & 3))
		return;
	for (unsigned step = 4; step <= MAX_STEP; step += front ? 4 : unit_of(b)) {
		struct row r = row_from(b, w, t->base, step);
		if (r.n < enough(b, t, front, t->start == w->place && fills_object(b, &r)))
			continue;
		pin_row(b, w, t->base, &r);
		t->done = r.last + 1;
	}
}

static void try_word(const struct based *b, const struct bare *w, struct table *t)
{
	if (w->place >= t->done && is_entry(b, t->base + w->word))
		judge(b, w, t);
}

/* The names of [va, va + 64); a bit for each byte. */
static uint64_t names_at(const struct icf_bits *named, uint64_t va)
{
	const uint64_t off = va - named->lo;
	return off < named->hi - named->lo ? elfrw_get64(named->bits + (off >> 3)) : 0;
}

/* Tries W with the names before it, the last one first. */
static void try_names(const struct based *b, const struct bare *w)
{
	const unsigned most = w->place < b->lo ? NAMES : BEFORE;
	const uint64_t lo = b->map->named.lo;
	uint64_t va = lo + ((w->place - lo) & ~(uint64_t)63);
	/* Nothing behind the word. */
	uint64_t mask = UINT64_MAX >> (63 - (w->place - va));
	for (unsigned n = 0; n < most && w->place - va < BEFORE && va >= lo; va -= 64) {
		uint64_t names = names_at(&b->map->named, va) & mask;
		for (mask = UINT64_MAX; names && n < most; n++) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(names);
			struct table t = { va + bit, va + bit, 0, false };
			names &= ~(UINT64_C(1) << bit);
			try_word(b, w, &t);
		}
	}
}

static struct elfrw_err *look_at_words(void *arg, size_t index)
{
	const struct based *b = arg;
	for (size_t i = index * WORDS; i < (index + 1) * WORDS && i < b->word.len; i++)
		try_names(b, &b->word.data[i]);
	return NULL;
}

/* --- what one unit names --- */

struct scratch {
	struct icf_places data, base;
};

/* Was VA met in this unit a short time ago? */
static bool met(uint64_t seen[MET], uint64_t va)
{
	uint64_t *slot = &seen[(va >> 12 ^ va >> 3) % MET];
	bool ret = *slot == va;
	*slot = va;
	return ret;
}

static bool is_base(const struct based *b, uint64_t va)
{
	const struct range *r = va < b->hi ? &b->front : &b->behind;
	return va >= r->lo && va <= r->hi && !icf_in_exec(b->prog, va);
}

static bool add_base(const struct based *b, struct icf_places *base, uint64_t va)
{
	if (!is_base(b, va) || base->v.len == MAX_BASES)
		return true;
	for (size_t k = 0; k < base->v.len; k++)
		if (base->v.data[k] == va)
			return true;
	uint64_t *slot = VEC_PUSH(&base->v);
	if (slot)
		*slot = va;
	return slot;
}

/* Collects where unit U refers to, and the addresses of data that it computes. */
static bool find_names(const struct based *b, const struct icf_unit *u, struct scratch *s)
{
	const struct icf_ref *ref = icf_unit_refs(b->prog, u);
	struct icf_places half = { 0 };
	bool ok = b->image == UINT64_MAX || add_base(b, &s->base, b->image);
	for (uint32_t r = 0; r < u->n_ref && ok; r++) {
		if (ref[r].kind == ICF_REF_BRANCH || icf_names_page(&ref[r]))
			continue;
		uint64_t *slot = VEC_PUSH(&s->data.v);
		ok = slot &&
		     (!(ref[r].flags & ICF_REF_LEA) || add_base(b, &s->base, ref[r].target));
		if (slot)
			*slot = ref[r].target;
	}
	ok = ok && icf_push_half_names(b->prog, u, &s->data, &half);
	for (size_t k = 0; k < half.v.len && ok; k++)
		ok = add_base(b, &s->base, half.v.data[k]);
	VEC_FREE(&half.v);
	return ok;
}

static bool look_in_unit(const struct based *b, const struct icf_unit *u, struct scratch *s)
{
	uint64_t seen[MET] = { 0 };
	s->data.v.len = s->base.v.len = 0;
	if (!find_names(b, u, s))
		return false;
	for (size_t d = 0; d < s->data.v.len && s->base.v.len; d++) {
		const uint64_t start = s->data.v.data[d];
		if (met(seen, start))
			continue;
		size_t first = LOWER_BOUND(0, b->word.len, mid, b->word.data[mid].place < start);
		if (first == b->word.len || b->word.data[first].place - start >= BEHIND)
			continue;
		for (size_t k = 0; k < s->base.v.len; k++) {
			struct table t = { s->base.v.data[k], start, 0,
					   u->flags & ICF_UNIT_RELATIVE };
			for (size_t i = first;
			     i < b->word.len && b->word.data[i].place - start < BEHIND; i++)
				try_word(b, &b->word.data[i], &t);
		}
	}
	return true;
}

static struct elfrw_err *look_at_run(void *arg, size_t index)
{
	const struct based *b = arg;
	struct scratch s = { 0 };
	bool ok = true;
	for (size_t i = index * RUN; i < (index + 1) * RUN && i < b->prog->unit.len && ok; i++)
		ok = look_in_unit(b, &b->prog->unit.data[i], &s);
	VEC_FREE(&s.data.v);
	VEC_FREE(&s.base.v);
	return ok ? NULL : &elfrw_err_nomem;
}

static void widen(struct range *r, uint64_t va)
{
	r->lo = va < r->lo ? va : r->lo;
	r->hi = va > r->hi ? va : r->hi;
}

/* Finds the addresses of data that any code computes. */
static struct elfrw_err *find_bases(struct based *b)
{
	struct icf_program *prog = b->prog;
	struct icf_places all = { 0 }, half = { 0 };
	uint64_t lo, hi;
	bool ok = true;
	elfrw_image_span(prog->img, &lo, &hi);
	b->front = b->behind = (struct range){ UINT64_MAX, 0 };
	b->image = icf_asks_for_image(prog) ? lo : UINT64_MAX;
	if (b->image != UINT64_MAX)
		widen(&b->front, b->image);
	for (uint32_t i = 0; i < prog->unit.len && ok; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++) {
			uint64_t va = ref[r].target;
			if ((ref[r].flags & ICF_REF_LEA) && va - lo <= hi - lo &&
			    !icf_in_exec(prog, va) && !icf_names_page(&ref[r]))
				widen(va < b->hi ? &b->front : &b->behind, va);
		}
		half.v.len = all.v.len = 0;
		ok = icf_push_half_names(prog, u, &all, &half);
		for (size_t k = 0; k < half.v.len; k++)
			if (half.v.data[k] - lo <= hi - lo && !icf_in_exec(prog, half.v.data[k]))
				widen(half.v.data[k] < b->hi ? &b->front : &b->behind,
				      half.v.data[k]);
	}
	VEC_FREE(&all.v);
	VEC_FREE(&half.v);
	return ok ? NULL : &elfrw_err_nomem;
}

/* --- words that nothing but the linker's script can have written --- */

/* Where the word W leads by itself, as way WAY: from its place, from its end, as an address; 0: no
 * more ways. */
enum { OWN, END, ADDRESS, WAYS };

static uint64_t leads_to(const struct based *b, const struct bare *w, unsigned way)
{
	if (way != ADDRESS)
		return w->place + (way == END ? 4 : 0) + w->word;
	return b->prog->img->pic ? 0 : w->word & UINT32_MAX;
}

/* Believes each word if that few numbers are expected to lead to functions, or if they are
 * addresses of 8 bytes; else three close together. */
static void believe_own(const struct based *b, unsigned way)
{
	const double expected = (double)b->bytes * (double)b->prog->unit.len / 4294967296.;
	size_t before[2] = { SIZE_MAX, SIZE_MAX };
	for (size_t i = 0; i < b->word.len; i++) {
		const struct bare *w = &b->word.data[i];
		const uint64_t to = leads_to(b, w, way);
		if (!is_entry(b, to))
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

static struct elfrw_err *look(struct based *b, unsigned threads)
{
	for (unsigned way = 0; way < WAYS && !b->prog->inferred; way++)
		believe_own(b, way);
	ELFRW_TRY(elfrw_parallel(threads, (b->word.len + WORDS - 1) / WORDS, look_at_words, b));
	return elfrw_parallel(threads, (b->prog->unit.len + RUN - 1) / RUN, look_at_run, b);
}

struct elfrw_err *icf_infer_based(struct icf_program *prog, const struct icf_data_map *map,
				  unsigned threads)
{
	struct based b = { .prog = prog, .map = map };
	struct icf_data_map own = { 0 };
	if (!prog->exec.len)
		return NULL;
	b.lo = prog->exec.data[0].start;
	b.hi = prog->exec.data[prog->exec.len - 1].end;
	struct elfrw_err *err = find_bases(&b);
	if (!err)
		err = find_all_words(&b);
	if (!err && b.word.len && !map) {
		err = icf_data_map_init(prog, &own);
		b.map = &own;
	}
	if (!err && b.word.len)
		err = look(&b, threads);
	icf_data_map_deinit(&own);
	VEC_FREE(&b.word);
	return err;
}
