/* arch_effect.h: what the instructions of the architecture that does not exist do; once for the
 * fold, once for the verifier. */
#ifndef TESTS_UNIT_MAKE_ARCH_EFFECT_H
#define TESTS_UNIT_MAKE_ARCH_EFFECT_H
#include "elfrw/arch/effect.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/rbuf.h"

/* A number of N bits from bit AT. */
static inline int64_t toy_bits(const uint8_t *code, unsigned at, unsigned n)
{
	return elfrw_get32(code) >> at & ((1u << n) - 1);
}

/* What is read and written follows from the rest of E. */
static void toy_registers(const struct elfrw_insn *in, struct elfrw_effect *e)
{
	e->flags |= in->flags & ELFRW_INSN_MEM ? ELFRW_EFFECT_LOADS : 0;
	e->reads = elfrw_reg_bit(e->a) | elfrw_reg_bit(e->b) |
		   (in->flags & ELFRW_INSN_MEM ? elfrw_reg_bit(in->base) | elfrw_reg_bit(in->index)
					       : 0);
	e->writes = elfrw_reg_bit(e->dst);
	if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) {
		e->op = ELFRW_OP_CALL;
		e->dst = 0;
		e->writes = 0x4007ffff;
	}
}

static void toy_load(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_effect *e)
{
	bool entry = in->index != ELFRW_REG_NONE;
	e->dst = in->reg;
	e->op = !entry                   ? ELFRW_OP_LOAD
		: in->opcode == TOY_BYTE ? ELFRW_OP_ZERO_EXTEND
					 : ELFRW_OP_SIGN_EXTEND;
	e->from = entry ? in->scale : 0;
	e->disp = in->opcode == TOY_FETCH ? toy_bits(code, 10, 12) << 3 : 0;
}

/* Of all instructions 32 registers wide; 31 is the stack pointer. */
static void toy_effect(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_effect *e)
{
	unsigned rd = in->reg, rn = in->base;
	*e = (struct elfrw_effect){ .op = ELFRW_OP_NONE,
				    .width = 8,
				    .dst = ELFRW_REG_NONE,
				    .a = ELFRW_REG_NONE,
				    .b = ELFRW_REG_NONE };
	switch (in->opcode) {
	case TOY_ADD:
		e->op = ELFRW_OP_ADD;
		e->dst = e->a = (uint8_t)rd;
		e->flags = ELFRW_EFFECT_IMM;
		e->imm = toy_bits(code, 5, 21);
		break;
	case TOY_LOW:
		e->op = ELFRW_OP_ADD;
		e->dst = (uint8_t)rd;
		e->a = (uint8_t)rn;
		e->flags = ELFRW_EFFECT_IMM;
		e->imm = toy_bits(code, 10, 12) << 3;
		break;
	case TOY_SHIFTED:
	case TOY_SUM:
		e->op = ELFRW_OP_ADD;
		e->dst = (uint8_t)rd;
		e->a = (uint8_t)rn;
		e->b = (uint8_t)toy_bits(code, 10, 5);
		e->shift = in->opcode == TOY_SHIFTED ? 2 : 0;
		break;
	case TOY_REST:
		e->op = ELFRW_OP_ADD;
		e->dst = (uint8_t)rd;
		e->a = (uint8_t)rn;
		e->flags = ELFRW_EFFECT_IMM;
		e->imm = (toy_bits(code, 10, 12) ^ 0x800) - 0x800;
		break;
	case TOY_ADR:
	case TOY_HIGH:
	case TOY_PAGE: e->op = ELFRW_OP_ADDRESS; break;
	case TOY_CMP:
		e->op = ELFRW_OP_CMP;
		e->a = (uint8_t)rn;
		e->flags = ELFRW_EFFECT_IMM;
		e->imm = toy_bits(code, 10, 12);
		break;
	case TOY_BC: e->cond = rd == 1 ? ELFRW_COND_ABOVE : ELFRW_COND_OTHER; break;
	case TOY_JR:
	case TOY_CR: e->a = (uint8_t)rn; break;
	}
	if (in->flags & ELFRW_INSN_MEM)
		toy_load(in, code, e);
	if (e->op == ELFRW_OP_ADDRESS)
		e->dst = (uint8_t)rd;
	toy_registers(in, e);
}

static const struct elfrw_table_shape toy_tables[] = {
	{ 4, 0, true, false },
	{ 4, 0, true, true },
	{ 1, 2, false, true },
	{ 2, 2, true, true },
};

static const struct elfrw_model toy_model = {
	.effect = toy_effect,
	.table = toy_tables,
	.n_tables = sizeof toy_tables / sizeof *toy_tables,
	.regs = 32,
	.result = 0,
	.argument = { 0, 1 },
	.sp = 31,
	.fp = 29,
	.results = 3,
	.arguments = 0xff,
	.clobbered = 0x4007ffff,
	.kept = 0x3ff80000,
};

/* The verifier knows less. */
static void toy_look(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_judgement *ret)
{
	*ret = (struct elfrw_judgement){ .to = ELFRW_REG_NONE, .from = ELFRW_REG_NONE };
	if (in->opcode == TOY_FETCH) {
		ret->kind = ELFRW_JUDGE_LOAD;
		ret->to = in->reg;
		ret->disp = toy_bits(code, 10, 12) << 3;
	}
}

static unsigned toy_goes_to(const struct elfrw_insn *in)
{
	return in->base;
}

/* Unless a case below says otherwise, an instruction reads all three registers and writes none in
 * full. */
static bool toy_half(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_half_use *ret)
{
	uint32_t word = elfrw_get32(code), rd = 1u << (word & 31), rn = 1u << (word >> 5 & 31);
	*ret = (struct elfrw_half_use){ .reads = rd | rn | 1u << (word >> 10 & 31) };
	switch (in->opcode) {
	case TOY_PAGE:
	case TOY_HIGH:
	case TOY_ADR:
	case TOY_LOAD: *ret = (struct elfrw_half_use){ .writes = rd }; break;
	case TOY_LOW:
	case TOY_FETCH:
	case TOY_REST:
		*ret = (struct elfrw_half_use){ .low = in->opcode == TOY_REST ? TOY_F_REST
									      : TOY_F_LOW,
						.base = word >> 5 & 31,
						.writes = rd };
		break;
	case TOY_ADD: ret->reads = rd; break;
	case TOY_NOP:
	case TOY_PAD: ret->reads = 0; break;
	}
	return true;
}

static const struct elfrw_judge toy_judge = {
	.half = toy_half,
	.look = toy_look,
	.goes_to = toy_goes_to,
	.regs = 32,
	.sp = 31,
	.fp = 29,
	.argument = 0,
	.kept = 0x3ff80000,
};
#endif
