/* effect.c: what one instruction does to one register, on the way to an indirect jump.  The
 * architecture says what the instruction computes (elfrw/arch/effect.h).  This file says what that
 * means for an address that may have been computed from a distance. */
#include "elfrw/base/search.h"
#include "icf/infer/effect.h"

struct elfrw_effect icf_effect_at(const struct icf_program *prog, uint32_t unit,
				  const struct icf_trace *t, size_t at)
{
	struct elfrw_effect e;
	prog->arch->model->effect(&t->insn.data[at].in, icf_code_of(prog, unit, t, at), &e);
	return e;
}

const struct icf_ref *icf_find_low(const struct icf_program *prog, uint32_t unit,
				   const struct icf_trace *t, size_t at)
{
	const struct icf_unit *u = &prog->unit.data[unit];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	uint32_t pos = t->insn.data[at].pos;
	size_t i = LOWER_BOUND(0, u->n_ref, mid, ref[mid].off < pos);
	return i < u->n_ref && ref[i].off == pos && ref[i].pair ? &ref[i] : NULL;
}

/* The low half by which instruction AT computes an address, or NULL. */
static const struct icf_ref *low_at(const struct icf_program *prog, uint32_t unit,
				    const struct icf_trace *t, size_t at)
{
	const struct icf_ref *low = icf_low_at(prog, unit, t, at);
	return low && (low->flags & ICF_REF_LEA) ? low : NULL;
}

bool icf_names_place(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
		     size_t at, uint64_t *to, bool *computes)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	const struct icf_ref *low = in->pcrel_size ? NULL : icf_low_at(prog, unit, t, at);
	bool branch = in->kind == ELFRW_INSN_CALL || in->kind == ELFRW_INSN_JMP ||
		      in->kind == ELFRW_INSN_JCC;
	*to = low ? low->target : in->target;
	*computes = low ? low->flags & ICF_REF_LEA : in->flags & ELFRW_INSN_LEA;
	return low || (in->pcrel_size && !branch && !icf_is_half(prog->arch, in));
}

uint64_t icf_address_at(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			size_t at)
{
	const struct icf_ref *low = low_at(prog, unit, t, at);
	return low ? low->target : t->insn.data[at].in.target;
}

bool icf_loads_entry(const struct icf_program *prog, const struct elfrw_effect *e)
{
	const struct elfrw_model *m = prog->arch->model;
	bool sign = e->op == ELFRW_OP_SIGN_EXTEND, whole = e->op == ELFRW_OP_LOAD && e->width == 4;
	if (!(e->flags & ELFRW_EFFECT_LOADS) || (!sign && !whole && e->op != ELFRW_OP_ZERO_EXTEND))
		return false;
	for (unsigned i = 0; i < m->n_tables; i++) {
		const struct elfrw_table_shape *t = &m->table[i];
		/* The sum may extend and shift an entry of 4 bytes. */
		if (whole ? t->size == 4 && t->shift : t->size == e->from && t->sign == sign)
			return true;
	}
	return false;
}

/* A call leaves its result in one register, and numbers in the registers that it need not
 * preserve. */
static enum icf_def_kind of_call(const struct elfrw_effect *e, unsigned r)
{
	return r == e->dst ? ICF_DEF_RESULT : ICF_DEF_NUMBER;
}

/* Whole addresses are 8-byte sums; a random number is not an address. */
static enum icf_def_kind of_sum(const struct elfrw_effect *e)
{
	return e->width == 8 && !(e->flags & ELFRW_EFFECT_GUARD) ? ICF_DEF_OTHER : ICF_DEF_NUMBER;
}

/* A register that trades places with memory, whatever memory gets, has what memory had; also where
 * a comparison decides, since then both are equal. */
static enum icf_def_kind of_exchange(const struct elfrw_effect *e)
{
	return e->width == 8 && (e->flags & ELFRW_EFFECT_LOADS) ? ICF_DEF_LOAD : of_sum(e);
}

static void of_add(const struct elfrw_effect *e, struct icf_def *d)
{
	d->kind = of_sum(e);
	d->part = e->op == ELFRW_OP_ADD_PART ? e->from : 0;
	d->sign = e->flags & ELFRW_EFFECT_SIGN;
	if (e->width != 8 || (e->flags & ELFRW_EFFECT_IMM))
		return;
	if (e->flags & ELFRW_EFFECT_LOADS) {
		d->kind = ICF_DEF_ADD_MEM;
		return;
	}
	d->kind = ICF_DEF_ADD;
	d->a = e->a;
	d->b = e->b;
	d->shift = e->shift;
}

static void of_address(const struct elfrw_insn *in, const struct elfrw_effect *e, struct icf_def *d)
{
	d->kind = in->pcrel_size ? ICF_DEF_ADDRESS : of_sum(e);
	if (!in->pcrel_size && e->width == 8 && in->base != ELFRW_REG_NONE &&
	    in->index != ELFRW_REG_NONE && in->scale == 1 && e->disp == 0) {
		d->kind = ICF_DEF_ADD;
		d->a = in->base;
		d->b = in->index;
	}
}

