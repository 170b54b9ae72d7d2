/* sum.c: differences of two functions in data, in files with kept relocations.
 *
 * `.long f - g` has no relocation if f and g stand in one section of an object file: the assembler
 * computes it.  Nothing in the linked file distinguishes it from a number.  But its user adds it to
 * the address of g.  So the words of 2, 4 and 8 bytes, in units of 1 to 16 bytes, are examined that
 * a unit refers to in addition to a code address.  If three in a row, or two alone, lead from that
 * address to entries of different functions, these functions and g stay where they are.  The words
 * are never written.  Code that gets the address of g or of the words from elsewhere is not seen.
 *
 * Only an assembler, on request, writes words in units of more than a byte.  But small numbers,
 * times 16, often lead to small functions in a row if a unit refers to hundreds of addresses
 * (LLVM's lists of lambdas).  Such a row is believed if it cannot be chance, given the density of
 * entries among the places that such words can reach.  A unit that multiplies as the words require
 * needs less evidence.
 *
 * Cost: one pass over the references of all units; a few words for each pair of a code address and
 * a data address in one unit; the code of units that seem to have rows of the last kind. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include "icf/infer/parts.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <pthread.h>

#define MAX_CODE                                                                               \
	64 /* addresses of code that are looked at in one unit; of the others, all words count \
	      from them */
#define MAX_WORDS    512 /* of one table */
#define MAX_ZEROS    8   /* in a row */
#define MET          64  /* places that were met in a unit */
#define MAX_DISTINCT 16
#define MAX_CHANCE   (1. / 16) /* of a row: the expected number of rows like it in the unit */
#define MAX_PLAIN    (1. / 4)  /* the same, for words in bytes */
#define MULTIPLIES   (1. / 64) /* factor for the chance if the unit multiplies */

#define RUN 512 /* units that one thread looks at, one after the other */

/* Shared by all threads. */
struct job {
	struct icf_program *prog;
	pthread_mutex_t lock; /* of what follows */
	bool mapped;
	struct icf_data_map map; /* made when the first row asks for it */
};

struct sum {
	struct icf_program *prog;
	struct job *job;
	uint32_t unit;    /* the current unit */
	double pairs;     /* pairs of code and data addresses in it */
	bool traced;      /* its code was examined: */
	unsigned factors; /* bit k: it multiplies by 2^k */
	struct icf_trace t;
};

/* The words at an address. */
struct words {
	uint64_t va, size;
	const uint8_t *data;
};

/* How they count. */
struct way {
	uint64_t from;
	unsigned size, shift;
};

/* Does a relocation explain a byte of [VA, VA + SIZE)? */
static bool explained(const struct icf_program *prog, uint64_t va, unsigned size)
{
	size_t i = LOWER_BOUND(0, prog->dataref.len, mid,
			       prog->dataref.data[mid].place + prog->dataref.data[mid].size <= va);
	if (i < prog->dataref.len && prog->dataref.data[i].place < va + size)
		return true;
	i = icf_first_dynreloc(prog, va > 7 ? va - 7 : 0);
	return i < prog->dynreloc.len && prog->dynreloc.data[i].place < va + size;
}

/* Word K of X; false: there is none. */
static bool read_word(const struct words *x, const struct way *w, unsigned k, uint64_t *ret)
{
	uint64_t off = (uint64_t)k * w->size;
	if (off > x->size || x->size - off < w->size)
		return false;
	unsigned shift = 64 - 8 * w->size;
	*ret = (uint64_t)((int64_t)(elfrw_get_le(x->data + off, w->size) << shift) >> shift)
	       << w->shift;
	return true;
}

static uint32_t entry_at(const struct icf_program *prog, uint64_t va)
{
	uint32_t i = icf_unit_at(prog, va);
	return i != ICF_NONE && prog->unit.data[i].start == va ? i : ICF_NONE;
}

/* The entry that word K of X, which is WORD, leads to. */
static uint32_t leads_to(const struct icf_program *prog, const struct words *x, const struct way *w,
			 unsigned k, uint64_t word)
{
	uint32_t to = word ? entry_at(prog, w->from + word) : ICF_NONE;
	return to == ICF_NONE || explained(prog, x->va + (uint64_t)k * w->size, w->size) ? ICF_NONE
											 : to;
}

/* The number of words of X that lead to entries of functions, with zeros between them; *DISTINCT:
 * the number of different entries. */
