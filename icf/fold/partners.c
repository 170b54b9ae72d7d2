/* partners.c: units that stay because a target of theirs stays.
 *
 * A folded unit's copy must lead to the same code as the unit did.  If the two targets keep a copy
 * each, a stack would show one function instead of the other.  So the unit stays, and its users may
 * have to stay as well, up whole chains of callers.  Each unit changes to staying at most once.
 * Then only the references to it are examined again: those of its own users and of the users of
 * units folded into it.  In all, each reference of a group is examined twice. */
#include "icf/fold/plan.h"
#include <stdlib.h>

/* Reference REF of unit UNIT (of a group), or entry ENTRY of the table that it names, leads to the
 * current unit.  The landing pads in other units count as references behind the last one. */
struct use {
	uint32_t unit, ref, entry;
};

struct partners {
	struct icf_program *prog;
	struct icf_plan *plan;
	icf_unit_list queue;    /* units that stay now */
	uint32_t *member_first; /* by unit, into member: the units folded into it */
	uint32_t *member;
	size_t *use_first; /* by unit, into use */
	struct use *use;
};

static uint32_t n_refs(const struct icf_program *prog, uint32_t i)
{
	uint32_t n;
	icf_unit_pads(prog, i, &n);
	return prog->unit.data[i].n_ref + n;
}

static uint32_t entries(const struct icf_program *prog, uint32_t i, uint32_t r)
{
	if (r >= prog->unit.data[i].n_ref)
		return 1;
	const struct icf_ref *ref = &icf_unit_refs(prog, &prog->unit.data[i])[r];
	if (ref->table == ICF_NONE)
		return ref->unit != ICF_NONE;
	return icf_names_again(prog, ref) ? 0 : prog->table.data[ref->table].n;
}

static uint32_t target(const struct icf_program *prog, uint32_t i, uint32_t r, uint32_t entry)
{
	uint32_t n;
	if (r >= prog->unit.data[i].n_ref)
		return icf_unit_pads(prog, i, &n)[r - prog->unit.data[i].n_ref].unit;
	const struct icf_ref *ref = &icf_unit_refs(prog, &prog->unit.data[i])[r];
	return ref->table != ICF_NONE
		       ? prog->dataref.data[prog->table.data[ref->table].entry + entry].unit
		       : ref->unit;
}

/* Unit I is folded.  Does entry E of reference R lead to another copy in its keeper? */
static bool astray_at(const struct partners *p, uint32_t i, uint32_t r, uint32_t e)
{
	uint32_t a = target(p->prog, i, r, e), b = target(p->prog, p->plan->kept[i], r, e);
	return p->plan->kept[a] != p->plan->kept[b];
}

static bool leads_astray(const struct partners *p, uint32_t i)
{
	for (uint32_t r = 0, n = n_refs(p->prog, i); r < n; r++)
		for (uint32_t e = 0; e < entries(p->prog, i, r); e++)
			if (astray_at(p, i, r, e))
				return true;
	return false;
}

static struct elfrw_err *stay(struct partners *p, uint32_t i)
{
	uint32_t *slot = VEC_PUSH(&p->queue);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = i;
	p->prog->unit.data[i].reason = ICF_PARTNER_STAYS;
	return NULL;
}

/* Calls VISIT for each use by a unit of a group. */
static void each_use(struct partners *p, void (*visit)(struct partners *, uint32_t, struct use))
{
	for (uint32_t i = 0; i < p->prog->unit.len; i++) {
		if (p->plan->kept[i] == i && p->member_first[i] == p->member_first[i + 1])
			continue;
		for (uint32_t r = 0, n = n_refs(p->prog, i); r < n; r++)
			for (uint32_t e = 0; e < entries(p->prog, i, r); e++)
				visit(p, target(p->prog, i, r, e), (struct use){ i, r, e });
	}
}

static void count_use(struct partners *p, uint32_t t, struct use use)
{
	(void)use;
	p->use_first[t + 2]++;
}

static void put_use(struct partners *p, uint32_t t, struct use use)
{
	p->use[p->use_first[t + 1]++] = use;
}

