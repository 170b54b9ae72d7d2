/* arcs.h: profiles that count calls by their places: gprof's and callgrind's.
 *
 * A context is a body of the program under one name: with callgrind's --separate-callers a body has
 * several.  An arc is the number of calls (or jumps) from a place to a context, with the costs of
 * the callee if they are known.  Which functions a context of shared code stands for is decided by
 * the arcs that lead there: a function's share of the context is its share of these arcs, and arcs
 * from shared code have the shares of their own context.
 *
 * All calls of decided arcs are exact.  The shares of what happens inside of shared code (costs,
 * and calls from there) are estimates, unless one function has all. */
#ifndef ICF_PROFILE_ARCS_H
#define ICF_PROFILE_ARCS_H
#include "icf/profile/state.h"

#define ICF_ARC_EVENTS 32 /* at most */

struct icf_arc_context {
	uint32_t name, unit; /* UNIT: whose body, or whose thunk */
	bool thunk;
	uint32_t group;   /* ICF_PROF_NONE: it is UNIT alone */
	uint32_t *member; /* those that have a share; owned */
	uint32_t n, cap;  /* of them; without a group 1 */
	size_t share;     /* where its shares begin: N for calls, then N for each event */
	bool entered;     /* an arc leads to its start */
	bool seeded;      /* nothing is known of its callers */
	uint32_t n_seeds; /* of its members: chosen for that reason */
};

struct icf_arc {
	uint32_t from, to; /* contexts; FROM is ICF_PROF_NONE outside of the program */
	uint32_t site, n_sites;
	bool start;  /* it leads to the start of the body */
	uint64_t n;  /* calls */
	size_t cost; /* n_events numbers */
	size_t edge, n_edges;
	uint32_t done; /* functions of FROM whose callees are in TO */
};

/* A part of an arc: from the I-th function of its context to the K-th of the other. */
struct icf_arc_edge {
	uint32_t i, k;
	double part; /* of the I-th one's calls */
	bool open;   /* chosen, not decided */
};

/* Where a call comes from. */
struct icf_arc_site {
	uint64_t site; /* the address behind it */
	enum icf_prof_how how;
};

struct icf_arcs {
	unsigned n_events;
	VEC(struct icf_arc_context) context;
	uint32_t *slot; /* of contexts: 1 + index; open hash table; owned */
	size_t n_slots;
	VEC(struct icf_arc) arc;
	VEC(struct icf_arc_site) site;
	VEC(uint64_t) cost;
	VEC(struct icf_arc_edge) edge;
	VEC(uint32_t) chosen; /* of one question */
	uint32_t *asked;      /* by member: the last question that chose it; owned */
	uint32_t question;
	uint64_t pairs; /* of functions, and shares: what their number makes cost */
	VEC(double) share, carry;
	uint64_t calls, shared; /* into the program; of these into shared code */
	double undecided;
};

void icf_arcs_deinit(struct icf_arcs *a);

/* The context of NAME at VA, an address of the folded program; ICF_PROF_NONE: no code. */
struct elfrw_err *icf_arcs_context(struct icf_profile *p, struct icf_arcs *a, uint32_t name,
				   uint64_t va, uint32_t *ret);

/* Adds ARC, of which FROM, TO, START and N are set; its sites and costs come from a->site and
 * a->cost. */
struct elfrw_err *icf_arcs_add(struct icf_arcs *a, const struct icf_arc *arc,
			       const struct icf_arc_site *site, uint32_t n_sites,
			       const uint64_t *cost);

/* What leads from the instruction at VA (a call, a jump, or the end of a body) to a context. */
struct elfrw_err *icf_arcs_site(struct icf_profile *p, uint64_t va, struct icf_arc_site *ret);

/* Finds the shares.  Errors: out of memory; too many functions call too many others. */
struct elfrw_err *icf_arcs_solve(struct icf_profile *p, struct icf_arcs *a);

/* The function (unit) of the I-th share of context C. */
uint32_t icf_arcs_unit(const struct icf_profile *p, const struct icf_arc_context *c, uint32_t i);

/* X without its fraction, as far as 64 bits hold it; of what is no number 0. */
uint64_t icf_prof_whole(long double x);

/* Divides TOTAL among the N shares; all of RET together are TOTAL if the shares are 1 together.
 * CARRY (N numbers, may be NULL) is what earlier divisions left over. */
void icf_arcs_divide(uint64_t total, const double *share, double *carry, size_t n, uint64_t *ret);

/* Tells the profile's counts what the arcs are. */
void icf_arcs_count(struct icf_profile *p, const struct icf_arcs *a);

/* The shares of context C, in calls (EVENT -1) or in an event's costs. */
const double *icf_arcs_share(const struct icf_arcs *a, const struct icf_arc_context *c, int event);

/* All bytes of FD, and a zero behind them, which is not counted; the caller owns *RET. */
struct elfrw_err *icf_prof_read_all(int fd, const char *name, uint8_t **ret, size_t *size);

/* gmon.c, callgrind.c */
struct icf_prof_gmon;
struct icf_prof_callgrind;
struct elfrw_err *icf_prof_gmon_read(struct icf_profile *p, int fd, const char *name);
struct elfrw_err *icf_prof_gmon_put(struct icf_profile *p);
void icf_prof_gmon_close(struct icf_prof_gmon *g);
struct elfrw_err *icf_prof_callgrind_read(struct icf_profile *p, int fd, const char *name);
struct elfrw_err *icf_prof_callgrind_put(struct icf_profile *p);
void icf_prof_callgrind_close(struct icf_prof_callgrind *c);
#endif
