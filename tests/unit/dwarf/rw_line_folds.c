/* rw_line_folds.c: line tables of functions that are folded; the artificial table of their rows. */
#include "tests/unit/make/rw_line.h"
#include <dwarf.h>

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
	for (unsigned i = 0; i < 3; i++)
		name_table(wo, u[i]);
}

/* Reads the file tables of the table at OFF of the output. */
static struct dwr_line_files out_files(const struct world *wo, uint64_t off, bool defined)
{
	struct dwr_line_header h;
	struct dwr_line_files f = { 0 };
	const struct dwr_line_strings str = {
		.line_str = wo->out.line_str
				    ? (struct dwr_bytes){ wo->out.line_str, wo->out.line_str_size }
				    : wo->line_str
	};
	be_ok(dwr_line_header_read("s", (struct dwr_bytes){ wo->out.data, wo->out.size }, off, &h));
	be_ok(dwr_line_files_read(&h, &str, UINT64_MAX, defined, &f));
	return f;
}

/* What function() made: its first row's line and column, and the numbers of a.c and b.h. */
struct made {
	uint32_t line, column, a, b;
};

static void check_function(const struct dwr_rows *r, size_t *k, uint64_t va, struct made m)
{
	const uint32_t file[] = { m.a, m.b, m.a };
	for (uint32_t i = 0; i < 3; i++) {
		check_row(r, *k, va + 4 * i, m.line + i, i < 2 ? S : DWR_ROW_PROLOGUE_END);
		assert_int_equal(r->data[*k].column, m.column);
		assert_int_equal(r->data[(*k)++].file, file[i]);
	}
	check_row(r, (*k)++, va + 16, 0, DWR_ROW_END);
}

/* The tables of the input: what stays in each, and what became of each unit. */
static void check_tables(const struct world *wo, const struct unit_at u[3])
{
	const struct dwr_rw_line_out *o = &wo->out;
	size_t k = 0;
	struct dwr_rows r = out_rows(wo, 0);
	check_function(&r, &k, 0x4000, (struct made){ 11, 3, 1, 2 });
	assert_int_equal(r.len, k);
	free(r.data);
	r = out_rows(wo, dwr_rw_line_unit_off(o, u[1].start));
	check_row(&r, 0, 0x5000, 201, S); /* D's thunk */
	assert_int_equal(r.data[0].column, 4);
	check_row(&r, 1, 0x5005, 0, E);
	assert_int_equal(r.len, 2);
	free(r.data);
	r = out_rows(wo, dwr_rw_line_unit_off(o, u[2].start));
	k = 0;
	check_function(&r, &k, 0x4010, (struct made){ 11, 3, 1, 2 });
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
}

/* The artificial table. */
static void check_artificial(const struct world *wo, struct shape shape)
{
	const struct dwr_rw_line_out *o = &wo->out;
	const bool is5 = shape.version >= 5;
	const uint32_t a = is5 ? 1 : 2, b = a + 1;
	struct dwr_line_header h;
	struct dwr_bytes sec = { o->data, o->size };
	be_ok(dwr_line_header_read("s", sec, o->folded_unit, &h));
	assert_int_equal(h.version, is5 ? 5 : 4);
	assert_int_equal(h.end, o->size);
	assert_int_equal(h.offset_size, shape.offset_size);
	struct dwr_line_files f = out_files(wo, o->folded_unit, false);
	assert_int_equal(f.file.len, b + 1);
	assert_string_equal(f.file.data[a - 1].name, "<folded functions>");
	assert_string_equal(f.file.data[a].name, "a.c");
	assert_string_equal(f.dir.data[f.file.data[a].dir], "/src");
	assert_string_equal(f.file.data[b].name, "b.h");
	assert_string_equal(f.dir.data[f.file.data[b].dir], "/inc");
	dwr_line_files_deinit(&f);
	struct dwr_rows r = out_rows(wo, o->folded_unit);
	check_row(&r, 0, 0x7ff0, 1, S);
	assert_int_equal(r.data[0].file, a - 1);
	check_row(&r, 1, 0x7ff1, 0, E);
	size_t k = 2;
	check_function(&r, &k, 0x4000, (struct made){ 101, 3, a, b });
	check_function(&r, &k, 0x4000, (struct made){ 201, 4, a, b });
	assert_int_equal(r.len, k);
	free(r.data);
	for (size_t m = 1; m <= 3; m += 2) {
		uint64_t at = h.program + o->fold[m].seq;
		r = (struct dwr_rows){ 0 };
		be_ok(dwr_line_decode(&h, &at, &r));
		assert_int_equal(r.data[0].line, o->fold[m].line);
		assert_int_equal(r.data[0].file, o->fold[m].file);
		assert_int_equal(o->fold[m].n_seqs, 1);
		free(r.data);
	}
}

