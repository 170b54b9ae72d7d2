/* call_virtual.c: virtual calls, recognised in the code.
 *
 *	mov (%rdi),%rax          rax = first word of the object in rdi
 *	call *0x18(%rax)         slot 3
 *
 * or with the slot loaded first, and other instructions between; the object must be in the first argument register at the call
 * (or the second, when the first says where to put the result).  Registers are followed by value numbers along straight code and
 * forward jumps: a value is unknown, or the 8 bytes loaded from another value plus an offset; equal loads without a store
 * between are equal values.  State survives a conditional jump, reaches a jump's target when that jump is the only way
 * there, and is forgotten at any other label.  Only functions of C++ are looked at: C programs have tables of functions,
 * too, but those are no vtables.
 *
 * The rules know the few instructions by which compilers load and copy; every other one forgets the registers that it could
 * write. Cost: linear, with a look at up to 32 recent values for each load. */
#include "icf/call_scan.h"
#include "elfrw/rbuf.h"
#include <string.h>

#define REGS 16
#define RECENT 32
/* x86-64 (System V psABI): encoding numbers. */
enum { RAX, RCX, RDX, RSP = 4, RSI = 6, RDI = 7, R8 = 8, R11 = 11 };
#define MAX_SLOT 4096

/* A register holds value ID plus ADD. */
struct reg {
	uint32_t id;
	int32_t add;
};

struct value {
	bool load;
	uint32_t base, epoch; /* loaded from value BASE plus OFF */
	int32_t off;
};

struct state {
	struct reg reg[REGS];
	uint32_t epoch;
};

struct saved {
	uint64_t label;
	struct state state;
};

struct tracker {
	VEC(struct value) value;
	VEC(struct saved) saved;
	struct state s;
	uint32_t epochs;
	bool nomem;
};

static uint32_t fresh(struct tracker *t, struct value v)
{
	struct value *slot = VEC_PUSH(&t->value);
	if (!slot) {
		t->nomem = true;
		return 0;
	}
	*slot = v;
	return (uint32_t)(t->value.len - 1);
}

static void forget(struct tracker *t, unsigned r)
{
	if (r < REGS)
		t->s.reg[r] = (struct reg){ fresh(t, (struct value){ 0 }), 0 };
}

static void forget_all(struct tracker *t)
{
	for (unsigned r = 0; r < REGS; r++)
		forget(t, r);
	t->s.epoch = ++t->epochs;
}

static void load(struct tracker *t, unsigned r, struct reg base, int32_t disp)
{
	struct value v = { true, base.id, t->s.epoch, 0 };
	if (__builtin_add_overflow(base.add, disp, &v.off)) {
		forget(t, r);
		return;
	}
	size_t n = t->value.len;
	for (size_t i = n; i-- > 0 && n - i <= RECENT;) {
		const struct value *o = &t->value.data[i];
		if (o->load && o->base == v.base && o->off == v.off && o->epoch == v.epoch) {
			t->s.reg[r] = (struct reg){ (uint32_t)i, 0 };
			return;
		}
	}
	t->s.reg[r] = (struct reg){ fresh(t, v), 0 };
}

static int64_t signed_field(const uint8_t *code, unsigned off, unsigned size)
{
	if (!size)
		return 0;
	uint64_t v = elfrw_get_le(code + off, size);
	unsigned shift = 64 - 8 * size;
	return (int64_t)(v << shift) >> shift;
}

static void add(struct tracker *t, unsigned r, int64_t by)
{
	int32_t sum;
	if (by != (int32_t)by || __builtin_add_overflow(t->s.reg[r].add, (int32_t)by, &sum))
		forget(t, r);
	else
		t->s.reg[r].add = sum;
}

/* A plain base + displacement operand. */
static bool plain(const struct elfrw_insn *in)
{
	return (in->flags & ELFRW_INSN_MEM) && in->base < REGS && in->index == ELFRW_REG_NONE && !in->pcrel_size;
}

/* Instructions of SSE that write no general register, by their second opcode byte. */
static bool vector_only(unsigned op)
{
	return op == 0x10 || op == 0x11 || (op >= 0x14 && op <= 0x17) || op == 0x28 || op == 0x29 || (op >= 0x51 && op <= 0x6f && op != 0x6e) ||
	       op == 0x7f || op == 0xd6 || op == 0xef || op == 0x1f;
}

