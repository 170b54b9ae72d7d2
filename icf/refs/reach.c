/* reach.c: what may bytes that are not understood refer to?
 *
 * These bytes stay where they are.  So does every unit that they could reach, or be reached from,
 * by an unknown distance: a distance between two things that stay is still right.  Possible
 * references:
 *   - code: a branch, or an address relative to an instruction.  Unless relocations tell more, an
 *     instruction may begin at each byte;
 *   - tables of distances that something refers to: the code around, a pointer, a symbol, their own
 *     code.  A table counts from its first byte.  Its 4-byte words are believed up to the first
 *     that leads neither to an instruction nor into the same unit.  A table that is referred to
 *     from outside may begin with other words;
 *   - words that nothing refers to.  The search of infer/run/ judges those that lead to the entry
 *     of a function, lone ones too.  A word that leads behind an entry belongs to a switch, so it
 *     is not alone: words at equal steps lead to different instructions.  They count from the
 *     first of them, from the last place that something refers to, or from their own places.
 * A file with fixed addresses may also hold addresses: numbers in instructions, and words at equal
 * steps.  Kept relocations mark the references to distant places.  References that the assembler
 * resolved are near, and any word could be one.  All of these may lead into padding, too.
 *
 * Not seen: distances into the middle of a function that are alone, outside of a table that is
 * referred to, shorter than 4 bytes, or in larger units.  Code that jumps through such a distance
 * has an unexplained jump and stays (infer/unit.c), or is not understood itself.
 *
 * Cost: linear in the bytes; a unit that something leads into is decoded once more.  If there are
 * so many words that the cost would not be linear, everything is pinned. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/infer/parts.h"
#include "icf/refs/known.h"
#include "icf/refs/leads.h"
#include "icf/refs/ref.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

#define MAX_OBJECT 4096           /* bytes of a table that is referred to from outside */
#define MAX_STEP   32             /* bytes from one word to the next */
#define MAX_GAP    8              /* words in a row that lead into the unit itself */
#define MAX_LOOK   64             /* words within which a table must show itself */
#define MAX_FIRST  ICF_LEADS_NEAR /* bytes from a table to its first word that counts */
#define CHUNK      8192           /* places that are looked at together */
#define MAX_INSN   16             /* bytes */
#define MAX_WORK   256            /* words examined for each byte */
#define MAX_OWN    32             /* of these, for tables that the unit could refer to */
#define MAX_HEAD   16             /* bytes at the start of a table that is referred to */
#define ENOUGH     3              /* consecutive words that lead to different instructions */
#define ENOUGH_APART \
	6 /* the same for words with others between them, which code also has at equal steps */

struct reach {
	struct icf_program *prog;
	struct icf_leads code;   /* where words lead in code */
	struct icf_places named; /* places in units that are not understood, with references from
				    elsewhere; ascending */
	struct icf_places own;   /* places that the current unit could refer to */
	const uint8_t *bytes;    /* of the section of the last word; borrowed */
	uint64_t sec_start, sec_size;
	uint64_t work;            /* words examined for the current unit */
	struct elfrw_relocs rel;  /* of executable section rel_sec: sorting them costs too much for
				     each unit */
	uint32_t rel_sec;         /* or ICF_NONE */
	struct icf_halves halves; /* in the current unit */
};

static void pin(struct icf_program *prog, uint32_t i)
{
	if (i != ICF_NONE)
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
}

/* Selects the section that VA lies in; false: none. */
static bool open_section(struct reach *r, uint64_t va)
{
	uint32_t shndx = elfrw_image_section_at(r->prog->img, va);
	const struct elfrw_section *s = &r->prog->img->section[shndx];
	if (!shndx || !s->data)
		return false;
	r->sec_start = s->hdr.sh_addr;
	r->sec_size = s->hdr.sh_size;
	r->bytes = s->data;
	return r->sec_size - (va - r->sec_start) >= 4;
}

static inline bool word_at(struct reach *r, uint64_t va, uint64_t *ret)
{
	uint64_t off = va - r->sec_start;
	if ((off >= r->sec_size || r->sec_size - off < 4) && !open_section(r, va))
		return false;
	*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(r->bytes + (va - r->sec_start));
	return true;
}

static bool push(struct icf_places *p, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&p->v);
	if (slot)
		*slot = va;
	return slot != NULL;
}

static void sort(struct icf_places *p)
{
	if (p->v.len)
		qsort(p->v.data, p->v.len, sizeof *p->v.data, elfrw_u64_order);
}

