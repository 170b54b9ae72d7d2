/* aarch64_decode.c: the A64 instruction decoder, by the tables of the Arm Architecture Reference
 * Manual, section C4.1.
 *
 * All instructions are words of 4 bytes.  Bits 25 to 28 choose a function below, which says whether
 * the word is allocated, where control goes, and which registers an address in memory uses.  What
 * an instruction does beyond that is read from the word by aarch64_effect.c.
 *
 * Cost: one jump table and a few comparisons for each instruction. */
#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"

#define NO ELFRW_REG_NONE

/* Bits FROM and up, N of them. */
static inline uint32_t bits(uint32_t w, unsigned from, unsigned n)
{
	return w >> from & ((1u << n) - 1);
}

static inline uint64_t signed_bits(uint32_t w, unsigned from, unsigned n)
{
	return (uint64_t)((int64_t)(int32_t)(w << (32 - from - n)) >> (32 - n));
}

/* Register R of an operand for which 31 is the zero register. */
static inline uint8_t or_zero(uint32_t r)
{
	return r == 31 ? NO : (uint8_t)r;
}

static inline bool is_wide(uint32_t w)
{
	return w >> 31;
}

static bool put(struct elfrw_insn *in, unsigned group)
{
	in->opcode = (uint8_t)group;
	return true;
}

static bool put_kind(struct elfrw_insn *in, unsigned group, unsigned kind)
{
	in->kind = (uint8_t)kind;
	return put(in, group);
}

/* The instruction has a PC-relative field that names TARGET. */
static bool put_pcrel(struct elfrw_insn *in, unsigned group, unsigned kind, uint64_t target)
{
	in->pcrel_size = 4;
	in->target = target;
	return put_kind(in, group, kind);
}

/* --- C4.1.93: data processing, immediate --- */

/* DecodeBitMasks() of the manual is defined. */
static bool is_mask(uint32_t w)
{
	uint32_t n = bits(w, 22, 1), imms = bits(w, 10, 6), all = n << 6 | (~imms & 63);
	if (all < 2 || (n && !is_wide(w)))
		return false;
	unsigned len = 31 - (unsigned)__builtin_clz(all);
	uint32_t levels = (1u << len) - 1;
	return (imms & levels) != levels;
}

/* Bitfields and extracts: N is sf, and numbers of bits fit the width. */
static bool is_bit_number(uint32_t w)
{
	return bits(w, 22, 1) == w >> 31 && (is_wide(w) || !(w & (1u << 21 | 1u << 15)));
}

static bool extract(uint32_t w, struct elfrw_insn *in)
{
	if (bits(w, 22, 9) == 0x1ce && (w & 31) == 31 && is_wide(w)) { /* autiasppc */
		in->flags = ELFRW_INSN_LONG_CALL;
		return put(in, ELFRW_A64_SYSTEM);
	}
	return bits(w, 29, 2) == 0 && !(w & 1u << 21) && bits(w, 22, 1) == w >> 31 &&
	       (is_wide(w) || !(w & 1u << 15)) && put(in, ELFRW_A64_IMM);
}

/* Additions to tagged addresses; smax and the like. */
static bool add_tag(uint32_t w, struct elfrw_insn *in)
{
	bool tag = is_wide(w) && !(w & (1u << 29 | 1u << 22 | 3u << 14));
	bool choice = bits(w, 29, 2) == 0 && (w & 1u << 22) && bits(w, 18, 4) < 4;
	return (tag || choice) && put(in, ELFRW_A64_IMM);
}

