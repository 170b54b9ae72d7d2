/* x86_effect.c: what x86-64 instructions read and write that name both general and vector
 * registers. Both kinds have the same numbers in an instruction, but only general registers
 * count as read or written. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "elfrw/arch/arch.h"
#include "elfrw/arch/effect.h"

enum { RAX = 1, RCX = 2, RDX = 4, RBX = 8 };

struct row {
	const char *bytes; /* hex */
	uint8_t op;
	uint8_t reads, writes;
	uint8_t flags; /* ELFRW_EFFECT_LOADS, ELFRW_EFFECT_STORES */
};

static void check_row(const struct row *r)
{
	uint8_t code[16];
	struct elfrw_insn in;
	struct elfrw_effect e;
	unsigned n = 0;
	memset(code, 0x90, sizeof code);
	for (const char *p = r->bytes; sscanf(p, "%2hhx", &code[n]) == 1; p += p[2] ? 3 : 2)
		n++;
	assert_int_equal(elfrw_arch_for(EM_X86_64)->decode(code, sizeof code, 0x1000, &in), n);
	elfrw_x86_64_model.effect(&in, code, &e);
	if (e.op != r->op || e.reads != r->reads || e.writes != r->writes)
		fail_msg("%s: operation %u, reads %#x, writes %#x", r->bytes, e.op, e.reads,
			 e.writes);
	if (r->op != ELFRW_OP_OTHER)
		assert_int_equal(e.flags & (ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES), r->flags);
	/* A general register is an operand only if it is read or written. */
	if (r->op == ELFRW_OP_VECTOR)
		assert_int_equal(e.dst, ELFRW_REG_NONE);
}

static void vector_registers(void **state)
{
	(void)state;
	enum { V = ELFRW_OP_VECTOR, O = ELFRW_OP_OTHER };
	enum { BOTH = ELFRW_EFFECT_LOADS | ELFRW_EFFECT_STORES };
	static const struct row rows[] = {
		{ "0f 28 c1", V, 0, 0, 0 },          /* movaps %xmm1, %xmm0 */
		{ "66 0f fe c3", V, 0, 0, 0 },       /* paddd %xmm3, %xmm0 */
		{ "f3 0f 7e c1", V, 0, 0, 0 },       /* movq %xmm1, %xmm0 */
		{ "c5 f1 fe c3", V, 0, 0, 0 },       /* vpaddd %xmm3, %xmm1, %xmm0 */
		{ "c4 e2 79 18 c1", V, 0, 0, 0 },    /* vbroadcastss %xmm1, %xmm0 */
		{ "62 f1 7d 48 6f c1", V, 0, 0, 0 }, /* vmovdqa32 %zmm1, %zmm0 */
		{ "66 0f 6f 03", V, RBX, 0, BOTH },  /* movdqa (%rbx), %xmm0 */
		{ "0f 11 03", V, RBX, 0, BOTH },     /* movups %xmm0, (%rbx) */
		{ "66 0f 6e c1", V, RCX, 0, 0 },     /* movd %ecx, %xmm0 */
		{ "66 0f c4 c1 00", V, RCX, 0, 0 },  /* pinsrw $0, %ecx, %xmm0 */
		{ "f2 0f 2a c1", V, RCX, 0, 0 },     /* cvtsi2sd %ecx, %xmm0 */
		{ "66 0f 7e c1", O, 0, RCX, 0 },     /* movd %xmm0, %ecx */
		{ "66 0f c5 c1 00", O, 0, RAX, 0 },  /* pextrw $0, %xmm1, %eax */
		{ "66 0f d7 c3", O, 0, RAX, 0 },     /* pmovmskb %xmm3, %eax */
		{ "f2 0f 2c c3", O, 0, RAX, 0 },     /* cvttsd2si %xmm3, %eax */
		{ "01 c8", ELFRW_OP_ADD, RAX | RCX, RAX, 0 },
	};
	for (unsigned i = 0; i < sizeof rows / sizeof *rows; i++)
		check_row(&rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(vector_registers) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
