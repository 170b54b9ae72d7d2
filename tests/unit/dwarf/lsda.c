/* lsda.c: hand-made language-specific data areas: read, compared by their meaning, and
 * .gcc_except_table built anew from them. */
#include "tests/unit/make/err_check.h"
#include "dwarf/cfi.h"
#include "dwarf/lsda.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/image.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/wbuf.h"
#include <stdlib.h>
#include <string.h>

#define TABLE    0x3000
#define FUNC     0x1000
#define FUNC_END 0x1100
#define TYPE_A   0x5000
#define TYPE_B   0x5008

/* An image that consists of one section of SIZE bytes at TABLE. */
static void fake_image(struct elfrw_image *img, struct elfrw_section section[2],
		       const uint8_t *data, size_t size)
{
	memset(section, 0, 2 * sizeof *section);
	section[0].name = "";
	section[1].name = ".gcc_except_table";
	section[1].data = data;
	section[1].hdr = (Elf64_Shdr){ .sh_type = SHT_PROGBITS,
				       .sh_flags = SHF_ALLOC,
				       .sh_addr = TABLE,
				       .sh_size = size,
				       .sh_addralign = 4 };
	*img = (struct elfrw_image){
		.arch = &elfrw_arch_x86_64, .section = section, .n_sections = 2, .pic = true
	};
}

struct table {
	const char *sites; /* start, length, pad, action */
	size_t sites_size;
	const char *actions; /* filter, displacement */
	size_t actions_size;
	unsigned n_types;
	uint64_t type[4]; /* slot address of filter n_types, ..., 1; 0: catch all */
	const char *specs;
	size_t specs_size;
};

/* Appends an LSDA (indirect, PC-relative types) to W, which begins at TABLE; returns its
 * address. */
static uint64_t put(struct elfrw_wbuf *w, const struct table *t)
{
	if (w->len)
		elfrw_wbuf_align(w, 4);
	uint64_t va = TABLE + w->len;
	elfrw_wbuf_u8(w, 0xff);
	elfrw_wbuf_u8(w, t->n_types || t->specs_size ? 0x9b : 0xff);
	if (t->n_types || t->specs_size) {
		/* The offset counts from behind its own byte; the types are aligned. */
		size_t before = w->len + 1 + 2 + t->sites_size + t->actions_size;
		size_t types = (before + 3) & ~(size_t)3;
		elfrw_wbuf_u8(w, (uint8_t)(types + 4 * t->n_types - (w->len + 1)));
	}
	elfrw_wbuf_u8(w, 1);
	elfrw_wbuf_u8(w, (uint8_t)t->sites_size);
	elfrw_wbuf_bytes(w, t->sites, t->sites_size);
	elfrw_wbuf_bytes(w, t->actions, t->actions_size);
	if (t->n_types || t->specs_size)
		elfrw_wbuf_align(w, 4);
	for (unsigned i = 0; i < t->n_types; i++)
		elfrw_wbuf_u32(w, t->type[i] ? (uint32_t)(t->type[i] - (TABLE + w->len)) : 0);
	elfrw_wbuf_bytes(w, t->specs, t->specs_size);
	return va;
}

/* Two call sites with one catch chain each: (the second type, then the first), (the first); and a
 * call site without a landing pad. */
#define TWO_CHAINS                   \
	.sites = "\x04\x05\x20\x03"  \
		 "\x10\x05\x30\x01"  \
		 "\x18\x05\x00\x00", \
	.sites_size = 12,            \
	.actions = "\x02\x00"        \
		   "\x01\x7d",       \
	.actions_size = 4, .n_types = 2
static const struct table first = {
	TWO_CHAINS,
	.type = { TYPE_B, TYPE_A },
};
/* The same meaning as `first`, with other action records in another order, and a cleanup that only
 * the call site without a landing pad names. */
