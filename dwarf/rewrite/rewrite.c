/* rewrite.c: the order in which debug information is rewritten.
 *
 *	roots -> line tables -> walk of the DIEs -> .debug_addr, lists ->
 *	      their places in the DIEs -> abbreviations -> artificial unit ->
 *	      indices, .debug_frame, .debug_macro -> .debug_icfold
 *
 * Line tables come first because the walk writes their offsets; lists come after it because the
 * walk finds who uses them. Each step works on all units in parallel and stores by unit, so that
 * the result does not depend on the threads.  The copies of .debug_info and .debug_types are the
 * only large memory besides the new sections. */
#include "dwarf/rewrite/rewrite.h"
#include "dwarf/rewrite/run.h"
#include "elfrw/base/parallel.h"
#include <stdlib.h>
#include <string.h>

#define BATCH (UINT64_C(1) << 18)

static struct elfrw_err *make_batches(struct dwr_rw_run *run)
{
	const struct dwr_units *u = &run->rw.units;
	for (size_t i = 0; i < u->len;) {
		struct dwr_rw_batch *b = VEC_PUSH(&run->batch);
		if (!b)
			return &elfrw_err_nomem;
		b->first = (uint32_t)i;
		uint64_t start = u->data[i].off;
		uint8_t sec = u->data[i].sec;
		do
			i++;
		while (i < u->len && u->data[i].sec == sec && u->data[i].end - start <= BATCH);
		b->n = (uint32_t)i - b->first;
	}
	return NULL;
}

static struct elfrw_err *roots_batch(void *arg, size_t i)
{
	struct dwr_rw_run *run = arg;
	struct dwr_rw_batch *b = &run->batch.data[i];
	for (uint32_t k = b->first; k < b->first + b->n; k++)
		ELFRW_TRY(dwr_unit_read_root(&run->rw.secs, &run->rw.units.data[k],
					     &run->rw.ru[k].root));
	return NULL;
}

static struct elfrw_err *scan_batch(void *arg, size_t i)
{
	struct dwr_rw_run *run = arg;
	struct dwr_rw *rw = &run->rw;
	const struct dwr_rw_batch *b = &run->batch.data[i];
	const struct dwr_unit *first = &rw->units.data[b->first], *last = first + b->n - 1;
	memcpy(rw->copy[first->sec] + first->off, rw->secs.sec[first->sec].data + first->off,
	       last->end - first->off);
	struct dwr_abbrev_table table = { 0 };
	struct dwr_want want, calls;
	struct elfrw_err *err = NULL;
	dwr_rw_info_want(&want);
	unsigned attr = 0;
	for (uint32_t k = b->first; !err && k < b->first + b->n; k++) {
		const uint64_t language = rw->ru[k].root.language;
		if (rw->in->calls && first->sec == DWR_INFO &&
		    attr != dwr_function_names_attr(language)) {
			attr = dwr_function_names_attr(language);
			dwr_call_search_want(&rw->search, language, &calls);
			want.also = &calls;
			table.used = false; /* it was read for other attributes */
		}
		err = dwr_unit_abbrev(&rw->secs, &rw->units.data[k], &want, &table);
		if (!err)
			err = dwr_rw_info_unit(rw, k, &table);
	}
	dwr_abbrev_deinit(&table);
	return err;
}

/* The places of the lists of batch I - 1 of ARG, a struct dwr_rw_run.  Beside that the note is
 * collected: it reads sites, DIEs and ranges, and only the copies are written. */
static struct elfrw_err *apply_batch(void *arg, size_t i)
{
	return i == 0 ? dwr_rw_collect_note(arg) : dwr_rw_apply_lists(arg, i - 1);
}

/* Walks all units, with the search for IN->calls. */
static struct elfrw_err *scan(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	if (rw->in->calls)
		ELFRW_TRY(dwr_call_search_init(&rw->search, &rw->secs, rw->in->calls));
	ELFRW_TRY(elfrw_parallel(rw->in->threads, run->batch.len, scan_batch, run));
	if (!rw->in->calls)
		return NULL;
	for (size_t i = 0; i < rw->units.len; i++)
		ELFRW_TRY(dwr_call_found_add(&run->out.found, &rw->ru[i].call));
	run->out.searched = true;
	return dwr_call_search_end(&rw->search, &run->out.found);
}

