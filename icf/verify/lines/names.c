/* names.c: file names that outlive the handle they were read with. */
#include "icf/verify/lines/names.h"
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct icf_vnames {
	char **slot; /* a power of two; owned texts */
	size_t n, cap;
};

struct icf_vnames *icf_vnames_create(void)
{
	return calloc(1, sizeof(struct icf_vnames));
}

void icf_vnames_destroy(struct icf_vnames *names)
{
	for (size_t i = 0; names && i < names->cap; i++)
		free(names->slot[i]);
	if (names)
		free(names->slot);
	free(names);
}

static size_t hash(const char *s)
{
	uint64_t h = 0xcbf29ce484222325;
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * 0x100000001b3;
	return (size_t)(h ^ h >> 29);
}

const char *icf_vnames_get(struct icf_vnames *names, const char *text)
{
	if (names->n * 2 >= names->cap) {
		size_t cap = names->cap ? names->cap * 2 : 256;
		char **slot = calloc(cap, sizeof *slot);
		if (!slot)
			return NULL;
		for (size_t i = 0; i < names->cap; i++) {
			size_t k = names->slot[i] ? hash(names->slot[i]) & (cap - 1) : 0;
			while (names->slot[i] && slot[k])
				k = (k + 1) & (cap - 1);
			if (names->slot[i])
				slot[k] = names->slot[i];
		}
		free(names->slot);
		names->slot = slot;
		names->cap = cap;
	}
	size_t k = hash(text) & (names->cap - 1);
	for (; names->slot[k]; k = (k + 1) & (names->cap - 1))
		if (strcmp(names->slot[k], text) == 0)
			return names->slot[k];
	names->slot[k] = strdup(text);
	names->n += names->slot[k] != NULL;
	return names->slot[k];
}
