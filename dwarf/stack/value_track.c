/* value_track.c: see value_track.h.  The instruction formats are those of the Intel 64 manual,
 * volume 2. */
#include "dwarf/stack/value_track.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"
#include <string.h>

#define REGS   DWR_TRACK_REGS
#define RECENT 32
/* x86-64 (System V psABI): encoding numbers. */
enum { RAX, RCX, RDX, RSP = 4, RSI = 6, RDI = 7, R8 = 8, R11 = 11 };
#define MAX_SLOT 4096

void dwr_track_deinit(struct dwr_track *t)
{
	VEC_FREE(&t->value);
}

static uint32_t fresh(struct dwr_track *t, struct dwr_track_value v)
{
	struct dwr_track_value *slot = VEC_PUSH(&t->value);
	if (!slot) {
		t->nomem = true;
		return 0;
	}
	*slot = v;
	return (uint32_t)(t->value.len - 1);
}

void dwr_track_forget(struct dwr_track *t, unsigned r)
{
	if (r < REGS)
		t->s.reg[r] = (struct dwr_track_reg){ fresh(t, (struct dwr_track_value){ 0 }), 0 };
}

void dwr_track_forget_all(struct dwr_track *t)
{
	for (unsigned r = 0; r < REGS; r++)
		dwr_track_forget(t, r);
	t->s.epoch = ++t->epochs;
}

static void load(struct dwr_track *t, unsigned r, struct dwr_track_reg base, int32_t disp)
{
	struct dwr_track_value v = { true, base.id, t->s.epoch, 0 };
	if (__builtin_add_overflow(base.add, disp, &v.off)) {
		dwr_track_forget(t, r);
		return;
	}
	size_t n = t->value.len;
	for (size_t i = n; i-- > 0 && n - i <= RECENT;) {
		const struct dwr_track_value *o = &t->value.data[i];
		if (o->load && o->base == v.base && o->off == v.off && o->epoch == v.epoch) {
			t->s.reg[r] = (struct dwr_track_reg){ (uint32_t)i, 0 };
			return;
		}
	}
	t->s.reg[r] = (struct dwr_track_reg){ fresh(t, v), 0 };
}

static int64_t signed_field(const uint8_t *code, unsigned off, unsigned size)
{
	if (!size)
		return 0;
	uint64_t v = elfrw_get_le(code + off, size);
	unsigned shift = 64 - 8 * size;
	return (int64_t)(v << shift) >> shift;
}

static void add(struct dwr_track *t, unsigned r, int64_t by)
{
	int32_t sum;
	if (by != (int32_t)by || __builtin_add_overflow(t->s.reg[r].add, (int32_t)by, &sum))
		dwr_track_forget(t, r);
	else
		t->s.reg[r].add = sum;
}

/* A plain base + displacement operand. */
static bool plain(const struct elfrw_insn *in)
{
	return (in->flags & ELFRW_INSN_MEM) && in->base < REGS && in->index == ELFRW_REG_NONE &&
	       !in->pcrel_size;
}

/* Instructions of SSE that write no general register, by their second opcode byte. */
static bool vector_only(unsigned op)
{
	return op == 0x10 || op == 0x11 || (op >= 0x14 && op <= 0x17) || op == 0x28 || op == 0x29 ||
	       (op >= 0x51 && op <= 0x6f && op != 0x6e) || op == 0x7f || op == 0xd6 || op == 0xef ||
	       op == 0x1f;
}

