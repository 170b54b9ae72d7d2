/* rw_lists.c: range lists, and the sections of lists, rewritten through an address map. */
#include "tests/unit/make/lists.h"

#define SCOPE    DWR_FOR_SCOPE
#define LOCATION DWR_FOR_LOCATION

/* Long: the lists and what must become of each stand in one place. */
static void test_rnglists(void **state)
{
	(void)state;
	struct build b = { 0 };
	open_contrib(&b, 4, 8, 0);
	struct dwr_list_use use[12];
	unsigned n = 0;
	/* 0: pairs in a function that moved with the unit's base. */
	use[n++] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, A);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 4, 8);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0x10, 0x18), U8(&b, 0);
	/* 1, 2: pairs in a function that did not; list 2 is the tail of list 1. */
	use[n++] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, C);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0x60, 0x64);
	use[n++] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, C);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0x70, 0x71), U8(&b, 0);
	/* 3: the list sets its base twice; only the two bases change in its bytes. */
	use[n++] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, C);
	U8(&b, DW_RLE_base_address), ADDR(&b, 0x1060);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 4, 8), U8(&b, DW_RLE_offset_pair), LEB(&b, 8, 9);
	U8(&b, DW_RLE_base_address), ADDR(&b, 0x1080);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0, 0), U8(&b, 0);
	/* 4: start_end, start_length, and dead code. */
	use[n++] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, D);
	U8(&b, DW_RLE_start_end), ADDR(&b, 0x1080, 0x1084);
	U8(&b, DW_RLE_start_length), ADDR(&b, 0), LEB(&b, 0x10);
	U8(&b, DW_RLE_start_length), ADDR(&b, UINT64_MAX), LEB(&b, 0x10);
	U8(&b, DW_RLE_start_length), ADDR(&b, 0x1088), LEB(&b, 2), U8(&b, 0);
	/* 5: two functions that moved apart, and dead code, which its base marks. */
	use[n++] = make_use(DWR_LIST_RNGLISTS, DWR_FOR_UNIT, b.w.len, ELFRW_NO_UNIT);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0, 0x40);
	U8(&b, DW_RLE_base_address), ADDR(&b, UINT64_MAX);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 4, 0x40);
	U8(&b, DW_RLE_base_address), ADDR(&b, 0x10e0);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0, 0x10), U8(&b, 0);
	/* 6 to 8: one list of a folded function's DIE, of an inlined scope in that function, and of
	 * a unit. */
	for (int i = 0; i < 3; i++)
		use[n++] = make_use(DWR_LIST_RNGLISTS,
				    i == 0   ? DWR_FOR_FUNCTION
				    : i == 1 ? SCOPE
					     : DWR_FOR_UNIT,
				    b.w.len, B);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0x20, 0x40), U8(&b, 0);
	/* 9: an empty list. */
	use[n++] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, A);
	U8(&b, 0);
	close_contrib(&b);

	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct rewriting r = rewriting_of(DWR_LIST_RNGLISTS, &b, &cu, use, n);
	run(&r);
	check_use(&r, &use[0], WANT({ 0x1004, 0x1008 }, { 0x1010, 0x1018 }), NULL);
	assert_memory_equal(r.out.sec[DWR_LIST_RNGLISTS].data + use[0].new_off,
			    b.w.data + use[0].off, 7);
	check_use(&r, &use[1], WANT({ 0x1030, 0x1034 }, { 0x1040, 0x1041 }), NULL);
	check_use(&r, &use[2], WANT({ 0x1040, 0x1041 }), NULL);
	check_use(&r, &use[3], WANT({ 0x1034, 0x1038 }, { 0x1038, 0x1039 }, { 0x1050, 0x1050 }),
		  NULL);
	check_use(&r, &use[4],
		  WANT({ 0x1050, 0x1054 }, { 0, 0x10 }, { UINT64_MAX, 0xf }, { 0x1058, 0x105a }),
		  NULL);
	check_use(&r, &use[5],
		  WANT({ 0x1000, 0x1020 }, { 0x10f0, 0x10f5 }, { 3, 0x3f }, { 0x1080, 0x1090 }),
		  NULL);
	/* Readers know dead code by the base -1. */
	static const uint8_t dead[] = { DW_RLE_base_address, 255, 255, 255, 255, 255, 255, 255, 255,
					DW_RLE_offset_pair,  4,   0x40 };
	assert_non_null(
		memmem(r.out.sec[DWR_LIST_RNGLISTS].data + use[5].new_off, 40, dead, sizeof dead));
	check_use(&r, &use[6], WANT({ 0x10f0, 0x10f5 }), NULL);
	check_use(&r, &use[7], EMPTY, NULL);
	check_use(&r, &use[8], WANT({ 0x10f0, 0x10f5 }), NULL);
	assert_int_equal(use[6].new_off, use[8].new_off);
	check_use(&r, &use[9], EMPTY, NULL);
	assert_int_equal(r.out.n_taken, 2);
	for (uint32_t i = 0; i < 2; i++)
		assert_true(r.out.taken[i].use == 6 + i && r.out.taken[i].unit == B &&
			    r.out.taken[i].start == 0 && r.out.taken[i].len == 0x20);
	end_run(&r);

	r.in.policy = DWR_FOLDED_ALIAS;
	run(&r);
	check_use(&r, &use[7], WANT({ 0x1000, 0x1020 }), NULL);
	check_use(&r, &use[6], WANT({ 0x1000, 0x1020 }, { 0x10f0, 0x10f5 }), NULL);
	assert_int_equal(r.out.n_taken, 0);
	end_run(&r);
	r.in.policy = DWR_FOLDED_DROP;
	run(&r);
	check_use(&r, &use[7], EMPTY, NULL);
	assert_int_equal(r.out.n_taken, 0);
	end_run(&r);
	elfrw_wbuf_free(&b.w);
}

