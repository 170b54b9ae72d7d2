/* form.c: fields of references: whole words, packed, scaled and split ones, pairs. */
#include "tests/unit/make/arch.h"
#include "tests/unit/make/err_check.h"

/* Writes the distance from PLACE to TARGET into a field among zeros, and into one among ones, and
 * reads it back. */
static void round_trip(const struct elfrw_form *f, uint64_t place, uint64_t target)
{
	for (int ones = 0; ones < 2; ones++) {
		uint8_t p[8], before[8], blank[8];
		memset(p, ones ? 0xff : 0, sizeof p);
		memcpy(before, p, sizeof p);
		if (!elfrw_form_write(f, p, place, target))
			fail_msg("%s: %#lx does not fit from %#lx", f->name, (unsigned long)target,
				 (unsigned long)place);
		uint64_t from = f->base == ELFRW_BASE_IN_PAGE ? target & ~UINT64_C(0xfff) : place;
		uint64_t want = f->base == ELFRW_BASE_PAGE ? target & ~UINT64_C(0xfff) : target;
		assert_int_equal(elfrw_form_read(f, p, from), want);
		/* The bits beside the field are unchanged. */
		assert_true(elfrw_form_same_rest(f, p, before));
		elfrw_form_blank(f, p);
		memcpy(blank, before, sizeof p);
		elfrw_form_blank(f, blank);
		assert_memory_equal(p, blank, sizeof p);
	}
}

static void refuses(const struct elfrw_form *f, uint64_t place, uint64_t target)
{
	uint8_t p[8] = { 1, 2, 3, 4, 5, 6, 7, 8 }, was[8];
	memcpy(was, p, sizeof p);
	if (elfrw_form_write(f, p, place, target))
		fail_msg("%s: %#lx fits from %#lx", f->name, (unsigned long)target,
			 (unsigned long)place);
	assert_memory_equal(p, was, sizeof p);
}

static void test_packed(void **state)
{
	(void)state;
	const struct elfrw_form *b = &toy_forms[TOY_F_B], *bc = &toy_forms[TOY_F_BC],
				*load = &toy_forms[TOY_F_LOAD];
	uint64_t at = UINT64_C(0x40000000);
	for (int64_t far = 4; far < 1 << 27; far *= 3) {
		round_trip(b, at, at + (uint64_t)(far & ~3));
		round_trip(b, at, at - (uint64_t)(far & ~3));
	}
	round_trip(b, at, at + (1u << 27) - 4);
	refuses(b, at, at + (1u << 27));
	round_trip(b, at, at - (1u << 27));
	refuses(b, at, at - (1u << 27) - 4);
	refuses(b, at, at + 2); /* no multiple of four */
	assert_int_equal(elfrw_form_reach(b), (1u << 27) - 1);
	round_trip(bc, at, at + 32764);
	refuses(bc, at, at + 32768);
	round_trip(bc, at, at - 32768);
	refuses(bc, at, at - 32772);
	round_trip(load, at, at + (1u << 20) - 4);
	refuses(load, at, at + (1u << 20));
	/* By hand: the field of branch14 begins at bit 5. */
	uint8_t p[4] = { 0 };
	assert_true(elfrw_form_write(bc, p, 0x1000, 0x1008));
	assert_int_equal(elfrw_get32(p), 2 << 5);
	assert_true(elfrw_form_write(bc, p, 0x1008, 0x1000));
	assert_int_equal(elfrw_get32(p), 0x3ffe << 5);
	uint8_t q[4] = { 0, 0, 0, 0x80 };
	assert_false(elfrw_form_same_rest(bc, p, q));
	assert_int_equal(elfrw_form_mask(bc), 0x3fff << 5);
}

static void test_pair(void **state)
{
	(void)state;
	const struct elfrw_form *page = &toy_forms[TOY_F_PAGE], *low = &toy_forms[TOY_F_LOW];
	assert_true(elfrw_form_is_high(page) && elfrw_form_is_low(low));
	static const uint64_t target[] = { 0x400000, 0x400ff8, 0x40fff8, 0x3ff008, 0x12345678 };
	for (size_t i = 0; i < sizeof target / sizeof *target; i++)
		for (uint64_t place = 0x400000; place < 0x402000; place += 0x3fc) {
			round_trip(page, place, target[i]);
			round_trip(low, place, target[i]);
			uint8_t h[4] = { 0 }, l[4] = { 0 };
			assert_true(elfrw_form_write(page, h, place, target[i]));
			assert_true(elfrw_form_write(low, l, place, target[i]));
			assert_int_equal(elfrw_form_read(low, l, elfrw_form_read(page, h, place)),
					 target[i]);
		}
	refuses(low, 0x400000, 0x400004); /* no multiple of eight */
	/* The two lowest bits of the number of pages stand above the others. */
	uint8_t p[4] = { 0 };
	assert_true(elfrw_form_write(page, p, 0x400ffc, 0x407000));
	assert_int_equal(elfrw_get32(p), 3u << 24 | 1u << 5);
	assert_true(elfrw_form_write(page, p, 0x400ffc, 0x3ff008));
	assert_int_equal(elfrw_get32(p), 3u << 24 | 0x7ffffu << 5);
	refuses(page, 0, UINT64_C(1) << 32);
}

