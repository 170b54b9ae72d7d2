/* rw_line.c: line tables assembled by hand and rewritten through small address maps, in which units
 * move. */
#include "tests/unit/make/rw_line.h"

static void test_patched(void **arg)
{
	(void)arg;
	const struct shape shapes[] = { v2, v3, v4, v5, v5_64, v3_64 };
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1000, 0x1010, 0x1000),
						   UNIT(0x1010, 0x1020, 0x3010),
						   UNIT(0x1020, 0x1030, 0x3020) };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct world wo;
		world_init(&wo, unit, 3);
		struct unit_at u = begin(&wo.in, shapes[i]);
		set_address(&wo.in, 0x1000);
		copy(&wo.in);
		advance_pc(&wo.in, 16);
		end_sequence(&wo.in);
		size_t second = wo.in.len;
		set_address(&wo.in,
			    0x1010); /* over two units that move together, with two set_address */
		copy(&wo.in);
		elfrw_wbuf_bytes(&wo.in, "\0\3\x80xy", 5); /* a vendor's opcode, which stays */
		set_address(&wo.in, 0x1024);
		row(&wo.in, 0, 1);
		advance_pc(&wo.in, 12);
		end_sequence(&wo.in);
		end(&wo.in, u);
		be_ok(world_run(&wo));
		assert_int_equal(wo.out.size, wo.in.len);
		assert_int_equal(wo.out.patched, 2);
		assert_int_equal(wo.out.folded_unit, 0);
		struct dwr_rows r = out_rows(&wo, 0);
		check_row(&r, 0, 0x1000, 1, S);
		check_row(&r, 1, 0x1010, 0, E);
		check_row(&r, 2, 0x3010, 1, S);
		check_row(&r, 3, 0x3024, 2, S);
		check_row(&r, 4, 0x3030, 0, E);
		assert_int_equal(r.len, 5);
		assert_int_equal(dwr_rw_line_seq_off(&wo.out, second), second);
		assert_int_equal(dwr_rw_line_seq_off(&wo.out, second + 1), UINT64_MAX);
		assert_int_equal(dwr_rw_line_unit_off(&wo.out, 0), 0);
		free(r.data);
		world_deinit(&wo);
	}
}

/* Returns where the second of the two tables begins. */
static uint64_t split_input(struct world *wo, struct shape shape)
{
	struct unit_at u = begin(&wo->in, shape), u2;
	set_address(&wo->in, 0x1000);
	row(&wo->in, 0, 1);  /* 1000: 2, padding, but reaches over the first unit's start */
	row(&wo->in, 12, 1); /* 100c: 3 */
	row(&wo->in, 4, 1);  /* 1010: 4, at the end of the first unit: stays with it */
	row(&wo->in, 4, 1);  /* 1014: 5, padding */
	row(&wo->in, 12, 1); /* 1020: 6 */
	row(&wo->in, 0, 1);  /* 1020: 7, view 1 */
	elfrw_wbuf_bytes(&wo->in, "\5\x09\0\2\4\3", 6);
	row(&wo->in, 4, -1); /* 1024: 6, column 9, discriminator 3 */
	row(&wo->in, 12, 2); /* 1030: 8 */
	elfrw_wbuf_u8(&wo->in, 6);
	row(&wo->in, 8, 2); /* 1038: 10, not stmt, reaches over the fourth */
	advance_pc(&wo->in, 0x20);
	end_sequence(&wo->in); /* 1058: beyond the last unit */
	end(&wo->in, u);
	u2 = begin(&wo->in, shape);
	set_address(&wo->in, 0x1040);
	row(&wo->in, 0, 1);
	advance_pc(&wo->in, 4);
	end_sequence(&wo->in);
	end(&wo->in, u2);
	return u2.start;
}

static void check_split(const struct world *wo)
{
	struct dwr_rows r = out_rows(wo, 0);
	size_t k = 0;
	check_row(&r, k++, 0x2000, 2, S);
	check_row(&r, k++, 0x2004, 3, S);
	check_row(&r, k++, 0x2008, 4, S);
	check_row(&r, k++, 0x2008, 0, E);
	check_row(&r, k++, 0x2010, 6, S);
	check_row(&r, k++, 0x2010, 7, S);
	check_row(&r, k, 0x2014, 6, S);
	assert_int_equal(r.data[k].column, 9);
	assert_int_equal(r.data[k++].discriminator, 3);
	check_row(&r, k++, 0x2020, 0, E);
	check_row(&r, k, 0x3000, 8, S);
	assert_int_equal(r.data[k++].discriminator, 0);
	check_row(&r, k++, 0x3008, 10, 0);
	check_row(&r, k++, 0x3010, 0, DWR_ROW_END);
	check_row(&r, k++, 0x2030, 10, 0);
	check_row(&r, k++, 0x2040, 0, DWR_ROW_END);
	assert_int_equal(r.len, k);
	free(r.data);
}

