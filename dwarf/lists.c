/* lists.c: see lists.h.
 *
 * One reader of single entries serves the decoding here and the copying in rewrite/lists/list.c.
 * Cost: one pass over the bytes of a list. */
#include "dwarf/lists.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdlib.h>

/* The DWARF 5 entry kinds have other numbers in the two sections. */
static const int8_t rle_code[] = {
	[DW_RLE_end_of_list] = DWR_LIST_CODE_END,   [DW_RLE_base_addressx] = DWR_LIST_CODE_BASEX,
	[DW_RLE_startx_endx] = DWR_LIST_STARTX_END, [DW_RLE_startx_length] = DWR_LIST_STARTX_LENGTH,
	[DW_RLE_offset_pair] = DWR_LIST_PAIR,       [DW_RLE_base_address] = DWR_LIST_CODE_BASE,
	[DW_RLE_start_end] = DWR_LIST_START_END,    [DW_RLE_start_length] = DWR_LIST_START_LENGTH,
};
static const int8_t lle_code[] = {
	[DW_LLE_end_of_list] = DWR_LIST_CODE_END,
	[DW_LLE_base_addressx] = DWR_LIST_CODE_BASEX,
	[DW_LLE_startx_endx] = DWR_LIST_STARTX_END,
	[DW_LLE_startx_length] = DWR_LIST_STARTX_LENGTH,
	[DW_LLE_offset_pair] = DWR_LIST_PAIR,
	[DW_LLE_default_location] = DWR_LIST_DEFAULT,
	[DW_LLE_base_address] = DWR_LIST_CODE_BASE,
	[DW_LLE_start_end] = DWR_LIST_START_END,
	[DW_LLE_start_length] = DWR_LIST_START_LENGTH,
	[DW_LLE_GNU_view_pair] = DWR_LIST_CODE_VIEWS,
};

/* How the operands of each code are stored in DWARF 5: a address, u ULEB128. */
static const char v5_operands[][3] = {
	[DWR_LIST_PAIR] = "uu",          [DWR_LIST_START_END] = "aa",
	[DWR_LIST_START_LENGTH] = "au",  [DWR_LIST_STARTX_END] = "uu",
	[DWR_LIST_STARTX_LENGTH] = "uu", [DWR_LIST_DEFAULT] = "",
	[DWR_LIST_CODE_END] = "",        [DWR_LIST_CODE_BASE] = "a",
	[DWR_LIST_CODE_BASEX] = "u",     [DWR_LIST_CODE_VIEWS] = "uu",
};

static struct elfrw_err *cut_off(const struct dwr_list_sec *sec, uint64_t off)
{
	return elfrw_error_at(sec->name, off,
			      "list entry goes past the end of the section (0x%zx bytes)",
			      sec->size);
}

