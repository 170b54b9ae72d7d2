/* x86_64_effect.c: what x86-64 instructions do to general registers and memory: effect.h.  One
 * table has a line for each opcode; what depends on more than the opcode is below it.
 *
 * Cost: a look at the prefixes, one line of the table. */
#include <string.h>

#include "elfrw/arch/effect.h"
#include "elfrw/base/rbuf.h"

#define NO ELFRW_REG_NONE
enum { RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11 };

/* What an operand is. */
enum slot {
	N_,
	RM,
	RB, /* RM, of which a byte is read */
	RG, /* ModRM.reg, or the register in the opcode */
	AX,
	CX,
	VV, /* VEX.vvvv */
	IM,
	I1, /* an immediate, 1 */
	RV, /* ModRM.rm is memory, or no general register */
	MO, /* the memory that a whole address names */
	F1,
	F2,
	F4,
	FH, /* in the second operand's place: bytes that are extended; half the width */
};

/* The width of an operation. */
enum width {
	B1,  /* a byte */
	V_,  /* 8 bytes with REX.W, 2 with prefix 66, else 4 */
	V4,  /* 8 bytes with W, else 4 */
	Q_,  /* 8 bytes */
	SP,  /* 8 bytes, 2 with prefix 66 */
	STR, /* of a string: counted in %rcx when repeated */
	STK, /* any; reads and writes memory that it does not name */
	CXB,
	CXV, /* cmpxchg: a byte, V_ */
};

enum { IS_GROUP = 0x80, IS_ODD = 0xc0 }; /* in place of an operation: by ModRM.reg; see odd() */

struct meaning {
	uint8_t op;             /* enum elfrw_op, or the above */
	uint8_t dst, a, b;      /* enum slot */
	uint8_t width;          /* enum width */
	uint16_t reads, writes; /* without naming them */
};

#include "elfrw/arch/x86_64_effect.inc"

/* What precedes the opcode. */
struct head {
	unsigned pp;   /* the mandatory prefix, as a set of one: NP, P66, PF3, PF2 */
	bool short16;  /* prefix 66 */
	bool repeated; /* F2 or F3 */
	bool rex;
	uint8_t vvvv;
};

static struct head legacy_head(const struct elfrw_insn *in, const uint8_t *code)
{
	struct head h = { .pp = NP, .vvvv = NO };
	unsigned n = in->opcode_off, escape = in->own_map ? in->own_map < 2 ? 1 : 2 : 0;
	unsigned rep = 0;
	if (n <= escape)
		return h;
	n -= escape;
	h.rex = (code[n - 1] & 0xf0) == 0x40;
	for (unsigned i = 0; i < n; i++) {
		if (code[i] == 0x66)
			h.short16 = true;
		else if (code[i] == 0xf3)
			rep = PF3;
		else if (code[i] == 0xf2)
			rep = PF2;
	}
	h.repeated = rep != 0;
	h.pp = rep ? rep : h.short16 ? P66 : NP;
	return h;
}

static struct head vector_head(const struct elfrw_insn *in, const uint8_t *code)
{
	bool evex = in->opcode_off >= 4 && code[in->opcode_off - 4] == 0x62;
	uint8_t b = code[in->opcode_off - (evex ? 2 : 1)];
	return (struct head){ .pp = 1u << (b & 3), .rex = true, .vvvv = ~(b >> 3) & 15 };
}

/* The line of an instruction in a map where few instructions use general registers. */
static struct meaning look_up(unsigned map, unsigned op, unsigned pp)
{
	unsigned key = map << 8 | op, lo = 0, hi = sizeof rare / sizeof *rare;
	while (lo < hi) {
		unsigned mid = (lo + hi) / 2;
		if ((unsigned)(rare[mid].map << 8 | rare[mid].op) < key)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < sizeof rare / sizeof *rare && rare[lo].map == map && rare[lo].op == op; lo++)
		if (rare[lo].pp & pp)
			return rare[lo].m;
	if (map == 0x12 && (op & 0xf0) == 0xe0) /* cmpccxadd */
		return (struct meaning)X(OTHER, RM, RG, VV, CXV);
	return (struct meaning)VEC;
}

/* Of xgetbv and similar instructions the whole ModRM byte counts. */
static struct meaning system_group(const struct elfrw_insn *in)
{
	unsigned digit = in->reg & 7;
	if (digit == 4)
		return (struct meaning)X(OTHER, RM, N_, N_, V_);
	if (digit == 6)
		return (struct meaning)X(OTHER, N_, RM, N_, V_);
	if (in->flags & ELFRW_INSN_MEM)
		return (struct meaning)X(OTHER, RM, RM, N_, Q_);
	return (struct meaning)XRW(OTHER, N_, N_, N_, STK, 0xffff,
				   BIT(RAX) | BIT(RBX) | BIT(RCX) | BIT(RDX));
}

