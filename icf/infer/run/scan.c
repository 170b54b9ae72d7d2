/* scan.c: finds, in one pass, the words of a section that lead to entries of functions, in all
 * shapes.
 *
 * Words are read in blocks, at any byte, except those that lead into no code (read.c).  The targets
 * of a word in many shapes differ by only a few bytes, so one window of the bits of `entry` answers
 * for all of them; this is a probe.  Words that lead nowhere near an entry in any unit are dropped
 * before all probes.  Words that lead back into the code and words that lead on into it have
 * different probes.  Cost: linear in the bytes; and for each remaining word, a few operations
 * without branches for each probe of its side. */
#include "elfrw/base/rbuf.h"
#include "icf/infer/run/state.h"
#include "icf/program/unit.h"

#define WINDOW 56 /* bits in a load of 8 bytes, at any bit offset */
#define FOLD   64 /* words of bits: one for each 16 bytes of 64 KiB */

/* WINDOW bits of B from the place VA on. */
static uint64_t window(const struct icf_bits *b, uint64_t va)
{
	uint64_t off = va - b->lo;
	return elfrw_get64(b->bits + (off >> 3)) >> (off & 7) & (((uint64_t)1 << WINDOW) - 1);
}

static bool add_kind(struct look *l, const struct shape *sh, int away)
{
	struct kind *k = VEC_PUSH(&l->kind);
	if (!k)
		return false;
	k->sh = *sh;
	k->sh.away = away;
	return true;
}

/* Adds shape SH, and one that counts from OTHER bytes further (0: none). */
static bool add_probe(struct look *l, const struct shape *sh, unsigned other)
{
	size_t first = l->kind.len;
	if (!add_kind(l, sh, 0) || (other && !add_kind(l, sh, (int)other)))
		return false;
	bool believed = icf_run_kind(l->job, &l->kind.data[first]);
	if (other)
		believed |= icf_run_kind(l->job, &l->kind.data[first + 1]);
	if (!believed)
		return true;
	struct probe *p = VEC_PUSH(&l->probe);
	if (p)
		*p = (struct probe){ .sh = *sh,
				     .want = { 1 | (other ? (uint64_t)1 << other : 0) },
				     .kind = (uint32_t)first };
	return p != NULL;
}

/* Adds words that count from their record's start or end, or from their own. */
static bool add_records(struct look *l, struct shape sh)
{
	uint32_t first = (uint32_t)l->kind.len;
	for (int away = -MAX_AWAY; away <= MAX_AWAY; away++) {
		if (!add_kind(l, &sh, away))
			return false;
		icf_run_kind(l->job, &l->kind.data[l->kind.len - 1]);
	}
	sh.away = -MAX_AWAY;
	struct probe *p = VEC_PUSH(&l->probe);
	const uint64_t all = ((uint64_t)1 << WINDOW) - 1;
	if (p)
		*p = (struct probe){
			.sh = sh,
			.want = { all, all, ((uint64_t)1 << (2 * MAX_AWAY + 1 - 2 * WINDOW)) - 1 },
			.record = true,
			.kind = first
		};
	return p != NULL;
}

/* Adds words in units of 1 << SH.shift bytes, counted from their places, from the named place
 * before them, and from addresses that the program has otherwise. */
static bool add_unit(struct look *l, struct shape sh)
{
	sh.base = FROM_PLACE;
	if (sh.size > 2 && !sh.shift ? !add_records(l, sh) : !add_probe(l, &sh, sh.size))
		return false;
	sh.base = FROM_NAME;
	if (!add_probe(l, &sh, 8))
		return false;
	sh.base = FROM_FIXED;
	for (unsigned f = 0; f < l->job->n_fixed; f++) {
		sh.fixed = l->job->fixed[f];
		if (!add_probe(l, &sh, 0))
			return false;
	}
	return true;
}

/* Two-byte words in larger units are not believed. */
static bool add_probes(struct look *l)
{
	struct shape sh = { .size = (uint8_t)l->size, .sign = true };
	bool ok = true;
	if (l->size == 2) {
		ok = add_unit(l, sh);
		sh.sign = false;
		return ok && add_unit(l, sh);
	}
	for (; sh.shift <= MAX_SHIFT && ok; sh.shift++)
		ok = add_unit(l, sh);
	return ok;
}