struct elfrw_err *dwr_list_raw_read(const struct dwr_list_sec *sec, enum dwr_list_kind kind,
				    const struct dwr_list_cu *cu, uint64_t off,
				    struct dwr_list_raw *ret)
{
	unsigned size = cu->params.address_size;
	bool v5 = dwr_list_is_v5(kind), has_expr = dwr_list_has_expr(kind);
	struct elfrw_rbuf r = elfrw_rbuf(sec->data, sec->size);
	elfrw_rbuf_seek(&r, off);
	if (size != 4 && size != 8)
		return elfrw_error_at(sec->name, off, "list of a unit with addresses of %u bytes",
				      size);
	ret->off = off;
	ret->operand[0] = ret->operand[1] = 0;
	ret->operand_off[0] = ret->operand_off[1] = 0;
	ret->expr = ret->expr_size = 0;
	if (v5) {
		uint8_t byte = elfrw_rbuf_u8(&r);
		if (has_expr ? byte >= sizeof lle_code : byte >= sizeof rle_code)
			return elfrw_error_at(sec->name, off, "unknown list entry kind 0x%02x",
					      byte);
		ret->code = (uint8_t)(has_expr ? lle_code[byte] : rle_code[byte]);
		const char *spec = v5_operands[ret->code];
		for (unsigned i = 0; i < 2 && spec[i]; i++) {
			ret->operand_off[i] = elfrw_rbuf_off(&r);
			ret->operand[i] =
				spec[i] == 'a' ? elfrw_rbuf_uint(&r, size) : elfrw_rbuf_uleb(&r);
		}
	} else {
		for (unsigned i = 0; i < 2; i++) {
			ret->operand_off[i] = elfrw_rbuf_off(&r);
			ret->operand[i] = elfrw_rbuf_uint(&r, size);
		}
		ret->code = DWR_LIST_PAIR;
		if (ret->operand[0] == dwr_list_mask(cu)) {
			ret->code = DWR_LIST_CODE_BASE;
			ret->operand[0] = ret->operand[1];
			ret->operand_off[0] = ret->operand_off[1];
		} else if (!ret->operand[0] && !ret->operand[1])
			ret->code = DWR_LIST_CODE_END;
	}
	if (has_expr && ret->code <= DWR_LIST_DEFAULT) {
		ret->expr_size = v5 ? elfrw_rbuf_uleb(&r) : elfrw_rbuf_u16(&r);
		ret->expr = elfrw_rbuf_off(&r);
		elfrw_rbuf_skip(&r, ret->expr_size);
	}
	ret->end = elfrw_rbuf_off(&r);
	return elfrw_rbuf_ok(&r) ? NULL : cut_off(sec, off);
}

struct elfrw_err *dwr_list_addrx(const struct dwr_list_secs *secs, const struct dwr_list_cu *cu,
				 uint64_t index, const struct dwr_list_sec *sec, uint64_t off,
				 struct dwr_list_addr *ret)
{
	unsigned size = cu->params.address_size;
	if (cu->addr_base == DWR_LIST_NONE)
		return elfrw_error_at(sec->name, off,
				      "address index %#jx in a unit without DW_AT_addr_base",
				      (uintmax_t)index);
	if (cu->addr_base > secs->addr.size || index >= (secs->addr.size - cu->addr_base) / size)
		return elfrw_error_at(sec->name, off, "address index %#jx is outside of %s",
				      (uintmax_t)index, secs->addr.name);
	ret->slot = cu->addr_base + index * size;
	ret->value = elfrw_get_le(secs->addr.data + ret->slot, size);
	return NULL;
}

struct elfrw_err *dwr_list_raw_range(const struct dwr_list_secs *secs, const struct dwr_list_cu *cu,
				     const struct dwr_list_sec *sec, const struct dwr_list_raw *raw,
				     uint64_t base, struct dwr_list_extent *ret)
{
	struct dwr_list_addr begin, end;
	*ret = (struct dwr_list_extent){ .begin = raw->operand[0], .end = raw->operand[1] };
	switch (raw->code) {
	case DWR_LIST_PAIR:
		ret->begin += base;
		ret->end += base;
		break;
	case DWR_LIST_START_LENGTH: ret->end += ret->begin; break;
	case DWR_LIST_STARTX_END:
		ELFRW_TRY(dwr_list_addrx(secs, cu, raw->operand[1], sec, raw->off, &end));
		ELFRW_TRY(dwr_list_addrx(secs, cu, raw->operand[0], sec, raw->off, &begin));
		*ret = (struct dwr_list_extent){ begin.value, end.value, begin.slot, end.slot };
		break;
	case DWR_LIST_STARTX_LENGTH:
		ELFRW_TRY(dwr_list_addrx(secs, cu, raw->operand[0], sec, raw->off, &begin));
		ret->begin = begin.value;
		ret->begin_slot = begin.slot;
		ret->end += begin.value;
		break;
	}
	ret->begin &= dwr_list_mask(cu);
	ret->end &= dwr_list_mask(cu);
	return NULL;
}