/* State of the processor in memory, and registers of the like. */
static struct meaning state_group(const struct elfrw_insn *in, const struct head *h)
{
	unsigned digit = in->reg & 7;
	if (in->flags & ELFRW_INSN_MEM) {
		if (in->opcode == 0xc7 && digit == 1) /* cmpxchg8b */
			return (struct meaning)XRW(OTHER, RM, RM, N_, Q_,
						   BIT(RAX) | BIT(RBX) | BIT(RCX) | BIT(RDX),
						   BIT(RAX) | BIT(RDX));
		return (struct meaning)XRW(VECTOR, N_, RV, N_, Q_, BIT(RAX) | BIT(RDX), 0);
	}
	if (in->opcode == 0xc7) /* rdrand, rdseed, rdpid, senduipi */
		return (struct meaning)X(OTHER, RM, RM, N_, V_);
	if (h->pp == PF3 && digit < 2) /* rdfsbase */
		return (struct meaning)X(OTHER, RM, N_, N_, V4);
	if (h->pp == NP) /* fences */
		return (struct meaning)X(NONE, N_, N_, N_, V_);
	return (struct meaning)XRW(OTHER, N_, RM, N_, V4, digit == 6 ? BIT(RAX) | BIT(RDX) : 0, 0);
}

/* Opcodes whose meaning depends on prefixes or ModRM. */
static struct meaning odd(const struct elfrw_insn *in, const uint8_t *code, const struct head *h)
{
	unsigned digit = in->reg & 7, scalar = h->pp & (PF2 | PF3);
	if (in->own_map == 0) {
		switch (in->opcode) {
		case 0x90: /* pause: no registers; %r8 is in no field of IN */
			if (h->rex && (code[in->opcode_off - 1] & 1))
				return (struct meaning)XRW(XCHG, AX, N_, N_, V_, BIT(R8), BIT(R8));
			return (struct meaning)X(NONE, N_, N_, N_, V_);
		case 0xc6:
		case 0xc7:
			if (digit == 0)
				return in->opcode == 0xc6 ? (struct meaning)X(MOV, RM, IM, N_, B1)
							  : (struct meaning)X(MOV, RM, IM, N_, V_);
			return (struct meaning)XRW(NONE, N_, N_, N_, V_, BIT(RAX), BIT(RAX));
		default: /* fnstsw %ax */
			if (digit == 4 && (in->own_reg & 0xf7) == RAX)
				return (struct meaning)XRW(OTHER, N_, N_, N_, V_, BIT(RAX),
							   BIT(RAX));
			return (struct meaning)VEC;
		}
	}
	if (in->own_map != 1) /* mulx */
		return (struct meaning)XRW(OTHER, RG, RM, N_, V4, BIT(RDX), 1u << h->vvvv);
	switch (in->opcode) {
	case 0x01: return system_group(in);
	case 0x1e: /* rdssp; else a hint */
		if (h->pp == PF3 && digit == 1 && !(in->flags & ELFRW_INSN_MEM))
			return (struct meaning)X(OTHER, RM, RM, N_, V4);
		return (struct meaning)X(NONE, N_, N_, N_, V_);
	case 0x2a: return scalar ? (struct meaning)X(VECTOR, N_, RM, N_, V4) : (struct meaning)VEC;
	case 0x2c:
	case 0x2d: return scalar ? (struct meaning)X(OTHER, RG, RV, N_, V4) : (struct meaning)VEC;
	case 0x78: /* vmread, extrq */
		return h->pp == NP ? (struct meaning)X(OTHER, RM, RG, N_, Q_) : (struct meaning)VEC;
	case 0x79:
		return h->pp == NP ? (struct meaning)X(OTHER, N_, RM, RG, Q_) : (struct meaning)VEC;
	case 0x7e:
		return h->pp == PF3 ? (struct meaning)VEC
				    : (struct meaning)X(OTHER, RM, N_, N_, V4);
	default: return state_group(in, h);
	}
}

/* The condition of a jump: the opcode's low bits. */
static unsigned condition(const struct elfrw_insn *in)
{
	static const uint8_t by_code[16] = { [2] = ELFRW_COND_BELOW,
					     [3] = ELFRW_COND_NOT_BELOW,
					     [6] = ELFRW_COND_NOT_ABOVE,
					     [7] = ELFRW_COND_ABOVE };
	bool jcc = in->own_map ? (in->opcode & 0xf0) == 0x80 : (in->opcode & 0xf0) == 0x70;
	return jcc ? by_code[in->opcode & 15] : ELFRW_COND_OTHER;
}

