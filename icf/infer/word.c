/* word.c: unexplained distances in data.
 *
 * Jump tables were found and all jumps explained, so the remaining distances lead to the entries of
 * functions.  A word may be one if it gives the exact entry of a function, counted from its own
 * place or from the last named place before it.  Numbers do that by chance, too, so there must be
 * more evidence: all words of the object do it, or some code calls a sum.  The function is then
 * pinned, and not folded.  The same applies to words that may be added to a code address.  One case
 * makes all code immovable, since pinning cannot help: an address that was moved out of its
 * function by a constant when the program was built. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/lanes.h"
#include "icf/infer/parts.h"
#include "icf/infer/unit.h"
#include "icf/infer/use.h"
#include "icf/program/end.h"
#include "icf/program/unit.h"
#include <string.h>

#define MAX_WORK     100000000 /* words examined for one unit */
#define MAX_ODD_LIST 65536     /* bytes of a list whose records may have any size */

static bool holds_plain_data(const struct elfrw_section *s)
{
	if (s->hdr.sh_type != SHT_PROGBITS || !(s->hdr.sh_flags & SHF_ALLOC) ||
	    (s->hdr.sh_flags & SHF_EXECINSTR) || !s->data)
		return false;
	return strncmp(s->name, ".eh_frame", 9) != 0 &&
	       strncmp(s->name, ".gcc_except_table", 17) != 0 && strcmp(s->name, ".interp") != 0 &&
	       strncmp(s->name, ".got", 4) != 0;
}

static void pin_entry(struct icf_program *prog, const struct icf_data_map *map, uint64_t va)
{
	if (icf_bit(&map->entry, va))
		icf_set_unit_flag(prog, icf_unit_at(prog, va), ICF_UNIT_PINNED);
}

/* Does the dynamic linker set the word at VA? */
static bool filled_in(const struct icf_program *prog, uint64_t va)
{
	size_t lo =
		LOWER_BOUND(0, prog->dynreloc.len, mid, prog->dynreloc.data[mid].place + 8 <= va);
	return lo < prog->dynreloc.len && prog->dynreloc.data[lo].place <= va;
}

static uint64_t word_at(const struct elfrw_section *s, uint64_t off)
{
	return (uint64_t)(int64_t)(int32_t)elfrw_get32(s->data + off);
}

/* Is the word at OFF, counted from BASE (0: from its own place), the distance to a function's
 * entry? */
static bool names_entry(const struct icf_program *prog, const struct icf_data_map *map,
			const struct elfrw_section *s, uint64_t off, uint64_t base)
{
	if (off > s->hdr.sh_size || s->hdr.sh_size - off < 4)
		return false;
	uint64_t va = s->hdr.sh_addr + off, word = word_at(s, off);
	return word && icf_bit(&map->entry, (base ? base : va) + word) && !filled_in(prog, va);
}

struct object {
	const struct elfrw_section *sec;
	uint64_t start, end; /* of an object: from one named place to the next */
};

/* Are the word at OFF and all others of its column, in an array of records, distances to entries or
 * to named data? */
static bool in_column(const struct icf_program *prog, const struct icf_data_map *map,
		      const struct object *o, uint64_t off, uint64_t base, unsigned step)
{
	uint64_t first = o->start - o->sec->hdr.sh_addr, end = o->end - o->sec->hdr.sh_addr;
	uint64_t one = 0, last = 0;
	unsigned n = 0;
	for (uint64_t p = first + (off - first) % step; p <= end && end - p >= 4; p += step) {
		uint64_t va = o->sec->hdr.sh_addr + p, word = word_at(o->sec, p);
		if (word == 0)
			continue;
		if (!names_entry(prog, map, o->sec, p, base)) {
			if (!icf_bit(&map->named, (base ? base : va) + word))
				return false;
			continue;
		}
		/* The same number again and again is a single chance. */
		if (base && (word == one || word == last))
			continue;
		one = n++ ? one : word;
		last = word;
	}
	return n >= (step == 4 ? 2 : 3);
}

static bool in_company(const struct icf_program *prog, const struct icf_data_map *map,
		       const struct object *o, uint64_t off, uint64_t base)
{
	for (unsigned step = 4; step <= 32; step += 4)
		if (in_column(prog, map, o, off, base, step))
			return true;
	return false;
}

/* What in_column() said of an object: bit P for the column P bytes behind its start, by step. */
struct columns {
	uint32_t asked[9], good[9];
};

