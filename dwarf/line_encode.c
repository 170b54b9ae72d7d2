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

struct elfrw_err *dwr_line_encode(const struct dwr_line_header *h, unsigned address_size,
				  const struct dwr_row *rows, size_t n, uint64_t end,
				  uint64_t delta, struct elfrw_wbuf *w)
{
	enum { ROW_MAX = 96 }; /* bytes that one row, or the end, can need */
	if (!dwr_line_can_encode(h))
		return elfrw_error_at(h->section, h->off,
				      "line table with opcode_base %u cannot be written again",
				      h->opcode_base);
	const uint64_t max_steps = h->line_range ? (255u - h->opcode_base) / h->line_range : 0;
	struct dwr_row s = { .file = 1, .line = 1, .flags = h->default_is_stmt ? DWR_ROW_STMT : 0 };
	for (size_t i = 0; i <= n; i++) {
		if (w->bad || (w->cap - w->len < ROW_MAX &&
			       !elfrw_vec_grow((void **)&w->data, &w->cap, w->len + ROW_MAX, 1))) {
			w->bad = true;
			return &elfrw_err_nomem;
		}
		uint8_t *p = w->data + w->len;
		const struct dwr_row *row = &rows[i];
		uint64_t address = i < n ? row->address : end;
		uint64_t step = address - s.address, steps = 0;
		uint8_t via = i < n ? row->flags & (DWR_ROW_VIA_SET | DWR_ROW_VIA_FIXED) : 0;
		if (i == 0 || via == DWR_ROW_VIA_SET || address < s.address ||
		    (step && (!h->min_inst_length || step % h->min_inst_length)))
			p = put_set_address(p, address_size, address + delta);
		else if (via == DWR_ROW_VIA_FIXED && step <= 4 * 0xffff)
			while (step) {
				uint16_t part = step > 0xffff ? 0xffff : (uint16_t)step;
				*p++ = DW_LNS_fixed_advance_pc;
				elfrw_put16(p, part);
				p += 2;
				step -= part;
			}
		else if (step)
			steps = step / h->min_inst_length;
		s.address = address;
		if (i == n) {
			if (steps && steps == max_steps)
				*p++ = DW_LNS_const_add_pc;
			else if (steps) {
				*p++ = DW_LNS_advance_pc;
				p = put_uleb(p, steps);
			}
			*p++ = 0;
			*p++ = 1;
			*p++ = DW_LNE_end_sequence;
			w->len = (size_t)(p - w->data);
			break;
		}
		/* bfd before 2.42 begins sequences of version 5 with file 0 instead of 1. */
		if (row->file != s.file || (i == 0 && h->version >= 5)) {
			*p++ = DW_LNS_set_file;
			p = put_uleb(p, row->file);
		}
		if (row->column != s.column) {
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
		if ((row->flags ^ s.flags) & DWR_ROW_STMT)
			*p++ = DW_LNS_negate_stmt;
		if (row->flags & DWR_ROW_BLOCK)
			*p++ = DW_LNS_set_basic_block;
		if (row->isa != s.isa ||
		    row->flags & (DWR_ROW_PROLOGUE_END | DWR_ROW_EPILOGUE_BEGIN)) {
			if (h->opcode_base <= DW_LNS_set_isa)
				return elfrw_error_at(
					h->section, h->off,
					"opcode_base %u of the line table has no such row",
					h->opcode_base);
			if (row->flags & DWR_ROW_PROLOGUE_END)
				*p++ = DW_LNS_set_prologue_end;
			if (row->flags & DWR_ROW_EPILOGUE_BEGIN)
				*p++ = DW_LNS_set_epilogue_begin;
			if (row->isa != s.isa) {
				*p++ = DW_LNS_set_isa;
				p = put_uleb(p, row->isa);
			}
		}
		int32_t line = (int32_t)(row->line - s.line);
		if (h->line_range &&
		    (line < h->line_base || line >= h->line_base + h->line_range)) {
			*p++ = DW_LNS_advance_line;
			p = put_sleb(p, line);
			line = 0;
		}
		unsigned op = special(h, line, steps);
		if (!op && max_steps && steps >= max_steps &&
		    (op = special(h, line, steps - max_steps)))
			*p++ = DW_LNS_const_add_pc;
		if (!op && steps) {
			*p++ = DW_LNS_advance_pc;
			p = put_uleb(p, steps);
			op = special(h, line, 0);
		}
		if (!op &&
		    line) { /* no special opcode at all: line_range too large for its opcode_base */
			*p++ = DW_LNS_advance_line;
			p = put_sleb(p, line);
		}
		*p++ = op ? (uint8_t)op : DW_LNS_copy;
		w->len = (size_t)(p - w->data);
		s.file = row->file;
		s.line = row->line;
		s.column = row->column;
		s.isa = row->isa;
		s.flags = row->flags;
	}
	return NULL;
}