static const struct table second = {
	.sites = "\x04\x05\x40\x05"
		 "\x10\x05\x50\x01"
		 "\x18\x05\x00\x03",
	.sites_size = 12,
	.actions = "\x02\x00"
		   "\x00\x00"
		   "\x01\x01"
		   "\x02\x00",
	.actions_size = 8,
	.n_types = 2,
	.type = { TYPE_B, TYPE_A },
};
/* Other types. */
static const struct table third = {
	TWO_CHAINS,
	.type = { 0, TYPE_A },
};
/* throw (A, B) and throw () */
static const struct table specs = {
	.sites = "\x04\x05\x20\x01"
		 "\x10\x05\x30\x03"
		 "\x18\x05\x60\x00",
	.sites_size = 12,
	.actions = "\x7f\x00"
		   "\x7c\x00",
	.actions_size = 4,
	.n_types = 2,
	.type = { TYPE_B, TYPE_A },
	.specs = "\x01\x02\x00\x00",
	.specs_size = 4,
};

static void canon(const struct elfrw_image *img, uint64_t va, struct elfrw_wbuf *bytes,
		  dwr_lsda_pads *pads)
{
	struct dwr_lsda l = { 0 };
	be_ok(dwr_lsda_read(&l, img, va, FUNC, FUNC_END));
	dwr_lsda_canon(&l, bytes, pads);
	dwr_lsda_deinit(&l);
}

static void test_meaning(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	const struct table *const tables[] = { &first, &second, &third, &specs };
	uint64_t va[4];
	for (int i = 0; i < 4; i++)
		va[i] = put(&w, tables[i]);
	struct elfrw_image img;
	struct elfrw_section section[2];
	fake_image(&img, section, w.data, w.len);
	struct elfrw_wbuf bytes[4] = { 0 };
	dwr_lsda_pads pads[4] = { 0 };
	for (int i = 0; i < 4; i++)
		canon(&img, va[i], &bytes[i], &pads[i]);
	for (int i = 1; i < 4; i++)
		assert_int_equal(bytes[0].len == bytes[i].len &&
					 !memcmp(bytes[0].data, bytes[i].data, bytes[0].len),
				 i == 1);
	assert_int_equal(pads[0].len, 2);
	assert_int_equal(pads[0].data[0], FUNC + 0x20);
	assert_int_equal(pads[1].data[1], FUNC + 0x50);
	assert_int_equal(pads[3].len, 3);

	struct dwr_lsda l = { 0 };
	be_ok(dwr_lsda_read(&l, &img, va[0], FUNC, FUNC_END));
	assert_int_equal(l.start, va[0]);
	assert_int_equal(l.end, va[1]);
	assert_int_equal(l.site.len, 3);
	assert_int_equal(l.site.data[0].n_actions, 2);
	assert_int_equal(l.action.data[0].filter, 1);
	assert_int_equal(l.action.data[1].filter, 2);
	assert_int_equal(l.type.data[0].addr, TYPE_A);
	assert_true(l.type.data[0].indirect);
	assert_int_equal(l.field.len, 2);
	assert_int_equal(l.field.data[1].addr, TYPE_B);
	be_ok(dwr_lsda_read(&l, &img, va[2], FUNC, FUNC_END));
	assert_int_equal(l.type.data[1].addr, 0); /* a zero field, though it is PC-relative */
	be_ok(dwr_lsda_read(&l, &img, va[3], FUNC, FUNC_END));
	assert_int_equal(l.action.data[0].filter, -1);
	assert_int_equal(l.action.data[0].n_types, 2);
	assert_int_equal(l.action.data[1].filter, -4);
	assert_int_equal(l.action.data[1].n_types, 0);
	assert_int_equal(l.end, TABLE + w.len);
	be_fails(dwr_lsda_read(&l, &img, va[0], FUNC, FUNC + 0x10), "outside of the function");
	be_fails(dwr_lsda_read(&l, &img, 0x9000, FUNC, FUNC_END), "in no data section");
	dwr_lsda_deinit(&l);
	for (int i = 0; i < 4; i++) {
		elfrw_wbuf_free(&bytes[i]);
		VEC_FREE(&pads[i]);
	}
	elfrw_wbuf_free(&w);
}

