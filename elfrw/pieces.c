/* pieces.c: what becomes of each loadable segment.
 *
 * Addresses are already decided.  Here every loadable segment is cut to its remaining contents and
 * moved up in the file.  A segment that ends earlier becomes shorter.
 *
 * A hole of whole pages can open in the middle of a segment, because some linkers put read-only
 * data behind the code, or unwind tables before other data, in one segment.  The hole leaves the
 * file by cutting the segment in two.  That needs one more program header.  If there is no room for
 * it, the note and interpreter sections right behind the table move into the hole.
 *
 * Offsets stay congruent to addresses modulo the segment's alignment, and the alignment stays.  The
 * loader places a program by this alignment, and large pages need both.  With an alignment larger
 * than a page, fewer pages leave the file; the rest is a hole that is never written. */
#include "elfrw/base/align.h"
#include "elfrw/pieces.h"
#include <stdlib.h>
#include <string.h>

struct extent {
	uint64_t start, end;
	uint32_t shndx; /* 0: the headers */
};

struct extents {
	VEC(struct extent) v;
};

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Zeros between other contents have room in the file (linker scripts).  Those of threads have none:
 * their addresses may be those of what follows. */
static bool in_segment(const Elf64_Phdr *ph, const Elf64_Shdr *sh)
{
	return (sh->sh_flags & SHF_ALLOC) &&
	       !(sh->sh_type == SHT_NOBITS && (sh->sh_flags & SHF_TLS)) && sh->sh_size &&
	       sh->sh_addr >= ph->p_vaddr && sh->sh_addr - ph->p_vaddr < ph->p_filesz;
}

static uint64_t headers_end(const struct elfrw_output *out, const Elf64_Phdr *ph, uint32_t n_phdrs)
{
	const Elf64_Ehdr *eh = &out->img->ehdr;
	uint64_t end = eh->e_phoff + (uint64_t)n_phdrs * sizeof(Elf64_Phdr);
	return ph->p_offset == 0 && end <= ph->p_filesz ? end : 0;
}

bool elfrw_may_make_room(const struct elfrw_output *out, uint32_t i)
{
	const struct elfrw_section *s = &out->img->section[i];
	return !out->sec[i].referenced &&
	       (s->hdr.sh_type == SHT_NOTE || strcmp(s->name, ".interp") == 0);
}

/* What is left of segment PH, sorted by new address.  *CHANGED: one of its sections moved or
 * changed its size. */
static struct elfrw_err *collect(const struct elfrw_output *out, const Elf64_Phdr *ph,
				 uint32_t n_phdrs, struct extents *ret, bool *changed)
{
	ret->v.len = 0;
	*changed = false;
	uint64_t hdr = headers_end(out, ph, n_phdrs);
	if (hdr) {
		struct extent *x = VEC_PUSH(&ret->v);
		if (!x)
			return &elfrw_err_nomem;
		*x = (struct extent){ ph->p_vaddr, ph->p_vaddr + hdr, 0 };
	}
	for (uint32_t i = 1; i < out->img->n_sections; i++) {
		const struct elfrw_outsec *s = &out->sec[i];
		const Elf64_Shdr *sh = &out->img->section[i].hdr;
		/* A section that made room belongs to the segment that it moved into. */
		Elf64_Shdr now = *sh;
		if (elfrw_may_make_room(out, i))
			now.sh_addr = s->addr;
		*changed |= in_segment(ph, &now) != in_segment(ph, sh);
		if (!in_segment(ph, &now))
			continue;
		*changed |= s->addr != sh->sh_addr || s->size != sh->sh_size;
		if (s->size == 0)
			continue;
		struct extent *x = VEC_PUSH(&ret->v);
		if (!x)
			return &elfrw_err_nomem;
		*x = (struct extent){ s->addr, s->addr + s->size, i };
	}
	if (ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, extent_order);
	for (size_t i = 1; i < ret->v.len; i++)
		if (ret->v.data[i].start < ret->v.data[i - 1].end)
			return elfrw_error("internal: sections overlap at 0x%llx in the output",
					   (unsigned long long)ret->v.data[i].start);
	return NULL;
}

/* The whole pages between two extents of segment PH, as far as they can leave the file. */
static uint64_t hole_pages(const struct elfrw_output *out, const Elf64_Phdr *ph,
			   const struct extent *a, const struct extent *b)
{
	uint64_t page = elfrw_image_page(out->img), from = elfrw_align_up(a->end, page),
		 to = b->start & ~(page - 1);
	return to > from && to - a->end >= ph->p_align ? (to - from) / page : 0;
}

static struct elfrw_err *push_piece(struct elfrw_output *out, uint32_t p, uint64_t start,
				    uint64_t file_end, uint64_t mem_end, bool first)
{
	struct elfrw_piece *piece = VEC_PUSH(&out->piece);
	if (!piece)
		return &elfrw_err_nomem;
	piece->ph = out->img->phdr[p];
	piece->old = p;
	piece->first = first;
	piece->ph.p_paddr += start - piece->ph.p_vaddr;
	piece->ph.p_vaddr = start;
	piece->ph.p_filesz = file_end - start;
	piece->ph.p_memsz = mem_end - start;
	return NULL;
}

