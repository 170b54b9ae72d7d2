/* rw_info.c: addresses in hand-made DIEs, rewritten; .gdb_index. */
#include "tests/unit/make/info.h"

static uint64_t find_abbrev_code(const uint8_t *info, uint64_t die)
{
	return info[die];
}

/* A function of 0x20 bytes, whose length has the form FORM. */
struct function_case {
	unsigned version, form;
	bool indirect;
};

/* What became of it. */
struct function_now {
	uint64_t low, len;
	bool edited; /* has another declaration */
};

/* Where its DIE and its attributes are. */
struct function_place {
	uint64_t die, low, high;
};

static const struct dwr_form_params v5_params = { 5, 8, 4 };

static struct function_place function_unit(struct unit *u, const struct function_case *c,
					   uint64_t low)
{
	struct function_place ret;
	unit_begin(u, c->version, 4, DW_UT_compile);
	declare(u, 1, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data2, 0);
	declare(u, 2, DW_TAG_subprogram, false, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		c->indirect ? DW_FORM_indirect : c->form,
		c->form == DW_FORM_implicit_const ? 0x20 : 0, 0, 0);
	elfrw_wbuf_u8(&u->info, 1);
	elfrw_wbuf_u16(&u->info, DW_LANG_C99);
	ret.die = u->info.len;
	elfrw_wbuf_u8(&u->info, 2);
	ret.low = u->info.len;
	elfrw_wbuf_u64(&u->info, low);
	if (c->indirect)
		elfrw_wbuf_uleb(&u->info, c->form);
	ret.high = u->info.len;
	switch (c->form) {
	case DW_FORM_udata:
	case DW_FORM_sdata:
		elfrw_wbuf_u8(&u->info, 0xa0); /* padded */
		elfrw_wbuf_u8(&u->info, 0x00);
		break;
	case DW_FORM_addr: elfrw_wbuf_u64(&u->info, low + 0x20); break;
	case DW_FORM_data16:
		elfrw_wbuf_u64(&u->info, 0x20);
		elfrw_wbuf_u64(&u->info, 0);
		break;
	case DW_FORM_implicit_const: break;
	default: elfrw_wbuf_uint(&u->info, 0x20, (unsigned)dwr_form_size(c->form, v5_params));
	}
	elfrw_wbuf_u8(&u->info, 0);
	unit_end(u);
	return ret;
}

/* The length that the declaration with CODE states. */
static uint64_t implicit_length(const struct dwr_section_out *abbrev, uint64_t code)
{
	struct dwr_abbrev_table t = { 0 };
	struct dwr_want want = { 0 };
	assert_int_not_equal(code, 2);
	be_ok(dwr_abbrev_read(&t, abbrev->data, abbrev->size, 0, v5_params, &want));
	const struct dwr_abbrev *x = dwr_abbrev_find(&t, code);
	assert_non_null(x);
	assert_int_equal(x->tag, DW_TAG_subprogram);
	uint64_t ret = (uint64_t)dwr_abbrev_implicit(&t, &t.attr.data[x->attr + 1]);
	dwr_abbrev_deinit(&t);
	return ret;
}

static struct function_now one_function(const struct function_case *c, enum dwr_policy policy,
					uint64_t low)
{
	struct unit u = { 0 };
	struct fake f;
	struct dwr_rewrite_out out;
	struct function_place at = function_unit(&u, c, low);
	fake_init(&f);
	add_unit_sections(&f, &u);
	be_ok(fake_rewrite(&f, policy, 1, &out));
	const struct dwr_section_out *info = out_section(&out, ".debug_info"),
				     *ab = out_section(&out, ".debug_abbrev");
	const uint8_t *d = info ? info->data : u.info.data;
	struct function_now now = { .low = elfrw_get64(d + at.low), .edited = ab };
	struct elfrw_rbuf r = elfrw_rbuf(d, u.info.len);
	elfrw_rbuf_seek(&r, at.high);
	switch (c->form) {
	case DW_FORM_udata:
	case DW_FORM_sdata:
		now.len = elfrw_rbuf_uleb(&r);
		assert_int_equal(elfrw_rbuf_off(&r), at.high + 2);
		break;
	case DW_FORM_addr: now.len = elfrw_rbuf_u64(&r) - now.low; break;
	case DW_FORM_implicit_const:
		now.len = ab ? implicit_length(ab, find_abbrev_code(d, at.die)) : 0x20;
		break;
	case DW_FORM_data16: now.len = elfrw_rbuf_u64(&r); break;
	default: now.len = elfrw_rbuf_uint(&r, (unsigned)dwr_form_size(c->form, v5_params));
	}
	dwr_rewrite_out_deinit(&out);
	elfrw_addrmap_deinit(&f.map);
	unit_free(&u);
	return now;
}

