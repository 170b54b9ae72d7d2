/* symbol.h: what machines do to symbol tables.  Needs no decoder, so it serves machines that
 * elfrw/arch/arch.h does not. */
#ifndef ELFRW_ARCH_SYMBOL_H
#define ELFRW_ARCH_SYMBOL_H
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Mapping symbols tell what kind of bytes follow, not where a function is: $x and $d (ELF for the
 * Arm 64-bit Architecture, "Mapping symbols"), $a, $t and $d (32-bit), $x and $d (RISC-V ELF
 * psABI).  So do the labels ".L0 " that RISC-V assemblers leave for differences. */
static inline bool elfrw_symbol_is_mapping(const Elf64_Ehdr *eh, unsigned type, const char *name)
{
	uint16_t machine = eh->e_machine;
	if ((machine != EM_AARCH64 && machine != EM_ARM && machine != EM_RISCV) ||
	    type != STT_NOTYPE)
		return false;
	if (machine == EM_RISCV && !strcmp(name, ".L0 "))
		return true;
	return !*name || (name[0] == '$' &&
			  (name[1] == 'x' || name[1] == 'd' || name[1] == 't' || name[1] == 'a'));
}

/* A mapping symbol NAME: is what follows data?  $d, or $d.ANYTHING. */
static inline bool elfrw_symbol_begins_data(const char *name)
{
	return name[0] == '$' && name[1] == 'd' && (name[2] == 0 || name[2] == '.');
}

/* The address that a symbol's value stands for: bit 0 of a 32-bit Arm function says Thumb. */
static inline uint64_t elfrw_symbol_address(const Elf64_Ehdr *eh, unsigned type, uint64_t value)
{
	return eh->e_machine == EM_ARM && type == STT_FUNC ? value & ~UINT64_C(1) : value;
}
#endif
