/* read.c: reads the words of a section that may lead into the code.
 *
 * Data mostly lies on one side of the code, so half of all numbers lead away from it, and small
 * ones lead to a place between.  A word leads into the code from some place between A and B only if
 * it lies between the code's start minus B and the code's end minus A; in larger units, between
 * parts of these.  So few words are left for the probes, and of these few belong to both sides.
 *
 * Cost: a few operations for 16 places, and a few for each such word. */
#include "icf/infer/lanes.h"
#include "icf/infer/run/state.h"
#include <string.h>

#define NEAR 65536 /* places whose words are compared with the same bounds */

static void widen(struct range *r, int64_t lo, int64_t hi)
{
	r->lo = lo < r->lo ? lo : r->lo;
	r->hi = hi > r->hi ? hi : r->hi;
}

/* Words whose distance is larger than that between any two places lead nowhere. */
static void limit(struct range *r, uint64_t span)
{
	r->lo = r->lo < -(int64_t)span ? -(int64_t)span : r->lo;
	r->hi = r->hi >= (int64_t)span ? (int64_t)span - 1 : r->hi;
	if (r->lo > r->hi)
		*r = (struct range){ 1, 0 };
}

/* Finds the words that may lead near an entry, in any shape, from the places VA to END of L's
 * section or from the names before them. */
static void find_reach(struct look *l, uint64_t va, uint64_t end, struct block *b)
{
	const struct run_job *job = l->job;
	b->back = b->on = (struct range){ INT64_MAX, INT64_MIN };
	for (size_t k = 0; k < l->probe.len; k++) {
		struct probe *p = &l->probe.data[k];
		const struct shape *sh = &p->sh;
		bool fixed = sh->base == FROM_FIXED;
		uint64_t from = fixed ? sh->fixed : sh->base == FROM_NAME ? l->name : va;
		int64_t lo = (int64_t)(job->lo - MARGIN - (fixed ? sh->fixed : end)),
			hi = (int64_t)(job->hi + MARGIN - from);
		p->side = hi < 0 ? SIDE_BACK : SIDE_ON;
		widen(hi < 0 ? &b->back : &b->on, lo >> sh->shift, hi >> sh->shift);
	}
	limit(&b->back, job->span);
	limit(&b->on, job->span);
}

/* Are all words of R numbers of 4 bytes? */
static bool fits(const struct range *r)
{
	return r->lo > r->hi || (r->lo >= INT32_MIN && r->hi <= INT32_MAX);
}

/* The numbers of 4 bytes that are words of R. */
static struct range in_four(const struct range *r)
{
	if (r->lo > r->hi || r->lo > INT32_MAX || r->hi < INT32_MIN)
		return (struct range){ 1, 0 };
	return (struct range){ r->lo < INT32_MIN ? INT32_MIN : r->lo,
			       r->hi > INT32_MAX ? INT32_MAX : r->hi };
}

#define PLACES 16

/* The words of four bytes that matter: those of BACK and ON other than zero.  With LONG, the first
 * halves of words of 8 bytes. */
struct wanted {
	struct icf_lane_range back, on;
	bool is_long;
};

/* Which of the four places at P, 4 bytes apart, begin such a word? */
static inline icf_lanes_t are_wanted(const uint8_t *p, const struct wanted *want)
{
	icf_lanes_t v = icf_lanes_at(p);
	icf_lanes_t in = (icf_lanes_in(v, &want->back) | icf_lanes_in(v, &want->on)) & (v != 0);
	return want->is_long ? in & (icf_lanes_at(p + 4) == v >> 31) : in;
}

/* Which of the PLACES places at P begin such a word?  A byte of M for each. */
static inline void find_words(const uint8_t *p, const struct wanted *want, uint64_t m[2])
{
	icf_lanes_t any = (are_wanted(p, want) & 0xff) | (are_wanted(p + 1, want) & 0xff00) |
			  (are_wanted(p + 2, want) & 0xff0000) |
			  (are_wanted(p + 3, want) & (int32_t)0xff000000);
	memcpy(m, &any, 2 * sizeof *m);
}

/* Reads all words but zeros and those that are too large. */
static inline __attribute__((always_inline)) uint64_t read_all(const struct look *l,
							       struct block *b, uint64_t va,
							       uint64_t end, unsigned size)
{
	const struct shape sh = { .size = (uint8_t)size, .sign = true };
	uint64_t span = l->job->span;
	unsigned n = 0;
	for (; va < end && n < BLOCK; va++) {
		uint64_t w = icf_run_word(l->sec, va, &sh);
		b->va[n] = va;
		b->word[n] = w;
		n += (w != 0) & (w + span < 2 * span);
	}
	b->n = n;
	return va;
}

static inline void keep(struct block *b, uint64_t va, uint64_t w)
{
	b->va[b->n] = va;
	b->word[b->n] = w;
	unsigned near = icf_run_in(&b->back, w);
	near |= icf_run_in(&b->on, w); /* no branch */
	b->n += (w != 0) & near;
}

/* Reads words of B's ranges. */
static inline __attribute__((always_inline)) uint64_t read_near(const struct look *l,
								struct block *b, uint64_t va,
								uint64_t end, unsigned size)
{
	const struct shape sh = { .size = (uint8_t)size, .sign = true };
	struct range back = in_four(&b->back), on = in_four(&b->on);
	const bool known = size == 4 || (fits(&b->back) && fits(&b->on));
	const uint8_t *p = l->sec->data + (va - l->sec->hdr.sh_addr);
	unsigned n = 0;
	if (known && back.lo > back.hi && on.lo > on.hi) {
		b->n = 0;
		return end;
	}
	back = back.lo > back.hi ? on : back;
	on = on.lo > on.hi ? back : on;
	const struct wanted want = { icf_lane_range((int32_t)back.lo, (int32_t)back.hi),
				     icf_lane_range((int32_t)on.lo, (int32_t)on.hi), size == 8 };
	for (; known && end - va >= PLACES && n <= BLOCK - PLACES; va += PLACES, p += PLACES) {
		uint64_t m[2];
		find_words(p, &want, m);
		for (unsigned h = 0; h < 2; h++)
			while (m[h]) {
				unsigned at = (unsigned)__builtin_ctzll(m[h]) / 8 + 8 * h;
				b->va[n] = va + at;
				b->word[n++] = (uint64_t)(int64_t)(int32_t)elfrw_get32(p + at);
				m[h] &= ~((uint64_t)0xff << (8 * (at & 7)));
			}
	}
	b->n = n;
	for (; (!known || end - va < PLACES) && va < end && b->n < BLOCK; va++)
		keep(b, va, icf_run_word(l->sec, va, &sh));
	return va;
}

uint64_t icf_run_read(struct look *l, struct block *b, uint64_t va, uint64_t end)
{
	/* In a huge image, words in larger units could lead once around the address space.  Words
	 * of two bytes reach only code that is near, whatever they are. */
	if (l->size == 2 || l->job->span >= (uint64_t)1 << 56) {
		for (size_t k = 0; k < l->probe.len; k++)
			l->probe.data[k].side = SIDE_ON;
		b->on = (struct range){ INT64_MIN, INT64_MAX };
		b->back = (struct range){ 1, 0 };
		return l->size == 2   ? read_all(l, b, va, end, 2)
		       : l->size == 4 ? read_all(l, b, va, end, 4)
				      : read_all(l, b, va, end, 8);
	}
	end = end - va > NEAR ? va + NEAR : end;
	find_reach(l, va, end, b);
	return l->size == 4 ? read_near(l, b, va, end, 4) : read_near(l, b, va, end, 8);
}