static bool name(struct reach *r, uint64_t va)
{
	uint32_t i = icf_in_exec(r->prog, va) ? icf_unit_at(r->prog, va) : ICF_NONE;
	return i == ICF_NONE || r->prog->unit.data[i].kind != ICF_UNIT_OPAQUE ||
	       push(&r->named, va);
}

static bool find_names(struct reach *r)
{
	const struct icf_program *prog = r->prog;
	struct icf_places half = { 0 };
	bool ok = true;
	for (uint32_t i = 0; i < prog->unit.len && ok; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t k = 0; k < prog->unit.data[i].n_ref && ok; k++)
			ok = ref[k].kind == ICF_REF_BRANCH || icf_names_page(&ref[k]) ||
			     name(r, ref[k].target);
		half.v.len = 0;
		ok = ok && name(r, prog->unit.data[i].start) &&
		     icf_push_half_names(prog, &prog->unit.data[i], &half, NULL);
		for (size_t k = 0; k < half.v.len && ok; k++)
			ok = name(r, half.v.data[k]);
	}
	VEC_FREE(&half.v);
	for (size_t i = 0; i < prog->dataref.len && ok; i++)
		ok = prog->dataref.data[i].kind != ICF_DATA_ADDRESS ||
		     name(r, prog->dataref.data[i].target);
	for (size_t i = 0; i < prog->sym.len && ok; i++)
		ok = name(r, prog->sym.data[i].value);
	sort(&r->named);
	return ok;
}

_Static_assert(MAX_FIRST == MAX_STEP * MAX_GAP, "the first MAX_GAP + 1 words of each table");

enum base { FIRST, PLACE, ADDRESS, NAME };

/* How words count. */
struct count {
	enum base from;
	uint64_t name;  /* NAME */
	uint64_t end;   /* of the object that holds them */
	unsigned step;  /* from one word to the next */
	unsigned steps; /* to try; bit k - 1: 4 * k bytes */
};

static inline uint64_t means(const struct count *c, uint64_t first, uint64_t va, uint64_t w)
{
	switch (c->from) {
	case FIRST: return first + w;
	case PLACE: return va + w;
	case NAME: return c->name + w;
	default: return w;
	}
}

/* Reads the word at VA, if it ends before C->end. */
static inline bool next_word(struct reach *r, const struct count *c, uint64_t va, uint64_t *w)
{
	r->work++;
	return va < c->end && c->end - va >= 4 && word_at(r, va, w);
}

/* Are the bytes between the words at VA and the next one the upper half of an 8-byte number? */
static bool is_packed(struct reach *r, const struct count *c, uint64_t va, uint64_t w)
{
	uint64_t upper;
	return c->step == 4 ||
	       (c->step == 8 && word_at(r, va + 4, &upper) && upper == (w >> 63 ? UINT64_MAX : 0));
}

/* Do the words from FIRST on lead to different instructions? */
static bool is_table(struct reach *r, const struct count *c, uint64_t first)
{
	uint64_t seen[ENOUGH_APART], w, va = first;
	unsigned n = 0, gap = 0;
	bool packed = true;
	for (unsigned k = 0; k < MAX_LOOK && gap <= MAX_GAP && next_word(r, c, va, &w);
	     k++, va += c->step) {
		uint64_t to = means(c, first, va, w);
		enum icf_leads_to what = icf_leads(&r->code, to);
		if (what == ICF_LEADS_NOWHERE ||
		    (what == ICF_LEADS_TO_ITSELF && n == 0 && c->from != FIRST))
			return false;
		packed &= is_packed(r, c, va, w);
		gap = what == ICF_LEADS_TO_ITSELF ? gap + 1 : 0;
		unsigned same = 0;
		while (what == ICF_LEADS_TO_CODE && same < n && seen[same] != to)
			same++;
		if (what == ICF_LEADS_TO_CODE && same == n)
			seen[n++] = to;
		if (n == (packed ? ENOUGH : ENOUGH_APART))
			return true;
	}
	return false;
}

/* Pins the targets of the words from FIRST on, up to one that leads nowhere. */
static void pin_table(struct reach *r, const struct count *c, uint64_t first)
{
	uint64_t w;
	for (uint64_t va = first; next_word(r, c, va, &w); va += c->step) {
		uint64_t to = means(c, first, va, w);
		enum icf_leads_to what = icf_leads(&r->code, to);
		if (what == ICF_LEADS_NOWHERE)
			return;
		icf_pin_place(r->prog, to);
	}
}

