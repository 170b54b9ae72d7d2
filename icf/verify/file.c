/* file.c: ELF header, sections and segments of OUT: what they must be given those of IN, and that
 * the file itself is sound: nothing overlaps, everything lies where a header says, and offsets are
 * congruent to addresses. */
#include "elfrw/pair.h"
#include "icf/verify/state.h"
#include <stdlib.h>
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

/* What a compressed section says of itself; *ALIGN: of its bytes.  (gABI, "Section Compression") */
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

/* X: NULL when only OUT has the section. */
static void check_packed(struct icf_v *v, const Elf64_Shdr *x, const struct elfrw_section *s)
{
	const Elf64_Shdr *y = &s->hdr;
	uint64_t want = 1, have;
	uint32_t old, reserved;
	if (!((x ? x->sh_flags : 0) & SHF_COMPRESSED) && !(y->sh_flags & SHF_COMPRESSED))
		return;
	if (x && !unpacked_align(&v->in, x, &want, &old))
		return;
	if (!unpacked_align(&v->out, y, &have, &reserved) || have != want || reserved ||
	    (x && (x->sh_flags & y->sh_flags & SHF_COMPRESSED) &&
	     x->sh_addralign != y->sh_addralign) ||
	    (y->sh_addralign != 8 && y->sh_addralign > 1 &&
	     !(x && x->sh_addralign == y->sh_addralign)))
		icf_vlog_bad(
			&v->log, ICF_VC_SECTION,
			"compression: %s: expected bytes that are aligned to %llu, found another header",
			s->name, ICF_VX(want));
}

static void section(struct icf_v *v, uint32_t i)
{
	const struct elfrw_section *a = &v->in.section[i], *b = &v->out.section[v->to_out[i]];
	const Elf64_Shdr *x = &a->hdr, *y = &b->hdr;
	v->log.checked[ICF_VC_SECTION]++;
	/* What describes the program may be compressed in one of the two only. */
	uint64_t may = x->sh_flags & SHF_ALLOC ? 0 : SHF_COMPRESSED;
	bool alloc = x->sh_flags & SHF_ALLOC, packed = (x->sh_flags | y->sh_flags) & may;
	if (((x->sh_flags ^ y->sh_flags) & ~may) || x->sh_entsize != y->sh_entsize)
		icf_vlog_bad(
			&v->log, ICF_VC_SECTION,
			"header: %s: expected flags 0x%llx and entries of %llu bytes, found 0x%llx and %llu",
			a->name, ICF_VX(x->sh_flags), ICF_VX(x->sh_entsize), ICF_VX(y->sh_flags),
			ICF_VX(y->sh_entsize));
	if (x->sh_addralign != y->sh_addralign && !packed)
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "alignment: %s: expected %llu, found %llu",
			     a->name, ICF_VX(x->sh_addralign), ICF_VX(y->sh_addralign));
	check_packed(v, x, b);
	uint32_t link = x->sh_link < v->in.n_sections ? v->to_out[x->sh_link] : x->sh_link;
	if (link != y->sh_link)
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "link: %s: expected %u, found %u", a->name,
			     link, y->sh_link);
	bool info =
		(x->sh_flags & SHF_INFO_LINK) || x->sh_type == SHT_RELA || x->sh_type == SHT_REL;
	uint32_t want = info && x->sh_info < v->in.n_sections ? v->to_out[x->sh_info] : x->sh_info;
	if (want != y->sh_info && x->sh_type != SHT_SYMTAB)
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "info: %s: expected %u, found %u", a->name,
			     want, y->sh_info);
	if (!alloc && x->sh_addr != y->sh_addr)
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "address: %s: expected 0x%llx, found 0x%llx",
			     a->name, ICF_VX(x->sh_addr), ICF_VX(y->sh_addr));
	if (!alloc)
		return;
	uint64_t align = y->sh_addralign > 1 ? y->sh_addralign : 1;
	if (y->sh_addr & (align - 1))
		icf_vlog_bad(&v->log, ICF_VC_SECTION,
			     "address: %s: expected a multiple of %llu, found 0x%llx", a->name,
			     ICF_VX(align), ICF_VX(y->sh_addr));
	bool code = icf_v_exec_of(v, i) != NULL, unwind = icf_v_is_unwind_name(a->name);
	if (x->sh_size != y->sh_size && !code && !unwind)
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "size: %s: expected %llu, found %llu",
			     a->name, ICF_VX(x->sh_size), ICF_VX(y->sh_size));
	if ((code || unwind) && y->sh_size > x->sh_size + (unwind ? 64 : 0))
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "size: %s: expected %llu or less, found %llu",
			     a->name, ICF_VX(x->sh_size), ICF_VX(y->sh_size));
	/* Only code, unwind tables and what nothing but a program header names may stand
	 * elsewhere. */
	if (x->sh_addr != y->sh_addr && !code && !unwind && x->sh_type != SHT_NOTE &&
	    strcmp(a->name, ".interp") != 0)
		icf_vlog_bad(&v->log, ICF_VC_SECTION,
			     "address: %s (0x%llx): expected 0x%llx, found 0x%llx", a->name,
			     ICF_VX(x->sh_addr), ICF_VX(x->sh_addr), ICF_VX(y->sh_addr));
}

