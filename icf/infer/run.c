/* run.c: distances to functions in data, whatever their shape.
 *
 * A distance in data is W bytes long (2, 4 or 8) at any byte offset, counted in units of 1, 2, 4, 8
 * or 16 bytes, from
 *   - its own place, its own end (`.long f - . - 4`; a `call` kept as data), or any place within 64
 *     bytes: its record's start or end,
 *   - the last place before it that something names (a table, a vtable's address point) or 8 bytes
 *     behind (a relative vtable's symbol),
 *   - an address that the program has otherwise: the file's first byte, an executable section's
 *     start, the global offset table.
 * Nothing tells such words from numbers but what stands beside them.  A word that, counted from
 * itself or from its end, leads to the very entry of a function far away is so rare among numbers
 * that each one is taken for a distance, as long as no such number is to be expected in a file with
 * that much data and that many functions.  The other shapes are only believed in company: at equal
 * steps of at most 64 bytes, words of the same shape lead to different functions, and none in
 * between leads elsewhere (zeros and distances to named data may: entries without a function).  How
 * many it takes depends on how easily numbers do it, too; an object all of whose words do it needs
 * fewer.
 *
 * What is found is only kept where it is: the functions are pinned, the words are never written.  A
 * lone distance from anything else than its own place is not seen here; the code that adds it is,
 * when it calls or jumps to the sum (word.c). Cost: one pass over the data for each word size, and
 * one for each shape over the words that are near enough to zero. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/parts.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define MAX_STEP     64 /* bytes from one word of a table to the next */
#define MAX_AWAY     64 /* bytes from a word to the start or end of its record */
#define MAX_GAP      8  /* entries in a row without a function */
#define MAX_DISTINCT 32
#define MAX_OBJECT   65536 /* bytes behind a word in which its object ends */
#define MAX_FIXED    32    /* addresses that words of any section are counted from */

enum base {
	FROM_PLACE, /* plus `away` */
	FROM_NAME,  /* plus `away` */
	FROM_FIXED,
};

struct shape {
	uint8_t size, shift, base;
	bool sign; /* the word may be negative */
	int away;
	uint64_t fixed;
};

struct run_job {
	struct icf_program *prog;
	const struct icf_data_map *map;
	struct icf_bits entry; /* places in code that are the entries of functions */
	uint8_t *near; /* owned; a bit for each 16 bytes of code from `lo` on: there is an entry
			  among them */
	struct icf_bits known; /* bytes of data that are explained */
	uint64_t lo, hi;       /* of the code */
	uint64_t span;         /* nothing is further than this from anything else */
	uint64_t fixed[MAX_FIXED];
	unsigned n_fixed;
	double chance; /* that a random word of 4 bytes, counted from anywhere, leads to an entry */
	double bytes;  /* of data */
	bool lone;     /* each lone word is believed */
	VEC(struct elfrw_section) sec; /* with data; borrowed but for the array */
};

/* A word that leads to an entry. */
struct hit {
	uint64_t va, base, to;
};

/* One section, one word size. */
struct look {
	const struct run_job *job;
	const struct elfrw_section *sec;
	struct icf_places word; /* the places of words that are not zero and near enough to it */
	struct icf_places name; /* for each of them: the last place up to it that something names */
	VEC(struct hit) hit;    /* of one shape, by place */
	uint64_t start, end; /* of the object that was asked for last: from a place that something
				names to the next one */
};

bool icf_holds_data(const struct elfrw_section *s)
{
	static const char *const other[] = { ".eh_frame", ".gcc_except_table", ".interp", ".got" };
	if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) || !s->data)
		return false;
	switch (s->hdr.sh_type) {
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_REL:
	case SHT_RELR:
	case SHT_HASH:
	case SHT_GNU_HASH:
	case SHT_DYNSYM:
	case SHT_DYNAMIC:
	case SHT_GNU_verdef:
	case SHT_GNU_verneed:
	case SHT_GNU_versym:
	case SHT_NOBITS: return false;
	}
	for (size_t i = 0; i < sizeof other / sizeof *other; i++)
		if (strncmp(s->name, other[i], strlen(other[i])) == 0)
			return false;
	return true;
}

