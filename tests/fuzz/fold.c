/* fold.c: a whole run over a file.  e_ident[9] and [10] (padding) hold the options. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/rewrite/rewrite.h"
#include "icf/pipeline.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned how = size > 10 ? data[9] | (unsigned)data[10] << 8 : 0;
	struct icf_options opt = { .input = fuzz_file(0, data, size),
				   .threads = 1,
				   .mode = (enum icf_mode)((how & 3) % 3),
				   .no_thunks = how & 4,
				   .debug_folded = (int)((how >> 3 & 3) % 3),
				   .strip_debug = how & 32,
				   .emit_relocs = how & 64,
				   .keep_build_id = how & 128 };
	struct icf_run run = { 0 };
	if (fuzz_ok(icf_run_fold(&run, &opt)))
		(void)fuzz_ok(elfrw_output_write(&run.out, "/dev/null"));
	icf_run_deinit(&run);
	return 0;
}
