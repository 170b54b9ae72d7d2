/* info.c: units, DIEs and compressed sections, read from hand-made inputs. */
#include "tests/unit/make/info.h"

static const unsigned all_forms[] = {
	DW_FORM_addr,
	DW_FORM_block2,
	DW_FORM_block4,
	DW_FORM_data2,
	DW_FORM_data4,
	DW_FORM_data8,
	DW_FORM_string,
	DW_FORM_block,
	DW_FORM_block1,
	DW_FORM_data1,
	DW_FORM_flag,
	DW_FORM_sdata,
	DW_FORM_strp,
	DW_FORM_udata,
	DW_FORM_ref_addr,
	DW_FORM_ref1,
	DW_FORM_ref2,
	DW_FORM_ref4,
	DW_FORM_ref8,
	DW_FORM_ref_udata,
	DW_FORM_sec_offset,
	DW_FORM_exprloc,
	DW_FORM_flag_present,
	DW_FORM_strx,
	DW_FORM_addrx,
	DW_FORM_ref_sup4,
	DW_FORM_strp_sup,
	DW_FORM_data16,
	DW_FORM_line_strp,
	DW_FORM_ref_sig8,
	DW_FORM_implicit_const,
	DW_FORM_loclistx,
	DW_FORM_rnglistx,
	DW_FORM_ref_sup8,
	DW_FORM_strx1,
	DW_FORM_strx2,
	DW_FORM_strx3,
	DW_FORM_strx4,
	DW_FORM_addrx1,
	DW_FORM_addrx2,
	DW_FORM_addrx3,
	DW_FORM_addrx4,
	DW_FORM_GNU_addr_index,
	DW_FORM_GNU_str_index,
	DW_FORM_GNU_ref_alt,
	DW_FORM_GNU_strp_alt,
	0x2001,
};

/* Bytes of a value of FORM. */
static void put_form(struct elfrw_wbuf *w, unsigned form, struct dwr_form_params p)
{
	int size = dwr_form_size(form, p);
	assert_int_not_equal(size, -2);
	switch (form) {
	case DW_FORM_block1:
		elfrw_wbuf_u8(w, 3);
		elfrw_wbuf_bytes(w, "abc", 3);
		return;
	case DW_FORM_block2:
		elfrw_wbuf_u16(w, 3);
		elfrw_wbuf_bytes(w, "abc", 3);
		return;
	case DW_FORM_block4:
		elfrw_wbuf_u32(w, 3);
		elfrw_wbuf_bytes(w, "abc", 3);
		return;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		elfrw_wbuf_uleb(w, 200);
		for (int i = 0; i < 200; i++)
			elfrw_wbuf_u8(w, DW_OP_nop);
		return;
	case DW_FORM_string: elfrw_wbuf_cstr(w, "a string"); return;
	case 0x2001:
		elfrw_wbuf_uleb(w, 300);
		elfrw_wbuf_u32(w, 0xdeadbeef);
		return;
	}
	if (size >= 0)
		for (int i = 0; i < size; i++)
			elfrw_wbuf_u8(w, 0xff);
	else
		elfrw_wbuf_uleb(w, 300);
}

/* A way to have a form in a unit. */
struct form_case {
	unsigned version, offset, form;
	bool wanted, indirect;
};

/* Where the DIE and its value of the form are. */
struct form_place {
	uint64_t die, at, end;
};

