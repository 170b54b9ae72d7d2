/* x86_64_decode.c: how long an x86-64 instruction is, where its address-sized fields are, and what
 * it does to control.
 *
 * Decoding is most of the work on a large program's code, so this does no more than the callers
 * need, and what nearly all code consists of (no prefix but REX, maps 0 and 0F, no opcode with odd
 * rules) is decoded without a branch that depends on the data: the result is the sum of table
 * entries for the opcode, the ModRM byte, the SIB byte and REX, and what an instruction lacks is
 * masked away.  Everything else, some 4 % of compiled code, takes the long way round. Measured on
 * 9.8 million instructions: 9 ns each (3.7 GHz), where a full decoder needs 55 to 65.
 *
 * Bounds: decoding may read MAX_READ bytes from an instruction's start.  When fewer are there, it
 * works on a zero-padded copy and the result is refused if it is longer than the input: that is the
 * one bounds check of an instruction. */
#include <string.h>

#include "elfrw/arch/arch.h"
#include "elfrw/arch/x86_64_decode.h"

#define likely(x)   __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* 14 prefixes, 5 bytes EVEX or 4 of REX and escapes with the opcode, ModRM, SIB, 4 displacement, 4
 * relative: 29. */
#define MAX_READ 32
#define MAX_LEN  15

/* struct elfrw_insn's first 16 bytes, as two little-endian words: W0 holds len, kind and the six
 * field offsets and sizes, W1 opcode_off, own_map, reg, own_reg, base, index, scale and flags. */
#define W0_LEN(x)           ((uint64_t)(x))
#define W0_KIND(x)          ((uint64_t)(x) << 8)
#define W0_PCREL(off, size) ((uint64_t)(off) << 16 | (uint64_t)(size) << 24)
#define W0_DISP(off, size)  ((uint64_t)(off) << 32 | (uint64_t)(size) << 40)
#define W0_IMM(off, size)   ((uint64_t)(off) << 48 | (uint64_t)(size) << 56)
#define W1_REGS(reg, rm, base, index, scale)                                     \
	((uint64_t)(reg) << 16 | (uint64_t)(rm) << 24 | (uint64_t)(base) << 32 | \
	 (uint64_t)(index) << 40 | (uint64_t)(scale) << 48)
#define W1_FLAGS(x) ((uint64_t)(x) << 56)

_Static_assert(offsetof(struct elfrw_insn, imm_size) == 7 &&
		       offsetof(struct elfrw_insn, flags) == 15 &&
		       offsetof(struct elfrw_insn, pcrel_size) == 3 &&
		       offsetof(struct elfrw_insn, disp_size) == 5 &&
		       offsetof(struct elfrw_insn, reg) == 10 &&
		       offsetof(struct elfrw_insn, base) == 12,
	       "W0 and W1");

/* An opcode's shape: what it and its immediate add to W0 when there is no operand size prefix, with
 * flags in bits that are free there. */
#define A_OPREG 0x40   /* a register in the opcode's low bits: REX.R's bit << 4 */
#define A_IMM_V 0x80   /* the immediate has 8 bytes with REX.W: its bit << 4 */
#define A_HEAD  0x1000 /* see long_head(): prefix, escape, VEX and the like */
#define A_LEA   0x2000
#define A_IMM_Z 0x4000 /* the immediate has 2 bytes with prefix 66, unless REX.W */
#define A_MODRM 0x8000000000000000
#define A_W0    (W0_LEN(15) | W0_KIND(15) | W0_PCREL(0, 15) | W0_IMM(0, 15)) /* without the flags */
#define IMM(n)  (W0_LEN(n) | W0_IMM(0, n))   /* an immediate of N bytes */
#define REL(n)  (W0_LEN(n) | W0_PCREL(0, n)) /* a branch displacement of N bytes */
#define KIND(x) W0_KIND(ELFRW_INSN_##x)

/* What the bytes after the opcode add to W0 when each offset starts out as the opcode's end
 * (modrm_w0, by ModRM byte), and give as W1 (modrm_w1, by ModRM byte; then for no ModRM byte; then
 * for register 0 to 15 in the opcode).  A SIB byte leaves base, index and scale zero for sib_w1. */
