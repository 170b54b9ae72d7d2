/* Tests of the x86-64 decoder and architecture table, on byte strings checked by hand. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "elfrw/arch/arch.h"

enum { NO = ELFRW_REG_NONE };
#define VA 0x401000u

/* What is left out is 0. */
struct row {
	const char *bytes; /* hex */
	uint8_t kind;
	uint8_t pc_off, pc_size;
	uint8_t disp_off, disp_size;
	uint8_t imm_off, imm_size;
	uint8_t map, op_off;
	uint8_t flags;
	uint64_t target;
};

#define MEM   ELFRW_INSN_MEM
#define W     ELFRW_INSN_OWN
#define LONG  ELFRW_INSN_LONG_CALL
#define OTHER ELFRW_INSN_OTHER

static unsigned parse(const char *hex, uint8_t *out)
{
	unsigned n = 0;
	for (int used; sscanf(hex, "%2hhx%n", &out[n], &used) == 1; hex += used)
		n++;
	return n;
}

static const struct elfrw_arch *arch(void)
{
	return elfrw_arch_for(EM_X86_64);
}

/* The bytes decode to one instruction of their length, whatever follows them. A truncated part of
 * them does not decode. */
static void check_row(const struct row *r)
{
	uint8_t code[64];
	struct elfrw_insn a, b;
	memset(code, 0x90, sizeof code);
	unsigned n = parse(r->bytes, code);
	unsigned len = arch()->decode(code, sizeof code, VA, &a);
	if (len != n)
		fail_msg("%s: length %u", r->bytes, len);
	assert_int_equal(arch()->decode(code, n, VA, &b), n);
	if (a.len != n || a.kind != r->kind || a.flags != r->flags || a.own_map != r->map ||
	    a.opcode_off != r->op_off || a.opcode != code[a.opcode_off])
		fail_msg("%s: length %u kind %u flags %#x map %#x opcode %#x at %u", r->bytes,
			 a.len, a.kind, a.flags, a.own_map, a.opcode, a.opcode_off);
	if (a.pcrel_size != r->pc_size ||
	    (a.pcrel_size && (a.pcrel_off != r->pc_off || a.target != r->target)))
		fail_msg("%s: PC-relative %u at %u, target %#lx", r->bytes, a.pcrel_size,
			 a.pcrel_off, (unsigned long)a.target);
	if (a.disp_size != r->disp_size || (a.disp_size && a.disp_off != r->disp_off))
		fail_msg("%s: displacement %u at %u", r->bytes, a.disp_size, a.disp_off);
	if (a.imm_size != r->imm_size || (a.imm_size && a.imm_off != r->imm_off))
		fail_msg("%s: immediate %u at %u", r->bytes, a.imm_size, a.imm_off);
	assert_memory_equal(&a, &b, offsetof(struct elfrw_insn, opcode) + 1);
	assert_true(a.target == b.target || !a.pcrel_size);
	for (unsigned cut = 0; cut < n; cut++) {
		uint8_t *part = malloc(cut + 1); /* so that a sanitizer sees a read beyond */
		assert_non_null(part);
		memcpy(part + 1, code, cut);
		if (arch()->decode(part + 1, cut, VA, &b))
			fail_msg("%s cut to %u bytes decodes", r->bytes, cut);
		free(part);
	}
}

#define ROWS(...)                                                         \
	do {                                                              \
		static const struct row rows[] = { __VA_ARGS__ };         \
		for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) \
			check_row(&rows[i]);                              \
	} while (0)

