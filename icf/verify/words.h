/* words.h: the words of IN's data that refer to code, the jump tables among them, and the dynamic
 * relocations. */
#ifndef ICF_VERIFY_WORDS_H
#define ICF_VERIFY_WORDS_H
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stdint.h>

/* A field of data that refers to code. */
struct icf_vword {
	uint64_t place;     /* address in both files */
	uint64_t target;    /* its target in IN */
	uint64_t want, alt; /* the required address in OUT; either of the two */
	uint32_t table;     /* jump table, or ICF_V_NONE */
	uint8_t size;
	uint8_t kind; /* enum icf_vword_kind */
	bool quiet;   /* does not make the address observable */
	bool slot;    /* of a virtual table */
	bool stored;  /* DYNAMIC: the field holds the address, too */
	bool lost;    /* in a table that nothing reaches, and its code is removed: it is zero now */
	bool still;   /* RELATIVE: unknown origin; the field must be unchanged */
};

enum icf_vword_kind {
	ICF_VW_FIELD,    /* the field holds the address */
	ICF_VW_DYNAMIC,  /* a dynamic relocation's addend holds the address; the field may hold it,
			    too */
	ICF_VW_RELATIVE, /* the field holds a distance, from its own place or a table's start */
	ICF_VW_OFFSET,   /* a distance to a function's symbol from an unknown place, or to a listed
			    trap from its own place */
};

struct icf_vtable {
	uint64_t base;
	uint32_t word, n; /* into word */
	uint32_t owner;   /* the only unit that refers to it, or ICF_V_NONE */
	bool none;        /* found: its entries lead elsewhere, so it is no table */
};

struct icf_vdynreloc {
	uint64_t place, addend;
	uint64_t value; /* of its symbol, 0 without one */
	uint8_t kind;   /* enum elfrw_reloc_kind */
	bool relr;
};

/* data/refs.c fills it. */
struct icf_vwords {
	VEC(struct icf_vword) word;         /* sorted by place */
	VEC(struct icf_vtable) table;       /* sorted by base */
	VEC(struct icf_vdynreloc) dynreloc; /* of IN, sorted by place */
	VEC(uint64_t) end;                  /* where tables end at the latest, sorted */
	uint8_t *filter; /* which 64-byte lines from word[0].place on have a word */
	uint64_t filter_lo, filter_hi;
};

/* The first dynamic relocation of PLACE in IN, or NULL. */
const struct icf_vdynreloc *icf_v_dynreloc_at(const struct icf_vwords *w, uint64_t place);
/* The first word at or after PLACE. */
size_t icf_v_word_from(const struct icf_vwords *w, uint64_t place);
bool icf_v_may_have_word(const struct icf_vwords *w, uint64_t va);
#endif
