/* judge.c: do words that lead to entries of functions form a table, or lead there by chance?
 *
 * Cost: a few operations for each hit.  Tables are searched only at steps at which another hit of
 * the same shape follows. */
#include "elfrw/base/rbuf.h"
#include "icf/infer/run/state.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define MAX_DISTINCT 32
#define MAX_OBJECT   65536 /* most bytes from a word to the end of its object */
#define LONE         256   /* bytes within which three lone words lie */
#define LONG         1024  /* bytes of a run that is not looked at again */

bool icf_run_is_known(const struct run_job *job, uint64_t va, unsigned size)
{
	return icf_bit(&job->known, va) || icf_bit(&job->known, va + size - 1) ||
	       icf_bit(&job->known, va + size / 2);
}

static void pin_at(const struct run_job *job, uint64_t va)
{
	uint32_t i = va - job->lo < job->hi - job->lo ? icf_unit_at(job->prog, va) : ICF_NONE;
	if (i != ICF_NONE)
		__atomic_fetch_or(&job->prog->unit.data[i].flags,
				  (__typeof__(job->prog->unit.data[i].flags))ICF_UNIT_PINNED,
				  __ATOMIC_RELAXED);
}

/* The object that VA lies in: *START, and its end, at most MAX_OBJECT bytes behind VA.  Questions
 * come in order, many of them about one object, so all of them together look at each byte a few
 * times. */
static uint64_t object_of(struct look *l, uint64_t va, uint64_t *start)
{
	if (va < l->start || va >= l->end) {
		uint64_t first = l->sec->hdr.sh_addr,
			 floor = va >= l->end && l->end > first ? l->end - 1 : first;
		l->start = va + 1;
		if (!icf_last_named(l->job->map, floor + 1, &l->start))
			l->start = floor > first ? l->end : first;
		l->end = icf_next_named(l->job->prog, l->job->map, va,
					first + l->sec->hdr.sh_size - va);
	}
	*start = l->start;
	return l->end - va > MAX_OBJECT ? va + MAX_OBJECT : l->end;
}

/* A table: words at equal steps. */
struct run {
	uint64_t first, last; /* places */
	unsigned step, n;     /* different functions in a row */
};

/* Counted as hit H is, does the word at VA allow this to be a table?  It does if it leads to no
 * function, or to named data. */
static bool is_neutral(const struct look *l, const struct shape *sh, const struct hit *h,
		       uint64_t va)
{
	uint64_t w = icf_run_word(l->sec, va, sh);
	if (w == 0)
		return true;
	uint64_t to = w + (sh->base == FROM_PLACE ? va + (uint64_t)(int64_t)sh->away : h->base);
	return sh->base != FROM_FIXED && icf_bit(&l->job->map->named, to);
}

/* The run with STEP that begins at hit H.  A run that counts from a named place ends at END, the
 * next named place. */
static struct run run_from(const struct look *l, const struct shape *sh, const struct hit *h,
			   uint64_t end, unsigned step)
{
	uint64_t seen[MAX_DISTINCT]; /* r.n of them */
	struct run r = { h->va, h->va, step, 1 };
	unsigned gap = 0;
	seen[0] = h->to;
	for (uint64_t va = h->va; end - va >= step + (uint64_t)sh->size && gap <= MAX_GAP;) {
		va += step;
		uint64_t w = icf_run_word(l->sec, va, sh),
			 to = w +
			      (sh->base == FROM_PLACE ? va + (uint64_t)(int64_t)sh->away : h->base);
		if (w && icf_bit(&l->job->entry, to) && !icf_run_is_known(l->job, va, sh->size)) {
			/* The same number again and again is a single chance. */
			unsigned k = 0;
			while (k < r.n && seen[k] != to)
				k++;
			if (k == r.n && r.n < MAX_DISTINCT)
				seen[r.n++] = to;
			r.last = va;
			gap = 0;
		} else if (!w || is_neutral(l, sh, h, va))
			gap++;
		else
			break;
	}
	return r;
}

/* Does the object of hit H hold nothing but words of this run, in their column? */
static bool fills_object(struct look *l, const struct shape *sh, const struct hit *h,
			 const struct run *r)
{
	uint64_t start, end = object_of(l, h->va, &start);
	/* What counts from a name is in the name's object, however long. */
	if (r->first < start || (r->last >= end && sh->base != FROM_NAME))
		return false;
	for (uint64_t va = r->first; va >= start + r->step;) {
		va -= r->step;
		if (!is_neutral(l, sh, h, va))
			return false;
	}
	for (uint64_t va = r->last + r->step; va <= end && end - va >= sh->size; va += r->step)
		if (!is_neutral(l, sh, h, va))
			return false;
	return true;
}

