/* aarch64_effect.c: what AArch64 instructions do to general registers and memory: effect.h.
 *
 * One function for each encoding group of aarch64_decode.h reads the fields of the word.  Register
 * 31 is the stack pointer or the zero register, as the manual says for each field; the zero
 * register is no register.  Loads and stores are in aarch64_memory.c. */
#include "elfrw/arch/aarch64_effect.h"
#include "elfrw/arch/aarch64_decode.h"

#define NO ELFRW_REG_NONE
#define LR ELFRW_A64_LR
#define SP ELFRW_A64_SP

static uint8_t rd(uint32_t w)
{
	return w & 31;
}

static uint8_t rm(uint32_t w)
{
	return (uint8_t)elfrw_a64_bits(w, 16, 5);
}

static uint8_t rn(uint32_t w)
{
	return (uint8_t)elfrw_a64_bits(w, 5, 5);
}

static void name(struct elfrw_effect *e, unsigned op, uint8_t dst, uint8_t a, uint8_t b)
{
	e->op = (uint8_t)op;
	e->a = a;
	e->b = b;
	e->reads |= elfrw_reg_bit(a) | elfrw_reg_bit(b);
	elfrw_a64_result(e, dst);
	/* A result that goes nowhere. */
	if (dst == NO && op != ELFRW_OP_CMP && op != ELFRW_OP_TEST)
		e->op = ELFRW_OP_OTHER;
}

/* OP of A and a number. */
static void with_number(struct elfrw_effect *e, unsigned op, uint8_t dst, uint8_t a, int64_t n)
{
	e->imm = n;
	e->flags |= ELFRW_EFFECT_IMM;
	name(e, op, dst, a, NO);
}

/* --- data processing with an immediate --- */

static void add_number(uint32_t w, struct elfrw_effect *e)
{
	bool flags = w & 1u << 29, minus = w & 1u << 30;
	int64_t n = (int64_t)elfrw_a64_bits(w, 10, 12) << (w & 1u << 22 ? 12 : 0);
	if (!flags && !minus && !n && (rd(w) == SP || rn(w) == SP))
		name(e, ELFRW_OP_MOV, rd(w), rn(w), NO);
	else if (!flags)
		with_number(e, minus ? ELFRW_OP_SUB : ELFRW_OP_ADD, rd(w), rn(w), n);
	else if (rd(w) == 31)
		with_number(e, minus ? ELFRW_OP_CMP : ELFRW_OP_OTHER, NO, rn(w), n);
	else
		with_number(e, minus ? ELFRW_OP_SUB : ELFRW_OP_ADD, rd(w), rn(w), n);
}

/* addg, subg; smax and the like */
static void add_tag(uint32_t w, struct elfrw_effect *e)
{
	if (w & 1u << 22)
		name(e, ELFRW_OP_OTHER, elfrw_a64_or_zero(rd(w)), elfrw_a64_or_zero(rn(w)), NO);
	else
		name(e, ELFRW_OP_SUM, rd(w), rn(w), NO);
}

/* DecodeBitMasks() of the manual. */
static uint64_t mask_of(uint32_t w)
{
	unsigned imms = elfrw_a64_bits(w, 10, 6), immr = elfrw_a64_bits(w, 16, 6);
	unsigned len = 31 - (unsigned)__builtin_clz((w >> 22 & 1) << 6 | (~imms & 63));
	unsigned size = 1u << len, ones = (imms & (size - 1)) + 1, turn = immr & (size - 1);
	uint64_t all = size == 64 ? UINT64_MAX : (UINT64_C(1) << size) - 1;
	uint64_t m = ones == 64 ? UINT64_MAX : (UINT64_C(1) << ones) - 1;
	if (turn)
		m = (m >> turn | m << (size - turn)) & all;
	for (; size < 64; size *= 2)
		m |= m << size;
	return m;
}

