/* diff.c: compares the audits of two builds.
 *
 * Addresses of two builds cannot be compared, so groups are the same if they share names.  Each
 * group of the new build takes the old group with most of its names, if no earlier group took it.
 * The deltas of all groups then add up to the total change. */
#include "elfrw/base/printable.h"
#include "icf/audit/diff.h"
#include "icf/audit/name.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* The linkage name.  The demangled name is shared by the constructors of a class, and by its
 * destructors. */
static const char *symbol(const struct icf_audit *a, uint32_t unit, char buf[32])
{
	return icf_unit_name(&a->run.prog, unit, buf);
}

static struct elfrw_err *add_change(struct icf_audit_diff *d, uint32_t old, uint32_t new, int m)
{
	uint64_t before = old == ICF_NONE ? 0 : d->a[0]->group.data[old].saving[m];
	uint64_t after = new == ICF_NONE ? 0 : d->a[1]->group.data[new].saving[m];
	if (before == after)
		return NULL;
	struct icf_audit_change *c = VEC_PUSH(&d->change);
	if (!c)
		return &elfrw_err_nomem;
	*c = (struct icf_audit_change){ old, new, (int64_t)(after - before) };
	return NULL;
}

struct match {
	struct icf_pool name;  /* names of the members of old groups */
	VEC(uint32_t) by_name; /* by name: its group */
	uint32_t *votes;       /* by old group */
	uint8_t *taken;
};

/* The free old group that shares most names with group G of the new build, or ICF_NONE. */
static uint32_t best_match(const struct icf_audit_diff *d, const struct match *m,
			   const struct icf_audit_group *g)
{
	uint32_t best = ICF_NONE, n = 0;
	char buf[32];
	for (int pass = 0; pass < 2; pass++)
		for (uint32_t k = g->member; k < g->member + g->count; k++) {
			const char *s = symbol(d->a[1], d->a[1]->member.data[k], buf);
			uint32_t name = icf_pool_find(&m->name, s, strlen(s));
			uint32_t old = name == ICF_POOL_NONE ? ICF_NONE : m->by_name.data[name];
			if (old == ICF_NONE)
				continue;
			if (pass == 1)
				m->votes[old] = 0;
			else if (++m->votes[old] > n && !m->taken[old]) {
				n = m->votes[old];
				best = old;
			}
		}
	return best;
}

static struct elfrw_err *compare_groups(struct icf_audit_diff *d, struct match *m, int mode)
{
	const struct icf_audit *old = d->a[0], *new = d->a[1];
	char buf[32];
	for (uint32_t g = 0; g < old->group.len; g++)
		for (uint32_t k = 0; k < old->group.data[g].count; k++) {
			const char *s =
				symbol(old, old->member.data[old->group.data[g].member + k], buf);
			uint32_t name = icf_pool_add(&m->name, s, strlen(s));
			if (name == ICF_POOL_NONE || !VEC_RESERVE(&m->by_name, (size_t)name + 1))
				return &elfrw_err_nomem;
			m->by_name.data[name] = g;
		}
	for (uint32_t g = 0; g < new->group.len; g++) {
		uint32_t o = best_match(d, m, &new->group.data[g]);
		if (o != ICF_NONE)
			m->taken[o] = 1;
		ELFRW_TRY(add_change(d, o, g, mode));
	}
	for (uint32_t g = 0; g < old->group.len; g++)
		if (!m->taken[g])
			ELFRW_TRY(add_change(d, g, ICF_NONE, mode));
	return NULL;
}

