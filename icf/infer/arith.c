/* arith.c: addresses of functions that code computes with.
 *
 * An assembler resolves the difference of two functions of one object file itself, as a word or as
 * an operand, in any encoding: LEB128, one or three bytes, an array of functions of equal size.
 * Neither relocations nor the data show such a number.  But its user adds it to a function's
 * address.  So each such address that a unit computes is followed through registers, forwards and
 * along all direct branches.  If a number is added to it, the sum is a known place: both places
 * stay.  If anything else is added, or a sum is used for another one, nothing moves.
 *
 * A register that holds the address on one path and something else on another is not counted: most
 * such paths do not exist (they go on behind a call that never returns).  The difference of the
 * address and something else is no address, unless that is a number.  Other operations (masks,
 * tags, complements, rotations) may be undone, so their results are followed, too; a sum with one
 * tells nothing but that nothing may move.  What goes through memory, into vector registers, into
 * calls or to another unit is not followed: compilers do not compute with addresses of functions.
 * The exception is a push with a pop right behind it.  A place inside the own unit counts only if a
 * number leads out of it, to code or data, or is the displacement of an access there: compilers add
 * distances to labels (computed goto), and these move together.  A call of the next instruction,
 * which pops its return address, computes such a place, too.
 *
 * The same holds where a landing pad begins, and where another unit jumps to: the registers are
 * also those of a call site or of the other unit.  These places are collected if something seems to
 * be added.
 *
 * Cost: the units that name a function, or a place in themselves, are decoded, and each of their
 * instructions is visited at most twice for each register; then once more for each address, in
 * units that do add numbers. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include "icf/program/end.h"
#include <stdlib.h>
#include <string.h>

#define MAX_SOURCES 64  /* that are followed one by one in a unit that adds numbers */
#define MAX_SUMS    256 /* that are examined in one unit */

/* Whether the register holds the address itself, or a sum of it and a number, or what another
 * operation made of it. */
enum { WHOLE, SUM, STAGES };

/* Instruction `at` computes with the address in register `reg`. */
struct sum {
	uint32_t at;
	uint8_t reg;
	uint8_t other; /* the register that is added or subtracted, or ELFRW_REG_NONE */
	uint8_t shift; /* to the left, before it is added */
	bool minus;    /* it is subtracted */
	bool only;     /* counts only if `other` holds numbers */
	bool whole;    /* `reg` holds the address itself */
	bool sure;     /* it holds nothing else */
	bool quiet;    /* no sum, but what leads on to one, or could be one */
	bool known;    /* only a number is added, to the address itself: */
	int64_t number;
};

struct flow {
	struct icf_program *prog;
	const struct icf_bits
		*entries; /* from other units, and landing pads; NULL: not collected */
	uint32_t unit;
	struct icf_trace t;
	VEC(uint32_t) source; /* instructions that compute an address; ascending */
	VEC(struct sum) sum;
	bool own;          /* addresses inside the own unit */
	bool edges;        /* icf_trace_edges() was called */
	bool full;         /* out of memory */
	const char *loose; /* nothing may move */
	uint64_t loose_at;
};

static void reaches(struct flow *f, uint64_t pos, unsigned r, unsigned stage)
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

static void give_up(struct flow *f, size_t k)
{
	if (f->loose)
		return;
	f->loose = "the code may add distances to the address of a function";
	f->loose_at = f->prog->unit.data[f->unit].start + f->t.insn.data[k].pos;
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
static void note(struct flow *f, size_t k, unsigned r, struct sum s)
{
	struct sum *slot = f->sum.len < MAX_SUMS ? VEC_PUSH(&f->sum) : NULL;
	f->full |= !slot && f->sum.len < MAX_SUMS;
	s.at = (uint32_t)k;
	s.reg = (uint8_t)r;
	s.sure = true;
	if (slot)
		*slot = s;
}

/* Without position independence, addresses have 4 bytes. */
static bool is_wide(const struct flow *f, const struct elfrw_effect *e)
{
	return e->width == 8 || (e->width == 4 && !f->prog->img->pic);
}

/* Instruction K makes something of the address in R that a later one may add to: behind it, it is
 * in DST. */
static void carry(struct flow *f, size_t k, unsigned r, unsigned dst, unsigned stage)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	note(f, k, r, (struct sum){ .other = ELFRW_REG_NONE, .quiet = true });
	reaches(f, a->pos + a->in.len, dst, stage);
}

