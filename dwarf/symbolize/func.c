/* func.c: the functions of a unit.
 *
 * This is the second level of a look-up.  A first walk over a unit skips the insides of functions
 * and of types if DW_AT_sibling allows it.  Only if an address is in none of the functions found,
 * the unit is walked again in full, for the nested functions of some languages. */
#include "dwarf/symbolize/state.h"
#include <dwarf.h>

bool dwr_sym_step_over(const struct dwr_sym_unit *unit, struct dwr_cursor *cur,
		       const struct dwr_die *die, const struct dwr_value *sibling)
{
	uint64_t to = sibling && die->abbrev->children && die->depth
			      ? dwr_sym_local_ref(unit, sibling)
			      : UINT64_MAX;
	if (to >= unit->u.end || to <= (uint64_t)(cur->pos - cur->data))
		return false;
	cur->pos = cur->data + to;
	cur->depth = die->depth;
	return true;
}

static struct dwr_sym_extent extent_of(const struct dwr_die *die)
{
	return (struct dwr_sym_extent){ dwr_die_value(die, DW_AT_low_pc),
					dwr_die_value(die, DW_AT_high_pc),
					dwr_die_value(die, DW_AT_ranges) };
}

/* Is TAG that of a type, whose insides are declarations only, with rare exceptions? */
static bool is_type(uint32_t tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_subroutine_type || tag == DW_TAG_array_type;
}

struct elfrw_err *dwr_sym_functions(struct dwr_sym *sym, struct dwr_sym_unit *unit,
				    enum dwr_sym_funcs which)
{
	const struct dwr_abbrev_table *table;
	struct dwr_die die;
	bool more, skipped = false;
	if (unit->funcs_read >= which)
		return NULL;
	unit->funcs_read = DWR_FUNCS_ALL;
	unit->funcs.len = 0;
	struct elfrw_err *err = dwr_sym_abbrev(sym, unit, &table);
	if (err)
		return dwr_sym_warn(sym, err);
	struct dwr_cursor cur = dwr_cursor_at(&unit->file->secs, &unit->u, table, false);
	struct dwr_sym_stated stated = { 0 };
	while (!err) {
		err = dwr_cursor_next(&cur, &die, &more);
		if (err) { /* the results so far still count */
			err = dwr_sym_warn(sym, err);
			break;
		}
		if (!more)
			break;
		bool function = die.abbrev->tag == DW_TAG_subprogram;
		if (function && (die.n_values > 1 || die.value[0].name != DW_AT_sibling)) {
			const struct dwr_sym_extent extent = extent_of(&die);
			if (extent.low || extent.ranges)
				err = dwr_sym_state(sym, unit, &extent, die.off, &stated,
						    &unit->funcs);
		}
		if (function ? which < DWR_FUNCS_ALL
			     : which < DWR_FUNCS_OUTER && is_type(die.abbrev->tag))
			skipped |= dwr_sym_step_over(unit, &cur, &die,
						     dwr_die_value(&die, DW_AT_sibling));
	}
	if (skipped)
		unit->funcs_read = which;
	if (!err)
		err = dwr_sym_read_stated(sym, &stated, false, &unit->funcs);
	VEC_FREE(&stated);
	return err ? err : dwr_spans_flatten(&unit->funcs, false);
}

struct elfrw_err *dwr_sym_function(struct dwr_sym *sym, struct dwr_sym_unit *unit, uint64_t address,
				   uint64_t *die, bool *found)
{
	const struct dwr_span *s = NULL;
	static const enum dwr_sym_funcs which[] = { DWR_FUNCS_FEW, DWR_FUNCS_ALL };
	for (unsigned i = 0; i < 2 && !s; i++) {
		ELFRW_TRY(dwr_sym_functions(sym, unit, which[i]));
		s = dwr_spans_find(&unit->funcs, address);
	}
	*found = s != NULL;
	if (s)
		*die = s->id;
	return NULL;
}
