/* infer.c: the references of a program that was linked without --emit-relocs; see infer.h. */
#include "icf/infer/infer.h"
#include "elfrw/base/sort.h"
#include "icf/infer/parts.h"

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

bool icf_jumps_inside(const struct icf_program *prog, const struct icf_unit *a,
		      const struct icf_unit *b)
{
	const struct icf_ref *ref = icf_unit_refs(prog, a);
	for (uint32_t r = 0; r < a->n_ref; r++)
		if (ref[r].kind == ICF_REF_BRANCH && ref[r].target > b->start &&
		    ref[r].target < b->end)
			return true;
	return false;
}

/* Tables come in address order, so only overlapping tables leave anything to sort. */
static bool is_ascending(const struct icf_program *prog, size_t from)
{
	for (size_t i = from + 1; i < prog->dataref.len; i++)
		if (prog->dataref.data[i - 1].place > prog->dataref.data[i].place)
			return false;
	return true;
}

/* Relocations were kept.  Code that neither a symbol nor an FDE delimits (crtstuff in a stripped
 * file) may still be data. */
static struct elfrw_err *judge_gaps(struct icf_program *prog, unsigned threads)
{
	struct icf_islands islands = { 0 };
	const struct icf_places none = { 0 };
	struct elfrw_err *err = icf_find_islands(prog, threads, &islands, NULL);
	if (!err)
		err = icf_judge_islands(prog, &islands, &none);
	VEC_FREE(&islands.v);
	return err;
}

#define SLACK ((uint64_t)1 << 24) /* tables are addressed with a bias */

/* An address outside of the image is that of something in it, plus a number that its user
 * subtracts (a tag in the high bits).  Nothing tells of what. */
static void judge_outside(struct icf_program *prog)
{
	uint64_t lo, hi;
	elfrw_image_span(prog->img, &lo, &hi);
	const uint64_t size = hi - lo + 2 * SLACK;
	for (size_t i = 0; i < prog->dynreloc.len; i++)
		if (prog->dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE &&
		    prog->dynreloc.data[i].addend - (lo - SLACK) >= size)
			icf_infer_loose(prog, prog->dynreloc.data[i].place,
					"a pointer leads out of the file");
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if ((ref[r].flags & ICF_REF_LEA) && ref[r].target - (lo - SLACK) >= size)
				icf_infer_loose(prog, u->start + ref[r].off,
						"an address in the code leads out of the file");
	}
}

struct elfrw_err *icf_infer_refs(struct icf_program *prog, unsigned threads)
{
	icf_infer_absolute(prog);
	ELFRW_TRY(icf_infer_places(prog));
	if (!prog->inferred) {
		ELFRW_TRY(judge_gaps(prog, threads));
		ELFRW_TRY(icf_infer_arithmetic(prog, threads));
		ELFRW_TRY(icf_infer_bare(prog, NULL, threads));
		return icf_infer_sums(prog, threads);
	}
	if (!prog->img->pic) {
		icf_infer_loose(prog, prog->img->ehdr.e_entry,
				"its addresses are fixed and have no relocations");
		ELFRW_TRY(icf_infer_fixed(prog, threads));
		/* Else addresses of code are numbers, also those that count from an instruction. */
		if (!prog->arch->low_form)
			return icf_infer_arithmetic(prog, threads);
	}
	judge_outside(prog);
	struct icf_islands islands = { 0 };
	struct icf_places named = { 0 };
	struct icf_data_map map = { 0 };
	size_t known = prog->dataref.len;
	struct icf_bits insn;
	if (!icf_bits_init(&insn, prog->exec.data[0].start,
			   prog->exec.data[prog->exec.len - 1].end))
		return &elfrw_err_nomem;
	struct elfrw_err *err = icf_find_islands(prog, threads, &islands, &insn);
	if (!err)
		err = icf_infer_tables(prog, threads, &insn, &map, &named);
	if (!err)
		err = icf_infer_gaps(prog, &map);
	if (!err)
		err = icf_judge_islands(prog, &islands, &named);
	if (!err)
		err = icf_infer_words(prog, &map, threads);
	if (!err)
		err = icf_infer_arithmetic(prog, threads);
	if (!err)
		err = icf_infer_bare(prog, &map, threads);
	if (!err)
		err = icf_infer_runs(prog, &map, threads);
	/* Then there are two ascending runs. */
	if (!err && !is_ascending(prog, known))
		qsort(prog->dataref.data + known, prog->dataref.len - known,
		      sizeof *prog->dataref.data, dataref_order);
	if (!err && !elfrw_sort_runs(prog->dataref.data, prog->dataref.len,
				     sizeof *prog->dataref.data, dataref_order))
		err = &elfrw_err_nomem;
	icf_data_map_deinit(&map);
	icf_bits_deinit(&insn);
	VEC_FREE(&islands.v);
	VEC_FREE(&named.v);
	return err;
}