static struct elfrw_err *rewrite_units(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	const struct dwr_rewrite_in *in = rw->in;
	static const enum dwr_sec list_sec[DWR_LIST_KINDS] = { [DWR_LIST_RANGES] = DWR_RANGES,
							       [DWR_LIST_RNGLISTS] = DWR_RNGLISTS,
							       [DWR_LIST_LOC] = DWR_LOC,
							       [DWR_LIST_LOCLISTS] = DWR_LOCLISTS };
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++) {
		const struct dwr_section *s = &rw->secs.sec[list_sec[k]];
		rw->lists.list[k] = (struct dwr_list_sec){ s->name, s->data, s->size };
	}
	const struct dwr_section *addr = &rw->secs.sec[DWR_ADDR];
	rw->lists.addr = (struct dwr_list_sec){ addr->name, addr->data, addr->size };
	ELFRW_TRY(dwr_units_read(&rw->secs, &rw->units));
	ELFRW_TRY(make_batches(run));
	rw->ru = calloc(rw->units.len + 1, sizeof *rw->ru);
	if (!rw->ru)
		return &elfrw_err_nomem;
	ELFRW_TRY(elfrw_parallel(in->threads, run->batch.len, roots_batch, run));
	ELFRW_TRY(dwr_rw_rewrite_lines(run));
	ELFRW_TRY(dwr_rw_make_copies(rw));
	run->info_size = rw->secs.sec[DWR_INFO].size;
	ELFRW_TRY(scan(run));
	ELFRW_TRY(dwr_rw_rewrite_lists(run));
	ELFRW_TRY(elfrw_parallel(in->threads, run->batch.len + 1, apply_batch, run));
	ELFRW_TRY(dwr_rw_apply_ranges(run));
	ELFRW_TRY(dwr_rw_abbrev(rw, &run->abbrev));
	ELFRW_TRY(dwr_rw_append_unit(run));
	ELFRW_TRY(dwr_rw_rewrite_indices(run));
	return dwr_rw_emit_sections(run);
}

static void run_deinit(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	for (size_t i = 0; rw->ru && i < rw->units.len; i++) {
		if (!rw->ru[i].lent)
			VEC_FREE(&rw->ru[i].site);
		VEC_FREE(&rw->ru[i].slot);
		VEC_FREE(&rw->ru[i].edit);
		VEC_FREE(&rw->ru[i].die);
		VEC_FREE(&rw->ru[i].range);
		VEC_FREE(&rw->ru[i].cu_range);
		VEC_FREE(&rw->ru[i].macro);
		VEC_FREE(&rw->ru[i].call);
	}
	dwr_call_search_deinit(&rw->search);
	free(rw->ru);
	free(rw->room);
	free(rw->copy[DWR_INFO]);
	free(rw->copy[DWR_TYPES]);
	if (rw->has_line)
		dwr_rw_line_out_deinit(&rw->line);
	dwr_units_deinit(&rw->units);
	dwr_sections_deinit(&rw->secs);
	VEC_FREE(&run->batch);
	free(run->cu);
	free(run->use);
	free(run->add);
	free(run->range);
	dwr_addr_table_deinit(&run->addr);
	dwr_rw_lists_deinit(&run->lists);
	elfrw_wbuf_free(&run->abbrev);
	dwr_rw_vtables_deinit(&run->vtables);
	dwr_rewrite_out_deinit(&run->out);
}

struct elfrw_err *dwr_rewrite(const struct dwr_rewrite_in *in, struct dwr_rewrite_out *out)
{
	struct dwr_rw_run run = {
		.rw = { .in = in, .map = in->map, .ranger = dwr_ranger(in->map, in->policy) },
		.artificial = UINT64_MAX
	};
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < in->map->n_units; i++) {
		run.rw.has_folded |= (in->map->unit[i].flags & ELFRW_UNIT_FOLDED) != 0;
		run.rw.changes |= in->map->unit[i].body != in->map->unit[i].old;
	}
	run.rw.changes |= run.rw.has_folded;
	err = dwr_sections_init(&run.rw.secs, in->image);
	/* Tables for code that stays as it is stay, too. */
	if (!err && !in->note_only && (run.rw.changes || in->vtables)) {
		err = dwr_sections_load_all(&run.rw.secs, in->threads);
		if (!err)
			err = rewrite_units(&run);
		if (!err)
			err = dwr_rw_rewrite_frame(&run);
	} else if (!err)
		err = dwr_rw_collect_note(&run);
	if (!err)
		err = dwr_rw_write_note(&run);
	if (!err) {
		struct dwr_rewrite_stats *st = &run.out.stats;
		for (size_t i = 0; i < run.rw.units.len; i++) {
			st->folded_dies += run.rw.ru[i].folded_dies;
			st->thunk_dies += run.rw.ru[i].thunk_dies;
			st->emptied_scopes += run.rw.ru[i].emptied;
			run.out.crowded |= run.rw.ru[i].crowded;
		}
		st->units = (uint32_t)run.rw.units.len;
		st->artificial_unit = run.artificial;
		st->vtables = (uint32_t)run.vtables.v.len;
		st->vtables_left_out = run.vtables.left_out;
		if (run.out.n_sections)
			qsort(run.out.section, run.out.n_sections, sizeof *run.out.section,
			      dwr_rw_by_place);
		*out = run.out;
		run.out = (struct dwr_rewrite_out){ 0 };
	}
	run_deinit(&run);
	return err;
}
