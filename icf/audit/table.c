/* table.c: groups and tables in the order of the report. */
#include "icf/audit/audit.h"
#include "icf/audit/name.h"
#include <stdlib.h>
#include <string.h>

struct order {
	const struct icf_audit *a;
	const struct icf_audit_options *opt;
};

static int down(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

static int group_order(const void *p, const void *q, void *ctx)
{
	const struct icf_audit_group *x = p, *y = q;
	const struct order *o = ctx;
	int c = 0;
	switch (o->opt->sort) {
	case ICF_SORT_COUNT: c = down(x->count, y->count); break;
	case ICF_SORT_SIZE: c = down(x->size, y->size); break;
	case ICF_SORT_NAME:
		c = strcmp(icf_audit_name(o->a, x->keeper), icf_audit_name(o->a, y->keeper));
		break;
	case ICF_SORT_SAVING: break;
	}
	if (!c)
		c = down(x->saving[o->opt->mode], y->saving[o->opt->mode]);
	return c ? c : x->keeper < y->keeper ? -1 : x->keeper > y->keeper;
}

/* Puts the members of each group together: a counting sort by keeper keeps the order of
 * addresses. */
static struct elfrw_err *fill_groups(struct icf_audit *a, const struct icf_audit_options *opt,
				     uint32_t *at)
{
	const uint32_t *kept = a->plan[opt->mode].kept;
	uint32_t n = (uint32_t)a->run.prog.unit.len, used = 0;
	for (uint32_t i = 0; i < n; i++)
		at[kept[i]]++;
	if (!VEC_RESERVE(&a->member, n + 1))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t count = at[i];
		at[i] = used;
		if (count < 2)
			continue;
		struct icf_audit_group *g = VEC_PUSH(&a->group);
		if (!g)
			return &elfrw_err_nomem;
		*g = (struct icf_audit_group){
			.keeper = i, .member = used, .count = count, .size = icf_audit_size(a, i)
		};
		used += count;
	}
	for (uint32_t i = 0; i < n; i++)
		if (a->plan[opt->mode].map.unit[kept[i]].flags & ELFRW_UNIT_KEPT)
			a->member.data[at[kept[i]]++] = i;
	a->member.len = used;
	return NULL;
}

struct elfrw_err *icf_audit_groups(struct icf_audit *a, const struct icf_audit_options *opt)
{
	uint32_t *at = calloc(a->run.prog.unit.len + 1, sizeof *at);
	struct elfrw_err *err = at ? fill_groups(a, opt, at) : &elfrw_err_nomem;
	free(at);
	if (err)
		return err;
	size_t n = 0;
	for (size_t k = 0; k < a->group.len; k++) {
		struct icf_audit_group g = a->group.data[k];
		bool match = false;
		for (uint32_t i = g.member; i < g.member + g.count; i++) {
			const struct icf_audit_unit *u = &a->unit[a->member.data[i]];
			match |= u->match;
			for (int m = 0; m < ICF_AUDIT_MODES; m++)
				g.saving[m] += u->saving[m];
		}
		if (match)
			a->group.data[n++] = g;
	}
	a->group.len = n;
	if (n)
		qsort_r(a->group.data, n, sizeof *a->group.data, group_order,
			&(struct order){ a, opt });
	return NULL;
}

static int row_order(const void *p, const void *q, void *ctx)
{
	const struct icf_audit_row *x = p, *y = q;
	const struct order *o = ctx;
	int m = o->opt->mode, c = 0;
	switch (o->opt->sort) {
	case ICF_SORT_COUNT: c = down(x->count, y->count); break;
	case ICF_SORT_SIZE: c = down(x->bytes, y->bytes); break;
	case ICF_SORT_NAME: break;
	case ICF_SORT_SAVING:
		c = down(x->saving[m], y->saving[m]);
		if (!c)
			c = down(x->saving[!m], y->saving[!m]);
		break;
	}
	if (c)
		return c;
	/* Unknown keys come last. */
	if (x->key == ICF_NONE || y->key == ICF_NONE)
		return x->key == y->key ? 0 : x->key == ICF_NONE ? 1 : -1;
	return strcmp(icf_pool_text(&o->a->pool, x->key), icf_pool_text(&o->a->pool, y->key));
}

struct elfrw_err *icf_audit_table(const struct icf_audit *a, const struct icf_audit_options *opt,
				  enum icf_dimension dim, icf_audit_rows *ret)
{
	size_t n = a->pool.start.len;
	uint32_t *row = malloc((n + 1) * sizeof *row); /* by key; the last: unknown */
	if (!row)
		return &elfrw_err_nomem;
	memset(row, 0xff, (n + 1) * sizeof *row);
	ret->len = 0;
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++) {
		const struct icf_audit_unit *u = &a->unit[i];
		if (!u->match || a->run.prog.unit.data[i].kind != ICF_UNIT_FUNC)
			continue;
		uint32_t *r = &row[u->key[dim] == ICF_NONE ? n : u->key[dim]];
		if (*r == ICF_NONE) {
			struct icf_audit_row *fresh = VEC_PUSH(ret);
			if (!fresh) {
				free(row);
				return &elfrw_err_nomem;
			}
			fresh->key = u->key[dim];
			*r = (uint32_t)ret->len - 1;
		}
		struct icf_audit_row *to = &ret->data[*r];
		to->count++;
		to->bytes += icf_audit_size(a, i);
		if (a->unused.is && a->unused.is[i]) {
			to->unused++;
			to->unused_bytes += icf_audit_size(a, i);
		}
		to->folded += u->saving[opt->mode] != 0;
		for (int m = 0; m < ICF_AUDIT_MODES; m++)
			to->saving[m] += u->saving[m];
	}
	free(row);
	if (ret->len)
		qsort_r(ret->data, ret->len, sizeof *ret->data, row_order,
			&(struct order){ a, opt });
	return NULL;
}

static int reason_order(const void *p, const void *q, void *ctx)
{
	const struct icf_audit_reason *x = p, *y = q;
	int m = *(const int *)ctx, c = down(x->bytes[m], y->bytes[m]);
	if (!c)
		c = down(x->bytes[!m], y->bytes[!m]);
	return c ? c : x->why < y->why ? -1 : x->why > y->why;
}

unsigned icf_audit_reasons(const struct icf_audit *a, const struct icf_audit_options *opt,
			   struct icf_audit_reason *r)
{
	for (unsigned k = 0; k < ICF_N_WHYS; k++)
		r[k] = (struct icf_audit_reason){ .why = k };
	for (uint32_t i = 0; i < a->run.prog.unit.len; i++)
		for (int m = 0; m < ICF_AUDIT_MODES && a->unit[i].match; m++) {
			r[a->unit[i].why[m]].count[m]++;
			r[a->unit[i].why[m]].bytes[m] += icf_audit_size(a, i);
		}
	unsigned n = 0;
	for (unsigned k = 0; k < ICF_N_WHYS; k++)
		if (r[k].count[0] || r[k].count[1])
			r[n++] = r[k];
	int mode = opt->mode;
	qsort_r(r, n, sizeof *r, reason_order, &mode);
	return n;
}

const char *icf_audit_brief(const struct icf_audit *a, uint32_t i, size_t limit, char *buf,
			    size_t size)
{
	struct icf_name name;
	icf_name_parse(&name, icf_audit_name(a, i));
	icf_name_brief(&name, limit, buf, size);
	return buf;
}
