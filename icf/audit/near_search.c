/* near_search.c: near misses among functions of equal instructions.  near.c describes the
 * method. */
#include "icf/audit/near.h"
#include <stdlib.h>
#include <string.h>

/* The most entries of a bucket (24 bytes each).  The other members of the bucket are left out. */
#define MAX_ENTRIES (4u << 20)

struct elfrw_err *icf_near_init(struct icf_near_search *s, struct icf_audit *a)
{
	*s = (struct icf_near_search){ .a = a };
	return NULL;
}

void icf_near_deinit(struct icf_near_search *s)
{
	VEC_FREE(&s->rival);
	VEC_FREE(&s->field);
	VEC_FREE(&s->entry);
	VEC_FREE(&s->order);
	icf_near_scratch_deinit(&s->first);
	icf_near_scratch_deinit(&s->other);
}

/* Lays the members' fields side by side, and drops members that share only the hash. */
static struct elfrw_err *load(struct icf_near_search *s, size_t *n_fields)
{
	size_t n = 0;
	s->field.len = 0;
	ELFRW_TRY(icf_near_fields(s->a, s->rival.data[0], &s->first));
	size_t nf = *n_fields = s->first.field.len;
	for (size_t i = 0; i < s->rival.len && nf; i++) {
		const struct icf_near_scratch *x = &s->other;
		ELFRW_TRY(icf_near_fields(s->a, s->rival.data[i], &s->other));
		if (x->field.len != nf || x->code.len != s->first.code.len ||
		    memcmp(x->code.data, s->first.code.data, x->code.len) != 0)
			continue;
		bool same = true;
		for (size_t k = 0; k < nf && same; k++)
			same = x->field.data[k].off == s->first.field.data[k].off &&
			       x->field.data[k].kind == s->first.field.data[k].kind;
		if (!same)
			continue;
		if ((n + 1) * nf > MAX_ENTRIES)
			break;
		if (!VEC_RESERVE(&s->field, (n + 1) * nf))
			return &elfrw_err_nomem;
		memcpy(s->field.data + n * nf, x->field.data, nf * sizeof *s->field.data);
		s->rival.data[n++] = s->rival.data[i];
	}
	s->rival.len = n;
	return NULL;
}

static uint64_t term(const struct icf_near_field *f, size_t k)
{
	return icf_hash_mix(icf_hash_mix(k + 1, f->kind), f->value);
}

static struct elfrw_err *push(struct icf_near_search *s, uint64_t places, uint64_t rest,
			      size_t member, uint32_t field)
{
	struct icf_near_entry *e = VEC_PUSH(&s->entry);
	if (!e)
		return &elfrw_err_nomem;
	*e = (struct icf_near_entry){ places, rest, (uint32_t)member, field };
	return NULL;
}

static int value_order(const void *p, const void *q, void *ctx)
{
	const struct icf_near_field *f = ctx;
	uint32_t x = *(const uint32_t *)p, y = *(const uint32_t *)q;
	if (f[x].kind != f[y].kind)
		return f[x].kind < f[y].kind ? -1 : 1;
	if (f[x].value != f[y].value)
		return f[x].value < f[y].value ? -1 : 1;
	return x < y ? -1 : x > y;
}

static struct elfrw_err *add_entries(struct icf_near_search *s, size_t member, size_t nf)
{
	const struct icf_near_field *f = s->field.data + member * nf;
	uint64_t sum = 0;
	if (!VEC_RESERVE(&s->order, nf))
		return &elfrw_err_nomem;
	for (size_t k = 0; k < nf; k++) {
		sum += term(&f[k], k);
		s->order.data[k] = (uint32_t)k;
	}
	for (size_t k = 0; k < nf; k++)
		ELFRW_TRY(
			push(s, icf_hash_mix(k + 1, 1), sum - term(&f[k], k), member, (uint32_t)k));
	qsort_r(s->order.data, nf, sizeof *s->order.data, value_order, (void *)f);
	for (size_t i = 0; i < nf;) {
		uint32_t first = s->order.data[i];
		uint64_t places = 0, gone = 0;
		size_t k = i;
		for (; k < nf; k++) {
			const struct icf_near_field *g = &f[s->order.data[k]];
			if (g->kind != f[first].kind || g->value != f[first].value)
				break;
			places += icf_hash_mix(s->order.data[k] + 1, 1);
			gone += term(g, s->order.data[k]);
		}
		if (k - i > 1)
			ELFRW_TRY(push(s, places, sum - gone, member, first));
		i = k;
	}
	return NULL;
}

