/* list.c: maps one range list or location list through the address map; see list.h.
 *
 * Most lists describe code of one function, which moves as a whole.  Their bytes stay, except for
 * addresses of fixed size (patching: one pass over the input bytes, no decoded copy).  A list is
 * encoded anew if its code moved apart, if LEB128 offsets count from a base that moved differently,
 * or if a reference to .debug_addr cannot stay. */
#include "dwarf/rewrite/lists/list.h"
#include "dwarf/expr.h"
#include "dwarf/rewrite/addr.h"
#include <dwarf.h>
#include <stdlib.h>

void dwr_list_work_deinit(struct dwr_list_work *w)
{
	elfrw_wbuf_free(&w->out);
	elfrw_wbuf_free(&w->expr);
	elfrw_wbuf_free(&w->expr2);
	VEC_FREE(&w->wish);
	VEC_FREE(&w->taken);
	VEC_FREE(&w->outs);
	VEC_FREE(&w->patch);
	VEC_FREE(&w->span);
	VEC_FREE(&w->convert);
	dwr_list_deinit(&w->list);
	dwr_pieces_deinit(&w->pieces);
}

static struct elfrw_err *charge(struct dwr_list_budget *b, uint64_t bytes, uint64_t units)
{
	if (bytes && atomic_fetch_add_explicit(&b->bytes, bytes, memory_order_relaxed) + bytes >
			     atomic_load_explicit(&b->max_bytes, memory_order_relaxed))
		return elfrw_error("range and location lists overlap each other too much");
	if (units && atomic_fetch_add_explicit(&b->units, units, memory_order_relaxed) + units >
			     atomic_load_explicit(&b->max_units, memory_order_relaxed))
		return elfrw_error("range and location lists cover too much code too often");
	return NULL;
}

struct elfrw_err *dwr_list_charge(struct dwr_list_budget *b, uint64_t bytes)
{
	return charge(b, bytes, 0);
}

struct elfrw_err *dwr_list_charge_rest(struct dwr_list_work *w)
{
	uint64_t bytes = w->read;
	w->read = 0;
	return charge(w->budget, bytes, 0);
}

/* The budget is shared: a count for each list would cost as much as the list. */
struct elfrw_err *dwr_list_charge_read(struct dwr_list_work *w, uint64_t bytes)
{
	w->read += bytes;
	return w->read < 1 << 16 ? NULL : dwr_list_charge_rest(w);
}

struct elfrw_err *dwr_list_want_slot(struct dwr_list_work *w, uint64_t slot, unsigned size,
				     uint64_t old, uint64_t value, bool *ret)
{
	const struct dwr_addr_table *t = w->in->addr;
	*ret = false;
	if (!t || !dwr_addr_can_set(t, slot, size, value))
		return NULL;
	if (!t->set[slot]) {
		/* Only lists use the entry, and they may want different values: all accept what a
		 * pointer becomes. */
		uint64_t pointer;
		elfrw_addrmap_pointer(w->in->map, old, &pointer);
		if (pointer != value)
			return NULL;
	}
	struct dwr_list_wish *wish = VEC_PUSH(&w->wish);
	if (!wish)
		return &elfrw_err_nomem;
	*wish = (struct dwr_list_wish){ slot, value, (uint8_t)size };
	*ret = true;
	return NULL;
}

struct expr_arg {
	struct dwr_list_work *w;
	const struct dwr_list_sec *sec;
	const struct dwr_list_cu *cu;
	uint64_t off;
	bool fits;
};

static struct elfrw_err *expr_ref(void *p, enum dwr_expr_ref ref, uint64_t index,
				  const struct dwr_op *op)
{
	struct expr_arg *a = p;
	struct dwr_list_addr old;
	uint64_t new;
	bool keep;
	if (ref != DWR_EXPR_ADDRX && ref != DWR_EXPR_CONSTX)
		return NULL;
	ELFRW_TRY(dwr_list_addrx(&a->w->in->secs, a->cu, index, a->sec, a->off + op->off, &old));
	new = old.value;
	if (ref == DWR_EXPR_ADDRX)
		elfrw_addrmap_pointer(a->w->in->map, old.value, &new);
	ELFRW_TRY(dwr_list_want_slot(a->w, old.slot, a->cu->params.address_size, old.value, new,
				     &keep));
	if (keep)
		return NULL;
	a->fits = false;
	uint64_t *c = VEC_PUSH(&a->w->convert);
	if (!c)
		return &elfrw_err_nomem;
	*c = op->off;
	return NULL;
}

