/* a64_effect.c: what AArch64 instructions do, on words that GNU as made: those that jump tables,
 * virtual calls and spilled values are read from, and those whose registers are easily mistaken. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/arch/arch.h"
#include "elfrw/arch/effect.h"
#include "elfrw/base/rbuf.h"

enum { NO = ELFRW_REG_NONE, SP = 31 };
#define R(n) (1u << (n))

static struct elfrw_effect effect(uint32_t word, struct elfrw_insn *in)
{
	uint8_t code[4];
	struct elfrw_effect e;
	elfrw_put32(code, word);
	assert_int_equal(elfrw_a64_decode(code, sizeof code, 0x1000, in), 4);
	elfrw_aarch64_model.effect(in, code, &e);
	return e;
}

struct row {
	uint32_t word;
	uint8_t op, width, dst, a, b, flags, shift, from;
	uint32_t reads, writes;
	int64_t imm, disp;
};

static void check(const struct row *r, size_t n)
{
	for (size_t i = 0; i < n; i++, r++) {
		struct elfrw_insn in;
		struct elfrw_effect e = effect(r->word, &in);
		if (e.op != r->op || e.width != r->width || e.dst != r->dst || e.a != r->a ||
		    e.b != r->b || (e.flags & ~ELFRW_EFFECT_FLAGS) != r->flags ||
		    e.shift != r->shift)
			fail_msg("%08x: op %u width %u dst %u a %u b %u flags %u shift %u", r->word,
				 e.op, e.width, e.dst, e.a, e.b, e.flags, e.shift);
		if (e.reads != r->reads || e.writes != r->writes || e.imm != r->imm ||
		    e.disp != r->disp || (r->from && e.from != r->from))
			fail_msg("%08x: reads %#x writes %#x imm %lld disp %lld from %u", r->word,
				 e.reads, e.writes, (long long)e.imm, (long long)e.disp, e.from);
	}
}

#define CHECK(...)                                                \
	do {                                                      \
		static const struct row rows[] = { __VA_ARGS__ }; \
		check(rows, sizeof rows / sizeof *rows);          \
	} while (0)

enum {
	LOADS = ELFRW_EFFECT_LOADS,
	STORES = ELFRW_EFFECT_STORES,
	IMM = ELFRW_EFFECT_IMM,
	SIGN = ELFRW_EFFECT_SIGN
};

static void sums(void **state)
{
	(void)state;
	CHECK(/* add x0, x1, 0x123 */
	      { 0x91048c20, ELFRW_OP_ADD, 8, 0, 1, NO, IMM, 0, 0, R(1), R(0), 0x123, 0 },
	      /* sub sp, sp, 1, lsl 12 */
	      { 0xd14007ff, ELFRW_OP_SUB, 8, SP, SP, NO, IMM, 0, 0, R(SP), R(SP), 0x1000, 0 },
	      /* mov x29, sp */
	      { 0x910003fd, ELFRW_OP_MOV, 8, 29, SP, NO, 0, 0, 0, R(SP), R(29), 0, 0 },
	      /* cmp w0, 5; cmp x1, x2; cmp x1, xzr; cmn w0, 1 */
	      { 0x7100141f, ELFRW_OP_CMP, 4, NO, 0, NO, IMM, 0, 0, R(0), 0, 5, 0 },
	      { 0xeb02003f, ELFRW_OP_CMP, 8, NO, 1, 2, 0, 0, 0, R(1) | R(2), 0, 0, 0 },
	      { 0xeb1f003f, ELFRW_OP_CMP, 8, NO, 1, NO, IMM, 0, 0, R(1), 0, 0, 0 },
	      { 0x3100041f, ELFRW_OP_OTHER, 4, NO, 0, NO, IMM, 0, 0, R(0), 0, 1, 0 },
	      /* add x0, x1, x2, lsl 2; add x0, x1, x2, lsr 2; sub x0, x1, x2, lsl 2 */
	      { 0x8b020820, ELFRW_OP_ADD, 8, 0, 1, 2, 0, 2, 0, R(1) | R(2), R(0), 0, 0 },
	      { 0x8b420820, ELFRW_OP_SUM, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2), R(0), 0, 0 },
	      { 0xcb020820, ELFRW_OP_SUM, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2), R(0), 0, 0 },
	      /* add x0, x1, w0, sxtb 2; add x0, x1, w2, uxtw; add x0, sp, x2, lsl 3 */
	      { 0x8b208820, ELFRW_OP_ADD_PART, 8, 0, 1, 0, SIGN, 2, 1, R(0) | R(1), R(0), 0, 0 },
	      { 0x8b224020, ELFRW_OP_ADD_PART, 8, 0, 1, 2, 0, 0, 4, R(1) | R(2), R(0), 0, 0 },
	      { 0x8b226fe0, ELFRW_OP_ADD, 8, 0, SP, 2, 0, 3, 0, R(SP) | R(2), R(0), 0, 0 },
	      /* neg x0, x1; adc x0, x1, x2 */
	      { 0xcb0103e0, ELFRW_OP_NEG, 8, 0, 1, NO, 0, 0, 0, R(1), R(0), 0, 0 },
	      { 0x9a020020, ELFRW_OP_SUM, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2), R(0), 0, 0 },
	      /* mul x0, x1, x2; madd x0, x1, x2, x3 */
	      { 0x9b027c20, ELFRW_OP_MUL, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2), R(0), 0, 0 },
	      { 0x9b020c20, ELFRW_OP_SUM, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2) | R(3), R(0), 0, 0 },
	      /* csel x0, x1, x2, eq; csinc x0, x1, x2, eq; csel x0, x1, xzr, eq */
	      { 0x9a820020, ELFRW_OP_CHOOSE, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2), R(0), 0, 0 },
	      { 0x9a820420, ELFRW_OP_SUM, 8, 0, 1, 2, 0, 0, 0, R(1) | R(2), R(0), 0, 0 },
	      { 0x9a9f0020, ELFRW_OP_SUM, 8, 0, 1, NO, 0, 0, 0, R(1), R(0), 0, 0 });
}

