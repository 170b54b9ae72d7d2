/* note.c: the part of .debug_icfold about debug information. */
#include "dwarf/rewrite/run.h"
#include <stdlib.h>
#include <string.h>

int dwr_rw_note_die_order(const void *a, const void *b)
{
	const struct dwr_note_die *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

struct elfrw_err *dwr_rw_shared_dies(const struct dwr_rw *rw, struct dwr_note_die **ret, size_t *n)
{
	size_t total = 0, at = 0;
	for (size_t i = 0; i < rw->units.len; i++)
		total += rw->ru[i].die.len;
	struct dwr_note_die *die = malloc((total + 1) * sizeof *die);
	if (!die)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < rw->units.len; i++) {
		const struct dwr_rw_unit *ru = &rw->ru[i];
		if (ru->die.len)
			memcpy(die + at, ru->die.data, ru->die.len * sizeof *die);
		at += ru->die.len;
	}
	if (total)
		qsort(die, total, sizeof *die, dwr_rw_note_die_order);
	*ret = die;
	*n = total;
	return NULL;
}

/* Merges the ranges that DIEs lost, from low_pc and high_pc and from lists; both are in DIE
 * order. */
static struct elfrw_err *merge_ranges(struct dwr_rw_run *run, struct dwr_note_range **ret,
				      size_t *ret_n)
{
	struct dwr_rw *rw = &run->rw;
	size_t total = run->lists.n_taken, t = 0, n = 0;
	for (size_t i = 0; i < rw->units.len; i++)
		total += rw->ru[i].range.len;
	struct dwr_note_range *r = malloc((total + 1) * sizeof *r);
	if (!r)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < rw->units.len; i++) {
		const struct dwr_rw_unit *ru = &rw->ru[i];
		size_t own = 0, site = 0;
		uint32_t use = ru->first_use;
		if (rw->units.data[i].sec != DWR_INFO)
			break; /* the last ones, and without code */
		for (; t < run->lists.n_taken; t++) {
			const struct dwr_list_taken *k = &run->lists.taken[t];
			while (site < ru->site.len &&
			       (ru->site.data[site].kind != DWR_SITE_LIST || use < k->use))
				use += ru->site.data[site++].kind == DWR_SITE_LIST;
			if (site == ru->site.len)
				break;
			uint64_t die = ru->site.data[site].pos - ru->site.data[site].in_die;
			while (own < ru->range.len && ru->range.data[own].die < die)
				r[n++] = ru->range.data[own++];
			r[n++] = (struct dwr_note_range){ die, k->unit, k->start, k->len };
		}
		while (own < ru->range.len)
			r[n++] = ru->range.data[own++];
	}
	*ret = r;
	*ret_n = n;
	return NULL;
}

/* Without debug information, when the section may be larger than the saving, it is always
 * compressed. */
static void choose_compression(struct dwr_rw *rw)
{
	struct dwr_section *note = &rw->secs.sec[DWR_ICFOLD];
	if (!note->shndx && (!rw->secs.sec[DWR_INFO].shndx || rw->in->note_only))
		note->compression = DWR_ZLIB;
	else
		dwr_rw_compress_new(rw, DWR_ICFOLD);
}

/* By unit of the map; *RET is the caller's. */
static struct elfrw_err *make_rows(const struct dwr_rw *rw, struct dwr_note_rows **ret)
{
	struct dwr_note_rows *rows = calloc((size_t)rw->map->n_units + 1, sizeof *rows);
	if (!rows)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; rw->has_line && rw->line.fold && i < rw->map->n_units; i++) {
		const struct dwr_rw_line_fold *f = &rw->line.fold[i];
		if (f->status == DWR_FOLD_OWN)
			rows[i] = (struct dwr_note_rows){ DWR_NOTE_ROWS_OWN, f->n_seqs, f->seq };
		else
			rows[i].status = f->status == DWR_FOLD_SAME ? DWR_NOTE_ROWS_SAME
								    : DWR_NOTE_ROWS_NONE;
	}
	*ret = rows;
	return NULL;
}

struct elfrw_err *dwr_rw_collect_note(struct dwr_rw_run *run)
{
	if (!run->rw.changes)
		return NULL;
	ELFRW_TRY(dwr_rw_shared_dies(&run->rw, &run->out.die, &run->out.n_dies));
	return merge_ranges(run, &run->range, &run->n_ranges);
}

struct elfrw_err *dwr_rw_write_note(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	if (!rw->changes)
		return NULL;
	struct dwr_note_in note = { .rw = rw->in,
				    .artificial_unit = run->artificial,
				    .die = run->out.die,
				    .n_dies = run->out.n_dies,
				    .range = run->range,
				    .n_ranges = run->n_ranges };
	struct dwr_note_rows *rows = NULL;
	uint8_t *data;
	size_t size;
	struct elfrw_err *err = make_rows(rw, &rows);
	if (!err) {
		note.rows = rows;
		err = dwr_note_write(&note, &data, &size);
	}
	choose_compression(rw);
	if (!err)
		err = dwr_rw_emit(run, DWR_ICFOLD, data, size);
	free(rows);
	return err;
}
