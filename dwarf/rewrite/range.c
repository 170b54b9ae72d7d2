/* range.c: see range.h.
 *
 * Nearly every range lies in one unit, which costs one look-up.  The others (units' ranges,
 * functions with cold parts between) are walked unit by unit.  Pieces are joined over the padding
 * of the output, so one range stays one range if only padding in it changed.  Otherwise each unit
 * compiled without -ffunction-sections would need a range for each of its functions. */
#include "elfrw/base/search.h"
#include "dwarf/rewrite/range.h"
#include <stdlib.h>

struct dwr_ranger dwr_ranger(const struct elfrw_addrmap *map, enum dwr_policy policy)
{
	struct dwr_ranger r = { map, policy, true };
	uint64_t end = 0;
	for (uint32_t i = 0; i < map->n_units && r.ordered; i++) {
		const struct elfrw_addrmap_unit *u = &map->unit[i];
		if (u->flags & ELFRW_UNIT_FOLDED)
			continue;
		r.ordered = u->body >= end;
		end = u->body + (u->old_end - u->old);
	}
	return r;
}

void dwr_pieces_deinit(struct dwr_pieces *pieces)
{
	VEC_FREE(&pieces->piece);
	VEC_FREE(&pieces->taken);
}

static struct elfrw_err *add_piece(struct dwr_pieces *ret, uint64_t begin, uint64_t end,
				   uint64_t old, uint32_t unit)
{
	struct dwr_piece *p = VEC_PUSH(&ret->piece);
	if (!p)
		return &elfrw_err_nomem;
	*p = (struct dwr_piece){ begin, end, old, unit };
	return NULL;
}

static bool in_section(const struct elfrw_addrmap *map, uint64_t va)
{
	if (va < map->lo || va >= map->hi)
		return false;
	size_t i = LOWER_BOUND(0, map->n_sections, mid, map->section[mid].old_end <= va);
	return i < map->n_sections && va >= map->section[i].old;
}

/* Is there only padding in the output between END, the end of unit A's code, and BEGIN, the start
 * of unit B's?  A < B, and all units between them are folded. */
static bool only_padding(const struct dwr_ranger *r, uint64_t end, uint64_t begin, uint32_t a,
			 uint32_t b)
{
	const struct elfrw_addrmap *map = r->map;
	if (begin == end)
		return true;
	if (!r->ordered || begin < end ||
	    (map->unit[a].flags | map->unit[b].flags) & ELFRW_UNIT_FOLDED)
		return false;
	if (map->in_place && b != a + 1)
		return false; /* thunks stand there */
	if (!map->in_place && map->thunks < map->thunks_end && map->thunks < begin &&
	    map->thunks_end > end)
		return false;
	if (map->trap_byte >= end && map->trap_byte < begin)
		return false;
	/* Anything may lie between two sections. */
	size_t i = LOWER_BOUND(0, map->n_sections, mid, map->section[mid].old <= map->unit[a].old);
	return i == map->n_sections || map->section[i].old > map->unit[b].old;
}

/* Nothing moved.  The end of what stands in the output at BEGIN for the bytes [BEGIN, E) of unit U:
 * its code, or its thunk.  BEGIN: nothing does. */
static uint64_t end_in_place(const struct elfrw_addrmap_unit *u, uint64_t begin, uint64_t e)
{
	if (!(u->flags & ELFRW_UNIT_FOLDED))
		return e;
	return u->flags & ELFRW_UNIT_THUNK && begin == u->old ? u->entry + u->thunk_size : begin;
}

/* Maps [BEGIN, END) of a compilation unit's code if nothing moved.  What lies between two parts of
 * it in the output was code of the same unit, and nobody has it now.  So one piece holds all parts,
 * bodies and thunks, and the unit needs no list of ranges.  Only the artificial unit's byte cuts
 * the piece.  Copies elsewhere (policy alias) are pieces of their own. */
static struct elfrw_err *map_in_place(const struct dwr_ranger *r, uint64_t begin, uint64_t end,
				      struct dwr_pieces *ret)
{
	const struct elfrw_addrmap *map = r->map;
	size_t own = SIZE_MAX; /* the last piece that is no copy elsewhere */
	for (uint32_t i = elfrw_addrmap_after(map, begin);
	     i < map->n_units && map->unit[i].old < end; i++) {
		const struct elfrw_addrmap_unit *u = &map->unit[i];
		uint64_t b = begin > u->old ? begin : u->old,
			 e = end < u->old_end ? end : u->old_end, copy = u->body + (b - u->old),
			 to = end_in_place(u, b, e);
		if (u->flags & ELFRW_UNIT_FOLDED && !(u->flags & ELFRW_UNIT_REMOVED) &&
		    r->policy == DWR_FOLDED_ALIAS && (copy < begin || copy >= end))
			ELFRW_TRY(add_piece(ret, copy, copy + (e - b), b, i));
		if (to == b)
			continue;
		struct dwr_piece *p = own < ret->piece.len ? &ret->piece.data[own] : NULL;
		if (p && (map->trap_byte < p->end || map->trap_byte >= b)) {
			p->end = to;
			if (map->unit[p->unit].flags & ELFRW_UNIT_FOLDED)
				p->unit = i;
			continue;
		}
		own = ret->piece.len;
		ELFRW_TRY(add_piece(ret, b, to, b, i));
	}
	return NULL;
}