static void logic_number(uint32_t w, struct elfrw_effect *e)
{
	static const uint8_t op[] = { ELFRW_OP_AND, ELFRW_OP_OR, ELFRW_OP_XOR, ELFRW_OP_AND };
	unsigned opc = elfrw_a64_bits(w, 29, 2);
	uint64_t m = mask_of(w);
	int64_t n = e->width == 8 ? (int64_t)m : (int32_t)(uint32_t)m;
	uint8_t a = elfrw_a64_or_zero(rn(w)), dst = opc == 3 ? elfrw_a64_or_zero(rd(w)) : rd(w);
	if (opc == 3 && dst == NO)
		with_number(e, a == NO ? ELFRW_OP_OTHER : ELFRW_OP_TEST, NO, a, n);
	else if (a == NO)
		with_number(e, opc == 1 ? ELFRW_OP_MOV : ELFRW_OP_OTHER, dst, NO, n);
	else
		with_number(e, op[opc], dst, a, n);
}

static void move_number(uint32_t w, struct elfrw_effect *e)
{
	unsigned opc = elfrw_a64_bits(w, 29, 2), shift = elfrw_a64_bits(w, 21, 2) * 16;
	uint64_t n = (uint64_t)elfrw_a64_bits(w, 5, 16) << shift;
	uint8_t dst = elfrw_a64_or_zero(rd(w));
	if (opc == 3) { /* 16 bits change */
		name(e, ELFRW_OP_OTHER, dst, dst, NO);
		return;
	}
	n = opc ? n : ~n;
	with_number(e, ELFRW_OP_MOV, dst, NO, e->width == 8 ? (int64_t)n : (int32_t)(uint32_t)n);
}

static void bitfield(uint32_t w, struct elfrw_effect *e)
{
	unsigned opc = elfrw_a64_bits(w, 29, 2), immr = elfrw_a64_bits(w, 16, 6),
		 imms = elfrw_a64_bits(w, 10, 6), last = e->width * 8u - 1;
	uint8_t a = elfrw_a64_or_zero(rn(w)), dst = elfrw_a64_or_zero(rd(w));
	bool extends = immr == 0 && a != NO && (imms == 7 || imms == 15 || imms == 31);
	if (opc == 1) { /* the rest of the register stays */
		name(e, ELFRW_OP_OTHER, dst, a, dst);
	} else if (extends && imms == 31) {
		if (opc == 2)
			e->width = 4;
		name(e, e->width == 4 ? ELFRW_OP_MOV : ELFRW_OP_SIGN_EXTEND, dst, a, NO);
		e->from = 4;
	} else if (extends) {
		name(e, opc == 2 ? ELFRW_OP_ZERO_EXTEND : ELFRW_OP_SIGN_EXTEND, dst, a, NO);
		e->from = (uint8_t)((imms + 1) / 8);
	} else if (imms < immr && a != NO) {
		with_number(e, ELFRW_OP_SHL, dst, a, last + 1 - immr);
	} else {
		name(e, ELFRW_OP_OTHER, dst, a, NO);
	}
}

static void immediate(uint32_t w, struct elfrw_effect *e)
{
	switch (elfrw_a64_bits(w, 23, 3)) {
	case 2: add_number(w, e); break;
	case 3: add_tag(w, e); break;
	case 4: logic_number(w, e); break;
	case 5: move_number(w, e); break;
	case 6: bitfield(w, e); break;
	default: /* extr */
		name(e, ELFRW_OP_OTHER, elfrw_a64_or_zero(rd(w)), elfrw_a64_or_zero(rn(w)),
		     elfrw_a64_or_zero(rm(w)));
		break;
	}
}

/* --- data processing with registers --- */