static int entry_order(const void *p, const void *q)
{
	const struct icf_near_entry *x = p, *y = q;
	if (x->places != y->places)
		return x->places < y->places ? -1 : 1;
	if (x->rest != y->rest)
		return x->rest < y->rest ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

/* Does entry E leave out place K?  A set of several places holds one value. */
static bool left_out(const struct icf_near_field *f, const struct icf_near_entry *e, size_t k)
{
	if (e->places == icf_hash_mix(e->field + 1, 1))
		return k == e->field;
	return f[k].kind == f[e->field].kind && f[k].value == f[e->field].value;
}

/* Do X and Y agree in all other places, and differ in these? */
static bool near(const struct icf_near_search *s, const struct icf_near_entry *x,
		 const struct icf_near_entry *y, size_t nf, uint32_t *places)
{
	const struct icf_near_field *f = s->field.data + x->member * nf,
				    *g = s->field.data + y->member * nf;
	*places = 0;
	if (x->field != y->field || f[x->field].value == g[y->field].value)
		return false;
	for (size_t k = 0; k < nf; k++) {
		bool out = left_out(f, x, k);
		if (out != left_out(g, y, k))
			return false;
		*places += out;
		if (!out && (f[k].value != g[k].value || f[k].kind != g[k].kind))
			return false;
	}
	return true;
}

static struct elfrw_err *add_run(struct icf_near_search *s, const struct icf_near_entry *e,
				 size_t n, size_t nf)
{
	struct icf_audit *a = s->a;
	struct icf_audit_near found = { .member = (uint32_t)a->near_member.len,
					.size = icf_audit_size(a, s->rival.data[e->member]) };
	bool match = false;
	for (size_t i = 0; i < n; i++) {
		uint32_t places;
		if (i && !near(s, &e[0], &e[i], nf, &places))
			continue;
		if (i)
			found.places = places;
		struct icf_audit_near_member *m = VEC_PUSH(&a->near_member);
		if (!m)
			return &elfrw_err_nomem;
		m->unit = s->rival.data[e[i].member];
		m->text = ICF_NONE;
		found.count++;
		match |= a->unit[m->unit].match;
	}
	const struct icf_near_field *f = &s->field.data[e->member * nf + e->field];
	found.off = f->off;
	found.kind = f->kind;
	found.saving = (found.count - 1) * found.size;
	if (found.count < 2 || !match) {
		a->near_member.len = found.member;
		return NULL;
	}
	struct icf_audit_near *slot = VEC_PUSH(&a->near);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = found;
	return NULL;
}

struct elfrw_err *icf_near_bucket(struct icf_near_search *s)
{
	size_t nf;
	ELFRW_TRY(load(s, &nf));
	s->entry.len = 0;
	for (size_t m = 0; m < s->rival.len && s->rival.len > 1; m++)
		ELFRW_TRY(add_entries(s, m, nf));
	if (!s->entry.len)
		return NULL;
	qsort(s->entry.data, s->entry.len, sizeof *s->entry.data, entry_order);
	for (size_t i = 0; i < s->entry.len;) {
		size_t k = i + 1;
		while (k < s->entry.len && s->entry.data[k].places == s->entry.data[i].places &&
		       s->entry.data[k].rest == s->entry.data[i].rest)
			k++;
		if (k - i > 1)
			ELFRW_TRY(add_run(s, &s->entry.data[i], k - i, nf));
		i = k;
	}
	return NULL;
}

static int near_order(const void *p, const void *q, void *ctx)
{
	const struct icf_audit_near *x = p, *y = q;
	const struct icf_audit *a = ctx;
	if (x->saving != y->saving)
		return x->saving > y->saving ? -1 : 1;
	uint32_t ux = a->near_member.data[x->member].unit, uy = a->near_member.data[y->member].unit;
	if (ux != uy)
		return ux < uy ? -1 : 1;
	return x->member < y->member ? -1 : x->member > y->member;
}

struct elfrw_err *icf_near_finish(struct icf_near_search *s, const struct icf_audit_options *opt)
{
	struct icf_audit *a = s->a;
	if (a->near.len)
		qsort_r(a->near.data, a->near.len, sizeof *a->near.data, near_order, a);
	a->n_near = (uint32_t)a->near.len;
	/* The rest is only counted, since describing values takes time. */
	uint32_t most = opt->top && opt->top < ICF_NEAR_MAX ? opt->top : ICF_NEAR_MAX;
	if (a->near.len > most)
		a->near.len = most;
	return icf_near_describe(a);
}
