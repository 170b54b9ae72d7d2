/* aarch64_judge.c: the verifier's own account of AArch64 instructions: judge.h.  Written from the
 * encoding index of the Arm Architecture Reference Manual (C4.1); it reads the instruction's word
 * and shares nothing with aarch64_effect.c.
 *
 * Cost: a few tests of bits; only moves, sums, loads and stores of 8 bytes are told in full. */
#include "elfrw/arch/aarch64.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/rbuf.h"

enum { FP = 29, LR = 30, SP = 31 };

static unsigned bits(uint32_t w, unsigned at, unsigned n)
{
	return w >> at & ((1u << n) - 1);
}

static int64_t sign(uint64_t v, unsigned n)
{
	uint64_t top = UINT64_C(1) << (n - 1);
	return (int64_t)((v ^ top) - top);
}

/* The set of register R.  as_number: 31 is the zero register; as_base: the stack pointer. */
static uint32_t as_number(unsigned r)
{
	return r == SP ? 0 : UINT32_C(1) << r;
}
static uint32_t as_base(unsigned r)
{
	return UINT32_C(1) << r;
}

/* What a word reads and writes of the general registers.  BASE: the one that a memory operand or an
 * addition of a constant begins with; it is not among `reads`, unless it is read in another way,
 * too. */
struct use {
	bool known;
	uint32_t base, reads, writes;
};

/* C4.1.86: data processing with a constant. */
static struct use constant(uint32_t w)
{
	unsigned rd = bits(w, 0, 5), rn = bits(w, 5, 5), rm = bits(w, 16, 5);
	bool flags = bits(w, 29, 1);
	switch (bits(w, 23, 3)) {
	case 0:
	case 1: return (struct use){ true, 0, 0, as_number(rd) };
	case 2: return (struct use){ true, as_base(rn), 0, flags ? as_number(rd) : as_base(rd) };
	case 3: return (struct use){ true, 0, as_base(rn), as_base(rd) };
	case 4:
		return (struct use){ true, 0, as_number(rn),
				     bits(w, 29, 2) == 3 ? as_number(rd) : as_base(rd) };
	case 5:
		return (struct use){ true, 0, bits(w, 29, 2) == 3 ? as_number(rd) : 0,
				     as_number(rd) };
	case 6:
		return (struct use){ true, 0,
				     as_number(rn) | (bits(w, 29, 2) == 1 ? as_number(rd) : 0),
				     as_number(rd) };
	default: return (struct use){ true, 0, as_number(rn) | as_number(rm), as_number(rd) };
	}
}

/* C4.1.87: hints.  Some sign an address, check a signature, or strip it. */
static struct use hint(uint32_t w)
{
	const uint32_t pac =
		as_number(LR) | as_number(15) | as_number(16) | as_number(17) | as_base(SP);
	unsigned n = bits(w, 5, 7);
	if (n <= 6 || (n >= 32 && n <= 38) || n == 16 || n == 18 || n == 20)
		return (struct use){ .known = true };
	if (n >= 24 && n <= 31) /* PACIA, PACIB, AUTIA, AUTIB, each with Z or SP */
		return (struct use){ true, 0, as_number(LR) | as_base(SP), as_number(LR) };
	switch (n) {
	case 7: /* XPACLRI */ return (struct use){ true, 0, as_number(LR), as_number(LR) };
	case 8:  /* PACIA1716 */
	case 10: /* PACIB1716 */
	case 12: /* AUTIA1716 */
	case 14: /* AUTIB1716 */
		return (struct use){ true, 0, as_number(16) | as_number(17), as_number(17) };
	case 39: /* PACM: the next instruction reads more, AUTIASP register 16 */
		return (struct use){ true, 0, pac, 0 };
	case 40: /* CHKFEAT */ return (struct use){ true, 0, as_number(16), as_number(16) };
	default: return (struct use){ true, 0, pac, n >= 24 ? as_number(LR) : 0 };
	}
}

