/* line_program.c: line number programs, walked by line_step.h; see line.h.
 *
 * dwr_line_scan follows only addresses: one table look-up for each special opcode, no stores.  Most
 * sequences need no more, since a function that moves as a whole changes only its set_address.
 * dwr_line_decode makes rows, for the sequences that are cut.  Cost: about one and three
 * nanoseconds for each opcode. */
#include "dwarf/line.h"
#include "dwarf/line_step.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

/* The error for an event that is one. */
static struct elfrw_err *step_error(const struct dwr_line_header *h, const struct dwr_line_state *m,
				    enum dwr_line_event event)
{
	if (event == DWR_LINE_ODD_SET)
		return elfrw_error_at(h->section, elfrw_rbuf_off(&m->r),
				      "DW_LNE_set_address with an operand of %zu bytes",
				      (size_t)m->ext.size);
	return event == DWR_LINE_BROKEN
		       ? elfrw_error_at(h->section, elfrw_rbuf_off(&m->r),
					"line number program ends inside an opcode")
		       : NULL;
}

/* Handles a jump of M for S: records set_address; addresses may go back. */
static inline void scan_jump(const struct dwr_line_state *m, struct dwr_line_seq *s)
{
	if (m->ext.op == DW_LNE_set_address) {
		if (!s->rows) {
			s->set_off = m->ext.arg;
			s->set_size = (uint8_t)m->ext.size;
		}
		s->sets++;
	}
	if (m->row.address >= m->before || !s->rows)
		return;
	s->ascending = false;
	if (m->before > s->hi)
		s->hi = m->before;
	if (m->row.address < s->lo)
		s->lo = m->row.address;
}

/* Completes S at the end of the walk. */
static void scan_finish(struct dwr_line_seq *s, uint64_t last_row)
{
	s->tail = s->rows && s->terminated && last_row == s->end;
	if (s->first < s->lo)
		s->lo = s->first;
	if (s->end > s->hi)
		s->hi = s->end;
	/* Small steps that wrap around 2^64. */
	if (s->ascending && s->rows && s->end < s->first) {
		s->ascending = false;
		s->lo = 0;
		s->hi = UINT64_MAX;
	}
}

struct elfrw_err *dwr_line_scan(const struct dwr_line_header *h, uint64_t *off,
				struct dwr_line_seq *ret)
{
	struct dwr_line_state m = dwr_line_start(h, *off);
	struct dwr_line_seq s = { .off = *off, .ascending = true, .lo = UINT64_MAX };
	uint64_t last = 0;
	enum dwr_line_event event;
	for (;;) {
		event = dwr_line_step(h, &m, DWR_LINE_ROWS | DWR_LINE_JUMPS | DWR_LINE_ADDRESS);
		if (event == DWR_LINE_AT_ROW) {
			last = m.row.address;
			if (!s.rows++)
				s.first = last;
		} else if (event == DWR_LINE_AT_JUMP)
			scan_jump(&m, &s);
		else
			break;
	}
	ELFRW_TRY(step_error(h, &m, event));
	s.terminated = event == DWR_LINE_AT_SEQUENCE_END;
	s.defines_files = m.defines_files;
	s.end = m.row.address;
	s.end_off = elfrw_rbuf_off(&m.r);
	scan_finish(&s, last);
	*off = s.end_off;
	*ret = s;
	return NULL;
}

struct elfrw_err *dwr_line_next_ext(const struct dwr_line_header *h, uint64_t *off, uint64_t end,
				    struct dwr_line_ext *ret)
{
	struct dwr_line_state m = dwr_line_start(h, *off);
	if (end < h->end)
		m.r.end = h->data + end;
	enum dwr_line_event event = dwr_line_step(h, &m, DWR_LINE_EXTS);
	ELFRW_TRY(step_error(h, &m, event));
	*ret = event == DWR_LINE_AT_EXT ? m.ext : (struct dwr_line_ext){ 0 };
	*off = elfrw_rbuf_off(&m.r);
	return NULL;
}

struct elfrw_err *dwr_line_decode(const struct dwr_line_header *h, uint64_t *off,
				  struct dwr_rows *rows)
{
	struct dwr_line_state m = dwr_line_start(h, *off);
	for (;;) {
		enum dwr_line_event event = dwr_line_step(
			h, &m, DWR_LINE_ROWS | DWR_LINE_ADDRESS | DWR_LINE_PLACE | DWR_LINE_REST);
		ELFRW_TRY(step_error(h, &m, event));
		if (event == DWR_LINE_AT_END)
			break;
		if (rows->len == rows->cap && !VEC_RESERVE(rows, rows->len + 1))
			return &elfrw_err_nomem;
		struct dwr_row *row = &rows->data[rows->len++];
		*row = m.row;
		row->flags |= m.set ? DWR_ROW_VIA_SET : m.fixed && !m.moved ? DWR_ROW_VIA_FIXED : 0;
		if (event == DWR_LINE_AT_SEQUENCE_END) {
			row->flags |= DWR_ROW_END;
			break;
		}
		dwr_line_row_done(&m);
	}
	*off = elfrw_rbuf_off(&m.r);
	return NULL;
}