/* The register that instruction K adds to the address in R or subtracts from it, or
 * ELFRW_REG_NONE. */
static unsigned other_of(const struct elfrw_insn *in, const struct elfrw_effect *e, unsigned r)
{
	if (e->op == ELFRW_OP_ADDRESS)
		return in->base == r ? in->index : in->base;
	return e->a == r ? e->b : e->a;
}

/* Instruction K computes a sum with the address in R. */
static void add(struct flow *f, size_t k, const struct elfrw_effect *e, unsigned r, unsigned stage)
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
	struct sum s = { .other = (uint8_t)(number ? ELFRW_REG_NONE : other_of(&a->in, e, r)),
			 .minus = minus,
			 .only = minus,
			 .whole = stage == WHOLE && (!minus || e->a == r),
			 .known = number && stage == WHOLE,
			 .number = e->op == ELFRW_OP_ADDRESS ? e->disp : n };
	if (minus && s.other == ELFRW_REG_NONE)
		return;
	s.shift = e->op == ELFRW_OP_ADDRESS && a->in.base == r && a->in.index != ELFRW_REG_NONE
			  ? (uint8_t)__builtin_ctz(a->in.scale)
			  : e->shift;
	note(f, k, r, s);
	if (s.known)
		reaches(f, a->pos + a->in.len, e->dst, SUM);
}

/* Instruction K accesses memory at a known distance from the address in R; or at another one, which
 * may be a number. */
static void access(struct flow *f, size_t k, const struct elfrw_effect *e, unsigned r)
{
	const struct elfrw_insn *in = &f->t.insn.data[k].in;
	bool known = in->index == ELFRW_REG_NONE;
	if (known && e->disp == 0)
		return;
	note(f, k, r,
	     (struct sum){ .other = in->index,
			   .shift = (uint8_t)__builtin_ctz(in->scale | 0x100u),
			   .whole = true,
			   .known = known,
			   .quiet = !known,
			   .number = e->disp });
}

/* Instruction K computes something with the address in R that is no plain sum. */
static void derive(struct flow *f, size_t k, const struct elfrw_effect *e, unsigned r)
{
	if (is_wide(f, e) && e->dst != ELFRW_REG_NONE)
		carry(f, k, r, e->dst, SUM);
}

/* Registers trade places, perhaps after a sum. */
static void exchange(struct flow *f, size_t k, const struct elfrw_effect *e, unsigned r,
		     unsigned stage)
{
	if (e->dst == ELFRW_REG_NONE || e->a == ELFRW_REG_NONE)
		return;
	if (e->flags & ELFRW_EFFECT_SUM)
		add(f, k, e, r, stage);
	carry(f, k, r, r == e->dst ? e->a : e->dst, stage);
}

/* Instruction K pushes R.  Does the next one pop it? */
static void push_pop(struct flow *f, size_t k, unsigned r, unsigned stage)
{
	struct icf_trace *t = &f->t;
	if (k + 1 == t->insn.len || icf_trace_bit(t->target.data, t->insn.data[k + 1].pos))
		return;
	struct elfrw_effect e = icf_effect_at(f->prog, f->unit, t, k + 1);
	if (e.op == ELFRW_OP_POP && e.dst != ELFRW_REG_NONE)
		carry(f, k + 1, r, e.dst, stage);
}