#define NO         ELFRW_REG_NONE
#define TAIL(n)    (W0_LEN(n) | W0_IMM(n, 0))
#define MEM        W1_FLAGS(ELFRW_INSN_MEM)
#define EIGHT(m)   m(0), m(1), m(2), m(3), m(4), m(5), m(6), m(7)
#define M0_BASE(d) (TAIL(1 + (d)) | W0_DISP(1, d))
#define M0_SIB(d)  (TAIL(2 + (d)) | W0_DISP(2, d))
#define M0_RIP     (TAIL(5) | W0_PCREL(1, 4) | W0_DISP(1, 0))
#define M0_0(r) \
	M0_BASE(0), M0_BASE(0), M0_BASE(0), M0_BASE(0), M0_SIB(0), M0_RIP, M0_BASE(0), M0_BASE(0)
#define M0_D(d)                                                                            \
	M0_BASE(d), M0_BASE(d), M0_BASE(d), M0_BASE(d), M0_SIB(d), M0_BASE(d), M0_BASE(d), \
		M0_BASE(d)
#define M0_1(r) M0_D(1)
#define M0_2(r) M0_D(4)
#define M0_3(r)                                                                             \
	M0_BASE(0), M0_BASE(0), M0_BASE(0), M0_BASE(0), M0_BASE(0), M0_BASE(0), M0_BASE(0), \
		M0_BASE(0)
static const uint64_t modrm_w0[256] = { EIGHT(M0_0), EIGHT(M0_1), EIGHT(M0_2), EIGHT(M0_3) };

#define M1_BASE(r, b) (W1_REGS(r, NO, b, NO, 1) | MEM)
#define M1_SIB(r)     (W1_REGS(r, NO, 0, 0, 0) | MEM)
#define M1_REG(r, rm) W1_REGS(r, rm, NO, NO, 1)
#define M1_MEM(r, five)                                                                          \
	M1_BASE(r, 0), M1_BASE(r, 1), M1_BASE(r, 2), M1_BASE(r, 3), M1_SIB(r), M1_BASE(r, five), \
		M1_BASE(r, 6), M1_BASE(r, 7)
#define M1_0(r)  M1_MEM(r, NO)
#define M1_12(r) M1_MEM(r, 5)
#define M1_3(r)                                                                             \
	M1_REG(r, 0), M1_REG(r, 1), M1_REG(r, 2), M1_REG(r, 3), M1_REG(r, 4), M1_REG(r, 5), \
		M1_REG(r, 6), M1_REG(r, 7)
#define M1_OP(r) M1_REG(r, NO)
enum { MODRM_NONE = 256 };
static const uint64_t modrm_w1[MODRM_NONE + 17] = {
	EIGHT(M1_0), EIGHT(M1_12), EIGHT(M1_12), EIGHT(M1_3), M1_OP(NO), EIGHT(M1_OP), M1_OP(8),
	M1_OP(9),    M1_OP(10),    M1_OP(11),    M1_OP(12),   M1_OP(13), M1_OP(14),    M1_OP(15),
};

/* Base, index and scale (W1, from bit 32), by REX.X and SIB byte. */
#define SIB(base, index, scale) ((base) | (index) << 8 | (scale) << 16)
#define SIB_8(i, s)                                                                         \
	SIB(0, i, s), SIB(1, i, s), SIB(2, i, s), SIB(3, i, s), SIB(4, i, s), SIB(5, i, s), \
		SIB(6, i, s), SIB(7, i, s)
#define SIB_64(x, four, s)                                                              \
	SIB_8(x, s), SIB_8(x + 1, s), SIB_8(x + 2, s), SIB_8(x + 3, s), SIB_8(four, s), \
		SIB_8(x + 5, s), SIB_8(x + 6, s), SIB_8(x + 7, s)
#define SIB_256(x, four) \
	SIB_64(x, four, 1), SIB_64(x, four, 2), SIB_64(x, four, 4), SIB_64(x, four, 8)
static const uint32_t sib_w1[512] = { SIB_256(0, NO), SIB_256(8, 12) };

/* What REX (its low four bits) adds to W1 but for the index. */
#define REX(r, b, w) W1_REGS((r)*8, (b)*8, (b)*8, 0, 0) | W1_FLAGS((w)*ELFRW_INSN_OWN)
#define REX_4(r, w)  REX(r, 0, w), REX(r, 1, w), REX(r, 0, w), REX(r, 1, w)
static const uint64_t rex_w1[16] = { REX_4(0, 0), REX_4(1, 0), REX_4(0, 1), REX_4(1, 1) };

