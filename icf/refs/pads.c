/* pads.c: landing pads outside of the unit whose calls lead there.
 *
 * clang's basic block sections produce them: each block is a unit, and the landing pads of all
 * blocks form a unit of their own.  An exception enters this unit as a branch does, so a landing
 * pad counts like a branch target: blocks are the same only if the units of their landing pads are.
 * Cost: linear in the exception tables. */
#include "dwarf/lsda.h"
#include "elfrw/base/search.h"
#include "icf/program/program.h"

static struct elfrw_err *add_pads(struct icf_program *prog, uint32_t i, const struct dwr_lsda *lsda)
{
	const struct icf_unit *u = &prog->unit.data[i];
	for (size_t s = 0; s < lsda->site.len; s++) {
		uint64_t va = lsda->site.data[s].landing_pad;
		uint32_t t =
			va && va - u->start >= u->end - u->start ? icf_unit_at(prog, va) : ICF_NONE;
		struct icf_pad *slot = t != ICF_NONE ? VEC_PUSH(&prog->pad) : NULL;
		if (t != ICF_NONE && !slot)
			return &elfrw_err_nomem;
		if (slot)
			*slot = (struct icf_pad){ i, t };
	}
	return NULL;
}

struct elfrw_err *icf_find_pads(struct icf_program *prog)
{
	struct dwr_lsda lsda = { 0 };
	struct elfrw_err *err = NULL;
	prog->pad.len = 0;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		for (uint32_t k = u->fde; k < u->fde + u->n_fde && !err; k++) {
			const struct dwr_fde *fde = &prog->cfi.fde.data[prog->cfi.by_pc[k]];
			if (!fde->lsda || fde->pc_end <= fde->pc_begin)
				continue;
			err = dwr_lsda_read(&lsda, prog->img, fde->lsda, fde->pc_begin,
					    fde->pc_end);
			if (!err)
				err = add_pads(prog, i, &lsda);
			else if (err != &elfrw_err_nomem) {
				/* The comparison of units reports this error. */
				elfrw_err_free(err);
				err = NULL;
			}
		}
	}
	dwr_lsda_deinit(&lsda);
	return err;
}

const struct icf_pad *icf_unit_pads(const struct icf_program *prog, uint32_t i, uint32_t *n)
{
	size_t from = LOWER_BOUND(0, prog->pad.len, mid, prog->pad.data[mid].from < i), to = from;
	while (to < prog->pad.len && prog->pad.data[to].from == i)
		to++;
	*n = (uint32_t)(to - from);
	return prog->pad.data ? prog->pad.data + from : NULL;
}