/* A section that only OUT has: nothing but bytes. */
static void added(struct icf_v *v, const struct elfrw_section *s)
{
	const Elf64_Shdr *h = &s->hdr;
	v->log.checked[ICF_VC_SECTION]++;
	check_packed(v, NULL, s);
	if (h->sh_type != SHT_PROGBITS || (h->sh_flags & ~(uint64_t)SHF_COMPRESSED) || h->sh_addr ||
	    h->sh_link || h->sh_info || h->sh_entsize ||
	    (h->sh_addralign & (h->sh_addralign - 1)) || h->sh_addralign > 8)
		icf_vlog_bad(
			&v->log, ICF_VC_SECTION,
			"header: %s: expected bytes of no address, link or flags, found others",
			s->name);
}

/* Entry 0 (gABI, "Section Header"): zeros, but for what does not fit into the header. */
static void check_null(struct icf_v *v, const struct elfrw_image *img)
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
		icf_vlog_bad(&v->log, ICF_VC_SECTION,
			     "header: section 0: expected zeros, found others");
}

static void check_sections(struct icf_v *v)
{
	for (uint32_t i = 1; i < v->in.n_sections; i++) {
		const struct elfrw_section *a = &v->in.section[i];
		if (v->to_out[i])
			section(v, i);
		else if (!may_be_dropped(a))
			icf_vlog_bad(&v->log, ICF_VC_SECTION,
				     "section: %s: expected in the output, found nothing", a->name);
	}
	for (uint32_t k = 1; k < v->out.n_sections; k++) {
		const struct elfrw_section *b = &v->out.section[k];
		bool may_be_added =
			icf_v_is_debug_name(b->name) || strcmp(b->name, ".gnu_debuglink") == 0;
		if (!v->from_out[k] && ((b->hdr.sh_flags & SHF_ALLOC) || !may_be_added))
			icf_vlog_bad(
				&v->log, ICF_VC_SECTION,
				"section: %s: expected only sections of the input and debug information, found a new one",
				b->name);
		else if (!v->from_out[k])
			added(v, b);
	}
	if (v->to_out[v->in.shstrndx] != v->out.shstrndx)
		icf_vlog_bad(&v->log, ICF_VC_SECTION, "names: expected section %u, found %u",
			     v->to_out[v->in.shstrndx], v->out.shstrndx);
}

static const Elf64_Phdr *load_at(const struct elfrw_image *img, uint64_t va, uint64_t size)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type == PT_LOAD && va >= ph->p_vaddr && va - ph->p_vaddr <= ph->p_memsz &&
		    size <= ph->p_memsz - (va - ph->p_vaddr) &&
		    (size || va - ph->p_vaddr < ph->p_memsz))
			return ph;
	}
	return NULL;
}

/* Does a segment of OUT that is loaded end with a section, or where one of IN does? */
static bool ends(const struct icf_v *v, uint64_t va, bool zeros)
{
	for (uint32_t p = 0; p < v->in.n_phdrs; p++)
		if (v->in.phdr[p].p_type == PT_LOAD &&
		    v->in.phdr[p].p_vaddr +
				    (zeros ? v->in.phdr[p].p_memsz : v->in.phdr[p].p_filesz) ==
			    va)
			return true;
	for (uint32_t k = 1; k < v->out.n_sections; k++) {
		const Elf64_Shdr *s = &v->out.section[k].hdr;
		if ((s->sh_flags & SHF_ALLOC) && s->sh_addr + s->sh_size == va)
			return true;
	}
	return va == v->out.ehdr.e_phoff + v->out.n_phdrs * sizeof(Elf64_Phdr);
}

