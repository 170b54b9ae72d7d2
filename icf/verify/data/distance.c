/* distance.c: words of IN's data that are distances to functions, without relocations, must still
 * lead to these functions.
 *
 * Data does not move or change, so such a word is wrong in OUT exactly if its function has left its
 * address.  So only words that lead to the start of a function that has left are examined: are they
 * numbers, or is this a table?  A lone word that leads there from its own place is no number, if
 * there are so few functions, and so little data, that no number is expected to do so.  Otherwise,
 * words to the left and right of it, at each equal step, are counted if they lead to functions in
 * the same way, whether these moved or not.  Bytes of code that are not understood are read as
 * data, too.  The verifier requires more such words than the fold does, so words that both take for
 * numbers are no difference.
 *
 * Cost: each byte offset of the data is read once for each size and unit of words. */
#include "elfrw/base/search.h"
#include "icf/verify/state.h"
#include <stdlib.h>
#include <string.h>

#define ROW  48 /* words examined on each side */
#define STEP 64 /* the longest record */

enum from { PLACE, END, RECORD, NAMED, BEHIND_NAMED, FIXED };

/* How a word counts. */
struct count {
	unsigned size, shift;
	enum from from;
	bool sign;
	int64_t away;   /* RECORD: from the word to its origin */
	uint64_t fixed; /* FIXED */
};

struct search {
	struct icf_v *v;
	const struct elfrw_section *sec;
	const uint64_t *name; /* sorted */
	size_t n_names;
	uint8_t *start; /* bit set: a function starts at that byte of [v->claim.lo, v->claim.hi);
			   owned */
	double chance; /* expected number of 4-byte words in all the data that lead to a function by
			  chance */
	bool opaque;   /* bytes of code that are not understood: there each word counts */
	uint64_t from,
		end;   /* bounds of the current object: from the last named place to the next */
	uint64_t told; /* the place of the last difference */
	uint64_t fixed[16];
	unsigned n_fixed;
};

static bool starts(const struct search *s, uint64_t va)
{
	uint64_t bit = va - s->v->claim.lo;
	return bit < s->v->claim.hi - s->v->claim.lo && (s->start[bit >> 3] >> (bit & 7) & 1);
}

/* Is the function that starts at VA somewhere else in OUT? */
static bool left(const struct search *s, uint64_t va)
{
	uint64_t now;
	return !icf_v_pointer(&s->v->claim, va, &now) || now != va;
}

/* Where the word at VA leads; 0: nowhere, or it is explained. */
static uint64_t target(const struct search *s, const struct count *c, uint64_t va)
{
	if (va < s->sec->hdr.sh_addr || va - s->sec->hdr.sh_addr > s->sec->hdr.sh_size - c->size)
		return 0;
	uint64_t w = elfrw_get_le(s->sec->data + (va - s->sec->hdr.sh_addr), c->size);
	if (c->sign && c->size < 8 && w >> (8 * c->size - 1))
		w -= (uint64_t)1 << (8 * c->size);
	if (!w)
		return 0;
	w <<= c->shift;
	switch (c->from) {
	case PLACE: return w + va;
	case END: return w + va + c->size;
	case RECORD: return w + va + (uint64_t)c->away;
	case NAMED: return w + s->from;
	case BEHIND_NAMED: return w + s->from + 8;
	default: return w + c->fixed;
	}
}

/* Does any byte of the word at VA belong to a word that is checked elsewhere, or that the loader
 * sets? */
static bool explained(const struct search *s, uint64_t va, unsigned size)
{
	const struct icf_v *v = s->v;
	for (size_t i = icf_v_word_from(&v->words, va > 7 ? va - 7 : 0);
	     i < v->words.word.len && v->words.word.data[i].place < va + size; i++)
		if (v->words.word.data[i].place + v->words.word.data[i].size > va)
			return true;
	size_t i = LOWER_BOUND(0, v->words.dynreloc.len, mid,
			       v->words.dynreloc.data[mid].place + 8 <= va);
	return i < v->words.dynreloc.len && v->words.dynreloc.data[i].place < va + size;
}

struct row {
	unsigned n;           /* different functions */
	uint64_t first, last; /* places */
};

/* The words around VA, STEP bytes apart, that lead to functions. */
static struct row row_of(const struct search *s, const struct count *c, uint64_t va, unsigned step)
{
	uint64_t to[2 * ROW + 1] = { target(s, c, va) };
	struct row r = { 1, va, va };
	for (int side = -1; side <= 1; side += 2) {
		uint64_t at = va;
		unsigned none = 0;
		for (unsigned k = 0; k < ROW; k++) {
			at += (uint64_t)((int64_t)side * step);
			/* Words that count from a name do so up to the next name. */
			if ((c->from == NAMED || c->from == BEHIND_NAMED) &&
			    at - s->from >= s->end - s->from)
				break;
			uint64_t t = target(s, c, at);
			/* This word leads to no function. */
			if (!t && ++none < 4 && at - s->from < s->end - s->from)
				continue;
			if (!starts(s, t) || explained(s, at, c->size))
				break;
			unsigned same = 0;
			while (same < r.n && to[same] != t)
				same++;
			if (same == r.n)
				to[r.n++] = t;
			if (side < 0)
				r.first = at;
			else
				r.last = at;
		}
	}
	return r;
}

