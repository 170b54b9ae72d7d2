/* lookup.h: a stack of addresses of one file, with the functions that were really called. */
#ifndef DWARF_STACK_LOOKUP_H
#define DWARF_STACK_LOOKUP_H
#include "dwarf/stack/callchain.h"
#include "dwarf/symbolize/symbolize.h"

/* The file of the stacks, which are asked about one after the other.  SYM, the file at PATH, is
 * borrowed.  A file whose tables for shared code cannot be read is looked up without them (see
 * dwr_lookup_warning).  Errors: out of memory. */
struct dwr_lookup;
struct elfrw_err *dwr_lookup_open(struct dwr_sym *sym, const char *path, struct dwr_lookup **ret);
void dwr_lookup_close(struct dwr_lookup *s); /* NULL is allowed */

/* Decides the stack ADDR of N levels (as linked, the innermost first: a PC, then return addresses;
 * 0: not in this file), with VTABLE as in dwr_callchain_resolve. */
struct elfrw_err *dwr_lookup_resolve(struct dwr_lookup *s, const uint64_t *addr,
				     const uint64_t *vtable, size_t n);

/* What is known of a level; everything is borrowed. */
struct dwr_level {
	struct dwr_sym_frames *frames; /* innermost first */
	bool merged;                   /* code that several functions share */
	bool decided;
	const char *by;               /* what decided it; NULL: undecided */
	const char *const *candidate; /* names; an element NULL: not known */
	size_t n_candidates;
};

/* Level I of the stack, valid until the next call; FLAGS: DWR_SYM_*.  Errors: out of memory. */
struct elfrw_err *dwr_lookup_level(struct dwr_lookup *s, size_t i, unsigned flags,
				   struct dwr_level *ret);

/* The number of what dwr_lookup_level() says of level I, the same for all levels of all stacks of
 * which it says the same at the same address (with the same FLAGS); DWR_MEMO_NONE: it has none. */
uint32_t dwr_lookup_same(struct dwr_lookup *s, size_t i);

/* The first fault of the tables or of the debug information, or NULL. */
const char *dwr_lookup_warning(const struct dwr_lookup *s);

/* The tables, or NULL; their result for the last stack; the file as the fold reads it, if it is of
 * a machine that is folded. */
struct dwr_callchain *dwr_lookup_tables(const struct dwr_lookup *s);
const struct dwr_chain *dwr_lookup_chain(const struct dwr_lookup *s);
const struct elfrw_image *dwr_lookup_image(const struct dwr_lookup *s);
#endif
