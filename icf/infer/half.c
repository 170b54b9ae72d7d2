/* half.c: what halves of addresses could name, where pair.c does not know both halves.
 *
 * Instructions are read in the order in which they stand, whatever control does: a low half is
 * added to the last high half that was put into its register.  Compilers put both into one
 * function.  The places that are found so are only pinned, or end other objects, so a wrong one
 * costs a little folding and nothing else.  Cost: one more pass over units with such halves. */
#include "elfrw/arch/effect.h"
#include "icf/infer/parts.h"

bool icf_half_names(const struct elfrw_arch *arch, struct icf_halves *h,
		    const struct elfrw_insn *in, const uint8_t *code, uint64_t *ret)
{
	if (!arch->low_form)
		return false;
	if (in->pcrel_size && icf_is_half(arch, in)) {
		struct elfrw_effect e;
		arch->model->effect(in, code, &e);
		if (e.dst < ELFRW_MAX_REGS) {
			h->page[e.dst] = in->target;
			h->form[e.dst] = arch->pcrel_form(in);
		}
		return false;
	}
	uint8_t low = in->base < ELFRW_MAX_REGS && h->form[in->base] ? arch->low_form(in, code) : 0;
	if (low)
		*ret = elfrw_form_read(&arch->form[low], code, h->page[in->base]);
	return low != 0;
}

bool icf_has_halves(const struct icf_program *prog, const struct icf_unit *u)
{
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	for (uint32_t r = 0; r < u->n_ref; r++)
		if (ref[r].flags & ICF_REF_HALF)
			return true;
	return false;
}

bool icf_push_half_names(const struct icf_program *prog, const struct icf_unit *u,
			 struct icf_places *all, struct icf_places *computed)
{
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, to;
	struct icf_halves h = { 0 };
	struct elfrw_insn in;
	unsigned len;
	if (!icf_has_halves(prog, u))
		return true;
	for (uint64_t pos = 0; pos < size; pos += len) {
		len = prog->arch->decode(code + pos, size - pos, u->start + pos, &in);
		if (!len)
			return true;
		if (!icf_half_names(prog->arch, &h, &in, code + pos, &to))
			continue;
		uint64_t *one = VEC_PUSH(&all->v);
		if (one)
			*one = to;
		uint64_t *two =
			computed && !(in.flags & ELFRW_INSN_MEM) ? VEC_PUSH(&computed->v) : NULL;
		if (two)
			*two = to;
		if (!one || (computed && !two && !(in.flags & ELFRW_INSN_MEM)))
			return false;
	}
	return true;
}
