/* infer.c: the references of a program that was linked without --emit-relocs, see infer.h. */
#include "icf/infer.h"
#include "elfrw/sort.h"
#include "icf/infer_parts.h"

static int dataref_order(const void *a, const void *b)
{
	const struct icf_dataref *x = a, *y = b;
	return x->place < y->place ? -1 : x->place > y->place;
}

void icf_infer_loose(struct icf_program *prog, uint64_t at, const char *why)
{
	if (prog->loose)
		return;
	prog->loose = why;
	prog->loose_at = at;
}

struct elfrw_err *icf_infer_refs(struct icf_program *prog, unsigned threads)
{
	if (!prog->inferred)
		return NULL;
	if (!prog->img->pic) {
		icf_infer_loose(prog, prog->img->ehdr.e_entry, "its addresses are fixed and have no relocations");
		return icf_infer_fixed(prog, threads);
	}
	struct icf_islands islands = { 0 };
	struct icf_places named = { 0 };
	struct icf_data_map map = { 0 };
	size_t known = prog->dataref.len;
	struct elfrw_err *err = icf_find_islands(prog, threads, &islands);
	if (!err)
		err = icf_data_map_init(prog, &map);
	if (!err)
		err = icf_infer_tables(prog, &map, &named);
	if (!err)
		err = icf_judge_islands(prog, &islands, &named);
	if (!err)
		err = icf_infer_words(prog, &map);
	/* Then there are two ascending runs. */
	if (!err && prog->dataref.len > known)
		qsort(prog->dataref.data + known, prog->dataref.len - known, sizeof *prog->dataref.data, dataref_order);
	if (!err && !elfrw_sort_runs(prog->dataref.data, prog->dataref.len, sizeof *prog->dataref.data, dataref_order))
		err = &elfrw_err_nomem;
	icf_data_map_deinit(&map);
	VEC_FREE(&islands.v);
	VEC_FREE(&named.v);
	return err;
}
