/* callchain.c: see callchain.h.
 *
 * Functions are unit numbers of the address map; a *set* of them is what a frame could be in.  From
 * the outermost frame inward, the set of a frame in shared code is what its group has in common
 * with what the callers' set can have called at the call site:
 *
 *	A calls B, C calls D; B and D share code, so A and C do.  main calls A at s1:
 *	main (not shared) --s1--> {A}      the entry (s1, no caller) names A
 *	A --s2--> {B}                      the entry (s2, caller A) names B; (s2, caller C) names D
 *
 * What was called is a function of the group itself (the usual case), or one that reaches members
 * of the group by jumps: then these, unless an indirect jump on the way could lead anywhere.  A
 * function that was called and is in the group is a candidate in any case, together with the
 * members that it reaches by direct jumps.  That a function of the group jumps indirectly to
 * another function of the same group is not considered.
 *
 * Cost: a look-up in sorted tables for each frame, plus the decoding of each body that is met,
 * once.  A level that was decided before (memo.h) costs one look-up in a hash table. */
#include "dwarf/stack/callchain.h"
#include "dwarf/return_address.h"
#include "dwarf/stack/state.h"
#include "elfrw/base/sort.h"

/* A level of a stack. */
struct level {
	uint64_t at; /* the PC, or the address to return to */
	bool pc;     /* AT is a PC */
	struct dwr_chain_call call;
};

struct elfrw_err *dwr_chain_callees(struct dwr_callchain *cc, uint32_t caller,
				    const struct dwr_chain_call *in, uint32_t group, unit_set *set,
				    struct dwr_chain_called *how)
{
	const uint64_t site = in->site;
	const struct dwr_branch *b;
	uint32_t n;
	uint64_t slot;
	bool entered = false, is_virtual = false;
	ELFRW_TRY(dwr_code_branches(&cc->code, caller, &b, &n));
	const struct dwr_branch *call = dwr_call_before(b, n, site);
	if (!call) {
		how->anything = true;
		return NULL;
	}
	unit_set *r = &cc->reached;
	r->len = 0;
	/* If an entry names a member of this group, no search is needed. */
	uint64_t marker = dwr_chain_marker(cc, caller);
	size_t n_entries = 0,
	       at = marker == UINT64_MAX ? 0 : dwr_chain_find_dcall(cc, site, marker, &n_entries);
	for (size_t i = 0; i < n_entries; i++)
		ELFRW_TRY(dwr_chain_put_die(cc, cc->calls.dcall.data[at + i].die, group, r));
	if (!n_entries && dwr_chain_find_vcall(cc, site, &slot)) {
		is_virtual = true;
		ELFRW_TRY(dwr_chain_put_virtual(cc, slot, in->vtable, r));
	} else if (!n_entries)
		ELFRW_TRY(dwr_chain_put_target(cc, caller, site, call->target, r, &entered));
	if (!r->len) {
		how->anything = true;
		return NULL;
	}
	bool direct = false, anything = false;
	for (size_t i = 0; i < r->len; i++)
		direct |= dwr_chain_group(cc, r->data[i]) == group;
	ELFRW_TRY(dwr_chain_follow(cc, r, &anything));
	size_t found = 0;
	for (size_t i = 0; i < r->len; i++)
		if (dwr_chain_group(cc, r->data[i]) == group) {
			found++;
			ELFRW_TRY(dwr_chain_put(set, r->data[i]));
		}
	if (!found || (!direct && anything)) {
		how->anything = true;
		how->nowhere = !anything;
		return NULL;
	}
	uint8_t by = !direct      ? DWR_BY_TAILCALL
		     : is_virtual ? DWR_BY_VCALL
		     : n_entries  ? DWR_BY_DCALL
				  : DWR_BY_UNIQUE;
	if (how->by == DWR_BY_NOTHING || by == DWR_BY_TAILCALL)
		how->by = by;
	return NULL;
}

static struct elfrw_err *put_frame(struct dwr_callchain *cc, struct dwr_chain_frame *f,
				   struct dwr_chain *chain, uint8_t by)
{
	f->first = (uint32_t)chain->member.len;
	for (size_t i = 0; i < cc->set.len; i++) {
		struct dwr_chain_member *m = VEC_PUSH(&chain->member);
		if (!m)
			return &elfrw_err_nomem;
		uint32_t k = dwr_chain_member_of(cc, cc->set.data[i]);
		*m = (struct dwr_chain_member){ k, dwr_chain_die_of(cc, k) };
	}
	f->n = (uint32_t)cc->set.len;
	f->decided = f->n == 1;
	f->by = f->decided ? by : DWR_BY_NOTHING;
	return NULL;
}

