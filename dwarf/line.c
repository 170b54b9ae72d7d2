/* line.c: see line.h.  Headers and programs: DWARF 2 section 6.2 to DWARF 5 section 6.2.
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
