/* line.c: see line.h.
 *
 * The map is first condensed into *runs*: neighbouring units that move by the same distance; a
 * folded unit whose rows are taken out is a run by itself.  Then, for each table on its own (in
 * parallel):
 *
 * 1. scan: every sequence's bounds and the place of its set_address, no rows.  The lowest table
 *    that covers a unit whose rows are wanted (folded, or kept for others) becomes its owner:
 *    linkers leave sequences of several tables on one COMDAT function.
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
#include "dwarf/rewrite/line/line.h"
#include "dwarf/rewrite/line/fold.h"
#include "dwarf/rewrite/line/start.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Units of the map that move together. */
struct run {
	uint64_t old, old_end;
	uint64_t delta; /* what to add to an old address */
	bool out;       /* one folded unit whose rows leave their table */
};

enum {
	SEQ_ROWS = 1,
	SEQ_TERMINATED = 2,
	SEQ_ASCENDING = 4,
	SEQ_DEFINES = 8,
	SEQ_LIVE = 16,
	SEQ_TAIL = 32
};

/* What is kept of a scanned sequence. */
struct seq {
	uint64_t off;
	uint64_t lo, hi;  /* bounds of its addresses */
	uint64_t new_off; /* in the table's new bytes; UINT64_MAX: gone */
	uint32_t len;     /* bytes */
	uint32_t set;     /* place of set_address's operand from off; 0: none */
	uint32_t sets;
	uint8_t set_size, flags;
};

struct patch {
	uint64_t pos, value; /* in the table's new bytes */
	uint8_t size;
};

struct table {
	uint64_t off, end; /* in the input */
	uint64_t new_off, size;
	VEC(struct seq) seq;
	VEC(struct patch) patch;
	struct elfrw_wbuf w; /* its new bytes, but for patches; empty: the old ones */
	struct dwr_line_taken taken;
	uint32_t patched, encoded, removed, untouched;
	uint16_t version;
	uint8_t offset_size;
};

struct job {
	const struct dwr_rw_line_in *in;
	const struct elfrw_addrmap *map;
	struct run *run;
	uint32_t n_runs;
	uint32_t *run_of;       /* of each unit */
	uint32_t *special;      /* units whose rows or first row are wanted, sorted */
	uint32_t *special_from; /* [u]: index in special of the first one at or above u; n_units + 1
				   entries */
	struct dwr_line_starts starts;
	_Atomic uint32_t *
		owner; /* of each special unit: the lowest table that covers it, UINT32_MAX: none */
	struct table *table;
	size_t n_tables, cap_tables;
	atomic_size_t visits; /* units looked at for sequences that span several; limited, as input
				 controls it */
	size_t max_visits;
	struct dwr_rw_line_cu *cu; /* sorted by stmt_list */
	uint8_t *data;             /* the output */
};

static bool folded(const struct elfrw_addrmap_unit *u)
{
	return u->flags & ELFRW_UNIT_FOLDED;
}

static struct elfrw_err *make_runs(struct job *job)
{
	const struct elfrw_addrmap *map = job->map;
	size_t n = map->n_units;
	job->run = malloc((n + 1) * sizeof *job->run);
	job->run_of = malloc((n + 1) * sizeof *job->run_of);
	job->special = malloc((n + 1) * sizeof *job->special);
	job->special_from = malloc((n + 1) * sizeof *job->special_from);
	job->owner = malloc((n + 1) * sizeof *job->owner);
	uint8_t *want = calloc(n + 1, 1);
	if (!job->run || !job->run_of || !job->special || !job->special_from || !job->owner ||
	    !want) {
		free(want);
		return &elfrw_err_nomem;
	}
	const bool overlay = job->in->policy == DWR_FOLDED_OVERLAY;
	for (uint32_t u = 0; u < n; u++) {
		const struct elfrw_addrmap_unit *unit = &map->unit[u];
		bool out = folded(unit) && job->in->policy != DWR_FOLDED_ALIAS;
		uint64_t delta = unit->body - unit->old;
		struct run *last = job->n_runs ? &job->run[job->n_runs - 1] : NULL;
		if (last && !last->out && !out && last->delta == delta)
			last->old_end = unit->old_end;
		else
			job->run[job->n_runs++] =
				(struct run){ unit->old, unit->old_end, delta, out };
		job->run_of[u] = job->n_runs - 1;
		if (!folded(unit) || unit->old == unit->old_end)
			continue;
		if (overlay)
			want[u] = want[unit->kept < n ? unit->kept : u] = 1;
		if (unit->flags & ELFRW_UNIT_THUNK)
			want[u] = 1;
	}
	uint32_t n_special = 0;
	for (uint32_t u = 0; u < n; u++) {
		job->special_from[u] = n_special;
		if (want[u])
			job->special[n_special++] = u;
		atomic_init(&job->owner[u], UINT32_MAX);
	}
	job->special_from[n] = n_special;
	free(want);
	return NULL;
}