void dwr_list_deinit(struct dwr_list *list)
{
	VEC_FREE(&list->entry);
}

/* The reading of one list. */
struct reader {
	const struct dwr_list_secs *secs;
	const struct dwr_list_cu *cu;
	const struct dwr_list_sec *sec;
	struct dwr_list *list;
	uint64_t base;
	bool own_base;
	struct elfrw_rbuf views; /* those in front of the list */
	uint64_t view[2];        /* of a view_pair that waits for its entry */
	bool has_view;
};

/* Appends the entry RAW. */
static struct elfrw_err *read_entry(struct reader *r, const struct dwr_list_raw *raw)
{
	struct dwr_list *list = r->list;
	struct dwr_list_extent extent;
	ELFRW_TRY(dwr_list_raw_range(r->secs, r->cu, r->sec, raw, r->base, &extent));
	struct dwr_list_entry *e = VEC_PUSH(&list->entry);
	if (!e)
		return &elfrw_err_nomem;
	e->off = raw->off;
	e->how = raw->code;
	e->base = r->base;
	e->own_base = r->own_base;
	memcpy(e->operand, raw->operand, sizeof e->operand);
	e->expr = raw->expr;
	e->expr_size = raw->expr_size;
	e->begin = extent.begin;
	e->end = extent.end;
	if (raw->code == DWR_LIST_DEFAULT) {
		r->has_view = false;
		return NULL;
	}
	if (list->views != DWR_LIST_NONE && !list->inline_views) {
		e->view[0] = elfrw_rbuf_uleb(&r->views);
		e->view[1] = elfrw_rbuf_uleb(&r->views);
		e->has_view = true;
	} else if (r->has_view) {
		memcpy(e->view, r->view, sizeof r->view);
		e->has_view = true;
		r->has_view = false;
	}
	return NULL;
}

/* Reads RAW, which is not the end. */
static struct elfrw_err *read_raw(struct reader *r, const struct dwr_list_raw *raw)
{
	struct dwr_list_addr base;
	switch (raw->code) {
	case DWR_LIST_CODE_VIEWS:
		memcpy(r->view, raw->operand, sizeof r->view);
		r->has_view = r->list->inline_views = true;
		return NULL;
	case DWR_LIST_CODE_BASE:
		r->base = raw->operand[0];
		r->own_base = true;
		return NULL;
	case DWR_LIST_CODE_BASEX:
		ELFRW_TRY(dwr_list_addrx(r->secs, r->cu, raw->operand[0], r->sec, raw->off, &base));
		r->base = base.value;
		r->own_base = true;
		return NULL;
	}
	return read_entry(r, raw);
}

struct elfrw_err *dwr_list_read(const struct dwr_list_secs *secs, enum dwr_list_kind kind,
				const struct dwr_list_cu *cu, uint64_t off, uint64_t views,
				struct dwr_list *list)
{
	const struct dwr_list_sec *sec = &secs->list[kind];
	struct reader r = { .secs = secs,
			    .cu = cu,
			    .sec = sec,
			    .list = list,
			    .base = cu->base,
			    .views = elfrw_rbuf(sec->data, sec->size) };
	if (views != DWR_LIST_NONE)
		elfrw_rbuf_seek(&r.views, views);
	list->entry.len = 0;
	list->off = off;
	list->views = views;
	list->inline_views = false;
	for (;;) {
		struct dwr_list_raw raw;
		ELFRW_TRY(dwr_list_raw_read(sec, kind, cu, off, &raw));
		off = raw.end;
		if (raw.code == DWR_LIST_CODE_END)
			break;
		ELFRW_TRY(read_raw(&r, &raw));
	}
	list->end = off;
	list->views_end = views != DWR_LIST_NONE ? elfrw_rbuf_off(&r.views) : DWR_LIST_NONE;
	if (!elfrw_rbuf_ok(&r.views))
		return elfrw_error_at(sec->name, views,
				      "location views go past the end of the section");
	return NULL;
}