static bool immediate(uint32_t w, uint64_t va, struct elfrw_insn *in)
{
	in->reg = or_zero(w & 31);
	switch (bits(w, 23, 3)) {
	case 0:
	case 1: {
		uint64_t n = signed_bits(w, 5, 19) << 2 | bits(w, 29, 2);
		in->flags = ELFRW_INSN_LEA | ELFRW_INSN_OWN;
		if (is_wide(w))
			return put_pcrel(in, ELFRW_A64_ADRP, ELFRW_INSN_OTHER,
					 (va & ~UINT64_C(0xfff)) + (n << 12));
		return put_pcrel(in, ELFRW_A64_ADR, ELFRW_INSN_OTHER, va + n);
	}
	case 2:
		in->base = bits(w, 5, 5);
		if (!(w & 1u << 29)) /* without flags */
			in->reg = w & 31;
		return put(in, ELFRW_A64_IMM);
	case 3: return add_tag(w, in);
	case 4:
		if (bits(w, 29, 2) != 3)
			in->reg = w & 31;
		return is_mask(w) && put(in, ELFRW_A64_IMM);
	case 5:
		return bits(w, 29, 2) != 1 && (is_wide(w) || !(w & 1u << 22)) &&
		       put(in, ELFRW_A64_IMM);
	case 6: return bits(w, 29, 2) != 3 && is_bit_number(w) && put(in, ELFRW_A64_IMM);
	default: return extract(w, in);
	}
}

/* --- C4.1.94: branches, exceptions, system instructions --- */

static bool exception(uint32_t w, struct elfrw_insn *in)
{
	unsigned what = bits(w, 21, 3), low = w & 31;
	switch (what) {
	case 0: /* svc, hvc, smc */ return low >= 1 && low <= 3 && put(in, ELFRW_A64_SYSTEM);
	case 1: /* brk; this number is the signature in front of where the kernel aborts restartable
		   sequences (rseq), so it belongs to what follows */
		in->disp_size = bits(w, 5, 16) == 0x45e0 ? 2 : 0;
		return low == 0 && put_kind(in, ELFRW_A64_SYSTEM, ELFRW_INSN_TRAP);
	case 2: /* hlt */ return low == 0 && put_kind(in, ELFRW_A64_SYSTEM, ELFRW_INSN_TRAP);
	case 3: /* tcancel */
		in->flags = ELFRW_INSN_LONG_CALL;
		return low == 0 && put(in, ELFRW_A64_SYSTEM);
	case 5: /* dcps */ return low >= 1 && low <= 3 && put(in, ELFRW_A64_SYSTEM);
	default: return false;
	}
}

/* Number HINT of the hints.  An unknown one is a no-op, but not one that fills gaps. */
static bool hint(unsigned number, struct elfrw_insn *in)
{
	if (number == 0)
		in->kind = ELFRW_INSN_NOP;
	else if (number == 25 || number == 27 || number == 34 || number == 36 || number == 38)
		in->flags = ELFRW_INSN_ENDBR; /* paciasp, pacibsp, bti c, j, jc */
	return put(in, ELFRW_A64_SYSTEM);
}

/* Without system registers: hints, barriers, flags of the processor's state. */
static bool system_plain(uint32_t w, struct elfrw_insn *in)
{
	unsigned op1 = bits(w, 16, 3), crn = bits(w, 12, 4), crm = bits(w, 8, 4),
		 op2 = bits(w, 5, 3);
	bool none = (w & 31) == 31;
	if (w & 1u << 21) { /* tstart, ttest */
		in->flags = op2 == 3 && crm == 0 ? ELFRW_INSN_LONG_CALL : 0;
		return op1 == 3 && crn == 3 && op2 == 3 && crm < 2 && put(in, ELFRW_A64_SYSTEM);
	}
	if (crn == 1) /* wfet, wfit */
		return op1 == 3 && crm == 0 && op2 < 2 && put(in, ELFRW_A64_SYSTEM);
	if (!none)
		return false;
	if (crn == 2)
		return op1 == 3 && hint(crm << 3 | op2, in);
	if (crn == 3) /* tcommit; clrex and barriers */
		return op1 == 3 && (op2 != 0 && (op2 != 3 || crm == 0)) &&
		       put(in, ELFRW_A64_SYSTEM);
	return crn == 4 && put(in, ELFRW_A64_SYSTEM);
}