/* The first run that ends after VA; n_runs: none. */
static uint32_t run_after(const struct job *job, uint64_t va)
{
	uint32_t u = elfrw_addrmap_find(job->map, va);
	if (u != ELFRW_NO_UNIT)
		return job->run_of[u];
	return LOWER_BOUND(0, job->n_runs, mid, job->run[mid].old_end <= va);
}

/* The special units that [LO, HI) can touch: indices in job->special. */
static void special_range(const struct job *job, uint64_t lo, uint64_t hi, uint32_t *from,
			  uint32_t *to)
{
	const struct elfrw_addrmap_unit *unit = job->map->unit;
	uint32_t n = job->map->n_units, bound[2];
	for (unsigned i = 0; i < 2; i++) {
		/* First unit that ends after lo; first unit that begins at or after hi. */
		uint64_t va = i ? hi : lo;
		uint32_t u = va && i ? elfrw_addrmap_find(job->map, va - 1)
				     : elfrw_addrmap_find(job->map, va);
		if (u != ELFRW_NO_UNIT)
			bound[i] = i ? u + 1 : u;
		else {
			uint32_t a = 0, b = n;
			while (a < b) {
				uint32_t mid = a + (b - a) / 2;
				if (i ? unit[mid].old >= va : unit[mid].old_end > va)
					b = mid;
				else
					a = mid + 1;
			}
			bound[i] = a;
		}
	}
	*from = job->special_from[bound[0]];
	*to = bound[1] > bound[0] ? job->special_from[bound[1]] : *from;
}

static struct elfrw_err *count_visits(struct job *job, size_t n)
{
	if (!n ||
	    atomic_fetch_add_explicit(&job->visits, n, memory_order_relaxed) + n <= job->max_visits)
		return NULL;
	return elfrw_error("line number sequences in %s overlap too often", job->in->name);
}

/* Values that linkers put where the code was thrown away, and whatever else names no code of this
 * file. */
static bool is_tombstone(const struct job *job, uint64_t va)
{
	return va <= 1 || va >= UINT64_MAX - 1 || !elfrw_addrmap_covers(job->map, va);
}

static struct elfrw_err *scan_table(void *arg, size_t index)
{
	struct job *job = arg;
	struct table *t = &job->table[index];
	struct dwr_line_header h;
	ELFRW_TRY(dwr_line_header_read(job->in->name, job->in->line, t->off, &h));
	t->version = h.version;
	t->offset_size = h.offset_size;
	t->taken.off = t->off;
	for (uint64_t off = h.program; off < h.end;) {
		struct dwr_line_seq s;
		ELFRW_TRY(dwr_line_scan(&h, &off, &s));
		t->taken.defines_files |= s.defines_files;
		if (!s.rows && !s.terminated)
			continue;
		if (s.end_off - s.off > UINT32_MAX)
			return elfrw_error_at(job->in->name, s.off,
					      "line number sequence of more than 4 GB");
		struct seq *q = VEC_PUSH(&t->seq);
		if (!q)
			return &elfrw_err_nomem;
		bool live = s.rows && !is_tombstone(job, s.first);
		*q = (struct seq){
			.off = s.off,
			.len = (uint32_t)(s.end_off - s.off),
			.lo = s.lo,
			.hi = s.hi,
			.set = s.set_off ? (uint32_t)(s.set_off - s.off) : 0,
			.sets = s.sets,
			.set_size = s.set_size,
			.flags = (uint8_t)((s.rows ? SEQ_ROWS : 0) |
					   (s.terminated ? SEQ_TERMINATED : 0) |
					   (s.ascending ? SEQ_ASCENDING : 0) |
					   (s.defines_files ? SEQ_DEFINES : 0) |
					   (live ? SEQ_LIVE : 0) | (s.tail ? SEQ_TAIL : 0)),
		};
		if (!live || s.lo == s.hi)
			continue;
		uint32_t from, to;
		special_range(job, s.lo, s.hi, &from, &to);
		ELFRW_TRY(count_visits(job, to - from));
		for (uint32_t i = from; i < to; i++) {
			_Atomic uint32_t *owner = &job->owner[job->special[i]];
			uint32_t old = atomic_load_explicit(owner, memory_order_relaxed);
			while (index < old &&
			       !atomic_compare_exchange_weak(owner, &old, (uint32_t)index))
				;
		}
	}
	return NULL;
}

