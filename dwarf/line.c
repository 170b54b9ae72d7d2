/* line.c: see line.h.  DWARF 2 section 6.2 to DWARF 5 section 6.2.
 *
 * Two walks over a program.  dwr_line_scan follows only addresses: a table look-up per special
 * opcode, no stores; that is all that most sequences need, since a function that moves as a whole
 * changes only its set_address.  dwr_line_decode makes rows, for the sequences that are cut.  Cost:
 * about a nanosecond and three per opcode. */
#include "dwarf/line.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

/* Number of operands of standard opcodes 1 to 12 (DWARF 5, section 6.2.5.2; fixed_advance_pc's is a
 * uhalf). */
static const uint8_t standard_lengths[12] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

void dwr_line_header_finish(struct dwr_line_header *h)
{
	memset(h->advance, 0, sizeof h->advance);
	memset(h->line_advance, 0, sizeof h->line_advance);
	if (!h->line_range)
		return;
	unsigned adv = 0, line = 0;
	for (unsigned op = h->opcode_base; op < 256; op++) {
		h->advance[op] = (uint16_t)(adv * h->min_inst_length);
		h->line_advance[op] = (int16_t)(h->line_base + (int)line);
		if (++line == h->line_range) {
			line = 0;
			adv++;
		}
	}
}

struct elfrw_err *dwr_line_header_read(const char *section, struct dwr_bytes sec, uint64_t off,
				       struct dwr_line_header *ret)
{
	struct dwr_line_header h = {
		.section = section, .data = sec.data, .off = off, .offset_size = 4
	};
	struct elfrw_rbuf r = elfrw_rbuf(sec.data, sec.size);
	elfrw_rbuf_seek(&r, off);
	uint64_t length = elfrw_rbuf_u32(&r);
	if (length == 0xffffffff) {
		length = elfrw_rbuf_u64(&r);
		h.offset_size = 8;
	} else if (length >= 0xfffffff0)
		return elfrw_error_at(section, off, "reserved unit length 0x%llx",
				      (unsigned long long)length);
	if (!elfrw_rbuf_ok(&r) || length > elfrw_rbuf_left(&r))
		return elfrw_error_at(section, off,
				      "line table reaches past the end of the section");
	h.end = elfrw_rbuf_off(&r) + length;
	r.end = r.pos + length;

	h.version = elfrw_rbuf_u16(&r);
	if (elfrw_rbuf_ok(&r) && (h.version < 2 || h.version > 5))
		return elfrw_error_at(section, off, "line table of unknown version %u", h.version);
	if (h.version >= 5) {
		h.address_size = elfrw_rbuf_u8(&r);
		elfrw_rbuf_u8(&r); /* segment_selector_size: only for DW_LNE_set_address's
				      successors, unused */
	}
	uint64_t header_length = elfrw_rbuf_uint(&r, h.offset_size);
	if (!elfrw_rbuf_ok(&r) || header_length > elfrw_rbuf_left(&r))
		return elfrw_error_at(section, off,
				      "header of the line table reaches past its end");
	h.program = elfrw_rbuf_off(&r) + header_length;
	r.end = r.pos + header_length;
	h.min_inst_length = elfrw_rbuf_u8(&r);
	h.max_ops = h.version >= 4 ? elfrw_rbuf_u8(&r) : 1;
	h.default_is_stmt = elfrw_rbuf_u8(&r) != 0;
	h.line_base = (int8_t)elfrw_rbuf_u8(&r);
	h.line_range = elfrw_rbuf_u8(&r);
	h.opcode_base = elfrw_rbuf_u8(&r);
	if (elfrw_rbuf_ok(&r) && !h.opcode_base)
		return elfrw_error_at(section, off, "opcode_base of the line table is 0");
	h.lengths = elfrw_rbuf_take(&r, h.opcode_base ? h.opcode_base - 1u : 0);
	if (!elfrw_rbuf_ok(&r))
		return elfrw_error_at(section, off, "header of the line table is truncated");
	h.tables = elfrw_rbuf_off(&r);

	if (h.max_ops > 1)
		return elfrw_error_at(
			section, off,
			"line table for a VLIW machine (%u operations per instruction)", h.max_ops);
	if (!h.line_range && h.program != h.end)
		return elfrw_error_at(section, off, "line_range of the line table is 0");
	for (unsigned op = 1; op < h.opcode_base && op <= 12; op++)
		if (h.lengths[op - 1] != standard_lengths[op - 1])
			return elfrw_error_at(
				section, off,
				"line table says that standard opcode %u has %u operands", op,
				h.lengths[op - 1]);
	dwr_line_header_finish(&h);
	*ret = h;
	return NULL;
}