static void test_tail_is_shared(void **state)
{
	(void)state;
	struct build b = { 0 };
	open_contrib(&b, 4, 8, 0);
	struct dwr_list_use use[2] = { make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, A) };
	U8(&b, DW_RLE_offset_pair), LEB(&b, 4, 8);
	use[1] = make_use(DWR_LIST_RNGLISTS, SCOPE, b.w.len, A);
	U8(&b, DW_RLE_offset_pair), LEB(&b, 0x10, 0x18), U8(&b, 0);
	close_contrib(&b);
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct rewriting r = rewriting_of(DWR_LIST_RNGLISTS, &b, &cu, use, 2);
	run(&r);
	assert_int_equal(r.out.sec[DWR_LIST_RNGLISTS].size, b.w.len);
	assert_memory_equal(r.out.sec[DWR_LIST_RNGLISTS].data, b.w.data, b.w.len);
	assert_true(use[0].new_off == use[0].off && use[1].new_off == use[1].off);
	end_run(&r);
	elfrw_wbuf_free(&b.w);
}

static void test_old_ranges(void **state)
{
	(void)state;
	struct build b = { 0 };
	struct dwr_list_use use[6];
	/* GNU ld writes 0 or 1 for both ends of what it left out; 0 with a base gives the base. */
	use[0] = make_use(DWR_LIST_RANGES, DWR_FOR_UNIT, b.w.len, ELFRW_NO_UNIT);
	ADDR(&b, 1, 1, 0x1060, 0x1080, 0x1020, 0x1040, 0x1000, 0x1010, 0, 0);
	use[1] = make_use(DWR_LIST_RANGES, SCOPE, b.w.len, C);
	ADDR(&b, UINT64_MAX, 0x1060, 0, 8, 0x10, 0x12, 0, 0);
	use[2] = make_use(DWR_LIST_RANGES, SCOPE, b.w.len,
			  ELFRW_NO_UNIT); /* in two units that moved apart */
	ADDR(&b, UINT64_MAX, 0x10c0, 0x10, 0x28, 0, 0);
	use[3] = make_use(DWR_LIST_RANGES, SCOPE, b.w.len, ELFRW_NO_UNIT);
	ADDR(&b, 0x1064, 0x1064, 0, 0);
	use[4] = make_use(DWR_LIST_RANGES, SCOPE, b.w.len, C);
	use[4].cu = 1;
	ADDR(&b, 0x60, 0x64, 0x10, 0x11, 0, 0);
	use[5] = make_use(DWR_LIST_RANGES, SCOPE, b.w.len, C);
	use[5].cu = 1;
	ADDR(&b, 0x60, 0x60, 0x64, 0x68, 0, 0);
	struct dwr_list_cu cu[2] = { make_cu(4, 0, 0), make_cu(4, 0x1000, 0x1030) };
	cu[0].has_base = false;
	struct dwr_list_range extra[] = { { 0x1000, 0x1010 }, { 0x1040, 0x1042 } };
	struct dwr_list_new add[] = { { 0, extra, 2, 0 }, { 1, extra, 2, 0 } };
	struct rewriting r = { .in = { .secs.list[DWR_LIST_RANGES] = section_of(&b),
				       .cu = cu,
				       .n_cus = 2,
				       .use = use,
				       .n_uses = 6,
				       .add = add,
				       .n_add = 2 } };
	run(&r);
	check_use(&r, &use[0],
		  WANT({ 1, 1 }, { 0x1030, 0x1050 }, { 0x10f0, 0x10f5 }, { 0x1000, 0x1010 }), NULL);
	check_use(&r, &use[1], WANT({ 0x1030, 0x1038 }, { 0x1040, 0x1042 }), NULL);
	check_use(&r, &use[2], WANT({ 0x1080, 0x1088 }), NULL);
	check_use(&r, &use[3], WANT({ 0x1034, 0x1034 }), NULL);
	check_list(&r.new_secs, DWR_LIST_RANGES, &r.new_cu, add[0].new_off, DWR_LIST_NONE,
		   WANT({ 0x1000, 0x1010 }, { 0x1040, 0x1042 }), NULL);
	r.new_cu = cu[1];
	r.new_cu.base = cu[1].new_base;
	/* 0x1010 is now below the unit's base; and the pair (0, 0) would end the list. */
	check_use(&r, &use[4], WANT({ 0x1030, 0x1034 }, { 0x1010, 0x1011 }), NULL);
	check_use(&r, &use[5], WANT({ 0x1034, 0x1038 }), NULL);
	check_list(&r.new_secs, DWR_LIST_RANGES, &r.new_cu, add[1].new_off, DWR_LIST_NONE,
		   WANT({ 0x1000, 0x1010 }, { 0x1040, 0x1042 }), NULL);
	assert_int_equal(r.out.n_taken, 1);
	assert_true(r.out.taken[0].use == 2 && r.out.taken[0].unit == E &&
		    r.out.taken[0].start == 0x10);
	end_run(&r);
	elfrw_wbuf_free(&b.w);
}

