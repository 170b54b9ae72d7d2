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
	uint64_t *end;    /* the same of their ends */
	uint32_t n_loaded;
	uint32_t *by_block; /* by block of 1 << shift bytes from the first address on, and once
			       more: how many sections begin before it; owned */
	uint64_t n_blocks;
	unsigned shift;
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

#define BLOCKS 1024

/* Makes by_block, which narrows a search down to a section or two. */
static bool make_blocks(struct elfrw_image_index *x)
{
	const uint32_t n = x->n_loaded;
	const uint64_t size = n ? x->end[n - 1] - x->start[0] : 0;
	while (size >> x->shift >= BLOCKS)
		x->shift++;
	x->n_blocks = n ? (size >> x->shift) + 1 : 0;
	x->by_block = malloc((x->n_blocks + 1) * sizeof *x->by_block);
	if (!x->by_block)
		return false;
	for (uint64_t b = 0, i = 0; b <= x->n_blocks; b++) {
		while (i < n && (x->start[i] - x->start[0]) >> x->shift < b)
			i++;
		x->by_block[b] = (uint32_t)i;
	}
	return true;
}

/* How many sections begin at VA or before it? */
static inline size_t begun(const struct elfrw_image_index *x, uint64_t va)
{
	if (!x->n_loaded || va < x->start[0])
		return 0;
	uint64_t b = (va - x->start[0]) >> x->shift;
	if (b >= x->n_blocks)
		return x->n_loaded;
	return LOWER_BOUND(x->by_block[b], x->by_block[b + 1], mid, x->start[mid] <= va);
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
	x->end = malloc((img->n_sections + 1) * sizeof *x->end);
	if (!x->loaded || !x->first || !x->next || !x->start || !x->end)
		return &elfrw_err_nomem;
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (has_addresses(&img->section[i].hdr))
			x->loaded[x->n_loaded++] = i;
	qsort_r(x->loaded, x->n_loaded, sizeof *x->loaded, by_address, img->section);
	for (uint32_t i = 0; i < x->n_loaded; i++) {
		const Elf64_Shdr *sh = &img->section[x->loaded[i]].hdr;
		x->start[i] = sh->sh_addr;
		x->end[i] = sh->sh_addr + sh->sh_size;
	}
	for (uint32_t i = 1; i < x->n_loaded; i++) {
		const Elf64_Shdr *a = &img->section[x->loaded[i - 1]].hdr,
				 *b = &img->section[x->loaded[i]].hdr;
		/* Otherwise "the section at an address" would be ambiguous. */
		if (b->sh_addr < a->sh_addr + a->sh_size)
			return elfrw_error("sections overlap at address 0x%llx",
					   (unsigned long long)b->sh_addr);
	}
	if (!make_blocks(x))
		return &elfrw_err_nomem;
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
		free(img->index->end);
		free(img->index->by_block);
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
	size_t i = x ? begun(x, va) : 0;
	return i && va < x->end[i - 1] ? x->loaded[i - 1] : 0;
}

uint32_t elfrw_image_section_from(const struct elfrw_image *img, uint64_t va)
{
	const struct elfrw_image_index *x = img->index;
	size_t i = x ? begun(x, va) : 0;
	if (i && va < x->end[i - 1])
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
