/* entered.c: for inferred references: is every place that something enters the start of an
 * instruction, as the unit's code was decoded?
 *
 * Zeros or data before an undelimited function may swallow its first bytes.  The bytes behind are
 * then decoded wrongly, mostly without another trace, and a call in them is missed.  A reference
 * into the middle of an instruction shows this.  So do zeros behind a jump or a return that nothing
 * leads to, if no FDE divides the functions.  The unit is then not understood.  Cost: a look-up for
 * each reference, and one more pass over units that are entered elsewhere than at the start, and
 * over units without an FDE. */
#include "elfrw/base/vec.h"
#include "icf/infer/parts.h"
#include "icf/refs/ref.h"
#include <stdlib.h>

struct entry {
	uint64_t va;
	uint32_t unit;
};

struct entries {
	VEC(struct entry) v;
};

static int entry_order(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return x->va < y->va ? -1 : x->va > y->va;
}

static struct elfrw_err *add(const struct icf_program *prog, struct entries *e, uint64_t va)
{
	uint32_t u = icf_unit_at(prog, va);
	if (u == ICF_NONE || prog->unit.data[u].start == va ||
	    prog->unit.data[u].kind == ICF_UNIT_OPAQUE ||
	    (e->v.len && e->v.data[e->v.len - 1].va == va))
		return NULL;
	struct entry *slot = VEC_PUSH(&e->v);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct entry){ va, u };
	return NULL;
}

static struct elfrw_err *collect(const struct icf_program *prog, struct entries *e)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (!(ref[r].flags & ICF_REF_HALF))
				ELFRW_TRY(add(prog, e, ref[r].target));
	}
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].kind == ICF_DATA_ADDRESS)
			ELFRW_TRY(add(prog, e, prog->dataref.data[i].target));
	return add(prog, e, prog->img->ehdr.e_entry);
}

static bool stops(const struct elfrw_insn *in)
{
	return in->kind == ELFRW_INSN_JMP || in->kind == ELFRW_INSN_RET ||
	       in->kind == ELFRW_INSN_JMP_IND || in->kind == ELFRW_INSN_TRAP;
}

/* Is there an instruction in unit I that begins with a zero byte, that control does not reach, and
 * that nothing refers to? */
static struct elfrw_err *has_zeros(const struct icf_program *prog, uint32_t i,
				   const struct entries *e, struct icf_trace *t, bool *ret)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	bool clean, dead = false;
	*ret = false;
	ELFRW_TRY(icf_trace_unit(prog, i, t, &clean));
	for (size_t k = 0; k < t->insn.len && !*ret; k++) {
		const struct icf_insn_at *at = &t->insn.data[k];
		const struct entry key = { u->start + at->pos, i };
		if (dead && code[at->pos] == 0 && !icf_trace_bit(t->target.data, at->pos))
			*ret = !e->v.len ||
			       !bsearch(&key, e->v.data, e->v.len, sizeof key, entry_order);
		if (at->in.kind != ELFRW_INSN_NOP)
			dead = stops(&at->in);
	}
	return NULL;
}

struct elfrw_err *icf_check_entered(struct icf_program *prog)
{
	struct entries e = { 0 };
	struct elfrw_err *err = collect(prog, &e);
	if (!err && e.v.len)
		qsort(e.v.data, e.v.len, sizeof *e.v.data, entry_order);
	uint32_t unit = ICF_NONE;
	uint64_t pos = 0;
	for (size_t i = 0; i < e.v.len && !err; i++) {
		struct icf_unit *u = &prog->unit.data[e.v.data[i].unit];
		if (u->kind == ICF_UNIT_OPAQUE)
			continue;
		if (unit != e.v.data[i].unit)
			pos = 0;
		unit = e.v.data[i].unit;
		const uint8_t *code = icf_unit_bytes(prog, u);
		uint64_t size = u->end - u->start, to = e.v.data[i].va - u->start;
		while (pos < to) {
			struct elfrw_insn in;
			unsigned len =
				prog->arch->decode(code + pos, size - pos, u->start + pos, &in);
			if (!len)
				break;
			pos += len;
		}
		if (pos != to)
			icf_make_opaque(u);
	}
	struct icf_trace t = { 0 };
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		bool zeros;
		if (u->kind == ICF_UNIT_OPAQUE || u->n_fde || prog->exec.data[u->sec].linkage)
			continue;
		err = has_zeros(prog, i, &e, &t, &zeros);
		if (!err && zeros)
			icf_make_opaque(u);
	}
	icf_trace_deinit(&t);
	VEC_FREE(&e.v);
	return err;
}
