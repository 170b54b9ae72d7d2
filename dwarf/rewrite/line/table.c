/* table.c: one table's new bytes: sequences patched, cut at the borders of runs, or left out; see
 * line.c. */
#include "dwarf/rewrite/line/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <inttypes.h>
#include <stdlib.h>

/* A row takes a byte of a program at least, and 32 in memory.  Real files have fifty bytes and more
 * for each row. */
#define TOO_MANY "more than one for each eight bytes of the file"

/* The state of one table's rewriting. */
struct writer {
	struct dwr_line_job *job;
	struct dwr_line_table *t;
	const struct dwr_line_header *h;
	uint32_t index;       /* of the table */
	uint64_t taken;       /* input bytes before this are in t->w, or dropped */
	struct dwr_rows rows; /* of the current sequence, without its end */
	uint64_t end;         /* of the current sequence */
	struct dwr_rows piece;
	struct dwr_rows spare;
	struct elfrw_wbuf thunks; /* sequences that come last in the table */
};

/* The new place in the table of the input byte at OFF, which will be copied with the bytes behind
 * the last cut. */
static uint64_t new_pos(const struct writer *wr, uint64_t off)
{
	return wr->t->w.len + (off - wr->taken);
}

static void copy_up_to(struct writer *wr, uint64_t off)
{
	elfrw_wbuf_bytes(&wr->t->w, wr->job->in->line.data + wr->taken, off - wr->taken);
	wr->taken = off;
}

static struct elfrw_err *push_patch(struct writer *wr, uint64_t off, unsigned size, uint64_t value)
{
	struct dwr_line_patch *p = VEC_PUSH(&wr->t->patch);
	if (!p)
		return &elfrw_err_nomem;
	*p = (struct dwr_line_patch){ new_pos(wr, off), value, (uint8_t)size };
	return NULL;
}

/* The whole sequence moves by DELTA. */
static struct elfrw_err *patch_seq(struct writer *wr, const struct dwr_line_scanned *s,
				   uint64_t delta)
{
	const uint8_t *data = wr->job->in->line.data;
	wr->t->patched++;
	if (!delta)
		return NULL;
	if (s->sets == 1)
		return push_patch(wr, s->off + s->set, s->set_size,
				  elfrw_get_le(data + s->off + s->set, s->set_size) + delta);
	for (uint64_t off = s->off;;) {
		struct dwr_line_ext ext;
		ELFRW_TRY(dwr_line_next_ext(wr->h, &off, s->off + s->len, &ext));
		if (!ext.op)
			return NULL;
		if (ext.op == DW_LNE_set_address)
			ELFRW_TRY(push_patch(wr, ext.arg, (unsigned)ext.size,
					     elfrw_get_le(data + ext.arg, (unsigned)ext.size) +
						     delta));
	}
}

/* Decodes S into wr->rows, in ascending order, and wr->end. */
static struct elfrw_err *decode_seq(struct writer *wr, const struct dwr_line_scanned *s)
{
	struct dwr_rows *rows = &wr->rows;
	uint64_t off = s->off;
	if (s->rows > wr->job->max_rows)
		return elfrw_error_at(wr->job->in->name, s->off,
				      "line number sequence of %" PRIu32 " rows: " TOO_MANY,
				      s->rows);
	rows->len = 0;
	if (!VEC_RESERVE(rows, (size_t)s->rows + 1))
		return &elfrw_err_nomem;
	ELFRW_TRY(dwr_line_decode(wr->h, &off, rows));
	if (s->flags & SEQ_TERMINATED)
		rows->len--;
	wr->end = s->flags & SEQ_TERMINATED ? rows->data[rows->len].address : s->hi;
	if (!(s->flags & SEQ_ASCENDING)) {
		if (!dwr_line_sort(rows, &wr->spare))
			return &elfrw_err_nomem;
		if (rows->len && wr->end < rows->data[rows->len - 1].address)
			wr->end = rows->data[rows->len - 1].address;
	}
	return NULL;
}

/* The part of a sequence in [OLD, OLD_END). */
struct part {
	size_t from, to; /* its rows */
	bool carried;    /* begins with a copy of row from - 1, at OLD */
	uint64_t end;
};

/* Cuts [OLD, OLD_END) out of the current sequence; rows before FROM lie below OLD.  false: it holds
 * nothing of that.  Rows right at the end are included if they are the sequence's last, or if no
 * unit begins there: they belong to the code that ends. */
