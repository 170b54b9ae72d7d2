/* unused.h: functions that nothing in the program can reach (--gc-functions). */
#ifndef ICF_FOLD_UNUSED_H
#define ICF_FOLD_UNUSED_H
#include "icf/cli/options.h"
#include "icf/program/program.h"

/* Why something stays: what the marking came from when it reached a unit first. */
enum icf_use_kind {
	ICF_USE_NONE, /* nothing came: it is unused */
	/* Roots; nothing else has to use them. */
	ICF_USE_ENTRY,       /* the entry point */
	ICF_USE_DYNAMIC,     /* DT_INIT, DT_FINI */
	ICF_USE_EXPORT,      /* in the dynamic symbol table */
	ICF_USE_DATA,        /* the word of data at `place` */
	ICF_USE_PERSONALITY, /* of unwind tables */
	ICF_USE_PROBE,       /* has a static probe */
	ICF_USE_DELIMITED,   /* in a part of the code that the program delimits */
	ICF_USE_KEEP,        /* the user asked for it */
	ICF_USE_DOUBT,       /* a number may lead to it, and no relocations tell */
	ICF_USE_PINNED,      /* keeps its address, for the reason of the unit */
	ICF_USE_LINKAGE,     /* .plt, .init, .fini */
	ICF_USE_NO_FUNCTION, /* code that is no function of its own, for the reason of the unit */
	ICF_USE_UNWIND,      /* its unwind rules hold addresses */
	ICF_USE_IFUNC,       /* a resolver */
	/* References of another one that is used, `from`.  A root has none. */
	ICF_USE_CODE,  /* the reference at `place` */
	ICF_USE_TABLE, /* an entry of its jump table */
	ICF_USE_PAD,   /* a landing pad */
	ICF_USE_FALLS, /* control runs off its end */
	ICF_USE_RELOC, /* the relocation of `place`, which the output keeps; with or without
			  `from` */
};

struct icf_use {
	uint64_t place; /* address of the field that refers to it, or 0 */
	uint32_t from;  /* a unit, or ICF_NONE */
	uint8_t kind;   /* enum icf_use_kind */
};

/* Sets ICF_UNIT_UNUSED, and the reason ICF_UNUSED, of all functions that no root can reach.  Does
 * nothing unless OPT asks for it, or if the program's references are not all known.  Runs when the
 * references, the tables and the pinned units are known, before eligibility.  USE, if it is not
 * NULL, becomes an array by unit of one of the shortest ways from a root; NULL if nothing was done.
 * The caller frees it.  Error: a name to be kept names no function. */
struct elfrw_err *icf_find_unused(struct icf_program *prog, const struct icf_options *opt,
				  struct icf_use **use);

/* Why nothing is removed from PROG although OPT asks for it; NULL: that is not so. */
const char *icf_unused_obstacle(const struct icf_program *prog, const struct icf_options *opt);

/* Nothing is to be removed after all. */
void icf_keep_unused(struct icf_program *prog);
#endif