/* The maps, as x86_valid counts them. */
enum {
	MAP_0,
	MAP_1,
	MAP_2,
	MAP_3,
	MAP_VEX1,
	MAP_VEX2,
	MAP_VEX3,
	MAP_EVEX1,
	MAP_EVEX2,
	MAP_EVEX3,
	MAP_EVEX5,
	MAP_EVEX6,
	MAP_XOP8,
	MAP_XOP9,
	MAP_XOPA,
	MAP_COUNT
};

/* Validity of a group's member: by mandatory prefix (none, 66, F3, F2); for memory operands a bit
 * for each ModRM.reg, for register operands a bit for each low six bits of the ModRM byte. */
struct x86_group {
	uint8_t mem[4];
	uint64_t reg[4];
};

#include "elfrw/arch/x86_64_tables.inc"

enum { /* prefixes seen */
       P_OSZ = 1,
       P_ASZ = 2,
       P_LOCK = 4,
       P_REP = 8,
       P_3E = 16, /* notrack before an indirect branch */
       P_SEG = 32,
};

/* Whether LOCK may stand before opcode OP of MAP with ModRM.reg REG and a memory operand (or mov
 * cr8, AMD's way). */
static bool lockable(unsigned map, unsigned op, unsigned reg, bool mem)
{
	if (map == 1 && (op == 0x20 || op == 0x22))
		return true;
	if (!mem)
		return false;
	if (map == 0)
		return (op < 0x38 && (op & 7) < 2) ||
		       ((op == 0x80 || op == 0x81 || op == 0x83) && reg != 7) || op == 0x86 ||
		       op == 0x87 || ((op == 0xf6 || op == 0xf7) && (reg == 2 || reg == 3)) ||
		       ((op == 0xfe || op == 0xff) && reg < 2);
	if (map == 1)
		return op == 0xab || op == 0xb3 || op == 0xbb || op == 0xb0 || op == 0xb1 ||
		       op == 0xc0 || op == 0xc1 || (op == 0xba && reg >= 5) ||
		       (op == 0xc7 && reg == 1);
	return false;
}

/* What a VEX, EVEX or XOP prefix says. */
struct vector {
	unsigned map, codemap, rex, pp;
};

/* VEX, EVEX or XOP at P[I], whose first byte is OP: returns the place of the opcode, or 0 when it
 * is none of them. */
static unsigned vector_head(const uint8_t *p, unsigned i, unsigned op, struct vector *v)
{
	static const uint8_t evex_maps[8] = { 0, MAP_EVEX1, MAP_EVEX2, MAP_EVEX3,
					      0, MAP_EVEX5, MAP_EVEX6, 0 };
	unsigned b1 = p[i + 1], b2 = p[i + 2], m = b1 & 31;
	if (op == 0xc5) {
		*v = (struct vector){ MAP_VEX1, 0x11, ~b1 >> 5 & 4, b1 & 3 };
		return i + 2;
	}
	v->rex = (~b1 >> 5 & 7) | (b2 >> 4 & 8);
	v->pp = b2 & 3;
	if (op == 0x62) {
		/* bit 3 of the first and bit 2 of the second byte mean other encodings (APX,
		 * Knights Corner) */
		m &= 15;
		if (m > 7 || !evex_maps[m] || !(b2 & 4))
			return 0;
		v->map = evex_maps[m];
	} else if (op == 0xc4) {
		if (m < 1 || m > 3)
			return 0;
		v->map = MAP_VEX1 + m - 1;
	} else {
		if (m < 8 || m > 10)
			return 0;
		v->map = MAP_XOP8 + m - 8;
	}
	v->codemap = 0x10 | m;
	return i + (op == 0x62 ? 4 : 3);
}

struct words {
	uint64_t w0, w1;
};

/* What an opcode byte at I of map CODEMAP (as in elfrw_insn) gives: all fields begin at its end. */
#define START(i, codemap)                                                                \
	{                                                                                \
		((i) + 1) * (W0_LEN(1) | W0_PCREL(1, 0) | W0_DISP(1, 0) | W0_IMM(1, 0)), \
			(codemap) << 8 | (i)                                             \
	}
static const struct words starts[2][2] = { { START(0, 0), START(1, 0) },
					   { START(1, 1), START(2, 1) } };

/* What precedes the opcode, and the opcode. */
struct head {
	uint64_t bytes; /* from the opcode on */
	struct words start;
	uint64_t attr;
	unsigned map, op, rex, pfx, pp;
};