static int64_t signed_field(const uint8_t *p, unsigned size)
{
	switch (size) {
	case 0: return 0;
	case 1: return (int8_t)*p;
	case 4: return (int32_t)elfrw_get32(p);
	default: {
		unsigned shift = 64 - 8 * size;
		return (int64_t)(elfrw_get_le(p, size) << shift) >> shift;
	}
	}
}

static unsigned width_of(unsigned width, const struct elfrw_insn *in, const struct head *h)
{
	switch (width) {
	case B1:
	case CXB: return 1;
	case V_:
	case CXV: return in->flags & ELFRW_INSN_OWN ? 8 : h->short16 ? 2 : 4;
	case SP: return h->short16 ? 2 : 8;
	case V4: return in->flags & ELFRW_INSN_OWN ? 8 : 4;
	default: return 8;
	}
}

/* Fills in the registers that are operands. */
struct fill {
	const struct elfrw_insn *in;
	const struct head *h;
	struct elfrw_effect *ret;
	bool mem;
	bool high; /* one is the second byte of a register */
};

/* The register of slot S, or NO. */
static unsigned in_slot(struct fill *f, unsigned s)
{
	unsigned r;
	switch (s) {
	case RM:
	case RB: r = f->in->own_reg; break;
	case RG: r = f->in->reg; break;
	case AX: return RAX;
	case CX: return RCX;
	case VV: return f->h->vvvv;
	default: return NO;
	}
	/* %ah to %bh. */
	if ((f->ret->width == 1 || s == RB) && !f->h->rex && r >= RSP && r <= RDI) {
		f->high = true;
		r &= 3;
	}
	return r;
}

static uint8_t operand(struct fill *f, unsigned s)
{
	if (s == N_)
		return NO;
	if (s == IM || s == I1)
		f->ret->flags |= ELFRW_EFFECT_IMM;
	else if (((s == RM || s == RB || s == RV) && f->mem) || s == MO)
		f->ret->flags |= ELFRW_EFFECT_LOADS;
	unsigned r = in_slot(f, s);
	f->ret->reads |= elfrw_reg_bit(r);
	return (uint8_t)r;
}

static uint8_t result(struct fill *f, unsigned s)
{
	if (s == N_)
		return NO;
	if ((s == RM && f->mem) || s == MO)
		f->ret->flags |= ELFRW_EFFECT_STORES;
	unsigned r = in_slot(f, s);
	f->ret->writes |= elfrw_reg_bit(r);
	return (uint8_t)r;
}

/* The word at %fs:0x28. */
static bool is_guard(const struct elfrw_insn *in, const uint8_t *code, int64_t disp)
{
	return disp == 0x28 && in->disp_size == 4 && in->base == NO && in->index == NO &&
	       memchr(code, 0x64, in->opcode_off);
}

/* What follows from the kinds of the operands. */
static void settle(const struct meaning *m, const struct fill *f, struct elfrw_effect *e)
{
	switch (e->op) {
	case ELFRW_OP_MOV:
		if (e->flags & ELFRW_EFFECT_STORES)
			e->op = ELFRW_OP_STORE;
		else if (e->flags & ELFRW_EFFECT_LOADS)
			e->op = ELFRW_OP_LOAD;
		break;
	case ELFRW_OP_XOR: /* of a register with itself */
		if (e->dst != NO && e->a == e->b && e->width >= 4) {
			e->op = ELFRW_OP_MOV;
			e->reads = 0;
			e->a = e->b = NO;
			e->flags |= ELFRW_EFFECT_IMM;
			e->imm = 0;
		}
		break;
	case ELFRW_OP_ZERO_EXTEND:
	case ELFRW_OP_SIGN_EXTEND:
		e->from = m->b == F1 ? 1 : m->b == F2 ? 2 : m->b == F4 ? 4 : e->width / 2;
		break;
	case ELFRW_OP_XCHG: /* and the other way round */
		e->reads |= elfrw_reg_bit(e->dst);
		if (f->in->own_map == 1 && (f->in->opcode & 0xfe) == 0xc0) /* xadd */
			e->flags |= ELFRW_EFFECT_SUM;
		if (m->width != CXB && m->width != CXV)
			e->writes |= elfrw_reg_bit(e->a);
		if (e->flags & ELFRW_EFFECT_STORES)
			e->flags |= ELFRW_EFFECT_LOADS;
		break;
	case ELFRW_OP_VECTOR:
		if (f->mem)
			e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
		break;
	case ELFRW_OP_PUSH: e->flags |= ELFRW_EFFECT_STORES; break;
	case ELFRW_OP_POP: e->flags |= ELFRW_EFFECT_LOADS; break;
	}
	if (m->width == STR || m->width == STK)
		e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
	if (m->width == STR && f->h->repeated) {
		e->reads |= BIT(RCX);
		e->writes |= BIT(RCX);
	}
	if (e->width < 4)
		e->reads |= e->writes;
	if (f->high && (e->op == ELFRW_OP_ZERO_EXTEND || e->op == ELFRW_OP_SIGN_EXTEND))
		e->a = NO;
	else if (f->high && e->op != ELFRW_OP_STORE && e->op != ELFRW_OP_CMP &&
		 e->op != ELFRW_OP_TEST)
		e->op = ELFRW_OP_OTHER;
}

