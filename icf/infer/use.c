/* use.c: what becomes of an address that the code computes, read forwards from the instruction.
 *
 * An address between two functions is most often one of code that was shifted when the program was
 * built and will be shifted back: nobody can tell of which function.  It is harmless where the
 * instructions say what it is: a whole pointer that is stored, and by chance of a function without
 * any instructions; the start of a function less one, to be rounded up.  x86-64. */
#include "icf/infer/use.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include "icf/program/unit.h"
#include <string.h>

#define WINDOW 8 /* instructions of a rounding */

/* What an instruction makes of an address in a register. */
enum use {
	LEAVES, /* nothing */
	ENDS,   /* the register is overwritten */
	COPIES, /* into in->reg or in->rm, the one that it was not in */
	OTHER,
};

static bool in_memory(const struct elfrw_insn *in, unsigned r)
{
	return (in->flags & ELFRW_INSN_MEM) && (in->base == r || in->index == r);
}

/* Moves of vectors, whose registers are others than R. */
static bool of_vectors(const struct elfrw_insn *in)
{
	unsigned op = in->opcode;
	return in->opcode_map == 1 &&
	       ((op >= 0x10 && op <= 0x17) || op == 0x28 || op == 0x29 || op == 0x57 ||
		op == 0x6f || op == 0x7f || op == 0xd6 || op == 0xef);
}

static bool named(const struct elfrw_insn *in, unsigned r)
{
	return in_memory(in, r) || (!of_vectors(in) && (in->reg == r || in->rm == r));
}

/* Instructions that name all registers that they read. */
static bool names_all(const struct elfrw_insn *in)
{
	unsigned op = in->opcode;
	if (in->opcode_map == 0)
		return (op < 0x40 && (op & 7) < 4) || (op >= 0x50 && op <= 0x5f) || op == 0x63 ||
		       op == 0x80 || op == 0x81 || (op >= 0x83 && op <= 0x8b) || op == 0x8d ||
		       op == 0xc0 || op == 0xc1 || op == 0xc6 || op == 0xc7 ||
		       (op >= 0xb0 && op <= 0xbf);
	return of_vectors(in) ||
	       (in->opcode_map == 1 && ((op >= 0x40 && op <= 0x4f) || op == 0x6e || op == 0x7e ||
					(op >= 0x90 && op <= 0x9f) || op == 0xaf || op == 0xb6 ||
					op == 0xb7 || op == 0xbe || op == 0xbf));
}

/* Moves of whole registers, and what compares them. */
static enum use use_of(const struct elfrw_insn *in, unsigned r)
{
	bool mem = in->flags & ELFRW_INSN_MEM, wide = in->flags & ELFRW_INSN_REX_W;
	unsigned op = in->opcode;
	if (in->kind == ELFRW_INSN_NOP || in->kind == ELFRW_INSN_JCC ||
	    in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_TRAP)
		return LEAVES;
	if (!named(in, r))
		return names_all(in) || (r > RDI || r == RBX) ? LEAVES : OTHER;
	if (in->opcode_map != 0 || in_memory(in, r))
		return OTHER;
	switch (op) {
	case 0x89: /* to memory, or to another register */
		if (in->reg != r)
			return ENDS;
		return !wide ? OTHER : mem ? LEAVES : COPIES;
	case 0x8b:
		if (mem || in->rm != r)
			return ENDS;
		return wide ? COPIES : OTHER;
	case 0x39:
	case 0x3b:
	case 0x85: /* cmp, test */ return wide ? LEAVES : OTHER;
	case 0x31:
	case 0x33: /* xor of a register with itself */
		return !mem && in->reg == in->rm ? ENDS : OTHER;
	case 0x8d:
	case 0x63: return in->rm == r ? OTHER : ENDS;
	default: return op >= 0xb8 && op <= 0xbf ? ENDS : op >= 0x58 && op <= 0x5f ? ENDS : OTHER;
	}
}

struct flow {
	const struct icf_unit *u;
	struct icf_trace *t;
	bool full; /* out of memory */
};