static uint64_t word_at(const struct elfrw_section *s, uint64_t va, const struct shape *sh)
{
	const uint8_t *p = s->data + (va - s->hdr.sh_addr);
	if (sh->size == 4)
		return (uint64_t)(int64_t)(int32_t)elfrw_get32(p) << sh->shift;
	if (sh->size == 8)
		return elfrw_get64(p) << sh->shift;
	return (sh->sign ? (uint64_t)(int64_t)(int16_t)elfrw_get16(p) : elfrw_get16(p))
	       << sh->shift;
}

static bool is_known(const struct run_job *job, uint64_t va, unsigned size)
{
	return icf_bit(&job->known, va) || icf_bit(&job->known, va + size - 1) ||
	       icf_bit(&job->known, va + size / 2);
}

/* The last place behind FLOOR, and up to VA, that something names, or NONE. */
static uint64_t last_named(const struct icf_bits *named, uint64_t floor, uint64_t va, uint64_t none)
{
	for (uint64_t p = va; p > floor; p--) {
		while (p > floor + 8 && p - named->lo < named->hi - named->lo &&
		       ((p - named->lo) & 7) == 7 && !named->bits[(p - named->lo) >> 3])
			p -= 8;
		if (icf_bit(named, p))
			return p;
	}
	return none;
}

/* The entries of all functions, those of glued ones and PLT slots, too. */
static bool mark_entries(struct run_job *job)
{
	const struct icf_program *prog = job->prog;
	if (!icf_bits_init(&job->entry, job->lo, job->hi))
		return false;
	for (size_t i = 0; i < prog->unit.len; i++)
		icf_set_bit(&job->entry, prog->unit.data[i].start);
	for (size_t i = 0; i < prog->sym.len; i++)
		if (prog->sym.data[i].type == STT_FUNC || prog->sym.data[i].type == STT_GNU_IFUNC)
			icf_set_bit(&job->entry, prog->sym.data[i].value);
	for (size_t i = 0; i < prog->cfi.fde.len; i++)
		icf_set_bit(&job->entry, prog->cfi.fde.data[i].pc_begin);
	for (size_t e = 0; e < prog->exec.len; e++)
		for (uint64_t va = prog->exec.data[e].start;
		     prog->exec.data[e].linkage && va < prog->exec.data[e].end; va += 16)
			icf_set_bit(&job->entry, va);
	job->near = calloc(((job->hi - job->lo) >> 7) + 1, 1);
	if (!job->near)
		return false;
	uint64_t n = 0;
	for (uint64_t b = 0; b <= (job->hi - job->lo) >> 3; b++) {
		n += (unsigned)__builtin_popcount(job->entry.bits[b]);
		if (job->entry.bits[b])
			job->near[b >> 4] |= (uint8_t)(1u << (b >> 1 & 7));
	}
	job->chance = (double)n / 4294967296.0;
	return true;
}

/* What the dynamic linker fills in, and the words of jump tables. */
static bool mark_known(struct run_job *job)
{
	const struct icf_bits *table = &job->map->table;
	if (!icf_bits_init(&job->known, table->lo, table->hi))
		return false;
	memcpy(job->known.bits, table->bits, ((table->hi - table->lo) >> 3) + 1);
	for (size_t i = 0; i < job->prog->dynreloc.len; i++)
		for (unsigned k = 0; k < 8; k++)
			icf_set_bit(&job->known, job->prog->dynreloc.data[i].place + k);
	return true;
}

/* Does the program get at address VA?  By an instruction that computes it, or by a pointer. */
static bool has_address(const struct icf_program *prog, uint64_t va)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].target == va && (ref[r].flags & ICF_REF_LEA))
				return true;
	}
	for (size_t i = 0; i < prog->dynreloc.len; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE &&
		    prog->dynreloc.data[i].addend == va)
			return true;
	return false;
}