static void branches(void **state)
{
	(void)state;
	ROWS({ "e8 10 00 00 00", ELFRW_INSN_CALL, 1, 4, .target = VA + 5 + 0x10 },
	     { "e8 fb ff ff ff", ELFRW_INSN_CALL, 1, 4, .target = VA },
	     { "e9 00 00 00 80", ELFRW_INSN_JMP, 1, 4, .target = VA + 5 - 0x80000000ull },
	     { "eb fe", ELFRW_INSN_JMP, 1, 1, .target = VA },
	     { "74 7f", ELFRW_INSN_JCC, 1, 1, .target = VA + 2 + 0x7f },
	     { "0f 84 00 01 00 00", ELFRW_INSN_JCC, 2, 4, .map = 1, .op_off = 1,
	       .target = VA + 6 + 0x100 },
	     { "2e 0f 8f ff ff ff ff", ELFRW_INSN_JCC, 3, 4, .map = 1, .op_off = 2,
	       .target = VA + 6 },
	     { "e0 80", ELFRW_INSN_JCC, 1, 1, .target = VA + 2 - 0x80 }, /* loopne */
	     { "e2 00", ELFRW_INSN_JCC, 1, 1, .target = VA + 2 },
	     { "e3 04", ELFRW_INSN_JCC, 1, 1, .target = VA + 6 },                 /* jrcxz */
	     { "67 e3 04", ELFRW_INSN_JCC, 2, 1, .op_off = 1, .target = VA + 7 }, /* jecxz */
	     { "c7 f8 08 00 00 00", ELFRW_INSN_JCC, 2, 4, .target = VA + 14 },    /* xbegin */
	     { "66 c7 f8 08 00", ELFRW_INSN_JCC, 3, 2, .op_off = 1, .flags = LONG,
	       .target = VA + 13 },
	     { "c6 f8 11", OTHER, .imm_off = 2, .imm_size = 1 }, /* xabort */
	     /* prefixes that change nothing: addr32 call, bnd call and jmp, branch hints */
	     { "67 e8 00 00 00 00", ELFRW_INSN_CALL, 2, 4, .op_off = 1, .target = VA + 6 },
	     { "f2 e8 00 00 00 00", ELFRW_INSN_CALL, 2, 4, .op_off = 1, .target = VA + 6 },
	     { "f2 e9 00 00 00 00", ELFRW_INSN_JMP, 2, 4, .op_off = 1, .target = VA + 6 },
	     { "f2 75 00", ELFRW_INSN_JCC, 2, 1, .op_off = 1, .target = VA + 3 },
	     { "3e 75 00", ELFRW_INSN_JCC, 2, 1, .op_off = 1, .target = VA + 3 },
	     /* call __tls_get_addr of the general dynamic model; without REX.W vendors disagree
	      * about 66 */
	     { "66 66 48 e8 00 00 00 00", ELFRW_INSN_CALL, 4, 4, .op_off = 3, .flags = W,
	       .target = VA + 8 },
	     { "66 e8 00 00 00 00", ELFRW_INSN_CALL, 2, 4, .op_off = 1, .flags = LONG,
	       .target = VA + 6 },
	     { "66 e9 00 00 00 00", ELFRW_INSN_JMP, 2, 4, .op_off = 1, .flags = LONG,
	       .target = VA + 6 },
	     { "66 0f 84 00 00 00 00", ELFRW_INSN_JCC, 3, 4, .map = 1, .op_off = 2, .flags = LONG,
	       .target = VA + 7 });
}

static void indirect_and_returns(void **state)
{
	(void)state;
	ROWS({ "ff d0", ELFRW_INSN_CALL_IND }, { "41 ff e3", ELFRW_INSN_JMP_IND, .op_off = 1 },
	     { "ff 25 10 00 00 00", ELFRW_INSN_JMP_IND, 2, 4, .flags = MEM, .target = VA + 0x16 },
	     { "ff 15 10 00 00 00", ELFRW_INSN_CALL_IND, 2, 4, .flags = MEM, .target = VA + 0x16 },
	     { "f2 ff 25 10 00 00 00", ELFRW_INSN_JMP_IND, 3, 4, .op_off = 1, .flags = MEM,
	       .target = VA + 0x17 },
	     { "66 48 ff 15 10 00 00 00", ELFRW_INSN_CALL_IND, 4, 4, .op_off = 2, .flags = MEM | W,
	       .target = VA + 0x18 },
	     { "3e ff e0", ELFRW_INSN_JMP_IND, .op_off = 1, .flags = ELFRW_INSN_NOTRACK },
	     { "3e 41 ff d2", ELFRW_INSN_CALL_IND, .op_off = 2, .flags = ELFRW_INSN_NOTRACK },
	     { "3e ff 24 c5 00 20 40 00", ELFRW_INSN_JMP_IND, .disp_off = 4, .disp_size = 4,
	       .op_off = 1, .flags = MEM | ELFRW_INSN_NOTRACK },
	     { "ff 18", ELFRW_INSN_CALL_IND, .flags = MEM | LONG },
	     { "ff 28", ELFRW_INSN_JMP_IND, .flags = MEM | LONG }, { "ff 30", OTHER, .flags = MEM },
	     { "ff c0", OTHER }, { "c3", ELFRW_INSN_RET }, { "f3 c3", ELFRW_INSN_RET, .op_off = 1 },
	     { "f2 c3", ELFRW_INSN_RET, .op_off = 1 },
	     { "c2 08 00", ELFRW_INSN_RET, .imm_off = 1, .imm_size = 2 },
	     { "66 c3", ELFRW_INSN_RET, .op_off = 1, .flags = LONG },
	     { "cb", ELFRW_INSN_RET, .flags = LONG },
	     { "ca 08 00", ELFRW_INSN_RET, .imm_off = 1, .imm_size = 2, .flags = LONG },
	     { "48 cf", ELFRW_INSN_RET, .op_off = 1, .flags = LONG | W },
	     { "48 0f 07", ELFRW_INSN_RET, .map = 1, .op_off = 2, .flags = LONG | W },
	     { "0f 35", ELFRW_INSN_RET, .map = 1, .op_off = 1, .flags = LONG },
	     { "f3 0f 01 ec", ELFRW_INSN_RET, .map = 1, .op_off = 2, .flags = LONG }, /* uiret */
	     { "0f 05", OTHER, .map = 1, .op_off = 1 }, { "0f 34", OTHER, .map = 1, .op_off = 1 });
}

