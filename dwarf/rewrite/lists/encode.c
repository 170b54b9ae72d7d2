/* encode.c: encodes one list from absolute ranges; see list.h.
 *
 * Forms that need no additional room are preferred: pairs relative to the unit's base if they are
 * no longer than a separate base would be; one start_length entry for a single range; otherwise a
 * base at the lowest address.  No entries of .debug_addr are added. */
#include "dwarf/expr.h"
#include "dwarf/rewrite/lists/list.h"
#include <dwarf.h>

/* State of one list. */
struct enc {
	struct dwr_list_work *w;
	const struct dwr_list_sec *sec;
	const struct dwr_list_cu *cu;
	enum dwr_list_kind kind;
	bool v5, has_expr;
	uint64_t mask;
	uint64_t base; /* in effect */
	bool has_base;
	uint64_t wanted;   /* base for mapped entries */
	bool start_length; /* mapped entries need no base */
	size_t start;      /* of the list in w->out */
};

static void put_address(struct enc *e, uint64_t v)
{
	elfrw_wbuf_uint(&e->w->out, v, e->cu->params.address_size);
}

static void put_base(struct enc *e, uint64_t base)
{
	if (e->has_base && e->base == base)
		return;
	if (e->v5)
		elfrw_wbuf_u8(&e->w->out, e->has_expr ? DW_LLE_base_address : DW_RLE_base_address);
	else
		put_address(e, e->mask);
	put_address(e, base);
	e->base = base;
	e->has_base = true;
}

/* Puts DW_OP_addr with the address, or the constant, in place of the operator OP, which refers to
 * .debug_addr. */
static struct elfrw_err *put_converted(struct enc *e, const struct dwr_op *op, uint64_t off)
{
	struct elfrw_wbuf *out = &e->w->expr2;
	unsigned size = e->cu->params.address_size;
	const uint8_t *next = e->w->expr.data + op->end;
	struct dwr_list_addr a;
	ELFRW_TRY(dwr_list_addrx(&e->w->in->secs, e->cu, op->operand[0], e->sec, off, &a));
	bool tls = op->end < e->w->expr.len &&
		   (*next == DW_OP_form_tls_address || *next == DW_OP_GNU_push_tls_address);
	if (!tls && (op->op == DW_OP_addrx || op->op == 0xfb)) { /* DW_OP_GNU_addr_index */
		elfrw_addrmap_pointer(e->w->in->map, a.value, &a.value);
		elfrw_wbuf_u8(out, DW_OP_addr);
	} else
		elfrw_wbuf_u8(out, size == 8 ? DW_OP_const8u : DW_OP_const4u);
	elfrw_wbuf_uint(out, a.value, size);
	return NULL;
}

/* Writes the expression in w->expr (with mapped addresses) to w->expr2, with the operators in
 * w->convert converted. */
static struct elfrw_err *convert_expr(struct enc *e, uint64_t off)
{
	struct dwr_list_work *w = e->w;
	struct dwr_expr_walk walk =
		dwr_expr_walk(w->expr.data, w->expr.len, e->cu->params, e->sec->name, off);
	size_t next = 0, copied = 0;
	w->expr2.len = 0;
	for (;;) {
		struct dwr_op op;
		bool more;
		ELFRW_TRY(dwr_expr_next(&walk, &op, &more));
		if (!more)
			break;
		bool convert = next < w->convert.len && w->convert.data[next] == op.off;
		if ((convert && op.depth) || op.op == DW_OP_bra || op.op == DW_OP_skip)
			return elfrw_error_at(e->sec->name, off + op.off,
					      "an address index whose entry in %s would need"
					      " two values stands where it cannot be replaced",
					      w->in->secs.addr.name);
		if (!convert)
			continue;
		next++;
		elfrw_wbuf_bytes(&w->expr2, w->expr.data + copied, op.off - copied);
		ELFRW_TRY(put_converted(e, &op, off + op.off));
		copied = op.end;
	}
	elfrw_wbuf_bytes(&w->expr2, w->expr.data + copied, w->expr.len - copied);
	return NULL;
}

