/* line_encode.c: rows to programs (DWARF 5, section 6.2.5); see line.h. */
#include "dwarf/line.h"
#include <dwarf.h>

static inline uint8_t *put_uleb(uint8_t *p, uint64_t v)
{
	for (; v >= 0x80; v >>= 7)
		*p++ = (uint8_t)(v | 0x80);
	*p++ = (uint8_t)v;
	return p;
}

static inline uint8_t *put_sleb(uint8_t *p, int64_t v)
{
	for (; v < -64 || v > 63; v >>= 7)
		*p++ = (uint8_t)((v & 0x7f) | 0x80);
	*p++ = (uint8_t)(v & 0x7f);
	return p;
}

static inline uint8_t *put_set_address(uint8_t *p, unsigned size, uint64_t address)
{
	*p++ = 0;
	*p++ = (uint8_t)(size + 1);
	*p++ = DW_LNE_set_address;
	elfrw_put_le(p, address, size);
	return p + size;
}

/* The special opcode that adds LINE to the line and STEPS instructions to the address, or 0: there
 * is none. */
static inline unsigned special(const struct dwr_line_header *h, int32_t line, uint64_t steps)
{
	if (!h->line_range || line < h->line_base || line >= h->line_base + h->line_range ||
	    steps > 255)
		return 0;
	unsigned op =
		(unsigned)(line - h->line_base) + h->line_range * (unsigned)steps + h->opcode_base;
	return op <= 255 ? op : 0;
}

bool dwr_line_can_encode(const struct dwr_line_header *h)
{
	return h->opcode_base > DW_LNS_fixed_advance_pc;
}

bool dwr_line_sort(struct dwr_rows *rows, struct dwr_rows *spare)
{
	size_t n = rows->len;
	if (!VEC_RESERVE(spare, n))
		return false;
	for (size_t width = 1; width < n; width *= 2) {
		for (size_t lo = 0; lo < n; lo += 2 * width) {
			size_t mid = n - lo < width ? n : lo + width,
			       hi = n - lo < 2 * width ? n : lo + 2 * width;
			size_t a = lo, b = mid;
			for (size_t k = lo; k < hi; k++)
				spare->data[k] =
					a < mid && (b >= hi ||
						    rows->data[a].address <= rows->data[b].address)
						? rows->data[a++]
						: rows->data[b++];
		}
		struct dwr_row *swap = rows->data;
		size_t cap = rows->cap;
		rows->data = spare->data;
		rows->cap = spare->cap;
		spare->data = swap;
		spare->cap = cap;
	}
	return true;
}

/* The state of writing one sequence. */
struct encoder {
	const struct dwr_line_header *h;
	unsigned address_size;
	uint64_t max_steps; /* what const_add_pc adds */
	struct dwr_row s;   /* the machine's registers so far */
};

/* Moves the machine to ADDRESS (plus DELTA in the output) by an opcode of its own, if necessary.
 * Otherwise *STEPS instructions remain to be added.  VIA: DWR_ROW_VIA_*, or 0. */
static uint8_t *put_address(struct encoder *e, uint8_t *p, uint64_t address, uint64_t delta,
			    uint8_t via, uint64_t *steps)
{
	const unsigned unit = e->h->min_inst_length;
	uint64_t step = address - e->s.address;
	*steps = 0;
	if (via == DWR_ROW_VIA_SET || address < e->s.address || (step && (!unit || step % unit)))
		p = put_set_address(p, e->address_size, address + delta);
	else if (via == DWR_ROW_VIA_FIXED && step <= 4 * 0xffff)
		while (step) {
			uint16_t part = step > 0xffff ? 0xffff : (uint16_t)step;
			*p++ = DW_LNS_fixed_advance_pc;
			elfrw_put16(p, part);
			p += 2;
			step -= part;
		}
	else if (step)
		*steps = step / unit;
	e->s.address = address;
	return p;
}

static uint8_t *put_end(const struct encoder *e, uint8_t *p, uint64_t steps)
{
	if (steps && steps == e->max_steps)
		*p++ = DW_LNS_const_add_pc;
	else if (steps) {
		*p++ = DW_LNS_advance_pc;
		p = put_uleb(p, steps);
	}
	*p++ = 0;
	*p++ = 1;
	*p++ = DW_LNE_end_sequence;
	return p;
}