struct elfrw_err *dwr_list_map_expr(struct dwr_list_work *w, const struct dwr_list_sec *sec,
				    const struct dwr_list_cu *cu, uint8_t *expr,
				    struct dwr_list_span span, bool *fits)
{
	struct expr_arg a = { w, sec, cu, span.off, true };
	struct dwr_expr_mapping mapping = { .map = w->in->map, .fn = expr_ref, .arg = &a };
	w->convert.len = 0;
	ELFRW_TRY(dwr_expr_map(expr, span.size, cu->params, sec->name, span.off, &mapping));
	*fits = a.fits;
	return NULL;
}

/* Records the expression at OFF if something in it depends on addresses. */
static struct elfrw_err *note_expr(struct dwr_list_work *w, const struct dwr_list_sec *sec,
				   const struct dwr_list_cu *cu, uint64_t off, uint64_t size)
{
	struct dwr_expr_walk walk =
		dwr_expr_walk(sec->data + off, size, cu->params, sec->name, off);
	struct dwr_op op;
	bool more;
	for (;;) {
		ELFRW_TRY(dwr_expr_next(&walk, &op, &more));
		if (!more)
			return NULL;
		switch (op.op) {
		case DW_OP_addr:
		case DW_OP_GNU_encoded_addr:
		case DW_OP_addrx:
		case DW_OP_constx:
		case 0xfb:
		case 0xfc: { /* DW_OP_GNU_addr_index, DW_OP_GNU_const_index */
			struct dwr_list_span *s = VEC_PUSH(&w->span);
			if (!s)
				return &elfrw_err_nomem;
			*s = (struct dwr_list_span){ off, size };
			return NULL;
		}
		}
	}
}

/* The pieces of [BEGIN, END) into w->pieces. */
static struct elfrw_err *cut(struct dwr_list_work *w, const struct dwr_list_use *use,
			     uint64_t begin, uint64_t end)
{
	const struct elfrw_addrmap *map = w->in->map;
	uint64_t lo = begin > map->lo ? begin : map->lo, hi = end < map->hi ? end : map->hi;
	w->pieces.piece.len = 0;
	ELFRW_TRY(dwr_range_map(w->ranger, use->purpose, begin, end, &w->pieces));
	return charge(w->budget, 0, lo < hi ? w->pieces.piece.len + (hi - lo) / 64 : 0);
}

static bool unit_holds(const struct elfrw_addrmap *map, uint32_t i, uint64_t at, bool or_ends)
{
	return i < map->n_units && at >= map->unit[i].old &&
	       (at < map->unit[i].old_end || (or_ends && at == map->unit[i].old_end));
}

/* Is the code at VA removed? */
static bool is_removed(const struct elfrw_addrmap *map, uint64_t va)
{
	uint32_t i = elfrw_addrmap_find(map, va);
	return i != ELFRW_NO_UNIT && map->unit[i].flags & ELFRW_UNIT_REMOVED;
}

/* The unit of the empty range [AT, AT) of a location list.  The range carries views, and may lie at
 * the end of its function: then its address belongs to the code before it. */
static const struct elfrw_addrmap_unit *unit_of_empty(struct dwr_list_work *w,
						      const struct dwr_list_use *use, uint64_t at)
{
	const struct elfrw_addrmap *map = w->in->map;
	if (unit_holds(map, use->owner, at, false))
		return &map->unit[use->owner];
	if (unit_holds(map, w->unit, at, true))
		return &map->unit[w->unit];
	return unit_holds(map, use->owner, at, true) ? &map->unit[use->owner] : NULL;
}

/* *OK: [BEGIN, END) stays one range of the same length; and by how much it moved. */
static struct elfrw_err *one_delta(struct dwr_list_work *w, const struct dwr_list_use *use,
				   uint64_t begin, uint64_t end, bool *ok, uint64_t *delta)
{
	const struct elfrw_addrmap *map = w->in->map;
	const struct elfrw_addrmap_unit *u;
	if (begin == end && use->purpose == DWR_FOR_LOCATION &&
	    (u = unit_of_empty(w, use, begin))) {
		*ok = !(u->flags & ELFRW_UNIT_REMOVED);
		*delta = u->body - u->old;
		return NULL;
	}
	uint32_t i = w->unit;
	if (i >= map->n_units || begin < map->unit[i].old || begin >= map->unit[i].old_end)
		i = elfrw_addrmap_find(map, begin);
	if (i != ELFRW_NO_UNIT) {
		w->unit = i;
		u = &map->unit[i];
		if (end >= begin && end <= u->old_end &&
		    (!(u->flags & ELFRW_UNIT_FOLDED) ||
		     (use->purpose == DWR_FOR_LOCATION && !(u->flags & ELFRW_UNIT_REMOVED)))) {
			*ok = true;
			*delta = u->body - u->old;
			return NULL;
		}
	}
	w->pieces.taken.len = 0;
	ELFRW_TRY(cut(w, use, begin, end));
	struct dwr_piece *p = w->pieces.piece.data;
	*ok = w->pieces.piece.len == 1 && !w->pieces.taken.len && p->end - p->begin == end - begin;
	if (*ok)
		*delta = p->begin - begin;
	return NULL;
}