static bool leads_to_code(struct reach *r, const struct count *c, uint64_t va)
{
	uint64_t w;
	return next_word(r, c, va, &w) &&
	       icf_leads(&r->code, means(c, va, va, w)) == ICF_LEADS_TO_CODE;
}

/* A unit refers to something that begins at BASE and ends before END.  This may be a table relative
 * to BASE: at once, behind a few other words, or at any place with several words. */
static void pin_object(struct reach *r, uint64_t base, uint64_t end)
{
	if (end - base > MAX_OBJECT)
		end = base + MAX_OBJECT;
	struct count from_base = { NAME, base, end, 4 }, addresses = { ADDRESS, 0, end, 4 };
	for (uint64_t va = base; va < end && va - base < MAX_HEAD; va += 4) {
		pin_table(r, &from_base, va);
		if (!r->prog->img->pic)
			pin_table(r, &addresses, va);
	}
	for (uint64_t va = base; va < end; va += 4)
		for (from_base.step = 4;
		     from_base.step <= MAX_STEP && leads_to_code(r, &from_base, va);
		     from_base.step += 4)
			if (is_table(r, &from_base, va))
				pin_table(r, &from_base, va);
}

static void pin_objects(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	size_t k = LOWER_BOUND(0, r->named.v.len, mid, r->named.v.data[mid] < u->start);
	for (; k < r->named.v.len && r->named.v.data[k] < u->end; k++) {
		uint64_t base = r->named.v.data[k];
		if (k + 1 == r->named.v.len || r->named.v.data[k + 1] != base)
			pin_object(r, base,
				   k + 1 < r->named.v.len && r->named.v.data[k + 1] < u->end
					   ? r->named.v.data[k + 1]
					   : u->end);
	}
}

/* Every place that the unit, of SIZE bytes, could refer to may begin a table, in the unit or in
 * data.  Tables have no known end.  If those of many places overlap, everything counts as
 * reached. */
static void pin_own(struct reach *r, uint64_t size)
{
	uint64_t before = r->work;
	sort(&r->own);
	for (size_t k = 0; k < r->own.v.len; k++) {
		if ((r->work - before) / MAX_OWN >= size) {
			r->work = size * MAX_WORK;
			return;
		}
		uint64_t base = r->own.v.data[k];
		const struct count c = { NAME, base, UINT64_MAX, 4 };
		if (k == 0 || r->own.v.data[k - 1] != base)
			pin_table(r, &c, base);
	}
}

/* Pins tables from VA on; the first word leads to WHAT. */
static void pin_tables_at(struct reach *r, struct count *c, uint64_t va, enum icf_leads_to what)
{
	/* Most end with the first or second word. */
	if (c->from != FIRST && what == ICF_LEADS_TO_ITSELF)
		return;
	for (unsigned steps = c->steps; steps; steps &= steps - 1) {
		uint64_t w;
		c->step = 4 * ((unsigned)__builtin_ctz(steps) + 1);
		if (c->end - va < c->step + 4 || !word_at(r, va + c->step, &w) ||
		    icf_leads(&r->code, means(c, va, va + c->step, w)) == ICF_LEADS_NOWHERE) {
			r->work += 2;
			continue;
		}
		if (is_table(r, c, va))
			pin_table(r, c, va);
	}
}

/* The steps at which tables can begin at CHUNK places of a unit.  A table has a word that leads to
 * an instruction among its first MAX_GAP + 1, and few words do. */
struct starts {
	uint64_t va;                       /* the first place */
	uint8_t divide[MAX_FIRST / 4 + 1]; /* by a fourth of a distance: the steps that it consists
					      of, MAX_GAP at most */
	uint8_t steps[CHUNK];              /* bit k - 1: 4 * k bytes */
};

static void find_dividing(struct starts *s)
{
	for (unsigned d = 0; d <= MAX_FIRST / 4; d++)
		for (unsigned step = 1; step <= MAX_STEP / 4; step++)
			if (d % step == 0 && d / step <= MAX_GAP)
				s->divide[d] |= (uint8_t)(1u << (step - 1));
}