/* C4.1.87: branches, exceptions, system instructions. */
static struct use control(uint32_t w)
{
	unsigned rt = bits(w, 0, 5), rn = bits(w, 5, 5);
	if (bits(w, 26, 5) == 5) /* B, BL */
		return (struct use){ true, 0, 0, w >> 31 ? as_number(LR) : 0 };
	if (bits(w, 25, 6) == 0x1a || bits(w, 25, 6) == 0x1b) /* CBZ, TBZ and their opposites */
		return (struct use){ true, 0, as_number(rt), 0 };
	if (w >> 24 == 0x54)
		return (struct use){ .known = true };
	if (w >> 25 == 0x6b) { /* through a register */
		bool link = bits(w, 21, 2) == 1, key = bits(w, 11, 1);
		uint32_t reads = as_number(rn);
		if (key)
			reads |= as_number(rt) | as_base(SP);
		return (struct use){ true, 0, reads, link ? as_number(LR) : 0 };
	}
	if ((w & 0xfffff01f) == 0xd503201f)
		return hint(w);
	if ((w & 0xfffff000) == 0xd5033000) /* barriers */
		return (struct use){ .known = true };
	if ((w & 0xfff00000) == 0xd5300000) /* MRS */
		return (struct use){ true, 0, 0, as_number(rt) };
	if ((w & 0xfff00000) == 0xd5100000) /* MSR */
		return (struct use){ true, 0, as_number(rt), 0 };
	return (struct use){ 0 };
}

/* A load or store of RT, and RT2 if it is a register; BACK: the base gets a new value. */
static struct use access(uint32_t w, bool load, unsigned rt2, bool back)
{
	unsigned rt = bits(w, 0, 5), rn = bits(w, 5, 5);
	uint32_t moved =
		bits(w, 26, 1) ? 0 : as_number(rt) | (rt2 == ELFRW_REG_NONE ? 0 : as_number(rt2));
	struct use u = { true, as_base(rn), load ? 0 : moved, load ? moved : 0 };
	if (back) {
		u.reads |= as_base(rn);
		u.writes |= as_base(rn);
	}
	return u;
}

/* The rest of C4.1.88: structures of vectors; exclusive and ordered accesses. */
static struct use structures(uint32_t w)
{
	unsigned rt = bits(w, 0, 5), rn = bits(w, 5, 5), rs = bits(w, 16, 5);
	if ((w & 0xbe000000) ==
	    0x0c000000) { /* bit 23: the base is changed, by a register or not */
		bool back = bits(w, 23, 1);
		return (struct use){ true, as_base(rn), back ? as_base(rn) | as_number(rs) : 0,
				     back ? as_base(rn) : 0 };
	}
	bool ordered = bits(w, 23, 1), load = bits(w, 22, 1), swap = bits(w, 21, 1);
	if ((w & 0x3f000000) != 0x08000000 || (swap && !ordered)) /* pairs */
		return (struct use){ 0 };
	if (swap)
		return (struct use){ true, as_base(rn), as_number(rs) | as_number(rt),
				     as_number(rs) };
	if (load)
		return (struct use){ true, as_base(rn), 0, as_number(rt) };
	return (struct use){ true, as_base(rn), as_number(rt), ordered ? 0 : as_number(rs) };
}

