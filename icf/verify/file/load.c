/* load.c: the loaded segments of OUT: each is sound in itself, and together they load the same as
 * IN's. */
#include "elfrw/base/align.h"
#include "icf/verify/file/state.h"
#include <string.h>

const Elf64_Phdr *icf_vfile_load_at(const struct elfrw_image *img, uint64_t va, uint64_t size)
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

static bool is_empty(const Elf64_Phdr *ph)
{
	return ph->p_type == PT_LOAD && !ph->p_memsz && !ph->p_filesz;
}

/* The loaded segment of IMG that holds nothing, as PH does, and says the same; or NULL. */
static const Elf64_Phdr *empty_like(const struct elfrw_image *img, const Elf64_Phdr *ph)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *x = &img->phdr[p];
		if (is_empty(x) && x->p_vaddr == ph->p_vaddr && x->p_paddr == ph->p_paddr &&
		    x->p_flags == ph->p_flags && x->p_align == ph->p_align)
			return x;
	}
	return NULL;
}

/* The segment of IN that the loaded segment PH of OUT was; NULL only if IN loads nothing. */
static const Elf64_Phdr *old_load(const struct icf_vclaim *c, const Elf64_Phdr *ph)
{
	const Elf64_Phdr *x = is_empty(ph) ? empty_like(&c->in, ph) : NULL;
	if (!x)
		x = icf_vfile_load_at(&c->in, ph->p_vaddr, 0);
	for (uint32_t i = 0; i < c->in.n_phdrs && !x; i++)
		if (c->in.phdr[i].p_type == PT_LOAD)
			x = &c->in.phdr[i];
	return x;
}

/* Segments that hold nothing are those of IN: a linker script may name them in PHDRS, and what
 * copies a program to its place may count segments. */
static void check_empty(const struct icf_vclaim *c, struct icf_vlog *log)
{
	for (uint32_t p = 0; p < c->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &c->in.phdr[p];
		if (is_empty(x) && !empty_like(&c->out, x))
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"empty: segment %u of the input at 0x%llx: expected the same, found none",
				p, ICF_VX(x->p_vaddr));
	}
	for (uint32_t p = 0; p < c->out.n_phdrs; p++) {
		const Elf64_Phdr *y = &c->out.phdr[p];
		if (is_empty(y) && !empty_like(&c->in, y) &&
		    !icf_vfile_load_at(&c->in, y->p_vaddr, 0))
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"empty: segment %u at 0x%llx: expected the same in the input, found none",
				p, ICF_VX(y->p_vaddr));
	}
}

/* Does a loaded segment of OUT end with a section, or where a segment of IN does? */
static bool ends_known(const struct icf_vclaim *c, uint64_t va, bool zeros)
{
	for (uint32_t p = 0; p < c->in.n_phdrs; p++)
		if (c->in.phdr[p].p_type == PT_LOAD &&
		    c->in.phdr[p].p_vaddr +
				    (zeros ? c->in.phdr[p].p_memsz : c->in.phdr[p].p_filesz) ==
			    va)
			return true;
	for (uint32_t k = 1; k < c->out.n_sections; k++) {
		const Elf64_Shdr *s = &c->out.section[k].hdr;
		if ((s->sh_flags & SHF_ALLOC) && s->sh_addr + s->sh_size == va)
			return true;
	}
	return va == c->out.ehdr.e_phoff + c->out.n_phdrs * sizeof(Elf64_Phdr);
}

/* Checks what the sections of a loaded segment do not show: its physical address, its alignment,
 * its ends. */
static void check_load(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t p,
		       const Elf64_Phdr *ph)
{
	const Elf64_Phdr *x = old_load(c, ph);
	if (!x)
		return;
	if (ph->p_paddr - ph->p_vaddr != x->p_paddr - x->p_vaddr)
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"physical address: segment %u at 0x%llx: expected 0x%llx, found 0x%llx", p,
			ICF_VX(ph->p_vaddr), ICF_VX(ph->p_vaddr + x->p_paddr - x->p_vaddr),
			ICF_VX(ph->p_paddr));
	if (ph->p_align != x->p_align)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "alignment: segment %u at 0x%llx: expected 0x%llx, found 0x%llx", p,
			     ICF_VX(ph->p_vaddr), ICF_VX(x->p_align), ICF_VX(ph->p_align));
	if (!ends_known(c, ph->p_vaddr + ph->p_filesz, false) ||
	    !ends_known(c, ph->p_vaddr + ph->p_memsz, true))
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"end: segment %u at 0x%llx: expected the end of a section or of a segment of the input, found 0x%llx and 0x%llx",
			p, ICF_VX(ph->p_vaddr), ICF_VX(ph->p_vaddr + ph->p_filesz),
			ICF_VX(ph->p_vaddr + ph->p_memsz));
}

