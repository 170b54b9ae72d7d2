/* table.c: position-independent jump tables without relocations, of all units; see unit.c.
 *
 * Runs of units are read in parallel; their results are joined in order.  Cost: one more pass over
 * the code of units that jump. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "icf/infer/unit.h"
#include "icf/program/unit.h"
#include <stdlib.h>
#include <string.h>

/* Is NAME that of a cold part?  Most names have no dot, and finding one is faster. */
static bool is_cold(const char *name)
{
	const char *dot = strchr(name, '.');
	return dot && strstr(dot, ".cold");
}

struct elfrw_err *icf_find_called(const struct icf_program *prog, struct icf_bits *called)
{
	if (!icf_bits_init(called, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if (ref[r].kind != ICF_REF_BRANCH || (ref[r].flags & ICF_REF_CALL))
				icf_set_bit(called, ref[r].target);
	}
	/* The origin of a distance is not known yet. */
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (prog->dataref.data[i].kind != ICF_DATA_DISTANCE)
			icf_set_bit(called, prog->dataref.data[i].target);
	for (size_t i = 0; i < prog->sym.len; i++) {
		const struct icf_symbol *s = &prog->sym.data[i];
		/* Cold parts have local names; the search is too slow for other symbols. */
		if (s->type == STT_FUNC && !(s->bind == STB_LOCAL && is_cold(s->name)))
			icf_set_bit(called, s->value);
	}
	return NULL;
}

/* Finds the places in other units that units jump to. */
static struct elfrw_err *find_joined(const struct icf_program *prog, struct icf_bits *joined)
{
	if (!icf_bits_init(joined, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_ref *ref = icf_unit_refs(prog, &prog->unit.data[i]);
		for (uint32_t r = 0; r < prog->unit.data[i].n_ref; r++)
			if (ref[r].kind == ICF_REF_BRANCH && !(ref[r].flags & ICF_REF_CALL))
				icf_set_bit(joined, ref[r].target);
	}
	return NULL;
}

struct table_job {
	struct icf_program *prog;
	const struct icf_data_map *map;
	const struct icf_bits *insn, *called, *joined;
	uint32_t per; /* units of a part */
	struct icf_found *part;
};

static struct elfrw_err *look_at(void *arg, size_t part)
{
	const struct table_job *job = arg;
	struct icf_program *prog = job->prog;
	struct icf_finder f = { .prog = prog,
				.map = job->map,
				.insn = job->insn,
				.called = job->called,
				.joined = job->joined,
				.found = &job->part[part] };
	struct elfrw_err *err = NULL;
	uint32_t end = (uint32_t)(part + 1) * job->per;
	for (uint32_t i = (uint32_t)part * job->per; i < end && i < prog->unit.len && !err; i++)
		if (prog->unit.data[i].kind != ICF_UNIT_OPAQUE &&
		    !(prog->unit.data[i].flags & ICF_UNIT_BLIND))
			err = icf_find_unit_tables(&f, i);
	icf_finder_deinit(&f);
	return err;
}

/* What all units' tables are looked at with; no part of it depends on another. */
struct basis {
	const struct icf_program *prog;
	struct icf_data_map *map;
	struct icf_bits called, joined;
};

static struct elfrw_err *find_basis(void *arg, size_t i)
{
	struct basis *b = arg;
	return i == 0   ? icf_data_map_init(b->prog, b->map)
	       : i == 1 ? icf_find_called(b->prog, &b->called)
			: find_joined(b->prog, &b->joined);
}

static int table_order(const void *a, const void *b)
{
	const struct icf_inferred_table *x = a, *y = b;
	if (x->base != y->base)
		return x->base < y->base ? -1 : 1;
	return x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* Adds the references of all tables' entries. */
static struct elfrw_err *push_entries(struct icf_program *prog, struct icf_data_map *map,
				      struct icf_places *named)
{
	uint64_t widest = 0, widest_end = 0; /* the table that reaches furthest so far */
	for (size_t i = 0; i < prog->inferred_table.len; i++) {
		const struct icf_inferred_table *t = &prog->inferred_table.data[i];
		const struct icf_distances words = icf_distances_from(prog, t->base);
		for (uint64_t k = 0; k < t->n; k++) {
			uint64_t place = t->base + 4 * k, word;
			if (!icf_distance_of(&words, k, &word))
				break;
			bool known = icf_bit(&map->table, place) || icf_bit(&map->table, place + 3);
			if (known && t->base == widest)
				continue;
			/* The word counts from two places: both meanings hold if none of these
			 * places moves. */
			if (known) {
				icf_pin_unit(prog, icf_unit_at(prog, t->base + word));
				icf_pin_unit(prog, icf_unit_at(prog, widest + word));
				continue;
			}
			struct icf_dataref *d = VEC_PUSH(&prog->dataref);
			uint64_t *to = VEC_PUSH(&named->v);
			if (!d || !to)
				return &elfrw_err_nomem;
			*d = (struct icf_dataref){ .place = place,
						   .target = place + word,
						   .unit = ICF_NONE,
						   .table = ICF_NONE,
						   .size = 4,
						   .kind = ICF_DATA_DISTANCE };
			*to = t->base + word;
			for (unsigned b = 0; b < 4; b++)
				icf_set_bit(&map->table, place + b);
		}
		if (t->base + 4 * (uint64_t)t->n > widest_end) {
			widest = t->base;
			widest_end = t->base + 4 * (uint64_t)t->n;
		}
	}
	return NULL;
}

/* Joins the parts' results in order. */
static struct elfrw_err *join(struct table_job *job, size_t n, struct icf_places *named,
			      struct icf_found *ret)
{
	for (size_t i = 0; i < n; i++) {
		const struct icf_found *p = &job->part[i];
		if (p->loose)
			icf_infer_loose(job->prog, p->loose_at, p->loose);
		if (!VEC_APPEND(&job->prog->inferred_table, p->table.data, p->table.len) ||
		    !VEC_APPEND(&named->v, p->named.v.data, p->named.v.len) ||
		    !VEC_APPEND(&ret->doubt, p->doubt.data, p->doubt.len))
			return &elfrw_err_nomem;
	}
	if (job->prog->inferred_table.len)
		qsort(job->prog->inferred_table.data, job->prog->inferred_table.len,
		      sizeof *job->prog->inferred_table.data, table_order);
	return NULL;
}

static void found_deinit(struct icf_found *f)
{
	VEC_FREE(&f->table);
	VEC_FREE(&f->named.v);
	VEC_FREE(&f->doubt);
}

struct elfrw_err *icf_infer_tables(struct icf_program *prog, unsigned threads,
				   const struct icf_bits *insn, struct icf_data_map *map,
				   struct icf_places *named)
{
	struct basis basis = { .prog = prog, .map = map };
	struct icf_found all = { 0 };
	struct table_job job = { .prog = prog,
				 .map = map,
				 .insn = insn,
				 .called = &basis.called,
				 .joined = &basis.joined,
				 .per = 256 };
	size_t n = (prog->unit.len + job.per - 1) / job.per;
	job.part = calloc(n + 1, sizeof *job.part);
	if (!job.part)
		return &elfrw_err_nomem;
	struct elfrw_err *err = elfrw_parallel(threads, 3, find_basis, &basis);
	if (!err)
		err = elfrw_parallel(threads, n, look_at, &job);
	if (!err)
		err = join(&job, n, named, &all);
	if (!err)
		err = push_entries(prog, map, named);
	struct icf_finder f = { .prog = prog,
				.map = map,
				.insn = insn,
				.called = &basis.called,
				.joined = &basis.joined,
				.found = &all };
	for (size_t i = 0; i < all.doubt.len && !err; i++)
		err = icf_settle_unit(&f, all.doubt.data[i]);
	if (!err && !VEC_APPEND(&named->v, all.named.v.data, all.named.v.len))
		err = &elfrw_err_nomem;
	icf_finder_deinit(&f);
	for (size_t i = 0; i < n; i++)
		found_deinit(&job.part[i]);
	free(job.part);
	found_deinit(&all);
	icf_bits_deinit(&basis.called);
	icf_bits_deinit(&basis.joined);
	return err;
}

void icf_drop_tables(struct icf_program *prog)
{
	for (size_t i = 0; i < prog->inferred_table.len; i++) {
		const struct icf_inferred_table *t = &prog->inferred_table.data[i];
		uint32_t owner = icf_unit_at(prog, t->owner);
		if (owner == ICF_NONE || prog->unit.data[owner].kind != ICF_UNIT_OPAQUE)
			continue;
		size_t lo = LOWER_BOUND(0, prog->dataref.len, mid,
					prog->dataref.data[mid].place < t->base);
		for (; lo < prog->dataref.len &&
		       prog->dataref.data[lo].place < t->base + 4 * (uint64_t)t->n;
		     lo++) {
			struct icf_dataref *d = &prog->dataref.data[lo];
			icf_pin_unit(prog, icf_unit_at(prog, t->base + (d->target - d->place)));
			d->dropped = true;
		}
	}
	size_t n = 0;
	for (size_t i = 0; i < prog->dataref.len; i++)
		if (!prog->dataref.data[i].dropped)
			prog->dataref.data[n++] = prog->dataref.data[i];
	prog->dataref.len = n;
}
