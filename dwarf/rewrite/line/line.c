/* line.c: see line.h.
 *
 * The map is first condensed into *runs*: neighbouring units that move by the same distance; a
 * folded unit whose rows are taken out is a run by itself.  Then, for each table on its own (in
 * parallel):
 *
 * 1. scan: every sequence's bounds and the place of its set_address, no rows.  The lowest table
 *    that a unit of .debug_info names, and that covers a unit of the map whose rows are wanted
 *    (folded, or kept for others), becomes its owner: linkers leave sequences of several tables on
 *    one COMDAT function.
 * 2. rewrite: a sequence inside one run is patched: its opcodes are relative to set_address.  One
 *    that lies in a run that is taken out is skipped.  Any other is decoded, cut at the borders of
 *    the runs, and each piece is written as a sequence of its own; where a row reaches over the
 *    start of a piece, the piece begins with a copy of it.  Rows right at the end of a sequence,
 *    which cover nothing (GCC makes them behind a last call that does not return), are left out
 *    where a function begins there: libdw, which does not keep sequences apart, takes such a row
 *    for the function's.
 *
 * Last, fold.c makes the artificial table of the rows taken out, and everything is laid one behind
 * the other. A table without cut sequences is never copied but into the output.  Cost: one scan of
 * the section, about 1 ns a byte. */
#include "dwarf/rewrite/line/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <stdlib.h>

#define FEW_ROWS (2u << 20)

static int compare_cu(const void *a, const void *b)
{
	const struct dwr_rw_line_cu *x = a, *y = b;
	return (x->stmt_list > y->stmt_list) - (x->stmt_list < y->stmt_list);
}

static struct elfrw_err *place_table(void *arg, size_t index)
{
	struct dwr_line_job *job = arg;
	struct dwr_line_table *t = &job->table[index];
	uint8_t *to = job->data + t->new_off;
	memcpy(to, t->w.len ? t->w.data : job->in->line.data + t->off, t->size);
	for (size_t i = 0; i < t->patch.len; i++)
		elfrw_put_le(to + t->patch.data[i].pos, t->patch.data[i].value,
			     t->patch.data[i].size);
	elfrw_wbuf_free(&t->w);
	VEC_FREE(&t->patch);
	return NULL;
}

/* Offsets of everything in the output.  Padding stays. */
static uint64_t lay_out(struct dwr_line_job *job)
{
	uint64_t old = 0, new = 0;
	for (size_t i = 0; i < job->n_tables; i++) {
		struct dwr_line_table *t = &job->table[i];
		t->new_off = new + (t->off - old);
		new = t->new_off + t->size;
		old = t->end;
	}
	return new + (job->in->line.size - old);
}

/* Drops rows that reach over functions which no unit claims (GNAT's own functions): no symbolizer
 * shows them. */
static struct elfrw_err *drop_unclaimed(struct dwr_line_job *job)
{
	for (size_t i = 0; job->in->claimed && i < job->n_tables; i++) {
		struct dwr_line_taken *taken = &job->table[i].taken;
		size_t n = 0;
		for (size_t k = 0; k < taken->cover.len; k++) {
			const struct dwr_line_cover *c = &taken->cover.data[k];
			bool claimed = true;
			if (c->carried)
				ELFRW_TRY(job->in->claimed(job->in->claimed_arg,
							   job->map->unit[c->unit].old, &claimed));
			if (claimed)
				taken->cover.data[n++] = *c;
		}
		taken->cover.len = n;
	}
	return NULL;
}

static struct elfrw_err *make_folds(struct dwr_line_job *job, uint64_t base,
				    struct dwr_rw_line_out *out, struct dwr_line_folded *folded)
{
	const struct dwr_line_taken **taken = malloc((job->n_tables + 1) * sizeof *taken);
	if (!taken)
		return &elfrw_err_nomem;
	out->folded_version = 4;
	out->folded_offset_size = job->n_tables ? 8 : 4;
	for (size_t i = 0; i < job->n_tables; i++) {
		taken[i] = &job->table[i].taken;
		if (job->table[i].version >= 5)
			out->folded_version = 5;
		if (job->table[i].offset_size == 4)
			out->folded_offset_size = 4;
	}
	struct dwr_rw_line_in in = *job->in;
	in.cu = job->cu;
	struct dwr_line_folds folds = { .in = &in,
					.table = taken,
					.n_tables = job->n_tables,
					.base = base,
					.version = out->folded_version,
					.offset_size = out->folded_offset_size };
	struct elfrw_err *err = dwr_rw_line_folds(&folds, out->fold, folded);
	free(taken);
	out->folded_relative = folded->relative;
	if (!err && folded->table.len)
		out->folded_unit = base;
	if (err || !folded->strings.len)
		return err;
	const struct dwr_bytes *had = &job->in->strings.line_str;
	out->line_str_size = had->size + folded->strings.len;
	if (!(out->line_str = malloc(out->line_str_size)))
		return &elfrw_err_nomem;
	if (had->size)
		memcpy(out->line_str, had->data, had->size);
	memcpy(out->line_str + had->size, folded->strings.data, folded->strings.len);
	return NULL;
}

