/* doubt.c: functions that something may lead to, although no reference to them is known.
 *
 * For folding it is enough that each unknown distance still leads where it led, so a function to
 * which none leads may move.  If it is to be removed, more is asked: whoever could compute its
 * address keeps it, and a single number that looks like the way to it is enough.
 *
 *   - A word of data, at any byte offset, that leads to the function's entry: from its own place,
 *     from its own end, from one of the last places before it that something refers to, from the
 *     file's first byte, or from the global offset table.
 *   - A number in an instruction that leads there from the file's first byte, from the global
 *     offset table (the large code model), or from an address of data that the code computes
 *     nearby.  Sums with addresses of code are followed in arith.c.
 *   - An entry of a jump table that is not the table of one function alone, or a word behind a
 *     table, where it may go on although something else refers to that place.
 *   - What bytes of code that are not understood could refer to, as branches or as distances.
 *
 * Such numbers are rare, so this keeps few functions that are really unused.  Only functions that
 * are not kept anyway are asked about; mostly they are few, so most words lead to none of their
 * pages.  Cost: one pass over the data, and one over the code that may hold such numbers
 * (number.c); nothing if all functions are kept. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/unit.h"
#include <stdlib.h>
#include <string.h>

#define PAGE    12 /* pages of 1 << PAGE bytes */
#define NAMES   8  /* places that something refers to, the last ones */
#define NUMBERS 4  /* the same of its numbers */
#define PER     256

struct doubt {
	const struct icf_program *prog;
	struct icf_data_map map; /* `entry`: of the functions that are asked about, from the first
				    to the last */
	uint8_t *page;           /* owned; a byte for each page of `entry`: it has one */
	uint64_t base[ICF_NUMBER_BASES];
	unsigned n_bases;
	const uint8_t *live; /* by unit; borrowed: it is kept anyway */
	uint8_t *keep;       /* by unit; borrowed; several threads set it */
};

static void keep(const struct doubt *d, uint32_t i)
{
	if (i != ICF_NONE)
		__atomic_store_n(&d->keep[i], 1, __ATOMIC_RELAXED);
}

static inline void keep_entry(const struct doubt *d, uint64_t va)
{
	const uint64_t off = va - d->map.entry.lo;
	if (off < d->map.entry.hi - d->map.entry.lo && d->page[off >> PAGE] &&
	    icf_bit(&d->map.entry, va))
		keep(d, icf_unit_at(d->prog, va));
}

/* NUMBER, counted from places that code anywhere may know. */
static void keep_known(const struct doubt *d, uint64_t number)
{
	for (unsigned k = 0; k < d->n_bases; k++)
		keep_entry(d, d->base[k] + number);
}

/* --- words of data --- */

static bool holds_words(const struct elfrw_section *s)
{
	if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) || !s->data ||
	    strncmp(s->name, ".eh_frame", 9) == 0 || strncmp(s->name, ".gcc_except_table", 17) == 0)
		return false;
	switch (s->hdr.sh_type) {
	case SHT_STRTAB:
	case SHT_RELA:
	case SHT_HASH:
	case SHT_GNU_HASH:
	case SHT_DYNSYM:
	case SHT_GNU_verdef:
	case SHT_GNU_verneed:
	case SHT_GNU_versym: return false;
	default: return true;
	}
}

/* Where words are explained: the loader sets them, or they are entries of tables.  Moves on with
 * the places that are asked for. */
struct explained {
	size_t dataref, dynreloc;
};

static bool is_explained(const struct icf_program *prog, struct explained *x, uint64_t va)
{
	while (x->dataref < prog->dataref.len &&
	       prog->dataref.data[x->dataref].place + prog->dataref.data[x->dataref].size <= va)
		x->dataref++;
	while (x->dynreloc < prog->dynreloc.len && prog->dynreloc.data[x->dynreloc].place + 8 <= va)
		x->dynreloc++;
	return (x->dataref < prog->dataref.len && prog->dataref.data[x->dataref].place < va + 4) ||
	       (x->dynreloc < prog->dynreloc.len &&
		prog->dynreloc.data[x->dynreloc].place < va + 4);
}

/* Can WORD, at address AT, lead to code from a place that look_at_words() counts from: one of [VA,
 * AT + 4], or a known one?  Most words cannot. */
static bool reaches_code(const struct doubt *d, uint64_t word, uint64_t va, uint64_t at)
{
	const uint64_t lo = d->map.entry.lo, size = d->map.entry.hi - lo, back = at + 4 - va;
	if (size + back < size || at + 4 + word - lo < size + back)
		return true;
	for (unsigned k = 0; k < d->n_bases; k++)
		if (d->base[k] + word - lo < size)
			return true;
	return false;
}