static struct elfrw_err *put_expr(struct enc *e, const struct dwr_list_entry *src)
{
	struct dwr_list_work *w = e->w;
	const struct elfrw_wbuf *expr = &w->expr;
	bool fits;
	w->expr.len = 0;
	elfrw_wbuf_bytes(&w->expr, e->sec->data + src->expr, src->expr_size);
	if (w->expr.bad)
		return &elfrw_err_nomem;
	const struct dwr_list_span span = { src->expr, src->expr_size };
	ELFRW_TRY(dwr_list_map_expr(w, e->sec, e->cu, w->expr.data, span, &fits));
	if (!fits) {
		ELFRW_TRY(convert_expr(e, src->expr));
		expr = &w->expr2;
	}
	if (e->v5)
		elfrw_wbuf_uleb(&w->out, expr->len);
	else if (expr->len <= UINT16_MAX)
		elfrw_wbuf_u16(&w->out, (uint16_t)expr->len);
	else
		return elfrw_error_at(e->sec->name, src->expr,
				      "location expression becomes too long");
	elfrw_wbuf_bytes(&w->out, expr->data, expr->len);
	return expr->bad ? &elfrw_err_nomem : NULL;
}

static const uint8_t v5_code[][2] = {
	[DWR_LIST_PAIR] = { DW_RLE_offset_pair, DW_LLE_offset_pair },
	[DWR_LIST_START_END] = { DW_RLE_start_end, DW_LLE_start_end },
	[DWR_LIST_START_LENGTH] = { DW_RLE_start_length, DW_LLE_start_length },
	[DWR_LIST_STARTX_END] = { DW_RLE_startx_endx, DW_LLE_startx_endx },
	[DWR_LIST_STARTX_LENGTH] = { DW_RLE_startx_length, DW_LLE_startx_length },
	[DWR_LIST_DEFAULT] = { 0, DW_LLE_default_location },
};

static void put_v5(struct enc *e, enum dwr_list_how how, uint64_t a, uint64_t b)
{
	struct elfrw_wbuf *out = &e->w->out;
	elfrw_wbuf_u8(out, v5_code[how][e->has_expr]);
	if (how == DWR_LIST_START_END || how == DWR_LIST_START_LENGTH)
		put_address(e, a);
	else
		elfrw_wbuf_uleb(out, a);
	if (how == DWR_LIST_START_END)
		put_address(e, b);
	else
		elfrw_wbuf_uleb(out, b);
}

/* Can the slot with index INDEX keep its value?  OFF: of the entry that uses it. */
static struct elfrw_err *keep_slot(struct enc *e, uint64_t index, uint64_t off, bool *keep)
{
	struct dwr_list_addr a;
	ELFRW_TRY(dwr_list_addrx(&e->w->in->secs, e->cu, index, e->sec, off, &a));
	return dwr_list_want_slot(e->w, a.slot, e->cu->params.address_size, a.value, a.value, keep);
}

/* Puts an entry that the map does not cover, in its old form as far as possible: readers recognise
 * dead code by the linker's address, which may be the base. */
static struct elfrw_err *put_raw_v5(struct enc *e, const struct dwr_list_out *o)
{
	const struct dwr_list_entry *src = o->src;
	bool keep = true;
	switch (src->how) {
	case DWR_LIST_PAIR: put_base(e, src->base); break;
	case DWR_LIST_STARTX_END:
		ELFRW_TRY(keep_slot(e, src->operand[1], src->off, &keep));
		if (!keep)
			break;
		/* fallthrough */
	case DWR_LIST_STARTX_LENGTH:
		ELFRW_TRY(keep_slot(e, src->operand[0], src->off, &keep));
		break;
	}
	if (keep)
		put_v5(e, src->how, src->operand[0], src->operand[1]);
	else
		put_v5(e, DWR_LIST_START_LENGTH, o->begin, (o->end - o->begin) & e->mask);
	return NULL;
}

static struct elfrw_err *put_entry_v5(struct enc *e, const struct dwr_list_out *o)
{
	if (o->mode == DWR_OUT_RAW)
		return put_raw_v5(e, o);
	if (e->start_length) {
		put_v5(e, DWR_LIST_START_LENGTH, o->begin, (o->end - o->begin) & e->mask);
		return NULL;
	}
	put_base(e, e->wanted);
	put_v5(e, DWR_LIST_PAIR, (o->begin - e->base) & e->mask, (o->end - e->base) & e->mask);
	return NULL;
}

/* Before DWARF 5.  A pair must not be (0, 0), the end, and must not begin with -1, a base. */
static void put_pair(struct enc *e, const struct dwr_list_out *o)
{
	put_base(e, o->mode == DWR_OUT_RAW ? o->src->base & e->mask : e->wanted);
	uint64_t a = (o->begin - e->base) & e->mask, b = (o->end - e->base) & e->mask;
	if ((!a && !b) || a == e->mask) {
		put_base(e, (o->begin - 1) & e->mask);
		a = (o->begin - e->base) & e->mask;
		b = (o->end - e->base) & e->mask;
	}
	put_address(e, a);
	put_address(e, b);
}