static unsigned count(const struct icf_program *prog, const struct way *w, const struct words *x,
		      unsigned *distinct)
{
	uint32_t seen[MAX_DISTINCT];
	unsigned n = 0, zeros = 0, used = 0;
	uint64_t word;
	*distinct = 0;
	for (; n < MAX_WORDS && zeros <= MAX_ZEROS && read_word(x, w, n, &word); n++) {
		uint32_t to = leads_to(prog, x, w, n, word);
		if (word && to == ICF_NONE)
			break;
		zeros = word ? 0 : zeros + 1;
		used = word ? n + 1 : used;
		unsigned k = 0;
		while (k < *distinct && seen[k] != to)
			k++;
		if (word && k == *distinct && k < MAX_DISTINCT)
			seen[(*distinct)++] = to;
	}
	return used;
}

/* Does the object of N words at VA end behind them? */
static struct elfrw_err *ends(struct sum *s, uint64_t va, uint64_t bytes, bool *ret)
{
	struct job *job = s->job;
	struct elfrw_err *err = NULL;
	pthread_mutex_lock(&job->lock);
	if (!job->mapped)
		err = icf_data_map_init(job->prog, &job->map);
	job->mapped |= !err;
	pthread_mutex_unlock(&job->lock);
	if (!err)
		*ret = icf_next_named(s->prog, &job->map, va, bytes + 8) - va < bytes + 8;
	return err;
}

/* By what powers of two an instruction multiplies, as a set of exponents. */
static unsigned factors_of(const struct elfrw_insn *in, const struct elfrw_effect *e)
{
	bool number = e->flags & ELFRW_EFFECT_IMM;
	switch (e->op) {
	case ELFRW_OP_ADDRESS: /* a scale of 2^k is bit k */
		return in->index == ELFRW_REG_NONE ? 0
						   : in->scale * (in->base == in->index ? 3u : 1u);
	case ELFRW_OP_SHL:
		if (!number) /* by a register */
			return ~0u;
		return e->width > 1 ? 1u << (e->imm & 31) : 0;
	case ELFRW_OP_ADD:
		if (e->shift)
			return 1u << e->shift;
		return !number && e->a == e->b && e->width > 1 ? 1u << 1 : 0;
	case ELFRW_OP_ADD_PART: return 1u << e->shift;
	case ELFRW_OP_MUL: return ~0u; /* by any number */
	default: return 0;
	}
}

/* Does the current unit multiply by 2^SHIFT? */
static struct elfrw_err *multiplies(struct sum *s, unsigned shift, bool *ret)
{
	bool clean;
	if (!s->traced) {
		ELFRW_TRY(icf_trace_unit(s->prog, s->unit, &s->t, &clean));
		s->factors = 0;
		for (size_t k = 0; k < s->t.insn.len; k++) {
			struct elfrw_effect e = icf_effect_at(s->prog, s->unit, &s->t, k);
			s->factors |= factors_of(&s->t.insn.data[k].in, &e);
		}
		s->traced = true;
	}
	*ret = s->factors >> shift & 1;
	return NULL;
}

/* N words of X lead to DISTINCT entries.  Is that no chance? */
static struct elfrw_err *is_no_chance(struct sum *s, const struct way *w, const struct words *x,
				      unsigned n, unsigned distinct, bool *ret)
{
	uint64_t low = UINT64_MAX, high = 0, word;
	for (unsigned k = 0; k < n; k++) {
		if (!read_word(x, w, k, &word) || !word)
			continue;
		low = w->from + word < low ? w->from + word : low;
		high = w->from + word > high ? w->from + word : high;
	}
	double places = (double)((high - low) >> w->shift) + 1, chance = s->pairs;
	double density =
		(double)(icf_unit_at(s->prog, high) - icf_unit_at(s->prog, low) + 1) / places;
	for (unsigned k = 0; k < distinct && density < 1; k++)
		chance *= density;
	bool times = false;
	if (w->shift)
		ELFRW_TRY(multiplies(s, w->shift, &times));
	*ret = chance * (times ? MULTIPLIES : 1) < (w->shift ? MAX_CHANCE : MAX_PLAIN);
	return NULL;
}

static struct elfrw_err *look_at(struct sum *s, const struct way *w, const struct words *x)
{
	unsigned distinct, n = count(s->prog, w, x, &distinct),
			   need = w->size == 2 || w->shift ? 4 : 3;
	bool alone = false;
	/* Small numbers times the functions' alignment often lead to small functions in a row. */
	if (distinct + 1 == need && (w->size > 2 || !w->shift))
		ELFRW_TRY(ends(s, x->va, (uint64_t)n * w->size, &alone));
	bool believed = distinct + alone >= need;
	if (believed)
		ELFRW_TRY(is_no_chance(s, w, x, n, distinct, &believed));
	if (!believed)
		return NULL;
	icf_pin_unit(s->prog, icf_unit_at(s->prog, w->from));
	for (unsigned k = 0; k < n; k++) {
		uint64_t word;
		uint32_t to =
			read_word(x, w, k, &word) ? leads_to(s->prog, x, w, k, word) : ICF_NONE;
		icf_pin_unit(s->prog, to);
	}
	return NULL;
}

