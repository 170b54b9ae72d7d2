/* calls.c: the calls of functions that share their code, with the names of those that are called;
 * from .debug_dcall, and from .debug_vcall and the slots of virtual tables. */
#include "dwarf/calls/calls.h"
#include "dwarf/calls/vtables.h"
#include "elfrw/base/search.h"
#include "icf/export/state.h"

/* A call that may lead to more functions than these says nothing. */
#define MAX_CALLEES 256

/* A function that a slot of some virtual table holds. */
struct slot {
	uint64_t slot;
	uint32_t member;
};

struct slots {
	struct slot *data; /* owned; sorted, each once */
	size_t len, cap;
};

static int slot_order(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

static int call_order(const void *a, const void *b)
{
	const struct icf_export_call *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->caller != y->caller)
		return x->caller < y->caller ? -1 : 1;
	if (x->slot != y->slot)
		return x->slot < y->slot ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static const char *member_name(const struct dwr_icfold *note, uint32_t member)
{
	const struct dwr_icfold_member *m = &note->member[member];
	return m->n_names ? note->names[m->name] : NULL;
}

/* The member that UNIT of the map is, or UINT32_MAX. */
static uint32_t member_of(const struct dwr_icfold *note, uint32_t unit)
{
	return unit < note->map.n_units ? note->unit_member[unit] : UINT32_MAX;
}

/* The member with DIE whose code holds AT.  A function in two parts has one DIE. */
static uint32_t caller_at(struct icf_export *x, uint64_t die, uint64_t at)
{
	const struct dwr_callchain *cc = dwr_lookup_tables(x->lookup);
	uint32_t unit;
	for (size_t k = 0; (unit = dwr_callchain_die_unit(cc, die, k)) != UINT32_MAX; k++) {
		if (unit >= x->note->map.n_units)
			continue;
		const struct elfrw_addrmap_unit *u = &x->note->map.unit[unit];
		if (at - u->body < u->old_end - u->old)
			return member_of(x->note, unit);
	}
	return UINT32_MAX;
}

/* The name of the function with DIE, which is called; NULL: not known.  Its cold part, which has
 * the DIE too, is not what calls lead to. */
static struct elfrw_err *callee_name(struct icf_export *x, uint64_t die, const char **ret)
{
	const struct dwr_callchain *cc = dwr_lookup_tables(x->lookup);
	uint32_t unit;
	*ret = NULL;
	for (size_t k = 0; x->note && (unit = dwr_callchain_die_unit(cc, die, k)) != UINT32_MAX;
	     k++) {
		uint32_t member = member_of(x->note, unit);
		const char *name = member != UINT32_MAX ? member_name(x->note, member) : NULL;
		if (name && (!*ret || strstr(*ret, ".cold")))
			*ret = name;
	}
	return *ret ? NULL : dwr_sym_die_name(x->sym, die, 0, ret);
}

static struct elfrw_err *add_direct(struct icf_export *x, const struct dwr_calls *calls)
{
	for (size_t i = 0; i < calls->dcall.len; i++) {
		const struct dwr_dcall *d = &calls->dcall.data[i];
		uint32_t caller = UINT32_MAX;
		const char *name, **slot;
		if (d->caller && x->note)
			caller = caller_at(x, d->caller, d->site - 1);
		if (d->caller && caller == UINT32_MAX)
			continue;
		/* A function calls itself, or jumps to its cold part, which has the same DIE. */
		if (d->caller == d->die &&
		    dwr_callchain_die_unit(dwr_lookup_tables(x->lookup), d->die, 1) != UINT32_MAX)
			continue;
		ELFRW_TRY(callee_name(x, d->die, &name));
		if (!name)
			continue;
		struct icf_export_call *c = VEC_PUSH(&x->call);
		if (!c || !(slot = VEC_PUSH(&x->callee)))
			return &elfrw_err_nomem;
		*slot = name;
		*c = (struct icf_export_call){ d->site, UINT64_MAX, caller,
					       (uint32_t)x->callee.len - 1, 1 };
	}
	return NULL;
}

static struct elfrw_err *add_slot(struct slots *slots, const struct dwr_vtable *t, uint64_t place,
				  uint32_t member)
{
	if (!t || member == UINT32_MAX)
		return NULL;
	struct slot *s = VEC_PUSH(slots);
	if (!s)
		return &elfrw_err_nomem;
	*s = (struct slot){ (place - t->point) / 8, member };
	return NULL;
}

/* Functions whose code was kept: slots with their address that were not redirected. */
static struct elfrw_err *add_kept(struct icf_export *x, const struct dwr_vtables *vt,
				  struct slots *slots)
{
	const struct dwr_icfold *n = x->note;
	for (size_t i = 0; i < vt->table.len; i++) {
		const struct dwr_vtable *t = &vt->table.data[i];
		for (uint64_t at = t->point; at < t->end && t->end - at >= 8; at += 8) {
			uint64_t value = dwr_vtables_value(&x->code, vt, at);
			uint32_t g;
			size_t lo = LOWER_BOUND(0, n->n_vslots, mid, n->vslot[mid].slot < at);
			if (!value || (lo < n->n_vslots && n->vslot[lo].slot == at) ||
			    !dwr_sym_group_at(x->sym, value, &g))
				continue;
			uint32_t kept = n->group[g].member;
			if (n->map.unit[n->member[kept].unit].body == value)
				ELFRW_TRY(add_slot(slots, t, at, kept));
		}
	}
	return NULL;
}

static struct elfrw_err *find_slots(struct icf_export *x, struct slots *slots)
{
	const struct dwr_icfold *n = x->note;
	const struct dwr_vtables *vt;
	ELFRW_TRY(dwr_callchain_vtables(dwr_lookup_tables(x->lookup), &vt));
	for (size_t i = 0; i < n->n_vslots; i++)
		ELFRW_TRY(add_slot(slots, dwr_vtables_find(vt, n->vslot[i].slot), n->vslot[i].slot,
				   member_of(n, n->vslot[i].unit)));
	ELFRW_TRY(add_kept(x, vt, slots));
	if (slots->len)
		qsort(slots->data, slots->len, sizeof *slots->data, slot_order);
	size_t k = 0;
	for (size_t i = 0; i < slots->len; i++)
		if (!i || slot_order(&slots->data[i - 1], &slots->data[i]))
			slots->data[k++] = slots->data[i];
	slots->len = k;
	return NULL;
}

/* A call through a slot may lead to any function that a virtual table has there: the names are
 * listed once for all calls of a slot. */
static struct elfrw_err *add_virtual(struct icf_export *x, const struct dwr_calls *calls,
				     const struct slots *slots)
{
	size_t first = x->callee.len;
	for (size_t i = 0; i < slots->len; i++) {
		const char *name = member_name(x->note, slots->data[i].member),
			   **slot = VEC_PUSH(&x->callee);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = name ? name : "";
	}
	for (size_t i = 0; i < calls->vcall.len; i++) {
		const struct dwr_vcall *v = &calls->vcall.data[i];
		size_t lo = LOWER_BOUND(0, slots->len, mid, slots->data[mid].slot < v->slot),
		       hi = LOWER_BOUND(lo, slots->len, mid, slots->data[mid].slot <= v->slot);
		struct icf_export_call *c = VEC_PUSH(&x->call);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct icf_export_call){ v->site, v->slot, UINT32_MAX, (uint32_t)(first + lo),
					       hi - lo > MAX_CALLEES ? 0 : (uint32_t)(hi - lo) };
	}
	return NULL;
}

struct elfrw_err *icf_export_read_calls(struct icf_export *x)
{
	ELFRW_TRY(dwr_lookup_open(x->sym, x->in->file, &x->lookup));
	struct dwr_callchain *cc = dwr_lookup_tables(x->lookup);
	if (!cc)
		return NULL;
	const struct dwr_calls *calls = dwr_callchain_calls(cc);
	ELFRW_TRY(add_direct(x, calls));
	if (calls->vcall.len && x->note) {
		struct slots slots = { 0 };
		struct elfrw_err *err = find_slots(x, &slots);
		if (!err)
			err = add_virtual(x, calls, &slots);
		VEC_FREE(&slots);
		ELFRW_TRY(err);
	}
	if (x->call.len)
		qsort(x->call.data, x->call.len, sizeof *x->call.data, call_order);
	return NULL;
}

size_t icf_export_calls_of(const struct icf_export *x, const struct icf_export_function *f)
{
	return LOWER_BOUND(0, x->call.len, mid, x->call.data[mid].site <= f->piece->lo);
}

bool icf_export_call_of(const struct icf_export *x, size_t i, const struct icf_export_function *f)
{
	const struct icf_export_call *c = &x->call.data[i];
	return c->caller == UINT32_MAX || c->caller == f->member;
}
