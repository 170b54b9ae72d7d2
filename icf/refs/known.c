/* known.c: what may bytes that are not understood refer to, in a file with kept relocations?
 *
 * Relocations tell most of it.  They do not tell what the assembler resolved (branches and
 * distances in one section), nor what the linker wrote itself: the address in a stub, whole or as
 * a distance from a place that the stub computes.  So these are pinned:
 *   - targets of branches and of PC-relative addresses; all of the page that a high half names;
 *   - what words lead to: as distances of 4 or 8 bytes from the unit's start, from their own
 *     places, and from the places that its code computes (outside of the unit if it is small; then
 *     also backwards); as addresses of 8 bytes;
 *   - what relocations name.
 * Where they lead into padding, it stays, with the units around it.
 *
 * Cost: linear in the bytes.  In a large unit, words count from the last place before them that its
 * code computes: tables lie behind the place that they count from. */
#include "icf/refs/known.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/infer/parts.h"
#include "icf/program/unit.h"
#include "icf/refs/code_reloc.h"
#include "icf/refs/ref.h"
#include <stdlib.h>

#define SMALL 4096 /* bytes of a unit in which each word may count from each place */

static void pin(struct icf_program *prog, uint64_t va)
{
	uint32_t i = icf_unit_at(prog, va);
	if (i != ICF_NONE)
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
}

/* No-ops may be there, through which control runs into the unit behind.  Or VA is the end of the
 * unit in front. */
static void pin_padding(struct icf_program *prog, uint64_t va)
{
	uint32_t k =
		(uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].start <= va);
	struct icf_unit *front = k ? &prog->unit.data[k - 1] : NULL,
			*behind = k < prog->unit.len ? &prog->unit.data[k] : NULL;
	if (front && va < prog->exec.data[front->sec].end)
		front->flags |= ICF_UNIT_PINNED | ICF_UNIT_PADDED;
	else
		front = NULL;
	if (!behind || va < prog->exec.data[behind->sec].start)
		return;
	behind->flags |= ICF_UNIT_PINNED;
	if (!front)
		icf_infer_loose(prog, va,
				"code that is not understood may enter the padding that begins a "
				"section");
}

void icf_pin_place(struct icf_program *prog, uint64_t va)
{
	uint32_t i = icf_unit_at(prog, va);
	if (i != ICF_NONE)
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
	else if (icf_in_exec(prog, va))
		pin_padding(prog, va);
}

void icf_pin_page(struct icf_program *prog, const struct elfrw_form *form, uint64_t page)
{
	uint64_t from, to;
	elfrw_form_span(form, page, &from, &to);
	icf_pin_place(prog, from);
	uint32_t i =
		(uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].end <= from);
	for (; i < prog->unit.len && prog->unit.data[i].start < to; i++) {
		prog->unit.data[i].flags |= ICF_UNIT_PINNED;
		if (prog->unit.data[i].end < to)
			icf_pin_place(prog, prog->unit.data[i].end);
	}
}

/* What the instructions of a unit tell of its words. */
struct insns {
	const struct elfrw_relocs *rel;
	struct icf_places base;  /* the places in the unit that they compute, ascending */
	struct icf_places outer; /* the places elsewhere that they compute, in a small unit */
	struct icf_places field; /* their PC-relative fields, which are pinned, ascending */
};

static bool push(struct icf_places *p, uint64_t va)
{
	uint64_t *slot = VEC_PUSH(&p->v);
	if (slot)
		*slot = va;
	return slot != NULL;
}

/* Pins what the instructions of U name. */
static bool pin_insns(struct icf_program *prog, const struct icf_unit *u, struct insns *ret)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	const struct elfrw_arch *arch = prog->arch;
	uint64_t size = u->end - u->start;
	for (uint64_t pos = 0; pos < size;) {
		struct elfrw_insn in;
		unsigned len = arch->decode(code + pos, size - pos, u->start + pos, &in);
		uint64_t at = u->start + pos;
		/* Instructions stand at multiples of the trap's size. */
		pos += len ? len : arch->fill_size;
		if (!len || !in.pcrel_size)
			continue;
		if (!push(&ret->field, at + in.pcrel_off))
			return false;
		if (icf_is_half(arch, &in))
			icf_pin_page(prog, &arch->form[arch->pcrel_form(&in)], in.target);
		else if (in.target - u->start >= size) {
			icf_pin_place(prog, in.target);
			if ((in.flags & ELFRW_INSN_LEA) && size <= SMALL &&
			    icf_in_exec(prog, in.target) && !push(&ret->outer, in.target))
				return false;
		} else if ((in.flags & ELFRW_INSN_LEA) && !push(&ret->base, in.target))
			return false;
	}
	if (ret->base.v.len)
		qsort(ret->base.v.data, ret->base.v.len, sizeof *ret->base.v.data, elfrw_u64_order);
	return true;
}

