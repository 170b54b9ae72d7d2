/* diff.c: see diff.h.
 *
 * Files of the two builds belong together by their names below what was asked for; groups by their
 * hash, else by their name: the code of a function may change in all of its copies.  A function was
 * added if the new build has more copies of the code, and the old one no copy of that name in that
 * file.  Two that were the same before, and changed together, were not added; of code that is new,
 * names tell that, so functions without names are left out there. */
#include "icf/audit/product/diff.h"
#include "elfrw/base/search.h"
#include "icf/audit/product/share.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 4096

static const char *rel(const struct icf_product *p, uint32_t k)
{
	return p->file.data[k].name + p->file.data[k].rel;
}

static int64_t weight(const struct icf_product *p, uint32_t k, int mode)
{
	return k == ICF_NONE ? 0 : (int64_t)p->file.data[k].facts.duplicated[mode];
}

static int change_order(const void *a, const void *b)
{
	const struct icf_product_change *x = a, *y = b;
	if (x->delta != y->delta)
		return x->delta > y->delta ? -1 : 1;
	if (x->new != y->new)
		return x->new < y->new ? -1 : 1;
	return x->old < y->old ? -1 : x->old > y->old;
}

/* ---- files ---- */

static int rel_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product *p = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = strcmp(rel(p, x), rel(p, y));
	return c ? c : x < y ? -1 : x > y;
}

/* The files that count, by name; *N of them.  The caller frees the array; NULL: out of memory. */
static uint32_t *sort_files(const struct icf_product *p, uint32_t *n)
{
	uint32_t *id = malloc((p->file.len + 1) * sizeof *id);
	*n = 0;
	for (size_t k = 0; k < p->file.len && id; k++)
		if (p->file.data[k].state == ICF_FILE_DONE)
			id[(*n)++] = (uint32_t)k;
	if (*n)
		qsort_r(id, *n, sizeof *id, rel_order, (void *)p);
	return id;
}

static struct elfrw_err *add_file(struct icf_product_diff *d, uint32_t old, uint32_t new, int mode)
{
	const struct icf_product_file *o = old == ICF_NONE ? NULL : &d->p[0]->file.data[old];
	const struct icf_product_file *n = new == ICF_NONE ? NULL : &d->p[1]->file.data[new];
	int64_t delta = weight(d->p[1], new, mode) - weight(d->p[0], old, mode);
	if (o && n && !delta && o->facts.code == n->facts.code)
		return NULL;
	struct icf_product_change *to = VEC_PUSH(&d->file);
	if (!to)
		return &elfrw_err_nomem;
	*to = (struct icf_product_change){ old, new, delta };
	return NULL;
}

static struct elfrw_err *compare_files(struct icf_product_diff *d, int mode)
{
	uint32_t n[2];
	uint32_t *id[2] = { sort_files(d->p[0], &n[0]), sort_files(d->p[1], &n[1]) };
	struct elfrw_err *err = id[0] && id[1] ? NULL : &elfrw_err_nomem;
	/* One file each: the same program, whatever the names. */
	bool single = n[0] == 1 && n[1] == 1;
	for (uint32_t o = 0, k = 0; !err && (o < n[0] || k < n[1]);) {
		int c = single      ? 0
			: o == n[0] ? 1
			: k == n[1] ? -1
				    : strcmp(rel(d->p[0], id[0][o]), rel(d->p[1], id[1][k]));
		err = add_file(d, c <= 0 ? id[0][o] : ICF_NONE, c >= 0 ? id[1][k] : ICF_NONE, mode);
		o += c <= 0;
		k += c >= 0;
	}
	if (d->file.len)
		qsort(d->file.data, d->file.len, sizeof *d->file.data, change_order);
	free(id[0]);
	free(id[1]);
	return err;
}

/* ---- groups ---- */

struct groups {
	const struct icf_product *p;
	uint32_t *id, n;
};

static int hash_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product *p = ctx;
	const struct icf_product_group *x = &p->group.data[*(const uint32_t *)a],
				       *y = &p->group.data[*(const uint32_t *)b];
	return memcmp(x->hash, y->hash, sizeof x->hash);
}

