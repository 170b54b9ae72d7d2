/* cfi.c: hand-made unwind tables: read, compared, and rewritten. */
#include "tests/unit/make/err_check.h"
#include "dwarf/cfi.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/wbuf.h"
#include <stdlib.h>

#define EH_VA 0x2000
#define CODE  0x1000

static size_t begin(struct elfrw_wbuf *w)
{
	elfrw_wbuf_u32(w, 0);
	return w->len - 4;
}

static void end(struct elfrw_wbuf *w, size_t start)
{
	while (w->len % 8)
		elfrw_wbuf_u8(w, 0);
	elfrw_put32(w->data + start, (uint32_t)(w->len - start - 4));
}

static const uint8_t entry_rules[] = { 0x0c, 7, 8, 0x90, 1 };

static size_t cie(struct elfrw_wbuf *w, const char *aug, uint64_t personality)
{
	size_t start = begin(w);
	elfrw_wbuf_u32(w, 0);
	elfrw_wbuf_u8(w, 1);
	elfrw_wbuf_cstr(w, aug);
	elfrw_wbuf_uleb(w, 1);
	elfrw_wbuf_sleb(w, -8);
	elfrw_wbuf_u8(w, 16);
	elfrw_wbuf_uleb(w, (strchr(aug, 'P') ? 5 : 0) + !!strchr(aug, 'L') + !!strchr(aug, 'R'));
	for (; *aug; aug++)
		switch (*aug) {
		case 'P':
			elfrw_wbuf_u8(w, 0x9b);
			elfrw_wbuf_u32(w, (uint32_t)(personality - (EH_VA + w->len)));
			break;
		case 'L':
		case 'R': elfrw_wbuf_u8(w, 0x1b);
		}
	elfrw_wbuf_bytes(w, entry_rules, sizeof entry_rules);
	end(w, start);
	return start;
}

#define BYTES(array) ((struct dwr_bytes){ array, sizeof array })

/* LSDA: NULL, or the address in the field (0: none). */
static size_t fde(struct elfrw_wbuf *w, size_t cie_off, uint64_t pc, uint32_t len,
		  const uint64_t *lsda, struct dwr_bytes insn)
{
	size_t start = begin(w);
	elfrw_wbuf_u32(w, (uint32_t)(w->len - cie_off));
	elfrw_wbuf_u32(w, (uint32_t)(pc - (EH_VA + w->len)));
	elfrw_wbuf_u32(w, len);
	elfrw_wbuf_u8(w, lsda ? 4 : 0);
	if (lsda)
		elfrw_wbuf_u32(w, *lsda ? (uint32_t)(*lsda - (EH_VA + w->len)) : 0);
	elfrw_wbuf_bytes(w, insn.data, insn.size);
	end(w, start);
	return start;
}

/* push rbp and so on: def_cfa_offset 16 after one byte; the zero is an operand. */
static const uint8_t rows[] = { 0x41, 0x0e, 16, 0x41, 0x0e, 0 };
static const uint8_t other_rows[] = { 0x41, 0x0e, 24 };
/* def_cfa_expression: breg7+8, breg16+0, lit15, and, lit11, ge, lit3, shl, plus */
static const uint8_t plt_rows[] = { 0x0f, 0x0b, 0x77, 8,    0x80, 0,   0x3f,
				    0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22 };

static void sample(struct elfrw_wbuf *w)
{
	const uint64_t table = 0x3000, none = 0;
	size_t plain = cie(w, "zR", 0);
	fde(w, plain, CODE, 0x20, NULL, BYTES(plt_rows));
	size_t a = cie(w, "zPLR", 0x5000);
	fde(w, a, CODE + 0x20, 0x10, &table, BYTES(rows));
	fde(w, a, CODE + 0x30, 0x10, &none, BYTES(rows));
	size_t b = cie(w, "zPLR", 0x5000);
	fde(w, b, CODE + 0x40, 0x18, &none, BYTES(rows));
	fde(w, b, CODE + 0x60, 0x10, &none, BYTES(other_rows));
	size_t c = cie(w, "zRS", 0);
	fde(w, c, CODE + 0x70, 0x10, NULL, BYTES(rows));
	fde(w, plain, CODE + 0x80, 0x10, NULL, BYTES(rows));
	elfrw_wbuf_u32(w, 0);
}

static struct elfrw_err *read_eh(struct dwr_cfi *cfi, const uint8_t *data, size_t size)
{
	return dwr_cfi_read(cfi, ".eh_frame", (struct dwr_bytes){ data, size }, EH_VA, true, 8);
}