/* Does the program ask the dynamic linker where it was loaded? */
static bool asks_for_image(const struct icf_program *prog)
{
	static const char *const name[] = { "dladdr", "dladdr1", "dl_iterate_phdr", "dlinfo" };
	const struct elfrw_section *s =
		prog->img->dynsym ? &prog->img->section[prog->img->dynsym] : NULL;
	for (uint64_t i = 1; s && s->data && i < s->hdr.sh_size / sizeof(Elf64_Sym); i++) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + i * sizeof sym, sizeof sym);
		const char *is =
			sym.st_shndx == SHN_UNDEF
				? elfrw_image_string(prog->img, s->hdr.sh_link, sym.st_name)
				: NULL;
		for (size_t k = 0; is && k < sizeof name / sizeof *name; k++)
			if (strcmp(is, name[k]) == 0)
				return true;
	}
	return false;
}

static void add_fixed(struct run_job *job, uint64_t va)
{
	for (unsigned i = 0; i < job->n_fixed; i++)
		if (job->fixed[i] == va)
			return;
	if (job->n_fixed < MAX_FIXED)
		job->fixed[job->n_fixed++] = va;
}

static void find_fixed(struct run_job *job)
{
	const struct icf_program *prog = job->prog;
	uint64_t image = UINT64_MAX;
	for (uint32_t p = 0; p < prog->img->n_phdrs; p++)
		if (prog->img->phdr[p].p_type == PT_LOAD && prog->img->phdr[p].p_vaddr < image)
			image = prog->img->phdr[p].p_vaddr;
	if (image != UINT64_MAX && (has_address(prog, image) || asks_for_image(prog)))
		add_fixed(job, image);
	for (size_t e = 0; e < prog->exec.len && e < 8; e++)
		if (!prog->exec.data[e].linkage && has_address(prog, prog->exec.data[e].start))
			add_fixed(job, prog->exec.data[e].start);
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		/* Few numbers lead from the global offset table to a function; who computes its
		 * address may be code that is not understood. */
		if (strncmp(s->name, ".got", 4) == 0)
			add_fixed(job, s->hdr.sh_addr);
	}
}

static void pin_at(const struct run_job *job, uint64_t va)
{
	uint32_t i = va - job->lo < job->hi - job->lo ? icf_unit_at(job->prog, va) : ICF_NONE;
	if (i != ICF_NONE)
		__atomic_fetch_or(&job->prog->unit.data[i].flags,
				  (__typeof__(job->prog->unit.data[i].flags))ICF_UNIT_PINNED,
				  __ATOMIC_RELAXED);
}

/* Can a word of 2 bytes at VA, or a name before it, be near enough to the code?  Where the code is
 * larger than such a word can count, only data beside it. */
static bool is_near(const struct run_job *job, uint64_t va)
{
	return job->hi - job->lo <= 0x10000 || (va + 0x18000 >= job->lo && va < job->hi + 0x18000);
}

/* The object that VA lies in, at *START, and where it ends, MAX_OBJECT bytes behind VA at most.
 * Questions come in order, many of one object, so that all of them together look at each byte a few
 * times. */
static uint64_t object_of(struct look *l, uint64_t va, uint64_t *start)
{
	if (va < l->start || va >= l->end) {
		uint64_t first = l->sec->hdr.sh_addr,
			 floor = va >= l->end && l->end > first ? l->end - 1 : first;
		l->start =
			last_named(&l->job->map->named, floor, va, floor > first ? l->end : first);
		l->end = icf_next_named(l->job->prog, l->job->map, va,
					first + l->sec->hdr.sh_size - va);
	}
	*start = l->start;
	return l->end - va > MAX_OBJECT ? va + MAX_OBJECT : l->end;
}

static struct elfrw_err *find_words(struct look *l, unsigned size)
{
	const struct elfrw_section *s = l->sec;
	uint64_t end = s->hdr.sh_addr + s->hdr.sh_size, span = l->job->span;
	const struct shape sh = { .size = (uint8_t)size, .sign = true };
	uint64_t name = s->hdr.sh_addr, seen = name;
	for (uint64_t va = s->hdr.sh_addr; end - va >= size; va++) {
		uint64_t w = word_at(s, va, &sh);
		if (w == 0 || w + span >= 2 * span || is_known(l->job, va, size) ||
		    (size == 2 && !is_near(l->job, va)))
			continue;
		uint64_t *slot = VEC_PUSH(&l->word.v), *of = VEC_PUSH(&l->name.v);
		if (!slot || !of)
			return &elfrw_err_nomem;
		name = last_named(&l->job->map->named, seen, va, name);
		*slot = seen = va;
		*of = name;
	}
	return NULL;
}

