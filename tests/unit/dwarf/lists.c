/* lists.c: reading of range and location lists of all versions, and ranges through the address
 * map. */
#include "tests/unit/make/lists.h"

/* The list at OFF, without its bases, and cut off anywhere before END: errors, no reads past the
 * end. */
static void refuse_damaged(const struct dwr_list_secs *secs, const struct dwr_list_cu *of,
			   uint64_t off, uint64_t end)
{
	struct dwr_list list = { 0 };
	struct dwr_list_contribs contribs = { 0 };
	struct dwr_list_cu cu = *of;
	cu.addr_base = DWR_LIST_NONE;
	fails(dwr_list_read(secs, DWR_LIST_RNGLISTS, &cu, off, DWR_LIST_NONE, &list));
	cu.addr_base = 16;
	fails(dwr_list_read(secs, DWR_LIST_RNGLISTS, &cu, off, DWR_LIST_NONE, &list));
	cu.addr_base = of->addr_base;
	for (size_t size = off; size < end; size++) {
		uint8_t *copy = malloc(size);
		memcpy(copy, secs->list[DWR_LIST_RNGLISTS].data, size);
		struct dwr_list_secs cut = { .list[DWR_LIST_RNGLISTS] = { ".cut", copy, size },
					     .addr = secs->addr };
		fails(dwr_list_read(&cut, DWR_LIST_RNGLISTS, &cu, off, DWR_LIST_NONE, &list));
		struct dwr_list_walk w = { &cut, DWR_LIST_RNGLISTS, &cu, off, cu.base };
		struct elfrw_err *err = NULL;
		for (bool more = true; more && !err;)
			err = dwr_list_walk_next(&w, &(uint64_t){ 0 }, &(uint64_t){ 0 }, &more);
		fails(err);
		fails(dwr_list_contribs_read(&cut.list[DWR_LIST_RNGLISTS], &contribs));
		free(copy);
	}
	dwr_list_deinit(&list);
}

static void test_rnglists(void **state)
{
	(void)state;
	struct build b = { 0 }, a = { 0 };
	ADDR(&a, 0xdead, 0x7000, 0x7010);
	uint64_t base = open_contrib(&b, 4, 8, 2), off = b.w.len;
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0x10, 0x20);
	U8(&b, DW_RLE_base_address), ADDR(&b, 0x5000);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0, 0x80);
	U8(&b, DW_RLE_base_addressx), LEB(&b, 0);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 1, 2);
	U8(&b, DW_RLE_startx_endx), LEB(&b, 0, 1);
	U8(&b, DW_RLE_startx_length), LEB(&b, 1, 4);
	U8(&b, DW_RLE_start_end), ADDR(&b, 0x8000, 0x8001);
	U8(&b, DW_RLE_start_length), ADDR(&b, UINT64_MAX), LEB(&b, 0x30);
	U8(&b, DW_RLE_end_of_list);
	uint64_t second = b.w.len;
	U8(&b, DW_RLE_end_of_list);
	close_contrib(&b);
	elfrw_put32(b.w.data + base, (uint32_t)(off - base));
	elfrw_put32(b.w.data + base + 4, (uint32_t)(second - base));
	struct dwr_list_secs secs = { .list[DWR_LIST_RNGLISTS] = section_of(&b),
				      .addr = section_of(&a) };
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0);
	cu.addr_base = 8;
	cu.rnglists_base = base;
	check_list(&secs, DWR_LIST_RNGLISTS, &cu, off, DWR_LIST_NONE,
		   WANT({ 0x1010, 0x1020 }, { 0x5000, 0x5080 }, { 0x7001, 0x7002 },
			{ 0x7000, 0x7010 }, { 0x7010, 0x7014 }, { 0x8000, 0x8001 },
			{ UINT64_MAX, 0x2f }),
		   NULL);
	uint64_t at;
	assert_null(dwr_list_index(&secs, DWR_LIST_RNGLISTS, &cu, 1, &at));
	assert_int_equal(at, second);
	fails(dwr_list_index(&secs, DWR_LIST_RNGLISTS, &cu, 2, &at));
	fails(dwr_list_index(&secs, DWR_LIST_LOCLISTS, &cu, 0, &at));

	struct dwr_list_contribs contribs = { 0 };
	assert_null(dwr_list_contribs_read(&secs.list[DWR_LIST_RNGLISTS], &contribs));
	assert_int_equal(contribs.len, 1);
	assert_int_equal(contribs.data[0].base, base);
	assert_ptr_equal(dwr_list_contrib_find(&contribs, off), &contribs.data[0]);
	assert_null(dwr_list_contrib_find(&contribs, b.w.len));
	dwr_list_contribs_deinit(&contribs);

	refuse_damaged(&secs, &cu, off, second);
	struct dwr_list list = { 0 };
	b.w.data[off] = 8;
	fails(dwr_list_read(&secs, DWR_LIST_RNGLISTS, &cu, off, DWR_LIST_NONE, &list));
	dwr_list_deinit(&list);
	elfrw_wbuf_free(&b.w);
	elfrw_wbuf_free(&a.w);
}