static struct elfrw_err *find_uses(struct partners *p)
{
	uint32_t n = (uint32_t)p->prog->unit.len;
	const uint32_t *kept = p->plan->kept;
	p->member_first = calloc((size_t)n + 2, sizeof *p->member_first);
	p->member = malloc(((size_t)n + 1) * sizeof *p->member);
	p->use_first = calloc((size_t)n + 2, sizeof *p->use_first);
	if (!p->member_first || !p->member || !p->use_first)
		return &elfrw_err_nomem;
	/* Counts are stored two places ahead, so that filling moves each start to its final place.
	 */
	for (uint32_t i = 0; i < n; i++)
		p->member_first[kept[i] + 2 <= n ? kept[i] + 2 : n + 1] += kept[i] != i;
	for (uint32_t i = 2; i < n + 2; i++)
		p->member_first[i] += p->member_first[i - 1];
	for (uint32_t i = 0; i < n; i++)
		if (kept[i] != i)
			p->member[p->member_first[kept[i] + 1]++] = i;
	each_use(p, count_use);
	for (uint32_t i = 2; i < n + 2; i++)
		p->use_first[i] += p->use_first[i - 1];
	p->use = malloc((p->use_first[n + 1] + 1) * sizeof *p->use);
	if (!p->use)
		return &elfrw_err_nomem;
	each_use(p, put_use);
	return NULL;
}

/* Unit T now stays. */
static struct elfrw_err *follow(struct partners *p, uint32_t t)
{
	uint32_t *kept = p->plan->kept;
	for (size_t k = p->use_first[t]; k < p->use_first[t + 1]; k++) {
		struct use x = p->use[k];
		if (kept[x.unit] != x.unit && astray_at(p, x.unit, x.ref, x.entry)) {
			ELFRW_TRY(stay(p, x.unit));
			kept[x.unit] = x.unit;
		}
		for (uint32_t m = p->member_first[x.unit]; m < p->member_first[x.unit + 1]; m++) {
			uint32_t i = p->member[m];
			if (kept[i] == i || !astray_at(p, i, x.ref, x.entry))
				continue;
			ELFRW_TRY(stay(p, i));
			kept[i] = i;
		}
	}
	return NULL;
}

struct elfrw_err *icf_keep_partners(struct icf_program *prog, struct icf_plan *plan)
{
	struct partners p = { .prog = prog, .plan = plan };
	struct elfrw_err *err = NULL;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++)
		if (plan->kept[i] != i && leads_astray(&p, i))
			err = stay(&p, i);
	if (!err && p.queue.len)
		err = find_uses(&p);
	for (size_t i = 0; i < p.queue.len && !err; i++)
		plan->kept[p.queue.data[i]] = p.queue.data[i];
	for (size_t i = 0; i < p.queue.len && !err; i++)
		err = follow(&p, p.queue.data[i]);
	VEC_FREE(&p.queue);
	free(p.member_first);
	free(p.member);
	free(p.use_first);
	free(p.use);
	return err;
}

/* The pads that lead from code that stays into code that is folded: that code stays, too.  False:
 * there are none. */
static bool keep_led_to(struct icf_program *prog, struct icf_plan *plan, bool all)
{
	bool any = false;
	for (size_t i = 0; i < prog->pad.len; i++) {
		uint32_t from = prog->pad.data[i].from, t = prog->pad.data[i].unit;
		if (plan->kept[t] == t || (!all && plan->kept[from] != from))
			continue;
		plan->kept[t] = t;
		prog->unit.data[t].reason = ICF_PARTNER_STAYS;
		any = true;
	}
	return any;
}

/* More rounds than any real program takes. */
#define MAX_ROUNDS 8

struct elfrw_err *icf_keep_pads(struct icf_program *prog, struct icf_plan *plan)
{
	for (unsigned round = 0; keep_led_to(prog, plan, round >= MAX_ROUNDS); round++)
		ELFRW_TRY(icf_keep_partners(prog, plan));
	return NULL;
}
