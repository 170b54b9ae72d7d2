/* constant.c: addresses of code that several instructions put into a register part by part.
 *
 * Only code for fixed addresses has these (large code model, start files).  The parts stay, so the
 * code that they name must.  Instructions are read in the order in which they stand, whatever
 * control does: at worst, some code is pinned for nothing.  Relocations for the parts say the same
 * (ELFRW_RELOC_PART), where they were kept.  Cost: one pass over the code of programs with fixed
 * addresses. */
#include "icf/program/program.h"
#include "icf/refs/pair.h"

void icf_pin_constants(struct icf_program *prog)
{
	const struct elfrw_arch *arch = prog->arch;
	if (!arch->constant || prog->img->pic)
		return;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const uint8_t *code = icf_unit_bytes(prog, u);
		uint64_t value[32] = { 0 };
		for (uint64_t pos = 0; u->end - u->start - pos >= arch->fill_size;
		     pos += arch->fill_size) {
			uint8_t r = arch->constant(code + pos, value);
			if (r != ELFRW_REG_NONE)
				icf_pin_named(prog, icf_unit_at(prog, value[r]));
		}
	}
}
