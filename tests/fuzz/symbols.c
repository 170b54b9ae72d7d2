/* symbols.c: a file whose symbols are exported in every format. */
#include "tests/fuzz/fuzz.h"
#include "icf/export/export.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct dwr_sym_options opt = { .own_only = true };
	for (int format = 1; format < ICF_EXPORT_FORMATS; format++) {
		struct icf_export_counts counts = { 0 };
		char *text = NULL;
		size_t n = 0;
		FILE *out = open_memstream(&text, &n);
		if (!out)
			return 0;
		const struct icf_export_in in = { .file = fuzz_file(0, data, size),
						  .name = "prog",
						  .options = &opt,
						  .format = (enum icf_export_format)format,
						  .out = out };
		(void)fuzz_ok(icf_export(&in, &counts));
		fclose(out);
		free(text);
		free(counts.warning);
	}
	return 0;
}