/* By name, those without a name last; then largest first. */
static int name_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product *p = ctx;
	uint32_t i = *(const uint32_t *)a, k = *(const uint32_t *)b;
	const struct icf_product_group *x = &p->group.data[i], *y = &p->group.data[k];
	const char *s = icf_product_name(p, x->name), *t = icf_product_name(p, y->name);
	int c = s && t ? strcmp(s, t) : (s == NULL) - (t == NULL);
	if (!c)
		c = x->saving > y->saving ? -1 : x->saving < y->saving;
	return c ? c : i < k ? -1 : i > k;
}

static struct elfrw_err *add_group(struct icf_product_diff *d, uint32_t old, uint32_t new)
{
	uint64_t before = old == ICF_NONE ? 0 : d->p[0]->group.data[old].saving;
	uint64_t after = new == ICF_NONE ? 0 : d->p[1]->group.data[new].saving;
	if (before == after)
		return NULL;
	struct icf_product_change *to = VEC_PUSH(&d->group);
	if (!to)
		return &elfrw_err_nomem;
	*to = (struct icf_product_change){ old, new, (int64_t)(after - before) };
	return NULL;
}

/* Takes the groups that both lists have, in the order of COMPARE, out of the lists. */
static struct elfrw_err *match_groups(struct icf_product_diff *d, struct groups g[2], bool by_name)
{
	uint32_t left[2] = { 0, 0 }, o = 0, k = 0;
	for (int b = 0; b < 2; b++)
		if (g[b].n)
			qsort_r(g[b].id, g[b].n, sizeof *g[b].id, by_name ? name_order : hash_order,
				(void *)g[b].p);
	while (o < g[0].n || k < g[1].n) {
		const struct icf_product_group *x =
			o < g[0].n ? &g[0].p->group.data[g[0].id[o]] : NULL;
		const struct icf_product_group *y =
			k < g[1].n ? &g[1].p->group.data[g[1].id[k]] : NULL;
		int c;
		if (!x || !y)
			c = x ? -1 : 1;
		else if (!by_name)
			c = memcmp(x->hash, y->hash, sizeof x->hash);
		else if (x->name == ICF_NONE || y->name == ICF_NONE)
			c = x->name == ICF_NONE ? 1 : -1;
		else
			c = strcmp(icf_product_name(g[0].p, x->name),
				   icf_product_name(g[1].p, y->name));
		if (!c)
			ELFRW_TRY(add_group(d, g[0].id[o], g[1].id[k]));
		else if (c < 0)
			g[0].id[left[0]++] = g[0].id[o];
		else
			g[1].id[left[1]++] = g[1].id[k];
		o += c <= 0;
		k += c >= 0;
	}
	g[0].n = left[0];
	g[1].n = left[1];
	return NULL;
}

static struct elfrw_err *compare_groups(struct icf_product_diff *d)
{
	struct groups g[2] = { { .p = d->p[0] }, { .p = d->p[1] } };
	struct elfrw_err *err = NULL;
	for (int b = 0; b < 2; b++) {
		g[b].id = malloc((d->p[b]->group.len + 1) * sizeof *g[b].id);
		if (!g[b].id)
			err = &elfrw_err_nomem;
		for (size_t k = 0; k < d->p[b]->group.len && !err; k++)
			if (d->p[b]->group.data[k].match)
				g[b].id[g[b].n++] = (uint32_t)k;
	}
	if (!err)
		err = match_groups(d, g, false);
	if (!err)
		err = match_groups(d, g, true);
	for (uint32_t k = 0; k < g[0].n && !err; k++)
		err = add_group(d, g[0].id[k], ICF_NONE);
	for (uint32_t k = 0; k < g[1].n && !err; k++)
		err = add_group(d, ICF_NONE, g[1].id[k]);
	if (d->group.len)
		qsort(d->group.data, d->group.len, sizeof *d->group.data, change_order);
	free(g[0].id);
	free(g[1].id);
	return err;
}

/* ---- what was added ---- */

static const char *name_of(const struct icf_product *p, const struct icf_product_member *m)
{
	const char *name =
		icf_product_text(p, m->file, icf_product_funcs(p, m->file)[m->func].name);
	return name ? name : "";
}

