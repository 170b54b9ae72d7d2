/* jump.c: how an indirect jump gets its target, read backwards from the jump.
 *
 *	cmp  $N,%eax ; ja default
 *	lea  table(%rip),%rdx
 *	movslq (%rdx,%rax,4),%rax
 *	add  %rdx,%rax
 *	jmp  *%rax
 *
 * in all orders that GCC and LLVM give it: the lea far away (hoisted out of a loop, spilled), the
 * load as two instructions (-O0), the bound proved by a mask or by a comparison of the byte in
 * memory.  All writers of a register that reach the jump are found along all ways (effect.c tells
 * what writes one).  x86-64. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"
#include <string.h>

#define WINDOW    64 /* instructions that are searched for a bound */
#define MAX_DEFS  64
#define MAX_STEPS 200000

static bool ends_block(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_RET ||
	       in->kind == ELFRW_INSN_TRAP || in->kind == ELFRW_INSN_JMP_IND;
}

/* Index of the first of N edges, sorted by target, that leads to the instruction at POS. */
static size_t first_to(const struct icf_edge *edge, size_t n, uint32_t pos)
{
	return LOWER_BOUND(0, n, mid, edge[mid].to < pos);
}

static size_t first_edge(const struct icf_trace *t, uint32_t pos)
{
	return first_to(t->edge.data, t->edge.len, pos);
}

/* The definitions of a register that reach a place. */
struct defs {
	struct icf_def def[MAX_DEFS];
	unsigned n;
	bool full; /* there were more, or the search was given up */
};

struct search {
	const struct icf_program *prog;
	uint32_t unit;
	struct icf_trace *t;
	unsigned steps;
	bool past_calls; /* look behind calls of functions that may leave the register alone */
	struct defs *out;
};

/* Is a load of 8 bytes one from the frame, where what was computed may have been kept? */
static bool from_frame(const struct elfrw_insn *in)
{
	return in->index == ELFRW_REG_NONE && (in->base == RSP || in->base == RBP);
}

/* Does A tell as much as B?  Of what no distance went into, only what kind of thing it is: a
 * function may end in hundreds of jumps to pointers that share one instruction. */
static bool same_def(const struct search *s, const struct icf_def *a, const struct icf_def *b)
{
	if (a->kind != b->kind || a->at == b->at)
		return a->kind == b->kind;
	const struct elfrw_insn *x = &s->t->insn.data[a->at].in, *y = &s->t->insn.data[b->at].in;
	switch (a->kind) {
	case ICF_DEF_LOAD: return from_frame(x) == from_frame(y);
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
	if (s->out->n == MAX_DEFS)
		s->out->full = true;
	else
		s->out->def[s->out->n++] = d;
}

/* Joins and choices are remembered, so that loops end. */
static void later(struct search *s, uint32_t at, uint8_t reg)
{
	struct icf_trace *t = s->t;
	size_t bit = (size_t)at * 32 + (reg & 15) + (reg & 0x80 ? 16 : 0);
	if (icf_trace_bit(t->seen.data, bit))
		return;
	t->seen.data[bit >> 3] |= (uint8_t)(1u << (bit & 7));
	struct icf_step *step = VEC_PUSH(&t->todo);
	if (step)
		*step = (struct icf_step){ at, reg };
	else
		s->out->full = true;
}

/* What instruction K does to register *R, which then may be another one.  false: it is defined
 * there. */
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
		return true;
	}
	bool choice = d.kind == ICF_DEF_CHOICE;
	/* GCC knows which registers its own functions leave alone (-fipa-ra). */
	bool call = s->past_calls && s->t->insn.data[k].in.kind == ELFRW_INSN_CALL;
	if (call && d.kind == ICF_DEF_NUMBER)
		return true;
	bool go_on = choice || d.maybe || call;
	if (choice)
		d.kind = ICF_DEF_LOAD;
	d.reg = (uint8_t)*r;
	add_def(s, d);
	return go_on;
}

