/* x86_decode.c: how long an x86-64 instruction is, where its address-sized fields are, and what it does to control.
 *
 * Decoding is nearly all of the work on a large program's code, so this does no more than the callers need and has as
 * few data-dependent branches as possible: one table look-up for an opcode's shape, one for its validity, one for the
 * ModRM byte; fields that an instruction lacks are computed and masked away.  Only prefixes other than REX, the
 * 0F38/0F3A and vector maps, a SIB byte and some twenty odd opcodes branch.  (Measured: 4 to 6 ns an instruction.)
 *
 * Bounds: the decoder proper may read MAX_READ bytes from its start.  When fewer are there, it works on a zero-padded
 * copy and the result is refused if it is longer than the input: that is the one bounds check of an instruction. */
#include <string.h>

#include "elfrw/arch.h"
#include "elfrw/x86_decode.h"

#define likely(x) __builtin_expect(!!(x), 1)
#define unlikely(x) __builtin_expect(!!(x), 0)

/* 14 prefixes, 5 bytes EVEX or 4 of REX and escapes with the opcode, ModRM, SIB, 4 displacement, 4 relative: 29. */
#define MAX_READ 32
#define MAX_LEN 15

/* An opcode's shape.  Bits 0 to 3: elfrw_insn_kind.  Bits 4 to 7: the immediate. */
enum {
	IMM_NONE = 0 << 4,
	IMM_B = 1 << 4,  /* one byte */
	IMM_W = 2 << 4,  /* two bytes */
	IMM_Z = 3 << 4,  /* two or four by operand size */
	IMM_V = 4 << 4,  /* two, four or eight by operand size */
	IMM_JB = 5 << 4, /* branch displacement, one byte */
	IMM_JZ = 6 << 4, /* branch displacement, four bytes */
	IMM_D = 7 << 4,  /* four bytes */
	IMM_MASK = 15 << 4,
	A_MODRM = 0x100,
	A_REL = 0x200,     /* the immediate is a branch displacement */
	A_SPECIAL = 0x400, /* see special() */
	A_HEAD = 0x800,    /* not an opcode: prefix, REX, escape, VEX, EVEX, XOP */
	A_FAR = 0x1000,    /* ELFRW_INSN_LONG_CALL */
	A_LEA = 0x2000,
	A_OPREG = 0x4000,  /* a register in the low bits of the opcode */
	A_MODREG = 0x8000, /* ModRM.mod counts as 3 */
};

/* Sizes by (immediate, operand size): default, 66, REX.W, REX.W and 66. */
static const uint8_t imm_sizes[16][4] = {
	[IMM_B >> 4] = { 1, 1, 1, 1 },
	[IMM_W >> 4] = { 2, 2, 2, 2 },
	[IMM_Z >> 4] = { 4, 2, 4, 4 },
	[IMM_V >> 4] = { 4, 2, 8, 8 },
	[IMM_JB >> 4] = { 1, 1, 1, 1 },
	[IMM_JZ >> 4] = { 4, 4, 4, 4 },
	[IMM_D >> 4] = { 4, 4, 4, 4 },
};

/* What a ModRM byte says: bits 0 to 2 the displacement's size, and: */
enum {
	MR_SIB = 0x08,
	MR_MEM = 0x10,
	MR_RIP = 0x20,
	MR_REG = 0x40,  /* rm is a register */
	MR_BASE = 0x80, /* rm is the base */
};

#define MR8(x) x, x, x, x, x, x, x, x
#define MR_ROWS(r0, r4, r5, r) r0, r0, r0, r0, r4, r5, r, r
#define MR_MOD0 MR_ROWS(MR_MEM | MR_BASE, MR_MEM | MR_SIB, MR_MEM | MR_RIP | 4, MR_MEM | MR_BASE)
#define MR_MOD1 MR_ROWS(MR_MEM | MR_BASE | 1, MR_MEM | MR_SIB | 1, MR_MEM | MR_BASE | 1, MR_MEM | MR_BASE | 1)
#define MR_MOD2 MR_ROWS(MR_MEM | MR_BASE | 4, MR_MEM | MR_SIB | 4, MR_MEM | MR_BASE | 4, MR_MEM | MR_BASE | 4)
static const uint8_t modrm_info[256] = {
	MR8(MR_MOD0), MR8(MR_MOD1), MR8(MR_MOD2), MR8(MR8(MR_REG)),
};

