/* effect.h: what one instruction does to one register, as far as the search for jump targets needs
 * it. */
#ifndef ICF_INFER_EFFECT_H
#define ICF_INFER_EFFECT_H
#include "elfrw/arch/effect.h"
#include "icf/infer/infer.h"

enum icf_def_kind {
	ICF_DEF_NONE,    /* the instruction does not write the register */
	ICF_DEF_LOAD,    /* 8 bytes from memory */
	ICF_DEF_COPY,    /* another register, maybe sign- or zero-extended from 4 bytes */
	ICF_DEF_ADD,     /* the sum of two registers */
	ICF_DEF_ADD_MEM, /* the sum of the register and 8 bytes in memory */
	ICF_DEF_DIST,    /* an entry of a table from memory, base + index */
	ICF_DEF_SMALL,   /* 1 or 2 bytes from memory or a register, zero-extended; or a mask */
	ICF_DEF_ADDRESS, /* an address, by a PC-relative operand or in two halves */
	ICF_DEF_RESULT,  /* of a call */
	ICF_DEF_CHOICE,  /* a conditional move of 8 bytes: from register a, or from memory */
	ICF_DEF_OTHER,  /* a sum or a difference: it could be an address computed from a distance */
	ICF_DEF_NUMBER, /* anything else, without a distance in it */
	ICF_DEF_ENTRY,  /* not written since the function's entry */
	ICF_DEF_CUT,    /* control comes from an unknown place */
};

struct icf_def {
	enum icf_def_kind kind;
	size_t at;     /* instruction */
	uint8_t a, b;  /* COPY: a; ADD: a and b; CHOICE: a, and b or the register itself */
	uint8_t shift; /* ADD: of b, to the left */
	uint8_t size;  /* DIST: bytes of the entry */
	bool sign;     /* DIST: it is sign-extended; ADD: b is */
	uint8_t part;  /* ADD: bytes of b that count; 0: all */
	uint64_t max;  /* SMALL, or a DIST that may be one: the largest value, or UINT64_MAX */
	uint8_t reg;   /* the register that was searched for */
	uint64_t page; /* ADDRESS: what the high half names, if the instruction has only the low
			  half and pair.c did not find both; or 0.  jump.c */
};

/* The bytes of T's instruction AT, which is one of UNIT. */
static inline const uint8_t *icf_code_of(const struct icf_program *prog, uint32_t unit,
					 const struct icf_trace *t, size_t at)
{
	return icf_unit_bytes(prog, &prog->unit.data[unit]) + t->insn.data[at].pos;
}

/* What instruction AT of the unit does. */
struct elfrw_effect icf_effect_at(const struct icf_program *prog, uint32_t unit,
				  const struct icf_trace *t, size_t at);

/* The low half of an address in instruction AT, or NULL. */
const struct icf_ref *icf_find_low(const struct icf_program *prog, uint32_t unit,
				   const struct icf_trace *t, size_t at);
static inline const struct icf_ref *icf_low_at(const struct icf_program *prog, uint32_t unit,
					       const struct icf_trace *t, size_t at)
{
	return prog->arch->low_form ? icf_find_low(prog, unit, t, at) : NULL;
}

/* Does instruction AT, which is no branch, refer to a place by a PC-relative operand or a low half?
 * *TO: it; *COMPUTES: its address is computed, and it is not read or written here. */
bool icf_names_place(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
		     size_t at, uint64_t *to, bool *computes);

/* The address that instruction AT, of kind ICF_DEF_ADDRESS, computes. */
uint64_t icf_address_at(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			size_t at);

/* Does E load what may be an entry of a jump table, and extend it? */
bool icf_loads_entry(const struct icf_program *prog, const struct elfrw_effect *e);

/* What instruction AT does to register R.  A 32-bit result, or a result without a sum in it, is no
 * address. */
struct icf_def icf_effect(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			  size_t at, unsigned r);
#endif
