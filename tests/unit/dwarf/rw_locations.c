/* rw_locations.c: location lists rewritten through an address map. */
#include "tests/unit/make/lists.h"

#define SCOPE    DWR_FOR_SCOPE
#define LOCATION DWR_FOR_LOCATION

/* Long: the lists and what must become of each stand in one place. */
static void test_views(void **state)
{
	(void)state;
	struct build b = { 0 };
	open_contrib(&b, 4, 8, 0);
	struct dwr_list_use use[4];
	/* A location over A, (B folded), C; an empty one at the end of C; one in padding; one in
	 * B. */
	for (int i = 0; i < 2; i++) {
		use[i] = make_use(DWR_LIST_LOCLISTS, LOCATION, 0, C);
		use[i].views = b.w.len;
		if (i == 0)
			LEB(&b, 1, 2, 3, 4, 5, 6, 7, 8);
		use[i].off = b.w.len;
		if (i == 1) {
			use[i].views = DWR_LIST_NONE;
			U8(&b, DW_LLE_GNU_view_pair), LEB(&b, 1, 2);
		}
		U8(&b, DW_LLE_start_end), ADDR(&b, 0x1010, 0x1070), expr5(&b, DW_OP_reg1);
		if (i == 1)
			U8(&b, DW_LLE_GNU_view_pair), LEB(&b, 3, 4);
		U8(&b, DW_LLE_start_end), ADDR(&b, 0x1080, 0x1080), expr5(&b, DW_OP_reg2);
		if (i == 1)
			U8(&b, DW_LLE_GNU_view_pair), LEB(&b, 5, 6);
		U8(&b, DW_LLE_start_length), ADDR(&b, 0x1044), LEB(&b, 4), expr5(&b, DW_OP_reg3);
		U8(&b, DW_LLE_default_location), expr5(&b, DW_OP_reg4);
		if (i == 1)
			U8(&b, DW_LLE_GNU_view_pair), LEB(&b, 7, 8);
		U8(&b, DW_LLE_offset_pair), LEB(&b, 0x24, 0x28), expr5(&b, DW_OP_reg5);
		U8(&b, 0);
	}
	/* Without views a location in padding is dropped. */
	use[2] = make_use(DWR_LIST_LOCLISTS, LOCATION, b.w.len, C);
	U8(&b, DW_LLE_start_length), ADDR(&b, 0x1044), LEB(&b, 4), expr5(&b, DW_OP_reg3), U8(&b, 0);
	/* The list is copied with its views. The empty location stays at the end of C, where D
	 * begins in the output as well. */
	use[3] = make_use(DWR_LIST_LOCLISTS, LOCATION, 0, C);
	use[3].views = b.w.len;
	LEB(&b, 0, 1, 200, 300);
	use[3].off = b.w.len;
	U8(&b, DW_LLE_base_address), ADDR(&b, 0x1060);
	U8(&b, DW_LLE_offset_pair), LEB(&b, 0, 0x20), expr5(&b, DW_OP_reg1);
	U8(&b, DW_LLE_offset_pair), LEB(&b, 0x20, 0x20), expr5(&b, DW_OP_reg1), U8(&b, 0);
	close_contrib(&b);
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct rewriting r = rewriting_of(DWR_LIST_LOCLISTS, &b, &cu, use, 4);
	run(&r);
	struct dwr_list list = { 0 };
	static const struct {
		uint64_t begin, end, view[2];
		uint8_t op;
	} want[] = {
		{ 0x1010, 0x1020, { 1, 0 }, DW_OP_reg1 }, { 0x1000, 0x1020, { 0, 0 }, DW_OP_reg1 },
		{ 0x1030, 0x1040, { 0, 2 }, DW_OP_reg1 }, { 0x1050, 0x1050, { 3, 4 }, DW_OP_reg2 },
		{ 0x1030, 0x1030, { 5, 6 }, DW_OP_reg3 }, { 0, 0, { 0, 0 }, DW_OP_reg4 },
		{ 0x1004, 0x1008, { 7, 8 }, DW_OP_reg5 },
	};
	for (int i = 0; i < 2; i++) {
		assert_null(dwr_list_read(&r.new_secs, DWR_LIST_LOCLISTS, &r.new_cu, use[i].new_off,
					  use[i].new_views, &list));
		assert_int_equal(list.entry.len, 7);
		assert_int_equal(list.inline_views, i);
		if (i == 0)
			assert_int_equal(list.views_end, list.off);
		for (unsigned k = 0; k < 7; k++) {
			const struct dwr_list_entry *e = &list.entry.data[k];
			assert_true(e->begin == want[k].begin && e->end == want[k].end);
			assert_true(e->has_view == (e->how != DWR_LIST_DEFAULT));
			assert_memory_equal(e->view, want[k].view, sizeof e->view);
			assert_int_equal(r.new_secs.list[DWR_LIST_LOCLISTS].data[e->expr],
					 want[k].op);
		}
	}
	dwr_list_deinit(&list);
	check_use(&r, &use[2], EMPTY, NULL);
	check_use(&r, &use[3], WANT({ 0x1030, 0x1050 }, { 0x1050, 0x1050 }), VIEWS(0, 1, 200, 300));
	end_run(&r);
	elfrw_wbuf_free(&b.w);
}

