/* arch.h: what the program needs to know of an architecture, behind one const table.
 *
 * CONTRIBUTING.md tells how to add one.  Only arch.c and machine.h look at e_machine.  The words
 * below mean the same for every architecture. */
#ifndef ELFRW_ARCH_ARCH_H
#define ELFRW_ARCH_ARCH_H
#include "elfrw/arch/form.h"
#include "elfrw/base/err.h"
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct elfrw_model;
struct elfrw_judge;

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
 * field".  Register numbers are the architecture's encoding.  The opcode and whatever is called
 * `own` mean something to the architecture's own tables (effect.h, judge.h) alone. */
struct elfrw_insn {
	uint8_t len;
	uint8_t kind; /* enum elfrw_insn_kind */
	uint8_t pcrel_off,
		pcrel_size; /* the PC-relative field: branch displacement or rip-relative disp32 */
	uint8_t disp_off, disp_size; /* a memory operand's displacement that is not PC-relative */
	uint8_t imm_off,
		imm_size;   /* the immediate operand that could hold an address (moffs too) */
	uint8_t opcode_off; /* of the opcode byte (after prefixes and escape bytes) */
	uint8_t own_map;
	uint8_t reg; /* the register operand, or ELFRW_REG_NONE */
	uint8_t own_reg;
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
#define ELFRW_INSN_OWN     8
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
	ELFRW_RELOC_LOW,    /* the low half of S + A; its high half is elsewhere */
	ELFRW_RELOC_PART, /* any other part of S + A, which stays: what it names keeps its place */
	ELFRW_RELOC_HARD, /* anything whose meaning depends on places we may change and cannot
			     decode: refuse */
};

struct elfrw_reloc_desc {
	const char *name; /* "R_X86_64_PC32", or NULL for an unknown number */
	uint8_t kind;     /* enum elfrw_reloc_kind */
	uint8_t size;     /* of the field, in bytes */
	bool sign;        /* the field is sign-extended */
	bool call;        /* of a branch: linkers may lead it to a PLT entry */
	uint8_t form;     /* of the field, if it is in code and packed; else 0: a whole word.  In
			     data all fields are whole words. */
};

#define ELFRW_FORMS_MAX 32

/* A thunk and the relocations that describe it, each against the kept function's symbol. */
#define ELFRW_THUNK_RELOCS 2
struct elfrw_thunk {
	uint8_t size; /* 0: it does not reach */
	uint8_t n_reloc;
	struct {
		uint8_t off;
		uint32_t type;
		int64_t addend;
	} reloc[ELFRW_THUNK_RELOCS];
};

struct elfrw_thunk_read {
	uint64_t target;
	uint8_t branch; /* offset of what follows the landing pad */
	bool endbr;     /* it begins with one */
};