/* What no section of a loaded segment shows: its physical address, its alignment, its ends. */
static void check_load(struct icf_v *v, uint32_t p, const Elf64_Phdr *ph)
{
	const Elf64_Phdr *x = load_at(&v->in, ph->p_vaddr, 0);
	for (uint32_t i = 0; i < v->in.n_phdrs && !x; i++)
		if (v->in.phdr[i].p_type == PT_LOAD)
			x = &v->in.phdr[i];
	if (!x)
		return;
	if (ph->p_paddr - ph->p_vaddr != x->p_paddr - x->p_vaddr)
		icf_vlog_bad(
			&v->log, ICF_VC_SEGMENT,
			"physical address: segment %u at 0x%llx: expected 0x%llx, found 0x%llx", p,
			ICF_VX(ph->p_vaddr), ICF_VX(ph->p_vaddr + x->p_paddr - x->p_vaddr),
			ICF_VX(ph->p_paddr));
	if (ph->p_align != x->p_align)
		icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
			     "alignment: segment %u at 0x%llx: expected 0x%llx, found 0x%llx", p,
			     ICF_VX(ph->p_vaddr), ICF_VX(x->p_align), ICF_VX(ph->p_align));
	if (!ends(v, ph->p_vaddr + ph->p_filesz, false) ||
	    !ends(v, ph->p_vaddr + ph->p_memsz, true))
		icf_vlog_bad(
			&v->log, ICF_VC_SEGMENT,
			"end: segment %u at 0x%llx: expected the end of a section or of a segment of the input, found 0x%llx and 0x%llx",
			p, ICF_VX(ph->p_vaddr), ICF_VX(ph->p_vaddr + ph->p_filesz),
			ICF_VX(ph->p_vaddr + ph->p_memsz));
}

