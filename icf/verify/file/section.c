/* section.c: the headers of OUT's sections must follow from those of IN. */
#include "elfrw/arch/judge.h"
#include "icf/verify/file/state.h"
#include "icf/verify/state.h"
#include <string.h>

static bool may_be_dropped(const struct elfrw_section *s)
{
	return !(s->hdr.sh_flags & SHF_ALLOC) &&
	       (s->hdr.sh_type == SHT_RELA || s->hdr.sh_type == SHT_REL ||
		icf_v_is_debug_name(s->name) || strncmp(s->name, ".stab", 5) == 0 ||
		strncmp(s->name, ".gnu.debuglto_", 14) == 0 || icf_v_is_records(s) ||
		strcmp(s->name, ".pseudo_probe") == 0 ||
		strncmp(s->name, ".gnu.build.attributes", 21) == 0 ||
		s->hdr.sh_type == 0x6fff4c03 ||
		s->hdr.sh_type == 0x6fff4c09 || /* SHT_LLVM_ADDRSIG, SHT_LLVM_CALL_GRAPH_PROFILE */
		strcmp(s->name, ".gnu_debugdata") == 0 || strcmp(s->name, ".gnu_debuglink") == 0);
}

/* Debug information may need forms of addresses that IN did not use, and the record of folding. */
static bool may_be_added(const struct elfrw_section *s)
{
	static const char *const name[] = {
		".debug_abbrev",   ".debug_addr",  ".debug_aranges",  ".debug_info",
		".debug_line",     ".debug_loc",   ".debug_loclists", ".debug_ranges",
		".debug_rnglists", ".debug_str",   ".debug_line_str", ".debug_icfold",
		".debug_dcall",    ".debug_vcall", ".gnu_debuglink"
	};
	for (size_t i = 0; i < sizeof name / sizeof *name; i++)
		if (strcmp(s->name, name[i]) == 0)
			return !(s->hdr.sh_flags & SHF_ALLOC);
	return false;
}

/* Reads a compressed section's header; *ALIGN: the alignment of its bytes.  (gABI, "Section
 * Compression") */
static bool unpacked_align(const struct elfrw_image *img, const Elf64_Shdr *h, uint64_t *align,
			   uint32_t *reserved)
{
	Elf64_Chdr c;
	*align = h->sh_addralign;
	*reserved = 0;
	if (!(h->sh_flags & SHF_COMPRESSED))
		return true;
	if (h->sh_size < sizeof c || h->sh_offset > img->size ||
	    img->size - h->sh_offset < sizeof c)
		return false;
	memcpy(&c, img->base + h->sh_offset, sizeof c);
	*align = c.ch_addralign;
	*reserved = c.ch_reserved;
	return true;
}

/* X: NULL if only OUT has the section.  The header's reserved word is 0; LLVM 14 leaves what was in
 * memory there, so one that IN has may stay. */
static void check_packed(const struct icf_vclaim *c, struct icf_vlog *log, const Elf64_Shdr *x,
			 const struct elfrw_section *s)
{
	const Elf64_Shdr *y = &s->hdr;
	uint64_t want = 1, have;
	uint32_t old = 0, reserved;
	if (!((x ? x->sh_flags : 0) & SHF_COMPRESSED) && !(y->sh_flags & SHF_COMPRESSED))
		return;
	if (x && !unpacked_align(&c->in, x, &want, &old))
		return;
	if (!unpacked_align(&c->out, y, &have, &reserved) || have != want ||
	    (reserved && reserved != old) ||
	    (x && (x->sh_flags & y->sh_flags & SHF_COMPRESSED) &&
	     x->sh_addralign != y->sh_addralign) ||
	    (y->sh_addralign != 8 && y->sh_addralign > 1 &&
	     !(x && x->sh_addralign == y->sh_addralign)))
		icf_vlog_bad(
			log, ICF_VC_SECTION,
			"compression: %s: expected bytes that are aligned to %llu, found another header",
			s->name, ICF_VX(want));
}

