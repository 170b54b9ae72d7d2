/* arch_infer.c: jump tables, values and virtual calls are read through what an architecture says of
 * its instructions. So the code that reads them must work on an architecture that does not exist
 * (tests/unit/make/arch.h), with 32 registers and three operands. */
#include "tests/unit/make/arch.h"
#include "dwarf/stack/value_track.h"
#include "icf/infer/effect.h"
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define TEXT  0x401000u
#define TABLE 0x480000u

/* Three operands. */
#define TOY_REGS(op, rd, rn, rm) (TOY_WORD(op, rd, rn) | (uint32_t)(rm) << 10)

/* One unit, as long as its code. */
struct one {
	struct icf_program prog;
	struct icf_unit unit;
	struct icf_exec exec;
	struct elfrw_image img;
	struct elfrw_section section[2];
	uint8_t code[64];
	struct icf_trace t;
};

static void put(struct one *o, unsigned at, uint32_t word)
{
	elfrw_put32(o->code + 4 * at, word);
}

/* A word with a field that names TARGET. */
static void name(struct one *o, unsigned at, enum toy_op op, unsigned rd, uint64_t target)
{
	put(o, at, TOY_WORD(op, rd, 0));
	assert_true(elfrw_form_write(&toy_forms[toy_form_of(op)], o->code + 4 * at, TEXT + 4 * at,
				     target));
}

static void trace(struct one *o, unsigned n)
{
	bool clean;
	o->section[1] = (struct elfrw_section){
		.name = ".text",
		.data = o->code,
		.hdr = { .sh_addr = TEXT, .sh_size = 4 * n, .sh_flags = SHF_ALLOC | SHF_EXECINSTR }
	};
	o->img = (struct elfrw_image){ .arch = &toy_arch, .section = o->section, .n_sections = 2 };
	o->unit = (struct icf_unit){ .start = TEXT, .end = TEXT + 4 * n };
	o->exec = (struct icf_exec){ .shndx = 1, .start = TEXT, .end = TEXT + 4 * n, .n_units = 1 };
	o->prog.img = &o->img;
	o->prog.arch = &toy_arch;
	o->prog.unit.data = &o->unit;
	o->prog.exec.data = &o->exec;
	o->prog.unit.len = o->prog.exec.len = 1;
	assert_null(icf_trace_unit(&o->prog, 0, &o->t, &clean));
	assert_true(clean);
	assert_null(icf_trace_edges(&o->prog, 0, &o->t));
}

/* The switch of CODE with CMP where the test puts it. */
static void put_switch(struct one *o, bool compared)
{
	put(o, 0, compared ? TOY_WORD(TOY_CMP, 0, 20) | 7 << 10 : TOY_WORD(TOY_NOP, 0, 0));
	name(o, 1, TOY_BC, 1, TEXT + 4 * 7);
	name(o, 2, TOY_PAGE, 18, TABLE);
	put(o, 3, TOY_REGS(TOY_ENTRY, 19, 18, 20));
	put(o, 4, TOY_WORD(TOY_ADD, 25, 0) | 1 << 5);
	put(o, 5, TOY_REGS(TOY_SUM, 19, 19, 18));
	put(o, 6, TOY_WORD(TOY_JR, 0, 19));
	put(o, 7, TOY_WORD(TOY_RET, 0, 0));
	trace(o, 8);
}

static void test_switch(void **state)
{
	(void)state;
	struct icf_jumps j;
	for (int compared = 0; compared < 2; compared++) {
		struct one o = { 0 };
		put_switch(&o, compared);
		icf_classify_jump(&o.prog, 0, &o.t, 6, &j);
		assert_int_equal(j.n, 1);
		assert_int_equal(j.jump[0].kind, ICF_JUMP_TABLE);
		assert_int_equal(j.jump[0].base, TABLE);
		assert_int_equal(j.jump[0].bound, compared ? 8 : 0);
		icf_trace_deinit(&o.t);
	}
}

/* Which pairs of a load and a sum are the shape of a jump table: entries of one or two bytes, which
 * count words from a label, and of four bytes. Other pairs are none. */
