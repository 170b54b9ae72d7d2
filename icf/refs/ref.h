/* ref.h: decoding units into references. */
#ifndef ICF_REFS_REF_H
#define ICF_REFS_REF_H
#include "icf/program/program.h"

/* The kept relocations of one executable section, sorted by offset; borrowed from the image or
 * owned. */
struct icf_code_relocs {
	const Elf64_Rela *rela;
	size_t n;
	uint32_t symtab;   /* section index */
	Elf64_Rela *owned; /* when they had to be sorted */
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

/* Decodes unit I, appends its references to CHUNK's and sets its flags.  A unit that does not
 * decode, or holds a relocation that no instruction explains, becomes opaque.  An error only for
 * what no program may contain. */
struct elfrw_err *icf_decode_unit(struct icf_program *prog, uint32_t i, uint32_t chunk,
				  const struct icf_code_relocs *rel);

/* Makes units opaque that something enters where no instruction begins.  entered.c. */
struct elfrw_err *icf_check_entered(struct icf_program *prog);
#endif