static void check_function(const struct function_case *c)
{
	static const struct {
		enum dwr_policy policy;
		uint64_t low, new_low, new_len;
	} want[] = {
		{ DWR_FOLDED_OVERLAY, C, NEW_C, 0x20 },
		{ DWR_FOLDED_OVERLAY, B, NEW_A, 0 },
		{ DWR_FOLDED_OVERLAY, D, THUNK, THUNK_SIZE },
		{ DWR_FOLDED_ALIAS, B, NEW_A, 0x20 },
		{ DWR_FOLDED_DROP, B, 0, 0 },
		{ DWR_FOLDED_OVERLAY, 0, 0, 0x20 },
	};
	for (unsigned i = 0; i < sizeof want / sizeof *want; i++) {
		struct function_now now = one_function(c, want[i].policy, want[i].low);
		assert_int_equal(now.low, want[i].new_low);
		assert_int_equal(now.len, want[i].new_len);
		if (i == 0)
			assert_false(now.edited);
	}
}

static void function_ranges(void **state)
{
	(void)state;
	static const unsigned forms[] = { DW_FORM_data1, DW_FORM_data2,  DW_FORM_data4,
					  DW_FORM_data8, DW_FORM_data16, DW_FORM_udata,
					  DW_FORM_sdata, DW_FORM_addr,   DW_FORM_implicit_const };
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++)
		for (unsigned version = 2; version <= 5; version++)
			for (int indirect = 0; indirect < 2; indirect++) {
				const struct function_case c = { version, forms[i], indirect };
				if (!indirect || c.form != DW_FORM_implicit_const)
					check_function(&c);
			}
}

/* What B's FUNCTION and the SCOPE in it lost is in the note. */
static void check_taken(const struct dwr_rewrite_out *out, uint64_t function, uint64_t scope)
{
	const struct dwr_section_out *note = out_section(out, ".debug_icfold");
	struct dwr_icfold n1;
	assert_non_null(note);
	be_ok(dwr_icfold_read(&n1, note->data, note->size));
	assert_int_equal(n1.n_dies, 1);
	assert_int_equal(n1.dies[0].die, function);
	struct dwr_icfold_walk walk = dwr_icfold_overlay_at(&n1, &n1.dies[0]);
	const uint64_t expect[][3] = { { function, 0, 0x20 }, { scope, 4, 8 } };
	struct dwr_icfold_entry e;
	struct dwr_note_range r;
	bool more;
	for (unsigned i = 0; i < 2; i++) {
		be_ok(dwr_icfold_overlay_next(&walk, &e, &more));
		assert_true(more);
		assert_int_equal(e.die, expect[i][0]);
		assert_int_equal(e.n_ranges, 1);
		assert_true(dwr_icfold_range_next(&e, &r));
		assert_int_equal(r.unit, 1);
		assert_int_equal(r.start, expect[i][1]);
		assert_int_equal(r.len, expect[i][2]);
		assert_false(dwr_icfold_range_next(&e, &r));
	}
	be_ok(dwr_icfold_overlay_next(&walk, &e, &more));
	assert_false(more);
	dwr_icfold_deinit(&n1);
}