static void numbers(void **state)
{
	(void)state;
	CHECK(/* movz x0, 0x1234, lsl 16; movn w0, 0; movk x0, 5 */
	      { 0xd2a24680, ELFRW_OP_MOV, 8, 0, NO, NO, IMM, 0, 0, 0, R(0), 0x12340000, 0 },
	      { 0x12800000, ELFRW_OP_MOV, 4, 0, NO, NO, IMM, 0, 0, 0, R(0), -1, 0 },
	      { 0xf28000a0, ELFRW_OP_OTHER, 8, 0, 0, NO, 0, 0, 0, R(0), R(0), 0, 0 },
	      /* mov x0, x1; mov x0, xzr; mov x0, 0xff00ff00ff00ff00; mvn x0, x1 */
	      { 0xaa0103e0, ELFRW_OP_MOV, 8, 0, 1, NO, 0, 0, 0, R(1), R(0), 0, 0 },
	      { 0xaa1f03e0, ELFRW_OP_MOV, 8, 0, NO, NO, IMM, 0, 0, 0, R(0), 0, 0 },
	      { 0xb2089fe0, ELFRW_OP_MOV, 8, 0, NO, NO, IMM, 0, 0, 0, R(0),
		(int64_t)0xff00ff00ff00ff00, 0 },
	      { 0xaa2103e0, ELFRW_OP_OTHER, 8, 0, NO, 1, 0, 0, 0, R(1), R(0), 0, 0 },
	      /* and w0, w1, 0xff; tst w0, 1; and sp, x0, -16 */
	      { 0x12001c20, ELFRW_OP_AND, 4, 0, 1, NO, IMM, 0, 0, R(1), R(0), 0xff, 0 },
	      { 0x7200001f, ELFRW_OP_TEST, 4, NO, 0, NO, IMM, 0, 0, R(0), 0, 1, 0 },
	      { 0x927cec1f, ELFRW_OP_AND, 8, SP, 0, NO, IMM, 0, 0, R(0), R(SP), -16, 0 },
	      /* uxtb w0, w1; sxth x0, w1; sxtw x0, w1; ubfx x0, x1, 0, 32 */
	      { 0x53001c20, ELFRW_OP_ZERO_EXTEND, 4, 0, 1, NO, 0, 0, 1, R(1), R(0), 0, 0 },
	      { 0x93403c20, ELFRW_OP_SIGN_EXTEND, 8, 0, 1, NO, 0, 0, 2, R(1), R(0), 0, 0 },
	      { 0x93407c20, ELFRW_OP_SIGN_EXTEND, 8, 0, 1, NO, 0, 0, 4, R(1), R(0), 0, 0 },
	      { 0xd3407c20, ELFRW_OP_MOV, 4, 0, 1, NO, 0, 0, 0, R(1), R(0), 0, 0 },
	      /* lsl x0, x1, 3; lsr x0, x1, 3; bfi x0, x1, 8, 8 */
	      { 0xd37df020, ELFRW_OP_SHL, 8, 0, 1, NO, IMM, 0, 0, R(1), R(0), 3, 0 },
	      { 0xd343fc20, ELFRW_OP_OTHER, 8, 0, 1, NO, 0, 0, 0, R(1), R(0), 0, 0 },
	      { 0xb3781c20, ELFRW_OP_OTHER, 8, 0, 1, 0, 0, 0, 0, R(0) | R(1), R(0), 0, 0 });
}

