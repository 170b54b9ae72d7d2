/* a64_infer.c: jump tables and virtual calls in the code that GCC and LLVM make for AArch64. */
#include "dwarf/stack/value_track.h"
#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/infer/defs.h"
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <cmocka.h>

#define TEXT  0x401000u
#define TABLE 0x402000u
#define LABEL (TEXT + 4 * 12)
#define MAX   16

/* All that the readers of code ask. */
static const struct elfrw_arch arch = { .name = "a64",
					.decode = elfrw_a64_decode,
					.model = &elfrw_aarch64_model };

struct one {
	struct icf_program prog;
	struct icf_unit unit;
	struct icf_exec exec;
	struct elfrw_image img;
	struct elfrw_section section[2];
	uint8_t code[4 * MAX];
	struct icf_trace t;
};

/* Words that the table below puts together; what is left is no-ops, and a return at the end. */
static void trace(struct one *o, const uint32_t *word)
{
	bool clean;
	for (unsigned i = 0; i < MAX; i++)
		elfrw_put32(o->code + 4 * i, i == MAX - 1 ? 0xd65f03c0
					     : word[i]    ? word[i]
							  : 0xd503201f);
	o->section[1] = (struct elfrw_section){ .name = ".text",
						.data = o->code,
						.hdr = { .sh_addr = TEXT,
							 .sh_size = 4 * MAX,
							 .sh_flags = SHF_ALLOC | SHF_EXECINSTR } };
	o->img = (struct elfrw_image){ .arch = &arch, .section = o->section, .n_sections = 2 };
	o->unit = (struct icf_unit){ .start = TEXT, .end = TEXT + 4 * MAX };
	o->exec =
		(struct icf_exec){ .shndx = 1, .start = TEXT, .end = TEXT + 4 * MAX, .n_units = 1 };
	o->prog.img = &o->img;
	o->prog.arch = &arch;
	o->prog.unit.data = &o->unit;
	o->prog.exec.data = &o->exec;
	o->prog.unit.len = o->prog.exec.len = 1;
	assert_null(icf_trace_unit(&o->prog, 0, &o->t, &clean));
	assert_true(clean);
	assert_null(icf_trace_edges(&o->prog, 0, &o->t));
}

/* b.COND from instruction AT to the one numbered TO. */
static uint32_t jump(unsigned cond, unsigned at, unsigned to)
{
	return 0x54000000 | ((to - at) & 0x7ffff) << 5 | cond;
}

/* adr REG, TO at instruction AT. */
static uint32_t adr(unsigned reg, unsigned at, uint64_t to)
{
	uint32_t n = (uint32_t)(to - (TEXT + 4 * at));
	return 0x10000000 | (n & 3) << 29 | (n >> 2 & 0x7ffff) << 5 | reg;
}

enum { HI = 8, LS = 9, EQ = 0 };

/* The instructions of one switch; the jump is the last. */
struct shape {
	const char *what;
	uint32_t word[MAX];
	unsigned jump;
	unsigned kind, size, shift;
	bool sign;
	uint64_t base, table, bound;
	bool open;
	uint64_t or_table; /* the other possible one, or 0 */
};

static const uint32_t cmp_w0_9 = 0x7100241f, br_x0 = 0xd61f0000, br_x10 = 0xd61f0140;

static void check_shape(const struct shape *s)
{
	struct one o = { 0 };
	struct icf_jumps j;
	trace(&o, s->word);
	icf_classify_jump(&o.prog, 0, &o.t, s->jump, &j);
	if (j.n != (s->or_table ? 2 : 1) || j.jump[0].kind != s->kind)
		fail_msg("%s: %u jumps, kind %u", s->what, j.n, j.n ? j.jump[0].kind : 99);
	const struct icf_jump *one = &j.jump[0];
	if (s->or_table) {
		assert_int_equal(j.jump[1].table, s->or_table);
		assert_int_equal(j.jump[1].group, one->group);
	}
	if (s->kind != ICF_JUMP_UNKNOWN &&
	    (one->base != s->base || one->table != s->table || one->bound != s->bound ||
	     one->open != s->open || one->shape->size != s->size || one->shape->shift != s->shift ||
	     one->shape->sign != s->sign))
		fail_msg("%s: base %#lx table %#lx bound %lu, entries of %u, shift %u", s->what,
			 (unsigned long)one->base, (unsigned long)one->table,
			 (unsigned long)one->bound, one->shape->size, one->shape->shift);
	icf_trace_deinit(&o.t);
}

