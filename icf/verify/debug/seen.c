/* seen.c: lists and tables that were already compared and are correct.
 *
 * Any number of entries may share one list, and any number of units one line table.  Comparing it
 * for each would cost the square of the file's size.  Keys hold everything that the answer depends
 * on, and are in a hash table, half full at most; its seed is random: no file can choose its
 * numbers to make look-ups slow. */
#include "icf/verify/debug/seen.h"
#include "icf/verify/debug/debug.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

struct icf_vseen_table {
	uint32_t *slot; /* number of the key + 1 */
	size_t slots;   /* a power of two */
	uint64_t seed;
	VEC(struct icf_vkey) key; /* by number */
};

/* The slot of KEY, or the free one where it belongs. */
static uint32_t *slot_of(const struct icf_vseen_table *t, const struct icf_vkey *key)
{
	size_t i = XXH3_64bits_withSeed(key, sizeof *key, t->seed) & (t->slots - 1);
	while (t->slot[i] && memcmp(&t->key.data[t->slot[i] - 1], key, sizeof *key) != 0)
		i = (i + 1) & (t->slots - 1);
	return &t->slot[i];
}

/* The table, with room for one more key; NULL: no memory. */
static struct icf_vseen_table *with_room(struct icf_vdebug *d)
{
	struct icf_vseen_table *t = d->seen;
	if (!t) {
		t = d->seen = calloc(1, sizeof *t);
		/* Without random numbers, the address is one. */
		if (t && getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) < 0)
			t->seed = (uintptr_t)t;
	}
	if (!t || t->key.len < t->slots / 2)
		return t;
	struct icf_vseen_table more = *t;
	more.slots = t->slots ? 2 * t->slots : 256;
	more.slot = t->key.len < UINT32_MAX - 1 ? calloc(more.slots, sizeof *more.slot) : NULL;
	if (!more.slot)
		return NULL;
	for (size_t k = 0; k < t->key.len; k++)
		*slot_of(&more, &t->key.data[k]) = (uint32_t)k + 1;
	free(t->slot);
	*t = more;
	return t;
}

bool icf_vseen(const struct icf_vdebug *d, const struct icf_vkey *key)
{
	return d->seen && d->seen->slots && *slot_of(d->seen, key);
}

uint32_t icf_vseen_add(struct icf_vdebug *d, const struct icf_vkey *key)
{
	struct icf_vseen_table *t = with_room(d);
	uint32_t *at = t ? slot_of(t, key) : NULL;
	if (at && *at)
		return *at - 1;
	struct icf_vkey *own = at ? VEC_PUSH(&t->key) : NULL;
	if (!own) {
		d->log->nomem = true;
		return 0;
	}
	*own = *key;
	*at = (uint32_t)t->key.len;
	return *at - 1;
}

void icf_vseen_deinit(struct icf_vdebug *d)
{
	if (d->seen) {
		free(d->seen->slot);
		VEC_FREE(&d->seen->key);
	}
	free(d->seen);
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
