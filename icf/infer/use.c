/* use.c: what becomes of an address that the code computes, read forwards from the instruction.
 *
 * An address between two functions is mostly a code address plus a constant, which the program
 * later subtracts.  The function that it belongs to is then unknown.  The address is harmless if
 * the instructions show what it is: a whole pointer that is stored, and that happens to be the
 * address of a function without instructions; or the start of a function minus one, to be rounded
 * up. */
#include "icf/infer/use.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include "icf/program/unit.h"
#include <string.h>

#define WINDOW 8 /* instructions in a rounding sequence */

/* The effect of an instruction on an address in a register. */
enum use {
	LEAVES, /* nothing */
	ENDS,   /* the register is overwritten */
	COPIES, /* into the result, too */
	OTHER,
};

static bool in_memory(const struct elfrw_insn *in, unsigned r)
{
	return (in->flags & ELFRW_INSN_MEM) && (in->base == r || in->index == r);
}

/* How instruction IN uses the address in R that it reads. */
static enum use use_of_read(const struct elfrw_insn *in, const struct elfrw_effect *e, unsigned r)
{
	if (e->width != 8 || in_memory(in, r) || (e->writes & elfrw_reg_bit(r)))
		return OTHER;
	switch (e->op) {
	case ELFRW_OP_STORE: return LEAVES;
	case ELFRW_OP_MOV: return COPIES;
	case ELFRW_OP_CMP:
	case ELFRW_OP_TEST:
		/* Comparing a part of it, or comparing it with a number, depends on its value. */
		return e->flags & ELFRW_EFFECT_IMM ? OTHER : LEAVES;
	default: return OTHER;
	}
}

/* Moves and comparisons of whole registers. */
static enum use use_of(const struct elfrw_insn *in, const struct elfrw_effect *e, unsigned r)
{
	if (e->reads & elfrw_reg_bit(r))
		return use_of_read(in, e, r);
	return e->writes & elfrw_reg_bit(r) ? ENDS : LEAVES;
}

struct flow {
	const struct icf_program *prog;
	uint32_t unit;
	const struct icf_unit *u;
	struct icf_trace *t;
	bool full; /* out of memory */
};

/* The register also holds the address before the instruction at POS. */
static void reaches(struct flow *f, uint64_t pos, unsigned r)
{
	struct icf_trace *t = f->t;
	size_t k = LOWER_BOUND(0, t->insn.len, mid, t->insn.data[mid].pos < pos),
	       bit = k * f->prog->arch->model->regs + r;
	if (k == t->insn.len || icf_trace_bit(t->seen.data, bit))
		return;
	t->seen.data[bit >> 3] |= (uint8_t)(1u << (bit & 7));
	struct icf_step *step = VEC_PUSH(&t->todo);
	if (step)
		*step = (struct icf_step){ (uint32_t)k, (uint8_t)r };
	else
		f->full = true;
}

/* Follows register R from before instruction K to the next ones.  false: it is, or may be, used
 * otherwise. */
static bool follow(struct flow *f, size_t k, unsigned r)
{
	const struct icf_insn_at *a = &f->t->insn.data[k];
	const struct elfrw_insn *in = &a->in;
	const struct elfrw_model *m = f->prog->arch->model;
	struct elfrw_effect e = icf_effect_at(f->prog, f->unit, f->t, k);
	switch (in->kind) {
	case ELFRW_INSN_RET: return !(m->results & elfrw_reg_bit(r));
	case ELFRW_INSN_TRAP: return true;
	case ELFRW_INSN_JMP_IND: return false;
	case ELFRW_INSN_CALL:
	case ELFRW_INSN_CALL_IND:
		if (e.reads & elfrw_reg_bit(r))
			return false;
		if (!(e.writes & elfrw_reg_bit(r)))
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
	enum use use = use_of(in, &e, r);
	if (use == COPIES)
		reaches(f, a->pos + in->len, e.dst);
	if (use == COPIES || use == LEAVES)
		reaches(f, a->pos + in->len, r);
	return use != OTHER;
}

/* Is the address that instruction AT leaves in a register only stored, as a whole, and compared? */
static bool is_stored(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at)
{
	struct flow f = { prog, i, &prog->unit.data[i], t, false };
	const struct icf_insn_at *a = &t->insn.data[at];
	size_t bytes = t->insn.len * prog->arch->model->regs / 8 + 1;
	if (!VEC_RESERVE(&t->seen, bytes))
		return false;
	memset(t->seen.data, 0, bytes);
	t->todo.len = 0;
	reaches(&f, a->pos + a->in.len, icf_effect_at(prog, i, t, at).dst);
	while (t->todo.len && !f.full) {
		struct icf_step next = t->todo.data[--t->todo.len];
		if (!follow(&f, next.at, next.reg))
			return false;
	}
	return !f.full;
}

/* lea f-1(%rip),%r ; add %a,%r ; neg %a ; and %a,%r : f, rounded up to a multiple of a. */
static bool is_rounded(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
		       size_t at)
{
	unsigned r = icf_effect_at(prog, i, t, at).dst, a = ELFRW_REG_NONE;
	bool negated = false;
	for (size_t k = at + 1; k < t->insn.len && k <= at + WINDOW; k++) {
		struct elfrw_effect e = icf_effect_at(prog, i, t, k);
		if (icf_trace_bit(t->target.data, t->insn.data[k].pos) ||
		    t->insn.data[k].in.kind != ELFRW_INSN_OTHER)
			return false;
		if (!((e.reads | e.writes) & (elfrw_reg_bit(r) | elfrw_reg_bit(a))))
			continue;
		if (e.width != 8 || (e.flags & (ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES)))
			return false;
		if (a == ELFRW_REG_NONE && e.op == ELFRW_OP_ADD && e.dst == r && e.b != r)
			a = e.b;
		else if (a != ELFRW_REG_NONE && !negated && e.op == ELFRW_OP_NEG && e.dst == a)
			negated = true;
		else
			return negated && e.op == ELFRW_OP_AND && e.dst == r && e.b == a;
	}
	return false;
}

/* The bytes from VA to the next unit are zeros, and that unit is not understood.  Then the unit
 * begins with the zeros, and stays. */
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

/* Does an FDE of zero bytes begin at VA?  Then a function without instructions does. */
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

/* Does unit I end in a trap?  Function parts that are never used do, and the empty ones lie among
 * these. */
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

/* Is there evidence that a function without instructions begins at VA, where a unit ends?  An
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
	if (at == t->insn.len || t->insn.data[at].in.target != va ||
	    icf_effect_at(prog, i, t, at).dst == ELFRW_REG_NONE)
		return false;
	return (ends && is_stored(prog, i, t, at)) || (before && is_rounded(prog, i, t, at));
}
