/* astray.c: relocations whose value lies elsewhere than what their symbol names.
 *
 * A table of which only the elements from 100 on are used may be addressed as `table - 400`: the
 * number is where other data, or a function, is.  A pointer to a function may hold a tag in its
 * high bits, or a number that its user subtracts: then it is in no function, or in another one.
 * Such a number moves with what its symbol names, not with what is at its value.  So both keep
 * their places, and the number stays as it is.
 *
 * The number must be what symbol and addend say.  Else the symbol is another one than the linker's:
 * eu-unstrip gives symbols other numbers, and leaves the relocations as they are.
 *
 * If the symbol is that of a section of code, and the value is in no code, nothing tells which
 * function is meant: nothing moves.  A value in other code is believed.
 *
 * Cost: a few comparisons for each relocation; a look-up for those of functions that do not name
 * their start. */
#include "icf/refs/code_reloc.h"
#include "icf/infer/parts.h"
#include "icf/program/unit.h"
#include "icf/refs/known.h"

/* The section that SYM is defined in, if it is loaded, or NULL.  What names the resolver of an
 * indirect function gets another address: that of a stub. */
static const struct elfrw_section *section_of(const struct icf_program *prog, const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= prog->img->n_sections ||
	    type == STT_TLS || type == STT_GNU_IFUNC)
		return NULL;
	const struct elfrw_section *s = &prog->img->section[sym->st_shndx];
	return s->hdr.sh_flags & SHF_ALLOC ? s : NULL;
}

bool icf_leads_astray(const struct icf_program *prog, const Elf64_Sym *sym, uint64_t value)
{
	if (value == sym->st_value)
		return false;
	const struct elfrw_section *s = section_of(prog, sym);
	if (!s)
		return false;
	if (!(s->hdr.sh_flags & SHF_EXECINSTR))
		return icf_in_exec(prog, value);
	if (ELF64_ST_TYPE(sym->st_info) == STT_SECTION)
		return !icf_in_exec(prog, value) && !icf_ends_exec(prog, value);
	uint32_t i = icf_unit_at(prog, sym->st_value);
	const struct icf_unit *u = i != ICF_NONE ? &prog->unit.data[i] : NULL;
	return !u || value - u->start > u->end - u->start;
}

void icf_pin_astray(struct icf_program *prog, const struct icf_astray *a)
{
	const struct elfrw_section *s = section_of(prog, &a->sym);
	bool code = s && (s->hdr.sh_flags & SHF_EXECINSTR);
	if (code && ELF64_ST_TYPE(a->sym.st_info) == STT_SECTION)
		icf_infer_loose(prog, a->place,
				"a relocation against a section of code leads out of it");
	else if (code)
		icf_pin_place(prog, a->sym.st_value);
	icf_pin_place(prog, a->value);
}

void icf_pin_all_astray(struct icf_program *prog)
{
	for (uint32_t c = 0; c < prog->n_chunks; c++)
		for (size_t k = 0; k < prog->chunk[c].astray.len; k++)
			icf_pin_astray(prog, &prog->chunk[c].astray.data[k]);
}
