/* Unwind tables: reader, equality, and rewriting.  Judges: libdw for what is read and for what is
 * written; the input's own bytes for the identity map. */
#include "tests/unit/make/err_check.h"
#include "dwarf/cfi.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/wbuf.h"
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- synthetic sections ---- */

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

static size_t fde(struct elfrw_wbuf *w, size_t cie_off, uint64_t pc, uint32_t len, bool has_lsda,
		  uint64_t lsda, const void *insn, size_t insn_size)
{
	size_t start = begin(w);
	elfrw_wbuf_u32(w, (uint32_t)(w->len - cie_off));
	elfrw_wbuf_u32(w, (uint32_t)(pc - (EH_VA + w->len)));
	elfrw_wbuf_u32(w, len);
	elfrw_wbuf_u8(w, has_lsda ? 4 : 0);
	if (has_lsda)
		elfrw_wbuf_u32(w, lsda ? (uint32_t)(lsda - (EH_VA + w->len)) : 0);
	elfrw_wbuf_bytes(w, insn, insn_size);
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
	size_t plain = cie(w, "zR", 0);
	fde(w, plain, CODE, 0x20, false, 0, plt_rows, sizeof plt_rows);
	size_t a = cie(w, "zPLR", 0x5000);
	fde(w, a, CODE + 0x20, 0x10, true, 0x3000, rows, sizeof rows);
	fde(w, a, CODE + 0x30, 0x10, true, 0, rows, sizeof rows);
	size_t b = cie(w, "zPLR", 0x5000);
	fde(w, b, CODE + 0x40, 0x18, true, 0, rows, sizeof rows);
	fde(w, b, CODE + 0x60, 0x10, true, 0, other_rows, sizeof other_rows);
	size_t c = cie(w, "zRS", 0);
	fde(w, c, CODE + 0x70, 0x10, false, 0, rows, sizeof rows);
	fde(w, plain, CODE + 0x80, 0x10, false, 0, rows, sizeof rows);
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
	fde(&w, c, CODE, 16, false, 0, set_loc, sizeof set_loc);
	fde(&w, c, CODE + 16, 16, false, 0, set_loc, sizeof set_loc);
	fde(&w, c, CODE + 32, 16, false, 0, op_addr, sizeof op_addr);
	fde(&w, c, CODE + 48, 16, false, 0, rows, sizeof rows);
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
	w.len = 0;
	fde(&w, cie(&w, "zR", 0), CODE, 4, false, 0, "\x3f", 1);
	be_fails(read_eh(&cfi, w.data, w.len), "invalid FDE instructions");
	w.len = 0;
	fde(&w, cie(&w, "zR", 0) + 4, CODE, 4, false, 0, rows, sizeof rows);
	be_fails(read_eh(&cfi, w.data, w.len), "names no CIE");
	elfrw_wbuf_free(&w);
}