/* The required number; FILLED: the object holds nothing else. */
static unsigned proof(const struct search *s, const struct count *c, bool filled)
{
	unsigned more = c->shift ? 2 : 0, none = 2 * ROW + 2;
	if (c->size == 2 && c->shift)
		return none;
	switch (c->from) {
	case PLACE:
	case END: return (c->size == 2 ? 5 : 4 + 3 * more) + (s->chance > 0.5 ? 3 : 0);
	case RECORD: return c->size == 2 ? none : 7;
	case NAMED:
	case BEHIND_NAMED: return c->size == 2 ? filled ? 5 : 7 : (filled ? 3 : 5) + more;
	default:
		if (c->fixed >= s->v->claim.hi && c->size > 2)
			return (filled ? 4 : 6) + more + more;
		return !filled || c->shift             ? none
		       : s->v->claim.in.size > 1 << 20 ? 18
		       : c->size == 2                  ? 9
						       : 5;
	}
}

static bool is_table(const struct search *s, const struct count *c, uint64_t va)
{
	for (unsigned step = c->size; step <= STEP; step++) {
		/* A record's start or end is not in another record. */
		if (c->from == RECORD && (c->away <= -(int64_t)step || c->away > (int64_t)step))
			continue;
		struct row r = row_of(s, c, va, step);
		bool filled = r.first >= s->from && r.last < s->end && r.first - s->from < step;
		/* Except for zeros up to the next name. */
		for (uint64_t at = r.last + step; filled && at < s->end && s->end - at >= c->size;
		     at += step)
			filled = elfrw_get_le(s->sec->data + (at - s->sec->hdr.sh_addr), c->size) ==
				 0;
		if (r.n >= proof(s, c, filled))
			return true;
	}
	return false;
}

static void look_at(struct search *s, const struct count *c, uint64_t va)
{
	uint64_t to = target(s, c, va);
	if (!starts(s, to) || s->told == va || !left(s, to) || explained(s, va, c->size))
		return;
	bool lone = (s->opaque || s->chance < 0.03) && c->size >= 4 && !c->shift &&
		    (c->from == PLACE || c->from == END);
	if (!lone && !is_table(s, c, va))
		return;
	char name[200];
	s->told = va;
	icf_vlog_bad(
		&s->v->log, ICF_VC_WORD,
		"distance: %s+0x%llx, of %s (0x%llx): expected the function to stay, or the word to follow it; found neither",
		s->sec->name, ICF_VX(va - s->sec->hdr.sh_addr), icf_v_where(&s->v->claim, to, name),
		ICF_VX(to));
}

/* Examines the word at VA, which is W for C, if it leads to a function at all; nearly none does. */
static inline void look_if(struct search *s, const struct count *c, uint64_t va, uint64_t w)
{
	if (starts(s, w))
		look_at(s, c, va);
}

/* Examines words of SIZE bytes at VA, counted in each way.  Any two places are less than FAR
 * apart. */
static void look_from(struct search *s, unsigned size, uint64_t va, uint64_t far)
{
	struct count c = { .size = size };
	uint64_t raw = elfrw_get_le(s->sec->data + (va - s->sec->hdr.sh_addr), size),
		 top = (uint64_t)1 << (8 * size - 1);
	for (c.shift = 0; c.shift <= 4; c.shift++)
		for (unsigned sign = size == 2 ? 0 : 1; sign <= 1; sign++) {
			c.sign = sign;
			uint64_t w = (sign && size < 8 ? (raw ^ top) - top : raw) << c.shift;
			if (far < (uint64_t)1 << 56 && w + far >= 2 * far)
				continue;
			c.from = PLACE;
			look_if(s, &c, va, w + va);
			c.from = END;
			look_if(s, &c, va, w + va + size);
			c.from = NAMED;
			look_if(s, &c, va, w + s->from);
			c.from = BEHIND_NAMED;
			look_if(s, &c, va, w + s->from + 8);
			c.from = FIXED;
			for (unsigned f = 0; f < s->n_fixed; f++) {
				c.fixed = s->fixed[f];
				look_if(s, &c, va, w + c.fixed);
			}
		}
	c = (struct count){ .size = size, .from = RECORD, .sign = true };
	uint64_t to = target(s, &c, va);
	if (size == 2 || !to ||
	    to + STEP - s->v->claim.lo >= s->v->claim.hi - s->v->claim.lo + 2 * STEP)
		return;
	for (c.away = -STEP; c.away <= STEP; c.away++)
		look_at(s, &c, va);
}

static bool is_data(const struct elfrw_section *s)
{
	if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & (SHF_EXECINSTR | SHF_TLS)) ||
	    !s->data || icf_v_is_unwind_name(s->name))
		return false;
	return s->hdr.sh_type == SHT_PROGBITS && strncmp(s->name, ".got", 4) != 0 &&
	       strcmp(s->name, ".interp") != 0;
}

