/* reach.c: sets of functions: the targets of a call site, a vtable slot or a chain of jumps; see
 * state.h. */
#include "dwarf/stack/state.h"
#include "elfrw/base/search.h"
#include <string.h>

#define MAX_REACHED 4096 /* functions, at most, when jumps are followed */

/* Adds UNIT, which is not among the elements from N on. */
static struct elfrw_err *put_among(unit_set *set, size_t n, uint32_t unit)
{
	for (size_t i = 0; i < n; i++)
		if (set->data[i] == unit)
			return NULL;
	uint32_t *p = VEC_PUSH(set);
	if (!p)
		return &elfrw_err_nomem;
	*p = unit;
	return NULL;
}

struct elfrw_err *dwr_chain_put(unit_set *set, uint32_t unit)
{
	return put_among(set, set->len, unit);
}

uint32_t dwr_chain_member_of(const struct dwr_callchain *cc, uint32_t unit)
{
	return cc->note->unit_member[unit];
}

uint64_t dwr_chain_die_of(const struct dwr_callchain *cc, uint32_t m)
{
	if (cc->note->member[m].n_dies)
		return cc->note->dies[cc->note->member[m].die].die;
	return cc->declared ? cc->declared[m] : 0;
}

uint64_t dwr_chain_marker(const struct dwr_callchain *cc, uint32_t unit)
{
	uint32_t m = dwr_chain_member_of(cc, unit);
	if (m == UINT32_MAX)
		return 0;
	uint64_t die = dwr_chain_die_of(cc, m);
	return die ? die : UINT64_MAX;
}

size_t dwr_chain_find_dcall(const struct dwr_callchain *cc, uint64_t site, uint64_t caller,
			    size_t *n)
{
	const struct dwr_dcall *c = cc->calls.dcall.data;
	size_t lo =
		LOWER_BOUND(0, cc->calls.dcall.len, mid,
			    c[mid].site < site || (c[mid].site == site && c[mid].caller < caller));
	*n = 0;
	while (lo + *n < cc->calls.dcall.len && c[lo + *n].site == site &&
	       c[lo + *n].caller == caller)
		++*n;
	return lo;
}

bool dwr_chain_find_vcall(const struct dwr_callchain *cc, uint64_t site, uint64_t *slot)
{
	size_t lo = LOWER_BOUND(0, cc->calls.vcall.len, mid, cc->calls.vcall.data[mid].site < site);
	if (lo == cc->calls.vcall.len || cc->calls.vcall.data[lo].site != site)
		return false;
	*slot = cc->calls.vcall.data[lo].slot;
	return true;
}

struct elfrw_err *dwr_chain_put_die(struct dwr_callchain *cc, uint64_t die, uint32_t group,
				    unit_set *set)
{
	size_t lo = dwr_chain_first_die(cc, die);
	bool here = false;
	for (size_t i = lo; i < cc->die.len && cc->die.data[i].die == die; i++)
		here |= dwr_chain_group(cc, cc->die.data[i].unit) == group;
	for (size_t i = lo; i < cc->die.len && cc->die.data[i].die == die; i++)
		if (!here || dwr_chain_group(cc, cc->die.data[i].unit) == group)
			ELFRW_TRY(dwr_chain_put(set, cc->die.data[i].unit));
	return NULL;
}

struct elfrw_err *dwr_chain_put_group(struct dwr_callchain *cc, uint32_t group, bool nameless,
				      unit_set *set)
{
	const struct dwr_icfold_group *g = &cc->note->group[group];
	size_t before = set->len;
	for (uint32_t i = g->member; i < g->member + g->n_members; i++)
		if (!nameless || !dwr_chain_die_of(cc, i)) /* a unit is a member once */
			ELFRW_TRY(put_among(set, before, cc->note->member[i].unit));
	return nameless && set->len == before ? dwr_chain_put_group(cc, group, false, set) : NULL;
}

/* What the thunk NAME calls (Itanium C++ ABI, 5.1.4.4), without "_Z"; NULL: it is no thunk that
 * adjusts `this` and jumps. */
static const char *behind_offsets(const char *name)
{
	if (strncmp(name, "_ZTh", 4) && strncmp(name, "_ZTv", 4))
		return NULL;
	const char *p = name + 4;
	for (unsigned n = name[3] == 'h' ? 1 : 2; n; n--) {
		p += *p == 'n';
		size_t digits = strspn(p, "0123456789");
		if (!digits || p[digits] != '_')
			return NULL;
		p += digits + 1;
	}
	return p;
}

