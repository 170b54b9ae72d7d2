/* order.c: see order.h. */
#include "icf/audit/product/order.h"
#include <stdlib.h>
#include <string.h>

struct order {
	const struct icf_product *p;
	const struct icf_audit_options *opt;
};

static int down(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

static int file_order(const void *a, const void *b, void *ctx)
{
	const struct order *o = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct icf_product_file *x = &o->p->file.data[i], *y = &o->p->file.data[k];
	int c = 0, m = o->opt->mode;
	switch (o->opt->sort) {
	case ICF_SORT_COUNT: c = down(x->facts.functions, y->facts.functions); break;
	case ICF_SORT_SIZE: c = down(x->facts.code, y->facts.code); break;
	case ICF_SORT_NAME: c = strcmp(x->name, y->name); break;
	case ICF_SORT_SAVING:
		c = down(icf_product_saving(&x->facts, m), icf_product_saving(&y->facts, m));
		if (!c)
			c = down(x->shared_bytes, y->shared_bytes);
		if (!c)
			c = down(x->facts.code, y->facts.code);
		break;
	}
	return c ? c : i < k ? -1 : i > k;
}

struct reasons {
	const struct icf_product_file *file;
	const uint32_t *count; /* by file: files with the same reason; NULL: not counted yet */
};

static const char *reason(const struct icf_product_file *f)
{
	return f->why ? f->why : "";
}

static int reason_order(const void *a, const void *b, void *ctx)
{
	const struct reasons *r = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	int c = r->count ? down(r->count[k], r->count[i]) : 0;
	if (!c)
		c = strcmp(reason(&r->file[i]), reason(&r->file[k]));
	return c ? c : i < k ? -1 : i > k;
}

/* Reasons that few files have come first: a thousand object files hide no broken program. */
static bool by_reason(const struct icf_product *p, uint32_t *id, uint32_t n)
{
	uint32_t *count = malloc((p->file.len + 1) * sizeof *count);
	struct reasons r = { p->file.data, NULL };
	if (!count)
		return false;
	qsort_r(id, n, sizeof *id, reason_order, &r);
	for (uint32_t k = 0, e; k < n; k = e) {
		for (e = k + 1; e < n && !strcmp(reason(&r.file[id[e]]), reason(&r.file[id[k]]));)
			e++;
		for (uint32_t i = k; i < e; i++)
			count[id[i]] = e - k;
	}
	r.count = count;
	qsort_r(id, n, sizeof *id, reason_order, &r);
	free(count);
	return true;
}

uint32_t *icf_product_order(const struct icf_product *p, const struct icf_audit_options *opt,
			    enum icf_product_state state, uint32_t *n)
{
	uint32_t *id = malloc((p->file.len + 1) * sizeof *id);
	*n = 0;
	for (size_t k = 0; k < p->file.len && id; k++)
		if (p->file.data[k].state == state)
			id[(*n)++] = (uint32_t)k;
	if (*n && state == ICF_FILE_BAD && !by_reason(p, id, *n)) {
		free(id);
		return NULL;
	}
	if (*n && state == ICF_FILE_DONE)
		qsort_r(id, *n, sizeof *id, file_order, &(struct order){ p, opt });
	return id;
}
