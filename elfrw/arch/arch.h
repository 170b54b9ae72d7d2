/* arch.h: what the program needs to know of an architecture, behind one const table.
 *
 * Adding one: a decoder and an ops table in two new files (arch_NAME.c, NAME_decode.c), one line in
 * arch.c; no other file may test e_machine.  The vocabulary below is neutral; two things that
 * x86-64 hardly needs are in it from the start: a reference whose bytes change with the place it
 * stands at, and a limited branch range (branch_range). */
#ifndef ELFRW_ARCH_ARCH_H
#define ELFRW_ARCH_ARCH_H
#include "elfrw/arch/form.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum elfrw_insn_kind {
	ELFRW_INSN_OTHER, /* falls through to the next instruction */
	ELFRW_INSN_NOP,   /* a no-op, any length: padding when unreachable */
	ELFRW_INSN_TRAP,  /* ud2, hlt, int3: control does not go on (int3 counts as padding when
			     unreachable) */
	ELFRW_INSN_RET,
	ELFRW_INSN_JMP,     /* direct, unconditional */
	ELFRW_INSN_JCC,     /* direct, conditional; also loop, jrcxz, xbegin */
	ELFRW_INSN_CALL,    /* direct */
	ELFRW_INSN_JMP_IND, /* through a register or memory */
	ELFRW_INSN_CALL_IND,
};

#define ELFRW_REG_NONE 0xff

/* One decoded instruction.  Offsets are bytes from its first byte; a size of 0 means "no such
 * field".  Register numbers are the architecture's encoding (x86-64: 0 rax ... 7 rdi, 8 r8 ... 15
 * r15). */
struct elfrw_insn {
	uint8_t len;
	uint8_t kind; /* enum elfrw_insn_kind */
	uint8_t pcrel_off,
		pcrel_size; /* the PC-relative field: branch displacement or rip-relative disp32 */
	uint8_t disp_off, disp_size; /* a memory operand's displacement that is not PC-relative */
	uint8_t imm_off,
		imm_size;   /* the immediate operand that could hold an address (moffs too) */
	uint8_t opcode_off; /* of the opcode byte (after prefixes and escape bytes) */
	uint8_t opcode_map; /* 0 one-byte, 1 0F, 2 0F38, 3 0F3A; VEX/EVEX/XOP: 0x10 | map */
	uint8_t reg;        /* the register operand (ModRM.reg with REX.R), or ELFRW_REG_NONE */
	uint8_t rm;         /* the register in ModRM.rm when mod is 3, else ELFRW_REG_NONE */
	uint8_t base, index,
		scale;   /* the memory operand: registers or ELFRW_REG_NONE; scale 1, 2, 4, 8 */
	uint8_t flags;   /* ELFRW_INSN_* below */
	uint8_t opcode;  /* the opcode byte itself */
	uint64_t target; /* the address that the PC-relative field names (meaningless if pcrel_size
			    is 0) */
};

#define ELFRW_INSN_MEM     1 /* has a memory operand */
#define ELFRW_INSN_LEA     2 /* computes the operand's address and does not touch memory */
#define ELFRW_INSN_ENDBR   4 /* a landing pad of indirect branches (endbr64, bti) */
#define ELFRW_INSN_REX_W   8 /* 64-bit operand size */
#define ELFRW_INSN_NOTRACK 16
#define ELFRW_INSN_LONG_CALL \
	32 /* far or otherwise odd transfer of control: treat the function as not understood */

/* What a relocation asks of its field, whatever the architecture's numbers. */
enum elfrw_reloc_kind {
	ELFRW_RELOC_NONE,     /* nothing to do: NONE, sizes, TLS offsets, copy */
	ELFRW_RELOC_ABS,      /* S + A */
	ELFRW_RELOC_PCREL,    /* S + A - P (PLT forms too) */
	ELFRW_RELOC_GOTPCREL, /* the GOT slot's distance; after relaxation the symbol's, or its
				 address as an immediate */
	ELFRW_RELOC_TLS, /* TLS sequences: stale after relaxation, the decoded instruction is the
			    truth */
	ELFRW_RELOC_RELATIVE, /* dynamic: base + A */
	ELFRW_RELOC_IRELATIVE,
	ELFRW_RELOC_SYMBOLIC, /* dynamic: S (+ A): GLOB_DAT, JUMP_SLOT */
	ELFRW_RELOC_GOTREL, /* S + A - GOT: of data it is a distance between what does not move; of
			       code it is refused */
	ELFRW_RELOC_HARD,   /* anything whose meaning depends on places we may change and cannot
			       decode: refuse */
};

struct elfrw_reloc_desc {
	const char *name; /* "R_X86_64_PC32", or NULL for an unknown number */
	uint8_t kind;     /* enum elfrw_reloc_kind */
	uint8_t size;     /* of the field, in bytes */
	bool sign;        /* the field is sign-extended */
};

#define ELFRW_FORMS_MAX 32

struct elfrw_arch {
	const char *name;
	uint16_t machine; /* e_machine */
	uint8_t address_size;
	/* Decodes one instruction at CODE (AVAIL bytes) whose address is VA.  Returns its length
	 * and fills *INSN, or 0 for bytes that are no valid instruction (INSN then undefined). */
	unsigned (*decode)(const uint8_t *code, size_t avail, uint64_t va, struct elfrw_insn *insn);
	/* The forms of references in code, by number (form.h); 0 is none.  At most
	 * ELFRW_FORMS_MAX. */
	const struct elfrw_form *form;
	unsigned n_forms;
	/* The form of IN's PC-relative field, which it must have. */
	uint8_t (*pcrel_form)(const struct elfrw_insn *in);
	/* The form of a field of SIZE bytes that holds an address; 0: there is none. */
	uint8_t (*address_form)(unsigned size, bool sign);
	/* Distances count from the end of the instruction, not from its start. */
	bool from_end;
	/* A reference that reaches no further than this cannot be counted on when code moves: what
	 * it connects moves as one block. */
	uint64_t near_reach;
	unsigned function_align; /* what compilers use: 16 */
	uint8_t fill;            /* the byte for gaps in code: 0xcc */
	uint8_t call_size;       /* of a direct call as compilers write it */
	/* Could an instruction in SIZE bytes call indirectly?  A look at the bytes that is faster
	 * than decoding them. */
	bool (*may_call_indirectly)(const uint8_t *code, size_t size);
	/* Writes a thunk, one branch from address FROM to address TO, with the landing-pad
	 * instruction first when ENDBR.  Returns its size (the same for all FROM and TO), or 0 when
	 * TO is out of reach; BUF NULL only asks. */
	unsigned (*thunk)(uint8_t *buf, uint64_t from, uint64_t to, bool endbr);
	unsigned thunk_max;
	struct elfrw_reloc_desc (*reloc)(uint32_t type);
	/* Relocation numbers that the writer needs. */
	uint32_t r_abs64, r_relative, r_irelative, r_relr, r_pc32, r_plt32;
	/* DWARF register numbers (psABI): of the stack pointer, the return address column, and the
	 * first two arguments. */
	uint8_t dwarf_sp, dwarf_ra, dwarf_arg[2];
	/* The CFI that holds throughout a thunk (DWARF instructions), and the CFA's offset from the
	 * stack pointer. */
	const uint8_t *entry_cfi;
	unsigned entry_cfi_size;
};

/* The table for E_MACHINE, or NULL when it is not supported. */
const struct elfrw_arch *elfrw_arch_for(uint16_t machine);

extern const struct elfrw_arch elfrw_arch_x86_64;
#endif
