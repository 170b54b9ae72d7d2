/* arch.c: the generic code, from the image to the proof, on programs of an architecture that
 * does not exist (tests/unit/make/arch.h). What works here works without knowledge of x86-64's
 * encodings. */
#include "tests/unit/make/toy.h"

/* Two functions that differ only in where their references stand fold. Functions whose references
 * have other targets do not. */
static void test_fold(void **state)
{
	(void)state;
	struct toy *t = calloc(1, sizeof *t);
	struct folded f = { 0 };
	assert_non_null(t);
	toy_init(t);
	uint64_t g1 = leaf(t, "g1", 12, 1), h = leaf(t, "h", 12, 2), fn[6];
	static const char *const names[] = { "f1", "f2", "f3", "f4", "f5", "f6" };
	uint64_t g2 = 0;
	for (unsigned i = 0; i < 6; i++) {
		if (i == 1)
			g2 = leaf(t, "g2", 12, 1);
		for (unsigned k = 0; k < 4 * i; k++) /* each begins elsewhere in its page */
			put(t, TOY_WORD(TOY_NOP, 0, 0));
		fn[i] = begin(t, names[i]);
		name(t, TOY_PAGE, 1, DATA + (i == 2 ? 0x1000 : 0)); /* f3: another page */
		name(t, TOY_LOW, 1, DATA + (i == 3 ? 72 : 64)); /* f4: another offset in the page */
		name(t, TOY_LOAD, 2, DATA + (i == 4 ? 68 : 64));   /* f5: other data */
		name(t, TOY_BL, 0, i == 5 ? h : i == 1 ? g2 : g1); /* f6: another callee */
		name(t, TOY_BC, 0, fn[i] + 4);
		filler(t, 8, 9);
		end(t);
	}
	toy_save(t, NULL, 0, f.in);
	fold_good(&f, "--icf=all", NULL);
	assert_true(goes_into(&f, g2, g1));
	assert_true(goes_into(&f, fn[1], fn[0]));
	for (unsigned i = 2; i < 6; i++)
		assert_true(goes_into(&f, fn[i], fn[i]));
	assert_true(unit(&f, fn[5])->body < fn[5]);
	/* All references still name their targets. */
	for (unsigned i = 0; i < 6; i++) {
		uint64_t at = unit(&f, fn[i])->body;
		assert_int_equal(named(&f, at, TOY_PAGE), DATA + (i == 2 ? 0x1000 : 0));
		assert_int_equal(named(&f, at + 8, TOY_LOAD), DATA + (i == 4 ? 68 : 64));
		assert_int_equal(named(&f, at + 12, TOY_BL), unit(&f, i == 5 ? h : g1)->body);
		assert_int_equal(named(&f, at + 16, TOY_BC), at + 4);
	}
	close_folded(&f);
	free(t);
}

/* The address of a folded function that is observed is that of its thunk. Gaps are filled with
 * whole traps. */
static void test_thunk(void **state)
{
	(void)state;
	static const char *const more[] = { NULL, "--in-place", "--emit-relocs" };
	for (int k = 0; k < 6; k++) {
		int pad = k & 1;
		struct toy *t = calloc(1, sizeof *t);
		struct folded f = { 0 };
		assert_non_null(t);
		toy_init(t);
		uint64_t fn[3];
		static const char *const names[] = { "f1", "f2", "f3" };
		for (unsigned i = 0; i < 3; i++) {
			fn[i] = begin(t, names[i]);
			if (pad)
				put(t, TOY_WORD(TOY_PAD, 0, 0));
			filler(t, 20, 1);
			end(t);
			leaf(t, i ? i == 1 ? "h2" : "h3" : "h1", 5 + i, 4 + i);
		}
		toy_save(t, fn, 3, f.in);
		fold_good(&f, "--icf=safe", more[k / 2]);
		assert_true(goes_into(&f, fn[1], fn[0]) && goes_into(&f, fn[2], fn[0]));
		for (unsigned i = 0; i < 3; i++) {
			const struct elfrw_addrmap_unit *m = unit(&f, fn[i]);
			const uint8_t *word = elfrw_image_at(&f.img, DATA + i * 8, 8);
			assert_int_equal(elfrw_get64(word), m->entry);
			assert_int_equal(m->entry == m->body, i == 0);
			struct elfrw_thunk_read r;
			if (i) {
				unsigned n = toy_read_thunk(
					elfrw_image_at(&f.img, m->entry, 4 + 4 * (unsigned)pad),
					4 + 4 * (unsigned)pad, m->entry, &r);
				assert_int_equal(n, 4 + 4 * pad);
				assert_int_equal(r.target, m->body);
				assert_int_equal(r.endbr, pad);
			}
		}
		close_folded(&f);
		free(t);
	}
}

