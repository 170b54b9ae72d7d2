/* effect.c: what one instruction does to one register: a model of the instructions that compilers
 * use on the way to an indirect jump.  Every other instruction counts as a writer of whatever it
 * names.  x86-64. */
#include "icf/infer/effect.h"
#include "elfrw/base/rbuf.h"
#include <string.h>

uint64_t icf_immediate(const struct elfrw_insn *in, const uint8_t *code)
{
	if (!in->imm_size)
		return 0;
	uint64_t v = elfrw_get_le(code + in->imm_off, in->imm_size);
	unsigned shift = 64 - 8 * in->imm_size;
	return (uint64_t)((int64_t)(v << shift) >> shift);
}

/* Registers that some instructions write without naming them. */
static bool writes_unnamed(const struct elfrw_insn *in, unsigned r)
{
	unsigned op = in->opcode;
	if (in->opcode_map == 0) {
		if (op == 0x99)
			return r == RDX;
		if (op == 0xf6 || op == 0xf7)
			return (in->reg & 7) >= 4 && (r == RAX || r == RDX);
		if (op >= 0xa4 && op <= 0xaf && op != 0xa8 && op != 0xa9)
			return r == RAX || r == RCX || r == RSI || r == RDI;
		if (op >= 0x6c && op <= 0x6f)
			return r == RSI || r == RDI || r == RCX;
		if (op == 0xc8 || op == 0xc9)
			return r == RBP || r == RSP;
		if ((op >= 0x90 && op <= 0x97) && in->kind != ELFRW_INSN_NOP)
			return r == RAX;
		return (op < 0x40 && ((op & 7) == 4 || (op & 7) == 5) && (op & 0xf8) != 0x38 &&
			r == RAX) ||
		       (op == 0x9f && r == RAX) || (op >= 0xa0 && op <= 0xa1 && r == RAX) ||
		       (op >= 0xe4 && op <= 0xed && r == RAX);
	}
	if (in->opcode_map == 1 && (op == 0xa2 || op == 0x31 || op == 0x33 || op == 0x01 ||
				    op == 0x05 || op == 0x32 || op == 0xc7))
		return r <= RDX || r == RBX || r == R11;
	/* Compare and exchange. */
	if (in->opcode_map == 1 && (op == 0xb0 || op == 0xb1))
		return r == RAX || (!(in->flags & ELFRW_INSN_MEM) && in->rm == r);
	return in->opcode_map > 1 && (in->opcode_map & 0xf) == 2 && (op == 0xf6 || op == 0xf7) &&
	       r == RDX;
}

/* Instructions of SSE and the like whose register operands are no general registers. */
static bool vector_only(const struct elfrw_insn *in)
{
	unsigned op = in->opcode;
	if (in->opcode_map == 1)
		return op == 0x10 || op == 0x11 || (op >= 0x12 && op <= 0x17) || op == 0x28 ||
		       op == 0x29 || op == 0x2e || op == 0x2f || op == 0x2a ||
		       (op >= 0x51 && op <= 0x6f) || op == 0x7f || op == 0xd6 || op == 0xef ||
		       op == 0x18 || op == 0x1f || op == 0x0d ||
		       (op >= 0xd0 && op <= 0xfe && op != 0xd7) || (op >= 0x74 && op <= 0x76) ||
		       op == 0xc6 || op == 0xc2 || op == 0xa3;
	return false;
}

