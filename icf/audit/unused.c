/* unused.c: what --gc-functions would remove, and what would then be left to fold.
 *
 * A choice of its own, because a function that is gone observes no addresses and is nobody's twin:
 * what folds is not the same with it and without it.  Only the marks and the sums are kept of this
 * choice. */
#include "icf/audit/audit.h"
#include "icf/audit/name.h"
#include "icf/fold/unused.h"
#include <stdlib.h>
#include <string.h>

static uint64_t text_after(const struct icf_run *run, const struct icf_plan *plan)
{
	uint64_t n = 0;
	for (uint32_t e = 0; e < plan->map.n_sections; e++) {
		const struct elfrw_addrmap_section *s = &plan->map.section[e];
		if (strncmp(run->img.section[s->shndx].name, ".text", 5) == 0)
			n += s->new_end - s->new_start;
	}
	return n;
}

static struct elfrw_err *take(struct icf_audit_unused *u, const struct icf_run *run)
{
	const struct icf_program *prog = &run->prog;
	u->alone = text_after(run, &run->plan);
	u->is = calloc(prog->unit.len + 1, 1);
	if (!u->is)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *unit = &prog->unit.data[i];
		u->is[i] = (unit->flags & ICF_UNIT_UNUSED) != 0;
		u->functions += u->is[i];
		u->bytes += u->is[i] ? unit->end - unit->start : 0;
	}
	return NULL;
}

/* Plans for both modes.  A plan changes the units' reasons. */
static struct elfrw_err *plan_modes(struct icf_audit_unused *u, struct icf_run *run,
				    struct icf_options *opt)
{
	struct icf_program *prog = &run->prog;
	struct icf_plan plan[ICF_AUDIT_MODES] = { { 0 } };
	struct icf_looked before;
	ELFRW_TRY(icf_looked_save(prog, &before));
	_Static_assert(ICF_AUDIT_ALL == 0, "the first plan helps to make the others");
	struct elfrw_err *err = NULL;
	for (int m = 0; m < ICF_AUDIT_MODES && !err; m++) {
		for (uint32_t i = 0; i < prog->unit.len; i++)
			prog->unit.data[i].reason = before.reason[i];
		opt->mode = m == ICF_AUDIT_ALL ? ICF_MODE_ALL : ICF_MODE_SAFE;
		err = m == ICF_AUDIT_ALL
			      ? icf_make_plan(prog, opt, &plan[m])
			      : icf_make_safe_plan(prog, opt, &plan[ICF_AUDIT_ALL], &plan[m]);
		if (!err) {
			u->with[m] = text_after(run, &plan[m]);
			u->duplicated[m] = plan[m].folded_bytes;
		}
	}
	for (int m = 0; m < ICF_AUDIT_MODES; m++)
		icf_plan_deinit(&plan[m]);
	icf_looked_deinit(&before);
	return err;
}

static struct elfrw_err *choose(struct icf_audit_unused *u, struct icf_run *run,
				struct icf_options *opt)
{
	ELFRW_TRY(icf_run_choose(run, opt));
	const char *obstacle = icf_unused_obstacle(&run->prog, opt);
	if (obstacle) {
		u->obstacle = strdup(obstacle);
		return u->obstacle ? NULL : &elfrw_err_nomem;
	}
	ELFRW_TRY(take(u, run));
	return plan_modes(u, run, opt);
}

struct elfrw_err *icf_audit_find_unused(struct icf_audit_unused *u, struct icf_run *run,
					const struct icf_options *base)
{
	struct icf_options opt = *base;
	struct icf_looked before;
	opt.gc_functions = ICF_GC_OBJECTS;
	/* The record of an earlier folding, which the output could not keep, does not matter. */
	opt.strip_debug = true;
	ELFRW_TRY(icf_looked_save(&run->prog, &before));
	struct elfrw_err *err = choose(u, run, &opt);
	icf_plan_deinit(&run->plan);
	icf_looked_restore(&before, &run->prog);
	icf_looked_deinit(&before);
	return err;
}

struct order {
	const struct icf_audit *a;
	enum icf_audit_sort sort;
};

static int down(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

/* Most bytes first; what is not known comes last among equals. */
static int row_order(const void *p, const void *q, void *ctx)
{
	const struct icf_audit_row *x = p, *y = q;
	const struct order *o = ctx;
	int c = o->sort == ICF_SORT_NAME    ? 0
		: o->sort == ICF_SORT_COUNT ? down(x->unused, y->unused)
					    : down(x->unused_bytes, y->unused_bytes);
	if (c)
		return c;
	if (x->key == ICF_NONE || y->key == ICF_NONE)
		return x->key == y->key ? 0 : x->key == ICF_NONE ? 1 : -1;
	return strcmp(icf_pool_text(&o->a->pool, x->key), icf_pool_text(&o->a->pool, y->key));
}

struct elfrw_err *icf_audit_unused_table(const struct icf_audit *a,
					 const struct icf_audit_options *opt,
					 enum icf_dimension dim, icf_audit_rows *ret)
{
	ELFRW_TRY(icf_audit_table(a, opt, dim, ret));
	size_t n = 0;
	for (size_t k = 0; k < ret->len; k++)
		if (ret->data[k].unused)
			ret->data[n++] = ret->data[k];
	ret->len = n;
	if (n)
		qsort_r(ret->data, n, sizeof *ret->data, row_order,
			&(struct order){ a, opt->sort });
	return NULL;
}

static int unit_order(const void *p, const void *q, void *ctx)
{
	uint32_t x = *(const uint32_t *)p, y = *(const uint32_t *)q;
	const struct order *o = ctx;
	int c = o->sort == ICF_SORT_NAME ? strcmp(icf_audit_name(o->a, x), icf_audit_name(o->a, y))
					 : down(icf_audit_size(o->a, x), icf_audit_size(o->a, y));
	return c ? c : x < y ? -1 : x > y;
}

struct elfrw_err *icf_audit_unused_list(const struct icf_audit *a,
					const struct icf_audit_options *opt, icf_audit_units *ret)
{
	ret->len = 0;
	for (uint32_t i = 0; i < a->run.prog.unit.len && a->unused.is; i++) {
		uint32_t *to = a->unused.is[i] && a->unit[i].match ? VEC_PUSH(ret) : NULL;
		if (to)
			*to = i;
		else if (a->unused.is[i] && a->unit[i].match)
			return &elfrw_err_nomem;
	}
	if (ret->len)
		qsort_r(ret->data, ret->len, sizeof *ret->data, unit_order,
			&(struct order){ a, opt->sort });
	return NULL;
}