/* The register holds the address before the instruction at POS, too. */
static void reaches(struct flow *f, uint64_t pos, unsigned r)
{
	struct icf_trace *t = f->t;
	size_t k = LOWER_BOUND(0, t->insn.len, mid, t->insn.data[mid].pos < pos), bit = k * 16 + r;
	if (k == t->insn.len || icf_trace_bit(t->seen.data, bit))
		return;
	t->seen.data[bit >> 3] |= (uint8_t)(1u << (bit & 7));
	struct icf_step *step = VEC_PUSH(&t->todo);
	if (step)
		*step = (struct icf_step){ (uint32_t)k, (uint8_t)r };
	else
		f->full = true;
}

/* Follows register R from before instruction K to the next ones.  false: something else is done
 * with it, or may be. */
static bool follow(struct flow *f, size_t k, unsigned r)
{
	const struct icf_insn_at *a = &f->t->insn.data[k];
	const struct elfrw_insn *in = &a->in;
	bool argument = r == RDI || r == RSI || r == RDX || r == RCX || (r >= R8 && r <= R10);
	switch (in->kind) {
	case ELFRW_INSN_RET: return r != RAX && r != RDX;
	case ELFRW_INSN_TRAP: return true;
	case ELFRW_INSN_JMP_IND: return false;
	case ELFRW_INSN_CALL:
	case ELFRW_INSN_CALL_IND:
		if (argument || named(in, r))
			return false;
		if (r != RAX && r != R11)
			reaches(f, a->pos + in->len, r);
		return true;
	case ELFRW_INSN_JMP:
	case ELFRW_INSN_JCC:
		/* To another part of the function, or in a tail call. */
		if (in->target - f->u->start >= f->u->end - f->u->start)
			return false;
		reaches(f, in->target - f->u->start, r);
		if (in->kind == ELFRW_INSN_JCC)
			reaches(f, a->pos + in->len, r);
		return true;
	default: break;
	}
	enum use use = use_of(in, r);
	if (use == COPIES)
		reaches(f, a->pos + in->len, in->reg == r ? in->rm : in->reg);
	if (use == COPIES || use == LEAVES)
		reaches(f, a->pos + in->len, r);
	return use != OTHER;
}

/* Is the address that instruction AT leaves in a register only stored, as a whole, and compared? */
static bool is_stored(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at)
{
	struct flow f = { &prog->unit.data[i], t, false };
	const struct icf_insn_at *a = &t->insn.data[at];
	size_t bytes = t->insn.len * 2 + 1;
	if (!VEC_RESERVE(&t->seen, bytes))
		return false;
	memset(t->seen.data, 0, bytes);
	t->todo.len = 0;
	reaches(&f, a->pos + a->in.len, a->in.reg);
	while (t->todo.len && !f.full) {
		struct icf_step next = t->todo.data[--t->todo.len];
		if (!follow(&f, next.at, next.reg))
			return false;
	}
	return !f.full;
}

/* lea f-1(%rip),%r ; add %a,%r ; neg %a ; and %a,%r : f, rounded up to a multiple of a. */
static bool is_rounded(const struct icf_trace *t, size_t at)
{
	unsigned r = t->insn.data[at].in.reg, a = ELFRW_REG_NONE;
	bool negated = false;
	for (size_t k = at + 1; k < t->insn.len && k <= at + WINDOW; k++) {
		const struct elfrw_insn *in = &t->insn.data[k].in;
		unsigned op = in->opcode;
		if (icf_trace_bit(t->target.data, t->insn.data[k].pos) ||
		    in->kind != ELFRW_INSN_OTHER)
			return false;
		if (!named(in, r) && (a == ELFRW_REG_NONE || !named(in, a))) {
			if (!names_all(in))
				return false;
			continue;
		}
		if (in->opcode_map != 0 || (in->flags & ELFRW_INSN_MEM) ||
		    !(in->flags & ELFRW_INSN_REX_W))
			return false;
		bool to_rm = !(op & 2);
		unsigned dest = to_rm ? in->rm : in->reg, src = to_rm ? in->reg : in->rm;
		if (a == ELFRW_REG_NONE && (op == 0x01 || op == 0x03) && dest == r && src != r)
			a = src;
		else if (a != ELFRW_REG_NONE && !negated && op == 0xf7 && (in->reg & 7) == 3 &&
			 in->rm == a)
			negated = true;
		else
			return negated && (op == 0x21 || op == 0x23) && dest == r && src == a;
	}
	return false;
}

