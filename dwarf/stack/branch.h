/* branch.h: which functions one branch of a folded program leads to, or comes from: what a
 * processor's record of branches needs.
 *
 * Functions are unit numbers of the address map.  A place in shared code does not tell which of the
 * functions runs there; the branch that led there does, if it is known which function branched. */
#ifndef DWARF_STACK_BRANCH_H
#define DWARF_STACK_BRANCH_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_callchain;

#define DWR_BRANCH_NONE UINT32_MAX

/* What the code says of an address. */
struct dwr_branch_place {
	uint32_t unit;  /* whose code it is, or whose thunk; DWR_BRANCH_NONE: no known code */
	uint32_t group; /* of the functions that share it; DWR_BRANCH_NONE: none do */
	uint32_t kind;  /* enum elfrw_insn_kind of the instruction there */
	bool thunk;     /* it is in UNIT's thunk */
	bool start;     /* the code, or the thunk, begins there */
	uint64_t next;  /* the address behind the instruction; 0: it is none */
};

/* The place of VA, in a program with .debug_icfold. */
struct dwr_branch_place dwr_branch_place(const struct dwr_callchain *cc, uint64_t va);

/* The functions of GROUP that function FROM entered by its branch before SITE, which led to the
 * start of GROUP's code.  RET (N units) is valid until the next call; N 0: any of GROUP. */
struct elfrw_err *dwr_branch_entered(struct dwr_callchain *cc, uint32_t from, uint64_t site,
				     uint32_t group, const uint32_t **ret, size_t *n);

/* The functions of GROUP that an address of its code can stand for: not those that have a thunk,
 * unless a virtual table refers to them. */
struct elfrw_err *dwr_branch_pointed(struct dwr_callchain *cc, uint32_t group, const uint32_t **ret,
				     size_t *n);

/* The same of the call before SITE if it is only known that it returned from GROUP's code, which
 * jumps may have led to. */
struct elfrw_err *dwr_branch_left(struct dwr_callchain *cc, uint32_t from, uint64_t site,
				  uint32_t group, const uint32_t **ret, size_t *n);

/* Can the call before SITE, in function FROM, have led to code of GROUP, as far as the code says?
 * Calls of other programs and libraries cannot. */
struct elfrw_err *dwr_branch_leads(struct dwr_callchain *cc, uint32_t from, uint64_t site,
				   uint32_t group, bool *ret);

/* The functions of GROUP whose DIE is one of FROM's: its other part. */
struct elfrw_err *dwr_branch_part(struct dwr_callchain *cc, uint32_t from, uint32_t group,
				  const uint32_t **ret, size_t *n);
#endif