/* These bytes from memory may be a distance.  A single word at a fixed place is not part of a
 * table. */
static enum icf_def_kind of_load(const struct elfrw_insn *in, const struct elfrw_effect *e)
{
	if (e->op == ELFRW_OP_LOAD && e->width == 8)
		return ICF_DEF_LOAD;
	return in->index != ELFRW_REG_NONE || in->base != ELFRW_REG_NONE ? ICF_DEF_DIST
									 : ICF_DEF_NUMBER;
}

/* The load IN extends an entry of a table. */
static void of_entry(const struct elfrw_insn *in, const struct elfrw_effect *e, struct icf_def *d)
{
	d->kind = of_load(in, e);
	d->size = e->from;
	d->sign = e->op == ELFRW_OP_SIGN_EXTEND;
}

/* An index that is extended in place still counts as the compared one. */
static void of_extension(const struct elfrw_effect *e, struct icf_def *d)
{
	if (e->flags & ELFRW_EFFECT_LOADS)
		d->kind = ICF_DEF_NUMBER;
	else if (e->from == 4 || (e->from == 2 && e->a == e->dst)) {
		d->kind = ICF_DEF_COPY;
		d->a = e->a;
	}
}

/* A load or store that does more than that: what it does to register R.  Not only the results of a
 * load are written; the base of the operand gets a sum. */
static void of_more(const struct elfrw_insn *in, const struct elfrw_effect *e, unsigned r,
		    struct icf_def *d)
{
	if (e->op != ELFRW_OP_LOAD_MORE || (r != e->dst && r != e->b)) {
		d->kind = ICF_DEF_OTHER;
		return;
	}
	d->kind = e->from == 8 ? ICF_DEF_LOAD : of_load(in, e);
	d->size = e->from;
	d->sign = true;
}

/* D: what E, of instruction IN, does to its result. */
static void of_result(const struct icf_program *prog, const struct elfrw_insn *in,
		      const struct elfrw_effect *e, struct icf_def *d)
{
	switch (e->op) {
	case ELFRW_OP_MOV:
		if (!(e->flags & ELFRW_EFFECT_IMM) && e->width >= 4) {
			d->kind = ICF_DEF_COPY;
			d->a = e->a;
		}
		break;
	case ELFRW_OP_LOAD:
		/* Another instruction may extend it. */
		if (e->width >= 4)
			d->kind = of_load(in, e);
		d->size = 4;
		d->sign = true;
		break;
	case ELFRW_OP_POP: d->kind = ICF_DEF_LOAD; break;
	case ELFRW_OP_SIGN_EXTEND:
		of_extension(e, d);
		if (icf_loads_entry(prog, e))
			of_entry(in, e, d);
		break;
	case ELFRW_OP_ZERO_EXTEND:
		d->kind = ICF_DEF_SMALL;
		d->max = e->from == 1 ? 0xff : 0xffff;
		d->a = e->a;
		if (icf_loads_entry(prog, e))
			of_entry(in, e, d);
		break;
	case ELFRW_OP_ADDRESS: of_address(in, e, d); break;
	case ELFRW_OP_ADD:
	case ELFRW_OP_ADD_PART: of_add(e, d); break;
	case ELFRW_OP_SUB:
	case ELFRW_OP_SUM: d->kind = of_sum(e); break;
	case ELFRW_OP_OR:
	case ELFRW_OP_XOR:
		if (e->flags & ELFRW_EFFECT_IMM)
			d->kind = of_sum(e);
		break;
	case ELFRW_OP_AND:
		if (e->flags & ELFRW_EFFECT_IMM) {
			d->kind = ICF_DEF_SMALL;
			d->max = (uint64_t)e->imm >> 16 ? UINT64_MAX : (uint64_t)e->imm;
		}
		break;
	case ELFRW_OP_CHOOSE:
		if (e->width == 8) {
			d->kind = ICF_DEF_CHOICE;
			d->a = e->a;
			d->b = e->b;
		}
		break;
	}
}

struct icf_def icf_effect(const struct icf_program *prog, uint32_t unit, const struct icf_trace *t,
			  size_t at, unsigned r)
{
	const struct elfrw_insn *in = &t->insn.data[at].in;
	struct elfrw_effect e = icf_effect_at(prog, unit, t, at);
	struct icf_def d = {
		.at = at, .a = ELFRW_REG_NONE, .b = ELFRW_REG_NONE, .max = UINT64_MAX
	};
	if (!(e.writes & elfrw_reg_bit(r)))
		return d;
	d.kind = ICF_DEF_NUMBER;
	if (e.op == ELFRW_OP_CALL)
		d.kind = of_call(&e, r);
	else if (e.op == ELFRW_OP_XCHG)
		d.kind = of_exchange(&e);
	else if (e.op == ELFRW_OP_LOAD_MORE || e.op == ELFRW_OP_STORE_MORE ||
		 e.op == ELFRW_OP_VECTOR) {
		of_more(in, &e, r, &d);
		return d;
	}
	if (e.dst != r)
		return d;
	of_result(prog, in, &e, &d);
	if (low_at(prog, unit, t, at))
		d.kind = ICF_DEF_ADDRESS;
	return d;
}
