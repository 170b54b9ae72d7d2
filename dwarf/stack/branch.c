/* branch.c: see branch.h.  The look-ups are those of stacks (state.h), for one branch. */
#include "dwarf/stack/branch.h"
#include "dwarf/stack/state.h"
#include "elfrw/arch/arch.h"
#include <string.h>

struct dwr_branch_place dwr_branch_place(const struct dwr_callchain *cc, uint64_t va)
{
	struct dwr_branch_place p = { .unit = DWR_BRANCH_NONE, .group = DWR_BRANCH_NONE };
	const struct dwr_code_span *s = dwr_code_at(&cc->code, va);
	struct elfrw_insn in;
	if (!s)
		return p;
	p.unit = s->unit;
	p.group = s->thunk ? DWR_BRANCH_NONE : dwr_chain_group(cc, s->unit);
	p.thunk = s->thunk;
	p.start = s->start == va;
	const uint8_t *code = elfrw_image_at(cc->img, va, s->end - va);
	if (code && cc->img->arch->decode(code, s->end - va, va, &in)) {
		p.kind = in.kind;
		p.next = va + in.len;
	}
	return p;
}

/* Leaves in cc->set those of R that are in GROUP. */
static struct elfrw_err *keep(struct dwr_callchain *cc, const unit_set *r, uint32_t group,
			      const uint32_t **ret, size_t *n)
{
	cc->set.len = 0;
	for (size_t i = 0; i < r->len; i++)
		if (dwr_chain_group(cc, r->data[i]) == group)
			ELFRW_TRY(dwr_chain_put(&cc->set, r->data[i]));
	*ret = cc->set.data;
	*n = cc->set.len;
	return NULL;
}

struct elfrw_err *dwr_branch_pointed(struct dwr_callchain *cc, uint32_t group, const uint32_t **ret,
				     size_t *n)
{
	const struct dwr_icfold *note = cc->note;
	const struct dwr_icfold_group *g = &note->group[group];
	cc->set.len = 0;
	for (uint32_t i = g->member; i < g->member + g->n_members; i++) {
		uint32_t u = note->member[i].unit;
		uint32_t *slot = note->map.unit[u].thunk_size ? NULL : VEC_PUSH(&cc->set);
		if (slot)
			*slot = u;
		else if (!note->map.unit[u].thunk_size)
			return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < note->n_vslots; i++)
		if (note->map.unit[note->vslot[i].unit].thunk_size &&
		    dwr_chain_group(cc, note->vslot[i].unit) == group)
			ELFRW_TRY(dwr_chain_put(&cc->set, note->vslot[i].unit));
	*ret = cc->set.data;
	*n = cc->set.len;
	return NULL;
}

struct elfrw_err *dwr_branch_entered(struct dwr_callchain *cc, uint32_t from, uint64_t site,
				     uint32_t group, const uint32_t **ret, size_t *n)
{
	const struct dwr_branch *b;
	uint32_t n_branches;
	uint64_t slot;
	bool entered;
	unit_set *r = &cc->reached;
	r->len = 0;
	uint64_t marker = dwr_chain_marker(cc, from);
	size_t n_entries = 0,
	       at = marker == UINT64_MAX ? 0 : dwr_chain_find_dcall(cc, site, marker, &n_entries);
	for (size_t i = 0; i < n_entries; i++)
		ELFRW_TRY(dwr_chain_put_die(cc, cc->calls.dcall.data[at + i].die, group, r));
	if (n_entries)
		return keep(cc, r, group, ret, n);
	if (dwr_chain_find_vcall(cc, site, &slot)) {
		ELFRW_TRY(dwr_chain_put_virtual(cc, slot, 0, r));
		return keep(cc, r, group, ret, n);
	}
	ELFRW_TRY(dwr_code_branches(&cc->code, from, &b, &n_branches));
	for (uint32_t i = 0; i < n_branches; i++) {
		if (b[i].site != site)
			continue;
		if (!b[i].target)
			return dwr_branch_pointed(cc, group, ret, n);
		uint64_t target = b[i].target;
		ELFRW_TRY(dwr_chain_put_target(cc, from, site, target, r, &entered));
		break;
	}
	return keep(cc, r, group, ret, n);
}

struct elfrw_err *dwr_branch_left(struct dwr_callchain *cc, uint32_t from, uint64_t site,
				  uint32_t group, const uint32_t **ret, size_t *n)
{
	const struct dwr_chain_call call = { .site = site };
	struct dwr_chain_called how = { .anything = false };
	cc->set.len = 0;
	ELFRW_TRY(dwr_chain_callees(cc, from, &call, group, &cc->set, &how));
	*ret = cc->set.data;
	*n = how.anything ? 0 : cc->set.len;
	return NULL;
}

struct elfrw_err *dwr_branch_leads(struct dwr_callchain *cc, uint32_t from, uint64_t site,
				   uint32_t group, bool *ret)
{
	const struct dwr_chain_call in = { .site = site };
	struct dwr_chain_called how = { .anything = false };
	const struct dwr_branch *b;
	uint32_t n;
	*ret = false;
	ELFRW_TRY(dwr_code_branches(&cc->code, from, &b, &n));
	const struct dwr_branch *call = dwr_call_before(b, n, site);
	if (!call)
		return NULL;
	const struct dwr_code_span *to = call->target ? dwr_code_at(&cc->code, call->target) : NULL;
	if (call->target && (!to || dwr_code_is_linkage(&cc->code, to->unit)))
		return NULL;
	cc->set.len = 0;
	ELFRW_TRY(dwr_chain_callees(cc, from, &in, group, &cc->set, &how));
	*ret = !how.nowhere;
	return NULL;
}

struct elfrw_err *dwr_branch_part(struct dwr_callchain *cc, uint32_t from, uint32_t group,
				  const uint32_t **ret, size_t *n)
{
	uint32_t m = dwr_chain_member_of(cc, from);
	unit_set *r = &cc->reached;
	r->len = 0;
	for (uint32_t k = 0; m != UINT32_MAX && k < cc->note->member[m].n_dies; k++)
		ELFRW_TRY(dwr_chain_put_die(cc, cc->note->dies[cc->note->member[m].die + k].die,
					    group, r));
	return keep(cc, r, group, ret, n);
}
