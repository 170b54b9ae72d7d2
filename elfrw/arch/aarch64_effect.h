/* aarch64_effect.h: shared by the files that say what AArch64 instructions do. */
#ifndef ELFRW_ARCH_AARCH64_EFFECT_H
#define ELFRW_ARCH_AARCH64_EFFECT_H
#include "elfrw/arch/effect.h"
#include "elfrw/base/rbuf.h"

enum { ELFRW_A64_LR = 30, ELFRW_A64_SP = 31 };

/* Bits FROM and up of W, N of them. */
static inline uint32_t elfrw_a64_bits(uint32_t w, unsigned from, unsigned n)
{
	return w >> from & ((1u << n) - 1);
}

/* Register R of an operand for which 31 is the zero register. */
static inline uint8_t elfrw_a64_or_zero(uint8_t r)
{
	return r == 31 ? ELFRW_REG_NONE : r;
}

static inline void elfrw_a64_result(struct elfrw_effect *e, uint8_t r)
{
	e->dst = r;
	e->writes |= elfrw_reg_bit(r);
}

/* The effect of load or store W, decoded as IN.  *E is that of no instruction.  aarch64_memory.c */
void elfrw_a64_memory(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e);
#endif
