/* code.h: the bodies of the folded program and the jumps between them; private to dwarf/stack/. */
#ifndef DWARF_STACK_CODE_H
#define DWARF_STACK_CODE_H
#include "dwarf/stack/callchain.h"
#include "dwarf/calls/calls.h"
#include "dwarf/calls/icfold_note.h"
#include "dwarf/calls/vtables.h"
#include "elfrw/image.h"
#include "elfrw/base/vec.h"

#define DWR_NO_UNIT UINT32_MAX

/* A run of code of the output. */
struct dwr_code_span {
	uint64_t start, end;
	uint32_t unit;
	bool thunk;
};

/* A transfer of control out of a body. */
struct dwr_branch {
	uint64_t site;   /* the address after the instruction */
	uint64_t target; /* 0: indirect */
	bool call;
};

/* The known facts about one body, by the unit that owns it. */
struct dwr_body {
	bool decoded, jumps;         /* JUMPS: one of the branches is no call */
	uint32_t branch, n_branches; /* into dwr_code.branch, sorted by site */
};

struct dwr_code {
	const struct elfrw_image *img;
	const struct dwr_icfold *note;
	VEC(struct dwr_code_span) span; /* sorted by start */
	struct dwr_body *body;          /* by unit; owned */
	VEC(struct dwr_branch) branch;
	VEC(uint64_t)
	inner; /* sorted: inner targets, not at starts, of branches between spans */
	bool has_inner;
};

struct elfrw_err *dwr_code_init(struct dwr_code *code, const struct elfrw_image *img,
				const struct dwr_icfold *note);
void dwr_code_deinit(struct dwr_code *code);

/* The span that holds VA, or NULL. */
const struct dwr_code_span *dwr_code_at(const struct dwr_code *code, uint64_t va);

/* The branches of the body that unit UNIT has or shares: all calls, direct jumps out of the body,
 * and indirect jumps that do not look like switches.  The array is valid until the next call. */
struct elfrw_err *dwr_code_branches(struct dwr_code *code, uint32_t unit,
				    const struct dwr_branch **ret, uint32_t *n);

/* Address operands of instructions in the body around AT; FN returns false to stop. */
void dwr_code_operands(const struct dwr_code *code, uint64_t at,
		       bool (*fn)(void *ctx, uint64_t address), void *ctx);

/* Does the body around AT store argument registers in its frame before AT and before its first
 * branch? */
bool dwr_code_spills(const struct dwr_code *code, uint64_t at);

/* The call that returns to SITE, among the N branches B of a body; or NULL. */
const struct dwr_branch *dwr_call_before(const struct dwr_branch *b, uint32_t n, uint64_t site);

/* Does a call return to SITE?  *AGAIN: it could lead, possibly by jumps, to the body that holds
 * it. */
struct elfrw_err *dwr_code_is_return(struct dwr_code *code, uint64_t site, bool *ret, bool *again);

/* The place of the object of the virtual call that returns to SITE: see dwr_callchain_object. */
struct elfrw_err *dwr_code_object(struct dwr_code *code, uint64_t site,
				  struct dwr_chain_object *ret, bool *found);

/* Is unit UNIT code that the linker made (PLT and the like)? */
bool dwr_code_is_linkage(const struct dwr_code *code, uint32_t unit);
#endif
