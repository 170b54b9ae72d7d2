/* shift.c: the lists of compilers whose pairs count from the base of their unit of debug
 * information, without the general reader.
 *
 * So are all lists of a C program whose code is in one section.  A function in them moves by
 * another number of bytes than the base, so each list gets a base of its own, or other offsets.
 * Whatever else there is in a list, this reader gives up, and list.c reads the list from its
 * beginning.  So what is accepted here must be what list.c accepts, and what is written here must
 * be what encode.c writes; errors are reported there.
 *
 * Cost: three passes over the bytes of a list. */
#include "dwarf/rewrite/lists/list.h"
#include <dwarf.h>

/* A list, and how it counts afterwards. */
struct pairs {
	const uint8_t *p, *end; /* its first entry; the end of the section, then of the list */
	size_t n;
	bool has_expr;
	unsigned offset_size; /* bytes of an offset of a DIE */
	uint64_t base;        /* what the pairs count from, where their code is now */
	uint64_t low;         /* the lowest address */
};

struct entry {
	uint64_t begin, end;
	const uint8_t *expr; /* with its size */
	size_t expr_size;
};

/* Reads the entry at *P; false: it is no pair, or cut off. */
static inline bool next(const struct pairs *l, const uint8_t **p, struct entry *ret)
{
	uint64_t size;
	if (*p == l->end || *(*p)++ != DW_LLE_offset_pair ||
	    !dwr_list_uleb(p, l->end, &ret->begin) || !dwr_list_uleb(p, l->end, &ret->end))
		return false;
	ret->begin += l->base;
	ret->end += l->base;
	ret->expr = *p;
	if (l->has_expr) {
		if (!dwr_list_uleb(p, l->end, &size) || size > (uint64_t)(l->end - *p))
			return false;
		*p += size;
	}
	ret->expr_size = (size_t)(*p - ret->expr);
	return true;
}

/* Reads the list L, whose code is U's, and moves by DELTA. */
static bool read_list(struct pairs *l, const struct elfrw_addrmap_unit *u, uint8_t purpose,
		      uint64_t delta)
{
	const uint8_t *p = l->p;
	struct entry e;
	l->low = UINT64_MAX;
	for (l->n = 0; p < l->end && *p != DW_LLE_end_of_list; l->n++) {
		uint64_t size = 0;
		if (!next(l, &p, &e) ||
		    !dwr_list_moves_with(u, purpose, e.begin - delta, e.end - delta) ||
		    (e.begin == e.end && purpose != DWR_FOR_LOCATION))
			return false;
		const uint8_t *expr = e.expr;
		if (l->has_expr &&
		    (!dwr_list_uleb(&expr, p, &size) || elfrw_uleb_size(size) != expr - e.expr ||
		     !dwr_list_is_plain(expr, p, l->offset_size)))
			return false;
		l->low = e.begin < l->low ? e.begin : l->low;
	}
	if (p == l->end || !l->n)
		return false;
	l->end = p;
	return true;
}

/* The base of the new list: NEW_BASE, the unit's, unless one of its own takes less room.  One entry
 * then needs no base: *ALONE. */
static uint64_t choose_base(const struct pairs *l, uint64_t new_base, bool *alone)
{
	const uint8_t *p = l->p;
	uint64_t by_unit = 0, by_own = 1 + 8;
	struct entry e;
	bool may = new_base <= l->low;
	for (size_t i = 0; i < l->n && next(l, &p, &e); i++) {
		by_unit += elfrw_uleb_size(e.begin - new_base) + elfrw_uleb_size(e.end - new_base);
		by_own += elfrw_uleb_size(e.begin - l->low) + elfrw_uleb_size(e.end - l->low);
		if (l->n == 1)
			by_own = 8 + elfrw_uleb_size(e.end - e.begin);
	}
	bool own = !may || by_unit > by_own;
	*alone = own && l->n == 1;
	return own ? l->low : new_base;
}

static void put_list(const struct pairs *l, uint64_t new_base, struct elfrw_wbuf *out)
{
	const uint8_t *p = l->p;
	struct entry e;
	bool alone;
	uint64_t base = choose_base(l, new_base, &alone);
	if (base != new_base && !alone) {
		elfrw_wbuf_u8(out, l->has_expr ? DW_LLE_base_address : DW_RLE_base_address);
		elfrw_wbuf_u64(out, base);
	}
	for (size_t i = 0; i < l->n && next(l, &p, &e); i++) {
		if (alone) {
			elfrw_wbuf_u8(out, l->has_expr ? DW_LLE_start_length : DW_RLE_start_length);
			elfrw_wbuf_u64(out, e.begin);
			elfrw_wbuf_uleb(out, e.end - e.begin);
		} else {
			elfrw_wbuf_u8(out, DW_LLE_offset_pair);
			elfrw_wbuf_uleb(out, e.begin - base);
			elfrw_wbuf_uleb(out, e.end - base);
		}
		elfrw_wbuf_bytes(out, e.expr, e.expr_size);
	}
	elfrw_wbuf_u8(out, DW_LLE_end_of_list);
}

/* The two sections have the same numbers for these. */
_Static_assert((int)DW_LLE_offset_pair == (int)DW_RLE_offset_pair &&
		       (int)DW_LLE_end_of_list == (int)DW_RLE_end_of_list,
	       "kinds of entries");

struct elfrw_err *dwr_list_shift(struct dwr_list_work *w, const struct dwr_list_use *use,
				 struct dwr_list_result *ret, bool *ok)
{
	const struct dwr_list_cu *cu = &w->in->cu[use->cu];
	const struct dwr_list_sec *sec = &w->in->secs.list[use->kind];
	*ok = false;
	/* Most lists begin otherwise. */
	if (use->off >= sec->size || sec->data[use->off] != DW_LLE_offset_pair)
		return NULL;
	const struct elfrw_addrmap_unit *u = dwr_list_simple_owner(w, use);
	uint64_t delta = u ? u->body - u->old : 0;
	if (!u || !cu->has_base || cu->new_base - cu->base == delta)
		return NULL;
	struct pairs l = { .p = sec->data + use->off,
			   .end = sec->data + sec->size,
			   .has_expr = use->kind == DWR_LIST_LOCLISTS,
			   .offset_size = cu->params.offset_size,
			   .base = cu->base + delta };
	if (!read_list(&l, u, use->purpose, delta))
		return NULL;
	*ok = true;
	ret->in_end = (uint64_t)(l.end - sec->data) + 1;
	ret->views = w->out.len;
	ret->empty = false;
	ELFRW_TRY(dwr_list_copy_views(w, use, l.n));
	ret->off = w->out.len;
	put_list(&l, cu->new_base, &w->out);
	ret->end = w->out.len;
	return w->out.bad ? &elfrw_err_nomem : dwr_list_charge_read(w, ret->in_end - use->off);
}
