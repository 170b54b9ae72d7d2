/* reach.c: what may bytes that are not understood refer to?
 *
 * They stay where they are, and so does every unit that they could reach, or be reached from, by a
 * distance that nobody sees: a distance between two things that stay is still right.  What they
 * could mean:
 *   - code: a branch or an address that counts from an instruction.  Where no relocation tells
 *     more, an instruction may begin at each byte;
 *   - tables of distances, which somebody names: the code around, a pointer, a symbol, their own
 *     code.  A table is counted from its first byte.  Its words, 4 bytes each, are believed that
 *     lead to an instruction or into the same unit, up to the first that leads elsewhere; one that
 *     is named from outside may have a head of other words;
 *   - words that nobody names: of those that lead to the entry of a function the search of
 *     infer/run.c judges, lone ones too.  What leads behind an entry belongs to a switch, so it
 *     does not come alone: words at equal steps, counted from the first of them, from the last
 *     place that something names or from their own places, lead to different instructions.
 * A file with fixed addresses may hold addresses as well: numbers of an instruction, and words at
 * equal steps. Where relocations were kept, they tell what is meant elsewhere; what the assembler
 * resolved is near, and any word could be it.
 *
 * Not seen: distances into the middle of a function that are alone and not in a table that is
 * named, are shorter than 4 bytes, or count in larger units.  Whoever jumps through such is not
 * accounted for and stays (infer/unit.c), or is not understood itself.
 *
 * Cost: linear in the bytes; a unit that something leads into is decoded once more.  Where the
 * words are so many that it would not be, everything is pinned. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/infer/parts.h"
#include "icf/refs/ref.h"
#include "icf/program/unit.h"
#include <stdlib.h>

#define MAX_OBJECT 4096 /* bytes of a table that is named from outside */
#define MAX_STEP   32   /* bytes from one word to the next */
#define MAX_GAP    8    /* words in a row that lead into the unit itself */
#define MAX_LOOK   64   /* words in which a table shows */
#define MAX_WORK   256  /* words that are looked at for each byte */
#define MAX_HEAD   16   /* bytes at the start of a table that is named */
#define ENOUGH     3    /* words one behind the other that lead to different instructions */
#define ENOUGH_APART                                                                             \
	6 /* the same of words with something else between them, as code has at equal steps, too \
	   */

struct reach {
	struct icf_program *prog;
	struct icf_bits insn;        /* where instructions begin, of the units in `read` */
	uint8_t *read;               /* by unit */
	struct icf_places named;     /* places in units that are not understood, that something else
					names; ascending */
	struct icf_places own;       /* places that the unit which is looked at could name */
	const struct icf_unit *unit; /* that one */
	const uint8_t *bytes;        /* its bytes, borrowed */
	uint64_t work;               /* words that were looked at for it */
};

static void pin(struct icf_program *prog, uint32_t i)
{
	if (i != ICF_NONE)
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
}

static void read_unit(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(r->prog, u);
	struct elfrw_insn in;
	r->read[i] = 1;
	for (uint64_t pos = 0; pos < u->end - u->start; pos += in.len) {
		icf_set_bit(&r->insn, u->start + pos);
		if (!r->prog->arch->decode(code + pos, u->end - u->start - pos, u->start + pos,
					   &in))
			break;
	}
}

enum leads { NOWHERE, TO_ITSELF, TO_CODE };

/* Where does unit I's word that means TO lead?  What else is not understood stays as well, and
 * nothing is in padding. */
static enum leads leads(struct reach *r, uint32_t i, uint64_t to)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	if (to - u->start < u->end - u->start)
		return TO_ITSELF;
	if (!icf_in_exec(r->prog, to))
		return NOWHERE;
	uint32_t k = icf_unit_at(r->prog, to);
	if (k == ICF_NONE || k == i || r->prog->unit.data[k].kind == ICF_UNIT_OPAQUE)
		return TO_ITSELF;
	if (!r->read[k])
		read_unit(r, k);
	return icf_bit(&r->insn, to) ? TO_CODE : NOWHERE;
}

static bool word_at(const struct reach *r, uint64_t va, uint64_t *ret)
{
	bool here = va >= r->unit->start && va < r->unit->end && r->unit->end - va >= 4;
	const uint8_t *p =
		here ? r->bytes + (va - r->unit->start) : elfrw_image_at(r->prog->img, va, 4);
	if (p)
		*ret = (uint64_t)(int64_t)(int32_t)elfrw_get32(p);
	return p != NULL;
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
	bool ok = true;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t k = 0; k < prog->unit.data[i].n_ref; k++)
			ok = ok && (ref[k].kind == ICF_REF_BRANCH || name(r, ref[k].target));
		ok = ok && name(r, prog->unit.data[i].start);
	}
	for (size_t i = 0; i < prog->dataref.len && ok; i++)
		ok = prog->dataref.data[i].pcrel || name(r, prog->dataref.data[i].target);
	for (size_t i = 0; i < prog->sym.len && ok; i++)
		ok = name(r, prog->sym.data[i].value);
	sort(&r->named);
	return ok;
}