static struct elfrw_err *truncated(const struct dwr_line_header *h, const struct elfrw_rbuf *r)
{
	return elfrw_error_at(h->section, elfrw_rbuf_off(r),
			      "line number program ends inside an opcode");
}

static struct elfrw_rbuf program_at(const struct dwr_line_header *h, uint64_t off)
{
	struct elfrw_rbuf r = elfrw_rbuf(h->data, h->end);
	elfrw_rbuf_seek(&r, off);
	return r;
}

/* The extended opcode whose 0 byte has been read: its number, and where what follows it begins; R
 * is at its operands. Number 0: none.  That is what zero bytes at the end of a unit, as padding,
 * come to. */
static inline struct elfrw_err *extended(const struct dwr_line_header *h, struct elfrw_rbuf *r,
					 uint8_t *op, const uint8_t **next)
{
	uint64_t len = r->pos < r->end ? elfrw_rbuf_uleb(r) : 0;
	if (r->bad || len > elfrw_rbuf_left(r))
		return truncated(h, r);
	*next = r->pos + len;
	*op = len ? *r->pos++ : 0;
	size_t size = (size_t)(*next - r->pos);
	if (*op == DW_LNE_set_address && (size < 1 || size > 8))
		return elfrw_error_at(h->section, elfrw_rbuf_off(r),
				      "DW_LNE_set_address with an operand of %zu bytes", size);
	return NULL;
}

/* The operands of a standard opcode that this program does not know. */
static inline void skip_unknown(const struct dwr_line_header *h, struct elfrw_rbuf *r, uint8_t op)
{
	for (unsigned i = 0; i < h->lengths[op - 1]; i++)
		elfrw_rbuf_uleb(r);
}

struct elfrw_err *dwr_line_scan(const struct dwr_line_header *h, uint64_t *off,
				struct dwr_line_seq *ret)
{
	struct elfrw_rbuf r = program_at(h, *off);
	struct dwr_line_seq s = { .off = *off, .ascending = true, .lo = UINT64_MAX };
	const uint8_t base = h->opcode_base;
	const uint16_t const_add = h->advance[255];
	uint64_t address = 0, last = 0, next_address;
	const uint8_t *next;
	uint8_t ext;
	while (r.pos < r.end) {
		uint8_t op = *r.pos++;
		if (op >= base) {
			address += h->advance[op];
			last = address;
			if (!s.rows) {
				s.first = address;
				s.rows = true;
			}
			continue;
		}
		switch (op) {
		case 0:
			ELFRW_TRY(extended(h, &r, &ext, &next));
			if (ext == DW_LNE_set_address) {
				uint8_t size = (uint8_t)(next - r.pos);
				if (!s.rows) {
					s.set_off = elfrw_rbuf_off(&r);
					s.set_size = size;
				}
				s.sets++;
				next_address = elfrw_get_le(r.pos, size);
				goto advanced;
			}
			if (ext == DW_LNE_end_sequence) {
				s.terminated = true;
				r.pos = next;
				goto done;
			}
			if (ext == DW_LNE_define_file)
				s.defines_files = true;
			r.pos = next;
			break;
		case DW_LNS_copy:
			last = address;
			if (!s.rows) {
				s.first = address;
				s.rows = true;
			}
			break;
		case DW_LNS_advance_pc:
			next = NULL;
			next_address = address + elfrw_rbuf_uleb(&r) * h->min_inst_length;
		advanced:
			if (next_address < address && s.rows) {
				s.ascending = false;
				if (address > s.hi)
					s.hi = address;
				if (next_address < s.lo)
					s.lo = next_address;
			}
			address = next_address;
			if (next)
				r.pos = next;
			break;
		case DW_LNS_advance_line:
		case DW_LNS_set_file:
		case DW_LNS_set_column:
		case DW_LNS_set_isa: elfrw_rbuf_uleb(&r); break;
		case DW_LNS_negate_stmt:
		case DW_LNS_set_basic_block:
		case DW_LNS_set_prologue_end:
		case DW_LNS_set_epilogue_begin: break;
		case DW_LNS_const_add_pc: address += const_add; break;
		case DW_LNS_fixed_advance_pc: address += elfrw_rbuf_u16(&r); break;
		default: skip_unknown(h, &r, op);
		}
		if (r.bad)
			return truncated(h, &r);
	}
done:
	s.end = address;
	s.end_off = elfrw_rbuf_off(&r);
	s.tail = s.rows && s.terminated && last == address;
	if (s.first < s.lo)
		s.lo = s.first;
	if (address > s.hi)
		s.hi = address;
	/* Small steps that wrap around 2^64. */
	if (s.ascending && s.rows && s.end < s.first) {
		s.ascending = false;
		s.lo = 0;
		s.hi = UINT64_MAX;
	}
	*off = s.end_off;
	*ret = s;
	return NULL;
}