/* The bytes from VA to the unit behind it are zeros, and that unit is not understood: it begins
 * with the zeros then, and stays. */
static bool begins_data(const struct icf_program *prog, uint64_t va, uint32_t next)
{
	const struct icf_unit *n = &prog->unit.data[next];
	if (n->kind != ICF_UNIT_OPAQUE)
		return false;
	const uint8_t *p = icf_unit_bytes(prog, n) - (n->start - va);
	for (uint64_t k = 0; k < n->start - va; k++)
		if (p[k])
			return false;
	return true;
}

/* The unit behind VA in the same section, or ICF_NONE. */
static uint32_t unit_behind(const struct icf_program *prog, uint64_t va)
{
	uint32_t k =
		(uint32_t)LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].start <= va);
	if (k == prog->unit.len || va < prog->exec.data[prog->unit.data[k].sec].start)
		return ICF_NONE;
	return k;
}

/* Does an FDE that covers nothing begin at VA?  Then a function without any instructions does. */
static bool begins_empty(const struct icf_program *prog, uint64_t va)
{
	const struct dwr_cfi *c = &prog->cfi;
	for (size_t k = LOWER_BOUND(0, c->fde.len, mid, c->fde.data[c->by_pc[mid]].pc_begin < va);
	     k < c->fde.len; k++) {
		const struct dwr_fde *f = &c->fde.data[c->by_pc[k]];
		if (f->pc_begin != va || f->pc_end == va)
			return f->pc_begin == va;
	}
	return false;
}

/* Does unit I end in a trap?  So do those parts of functions that are known to be of no use, among
 * which the empty ones lie. */
static bool ends_in_trap(const struct icf_program *prog, uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	struct elfrw_insn in = { .len = 1 };
	for (uint64_t pos = 0; pos < u->end - u->start; pos += in.len)
		if (!prog->arch->decode(code + pos, u->end - u->start - pos, u->start + pos, &in))
			return false;
	return in.kind == ELFRW_INSN_TRAP;
}

/* Is there evidence that a function without any instructions begins at VA, where a unit ends?  An
 * address that was shifted by the size of its function is the same place. */
static bool is_empty(const struct icf_program *prog, uint64_t va)
{
	uint32_t before = icf_unit_ending(prog, va);
	return before != ICF_NONE && prog->unit.data[before].kind != ICF_UNIT_OPAQUE &&
	       (begins_empty(prog, va) || ends_in_trap(prog, before));
}

bool icf_explains_gap(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref,
		      struct icf_trace *t)
{
	uint64_t va = ref->target;
	uint32_t next = unit_behind(prog, va);
	if (next != ICF_NONE && begins_data(prog, va, next))
		return true;
	bool ends = is_empty(prog, va),
	     before = next != ICF_NONE && prog->unit.data[next].start == va + 1, clean;
	if (!(ref->flags & ICF_REF_LEA) || (!ends && !before))
		return false;
	struct elfrw_err *err = icf_trace_unit(prog, i, t, &clean);
	if (err || !clean) {
		elfrw_err_free(err);
		return false;
	}
	size_t at = LOWER_BOUND(0, t->insn.len, mid,
				t->insn.data[mid].pos + t->insn.data[mid].in.len <= ref->off);
	if (at == t->insn.len || t->insn.data[at].in.target != va || t->insn.data[at].in.reg >= 16)
		return false;
	return (ends && is_stored(prog, i, t, at)) || (before && is_rounded(t, at));
}