static void test_debug_frame(void **state)
{
	(void)state;
	static const uint8_t versions[] = { 1, 3, 4 };
	for (unsigned v = 0; v < 6; v++) {
		bool wide = v >= 3;
		uint8_t version = versions[v % 3];
		struct elfrw_wbuf w = { 0 };
		/* The FDE comes first and names a CIE behind it. */
		size_t fde_size = wide ? 12 + 8 + 16 + 4 : 4 + 4 + 16 + 4;
		for (int is_cie = 0; is_cie < 2; is_cie++) {
			size_t start = w.len;
			if (wide)
				elfrw_wbuf_u32(&w, 0xffffffff);
			elfrw_wbuf_uint(&w, 0, wide ? 8 : 4);
			size_t body = w.len;
			elfrw_wbuf_uint(&w, is_cie ? UINT64_MAX : fde_size, wide ? 8 : 4);
			if (is_cie) {
				elfrw_wbuf_u8(&w, version);
				elfrw_wbuf_cstr(&w, "");
				if (version == 4) {
					elfrw_wbuf_u8(&w, 8);
					elfrw_wbuf_u8(&w, 0);
				}
				elfrw_wbuf_uleb(&w, 1);
				elfrw_wbuf_sleb(&w, -8);
				elfrw_wbuf_u8(&w, 16);
				elfrw_wbuf_bytes(&w, entry_rules, sizeof entry_rules);
			} else {
				elfrw_wbuf_u64(&w, CODE);
				elfrw_wbuf_u64(&w, 0x20);
				elfrw_wbuf_bytes(&w, "\x41\x0e\x10\0", 4);
			}
			elfrw_put_le(w.data + start + (wide ? 4 : 0), w.len - body, wide ? 8 : 4);
		}
		struct dwr_cfi cfi;
		be_ok(dwr_cfi_read(&cfi, ".debug_frame", (struct dwr_bytes){ w.data, w.len }, 0,
				   false, 8));
		assert_int_equal(cfi.fde.len, 1);
		assert_int_equal(cfi.cie.len, 1);
		assert_int_equal(cfi.cie.data[0].version, version);
		assert_int_equal(cfi.fde.data[0].pc_begin, CODE);
		assert_int_equal(cfi.fde.data[0].pc_end, CODE + 0x20);
		assert_int_equal(cfi.fde.data[0].insn_size, 3);
		struct elfrw_addrmap_unit unit = {
			CODE, CODE + 0x20, CODE + 0x100, CODE + 0x100, 0, 0, 0
		};
		struct elfrw_addrmap_section sec = { CODE, CODE + 0x20, CODE, CODE + 0x200, 1 };
		struct elfrw_addrmap map = {
			.unit = &unit, .n_units = 1, .section = &sec, .n_sections = 1
		};
		be_ok(elfrw_addrmap_finish(&map));
		struct dwr_rw_frame_in in = { .cfi = &cfi,
					      .map = &map,
					      .arch = &elfrw_arch_x86_64 };
		struct dwr_rw_frame_out out;
		be_ok(dwr_rw_debug_frame(&in, &out));
		assert_int_equal(out.size, w.len);
		elfrw_put64(w.data + (wide ? 20 : 8), CODE + 0x100);
		assert_memory_equal(out.data, w.data, w.len);
		dwr_rw_frame_deinit(&out);
		unit.flags = ELFRW_UNIT_FOLDED;
		be_ok(dwr_rw_debug_frame(&in, &out));
		assert_int_equal(out.size, 0);
		dwr_rw_frame_deinit(&out);
		in.keep_folded = true;
		be_ok(dwr_rw_debug_frame(&in, &out));
		assert_int_equal(out.size, w.len);
		dwr_rw_frame_deinit(&out);
		elfrw_blocks_deinit(&map.blocks);
		dwr_cfi_deinit(&cfi);
		elfrw_wbuf_free(&w);
	}
}

/* An FDE over two units that move apart, and one unit that goes. */
static void test_split(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	struct dwr_cfi cfi;
	size_t c = cie(&w, "zR", 0);
	fde(&w, c, CODE, 0x40, false, 0, "", 0);
	fde(&w, c, CODE + 0x40, 0x10, false, 0, rows, sizeof rows);
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
	/* All of the first FDE's units gone, and the second's too: no CIE is left. */
	for (int i = 0; i < 4; i++)
		unit[i].flags = ELFRW_UNIT_FOLDED;
	be_ok(dwr_rw_eh_frame(&in, &out));
	assert_int_equal(out.size, 4);
	assert_false(dwr_rw_moved(&out.moves, 0, &to));
	dwr_rw_frame_deinit(&out);
	/* With several rows it cannot be split. */
	dwr_cfi_deinit(&cfi);
	w.len = 0;
	fde(&w, cie(&w, "zR", 0), CODE, 0x40, false, 0, rows, sizeof rows);
	for (int i = 0; i < 4; i++)
		unit[i].flags = 0;
	be_ok(read_eh(&cfi, w.data, w.len));
	be_fails(dwr_rw_eh_frame(&in, &out), "moved apart");
	dwr_cfi_deinit(&cfi);
	elfrw_blocks_deinit(&map.blocks);
	elfrw_wbuf_free(&w);
}

/* ---- real files ---- */

struct file {
	struct elfrw_image img;
	const struct elfrw_section *eh, *hdr;
	struct dwr_cfi cfi;
};

static bool open_file(struct file *f, const char *path)
{
	be_ok(elfrw_image_open(&f->img, path));
	f->eh = elfrw_image_section(&f->img, ".eh_frame");
	f->hdr = elfrw_image_section(&f->img, ".eh_frame_hdr");
	if (!f->eh || !f->eh->data) {
		elfrw_image_close(&f->img);
		return false;
	}
	be_ok(dwr_eh_frame_read(&f->cfi, &f->img, 8));
	return true;
}

