/* align.h: rounding up. */
#ifndef ELFRW_BASE_ALIGN_H
#define ELFRW_BASE_ALIGN_H
#include <stdint.h>

/* V, or the next multiple of ALIGN above it: a power of two; 0, as headers may have it, is none. */
static inline uint64_t elfrw_align_up(uint64_t v, uint64_t align)
{
	return align > 1 ? (v + align - 1) & ~(align - 1) : v;
}
#endif