static bool system(uint32_t w, struct elfrw_insn *in)
{
	unsigned op0 = bits(w, 19, 2);
	in->reg = or_zero(w & 31);
	if (w & 1u << 23)
		return false;
	if (w & 1u << 22) /* pairs of registers */
		return op0 != 0 && put(in, ELFRW_A64_SYSTEM);
	return op0 == 0 ? system_plain(w, in) : put(in, ELFRW_A64_SYSTEM);
}

/* The last field of a branch through a register: 0, with a key 31 where the modifier is no
 * register. */
static bool is_plain_jump(uint32_t w)
{
	unsigned key = bits(w, 10, 6), last = w & 31;
	return (key == 0 && last == 0) || ((key == 2 || key == 3) && last == 31);
}

static bool jump_register(uint32_t w, struct elfrw_insn *in)
{
	unsigned key = bits(w, 10, 6), rn = bits(w, 5, 5);
	if (bits(w, 16, 5) != 31)
		return false;
	in->base = or_zero(rn);
	switch (bits(w, 21, 4)) {
	case 0: return is_plain_jump(w) && put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_JMP_IND);
	case 1: return is_plain_jump(w) && put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_CALL_IND);
	case 2:
		if (key) { /* retaa; retaasppcr names another register */
			in->flags = (w & 31) != 31 ? ELFRW_INSN_LONG_CALL : 0;
			in->base = 30;
			return (key == 2 || key == 3) && rn == 31 &&
			       put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_RET);
		}
		return (w & 31) == 0 &&
		       put_kind(in, ELFRW_A64_JUMP, rn == 30 ? ELFRW_INSN_RET : ELFRW_INSN_JMP_IND);
	case 4: /* eret */
	case 5: /* drps */
		in->flags = ELFRW_INSN_LONG_CALL;
		return rn == 31 && is_plain_jump(w) && (!(w & 1u << 21) || key == 0) &&
		       put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_RET);
	case 8: return (key == 2 || key == 3) && put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_JMP_IND);
	case 9: return (key == 2 || key == 3) && put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_CALL_IND);
	default: return false;
	}
}

/* Comparison and branch in one (FEAT_CMPBR). */
static bool compare_and_branch(uint32_t w, uint64_t va, struct elfrw_insn *in)
{
	unsigned cond = bits(w, 21, 3), size = bits(w, 14, 2);
	bool known = w & 1u << 24 ? !(size & 1) : size == 0 || (size > 1 && !is_wide(w));
	return !(w & 1u << 25) && cond != 4 && cond != 5 && known &&
	       put_pcrel(in, ELFRW_A64_CB, ELFRW_INSN_JCC, va + (signed_bits(w, 5, 9) << 2));
}

static bool branch(uint32_t w, uint64_t va, struct elfrw_insn *in)
{
	uint64_t near = va + (signed_bits(w, 5, 19) << 2);
	switch (bits(w, 29, 2)) {
	case 0:
		return put_pcrel(in, ELFRW_A64_B, is_wide(w) ? ELFRW_INSN_CALL : ELFRW_INSN_JMP,
				 va + (signed_bits(w, 0, 26) << 2));
	case 1:
		in->reg = or_zero(w & 31);
		if (w & 1u << 25)
			return put_pcrel(in, ELFRW_A64_TBZ, ELFRW_INSN_JCC,
					 va + (signed_bits(w, 5, 14) << 2));
		return put_pcrel(in, ELFRW_A64_CBZ, ELFRW_INSN_JCC, near);
	case 3: return compare_and_branch(w, va, in);
	default: break;
	}
	if (!is_wide(w)) {
		if (bits(w, 24, 2) == 0) /* always: b.al, b.nv */
			return put_pcrel(in, ELFRW_A64_B_COND,
					 (w & 14) == 14 ? ELFRW_INSN_JMP : ELFRW_INSN_JCC, near);
		in->flags = ELFRW_INSN_LONG_CALL; /* retaasppc */
		return bits(w, 22, 4) == 4 && (w & 31) == 31 &&
		       put_kind(in, ELFRW_A64_JUMP, ELFRW_INSN_RET);
	}
	switch (bits(w, 24, 2)) {
	case 0: return exception(w, in);
	case 1: return system(w, in);
	default: return jump_register(w, in);
	}
}