/* Resolves one frame.  cc->outer: the set of the next outer frame (empty: unknown).  cc->set: the
 * result. */
static struct elfrw_err *resolve_frame(struct dwr_callchain *cc, const struct level *level,
				       struct dwr_chain_frame *f, struct dwr_chain *chain)
{
	cc->set.len = 0;
	const struct dwr_code_span *s = dwr_code_at(
		&cc->code, level->pc || !level->at ? level->at : dwr_call_at(level->at));
	*f = (struct dwr_chain_frame){ .group = UINT32_MAX, .same = DWR_MEMO_NONE };
	if (!s)
		return NULL;
	uint32_t group = dwr_chain_group(cc, s->unit);
	if (group == NO_SHARE || s->thunk) {
		ELFRW_TRY(dwr_chain_put(&cc->set, s->unit));
		if (group == NO_SHARE)
			return NULL;
		f->merged = true;
		f->group = group;
		return put_frame(cc, f, chain, DWR_BY_UNIQUE);
	}
	f->merged = true;
	f->group = group;
	struct dwr_chain_called how = { .anything = !cc->outer.len };
	for (size_t i = 0; i < cc->outer.len && !how.anything; i++)
		ELFRW_TRY(dwr_chain_callees(cc, cc->outer.data[i], &level->call, group, &cc->set,
					    &how));
	if (how.anything || !cc->set.len) {
		cc->set.len = 0;
		ELFRW_TRY(dwr_chain_put_group(cc, group, false, &cc->set));
	}
	/* Members are numbered group by group, the kept one first. */
	for (size_t i = 0; i < cc->set.len; i++)
		cc->set.data[i] = dwr_chain_member_of(cc, cc->set.data[i]);
	qsort(cc->set.data, cc->set.len, sizeof *cc->set.data, elfrw_u32_order);
	for (size_t i = 0; i < cc->set.len; i++)
		cc->set.data[i] = cc->note->member[cc->set.data[i]].unit;
	return put_frame(cc, f, chain, how.by);
}

/* Without .debug_icfold: only the entry at the call site shows that the callee shares code. */
static struct elfrw_err *resolve_bare(struct dwr_callchain *cc, uint64_t site,
				      const struct dwr_chain_frame *outer,
				      struct dwr_chain_frame *f, struct dwr_chain *chain)
{
	size_t n = 0, at = dwr_chain_find_dcall(cc, site, 0, &n);
	*f = (struct dwr_chain_frame){ .group = UINT32_MAX, .same = DWR_MEMO_NONE };
	for (size_t i = at; i < cc->calls.dcall.len && cc->calls.dcall.data[i].site == site; i++) {
		const struct dwr_dcall *c = &cc->calls.dcall.data[i];
		bool possible = !c->caller || !outer || !outer->merged;
		for (uint32_t k = 0; outer && k < outer->n && !possible; k++)
			possible = chain->member.data[outer->first + k].die == c->caller;
		for (uint32_t k = 0; k < f->n; k++)
			possible &= chain->member.data[f->first + k].die != c->die;
		if (!f->merged)
			f->first = (uint32_t)chain->member.len;
		f->merged = true;
		if (!possible)
			continue;
		struct dwr_chain_member *m = VEC_PUSH(&chain->member);
		if (!m)
			return &elfrw_err_nomem;
		*m = (struct dwr_chain_member){ UINT32_MAX, c->die };
		f->n++;
	}
	f->decided = f->n == 1;
	f->by = f->decided ? DWR_BY_DCALL : DWR_BY_NOTHING;
	return NULL;
}

#define MAX_KEPT 64 /* functions that a level could be in */

/* Keeps level F, whose functions are cc->set, under its number. */
static struct elfrw_err *keep(struct dwr_callchain *cc, const struct dwr_chain_frame *f,
			      const struct dwr_chain *chain)
{
	while (cc->level.len <= f->same)
		if (!VEC_PUSH(&cc->level))
			return &elfrw_err_nomem;
	if (!VEC_RESERVE(&cc->level_member, cc->level_member.len + f->n) ||
	    !VEC_RESERVE(&cc->level_unit, cc->level_unit.len + cc->set.len))
		return &elfrw_err_nomem;
	struct chain_memo *k = &cc->level.data[f->same];
	*k = (struct chain_memo){ *f, (uint32_t)cc->level_unit.len, (uint32_t)cc->set.len, true };
	k->frame.first = (uint32_t)cc->level_member.len;
	for (uint32_t i = 0; i < f->n; i++)
		cc->level_member.data[cc->level_member.len++] = chain->member.data[f->first + i];
	for (size_t i = 0; i < cc->set.len; i++)
		cc->level_unit.data[cc->level_unit.len++] = cc->set.data[i];
	return NULL;
}