/* Has the old build, among the N functions at OLD, one of the name and in the file of M? */
static bool was_there(const struct icf_product_diff *d, const struct icf_product_member *m,
		      const struct icf_product_entry *old, size_t n, bool single)
{
	for (size_t k = 0; k < n; k++)
		if ((single ||
		     strcmp(rel(d->p[0], old[k].member.file), rel(d->p[1], m->file)) == 0) &&
		    strcmp(name_of(d->p[0], &old[k].member), name_of(d->p[1], m)) == 0)
			return true;
	return false;
}

#define MANY 2000 /* copies of a function; more are not compared by name */

/* The NEW functions have the same code as the OLD ones, and are more. */
static struct elfrw_err *add_functions(struct icf_product_diff *d,
				       const struct icf_product_entry *old, size_t n_old,
				       const struct icf_product_entry *new, size_t n_new)
{
	bool single = d->p[0]->done == 1 && d->p[1]->done == 1;
	size_t first = 0, room = n_old ? n_new - n_old : n_new - 1;
	const struct icf_product_func *f =
		&icf_product_funcs(d->p[1], new->member.file)[new->member.func];
	if (n_old > MANY || n_new > MANY || !f->size)
		return NULL;
	while (first < n_new && n_old && !was_there(d, &new[first].member, old, n_old, single))
		first++;
	first = first < n_new ? first : 0;
	for (size_t k = n_new; k-- > 0 && room;) {
		if (k == first || (n_old && was_there(d, &new[k].member, old, n_old, single)))
			continue;
		struct icf_product_added *to = VEC_PUSH(&d->added);
		if (!to)
			return &elfrw_err_nomem;
		*to = (struct icf_product_added){ new[k].member, new[first].member, f->size,
						  n_old == 0 };
		room--;
	}
	return NULL;
}

static size_t run_of(const struct icf_product_entry *e, size_t n)
{
	size_t k = 1;
	while (k < n && memcmp(e[k].hash, e->hash, sizeof e->hash) == 0)
		k++;
	return n ? k : 0;
}

static int entry_order(const struct icf_product_entry *x, const struct icf_product_entry *y)
{
	for (int k = 0; k < 2; k++)
		if (x->hash[k] != y->hash[k])
			return x->hash[k] < y->hash[k] ? -1 : 1;
	return 0;
}

/* The hashes of the old build's functions, by file and name. */
struct before {
	struct icf_pool key;
	VEC(const uint64_t *) hash; /* by key */
	uint32_t *file;             /* by file of the new build: of the old one, or ICF_NONE */
	char text[TEXT_MAX];
};

static uint32_t key_of(struct before *b, uint32_t file, const char *name, bool add)
{
	int n = snprintf(b->text, sizeof b->text, "%u:%s", file, name);
	size_t len = n < (int)sizeof b->text ? (size_t)n : sizeof b->text - 1;
	return add ? icf_pool_add(&b->key, b->text, len) : icf_pool_find(&b->key, b->text, len);
}

static struct elfrw_err *take_file(struct before *b, const struct icf_product *p, uint32_t file)
{
	const struct icf_product_func *f = icf_product_funcs(p, file);
	for (uint32_t k = 0; k < p->file.data[file].facts.n_func; k++) {
		const char *name = icf_product_text(p, file, f[k].name);
		uint32_t id = name ? key_of(b, file, name, true) : 0;
		if (id == ICF_POOL_NONE)
			return &elfrw_err_nomem;
		if (!name || id < b->hash.len)
			continue;
		const uint64_t **to = VEC_PUSH(&b->hash);
		if (!to)
			return &elfrw_err_nomem;
		*to = f[k].hash;
	}
	return NULL;
}

/* Reads the old file that the new build's FILE belongs to, once. */
static struct elfrw_err *take_before(const struct icf_product_diff *d, struct before *b,
				     const uint32_t *id, uint32_t n, uint32_t file)
{
	if (b->file[file] != ICF_NONE)
		return NULL;
	bool single = d->p[0]->done == 1 && d->p[1]->done == 1;
	const char *name = rel(d->p[1], file);
	size_t k = single ? 0 : LOWER_BOUND(0, n, mid, strcmp(rel(d->p[0], id[mid]), name) < 0);
	if (k >= n || (!single && strcmp(rel(d->p[0], id[k]), name) != 0))
		return NULL;
	b->file[file] = id[k];
	return take_file(b, d->p[0], id[k]);
}

