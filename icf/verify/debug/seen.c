/* seen.c: lists and tables that were already compared and are correct.
 *
 * Any number of entries may share one list, and any number of units one line table.  Comparing it
 * for each would cost the square of the file's size.  Keys hold everything that the answer depends
 * on, and are in a balanced tree: no file can choose its numbers to make look-ups slow. */
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/seen.h"
#include <dwarf.h>
#include <search.h>
#include <stdlib.h>

struct seen {
	struct icf_vkey key;
	uint32_t id;
};

static int order(const void *pa, const void *pb)
{
	const struct icf_vkey *a = &((const struct seen *)pa)->key,
			      *b = &((const struct seen *)pb)->key;
	for (unsigned i = 0; i < sizeof a->v / sizeof *a->v; i++)
		if (a->v[i] != b->v[i])
			return a->v[i] < b->v[i] ? -1 : 1;
	return 0;
}

bool icf_vseen(const struct icf_vdebug *d, const struct icf_vkey *key)
{
	struct seen s = { .key = *key };
	return tfind(&s, &d->seen, order) != NULL;
}

uint32_t icf_vseen_add(struct icf_vdebug *d, const struct icf_vkey *key)
{
	struct seen s = { .key = *key }, *own, **at = tfind(&s, &d->seen, order);
	if (at)
		return (*at)->id;
	own = malloc(sizeof *own);
	if (own) {
		*own = (struct seen){ *key, d->n_seen++ };
		at = tsearch(own, &d->seen, order);
		if (at)
			return own->id;
		free(own);
	}
	d->log->nomem = true;
	return 0;
}

void icf_vseen_deinit(struct icf_vdebug *d)
{
	tdestroy(d->seen, free);
	d->seen = NULL;
}

static uint64_t number(Dwarf_Die *die, unsigned name, unsigned other)
{
	Dwarf_Attribute attr;
	Dwarf_Word w;
	Dwarf_Addr a;
	if (!dwarf_attr(die, name, &attr) && !dwarf_attr(die, other, &attr))
		return UINT64_MAX;
	if (!dwarf_formaddr(&attr, &a))
		return a;
	return dwarf_formudata(&attr, &w) ? UINT64_MAX - 1 : w;
}

/* The unit gives a list its base, its indexed addresses and their size, and the section. */
void icf_vseen_unit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	uint8_t address = 0, offset = 0;
	Dwarf_Half version = 0;
	Dwarf_Die die;
	dwarf_cu_die(a->cu, &die, &version, NULL, &address, &offset, NULL, NULL);
	d->unit_key = (struct icf_vkey){ { ICF_VSEEN_UNIT | (uint64_t)version << 8 |
						   (uint64_t)address << 24 | (uint64_t)offset << 32,
					   number(a, DW_AT_low_pc, DW_AT_entry_pc),
					   number(b, DW_AT_low_pc, DW_AT_entry_pc),
					   number(a, DW_AT_addr_base, DW_AT_GNU_addr_base),
					   number(b, DW_AT_addr_base, DW_AT_GNU_addr_base) } };
	d->unit_id = UINT32_MAX;
}

bool icf_vseen_list(struct icf_vdebug *d, enum icf_vseen_what what, uint64_t more,
		    Dwarf_Attribute *x, Dwarf_Attribute *y, struct icf_vkey *ret)
{
	Dwarf_Word a, b;
	if (dwarf_formudata(x, &a) || dwarf_formudata(y, &b)) {
		/* By index, from a base of the unit. */
		if ((x->form != DW_FORM_rnglistx && x->form != DW_FORM_loclistx) ||
		    y->form != x->form || !d->end[0] || !d->end[1])
			return false;
		struct elfrw_rbuf p = elfrw_rbuf(x->valp, (size_t)(d->end[0] - x->valp)),
				  q = elfrw_rbuf(y->valp, (size_t)(d->end[1] - y->valp));
		a = elfrw_rbuf_uleb(&p);
		b = elfrw_rbuf_uleb(&q);
		if (p.bad || q.bad)
			return false;
		*ret = (struct icf_vkey){ { what, a, b, more, (uint64_t)(uintptr_t)x->cu } };
		return true;
	}
	if (d->unit_id == UINT32_MAX)
		d->unit_id = icf_vseen_add(d, &d->unit_key);
	*ret = (struct icf_vkey){ { what | UINT64_C(1) << 32, a, b, more, d->unit_id } };
	return true;
}