/* The maps as x86_valid counts them. */
enum { MAP_0, MAP_1, MAP_2, MAP_3, MAP_VEX1, MAP_VEX2, MAP_VEX3, MAP_EVEX1, MAP_EVEX2, MAP_EVEX3, MAP_EVEX5, MAP_EVEX6,
	MAP_XOP8, MAP_XOP9, MAP_XOPA, MAP_COUNT };

/* Validity of a group's member: by mandatory prefix (none, 66, F3, F2); for memory operands a bit for each ModRM.reg,
 * for register operands a bit for each low six bits of the ModRM byte. */
struct x86_group {
	uint8_t mem[4];
	uint64_t reg[4];
};

#include "elfrw/x86_tables.inc"

enum { /* prefixes seen */
	P_OSZ = 1,
	P_ASZ = 2,
	P_LOCK = 4,
	P_REP = 8,
	P_3E = 16, /* notrack before an indirect branch */
};

/* Whether LOCK may stand before opcode OP of MAP with ModRM.reg REG and a memory operand (or mov cr8, AMD's way). */
static bool lockable(unsigned map, unsigned op, unsigned reg, bool mem)
{
	if (map == 1 && (op == 0x20 || op == 0x22))
		return true;
	if (!mem)
		return false;
	if (map == 0)
		return (op < 0x38 && (op & 7) < 2) || ((op == 0x80 || op == 0x81 || op == 0x83) && reg != 7) || op == 0x86 ||
		       op == 0x87 || ((op == 0xf6 || op == 0xf7) && (reg == 2 || reg == 3)) ||
		       ((op == 0xfe || op == 0xff) && reg < 2);
	if (map == 1)
		return op == 0xab || op == 0xb3 || op == 0xbb || op == 0xb0 || op == 0xb1 || op == 0xc0 || op == 0xc1 ||
		       (op == 0xba && reg >= 5) || (op == 0xc7 && reg == 1);
	return false;
}

/* The part of an instruction that special() may change. */
struct special {
	unsigned kind, flags, imm_size, extra; /* extra: bytes after the immediate */
	bool rel;
};

/* Opcodes whose shape depends on more than the opcode.  MR is the ModRM byte, PP the mandatory prefix (0 to 3). */
static struct special special(struct special s, unsigned map, unsigned op, unsigned mr, unsigned rex, unsigned pfx,
			      unsigned pp)
{
	unsigned reg = mr >> 3 & 7;
	if (map == 0) {
		switch (op) {
		case 0x90: /* REX.B: xchg with r8; F3: pause */
			if ((rex & 1) || pp == 2)
				s.kind = ELFRW_INSN_OTHER;
			break;
		case 0xa0: case 0xa1: case 0xa2: case 0xa3:
			s.imm_size = pfx & P_ASZ ? 4 : 8;
			break;
		case 0xc7:
			if (mr == 0xf8) { /* xbegin, whose displacement does follow the operand size */
				s.rel = true;
				s.kind = ELFRW_INSN_JCC;
				if (s.imm_size == 2)
					s.flags |= ELFRW_INSN_LONG_CALL;
			}
			break;
		case 0xc8:
			s.extra = 1;
			break;
		case 0xf6:
			s.imm_size = reg < 2 ? 1 : 0;
			break;
		case 0xf7:
			if (reg >= 2)
				s.imm_size = 0;
			break;
		case 0xff:
			if (reg == 2 || reg == 3)
				s.kind = ELFRW_INSN_CALL_IND;
			else if (reg == 4 || reg == 5)
				s.kind = ELFRW_INSN_JMP_IND;
			if (reg == 3 || reg == 5)
				s.flags |= ELFRW_INSN_LONG_CALL;
			else if ((pfx & P_3E) && (reg == 2 || reg == 4))
				s.flags |= ELFRW_INSN_NOTRACK;
			break;
		}
	} else if (map == 1) {
		switch (op) {
		case 0x01:
			if (mr == 0xec && pp == 2) { /* uiret */
				s.kind = ELFRW_INSN_RET;
				s.flags |= ELFRW_INSN_LONG_CALL;
			}
			break;
		case 0x0f: /* 3DNow!: the opcode comes last */
			s.extra = 1;
			break;
		case 0x1e:
			if (mr == 0xfa && pp == 2)
				s.flags |= ELFRW_INSN_ENDBR;
			break;
		case 0x78: /* extrq, insertq */
			if (pp == 1 || pp == 3)
				s.imm_size = 2;
			break;
		}
	}
	return s;
}

