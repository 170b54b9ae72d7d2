/* tagged.c: pointers to functions whose lowest bits hold a tag.
 *
 * If the tag is larger than the function, the address lies behind it: in padding, which then seems
 * to belong to the function behind (glue.c), or in that one.  Nothing tells which of the two is
 * meant.  So both keep their places.  A tag fits into the bits that the function's alignment leaves
 * free, and the section has the largest alignment of its functions: without these bits the address
 * is the function's.  Branches have no tags; patchable entries (quiet) are the padding itself; the
 * labels of a jump table are no tags.
 *
 * A tag may also lead to the very start of another function.  Only a relocation can tell: its
 * symbol is the function that is meant.
 *
 * Cost: a few look-ups for each address. */
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/program/unit.h"
#include "icf/refs/pair.h"
#include "icf/refs/ref.h"

/* Exponents of two: the smallest alignment that leaves bits to compilers' users beside those that
 * languages take themselves, and the largest one that functions ask for, but for whole pages. */
#define LEAST 3
#define MOST  6

/* Does a symbol say that a function begins at VA?  Then that function is meant: the padding in
 * front of it may be its own, by its frame description. */
static bool has_symbol(const struct icf_program *prog, uint64_t va)
{
	const struct icf_symbol *sym = prog->sym.data;
	size_t n = prog->sym.len, k = LOWER_BOUND(0, n, mid, sym[mid].value < va);
	for (; k < n && sym[k].value == va; k++)
		if (sym[k].type == STT_FUNC)
			return true;
	return false;
}

/* Does unit I leave the lowest K bits of its address free, in a section of that alignment?  The
 * section of the address with the tag may be the next one. */
static bool has_room(const struct icf_program *prog, uint32_t i, unsigned k)
{
	uint32_t shndx = prog->exec.data[prog->unit.data[i].sec].shndx;
	return (uint64_t)1 << k <= prog->img->section[shndx].hdr.sh_addralign;
}

/* Unit TO, or padding in front of it, holds VA, whose address is taken. */
static void judge(struct icf_program *prog, uint32_t to, uint64_t va)
{
	const struct icf_unit *u = &prog->unit.data[to];
	if (va - u->start >= (uint64_t)1 << MOST ||
	    (va == u->start && !(u->flags & ICF_UNIT_EXTENDED)) || has_symbol(prog, va))
		return;
	for (unsigned k = LEAST; k <= MOST; k++) {
		uint64_t start = va & ~(((uint64_t)1 << k) - 1);
		uint32_t i = icf_unit_at(prog, start);
		/* The padding in front of that function may belong to it, too. */
		if (i != ICF_NONE && i != to && has_room(prog, i, k) &&
		    (prog->unit.data[i].start == start ||
		     (prog->unit.data[i].flags & ICF_UNIT_EXTENDED))) {
			icf_pin_named(prog, i);
			icf_pin_named(prog, to);
		}
	}
}

void icf_pin_tag(struct icf_program *prog, const Elf64_Sym *sym, uint64_t va)
{
	uint64_t tag = va - sym->st_value;
	uint32_t i = icf_unit_at(prog, sym->st_value), to = icf_unit_at(prog, va);
	if (ELF64_ST_TYPE(sym->st_info) != STT_FUNC || sym->st_shndx == SHN_UNDEF || !tag ||
	    tag < sym->st_size || tag >> MOST || i == ICF_NONE || i == to)
		return;
	icf_pin_named(prog, i);
	icf_pin_named(prog, to);
}

/* Could VA, the start of unit TO, be another function's address with a tag? */
static bool may_be_tagged(const struct icf_program *prog, uint32_t to, uint64_t va)
{
	for (unsigned k = LEAST; k <= MOST; k++) {
		uint64_t start = va & ~(((uint64_t)1 << k) - 1);
		uint32_t i = start == va ? ICF_NONE : icf_unit_at(prog, start);
		if (i != ICF_NONE && i != to && has_room(prog, i, k))
			return true;
	}
	return false;
}

/* Reference R of unit I leads to the start of a unit: does its relocation name another one? */
static struct elfrw_err *judge_named(struct icf_program *prog, uint32_t i, const struct icf_ref *r,
				     struct elfrw_relocs *rel, uint32_t *open)
{
	const struct icf_unit *u = &prog->unit.data[i];
	if (r->target != prog->unit.data[r->unit].start || !may_be_tagged(prog, r->unit, r->target))
		return NULL;
	if (*open != u->sec) {
		elfrw_relocs_close(rel);
		*open = ICF_NONE;
		ELFRW_TRY(elfrw_relocs_open(rel, prog->img, prog->exec.data[u->sec].shndx));
		*open = u->sec;
	}
	uint64_t place = u->start + r->off;
	size_t k = elfrw_relocs_from(rel, place);
	Elf64_Sym sym;
	if (k < rel->n && rel->rela[k].r_offset == place &&
	    elfrw_reloc_symbol(prog->img, rel->symtab, &rel->rela[k], &sym))
		icf_pin_tag(prog, &sym, r->target);
	return NULL;
}

struct elfrw_err *icf_pin_tagged(struct icf_program *prog)
{
	struct elfrw_relocs rel = { 0 };
	struct elfrw_err *err = NULL;
	uint32_t open = ICF_NONE;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref && !err; r++)
			if ((ref[r].flags & ICF_REF_LEA) && ref[r].unit != ICF_NONE &&
			    ref[r].unit != i) {
				judge(prog, ref[r].unit, ref[r].target);
				if (!prog->inferred)
					err = judge_named(prog, i, &ref[r], &rel, &open);
			}
	}
	elfrw_relocs_close(&rel);
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (d->kind == ICF_DATA_ADDRESS && d->table == ICF_NONE && !d->quiet &&
		    d->unit != ICF_NONE)
			judge(prog, d->unit, d->target);
	}
	return err;
}