/* A folded part that would be out of its parent's reach stays. */
static void test_reach(void **state)
{
	(void)state;
	for (int k = 0; k < 4; k++) {
		int far = k & 1;
		struct toy *t = calloc(1, sizeof *t);
		struct folded f = { 0 };
		assert_non_null(t);
		toy_init(t);
		uint64_t c1 = leaf(t, "c1", 20, 1);
		uint64_t d1 = leaf(t, "d1", 20, 4);
		leaf(t, "filler", far ? 9000 : 100, 2);
		uint64_t at = begin(t, "f");
		name(t, TOY_BC, 0, here(t) + 12 * 4);
		filler(t, 10, 3);
		end(t);
		uint64_t c2 = leaf(t, "c2", 20, 1);
		assert_int_equal(c2, at + 12 * 4);
		uint64_t d2 = leaf(t, "d2", 20, 4);
		toy_save(t, NULL, 0, f.in);
		fold_good(&f, "--icf=all", k & 2 ? "--in-place" : NULL);
		assert_int_equal(goes_into(&f, c2, c1), !far);
		assert_int_equal(named(&f, unit(&f, at)->body, TOY_BC),
				 unit(&f, far ? c2 : c1)->body);
		/* d2, to which no such branch leads, folds in any case. */
		assert_true(goes_into(&f, d2, d1));
		close_folded(&f);
		free(t);
	}
}

/* Functions of one class, whose cold parts equal a function far away. If a part is folded into it,
 * a branch to the part falls short; each round of the plan finds the next one. In the end all stay.
 */
static void test_rounds(void **state)
{
	(void)state;
	static const char *const names[] = { "f0", "f1", "f2", "f3", "f4", "f5", "f6", "f7" };
	struct toy *t = calloc(1, sizeof *t);
	struct folded f = { 0 };
	assert_non_null(t);
	toy_init(t);
	uint64_t c = leaf(t, "c", 20, 1), at[8];
	leaf(t, "filler", 9000, 2);
	for (unsigned i = 0; i < 8; i++) {
		at[i] = begin(t, names[i]);
		name(t, TOY_BC, 0, here(t) + 12 * 4);
		filler(t, 10, 3);
		end(t);
		assert_int_equal(leaf(t, "part", 20, 1), at[i] + 12 * 4);
	}
	toy_save(t, NULL, 0, f.in);
	fold_good(&f, "--icf=all", NULL);
	for (unsigned i = 0; i < 8; i++)
		assert_true(goes_into(&f, at[i], at[i]) && !goes_into(&f, at[i] + 48, c));
	close_folded(&f);
	free(t);
}

/* Without relocations: a switch whose table has one byte for each case, or two, counted from a
 * label.  A jump that is not understood pins the function. */