/* Checks where the loaded segment P of OUT lies in the file: at an offset that can be mapped, and
 * within its bounds. */
static void check_offset(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t p,
			 const Elf64_Phdr *ph)
{
	const Elf64_Phdr *x = old_load(c, ph);
	uint64_t page = elfrw_image_page(&c->in), align = ph->p_align ? ph->p_align : 1;
	/* Pages are mapped even if less is asked for (ld -N).  A segment that could not be mapped
	 * (ld -n, for what copies a program to its place) need not become one that can. */
	if (align < page && (!x || (x->p_vaddr - x->p_offset) % page == 0))
		align = page;
	log->checked[ICF_VC_SEGMENT]++;
	if ((align & (align - 1)) || ((ph->p_vaddr - ph->p_offset) & (align - 1)))
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"congruence: segment %u at 0x%llx: expected an offset that fits the alignment 0x%llx, found 0x%llx",
			p, ICF_VX(ph->p_vaddr), ICF_VX(align), ICF_VX(ph->p_offset));
	/* If no byte is read, the offset may lie behind the end: bfd writes an empty data
	 * segment in programs without data. */
	if (ph->p_filesz > ph->p_memsz ||
	    (ph->p_filesz &&
	     (ph->p_offset > c->out.size || ph->p_filesz > c->out.size - ph->p_offset)))
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"bounds: segment %u at 0x%llx: expected 0x%llx bytes in the file, found 0x%llx",
			p, ICF_VX(ph->p_vaddr), ICF_VX(ph->p_filesz), ICF_VX(c->out.size));
}

/* Checks that the loaded segment P of OUT lies behind PREV, the one before, and that no page
 * belongs to both. */
static void check_after(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t p,
			const Elf64_Phdr *prev, const Elf64_Phdr *ph)
{
	uint64_t page = elfrw_image_page(&c->in);
	if (ph->p_vaddr < prev->p_vaddr + prev->p_memsz)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "overlap: segment %u: expected 0x%llx or later, found 0x%llx", p,
			     ICF_VX(prev->p_vaddr + prev->p_memsz), ICF_VX(ph->p_vaddr));
	/* One page of memory cannot come from two places in the file. */
	else if ((ph->p_vaddr & ~(page - 1)) <
			 elfrw_align_up(prev->p_vaddr + prev->p_memsz, page) &&
		 (ph->p_flags != prev->p_flags ||
		  ph->p_vaddr - ph->p_offset != prev->p_vaddr - prev->p_offset)) {
		const Elf64_Phdr *a = icf_vfile_load_at(&c->in, prev->p_vaddr, 0),
				 *b = icf_vfile_load_at(&c->in, ph->p_vaddr, 0);
		if (!a || !b || a == b ||
		    (b->p_vaddr & ~(page - 1)) >= elfrw_align_up(a->p_vaddr + a->p_memsz, page))
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"pages: segment %u at 0x%llx: expected pages of its own, found one shared with the segment before",
				p, ICF_VX(ph->p_vaddr));
	}
}

/* A section of IN with its image in OUT, and the loaded segments that hold the two (NULL: none). */
struct loaded {
	const char *name;
	const Elf64_Shdr *old, *new;
	const Elf64_Phdr *old_load, *new_load;
};

/* Would a loaded segment of IMG have the section H, which has no bytes, at its offset?  *ANY: does
 * one reach its address?  An empty section and thread-local zeros may be at the end of one. */
static bool fits_load(const struct elfrw_image *img, const Elf64_Shdr *h, bool *any)
{
	*any = false;
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type != PT_LOAD || h->sh_addr < ph->p_vaddr ||
		    h->sh_addr - ph->p_vaddr > ph->p_memsz)
			continue;
		*any = true;
		if (h->sh_offset - ph->p_offset == h->sh_addr - ph->p_vaddr)
			return true;
	}
	return false;
}

/* Checks the offset of a section that has no bytes in the file.  It must be where the segment would
 * have the bytes: strip and elflint find the segment of a section by it.  Linkers need not do so
 * (gold does not align it, mold leaves 0); such an offset may stay if its segment stays. */
static void check_no_bytes(const struct icf_vclaim *c, struct icf_vlog *log, const struct loaded *s)
{
	const Elf64_Shdr *x = s->old, *y = s->new;
	const Elf64_Phdr *a = icf_vfile_load_at(&c->in, x->sh_addr, 0),
			 *b = icf_vfile_load_at(&c->out, y->sh_addr, 0);
	bool any, stays = x->sh_offset == y->sh_offset && x->sh_addr == y->sh_addr &&
			  (a ? a->p_offset : 0) == (b ? b->p_offset : 0);
	if ((x->sh_size && x->sh_type != SHT_NOBITS) || fits_load(&c->out, y, &any) || stays)
		return;
	if (any)
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"offset: %s, without bytes (-> 0x%llx): expected that of its segment there, found 0x%llx",
			s->name, ICF_VX(y->sh_addr), ICF_VX(y->sh_offset));
	else if (y->sh_offset > c->out.size)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "offset: %s, without bytes: expected one in the file, found 0x%llx",
			     s->name, ICF_VX(y->sh_offset));
}