static struct elfrw_err *note_patch(struct dwr_list_work *w, uint64_t off, uint64_t value,
				    unsigned size)
{
	struct dwr_list_patch *p = VEC_PUSH(&w->patch);
	if (!p)
		return &elfrw_err_nomem;
	*p = (struct dwr_list_patch){ off, value, (uint8_t)size };
	return NULL;
}

/* The base in effect while patching. */
struct base {
	uint64_t old, delta;
	uint64_t at; /* BASE: where its address is; BASEX: its entry in .debug_addr */
	bool known;  /* delta is known; else the first pair decides it */
	bool indexed;
};

/* The first pair of a list's own base: the base moves with the pair. */
static struct elfrw_err *settle_base(struct dwr_list_work *w, const struct dwr_list_cu *cu,
				     struct base *b, uint64_t delta, bool *ok)
{
	uint64_t mask = dwr_list_mask(cu);
	b->known = true;
	b->delta = delta;
	*ok = true;
	if (b->indexed)
		return dwr_list_want_slot(w, b->at, cu->params.address_size, b->old,
					  (b->old + delta) & mask, ok);
	return delta ? note_patch(w, b->at, b->old + delta, cu->params.address_size) : NULL;
}

/* Patches a pair of a list before DWARF 5: its offsets have a fixed size. */
static struct elfrw_err *patch_pair(struct dwr_list_work *w, const struct dwr_list_cu *cu,
				    const struct dwr_list_raw *raw, const struct base *b,
				    uint64_t delta, bool *ok)
{
	uint64_t mask = dwr_list_mask(cu), base = (b->old + b->delta) & mask, n[2];
	for (int i = 0; i < 2; i++) {
		uint64_t at = (b->old + raw->operand[i] + delta) & mask;
		if (at < base)
			*ok = false;
		n[i] = at - base;
	}
	if (n[0] == mask || (!n[0] && !n[1]))
		*ok = false; /* would be a base or the end */
	for (int i = 0; *ok && i < 2; i++)
		ELFRW_TRY(note_patch(w, raw->operand_off[i], n[i], cu->params.address_size));
	return NULL;
}

static struct elfrw_err *patch_entry(struct dwr_list_work *w, const struct dwr_list_use *use,
				     const struct dwr_list_cu *cu, const struct dwr_list_raw *raw,
				     struct base *b, bool *ok)
{
	const struct dwr_list_sec *sec = &w->in->secs.list[use->kind];
	uint64_t mask = dwr_list_mask(cu), delta = 0;
	unsigned size = cu->params.address_size;
	struct dwr_list_extent e;
	ELFRW_TRY(dwr_list_raw_range(&w->in->secs, cu, sec, raw, b->old, &e));
	ELFRW_TRY(one_delta(w, use, e.begin, e.end, ok, &delta));
	if (!*ok)
		return NULL;
	switch (raw->code) {
	case DWR_LIST_PAIR:
		if (!b->known)
			return settle_base(w, cu, b, delta, ok);
		if (b->delta == delta)
			return NULL;
		*ok = !dwr_list_is_v5(use->kind);
		return *ok ? patch_pair(w, cu, raw, b, delta, ok) : NULL;
	case DWR_LIST_STARTX_END:
	case DWR_LIST_STARTX_LENGTH:
		ELFRW_TRY(dwr_list_want_slot(w, e.begin_slot, size, e.begin,
					     (e.begin + delta) & mask, ok));
		if (*ok && raw->code == DWR_LIST_STARTX_END)
			return dwr_list_want_slot(w, e.end_slot, size, e.end,
						  (e.end + delta) & mask, ok);
		return NULL;
	}
	if (delta)
		ELFRW_TRY(note_patch(w, raw->operand_off[0], e.begin + delta, size));
	if (delta && raw->code == DWR_LIST_START_END)
		return note_patch(w, raw->operand_off[1], e.end + delta, size);
	return NULL;
}