static void test_loclists(void **state)
{
	(void)state;
	struct build b = { 0 };
	open_contrib(&b, 8, 4, 0);
	uint64_t views = b.w.len;
	LEB(&b, 0, 1, 200, 3);
	uint64_t off = b.w.len;
	U8(&b, DW_LLE_offset_pair), LEB(&b, 0x10, 0x20), expr5(&b, DW_OP_reg1);
	U8(&b, DW_LLE_default_location), expr5(&b, DW_OP_reg2);
	U8(&b, DW_LLE_base_address), ADDR4(&b, 0xfffffff0);
	U8(&b, DW_LLE_offset_pair), LEB(&b, 0, 0x18), expr5(&b, DW_OP_reg3);
	U8(&b, DW_LLE_end_of_list);
	uint64_t inline_off = b.w.len;
	U8(&b, DW_LLE_GNU_view_pair), LEB(&b, 7, 8);
	U8(&b, DW_LLE_start_end), ADDR4(&b, 0x10, 0x10), expr5(&b, DW_OP_reg4);
	U8(&b, DW_LLE_start_length), ADDR4(&b, 0x10), LEB(&b, 3), U8(&b, 0);
	U8(&b, DW_LLE_end_of_list);
	close_contrib(&b);
	struct dwr_list_secs secs = { .list[DWR_LIST_LOCLISTS] = section_of(&b) };
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0);
	cu.params.address_size = 4;
	struct dwr_list list = { 0 };
	assert_null(dwr_list_read(&secs, DWR_LIST_LOCLISTS, &cu, off, views, &list));
	assert_int_equal(list.entry.len, 3);
	const struct dwr_list_entry *e = list.entry.data;
	assert_true(e[0].begin == 0x1010 && e[0].has_view && e[0].view[1] == 1 &&
		    b.w.data[e[0].expr] == DW_OP_reg1);
	assert_true(e[1].how == DWR_LIST_DEFAULT && !e[1].has_view &&
		    b.w.data[e[1].expr] == DW_OP_reg2);
	assert_true(e[2].begin == 0xfffffff0 && e[2].end == 8 && e[2].own_base &&
		    e[2].view[0] == 200);
	assert_int_equal(list.views_end, off);
	assert_int_equal(list.end, inline_off);
	assert_null(dwr_list_read(&secs, DWR_LIST_LOCLISTS, &cu, inline_off, DWR_LIST_NONE, &list));
	e = list.entry.data;
	assert_true(list.inline_views && list.entry.len == 2 && e[0].has_view &&
		    e[0].view[0] == 7 && !e[1].has_view);
	assert_true(e[1].end == 0x13 && e[1].expr_size == 0);
	fails(dwr_list_read(&secs, DWR_LIST_LOCLISTS, &cu, off, b.w.len - 1, &list));
	fails(dwr_list_read(&secs, DWR_LIST_LOCLISTS, &cu, off, UINT64_MAX - 1, &list));
	struct dwr_list_contribs contribs = { 0 };
	assert_null(dwr_list_contribs_read(&secs.list[DWR_LIST_LOCLISTS], &contribs));
	assert_true(contribs.len == 1 && contribs.data[0].offset_size == 8 &&
		    contribs.data[0].address_size == 4);
	dwr_list_contribs_deinit(&contribs);
	dwr_list_deinit(&list);
	elfrw_wbuf_free(&b.w);
}

