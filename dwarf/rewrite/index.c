/* index.c: see index.h.  Small sections; one pass each. */
#include "dwarf/rewrite/index.h"
#include "dwarf/rewrite/state.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/sort.h"
#include <dwarf.h>

/* The parts of a .gdb_index; all offsets from the section's start. */
struct gdb_index {
	struct elfrw_rbuf r;
	const char *name;
	uint32_t version, header, cus, tus, addresses, symbols, shortcuts, pool;
	uint32_t n_cus, n_tus;
};

static struct elfrw_err *gdb_index_read(const struct dwr_section *sec, struct gdb_index *x)
{
	*x = (struct gdb_index){ .r = elfrw_rbuf(sec->data, sec->size), .name = sec->name };
	struct elfrw_rbuf *r = &x->r;
	x->version = elfrw_rbuf_u32(r);
	if (!elfrw_rbuf_ok(r) || x->version < 7 || x->version > 9)
		return elfrw_error_at(x->name, 0, "unknown version %u", x->version);
	x->cus = elfrw_rbuf_u32(r);
	x->tus = elfrw_rbuf_u32(r);
	x->addresses = elfrw_rbuf_u32(r);
	x->symbols = elfrw_rbuf_u32(r);
	x->shortcuts = x->version >= 9 ? elfrw_rbuf_u32(r) : 0;
	x->pool = elfrw_rbuf_u32(r);
	x->header = (uint32_t)elfrw_rbuf_off(r);
	uint32_t symbols_end = x->version >= 9 ? x->shortcuts : x->pool;
	if (!elfrw_rbuf_ok(r) || x->cus < x->header || x->tus < x->cus || x->addresses < x->tus ||
	    x->symbols < x->addresses || symbols_end < x->symbols || x->pool < symbols_end ||
	    x->pool > sec->size)
		return elfrw_error_at(x->name, 4, "its parts are not in order");
	x->n_cus = (x->tus - x->cus) / 16;
	x->n_tus = (x->addresses - x->tus) / 24;
	return NULL;
}

static struct elfrw_err *gdb_addresses(const struct dwr_index_in *in, struct gdb_index *x,
				       struct elfrw_wbuf *w)
{
	struct dwr_pieces pieces = { 0 };
	struct elfrw_err *err = NULL;
	x->r.pos = x->r.start + x->addresses;
	for (uint32_t i = 0; !err && i < (x->symbols - x->addresses) / 20; i++) {
		uint64_t lo = elfrw_rbuf_u64(&x->r), hi = elfrw_rbuf_u64(&x->r);
		uint32_t cu = elfrw_rbuf_u32(&x->r);
		pieces.piece.len = pieces.taken.len = 0;
		err = dwr_range_map(&in->rw->ranger, DWR_FOR_UNIT, lo, hi, &pieces);
		for (size_t k = 0; !err && k < pieces.piece.len; k++) {
			if (pieces.piece.data[k].begin >= pieces.piece.data[k].end && lo < hi)
				continue;
			elfrw_wbuf_u64(w, pieces.piece.data[k].begin);
			elfrw_wbuf_u64(w, pieces.piece.data[k].end);
			elfrw_wbuf_u32(w, cu);
		}
	}
	dwr_pieces_deinit(&pieces);
	return err;
}

/* Type units are numbered behind the compilation units: an additional compilation unit changes
 * their numbers.  POOL: the place of the constant pool in DATA. */
static struct elfrw_err *gdb_renumber(struct gdb_index *x, uint8_t *data, size_t size, size_t pool)
{
	struct elfrw_rbuf s = elfrw_rbuf(x->r.start + x->symbols,
					 (x->version >= 9 ? x->shortcuts : x->pool) - x->symbols);
	VEC(uint32_t) vector = { 0 };
	while (elfrw_rbuf_left(&s) >= 8) {
		uint32_t name = elfrw_rbuf_u32(&s), vec = elfrw_rbuf_u32(&s);
		if (!name && !vec)
			continue;
		uint32_t *p = VEC_PUSH(&vector);
		if (!p) {
			VEC_FREE(&vector);
			return &elfrw_err_nomem;
		}
		*p = vec;
	}
	if (vector.len)
		qsort(vector.data, vector.len, sizeof *vector.data, elfrw_u32_order);
	struct elfrw_err *err = NULL;
	uint64_t end = 0; /* end of the vector before: overlapping vectors could cost any time, and
			     count twice */
	for (size_t i = 0; !err && i < vector.len; i++) {
		if (i && vector.data[i] == vector.data[i - 1])
			continue;
		if (vector.data[i] < end) {
			err = elfrw_error_at(x->name, (uint64_t)x->pool + vector.data[i],
					     "vectors overlap");
			break;
		}
		struct elfrw_rbuf r = elfrw_rbuf(data + pool, size - pool);
		elfrw_rbuf_seek(&r, vector.data[i]);
		uint64_t n = elfrw_rbuf_u32(&r), bytes = n * 4;
		uint8_t *p = data + pool + elfrw_rbuf_off(&r);
		if (!elfrw_rbuf_take(&r, bytes)) {
			err = elfrw_error_at(x->name, (uint64_t)x->pool + vector.data[i],
					     "vector goes beyond the section");
			break;
		}
		end = vector.data[i] + 4 + bytes;
		for (; n; n--, p += 4) {
			uint32_t v = elfrw_get32(p);
			if ((v & 0xffffff) >= x->n_cus)
				elfrw_put32(p, v + 1);
		}
	}
	VEC_FREE(&vector);
	return err;
}