/* Long: the lists and what must become of each stand in one place. */
static void test_offset_tables(void **state)
{
	(void)state;
	struct build b = { 0 };
	uint64_t base[3], off[4];
	/* Two contributions, the second in 64-bit DWARF with three lists of which one is used; and
	 * one that no unit uses. */
	base[0] = open_contrib(&b, 4, 8, 1);
	off[0] = b.w.len;
	U8(&b, DW_RLE_start_length), ADDR(&b, 0x1060), LEB(&b, 4), U8(&b, 0);
	close_contrib(&b);
	elfrw_put32(b.w.data + base[0], (uint32_t)(off[0] - base[0]));
	base[1] = open_contrib(&b, 8, 8, 3);
	for (int i = 0; i < 3; i++) {
		off[1 + i] = b.w.len;
		U8(&b, DW_RLE_offset_pair), LEB(&b, 0x60 + i, 0x68), U8(&b, 0);
	}
	b.w.data[off[3]] = 0x33; /* unreadable, and unused */
	close_contrib(&b);
	for (int i = 0; i < 3; i++)
		elfrw_put64(b.w.data + base[1] + 8 * i, off[1 + i] - base[1]);
	base[2] = open_contrib(&b, 4, 8, 1);
	U8(&b, 0);
	close_contrib(&b);
	struct dwr_list_cu cu[2] = { make_cu(5, 0x1000, 0x1000), make_cu(5, 0x1000, 0x1000) };
	cu[0].rnglists_base = base[0];
	cu[1].rnglists_base = base[1];
	cu[1].params.offset_size = 8;
	struct dwr_list_use use[2] = { make_use(DWR_LIST_RNGLISTS, SCOPE, off[0], C),
				       make_use(DWR_LIST_RNGLISTS, SCOPE, off[1], C) };
	use[0].indexed = use[1].indexed = true;
	use[1].cu = 1;
	struct dwr_list_range range = { 0x1000, 0x1010 };
	struct dwr_list_new add = { 0, &range, 1, 0 };
	struct rewriting r = { .in = { .secs.list[DWR_LIST_RNGLISTS] = section_of(&b),
				       .cu = cu,
				       .n_cus = 2,
				       .use = use,
				       .n_uses = 2,
				       .add = &add,
				       .n_add = 1 } };
	run(&r);
	struct dwr_list_contribs contribs = { 0 };
	assert_null(dwr_list_contribs_read(&r.new_secs.list[DWR_LIST_RNGLISTS], &contribs));
	assert_int_equal(contribs.len, 4); /* and one for what was added */
	for (unsigned i = 0; i < 3; i++)
		assert_int_equal(dwr_rw_lists_base(&r.out, DWR_LIST_RNGLISTS, base[i]),
				 contribs.data[i].base);
	assert_int_equal(dwr_rw_lists_base(&r.out, DWR_LIST_RNGLISTS, 1), DWR_LIST_NONE);
	assert_int_equal(dwr_rw_lists_base(&r.out, DWR_LIST_LOCLISTS, 1), 1);
	uint64_t at;
	assert_null(dwr_list_index(&r.new_secs, DWR_LIST_RNGLISTS, &r.new_cu, 0, &at));
	assert_int_equal(at, use[0].new_off);
	check_use(&r, &use[0], WANT({ 0x1030, 0x1034 }), NULL);
	check_list(&r.new_secs, DWR_LIST_RNGLISTS, &r.new_cu, add.new_off, DWR_LIST_NONE,
		   WANT({ 0x1000, 0x1010 }), NULL);
	assert_ptr_equal(dwr_list_contrib_find(&contribs, add.new_off), &contribs.data[3]);
	r.new_cu = cu[1];
	r.new_cu.rnglists_base = contribs.data[1].base;
	for (unsigned i = 0; i < 3; i++) {
		assert_null(dwr_list_index(&r.new_secs, DWR_LIST_RNGLISTS, &r.new_cu, i, &at));
		if (i < 2)
			check_list(&r.new_secs, DWR_LIST_RNGLISTS, &r.new_cu, at, DWR_LIST_NONE,
				   WANT({ 0x1030 + i, 0x1038 }), NULL);
		else
			check_list(&r.new_secs, DWR_LIST_RNGLISTS, &r.new_cu, at, DWR_LIST_NONE,
				   EMPTY, NULL);
	}
	dwr_list_contribs_deinit(&contribs);
	end_run(&r);

	use[1].index = 3;
	struct elfrw_addrmap map = make_map();
	r.in.map = &map;
	fails(dwr_rw_lists(&r.in, &r.out));
	use[1].index = 0;
	use[0].off = base[0] - 2; /* in a header */
	fails(dwr_rw_lists(&r.in, &r.out));
	use[0].off = b.w.len;
	fails(dwr_rw_lists(&r.in, &r.out));
	elfrw_addrmap_deinit(&map);
	elfrw_wbuf_free(&b.w);
}