static void traps_and_nops(void **state)
{
	(void)state;
	ROWS({ "0f 0b", ELFRW_INSN_TRAP, .map = 1, .op_off = 1 }, { "cc", ELFRW_INSN_TRAP },
	     { "f4", ELFRW_INSN_TRAP },
	     { "0f b9 40 10", ELFRW_INSN_TRAP, .disp_off = 3, .disp_size = 1, .map = 1, .op_off = 1,
	       .flags = MEM },
	     { "67 0f b9 40 10", ELFRW_INSN_TRAP, .disp_off = 4, .disp_size = 1, .map = 1,
	       .op_off = 2, .flags = MEM },
	     { "0f ff c1", ELFRW_INSN_TRAP, .map = 1, .op_off = 1 },
	     { "cd 80", OTHER, .imm_off = 1, .imm_size = 1 }, { "f1", OTHER },
	     { "90", ELFRW_INSN_NOP }, { "66 90", ELFRW_INSN_NOP, .op_off = 1 },
	     { "48 90", ELFRW_INSN_NOP, .op_off = 1, .flags = W }, { "f3 90", OTHER, .op_off = 1 },
	     { "41 90", OTHER, .op_off = 1 }, { "87 c0", OTHER },
	     { "0f 1f 00", ELFRW_INSN_NOP, .map = 1, .op_off = 1, .flags = MEM },
	     { "0f 1f 40 00", ELFRW_INSN_NOP, .disp_off = 3, .disp_size = 1, .map = 1, .op_off = 1,
	       .flags = MEM },
	     { "0f 1f 84 00 00 00 00 00", ELFRW_INSN_NOP, .disp_off = 4, .disp_size = 4, .map = 1,
	       .op_off = 1, .flags = MEM },
	     { "66 2e 0f 1f 84 00 00 00 00 00", ELFRW_INSN_NOP, .disp_off = 6, .disp_size = 4,
	       .map = 1, .op_off = 3, .flags = MEM },
	     { "66 66 66 66 66 66 2e 0f 1f 84 00 00 00 00 00", ELFRW_INSN_NOP, .disp_off = 11,
	       .disp_size = 4, .map = 1, .op_off = 8, .flags = MEM },
	     { "f3 0f 1e fa", OTHER, .map = 1, .op_off = 2, .flags = ELFRW_INSN_ENDBR },
	     { "f3 0f 1e fb", OTHER, .map = 1, .op_off = 2 }, /* endbr32 */
	     { "f3 48 0f 1e c8", OTHER, .map = 1, .op_off = 3, .flags = W } /* rdsspq */);
}