struct elfrw_err *dwr_line_next_ext(const struct dwr_line_header *h, uint64_t *off, uint64_t end,
				    struct dwr_line_ext *ret)
{
	struct elfrw_rbuf r = program_at(h, *off);
	if (end < h->end)
		r.end = h->data + end;
	*ret = (struct dwr_line_ext){ 0 };
	while (r.pos < r.end) {
		const uint8_t *start = r.pos, *next;
		uint8_t op = *r.pos++, ext;
		if (op >= h->opcode_base)
			continue;
		if (op == 0) {
			ELFRW_TRY(extended(h, &r, &ext, &next));
			if (ext) {
				*ret = (struct dwr_line_ext){ .off = (uint64_t)(start - r.start),
							      .arg = elfrw_rbuf_off(&r),
							      .end_off = (uint64_t)(next - r.start),
							      .size = (uint64_t)(next - r.pos),
							      .op = ext };
				*off = ret->end_off;
				return NULL;
			}
			r.pos = next;
		} else if (op == DW_LNS_fixed_advance_pc)
			elfrw_rbuf_u16(&r);
		else
			skip_unknown(h, &r, op);
		if (r.bad)
			return truncated(h, &r);
	}
	*off = elfrw_rbuf_off(&r);
	return NULL;
}

struct elfrw_err *dwr_line_decode(const struct dwr_line_header *h, uint64_t *off,
				  struct dwr_rows *rows)
{
	struct elfrw_rbuf r = program_at(h, *off);
	const uint8_t base = h->opcode_base;
	const uint8_t start_flags = h->default_is_stmt ? DWR_ROW_STMT : 0;
	struct dwr_row s = { .file = 1, .line = 1, .flags = start_flags };
	bool set = false, fixed = false,
	     moved = false; /* how the address changed since the last row */
	while (r.pos < r.end) {
		uint8_t op = *r.pos++, ext = 0;
		bool row = false;
		const uint8_t *next;
		if (op >= base) {
			s.line += (uint32_t)(int32_t)h->line_advance[op];
			s.address += h->advance[op];
			moved |= h->advance[op] != 0;
			row = true;
		} else
			switch (op) {
			case 0:
				ELFRW_TRY(extended(h, &r, &ext, &next));
				if (ext == DW_LNE_set_address) {
					s.address = elfrw_get_le(r.pos, (unsigned)(next - r.pos));
					set = true;
				} else if (ext == DW_LNE_end_sequence) {
					s.flags |= DWR_ROW_END;
					row = true;
				} else if (ext == DW_LNE_set_discriminator) {
					struct elfrw_rbuf arg =
						elfrw_rbuf(r.pos, (size_t)(next - r.pos));
					s.discriminator = (uint32_t)elfrw_rbuf_uleb(&arg);
				}
				r.pos = next;
				break;
			case DW_LNS_copy: row = true; break;
			case DW_LNS_advance_pc: {
				uint64_t step = elfrw_rbuf_uleb(&r) * h->min_inst_length;
				s.address += step;
				moved |= step != 0;
				break;
			}
			case DW_LNS_advance_line: s.line += (uint32_t)elfrw_rbuf_sleb(&r); break;
			case DW_LNS_set_file: s.file = (uint32_t)elfrw_rbuf_uleb(&r); break;
			case DW_LNS_set_column: s.column = (uint32_t)elfrw_rbuf_uleb(&r); break;
			case DW_LNS_negate_stmt: s.flags ^= DWR_ROW_STMT; break;
			case DW_LNS_set_basic_block: s.flags |= DWR_ROW_BLOCK; break;
			case DW_LNS_const_add_pc:
				s.address += h->advance[255];
				moved |= h->advance[255] != 0;
				break;
			case DW_LNS_fixed_advance_pc:
				s.address += elfrw_rbuf_u16(&r);
				fixed = true;
				break;
			case DW_LNS_set_prologue_end: s.flags |= DWR_ROW_PROLOGUE_END; break;
			case DW_LNS_set_epilogue_begin: s.flags |= DWR_ROW_EPILOGUE_BEGIN; break;
			case DW_LNS_set_isa: s.isa = (uint32_t)elfrw_rbuf_uleb(&r); break;
			default: skip_unknown(h, &r, op);
			}
		if (r.bad)
			return truncated(h, &r);
		if (!row)
			continue;
		if (rows->len == rows->cap && !VEC_RESERVE(rows, rows->len + 1))
			return &elfrw_err_nomem;
		rows->data[rows->len] = s;
		rows->data[rows->len++].flags |= set               ? DWR_ROW_VIA_SET
						 : fixed && !moved ? DWR_ROW_VIA_FIXED
								   : 0;
		if (s.flags & DWR_ROW_END)
			break;
		s.discriminator = 0;
		s.flags &= DWR_ROW_STMT;
		set = fixed = moved = false;
	}
	*off = elfrw_rbuf_off(&r);
	return NULL;
}

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