static void logic(uint32_t w, struct elfrw_effect *e)
{
	static const uint8_t op[] = { ELFRW_OP_AND, ELFRW_OP_OR, ELFRW_OP_XOR, ELFRW_OP_AND };
	unsigned opc = elfrw_a64_bits(w, 29, 2);
	bool plain = !(w & 1u << 21) && elfrw_a64_bits(w, 10, 6) == 0;
	uint8_t a = elfrw_a64_or_zero(rn(w)), b = elfrw_a64_or_zero(rm(w)),
		dst = elfrw_a64_or_zero(rd(w));
	if (plain && opc == 1 && a == NO && b == NO)
		with_number(e, ELFRW_OP_MOV, dst, NO, 0);
	else if (plain && opc == 1 && a == NO)
		name(e, ELFRW_OP_MOV, dst, b, NO);
	else if (!plain || a == NO || b == NO)
		name(e, ELFRW_OP_OTHER, dst, a, b);
	else
		name(e, opc == 3 && dst == NO ? ELFRW_OP_TEST : op[opc], dst, a, b);
}

/* A - B or A + B, B perhaps shifted. */
static void add_shifted(uint32_t w, struct elfrw_effect *e)
{
	bool minus = w & 1u << 30, flags = w & 1u << 29;
	unsigned kind = elfrw_a64_bits(w, 22, 2), shift = elfrw_a64_bits(w, 10, 6);
	uint8_t a = elfrw_a64_or_zero(rn(w)), b = elfrw_a64_or_zero(rm(w)),
		dst = elfrw_a64_or_zero(rd(w));
	if (flags && dst == NO) {
		if (b == NO && a != NO && minus)
			with_number(e, ELFRW_OP_CMP, NO, a, 0);
		else
			name(e, minus && !shift && a != NO ? ELFRW_OP_CMP : ELFRW_OP_OTHER, NO, a,
			     b);
	} else if (minus) {
		unsigned op = shift || b == NO ? ELFRW_OP_SUM
			      : a == NO        ? ELFRW_OP_NEG
					       : ELFRW_OP_SUB;
		name(e, op, dst, op == ELFRW_OP_NEG ? b : a, op == ELFRW_OP_NEG ? NO : b);
	} else if (a == NO || b == NO || (kind && shift)) {
		name(e, ELFRW_OP_SUM, dst, a, b);
	} else {
		name(e, ELFRW_OP_ADD, dst, a, b);
		e->shift = e->op == ELFRW_OP_ADD ? (uint8_t)shift : 0;
	}
}

/* A - B or A + B, B extended. */
static void add_extended(uint32_t w, struct elfrw_effect *e)
{
	bool minus = w & 1u << 30, flags = w & 1u << 29;
	unsigned extend = elfrw_a64_bits(w, 13, 3), shift = elfrw_a64_bits(w, 10, 3);
	uint8_t b = elfrw_a64_or_zero(rm(w)), dst = flags ? elfrw_a64_or_zero(rd(w)) : rd(w);
	/* All of the operand: uxtx, sxtx; of 32 bits uxtw, sxtw. */
	bool whole = (extend & 3) == 3 || (e->width == 4 && (extend & 3) == 2);
	if (flags && dst == NO)
		name(e, minus && whole && !shift && b != NO ? ELFRW_OP_CMP : ELFRW_OP_OTHER, NO,
		     rn(w), b);
	else if (minus || b == NO)
		name(e, minus && whole && !shift && b != NO ? ELFRW_OP_SUB : ELFRW_OP_SUM, dst,
		     rn(w), b);
	else
		name(e, whole ? ELFRW_OP_ADD : ELFRW_OP_ADD_PART, dst, rn(w), b);
	if (e->op != ELFRW_OP_ADD && e->op != ELFRW_OP_ADD_PART)
		return;
	e->shift = (uint8_t)shift;
	if (!whole) {
		e->from = (uint8_t)(1u << (extend & 3));
		e->flags |= extend & 4 ? ELFRW_EFFECT_SIGN : 0;
	}
}