static void declare_others(struct unit *u)
{
	declare(u, 1, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data2, 0);
	declare(u, 2, DW_TAG_subprogram, true, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		DW_FORM_data4, 0);
	declare(u, 3, DW_TAG_lexical_block, false, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		DW_FORM_data4, 0);
	declare(u, 4, DW_TAG_call_site, false, DW_AT_call_return_pc, DW_FORM_addr, DW_AT_call_pc,
		DW_FORM_addr, 0);
	declare(u, 5, DW_TAG_GNU_call_site, false, DW_AT_low_pc, DW_FORM_addr, 0);
	declare(u, 6, DW_TAG_label, false, DW_AT_low_pc, DW_FORM_addr, 0);
	declare(u, 7, DW_TAG_variable, false, DW_AT_location, DW_FORM_exprloc, 0);
	declare(u, 8, DW_TAG_variable, false, DW_AT_const_value, DW_FORM_block1, 0);
}

/* Scopes, call sites, labels, expressions. */
static void other_addresses(void **state)
{
	(void)state;
	struct unit u = { 0 };
	unit_begin(&u, 5, 4, DW_UT_compile);
	declare_others(&u);
	elfrw_wbuf_u8(&u.info, 1);
	elfrw_wbuf_u16(&u.info, DW_LANG_C99);
	size_t at[20], n = 0;
#define ADDR(va) (at[n++] = u.info.len, elfrw_wbuf_u64(&u.info, va))
	elfrw_wbuf_u8(&u.info, 2);
	ADDR(B); /* 0 */
	elfrw_wbuf_u32(&u.info, 0x20);
	elfrw_wbuf_u8(&u.info, 3);
	ADDR(B + 4); /* 1 */
	elfrw_wbuf_u32(&u.info, 8);
	elfrw_wbuf_u8(&u.info, 4);
	ADDR(C);        /* 2: the call is B's last instruction */
	ADDR(B + 0x1b); /* 3 */
	elfrw_wbuf_u8(&u.info, 5);
	ADDR(E); /* 4: D's last instruction */
	elfrw_wbuf_u8(&u.info, 6);
	ADDR(C); /* 5 */
	elfrw_wbuf_u8(&u.info, 7);
	elfrw_wbuf_uleb(&u.info, 9);
	elfrw_wbuf_u8(&u.info, DW_OP_addr);
	ADDR(D); /* 6: a pointer to a function with a thunk */
	elfrw_wbuf_u8(&u.info, 8);
	elfrw_wbuf_u8(&u.info, 9);
	elfrw_wbuf_u8(&u.info, DW_OP_addr);
	ADDR(D); /* 7: bytes of a constant, no address */
	elfrw_wbuf_u16(&u.info, 0);
#undef ADDR
	unit_end(&u);
	struct fake f;
	fake_init(&f);
	add_unit_sections(&f, &u);
	struct dwr_rewrite_out out;
	be_ok(fake_rewrite(&f, DWR_FOLDED_OVERLAY, 2, &out));
	const struct dwr_section_out *info = out_section(&out, ".debug_info");
	assert_non_null(info);
	assert_int_equal(info->size, u.info.len);
	static const uint64_t want[] = { NEW_A,        NEW_A + 4, NEW_A + 0x20, NEW_A + 0x1b,
					 NEW_A + 0x20, NEW_C,     THUNK,        D };
	for (unsigned i = 0; i < 8; i++)
		assert_int_equal(elfrw_get64(info->data + at[i]), want[i]);
	assert_int_equal(elfrw_get32(info->data + at[0] + 8), 0);
	assert_int_equal(elfrw_get32(info->data + at[1] + 8), 0);

	check_taken(&out, at[0] - 1, at[1] - 1);
	dwr_rewrite_out_deinit(&out);
	elfrw_addrmap_deinit(&f.map);
	unit_free(&u);
}

/* A unit over [from, to), and what comes of it: a range, or ranges. */
struct extent_case {
	uint64_t from, to;
	unsigned n;
	uint64_t range[2][2];
};