static void test_broken(void **state)
{
	(void)state;
	static const struct table cyclic = {
		.sites = "\x04\x05\x20\x01",
		.sites_size = 4,
		.actions = "\x00\x7f",
		.actions_size = 2,
	};
	static const struct table no_type = {
		.sites = "\x04\x05\x20\x01",
		.sites_size = 4,
		.actions = "\x03\x00",
		.actions_size = 2,
		.n_types = 1,
		.type = { TYPE_A },
	};
	struct elfrw_image img;
	struct elfrw_section section[2];
	struct dwr_lsda l = { 0 };
	struct elfrw_wbuf w = { 0 };
	put(&w, &cyclic);
	fake_image(&img, section, w.data, w.len);
	be_fails(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END), "cyclic");
	w.len = 0;
	put(&w, &no_type);
	fake_image(&img, section, w.data, w.len);
	be_fails(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END), "outside of the type table");
	w.data[1] = 0x3b;
	be_fails(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END), "unusable type table encoding");
	w.data[1] = 0x03;
	be_fails(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END), "unusable type table encoding");
	/* Every prefix and every single-byte change is read or refused, without a fault (run under
	 * a sanitizer). */
	w.len = 0;
	put(&w, &specs);
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };
	for (size_t n = 1; n <= w.len; n++)
		for (size_t k = 0; k < sizeof values; k++) {
			uint8_t *copy = malloc(n);
			memcpy(copy, w.data, n);
			if (k)
				copy[n - 1] = values[k];
			fake_image(&img, section, copy, n);
			elfrw_err_free(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END));
			free(copy);
		}
	for (size_t i = 0; i < w.len; i++)
		for (size_t k = 0; k < sizeof values; k++) {
			uint8_t was = w.data[i];
			w.data[i] = values[k];
			fake_image(&img, section, w.data, w.len);
			elfrw_err_free(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END));
			w.data[i] = was;
		}
	dwr_lsda_deinit(&l);
	elfrw_wbuf_free(&w);
}

/* An explicit landing pad base follows its function; the pads do not change. */
static void test_lpstart(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	elfrw_wbuf_u8(&w, 0x1b);
	elfrw_wbuf_u32(&w, (uint32_t)(FUNC + 8 - (TABLE + 1)));
	elfrw_wbuf_bytes(&w, "\xff\x01\x04\x04\x05\x20", 6);
	elfrw_wbuf_u8(&w, 0);
	struct elfrw_image img;
	struct elfrw_section section[2];
	fake_image(&img, section, w.data, w.len);
	struct dwr_fde fde = { .pc_begin = FUNC, .pc_end = FUNC_END, .lsda = TABLE };
	struct dwr_cfi cfi = { .name = ".eh_frame", .is_eh = true, .fde = { &fde, 1, 1 } };
	struct elfrw_addrmap_unit unit = { FUNC, FUNC_END, FUNC - 0x80, FUNC - 0x80, 0, 0, 0 };
	struct elfrw_addrmap_section sec = { FUNC - 0x80, FUNC_END, FUNC - 0x80, FUNC_END - 0x80,
					     1 };
	struct elfrw_addrmap map = {
		.unit = &unit, .n_units = 1, .section = &sec, .n_sections = 1
	};
	be_ok(elfrw_addrmap_finish(&map));
	struct dwr_lsda l = { 0 };
	be_ok(dwr_lsda_read(&l, &img, TABLE, FUNC, FUNC_END));
	assert_int_equal(l.lpstart, FUNC + 8);
	assert_int_equal(l.site.data[0].landing_pad, FUNC + 0x28);
	struct dwr_rw_except_in in = {
		.img = &img, .cfi = &cfi, .map = &map, .shndx = 1, .va = TABLE + 0x10
	};
	struct dwr_rw_except_out out;
	be_ok(dwr_rw_gcc_except(&in, &out));
	assert_false(out.compacted);
	fake_image(&img, section, out.data, out.size);
	section[1].hdr.sh_addr = in.va;
	be_ok(dwr_lsda_read(&l, &img, in.va, unit.body, unit.body + 0x100));
	assert_int_equal(l.lpstart, unit.body + 8);
	assert_int_equal(l.site.data[0].landing_pad, unit.body + 0x28);
	dwr_lsda_deinit(&l);
	dwr_rw_except_deinit(&out);
	elfrw_blocks_deinit(&map.blocks);
	elfrw_wbuf_free(&w);
}