static void three_sources(uint32_t w, struct elfrw_effect *e)
{
	uint8_t a = elfrw_a64_or_zero(rn(w)), b = elfrw_a64_or_zero(rm(w)),
		c = elfrw_a64_or_zero((uint8_t)elfrw_a64_bits(w, 10, 5)),
		dst = elfrw_a64_or_zero(rd(w));
	unsigned op = elfrw_a64_bits(w, 21, 3);
	bool product = op == 0 && !(w & 1u << 15) && c == NO && a != NO && b != NO;
	name(e, product ? ELFRW_OP_MUL : ELFRW_OP_SUM, dst, a, b);
	if (op != 2 && op != 6) /* smulh, umulh */
		e->reads |= elfrw_reg_bit(c);
}

static void two_sources(uint32_t w, struct elfrw_effect *e)
{
	unsigned op = elfrw_a64_bits(w, 10, 6);
	uint8_t a = elfrw_a64_or_zero(rn(w)), b = elfrw_a64_or_zero(rm(w)),
		dst = elfrw_a64_or_zero(rd(w));
	if (op == 0) /* subp: of tagged addresses */
		name(e, ELFRW_OP_SUM, dst, rn(w), rm(w));
	else if (op == 4) /* irg */
		name(e, ELFRW_OP_SUM, rd(w), rn(w), b);
	else if (op == 5) /* gmi */
		name(e, ELFRW_OP_OTHER, dst, rn(w), b);
	else if (op == 12) /* pacga */
		name(e, ELFRW_OP_OTHER, dst, a, rm(w));
	else
		name(e, op == 8 && a != NO && b != NO ? ELFRW_OP_SHL : ELFRW_OP_OTHER, dst, a, b);
}

static void one_source(uint32_t w, struct elfrw_effect *e)
{
	uint8_t dst = elfrw_a64_or_zero(rd(w));
	if (rm(w) == 0) {
		name(e, ELFRW_OP_OTHER, dst, elfrw_a64_or_zero(rn(w)), NO);
		return;
	}
	if (elfrw_a64_bits(w, 10, 6) >= 32) { /* with the program counter */
		bool other = w & 1u << 11;    /* pacia171615 */
		name(e, ELFRW_OP_SUM, other ? 17 : LR, other ? 17 : LR, other ? 16 : SP);
		e->reads |= other ? elfrw_reg_bit(15) : elfrw_reg_bit(elfrw_a64_or_zero(rn(w)));
		return;
	}
	/* A signature goes into an address, or is taken off; 8 and up have no modifier. */
	bool modifier = elfrw_a64_bits(w, 10, 6) < 8;
	name(e, ELFRW_OP_SUM, dst, dst, modifier ? rn(w) : NO);
}

/* csel and its kin */
static void choose(uint32_t w, struct elfrw_effect *e)
{
	uint8_t a = elfrw_a64_or_zero(rn(w)), b = elfrw_a64_or_zero(rm(w)),
		dst = elfrw_a64_or_zero(rd(w));
	bool plain = !(w & (1u << 30 | 1u << 10));
	name(e, plain && a != NO && b != NO ? ELFRW_OP_CHOOSE : ELFRW_OP_SUM, dst, a, b);
}

static void with_flags(uint32_t w, struct elfrw_effect *e)
{
	uint8_t a = elfrw_a64_or_zero(rn(w)), b = elfrw_a64_or_zero(rm(w)),
		dst = elfrw_a64_or_zero(rd(w));
	unsigned op = elfrw_a64_bits(w, 10, 6);
	switch (elfrw_a64_bits(w, 21, 3)) {
	case 0:
		if (op >> 3 == 1) /* addpt */
			name(e, ELFRW_OP_SUM, rd(w), rn(w), b);
		else if (op)
			name(e, ELFRW_OP_OTHER, NO, a, NO);
		else
			name(e, ELFRW_OP_SUM, dst, a, b);
		break;
	case 2: name(e, ELFRW_OP_OTHER, NO, a, w & 1u << 11 ? NO : b); break;
	case 4: choose(w, e); break;
	default:
		if (w & 1u << 30)
			one_source(w, e);
		else
			two_sources(w, e);
		break;
	}
}