static void close_file(struct file *f)
{
	dwr_cfi_deinit(&f->cfi);
	elfrw_image_close(&f->img);
}

/* libdw, walking the same bytes, sees the same records. */
static void judge_records(const struct dwr_cfi *cfi, const uint8_t *ident)
{
	Elf_Data data = { .d_buf = (void *)cfi->data,
			  .d_type = ELF_T_BYTE,
			  .d_size = cfi->size,
			  .d_align = 1,
			  .d_version = EV_CURRENT };
	Dwarf_Off off = 0, next;
	Dwarf_CFI_Entry entry;
	size_t cies = 0, fdes = 0;
	int rc;
	while ((rc = dwarf_next_cfi(ident, &data, cfi->is_eh, off, &next, &entry)) == 0) {
		if (dwarf_cfi_cie_p(&entry)) {
			const struct dwr_cie *c = &cfi->cie.data[cies++];
			assert_true(cies <= cfi->cie.len);
			assert_int_equal(c->off, off);
			assert_int_equal(c->ra, entry.cie.return_address_register);
			assert_int_equal(c->code_align, entry.cie.code_alignment_factor);
			assert_int_equal(c->data_align, entry.cie.data_alignment_factor);
			assert_ptr_equal(c->insn, entry.cie.initial_instructions);
		} else {
			const struct dwr_fde *d = &cfi->fde.data[fdes++];
			assert_true(fdes <= cfi->fde.len);
			assert_int_equal(d->off, off);
			assert_int_equal(cfi->cie.data[d->cie].off, entry.fde.CIE_pointer);
			assert_ptr_equal(d->off + d->size + cfi->data, entry.fde.end);
		}
		off = next;
	}
	assert_int_equal(rc, 1);
	assert_int_equal(cies, cfi->cie.len);
	assert_int_equal(fdes, cfi->fde.len);
}

/* libdw, looking up by address in the file, finds the same ranges. */
static void judge_ranges(const struct file *f, const char *path)
{
	int fd = open(path, O_RDONLY);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf_CFI *cfi = dwarf_getcfi_elf(elf);
	assert_non_null(cfi);
	size_t step = f->cfi.fde.len / 500 + 1;
	for (size_t i = 0; i < f->cfi.fde.len; i += step) {
		const struct dwr_fde *d = &f->cfi.fde.data[i];
		const struct dwr_cie *c = &f->cfi.cie.data[d->cie];
		Dwarf_Frame *frame;
		Dwarf_Addr from, to;
		bool signal;
		if (d->pc_begin == d->pc_end || !d->pc_begin)
			continue;
		assert_int_equal(dwarf_cfi_addrframe(cfi, d->pc_begin, &frame), 0);
		assert_int_equal(dwarf_frame_info(frame, &from, &to, &signal), c->ra);
		assert_int_equal(from, d->pc_begin);
		assert_true(to <= d->pc_end);
		assert_int_equal(signal, c->signal_frame);
		free(frame);
		assert_int_equal(dwr_cfi_find(&f->cfi, d->pc_end - 1), i);
	}
	dwarf_cfi_end(cfi);
	elf_end(elf);
	close(fd);
}

/* Every FDE is in the table, in order, and every entry names its FDE. */
static void check_hdr(const uint8_t *hdr, size_t size, uint64_t va, const struct dwr_cfi *cfi)
{
	if (hdr[2] == DWR_PE_OMIT)
		return;
	uint32_t n = elfrw_get32(hdr + 8);
	assert_int_equal(size, 12 + 8 * (size_t)n);
	assert_int_equal(va + 4 + (int32_t)elfrw_get32(hdr + 4), cfi->va);
	uint64_t last = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t pc = va + (int32_t)elfrw_get32(hdr + 12 + 8 * i),
			 at = va + (int32_t)elfrw_get32(hdr + 16 + 8 * i);
		assert_true(pc > last);
		last = pc;
		size_t lo = 0, hi = cfi->fde.len;
		while (hi - lo > 1) {
			size_t mid = lo + (hi - lo) / 2;
			if (cfi->fde.data[mid].off <= at - cfi->va)
				lo = mid;
			else
				hi = mid;
		}
		assert_int_equal(cfi->fde.data[lo].off, at - cfi->va);
		assert_int_equal(cfi->fde.data[lo].pc_begin, pc);
	}
	/* All of them, but for the empty ones that share an address with another. */
	size_t missing = 0;
	for (size_t i = 1; i < cfi->fde.len; i++)
		missing += cfi->fde.data[cfi->by_pc[i]].pc_begin ==
			   cfi->fde.data[cfi->by_pc[i - 1]].pc_begin;
	assert_int_equal(n + missing, cfi->fde.len);
}