/* What looks like the usual list of one function, but is not: code beyond the function, an address
 * in an expression, a base that moves by another distance. */
static void test_nearly_usual(void **state)
{
	(void)state;
	struct build b = { 0 };
	open_contrib(&b, 4, 8, 0);
	struct dwr_list_use use[4];
	use[0] = make_use(DWR_LIST_LOCLISTS, LOCATION, b.w.len, A);
	U8(&b, DW_LLE_start_end), ADDR(&b, 0x1010, 0x1070), expr5(&b, DW_OP_reg1), U8(&b, 0);
	use[1] = make_use(DWR_LIST_LOCLISTS, LOCATION, b.w.len, A);
	U8(&b, DW_LLE_start_length), ADDR(&b, 0x1010), LEB(&b, 0x60), expr5(&b, DW_OP_reg1);
	U8(&b, 0);
	use[2] = make_use(DWR_LIST_LOCLISTS, LOCATION, b.w.len, C);
	U8(&b, DW_LLE_start_length), ADDR(&b, 0x1064), LEB(&b, 4, 9), U8(&b, DW_OP_addr);
	ADDR(&b, 0x1060), U8(&b, 0);
	use[3] = make_use(DWR_LIST_LOCLISTS, LOCATION, b.w.len, C);
	U8(&b, DW_LLE_offset_pair), LEB(&b, 0x64, 0x68), expr5(&b, DW_OP_reg1), U8(&b, 0);
	close_contrib(&b);
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct rewriting r = rewriting_of(DWR_LIST_LOCLISTS, &b, &cu, use, 4);
	run(&r);
	for (int i = 0; i < 2; i++)
		check_use(&r, &use[i],
			  WANT({ 0x1010, 0x1020 }, { 0x1000, 0x1020 }, { 0x1030, 0x1040 }), NULL);
	check_use(&r, &use[2], WANT({ 0x1034, 0x1038 }), NULL);
	check_use(&r, &use[3], WANT({ 0x1034, 0x1038 }), NULL);
	struct dwr_list list = { 0 };
	assert_null(dwr_list_read(&r.new_secs, DWR_LIST_LOCLISTS, &r.new_cu, use[2].new_off,
				  DWR_LIST_NONE, &list));
	assert_int_equal(
		elfrw_get64(r.new_secs.list[DWR_LIST_LOCLISTS].data + list.entry.data[0].expr + 1),
		0x1030);
	dwr_list_deinit(&list);
	end_run(&r);
	elfrw_wbuf_free(&b.w);
}

static void test_old_locations(void **state)
{
	(void)state;
	struct build b = { 0 };
	struct dwr_list_use use[2];
	use[0] = make_use(DWR_LIST_LOC, LOCATION, 0, C);
	LEB(&b, 1, 1, 2, 2);
	use[0].views = 0;
	use[0].off = b.w.len;
	ADDR(&b, 0x60, 0x60), expr4(&b, DW_OP_reg1); /* will be at the unit's base: (0, 0) */
	ADDR(&b, 0x64, 0x68), elfrw_wbuf_u16(&b.w, 9), U8(&b, DW_OP_addr), ADDR(&b, 0x1020);
	ADDR(&b, 0, 0);
	use[1] = make_use(DWR_LIST_LOC, LOCATION, b.w.len, B); /* a folded function */
	ADDR(&b, 0x20, 0x30), expr4(&b, DW_OP_reg1);
	ADDR(&b, 0x38, 0x44), expr4(&b, DW_OP_reg2);
	ADDR(&b, 0, 0);
	struct dwr_list_cu cu = make_cu(4, 0x1000, 0x1030);
	struct rewriting r = rewriting_of(DWR_LIST_LOC, &b, &cu, use, 2);
	run(&r);
	check_use(&r, &use[0], WANT({ 0x1030, 0x1030 }, { 0x1034, 0x1038 }), VIEWS(1, 1, 2, 2));
	check_use(&r, &use[1], WANT({ 0x1000, 0x1010 }, { 0x1018, 0x1020 }), NULL);
	/* A pointer to B becomes the address of B's thunk. */
	struct dwr_list list = { 0 };
	assert_null(dwr_list_read(&r.new_secs, DWR_LIST_LOC, &r.new_cu, use[0].new_off,
				  use[0].new_views, &list));
	assert_int_equal(elfrw_get64(r.out.sec[DWR_LIST_LOC].data + list.entry.data[1].expr + 1),
			 0x10f0);
	dwr_list_deinit(&list);
	end_run(&r);
	elfrw_wbuf_free(&b.w);
}

