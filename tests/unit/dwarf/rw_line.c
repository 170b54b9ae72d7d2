/* rw_line.c: line tables assembled by hand and rewritten through small address maps. */
#include "dwarf/rewrite/line/line.h"
#include "elfrw/addrmap.h"
#include "tests/unit/make/line.h"

struct world {
	struct elfrw_addrmap map;
	struct elfrw_wbuf in;
	struct dwr_rw_line_cu cu[4];
	size_t n_cus;
	enum dwr_policy policy;
	unsigned threads;
	struct dwr_rw_line_out out;
};

/* One section [0x1000, 0x9000).  UNIT: old, old_end, body, entry, kept, thunk size, flags. */
static void world_init(struct world *wo, const struct elfrw_addrmap_unit *unit, uint32_t n)
{
	*wo = (struct world){ .threads = 1 };
	wo->map.unit = malloc((n + 1) * sizeof *unit);
	if (n)
		memcpy(wo->map.unit, unit, n * sizeof *unit);
	wo->map.n_units = n;
	wo->map.section = malloc(sizeof *wo->map.section);
	wo->map.section[0] = (struct elfrw_addrmap_section){ 0x1000, 0x9000, 0x1000, 0x8000, 1 };
	wo->map.n_sections = 1;
	be_ok(elfrw_addrmap_finish(&wo->map));
}

static struct elfrw_err *world_run(struct world *wo)
{
	struct dwr_rw_line_in in = { .map = &wo->map,
				     .policy = wo->policy,
				     .threads = wo->threads,
				     .address_size = 8,
				     .name = ".debug_line",
				     .line = { wo->in.data, wo->in.len },
				     .cu = wo->cu,
				     .n_cus = wo->n_cus };
	assert_false(wo->in.bad);
	return dwr_rw_line(&in, &wo->out);
}

static void world_deinit(struct world *wo)
{
	dwr_rw_line_out_deinit(&wo->out);
	elfrw_addrmap_deinit(&wo->map);
	elfrw_wbuf_free(&wo->in);
}

static struct dwr_rows out_rows(const struct world *wo, uint64_t off)
{
	return rows_of((struct dwr_bytes){ wo->out.data, wo->out.size }, off);
}

#define UNIT(o, e, b)                                         \
	{                                                     \
		.old = o, .old_end = e, .body = b, .entry = b \
	}

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
		elfrw_wbuf_bytes(&wo.in, "\0\3\x80xy", 5); /* stays where it is */
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
		struct unit_at u = begin(&wo.in, shapes[i]), u2;
		set_address(&wo.in, 0x1000);
		row(&wo.in, 0, 1);  /* 1000: 2, padding, but reaches over the first unit's start */
		row(&wo.in, 12, 1); /* 100c: 3 */
		row(&wo.in, 4, 1);  /* 1010: 4, at the end of the first unit: stays with it */
		row(&wo.in, 4, 1);  /* 1014: 5, padding */
		row(&wo.in, 12, 1); /* 1020: 6 */
		row(&wo.in, 0, 1);  /* 1020: 7, view 1 */
		elfrw_wbuf_bytes(&wo.in, "\5\x09\0\2\4\3", 6);
		row(&wo.in, 4, -1); /* 1024: 6, column 9, discriminator 3 */
		row(&wo.in, 12, 2); /* 1030: 8 */
		elfrw_wbuf_u8(&wo.in, 6);
		row(&wo.in, 8, 2); /* 1038: 10, not stmt, reaches over the fourth */
		advance_pc(&wo.in, 0x20);
		end_sequence(&wo.in); /* 1058: beyond the last unit */
		end(&wo.in, u);
		u2 = begin(&wo.in, shapes[i]);
		set_address(&wo.in, 0x1040);
		row(&wo.in, 0, 1);
		advance_pc(&wo.in, 4);
		end_sequence(&wo.in);
		end(&wo.in, u2);
		be_ok(world_run(&wo));
		assert_int_equal(wo.out.encoded, 1);
		assert_int_equal(wo.out.patched, 1);
		struct dwr_rows r = out_rows(&wo, 0);
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
		uint64_t second = dwr_rw_line_unit_off(&wo.out, u2.start);
		r = out_rows(&wo, second);
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