#define PLACES 16 /* that are looked at together */
typedef int32_t words_t __attribute__((vector_size(PLACES)));
typedef uint32_t unsigned_t __attribute__((vector_size(PLACES)));

/* Words from LO to HI: those that are at most MOST, with ADD added. */
struct span {
	int64_t lo, hi;
	words_t add, most;
};

#define SPANS (ICF_NUMBER_BASES + 1)

/* Adds the words from LO to HI to the N ranges in SPAN, of which none meet.  Returns how many these
 * are then. */
static unsigned add_span(struct span *span, unsigned n, int64_t lo, int64_t hi)
{
	lo = lo < INT32_MIN ? INT32_MIN : lo;
	hi = hi > INT32_MAX ? INT32_MAX : hi;
	if (lo > hi)
		return n;
	for (unsigned k = 0; k < n;) {
		if (span[k].lo > hi || span[k].hi < lo) {
			k++;
			continue;
		}
		lo = span[k].lo < lo ? span[k].lo : lo;
		hi = span[k].hi > hi ? span[k].hi : hi;
		span[k] = span[--n];
	}
	/* Comparisons are of signed numbers. */
	uint32_t add = (uint32_t)INT32_MIN - (uint32_t)lo, most = (uint32_t)hi + add;
	span[n] = (struct span){ lo, hi, (words_t){ 0 } + (int32_t)add,
				 (words_t){ 0 } + (int32_t)most };
	return n + 1;
}

/* The words for which reaches_code() may hold at some place from VA to END.  Returns how many
 * ranges these are; 0: any word may. */
static unsigned find_spans(const struct doubt *d, uint64_t va, uint64_t end,
			   struct span span[SPANS])
{
	const uint64_t lo = d->map.entry.lo, hi = d->map.entry.hi, most = (uint64_t)1 << 40;
	if (hi > most || end > most)
		return 0;
	unsigned n = add_span(span, 0, (int64_t)(lo - end - 4), (int64_t)(hi - va));
	for (unsigned k = 0; k < d->n_bases; k++) {
		if (d->base[k] > most)
			return 0;
		n = add_span(span, n, (int64_t)(lo - d->base[k]), (int64_t)(hi - d->base[k]));
	}
	return n;
}

/* At which of the PLACES places at P does a word begin that lies in one of the N ranges?  A bit for
 * each. */
static inline unsigned find_words(const uint8_t *p, const struct span *span, unsigned n)
{
	/* Lane K begins at byte 4 * K + I. */
	words_t any = { 0 };
	uint64_t m[2];
	for (unsigned i = 0; i < 4; i++) {
		words_t v, in = { 0 };
		memcpy(&v, p + i, sizeof v);
		for (unsigned k = 0; k < n; k++)
			in |= (words_t)((unsigned_t)v + (unsigned_t)span[k].add) <= span[k].most;
		any |= in & (v != 0) & (int32_t)(1u << (8 * i));
	}
	memcpy(m, &any, sizeof m);
	/* The lowest bit of each byte, gathered in the top byte. */
	const uint64_t gather = 0x0102040810204080;
	return (unsigned)(m[0] * gather >> 56 | m[1] * gather >> 56 << 8);
}

/* The last places that something refers to. */
struct names {
	uint64_t from[NAMES];
	unsigned n;
};

/* The word at P, at address AT, in data that begins at VA. */
static void look_at_word(const struct doubt *d, struct explained *x, struct names *names,
			 const uint8_t *p, uint64_t at, uint64_t va)
{
	uint64_t word = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
	if (icf_bit(&d->map.named, at))
		names->from[names->n++ % NAMES] = at;
	if (!word || !reaches_code(d, word, va, at) || is_explained(d->prog, x, at))
		return;
	keep_entry(d, at + word);
	keep_entry(d, at + 4 + word);
	for (unsigned k = 0; k < NAMES && k < names->n; k++)
		keep_entry(d, names->from[k] + word);
	keep_known(d, word);
}

/* To which of the PLACES places from AT on does something refer?  A bit for each; all if that is
 * not known here. */
static inline unsigned find_names(const struct icf_bits *named, uint64_t at)
{
	uint64_t off = at - named->lo;
	if (at < named->lo || at >= named->hi || named->hi - at < PLACES + 8)
		return (1u << PLACES) - 1;
	return elfrw_get32(named->bits + (off >> 3)) >> (off & 7) & ((1u << PLACES) - 1);
}

