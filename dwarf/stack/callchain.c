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
 * once. */
#include "dwarf/stack/callchain.h"
#include "dwarf/calls/call_sites.h"
#include "dwarf/stack/state.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include <string.h>

#define MAX_REACHED 4096 /* functions, when jumps are followed */

/* What a call site allows. */
struct called {
	bool anything; /* any function: nothing is known */
	uint8_t by;
};

static int dcall_order(const void *a, const void *b)
{
	const struct dwr_dcall *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

static int die_order(const void *a, const void *b)
{
	const struct die_member *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Index of the first entry for DIE, or where it would be. */
static size_t first_die(const struct dwr_callchain *cc, uint64_t die)
{
	return LOWER_BOUND(0, cc->die.len, mid, cc->die.data[mid].die < die);
}

static struct elfrw_err *open_note(struct dwr_callchain *cc)
{
	ELFRW_TRY(dwr_sections_load(&cc->secs, DWR_ICFOLD));
	const struct dwr_section *s = &cc->secs.sec[DWR_ICFOLD];
	if (!s->size)
		return NULL;
	ELFRW_TRY(dwr_icfold_read(&cc->note, s->data, s->size));
	cc->has_note = true;
	const struct elfrw_addrmap *map = &cc->note.map;
	for (uint32_t u = 0; u < map->n_units; u++)
		if (map->unit[u].kept >= map->n_units || map->unit[u].old_end < map->unit[u].old)
			return elfrw_error_at(s->name, 0, "broken address map");
	cc->seen = calloc((size_t)map->n_units + 1, sizeof *cc->seen);
	if (!cc->seen)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < cc->note.n_members; i++)
		for (uint32_t k = 0; k < cc->note.member[i].n_dies; k++) {
			struct die_member *d = VEC_PUSH(&cc->die);
			if (!d)
				return &elfrw_err_nomem;
			*d = (struct die_member){ cc->note.dies[cc->note.member[i].die + k].die,
						  cc->note.member[i].unit };
		}
	if (cc->die.len)
		qsort(cc->die.data, cc->die.len, sizeof *cc->die.data, die_order);
	return dwr_code_init(&cc->code, cc->img, &cc->note);
}

struct nameless {
	const char *name;
	uint32_t member;
};

static int nameless_order(const void *a, const void *b)
{
	const struct nameless *x = a, *y = b;
	int c = strcmp(x->name, y->name);
	return c ? c : x->member < y->member ? -1 : x->member > y->member;
}

static struct elfrw_err *match_declared(struct dwr_callchain *cc, const uint64_t *die, size_t n,
					const struct nameless *v, size_t n_names)
{
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_err *err = dwr_sections_load(&cc->secs, DWR_STR);
	if (!err)
		err = dwr_sections_load(&cc->secs, DWR_LINE_STR);
	if (!err)
		err = dwr_sections_load(&cc->secs, DWR_STR_OFFSETS);
	for (size_t i = 0; i < n && !err; i++) {
		uint64_t chain[4];
		unsigned hops;
		const char *name = NULL;
		if (i && die[i] == die[i - 1])
			continue;
		err = dwr_function_chain(&cc->secs, &cc->units, &table, die[i], chain, 4, &hops,
					 &name);
		if (err || !name)
			continue;
		size_t lo = LOWER_BOUND(0, n_names, mid, strcmp(v[mid].name, name) < 0);
		bool one = lo < n_names && strcmp(v[lo].name, name) == 0 &&
			   (lo + 1 == n_names || strcmp(v[lo + 1].name, name));
		if (!one)
			continue;
		struct die_member *d = VEC_PUSH(&cc->die);
		if (!d)
			err = &elfrw_err_nomem;
		else
			*d = (struct die_member){ die[i], cc->note.member[v[lo].member].unit };
		cc->declared[v[lo].member] = die[i];
	}
	dwr_abbrev_deinit(&table);
	return err;
}

/* DIEs in the tables that are no member's: declarations of members without a DIE, told by the
 * name. */
static struct elfrw_err *open_declared(struct dwr_callchain *cc)
{
	VEC(uint64_t) odd = { 0 };
	VEC(struct nameless) v = { 0 };
	struct elfrw_err *err = NULL;
	cc->declared = calloc(cc->note.n_members + 1, sizeof *cc->declared);
	if (!cc->declared)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < 2 * cc->calls.dcall.len && !err; i++) {
		const struct dwr_dcall *c = &cc->calls.dcall.data[i / 2];
		uint64_t die = i & 1 ? c->caller : c->die, *slot;
		size_t lo = first_die(cc, die);
		if (!die || (odd.len && odd.data[odd.len - 1] == die) ||
		    (lo < cc->die.len && cc->die.data[lo].die == die))
			continue;
		if (!(slot = VEC_PUSH(&odd)))
			err = &elfrw_err_nomem;
		else
			*slot = die;
	}
	for (size_t i = 0; i < cc->note.n_members && odd.len && !err; i++)
		for (uint32_t k = 0;
		     k < cc->note.member[i].n_names && !cc->note.member[i].n_dies && !err; k++) {
			struct nameless *n = VEC_PUSH(&v);
			if (!n)
				err = &elfrw_err_nomem;
			else
				*n = (struct nameless){ cc->note.names[cc->note.member[i].name + k],
							(uint32_t)i };
		}
	if (v.len && !err) {
		qsort(v.data, v.len, sizeof *v.data, nameless_order);
		qsort(odd.data, odd.len, sizeof *odd.data, elfrw_u64_order);
		err = match_declared(cc, odd.data, odd.len, v.data, v.len);
	}
	VEC_FREE(&odd);
	VEC_FREE(&v);
	if (!err && cc->die.len)
		qsort(cc->die.data, cc->die.len, sizeof *cc->die.data, die_order);
	return err;
}

