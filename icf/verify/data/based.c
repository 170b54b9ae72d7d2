/* based.c: words of IN's data without a relocation that lead to functions from other data, from
 * their own place, or as addresses.
 *
 * A linker script's words have no relocation, whatever was kept; distances that an assembler writes
 * have none in IN if none were kept.  Code that computes two addresses of data, or one, may add to
 * the one what it reads at the other.  If words at equal steps from there lead to the starts of
 * different functions, these must not have moved.  A lone word that is a whole address, where
 * addresses are fixed, is no number either; nor is a distance from its own place, if no number is
 * expected to lead to a function from there.
 *
 * Only aligned words count, and in large programs more of them are required than the fold requires.
 * Cost: a comparison for each of the first words at each address of data, with each other one of
 * the unit; with relocations, one pass over the data. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>

#define FIRST       16    /* words at a place, one of which may be a table's first */
#define HEADER      64    /* the same of those that count from that very place */
#define MAX_STEP    64    /* bytes from one word of a table to the next */
#define MAX_ROW     64    /* words that are looked at */
#define ROWS        1024  /* that are counted for one unit: real ones need few */
#define MAX_NUMBERS 16    /* absolute symbols that are tried */
#define SMALL       65536 /* bytes of data */
#define HUGE        (16 << 20)

/* The words at AT. */
struct words {
	const uint8_t *data;
	uint64_t at, size;
};

static uint64_t word_at(const struct words *w, uint64_t off)
{
	return (uint64_t)(int64_t)(int32_t)elfrw_get32(w->data + off);
}

static bool explained(const struct icf_v *v, uint64_t va, unsigned size)
{
	size_t i = icf_v_word_from(&v->words, va > 7 ? va - 7 : 0);
	for (; i < v->words.word.len && v->words.word.data[i].place < va + size; i++)
		if (v->words.word.data[i].place + v->words.word.data[i].size > va)
			return true;
	i = LOWER_BOUND(0, v->words.dynreloc.len, mid, v->words.dynreloc.data[mid].place + 8 <= va);
	return i < v->words.dynreloc.len && v->words.dynreloc.data[i].place < va + size;
}

/* The unit that begins at VA, or ICF_V_NONE. */
static uint32_t begins(const struct icf_vclaim *c, uint64_t va)
{
	uint32_t u = va - c->lo < c->hi - c->lo ? icf_v_find(c, va) : ICF_V_NONE;
	return u != ICF_V_NONE && c->unit.data[u].old == va ? u : ICF_V_NONE;
}

static bool left(const struct icf_vclaim *c, uint64_t va)
{
	uint64_t now;
	return begins(c, va) != ICF_V_NONE && (!icf_v_pointer(c, va, &now) || now != va);
}

static void report(const struct icf_v *v, struct icf_vlog *log, uint64_t place, uint64_t base,
		   uint64_t to)
{
	char name[200];
	icf_vlog_bad(
		log, ICF_VC_WORD,
		"distance: word at 0x%llx, from 0x%llx to %s (0x%llx): expected the function to stay, found it elsewhere",
		ICF_VX(place), ICF_VX(base), icf_v_where(&v->claim, to, name), ICF_VX(to));
}

/* How many words lead to different functions from BASE, STEP bytes apart, around the one at OFF.
 * *END: behind the last one is less than STEP of W. */
static unsigned row_of(const struct icf_v *v, const struct words *w, uint64_t base, uint64_t off,
		       unsigned step, bool *end)
{
	uint64_t to[MAX_ROW];
	unsigned n = 0;
	while (off >= step && begins(&v->claim, base + word_at(w, off - step)) != ICF_V_NONE)
		off -= step;
	for (; n < MAX_ROW && off <= w->size && w->size - off >= 4; off += step) {
		uint64_t is = base + word_at(w, off);
		unsigned k = 0;
		if (begins(&v->claim, is) == ICF_V_NONE || explained(v, w->at + off, 4))
			break;
		while (k < n && to[k] != is)
			k++;
		if (k == n)
			to[n++] = is;
	}
	*end = off >= w->size;
	return n;
}

/* How many words at W are no chance.  END: they end their section; if BASE is there, too, that is
 * much. */
static unsigned required(const struct icf_v *v, const struct words *w, uint64_t base, bool end)
{
	const struct elfrw_image *in = &v->claim.in;
	if (end && elfrw_image_section_at(in, base) == elfrw_image_section_at(in, w->at))
		return 2;
	unsigned more = v->claim.in.size > HUGE ? 3 : v->data_size > SMALL ? 2 : 0;
	/* Few programs have the address of their first byte. */
	const bool front = base < v->claim.hi;
	if (!more)
		return front ? 3 : 2;
	return (front && base != v->image ? 5 : 3) + more;
}

/* The words at W, counted from BASE: those of the first N that lead to a function that left. */
static void check_words(const struct icf_v *v, struct icf_vlog *log, const struct words *w,
			uint64_t base, unsigned n, unsigned *rows)
{
	const uint64_t lo = v->claim.lo - base, size = v->claim.hi - v->claim.lo;
	for (uint64_t off = 0; off < 4 * (uint64_t)n && off <= w->size && w->size - off >= 4;
	     off += 4) {
		uint64_t word = word_at(w, off);
		if (word - lo >= size || !word || !left(&v->claim, base + word))
			continue;
		for (unsigned step = 4; step <= MAX_STEP && *rows; step += 4) {
			bool end;
			--*rows;
			const unsigned n_row = row_of(v, w, base, off, step, &end);
			if (n_row < required(v, w, base, end))
				continue;
			report(v, log, w->at + off, base, base + word);
			return;
		}
	}
}