/* in_company(), for many words of one object. */
static bool in_company_again(const struct icf_program *prog, const struct icf_data_map *map,
			     const struct object *o, uint64_t off, uint64_t base, struct columns *c)
{
	const uint64_t from = off - (o->start - o->sec->hdr.sh_addr);
	for (unsigned step = 4; step <= 32; step += 4) {
		const uint32_t bit = UINT32_C(1) << from % step;
		if (!(c->asked[step / 4] & bit) && in_column(prog, map, o, off, base, step))
			c->good[step / 4] |= bit;
		c->asked[step / 4] |= bit;
		if (c->good[step / 4] & bit)
			return true;
	}
	return false;
}

/* The words of a section that may lead into the code, from their own place or from one before it.
 * ANY: all may. */
struct reach {
	struct icf_lane_range range;
	bool any;
};

static struct reach find_reach(const struct icf_program *prog, const struct elfrw_section *s)
{
	const uint64_t top = (uint64_t)1 << 40, start = s->hdr.sh_addr,
		       end = start + s->hdr.sh_size, code = prog->exec.data[0].start,
		       code_end = prog->exec.data[prog->exec.len - 1].end;
	int64_t lo = (int64_t)(code - end), hi = (int64_t)(code_end - start);
	lo = lo < INT32_MIN ? INT32_MIN : lo;
	hi = hi > INT32_MAX ? INT32_MAX : hi;
	if (end > top || code_end > top || lo > hi)
		return (struct reach){ .any = true };
	return (struct reach){ icf_lane_range((int32_t)lo, (int32_t)hi), false };
}

/* Is nothing named in the ICF_LANES words at VA and P, and does none of them lead into the code? */
static inline bool may_skip(const struct reach *r, const struct icf_bits *named, const uint8_t *p,
			    uint64_t va)
{
	const uint64_t off = va - named->lo;
	if (r->any || va < named->lo || va >= named->hi || named->hi - va < 64 ||
	    (elfrw_get32(named->bits + (off >> 3)) >> (off & 7) & 0xffff))
		return false;
	return !icf_lanes_any(icf_lanes_in(icf_lanes_at(p), &r->range));
}

/* A stretch of a section, from one offset up to another. */
struct piece {
	const struct elfrw_section *sec;
	uint64_t from, to;
	uint64_t name; /* the last place before FROM that something refers to, or the section's
			  start */
};

struct words_job {
	struct icf_program *prog;
	const struct icf_data_map *map;
	bool evidence;
	VEC(struct piece) piece;
};

static struct elfrw_err *words_of(void *arg, size_t i)
{
	const struct words_job *job = arg;
	const struct piece *piece = &job->piece.data[i];
	const struct elfrw_section *s = piece->sec;
	struct icf_program *prog = job->prog;
	const struct icf_data_map *map = job->map;
	const bool evidence = job->evidence;
	uint64_t lo = prog->exec.data[0].start, span = prog->exec.data[prog->exec.len - 1].end - lo;
	struct object o = { s, piece->name, 0 };
	struct columns own, from_start; /* of O: words that count from their own place, from its */
	const struct reach reach = find_reach(prog, s);
	unsigned next = 0;
	for (uint64_t off = piece->from; off < piece->to && s->hdr.sh_size - off >= 4; off += 4) {
		uint64_t va = s->hdr.sh_addr + off, word;
		while (!next && off < piece->to && s->hdr.sh_size - off >= 4 * ICF_LANES + 4 &&
		       may_skip(&reach, &map->named, s->data + off, va)) {
			off += 4 * ICF_LANES;
			va += 4 * ICF_LANES;
		}
		word = word_at(s, off);
		/* The bits of this word's four places; a name inside the word holds from the next
		 * word on. */
		unsigned names = next;
		next = map->named.bits[(va - map->named.lo) >> 3] >> ((va - map->named.lo) & 7) &
		       15;
		if (names >> 1)
			o = (struct object){ s, va - 4 + (unsigned)(31 - __builtin_clz(names)), 0 };
		if (next & 1)
			o = (struct object){ s, va, 0 };
		if ((va + word - lo >= span && o.start + word - lo >= span) ||
		    icf_bit(&map->table, va))
			continue;
		bool self = names_entry(prog, map, s, off, 0),
		     based = names_entry(prog, map, s, off, o.start);
		if (!self && !based)
			continue;
		if (!o.end) {
			o.end = icf_next_named(prog, map, o.start, UINT64_MAX);
			own = from_start = (struct columns){ 0 };
		}
		if (self && (evidence || in_company_again(prog, map, &o, off, 0, &own)))
			pin_entry(prog, map, va + word);
		if (based &&
		    (evidence || in_company_again(prog, map, &o, off, o.start, &from_start)))
			pin_entry(prog, map, o.start + word);
	}
	return NULL;
}