/* The other policies. */
static void check_policies(struct world *wo, const struct unit_at u[3])
{
	dwr_rw_line_out_deinit(&wo->out);
	wo->policy = DWR_FOLDED_DROP;
	be_ok(world_run(wo));
	assert_int_equal(wo->out.folded_unit, 0);
	assert_int_equal(wo->out.removed, 4);
	assert_int_equal(wo->out.fold[1].status, DWR_FOLD_NONE);
	struct dwr_rows r = out_rows(wo, dwr_rw_line_unit_off(&wo->out, u[1].start));
	assert_int_equal(r.len, 2); /* the thunk */
	free(r.data);
	dwr_rw_line_out_deinit(&wo->out);
	wo->policy = DWR_FOLDED_ALIAS;
	be_ok(world_run(wo));
	assert_int_equal(wo->out.patched, 6);
	r = out_rows(wo, dwr_rw_line_unit_off(&wo->out, u[1].start));
	size_t k = 0;
	check_function(&r, &k, 0x4000, (struct made){ 11, 3, 1, 2 });
	check_function(&r, &k, 0x4000, (struct made){ 201, 4, 1, 2 });
	check_row(&r, k++, 0x5000, 201, S);
	check_row(&r, k++, 0x5005, 0, E);
	assert_int_equal(r.len, k);
	free(r.data);
}

