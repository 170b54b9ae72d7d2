/* search.h: binary search in any sorted sequence, by a condition written where it is used.
 *
 *	size_t i = LOWER_BOUND(0, v.len, mid, v.data[mid].address < address);
 */
#ifndef ELFRW_BASE_SEARCH_H
#define ELFRW_BASE_SEARCH_H
#include <stddef.h>

/* The first index in [FROM, TO) for which the condition BEFORE does not hold, or TO.  BEFORE is an
 * expression in the index MID.  If it does not hold for an index, it must not hold for any later
 * one. */
#define LOWER_BOUND(from, to, mid, before)                  \
	({                                                  \
		size_t lo_ = (from), hi_ = (to);            \
		while (lo_ < hi_) {                         \
			size_t mid = lo_ + (hi_ - lo_) / 2; \
			if (before)                         \
				lo_ = mid + 1;              \
			else                                \
				hi_ = mid;                  \
		}                                           \
		lo_;                                        \
	})
#endif