/* Sequences that cover no byte are kept, also where only an end is. */
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
	};
	const uint64_t at[] = { 0x1000, 0x1004, 0x1020, 0x1040 },
		       to[] = { 0x2000, 0x2004, 0x2000, 0x2020 };
	struct world wo;
	world_init(&wo, unit, 2);
	struct unit_at u = begin(&wo.in, v5);
	for (size_t i = 0; i < 4; i++) {
		set_address(&wo.in, at[i]);
		row(&wo.in, 0, 1);
		row(&wo.in, 0, 1);
		end_sequence(&wo.in);
	}
	end(&wo.in, u);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.patched, 4);
	assert_int_equal(wo.out.size, wo.in.len);
	struct dwr_rows r = out_rows(&wo, 0);
	assert_int_equal(r.len, 12);
	for (size_t i = 0; i < 4; i++) {
		check_row(&r, 3 * i, to[i], 2, S);
		check_row(&r, 3 * i + 2, to[i], 0, E);
	}
	free(r.data);
	world_deinit(&wo);
}

/* A kept at 0x1000; B (own rows), C (the same rows, in another table), D with a thunk, folded into
 * A. */
static const struct elfrw_addrmap_unit fold_units[] = {
	{ .old = 0x1000,
	  .old_end = 0x1010,
	  .body = 0x4000,
	  .entry = 0x4000,
	  .kept = 0,
	  .flags = ELFRW_UNIT_KEPT },
	{ .old = 0x1010,
	  .old_end = 0x1020,
	  .body = 0x4000,
	  .entry = 0x4000,
	  .kept = 0,
	  .flags = ELFRW_UNIT_FOLDED },
	{ .old = 0x1020,
	  .old_end = 0x1030,
	  .body = 0x4000,
	  .entry = 0x4000,
	  .kept = 0,
	  .flags = ELFRW_UNIT_FOLDED },
	{ .old = 0x1030,
	  .old_end = 0x1040,
	  .body = 0x4000,
	  .entry = 0x5000,
	  .kept = 0,
	  .thunk_size = 5,
	  .flags = ELFRW_UNIT_FOLDED | ELFRW_UNIT_THUNK },
	{ .old = 0x1040, .old_end = 0x1050, .body = 0x4010, .entry = 0x4010, .kept = 4 },
};

static void function(struct elfrw_wbuf *w, uint64_t va, int line, int column)
{
	set_address(w, va);
	elfrw_wbuf_u8(w, 5);
	elfrw_wbuf_uleb(w, (uint64_t)column);
	row(w, 0, line);
	elfrw_wbuf_bytes(w, "\4\2", 2);
	row(w, 4, 1);
	elfrw_wbuf_bytes(w, "\4\1\x0a\6", 4);
	row(w, 4, 1);
	advance_pc(w, 8);
	end_sequence(w);
}

static void fold_input(struct world *wo, struct shape s, struct unit_at u[3], bool one_sequence)
{
	u[0] = begin(&wo->in, s);
	if (one_sequence) { /* what a compiler without -ffunction-sections makes: no end between A,
			       B, C */
		set_address(&wo->in, 0x1000);
		row(&wo->in, 0, 9);
		row(&wo->in, 0x10, 90);
		row(&wo->in, 0x10, -90);
		row(&wo->in, 0x10, 120);
		row(&wo->in, 0x10, 1);
		advance_pc(&wo->in, 0x10);
		end_sequence(&wo->in);
	} else {
		function(&wo->in, 0x1000, 10, 3);
		function(&wo->in, 0x1010, 100, 3);
	}
	end(&wo->in, u[0]);
	u[1] = begin(&wo->in, s);
	if (!one_sequence) {
		function(&wo->in, 0x1020, 10, 3);
		function(&wo->in, 0x1030, 200, 4);
	}
	end(&wo->in, u[1]);
	u[2] = begin(&wo->in, s);
	if (!one_sequence)
		function(&wo->in, 0x1020, 10, 3); /* C once more, as linkers leave COMDATs */
	function(&wo->in, 0x1040, 10, 3);
	end(&wo->in, u[2]);
}

