/* image_index.c: which section is at an address, and which relocations belong to a section.
 *
 * Every reference needs both answers, and a file may have as many sections as functions.  So each
 * has an index, made once.  Images that tests put together have no index; for these section_at()
 * scans all sections. */
#include "elfrw/image.h"
#include "elfrw/base/search.h"
#include <stdlib.h>

struct elfrw_image_index {
	uint32_t *loaded; /* sections with addresses of their own, in address order; owned */
	uint64_t *start;  /* their addresses; owned */
	uint32_t n_loaded;
	uint32_t *first, *next; /* by section: the first section of its relocations; the next one of
				   the same section; owned */
};

static bool has_addresses(const Elf64_Shdr *sh)
{
	return (sh->sh_flags & SHF_ALLOC) && sh->sh_size &&
	       !(sh->sh_type == SHT_NOBITS && (sh->sh_flags & SHF_TLS));
}

static int by_address(const void *a, const void *b, void *ctx)
{
	const struct elfrw_section *section = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (section[x].hdr.sh_addr != section[y].hdr.sh_addr)
		return section[x].hdr.sh_addr < section[y].hdr.sh_addr ? -1 : 1;
	return x < y ? -1 : x > y;
}

struct elfrw_err *elfrw_image_index_make(struct elfrw_image *img)
{
	struct elfrw_image_index *x = img->index = calloc(1, sizeof *x);
	if (!x)
		return &elfrw_err_nomem;
	x->loaded = malloc((img->n_sections + 1) * sizeof *x->loaded);
	x->first = calloc(img->n_sections + 1, sizeof *x->first);
	x->next = calloc(img->n_sections + 1, sizeof *x->next);
	x->start = malloc((img->n_sections + 1) * sizeof *x->start);
	if (!x->loaded || !x->first || !x->next || !x->start)
		return &elfrw_err_nomem;
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (has_addresses(&img->section[i].hdr))
			x->loaded[x->n_loaded++] = i;
	qsort_r(x->loaded, x->n_loaded, sizeof *x->loaded, by_address, img->section);
	for (uint32_t i = 0; i < x->n_loaded; i++)
		x->start[i] = img->section[x->loaded[i]].hdr.sh_addr;
	for (uint32_t i = 1; i < x->n_loaded; i++) {
		const Elf64_Shdr *a = &img->section[x->loaded[i - 1]].hdr,
				 *b = &img->section[x->loaded[i]].hdr;
		/* Otherwise "the section at an address" would be ambiguous. */
		if (b->sh_addr < a->sh_addr + a->sh_size)
			return elfrw_error("sections overlap at address 0x%llx",
					   (unsigned long long)b->sh_addr);
	}
	for (uint32_t i = img->n_sections; i-- > 1;) {
		const struct elfrw_section *s = &img->section[i];
		if (!elfrw_image_kept_relocs(img, s) || s->hdr.sh_info >= img->n_sections)
			continue;
		x->next[i] = x->first[s->hdr.sh_info];
		x->first[s->hdr.sh_info] = i;
	}
	return NULL;
}

void elfrw_image_index_free(struct elfrw_image *img)
{
	if (img->index) {
		free(img->index->loaded);
		free(img->index->first);
		free(img->index->next);
		free(img->index->start);
	}
	free(img->index);
	img->index = NULL;
}

uint32_t elfrw_image_section_at(const struct elfrw_image *img, uint64_t va)
{
	const struct elfrw_image_index *x = img->index;
	for (uint32_t i = 1; !x && i < img->n_sections; i++)
		if (has_addresses(&img->section[i].hdr) &&
		    va - img->section[i].hdr.sh_addr < img->section[i].hdr.sh_size)
			return i;
	size_t i = x ? LOWER_BOUND(0, x->n_loaded, mid, x->start[mid] <= va) : 0;
	if (!i)
		return 0;
	const Elf64_Shdr *sh = &img->section[x->loaded[i - 1]].hdr;
	return va - sh->sh_addr < sh->sh_size ? x->loaded[i - 1] : 0;
}

uint32_t elfrw_image_section_from(const struct elfrw_image *img, uint64_t va)
{
	const struct elfrw_image_index *x = img->index;
	size_t i = x ? LOWER_BOUND(0, x->n_loaded, mid, x->start[mid] <= va) : 0;
	if (i && va - img->section[x->loaded[i - 1]].hdr.sh_addr <
			 img->section[x->loaded[i - 1]].hdr.sh_size)
		i--;
	while (x && i < x->n_loaded && img->section[x->loaded[i]].hdr.sh_type == SHT_NOBITS)
		i++;
	return x && i < x->n_loaded ? x->loaded[i] : 0;
}

uint32_t elfrw_image_relocs_of(const struct elfrw_image *img, uint32_t shndx, uint32_t after)
{
	const struct elfrw_image_index *x = img->index;
	return !x ? 0 : after ? x->next[after] : shndx < img->n_sections ? x->first[shndx] : 0;
}