static void test_only_added(void **state)
{
	(void)state;
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct dwr_list_range range[] = { { 0x1000, 0x1010 }, { 0x1030, 0x1050 } };
	struct dwr_list_new add = { 0, range, 2, 0 };
	struct rewriting r = { .in = { .secs.list[DWR_LIST_RNGLISTS].name = ".debug_rnglists",
				       .cu = &cu,
				       .n_cus = 1,
				       .add = &add,
				       .n_add = 1 } };
	run(&r);
	check_list(&r.new_secs, DWR_LIST_RNGLISTS, &r.new_cu, add.new_off, DWR_LIST_NONE,
		   WANT({ 0x1000, 0x1010 }, { 0x1030, 0x1050 }), NULL);
	assert_null(r.out.sec[DWR_LIST_RANGES].data);
	end_run(&r);
}

/* Many lists: the chunks, whatever their number of threads, give one section. */
static void test_threads(void **state)
{
	(void)state;
	enum { N = 20000 };
	struct build b = { 0 };
	struct dwr_list_use *use = calloc(N, sizeof *use);
	open_contrib(&b, 4, 8, 0);
	for (uint32_t i = 0; i < N; i++) {
		if (i % 7000 == 6999) {
			close_contrib(&b);
			open_contrib(&b, i % 2 ? 8 : 4, 8, 0);
		}
		use[N - 1 - i] = make_use(DWR_LIST_RNGLISTS, i % 3 ? SCOPE : DWR_FOR_FUNCTION,
					  b.w.len, ELFRW_NO_UNIT);
		U8(&b, DW_RLE_offset_pair), LEB(&b, i % 0x80, i % 0x80 + 0x60);
		U8(&b, DW_RLE_offset_pair), LEB(&b, i % 0x90, i % 0x90 + 4), U8(&b, 0);
	}
	close_contrib(&b);
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct rewriting r = rewriting_of(DWR_LIST_RNGLISTS, &b, &cu, use, N);
	run(&r);
	struct dwr_rw_lists_out first = r.out;
	elfrw_addrmap_deinit(&r.map);
	for (uint32_t i = 1; i < first.n_taken; i++)
		assert_true(first.taken[i - 1].use <= first.taken[i].use);
	r.in.threads = 5;
	run(&r);
	assert_int_equal(first.sec[DWR_LIST_RNGLISTS].size, r.out.sec[DWR_LIST_RNGLISTS].size);
	assert_memory_equal(first.sec[DWR_LIST_RNGLISTS].data, r.out.sec[DWR_LIST_RNGLISTS].data,
			    first.sec[DWR_LIST_RNGLISTS].size);
	assert_int_equal(first.n_taken, r.out.n_taken);
	assert_memory_equal(first.taken, r.out.taken, first.n_taken * sizeof *first.taken);
	dwr_rw_lists_deinit(&first);
	end_run(&r);
	free(use);
	elfrw_wbuf_free(&b.w);
}