static struct dwr_rw_frame_in frame_in(const struct file *f, const struct elfrw_addrmap *map)
{
	struct dwr_rw_frame_in in = {
		.cfi = &f->cfi, .map = map, .arch = &elfrw_arch_x86_64, .va = f->cfi.va
	};
	if (f->hdr && f->hdr->data) {
		in.hdr = f->hdr->data;
		in.hdr_size = f->hdr->hdr.sh_size;
		in.hdr_va = f->hdr->hdr.sh_addr;
	}
	return in;
}

/* One unit per FDE (overlapping ones left out), in one section around them all; STEP: bytes by
 * which each moves further, FOLD: each FOLD-th unit is folded into its predecessor (0: none). */
static void make_map(struct elfrw_addrmap *map, const struct dwr_cfi *cfi, uint64_t step,
		     unsigned fold)
{
	*map = (struct elfrw_addrmap){ 0 };
	map->unit = calloc(cfi->fde.len + 1, sizeof *map->unit);
	map->section = calloc(1, sizeof *map->section);
	map->n_sections = 1;
	uint64_t delta = 0;
	for (size_t i = 0; i < cfi->fde.len; i++) {
		const struct dwr_fde *d = &cfi->fde.data[cfi->by_pc[i]];
		struct elfrw_addrmap_unit *u = &map->unit[map->n_units];
		if (d->pc_begin == d->pc_end || (map->n_units && d->pc_begin < u[-1].old_end))
			continue;
		*u = (struct elfrw_addrmap_unit){ .old = d->pc_begin,
						  .old_end = d->pc_end,
						  .kept = map->n_units };
		if (fold && map->n_units % fold == 1) {
			u->flags = ELFRW_UNIT_FOLDED;
			u->body = u->entry = u[-1].body;
			u->kept = map->n_units - 1;
		} else {
			u->body = u->entry = d->pc_begin + delta;
			delta += step;
		}
		map->n_units++;
	}
	struct elfrw_addrmap_section *s = map->section;
	s->old = s->new_start = map->unit[0].old;
	s->old_end = map->unit[map->n_units - 1].old_end;
	s->new_end = s->old_end + delta;
	be_ok(elfrw_addrmap_finish(map));
}

/* BYTES of thunks, for the folded units. */
static void make_thunks(struct elfrw_addrmap *map, uint64_t bytes)
{
	map->thunks = map->section[0].new_end;
	map->thunks_end = map->section[0].new_end = map->thunks + bytes;
	for (uint32_t i = 0; i < map->n_units; i++)
		if (map->unit[i].flags & ELFRW_UNIT_FOLDED)
			map->unit[i].flags |= ELFRW_UNIT_THUNK;
}

/* .debug_frame under the identity, and without a third of its functions. */
static void check_debug_frame(const struct file *f)
{
	const struct elfrw_section *sec = elfrw_image_section(&f->img, ".debug_frame");
	if (!sec || !sec->data || (sec->hdr.sh_flags & SHF_COMPRESSED))
		return;
	struct dwr_cfi cfi, now;
	struct elfrw_addrmap map = { 0 };
	be_ok(dwr_cfi_read(&cfi, sec->name, (struct dwr_bytes){ sec->data, sec->hdr.sh_size }, 0,
			   false, 8));
	judge_records(&cfi, f->img.base);
	struct dwr_rw_frame_in in = { .cfi = &cfi, .map = &map, .arch = &elfrw_arch_x86_64 };
	struct dwr_rw_frame_out out;
	be_ok(dwr_rw_debug_frame(&in, &out));
	assert_int_equal(out.size, cfi.size);
	assert_memory_equal(out.data, cfi.data, cfi.size);
	dwr_rw_frame_deinit(&out);
	make_map(&map, &f->cfi, 16, 3);
	make_thunks(&map, 0x10);
	be_ok(dwr_rw_debug_frame(&in, &out));
	be_ok(dwr_cfi_read(&now, sec->name, (struct dwr_bytes){ out.data, out.size }, 0, false, 8));
	judge_records(&now, f->img.base);
	assert_int_equal(now.fde.len, out.n_fdes);
	assert_int_equal(now.fde.data[now.fde.len - 1].pc_begin, map.thunks);
	uint32_t k = 0;
	for (uint32_t i = 0; i < cfi.fde.len; i++) {
		uint64_t to;
		if (dwr_rw_fde_gone(&cfi, i, &map))
			continue;
		elfrw_addrmap_point(&map, cfi.fde.data[i].pc_begin, &to);
		assert_int_equal(now.fde.data[k++].pc_begin, to);
	}
	assert_int_equal(now.fde.len, k + 1);
	dwr_cfi_deinit(&now);
	dwr_cfi_deinit(&cfi);
	dwr_rw_frame_deinit(&out);
	elfrw_addrmap_deinit(&map);
}