/* Cuts segment P into pieces; at most *ALLOWED more than one.  Subtracts the number used from
 * *ALLOWED. */
static struct elfrw_err *cut(struct elfrw_output *out, uint32_t p, uint32_t n_phdrs,
			     uint32_t *allowed, struct extents *ex)
{
	const Elf64_Phdr *ph = &out->img->phdr[p];
	uint64_t file_end = ph->p_vaddr + ph->p_filesz, mem_end = ph->p_vaddr + ph->p_memsz;
	bool changed;
	ELFRW_TRY(collect(out, ph, n_phdrs, ex, &changed));
	if (!changed || !ex->v.len)
		return push_piece(out, p, ph->p_vaddr, file_end, mem_end, true);
	if (ph->p_memsz == ph->p_filesz)
		file_end = mem_end = ex->v.data[ex->v.len - 1].end;
	uint64_t start = ph->p_vaddr;
	bool first = true;
	for (size_t i = 1; i < ex->v.len; i++) {
		const struct extent *a = &ex->v.data[i - 1], *b = &ex->v.data[i];
		if (!hole_pages(out, ph, a, b))
			continue;
		if (!*allowed) {
			out->n_unsplit++;
			continue;
		}
		--*allowed;
		out->n_split++;
		ELFRW_TRY(push_piece(out, p, start, a->end, a->end, first));
		start = b->start & ~(elfrw_image_page(out->img) - 1);
		first = false;
	}
	return push_piece(out, p, start, file_end, mem_end, first);
}

/* The part of a split segment without code need not be executable. */
static void drop_exec(struct elfrw_output *out)
{
	for (size_t i = 0; i < out->piece.len; i++) {
		Elf64_Phdr *ph = &out->piece.data[i].ph;
		bool code = out->piece.data[i].first;
		for (uint32_t s = 1; s < out->img->n_sections && !code; s++)
			code = (out->sec[s].flags & SHF_ALLOC) &&
			       (out->sec[s].flags & SHF_EXECINSTR) && out->sec[s].size &&
			       out->sec[s].addr >= ph->p_vaddr &&
			       out->sec[s].addr - ph->p_vaddr < ph->p_memsz;
		if (!code)
			ph->p_flags &= ~(Elf64_Word)PF_X;
	}
}

/* How many holes of whole pages are there, and where does the first one begin? */
static struct elfrw_err *count_holes(const struct elfrw_output *out, uint32_t *n, uint64_t *at,
				     uint64_t *pages)
{
	struct extents ex = { 0 };
	struct elfrw_err *err = NULL;
	*n = 0;
	for (uint32_t p = 0; p < out->img->n_phdrs && !err; p++) {
		bool changed;
		if (out->img->phdr[p].p_type != PT_LOAD)
			continue;
		err = collect(out, &out->img->phdr[p], out->img->n_phdrs, &ex, &changed);
		for (size_t i = 1; i < ex.v.len && changed && !err; i++) {
			uint64_t k = hole_pages(out, &out->img->phdr[p], &ex.v.data[i - 1],
						&ex.v.data[i]);
			if (k && (*n)++ == 0) {
				*at = ex.v.data[i - 1].end;
				*pages = k;
			}
		}
	}
	VEC_FREE(&ex.v);
	return err;
}

/* Is the byte before VA loaded with these flags? */
static bool is_loaded_so(const struct elfrw_image *img, uint64_t va, uint32_t flags)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++)
		if (img->phdr[p].p_type == PT_LOAD && va > img->phdr[p].p_vaddr &&
		    va - img->phdr[p].p_vaddr <= img->phdr[p].p_memsz)
			return img->phdr[p].p_flags == flags;
	return false;
}

/* Moves the sections behind the program headers into the hole from AT to END, unless they would
 * become executable there (ld -z separate-code), until there is room for N more headers.  *ROOM:
 * the number of headers that there is room for.  Sections of one PT_NOTE move together, as a block.
 */
