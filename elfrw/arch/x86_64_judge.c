/* x86_64_judge.c: the verifier's own account of x86-64 instructions: judge.h.  Written from the
 * opcode maps of the Intel 64 manual, volume 2, appendix A; shares nothing with x86_64_effect.c.
 *
 * Cost: one line of a table. */
#include "elfrw/arch/judge.h"
#include "elfrw/base/rbuf.h"

enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI };

/* What an opcode means.  ModRM tells whether its operand is memory or a register. */
enum line {
	Unknown,
	Nothing, /* cmp, test, jumps */
	Push,
	Pop,
	Immediate, /* a constant into the register in the opcode */
	Load,      /* mov to the register operand */
	Store,     /* mov from it */
	Lea,
	Widen,     /* movslq */
	Number,    /* arithmetic with a constant, by ModRM.reg */
	Number_ax, /* add to %rax */
	Sum_rm,
	Sum_reg, /* add */
	To_rm,
	To_reg, /* other arithmetic: what is written */
	Shift,
	Memory,    /* mov of a part or a constant to memory */
	Compare_7, /* the group in which cmp is the last */
	Test_0,    /* the one in which test is the first */
	Count,     /* inc, dec */
	Sets_ax,
	Sets_dx,
	Loop,
	Setcc,
	Vector,
};

static const uint8_t plain[256] = {
	[0x01] = Sum_rm,
	[0x03] = Sum_reg,
	[0x05] = Number_ax,
	[0x09] = To_rm,
	[0x0b] = To_reg,
	[0x21] = To_rm,
	[0x23] = To_reg,
	[0x29] = To_rm,
	[0x2b] = To_reg,
	[0x31] = To_rm,
	[0x33] = To_reg,
	[0x38 ... 0x3d] = Nothing,
	[0x50 ... 0x57] = Push,
	[0x58 ... 0x5f] = Pop,
	[0x63] = Widen,
	[0x69] = To_reg,
	[0x6b] = To_reg,
	[0x70 ... 0x7f] = Nothing,
	[0x80] = Compare_7,
	[0x81] = Number,
	[0x83] = Number,
	[0x84 ... 0x85] = Nothing,
	[0x88] = Memory,
	[0x89] = Store,
	[0x8b] = Load,
	[0x8d] = Lea,
	[0x98] = Sets_ax,
	[0x99] = Sets_dx,
	[0xa8 ... 0xa9] = Nothing,
	[0xb8 ... 0xbf] = Immediate,
	[0xc0 ... 0xc1] = Shift,
	[0xc6 ... 0xc7] = Memory,
	[0xd0 ... 0xd3] = Shift,
	[0xe0 ... 0xe3] = Loop,
	[0xe9] = Nothing,
	[0xeb] = Nothing,
	[0xf6 ... 0xf7] = Test_0,
	[0xff] = Count,
};

static const uint8_t after_0f[256] = {
	[0x10 ... 0x11] = Vector, [0x28 ... 0x29] = Vector, [0x40 ... 0x4f] = To_reg,
	[0x54 ... 0x5f] = Vector, [0x7f] = Vector,          [0x80 ... 0x8f] = Nothing,
	[0x90 ... 0x9f] = Setcc,  [0xaf] = To_reg,          [0xb6 ... 0xb7] = To_reg,
	[0xbe ... 0xbf] = To_reg, [0xd6] = Vector,          [0xef] = Vector,
};

static int64_t number_at(const uint8_t *p, unsigned size)
{
	uint64_t v = 0;
	if (!size)
		return 0;
	for (unsigned i = size; i-- > 0;)
		v = v << 8 | p[i];
	uint64_t sign = UINT64_C(1) << (8 * size - 1);
	return (int64_t)((v ^ sign) - sign);
}

static uint32_t one(unsigned reg)
{
	return reg < 16 ? UINT32_C(1) << reg : 0;
}

static void sets(struct elfrw_judgement *j, uint32_t lost)
{
	j->kind = ELFRW_JUDGE_SET;
	j->lost = lost;
}

/* The operand in ModRM.rm gets an unknown value. */
static void sets_rm(struct elfrw_judgement *j, const struct elfrw_insn *in)
{
	sets(j, one(in->own_reg));
	if (in->flags & ELFRW_INSN_MEM)
		j->kind = ELFRW_JUDGE_WRITE;
}

/* Moves and additions of 8 bytes from FROM to TO. */
static void moves(struct elfrw_judgement *j, unsigned kind, unsigned to, unsigned from)
{
	j->kind = (uint8_t)kind;
	j->to = (uint8_t)to;
	j->from = (uint8_t)from;
}

static void adds(struct elfrw_judgement *j, const struct elfrw_insn *in, unsigned reg,
		 unsigned digit, int64_t number)
{
	bool wide = in->flags & ELFRW_INSN_OWN;
	if (digit == 7)
		sets(j, 0);
	else if (reg == ELFRW_REG_NONE)
		sets_rm(j, in);
	else if (wide && (digit == 0 || digit == 5)) {
		moves(j, ELFRW_JUDGE_ADD, reg, ELFRW_REG_NONE);
		j->number = digit == 5 ? -number : number;
	} else
		sets(j, one(reg));
}