/* Is instruction K padding before a place that something jumps to?  Then only an unknown jump could
 * lead to K itself, or a landing pad. */
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
	size_t e = first_edge(t, pos), c = first_to(t->cases.data, t->cases.len, pos);
	return (e < t->edge.len && t->edge.data[e].to == pos) ||
	       (c < t->cases.len && t->cases.data[c].to == pos);
}

/* Goes back from one place until the register is written or ways join. */
static void walk(struct search *s, struct icf_step from)
{
	const struct icf_trace *t = s->t;
	unsigned r = from.reg;
	for (size_t k = from.at;;) {
		const struct icf_insn_at *here = &t->insn.data[k];
		bool label = icf_trace_bit(t->target.data, here->pos);
		bool falls = k > 0 && !ends_block(&t->insn.data[k - 1].in);
		/* What is aligned may be the case of a switch, behind a call that does not
		 * return. */
		bool aligned = k > 0 && t->insn.data[k - 1].in.kind == ELFRW_INSN_NOP;
		size_t p = first_to(t->pads.data, t->pads.len, here->pos), n = 0;
		/* Exceptions come from inside of a call, or from before an instruction that
		 * faults. */
		for (; p + n < t->pads.len && t->pads.data[p + n].to == here->pos; n++) {
			uint32_t from = t->pads.data[p + n].from;
			enum elfrw_insn_kind kind = t->insn.data[from].in.kind;
			later(s, from,
			      (uint8_t)(r | (kind == ELFRW_INSN_CALL || kind == ELFRW_INSN_CALL_IND
						     ? 0x80
						     : 0)));
		}
		if (label || aligned || !falls || n) {
			size_t e = first_edge(t, here->pos), pads = n;
			for (; e + n - pads < t->edge.len &&
			       t->edge.data[e + n - pads].to == here->pos;
			     n++)
				later(s, t->edge.data[e + n - pads].from, (uint8_t)r);
			size_t c = first_to(t->cases.data, t->cases.len, here->pos), known = 0;
			for (; c + known < t->cases.len && t->cases.data[c + known].to == here->pos;
			     known++)
				later(s, t->cases.data[c + known].from, (uint8_t)r);
			/* Nothing in sight jumps here: the case of a switch, a landing pad, a label
			 * whose address is taken. */
			bool told = known || (t->cases.len && !label && is_padding(s, k));
			if (n == 0 && k > 0 && (told || !t->forward)) {
				size_t others = told ? t->open.v.len : t->jump.v.len;
				for (size_t i = 0; i < others; i++)
					later(s, told ? t->open.v.data[i] : t->jump.v.data[i],
					      (uint8_t)r);
				if (!t->jump.v.len)
					add_def(s, (struct icf_def){ .kind = ICF_DEF_CUT });
			}
			if (k == 0)
				add_def(s, (struct icf_def){ .kind = ICF_DEF_ENTRY });
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

/* All definitions of register R that reach instruction AT, seen through copies. */
static struct defs reach(const struct icf_program *prog, uint32_t unit, struct icf_trace *t,
			 size_t at, unsigned r, bool past_calls)
{
	struct defs ret = { .n = 0 };
	struct search s = {
		.prog = prog, .unit = unit, .t = t, .past_calls = past_calls, .out = &ret
	};
	size_t bytes = t->insn.len * 4 + 1;
	if (!VEC_RESERVE(&t->seen, bytes)) {
		ret.full = true;
		return ret;
	}
	memset(t->seen.data, 0, bytes);
	t->todo.len = 0;
	walk(&s, (struct icf_step){ (uint32_t)at, (uint8_t)r });
	while (t->todo.len && !ret.full) {
		struct icf_step next = t->todo.data[--t->todo.len];
		/* The way through the instruction before a label, rather than from it. */
		unsigned reg = next.reg & 0x7f;
		if (!(next.reg & 0x80) || before(&s, next.at, &reg))
			walk(&s, (struct icf_step){ next.at, (uint8_t)reg });
	}
	return ret;
}

static struct defs reaching(const struct icf_program *prog, uint32_t unit, struct icf_trace *t,
			    size_t at, unsigned r)
{
	return reach(prog, unit, t, at, r, true);
}

static bool all(const struct defs *d, enum icf_def_kind kind)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->def[i].kind != kind)
			return false;
	return d->n && !d->full;
}

static bool has(const struct defs *d, enum icf_def_kind kind)
{
	for (unsigned i = 0; i < d->n; i++)
		if (d->def[i].kind == kind)
			return true;
	return d->full;
}

/* What the index of a table is compared with: a register, or the memory that it was loaded from. */
struct place {
	bool mem;
	uint8_t reg;
	struct elfrw_insn in; /* with mem: an instruction with the operand */
	int64_t disp;
};

static int64_t displacement(const struct elfrw_insn *in, const uint8_t *code)
{
	if (!in->disp_size)
		return 0;
	uint64_t v = elfrw_get_le(code + in->disp_off, in->disp_size);
	unsigned shift = 64 - 8 * in->disp_size;
	return (int64_t)(v << shift) >> shift;
}

/* Does instruction AT compare PLACE with an immediate? */
static bool compares(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
		     size_t at, const struct place *p)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	if (in->opcode_map != 0)
		return false;
	if (in->opcode == 0x3c || in->opcode == 0x3d)
		return !p->mem && p->reg == RAX;
	if ((in->opcode != 0x80 && in->opcode != 0x81 && in->opcode != 0x83) || (in->reg & 7) != 7)
		return false;
	if (!(in->flags & ELFRW_INSN_MEM))
		return !p->mem && in->rm == p->reg;
	return p->mem && !in->pcrel_size && in->base == p->in.base && in->index == p->in.index &&
	       in->scale == p->in.scale &&
	       displacement(in, icf_code_of(prog, unit, t, at)) == p->disp;
}

