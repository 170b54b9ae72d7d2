/* calls.c: see calls.h.
 *
 * After folding, a call is ambiguous if its callee shares its code.  The call's return address then
 * says which function was meant.  If the caller shares its code, too, the entry holds for one of
 * the callers only and stands behind the marker of that caller.
 *
 * Tail jumps to shared functions get entries as well, with the address after the jump as key.  No
 * return address equals such a key, since the instruction before a return address is a call.  So a
 * reader that does not know of these entries never meets one.  A reader that follows tail calls
 * learns which function a jump into shared code meant.
 *
 * The DIEs of shared functions come from the .debug_icfold section just made; behind those of the
 * input are some that stand in for functions without one.  What else .debug_info says, of indirect
 * calls that the code does not explain and of functions without a DIE of their own, was found when
 * it was rewritten (call_query.h), or is looked for here if it was not. */
#include "icf/apply/calls.h"
#include "dwarf/calls/call_sites.h"
#include "dwarf/calls/calls.h"
#include "dwarf/calls/vtables.h"
#include "dwarf/return_address.h"
#include "elfrw/base/search.h"
#include "icf/apply/guess.h"
#include <stdlib.h>
#include <string.h>

#define SHARED   (ELFRW_UNIT_FOLDED | ELFRW_UNIT_KEPT)
#define MAX_SLOT 4096

/* A DIE that leads to the DIE of a shared function. */
struct lead {
	uint64_t die, to; /* to 0: ambiguous */
};

struct named {
	const char *name;
	uint64_t die;
};

struct job {
	struct icf_apply *a;
	struct icf_call_stats *stats;
	struct dwr_sections secs;
	struct dwr_units units;
	bool refold;   /* the input was folded before: its whole tables are needed */
	uint64_t *die; /* by unit: the function's DIE, 0: none */
	uint64_t slots[MAX_SLOT / 64]; /* slots that hold a shared function in any vtable */
	bool any_slot;
	struct dwr_calls in;       /* the input's tables */
	struct icf_calls found;    /* the query's */
	struct dwr_call_found own; /* what was looked for here */
	const struct dwr_call_sites *site;
	VEC(struct lead) lead;       /* sorted by die */
	VEC(struct named) named;     /* sorted by name */
	VEC(struct dwr_dcall) dcall; /* the output's */
	VEC(struct dwr_vcall) vcall;
};

static struct elfrw_err *open_info(struct job *j)
{
	static const uint8_t needed[] = { DWR_INFO,     DWR_ABBREV,      DWR_STR,
					  DWR_LINE_STR, DWR_STR_OFFSETS, DWR_ADDR };
	if (j->units.len)
		return NULL;
	for (unsigned i = 0; i < sizeof needed; i++)
		ELFRW_TRY(dwr_sections_load(&j->secs, needed[i]));
	return dwr_units_read(&j->secs, &j->units);
}

static struct elfrw_err *collect_dies(struct job *j)
{
	j->die = calloc(j->a->prog->unit.len + 1, sizeof *j->die);
	if (!j->die)
		return &elfrw_err_nomem;
	const struct icf_shared *x = &j->a->shared;
	for (size_t i = x->noted ? x->n_dies : 0; i-- > 0;) /* the first of each unit counts */
		if (x->die[i].unit < j->a->prog->unit.len)
			j->die[x->die[i].unit] = x->die[i].die;
	return NULL;
}

/* Is there a shared function without a DIE that gives its address, but with a name of its own, that
 * a call may need? */
static bool any_nameless(const struct job *j)
{
	const struct icf_call_query *q = &j->a->query;
	for (size_t i = 0; i < q->n; i++)
		if (!j->die[q->unit[i]])
			return true;
	return false;
}

