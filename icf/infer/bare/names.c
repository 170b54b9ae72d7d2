/* names.c: the addresses that words may count from: names close before them, and what the code of
 * one unit computes. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/infer/bare/state.h"
#include "icf/program/unit.h"

#define NAMES     8    /* that are tried, if they lie before the code */
#define BEHIND    256  /* bytes from where code refers to, to the first word of a table */
#define MAX_BASES 64   /* addresses that words are tried with in one unit */
#define MET       64   /* places that were met in a unit */
#define WORDS     4096 /* that one thread looks at, one after the other */
#define RUN       512  /* the same of units */
#define PER       64   /* words in rows that are looked at, for each of these */

/* The names of [va, va + 64); a bit for each byte. */
static uint64_t names_at(const struct icf_bits *named, uint64_t va)
{
	const uint64_t off = va - named->lo;
	return off < named->hi - named->lo ? elfrw_get64(named->bits + (off >> 3)) : 0;
}

/* Tries W with the names before it, the last one first. */
static void try_names(const struct icf_based *b, const struct icf_bare *w, uint32_t *budget)
{
	const unsigned most = w->place < b->lo ? NAMES : ICF_BARE_BEFORE;
	const uint64_t lo = b->map->named.lo;
	uint64_t va = lo + ((w->place - lo) & ~(uint64_t)63);
	/* Nothing behind the word. */
	uint64_t mask = UINT64_MAX >> (63 - (w->place - va));
	for (unsigned n = 0; n < most && w->place - va < ICF_BARE_BEFORE && va >= lo; va -= 64) {
		uint64_t names = names_at(&b->map->named, va) & mask;
		for (mask = UINT64_MAX; names && n < most; n++) {
			unsigned bit = 63 - (unsigned)__builtin_clzll(names);
			struct icf_bare_table t = { va + bit, va + bit, 0, false, budget };
			names &= ~(UINT64_C(1) << bit);
			icf_bare_try(b, w, &t);
		}
	}
}

static struct elfrw_err *look_at_words(void *arg, size_t index)
{
	const struct icf_based *b = arg;
	uint32_t budget = WORDS * PER;
	for (size_t i = index * WORDS; i < (index + 1) * WORDS && i < b->word.len; i++)
		try_names(b, &b->word.data[i], &budget);
	return NULL;
}

struct scratch {
	struct icf_places data, base;
	uint32_t budget; /* as in struct icf_bare_table */
};

/* Was VA met in this unit a short time ago? */
static bool met(uint64_t seen[MET], uint64_t va)
{
	uint64_t *slot = &seen[(va >> 12 ^ va >> 3) % MET];
	bool ret = *slot == va;
	*slot = va;
	return ret;
}

static bool is_base(const struct icf_based *b, uint64_t va)
{
	const struct icf_range *r = va < b->hi ? &b->front : &b->behind;
	return va >= r->lo && va <= r->hi && !icf_in_exec(b->prog, va);
}

static bool add_base(const struct icf_based *b, struct icf_places *base, uint64_t va)
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
static bool find_names(const struct icf_based *b, const struct icf_unit *u, struct scratch *s)
{
	const struct icf_ref *ref = icf_unit_refs(b->prog, u);
	struct icf_places half = { 0 };
	bool ok = b->image == UINT64_MAX || add_base(b, &s->base, b->image);
	for (uint32_t r = 0; r < u->n_ref && ok; r++) {
		if (ref[r].kind == ICF_REF_BRANCH || icf_names_page(&ref[r]))
			continue;
		uint64_t va;
		bool has = icf_bare_address_by(b->prog, &b->got, &ref[r], &va);
		uint64_t *slot = VEC_PUSH(&s->data.v);
		ok = slot && (!has || add_base(b, &s->base, va));
		if (slot)
			*slot = has ? va : ref[r].target;
	}
	ok = ok && icf_push_half_names(b->prog, u, &s->data, &half);
	for (size_t k = 0; k < half.v.len && ok; k++)
		ok = add_base(b, &s->base, half.v.data[k]);
	VEC_FREE(&half.v);
	return ok;
}

static bool look_in_unit(const struct icf_based *b, const struct icf_unit *u, struct scratch *s)
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
			struct icf_bare_table t = { s->base.v.data[k], start, 0,
						    u->flags & ICF_UNIT_RELATIVE, &s->budget };
			for (size_t i = first;
			     i < b->word.len && b->word.data[i].place - start < BEHIND; i++)
				icf_bare_try(b, &b->word.data[i], &t);
		}
	}
	return true;
}

static struct elfrw_err *look_at_run(void *arg, size_t index)
{
	const struct icf_based *b = arg;
	struct scratch s = { .budget = RUN * PER };
	bool ok = true;
	for (size_t i = index * RUN; i < (index + 1) * RUN && i < b->prog->unit.len && ok; i++)
		ok = look_in_unit(b, &b->prog->unit.data[i], &s);
	VEC_FREE(&s.data.v);
	VEC_FREE(&s.base.v);
	return ok ? NULL : &elfrw_err_nomem;
}

/* Finds the addresses of data that any code computes. */
struct elfrw_err *icf_bare_find_bases(struct icf_based *b)
{
	struct icf_program *prog = b->prog;
	struct icf_places all = { 0 }, half = { 0 };
	uint64_t lo, hi;
	bool ok = true;
	elfrw_image_span(prog->img, &lo, &hi);
	b->front = b->behind = (struct icf_range){ UINT64_MAX, 0 };
	b->image = icf_asks_for_image(prog) ? lo : UINT64_MAX;
	if (b->image != UINT64_MAX)
		icf_bare_widen(&b->front, b->image);
	b->got = icf_bare_got(prog->img);
	for (uint32_t i = 0; i < prog->unit.len && ok; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++) {
			uint64_t va;
			if (icf_bare_address_by(b->prog, &b->got, &ref[r], &va) &&
			    va - lo <= hi - lo && !icf_in_exec(prog, va))
				icf_bare_widen(va < b->hi ? &b->front : &b->behind, va);
		}
		half.v.len = all.v.len = 0;
		ok = icf_push_half_names(prog, u, &all, &half);
		for (size_t k = 0; k < half.v.len; k++)
			if (half.v.data[k] - lo <= hi - lo && !icf_in_exec(prog, half.v.data[k]))
				icf_bare_widen(half.v.data[k] < b->hi ? &b->front : &b->behind,
					       half.v.data[k]);
	}
	VEC_FREE(&all.v);
	VEC_FREE(&half.v);
	return ok ? NULL : &elfrw_err_nomem;
}

struct elfrw_err *icf_bare_try_names(struct icf_based *b, unsigned threads)
{
	ELFRW_TRY(elfrw_parallel(threads, (b->word.len + WORDS - 1) / WORDS, look_at_words, b));
	return elfrw_parallel(threads, (b->prog->unit.len + RUN - 1) / RUN, look_at_run, b);
}