/* Examines the list of USE: *END, its end; *N, its entries without the default one; w->patch and
 * w->span, the required changes.  *OK false: it cannot stay as it is. */
static struct elfrw_err *plan_patches(struct dwr_list_work *w, const struct dwr_list_use *use,
				      uint64_t *end, size_t *n, bool *ok)
{
	const struct dwr_list_cu *cu = &w->in->cu[use->cu];
	const struct dwr_list_sec *sec = &w->in->secs.list[use->kind];
	struct base b = { .old = cu->base, .delta = cu->new_base - cu->base, .known = true };
	struct dwr_list_addr base;
	w->patch.len = w->span.len = 0;
	w->unit = use->owner;
	if (dwr_list_is_simple(w, use, end, n)) {
		*ok = true;
		return dwr_list_charge_read(w, *end - use->off);
	}
	*n = 0;
	*end = use->off;
	for (*ok = true; *ok;) {
		struct dwr_list_raw raw;
		ELFRW_TRY(dwr_list_raw_read(sec, use->kind, cu, *end, &raw));
		*end = raw.end;
		if (raw.code == DWR_LIST_CODE_END)
			break;
		switch (raw.code) {
		case DWR_LIST_CODE_VIEWS: continue;
		case DWR_LIST_CODE_BASE:
			b = (struct base){ .old = raw.operand[0], .at = raw.operand_off[0] };
			continue;
		case DWR_LIST_CODE_BASEX:
			ELFRW_TRY(dwr_list_addrx(&w->in->secs, cu, raw.operand[0], sec, raw.off,
						 &base));
			b = (struct base){ .old = base.value, .at = base.slot, .indexed = true };
			continue;
		case DWR_LIST_DEFAULT: break;
		default: ELFRW_TRY(patch_entry(w, use, cu, &raw, &b, ok)); ++*n;
		}
		if (raw.expr_size)
			ELFRW_TRY(note_expr(w, sec, cu, raw.expr, raw.expr_size));
	}
	return dwr_list_charge_read(w, *end - use->off);
}

struct elfrw_err *dwr_list_copy_views(struct dwr_list_work *w, const struct dwr_list_use *use,
				      size_t n)
{
	const struct dwr_list_sec *sec = &w->in->secs.list[use->kind];
	if (use->views == DWR_LIST_NONE)
		return NULL;
	struct elfrw_rbuf v = elfrw_rbuf(sec->data, sec->size);
	elfrw_rbuf_seek(&v, use->views);
	for (size_t i = 0; i < 2 * n; i++)
		(void)elfrw_rbuf_uleb(&v);
	if (!elfrw_rbuf_ok(&v))
		return elfrw_error_at(sec->name, use->views,
				      "location views go past the end of the section");
	elfrw_wbuf_bytes(&w->out, sec->data + use->views, elfrw_rbuf_off(&v) - use->views);
	if (!n)
		dwr_list_no_views(&w->out);
	return NULL;
}

/* Makes the planned changes in NEW, the copy of the list of USE. */
static struct elfrw_err *apply_patches(struct dwr_list_work *w, const struct dwr_list_use *use,
				       uint8_t *new, bool *ok)
{
	for (size_t i = 0; i < w->patch.len; i++) {
		const struct dwr_list_patch *p = &w->patch.data[i];
		elfrw_put_field(new + (p->off - use->off), p->value, p->size);
	}
	for (size_t i = 0; i < w->span.len && *ok; i++)
		ELFRW_TRY(dwr_list_map_expr(w, &w->in->secs.list[use->kind], &w->in->cu[use->cu],
					    new + (w->span.data[i].off - use->off), w->span.data[i],
					    ok));
	return NULL;
}

/* Copies the list with its addresses changed; *OK false: that cannot be done (nothing was
 * appended). */