static void test_split(void **arg)
{
	(void)arg;
	const struct shape shapes[] = { v2, v3, v4, v5, v5_64, v3_64 };
	/* A row before the first unit; padding after the first; the fourth without a row of its
	 * own. */
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1008, 0x1010, 0x2000),
						   UNIT(0x1020, 0x1030, 0x2010),
						   UNIT(0x1030, 0x1040, 0x3000),
						   UNIT(0x1040, 0x1050, 0x2030) };
	for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
		struct world wo;
		world_init(&wo, unit, 4);
		uint64_t second_in = split_input(&wo, shapes[i]);
		be_ok(world_run(&wo));
		assert_int_equal(wo.out.encoded, 1);
		assert_int_equal(wo.out.patched, 1);
		check_split(&wo);
		uint64_t second = dwr_rw_line_unit_off(&wo.out, second_in);
		struct dwr_rows r = out_rows(&wo, second);
		check_row(&r, 0, 0x2030, 2, S);
		check_row(&r, 1, 0x2034, 0, E);
		free(r.data);
		assert_int_equal(wo.out.n_seqs, 2);
		assert_int_equal(dwr_rw_line_seq_off(&wo.out, wo.out.seq[0].old_off),
				 wo.out.seq[0].old_off);
		assert_true(wo.out.seq[1].new_off > second);
		world_deinit(&wo);
	}
}

/* How an address was reached counts for GNU view numbers. */
static void test_views(void **arg)
{
	(void)arg;
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1000, 0x1020, 0x2000),
						   UNIT(0x1020, 0x1030, 0x3000) };
	struct world wo;
	world_init(&wo, unit, 2);
	struct unit_at u = begin(&wo.in, v5);
	set_address(&wo.in, 0x1000);
	row(&wo.in, 0, 1);
	row(&wo.in, 0, 1);
	set_address(&wo.in, 0x1000); /* a new count at the same address */
	row(&wo.in, 0, 1);
	elfrw_wbuf_bytes(&wo.in, "\x09\4\0", 3); /* goes on counting at another address */
	row(&wo.in, 0, 1);
	row(&wo.in, 4, 1);
	row(&wo.in, 24, 1);
	advance_pc(&wo.in, 16);
	end_sequence(&wo.in);
	end(&wo.in, u);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.encoded, 1);
	struct dwr_rows r = out_rows(&wo, 0);
	assert_int_equal(r.len, 8);
	const uint64_t address[] = {
		0x2000, 0x2000, 0x2000, 0x2004, 0x2008, 0x2020, 0x3000, 0x3010
	};
	const unsigned via[] = { DWR_ROW_VIA_SET, 0, DWR_ROW_VIA_SET, DWR_ROW_VIA_FIXED, 0, 0,
				 DWR_ROW_VIA_SET, 0 };
	for (size_t i = 0; i < 8; i++) {
		assert_int_equal(r.data[i].address, address[i]);
		assert_int_equal(r.data[i].flags & (DWR_ROW_VIA_SET | DWR_ROW_VIA_FIXED), via[i]);
	}
	free(r.data);
	world_deinit(&wo);
}

