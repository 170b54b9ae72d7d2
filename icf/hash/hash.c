/* hash.c: see hash.h.
 *
 * 1. Each node gets the hash of its form (form.c, data.c), and its edges.
 * 2. Nodes of equal forms are split by the classes that their edges lead to, until nothing splits
 *    (fold/refine.h).  Places of one class are different objects with equal contents; a number, in
 *    the order of their uses, tells them apart, and the classes are split once more.
 * 3. The graph of the classes has no two nodes that mean the same.  Its hashes are made from the
 *    callees up (circle.c).
 *
 * What a node means then depends on nothing but what it leads to.  Two exceptions make objects
 * without names comparable: a variable is known by one use of it, and equal objects have numbers.
 *
 * Cost: one hash of all code and of all constants that something refers to, and the cost of
 * refine.h over all references, twice. */
#include "elfrw/base/parallel.h"
#include "icf/fold/refine.h"
#include "icf/hash/state.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PER = 512 };

struct part {
	icf_unit_list edge;
	uint32_t count[PER]; /* edges of each node */
};

struct job {
	struct icf_hasher *h;
	struct part *part;
};

static struct elfrw_err *form_part(void *arg, size_t index)
{
	struct job *job = arg;
	struct icf_hasher *h = job->h;
	struct part *p = &job->part[index];
	struct icf_form f = { 0 };
	struct elfrw_err *err = NULL;
	uint32_t from = (uint32_t)index * PER;
	for (uint32_t i = from; i < h->n && i - from < PER && !err; i++) {
		f.buf.len = f.edge.len = 0;
		err = i < h->n_units ? icf_form_unit(h, i, &f)
				     : icf_form_place(h, i - h->n_units, &f);
		if (err)
			break;
		h->form[i] = icf_hash_bytes(f.buf.data, f.buf.len);
		p->count[i - from] = (uint32_t)f.edge.len;
		if (!VEC_APPEND(&p->edge, f.edge.data, f.edge.len))
			err = &elfrw_err_nomem;
	}
	icf_form_deinit(&f);
	return err;
}

/* How a variable begins: with nothing or a zero, another byte, or an address.  The variable that
 * stands for a program among others holds its own address, or zero: __dso_handle in the start files
 * of programs with and without a fixed address. */
static uint64_t beginning(const struct icf_hasher *h, const struct icf_place *k)
{
	struct icf_means m;
	const uint8_t *p = elfrw_image_at(h->prog->img, k->va, 1);
	if (k->nothing)
		return 0;
	if (icf_hash_word(h, k->va, &m))
		return m.kind == ICF_TO_NODE && m.node >= h->n_units &&
				       &h->place.data[m.node - h->n_units] == k
			       ? 0
			       : 256;
	return icf_dynreloc_at(h->prog, k->va) ? 256 : p ? *p : 0;
}

/* Gives the places that node I refers to the hash of this use: I's form and which of its edges it
 * is.  Of the uses of the first rank that has any, the least counts. */
static void name_by_use(struct icf_hasher *h, uint32_t i, uint8_t rank)
{
	for (uint32_t e = h->first[i]; e < h->first[i + 1]; e++) {
		if (h->edge[e] < h->n_units)
			continue;
		struct icf_place *k = &h->place.data[h->edge[e] - h->n_units];
		if (k->rank && k->rank != rank)
			continue;
		uint64_t use[3] = { h->form[i].lo, h->form[i].hi, e - h->first[i] };
		struct icf_hash key = icf_hash_bytes(use, sizeof use);
		if (!k->rank || icf_hash_cmp(&key, &k->key) < 0)
			k->key = key;
		k->rank = rank;
	}
}

/* Names the variables: by how they begin and by a use.  Another program with the function has the
 * same name for it.  Functions without unwind rules, such as those of the start files, are none
 * once symbols are gone: they come after the others, and data comes last. */