/* A function in three ranges: headers one behind the other, with one action and one type table. */
static void test_ranges(void **state)
{
	(void)state;
	enum { PADS = FUNC + 0x200, ACTIONS = 45, TYPES = 52 };
	struct elfrw_wbuf w = { 0 };
	static const char *const sites[3] = { "", "\x04\x05\x08\x01", "\x02\x03\x10\x00" };
	for (int i = 0; i < 3; i++) {
		elfrw_wbuf_u8(&w, 0x1b);
		elfrw_wbuf_u32(&w, (uint32_t)(PADS - (TABLE + w.len)));
		elfrw_wbuf_u8(&w, 0x9b);
		elfrw_wbuf_u8(&w, (uint8_t)(TYPES - (w.len + 1)));
		elfrw_wbuf_u8(&w, 1);
		elfrw_wbuf_u8(&w, (uint8_t)(ACTIONS - (w.len + 1)));
		elfrw_wbuf_bytes(&w, sites[i], i ? 4 : 0);
		if (i == 1)
			elfrw_wbuf_align(&w, 4);
	}
	/* The first header has no call sites, so the second header follows it at once. The third
	 * has two more call sites. */
	while (w.len < ACTIONS)
		elfrw_wbuf_bytes(&w, "\x06\x01\x00\x00", 4);
	elfrw_wbuf_bytes(&w, "\x01\0\0", 3);
	elfrw_wbuf_u32(&w, (uint32_t)(TYPE_A - (TABLE + w.len)));
	struct elfrw_image img;
	struct elfrw_section section[2];
	fake_image(&img, section, w.data, w.len);
	struct dwr_lsda l = { 0 };
	const uint64_t va[3] = { TABLE, TABLE + 9, TABLE + 24 };
	const size_t n[3] = { 0, 1, 3 };
	for (int i = 0; i < 3; i++) {
		be_ok(dwr_lsda_read(&l, &img, va[i], FUNC, FUNC + 0x10));
		assert_int_equal(l.site.len, n[i]);
		assert_int_equal(l.lpstart, PADS);
		assert_int_equal(l.sites_end, i < 2 ? va[i + 1] : TABLE + ACTIONS);
		assert_int_equal(l.actions, TABLE + ACTIONS);
		assert_int_equal(l.end, TABLE + TYPES);
	}
	be_ok(dwr_lsda_read(&l, &img, va[1], FUNC, FUNC + 0x10));
	assert_int_equal(l.site.data[0].landing_pad, PADS + 8);
	assert_int_equal(l.type.data[0].addr, TYPE_A);
	/* A header that states another base for landing pads belongs to another function. */
	w.data[va[2] - TABLE + 1] ^= 1;
	be_fails(dwr_lsda_read(&l, &img, va[1], FUNC, FUNC + 0x10), "");
	dwr_lsda_deinit(&l);
	elfrw_wbuf_free(&w);
}

/* The LSDA at TO of OUT means what the one at VA of IMG does. */
static void check_same(const struct elfrw_image *img, uint64_t va,
		       const struct dwr_rw_except_out *out, uint64_t to)
{
	struct elfrw_wbuf x = { 0 }, y = { 0 };
	dwr_lsda_pads p = { 0 }, q = { 0 };
	struct elfrw_image now;
	struct elfrw_section now_section[2];
	fake_image(&now, now_section, out->data, out->size);
	canon(img, va, &x, &p);
	canon(&now, to, &y, &q);
	assert_int_equal(x.len, y.len);
	assert_memory_equal(x.data, y.data, x.len);
	elfrw_wbuf_free(&x);
	elfrw_wbuf_free(&y);
	VEC_FREE(&p);
	VEC_FREE(&q);
}