/* Decides on the base of mapped entries. */
static void choose_base(struct enc *e, const struct dwr_list_outs *outs)
{
	uint64_t low = UINT64_MAX, cu_base = e->cu->new_base & e->mask;
	size_t n = 0;
	const struct dwr_list_out *one = NULL;
	for (size_t i = 0; i < outs->len; i++)
		if (outs->data[i].mode == DWR_OUT_MAPPED) {
			one = &outs->data[i];
			n++;
			if (one->begin < low)
				low = one->begin;
		}
	if (!n)
		return;
	e->wanted = low;
	bool cu_ok = e->has_base && cu_base <= low;
	if (!e->v5) {
		if (cu_ok)
			e->wanted = cu_base;
		return;
	}
	if (n == 1) {
		unsigned pair =
			elfrw_uleb_size(one->begin - cu_base) + elfrw_uleb_size(one->end - cu_base);
		if (cu_ok &&
		    pair <= e->cu->params.address_size + elfrw_uleb_size(one->end - one->begin))
			e->wanted = cu_base;
		else
			e->start_length = true;
		return;
	}
	uint64_t by_cu = 0, by_own = 1 + e->cu->params.address_size;
	for (size_t i = 0; cu_ok && i < outs->len; i++)
		if (outs->data[i].mode == DWR_OUT_MAPPED) {
			const struct dwr_list_out *o = &outs->data[i];
			by_cu += elfrw_uleb_size(o->begin - cu_base) +
				 elfrw_uleb_size(o->end - cu_base);
			by_own += elfrw_uleb_size(o->begin - low) + elfrw_uleb_size(o->end - low);
		}
	if (cu_ok && by_cu <= by_own)
		e->wanted = cu_base;
}

/* Can the list do without O?  An empty range without views says nothing; before DWARF 5 it might
 * end the list. */
static bool skipped(const struct enc *e, const struct dwr_list_out *o, bool views)
{
	return !e->v5 && !views && o->mode == DWR_OUT_MAPPED && o->begin == o->end;
}

struct elfrw_err *dwr_list_encode(struct dwr_list_work *w, enum dwr_list_kind kind,
				  const struct dwr_list_cu *cu, const struct dwr_list_outs *outs,
				  enum dwr_list_views views, struct dwr_list_result *ret)
{
	struct enc e = { .w = w,
			 .sec = &w->in->secs.list[kind],
			 .cu = cu,
			 .kind = kind,
			 .v5 = dwr_list_is_v5(kind),
			 .has_expr = dwr_list_has_expr(kind),
			 .mask = dwr_list_mask(cu) };
	/* Before DWARF 5 offsets of a unit without a base count from 0. */
	e.base = cu->has_base ? cu->new_base & e.mask : 0;
	e.has_base = cu->has_base || !e.v5;
	choose_base(&e, outs);
	if (!cu->has_base && !e.v5)
		e.wanted = 0;

	ret->views = w->out.len;
	for (size_t i = 0; views == DWR_VIEWS_BEFORE && i < outs->len; i++)
		if (outs->data[i].mode != DWR_OUT_DEFAULT) {
			elfrw_wbuf_uleb(&w->out, outs->data[i].view[0]);
			elfrw_wbuf_uleb(&w->out, outs->data[i].view[1]);
		}
	if (views == DWR_VIEWS_BEFORE && w->out.len == ret->views)
		dwr_list_no_views(&w->out);
	ret->off = w->out.len;
	ret->empty = true;
	for (size_t i = 0; i < outs->len; i++) {
		const struct dwr_list_out *o = &outs->data[i];
		if (skipped(&e, o, views == DWR_VIEWS_BEFORE))
			continue;
		ret->empty = false;
		if (views == DWR_VIEWS_INLINE && o->src && o->src->has_view) {
			elfrw_wbuf_u8(&w->out, DW_LLE_GNU_view_pair);
			elfrw_wbuf_uleb(&w->out, o->view[0]);
			elfrw_wbuf_uleb(&w->out, o->view[1]);
		}
		if (o->mode == DWR_OUT_DEFAULT)
			elfrw_wbuf_u8(&w->out, DW_LLE_default_location);
		else if (e.v5)
			ELFRW_TRY(put_entry_v5(&e, o));
		else
			put_pair(&e, o);
		if (e.has_expr)
			ELFRW_TRY(put_expr(&e, o->src));
	}
	if (e.v5)
		elfrw_wbuf_u8(&w->out, 0); /* end_of_list */
	else {
		put_address(&e, 0);
		put_address(&e, 0);
	}
	ret->end = w->out.len;
	return w->out.bad ? &elfrw_err_nomem : NULL;
}
