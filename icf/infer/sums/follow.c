/* follow.c: follows addresses through the registers of one unit; arith.c. */
#include "elfrw/base/search.h"
#include "icf/infer/sums/state.h"
#include <string.h>

#define MAX_SUMS 256 /* that are examined in one unit */

/* Whether the register holds the address itself, or a sum of it and a number, or what another
 * operation made of it. */
enum { WHOLE, SUM, STAGES };

static void reaches(struct icf_flow *f, uint64_t pos, unsigned r, unsigned stage)
{
	struct icf_trace *t = &f->t;
	unsigned regs = f->prog->arch->model->regs;
	size_t k = LOWER_BOUND(0, t->insn.len, mid, t->insn.data[mid].pos < pos);
	if (k == t->insn.len || r >= regs ||
	    (f->entries && icf_bit(f->entries, f->prog->unit.data[f->unit].start + pos)))
		return;
	size_t bit = (k * regs + r) * STAGES + stage;
	if (icf_trace_bit(t->seen.data, bit))
		return;
	t->seen.data[bit >> 3] |= (uint8_t)(1u << (bit & 7));
	struct icf_step *next = VEC_PUSH(&t->todo);
	if (next)
		*next = (struct icf_step){ (uint32_t)k, (uint8_t)(r * STAGES + stage) };
	else
		f->full = true;
}

/* The operand besides register R of a sum.  *N: a number. */
static bool adds_number(const struct elfrw_insn *in, const struct elfrw_effect *e, unsigned r,
			int64_t *n)
{
	if (e->op == ELFRW_OP_ADDRESS) {
		*n = e->disp;
		return in->base == ELFRW_REG_NONE || in->index == ELFRW_REG_NONE
			       ? in->base == r || in->scale == 1
			       : false;
	}
	*n = e->op == ELFRW_OP_SUB ? (int64_t)(0 - (uint64_t)e->imm) : e->imm;
	return e->flags & ELFRW_EFFECT_IMM;
}

/* Instruction K computes with R as S says. */
static void note(struct icf_flow *f, size_t k, unsigned r, struct icf_sum s)
{
	struct icf_sum *slot = f->sum.len < MAX_SUMS ? VEC_PUSH(&f->sum) : NULL;
	f->full |= !slot && f->sum.len < MAX_SUMS;
	s.at = (uint32_t)k;
	s.reg = (uint8_t)r;
	s.sure = true;
	if (slot)
		*slot = s;
}

/* Without position independence, addresses have 4 bytes. */
static bool is_wide(const struct icf_flow *f, const struct elfrw_effect *e)
{
	return e->width == 8 || (e->width == 4 && !f->prog->img->pic);
}

/* Instruction K makes something of the address in R that a later one may add to: behind it, it is
 * in DST. */
static void carry(struct icf_flow *f, size_t k, unsigned r, unsigned dst, unsigned stage)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	note(f, k, r, (struct icf_sum){ .other = ELFRW_REG_NONE, .quiet = true });
	reaches(f, a->pos + a->in.len, dst, stage);
}

/* The register whose whole value instruction IN adds to the address in R or subtracts from it, or
 * ELFRW_REG_NONE. */
static unsigned other_of(const struct elfrw_insn *in, const struct elfrw_effect *e, unsigned r)
{
	if (e->op == ELFRW_OP_ADDRESS)
		return in->base == r ? in->index : in->scale == 1 ? in->base : ELFRW_REG_NONE;
	if (e->op == ELFRW_OP_ADD_PART || (e->shift && e->a != r))
		return ELFRW_REG_NONE;
	return e->a == r ? e->b : e->a;
}

