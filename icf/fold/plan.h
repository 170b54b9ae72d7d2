/* plan.h: what becomes of every unit, and the address map, as a value that can be printed and
 * checked before anything is written. */
#ifndef ICF_FOLD_PLAN_H
#define ICF_FOLD_PLAN_H
#include "elfrw/addrmap.h"
#include "icf/fold/fold.h"

struct icf_plan {
	uint32_t *cls; /* by unit: the lowest unit of its class; owned */
	uint32_t *
		kept; /* by unit: the unit whose code it uses; its own index unless folded; owned */
	struct elfrw_addrmap map;
	uint32_t thunk_exec; /* index of the executable section with the thunks and the trap byte */
	uint32_t rounds, n_groups, n_folded, n_thunks;
	uint64_t folded_bytes; /* bytes of bodies that are gone */
	uint32_t n_removed;    /* units that nothing can reach; not among n_folded */
	uint64_t removed_bytes;
	uint64_t code_before, code_after; /* bytes of all executable sections; in place: without the
					     folded bodies */
	bool changes;                     /* something moves or is folded */
	bool in_place;      /* nothing moves; a folded body becomes a thunk and traps */
	uint32_t n_short;   /* functions that stay because there was no room for their thunks or for
			       the frame descriptions of the thunks */
	bool no_frame_room; /* in place because the unwind tables would have grown */
};

/* Also sets the `reason` of units that stay for a reason found only here. */
struct elfrw_err *icf_make_plan(struct icf_program *prog, const struct icf_options *opt,
				struct icf_plan *plan);
/* The same for mode safe, after the plan ALL of the same program for mode all: what differs there
 * differs here. */
struct elfrw_err *icf_make_safe_plan(struct icf_program *prog, const struct icf_options *opt,
				     const struct icf_plan *all, struct icf_plan *plan);

/* The unwind tables for PLAN, which is compact, do not fit.  Makes it a plan that needs less: first
 * without thunks, then in place.  Error: opt->require_compact. */
struct elfrw_err *icf_plan_less(struct icf_program *prog, const struct icf_options *opt,
				struct icf_plan *plan);
/* Part of both functions (partners.c): folded units whose copies would lead to other code stay
 * after all. */
struct elfrw_err *icf_keep_partners(struct icf_program *prog, struct icf_plan *plan);
/* Part of both (fit.c): pins the units whose references do not reach in PLAN, with what they refer
 * to, and opens what PLAN decided.  False: all reach, and nothing was changed.  ROUND: how often it
 * was asked before; it says false in the end. */
bool icf_pin_short(struct icf_program *prog, const struct icf_plan *plan, unsigned round);
/* Part of icf_make_plan() in place, where exception tables stay as they are: code that stays finds
 * its landing pads in other units where they were.  These units stay after all. */
struct elfrw_err *icf_keep_pads(struct icf_program *prog, struct icf_plan *plan);

/* Part of the first (keep.c): chooses each class's keeper, and which others go; sets `kept` and
 * `thunk_exec`. */
struct elfrw_err *icf_choose_kept(struct icf_program *prog, const struct icf_options *opt,
				  struct icf_plan *plan);

/* PLAN costs more than it saves: makes it one that folds nothing. */
struct elfrw_err *icf_plan_nothing(struct icf_program *prog, const struct icf_options *opt,
				   struct icf_plan *plan);
void icf_plan_deinit(struct icf_plan *plan);
#endif
