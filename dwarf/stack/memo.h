/* memo.h: numbers for the levels of stacks that were met, for what is the same each time.
 *
 * What a level shows depends on its address, on the call site, and on the functions that the level
 * outside of it could be in: not on the rest of the stack.  Profiles repeat the same levels all the
 * time. */
#ifndef DWARF_STACK_MEMO_H
#define DWARF_STACK_MEMO_H
#include "elfrw/base/vec.h"

#define DWR_MEMO_NONE UINT32_MAX

struct dwr_memo_key {
	uint64_t at;    /* the level's address */
	uint64_t site;  /* the address of the level outside, where it matters */
	uint64_t outer; /* what is known of that level: any number for it */
	uint64_t pc;    /* 1: the innermost level */
};

/* Zeroed once. */
struct dwr_memo {
	uint32_t *slot; /* number + 1; owned */
	uint32_t slots; /* a power of two */
	VEC(struct dwr_memo_key) key;
};

/* The number of KEY; numbers ascend from 0, so *KNOWN false: all numbers before were known.
 * DWR_MEMO_NONE: too many were met, or out of memory. */
uint32_t dwr_memo_number(struct dwr_memo *m, const struct dwr_memo_key *key, bool *known);
void dwr_memo_deinit(struct dwr_memo *m);
#endif