static bool cut(const struct writer *wr, uint64_t old, uint64_t old_end, size_t from,
		struct part *ret)
{
	const struct dwr_rows *rows = &wr->rows;
	const struct dwr_row *row = rows->data;
	const size_t a = LOWER_BOUND(from, rows->len, mid, row[mid].address < old);
	struct part p = { .from = a, .end = wr->end < old_end ? wr->end : old_end };
	if (p.end <= old)
		return false;
	p.carried = a > 0 && (a == rows->len || row[a].address > old);
	for (p.to = a; p.to < rows->len && row[p.to].address < p.end; p.to++)
		;
	if (p.to == p.from && !p.carried)
		return false;
	if (p.end == wr->end || elfrw_addrmap_find(wr->job->map, p.end) == ELFRW_NO_UNIT)
		while (p.to < rows->len && row[p.to].address == p.end)
			p.to++;
	*ret = p;
	return true;
}

/* The row that covers the first byte of a part that begins at OLD without a row of its own. */
static struct dwr_row carried_row(const struct dwr_rows *rows, const struct part *p, uint64_t old)
{
	struct dwr_row row = rows->data[p->from - 1];
	row.address = old;
	row.flags &= DWR_ROW_STMT;
	return row;
}

static uint8_t address_size(const struct writer *wr, const struct dwr_line_scanned *s)
{
	return s->set_size                                            ? s->set_size
	       : wr->h->address_size >= 1 && wr->h->address_size <= 8 ? wr->h->address_size
								      : wr->job->in->address_size;
}

/* Keeps the part as rows of UNIT, for the artificial table or for comparison with it. */
static struct elfrw_err *keep_cover(struct writer *wr, uint32_t u, const struct part *p)
{
	const uint64_t old = wr->job->map->unit[u].old;
	struct dwr_rows *to = &wr->t->taken.rows;
	size_t n = p->to - p->from, carried = p->carried;
	if (atomic_fetch_add_explicit(&wr->job->kept, n + carried, memory_order_relaxed) + n +
		    carried >
	    wr->job->max_rows)
		return elfrw_error(
			"the line number rows in %s of functions to be folded: " TOO_MANY,
			wr->job->in->name);
	struct dwr_line_cover *c = VEC_PUSH(&wr->t->taken.cover);
	if (!c || !VEC_RESERVE(to, to->len + n + carried))
		return &elfrw_err_nomem;
	*c = (struct dwr_line_cover){ .unit = u,
				      .table = wr->index,
				      .first = to->len,
				      .n = n + carried,
				      .end = p->end - old,
				      .carried = carried && !n };
	if (carried)
		to->data[to->len++] = carried_row(&wr->rows, p, old);
	if (n)
		memcpy(&to->data[to->len], &wr->rows.data[p->from], n * sizeof *to->data);
	to->len += n;
	for (size_t i = c->first; i < to->len; i++)
		to->data[i].address -= old;
	return NULL;
}

/* Do special units FROM to TO of this sequence need its rows? */
static bool wants_rows(const struct writer *wr, uint32_t from, uint32_t to)
{
	const struct dwr_line_job *job = wr->job;
	for (uint32_t i = from; i < to; i++) {
		uint32_t u = job->special[i];
		if (job->map->unit[u].flags & ELFRW_UNIT_THUNK &&
		    dwr_line_folded(&job->map->unit[u]))
			return true;
		if (job->in->policy == DWR_FOLDED_OVERLAY && job->owner[u] == wr->index)
			return true;
	}
	return false;
}

static struct elfrw_err *keep_covers(struct writer *wr, uint32_t from, uint32_t to)
{
	const struct dwr_line_job *job = wr->job;
	struct part p;
	for (uint32_t i = from; i < to; i++) {
		uint32_t u = job->special[i];
		const struct elfrw_addrmap_unit *unit = &job->map->unit[u];
		if (job->in->policy == DWR_FOLDED_OVERLAY && job->owner[u] == wr->index &&
		    cut(wr, unit->old, unit->old_end, 0, &p))
			ELFRW_TRY(keep_cover(wr, u, &p));
	}
	return NULL;
}

/* Makes a sequence of one row for each thunk whose function's first byte is in this sequence.  They
 * follow all others of the table, as thunks follow all other code: a reader that looks at the first
 * sequence to learn where a table's code begins (Go's) would find nothing below a thunk there. */
