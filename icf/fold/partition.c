/* partition.c: which units are the same, given that their targets may be folded too.
 *
 * Example: f calls a, and g calls b.  If a and b have equal bodies, f and g are the same as well.
 * Two pairs of mutually recursive functions may be the same only together.  The largest such
 * relation is the coarsest stable partition, the greatest fixpoint.  Begin with classes of equal
 * canonical form, in which a target counts only by its offset.  Split classes by their targets'
 * classes until nothing splits any more.  Starting from equal pairs and growing would miss the
 * recursive functions.
 *
 * Hashes only make buckets: forms are compared in full before the first round, and targets' classes
 * after the last one.  Most functions differ from all others in their size or in where their
 * references stand, and need no hash of their form.  Cost: one hash of the other foldable code,
 * then the cost of refine.h over the references of units that are not alone. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/sort.h"
#include "elfrw/base/wbuf.h"
#include "icf/fold/fold.h"
#include "icf/fold/refine.h"
#include <stdlib.h>
#include <string.h>

struct member {
	struct icf_hash hash;
	uint32_t unit;
	uint32_t cls; /* lowest unit of its class */
};

struct state {
	const struct icf_program *prog;
	enum icf_mode mode;
	struct member *m;
	uint32_t n;
	uint32_t per;
	uint32_t *cls; /* by unit; the caller's */
};

static int by_hash(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if (x->hash.lo != y->hash.lo)
		return x->hash.lo < y->hash.lo ? -1 : 1;
	if (x->hash.hi != y->hash.hi)
		return x->hash.hi < y->hash.hi ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* What units of equal forms have in common, and few others: their size, where their references
 * stand, and the code before the first of them. */
static uint64_t sketch(const struct icf_program *prog, uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_ref *ref = icf_unit_refs(prog, u);
	uint64_t h = icf_hash_mix(u->end - u->start, u->n_ref), head[2] = { 0 },
		 n = u->end - u->start < sizeof head ? u->end - u->start : sizeof head;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		n = ref[r].off < n ? ref[r].off : n;
		h = (h ^ ref[r].off) * 0x9e3779b97f4a7c15u;
		h ^= h >> 32;
	}
	memcpy(head, icf_unit_bytes(prog, u), n);
	return icf_hash_mix(icf_hash_mix(h, head[0]), head[1]);
}

/* Leaves the members that share the sketch of another.  Those of one place in the table count as
 * sharing it. */
static bool drop_different(struct state *st)
{
	size_t size = 64;
	while (size < 4 * (size_t)st->n)
		size *= 2;
	uint8_t *seen = calloc(size, 1);
	if (!seen)
		return false;
	for (uint32_t i = 0; i < st->n; i++) {
		st->m[i].hash.lo = sketch(st->prog, st->m[i].unit) & (size - 1);
		uint8_t *k = &seen[st->m[i].hash.lo];
		*k = *k ? 2 : 1;
	}
	uint32_t n = 0;
	for (uint32_t i = 0; i < st->n; i++)
		if (seen[st->m[i].hash.lo] > 1)
			st->m[n++].unit = st->m[i].unit;
	st->n = n;
	free(seen);
	return true;
}

static struct elfrw_err *hash_part(void *arg, size_t part)
{
	struct state *st = arg;
	struct icf_canon_scratch s;
	ELFRW_TRY(icf_canon_scratch_init(&s));
	struct elfrw_err *err = NULL;
	uint32_t end = (uint32_t)(part + 1) * st->per;
	for (uint32_t i = (uint32_t)part * st->per; i < end && i < st->n && !err; i++)
		err = icf_hash_unit(st->prog, st->mode, st->m[i].unit, &s, &st->m[i].hash);
	icf_canon_scratch_deinit(&s);
	return err;
}

/* Drops members that are alone in their class.  The others are then in the units' order, so that
 * the lowest node of a class is its lowest unit. */
static bool drop_single(struct state *st)
{
	uint32_t n_units = (uint32_t)st->prog->unit.len;
	uint8_t *shares = calloc(n_units + 1, 1);
	if (!shares)
		return false;
	for (uint32_t i = 0; i < st->n; i++) {
		st->cls[st->m[i].unit] = st->m[i].cls;
		if (st->m[i].cls != st->m[i].unit)
			shares[st->m[i].unit] = shares[st->m[i].cls] = 1;
	}
	st->n = 0;
	for (uint32_t i = 0; i < n_units; i++)
		if (shares[i])
			st->m[st->n++] = (struct member){ .unit = i, .cls = st->cls[i] };
	free(shares);
	return true;
}

/* The most forms of one hash.  The hash has no key, so that a file gives the same result wherever
 * it is folded.  So somebody can make a file in which any number of forms have one hash; with 128
 * bits this does not happen by chance.  Forms beyond this limit stay alone, which bounds the
 * time. */
#define MAX_FORMS 8

/* Turns members, sorted by hash, into classes.  Each member is compared in full with the first
 * members of the classes with its hash. */