/* Dead blocks go, and the rest keeps its meaning. Bytes that are no LSDA prevent this. */
static void test_compact(void **state)
{
	(void)state;
	struct elfrw_wbuf w = { 0 };
	uint64_t a = put(&w, &specs), b = put(&w, &first);
	elfrw_wbuf_bytes(&w, "\x01\0\0\0", 4); /* these bytes belong to b */
	uint64_t nameless = put(&w, &third), c = put(&w, &second);
	struct elfrw_image img;
	struct elfrw_section section[2];
	fake_image(&img, section, w.data, w.len);
	struct dwr_fde fde[] = {
		{ .pc_begin = FUNC, .pc_end = FUNC_END, .lsda = a },
		{ .pc_begin = FUNC + 0x100, .pc_end = FUNC_END + 0x100, .lsda = b },
		{ .pc_begin = FUNC + 0x200, .pc_end = FUNC_END + 0x200, .lsda = c },
	};
	struct dwr_cfi cfi = { .name = ".eh_frame", .is_eh = true, .fde = { fde, 3, 3 } };
	struct elfrw_addrmap_unit unit[] = {
		{ FUNC, FUNC + 0x100, FUNC, FUNC, 1, 0, ELFRW_UNIT_FOLDED },
		{ FUNC + 0x100, FUNC + 0x200, FUNC, FUNC, 1, 0, 0 },
		{ FUNC + 0x200, FUNC + 0x300, FUNC + 0x100, FUNC + 0x100, 2, 0, 0 },
	};
	struct elfrw_addrmap_section sec = { FUNC, FUNC + 0x300, FUNC, FUNC + 0x200, 1 };
	struct elfrw_addrmap map = { .unit = unit, .n_units = 3, .section = &sec, .n_sections = 1 };
	be_ok(elfrw_addrmap_finish(&map));
	struct dwr_rw_except_in in = {
		.img = &img, .cfi = &cfi, .map = &map, .shndx = 1, .va = TABLE
	};
	struct dwr_rw_except_out out;
	be_ok(dwr_rw_gcc_except(&in, &out));
	assert_true(out.compacted);
	assert_int_equal(out.n_live, 2);
	assert_int_equal(out.n_dead, 2);
	uint64_t to;
	assert_false(dwr_rw_moved(&out.moves, a, &to));
	assert_false(dwr_rw_moved(&out.moves, nameless, &to));
	assert_true(dwr_rw_moved(&out.moves, nameless - 4, &to));
	assert_int_equal(out.data[to - TABLE], 1);
	uint64_t lsda[2] = { b, c };
	for (int i = 0; i < 2; i++) {
		assert_true(dwr_rw_moved(&out.moves, lsda[i], &to));
		check_same(&img, lsda[i], &out, to);
	}
	dwr_rw_except_deinit(&out);
	/* Unknown bytes in front, where they can belong to no LSDA. */
	fde[0].lsda = 0;
	w.data[0] = 0x77;
	be_ok(dwr_rw_gcc_except(&in, &out));
	assert_false(out.compacted);
	assert_int_not_equal(out.unknown, 0);
	assert_int_equal(out.size, w.len);
	assert_memory_equal(out.data, w.data, w.len);
	dwr_rw_except_deinit(&out);
	in.va += 16;
	be_fails(dwr_rw_gcc_except(&in, &out), "cannot be moved");
	elfrw_blocks_deinit(&map.blocks);
	elfrw_wbuf_free(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_meaning), cmocka_unit_test(test_broken),
		cmocka_unit_test(test_lpstart), cmocka_unit_test(test_ranges),
		cmocka_unit_test(test_compact),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
