/* hazard.c: sequences of instructions that some processors execute wrongly at some places of a
 * page.
 *
 * Linkers keep such sequences away from these places, or replace an instruction by a jump around. A
 * unit that moves must not bring one there.  What the input has already is the linker's business.
 *
 * Cost: for units that move, one look at each word in the last bytes of its pages. */
#include "icf/fold/hazard.h"

bool icf_may_lie_at(const struct icf_program *prog, uint32_t i, uint64_t at)
{
	const struct elfrw_arch *arch = prog->arch;
	const struct icf_unit *u = &prog->unit.data[i];
	const uint8_t *code = icf_unit_bytes(prog, u);
	uint64_t size = u->end - u->start, page = arch->page_min, tail = 4 * arch->fill_size;
	if (!arch->hazard || at == u->start)
		return true;
	for (uint64_t end = (at / page + 1) * page; end - tail < at + size; end += page)
		for (uint64_t va = end - tail < at ? at : end - tail; va < end && va < at + size;
		     va += arch->fill_size)
			if (arch->hazard(code + (va - at), size - (va - at), va))
				return false;
	return true;
}