/* Instruction K computes a sum with the address in R. */
static void add(struct icf_flow *f, size_t k, const struct elfrw_effect *e, unsigned r,
		unsigned stage)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	int64_t n = 0;
	if (!is_wide(f, e))
		return;
	bool number = adds_number(&a->in, e, r, &n), minus = e->op == ELFRW_OP_SUB && !number;
	if (number && n == 0) {
		reaches(f, a->pos + a->in.len, e->dst, stage);
		return;
	}
	struct icf_sum s = { .other = (uint8_t)(number ? ELFRW_REG_NONE : other_of(&a->in, e, r)),
			     .minus = minus,
			     .only = minus,
			     .whole = stage == WHOLE && (!minus || e->a == r),
			     .known = number && stage == WHOLE,
			     .number = e->op == ELFRW_OP_ADDRESS ? e->disp : n };
	if (minus && s.other == ELFRW_REG_NONE) {
		/* A difference to a word of a table; other words are addresses. */
		if (!(a->in.flags & ELFRW_INSN_MEM) || a->in.index == ELFRW_REG_NONE || e->a != r)
			return;
		s.only = false;
	}
	s.shift = e->op == ELFRW_OP_ADDRESS && a->in.base == r && a->in.index != ELFRW_REG_NONE
			  ? (uint8_t)__builtin_ctz(a->in.scale)
			  : e->shift;
	note(f, k, r, s);
	if (s.known)
		reaches(f, a->pos + a->in.len, e->dst, SUM);
}

/* Instruction K accesses memory at a known distance from the address in R; or at another one, which
 * may be a number. */
static void access(struct icf_flow *f, size_t k, const struct elfrw_effect *e, unsigned r)
{
	const struct elfrw_insn *in = &f->t.insn.data[k].in;
	bool known = in->index == ELFRW_REG_NONE;
	if (known && e->disp == 0)
		return;
	note(f, k, r,
	     (struct icf_sum){ .other = in->index,
			       .shift = (uint8_t)__builtin_ctz(in->scale | 0x100u),
			       .whole = true,
			       .known = known,
			       .quiet = !known,
			       .number = e->disp });
}

/* Instruction K computes something with the address in R that is no plain sum. */
static void derive(struct icf_flow *f, size_t k, const struct elfrw_effect *e, unsigned r)
{
	if (is_wide(f, e) && e->dst != ELFRW_REG_NONE)
		carry(f, k, r, e->dst, SUM);
}

/* Registers trade places, perhaps after a sum. */
static void exchange(struct icf_flow *f, size_t k, const struct elfrw_effect *e, unsigned r,
		     unsigned stage)
{
	if (e->dst == ELFRW_REG_NONE || e->a == ELFRW_REG_NONE)
		return;
	if (e->flags & ELFRW_EFFECT_SUM)
		add(f, k, e, r, stage);
	carry(f, k, r, r == e->dst ? e->a : e->dst, stage);
}

/* Instruction K pushes R.  Does the next one pop it? */
static void push_pop(struct icf_flow *f, size_t k, unsigned r, unsigned stage)
{
	struct icf_trace *t = &f->t;
	if (k + 1 == t->insn.len || icf_trace_bit(t->target.data, t->insn.data[k + 1].pos))
		return;
	struct elfrw_effect e = icf_effect_at(f->prog, f->unit, t, k + 1);
	if (e.op == ELFRW_OP_POP && e.dst != ELFRW_REG_NONE)
		carry(f, k + 1, r, e.dst, stage);
}

/* Instruction K computes with the address in R, which is no part of a memory operand. */
static void compute(struct icf_flow *f, size_t k, const struct elfrw_effect *e, unsigned r,
		    unsigned stage)
{
	switch (e->op) {
	case ELFRW_OP_XCHG: exchange(f, k, e, r, stage); break;
	case ELFRW_OP_PUSH: push_pop(f, k, r, stage); break;
	case ELFRW_OP_ADD:
	case ELFRW_OP_ADD_PART:
	case ELFRW_OP_SUB: add(f, k, e, r, stage); break;
	case ELFRW_OP_SUM:
		/* A register less itself (and a carry) is a number. */
		if ((e->b != ELFRW_REG_NONE && e->b != e->a) || (e->flags & ELFRW_EFFECT_IMM))
			add(f, k, e, r, SUM);
		derive(f, k, e, r);
		break;
	case ELFRW_OP_AND:
	case ELFRW_OP_OR:
	case ELFRW_OP_XOR:
	case ELFRW_OP_NEG:
	case ELFRW_OP_SHL:
	case ELFRW_OP_MUL:
	case ELFRW_OP_OTHER: derive(f, k, e, r); break;
	}
}

