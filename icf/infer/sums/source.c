/* source.c: the instructions that compute addresses of functions, and of places in the own unit;
 * arith.c. */
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"
#include "icf/infer/sums/state.h"
#include "icf/program/end.h"
#include "icf/program/unit.h"

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

#define MAX_PADDING 64 /* between functions */

/* Is VA in the padding behind unit U? */
static bool is_behind(const struct icf_program *prog, const struct icf_unit *u, uint64_t va)
{
	return va - u->end < MAX_PADDING && icf_in_exec(prog, va) &&
	       icf_unit_at(prog, va) == ICF_NONE;
}

/* The code that REF leads to: by its address, or by a pointer to it in memory. */
static bool code_named(const struct icf_program *prog, const struct icf_ref *ref, uint64_t *va)
{
	*va = ref->target;
	if (icf_in_exec(prog, *va))
		return true;
	const struct icf_dataref *d = ref->flags & ICF_REF_LEA ? NULL : icf_dataref_at(prog, *va);
	if (!d || d->kind != ICF_DATA_ADDRESS)
		return false;
	*va = d->target;
	return true;
}

bool icf_flow_names_function(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	uint64_t va;
	/* Of an address in two halves, the second adds to the first what belongs to it (pair.c).
	 * GCC for AArch64 lets switches count from the label behind their jump. */
	if (ref->kind == ICF_REF_BRANCH || elfrw_form_is_high(&prog->arch->form[ref->form]) ||
	    (prog->arch->low_form && icf_names_own_end(prog, i, ref)))
		return false;
	if (!code_named(prog, ref, &va))
		return false;
	/* The end of a function may be in the padding behind it. */
	return function_at(prog, i, va) != ICF_NONE || is_behind(prog, &prog->unit.data[i], va);
}

bool icf_flow_names_dark(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	uint64_t va;
	if (ref->kind == ICF_REF_BRANCH || !code_named(prog, ref, &va))
		return false;
	uint32_t k = icf_unit_at(prog, va);
	return k != ICF_NONE && k != i && icf_is_dark(&prog->unit.data[k]);
}

static struct elfrw_err *add_source(struct icf_flow *f, size_t k, uint64_t target,
				    uint64_t from[ICF_MAX_SOURCES])
{
	if (f->source.len < ICF_MAX_SOURCES)
		from[f->source.len] = target;
	uint32_t *slot = VEC_PUSH(&f->source);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (uint32_t)k;
	return NULL;
}

/* The address of a function that instruction K loads from the unit's literals: *RET. */
static bool loads_function(const struct icf_flow *f, size_t k, uint64_t *ret)
{
	const struct icf_program *prog = f->prog;
	const struct icf_unit *u = &prog->unit.data[f->unit];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	const struct icf_insn_at *at = &f->t.insn.data[k];
	uint64_t va = at->in.target;
	size_t n = u->n_ref, r = LOWER_BOUND(0, n, mid, ref[mid].off < at->pos);
	/* The other half of a literal's address has the same reference. */
	if (!(icf_effect_at(prog, f->unit, &f->t, k).flags & ELFRW_EFFECT_LOADS))
		return false;
	if (r < n && ref[r].off == at->pos && (ref[r].flags & ICF_REF_OWN))
		va = ref[r].target;
	else if (!at->in.pcrel_size || icf_is_half(prog->arch, &at->in))
		return false;
	if (va - u->start >= u->end - u->start || icf_data_end(prog, va) == va)
		return false;
	r = LOWER_BOUND(0, n, mid, ref[mid].off < va - u->start);
	if (r == n || ref[r].off != va - u->start ||
	    !icf_flow_names_function(prog, f->unit, &ref[r]) || !icf_in_exec(prog, ref[r].target))
		return false;
	*ret = ref[r].target;
	return true;
}

