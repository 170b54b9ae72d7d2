/* emit.c: the list of sections that differ from the input. */
#include "dwarf/rewrite/run.h"
#include "elfrw/image.h"
#include <stdlib.h>
#include <string.h>

void dwr_rw_compress_new(struct dwr_rw *rw, enum dwr_sec id)
{
	const struct dwr_section *info = &rw->secs.sec[DWR_INFO];
	struct dwr_section *sec = &rw->secs.sec[id];
	if (!sec->shndx && info->shndx && info->compression != DWR_ZDEBUG)
		sec->compression = info->compression;
}

struct elfrw_err *dwr_rw_emit(struct dwr_rw_run *run, enum dwr_sec id, uint8_t *data, size_t size)
{
	const struct dwr_section *sec = &run->rw.secs.sec[id];
	if (sec->shndx && sec->size == size && !memcmp(sec->data, data, size)) {
		free(data);
		return NULL;
	}
	uint8_t *packed;
	size_t packed_size;
	ELFRW_TRY(dwr_section_pack(sec, data, size, run->rw.in->threads, &packed, &packed_size));
	struct dwr_section_out *p =
		realloc(run->out.section, (run->out.n_sections + 1) * sizeof *p);
	if (!p) {
		free(packed);
		return &elfrw_err_nomem;
	}
	run->out.section = p;
	p += run->out.n_sections++;
	bool chdr = sec->compression == DWR_ZLIB || sec->compression == DWR_ZSTD;
	*p = (struct dwr_section_out){ .name = sec->name,
				       .shndx = sec->shndx,
				       .data = packed,
				       .size = packed_size,
				       .sh_flags = chdr ? SHF_COMPRESSED : 0,
				       .sh_addralign = chdr ? _Alignof(Elf64_Chdr) : 1 };
	if (sec->shndx) {
		const struct elfrw_section *s = &run->rw.in->image->section[sec->shndx];
		p->name = s->name;
		p->sh_flags = s->hdr.sh_flags;
		p->sh_addralign = s->hdr.sh_addralign;
	}
	return NULL;
}

/* Passes the new section of a part to dwr_rw_emit(). */
static struct elfrw_err *emit_owned(struct dwr_rw_run *run, enum dwr_sec id, uint8_t **data,
				    size_t size)
{
	uint8_t *p = *data;
	*data = NULL;
	return p ? dwr_rw_emit(run, id, p, size) : NULL;
}

struct elfrw_err *dwr_rw_emit_sections(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	static const enum dwr_sec list_sec[DWR_LIST_KINDS] = { [DWR_LIST_RANGES] = DWR_RANGES,
							       [DWR_LIST_RNGLISTS] = DWR_RNGLISTS,
							       [DWR_LIST_LOC] = DWR_LOC,
							       [DWR_LIST_LOCLISTS] = DWR_LOCLISTS };
	ELFRW_TRY(emit_owned(run, DWR_INFO, &rw->copy[DWR_INFO], run->info_size));
	ELFRW_TRY(emit_owned(run, DWR_TYPES, &rw->copy[DWR_TYPES], rw->secs.sec[DWR_TYPES].size));
	if (run->abbrev.len) {
		size_t size = run->abbrev.len;
		ELFRW_TRY(dwr_rw_emit(run, DWR_ABBREV, elfrw_wbuf_take(&run->abbrev), size));
	}
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++)
		ELFRW_TRY(emit_owned(run, list_sec[k], &run->lists.sec[k].data,
				     run->lists.sec[k].size));
	ELFRW_TRY(emit_owned(run, DWR_ADDR, &run->addr.data, run->addr.size));
	dwr_rw_compress_new(rw, DWR_LINE_STR);
	ELFRW_TRY(emit_owned(run, DWR_LINE_STR, &rw->line.line_str, rw->line.line_str_size));
	return emit_owned(run, DWR_LINE, &rw->line.data, rw->line.size);
}

int dwr_rw_by_place(const void *a, const void *b)
{
	const struct dwr_section_out *x = a, *y = b;
	uint32_t i = x->shndx ? x->shndx : UINT32_MAX, j = y->shndx ? y->shndx : UINT32_MAX;
	return i != j ? (i < j ? -1 : 1) : strcmp(x->name, y->name);
}

void dwr_rewrite_out_deinit(struct dwr_rewrite_out *out)
{
	for (uint32_t i = 0; i < out->n_sections; i++)
		free(out->section[i].data);
	free(out->section);
	free(out->die);
	dwr_call_found_deinit(&out->found);
	memset(out, 0, sizeof *out);
}