/* Is the word at VA a field?  Counted from where it is, or from the unit's start, it leads close to
 * what its instruction names: often into the padding in front of a function. */
static bool is_field(const struct insns *s, uint64_t va)
{
	size_t k = LOWER_BOUND(0, s->field.v.len, mid, s->field.v.data[mid] < va);
	return k < s->field.v.len && s->field.v.data[k] == va;
}

static bool has_reloc(const struct elfrw_relocs *rel, uint64_t va)
{
	size_t k = elfrw_relocs_from(rel, va);
	return k < rel->n && rel->rela[k].r_offset == va;
}

/* Pins what the word W at VA, in U, may lead to. */
static void pin_word(struct icf_program *prog, const struct icf_unit *u, uint64_t va, uint64_t w,
		     const struct insns *s)
{
	const struct icf_places *base = &s->base;
	bool small = u->end - u->start <= SMALL;
	size_t k = LOWER_BOUND(0, base->v.len, mid, base->v.data[mid] <= va);
	size_t end = small ? base->v.len : k;
	if (w == 0)
		return;
	bool field = is_field(s, va);
	for (unsigned n = 0; n <= ((va - u->start) % 4 == 0); n++) {
		uint64_t to = (n ? va : u->start) + w;
		if (field)
			pin(prog, to);
		else
			icf_pin_place(prog, to);
	}
	for (size_t b = small || k == 0 ? 0 : k - 1; b < end; b++)
		icf_pin_place(prog, base->v.data[b] + w);
	if (s->outer.v.len && ((va - u->start) % 4 != 0 || has_reloc(s->rel, va)))
		return;
	for (size_t b = 0; b < s->outer.v.len; b++) {
		icf_pin_place(prog, s->outer.v.data[b] + w);
		icf_pin_place(prog, s->outer.v.data[b] - w);
	}
}

static void pin_words(struct icf_program *prog, const struct icf_unit *u, const struct insns *s)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start;
	for (uint64_t pos = 0; pos + 4 <= size; pos++) {
		uint64_t w = (uint64_t)(int64_t)(int32_t)elfrw_get32(code + pos);
		pin_word(prog, u, u->start + pos, w, s);
		uint64_t eight = pos + 8 <= size ? elfrw_get64(code + pos) : w;
		if (pos + 8 <= size)
			icf_pin_place(prog, eight);
		if (eight != w)
			pin_word(prog, u, u->start + pos, eight, s);
	}
}

struct elfrw_err *icf_pin_known(struct icf_program *prog, const struct elfrw_relocs *rel,
				uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	struct insns s = { .rel = rel };
	bool ok = pin_insns(prog, u, &s);
	if (ok)
		pin_words(prog, u, &s);
	VEC_FREE(&s.base.v);
	VEC_FREE(&s.outer.v);
	VEC_FREE(&s.field.v);
	if (!ok)
		return &elfrw_err_nomem;
	for (size_t r = elfrw_relocs_from(rel, u->start);
	     r < rel->n && rel->rela[r].r_offset < u->end; r++) {
		Elf64_Sym sym;
		if (!elfrw_reloc_symbol(prog->img, rel->symtab, &rel->rela[r], &sym))
			continue;
		uint64_t to = sym.st_value + (uint64_t)rel->rela[r].r_addend;
		uint32_t type = (uint32_t)ELF64_R_TYPE(rel->rela[r].r_info);
		/* In front of what an instruction calls is padding, into which nothing leads. */
		bool field = prog->arch->reloc(type).kind != ELFRW_RELOC_ABS;
		icf_pin_place(prog, to + (field ? prog->arch->reloc_short : 0));
		pin(prog, to);
		pin(prog, to + 4);
		icf_pin_place(prog, sym.st_value);
		if (!field && icf_leads_astray(prog, &sym, to))
			icf_pin_astray(prog,
				       &(struct icf_astray){ sym, rel->rela[r].r_offset, to });
	}
	return NULL;
}
