/* Tests of the AArch64 decoder, on words that GNU as made. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "elfrw/arch/aarch64_decode.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"

enum { NO = ELFRW_REG_NONE };
#define VA UINT64_C(0x410ff8)

static unsigned decode(uint32_t word, struct elfrw_insn *in)
{
	uint8_t code[4];
	elfrw_put32(code, word);
	return elfrw_a64_decode(code, sizeof code, VA, in);
}

/* Instructions with a PC-relative field. */
static void places(void **state)
{
	static const struct {
		uint32_t word;
		uint8_t group, kind, flags;
		uint64_t target;
	} rows[] = {
		{ 0x14000002, ELFRW_A64_B, ELFRW_INSN_JMP, 0, VA + 8 },
		{ 0x16000000, ELFRW_A64_B, ELFRW_INSN_JMP, 0, VA - 0x8000000 },
		{ 0x97ffffff, ELFRW_A64_B, ELFRW_INSN_CALL, ELFRW_INSN_OWN, VA - 4 },
		{ 0x95ffffff, ELFRW_A64_B, ELFRW_INSN_CALL, ELFRW_INSN_OWN, VA + 0x7fffffc },
		{ 0x54000041, ELFRW_A64_B_COND, ELFRW_INSN_JCC, 0, VA + 8 },
		{ 0x5480000b, ELFRW_A64_B_COND, ELFRW_INSN_JCC, 0, VA - 0x100000 },
		{ 0x5400004e, ELFRW_A64_B_COND, ELFRW_INSN_JMP, 0, VA + 8 },
		{ 0xb47fffe3, ELFRW_A64_CBZ, ELFRW_INSN_JCC, ELFRW_INSN_OWN, VA + 0xffffc },
		{ 0x35800003, ELFRW_A64_CBZ, ELFRW_INSN_JCC, 0, VA - 0x100000 },
		{ 0x36040003, ELFRW_A64_TBZ, ELFRW_INSN_JCC, 0, VA - 0x8000 },
		{ 0xb7fbffe3, ELFRW_A64_TBZ, ELFRW_INSN_JCC, ELFRW_INSN_OWN, VA + 0x7ffc },
		{ 0x74013fe1, ELFRW_A64_CB, ELFRW_INSN_JCC, 0, VA - 4 },
		{ 0x10000003, ELFRW_A64_ADR, ELFRW_INSN_OTHER, ELFRW_INSN_LEA | ELFRW_INSN_OWN,
		  VA },
		{ 0x707fffe3, ELFRW_A64_ADR, ELFRW_INSN_OTHER, ELFRW_INSN_LEA | ELFRW_INSN_OWN,
		  VA + 0xfffff },
		{ 0x30800003, ELFRW_A64_ADR, ELFRW_INSN_OTHER, ELFRW_INSN_LEA | ELFRW_INSN_OWN,
		  VA - 0xfffff },
		{ 0x90000003, ELFRW_A64_ADRP, ELFRW_INSN_OTHER, ELFRW_INSN_LEA | ELFRW_INSN_OWN,
		  0x410000 },
		{ 0xf0ffffe3, ELFRW_A64_ADRP, ELFRW_INSN_OTHER, ELFRW_INSN_LEA | ELFRW_INSN_OWN,
		  0x40f000 },
		{ 0xd0000003, ELFRW_A64_ADRP, ELFRW_INSN_OTHER, ELFRW_INSN_LEA | ELFRW_INSN_OWN,
		  0x412000 },
		{ 0x58000043, ELFRW_A64_LITERAL, ELFRW_INSN_OTHER, ELFRW_INSN_MEM, VA + 8 },
		{ 0x98ffffe3, ELFRW_A64_LITERAL, ELFRW_INSN_OTHER, ELFRW_INSN_MEM | ELFRW_INSN_OWN,
		  VA - 4 },
		{ 0x9c000043, ELFRW_A64_LITERAL, ELFRW_INSN_OTHER, ELFRW_INSN_MEM | ELFRW_INSN_OWN,
		  VA + 8 },
		{ 0xd8000040, ELFRW_A64_LITERAL, ELFRW_INSN_OTHER, ELFRW_INSN_MEM | ELFRW_INSN_OWN,
		  VA + 8 },
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct elfrw_insn in;
		uint8_t code[4], may[4];
		unsigned len = decode(rows[i].word, &in);
		if (len != 4 || in.opcode != rows[i].group || in.kind != rows[i].kind ||
		    in.flags != rows[i].flags || in.pcrel_size != 4 || in.pcrel_off != 0 ||
		    in.target != rows[i].target || in.base != NO || in.index != NO)
			fail_msg("%08x: group %u kind %u flags %#x target %#lx", rows[i].word,
				 in.opcode, in.kind, in.flags, (unsigned long)in.target);
		elfrw_put32(code, rows[i].word);
		elfrw_a64_may_refer(code, 4, 1, may);
		assert_int_equal(may[0], 1);
	}
}

