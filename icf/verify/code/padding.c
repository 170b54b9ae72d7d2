/* padding.c: padding that something leads into.
 *
 * Assembler may branch into the no-ops in front of a function: control then runs through them into
 * the function.  The fold makes such padding a part of the unit behind it.  But if it does not
 * understand the code that branches, the padding stays, and so do the units around it.  So each
 * byte of it from the target on must be the same, and where it was; and so must be the entry of the
 * unit behind it.  Data that looks like a branch is treated alike: nobody can tell.
 *
 * One pass over the padding, from the end of each run back to the first byte that changed. */
#include "icf/verify/code/state.h"

/* The first address from FROM on from which all bytes up to TO are the same in both files. */
static uint64_t same_from(const struct icf_vclaim *c, const struct icf_vexec *e, uint64_t from,
			  uint64_t to)
{
	const struct icf_vexec *o = from < to ? icf_v_out_exec(c, to - 1) : NULL;
	if (!e->old_data || !o || !o->new_data)
		return to;
	uint64_t lo = from > o->new ? from : o->new;
	while (to > lo && e->old_data[to - 1 - e->old] == o->new_data[to - 1 - o->new])
		to--;
	return to;
}

void icf_vcode_find_padding(struct icf_vclaim *c)
{
	for (size_t k = 0; k < c->exec.len; k++) {
		struct icf_vexec *e = &c->exec.data[k];
		uint64_t pos = e->old;
		for (uint32_t i = e->unit; i < e->unit + e->n_units; i++) {
			struct icf_vunit *u = &c->unit.data[i];
			u->padded = same_from(c, e, pos, u->old);
			if (u->old < u->end)
				pos = u->end;
		}
		e->padded = same_from(c, e, pos, e->old_end);
	}
}

bool icf_vcode_padding_stays(const struct icf_vclaim *c, uint64_t va, bool branch)
{
	const struct icf_vexec *e = icf_v_exec_of(c, elfrw_image_section_at(&c->in, va));
	uint32_t front = icf_v_find_end(c, va), behind = icf_v_find_after(c, va);
	if (!e || (!branch && front != ICF_V_NONE &&
		   c->unit.data[front].entry != c->unit.data[front].old))
		return false;
	uint32_t end = e->unit + e->n_units;
	while (behind < end && c->unit.data[behind].old == c->unit.data[behind].end)
		behind++;
	if (va < (behind < end ? c->unit.data[behind].padded : e->padded))
		return false;
	/* Behind the section, control is in the next one at once, or nowhere. */
	if (behind >= end)
		behind = icf_v_find(c, e->old_end);
	return behind == ICF_V_NONE || c->unit.data[behind].entry == c->unit.data[behind].old;
}

static bool place_stays(const struct icf_vclaim *c, uint64_t va)
{
	return !icf_v_in_exec(c, va) || icf_v_find(c, va) != ICF_V_NONE ||
	       icf_vcode_padding_stays(c, va, false);
}

bool icf_vcode_range_stays(const struct icf_vclaim *c, uint64_t from, uint64_t to)
{
	if (!place_stays(c, from))
		return false;
	for (uint32_t i = icf_v_find_after(c, from); i < c->unit.len && c->unit.data[i].old < to;
	     i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		if (u->body != u->old || u->entry != u->old ||
		    (u->end < to && !place_stays(c, u->end)))
			return false;
	}
	return true;
}

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