static struct elfrw_err *make_room(struct elfrw_output *out, uint32_t n, uint64_t at, uint64_t end,
				   uint32_t *room)
{
	const struct elfrw_image *img = out->img;
	const Elf64_Phdr *ph = NULL;
	*room = 0;
	for (uint32_t p = 0; p < img->n_phdrs && !ph; p++)
		if (img->phdr[p].p_type == PT_LOAD && headers_end(out, &img->phdr[p], img->n_phdrs))
			ph = &img->phdr[p];
	if (!ph || !is_loaded_so(img, at, ph->p_flags))
		return NULL;
	struct extents ex = { 0 };
	bool changed;
	struct elfrw_err *err = collect(out, ph, img->n_phdrs, &ex, &changed);
	uint64_t table_end = ph->p_vaddr + headers_end(out, ph, img->n_phdrs),
		 need = table_end + (uint64_t)n * sizeof(Elf64_Phdr);
	size_t k = 1;
	uint64_t block_start = k < ex.v.len ? ex.v.data[k].start : 0, block_end = block_start;
	/* The block of sections in the way, with those of the same notes. */
	while (!err && k < ex.v.len &&
	       (ex.v.data[k].start < need || ex.v.data[k].start < block_end)) {
		if (!elfrw_may_make_room(out, ex.v.data[k].shndx))
			break;
		block_end = ex.v.data[k].end;
		for (uint32_t p = 0; p < img->n_phdrs; p++) {
			const Elf64_Phdr *q = &img->phdr[p];
			if (q->p_type == PT_NOTE && q->p_vaddr < ex.v.data[k].end &&
			    ex.v.data[k].start < q->p_vaddr + q->p_memsz &&
			    q->p_vaddr + q->p_memsz > block_end)
				block_end = q->p_vaddr + q->p_memsz;
		}
		k++;
	}
	bool done = !err && (k == ex.v.len ||
			     (ex.v.data[k].start >= need && ex.v.data[k].start >= block_end));
	uint64_t to = elfrw_align_up(at, 64) + (block_start & 63);
	if (k > 1 && (to > end || block_end - block_start > end - to))
		done = false; /* the block is longer than the hole */
	if (done && k > 1) {
		uint64_t shift = to - block_start;
		for (size_t i = 1; i < k; i++)
			out->sec[ex.v.data[i].shndx].addr += shift;
	}
	VEC_FREE(&ex.v);
	if (done)
		*room = n;
	return err;
}

/* PT_PHDR is needed only in programs with an interpreter.  Elsewhere the ELF header says the same
 * (gABI, "Program Header"). */
static bool spare_pt_phdr(const struct elfrw_image *img)
{
	bool found = false;
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		if (img->phdr[p].p_type == PT_INTERP)
			return false;
		found |= img->phdr[p].p_type == PT_PHDR;
	}
	return found;
}

struct elfrw_err *elfrw_make_pieces(struct elfrw_output *out)
{
	uint32_t holes = 0, room = 0;
	uint64_t at = 0, pages = 0, page = elfrw_image_page(out->img);
	ELFRW_TRY(count_holes(out, &holes, &at, &pages));
	if (holes > 8)
		holes = 8;
	/* Moving sections into a hole of one page cannot gain anything.  The count below decides.
	 */
	if (holes)
		ELFRW_TRY(
			make_room(out, holes, at, elfrw_align_up(at, page) + pages * page, &room));
	out->no_pt_phdr = holes && !room && spare_pt_phdr(out->img);
	room += out->no_pt_phdr;
	struct extents ex = { 0 };
	struct elfrw_err *err = NULL;
	uint32_t left = room;
	for (uint32_t p = 0; p < out->img->n_phdrs && !err; p++)
		if (out->img->phdr[p].p_type == PT_LOAD)
			err = cut(out, p, out->img->n_phdrs + room - out->no_pt_phdr, &left, &ex);
	VEC_FREE(&ex.v);
	drop_exec(out);
	return err;
}

/* The least offset of the first piece.  Headers that no segment loads (ld -N) come before all
 * pieces. */
static uint64_t first_offset(const struct elfrw_output *out)
{
	const struct elfrw_image *img = out->img;
	for (size_t i = 0; i < out->piece.len; i++)
		if (img->phdr[out->piece.data[i].old].p_offset == 0 &&
		    img->phdr[out->piece.data[i].old].p_filesz)
			return 0;
	return img->ehdr.e_phoff +
	       (uint64_t)(img->n_phdrs + out->n_split - out->no_pt_phdr) * sizeof(Elf64_Phdr);
}

void elfrw_place_pieces(struct elfrw_output *out)
{
	uint64_t cur = first_offset(out), page = elfrw_image_page(out->img);
	for (size_t i = 0; i < out->piece.len; i++) {
		Elf64_Phdr *ph = &out->piece.data[i].ph;
		const Elf64_Phdr *old = &out->img->phdr[out->piece.data[i].old];
		uint64_t align = ph->p_align > 1 ? ph->p_align : 1;
		/* The loader maps pages, whatever the alignment says (ld -N, ld -n). */
		if (align < page && (old->p_offset - old->p_vaddr) % page == 0)
			align = page;
		if (ph->p_filesz == 0) {
			/* The segment holds only zeros: any congruent offset will do. */
			ph->p_offset = align > page ? old->p_offset % align
						    : cur + ((ph->p_vaddr - cur) & (align - 1));
			/* bfd writes an empty data segment in programs without data.  objdump
			 * complains if it is behind the file's end. */
			if (!ph->p_memsz && (ph->p_vaddr & (align - 1)) <= cur)
				ph->p_offset = ph->p_vaddr & (align - 1);
			continue;
		}
		ph->p_offset = cur + ((ph->p_vaddr - cur) & (align - 1));
		cur = ph->p_offset + ph->p_filesz;
	}
	out->file_size = cur;
}