/* Where control goes, and registers in addresses. */
static void kinds(void **state)
{
	static const struct {
		uint32_t word;
		uint8_t kind, flags, reg, base, index, scale;
	} rows[] = {
		{ 0x00000000, ELFRW_INSN_TRAP, 0, NO, NO, NO, 1 },   /* udf 0 */
		{ 0x0000ffff, ELFRW_INSN_TRAP, 0, NO, NO, NO, 1 },   /* udf 65535 */
		{ 0xd4207d00, ELFRW_INSN_TRAP, 64, NO, NO, NO, 1 },  /* brk 1000 */
		{ 0xd4000001, ELFRW_INSN_OTHER, 64, NO, NO, NO, 1 }, /* svc 0 */
		{ 0xd503201f, ELFRW_INSN_NOP, 64, NO, NO, NO, 1 },
		{ 0xd503203f, ELFRW_INSN_OTHER, 64, NO, NO, NO, 1 }, /* yield */
		{ 0xd503233f, ELFRW_INSN_OTHER, 68, NO, NO, NO, 1 }, /* paciasp */
		{ 0xd50323bf, ELFRW_INSN_OTHER, 64, NO, NO, NO, 1 }, /* autiasp */
		{ 0xd503245f, ELFRW_INSN_OTHER, 68, NO, NO, NO, 1 }, /* bti c */
		{ 0xd503249f, ELFRW_INSN_OTHER, 68, NO, NO, NO, 1 }, /* bti j */
		{ 0xd50324df, ELFRW_INSN_OTHER, 68, NO, NO, NO, 1 }, /* bti jc */
		{ 0xd503241f, ELFRW_INSN_OTHER, 64, NO, NO, NO, 1 }, /* bti */
		{ 0xd65f03c0, ELFRW_INSN_RET, 64, NO, 30, NO, 1 },
		{ 0xd65f0120, ELFRW_INSN_JMP_IND, 64, NO, 9, NO, 1 }, /* ret x9 */
		{ 0xd65f0bff, ELFRW_INSN_RET, 64, NO, 30, NO, 1 },    /* retaa */
		{ 0xd61f0200, ELFRW_INSN_JMP_IND, 64, NO, 16, NO, 1 },
		{ 0xd63f0020, ELFRW_INSN_CALL_IND, 64, NO, 1, NO, 1 },
		{ 0xd71f0a11, ELFRW_INSN_JMP_IND, 64, NO, 16, NO, 1 }, /* braa x16, x17 */
		{ 0xd63f0c1f, ELFRW_INSN_CALL_IND, 64, NO, 0, NO, 1 }, /* blrabz x0 */
		{ 0xdac1905e, ELFRW_INSN_OTHER, 96, 30, NO, NO, 1 },   /* autiasppcr x2 */
		{ 0xdac1a3fe, ELFRW_INSN_OTHER, 96, 30, NO, NO, 1 },   /* paciasppc */
		{ 0xd69f03e0, ELFRW_INSN_RET, 96, NO, NO, NO, 1 },     /* eret */
		{ 0x91000420, ELFRW_INSN_OTHER, 64, 0, 1, NO, 1 },     /* add x0, x1, 1 */
		{ 0x910003fd, ELFRW_INSN_OTHER, 64, 29, 31, NO, 1 },   /* mov x29, sp */
		{ 0x7100041f, ELFRW_INSN_OTHER, 0, NO, 0, NO, 1 },     /* cmp w0, 1 */
		{ 0xf9400fe0, ELFRW_INSN_OTHER, 65, 0, 31, NO, 1 },    /* ldr x0, [sp, 24] */
		{ 0xb900003f, ELFRW_INSN_OTHER, 65, NO, 1, NO, 1 },    /* str wzr, [x1] */
		{ 0x78635840, ELFRW_INSN_OTHER, 1, 0, 2, 3, 2 },     /* ldrh w0, [x2, w3, uxtw 1] */
		{ 0x38634840, ELFRW_INSN_OTHER, 1, 0, 2, 3, 1 },     /* ldrb w0, [x2, w3, uxtw] */
		{ 0xb8a37840, ELFRW_INSN_OTHER, 65, 0, 2, 3, 4 },    /* ldrsw x0, [x2, x3, lsl 2] */
		{ 0xf8637840, ELFRW_INSN_OTHER, 65, 0, 2, 3, 8 },    /* ldr x0, [x2, x3, lsl 3] */
		{ 0x3ce37840, ELFRW_INSN_OTHER, 1, NO, 2, 3, 16 },   /* ldr q0, [x2, x3, lsl 4] */
		{ 0xa9bf7bfd, ELFRW_INSN_OTHER, 65, 29, 31, NO, 1 }, /* stp x29, x30, [sp, -16]! */
		{ 0xf8408d21, ELFRW_INSN_OTHER, 65, 1, 9, NO, 1 },   /* ldr x1, [x9, 8]! */
		{ 0x885ffc20, ELFRW_INSN_OTHER, 65, 0, 1, NO, 1 },   /* ldaxr w0, [x1] */
		{ 0xd53bd040, ELFRW_INSN_OTHER, 64, 0, NO, NO, 1 },  /* mrs x0, tpidr_el0 */
	};
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct elfrw_insn in;
		unsigned len = decode(rows[i].word, &in);
		unsigned wide = rows[i].word >> 31 ? ELFRW_INSN_OWN : 0;
		unsigned flags = (rows[i].flags & ~64u) | wide;
		if (len != 4 || in.kind != rows[i].kind || in.flags != flags ||
		    in.reg != rows[i].reg || in.base != rows[i].base || in.index != rows[i].index ||
		    in.scale != rows[i].scale || in.pcrel_size)
			fail_msg("%08x: kind %u flags %#x registers %u %u %u scale %u",
				 rows[i].word, in.kind, in.flags, in.reg, in.base, in.index,
				 in.scale);
	}
}

