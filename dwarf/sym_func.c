/* sym_func.c: the functions of a unit, and the inlined copies inside of one function.
 *
 * The second and third level of a look-up.  A first walk over a unit steps over the insides of functions where
 * DW_AT_sibling allows it; only when an address is in none of the functions found is the unit walked again in full, for
 * the functions that some languages nest.  The inlined copies of a function are laid out flat only for functions that are
 * asked for; the tables of the last ones are kept. */
#include "dwarf/sym.h"
#include <dwarf.h>

/* Where the section offset of a reference inside of UNIT leads; UINT64_MAX: not inside. */
static uint64_t local_ref(const struct dwr_sym_unit *unit, const struct dwr_value *v)
{
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return v->u < unit->u.end - unit->u.off ? unit->u.off + v->u : UINT64_MAX;
	}
	return UINT64_MAX;
}

struct elfrw_err *dwr_sym_functions(struct dwr_sym *sym, struct dwr_sym_unit *unit, bool quick)
{
	const struct dwr_abbrev_table *table;
	struct dwr_die die;
	bool more, skipped = false;
	if (unit->funcs_read >= (quick ? 1 : 2))
		return NULL;
	unit->funcs_read = 2;
	unit->funcs.len = 0;
	struct elfrw_err *err = dwr_sym_abbrev(sym, unit, &table);
	if (err)
		return dwr_sym_warn(sym, err);
	struct dwr_cursor cur = dwr_cursor_at(&unit->file->secs, &unit->u, table, false);
	for (;;) {
		err = dwr_cursor_next(&cur, &die, &more);
		if (err) { /* what was found so far still counts */
			ELFRW_TRY(dwr_sym_warn(sym, err));
			break;
		}
		if (!more)
			break;
		if (die.abbrev->tag != DW_TAG_subprogram)
			continue;
		const struct dwr_value *low = dwr_die_value(&die, DW_AT_low_pc), *ranges = dwr_die_value(&die, DW_AT_ranges),
				       *sibling = dwr_die_value(&die, DW_AT_sibling);
		if (low || ranges)
			ELFRW_TRY(dwr_sym_ranges(sym, unit, low, dwr_die_value(&die, DW_AT_high_pc), ranges, die.off,
						 &unit->funcs));
		if (quick && sibling && die.abbrev->children) {
			uint64_t to = local_ref(unit, sibling);
			if (to < unit->u.end && to > (uint64_t)(cur.pos - cur.data)) {
				cur.pos = cur.data + to;
				cur.depth = die.depth;
				skipped = true;
			}
		}
	}
	if (skipped)
		unit->funcs_read = 1;
	return dwr_spans_flatten(&unit->funcs, false);
}

struct elfrw_err *dwr_sym_function(struct dwr_sym *sym, struct dwr_sym_unit *unit, uint64_t address, uint64_t *die,
				   bool *found)
{
	const struct dwr_span *s = NULL;
	for (int quick = 1; quick >= 0 && !s; quick--) {
		ELFRW_TRY(dwr_sym_functions(sym, unit, quick));
		s = dwr_spans_find(&unit->funcs, address);
	}
	*found = s != NULL;
	if (s)
		*die = s->id;
	return NULL;
}

/* The walk through a member's ranges in the note, beside the walk through its DIEs. */
struct overlay {
	struct dwr_icfold_walk walk;
	struct dwr_icfold_entry entry;
	bool more;
	uint32_t unit; /* of the map: ranges in other units are not of this body */
	uint64_t body; /* where that unit's code is */
};

static struct elfrw_err *overlay_begin(struct dwr_sym *sym, uint32_t member, uint64_t die, struct overlay *ov)
{
	const struct dwr_icfold_member *m = &sym->note.member[member];
	for (uint32_t i = 0; i < m->n_dies; i++) {
		const struct dwr_icfold_die *d = &sym->note.dies[m->die + i];
		if (d->die != die || d->overlay == UINT64_MAX)
			continue;
		ov->walk = dwr_icfold_overlay_at(&sym->note, d);
		ov->unit = m->unit;
		ov->body = sym->note.map.unit[m->unit].body;
		return dwr_icfold_overlay_next(&ov->walk, &ov->entry, &ov->more);
	}
	return NULL;
}

