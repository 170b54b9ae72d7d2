/* set.h: sets of addresses, carried through the map. */
#ifndef ICF_VERIFY_DEBUG_SET_H
#define ICF_VERIFY_DEBUG_SET_H
#include "icf/verify/debug/debug.h"

/* A set of addresses of OUT, cut at units. */
struct icf_vpiece {
	uint32_t unit;
	uint64_t lo, hi;
};
struct icf_vset {
	VEC(struct icf_vpiece) v;
	VEC(uint32_t) thunk; /* units whose thunk belongs to the set */
	bool nomem;
};
void icf_vset_free(struct icf_vset *s);
/* Adds the image of the range [LO, HI) of IN.  A whole folded function also adds its thunk. */
void icf_vset_expect(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi);
/* Adds the range [LO, HI) of OUT; false: it begins or ends in fill, or inside of a thunk. */
bool icf_vset_add(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi);
/* NULL if equal; otherwise the difference, in BUF.  THUNKS: thunks are required; otherwise they are
 * optional. */
const char *icf_vset_differ(struct icf_vset *want, struct icf_vset *have,
			    const struct icf_vdebug *d, bool thunks, char *buf, size_t size);
#endif
