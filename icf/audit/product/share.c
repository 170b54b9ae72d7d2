/* share.c: see share.h.
 *
 * All functions of all files are sorted by their hash: by its first bits into buckets, which are
 * small enough for the processor's cache, then each bucket.  Cost: 24 bytes of memory a function,
 * and 0.3 s for a million. */
#include "icf/audit/product/share.h"
#include "elfrw/base/parallel.h"
#include "dwarf/demangle/demangle.h"
#include "icf/audit/name.h"
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX     4096
#define BUCKET_BITS  14
#define BUCKET(hash) ((hash) >> (64 - BUCKET_BITS))

static int entry_order(const void *a, const void *b)
{
	const struct icf_product_entry *x = a, *y = b;
	for (int k = 0; k < 2; k++)
		if (x->hash[k] != y->hash[k])
			return x->hash[k] < y->hash[k] ? -1 : 1;
	if (x->member.file != y->member.file)
		return x->member.file < y->member.file ? -1 : 1;
	return x->member.func < y->member.func ? -1 : x->member.func > y->member.func;
}

/* Buckets that are sorted, see icf_product_sort(). */
struct sorting {
	struct icf_product_entry *e;
	const size_t *at; /* by bucket: its end, where the next one begins */
};

#define SORT_PARTS 64

static struct elfrw_err *sort_part(void *arg, size_t part)
{
	const struct sorting *s = arg;
	const size_t n = ((size_t)1 << BUCKET_BITS) / SORT_PARTS;
	for (size_t b = part * n; b < (part + 1) * n; b++) {
		const size_t from = b ? s->at[b - 1] : 0;
		if (s->at[b] - from > 1)
			qsort(s->e + from, s->at[b] - from, sizeof *s->e, entry_order);
	}
	return NULL;
}

struct icf_product_entry *icf_product_sort(const struct icf_product *p, unsigned threads, size_t *n)
{
	size_t *at = calloc(((size_t)1 << BUCKET_BITS) + 1, sizeof *at);
	struct icf_product_entry *e = NULL;
	for (size_t k = 0; k < p->file.len && at; k++)
		for (uint32_t i = 0;
		     p->file.data[k].state == ICF_FILE_DONE && i < p->file.data[k].facts.n_func;
		     i++)
			at[BUCKET(icf_product_funcs(p, (uint32_t)k)[i].hash[0]) + 1]++;
	for (size_t b = 0; b < (size_t)1 << BUCKET_BITS && at; b++)
		at[b + 1] += at[b];
	*n = at ? at[(size_t)1 << BUCKET_BITS] : 0;
	if (at)
		e = elfrw_large(malloc((*n + 1) * sizeof *e), (*n + 1) * sizeof *e);
	for (size_t k = 0; k < p->file.len && e; k++)
		for (uint32_t i = 0;
		     p->file.data[k].state == ICF_FILE_DONE && i < p->file.data[k].facts.n_func;
		     i++) {
			const struct icf_product_func *f = &icf_product_funcs(p, (uint32_t)k)[i];
			e[at[BUCKET(f->hash[0])]++] =
				(struct icf_product_entry){ { f->hash[0], f->hash[1] },
							    { (uint32_t)k, i } };
		}
	struct sorting s = { e, at };
	if (e) /* no part fails */
		elfrw_err_free(elfrw_parallel(threads, SORT_PARTS, sort_part, &s));
	free(at);
	return e;
}

static struct elfrw_err *add_group(struct icf_product *p, const struct icf_product_entry *e,
				   size_t n)
{
	const struct icf_product_func *first =
		&icf_product_funcs(p, e->member.file)[e->member.func];
	uint32_t files = 1;
	for (size_t k = 1; k < n; k++)
		files += e[k].member.file != e[k - 1].member.file;
	if (files < 2 || !first->size)
		return NULL;
	if (p->member.len + n > UINT32_MAX)
		return elfrw_error("too many functions in several files");
	struct icf_product_group *g = VEC_PUSH(&p->group);
	if (!g || !VEC_RESERVE(&p->member, p->member.len + n))
		return &elfrw_err_nomem;
	*g = (struct icf_product_group){ .hash = { e->hash[0], e->hash[1] },
					 .size = first->size,
					 .saving = (uint64_t)(files - 1) * first->size,
					 .member = (uint32_t)p->member.len,
					 .count = (uint32_t)n,
					 .files = files,
					 .name = ICF_NONE,
					 .key = { ICF_NONE, ICF_NONE, ICF_NONE },
					 .exporter = ICF_NONE };
	p->shared_saving += g->saving;
	for (size_t k = 0; k < n; k++) {
		struct icf_product_file *f = &p->file.data[e[k].member.file];
		p->member.data[p->member.len++] = e[k].member;
		f->shared++;
		if (!k || e[k].member.file != e[k - 1].member.file)
			f->shared_bytes += g->size;
	}
	return NULL;
}

