/* pairs.c: which two files have most in common.
 *
 * Groups with the same files are added up first: what many files have in common is in few such
 * sets.  A set of n files counts for n * n / 2 pairs.  The work is limited; sets of too many files
 * are left out then, the largest first, and the report says so. */
#include "icf/audit/product/share.h"
#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define MAX_WORK 400000000ULL /* steps */

struct set {
	uint64_t hash[2]; /* of its files */
	uint64_t bytes;
	uint32_t functions;
	uint32_t first, n; /* into the array of files */
};

struct sets {
	VEC(struct set) set;
	VEC(uint32_t) file;
	uint32_t *start, *of; /* by file: its sets, as indices; owned */
};

static int hash_order(const void *a, const void *b)
{
	const struct set *x = a, *y = b;
	for (int k = 0; k < 2; k++)
		if (x->hash[k] != y->hash[k])
			return x->hash[k] < y->hash[k] ? -1 : 1;
	return x->first < y->first ? -1 : x->first > y->first;
}

static int size_order(const void *a, const void *b)
{
	const struct set *x = a, *y = b;
	if (x->n != y->n)
		return x->n < y->n ? -1 : 1;
	return hash_order(a, b);
}

static struct elfrw_err *add_set(struct sets *s, const struct icf_product *p,
				 const struct icf_product_group *g)
{
	struct set *set = VEC_PUSH(&s->set);
	if (!set || !VEC_RESERVE(&s->file, s->file.len + g->files))
		return &elfrw_err_nomem;
	set->first = (uint32_t)s->file.len;
	set->bytes = g->size;
	set->functions = 1;
	for (uint32_t k = g->member; k < g->member + g->count; k++) {
		uint32_t file = p->member.data[k].file;
		if (k == g->member || file != p->member.data[k - 1].file)
			s->file.data[s->file.len++] = file;
	}
	set->n = (uint32_t)s->file.len - set->first;
	XXH128_hash_t h = XXH3_128bits(s->file.data + set->first, set->n * sizeof(uint32_t));
	set->hash[0] = h.low64;
	set->hash[1] = h.high64;
	return NULL;
}

/* Adds up sets of the same files, and leaves out sets that are too much work. */
static void merge_sets(struct icf_product *p, struct sets *s)
{
	size_t n = 0;
	uint64_t work = 0;
	if (s->set.len)
		qsort(s->set.data, s->set.len, sizeof *s->set.data, hash_order);
	for (size_t k = 0; k < s->set.len; k++) {
		struct set *last = n ? &s->set.data[n - 1] : NULL;
		if (last && memcmp(last->hash, s->set.data[k].hash, sizeof last->hash) == 0) {
			last->bytes += s->set.data[k].bytes;
			last->functions += s->set.data[k].functions;
		} else
			s->set.data[n++] = s->set.data[k];
	}
	if (n)
		qsort(s->set.data, n, sizeof *s->set.data, size_order);
	s->set.len = 0;
	for (size_t k = 0; k < n && !p->pairs_cut; k++) {
		work += (uint64_t)s->set.data[k].n * s->set.data[k].n;
		p->pairs_cut = work > MAX_WORK;
		s->set.len += !p->pairs_cut;
	}
}

/* The sets of each file. */
static bool index_sets(const struct icf_product *p, struct sets *s)
{
	size_t n = 0;
	s->start = calloc(p->file.len + 2, sizeof *s->start);
	for (size_t k = 0; k < s->set.len && s->start; k++)
		for (uint32_t i = 0; i < s->set.data[k].n; i++, n++)
			s->start[s->file.data[s->set.data[k].first + i] + 2]++;
	s->of = malloc((n + 1) * sizeof *s->of);
	if (!s->start || !s->of)
		return false;
	for (size_t k = 2; k < p->file.len + 2; k++)
		s->start[k] += s->start[k - 1];
	for (size_t k = 0; k < s->set.len; k++)
		for (uint32_t i = 0; i < s->set.data[k].n; i++)
			s->of[s->start[s->file.data[s->set.data[k].first + i] + 1]++] = (uint32_t)k;
	return true;
}

static int pair_order(const void *a, const void *b)
{
	const struct icf_product_pair *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	if (x->a != y->a)
		return x->a < y->a ? -1 : 1;
	return x->b < y->b ? -1 : x->b > y->b;
}

/* Keeps the pairs with most in common. */
static void cut_pairs(struct icf_product *p)
{
	if (p->pair.len)
		qsort(p->pair.data, p->pair.len, sizeof *p->pair.data, pair_order);
	if (p->pair.len > ICF_PRODUCT_PAIRS)
		p->pair.len = ICF_PRODUCT_PAIRS;
}

/* Counts what file A has in common with those behind it.  ROW is all zero, and is again. */
static struct elfrw_err *count_file(struct icf_product *p, const struct sets *s, uint32_t a,
				    struct icf_product_pair *row)
{
	for (uint32_t i = s->start[a]; i < s->start[a + 1]; i++) {
		const struct set *set = &s->set.data[s->of[i]];
		for (uint32_t k = 0; k < set->n; k++) {
			struct icf_product_pair *r = &row[s->file.data[set->first + k]];
			r->bytes += set->bytes;
			r->functions += set->functions;
		}
	}
	for (uint32_t b = 0; b < p->file.len; b++) {
		struct icf_product_pair *to = b > a && row[b].functions ? VEC_PUSH(&p->pair) : NULL;
		if (to)
			*to = (struct icf_product_pair){ a, b, row[b].functions, row[b].bytes };
		else if (b > a && row[b].functions)
			return &elfrw_err_nomem;
		row[b] = (struct icf_product_pair){ 0 };
	}
	if (p->pair.len > 64 * ICF_PRODUCT_PAIRS)
		cut_pairs(p);
	return NULL;
}

struct elfrw_err *icf_product_pairs(struct icf_product *p)
{
	struct sets s = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t k = 0; k < p->group.len && !err; k++)
		if (p->group.data[k].match)
			err = add_set(&s, p, &p->group.data[k]);
	struct icf_product_pair *row = calloc(p->file.len + 1, sizeof *row);
	if (!err) {
		merge_sets(p, &s);
		if (!row || !index_sets(p, &s))
			err = &elfrw_err_nomem;
	}
	for (uint32_t a = 0; a < p->file.len && !err; a++)
		err = count_file(p, &s, a, row);
	if (!err)
		cut_pairs(p);
	free(row);
	free(s.start);
	free(s.of);
	VEC_FREE(&s.set);
	VEC_FREE(&s.file);
	return err;
}
