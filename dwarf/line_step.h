/* line_step.h: the line number machine (DWARF 5, section 6.2.5), the only reader of its opcodes.
 *
 * dwr_line_step() runs a program to the next event that its caller wants.  WANT must be a constant:
 * the function is a template, of which the compiler leaves only what WANT needs.  So a walk that
 * follows addresses pays nothing for lines and columns. */
#ifndef DWARF_LINE_STEP_H
#define DWARF_LINE_STEP_H
#include "dwarf/line.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

enum dwr_line_want {
	DWR_LINE_ROWS = 1,    /* stop at rows */
	DWR_LINE_JUMPS = 2,   /* stop behind set_address and advance_pc */
	DWR_LINE_EXTS = 4,    /* stop behind every extended opcode */
	DWR_LINE_ADDRESS = 8, /* keep the address */
	DWR_LINE_PLACE = 16,  /* keep file, line, column and discriminator */
	DWR_LINE_REST = 32,   /* keep isa, flags, and how the address was reached */
};

enum dwr_line_event {
	DWR_LINE_NOTHING, /* is never returned by dwr_line_step() */
	DWR_LINE_AT_ROW,
	DWR_LINE_AT_JUMP,
	DWR_LINE_AT_EXT,
	DWR_LINE_AT_SEQUENCE_END, /* behind end_sequence */
	DWR_LINE_AT_END,          /* of the program */
	DWR_LINE_BROKEN,          /* the program ends inside an opcode */
	DWR_LINE_ODD_SET, /* a set_address whose operand is not of 1 to 8 bytes; R is there */
};

struct dwr_line_state {
	struct elfrw_rbuf r; /* at the next opcode */
	struct dwr_row row;  /* the registers */
	/* How the address changed since the row before: by set_address, by fixed_advance_pc, or by
	 * another opcode. */
	bool set, fixed, moved;
	bool defines_files;      /* a DW_LNE_define_file was met */
	uint64_t before;         /* JUMP: the address before it */
	struct dwr_line_ext ext; /* EXT, JUMP, ODD_SET: the opcode; op 0: the JUMP is advance_pc */
};

static inline void dwr_line_reset(const struct dwr_line_header *h, struct dwr_line_state *m)
{
	m->row = (struct dwr_row){ .file = 1,
				   .line = 1,
				   .flags = h->default_is_stmt ? DWR_ROW_STMT : 0 };
	m->set = m->fixed = m->moved = false;
}

/* The machine at the start of a sequence, at section offset OFF. */
static inline struct dwr_line_state dwr_line_start(const struct dwr_line_header *h, uint64_t off)
{
	struct dwr_line_state m = { .r = elfrw_rbuf(h->data, h->end) };
	elfrw_rbuf_seek(&m.r, off);
	dwr_line_reset(h, &m);
	return m;
}

/* Continues behind a row: resets the registers that a row resets. */
static inline void dwr_line_row_done(struct dwr_line_state *m)
{
	m->row.discriminator = 0;
	m->row.flags &= DWR_ROW_STMT;
	m->set = m->fixed = m->moved = false;
}

static inline void dwr_line_advance(struct dwr_line_state *m, uint64_t step, const unsigned want)
{
	if (want & DWR_LINE_ADDRESS)
		m->row.address += step;
	if (want & DWR_LINE_REST)
		m->moved |= step != 0;
}

/* Handles an extended opcode whose 0 byte has been read.  An opcode of length 0 has no effect: zero
 * bytes at the end of a unit, which are padding, look like this. */
static inline __attribute__((always_inline)) enum dwr_line_event dwr_line_extended(
	struct dwr_line_state *m, const unsigned want)
{
	struct elfrw_rbuf *r = &m->r;
	uint64_t off = elfrw_rbuf_off(r) - 1, len = r->pos < r->end ? elfrw_rbuf_uleb(r) : 0;
	if (r->bad || len > elfrw_rbuf_left(r))
		return DWR_LINE_BROKEN;
	if (!len)
		return DWR_LINE_NOTHING;
	const uint8_t op = *r->pos++, *arg = r->pos;
	const uint64_t size = len - 1, at = elfrw_rbuf_off(r);
	if (want & (DWR_LINE_EXTS | DWR_LINE_JUMPS) || op == DW_LNE_set_address)
		m->ext = (struct dwr_line_ext){ off, at + size, at, size, op };
	if (op == DW_LNE_set_address) {
		if (size < 1 || size > 8)
			return DWR_LINE_ODD_SET;
		if (want & DWR_LINE_JUMPS)
			m->before = m->row.address;
		if (want & DWR_LINE_ADDRESS)
			m->row.address = elfrw_get_le(arg, (unsigned)size);
		if (want & DWR_LINE_REST)
			m->set = true;
	} else if (op == DW_LNE_set_discriminator && want & DWR_LINE_PLACE) {
		struct elfrw_rbuf number = elfrw_rbuf(arg, size);
		m->row.discriminator = (uint32_t)elfrw_rbuf_uleb(&number);
	} else if (op == DW_LNE_define_file)
		m->defines_files = true;
	r->pos = arg + size;
	if (want & DWR_LINE_EXTS)
		return DWR_LINE_AT_EXT;
	if (op == DW_LNE_end_sequence)
		return DWR_LINE_AT_SEQUENCE_END;
	return op == DW_LNE_set_address && want & DWR_LINE_JUMPS ? DWR_LINE_AT_JUMP
								 : DWR_LINE_NOTHING;
}

