/* aranges.h: .debug_aranges rewritten through the address map (DWARF 5, section 6.1.2 and 7.21). */
#ifndef DWARF_REWRITE_ARANGES_H
#define DWARF_REWRITE_ARANGES_H
#include "dwarf/rewrite/rewrite.h"
#include "elfrw/base/err.h"
#include <stddef.h>
#include <stdint.h>

struct elfrw_addrmap;

/* A set to add for a unit that the input does not have. */
struct dwr_arange_extra {
	uint64_t info;       /* offset of the unit in .debug_info */
	uint64_t begin, len; /* in the output */
};

struct dwr_rw_aranges_in {
	const struct elfrw_addrmap *map;
	enum dwr_policy policy;
	const uint8_t *data; /* the input's section; borrowed */
	size_t size;
	const struct dwr_arange_extra *extra; /* appended, one set each; borrowed */
	size_t n_extra;
};

/* Makes the new section, malloc'ed.  Sets keep their order, even without a tuple; the offsets into
 * .debug_info stay.  Errors: sizes that do not fit, unknown version or address size, segment
 * selectors. */
struct elfrw_err *dwr_rw_aranges(const struct dwr_rw_aranges_in *in, uint8_t **ret,
				 size_t *ret_size);
#endif