enum order { SORTED, BACKWARD, NEARLY, MIXED, ORDERS };

/* The place among N uses of the use of list I. */
static uint32_t place(enum order order, uint32_t i, uint32_t n)
{
	const uint32_t some = 300; /* no part of a slice */
	switch (order) {
	case BACKWARD: return n - 1 - i;
	case NEARLY: return i / some % 2 ? i - some : i + some < n ? i + some : i;
	case MIXED: return (uint32_t)((uint64_t)i * 7919 % n);
	default: return i;
	}
}

/* Whatever the order of the uses, the lists keep theirs. */
static void test_order(void **state)
{
	(void)state;
	enum { N = 49800 };
	struct build b = { 0 };
	struct dwr_list_use *use = calloc(N, sizeof *use);
	uint64_t *off = calloc(N, sizeof *off);
	open_contrib(&b, 4, 8, 0);
	for (uint32_t i = 0; i < N; i++) {
		off[i] = b.w.len;
		U8(&b, DW_RLE_offset_pair), LEB(&b, i % 0x80, i % 0x80 + 0x60), U8(&b, 0);
	}
	close_contrib(&b);
	struct dwr_list_cu cu = make_cu(5, 0x1000, 0x1000);
	struct dwr_rw_lists_out first;
	for (enum order order = SORTED; order < ORDERS; order++) {
		for (uint32_t i = 0; i < N; i++)
			use[place(order, i, N)] =
				make_use(DWR_LIST_RNGLISTS, SCOPE, off[i], ELFRW_NO_UNIT);
		struct rewriting r = rewriting_of(DWR_LIST_RNGLISTS, &b, &cu, use, N);
		run(&r);
		if (order == SORTED) {
			first = r.out;
			elfrw_addrmap_deinit(&r.map);
			continue;
		}
		assert_int_equal(first.sec[DWR_LIST_RNGLISTS].size,
				 r.out.sec[DWR_LIST_RNGLISTS].size);
		assert_memory_equal(first.sec[DWR_LIST_RNGLISTS].data,
				    r.out.sec[DWR_LIST_RNGLISTS].data,
				    first.sec[DWR_LIST_RNGLISTS].size);
		end_run(&r);
	}
	dwr_rw_lists_deinit(&first);
	free(off);
	free(use);
	elfrw_wbuf_free(&b.w);
}