/* The opposite of keep(), for the level numbered NUMBER. */
static struct elfrw_err *recall(struct dwr_callchain *cc, uint32_t number,
				struct dwr_chain_frame *f, struct dwr_chain *chain)
{
	const struct chain_memo *k = &cc->level.data[number];
	if (!VEC_RESERVE(&chain->member, chain->member.len + k->frame.n) ||
	    !VEC_RESERVE(&cc->set, k->n_units))
		return &elfrw_err_nomem;
	*f = k->frame;
	f->first = (uint32_t)chain->member.len;
	for (uint32_t i = 0; i < f->n; i++)
		chain->member.data[chain->member.len++] = cc->level_member.data[k->frame.first + i];
	for (uint32_t i = 0; i < k->n_units; i++)
		cc->set.data[i] = cc->level_unit.data[k->unit + i];
	cc->set.len = k->n_units;
	return NULL;
}

/* A number for the functions cc->outer, which are those of level F outside, NULL if there is none.
 * A level without a number has one only if it is one function, as most are. */
static bool number_outer(const struct dwr_callchain *cc, const struct dwr_chain_frame *f,
			 uint64_t *ret)
{
	*ret = 0;
	if (cc->outer.len == 1)
		*ret = UINT64_C(1) << 32 | cc->outer.data[0];
	else if (cc->outer.len && f->same != DWR_MEMO_NONE)
		*ret = UINT64_C(2) << 32 | f->same;
	return *ret || !cc->outer.len;
}

/* Decides level F with .debug_icfold, or repeats what was decided; OUTER: the level outside. */
static struct elfrw_err *decide(struct dwr_callchain *cc, const struct level *level,
				const struct dwr_chain_frame *outer, struct dwr_chain_frame *f,
				struct dwr_chain *chain)
{
	struct dwr_memo_key key = { .at = level->at, .site = level->call.site, .pc = level->pc };
	uint32_t number = DWR_MEMO_NONE;
	bool known = false;
	if (!level->call.vtable && number_outer(cc, outer, &key.outer))
		number = dwr_memo_number(&cc->memo, &key, &known);
	if (known && number < cc->level.len && cc->level.data[number].kept)
		return recall(cc, number, f, chain);
	ELFRW_TRY(resolve_frame(cc, level, f, chain));
	f->same = cc->set.len <= MAX_KEPT ? number : DWR_MEMO_NONE;
	return f->same == DWR_MEMO_NONE ? NULL : keep(cc, f, chain);
}

struct elfrw_err *dwr_callchain_resolve(struct dwr_callchain *cc, const uint64_t *addr,
					const uint64_t *vtable, size_t n, struct dwr_chain *chain)
{
	chain->frame.len = chain->member.len = 0;
	if (!VEC_RESERVE(&chain->frame, n + 1))
		return &elfrw_err_nomem;
	chain->frame.len = n;
	cc->outer.len = 0;
	for (size_t i = n; i-- > 0;) {
		struct dwr_chain_frame *f = &chain->frame.data[i];
		uint64_t site = i + 1 < n ? addr[i + 1] : 0;
		if (cc->note) {
			const struct level level = { addr[i],
						     i == 0,
						     { site, vtable ? vtable[i] : 0 } };
			ELFRW_TRY(decide(cc, &level, i + 1 < n ? f + 1 : NULL, f, chain));
			unit_set t = cc->outer;
			cc->outer = cc->set;
			cc->set = t;
		} else if (site)
			ELFRW_TRY(resolve_bare(
				cc, site, i + 1 < n ? &chain->frame.data[i + 1] : NULL, f, chain));
		else
			*f = (struct dwr_chain_frame){ .group = UINT32_MAX, .same = DWR_MEMO_NONE };
	}
	return NULL;
}

struct elfrw_err *dwr_callchain_is_return(struct dwr_callchain *cc, uint64_t site, bool *ret,
					  bool *again)
{
	return dwr_code_is_return(&cc->code, site, ret, again);
}

void dwr_chain_deinit(struct dwr_chain *chain)
{
	VEC_FREE(&chain->frame);
	VEC_FREE(&chain->member);
}

const char *dwr_chain_by_text(enum dwr_chain_by by)
{
	static const char *const text[] = { NULL, "dcall", "vcall", "tailcall", "unique" };
	return by < sizeof text / sizeof *text ? text[by] : NULL;
}