/* The ranges of the DIE at OFF as ID; DIEs are asked for in ascending order. */
static struct elfrw_err *overlay_ranges(struct overlay *ov, uint64_t off, uint64_t id, struct dwr_spans *spans)
{
	while (ov->more && ov->entry.die < off)
		ELFRW_TRY(dwr_icfold_overlay_next(&ov->walk, &ov->entry, &ov->more));
	struct dwr_note_range r;
	if (!ov->more || ov->entry.die != off)
		return NULL;
	while (dwr_icfold_range_next(&ov->entry, &r))
		if (r.unit == ov->unit)
			ELFRW_TRY(dwr_spans_add(spans, ov->body + r.start, ov->body + r.start + r.len, id));
	return NULL;
}

/* Indices of the nodes that are open around the entry that is walked, by depth. */
struct open_node {
	uint32_t depth, node;
};

static struct elfrw_err *fill_body(struct dwr_sym *sym, struct dwr_sym_body *body)
{
	const struct dwr_sym_unit *unit = body->unit;
	const struct dwr_abbrev_table *table;
	struct overlay ov = { 0 };
	struct dwr_die die;
	bool more;
	VEC(struct open_node) open = { 0 };
	uint32_t nested = UINT32_MAX; /* depth of a function inside of this one, which is not our business */
	bool noted = body->member != UINT32_MAX;
	body->spans.len = 0;
	body->node.len = 0;
	if (noted)
		ELFRW_TRY(overlay_begin(sym, body->member, body->die, &ov));
	bool from_note = noted && ov.more;
	ELFRW_TRY(dwr_sym_abbrev(sym, unit, &table));
	/* All DIEs: the ones that have no code tell where a copy's insides end. */
	struct dwr_cursor cur = dwr_cursor_at_die(&unit->file->secs, &unit->u, table, true, body->die);
	struct elfrw_err *err = NULL;
	for (;;) {
		err = dwr_cursor_next(&cur, &die, &more);
		if (err || !more)
			break;
		while (open.len && open.data[open.len - 1].depth >= die.depth)
			open.len--;
		if (die.depth <= nested)
			nested = UINT32_MAX;
		else
			continue;
		bool function = die.off == body->die;
		if (!function && die.abbrev->tag == DW_TAG_subprogram) {
			nested = die.depth;
			continue;
		}
		if (!function && die.abbrev->tag != DW_TAG_inlined_subroutine)
			continue;
		struct dwr_sym_node *node = VEC_PUSH(&body->node);
		struct open_node *o = VEC_PUSH(&open);
		if (!node || !o) {
			err = &elfrw_err_nomem;
			break;
		}
		*node = (struct dwr_sym_node){ die.off, open.len > 1 ? o[-1].node : 0 };
		*o = (struct open_node){ die.depth, (uint32_t)body->node.len - 1 };
		if (from_note)
			err = overlay_ranges(&ov, die.off, o->node, &body->spans);
		else
			err = dwr_sym_ranges(sym, unit, dwr_die_value(&die, DW_AT_low_pc), dwr_die_value(&die, DW_AT_high_pc),
					     dwr_die_value(&die, DW_AT_ranges), o->node, &body->spans);
		if (err)
			break;
	}
	free(open.data);
	return err ? err : dwr_spans_flatten(&body->spans, false);
}

struct elfrw_err *dwr_sym_body_get(struct dwr_sym *sym, const struct dwr_sym_unit *unit, uint64_t die, uint32_t member,
				   struct dwr_sym_body **ret)
{
	uint64_t hash = (die + member) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	struct dwr_sym_body *body = &sym->body[hash % DWR_SYM_BODIES];
	*ret = body;
	if (body->unit == unit && body->die == die && body->member == member)
		return NULL;
	body->unit = unit;
	body->die = die;
	body->member = member;
	struct elfrw_err *err = fill_body(sym, body);
	if (err) {
		body->spans.len = 0;
		err = dwr_sym_warn(sym, err);
		if (err)
			body->unit = NULL;
	}
	return err;
}