/* Checks that the part of the section S that the file holds is zero; S is one of zeros. */
static void check_zeros(const struct icf_vclaim *c, struct icf_vlog *log, const struct loaded *s)
{
	const Elf64_Shdr *y = s->new;
	const Elf64_Phdr *b = s->new_load;
	uint64_t from = y->sh_addr - b->p_vaddr + b->p_offset,
		 n = b->p_filesz - (y->sh_addr - b->p_vaddr);
	for (uint64_t k = 0; k < n && k < y->sh_size && from + k < c->out.size; k++)
		if (c->out.base[from + k]) {
			icf_vlog_bad(log, ICF_VC_SEGMENT, "zeros: %s+0x%llx: expected 0, found %u",
				     s->name, ICF_VX(k), c->out.base[from + k]);
			break;
		}
}

/* Checks that a section with contents is loaded with its protection, and from its bytes. */
static void check_contents(const struct icf_vclaim *c, struct icf_vlog *log, const struct loaded *s)
{
	const Elf64_Shdr *x = s->old, *y = s->new;
	const Elf64_Phdr *a = s->old_load, *b = s->new_load;
	if (!b)
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"section: %s (0x%llx -> 0x%llx): expected in a loaded segment, found outside",
			s->name, ICF_VX(x->sh_addr), ICF_VX(y->sh_addr));
	else if (b->p_flags != a->p_flags &&
		 ((x->sh_flags & SHF_EXECINSTR) || b->p_flags != (a->p_flags & ~(uint32_t)PF_X)))
		/* Data need not be executable, though older linkers make it so. */
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "protection: %s (-> 0x%llx): expected 0x%x, found 0x%x", s->name,
			     ICF_VX(y->sh_addr), a->p_flags, b->p_flags);
	else if (y->sh_type != SHT_NOBITS && y->sh_addr - b->p_vaddr != y->sh_offset - b->p_offset)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "offset: %s (-> 0x%llx): expected 0x%llx, found 0x%llx", s->name,
			     ICF_VX(y->sh_addr), ICF_VX(y->sh_addr - b->p_vaddr + b->p_offset),
			     ICF_VX(y->sh_offset));
	else if (y->sh_type != SHT_NOBITS && y->sh_addr - b->p_vaddr + y->sh_size > b->p_filesz)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "size: %s (-> 0x%llx): expected all of it in the file, found a part",
			     s->name, ICF_VX(y->sh_addr));
	else if (y->sh_type == SHT_NOBITS && y->sh_addr - b->p_vaddr < b->p_filesz)
		check_zeros(c, log, s);
}

/* Checks that each loaded section of IN is loaded the same in OUT. */
static void check_loaded_sections(const struct icf_vclaim *c, struct icf_vlog *log)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const Elf64_Shdr *x = &c->in.section[i].hdr;
		bool tls_zeros = x->sh_type == SHT_NOBITS && (x->sh_flags & SHF_TLS);
		if (!(x->sh_flags & SHF_ALLOC) || !c->to_out[i])
			continue;
		const Elf64_Shdr *y = &c->out.section[c->to_out[i]].hdr;
		struct loaded s = { c->in.section[i].name, x, y,
				    icf_vfile_load_at(&c->in, x->sh_addr, x->sh_size),
				    icf_vfile_load_at(&c->out, y->sh_addr, y->sh_size) };
		log->checked[ICF_VC_SEGMENT]++;
		check_no_bytes(c, log, &s);
		if (!tls_zeros && s.old_load && x->sh_size && y->sh_size)
			check_contents(c, log, &s);
	}
}

void icf_vfile_loads(const struct icf_vclaim *c, struct icf_vlog *log)
{
	const Elf64_Phdr *prev = NULL;
	for (uint32_t p = 0; p < c->out.n_phdrs; p++) {
		const Elf64_Phdr *ph = &c->out.phdr[p];
		if (ph->p_type != PT_LOAD)
			continue;
		check_offset(c, log, p, ph);
		/* What is empty takes no room. */
		if (prev && !is_empty(ph))
			check_after(c, log, p, prev, ph);
		if (!is_empty(ph))
			prev = ph;
		check_load(c, log, p, ph);
	}
	check_empty(c, log);
	check_loaded_sections(c, log);
}
