/* machine.h: which machine a file is for.  It serves machines that arch.h has no table for, and no
 * file outside of this folder looks at e_machine. */
#ifndef ELFRW_ARCH_MACHINE_H
#define ELFRW_ARCH_MACHINE_H
#include <elf.h>
#include <stdbool.h>
#include <string.h>

/* Are files with these headers for one machine? */
static inline bool elfrw_same_arch(const Elf64_Ehdr *a, const Elf64_Ehdr *b)
{
	return a->e_machine == b->e_machine;
}

/* What the header of a 32-bit file says, as far as it concerns sections, as that of a 64-bit
 * one. */
static inline void elfrw_widen_header(Elf64_Ehdr *to, const Elf32_Ehdr *from)
{
	memcpy(to->e_ident, from->e_ident, EI_NIDENT);
	to->e_type = from->e_type;
	to->e_machine = from->e_machine;
	to->e_shoff = from->e_shoff;
	to->e_shentsize = from->e_shentsize;
	to->e_shnum = from->e_shnum;
	to->e_shstrndx = from->e_shstrndx;
}
#endif
