/* indices.c: .gdb_index, .debug_names, .debug_macro and .debug_aranges, rewritten with what they
 * refer to. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/rewrite/aranges.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_image f;
	struct elfrw_addrmap map;
	fuzz_image_init(&f, data, size);
	fuzz_map_init(&map);
	const struct elfrw_section *s = fuzz_section(&f, ".debug_aranges");
	static const struct dwr_arange_extra extra = { 0x40, FUZZ_CODE, 32 };
	struct dwr_rw_aranges_in in = { .map = &map,
					.policy = DWR_FOLDED_OVERLAY,
					.data = s->data,
					.size = s->hdr.sh_size,
					.extra = &extra,
					.n_extra = 1 };
	uint8_t *out;
	size_t out_size;
	if (s->data && fuzz_ok(dwr_rw_aranges(&in, &out, &out_size)))
		free(out);
	elfrw_addrmap_deinit(&map);
	fuzz_image_deinit(&f);
	fuzz_rewrite(data, size, DWR_FOLDED_OVERLAY);
	return 0;
}