struct elfrw_err *dwr_rw_gdb_index(const struct dwr_index_in *in, uint8_t **ret, size_t *ret_size)
{
	struct gdb_index x;
	const struct dwr_section *sec = &in->rw->secs.sec[DWR_GDB_INDEX];
	ELFRW_TRY(gdb_index_read(sec, &x));
	bool add = in->artificial_unit != UINT64_MAX;
	uint64_t trap = in->rw->map->trap_byte;
	struct elfrw_wbuf w = { 0 };
	elfrw_wbuf_bytes(&w, sec->data, x.cus);
	elfrw_wbuf_bytes(&w, sec->data + x.cus, (size_t)x.n_cus * 16);
	if (add) {
		elfrw_wbuf_u64(&w, in->artificial_unit);
		elfrw_wbuf_u64(&w, in->artificial_size);
	}
	uint64_t tus = w.len;
	elfrw_wbuf_bytes(&w, sec->data + x.tus, x.addresses - x.tus);
	uint64_t addresses = w.len;
	struct elfrw_err *err = gdb_addresses(in, &x, &w);
	if (err) {
		elfrw_wbuf_free(&w);
		return err;
	}
	if (add && in->has_range) {
		elfrw_wbuf_u64(&w, trap);
		elfrw_wbuf_u64(&w, trap + 1);
		elfrw_wbuf_u32(&w, x.n_cus);
	}
	uint64_t symbols = w.len;
	elfrw_wbuf_bytes(&w, sec->data + x.symbols, sec->size - x.symbols);
	if (w.bad || w.len > UINT32_MAX) {
		err = w.bad ? &elfrw_err_nomem : elfrw_error_at(x.name, 0, "outgrows its offsets");
		elfrw_wbuf_free(&w);
		return err;
	}
	uint64_t shift = symbols - x.symbols; /* modulo 2^32 */
	unsigned at = 8;
	elfrw_put32(w.data + at, (uint32_t)tus);
	elfrw_put32(w.data + (at += 4), (uint32_t)addresses);
	elfrw_put32(w.data + (at += 4), (uint32_t)symbols);
	if (x.version >= 9)
		elfrw_put32(w.data + (at += 4), (uint32_t)(x.shortcuts + shift));
	elfrw_put32(w.data + (at += 4), (uint32_t)(x.pool + shift));
	if (add && x.n_tus && (err = gdb_renumber(&x, w.data, w.len, (uint32_t)(x.pool + shift)))) {
		elfrw_wbuf_free(&w);
		return err;
	}
	*ret_size = w.len;
	*ret = elfrw_wbuf_take(&w);
	return NULL;
}

struct elfrw_err *dwr_rw_macro(const struct dwr_index_in *in, uint8_t **ret, size_t *ret_size)
{
	const struct dwr_rw *rw = in->rw;
	const struct dwr_section *sec = &rw->secs.sec[DWR_MACRO];
	uint8_t *data = malloc(sec->size ? sec->size : 1);
	if (!data)
		return &elfrw_err_nomem;
	memcpy(data, sec->data, sec->size);
	struct elfrw_err *err = NULL;
	for (size_t i = 0; !err && i < rw->units.len; i++)
		for (size_t k = 0; !err && k < rw->ru[i].macro.len; k++) {
			uint64_t off = rw->ru[i].macro.data[k];
			struct elfrw_rbuf r = elfrw_rbuf(sec->data, sec->size);
			elfrw_rbuf_seek(&r, off);
			unsigned version = elfrw_rbuf_u16(&r), flags = elfrw_rbuf_u8(&r),
				 size = flags & 1 ? 8 : 4;
			if (!elfrw_rbuf_ok(&r) || version < 4 || version > 5) {
				err = elfrw_error_at(sec->name, off,
						     "no macro unit of a known version");
			} else if (flags & 2) {
				uint64_t pos = elfrw_rbuf_off(&r), line = elfrw_rbuf_uint(&r, size);
				uint64_t new = dwr_rw_line_unit_off(&rw->line, line);
				if (!elfrw_rbuf_ok(&r) || new == UINT64_MAX ||
				    (size == 4 && new >> 32))
					err = elfrw_error_at(sec->name, pos,
							     "no line table begins at 0x%llx",
							     (unsigned long long)line);
				else
					elfrw_put_le(data + pos, new, size);
			}
		}
	if (err) {
		free(data);
		return err;
	}
	*ret = data;
	*ret_size = sec->size;
	return NULL;
}