/* The SIZE bytes at P, at address VA.  Most words lead nowhere. */
static void look_at_words(const struct doubt *d, const uint8_t *p, uint64_t size, uint64_t va)
{
	struct explained x = { 0 };
	struct names names = { { va }, 1 };
	struct span span[SPANS];
	uint64_t off = 0;
	unsigned n = find_spans(d, va, va + size, span);
	for (; n && size >= PLACES + 4 && off <= size - PLACES - 4; off += PLACES) {
		unsigned at = find_words(p + off, span, n) | find_names(&d->map.named, va + off);
		for (; at; at &= at - 1) {
			uint64_t k = off + (unsigned)__builtin_ctz(at);
			look_at_word(d, &x, &names, p + k, va + k, va);
		}
	}
	for (; off <= size && size - off >= 4; off++)
		look_at_word(d, &x, &names, p + off, va + off, va);
}

static void look_at_data(const struct doubt *d)
{
	const struct icf_program *prog = d->prog;
	for (uint32_t i = 1; i < prog->img->n_sections; i++) {
		const struct elfrw_section *s = &prog->img->section[i];
		if (holds_words(s))
			look_at_words(d, s->data, s->hdr.sh_size, s->hdr.sh_addr);
	}
}

/* --- jump tables --- */

static void keep_entries(const struct doubt *d, uint64_t base, uint64_t n)
{
	uint64_t word;
	for (uint64_t k = 0; k < n; k++)
		if (icf_distance_at(d->prog, base + 4 * k, &word))
			keep(d, icf_unit_at(d->prog, base + word));
}

/* The table at VA, or NULL. */
static const struct icf_table *table_at(const struct icf_program *prog, uint64_t va)
{
	const struct icf_dataref *d = icf_dataref_at(prog, va);
	const struct icf_table *t = d && d->table != ICF_NONE ? &prog->table.data[d->table] : NULL;
	return t && t->base == va ? t : NULL;
}

/* Words from PLACE on, as entries of a table at BASE.  The table of a jump that was found out ends
 * where something else refers to, which may be its middle; it does not go on in another table.
 * ALL: nothing ends it but a word that leads nowhere. */
static void read_on(const struct doubt *d, uint64_t base, uint64_t place, bool all)
{
	uint64_t word;
	for (; (all || !icf_dataref_at(d->prog, place)) && icf_distance_at(d->prog, place, &word) &&
	       icf_in_exec(d->prog, base + word);
	     place += 4)
		keep(d, icf_unit_at(d->prog, base + word));
}

/* Some jump of unit I is not understood: its tables may be anything that the unit refers to. */
static void look_at_jumps(const struct doubt *d, uint32_t i)
{
	const struct icf_unit *u = &d->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(d->prog, u);
	bool jumps = (u->flags & ICF_UNIT_JUMPS) || u->kind == ICF_UNIT_OPAQUE;
	if (!jumps || !(u->flags & ICF_UNIT_PINNED))
		return;
	for (uint32_t r = 0; r < u->n_ref; r++)
		if ((ref[r].flags & ICF_REF_LEA) && ref[r].unit == ICF_NONE)
			read_on(d, ref[r].target, ref[r].target, true);
}

/* The tables that jumps use, if that is not what their addresses tell; and what follows them. */
static void look_at_tables(const struct doubt *d)
{
	const struct icf_program *prog = d->prog;
	for (size_t k = 0; k < prog->inferred_table.len; k++) {
		const struct icf_inferred_table *x = &prog->inferred_table.data[k];
		const struct icf_table *t = table_at(prog, x->base);
		if (!t || x->n > t->n || t->owner != icf_unit_at(prog, x->owner))
			keep_entries(d, x->base, x->n);
		read_on(d, x->base, x->base + 4 * (uint64_t)x->n, false);
	}
}

/* --- numbers in code --- */

/* What the code named last. */
struct last {
	uint64_t name[NAMES], number[NUMBERS];
	unsigned n_names, n_numbers; /* so far */
};

static void add_number(const struct doubt *d, struct last *l, uint64_t number)
{
	if (!number)
		return;
	keep_known(d, number);
	for (unsigned k = 0; k < NAMES && k < l->n_names; k++) {
		keep_entry(d, l->name[k] + number);
		keep_entry(d, l->name[k] - number);
	}
	l->number[l->n_numbers++ % NUMBERS] = number;
}

static void add_name(const struct doubt *d, struct last *l, uint64_t va)
{
	l->name[l->n_names++ % NAMES] = va;
	for (unsigned k = 0; k < NUMBERS && k < l->n_numbers; k++) {
		keep_entry(d, va + l->number[k]);
		keep_entry(d, va - l->number[k]);
	}
}