/* Any prefix, any map.  False for an invalid instruction.  Long: one loop over the prefixes, most
 * of whose lines are one prefix. */
static __attribute__((noinline)) bool long_head(const uint8_t *p, struct head *h)
{
	unsigned i = 0, pfx = 0, pp = 0, rex, map, codemap, op, mod = 0;
	uint64_t a;
	for (;;) {
		op = p[i];
		rex = (op & 0xf0) == 0x40 ? op : 0;
		i += rex != 0;
		op = p[i];
		map = op == 0x0f;
		i += map;
		op = p[i];
		a = x86_attr[map][op];
		codemap = map;
		if (!(a & A_HEAD))
			break;
		if (i >= MAX_LEN - 1)
			return false;
		if (map && (op & 0xfc) == 0x20) { /* control and debug registers */
			mod = 0xc0;
			a = A_MODRM;
			break;
		}
		if (map) {
			map = codemap = op == 0x38 ? MAP_2 : MAP_3;
			op = p[++i];
			a = x86_map_attr[map];
			break;
		}
		if (op == 0x8f && (p[i + 1] & 31) < 8) { /* pop, not XOP */
			a = A_MODRM;
			break;
		}
		if (op == 0xc5 || op == 0xc4 || op == 0x62 ||
		    op == 0x8f) { /* these carry the prefixes themselves */
			if (rex || (pfx & (P_OSZ | P_REP | P_LOCK)))
				return false;
			struct vector v;
			i = vector_head(p, i, op, &v);
			if (!i)
				return false;
			map = v.map;
			codemap = v.codemap;
			rex = v.rex;
			pp = v.pp;
			op = p[i];
			a = x86_map_attr[map];
			if (map == MAP_VEX1 || map == MAP_EVEX1)
				a = x86_attr[1][op] & (A_MODRM | IMM(15));
			break;
		}
		switch (op) {
		case 0x66:
			pfx |= P_OSZ;
			pp = pp < 2 ? 1 : pp;
			break;
		case 0xf2:
		case 0xf3: /* the last one counts, and before 66 */
			pfx |= P_REP;
			pp = op == 0xf3 ? 2 : 3;
			break;
		case 0x67: pfx |= P_ASZ; break;
		case 0xf0: pfx |= P_LOCK; break;
		case 0x3e: pfx |= P_3E; break;
		case 0x64:
		case 0x65: pfx = (pfx & ~P_3E) | P_SEG; break;
		case 0x26:
		case 0x2e:
		case 0x36: pfx |= P_SEG; break;
		default: /* REX after REX: only the last counts */ continue;
		}
		i++;
	}
	uint64_t bytes;
	memcpy(&bytes, p + i, sizeof bytes);
	*h = (struct head){ bytes | mod << 8, START(i, codemap), a, map, op, rex, pfx, pp };
	return true;
}

/* The instruction's description as far as the tables know it, without regard to operand size. */
static inline __attribute__((always_inline)) struct words assemble(const struct head *h)
{
	unsigned modrm_sib = h->bytes >> 8 & 0xffff, mr = modrm_sib & 0xff;
	uint64_t has_modrm = (uint64_t)((int64_t)h->attr >> 63);
	unsigned opreg = ((h->op & 7) | (h->rex & 1) << 3) + 1,
		 row = MODRM_NONE + (opreg & -(unsigned)(h->attr >> 6 & 1));
	uint64_t w0 = h->start.w0 + (h->attr & A_W0) + (modrm_w0[mr] & has_modrm);
	/* REX bits go onto register numbers that may be NONE (all ones), which they then leave
	 * alone; an index that is not NONE by now means a SIB byte */
	uint64_t w1 = h->start.w1 | modrm_w1[row ^ ((row ^ mr) & (unsigned)has_modrm)] |
		      rex_w1[h->rex & 15];
	uint64_t no_sib = (uint64_t)((int64_t)(w1 << 16) >> 63);
	w1 |= (uint64_t)sib_w1[modrm_sib >> 8 | (h->rex & 2) << 7] << 32 & ~no_sib;
	w1 |= (h->attr & A_LEA) << (56 - 12);
	if (unlikely((modrm_sib & 0x7c7) == 0x504) && has_modrm) { /* no base, disp32 */
		w0 += TAIL(4) | W0_DISP(0, 4);
		w1 |= W1_REGS(0, 0, NO, 0, 0);
	}
	return (struct words){ w0, w1 };
}