/* Where the field of a reference is, see elfrw_arch.relax. */
struct elfrw_relaxed {
	uint32_t off;
	bool changed;  /* it is another instruction, and no longer goes through a slot */
	bool branch;   /* it is a direct branch now */
	bool fixed;    /* the field holds the address itself now */
	bool distance; /* it holds the distance from its place now */
};

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
	/* NULL: no instruction holds a half of an address.  Else the form of the field of IN,
	 * decoded from CODE, that is a low half if register IN->base holds a high half; the field
	 * is in the word at CODE.  0: IN has no such field, or it reads that register in another
	 * way, too. */
	uint8_t (*low_form)(const struct elfrw_insn *in, const uint8_t *code);
	/* NULL: no instructions put a number into a register part by part.  Else: the register into
	 * which the instruction at CODE does that, or ELFRW_REG_NONE.  VALUE: of all registers. */
	uint8_t (*constant)(const uint8_t *code, uint64_t value[32]);
	/* NULL: functions hold no literals.  Else: does the instruction at CODE do nothing with
	 * its operand in memory but read it?  *SIZE bytes, or none (a prefetch); *NUMBER: into a
	 * general register. */
	bool (*reads)(const uint8_t *code, unsigned *size, bool *number);
	/* The form of a field of SIZE bytes that holds an address; 0: there is none. */
	uint8_t (*address_form)(unsigned size, bool sign);
	/* Kept relocations of code are needed: references without them are not looked for. */
	bool needs_relocs;
	/* Distances count from the end of the instruction, not from its start. */
	bool from_end;
	/* A reference that reaches no further than this cannot be counted on when code moves: what
	 * it connects moves as one block. */
	uint64_t near_reach;
	unsigned function_align; /* what compilers use: 16 */
	/* A table of exception vectors has this alignment, and an entry of code at each step; 0:
	 * the machine has none. */
	unsigned vectors_align, vectors_step;
	/* They do so only where this takes at most max_padding bytes; elsewhere a function that
	 * moves keeps its address modulo inner_align, which is what they use inside of functions.
	 * inner_align 0: they always do so. */
	unsigned max_padding, inner_align;
	/* The alignment of every .text because the start files ask for it: no sign that other
	 * functions at such a multiple did.  0: none. */
	unsigned start_align;
	/* The trap that fills gaps in code: one instruction of fill_size bytes, a power of two; it
	 * stands at multiples of its size. */
	uint8_t fill[4], fill_size;
	/* Does a sequence of instructions begin at CODE, whose address is VA, that some processors
	 * execute wrongly where it is?  Of addresses that differ by a multiple of page_min, both
	 * or neither matter.  NULL: there is none. */
	bool (*hazard)(const uint8_t *code, size_t avail, uint64_t va);
	/* The two instructions at CODE, whose address is VA, are what linkers make of an address in
	 * two halves that one instruction can compute.  Makes them halves again, of the address TO;
	 * false: they are something else, or TO is out of reach.  NULL: no linker does this. */
	bool (*expand)(uint8_t *code, uint64_t va, uint64_t to);
	uint8_t call_size; /* of a direct call as compilers write it */
	/* A PC-relative relocation's symbol and addend fall short of what the instruction names by
	 * this much, mostly: the bytes from the field to where the distance counts from. */
	uint8_t reloc_short;
	/* Sizes of pages: the least that the architecture knows, and the largest that a file may
	 * ask for by its segments' alignment (elfrw_image_page). */
	uint32_t page_min, page_max;
	/* Could an instruction in SIZE bytes call indirectly?  A look at the bytes that is faster
	 * than decoding them. */
	bool (*may_call_indirectly)(const uint8_t *code, size_t size);
	/* For each of the first N of AVAIL bytes at CODE: stores 0 at RET[i] if no instruction that
	 * begins there has a PC-relative field, else 1.  Faster than decoding, too. */
	void (*may_refer)(const uint8_t *code, size_t avail, size_t n, uint8_t *ret);
	/* Writes a thunk at address FROM that goes on at TO, with the landing-pad instruction first
	 * when ENDBR: the shortest one that reaches.  BUF NULL only asks. */
	struct elfrw_thunk (*thunk)(uint8_t *buf, uint64_t from, uint64_t to, bool endbr);
	/* Are the bytes at CODE, whose address is VA, a thunk?  Returns its length, without the
	 * fill behind it, or 0. */
	unsigned (*read_thunk)(const uint8_t *code, size_t avail, uint64_t va,
			       struct elfrw_thunk_read *ret);
	/* Do the instructions at CODE, whose address is VA, jump to what a slot holds (an entry of
	 * a procedure linkage table)?  *SLOT is its address. */
	bool (*read_stub)(const uint8_t *code, size_t avail, uint64_t va, uint64_t *slot);
	/* Linkers rewrite an instruction that goes through a slot of the global offset table if
	 * they know what the slot holds, each in its own way.  Gives the instruction in the SIZE
	 * bytes at CODE whose blanked field is at OFF one form for all.  SLOT: the field names such
	 * a slot; else the instruction may have been rewritten. */
	struct elfrw_relaxed (*relax)(uint8_t *code, size_t size, uint32_t off, bool slot);
	/* How many bytes of memory the instruction in CODE whose PC-relative field is at OFF reads
	 * at most; 0: not known.  CODE has OFF bytes before the field.  For constants only: names
	 * of data may be read in other ways. */
	unsigned (*read_size)(const uint8_t *code, size_t size, uint32_t off);
	struct elfrw_reloc_desc (*reloc)(uint32_t type);
	/* Tags of the dynamic section that are the architecture's own and whose value is an address
	 * of code; 0 ends them. */
	const int64_t *dynamic_code;
	/* DWARF register numbers (psABI): of the stack pointer, the return address column, and the
	 * first two arguments; how many numbers unwind tables have rules for. */
	uint8_t dwarf_sp, dwarf_ra, dwarf_arg[2], dwarf_registers;
	/* What Breakpad calls the architecture, and the registers, by DWARF number; NULL: it has no
	 * name for one. */
	const char *breakpad;
	const char *const *breakpad_register;
	unsigned n_breakpad_registers;
	/* From the frame pointer of a function that has set it up to its CFA; 0: it varies. */
	uint8_t frame_depth;
	/* The CFI that holds throughout a thunk (DWARF instructions), and the CFA's offset from the
	 * stack pointer. */
	const uint8_t *entry_cfi;
	unsigned entry_cfi_size;
	/* What instructions do: elfrw/arch/effect.h. */
	const struct elfrw_model *model;
	/* What the verifier knows of them: elfrw/arch/judge.h. */
	const struct elfrw_judge *judge;
};

