/* referenced.c: which sections the layout may move: those that nothing refers to.
 *
 * Unwind tables close up; notes and .interp make room for program headers.  Program headers and
 * symbols find these sections, and follow them.  A section stays if its address appears anywhere
 * else, in code, data or dynamic relocations, or if a field in it counts from its own place.  Kept
 * relocations mark such addresses.  Without them every byte of data counts as the start of a
 * distance or address, and only notes with a known owner are believed to hold none.  Cost: one pass
 * over the data. */
#include "elfrw/note.h"
#include "icf/apply/apply.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/symtab.h"
#include "icf/refs/ref.h"
#include <string.h>

static bool is_unwind(const struct elfrw_section *s)
{
	return strncmp(s->name, ".eh_frame", 9) == 0 ||
	       strncmp(s->name, ".gcc_except_table", 17) == 0;
}

static bool is_note(const struct elfrw_section *s)
{
	return s->hdr.sh_type == SHT_NOTE || strcmp(s->name, ".interp") == 0;
}

static bool is_candidate(const struct elfrw_section *s)
{
	return (s->hdr.sh_flags & SHF_ALLOC) &&
	       (is_note(s) || strncmp(s->name, ".eh_frame", 9) == 0 ||
		strcmp(s->name, ".gcc_except_table") == 0);
}

static bool by_code(const struct icf_program *prog, uint64_t lo, uint64_t size)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].target - lo < size)
				return true;
	}
	return false;
}

/* By kept relocations: does one in data refer to section S, or does one stand in S, if S is a note?
 * Unwind tables are rewritten by their own format. */
static bool by_kept(const struct icf_program *prog, uint32_t shndx)
{
	const struct elfrw_image *img = prog->img;
	const struct elfrw_section *sec = &img->section[shndx];
	uint64_t lo = sec->hdr.sh_addr, size = sec->hdr.sh_size;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *rel = &img->section[i];
		if (rel->hdr.sh_type != SHT_RELA || (rel->hdr.sh_flags & SHF_ALLOC) || !rel->data ||
		    !rel->hdr.sh_info || rel->hdr.sh_info >= img->n_sections ||
		    rel->hdr.sh_link != img->symtab || !img->section[img->symtab].data)
			continue;
		const struct elfrw_section *at = &img->section[rel->hdr.sh_info],
					   *syms = &img->section[img->symtab];
		if (!(at->hdr.sh_flags & SHF_ALLOC) || (at->hdr.sh_flags & SHF_EXECINSTR) ||
		    is_unwind(at))
			continue;
		if (rel->hdr.sh_info == shndx && rel->hdr.sh_size)
			return true;
		for (uint64_t off = 0; off + sizeof(Elf64_Rela) <= rel->hdr.sh_size;
		     off += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			Elf64_Sym sym;
			memcpy(&r, rel->data + off, sizeof r);
			if (!elfrw_symbol(syms, ELF64_R_SYM(r.r_info), &sym))
				continue;
			/* The addend of a distance counts from the end of its field, or from
			 * elsewhere. */
			uint64_t to = sym.st_value + (uint64_t)r.r_addend;
			if (sym.st_shndx == shndx || to - lo < size || to + 4 - lo < size)
				return true;
		}
	}
	return false;
}

/* Without relocations: by words that may be a distance from their place or end, or an address. */
static bool by_data(const struct icf_program *prog, uint64_t lo, uint64_t size)
{
	const struct elfrw_image *img = prog->img;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) ||
		    s->hdr.sh_type != SHT_PROGBITS || !s->data || is_unwind(s) || is_note(s))
			continue;
		for (uint64_t off = 0; off + 4 <= s->hdr.sh_size; off++) {
			uint32_t w = elfrw_get32(s->data + off);
			uint64_t to = s->hdr.sh_addr + off + (uint64_t)(int64_t)(int32_t)w;
			if (to - lo < size || to + 4 - lo < size || (!img->pic && w - lo < size))
				return true;
		}
	}
	return false;
}

/* Does the note section S hold only notes that are known to have neither addresses nor
 * distances? */
static bool is_known_note(const struct elfrw_section *s)
{
	static const char *const known[] = {
		"GNU", "FDO", "Android", "FreeBSD", "NetBSD", "OpenBSD"
	};
	if (s->hdr.sh_type != SHT_NOTE)
		return true;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->data ? s->hdr.sh_size : 0);
	struct elfrw_note note;
	while (elfrw_note_next(&r, s->hdr.sh_addralign == 8 ? 8 : 4, &note)) {
		bool found = false;
		for (size_t k = 0; k < sizeof known / sizeof *known; k++)
			found |= elfrw_note_is(&note, known[k], note.type);
		if (!found)
			return false;
	}
	return !r.bad;
}

void icf_apply_referenced(struct icf_apply *a)
{
	const struct icf_program *prog = a->prog;
	for (uint32_t s = 1; s < prog->img->n_sections; s++) {
		const struct elfrw_section *sec = &prog->img->section[s];
		uint64_t lo = sec->hdr.sh_addr, size = sec->hdr.sh_size;
		if (!is_candidate(sec))
			continue;
		bool hit = by_code(prog, lo, size);
		for (size_t i = 0; i < prog->dynreloc.len && !hit; i++)
			hit = prog->dynreloc.data[i].addend - lo < size ||
			      prog->dynreloc.data[i].place - lo < size;
		hit = hit || by_kept(prog, s);
		if (prog->inferred && is_note(sec))
			hit = hit || !is_known_note(sec) || by_data(prog, lo, size);
		a->out->sec[s].referenced = hit;
	}
}