static void check_loads(struct icf_v *v)
{
	const Elf64_Phdr *prev = NULL;
	for (uint32_t p = 0; p < v->out.n_phdrs; p++) {
		const Elf64_Phdr *ph = &v->out.phdr[p];
		if (ph->p_type != PT_LOAD)
			continue;
		/* Pages are mapped, also where less is asked for (ld -N). */
		uint64_t align = ph->p_align > 4096 ? ph->p_align : 4096;
		v->log.checked[ICF_VC_SEGMENT]++;
		if ((align & (align - 1)) || ((ph->p_vaddr - ph->p_offset) & (align - 1)))
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"congruence: segment %u at 0x%llx: expected an offset that fits the alignment 0x%llx, found 0x%llx",
				p, ICF_VX(ph->p_vaddr), ICF_VX(align), ICF_VX(ph->p_offset));
		/* Where no byte is read the offset may lie behind the end: bfd has an empty segment
		 * of data in programs without any. */
		if (ph->p_filesz > ph->p_memsz ||
		    (ph->p_filesz &&
		     (ph->p_offset > v->out.size || ph->p_filesz > v->out.size - ph->p_offset)))
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"bounds: segment %u at 0x%llx: expected 0x%llx bytes in the file, found 0x%llx",
				p, ICF_VX(ph->p_vaddr), ICF_VX(ph->p_filesz), ICF_VX(v->out.size));
		if (prev && ph->p_vaddr < prev->p_vaddr + prev->p_memsz)
			icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
				     "overlap: segment %u: expected 0x%llx or later, found 0x%llx",
				     p, ICF_VX(prev->p_vaddr + prev->p_memsz), ICF_VX(ph->p_vaddr));
		/* One page of memory cannot come from two places of the file. */
		else if (prev && prev->p_memsz &&
			 (ph->p_vaddr & ~UINT64_C(4095)) <
				 ((prev->p_vaddr + prev->p_memsz + 4095) & ~UINT64_C(4095)) &&
			 (ph->p_flags != prev->p_flags ||
			  ph->p_vaddr - ph->p_offset != prev->p_vaddr - prev->p_offset)) {
			const Elf64_Phdr *a = load_at(&v->in, prev->p_vaddr, 0),
					 *b = load_at(&v->in, ph->p_vaddr, 0);
			if (!a || !b || a == b ||
			    (b->p_vaddr & ~UINT64_C(4095)) >=
				    ((a->p_vaddr + a->p_memsz + 4095) & ~UINT64_C(4095)))
				icf_vlog_bad(
					&v->log, ICF_VC_SEGMENT,
					"pages: segment %u at 0x%llx: expected pages of its own, found one shared with the segment before",
					p, ICF_VX(ph->p_vaddr));
		}
		prev = ph;
		check_load(v, p, ph);
	}
	for (uint32_t i = 1; i < v->in.n_sections; i++) {
		const Elf64_Shdr *x = &v->in.section[i].hdr;
		if (!(x->sh_flags & SHF_ALLOC) || !v->to_out[i] ||
		    (x->sh_type == SHT_NOBITS && (x->sh_flags & SHF_TLS)))
			continue;
		const Elf64_Shdr *y = &v->out.section[v->to_out[i]].hdr;
		const Elf64_Phdr *a = load_at(&v->in, x->sh_addr, x->sh_size),
				 *b = load_at(&v->out, y->sh_addr, y->sh_size);
		v->log.checked[ICF_VC_SEGMENT]++;
		if (a && b && (!x->sh_size || x->sh_type == SHT_NOBITS) &&
		    x->sh_offset - a->p_offset == x->sh_addr - a->p_vaddr &&
		    y->sh_offset - b->p_offset != y->sh_addr - b->p_vaddr)
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"offset: %s, without bytes (-> 0x%llx): expected 0x%llx, found 0x%llx",
				v->in.section[i].name, ICF_VX(y->sh_addr),
				ICF_VX(y->sh_addr - b->p_vaddr + b->p_offset),
				ICF_VX(y->sh_offset));
		if (!a || !x->sh_size || !y->sh_size)
			continue;
		if (!b)
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"section: %s (0x%llx -> 0x%llx): expected in a loaded segment, found outside",
				v->in.section[i].name, ICF_VX(x->sh_addr), ICF_VX(y->sh_addr));
		else if (b->p_flags != a->p_flags && ((x->sh_flags & SHF_EXECINSTR) ||
						      b->p_flags != (a->p_flags & ~(uint32_t)PF_X)))
			/* What is no code need not be executable, though older linkers make it
			 * so. */
			icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
				     "protection: %s (-> 0x%llx): expected 0x%x, found 0x%x",
				     v->in.section[i].name, ICF_VX(y->sh_addr), a->p_flags,
				     b->p_flags);
		else if (y->sh_type != SHT_NOBITS &&
			 y->sh_addr - b->p_vaddr != y->sh_offset - b->p_offset)
			icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
				     "offset: %s (-> 0x%llx): expected 0x%llx, found 0x%llx",
				     v->in.section[i].name, ICF_VX(y->sh_addr),
				     ICF_VX(y->sh_addr - b->p_vaddr + b->p_offset),
				     ICF_VX(y->sh_offset));
		else if (y->sh_type != SHT_NOBITS &&
			 y->sh_addr - b->p_vaddr + y->sh_size > b->p_filesz)
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"size: %s (-> 0x%llx): expected all of it in the file, found a part",
				v->in.section[i].name, ICF_VX(y->sh_addr));
		else if (y->sh_type == SHT_NOBITS && y->sh_addr - b->p_vaddr < b->p_filesz) {
			/* Zeros must be zeros. */
			uint64_t from = y->sh_addr - b->p_vaddr + b->p_offset,
				 n = b->p_filesz - (y->sh_addr - b->p_vaddr);
			for (uint64_t k = 0; k < n && k < y->sh_size && from + k < v->out.size; k++)
				if (v->out.base[from + k]) {
					icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
						     "zeros: %s+0x%llx: expected 0, found %u",
						     v->in.section[i].name, ICF_VX(k),
						     v->out.base[from + k]);
					break;
				}
		}
	}
}

/* Where the bound VA of a segment of IN is: the start, or the end, of a section. */
static bool bound(const struct icf_v *v, uint64_t va, bool end, uint64_t *ret)
{
	for (uint32_t i = 1; i < v->in.n_sections; i++) {
		const Elf64_Shdr *x = &v->in.section[i].hdr;
		if (!(x->sh_flags & SHF_ALLOC) || !v->to_out[i] || !x->sh_size ||
		    (end ? x->sh_addr + x->sh_size : x->sh_addr) != va)
			continue;
		const Elf64_Shdr *y = &v->out.section[v->to_out[i]].hdr;
		*ret = y->sh_addr + (end ? y->sh_size : 0);
		return true;
	}
	return false;
}

/* Is offset A of IN, where no byte is meant, the same as B of OUT: the number, or the start of a
 * loaded segment? */
static bool same_start(const struct icf_v *v, uint64_t a, uint64_t b)
{
	bool start = false;
	for (uint32_t p = 0; p < v->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &v->in.phdr[p];
		if (x->p_type != PT_LOAD || x->p_offset != a)
			continue;
		start = true;
		const Elf64_Phdr *y = load_at(&v->out, x->p_vaddr, 0);
		if (y && y->p_vaddr == x->p_vaddr && y->p_offset == b)
			return true;
	}
	return !start && a == b;
}