static struct elfrw_err *first_classes(struct state *st)
{
	struct icf_canon_scratch s[2] = { 0 };
	ELFRW_TRY(icf_canon_scratch_init(&s[0]));
	struct elfrw_err *err = icf_canon_scratch_init(&s[1]);
	for (uint32_t i = 0; i < st->n && !err;) {
		uint32_t end = i + 1;
		while (end < st->n && st->m[end].hash.hi == st->m[i].hash.hi &&
		       st->m[end].hash.lo == st->m[i].hash.lo)
			end++;
		for (uint32_t k = i; k < end; k++)
			st->m[k].cls = ICF_NONE;
		uint32_t forms = 0;
		for (uint32_t k = i; k < end && !err; k++) {
			if (st->m[k].cls != ICF_NONE)
				continue;
			st->m[k].cls = st->m[k].unit;
			if (k + 1 < end && forms < MAX_FORMS)
				err = icf_put_form(st->prog, st->mode, st->m[k].unit, &s[0]);
			for (uint32_t j = k + 1; j < end && !err && forms < MAX_FORMS; j++) {
				bool same = false;
				if (st->m[j].cls != ICF_NONE)
					continue;
				err = icf_same_form(st->prog, st->mode, &s[0], st->m[j].unit, &s[1],
						    &same);
				if (same)
					st->m[j].cls = st->m[k].unit;
			}
			forms++;
		}
		i = end;
	}
	icf_canon_scratch_deinit(&s[0]);
	icf_canon_scratch_deinit(&s[1]);
	return err || drop_single(st) ? err : &elfrw_err_nomem;
}

/* The references of the members, as a graph of members.  FIRST and CLS have room for n + 1. */
static struct elfrw_err *find_edges(struct state *st, uint32_t *first, uint32_t *cls,
				    icf_unit_list *edges)
{
	uint32_t n_units = (uint32_t)st->prog->unit.len,
		 *number = malloc((n_units + 1) * sizeof *number);
	if (!number)
		return &elfrw_err_nomem;
	struct elfrw_err *err =
		n_units > UINT32_MAX / 2 ? elfrw_error("more than 2147483647 functions") : NULL;
	for (uint32_t i = 0; i < n_units; i++)
		number[i] = st->n + i; /* alone: equal only to itself */
	for (uint32_t i = 0; i < st->n; i++)
		number[st->m[i].unit] = i;
	for (uint32_t i = 0; i < st->n && !err; i++) {
		first[i] = (uint32_t)edges->len;
		cls[i] = st->m[i].cls;
		err = icf_edges(st->prog, st->mode, st->m[i].unit, edges);
	}
	first[st->n] = (uint32_t)edges->len;
	for (size_t e = 0; e < edges->len; e++)
		edges->data[e] = number[edges->data[e]];
	free(number);
	if (!err && edges->len > UINT32_MAX)
		err = elfrw_error(
			"more than 4294967295 references between functions that may be the same");
	return err;
}

/* Splits the first classes by the references of their members. */
static struct elfrw_err *split(struct state *st, uint32_t *rounds)
{
	uint32_t *first = malloc((st->n + 1) * sizeof *first),
		 *cls = malloc((st->n + 1) * sizeof *cls);
	icf_unit_list edges = { 0 };
	struct elfrw_err *err =
		first && cls ? find_edges(st, first, cls, &edges) : &elfrw_err_nomem;
	struct icf_graph g = { .n = st->n, .first = first, .edge = edges.data };
	struct icf_refine_cost cost = { 0 };
	if (!err)
		err = icf_refine(&g, cls, 64, &cost);
	for (uint32_t i = 0; i < st->n && !err; i++)
		st->cls[st->m[i].unit] = st->m[cls[i]].unit;
	*rounds = cost.rounds;
	VEC_FREE(&edges);
	free(first);
	free(cls);
	return err;
}

/* The units that may be in one class with others. */
static bool find_members(struct state *st, const uint32_t *coarse)
{
	const struct icf_program *prog = st->prog;
	uint8_t *shares = coarse ? calloc(prog->unit.len + 1, 1) : NULL;
	if (coarse && !shares)
		return false;
	for (uint32_t i = 0; i < prog->unit.len && coarse; i++)
		if (coarse[i] != i)
			shares[i] = shares[coarse[i]] = 1;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (prog->unit.data[i].reason == ICF_OK &&
		    !(prog->unit.data[i].flags & ICF_UNIT_PINNED) && (!coarse || shares[i]))
			st->m[st->n++].unit = i;
	free(shares);
	return true;
}

struct elfrw_err *icf_partition(const struct icf_program *prog, const struct icf_options *opt,
				const uint32_t *coarse, uint32_t *cls, uint32_t *rounds)
{
	struct state st = { .prog = prog, .mode = opt->mode, .per = 512, .cls = cls };
	*rounds = 0;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		cls[i] = i;
	st.m = malloc((prog->unit.len + 1) * sizeof *st.m);
	struct elfrw_err *err =
		st.m && find_members(&st, coarse) && drop_different(&st) ? NULL : &elfrw_err_nomem;
	if (!err)
		err = elfrw_parallel(opt->threads, (st.n + st.per - 1) / st.per, hash_part, &st);
	if (!err && !elfrw_sort_numbers(st.m, st.n, sizeof *st.m, 0, UINT64_MAX, by_hash))
		err = &elfrw_err_nomem;
	if (!err)
		err = first_classes(&st);
	if (!err)
		err = split(&st, rounds);
	free(st.m);
	return err;
}