static bool is_named(const struct dwr_icfold *note, uint32_t member, const char *name)
{
	const struct dwr_icfold_member *m = &note->member[member];
	for (uint32_t i = 0; i < m->n_names; i++)
		if (!strncmp(note->names[m->name + i], "_Z", 2) &&
		    !strcmp(note->names[m->name + i] + 2, name))
			return true;
	return false;
}

/* The one unit of GROUP that UNIT, a thunk of C++, goes on to: its name says it.  Compilers
 * describe no such thunks, so the tables say nothing of them.  DWR_NO_UNIT: it is no thunk, or it
 * is not clear. */
static uint32_t behind_thunk(const struct dwr_callchain *cc, uint32_t unit, uint32_t group)
{
	const struct dwr_icfold *note = cc->note;
	uint32_t member = dwr_chain_member_of(cc, unit), ret = DWR_NO_UNIT;
	if (member == UINT32_MAX)
		return DWR_NO_UNIT;
	const struct dwr_icfold_member *m = &note->member[member];
	const struct dwr_icfold_group *g = &note->group[group];
	for (uint32_t i = 0; i < m->n_names; i++) {
		const char *name = behind_offsets(note->names[m->name + i]);
		for (uint32_t k = g->member; name && k < g->member + g->n_members; k++) {
			if (!is_named(note, k, name) || note->member[k].unit == ret)
				continue;
			if (ret != DWR_NO_UNIT)
				return DWR_NO_UNIT;
			ret = note->member[k].unit;
		}
	}
	return ret;
}

struct elfrw_err *dwr_chain_put_target(struct dwr_callchain *cc, uint32_t unit, uint64_t site,
				       uint64_t target, unit_set *set, bool *entered)
{
	const struct dwr_code_span *to = target ? dwr_code_at(&cc->code, target) : NULL;
	uint32_t group = to ? dwr_chain_group(cc, to->unit) : NO_SHARE;
	uint64_t marker = dwr_chain_marker(cc, unit);
	size_t n = 0, at = marker == UINT64_MAX ? 0 : dwr_chain_find_dcall(cc, site, marker, &n);
	*entered = n != 0;
	for (size_t i = 0; i < n; i++)
		ELFRW_TRY(dwr_chain_put_die(cc, cc->calls.dcall.data[at + i].die, group, set));
	if (n || !to)
		return NULL;
	if (to->thunk || group == NO_SHARE) {
		if (!to->thunk && dwr_code_is_linkage(&cc->code, to->unit)) /* out of this file */
			return NULL;
		return dwr_chain_put(set, to->unit);
	}
	uint32_t known = marker == UINT64_MAX ? behind_thunk(cc, unit, group) : DWR_NO_UNIT;
	if (known != DWR_NO_UNIT)
		return dwr_chain_put(set, known);
	/* Without an entry the callee was a function without a DIE; or the caller has no DIE, and
	 * the callee can be any. */
	return dwr_chain_put_group(cc, group, cc->has_dcall && marker != UINT64_MAX, set);
}

struct elfrw_err *dwr_chain_follow(struct dwr_callchain *cc, unit_set *reached, bool *anything)
{
	if (++cc->walk == 0) {
		memset(cc->seen, 0, cc->note->map.n_units * sizeof *cc->seen);
		cc->walk = 1;
	}
	for (size_t i = 0; i < reached->len; i++)
		cc->seen[reached->data[i]] = cc->walk;
	for (size_t i = 0; i < reached->len; i++) {
		if (reached->len > MAX_REACHED) {
			*anything = true;
			return NULL;
		}
		const struct dwr_branch *b;
		uint32_t n, unit = reached->data[i];
		ELFRW_TRY(dwr_code_branches(&cc->code, unit, &b, &n));
		for (uint32_t k = 0; k < n; k++) {
			bool entered;
			if (b[k].call)
				continue;
			cc->roots.len = 0;
			ELFRW_TRY(dwr_chain_put_target(cc, unit, b[k].site, b[k].target, &cc->roots,
						       &entered));
			if (!b[k].target && !entered)
				*anything = true;
			for (size_t j = 0; j < cc->roots.len; j++) {
				uint32_t to = cc->roots.data[j];
				if (cc->seen[to] == cc->walk)
					continue;
				cc->seen[to] = cc->walk;
				uint32_t *p = VEC_PUSH(reached);
				if (!p)
					return &elfrw_err_nomem;
				*p = to;
			}
		}
	}
	return NULL;
}