static bool holds_words(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) && !(s->hdr.sh_flags & (SHF_EXECINSTR | SHF_TLS)) &&
	       s->hdr.sh_type == SHT_PROGBITS && s->data && !icf_v_is_unwind_name(s->name) &&
	       strncmp(s->name, ".got", 4) != 0;
}

static bool names(const struct icf_vnamed *n, uint64_t number)
{
	for (unsigned d = 0; d < n->n_data; d++)
		if (n->data[d] == number)
			return true;
	return false;
}

/* Does an absolute symbol's number lead from address BASE of data to a function that left?  N: what
 * the unit names that has the address; the number is among it.  NULL: any unit may have both. */
static void check_absolute(const struct icf_v *v, struct icf_vlog *log, uint64_t base,
			   const struct icf_vnamed *n)
{
	for (size_t k = 0; k < v->absolute.v.len; k++)
		if (left(&v->claim, base + v->absolute.v.data[k]) &&
		    (!n || names(n, v->absolute.v.data[k])))
			report(v, log, v->absolute.v.data[k], base, base + v->absolute.v.data[k]);
}

void icf_v_check_based(const struct icf_v *v, struct icf_vlog *log, const struct icf_vnamed *n)
{
	const struct elfrw_image *in = &v->claim.in;
	unsigned rows = ROWS;
	for (unsigned b = 0; b < n->n_data && v->absolute.v.len; b++)
		if (n->computes >> b & 1)
			check_absolute(v, log, n->data[b], n);
	for (unsigned d = 0; d < n->n_data && n->computes; d++) {
		const struct elfrw_section *s =
			&in->section[elfrw_image_section_at(in, n->data[d])];
		if (!holds_words(s) || (n->data[d] & 3))
			continue;
		const uint64_t off = n->data[d] - s->hdr.sh_addr;
		const struct words w = { s->data + off, n->data[d], s->hdr.sh_size - off };
		for (unsigned b = 0; b < n->n_data; b++)
			if (n->computes >> b & 1)
				check_words(v, log, &w, n->data[b],
					    n->data[b] == w.at ? HEADER : FIRST, &rows);
	}
}

/* --- without relocations, from what was collected with the code --- */

static int unit_order(const void *a, const void *b)
{
	const struct icf_vbase *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->va < y->va ? -1 : x->va > y->va;
}

struct elfrw_err *icf_v_check_all_based(struct icf_v *v)
{
	const size_t n = v->base.len;
	struct icf_vbase *base = n ? malloc(n * sizeof *base) : NULL;
	if (!base)
		return n ? &elfrw_err_nomem : NULL;
	memcpy(base, v->base.data, n * sizeof *base);
	qsort(base, n, sizeof *base, unit_order);
	for (size_t i = 0, end; i < n; i = end) {
		struct icf_vnamed named = { .n_code = 0 };
		for (end = i; end < n && base[end].unit == base[i].unit; end++)
			icf_v_name_data(&named, base[end].va, !base[end].loads);
		icf_v_check_based(v, &v->log, &named);
	}
	free(base);
	return NULL;
}

/* --- words that tell where they lead by themselves --- */

struct elfrw_err *icf_v_measure_data(struct icf_v *v)
{
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++)
		if (holds_words(&v->claim.in.section[i]))
			v->data_size += v->claim.in.section[i].hdr.sh_size;
	uint64_t end;
	elfrw_image_span(&v->claim.in, &v->image, &end);
	for (struct elfrw_all_symbols it = { .img = &v->claim.in }; elfrw_all_symbols_next(&it);) {
		if (!elfrw_symbol_is_number(&v->claim.in, &it.sym) ||
		    v->absolute.v.len == MAX_NUMBERS)
			continue;
		uint64_t *slot = VEC_PUSH(&v->absolute.v);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = it.sym.st_value;
	}
	return NULL;
}

void icf_v_check_bare(struct icf_v *v)
{
	const struct icf_vclaim *c = &v->claim;
	const uint64_t size = c->hi - c->lo;
	/* Code may have it from anywhere. */
	check_absolute(v, &v->log, v->image, NULL);
	if (c->inferred)
		return;
	const bool lone = (double)v->data_size * (double)c->unit.len / 4294967296. < 0.03;
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const struct elfrw_section *s = &c->in.section[i];
		const struct words w = { s->data, s->hdr.sh_addr, s->hdr.sh_size };
		if (!holds_words(s))
			continue;
		for (uint64_t off = -w.at & 3; off <= w.size && w.size - off >= 4; off += 4) {
			const uint64_t word = word_at(&w, off), own = w.at + off;
			/* The distance to code behind the data is small, as most numbers are. */
			if (word >> 63 && own + word - c->lo < size && lone &&
			    left(c, own + word) && !explained(v, own, 4))
				report(v, &v->log, own, own, own + word);
			if (!c->in.pic && word - c->lo < size && w.size - off >= 8 &&
			    elfrw_get64(w.data + off) == word && left(c, word) &&
			    !explained(v, own, 8))
				report(v, &v->log, own, 0, word);
		}
	}
}