static void test_fields(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	struct dwr_cfi cfi;
	sample(&w);
	be_ok(read_eh(&cfi, w.data, w.len));
	assert_int_equal(cfi.cie.len, 4);
	assert_int_equal(cfi.fde.len, 7);
	assert_int_equal(cfi.terminator.len, 1);
	assert_int_equal(cfi.terminator.data[0], w.len - 4);
	assert_int_equal(cfi.cie.data[1].personality, 0x5000);
	assert_true(cfi.cie.data[1].personality_indirect);
	assert_int_equal(cfi.cie.data[1].insn_size, sizeof entry_rules);
	assert_int_equal(cfi.cie.data[2].same, 1);
	assert_int_equal(cfi.cie.data[3].same, 3);
	assert_true(cfi.cie.data[3].signal_frame);
	const struct dwr_fde *f = cfi.fde.data;
	assert_int_equal(f[1].pc_begin, CODE + 0x20);
	assert_int_equal(f[1].pc_end, CODE + 0x30);
	assert_int_equal(f[1].lsda, 0x3000);
	assert_int_equal(f[2].lsda, 0); /* a zero field, though it is PC-relative */
	assert_int_not_equal(f[2].lsda_off, 0);
	assert_int_equal(f[6].lsda_off, 0);
	assert_int_equal(f[1].insn_size, sizeof rows); /* the last operand is no padding */
	assert_int_equal(f[0].cfa_flags, DWR_CFA_USES_PC);
	assert_int_equal(f[1].cfa_flags, DWR_CFA_ADVANCES);
	assert_true(dwr_fde_same(&cfi, 1, 2));
	assert_true(dwr_fde_same(&cfi, 1, 3));
	assert_false(dwr_fde_same(&cfi, 1, 4));
	assert_false(dwr_fde_same(&cfi, 5, 6));
	assert_int_equal(dwr_cfi_find(&cfi, CODE + 0x57), 3);
	assert_int_equal(dwr_cfi_find(&cfi, CODE + 0x58), UINT32_MAX);
	assert_int_equal(dwr_cfi_find(&cfi, CODE - 1), UINT32_MAX);
	assert_int_equal(dwr_cfi_find(&cfi, CODE), 0);
	for (uint32_t i = 0; i < cfi.fde.len; i++)
		for (uint32_t k = 0; k < cfi.fde.len; k++) {
			struct elfrw_wbuf x = { 0 }, y = { 0 };
			dwr_fde_canon(&cfi, i, &x);
			dwr_fde_canon(&cfi, k, &y);
			assert_int_equal(x.len == y.len && !memcmp(x.data, y.data, x.len),
					 dwr_fde_same(&cfi, i, k));
			elfrw_wbuf_free(&x);
			elfrw_wbuf_free(&y);
		}
	dwr_cfi_deinit(&cfi);
	elfrw_wbuf_free(&w);
}