static void immediates(void **state)
{
	(void)state;
	ROWS({ "b8 00 20 40 00", OTHER, .imm_off = 1, .imm_size = 4 },
	     { "66 b8 00 20", OTHER, .imm_off = 2, .imm_size = 2, .op_off = 1 },
	     { "48 b8 01 02 03 04 05 06 07 08", OTHER, .imm_off = 2, .imm_size = 8, .op_off = 1,
	       .flags = W },
	     { "66 49 bb 01 02 03 04 05 06 07 08", OTHER, .imm_off = 3, .imm_size = 8, .op_off = 2,
	       .flags = W },
	     { "b3 01", OTHER, .imm_off = 1, .imm_size = 1 },
	     { "68 00 20 40 00", OTHER, .imm_off = 1, .imm_size = 4 },
	     { "66 68 00 20", OTHER, .imm_off = 2, .imm_size = 2, .op_off = 1 },
	     { "6a ff", OTHER, .imm_off = 1, .imm_size = 1 },
	     { "48 c7 c0 00 20 40 00", OTHER, .imm_off = 3, .imm_size = 4, .op_off = 1,
	       .flags = W },
	     { "66 c7 00 34 12", OTHER, .imm_off = 3, .imm_size = 2, .op_off = 1, .flags = MEM },
	     { "48 3d 00 20 40 00", OTHER, .imm_off = 2, .imm_size = 4, .op_off = 1, .flags = W },
	     { "69 c0 e8 03 00 00", OTHER, .imm_off = 2, .imm_size = 4 },
	     { "6b c0 0a", OTHER, .imm_off = 2, .imm_size = 1 });
}

static void groups(void **state)
{
	(void)state;
	/* F6 and F7: only test has an immediate */
	ROWS({ "f6 c1 01", OTHER, .imm_off = 2, .imm_size = 1 },
	     { "f6 04 24 01", OTHER, .imm_off = 3, .imm_size = 1, .flags = MEM },
	     { "f6 d8", OTHER }, { "f7 c1 01 00 00 00", OTHER, .imm_off = 2, .imm_size = 4 },
	     { "66 f7 c1 01 00", OTHER, .imm_off = 3, .imm_size = 2, .op_off = 1 },
	     { "48 f7 c1 01 00 00 00", OTHER, .imm_off = 3, .imm_size = 4, .op_off = 1,
	       .flags = W },
	     { "66 48 f7 c1 01 00 00 00", OTHER, .imm_off = 4, .imm_size = 4, .op_off = 2,
	       .flags = W },
	     { "f7 f9", OTHER }, { "c8 10 00 01", OTHER, .imm_off = 1, .imm_size = 2 }, /* enter */
	     { "a1 01 02 03 04 05 06 07 08", OTHER, .imm_off = 1, .imm_size = 8 },
	     { "48 a3 01 02 03 04 05 06 07 08", OTHER, .imm_off = 2, .imm_size = 8, .op_off = 1,
	       .flags = W },
	     { "64 a0 01 02 03 04 05 06 07 08", OTHER, .imm_off = 2, .imm_size = 8, .op_off = 1 },
	     { "67 a1 01 02 03 04", OTHER, .imm_off = 2, .imm_size = 4, .op_off = 1 },
	     { "8f 00", OTHER, .flags = MEM }, { "8f c0", OTHER }, /* pop, not XOP */
	     { "0f 20 00", OTHER, .map = 1, .op_off = 1 }, /* mov %cr0,%rax: mod is ignored */
	     { "0f 22 45", OTHER, .map = 1, .op_off = 1 });
}

