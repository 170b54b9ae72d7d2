/* judge.h: what the verifier knows of instructions.  Its table is written separately from the one
 * with which the fold decides (effect.h), so that the two do not share mistakes.  `make lint`
 * checks that neither includes the other.
 *
 * The verifier knows the plain moves by which compilers load, copy and add, and the instructions
 * that certainly change nothing else.  After any other instruction everything is unknown. */
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

/* What an instruction does with halves of addresses (form.h), which registers hold meanwhile. */
struct elfrw_half_use {
	uint8_t low;     /* the form of its field that is a low half if BASE holds a high half, in
			    the word at its start; 0: none */
	uint8_t base;    /* LOW: a register */
	uint32_t reads;  /* all registers that may be read, but BASE for the address alone */
	uint32_t writes; /* those that get a new value in full */
};

struct elfrw_judge {
	/* What IN, decoded from CODE, does with halves of addresses; false: this is not known.
	 * NULL: no instruction holds a half. */
	bool (*half)(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_half_use *ret);
	/* Does the instruction at CODE load, or prefetch, what its operand in memory names, and
	 * nothing else with memory?  *SIZE bytes (0: a prefetch); *NUMBER: into a general register.
	 * NULL: functions hold no literals. */
	bool (*loads)(const uint8_t *code, unsigned *size, bool *number);
	/* IN, which is no call, decoded from CODE. */
	void (*look)(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_judgement *ret);
	/* Does a sequence begin at CODE, whose address is VA, that some processors execute wrongly
	 * there?  NULL: there is none. */
	bool (*hazard)(const uint8_t *code, size_t avail, uint64_t va);
	/* Do the two instructions at IN compute an address with the second one alone, and those at
	 * OUT, the first of which has address VA, the address *TO in the same register, a half
	 * each? NULL: linkers do not make one of the other. */
	bool (*widened)(const uint8_t *in, const uint8_t *out, uint64_t va, uint64_t *to);
	/* A unit's code of SIZE bytes may end with a label, a sum with it, and a jump to the sum:
	 * how many bytes before the end is the instruction that computes the label's address? 0: it
	 * does not end so.  NULL: compilers do not write this. */
	unsigned (*ends_in_switch)(const uint8_t *code, uint64_t size);
	/* The register that an indirect jump or call goes to, or ELFRW_REG_NONE. */
	unsigned (*goes_to)(const struct elfrw_insn *in);
	uint8_t regs, sp, fp, argument; /* general registers; the first argument's */
	uint32_t kept;                  /* by calls, without the stack pointer */
	bool returns_from_memory;       /* a return goes to what is on the stack */
};

extern const struct elfrw_judge elfrw_x86_64_judge;
extern const struct elfrw_judge elfrw_aarch64_judge;
#endif