static void test_small_table(void **state)
{
	(void)state;
	for (int k = 0; k < 6; k++) {
		bool half = k % 2, compared = k < 4, right = k < 2 || k >= 4;
		struct toy *t = calloc(1, sizeof *t);
		struct folded f = { 0 };
		assert_non_null(t);
		toy_init(t);
		t->shared = true;
		uint64_t g1 = leaf(t, "g1", 20, 1), g2 = leaf(t, "g2", 20, 1), at = begin(t, "f");
		put(t, compared ? TOY_WORD(TOY_CMP, 0, 20) | 3 << 10 : TOY_WORD(TOY_NOP, 0, 0));
		name(t, TOY_BC, 1, at + 4 * 12);
		name(t, TOY_PAGE, 18, DATA);
		name(t, TOY_LOW, 18, DATA + 64);
		put(t, TOY_WORD(half ? TOY_HALF : TOY_BYTE, 19, 18) | 20 << 10);
		name(t, TOY_ADR, 17, at + 4 * 8);
		put(t, TOY_WORD(TOY_SHIFTED, 19, 17) | 19 << 10);
		put(t, TOY_WORD(TOY_JR, 0, 19));
		filler(t, 4, 3);
		end(t);
		for (unsigned c = 0; c < 4; c++) {
			/* The last case leads elsewhere, or it is none: nothing says that there are
			 * four. */
			uint8_t n = k < 2 || c < 3 ? (uint8_t)(4 - c) : 60;
			t->bytes[64 + (half ? 2 * c : c)] = n;
		}
		toy_save(t, NULL, 0, f.in);
		fold_good(&f, "--icf=all", NULL);
		assert_true(goes_into(&f, g2, g1));
		if ((unit(&f, at)->body == at) == right)
			fail_msg("case %d: the function %s", k, right ? "stays" : "moves");
		close_folded(&f);
		free(t);
	}
}

/* Bits of the output are changed, one at a time and each in another kind of field. The verifier
 * finds every change. */
static void test_verify(void **state)
{
	(void)state;
	struct toy *t = calloc(1, sizeof *t);
	struct folded f = { 0 };
	assert_non_null(t);
	toy_init(t);
	leaf(t, "a", 12, 1);
	uint64_t g = leaf(t, "b", 12, 1), fn = begin(t, "f");
	name(t, TOY_PAGE, 1, DATA);
	name(t, TOY_LOW, 1, DATA + 64);
	name(t, TOY_LOAD, 2, DATA + 64);
	name(t, TOY_BL, 0, g);
	filler(t, 8, 9);
	end(t);
	toy_save(t, NULL, 0, f.in);
	fold_good(&f, "--icf=all", NULL);
	uint64_t at = unit(&f, fn)->body, off;
	assert_true(at != fn);
	assert_true(elfrw_output_offset(&f.run.out, at, &off));
	/* Lowest bit of each field; then bits beside it: register, operation. */
	static const struct {
		unsigned insn, bit;
	} flip[] = { { 0, 24 }, { 0, 5 }, { 1, 10 }, { 2, 5 },  { 3, 0 },
		     { 0, 0 },  { 1, 5 }, { 2, 1 },  { 3, 26 }, { 5, 7 } };
	for (size_t i = 0; i < sizeof flip / sizeof *flip; i++) {
		int fd = open(f.out, O_RDWR);
		uint8_t byte;
		off_t place = (off_t)(off + 4 * flip[i].insn + flip[i].bit / 8);
		assert_int_equal(pread(fd, &byte, 1, place), 1);
		byte ^= (uint8_t)(1u << flip[i].bit % 8);
		assert_int_equal(pwrite(fd, &byte, 1, place), 1);
		enum icf_verify_check check = ICF_VC_CHECKS;
		if (!verify(&f, &check))
			fail_msg("bit %u of instruction %u is not seen", flip[i].bit, flip[i].insn);
		byte ^= (uint8_t)(1u << flip[i].bit % 8);
		assert_int_equal(pwrite(fd, &byte, 1, place), 1);
		close(fd);
	}
	assert_int_equal(verify(&f, NULL), 0);
	close_folded(&f);
	free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fold),        cmocka_unit_test(test_thunk),
		cmocka_unit_test(test_reach),       cmocka_unit_test(test_rounds),
		cmocka_unit_test(test_small_table), cmocka_unit_test(test_verify),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