/* The state of one table's rewriting. */
struct writer {
	struct job *job;
	struct table *t;
	const struct dwr_line_header *h;
	uint32_t index;       /* of the table */
	uint64_t taken;       /* input bytes before this are in t->w, or dropped */
	struct dwr_rows rows; /* of the current sequence, without its end */
	struct dwr_rows piece;
	struct dwr_rows spare;
};

/* Where the input byte at OFF, which will be copied with what follows the last cut, goes in the
 * table. */
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
	struct patch *p = VEC_PUSH(&wr->t->patch);
	if (!p)
		return &elfrw_err_nomem;
	*p = (struct patch){ new_pos(wr, off), value, (uint8_t)size };
	return NULL;
}

/* The whole sequence moves by DELTA. */
static struct elfrw_err *patch_seq(struct writer *wr, const struct seq *s, uint64_t delta)
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

/* Decodes S into wr->rows, in ascending order; *END is its end. */
static struct elfrw_err *decode_seq(struct writer *wr, const struct seq *s, uint64_t *end)
{
	struct dwr_rows *rows = &wr->rows;
	uint64_t off = s->off;
	rows->len = 0;
	ELFRW_TRY(dwr_line_decode(wr->h, &off, rows));
	if (s->flags & SEQ_TERMINATED)
		rows->len--;
	*end = s->flags & SEQ_TERMINATED ? rows->data[rows->len].address : s->hi;
	if (!(s->flags & SEQ_ASCENDING)) {
		if (!dwr_line_sort(rows, &wr->spare))
			return &elfrw_err_nomem;
		if (rows->len && *end < rows->data[rows->len - 1].address)
			*end = rows->data[rows->len - 1].address;
	}
	return NULL;
}

/* The part of a sequence in [OLD, OLD_END). */
struct part {
	size_t from, to; /* its rows */
	bool carried;    /* begins with a copy of row from - 1, at OLD */
	uint64_t end;
};

/* Cuts [OLD, OLD_END) out of the rows, of which those before FROM lie below OLD.  false: nothing of
 * it is there.  Rows right at the end take part when they are the sequence's last, or when no unit
 * begins there: they belong to what ends. */
static bool cut(const struct job *job, const struct dwr_rows *rows, uint64_t seq_end, uint64_t old,
		uint64_t old_end, size_t from, struct part *ret)
{
	const struct dwr_row *row = rows->data;
	size_t a = from, b = rows->len;
	while (a < b) { /* first row at or above old */
		size_t mid = a + (b - a) / 2;
		if (row[mid].address >= old)
			b = mid;
		else
			a = mid + 1;
	}
	struct part p = { .from = a, .end = seq_end < old_end ? seq_end : old_end };
	if (p.end <= old)
		return false;
	p.carried = a > 0 && (a == rows->len || row[a].address > old);
	for (p.to = a; p.to < rows->len && row[p.to].address < p.end; p.to++)
		;
	if (p.to == p.from && !p.carried)
		return false;
	if (p.end == seq_end || elfrw_addrmap_find(job->map, p.end) == ELFRW_NO_UNIT)
		while (p.to < rows->len && row[p.to].address == p.end)
			p.to++;
	*ret = p;
	return true;
}

/* The row that covers the first byte of a part which begins at OLD without a row of its own. */
static struct dwr_row carried_row(const struct dwr_rows *rows, const struct part *p, uint64_t old)
{
	struct dwr_row row = rows->data[p->from - 1];
	row.address = old;
	row.flags &= DWR_ROW_STMT;
	return row;
}

static uint8_t address_size(const struct writer *wr, const struct seq *s)
{
	return s->set_size                                            ? s->set_size
	       : wr->h->address_size >= 1 && wr->h->address_size <= 8 ? wr->h->address_size
								      : wr->job->in->address_size;
}

