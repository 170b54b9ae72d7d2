/* source.c: finds the compilation unit and source file of an address.
 *
 * This is for questions about whole programs: of a unit only its own DIE and its line table are
 * read, not its functions. */
#include "dwarf/symbolize/state.h"

struct elfrw_err *dwr_sym_source(struct dwr_sym *sym, uint64_t address, struct dwr_sym_source *ret)
{
	struct dwr_sym_unit *unit;
	struct dwr_place place;
	*ret = (struct dwr_sym_source){ 0 };
	ELFRW_TRY(dwr_sym_unit_for(sym, address, &unit));
	if (!unit)
		return NULL;
	ret->unit = unit->root.name;
	ret->comp_dir = unit->root.comp_dir;
	ELFRW_TRY(dwr_sym_unit_lines(sym, unit));
	if (unit->lines && dwr_lines_find(unit->lines, address, &place)) {
		ret->file = dwr_sym_file_name(sym, unit, place.file);
		ret->line = place.line;
	}
	return NULL;
}
