/* line.h: line tables assembled by hand, for the tests of what reads and rewrites them. */
#ifndef TESTS_UNIT_MAKE_LINE_H
#define TESTS_UNIT_MAKE_LINE_H
#include "tests/unit/make/err_check.h"
#include "dwarf/line.h"
#include "elfrw/base/wbuf.h"
#include <stdlib.h>

/* --- assembling --- */

struct shape {
	uint16_t version;
	uint8_t offset_size;
	uint8_t min_inst, max_ops, line_range, opcode_base;
};
static const struct shape v2 = { 2, 4, 1, 1, 14, 13 }, v2_10 = { 2, 4, 1, 1, 14, 10 },
			  v3 = { 3, 4, 1, 1, 14, 13 }, v4 = { 4, 4, 1, 1, 14, 13 },
			  v5 = { 5, 4, 1, 1, 14, 13 }, v5_64 = { 5, 8, 1, 1, 14, 13 },
			  v3_64 = { 3, 8, 1, 1, 14, 13 };

struct unit_at {
	size_t start, length_pos, header_pos;
	struct shape shape;
};

/* Files of every table: file 1 is a.c, file 2 b.h (v5: file 0 is a.c too), in /src and /inc. */
static inline struct unit_at begin(struct elfrw_wbuf *w, struct shape s)
{
	static const uint8_t lengths[12] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };
	struct unit_at u = { .start = w->len, .shape = s };
	if (s.offset_size == 8)
		elfrw_wbuf_u32(w, 0xffffffff);
	u.length_pos = w->len;
	elfrw_wbuf_uint(w, 0, s.offset_size);
	elfrw_wbuf_u16(w, s.version);
	if (s.version >= 5) {
		elfrw_wbuf_u8(w, 8);
		elfrw_wbuf_u8(w, 0);
	}
	u.header_pos = w->len;
	elfrw_wbuf_uint(w, 0, s.offset_size);
	elfrw_wbuf_u8(w, s.min_inst);
	if (s.version >= 4)
		elfrw_wbuf_u8(w, s.max_ops);
	elfrw_wbuf_u8(w, 1);
	elfrw_wbuf_u8(w, (uint8_t)-5);
	elfrw_wbuf_u8(w, s.line_range);
	elfrw_wbuf_u8(w, s.opcode_base);
	for (unsigned op = 1; op < s.opcode_base; op++)
		elfrw_wbuf_u8(w, op <= 12 ? lengths[op - 1] : 2);
	if (s.version >= 5) {
		elfrw_wbuf_bytes(w, "\1\1\x08\3/src\0/inc\0rel", 4 + 5 + 5 + 4);
		elfrw_wbuf_bytes(w, "\2\1\x08\2\x0b\3a.c\0\0a.c\0\0b.h\0\1", 6 + 3 * 5);
	} else
		elfrw_wbuf_bytes(w, "/src\0/inc\0\0a.c\0\1\0\0b.h\0\2\0\0", 11 + 7 + 7 + 1);
	elfrw_put_le(w->data + u.header_pos, w->len - u.header_pos - s.offset_size, s.offset_size);
	return u;
}

static inline void end(struct elfrw_wbuf *w, struct unit_at u)
{
	elfrw_put_le(w->data + u.length_pos, w->len - u.length_pos - u.shape.offset_size,
		     u.shape.offset_size);
}

static inline void set_address(struct elfrw_wbuf *w, uint64_t va)
{
	elfrw_wbuf_bytes(w, "\0\x09\2", 3);
	elfrw_wbuf_u64(w, va);
}
static inline void end_sequence(struct elfrw_wbuf *w)
{
	elfrw_wbuf_bytes(w, "\0\1\1", 3);
}
static inline void advance_pc(struct elfrw_wbuf *w, uint64_t n)
{
	elfrw_wbuf_u8(w, 2);
	elfrw_wbuf_uleb(w, n);
}
static inline void copy(struct elfrw_wbuf *w)
{
	elfrw_wbuf_u8(w, 1);
}
/* A row STEP bytes and LINE lines on, in a table with opcode_base BASE. */
static inline void row_base(struct elfrw_wbuf *w, unsigned base, unsigned step, int line)
{
	unsigned op = (unsigned)(line + 5) + 14 * step + base;
	if (line >= -5 && line < 9 && op <= 255)
		elfrw_wbuf_u8(w, (uint8_t)op);
	else {
		elfrw_wbuf_u8(w, 3);
		elfrw_wbuf_sleb(w, line);
		advance_pc(w, step);
		copy(w);
	}
}

static inline void row(struct elfrw_wbuf *w, unsigned step, int line)
{
	row_base(w, 13, step, line);
}

/* --- reading back --- */

static inline struct dwr_rows rows_of(struct dwr_bytes sec, uint64_t off)
{
	struct dwr_line_header h;
	struct dwr_rows rows = { 0 };
	be_ok(dwr_line_header_read(".debug_line", sec, off, &h));
	for (uint64_t at = h.program; at < h.end;)
		be_ok(dwr_line_decode(&h, &at, &rows));
	return rows;
}

static inline void check_row(const struct dwr_rows *rows, size_t i, uint64_t address, uint32_t line,
			     unsigned flags)
{
	assert_true(i < rows->len);
	assert_int_equal(rows->data[i].address, address);
	assert_int_equal(rows->data[i].flags & ~(DWR_ROW_VIA_SET | DWR_ROW_VIA_FIXED), flags);
	if (!(flags & DWR_ROW_END))
		assert_int_equal(rows->data[i].line, line);
}
enum { S = DWR_ROW_STMT, E = DWR_ROW_STMT | DWR_ROW_END };
#endif