enum base { FIRST, PLACE, ADDRESS, NAME };

/* How words count. */
struct count {
	enum base from;
	uint64_t name; /* NAME */
	uint64_t end;  /* of what they are in */
	unsigned step; /* from one to the next */
};

static uint64_t means(const struct count *c, uint64_t first, uint64_t va, uint64_t w)
{
	switch (c->from) {
	case FIRST: return first + w;
	case PLACE: return va + w;
	case NAME: return c->name + w;
	default: return w;
	}
}

/* Reads the word at VA, if it ends before C->end. */
static bool next_word(struct reach *r, const struct count *c, uint64_t va, uint64_t *w)
{
	r->work++;
	return va < c->end && c->end - va >= 4 && word_at(r, va, w);
}

/* Is what stands between the words at VA and the next one the upper half of a number of 8 bytes? */
static bool is_packed(const struct reach *r, const struct count *c, uint64_t va, uint64_t w)
{
	uint64_t upper;
	return c->step == 4 ||
	       (c->step == 8 && word_at(r, va + 4, &upper) && upper == (w >> 63 ? UINT64_MAX : 0));
}

/* Do words of unit I from FIRST on lead to different instructions? */
static bool is_table(struct reach *r, uint32_t i, const struct count *c, uint64_t first)
{
	uint64_t seen[ENOUGH_APART], w, va = first;
	unsigned n = 0, gap = 0;
	bool packed = true;
	for (unsigned k = 0; k < MAX_LOOK && gap <= MAX_GAP && next_word(r, c, va, &w);
	     k++, va += c->step) {
		uint64_t to = means(c, first, va, w);
		enum leads what = leads(r, i, to);
		if (what == NOWHERE || (what == TO_ITSELF && n == 0 && c->from != FIRST))
			return false;
		packed &= is_packed(r, c, va, w);
		gap = what == TO_ITSELF ? gap + 1 : 0;
		unsigned same = 0;
		while (what == TO_CODE && same < n && seen[same] != to)
			same++;
		if (what == TO_CODE && same == n)
			seen[n++] = to;
		if (n == (packed ? ENOUGH : ENOUGH_APART))
			return true;
	}
	return false;
}

/* Pins what the words from FIRST on lead to, up to one that leads nowhere. */
static void pin_table(struct reach *r, uint32_t i, const struct count *c, uint64_t first)
{
	uint64_t w;
	for (uint64_t va = first; next_word(r, c, va, &w); va += c->step) {
		uint64_t to = means(c, first, va, w);
		enum leads what = leads(r, i, to);
		if (what == NOWHERE)
			return;
		if (what == TO_CODE)
			pin(r->prog, icf_unit_at(r->prog, to));
	}
}

/* Unit I holds something that begins at BASE and ends before END, which may be a table that is
 * counted from there: at once, behind a few other words, or anywhere in it where words keep
 * company. */
static void pin_object(struct reach *r, uint32_t i, uint64_t base, uint64_t end)
{
	if (end - base > MAX_OBJECT)
		end = base + MAX_OBJECT;
	struct count from_base = { NAME, base, end, 4 }, addresses = { ADDRESS, 0, end, 4 };
	for (uint64_t va = base; va < end && va - base < MAX_HEAD; va += 4) {
		pin_table(r, i, &from_base, va);
		if (!r->prog->img->pic)
			pin_table(r, i, &addresses, va);
	}
	for (uint64_t va = base; va < end; va += 4)
		for (from_base.step = 4; from_base.step <= MAX_STEP; from_base.step += 4)
			if (is_table(r, i, &from_base, va))
				pin_table(r, i, &from_base, va);
}

static void pin_objects(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	size_t k = LOWER_BOUND(0, r->named.v.len, mid, r->named.v.data[mid] < u->start);
	for (; k < r->named.v.len && r->named.v.data[k] < u->end; k++) {
		uint64_t base = r->named.v.data[k];
		if (k + 1 == r->named.v.len || r->named.v.data[k + 1] != base)
			pin_object(r, i, base,
				   k + 1 < r->named.v.len && r->named.v.data[k + 1] < u->end
					   ? r->named.v.data[k + 1]
					   : u->end);
	}
}

/* What unit I could name may begin a table, there or in the data. */
static void pin_own(struct reach *r, uint32_t i)
{
	sort(&r->own);
	for (size_t k = 0; k < r->own.v.len; k++) {
		uint64_t base = r->own.v.data[k];
		const struct count c = { NAME, base, UINT64_MAX, 4 };
		if (k == 0 || r->own.v.data[k - 1] != base)
			pin_table(r, i, &c, base);
	}
}

static void pin_tables(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	struct count c = { .end = u->end };
	for (uint64_t va = u->start, w;
	     next_word(r, &c, va, &w) && r->work / MAX_WORK < u->end - u->start; va++)
		for (unsigned from = FIRST; from <= (r->prog->img->pic ? PLACE : ADDRESS); from++) {
			c.from = (enum base)from;
			if (leads(r, i, means(&c, va, va, w)) == NOWHERE)
				continue;
			for (c.step = 4; c.step <= MAX_STEP; c.step += 4)
				if (is_table(r, i, &c, va))
					pin_table(r, i, &c, va);
		}
}