static struct elfrw_err *open_tables(struct dwr_callchain *cc)
{
	bool any = cc->secs.sec[DWR_DCALL].shndx || cc->secs.sec[DWR_VCALL].shndx;
	if (!any)
		return NULL;
	ELFRW_TRY(dwr_units_read(&cc->secs, &cc->units));
	ELFRW_TRY(dwr_calls_read(&cc->secs, &cc->units, &cc->calls));
	cc->has_dcall = cc->calls.dcall.len != 0;
	if (cc->calls.dcall.len)
		qsort(cc->calls.dcall.data, cc->calls.dcall.len, sizeof *cc->calls.dcall.data,
		      dcall_order);
	if (cc->calls.vcall.len)
		qsort(cc->calls.vcall.data, cc->calls.vcall.len, sizeof *cc->calls.vcall.data,
		      dwr_vcall_order);
	return cc->has_note && cc->has_dcall && cc->secs.sec[DWR_INFO].shndx ? open_declared(cc)
									     : NULL;
}

struct elfrw_err *dwr_callchain_open(const struct elfrw_image *code,
				     const struct elfrw_image *debug, struct dwr_callchain **ret)
{
	if (!code->arch || (debug && debug->ehdr.e_machine != code->ehdr.e_machine))
		return elfrw_error(
			"tables for shared code: not of a machine that they are made for");
	struct dwr_callchain *cc = calloc(1, sizeof *cc);
	if (!cc)
		return &elfrw_err_nomem;
	cc->img = code;
	cc->debug = debug ? debug : code;
	if (!cc->debug->arch) {
		cc->own = *debug;
		cc->own.arch = code->arch;
		cc->debug = &cc->own;
	}
	struct elfrw_err *err = dwr_sections_init(&cc->secs, cc->debug);
	if (!err)
		err = open_note(cc);
	if (!err)
		err = open_tables(cc);
	if (err)
		dwr_callchain_close(cc);
	else
		*ret = cc;
	return err;
}

void dwr_callchain_close(struct dwr_callchain *cc)
{
	if (!cc)
		return;
	dwr_code_deinit(&cc->code);
	dwr_calls_deinit(&cc->calls);
	dwr_units_deinit(&cc->units);
	if (cc->has_note)
		dwr_icfold_deinit(&cc->note);
	if (cc->has_vt)
		dwr_vtables_deinit(&cc->vt);
	dwr_sections_deinit(&cc->secs);
	VEC_FREE(&cc->die);
	VEC_FREE(&cc->slot);
	VEC_FREE(&cc->holder);
	VEC_FREE(&cc->roots);
	VEC_FREE(&cc->reached);
	VEC_FREE(&cc->set);
	VEC_FREE(&cc->outer);
	free(cc->declared);
	free(cc->seen);
	free(cc);
}

const struct dwr_icfold *dwr_callchain_note(const struct dwr_callchain *cc)
{
	return cc->has_note ? &cc->note : NULL;
}

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

static uint32_t member_of(const struct dwr_callchain *cc, uint32_t unit)
{
	return cc->note.unit_member[unit];
}