/* Instruction K computes with the address in R, which is no part of a memory operand. */
static void compute(struct flow *f, size_t k, const struct elfrw_effect *e, unsigned r,
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
static void step(struct flow *f, size_t k, unsigned r, unsigned stage)
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
		note(f, k, r, (struct sum){ .other = ELFRW_REG_NONE });
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

static void follow(struct flow *f, size_t k, unsigned r, unsigned stage)
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
static unsigned source_reg(const struct flow *f, size_t k)
{
	return f->t.insn.data[k].in.kind == ELFRW_INSN_CALL
		       ? f->prog->arch->model->link
		       : icf_effect_at(f->prog, f->unit, &f->t, k).dst;
}

/* Follows the addresses that the N instructions SOURCE compute. */
static struct elfrw_err *run(struct flow *f, const uint32_t *source, size_t n)
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

/* The function that address VA is the entry of, as one that may move and is not unit I, or
 * ICF_NONE. */
static uint32_t function_at(const struct icf_program *prog, uint32_t i, uint64_t va)
{
	uint32_t k = icf_in_exec(prog, va) ? icf_unit_at(prog, va) : ICF_NONE;
	return k != ICF_NONE && k != i && prog->unit.data[k].start == va &&
			       prog->unit.data[k].kind != ICF_UNIT_OPAQUE &&
			       !prog->exec.data[prog->unit.data[k].sec].linkage
		       ? k
		       : ICF_NONE;
}

/* Is VA in code, but in no function? */
static bool is_padding(const struct icf_program *prog, uint64_t va)
{
	return icf_in_exec(prog, va) && icf_unit_at(prog, va) == ICF_NONE;
}

/* Does reference REF, of unit I, name a function, or a pointer to one (in the global offset
 * table)? */
static bool names_function(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	uint64_t va = ref->target;
	/* Of an address in two halves, the second adds to the first what belongs to it (pair.c). */
	if (ref->kind == ICF_REF_BRANCH || elfrw_form_is_high(&prog->arch->form[ref->form]))
		return false;
	if (!icf_in_exec(prog, va)) {
		const struct icf_dataref *d =
			ref->flags & ICF_REF_LEA ? NULL : icf_dataref_at(prog, va);
		if (!d || d->kind != ICF_DATA_ADDRESS)
			return false;
		va = d->target;
	}
	/* The end of a function may be in the padding behind it. */
	return function_at(prog, i, va) != ICF_NONE || is_padding(prog, va);
}

static struct elfrw_err *add_source(struct flow *f, size_t k, uint64_t target,
				    uint64_t from[MAX_SOURCES])
{
	if (f->source.len < MAX_SOURCES)
		from[f->source.len] = target;
	uint32_t *slot = VEC_PUSH(&f->source);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (uint32_t)k;
	return NULL;
}

/* The address of a function that instruction K loads from the unit's literals: *RET. */
static bool loads_function(const struct flow *f, size_t k, uint64_t *ret)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[f->unit];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	const struct icf_insn_at *at = &f->t.insn.data[k];
	uint64_t va = at->in.target;
	size_t n = u->n_ref, r = LOWER_BOUND(0, n, mid, ref[mid].off < at->pos);
	if (r < n && ref[r].off == at->pos && (ref[r].flags & ICF_REF_OWN))
		va = ref[r].target;
	else if (!at->in.pcrel_size || icf_is_half(prog->arch, &at->in))
		return false;
	if (va - u->start >= u->end - u->start || icf_data_end(prog, va) == va)
		return false;
	r = LOWER_BOUND(0, n, mid, ref[mid].off < va - u->start);
	if (r == n || ref[r].off != va - u->start || !names_function(prog, f->unit, &ref[r]) ||
	    !icf_in_exec(prog, ref[r].target))
		return false;
	*ret = ref[r].target;
	return true;
}

/* The same as find_sources(), for a unit with literals. */
static struct elfrw_err *find_loads(struct flow *f, uint64_t from[MAX_SOURCES])
{
	const struct icf_unit *u = &f->prog->unit.data[f->unit];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	uint32_t r = 0;
	for (size_t k = 0; k < f->t.insn.len; k++) {
		uint32_t end = f->t.insn.data[k].pos + f->t.insn.data[k].in.len;
		uint64_t target = 0;
		bool found = loads_function(f, k, &target);
		for (; r < u->n_ref && ref[r].off < end; r++) {
			bool literal = icf_data_end(f->prog, u->start + ref[r].off) !=
				       u->start + ref[r].off;
			struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, k);
			if (found || literal || !names_function(f->prog, f->unit, &ref[r]) ||
			    !icf_in_exec(f->prog, ref[r].target) ||
			    (e.op != ELFRW_OP_ADDRESS && e.op != ELFRW_OP_MOV &&
			     !(ref[r].pair && (ref[r].flags & ICF_REF_LEA))))
				continue;
			found = true;
			target = ref[r].target;
		}
		if (found)
			ELFRW_TRY(add_source(f, k, target, from));
	}
	return NULL;
}