/* clang's -fxray-instrument writes records of 32 bytes.  A record begins with two distances from
 * their own places: to a sled inside a function, which may be patched at run time, and to the
 * function. */
static void pin_sleds(struct icf_program *prog, const struct elfrw_section *s)
{
	for (uint64_t off = 0; s->hdr.sh_size - off >= 32; off += 32)
		for (unsigned k = 0; k < 16; k += 8) {
			uint64_t place = s->hdr.sh_addr + off + k,
				 to = place + elfrw_get64(s->data + off + k);
			uint32_t i = icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
			if (i != ICF_NONE)
				prog->unit.data[i].flags |= ICF_UNIT_PINNED;
		}
}

/* A tool or the program lists places of code in a section of such a name, between __start_NAME and
 * __stop_NAME, which strip may remove: traps with their lines, faults with their repair.  Such a
 * list may be short, and its words lead to the inside of functions, so any word that leads into a
 * unit from its own place or end is believed.  Records differ at any byte; long sections hold other
 * things than records of odd sizes. */
static void pin_listed(struct icf_program *prog, const struct icf_data_map *map,
		       const struct elfrw_section *s)
{
	unsigned step = s->hdr.sh_size <= MAX_ODD_LIST ? 1 : 4;
	for (uint64_t off = -s->hdr.sh_addr & (step - 1u);
	     off <= s->hdr.sh_size && s->hdr.sh_size - off >= 4; off += step) {
		uint64_t place = s->hdr.sh_addr + off, word = word_at(s, off);
		if (!word || icf_bit(&map->table, place) || filled_in(prog, place))
			continue;
		for (unsigned k = 0; k <= 4; k += 4) {
			uint64_t to = place + k + word;
			uint32_t i = icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
			if (i != ICF_NONE)
				prog->unit.data[i].flags |= ICF_UNIT_PINNED;
		}
	}
}

#define PIECE (256 << 10) /* bytes that a thread looks at in turn */

static struct elfrw_err *cut(struct words_job *job, const struct elfrw_section *s)
{
	const uint64_t start = s->hdr.sh_addr;
	uint64_t name = start;
	for (uint64_t from = -start & 3; from < s->hdr.sh_size; from += PIECE) {
		struct piece *p = VEC_PUSH(&job->piece);
		uint64_t to = s->hdr.sh_size - from > PIECE ? from + PIECE : s->hdr.sh_size;
		if (!p)
			return &elfrw_err_nomem;
		*p = (struct piece){ s, from, to, name };
		uint64_t last = start + to;
		if (icf_last_named(job->map, start + from, &last))
			name = last;
	}
	return NULL;
}

/* The words of all sections. */
static struct elfrw_err *all_words(struct icf_program *prog, const struct icf_data_map *map,
				   bool evidence, unsigned threads)
{
	struct words_job job = { .prog = prog, .map = map, .evidence = evidence };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 1; i < prog->img->n_sections && !err; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		if (!holds_plain_data(s))
			continue;
		if (strcmp(s->name, "xray_instr_map") == 0) {
			pin_sleds(prog, s);
			continue;
		}
		if (icf_is_c_identifier(s->name))
			pin_listed(prog, map, s);
		err = cut(&job, s);
	}
	if (!err)
		err = elfrw_parallel(threads, job.piece.len, words_of, &job);
	VEC_FREE(&job.piece);
	return err;
}

bool icf_names_code(const struct icf_program *prog, const struct icf_unit *u)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		if ((ref[r].flags & ICF_REF_LEA) && icf_in_exec(prog, ref[r].target))
			return true;
	return false;
}

#define MAX_OBJECT \
	4096 /* bytes that are looked at: long arrays of numbers are not tables of functions */

/* The words of an object that could be distances within the code: where they stand. */
struct small_words {
	unsigned n;
	uint64_t off[MAX_OBJECT / 4]; /* in the section */
};