static void test_old_lists(void **state)
{
	(void)state;
	struct build r = { 0 }, l = { 0 };
	ADDR(&r, 0x10, 0x20, 1, 1, UINT64_MAX, 0x5000, 0, 4, UINT64_MAX, 0, 0x6000, 0x6001, 0, 0);
	struct dwr_list_secs secs = { .list[DWR_LIST_RANGES] = section_of(&r) };
	struct dwr_list_cu cu = make_cu(4, 0x1000, 0);
	check_list(&secs, DWR_LIST_RANGES, &cu, 0, DWR_LIST_NONE,
		   WANT({ 0x1010, 0x1020 }, { 0x1001, 0x1001 }, { 0x5000, 0x5004 },
			{ 0x6000, 0x6001 }),
		   NULL);
	LEB(&l, 1, 2);
	ADDR(&l, 0, 8), expr4(&l, DW_OP_reg1);
	ADDR(&l, 0, 0);
	secs.list[DWR_LIST_LOC] = section_of(&l);
	check_list(&secs, DWR_LIST_LOC, &cu, 2, 0, WANT({ 0x1000, 0x1008 }), VIEWS(1, 2));
	struct dwr_list list = { 0 };
	fails(dwr_list_read(&secs, DWR_LIST_LOC, &cu, 3, DWR_LIST_NONE,
			    &list)); /* runs past the end */
	dwr_list_deinit(&list);
	elfrw_wbuf_free(&r.w);
	elfrw_wbuf_free(&l.w);
}

/* What a range becomes, and what it loses. */
struct mapped {
	const struct want *want;
	size_t n;
	const struct dwr_taken *taken;
	size_t n_taken;
};

static void check_mapped(const struct dwr_ranger *r, enum dwr_purpose purpose, uint64_t begin,
			 uint64_t end, struct mapped m)
{
	struct dwr_pieces p = { 0 };
	assert_null(dwr_range_map(r, purpose, begin, end, &p));
	assert_int_equal(p.piece.len, m.n);
	for (size_t i = 0; i < m.n; i++) {
		assert_int_equal(p.piece.data[i].begin, m.want[i].begin);
		assert_int_equal(p.piece.data[i].end, m.want[i].end);
	}
	assert_int_equal(p.taken.len, m.n_taken);
	for (size_t i = 0; i < m.n_taken; i++) {
		assert_int_equal(p.taken.data[i].unit, m.taken[i].unit);
		assert_int_equal(p.taken.data[i].start, m.taken[i].start);
		assert_int_equal(p.taken.data[i].len, m.taken[i].len);
	}
	dwr_pieces_deinit(&p);
}
/* By a macro, so that WANT and TAKEN fill the struct. */
#define check_map(r, purpose, begin, end, ...) \
	check_mapped(r, purpose, begin, end, (struct mapped){ __VA_ARGS__ })
#define NONE_TAKEN NULL, 0
#define TAKEN(...)                                 \
	(const struct dwr_taken[]){ __VA_ARGS__ }, \
		sizeof(const struct dwr_taken[]){ __VA_ARGS__ } / sizeof(struct dwr_taken)