/* C4.1.88: loads and stores. */
static struct use memory(uint32_t w)
{
	unsigned rt = bits(w, 0, 5), rs = bits(w, 16, 5), opc = bits(w, 22, 2);
	bool vector = bits(w, 26, 1);
	bool prefetch = !vector && w >> 30 == 3 && opc == 2;
	if ((w & 0x3b000000) == 0x18000000) /* of a literal; the last is a prefetch */
		return (struct use){ true, 0, 0, vector || w >> 30 == 3 ? 0 : as_number(rt) };
	if ((w & 0x3a000000) == 0x28000000) /* pairs */
		return access(w, opc & 1, bits(w, 10, 5), bits(w, 23, 1));
	if (prefetch && (w & 0x3b200c00) == 0x38200800)
		return (struct use){ true, 0, as_base(bits(w, 5, 5)) | as_number(rs), 0 };
	if (prefetch && (w & 0x3b000000) == 0x39000000)
		return (struct use){ true, as_base(bits(w, 5, 5)), 0, 0 };
	if ((w & 0x3b000000) == 0x39000000) /* with an unsigned offset */
		return access(w, opc, ELFRW_REG_NONE, false);
	if ((w & 0x3b200000) == 0x38000000) /* with a signed offset */
		return prefetch ? (struct use){ true, as_base(bits(w, 5, 5)), 0, 0 }
				: access(w, opc, ELFRW_REG_NONE, bits(w, 10, 1));
	if ((w & 0x3b200c00) == 0x38200800) { /* with an index */
		struct use u = access(w, opc, ELFRW_REG_NONE, false);
		u.reads |= u.base | as_number(rs);
		return u;
	}
	/* Read, change, write.  Stores of 64 bytes have numbers among these. */
	if ((w & 0x3b200c00) == 0x38200000 && !vector && (!bits(w, 15, 1) || !(bits(w, 12, 2))))
		return (struct use){ true, 0, as_base(bits(w, 5, 5)) | as_number(rs),
				     as_number(rt) };
	return structures(w);
}

/* C4.1.89: data processing with registers. */
static struct use registers(uint32_t w)
{
	unsigned rd = bits(w, 0, 5), rn = bits(w, 5, 5), rm = bits(w, 16, 5), ra = bits(w, 10, 5);
	struct use u = { true, 0, as_number(rn) | as_number(rm), as_number(rd) };
	if (!bits(w, 28, 1)) {
		/* Extended registers: the first operand and the result may be the stack pointer. */
		if (bits(w, 24, 1) && bits(w, 21, 1)) {
			u.reads |= as_base(rn);
			u.writes = bits(w, 29, 1) ? as_number(rd) : as_base(rd);
		}
		return u;
	}
	switch (bits(w, 21, 4)) {
	case 0: /* with a carry; flags from a register */
		if (bits(w, 10, 6))
			return (struct use){ true, 0, as_number(rn), 0 };
		return u;
	case 2: /* comparison on a condition, with a register or a number */
		return (struct use){ true, 0, as_number(rn) | (bits(w, 11, 1) ? 0 : as_number(rm)),
				     0 };
	case 4: return u; /* selection */
	case 6:           /* one or two sources; signatures read the result and a base, too */
		if (bits(w, 30, 1) && !bits(w, 16, 5)) /* bits and bytes are turned or counted */
			return (struct use){ true, 0, as_number(rn), as_number(rd) };
		if (!bits(w, 30, 1) && bits(w, 10, 6) >> 1 == 1) /* division */
			return u;
		if (!bits(w, 30, 1) && bits(w, 10, 6) >> 2 == 2) /* shifts */
			return u;
		u.reads |= as_number(rd) | as_base(rn) | as_base(rm);
		return u;
	default: /* three sources */
		u.reads |= as_number(ra);
		return bits(w, 24, 1) ? u : (struct use){ 0 };
	}
}

/* C4.1.90: vectors and floating point.  Which of them read or write a general register differs by
 * instruction; whoever names one of the same number is taken to read it, and nothing is told of
 * what is written where it could be one. */
