/* use.h: why the marking of what is used came to something. */
#ifndef ICF_FOLD_UNUSED_USE_H
#define ICF_FOLD_UNUSED_USE_H
#include <stdint.h>

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
	ICF_USE_CODE,   /* the reference at `place` */
	ICF_USE_TABLE,  /* an entry of its jump table */
	ICF_USE_PAD,    /* a landing pad */
	ICF_USE_FALLS,  /* control runs off its end */
	ICF_USE_RELOC,  /* the relocation of `place`, which the output keeps; with or without
			   `from` */
	ICF_USE_OBJECT, /* the word at `place` of a virtual table that `from` refers to; without
			   `from`: that something else in data refers to */
};

struct icf_use {
	uint64_t place; /* address of the field that refers to it, or 0 */
	uint32_t from;  /* a unit, or ICF_NONE */
	uint8_t kind;   /* enum icf_use_kind */
};
#endif
