/* lists.h: hand-made list sections, address maps and expectations for the tests of range and
 * location lists. */
#ifndef TESTS_UNIT_MAKE_LISTS_H
#define TESTS_UNIT_MAKE_LISTS_H
#include "tests/unit/make/err_check.h"
#include "dwarf/lists.h"
#include "dwarf/rewrite/addr.h"
#include "dwarf/rewrite/aranges.h"
#include "dwarf/rewrite/lists/lists.h"
#include "elfrw/base/wbuf.h"
#include <dwarf.h>
#include <string.h>

/* The input's code:
 *	0 [0x1000,0x1020)  A, kept, now at 0x1000
 *	1 [0x1020,0x1040)  B, folded into A, with a thunk of 5 bytes at 0x10f0
 *	padding [0x1040,0x1060)
 *	2 [0x1060,0x1080)  C, now at 0x1030 (0x1020 to 0x1030 is padding)
 *	3 [0x1080,0x10a0)  D, now at 0x1050 (directly behind C)
 *	4 [0x10c0,0x10e0)  E, folded into D
 *	5 [0x10e0,0x1100)  F, now at 0x1080
 * One section [0x1000,0x1100), now [0x1000,0x1100). */
enum { A, B, C, D, E, F, N_UNITS };

static inline struct elfrw_addrmap make_map(void)
{
	static const struct elfrw_addrmap_unit units[N_UNITS] = {
		{ 0x1000, 0x1020, 0x1000, 0x1000, A, 0, ELFRW_UNIT_KEPT },
		{ 0x1020, 0x1040, 0x1000, 0x10f0, A, 5, ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
		{ 0x1060, 0x1080, 0x1030, 0x1030, C, 0, 0 },
		{ 0x1080, 0x10a0, 0x1050, 0x1050, D, 0, ELFRW_UNIT_KEPT },
		{ 0x10c0, 0x10e0, 0x1050, 0x1050, D, 0, ELFRW_UNIT_FOLDED },
		{ 0x10e0, 0x1100, 0x1080, 0x1080, F, 0, 0 },
	};
	struct elfrw_addrmap map = {
		.n_units = N_UNITS, .n_sections = 1, .thunks = 0x10f0, .thunks_end = 0x10f5
	};
	map.unit = malloc(sizeof units);
	memcpy(map.unit, units, sizeof units);
	map.section = malloc(sizeof *map.section);
	*map.section = (struct elfrw_addrmap_section){ 0x1000, 0x1100, 0x1000, 0x1100, 1 };
	assert_null(elfrw_addrmap_finish(&map));
	return map;
}

static inline void fails(struct elfrw_err *err)
{
	assert_non_null(err);
	elfrw_err_free(err);
}

/* A section under construction, from numbers: u8(...), uleb(...), addr(...). */
struct build {
	struct elfrw_wbuf w;
	size_t start; /* of the open contribution's contents */
	unsigned offset_size;
};

static inline void put_leb(struct build *b, const uint64_t *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		elfrw_wbuf_uleb(&b->w, v[i]);
}
static inline void put_addr(struct build *b, const uint64_t *v, size_t n, unsigned size)
{
	for (size_t i = 0; i < n; i++)
		elfrw_wbuf_uint(&b->w, v[i], size);
}
#define LEB(b, ...) \
	put_leb(b, (const uint64_t[]){ __VA_ARGS__ }, sizeof(const uint64_t[]){ __VA_ARGS__ } / 8)
#define ADDR(b, ...)                                   \
	put_addr(b, (const uint64_t[]){ __VA_ARGS__ }, \
		 sizeof(const uint64_t[]){ __VA_ARGS__ } / 8, 8)
#define ADDR4(b, ...)                                  \
	put_addr(b, (const uint64_t[]){ __VA_ARGS__ }, \
		 sizeof(const uint64_t[]){ __VA_ARGS__ } / 8, 4)
#define U8(b, v) elfrw_wbuf_u8(&(b)->w, (uint8_t)(v))

/* An expression of one byte: with its length as in DWARF 5, or before. */
static inline void expr5(struct build *b, uint8_t op)
{
	U8(b, 1);
	U8(b, op);
}
static inline void expr4(struct build *b, uint8_t op)
{
	elfrw_wbuf_u16(&b->w, 1);
	U8(b, op);
}

static inline uint64_t open_contrib(struct build *b, unsigned offset_size, unsigned address_size,
				    uint32_t n_offsets)
{
	b->offset_size = offset_size;
	if (offset_size == 8)
		elfrw_wbuf_u32(&b->w, UINT32_MAX);
	elfrw_wbuf_uint(&b->w, 0, offset_size);
	b->start = b->w.len;
	elfrw_wbuf_u16(&b->w, 5);
	U8(b, address_size);
	U8(b, 0);
	elfrw_wbuf_u32(&b->w, n_offsets);
	uint64_t base = b->w.len;
	elfrw_wbuf_grow(&b->w, (size_t)n_offsets * offset_size);
	return base;
}

static inline void close_contrib(struct build *b)
{
	elfrw_put_le(b->w.data + b->start - b->offset_size, b->w.len - b->start, b->offset_size);
}

static inline struct dwr_list_sec section_of(const struct build *b)
{
	return (struct dwr_list_sec){ ".test", b->w.data, b->w.len };
}

static inline struct dwr_list_cu make_cu(unsigned version, uint64_t base, uint64_t new_base)
{
	return (struct dwr_list_cu){ .params = { (uint8_t)version, 8, 4 },
				     .has_base = true,
				     .base = base,
				     .new_base = new_base,
				     .addr_base = DWR_LIST_NONE,
				     .rnglists_base = DWR_LIST_NONE,
				     .loclists_base = DWR_LIST_NONE };
}

/* One range that a list should say. */
struct want {
	uint64_t begin, end;
};

/* A walk over the range list at OFF finds the N ranges WANT, and ends at END.  Wide: what a list is
 * read with, and what it should say. */
static inline void check_walk(const struct dwr_list_secs *secs, enum dwr_list_kind kind,
			      const struct dwr_list_cu *cu, uint64_t off, const struct want *want,
			      size_t n, uint64_t end)
{
	struct dwr_list_walk w = { secs, kind, cu, off, cu->base };
	uint64_t from, to;
	bool more = true;
	for (size_t i = 0; i <= n; i++) {
		be_ok(dwr_list_walk_next(&w, &from, &to, &more));
		assert_int_equal(more, i < n);
		if (i < n) {
			assert_int_equal(from, want[i].begin);
			assert_int_equal(to, want[i].end);
		}
	}
	assert_int_equal(w.off, end);
}

/* Reads the list at OFF and compares it with the N ranges WANT and their views.  Wide: what a list
 * is read with, and what it should say. */
static inline void check_list(const struct dwr_list_secs *secs, enum dwr_list_kind kind,
			      const struct dwr_list_cu *cu, uint64_t off, uint64_t views,
			      const struct want *want, size_t n, const uint64_t *view)
{
	struct dwr_list list = { 0 };
	be_ok(dwr_list_read(secs, kind, cu, off, views, &list));
	if (list.entry.len != n)
		for (size_t i = 0; i < list.entry.len; i++)
			print_message("got [%#jx,%#jx)\n", (uintmax_t)list.entry.data[i].begin,
				      (uintmax_t)list.entry.data[i].end);
	assert_int_equal(list.entry.len, n);
	for (size_t i = 0; i < n; i++) {
		const struct dwr_list_entry *e = &list.entry.data[i];
		assert_int_equal(e->begin, want[i].begin);
		assert_int_equal(e->end, want[i].end);
		if (view) {
			assert_true(e->has_view);
			assert_int_equal(e->view[0], view[2 * i]);
			assert_int_equal(e->view[1], view[2 * i + 1]);
		}
	}
	if (!dwr_list_has_expr(kind))
		check_walk(secs, kind, cu, off, want, n, list.end);
	dwr_list_deinit(&list);
}
#define WANT(...)                             \
	(const struct want[]){ __VA_ARGS__ }, \
		sizeof(const struct want[]){ __VA_ARGS__ } / sizeof(struct want)
#define EMPTY (const struct want[]){ { 0, 0 } }, 0
#define VIEWS(...)          \
	(const uint64_t[])  \
	{                   \
		__VA_ARGS__ \
	}

/* One rewriting and its reading back. */
struct rewriting {
	struct elfrw_addrmap map;
	struct dwr_rw_lists_in in;
	struct dwr_rw_lists_out out;
	struct dwr_list_cu new_cu; /* cu[0] in the output */
	struct dwr_list_secs new_secs;
};

/* For one unit, whose lists are in B, a section of KIND. */
static inline struct rewriting rewriting_of(int kind, const struct build *b, struct dwr_list_cu *cu,
					    struct dwr_list_use *use, size_t n_uses)
{
	struct rewriting r = { .in = { .cu = cu, .n_cus = 1, .use = use, .n_uses = n_uses } };
	r.in.secs.list[kind] = section_of(b);
	return r;
}

static inline void run(struct rewriting *r)
{
	r->map = make_map();
	r->in.map = &r->map;
	if (!r->in.threads)
		r->in.threads = 1;
	be_ok(dwr_rw_lists(&r->in, &r->out));
	r->new_cu = r->in.cu[0];
	r->new_cu.base = r->new_cu.new_base;
	for (int k = 0; k < DWR_LIST_KINDS; k++)
		r->new_secs.list[k] =
			(struct dwr_list_sec){ ".new", r->out.sec[k].data, r->out.sec[k].size };
	if (r->new_cu.rnglists_base != DWR_LIST_NONE)
		r->new_cu.rnglists_base =
			dwr_rw_lists_base(&r->out, DWR_LIST_RNGLISTS, r->new_cu.rnglists_base);
	if (r->new_cu.loclists_base != DWR_LIST_NONE)
		r->new_cu.loclists_base =
			dwr_rw_lists_base(&r->out, DWR_LIST_LOCLISTS, r->new_cu.loclists_base);
	if (r->in.addr)
		r->new_secs.addr =
			(struct dwr_list_sec){ ".addr", r->in.addr->data, r->in.addr->size };
}

static inline void end_run(struct rewriting *r)
{
	dwr_rw_lists_deinit(&r->out);
	elfrw_addrmap_deinit(&r->map);
}

static inline struct dwr_list_use make_use(enum dwr_list_kind kind, enum dwr_purpose purpose,
					   uint64_t off, uint32_t owner)
{
	return (struct dwr_list_use){ .off = off,
				      .views = DWR_LIST_NONE,
				      .kind = (uint8_t)kind,
				      .purpose = (uint8_t)purpose,
				      .owner = owner };
}

static inline void check_use(const struct rewriting *r, const struct dwr_list_use *use,
			     const struct want *want, size_t n, const uint64_t *view)
{
	check_list(&r->new_secs, use->kind, &r->new_cu, use->new_off, use->new_views, want, n,
		   view);
	assert_int_equal(use->empty, n == 0);
}
#endif
