/* state.h: shared by the files that look at words of data without a relocation; bare.c explains. */
#ifndef ICF_INFER_BARE_STATE_H
#define ICF_INFER_BARE_STATE_H
#include "elfrw/base/rbuf.h"
#include "icf/infer/parts.h"

#define ICF_BARE_ANY_BYTE \
	(64 << 10)           /* bytes of data: if there are more, only aligned words count */
#define ICF_BARE_BEFORE 1024 /* bytes from a name to a word that counts from it */

/* A word that nothing explains, and that may lead into the code. */
struct icf_bare {
	uint64_t place, word; /* extended by its sign */
};

/* Addresses from LO to HI; none if HI < LO. */
struct icf_range {
	uint64_t lo, hi;
};

struct icf_based {
	struct icf_program *prog;
	const struct icf_data_map *map;
	uint64_t lo, hi; /* of the code */
	uint64_t image;  /* the file's first byte, or UINT64_MAX: nobody asks for it */
	struct icf_range front, behind; /* the addresses of data that code computes, on either side
				       of the code */
	struct icf_range got;           /* slots of the global offset table */
	uint64_t bytes;                 /* of data */
	VEC(struct icf_bare) word;      /* by place */
};

static inline void icf_bare_widen(struct icf_range *r, uint64_t va)
{
	r->lo = va < r->lo ? va : r->lo;
	r->hi = va > r->hi ? va : r->hi;
}

/* Where words are looked for that count from an address. */
struct icf_bare_table {
	uint64_t base, start; /* START: to where the code refers, or 0 */
	uint64_t done;        /* words before this place were judged */
	bool few;             /* its code calls sums, or so it seems */
	uint32_t *budget;     /* words that rows may still take; at 0 none is believed.  Files that
				 no toolchain writes make rows of rows. */
};

static inline bool icf_bare_in_code(const struct icf_based *b, uint64_t va)
{
	return va - b->lo < b->hi - b->lo;
}

static inline bool icf_bare_is_entry(const struct icf_based *b, uint64_t va)
{
	return icf_bare_in_code(b, va) && icf_bit(&b->map->entry, va);
}

/* Bytes from one place to the next at which words are looked for. */
static inline unsigned icf_bare_unit(const struct icf_based *b)
{
	return b->bytes > ICF_BARE_ANY_BYTE ? 4 : 1;
}

/* row.c: W leads to an entry from T's base.  Is it a number, or does a table begin here?  Pins what
 * the table leads to. */
void icf_bare_judge(const struct icf_based *b, const struct icf_bare *w, struct icf_bare_table *t);

static inline void icf_bare_try(const struct icf_based *b, const struct icf_bare *w,
				struct icf_bare_table *t)
{
	if (w->place >= t->done && icf_bare_is_entry(b, t->base + w->word))
		icf_bare_judge(b, w, t);
}

/* got.c: the slots of the global offset table. */
struct icf_range icf_bare_got(const struct elfrw_image *img);
/* The address that the code has by reference REF: it is computed, or loaded from a slot of GOT;
 * false: none. */
bool icf_bare_address_by(const struct icf_program *prog, const struct icf_range *got,
			 const struct icf_ref *ref, uint64_t *ret);

/* names.c: finds the addresses of data that any code computes: `image`, `front`, `behind`. */
struct elfrw_err *icf_bare_find_bases(struct icf_based *b);

/* Tries each word with the names before it, and with what single units name. */
struct elfrw_err *icf_bare_try_names(struct icf_based *b, unsigned threads);

/* own.c: pins what words lead to from their own place, from their end, or as addresses. */
void icf_bare_own(const struct icf_based *b);
#endif
