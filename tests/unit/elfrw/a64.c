/* a64.c: the tables of AArch64: forms, relocations, thunks, entries of procedure linkage tables,
 * and what the verifier knows.  Words are as GNU as writes them. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/rbuf.h"

static const struct elfrw_arch *const a64 = &elfrw_arch_aarch64;

#define AT UINT64_C(0x411ff8)

static uint8_t low_form(uint32_t word)
{
	uint8_t code[4];
	struct elfrw_insn in;
	elfrw_put32(code, word);
	assert_int_equal(a64->decode(code, 4, AT, &in), 4);
	return a64->low_form(&in, code);
}

/* The PC-relative field of WORD at AT names TARGET, reaches REACH, and is written. */
static void check_pcrel(uint32_t word, uint64_t target, uint64_t reach)
{
	uint8_t code[4];
	struct elfrw_insn in;
	elfrw_put32(code, word);
	assert_int_equal(a64->decode(code, 4, AT, &in), 4);
	const struct elfrw_form *f = &a64->form[a64->pcrel_form(&in)];
	uint64_t unit = f->base == ELFRW_BASE_PAGE ? 4096 : (uint64_t)1 << f->shift;
	assert_int_equal(in.target, target);
	assert_int_equal(elfrw_form_read(f, code, AT), target);
	assert_int_equal(elfrw_form_reach(f), reach);
	assert_true(elfrw_form_write(f, code, AT, target + 16 * unit));
	assert_true(a64->decode(code, 4, AT, &in) && in.target == target + 16 * unit);
	assert_false(elfrw_form_write(f, code, AT, AT + reach + 2 * unit));
	assert_true(elfrw_form_write(f, code, AT, target));
	assert_int_equal(elfrw_get32(code), word);
}

static void test_forms(void **state)
{
	(void)state;
	check_pcrel(0x14000002, AT + 8, (128 << 20) - 1);           /* b */
	check_pcrel(0x97ffffff, AT - 4, (128 << 20) - 1);           /* bl */
	check_pcrel(0x54000040, AT + 8, (1 << 20) - 1);             /* b.eq */
	check_pcrel(0xb4000040, AT + 8, (1 << 20) - 1);             /* cbz */
	check_pcrel(0x58000041, AT + 8, (1 << 20) - 1);             /* ldr x1, literal */
	check_pcrel(0x36080040, AT + 8, (32 << 10) - 1);            /* tbz */
	check_pcrel(0x70000001, AT + 3, (1 << 20) - 1);             /* adr */
	check_pcrel(0xb0000001, 0x412000, (UINT64_C(4) << 30) - 1); /* adrp, one page on */
	check_pcrel(0xf0ffffe1, 0x410000 - 4096 + 4096, (UINT64_C(4) << 30) - 1); /* and back */
}

static void test_low(void **state)
{
	(void)state;
	uint8_t add = low_form(0x91004020); /* add x0, x1, #16 */
	assert_int_equal(a64->form[add].shift, 0);
	assert_int_equal(a64->form[low_form(0x39404020)].shift, 0); /* ldrb w0, [x1, #16] */
	assert_int_equal(a64->form[low_form(0x79402020)].shift, 1);
	assert_int_equal(a64->form[low_form(0xb9401020)].shift, 2);
	assert_int_equal(a64->form[low_form(0xf9400820)].shift, 3);
	assert_int_equal(a64->form[low_form(0xf9000820)].shift, 3); /* str x0, [x1, #16] */
	assert_int_equal(a64->form[low_form(0x3dc00420)].shift, 4); /* ldr q0, [x1, #16] */
	assert_int_equal(low_form(0x91404020), 0);                  /* shifted by 12 */
	assert_int_equal(low_form(0xd1004020), 0);                  /* sub */
	assert_int_equal(low_form(0x11004020), 0);                  /* of 32 bits */
	assert_int_equal(low_form(0xf9000821), 0); /* str x1, [x1, #16]: it stores the half */
	assert_int_equal(low_form(0xf9480020), 0); /* ldr x0, [x1, #4096]: behind the page */
	assert_int_equal(low_form(0xf8410020), 0); /* ldur */
}

static void test_relocs(void **state)
{
	(void)state;
	static const struct {
		uint32_t type;
		enum elfrw_reloc_kind kind;
	} want[] = {
		{ R_AARCH64_CALL26, ELFRW_RELOC_PCREL },
		{ R_AARCH64_ADR_PREL_PG_HI21, ELFRW_RELOC_PCREL },
		{ R_AARCH64_LDST64_ABS_LO12_NC, ELFRW_RELOC_LOW },
		{ R_AARCH64_MOVW_UABS_G3, ELFRW_RELOC_PART },
		{ R_AARCH64_LD64_GOT_LO12_NC, ELFRW_RELOC_GOTPCREL },
		{ R_AARCH64_TLSDESC_CALL, ELFRW_RELOC_TLS },
		{ R_AARCH64_IRELATIVE, ELFRW_RELOC_IRELATIVE },
		{ 314, ELFRW_RELOC_PCREL }, /* R_AARCH64_PLT32 */
		{ R_AARCH64_MOVW_PREL_G0, ELFRW_RELOC_HARD },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++)
		assert_int_equal(a64->reloc(want[i].type).kind, want[i].kind);
	assert_null(a64->reloc(400).name);
	assert_null(a64->reloc(9999).name);
}