static void check_function(const struct dwr_rows *r, size_t *k, uint64_t va, uint32_t line,
			   uint32_t column, uint32_t a, uint32_t b)
{
	const uint32_t file[] = { a, b, a };
	for (uint32_t i = 0; i < 3; i++) {
		check_row(r, *k, va + 4 * i, line + i, i < 2 ? S : DWR_ROW_PROLOGUE_END);
		assert_int_equal(r->data[*k].column, column);
		assert_int_equal(r->data[(*k)++].file, file[i]);
	}
	check_row(r, (*k)++, va + 16, 0, DWR_ROW_END);
}

static void test_folds(void **arg)
{
	(void)arg;
	const struct shape shapes[] = { v3, v4, v5, v5_64, v3_64 };
	for (size_t i = 0; i < 5; i++) {
		struct world wo;
		struct unit_at u[3];
		const bool is5 = shapes[i].version >= 5;
		world_init(&wo, fold_units, 5);
		wo.map.trap_byte = 0x7ff0;
		wo.threads = 1 + i % 3;
		fold_input(&wo, shapes[i], u, false);
		be_ok(world_run(&wo));
		const struct dwr_rw_line_out *o = &wo.out;
		assert_int_equal(o->patched, 2);
		assert_int_equal(o->removed, 4);
		assert_int_equal(o->folded_version, is5 ? 5 : 4);
		assert_int_equal(o->folded_offset_size, shapes[i].offset_size);
		size_t k = 0;
		struct dwr_rows r = out_rows(&wo, 0);
		check_function(&r, &k, 0x4000, 11, 3, 1, 2);
		assert_int_equal(r.len, k);
		free(r.data);
		r = out_rows(&wo, dwr_rw_line_unit_off(o, u[1].start));
		check_row(&r, 0, 0x5000, 201, S); /* D's thunk */
		assert_int_equal(r.data[0].column, 4);
		check_row(&r, 1, 0x5005, 0, E);
		assert_int_equal(r.len, 2);
		free(r.data);
		r = out_rows(&wo, dwr_rw_line_unit_off(o, u[2].start));
		k = 0;
		check_function(&r, &k, 0x4010, 11, 3, 1, 2);
		assert_int_equal(r.len, k);
		free(r.data);

		const uint8_t status[] = { DWR_FOLD_NONE, DWR_FOLD_OWN, DWR_FOLD_SAME, DWR_FOLD_OWN,
					   DWR_FOLD_NONE };
		for (size_t f = 0; f < 5; f++)
			assert_int_equal(o->fold[f].status, status[f]);
		assert_int_equal(o->fold[1].line, 101);
		assert_int_equal(o->fold[2].line, 11);
		assert_int_equal(o->fold[3].line, 201);
		assert_int_equal(o->seq[0].new_off, o->seq[0].old_off);
		assert_int_equal(o->seq[1].new_off, UINT64_MAX);

		/* The artificial table. */
		uint32_t a = is5 ? 1 : 2, b = a + 1;
		struct dwr_line_header h;
		struct dwr_line_files f = { 0 };
		struct dwr_bytes sec = { o->data, o->size };
		const struct dwr_line_strings none = { 0 };
		be_ok(dwr_line_header_read("s", sec, o->folded_unit, &h));
		assert_int_equal(h.version, is5 ? 5 : 4);
		assert_int_equal(h.end, o->size);
		assert_int_equal(h.offset_size, shapes[i].offset_size);
		be_ok(dwr_line_files_read(&h, &none, UINT64_MAX, false, &f));
		assert_int_equal(f.file.len, b + 1);
		assert_string_equal(f.file.data[a - 1].name, "<folded functions>");
		assert_string_equal(f.file.data[a].name, "a.c");
		assert_string_equal(f.dir.data[f.file.data[a].dir], "/src");
		assert_string_equal(f.file.data[b].name, "b.h");
		assert_string_equal(f.dir.data[f.file.data[b].dir], "/inc");
		dwr_line_files_deinit(&f);
		r = out_rows(&wo, o->folded_unit);
		check_row(&r, 0, 0x7ff0, 1, S);
		assert_int_equal(r.data[0].file, a - 1);
		check_row(&r, 1, 0x7ff1, 0, E);
		k = 2;
		check_function(&r, &k, 0x4000, 101, 3, a, b);
		check_function(&r, &k, 0x4000, 201, 4, a, b);
		assert_int_equal(r.len, k);
		free(r.data);
		for (size_t m = 1; m <= 3; m += 2) {
			uint64_t at = o->fold[m].seq;
			r = (struct dwr_rows){ 0 };
			be_ok(dwr_line_decode(&h, &at, &r));
			assert_int_equal(r.data[0].line, o->fold[m].line);
			assert_int_equal(r.data[0].file, o->fold[m].file);
			assert_int_equal(o->fold[m].n_seqs, 1);
			free(r.data);
		}

		/* The other policies. */
		dwr_rw_line_out_deinit(&wo.out);
		wo.policy = DWR_FOLDED_DROP;
		be_ok(world_run(&wo));
		assert_int_equal(wo.out.folded_unit, 0);
		assert_int_equal(wo.out.removed, 4);
		assert_int_equal(wo.out.fold[1].status, DWR_FOLD_NONE);
		r = out_rows(&wo, dwr_rw_line_unit_off(&wo.out, u[1].start));
		assert_int_equal(r.len, 2); /* the thunk */
		free(r.data);
		dwr_rw_line_out_deinit(&wo.out);
		wo.policy = DWR_FOLDED_ALIAS;
		be_ok(world_run(&wo));
		assert_int_equal(wo.out.patched, 6);
		r = out_rows(&wo, dwr_rw_line_unit_off(&wo.out, u[1].start));
		k = 0;
		check_function(&r, &k, 0x4000, 11, 3, 1, 2);
		check_function(&r, &k, 0x4000, 201, 4, 1, 2);
		check_row(&r, k++, 0x5000, 201, S);
		check_row(&r, k++, 0x5005, 0, E);
		assert_int_equal(r.len, k);
		free(r.data);
		world_deinit(&wo);
	}
}