static struct use vectors(uint32_t w)
{
	unsigned rd = bits(w, 0, 5), rn = bits(w, 5, 5);
	if ((w & 0x5f20fc00) == 0x1e200000) { /* between floating point and a general register */
		unsigned op = bits(w, 16, 3);
		bool from = op == 2 || op == 3 || op == 7;
		return from ? (struct use){ true, 0, as_number(rn), 0 }
			    : (struct use){ true, 0, 0, as_number(rd) };
	}
	if ((w & 0x5f200000) == 0x1e000000) /* the same, in fixed point */
		return bits(w, 17, 1) ? (struct use){ true, 0, as_number(rn), 0 }
				      : (struct use){ true, 0, 0, as_number(rd) };
	if ((w & 0x9fe08400) == 0x0e000400) { /* copies of elements */
		unsigned op = bits(w, 11, 4);
		if (bits(w, 29, 1) || op == 0)
			return (struct use){ .known = true };
		return op == 1 || op == 3 ? (struct use){ true, 0, as_number(rn), 0 }
					  : (struct use){ true, 0, 0, as_number(rd) };
	}
	return (struct use){ .known = true };
}

static struct use use_of(uint32_t w)
{
	switch (bits(w, 25, 4)) {
	case 8:
	case 9: return constant(w);
	case 10:
	case 11: return control(w);
	case 4:
	case 6:
	case 12:
	case 14: return memory(w);
	case 5:
	case 13: return registers(w);
	case 7:
	case 15: return vectors(w);
	default: return (struct use){ 0 };
	}
}

/* The form of W's field that is the low half of an address in the register U->base: of an addition,
 * or of a load or store with an unsigned offset. */
static bool has_low(uint32_t w, unsigned *scale)
{
	if ((w & 0xffc00000) == 0x91000000) { /* ADD, 64 bits, not shifted */
		*scale = 0;
		return true;
	}
	if ((w & 0x3b000000) != 0x39000000)
		return false;
	bool whole = bits(w, 26, 1) && bits(w, 23, 1);
	*scale = whole ? 4 : w >> 30;
	/* The offset must be in the page. */
	return bits(w, 10, 12) << *scale < 4096;
}

static bool half(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_half_use *ret)
{
	uint32_t w = elfrw_get32(code);
	struct use u = use_of(w);
	unsigned scale;
	(void)in;
	*ret = (struct elfrw_half_use){ .reads = u.reads, .writes = u.writes };
	if (!u.known)
		return false;
	if (has_low(w, &scale)) {
		ret->low = (uint8_t)(ELFRW_A64_LOW12 + scale);
		ret->base = (uint8_t)bits(w, 5, 5);
	} else
		ret->reads |= u.base;
	return true;
}

static void moves(struct elfrw_judgement *j, unsigned kind, unsigned to, unsigned from)
{
	j->kind = (uint8_t)kind;
	j->to = (uint8_t)to;
	j->from = (uint8_t)from;
}

/* The memory operand's displacement: scaled and unsigned, or signed. */
static int64_t displacement(uint32_t w)
{
	if ((w & 0x3a000000) == 0x28000000)
		return sign(bits(w, 15, 7), 7) * (1 << (bits(w, 26, 1) ? 2 + (w >> 30)
							: w >> 31      ? 3
								       : 2));
	if ((w & 0x3b000000) != 0x39000000)
		return sign(bits(w, 12, 9), 9);
	bool whole = bits(w, 26, 1) && bits(w, 23, 1);
	return (int64_t)bits(w, 10, 12) << (whole ? 4 : w >> 30);
}

/* Additions and moves of 8 bytes; false: W is none of these. */
static bool sums(uint32_t w, struct elfrw_judgement *j)
{
	unsigned rd = bits(w, 0, 5), rn = bits(w, 5, 5), rm = bits(w, 16, 5);
	if ((w & 0xbf800000) == 0x91000000) { /* ADD, SUB with a number */
		int64_t n = (int64_t)bits(w, 10, 12) << (bits(w, 22, 1) ? 12 : 0);
		if (!n) {
			moves(j, ELFRW_JUDGE_COPY, rd, rn);
			return true;
		}
		if (rd != rn)
			return false;
		moves(j, ELFRW_JUDGE_ADD, rd, ELFRW_REG_NONE);
		j->number = bits(w, 30, 1) ? -n : n;
		return true;
	}
	if ((w & 0xffe0ffe0) == 0xaa0003e0 && rd != SP && rm != SP) { /* ORR of zero and RM */
		moves(j, ELFRW_JUDGE_COPY, rd, rm);
		return true;
	}
	if ((w & 0xffe0fc00) == 0x8b000000 && rd != SP && rn != SP && rm != SP &&
	    (rd == rn || rd == rm)) {
		moves(j, ELFRW_JUDGE_SUM, rd, rd == rn ? rm : rn);
		return true;
	}
	return false;
}