/* The unit's declaration has DW_AT_ranges now. */
static void check_ranges_form(const struct dwr_section_out *abbrev, struct dwr_form_params p,
			      unsigned size)
{
	struct dwr_abbrev_table t = { 0 };
	struct dwr_want want = { 0 };
	assert_non_null(abbrev);
	be_ok(dwr_abbrev_read(&t, abbrev->data, abbrev->size, 0, p, &want));
	assert_int_equal(t.attr.data[1].name, DW_AT_ranges);
	assert_int_equal(t.attr.data[1].form, p.version >= 4 ? DW_FORM_sec_offset : DW_FORM_data4);
	assert_int_equal(t.attr.len, size == 4 ? 3 : 4);
	dwr_abbrev_deinit(&t);
}

/* The ranges at the offset that the DIE's attributes D, low_pc and ranges, state. */
static void check_ranges(const struct dwr_rewrite_out *out, struct dwr_form_params p,
			 const uint8_t *d, const struct extent_case *c)
{
	const struct dwr_section_out *list =
		out_section(out, p.version >= 5 ? ".debug_rnglists" : ".debug_ranges");
	enum dwr_list_kind kind = p.version >= 5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES;
	struct dwr_list_secs secs = { 0 };
	struct dwr_list l = { 0 };
	struct dwr_list_cu cu = { .params = p,
				  .has_base = true,
				  .base = elfrw_get64(d),
				  .addr_base = DWR_LIST_NONE,
				  .rnglists_base = DWR_LIST_NONE,
				  .loclists_base = DWR_LIST_NONE };
	assert_non_null(list);
	secs.list[kind] = (struct dwr_list_sec){ "list", list->data, list->size };
	be_ok(dwr_list_read(&secs, kind, &cu, elfrw_get32(d + 8), DWR_LIST_NONE, &l));
	assert_int_equal(l.entry.len, 2);
	for (unsigned k = 0; k < 2; k++) {
		assert_int_equal(l.entry.data[k].begin, c->range[k][0]);
		assert_int_equal(l.entry.data[k].end, c->range[k][1]);
	}
	dwr_list_deinit(&l);
}

/* SIZE: of high_pc; one of 2 bytes has no room for an offset of ranges. */
static void check_extent(unsigned version, unsigned size, const struct extent_case *c)
{
	const struct dwr_form_params p = { (uint8_t)version, 8, 4 };
	struct unit u = { 0 };
	unit_begin(&u, version, 4, DW_UT_compile);
	declare(&u, 1, DW_TAG_compile_unit, false, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc,
		size == 2   ? DW_FORM_data2
		: size == 4 ? DW_FORM_data4
			    : DW_FORM_data8,
		DW_AT_language, DW_FORM_data2, 0);
	elfrw_wbuf_u8(&u.info, 1);
	size_t at = u.info.len;
	elfrw_wbuf_u64(&u.info, c->from);
	elfrw_wbuf_uint(&u.info, c->to - c->from, size);
	elfrw_wbuf_u16(&u.info, DW_LANG_C99);
	unit_end(&u);
	struct fake f;
	fake_init(&f);
	add_unit_sections(&f, &u);
	struct dwr_rewrite_out out;
	be_ok(fake_rewrite(&f, DWR_FOLDED_OVERLAY, 1, &out));
	const struct dwr_section_out *info = out_section(&out, ".debug_info"),
				     *ab = out_section(&out, ".debug_abbrev");
	const uint8_t *d = (info ? info->data : u.info.data) + at;
	if (c->n < 2) {
		assert_null(ab);
		assert_int_equal(elfrw_get_le(d + 8, size), c->range[0][1] - c->range[0][0]);
		if (c->n)
			assert_int_equal(elfrw_get64(d), c->range[0][0]);
	} else {
		check_ranges_form(ab, p, size);
		check_ranges(&out, p, d, c);
	}
	dwr_rewrite_out_deinit(&out);
	elfrw_addrmap_deinit(&f.map);
	unit_free(&u);
}