/* As RISC-V has it: the low half is signed, and counts from the high half. */
static void test_remainder(void **state)
{
	(void)state;
	static const struct elfrw_form high = { "hi20",           4,  20,   0,
						ELFRW_BASE_HIGH,  12, true, 1,
						{ { 12, 0, 20 } } },
				       low = { "lo12s",
					       4,
					       12,
					       0,
					       ELFRW_BASE_REMAINDER,
					       12,
					       true,
					       2,
					       { { 25, 5, 7 }, { 7, 0, 5 } } };
	uint64_t place = 0x400abc;
	for (int64_t d = -0x12345; d < 0x12345; d += 0x7b) {
		uint64_t target = place + (uint64_t)d;
		uint8_t h[4] = { 0 }, l[4] = { 0x7f, 0, 0, 0 };
		assert_true(elfrw_form_write(&high, h, place, target));
		assert_true(elfrw_form_write(&low, l, place, target));
		assert_int_equal(elfrw_form_read(&low, l, elfrw_form_read(&high, h, place)),
				 target);
		assert_int_equal(l[0] & 0x7f, 0x7f);
	}
}

static void test_words(void **state)
{
	(void)state;
	const struct elfrw_arch *a = elfrw_arch_for(EM_X86_64);
	assert_non_null(a);
	struct elfrw_insn in = { .pcrel_size = 4 };
	const struct elfrw_form *rel32 = &a->form[a->pcrel_form(&in)];
	in.pcrel_size = 1;
	const struct elfrw_form *rel8 = &a->form[a->pcrel_form(&in)];
	round_trip(rel32, 0x401000, 0x401005);
	round_trip(rel32, 0x401000, 0x1000);
	round_trip(rel32, 0x401000, 0x401000 + UINT64_C(0x7fffffff));
	refuses(rel32, 0x401000, 0x401001 + UINT64_C(0x7fffffff));
	round_trip(rel8, 0x401000, 0x40107f);
	refuses(rel8, 0x401000, 0x401080);
	round_trip(rel8, 0x401000, 0x400f80);
	assert_true(elfrw_form_reach(rel8) <= a->near_reach);
	assert_true(elfrw_form_reach(rel32) > a->near_reach);
	const struct elfrw_form *u32 = &a->form[a->address_form(4, false)],
				*s32 = &a->form[a->address_form(4, true)],
				*u64 = &a->form[a->address_form(8, false)];
	round_trip(u32, 0, 0xffffffff);
	refuses(u32, 0, 0x100000000);
	round_trip(s32, 0, 0x7fffffff);
	round_trip(s32, 0, 0xffffffff80000000);
	refuses(s32, 0, 0x80000000);
	round_trip(u64, 0, UINT64_MAX);
	assert_int_equal(a->address_form(2, false), 0);
	for (unsigned i = 0; i < a->n_forms; i++)
		assert_int_equal(a->form[i].width, 8 * a->form[i].bytes);
}

static void test_arch(void **state)
{
	(void)state;
	/* The shortest thunk that reaches, with and without a landing pad; what was written is what
	 * is read. */
	static const struct {
		uint64_t to;
		unsigned size;
	} want[] = {
		{ 0x40402000, 4 }, { 0x47ffffff & ~7u, 4 }, { 0x50000000, 12 }, { 0x30000008, 12 }
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		for (int pad = 0; pad < 2; pad++) {
			uint8_t code[16];
			struct elfrw_thunk_read r;
			struct elfrw_thunk t = toy_thunk(code, 0x40401000, want[i].to, pad);
			assert_int_equal(t.size, want[i].size + 4 * pad);
			assert_int_equal(toy_read_thunk(code, t.size, 0x40401000, &r), t.size);
			assert_int_equal(r.target, want[i].to);
			assert_int_equal(r.endbr, pad);
			assert_int_equal(r.branch, 4 * pad);
		}
	assert_int_equal(toy_thunk(NULL, 0, UINT64_C(1) << 40, false).size, 0);
	uint8_t gap[12];
	elfrw_fill(&toy_arch, gap, 0x1000, sizeof gap);
	struct elfrw_insn in;
	for (unsigned i = 0; i < sizeof gap; i += 4) {
		assert_int_equal(toy_decode(gap + i, 4, 0x1000 + i, &in), 4);
		assert_int_equal(in.kind, ELFRW_INSN_TRAP);
	}
	for (unsigned i = 0; i < sizeof gap; i++)
		assert_int_equal(gap[i], elfrw_fill_byte(&toy_arch, 0x1000 + i));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_packed),    cmocka_unit_test(test_pair),
		cmocka_unit_test(test_remainder), cmocka_unit_test(test_words),
		cmocka_unit_test(test_arch),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