static void memory_operands(void **state)
{
	(void)state;
	ROWS({ "48 8d 05 f9 ff ff ff", OTHER, 3, 4, .op_off = 1, .flags = MEM | W | ELFRW_INSN_LEA,
	       .target = VA },
	     { "8d 04 80", OTHER, .flags = MEM | ELFRW_INSN_LEA },
	     { "48 8d 74 26 00", OTHER, .disp_off = 4, .disp_size = 1, .op_off = 1,
	       .flags = MEM | W | ELFRW_INSN_LEA },
	     /* an immediate after the displacement: the target counts from the instruction's end */
	     { "83 3d 10 00 00 00 07", OTHER, 2, 4, .imm_off = 6, .imm_size = 1, .flags = MEM,
	       .target = VA + 7 + 0x10 },
	     { "48 c7 05 10 00 00 00 78 56 34 12", OTHER, 3, 4, .imm_off = 7, .imm_size = 4,
	       .op_off = 1, .flags = MEM | W, .target = VA + 11 + 0x10 },
	     { "66 81 3d 10 00 00 00 34 12", OTHER, 3, 4, .imm_off = 7, .imm_size = 2, .op_off = 1,
	       .flags = MEM, .target = VA + 9 + 0x10 },
	     { "f6 05 10 00 00 00 01", OTHER, 2, 4, .imm_off = 6, .imm_size = 1, .flags = MEM,
	       .target = VA + 7 + 0x10 },
	     { "66 0f 3a 0f 05 10 00 00 00 08", OTHER, 5, 4, .imm_off = 9, .imm_size = 1, .map = 3,
	       .op_off = 3, .flags = MEM, .target = VA + 10 + 0x10 },
	     { "64 48 8b 04 25 00 00 00 00", OTHER, .disp_off = 5, .disp_size = 4, .op_off = 2,
	       .flags = MEM | W },
	     { "67 8b 05 10 00 00 00", OTHER, 3, 4, .op_off = 1, .flags = MEM | LONG,
	       .target = VA + 7 + 0x10 },
	     { "8b 80 00 20 40 00", OTHER, .disp_off = 2, .disp_size = 4, .flags = MEM },
	     { "66 48 8d 3d 10 00 00 00", OTHER, 4, 4, .op_off = 2,
	       .flags = MEM | W | ELFRW_INSN_LEA, .target = VA + 0x18 },
	     { "f0 48 0f b1 0d 10 00 00 00", OTHER, 5, 4, .map = 1, .op_off = 3, .flags = MEM | W,
	       .target = VA + 0x19 });
}

static void vector_encodings(void **state)
{
	(void)state;
	ROWS({ "c5 f8 77", OTHER, .map = 0x11, .op_off = 2 }, /* vzeroupper */
	     { "c5 fa 10 05 10 00 00 00", OTHER, 4, 4, .map = 0x11, .op_off = 2, .flags = MEM,
	       .target = VA + 0x18 },
	     { "c5 f9 70 c0 1b", OTHER, .imm_off = 4, .imm_size = 1, .map = 0x11, .op_off = 2 },
	     { "c4 e2 79 18 05 10 00 00 00", OTHER, 5, 4, .map = 0x12, .op_off = 3, .flags = MEM,
	       .target = VA + 0x19 },
	     { "c4 e3 fd 00 c0 4e", OTHER, .imm_off = 5, .imm_size = 1, .map = 0x13, .op_off = 3,
	       .flags = W },
	     { "c4 e3 71 4a c2 30", OTHER, .imm_off = 5, .imm_size = 1, .map = 0x13,
	       .op_off = 3 }, /* a register in the imm */
	     { "c4 c2 6d 90 1c a8", OTHER, .map = 0x12, .op_off = 3,
	       .flags = MEM }, /* vpgatherdd */
	     { "62 f1 fd 48 6f 40 01", OTHER, .disp_off = 6, .disp_size = 1, .map = 0x11,
	       .op_off = 4, .flags = MEM | W },
	     { "62 f1 7c 48 28 05 10 00 00 00", OTHER, 6, 4, .map = 0x11, .op_off = 4, .flags = MEM,
	       .target = VA + 0x1a },
	     { "62 f3 7d 48 25 c0 ff", OTHER, .imm_off = 6, .imm_size = 1, .map = 0x13,
	       .op_off = 4 },
	     { "62 f5 7c 48 58 c1", OTHER, .map = 0x15, .op_off = 4 }, /* vaddph */
	     { "8f e8 78 a2 c1 20", OTHER, .imm_off = 5, .imm_size = 1, .map = 0x18,
	       .op_off = 3 }, /* XOP: vpcmov */
	     { "8f e9 78 01 c8", OTHER, .map = 0x19, .op_off = 3 },
	     { "8f ea 78 10 c1 01 00 00 00", OTHER, .imm_off = 5, .imm_size = 4, .map = 0x1a,
	       .op_off = 3 },                                 /* bextr imm32 */
	     { "0f 0f c1 9e", OTHER, .map = 1, .op_off = 1 }, /* 3DNow! pfadd */
	     { "66 0f 38 00 c1", OTHER, .map = 2, .op_off = 3 },
	     { "f2 48 0f 38 f0 c1", OTHER, .map = 2, .op_off = 4, .flags = W },
	     { "66 0f 78 c1 08 10", OTHER, .imm_off = 4, .imm_size = 2, .map = 1,
	       .op_off = 2 },                                       /* extrq */
	     { "c4 e2 7b cb c1", OTHER, .map = 0x12, .op_off = 3 }, /* vsha512rnds2 */
	     { "d9 c0", OTHER },
	     { "dd 05 10 00 00 00", OTHER, 2, 4, .flags = MEM, .target = VA + 0x16 },
	     { "9b", OTHER });
}

