/* simple.c: the lists of compilers, without the general reader.
 *
 * Nine in ten lists describe one function that moves as a whole, in entries with a start or with
 * pairs of offsets, and with expressions that hold no address.  Only starts and bases change.
 * Whatever else there is in a list, this reader gives up, and list.c looks at the list from its
 * beginning.  So what is accepted here must be what list.c accepts, with the same changes; errors
 * are reported there. */
#include "dwarf/rewrite/lists/list.h"
#include <dwarf.h>

static bool is_register(uint8_t op)
{
	return op >= DW_OP_reg0 && op <= DW_OP_reg31;
}

bool dwr_list_is_plain(const uint8_t *p, const uint8_t *end)
{
	uint64_t n;
	while (p < end) {
		uint8_t op = *p++;
		if (is_register(op) || (op >= DW_OP_lit0 && op <= DW_OP_lit31) ||
		    op == DW_OP_stack_value || op == DW_OP_deref || op == DW_OP_plus)
			continue;
		if (op == DW_OP_fbreg || (op >= DW_OP_breg0 && op <= DW_OP_breg31) ||
		    op == DW_OP_plus_uconst || op == DW_OP_piece) {
			if (!dwr_list_uleb(&p, end, &n))
				return false;
			continue;
		}
		/* DW_OP_entry_value of a register */
		if (op != DW_OP_entry_value || end - p < 2 || p[0] != 1 || !is_register(p[1]))
			return false;
		p += 2;
	}
	return true;
}

/* The reading of a list. */
struct simple {
	struct dwr_list_work *w;
	const struct dwr_list_use *use;
	const struct dwr_list_sec *sec;
	const struct elfrw_addrmap_unit *u;
	const uint8_t *p, *end;
	uint64_t delta, base;
	uint64_t base_off; /* where the list holds the base, UINT64_MAX: nowhere, or changed */
	bool moved;        /* the base moves with the code */
};

/* The address at OFF of the section, of value OLD, moves with the code. */
static bool move(struct simple *s, uint64_t off, uint64_t old)
{
	struct dwr_list_patch *patch = s->delta ? VEC_PUSH(&s->w->patch) : NULL;
	if (patch)
		*patch = (struct dwr_list_patch){ off, old + s->delta, 8 };
	return patch || !s->delta;
}

static bool read_address(struct simple *s, uint64_t *ret)
{
	if (s->end - s->p < 8)
		return false;
	*ret = elfrw_get64(s->p);
	s->p += 8;
	return true;
}

/* The range of an entry of kind KIND (its number in location lists). */
static bool read_range(struct simple *s, uint8_t kind)
{
	const uint64_t off = (uint64_t)(s->p - s->sec->data);
	uint64_t begin, end;
	switch (kind) {
	case DW_LLE_offset_pair:
		if (!s->moved || !dwr_list_uleb(&s->p, s->end, &begin) ||
		    !dwr_list_uleb(&s->p, s->end, &end))
			return false;
		/* A base without pairs stays as it is. */
		if (s->base_off != UINT64_MAX && !move(s, s->base_off, s->base))
			return false;
		s->base_off = UINT64_MAX;
		begin += s->base;
		end += s->base;
		break;
	case DW_LLE_start_end:
		if (!read_address(s, &begin) || !read_address(s, &end) || !move(s, off, begin) ||
		    !move(s, off + 8, end))
			return false;
		break;
	case DW_LLE_start_length:
		if (!read_address(s, &begin) || !dwr_list_uleb(&s->p, s->end, &end) ||
		    !move(s, off, begin))
			return false;
		end += begin;
		break;
	default: return false;
	}
	return dwr_list_moves_with(s->u, s->use->purpose, begin, end);
}

static bool read_expression(struct simple *s)
{
	uint64_t size;
	if (!dwr_list_uleb(&s->p, s->end, &size) || size > (uint64_t)(s->end - s->p) ||
	    !dwr_list_is_plain(s->p, s->p + size))
		return false;
	s->p += size;
	return true;
}

/* Range lists have other numbers for some kinds; *N: the number of entries. */
static bool read_list(struct simple *s, size_t *n)
{
	static const uint8_t as_location[] = {
		[DW_RLE_end_of_list] = DW_LLE_end_of_list,
		[DW_RLE_base_addressx] = DW_LLE_base_addressx,
		[DW_RLE_startx_endx] = DW_LLE_startx_endx,
		[DW_RLE_startx_length] = DW_LLE_startx_length,
		[DW_RLE_offset_pair] = DW_LLE_offset_pair,
		[DW_RLE_base_address] = DW_LLE_base_address,
		[DW_RLE_start_end] = DW_LLE_start_end,
		[DW_RLE_start_length] = DW_LLE_start_length,
	};
	const bool has_expr = s->use->kind == DWR_LIST_LOCLISTS;
	for (*n = 0; s->p < s->end; ++*n) {
		uint8_t kind = *s->p++;
		if (!has_expr && kind >= sizeof as_location)
			return false;
		kind = has_expr ? kind : as_location[kind];
		if (kind == DW_LLE_end_of_list)
			return true;
		if (kind == DW_LLE_base_address) {
			s->base_off = (uint64_t)(s->p - s->sec->data);
			s->moved = true;
			if (!read_address(s, &s->base))
				return false;
			--*n;
		} else if (!read_range(s, kind) || (has_expr && !read_expression(s)))
			return false;
	}
	return false;
}

const struct elfrw_addrmap_unit *dwr_list_simple_owner(const struct dwr_list_work *w,
						       const struct dwr_list_use *use)
{
	const struct elfrw_addrmap *map = w->in->map;
	if (!dwr_list_is_v5(use->kind) || w->in->cu[use->cu].params.address_size != 8 ||
	    use->owner >= map->n_units || use->off >= w->in->secs.list[use->kind].size)
		return NULL;
	const struct elfrw_addrmap_unit *u = &map->unit[use->owner];
	bool gone = u->flags & ELFRW_UNIT_REMOVED ||
		    (u->flags & ELFRW_UNIT_FOLDED && use->purpose != DWR_FOR_LOCATION);
	return gone ? NULL : u;
}

bool dwr_list_is_simple(struct dwr_list_work *w, const struct dwr_list_use *use, uint64_t *end,
			size_t *n)
{
	const struct dwr_list_cu *cu = &w->in->cu[use->cu];
	const struct dwr_list_sec *sec = &w->in->secs.list[use->kind];
	const struct elfrw_addrmap_unit *u = dwr_list_simple_owner(w, use);
	if (!u)
		return false;
	struct simple s = { .w = w,
			    .use = use,
			    .sec = sec,
			    .u = u,
			    .p = sec->data + use->off,
			    .end = sec->data + sec->size,
			    .delta = u->body - u->old,
			    .base = cu->base,
			    .base_off = UINT64_MAX };
	s.moved = cu->new_base - cu->base == s.delta;
	if (!read_list(&s, n)) {
		w->patch.len = 0;
		return false;
	}
	*end = (uint64_t)(s.p - sec->data);
	return true;
}