static void test_folds_in_one_sequence(void **arg)
{
	(void)arg;
	struct world wo;
	struct unit_at u[3];
	world_init(&wo, fold_units, 5);
	fold_input(&wo, v5, u, true);
	be_ok(world_run(&wo));
	assert_int_equal(wo.out.encoded, 1);
	size_t k = 0;
	struct dwr_rows r = out_rows(&wo, 0);
	check_row(&r, k++, 0x4000, 10, S);
	check_row(&r, k++, 0x4010, 0, E);
	check_row(&r, k++, 0x4010, 131, S);
	check_row(&r, k++, 0x4020, 0, E);
	check_row(&r, k++, 0x5000, 130, S);
	check_row(&r, k++, 0x5005, 0, E);
	assert_int_equal(r.len, k);
	free(r.data);
	assert_int_equal(wo.out.fold[1].status, DWR_FOLD_OWN);
	assert_int_equal(wo.out.fold[2].status, DWR_FOLD_SAME);
	assert_int_equal(wo.out.fold[3].status, DWR_FOLD_OWN);
	r = out_rows(&wo, wo.out.folded_unit);
	k = 0;
	check_row(&r, k++, 0x4000, 100, S);
	check_row(&r, k++, 0x4010, 0, E);
	check_row(&r, k++, 0x4000, 130, S);
	check_row(&r, k++, 0x4010, 0, E);
	assert_int_equal(r.len, k);
	free(r.data);
	world_deinit(&wo);
}

/* A relative directory before DWARF 5 is relative to the unit's. */
static void test_comp_dir(void **arg)
{
	(void)arg;
	struct world wo;
	world_init(&wo, fold_units, 5);
	struct unit_at u = begin(&wo.in, v4);
	wo.in.len -= 26;
	elfrw_wbuf_bytes(&wo.in, "sub\0\0a.c\0\1\0\0b.h\0\0\0\0", 5 + 7 + 7 + 1);
	elfrw_put_le(wo.in.data + u.header_pos, wo.in.len - u.header_pos - 4, 4);
	function(&wo.in, 0x1010, 100, 3);
	end(&wo.in, u);
	wo.cu[0] = (struct dwr_rw_line_cu){ 77, "/wrong", UINT64_MAX };
	wo.cu[1] = (struct dwr_rw_line_cu){ 0, NULL, UINT64_MAX };
	wo.cu[2] = (struct dwr_rw_line_cu){ 0, "/build", UINT64_MAX };
	wo.n_cus = 3;
	be_ok(world_run(&wo));
	struct dwr_line_header h;
	struct dwr_line_files f = { 0 };
	const struct dwr_line_strings none = { 0 };
	be_ok(dwr_line_header_read("s", (struct dwr_bytes){ wo.out.data, wo.out.size },
				   wo.out.folded_unit, &h));
	be_ok(dwr_line_files_read(&h, &none, UINT64_MAX, false, &f));
	assert_string_equal(f.dir.data[f.file.data[2].dir], "/build/sub");
	assert_string_equal(f.dir.data[f.file.data[3].dir], "/build");
	dwr_line_files_deinit(&f);
	world_deinit(&wo);
}