/* A segment that only describes a part of what is loaded. */
static void describe(struct icf_v *v, uint32_t k, const Elf64_Phdr *x, const Elf64_Phdr *y)
{
	v->log.checked[ICF_VC_SEGMENT]++;
	if (x->p_flags != y->p_flags || x->p_align != y->p_align) {
		icf_vlog_bad(
			&v->log, ICF_VC_SEGMENT,
			"header: segment %u of type 0x%x: expected protection 0x%x and alignment 0x%llx, found 0x%x and 0x%llx",
			k, x->p_type, x->p_flags, ICF_VX(x->p_align), y->p_flags,
			ICF_VX(y->p_align));
		return;
	}
	uint64_t start = x->p_vaddr, end = x->p_vaddr + x->p_memsz;
	if (x->p_type == PT_PHDR)
		end = start + (uint64_t)v->out.n_phdrs * sizeof(Elf64_Phdr);
	else if (x->p_memsz && x->p_type != PT_GNU_STACK && x->p_type != PT_NULL) {
		if (!bound(v, start, false, &start))
			start = x->p_vaddr;
		/* The read-only part ends at a page, not at a section; the thread-local one may end
		 * in sections without contents. */
		if (x->p_type == PT_GNU_RELRO || x->p_type == PT_TLS || !bound(v, end, true, &end))
			end = start + x->p_memsz;
	}
	if (y->p_vaddr != start || y->p_vaddr + y->p_memsz != end)
		icf_vlog_bad(
			&v->log, ICF_VC_SEGMENT,
			"place: segment %u of type 0x%x (0x%llx): expected 0x%llx to 0x%llx, found 0x%llx to 0x%llx",
			k, x->p_type, ICF_VX(x->p_vaddr), ICF_VX(start), ICF_VX(end),
			ICF_VX(y->p_vaddr), ICF_VX(y->p_vaddr + y->p_memsz));
	uint64_t filesz = x->p_filesz == x->p_memsz ? y->p_memsz : x->p_filesz;
	if (y->p_filesz != filesz)
		icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
			     "size: segment %u of type 0x%x: expected 0x%llx, found 0x%llx", k,
			     x->p_type, ICF_VX(filesz), ICF_VX(y->p_filesz));
	const Elf64_Phdr *load = y->p_filesz ? load_at(&v->out, y->p_vaddr, y->p_filesz) : NULL;
	bool nowhere =
		!load_at(&v->in, x->p_vaddr, 0) && (!x->p_filesz || x->p_type == PT_GNU_RELRO);
	if (nowhere) {
		if (!same_start(v, x->p_offset, y->p_offset))
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"offset: segment %u of type 0x%x, not loaded: expected 0x%llx, or where that segment begins now, found 0x%llx",
				k, x->p_type, ICF_VX(x->p_offset), ICF_VX(y->p_offset));
	} else if (y->p_filesz &&
		   (!load || y->p_offset - load->p_offset != y->p_vaddr - load->p_vaddr ||
		    y->p_vaddr - load->p_vaddr + y->p_filesz > load->p_filesz))
		icf_vlog_bad(
			&v->log, ICF_VC_SEGMENT,
			"offset: segment %u of type 0x%x at 0x%llx: expected the bytes that are loaded there, found 0x%llx",
			k, x->p_type, ICF_VX(y->p_vaddr), ICF_VX(y->p_offset));
	if (!nowhere && !y->p_filesz && y->p_offset != x->p_offset) {
		load = load_at(&v->out, y->p_vaddr, 0);
		if (!load || y->p_offset - load->p_offset != y->p_vaddr - load->p_vaddr)
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"offset: segment %u of type 0x%x, without bytes: expected 0x%llx, found 0x%llx",
				k, x->p_type, ICF_VX(x->p_offset), ICF_VX(y->p_offset));
	}
	if (y->p_paddr - y->p_vaddr != x->p_paddr - x->p_vaddr)
		icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
			     "physical address: segment %u: expected 0x%llx, found 0x%llx", k,
			     ICF_VX(y->p_vaddr + x->p_paddr - x->p_vaddr), ICF_VX(y->p_paddr));
}

static bool has_interpreter(const struct icf_v *v)
{
	for (uint32_t p = 0; p < v->in.n_phdrs; p++)
		if (v->in.phdr[p].p_type == PT_INTERP)
			return true;
	return false;
}

