/* index.h: other tables with references to addresses, units and line tables: .gdb_index,
 * .debug_names, .debug_macro; private to dwarf/rewrite/rewrite.c.  .debug_pubnames and the like
 * hold only offsets into .debug_info, which do not change. */
#ifndef DWARF_REWRITE_INDEX_H
#define DWARF_REWRITE_INDEX_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_rw;

struct dwr_index_in {
	struct dwr_rw *rw;
	uint64_t artificial_unit; /* offset of the unit that was appended to .debug_info,
				     UINT64_MAX: none */
	uint64_t artificial_size; /* with its header */
	bool has_range;           /* its range is the map's trap byte; else it has none */
};

/* .gdb_index, versions 7 to 9 (GDB manual, "Index Section Format"): the address area through the
 * map, and the artificial unit in the list of compilation units and in the address area.  *RET is
 * malloc'ed, here and below.  Errors: another version, offsets outside of the section. */
struct elfrw_err *dwr_rw_gdb_index(const struct dwr_index_in *in, uint8_t **ret, size_t *ret_size);

/* names.c: .debug_names (DWARF 5, section 6.1.1): the artificial unit in the list of an index that
 * is there.  If it can join none (none that is known), it gets one more, without names. */
struct elfrw_err *dwr_rw_names(const struct dwr_index_in *in, uint8_t **ret, size_t *ret_size);

/* .debug_macro (DWARF 5, section 6.3): the line table offsets in the headers of the units that DIEs
 * name. */
struct elfrw_err *dwr_rw_macro(const struct dwr_index_in *in, uint8_t **ret, size_t *ret_size);
#endif