/* A unit's own low_pc and high_pc. */
static void unit_extent(void **state)
{
	(void)state;
	static const struct extent_case cases[] = {
		{ A, B, 1, { { NEW_A, NEW_A + 0x20 } } },
		{ A, D, 1, { { NEW_A, NEW_C + 0x20 } } },
		{ B, C, 0, { { 0 } } },
		{ B, D, 1, { { NEW_C, NEW_C + 0x20 } } },
		{ D, E, 1, { { THUNK, THUNK + THUNK_SIZE } } },
		{ A, END, 2, { { NEW_A, NEW_E + 0x20 }, { THUNK, THUNK + THUNK_SIZE } } },
	};
	for (unsigned version = 3; version <= 5; version++)
		for (unsigned size = 4; size <= 8; size += 4)
			for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++)
				check_extent(version, size, &cases[i]);
	/* Where high_pc cannot become ranges, the unit covers its code, and no thunk. */
	static const struct extent_case narrow = { A, END, 1, { { NEW_A, NEW_E + 0x20 } } };
	for (unsigned version = 3; version <= 5; version++)
		check_extent(version, 2, &narrow);
}

/* A variable in C with location views, whose offset has form FORM and is the last thing in the
 * section. */
static struct elfrw_err *views_in_form(unsigned form)
{
	struct unit u = { 0 };
	struct elfrw_wbuf loc = { 0 };
	unit_begin(&u, 4, 4, DW_UT_compile);
	declare(&u, 1, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data2, 0);
	declare(&u, 2, DW_TAG_variable, true, DW_AT_location, DW_FORM_sec_offset,
		DW_AT_GNU_locviews, form, 0);
	elfrw_wbuf_u8(&u.info, 1);
	elfrw_wbuf_u16(&u.info, DW_LANG_C99);
	elfrw_wbuf_u8(&u.info, 2);
	elfrw_wbuf_u32(&u.info, 2);
	elfrw_wbuf_uint(&u.info, 0, (unsigned)dwr_form_size(form, v5_params));
	unit_end(&u);
	elfrw_wbuf_u16(&loc, 0);
	elfrw_wbuf_u64(&loc, C);
	elfrw_wbuf_u64(&loc, C + 4);
	elfrw_wbuf_u16(&loc, 1);
	elfrw_wbuf_u8(&loc, DW_OP_reg1);
	elfrw_wbuf_u64(&loc, 0);
	elfrw_wbuf_u64(&loc, 0);
	struct fake f;
	struct dwr_rewrite_out out = { 0 };
	fake_init(&f);
	add_unit_sections(&f, &u);
	fake_add(&f, ".debug_loc", loc.data, loc.len, 0);
	struct elfrw_err *err = fake_rewrite(&f, DWR_FOLDED_OVERLAY, 1, &out);
	dwr_rewrite_out_deinit(&out);
	elfrw_addrmap_deinit(&f.map);
	elfrw_wbuf_free(&loc);
	unit_free(&u);
	return err;
}

/* The new offset is written with the size of an offset. */
static void views(void **state)
{
	(void)state;
	be_ok(views_in_form(DW_FORM_sec_offset));
	static const unsigned forms[] = { DW_FORM_data1, DW_FORM_data2, DW_FORM_data8 };
	for (unsigned i = 0; i < sizeof forms / sizeof *forms; i++) {
		struct elfrw_err *err = views_in_form(forms[i]);
		assert_non_null(err);
		assert_non_null(strstr(elfrw_err_text(err), "DW_AT_GNU_locviews"));
		elfrw_err_free(err);
	}
}