static struct elfrw_err *make_maps(struct dwr_line_job *job, struct dwr_rw_line_out *out)
{
	for (size_t i = 0; i < job->n_tables; i++)
		out->n_seqs += job->table[i].seq.len;
	out->n_units = job->n_tables;
	out->unit = malloc((out->n_units + 1) * sizeof *out->unit);
	out->seq = malloc((out->n_seqs + 1) * sizeof *out->seq);
	if (!out->unit || !out->seq)
		return &elfrw_err_nomem;
	struct dwr_rw_line_off *seq = out->seq;
	for (size_t i = 0; i < job->n_tables; i++) {
		const struct dwr_line_table *t = &job->table[i];
		out->unit[i] = (struct dwr_rw_line_off){ t->off, t->new_off };
		out->patched += t->patched;
		out->encoded += t->encoded;
		out->removed += t->removed;
		out->untouched += t->untouched;
		for (size_t k = 0; k < t->seq.len; k++) {
			const struct dwr_line_scanned *s = &t->seq.data[k];
			uint64_t to =
				s->new_off == UINT64_MAX ? UINT64_MAX : t->new_off + s->new_off;
			*seq++ = (struct dwr_rw_line_off){ s->off, to };
		}
	}
	return NULL;
}

static struct elfrw_err *run_job(struct dwr_line_job *job, struct dwr_rw_line_out *out)
{
	const struct dwr_rw_line_in *in = job->in;
	job->cu = malloc((in->n_cus + 1) * sizeof *job->cu);
	out->fold = calloc((size_t)job->map->n_units + 1, sizeof *out->fold);
	if (!job->cu || !out->fold)
		return &elfrw_err_nomem;
	if (in->n_cus)
		memcpy(job->cu, in->cu, in->n_cus * sizeof *job->cu);
	qsort(job->cu, in->n_cus, sizeof *job->cu, compare_cu);
	ELFRW_TRY(dwr_line_find_tables(job));
	ELFRW_TRY(dwr_line_make_runs(job));
	if (!dwr_line_starts_make(&job->starts, job->map))
		return &elfrw_err_nomem;
	ELFRW_TRY(elfrw_parallel(in->threads, job->n_tables, dwr_line_scan_table, job));
	ELFRW_TRY(elfrw_parallel(in->threads, job->n_tables, dwr_line_rewrite_table, job));

	uint64_t base = lay_out(job);
	struct dwr_line_folded folded = { 0 };
	struct elfrw_err *err = drop_unclaimed(job);
	if (!err)
		err = make_folds(job, base, out, &folded);
	if (!err && !(job->data = out->data = malloc(base + folded.table.len + 1)))
		err = &elfrw_err_nomem;
	if (!err) {
		uint64_t old = 0, new = 0;
		for (size_t i = 0; i <= job->n_tables; i++) {
			const struct dwr_line_table *t = i < job->n_tables ? &job->table[i] : NULL;
			uint64_t gap = (t ? t->off : in->line.size) - old;
			if (gap)
				memcpy(out->data + new, in->line.data + old, gap);
			if (t) {
				old = t->end;
				new = t->new_off + t->size;
			}
		}
		if (folded.table.len)
			memcpy(out->data + base, folded.table.data, folded.table.len);
		out->size = base + folded.table.len;
		err = elfrw_parallel(in->threads, job->n_tables, place_table, job);
	}
	elfrw_wbuf_free(&folded.table);
	elfrw_wbuf_free(&folded.strings);
	return err ? err : make_maps(job, out);
}

struct elfrw_err *dwr_rw_line(const struct dwr_rw_line_in *in, struct dwr_rw_line_out *out)
{
	struct dwr_rw_line_out o = { 0 };
	struct dwr_line_job job = { .in = in, .map = in->map };
	/* Far above the needs of a real table, in which each function has rows of its own of a few
	 * bytes each. */
	job.max_rows = in->max_rows > FEW_ROWS ? in->max_rows : FEW_ROWS;
	job.max_visits = 4 * (size_t)in->map->n_units + in->line.size / 4 + 65536;
	struct elfrw_err *err = run_job(&job, &o);
	for (size_t i = 0; i < job.n_tables; i++) {
		struct dwr_line_table *t = &job.table[i];
		VEC_FREE(&t->seq);
		VEC_FREE(&t->patch);
		elfrw_wbuf_free(&t->w);
		free(t->taken.rows.data);
		VEC_FREE(&t->taken.cover);
	}
	free(job.table);
	free(job.run);
	free(job.run_of);
	free(job.special);
	free(job.special_from);
	free(job.owner);
	dwr_line_starts_deinit(&job.starts);
	free(job.cu);
	if (err)
		dwr_rw_line_out_deinit(&o);
	else
		*out = o;
	return err;
}

void dwr_rw_line_out_deinit(struct dwr_rw_line_out *out)
{
	free(out->data);
	free(out->line_str);
	free(out->unit);
	free(out->seq);
	free(out->fold);
	*out = (struct dwr_rw_line_out){ 0 };
}

static uint64_t find_off(const struct dwr_rw_line_off *map, size_t n, uint64_t old)
{
	size_t lo = LOWER_BOUND(0, n, mid, map[mid].old_off < old);
	return lo < n && map[lo].old_off == old ? map[lo].new_off : UINT64_MAX;
}

uint64_t dwr_rw_line_unit_off(const struct dwr_rw_line_out *out, uint64_t old_off)
{
	return find_off(out->unit, out->n_units, old_off);
}

uint64_t dwr_rw_line_seq_off(const struct dwr_rw_line_out *out, uint64_t old_off)
{
	return find_off(out->seq, out->n_seqs, old_off);
}
