/* line.c: line tables assembled by hand: headers, file tables, programs to rows and back. */
#include "tests/unit/make/line.h"
#include <dwarf.h>

/* One sequence with every kind of opcode that SHAPE has. */
static void all_opcodes(struct elfrw_wbuf *w, struct shape shape)
{
	struct unit_at u = begin(w, shape);
	set_address(w, 0x1000);
	row_base(w, shape.opcode_base, 0, 6);       /* 1000: 7 */
	elfrw_wbuf_bytes(w, "\4\2\5\x81\1\6\7", 7); /* file 2, column 129, not stmt, block */
	row_base(w, shape.opcode_base, 3, 2);       /* 1003: 9 */
	elfrw_wbuf_u8(w, 8);                        /* const_add_pc: 17 */
	elfrw_wbuf_bytes(w, "\0\2\4\7", 4);         /* discriminator 7 */
	if (shape.opcode_base > 12)
		elfrw_wbuf_bytes(w, "\x0a\x0b\x0c\5", 4);
	copy(w);                                 /* 1014: 9 */
	elfrw_wbuf_bytes(w, "\x09\0\x10", 3);    /* fixed_advance_pc 0x1000 */
	row_base(w, shape.opcode_base, 0, -200); /* 2014: line wraps */
	elfrw_wbuf_bytes(w, "\0\3\x80xy", 5);    /* a vendor's opcode */
	elfrw_wbuf_bytes(w, "\0\0", 2);          /* no opcode at all */
	advance_pc(w, 1000);
	end_sequence(w);
	end(w, u);
}

static void check_all_opcodes(const struct dwr_rows *r, bool new_ops)
{
	assert_int_equal(r->len, 5);
	check_row(r, 0, 0x1000, 7, S);
	assert_int_equal(r->data[0].file, 1);
	assert_int_equal(r->data[0].flags, S | DWR_ROW_VIA_SET);
	check_row(r, 1, 0x1003, 9, DWR_ROW_BLOCK);
	assert_int_equal(r->data[1].file, 2);
	assert_int_equal(r->data[1].column, 129);
	check_row(r, 2, 0x1014, 9, new_ops ? DWR_ROW_PROLOGUE_END | DWR_ROW_EPILOGUE_BEGIN : 0);
	assert_int_equal(r->data[2].discriminator, 7);
	assert_int_equal(r->data[2].isa, new_ops ? 5 : 0);
	check_row(r, 3, 0x2014, (uint32_t)(9 - 200), 0);
	assert_int_equal(r->data[3].discriminator, 0);
	check_row(r, 4, 0x2014 + 1000, 0, DWR_ROW_END);
}

/* The scan sees the same bounds. */
static void check_scan(const struct dwr_line_header *h)
{
	struct dwr_line_seq seq;
	uint64_t at = h->program;
	be_ok(dwr_line_scan(h, &at, &seq));
	assert_true(seq.rows && seq.terminated && seq.ascending);
	assert_int_equal(seq.first, 0x1000);
	assert_int_equal(seq.end, 0x2014 + 1000);
	assert_int_equal(seq.sets, 1);
	assert_int_equal(seq.set_off, h->program + 3);
	assert_int_equal(at, h->end);
}

/* Encoded and decoded again, in SIZE bytes at most, the rows R are the same. */
static void check_again(const struct dwr_line_header *h, struct shape shape,
			const struct dwr_rows *r, size_t size)
{
	const struct dwr_line_sequence again = { r->data, r->len - 1, r->data[4].address, 0x100 };
	struct elfrw_wbuf w = { 0 };
	struct unit_at u = begin(&w, shape);
	be_ok(dwr_line_encode(h, 8, &again, &w));
	end(&w, u);
	assert_true(w.len <= size);
	struct dwr_rows r2 = rows_of((struct dwr_bytes){ w.data, w.len }, 0);
	assert_int_equal(r2.len, r->len);
	for (size_t k = 0; k < r->len; k++) {
		struct dwr_row x = r->data[k], y = r2.data[k];
		assert_int_equal(x.address + 0x100, y.address);
		if (x.flags & DWR_ROW_END)
			break;
		assert_true(x.line == y.line && x.file == y.file && x.column == y.column &&
			    x.isa == y.isa && x.discriminator == y.discriminator &&
			    x.flags == y.flags);
	}
	free(r2.data);
	elfrw_wbuf_free(&w);
}

