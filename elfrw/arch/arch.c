/* arch.c: the architectures this program knows.  No other file chooses a table. */
#include "elfrw/arch/arch.h"
#include <string.h>

static const struct elfrw_arch *const known[] = {
	&elfrw_arch_x86_64,
	&elfrw_arch_aarch64,
};
enum { N_KNOWN = sizeof known / sizeof *known };

const struct elfrw_arch *elfrw_arch_for(uint16_t machine)
{
	for (size_t i = 0; i < N_KNOWN; i++) {
		if (known[i]->machine == machine)
			return known[i];
	}
	return NULL;
}

const struct elfrw_arch *elfrw_arch_nth(size_t i)
{
	return i < N_KNOWN ? known[i] : NULL;
}

const struct elfrw_arch *elfrw_arch_of(const Elf64_Ehdr *eh)
{
	return elfrw_arch_for(eh->e_machine);
}

struct elfrw_err *elfrw_arch_find(const Elf64_Ehdr *eh, const struct elfrw_arch **ret)
{
	*ret = elfrw_arch_of(eh);
	return *ret ? NULL : elfrw_error("machine %u is not supported", eh->e_machine);
}

void elfrw_fill(const struct elfrw_arch *arch, uint8_t *p, uint64_t va, uint64_t n)
{
	if (arch->fill_size == 1) {
		memset(p, arch->fill[0], n);
		return;
	}
	uint64_t i = 0;
	for (; i < n && i < arch->fill_size; i++)
		p[i] = elfrw_fill_byte(arch, va + i);
	/* What is there is whole traps. */
	for (uint64_t more; i < n; i += more) {
		more = i < n - i ? i : n - i;
		memcpy(p + i, p, more);
	}
}

bool elfrw_dynamic_is_code(const struct elfrw_arch *arch, int64_t tag)
{
	if (tag == DT_INIT || tag == DT_FINI || tag == DT_TLSDESC_PLT)
		return true;
	for (const int64_t *own = arch->dynamic_code; own && *own; own++)
		if (*own == tag)
			return true;
	return false;
}