/* Does IN have the segment of this type behind one that is loaded, itself? */
static bool is_behind(const struct icf_v *v, uint32_t type)
{
	bool loaded = false;
	for (uint32_t p = 0; p < v->in.n_phdrs; p++) {
		loaded |= v->in.phdr[p].p_type == PT_LOAD;
		if (loaded && v->in.phdr[p].p_type == type)
			return true;
	}
	return false;
}

static void check_segments(struct icf_v *v)
{
	uint32_t k = 0;
	bool loaded = false;
	check_loads(v);
	/* gABI, "Program Header": these two come before what is loaded. */
	for (uint32_t p = 0; p < v->out.n_phdrs; p++) {
		uint32_t type = v->out.phdr[p].p_type;
		loaded |= type == PT_LOAD;
		if (loaded && (type == PT_INTERP || type == PT_PHDR) && !is_behind(v, type))
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"order: segment %u of type 0x%x: expected before what is loaded, found behind",
				p, type);
	}
	for (uint32_t p = 0; p < v->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &v->in.phdr[p];
		if (x->p_type == PT_LOAD)
			continue;
		while (k < v->out.n_phdrs && v->out.phdr[k].p_type == PT_LOAD)
			k++;
		/* Only a program that has an interpreter needs it. */
		if (x->p_type == PT_PHDR && !has_interpreter(v) &&
		    (k == v->out.n_phdrs || v->out.phdr[k].p_type != PT_PHDR))
			continue;
		if (k == v->out.n_phdrs || v->out.phdr[k].p_type != x->p_type) {
			icf_vlog_bad(&v->log, ICF_VC_SEGMENT,
				     "segment %u of type 0x%x: expected in the output, found %s", p,
				     x->p_type, k == v->out.n_phdrs ? "none" : "another");
			return;
		}
		describe(v, k, x, &v->out.phdr[k]);
		k++;
	}
	for (; k < v->out.n_phdrs; k++)
		if (v->out.phdr[k].p_type != PT_LOAD)
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"segment %u of type 0x%x: expected only what the input has, found one more",
				k, v->out.phdr[k].p_type);
	/* What IN has in memory is in memory: zeros behind the data too. */
	for (uint32_t p = 0; p < v->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &v->in.phdr[p];
		if (x->p_type != PT_LOAD || x->p_memsz == x->p_filesz)
			continue;
		const Elf64_Phdr *y = load_at(&v->out, x->p_vaddr + x->p_memsz - 1, 1);
		if (!y || y->p_vaddr + y->p_memsz != x->p_vaddr + x->p_memsz ||
		    y->p_vaddr + y->p_filesz != x->p_vaddr + x->p_filesz ||
		    y->p_flags != x->p_flags)
			icf_vlog_bad(
				&v->log, ICF_VC_SEGMENT,
				"zeros: segment %u at 0x%llx: expected contents to 0x%llx and zeros to 0x%llx, found others",
				p, ICF_VX(x->p_vaddr), ICF_VX(x->p_vaddr + x->p_filesz),
				ICF_VX(x->p_vaddr + x->p_memsz));
	}
}

struct extent {
	uint64_t start, end;
	const char *name;
};

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Is the byte at offset AT of OUT what IN has at that address, in no section there either? */
static bool was_there(const struct icf_v *v, uint64_t at)
{
	for (uint32_t p = 0; p < v->out.n_phdrs; p++) {
		const Elf64_Phdr *ph = &v->out.phdr[p];
		if (ph->p_type != PT_LOAD || at < ph->p_offset || at - ph->p_offset >= ph->p_filesz)
			continue;
		uint64_t va = at - ph->p_offset + ph->p_vaddr;
		const Elf64_Phdr *old = load_at(&v->in, va, 1);
		for (uint32_t i = 1; i < v->in.n_sections; i++) {
			const Elf64_Shdr *sh = &v->in.section[i].hdr;
			if ((sh->sh_flags & SHF_ALLOC) && sh->sh_type != SHT_NOBITS &&
			    va - sh->sh_addr < sh->sh_size)
				return false;
		}
		return old && va - old->p_vaddr < old->p_filesz &&
		       v->in.base[old->p_offset + (va - old->p_vaddr)] == v->out.base[at];
	}
	return false;
}