/* Reads the call sites of indirect calls, and finds the declarations of nameless functions. */
static struct elfrw_err *read_sites(struct job *j)
{
	const struct icf_call_query *q = &j->a->query;
	const struct dwr_call_found *found = &q->answer;
	if (!q->answered) {
		found = &j->own;
		ELFRW_TRY(dwr_call_sites_read(&j->secs, &j->units, &q->wanted, j->a->opt->threads,
					      &j->own));
	}
	j->site = &found->site;
	for (size_t i = 0; i < q->n; i++)
		if (!j->die[q->unit[i]])
			j->die[q->unit[i]] = found->die[i];
	return NULL;
}

/* Collects the slots that hold a shared function. */
static struct elfrw_err *collect_slots(struct job *j)
{
	const struct icf_shared *x = &j->a->shared;
	if (!x->noted || !x->vslot.len)
		return NULL;
	struct dwr_vtables vt;
	ELFRW_TRY(dwr_vtables_read(j->a->prog->img, j->a->prog->img, &vt));
	for (size_t i = 0; i < x->vslot.len; i++) {
		const struct dwr_vtable *t = dwr_vtables_find(&vt, x->vslot.data[i].slot);
		uint64_t k = t ? (x->vslot.data[i].slot - t->point) / 8 : MAX_SLOT;
		if (k < MAX_SLOT) {
			j->slots[k / 64] |= UINT64_C(1) << (k & 63);
			j->any_slot = true;
		}
	}
	dwr_vtables_deinit(&vt);
	return NULL;
}

static bool needed_slot(const struct job *j, uint64_t slot)
{
	return slot < MAX_SLOT && (j->slots[slot / 64] >> (slot & 63) & 1);
}