static struct elfrw_err *find_groups(struct icf_product *p, unsigned threads)
{
	size_t n;
	struct icf_product_entry *e = icf_product_sort(p, threads, &n);
	struct elfrw_err *err = e ? NULL : &elfrw_err_nomem;
	for (size_t k = 0, end; k < n && !err; k = end) {
		end = k + 1;
		while (end < n && memcmp(e[end].hash, e[k].hash, sizeof e->hash) == 0)
			end++;
		if (e[k].member.file != e[end - 1].member.file)
			err = add_group(p, e + k, end - k);
	}
	free(e);
	return err;
}

/* ---- names ---- */

static struct elfrw_err *add(struct icf_product *p, const char *s, uint32_t *ret)
{
	*ret = icf_pool_add(&p->pool, s, strnlen(s, TEXT_MAX));
	return *ret == ICF_POOL_NONE ? &elfrw_err_nomem : NULL;
}

/* Smaller functions without names may be equal by chance: they say nothing about a library. */
#define TELLING 64

/* Is the function that member M of G exports what another file has a copy of, and not code that
 * happens to be the same? */
static bool is_known_elsewhere(const struct icf_product *p, const struct icf_product_group *g,
			       const struct icf_product_member *m, const char *name)
{
	for (uint32_t k = g->member; k < g->member + g->count; k++) {
		const struct icf_product_member *o = &p->member.data[k];
		const char *other =
			icf_product_text(p, o->file, icf_product_funcs(p, o->file)[o->func].name);
		if (o->file != m->file && (other ? strcmp(other, name) == 0 : g->size >= TELLING))
			return true;
	}
	return false;
}

/* The name of G: the one that it is exported by, else the first.  Its library is that of the first
 * copy with debug information. */
static struct elfrw_err *name_group(struct icf_product *p, struct icf_product_group *g)
{
	const char *name = NULL, *unit = NULL;
	char buf[TEXT_MAX];
	for (uint32_t k = g->member; k < g->member + g->count; k++) {
		const struct icf_product_member *m = &p->member.data[k];
		const struct icf_product_func *f = &icf_product_funcs(p, m->file)[m->func];
		const char *own = icf_product_text(p, m->file, f->name);
		if (own && g->exporter == ICF_NONE && (f->flags & ICF_PRODUCT_EXPORTED) &&
		    p->file.data[m->file].facts.soname != ICF_PRODUCT_NO_TEXT &&
		    is_known_elsewhere(p, g, m, own)) {
			g->exporter = m->file;
			name = own;
		}
		if (!name)
			name = own;
		if (!unit)
			unit = icf_product_text(p, m->file, f->unit);
	}
	if (unit) {
		icf_audit_library(unit, buf, sizeof buf);
		ELFRW_TRY(add(p, buf, &g->key[ICF_DIM_LIBRARY]));
	}
	if (!name)
		return NULL;
	char *readable = NULL;
	if (!dwr_demangle(name, 0, &readable))
		return &elfrw_err_nomem;
	struct elfrw_err *err = add(p, readable ? readable : name, &g->name);
	free(readable);
	return err;
}

static struct elfrw_err *name_scopes(struct icf_product *p)
{
	struct icf_pool classes = { 0 };
	struct elfrw_err *err = NULL;
	char buf[TEXT_MAX], text[TEXT_MAX + 1];
	for (int pass = 0; pass < 2 && !err; pass++)
		for (size_t k = 0; k < p->group.len && !err; k++) {
			struct icf_product_group *g = &p->group.data[k];
			struct icf_name n;
			if (g->name == ICF_NONE)
				continue;
			/* The pool may grow below and move the text. */
			snprintf(text, sizeof text, "%s", icf_pool_text(&p->pool, g->name));
			icf_name_parse(&n, text);
			if (!pass) {
				if (icf_name_class(&n, buf, sizeof buf) &&
				    icf_pool_add(&classes, buf, strlen(buf)) == ICF_POOL_NONE)
					err = &elfrw_err_nomem;
				continue;
			}
			icf_name_family(&n, buf, sizeof buf);
			err = add(p, buf, &g->key[ICF_DIM_FAMILY]);
			icf_name_namespace(&n, &classes, buf, sizeof buf);
			if (!err)
				err = add(p, buf, &g->key[ICF_DIM_NAMESPACE]);
		}
	icf_pool_deinit(&classes);
	return err;
}

