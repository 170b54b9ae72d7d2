/* scan.c: the tables of .debug_line and, of each, its sequences: their bounds and the place of
 * their set_address, no rows. */
#include "dwarf/rewrite/line/state.h"
#include "elfrw/addrmap.h"

/* Values that linkers write for discarded code, and other values that are no code of this file. */
static bool is_tombstone(const struct dwr_line_job *job, uint64_t va)
{
	return va <= 1 || va >= UINT64_MAX - 1 || !elfrw_addrmap_covers(job->map, va);
}

struct elfrw_err *dwr_line_scan_table(void *arg, size_t index)
{
	struct dwr_line_job *job = arg;
	struct dwr_line_table *t = &job->table[index];
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
		struct dwr_line_scanned *q = VEC_PUSH(&t->seq);
		if (!q)
			return &elfrw_err_nomem;
		if (!s.rows && s.set_off) /* covers no byte, but stands at a place */
			s.first = s.lo = s.hi = s.end;
		bool live = (s.rows || s.set_off) && !is_tombstone(job, s.first);
		*q = (struct dwr_line_scanned){
			.off = s.off,
			.len = (uint32_t)(s.end_off - s.off),
			.rows = (uint32_t)s.rows, /* not more than bytes */
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
		if (!live || s.lo == s.hi || !t->named)
			continue;
		uint32_t from, to;
		dwr_line_special_range(job, s.lo, s.hi, &from, &to);
		ELFRW_TRY(dwr_line_count_visits(job, to - from));
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

struct elfrw_err *dwr_line_find_tables(struct dwr_line_job *job)
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
		job->table[job->n_tables++] =
			(struct dwr_line_table){ .off = off, .end = h.end, .named = !known };
		off = h.end;
	}
	return NULL;
}
