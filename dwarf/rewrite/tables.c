/* tables.c: the sections other than DIEs: line tables, .debug_frame, indices and .debug_macro. */
#include "dwarf/cfi.h"
#include "dwarf/rewrite/aranges.h"
#include "dwarf/rewrite/claim.h"
#include "dwarf/rewrite/index.h"
#include "dwarf/rewrite/run.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include <stdlib.h>

static struct dwr_bytes bytes_of(const struct dwr_rw *rw, enum dwr_sec id)
{
	return (struct dwr_bytes){ rw->secs.sec[id].data, rw->secs.sec[id].size };
}

#define BYTES_PER_ROW 8

/* The bytes of all sections, in whatever file they lie, decompressed. */
static uint64_t size_of(const struct dwr_rw *rw)
{
	const struct elfrw_image *img = rw->in->image;
	uint64_t n = 0;
	for (uint32_t i = 1; i < img->n_sections; i++)
		n += img->section[i].data ? img->section[i].hdr.sh_size : 0;
	for (unsigned i = 0; i < DWR_SECS; i++)
		n += rw->secs.sec[i].owned ? rw->secs.sec[i].size : 0;
	return n;
}

struct elfrw_err *dwr_rw_rewrite_lines(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	if (!rw->secs.sec[DWR_LINE].size ||
	    !rw->changes) /* a note's references to sequences stay right */
		return NULL;
	struct dwr_rw_claim claim = { .rw = rw };
	struct dwr_rw_line_cu *cu = calloc(rw->units.len + 1, sizeof *cu);
	if (!cu)
		return &elfrw_err_nomem;
	size_t n = 0;
	for (size_t i = 0; i < rw->units.len; i++) {
		const struct dwr_unit_root *r = &rw->ru[i].root;
		if (r->has_line)
			cu[n++] = (struct dwr_rw_line_cu){ r->line, r->comp_dir,
							   r->str_offsets_base };
	}
	struct dwr_rw_line_in in = {
		.max_rows = size_of(rw) / BYTES_PER_ROW,
		.map = rw->map,
		.policy = rw->in->policy,
		.threads = rw->in->threads,
		.address_size = rw->in->image->arch->address_size,
		.name = rw->secs.sec[DWR_LINE].name,
		.line = bytes_of(rw, DWR_LINE),
		.strings = { bytes_of(rw, DWR_LINE_STR), bytes_of(rw, DWR_STR),
			     bytes_of(rw, DWR_STR_OFFSETS) },
		.cu = cu,
		.n_cus = n,
		.folded_name = rw->in->folded_unit_name,
		.claimed = dwr_rw_claimed,
		.claimed_arg = &claim,
	};
	struct elfrw_err *err = dwr_rw_line(&in, &rw->line);
	dwr_rw_claim_deinit(&claim);
	free(cu);
	if (err)
		return err;
	rw->has_line = true;
	for (uint32_t i = 0; i < rw->map->n_units; i++)
		if (rw->line.fold && rw->line.fold[i].status == DWR_FOLD_OWN)
			run->out.stats.artificial_sequences += rw->line.fold[i].n_seqs;
	return NULL;
}

struct elfrw_err *dwr_rw_rewrite_frame(struct dwr_rw_run *run)
{
	const struct dwr_section *sec = &run->rw.secs.sec[DWR_FRAME];
	/* In place, the first row of a folded function is that of its thunk. */
	if (!sec->size || run->rw.map->in_place)
		return NULL;
	struct dwr_cfi cfi;
	struct dwr_rw_frame_out out = { 0 };
	const struct elfrw_arch *arch = run->rw.in->image->arch;
	ELFRW_TRY(dwr_cfi_read(&cfi, sec->name, bytes_of(&run->rw, DWR_FRAME), 0, false,
			       arch->address_size));
	struct dwr_rw_frame_in in = { .cfi = &cfi,
				      .map = run->rw.map,
				      .arch = arch,
				      .keep_folded = run->rw.in->policy == DWR_FOLDED_ALIAS };
	struct elfrw_err *err = dwr_rw_debug_frame(&in, &out);
	dwr_cfi_deinit(&cfi);
	if (err)
		return err;
	uint8_t *data = out.data;
	size_t size = out.size;
	out.data = NULL;
	dwr_rw_frame_deinit(&out);
	return dwr_rw_emit(run, DWR_FRAME, data, size);
}

struct elfrw_err *dwr_rw_rewrite_indices(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	uint8_t *data = NULL;
	size_t size = 0;
	struct dwr_index_in in = { .rw = rw,
				   .artificial_unit = run->artificial,
				   .has_range = run->has_range,
				   .artificial_size = run->artificial == UINT64_MAX
							      ? 0
							      : run->info_size - run->artificial };
	struct dwr_arange_extra extra = { run->artificial, rw->map->trap_byte, 1 };
	const struct dwr_section *sec = &rw->secs.sec[DWR_ARANGES];
	if (sec->size) {
		struct dwr_rw_aranges_in ar = { .map = rw->map,
						.policy = rw->in->policy,
						.data = sec->data,
						.size = sec->size,
						.extra = &extra,
						.n_extra = run->has_range };
		ELFRW_TRY(dwr_rw_aranges(&ar, &data, &size));
		ELFRW_TRY(dwr_rw_emit(run, DWR_ARANGES, data, size));
	}
	if (rw->secs.sec[DWR_GDB_INDEX].size) {
		ELFRW_TRY(dwr_rw_gdb_index(&in, &data, &size));
		ELFRW_TRY(dwr_rw_emit(run, DWR_GDB_INDEX, data, size));
	}
	if (rw->secs.sec[DWR_NAMES].size) {
		ELFRW_TRY(dwr_rw_names(&in, &data, &size));
		ELFRW_TRY(dwr_rw_emit(run, DWR_NAMES, data, size));
	}
	if (rw->secs.sec[DWR_MACRO].size && rw->has_line) {
		ELFRW_TRY(dwr_rw_macro(&in, &data, &size));
		ELFRW_TRY(dwr_rw_emit(run, DWR_MACRO, data, size));
	}
	return NULL;
}
