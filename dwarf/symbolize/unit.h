/* unit.h: the units of a symbolizer's files, for code that reads DIEs itself. */
#ifndef DWARF_SYMBOLIZE_UNIT_H
#define DWARF_SYMBOLIZE_UNIT_H
#include "dwarf/info.h"
#include "dwarf/lists.h"
#include "dwarf/spans.h"
#include "dwarf/symbolize/file.h"
#include "dwarf/symbolize/symbolize.h"

/* The file that SYM's debug information is in. */
struct dwr_sym_file *dwr_sym_debug_file(const struct dwr_sym *sym);

struct dwr_sym_unit {
	struct dwr_unit u;
	struct dwr_sym_file *file; /* borrowed */
	struct dwr_unit_root root;
	struct dwr_list_cu cu;
	struct dwr_spans funcs;  /* id: offset of the DIE */
	struct dwr_lines *lines; /* borrowed from file; NULL: none, or not read yet */
	bool lines_read;
	uint8_t funcs_read; /* enum dwr_sym_funcs; 0: none */
};

/* A section's contents, decompressed at the first call; empty when the file has none or it is
 * broken. */
struct dwr_bytes dwr_sym_sec(struct dwr_sym *sym, struct dwr_sym_file *file, enum dwr_sec id);

/* The unit at OFF of FILE's .debug_info; *RET NULL: no valid unit begins there. */
struct elfrw_err *dwr_sym_unit_at(struct dwr_sym *sym, struct dwr_sym_file *file, uint64_t off,
				  struct dwr_sym_unit **ret);

/* The unit that holds offset OFF; the same. */
struct elfrw_err *dwr_sym_unit_around(struct dwr_sym *sym, struct dwr_sym_file *file, uint64_t off,
				      struct dwr_sym_unit **ret);

/* The unit whose code holds ADDRESS, or NULL. */
struct elfrw_err *dwr_sym_unit_for(struct dwr_sym *sym, uint64_t address,
				   struct dwr_sym_unit **ret);

/* The DIE of the function of UNIT that holds ADDRESS; false in *FOUND: none does. */
struct elfrw_err *dwr_sym_function(struct dwr_sym *sym, struct dwr_sym_unit *unit, uint64_t address,
				   uint64_t *die, bool *found);

/* The target of a reference V within UNIT, in the section; UINT64_MAX: another kind of
 * reference. */
uint64_t dwr_sym_local_ref(const struct dwr_sym_unit *unit, const struct dwr_value *v);
#endif