static struct elfrw_err *filter_groups(struct icf_product *p, const char *filter)
{
	regex_t re;
	if (filter && regcomp(&re, filter, REG_EXTENDED | REG_NOSUB) != 0)
		return elfrw_error("--filter=%s: not a regular expression", filter);
	for (size_t k = 0; k < p->group.len; k++) {
		struct icf_product_group *g = &p->group.data[k];
		g->match = !filter ||
			   (g->name != ICF_NONE &&
			    regexec(&re, icf_pool_text(&p->pool, g->name), 0, NULL, 0) == 0);
	}
	if (filter)
		regfree(&re);
	return NULL;
}

/* ---- order and tables ---- */

struct order {
	const struct icf_product *p;
	const struct icf_audit_options *opt;
};

static int down(uint64_t x, uint64_t y)
{
	return x > y ? -1 : x < y;
}

/* Texts in the pool; what is not known comes last. */
static int text_order(const struct icf_product *p, uint32_t x, uint32_t y)
{
	if (x == ICF_NONE || y == ICF_NONE)
		return x == y ? 0 : x == ICF_NONE ? 1 : -1;
	return strcmp(icf_pool_text(&p->pool, x), icf_pool_text(&p->pool, y));
}

static int group_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product_group *x = a, *y = b;
	const struct order *o = ctx;
	int c = 0;
	switch (o->opt->sort) {
	case ICF_SORT_COUNT: c = down(x->count, y->count); break;
	case ICF_SORT_SIZE: c = down(x->size, y->size); break;
	case ICF_SORT_NAME: c = text_order(o->p, x->name, y->name); break;
	case ICF_SORT_SAVING: break;
	}
	if (!c)
		c = down(x->saving, y->saving);
	if (!c)
		c = text_order(o->p, x->name, y->name);
	for (int k = 0; k < 2 && !c; k++)
		c = down(y->hash[k], x->hash[k]);
	return c;
}

static int row_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product_row *x = a, *y = b;
	int c = down(x->saving, y->saving);
	if (!c)
		c = down(x->bodies, y->bodies);
	return c ? c : ctx ? text_order(ctx, x->key, y->key) : x->key < y->key ? -1 : 1;
}

/* Adds G to the row of KEY, one of N keys. */
static bool count_row(icf_product_rows *rows, uint32_t *row, size_t n, uint32_t key,
		      const struct icf_product_group *g)
{
	uint32_t *r = &row[key == ICF_NONE ? n : key];
	if (*r == ICF_NONE) {
		struct icf_product_row *fresh = VEC_PUSH(rows);
		if (!fresh)
			return false;
		fresh->key = key;
		*r = (uint32_t)rows->len - 1;
	}
	struct icf_product_row *to = &rows->data[*r];
	to->groups++;
	to->bodies += g->count;
	to->saving += g->saving;
	return true;
}

struct elfrw_err *icf_product_table(const struct icf_product *p, enum icf_product_by by,
				    icf_product_rows *ret)
{
	size_t n = by == ICF_BY_EXPORTER ? p->file.len : p->pool.start.len;
	uint32_t *row = malloc((n + 1) * sizeof *row); /* by key; the last: unknown */
	bool ok = row != NULL;
	if (row)
		memset(row, 0xff, (n + 1) * sizeof *row);
	ret->len = 0;
	for (size_t k = 0; k < p->group.len && ok; k++) {
		const struct icf_product_group *g = &p->group.data[k];
		uint32_t key = by == ICF_BY_EXPORTER ? g->exporter : g->key[by];
		if (g->match && (by != ICF_BY_EXPORTER || key != ICF_NONE))
			ok = count_row(ret, row, n, key, g);
	}
	free(row);
	if (ret->len)
		qsort_r(ret->data, ret->len, sizeof *ret->data, row_order,
			by == ICF_BY_EXPORTER ? NULL : (void *)p);
	return ok ? NULL : &elfrw_err_nomem;
}

struct elfrw_err *icf_product_share(struct icf_product *p, const struct icf_audit_options *opt)
{
	if (!p->map)
		return NULL;
	ELFRW_TRY(find_groups(p, opt->threads));
	for (size_t k = 0; k < p->group.len; k++)
		ELFRW_TRY(name_group(p, &p->group.data[k]));
	ELFRW_TRY(name_scopes(p));
	ELFRW_TRY(filter_groups(p, opt->filter));
	if (p->group.len)
		qsort_r(p->group.data, p->group.len, sizeof *p->group.data, group_order,
			&(struct order){ p, opt });
	return icf_product_pairs(p);
}