/* Does a segment of IMG have section H at H's offset? */
static bool is_in_place(const struct elfrw_image *img, const Elf64_Shdr *h)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if ((ph->p_type == PT_LOAD || (ph->p_type == PT_TLS && h->sh_flags & SHF_TLS)) &&
		    h->sh_addr >= ph->p_vaddr && h->sh_addr - ph->p_vaddr <= ph->p_memsz &&
		    h->sh_offset - ph->p_offset == h->sh_addr - ph->p_vaddr)
			return true;
	}
	return false;
}

/* Zeros have no bytes, but an offset: readers tell by it which segment a section is in.  (mold says
 * 0 for all of them.) */
static void check_zeros(const struct icf_vclaim *c, struct icf_vlog *log,
			const struct elfrw_section *a, const struct elfrw_section *b)
{
	if (a->hdr.sh_type == SHT_NOBITS && a->hdr.sh_size && is_in_place(&c->in, &a->hdr) &&
	    !is_in_place(&c->out, &b->hdr))
		icf_vlog_bad(log, ICF_VC_SECTION,
			     "offset: %s (0x%llx): expected its place in its segment, found 0x%llx",
			     a->name, ICF_VX(b->hdr.sh_addr), ICF_VX(b->hdr.sh_offset));
}

static void check_section(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t i)
{
	const struct elfrw_section *a = &c->in.section[i], *b = &c->out.section[c->to_out[i]];
	const Elf64_Shdr *x = &a->hdr, *y = &b->hdr;
	log->checked[ICF_VC_SECTION]++;
	/* Sections that describe the program may be compressed in one file only. */
	uint64_t may = x->sh_flags & SHF_ALLOC ? 0 : SHF_COMPRESSED;
	bool alloc = x->sh_flags & SHF_ALLOC, packed = (x->sh_flags | y->sh_flags) & may;
	if (((x->sh_flags ^ y->sh_flags) & ~may) || x->sh_entsize != y->sh_entsize)
		icf_vlog_bad(
			log, ICF_VC_SECTION,
			"header: %s: expected flags 0x%llx and entries of %llu bytes, found 0x%llx and %llu",
			a->name, ICF_VX(x->sh_flags), ICF_VX(x->sh_entsize), ICF_VX(y->sh_flags),
			ICF_VX(y->sh_entsize));
	if (x->sh_addralign != y->sh_addralign && !packed)
		icf_vlog_bad(log, ICF_VC_SECTION, "alignment: %s: expected %llu, found %llu",
			     a->name, ICF_VX(x->sh_addralign), ICF_VX(y->sh_addralign));
	check_packed(c, log, x, b);
	uint32_t link = x->sh_link < c->in.n_sections ? c->to_out[x->sh_link] : x->sh_link;
	if (link != y->sh_link)
		icf_vlog_bad(log, ICF_VC_SECTION, "link: %s: expected %u, found %u", a->name, link,
			     y->sh_link);
	bool info =
		(x->sh_flags & SHF_INFO_LINK) || x->sh_type == SHT_RELA || x->sh_type == SHT_REL;
	uint32_t want = info && x->sh_info < c->in.n_sections ? c->to_out[x->sh_info] : x->sh_info;
	if (want != y->sh_info && x->sh_type != SHT_SYMTAB)
		icf_vlog_bad(log, ICF_VC_SECTION, "info: %s: expected %u, found %u", a->name, want,
			     y->sh_info);
	if (!alloc && x->sh_addr != y->sh_addr)
		icf_vlog_bad(log, ICF_VC_SECTION, "address: %s: expected 0x%llx, found 0x%llx",
			     a->name, ICF_VX(x->sh_addr), ICF_VX(y->sh_addr));
	if (!alloc)
		return;
	check_zeros(c, log, a, b);
	/* Some linkers' sections are not aligned as they say. */
	uint64_t align = y->sh_addralign > 1 ? y->sh_addralign : 1;
	if ((y->sh_addr ^ x->sh_addr) & (align - 1))
		icf_vlog_bad(log, ICF_VC_SECTION,
			     "address: %s: expected a multiple of %llu, found 0x%llx", a->name,
			     ICF_VX(align), ICF_VX(y->sh_addr));
	bool code = icf_v_exec_of(c, i) != NULL, unwind = icf_v_is_unwind_name(a->name);
	/* data/dynamic.c counts the dynamic relocations. */
	if (x->sh_size != y->sh_size && !code && !unwind && x->sh_type != SHT_RELA)
		icf_vlog_bad(log, ICF_VC_SECTION, "size: %s: expected %llu, found %llu", a->name,
			     ICF_VX(x->sh_size), ICF_VX(y->sh_size));
	if (unwind && y->sh_size > x->sh_size + 64)
		icf_vlog_bad(log, ICF_VC_SECTION, "size: %s: expected %llu or less, found %llu",
			     a->name, ICF_VX(x->sh_size), ICF_VX(y->sh_size));
	/* Behind code that moved down, thunks may take more room than was there. */
	if (code && y->sh_addr + y->sh_size > x->sh_addr + x->sh_size)
		icf_vlog_bad(log, ICF_VC_SECTION,
			     "size: %s: expected an end at 0x%llx or before, found 0x%llx", a->name,
			     ICF_VX(x->sh_addr + x->sh_size), ICF_VX(y->sh_addr + y->sh_size));
	/* Only code, unwind tables and sections that only a program header refers to may move. */
	if (x->sh_addr != y->sh_addr && !code && !unwind && x->sh_type != SHT_NOTE &&
	    strcmp(a->name, ".interp") != 0)
		icf_vlog_bad(log, ICF_VC_SECTION,
			     "address: %s (0x%llx): expected 0x%llx, found 0x%llx", a->name,
			     ICF_VX(x->sh_addr), ICF_VX(x->sh_addr), ICF_VX(y->sh_addr));
}