/* Long: one table. */
static void switches(void **state)
{
	(void)state;
	const struct shape rows[] = {
		{ "GCC, bytes",
		  { cmp_w0_9, jump(HI, 1, 14), adr(1, 2, TABLE),
		    0x38604820 /* ldrb w0, [x1, w0, uxtw] */, adr(1, 4, LABEL),
		    0x8b208820 /* add x0, x1, w0, sxtb 2 */, br_x0 },
		  6,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10 },
		{ "GCC, the jump is taken, halves",
		  { cmp_w0_9, jump(LS, 1, 4), 0x2a0103e0 /* mov w0, w1 */, 0xd65f03c0,
		    adr(1, 4, TABLE), 0x78605820 /* ldrh w0, [x1, w0, uxtw 1] */, adr(1, 6, LABEL),
		    0x8b20a820 /* add x0, x1, w0, sxth 2 */, br_x0 },
		  8,
		  ICF_JUMP_LOCAL,
		  2,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10 },
		{ "GCC, words",
		  { cmp_w0_9, jump(HI, 1, 14), adr(1, 2, TABLE),
		    0xb8605820 /* ldr w0, [x1, w0, uxtw 2] */, adr(1, 4, LABEL),
		    0x8b20c820 /* add x0, x1, w0, sxtw 2 */, br_x0 },
		  6,
		  ICF_JUMP_LOCAL,
		  4,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10 },
		{ "LLVM, bytes; the index is copied, and overwritten behind its comparison",
		  { 0x2a0003f3 /* mov w19, w0 */, cmp_w0_9, 0x2a0103e0 /* mov w0, w1 */,
		    jump(HI, 3, 14), 0x2a1303e8 /* mov w8, w19 */, adr(9, 5, TABLE),
		    adr(10, 6, LABEL), 0x3868692b /* ldrb w11, [x9, x8] */,
		    0x8b0b094a /* add x10, x10, x11, lsl 2 */, br_x10 },
		  9,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  false,
		  LABEL,
		  TABLE,
		  10 },
		{ "LLVM, halves; two jumps behind the comparison",
		  { 0x7100251f /* cmp w8, 9 */, jump(EQ, 1, 13), jump(HI, 2, 14), adr(9, 3, TABLE),
		    adr(10, 4, LABEL), 0x7868792b /* ldrh w11, [x9, x8, lsl 1] */, 0x8b0b094a,
		    br_x10 },
		  7,
		  ICF_JUMP_LOCAL,
		  2,
		  2,
		  false,
		  LABEL,
		  TABLE,
		  10 },
		{ "LLVM, words from the table",
		  { 0x7100251f, jump(HI, 1, 14), adr(9, 2, TABLE),
		    0xb8a8792a /* ldrsw x10, [x9, x8, lsl 2] */, 0x8b09014a /* add x10, x10, x9 */,
		    br_x10 },
		  5,
		  ICF_JUMP_TABLE,
		  4,
		  0,
		  true,
		  TABLE,
		  0,
		  10 },
		{ "LLVM -O0, words from a label",
		  { 0x7100251f, jump(HI, 1, 14), adr(10, 2, TABLE), adr(8, 3, TEXT + 4 * 3),
		    0xb8ab7949 /* ldrsw x9, [x10, x11, lsl 2] */, 0x8b090108 /* add x8, x8, x9 */,
		    0xd61f0100 },
		  6,
		  ICF_JUMP_LOCAL,
		  4,
		  0,
		  true,
		  TEXT + 4 * 3,
		  0,
		  0 },
		{ "bytes without a bound: flags of another instruction",
		  { cmp_w0_9, 0x6b01001f /* cmp w0, w1 */, jump(HI, 2, 14), adr(1, 3, TABLE),
		    0x38604820, adr(1, 5, LABEL), 0x8b208820, br_x0 },
		  7,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  1,
		  true },
		{ "bytes, zero-extended, as no compiler makes them: shift 3",
		  { cmp_w0_9, jump(HI, 1, 14), adr(1, 2, TABLE), 0x38604820, adr(1, 4, LABEL),
		    0x8b208c20 /* add x0, x1, w0, sxtb 3 */, br_x0 },
		  6,
		  ICF_JUMP_UNKNOWN },
		{ "a call between, which does not return",
		  { 0x710026df /* cmp w22, 9 */, jump(LS, 1, 4), 0x52800021 /* mov w1, 1 */,
		    0x94000100 /* bl */, adr(1, 4, TABLE),
		    0x38764820 /* ldrb w0, [x1, w22, uxtw] */, adr(1, 6, LABEL), 0x8b208820,
		    br_x0 },
		  8,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10 },
		{ "a call between, behind which the index is another",
		  { 0x710026df, jump(LS, 1, 4), 0x52800076 /* mov w22, 3 */, 0x94000100,
		    adr(1, 4, TABLE), 0x38764820, adr(1, 6, LABEL), 0x8b208820, br_x0 },
		  8,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10,
		  true },
		{ "a call between, whose result is the index",
		  { cmp_w0_9, jump(LS, 1, 4), 0x52800021, 0x94000100, adr(1, 4, TABLE), 0x38604820,
		    adr(1, 6, LABEL), 0x8b208820, br_x0 },
		  8,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10,
		  true },
		{ "a mask",
		  { 0x12000c00 /* and w0, w0, 15 */, 0, adr(1, 2, TABLE), 0x38604820,
		    adr(1, 4, LABEL), 0x8b208820, br_x0 },
		  6,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  1,
		  true },
		{ "the table's address is kept in the frame",
		  { adr(1, 0, TABLE), 0xf9000be1 /* str x1, [sp, 16] */, cmp_w0_9, jump(HI, 3, 14),
		    0xf9400be2 /* ldr x2, [sp, 16] */, 0x38604840 /* ldrb w0, [x2, w0, uxtw] */,
		    adr(1, 6, LABEL), 0x8b208820, br_x0 },
		  8,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10 },
		{ "the table's address is kept in the frame, with another register",
		  { adr(1, 0, TABLE), 0xa90087e3 /* stp x3, x1, [sp, 8] */, cmp_w0_9,
		    jump(HI, 3, 14), 0xf9400be2, 0x38604840, adr(1, 6, LABEL), 0x8b208820, br_x0 },
		  8,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10 },
		{ "two addresses are kept in the frame",
		  { adr(1, 0, TABLE), 0xf9000be1, adr(4, 2, TABLE + 64), 0xf9000be4 /* str x4 */,
		    cmp_w0_9, jump(HI, 5, 14), 0xf9400be2, 0x38604840, adr(1, 8, LABEL), 0x8b208820,
		    br_x0 },
		  10,
		  ICF_JUMP_LOCAL,
		  1,
		  2,
		  true,
		  LABEL,
		  TABLE,
		  10,
		  false,
		  TABLE + 64 },
		{ "a signed byte that the sum extends with zeros",
		  { cmp_w0_9, jump(HI, 1, 14), adr(1, 2, TABLE),
		    0x38e04820 /* ldrsb w0, [x1, w0, uxtw] */, adr(1, 4, LABEL),
		    0x8b204820 /* add x0, x1, w0, uxtw 2 */, br_x0 },
		  6,
		  ICF_JUMP_UNKNOWN },
		{ "halves of which the sum takes a byte",
		  { cmp_w0_9, jump(HI, 1, 14), adr(1, 2, TABLE), 0x78605820, adr(1, 4, LABEL),
		    0x8b208820, br_x0 },
		  6,
		  ICF_JUMP_UNKNOWN },
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		check_shape(&rows[i]);
}

/* What reaches a jump, by kinds: pairs, changed bases, choices. */
static void writers(void **state)
{
	(void)state;
	static const struct {
		uint32_t word;
		uint8_t reg, kind;
	} rows[] = {
		{ 0xa9410440, 0, ICF_DEF_LOAD }, /* ldp x0, x1, [x2, 16] */
		{ 0xa9410440, 1, ICF_DEF_LOAD },
		{ 0xa8c27bfd, 31, ICF_DEF_OTHER }, /* ldp x29, x30, [sp], 32 */
		{ 0xf8408401, 1, ICF_DEF_LOAD },   /* ldr x1, [x0], 8 */
		{ 0xf8408401, 0, ICF_DEF_OTHER },
		{ 0xb8404401, 1, ICF_DEF_DIST },   /* ldr w1, [x0], 4 */
		{ 0xf81f0c01, 0, ICF_DEF_OTHER },  /* str x1, [x0, -16]! */
		{ 0x3cc10400, 0, ICF_DEF_OTHER },  /* ldr q0, [x0], 16 */
		{ 0x9b020c20, 0, ICF_DEF_OTHER },  /* madd x0, x1, x2, x3 */
		{ 0xcb020820, 0, ICF_DEF_OTHER },  /* sub x0, x1, x2, lsl 2 */
		{ 0x9e660020, 0, ICF_DEF_OTHER },  /* fmov x0, d1 */
		{ 0x9a820020, 0, ICF_DEF_CHOICE }, /* csel x0, x1, x2, eq */
		{ 0x8b224020, 0, ICF_DEF_ADD },    /* add x0, x1, w2, uxtw */
		{ 0xf28000a0, 0, ICF_DEF_NUMBER }, /* movk x0, 5 */
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct one o = { 0 };
		const uint32_t word[MAX] = { rows[i].word };
		trace(&o, word);
		struct icf_def d = icf_effect(&o.prog, 0, &o.t, 0, rows[i].reg);
		if (d.kind != rows[i].kind)
			fail_msg("%08x: register %u: kind %d", rows[i].word, rows[i].reg, d.kind);
		icf_trace_deinit(&o.t);
	}
}

/* Both sides of a choice are looked for. */
static void choices(void **state)
{
	(void)state;
	const uint32_t word[MAX] = { adr(1, 0, LABEL), 0xf9400042 /* ldr x2, [x2] */,
				     0x9a820020 /* csel x0, x1, x2, eq */, br_x0 };
	struct one o = { 0 };
	trace(&o, word);
	struct icf_defs d = icf_defs_reaching(&o.prog, 0, &o.t, 3, 0, false);
	assert_int_equal(d.n, 2);
	assert_true(d.def[0].kind == ICF_DEF_LOAD && d.def[1].kind == ICF_DEF_ADDRESS);
	icf_trace_deinit(&o.t);
}

/* The slot of a virtual call through CODE, and its object's offset in the first argument; -1: it is
 * none. */
static int slot_of(const uint32_t *code, unsigned n, int32_t *object)
{
	struct dwr_track t = { .model = &elfrw_aarch64_model };
	struct dwr_track_call call;
	int slot = -1;
	dwr_track_forget_all(&t);
	for (unsigned i = 0; i < n; i++) {
		struct elfrw_insn in;
		struct elfrw_effect e;
		uint8_t word[4];
		elfrw_put32(word, code[i]);
		assert_int_equal(elfrw_a64_decode(word, 4, TEXT + 4 * i, &in), 4);
		elfrw_aarch64_model.effect(&in, word, &e);
		if (in.kind == ELFRW_INSN_CALL_IND || in.kind == ELFRW_INSN_JMP_IND) {
			if (dwr_track_virtual(&t, &in, &e, &call))
				slot = (int)call.slot;
		} else if (in.kind == ELFRW_INSN_CALL) {
			dwr_track_called(&t);
		} else {
			dwr_track_step(&t, &in, &e);
		}
	}
	*object = slot >= 0 ? call.object.add : 0;
	dwr_track_deinit(&t);
	return slot;
}

static void virtual_calls(void **state)
{
	(void)state;
	int32_t at;
	/* ldr x1, [x0]; ldr x1, [x1, 16]; blr x1 */
	const uint32_t plain[] = { 0xf9400001, 0xf9400821, 0xd63f0020 };
	assert_int_equal(slot_of(plain, 3, &at), 2);
	/* mov x19, x0; bl; ldr x0, [x19, 8]!; ldr x1, [x0]; the object is lost in the first load */
	const uint32_t changed[] = { 0xf8408e60, 0xf9400001, 0xf9400021, 0xd63f0020 };
	assert_int_equal(slot_of(changed, 4, &at), 0);
	/* -O0: str x0, [sp, 8]; ldr x0, [sp, 8]; ldr x0, [x0]; add x0, x0, 8; ldr x1, [x0];
	 * ldr x0, [sp, 8]; blr x1 */
	const uint32_t slow[] = { 0xf90007e0, 0xf94007e0, 0xf9400000, 0x91002000,
				  0xf9400001, 0xf94007e0, 0xd63f0020 };
	assert_int_equal(slot_of(slow, 7, &at), 1);
	/* A second base: ldr x1, [x0, 16]!; ldr x1, [x1, 24]; br x1: the base moved with the load
	 */
	const uint32_t second[] = { 0xf9400801, 0x91004000, 0xf9400c21, 0xd61f0020 };
	assert_int_equal(slot_of(second, 4, &at), 3);
	assert_int_equal(at, 16);
	/* A store between: str x3, [x4]; of the vtable's slot nothing is known twice, yet loaded
	 * once */
	const uint32_t store[] = { 0xf9400001, 0xa9000c81, 0xf9400821, 0xd63f0020 };
	assert_int_equal(slot_of(store, 4, &at), 2);
	/* ldp x1, x2, [x0]; ldr x1, [x1]; blr x1: two words, which are not followed */
	const uint32_t pair[] = { 0xa9400801, 0xf9400021, 0xd63f0020 };
	assert_int_equal(slot_of(pair, 3, &at), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(switches),
		cmocka_unit_test(writers),
		cmocka_unit_test(choices),
		cmocka_unit_test(virtual_calls),
	};
	return cmocka_run_group_tests_name("a64_infer", tests, NULL, NULL);
}
