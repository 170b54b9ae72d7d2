/* verify.c: two files: a size (4 bytes, little-endian; bit 31: with debug information, bit 30:
 * addresses may have merged), the first file, the second file. */
#include "tests/fuzz/fuzz.h"
#include "elfrw/base/rbuf.h"
#include "icf/verify/verify.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 4)
		return 0;
	uint32_t first = elfrw_get32(data), n = first & 0x3fffffff;
	if (n > size - 4)
		n = (uint32_t)(size - 4);
	struct icf_verify_options opt = { .mode = first >> 30 & 1 ? ICF_VERIFY_ALL
								  : ICF_VERIFY_SAFE,
					  .threads = 1,
					  .no_debug = !(first >> 31) };
	struct icf_verify_result result;
	if (fuzz_ok(icf_verify(fuzz_file(0, data + 4, n), fuzz_file(1, data + 4 + n, size - 4 - n),
			       &opt, &result)))
		icf_verify_result_deinit(&result);
	return 0;
}