static void check_file(const char *path)
{
	struct file f;
	if (!open_file(&f, path))
		return;
	judge_records(&f.cfi, f.img.base);
	if (!f.cfi.fde.len) {
		close_file(&f);
		return;
	}
	judge_ranges(&f, path);
	check_debug_frame(&f);

	/* Nothing moves: the same bytes, with an empty map and with one unit for each function. */
	for (int with_units = 0; with_units < 2; with_units++) {
		struct elfrw_addrmap map = { 0 };
		if (with_units)
			make_map(&map, &f.cfi, 0, 0);
		struct dwr_rw_frame_in in = frame_in(&f, &map);
		struct dwr_rw_frame_out out;
		be_ok(dwr_rw_eh_frame(&in, &out));
		assert_int_equal(out.size, f.cfi.size);
		assert_memory_equal(out.data, f.cfi.data, out.size);
		if (in.hdr) {
			assert_true(out.hdr_size <= in.hdr_size);
			assert_memory_equal(out.hdr, in.hdr, out.hdr_size);
			for (size_t i = out.hdr_size; i < in.hdr_size; i++)
				assert_int_equal(in.hdr[i], 0);
			check_hdr(out.hdr, out.hdr_size, in.hdr_va, &f.cfi);
		}
		dwr_rw_frame_deinit(&out);
		elfrw_addrmap_deinit(&map);
	}

	/* Everything moves, one function of three is folded, and there are thunks. */
	struct elfrw_addrmap map;
	make_map(&map, &f.cfi, 16, 3);
	/* Where none of them stands for a function that had an FDE, they get none. */
	map.thunks = map.section[0].new_end;
	map.thunks_end = map.thunks + 0x50;
	struct dwr_rw_frame_in in = frame_in(&f, &map);
	struct dwr_rw_frame_out out;
	be_ok(dwr_rw_eh_frame(&in, &out));
	size_t without = out.n_fdes;
	dwr_rw_frame_deinit(&out);
	make_thunks(&map, 0x50);
	in = frame_in(&f, &map);
	be_ok(dwr_rw_eh_frame(&in, &out));
	struct dwr_cfi now;
	be_ok(dwr_cfi_read(&now, ".eh_frame", (struct dwr_bytes){ out.data, out.size }, in.va, true,
			   8));
	judge_records(&now, f.img.base);
	if (in.hdr)
		check_hdr(out.hdr, out.hdr_size, in.hdr_va, &now);
	uint32_t k = 0;
	for (uint32_t i = 0; i < f.cfi.fde.len; i++) {
		const struct dwr_fde *d = &f.cfi.fde.data[i];
		uint32_t u = elfrw_addrmap_find(&map, d->pc_begin);
		uint64_t off;
		bool there = dwr_rw_moved(&out.moves, d->off, &off);
		assert_int_equal(there, !dwr_rw_fde_gone(&f.cfi, i, &map));
		if (u == ELFRW_NO_UNIT || map.unit[u].old != d->pc_begin ||
		    map.unit[u].old_end != d->pc_end) {
			k += there; /* overlapping or empty */
			continue;
		}
		assert_int_equal(there, !(map.unit[u].flags & ELFRW_UNIT_FOLDED));
		if (!there)
			continue;
		const struct dwr_fde *e = &now.fde.data[k++];
		assert_int_equal(e->off, off);
		assert_int_equal(e->pc_begin, map.unit[u].body);
		assert_int_equal(e->pc_end - e->pc_begin, d->pc_end - d->pc_begin);
		assert_int_equal(e->lsda, d->lsda);
		assert_int_equal(e->insn_size, d->insn_size);
		assert_memory_equal(e->insn, d->insn, d->insn_size);
		const struct dwr_cie *c = &f.cfi.cie.data[d->cie], *g = &now.cie.data[e->cie];
		assert_int_equal(c->personality, g->personality);
		assert_string_equal(c->augmentation, g->augmentation);
		assert_int_equal(c->insn_size, g->insn_size);
		assert_memory_equal(c->insn, g->insn, c->insn_size);
	}
	assert_int_equal(now.fde.len, k + 1);
	assert_int_equal(out.n_fdes, k + 1);
	assert_int_equal(without, k);
	assert_int_equal(now.fde.data[k].pc_begin, map.thunks);
	assert_int_equal(now.fde.data[k].pc_end, map.thunks_end);
	assert_int_equal(now.terminator.len, f.cfi.terminator.len);
	for (size_t i = 0; i < now.cie.len; i++)
		assert_true(now.cie.data[i].used);
	dwr_cfi_deinit(&now);
	dwr_rw_frame_deinit(&out);
	elfrw_addrmap_deinit(&map);
	close_file(&f);
}