static void lower(uint64_t *best, uint64_t bound)
{
	if (bound && bound <= UINT32_MAX / 4 && (!*best || bound < *best))
		*best = bound;
}

/* The number of entries that conditional jump K leaves for PLACE when it is taken or not; 0: it
 * does not compare that. */
static uint64_t compared(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			 size_t k, bool taken, const struct place *p)
{
	const struct elfrw_insn *in = &t->insn.data[k].in;
	bool loop = in->opcode_map == 0 && (in->opcode & 0xf0) == 0xe0;
	unsigned cc = (in->opcode & 15) ^ taken; /* 7: above, 3: not below */
	if (k == 0 || loop || (cc != 7 && cc != 3) ||
	    icf_trace_bit(t->target.data, t->insn.data[k].pos) ||
	    !compares(prog, unit, t, k - 1, p))
		return 0;
	const struct elfrw_insn *cmp = &t->insn.data[k - 1].in;
	uint64_t mask = cmp->opcode == 0x80 || cmp->opcode == 0x3c ? 0xff : 0xffffffff;
	return (icf_immediate(cmp, icf_code_of(prog, unit, t, k - 1)) & mask) + (cc == 7);
}

/* Is a register that PLACE depends on written by instruction K? */
static bool disturbs(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
		     size_t k, const struct place *p)
{
	if (!p->mem)
		return icf_effect(prog, unit, t, k, p->reg).kind != ICF_DEF_NONE;
	return (p->in.base < 16 && icf_effect(prog, unit, t, k, p->in.base).kind != ICF_DEF_NONE) ||
	       (p->in.index < 16 && icf_effect(prog, unit, t, k, p->in.index).kind != ICF_DEF_NONE);
}

/* The number of entries that the code before instruction AT allows for index R; 0: not seen.  Only
 * comparisons count, since compilers make a table of that very size for them; the width of a byte
 * and a mask are no more than a limit: *CAP. */