static void memory(void **state)
{
	(void)state;
	CHECK(/* ldr x0, [sp, 24]; ldr w0, [x1]; ldrsw x0, [x1, x2, lsl 2]; ldur x0, [x1, -8] */
	      { 0xf9400fe0, ELFRW_OP_LOAD, 8, 0, NO, NO, LOADS, 0, 0, R(SP), R(0), 0, 24 },
	      { 0xb9400020, ELFRW_OP_LOAD, 4, 0, NO, NO, LOADS, 0, 0, R(1), R(0), 0, 0 },
	      { 0xb8a27820, ELFRW_OP_SIGN_EXTEND, 8, 0, NO, NO, LOADS, 0, 4, R(1) | R(2), R(0), 0,
		0 },
	      { 0xf85f8020, ELFRW_OP_LOAD, 8, 0, NO, NO, LOADS, 0, 0, R(1), R(0), 0, -8 },
	      /* ldrb w0, [x2, w3, uxtw]; ldrsh w0, [x1, 6]; ldr x0, literal; ldr d0, [x1] */
	      { 0x38634840, ELFRW_OP_ZERO_EXTEND, 4, 0, NO, NO, LOADS, 0, 1, R(2) | R(3), R(0), 0,
		0 },
	      { 0x79c00c20, ELFRW_OP_SIGN_EXTEND, 4, 0, NO, NO, LOADS, 0, 2, R(1), R(0), 0, 6 },
	      { 0x58000040, ELFRW_OP_LOAD, 8, 0, NO, NO, LOADS, 0, 0, 0, R(0), 0, 0 },
	      { 0xfd400020, ELFRW_OP_VECTOR, 8, NO, NO, NO, LOADS, 0, 0, R(1), 0, 0, 0 },
	      /* str x0, [x1, 8]; str wzr, [x1]; strb w0, [x1] */
	      { 0xf9000420, ELFRW_OP_STORE, 8, NO, 0, NO, STORES, 0, 0, R(0) | R(1), 0, 0, 8 },
	      { 0xb900003f, ELFRW_OP_STORE, 4, NO, NO, NO, STORES | IMM, 0, 0, R(1), 0, 0, 0 },
	      { 0x39000020, ELFRW_OP_STORE, 1, NO, 0, NO, STORES, 0, 0, R(0) | R(1), 0, 0, 0 },
	      /* stp x29, x30, [sp, -32]!; ldp x29, x30, [sp], 32; ldp x0, x1, [x2, 16] */
	      { 0xa9be7bfd, ELFRW_OP_STORE_MORE, 8, NO, 29, 30, STORES, 0, 0, R(29) | R(30) | R(SP),
		R(SP), 0, -32 },
	      { 0xa8c27bfd, ELFRW_OP_LOAD_MORE, 8, 29, NO, 30, LOADS, 0, 8, R(SP),
		R(29) | R(30) | R(SP), 0, 0 },
	      { 0xa9410440, ELFRW_OP_LOAD_MORE, 8, 0, NO, 1, LOADS, 0, 8, R(2), R(0) | R(1), 0,
		16 },
	      /* ldr x1, [x0], 8; str x1, [x0, -16]!; ldr q0, [x0], 16 */
	      { 0xf8408401, ELFRW_OP_LOAD_MORE, 8, 1, NO, NO, LOADS, 0, 8, R(0), R(0) | R(1), 0,
		0 },
	      { 0xf81f0c01, ELFRW_OP_STORE_MORE, 8, NO, 1, NO, STORES, 0, 0, R(0) | R(1), R(0), 0,
		-16 },
	      { 0x3cc10400, ELFRW_OP_VECTOR, 8, NO, NO, NO, LOADS, 0, 0, R(0), R(0), 0, 0 },
	      /* ldadd x1, x2, [x3]; casp x2, x3, x4, x5, [x6]; stlxr w0, x1, [x2] */
	      { 0xf8210062, ELFRW_OP_LOAD_MORE, 8, 2, NO, NO, LOADS | STORES, 0, 8, R(1) | R(3),
		R(2), 0, 0 },
	      { 0x48227cc4, ELFRW_OP_LOAD_MORE, 8, 2, NO, 3, LOADS | STORES, 0, 8, 0x7c,
		R(2) | R(3), 0, 0 },
	      { 0xc800fc41, ELFRW_OP_STORE_MORE, 8, NO, 1, NO, STORES, 0, 0, R(1) | R(2), R(0), 0,
		0 },
	      /* ldapur x0, [x1, 8]; cpyfp [x0]!, [x1]!, x2!; prfm pldl1keep, [x1] */
	      { 0xd9408020, ELFRW_OP_LOAD, 8, 0, NO, NO, LOADS, 0, 0, R(1), R(0), 0, 8 },
	      { 0x19010440, ELFRW_OP_OTHER, 4, NO, NO, NO, LOADS | STORES, 0, 0, 7, 7, 0, 0 },
	      { 0xf9800020, ELFRW_OP_NONE, 8, NO, NO, NO, 0, 0, 0, R(1), 0, 0, 0 });
}