static void find_small_words(const struct icf_program *prog, const struct object *o,
			     struct small_words *ret)
{
	uint64_t span = prog->exec.data[prog->exec.len - 1].end - prog->exec.data[0].start;
	ret->n = 0;
	for (uint64_t p = o->start; p + 4 <= o->end; p += 4) {
		uint64_t off = p - o->sec->hdr.sh_addr, word = word_at(o->sec, off);
		if (word && word + span < 2 * span)
			ret->off[ret->n++] = off;
	}
}

/* The object at BASE, up to the next named place; false: nothing in it could be a distance within
 * the code. */
static bool find_object(const struct icf_program *prog, const struct icf_data_map *map,
			uint64_t base, struct object *ret, struct small_words *words)
{
	uint32_t shndx = icf_bit(&map->table, base) ? 0 : elfrw_image_section_at(prog->img, base);
	*ret = (struct object){ &prog->img->section[shndx], base, 0 };
	if (!shndx || !holds_plain_data(ret->sec))
		return false;
	ret->end = icf_next_named(prog, map, base, MAX_OBJECT);
	find_small_words(prog, ret, words);
	return words->n;
}

/* Pins by WORDS of object O, as distances from the code address FROM. */
static void pin_sums(struct icf_program *prog, const struct icf_data_map *map,
		     const struct object *o, const struct small_words *words, uint64_t from,
		     bool evidence)
{
	for (unsigned k = 0; k < words->n; k++) {
		uint64_t off = words->off[k];
		if (!names_entry(prog, map, o->sec, off, from) ||
		    (!evidence && !in_company(prog, map, o, off, from)))
			continue;
		pin_entry(prog, map, from + word_at(o->sec, off));
		pin_entry(prog, map, from);
	}
}

void icf_pin_sums(struct icf_program *prog, const struct icf_data_map *map, uint64_t base,
		  const struct icf_named_at *from, size_t n, bool evidence)
{
	struct object o;
	struct small_words words;
	if (!n || !find_object(prog, map, base, &o, &words))
		return;
	for (size_t k = 0; k < n; k++)
		if (from[k].code)
			pin_sums(prog, map, &o, &words, from[k].va, evidence);
}

/* Collects the addresses of code that unit U computes. */
static struct elfrw_err *find_code(const struct icf_program *prog, const struct icf_unit *u,
				   struct icf_places *code)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	code->v.len = 0;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		if (!(ref[r].flags & ICF_REF_LEA) || !icf_in_exec(prog, ref[r].target))
			continue;
		uint64_t *slot = VEC_PUSH(&code->v);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = ref[r].target;
	}
	return NULL;
}

/* Pins by words of data that unit I refers to, as distances from code addresses that it also refers
 * to. */
static void added(struct icf_program *prog, const struct icf_data_map *map, uint32_t i,
		  const struct icf_places *code)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	uint64_t last = 0, work = 0;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		uint64_t base = ref[r].target;
		struct object o;
		struct small_words words;
		if (!(ref[r].flags & ICF_REF_LEA) || base == last || icf_in_exec(prog, base) ||
		    !find_object(prog, map, base, &o, &words))
			continue;
		last = base;
		for (size_t c = 0; c < code->v.len; c++)
			pin_sums(prog, map, &o, &words, code->v.data[c],
				 u->flags & ICF_UNIT_RELATIVE);
		work += (o.end - base) / 4 * code->v.len;
		if (work > MAX_WORK) {
			icf_infer_loose(prog, u->start,
					"the code names too much data and code to look at");
			return;
		}
	}
}

static bool has_symbol(const struct icf_program *prog, const struct icf_unit *u, uint64_t va)
{
	for (uint32_t s = u->sym_first; s < u->sym_first + u->n_sym; s++)
		if (prog->sym.data[s].value == va)
			return true;
	return false;
}

/* Is VA the entry of a signal's return code, whose FDE begins with the last byte of the padding
 * before it?  Unwinders look up a return address minus one. */
static bool is_restorer(const struct icf_program *prog, const struct icf_unit *u, uint64_t va)
{
	const struct dwr_fde *f =
		u->n_fde == 1 ? &prog->cfi.fde.data[prog->cfi.by_pc[u->fde]] : NULL;
	return f && va == u->start + 1 && f->pc_begin == u->start &&
	       prog->cfi.cie.data[f->cie].signal_frame;
}

