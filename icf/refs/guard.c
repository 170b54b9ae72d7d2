/* guard.c: functions whose address code compares with what a slot of a virtual table holds.
 *
 * Compilers guess which function a virtual call means: `if (slot == &A::m)` the body of A::m, or a
 * direct call of it, `else` the call.  GCC does so from -O2 on (-fdevirtualize-speculatively), all
 * do with a profile.  Two things would go wrong if slots led straight to shared code, as others do:
 *   - A::m is the copy that is kept: then the slots of all functions folded into it hold its
 *     address, and code that is named after A::m runs for their objects;
 *   - A::m has a thunk: then no slot holds its address, and the fast way is never taken.
 * So where addresses do not merge, the slots of such a function lead to its own address, and it is
 * not kept for functions that have slots of their own (fold/keep.c).
 *
 * Code takes the address by an instruction that computes it, or loads it from the global offset
 * table.  A pointer that lies in other data was put there by the programmer; compilers compare no
 * slot with it.  Cost: one pass over the references, if virtual tables are known. */
#include "elfrw/symtab.h"
#include "icf/refs/guard.h"
#include <string.h>

#define WINDOW 8 /* bytes of code before and behind a field, for elfrw_arch.relax */

static bool mark_slots(struct icf_program *prog)
{
	bool any = false;
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		struct icf_unit *u = d->unit != ICF_NONE ? &prog->unit.data[d->unit] : NULL;
		if (!u || d->quiet != ICF_QUIET_VTABLE || d->target != u->start)
			continue;
		u->flags |= ICF_UNIT_SLOT;
		any = true;
	}
	return any;
}

/* The function whose address the word at PLACE, of the global offset table, holds; or ICF_NONE. */
static uint32_t held_by(const struct icf_program *prog, uint64_t place)
{
	const struct icf_dataref *d = icf_dataref_at(prog, place);
	const struct icf_dynreloc *r = icf_dynreloc_at(prog, place);
	Elf64_Rela rela;
	Elf64_Sym sym;
	if (d)
		return d->unit;
	if (!r || r->kind != ELFRW_RELOC_SYMBOLIC || r->relr)
		return ICF_NONE;
	const struct elfrw_section *s = &prog->img->section[r->shndx];
	memcpy(&rela, s->data + (uint64_t)r->index * sizeof rela, sizeof rela);
	if (!elfrw_reloc_symbol(prog->img, s->hdr.sh_link, &rela, &sym) ||
	    sym.st_shndx == SHN_UNDEF)
		return ICF_NONE;
	return icf_unit_at(prog, sym.st_value);
}

/* Does the instruction of U with the reference REF only call or jump through a slot? */
static bool calls_through(const struct icf_program *prog, const struct icf_unit *u,
			  const struct icf_ref *ref)
{
	uint8_t code[2 * WINDOW + 8] = { 0 };
	const uint64_t from = ref->off > WINDOW ? ref->off - WINDOW : 0, size = u->end - u->start,
		       n = size - from < sizeof code ? size - from : sizeof code;
	memcpy(code, icf_unit_bytes(prog, u) + from, n);
	elfrw_form_blank(icf_ref_form(prog, ref), code + (ref->off - from));
	return prog->arch->relax &&
	       prog->arch->relax(code, n, (uint32_t)(ref->off - from), true).branch;
}

uint32_t icf_taken_by(const struct icf_program *prog, const struct elfrw_section *got,
		      const struct icf_unit *u, const struct icf_ref *ref)
{
	if (ref->kind == ICF_REF_BRANCH || (ref->flags & (ICF_REF_OWN | ICF_REF_HALF)))
		return ICF_NONE;
	if (ref->unit != ICF_NONE)
		return ref->target == prog->unit.data[ref->unit].start ? ref->unit : ICF_NONE;
	if (!got || ref->target - got->hdr.sh_addr >= got->hdr.sh_size ||
	    ref->kind != ICF_REF_PCREL || (ref->flags & ICF_REF_LEA) || calls_through(prog, u, ref))
		return ICF_NONE;
	return held_by(prog, ref->target);
}

void icf_find_guarded(struct icf_program *prog)
{
	if (!mark_slots(prog))
		return;
	const struct elfrw_section *got = elfrw_image_section(prog->img, ".got");
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++) {
			uint32_t t = icf_taken_by(prog, got, u, &ref[r]);
			if (t != ICF_NONE && (prog->unit.data[t].flags & ICF_UNIT_SLOT))
				prog->unit.data[t].flags |= ICF_UNIT_GUARDED;
		}
	}
}

bool icf_means_entry(const struct icf_program *prog, const struct icf_dataref *d)
{
	if (d->table != ICF_NONE)
		return false;
	return !d->quiet || (d->quiet == ICF_QUIET_VTABLE && d->unit != ICF_NONE &&
			     (prog->unit.data[d->unit].flags & ICF_UNIT_GUARDED));
}