/* Long: the lists and what must become of each stand in one place. */
static void test_address_indices(void **state)
{
	(void)state;
	struct build b = { 0 }, l = { 0 }, a = { 0 };
	ADDR(&a, 0x1060, 0x1080, 0x1020, 0x20, 0x1024);
	open_contrib(&b, 4, 8, 0);
	struct dwr_list_use use[6];
	use[0] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, C);
	U8(&b, DW_RLE_base_addressx), LEB(&b, 0), U8(&b, DW_RLE_offset_pair), LEB(&b, 4, 8),
		U8(&b, 0);
	use[1] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, C);
	U8(&b, DW_RLE_startx_length), LEB(&b, 0, 8);
	U8(&b, DW_RLE_startx_endx), LEB(&b, 0, 1), U8(&b, 0);
	close_contrib(&b);
	open_contrib(&l, 4, 8, 0);
	/* A DIE sets the entry of .debug_addr for B to the body. One list wants the body, another
	 * one the pointer. */
	use[2] = make_use(DWR_LIST_LOCLISTS, LOCATION, l.w.len, B);
	U8(&l, DW_LLE_startx_length), LEB(&l, 2, 8), expr5(&l, DW_OP_reg1), U8(&l, 0);
	use[3] = make_use(DWR_LIST_LOCLISTS, LOCATION, l.w.len, A);
	U8(&l, DW_LLE_start_length), ADDR(&l, 0x1000), LEB(&l, 8), LEB(&l, 3), U8(&l, DW_OP_addrx),
		LEB(&l, 2);
	U8(&l, DW_OP_stack_value), U8(&l, 0);
	/* An entry that is a thread-local offset, and one that is a pointer. All their users agree.
	 */
	use[4] = make_use(DWR_LIST_LOCLISTS, LOCATION, l.w.len, A);
	U8(&l, DW_LLE_start_length), ADDR(&l, 0x1000), LEB(&l, 8), LEB(&l, 5), U8(&l, DW_OP_addrx),
		LEB(&l, 3);
	U8(&l, DW_OP_GNU_push_tls_address), U8(&l, DW_OP_constx), LEB(&l, 3), U8(&l, 0);
	use[5] = make_use(DWR_LIST_LOCLISTS, LOCATION, l.w.len, A);
	U8(&l, DW_LLE_start_length), ADDR(&l, 0x1000), LEB(&l, 8), LEB(&l, 2), U8(&l, DW_OP_addrx),
		LEB(&l, 4), U8(&l, 0);
	close_contrib(&l);
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	cu.addr_base = 0;
	struct dwr_addr_table table;
	assert_null(dwr_addr_table_init(&table, a.w.data, a.w.len));
	assert_true(dwr_addr_set(&table, 16, 8, 0x1000));
	struct rewriting r = { .in = { .secs = { .list[DWR_LIST_RNGLISTS] = section_of(&b),
						 .list[DWR_LIST_LOCLISTS] = section_of(&l),
						 .addr = section_of(&a) },
				       .cu = &cu,
				       .n_cus = 1,
				       .use = use,
				       .n_uses = 6,
				       .addr = &table } };
	run(&r);
	check_use(&r, &use[0], WANT({ 0x1034, 0x1038 }), NULL);
	check_use(&r, &use[1], WANT({ 0x1030, 0x1038 }, { 0x1030, 0x1050 }), NULL);
	check_use(&r, &use[2], WANT({ 0x1000, 0x1008 }), NULL);
	assert_int_equal(r.out.sec[DWR_LIST_RNGLISTS].size, b.w.len); /* all indices stayed */
	const uint8_t *new = r.out.sec[DWR_LIST_LOCLISTS].data;
	assert_int_equal(new[use[2].new_off], DW_LLE_startx_length);
	struct dwr_list list = { 0 };
	assert_null(dwr_list_read(&r.new_secs, DWR_LIST_LOCLISTS, &r.new_cu, use[3].new_off,
				  DWR_LIST_NONE, &list));
	const struct dwr_list_entry *e = &list.entry.data[0];
	assert_true(e->expr_size == 10 &&
		    new[e->expr] == DW_OP_addr &&new[e->expr + 9] == DW_OP_stack_value);
	assert_int_equal(elfrw_get64(new + e->expr + 1), 0x10f0);
	dwr_list_deinit(&list);
	assert_int_equal(elfrw_get64(table.data + 24), 0x20);
	assert_int_equal(elfrw_get64(table.data + 32), 0x1004);
	end_run(&r);
	dwr_addr_table_deinit(&table);

	/* A DIE sets all entries to a value that no list wants, so the lists state their addresses
	 * themselves. */
	assert_null(dwr_addr_table_init(&table, a.w.data, a.w.len));
	for (uint64_t off = 0; off < 40; off += 8)
		assert_true(dwr_addr_set(&table, off, 8, 0));
	run(&r);
	check_use(&r, &use[0], WANT({ 0x1034, 0x1038 }), NULL);
	check_use(&r, &use[1], WANT({ 0x1030, 0x1038 }, { 0x1030, 0x1050 }), NULL);
	check_use(&r, &use[2], WANT({ 0x1000, 0x1008 }), NULL);
	assert_null(dwr_list_read(&r.new_secs, DWR_LIST_LOCLISTS, &r.new_cu, use[4].new_off,
				  DWR_LIST_NONE, &list));
	new = r.out.sec[DWR_LIST_LOCLISTS].data;
	e = &list.entry.data[0];
	assert_true(e->expr_size == 19 &&
		    new[e->expr] == DW_OP_const8u &&elfrw_get64(new + e->expr + 1) == 0x20);
	dwr_list_deinit(&list);
	end_run(&r);
	dwr_addr_table_deinit(&table);
	elfrw_wbuf_free(&b.w);
	elfrw_wbuf_free(&l.w);
	elfrw_wbuf_free(&a.w);
}