/* What instruction AT does to register R. */
static struct icf_def any_effect(const struct icf_program *prog, uint32_t unit,
				 const struct icf_trace *t, size_t at, unsigned r)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	struct icf_def d = {
		.at = at, .a = ELFRW_REG_NONE, .b = ELFRW_REG_NONE, .max = UINT64_MAX
	};
	bool mem = in->flags & ELFRW_INSN_MEM, wide = in->flags & ELFRW_INSN_REX_W;
	unsigned op = in->opcode;
	if (in->kind == ELFRW_INSN_NOP || in->kind == ELFRW_INSN_JCC ||
	    (in->flags & ELFRW_INSN_ENDBR))
		return d;
	if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) {
		bool clobbered = r == RAX || r == RCX || r == RDX || r == RSI || r == RDI ||
				 (r >= R8 && r <= R11);
		d.kind = r == RAX ? ICF_DEF_RESULT : clobbered ? ICF_DEF_NUMBER : ICF_DEF_NONE;
		return d;
	}
	if (writes_unnamed(in, r)) {
		d.kind = ICF_DEF_OTHER;
		return d;
	}
	if (in->opcode_map == 0) {
		if (op == 0x98 && r == RAX) { /* cltq */
			d.kind = ICF_DEF_COPY;
			d.a = RAX;
			return d;
		}
		if (op == 0x98)
			return d;
		if (op < 0x40 && (op & 7) < 4) {
			bool to_rm = !(op & 2);
			unsigned dest = to_rm ? in->rm : in->reg;
			if ((op & 0xf8) == 0x38 || dest != r)
				return d;
			d.kind = ICF_DEF_OTHER;
			if (op == 0x01 || op == 0x03) {
				if (mem)
					d.kind = wide ? ICF_DEF_ADD_MEM : ICF_DEF_OTHER;
				else if (wide) {
					d.kind = ICF_DEF_ADD;
					d.a = (uint8_t)r;
					d.b = to_rm ? in->reg : in->rm;
				}
			}
			return d;
		}
		switch (op) {
		case 0x63:
		case 0x8b:
			if (in->reg != r)
				return d;
			if (!mem) {
				d.kind = ICF_DEF_COPY;
				d.a = in->rm;
			} else if (op == 0x8b && wide)
				d.kind = ICF_DEF_LOAD;
			else
				d.kind = in->index != ELFRW_REG_NONE || in->base != ELFRW_REG_NONE
						 ? ICF_DEF_DIST
						 : ICF_DEF_OTHER;
			return d;
		case 0x89:
			if (mem || in->rm != r)
				return d;
			d.kind = ICF_DEF_COPY;
			d.a = in->reg;
			return d;
		case 0x8d:
			if (in->reg != r)
				return d;
			if (in->pcrel_size)
				d.kind = ICF_DEF_ADDRESS;
			else if (wide && in->base != ELFRW_REG_NONE &&
				 in->index != ELFRW_REG_NONE && in->scale == 1 &&
				 elfrw_get_le(icf_code_of(prog, unit, t, at) + in->disp_off,
					      in->disp_size) == 0) {
				d.kind = ICF_DEF_ADD;
				d.a = in->base;
				d.b = in->index;
			} else
				d.kind = ICF_DEF_OTHER;
			return d;
		case 0x84:
		case 0x85:
		case 0xa8:
		case 0xa9:
		case 0x88:
			d.kind = op == 0x88 && !mem && in->rm == r ? ICF_DEF_OTHER : ICF_DEF_NONE;
			return d;
		case 0x80:
		case 0x81:
		case 0x83:
			if (mem || in->rm != r || (in->reg & 7) == 7)
				return d;
			d.kind = ICF_DEF_OTHER;
			if ((in->reg & 7) == 4) { /* and */
				uint64_t mask = icf_immediate(in, icf_code_of(prog, unit, t, at));
				d.kind = ICF_DEF_SMALL;
				d.max = mask >> 16 ? UINT64_MAX : mask;
			}
			return d;
		case 0xc0:
		case 0xc1:
		case 0xd0:
		case 0xd1:
		case 0xd2:
		case 0xd3:
		case 0xc6:
		case 0xc7:
		case 0xfe: d.kind = !mem && in->rm == r ? ICF_DEF_OTHER : ICF_DEF_NONE; return d;
		case 0xf6:
		case 0xf7:
			d.kind = !mem && in->rm == r && ((in->reg & 7) == 2 || (in->reg & 7) == 3)
					 ? ICF_DEF_OTHER
					 : ICF_DEF_NONE;
			return d;
		case 0xff:
			d.kind = !mem && in->rm == r && (in->reg & 7) < 2 ? ICF_DEF_OTHER
									  : ICF_DEF_NONE;
			return d;
		}
		if (op >= 0x50 && op <= 0x57)
			return d;
		if (op >= 0x58 && op <= 0x5f) {
			d.kind = in->reg == r ? ICF_DEF_LOAD : ICF_DEF_NONE;
			return d;
		}
	} else if (vector_only(in))
		return d;
	else if (in->opcode_map == 1 && (op == 0xb6 || op == 0xb7)) {
		if (in->reg != r)
			return d;
		d.kind = ICF_DEF_SMALL;
		d.max = op == 0xb6 ? 0xff : 0xffff;
		d.a = in->rm;
		return d;
	} else if (in->opcode_map == 1 && op >= 0x90 && op <= 0x9f) {
		d.kind = !mem && in->rm == r ? ICF_DEF_OTHER : ICF_DEF_NONE;
		return d;
	}
	/* The register field of some is a part of the operation; of the other operand nobody knows
	 * whether it is read or written. */
	bool group =
		in->opcode_map == 1 && (op <= 0x01 || op == 0x18 || (op >= 0x71 && op <= 0x73) ||
					op == 0xae || op == 0xba || op == 0xc7);
	bool dest = !group && in->reg == r;
	if (dest || (!mem && in->rm == r))
		d.kind = ICF_DEF_NUMBER;
	d.maybe = !dest;
	if (in->opcode_map == 1 && op >= 0x40 && op <= 0x4f && wide) {
		d.kind = in->reg == r ? ICF_DEF_CHOICE : ICF_DEF_NONE;
		d.a = in->rm;
	}
	return d;
}

/* Is the memory operand the stack protector's number, %fs:0x28?  It is random, so nothing that it
 * goes into is an address: after `sub %fs:0x28,%rdx` control goes on only when that left zero. */
static bool reads_guard(const struct elfrw_insn *in, const uint8_t *code)
{
	if (!(in->flags & ELFRW_INSN_MEM) || in->pcrel_size || in->base != ELFRW_REG_NONE ||
	    in->index != ELFRW_REG_NONE)
		return false;
	return in->disp_size == 4 && elfrw_get32(code + in->disp_off) == 0x28 &&
	       memchr(code, 0x64, in->opcode_off);
}

struct icf_def icf_effect(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			  size_t at, unsigned r)
{
	struct icf_def d = any_effect(prog, unit, t, at, r);
	const struct elfrw_insn *in = &t->insn.data[at].in;
	unsigned op = in->opcode;
	if (d.kind == ICF_DEF_OTHER && reads_guard(in, icf_code_of(prog, unit, t, at)))
		d.kind = ICF_DEF_NUMBER;
	if (d.kind != ICF_DEF_OTHER || in->kind == ELFRW_INSN_CALL ||
	    in->kind == ELFRW_INSN_CALL_IND)
		return d;
	bool sum = in->opcode_map == 0 && (op < 0x08 || (op >= 0x28 && op < 0x30) ||
					   (op >= 0x10 && op < 0x20) || op == 0x8d || op == 0x81 ||
					   op == 0x83 || (op >= 0x90 && op <= 0x97) || op == 0x87);
	bool exchange = in->opcode_map == 1 && (op == 0xc1 || op == 0xb1);
	if (!(in->flags & ELFRW_INSN_REX_W) || (!sum && !exchange))
		d.kind = ICF_DEF_NUMBER;
	return d;
}
