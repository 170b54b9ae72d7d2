/* row.c: are words at equal steps a table?
 *
 * Cost: the words of the row, for each step. */
#include "elfrw/base/search.h"
#include "icf/infer/bare/state.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"

#define MAX_STEP  64          /* bytes from one word of a table to the next */
#define MAX_ZEROS 8           /* in a row */
#define MOST      8           /* different functions that are counted in a row */
#define MUCH      (256 << 10) /* bytes of data: if there are more, a table needs one word more */
#define HUGE      (16 << 20)  /* and another one */

/* Words at equal steps. */
struct row {
	uint64_t last;    /* place */
	unsigned step, n; /* different functions */
};

static bool is_bare(const struct icf_based *b, uint64_t place)
{
	size_t k = LOWER_BOUND(0, b->word.len, mid, b->word.data[mid].place < place);
	return k < b->word.len && b->word.data[k].place == place;
}

/* The row of words STEP bytes apart that begins with W, all counted from T's base. */
static struct row row_from(const struct icf_based *b, const struct icf_bare *w,
			   const struct icf_bare_table *t, unsigned step)
{
	const uint64_t base = t->base;
	uint64_t seen[MOST] = { w->word };
	struct row r = { w->place, step, 1 };
	const uint8_t *p;
	unsigned zeros = 0;
	for (uint64_t at = w->place + step;
	     zeros <= MAX_ZEROS && *t->budget && (p = elfrw_image_at(b->prog->img, at, 4)) != NULL;
	     at += step) {
		--*t->budget;
		uint64_t word = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
		zeros = word ? 0 : zeros + 1;
		if (!word)
			continue;
		if (!icf_bare_is_entry(b, base + word) || !is_bare(b, at))
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

static void pin_row(const struct icf_based *b, const struct icf_bare *w, uint64_t base,
		    const struct row *r)
{
	for (uint64_t at = w->place; at <= r->last; at += r->step) {
		const uint8_t *p = elfrw_image_at(b->prog->img, at, 4);
		uint64_t word = p ? (uint64_t)(int64_t)(int32_t)elfrw_get32(p) : 0;
		if (word)
			icf_pin_unit(b->prog, icf_unit_at(b->prog, base + word));
	}
}

static bool is_small(const struct icf_based *b)
{
	return b->bytes <= ICF_BARE_ANY_BYTE;
}

/* How many functions in a row are no chance; FRONT: counted from before the code. */
static unsigned enough(const struct icf_based *b, const struct icf_bare_table *t, bool front,
		       bool filled)
{
	if (!filled)
		return 2 + front + !is_small(b) + (b->bytes > MUCH) + (b->bytes > HUGE);
	return !front || is_small(b) ? 1 : t->few ? 2 : 3;
}

/* Does the row R, from where code refers to, end with its object?  A lone word has 8 bytes at most,
 * and is no variable. */
static bool fills_object(const struct icf_based *b, const struct row *r)
{
	const unsigned size = r->n > 1 ? r->step : 8;
	const uint32_t sec = elfrw_image_section_at(b->prog->img, r->last);
	const bool writable = b->prog->img->section[sec].hdr.sh_flags & SHF_WRITE;
	if (r->n == 1 && (r->step > 4 || (writable && !is_small(b))))
		return false;
	return icf_next_named(b->prog, b->map, r->last, size + 1) - r->last <= size;
}

/* Does the row R end with its section, in which BASE is, too?  There is one such place in a
 * section: two words are no chance. */
static bool ends_section(const struct icf_based *b, const struct row *r, uint64_t base)
{
	const uint32_t sec = elfrw_image_section_at(b->prog->img, r->last);
	const Elf64_Shdr *sh = &b->prog->img->section[sec].hdr;
	return r->n > 1 && base - sh->sh_addr < sh->sh_size &&
	       sh->sh_addr + sh->sh_size - r->last <= r->step;
}

void icf_bare_judge(const struct icf_based *b, const struct icf_bare *w, struct icf_bare_table *t)
{
	const bool front = t->base < b->hi;
	if (front && (w->place & 3))
		return;
	for (unsigned step = 4; step <= MAX_STEP && *t->budget;
	     step += front ? 4 : icf_bare_unit(b)) {
		struct row r = row_from(b, w, t, step);
		if (r.n < enough(b, t, front, t->start == w->place && fills_object(b, &r)) &&
		    !ends_section(b, &r, t->base))
			continue;
		pin_row(b, w, t->base, &r);
		t->done = r.last + 1;
	}
}
