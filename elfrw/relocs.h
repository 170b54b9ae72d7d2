/* relocs.h: the kept relocations of one section, by place. */
#ifndef ELFRW_RELOCS_H
#define ELFRW_RELOCS_H
#include "elfrw/image.h"

/* Sorted by place; borrowed from the image, or owned. */
struct elfrw_relocs {
	const Elf64_Rela *rela;
	size_t n;
	uint32_t symtab;   /* section index */
	Elf64_Rela *owned; /* if they had to be sorted */
	const char *name;  /* of their section */
};

/* Reads the kept relocations of section SHNDX of IMG; there may be none.  Error: two sections have
 * some.  Close RET also after an error. */
struct elfrw_err *elfrw_relocs_open(struct elfrw_relocs *ret, const struct elfrw_image *img,
				    uint32_t shndx);
void elfrw_relocs_close(struct elfrw_relocs *rel);

/* Index of the first relocation at or after VA. */
size_t elfrw_relocs_from(const struct elfrw_relocs *rel, uint64_t va);

/* Does a dynamic relocation of IMG count from a section, by that section's symbol in .dynsym?  bfd
 * writes such symbols for some machines whether relocations need them or not, and nothing else does
 * anything with them. */
bool elfrw_dynrelocs_name_sections(const struct elfrw_image *img);

/* Are all relocations of IMG in forms that are known, and those that .dynamic gives the dynamic
 * linker in sections of IMG?  Error: there are others. */
struct elfrw_err *elfrw_relocs_known(const struct elfrw_image *img);
#endif