static struct elfrw_err *make_thunks(struct writer *wr, const struct dwr_line_scanned *s,
				     uint32_t from, uint32_t to)
{
	const struct dwr_line_job *job = wr->job;
	struct part p;
	for (uint32_t i = from; i < to; i++) {
		const struct elfrw_addrmap_unit *unit = &job->map->unit[job->special[i]];
		if (!dwr_line_folded(unit) || !(unit->flags & ELFRW_UNIT_THUNK) ||
		    !unit->thunk_size || !cut(wr, unit->old, unit->old_end, 0, &p) ||
		    (!p.carried && wr->rows.data[p.from].address != unit->old))
			continue;
		struct dwr_row row = wr->rows.data[p.carried ? p.from - 1 : p.from];
		row.address = unit->entry;
		row.flags &= DWR_ROW_STMT;
		row.discriminator = 0;
		const struct dwr_line_sequence seq = { &row, 1, unit->entry + unit->thunk_size, 0 };
		ELFRW_TRY(dwr_line_encode(wr->h, address_size(wr, s), &seq, &wr->thunks));
	}
	return NULL;
}

/* Puts the sequences of thunks before the input byte at OFF, between two sequences. */
static void place_thunks(struct writer *wr, uint64_t off)
{
	wr->t->w.bad |= wr->thunks.bad;
	if (!wr->thunks.len)
		return;
	copy_up_to(wr, off);
	elfrw_wbuf_bytes(&wr->t->w, wr->thunks.data, wr->thunks.len);
	wr->thunks.len = 0;
}

/* Begins to leave out S: copies the bytes before it, and its DW_LNE_define_file opcodes, which
 * count for the whole table. */
static struct elfrw_err *leave_out(struct writer *wr, const struct dwr_line_scanned *s)
{
	copy_up_to(wr, s->off);
	for (uint64_t off = s->off; s->flags & SEQ_DEFINES;) {
		struct dwr_line_ext ext;
		ELFRW_TRY(dwr_line_next_ext(wr->h, &off, s->off + s->len, &ext));
		if (!ext.op)
			break;
		if (ext.op == DW_LNE_define_file)
			elfrw_wbuf_bytes(&wr->t->w, wr->job->in->line.data + ext.off,
					 ext.end_off - ext.off);
	}
	wr->taken = s->off + s->len;
	return NULL;
}

/* Writes the parts of the decoded sequence that stay in this table; *ANY false: none does. */
static struct elfrw_err *write_parts(struct writer *wr, const struct dwr_line_scanned *s, bool *any)
{
	const struct dwr_line_job *job = wr->job;
	uint64_t pos = wr->rows.data[0].address;
	size_t from = 0;
	*any = false;
	for (uint32_t r = dwr_line_run_after(job, pos);
	     r < job->n_runs && job->run[r].old < wr->end; r++) {
		const struct dwr_line_run *run = &job->run[r];
		uint64_t old = run->old > pos ? run->old : pos;
		struct part p;
		if (!cut(wr, old, run->old_end, from, &p))
			continue;
		from = p.to;
		ELFRW_TRY(dwr_line_count_visits(wr->job, p.carried));
		if (run->out)
			continue;
		*any = true;
		const struct dwr_row *rows = wr->rows.data + p.from;
		size_t n = p.to - p.from;
		if (n && rows[n - 1].address == p.end &&
		    dwr_line_starts_has(&job->starts, p.end + run->delta))
			while (n && rows[n - 1].address == p.end)
				n--;
		if (p.carried) {
			if (!VEC_RESERVE(&wr->piece, n + 1))
				return &elfrw_err_nomem;
			wr->piece.data[0] = carried_row(&wr->rows, &p, old);
			if (n)
				memcpy(wr->piece.data + 1, rows, n * sizeof *rows);
			rows = wr->piece.data;
			n++;
		}
		const struct dwr_line_sequence seq = { rows, n, p.end, run->delta };
		ELFRW_TRY(dwr_line_encode(wr->h, address_size(wr, s), &seq, &wr->t->w));
	}
	return NULL;
}

/* The place of a sequence that covers no byte, for a function without code: with the unit that it
 * points to, or else with the unit that ends there.  False: it has none.  With a folded unit it
 * would come to rows of another function, which it hides for readers that put all rows in one list
 * by address (libdw); at the end of a unit it must not come to the start of another. */
static bool map_empty(const struct dwr_line_job *job, uint64_t va, uint64_t *ret)
{
	const bool begins = elfrw_addrmap_find(job->map, va) != ELFRW_NO_UNIT;
	const uint64_t at = begins ? va : va - 1;
	const uint32_t r = dwr_line_run_after(job, at);
	if (r == job->n_runs || job->run[r].old > at || job->run[r].out)
		return false;
	if (begins)
		elfrw_addrmap_point(job->map, va, ret);
	else
		elfrw_addrmap_end(job->map, va, ret);
	return begins || !dwr_line_starts_has(&job->starts, *ret);
}