/* The word W at VA could be one of tables that begin up to MAX_FIRST bytes before. */
static void mark_steps(struct reach *r, struct starts *s, uint64_t va, uint64_t w)
{
	bool address = !r->prog->img->pic && icf_leads(&r->code, w) == ICF_LEADS_TO_CODE;
	for (unsigned d = 0; d <= MAX_FIRST / 4; d++) {
		uint64_t first = va - 4 * d;
		if (first - s->va < CHUNK &&
		    (address || icf_leads(&r->code, first + w) == ICF_LEADS_TO_CODE))
			s->steps[first - s->va] |= s->divide[d];
	}
}

/* Fills in S for the places from VA on, in unit U. */
static void find_starts(struct reach *r, const struct icf_unit *u, uint64_t va, struct starts *s)
{
	const uint8_t *p = icf_unit_bytes(r->prog, u) + (va - u->start);
	uint64_t n = u->end - va < 4 ? 0 : u->end - va - 3;
	n = n < CHUNK + MAX_FIRST ? n : CHUNK + MAX_FIRST;
	s->va = va;
	memset(s->steps, 0, sizeof s->steps);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t w = (uint64_t)(int64_t)(int32_t)elfrw_get32(p + i);
		if (icf_leads_near(&r->code, va + i + w) ||
		    (!r->prog->img->pic && icf_leads_near(&r->code, w)))
			mark_steps(r, s, va + i, w);
	}
}

static void pin_tables_from(struct reach *r, struct count *c, uint64_t va)
{
	uint64_t w;
	if (!next_word(r, c, va, &w))
		return;
	/* Relative to the first word and to its own place are the same here. */
	enum icf_leads_to what = icf_leads(&r->code, va + w);
	for (unsigned from = FIRST; from <= PLACE && what != ICF_LEADS_NOWHERE; from++) {
		c->from = (enum base)from;
		pin_tables_at(r, c, va, what);
	}
	c->from = ADDRESS;
	if (!r->prog->img->pic && icf_leads(&r->code, w) != ICF_LEADS_NOWHERE)
		pin_tables_at(r, c, va, icf_leads(&r->code, w));
}

static void pin_tables(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	uint64_t size = u->end - u->start;
	struct count c = { .end = u->end };
	struct starts s = { 0 };
	find_dividing(&s);
	for (uint64_t at = 0; at < size; at += CHUNK) {
		find_starts(r, u, u->start + at, &s);
		for (unsigned k = 0; k < CHUNK; k++) {
			uint64_t eight = 0;
			if (k % 8 == 0)
				memcpy(&eight, s.steps + k, 8);
			if (k % 8 == 0 && !eight)
				k += 7;
			else if (s.steps[k] && r->work / MAX_WORK < size) {
				c.steps = s.steps[k];
				pin_tables_from(r, &c, s.va + k);
			}
		}
	}
}

/* The same as pin_insn(), for halves of addresses. */
static bool pin_halves(struct reach *r, const struct elfrw_insn *in, const uint8_t *p)
{
	const struct elfrw_arch *arch = r->prog->arch;
	uint64_t to;
	if (icf_half_names(arch, &r->halves, in, p, &to) && !icf_in_exec(r->prog, to))
		return push(&r->own, to);
	if (in->pcrel_size && icf_is_half(arch, in))
		icf_pin_page(r->prog, &arch->form[arch->pcrel_form(in)], in->target);
	return true;
}

/* Pins the references of IN, if it is an instruction of unit I; its bytes are at P. */
static bool pin_insn(struct reach *r, uint32_t i, const struct elfrw_insn *in, const uint8_t *p)
{
	struct icf_program *prog = r->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	if (prog->arch->low_form && !pin_halves(r, in, p))
		return false;
	if (in->pcrel_size && !icf_is_half(prog->arch, in)) {
		bool branch = in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
			      in->kind == ELFRW_INSN_JCC;
		bool own = in->target - u->start < u->end - u->start;
		bool code = in->target - r->code.lo < r->code.hi - r->code.lo;
		if (code && !own)
			icf_pin_place(prog, in->target);
		if (!branch && (!code || own || icf_unit_at(prog, in->target) == ICF_NONE) &&
		    !push(&r->own, in->target))
			return false;
	}
	uint64_t number[] = { in->imm_size >= 4 ? elfrw_get_le(p + in->imm_off, in->imm_size) : 0,
			      in->disp_size == 4 ? elfrw_get32(p + in->disp_off) : 0 };
	for (unsigned n = 0; n < 2 && !prog->img->pic; n++)
		if (number[n] && icf_leads(&r->code, number[n]) != ICF_LEADS_NOWHERE)
			icf_pin_place(prog, number[n]);
	return true;
}