/* A section that only OUT has: it must be plain bytes. */
static void check_added(const struct icf_vclaim *c, struct icf_vlog *log,
			const struct elfrw_section *s)
{
	const Elf64_Shdr *h = &s->hdr;
	log->checked[ICF_VC_SECTION]++;
	check_packed(c, log, NULL, s);
	if (h->sh_type != SHT_PROGBITS || (h->sh_flags & ~(uint64_t)SHF_COMPRESSED) || h->sh_addr ||
	    h->sh_link || h->sh_info || h->sh_entsize ||
	    (h->sh_addralign & (h->sh_addralign - 1)) || h->sh_addralign > 8)
		icf_vlog_bad(
			log, ICF_VC_SECTION,
			"header: %s: expected bytes of no address, link or flags, found others",
			s->name);
}

/* Entry 0 (gABI, "Section Header"): zeros, except for numbers that do not fit into the header. */
void icf_vfile_null(struct icf_vlog *log, const struct elfrw_image *img)
{
	Elf64_Shdr h, want = { 0 };
	if (!img->n_sections || img->ehdr.e_shoff > img->size ||
	    img->size - img->ehdr.e_shoff < sizeof h)
		return;
	memcpy(&h, img->base + img->ehdr.e_shoff, sizeof h);
	if (!img->ehdr.e_shnum)
		want.sh_size = img->n_sections;
	if (img->ehdr.e_shstrndx == SHN_XINDEX)
		want.sh_link = img->shstrndx;
	if (img->ehdr.e_phnum == PN_XNUM)
		want.sh_info = img->n_phdrs;
	if (memcmp(&h, &want, sizeof h) != 0)
		icf_vlog_bad(log, ICF_VC_SECTION,
			     "header: section 0: expected zeros, found others");
}

void icf_vfile_sections(const struct icf_vclaim *c, struct icf_vlog *log)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const struct elfrw_section *a = &c->in.section[i];
		if (c->to_out[i])
			check_section(c, log, i);
		else if (!may_be_dropped(a))
			icf_vlog_bad(log, ICF_VC_SECTION,
				     "section: %s: expected in the output, found nothing", a->name);
	}
	for (uint32_t k = 1; k < c->out.n_sections; k++) {
		const struct elfrw_section *b = &c->out.section[k];
		if (!c->from_out[k] && !may_be_added(b))
			icf_vlog_bad(
				log, ICF_VC_SECTION,
				"section: %s: expected only sections of the input and debug information, found a new one",
				b->name);
		else if (!c->from_out[k])
			check_added(c, log, b);
	}
	if (c->to_out[c->in.shstrndx] != c->out.shstrndx)
		icf_vlog_bad(log, ICF_VC_SECTION, "names: expected section %u, found %u",
			     c->to_out[c->in.shstrndx], c->out.shstrndx);
}
