/* thunk.c: see thunk.h. */
#include "icf/fold/thunk.h"
#include <stdlib.h>

unsigned icf_thunk_size(const struct icf_program *prog, const struct icf_unit *u, uint64_t from,
			uint64_t to)
{
	return prog->arch->thunk(NULL, from, to, u->flags & ICF_UNIT_ENDBR).size;
}

/* A thunk has the same low bits of address as its function, and an even address in any case. No
 * file says which bits matter: 16 may be a compiler's habit or aligned(16). C++ needs one bit,
 * LLVM's PointerIntPair takes two, and some libraries of tagged pointers take four because
 * compilers have that habit. */
uint64_t icf_thunk_align(const struct icf_unit *u)
{
	return (uint64_t)1 << (u->entry_align ? u->entry_align : 1);
}

bool icf_needs_thunk(bool in_place, const struct icf_options *opt, const struct icf_unit *u)
{
	return in_place || (opt->mode == ICF_MODE_SAFE && (u->flags & ICF_UNIT_OBSERVED));
}

uint32_t icf_thunk_section(const struct icf_program *prog)
{
	uint32_t best = ICF_NONE;
	for (uint32_t e = 0; e < prog->exec.len; e++) {
		const struct icf_exec *x = &prog->exec.data[e];
		if (!x->linkage && !x->apart && !x->writable &&
		    (best == ICF_NONE ||
		     x->end - x->start > prog->exec.data[best].end - prog->exec.data[best].start))
			best = e;
	}
	return best;
}

bool icf_in_thunk_part(const struct icf_program *prog, uint32_t section, uint64_t va)
{
	if (section == ICF_NONE || !prog->mark.len)
		return true;
	const struct icf_exec *x = &prog->exec.data[section];
	uint64_t last = x->n_units ? prog->unit.data[x->unit + x->n_units - 1].start : x->start;
	return icf_marks_before(prog, va) == icf_marks_before(prog, last);
}
