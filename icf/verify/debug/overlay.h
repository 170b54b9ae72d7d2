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

/* A function's DIE one of whose ranges begins where UNIT does. */
struct icf_vowner {
	uint32_t unit;
	uint64_t die;
};

/* The whole overlay as a flat list, sorted by DIE; owned by the caller. */
struct elfrw_err *icf_voverlay_read(struct icf_v *v, struct icf_voverlay **ret, size_t *n);
/* The note names exactly the functions' DIEs of every member, and where their part of the overlay
 * begins.  Sorts LIST. */
struct elfrw_err *icf_voverlay_owners(struct icf_v *v, struct icf_vowner *list, size_t n,
				      const struct icf_voverlay *overlay, size_t n_overlay);
#endif