static struct elfrw_err *compare_families(struct icf_audit_diff *d,
					  const struct icf_audit_options *opt)
{
	icf_audit_rows row[2] = { 0 };
	struct elfrw_err *err = NULL;
	for (int k = 0; k < 2 && !err; k++)
		err = icf_audit_table(d->a[k], opt, ICF_DIM_FAMILY, &row[k]);
	uint32_t *of_old = err ? NULL : malloc((d->a[0]->pool.start.len + 1) * sizeof *of_old);
	if (!err && !of_old)
		err = &elfrw_err_nomem;
	if (!err)
		memset(of_old, 0xff, (d->a[0]->pool.start.len + 1) * sizeof *of_old);
	for (size_t k = 0; k < row[0].len && !err; k++) {
		struct icf_audit_family_change *c = VEC_PUSH(&d->family);
		if (!c) {
			err = &elfrw_err_nomem;
			break;
		}
		*c = (struct icf_audit_family_change){ row[0].data[k].key, ICF_NONE,
						       row[0].data[k].saving[opt->mode], 0 };
		of_old[row[0].data[k].key] = (uint32_t)k;
	}
	for (size_t k = 0; k < row[1].len && !err; k++) {
		const char *s = icf_pool_text(&d->a[1]->pool, row[1].data[k].key);
		uint32_t key = icf_pool_find(&d->a[0]->pool, s, strlen(s));
		uint32_t at = key == ICF_POOL_NONE ? ICF_NONE : of_old[key];
		if (at == ICF_NONE) {
			at = (uint32_t)d->family.len;
			struct icf_audit_family_change *c = VEC_PUSH(&d->family);
			if (!c) {
				err = &elfrw_err_nomem;
				break;
			}
			c->old = ICF_NONE;
		}
		d->family.data[at].new = row[1].data[k].key;
		d->family.data[at].after = row[1].data[k].saving[opt->mode];
	}
	size_t n = 0;
	for (size_t k = 0; k < d->family.len && !err; k++)
		if (d->family.data[k].before != d->family.data[k].after)
			d->family.data[n++] = d->family.data[k];
	if (!err)
		d->family.len = n;
	free(of_old);
	VEC_FREE(&row[0]);
	VEC_FREE(&row[1]);
	return err;
}

/* The largest growth first, the largest shrinkage last; then by position. */
static int change_order(const void *p, const void *q)
{
	const struct icf_audit_change *x = p, *y = q;
	if (x->delta != y->delta)
		return x->delta > y->delta ? -1 : 1;
	if (x->new != y->new)
		return x->new < y->new ? -1 : 1;
	return x->old < y->old ? -1 : x->old > y->old;
}

static const char *family_name(const struct icf_audit_diff *d,
			       const struct icf_audit_family_change *c)
{
	return c->new != ICF_NONE ? icf_pool_text(&d->a[1]->pool, c->new)
				  : icf_pool_text(&d->a[0]->pool, c->old);
}

