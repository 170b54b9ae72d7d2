/* function_names.h: DIEs of functions by name, for functions with code but no DIE with its address.
 * GCC makes such copies of identical functions; only their declarations exist.
 *
 * The search is part of another walk (call_sites.h), which shows it each DW_TAG_subprogram. */
#ifndef DWARF_CALLS_FUNCTION_NAMES_H
#define DWARF_CALLS_FUNCTION_NAMES_H
#include "dwarf/info.h"
#include <stdatomic.h>

struct dwr_function_names {
	const struct dwr_sections *secs;
	const char *const *name; /* N, in any order; borrowed, as SECS */
	size_t n;
	uint32_t *slot; /* hash table: 1 + an index of NAME, 0: free; MASK + 1 slots */
	size_t mask;
	atomic_uint_fast64_t *die;   /* by name: the first DIE so far, UINT64_MAX: none */
	atomic_uint_fast64_t *other; /* by offset in .debug_str: another name begins there */
};

/* SECS has its sections loaded. */
struct elfrw_err *dwr_function_names_init(struct dwr_function_names *s,
					  const struct dwr_sections *secs, const char *const *name,
					  size_t n);
void dwr_function_names_deinit(struct dwr_function_names *s);

/* The attribute of functions in units of LANGUAGE that is their name in the symbol table, besides
 * DW_AT_MIPS_linkage_name: DW_AT_name or DW_AT_linkage_name. */
unsigned dwr_function_names_attr(uint64_t language);

/* Looks at DIE of UNIT, a DW_TAG_subprogram.  Any thread may call it, in any order. */
void dwr_function_names_look(struct dwr_function_names *s, const struct dwr_unit *unit,
			     const struct dwr_unit_root *root, const struct dwr_die *die);

/* The .debug_info offset of the first DW_TAG_subprogram whose linkage name (in units of C and in
 * those without a language: whose name) is name I, or 0. */
uint64_t dwr_function_names_die(const struct dwr_function_names *s, size_t i);
#endif