/* The instruction IN at P. */
static void look_at_insn(const struct doubt *d, struct last *l, const struct elfrw_insn *in,
			 const uint8_t *p)
{
	if (in->kind == ELFRW_INSN_NOP || in->kind == ELFRW_INSN_TRAP)
		return;
	if ((in->flags & ELFRW_INSN_LEA) && in->pcrel_size && !icf_in_exec(d->prog, in->target))
		add_name(d, l, in->target);
	add_number(d, l, icf_operand(p + in->imm_off, in->imm_size));
	if (in->flags & ELFRW_INSN_LEA)
		add_number(d, l, icf_operand(p + in->disp_off, in->disp_size));
}

/* Unit U may hold branches anywhere, and distances that lead anywhere. */
static void look_at_opaque(const struct doubt *d, const struct icf_unit *u)
{
	const struct icf_program *prog = d->prog;
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	for (uint64_t pos = 0; pos < size; pos++) {
		struct elfrw_insn in;
		if (prog->arch->decode(code + pos, size - pos, u->start + pos, &in) &&
		    in.pcrel_size)
			keep(d, icf_unit_at(prog, in.target));
		if (size - pos < 4)
			continue;
		uint64_t word = (uint64_t)(int64_t)(int32_t)elfrw_get32(code + pos);
		keep(d, word ? icf_unit_at(prog, u->start + word) : ICF_NONE);
		keep(d, word ? icf_unit_at(prog, u->start + pos + word) : ICF_NONE);
	}
}

static void look_at_numbers(const struct doubt *d, const struct icf_unit *u)
{
	const struct icf_program *prog = d->prog;
	const uint8_t *code = icf_unit_bytes(prog, u);
	/* The decoder is fastest if it may read beyond an instruction. */
	uint64_t size = u->end - u->start, avail = prog->exec.data[u->sec].end - u->start;
	struct last l = { 0 };
	struct elfrw_insn in;
	for (uint64_t pos = 0; pos < size; pos += in.len) {
		if (prog->arch->decode(code + pos, avail - pos, u->start + pos, &in) &&
		    in.len <= size - pos)
			look_at_insn(d, &l, &in, code + pos);
		else
			in.len = 1;
	}
}

static void look_at_unit(const struct doubt *d, uint32_t i)
{
	const struct icf_unit *u = &d->prog->unit.data[i];
	bool opaque = u->kind == ICF_UNIT_OPAQUE;
	if (opaque || !(u->flags & ICF_UNIT_PLAIN) || (u->flags & ICF_UNIT_GLUED))
		look_at_numbers(d, u);
	look_at_jumps(d, i);
	if (opaque)
		look_at_opaque(d, u);
}

static struct elfrw_err *look_at_units(void *arg, size_t part)
{
	const struct doubt *d = arg;
	for (uint32_t i = (uint32_t)part * PER; i < (part + 1) * PER && i < d->prog->unit.len; i++)
		look_at_unit(d, i);
	return NULL;
}

/* Marks the entries that are asked about.  *NONE: there are none. */
static struct elfrw_err *mark_entries(struct doubt *d, bool *none)
{
	const struct icf_program *prog = d->prog;
	uint64_t lo = UINT64_MAX, hi = 0;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const uint64_t start = prog->unit.data[i].start;
		if (d->live[i])
			continue;
		lo = start < lo ? start : lo;
		hi = start + 1 > hi ? start + 1 : hi;
	}
	*none = lo >= hi;
	if (*none)
		return NULL;
	icf_bits_deinit(&d->map.entry);
	d->page = calloc(((hi - lo) >> PAGE) + 1, 1);
	if (!icf_bits_init(&d->map.entry, lo, hi) || !d->page)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const uint64_t start = prog->unit.data[i].start;
		if (d->live[i])
			continue;
		icf_set_bit(&d->map.entry, start);
		d->page[(start - lo) >> PAGE] = 1;
	}
	return NULL;
}

struct elfrw_err *icf_find_doubtful(const struct icf_program *prog, unsigned threads,
				    const uint8_t *live, uint8_t *keep)
{
	struct doubt d = { .prog = prog, .live = live, .keep = keep };
	bool none = false;
	struct elfrw_err *err = icf_data_map_init(prog, &d.map);
	d.n_bases = icf_number_bases(prog, d.base);
	if (!err)
		err = mark_entries(&d, &none);
	if (!err && !none)
		err = elfrw_parallel(threads, (prog->unit.len + PER - 1) / PER, look_at_units, &d);
	if (!err && !none) {
		look_at_data(&d);
		look_at_tables(&d);
	}
	icf_data_map_deinit(&d.map);
	free(d.page);
	return err;
}