/* Can a two-byte word in L's section, counted as in SH, lead into the code at all? */
static bool reaches(const struct look *l, const struct shape *sh)
{
	uint64_t from = l->sec->hdr.sh_addr, to = from + l->sec->hdr.sh_size,
		 far = sh->sign ? 0x8000 : 0xffff;
	if (sh->base == FROM_FIXED && l->job->hi - l->job->lo > 0x10000)
		return false;
	if (sh->base == FROM_FIXED)
		from = to = sh->fixed;
	return from <= l->job->hi + far && to + far >= l->job->lo;
}

/* Moves L on, to the last place up to VA that something refers to. */
static __attribute__((noinline)) void find_name(struct look *l, uint64_t va)
{
	const struct icf_bits *named = &l->job->map->named;
	while (l->seen < va) {
		uint64_t from = l->seen + 1, n = WINDOW;
		if (from - named->lo < named->hi - named->lo && named->hi - from > 64) {
			uint64_t m = window(named, from);
			if (m) {
				/* Up to VA, and what follows up to the next one. */
				uint64_t upto = va - l->seen < WINDOW ? va - l->seen : WINDOW;
				uint64_t seen = m & (((uint64_t)1 << upto) - 1), on = m ^ seen;
				if (seen)
					l->name = from + 63 - (unsigned)__builtin_clzll(seen);
				n = on ? (unsigned)__builtin_ctzll(on) : WINDOW;
			}
		} else {
			n = 1;
			if (icf_bit(named, from))
				l->name = from;
		}
		l->seen += n;
	}
}

/* The last place up to VA that something refers to, or the section's start.  VA ascends. */
static inline uint64_t name_up_to(struct look *l, uint64_t va)
{
	if (l->seen < va)
		find_name(l, va);
	return l->name;
}

/* Stores at HIT the ascending indices of B's words that lead near an entry.  No branch depends on
 * the words, since it would mostly be mispredicted.  The table for the test fits into a cache. */
static unsigned find_near(const struct look *l, const struct block *b, const struct probe *p,
			  uint32_t hit[BLOCK + 1])
{
	const uint8_t *near = l->job->near;
	const uint64_t *base = p->sh.base == FROM_NAME ? b->name : b->va;
	const uint64_t own = p->sh.base == FROM_FIXED ? 0 : UINT64_MAX,
		       plus = (p->sh.base == FROM_FIXED ? p->sh.fixed
							: (uint64_t)(int64_t)p->sh.away) -
			      l->job->entry.lo,
		       mask = p->sh.sign ? UINT64_MAX : 0xffff;
	/* The blocks of 16 bytes that the window touches. */
	const unsigned some = p->record ? (1u << (2 * MAX_AWAY / 16 + 1)) - 1 : 1;
	/* The last window begins at the code's end. */
	const uint64_t end = l->job->hi - l->job->entry.lo;
	unsigned found = 0;
	for (unsigned i = 0; i < b->n; i++) {
		uint64_t off = (base[i] & own) + plus + ((b->word[i] & mask) << p->sh.shift);
		unsigned in = off < end;
		off = in ? off : 0;
		hit[found] = i;
		found += in & ((elfrw_get16(near + (off >> 7)) >> (off >> 4 & 7) & some) != 0);
	}
	return found;
}

/* Tests word I of B in all shapes of P. */
static struct elfrw_err *take_word(struct look *l, const struct block *b, const struct probe *p,
				   unsigned i)
{
	uint64_t base = p->sh.base == FROM_FIXED  ? p->sh.fixed
			: p->sh.base == FROM_NAME ? b->name[i]
						  : b->va[i];
	uint64_t to = base + icf_run_word(l->sec, b->va[i], &p->sh) + (uint64_t)(int64_t)p->sh.away;
	bool asked = false;
	for (unsigned w = 0; w < (p->record ? 3 : 1); w++) {
		uint64_t m = window(&l->job->entry, to + w * WINDOW) & p->want[w];
		if (m && !asked && icf_run_is_known(l->job, b->va[i], l->size))
			return NULL;
		asked |= m != 0;
		for (; m; m &= m - 1) {
			unsigned bit = w * WINDOW + (unsigned)__builtin_ctzll(m);
			struct kind *k = &l->kind.data[p->kind + (p->record ? bit : bit != 0)];
			struct hit *h = VEC_PUSH(&k->hit);
			if (!h)
				return &elfrw_err_nomem;
			*h = (struct hit){ b->va[i],
					   p->sh.base == FROM_FIXED
						   ? base
						   : base + (uint64_t)(int64_t)k->sh.away,
					   to + bit };
		}
	}
	return NULL;
}

