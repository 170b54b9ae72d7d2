/* state.h: shared by the files that follow addresses of functions through the code of one unit. */
#ifndef ICF_INFER_SUMS_STATE_H
#define ICF_INFER_SUMS_STATE_H
#include "icf/infer/effect.h"
#include "icf/infer/unit.h"

#define ICF_MAX_SOURCES 64 /* that are followed one by one in a unit that adds numbers */

/* Instruction `at` computes with the address in register `reg`. */
struct icf_sum {
	uint32_t at;
	uint8_t reg;
	uint8_t other; /* the register that is added or subtracted, or ELFRW_REG_NONE */
	uint8_t shift; /* to the left, before it is added */
	bool minus;    /* it is subtracted */
	bool only;     /* counts only if `other` holds numbers */
	bool whole;    /* `reg` holds the address itself */
	bool sure;     /* it holds nothing else */
	bool quiet;    /* no sum, but what leads on to one, or could be one */
	bool known;    /* only a number is added, to the address itself: */
	int64_t number;
};

struct icf_flow {
	struct icf_program *prog;
	const struct icf_bits
		*entries; /* from other units, and landing pads; NULL: not collected */
	uint32_t unit;
	struct icf_trace t;
	VEC(uint32_t) source; /* instructions that compute an address; ascending */
	VEC(struct icf_sum) sum;
	VEC(uint32_t)
	of_all;            /* instructions that compute sums, when one source is followed: with
			      any of them */
	bool own;          /* addresses inside the own unit */
	bool dark;         /* places in other code that is not understood */
	bool edges;        /* icf_trace_edges() was called */
	bool full;         /* out of memory */
	const char *loose; /* nothing may move */
	uint64_t loose_at;
};

/* ---- source.c ---- */

/* Does reference REF, of unit I, name a function, or a pointer to one (in the global offset table)?
 */
bool icf_flow_names_function(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref);
/* Is REF, of unit U, the address of a place in U, as a number? */
bool icf_flow_names_itself(const struct icf_unit *u, const struct icf_ref *ref);
/* Does REF, of unit I, name a place in other code that is not understood, or a pointer to one? */
bool icf_flow_names_dark(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref);
/* Collects the instructions that compute addresses of functions, or if F says so of code that is
 * not understood; FROM: their addresses. */
struct elfrw_err *icf_flow_sources(struct icf_flow *f, uint64_t from[ICF_MAX_SOURCES]);
/* The same for addresses inside the own unit. */
struct elfrw_err *icf_flow_labels(struct icf_flow *f, uint64_t from[ICF_MAX_SOURCES]);

/* ---- follow.c ---- */

/* Follows the addresses that the N instructions SOURCE compute, and collects the sums. */
struct elfrw_err *icf_flow_run(struct icf_flow *f, const uint32_t *source, size_t n);

/* ---- arith.c ---- */

/* What instruction K does may lead anywhere. */
void icf_flow_give_up(struct icf_flow *f, size_t k);
#endif