enum quick {
	QUICK_RANGE,
	QUICK_END,
	QUICK_NO, /* it may be an entry of another kind, or a broken one */
};

/* Reads entries of .debug_rnglists at R, up to a range or the end, as long as they are of the kinds
 * that nearly all are of.  Moves W behind them.  Addresses have 8 bytes. */
static inline enum quick quick_rnglist(struct dwr_list_walk *w, struct elfrw_rbuf *r,
				       uint64_t *begin, uint64_t *end)
{
	for (;;) {
		const uint8_t kind = elfrw_rbuf_u8(r);
		uint64_t base = w->base;
		if (kind == DW_RLE_offset_pair) {
			*begin = base + elfrw_rbuf_uleb(r);
			*end = base + elfrw_rbuf_uleb(r);
		} else if (kind == DW_RLE_start_length) {
			*begin = elfrw_rbuf_u64(r);
			*end = *begin + elfrw_rbuf_uleb(r);
		} else if (kind == DW_RLE_base_address)
			base = elfrw_rbuf_u64(r);
		else if (kind != DW_RLE_end_of_list)
			return QUICK_NO;
		if (!elfrw_rbuf_ok(r))
			return QUICK_NO;
		w->off = elfrw_rbuf_off(r);
		w->base = base;
		if (kind != DW_RLE_base_address)
			return kind == DW_RLE_end_of_list ? QUICK_END : QUICK_RANGE;
	}
}

/* The same for .debug_ranges. */
static inline enum quick quick_ranges(struct dwr_list_walk *w, struct elfrw_rbuf *r,
				      uint64_t *begin, uint64_t *end)
{
	const uint64_t from = elfrw_rbuf_u64(r), to = elfrw_rbuf_u64(r);
	if (!elfrw_rbuf_ok(r) || from == UINT64_MAX)
		return QUICK_NO;
	w->off = elfrw_rbuf_off(r);
	*begin = w->base + from;
	*end = w->base + to;
	return from || to ? QUICK_RANGE : QUICK_END;
}

struct elfrw_err *dwr_list_walk_next(struct dwr_list_walk *w, uint64_t *begin, uint64_t *end,
				     bool *more)
{
	const struct dwr_list_sec *sec = &w->secs->list[w->kind];
	struct elfrw_rbuf r = elfrw_rbuf(sec->data, sec->size);
	enum quick quick = QUICK_NO;
	elfrw_rbuf_seek(&r, w->off);
	if (w->cu->params.address_size == 8)
		quick = w->kind == DWR_LIST_RNGLISTS ? quick_rnglist(w, &r, begin, end)
			: w->kind == DWR_LIST_RANGES ? quick_ranges(w, &r, begin, end)
						     : QUICK_NO;
	*more = quick != QUICK_END;
	if (quick != QUICK_NO)
		return NULL;
	for (;;) {
		struct dwr_list_raw raw;
		struct dwr_list_addr base;
		struct dwr_list_extent extent;
		ELFRW_TRY(dwr_list_raw_read(sec, w->kind, w->cu, w->off, &raw));
		w->off = raw.end;
		switch (raw.code) {
		case DWR_LIST_CODE_END: *more = false; return NULL;
		case DWR_LIST_CODE_BASE: w->base = raw.operand[0]; continue;
		case DWR_LIST_CODE_BASEX:
			ELFRW_TRY(dwr_list_addrx(w->secs, w->cu, raw.operand[0], sec, raw.off,
						 &base));
			w->base = base.value;
			continue;
		}
		ELFRW_TRY(dwr_list_raw_range(w->secs, w->cu, sec, &raw, w->base, &extent));
		*begin = extent.begin;
		*end = extent.end;
		return NULL;
	}
}

