/* demangle.c: mangled names, in all spellings: what is printed is bounded, and so is the time. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/demangle/demangle.h"
#include "dwarf/demangle/parts.h"
#include <string.h>
#include <time.h>

/* Sanitizers make it ten times as slow. */
#define MAX_SECONDS 5

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = strndup((const char *)data, size);
	if (!name)
		abort();
	for (int spelling = 0; spelling <= DWR_SPELLING_GNU_SHORT; spelling++) {
		char *text = NULL;
		clock_t start = clock();
		FUZZ_HOLDS(dwr_demangle(name, (enum dwr_spelling)spelling, &text));
		FUZZ_HOLDS(!text || strlen(text) <= DWR_DEMANGLE_TEXT);
		FUZZ_HOLDS((clock() - start) / CLOCKS_PER_SEC < MAX_SECONDS);
		free(text);
	}
	free(name);
	return 0;
}
