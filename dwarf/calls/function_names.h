/* function_names.h: DIEs of functions by name, for functions with code but no DIE with its address.
 * GCC makes such copies of identical functions; only their declarations exist. */
#ifndef DWARF_CALLS_FUNCTION_NAMES_H
#define DWARF_CALLS_FUNCTION_NAMES_H
#include "dwarf/info.h"

/* DIE[i] becomes the .debug_info offset of the first DW_TAG_subprogram whose linkage name (in units
 * of C and in those without a language: whose name) is NAME[i], or 0.  NAME holds N different
 * names, sorted by strcmp.  SECS has its sections loaded.  Cost: a walk of .debug_info, on THREADS
 * threads. */
struct elfrw_err *dwr_functions_by_name(struct dwr_sections *secs, const struct dwr_units *units,
					const char *const *name, size_t n, unsigned threads,
					uint64_t *die);
#endif