/* The same as icf_flow_sources(), for a unit with literals. */
static struct elfrw_err *find_loads(struct icf_flow *f, uint64_t from[ICF_MAX_SOURCES])
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
			if (found || literal ||
			    !icf_flow_names_function(f->prog, f->unit, &ref[r]) ||
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

struct elfrw_err *icf_flow_sources(struct icf_flow *f, uint64_t from[ICF_MAX_SOURCES])
{
	const struct icf_unit *u = &f->prog->unit.data[f->unit];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	f->source.len = 0;
	if (u->flags & ICF_UNIT_POOL)
		return f->dark ? NULL : find_loads(f, from);
	for (uint32_t r = 0; r < u->n_ref; r++) {
		if (f->dark ? !icf_flow_names_dark(f->prog, f->unit, &ref[r])
			    : !icf_flow_names_function(f->prog, f->unit, &ref[r]))
			continue;
		size_t k = LOWER_BOUND(0, f->t.insn.len, mid,
				       f->t.insn.data[mid].pos + f->t.insn.data[mid].in.len <=
					       ref[r].off);
		if (k == f->t.insn.len)
			continue;
		struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, k);
		if (!icf_in_exec(f->prog, ref[r].target)) {
			/* The pointer itself is added. */
			if (e.op == ELFRW_OP_ADD && e.width == 8 && f->dark)
				icf_set_unit_flag(f->prog, f->unit, ICF_UNIT_RELATIVE);
			else if (e.op == ELFRW_OP_ADD && e.width == 8)
				icf_flow_give_up(f, k);
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
static bool links_own(const struct icf_flow *f, size_t k)
{
	const struct icf_insn_at *a = &f->t.insn.data[k];
	return a->in.kind == ELFRW_INSN_CALL && f->prog->arch->model->link != ELFRW_REG_NONE &&
	       a->in.target == f->prog->unit.data[f->unit].start + a->pos + a->in.len;
}

/* Does instruction K pop the return address of a call before it, which is K's own address? */
static bool pops_own(const struct icf_flow *f, size_t k)
{
	const struct icf_insn_at *call = k ? &f->t.insn.data[k - 1] : NULL;
	uint64_t va = f->prog->unit.data[f->unit].start + f->t.insn.data[k].pos;
	return call && call->in.kind == ELFRW_INSN_CALL && call->in.target == va &&
	       icf_effect_at(f->prog, f->unit, &f->t, k).op == ELFRW_OP_POP;
}

bool icf_flow_names_itself(const struct icf_unit *u, const struct icf_ref *ref)
{
	return ref->kind == ICF_REF_ABS && (ref->flags & ICF_REF_LEA) &&
	       ref->target - u->start < u->end - u->start;
}

/* Does instruction K hold the address of a place in its own unit as a number?  References before R
 * are those of instructions before it. */
static bool holds_own(const struct icf_flow *f, size_t k, uint32_t r, uint64_t *ret)
{
	const struct icf_unit *u = &f->prog->unit.data[f->unit];
	const struct icf_ref *ref = icf_unit_refs(f->prog, u);
	const struct icf_insn_at *a = &f->t.insn.data[k];
	while (r < u->n_ref && ref[r].off < a->pos + a->in.len &&
	       !icf_flow_names_itself(u, &ref[r]))
		r++;
	if (r == u->n_ref || ref[r].off >= a->pos + a->in.len)
		return false;
	struct elfrw_effect e = icf_effect_at(f->prog, f->unit, &f->t, k);
	*ret = ref[r].target;
	return e.op == ELFRW_OP_MOV || e.op == ELFRW_OP_ADDRESS;
}

struct elfrw_err *icf_flow_labels(struct icf_flow *f, uint64_t from[ICF_MAX_SOURCES])
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
			ELFRW_TRY(add_source(f, k, u->start + pos + (links_own(f, k) ? in->len : 0),
					     from));
			continue;
		}
		uint64_t own;
		if (holds_own(f, k, r, &own)) {
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
