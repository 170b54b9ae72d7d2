/* ask.c: what the code of one unit says about a jump table that relocations leave open.
 *
 * A relocated word is the distance to a place, but its relocation does not say from where.  A
 * function that jumps through a table shows this, and the table's length.  Such a function is read
 * as if there were no relocations (unit.c).  This is needed for files whose local symbols were
 * stripped after the link: nothing else in them distinguishes a function's cold part from another
 * function.  Cost: one pass over the code at the first question; then one pass over each unit in
 * question. */
#include "icf/infer/ask.h"
#include <stdlib.h>

/* Marks where instructions begin.  Whether a unit jumps is asked again for each. */
static struct elfrw_err *mark_code(struct icf_asker *ask)
{
	struct icf_program *prog = ask->prog;
	struct icf_trace *t = &ask->finder.t;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		bool clean;
		if (u->kind == ICF_UNIT_OPAQUE || prog->exec.data[u->sec].linkage)
			continue;
		ELFRW_TRY(icf_trace_unit(prog, i, t, &clean));
		for (size_t k = 0; k < t->insn.len && clean; k++)
			icf_set_bit(&ask->insn, u->start + t->insn.data[k].pos);
	}
	return NULL;
}

static struct elfrw_err *get_ready(struct icf_asker *ask)
{
	struct icf_program *prog = ask->prog;
	if (ask->ready)
		return NULL;
	ask->ready = true;
	if (!icf_bits_init(&ask->insn, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	ask->finder = (struct icf_finder){ .prog = prog,
					   .map = &ask->map,
					   .insn = &ask->insn,
					   .called = &ask->called,
					   .found = &ask->found };
	ELFRW_TRY(mark_code(ask));
	ELFRW_TRY(icf_data_map_init(prog, &ask->map));
	return icf_find_called(prog, &ask->called);
}

struct elfrw_err *icf_ask_table(struct icf_asker *ask, uint32_t i, uint64_t base, uint32_t *ret)
{
	*ret = 0;
	if (i == ICF_NONE || ask->prog->unit.data[i].kind == ICF_UNIT_OPAQUE)
		return NULL;
	bool clean;
	ELFRW_TRY(get_ready(ask));
	ELFRW_TRY(icf_trace_unit(ask->prog, i, &ask->finder.t, &clean));
	if (!clean)
		return NULL;
	ask->found.table.len = ask->found.named.v.len = ask->found.doubt.len = 0;
	/* A unit without a jump has no table. */
	ask->prog->unit.data[i].flags |= ICF_UNIT_JUMPS;
	ELFRW_TRY(icf_find_unit_tables(&ask->finder, i));
	for (size_t k = 0; k < ask->found.table.len; k++)
		if (ask->found.table.data[k].base == base)
			*ret = ask->found.table.data[k].n;
	return NULL;
}

void icf_asker_deinit(struct icf_asker *ask)
{
	if (!ask->ready)
		return;
	icf_finder_deinit(&ask->finder);
	icf_data_map_deinit(&ask->map);
	icf_bits_deinit(&ask->insn);
	icf_bits_deinit(&ask->called);
	VEC_FREE(&ask->found.table);
	VEC_FREE(&ask->found.named.v);
	VEC_FREE(&ask->found.doubt);
}
