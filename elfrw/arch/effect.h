/* effect.h: what one instruction does to general registers and to memory, in words that mean
 * the same for every architecture.  The code that reads sequences of instructions (jump tables,
 * virtual calls, the use of an address) asks here and knows no opcodes.
 *
 * The model covers what compilers write.  `reads` and `writes` are complete for every instruction
 * that the decoder accepts: these sets hold all that may be read or written, and more for a few
 * system instructions.  `op` names a result only if the other fields describe it in full. */
#ifndef ELFRW_ARCH_EFFECT_H
#define ELFRW_ARCH_EFFECT_H
#include "elfrw/arch/arch.h"

#define ELFRW_MAX_REGS 32

/* DST is the result; A and B are operands.  An operand that is no register is the memory operand
 * (ELFRW_EFFECT_LOADS) or the immediate (ELFRW_EFFECT_IMM, always B's place, or MOV's and PUSH's
 * only operand); a result that is no register goes to memory (ELFRW_EFFECT_STORES). */
enum elfrw_op {
	ELFRW_OP_OTHER, /* what comes out is not told, but for `writes` */
	ELFRW_OP_NONE,  /* nothing: no-ops, jumps, hints */
	ELFRW_OP_MOV,   /* DST = A, or the immediate */
	ELFRW_OP_LOAD,  /* DST = memory */
	ELFRW_OP_STORE, /* memory = A, or the immediate */
	/* DST = the low FROM bytes of A or of memory, extended to WIDTH; neither: other bytes */
	ELFRW_OP_ZERO_EXTEND,
	ELFRW_OP_SIGN_EXTEND,
	ELFRW_OP_ADDRESS, /* DST = the memory operand's address */
	ELFRW_OP_ADD,     /* DST = A + B, and so on */
	ELFRW_OP_SUB,
	/* DST = (A + B's low FROM bytes) with B shifted; they are sign-extended
	 * (ELFRW_EFFECT_SIGN), or zero-extended */
	ELFRW_OP_ADD_PART,
	/* Another sum or difference: with a carry, of a product; or what could be one */
	ELFRW_OP_SUM,
	ELFRW_OP_AND,
	ELFRW_OP_OR,
	ELFRW_OP_XOR,
	ELFRW_OP_NEG,
	ELFRW_OP_SHL,    /* DST = A, or low bits of it, shifted left by B */
	ELFRW_OP_MUL,    /* the product's low half */
	ELFRW_OP_DIVIDE, /* `writes` has the results; faults on zero */
	ELFRW_OP_CMP,    /* A - B, for the flags alone */
	ELFRW_OP_TEST,   /* A & B, for the flags alone */
	ELFRW_OP_CHOOSE, /* DST = A or B, depending on flags; a B that is no register: A or DST */
	ELFRW_OP_XCHG,   /* DST and A trade places, perhaps after a sum or a comparison */
	ELFRW_OP_PUSH,   /* A goes onto the stack */
	ELFRW_OP_POP,
	ELFRW_OP_CALL,   /* as the psABI has it; DST: the result */
	ELFRW_OP_VECTOR, /* of vector registers; memory may be read or written */
	/* More than one of: DST and B are loaded, FROM bytes each; memory changes; all others in
	 * `writes` are parts of the memory operand and get a sum. */
	ELFRW_OP_LOAD_MORE,
	/* A and B, or one of them, go to memory, WIDTH bytes each; `writes` as above */
	ELFRW_OP_STORE_MORE,
};

#define ELFRW_EFFECT_LOADS  1 /* reads memory */
#define ELFRW_EFFECT_STORES 2 /* writes memory */
#define ELFRW_EFFECT_IMM    4
#define ELFRW_EFFECT_GUARD  8 /* the memory operand is the stack protector's random number */
#define ELFRW_EFFECT_SIGN   16
#define ELFRW_EFFECT_SUM    64 /* XCHG: DST gets the sum of both */
#define ELFRW_EFFECT_FLAGS  32 /* may change the condition flags (elfrw_model.tells_flags) */

/* When a conditional jump is taken, after a comparison of A with B as unsigned numbers. */
enum elfrw_cond {
	ELFRW_COND_OTHER,
	ELFRW_COND_BELOW, /* A < B */
	ELFRW_COND_NOT_BELOW,
	ELFRW_COND_ABOVE, /* A > B */
	ELFRW_COND_NOT_ABOVE,
};

struct elfrw_effect {
	uint8_t op;    /* enum elfrw_op */
	uint8_t width; /* of the operation, in bytes; 4: the rest of DST becomes zero; less than 4:
			  it stays, and DST is among `reads` */
	uint8_t from;  /* *_EXTEND: bytes of the source */
	uint8_t dst, a, b;      /* registers, or ELFRW_REG_NONE */
	uint8_t flags;          /* ELFRW_EFFECT_* */
	uint8_t shift;          /* ADD: B is shifted left by so many bits before */
	uint8_t cond;           /* of a conditional jump: enum elfrw_cond */
	uint32_t reads, writes; /* sets of registers: bit N is register N */
	int64_t imm;
	int64_t disp; /* the memory operand's displacement, not of a PC-relative one */
};

/* A kind of jump table.  Its entries are distances to the cases, which the jump's code adds up: as
 * an index into the table, the load of an entry, a sum. */
struct elfrw_table_shape {
	uint8_t size;  /* of an entry, in bytes */
	uint8_t shift; /* of an entry, to the left, in the sum */
	bool sign;     /* it is sign-extended */
	/* It counts from a place in the function's code, and so it is right wherever the function
	 * is.  Else from the table's start: it changes with the function's place, and must be 4
	 * signed bytes without a shift. */
	bool label;
};

/* What an architecture's instructions do, and what its psABI uses registers for. */
struct elfrw_model {
	/* IN: decoded from CODE. */
	void (*effect)(const struct elfrw_insn *in, const uint8_t *code, struct elfrw_effect *ret);
	/* ELFRW_EFFECT_FLAGS is set where it belongs; else any instruction may change them. */
	bool tells_flags;
	const struct elfrw_table_shape *table; /* those that compilers make */
	uint8_t n_tables;
	uint8_t regs;        /* general registers, 0 to REGS - 1 */
	uint8_t result;      /* of functions */
	uint8_t argument[2]; /* the first two */
	uint8_t sp, fp;
	uint8_t link; /* gets the return address of a call; ELFRW_REG_NONE: the stack does */
	uint32_t results, arguments, clobbered, kept; /* sets; by calls; the stack pointer is in
							 neither of the last two */
	uint8_t dwarf[ELFRW_MAX_REGS];                /* DWARF register numbers */
};

static inline uint32_t elfrw_reg_bit(unsigned reg)
{
	return reg < ELFRW_MAX_REGS ? UINT32_C(1) << reg : 0;
}

/* Does memory operand IN have no more than a base register and a displacement? */
static inline bool elfrw_is_plain_operand(const struct elfrw_insn *in)
{
	return (in->flags & ELFRW_INSN_MEM) && in->base != ELFRW_REG_NONE &&
	       in->index == ELFRW_REG_NONE && !in->pcrel_size;
}

extern const struct elfrw_model elfrw_x86_64_model, elfrw_aarch64_model;
#endif