/* VEX, EVEX or XOP at P[I], whose first byte is OP: returns the place of the opcode, or 0 when it is none of them. */
static unsigned vector_head(const uint8_t *p, unsigned i, unsigned op, unsigned *map, unsigned *codemap, unsigned *rex,
			    unsigned *pp)
{
	static const uint8_t evex_maps[8] = { 0, MAP_EVEX1, MAP_EVEX2, MAP_EVEX3, 0, MAP_EVEX5, MAP_EVEX6, 0 };
	unsigned b1 = p[i + 1], b2 = p[i + 2], m = b1 & 31;
	if (op == 0xc5) {
		*rex = ~b1 >> 5 & 4;
		*map = MAP_VEX1;
		*codemap = 0x11;
		*pp = b1 & 3;
		return i + 2;
	}
	*rex = (~b1 >> 5 & 7) | (b2 >> 4 & 8);
	*pp = b2 & 3;
	if (op == 0x62) {
		/* bit 3 of the first and bit 2 of the second byte mean other encodings (APX, Knights Corner) */
		m &= 15;
		if (m > 7 || !evex_maps[m] || !(b2 & 4))
			return 0;
		*map = evex_maps[m];
	} else if (op == 0xc4) {
		if (m < 1 || m > 3)
			return 0;
		*map = MAP_VEX1 + m - 1;
	} else {
		if (m < 8 || m > 10)
			return 0;
		*map = MAP_XOP8 + m - 8;
	}
	*codemap = 0x10 | m;
	return i + (op == 0x62 ? 4 : 3);
}