/* What the instruction IN of unit I, if it is one, refers to; its bytes are at P. */
static bool pin_insn(struct reach *r, uint32_t i, const struct elfrw_insn *in, const uint8_t *p)
{
	struct icf_program *prog = r->prog;
	if (in->pcrel_size) {
		uint32_t k = icf_unit_at(prog, in->target);
		bool branch = in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
			      in->kind == ELFRW_INSN_JCC;
		if (k != i)
			pin(prog, k);
		if (!branch && (k == ICF_NONE || k == i) && !push(&r->own, in->target))
			return false;
	}
	uint64_t number[] = { in->imm_size >= 4 ? elfrw_get_le(p + in->imm_off, in->imm_size) : 0,
			      in->disp_size == 4 ? elfrw_get32(p + in->disp_off) : 0 };
	for (unsigned n = 0; n < 2 && !prog->img->pic; n++)
		if (number[n] && leads(r, i, number[n]) == TO_CODE)
			pin(prog, icf_unit_at(prog, number[n]));
	return true;
}

static struct elfrw_err *pin_inferred(struct reach *r, uint32_t i)
{
	const struct icf_unit *u = &r->prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(r->prog, u);
	uint64_t size = u->end - u->start;
	r->own.v.len = 0;
	r->unit = u;
	r->bytes = code;
	r->work = 0;
	for (uint64_t pos = 0; pos < size; pos++) {
		struct elfrw_insn in;
		if (r->prog->arch->decode(code + pos, size - pos, u->start + pos, &in) &&
		    !pin_insn(r, i, &in, code + pos))
			return &elfrw_err_nomem;
	}
	pin_objects(r, i);
	pin_own(r, i);
	pin_tables(r, i);
	for (uint32_t k = 0; k < r->prog->unit.len && r->work / MAX_WORK >= size; k++)
		pin(r->prog, k);
	return NULL;
}

/* Relocations were kept: code with branches, a table of distances from its start or from the words
 * themselves, relocated fields. */
static struct elfrw_err *pin_known(struct icf_program *prog, uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	for (uint64_t pos = 0; pos < size;) {
		struct elfrw_insn in;
		unsigned len = prog->arch->decode(code + pos, size - pos, u->start + pos, &in);
		if (len && in.pcrel_size && in.target - u->start >= size)
			pin(prog, icf_unit_at(prog, in.target));
		pos += len ? len : 1;
	}
	for (uint64_t pos = 0; pos + 4 <= size; pos++) {
		uint64_t d = (uint64_t)(int64_t)(int32_t)elfrw_get32(code + pos);
		if (d == 0)
			continue;
		pin(prog, icf_unit_at(prog, u->start + d));
		if (pos % 4 == 0)
			pin(prog, icf_unit_at(prog, u->start + pos + d));
	}
	struct icf_code_relocs rel;
	ELFRW_TRY(icf_code_relocs_open(&rel, prog, &prog->exec.data[u->sec]));
	for (size_t r = icf_code_relocs_from(&rel, u->start);
	     r < rel.n && rel.rela[r].r_offset < u->end; r++) {
		Elf64_Sym sym;
		if (!icf_reloc_symbol(prog->img, rel.symtab, &rel.rela[r], &sym))
			continue;
		pin(prog, icf_unit_at(prog, sym.st_value + (uint64_t)rel.rela[r].r_addend));
		pin(prog, icf_unit_at(prog, sym.st_value + (uint64_t)rel.rela[r].r_addend + 4));
		pin(prog, icf_unit_at(prog, sym.st_value));
	}
	icf_code_relocs_close(&rel);
	return NULL;
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
		/* Short of room on both sides, the neighbours may be its other half. */
		if (i > 0 && same_section(prog, i - 1, i))
			pin(prog, i - 1);
		if (same_section(prog, i, i + 1))
			pin(prog, i + 1);
		ELFRW_TRY(prog->inferred ? pin_inferred(r, i) : pin_known(prog, i));
	}
	return NULL;
}

struct elfrw_err *icf_pin_reach(struct icf_program *prog, unsigned threads)
{
	struct reach r = { .prog = prog };
	bool any = false;
	for (uint32_t i = 0; i < prog->unit.len && !any; i++)
		any = prog->unit.data[i].kind == ICF_UNIT_OPAQUE;
	if (!any)
		return NULL;
	struct elfrw_err *err = NULL;
	r.read = calloc(prog->unit.len + 1, 1);
	if (!r.read ||
	    !icf_bits_init(&r.insn, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end) ||
	    !find_names(&r))
		err = &elfrw_err_nomem;
	if (!err)
		err = pin_all(&r);
	if (!err && prog->inferred)
		err = icf_infer_opaque_runs(prog, threads);
	free(r.read);
	icf_bits_deinit(&r.insn);
	VEC_FREE(&r.named.v);
	VEC_FREE(&r.own.v);
	return err;
}
