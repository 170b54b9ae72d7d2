/* defs.c: all writers of a register that reach an instruction, on all paths.  The code is read
 * backwards; effect.c says what writes a register. */
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"
#include <string.h>

#define MAX_STEPS 200000

/* Index of the first of N edges, sorted by target, that leads to the instruction at POS. */
static size_t first_to(const struct icf_edge *edge, size_t n, uint32_t pos)
{
	return LOWER_BOUND(0, n, mid, edge[mid].to < pos);
}

struct search {
	const struct icf_program *prog;
	uint32_t unit;
	struct icf_trace *t;
	unsigned steps;
	bool past_calls;       /* look behind calls of functions that may preserve the register */
	bool through[2][0x80]; /* from_jumps() was called; by its arguments */
	struct icf_defs *out;
};

/* Does A say as much as B?  Of a definition without a distance in it, only the kind matters: a
 * function may end in hundreds of jumps to pointers that share one instruction. */
static bool same_def(const struct search *s, const struct icf_def *a, const struct icf_def *b)
{
	if (a->kind != b->kind || a->at == b->at)
		return a->kind == b->kind;
	const struct elfrw_insn *x = &s->t->insn.data[a->at].in, *y = &s->t->insn.data[b->at].in;
	switch (a->kind) {
	case ICF_DEF_LOAD: return icf_from_frame(s->prog, x) == icf_from_frame(s->prog, y);
	case ICF_DEF_RESULT: return true;
	case ICF_DEF_NUMBER: return (x->kind == ELFRW_INSN_CALL) == (y->kind == ELFRW_INSN_CALL);
	default: return false;
	}
}

static void add_def(struct search *s, struct icf_def d)
{
	for (unsigned i = 0; i < s->out->n; i++)
		if (same_def(s, &s->out->def[i], &d))
			return;
	if (s->out->n == ICF_MAX_DEFS)
		s->out->full = true;
	else
		s->out->def[s->out->n++] = d;
}

/* Joins and choices are remembered, so that loops end. */
static void later(struct search *s, uint32_t at, uint8_t reg)
{
	struct icf_trace *t = s->t;
	unsigned regs = s->prog->arch->model->regs;
	size_t bit = (size_t)at * 2 * regs + (reg & 0x7f) + (reg & 0x80 ? regs : 0);
	if (icf_trace_bit(t->seen.data, bit))
		return;
	t->seen.data[bit >> 3] |= (uint8_t)(1u << (bit & 7));
	struct icf_step *step = VEC_PUSH(&t->todo);
	if (step)
		*step = (struct icf_step){ at, reg };
	else
		s->out->full = true;
}

/* Goes back over instruction K; *R may become another register.  false: K defines the register. */
static bool before(struct search *s, uint32_t k, unsigned *r)
{
	struct icf_def d = icf_effect(s->prog, s->unit, s->t, k, *r);
	if (d.kind == ICF_DEF_NONE)
		return true;
	if (d.kind == ICF_DEF_COPY && d.a != ELFRW_REG_NONE) {
		*r = d.a;
		return true;
	}
	if (d.kind == ICF_DEF_CHOICE && d.a != ELFRW_REG_NONE) {
		later(s, k, d.a);
		if (d.b != ELFRW_REG_NONE)
			*r = d.b;
		return true;
	}
	bool choice = d.kind == ICF_DEF_CHOICE;
	/* GCC knows which registers its own functions preserve (-fipa-ra). */
	bool call = s->past_calls && s->t->insn.data[k].in.kind == ELFRW_INSN_CALL;
	if (call && d.kind == ICF_DEF_NUMBER)
		return true;
	bool go_on = choice || call;
	if (choice)
		d.kind = ICF_DEF_LOAD;
	d.reg = (uint8_t)*r;
	add_def(s, d);
	return go_on;
}

/* Is instruction K padding before a jump target?  Then only an unknown jump or a landing pad could
 * lead to K itself. */
static bool is_padding(const struct search *s, size_t k)
{
	const struct icf_trace *t = s->t;
	const struct icf_unit *u = &s->prog->unit.data[s->unit];
	for (uint32_t f = u->fde; f < u->fde + u->n_fde && !t->sealed; f++)
		if (s->prog->cfi.fde.data[s->prog->cfi.by_pc[f]].lsda)
			return false;
	size_t next = k;
	while (next < t->insn.len && t->insn.data[next].in.kind == ELFRW_INSN_NOP &&
	       !(t->insn.data[next].in.flags & ELFRW_INSN_ENDBR))
		next++;
	if (next == k || next == t->insn.len)
		return false;
	uint32_t pos = t->insn.data[next].pos;
	size_t e = icf_first_edge(t, pos), c = first_to(t->cases.data, t->cases.len, pos);
	return (e < t->edge.len && t->edge.data[e].to == pos) ||
	       (c < t->cases.len && t->cases.data[c].to == pos);
}

/* Exceptions come from inside of a call, or from before an instruction that faults.  Returns the
 * number that lead to the instruction at POS. */