/* P has MAX_READ readable bytes.  Returns the length, 0 when invalid. */
static inline __attribute__((always_inline)) unsigned decode(const uint8_t *p, uint64_t va, struct elfrw_insn *insn)
{
	unsigned i = 0, pfx = 0, pp = 0, rex, map, codemap, op, a;
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
		if (likely(!(a & A_HEAD)))
			break;
		if (i >= MAX_LEN - 1)
			return 0;
		if (map) {
			map = codemap = op == 0x38 ? MAP_2 : MAP_3;
			op = p[++i];
			a = x86_map_attr[map];
			break;
		}
		if (op == 0x8f && (p[i + 1] & 31) < 8) { /* pop, not XOP */
			a &= ~A_HEAD;
			break;
		}
		if (op == 0xc5 || op == 0xc4 || op == 0x62 || op == 0x8f) { /* these carry the prefixes themselves */
			if (rex || (pfx & (P_OSZ | P_REP | P_LOCK)))
				return 0;
			i = vector_head(p, i, op, &map, &codemap, &rex, &pp);
			if (!i)
				return 0;
			op = p[i];
			a = x86_map_attr[map];
			if (map == MAP_VEX1 || map == MAP_EVEX1)
				a = x86_attr[1][op] & (A_MODRM | IMM_MASK);
			break;
		}
		switch (op) {
		case 0x66:
			pfx |= P_OSZ;
			pp = pp < 2 ? 1 : pp;
			break;
		case 0xf2: case 0xf3: /* the last one counts, and before 66 */
			pfx |= P_REP;
			pp = op == 0xf3 ? 2 : 3;
			break;
		case 0x67:
			pfx |= P_ASZ;
			break;
		case 0xf0:
			pfx |= P_LOCK;
			break;
		case 0x3e:
			pfx |= P_3E;
			break;
		case 0x64: case 0x65:
			pfx &= ~P_3E;
			break;
		case 0x26: case 0x2e: case 0x36:
			break;
		default: /* REX after REX: only the last counts */
			continue;
		}
		i++;
	}
	unsigned opcode_off = i++;

	unsigned mr = p[i] | (a >> 15) * 0xc0u, has_modrm = a >> 8 & 1;
	unsigned info = modrm_info[mr] & -has_modrm, disp_size = info & 7;
	unsigned v = x86_valid[map][op];
	if (unlikely(v & 0x100)) {
		const struct x86_group *g = &x86_groups[v & 0xff];
		if (!(info & MR_REG ? g->reg[pp] >> (mr & 63) & 1 : (unsigned)g->mem[pp] >> (mr >> 3 & 7) & 1))
			return 0;
	} else if (unlikely(!(v >> (pp + (mr >= 0xc0 ? 4 : 0)) & 1))) {
		return 0;
	}
	i += has_modrm;
	unsigned rm = (mr & 7) | (rex & 1) << 3, reg = (mr >> 3 & 7) | (rex & 4) << 1;
	unsigned base = rm | (info & MR_BASE ? 0 : ELFRW_REG_NONE), index = ELFRW_REG_NONE, scale = 1;
	rm |= info & MR_REG ? 0 : ELFRW_REG_NONE;
	reg |= has_modrm ? 0 : ELFRW_REG_NONE;
	if (info & MR_SIB) {
		unsigned sib = p[i++];
		index = (sib >> 3 & 7) | (rex & 2) << 2;
		if (index == 4)
			index = ELFRW_REG_NONE;
		scale = 1u << (sib >> 6);
		base = (sib & 7) | (rex & 1) << 3;
		if ((sib & 7) == 5 && mr < 0x40) {
			base = ELFRW_REG_NONE;
			disp_size = 4;
		}
	}
	unsigned disp_off = i, imm_off = i + disp_size;
	unsigned imm_size = imm_sizes[a >> 4 & 15][(rex >> 2 & 2) | (pfx & P_OSZ)];
	unsigned kind = a & 15, flags = (info & MR_MEM ? ELFRW_INSN_MEM : 0) | (rex & 8) | (a & A_LEA ? ELFRW_INSN_LEA : 0);
	unsigned rel = a >> 9 & 1, extra = 0;
	if (unlikely(a & (A_SPECIAL | A_FAR | A_OPREG))) {
		if (a & A_SPECIAL) {
			struct special s = special((struct special){ kind, flags, imm_size, 0, rel }, map, op, mr, rex, pfx, pp);
			kind = s.kind;
			flags = s.flags;
			imm_size = s.imm_size;
			extra = s.extra;
			rel = s.rel;
		} else if (a & A_OPREG) {
			reg = (op & 7) | (rex & 1) << 3;
		} else {
			flags |= ELFRW_INSN_LONG_CALL;
		}
	}
	unsigned len = imm_off + imm_size + extra;
	if (unlikely(pfx)) {
		if ((pfx & P_LOCK) && !lockable(map, op, mr >> 3 & 7, info & MR_MEM))
			return 0;
		if ((pfx & P_ASZ) && (info & MR_RIP)) /* eip-relative: no compiler writes it */
			flags |= ELFRW_INSN_LONG_CALL;
		if ((pfx & P_OSZ) && !(rex & 8) && kind >= ELFRW_INSN_RET)
			flags |= ELFRW_INSN_LONG_CALL;
		if (len > MAX_LEN)
			return 0;
	}

	/* One PC-relative field at most: no instruction has both a branch displacement and a memory operand. */
	unsigned rip = info >> 5 & 1;
	unsigned pc_off = rel ? imm_off : disp_off, pc_size = (rel ? imm_size : 0) | (rip ? disp_size : 0);
	uint32_t raw;
	memcpy(&raw, p + pc_off, sizeof raw);
	unsigned shift = 32 - 8 * (pc_size & 4) - 8 * (pc_size & 3);
	insn->target = va + len + (uint64_t)(int64_t)((int32_t)(raw << (shift & 31)) >> (shift & 31));
	insn->len = len;
	insn->kind = kind;
	insn->pcrel_off = pc_off;
	insn->pcrel_size = pc_size;
	insn->disp_off = disp_off;
	insn->disp_size = rip ? 0 : disp_size;
	insn->imm_off = imm_off;
	insn->imm_size = rel ? 0 : imm_size;
	insn->opcode_off = opcode_off;
	insn->opcode_map = codemap;
	insn->reg = reg;
	insn->rm = rm;
	insn->base = base;
	insn->index = index;
	insn->scale = scale;
	insn->flags = flags;
	insn->opcode = op;
	return len;
}

unsigned elfrw_x86_decode(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *insn)
{
	if (likely(avail >= MAX_READ))
		return decode(code, va, insn);
	uint8_t copy[MAX_READ] = { 0 };
	memcpy(copy, code, avail);
	unsigned len = decode(copy, va, insn);
	return len <= avail ? len : 0;
}