static uint64_t find_bound(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			   size_t at, unsigned r, uint64_t *cap)
{
	struct place now = { .reg = (uint8_t)r },
		     old[4]; /* OLD: other places that hold the same value */
	uint64_t best = 0;
	/* A register that is compared after it was copied to the index counts, too: comparisons
	 * seen before the copy. */
	uint64_t pending[16] = { 0 };
	unsigned n_old = 0;
	for (size_t k = at, n = 0; n < WINDOW; n++) {
		bool taken = false;
		const struct icf_insn_at *here = &t->insn.data[k];
		if (k == 0)
			break;
		if (icf_trace_bit(t->target.data, here->pos)) {
			/* One way leads here: from a jump. */
			size_t e = first_edge(t, here->pos);
			if (!ends_block(&t->insn.data[k - 1].in) || e == t->edge.len ||
			    t->edge.data[e].to != here->pos ||
			    (e + 1 < t->edge.len && t->edge.data[e + 1].to == here->pos))
				break;
			k = t->edge.data[e].from;
			taken = true;
		} else
			k--;
		const struct elfrw_insn *in = &t->insn.data[k].in;
		if (in->kind == ELFRW_INSN_JMP && taken)
			continue;
		if (in->kind == ELFRW_INSN_JCC) {
			lower(&best, compared(prog, unit, t, k, taken, &now));
			for (unsigned i = 0; i < n_old; i++)
				lower(&best, compared(prog, unit, t, k, taken, &old[i]));
			for (unsigned c = 0; c < 16; c++) {
				struct place other = { .reg = (uint8_t)c };
				uint64_t bound = compared(prog, unit, t, k, taken, &other);
				if (bound)
					pending[c] = bound;
			}
			continue;
		}
		if (ends_block(in))
			break;
		for (unsigned c = 0; c < 16; c++)
			if (pending[c] && icf_effect(prog, unit, t, k, c).kind != ICF_DEF_NONE &&
			    (now.mem || c != now.reg))
				pending[c] = 0;
		for (unsigned i = 0; i < n_old;)
			if (disturbs(prog, unit, t, k, &old[i]))
				old[i] = old[--n_old];
			else
				i++;
		if (now.mem) {
			if (disturbs(prog, unit, t, k, &now))
				break;
			continue;
		}
		struct icf_def d = icf_effect(prog, unit, t, k, now.reg);
		if (d.kind == ICF_DEF_NONE)
			continue;
		if (d.kind == ICF_DEF_SMALL && d.max != UINT64_MAX)
			lower(cap, d.max + 1);
		if ((d.kind == ICF_DEF_COPY || d.kind == ICF_DEF_SMALL) && d.a < 16) {
			now.reg = d.a;
			lower(&best, pending[now.reg]);
		} else if ((d.kind == ICF_DEF_DIST || d.kind == ICF_DEF_SMALL ||
			    d.kind == ICF_DEF_LOAD) &&
			   (in->flags & ELFRW_INSN_MEM) && !in->pcrel_size)
			now = (struct place){ .mem = true,
					      .in = *in,
					      .disp = displacement(in,
								   icf_code_of(prog, unit, t, k)) };
		else
			break;
	}
	return best;
}

static struct icf_jump unknown(void)
{
	return (struct icf_jump){ .kind = ICF_JUMP_UNKNOWN };
}

/* Does the unit load distances from tables at all? */
static bool loads_distances(const struct icf_trace *t)
{
	for (size_t i = 0; i < t->insn.len; i++) {
		const struct elfrw_insn *in = &t->insn.data[i].in;
		if (in->opcode_map == 0 && ((in->opcode == 0x63 && (in->flags & ELFRW_INSN_MEM) &&
					     in->index != ELFRW_REG_NONE) ||
					    in->opcode == 0x98))
			return true;
	}
	return false;
}

static bool push_jump(struct icf_jumps *ret, struct icf_jump j)
{
	for (unsigned i = 0; i < ret->n; i++)
		if (ret->jump[i].group == j.group && ret->jump[i].base == j.base &&
		    ret->jump[i].kind == j.kind)
			return true;
	if (ret->n == sizeof ret->jump / sizeof *ret->jump)
		return false;
	ret->jump[ret->n++] = j;
	return true;
}