/* Keeps the part as rows of UNIT for the artificial table or for comparison with it. */
static struct elfrw_err *keep_cover(struct writer *wr, uint32_t u, const struct part *p)
{
	const uint64_t old = wr->job->map->unit[u].old;
	struct dwr_rows *to = &wr->t->taken.rows;
	size_t n = p->to - p->from, carried = p->carried;
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

/* Whether special units FROM to TO of this sequence need its rows. */
static bool wants_rows(const struct writer *wr, uint32_t from, uint32_t to)
{
	const struct job *job = wr->job;
	for (uint32_t i = from; i < to; i++) {
		uint32_t u = job->special[i];
		if (job->map->unit[u].flags & ELFRW_UNIT_THUNK && folded(&job->map->unit[u]))
			return true;
		if (job->in->policy == DWR_FOLDED_OVERLAY && job->owner[u] == wr->index)
			return true;
	}
	return false;
}

static struct elfrw_err *keep_covers(struct writer *wr, uint32_t from, uint32_t to, uint64_t end)
{
	const struct job *job = wr->job;
	struct part p;
	for (uint32_t i = from; i < to; i++) {
		uint32_t u = job->special[i];
		const struct elfrw_addrmap_unit *unit = &job->map->unit[u];
		if (job->in->policy == DWR_FOLDED_OVERLAY && job->owner[u] == wr->index &&
		    cut(job, &wr->rows, end, unit->old, unit->old_end, 0, &p))
			ELFRW_TRY(keep_cover(wr, u, &p));
	}
	return NULL;
}

/* A sequence of one row for each thunk that stands for a function whose first byte this sequence
 * covers. */
static struct elfrw_err *write_thunks(struct writer *wr, const struct seq *s, uint32_t from,
				      uint32_t to, uint64_t end)
{
	const struct job *job = wr->job;
	struct part p;
	for (uint32_t i = from; i < to; i++) {
		const struct elfrw_addrmap_unit *unit = &job->map->unit[job->special[i]];
		if (!folded(unit) || !(unit->flags & ELFRW_UNIT_THUNK) || !unit->thunk_size ||
		    !cut(job, &wr->rows, end, unit->old, unit->old_end, 0, &p) ||
		    (!p.carried && wr->rows.data[p.from].address != unit->old))
			continue;
		struct dwr_row row = wr->rows.data[p.carried ? p.from - 1 : p.from];
		row.address = unit->entry;
		row.flags &= DWR_ROW_STMT;
		row.discriminator = 0;
		copy_up_to(wr, s->off + s->len);
		ELFRW_TRY(dwr_line_encode(wr->h, address_size(wr, s), &row, 1,
					  unit->entry + unit->thunk_size, 0, &wr->t->w));
	}
	return NULL;
}

/* Starts to leave out S: what comes before it is copied, and its DW_LNE_define_file, which count
 * for the whole table. */
static struct elfrw_err *leave_out(struct writer *wr, const struct seq *s)
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

/* Writes the parts of the decoded sequence that stay in this table; false in *ANY: none does. */
static struct elfrw_err *write_parts(struct writer *wr, const struct seq *s, uint64_t end,
				     bool *any)
{
	const struct job *job = wr->job;
	uint64_t pos = wr->rows.data[0].address;
	size_t from = 0;
	*any = false;
	for (uint32_t r = run_after(job, pos); r < job->n_runs && job->run[r].old < end; r++) {
		const struct run *run = &job->run[r];
		uint64_t old = run->old > pos ? run->old : pos;
		struct part p;
		if (!cut(job, &wr->rows, end, old, run->old_end, from, &p))
			continue;
		from = p.to;
		ELFRW_TRY(count_visits(wr->job, p.carried));
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
		ELFRW_TRY(dwr_line_encode(wr->h, address_size(wr, s), rows, n, p.end, run->delta,
					  &wr->t->w));
	}
	return NULL;
}

/* Where a sequence that covers no byte goes: with the unit it points to, or else that ends
 * there. */
static uint64_t map_empty(const struct elfrw_addrmap *map, uint64_t va)
{
	uint64_t ret;
	if (elfrw_addrmap_find(map, va) != ELFRW_NO_UNIT)
		elfrw_addrmap_point(map, va, &ret);
	else
		elfrw_addrmap_end(map, va, &ret);
	return ret;
}

/* Does S, moved by DELTA, end with rows that another function's start would be taken for? */
static bool lose_tail(const struct writer *wr, const struct seq *s, uint64_t delta)
{
	const unsigned need = SEQ_TAIL | SEQ_ASCENDING;
	return (s->flags & need) == need && dwr_line_can_encode(wr->h) &&
	       dwr_line_starts_has(&wr->job->starts, s->hi + delta);
}

static struct elfrw_err *rewrite_seq(struct writer *wr, struct seq *s)
{
	const struct job *job = wr->job;
	s->new_off = new_pos(wr, s->off);
	if (!(s->flags & SEQ_LIVE) || !job->n_runs) {
		wr->t->untouched++;
		return NULL;
	}
	if (s->lo == s->hi && s->set)
		return patch_seq(wr, s, map_empty(job->map, s->lo) - s->lo);

