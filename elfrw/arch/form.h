/* form.h: how the number of a reference stands in the bytes of code.
 *
 * A reference is a place and a form.  The form tells which bits of the little-endian word at that
 * place are the field, in which order, how the number in these bits is scaled, and what the number
 * counts from.  One table describes whole words (x86-64, all data) and packed, scaled and split
 * fields (fixed-width instructions).  It also describes halves: two instructions hold an address
 * together.  The high half counts pages.  The low half is the rest: of the address, in its page
 * (ADRP with ADD or LDR), or of the distance from the high half's place (AUIPC with ADDI). */
#ifndef ELFRW_ARCH_FORM_H
#define ELFRW_ARCH_FORM_H
#include "elfrw/base/rbuf.h"
#include <stdbool.h>
#include <stdint.h>

/* What the number of a field is, TARGET being what the reference names and PLACE what it counts
 * from.  `page` of the form is the exponent of the page's size, `shift` that of the number's
 * unit. */
enum elfrw_base {
	ELFRW_BASE_ZERO,     /* TARGET */
	ELFRW_BASE_PLACE,    /* TARGET - PLACE */
	ELFRW_BASE_PAGE,     /* pages from PLACE's page to TARGET's: a high half */
	ELFRW_BASE_IN_PAGE,  /* TARGET modulo the page: the low half of BASE_PAGE */
	ELFRW_BASE_HIGH,     /* TARGET - PLACE in pages, rounded: a high half */
	ELFRW_BASE_REMAINDER /* what BASE_HIGH leaves of TARGET - PLACE, which may be negative: its
				low half; PLACE is the high half's */
};

/* Bits [at, at + width) of the word are bits [from, from + width) of the number. */
struct elfrw_run {
	uint8_t at, from, width;
};

#define ELFRW_FORM_RUNS 4

struct elfrw_form {
	const char *name;
	uint8_t bytes; /* of the word; 0: there is no such form */
	uint8_t width; /* of the number, in bits */
	uint8_t shift; /* the number counts units of 2^shift bytes */
	uint8_t base;  /* enum elfrw_base */
	uint8_t page;  /* of the bases that know pages */
	bool sign;     /* the number is sign-extended */
	uint8_t n_run; /* 0: the field is the whole word */
	struct elfrw_run run[ELFRW_FORM_RUNS];
};

/* The parts of the functions below that only packed fields need.  form.c */
uint64_t elfrw_form_mask(const struct elfrw_form *f);
uint64_t elfrw_form_gather(const struct elfrw_form *f, uint64_t word);
uint64_t elfrw_form_scatter(const struct elfrw_form *f, uint64_t word, uint64_t number);

/* The number in the field at P, sign-extended if the form says so. */
static inline uint64_t elfrw_form_number(const struct elfrw_form *f, const uint8_t *p)
{
	uint64_t n = elfrw_get_le(p, f->bytes);
	if (f->n_run)
		n = elfrw_form_gather(f, n);
	if (!f->sign || f->width >= 64)
		return n;
	return (uint64_t)((int64_t)(n << (64 - f->width)) >> (64 - f->width));
}

/* Clears the field at P: what is left does not depend on what the reference names. */
static inline void elfrw_form_blank(const struct elfrw_form *f, uint8_t *p)
{
	uint64_t rest = f->n_run ? elfrw_get_le(p, f->bytes) & ~elfrw_form_mask(f) : 0;
	elfrw_put_le(p, rest, f->bytes);
}

/* Do the words at A and B agree in what is not the field? */
static inline bool elfrw_form_same_rest(const struct elfrw_form *f, const uint8_t *a,
					const uint8_t *b)
{
	return !f->n_run ||
	       ((elfrw_get_le(a, f->bytes) ^ elfrw_get_le(b, f->bytes)) & ~elfrw_form_mask(f)) == 0;
}

/* Is the form one half of an address?  The high half is the one that names its page. */
static inline bool elfrw_form_is_high(const struct elfrw_form *f)
{
	return f->base == ELFRW_BASE_PAGE || f->base == ELFRW_BASE_HIGH;
}
static inline bool elfrw_form_is_low(const struct elfrw_form *f)
{
	return f->base == ELFRW_BASE_IN_PAGE || f->base == ELFRW_BASE_REMAINDER;
}

/* What a high half that names PAGE may name together with low halves: [*FROM, *TO). */
static inline void elfrw_form_span(const struct elfrw_form *high, uint64_t page, uint64_t *from,
				   uint64_t *to)
{
	uint64_t size = (uint64_t)1 << high->page;
	*from = high->base == ELFRW_BASE_HIGH ? page - size / 2 : page;
	*to = *from + size;
}

/* What the field at P names.  PLACE is what it counts from: its own place, or as the architecture
 * says (x86-64: the end of the instruction).  A low half counts from what its high half names. A
 * high half alone names the place from which the low half counts. */
uint64_t elfrw_form_read(const struct elfrw_form *f, const uint8_t *p, uint64_t place);

bool elfrw_form_fits(const struct elfrw_form *f, uint64_t number);
bool elfrw_form_write_packed(const struct elfrw_form *f, uint8_t *p, uint64_t place,
			     uint64_t target);

/* Makes the field at P name TARGET, from PLACE; PLACE of a low half is its high half's.  Returns
 * false, and writes nothing, when TARGET is out of reach or no multiple of the form's unit. */
static inline bool elfrw_form_write(const struct elfrw_form *f, uint8_t *p, uint64_t place,
				    uint64_t target)
{
	if (f->n_run || f->shift || f->base > ELFRW_BASE_PLACE)
		return elfrw_form_write_packed(f, p, place, target);
	uint64_t n = f->base == ELFRW_BASE_PLACE ? target - place : target;
	if (!elfrw_form_fits(f, n))
		return false;
	elfrw_put_le(p, n, f->bytes);
	return true;
}

/* How far a field of this form reaches at least, to either side of what it counts from; for an
 * absolute one, the largest address.  At most INT64_MAX. */
uint64_t elfrw_form_reach(const struct elfrw_form *f);
#endif