/* What instruction IN at CODE does to the registers. */
static void step(struct tracker *t, const struct elfrw_insn *in, const uint8_t *code)
{
	bool wide = in->flags & ELFRW_INSN_REX_W, mem = in->flags & ELFRW_INSN_MEM;
	unsigned op = in->opcode;
	int64_t disp = signed_field(code, in->disp_off, in->disp_size), imm = signed_field(code, in->imm_off, in->imm_size);
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
				forget(t, in->reg);
			return;
		case 0x89:
			if (in->rm >= REGS || in->reg >= REGS)
				break;
			if (wide)
				t->s.reg[in->rm] = t->s.reg[in->reg];
			else
				forget(t, in->rm);
			return;
		case 0x8d:
			if (in->reg >= REGS)
				break;
			if (wide && plain(in)) {
				t->s.reg[in->reg] = t->s.reg[in->base];
				add(t, in->reg, disp);
			} else
				forget(t, in->reg);
			return;
		case 0x80: case 0x81: case 0x83:
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
				forget(t, in->rm);
			return;
		case 0x38: case 0x39: case 0x3a: case 0x3b: case 0x3c: case 0x3d: /* cmp, test */
		case 0x84: case 0x85: case 0xa8: case 0xa9:
			return;
		case 0xf6: case 0xf7: /* test */
			if ((in->reg & 7) < 2)
				return;
			break;
		case 0x50: case 0x51: case 0x52: case 0x53: case 0x54: case 0x55: case 0x56: case 0x57:
			add(t, RSP, -8);
			t->s.epoch = ++t->epochs;
			return;
		case 0x63: case 0x33: case 0x03: case 0x2b: case 0x23: case 0x0b: /* movslq; arithmetic whose destination is reg */
			if (in->reg >= REGS)
				break;
			forget(t, in->reg);
			return;
		}
		if (op >= 0xb8 && op <= 0xbf && in->imm_size) {
			/* The register is in the opcode: with or without its REX bit. */
			forget(t, op & 7);
			forget(t, (op & 7) + 8);
			return;
		}
	}
	if (in->opcode_map == 1) {
		if (op == 0xb6 || op == 0xb7 || op == 0xbe || op == 0xbf || (op >= 0x40 && op <= 0x4f)) { /* movzx, movsx, cmov */
			forget(t, in->reg);
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
		forget(t, in->reg);
		forget(t, in->rm);
		if ((op & 7) >= 4)
			forget(t, RAX);
	} else if (in->opcode_map == 0 && ((op >= 0x88 && op <= 0x8a) || (op >= 0xc6 && op <= 0xc7))) {
		forget(t, in->rm);
		if (op == 0x8a)
			forget(t, in->reg);
	} else if (in->opcode_map == 0 && op >= 0x58 && op <= 0x5f) {
		forget(t, op & 7);
		forget(t, (op & 7) + 8);
		add(t, RSP, 8);
	} else {
		forget(t, in->reg);
		forget(t, in->rm);
		forget(t, RAX);
		forget(t, RCX);
		forget(t, RDX);
		forget(t, 3);
		forget(t, RSI);
		forget(t, RDI);
		forget(t, R11);
		if (in->opcode_map == 0 && (op == 0xc8 || op == 0xc9)) { /* enter, leave */
			forget(t, RSP);
			forget(t, 5);
		}
		if (in->opcode_map == 0 && (op & 0xf8) == 0x90) { /* xchg with rax */
			forget(t, op & 7);
			forget(t, (op & 7) + 8);
		}
		if (in->opcode_map >= 1) { /* bswap, xadd, the bit manipulation of VEX */
			forget(t, op & 7);
			forget(t, (op & 7) + 8);
			if (in->opcode_map > 1)
				forget_all(t);
		}
	}
	t->s.epoch = ++t->epochs;
}

/* The slot of the indirect call IN, or ICF_NONE. */
static uint32_t slot_of(const struct tracker *t, const struct elfrw_insn *in, const uint8_t *code)
{
	struct reg table;
	int64_t off;
	if (in->flags & ELFRW_INSN_MEM) {
		if (!plain(in))
			return ICF_NONE;
		table = t->s.reg[in->base];
		off = signed_field(code, in->disp_off, in->disp_size) + table.add;
	} else {
		if (in->rm >= REGS || t->s.reg[in->rm].add)
			return ICF_NONE;
		const struct value *target = &t->value.data[t->s.reg[in->rm].id];
		if (!target->load)
			return ICF_NONE;
		table = (struct reg){ target->base, 0 };
		off = target->off;
	}
	const struct value *first = &t->value.data[table.id];
	if (!first->load || off < 0 || off % 8 || off / 8 >= MAX_SLOT)
		return ICF_NONE;
	struct reg object = { first->base, first->off };
	const struct reg *a = &t->s.reg[RDI], *b = &t->s.reg[RSI];
	if ((a->id != object.id || a->add != object.add) && (b->id != object.id || b->add != object.add))
		return ICF_NONE;
	return (uint32_t)(off / 8);
}