/* [BEGIN, END) begins in an executable section and is not empty. */
static struct elfrw_err *map_units(const struct dwr_ranger *r, enum dwr_purpose purpose,
				   uint64_t begin, uint64_t end, struct dwr_pieces *ret)
{
	const struct elfrw_addrmap *map = r->map;
	bool take = purpose != DWR_FOR_LOCATION && r->policy != DWR_FOLDED_ALIAS;
	bool report = take && r->policy == DWR_FOLDED_OVERLAY && purpose != DWR_FOR_UNIT;
	bool with_thunks = purpose == DWR_FOR_UNIT || purpose == DWR_FOR_FUNCTION,
	     seen_thunk = false;
	size_t first = ret->piece.len;
	uint32_t last = 0, start = elfrw_addrmap_after(map, begin), i;

	for (i = start; i < map->n_units && map->unit[i].old < end; i++) {
		const struct elfrw_addrmap_unit *u = &map->unit[i];
		uint64_t b = begin > u->old ? begin : u->old,
			 e = end < u->old_end ? end : u->old_end;
		if (u->flags & ELFRW_UNIT_THUNK && b == u->old)
			seen_thunk = true;
		if (u->flags & ELFRW_UNIT_REMOVED)
			continue;
		if (u->flags & ELFRW_UNIT_FOLDED && take) {
			struct dwr_taken *t = report ? VEC_PUSH(&ret->taken) : NULL;
			if (t)
				*t = (struct dwr_taken){ i, b - u->old, e - b };
			else if (report)
				return &elfrw_err_nomem;
			continue;
		}
		uint64_t nb = u->body + (b - u->old), ne = u->body + (e - u->old);
		if (ret->piece.len > first) {
			struct dwr_piece *p = &ret->piece.data[ret->piece.len - 1];
			if (only_padding(r, p->end, nb, last, i)) {
				p->end = ne;
				last = i;
				continue;
			}
		}
		ELFRW_TRY(add_piece(ret, nb, ne, b, i));
		last = i;
	}
	if (!seen_thunk || !with_thunks)
		return NULL;
	/* Thunks lie together, apart from the bodies. */
	size_t first_thunk = ret->piece.len;
	for (uint32_t k = start; k < i; k++) {
		const struct elfrw_addrmap_unit *u = &map->unit[k];
		if (!(u->flags & ELFRW_UNIT_THUNK) || u->old < begin)
			continue;
		size_t n = ret->piece.len;
		if (n > first_thunk && ret->piece.data[n - 1].end == u->entry)
			ret->piece.data[n - 1].end += u->thunk_size;
		else
			ELFRW_TRY(add_piece(ret, u->entry, u->entry + u->thunk_size, u->old, k));
	}
	return NULL;
}

struct elfrw_err *dwr_range_map(const struct dwr_ranger *r, enum dwr_purpose purpose,
				uint64_t begin, uint64_t end, struct dwr_pieces *ret)
{
	const struct elfrw_addrmap *map = r->map;
	uint32_t i = elfrw_addrmap_find(map, begin);
	const struct elfrw_addrmap_unit *u = i != ELFRW_NO_UNIT ? &map->unit[i] : NULL;
	/* A function without code may be the last one. */
	if (end < begin ||
	    (!u && !in_section(map, begin) && !(begin == end && elfrw_addrmap_covers(map, begin))))
		return add_piece(ret, begin, end, begin, ELFRW_NO_UNIT);
	if (u && end <= u->old_end &&
	    (!(u->flags & ELFRW_UNIT_FOLDED) ||
	     (purpose == DWR_FOR_LOCATION && !(u->flags & ELFRW_UNIT_REMOVED)))) {
		uint64_t nb = u->body + (begin - u->old);
		return add_piece(ret, nb, nb + (end - begin), begin, i);
	}
	if (begin == end) {
		uint64_t n;
		if (u && ((u->flags & ELFRW_UNIT_REMOVED) ||
			  (purpose != DWR_FOR_LOCATION && r->policy != DWR_FOLDED_ALIAS)))
			return NULL; /* in a folded unit */
		elfrw_addrmap_point(map, begin, &n);
		return add_piece(ret, n, n, begin, i);
	}
	return map->in_place && purpose == DWR_FOR_UNIT ? map_in_place(r, begin, end, ret)
							: map_units(r, purpose, begin, end, ret);
}
