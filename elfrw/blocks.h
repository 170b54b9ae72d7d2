/* blocks.h: look-up of an address among sorted, disjoint ranges, or among sorted starts of ranges.
 *
 * The index holds, for each block of 256 bytes, the first range that ends after the block's start.
 * Ranges of code average a few hundred bytes, so a look-up touches one or two of them.  If ranges
 * may overlap, the index is made of their starts: it narrows a binary search. */
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

/* An index of sorted addresses, which need not be distinct. */
struct elfrw_starts {
	struct elfrw_blocks blocks; /* first: NULL: none is worth its memory */
	uint64_t last;              /* the last address */
	size_t n;
};

/* Indexes N addresses; START points to the first (uint64_t), STRIDE is the distance in bytes
 * between them.  false: out of memory.  Deinit B's blocks. */
static inline bool elfrw_starts_make(struct elfrw_starts *b, const void *start, size_t stride,
				     size_t n)
{
	uint64_t lo = 0;
	*b = (struct elfrw_starts){ .n = n };
	if (!n)
		return true;
	memcpy(&lo, start, sizeof lo);
	memcpy(&b->last, (const uint8_t *)start + (n - 1) * stride, sizeof b->last);
	/* Addresses may be far apart: a file of a few bytes may say so. */
	if (n > UINT32_MAX || (b->last - lo) >> ELFRW_BLOCK_SHIFT > 64 * n)
		return true;
	return elfrw_blocks_make(&b->blocks, lo, b->last, start, stride, (uint32_t)n);
}

/* The first address greater than VA has an index in [*FROM, *TO]. */
static inline void elfrw_starts_range(const struct elfrw_starts *b, uint64_t va, size_t *from,
				      size_t *to)
{
	const struct elfrw_blocks *k = &b->blocks;
	*from = k->first && va >= b->last ? b->n : 0;
	*to = k->first && va < k->lo ? 0 : b->n;
	if (k->first && va >= k->lo && va < b->last) {
		uint64_t block = (va - k->lo) >> ELFRW_BLOCK_SHIFT;
		*from = k->first[block];
		if (block < (b->last - k->lo) >> ELFRW_BLOCK_SHIFT)
			*to = k->first[block + 1];
	}
}
#endif
