/* code_reloc.h: the kept relocations of code, and what each means for its instruction. */
#ifndef ICF_REFS_CODE_RELOC_H
#define ICF_REFS_CODE_RELOC_H
#include "icf/program/program.h"

/* The kept relocations of one executable section, sorted by offset; borrowed from the image or
 * owned. */
struct icf_code_relocs {
	const Elf64_Rela *rela;
	size_t n;
	uint32_t symtab;   /* section index */
	Elf64_Rela *owned; /* if they had to be sorted */
	const char *name;
};

struct elfrw_err *icf_code_relocs_open(struct icf_code_relocs *ret, const struct icf_program *prog,
				       const struct icf_exec *e);
void icf_code_relocs_close(struct icf_code_relocs *rel);

/* Index of the first relocation at or after VA. */
size_t icf_code_relocs_from(const struct icf_code_relocs *rel, uint64_t va);

/* The symbol of a relocation; zeroed for symbol 0.  false: no such symbol. */
bool icf_reloc_symbol(const struct elfrw_image *img, uint32_t symtab, const Elf64_Rela *r,
		      Elf64_Sym *ret);

/* An instruction, and the relocations of its section. */
struct icf_insn_site {
	const struct icf_program *prog;
	const struct icf_code_relocs *rel;
	const struct elfrw_insn *in;
	uint64_t va;         /* of the instruction */
	const uint8_t *code; /* its bytes */
};

/* What a relocation says of its instruction. */
enum icf_reloc_verdict {
	ICF_RELOC_IGNORE,  /* nothing beyond the decoded instruction */
	ICF_RELOC_ADDRESS, /* the number in this field is an address */
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

/* If *RET is ICF_RELOC_ADDRESS, *REF is filled, except for its offset.  Error: something that no
 * program may contain. */
struct elfrw_err *icf_judge_reloc(const struct icf_insn_site *s, const Elf64_Rela *r,
				  enum icf_reloc_verdict *ret, struct icf_ref *ref);
#endif