/* The DIE that names member M in the tables, or 0. */
static uint64_t die_of(const struct dwr_callchain *cc, uint32_t m)
{
	if (cc->note.member[m].n_dies)
		return cc->note.dies[cc->note.member[m].die].die;
	return cc->declared ? cc->declared[m] : 0;
}

/* The DIE that stands for UNIT in the tables: 0 when it shares no code (and needs no marker),
 * UINT64_MAX when it has none. */
static uint64_t marker_of(const struct dwr_callchain *cc, uint32_t unit)
{
	uint32_t m = member_of(cc, unit);
	if (m == UINT32_MAX)
		return 0;
	uint64_t die = die_of(cc, m);
	return die ? die : UINT64_MAX;
}

/* The entries for SITE and CALLER. */
static size_t find_dcall(const struct dwr_callchain *cc, uint64_t site, uint64_t caller, size_t *n)
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

/* Members that DIE names: those of GROUP when there are any, else all. */
static struct elfrw_err *put_die(struct dwr_callchain *cc, uint64_t die, uint32_t group,
				 unit_set *set)
{
	size_t lo = first_die(cc, die);
	bool here = false;
	for (size_t i = lo; i < cc->die.len && cc->die.data[i].die == die; i++)
		here |= dwr_chain_group(cc, cc->die.data[i].unit) == group;
	for (size_t i = lo; i < cc->die.len && cc->die.data[i].die == die; i++)
		if (!here || dwr_chain_group(cc, cc->die.data[i].unit) == group)
			ELFRW_TRY(dwr_chain_put(set, cc->die.data[i].unit));
	return NULL;
}

/* Members of GROUP; with NAMELESS only those that no entry can name, unless there are none. */
static struct elfrw_err *put_group(struct dwr_callchain *cc, uint32_t group, bool nameless,
				   unit_set *set)
{
	const struct dwr_icfold_group *g = &cc->note.group[group];
	size_t before = set->len;
	for (uint32_t i = g->member; i < g->member + g->n_members; i++)
		if (!nameless || !die_of(cc, i)) /* a unit is a member once */
			ELFRW_TRY(put_among(set, before, cc->note.member[i].unit));
	return nameless && set->len == before ? put_group(cc, group, false, set) : NULL;
}

struct elfrw_err *dwr_chain_put_target(struct dwr_callchain *cc, uint32_t unit, uint64_t site,
				       uint64_t target, unit_set *set, bool *entered)
{
	const struct dwr_code_span *to = target ? dwr_code_at(&cc->code, target) : NULL;
	uint32_t group = to ? dwr_chain_group(cc, to->unit) : NO_SHARE;
	uint64_t marker = marker_of(cc, unit);
	size_t n = 0, at = marker == UINT64_MAX ? 0 : find_dcall(cc, site, marker, &n);
	*entered = n != 0;
	for (size_t i = 0; i < n; i++)
		ELFRW_TRY(put_die(cc, cc->calls.dcall.data[at + i].die, group, set));
	if (n || !to)
		return NULL;
	if (to->thunk || group == NO_SHARE) {
		if (!to->thunk && dwr_code_is_linkage(&cc->code, to->unit)) /* out of this file */
			return NULL;
		return dwr_chain_put(set, to->unit);
	}
	/* Without an entry it was a function that has no DIE; or the caller has none, and then it
	 * can be any. */
	return put_group(cc, group, cc->has_dcall && marker != UINT64_MAX, set);
}

