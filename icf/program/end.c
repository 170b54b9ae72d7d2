/* end.c: see end.h. */
#include "icf/program/end.h"
#include "elfrw/arch/effect.h"

struct reader {
	const struct elfrw_arch *arch;
	const uint8_t *code;
	uint64_t pos, size, va;
	struct elfrw_insn in;
	struct elfrw_effect e;
};

static bool next(struct reader *r)
{
	const uint8_t *p = r->code + r->pos;
	unsigned len =
		r->pos < r->size ? r->arch->decode(p, r->size - r->pos, r->va + r->pos, &r->in) : 0;
	if (len)
		r->arch->model->effect(&r->in, p, &r->e);
	r->pos += len;
	return len != 0;
}

bool icf_names_own_end(const struct icf_program *prog, uint32_t i, const struct icf_ref *ref)
{
	const struct icf_unit *u = &prog->unit.data[i];
	/* Only there do entries count from a label.  The field begins with the instruction. */
	if (ref->target != u->end || !prog->arch->low_form || ref->kind != ICF_REF_PCREL ||
	    !(ref->flags & ICF_REF_LEA) || (ref->flags & ICF_REF_HALF))
		return false;
	struct reader r = { .arch = prog->arch,
			    .code = icf_unit_bytes(prog, u),
			    .pos = ref->off,
			    .size = u->end - u->start,
			    .va = u->start };
	if (!next(&r))
		return false;
	uint8_t label = r.e.dst;
	for (unsigned n = 0; n < 2 && next(&r); n++) {
		if (r.e.shift && r.e.a == label && r.e.b != label) {
			uint8_t sum = r.e.dst;
			return next(&r) && r.in.kind == ELFRW_INSN_JMP_IND &&
			       !(r.in.flags & ELFRW_INSN_MEM) && r.e.a == sum && r.pos == r.size;
		}
		if (label >= ELFRW_MAX_REGS || ((r.e.reads | r.e.writes) & elfrw_reg_bit(label)))
			return false;
	}
	return false;
}