static void test_left_alone(void **arg)
{
	(void)arg;
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1000, 0x1020, 0x2000) };
	const uint64_t start[] = { 0, 1, UINT64_MAX, UINT64_MAX - 1, 0x20000, 0xfff };
	struct world wo;
	world_init(&wo, unit, 1);
	struct unit_at u = begin(&wo.in, v4);
	for (size_t i = 0; i < sizeof start / sizeof *start; i++) {
		set_address(&wo.in, start[i]);
		row(&wo.in, 0, 1);
		row(&wo.in, 12, 1);
		advance_pc(&wo.in, 0x1000); /* reaches into the code */
		row(&wo.in, 0, 1);
		end_sequence(&wo.in);
	}
	end_sequence(&wo.in); /* a sequence without rows */
	end(&wo.in, u);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.untouched, 7);
	assert_int_equal(wo.out.size, wo.in.len);
	assert_memory_equal(wo.out.data, wo.in.data, wo.in.len);
	world_deinit(&wo);

	/* A map without units: everything stays. */
	world_init(&wo, NULL, 0);
	u = begin(&wo.in, v5);
	set_address(&wo.in, 0x1000);
	row(&wo.in, 0, 1);
	advance_pc(&wo.in, 0x1000);
	end_sequence(&wo.in);
	end(&wo.in, u);
	be_ok(world_run(&wo));
	assert_memory_equal(wo.out.data, wo.in.data, wo.in.len);
	world_deinit(&wo);

	/* No table at all. */
	world_init(&wo, unit, 1);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.size, 0);
	world_deinit(&wo);
}

/* Sequences that cover no byte are kept with kept code, also where only an end is; with folded code
 * they would stand among the rows of the function that is left. */
static void test_empty_sequences(void **arg)
{
	(void)arg;
	const struct elfrw_addrmap_unit unit[] = {
		UNIT(0x1000, 0x1020, 0x2000),
		{ .old = 0x1020,
		  .old_end = 0x1040,
		  .body = 0x2000,
		  .entry = 0x2000,
		  .kept = 0,
		  .flags = ELFRW_UNIT_FOLDED },
		UNIT(0x1040, 0x1060, 0x2020),
	};
	const uint64_t at[] = { 0x1000, 0x1004, 0x1060, 0x1020, 0x1030 },
		       to[] = { 0x2000, 0x2004, 0x2040 };
	struct world wo;
	world_init(&wo, unit, 3);
	struct unit_at u = begin(&wo.in, v5);
	for (size_t i = 0; i < 5; i++) {
		set_address(&wo.in, at[i]);
		row(&wo.in, 0, 1);
		row(&wo.in, 0, 1);
		end_sequence(&wo.in);
	}
	set_address(&wo.in, 0x1024); /* clang's outliner writes only an end */
	end_sequence(&wo.in);
	set_address(&wo.in, 0x1044);
	end_sequence(&wo.in);
	end(&wo.in, u);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.patched, 4);
	assert_int_equal(wo.out.removed, 3);
	struct dwr_rows r = out_rows(&wo, 0);
	assert_int_equal(r.len, 10);
	assert_int_equal(r.data[9].address, 0x2024);
	for (size_t i = 0; i < 3; i++) {
		check_row(&r, 3 * i, to[i], 2, S);
		check_row(&r, 3 * i + 2, to[i], 0, E);
	}
	free(r.data);
	world_deinit(&wo);
}

static void test_padding_between_tables(void **arg)
{
	(void)arg;
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1000, 0x1020, 0x2000),
						   UNIT(0x1020, 0x1040, 0x3000) };
	struct world wo;
	world_init(&wo, unit, 2);
	elfrw_wbuf_u32(&wo.in, 0);
	struct unit_at u[3];
	for (int i = 0; i < 3; i++) {
		u[i] = begin(&wo.in, i == 1 ? v5_64 : v4);
		set_address(&wo.in, 0x1000);
		copy(&wo.in);
		advance_pc(&wo.in, 0x40);
		end_sequence(&wo.in);
		elfrw_wbuf_bytes(&wo.in, "\0\0\0\0\0", i); /* zeros in the unit */
		end(&wo.in, u[i]);
		elfrw_wbuf_bytes(&wo.in, "\0\0\0\0\0\0\0\0",
				 i == 0 ? 8 : 5); /* zeros behind the unit */
	}
	wo.cu[0] = (struct dwr_rw_line_cu){ u[2].start, NULL, UINT64_MAX };
	wo.cu[1] = (struct dwr_rw_line_cu){ u[0].start, NULL, UINT64_MAX };
	wo.n_cus = 2;
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.n_units, 3);
	assert_int_equal(wo.out.encoded, 3);
	for (int i = 0; i < 3; i++) {
		uint64_t off = dwr_rw_line_unit_off(&wo.out, u[i].start);
		assert_true(off != UINT64_MAX);
		struct dwr_rows r = out_rows(&wo, off);
		assert_true(r.len >= 4);
		check_row(&r, 0, 0x2000, 1, S);
		check_row(&r, 1, 0x2020, 0, E);
		check_row(&r, 2, 0x3000, 1, S);
		check_row(&r, 3, 0x3020, 0, E);
		free(r.data);
	}
	/* The table of version 5 sets the file at the start of both sequences. */
	assert_int_equal(wo.out.size - wo.in.len,
			 3 * (wo.out.unit[1].new_off - wo.out.unit[1].old_off) + 2 * 2);
	world_deinit(&wo);
}

