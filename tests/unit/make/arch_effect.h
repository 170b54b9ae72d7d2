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
	case TOY_SUM:
		e->op = ELFRW_OP_ADD;
		e->dst = (uint8_t)rd;
		e->a = (uint8_t)rn;
		e->b = (uint8_t)toy_bits(code, 10, 5);
		break;
	case TOY_PAGE: e->op = ELFRW_OP_ADDRESS; break;
	case TOY_LOAD:
	case TOY_FETCH: e->op = ELFRW_OP_LOAD; break;
	case TOY_ENTRY:
		e->op = ELFRW_OP_SIGN_EXTEND;
		e->from = 4;
		break;
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
	if (in->opcode == TOY_PAGE || in->opcode == TOY_LOAD || in->opcode == TOY_FETCH ||
	    in->opcode == TOY_ENTRY)
		e->dst = (uint8_t)rd;
	if (in->opcode == TOY_FETCH)
		e->disp = toy_bits(code, 10, 12) << 3;
	e->flags |= in->flags & ELFRW_INSN_MEM ? ELFRW_EFFECT_LOADS : 0;
	e->reads = elfrw_reg_bit(e->a) | elfrw_reg_bit(e->b) |
		   (in->flags & ELFRW_INSN_MEM ? elfrw_reg_bit(rn) | elfrw_reg_bit(in->index) : 0);
	e->writes = elfrw_reg_bit(e->dst);
	if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) {
		e->op = ELFRW_OP_CALL;
		e->dst = 0;
		e->writes = 0x4007ffff;
	}
}

static const struct elfrw_model toy_model = {
	.effect = toy_effect,
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

static const struct elfrw_judge toy_judge = {
	.look = toy_look,
	.goes_to = toy_goes_to,
	.regs = 32,
	.sp = 31,
	.fp = 29,
	.argument = 0,
	.kept = 0x3ff80000,
};
#endif