static void registers(uint32_t w, struct elfrw_effect *e)
{
	if (w & 1u << 28) {
		if (w & 1u << 24)
			three_sources(w, e);
		else
			with_flags(w, e);
	} else if (!(w & 1u << 24)) {
		logic(w, e);
	} else if (w & 1u << 21) {
		add_extended(w, e);
	} else {
		add_shifted(w, e);
	}
}

/* --- vector registers --- */

/* Between general and vector registers. */
static void floating(uint32_t w, struct elfrw_effect *e)
{
	uint8_t from = NO, to = NO;
	e->op = ELFRW_OP_VECTOR;
	if ((w & 0x7f20fc00) == 0x1e200000 || (w & 0x7f200000) == 0x1e000000) {
		/* Conversions and fmov; of numbers with a fixed point. */
		unsigned op = elfrw_a64_bits(w, 16, 3);
		if (op == 2 || op == 3 || op == 7)
			from = elfrw_a64_or_zero(rn(w));
		else
			to = elfrw_a64_or_zero(rd(w));
	} else if ((w & 0x9fe08400) == 0x0e000400) {
		/* dup, ins of a general register; smov, umov */
		unsigned op = elfrw_a64_bits(w, 11, 4);
		if ((op == 1 || op == 3) && !(w & 1u << 29))
			from = elfrw_a64_or_zero(rn(w));
		else if ((op == 5 || op == 7) && !(w & 1u << 29))
			to = elfrw_a64_or_zero(rd(w));
	}
	e->reads |= elfrw_reg_bit(from);
	if (to != NO) /* perhaps an address that was kept in a vector register */
		name(e, ELFRW_OP_SUM, to, NO, NO);
}

/* The scalable vectors' instructions with a general result. */
struct scalable {
	uint32_t mask, word;
	bool sp;   /* it may be the stack pointer */
	bool kept; /* it is read, too */
};
static const struct scalable scalable[] = {
	{ 0xff30f800, 0x0420e000, false, false }, /* cntb */
	{ 0xff30f800, 0x0430e000, false, true },  /* incb, decb */
	{ 0xff20f000, 0x0420f000, false, true },  /* sqincb */
	{ 0xffa0f000, 0x04205000, true, false },  /* addvl, addpl, addsvl */
	{ 0xfffff000, 0x04bf5000, false, false }, /* rdvl, rdsvl */
	{ 0xff3ee000, 0x0520a000, false, false }, /* lasta, lastb */
	{ 0xff3ee000, 0x0530a000, false, true },  /* clasta, clastb */
	{ 0xff38c000, 0x25208000, false, false }, /* cntp */
	{ 0xff3efe00, 0x252c8800, false, true },  /* incp, decp */
	{ 0xff3cfa00, 0x25288800, false, true },  /* sqincp */
	{ 0xffff8fe0, 0xc04c03e0, false, false }, /* movt */
};

/* SVE and SME.  Without a general result, all registers that the fields could name count as
 * read. */
static void scale(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	e->op = ELFRW_OP_VECTOR;
	e->reads = elfrw_reg_bit(rd(w)) | elfrw_reg_bit(rn(w)) | elfrw_reg_bit(rm(w));
	if (w >> 31)
		e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
	if (in->opcode == ELFRW_A64_SME) /* slices of ZA: w8 to w15 */
		e->reads |= 0xff00;
	if ((w & 0xff20c000) == 0x25204000) /* psel */
		e->reads |= 0xf000;
	for (unsigned i = 0; i < sizeof scalable / sizeof *scalable; i++) {
		const struct scalable *s = &scalable[i];
		if ((w & s->mask) != s->word)
			continue;
		name(e, ELFRW_OP_SUM, s->sp ? rd(w) : elfrw_a64_or_zero(rd(w)), NO, NO);
		return;
	}
}

