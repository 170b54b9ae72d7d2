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

/* What a unit takes of the addresses of a copy. */
enum { TAKES = 1, TAKES_FOLDED = 2 /* computes that of a function folded into it */ };

/* Notes in TAKES, by copy, or forgets (CLEAR), what the unit of taken[FIRST] takes.  Returns the
 * index of the first one that another unit takes. */
static size_t note_unit(const struct icf_v *v, const uint8_t *merged, size_t first, bool clear,
			uint8_t *takes)
{
	const uint32_t unit = v->taken.data[first].unit;
	size_t k = first;
	for (; k < v->taken.len && v->taken.data[k].unit == unit; k++) {
		const struct icf_vtaken *t = &v->taken.data[k];
		const uint32_t copy = copy_of(v, t->target);
		if (clear)
			takes[copy] = 0;
		else if (merged[copy])
			takes[copy] |= TAKES | (!t->loaded && t->target != copy ? TAKES_FOLDED : 0);
	}
	return k;
}

/* Both lists are in the units' order. */
static void mark_calls(struct icf_v *v, const uint8_t *merged, uint8_t *takes)
{
	size_t i = 0, next;
	for (size_t first = 0; first < v->taken.len; first = next) {
		const uint32_t unit = v->taken.data[first].unit;
		next = note_unit(v, merged, first, false, takes);
		while (i < v->call.len && v->call.data[i].unit < unit)
			i++;
		for (; i < v->call.len && v->call.data[i].unit == unit; i++) {
			struct icf_vcall *c = &v->call.data[i];
			const uint8_t what = takes[copy_of(v, c->target)];
			c->optional |= (what & TAKES) != 0;
			c->guess |= (what & TAKES_FOLDED) != 0;
		}
		note_unit(v, merged, first, true, takes);
	}
}

struct elfrw_err *icf_v_mark_guesses(struct icf_v *v)
{
	if (!v->taken.len)
		return NULL;
	uint8_t *merged = find_merged(v), *takes = calloc(v->claim.unit.len + 1, 1);
	const bool ok = merged && takes;
	if (ok)
		mark_calls(v, merged, takes);
	free(takes);
	free(merged);
	return ok ? NULL : &elfrw_err_nomem;
}