/* Collects the instructions that compute addresses of functions; FROM: their addresses. */
static struct elfrw_err *find_sources(struct flow *f, uint64_t from[MAX_SOURCES])
{
	const struct icf_unit *u = &f->prog->unit.data[f->unit];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	f->source.len = 0;
	if (u->flags & ICF_UNIT_POOL)
		return find_loads(f, from);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		if (!names_function(f->prog, f->unit, &ref[r]))
			continue;
		size_t k = LOWER_BOUND(0, f->t.insn.len, mid,
				       f->t.insn.data[mid].pos + f->t.insn.data[mid].in.len <=
					       ref[r].off);
		if (k == f->t.insn.len)
			continue;
		struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, k);
		if (!icf_in_exec(f->prog, ref[r].target)) {
			/* The pointer itself is added. */
			if (e.op == ELFRW_OP_ADD && e.width == 8)
				give_up(f, k);
			continue;
		}
		if (e.op != ELFRW_OP_ADDRESS && e.op != ELFRW_OP_MOV &&
		    !(ref[r].pair && (ref[r].flags & ICF_REF_LEA)))
			continue;
		ELFRW_TRY(add_source(f, k, ref[r].target, from));
	}
	return NULL;
}

/* Does instruction K, a call of the next one, put that one's address into a register? */
static bool links_own(const struct flow *f, size_t k)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	return a->in.kind == ELFRW_INSN_CALL && f->prog->arch->model->link != ELFRW_REG_NONE &&
	       a->in.target == f->prog->unit.data[f->unit].start + a->pos + a->in.len;
}

/* Does instruction K pop the return address of a call before it, which is K's own address? */
static bool pops_own(const struct flow *f, size_t k)
{
	const struct icf_insn_at *call = k ? &f->t.insn.data[k - 1] : NULL;
	uint64_t va = f->prog->unit.data[f->unit].start + f->t.insn.data[k].pos;
	return call && call->in.kind == ELFRW_INSN_CALL && call->in.target == va &&
	       icf_effect_at(f->prog, f->unit, &f->t, k).op == ELFRW_OP_POP;
}

/* Collects the instructions that compute addresses inside the own unit. */
static struct elfrw_err *find_labels(struct flow *f, uint64_t from[MAX_SOURCES])
{
	const struct icf_unit *u = &f->prog->unit.data[f->unit];
	const struct elfrw_arch *arch = f->prog->arch;
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	uint32_t r = 0;
	f->source.len = 0;
	for (size_t k = 0; k < f->t.insn.len; k++) {
		const struct elfrw_insn *in = &f->t.insn.data[k].in;
		uint32_t pos = f->t.insn.data[k].pos;
		struct icf_def d;
		while (r < u->n_ref && ref[r].off < pos)
			r++;
		if (pops_own(f, k) || links_own(f, k)) {
			uint64_t own = u->start + pos + (links_own(f, k) ? in->len : 0);
			ELFRW_TRY(add_source(f, k, own, from));
			continue;
		}
		bool low = arch->low_form && r < u->n_ref && ref[r].off == pos && ref[r].pair;
		/* One field names it, or two halves do; few instructions have either. */
		if (in->pcrel_size ? icf_is_half(arch, in) || !f->t.inner : !low)
			continue;
		struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, k);
		if ((e.op != ELFRW_OP_ADDRESS || !in->pcrel_size) && e.op != ELFRW_OP_ADD)
			continue;
		d = icf_effect(f->prog, f->unit, &f->t, k, e.dst);
		uint64_t to = icf_address_at(f->prog, f->unit, &f->t, k);
		if (d.kind != ICF_DEF_ADDRESS || to - u->start >= u->end - u->start)
			continue;
		ELFRW_TRY(add_source(f, k, to, from));
	}
	return NULL;
}

static bool is_source(const struct flow *f, size_t at)
{
	size_t k = LOWER_BOUND(0, f->source.len, mid, f->source.data[mid] < at);
	return k < f->source.len && f->source.data[k] == at;
}