/* --- control and the system --- */

static void hint(unsigned number, struct elfrw_effect *e)
{
	switch (number) {
	case 8:  /* pacia1716 */
	case 10: /* pacib1716 */
	case 12:
	case 14: name(e, ELFRW_OP_SUM, 17, 17, 16); break;
	case 40: name(e, ELFRW_OP_OTHER, 16, 16, NO); break; /* chkfeat */
	case 7:                                              /* xpaclri */
	case 24:                                             /* paciaz */
	case 26:
	case 28:
	case 30: name(e, ELFRW_OP_SUM, LR, LR, NO); break;
	case 25: /* paciasp */
	case 27:
	case 29:
	case 31: name(e, ELFRW_OP_SUM, LR, LR, SP); break;
	default: break;
	}
}

static void exception(uint32_t w, struct elfrw_effect *e)
{
	if (elfrw_a64_bits(w, 21, 3) != 0)
		return;
	/* Linux: the number in x8, the result in x0. */
	e->op = ELFRW_OP_OTHER;
	e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
	e->reads = 0x1ff;
	e->writes = 1;
}

static void system(uint32_t w, struct elfrw_effect *e)
{
	uint8_t t = elfrw_a64_or_zero(rd(w)), more = NO;
	if (w >> 24 == 0xd4) {
		exception(w, e);
		return;
	}
	if (w >> 24 != 0xd5)
		return;
	if ((w & 0xfffff01f) == 0xd503201f) {
		hint(elfrw_a64_bits(w, 5, 7), e);
		return;
	}
	if ((w & 1u << 22) && t != NO)
		more = elfrw_a64_or_zero((uint8_t)(t + 1));
	e->op = ELFRW_OP_OTHER;
	if (w & 1u << 21) {
		elfrw_a64_result(e, t);
		e->writes |= elfrw_reg_bit(more);
	} else {
		name(e, ELFRW_OP_OTHER, NO, t, more);
		/* Instructions, of which some change memory. */
		if (elfrw_a64_bits(w, 19, 2) == 1)
			e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
	}
}

static void jump(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	e->a = in->base;
	e->reads = elfrw_reg_bit(in->base);
	if (in->kind == ELFRW_INSN_RET)
		e->reads |= elfrw_aarch64_model.results;
	if (w & 1u << 24) /* a modifier */
		e->reads |= elfrw_reg_bit(rd(w));
	else if (in->kind == ELFRW_INSN_RET && elfrw_a64_bits(w, 10, 6))
		e->reads |= elfrw_reg_bit(SP);
}

static void near_jump(const struct elfrw_insn *in, uint32_t w, struct elfrw_effect *e)
{
	static const uint8_t by_code[16] = { [2] = ELFRW_COND_NOT_BELOW,
					     [3] = ELFRW_COND_BELOW,
					     [8] = ELFRW_COND_ABOVE,
					     [9] = ELFRW_COND_NOT_ABOVE };
	if (in->opcode == ELFRW_A64_B_COND)
		e->cond = by_code[w & 15];
	else if (in->opcode != ELFRW_A64_B)
		e->reads = elfrw_reg_bit(elfrw_a64_or_zero(rd(w)));
	if (in->opcode == ELFRW_A64_CB && !(w & 1u << 24))
		e->reads |= elfrw_reg_bit(elfrw_a64_or_zero(rm(w)));
}

