/* addrmap.c: see addrmap.h.  A look-up takes the first unit that can hold the address from
 * blocks.h, then scans a few units. */
#include "elfrw/addrmap.h"
#include "elfrw/base/search.h"
#include <stdlib.h>

struct elfrw_err *elfrw_addrmap_finish(struct elfrw_addrmap *map)
{
	map->lo = map->hi = 0;
	if (!map->n_sections)
		return NULL;
	map->lo = map->section[0].old;
	map->hi = map->section[map->n_sections - 1].old_end;
	const uint64_t *ends = map->n_units ? &map->unit->old_end : NULL;
	return elfrw_blocks_make(&map->blocks, map->lo, map->hi, ends, sizeof *map->unit,
				 map->n_units)
		       ? NULL
		       : &elfrw_err_nomem;
}

void elfrw_addrmap_deinit(struct elfrw_addrmap *map)
{
	free(map->unit);
	free(map->section);
	elfrw_blocks_deinit(&map->blocks);
	*map = (struct elfrw_addrmap){ 0 };
}

/* The first unit that ends after VA (n_units if none); VA in [lo, hi]. */
static uint32_t first_ending_after(const struct elfrw_addrmap *map, uint64_t va)
{
	uint32_t u = elfrw_blocks_from(&map->blocks, va);
	while (u < map->n_units && map->unit[u].old_end <= va)
		u++;
	return u;
}

static const struct elfrw_addrmap_section *section_at(const struct elfrw_addrmap *map, uint64_t va)
{
	size_t i = LOWER_BOUND(0, map->n_sections, mid, map->section[mid].old_end <= va);
	return i < map->n_sections && va >= map->section[i].old ? &map->section[i] : NULL;
}

/* The section that ends at VA when no section holds VA. */
static const struct elfrw_addrmap_section *section_ending(const struct elfrw_addrmap *map,
							  uint64_t va)
{
	size_t i = LOWER_BOUND(0, map->n_sections, mid, map->section[mid].old_end < va);
	for (; i < map->n_sections && map->section[i].old_end == va; i++)
		if (!map->section[i].end_taken)
			return &map->section[i];
	return NULL;
}

uint32_t elfrw_addrmap_find(const struct elfrw_addrmap *map, uint64_t va)
{
	if (va < map->lo || va >= map->hi)
		return ELFRW_NO_UNIT;
	uint32_t u = first_ending_after(map, va);
	return u < map->n_units && va >= map->unit[u].old ? u : ELFRW_NO_UNIT;
}

uint32_t elfrw_addrmap_after(const struct elfrw_addrmap *map, uint64_t va)
{
	if (va < map->lo || !map->n_units)
		return 0;
	return va > map->hi ? map->n_units : first_ending_after(map, va);
}

bool elfrw_addrmap_covers(const struct elfrw_addrmap *map, uint64_t va)
{
	return section_at(map, va) || section_ending(map, va);
}

bool elfrw_addrmap_point(const struct elfrw_addrmap *map, uint64_t va, uint64_t *ret)
{
	*ret = va;
	if (va < map->lo || va > map->hi)
		return true;
	uint32_t u = elfrw_addrmap_find(map, va);
	if (u != ELFRW_NO_UNIT) {
		*ret = elfrw_addrmap_in_unit(&map->unit[u], va, false);
		return true;
	}
	const struct elfrw_addrmap_section *sec = section_at(map, va);
	if (!sec) {
		sec = section_ending(map, va);
		if (sec)
			*ret = sec->new_end;
		return true;
	}
	if (map->in_place)
		return true; /* padding stays, too, with everything that refers to it */
	/* Padding: the next unit of the section that still has a place of its own. */
	for (u = first_ending_after(map, va); u < map->n_units && map->unit[u].old < sec->old_end;
	     u++)
		if (!(map->unit[u].flags & ELFRW_UNIT_FOLDED)) {
			*ret = map->unit[u].body;
			return false;
		}
	*ret = sec->new_end;
	return false;
}

bool elfrw_addrmap_end(const struct elfrw_addrmap *map, uint64_t va, uint64_t *ret)
{
	*ret = va;
	if (va <= map->lo || va > map->hi)
		return true;
	uint32_t u = elfrw_addrmap_find(map, va - 1);
	if (u != ELFRW_NO_UNIT) {
		*ret = map->unit[u].body + (va - map->unit[u].old);
		return true;
	}
	/* The end of padding: it follows the next unit of the same section.  What begins at VA may
	 * be another section. */
	return elfrw_addrmap_point(map, section_at(map, va - 1) ? va - 1 : va, ret);
}

bool elfrw_addrmap_pointer(const struct elfrw_addrmap *map, uint64_t va, uint64_t *ret)
{
	uint32_t u = elfrw_addrmap_find(map, va);
	if (u == ELFRW_NO_UNIT)
		return elfrw_addrmap_point(map, va, ret);
	*ret = elfrw_addrmap_in_unit(&map->unit[u], va, true);
	return true;
}
