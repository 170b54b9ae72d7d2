/* bound.c: how many entries a jump table can have.  The code before the jump compares the index
 * with the bound.  It is read backwards, along the only path to the jump. */
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"

#define WINDOW 64 /* instructions searched */
#define JOINS  2  /* places where paths join, on one path */

/* The index of a table, as compared: a register, or the memory that it was loaded from. */
struct place {
	bool mem;
	uint8_t reg;
	struct elfrw_insn in; /* with mem: an instruction with the operand */
	int64_t disp;
};

struct search {
	const struct icf_program *prog;
	uint32_t unit;
	const struct icf_trace *t;
	struct place now;
	uint64_t best;
	/* A register that is compared after it was copied to the index counts, too.  These
	 * comparisons were seen before the copy. */
	uint64_t pending[ELFRW_MAX_REGS];
	/* A conditional jump whose comparison is still to come. */
	uint8_t cond; /* enum elfrw_cond; OTHER: none */
	bool taken;
	bool past_calls; /* of functions that do not return */
	bool *open;      /* set if a path over a call shows no bound */
	unsigned joins;  /* places passed where paths join */
};

static void lower(uint64_t *best, uint64_t bound)
{
	if (bound && bound <= UINT32_MAX / 4 && (!*best || bound < *best))
		*best = bound;
}

static bool same_place(const struct place *a, const struct place *b)
{
	if (a->mem != b->mem)
		return false;
	if (!a->mem)
		return a->reg == b->reg;
	return a->in.base == b->in.base && a->in.index == b->in.index &&
	       a->in.scale == b->in.scale && a->disp == b->disp;
}

/* Does E, of instruction IN, compare a place with a number? */
static bool compares(const struct elfrw_insn *in, const struct elfrw_effect *e, struct place *ret)
{
	if (e->op != ELFRW_OP_CMP || !(e->flags & ELFRW_EFFECT_IMM))
		return false;
	*ret = (struct place){ .mem = e->flags & ELFRW_EFFECT_LOADS, .reg = e->a };
	if (ret->mem) {
		ret->in = *in;
		ret->disp = e->disp;
	}
	return !ret->mem || !in->pcrel_size;
}

/* The number of entries that comparison K allows if the conditional jump on condition COND behind
 * it is taken or not taken, and for which place; 0: it is no such comparison. */
static uint64_t compared(const struct search *s, size_t k, unsigned cond, bool taken,
			 struct place *ret)
{
	bool not_above = cond == (taken ? ELFRW_COND_NOT_ABOVE : ELFRW_COND_ABOVE),
	     below = cond == (taken ? ELFRW_COND_BELOW : ELFRW_COND_NOT_BELOW);
	struct elfrw_effect e = icf_effect_at(s->prog, s->unit, s->t, k);
	if ((!not_above && !below) || !compares(&s->t->insn.data[k].in, &e, ret))
		return 0;
	return ((uint64_t)e.imm & (e.width == 1 ? 0xff : 0xffffffff)) + not_above;
}

/* Uses the bound of comparison K for such a jump. */
static void learn(struct search *s, size_t k, unsigned cond, bool taken)
{
	struct place p;
	uint64_t bound = compared(s, k, cond, taken, &p);
	if (!bound)
		return;
	if (same_place(&p, &s->now))
		lower(&s->best, bound);
	if (!p.mem && p.reg < ELFRW_MAX_REGS)
		s->pending[p.reg] = bound;
}

/* Goes back over conditional jump K.  Its comparison is the instruction in front of it, or, if the
 * architecture tells which instructions change the flags, the last one that does. */
static void meet_jump(struct search *s, size_t k, bool taken)
{
	unsigned cond = icf_effect_at(s->prog, s->unit, s->t, k).cond;
	if (s->prog->arch->model->tells_flags) {
		if (s->cond)
			return; /* the other jump looks at the same flags */
		s->cond = (uint8_t)cond;
		s->taken = taken;
	} else if (k > 0 && !icf_trace_bit(s->t->target.data, s->t->insn.data[k].pos)) {
		learn(s, k - 1, cond, taken);
	}
}