static void name_places(struct icf_hasher *h)
{
	for (uint8_t rank = 1; rank <= 2; rank++)
		for (uint32_t i = 0; i < h->n_units; i++) {
			const struct icf_unit *u = &h->prog->unit.data[i];
			bool later = !u->n_fde && h->prog->cfi.fde.len;
			if (u->kind != ICF_UNIT_RIGID && later == (rank == 2))
				name_by_use(h, i, rank);
		}
	for (uint32_t i = h->n_units; i < h->n; i++)
		name_by_use(h, i, 3);
	for (uint32_t i = 0; i < h->place.len; i++)
		if (h->place.data[i].kind == ICF_PLACE_VARIABLE)
			h->form[h->n_units + i] =
				icf_hash_mixed(ICF_MIX_VARIABLE, h->place.data[i].key,
					       beginning(h, &h->place.data[i]));
}

/* Forms and edges of all nodes. */
static struct elfrw_err *make_graph(struct icf_hasher *h)
{
	size_t n_parts = (h->n + PER - 1) / PER, m = 0;
	struct part *part = calloc(n_parts + 1, sizeof *part);
	struct job job = { h, part };
	struct elfrw_err *err =
		part ? elfrw_parallel(h->threads, n_parts, form_part, &job) : &elfrw_err_nomem;
	for (size_t p = 0; p < n_parts && part; p++)
		m += part[p].edge.len;
	if (!err && m >= UINT32_MAX)
		err = elfrw_error("more than 4294967294 references");
	if (!err && !(h->edge = malloc((m + 1) * sizeof *h->edge)))
		err = &elfrw_err_nomem;
	for (uint32_t i = 0, at = 0; i <= h->n && !err; i++) {
		h->first[i] = at;
		if (i < h->n)
			at += part[i / PER].count[i % PER];
	}
	for (size_t p = 0; p < n_parts && part; p++) {
		if (!err && part[p].edge.len)
			memcpy(h->edge + h->first[p * PER], part[p].edge.data,
			       part[p].edge.len * sizeof *h->edge);
		VEC_FREE(&part[p].edge);
	}
	free(part);
	if (!err)
		name_places(h);
	return err;
}

static int form_order(const void *a, const void *b, void *ctx)
{
	const struct icf_hash *form = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	int c = icf_hash_cmp(&form[x], &form[y]);
	return c ? c : x < y ? -1 : x > y;
}

/* Sets cls[i] to the lowest node with the form of node i.  SORTED: room for all nodes. */
static void sort_forms(const struct icf_hasher *h, uint32_t *sorted, uint32_t *cls)
{
	for (uint32_t i = 0; i < h->n; i++)
		sorted[i] = i;
	if (h->n)
		qsort_r(sorted, h->n, sizeof *sorted, form_order, h->form);
	for (uint32_t i = 0; i < h->n; i++) {
		bool same = i && icf_hash_cmp(&h->form[sorted[i]], &h->form[sorted[i - 1]]) == 0;
		cls[sorted[i]] = same ? cls[sorted[i - 1]] : sorted[i];
	}
}

/* The same, by a table of nodes.  Somebody may have made forms for one place of it: then they are
 * sorted. */
static struct elfrw_err *same_forms(const struct icf_hasher *h, uint32_t *scratch, uint32_t *cls)
{
	size_t size = 64, mask, steps = 0;
	while (size < 2 * (size_t)h->n)
		size *= 2;
	mask = size - 1;
	uint32_t *table = malloc(size * sizeof *table);
	if (!table)
		return &elfrw_err_nomem;
	memset(table, 0xff, size * sizeof *table);
	for (uint32_t i = 0; i < h->n && steps < 8 * size; i++) {
		size_t k = h->form[i].hi & mask;
		while (table[k] != UINT32_MAX &&
		       icf_hash_cmp(&h->form[table[k]], &h->form[i]) != 0 && ++steps < 8 * size)
			k = (k + 1) & mask;
		if (table[k] == UINT32_MAX)
			table[k] = i;
		cls[i] = table[k];
	}
	free(table);
	if (steps >= 8 * size)
		sort_forms(h, scratch, cls);
	return NULL;
}

struct numbering {
	const struct icf_hasher *h;
	const uint32_t *cls;
};