/* Pairs that count from the base of a unit, in a function that moves otherwise than that base: what
 * the reader of usual lists writes is what the general one does, which a no-op in the expressions
 * makes necessary.  USUAL: without no-ops. */
static uint64_t shifted_list(struct build *b, uint64_t base, unsigned n, bool usual,
			     struct dwr_list_use *use)
{
	*use = make_use(DWR_LIST_LOCLISTS, LOCATION, 0, C);
	use->views = b->w.len;
	for (unsigned i = 0; i < n; i++)
		LEB(b, i, 300 + i);
	use->off = b->w.len;
	for (unsigned i = 0; i < n; i++) {
		/* Not in order, and an empty one. */
		uint64_t at = 0x1060 - base + 2 * (i ^ 1);
		U8(b, DW_LLE_offset_pair), LEB(b, at, i == 3 ? at : at + 0x10);
		expr5(b, usual ? DW_OP_stack_value : DW_OP_nop);
	}
	U8(b, 0);
	return b->w.len - use->views;
}

static void test_shifted(void **state)
{
	(void)state;
	/* Near 0x1030, a pair of offsets needs 2, 3 or 4 bytes. */
	static const uint64_t new_base[] = { 0x10,  0x800, 0xfa0, 0xfac,  0xfb0,  0xfb2, 0xfb6,
					     0xfba, 0xfc2, 0xff0, 0x1031, 0x1032, 0x2000 };
	for (unsigned k = 0; k < 13 * 9; k++) {
		struct build b = { 0 };
		struct dwr_list_use use[2];
		unsigned n = k % 9 + 1;
		uint64_t base = k % 2 ? 0x1000 : 0x20;
		open_contrib(&b, 4, 8, 0);
		for (unsigned i = 0; i < 2; i++)
			shifted_list(&b, base, n, i == 0, &use[i]);
		close_contrib(&b);
		struct dwr_list_cu cu = make_cu(5, base, new_base[k / 9]);
		struct rewriting r = rewriting_of(DWR_LIST_LOCLISTS, &b, &cu, use, 2);
		run(&r);
		uint8_t *a = r.out.sec[DWR_LIST_LOCLISTS].data, *end = a + use[1].new_off;
		struct want want[9];
		uint64_t view[18];
		for (unsigned i = 0; i < n; i++) {
			want[i].begin = 0x1030 + 2 * (i ^ 1);
			want[i].end = want[i].begin + (i == 3 ? 0 : 0x10);
			view[2 * i] = i;
			view[2 * i + 1] = 300 + i;
		}
		for (unsigned i = 0; i < 2; i++)
			check_use(&r, &use[i], want, n, view);
		/* One list and its views lie behind the other. */
		size_t size = r.out.sec[DWR_LIST_LOCLISTS].size - use[1].new_views;
		assert_int_equal(use[1].new_views - use[0].new_views, size);
		for (uint8_t *p = a + use[0].new_views, *q = a + use[1].new_views; p < end && size;
		     p++, q++, size--)
			assert_true(*p == *q || (*p == DW_OP_stack_value && *q == DW_OP_nop));
		end_run(&r);
		elfrw_wbuf_free(&b.w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_views),           cmocka_unit_test(test_nearly_usual),
		cmocka_unit_test(test_shifted),         cmocka_unit_test(test_old_locations),
		cmocka_unit_test(test_address_indices),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