/* Addresses that go back: in one unit only set_address changes; over several, the rows are put in
 * order. */
static void test_backwards(void **arg)
{
	(void)arg;
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1000, 0x1020, 0x2000),
						   UNIT(0x1020, 0x1040, 0x3000) };
	struct world wo;
	world_init(&wo, unit, 2);
	struct unit_at u = begin(&wo.in, v4);
	set_address(&wo.in, 0x1010);
	row(&wo.in, 0, 1);
	set_address(&wo.in, 0x1004);
	row(&wo.in, 0, 1);
	advance_pc(&wo.in, 8);
	end_sequence(&wo.in);
	set_address(&wo.in, 0x1024);
	row(&wo.in, 0, 1); /* 1024: 2 */
	set_address(&wo.in, 0x1010);
	row(&wo.in, 0, 1); /* 1010: 3 */
	advance_pc(&wo.in, 8);
	row(&wo.in, 0, 1); /* 1018: 4 */
	end_sequence(&wo.in);
	end(&wo.in, u);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.patched, 1);
	struct dwr_rows r = out_rows(&wo, 0);
	size_t k = 0;
	check_row(&r, k++, 0x2010, 2, S);
	check_row(&r, k++, 0x2004, 3, S);
	check_row(&r, k++, 0x200c, 0, E);
	check_row(&r, k++, 0x2010, 3, S);
	check_row(&r, k++, 0x2018, 4, S);
	check_row(&r, k++, 0x2020, 0, E);
	check_row(&r, k++, 0x3000, 4, S);
	check_row(&r, k++, 0x3004, 2, S);
	check_row(&r, k++, 0x3004, 0, E);
	assert_int_equal(r.len, k);
	free(r.data);
	world_deinit(&wo);
}

static void test_no_end(void **arg)
{
	(void)arg;
	const struct elfrw_addrmap_unit unit[] = { UNIT(0x1000, 0x1020, 0x2000),
						   UNIT(0x1020, 0x1040, 0x3000) };
	for (unsigned step = 4; step <= 0x24; step += 0x20) {
		struct world wo;
		world_init(&wo, unit, 2);
		struct unit_at u = begin(&wo.in, v4);
		set_address(&wo.in, 0x1000);
		copy(&wo.in);
		row(&wo.in, step, 1);
		end(&wo.in, u);
		if (step == 4) {
			be_ok(world_run(&wo));
			struct dwr_rows r = out_rows(&wo, 0);
			check_row(&r, 1, 0x2004, 2, S);
			free(r.data);
		} else
			be_fails(world_run(&wo), "has no end");
		world_deinit(&wo);
	}
}

/* Sequences that all reach over all functions would make the output quadratic. */
static void test_overlap_limit(void **arg)
{
	(void)arg;
	enum { UNITS = 2000, SEQS = 4000 };
	struct elfrw_addrmap_unit *unit = malloc(UNITS * sizeof *unit);
	for (uint32_t i = 0; i < UNITS; i++)
		unit[i] = (struct elfrw_addrmap_unit)UNIT(0x1000 + 8 * (uint64_t)i,
							  0x1008 + 8 * (uint64_t)i,
							  0x10000 + 12 * (uint64_t)i);
	struct world wo;
	world_init(&wo, unit, UNITS);
	free(unit);
	struct unit_at u = begin(&wo.in, v4);
	for (int i = 0; i < SEQS; i++) {
		set_address(&wo.in, 0x1000);
		copy(&wo.in);
		advance_pc(&wo.in, 8 * UNITS);
		end_sequence(&wo.in);
	}
	end(&wo.in, u);
	be_fails(world_run(&wo), "overlap too often");
	world_deinit(&wo);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patched),
		cmocka_unit_test(test_split),
		cmocka_unit_test(test_views),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_empty_sequences),
		cmocka_unit_test(test_padding_between_tables),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_overlap_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