	uint32_t r = run_after(job, s->lo), from, to;
	const struct run *run =
		r < job->n_runs ? &job->run[r] : NULL; /* when it holds all of the sequence */
	if (run && (run->old > s->lo || run->old_end < s->hi))
		run = NULL;
	special_range(job, s->lo, s->hi, &from, &to);
	uint64_t end = s->hi;
	const bool rows = wants_rows(wr, from, to);
	if (rows) {
		ELFRW_TRY(decode_seq(wr, s, &end));
		ELFRW_TRY(keep_covers(wr, from, to, end));
	}
	if (run && !run->out && s->set && !lose_tail(wr, s, run->delta)) {
		ELFRW_TRY(patch_seq(wr, s, run->delta));
		return rows ? write_thunks(wr, s, from, to, end) : NULL;
	}
	bool any = false;
	if (!(run && run->out)) {
		if (!(s->flags & SEQ_TERMINATED))
			return elfrw_error_at(
				job->in->name, s->off,
				"line number sequence over several functions has no end");
		if (!rows)
			ELFRW_TRY(decode_seq(wr, s, &end));
		ELFRW_TRY(leave_out(wr, s));
		s->new_off = wr->t->w.len;
		ELFRW_TRY(write_parts(wr, s, end, &any));
	} else
		ELFRW_TRY(leave_out(wr, s));
	if (any)
		wr->t->encoded++;
	else {
		wr->t->removed++;
		s->new_off = UINT64_MAX;
	}
	return rows ? write_thunks(wr, s, from, to, end) : NULL;
}

static struct elfrw_err *rewrite_seqs(struct writer *wr)
{
	struct table *t = wr->t;
	const struct dwr_line_header *h = wr->h;
	for (size_t i = 0; i < t->seq.len; i++)
		ELFRW_TRY(rewrite_seq(wr, &t->seq.data[i]));
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

static struct elfrw_err *rewrite_table(void *arg, size_t index)
{
	struct job *job = arg;
	struct table *t = &job->table[index];
	struct dwr_line_header h;
	ELFRW_TRY(dwr_line_header_read(job->in->name, job->in->line, t->off, &h));
	struct writer wr = {
		.job = job, .t = t, .h = &h, .index = (uint32_t)index, .taken = h.off
	};
	struct elfrw_err *err = rewrite_seqs(&wr);
	free(wr.rows.data);
	free(wr.piece.data);
	free(wr.spare.data);
	return err;
}

static int compare_cu(const void *a, const void *b)
{
	const struct dwr_rw_line_cu *x = a, *y = b;
	return (x->stmt_list > y->stmt_list) - (x->stmt_list < y->stmt_list);
}

/* Finds the tables: one behind the other; zero bytes between them are padding, which ends where a
 * unit_length is not zero or, when it is not a multiple of four bytes, where a unit of .debug_info
 * says that a table begins. */
static struct elfrw_err *find_tables(struct job *job)
{
	const struct dwr_rw_line_in *in = job->in;
	const uint8_t *data = in->line.data;
	size_t cu = 0;
	for (uint64_t off = 0; off < in->line.size;) {
		uint64_t left = in->line.size - off;
		while (cu < in->n_cus && job->cu[cu].stmt_list < off)
			cu++;
		uint64_t known = cu < in->n_cus ? job->cu[cu].stmt_list - off
						: UINT64_MAX; /* bytes to the next known table */
		uint64_t skip = left < 4 ? left : known && known < 4 ? known : 4;
		if (!elfrw_get_le(data + off, (unsigned)skip)) {
			off += skip;
			continue;
		}
		struct dwr_line_header h;
		ELFRW_TRY(dwr_line_header_read(in->name, in->line, off, &h));
		if (job->n_tables == UINT32_MAX - 1 ||
		    !elfrw_vec_grow((void **)&job->table, &job->cap_tables, job->n_tables + 1,
				    sizeof *job->table))
			return &elfrw_err_nomem;
		job->table[job->n_tables++] = (struct table){ .off = off, .end = h.end };
		off = h.end;
	}
	return NULL;
}

static struct elfrw_err *place_table(void *arg, size_t index)
{
	struct job *job = arg;
	struct table *t = &job->table[index];
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
static uint64_t lay_out(struct job *job)
{
	uint64_t old = 0, new = 0;
	for (size_t i = 0; i < job->n_tables; i++) {
		struct table *t = &job->table[i];
		t->new_off = new + (t->off - old);
		new = t->new_off + t->size;
		old = t->end;
	}
	return new + (job->in->line.size - old);
}

/* Forgets the rows that reach over functions which no unit claims (what GNAT makes by itself): no
 * symbolizer shows them. */
static struct elfrw_err *drop_unclaimed(struct job *job)
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

static struct elfrw_err *make_folds(struct job *job, uint64_t base, struct dwr_rw_line_out *out,
				    struct elfrw_wbuf *w)
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
	struct elfrw_err *err = dwr_rw_line_folds(&folds, out->fold, w, &out->folded_relative);
	free(taken);
	if (!err && w->len)
		out->folded_unit = base;
	return err;
}

static struct elfrw_err *make_maps(struct job *job, struct dwr_rw_line_out *out)
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
		const struct table *t = &job->table[i];
		out->unit[i] = (struct dwr_rw_line_off){ t->off, t->new_off };
		out->patched += t->patched;
		out->encoded += t->encoded;
		out->removed += t->removed;
		out->untouched += t->untouched;
		for (size_t k = 0; k < t->seq.len; k++) {
			const struct seq *s = &t->seq.data[k];
			uint64_t to =
				s->new_off == UINT64_MAX ? UINT64_MAX : t->new_off + s->new_off;
			*seq++ = (struct dwr_rw_line_off){ s->off, to };
		}
	}
	return NULL;
}

