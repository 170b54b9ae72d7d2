/* effect.c: compares what elfrw/arch/x86_64_effect.c says of an instruction with what Zydis says:
 * the general registers that are read and written, and memory. For operations that have a name of
 * their own it also compares the mnemonic, the operands and the width.
 *
 * What Zydis names must be there.  More may be there only for instructions of the system
 * (may_have_more), and where a register is written in part (then it counts as read). */
#include "tests/judges/effect.h"
#include "elfrw/arch/effect.h"
#include <stdio.h>
#include <string.h>

/* What Zydis says. */
struct said {
	uint32_t reads, writes;
	bool loads, stores;
};

static uint32_t bit_of(ZydisRegister r)
{
	ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, r);
	if (whole < ZYDIS_REGISTER_RAX || whole > ZYDIS_REGISTER_R15)
		return 0;
	return UINT32_C(1) << (whole - ZYDIS_REGISTER_RAX);
}

static struct said ask(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *op)
{
	struct said s = { 0 };
	unsigned n = z->operand_count;
	/* Zydis 4.0 gives %r13d as the base where mod 0 and base 5 mean that there is no base. */
	bool no_base = z->raw.modrm.mod == 0 && z->raw.modrm.rm == 4 && z->raw.sib.base == 5;
	for (unsigned i = 0; i < n; i++) {
		if (op[i].type == ZYDIS_OPERAND_TYPE_REGISTER) {
			/* A register that is written on a condition may keep its value, so it
			 * counts as read. */
			if (op[i].actions &
			    (ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE))
				s.reads |= bit_of(op[i].reg.value);
			if (op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) {
				s.writes |= bit_of(op[i].reg.value);
				s.reads |= op[i].size < 32 ? bit_of(op[i].reg.value) : 0;
			}
		} else if (op[i].type == ZYDIS_OPERAND_TYPE_MEMORY) {
			s.reads |= (no_base ? 0 : bit_of(op[i].mem.base)) | bit_of(op[i].mem.index);
			if (op[i].mem.type != ZYDIS_MEMOP_TYPE_MEM)
				continue;
			s.loads |= op[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ;
			s.stores |= op[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE;
		}
	}
	return s;
}

static bool may_have_more(const ZydisDecodedInstruction *z)
{
	switch (z->meta.category) {
	case ZYDIS_CATEGORY_SYSTEM:
	case ZYDIS_CATEGORY_SYSCALL:
	case ZYDIS_CATEGORY_SYSRET:
	case ZYDIS_CATEGORY_INTERRUPT:
	case ZYDIS_CATEGORY_PADLOCK:
	case ZYDIS_CATEGORY_XSAVE:
	case ZYDIS_CATEGORY_XSAVEOPT:
	case ZYDIS_CATEGORY_GATHER:
	case ZYDIS_CATEGORY_SCATTER:
	case ZYDIS_CATEGORY_AVX2GATHER:
	case ZYDIS_CATEGORY_STRINGOP:
	case ZYDIS_CATEGORY_IOSTRINGOP:
	case ZYDIS_CATEGORY_CET:
	case ZYDIS_CATEGORY_MPX: return true;
	default: break;
	}
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_BSF:
	case ZYDIS_MNEMONIC_BSR:
	case ZYDIS_MNEMONIC_TZCNT:
	case ZYDIS_MNEMONIC_LZCNT:
	case ZYDIS_MNEMONIC_AESENC128KL:
	case ZYDIS_MNEMONIC_LLWPCB:
	case ZYDIS_MNEMONIC_SLWPCB:
	case ZYDIS_MNEMONIC_LWPINS:
	case ZYDIS_MNEMONIC_LWPVAL: return true;
	default:
		return z->opcode_map == ZYDIS_OPCODE_MAP_0F &&
		       (z->opcode == 0x01 || z->opcode == 0xae || z->opcode == 0xc7);
	}
}

static unsigned op_of(const ZydisDecodedInstruction *z, const ZydisDecodedOperand *o)
{
	bool to_mem = o[0].type == ZYDIS_OPERAND_TYPE_MEMORY,
	     from_mem = z->operand_count > 1 && o[1].type == ZYDIS_OPERAND_TYPE_MEMORY;
	switch (z->mnemonic) {
	case ZYDIS_MNEMONIC_MOV:
		for (unsigned i = 0; i < 2; i++)
			if (o[i].type == ZYDIS_OPERAND_TYPE_REGISTER && !bit_of(o[i].reg.value))
				return ELFRW_OP_OTHER; /* a move of a segment or control register */
		return to_mem ? ELFRW_OP_STORE : from_mem ? ELFRW_OP_LOAD : ELFRW_OP_MOV;
	case ZYDIS_MNEMONIC_MOVNTI: return ELFRW_OP_STORE;
	case ZYDIS_MNEMONIC_LEA: return ELFRW_OP_ADDRESS;
	case ZYDIS_MNEMONIC_ADD: return ELFRW_OP_ADD;
	case ZYDIS_MNEMONIC_SUB: return ELFRW_OP_SUB;
	case ZYDIS_MNEMONIC_ADC:
	case ZYDIS_MNEMONIC_SBB: return ELFRW_OP_SUM;
	case ZYDIS_MNEMONIC_AND: return ELFRW_OP_AND;
	case ZYDIS_MNEMONIC_OR: return ELFRW_OP_OR;
	case ZYDIS_MNEMONIC_XOR:
		return !to_mem && !from_mem && o[1].type == ZYDIS_OPERAND_TYPE_REGISTER &&
				       o[0].reg.value == o[1].reg.value && o[0].size >= 32
			       ? ELFRW_OP_MOV
			       : ELFRW_OP_XOR;
	case ZYDIS_MNEMONIC_NEG: return ELFRW_OP_NEG;
	case ZYDIS_MNEMONIC_SHL:
	case ZYDIS_MNEMONIC_SHLX: return ELFRW_OP_SHL;
	case ZYDIS_MNEMONIC_IMUL:
		return o[1].visibility == ZYDIS_OPERAND_VISIBILITY_EXPLICIT ? ELFRW_OP_MUL
									    : ELFRW_OP_OTHER;
	case ZYDIS_MNEMONIC_DIV:
	case ZYDIS_MNEMONIC_IDIV: return ELFRW_OP_DIVIDE;
	case ZYDIS_MNEMONIC_CMP: return ELFRW_OP_CMP;
	case ZYDIS_MNEMONIC_TEST:
	case ZYDIS_MNEMONIC_BT: return ELFRW_OP_TEST;
	case ZYDIS_MNEMONIC_XCHG:
	case ZYDIS_MNEMONIC_XADD:
	case ZYDIS_MNEMONIC_CMPXCHG: return ELFRW_OP_XCHG;
	case ZYDIS_MNEMONIC_MOVZX: return ELFRW_OP_ZERO_EXTEND;
	case ZYDIS_MNEMONIC_MOVSX:
	case ZYDIS_MNEMONIC_MOVSXD:
	case ZYDIS_MNEMONIC_CBW:
	case ZYDIS_MNEMONIC_CWDE:
	case ZYDIS_MNEMONIC_CDQE: return ELFRW_OP_SIGN_EXTEND;
	case ZYDIS_MNEMONIC_PUSH:
		return o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && !bit_of(o[0].reg.value)
			       ? ELFRW_OP_OTHER
			       : ELFRW_OP_PUSH;
	case ZYDIS_MNEMONIC_POP:
		return o[0].type == ZYDIS_OPERAND_TYPE_REGISTER && !bit_of(o[0].reg.value)
			       ? ELFRW_OP_OTHER
			       : ELFRW_OP_POP;
	default:
		return z->meta.category == ZYDIS_CATEGORY_CMOV &&
				       z->encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY &&
				       o[0].reg.value < ZYDIS_REGISTER_ST0
			       ? ELFRW_OP_CHOOSE
			       : UINT32_MAX;
	}
}

/* Names of operations that no mnemonic asked for. */
static bool has_name(unsigned op)
{
	return op != ELFRW_OP_OTHER && op != ELFRW_OP_NONE && op != ELFRW_OP_VECTOR &&
	       op != ELFRW_OP_CALL;
}

static const char *operands_differ(const struct elfrw_effect *e, const ZydisDecodedOperand *o,
				   unsigned n)
{
	for (unsigned i = 0; i < n && i < 3; i++) {
		uint32_t want = 0, bits = elfrw_reg_bit(e->a) | elfrw_reg_bit(e->b);
		if (o[i].visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN)
			break;
		if (o[i].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o[i].imm.is_signed &&
		    o[i].imm.value.s != e->imm)
			return "effect: immediate";
		if (o[i].type == ZYDIS_OPERAND_TYPE_MEMORY && o[i].mem.base != ZYDIS_REGISTER_RIP &&
		    o[i].mem.disp.has_displacement && o[i].mem.disp.value != e->disp &&
		    !(e->flags & ELFRW_EFFECT_GUARD) && e->op != ELFRW_OP_POP && e->disp)
			return "effect: displacement";
		if (o[i].type != ZYDIS_OPERAND_TYPE_REGISTER)
			continue;
		want = bit_of(o[i].reg.value);
		if (i == 0 && e->op != ELFRW_OP_XCHG &&
		    (o[i].actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) &&
		    want != elfrw_reg_bit(e->dst))
			return "effect: result";
		if ((o[i].actions & ZYDIS_OPERAND_ACTION_MASK_READ) && !(bits & want) &&
		    e->op != ELFRW_OP_MOV && e->op != ELFRW_OP_XCHG && e->op != ELFRW_OP_CHOOSE)
			return "effect: operand";
	}
	return NULL;
}

const char *effect_differs(const ZydisDecoder *zydis, const ZydisDecoderContext *ctx,
			   const ZydisDecodedInstruction *z, const struct elfrw_insn *in,
			   const uint8_t *code)
{
	ZydisDecodedOperand o[ZYDIS_MAX_OPERAND_COUNT];
	struct elfrw_effect e;
	if (!ZYAN_SUCCESS(ZydisDecoderDecodeOperands(zydis, ctx, z, o, z->operand_count)))
		return "effect: no operands";
	elfrw_x86_64_model.effect(in, code, &e);
	if (in->kind == ELFRW_INSN_NOP || in->kind == ELFRW_INSN_TRAP ||
	    in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND ||
	    (in->flags & ELFRW_INSN_LONG_CALL) || z->meta.category == ZYDIS_CATEGORY_NOP ||
	    z->meta.category == ZYDIS_CATEGORY_WIDENOP ||
	    z->meta.category == ZYDIS_CATEGORY_PREFETCH ||
	    z->meta.category == ZYDIS_CATEGORY_PREFETCHWT1 ||
	    z->meta.category == ZYDIS_CATEGORY_CLDEMOTE || z->mnemonic == ZYDIS_MNEMONIC_PAUSE ||
	    z->meta.isa_ext == ZYDIS_ISA_EXT_KNC)
		return NULL;
	struct said s = ask(z, o);
	if (in->kind == ELFRW_INSN_RET)
		s.reads |= elfrw_x86_64_model.results;
	unsigned op = op_of(z, o);
	bool zero = op == ELFRW_OP_MOV && z->mnemonic == ZYDIS_MNEMONIC_XOR;
	if (zero)
		s.reads = 0;
	if (s.writes & ~e.writes)
		return "effect: writes too little";
	if (s.reads & ~e.reads)
		return "effect: reads too little";
	if ((s.loads && !(e.flags & ELFRW_EFFECT_LOADS)) ||
	    (s.stores && !(e.flags & ELFRW_EFFECT_STORES)))
		return "effect: memory";
	if (!may_have_more(z) && (e.writes & ~s.writes))
		return "effect: writes too much";
	if (!may_have_more(z) && (e.reads & ~(s.reads | (e.width < 4 ? e.writes : 0))))
		return "effect: reads too much";
	bool high = false;
	for (unsigned i = 0; i < z->operand_count; i++)
		high |= o[i].type == ZYDIS_OPERAND_TYPE_REGISTER &&
			o[i].reg.value >= ZYDIS_REGISTER_AH && o[i].reg.value <= ZYDIS_REGISTER_BH;
	if (high)
		return NULL;
	if (op == UINT32_MAX ? has_name(e.op) : op != e.op)
		return "effect: operation";
	if (op == UINT32_MAX || op == ELFRW_OP_OTHER || zero)
		return NULL;
	if (op != ELFRW_OP_PUSH && op != ELFRW_OP_POP && e.width * 8 != o[0].size &&
	    z->mnemonic != ZYDIS_MNEMONIC_CDQE && z->mnemonic != ZYDIS_MNEMONIC_CWDE &&
	    z->mnemonic != ZYDIS_MNEMONIC_CBW)
		return "effect: width";
	return operands_differ(&e, o, z->operand_count);
}