/* Does S, moved by DELTA, end with rows that would be taken for another function's start? */
static bool lose_tail(const struct writer *wr, const struct dwr_line_scanned *s, uint64_t delta)
{
	const unsigned need = SEQ_TAIL | SEQ_ASCENDING;
	return (s->flags & need) == need && dwr_line_can_encode(wr->h) &&
	       dwr_line_starts_has(&wr->job->starts, s->hi + delta);
}

static struct elfrw_err *rewrite_seq(struct writer *wr, struct dwr_line_scanned *s)
{
	const struct dwr_line_job *job = wr->job;
	s->new_off = new_pos(wr, s->off);
	if (!(s->flags & SEQ_LIVE) || !job->n_runs) {
		wr->t->untouched++;
		return NULL;
	}
	if (s->lo == s->hi && s->set) {
		uint64_t at = s->lo;
		if (map_empty(job, s->lo, &at) || !(s->flags & SEQ_TERMINATED))
			return patch_seq(wr, s, at - s->lo);
		wr->t->removed++;
		s->new_off = UINT64_MAX;
		return leave_out(wr, s);
	}

	uint32_t r = dwr_line_run_after(job, s->lo), from, to;
	const struct dwr_line_run *run =
		r < job->n_runs ? &job->run[r] : NULL; /* when it holds all of the sequence */
	if (run && (run->old > s->lo || run->old_end < s->hi))
		run = NULL;
	dwr_line_special_range(job, s->lo, s->hi, &from, &to);
	wr->end = s->hi;
	const bool rows = wants_rows(wr, from, to);
	if (rows) {
		ELFRW_TRY(decode_seq(wr, s));
		ELFRW_TRY(keep_covers(wr, from, to));
	}
	if (run && !run->out && s->set && !lose_tail(wr, s, run->delta)) {
		ELFRW_TRY(patch_seq(wr, s, run->delta));
		return rows ? make_thunks(wr, s, from, to) : NULL;
	}
	bool any = false;
	if (!(run && run->out)) {
		if (!(s->flags & SEQ_TERMINATED))
			return elfrw_error_at(
				job->in->name, s->off,
				"line number sequence over several functions has no end");
		if (!rows)
			ELFRW_TRY(decode_seq(wr, s));
		ELFRW_TRY(leave_out(wr, s));
		s->new_off = wr->t->w.len;
		ELFRW_TRY(write_parts(wr, s, &any));
	} else
		ELFRW_TRY(leave_out(wr, s));
	if (any)
		wr->t->encoded++;
	else {
		wr->t->removed++;
		s->new_off = UINT64_MAX;
	}
	return rows ? make_thunks(wr, s, from, to) : NULL;
}

static struct elfrw_err *rewrite_seqs(struct writer *wr)
{
	struct dwr_line_table *t = wr->t;
	const struct dwr_line_header *h = wr->h;
	for (size_t i = 0; i < t->seq.len; i++) {
		/* Behind rows without an end no sequence begins; they are the last. */
		if (!(t->seq.data[i].flags & SEQ_TERMINATED))
			place_thunks(wr, t->seq.data[i].off);
		ELFRW_TRY(rewrite_seq(wr, &t->seq.data[i]));
	}
	place_thunks(wr, h->end);
	if (t->w.bad)
		return &elfrw_err_nomem;
	if (!t->w.len) {
		t->size = h->end - h->off;
		return NULL;
	}
	copy_up_to(wr, h->end);
	if (t->w.bad)
		return &elfrw_err_nomem;
	t->size = t->w.len;
	if (h->offset_size == 8)
		elfrw_put64(t->w.data + 4, t->size - 12);
	else if (t->size - 4 >= 0xfffffff0)
		return elfrw_error_at(wr->job->in->name, h->off, "line table grows over 4 GB");
	else
		elfrw_put32(t->w.data, (uint32_t)(t->size - 4));
	return NULL;
}

struct elfrw_err *dwr_line_rewrite_table(void *arg, size_t index)
{
	struct dwr_line_job *job = arg;
	struct dwr_line_table *t = &job->table[index];
	struct dwr_line_header h;
	ELFRW_TRY(dwr_line_header_read(job->in->name, job->in->line, t->off, &h));
	struct writer wr = {
		.job = job, .t = t, .h = &h, .index = (uint32_t)index, .taken = h.off
	};
	struct elfrw_err *err = rewrite_seqs(&wr);
	free(wr.rows.data);
	free(wr.piece.data);
	free(wr.spare.data);
	elfrw_wbuf_free(&wr.thunks);
	return err;
}
