/* tail.c: see tail.h.
 *
 * Self-extracting archives, AppImages, single-file programs and signatures append data to a
 * program.  Readers find this data by an offset in the file, by the distance to the file's end, or
 * at the end of the section headers.  So appended data keeps all three (layout.c).  A few zeros,
 * which patchelf leaves behind its headers, and the traps between lld's segments are not data. */
#include "elfrw/tail.h"
#include "elfrw/arch/arch.h"
#include <stdlib.h>

#define FEW 16 /* zeros: fewer than any alignment of a file's end leaves */

struct extent {
	uint64_t start, end;
};

static int extent_order(const void *a, const void *b)
{
	const struct extent *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Collects everything that headers describe; returns the number. */
static uint32_t collect(const struct elfrw_image *img, struct extent *e)
{
	const Elf64_Ehdr *eh = &img->ehdr;
	uint32_t n = 0;
	e[n++] = (struct extent){ 0, eh->e_ehsize };
	e[n++] = (struct extent){ eh->e_phoff,
				  eh->e_phoff + (uint64_t)img->n_phdrs * sizeof(Elf64_Phdr) };
	e[n++] = (struct extent){ eh->e_shoff,
				  eh->e_shoff + (uint64_t)img->n_sections * sizeof(Elf64_Shdr) };
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *sh = &img->section[i].hdr;
		if (sh->sh_type != SHT_NOBITS && sh->sh_type != SHT_NULL && sh->sh_size)
			e[n++] = (struct extent){ sh->sh_offset, sh->sh_offset + sh->sh_size };
	}
	/* In a debug file these are the program's headers and mean nothing. */
	for (uint32_t p = 0; p < img->n_phdrs && !img->separate; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		if (ph->p_type != PT_NULL && ph->p_filesz)
			e[n++] = (struct extent){ ph->p_offset, ph->p_offset + ph->p_filesz };
	}
	return n;
}

/* The end of the traps behind OFF with which lld fills the last page of code (-z separate-code), or
 * OFF. */
static uint64_t skip_traps(const struct elfrw_image *img, uint64_t off, uint64_t to)
{
	bool code = false;
	for (uint32_t p = 0; p < img->n_phdrs && !code; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		code = ph->p_type == PT_LOAD && (ph->p_flags & PF_X) &&
		       ph->p_offset + ph->p_filesz == off;
	}
	uint64_t end = off, page = elfrw_image_page(img);
	while (code && end < to && img->base[end] == elfrw_fill_byte(img->arch, end) &&
	       end - off < page)
		end++;
	return end;
}

static uint64_t not_zero(const struct elfrw_image *img, uint64_t from, uint64_t to)
{
	while (from < to && !img->base[from])
		from++;
	return from;
}

struct elfrw_err *elfrw_tail_find(const struct elfrw_image *img, struct elfrw_tail *ret)
{
	struct extent *e = malloc(((size_t)img->n_sections + img->n_phdrs + 3) * sizeof *e);
	if (!e)
		return &elfrw_err_nomem;
	uint32_t n = collect(img, e);
	qsort(e, n, sizeof *e, extent_order);
	uint64_t at = 0, lost = img->size;
	for (uint32_t k = 0; k < n && lost == img->size; k++) {
		uint64_t stop = e[k].start < img->size ? e[k].start : img->size;
		/* llvm-objcopy leaves parts of the program between those of a debug file. */
		uint64_t x = img->separate ? stop : not_zero(img, skip_traps(img, at, stop), stop);
		if (x < stop)
			lost = x;
		if (e[k].end > at)
			at = e[k].end;
	}
	free(e);
	if (lost < img->size)
		return elfrw_error_at(
			NULL, lost,
			"bytes that belong to no section or segment stand before others that do");
	if (at > img->size)
		at = img->size;
	*ret = (struct elfrw_tail){ .offset = at, .size = img->size - at };
	ret->headers = img->ehdr.e_shoff + (uint64_t)img->n_sections * sizeof(Elf64_Shdr) == at;
	ret->zeros = ret->size < FEW && not_zero(img, at, img->size) == img->size;
	return NULL;
}
