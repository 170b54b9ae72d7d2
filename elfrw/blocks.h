/* blocks.h: look-up of an address among sorted, disjoint ranges.
 *
 * The index holds, for each block of 256 bytes, the first range that ends after the block's start.
 * Ranges of code average a few hundred bytes, so a look-up touches one or two of them. */
#ifndef ELFRW_BLOCKS_H
#define ELFRW_BLOCKS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ELFRW_BLOCK_SHIFT 8

/* The size of the index follows from the addresses, so they have a limit: code is reached with
 * 32-bit displacements. */
#define ELFRW_BLOCKS_MAX (UINT64_C(1) << 32)

struct elfrw_blocks {
	uint64_t lo;     /* start of the first block */
	uint32_t *first; /* by block; owned */
};

/* Indexes N ranges of [LO, HI).  END points to the end (uint64_t) of the first range; STRIDE is the
 * distance in bytes between the ends of consecutive ranges.  Frees the old contents of B.  false:
 * out of memory. */
static inline bool elfrw_blocks_make(struct elfrw_blocks *b, uint64_t lo, uint64_t hi,
				     const void *end, size_t stride, uint32_t n)
{
	size_t blocks = (size_t)((hi - lo) >> ELFRW_BLOCK_SHIFT) + 1;
	free(b->first);
	b->lo = lo;
	b->first = malloc(blocks * sizeof *b->first);
	if (!b->first)
		return false;
	const uint8_t *p = end;
	uint32_t u = 0;
	for (size_t k = 0; k < blocks; k++) {
		uint64_t start = lo + ((uint64_t)k << ELFRW_BLOCK_SHIFT), at;
		for (; u < n; u++, p += stride) {
			memcpy(&at, p, sizeof at);
			if (at > start)
				break;
		}
		b->first[k] = u;
	}
	return true;
}

static inline void elfrw_blocks_deinit(struct elfrw_blocks *b)
{
	free(b->first);
	*b = (struct elfrw_blocks){ 0 };
}

/* The range at which a search for VA begins; VA in [LO, HI]. */
static inline uint32_t elfrw_blocks_from(const struct elfrw_blocks *b, uint64_t va)
{
	return b->first[(va - b->lo) >> ELFRW_BLOCK_SHIFT];
}
#endif
