/* simple.c: the lists of compilers, without the general reader.
 *
 * Nearly all lists describe one function and its cold part, each of which moves as a whole, in
 * entries with a start or with pairs of offsets, and with expressions that hold no address.  Only
 * starts and bases change. Whatever else there is in a list, this reader gives up, and list.c looks
 * at the list from its beginning.  So what is accepted here must be what list.c accepts, with the
 * same changes; errors are reported there. */
#include "dwarf/rewrite/lists/list.h"
#include <dwarf.h>

/* The operands of an operator. */
enum operands {
	NOT_PLAIN, /* an address, an index, a DIE of a type, a branch: or unknown */
	NONE,
	BYTES_1,
	BYTES_2,
	BYTES_4,
	BYTES_8,
	LEB, /* of either sign */
	LEB_LEB,
	BLOCK,    /* ULEB128 size */
	REGISTER, /* a block that is a single register */
	DIE_LEB,  /* offset of a DIE, and a number */
};

/* DWARF 5, section 7.7.1. */
static const uint8_t operands_of[256] = {
	[DW_OP_deref] = NONE,
	[DW_OP_const1u] = BYTES_1,
	[DW_OP_const1s] = BYTES_1,
	[DW_OP_const2u] = BYTES_2,
	[DW_OP_const2s] = BYTES_2,
	[DW_OP_const4u] = BYTES_4,
	[DW_OP_const4s] = BYTES_4,
	[DW_OP_const8u] = BYTES_8,
	[DW_OP_const8s] = BYTES_8,
	[DW_OP_constu] = LEB,
	[DW_OP_consts] = LEB,
	[DW_OP_dup... DW_OP_over] = NONE,
	[DW_OP_pick] = BYTES_1,
	[DW_OP_swap... DW_OP_rot] = NONE,
	[DW_OP_abs... DW_OP_plus] = NONE,
	[DW_OP_plus_uconst] = LEB,
	[DW_OP_shl... DW_OP_xor] = NONE,
	[DW_OP_eq... DW_OP_ne] = NONE,
	[DW_OP_lit0... DW_OP_lit31] = NONE,
	[DW_OP_reg0... DW_OP_reg31] = NONE,
	[DW_OP_breg0... DW_OP_breg31] = LEB,
	[DW_OP_regx] = LEB,
	[DW_OP_fbreg] = LEB,
	[DW_OP_bregx] = LEB_LEB,
	[DW_OP_piece] = LEB,
	[DW_OP_deref_size] = BYTES_1,
	[DW_OP_nop] = NONE,
	[DW_OP_call_frame_cfa] = NONE,
	[DW_OP_implicit_value] = BLOCK,
	[DW_OP_stack_value] = NONE,
	[DW_OP_implicit_pointer] = DIE_LEB,
	[DW_OP_entry_value] = REGISTER,
};

static bool is_register(uint8_t op)
{
	return op >= DW_OP_reg0 && op <= DW_OP_reg31;
}

bool dwr_list_is_plain(const uint8_t *p, const uint8_t *end, unsigned offset_size)
{
	uint64_t n;
	while (p < end) {
		const uint64_t left = (uint64_t)(end - p) - 1;
		uint64_t skip = 0;
		switch (operands_of[*p++]) {
		case NONE: continue;
		case BYTES_1: skip = 1; break;
		case BYTES_2: skip = 2; break;
		case BYTES_4: skip = 4; break;
		case BYTES_8: skip = 8; break;
		case LEB_LEB:
			if (!dwr_list_uleb(&p, end, &n))
				return false;
			/* fallthrough */
		case LEB:
			if (!dwr_list_uleb(&p, end, &n))
				return false;
			continue;
		case BLOCK:
			if (!dwr_list_uleb(&p, end, &n) || n > (uint64_t)(end - p))
				return false;
			p += n;
			continue;
		case REGISTER:
			if (left < 2 || p[0] != 1 || !is_register(p[1]))
				return false;
			skip = 2;
			break;
		case DIE_LEB:
			if (left < offset_size)
				return false;
			p += offset_size;
			if (!dwr_list_uleb(&p, end, &n))
				return false;
			continue;
		default: return false;
		}
		if (left < skip)
			return false;
		p += skip;
	}
	return true;
}