static void test_versions(void **arg)
{
	(void)arg;
	const struct shape shapes[] = { v2, v2_10, v3, v4, v5, v5_64, v3_64 };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct elfrw_wbuf w = { 0 };
		struct dwr_line_header h;
		all_opcodes(&w, shapes[i]);
		struct dwr_bytes sec = { w.data, w.len };
		struct dwr_rows r = rows_of(sec, 0);
		check_all_opcodes(&r, shapes[i].opcode_base > 12);
		be_ok(dwr_line_header_read(".debug_line", sec, 0, &h));
		check_scan(&h);
		check_again(&h, shapes[i], &r, w.len);
		free(r.data);
		elfrw_wbuf_free(&w);
	}
}

static void test_encode_steps(void **arg)
{
	(void)arg;
	/* Every pair of address and line step near the limits of the special opcodes, for several
	 * header parameters. */
	const struct {
		uint8_t min, base, range;
		int8_t line_base;
	} p[] = {
		{ 1, 13, 14, -5 },  { 4, 13, 14, -5 }, { 1, 10, 245, -3 }, { 1, 13, 255, -100 },
		{ 2, 200, 30, -1 }, { 1, 13, 10, 2 },  { 1, 255, 1, 0 },
	};
	for (size_t i = 0; i < sizeof p / sizeof *p; i++) {
		struct elfrw_wbuf w = { 0 };
		struct unit_at u =
			begin(&w, (struct shape){ 4, 4, p[i].min, 1, p[i].range, p[i].base });
		w.data[u.header_pos + 4 + 3] = (uint8_t)p[i].line_base;
		end(&w, u);
		struct dwr_line_header h;
		be_ok(dwr_line_header_read(".debug_line", (struct dwr_bytes){ w.data, w.len }, 0,
					   &h));
		struct dwr_rows rows = { 0 };
		uint64_t address = 0x1000;
		uint32_t line = 1000;
		for (unsigned step = 0; step < 40; step++)
			for (int l = -8; l < 16; l++) {
				address += step * p[i].min;
				line += (uint32_t)l;
				*(struct dwr_row *)VEC_PUSH(&rows) = (struct dwr_row){
					.address = address, .line = line, .file = 1, .flags = S
				};
			}
		/* A step that is no multiple of min_inst_length, and back again. */
		*(struct dwr_row *)VEC_PUSH(&rows) = (struct dwr_row){
			.address = address + 1, .line = line, .file = 1, .flags = S
		};
		*(struct dwr_row *)VEC_PUSH(&rows) =
			(struct dwr_row){ .address = 0x900, .line = line, .file = 1, .flags = S };
		const struct dwr_line_sequence steps = { rows.data, rows.len, 0x90f, 0 };
		be_ok(dwr_line_encode(&h, 8, &steps, &w));
		end(&w, u);
		struct dwr_rows back = rows_of((struct dwr_bytes){ w.data, w.len }, 0);
		assert_int_equal(back.len, rows.len + 1);
		for (size_t k = 0; k < rows.len; k++)
			check_row(&back, k, rows.data[k].address, rows.data[k].line, S);
		check_row(&back, rows.len, 0x90f, 0, E);
		free(rows.data);
		free(back.data);
		elfrw_wbuf_free(&w);
	}
}

static void test_unknown_opcodes(void **arg)
{
	(void)arg;
	struct elfrw_wbuf w = { 0 };
	struct shape s = v4;
	s.opcode_base = 16;
	struct unit_at u = begin(&w, s);
	set_address(&w, 0x1000);
	elfrw_wbuf_bytes(&w, "\x0d\x81\x01\x05", 4); /* opcode 13 has two operands here */
	copy(&w);
	advance_pc(&w, 4);
	end_sequence(&w);
	end(&w, u);
	struct dwr_rows r = rows_of((struct dwr_bytes){ w.data, w.len }, 0);
	assert_int_equal(r.len, 2);
	check_row(&r, 0, 0x1000, 1, S);
	check_row(&r, 1, 0x1004, 1, E);
	free(r.data);
	elfrw_wbuf_free(&w);
}

