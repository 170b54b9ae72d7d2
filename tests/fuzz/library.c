/* library.c: libicfold: a file in memory, addresses one by one, and the same addresses as a stack.
 *
 * Input: flags (1 byte), how many addresses (1 byte), the addresses (4 bytes each, little-endian),
 * the file. */
#include "tests/fuzz/fuzz.h"
#include "elfrw/base/rbuf.h"
#include "icf/lib/icfold.h"
#include <string.h>

static size_t length(const char *s)
{
	return s ? strlen(s) : 0;
}

static size_t read_answer(const icfold_answer *a)
{
	size_t n = length(a->decided_by);
	FUZZ_HOLDS(!a->decided || a->shared);
	for (size_t i = 0; i <= a->n_frames; i++) {
		const icfold_frame *f = icfold_answer_frame(a, i);
		FUZZ_HOLDS((f != NULL) == (i < a->n_frames));
		if (f)
			n += length(f->function) + length(f->linkage) + length(f->file);
	}
	for (size_t i = 0; i <= a->n_candidates; i++)
		n += length(icfold_answer_candidate(a, i));
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { MOST = 32 };
	uint64_t at[MOST], vtable[MOST];
	size_t k = size > 1 ? data[1] % MOST : 0, n = 0, id;
	if (size < 2 + 4 * k)
		return 0;
	for (size_t i = 0; i < k; i++) {
		at[i] = elfrw_get32(data + 2 + 4 * i);
		vtable[i] = i ? at[i - 1] : 0;
	}
	const icfold_options opt = { .size = sizeof opt,
				     .flags = (data[0] & 31) | ICFOLD_OWN_FILE_ONLY };
	const icfold_answer *a;
	icfold *prog = NULL;
	int status = icfold_open_memory(data + 2 + 4 * k, size - 2 - 4 * k, &opt, &prog);
	FUZZ_HOLDS(status == ICFOLD_OK || status == ICFOLD_ERROR);
	if (status == ICFOLD_OK) {
		for (size_t i = 0; i < k; i++)
			if (icfold_address(prog, at[i], &a) == ICFOLD_OK)
				n += read_answer(a);
		if (icfold_stack(prog, at, data[0] & 0x40 ? vtable : NULL, k) == ICFOLD_OK)
			for (size_t i = 0; i <= k; i++)
				if (icfold_level(prog, i, &a) == ICFOLD_OK)
					n += read_answer(a);
		n += length(icfold_warning(prog)) + (size_t)icfold_is_folded(prog);
		const uint8_t *b = icfold_build_id(prog, &id);
		for (size_t i = 0; b && i < id; i++)
			n += b[i];
	}
	n += length(icfold_message(prog));
	icfold_close(prog);
	FUZZ_HOLDS(n + 1);
	return 0;
}
