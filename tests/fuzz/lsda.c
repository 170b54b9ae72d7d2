/* lsda.c: .gcc_except_table as .eh_frame of the container names its parts: read, canonical form,
 * rewritten. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/cfi.h"
#include "dwarf/lsda.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/base/wbuf.h"
#include <string.h>

static void read_one(const struct fuzz_image *f, struct dwr_lsda *lsda, uint64_t va, uint64_t start,
		     uint64_t end)
{
	if (!fuzz_ok(dwr_lsda_read(lsda, &f->img, va, start, end)))
		return;
	for (size_t i = 0; i < lsda->site.len; i++) {
		const struct dwr_lsda_site *s = &lsda->site.data[i];
		FUZZ_HOLDS(s->n_actions <= lsda->action.len &&
			   s->action <= lsda->action.len - s->n_actions);
	}
	for (size_t i = 0; i < lsda->action.len; i++) {
		const struct dwr_lsda_action *a = &lsda->action.data[i];
		FUZZ_HOLDS(a->n_types <= lsda->type.len && a->type <= lsda->type.len - a->n_types);
	}
	struct elfrw_wbuf out = { 0 };
	dwr_lsda_pads pads = { 0 };
	dwr_lsda_canon(lsda, &out, &pads);
	elfrw_wbuf_free(&out);
	VEC_FREE(&pads);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_image f;
	struct dwr_cfi cfi;
	struct dwr_lsda lsda = { 0 };
	fuzz_image_init(&f, data, size);
	const struct elfrw_section *frame = fuzz_section(&f, ".eh_frame"),
				   *table = fuzz_section(&f, ".gcc_except_table");
	for (uint64_t off = 0; off < table->hdr.sh_size && off < 64; off++)
		read_one(&f, &lsda, table->hdr.sh_addr + off, FUZZ_CODE,
			 FUZZ_CODE + 4 * FUZZ_UNIT_SIZE);
	const struct dwr_bytes bytes = { frame->data, frame->hdr.sh_size };
	if (fuzz_ok(dwr_cfi_read(&cfi, ".eh_frame", bytes, frame->hdr.sh_addr, true, 8))) {
		for (size_t i = 0; i < cfi.fde.len && i < 64; i++)
			read_one(&f, &lsda, cfi.fde.data[i].lsda, cfi.fde.data[i].pc_begin,
				 cfi.fde.data[i].pc_end);
		struct elfrw_addrmap map;
		fuzz_map_init(&map);
		struct dwr_rw_except_in in = { .img = &f.img,
					       .cfi = &cfi,
					       .map = &map,
					       .shndx = (uint32_t)(table - f.section),
					       .va = FUZZ_DATA(22) - 256 };
		struct dwr_rw_except_out out;
		if (table->data && fuzz_ok(dwr_rw_gcc_except(&in, &out)))
			dwr_rw_except_deinit(&out);
		elfrw_addrmap_deinit(&map);
		dwr_cfi_deinit(&cfi);
	}
	dwr_lsda_deinit(&lsda);
	fuzz_image_deinit(&f);
	return 0;
}