/* The jump goes to the sum D of a table's address and a distance. */
static bool through_table(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
			  const struct icf_def *d, unsigned group, struct icf_jumps *ret)
{
	struct defs dist = reaching(prog, i, t, d->at, d->kind == ICF_DEF_ADD ? d->a : d->reg),
		    base = { .n = 0 };
	if (d->kind == ICF_DEF_ADD) {
		base = reaching(prog, i, t, d->at, d->b);
		if (!all(&dist, ICF_DEF_DIST)) {
			struct defs swap = dist;
			dist = base;
			base = swap;
		}
	}
	/* A distance may come from the stack.  A sum with neither a distance nor a table's address
	 * in it is nothing that a table was made for. */
	bool loaded = all(&dist, ICF_DEF_DIST);
	if (!loaded && !has(&base, ICF_DEF_ADDRESS)) {
		struct defs swap = dist;
		dist = base;
		base = swap;
	}
	if (!loaded && !has(&base, ICF_DEF_ADDRESS))
		return !has(&dist, ICF_DEF_DIST) && !has(&base, ICF_DEF_DIST);
	/* What was loaded as 8 bytes from elsewhere may be a distance of 8 bytes: no table that is
	 * known here. */
	for (unsigned k = 0; !loaded && k < dist.n; k++) {
		if (dist.def[k].kind == ICF_DEF_LOAD &&
		    !from_frame(&t->insn.data[dist.def[k].at].in))
			return false;
	}
	if (!loaded && d->kind == ICF_DEF_ADD_MEM)
		return false;
	/* With several loads, no single bound counts. */
	const struct elfrw_insn *l = &t->insn.data[loaded ? dist.def[0].at : 0].in;
	uint64_t cap = 0;
	uint64_t bound = loaded && dist.n == 1 && l->index != ELFRW_REG_NONE && l->scale == 4
				 ? find_bound(prog, i, t, dist.def[0].at, l->index, &cap)
				 : 0;
	if (d->kind == ICF_DEF_ADD_MEM)
		return push_jump(ret, (struct icf_jump){ .kind = ICF_JUMP_TABLE,
							 .group = group,
							 .bound = bound,
							 .cap = cap });
	/* Ways that no execution takes bring other values; the data will tell which of the
	 * addresses are tables. */
	const struct icf_unit *u = &prog->unit.data[i];
	bool any = false;
	for (unsigned k = 0; k < base.n; k++) {
		const struct icf_def *b = &base.def[k];
		struct icf_jump j = {
			.kind = ICF_JUMP_TABLE, .group = group, .bound = bound, .cap = cap
		};
		if (b->kind == ICF_DEF_ADDRESS) {
			j.base = t->insn.data[b->at].in.target;
			if (j.base - u->start < u->end - u->start)
				j.kind = ICF_JUMP_LOCAL;
		} else if (b->kind != ICF_DEF_LOAD) /* spilled */
			continue;
		if (!push_jump(ret, j))
			return false;
		any = true;
	}
	return any;
}

bool icf_call_adds(const struct icf_program *prog, uint32_t i, const struct icf_trace *t, size_t at)
{
	unsigned r = t->insn.data[at].in.rm;
	if ((t->insn.data[at].in.flags & ELFRW_INSN_MEM) || r >= 16)
		return false;
	for (size_t k = at, n = 0; k-- > 0 && n < 16 && !ends_block(&t->insn.data[k].in); n++) {
		struct icf_def d = icf_effect(prog, i, t, k, r);
		if (d.kind == ICF_DEF_COPY && d.a < 16)
			r = d.a;
		else if (d.kind != ICF_DEF_NONE)
			return d.kind == ICF_DEF_ADD || d.kind == ICF_DEF_ADD_MEM ||
			       d.kind == ICF_DEF_OTHER;
	}
	return false;
}

/* The jump goes to what is in a slot of the frame: sums that were stored there, while other ways
 * store pointers. */
static bool through_slot(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
			 struct icf_jumps *ret)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	int64_t disp = displacement(in, icf_code_of(prog, i, t, at));
	unsigned group = 0;
	if (in->pcrel_size || in->index != ELFRW_REG_NONE || (in->base != RSP && in->base != RBP) ||
	    !loads_distances(t))
		return true;
	for (size_t k = 0; k < t->insn.len; k++) {
		const struct elfrw_insn *st = &t->insn.data[k].in;
		if (st->opcode_map != 0 || st->opcode != 0x89 || !(st->flags & ELFRW_INSN_MEM) ||
		    !(st->flags & ELFRW_INSN_REX_W))
			continue;
		if (st->base != in->base || st->index != ELFRW_REG_NONE ||
		    displacement(st, icf_code_of(prog, i, t, k)) != disp)
			continue;
		struct defs d = reach(prog, i, t, k, st->reg, false);
		for (unsigned n = 0; n < d.n; n++)
			if (d.def[n].kind == ICF_DEF_ADD &&
			    !through_table(prog, i, t, &d.def[n], group++, ret))
				return false;
	}
	return true;
}