/* The string at OFF of SEC, or NULL. */
static const char *string_at(struct dwr_bytes sec, uint64_t off)
{
	if (off >= sec.size || !memchr(sec.data + off, 0, sec.size - off))
		return NULL;
	return (const char *)sec.data + off;
}

static const char *string_x(const struct dwr_line_header *h, const struct dwr_line_strings *str,
			    uint64_t base, uint64_t index)
{
	struct dwr_bytes x = str->str_offsets;
	if (base == UINT64_MAX)
		base = h->offset_size == 8 ? 16 : 8;
	if (base > x.size || index >= (x.size - base) / h->offset_size)
		return NULL;
	return string_at(str->str,
			 elfrw_get_le(x.data + base + index * h->offset_size, h->offset_size));
}

struct form_value {
	uint64_t u;
	const char *str;
	const uint8_t *md5;
};

/* One field of an entry of the DWARF 5 tables (section 6.2.4.1).  false: a form that is not
 * known. */
static bool read_form(const struct dwr_line_header *h, const struct dwr_line_strings *str,
		      uint64_t str_base, uint64_t form, struct elfrw_rbuf *r, struct form_value *v)
{
	*v = (struct form_value){ 0 };
	switch (form) {
	case DW_FORM_string: v->str = elfrw_rbuf_cstr(r); return true;
	case DW_FORM_line_strp:
		v->str = string_at(str->line_str, elfrw_rbuf_uint(r, h->offset_size));
		return true;
	case DW_FORM_strp:
		v->str = string_at(str->str, elfrw_rbuf_uint(r, h->offset_size));
		return true;
	case DW_FORM_strx: v->str = string_x(h, str, str_base, elfrw_rbuf_uleb(r)); return true;
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		v->str = string_x(h, str, str_base,
				  elfrw_rbuf_uint(r, (unsigned)(form - DW_FORM_strx1) + 1));
		return true;
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_strp_alt: v->u = elfrw_rbuf_uint(r, h->offset_size); return true;
	case DW_FORM_udata: v->u = elfrw_rbuf_uleb(r); return true;
	case DW_FORM_sdata: v->u = (uint64_t)elfrw_rbuf_sleb(r); return true;
	case DW_FORM_data1:
	case DW_FORM_flag: v->u = elfrw_rbuf_u8(r); return true;
	case DW_FORM_data2: v->u = elfrw_rbuf_u16(r); return true;
	case DW_FORM_data4: v->u = elfrw_rbuf_u32(r); return true;
	case DW_FORM_data8: v->u = elfrw_rbuf_u64(r); return true;
	case DW_FORM_data16: v->md5 = elfrw_rbuf_take(r, 16); return true;
	case DW_FORM_block: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); return true;
	case DW_FORM_block1: elfrw_rbuf_skip(r, elfrw_rbuf_u8(r)); return true;
	case DW_FORM_block2: elfrw_rbuf_skip(r, elfrw_rbuf_u16(r)); return true;
	case DW_FORM_block4: elfrw_rbuf_skip(r, elfrw_rbuf_u32(r)); return true;
	}
	return false;
}

/* One of the two tables of DWARF 5: its format, then its entries.  Every form takes at least a
 * byte, so the number of entries is bounded by the bytes. */
