/* align.h: rounding up. */
#ifndef ELFRW_BASE_ALIGN_H
#define ELFRW_BASE_ALIGN_H
#include <stdint.h>

/* V, or the next multiple of ALIGN above V.  ALIGN is a power of two, or 0, which headers use for
 * no alignment. */
static inline uint64_t elfrw_align_up(uint64_t v, uint64_t align)
{
	return align > 1 ? (v + align - 1) & ~(align - 1) : v;
}
#endif
