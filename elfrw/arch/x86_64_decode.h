/* x86_64_decode.h: the instruction decoder of x86-64 (64-bit mode). */
#ifndef ELFRW_ARCH_X86_64_DECODE_H
#define ELFRW_ARCH_X86_64_DECODE_H
#include <stddef.h>
#include <stdint.h>

struct elfrw_insn;

/* Decodes one instruction at CODE (AVAIL bytes readable) whose address is VA.  Returns its length,
 * 1 to 15, and fills *INSN; returns 0 for bytes that are no valid instruction or that AVAIL cuts
 * off (*INSN is then undefined).  The instruction formats are those of the Intel 64 manual, volume
 * 2, chapter 2 and appendix A, and of AMD's volumes 3 to 5 for XOP, 3DNow! and SSE4a.
 *
 * On top of arch.h's definitions: `own_map` is the opcode's map (0 one-byte, 1 0F, 2 0F38, 3 0F3A;
 * VEX, EVEX, XOP: 0x10 | map); `own_reg` is the register in ModRM.rm if mod is 3, else
 * ELFRW_REG_NONE; ELFRW_INSN_OWN is set if the operand has 64 bits (REX.W).  `reg` is ModRM.reg
 * with its REX extension, also where that field extends the opcode (80 /7: reg & 7 is 7), or the
 * register in the low bits of the opcode (push, pop, mov imm, xchg, bswap); the index of a
 * vector-indexed operand (gathers) keeps its low four bits; `off` fields whose size is 0 are
 * meaningless.  For `enter` the immediate is its 16-bit part.  F2/F3/66 before VEX, a misplaced
 * LOCK and the like make an instruction invalid; operand-size rules that only concern vector length
 * or W are not checked.
 *
 * A near branch or return with an operand-size prefix and no REX.W is decoded as Intel's processors
 * do (the prefix is ignored, rel32 stays), and flagged ELFRW_INSN_LONG_CALL, since AMD's take a
 * 16-bit displacement. */
unsigned elfrw_x86_decode(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *insn);

/* For each of the first N of AVAIL bytes at CODE: RET[i] is 0 if no instruction that begins at byte
 * i has a PC-relative field, else 1.  Much faster than decoding. */
void elfrw_x86_may_refer(const uint8_t *code, size_t avail, size_t n, uint8_t *ret);
#endif