static void look(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_judgement *ret)
{
	uint32_t w = elfrw_get32(code);
	struct use u = use_of(w);
	unsigned rt = bits(w, 0, 5);
	*ret = (struct elfrw_judgement){ .kind = ELFRW_JUDGE_UNKNOWN,
					 .to = ELFRW_REG_NONE,
					 .from = ELFRW_REG_NONE };
	if (in->flags & ELFRW_INSN_MEM)
		ret->disp = displacement(w);
	if (!u.known || sums(w, ret))
		return;
	ret->kind = ELFRW_JUDGE_SET;
	ret->lost = u.writes;
	/* Loads and stores of 8 bytes without a change of the base. */
	bool plain = (w & 0xfb000000) == 0xf9000000 || (w & 0xfb200c00) == 0xf8000000;
	bool vector = bits(w, 26, 1);
	if (plain && !vector && bits(w, 22, 2) == 1 && rt != SP) {
		moves(ret, ELFRW_JUDGE_LOAD, rt, ELFRW_REG_NONE);
		ret->lost = 0;
	} else if (plain && !vector && bits(w, 22, 2) == 0 && rt != SP) {
		moves(ret, ELFRW_JUDGE_STORE, ELFRW_REG_NONE, rt);
		ret->lost = 0;
	} else if (in->flags & ELFRW_INSN_MEM && !(in->flags & ELFRW_INSN_LEA))
		/* Loads write no memory; to say that they do costs nothing. */
		ret->kind = ELFRW_JUDGE_WRITE;
}

/* C6.2.179 (LDR, literal), C6.2.193 (LDRSW, literal), C6.2.266 (PRFM, literal), C7.2.205 (LDR,
 * literal, SIMD&FP); the same with an immediate offset: C6.2.177 and after, C7.2.202. */
static bool loads(const uint8_t *code, unsigned *size, bool *number)
{
	uint32_t w = elfrw_get32(code);
	unsigned opc = bits(w, 30, 2);
	*number = !bits(w, 26, 1);
	if (bits(w, 27, 3) == 3 && bits(w, 24, 2) == 0) {
		static const uint8_t general[] = { 4, 8, 4, 0 }, vector[] = { 4, 8, 16, 0 };
		*size = *number ? general[opc] : vector[opc];
		return *number || opc != 3;
	}
	if (bits(w, 27, 3) != 7 || bits(w, 24, 2) != 1)
		return false;
	switch (bits(w, 22, 2)) {
	case 0: return false;
	case 1: *size = 1u << opc; return true;
	case 2:
		*size = opc == 3 ? 0 : 1u << opc; /* sign-extended, or a prefetch */
		return *number;
	default: *size = *number ? 1u << opc : 16; return *number ? opc < 2 : opc == 0;
	}
}

/* Is W a load or a store (C4.1.88)? */
static bool is_access(uint32_t w)
{
	unsigned group = bits(w, 25, 4);
	return group == 4 || group == 6 || group == 12 || group == 14;
}

/* Cortex-A53 MPCore Software Developers Errata Notice, 843419: ADRP of a register, 8 or 4 bytes
 * before a page of 4 KiB; an access to memory; then, directly or as the next one but one, an access
 * at an unsigned offset from the register. */
