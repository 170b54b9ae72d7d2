/* overlay.h: ranges that .debug_icfold keeps for DIEs. */
#ifndef ICF_VERIFY_DEBUG_OVERLAY_H
#define ICF_VERIFY_DEBUG_OVERLAY_H
#include "icf/verify/state.h"

/* A range that .debug_icfold keeps for a DIE. */
struct icf_voverlay {
	uint64_t die;
	uint32_t unit;
	uint64_t start, len;
};

/* A function's DIE with a range that begins where UNIT does. */
struct icf_vowner {
	uint32_t unit;
	uint64_t die;
};

/* Reads the whole overlay as a flat list, sorted by DIE.  The caller frees it. */
struct elfrw_err *icf_voverlay_read(struct icf_v *v, struct icf_voverlay **ret, size_t *n);
/* The note must name exactly the functions' DIEs of every member, and the starts of their parts of
 * the overlay.  Sorts LIST. */
struct elfrw_err *icf_voverlay_owners(struct icf_v *v, struct icf_vowner *list, size_t n,
				      const struct icf_voverlay *overlay, size_t n_overlay);
#endif