static void test_folds(void **arg)
{
	(void)arg;
	const struct shape shapes[] = { v3, v4, v5, v5_64, v3_64 };
	for (size_t i = 0; i < 5; i++) {
		struct world wo;
		struct unit_at u[3];
		world_init(&wo, fold_units, 5);
		wo.map.trap_byte = 0x7ff0;
		wo.threads = 1 + i % 3;
		fold_input(&wo, shapes[i], u, false);
		be_ok(world_run(&wo));
		const struct dwr_rw_line_out *o = &wo.out;
		assert_int_equal(o->patched, 2);
		assert_int_equal(o->removed, 4);
		assert_int_equal(o->folded_version, shapes[i].version >= 5 ? 5 : 4);
		assert_int_equal(o->folded_offset_size, shapes[i].offset_size);
		check_tables(&wo, u);
		check_artificial(&wo, shapes[i]);
		check_policies(&wo, u);
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

/* The rows of thunks follow the other sequences of their table, wherever their functions' rows
 * were. */
static void test_thunks_last(void **arg)
{
	(void)arg;
	struct world wo;
	world_init(&wo, fold_units, 5);
	struct unit_at u = begin(&wo.in, v5);
	function(&wo.in, 0x1030, 200, 4);
	function(&wo.in, 0x1040, 10, 3);
	function(&wo.in, 0x1000, 10, 3);
	end(&wo.in, u);
	be_ok(world_run(&wo));
	size_t k = 0;
	struct dwr_rows r = out_rows(&wo, 0);
	check_function(&r, &k, 0x4010, (struct made){ 11, 3, 1, 2 });
	check_function(&r, &k, 0x4000, (struct made){ 11, 3, 1, 2 });
	check_row(&r, k++, 0x5000, 201, S);
	check_row(&r, k++, 0x5005, 0, E);
	assert_int_equal(r.len, k);
	free(r.data);
	world_deinit(&wo);
}

/* Puts the form of the directories' paths in the table at OFF, and the bytes of the first one, into
 * *FORM and *FIRST. */
static void dir_form(const struct world *wo, uint64_t off, uint8_t *form, uint64_t *first)
{
	struct dwr_line_header h;
	be_ok(dwr_line_header_read("s", (struct dwr_bytes){ wo->out.data, wo->out.size }, off, &h));
	*form = wo->out.data[h.tables + 2];
	*first = elfrw_get_le(wo->out.data + h.tables + 4, h.offset_size);
}

/* DWARF 5: the names are in .debug_line_str, each once, where they are already if they are. */
static void test_texts(void **arg)
{
	(void)arg;
	static const char have[] = "/build\0/in\0sub/a.c\0/";
	const struct {
		struct dwr_bytes had;
		uint64_t root; /* of "/" */
		size_t more;
	} all[] = {
		{ { NULL, 0 },
		  0,
		  sizeof "/" + sizeof "/src" + sizeof "a.c" + sizeof "/inc" + sizeof "b.h" },
		{ { (const uint8_t *)have, sizeof have },
		  sizeof have - 2,
		  sizeof "/src" + sizeof "a.c" + sizeof "/inc" + sizeof "b.h" },
		/* The last one has no end, so it is none, and ours must not become its end. */
		{ { (const uint8_t *)have, sizeof have - 1 },
		  sizeof have,
		  1 + sizeof "/" + sizeof "/src" + sizeof "a.c" + sizeof "/inc" + sizeof "b.h" },
	};
	for (size_t i = 0; i < 6; i++) {
		struct world wo;
		struct unit_at u[3];
		uint8_t form;
		uint64_t first;
		world_init(&wo, fold_units, 5);
		wo.line_str = all[i / 2].had;
		fold_input(&wo, i % 2 ? v5_64 : v5, u, false);
		be_ok(world_run(&wo));
		dir_form(&wo, wo.out.folded_unit, &form, &first);
		assert_int_equal(form, DW_FORM_line_strp);
		assert_int_equal(first, all[i / 2].root);
		assert_int_equal(wo.out.line_str_size,
				 wo.line_str.size + all[i / 2].more + sizeof "<folded functions>");
		if (wo.line_str.size)
			assert_memory_equal(wo.out.line_str, have, wo.line_str.size);
		world_deinit(&wo);
	}
	/* Older versions have no other place for names than the table. */
	struct world wo;
	struct unit_at u[3];
	world_init(&wo, fold_units, 5);
	fold_input(&wo, v4, u, false);
	be_ok(world_run(&wo));
	assert_null(wo.out.line_str);
	world_deinit(&wo);
}

/* The rows of a table that no unit names describe nothing: a folded function has those of another
 * table, or none. */
static void test_nameless(void **arg)
{
	(void)arg;
	const uint8_t status[2][5] = { { DWR_FOLD_NONE },
				       { DWR_FOLD_NONE, DWR_FOLD_NONE, DWR_FOLD_OWN, DWR_FOLD_NONE,
					 DWR_FOLD_NONE } };
	for (unsigned named = 0; named < 2; named++) {
		struct world wo;
		struct unit_at u[3];
		world_init(&wo, fold_units, 5);
		fold_input(&wo, v5, u, false);
		wo.n_cus = 0;
		if (named)
			name_table(&wo, u[2]); /* which has C, as the second one has */
		be_ok(world_run(&wo));
		for (unsigned f = 0; f < 5; f++)
			assert_int_equal(wo.out.fold[f].status, status[named][f]);
		assert_int_equal(wo.out.folded_unit != 0, named);
		size_t k = 0;
		struct dwr_rows r = out_rows(&wo, 0);
		check_function(&r, &k, 0x4000, (struct made){ 11, 3, 1, 2 }); /* A stays */
		assert_int_equal(r.len, k);
		free(r.data);
		world_deinit(&wo);
	}
}

/* Before DWARF 5 a relative directory counts from the unit's compilation directory. */
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
	struct dwr_line_files f = out_files(&wo, wo.out.folded_unit, false);
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
			name_table(&wo, u);
		}
		be_ok(world_run(&wo));
		struct dwr_line_files f = out_files(&wo, wo.out.folded_unit, false);
		assert_int_equal(f.file.len, 3);
		assert_int_equal(f.file.data[1].md5 != NULL, !conflict);
		if (!conflict)
			assert_memory_equal(f.file.data[1].md5, "0123456789abcdef", 16);
		dwr_line_files_deinit(&f);
		world_deinit(&wo);
	}
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
	name_table(&wo, u);
	be_ok(world_run(&wo));
	struct dwr_line_files f = out_files(&wo, 0, true);
	assert_int_equal(f.file.len, 4);
	assert_string_equal(f.file.data[3].name, "c.c");
	struct dwr_rows r = out_rows(&wo, 0);
	assert_int_equal(r.len, 2);
	assert_int_equal(r.data[0].file, 3);
	free(r.data);
	dwr_line_files_deinit(&f);
	f = out_files(&wo, wo.out.folded_unit, false);
	assert_string_equal(f.file.data[wo.out.fold[1].file].name, "c.c");
	dwr_line_files_deinit(&f);
	world_deinit(&wo);
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
			name_table(&wo, u);
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
					     .line = { exact, u[2].start + 60 },
					     .cu = wo.cu,
					     .n_cus = wo.n_cus };
		struct elfrw_err *err = dwr_rw_line(&in, &wo.out);
		free(exact);
		elfrw_err_free(err);
		world_deinit(&wo);
	}
}