/* --- C4.1.95: loads and stores --- */

/* SIMD registers: the size of the access in powers of 2, or 8: there is none. */
static unsigned vector_size(uint32_t w)
{
	if (!(w & 1u << 23))
		return w >> 30;
	return w >> 30 == 0 ? 4 : 8;
}

/* A single register; PREFETCH: it may be the name of a kind of prefetch.  Branches by these bits
 * would not be predicted. */
static inline bool single(uint32_t w, bool prefetch, struct elfrw_insn *in)
{
	/* Bit N: access N, by bits 26, 31, 30, 23 and 22 of the word. */
	static const uint32_t access = 0x333f37ff, name = 1u << 14;
	unsigned n = bits(w, 26, 1) << 4 | bits(w, 30, 2) << 2 | bits(w, 22, 2);
	return ((access | (prefetch ? name : 0)) >> n & 1) && put(in, ELFRW_A64_MEMORY);
}

static bool register_offset(uint32_t w, struct elfrw_insn *in)
{
	unsigned size = w & 1u << 26 ? vector_size(w) : w >> 30;
	in->index = or_zero(bits(w, 16, 5));
	in->scale = w & 1u << 12 ? (uint8_t)(1u << (size & 7)) : 1;
	return (w & 1u << 14) && single(w, true, in);
}

/* Read, change and write in one; ldapr; 64 bytes at once. */
static bool atomic(uint32_t w, struct elfrw_insn *in)
{
	unsigned op = bits(w, 12, 4), order = bits(w, 22, 2), size = w >> 30;
	bool none = bits(w, 16, 5) == 31;
	if (w & 1u << 26) /* of floating point */
		return put(in, ELFRW_A64_MEMORY);
	bool known = op < 9 || (op == 12 && order == 2 && none);
	if (op == 9 || op == 13)
		known = size == 3 && order == 0 && none;
	else if (op == 10 || op == 11)
		known = size == 3 && order == 0;
	if (size < 2 && op > 8 && op < 12) /* rcwclr, rcwswp, rcwset */
		known = true;
	return known && put(in, ELFRW_A64_MEMORY);
}

static bool one_register(uint32_t w, struct elfrw_insn *in)
{
	bool vector = w & 1u << 26;
	if (w & 1u << 24)
		return single(w, true, in);
	unsigned how = bits(w, 10, 2);
	if (!(w & 1u << 21))
		return (how != 2 || !vector) && single(w, how == 0, in);
	if (how == 0)
		return atomic(w, in);
	if (how == 2)
		return register_offset(w, in);
	/* ldraa */
	return w >> 30 == 3 && !vector && put(in, ELFRW_A64_MEMORY);
}

static bool pair(uint32_t w, struct elfrw_insn *in)
{
	unsigned opc = w >> 30;
	if (opc == 1 && !(w & 1u << 26)) /* ldpsw, stgp, neither without a cache */
		return bits(w, 23, 2) != 0 && put(in, ELFRW_A64_MEMORY);
	return opc != 3 && put(in, ELFRW_A64_MEMORY);
}

/* Of unscaled offsets with an order, tags, copies of memory, and 128-bit atomics. */
static bool ordered(uint32_t w, struct elfrw_insn *in)
{
	unsigned size = w >> 30, opc = bits(w, 22, 2), how = bits(w, 10, 2);
	bool known = false;
	if (w & 1u << 26) {
		if (how == 1) {
			known = size == 0 && !(w & 1u << 21);
			in->base = NO;
		} else
			known = how == 2 && !(w & 1u << 21) && vector_size(w) < 8;
	} else if (w & 1u << 21) {
		/* Tags; ldclrp, ldsetp, swpp; rcwclrp and the like; rcwcas */
		unsigned op = bits(w, 12, 4);
		known = size == 3 || (size == 0 && how == 0 && (op == 1 || op == 3 || op == 8)) ||
			(size < 2 && ((how == 0 && op > 8 && op < 12) || (how > 1 && op == 0)));
		if (size == 3 && how == 0)
			known = opc == 1 || bits(w, 12, 9) == 0;
	} else if (how == 0) {
		known = size == 3 ? opc < 2 : size == 2 ? opc < 3 : true;
	} else if (how == 1) { /* copies and fills: three registers, none is a base */
		known = size == 0;
		in->base = NO;
	} else if (how == 2) {
		known = size >= 2;
	} else {
		known = size == 3 && opc == 0;
	}
	return known && put(in, ELFRW_A64_MEMORY);
}