static size_t from_pads(struct search *s, uint32_t pos, unsigned r)
{
	const struct icf_trace *t = s->t;
	size_t p = first_to(t->pads.data, t->pads.len, pos), n = 0;
	for (; p + n < t->pads.len && t->pads.data[p + n].to == pos; n++) {
		uint32_t from = t->pads.data[p + n].from;
		enum elfrw_insn_kind kind = t->insn.data[from].in.kind;
		bool call = kind == ELFRW_INSN_CALL || kind == ELFRW_INSN_CALL_IND;
		later(s, from, (uint8_t)(r | (call ? 0x80 : 0)));
	}
	return n;
}

/* Continues behind each of the edges to POS; returns their number. */
static size_t from_edges(struct search *s, const struct icf_edge *edge, size_t n, uint32_t pos,
			 unsigned r)
{
	size_t first = first_to(edge, n, pos), k = first;
	for (; k < n && edge[k].to == pos; k++)
		later(s, edge[k].from, (uint8_t)r);
	return k - first;
}

/* Continues behind the indirect jumps: those that may lead anywhere if TOLD, else all.  Once for a
 * register, since an interpreter has thousands of labels and as many jumps that may lead to each.
 */
static void from_jumps(struct search *s, bool told, unsigned r)
{
	const struct icf_trace *t = s->t;
	const struct icf_indices *from = told ? &t->open : &t->jump;
	if (s->through[told][r])
		return;
	s->through[told][r] = true;
	for (size_t i = 0; i < from->v.len; i++)
		later(s, from->v.data[i], (uint8_t)r);
}

/* Continues behind all predecessors of instruction K; PADS of them are exceptions.  Returns the
 * number of known paths. */
static size_t join(struct search *s, size_t k, unsigned r, size_t pads)
{
	const struct icf_trace *t = s->t;
	uint32_t pos = t->insn.data[k].pos;
	size_t n = pads + from_edges(s, t->edge.data, t->edge.len, pos, r),
	       known = from_edges(s, t->cases.data, t->cases.len, pos, r);
	/* No known jump leads here: it is the case of a switch, a landing pad, or a label whose
	 * address is taken. */
	bool label = icf_trace_bit(t->target.data, pos),
	     told = known || (t->cases.len && !label && is_padding(s, k));
	if (n == 0 && k > 0 && (told || !t->forward)) {
		from_jumps(s, told, r);
		if (!t->jump.v.len)
			add_def(s, (struct icf_def){ .kind = ICF_DEF_CUT });
	}
	if (k == 0)
		add_def(s, (struct icf_def){ .kind = ICF_DEF_ENTRY });
	return n;
}

/* Goes back from one place until the register is written or paths join. */
static void walk(struct search *s, struct icf_step from)
{
	const struct icf_trace *t = s->t;
	unsigned r = from.reg;
	for (size_t k = from.at;;) {
		const struct icf_insn_at *here = &t->insn.data[k];
		bool label = icf_trace_bit(t->target.data, here->pos);
		bool falls = k > 0 && !icf_ends_block(&t->insn.data[k - 1].in);
		/* Aligned code may be the case of a switch, behind a call that does not return. */
		bool aligned = k > 0 && t->insn.data[k - 1].in.kind == ELFRW_INSN_NOP;
		size_t pads = from_pads(s, here->pos, r);
		if (label || aligned || !falls || pads) {
			size_t n = join(s, k, r, pads);
			if (!falls)
				return;
			if (n) {
				later(s, (uint32_t)k - 1, (uint8_t)(r | 0x80));
				return;
			}
		}
		k--;
		if (++s->steps > MAX_STEPS || !s->t->budget) {
			s->out->full = true;
			return;
		}
		s->t->budget--;
		if (!before(s, (uint32_t)k, &r))
			return;
	}
}

struct icf_defs icf_defs_reaching(const struct icf_program *prog, uint32_t unit,
				  struct icf_trace *t, size_t at, unsigned r, bool past_calls)
{
	struct icf_defs ret = { .n = 0 };
	struct search s = {
		.prog = prog, .unit = unit, .t = t, .past_calls = past_calls, .out = &ret
	};
	size_t bytes = t->insn.len * prog->arch->model->regs / 4 + 1;
	/* `br xzr` has a register that nothing writes. */
	if (r >= prog->arch->model->regs || !VEC_RESERVE(&t->seen, bytes)) {
		ret.full = true;
		return ret;
	}
	memset(t->seen.data, 0, bytes);
	t->todo.len = 0;
	walk(&s, (struct icf_step){ (uint32_t)at, (uint8_t)r });
	while (t->todo.len && !ret.full) {
		struct icf_step next = t->todo.data[--t->todo.len];
		/* Continue through the instruction before a label, not from the label. */
		unsigned reg = next.reg & 0x7f;
		if (!(next.reg & 0x80) || before(&s, next.at, &reg))
			walk(&s, (struct icf_step){ next.at, (uint8_t)reg });
	}
	return ret;
}
