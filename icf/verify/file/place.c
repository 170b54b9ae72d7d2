/* place.c: code that must stay where it was, because something outside of the file knows its
 * places: IN is loaded elsewhere than it runs, by start-up code that copies it, or is entered at an
 * address that is not in its code.  Or words of data lead to code that are too short to be changed.
 */
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <string.h>

/* Does relocation R, in a table with symbol table SYMTAB, put a part of code's address into a word
 * of less than four bytes? */
static bool is_short(const struct elfrw_image *in, uint32_t symtab, const Elf64_Rela *r)
{
	const struct elfrw_reloc_desc d = in->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	Elf64_Sym sym;
	return d.name && (d.kind == ELFRW_RELOC_ABS || d.kind == ELFRW_RELOC_PCREL) && d.size < 4 &&
	       elfrw_reloc_symbol(in, symtab, r, &sym) && sym.st_shndx != SHN_UNDEF &&
	       sym.st_shndx < in->n_sections &&
	       (in->section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR);
}

static bool has_short_words(const struct elfrw_image *in)
{
	for (uint32_t i = 1; i < in->n_sections; i++) {
		const struct elfrw_section *rel = &in->section[i];
		if (!elfrw_image_kept_relocs(in, rel) || rel->hdr.sh_info == 0)
			continue;
		const uint64_t flags = in->section[rel->hdr.sh_info].hdr.sh_flags;
		if (!(flags & SHF_ALLOC) || (flags & SHF_EXECINSTR))
			continue;
		for (uint64_t k = 0; k < rel->hdr.sh_size / sizeof(Elf64_Rela); k++) {
			Elf64_Rela r;
			memcpy(&r, rel->data + k * sizeof r, sizeof r);
			if (is_short(in, rel->hdr.sh_link, &r))
				return true;
		}
	}
	return false;
}

static const char short_words[] = "has words of two bytes or one that lead to code";

static const char *why_still(const struct icf_vclaim *c)
{
	const struct elfrw_image *in = &c->in;
	for (uint32_t p = 0; p < in->n_phdrs; p++)
		if (in->phdr[p].p_type == PT_LOAD && in->phdr[p].p_memsz && in->phdr[p].p_paddr &&
		    in->phdr[p].p_paddr != in->phdr[p].p_vaddr)
			return "is loaded elsewhere than it runs";
	if (in->ehdr.e_entry && !icf_v_in_exec(c, in->ehdr.e_entry))
		return "is entered outside of its code";
	return NULL;
}

void icf_v_check_places(const struct icf_vclaim *c, struct icf_vlog *log)
{
	/* They may lead to anywhere in a function, so none folds. */
	const bool literal = has_short_words(&c->in);
	const char *why = literal ? short_words : why_still(c);
	char name[200];
	for (uint32_t i = 0; why && i < c->unit.len; i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		if (u->entry != u->old ||
		    (u->body != u->old && (literal || !(u->flags & ICF_V_FOLDED))))
			icf_vlog_bad(
				log, ICF_VC_OBSERVED,
				"place: %s: expected it where it was, since the file %s, found 0x%llx",
				icf_v_where(c, u->old, name), why,
				ICF_VX(u->entry != u->old ? u->entry : u->body));
	}
}
