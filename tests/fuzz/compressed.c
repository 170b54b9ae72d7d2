/* compressed.c: compressed sections in a container, expanded, and packed again. */
#include "tests/fuzz/fuzz.h"
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_image f;
	struct dwr_sections secs;
	fuzz_image_init(&f, data, size);
	if (fuzz_ok(dwr_sections_init(&secs, &f.img))) {
		for (unsigned id = 0; id < DWR_SECS; id++) {
			struct dwr_section *s = &secs.sec[id];
			if (!fuzz_ok(dwr_sections_load(&secs, (enum dwr_sec)id)) || !s->size ||
			    s->size > 1 << 16)
				continue;
			uint8_t *copy = malloc(s->size), *out;
			size_t out_size;
			if (!copy)
				abort();
			memcpy(copy, s->data, s->size);
			if (fuzz_ok(dwr_section_pack(s, copy, s->size, 1, &out, &out_size)))
				free(out);
		}
		dwr_sections_deinit(&secs);
	}
	fuzz_image_deinit(&f);
	return 0;
}