static void others(void **state)
{
	(void)state;
	const uint32_t args = elfrw_aarch64_model.arguments, lost = elfrw_aarch64_model.clobbered;
	const struct row calls[] = {
		{ 0x94000001, ELFRW_OP_CALL, 8, 0, NO, NO, LOADS | STORES, 0, 0, args, lost, 0, 0 },
		{ 0xd63f0260, ELFRW_OP_CALL, 8, 0, 19, NO, LOADS | STORES, 0, 0, args | R(19), lost,
		  0, 0 },
		{ 0xd61f0200, ELFRW_OP_NONE, 8, NO, 16, NO, 0, 0, 0, R(16), 0, 0, 0 },
		{ 0xd65f03c0, ELFRW_OP_NONE, 8, NO, 30, NO, 0, 0, 0, R(30) | 0xff, 0, 0, 0 },
	};
	(void)state;
	check(calls, sizeof calls / sizeof *calls);
	CHECK(/* paciasp; nop; cbz x3; svc 0; mrs x0, tpidr_el0; msr tpidr_el0, x0 */
	      { 0xd503233f, ELFRW_OP_SUM, 8, 30, 30, SP, 0, 0, 0, R(30) | R(SP), R(30), 0, 0 },
	      { 0xd503201f, ELFRW_OP_NONE, 8, NO, NO, NO, 0, 0, 0, 0, 0, 0, 0 },
	      { 0xb4000043, ELFRW_OP_NONE, 8, NO, NO, NO, 0, 0, 0, R(3), 0, 0, 0 },
	      { 0xd4000001, ELFRW_OP_OTHER, 8, NO, NO, NO, LOADS | STORES, 0, 0, 0x1ff, 1, 0, 0 },
	      { 0xd53bd040, ELFRW_OP_OTHER, 8, 0, NO, NO, 0, 0, 0, 0, R(0), 0, 0 },
	      { 0xd51bd040, ELFRW_OP_OTHER, 8, NO, 0, NO, 0, 0, 0, R(0), 0, 0, 0 },
	      /* adr x1; fmov x0, d1; fmov d1, x0; umov w0, v1.s[0]; fcvtzs x0, d1; fadd d0.. */
	      { 0x10000001, ELFRW_OP_ADDRESS, 8, 1, NO, NO, 0, 0, 0, 0, R(1), 0, 0 },
	      { 0x9e660020, ELFRW_OP_SUM, 8, 0, NO, NO, 0, 0, 0, 0, R(0), 0, 0 },
	      { 0x9e670001, ELFRW_OP_VECTOR, 8, NO, NO, NO, 0, 0, 0, R(0), 0, 0, 0 },
	      { 0x0e043c20, ELFRW_OP_SUM, 4, 0, NO, NO, 0, 0, 0, 0, R(0), 0, 0 },
	      { 0x9e780020, ELFRW_OP_SUM, 8, 0, NO, NO, 0, 0, 0, 0, R(0), 0, 0 },
	      { 0x1e622820, ELFRW_OP_VECTOR, 4, NO, NO, NO, 0, 0, 0, 0, 0, 0, 0 },
	      /* cntb x0; incb x0 */
	      { 0x0420e3e0, ELFRW_OP_SUM, 4, 0, NO, NO, 0, 0, 0, R(0) | R(31), R(0), 0, 0 },
	      { 0x0430e3e0, ELFRW_OP_SUM, 4, 0, NO, NO, 0, 0, 0, R(0) | R(31) | R(16), R(0), 0,
		0 });
}