/* Words that are no instructions, and places where there can be none. */
static void refused(void **state)
{
	static const uint32_t rows[] = {
		0x00010000, /* not udf */
		0x02000000,
		0x06000000,
		0x16000000 | 1u << 30, /* b, bl with bit 30 */
		0x12400000,            /* and w, N */
		0x1200fc00,            /* and w, all ones */
		0x32800000,            /* movn's opc 01 */
		0x52c00000,            /* movz w, lsl 32 */
		0x53008000,            /* ubfm w, imms 32 */
		0x0b008000,            /* add w, lsl 32 */
		0x0bc00000,            /* add, shift 3 */
		0x8b201400,            /* add, extended, lsl 5 */
		0x1ac00000,            /* two sources, 0 */
		0x5ac00c00,            /* rev w as of 64 bits */
		0xd65f0001,
		0xd6000000,
		0xd4200001,
		0xd4000000,
		0xd5100000 | 1u << 23,
		0x40000000,
		0xa8400000 | 3u << 30, /* ldp, opc 3 */
		0xb8c00000 | 1u << 30, /* ldur, size 3, opc 3 */
		0xf8600800,            /* option bit 1 */
		0xfc800000,            /* SIMD, opc 2 with size 3 */
	};
	struct elfrw_insn in;
	uint8_t code[8] = { 0x1f, 0x20, 0x03, 0xd5 };
	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (decode(rows[i], &in))
			fail_msg("%08x is decoded", rows[i]);
	assert_int_equal(elfrw_a64_decode(code, 4, VA, &in), 4);
	assert_int_equal(elfrw_a64_decode(code, 3, VA, &in), 0);
	assert_int_equal(elfrw_a64_decode(code, 4, VA + 2, &in), 0);
}

/* A word with a PC-relative field is found at any byte. */
static void anywhere(void **state)
{
	uint8_t code[16] = { 0 }, may[16];
	(void)state;
	elfrw_put32(code + 5, 0x94000001);
	elfrw_a64_may_refer(code, sizeof code, sizeof code, may);
	assert_int_equal(may[5], 1);
	elfrw_put32(code + 5, 0xd503201f);
	elfrw_a64_may_refer(code, sizeof code, sizeof code, may);
	for (unsigned i = 0; i < sizeof code; i++)
		assert_int_equal(may[i], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(places),
		cmocka_unit_test(kinds),
		cmocka_unit_test(refused),
		cmocka_unit_test(anywhere),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