static struct elfrw_err *patch_list(struct dwr_list_work *w, const struct dwr_list_use *use,
				    struct dwr_list_result *ret, bool *ok)
{
	const struct dwr_list_sec *sec = &w->in->secs.list[use->kind];
	size_t wishes = w->wish.len, mark = w->out.len, n;
	ELFRW_TRY(plan_patches(w, use, &ret->in_end, &n, ok));
	if (*ok) {
		ret->views = w->out.len;
		ELFRW_TRY(dwr_list_copy_views(w, use, n));
		ret->off = w->out.len;
		elfrw_wbuf_bytes(&w->out, sec->data + use->off, ret->in_end - use->off);
		ret->end = w->out.len;
		ret->empty = !n;
		if (w->out.bad)
			return &elfrw_err_nomem;
		ELFRW_TRY(apply_patches(w, use, w->out.data + ret->off, ok));
	}
	if (!*ok) {
		w->wish.len = wishes;
		w->out.len = mark;
	}
	return NULL;
}

static struct elfrw_err *add_out(struct dwr_list_work *w, struct dwr_list_out entry)
{
	struct dwr_list_out *o = VEC_PUSH(&w->outs);
	if (!o)
		return &elfrw_err_nomem;
	*o = entry;
	return NULL;
}

/* The entries of the list E through the map, into w->outs. */
static struct elfrw_err *map_entry(struct dwr_list_work *w, const struct dwr_list_use *use,
				   const struct dwr_list_entry *e)
{
	const struct elfrw_addrmap *map = w->in->map;
	struct dwr_list_out o = {
		.begin = e->begin, .end = e->end, .view = { e->view[0], e->view[1] }, .src = e
	};
	const struct elfrw_addrmap_unit *u;
	if (e->how == DWR_LIST_DEFAULT) {
		o.mode = DWR_OUT_DEFAULT;
		return add_out(w, o);
	}
	if (e->begin == e->end && use->purpose == DWR_FOR_LOCATION &&
	    (u = unit_of_empty(w, use, e->begin))) {
		if (u->flags & ELFRW_UNIT_REMOVED)
			return NULL;
		o.begin = o.end = u->body + (e->begin - u->old);
		return add_out(w, o);
	}
	ELFRW_TRY(cut(w, use, e->begin, e->end));
	const struct dwr_piece *p = w->pieces.piece.data;
	size_t n = w->pieces.piece.len;
	if (n && p[n - 1].unit != ELFRW_NO_UNIT)
		w->unit = p[n - 1].unit;
	if (!n && is_removed(map, e->begin))
		return NULL;
	if (!n && e->has_view) {
		/* Its code was padding; its views still number the later entries. */
		elfrw_addrmap_point(map, e->begin, &o.begin);
		o.end = o.begin;
		return add_out(w, o);
	}
	if (n == 1 && p->unit == ELFRW_NO_UNIT && p->begin == e->begin && p->end == e->end)
		o.mode = DWR_OUT_RAW;
	for (size_t i = 0; i < n; i++) {
		o.begin = p[i].begin;
		o.end = p[i].end;
		o.view[0] = i == 0 ? e->view[0] : 0;
		o.view[1] = i + 1 == n ? e->view[1] : 0;
		ELFRW_TRY(add_out(w, o));
	}
	return NULL;
}

struct elfrw_err *dwr_list_rewrite(struct dwr_list_work *w, const struct dwr_list_use *use,
				   uint32_t use_index, struct dwr_list_result *ret)
{
	bool ok;
	ELFRW_TRY(dwr_list_shift(w, use, ret, &ok));
	if (ok) {
		w->encoded++;
		return NULL;
	}
	ELFRW_TRY(patch_list(w, use, ret, &ok));
	if (ok) {
		w->patched++;
		return NULL;
	}
	ELFRW_TRY(dwr_list_read(&w->in->secs, use->kind, &w->in->cu[use->cu], use->off, use->views,
				&w->list));
	w->outs.len = w->pieces.taken.len = 0;
	w->unit = use->owner;
	for (size_t i = 0; i < w->list.entry.len; i++)
		ELFRW_TRY(map_entry(w, use, &w->list.entry.data[i]));
	for (size_t i = 0; i < w->pieces.taken.len; i++) {
		const struct dwr_taken *t = &w->pieces.taken.data[i];
		struct dwr_list_taken *new = VEC_PUSH(&w->taken);
		if (!new)
			return &elfrw_err_nomem;
		*new = (struct dwr_list_taken){ use_index, t->unit, t->start, t->len };
	}
	w->encoded++;
	ret->in_end = w->list.end;
	enum dwr_list_views views = w->list.inline_views          ? DWR_VIEWS_INLINE
				    : use->views != DWR_LIST_NONE ? DWR_VIEWS_BEFORE
								  : DWR_VIEWS_NONE;
	return dwr_list_encode(w, use->kind, &w->in->cu[use->cu], &w->outs, views, ret);
}
