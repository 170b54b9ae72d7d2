/* tagged.c: pointers to functions whose lowest bits hold a tag.
 *
 * If the tag is larger than the function, the address lies behind it: in padding, which then seems
 * to belong to the function behind (glue.c), or in that one.  Nothing tells which of the two is
 * meant.  So both keep their places.  A tag fits into the bits that the function's alignment leaves
 * free: without these bits the address is the function's.  Branches have no tags; patchable entries
 * (quiet) are the padding itself.
 *
 * Cost: a few look-ups for each address of a place that is no function's start. */
#include "icf/program/unit.h"
#include "icf/refs/ref.h"

/* Exponents of two: the smallest alignment that leaves bits to compilers' users beside those that
 * languages take themselves, and the largest one that functions ask for, but for whole pages. */
#define LEAST 3
#define MOST  6

static void pin(struct icf_program *prog, uint32_t i)
{
	prog->unit.data[i].flags |= ICF_UNIT_PINNED;
}

/* Unit TO, or padding in front of it, holds VA, whose address is taken. */
static void judge(struct icf_program *prog, uint32_t to, uint64_t va)
{
	const struct icf_unit *u = &prog->unit.data[to];
	if (va - u->start >= (uint64_t)1 << MOST ||
	    (va == u->start && !(u->flags & ICF_UNIT_EXTENDED)))
		return;
	for (unsigned k = LEAST; k <= MOST; k++) {
		uint64_t start = va & ~(((uint64_t)1 << k) - 1);
		uint32_t i = icf_unit_at(prog, start);
		/* The padding in front of that function may belong to it, too. */
		if (i != ICF_NONE && i != to &&
		    (prog->unit.data[i].start == start ||
		     (prog->unit.data[i].flags & ICF_UNIT_EXTENDED))) {
			pin(prog, i);
			pin(prog, to);
		}
	}
}

void icf_pin_tagged(struct icf_program *prog)
{
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		const struct icf_ref *ref = icf_unit_refs(prog, u);
		for (uint32_t r = 0; r < u->n_ref; r++)
			if ((ref[r].flags & ICF_REF_LEA) && ref[r].unit != ICF_NONE &&
			    ref[r].unit != i)
				judge(prog, ref[r].unit, ref[r].target);
	}
	for (size_t i = 0; i < prog->dataref.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[i];
		if (d->kind == ICF_DATA_ADDRESS && !d->quiet && d->unit != ICF_NONE)
			judge(prog, d->unit, d->target);
	}
}