static void registers(void **state)
{
	(void)state;
	static const struct {
		const char *bytes;
		uint8_t reg, rm, base, index, scale;
	} rows[] = {
		{ "48 89 e5", 4, 5, NO, NO, 1 },
		{ "4d 89 f8", 15, 8, NO, NO, 1 },
		{ "8b 03", 0, NO, 3, NO, 1 },
		{ "4c 8b 6d f8", 13, NO, 5, NO, 1 },
		{ "48 63 04 8a", 0, NO, 2, 1, 4 },   /* movslq (%rdx,%rcx,4),%rax */
		{ "4b 63 04 a7", 0, NO, 15, 12, 4 }, /* r12 may be an index */
		{ "48 8b 04 24", 0, NO, 4, NO, 1 },  /* rsp may not */
		{ "49 8b 04 24", 0, NO, 12, NO, 1 },
		{ "48 8b 04 c5 00 00 00 00", 0, NO, NO, 0, 8 },
		{ "4a 8b 04 ed 00 00 00 00", 0, NO, NO, 13, 8 },
		{ "8b 04 25 00 00 00 00", 0, NO, NO, NO, 1 },
		{ "43 8b 44 6d 00", 0, NO, 13, 13, 2 },
		{ "48 8d 15 00 00 00 00", 2, NO, NO, NO, 1 },
		{ "49 8b 5d 00", 3, NO, 13, NO, 1 },
		{ "83 ff 0a", 7, 7, NO, NO, 1 }, /* cmp: the reg field extends the opcode */
		{ "41 54", 12, NO, NO, NO, 1 },  /* push %r12 */
		{ "49 bb 01 02 03 04 05 06 07 08", 11, NO, NO, NO, 1 },
		{ "0f cb", 3, NO, NO, NO, 1 },
		{ "c3", NO, NO, NO, NO, 1 },
		{ "41 ff e3", 4, 11, NO, NO, 1 },
		{ "3e 41 ff e3", 4, 11, NO, NO, 1 },
		{ "44 89 c0", 8, 0, NO, NO, 1 },
		{ "c4 41 7d 6f 04 24", 8, NO, 12, NO, 1 },
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint8_t code[64] = { 0 };
		struct elfrw_insn n;
		unsigned len = parse(rows[i].bytes, code);
		assert_int_equal(arch()->decode(code, sizeof code, VA, &n), len);
		if (n.reg != rows[i].reg || n.own_reg != rows[i].rm || n.base != rows[i].base ||
		    n.index != rows[i].index || n.scale != rows[i].scale)
			fail_msg("%s: reg %u rm %u base %u index %u scale %u", rows[i].bytes, n.reg,
				 n.own_reg, n.base, n.index, n.scale);
	}
}

static void invalid(void **state)
{
	(void)state;
	static const char *const rows[] = {
		"06",
		"27",
		"60",
		"9a 00 00 00 00 00 00",
		"ce",
		"d4 0a",
		"d6",
		"ea 00 00 00 00 00 00",
		"82 c0 01",
		"8d c0", /* lea of a register */
		"ff f8",
		"fe d0",
		"0f 04",
		"0f 0a",
		"0f 24 c0",
		"c6 c8 01",
		"66 c5 f8 77",
		"48 c5 f8 77", /* prefixes before VEX */
		"c4 e0 78 77",
		"8f ef 78 00",
		"62 f1 f9 48 6f 00", /* U clear */
		"f0 89 c0",
		"f0 90",
		"f0 8b 00", /* LOCK */
		"66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90",
		"2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 8b 80 00 00 00 00", /* 18 bytes */
		"2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 2e 90",
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint8_t code[64] = { 0 };
		struct elfrw_insn n;
		parse(rows[i], code);
		if (arch()->decode(code, sizeof code, VA, &n))
			fail_msg("%s decodes", rows[i]);
		uint8_t some[20];
		memcpy(some, code, sizeof some);
		if (arch()->decode(some, sizeof some, VA, &n))
			fail_msg("%s decodes near the end", rows[i]);
	}
	struct elfrw_insn n;
	assert_int_equal(arch()->decode(NULL, 0, VA, &n), 0);
}

