/* runs.c: condenses the address map into runs that move together, and finds the units whose rows
 * are wanted. */
#include "dwarf/rewrite/line/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/search.h"
#include <stdlib.h>

struct elfrw_err *dwr_line_make_runs(struct dwr_line_job *job)
{
	const struct elfrw_addrmap *map = job->map;
	size_t n = map->n_units;
	job->run = malloc((n + 1) * sizeof *job->run);
	job->run_of = malloc((n + 1) * sizeof *job->run_of);
	job->special = malloc((n + 1) * sizeof *job->special);
	job->special_from = malloc((n + 1) * sizeof *job->special_from);
	job->owner = malloc((n + 1) * sizeof *job->owner);
	uint8_t *want = calloc(n + 1, 1);
	if (!job->run || !job->run_of || !job->special || !job->special_from || !job->owner ||
	    !want) {
		free(want);
		return &elfrw_err_nomem;
	}
	const bool overlay = job->in->policy == DWR_FOLDED_OVERLAY;
	for (uint32_t u = 0; u < n; u++) {
		const struct elfrw_addrmap_unit *unit = &map->unit[u];
		bool removed = unit->flags & ELFRW_UNIT_REMOVED;
		bool out =
			removed || (dwr_line_folded(unit) && job->in->policy != DWR_FOLDED_ALIAS);
		uint64_t delta = unit->body - unit->old;
		struct dwr_line_run *last = job->n_runs ? &job->run[job->n_runs - 1] : NULL;
		if (last && !last->out && !out && last->delta == delta)
			last->old_end = unit->old_end;
		else
			job->run[job->n_runs++] =
				(struct dwr_line_run){ unit->old, unit->old_end, delta, out };
		job->run_of[u] = job->n_runs - 1;
		if (!dwr_line_folded(unit) || removed || unit->old == unit->old_end)
			continue;
		if (overlay)
			want[u] = want[unit->kept < n ? unit->kept : u] = 1;
		if (unit->flags & ELFRW_UNIT_THUNK)
			want[u] = 1;
	}
	uint32_t n_special = 0;
	for (uint32_t u = 0; u < n; u++) {
		job->special_from[u] = n_special;
		if (want[u])
			job->special[n_special++] = u;
		atomic_init(&job->owner[u], UINT32_MAX);
	}
	job->special_from[n] = n_special;
	free(want);
	return NULL;
}

uint32_t dwr_line_run_after(const struct dwr_line_job *job, uint64_t va)
{
	uint32_t u = elfrw_addrmap_find(job->map, va);
	if (u != ELFRW_NO_UNIT)
		return job->run_of[u];
	return LOWER_BOUND(0, job->n_runs, mid, job->run[mid].old_end <= va);
}

void dwr_line_special_range(const struct dwr_line_job *job, uint64_t lo, uint64_t hi,
			    uint32_t *from, uint32_t *to)
{
	const struct elfrw_addrmap_unit *unit = job->map->unit;
	uint32_t n = job->map->n_units, bound[2];
	for (unsigned i = 0; i < 2; i++) {
		/* First unit that ends after lo; first unit that begins at or after hi. */
		uint64_t va = i ? hi : lo;
		uint32_t u = va && i ? elfrw_addrmap_find(job->map, va - 1)
				     : elfrw_addrmap_find(job->map, va);
		if (u != ELFRW_NO_UNIT)
			bound[i] = i ? u + 1 : u;
		else
			bound[i] = (uint32_t)LOWER_BOUND(
				0, n, mid, i ? unit[mid].old < va : unit[mid].old_end <= va);
	}
	*from = job->special_from[bound[0]];
	*to = bound[1] > bound[0] ? job->special_from[bound[1]] : *from;
}

struct elfrw_err *dwr_line_count_visits(struct dwr_line_job *job, size_t n)
{
	if (!n ||
	    atomic_fetch_add_explicit(&job->visits, n, memory_order_relaxed) + n <= job->max_visits)
		return NULL;
	return elfrw_error("line number sequences in %s overlap too often", job->in->name);
}
