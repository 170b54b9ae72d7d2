/* note.c: .debug_icfold: decoded, its map asked, its overlay walked. */
#include "tests/fuzz/fuzz.h"
#include "dwarf/calls/icfold_note.h"

static void ask_overlay(const struct dwr_icfold *note, struct dwr_icfold_walk w)
{
	struct dwr_icfold_entry e;
	struct dwr_note_range r;
	bool more = true;
	for (unsigned n = 0; n < 4096 && fuzz_ok(dwr_icfold_overlay_next(&w, &e, &more)) && more;
	     n++)
		while (dwr_icfold_range_next(&e, &r))
			FUZZ_HOLDS(r.unit < note->map.n_units);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct dwr_icfold note;
	if (!fuzz_ok(dwr_icfold_read(&note, data, size)))
		return 0;
	ask_overlay(&note, dwr_icfold_overlay(&note));
	for (size_t i = 0; i < note.n_dies && i < 16; i++)
		if (note.dies[i].overlay != UINT64_MAX)
			ask_overlay(&note, dwr_icfold_overlay_at(&note, &note.dies[i]));
	for (size_t i = 0; i < note.n_members; i++) {
		const struct dwr_icfold_member *m = &note.member[i];
		FUZZ_HOLDS(m->unit < note.map.n_units && m->group < note.n_groups &&
			   note.unit_member[m->unit] == i);
		FUZZ_HOLDS(m->n_names <= note.n_names && m->name <= note.n_names - m->n_names);
		FUZZ_HOLDS(m->n_dies <= note.n_dies && m->die <= note.n_dies - m->n_dies);
	}
	for (size_t i = 0; i < note.n_groups; i++)
		FUZZ_HOLDS(note.group[i].n_members <= note.n_members &&
			   note.group[i].member <= note.n_members - note.group[i].n_members);
	for (uint32_t i = 0; i < note.map.n_units && i < 64; i++) {
		const struct elfrw_addrmap_unit *u = &note.map.unit[i];
		uint64_t to;
		FUZZ_HOLDS(u->kept < note.map.n_units);
		(void)elfrw_addrmap_find(&note.map, u->old);
		(void)elfrw_addrmap_point(&note.map, u->old_end, &to);
		(void)elfrw_addrmap_end(&note.map, u->old_end, &to);
		(void)elfrw_addrmap_pointer(&note.map, u->old, &to);
	}
	dwr_icfold_deinit(&note);
	return 0;
}