/* Overlapping lists, each long: refused before they fill the memory. */
static void test_overlap(void **state)
{
	(void)state;
	enum { N = 50000 };
	struct build b = { 0 };
	struct dwr_list_use *use = calloc(N, sizeof *use);
	for (uint32_t i = 0; i < N; i++) {
		use[i] = make_use(DWR_LIST_RANGES, SCOPE, b.w.len, ELFRW_NO_UNIT);
		ADDR(&b, 0x1000 + i % 2, 0x1010);
	}
	ADDR(&b, 0, 0);
	struct dwr_list_cu cu = make_cu(4, 0, 0);
	struct elfrw_addrmap map = make_map();
	struct dwr_rw_lists_in in = { .map = &map,
				      .threads = 2,
				      .secs.list[DWR_LIST_RANGES] = section_of(&b),
				      .cu = &cu,
				      .n_cus = 1,
				      .use = use,
				      .n_uses = N };
	struct dwr_rw_lists_out out;
	fails(dwr_rw_lists(&in, &out));
	free(use);
	elfrw_wbuf_free(&b.w);
	elfrw_addrmap_deinit(&map);
}

/* Whatever the bytes: an error or a result, and nothing outside of them is touched. */
static void test_noise(void **state)
{
	(void)state;
	struct elfrw_addrmap map = make_map();
	uint64_t seed = 1;
	for (int round = 0; round < 30000; round++) {
		uint8_t bytes[96], addr[40];
		struct build b = { 0 };
		for (size_t i = 0; i < sizeof bytes; i++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			bytes[i] = (uint8_t)(seed >> 33) % (seed >> 60 ? 12 : 255);
		}
		memset(addr, 0x10, sizeof addr);
		unsigned kind = (unsigned)round % DWR_LIST_KINDS;
		uint64_t base = DWR_LIST_NONE;
		if (dwr_list_is_v5(kind))
			base = open_contrib(&b, 4, 8, 2);
		uint64_t at = b.w.len;
		elfrw_wbuf_bytes(&b.w, bytes, sizeof bytes);
		if (dwr_list_is_v5(kind)) {
			close_contrib(&b);
			elfrw_put32(b.w.data + base, bytes[1]);
		}
		struct dwr_list_cu cu =
			make_cu(dwr_list_is_v5(kind) ? 5 : 4, 0x1000, 0x1010 + (seed >> 58));
		cu.addr_base = seed >> 61;
		cu.rnglists_base = cu.loclists_base = base;
		struct dwr_list_use use[3];
		for (unsigned i = 0; i < 3; i++)
			use[i] = make_use(kind, kind >= DWR_LIST_LOC ? LOCATION : DWR_FOR_FUNCTION,
					  at + i * 3, i);
		use[1].views = kind >= DWR_LIST_LOC ? at + 1 : DWR_LIST_NONE;
		struct dwr_addr_table table;
		assert_null(dwr_addr_table_init(&table, addr, sizeof addr));
		struct dwr_rw_lists_in in = { .map = &map,
					      .policy = (enum dwr_policy)(round % 3),
					      .threads = 1,
					      .secs.addr = { ".addr", addr, sizeof addr },
					      .cu = &cu,
					      .n_cus = 1,
					      .use = use,
					      .n_uses = 3,
					      .addr = &table };
		struct dwr_rw_lists_out out;
		in.secs.list[kind] = section_of(&b);
		struct elfrw_err *err = dwr_rw_lists(&in, &out);
		if (err)
			elfrw_err_free(err);
		else
			dwr_rw_lists_deinit(&out);
		dwr_addr_table_deinit(&table);
		elfrw_wbuf_free(&b.w);
	}
	elfrw_addrmap_deinit(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rnglists),   cmocka_unit_test(test_tail_is_shared),
		cmocka_unit_test(test_old_ranges), cmocka_unit_test(test_offset_tables),
		cmocka_unit_test(test_only_added), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_overlap),    cmocka_unit_test(test_noise),
		cmocka_unit_test(test_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