uint32_t dwr_chain_slot(const struct dwr_callchain *cc, uint64_t place, uint64_t value)
{
	size_t lo = LOWER_BOUND(0, cc->note->n_vslots, mid, cc->note->vslot[mid].slot < place);
	if (lo < cc->note->n_vslots && cc->note->vslot[lo].slot == place)
		return cc->note->vslot[lo].unit;
	/* Small unaligned functions, mostly thunks, may share a unit with their neighbour. */
	const struct dwr_code_span *s = value ? dwr_code_at(&cc->code, value) : NULL;
	return s && (s->start == value || dwr_chain_group(cc, s->unit) == NO_SHARE) ? s->unit
										    : DWR_NO_UNIT;
}

struct elfrw_err *dwr_chain_load_vtables(struct dwr_callchain *cc)
{
	if (cc->has_vt)
		return NULL;
	ELFRW_TRY(dwr_vtables_read(cc->img, cc->debug->symtab ? cc->debug : cc->img, &cc->vt));
	cc->has_vt = true;
	return NULL;
}

/* All functions that some vtable has in SLOT. */
static struct elfrw_err *holders(struct dwr_callchain *cc, uint64_t slot, struct slot_holders *ret)
{
	*ret = (struct slot_holders){ 0 };
	if (slot > 65535)
		return NULL;
	while (cc->slot.len <= slot)
		if (!VEC_PUSH(&cc->slot))
			return &elfrw_err_nomem;
	struct slot_holders *h = &cc->slot.data[slot];
	if (!h->known) {
		ELFRW_TRY(dwr_chain_load_vtables(cc));
		struct elfrw_err *err = NULL;
		if (++cc->walk == 0) {
			memset(cc->seen, 0, cc->note->map.n_units * sizeof *cc->seen);
			cc->walk = 1;
		}
		*h = (struct slot_holders){ true, (uint32_t)cc->holder.len, 0 };
		for (size_t i = 0; i < cc->vt.table.len && !err; i++) {
			const struct dwr_vtable *t = &cc->vt.table.data[i];
			uint64_t place = t->point + 8 * slot;
			if (place >= t->end)
				continue;
			uint64_t value = dwr_vtables_value(cc->img, &cc->vt, place);
			uint32_t u = dwr_chain_slot(cc, place, value), n = 1, first = 0;
			const struct dwr_code_span *s =
				u == DWR_NO_UNIT && value ? dwr_code_at(&cc->code, value) : NULL;
			if (s) { /* somewhere in code that is shared */
				first = cc->note->group[dwr_chain_group(cc, s->unit)].member;
				n = cc->note->group[dwr_chain_group(cc, s->unit)].n_members;
			} else if (u == DWR_NO_UNIT)
				continue;
			for (uint32_t k = 0; k < n && !err; k++) {
				u = s ? cc->note->member[first + k].unit : u;
				if (cc->seen[u] == cc->walk)
					continue;
				cc->seen[u] = cc->walk;
				uint32_t *p = VEC_PUSH(&cc->holder);
				if (!p)
					err = &elfrw_err_nomem;
				else
					*p = u;
			}
		}
		ELFRW_TRY(err);
		h->n = (uint32_t)cc->holder.len - h->first;
	}
	*ret = *h;
	return NULL;
}

struct elfrw_err *dwr_chain_put_virtual(struct dwr_callchain *cc, uint64_t slot, uint64_t vtable,
					unit_set *set)
{
	if (vtable) {
		uint64_t place = vtable + 8 * slot;
		ELFRW_TRY(dwr_chain_load_vtables(cc));
		uint32_t u = dwr_chain_slot(cc, place, dwr_vtables_value(cc->img, &cc->vt, place));
		if (u != DWR_NO_UNIT)
			return dwr_chain_put(set, u);
	}
	struct slot_holders h;
	ELFRW_TRY(holders(cc, slot, &h));
	for (uint32_t i = 0; i < h.n; i++) {
		uint32_t *p = VEC_PUSH(set);
		if (!p)
			return &elfrw_err_nomem;
		*p = cc->holder.data[h.first + i];
	}
	return NULL;
}