/* How many functions in a row cannot be chance; ALONE: the same in an object that holds nothing
 * else.  The shorter the words and the coarser their units, the more numbers lead to some function.
 * The start of the code is near as many numbers as any place can be.  No relocation divides, so in
 * coarser units an assembler or linker can write only differences inside of the code.  Two-byte
 * words in coarser units are not believed, nor is any word in coarser units that counts from the
 * start of the code.  For words that count from there the whole object must consist of such words;
 * a large file needs many. */
static unsigned enough(const struct run_job *job, const struct shape *sh, bool alone)
{
	bool near = sh->base == FROM_PLACE && (sh->away == 0 || sh->away == sh->size);
	if (sh->size == 2 && sh->shift)
		return MAX_DISTINCT + 1;
	/* The distance from data back to code is large, and few numbers are. */
	bool back = sh->base == FROM_FIXED && sh->fixed >= job->hi;
	if (back && sh->size > 2)
		return (alone ? 3 : 5) + (sh->shift ? 3 : 0);
	if (sh->base == FROM_FIXED)
		return !alone || sh->shift    ? MAX_DISTINCT + 1
		       : job->bytes > 1 << 20 ? 16
		       : sh->size == 2        ? 8
					      : 4;
	if (sh->base == FROM_NAME)
		return sh->size == 2 ? alone ? 4 : 6
		       : alone       ? sh->shift ? 3 : 2
		       : sh->shift   ? 6
				     : 4;
	if (!near)
		return alone ? 5 : 6;
	return (alone ? 2 : 3) + (sh->shift ? 5 : 0) + (sh->size == 2 ? 1 : 0) +
	       (job->bytes * job->chance > 1 ? 3 : 0);
}

/* Pins the targets of the run's words.  Words behind and between runs that lead into a function
 * count as a second entry. */
static void pin_run(const struct look *l, const struct shape *sh, const struct hit *h,
		    const struct run *r)
{
	const struct elfrw_section *s = l->sec;
	uint64_t end = s->hdr.sh_addr + s->hdr.sh_size;
	uint64_t first = r->first - s->hdr.sh_addr >= r->step ? r->first - r->step : r->first;
	for (uint64_t va = first; va <= r->last + r->step && va <= end && end - va >= sh->size;
	     va += r->step) {
		uint64_t w = icf_run_word(s, va, sh);
		if (w)
			pin_at(l->job,
			       w + (sh->base == FROM_PLACE ? va + (uint64_t)(int64_t)sh->away
							   : h->base));
	}
}

bool icf_run_kind(const struct run_job *job, struct kind *k)
{
	const struct shape *sh = &k->sh;
	bool near = sh->base == FROM_PLACE && (sh->away == 0 || sh->away == sh->size);
	k->enough = enough(job, sh, false);
	k->alone = enough(job, sh, true);
	k->lone = near && sh->size > 2 && !sh->shift;
	for (int step = sh->size; step <= MAX_STEP; step++)
		/* A record's start or end is not in another record. */
		if (sh->base != FROM_PLACE || (sh->away > -step && sh->away <= step))
			k->step |= (uint64_t)1 << (step - 1);
	return k->lone || k->enough <= MAX_DISTINCT || k->alone <= MAX_DISTINCT;
}

/* The steps at which a table can begin with hit I of K: another hit follows at that step, and none
 * precedes.  In the form of `run_job`. */
static uint64_t steps_from(const struct run_job *job, const struct kind *k, size_t i)
{
	const struct hit *h = k->hit.data;
	uint64_t next = 0, before = 0;
	for (size_t j = i + 1; j < k->hit.len && h[j].va - h[i].va <= MAX_REACH; j++) {
		next |= job->step[h[j].va - h[i].va] & k->step;
		if (next == k->step)
			break;
	}
	for (size_t j = i; next && j > 0 && h[i].va - h[j - 1].va < MAX_STEP; j--)
		before |= (uint64_t)1 << (h[i].va - h[j - 1].va - 1);
	return next & ~before;
}

/* Of the STEPS from hit H of K, those at which its table can begin there, if only whole objects of
 * K are believed: before it, there are zeros, or the object begins.  Where many numbers are small,
 * this is seldom so. */
