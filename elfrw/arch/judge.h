/* judge.h: what the verifier knows of instructions.  It is made apart from what the fold decides
 * with (effect.h), from a table of its own, so that a mistake in the one is not made in the other;
 * `make lint` sees to it that neither includes the other.
 *
 * It knows the plain moves by which compilers load, copy and add, and what certainly leaves the
 * rest alone; every other instruction makes everything unknown. */
#ifndef ELFRW_ARCH_JUDGE_H
#define ELFRW_ARCH_JUDGE_H
#include "elfrw/arch/arch.h"

enum elfrw_judge_kind {
	ELFRW_JUDGE_UNKNOWN,   /* nothing is known afterwards */
	ELFRW_JUDGE_SET,       /* the registers in LOST get an unknown value, perhaps none */
	ELFRW_JUDGE_WRITE,     /* so does the memory operand, of up to 64 bytes */
	ELFRW_JUDGE_COPY,      /* TO = FROM, 8 bytes */
	ELFRW_JUDGE_LOAD,      /* TO = 8 bytes of memory */
	ELFRW_JUDGE_LOAD_WORD, /* TO = 4 bytes of memory, sign-extended */
	ELFRW_JUDGE_STORE,     /* memory = FROM, 8 bytes */
	ELFRW_JUDGE_ADDRESS,   /* TO = the memory operand's address */
	ELFRW_JUDGE_ADD,       /* TO = TO + NUMBER, 8 bytes */
	ELFRW_JUDGE_SUM,       /* TO = TO + FROM */
	ELFRW_JUDGE_PUSH,
};

struct elfrw_judgement {
	uint8_t kind;     /* enum elfrw_judge_kind */
	uint8_t to, from; /* registers, or ELFRW_REG_NONE */
	uint32_t lost;    /* all registers that are written, but TO */
	int64_t number;
	int64_t disp; /* of the memory operand */
};

struct elfrw_judge {
	/* IN, which is no call, decoded from CODE. */
	void (*look)(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_judgement *ret);
	/* The register that an indirect jump or call goes to, or ELFRW_REG_NONE. */
	unsigned (*goes_to)(const struct elfrw_insn *in);
	uint8_t regs, sp, fp, argument; /* general registers; the first argument's */
	uint32_t kept;                  /* by calls, without the stack pointer */
};

extern const struct elfrw_judge elfrw_x86_64_judge;
#endif
