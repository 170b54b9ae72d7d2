/* segment.c: the segments of OUT that describe part of the loaded contents, or nothing that is
 * loaded.  They must be those of IN, for the same contents. */
#include "icf/verify/file/state.h"

/* The image of the bound VA of a segment of IN: the start, or the end, of a section. */
static bool new_bound(const struct icf_vclaim *c, uint64_t va, bool end, uint64_t *ret)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const Elf64_Shdr *x = &c->in.section[i].hdr;
		if (!(x->sh_flags & SHF_ALLOC) || !c->to_out[i] || !x->sh_size ||
		    (end ? x->sh_addr + x->sh_size : x->sh_addr) != va)
			continue;
		const Elf64_Shdr *y = &c->out.section[c->to_out[i]].hdr;
		*ret = y->sh_addr + (end ? y->sh_size : 0);
		return true;
	}
	return false;
}

/* The end in OUT's file of what segment X of IN loads: of its last part if it was cut. */
static uint64_t file_end(const struct icf_vclaim *c, const Elf64_Phdr *x)
{
	const Elf64_Phdr *last = NULL;
	for (uint32_t p = 0; p < c->out.n_phdrs; p++) {
		const Elf64_Phdr *y = &c->out.phdr[p];
		if (y->p_type == PT_LOAD && y->p_vaddr >= x->p_vaddr &&
		    y->p_vaddr - x->p_vaddr < (x->p_memsz ? x->p_memsz : 1))
			last = y;
	}
	return last ? last->p_offset + last->p_filesz : 0;
}

/* Offset A of IN refers to no byte.  Is B of OUT the same: the same number, the start of a loaded
 * segment, or the first multiple of ALIGN, with A's remainder, behind the segment that ends before
 * A? */
static bool same_start(const struct icf_vclaim *c, uint64_t a, uint64_t b, uint64_t align)
{
	bool start = false;
	const Elf64_Phdr *before = NULL;
	for (uint32_t p = 0; p < c->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &c->in.phdr[p];
		if (x->p_type != PT_LOAD)
			continue;
		if (x->p_offset < a && (!before || x->p_offset >= before->p_offset))
			before = x;
		if (x->p_offset != a)
			continue;
		start = true;
		const Elf64_Phdr *y = icf_vfile_load_at(&c->out, x->p_vaddr, 0);
		if (y && y->p_vaddr == x->p_vaddr && y->p_offset == b)
			return true;
	}
	uint64_t end = before ? file_end(c, before) : 0;
	return !start && (a == b || (before && b >= end && b - end < align &&
				     (b & (align - 1)) == (a & (align - 1))));
}

/* Checks the addresses of the segment Y, number K, of OUT: they are the image of those of X. */
static void check_bounds(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t k,
			 const Elf64_Phdr *x, const Elf64_Phdr *y)
{
	uint64_t start = x->p_vaddr, end = x->p_vaddr + x->p_memsz;
	if (x->p_type == PT_PHDR)
		end = start + (uint64_t)c->out.n_phdrs * sizeof(Elf64_Phdr);
	else if (x->p_memsz && x->p_type != PT_GNU_STACK && x->p_type != PT_NULL) {
		if (!new_bound(c, start, false, &start))
			start = x->p_vaddr;
		/* The read-only part ends at a page, not at a section; the thread-local one may end
		 * in sections without contents. */
		if (x->p_type == PT_GNU_RELRO || x->p_type == PT_TLS ||
		    !new_bound(c, end, true, &end))
			end = start + x->p_memsz;
	}
	if (y->p_vaddr != start || y->p_vaddr + y->p_memsz != end)
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"place: segment %u of type 0x%x (0x%llx): expected 0x%llx to 0x%llx, found 0x%llx to 0x%llx",
			k, x->p_type, ICF_VX(x->p_vaddr), ICF_VX(start), ICF_VX(end),
			ICF_VX(y->p_vaddr), ICF_VX(y->p_vaddr + y->p_memsz));
}

/* The bytes of segment X of IMG that its file does not have, although the segment says so: lld's
 * protected segments end with a page. */
static uint64_t missing(const struct elfrw_image *img, const Elf64_Phdr *x)
{
	const Elf64_Phdr *load = icf_vfile_load_at(img, x->p_vaddr, x->p_filesz);
	uint64_t end = load ? x->p_vaddr - load->p_vaddr + x->p_filesz : 0;
	return load && end > load->p_filesz ? end - load->p_filesz : 0;
}

/* Checks that the segment Y, number K, of OUT has the bytes that are loaded at its address; without
 * bytes, the offset of X. */
static void check_bytes(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t k,
			const Elf64_Phdr *x, const Elf64_Phdr *y)
{
	const Elf64_Phdr *load =
		y->p_filesz ? icf_vfile_load_at(&c->out, y->p_vaddr, y->p_filesz) : NULL;
	bool nowhere = !icf_vfile_load_at(&c->in, x->p_vaddr, 0) &&
		       (!x->p_filesz || x->p_type == PT_GNU_RELRO);
	if (nowhere) {
		if (!same_start(c, x->p_offset, y->p_offset, x->p_align > 1 ? x->p_align : 1))
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"offset: segment %u of type 0x%x, not loaded: expected 0x%llx, or where that segment begins or ends now, found 0x%llx",
				k, x->p_type, ICF_VX(x->p_offset), ICF_VX(y->p_offset));
	} else if (y->p_filesz &&
		   (!load || y->p_offset - load->p_offset != y->p_vaddr - load->p_vaddr ||
		    missing(&c->out, y) > missing(&c->in, x)))
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"offset: segment %u of type 0x%x at 0x%llx: expected the bytes that are loaded there, found 0x%llx",
			k, x->p_type, ICF_VX(y->p_vaddr), ICF_VX(y->p_offset));
	if (!nowhere && !y->p_filesz && y->p_offset != x->p_offset) {
		load = icf_vfile_load_at(&c->out, y->p_vaddr, 0);
		if (!load || y->p_offset - load->p_offset != y->p_vaddr - load->p_vaddr)
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"offset: segment %u of type 0x%x, without bytes: expected 0x%llx, found 0x%llx",
				k, x->p_type, ICF_VX(x->p_offset), ICF_VX(y->p_offset));
	}
}