/* The names of sections: those that the headers of OUT name, and others only of IN. */
static struct elfrw_err *check_section_names(struct icf_v *v, const struct elfrw_image *in,
					     const struct elfrw_image *out)
{
	const struct elfrw_section *a = &in->section[in->shstrndx],
				   *b = &out->section[out->shstrndx];
	if (!out->shstrndx || !b->data || !b->hdr.sh_size)
		return NULL;
	uint64_t size = b->hdr.sh_size;
	uint8_t *used = calloc(size, 1);
	if (!used)
		return &elfrw_err_nomem;
	bool ok = !b->data[0] && !b->data[size - 1];
	for (uint32_t k = 1; k < out->n_sections; k++)
		for (uint64_t at = out->section[k].hdr.sh_name; at < size && !used[at]; at++) {
			used[at] = 1;
			if (!b->data[at])
				break;
		}
	for (uint64_t at = 0; at < size && ok; at++) {
		uint64_t n = 0;
		while (at + n < size && !used[at + n] && b->data[at + n])
			n++;
		ok = !n || (a->data && memmem(a->data, a->hdr.sh_size, b->data + at, n));
		at += n;
	}
	if (!ok)
		icf_vlog_bad(&v->log, ICF_VC_SECTION,
			     "names: %s: expected those of the sections, found others", b->name);
	free(used);
	return NULL;
}

/* The stripped file of a pair names a debug file and has its checksum (gdb manual, "Debugging
 * Information in Separate Files").  The name may be another by now, and is not yet the file's with
 * `icfold --verify`. */
static void check_link(struct icf_v *v, const struct elfrw_pair *pair)
{
	const struct elfrw_section *s = elfrw_image_section(&pair->program, ".gnu_debuglink");
	if (!s || !s->data)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	const char *name = elfrw_rbuf_cstr(&r);
	v->log.checked[ICF_VC_NOTE]++;
	bool zeros = true;
	while (elfrw_rbuf_ok(&r) && (elfrw_rbuf_off(&r) & 3))
		zeros &= !elfrw_rbuf_u8(&r);
	uint32_t sum = elfrw_rbuf_u32(&r);
	if (!elfrw_rbuf_ok(&r) || elfrw_rbuf_left(&r) || !zeros ||
	    sum != elfrw_crc32(pair->debug.base, pair->debug.size) || !*name || strchr(name, '/'))
		icf_vlog_bad(
			&v->log, ICF_VC_NOTE,
			"link: .gnu_debuglink: expected a name and the checksum of the debug file, found others");
}

static uint64_t headers_end(const struct elfrw_image *img)
{
	return img->ehdr.e_shoff + (uint64_t)img->n_sections * sizeof(Elf64_Shdr);
}

/* Where what is described ends in IN. */
static uint64_t end_of(const struct elfrw_image *in)
{
	uint64_t end = headers_end(in),
		 at = in->ehdr.e_phoff + (uint64_t)in->n_phdrs * sizeof(Elf64_Phdr);
	if (at > end)
		end = at;
	for (uint32_t i = 1; i < in->n_sections; i++) {
		at = in->section[i].hdr.sh_offset + in->section[i].hdr.sh_size;
		if (in->section[i].data && at > end)
			end = at;
	}
	for (uint32_t p = 0; p < in->n_phdrs && !in->separate; p++) {
		at = in->phdr[p].p_offset + in->phdr[p].p_filesz;
		if (in->phdr[p].p_type != PT_NULL && in->phdr[p].p_filesz && at > end)
			end = at;
	}
	return end < in->size ? end : in->size;
}

/* Behind the END of OUT is what is appended to IN, and nothing else: at the same place, seen from
 * the start of the file and from the section headers that it follows; less than 16 zeros may be
 * anywhere. */
static void check_end(struct icf_v *v, const struct elfrw_image *in, const struct elfrw_image *out,
		      uint64_t end)
{
	uint64_t was = end_of(in), size = in->size - was, zeros = 0;
	v->log.checked[ICF_VC_FILE]++;
	if (out->size < end || out->size - end < size) {
		icf_vlog_bad(&v->log, ICF_VC_FILE,
			     "end: expected %llu bytes behind 0x%llx, found less", ICF_VX(size),
			     ICF_VX(end));
		return;
	}
	while (zeros < size && !in->base[was + zeros])
		zeros++;
	bool any = zeros == size && size < 16;
	uint64_t want = any ? end : was, at = out->size - size;
	bool moved = at != want || (!any && headers_end(in) == was && headers_end(out) != was);
	for (uint64_t k = end; k < at && !moved; k++)
		moved = out->base[k] != 0;
	if (moved)
		icf_vlog_bad(
			&v->log, ICF_VC_FILE,
			"end: expected %llu bytes that are appended at 0x%llx, right behind what is before them, found 0x%llx",
			ICF_VX(size), ICF_VX(want), ICF_VX(at));
	else if (size && memcmp(in->base + was, out->base + at, size) != 0)
		icf_vlog_bad(
			&v->log, ICF_VC_FILE,
			"end: expected the bytes that are appended to the input at 0x%llx, found others",
			ICF_VX(at));
}