static void effect(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_effect *e)
{
	*e = (struct elfrw_effect){ .op = ELFRW_OP_NONE, .dst = NO, .a = NO, .b = NO };
	if (in->kind == ELFRW_INSN_NOP || (in->flags & ELFRW_INSN_ENDBR))
		return;
	bool mem = in->flags & ELFRW_INSN_MEM, legacy = in->own_map < 4;
	if (in->kind == ELFRW_INSN_JCC)
		e->cond = (uint8_t)condition(in);
	struct head h = legacy ? legacy_head(in, code) : vector_head(in, code);
	struct meaning m = in->own_map == 0   ? one_byte[in->opcode]
			   : in->own_map == 1 ? two_byte[in->opcode]
					      : look_up(in->own_map, in->opcode, h.pp);
	struct fill f = { .in = in, .h = &h, .ret = e, .mem = mem };
	if (m.op >= IS_ODD)
		m = odd(in, code, &h);
	else if (m.op >= IS_GROUP) {
		unsigned width = m.width;
		m = groups[m.op - IS_GROUP][in->reg & 7];
		if (width == B1)
			m.width = B1;
	}
	e->op = m.op;
	e->width = (uint8_t)width_of(m.width, in, &h);
	if (e->width == 1 && m.writes == (BIT(RAX) | BIT(RDX))) /* mul and div of bytes */
		m.reads = m.writes = BIT(RAX);
	e->reads = m.reads;
	e->writes = m.writes;
	e->a = operand(&f, m.a);
	e->b = operand(&f, m.b);
	e->dst = result(&f, m.dst);
	e->imm = m.a == I1 || m.b == I1 ? 1 : signed_field(code + in->imm_off, in->imm_size);
	settle(&m, &f, e);
	if (mem) {
		e->reads |= elfrw_reg_bit(in->base) | elfrw_reg_bit(in->index);
		e->disp = signed_field(code + in->disp_off, in->disp_size);
		if (is_guard(in, code, e->disp))
			e->flags |= ELFRW_EFFECT_GUARD;
	}
	if (in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_CALL_IND) {
		e->op = ELFRW_OP_CALL;
		e->flags |= ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES;
		e->dst = RAX;
		e->reads |= elfrw_x86_64_model.arguments;
		e->writes = elfrw_x86_64_model.clobbered;
	}
}

/* System V psABI for AMD64, section 3.2.1 (registers) and figure 3.36 (DWARF numbers).  %r10 is the
 * static chain pointer, an argument of nested functions. */
/* GCC and LLVM count from the table.  Hand-written code also counts from a label. */
static const struct elfrw_table_shape tables[] = { { 4, 0, true, false }, { 4, 0, true, true } };

const struct elfrw_model elfrw_x86_64_model = {
	.effect = effect,
	.table = tables,
	.n_tables = sizeof tables / sizeof *tables,
	.regs = 16,
	.result = RAX,
	.argument = { RDI, RSI },
	.sp = RSP,
	.fp = RBP,
	.link = NO,
	.results = BIT(RAX) | BIT(RDX),
	.arguments = BIT(RDI) | BIT(RSI) | BIT(RDX) | BIT(RCX) | BIT(R8) | BIT(R9) | BIT(R10),
	.clobbered = BIT(RAX) | BIT(RCX) | BIT(RDX) | BIT(RSI) | BIT(RDI) | BIT(R8) | BIT(R9) |
		     BIT(R10) | BIT(R11),
	.kept = BIT(RBX) | BIT(RBP) | 0xf000,
	.dwarf = { 0, 2, 1, 3, 7, 6, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15 },
};