/* May W change the condition flags? */
static bool sets_flags(const struct elfrw_insn *in, uint32_t w)
{
	switch (in->opcode) {
	case ELFRW_A64_IMM: /* adds, subs, ands */
		return (elfrw_a64_bits(w, 23, 3) == 2 && (w & 1u << 29)) ||
		       (elfrw_a64_bits(w, 23, 3) == 4 && elfrw_a64_bits(w, 29, 2) == 3);
	case ELFRW_A64_REG:
		if (w & 1u << 28) /* adcs, ccmp, subps, rmif */
			return !(w & 1u << 24) && (w & 1u << 29);
		return w & 1u << 24 ? w & 1u << 29 : elfrw_a64_bits(w, 29, 2) == 3;
	case ELFRW_A64_FLOAT: /* fcmp, fccmp */
		return (w & 0xff20fc07) == 0x1e202000 || (w & 0xff200c00) == 0x1e200400;
	case ELFRW_A64_MEMORY: /* copies and fills */ return (w & 0x3b200c00) == 0x19000400;
	case ELFRW_A64_SVE:
	case ELFRW_A64_SME: return true;
	case ELFRW_A64_SYSTEM: /* not brk, hints and barriers */
		return w >> 24 == 0xd4 ? elfrw_a64_bits(w, 21, 3) == 0
				       : (w & 0xffffe000) != 0xd5032000;
	case ELFRW_A64_B:
	case ELFRW_A64_JUMP: return in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND;
	default: return false;
	}
}

static void effect(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_effect *e)
{
	uint32_t w = elfrw_get32(code);
	*e = (struct elfrw_effect){
		.op = ELFRW_OP_NONE, .width = w >> 31 ? 8 : 4, .dst = NO, .a = NO, .b = NO
	};
	switch (in->opcode) {
	case ELFRW_A64_B:
	case ELFRW_A64_B_COND:
	case ELFRW_A64_CBZ:
	case ELFRW_A64_TBZ:
	case ELFRW_A64_CB: near_jump(in, w, e); break;
	case ELFRW_A64_ADR:
	case ELFRW_A64_ADRP:
		e->width = 8;
		name(e, ELFRW_OP_ADDRESS, in->reg, NO, NO);
		break;
	case ELFRW_A64_IMM: immediate(w, e); break;
	case ELFRW_A64_REG: registers(w, e); break;
	case ELFRW_A64_LITERAL:
	case ELFRW_A64_MEMORY: elfrw_a64_memory(in, w, e); break;
	case ELFRW_A64_FLOAT: floating(w, e); break;
	case ELFRW_A64_SVE:
	case ELFRW_A64_SME: scale(in, w, e); break;
	case ELFRW_A64_SYSTEM: system(w, e); break;
	case ELFRW_A64_JUMP: jump(in, w, e); break;
	default: break;
	}
	if (sets_flags(in, w))
		e->flags |= ELFRW_EFFECT_FLAGS;
	if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) {
		e->op = ELFRW_OP_CALL;
		e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
		e->dst = elfrw_aarch64_model.result;
		e->reads |= elfrw_aarch64_model.arguments;
		e->writes = elfrw_aarch64_model.clobbered;
	}
}

/* GCC counts from a label, in signed units of an instruction; LLVM in unsigned ones, in bytes from
 * the table or, without optimization, from a label. */
static const struct elfrw_table_shape tables[] = {
	{ 4, 0, true, false }, { 4, 0, true, true }, { 1, 2, false, true }, { 2, 2, false, true },
	{ 1, 2, true, true },  { 2, 2, true, true }, { 4, 2, true, true },
};

/* AAPCS64, sections 6.1.1 (registers), 6.8.2 and 6.9; DWARF for the Arm 64-bit Architecture,
 * section 4.1.  x8 says where a result goes; x18 and x15 are GCC's and LLVM's static chain. */
const struct elfrw_model elfrw_aarch64_model = {
	.effect = effect,
	.tells_flags = true,
	.table = tables,
	.n_tables = sizeof tables / sizeof *tables,
	.regs = 32,
	.result = 0,
	.argument = { 0, 1 },
	.sp = SP,
	.fp = 29,
	.link = LR,
	.results = 0xff,
	.arguments = 0x1ff | 1u << 15 | 1u << 18,
	.clobbered = 0x7ffff | 1u << LR,
	.kept = 0x3ff80000,
	.dwarf = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
		   16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31 },
};