/* The reading of a list. */
struct simple {
	struct dwr_list_work *w;
	const struct dwr_list_use *use;
	const struct dwr_list_sec *sec;
	const struct elfrw_addrmap_unit *u;     /* the function's */
	const struct elfrw_addrmap_unit *other; /* the last one that the list names beside it */
	const uint8_t *p, *end;
	uint64_t base, delta; /* the base moves by DELTA */
	uint64_t base_off;    /* where the list holds the base, if DELTA is not known yet */
	unsigned offset_size;
};

/* The address at OFF of the section, of value OLD, moves by DELTA. */
static bool move(struct simple *s, uint64_t off, uint64_t old, uint64_t delta)
{
	struct dwr_list_patch *patch = delta ? VEC_PUSH(&s->w->patch) : NULL;
	if (patch)
		*patch = (struct dwr_list_patch){ off, old + delta, 8 };
	return patch || !delta;
}

static bool read_address(struct simple *s, uint64_t *ret)
{
	if (s->end - s->p < 8)
		return false;
	*ret = elfrw_get64(s->p);
	s->p += 8;
	return true;
}

/* By how much [BEGIN, END) moves, if that is in one piece: with the function, or with another unit,
 * as a cold part of it.  An empty range at the border of two units is none of the simple ones. */
static inline bool moves_by(struct simple *s, uint64_t begin, uint64_t end, uint64_t *delta)
{
	const struct elfrw_addrmap_unit *u = s->u;
	if (!dwr_list_moves_with(u, s->use->purpose, begin, end) ||
	    (begin == u->old_end && s->other)) {
		u = s->other;
		if (!u || begin < u->old || begin >= u->old_end) {
			uint32_t i = elfrw_addrmap_find(s->w->in->map, begin);
			if (i == ELFRW_NO_UNIT)
				return false;
			s->other = u = &s->w->in->map->unit[i];
		}
		if (begin >= end || end > u->old_end || u->flags & ELFRW_UNIT_REMOVED ||
		    (u->flags & ELFRW_UNIT_FOLDED && s->use->purpose != DWR_FOR_LOCATION))
			return false;
	}
	*delta = u->body - u->old;
	return true;
}

/* A pair of offsets moves by DELTA, as its base must.  A base without pairs stays as it is. */
static bool take_pair(struct simple *s, uint64_t delta)
{
	if (s->base_off == UINT64_MAX)
		return s->delta == delta;
	const uint64_t off = s->base_off;
	s->base_off = UINT64_MAX;
	s->delta = delta;
	return move(s, off, s->base, delta);
}

/* The range of an entry of kind KIND (its number in location lists). */
static bool read_range(struct simple *s, uint8_t kind)
{
	const uint64_t off = (uint64_t)(s->p - s->sec->data);
	uint64_t begin, end, delta;
	switch (kind) {
	case DW_LLE_offset_pair:
		if (!dwr_list_uleb(&s->p, s->end, &begin) || !dwr_list_uleb(&s->p, s->end, &end))
			return false;
		return moves_by(s, begin + s->base, end + s->base, &delta) && take_pair(s, delta);
	case DW_LLE_start_end:
		return read_address(s, &begin) && read_address(s, &end) &&
		       moves_by(s, begin, end, &delta) && move(s, off, begin, delta) &&
		       move(s, off + 8, end, delta);
	case DW_LLE_start_length:
		return read_address(s, &begin) && dwr_list_uleb(&s->p, s->end, &end) &&
		       moves_by(s, begin, begin + end, &delta) && move(s, off, begin, delta);
	}
	return false;
}

static bool read_expression(struct simple *s)
{
	uint64_t size;
	if (!dwr_list_uleb(&s->p, s->end, &size) || size > (uint64_t)(s->end - s->p) ||
	    !dwr_list_is_plain(s->p, s->p + size, s->offset_size))
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
			    .base = cu->base,
			    .delta = cu->new_base - cu->base,
			    .base_off = UINT64_MAX,
			    .offset_size = cu->params.offset_size };
	if (!read_list(&s, n)) {
		w->patch.len = 0;
		return false;
	}
	*end = (uint64_t)(s.p - sec->data);
	return true;
}
