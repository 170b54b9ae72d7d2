/* aranges.c: see aranges.h.  One pass over the tuples. */
#include "dwarf/rewrite/aranges.h"
#include "dwarf/rewrite/range.h"
#include "elfrw/base/wbuf.h"

#define NAME     ".debug_aranges"
#define MAX_WORK (UINT64_C(1) << 30) /* hostile input: tuples that each cover all of the code */

struct set {
	size_t off, start; /* of the header; of what the length counts */
	unsigned address_size, offset_size;
};

/* The header of a set, its length still open. */
static void begin_set(struct elfrw_wbuf *w, struct set *s, unsigned version, uint64_t info)
{
	s->off = w->len;
	if (s->offset_size == 8)
		elfrw_wbuf_u32(w, UINT32_MAX);
	elfrw_wbuf_uint(w, 0, s->offset_size);
	s->start = w->len;
	elfrw_wbuf_u16(w, (uint16_t)version);
	elfrw_wbuf_uint(w, info, s->offset_size);
	elfrw_wbuf_u8(w, (uint8_t)s->address_size);
	elfrw_wbuf_u8(w, 0); /* segment selectors */
	/* Tuples are aligned to their size, counted from the start of the set. */
	elfrw_wbuf_grow(w, -(w->len - s->off) & (2 * s->address_size - 1));
}

static void add_tuple(struct elfrw_wbuf *w, const struct set *s, uint64_t begin, uint64_t len)
{
	elfrw_wbuf_uint(w, begin, s->address_size);
	elfrw_wbuf_uint(w, len, s->address_size);
}

static struct elfrw_err *end_set(struct elfrw_wbuf *w, const struct set *s)
{
	add_tuple(w, s, 0, 0);
	uint64_t length = w->len - s->start;
	if (w->bad)
		return &elfrw_err_nomem;
	if (s->offset_size == 4 && length >= 0xfffffff0)
		return elfrw_error("%s: a set outgrows its length field", NAME);
	elfrw_put_le(w->data + s->start - s->offset_size, length, s->offset_size);
	return NULL;
}

struct pass {
	struct dwr_ranger ranger;
	struct dwr_pieces pieces;
	struct elfrw_wbuf out;
	uint64_t work;
};

static struct elfrw_err *map_tuple(struct pass *p, const struct set *s, uint64_t begin,
				   uint64_t len)
{
	const struct elfrw_addrmap *map = p->ranger.map;
	uint64_t lo = begin > map->lo ? begin : map->lo,
		 hi = begin + len < map->hi ? begin + len : map->hi;
	p->pieces.piece.len = 0;
	ELFRW_TRY(dwr_range_map(&p->ranger, DWR_FOR_UNIT, begin, begin + len, &p->pieces));
	if (lo < hi && (p->work += (hi - lo) / 64) > MAX_WORK)
		return elfrw_error("%s: sets cover too much code too often", NAME);
	for (size_t i = 0; i < p->pieces.piece.len; i++) {
		const struct dwr_piece *piece = &p->pieces.piece.data[i];
		/* An empty tuple says nothing; (0, 0) would end the set. */
		if (piece->begin != piece->end)
			add_tuple(&p->out, s, piece->begin, piece->end - piece->begin);
	}
	return NULL;
}

static struct elfrw_err *map_set(struct pass *p, struct elfrw_rbuf *r)
{
	struct set s = { .offset_size = 4 };
	size_t off = elfrw_rbuf_off(r);
	uint64_t length = elfrw_rbuf_u32(r);
	if (length == UINT32_MAX) {
		s.offset_size = 8;
		length = elfrw_rbuf_u64(r);
	}
	if (!elfrw_rbuf_ok(r) || length > elfrw_rbuf_left(r))
		return elfrw_error_at(NAME, off, "set of 0x%jx bytes does not fit",
				      (uintmax_t)length);
	size_t end = elfrw_rbuf_off(r) + length;
	unsigned version = elfrw_rbuf_u16(r);
	uint64_t info = elfrw_rbuf_uint(r, s.offset_size);
	s.address_size = elfrw_rbuf_u8(r);
	unsigned seg_size = elfrw_rbuf_u8(r);
	if (!elfrw_rbuf_ok(r) || elfrw_rbuf_off(r) > end)
		return elfrw_error_at(NAME, off, "set of 0x%jx bytes is too short",
				      (uintmax_t)length);
	if (version < 2 || version > 5 || seg_size || (s.address_size != 4 && s.address_size != 8))
		return elfrw_error_at(
			NAME, off,
			"set of version %u, address size %u, segment selector size %u is not"
			" supported",
			version, s.address_size, seg_size);
	begin_set(&p->out, &s, version, info);
	elfrw_rbuf_skip(r, -(elfrw_rbuf_off(r) - off) & (2 * s.address_size - 1));
	while (elfrw_rbuf_ok(r) && elfrw_rbuf_off(r) <= end &&
	       end - elfrw_rbuf_off(r) >= 2 * s.address_size) {
		uint64_t begin = elfrw_rbuf_uint(r, s.address_size),
			 len = elfrw_rbuf_uint(r, s.address_size);
		if (!begin && !len)
			break;
		ELFRW_TRY(map_tuple(p, &s, begin, len));
	}
	elfrw_rbuf_seek(r, end);
	r->bad = false; /* a set without room for a tuple */
	return end_set(&p->out, &s);
}

static struct elfrw_err *map_all(struct pass *p, const struct dwr_rw_aranges_in *in)
{
	struct elfrw_rbuf r = elfrw_rbuf(in->data, in->size);
	struct set s = { .address_size = 8, .offset_size = 4 };
	while (elfrw_rbuf_left(&r))
		ELFRW_TRY(map_set(p, &r));
	for (size_t i = 0; i < in->n_extra; i++) {
		s.offset_size = in->extra[i].info > UINT32_MAX ? 8 : 4;
		begin_set(&p->out, &s, 2, in->extra[i].info);
		add_tuple(&p->out, &s, in->extra[i].begin, in->extra[i].len);
		ELFRW_TRY(end_set(&p->out, &s));
	}
	return NULL;
}

struct elfrw_err *dwr_rw_aranges(const struct dwr_rw_aranges_in *in, uint8_t **ret,
				 size_t *ret_size)
{
	struct pass p = { .ranger = dwr_ranger(in->map, in->policy) };
	struct elfrw_err *err = map_all(&p, in);
	dwr_pieces_deinit(&p.pieces);
	if (err) {
		elfrw_wbuf_free(&p.out);
		return err;
	}
	*ret_size = p.out.len;
	*ret = p.out.data ? elfrw_wbuf_take(&p.out) : malloc(1);
	return *ret ? NULL : &elfrw_err_nomem;
}