void dwr_track_step(struct dwr_track *t, const struct elfrw_insn *in, const uint8_t *code)
{
	bool wide = in->flags & ELFRW_INSN_REX_W, mem = in->flags & ELFRW_INSN_MEM;
	unsigned op = in->opcode;
	int64_t disp = signed_field(code, in->disp_off, in->disp_size),
		imm = signed_field(code, in->imm_off, in->imm_size);
	if (in->kind == ELFRW_INSN_NOP || (in->flags & ELFRW_INSN_ENDBR))
		return;
	if (in->opcode_map == 0) {
		switch (op) {
		case 0x8b:
			if (in->reg >= REGS)
				break;
			if (wide && mem && plain(in))
				load(t, in->reg, t->s.reg[in->base], (int32_t)disp);
			else if (wide && in->rm < REGS)
				t->s.reg[in->reg] = t->s.reg[in->rm];
			else
				dwr_track_forget(t, in->reg);
			return;
		case 0x89:
			if (in->rm >= REGS || in->reg >= REGS)
				break;
			if (wide)
				t->s.reg[in->rm] = t->s.reg[in->reg];
			else
				dwr_track_forget(t, in->rm);
			return;
		case 0x8d:
			if (in->reg >= REGS)
				break;
			if (wide && plain(in)) {
				t->s.reg[in->reg] = t->s.reg[in->base];
				add(t, in->reg, disp);
			} else
				dwr_track_forget(t, in->reg);
			return;
		case 0x80:
		case 0x81:
		case 0x83:
			if ((in->reg & 7) == 7)
				return;
			if (mem) {
				t->s.epoch = ++t->epochs;
				return;
			}
			if (in->rm >= REGS)
				break;
			if (op != 0x80 && wide && ((in->reg & 7) == 0 || (in->reg & 7) == 5))
				add(t, in->rm, (in->reg & 7) ? -imm : imm);
			else
				dwr_track_forget(t, in->rm);
			return;
		case 0x38:
		case 0x39:
		case 0x3a:
		case 0x3b:
		case 0x3c:
		case 0x3d: /* cmp, test */
		case 0x84:
		case 0x85:
		case 0xa8:
		case 0xa9: return;
		case 0xf6:
		case 0xf7: /* test */
			if ((in->reg & 7) < 2)
				return;
			break;
		case 0x50:
		case 0x51:
		case 0x52:
		case 0x53:
		case 0x54:
		case 0x55:
		case 0x56:
		case 0x57:
			add(t, RSP, -8);
			t->s.epoch = ++t->epochs;
			return;
		case 0x63:
		case 0x33:
		case 0x03:
		case 0x2b:
		case 0x23:
		case 0x0b: /* movslq; arithmetic whose destination is reg */
			if (in->reg >= REGS)
				break;
			dwr_track_forget(t, in->reg);
			return;
		}
		if (op >= 0xb8 && op <= 0xbf && in->imm_size) {
			/* The register is in the opcode: with or without its REX bit. */
			dwr_track_forget(t, op & 7);
			dwr_track_forget(t, (op & 7) + 8);
			return;
		}
	}
	if (in->opcode_map == 1) {
		if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf ||
		    (op >= 0x40 && op <= 0x4f)) { /* movzx, movsx, cmov */
			dwr_track_forget(t, in->reg);
			return;
		}
		if (vector_only(op)) {
			if (mem)
				t->s.epoch = ++t->epochs;
			return;
		}
	}
	/* Anything else: what it names, and what it may write without naming it. */
	if (in->opcode_map == 0 && op < 0x40 && (op & 7) < 6) {
		dwr_track_forget(t, in->reg);
		dwr_track_forget(t, in->rm);
		if ((op & 7) >= 4)
			dwr_track_forget(t, RAX);
	} else if (in->opcode_map == 0 &&
		   ((op >= 0x88 && op <= 0x8a) || (op >= 0xc6 && op <= 0xc7))) {
		dwr_track_forget(t, in->rm);
		if (op == 0x8a)
			dwr_track_forget(t, in->reg);
	} else if (in->opcode_map == 0 && op >= 0x58 && op <= 0x5f) {
		dwr_track_forget(t, op & 7);
		dwr_track_forget(t, (op & 7) + 8);
		add(t, RSP, 8);
	} else {
		dwr_track_forget(t, in->reg);
		dwr_track_forget(t, in->rm);
		dwr_track_forget(t, RAX);
		dwr_track_forget(t, RCX);
		dwr_track_forget(t, RDX);
		dwr_track_forget(t, 3);
		dwr_track_forget(t, RSI);
		dwr_track_forget(t, RDI);
		dwr_track_forget(t, R11);
		if (in->opcode_map == 0 && (op == 0xc8 || op == 0xc9)) { /* enter, leave */
			dwr_track_forget(t, RSP);
			dwr_track_forget(t, 5);
		}
		if (in->opcode_map == 0 && (op & 0xf8) == 0x90) { /* xchg with rax */
			dwr_track_forget(t, op & 7);
			dwr_track_forget(t, (op & 7) + 8);
		}
		if (in->opcode_map >= 1) { /* bswap, xadd, the bit manipulation of VEX */
			dwr_track_forget(t, op & 7);
			dwr_track_forget(t, (op & 7) + 8);
			if (in->opcode_map > 1)
				dwr_track_forget_all(t);
		}
	}
	t->s.epoch = ++t->epochs;
}

bool dwr_track_virtual(const struct dwr_track *t, const struct elfrw_insn *in, const uint8_t *code,
		       struct dwr_track_call *ret)
{
	struct dwr_track_reg table;
	int64_t off;
	if (in->flags & ELFRW_INSN_MEM) {
		if (!plain(in))
			return false;
		table = t->s.reg[in->base];
		off = signed_field(code, in->disp_off, in->disp_size) + table.add;
	} else {
		if (in->rm >= REGS || t->s.reg[in->rm].add)
			return false;
		const struct dwr_track_value *target = &t->value.data[t->s.reg[in->rm].id];
		if (!target->load)
			return false;
		table = (struct dwr_track_reg){ target->base, 0 };
		off = target->off;
	}
	const struct dwr_track_value *first = &t->value.data[table.id];
	if (!first->load || off < 0 || off % 8 || off / 8 >= MAX_SLOT)
		return false;
	struct dwr_track_reg object = { first->base, first->off };
	const struct dwr_track_reg *a = &t->s.reg[RDI], *b = &t->s.reg[RSI];
	bool second = a->id != object.id || a->add != object.add;
	if (second && (b->id != object.id || b->add != object.add))
		return false;
	*ret = (struct dwr_track_call){ (uint32_t)(off / 8), object, second };
	return true;
}

void dwr_track_called(struct dwr_track *t)
{
	dwr_track_forget(t, RAX);
	dwr_track_forget(t, RCX);
	dwr_track_forget(t, RDX);
	dwr_track_forget(t, RSI);
	dwr_track_forget(t, RDI);
	for (unsigned r = R8; r <= R11; r++)
		dwr_track_forget(t, r);
	t->s.epoch = ++t->epochs;
}
