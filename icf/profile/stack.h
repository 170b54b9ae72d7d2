/* stack.h: samples as stacks of places, counted: for flame graphs and pprof. */
#ifndef ICF_PROFILE_STACK_H
#define ICF_PROFILE_STACK_H
#include "elfrw/base/vec.h"
#include "icf/profile/state.h"
#include <xxhash.h>

/* A level of a stack; for flame graphs only its name counts. */
struct icf_prof_level {
	XXH128_hash_t key;
	char *name, *dso; /* owned; DSO NULL: the program */
	uint64_t address; /* in the other program, or as the text shows it */
	uint64_t va;      /* in the folded program */
	uint32_t member;  /* ICF_PROF_NONE: in no shared code */
	bool in, ret, undecided;
};

struct icf_prof_counted {
	XXH128_hash_t key;
	uint32_t at, n; /* its levels, the innermost first, in `item` */
	uint64_t count, weight;
};

struct icf_prof_stack {
	VEC(struct icf_prof_level) level;
	VEC(struct icf_prof_counted) stack;
	VEC(uint32_t) item;
	VEC(uint32_t) current;
	uint32_t *level_slot, *stack_slot; /* open hash tables of 1 + index; owned */
	size_t n_level_slots, n_stack_slots;
};

struct elfrw_err *icf_prof_stack_open(struct icf_profile *p);
struct elfrw_err *icf_prof_stack_add(struct icf_profile *p);
struct elfrw_err *icf_prof_stack_put(struct icf_profile *p);
void icf_prof_stack_close(struct icf_profile *p);

/* pprof.c */
struct elfrw_err *icf_prof_put_pprof(struct icf_profile *p);
#endif
