/* addr.h: .debug_addr rewritten in place (DWARF 5, section 7.27, and the headerless form of GNU
 * split DWARF).
 *
 * An entry can have several uses, which may want different new values: a function's place and a
 * pointer to it differ if a thunk stands for the function.  So each use sets its entry, and a use
 * that disagrees with an earlier one is refused. */
#ifndef DWARF_REWRITE_ADDR_H
#define DWARF_REWRITE_ADDR_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_addrmap;

/* Entries are named by their byte offset in the section. */
struct dwr_addr_table {
	uint8_t *data; /* the new contents; owned */
	size_t size;
	uint8_t *set; /* for every byte of DATA where an entry begins: its size when it was set,
			 else 0; owned */
};

/* A table with the contents DATA (SIZE bytes), nothing set.  Errors: out of memory. */
struct elfrw_err *dwr_addr_table_init(struct dwr_addr_table *table, const uint8_t *data,
				      size_t size);
void dwr_addr_table_deinit(struct dwr_addr_table *table);

/* Can the entry of ADDRESS_SIZE bytes at OFF get the value VALUE?  false: it already has another
 * one, or OFF is outside of the section. */
bool dwr_addr_can_set(const struct dwr_addr_table *table, uint64_t off, unsigned address_size,
		      uint64_t value);

/* Sets the entry, if possible. */
bool dwr_addr_set(struct dwr_addr_table *table, uint64_t off, unsigned address_size,
		  uint64_t value);

/* Maps the entries without a use, as pointers.  HEADERLESS: the section has the GNU form, only
 * addresses of ADDRESS_SIZE bytes (some unit has DW_AT_GNU_addr_base); otherwise ADDRESS_SIZE is
 * ignored.  Errors: a section that is no sequence of DWARF 5 contributions, segment selectors. */
struct elfrw_err *dwr_addr_table_finish(struct dwr_addr_table *table,
					const struct elfrw_addrmap *map, bool headerless,
					unsigned address_size);
#endif