struct elfrw_err *dwr_list_contribs_read(const struct dwr_list_sec *sec,
					 struct dwr_list_contribs *ret)
{
	struct elfrw_rbuf r = elfrw_rbuf(sec->data, sec->size);
	struct dwr_list_contribs list = { 0 };
	struct elfrw_err *err = NULL;
	while (elfrw_rbuf_left(&r)) {
		struct dwr_list_contrib c = { .off = elfrw_rbuf_off(&r), .offset_size = 4 };
		uint64_t length = elfrw_rbuf_u32(&r);
		if (length == UINT32_MAX) {
			c.offset_size = 8;
			length = elfrw_rbuf_u64(&r);
		}
		if (!elfrw_rbuf_ok(&r) || length > elfrw_rbuf_left(&r) || length < 8) {
			err = elfrw_error_at(sec->name, c.off,
					     "contribution of 0x%jx bytes does not fit",
					     (uintmax_t)length);
			break;
		}
		c.end = elfrw_rbuf_off(&r) + length;
		unsigned version = elfrw_rbuf_u16(&r);
		c.address_size = elfrw_rbuf_u8(&r);
		unsigned seg_size = elfrw_rbuf_u8(&r);
		c.n_offsets = elfrw_rbuf_u32(&r);
		c.base = elfrw_rbuf_off(&r);
		if (version != 5 || seg_size || (c.address_size != 4 && c.address_size != 8)) {
			err = elfrw_error_at(sec->name, c.off,
					     "contribution of version %u, address size %u, segment"
					     " selector size %u is not supported",
					     version, c.address_size, seg_size);
			break;
		}
		if (c.n_offsets > (c.end - c.base) / c.offset_size) {
			err = elfrw_error_at(sec->name, c.off,
					     "offset table of 0x%x entries does not fit",
					     c.n_offsets);
			break;
		}
		c.lists = c.base + (uint64_t)c.n_offsets * c.offset_size;
		elfrw_rbuf_seek(&r, c.end);
		struct dwr_list_contrib *slot = VEC_PUSH(&list);
		if (!slot) {
			err = &elfrw_err_nomem;
			break;
		}
		*slot = c;
	}
	if (err)
		free(list.data);
	else
		*ret = list;
	return err;
}

void dwr_list_contribs_deinit(struct dwr_list_contribs *contribs)
{
	VEC_FREE(contribs);
}

const struct dwr_list_contrib *dwr_list_contrib_find(const struct dwr_list_contribs *contribs,
						     uint64_t off)
{
	size_t lo = LOWER_BOUND(0, contribs->len, mid, contribs->data[mid].end <= off);
	return lo < contribs->len && contribs->data[lo].off <= off ? &contribs->data[lo] : NULL;
}

struct elfrw_err *dwr_list_index(const struct dwr_list_secs *secs, enum dwr_list_kind kind,
				 const struct dwr_list_cu *cu, uint64_t index, uint64_t *ret)
{
	const struct dwr_list_sec *sec = &secs->list[kind];
	uint64_t base = kind == DWR_LIST_RNGLISTS ? cu->rnglists_base : cu->loclists_base;
	if (base == DWR_LIST_NONE)
		return elfrw_error("%s: list index 0x%jx in a unit without a base for it",
				   sec->name, (uintmax_t)index);
	/* The number of entries stands right before the table. */
	if (base < 4 || base > sec->size || index >= elfrw_get32(sec->data + base - 4) ||
	    index >= (sec->size - base) / cu->params.offset_size)
		return elfrw_error_at(sec->name, base,
				      "list index 0x%jx is outside of the offset table",
				      (uintmax_t)index);
	uint64_t off = elfrw_get_le(sec->data + base + index * cu->params.offset_size,
				    cu->params.offset_size);
	if (off > sec->size - base)
		return elfrw_error_at(sec->name, base,
				      "list %ju begins past the end of the section",
				      (uintmax_t)index);
	*ret = base + off;
	return NULL;
}
