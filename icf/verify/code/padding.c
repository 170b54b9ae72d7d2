/* padding.c: padding that control runs through. */
#include "icf/verify/code/state.h"

bool icf_vcode_runs_on(const struct icf_vclaim *c, uint32_t k)
{
	const struct icf_vunit *u = &c->unit.data[k], *next = u + 1;
	const struct icf_vexec *e = &c->exec.data[u->exec];
	struct elfrw_insn in;
	if (k + 1 >= e->unit + e->n_units || !e->old_data)
		return false;
	if (next->old == u->end)
		return true;
	if (!c->arch->decode(e->old_data + (u->end - e->old), e->old_end - u->end, u->end, &in))
		return false;
	return in.kind == ELFRW_INSN_NOP ||
	       (in.kind == ELFRW_INSN_JMP && in.target > u->end && in.target <= next->old);
}