static struct elfrw_err *look_from(struct sum *s, uint64_t from, const struct words *x)
{
	static const uint8_t size[] = { 4, 8, 2 };
	for (unsigned k = 0; k < 3; k++)
		for (unsigned shift = 0; shift <= (size[k] == 8 ? 0 : 4); shift++) {
			struct way w = { from, size[k], shift };
			ELFRW_TRY(look_at(s, &w, x));
		}
	return NULL;
}

/* Finds the data at VA: in a data section, or in code that is not understood; false: none. */
static bool find_words(const struct icf_program *prog, uint64_t va, struct words *ret)
{
	uint32_t i = icf_unit_at(prog, va);
	const struct icf_unit *u = i != ICF_NONE ? &prog->unit.data[i] : NULL;
	/* A table that reads as instructions looks like code that some label begins. */
	if (u && u->kind != ICF_UNIT_OPAQUE &&
	    !(u->kind == ICF_UNIT_RIGID && !u->n_fde &&
	      !(__atomic_load_n(&u->flags, __ATOMIC_RELAXED) & ICF_UNIT_FUNC_SYMBOL)))
		return false;
	uint32_t shndx = elfrw_image_section_at(prog->img, va);
	const struct elfrw_section *sec = &prog->img->section[shndx];
	if (!shndx || !sec->data || (!u && (sec->hdr.sh_flags & SHF_EXECINSTR)))
		return false;
	*ret = (struct words){ va, sec->hdr.sh_addr + sec->hdr.sh_size - va,
			       sec->data + (va - sec->hdr.sh_addr) };
	return true;
}

/* Collects the code addresses that unit U refers to, each once; returns their number.  *REFS: of
 * how many references they are. */
static unsigned find_code(const struct icf_program *prog, const struct icf_unit *u,
			  uint64_t code[MAX_CODE], unsigned *refs)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	struct words x;
	unsigned n = 0;
	*refs = 0;
	for (uint32_t r = 0; r < u->n_ref && *refs < MAX_CODE; r++) {
		if (!(ref[r].flags & ICF_REF_LEA) || !icf_in_exec(prog, ref[r].target) ||
		    find_words(prog, ref[r].target, &x))
			continue;
		++*refs;
		unsigned k = 0;
		while (k < n && code[k] != ref[r].target)
			k++;
		if (k == n)
			code[n++] = ref[r].target;
	}
	return n;
}

/* Was VA met in this unit a short time ago?  High halves name few pages, each many times. */
static bool met(uint64_t seen[MET], uint64_t va)
{
	uint64_t *slot = &seen[(va >> 12 ^ va >> 3) % MET];
	bool ret = *slot == va;
	*slot = va;
	return ret;
}

static struct elfrw_err *look_in_unit(struct sum *s, uint32_t i)
{
	const struct icf_unit *u = &s->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(s->prog, u);
	uint64_t code[MAX_CODE], seen[MET] = { 0 };
	unsigned refs, n = find_code(s->prog, u, code, &refs);
	s->unit = i;
	s->traced = false;
	s->pairs = (double)refs * u->n_ref;
	for (uint32_t r = 0; r < u->n_ref && n; r++) {
		struct words x;
		if (ref[r].kind == ICF_REF_BRANCH || met(seen, ref[r].target) ||
		    !find_words(s->prog, ref[r].target, &x))
			continue;
		for (unsigned k = 0; k < n; k++)
			ELFRW_TRY(look_from(s, code[k], &x));
	}
	return NULL;
}

/* Looks at run INDEX of the units of ARG, a struct job. */
static struct elfrw_err *look_at_run(void *arg, size_t index)
{
	struct job *job = arg;
	struct sum s = { .prog = job->prog, .job = job };
	struct elfrw_err *err = NULL;
	for (size_t i = index * RUN; i < (index + 1) * RUN && i < job->prog->unit.len && !err; i++)
		err = look_in_unit(&s, (uint32_t)i);
	icf_trace_deinit(&s.t);
	return err;
}

struct elfrw_err *icf_infer_sums(struct icf_program *prog, unsigned threads)
{
	struct job job = { .prog = prog, .lock = PTHREAD_MUTEX_INITIALIZER };
	struct elfrw_err *err =
		elfrw_parallel(threads, (prog->unit.len + RUN - 1) / RUN, look_at_run, &job);
	if (job.mapped)
		icf_data_map_deinit(&job.map);
	pthread_mutex_destroy(&job.lock);
	return err;
}