/* The byte of a gap in code that has address VA. */
static inline uint8_t elfrw_fill_byte(const struct elfrw_arch *arch, uint64_t va)
{
	return arch->fill[va & (arch->fill_size - 1u)];
}

/* Are all N bytes at P zero? */
static inline bool elfrw_all_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (p[i])
			return false;
	return true;
}

/* How many bytes at P, whose address is VA, are one trap that fills a gap, or zeros in its stead;
 * 0: they are neither. */
static inline unsigned elfrw_fill_size(const struct elfrw_arch *arch, const uint8_t *p,
				       size_t avail, uint64_t va)
{
	unsigned n = arch->fill_size;
	if (n == 1)
		return *p == arch->fill[0] || *p == 0;
	if (avail >= n && (va & (n - 1)) == 0)
		return memcmp(p, arch->fill, n) == 0 || elfrw_all_zero(p, n) ? n : 0;
	return *p == 0; /* the rest of a word */
}

/* Is IN, at CODE, a no-op as assemblers and linkers fill gaps with?  Their displacements are 0, and
 * none is PC-relative.  Another one holds a number that somebody looks for there. */
static inline bool elfrw_is_fill_nop(const struct elfrw_insn *in, const uint8_t *code)
{
	return in->kind == ELFRW_INSN_NOP && !in->pcrel_size &&
	       elfrw_all_zero(code + in->disp_off, in->disp_size);
}

/* Fills N bytes at P, whose address is VA, with traps. */
void elfrw_fill(const struct elfrw_arch *arch, uint8_t *p, uint64_t va, uint64_t n);

/* Is an address of code what the dynamic section's entry TAG holds (gABI, psABI)? */
bool elfrw_dynamic_is_code(const struct elfrw_arch *arch, int64_t tag);

/* The table for E_MACHINE, or NULL when it is not supported. */
const struct elfrw_arch *elfrw_arch_for(uint16_t machine);

/* The Ith of all tables, or NULL behind the last. */
const struct elfrw_arch *elfrw_arch_nth(size_t i);

/* The table for the machine of a file with header EH.  _of: or NULL. */
const struct elfrw_arch *elfrw_arch_of(const Elf64_Ehdr *eh);
struct elfrw_err *elfrw_arch_find(const Elf64_Ehdr *eh, const struct elfrw_arch **ret);

extern const struct elfrw_arch elfrw_arch_x86_64;
extern const struct elfrw_arch elfrw_arch_aarch64;
#endif
