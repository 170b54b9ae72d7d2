/* start.c: see start.h.
 *
 * A sorted array.  Most programs keep the order of their functions, so sorting is one pass. */
#include "dwarf/rewrite/line/start.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/sort.h"
#include <stdlib.h>

bool dwr_line_starts_make(struct dwr_line_starts *s, const struct elfrw_addrmap *map)
{
	s->va = malloc(((size_t)map->n_units + 1) * sizeof *s->va);
	s->n = 0;
	if (!s->va)
		return false;
	for (uint32_t u = 0; u < map->n_units; u++) {
		const struct elfrw_addrmap_unit *unit = &map->unit[u];
		if (!(unit->flags & ELFRW_UNIT_FOLDED))
			s->va[s->n++] = unit->body;
		else if (unit->flags & ELFRW_UNIT_THUNK)
			s->va[s->n++] = unit->entry;
	}
	return elfrw_sort_runs(s->va, s->n, sizeof *s->va, elfrw_u64_order);
}

void dwr_line_starts_deinit(struct dwr_line_starts *s)
{
	free(s->va);
	*s = (struct dwr_line_starts){ 0 };
}

bool dwr_line_starts_has(const struct dwr_line_starts *s, uint64_t va)
{
	return s->n && bsearch(&va, s->va, s->n, sizeof *s->va, elfrw_u64_order);
}