static void after_call(struct tracker *t)
{
	forget(t, RAX);
	forget(t, RCX);
	forget(t, RDX);
	forget(t, RSI);
	forget(t, RDI);
	for (unsigned r = R8; r <= R11; r++)
		forget(t, r);
	t->s.epoch = ++t->epochs;
}

/* How many jumps name VA, from *AT on. */
static size_t count_label(const struct icf_labels *label, size_t *at, uint64_t va)
{
	size_t n = 0;
	while (*at < label->len && label->data[*at] < va)
		++*at;
	while (*at + n < label->len && label->data[*at + n] == va)
		n++;
	return n;
}

static bool single(const struct icf_labels *label, uint64_t va)
{
	size_t lo = 0, hi = label->len;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (label->data[mid] < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < label->len && label->data[lo] == va && (lo + 1 == label->len || label->data[lo + 1] != va);
}

static void save(struct tracker *t, uint64_t label)
{
	struct saved *s = VEC_PUSH(&t->saved);
	if (!s)
		t->nomem = true;
	else
		*s = (struct saved){ label, t->s };
}

/* At VA: FALLS tells whether the instruction before goes on here. */
static void arrive(struct tracker *t, const struct icf_labels *label, size_t *at, uint64_t va, bool falls)
{
	size_t n = count_label(label, at, va);
	if (n == 0 && falls)
		return;
	if (n == 1 && !falls)
		for (size_t i = t->saved.len; i-- > 0;)
			if (t->saved.data[i].label == va) {
				t->s = t->saved.data[i].state;
				t->saved.data[i] = t->saved.data[--t->saved.len];
				return;
			}
	forget_all(t);
}

static bool is_cxx(const struct icf_program *prog, const struct icf_unit *u)
{
	return u->sym != ICF_NONE && strncmp(prog->sym.data[u->sym].name, "_Z", 2) == 0;
}

static struct elfrw_err *found(struct icf_calls *ret, uint32_t caller, uint64_t site, uint32_t slot)
{
	if (slot == ICF_NONE) {
		uint64_t *p = VEC_PUSH(&ret->indirect);
		if (!p)
			return &elfrw_err_nomem;
		*p = site;
		return NULL;
	}
	struct icf_vcall *v = VEC_PUSH(&ret->vcall);
	if (!v)
		return &elfrw_err_nomem;
	*v = (struct icf_vcall){ site, caller, slot };
	return NULL;
}

struct elfrw_err *icf_scan_virtual(const struct icf_program *prog, uint32_t unit, const struct icf_labels *label, struct icf_calls *ret)
{
	const struct icf_unit *u = &prog->unit.data[unit];
	const uint8_t *code = icf_unit_bytes(prog, u);
	struct tracker t = { 0 };
	struct elfrw_insn in;
	struct elfrw_err *err = NULL;
	bool falls = false, cxx = is_cxx(prog, u);
	size_t at = 0;
	for (uint64_t va = u->start; va < u->end && !err && !t.nomem; va += in.len) {
		const uint8_t *p = code + (va - u->start);
		if (!prog->arch->decode(p, u->end - va, va, &in))
			break;
		if (cxx)
			arrive(&t, label, &at, va, falls);
		falls = true;
		switch (in.kind) {
		case ELFRW_INSN_CALL_IND:
			if (!in.pcrel_size)
				err = found(ret, unit, va + in.len, cxx ? slot_of(&t, &in, p) : ICF_NONE);
			/* fallthrough */
		case ELFRW_INSN_CALL:
			if (cxx)
				after_call(&t);
			break;
		case ELFRW_INSN_JMP:
		case ELFRW_INSN_JCC:
			if (cxx && in.target > va && in.target < u->end && single(label, in.target))
				save(&t, in.target);
			falls = in.kind == ELFRW_INSN_JCC;
			if (in.kind == ELFRW_INSN_JCC && (in.opcode & 0xf0) == 0xe0) /* loop */
				forget(&t, RCX);
			break;
		case ELFRW_INSN_RET:
		case ELFRW_INSN_TRAP:
		case ELFRW_INSN_JMP_IND:
			falls = false;
			break;
		default:
			if (cxx)
				step(&t, &in, p);
		}
	}
	if (!err && t.nomem)
		err = &elfrw_err_nomem;
	VEC_FREE(&t.value);
	VEC_FREE(&t.saved);
	return err;
}