static struct elfrw_err *run_job(struct job *job, struct dwr_rw_line_out *out)
{
	const struct dwr_rw_line_in *in = job->in;
	job->cu = malloc((in->n_cus + 1) * sizeof *job->cu);
	out->fold = calloc((size_t)job->map->n_units + 1, sizeof *out->fold);
	if (!job->cu || !out->fold)
		return &elfrw_err_nomem;
	if (in->n_cus)
		memcpy(job->cu, in->cu, in->n_cus * sizeof *job->cu);
	qsort(job->cu, in->n_cus, sizeof *job->cu, compare_cu);
	ELFRW_TRY(find_tables(job));
	ELFRW_TRY(make_runs(job));
	if (!dwr_line_starts_make(&job->starts, job->map))
		return &elfrw_err_nomem;
	ELFRW_TRY(elfrw_parallel(in->threads, job->n_tables, scan_table, job));
	ELFRW_TRY(elfrw_parallel(in->threads, job->n_tables, rewrite_table, job));

	uint64_t base = lay_out(job);
	struct elfrw_wbuf folds = { 0 };
	struct elfrw_err *err = drop_unclaimed(job);
	if (!err)
		err = make_folds(job, base, out, &folds);
	if (!err && !(job->data = out->data = malloc(base + folds.len + 1)))
		err = &elfrw_err_nomem;
	if (!err) {
		uint64_t old = 0, new = 0;
		for (size_t i = 0; i <= job->n_tables; i++) {
			const struct table *t = i < job->n_tables ? &job->table[i] : NULL;
			uint64_t gap = (t ? t->off : in->line.size) - old;
			if (gap)
				memcpy(out->data + new, in->line.data + old, gap);
			if (t) {
				old = t->end;
				new = t->new_off + t->size;
			}
		}
		if (folds.len)
			memcpy(out->data + base, folds.data, folds.len);
		out->size = base + folds.len;
		err = elfrw_parallel(in->threads, job->n_tables, place_table, job);
	}
	elfrw_wbuf_free(&folds);
	return err ? err : make_maps(job, out);
}

struct elfrw_err *dwr_rw_line(const struct dwr_rw_line_in *in, struct dwr_rw_line_out *out)
{
	struct dwr_rw_line_out o = { 0 };
	struct job job = { .in = in, .map = in->map };
	/* Far above what a real table needs, where a function has rows of its own of a few bytes
	 * each. */
	job.max_visits = 4 * (size_t)in->map->n_units + in->line.size / 4 + 65536;
	struct elfrw_err *err = run_job(&job, &o);
	for (size_t i = 0; i < job.n_tables; i++) {
		struct table *t = &job.table[i];
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