struct elfrw_err *dwr_chain_follow(struct dwr_callchain *cc, unit_set *reached, bool *anything)
{
	if (++cc->walk == 0) {
		memset(cc->seen, 0, cc->note.map.n_units * sizeof *cc->seen);
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
	size_t lo = LOWER_BOUND(0, cc->note.n_vslots, mid, cc->note.vslot[mid].slot < place);
	if (lo < cc->note.n_vslots && cc->note.vslot[lo].slot == place)
		return cc->note.vslot[lo].unit;
	/* Small functions without alignment, thunks mostly, may be in one unit with their
	 * neighbour. */
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
			memset(cc->seen, 0, cc->note.map.n_units * sizeof *cc->seen);
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
				first = cc->note.group[dwr_chain_group(cc, s->unit)].member;
				n = cc->note.group[dwr_chain_group(cc, s->unit)].n_members;
			} else if (u == DWR_NO_UNIT)
				continue;
			for (uint32_t k = 0; k < n && !err; k++) {
				u = s ? cc->note.member[first + k].unit : u;
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

/* What the call through SLOT could have called: one function when the vtable's address is given. */
static struct elfrw_err *put_virtual(struct dwr_callchain *cc, uint64_t slot, uint64_t vtable,
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

/* What function CALLER, returned to at SITE, can have called so that the PC is in the code of
 * GROUP: members into SET. */
static struct elfrw_err *callees(struct dwr_callchain *cc, uint32_t caller, uint64_t site,
				 uint32_t group, uint64_t vtable, unit_set *set, struct called *how)
{
	const struct dwr_branch *b, *call = NULL;
	uint32_t n;
	uint64_t slot;
	bool entered = false, is_virtual = false;
	ELFRW_TRY(dwr_code_branches(&cc->code, caller, &b, &n));
	for (uint32_t i = 0; i < n && !call; i++)
		if (b[i].site == site && b[i].call)
			call = &b[i];
	if (!call) {
		how->anything = true;
		return NULL;
	}
	unit_set *r = &cc->reached;
	r->len = 0;
	/* An entry that names a member of this group is the shortest way. */
	uint64_t marker = marker_of(cc, caller);
	size_t n_entries = 0,
	       at = marker == UINT64_MAX ? 0 : find_dcall(cc, site, marker, &n_entries);
	for (size_t i = 0; i < n_entries; i++)
		ELFRW_TRY(put_die(cc, cc->calls.dcall.data[at + i].die, group, r));
	if (!n_entries && dwr_chain_find_vcall(cc, site, &slot)) {
		is_virtual = true;
		ELFRW_TRY(put_virtual(cc, slot, vtable, r));
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
		uint32_t k = member_of(cc, cc->set.data[i]);
		*m = (struct dwr_chain_member){ k, die_of(cc, k) };
	}
	f->n = (uint32_t)cc->set.len;
	f->decided = f->n == 1;
	f->by = f->decided ? by : DWR_BY_NOTHING;
	return NULL;
}

/* One frame; cc->outer is the set of the next outer one (empty: nothing known), cc->set becomes
 * this one's. */
static struct elfrw_err *resolve_frame(struct dwr_callchain *cc, uint64_t at, bool pc,
				       uint64_t site, uint64_t vtable, struct dwr_chain_frame *f,
				       struct dwr_chain *chain)
{
	cc->set.len = 0;
	const struct dwr_code_span *s = dwr_code_at(&cc->code, pc || !at ? at : at - 1);
	*f = (struct dwr_chain_frame){ .group = UINT32_MAX };
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
	struct called how = { .anything = !cc->outer.len };
	for (size_t i = 0; i < cc->outer.len && !how.anything; i++)
		ELFRW_TRY(callees(cc, cc->outer.data[i], site, group, vtable, &cc->set, &how));
	if (how.anything || !cc->set.len) {
		cc->set.len = 0;
		ELFRW_TRY(put_group(cc, group, false, &cc->set));
	}
	/* Members are numbered group by group, the kept one first. */
	for (size_t i = 0; i < cc->set.len; i++)
		cc->set.data[i] = member_of(cc, cc->set.data[i]);
	qsort(cc->set.data, cc->set.len, sizeof *cc->set.data, elfrw_u32_order);
	for (size_t i = 0; i < cc->set.len; i++)
		cc->set.data[i] = cc->note.member[cc->set.data[i]].unit;
	return put_frame(cc, f, chain, how.by);
}

/* Without .debug_icfold: the entry at the call site alone tells that the callee shares code. */
static struct elfrw_err *resolve_bare(struct dwr_callchain *cc, uint64_t site,
				      const struct dwr_chain_frame *outer,
				      struct dwr_chain_frame *f, struct dwr_chain *chain)
{
	size_t n = 0, at = find_dcall(cc, site, 0, &n);
	*f = (struct dwr_chain_frame){ .group = UINT32_MAX };
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
		if (cc->has_note) {
			ELFRW_TRY(resolve_frame(cc, addr[i], i == 0, site, vtable ? vtable[i] : 0,
						f, chain));
			unit_set t = cc->outer;
			cc->outer = cc->set;
			cc->set = t;
		} else if (site)
			ELFRW_TRY(resolve_bare(
				cc, site, i + 1 < n ? &chain->frame.data[i + 1] : NULL, f, chain));
		else
			*f = (struct dwr_chain_frame){ .group = UINT32_MAX };
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