/* Drops the words that lead too far in units of 1 << SHIFT bytes; they do so in larger units,
 * too. */
static void drop_far(const struct look *l, struct block *b, unsigned shift)
{
	uint64_t span = l->job->span;
	unsigned n = 0;
	if (span >= (uint64_t)1 << 56)
		return;
	for (unsigned i = 0; i < b->n; i++) {
		b->va[n] = b->va[i];
		b->word[n] = b->word[i];
		b->name[n] = b->name[i];
		n += (b->word[i] << shift) + span < 2 * span;
	}
	b->n = n;
}

static inline unsigned on_page(const struct run_job *job, uint64_t at)
{
	uint64_t i = at >> PAGE;
	return job->page[i < job->n_page ? i : job->n_page];
}

/* Does the word W, counted from AT, lead near an entry in any unit?  AT is a distance from the
 * first byte of `entry`. */
static inline unsigned any_unit(const struct run_job *job, uint64_t at, uint64_t w)
{
	_Static_assert(MAX_SHIFT == 4, "five units");
	return on_page(job, at + w) | on_page(job, at + (w << 1)) | on_page(job, at + (w << 2)) |
	       on_page(job, at + (w << 3)) | on_page(job, at + (w << 4));
}

static inline void keep_word(struct block *b, unsigned *n, unsigned i, bool keep)
{
	b->va[*n] = b->va[i];
	b->word[*n] = b->word[i];
	b->name[*n] = b->name[i];
	*n += keep;
}

/* Drops words of 4 or 8 bytes that lead to no page with an entry, in no shape.  In most code that
 * is not understood, few pages have one. */
static void sift_pages(const struct run_job *job, struct block *b)
{
	const struct run_job own = *job; /* stays in registers */
	const uint64_t lo = own.entry.lo;
	unsigned n = 0;
	for (unsigned i = 0; i < b->n; i++) {
		uint64_t w = b->word[i];
		unsigned any =
			any_unit(&own, b->va[i] - lo, w) | any_unit(&own, b->name[i] - lo, w);
		for (unsigned f = 0; f < own.n_fixed; f++)
			any |= any_unit(&own, own.fixed[f] - lo, w);
		keep_word(b, &n, i, any);
	}
	b->n = n;
}

/* Adds to FOLD the blocks with entries that two-byte words reach, counted from the places FROM to
 * TO. */
static void fold_near(const struct run_job *job, uint64_t from, uint64_t to, uint64_t fold[FOLD])
{
	uint64_t lo = job->entry.lo, end = job->hi - lo;
	from = from > lo + 0x8000 ? (from - 0x8000 - lo) >> 10 : 0;
	to = to + 0xffff > lo ? (to + 0xffff - lo) >> 10 : 0;
	to = to < end >> 10 ? to : end >> 10;
	for (; from <= to; from++)
		fold[from % FOLD] |= elfrw_get64(job->near + 8 * from);
}

/* Drops two-byte words that cannot lead near an entry: all shapes mean the same address, but for a
 * multiple of 64 KiB. */
static void sift_short(const struct run_job *job, struct block *b)
{
	const uint64_t lo = job->entry.lo;
	uint64_t fold[FOLD] = { 0 };
	unsigned n = 0;
	if (!b->n)
		return;
	fold_near(job, b->va[0], b->va[b->n - 1], fold);
	/* All other names lie between these places. */
	fold_near(job, b->name[0], b->name[0], fold);
	for (unsigned i = 0; i < b->n; i++) {
		uint64_t at = b->va[i] + b->word[i] - lo, at_name = b->name[i] + b->word[i] - lo;
		uint64_t any = fold[at >> 10 & (FOLD - 1)] >> (at >> 4 & 63) |
			       fold[at_name >> 10 & (FOLD - 1)] >> (at_name >> 4 & 63);
		keep_word(b, &n, i, any & 1);
	}
	b->n = n;
}

/* Drops words that no probe would find. */
static void sift(const struct look *l, struct block *b)
{
	if (l->size > 2 && l->job->n_page)
		sift_pages(l->job, b);
	if (l->size == 2 && l->job->hi - l->job->lo > 0x10000)
		sift_short(l->job, b);
}