static int lead_order(const void *a, const void *b)
{
	const struct lead *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

static int named_order(const void *a, const void *b)
{
	const struct named *x = a, *y = b;
	int c = strcmp(x->name, y->name);
	return c ? c : x->die < y->die ? -1 : x->die > y->die;
}

static struct elfrw_err *push_lead(struct job *j, uint64_t die, uint64_t to)
{
	struct lead *l = VEC_PUSH(&j->lead);
	if (!l)
		return &elfrw_err_nomem;
	*l = (struct lead){ die, to };
	return NULL;
}

static struct elfrw_err *push_named(struct job *j, const char *name, uint64_t die)
{
	struct named *n = VEC_PUSH(&j->named);
	if (!n)
		return &elfrw_err_nomem;
	*n = (struct named){ name, die };
	return NULL;
}

/* Collects the DIEs that lead to the shared function UNIT, whose aliases begin at ALIAS. */
static struct elfrw_err *lead_to(struct job *j, uint32_t unit, size_t alias,
				 struct dwr_abbrev_table *table)
{
	const struct icf_shared *x = &j->a->shared;
	const uint64_t die = j->die[unit];
	struct dwr_die_chain chain = { .n = 0 };
	if (die < j->secs.sec[DWR_INFO].size)
		ELFRW_TRY(dwr_die_chain(&j->secs, &j->units, table, die, &chain));
	for (unsigned k = 0; k < chain.n; k++)
		ELFRW_TRY(push_lead(j, chain.die[k], die));
	if (x->name[unit])
		ELFRW_TRY(push_named(j, x->name[unit], die));
	for (; alias < x->alias.len && x->alias.data[alias].unit == unit; alias++)
		ELFRW_TRY(push_named(j, x->alias.data[alias].name, die));
	return NULL;
}

/* Collects the way from declarations and abstract instances to the DIEs of shared functions, by
 * reference and by name.  A DIE that leads to two functions leads nowhere. */
static struct elfrw_err *collect_leads(struct job *j)
{
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_err *err = NULL;
	const struct icf_shared *x = &j->a->shared;
	const struct elfrw_addrmap *map = &j->a->plan->map;
	size_t alias = 0;
	for (uint32_t i = 0; x->noted && i < map->n_units && !err; i++) {
		while (alias < x->alias.len && x->alias.data[alias].unit < i)
			alias++;
		if (map->unit[i].flags & SHARED && j->die[i])
			err = lead_to(j, i, alias, &table);
	}
	dwr_abbrev_deinit(&table);
	ELFRW_TRY(err);
	if (j->lead.len)
		qsort(j->lead.data, j->lead.len, sizeof *j->lead.data, lead_order);
	size_t n = 0;
	for (size_t i = 0; i < j->lead.len; i++) {
		const struct lead *l = &j->lead.data[i];
		if (n && j->lead.data[n - 1].die == l->die) {
			if (j->lead.data[n - 1].to != l->to)
				j->lead.data[n - 1].to = 0;
		} else
			j->lead.data[n++] = *l;
	}
	j->lead.len = n;
	if (j->named.len)
		qsort(j->named.data, j->named.len, sizeof *j->named.data, named_order);
	n = 0;
	for (size_t i = 0; i < j->named.len; i++) {
		const struct named *l = &j->named.data[i];
		if (n && strcmp(j->named.data[n - 1].name, l->name) == 0) {
			if (j->named.data[n - 1].die != l->die)
				j->named.data[n - 1].die = 0;
		} else
			j->named.data[n++] = *l;
	}
	j->named.len = n;
	return NULL;
}

/* The DIE of the shared function that DIE (in any of its forms) means; 0: no shared function, or
 * unknown. */
static struct elfrw_err *resolve(struct job *j, struct dwr_abbrev_table *table, uint64_t die,
				 uint64_t *ret)
{
	struct dwr_die_chain chain;
	*ret = 0;
	const struct lead *lead = j->lead.data;
	size_t i = LOWER_BOUND(0, j->lead.len, mid, lead[mid].die < die);
	if (i < j->lead.len && lead[i].die == die) {
		*ret = lead[i].to;
		return NULL;
	}
	ELFRW_TRY(dwr_die_chain(&j->secs, &j->units, table, die, &chain));
	const char *name = chain.name;
	if (!name)
		return NULL;
	const struct named *named = j->named.data;
	i = LOWER_BOUND(0, j->named.len, mid, strcmp(named[mid].name, name) < 0);
	if (i < j->named.len && !strcmp(named[i].name, name))
		*ret = named[i].die;
	return NULL;
}

static uint64_t new_site(const struct job *j, uint64_t site)
{
	elfrw_addrmap_end(&j->a->plan->map, site, &site);
	return site;
}

/* Adds the entry for a call at old address SITE.  HINT: its caller's DIE if the input says it, else
 * 0. */
static struct elfrw_err *push_direct(struct job *j, uint64_t site, uint64_t die, uint64_t hint)
{
	uint32_t caller = elfrw_addrmap_find(&j->a->plan->map, dwr_call_at(site));
	uint64_t marker = hint;
	if (caller != ELFRW_NO_UNIT && (j->a->plan->map.unit[caller].flags & ELFRW_UNIT_REMOVED))
		return NULL;
	if (caller != ELFRW_NO_UNIT && (j->a->plan->map.unit[caller].flags & SHARED)) {
		if (!marker)
			marker = j->die[caller];
		if (!marker) {
			j->stats->no_die++;
			return NULL;
		}
	}
	struct dwr_dcall *c = VEC_PUSH(&j->dcall);
	if (!c)
		return &elfrw_err_nomem;
	*c = (struct dwr_dcall){ new_site(j, site), die, marker };
	return NULL;
}

static struct elfrw_err *push_virtual(struct job *j, uint64_t site, uint64_t slot)
{
	uint32_t caller = elfrw_addrmap_find(&j->a->plan->map, dwr_call_at(site));
	if ((!j->refold && !needed_slot(j, slot)) ||
	    (caller != ELFRW_NO_UNIT && (j->a->plan->map.unit[caller].flags & ELFRW_UNIT_REMOVED)))
		return NULL;
	struct dwr_vcall *c = VEC_PUSH(&j->vcall);
	if (!c)
		return &elfrw_err_nomem;
	*c = (struct dwr_vcall){ new_site(j, site), slot };
	return NULL;
}

/* Does the code itself show the callee at SITE? */
static bool decoded(const struct job *j, uint64_t site)
{
	size_t lo = LOWER_BOUND(0, j->found.call.len, mid, j->found.call.data[mid].site < site);
	return lo < j->found.call.len && j->found.call.data[lo].site == site;
}

static struct elfrw_err *take_direct(struct job *j, struct icf_guesses *g)
{
	for (size_t i = 0; i < j->found.call.len; i++) {
		const struct icf_call *c = &j->found.call.data[i];
		bool guess;
		ELFRW_TRY(icf_guesses_ask(g, j->a, c, &guess));
		if (guess)
			continue;
		j->stats->tail += c->tail;
		if (j->die[c->callee])
			ELFRW_TRY(push_direct(j, c->site, j->die[c->callee], 0));
		else
			j->stats->no_die++;
	}
	return NULL;
}

static struct elfrw_err *take_found(struct job *j)
{
	struct icf_guesses g;
	struct elfrw_err *err = icf_guesses_init(&g, j->a);
	if (!err)
		err = take_direct(j, &g);
	icf_guesses_deinit(&g);
	ELFRW_TRY(err);
	for (size_t i = 0; i < j->found.vcall.len; i++)
		ELFRW_TRY(
			push_virtual(j, j->found.vcall.data[i].site, j->found.vcall.data[i].slot));
	return NULL;
}

static struct elfrw_err *take_input(struct job *j, struct dwr_abbrev_table *table)
{
	size_t before = j->dcall.len + j->vcall.len;
	for (size_t i = 0; i < j->in.dcall.len; i++) {
		const struct dwr_dcall *c = &j->in.dcall.data[i];
		uint64_t die;
		if (j->refold) {
			ELFRW_TRY(push_direct(j, c->site, c->die, c->caller));
			continue;
		}
		if (decoded(j, c->site))
			continue;
		ELFRW_TRY(resolve(j, table, c->die, &die));
		if (die)
			ELFRW_TRY(push_direct(j, c->site, die, 0));
	}
	for (size_t i = 0; i < j->in.vcall.len; i++)
		ELFRW_TRY(push_virtual(j, j->in.vcall.data[i].site, j->in.vcall.data[i].slot));
	j->stats->taken = j->dcall.len + j->vcall.len - before;
	j->stats->pruned = j->in.dcall.len + j->in.vcall.len - j->stats->taken;
	return NULL;
}

static struct elfrw_err *take_sites(struct job *j, struct dwr_abbrev_table *table)
{
	size_t before = j->dcall.len + j->vcall.len;
	for (size_t i = 0; j->site && i < j->site->len; i++) {
		const struct dwr_call_site *s = &j->site->data[i];
		uint64_t die = 0;
		if (s->origin)
			ELFRW_TRY(resolve(j, table, s->origin, &die));
		if (die)
			ELFRW_TRY(push_direct(j, s->site, die, 0));
		else if (s->slot != DWR_NO_SLOT)
			ELFRW_TRY(push_virtual(j, s->site, s->slot));
	}
	j->stats->from_sites = j->dcall.len + j->vcall.len - before;
	j->stats->unknown = j->found.indirect.len - (j->stats->from_sites < j->found.indirect.len
							     ? j->stats->from_sites
							     : j->found.indirect.len);
	return NULL;
}

static struct elfrw_err *put(struct job *j, enum dwr_sec id, uint8_t *data, size_t size)
{
	const struct dwr_section *s = &j->secs.sec[id];
	struct elfrw_output *out = j->a->out;
	if (!data) {
		if (s->shndx)
			elfrw_output_drop(out, s->shndx);
		return NULL;
	}
	if (!s->shndx)
		return elfrw_output_add(out, s->name, data, size, 0, 1);
	uint8_t *packed;
	size_t packed_size;
	ELFRW_TRY(dwr_section_pack(s, data, size, j->a->opt->threads, &packed, &packed_size));
	elfrw_output_replace(out, s->shndx, packed, packed_size);
	return NULL;
}

static struct elfrw_err *write_tables(struct job *j)
{
	unsigned address_size = j->a->prog->arch->address_size;
	uint8_t *data;
	size_t size;
	ELFRW_TRY(dwr_dcall_write(j->dcall.data, &j->dcall.len, address_size, &data, &size));
	j->stats->direct = j->dcall.len;
	j->stats->direct_size = size;
	ELFRW_TRY(put(j, DWR_DCALL, data, size));
	ELFRW_TRY(dwr_vcall_write(j->vcall.data, &j->vcall.len, address_size, &data, &size));
	j->stats->virtuals = j->vcall.len;
	j->stats->virtual_size = size;
	return put(j, DWR_VCALL, data, size);
}

/* Do functions share code, and does .debug_icfold say so? */
static bool shares_code(const struct icf_apply *a)
{
	const struct elfrw_addrmap *map = &a->plan->map;
	for (uint32_t i = 0; a->shared.noted && i < map->n_units; i++)
		if ((map->unit[i].flags & ELFRW_UNIT_FOLDED) &&
		    !(map->unit[i].flags & ELFRW_UNIT_REMOVED))
			return true;
	return false;
}

static struct elfrw_err *run(struct job *j)
{
	struct icf_apply *a = j->a;
	struct dwr_abbrev_table table = { 0 };
	ELFRW_TRY(dwr_sections_init(&j->secs, a->prog->img));
	if (!j->secs.sec[DWR_INFO].shndx)
		return NULL;
	bool had = j->secs.sec[DWR_DCALL].shndx || j->secs.sec[DWR_VCALL].shndx;
	j->refold = had && j->secs.sec[DWR_ICFOLD].shndx;
	const bool shares = shares_code(a);
	if (!shares && !had)
		return NULL;
	ELFRW_TRY(collect_dies(j));
	ELFRW_TRY(collect_slots(j));
	if (!a->query.scanned)
		ELFRW_TRY(icf_scan_calls(a->prog, &a->plan->map, false, a->opt->threads,
					 &a->query.found));
	j->found = a->query.found;
	if (!shares)
		j->found.indirect.len = j->found.vcall.len = 0;
	if (had || j->found.indirect.len || any_nameless(j)) {
		ELFRW_TRY(open_info(j));
		ELFRW_TRY(read_sites(j));
		if (had || j->found.indirect.len)
			ELFRW_TRY(dwr_calls_read(&j->secs, &j->units, &j->in));
		if (j->in.dcall.len || (j->site && j->site->len))
			ELFRW_TRY(collect_leads(j));
	}
	ELFRW_TRY(take_found(j));
	struct elfrw_err *err = take_input(j, &table);
	if (!err)
		err = take_sites(j, &table);
	dwr_abbrev_deinit(&table);
	return err ? err : write_tables(j);
}

struct elfrw_err *icf_apply_calls(struct icf_apply *a, struct icf_call_stats *stats)
{
	*stats = (struct icf_call_stats){ 0 };
	if (a->opt->strip_debug)
		return NULL;
	struct job *j = calloc(1, sizeof *j);
	if (!j)
		return &elfrw_err_nomem;
	j->a = a;
	j->stats = stats;
	struct elfrw_err *err = run(j);
	dwr_sections_deinit(&j->secs);
	dwr_units_deinit(&j->units);
	dwr_calls_deinit(&j->in);
	dwr_call_found_deinit(&j->own);
	free(j->die);
	VEC_FREE(&j->lead);
	VEC_FREE(&j->named);
	VEC_FREE(&j->dcall);
	VEC_FREE(&j->vcall);
	free(j);
	return err;
}