/* Handles a standard opcode that has been read. */
static inline __attribute__((always_inline)) enum dwr_line_event dwr_line_standard(
	const struct dwr_line_header *h, struct dwr_line_state *m, uint8_t op, const unsigned want)
{
	struct elfrw_rbuf *r = &m->r;
	struct dwr_row *row = &m->row;
	const bool place = want & DWR_LINE_PLACE, rest = want & DWR_LINE_REST;
	uint64_t n;
	switch (op) {
	case DW_LNS_copy: return want & DWR_LINE_ROWS ? DWR_LINE_AT_ROW : DWR_LINE_NOTHING;
	case DW_LNS_advance_pc:
		m->before = row->address;
		m->ext.op = 0;
		dwr_line_advance(m, elfrw_rbuf_uleb(r) * h->min_inst_length, want);
		return want & DWR_LINE_JUMPS && !r->bad ? DWR_LINE_AT_JUMP : DWR_LINE_NOTHING;
	case DW_LNS_advance_line:
		n = (uint64_t)elfrw_rbuf_sleb(r);
		row->line += place ? (uint32_t)n : 0;
		break;
	case DW_LNS_set_file:
		n = elfrw_rbuf_uleb(r);
		row->file = place ? (uint32_t)n : row->file;
		break;
	case DW_LNS_set_column:
		n = elfrw_rbuf_uleb(r);
		row->column = place ? (uint32_t)n : row->column;
		break;
	case DW_LNS_negate_stmt: row->flags ^= rest ? DWR_ROW_STMT : 0; break;
	case DW_LNS_set_basic_block: row->flags |= rest ? DWR_ROW_BLOCK : 0; break;
	case DW_LNS_const_add_pc: dwr_line_advance(m, h->advance[255], want); break;
	case DW_LNS_fixed_advance_pc:
		n = elfrw_rbuf_u16(r);
		row->address += want & DWR_LINE_ADDRESS ? n : 0;
		m->fixed = true;
		break;
	case DW_LNS_set_prologue_end: row->flags |= rest ? DWR_ROW_PROLOGUE_END : 0; break;
	case DW_LNS_set_epilogue_begin: row->flags |= rest ? DWR_ROW_EPILOGUE_BEGIN : 0; break;
	case DW_LNS_set_isa:
		n = elfrw_rbuf_uleb(r);
		row->isa = rest ? (uint32_t)n : row->isa;
		break;
	default:
		for (unsigned i = 0; i < h->lengths[op - 1]; i++)
			elfrw_rbuf_uleb(r);
	}
	return DWR_LINE_NOTHING;
}

/* Runs to the next event.  WANT: enum dwr_line_want, a constant. */
static inline __attribute__((always_inline)) enum dwr_line_event dwr_line_step(
	const struct dwr_line_header *h, struct dwr_line_state *m, const unsigned want)
{
	struct elfrw_rbuf *r = &m->r;
	const uint8_t base = h->opcode_base;
	while (r->pos < r->end) {
		uint8_t op = *r->pos++;
		if (op >= base) {
			if (want & DWR_LINE_PLACE)
				m->row.line += (uint32_t)(int32_t)h->line_advance[op];
			dwr_line_advance(m, h->advance[op], want);
			if (want & DWR_LINE_ROWS)
				return DWR_LINE_AT_ROW;
			continue;
		}
		enum dwr_line_event event =
			op ? dwr_line_standard(h, m, op, want) : dwr_line_extended(m, want);
		if (event != DWR_LINE_NOTHING)
			return event;
		if (r->bad)
			return DWR_LINE_BROKEN;
	}
	return DWR_LINE_AT_END;
}
#endif