/* Handles addresses of code that are not entries. */
static void shifted(struct icf_program *prog, uint32_t i, struct icf_trace *trace)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		/* All that a half may name is pinned. */
		if (ref[r].kind == ICF_REF_BRANCH || !icf_in_exec(prog, ref[r].target) ||
		    icf_names_page(&ref[r]) || icf_names_own_end(prog, i, &ref[r]))
			continue;
		uint32_t k = icf_unit_at(prog, ref[r].target);
		if (k == ICF_NONE) {
			size_t e = LOWER_BOUND(0, prog->exec.len, mid,
					       prog->exec.data[mid].start < ref[r].target);
			bool boundary =
				e < prog->exec.len && prog->exec.data[e].start == ref[r].target;
			if (!boundary && !icf_explains_gap(prog, i, &ref[r], trace))
				icf_infer_loose(
					prog, u->start + ref[r].off,
					"the code computes an address between two functions");
			continue;
		}
		struct icf_unit *t = &prog->unit.data[k];
		if (!(ref[r].flags & ICF_REF_LEA) && !prog->exec.data[t->sec].linkage) {
			icf_make_opaque(t); /* holds data */
			continue;
		}
		if (t->start == ref[r].target || t->kind == ICF_UNIT_OPAQUE ||
		    has_symbol(prog, t, ref[r].target))
			continue;
		/* The unit is not understood: with another byte in front it decodes to other
		 * instructions. */
		if (is_restorer(prog, t, ref[r].target)) {
			icf_make_opaque(t);
			continue;
		}
		if (!icf_jumps_inside(prog, u, t) && !icf_jumps_inside(prog, t, u))
			icf_infer_loose(prog, u->start + ref[r].off,
					"the code computes an address inside another function");
	}
}

/* Neither symbols nor FDEs divide this code into functions.  Does a function seem to begin at VA,
 * behind another's end? */
static struct elfrw_err *begins_unnamed(const struct icf_program *prog, uint32_t i, uint64_t va,
					struct icf_trace *t, bool *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	bool clean;
	*ret = false;
	if (u->n_sym || u->n_fde)
		return NULL;
	ELFRW_TRY(icf_trace_unit(prog, i, t, &clean));
	size_t k = 0;
	while (k < t->insn.len && t->insn.data[k].pos < va - u->start)
		k++;
	if (!clean || k == 0 || k == t->insn.len || t->insn.data[k].pos != va - u->start)
		return NULL;
	enum elfrw_insn_kind before = t->insn.data[k - 1].in.kind;
	*ret = before == ELFRW_INSN_NOP || before == ELFRW_INSN_RET || before == ELFRW_INSN_JMP ||
	       before == ELFRW_INSN_TRAP;
	return NULL;
}

/* Handles addresses in data that are not entries: labels, if their function jumps through the
 * data. */
static struct elfrw_err *shifted_data(struct icf_program *prog)
{
	struct icf_trace trace = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < prog->dataref.len && !prog->loose && !err; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		uint32_t k = d->kind != ICF_DATA_ADDRESS ? ICF_NONE : icf_unit_at(prog, d->target);
		bool begins;
		if (k == ICF_NONE)
			continue;
		const struct icf_unit *t = &prog->unit.data[k];
		/* The slots of a lazy PLT lead back into it. */
		if (t->start == d->target || t->kind == ICF_UNIT_OPAQUE ||
		    prog->exec.data[t->sec].linkage)
			continue;
		if (has_symbol(prog, t, d->target) || (t->flags & ICF_UNIT_JUMPS))
			continue;
		err = begins_unnamed(prog, k, d->target, &trace, &begins);
		if (!err && !begins)
			icf_infer_loose(
				prog, d->place,
				"an address in data names the inside of a function that does not jump to addresses");
	}
	icf_trace_deinit(&trace);
	return err;
}

struct elfrw_err *icf_infer_words(struct icf_program *prog, const struct icf_data_map *map,
				  unsigned threads)
{
	bool evidence = false;
	struct icf_trace trace = { 0 };
	struct icf_places code = { 0 };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < prog->unit.len && !evidence; i++)
		evidence = prog->unit.data[i].flags & ICF_UNIT_RELATIVE;
	err = all_words(prog, map, evidence, threads);
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		err = find_code(prog, &prog->unit.data[i], &code);
		if (!err && code.v.len) {
			if (prog->unit.data[i].flags & ICF_UNIT_RELATIVE)
				icf_infer_loose(prog, prog->unit.data[i].start,
						"the code may add distances to an address of code");
			added(prog, map, i, &code);
		}
		shifted(prog, i, &trace);
	}
	icf_trace_deinit(&trace);
	VEC_FREE(&code.v);
	return err ? err : shifted_data(prog);
}