/* Functions A and B with N rows each, in sequences of their own; B is folded into A. */
static struct elfrw_err *run_rows(size_t n)
{
	struct world wo;
	world_init(&wo, fold_units, 2);
	struct unit_at u = begin(&wo.in, v4);
	for (unsigned f = 0; f < 2; f++) {
		set_address(&wo.in, 0x1000 + 0x10 * f);
		row(&wo.in, 0, 9);
		memset(elfrw_wbuf_grow(&wo.in, n - 1), DW_LNS_copy, n - 1);
		advance_pc(&wo.in, 0x10);
		end_sequence(&wo.in);
	}
	end(&wo.in, u);
	name_table(&wo, u);
	struct elfrw_err *err = world_run(&wo);
	world_deinit(&wo);
	return err;
}

/* A row may take one byte in the file and takes 32 in memory. So at most two million rows are held,
 * of a sequence as of all folded functions together. */
static void test_too_many_rows(void **arg)
{
	(void)arg;
	const size_t most = 2u << 20;
	be_ok(run_rows(most / 2));
	struct elfrw_err *err = run_rows(most / 2 + 1);
	assert_non_null(err);
	assert_non_null(
		strstr(elfrw_err_text(err), "rows in .debug_line of functions to be folded"));
	elfrw_err_free(err);
	err = run_rows(most + 1);
	assert_non_null(err);
	assert_non_null(strstr(elfrw_err_text(err), "sequence of 2097153 rows"));
	elfrw_err_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_folds),       cmocka_unit_test(test_folds_in_one_sequence),
		cmocka_unit_test(test_comp_dir),    cmocka_unit_test(test_md5),
		cmocka_unit_test(test_define_file), cmocka_unit_test(test_threads),
		cmocka_unit_test(test_damaged),     cmocka_unit_test(test_too_many_rows),
		cmocka_unit_test(test_texts),       cmocka_unit_test(test_thunks_last),
		cmocka_unit_test(test_nameless),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