/* Follows R over instruction K, which is no branch. */
static void step(struct icf_flow *f, size_t k, unsigned r, unsigned stage)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, k);
	uint64_t next = a->pos + a->in.len;
	bool reads = e.reads & elfrw_reg_bit(r),
	     in_memory = (a->in.flags & ELFRW_INSN_MEM) && (a->in.base == r || a->in.index == r);
	if (!(e.writes & elfrw_reg_bit(r)) || e.op == ELFRW_OP_CHOOSE)
		reaches(f, next, r, stage);
	if (!reads)
		return;
	if (stage == WHOLE && in_memory && a->in.base == r && e.op != ELFRW_OP_ADDRESS)
		access(f, k, &e, r);
	if (in_memory && (e.op == ELFRW_OP_LOAD_MORE || e.op == ELFRW_OP_STORE_MORE) &&
	    (e.writes & elfrw_reg_bit(r)))
		note(f, k, r, (struct icf_sum){ .other = ELFRW_REG_NONE });
	switch (e.op) {
	case ELFRW_OP_MOV:
	case ELFRW_OP_CHOOSE:
		if (!in_memory)
			reaches(f, next, e.dst, stage);
		break;
	case ELFRW_OP_ADDRESS:
		if (in_memory)
			add(f, k, &e, r, stage);
		break;
	default:
		if (!in_memory)
			compute(f, k, &e, r, stage);
	}
}

static void follow(struct icf_flow *f, size_t k, unsigned r, unsigned stage)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	const struct elfrw_insn *in = &a->in;
	const struct icf_unit *u = &f->prog->unit.data[f->unit];
	switch (in->kind) {
	case ELFRW_INSN_RET:
	case ELFRW_INSN_TRAP:
	case ELFRW_INSN_JMP_IND: return;
	case ELFRW_INSN_JMP:
	case ELFRW_INSN_JCC:
		if (in->target - u->start < u->end - u->start)
			reaches(f, in->target - u->start, r, stage);
		if (in->kind == ELFRW_INSN_JCC)
			reaches(f, a->pos + in->len, r, stage);
		return;
	case ELFRW_INSN_CALL:
	case ELFRW_INSN_CALL_IND:
		if (!(f->prog->arch->model->clobbered & elfrw_reg_bit(r)))
			reaches(f, a->pos + in->len, r, stage);
		return;
	default: step(f, k, r, stage);
	}
}

/* The register that instruction K, a source, puts its address into. */
static unsigned source_reg(const struct icf_flow *f, size_t k)
{
	return f->t.insn.data[k].in.kind == ELFRW_INSN_CALL
		       ? f->prog->arch->model->link
		       : icf_effect_at(f->prog, f->unit, &f->t, k).dst;
}

struct elfrw_err *icf_flow_run(struct icf_flow *f, const uint32_t *source, size_t n)
{
	struct icf_trace *t = &f->t;
	size_t bits = t->insn.len * f->prog->arch->model->regs * STAGES;
	if (!VEC_RESERVE(&t->seen, bits / 8 + 1))
		return &elfrw_err_nomem;
	memset(t->seen.data, 0, bits / 8 + 1);
	t->todo.len = 0;
	f->sum.len = 0;
	for (size_t k = 0; k < n; k++) {
		const struct icf_insn_at *a = &t->insn.data[source[k]];
		unsigned r = source_reg(f, source[k]);
		if (r != ELFRW_REG_NONE)
			reaches(f, a->pos + a->in.len, r, WHOLE);
	}
	while (t->todo.len) {
		struct icf_step next = t->todo.data[--t->todo.len];
		follow(f, next.at, next.reg / STAGES, next.reg % STAGES);
	}
	return f->full ? &elfrw_err_nomem : NULL;
}