/* Sets all registers of ROW except address and line.  SET_FILE: even if the file is the same. */
static uint8_t *put_registers(const struct encoder *e, uint8_t *p, const struct dwr_row *row,
			      bool set_file)
{
	if (row->file != e->s.file || set_file) {
		*p++ = DW_LNS_set_file;
		p = put_uleb(p, row->file);
	}
	if (row->column != e->s.column) {
		*p++ = DW_LNS_set_column;
		p = put_uleb(p, row->column);
	}
	if (row->discriminator) {
		uint8_t *len = p + 1;
		*p = 0;
		p[2] = DW_LNE_set_discriminator;
		p = put_uleb(p + 3, row->discriminator);
		*len = (uint8_t)(p - len - 1);
	}
	if ((row->flags ^ e->s.flags) & DWR_ROW_STMT)
		*p++ = DW_LNS_negate_stmt;
	if (row->flags & DWR_ROW_BLOCK)
		*p++ = DW_LNS_set_basic_block;
	if (row->flags & DWR_ROW_PROLOGUE_END)
		*p++ = DW_LNS_set_prologue_end;
	if (row->flags & DWR_ROW_EPILOGUE_BEGIN)
		*p++ = DW_LNS_set_epilogue_begin;
	if (row->isa != e->s.isa) {
		*p++ = DW_LNS_set_isa;
		p = put_uleb(p, row->isa);
	}
	return p;
}

/* Writes the row itself: LINE more lines and STEPS instructions. */
static uint8_t *put_row(const struct encoder *e, uint8_t *p, int32_t line, uint64_t steps)
{
	const struct dwr_line_header *h = e->h;
	if (h->line_range && (line < h->line_base || line >= h->line_base + h->line_range)) {
		*p++ = DW_LNS_advance_line;
		p = put_sleb(p, line);
		line = 0;
	}
	unsigned op = special(h, line, steps);
	if (!op && e->max_steps && steps >= e->max_steps &&
	    (op = special(h, line, steps - e->max_steps)))
		*p++ = DW_LNS_const_add_pc;
	if (!op && steps) {
		*p++ = DW_LNS_advance_pc;
		p = put_uleb(p, steps);
		op = special(h, line, 0);
	}
	/* No special opcode fits: line_range is too large for the opcode_base. */
	if (!op && line) {
		*p++ = DW_LNS_advance_line;
		p = put_sleb(p, line);
	}
	*p++ = op ? (uint8_t)op : DW_LNS_copy;
	return p;
}

/* Room for N bytes more, or NULL. */
static uint8_t *reserve(struct elfrw_wbuf *w, size_t n)
{
	if (w->bad ||
	    (w->cap - w->len < n && !elfrw_vec_grow((void **)&w->data, &w->cap, w->len + n, 1))) {
		w->bad = true;
		return NULL;
	}
	return w->data + w->len;
}

struct elfrw_err *dwr_line_encode(const struct dwr_line_header *h, unsigned address_size,
				  const struct dwr_line_sequence *seq, struct elfrw_wbuf *w)
{
	enum { ROW_MAX = 96 }; /* bytes that one row, or the end, can need */
	if (!dwr_line_can_encode(h))
		return elfrw_error_at(h->section, h->off,
				      "line table with opcode_base %u cannot be written again",
				      h->opcode_base);
	struct encoder e = {
		.h = h,
		.address_size = address_size,
		.max_steps = h->line_range ? (255u - h->opcode_base) / h->line_range : 0,
		.s = { .file = 1, .line = 1, .flags = h->default_is_stmt ? DWR_ROW_STMT : 0 },
	};
	uint64_t steps;
	for (size_t i = 0; i < seq->n; i++) {
		const struct dwr_row *row = &seq->row[i];
		uint8_t *p = reserve(w, ROW_MAX);
		if (!p)
			return &elfrw_err_nomem;
		if (h->opcode_base <= DW_LNS_set_isa &&
		    (row->isa != e.s.isa ||
		     row->flags & (DWR_ROW_PROLOGUE_END | DWR_ROW_EPILOGUE_BEGIN)))
			return elfrw_error_at(h->section, h->off,
					      "opcode_base %u of the line table has no such row",
					      h->opcode_base);
		uint8_t via =
			i ? row->flags & (DWR_ROW_VIA_SET | DWR_ROW_VIA_FIXED) : DWR_ROW_VIA_SET;
		p = put_address(&e, p, row->address, seq->delta, via, &steps);
		/* bfd before 2.42 starts sequences of version 5 with file 0 instead of 1. */
		p = put_registers(&e, p, row, i == 0 && h->version >= 5);
		p = put_row(&e, p, (int32_t)(row->line - e.s.line), steps);
		w->len = (size_t)(p - w->data);
		e.s = *row;
	}
	uint8_t *p = reserve(w, ROW_MAX);
	if (!p)
		return &elfrw_err_nomem;
	p = put_address(&e, p, seq->end, seq->delta, seq->n ? 0 : DWR_ROW_VIA_SET, &steps);
	w->len = (size_t)(put_end(&e, p, steps) - w->data);
	return NULL;
}
