/* partition.c: which units are the same, given that what they refer to may be folded too.
 *
 * Example: f calls a, g calls b, and a and b have equal bodies: then f and g are the same as well; and two pairs of
 * mutually recursive functions may be the same only together.  The largest such relation is the coarsest partition that is
 * stable: begin with classes of equal canonical form, in which targets count for nothing but their offset, and split
 * classes by their targets' classes until nothing splits any more (the greatest fixpoint; starting from equal pairs and
 * growing would miss the recursive ones).
 *
 * Hashes only make buckets: forms are compared in full before the first round, and targets' classes after the last one;
 * members that do not agree with the first of their class leave it, and the rounds begin again.  Cost: one hash of all
 * foldable code, then rounds over the references of the units that still have company; real programs need 3 to 10. */
#include "elfrw/parallel.h"
#include "elfrw/wbuf.h"
#include "icf/fold.h"
#include <stdlib.h>
#include <string.h>

struct member {
	struct icf_hash hash;
	uint32_t unit;
	uint32_t cls;           /* lowest unit of its class */
	uint32_t edge, n_edges; /* into state.edges */
};

struct state {
	const struct icf_program *prog;
	enum icf_mode mode;
	struct member *m;
	uint32_t n;
	uint32_t per;
	icf_unit_list edges;
	uint32_t *cls; /* by unit; the caller's */
};

static int by_hash(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if (x->hash.hi != y->hash.hi)
		return x->hash.hi < y->hash.hi ? -1 : 1;
	if (x->hash.lo != y->hash.lo)
		return x->hash.lo < y->hash.lo ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

static int by_class(const void *a, const void *b)
{
	const struct member *x = a, *y = b;
	if (x->cls != y->cls)
		return x->cls < y->cls ? -1 : 1;
	return by_hash(a, b);
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

/* Drops members without company (runs of equal cls of length 1); needs runs to be adjacent. */
static void drop_single(struct state *st)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < st->n;) {
		uint32_t k = i + 1;
		while (k < st->n && st->m[k].cls == st->m[i].cls)
			k++;
		if (k - i > 1) {
			memmove(&st->m[n], &st->m[i], (k - i) * sizeof *st->m);
			n += k - i;
		} else
			st->cls[st->m[i].unit] = st->m[i].unit;
		i = k;
	}
	st->n = n;
}

/* Members sorted by hash become classes; each is compared in full with the first of its hash that it equals. */
static struct elfrw_err *first_classes(struct state *st)
{
	struct icf_canon_scratch sa = { 0 }, sb = { 0 };
	ELFRW_TRY(icf_canon_scratch_init(&sa));
	struct elfrw_err *err = icf_canon_scratch_init(&sb);
	for (uint32_t i = 0; i < st->n && !err;) {
		uint32_t end = i + 1;
		while (end < st->n && st->m[end].hash.hi == st->m[i].hash.hi && st->m[end].hash.lo == st->m[i].hash.lo)
			end++;
		for (uint32_t k = i; k < end; k++)
			st->m[k].cls = ICF_NONE;
		for (uint32_t k = i; k < end && !err; k++) {
			if (st->m[k].cls != ICF_NONE)
				continue;
			st->m[k].cls = st->m[k].unit;
			for (uint32_t j = k + 1; j < end && !err; j++) {
				bool same = false;
				if (st->m[j].cls != ICF_NONE)
					continue;
				err = icf_same_form(st->prog, st->mode, st->m[k].unit, st->m[j].unit, &sa, &sb, &same);
				if (same)
					st->m[j].cls = st->m[k].unit;
			}
		}
		i = end;
	}
	icf_canon_scratch_deinit(&sa);
	icf_canon_scratch_deinit(&sb);
	if (err)
		return err;
	for (uint32_t i = 0; i < st->n; i++)
		st->cls[st->m[i].unit] = st->m[i].cls;
	/* Without a collision the runs are adjacent already; with one, the sort by class makes them so. */
	qsort(st->m, st->n, sizeof *st->m, by_class);
	drop_single(st);
	for (uint32_t i = 0; i < st->n; i++) {
		st->m[i].edge = (uint32_t)st->edges.len;
		ELFRW_TRY(icf_edges(st->prog, st->mode, st->m[i].unit, &st->edges));
		st->m[i].n_edges = (uint32_t)st->edges.len - st->m[i].edge;
	}
	return NULL;
}

