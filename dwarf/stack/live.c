/* live.c: answers for users who also have the stopped program (callchain.h, second part). */
#include "dwarf/return_address.h"
#include "dwarf/stack/state.h"

bool dwr_callchain_vcall(const struct dwr_callchain *cc, uint64_t site, uint64_t *slot)
{
	return dwr_chain_find_vcall(cc, site, slot);
}

struct elfrw_err *dwr_callchain_vtables(struct dwr_callchain *cc, const struct dwr_vtables **ret)
{
	ELFRW_TRY(dwr_chain_load_vtables(cc));
	*ret = &cc->vt;
	return NULL;
}

struct elfrw_err *dwr_callchain_leads(struct dwr_callchain *cc, uint64_t place, uint32_t group,
				      enum dwr_chain_leads *ret)
{
	bool anything = false;
	*ret = DWR_LEADS_PERHAPS;
	ELFRW_TRY(dwr_chain_load_vtables(cc));
	uint32_t u = dwr_chain_slot(cc, place, dwr_vtables_value(cc->img, &cc->vt, place));
	if (u == DWR_NO_UNIT)
		return NULL;
	cc->reached.len = 0;
	ELFRW_TRY(dwr_chain_put(&cc->reached, u));
	ELFRW_TRY(dwr_chain_follow(cc, &cc->reached, &anything));
	for (size_t i = 0; i < cc->reached.len; i++)
		if (dwr_chain_group(cc, cc->reached.data[i]) == group)
			*ret = DWR_LEADS_THERE;
	if (*ret == DWR_LEADS_PERHAPS && !anything)
		*ret = DWR_LEADS_NOT;
	return NULL;
}

struct elfrw_err *dwr_callchain_enters(struct dwr_callchain *cc, uint64_t site, uint64_t at,
				       bool *ret)
{
	const struct dwr_code_span *in = dwr_code_at(&cc->code, at),
				   *caller = dwr_code_at(&cc->code, dwr_call_at(site));
	const struct dwr_branch *b;
	uint32_t n;
	bool entered = false, anything = false;
	*ret = false;
	if (!in || !caller || in->thunk || caller->thunk)
		return NULL;
	ELFRW_TRY(dwr_code_branches(&cc->code, caller->unit, &b, &n));
	for (uint32_t i = 0; i < n; i++)
		entered |= b[i].site == site && b[i].call && b[i].target == in->start;
	if (!entered)
		return NULL;
	cc->reached.len = 0;
	ELFRW_TRY(dwr_code_branches(&cc->code, in->unit, &b, &n));
	for (uint32_t i = 0; i < n; i++) {
		if (b[i].call)
			continue;
		ELFRW_TRY(dwr_chain_put_target(cc, in->unit, b[i].site, b[i].target, &cc->reached,
					       &entered));
		anything |= !b[i].target && !entered;
	}
	ELFRW_TRY(dwr_chain_follow(cc, &cc->reached, &anything));
	const struct elfrw_addrmap_unit *unit = cc->note->map.unit;
	for (size_t i = 0; i < cc->reached.len; i++)
		anything |= unit[cc->reached.data[i]].kept == unit[in->unit].kept;
	*ret = !anything;
	return NULL;
}

struct elfrw_err *dwr_callchain_object(struct dwr_callchain *cc, uint64_t site,
				       struct dwr_chain_object *ret, bool *found)
{
	return dwr_code_object(&cc->code, site, ret, found);
}

void dwr_callchain_operands(struct dwr_callchain *cc, uint64_t at,
			    bool (*fn)(void *ctx, uint64_t address), void *ctx)
{
	dwr_code_operands(&cc->code, at, fn, ctx);
}

bool dwr_callchain_spills(struct dwr_callchain *cc, uint64_t at)
{
	return dwr_code_spills(&cc->code, at);
}
