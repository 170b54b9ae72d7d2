/* arch.c: the architectures this program knows.  The only place that looks at e_machine. */
#include "elfrw/arch/arch.h"

const struct elfrw_arch *elfrw_arch_for(uint16_t machine)
{
	static const struct elfrw_arch *const known[] = {
		&elfrw_arch_x86_64,
	};
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (known[i]->machine == machine)
			return known[i];
	}
	return NULL;
}