static const char program[] =
	"#include <cstdio>\\n#include <stdexcept>\\n#include <string>\\n#include <vector>\\n"
	"struct T { virtual ~T(); }; T::~T() { puts(\"~T\"); }\\n"
	"__attribute__((noinline)) void th(int c) { if (c == 1) throw std::runtime_error(\"x\"); if (c == 2) throw 5; }\\n"
	"__attribute__((noinline)) int f(int c) { T t; try { th(c); } catch (std::exception &e) { return 1; } catch (int i) "
	"{ return i; } return 0; }\\n"
	"__attribute__((noinline)) void g(int c) noexcept { std::string s(c, 97); th(c - 9); puts(s.c_str()); }\\n"
	"int main(int c, char **) { std::vector<int> v; v.push_back(c); g(c); return f(1) + f(2) + f(v[0] - 1) - 6; }\\n";

static char *scratch;

/* Compiles the sample with COMMAND (%s: source and output); NULL when that compiler or linker is
 * missing. */
static const char *compile(const char *command, const char *name)
{
	static char path[512];
	char line[4096];
	snprintf(path, sizeof path, "%s/%s", scratch, name);
	snprintf(line, sizeof line, "printf '%s' > %s/t.cc && cd %s && %s t.cc -o %s 2>/dev/null",
		 program, scratch, scratch, command, name);
	if (system(line)) {
		print_message("         skipped: %s\n", command);
		return NULL;
	}
	return path;
}

static void test_linkers(void **state)
{
	(void)state;
	static const char *const commands[] = {
		"g++ -O2 -fuse-ld=bfd",
		"g++ -O2 -fuse-ld=gold",
		"g++ -O2 -fuse-ld=lld",
		"g++ -O2 -fuse-ld=mold",
		"g++ -O2 -no-pie -fno-pie",
		"g++ -O2 -static",
		"g++ -O2 -mcmodel=large -fno-pie -no-pie",
		"clang++-19 -O2 -fuse-ld=lld",
		"clang++-19 -O2 -fuse-ld=mold",
		"clang++-14 -O2",
		"g++ -O2 -Wl,--no-eh-frame-hdr",
		"echo \"__asm__(\\\".cfi_sections .eh_frame, .debug_frame\\\");\" > d.h && g++ -O2 -include d.h",
	};
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		const char *path = compile(commands[i], "t");
		if (path)
			check_file(path);
	}
}

static void test_self(void **state)
{
	(void)state;
	check_file("/proc/self/exe");
}

static int setup(void **state)
{
	(void)state;
	char name[] = "/tmp/test_cfi.XXXXXX";
	scratch = mkdtemp(name) ? strdup(name) : NULL;
	elf_version(EV_CURRENT);
	return scratch ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	char line[600];
	snprintf(line, sizeof line, "rm -rf %s", scratch);
	int rc = system(line);
	free(scratch);
	return rc;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fields),  cmocka_unit_test(test_addresses),
		cmocka_unit_test(test_broken),  cmocka_unit_test(test_debug_frame),
		cmocka_unit_test(test_split),   cmocka_unit_test(test_self),
		cmocka_unit_test(test_linkers),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