static void test_addresses(void **state)
{
	(void)state;
	static const uint8_t set_loc[] = { 0x01, 0x10, 0, 0, 0, 0x0e, 16 };
	static const uint8_t op_addr[] = { 0x0f, 9, 0x03, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct elfrw_wbuf w = { 0 };
	struct dwr_cfi cfi;
	size_t c = cie(&w, "zR", 0);
	fde(&w, c, CODE, 16, NULL, BYTES(set_loc));
	fde(&w, c, CODE + 16, 16, NULL, BYTES(set_loc));
	fde(&w, c, CODE + 32, 16, NULL, BYTES(op_addr));
	fde(&w, c, CODE + 48, 16, NULL, BYTES(rows));
	be_ok(read_eh(&cfi, w.data, w.len));
	assert_int_equal(cfi.terminator.len, 0);
	assert_true(dwr_cfi_has_address(&cfi, 0));
	assert_true(dwr_cfi_has_address(&cfi, 2));
	assert_false(dwr_cfi_has_address(&cfi, 3));
	assert_false(dwr_fde_same(&cfi, 0, 1));
	struct dwr_cfa_address at[2];
	struct dwr_cfa_walk walk = { .address = at, .max = 2 };
	assert_int_equal(dwr_cfa_walk(&cfi.cie.data[0], op_addr, sizeof op_addr, &walk), 1);
	assert_int_equal(at[0].off, 3);
	dwr_cfi_deinit(&cfi);
	elfrw_wbuf_free(&w);
}

/* Every prefix and every single-byte change is read or refused, without a fault (run under a
 * sanitizer). */
static void test_broken(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	struct dwr_cfi cfi;
	sample(&w);
	for (size_t n = 0; n < w.len; n++) {
		uint8_t *copy = malloc(n + 1);
		memcpy(copy, w.data, n);
		elfrw_err_free(read_eh(&cfi, copy, n));
		dwr_cfi_deinit(&cfi);
		free(copy);
	}
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	for (size_t i = 0; i < w.len; i++)
		for (size_t k = 0; k < sizeof values; k++) {
			uint8_t was = w.data[i];
			w.data[i] = values[k];
			struct elfrw_addrmap map = { 0 };
			struct dwr_rw_frame_in in = { .cfi = &cfi,
						      .map = &map,
						      .arch = &elfrw_arch_x86_64,
						      .va = EH_VA + 8 };
			struct dwr_rw_frame_out out;
			struct elfrw_err *err = read_eh(&cfi, w.data, w.len);
			if (!err && !(err = dwr_rw_eh_frame(&in, &out)))
				dwr_rw_frame_deinit(&out);
			elfrw_err_free(err);
			dwr_cfi_deinit(&cfi);
			elfrw_err_free(dwr_cfi_read(&cfi, ".debug_frame",
						    (struct dwr_bytes){ w.data, w.len }, 0, false,
						    8));
			dwr_cfi_deinit(&cfi);
			w.data[i] = was;
		}
	w.len = 0;
	cie(&w, "zRQ", 0);
	be_fails(read_eh(&cfi, w.data, w.len), "augmentation");
	static const uint8_t unknown[] = { 0x3f };
	w.len = 0;
	fde(&w, cie(&w, "zR", 0), CODE, 4, NULL, BYTES(unknown));
	be_fails(read_eh(&cfi, w.data, w.len), "invalid FDE instructions");
	w.len = 0;
	fde(&w, cie(&w, "zR", 0) + 4, CODE, 4, NULL, BYTES(rows));
	be_fails(read_eh(&cfi, w.data, w.len), "names no CIE");
	elfrw_wbuf_free(&w);
}

/* A .debug_frame of one FDE, which names a CIE behind it. */
static void debug_frame(struct elfrw_wbuf *w, uint8_t version, bool wide)
{
	const size_t fde_size = wide ? 12 + 8 + 16 + 4 : 4 + 4 + 16 + 4;
	for (int is_cie = 0; is_cie < 2; is_cie++) {
		size_t start = w->len;
		if (wide)
			elfrw_wbuf_u32(w, 0xffffffff);
		elfrw_wbuf_uint(w, 0, wide ? 8 : 4);
		size_t body = w->len;
		elfrw_wbuf_uint(w, is_cie ? UINT64_MAX : fde_size, wide ? 8 : 4);
		if (is_cie) {
			elfrw_wbuf_u8(w, version);
			elfrw_wbuf_cstr(w, "");
			if (version == 4) {
				elfrw_wbuf_u8(w, 8);
				elfrw_wbuf_u8(w, 0);
			}
			elfrw_wbuf_uleb(w, 1);
			elfrw_wbuf_sleb(w, -8);
			elfrw_wbuf_u8(w, 16);
			elfrw_wbuf_bytes(w, entry_rules, sizeof entry_rules);
		} else {
			elfrw_wbuf_u64(w, CODE);
			elfrw_wbuf_u64(w, 0x20);
			elfrw_wbuf_bytes(w, "\x41\x0e\x10\0", 4);
		}
		elfrw_put_le(w->data + start + (wide ? 4 : 0), w->len - body, wide ? 8 : 4);
	}
}

/* The function of the only FDE moves; then it is folded; then it is folded but keeps its FDE. */
static void rewrite_debug_frame(const struct dwr_cfi *cfi, struct elfrw_wbuf *w, bool wide)
{
	struct elfrw_addrmap_unit unit = { CODE, CODE + 0x20, CODE + 0x100, CODE + 0x100, 0, 0, 0 };
	struct elfrw_addrmap_section sec = { CODE, CODE + 0x20, CODE, CODE + 0x200, 1 };
	struct elfrw_addrmap map = {
		.unit = &unit, .n_units = 1, .section = &sec, .n_sections = 1
	};
	be_ok(elfrw_addrmap_finish(&map));
	struct dwr_rw_frame_in in = { .cfi = cfi, .map = &map, .arch = &elfrw_arch_x86_64 };
	struct dwr_rw_frame_out out;
	be_ok(dwr_rw_debug_frame(&in, &out));
	assert_int_equal(out.size, w->len);
	elfrw_put64(w->data + (wide ? 20 : 8), CODE + 0x100);
	assert_memory_equal(out.data, w->data, w->len);
	dwr_rw_frame_deinit(&out);
	unit.flags = ELFRW_UNIT_FOLDED;
	be_ok(dwr_rw_debug_frame(&in, &out));
	assert_int_equal(out.size, 0);
	dwr_rw_frame_deinit(&out);
	in.keep_folded = true;
	be_ok(dwr_rw_debug_frame(&in, &out));
	assert_int_equal(out.size, w->len);
	dwr_rw_frame_deinit(&out);
	elfrw_blocks_deinit(&map.blocks);
}

static void test_debug_frame(void **state)
{
	(void)state;
	static const uint8_t versions[] = { 1, 3, 4 };
	for (unsigned v = 0; v < 6; v++) {
		const bool wide = v >= 3;
		const uint8_t version = versions[v % 3];
		struct elfrw_wbuf w = { 0 };
		struct dwr_cfi cfi;
		debug_frame(&w, version, wide);
		be_ok(dwr_cfi_read(&cfi, ".debug_frame", (struct dwr_bytes){ w.data, w.len }, 0,
				   false, 8));
		assert_int_equal(cfi.fde.len, 1);
		assert_int_equal(cfi.cie.len, 1);
		assert_int_equal(cfi.cie.data[0].version, version);
		assert_int_equal(cfi.fde.data[0].pc_begin, CODE);
		assert_int_equal(cfi.fde.data[0].pc_end, CODE + 0x20);
		assert_int_equal(cfi.fde.data[0].insn_size, 3);
		rewrite_debug_frame(&cfi, &w, wide);
		dwr_cfi_deinit(&cfi);
		elfrw_wbuf_free(&w);
	}
}

/* An FDE whose units move apart is split, unless it has several rows. */
static void test_split(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	struct dwr_cfi cfi;
	size_t c = cie(&w, "zR", 0);
	fde(&w, c, CODE, 0x40, NULL, (struct dwr_bytes){ 0 });
	fde(&w, c, CODE + 0x40, 0x10, NULL, BYTES(rows));
	elfrw_wbuf_u32(&w, 0);
	be_ok(read_eh(&cfi, w.data, w.len));
	struct elfrw_addrmap_unit unit[] = {
		{ CODE, CODE + 0x10, CODE, CODE, 0, 0, 0 },
		{ CODE + 0x10, CODE + 0x18, CODE + 0x20, CODE + 0x20, 1, 0, 0 },
		{ CODE + 0x18, CODE + 0x38, CODE + 0x28, CODE + 0x28, 2, 0, 0 },
		{ CODE + 0x40, CODE + 0x50, CODE + 0x58, CODE + 0x58, 3, 0, 0 },
	};
	struct elfrw_addrmap_section sec = { CODE, CODE + 0x50, CODE, CODE + 0x80, 1 };
	struct elfrw_addrmap map = { .unit = unit, .n_units = 4, .section = &sec, .n_sections = 1 };
	be_ok(elfrw_addrmap_finish(&map));
	struct dwr_rw_frame_in in = {
		.cfi = &cfi, .map = &map, .arch = &elfrw_arch_x86_64, .va = EH_VA
	};
	struct dwr_rw_frame_out out;
	be_ok(dwr_rw_eh_frame(&in, &out));
	struct dwr_cfi now;
	be_ok(read_eh(&now, out.data, out.size));
	assert_int_equal(now.fde.len, 3);
	assert_int_equal(now.fde.data[0].pc_begin, CODE);
	assert_int_equal(now.fde.data[0].pc_end, CODE + 0x10);
	assert_int_equal(now.fde.data[1].pc_begin, CODE + 0x20);
	assert_int_equal(now.fde.data[1].pc_end, CODE + 0x48);
	assert_int_equal(now.fde.data[2].pc_begin, CODE + 0x58);
	assert_int_equal(now.terminator.len, 1);
	uint64_t to;
	assert_true(dwr_rw_moved(&out.moves, cfi.terminator.data[0], &to));
	assert_int_equal(to, now.terminator.data[0]);
	assert_true(dwr_rw_moved(&out.moves, w.len, &to));
	assert_int_equal(to, out.size);
	dwr_cfi_deinit(&now);
	dwr_rw_frame_deinit(&out);
	/* All units of both FDEs are folded: no CIE is left. */
	for (int i = 0; i < 4; i++)
		unit[i].flags = ELFRW_UNIT_FOLDED;
	be_ok(dwr_rw_eh_frame(&in, &out));
	assert_int_equal(out.size, 4);
	assert_false(dwr_rw_moved(&out.moves, 0, &to));
	dwr_rw_frame_deinit(&out);
	/* An FDE with several rows cannot be split. */
	dwr_cfi_deinit(&cfi);
	w.len = 0;
	fde(&w, cie(&w, "zR", 0), CODE, 0x40, NULL, BYTES(rows));
	for (int i = 0; i < 4; i++)
		unit[i].flags = 0;
	be_ok(read_eh(&cfi, w.data, w.len));
	be_fails(dwr_rw_eh_frame(&in, &out), "moved apart");
	dwr_cfi_deinit(&cfi);
	elfrw_blocks_deinit(&map.blocks);
	elfrw_wbuf_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields), cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_broken), cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_split),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
