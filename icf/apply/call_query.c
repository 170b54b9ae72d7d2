/* call_query.c: see call_query.h. */
#include "icf/apply/call_query.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define SHARED (ELFRW_UNIT_FOLDED | ELFRW_UNIT_KEPT)

static bool folds(const struct elfrw_addrmap *map)
{
	for (uint32_t i = 0; i < map->n_units; i++)
		if ((map->unit[i].flags & ELFRW_UNIT_FOLDED) &&
		    !(map->unit[i].flags & ELFRW_UNIT_REMOVED))
			return true;
	return false;
}

/* The name by which UNIT's declaration can be found, or NULL. */
static const char *name_of(const struct icf_apply *a, uint32_t unit)
{
	const struct icf_program *prog = a->prog;
	if (!(a->plan->map.unit[unit].flags & SHARED) || prog->unit.data[unit].sym == ICF_NONE)
		return NULL;
	const char *name = prog->sym.data[prog->unit.data[unit].sym].name;
	return strchr(name, '.') ? NULL : name; /* made by the compiler: a part, a clone */
}

/* A slot of a hash table of names; NAME may be NULL. */
struct named {
	const char *name;
	uint32_t n; /* symbols, or 2 if there are more */
};

static struct named *slot_for(struct named *slot, size_t mask, const char *name)
{
	size_t i = XXH3_64bits(name, strlen(name)) & mask;
	while (slot[i].name && strcmp(slot[i].name, name) != 0)
		i = (i + 1) & mask;
	return &slot[i];
}

/* Leaves only names that one function symbol has: others may lead to the DIE of another function.
 */
static struct elfrw_err *drop_ambiguous(const struct icf_program *prog, struct icf_call_query *q)
{
	size_t mask = 1, n = 0;
	while (mask < 2 * q->n)
		mask = 2 * mask + 1;
	struct named *slot = calloc(mask + 1, sizeof *slot);
	if (!slot)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < q->n; i++) {
		struct named *s = slot_for(slot, mask, q->name[i]);
		s->n = s->name ? 2 : 0;
		s->name = q->name[i];
	}
	for (size_t i = 0; i < prog->sym.len && q->n; i++) {
		const struct icf_symbol *sym = &prog->sym.data[i];
		if (sym->type == STT_FUNC || sym->type == STT_GNU_IFUNC) {
			struct named *s = slot_for(slot, mask, sym->name);
			s->n += s->name && s->n < 2;
		}
	}
	for (size_t i = 0; i < q->n; i++)
		if (slot_for(slot, mask, q->name[i])->n == 1) {
			q->name[n] = q->name[i];
			q->unit[n++] = q->unit[i];
		}
	q->n = n;
	free(slot);
	return NULL;
}

static struct elfrw_err *collect_names(const struct icf_apply *a, struct icf_call_query *q)
{
	const size_t n_units = a->prog->unit.len;
	bool *seen = calloc(n_units + 1, sizeof *seen);
	if (!seen)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < q->found.call.len; i++) {
		seen[q->found.call.data[i].callee] = true;
		seen[q->found.call.data[i].caller] = true;
	}
	size_t n = 0;
	for (size_t u = 0; u < n_units; u++)
		n += seen[u];
	q->name = malloc((n + 1) * sizeof *q->name);
	q->unit = malloc((n + 1) * sizeof *q->unit);
	q->shared = malloc((n + 1) * sizeof *q->shared);
	const bool ok = q->name && q->unit && q->shared;
	for (uint32_t u = 0; ok && u < n_units; u++) {
		const char *name = seen[u] ? name_of(a, u) : NULL;
		if (seen[u] && (a->plan->map.unit[u].flags & SHARED))
			q->shared[q->n_shared++] = u;
		if (!name)
			continue;
		q->name[q->n] = name;
		q->unit[q->n++] = u;
	}
	free(seen);
	return ok ? drop_ambiguous(a->prog, q) : &elfrw_err_nomem;
}

struct elfrw_err *icf_apply_query(struct icf_apply *a)
{
	struct icf_call_query *q = &a->query;
	struct dwr_sections secs;
	if (a->opt->strip_debug || !folds(&a->plan->map))
		return NULL;
	ELFRW_TRY(dwr_sections_init(&secs, a->prog->img));
	const bool none = !secs.sec[DWR_INFO].shndx;
	dwr_sections_deinit(&secs);
	if (none)
		return NULL;
	ELFRW_TRY(icf_scan_calls(a->prog, &a->plan->map, true, a->opt->threads, &q->found));
	q->scanned = true;
	ELFRW_TRY(collect_names(a, q));
	q->wanted = (struct dwr_call_wanted){ q->found.indirect.data,
					      q->found.indirect.len,
					      q->name,
					      q->n,
					      q->unit,
					      q->shared,
					      q->n_shared };
	return NULL;
}

void icf_call_query_deinit(struct icf_call_query *q)
{
	icf_calls_deinit(&q->found);
	free(q->name);
	free(q->unit);
	free(q->shared);
	dwr_call_found_deinit(&q->answer);
	*q = (struct icf_call_query){ 0 };
}