/* A unit whose DIE has the form between two known attributes. */
static struct form_place form_unit(struct unit *u, const struct form_case *c)
{
	const bool constant = c->form == DW_FORM_implicit_const;
	const struct dwr_form_params p = { (uint8_t)c->version, 8, (uint8_t)c->offset };
	struct form_place ret;
	unit_begin(u, c->version, c->offset, DW_UT_compile);
	declare(u, 1, DW_TAG_compile_unit, true, DW_AT_language, DW_FORM_data2, DW_AT_description,
		c->indirect ? DW_FORM_indirect : c->form, constant ? -7 : DW_AT_decl_line,
		constant ? DW_AT_decl_line : DW_FORM_udata, constant ? DW_FORM_udata : 0, 0);
	ret.die = u->info.len;
	elfrw_wbuf_u8(&u->info, 1);
	elfrw_wbuf_u16(&u->info, 0x1234);
	if (c->indirect)
		elfrw_wbuf_uleb(&u->info, c->form);
	ret.at = u->info.len;
	put_form(&u->info, c->form, p);
	ret.end = u->info.len;
	elfrw_wbuf_uleb(&u->info, 99);
	elfrw_wbuf_u8(&u->info, 0);
	unit_end(u);
	return ret;
}

/* The DIE is as it was made, and the only one. */
static void check_form(struct dwr_cursor *cur, const struct form_case *c, struct form_place place)
{
	struct dwr_die d;
	bool more;
	be_ok(dwr_cursor_next(cur, &d, &more));
	assert_true(more);
	assert_int_equal(d.off, place.die);
	const struct dwr_value *line = dwr_die_value(&d, DW_AT_decl_line);
	assert_non_null(line);
	assert_int_equal(line->u, 99);
	assert_int_equal(line->pos, place.end);
	const struct dwr_value *v = dwr_die_value(&d, DW_AT_description);
	assert_int_equal(v != NULL, c->wanted);
	if (v) {
		assert_int_equal(v->form, c->form);
		assert_int_equal(v->pos + v->size, place.end);
		assert_true(v->pos >= place.at);
		if (c->form == DW_FORM_implicit_const)
			assert_int_equal((int64_t)v->u, -7);
	}
	be_ok(dwr_cursor_next(cur, &d, &more));
	assert_false(more);
	assert_ptr_equal(cur->pos, cur->end);
}

static void walk_form(const struct form_case *c)
{
	struct unit u = { 0 };
	struct form_place place = form_unit(&u, c);
	struct fake f;
	fake_init(&f);
	add_unit_sections(&f, &u);
	struct dwr_sections secs;
	struct dwr_units units;
	be_ok(dwr_sections_init(&secs, &f.image));
	be_ok(dwr_units_read(&secs, &units));
	assert_int_equal(units.len, 1);
	struct dwr_want want = { 0 };
	DWR_WANT_NAME(&want, DW_AT_decl_line);
	if (c->wanted)
		DWR_WANT_NAME(&want, DW_AT_description);
	struct dwr_abbrev_table t = { 0 };
	be_ok(dwr_unit_abbrev(&secs, &units.data[0], &want, &t));
	struct dwr_cursor cur = dwr_cursor_at(&secs, &units.data[0], &t, false);
	check_form(&cur, c, place);
	dwr_abbrev_deinit(&t);
	dwr_units_deinit(&units);
	dwr_sections_deinit(&secs);
	elfrw_addrmap_deinit(&f.map);
	unit_free(&u);
}

/* Each form: not wanted, wanted, and wanted behind DW_FORM_indirect. */
static void walks_all_forms(void **state)
{
	(void)state;
	for (unsigned version = 2; version <= 5; version++)
		for (unsigned offset = 4; offset <= 8; offset += 4)
			for (unsigned i = 0; i < sizeof all_forms / sizeof *all_forms; i++)
				for (unsigned variant = 0; variant < 3; variant++) {
					const struct form_case c = { version, offset, all_forms[i],
								     variant != 0, variant == 2 };
					if (!c.indirect || c.form != DW_FORM_implicit_const)
						walk_form(&c);
				}
}