static void test_shapes(void **state)
{
	(void)state;
	static const struct {
		enum toy_op load, sum;
		bool compared;
		unsigned size; /* of the shape; 0: there is none */
	} want[] = {
		{ TOY_BYTE, TOY_SHIFTED, true, 1 },  { TOY_HALF, TOY_SHIFTED, true, 2 },
		{ TOY_ENTRY, TOY_SUM, true, 4 },     { TOY_ENTRY, TOY_SUM, false, 4 },
		{ TOY_BYTE, TOY_SHIFTED, false, 1 }, { TOY_BYTE, TOY_SUM, true, 0 },
		{ TOY_HALF, TOY_SUM, true, 0 },      { TOY_ENTRY, TOY_SHIFTED, true, 0 },
	};
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		struct one o = { 0 };
		struct icf_jumps j;
		put(&o, 0,
		    want[i].compared ? TOY_WORD(TOY_CMP, 0, 20) | 6 << 10
				     : TOY_WORD(TOY_NOP, 0, 0));
		name(&o, 1, TOY_BC, 1, TEXT + 4 * 7);
		name(&o, 2, TOY_PAGE, 18, TABLE);
		put(&o, 3, TOY_REGS(want[i].load, 19, 18, 20));
		name(&o, 4, TOY_ADR, 17, TEXT + 4 * 7);
		put(&o, 5, TOY_REGS(want[i].sum, 19, 17, 19));
		put(&o, 6, TOY_WORD(TOY_JR, 0, 19));
		put(&o, 7, TOY_WORD(TOY_RET, 0, 0));
		trace(&o, 8);
		icf_classify_jump(&o.prog, 0, &o.t, 6, &j);
		assert_int_equal(j.n, 1);
		if (j.jump[0].kind != (want[i].size ? ICF_JUMP_LOCAL : ICF_JUMP_UNKNOWN))
			fail_msg("case %zu: kind %d", i, j.jump[0].kind);
		if (want[i].size) {
			assert_int_equal(j.jump[0].base, TEXT + 4 * 7);
			/* The end of a table of small entries need not be proved. */
			bool open = want[i].size < 4 && !want[i].compared;
			assert_int_equal(j.jump[0].open, open);
			assert_int_equal(j.jump[0].bound, want[i].compared ? 7 : open);
			assert_int_equal(j.jump[0].shape->size, want[i].size);
			assert_int_equal(j.jump[0].table, want[i].size < 4 ? TABLE : 0);
		}
		icf_trace_deinit(&o.t);
	}
}

static void test_effects(void **state)
{
	(void)state;
	struct one o = { 0 };
	put_switch(&o, true);
	assert_int_equal(icf_effect(&o.prog, 0, &o.t, 2, 18).kind, ICF_DEF_ADDRESS);
	assert_int_equal(icf_effect(&o.prog, 0, &o.t, 3, 19).kind, ICF_DEF_DIST);
	assert_int_equal(icf_effect(&o.prog, 0, &o.t, 3, 20).kind, ICF_DEF_NONE);
	assert_int_equal(icf_effect(&o.prog, 0, &o.t, 4, 25).kind, ICF_DEF_OTHER);
	struct icf_def sum = icf_effect(&o.prog, 0, &o.t, 5, 19);
	assert_int_equal(sum.kind, ICF_DEF_ADD);
	assert_true(sum.a == 19 && sum.b == 18);
	icf_trace_deinit(&o.t);
}

/* r0 is the object: its vtable is loaded, then what is at 16 there. */
static void test_virtual(void **state)
{
	(void)state;
	const uint32_t code[] = { TOY_WORD(TOY_FETCH, 28, 0), TOY_WORD(TOY_FETCH, 27, 28) | 2 << 10,
				  TOY_REGS(TOY_SUM, 5, 6, 7), TOY_WORD(TOY_CR, 0, 27) };
	struct dwr_track t = { .model = &toy_model };
	struct dwr_track_call call;
	bool found = false;
	dwr_track_forget_all(&t);
	for (unsigned i = 0; i < sizeof code / sizeof *code; i++) {
		struct elfrw_insn in;
		struct elfrw_effect e;
		uint8_t word[4];
		elfrw_put32(word, code[i]);
		assert_int_equal(toy_decode(word, 4, TEXT + 4 * i, &in), 4);
		toy_model.effect(&in, word, &e);
		if (in.kind == ELFRW_INSN_CALL_IND)
			found = dwr_track_virtual(&t, &in, &e, &call);
		else
			dwr_track_step(&t, &in, &e);
	}
	assert_true(found && call.slot == 2 && !call.second);
	dwr_track_deinit(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_switch),
		cmocka_unit_test(test_shapes),
		cmocka_unit_test(test_effects),
		cmocka_unit_test(test_virtual),
	};
	return cmocka_run_group_tests_name("arch_infer", tests, NULL, NULL);
}