/* The address space wraps; nothing overflows. */
static void targets(void **state)
{
	(void)state;
	static const uint8_t back[32] = { 0xe8, 0xf0, 0xff, 0xff, 0xff };
	struct elfrw_insn n;
	assert_int_equal(arch()->decode(back, sizeof back, 0, &n), 5);
	assert_true(n.target == (uint64_t)-11);
	assert_int_equal(arch()->decode(back, sizeof back, UINT64_MAX, &n), 5);
	assert_true(n.target == UINT64_MAX - 11);
}

static void thunks(void **state)
{
	(void)state;
	uint8_t buf[16];
	const struct elfrw_arch *a = arch();
	memset(buf, 0xaa, sizeof buf);
	assert_int_equal(a->thunk(buf, 0x1000, 0x2000, false).size, 6);
	assert_memory_equal(buf, "\xe9\xfb\x0f\x00\x00\xcc\xaa", 7);
	memset(buf, 0xaa, sizeof buf);
	assert_int_equal(a->thunk(buf, 0x2000, 0x1000, true).size, 10);
	assert_memory_equal(buf, "\xf3\x0f\x1e\xfa\xe9\xf7\xef\xff\xff\xcc\xaa", 11);
	struct elfrw_thunk t = a->thunk(NULL, 0x1000, 0x2000, true);
	assert_int_equal(t.n_reloc, 1);
	assert_int_equal(t.reloc[0].off, 5);
	assert_int_equal(t.reloc[0].type, R_X86_64_PLT32);
	assert_int_equal(t.reloc[0].addend, -4);
	assert_int_equal(a->thunk(NULL, 0x1000, 0x2000, true).size, 10);
	/* what it writes is what the decoder reads */
	struct elfrw_insn n;
	assert_int_equal(a->decode(buf, sizeof buf, 0x2000, &n), 4);
	assert_int_equal(n.flags, ELFRW_INSN_ENDBR);
	assert_int_equal(a->decode(buf + 4, sizeof buf - 4, 0x2004, &n), 5);
	assert_int_equal(n.kind, ELFRW_INSN_JMP);
	assert_int_equal(n.target, 0x1000);
	/* the edges of rel32 */
	uint64_t from = 0x100000000;
	assert_int_equal(a->thunk(buf, from, from + 5 + 0x7fffffff, false).size, 6);
	assert_int_equal(a->thunk(buf, from, from + 5 + 0x80000000, false).size, 0);
	assert_int_equal(a->thunk(buf, from, from + 5 - 0x80000000, false).size, 6);
	assert_int_equal(a->thunk(buf, from, from + 4 - 0x80000000, false).size, 0);
	assert_int_equal(a->thunk(NULL, from, from + 9 + 0x80000000, true).size, 0);
	assert_int_equal(a->thunk(NULL, from, from + 0x7ffffff0, true).size, 10);
	assert_int_equal(a->thunk(NULL, from, from - 0x7ffffff0, false).size, 6);
}