static uint64_t steps_at_start(struct look *l, const struct kind *k, const struct hit *h,
			       uint64_t steps)
{
	uint64_t start, ret = 0;
	if (!steps || k->sh.base != FROM_FIXED || k->enough <= MAX_DISTINCT)
		return steps;
	object_of(l, h->va, &start);
	for (; steps; steps &= steps - 1) {
		const unsigned step = (unsigned)__builtin_ctzll(steps) + 1;
		if (h->va - start < step || !icf_run_word(l->sec, h->va - step, &k->sh))
			ret |= steps & -steps;
	}
	return ret;
}

/* What is known of the last long run with STEP in the column of VA; NULL: there was none. */
static struct told *told_of(const struct kind *k, unsigned step, uint64_t va)
{
	struct told *t = k->told ? &k->told[step * (step - 1) / 2 + va % step] : NULL;
	return t && va >= t->first && va <= t->last ? t : NULL;
}

/* Keeps what was found of run R of K, if it is long.  Without memory nothing is kept. */
static void tell(struct kind *k, const struct run *r, uint64_t object, bool all)
{
	if (r->last - r->first < LONG)
		return;
	if (!k->told)
		k->told = calloc(MAX_STEP * (MAX_STEP + 1) / 2, sizeof *k->told);
	if (k->told)
		k->told[r->step * (r->step - 1) / 2 + r->first % r->step] =
			(struct told){ r->first, r->last, object, all };
}

/* Judges the run with STEP that begins at H, a hit of K; it ends before END.
 *
 * Where zeros lie between words, each word may begin a run of the same words up to the same end.
 * Such a run has no more functions than the one that began before it, and the words of that one are
 * in its column; so it can be believed only where it alone fills another object. */
static void judge_run(struct look *l, struct kind *k, const struct hit *h, uint64_t end,
		      unsigned step)
{
	uint64_t start, limit;
	struct told *t = told_of(k, step, h->va);
	if (t) {
		if (t->all)
			return;
		limit = object_of(l, h->va, &start);
		if (t->object == start || t->last >= limit)
			return;
		t->object = start;
	}
	const struct run r = run_from(l, &k->sh, h, end, step);
	const bool many = r.n >= k->enough, few = r.n < k->alone,
		   good = many || (!few && fills_object(l, &k->sh, h, &r));
	if (good)
		pin_run(l, &k->sh, h, &r);
	if (t || r.last - r.first < LONG)
		return;
	limit = object_of(l, h->va, &start);
	tell(k, &r, k->sh.base == FROM_NAME || r.last < limit ? start : NOWHERE, good || few);
}

static void judge_hit(struct look *l, struct kind *k, size_t i)
{
	const struct hit *h = &k->hit.data[i];
	uint64_t steps = steps_from(l->job, k, i), start,
		 end = l->sec->hdr.sh_addr + l->sec->hdr.sh_size;
	if (steps && k->sh.base == FROM_NAME) {
		object_of(l, h->va, &start);
		end = l->end;
	}
	steps = steps_at_start(l, k, h, steps);
	for (; steps; steps &= steps - 1)
		judge_run(l, k, h, end, (unsigned)__builtin_ctzll(steps) + 1);
}

/* Judges lone words that lead from their place or end to an entry.  Each counts, at any byte, if at
 * most a twentieth of one is expected by chance in all the data.  Otherwise aligned words count if
 * that holds for them.  Otherwise three words close together count, unless the data is huge. */
static void judge_lone(const struct run_job *job, const struct kind *k, size_t i)
{
	double expected = job->lone ? 0 : job->bytes * job->chance;
	bool any = expected < 0.05, aligned = expected < 0.2;
	const struct hit *h = &k->hit.data[i];
	if (any || (aligned && (h->va & 3) == 0))
		pin_at(job, h->to);
	if (i < 2 || expected > 8 || h->va - h[-2].va >= LONE)
		return;
	for (int j = -2; j <= 0; j++)
		pin_at(job, h[j].to);
}

void icf_run_judge(struct look *l, struct kind *k, uint64_t upto)
{
	for (; k->next < k->hit.len && k->hit.data[k->next].va + MAX_REACH < upto; k->next++) {
		judge_hit(l, k, k->next);
		if (k->lone)
			judge_lone(l->job, k, k->next);
	}
	/* Later words may be close to the last ones that were judged. */
	uint64_t from = k->next < k->hit.len ? k->hit.data[k->next].va : upto;
	size_t drop = 0;
	while (drop < k->next && from - k->hit.data[drop].va >= LONE)
		drop++;
	if (!drop)
		return;
	k->hit.len -= drop;
	k->next -= drop;
	memmove(k->hit.data, k->hit.data + drop, k->hit.len * sizeof *k->hit.data);
}
