/* code_reloc.h: what the kept relocations of code mean for their instructions. */
#ifndef ICF_REFS_CODE_RELOC_H
#define ICF_REFS_CODE_RELOC_H
#include "elfrw/relocs.h"
#include "icf/program/program.h"

/* An instruction, and the relocations of its section. */
struct icf_insn_site {
	const struct icf_program *prog;
	const struct elfrw_relocs *rel;
	const struct elfrw_insn *in;
	uint64_t va;         /* of the instruction */
	const uint8_t *code; /* its bytes */
	uint32_t exec;       /* its section */
};

/* What a relocation says of its instruction. */
enum icf_reloc_verdict {
	ICF_RELOC_IGNORE,  /* nothing beyond the decoded instruction */
	ICF_RELOC_ADDRESS, /* the number in this field is an address */
	ICF_RELOC_LOW,     /* the field is the low half of an address of code, or another part */
	/* The bytes are not the instructions that they look like, or the meaning of the field is
	 * unknown: */
	ICF_RELOC_ODD,
	ICF_RELOC_DYNAMIC = ICF_RELOC_ODD, /* it is for the dynamic linker */
	ICF_RELOC_IN_DISTANCE,             /* an address in a PC-relative field */
	ICF_RELOC_IN_NUMBER,               /* a distance in a field that is not PC-relative */
	ICF_RELOC_NO_FIELD,                /* it stands where no field begins */
	ICF_RELOC_TOO_WIDE,                /* for more bytes than the field has */
	ICF_RELOC_NARROW,                  /* a part of an address of code */
	ICF_RELOC_FAR, /* code, referred to with such a large addend that it could move away */
};

/* Does the relocation at PLACE tell, and certainly so, that a half of an address of code of section
 * EXEC stands there?  *TARGET is the address.  For both halves of each address in code compilers
 * and assemblers write relocations, so each half that has one can be written anew without the
 * other. */
bool icf_tells_half(const struct icf_program *prog, uint32_t exec, const struct elfrw_relocs *rel,
		    uint64_t place, uint64_t *target);

/* Do relocations tell that the instruction at PLACE and the one before it were the halves of one
 * address?  Linkers keep these when they make one instruction of both. */
bool icf_was_halves(const struct icf_program *prog, uint32_t exec, const struct elfrw_relocs *rel,
		    uint64_t place);

/* Finds the `doubted` of section EXEC.  gold writes the relocations of the input section that its
 * stubs follow to the start of the output section.  They are one run of the table, in which places
 * ascend: if one place of a run is impossible, all of the run are in doubt. */
struct elfrw_err *icf_find_doubted(struct icf_program *prog, uint32_t exec);
bool icf_is_doubted(const struct icf_program *prog, uint32_t exec, uint64_t place);

/* If *RET is ICF_RELOC_ADDRESS or ICF_RELOC_LOW, *REF is filled, except for its offset.
 * ASTRAY->place is the relocation's if it leads astray, else 0.  Error: something that no program
 * may contain. */
struct elfrw_err *icf_judge_reloc(const struct icf_insn_site *s, const Elf64_Rela *r,
				  enum icf_reloc_verdict *ret, struct icf_ref *ref,
				  struct icf_astray *astray);

/* ---- astray.c ---- */

/* Does VALUE, which a relocation against SYM gives, lie elsewhere than what SYM names? */
bool icf_leads_astray(const struct icf_program *prog, const Elf64_Sym *sym, uint64_t value);
/* It does, at PLACE: what both name stays where it is. */
void icf_pin_astray(struct icf_program *prog, const struct icf_astray *astray);
/* The same for all that decoding found. */
void icf_pin_all_astray(struct icf_program *prog);
#endif
