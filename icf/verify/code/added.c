/* added.c: sums with the address of a function, in straight code.
 *
 * The instructions that compute an address of a function, and then add to it, follow each other
 * without a call or a jump.  If a number is added, the sum names a known place, which must be as
 * far away as before.  If anything else is added, only a section in which nothing moved is right.
 * The same for a place in the unit itself, computed or popped behind a call of the next
 * instruction, if a number leads out of the unit: to code or to data.
 * The fold sees more than this, along branches. */
#include "elfrw/arch/judge.h"
#include "icf/verify/code/state.h"
#include <string.h>

/* The start of another function that may move is VA. */
static bool is_function(const struct icf_vcode_at *at, uint64_t va)
{
	const struct icf_vclaim *v = &at->job->v->claim;
	uint32_t i = icf_v_in_exec(v, va) ? icf_v_find(v, va) : ICF_V_NONE;
	return i != ICF_V_NONE && i != at->index && v->unit.data[i].old == va &&
	       !(v->unit.data[i].flags & ICF_V_PINNED);
}

/* NUMBER is added to the address FROM. */
static void check_number(struct icf_vcode_at *at, uint64_t pos, uint64_t from, int64_t number)
{
	const struct icf_vclaim *v = &at->job->v->claim;
	uint64_t to = from + (uint64_t)number, a, b, body;
	uint32_t i = icf_v_find(v, from), k = icf_v_in_exec(v, to) ? icf_v_find(v, to) : ICF_V_NONE;
	if (i == k || k == ICF_V_NONE)
		return;
	icf_v_pointer(v, from, &a);
	icf_v_pointer(v, to, &b);
	icf_v_code(v, to, &body);
	a += (uint64_t)number;
	if (a != b && a != body)
		icf_vcode_bad(at, ICF_VC_CODE, "sum with the address of a function", pos, b, a);
}

/* Something unknown is added to the address FROM: has any function of its section moved? */
static void check_sum(struct icf_vcode_at *at, uint64_t pos, uint64_t from)
{
	const struct icf_vclaim *v = &at->job->v->claim;
	const struct icf_vexec *e = &v->exec.data[v->unit.data[icf_v_find(v, from)].exec];
	if (e->still)
		return;
	uint64_t to;
	icf_v_pointer(v, from, &to);
	icf_vcode_bad(at, ICF_VC_CODE, "sum with the address of a function, where functions moved",
		      pos, from, to);
}

static bool is_own(const struct icf_vcode_at *at, uint64_t va)
{
	return va - at->u->old < at->size;
}

/* NUMBER leads out of the unit from the place FROM in it, in instruction X or, as a displacement,
 * in what X accesses. */
static void check_own(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos,
		      uint64_t from, int64_t number)
{
	const struct icf_vclaim *v = &at->job->v->claim;
	uint64_t to = from + (uint64_t)number, want = to, body = to;
	struct elfrw_judgement j;
	struct elfrw_insn in;
	if (is_own(at, to) || at->alias || !elfrw_image_section_at(&v->in, to) ||
	    !v->arch->decode(at->b + pos, at->size - pos, x->va + at->moved, &in))
		return;
	/* A relocation may have told what the number is. */
	v->arch->judge->look(&in, at->b + pos, &j);
	uint64_t is = from + at->moved + (uint64_t)(j.kind == ELFRW_JUDGE_ADD ? j.number : j.disp);
	if (icf_v_in_exec(v, to)) {
		icf_v_pointer(v, to, &want);
		icf_v_code(v, to, &body);
	}
	if (is != want && is != body)
		icf_vcode_bad(at, ICF_VC_CODE, "sum with a place in the function", pos, want, is);
}

