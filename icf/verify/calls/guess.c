/* guess.c: direct calls that a comparison of addresses chose.
 *
 * `if (p == f) f(); else p();` is what compilers make of a call whose callee they guess.  Where
 * addresses merge, p may have been any function that has the same address now.  So no entry may say
 * that such a call meant f.  Neither file shows what code compares; all direct calls of a function
 * count whose caller takes the address of one that shares its address.  An address that is loaded
 * may serve for a call only, and that of the copy that is kept need not have been any other's: then
 * an entry may be there or not. */
#include "icf/verify/state.h"
#include <stdlib.h>

static uint32_t copy_of(const struct icf_v *v, uint32_t i)
{
	const struct icf_vunit *u = &v->claim.unit.data[i];
	return u->flags & ICF_V_FOLDED ? u->kept : i;
}

/* By unit: it is kept, and another function has its address. */
static uint8_t *find_merged(const struct icf_v *v)
{
	uint8_t *merged = calloc(v->claim.unit.len + 1, 1);
	for (uint32_t i = 0; merged && i < v->claim.unit.len; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		if ((u->flags & ICF_V_FOLDED) && !icf_v_removed(&v->claim, i) &&
		    u->entry == v->claim.unit.data[u->kept].entry)
			merged[u->kept] = 1;
	}
	return merged;
}

struct elfrw_err *icf_v_mark_guesses(struct icf_v *v)
{
	if (!v->taken.len)
		return NULL;
	uint8_t *merged = find_merged(v);
	if (!merged)
		return &elfrw_err_nomem;
	size_t first = 0; /* of those of the call's unit: both lists are in the units' order */
	for (size_t i = 0; i < v->call.len; i++) {
		struct icf_vcall *c = &v->call.data[i];
		const uint32_t copy = copy_of(v, c->target);
		while (first < v->taken.len && v->taken.data[first].unit < c->unit)
			first++;
		for (size_t k = first; k < v->taken.len && v->taken.data[k].unit == c->unit; k++) {
			const struct icf_vtaken *t = &v->taken.data[k];
			if (!merged[copy] || copy_of(v, t->target) != copy)
				continue;
			c->optional = true;
			c->guess |= !t->loaded && t->target != copy;
		}
	}
	free(merged);
	return NULL;
}
