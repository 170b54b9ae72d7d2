/* output.c: the edits of output.h. */
#include "elfrw/output.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct elfrw_err *elfrw_output_init(struct elfrw_output *out, const struct elfrw_image *img)
{
	*out = (struct elfrw_output){ .img = img, .entry = img->ehdr.e_entry };
	out->sec = calloc(img->n_sections, sizeof *out->sec);
	if (!out->sec)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		out->sec[i] = (struct elfrw_outsec){ .addr = s->hdr.sh_addr,
						     .size = s->hdr.sh_size,
						     .data = s->data,
						     .flags = s->hdr.sh_flags,
						     .align = s->hdr.sh_addralign,
						     .info = s->hdr.sh_info };
	}
	return NULL;
}

void elfrw_output_deinit(struct elfrw_output *out)
{
	for (uint32_t i = 0; out->sec && i < out->img->n_sections; i++)
		free(out->sec[i].owned);
	for (size_t i = 0; i < out->added.len; i++)
		free(out->added.data[i].data);
	free(out->sec);
	VEC_FREE(&out->added);
	VEC_FREE(&out->hole);
	VEC_FREE(&out->piece);
	VEC_FREE(&out->phdr);
	if (out->copy)
		munmap(out->copy, out->img->size);
	free(out->shdrs);
	free(out->shstrtab);
	*out = (struct elfrw_output){ 0 };
}

struct elfrw_err *elfrw_output_edit(struct elfrw_output *out, uint32_t shndx, uint8_t **ret)
{
	struct elfrw_outsec *s = &out->sec[shndx];
	if (!s->edited && s->data) {
		if (!out->copy) {
			void *p = elfrw_image_private_copy(out->img);
			if (!p)
				return elfrw_error_errno(errno, "cannot map a second time");
			out->copy = p;
		}
		s->edited = out->copy + (s->data - out->img->base);
		s->data = s->edited;
	}
	*ret = s->edited;
	return NULL;
}

void elfrw_output_replace(struct elfrw_output *out, uint32_t shndx, uint8_t *data, uint64_t size)
{
	struct elfrw_outsec *s = &out->sec[shndx];
	free(s->owned);
	s->owned = s->edited = data;
	s->data = data;
	s->size = size;
}

void elfrw_output_drop(struct elfrw_output *out, uint32_t shndx)
{
	out->sec[shndx].drop = true;
}

struct elfrw_err *elfrw_output_add(struct elfrw_output *out, const char *name, uint8_t *data,
				   uint64_t size, uint64_t flags, uint64_t align)
{
	struct elfrw_newsec *s = VEC_PUSH(&out->added);
	if (!s) {
		free(data);
		return &elfrw_err_nomem;
	}
	*s = (struct elfrw_newsec){ .name = name,
				    .data = data,
				    .size = size,
				    .flags = flags,
				    .align = align,
				    .debug = out->img->pair != NULL };
	return NULL;
}

struct elfrw_err *elfrw_output_at(struct elfrw_output *out, uint64_t va, uint64_t size,
				  uint8_t **ret)
{
	uint32_t shndx = elfrw_image_section_at(out->img, va);
	*ret = NULL;
	if (!shndx || !out->sec[shndx].data)
		return NULL;
	uint64_t off = va - out->img->section[shndx].hdr.sh_addr;
	if (off > out->sec[shndx].size || size > out->sec[shndx].size - off)
		return NULL;
	uint8_t *p;
	ELFRW_TRY(elfrw_output_edit(out, shndx, &p));
	*ret = p + off;
	return NULL;
}