/* Does instruction AT compute a sum of which it is not known that it may be none with an address?
 */
static bool is_sum(const struct flow *f, size_t at)
{
	for (size_t j = 0; j < f->sum.len; j++)
		if (f->sum.data[j].at == at && f->sum.data[j].sure)
			return true;
	return false;
}

/* Does register R hold a number at instruction AT, on each path?  *N: the number, if it is always
 * the same one, else 0. */
static bool is_number(struct flow *f, size_t at, unsigned r, int64_t *n)
{
	struct icf_defs d = icf_defs_reaching(f->prog, f->unit, &f->t, at, r, false);
	for (unsigned k = 0; k < d.n; k++) {
		if (d.def[k].kind != ICF_DEF_NUMBER)
			return false;
		struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, d.def[k].at);
		if (e.op != ELFRW_OP_MOV || !(e.flags & ELFRW_EFFECT_IMM))
			return false;
		*n = d.n == 1 ? e.imm : 0;
	}
	return d.n && !d.full;
}

/* Does the register of S hold nothing but an address of a function, or a sum with it?  A search
 * that gives up shows nothing. */
static bool is_sure(struct flow *f, const struct sum *s)
{
	/* Each search begins by clearing a few bytes for each instruction. */
	uint32_t cost = (uint32_t)(f->t.insn.len / 64);
	if (f->t.budget <= cost)
		return false;
	f->t.budget -= cost;
	struct icf_defs d = icf_defs_reaching(f->prog, f->unit, &f->t, s->at, s->reg, false);
	for (unsigned k = 0; k < d.n; k++)
		if (!is_source(f, d.def[k].at) && !is_sum(f, d.def[k].at))
			return false;
	int64_t n;
	return d.n && !d.full && (!s->only || is_number(f, s->at, s->other, &n));
}

/* S adds what a register holds.  Is that a number? */
static void resolve(struct flow *f, struct sum *s)
{
	int64_t n = 0;
	if (!s->sure || s->known || !s->whole || s->other == ELFRW_REG_NONE ||
	    !is_number(f, s->at, s->other, &n) || n == 0)
		return;
	uint64_t add = (uint64_t)n << s->shift;
	s->number = (int64_t)((uint64_t)s->number + (s->minus ? 0 - add : add));
	s->known = true;
	s->quiet = false;
}

/* Leaves of all sums those that are sure; one may depend on others.  Most units have none. */
static struct elfrw_err *judge(struct flow *f)
{
	if (f->sum.len && !f->edges)
		ELFRW_TRY(icf_trace_edges(f->prog, f->unit, &f->t));
	f->edges |= f->sum.len > 0;
	for (bool again = true; again;) {
		again = false;
		for (size_t j = 0; j < f->sum.len; j++)
			if (f->sum.data[j].sure && !is_sure(f, &f->sum.data[j])) {
				f->sum.data[j].sure = false;
				again = true;
			}
	}
	for (size_t j = 0; j < f->sum.len; j++)
		resolve(f, &f->sum.data[j]);
	return NULL;
}

/* S adds a number to the address FROM: what both name stays. */
static void pin(struct flow *f, uint64_t from, const struct sum *s)
{
	struct icf_program *prog = f->prog;
	uint64_t to = from + (uint64_t)s->number;
	uint32_t a = icf_unit_at(prog, from),
		 b = icf_in_exec(prog, to) ? icf_unit_at(prog, to) : ICF_NONE;
	if (a == ICF_NONE || (b == ICF_NONE && !f->own))
		give_up(f, s->at);
	else if (b == ICF_NONE && elfrw_image_section_at(prog->img, to))
		icf_pin_unit(prog, a);
	if (a == b || b == ICF_NONE)
		return;
	icf_pin_unit(prog, a);
	icf_pin_unit(prog, b);
}