/* Instruction K may be the comparison of the jump behind it. */
static void meet_comparison(struct search *s, size_t k)
{
	struct elfrw_effect e = icf_effect_at(s->prog, s->unit, s->t, k);
	if (!s->cond || !(e.flags & ELFRW_EFFECT_FLAGS))
		return;
	learn(s, k, s->cond, s->taken);
	s->cond = ELFRW_COND_OTHER;
}

/* Goes back over instruction K, which is no jump.  false: the index has no earlier origin. */
static bool pass(struct search *s, size_t k, uint64_t *cap)
{
	const struct elfrw_insn *in = &s->t->insn.data[k].in;
	struct elfrw_effect e = icf_effect_at(s->prog, s->unit, s->t, k);
	for (unsigned c = 0; c < ELFRW_MAX_REGS; c++)
		if ((e.writes >> c & 1) && (s->now.mem || c != s->now.reg))
			s->pending[c] = 0;
	if (s->now.mem)
		return !(e.writes &
			 (elfrw_reg_bit(s->now.in.base) | elfrw_reg_bit(s->now.in.index)));
	if (!(e.writes & elfrw_reg_bit(s->now.reg)))
		return true;
	struct icf_def d = icf_effect(s->prog, s->unit, s->t, k, s->now.reg);
	if ((d.kind == ICF_DEF_SMALL || d.kind == ICF_DEF_DIST) && d.max != UINT64_MAX)
		lower(cap, d.max + 1);
	if ((d.kind == ICF_DEF_COPY || d.kind == ICF_DEF_SMALL) && d.a < ELFRW_MAX_REGS) {
		s->now.reg = d.a;
		lower(&s->best, s->pending[d.a]);
		return true;
	}
	bool loaded = d.kind == ICF_DEF_DIST || d.kind == ICF_DEF_SMALL || d.kind == ICF_DEF_LOAD;
	if (!loaded || !(in->flags & ELFRW_INSN_MEM) || in->pcrel_size)
		return false;
	s->now = (struct place){ .mem = true, .in = *in, .disp = e.disp };
	return true;
}

/* The only jump to instruction K, which stands behind a call, leads over straight code that leaves
 * the index alone.  If the call returned, the index would be what the jump excluded. */
static bool skips_call(const struct search *s, size_t k, size_t jump)
{
	const struct icf_trace *t = s->t;
	uint32_t index = s->now.mem ? 0 : elfrw_reg_bit(s->now.reg);
	if (!s->past_calls || jump >= k || t->insn.data[jump].in.kind != ELFRW_INSN_JCC ||
	    t->insn.data[k - 1].in.kind != ELFRW_INSN_CALL ||
	    s->now.reg == s->prog->arch->model->result || !index)
		return false;
	for (size_t i = jump + 1; i < k; i++) {
		const struct icf_insn_at *a = &t->insn.data[i];
		bool call = a->in.kind == ELFRW_INSN_CALL;
		struct elfrw_effect e = icf_effect_at(s->prog, s->unit, t, i);
		if (icf_trace_bit(t->target.data, a->pos) || (!call && (e.writes & index)) ||
		    (!call && a->in.kind != ELFRW_INSN_OTHER && a->in.kind != ELFRW_INSN_NOP))
			return false;
	}
	return true;
}

/* Moves *K to the only instruction before it; *TAKEN: by a jump.  false: there is none, or there
 * are several. */
static bool step_back(const struct search *s, size_t *k, bool *taken)
{
	const struct icf_trace *t = s->t;
	const struct icf_insn_at *here = &t->insn.data[*k];
	*taken = false;
	if (*k == 0)
		return false;
	if (!icf_trace_bit(t->target.data, here->pos)) {
		--*k;
		return true;
	}
	size_t e = icf_first_edge(t, here->pos);
	if (e == t->edge.len || t->edge.data[e].to != here->pos ||
	    (e + 1 < t->edge.len && t->edge.data[e + 1].to == here->pos))
		return false;
	if (!icf_ends_block(&t->insn.data[*k - 1].in) && !skips_call(s, *k, t->edge.data[e].from))
		return false;
	*k = t->edge.data[e].from;
	*taken = true;
	return true;
}