static void test_thunk(void **state)
{
	(void)state;
	uint8_t code[8];
	struct elfrw_thunk_read r;
	for (int pad = 0; pad < 2; pad++) {
		struct elfrw_thunk t = a64->thunk(code, AT, AT + 0x1000, pad);
		assert_int_equal(t.size, pad ? 8 : 4);
		assert_int_equal(t.reloc[0].off, pad ? 4 : 0);
		assert_int_equal(a64->read_thunk(code, 8, AT, &r), t.size);
		assert_true(r.target == AT + 0x1000 && r.endbr == pad && r.branch == t.size - 4);
		assert_int_equal(elfrw_get32(code), pad ? 0xd503245f : 0x14000400);
		assert_int_equal(a64->read_thunk(code, t.size - 4, AT, &r), 0);
	}
	assert_int_equal(a64->thunk(NULL, AT, AT + (128 << 20), false).size, 0);
	/* paciasp is a landing pad, too, but no thunk begins with one. */
	elfrw_put32(code, 0xd503233f);
	elfrw_put32(code + 4, 0x14000400);
	assert_int_equal(a64->read_thunk(code, 8, AT, &r), 0);
}

static void test_stub(void **state)
{
	(void)state;
	/* [bti c]; adrp x16, 0x420000; ldr x17, [x16, #16]; add x16, x16, #16; br x17 */
	static const uint32_t words[] = { 0xd503245f, 0xf0000070, 0xf9400a11, 0x91004210,
					  0xd61f0220 };
	uint8_t code[sizeof words];
	for (size_t i = 0; i < 5; i++)
		elfrw_put32(code + 4 * i, words[i]);
	uint64_t slot;
	for (unsigned skip = 0; skip < 2; skip++) {
		assert_true(a64->read_stub(code + 4 * skip, sizeof code - 4 * skip,
					   0x411000 + 4 * skip, &slot));
		assert_int_equal(slot, 0x420010);
	}
	assert_false(a64->read_stub(code, sizeof code - 4, 0x411000, &slot));
	elfrw_put32(code + 8, 0xf9400a12); /* x18 */
	assert_false(a64->read_stub(code, sizeof code, 0x411000, &slot));
}

/* Erratum 843419; both tables say the same. */
static void test_hazard(void **state)
{
	(void)state;
	/* adrp x0; ldr x1, [x2]; add x3, x3, #1; ldr x4, [x0, #8] */
	static const uint32_t words[] = { 0x90000000, 0xf9400041, 0x91000463, 0xf9400404 };
	uint8_t code[16];
	for (unsigned change = 0; change < 6; change++)
		for (uint64_t va = 0x1fe8; va < 0x2010; va += 4) {
			for (size_t i = 0; i < 4; i++)
				elfrw_put32(code + 4 * i, words[i]);
			if (change == 1) /* add instead of the first access */
				elfrw_put32(code + 4, 0x91000441);
			if (change == 2) /* from another register */
				elfrw_put32(code + 12, 0xf9400424);
			if (change == 3) /* adr */
				elfrw_put32(code, 0x10000000);
			if (change == 4) /* without the one between */
				elfrw_put32(code + 8, 0xf9400404);
			size_t avail = change == 5 ? 8 : 16;
			bool want = (change == 0 || change == 4) && (va & 0xfff) >= 0xff8;
			assert_int_equal(a64->hazard(code, avail, va), want);
			assert_int_equal(a64->judge->hazard(code, avail, va), want);
		}
}

/* What the verifier knows of halves: the register that a low half belongs to, all that is read, all
 * that is written. */
static void test_half(void **state)
{
	(void)state;
	static const struct {
		uint32_t word, reads, writes;
		bool low;
	} want[] = {
		{ 0x90000001, 0, 1 << 1, false },               /* adrp x1 */
		{ 0x91004020, 0, 1 << 0, true },                /* add x0, x1, #16 */
		{ 0xf9400820, 0, 1 << 0, true },                /* ldr x0, [x1, #16] */
		{ 0xf9000821, 1 << 1, 0, true },                /* str x1, [x1, #16] */
		{ 0x8b020020, 1 << 1 | 1 << 2, 1 << 0, false }, /* add x0, x1, x2 */
		{ 0xa9410820, 1 << 1, 1 << 0 | 1 << 2, false }, /* ldp x0, x2, [x1] */
		{ 0xaa0103e0, 1 << 1, 1 << 0, false },          /* mov x0, x1 */
		{ 0xf2a00020, 1 << 0, 1 << 0, false },          /* movk x0 */
		{ 0xd503201f, 0, 0, false },                    /* nop */
		{ 0xb4000041, 1 << 1, 0, false },               /* cbz x1 */
		{ 0xd61f0020, 1 << 1, 0, false },               /* br x1 */
		{ 0x9e670020, 1 << 1, 0, false },               /* fmov d0, x1 */
		{ 0x9e660020, 0, 1 << 0, false },               /* fmov x0, d1 */
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		uint8_t code[4];
		struct elfrw_insn in;
		struct elfrw_half_use use;
		elfrw_put32(code, want[i].word);
		assert_int_equal(a64->decode(code, 4, AT, &in), 4);
		assert_true(a64->judge->half(&in, code, &use));
		if (use.reads != want[i].reads || use.writes != want[i].writes ||
		    (use.low != 0) != want[i].low || (use.low && use.base != 1))
			fail_msg("%08x: %x %x %d", want[i].word, use.reads, use.writes, use.low);
	}
	/* A supervisor call may do anything. */
	uint8_t code[4];
	struct elfrw_insn in = { 0 };
	struct elfrw_half_use use;
	elfrw_put32(code, 0xd4000001);
	assert_false(a64->judge->half(&in, code, &use));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),  cmocka_unit_test(test_low),
		cmocka_unit_test(test_relocs), cmocka_unit_test(test_thunk),
		cmocka_unit_test(test_stub),   cmocka_unit_test(test_hazard),
		cmocka_unit_test(test_half),
	};
	return cmocka_run_group_tests_name("a64", tests, NULL, NULL);
}