/* Follows all sources at once; where that shows numbers, each one. */
static struct elfrw_err *follow_sources(struct flow *f, const uint64_t *from)
{
	bool numbers = false;
	if (!f->source.len)
		return NULL;
	ELFRW_TRY(run(f, f->source.data, f->source.len));
	ELFRW_TRY(judge(f));
	for (size_t k = 0; k < f->sum.len && !f->loose; k++) {
		struct sum *s = &f->sum.data[k];
		if ((f->own && !s->known) || !s->sure || s->quiet)
			continue;
		if (s->known)
			numbers = true;
		else
			give_up(f, s->at);
	}
	if (numbers && f->source.len > MAX_SOURCES && !f->own)
		give_up(f, f->source.data[0]);
	if (!numbers || f->source.len > MAX_SOURCES)
		return NULL;
	for (size_t k = 0; k < f->source.len; k++) {
		ELFRW_TRY(run(f, f->source.data + k, 1));
		ELFRW_TRY(judge(f));
		for (size_t j = 0; j < f->sum.len && !f->loose; j++)
			if (f->sum.data[j].known && f->sum.data[j].sure)
				pin(f, from[k], &f->sum.data[j]);
	}
	return NULL;
}

static struct elfrw_err *examine(struct flow *f, uint32_t i)
{
	const struct icf_unit *u = &f->prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	uint64_t from[MAX_SOURCES];
	bool any = false, clean, own = u->flags & ICF_UNIT_DATA_READ;
	for (uint32_t r = 0; r < u->n_ref && !any; r++)
		any = names_function(f->prog, i, &ref[r]);
	if (!any && !own)
		return NULL;
	f->unit = i;
	f->own = false;
	ELFRW_TRY(icf_trace_unit(f->prog, i, &f->t, &clean));
	f->edges = false;
	if (any) {
		ELFRW_TRY(find_sources(f, from));
		ELFRW_TRY(follow_sources(f, from));
	}
	f->own = true;
	ELFRW_TRY(find_labels(f, from));
	return follow_sources(f, from);
}

struct job {
	struct icf_program *prog;
	const struct icf_bits *entries;
	uint32_t per; /* units of a part */
	struct found {
		const char *loose;
		uint64_t at;
	} * part;
};

static struct elfrw_err *look_at(void *arg, size_t part)
{
	struct job *job = arg;
	struct icf_program *prog = job->prog;
	struct flow f = { .prog = prog, .entries = job->entries };
	struct elfrw_err *err = NULL;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per;
	     i < end && i < prog->unit.len && !err && !f.loose; i++)
		if (!icf_is_dark(&prog->unit.data[i]) &&
		    !prog->exec.data[prog->unit.data[i].sec].linkage)
			err = examine(&f, i);
	job->part[part] = (struct found){ f.loose, f.loose_at };
	VEC_FREE(&f.source);
	VEC_FREE(&f.sum);
	icf_trace_deinit(&f.t);
	return err;
}

static const struct found *first_loose(const struct job *job, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (job->part[i].loose)
			return &job->part[i];
	return NULL;
}

/* Marks where control comes from other units, or from a call site. */
static bool mark_entries(const struct icf_program *prog, struct icf_bits *ret)
{
	if (!icf_bits_init(ret, prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end))
		return false;
	icf_mark_pads(prog, ret);
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].kind == ICF_REF_BRANCH &&
			    ref[r].target - u->start >= u->end - u->start)
				icf_set_bit(ret, ref[r].target);
	}
	return true;
}

struct elfrw_err *icf_infer_arithmetic(struct icf_program *prog, unsigned threads)
{
	struct job job = { .prog = prog, .per = 512 };
	struct icf_bits entries = { 0 };
	size_t n = (prog->unit.len + job.per - 1) / job.per;
	job.part = calloc(n + 1, sizeof *job.part);
	if (!job.part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = elfrw_parallel(threads, n, look_at, &job);
	if (!err && first_loose(&job, n)) {
		job.entries = &entries;
		err = mark_entries(prog, &entries) ? elfrw_parallel(threads, n, look_at, &job)
						   : &elfrw_err_nomem;
	}
	const struct found *found = err ? NULL : first_loose(&job, n);
	if (found) {
		icf_infer_loose(prog, found->at, found->loose);
		/* Such a sum may lead into any function's middle, and tell copies apart. */
		for (uint32_t i = 0; i < prog->unit.len; i++)
			icf_pin_unit(prog, i);
	}
	icf_bits_deinit(&entries);
	free(job.part);
	return err;
}