/* Checks a segment that only describes part of the loaded contents. */
static void describe(const struct icf_vclaim *c, struct icf_vlog *log, uint32_t k,
		     const Elf64_Phdr *x, const Elf64_Phdr *y)
{
	log->checked[ICF_VC_SEGMENT]++;
	if (x->p_flags != y->p_flags || x->p_align != y->p_align) {
		icf_vlog_bad(
			log, ICF_VC_SEGMENT,
			"header: segment %u of type 0x%x: expected protection 0x%x and alignment 0x%llx, found 0x%x and 0x%llx",
			k, x->p_type, x->p_flags, ICF_VX(x->p_align), y->p_flags,
			ICF_VX(y->p_align));
		return;
	}
	check_bounds(c, log, k, x, y);
	uint64_t filesz = x->p_filesz == x->p_memsz ? y->p_memsz : x->p_filesz;
	if (y->p_filesz != filesz)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "size: segment %u of type 0x%x: expected 0x%llx, found 0x%llx", k,
			     x->p_type, ICF_VX(filesz), ICF_VX(y->p_filesz));
	check_bytes(c, log, k, x, y);
	if (y->p_paddr - y->p_vaddr != x->p_paddr - x->p_vaddr)
		icf_vlog_bad(log, ICF_VC_SEGMENT,
			     "physical address: segment %u: expected 0x%llx, found 0x%llx", k,
			     ICF_VX(y->p_vaddr + x->p_paddr - x->p_vaddr), ICF_VX(y->p_paddr));
}

static bool has_interpreter(const struct icf_vclaim *c)
{
	for (uint32_t p = 0; p < c->in.n_phdrs; p++)
		if (c->in.phdr[p].p_type == PT_INTERP)
			return true;
	return false;
}

/* Does IN have the segment of this type behind a loaded one? */
static bool is_behind(const struct icf_vclaim *c, uint32_t type)
{
	bool loaded = false;
	for (uint32_t p = 0; p < c->in.n_phdrs; p++) {
		loaded |= c->in.phdr[p].p_type == PT_LOAD;
		if (loaded && c->in.phdr[p].p_type == type)
			return true;
	}
	return false;
}

void icf_vfile_segments(const struct icf_vclaim *c, struct icf_vlog *log)
{
	uint32_t k = 0;
	bool loaded = false;
	/* gABI, "Program Header": these two precede loaded segments. */
	for (uint32_t p = 0; p < c->out.n_phdrs; p++) {
		uint32_t type = c->out.phdr[p].p_type;
		loaded |= type == PT_LOAD;
		if (loaded && (type == PT_INTERP || type == PT_PHDR) && !is_behind(c, type))
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"order: segment %u of type 0x%x: expected before what is loaded, found behind",
				p, type);
	}
	for (uint32_t p = 0; p < c->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &c->in.phdr[p];
		if (x->p_type == PT_LOAD)
			continue;
		while (k < c->out.n_phdrs && c->out.phdr[k].p_type == PT_LOAD)
			k++;
		/* Only a program with an interpreter needs it. */
		if (x->p_type == PT_PHDR && !has_interpreter(c) &&
		    (k == c->out.n_phdrs || c->out.phdr[k].p_type != PT_PHDR))
			continue;
		if (k == c->out.n_phdrs || c->out.phdr[k].p_type != x->p_type) {
			icf_vlog_bad(log, ICF_VC_SEGMENT,
				     "segment %u of type 0x%x: expected in the output, found %s", p,
				     x->p_type, k == c->out.n_phdrs ? "none" : "another");
			return;
		}
		describe(c, log, k, x, &c->out.phdr[k]);
		k++;
	}
	for (; k < c->out.n_phdrs; k++)
		if (c->out.phdr[k].p_type != PT_LOAD)
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"segment %u of type 0x%x: expected only what the input has, found one more",
				k, c->out.phdr[k].p_type);
	/* IN's memory must be in OUT's memory, including zeros behind the data. */
	for (uint32_t p = 0; p < c->in.n_phdrs; p++) {
		const Elf64_Phdr *x = &c->in.phdr[p];
		if (x->p_type != PT_LOAD || x->p_memsz == x->p_filesz)
			continue;
		const Elf64_Phdr *y = icf_vfile_load_at(&c->out, x->p_vaddr + x->p_memsz - 1, 1);
		if (!y || y->p_vaddr + y->p_memsz != x->p_vaddr + x->p_memsz ||
		    y->p_vaddr + y->p_filesz != x->p_vaddr + x->p_filesz ||
		    y->p_flags != x->p_flags)
			icf_vlog_bad(
				log, ICF_VC_SEGMENT,
				"zeros: segment %u at 0x%llx: expected contents to 0x%llx and zeros to 0x%llx, found others",
				p, ICF_VX(x->p_vaddr), ICF_VX(x->p_vaddr + x->p_filesz),
				ICF_VX(x->p_vaddr + x->p_memsz));
	}
}