/* ld1 to ld4, st1 to st4. */
static bool structures(uint32_t w, struct elfrw_insn *in)
{
	static const uint16_t multiple =
		1u << 0 | 1u << 2 | 1u << 4 | 1u << 6 | 1u << 7 | 1u << 8 | 1u << 10;
	bool post = w & 1u << 23, alone = w & 1u << 24;
	if (is_wide(w) || (!post && bits(w, 16, 5) != 0 && !alone))
		return false;
	if (alone)
		return (post || bits(w, 16, 5) < 2) && put(in, ELFRW_A64_MEMORY);
	return !(w & 1u << 21) && (multiple >> bits(w, 12, 4) & 1) && put(in, ELFRW_A64_MEMORY);
}

/* Exclusive and ordered accesses, comparison and swap. */
static bool exclusive(uint32_t w, struct elfrw_insn *in)
{
	bool swap = (w & 1u << 21) && ((w & 1u << 23) || !is_wide(w));
	return !(w & 1u << 24) && (!swap || bits(w, 10, 5) == 31) && put(in, ELFRW_A64_MEMORY);
}

static bool literal(uint32_t w, uint64_t va, struct elfrw_insn *in)
{
	bool vector = w & 1u << 26;
	in->base = NO;
	in->reg = vector || w >> 30 == 3 ? NO : or_zero(w & 31);
	return !(vector && w >> 30 == 3) && put_pcrel(in, ELFRW_A64_LITERAL, ELFRW_INSN_OTHER,
						      va + (signed_bits(w, 5, 19) << 2));
}

static bool memory(uint32_t w, uint64_t va, struct elfrw_insn *in)
{
	in->flags = ELFRW_INSN_MEM;
	in->base = bits(w, 5, 5);
	in->reg = w & 1u << 26 ? NO : or_zero(w & 31);
	switch (bits(w, 28, 2)) {
	case 0:
		if (w & 1u << 26)
			return structures(w, in);
		return exclusive(w, in);
	case 1: return w & 1u << 24 ? ordered(w, in) : literal(w, va, in);
	case 2: return pair(w, in);
	default: return one_register(w, in);
	}
}

/* --- C4.1.96: data processing, registers --- */

static bool two_sources(uint32_t w)
{
	/* Bit N: operation N has 32 bits, and 64. */
	static const uint32_t narrow = 0x0f770f0c, wide = 0x0f881f3d;
	unsigned op = bits(w, 10, 6);
	if (w & 1u << 29)
		return op == 0 && is_wide(w); /* subps */
	return op < 32 && ((is_wide(w) ? wide : narrow) >> op & 1);
}

static bool one_source(uint32_t w, struct elfrw_insn *in)
{
	unsigned op = bits(w, 10, 6), more = bits(w, 16, 5);
	if (w & 1u << 29)
		return false;
	if (more == 0)
		return op < 9 && (op != 3 || is_wide(w));
	if (more != 1 || !is_wide(w))
		return false;
	if (op >= 32) { /* pacnbiasppc, paciasppc, pacia171615 and so on; autiasppcr Xn */
		const uint64_t fixed = UINT64_C(0xc30f) << 32;
		in->flags = ELFRW_INSN_LONG_CALL;
		return (w & 31) == 30 &&
		       (op >> 1 == 18 || ((fixed >> op & 1) && bits(w, 5, 5) == 31));
	}
	/* Keys: without a modifier bits 5 to 9 are all set. */
	return op < 8 || (op < 18 && bits(w, 5, 5) == 31);
}