static bool hazard(const uint8_t *code, size_t avail, uint64_t va)
{
	unsigned left = 4096 - (unsigned)(va % 4096), reg;
	uint32_t w[4] = { 0 };
	for (unsigned i = 0; i < 4 && avail >= 4 * (i + 1); i++)
		w[i] = elfrw_get32(code + 4 * i);
	reg = bits(w[0], 0, 5);
	if (left > 8 || !bits(w[0], 31, 1) || bits(w[0], 24, 5) != 16 || !is_access(w[1]))
		return false;
	for (unsigned i = 2; i < 4; i++)
		if (is_access(w[i]) && bits(w[i], 24, 2) == 1 && bits(w[i], 27, 3) == 7 &&
		    bits(w[i], 5, 5) == reg)
			return true;
	return false;
}

/* NOP and ADR in IN; in OUT ADRP, and ADD (immediate) to its register: C6.2.10, C6.2.11, C6.2.4. */
static bool widened(const uint8_t *in, const uint8_t *out, uint64_t va, uint64_t *to)
{
	uint32_t adr = elfrw_get32(in + 4), adrp = elfrw_get32(out), add = elfrw_get32(out + 4);
	unsigned rd = bits(adr, 0, 5);
	if (elfrw_get32(in) != 0xd503201f || bits(adr, 31, 1) || bits(adr, 24, 5) != 16 ||
	    !bits(adrp, 31, 1) || bits(adrp, 24, 5) != 16 || bits(adrp, 0, 5) != rd ||
	    bits(add, 22, 10) != 0x244 || bits(add, 5, 5) != rd || bits(add, 0, 5) != rd ||
	    rd == SP)
		return false;
	int64_t pages =
		(int64_t)((uint64_t)(bits(adrp, 5, 19) << 2 | bits(adrp, 29, 2)) << 43) >> 43;
	*to = va - va % 4096 + (uint64_t)pages * 4096 + bits(add, 10, 12);
	return true;
}

/* ADR label; then perhaps LDRB, LDRH or LDR (register) of the entry; ADD (extended or shifted
 * register) by 2 bits; BR: C6.2.10, C6.2.172 and after, C6.2.3, C6.2.5, C6.2.37. */
static unsigned ends_in_switch(const uint8_t *code, uint64_t size)
{
	if (size < 16)
		return 0;
	uint32_t first = elfrw_get32(code + size - 16), second = elfrw_get32(code + size - 12),
		 add = elfrw_get32(code + size - 8), br = elfrw_get32(code + size - 4);
	unsigned label = bits(add, 5, 5), entry = bits(add, 16, 5);
	bool extended = bits(add, 21, 11) == 0x459 && bits(add, 10, 3) == 2,
	     shifted = bits(add, 21, 11) == 0x458 && bits(add, 10, 6) == 2;
	if ((br & 0xfffffc1f) != 0xd61f0000 || bits(br, 5, 5) != bits(add, 0, 5) ||
	    (!extended && !shifted) || label == entry)
		return 0;
	if (!bits(second, 31, 1) && bits(second, 24, 5) == 16)
		return bits(second, 0, 5) == label ? 12 : 0;
	bool load = bits(second, 24, 6) == 0x38 && bits(second, 21, 1) && bits(second, 10, 2) == 2;
	return load && bits(second, 0, 5) == entry && !bits(first, 31, 1) &&
			       bits(first, 24, 5) == 16 && bits(first, 0, 5) == label
		       ? 16
		       : 0;
}

static unsigned goes_to(const struct elfrw_insn *in)
{
	return in->base;
}

/* Procedure Call Standard, table 2: x18 is the platform's. */
const struct elfrw_judge elfrw_aarch64_judge = {
	.half = half,
	.loads = loads,
	.look = look,
	.hazard = hazard,
	.widened = widened,
	.ends_in_switch = ends_in_switch,
	.goes_to = goes_to,
	.regs = 32,
	.sp = SP,
	.fp = FP,
	.argument = 0,
	.kept = 0x3ff80000,
};
