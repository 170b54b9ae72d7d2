/* cfi.c: .eh_frame and .debug_frame (bit 0 of the first byte), read, compared and rewritten. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/cfi.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/wbuf.h"

static void ask(const struct dwr_cfi *cfi)
{
	struct elfrw_wbuf a = { 0 }, b = { 0 };
	for (uint32_t i = 0; i < cfi->fde.len && i < 64; i++) {
		const struct dwr_fde *f = &cfi->fde.data[i];
		FUZZ_HOLDS(f->off + f->size <= cfi->size && f->cie < cfi->cie.len);
		(void)dwr_cfi_find(cfi, f->pc_begin);
		(void)dwr_cfi_find(cfi, f->pc_end);
		a.len = b.len = 0;
		dwr_fde_canon(cfi, i, &a);
		uint32_t other = i ? i - 1 : 0;
		dwr_fde_canon(cfi, other, &b);
		bool same = dwr_fde_same(cfi, i, other);
		FUZZ_HOLDS(!same || (a.len == b.len && !memcmp(a.data, b.data, a.len)));
		struct dwr_cfa_address address[4];
		struct dwr_cfa_walk walk = { .address = address, .max = 4 };
		(void)dwr_cfa_walk(&cfi->cie.data[f->cie], f->insn, f->insn_size, &walk);
		FUZZ_HOLDS(walk.length <= f->insn_size);
	}
	elfrw_wbuf_free(&a);
	elfrw_wbuf_free(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	bool eh = !(data[0] & 1);
	struct dwr_cfi cfi;
	if (!fuzz_ok(dwr_cfi_read(&cfi, eh ? ".eh_frame" : ".debug_frame",
				  (struct dwr_bytes){ data + 1, size - 1 }, eh ? FUZZ_DATA(20) : 0,
				  eh, 8)))
		return 0;
	ask(&cfi);
	struct elfrw_addrmap map;
	fuzz_map_init(&map);
	struct dwr_rw_frame_in in = { .cfi = &cfi,
				      .map = &map,
				      .arch = &elfrw_arch_x86_64,
				      .va = FUZZ_DATA(20) - 64,
				      .hdr_va = FUZZ_DATA(21),
				      .keep_folded = data[0] & 2,
				      .no_thunks = data[0] & 4 };
	static const uint8_t hdr[] = { 1, 0x1b, 3, 0x3b, 0, 0, 0, 0, 0, 0, 0, 0 };
	if (data[0] & 8) {
		in.hdr = hdr;
		in.hdr_size = sizeof hdr;
	} else if (data[0] & 16) {
		in.hdr = data + 1;
		in.hdr_size = size - 1;
	}
	struct dwr_rw_frame_out out;
	if (fuzz_ok(eh ? dwr_rw_eh_frame(&in, &out) : dwr_rw_debug_frame(&in, &out))) {
		uint64_t to;
		for (uint32_t i = 0; i < cfi.fde.len && i < 64; i++)
			if (dwr_rw_moved(&out.moves, cfi.fde.data[i].off, &to))
				FUZZ_HOLDS(to <= out.size);
		dwr_rw_frame_deinit(&out);
	}
	elfrw_addrmap_deinit(&map);
	dwr_cfi_deinit(&cfi);
	return 0;
}