static void look_through(struct search *s)
{
	uint64_t lo = s->sec->hdr.sh_addr, end = lo + s->sec->hdr.sh_size;
	uint64_t far = end > s->v->claim.hi ? end : s->v->claim.hi;
	for (unsigned i = 0; i < s->n_fixed; i++)
		far = s->fixed[i] > far ? s->fixed[i] : far;
	far = 2 * (far + 16);
	size_t next = LOWER_BOUND(0, s->n_names, mid, s->name[mid] <= lo);
	s->from = lo;
	s->end = next < s->n_names && s->name[next] < end ? s->name[next] : end;
	for (uint64_t va = lo; va < end; va++) {
		while (next < s->n_names && s->name[next] <= va) {
			s->from = s->name[next++];
			s->end = next < s->n_names && s->name[next] < end ? s->name[next] : end;
		}
		for (unsigned size = 2; size <= 8 && size <= end - va; size *= 2) {
			const struct count plain = { .size = size, .from = FIXED, .sign = true };
			uint64_t w = target(s, &plain, va);
			if (w && w + far / 2 < far)
				look_from(s, size, va, far / 2);
		}
	}
}

/* Collects addresses that the program has, for any purpose. */
static void find_fixed(struct search *s)
{
	const struct icf_v *v = s->v;
	for (size_t e = 0; e < v->claim.exec.len && s->n_fixed < 8; e++) {
		uint32_t u = icf_v_find(&v->claim, v->claim.exec.data[e].old);
		if (u != ICF_V_NONE && v->claim.unit.data[u].old == v->claim.exec.data[e].old &&
		    v->claim.unit.data[u].observed)
			s->fixed[s->n_fixed++] = v->claim.exec.data[e].old;
	}
	bool image = false;
	for (size_t i = 0; i < v->base.len && !image; i++)
		image = v->base.data[i].va == 0 && !v->base.data[i].loads;
	for (size_t i = 0; i < v->words.dynreloc.len && !image; i++)
		image = v->words.dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE &&
			v->words.dynreloc.data[i].addend == 0;
	if (image)
		s->fixed[s->n_fixed++] = 0;
	for (uint32_t i = 1; i < v->claim.in.n_sections && s->n_fixed < 16; i++) {
		if (strncmp(v->claim.in.section[i].name, ".got", 4) == 0)
			s->fixed[s->n_fixed++] = v->claim.in.section[i].hdr.sh_addr;
	}
}

/* Code that is not understood may be data. */
static void look_through_opaque(struct search *s)
{
	const struct icf_v *v = s->v;
	uint64_t bytes = 0;
	for (size_t i = 0; i < v->claim.unit.len; i++)
		bytes += v->claim.unit.data[i].opaque
				 ? v->claim.unit.data[i].end - v->claim.unit.data[i].old
				 : 0;
	s->chance = (double)bytes * (double)v->claim.unit.len / 4294967296.0;
	s->opaque = true;
	for (size_t i = 0; i < v->claim.unit.len; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		const struct icf_vexec *e = &v->claim.exec.data[u->exec];
		struct elfrw_section sec = v->claim.in.section[e->in];
		if (!u->opaque)
			continue;
		sec.hdr.sh_size = u->end - u->old;
		sec.data = e->old_data + (u->old - sec.hdr.sh_addr);
		sec.hdr.sh_addr = u->old;
		s->sec = &sec;
		look_through(s);
	}
}

struct elfrw_err *icf_v_check_distances(struct icf_v *v, const uint64_t *name, size_t n_names)
{
	bool moved = false;
	uint64_t bytes = 0;
	for (size_t i = 0; i < v->claim.unit.len && !moved; i++)
		moved = v->claim.unit.data[i].entry != v->claim.unit.data[i].old;
	if (!moved || v->claim.hi <= v->claim.lo)
		return NULL;
	struct search s = { .v = v,
			    .name = name,
			    .n_names = n_names,
			    .start = calloc(((v->claim.hi - v->claim.lo) >> 3) + 1, 1) };
	if (!s.start)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->claim.unit.len; i++)
		if (v->claim.unit.data[i].old - v->claim.lo < v->claim.hi - v->claim.lo)
			s.start[(v->claim.unit.data[i].old - v->claim.lo) >> 3] |=
				(uint8_t)(1u << ((v->claim.unit.data[i].old - v->claim.lo) & 7));
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++)
		bytes += is_data(&v->claim.in.section[i]) ? v->claim.in.section[i].hdr.sh_size : 0;
	s.chance = (double)bytes * (double)v->claim.unit.len / 4294967296.0;
	find_fixed(&s);
	for (uint32_t i = 1; i < v->claim.in.n_sections; i++) {
		s.sec = &v->claim.in.section[i];
		if (is_data(s.sec))
			look_through(&s);
	}
	look_through_opaque(&s);
	free(s.start);
	return NULL;
}