static const uint64_t *hash_before(const struct icf_product_diff *d, struct before *b,
				   const struct icf_product_member *m)
{
	const char *name = name_of(d->p[1], m);
	if (!*name || b->file[m->file] == ICF_NONE)
		return NULL;
	uint32_t id = key_of(b, b->file[m->file], name, false);
	return id == ICF_POOL_NONE ? NULL : b->hash.data[id];
}

/* Drops what was not added but changed. */
static struct elfrw_err *drop_changed(struct icf_product_diff *d)
{
	struct before *b = calloc(1, sizeof *b);
	uint32_t n, *id = sort_files(d->p[0], &n);
	size_t left = 0, n_files = d->p[1]->file.len;
	struct elfrw_err *err = b && id ? NULL : &elfrw_err_nomem;
	if (b && !(b->file = malloc((n_files + 1) * sizeof *b->file)))
		err = &elfrw_err_nomem;
	if (!err)
		memset(b->file, 0xff, (n_files + 1) * sizeof *b->file);
	for (size_t k = 0; k < d->added.len && !err; k++) {
		const struct icf_product_added *x = &d->added.data[k];
		err = take_before(d, b, id, n, x->added.file);
		if (!err)
			err = take_before(d, b, id, n, x->first.file);
	}
	for (size_t k = 0; k < d->added.len && !err; k++) {
		const struct icf_product_added *x = &d->added.data[k];
		const uint64_t *added = hash_before(d, b, &x->added),
			       *first = hash_before(d, b, &x->first);
		bool named = *name_of(d->p[1], &x->added) && *name_of(d->p[1], &x->first);
		bool was = added && first && memcmp(added, first, 2 * sizeof *first) == 0;
		if (!was && (named || !x->fresh))
			d->added.data[left++] = *x;
	}
	if (!err)
		d->added.len = left;
	if (b) {
		icf_pool_deinit(&b->key);
		VEC_FREE(&b->hash);
		free(b->file);
	}
	free(b);
	free(id);
	return err;
}

static int added_order(const void *a, const void *b)
{
	const struct icf_product_added *x = a, *y = b;
	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	if (x->added.file != y->added.file)
		return x->added.file < y->added.file ? -1 : 1;
	return x->added.func < y->added.func ? -1 : x->added.func > y->added.func;
}

static struct elfrw_err *find_added(struct icf_product_diff *d, unsigned threads)
{
	size_t n[2];
	struct icf_product_entry *e[2] = { icf_product_sort(d->p[0], threads, &n[0]),
					   icf_product_sort(d->p[1], threads, &n[1]) };
	struct elfrw_err *err = e[0] && e[1] ? NULL : &elfrw_err_nomem;
	for (size_t o = 0, k = 0, no, nk; k < n[1] && !err; k += nk) {
		nk = run_of(e[1] + k, n[1] - k);
		while (o < n[0] && entry_order(&e[0][o], &e[1][k]) < 0)
			o++;
		bool same = o < n[0] && entry_order(&e[0][o], &e[1][k]) == 0;
		no = same ? run_of(e[0] + o, n[0] - o) : 0;
		if (nk > 1 && nk > no)
			err = add_functions(d, e[0] + o, no, e[1] + k, nk);
	}
	if (!err && d->added.len)
		err = drop_changed(d);
	if (d->added.len)
		qsort(d->added.data, d->added.len, sizeof *d->added.data, added_order);
	free(e[0]);
	free(e[1]);
	return err;
}

struct elfrw_err *icf_product_compare(struct icf_product_diff *d, const struct icf_product *old,
				      const struct icf_product *new,
				      const struct icf_audit_options *opt)
{
	int m = opt->mode;
	d->p[0] = old;
	d->p[1] = new;
	d->growth = (int64_t)(new->total.duplicated[m] + new->shared_saving) -
		    (int64_t)(old->total.duplicated[m] + old->shared_saving);
	ELFRW_TRY(compare_files(d, m));
	ELFRW_TRY(compare_groups(d));
	return find_added(d, opt->threads);
}

void icf_product_diff_deinit(struct icf_product_diff *d)
{
	VEC_FREE(&d->file);
	VEC_FREE(&d->group);
	VEC_FREE(&d->added);
}