/* MD5 sums are kept when all files have one. */
static void test_md5(void **arg)
{
	(void)arg;
	for (int conflict = 0; conflict < 2; conflict++) {
		struct world wo;
		world_init(&wo, fold_units, 5);
		for (int n = 0; n < 2; n++) {
			struct unit_at u = begin(&wo.in, v5);
			wo.in.len -= 6 + 3 * 5;
			elfrw_wbuf_bytes(&wo.in, "\3\1\x08\2\x0b\5\x1e\3", 8);
			const char *file[] = { "a.c", "a.c", "b.h" };
			for (int k = 0; k < 3; k++) {
				elfrw_wbuf_cstr(&wo.in, file[k]);
				elfrw_wbuf_u8(&wo.in, 0);
				elfrw_wbuf_bytes(&wo.in,
						 k < 2           ? "0123456789abcdef"
						 : n && conflict ? "AAAAAAAAAAAAAAAA"
								 : "fedcba9876543210",
						 16);
			}
			elfrw_put_le(wo.in.data + u.header_pos, wo.in.len - u.header_pos - 4, 4);
			function(&wo.in, n ? 0x1030 : 0x1010, 100, 3);
			end(&wo.in, u);
		}
		be_ok(world_run(&wo));
		struct dwr_line_header h;
		struct dwr_line_files f = { 0 };
		const struct dwr_line_strings none = { 0 };
		be_ok(dwr_line_header_read("s", (struct dwr_bytes){ wo.out.data, wo.out.size },
					   wo.out.folded_unit, &h));
		be_ok(dwr_line_files_read(&h, &none, UINT64_MAX, false, &f));
		assert_int_equal(f.file.len, 3);
		assert_int_equal(f.file.data[1].md5 != NULL, !conflict);
		if (!conflict)
			assert_memory_equal(f.file.data[1].md5, "0123456789abcdef", 16);
		dwr_line_files_deinit(&f);
		world_deinit(&wo);
	}
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
		elfrw_wbuf_bytes(&wo.in, "\0\0\0\0\0", i); /* in the unit */
		end(&wo.in, u[i]);
		elfrw_wbuf_bytes(&wo.in, "\0\0\0\0\0\0\0\0", i == 0 ? 8 : 5); /* and behind it */
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
	/* The unit of version 5 says its file at the start of both sequences. */
	assert_int_equal(wo.out.size - wo.in.len,
			 3 * (wo.out.unit[1].new_off - wo.out.unit[1].old_off) + 2 * 2);
	world_deinit(&wo);
}