static int family_order(const void *p, const void *q, void *ctx)
{
	const struct icf_audit_family_change *x = p, *y = q;
	int64_t dx = (int64_t)(x->after - x->before), dy = (int64_t)(y->after - y->before);
	if (dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(family_name(ctx, x), family_name(ctx, y));
}

/* Adds the unused functions of build B that are not unused in the other one.  Functions belong
 * together if they have the same name. */
static struct elfrw_err *compare_unused(struct icf_audit_diff *d, int b)
{
	const struct icf_audit *a = d->a[b], *other = d->a[!b];
	struct icf_pool used = { 0 }, unused = { 0 };
	struct elfrw_err *err = NULL;
	char buf[32];
	for (uint32_t i = 0; i < other->run.prog.unit.len && !err; i++) {
		const char *s = symbol(other, i, buf);
		if (icf_pool_add(other->unused.is[i] ? &unused : &used, s, strlen(s)) ==
		    ICF_POOL_NONE)
			err = &elfrw_err_nomem;
	}
	for (uint32_t i = 0; i < a->run.prog.unit.len && !err; i++) {
		const char *s = symbol(a, i, buf);
		if (!a->unused.is[i] || !a->unit[i].match ||
		    icf_pool_find(&unused, s, strlen(s)) != ICF_POOL_NONE)
			continue;
		struct icf_audit_unused_change *c = VEC_PUSH(&d->unused);
		int64_t size = (int64_t)icf_audit_size(a, i);
		if (c)
			*c = (struct icf_audit_unused_change){
				.unit = i,
				.gone = b == 0,
				.other = icf_pool_find(&used, s, strlen(s)) != ICF_POOL_NONE,
				.delta = b ? size : -size
			};
		else
			err = &elfrw_err_nomem;
	}
	icf_pool_deinit(&used);
	icf_pool_deinit(&unused);
	return err;
}

/* The largest growth first. */
static int unused_order(const void *p, const void *q)
{
	const struct icf_audit_unused_change *x = p, *y = q;
	if (x->delta != y->delta)
		return x->delta > y->delta ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

struct elfrw_err *icf_audit_compare_builds(struct icf_audit_diff *d, const struct icf_audit *old,
					   const struct icf_audit *new,
					   const struct icf_audit_options *opt)
{
	*d = (struct icf_audit_diff){ .a = { old, new } };
	d->growth = (int64_t)(new->total[opt->mode].duplicated - old->total[opt->mode].duplicated);
	d->by_address = old->by_address || new->by_address;
	d->unused_known = old->unused.is && new->unused.is;
	if (d->by_address)
		return NULL;
	struct match m = { .votes = calloc(old->group.len + 1, sizeof *m.votes),
			   .taken = calloc(old->group.len + 1, 1) };
	struct elfrw_err *err =
		m.votes && m.taken ? compare_groups(d, &m, opt->mode) : &elfrw_err_nomem;
	icf_pool_deinit(&m.name);
	VEC_FREE(&m.by_name);
	free(m.votes);
	free(m.taken);
	if (!err)
		err = compare_families(d, opt);
	for (int b = 0; b < 2 && !err && d->unused_known; b++)
		err = compare_unused(d, b);
	if (!err && d->unused.len)
		qsort(d->unused.data, d->unused.len, sizeof *d->unused.data, unused_order);
	if (!err && d->change.len)
		qsort(d->change.data, d->change.len, sizeof *d->change.data, change_order);
	if (!err && d->family.len)
		qsort_r(d->family.data, d->family.len, sizeof *d->family.data, family_order, d);
	return err;
}

void icf_audit_diff_deinit(struct icf_audit_diff *d)
{
	VEC_FREE(&d->change);
	VEC_FREE(&d->family);
	VEC_FREE(&d->unused);
}

static const char *kind_of(const struct icf_audit_change *c)
{
	return c->old == ICF_NONE   ? "new"
	       : c->new == ICF_NONE ? "gone"
	       : c->delta > 0       ? "grown"
				    : "shrunk";
}

static const struct icf_audit_group *group_of(const struct icf_audit_diff *d,
					      const struct icf_audit_change *c, int build)
{
	uint32_t g = build ? c->new : c->old;
	return g == ICF_NONE ? NULL : &d->a[build]->group.data[g];
}

struct figure {
	const char *key, *text;
	uint64_t v[2];
};

#define FIGURES        11
#define UNUSED_FIGURES 5 /* the last ones; not known if it is not known what is unused */

/* Returns how many are known. */
static int figures(const struct icf_audit_diff *d, struct figure *f)
{
	const struct icf_audit *o = d->a[0], *n = d->a[1];
	const struct figure all[FIGURES] = {
		{ "functions", "functions", { o->functions, n->functions } },
		{ "text", ".text", { o->text, n->text } },
		{ "duplicated_all",
		  "duplicated bytes (all)",
		  { o->total[0].duplicated, n->total[0].duplicated } },
		{ "duplicated_safe",
		  "duplicated bytes (safe)",
		  { o->total[1].duplicated, n->total[1].duplicated } },
		{ "saved_all",
		  ".text saved (all)",
		  { o->text - o->total[0].text_after, n->text - n->total[0].text_after } },
		{ "saved_safe",
		  ".text saved (safe)",
		  { o->text - o->total[1].text_after, n->text - n->total[1].text_after } },
		{ "unused_functions",
		  "unused functions",
		  { o->unused.functions, n->unused.functions } },
		{ "unused_bytes", "unused bytes", { o->unused.bytes, n->unused.bytes } },
		{ "saved_unused",
		  ".text saved without them",
		  { o->text - o->unused.alone, n->text - n->unused.alone } },
		{ "saved_unused_all",
		  "  and folded (all)",
		  { o->text - o->unused.with[0], n->text - n->unused.with[0] } },
		{ "saved_unused_safe",
		  "  and folded (safe)",
		  { o->text - o->unused.with[1], n->text - n->unused.with[1] } },
	};
	memcpy(f, all, sizeof all);
	return d->unused_known ? FIGURES : FIGURES - UNUSED_FIGURES;
}

/* Is row K of N in view?  The list is sorted from growth to shrinkage; the TOP largest of either
 * are shown; 0: all. */
static bool in_view(size_t k, size_t n, uint32_t top)
{
	return !top || n <= 2 * (size_t)top || k < top || k >= n - top;
}

/* What became of a function that is unused in one build. */
static const char *unused_kind(const struct icf_audit_unused_change *c)
{
	return c->gone ? c->other ? "used" : "gone" : c->other ? "unused" : "new";
}

static void text_unused(FILE *f, const struct icf_audit_diff *d,
			const struct icf_audit_options *opt)
{
	char buf[1024];
	if (!d->unused_known) {
		fputs("\nUnused functions are not compared: they are not known\n", f);
		return;
	}
	fprintf(f, "\nFunctions that are unused in one build only: %zu\n", d->unused.len);
	if (d->unused.len)
		fprintf(f, "%10s %8s   %s\n", "change", "", "function");
	for (size_t k = 0; k < d->unused.len; k++) {
		const struct icf_audit_unused_change *c = &d->unused.data[k];
		const struct icf_audit *a = d->a[!c->gone];
		if (!in_view(k, d->unused.len, opt->top))
			continue;
		fprintf(f, "%+10" PRId64 " %8s   ", c->delta, unused_kind(c));
		elfrw_put_printable_line(
			f, opt->full_names ? icf_audit_name(a, c->unit)
					   : icf_audit_brief(a, c->unit, 84, buf, sizeof buf));
	}
}

static void json_unused(FILE *f, const struct icf_audit_diff *d,
			const struct icf_audit_options *opt)
{
	bool any = false;
	char buf[32];
	if (!d->unused_known)
		return;
	fputs(",\n  \"never_used\": [", f);
	for (size_t k = 0; k < d->unused.len; k++) {
		const struct icf_audit_unused_change *c = &d->unused.data[k];
		const struct icf_audit *a = d->a[!c->gone];
		if (!in_view(k, d->unused.len, opt->top))
			continue;
		fprintf(f, "%s\n    { \"kind\": \"%s\", \"change\": %" PRId64 ", \"symbol\": ",
			any ? "," : "", unused_kind(c), c->delta);
		icf_put_json(f, symbol(a, c->unit, buf));
		fputs(", \"name\": ", f);
		icf_put_json(f, icf_audit_name(a, c->unit));
		fputs(" }", f);
		any = true;
	}
	fputs(" ]", f);
}

void icf_audit_diff_text(FILE *f, const struct icf_audit_diff *d,
			 const struct icf_audit_options *opt)
{
	char buf[1024];
	struct figure fig[FIGURES];
	int n_figures = figures(d, fig);
	fputs("old: ", f);
	elfrw_put_printable_line(f, d->a[0]->run.img.path);
	fputs("new: ", f);
	elfrw_put_printable_line(f, d->a[1]->run.img.path);
	if (d->a[0]->in_place != d->a[1]->in_place)
		fprintf(f, "in place: nothing may move in the %s build\n",
			d->a[0]->in_place ? "old" : "new");
	fprintf(f, "\n%-28s %12s %12s %12s\n", "", "old", "new", "change");
	for (int k = 0; k < n_figures; k++)
		fprintf(f, "%-28s %12" PRIu64 " %12" PRIu64 " %+12" PRId64 "\n", fig[k].text,
			fig[k].v[0], fig[k].v[1], (int64_t)(fig[k].v[1] - fig[k].v[0]));
	if (d->by_address) {
		fputs("\ngroups are not compared: a file has no names\n", f);
		return;
	}
	fprintf(f, "\nGroups whose saving changed (--icf=%s): %zu\n",
		opt->mode == ICF_AUDIT_ALL ? "all" : "safe", d->change.len);
	if (d->change.len)
		fprintf(f, "%10s %10s %7s %13s   %s\n", "change", "saving", "", "count",
			"functions");
	for (size_t k = 0; k < d->change.len; k++) {
		const struct icf_audit_change *c = &d->change.data[k];
		const struct icf_audit_group *o = group_of(d, c, 0), *n = group_of(d, c, 1);
		if (!in_view(k, d->change.len, opt->top))
			continue;
		const struct icf_audit *a = d->a[n != NULL];
		uint32_t u = n ? n->keeper : o->keeper;
		char count[32];
		snprintf(count, sizeof count, "%" PRIu32 " -> %" PRIu32, o ? o->count : 0,
			 n ? n->count : 0);
		fprintf(f, "%+10" PRId64 " %10" PRIu64 " %7s %13s   ", c->delta,
			n ? n->saving[opt->mode] : 0, kind_of(c), count);
		elfrw_put_printable_line(f, opt->full_names
						    ? icf_audit_name(a, u)
						    : icf_audit_brief(a, u, 84, buf, sizeof buf));
	}
	fprintf(f, "\nFamilies whose saving changed: %zu\n", d->family.len);
	if (d->family.len)
		fprintf(f, "%10s %10s %10s   %s\n", "change", "old", "new", "family");
	for (size_t k = 0; k < d->family.len; k++) {
		const struct icf_audit_family_change *c = &d->family.data[k];
		if (!in_view(k, d->family.len, opt->top))
			continue;
		fprintf(f, "%+10" PRId64 " %10" PRIu64 " %10" PRIu64 "   ",
			(int64_t)(c->after - c->before), c->before, c->after);
		elfrw_put_printable_line(f, family_name(d, c));
	}
	text_unused(f, d, opt);
}

void icf_audit_diff_json(FILE *f, const struct icf_audit_diff *d,
			 const struct icf_audit_options *opt)
{
	struct figure fig[FIGURES];
	int n_figures = figures(d, fig);
	fputs("{\n  \"icfold\": \"" ICF_VERSION "\",\n  \"old\": ", f);
	icf_put_json(f, d->a[0]->run.img.path);
	fputs(",\n  \"new\": ", f);
	icf_put_json(f, d->a[1]->run.img.path);
	fprintf(f, ",\n  \"mode\": \"%s\",\n  \"names\": \"%s\",\n  \"growth\": %" PRId64,
		opt->mode == ICF_AUDIT_ALL ? "all" : "safe",
		d->by_address ? "addresses" : "symbols", d->growth);
	for (int k = 0; k < n_figures; k++)
		fprintf(f,
			",\n  \"%s\": { \"old\": %" PRIu64 ", \"new\": %" PRIu64
			", \"change\": %" PRId64 " }",
			fig[k].key, fig[k].v[0], fig[k].v[1], (int64_t)(fig[k].v[1] - fig[k].v[0]));
	fputs(",\n  \"groups\": [", f);
	bool any = false;
	for (size_t k = 0; k < d->change.len; k++) {
		const struct icf_audit_change *c = &d->change.data[k];
		const struct icf_audit_group *o = group_of(d, c, 0), *n = group_of(d, c, 1);
		if (!in_view(k, d->change.len, opt->top))
			continue;
		fprintf(f, "%s\n    { \"kind\": \"%s\", \"change\": %" PRId64, any ? "," : "",
			kind_of(c), c->delta);
		fprintf(f, ", \"old_count\": %" PRIu32 ", \"new_count\": %" PRIu32,
			o ? o->count : 0, n ? n->count : 0);
		fprintf(f, ", \"old_saving\": %" PRIu64 ", \"new_saving\": %" PRIu64 ", \"name\": ",
			o ? o->saving[opt->mode] : 0, n ? n->saving[opt->mode] : 0);
		icf_put_json(f, icf_audit_name(d->a[n != NULL], n ? n->keeper : o->keeper));
		fputs(" }", f);
		any = true;
	}
	fputs(" ],\n  \"families\": [", f);
	any = false;
	for (size_t k = 0; k < d->family.len; k++) {
		const struct icf_audit_family_change *c = &d->family.data[k];
		if (!in_view(k, d->family.len, opt->top))
			continue;
		fprintf(f,
			"%s\n    { \"change\": %" PRId64 ", \"old_saving\": %" PRIu64
			", \"new_saving\": %" PRIu64 ", \"name\": ",
			any ? "," : "", (int64_t)(c->after - c->before), c->before, c->after);
		icf_put_json(f, family_name(d, c));
		fputs(" }", f);
		any = true;
	}
	fputs(" ]", f);
	json_unused(f, d, opt);
	fputs("\n}\n", f);
}