/* Long: one line a case. */
static void test_range_map(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	struct dwr_ranger o = dwr_ranger(&map, DWR_FOLDED_OVERLAY),
			  a = dwr_ranger(&map, DWR_FOLDED_ALIAS);
	struct dwr_ranger d = dwr_ranger(&map, DWR_FOLDED_DROP);
	assert_true(o.ordered);
	/* Inside of one unit. */
	check_map(&o, DWR_FOR_SCOPE, 0x1064, 0x1080, WANT({ 0x1034, 0x1050 }), NONE_TAKEN);
	/* Two units side by side. Then A to C: the padding of the output between them belongs to
	 * the range, and the folded B is left out. */
	check_map(&o, DWR_FOR_SCOPE, 0x1070, 0x1090, WANT({ 0x1040, 0x1060 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_UNIT, 0x1000, 0x1080, WANT({ 0x1000, 0x1050 }, { 0x10f0, 0x10f5 }),
		  NONE_TAKEN);
	check_map(&d, DWR_FOR_UNIT, 0x1000, 0x1080, WANT({ 0x1000, 0x1050 }, { 0x10f0, 0x10f5 }),
		  NONE_TAKEN);
	check_map(&a, DWR_FOR_UNIT, 0x1000, 0x1080,
		  WANT({ 0x1000, 0x1020 }, { 0x1000, 0x1020 }, { 0x1030, 0x1050 },
		       { 0x10f0, 0x10f5 }),
		  NONE_TAKEN);
	/* A folded unit with a thunk: what its own DIE gets, and what the scopes in it get. */
	check_map(&o, DWR_FOR_FUNCTION, 0x1020, 0x1050, WANT({ 0x10f0, 0x10f5 }),
		  TAKEN({ B, 0, 0x20 }));
	check_map(&o, DWR_FOR_SCOPE, 0x1028, 0x1030, EMPTY, TAKEN({ B, 8, 8 }));
	check_map(&d, DWR_FOR_SCOPE, 0x1028, 0x1030, EMPTY, NONE_TAKEN);
	check_map(&a, DWR_FOR_SCOPE, 0x1028, 0x1030, WANT({ 0x1008, 0x1010 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_LOCATION, 0x1028, 0x1030, WANT({ 0x1008, 0x1010 }), NONE_TAKEN);
	/* A folded unit without a thunk; and a folded unit between two others. */
	check_map(&o, DWR_FOR_FUNCTION, 0x10c0, 0x10e0, EMPTY, TAKEN({ E, 0, 0x20 }));
	check_map(&o, DWR_FOR_SCOPE, 0x1090, 0x10f0, WANT({ 0x1060, 0x1090 }),
		  TAKEN({ E, 0, 0x20 }));
	/* Padding, empty ranges, what the map does not cover. */
	check_map(&o, DWR_FOR_SCOPE, 0x1050, 0x1060, EMPTY, NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, 0x1038, 0x1064, WANT({ 0x1030, 0x1034 }),
		  TAKEN({ B, 0x18, 8 }));
	check_map(&o, DWR_FOR_SCOPE, 0x1064, 0x1064, WANT({ 0x1034, 0x1034 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, 0x1024, 0x1024, EMPTY, NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, 0, 0, WANT({ 0, 0 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, 1, 0x1064, WANT({ 1, 0x1064 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, UINT64_MAX, 0x20, WANT({ UINT64_MAX, 0x20 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, 0x2000, 0x3000, WANT({ 0x2000, 0x3000 }), NONE_TAKEN);
	/* No range is joined across thunks or the trap byte. */
	map.trap_byte = 0x1028;
	check_map(&o, DWR_FOR_UNIT, 0x1000, 0x1020, WANT({ 0x1000, 0x1020 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_SCOPE, 0x1010, 0x1070, WANT({ 0x1010, 0x1020 }, { 0x1030, 0x1040 }),
		  TAKEN({ B, 0, 0x20 }));
	/* Units that changed their order are only joined where they touch. */
	map.trap_byte = 0;
	map.unit[F].body = 0x1024;
	struct dwr_ranger u = dwr_ranger(&map, DWR_FOLDED_OVERLAY);
	assert_false(u.ordered);
	check_map(&u, DWR_FOR_SCOPE, 0x1010, 0x1090, WANT({ 0x1010, 0x1020 }, { 0x1030, 0x1060 }),
		  TAKEN({ B, 0, 0x20 }));
	elfrw_addrmap_deinit(&map);

	struct elfrw_addrmap none = { 0 };
	assert_null(elfrw_addrmap_finish(&none));
	struct dwr_ranger n = dwr_ranger(&none, DWR_FOLDED_OVERLAY);
	check_map(&n, DWR_FOR_UNIT, 0x1000, 0x2000, WANT({ 0x1000, 0x2000 }), NONE_TAKEN);
	elfrw_addrmap_deinit(&none);
}

/* Nothing moved: a compilation unit stays in one piece, its thunks included, but for the artificial
 * unit's byte. */
static void test_range_in_place(void **state)
{
	(void)state;
	static const struct elfrw_addrmap_unit units[] = {
		{ 0x1000, 0x1020, 0x10c0, 0x1000, 4, 5, ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
		{ 0x1020, 0x1040, 0x1020, 0x1020, 1, 0, ELFRW_UNIT_KEPT },
		{ 0x1060, 0x1080, 0x1020, 0x1060, 1, 5, ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
		{ 0x1080, 0x10a0, 0, 0, 3, 0, ELFRW_UNIT_FOLDED | ELFRW_UNIT_REMOVED },
		{ 0x10c0, 0x10e0, 0x10c0, 0x10c0, 4, 0, ELFRW_UNIT_KEPT },
		{ 0x10e0, 0x1100, 0x1020, 0x10e0, 1, 5, ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
	};
	struct elfrw_addrmap map = make_map();
	_Static_assert(sizeof units / sizeof *units == N_UNITS, "the map's number of units");
	memcpy(map.unit, units, sizeof units);
	map.in_place = true;
	map.thunks = 0x1000;
	map.thunks_end = 0x10e5;
	map.trap_byte = 0x10ff;
	struct dwr_ranger o = dwr_ranger(&map, DWR_FOLDED_OVERLAY),
			  a = dwr_ranger(&map, DWR_FOLDED_ALIAS);
	check_map(&o, DWR_FOR_UNIT, 0x1000, 0x1100, WANT({ 0x1000, 0x10e5 }), NONE_TAKEN);
	check_map(&a, DWR_FOR_UNIT, 0x1000, 0x1100, WANT({ 0x1000, 0x10e5 }), NONE_TAKEN);
	check_map(&o, DWR_FOR_UNIT, 0x1030, 0x10d0, WANT({ 0x1030, 0x10d0 }), NONE_TAKEN);
	/* A thunk alone, with removed code behind it; its copy elsewhere; nothing at all. */
	check_map(&o, DWR_FOR_UNIT, 0x1060, 0x10a0, WANT({ 0x1060, 0x1065 }), NONE_TAKEN);
	check_map(&a, DWR_FOR_UNIT, 0x1060, 0x10a0, WANT({ 0x1020, 0x1040 }, { 0x1060, 0x1065 }),
		  NONE_TAKEN);
	check_map(&o, DWR_FOR_UNIT, 0x1068, 0x10a0, EMPTY, NONE_TAKEN);
	/* The functions and scopes in it are cut as ever. */
	check_map(&o, DWR_FOR_FUNCTION, 0x1060, 0x1080, WANT({ 0x1060, 0x1065 }),
		  TAKEN({ 2, 0, 0x20 }));
	map.trap_byte = 0x107f;
	check_map(&o, DWR_FOR_UNIT, 0x1000, 0x1100, WANT({ 0x1000, 0x1065 }, { 0x10c0, 0x10e5 }),
		  NONE_TAKEN);
	elfrw_addrmap_deinit(&map);
}

/* Damages two sets, SIZE bytes at DATA: cut off anywhere but between the sets, or with segment
 * selectors. No set at all is no fault. */
static void damage_aranges(struct dwr_rw_aranges_in in, uint8_t *data, size_t size)
{
	uint8_t *out;
	size_t out_size;
	for (size_t n = 1; n < size; n++) {
		uint8_t *copy = malloc(n);
		memcpy(copy, data, n);
		in.data = copy;
		in.size = n;
		struct elfrw_err *err = dwr_rw_aranges(&in, &out, &out_size);
		if (n == 112)
			free(out);
		else
			fails(err);
		free(copy);
	}
	in.data = data;
	in.size = size;
	data[11] = 1; /* segment selectors */
	fails(dwr_rw_aranges(&in, &out, &out_size));
	in.size = 0;
	assert_null(dwr_rw_aranges(&in, &out, &out_size));
	assert_int_equal(out_size, 0);
	free(out);
}

static void test_aranges(void **state)
{
	(void)state;
	struct build b = { 0 };
	static const struct {
		uint64_t a, n;
	} set[] = {
		{ 0x1000, 0x20 }, { 0x1020, 0x30 }, { 0, 0x10 }, { 0x1060, 0x50 }, { 0x10c0, 0x20 },
	};
	elfrw_wbuf_u32(&b.w, 12 - 4 + 4 + 6 * 16);
	elfrw_wbuf_u16(&b.w, 2);
	elfrw_wbuf_u32(&b.w, 0x1234);
	elfrw_wbuf_u16(&b.w, 8);
	elfrw_wbuf_u32(&b.w, 0);
	for (size_t i = 0; i < 5; i++)
		ADDR(&b, set[i].a, set[i].n);
	ADDR(&b, 0, 0);
	/* 64-bit DWARF, 4-byte addresses, nothing but a folded function. */
	elfrw_wbuf_u32(&b.w, UINT32_MAX);
	elfrw_wbuf_u64(&b.w, 12 + 16);
	elfrw_wbuf_u16(&b.w, 2);
	elfrw_wbuf_u64(&b.w, 0x5678);
	elfrw_wbuf_u16(&b.w, 4);
	ADDR4(&b, 0x10c0, 0x20, 0, 0);
	struct elfrw_addrmap map = make_map();
	struct dwr_arange_extra extra = { 0x9abc, 0x10ff, 1 };
	struct dwr_rw_aranges_in in = { &map, DWR_FOLDED_OVERLAY, b.w.data, b.w.len, &extra, 1 };
	uint8_t *out;
	size_t size;
	assert_null(dwr_rw_aranges(&in, &out, &size));
	static const uint64_t want[] = { 0x1000, 0x20, 0x10f0, 5, 0, 0x10, 0x1030, 0x40, 0, 0 };
	assert_int_equal(size, 16 + sizeof want + 24 + 8 + 16 + 32);
	assert_int_equal(elfrw_get32(out), 12 + sizeof want);
	assert_int_equal(elfrw_get32(out + 6), 0x1234);
	assert_memory_equal(out + 16, want, sizeof want);
	const uint8_t *second = out + 16 + sizeof want;
	assert_int_equal(elfrw_get64(second + 4), 12 + 8);
	assert_int_equal(elfrw_get64(second + 14), 0x5678);
	assert_int_equal(elfrw_get64(second + 24), 0);
	const uint8_t *third = second + 32;
	assert_int_equal(elfrw_get32(third + 6), 0x9abc);
	assert_int_equal(elfrw_get64(third + 16), 0x10ff);
	free(out);
	in.policy = DWR_FOLDED_ALIAS;
	in.n_extra = 0;
	assert_null(dwr_rw_aranges(&in, &out, &size));
	/* B: its body and its thunk. */
	assert_int_equal(elfrw_get64(out + 32), 0x1000);
	assert_int_equal(elfrw_get64(out + 40), 0x20);
	assert_int_equal(elfrw_get64(out + 48), 0x10f0);
	free(out);
	damage_aranges(in, b.w.data, b.w.len);
	elfrw_wbuf_free(&b.w);
	elfrw_addrmap_deinit(&map);
}

static void test_addr(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	struct build b = { 0 };
	elfrw_wbuf_u32(&b.w, 4 + 4 * 8);
	elfrw_wbuf_u16(&b.w, 5);
	elfrw_wbuf_u16(&b.w, 8);
	ADDR(&b, 0x1020, 0x1020, 0x1064, 0x9999);
	struct dwr_addr_table t;
	assert_null(dwr_addr_table_init(&t, b.w.data, b.w.len));
	assert_true(dwr_addr_set(&t, 8, 8, 0x1000));
	assert_true(dwr_addr_set(&t, 8, 8, 0x1000));
	assert_false(dwr_addr_set(&t, 8, 8, 0x10f0));
	assert_false(dwr_addr_can_set(&t, 8, 4, 0x1000));
	assert_false(dwr_addr_set(&t, 40, 8, 0));
	assert_false(dwr_addr_set(&t, 33, 8, 0));
	assert_false(dwr_addr_set(&t, UINT64_MAX, 8, 0));
	assert_null(dwr_addr_table_finish(&t, &map, false, 0));
	assert_int_equal(t.size, b.w.len);
	static const uint64_t want[] = { 0x1000, 0x10f0, 0x1034, 0x9999 };
	assert_memory_equal(t.data + 8, want, sizeof want);
	dwr_addr_table_deinit(&t);

	assert_null(dwr_addr_table_init(&t, b.w.data + 8, 32));
	assert_null(dwr_addr_table_finish(&t, &map, true, 8));
	assert_int_equal(elfrw_get64(t.data), 0x10f0);
	dwr_addr_table_deinit(&t);
	for (size_t n = 1; n < b.w.len; n++) {
		assert_null(dwr_addr_table_init(&t, b.w.data, n));
		fails(dwr_addr_table_finish(&t, &map, false, 0));
		dwr_addr_table_deinit(&t);
	}
	elfrw_wbuf_free(&b.w);
	elfrw_addrmap_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnglists),       cmocka_unit_test(test_loclists),
		cmocka_unit_test(test_old_lists),      cmocka_unit_test(test_range_map),
		cmocka_unit_test(test_range_in_place), cmocka_unit_test(test_aranges),
		cmocka_unit_test(test_addr),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