static void test_define_file(void **arg)
{
	(void)arg;
	struct world wo;
	world_init(&wo, fold_units, 5);
	struct unit_at u = begin(&wo.in, v3);
	set_address(&wo.in, 0x1010); /* B, which leaves; its file stays for A's sequence */
	elfrw_wbuf_bytes(&wo.in, "\0\x08\3c.c\0\2\0\0\4\3", 12);
	copy(&wo.in);
	advance_pc(&wo.in, 16);
	end_sequence(&wo.in);
	set_address(&wo.in, 0x1000);
	elfrw_wbuf_bytes(&wo.in, "\4\3", 2);
	row(&wo.in, 0, 1);
	advance_pc(&wo.in, 16);
	end_sequence(&wo.in);
	end(&wo.in, u);
	be_ok(world_run(&wo));
	struct dwr_line_header h;
	struct dwr_line_files f = { 0 };
	const struct dwr_line_strings none = { 0 };
	struct dwr_bytes sec = { wo.out.data, wo.out.size };
	be_ok(dwr_line_header_read("s", sec, 0, &h));
	be_ok(dwr_line_files_read(&h, &none, UINT64_MAX, true, &f));
	assert_int_equal(f.file.len, 4);
	assert_string_equal(f.file.data[3].name, "c.c");
	struct dwr_rows r = out_rows(&wo, 0);
	assert_int_equal(r.len, 2);
	assert_int_equal(r.data[0].file, 3);
	free(r.data);
	be_ok(dwr_line_header_read("s", sec, wo.out.folded_unit, &h));
	be_ok(dwr_line_files_read(&h, &none, UINT64_MAX, false, &f));
	assert_string_equal(f.file.data[wo.out.fold[1].file].name, "c.c");
	dwr_line_files_deinit(&f);
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

/* Many tables and a map of many pieces: any number of threads gives the same bytes. */
static void test_threads(void **arg)
{
	(void)arg;
	struct elfrw_addrmap_unit unit[256];
	for (uint32_t i = 0; i < 256; i++) {
		unit[i] = (struct elfrw_addrmap_unit){ .old = 0x1000 + 16 * i,
						       .old_end = 0x1010 + 16 * i,
						       .body = 0x2000 + 20 * i,
						       .kept = i };
		if (i % 5 == 4) {
			unit[i].kept = i - 4;
			unit[i].body = unit[i - 4].body;
			unit[i].flags = ELFRW_UNIT_FOLDED;
		}
		unit[i].entry = unit[i].body;
	}
	uint8_t *first = NULL;
	size_t first_size = 0;
	for (unsigned threads = 1; threads <= 4; threads++) {
		struct world wo;
		world_init(&wo, unit, 256);
		wo.threads = threads;
		for (uint32_t i = 0; i < 64; i++) {
			struct unit_at u = begin(&wo.in, i % 2 ? v5 : v3);
			for (uint32_t k = 0; k < 8; k++)
				function(&wo.in, unit[(i * 7 + k * 3) % 256].old, (int)(i + k), 1);
			set_address(&wo.in, unit[i].old);
			row(&wo.in, 0, (int)i);
			advance_pc(&wo.in, 16 * 9);
			end_sequence(&wo.in);
			end(&wo.in, u);
		}
		be_ok(world_run(&wo));
		assert_true(wo.out.folded_unit);
		if (first) {
			assert_int_equal(wo.out.size, first_size);
			assert_memory_equal(wo.out.data, first, first_size);
		} else {
			first_size = wo.out.size;
			first = wo.out.data;
			wo.out.data = NULL;
		}
		world_deinit(&wo);
	}
	free(first);
}

/* Damaged input gives an error or a result that can be read, and touches nothing outside of it. */
static void test_damaged(void **arg)
{
	(void)arg;
	uint64_t state = 12345;
	for (int round = 0; round < 6000; round++) {
		struct world wo;
		struct unit_at u[3];
		const struct shape shapes[] = { v2, v3, v4, v5, v5_64, v3_64 };
		world_init(&wo, fold_units, 5);
		wo.policy = (enum dwr_policy)(round % 3);
		fold_input(&wo, shapes[round % 5 + 1], u, round % 2);
		for (int n = 0; n < 1 + round % 4; n++) {
			state = state * 6364136223846793005 + 1442695040888963407;
			size_t at = (state >> 33) % wo.in.len;
			uint8_t v = (uint8_t)(state >> 20);
			wo.in.data[at] =
				state >> 63 ? v : wo.in.data[at] ^ (uint8_t)(1u << (v & 7));
		}
		/* Exactly as large as the bytes, for the sanitizer to see every read past the
		 * end. */
		uint8_t *exact = malloc(wo.in.len);
		memcpy(exact, wo.in.data, wo.in.len);
		elfrw_wbuf_free(&wo.in);
		struct dwr_rw_line_in in = { .map = &wo.map,
					     .policy = wo.policy,
					     .threads = 1,
					     .address_size = 8,
					     .name = ".debug_line",
					     .line = { exact, u[2].start + 60 } };
		struct elfrw_err *err = dwr_rw_line(&in, &wo.out);
		free(exact);
		elfrw_err_free(err);
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
		cmocka_unit_test(test_folds),
		cmocka_unit_test(test_folds_in_one_sequence),
		cmocka_unit_test(test_comp_dir),
		cmocka_unit_test(test_md5),
		cmocka_unit_test(test_padding_between_tables),
		cmocka_unit_test(test_define_file),
		cmocka_unit_test(test_backwards),
		cmocka_unit_test(test_no_end),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_overlap_limit),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