static struct elfrw_err *read_table(const struct dwr_line_header *h,
				    const struct dwr_line_strings *str, uint64_t str_base,
				    struct elfrw_rbuf *r, bool dirs, struct dwr_line_files *files)
{
	uint64_t type[255], form[255];
	unsigned n = elfrw_rbuf_u8(r);
	for (unsigned i = 0; i < n; i++) {
		type[i] = elfrw_rbuf_uleb(r);
		form[i] = elfrw_rbuf_uleb(r);
	}
	uint64_t count = elfrw_rbuf_uleb(r);
	if (elfrw_rbuf_ok(r) && count > (n ? elfrw_rbuf_left(r) / n : 0))
		return elfrw_error_at(h->section, elfrw_rbuf_off(r),
				      "more files than the line table can hold");
	for (uint64_t e = 0; e < count; e++) {
		struct dwr_line_file file = { .name = "" };
		for (unsigned i = 0; i < n; i++) {
			struct form_value v;
			if (!read_form(h, str, str_base, form[i], r, &v))
				return elfrw_error_at(h->section, elfrw_rbuf_off(r),
						      "unknown form 0x%llx in a line table",
						      (unsigned long long)form[i]);
			if (type[i] == DW_LNCT_path && v.str)
				file.name = v.str;
			else if (type[i] == DW_LNCT_directory_index)
				file.dir = v.u;
			else if (type[i] == DW_LNCT_MD5)
				file.md5 = v.md5;
		}
		if (!elfrw_rbuf_ok(r))
			break;
		if (dirs) {
			const char **slot = VEC_PUSH(&files->dir);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = file.name;
		} else {
			struct dwr_line_file *slot = VEC_PUSH(&files->file);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = file;
		}
	}
	if (!elfrw_rbuf_ok(r))
		return elfrw_error_at(h->section, h->off,
				      "file tables of the line table are truncated");
	return NULL;
}

/* name, directory, time, size: an entry before DWARF 5 (section 6.2.4, file_names); an empty name
 * ends the table. */
static bool read_old_file(struct elfrw_rbuf *r, struct dwr_line_file *file)
{
	*file = (struct dwr_line_file){ .name = elfrw_rbuf_cstr(r) };
	if (!file->name || !*file->name)
		return false;
	file->dir = elfrw_rbuf_uleb(r);
	elfrw_rbuf_uleb(r);
	elfrw_rbuf_uleb(r);
	return elfrw_rbuf_ok(r);
}

static struct elfrw_err *read_old_tables(const struct dwr_line_header *h, struct elfrw_rbuf *r,
					 struct dwr_line_files *files)
{
	const char **slot = VEC_PUSH(&files->dir);
	struct dwr_line_file file = { .name = "" }, *fslot = VEC_PUSH(&files->file);
	if (!slot || !fslot)
		return &elfrw_err_nomem;
	*fslot = file;
	for (;;) {
		const char *dir = elfrw_rbuf_cstr(r);
		if (!dir || !*dir)
			break;
		if (!(slot = VEC_PUSH(&files->dir)))
			return &elfrw_err_nomem;
		*slot = dir;
	}
	while (read_old_file(r, &file)) {
		if (!(fslot = VEC_PUSH(&files->file)))
			return &elfrw_err_nomem;
		*fslot = file;
	}
	if (!elfrw_rbuf_ok(r))
		return elfrw_error_at(h->section, h->off,
				      "file tables of the line table are truncated");
	return NULL;
}

struct elfrw_err *dwr_line_files_read(const struct dwr_line_header *h,
				      const struct dwr_line_strings *str, uint64_t str_offsets_base,
				      bool defined, struct dwr_line_files *files)
{
	files->dir.len = files->file.len = 0;
	struct elfrw_rbuf r = elfrw_rbuf(h->data, h->program);
	elfrw_rbuf_seek(&r, h->tables);
	if (h->version >= 5) {
		ELFRW_TRY(read_table(h, str, str_offsets_base, &r, true, files));
		ELFRW_TRY(read_table(h, str, str_offsets_base, &r, false, files));
	} else
		ELFRW_TRY(read_old_tables(h, &r, files));
	for (uint64_t off = h->program; defined;) {
		struct dwr_line_ext ext;
		struct dwr_line_file file;
		ELFRW_TRY(dwr_line_next_ext(h, &off, h->end, &ext));
		if (!ext.op)
			break;
		if (ext.op != DW_LNE_define_file)
			continue;
		struct elfrw_rbuf arg = elfrw_rbuf(h->data + ext.arg, ext.size);
		if (!read_old_file(&arg, &file))
			return elfrw_error_at(h->section, ext.off, "malformed DW_LNE_define_file");
		struct dwr_line_file *slot = VEC_PUSH(&files->file);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = file;
	}
	return NULL;
}

void dwr_line_files_deinit(struct dwr_line_files *files)
{
	VEC_FREE(&files->dir);
	VEC_FREE(&files->file);
}
