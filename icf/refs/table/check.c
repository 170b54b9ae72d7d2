/* check.c: are the jump tables real, and what else could distances in data mean?
 *
 * Every entry must lead to an instruction.  A run of distances whose entries do not is no table.
 * Neither is a run whose fields also lead to instructions in other units when counted from their
 * own places, unless a jump goes through the run.  A field that no table explains may be a distance
 * from anything in its section: it stays as it is, and all its possible targets in code are pinned.
 */
#include "elfrw/base/search.h"
#include "icf/refs/pool.h"
#include "icf/refs/table/table.h"
#include "icf/program/unit.h"
#include <stdlib.h>

/* A word may lead to VA.  If literals are there, they may be code: they stay with all that they
 * could lead to. */
static void pin_literals(struct icf_program *prog, uint64_t va)
{
	if (!icf_in_literals(prog, va))
		return;
	struct icf_unit *u = &prog->unit.data[icf_unit_at(prog, va)];
	u->flags |= ICF_UNIT_PINNED;
	for (uint64_t pos = u->start; pos < u->end; pos += prog->arch->fill_size) {
		struct elfrw_insn in;
		if (icf_data_end(prog, pos) == pos ||
		    !prog->arch->decode(icf_unit_bytes(prog, u) + (pos - u->start), u->end - pos,
					pos, &in) ||
		    !in.pcrel_size || !icf_in_exec(prog, in.target))
			continue;
		uint32_t to = icf_unit_at(prog, in.target);
		if (to != ICF_NONE)
			prog->unit.data[to].flags |= ICF_UNIT_PINNED;
	}
}

/* Is field D one of a table of addresses, or does no relocation show that it is an entry?  Then it
 * has no other explanation. */
static struct elfrw_err *refuse(const struct icf_program *prog, const struct icf_dataref *d)
{
	if (d->kind == ICF_DATA_ENTRY && !prog->inferred)
		return NULL;
	return elfrw_error("jump table entry at 0x%llx leads to 0x%llx, which is no instruction",
			   (unsigned long long)d->place, (unsigned long long)d->target);
}

/* Refuses a table that must be one and is not. */
static struct elfrw_err *look_at(struct icf_program *prog, struct icf_entries *e, unsigned threads,
				 atomic_uchar *seen)
{
	ELFRW_TRY(icf_look_at_entries(prog, threads, e, seen));
	for (size_t i = 0; i < e->v.len; i++)
		if (!e->v.data[i].own)
			pin_literals(prog, e->v.data[i].target);
	for (size_t i = 0; i < e->v.len; i++) {
		const struct icf_dataref *d = &prog->dataref.data[e->v.data[i].field];
		if (seen[d->table] & ICF_TABLE_ASTRAY)
			ELFRW_TRY(refuse(prog, d));
	}
	return NULL;
}

/* Does a function that refers to the table at BASE jump through all of its N entries? */
static struct elfrw_err *is_used(struct icf_asker *ask, const struct icf_bases *b, uint64_t base,
				 uint32_t n, bool *ret)
{
	*ret = false;
	for (size_t i = LOWER_BOUND(0, b->v.len, mid, b->v.data[mid].va < base);
	     i < b->v.len && b->v.data[i].va == base && !*ret; i++) {
		uint32_t used;
		ELFRW_TRY(icf_ask_table(ask, b->v.data[i].owner, base, &used));
		*ret = used >= n;
	}
	return NULL;
}

/* The entries become distances that no table explains. */
static void unmake(struct icf_program *prog, const struct icf_bases *b, struct icf_table *t)
{
	for (size_t i = LOWER_BOUND(0, b->v.len, mid, b->v.data[mid].va < t->base);
	     i < b->v.len && b->v.data[i].va == t->base; i++)
		b->v.data[i].ref->table = ICF_NONE;
	for (uint32_t i = 0; i < t->n; i++) {
		struct icf_dataref *d = &prog->dataref.data[t->entry + i];
		if (d->kind == ICF_DATA_ENTRY) {
			d->target = icf_own_target(prog, d);
			d->kind = ICF_DATA_DISTANCE;
		}
		d->unit = icf_unit_at(prog, d->target);
		d->table = ICF_NONE;
	}
	t->n = 0;
	t->owner = ICF_NONE;
}