/* What changes the condition flags, between a comparison and its jump. */
static void flags(void **state)
{
	static const uint32_t set[] = {
		0x7100141f, 0xeb02003f, 0x7200001f, /* cmp, tst */
		0x7a400800, 0xba020020, 0x1e602020, /* ccmp, adcs, fcmp */
		0xd4000001, 0x94000001, 0xd51b4200, /* svc, bl, msr nzcv */
		0x6a220020, 0x19010440,             /* bics, cpyfp */
	};
	static const uint32_t keep[] = {
		0x91048c20, 0xaa0103e0, 0x12001c20, /* add, mov, and */
		0xf9400fe0, 0xa9be7bfd, 0x9a820020, /* ldr, stp, csel */
		0xd503201f, 0xd503233f, 0x14000001, /* nop, paciasp, b */
		0x1e622820, 0x9b027c20, 0xb4000043, /* fadd, mul, cbz */
	};
	struct elfrw_insn in;
	(void)state;
	for (size_t i = 0; i < sizeof set / sizeof *set; i++)
		if (!(effect(set[i], &in).flags & ELFRW_EFFECT_FLAGS))
			fail_msg("%08x keeps the flags", set[i]);
	for (size_t i = 0; i < sizeof keep / sizeof *keep; i++)
		if (effect(keep[i], &in).flags & ELFRW_EFFECT_FLAGS)
			fail_msg("%08x changes the flags", keep[i]);
}

/* Conditions of jumps that limit an index. */
static void conditions(void **state)
{
	static const uint8_t want[16] = { [2] = ELFRW_COND_NOT_BELOW,
					  [3] = ELFRW_COND_BELOW,
					  [8] = ELFRW_COND_ABOVE,
					  [9] = ELFRW_COND_NOT_ABOVE };
	struct elfrw_insn in;
	(void)state;
	for (uint32_t c = 0; c < 16; c++)
		assert_int_equal(effect(0x54000040 | c, &in).cond, want[c]);
	assert_int_equal(effect(0xb4000048, &in).cond, ELFRW_COND_OTHER);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sums),   cmocka_unit_test(numbers),    cmocka_unit_test(memory),
		cmocka_unit_test(others), cmocka_unit_test(conditions), cmocka_unit_test(flags),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