static int number_order(const void *a, const void *b, void *ctx)
{
	const struct numbering *n = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (n->cls[x] != n->cls[y])
		return n->cls[x] < n->cls[y] ? -1 : 1;
	const struct icf_place *place = n->h->place.data - n->h->n_units;
	int c = icf_hash_cmp(&place[x].key, &place[y].key);
	return c ? c : x < y ? -1 : x > y;
}

/* Are there as many of place K, or fewer or more, as a linker likes?  Strings, zeros, and numbers
 * that are only read mean the same wherever they are. */
static bool is_merged(const struct icf_place *k)
{
	return k->kind == ICF_PLACE_CONSTANT && (k->text || !k->taken || k->end == k->va);
}

/* Numbers the places of each class, in the order of their uses and then of their addresses, and
 * makes the number part of the form.  ORDER: room for all nodes. */
static void number_places(struct icf_hasher *h, const uint32_t *cls, uint32_t *order)
{
	struct numbering by = { h, cls };
	uint32_t n = 0, count = 0;
	for (uint32_t i = h->n_units; i < h->n; i++)
		if (!is_merged(&h->place.data[i - h->n_units]))
			order[n++] = i;
	if (n)
		qsort_r(order, n, sizeof *order, number_order, &by);
	for (uint32_t k = 0; k < n; k++) {
		count = k && cls[order[k]] == cls[order[k - 1]] ? count + 1 : 0;
		if (count)
			h->form[order[k]] =
				icf_hash_mixed(ICF_MIX_NUMBER, h->form[order[k]], count);
	}
}

static struct elfrw_err *classes(struct icf_hasher *h, uint32_t *scratch, uint32_t *cls)
{
	struct icf_graph g = { h->n, h->first, h->edge };
	struct icf_refine_cost cost;
	ELFRW_TRY(same_forms(h, scratch, cls));
	ELFRW_TRY(icf_refine(&g, cls, 64, &cost));
	number_places(h, cls, scratch);
	ELFRW_TRY(same_forms(h, scratch, cls));
	return icf_refine(&g, cls, 64, &cost);
}

struct elfrw_err *icf_hash_functions(const struct icf_program *prog, unsigned threads,
				     struct icf_hash *ret)
{
	struct icf_hasher h = { .prog = prog,
				.threads = threads,
				.n_units = (uint32_t)prog->unit.len };
	uint32_t *cls = NULL, *scratch = NULL;
	struct elfrw_err *err = icf_hash_versions(&h);
	if (!err && prog->dataref.len &&
	    !elfrw_starts_make(&h.dataref_index, &prog->dataref.data->place,
			       sizeof *prog->dataref.data, prog->dataref.len))
		err = &elfrw_err_nomem;
	if (!err)
		err = icf_hash_find_places(&h);
	h.n = h.n_units + (uint32_t)h.place.len;
	if (!err && h.place.len &&
	    !elfrw_starts_make(&h.place_index, &h.place.data->va, sizeof *h.place.data,
			       h.place.len))
		err = &elfrw_err_nomem;
	if (!err) {
		h.form = calloc((size_t)h.n + 1, sizeof *h.form);
		h.first = calloc((size_t)h.n + 1, sizeof *h.first);
		cls = malloc(((size_t)h.n + 1) * sizeof *cls);
		scratch = malloc(((size_t)h.n + 1) * sizeof *scratch);
		err = h.form && h.first && cls && scratch ? make_graph(&h) : &elfrw_err_nomem;
	}
	if (!err)
		err = classes(&h, scratch, cls);
	if (!err)
		err = icf_hash_circles(&h, cls);
	for (uint32_t i = 0; i < h.n_units && !err; i++)
		ret[i] = h.form[cls[i]];
	free(cls);
	free(scratch);
	free(h.form);
	free(h.first);
	free(h.edge);
	free(h.version);
	VEC_FREE(&h.place);
	elfrw_blocks_deinit(&h.place_index.blocks);
	elfrw_blocks_deinit(&h.dataref_index.blocks);
	return err;
}

void icf_hash_text(const struct icf_hash *hash, char ret[ICF_HASH_TEXT])
{
	snprintf(ret, ICF_HASH_TEXT, "%016" PRIx64 "%016" PRIx64, hash->hi, hash->lo);
}