static void relocations(void **state)
{
	(void)state;
	const struct elfrw_arch *a = arch();
	static const struct {
		uint32_t type;
		uint8_t kind, size;
	} rows[] = {
		{ R_X86_64_NONE, ELFRW_RELOC_NONE, 0 },
		{ R_X86_64_64, ELFRW_RELOC_ABS, 8 },
		{ R_X86_64_32, ELFRW_RELOC_ABS, 4 },
		{ R_X86_64_PC32, ELFRW_RELOC_PCREL, 4 },
		{ R_X86_64_PLT32, ELFRW_RELOC_PCREL, 4 },
		{ R_X86_64_PC64, ELFRW_RELOC_PCREL, 8 },
		{ R_X86_64_GOTPCRELX, ELFRW_RELOC_GOTPCREL, 4 },
		{ R_X86_64_REX_GOTPCRELX, ELFRW_RELOC_GOTPCREL, 4 },
		{ 43, ELFRW_RELOC_GOTPCREL, 4 },
		{ R_X86_64_TPOFF32, ELFRW_RELOC_TLS, 4 },
		{ R_X86_64_TLSGD, ELFRW_RELOC_TLS, 4 },
		{ R_X86_64_GOTOFF64, ELFRW_RELOC_GOTREL, 8 },
		{ R_X86_64_GOTPC64, ELFRW_RELOC_HARD, 8 },
		{ R_X86_64_RELATIVE, ELFRW_RELOC_RELATIVE, 8 },
		{ R_X86_64_IRELATIVE, ELFRW_RELOC_IRELATIVE, 8 },
		{ R_X86_64_GLOB_DAT, ELFRW_RELOC_SYMBOLIC, 8 },
		{ R_X86_64_COPY, ELFRW_RELOC_NONE, 0 },
		{ R_X86_64_SIZE64, ELFRW_RELOC_NONE, 8 },
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct elfrw_reloc_desc d = a->reloc(rows[i].type);
		assert_non_null(d.name);
		assert_int_equal(d.kind, rows[i].kind);
		assert_int_equal(d.size, rows[i].size);
	}
	for (uint32_t t = 0; t <= 51; t++)
		assert_non_null(a->reloc(t).name);
	assert_string_equal(a->reloc(2).name, "R_X86_64_PC32");
	assert_null(a->reloc(52).name);
	assert_null(a->reloc(UINT32_MAX).name);
	assert_int_equal(a->reloc(52).kind, ELFRW_RELOC_HARD);
	assert_true(a->reloc(R_X86_64_32S).sign && !a->reloc(R_X86_64_32).sign);
}

/* No instruction with a PC-relative field is missed, whatever its first four bytes. */
static void may_refer(void **state)
{
	static const uint8_t fourth[] = { 0x05, 0x2d, 0x00, 0xc0, 0xf8, 0x0f, 0x66, 0x8d };
	(void)state;
	size_t n = 0;
	for (uint32_t b = 0; b < 1 << 24; b++) {
		uint8_t code[40] = { (uint8_t)b, (uint8_t)(b >> 8), (uint8_t)(b >> 16),
				     fourth[b % 8 ^ (b >> 16) % 8] };
		uint8_t may = 2;
		struct elfrw_insn in;
		arch()->may_refer(code, sizeof code, 1, &may);
		if (may == 0 && arch()->decode(code, sizeof code, 0x1000, &in) && in.pcrel_size)
			fail_msg("missed: %02x %02x %02x %02x", code[0], code[1], code[2], code[3]);
		n += may;
	}
	assert_in_range(n, 1, 1 << 23);
	/* Bytes near the end are not looked at. */
	static const uint8_t nops[16] = { [0 ... 15] = 0x90 };
	uint8_t may[16];
	for (size_t avail = 0; avail <= sizeof nops; avail++) {
		arch()->may_refer(nops, avail, avail, may);
		for (size_t i = 0; i < avail; i++)
			assert_int_equal(may[i], avail - i < 8);
	}
}

static void architectures(void **state)
{
	(void)state;
	assert_ptr_equal(elfrw_arch_for(EM_X86_64), &elfrw_arch_x86_64);
	assert_null(elfrw_arch_for(EM_386));
	assert_null(elfrw_arch_for(EM_NONE));
	static const uint8_t cfi[] = { 0x0c, 7, 8, 0x90, 1 };
	assert_int_equal(arch()->entry_cfi_size, sizeof cfi);
	assert_memory_equal(arch()->entry_cfi, cfi, sizeof cfi);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(branches),         cmocka_unit_test(indirect_and_returns),
		cmocka_unit_test(traps_and_nops),   cmocka_unit_test(immediates),
		cmocka_unit_test(groups),           cmocka_unit_test(memory_operands),
		cmocka_unit_test(vector_encodings), cmocka_unit_test(registers),
		cmocka_unit_test(invalid),          cmocka_unit_test(targets),
		cmocka_unit_test(thunks),           cmocka_unit_test(relocations),
		cmocka_unit_test(architectures),    cmocka_unit_test(may_refer),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