/* Fills *INSN; returns the length.  There is one PC-relative field at most: no instruction has both
 * a branch displacement and a memory operand. */
static inline __attribute__((always_inline)) unsigned finish(const uint8_t *p, uint64_t va,
							     struct words w, unsigned op,
							     struct elfrw_insn *insn)
{
	uint32_t raw, len = w.w0 & 0xff;
	memcpy(&raw, p + (w.w0 >> 16 & 0xff), sizeof raw);
	unsigned shift = -8 * (unsigned)(w.w0 >> 24 & 0xff) & 31; /* 0 for four bytes, 24 for one */
	insn->target = va + len + (uint64_t)(int64_t)((int32_t)(raw << shift) >> shift);
	memcpy(insn, &w, sizeof w);
	insn->opcode = op;
	return len;
}

static void set_kind(uint64_t *w0, unsigned kind)
{
	*w0 = (*w0 & ~W0_KIND(0xff)) | W0_KIND(kind);
}

/* False for an invalid instruction.  Corrects *W for the opcodes whose shape depends on more than
 * the opcode.  MR is the ModRM byte.  Long: a case for each such opcode. */
static bool odd(const struct head *h, unsigned mr, struct words *w)
{
	unsigned map = h->map, op = h->op, rex = h->rex, pfx = h->pfx, pp = h->pp,
		 reg = mr >> 3 & 7;
	uint64_t *w0 = &w->w0, *w1 = &w->w1;
	unsigned v = x86_valid[map][op];
	if (v & 0x100) {
		const struct x86_group *g = &x86_groups[v & 0xff];
		if (!(mr >= 0xc0 ? g->reg[pp] >> (mr & 63) & 1 : (unsigned)g->mem[pp] >> reg & 1))
			return false;
	} else if (!(v >> (pp + (mr >= 0xc0 ? 4 : 0)) & 1)) {
		return false;
	}
	if (map == 0) {
		switch (op) {
		case 0x90: /* REX.B: xchg with r8; F3: pause */
			if ((rex & 1) || pp == 2)
				set_kind(w0, ELFRW_INSN_OTHER);
			break;
		case 0xa0:
		case 0xa1:
		case 0xa2:
		case 0xa3: /* moffs */ *w0 += pfx & P_ASZ ? IMM(4) : IMM(8); break;
		case 0xc7:
			if (mr ==
			    0xf8) { /* xbegin, whose displacement does follow the operand size */
				unsigned size = *w0 >> 56, off = *w0 >> 48 & 0xff;
				set_kind(w0, ELFRW_INSN_JCC);
				*w0 = (*w0 & ~W0_IMM(0, 0xff) & ~W0_PCREL(0xff, 0)) |
				      W0_PCREL(off, size);
			}
			break;
		case 0xc8: /* enter: one byte more */ *w0 += W0_LEN(1); break;
		case 0xf6: /* test */
			if (reg < 2)
				*w0 += IMM(1);
			break;
		case 0xf7:
			if (reg < 2)
				*w0 += (pfx & P_OSZ) && !(rex & 8) ? IMM(2) : IMM(4);
			break;
		case 0xff:
			if (reg == 2 || reg == 3)
				set_kind(w0, ELFRW_INSN_CALL_IND);
			else if (reg == 4 || reg == 5)
				set_kind(w0, ELFRW_INSN_JMP_IND);
			if (reg == 3 || reg == 5)
				*w1 |= W1_FLAGS(ELFRW_INSN_LONG_CALL);
			else if ((pfx & P_3E) && (reg == 2 || reg == 4))
				*w1 |= W1_FLAGS(ELFRW_INSN_NOTRACK);
			break;
		case 0xca:
		case 0xcb:
		case 0xcf: *w1 |= W1_FLAGS(ELFRW_INSN_LONG_CALL); break;
		}
	} else if (map == 1) {
		switch (op) {
		case 0x01:
			if (mr == 0xec && pp == 2) { /* uiret */
				set_kind(w0, ELFRW_INSN_RET);
				*w1 |= W1_FLAGS(ELFRW_INSN_LONG_CALL);
			}
			break;
		case 0x07:
		case 0x35:
		case 0xaa: *w1 |= W1_FLAGS(ELFRW_INSN_LONG_CALL); break;
		case 0x0f: /* 3DNow!: the opcode comes last */ *w0 += W0_LEN(1); break;
		case 0x1e:
			if (mr == 0xfa && pp == 2)
				*w1 |= W1_FLAGS(ELFRW_INSN_ENDBR);
			break;
		case 0x78: /* extrq, insertq */
			if (pp == 1 || pp == 3)
				*w0 += IMM(2);
			break;
		}
	}
	return true;
}

