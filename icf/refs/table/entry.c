/* entry.c: what the entries of all jump tables lead to.
 *
 * Cost: the entries are sorted, and each unit that an entry leads into is decoded once more, up to
 * the last entry; several threads share this. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/program/unit.h"
#include "icf/refs/pool.h"
#include "icf/refs/table/table.h"
#include <stdlib.h>

#define PER 8192 /* entries, or fields of data, that a thread takes in turn */

struct job {
	const struct icf_program *prog;
	struct icf_entries *e; /* of all fields, by target */
	struct icf_entries *part;
	atomic_uchar *seen;
};

uint64_t icf_own_target(const struct icf_program *prog, const struct icf_dataref *d)
{
	return d->target + (d->place - prog->table.data[d->table].base);
}

static void note(const struct job *job, uint32_t table, unsigned what)
{
	if (!(atomic_load_explicit(&job->seen[table], memory_order_relaxed) & what))
		atomic_fetch_or_explicit(&job->seen[table], what, memory_order_relaxed);
}

static struct elfrw_err *push(struct icf_entries *e, uint64_t target, size_t field, uint32_t unit,
			      bool own)
{
	struct icf_entry *slot = VEC_PUSH(&e->v);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct icf_entry){ target, (uint32_t)field, unit, own };
	return NULL;
}

/* What the fields of part P mean, if they are in tables. */
static struct elfrw_err *collect_part(void *arg, size_t p)
{
	const struct job *job = arg;
	const struct icf_program *prog = job->prog;
	struct icf_entries *e = &job->part[p];
	for (size_t i = p * PER; i < (p + 1) * PER && i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (d->table == ICF_NONE)
			continue;
		ELFRW_TRY(push(e, d->target, i, d->unit, false));
		if (d->kind != ICF_DATA_ENTRY || prog->inferred)
			continue;
		uint64_t own = icf_own_target(prog, d);
		uint32_t unit = icf_unit_at(prog, own);
		if (unit == ICF_NONE)
			note(job, d->table, ICF_TABLE_NOT_OWN);
		else if (unit != d->unit)
			note(job, d->table, ICF_TABLE_AMBIGUOUS);
		if (unit != ICF_NONE)
			ELFRW_TRY(push(e, own, i, unit, true));
	}
	return NULL;
}

/* What the fields of all tables mean, in the order of the targets. */
static struct elfrw_err *collect(struct job *job, unsigned threads)
{
	const struct icf_program *prog = job->prog;
	const size_t n = (prog->dataref.len + PER - 1) / PER;
	size_t all = 0;
	job->part = calloc(n + 1, sizeof *job->part);
	struct elfrw_err *err =
		job->part ? elfrw_parallel(threads, n, collect_part, job) : &elfrw_err_nomem;
	for (size_t p = 0; p < n && !err; p++)
		all += job->part[p].v.len;
	if (!err && !VEC_RESERVE(&job->e->v, all))
		err = &elfrw_err_nomem;
	for (size_t p = 0; p < n && job->part; p++) {
		if (!err && !VEC_APPEND(&job->e->v, job->part[p].v.data, job->part[p].v.len))
			err = &elfrw_err_nomem;
		VEC_FREE(&job->part[p].v);
	}
	free(job->part);
	return err;
}

static int entry_order(const void *a, const void *b)
{
	const struct icf_entry *x = a, *y = b;
	return x->target < y->target ? -1 : x->target > y->target;
}

/* Decodes unit K, into which entries *AT and following lead, and marks those that do not lead to an
 * instruction. */
static void look_into(const struct job *job, uint32_t k, size_t *at)
{
	const struct icf_program *prog = job->prog;
	const struct icf_entries *e = job->e;
	const struct icf_unit *u = &prog->unit.data[k];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t pos = u->start;
	for (; *at < e->v.len && e->v.data[*at].unit == k && e->v.data[*at].target < u->end;
	     ++*at) {
		const struct icf_entry *x = &e->v.data[*at];
		struct elfrw_insn in;
		if (u->kind == ICF_UNIT_OPAQUE)
			continue;
		while (pos < x->target) {
			unsigned len =
				prog->arch->decode(code + (pos - u->start), u->end - pos, pos, &in);
			if (!len)
				break;
			pos += len;
		}
		if (pos != x->target || icf_in_literals(prog, x->target))
			note(job, prog->dataref.data[x->field].table,
			     x->own ? ICF_TABLE_NOT_OWN : ICF_TABLE_ASTRAY);
	}
}

/* The first entry from I on that leads into another unit than the one before it. */
static size_t at_border(const struct icf_entries *e, size_t i)
{
	while (i > 0 && i < e->v.len && e->v.data[i].unit == e->v.data[i - 1].unit)
		i++;
	return i < e->v.len ? i : e->v.len;
}

static struct elfrw_err *look_at_part(void *arg, size_t p)
{
	const struct job *job = arg;
	const struct icf_program *prog = job->prog;
	const struct icf_entries *e = job->e;
	const size_t end = at_border(e, (p + 1) * PER);
	for (size_t i = at_border(e, p * PER); i < end;) {
		const uint32_t k = e->v.data[i].unit;
		/* The entry of an impossible case. */
		if (k != ICF_NONE && e->v.data[i].target == prog->unit.data[k].end)
			i++;
		else if (k != ICF_NONE)
			look_into(job, k, &i);
		else
			note(job, prog->dataref.data[e->v.data[i++].field].table, ICF_TABLE_ASTRAY);
	}
	return NULL;
}

struct elfrw_err *icf_look_at_entries(const struct icf_program *prog, unsigned threads,
				      struct icf_entries *ret, atomic_uchar *seen)
{
	struct job job = { .prog = prog, .e = ret, .seen = seen };
	ELFRW_TRY(collect(&job, threads));
	if (!ret->v.len)
		return NULL;
	if (!elfrw_sort_numbers(ret->v.data, ret->v.len, sizeof *ret->v.data,
				prog->exec.data[0].start, prog->exec.data[prog->exec.len - 1].end,
				entry_order))
		return &elfrw_err_nomem;
	return elfrw_parallel(threads, (ret->v.len + PER - 1) / PER, look_at_part, &job);
}