static uint8_t *compress_as(unsigned how, const uint8_t *data, size_t size, size_t *ret)
{
	size_t cap = compressBound(size) + ZSTD_compressBound(size) + 64;
	uint8_t *out = calloc(1, cap);
	if (how == DWR_ZDEBUG) {
		memcpy(out, "ZLIB", 4);
		for (int i = 0; i < 8; i++)
			out[4 + i] = (uint8_t)(size >> (56 - 8 * i));
	} else {
		elfrw_put32(out, how == DWR_ZLIB ? 1 : 2);
		elfrw_put64(out + 8, size);
		elfrw_put64(out + 16, 1);
	}
	size_t head = how == DWR_ZDEBUG ? 12 : 24;
	if (how == DWR_ZSTD) {
		*ret = head + ZSTD_compress(out + head, cap - head, data, size, 3);
	} else {
		uLongf n = cap - head;
		assert_int_equal(compress2(out + head, &n, data, size, 6), Z_OK);
		*ret = head + n;
	}
	return out;
}

/* Truncated contents, a wrong bit, a size that is wrong: none of these can be loaded. */
static void damage_packed(struct fake *f, unsigned how, const uint8_t *packed, size_t packed_size)
{
	struct dwr_sections secs;
	for (int k = 0; k < 4; k++) {
		uint8_t *bad = malloc(packed_size);
		memcpy(bad, packed, packed_size);
		f->section[2].data = bad;
		f->section[2].hdr.sh_size = k == 0 ? packed_size - 1 : k == 1 ? 9 : packed_size;
		if (k == 2 && how == DWR_ZDEBUG)
			bad[11] ^= 1;
		else if (k == 2)
			bad[8] ^= 1;
		else if (k == 3 && how == DWR_ZDEBUG)
			bad[5] = 1; /* a decompression bomb */
		else if (k == 3)
			bad[14] = 1;
		struct elfrw_err *err = dwr_sections_init(&secs, &f->image);
		if (!err)
			err = dwr_sections_load(&secs, DWR_STR);
		assert_non_null(err);
		elfrw_err_free(err);
		dwr_sections_deinit(&secs);
		free(bad);
	}
}

static void compressed(void **state)
{
	(void)state;
	size_t size = 3000000;
	uint8_t *data = malloc(size);
	uint32_t x = 1;
	for (size_t i = 0; i < size; i++) {
		x = x * 1664525 + 1013904223;
		data[i] = (uint8_t)(x >> 28);
	}
	for (unsigned how = DWR_ZLIB; how <= DWR_ZDEBUG; how++)
		for (unsigned threads = 1; threads <= 3; threads += 2) {
			size_t n;
			uint8_t *z = compress_as(how, data, size, &n);
			struct fake f;
			fake_init(&f);
			fake_add(&f, how == DWR_ZDEBUG ? ".zdebug_str" : ".debug_str", z, n,
				 how == DWR_ZDEBUG ? 0 : SHF_COMPRESSED);
			struct dwr_sections secs;
			be_ok(dwr_sections_init(&secs, &f.image));
			be_ok(dwr_sections_load_all(&secs, threads));
			assert_int_equal(secs.sec[DWR_STR].size, size);
			assert_memory_equal(secs.sec[DWR_STR].data, data, size);
			/* The contents are packed again, and the result is unpacked. */
			uint8_t *copy = malloc(size), *packed;
			size_t packed_size;
			memcpy(copy, data, size);
			be_ok(dwr_section_pack(&secs.sec[DWR_STR], copy, size, threads, &packed,
					       &packed_size));
			dwr_sections_deinit(&secs);
			f.section[2].data = packed;
			f.section[2].hdr.sh_size = packed_size;
			be_ok(dwr_sections_init(&secs, &f.image));
			be_ok(dwr_sections_load(&secs, DWR_STR));
			assert_int_equal(secs.sec[DWR_STR].size, size);
			assert_memory_equal(secs.sec[DWR_STR].data, data, size);
			dwr_sections_deinit(&secs);
			damage_packed(&f, how, packed, packed_size);
			free(packed);
			free(z);
			elfrw_addrmap_deinit(&f.map);
		}
	free(data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(walks_all_forms),
		cmocka_unit_test(compressed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