#define BLOCK 256

/* Of words FROM to FROM + N, those that lead near an entry: their indices, ascending, at HIT.  No
 * branch depends on what the words are: that would be foretold wrongly more often than not; and
 * what is asked is small enough for a cache. */
static unsigned scan_block(const struct look *l, const struct shape *sh, size_t from, unsigned n,
			   uint32_t *hit)
{
	const uint8_t *near = l->job->near;
	const uint64_t *word = l->word.v.data + from;
	const uint64_t *base = sh->base == FROM_NAME ? l->name.v.data + from : word;
	uint64_t own = sh->base == FROM_FIXED ? 0 : UINT64_MAX,
		 plus = sh->base == FROM_FIXED ? sh->fixed : (uint64_t)(int64_t)sh->away;
	uint64_t span = l->job->hi - l->job->lo;
	unsigned found = 0;
	plus -= l->job->lo;
	for (unsigned i = 0; i < n; i++) {
		uint64_t off = (base[i] & own) + plus + word_at(l->sec, word[i], sh);
		unsigned in = off < span;
		off = in ? off : 0;
		hit[found] = i;
		found += in & (unsigned)(near[off >> 7] >> (off >> 4 & 7) & 1);
	}
	return found;
}

static struct elfrw_err *find_hits(struct look *l, const struct shape *sh)
{
	l->hit.len = 0;
	for (size_t from = 0; from < l->word.v.len; from += BLOCK) {
		uint32_t at[BLOCK + 1];
		size_t left = l->word.v.len - from;
		unsigned n = scan_block(l, sh, from, left < BLOCK ? (unsigned)left : BLOCK, at);
		for (unsigned k = 0; k < n; k++) {
			uint64_t va = l->word.v.data[from + at[k]], base = sh->fixed;
			if (sh->base != FROM_FIXED)
				base = (sh->base == FROM_NAME ? l->name.v.data[from + at[k]] : va) +
				       (uint64_t)(int64_t)sh->away;
			uint64_t to = base + word_at(l->sec, va, sh);
			if (!icf_bit(&l->job->entry, to))
				continue;
			struct hit *h = VEC_PUSH(&l->hit);
			if (!h)
				return &elfrw_err_nomem;
			*h = (struct hit){ va, base, to };
		}
	}
	return NULL;
}

/* A table: words at equal steps. */
struct run {
	uint64_t first, last; /* places */
	unsigned step, n;     /* different functions in a row */
};

/* Is the word at VA, counted as hit H is, no reason why this should be no table?  No function, or
 * data that has a name. */
static bool is_neutral(const struct look *l, const struct shape *sh, const struct hit *h,
		       uint64_t va)
{
	uint64_t w = word_at(l->sec, va, sh);
	if (w == 0)
		return true;
	uint64_t to = w + (sh->base == FROM_PLACE ? va + (uint64_t)(int64_t)sh->away : h->base);
	return sh->base != FROM_FIXED && icf_bit(&l->job->map->named, to);
}