/* Tries the probes for words of SIDE on B. */
static struct elfrw_err *probe_side(struct look *l, struct block *b, enum side side)
{
	uint32_t hit[BLOCK + 1];
	unsigned shift = 0;
	for (size_t k = 0; k < l->probe.len && b->n; k++) {
		const struct probe *p = &l->probe.data[k];
		if (p->side != side || (l->size == 2 && !reaches(l, &p->sh)))
			continue;
		if (p->sh.shift != shift)
			drop_far(l, b, p->sh.shift);
		shift = p->sh.shift;
		unsigned n = find_near(l, b, p, hit);
		for (unsigned i = 0; i < n; i++)
			ELFRW_TRY(take_word(l, b, p, hit[i]));
	}
	return NULL;
}

static struct elfrw_err *probe_block(struct look *l, struct block *b)
{
	struct block back;
	unsigned n = 0;
	for (unsigned i = 0; i < b->n; i++)
		b->name[i] = name_up_to(l, b->va[i]);
	sift(l, b);
	back.n = 0;
	for (unsigned i = 0; i < b->n; i++) {
		back.va[back.n] = b->va[i];
		back.word[back.n] = b->word[i];
		back.name[back.n] = b->name[i];
		back.n += icf_run_in(&b->back, b->word[i]);
		keep_word(b, &n, i, icf_run_in(&b->on, b->word[i]));
	}
	b->n = n;
	ELFRW_TRY(probe_side(l, &back, SIDE_BACK));
	return probe_side(l, b, SIDE_ON);
}

/* Is there an entry from FROM to TO? */
static bool has_entry(const struct run_job *job, uint64_t from, uint64_t to)
{
	from = from > job->lo && from <= job->hi ? from : job->lo;
	to = to < job->hi ? to : job->hi;
	for (uint64_t va = from; va < to + 16; va += 128)
		if (job->near[(va - job->entry.lo) >> 7])
			return true;
	return false;
}

/* Can two-byte words, in the BLOCK bytes from VA on, lead to an entry, counted from their places or
 * from named places? */
static bool is_worth(struct look *l, uint64_t va)
{
	const uint64_t back = 0x8000, on = 0x10000 + 2 * sizeof va;
	uint64_t name = name_up_to(l, va);
	return has_entry(l->job, va - back, va + BLOCK + on) ||
	       (name < va && has_entry(l->job, name - back, name + on));
}

static void judge(struct look *l, uint64_t upto)
{
	for (size_t k = 0; k < l->kind.len; k++)
		if (l->kind.data[k].hit.len)
			icf_run_judge(l, &l->kind.data[k], upto);
}

/* Searches the places from VA up to END.  FAR: skips places without entries nearby. */
static struct elfrw_err *scan_places(struct look *l, struct block *b, uint64_t va, uint64_t end,
				     bool far)
{
	while (va < end) {
		uint64_t stop = far && end - va > BLOCK ? va + BLOCK : end;
		if (far && !is_worth(l, va)) {
			va = stop;
			continue;
		}
		va = icf_run_read(l, b, va, stop);
		ELFRW_TRY(probe_block(l, b));
		judge(l, va);
	}
	judge(l, UINT64_MAX);
	for (size_t k = 0; k < l->kind.len; k++)
		l->kind.data[k].hit.len = l->kind.data[k].next = 0;
	return NULL;
}

static struct elfrw_err *scan_section(struct look *l, struct block *b)
{
	uint64_t va = l->sec->hdr.sh_addr, end = va + l->sec->hdr.sh_size;
	const struct run_job *job = l->job;
	bool far = l->size == 2 && job->hi - job->lo > 0x10000;
	if (l->sec->hdr.sh_size < l->size)
		return NULL;
	l->name = l->seen = va;
	l->start = l->end = 0;
	end -= l->size - 1;
	/* A two-byte word, or the named place before it, reaches the code only from nearby. */
	if (far && va + 0x18000 < job->lo)
		va = job->lo - 0x18000;
	if (far && end > job->hi + 0x18000)
		end = job->hi + 0x18000;
	return scan_places(l, b, va, end, far);
}

struct elfrw_err *icf_run_scan(const struct run_job *job, const struct run_part *part)
{
	struct look l = { .job = job, .size = part->size };
	struct block b;
	struct elfrw_err *err = add_probes(&l) ? NULL : &elfrw_err_nomem;
	for (uint32_t i = 0; i < part->n && !err; i++) {
		l.sec = &job->sec.data[part->first + i];
		err = scan_section(&l, &b);
	}
	for (size_t k = 0; k < l.kind.len; k++) {
		VEC_FREE(&l.kind.data[k].hit);
		free(l.kind.data[k].told);
	}
	VEC_FREE(&l.kind);
	VEC_FREE(&l.probe);
	return err;
}