/* At which of the N bytes from POS on, in unit U, could an instruction begin that pin_insn() needs?
 * Stores 1 there, else 0. */
static void find_insns(struct reach *r, const struct icf_unit *u, uint64_t pos, size_t n,
		       uint8_t *may)
{
	const uint8_t *p = icf_unit_bytes(r->prog, u) + pos;
	uint64_t avail = u->end - u->start - pos;
	r->prog->arch->may_refer(p, avail, n, may);
	if (r->prog->arch->low_form)
		memset(may, 1, n);
	if (r->prog->img->pic)
		return;
	/* Numbers of 4 or 8 bytes could be addresses. */
	for (size_t q = 0; q < n + MAX_INSN && q + 4 <= avail; q++)
		if (r->code.hi > UINT32_MAX || icf_leads_near(&r->code, elfrw_get32(p + q)))
			for (size_t k = q < MAX_INSN ? 0 : q - MAX_INSN; k < q && k < n; k++)
				may[k] = 1;
}

/* Pins the references of all instructions that could begin in unit I. */
static bool pin_insns(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(r->prog, u);
	uint64_t size = u->end - u->start;
	uint8_t may[CHUNK];
	for (uint64_t at = 0; at < size; at += CHUNK) {
		size_t n = size - at < CHUNK ? size - at : CHUNK;
		find_insns(r, u, at, n, may);
		for (size_t k = 0; k < n; k++) {
			struct elfrw_insn in;
			uint64_t pos = at + k;
			if (may[k] &&
			    r->prog->arch->decode(code + pos, size - pos, u->start + pos, &in) &&
			    !pin_insn(r, i, &in, code + pos))
				return false;
		}
	}
	return true;
}

static struct elfrw_err *pin_inferred(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	uint64_t size = u->end - u->start;
	r->own.v.len = 0;
	r->work = 0;
	r->halves = (struct icf_halves){ 0 };
	if (!pin_insns(r, i))
		return &elfrw_err_nomem;
	pin_objects(r, i);
	pin_own(r, size);
	pin_tables(r, i);
	for (uint32_t k = 0; k < r->prog->unit.len && r->work / MAX_WORK >= size; k++)
		pin(r->prog, k);
	return NULL;
}

static struct elfrw_err *open_relocs(struct reach *r, uint32_t sec)
{
	if (r->rel_sec == sec)
		return NULL;
	elfrw_relocs_close(&r->rel);
	r->rel_sec = sec;
	return elfrw_relocs_open(&r->rel, r->prog->img, r->prog->exec.data[sec].shndx);
}

static bool same_section(const struct icf_program *prog, uint32_t a, uint32_t b)
{
	return b < prog->unit.len && prog->unit.data[a].sec == prog->unit.data[b].sec;
}

static struct elfrw_err *pin_all(struct reach *r)
{
	struct icf_program *prog = r->prog;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		if (prog->unit.data[i].kind != ICF_UNIT_OPAQUE)
			continue;
		pin(prog, i);
		/* The unit's bounds may be wrong: a neighbour may be its other half. */
		if (i > 0 && same_section(prog, i - 1, i))
			pin(prog, i - 1);
		if (same_section(prog, i, i + 1))
			pin(prog, i + 1);
		ELFRW_TRY(prog->inferred ? NULL : open_relocs(r, prog->unit.data[i].sec));
		ELFRW_TRY(prog->inferred ? pin_inferred(r, i) : icf_pin_known(prog, &r->rel, i));
	}
	return NULL;
}

struct elfrw_err *icf_pin_reach(struct icf_program *prog, unsigned threads)
{
	struct reach r = { .prog = prog, .rel_sec = ICF_NONE };
	bool any = false;
	for (uint32_t i = 0; i < prog->unit.len && !any; i++)
		any = prog->unit.data[i].kind == ICF_UNIT_OPAQUE;
	if (!any)
		return NULL;
	struct elfrw_err *err = NULL;
	if (!icf_leads_init(&r.code, prog) || !find_names(&r))
		err = &elfrw_err_nomem;
	if (!err)
		err = pin_all(&r);
	if (!err && prog->inferred)
		err = icf_infer_opaque_runs(prog, threads);
	elfrw_relocs_close(&r.rel);
	icf_leads_deinit(&r.code);
	VEC_FREE(&r.named.v);
	VEC_FREE(&r.own.v);
	return err;
}