/* Splits every class by the hash of its members' target classes; true: something split. */
static bool split_round(struct state *st)
{
	for (uint32_t i = 0; i < st->n; i++) {
		struct member *m = &st->m[i];
		uint64_t lo = 1, hi = 2;
		for (uint32_t e = 0; e < m->n_edges; e++) {
			lo = icf_hash_mix(lo, st->cls[st->edges.data[m->edge + e]]);
			hi = icf_hash_mix(hi, ~(uint64_t)st->cls[st->edges.data[m->edge + e]]);
		}
		m->hash = (struct icf_hash){ lo, hi };
	}
	qsort(st->m, st->n, sizeof *st->m, by_class);
	bool split = false;
	for (uint32_t i = 0; i < st->n;) {
		uint32_t k = i + 1;
		while (k < st->n && st->m[k].cls == st->m[i].cls)
			k++;
		/* Within the run, sub-runs of one hash; each is named by its lowest unit, which stands first. */
		for (uint32_t a = i; a < k;) {
			uint32_t b = a;
			while (b < k && st->m[b].hash.hi == st->m[a].hash.hi && st->m[b].hash.lo == st->m[a].hash.lo)
				b++;
			split |= b - a < k - i;
			uint32_t name = st->m[a].unit;
			for (; a < b; a++)
				st->m[a].hash.hi = name; /* the new class, set below so that this run keeps its old one */
		}
		i = k;
	}
	for (uint32_t i = 0; i < st->n; i++) {
		st->m[i].cls = (uint32_t)st->m[i].hash.hi;
		st->cls[st->m[i].unit] = st->m[i].cls;
	}
	drop_single(st);
	return split;
}

/* The proof: every member's targets are of the same classes as those of the first of its class.  Who disagrees (a hash collision)
 * leaves the class; true: somebody did. */
static bool expel(struct state *st)
{
	bool any = false;
	for (uint32_t i = 0; i < st->n;) {
		uint32_t k = i + 1;
		uint32_t out = ICF_NONE;
		for (; k < st->n && st->m[k].cls == st->m[i].cls; k++) {
			bool same = st->m[k].n_edges == st->m[i].n_edges;
			for (uint32_t e = 0; e < st->m[i].n_edges && same; e++)
				same = st->cls[st->edges.data[st->m[k].edge + e]] == st->cls[st->edges.data[st->m[i].edge + e]];
			if (same)
				continue;
			if (out == ICF_NONE)
				out = st->m[k].unit;
			st->cls[st->m[k].unit] = out;
			any = true;
		}
		i = k;
	}
	for (uint32_t i = 0; i < st->n; i++)
		st->m[i].cls = st->cls[st->m[i].unit];
	if (any) {
		qsort(st->m, st->n, sizeof *st->m, by_class);
		drop_single(st);
	}
	return any;
}

struct elfrw_err *icf_partition(const struct icf_program *prog, const struct icf_options *opt, uint32_t *cls, uint32_t *rounds)
{
	struct state st = { .prog = prog, .mode = opt->mode, .per = 512, .cls = cls };
	*rounds = 0;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		cls[i] = i;
	st.m = malloc((prog->unit.len + 1) * sizeof *st.m);
	if (!st.m)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (prog->unit.data[i].reason == ICF_OK && !(prog->unit.data[i].flags & ICF_UNIT_PINNED))
			st.m[st.n++].unit = i;
	struct elfrw_err *err = elfrw_parallel(opt->threads, (st.n + st.per - 1) / st.per, hash_part, &st);
	if (!err) {
		qsort(st.m, st.n, sizeof *st.m, by_hash);
		err = first_classes(&st);
	}
	while (!err) {
		++*rounds;
		if (!split_round(&st) && !expel(&st))
			break;
	}
	free(st.m);
	VEC_FREE(&st.edges);
	return err;
}