/* P has MAX_READ readable bytes.  Returns the length, 0 when invalid. */
static __attribute__((noinline)) unsigned decode_any(const uint8_t *p, uint64_t va,
						     struct elfrw_insn *insn)
{
	struct head h;
	if (!long_head(p, &h))
		return 0;
	unsigned mr = h.bytes >> 8 & 0xff;
	if (h.attr & A_OPREG) /* REX.R means nothing here */
		h.rex &= ~4u;
	struct words w = assemble(&h);
	if ((h.rex & 8) && (h.attr & A_IMM_V))
		w.w0 += IMM(4);
	if (!(h.rex & 8) && (h.pfx & P_OSZ) && (h.attr & A_IMM_Z))
		w.w0 -= IMM(2);
	if (!odd(&h, mr, &w))
		return 0;
	if (h.pfx) {
		unsigned kind = w.w0 >> 8 & 0xff;
		bool mem = w.w1 & MEM;
		if ((h.pfx & P_LOCK) && !lockable(h.map, h.op, mr >> 3 & 7, mem))
			return 0;
		/* eip-relative: no compiler writes it.  16-bit branches: Intel and AMD disagree */
		if (((h.pfx & P_ASZ) && mem && (mr & 0xc7) == 5) ||
		    ((h.pfx & P_OSZ) && !(h.rex & 8) && kind >= ELFRW_INSN_RET))
			w.w1 |= W1_FLAGS(ELFRW_INSN_LONG_CALL);
	}
	if ((w.w0 & 0xff) > MAX_LEN) /* REX can be repeated, too */
		return 0;
	return finish(p, va, w, h.op, insn);
}

/* Near the end of the input: on a copy. */
static __attribute__((noinline)) unsigned decode_short(const uint8_t *code, size_t avail,
						       uint64_t va, struct elfrw_insn *insn)
{
	uint8_t copy[MAX_READ] = { 0 };
	if (!avail)
		return 0;
	memcpy(copy, code, avail);
	unsigned len = decode_any(copy, va, insn);
	return len <= avail ? len : 0;
}

/* What most code consists of is decoded here: no prefix but REX, maps 0 and 0F, opcodes with
 * nothing odd about them. */
unsigned elfrw_x86_decode(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *insn)
{
	if (unlikely(avail < MAX_READ))
		return decode_short(code, avail, va, insn);
	struct head h = { 0 };
	memcpy(&h.bytes, code, sizeof h.bytes);
	unsigned has_rex = (h.bytes & 0xf0) == 0x40;
	h.rex = h.bytes & -has_rex;
	h.bytes >>= has_rex * 8;
	h.map = (h.bytes & 0xff) == 0x0f;
	h.bytes >>= h.map * 8;
	h.op = h.bytes & 0xff;
	h.start = starts[h.map][has_rex];
	h.attr = x86_attr[h.map][h.op];
	if (unlikely(!(x86_plain[h.map][h.op] >> (h.bytes >> 11 & 31) & 1) ||
		     (h.attr >> 4 & h.rex & 12)))
		return decode_any(code, va, insn);
	return finish(code, va, assemble(&h), h.op, insn);
}

/* A head's field is unknown here.  xbegin (c7 f8) is the one branch with a ModRM byte. */
void elfrw_x86_may_refer(const uint8_t *code, size_t avail, size_t n, uint8_t *ret)
{
	size_t i = 0;
	for (uint64_t bytes; i < n && avail - i >= sizeof bytes; i++) {
		memcpy(&bytes, code + i, sizeof bytes);
		bytes >>= ((bytes & 0xf0) == 0x40) * 8;
		unsigned map = (bytes & 0xff) == 0x0f;
		bytes >>= map * 8;
		uint64_t a = x86_attr[map][bytes & 0xff];
		unsigned mr = bytes >> 8 & 0xff;
		ret[i] = (uint8_t)(((a & (A_HEAD | W0_PCREL(0, 15))) != 0) |
				   ((a >> 63) & (((mr & 0xc7) == 5) | (mr == 0xf8))));
	}
	memset(ret + i, 1, n - i);
}