/* Zeros behind the last sequence of a table are padding. */
static void test_zeros_at_the_end(void **arg)
{
	(void)arg;
	for (unsigned zeros = 1; zeros <= 4; zeros++) {
		struct elfrw_wbuf w = { 0 };
		struct unit_at u = begin(&w, v4);
		set_address(&w, 0x1000);
		copy(&w);
		advance_pc(&w, 4);
		end_sequence(&w);
		elfrw_wbuf_bytes(&w, "\0\0\0\0", zeros);
		end(&w, u);
		struct dwr_rows r = rows_of((struct dwr_bytes){ w.data, w.len }, 0);
		assert_int_equal(r.len, 2);
		struct dwr_line_header h;
		struct dwr_line_seq seq;
		be_ok(dwr_line_header_read(".debug_line", (struct dwr_bytes){ w.data, w.len }, 0,
					   &h));
		uint64_t at = h.end - zeros;
		be_ok(dwr_line_scan(&h, &at, &seq));
		assert_int_equal(at, h.end);
		assert_false(seq.rows || seq.terminated);
		free(r.data);
		elfrw_wbuf_free(&w);
	}
}

static void test_files(void **arg)
{
	(void)arg;
	const struct shape old[] = { v2, v4 };
	const struct dwr_line_strings none = { 0 };
	for (size_t i = 0; i < 2; i++) {
		struct elfrw_wbuf w = { 0 };
		struct unit_at u = begin(&w, old[i]);
		elfrw_wbuf_bytes(&w, "\0\x07\3c.c\0\1\0\0",
				 10); /* define_file; its length is 1 + 4 + 3 */
		w.data[w.len - 9] = 8;
		end(&w, u);
		struct dwr_line_header h;
		struct dwr_line_files f = { 0 };
		be_ok(dwr_line_header_read("s", (struct dwr_bytes){ w.data, w.len }, 0, &h));
		be_ok(dwr_line_files_read(&h, &none, UINT64_MAX, true, &f));
		assert_int_equal(f.dir.len, 3);
		assert_null(f.dir.data[0]);
		assert_string_equal(f.dir.data[2], "/inc");
		assert_int_equal(f.file.len, 4);
		assert_string_equal(f.file.data[1].name, "a.c");
		assert_int_equal(f.file.data[2].dir, 2);
		assert_string_equal(f.file.data[3].name, "c.c");
		dwr_line_files_deinit(&f);
		elfrw_wbuf_free(&w);
	}
}

/* Ends the tables of version 5 and the unit U, and reads both. */
static void read_tables(struct elfrw_wbuf *w, struct unit_at u, const struct dwr_line_strings *str,
			struct dwr_line_files *f)
{
	const unsigned size = u.shape.offset_size;
	struct dwr_line_header h;
	elfrw_put_le(w->data + u.header_pos, w->len - u.header_pos - size, size);
	end(w, u);
	be_ok(dwr_line_header_read("s", (struct dwr_bytes){ w->data, w->len }, 0, &h));
	assert_int_equal(h.program, w->len);
	be_ok(dwr_line_files_read(&h, str, UINT64_MAX, false, f));
}