/* The register that X pops, which holds X's own address: the call before it led here. */
static void note_popped(struct icf_vcode_at *at, const struct icf_vcode_insn *x)
{
	const struct elfrw_judge *judge = at->job->v->claim.arch->judge;
	struct elfrw_judgement j;
	judge->look(&x->in, x->code, &j);
	for (unsigned k = 0; k < judge->regs && (j.lost >> judge->sp & 1); k++)
		if (j.kind == ELFRW_JUDGE_SET && (j.lost >> k & 1) && k != judge->sp) {
			at->address[k] = x->va;
			at->has_address = true;
		}
}

static void forget_all(struct icf_vcode_at *at)
{
	if (at->has_address)
		memset(at->address, 0, sizeof at->address);
	at->has_address = false;
}

/* Is X a branch, behind which registers are unknown, or the first instruction behind a call of it?
 * Then nothing else is to be done. */
static bool is_flow(struct icf_vcode_at *at, const struct icf_vcode_insn *x)
{
	const struct elfrw_insn *in = &x->in;
	bool here = at->here == x->va && at->job->v->claim.arch->judge->returns_from_memory;
	at->here = in->kind == ELFRW_INSN_CALL && in->target == x->va + in->len ? in->target : 0;
	if (in->kind == ELFRW_INSN_OTHER && !here)
		return false;
	if (in->kind == ELFRW_INSN_OTHER)
		note_popped(at, x);
	else if (in->kind != ELFRW_INSN_NOP && in->kind != ELFRW_INSN_JCC)
		forget_all(at);
	return true;
}

void icf_vcode_added(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_insn *in = &x->in;
	const struct elfrw_judge *judge = at->job->v->claim.arch->judge;
	struct elfrw_judgement j;
	uint64_t *r = at->address, base = 0, index = 0;
	if (is_flow(at, x))
		return;
	if (in->pcrel_size && !at->sum)
		at->sum = icf_vcode_loaded(at, pos, in->target);
	/* While no register has an address, only an instruction that computes one matters. */
	if (!at->has_address && !in->pcrel_size && !at->sum)
		return;
	judge->look(in, x->code, &j);
	if ((in->flags & ELFRW_INSN_MEM) && in->base != ELFRW_REG_NONE)
		base = r[in->base];
	if ((in->flags & ELFRW_INSN_MEM) && in->index != ELFRW_REG_NONE)
		index = r[in->index];
	if (base && is_own(at, base)) {
		check_own(at, x, pos, base, j.disp);
		base = 0;
	}
	index = is_own(at, index) ? 0 : index;
	uint64_t to = 0, was = j.to < sizeof at->address / sizeof *r ? r[j.to] : 0;
	switch (j.kind) {
	case ELFRW_JUDGE_UNKNOWN: forget_all(at); return;
	case ELFRW_JUDGE_COPY: to = r[j.from]; break;
	case ELFRW_JUDGE_ADDRESS:
		if (in->pcrel_size)
			to = is_function(at, in->target) || is_own(at, in->target) ? in->target : 0;
		else if (in->index == ELFRW_REG_NONE && base)
			check_number(at, pos, base, j.disp);
		else if (base || (index && in->scale == 1))
			check_sum(at, pos, base ? base : index);
		break;
	case ELFRW_JUDGE_ADD:
		if (was && is_own(at, was))
			check_own(at, x, pos, was, j.number);
		else if (was)
			check_number(at, pos, was, j.number);
		break;
	case ELFRW_JUDGE_SUM:
		base = is_own(at, was) ? 0 : was;
		index = is_own(at, r[j.from]) ? 0 : r[j.from];
		if (base || index)
			check_sum(at, pos, base ? base : index);
		break;
	}
	for (unsigned k = 0; k < judge->regs; k++)
		if (j.lost >> k & 1)
			r[k] = 0;
	if (j.kind >= ELFRW_JUDGE_COPY && j.kind != ELFRW_JUDGE_STORE && j.kind != ELFRW_JUDGE_PUSH)
		r[j.to] = to;
	/* Two halves: the sum is the address. */
	if (at->sum && is_function(at, at->sum) && in->reg < judge->regs)
		r[in->reg] = to = at->sum;
	at->has_address |= to != 0;
}