/* Is what DEF gives a jump a pointer that leads out of the unit?  A sum with a distance may have
 * been kept in the frame. */
static bool leads_out(const struct icf_trace *t, const struct icf_def *d)
{
	switch (d->kind) {
	case ICF_DEF_LOAD: return t->sealed && (t->plain || !from_frame(&t->insn.data[d->at].in));
	case ICF_DEF_RESULT:
	case ICF_DEF_ENTRY:
	case ICF_DEF_NUMBER:
	case ICF_DEF_ADDRESS: return t->sealed;
	default: return false;
	}
}

void icf_classify_jump(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
		       struct icf_jumps *ret)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	*ret = (struct icf_jumps){ .n = 0 };
	if (in->flags & ELFRW_INSN_MEM) {
		if (!through_slot(prog, i, t, at, ret)) {
			*ret = (struct icf_jumps){ .adds = true };
			push_jump(ret, unknown());
		} else
			ret->closed = !ret->n && t->sealed && (t->plain || !from_frame(in));
		return;
	}
	struct defs d = { .full = true };
	bool closed = true;
	if (in->rm < 16) {
		d = reach(prog, i, t, at, in->rm, false);
		unsigned sure = d.n;
		/* Behind a call only sums of tables matter: it is the rare function that leaves
		 * such a register alone. */
		bool behind = false;
		for (unsigned k = 0; k < sure; k++)
			behind |= d.def[k].kind != ICF_DEF_CUT && d.def[k].kind != ICF_DEF_ENTRY &&
				  t->insn.data[d.def[k].at].in.kind == ELFRW_INSN_CALL;
		struct defs more = { .n = 0 };
		if (behind)
			more = reaching(prog, i, t, at, in->rm);
		for (unsigned k = 0; k < more.n; k++) {
			bool seen = more.def[k].kind != ICF_DEF_ADD &&
				    more.def[k].kind != ICF_DEF_ADD_MEM;
			for (unsigned n = 0; n < sure && !seen; n++)
				seen = d.def[n].at == more.def[k].at &&
				       d.def[n].kind == more.def[k].kind;
			if (!seen && d.n < MAX_DEFS)
				d.def[d.n++] = more.def[k];
			else if (!seen)
				d.full = true;
		}
	}
	for (unsigned k = 0; k < d.n; k++) {
		const struct icf_def *one = &d.def[k];
		bool known = one->kind == ICF_DEF_LOAD || one->kind == ICF_DEF_RESULT ||
			     one->kind == ICF_DEF_ENTRY || one->kind == ICF_DEF_ADDRESS ||
			     one->kind == ICF_DEF_NUMBER || one->kind == ICF_DEF_SMALL ||
			     one->kind == ICF_DEF_DIST ||
			     (one->kind == ICF_DEF_CUT && !loads_distances(t));
		unsigned before = ret->n;
		if (one->kind == ICF_DEF_ADD || one->kind == ICF_DEF_ADD_MEM)
			known = through_table(prog, i, t, one, k, ret);
		closed &= ret->n > before || leads_out(t, one);
		ret->adds |= !known && (one->kind == ICF_DEF_ADD || one->kind == ICF_DEF_ADD_MEM ||
					one->kind == ICF_DEF_OTHER);
		d.full |= !known;
	}
	if (d.full && (loads_distances(t) || !d.n)) {
		ret->n = 0;
		push_jump(ret, unknown());
	}
	ret->closed = closed && d.n && !d.full;
	for (unsigned k = 0; k < ret->n; k++)
		ret->closed &= ret->jump[k].kind == ICF_JUMP_TABLE;
}
