/* aarch64_decode.h: the instruction decoder of AArch64 (A64, little-endian). */
#ifndef ELFRW_ARCH_AARCH64_DECODE_H
#define ELFRW_ARCH_AARCH64_DECODE_H
#include <stddef.h>
#include <stdint.h>

struct elfrw_insn;

/* Encoding groups of the Arm Architecture Reference Manual, section C4.1: what `opcode` of an
 * instruction is.  The groups that have a PC-relative field come first; the field's form depends on
 * the group alone. */
enum elfrw_a64_group {
	ELFRW_A64_NONE,
	ELFRW_A64_B,       /* b, bl: 26 bits from bit 0, in words */
	ELFRW_A64_B_COND,  /* b.cond, bc.cond: 19 bits from bit 5, in words */
	ELFRW_A64_CBZ,     /* cbz, cbnz: as B_COND */
	ELFRW_A64_LITERAL, /* ldr, ldrsw, prfm of a literal: as B_COND */
	ELFRW_A64_TBZ,     /* tbz, tbnz: 14 bits from bit 5, in words */
	ELFRW_A64_CB,      /* cbgt and the like: 9 bits from bit 5, in words */
	ELFRW_A64_ADR,     /* 21 bits: the low two at bit 29, the others from bit 5 */
	ELFRW_A64_ADRP,    /* as ADR, in pages of 4 KiB */
	ELFRW_A64_LAST_PCREL = ELFRW_A64_ADRP,
	ELFRW_A64_RESERVED, /* udf */
	ELFRW_A64_IMM,      /* data processing with an immediate, but for ADR and ADRP */
	ELFRW_A64_SYSTEM,   /* exceptions, hints, barriers, system registers */
	ELFRW_A64_JUMP,     /* branches through a register */
	ELFRW_A64_MEMORY,   /* loads and stores, but for LITERAL; prefetches */
	ELFRW_A64_REG,      /* data processing with registers */
	ELFRW_A64_FLOAT,    /* SIMD and floating point */
	ELFRW_A64_SVE,
	ELFRW_A64_SME,
};

/* Decodes the instruction at CODE (AVAIL bytes readable) whose address is VA.  Returns its length,
 * 4, and fills *INSN; returns 0 if AVAIL or VA allow no instruction, or the word is none (*INSN is
 * then undefined).  Of the groups FLOAT, SVE and SME, which grow each year, unallocated words count
 * as instructions.
 *
 * On top of arch.h's definitions: `opcode` is the group; no field is a run of whole bytes, so a
 * PC-relative field has offset 0 and size 4, and displacements and immediates have size 0
 * (but the number of brk #0x45e0 counts as a displacement, see x86-64's ud1); `target`
 * of an adrp is a page.  `reg` is the register in bits 0 to 4 if that is the result or what is
 * stored; `base` is the register of bits 5 to 9 in a memory operand, an addition of an immediate
 * and an indirect branch; 31 is the stack pointer, the zero register is ELFRW_REG_NONE.
 * ELFRW_INSN_LEA goes with adr and adrp.  ELFRW_INSN_ENDBR goes with all that an indirect branch
 * may lead to: bti with an operand, paciasp, pacibsp.  ELFRW_INSN_OWN is set if the operation has
 * 64 bits.  A `ret` through another register than x30 is an indirect jump; b.al is a jump. */
unsigned elfrw_a64_decode(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *insn);

/* For each of the first N of AVAIL bytes at CODE, which is at a multiple of 4: RET[i] is 0 if no
 * instruction that begins at byte i has a PC-relative field, else 1. */
void elfrw_a64_may_refer(const uint8_t *code, size_t avail, size_t n, uint8_t *ret);
#endif