static void refuses(void **state)
{
	(void)state;
	struct unit u = { 0 };
	unit_begin(&u, 5, 4, DW_UT_skeleton);
	declare(&u, 1, DW_TAG_skeleton_unit, false, DW_AT_dwo_name, DW_FORM_string, DW_AT_low_pc,
		DW_FORM_addr, 0);
	elfrw_wbuf_u8(&u.info, 1);
	elfrw_wbuf_cstr(&u.info, "x.dwo");
	elfrw_wbuf_u64(&u.info, A);
	unit_end(&u);
	struct fake f;
	fake_init(&f);
	add_unit_sections(&f, &u);
	struct dwr_rewrite_out out;
	struct elfrw_err *err = fake_rewrite(&f, DWR_FOLDED_OVERLAY, 1, &out);
	assert_non_null(err);
	assert_non_null(strstr(elfrw_err_text(err), "x.dwo"));
	assert_non_null(strstr(elfrw_err_text(err), "--strip-debug"));
	elfrw_err_free(err);
	/* A unit that is cut off. */
	f.section[2].hdr.sh_size--;
	err = fake_rewrite(&f, DWR_FOLDED_OVERLAY, 1, &out);
	assert_non_null(err);
	assert_non_null(strstr(elfrw_err_text(err), ".debug_info"));
	elfrw_err_free(err);
	elfrw_addrmap_deinit(&f.map);
	unit_free(&u);
}

static void gdb_index(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	enum {
		HEADER = 24,
		CUS = HEADER,
		TUS = CUS + 16,
		ADDR = TUS + 24,
		SYM = ADDR + 3 * 20,
		POOL = SYM + 16
	};
	elfrw_wbuf_u32(&w, 8);
	elfrw_wbuf_u32(&w, CUS);
	elfrw_wbuf_u32(&w, TUS);
	elfrw_wbuf_u32(&w, ADDR);
	elfrw_wbuf_u32(&w, SYM);
	elfrw_wbuf_u32(&w, POOL);
	elfrw_wbuf_u64(&w, 0);
	elfrw_wbuf_u64(&w, 100);
	for (int i = 0; i < 3; i++)
		elfrw_wbuf_u64(&w, 0);
	static const uint64_t ranges[][2] = { { A, B }, { B, C }, { D, END } };
	for (int i = 0; i < 3; i++) {
		elfrw_wbuf_u64(&w, ranges[i][0]);
		elfrw_wbuf_u64(&w, ranges[i][1]);
		elfrw_wbuf_u32(&w, 0);
	}
	elfrw_wbuf_u64(&w, 0);
	elfrw_wbuf_u32(&w, 8);
	elfrw_wbuf_u32(&w, 0);
	elfrw_wbuf_u32(&w, 1);
	elfrw_wbuf_u32(&w, 0x10000000);
	elfrw_wbuf_cstr(&w, "x");
	struct fake f;
	fake_init(&f);
	fake_add(&f, ".gdb_index", w.data, w.len, 0);
	struct dwr_rewrite_out out;
	be_ok(fake_rewrite(&f, DWR_FOLDED_OVERLAY, 1, &out));
	const struct dwr_section_out *g = out_section(&out, ".gdb_index");
	assert_non_null(g);
	assert_int_equal(elfrw_get32(g->data + 12), ADDR);
	uint32_t sym = elfrw_get32(g->data + 16);
	assert_int_equal(elfrw_get32(g->data + 20), sym + 16);
	/* B is gone; D is its thunk, E moved. */
	static const uint64_t want[][2] = { { NEW_A, NEW_A + 0x20 },
					    { NEW_E, NEW_E + 0x20 },
					    { THUNK, THUNK + THUNK_SIZE } };
	assert_int_equal(sym, ADDR + 3 * 20);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(elfrw_get64(g->data + ADDR + 20 * i), want[i][0]);
		assert_int_equal(elfrw_get64(g->data + ADDR + 20 * i + 8), want[i][1]);
	}
	assert_memory_equal(g->data + sym, w.data + SYM, w.len - SYM);
	dwr_rewrite_out_deinit(&out);
	elfrw_addrmap_deinit(&f.map);
	elfrw_wbuf_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(function_ranges), cmocka_unit_test(other_addresses),
		cmocka_unit_test(unit_extent),     cmocka_unit_test(refuses),
		cmocka_unit_test(gdb_index),       cmocka_unit_test(views),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