static struct elfrw_err *check_layout(struct icf_v *v, const struct elfrw_image *in,
				      const struct elfrw_image *out)
{
	const Elf64_Ehdr *a = &in->ehdr, *b = &out->ehdr;
	v->log.checked[ICF_VC_FILE]++;
	if (memcmp(a->e_ident, b->e_ident, EI_NIDENT) != 0 || a->e_type != b->e_type ||
	    a->e_machine != b->e_machine || a->e_version != b->e_version ||
	    a->e_flags != b->e_flags || a->e_ehsize != b->e_ehsize ||
	    a->e_phentsize != b->e_phentsize || a->e_shentsize != b->e_shentsize)
		icf_vlog_bad(
			&v->log, ICF_VC_FILE,
			"header: expected the input's identification, type, machine and flags, found others");
	if (a->e_phoff != b->e_phoff && !out->separate)
		icf_vlog_bad(&v->log, ICF_VC_FILE,
			     "program headers: expected at 0x%llx, found at 0x%llx",
			     ICF_VX(a->e_phoff), ICF_VX(b->e_phoff));
	struct extent *e = malloc((out->n_sections + 3) * sizeof *e);
	if (!e)
		return &elfrw_err_nomem;
	uint32_t n = 0;
	e[n++] = (struct extent){ 0, b->e_ehsize, "ELF header" };
	e[n++] = (struct extent){ b->e_phoff,
				  b->e_phoff + (uint64_t)out->n_phdrs * sizeof(Elf64_Phdr),
				  "program headers" };
	e[n++] = (struct extent){ b->e_shoff,
				  b->e_shoff + (uint64_t)out->n_sections * sizeof(Elf64_Shdr),
				  "section headers" };
	for (uint32_t k = 1; k < out->n_sections; k++) {
		const Elf64_Shdr *s = &out->section[k].hdr;
		if (s->sh_type != SHT_NOBITS && s->sh_type != SHT_NULL && s->sh_size)
			e[n++] = (struct extent){ s->sh_offset, s->sh_offset + s->sh_size,
						  out->section[k].name };
	}
	qsort(e, n, sizeof *e, extent_order);
	for (uint32_t k = 0; k < n; k++) {
		v->log.checked[ICF_VC_FILE]++;
		if (k && e[k].start < e[k - 1].end)
			icf_vlog_bad(
				&v->log, ICF_VC_FILE,
				"overlap: %s and %s at 0x%llx: expected 0x%llx or later, found 0x%llx",
				e[k - 1].name, e[k].name, ICF_VX(e[k].start), ICF_VX(e[k - 1].end),
				ICF_VX(e[k].start));
		/* What lies between is loaded, too. */
		for (uint64_t at = k ? e[k - 1].end : 0; k && at < e[k].start && at < out->size;
		     at++)
			if (out->base[at] && (out->separate || !was_there(v, at))) {
				icf_vlog_bad(
					&v->log, ICF_VC_FILE,
					"gap: byte 0x%llx, before %s: expected 0, found 0x%02x",
					ICF_VX(at), e[k].name, out->base[at]);
				break;
			}
		if (e[k].end > out->size || e[k].end < e[k].start)
			icf_vlog_bad(&v->log, ICF_VC_FILE,
				     "bounds: %s: expected to end before 0x%llx, found 0x%llx",
				     e[k].name, ICF_VX(out->size), ICF_VX(e[k].end));
	}
	uint64_t end = e[n - 1].end;
	free(e);
	check_null(v, out);
	ELFRW_TRY(check_section_names(v, in, out));
	check_end(v, in, out, end);
	return NULL;
}

struct elfrw_err *icf_v_check_file(struct icf_v *v)
{
	check_sections(v);
	check_segments(v);
	const struct elfrw_pair *a = v->in.pair, *b = v->out.pair;
	if (b)
		check_link(v, b);
	if (b)
		ELFRW_TRY(check_layout(v, a ? &a->debug : &v->in, &b->debug));
	return check_layout(v, a ? &a->program : &v->in, b ? &b->program : &v->out);
}