static void loads(struct elfrw_judgement *j, const struct elfrw_insn *in)
{
	if (!(in->flags & ELFRW_INSN_OWN))
		sets(j, one(in->reg));
	else if (in->flags & ELFRW_INSN_MEM)
		moves(j, ELFRW_JUDGE_LOAD, in->reg, ELFRW_REG_NONE);
	else
		moves(j, ELFRW_JUDGE_COPY, in->reg, in->own_reg);
}

static void stores(struct elfrw_judgement *j, const struct elfrw_insn *in)
{
	bool wide = in->flags & ELFRW_INSN_OWN, mem = in->flags & ELFRW_INSN_MEM;
	if (!wide)
		sets_rm(j, in);
	else
		moves(j, mem ? ELFRW_JUDGE_STORE : ELFRW_JUDGE_COPY, in->own_reg, in->reg);
	j->from = in->reg;
}

/* Instructions for which the opcode and the kind of operand are enough.  Long: one line a case. */
static void by_line(unsigned line, const struct elfrw_insn *in, struct elfrw_judgement *j)
{
	bool mem = in->flags & ELFRW_INSN_MEM;
	unsigned digit = in->reg & 7, low = in->opcode & 7;
	switch (line) {
	case Nothing: sets(j, 0); break;
	case Push:
		j->kind = ELFRW_JUDGE_PUSH;
		j->lost = one(RSP);
		break;
	case Pop: sets(j, one(low) | one(low + 8) | one(RSP)); break;
	case Immediate: sets(j, one(low) | one(low + 8)); break;
	case Load: loads(j, in); break;
	case Store: stores(j, in); break;
	case Lea:
		if (in->flags & ELFRW_INSN_OWN)
			moves(j, ELFRW_JUDGE_ADDRESS, in->reg, ELFRW_REG_NONE);
		else
			sets(j, one(in->reg));
		break;
	case Widen:
		if (mem)
			moves(j, ELFRW_JUDGE_LOAD_WORD, in->reg, ELFRW_REG_NONE);
		else
			sets(j, one(in->reg));
		break;
	case Number: adds(j, in, in->own_reg, digit, j->number); break;
	case Number_ax: adds(j, in, RAX, 0, j->number); break;
	case Sum_rm:
		if (mem)
			sets_rm(j, in);
		else
			moves(j, ELFRW_JUDGE_SUM, in->own_reg, in->reg);
		break;
	case Sum_reg:
		if (mem)
			sets(j, one(in->reg));
		else
			moves(j, ELFRW_JUDGE_SUM, in->reg, in->own_reg);
		break;
	case To_rm:
	case Shift: sets_rm(j, in); break;
	case To_reg: sets(j, one(in->reg)); break;
	case Memory:
		if (mem)
			sets_rm(j, in);
		break;
	case Compare_7:
		if (digit == 7)
			sets(j, 0);
		break;
	case Test_0:
		if (digit < 2)
			sets(j, 0);
		break;
	case Count:
		if (digit < 2)
			sets_rm(j, in);
		break;
	case Sets_ax: sets(j, one(RAX)); break;
	case Sets_dx: sets(j, one(RDX)); break;
	case Loop: sets(j, one(RCX)); break;
	case Setcc: /* without REX, 4 to 7 are the second bytes of 0 to 3 */
		if (!mem)
			sets(j, one(in->own_reg & 3) | one(in->own_reg));
		break;
	case Vector:
		sets(j, 0);
		if (mem)
			j->kind = ELFRW_JUDGE_WRITE;
		break;
	}
}

static void look(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_judgement *ret)
{
	*ret = (struct elfrw_judgement){ .kind = ELFRW_JUDGE_UNKNOWN,
					 .to = ELFRW_REG_NONE,
					 .from = ELFRW_REG_NONE,
					 .number = number_at(code + in->imm_off, in->imm_size),
					 .disp = number_at(code + in->disp_off, in->disp_size) };
	if (in->kind == ELFRW_INSN_NOP || (in->flags & ELFRW_INSN_ENDBR))
		sets(ret, 0);
	else if (in->own_map < 2)
		by_line((in->own_map ? after_0f : plain)[in->opcode], in, ret);
}

static unsigned goes_to(const struct elfrw_insn *in)
{
	return in->flags & ELFRW_INSN_MEM ? ELFRW_REG_NONE : in->own_reg;
}

/* System V psABI for AMD64, figure 3.4. */
const struct elfrw_judge elfrw_x86_64_judge = {
	.look = look,
	.goes_to = goes_to,
	.regs = 16,
	.sp = RSP,
	.fp = RBP,
	.argument = RDI,
	.kept = 1u << RBX | 1u << RBP | 1u << 12 | 1u << 13 | 1u << 14 | 1u << 15,
	.returns_from_memory = true,
};