/* Goes back over instruction K; TAKEN: which jumped.  false: the search ends. */
static bool visit(struct search *s, size_t k, bool taken, uint64_t *cap)
{
	const struct elfrw_insn *in = &s->t->insn.data[k].in;
	if (in->kind == ELFRW_INSN_JMP && taken)
		return true;
	if (in->kind == ELFRW_INSN_JCC)
		meet_jump(s, k, taken);
	else if (icf_ends_block(in))
		return false;
	else {
		meet_comparison(s, k);
		return pass(s, k, cap);
	}
	return true;
}

static uint64_t join(const struct search *s, size_t at);

/* Goes back from instruction AT. */
static uint64_t find(struct search *s, size_t at, uint64_t *cap)
{
	size_t k = at;
	bool taken;
	for (size_t n = 0; n < WINDOW; n++) {
		if (!step_back(s, &k, &taken)) {
			if (!s->best)
				s->best = join(s, k);
			break;
		}
		if (!visit(s, k, taken, cap))
			break;
	}
	return s->best;
}

/* The bound that the path over instruction K shows. */
static uint64_t find_over(const struct search *s, size_t k, bool taken)
{
	struct search path = *s;
	uint64_t cap = 0;
	path.joins++;
	if (!visit(&path, k, taken, &cap))
		return path.best;
	return find(&path, k, &cap);
}

/* Does control fall into instruction AT?  Not behind a call that loses the index: it does not
 * return.  Its result could be another index. */
static bool falls_into(const struct search *s, size_t at)
{
	const struct elfrw_insn *in = &s->t->insn.data[at - 1].in;
	uint32_t lost = s->prog->arch->model->clobbered & ~s->prog->arch->model->results;
	if (in->kind == ELFRW_INSN_CALL && !s->now.mem && (lost & elfrw_reg_bit(s->now.reg)))
		return false;
	return !icf_ends_block(in);
}

/* Several paths lead to instruction AT, for example into a loop and round it.  If there is a
 * comparison on each of them, the largest bound counts.  Only for tables whose entries never
 * change. */
static uint64_t join(const struct search *s, size_t at)
{
	const struct icf_trace *t = s->t;
	uint32_t pos = t->insn.data[at].pos;
	uint64_t ret = 0;
	if (!s->past_calls || s->joins == JOINS || at == 0 || !icf_trace_bit(t->target.data, pos))
		return 0;
	if (falls_into(s, at) && !(ret = find_over(s, at - 1, false))) {
		/* Either the call never returns, or the compiler knows which numbers there are. */
		if (t->insn.data[at - 1].in.kind != ELFRW_INSN_CALL)
			return 0;
		*s->open = true;
	}
	for (size_t e = icf_first_edge(t, pos); e < t->edge.len && t->edge.data[e].to == pos; e++) {
		uint64_t one = find_over(s, t->edge.data[e].from, true);
		if (!one)
			return 0;
		ret = one > ret ? one : ret;
	}
	return ret;
}

uint64_t icf_find_bound(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			size_t at, unsigned r, uint64_t *cap)
{
	struct search s = { .prog = prog, .unit = unit, .t = t, .now = { .reg = (uint8_t)r } };
	return find(&s, at, cap);
}

uint64_t icf_find_packed_bound(const struct icf_program *prog, uint32_t unit,
			       const struct icf_trace *t, size_t at, unsigned r, bool *open)
{
	uint64_t cap = 0;
	struct search s = { .prog = prog,
			    .unit = unit,
			    .t = t,
			    .now = { .reg = (uint8_t)r },
			    .past_calls = true,
			    .open = open };
	*open = false;
	if (find(&s, at, &cap))
		return s.best;
	*open = true;
	return 1;
}
