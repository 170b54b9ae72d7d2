/* line.c: headers of line tables (DWARF 2 section 6.2 to DWARF 5 section 6.2); see line.h. */
#include "dwarf/line.h"
#include "elfrw/base/rbuf.h"

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

/* Reads unit_length: the end of the unit, which R must not pass. */
static struct elfrw_err *read_length(struct elfrw_rbuf *r, struct dwr_line_header *h)
{
	uint64_t length = elfrw_rbuf_u32(r);
	if (length == 0xffffffff) {
		length = elfrw_rbuf_u64(r);
		h->offset_size = 8;
	} else if (length >= 0xfffffff0)
		return elfrw_error_at(h->section, h->off, "reserved unit length 0x%llx",
				      (unsigned long long)length);
	if (!elfrw_rbuf_ok(r) || length > elfrw_rbuf_left(r))
		return elfrw_error_at(h->section, h->off,
				      "line table reaches past the end of the section");
	h->end = elfrw_rbuf_off(r) + length;
	r->end = r->pos + length;
	return NULL;
}

/* Can programs with this header be run? */
static struct elfrw_err *check_header(const struct dwr_line_header *h)
{
	if (h->max_ops > 1)
		return elfrw_error_at(
			h->section, h->off,
			"line table for a VLIW machine (%u operations per instruction)",
			h->max_ops);
	if (!h->line_range && h->program != h->end)
		return elfrw_error_at(h->section, h->off, "line_range of the line table is 0");
	for (unsigned op = 1; op < h->opcode_base && op <= 12; op++)
		if (h->lengths[op - 1] != standard_lengths[op - 1])
			return elfrw_error_at(
				h->section, h->off,
				"line table says that standard opcode %u has %u operands", op,
				h->lengths[op - 1]);
	return NULL;
}

struct elfrw_err *dwr_line_header_read(const char *section, struct dwr_bytes sec, uint64_t off,
				       struct dwr_line_header *ret)
{
	struct dwr_line_header h = {
		.section = section, .data = sec.data, .off = off, .offset_size = 4
	};
	struct elfrw_rbuf r = elfrw_rbuf(sec.data, sec.size);
	elfrw_rbuf_seek(&r, off);
	ELFRW_TRY(read_length(&r, &h));
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

	ELFRW_TRY(check_header(&h));
	dwr_line_header_finish(&h);
	*ret = h;
	return NULL;
}
