/* calls.c: .debug_dcall and .debug_vcall in a container, in both dialects, and written again. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/calls/calls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_image f;
	struct dwr_sections secs;
	fuzz_image_init(&f, data, size);
	if (fuzz_ok(dwr_sections_init(&secs, &f.img))) {
		struct dwr_units units = { 0 };
		struct dwr_calls calls = { 0 };
		if (fuzz_ok(dwr_units_read(&secs, &units)) &&
		    fuzz_ok(dwr_calls_read(&secs, &units, &calls))) {
			uint8_t *out;
			size_t out_size, n = calls.dcall.len;
			if (fuzz_ok(dwr_dcall_write(calls.dcall.data, &n, 8, &out, &out_size)))
				free(out);
			n = calls.vcall.len;
			if (fuzz_ok(dwr_vcall_write(calls.vcall.data, &n, 8, &out, &out_size)))
				free(out);
			dwr_calls_deinit(&calls);
		}
		dwr_units_deinit(&units);
		dwr_sections_deinit(&secs);
	}
	fuzz_image_deinit(&f);
	return 0;
}