/* The run with STEP that begins at hit H; what counts from a name ends at END, the next one. */
static struct run run_from(const struct look *l, const struct shape *sh, const struct hit *h,
			   uint64_t end, unsigned step)
{
	uint64_t seen[MAX_DISTINCT] = { h->to };
	struct run r = { h->va, h->va, step, 1 };
	unsigned gap = 0;
	for (uint64_t va = h->va; end - va >= step + (uint64_t)sh->size && gap <= MAX_GAP;) {
		va += step;
		uint64_t w = word_at(l->sec, va, sh),
			 to = w +
			      (sh->base == FROM_PLACE ? va + (uint64_t)(int64_t)sh->away : h->base);
		if (w && icf_bit(&l->job->entry, to) && !is_known(l->job, va, sh->size)) {
			/* One number all over again is one chance. */
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

/* Does the object that hit H lies in hold nothing but words of this run, in their column? */
static bool fills_object(struct look *l, const struct shape *sh, const struct hit *h,
			 const struct run *r)
{
	uint64_t start, end = object_of(l, h->va, &start);
	if (r->first < start || r->last >= end)
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

/* How many functions in a row are no chance; of an object that holds nothing else (ALONE).  The
 * shorter the words, and the coarser their units, the more numbers lead to some function; the start
 * of the code is as near to many numbers as can be.  No relocation divides, so only differences
 * inside of the code have coarser units by an assembler's or linker's doing, and of two bytes none
 * are believed, nor from the start of the code; there the whole object must be such words, and many
 * in a large file. */
static unsigned enough(const struct look *l, const struct shape *sh, bool alone)
{
	bool near = sh->base == FROM_PLACE && (sh->away == 0 || sh->away == sh->size);
	if (sh->size == 2 && sh->shift)
		return MAX_DISTINCT + 1;
	/* From data to code is a long way back, which few numbers are. */
	bool back = sh->base == FROM_FIXED && sh->fixed >= l->job->hi;
	if (back && sh->size > 2)
		return (alone ? 3 : 5) + (sh->shift ? 3 : 0);
	if (sh->base == FROM_FIXED)
		return !alone || sh->shift       ? MAX_DISTINCT + 1
		       : l->job->bytes > 1 << 20 ? 16
		       : sh->size == 2           ? 8
						 : 4;
	if (sh->base == FROM_NAME)
		return sh->size == 2 ? alone ? 4 : 6
		       : alone       ? sh->shift ? 3 : 2
		       : sh->shift   ? 6
				     : 4;
	if (!near)
		return alone ? 5 : 6;
	return (alone ? 2 : 3) + (sh->shift ? 5 : 0) + (sh->size == 2 ? 1 : 0) +
	       (l->job->bytes * l->job->chance > 1 ? 3 : 0);
}

/* Pins all that the run's words lead to, and those behind and between runs that lead into a
 * function, as to a second entry. */
static void pin_run(const struct look *l, const struct shape *sh, const struct hit *h,
		    const struct run *r)
{
	const struct elfrw_section *s = l->sec;
	uint64_t end = s->hdr.sh_addr + s->hdr.sh_size;
	uint64_t first = r->first - s->hdr.sh_addr >= r->step ? r->first - r->step : r->first;
	for (uint64_t va = first; va <= r->last + r->step && va <= end && end - va >= sh->size;
	     va += r->step) {
		uint64_t w = word_at(s, va, sh);
		if (w)
			pin_at(l->job,
			       w + (sh->base == FROM_PLACE ? va + (uint64_t)(int64_t)sh->away
							   : h->base));
	}
}

static void judge_hits(struct look *l, const struct shape *sh)
{
	for (size_t i = 0; i < l->hit.len; i++) {
		const struct hit *h = &l->hit.data[i];
		uint64_t before = 0; /* bit k: there is a hit k bytes before this one */
		for (size_t k = i; k > 0 && h->va - l->hit.data[k - 1].va < 64; k--)
			before |= (uint64_t)1 << (h->va - l->hit.data[k - 1].va);
		uint64_t end = l->sec->hdr.sh_addr + l->sec->hdr.sh_size;
		uint64_t start;
		if (sh->base == FROM_NAME)
			end = object_of(l, h->va, &start);
		for (unsigned step = sh->size; step <= MAX_STEP; step++) {
			if (step < 64 && before >> step & 1)
				continue;
			/* A record's start or end is not in another record. */
			if (sh->base == FROM_PLACE &&
			    (sh->away <= -(int)step || sh->away > (int)step))
				continue;
			struct run r = run_from(l, sh, h, end, step);
			if (r.n >= enough(l, sh, false) ||
			    (r.n >= enough(l, sh, true) && fills_object(l, sh, h, &r)))
				pin_run(l, sh, h, &r);
		}
	}
}

/* Words that lead from their place or end to an entry, alone: each at any byte where a twentieth of
 * one is to be expected of chance in all the data, or less; else those that are aligned, where that
 * holds of them; else three that are close together, unless the data is huge. */
static void judge_lone(const struct look *l)
{
	double expected = l->job->lone ? 0 : l->job->bytes * l->job->chance;
	bool any = expected < 0.05, aligned = expected < 0.2;
	for (size_t i = 0; i < l->hit.len; i++) {
		const struct hit *h = &l->hit.data[i];
		if (any || (aligned && (h->va & 3) == 0))
			pin_at(l->job, h->to);
		if (i < 2 || expected > 8 || h->va - h[-2].va >= 256)
			continue;
		for (int k = -2; k <= 0; k++)
			pin_at(l->job, h[k].to);
	}
}

/* Can a word of this shape lead into the code at all? */
static bool reaches(const struct look *l, const struct shape *sh)
{
	if (sh->size != 2 || sh->shift)
		return sh->size != 2;
	uint64_t from = l->sec->hdr.sh_addr, to = from + l->sec->hdr.sh_size,
		 far = (uint64_t)(sh->sign ? 0x8000 : 0xffff) << sh->shift;
	if (sh->base == FROM_FIXED && l->job->hi - l->job->lo > 0x10000)
		return false;
	if (sh->base == FROM_FIXED)
		from = to = sh->fixed;
	return from <= l->job->hi + far && to + far >= l->job->lo;
}

static struct elfrw_err *try_shape(struct look *l, const struct shape *sh, bool lone)
{
	if (!reaches(l, sh))
		return NULL;
	ELFRW_TRY(find_hits(l, sh));
	judge_hits(l, sh);
	if (lone)
		judge_lone(l);
	return NULL;
}

/* Words in units of 1 << SH.shift bytes, counted from their places, from what is named before them,
 * and from the addresses that the program has otherwise. */
static struct elfrw_err *try_unit(struct look *l, struct shape sh)
{
	for (unsigned sign = sh.size == 2 ? 0 : 1; sign <= 1; sign++) {
		sh.sign = sign;
		sh.base = FROM_PLACE;
		for (unsigned end = 0; end <= sh.size; end += sh.size) {
			sh.away = (int)end;
			ELFRW_TRY(try_shape(l, &sh, sh.size > 2 && !sh.shift));
		}
		sh.base = FROM_NAME;
		for (sh.away = 0; sh.away <= 8; sh.away += 8)
			ELFRW_TRY(try_shape(l, &sh, false));
		sh.base = FROM_FIXED;
		for (unsigned f = 0; f < l->job->n_fixed; f++) {
			sh.fixed = l->job->fixed[f];
			ELFRW_TRY(try_shape(l, &sh, false));
		}
	}
	return NULL;
}

/* A record's start or end.  Only few words lead there from data, and only they are left in the
 * list. */
static struct elfrw_err *try_records(struct look *l, unsigned size)
{
	struct shape sh = { .size = (uint8_t)size, .base = FROM_PLACE, .sign = true };
	size_t n = 0;
	for (size_t i = 0; i < l->word.v.len; i++) {
		uint64_t va = l->word.v.data[i], to = va + word_at(l->sec, va, &sh);
		if (to + MAX_AWAY - l->job->lo < l->job->hi - l->job->lo + 2 * MAX_AWAY)
			l->word.v.data[n++] = va;
	}
	l->word.v.len = n;
	for (sh.away = -MAX_AWAY; sh.away <= MAX_AWAY && size > 2; sh.away++)
		if (sh.away != 0 && sh.away != (int)size)
			ELFRW_TRY(try_shape(l, &sh, false));
	return NULL;
}

/* Forgets the words that lead too far when they count in units of 1 << SHIFT bytes; in larger ones
 * they do so, too. */
static void drop_far(struct look *l, unsigned size, unsigned shift)
{
	const struct shape sh = { .size = (uint8_t)size, .shift = (uint8_t)shift, .sign = true };
	uint64_t span = l->job->span;
	size_t n = 0;
	if (size == 2 || span >= (uint64_t)1 << 56)
		return;
	for (size_t i = 0; i < l->word.v.len; i++) {
		l->word.v.data[n] = l->word.v.data[i];
		l->name.v.data[n] = l->name.v.data[i];
		n += word_at(l->sec, l->word.v.data[i], &sh) + span < 2 * span;
	}
	l->word.v.len = l->name.v.len = n;
}

static struct elfrw_err *try_shapes(struct look *l, unsigned size)
{
	struct shape sh = { .size = (uint8_t)size };
	struct icf_places all = { 0 };
	if (!VEC_APPEND(&all.v, l->word.v.data, l->word.v.len))
		return &elfrw_err_nomem;
	struct elfrw_err *err = NULL;
	for (sh.shift = 0; sh.shift <= 4 && !err; sh.shift++) {
		drop_far(l, size, sh.shift);
		err = try_unit(l, sh);
	}
	VEC_FREE(&l->word.v);
	l->word = all;
	return err ? err : try_records(l, size);
}

static struct elfrw_err *look_at(void *arg, size_t part)
{
	const struct run_job *job = arg;
	unsigned size = 2u << part % 3;
	struct look l = { .job = job, .sec = &job->sec.data[part / 3] };
	struct elfrw_err *err = l.sec->hdr.sh_size < size ? NULL : find_words(&l, size);
	if (!err)
		err = try_shapes(&l, size);
	VEC_FREE(&l.word.v);
	VEC_FREE(&l.name.v);
	VEC_FREE(&l.hit);
	return err;
}

static struct elfrw_err *add_section(struct run_job *job, const struct elfrw_section *s)
{
	struct elfrw_section *slot = VEC_PUSH(&job->sec);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = *s;
	job->bytes += (double)s->hdr.sh_size;
	return NULL;
}

static struct elfrw_err *search(struct run_job *job, unsigned threads)
{
	const struct icf_program *prog = job->prog;
	struct elfrw_err *err = NULL;
	find_fixed(job);
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const Elf64_Shdr *sh = &prog->img->section[i].hdr;
		if ((sh->sh_flags & SHF_ALLOC) && sh->sh_addr + sh->sh_size + 16 > job->span)
			job->span = sh->sh_addr + sh->sh_size + 16;
	}
	if (!mark_entries(job) || !mark_known(job))
		err = &elfrw_err_nomem;
	if (!err)
		err = elfrw_parallel(threads, 3 * job->sec.len, look_at, job);
	icf_bits_deinit(&job->entry);
	free(job->near);
	icf_bits_deinit(&job->known);
	return err;
}

struct elfrw_err *icf_infer_runs(struct icf_program *prog, const struct icf_data_map *map,
				 unsigned threads)
{
	struct run_job job = { .prog = prog,
			       .map = map,
			       .lo = prog->exec.data[0].start,
			       .hi = prog->exec.data[prog->exec.len - 1].end };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 1; i < prog->img->n_sections && !err; i++)
		if (icf_holds_data(&prog->img->section[i]))
			err = add_section(&job, &prog->img->section[i]);
	if (!err)
		err = search(&job, threads);
	VEC_FREE(&job.sec);
	return err;
}

struct elfrw_err *icf_infer_opaque_runs(struct icf_program *prog, unsigned threads)
{
	struct icf_data_map map;
	ELFRW_TRY(icf_data_map_init(prog, &map));
	struct run_job job = { .prog = prog,
			       .map = &map,
			       .lo = prog->exec.data[0].start,
			       .hi = prog->exec.data[prog->exec.len - 1].end,
			       .lone = true };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (u->kind != ICF_UNIT_OPAQUE)
			continue;
		struct elfrw_section s = prog->img->section[prog->exec.data[u->sec].shndx];
		s.hdr.sh_addr = u->start;
		s.hdr.sh_size = u->end - u->start;
		s.data = icf_unit_bytes(prog, u);
		err = add_section(&job, &s);
	}
	if (!err)
		err = search(&job, threads);
	VEC_FREE(&job.sec);
	icf_data_map_deinit(&map);
	return err;
}