static bool three_sources(uint32_t w)
{
	unsigned op = bits(w, 21, 3) << 1 | bits(w, 15, 1);
	if (bits(w, 29, 2))
		return false;
	return op < 2 || (is_wide(w) && (op <= 4 || op == 6 || op == 7 || (op >= 10 && op <= 12)));
}

/* adc; rmif, setf8; addpt */
static bool carry(uint32_t w)
{
	unsigned op = bits(w, 10, 6);
	if (op == 0)
		return true;
	if ((op & 31) == 1 || (op & 15) == 2) {
		bool rotate = (op & 31) == 1;
		if (bits(w, 29, 2) != 1)
			return false;
		return rotate ? is_wide(w) && !(w & 16)
			      : !is_wide(w) && bits(w, 15, 6) == 0 && (w & 31) == 13;
	}
	return op >> 3 == 1 && is_wide(w) && !(w & 1u << 29);
}

static bool with_flags(uint32_t w, struct elfrw_insn *in)
{
	switch (bits(w, 21, 3)) {
	case 0: return carry(w);
	case 2: return (w & 1u << 29) && !(w & (1u << 10 | 1u << 4));
	case 4: return !(w & (1u << 29 | 1u << 11));
	case 6: return w & 1u << 30 ? one_source(w, in) : two_sources(w);
	default: return false;
	}
}

static bool registers(uint32_t w, struct elfrw_insn *in)
{
	bool known;
	in->reg = or_zero(w & 31);
	if (w & 1u << 28) {
		known = w & 1u << 24 ? three_sources(w) : with_flags(w, in);
	} else {
		/* Numbers, since branches by these bits would not be predicted. */
		unsigned logical = !bits(w, 24, 1), extended = bits(w, 24, 1) & bits(w, 21, 1),
			 fits = bits(w, 31, 1) | !bits(w, 15, 1);
		known = extended ? bits(w, 22, 2) == 0 && bits(w, 10, 3) <= 4
				 : fits & (logical | (bits(w, 22, 2) != 3));
		/* Without flags: the stack pointer. */
		if (extended && !bits(w, 29, 1))
			in->reg = w & 31;
	}
	return known && put(in, ELFRW_A64_REG);
}

unsigned elfrw_a64_decode(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *in)
{
	if (avail < 4 || (va & 3))
		return 0;
	uint32_t w = elfrw_get32(code);
	*in = (struct elfrw_insn){ .len = 4,
				   .kind = ELFRW_INSN_OTHER,
				   .reg = NO,
				   .own_reg = NO,
				   .base = NO,
				   .index = NO,
				   .scale = 1 };
	bool known = false;
	switch (bits(w, 25, 4)) {
	case 0:
		if (is_wide(w))
			known = put(in, ELFRW_A64_SME);
		else
			known = w >> 16 == 0 && put_kind(in, ELFRW_A64_RESERVED, ELFRW_INSN_TRAP);
		break;
	case 2:
		in->flags = is_wide(w) ? ELFRW_INSN_MEM : 0;
		known = put(in, ELFRW_A64_SVE);
		break;
	case 8:
	case 9: known = immediate(w, va, in); break;
	case 10:
	case 11: known = branch(w, va, in); break;
	case 4:
	case 6:
	case 12:
	case 14: known = memory(w, va, in); break;
	case 5:
	case 13: known = registers(w, in); break;
	case 7:
	case 15: known = put(in, ELFRW_A64_FLOAT); break;
	default: break;
	}
	if (is_wide(w))
		in->flags |= ELFRW_INSN_OWN;
	return known ? 4 : 0;
}

void elfrw_a64_may_refer(const uint8_t *code, size_t avail, size_t n, uint8_t *ret)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t w = i + 4 <= avail ? elfrw_get32(code + i) : 0;
		bool system = w >> 26 == 0x35;
		ret[i] = (w & 0x1f000000) == 0x10000000 || /* adr, adrp */
			 (w & 0x3b000000) == 0x18000000 || /* a literal */
			 ((w & 0x1c000000) == 0x14000000 && !system);
	}
}