/* A distance from its own place to a function's entry needs no other explanation. */
static bool explained(const struct icf_program *prog, const struct icf_dataref *d)
{
	return d->kind != ICF_DATA_DISTANCE ||
	       (d->unit != ICF_NONE && prog->unit.data[d->unit].start == d->target);
}

/* The possible origins of field D: an assembler can write only distances from places in the field's
 * section.  So the target is at most as far from the field's target, counted from its own place, as
 * the section's bounds are from D.  CHANGE[i]: by how many more of these stretches hold unit i than
 * unit i - 1. */
static void add_whole_reach(const struct icf_program *prog, const struct icf_dataref *d,
			    const struct elfrw_section *sec, int64_t *change)
{
	uint64_t lo = d->target - (d->place - sec->hdr.sh_addr),
		 hi = d->target + (sec->hdr.sh_addr + sec->hdr.sh_size - d->place);
	if (lo > d->target)
		lo = 0;
	if (hi < d->target)
		hi = UINT64_MAX;
	change[LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].end < lo)]++;
	change[LOWER_BOUND(0, prog->unit.len, mid, prog->unit.data[mid].start <= hi)]--;
}

static void pin_changed(struct icf_program *prog, const int64_t *change)
{
	int64_t n = 0;
	prog->n_pinned = 0;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		n += change ? change[i] : 0;
		if (n > 0)
			u->flags |= ICF_UNIT_PINNED;
		if (!(u->flags & ICF_UNIT_PINNED))
			continue;
		prog->n_pinned++;
		if (u->reason == ICF_OK)
			u->reason = ICF_NEAR_OPAQUE;
	}
}

/* Distances of unknown origin stay as they are, and their possible targets are pinned.  One such
 * field makes all fields of its section doubtful, even those that seem to explain themselves. */
static struct elfrw_err *pin_unexplained(struct icf_program *prog)
{
	int64_t *change = NULL;
	uint32_t shndx = 0;
	bool doubt = false;
	for (size_t i = 0; i < prog->dataref.len; i++) {
		struct icf_dataref *d = &prog->dataref.data[i];
		if (d->kind != ICF_DATA_DISTANCE)
			continue;
		pin_literals(prog, d->target);
		uint32_t at = elfrw_image_section_at(prog->img, d->place);
		if (at == 0)
			continue;
		const struct elfrw_section *sec = &prog->img->section[at];
		if (at != shndx) {
			doubt = false;
			for (size_t k = i;
			     k < prog->dataref.len &&
			     prog->dataref.data[k].place - sec->hdr.sh_addr < sec->hdr.sh_size &&
			     !doubt;
			     k++)
				doubt = !explained(prog, &prog->dataref.data[k]);
		}
		shndx = at;
		if (doubt && !change && !(change = calloc(prog->unit.len + 1, sizeof *change)))
			return &elfrw_err_nomem;
		d->left = doubt;
		if (doubt)
			add_whole_reach(prog, d, sec, change);
	}
	pin_changed(prog, change);
	free(change);
	return NULL;
}

struct elfrw_err *icf_check_tables(struct icf_program *prog, const struct icf_bases *b,
				   struct icf_asker *ask, unsigned threads)
{
	struct icf_entries e = { 0 };
	atomic_uchar *seen = calloc(prog->table.len + 1, sizeof *seen);
	struct elfrw_err *err = seen ? look_at(prog, &e, threads, seen) : &elfrw_err_nomem;
	VEC_FREE(&e.v);
	for (size_t i = 0; i < prog->table.len && !err; i++) {
		struct icf_table *t = &prog->table.data[i];
		bool good = !(seen[i] & ICF_TABLE_ASTRAY);
		if (good &&
		    (seen[i] & (ICF_TABLE_AMBIGUOUS | ICF_TABLE_NOT_OWN)) == ICF_TABLE_AMBIGUOUS)
			err = is_used(ask, b, t->base, t->n, &good);
		if (!good && !err)
			unmake(prog, b, t);
	}
	free(seen);
	return err ? err : pin_unexplained(prog);
}