/* Every form that the DWARF 5 tables may use. */
static void test_v5_forms(void **arg)
{
	(void)arg;
	for (unsigned size = 4; size <= 8; size += 4) {
		struct elfrw_wbuf w = { 0 };
		struct shape s = v5;
		s.offset_size = (uint8_t)size;
		struct unit_at u = begin(&w, s);
		const size_t tables = u.header_pos + size + 6 + 12;
		w.len = tables;
		elfrw_wbuf_bytes(&w, "\1\1\x1f\2", 4); /* directories by line_strp */
		elfrw_wbuf_uint(&w, 1, size);
		elfrw_wbuf_uint(&w, 6, size);
		elfrw_wbuf_bytes(&w, "\6\1\x0e\2\x05\3\x0f\4\x07\5\x1e\x81\x40\x09\1",
				 14); /* strp, data2, udata, data8, md5, vendor: block */
		elfrw_wbuf_u8(&w, 1);
		elfrw_wbuf_uint(&w, 2, size);
		elfrw_wbuf_u16(&w, 1);
		elfrw_wbuf_uleb(&w, 1000);
		elfrw_wbuf_u64(&w, 5);
		elfrw_wbuf_bytes(&w, "0123456789abcdef", 16);
		elfrw_wbuf_bytes(&w, "\3xyz", 4);
		struct dwr_line_strings str = { .line_str = { (const uint8_t *)"\0/src\0/inc", 11 },
						.str = { (const uint8_t *)"x\0f.c", 6 } };
		struct dwr_line_files f = { 0 };
		read_tables(&w, u, &str, &f);
		assert_int_equal(f.dir.len, 2);
		assert_string_equal(f.dir.data[1], "/inc");
		assert_int_equal(f.file.len, 1);
		assert_string_equal(f.file.data[0].name, "f.c");
		assert_int_equal(f.file.data[0].dir, 1);
		assert_memory_equal(f.file.data[0].md5, "0123456789abcdef", 16);

		/* strx1 through .debug_str_offsets; a string out of the section is empty, not an
		 * error. */
		uint8_t offsets[24] = { 0 };
		offsets[size == 8 ? 16 : 8] = 2;
		str.str_offsets = (struct dwr_bytes){ offsets, size == 8 ? 24 : 12 };
		w.len = tables + 4 + 2 * size; /* behind the directories */
		elfrw_wbuf_bytes(&w, "\2\1\x25\2\x0b\2\0\1\1\0", 10);
		read_tables(&w, u, &str, &f);
		assert_int_equal(f.file.len, 2);
		assert_string_equal(f.file.data[0].name, "f.c");
		assert_string_equal(f.file.data[1].name, "");
		dwr_line_files_deinit(&f);
		elfrw_wbuf_free(&w);
	}
}

static void test_bad_headers(void **arg)
{
	(void)arg;
	struct elfrw_wbuf w = { 0 };
	struct dwr_line_header h;
	struct unit_at u = begin(&w, v4);
	set_address(&w, 0x1000);
	copy(&w);
	end_sequence(&w);
	end(&w, u);
	struct dwr_bytes sec = { w.data, w.len };
	uint8_t *d = w.data;
	for (size_t n = 0; n < w.len; n++) { /* truncated anywhere */
		struct elfrw_err *err =
			dwr_line_header_read("s", (struct dwr_bytes){ d, n }, 0, &h);
		assert_non_null(err);
		elfrw_err_free(err);
	}
	d[4] = 6;
	be_fails(dwr_line_header_read("s", sec, 0, &h), "unknown version 6");
	d[4] = 4;
	d[11] = 4;
	be_fails(dwr_line_header_read("s", sec, 0, &h), "VLIW");
	d[11] = 1;
	d[14] = 0;
	be_fails(dwr_line_header_read("s", sec, 0, &h), "line_range");
	d[14] = 14;
	d[15] = 0;
	be_fails(dwr_line_header_read("s", sec, 0, &h), "opcode_base");
	d[15] = 13;
	d[17] = 2;
	be_fails(dwr_line_header_read("s", sec, 0, &h), "standard opcode 2");
	d[17] = 1;
	elfrw_put32(d + 6, 0xffff);
	be_fails(dwr_line_header_read("s", sec, 0, &h), "reaches past its end");
	elfrw_put32(d, 0xfffffff1);
	be_fails(dwr_line_header_read("s", sec, 0, &h), "reserved");
	elfrw_wbuf_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_versions),         cmocka_unit_test(test_encode_steps),
		cmocka_unit_test(test_unknown_opcodes),  cmocka_unit_test(test_files),
		cmocka_unit_test(test_zeros_at_the_end), cmocka_unit_test(test_v5_forms),
		cmocka_unit_test(test_bad_headers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
