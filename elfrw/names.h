/* names.h: makes string tables (gABI, "String Table"). */
#ifndef ELFRW_NAMES_H
#define ELFRW_NAMES_H
#include "elfrw/base/err.h"
#include <stddef.h>
#include <stdint.h>

/* Borrowed. */
struct elfrw_name_head {
	const void *data;
	size_t size;
};

struct elfrw_name_table {
	uint8_t *data; /* malloc'ed */
	size_t size;
};

/* Makes *RET a string table for the N texts of NAME; NULL needs no text.  The table begins with
 * HEAD's bytes, or with one zero byte if there are none.  A text that ends another one is not
 * written twice.  OFF[i]: the offset of text i.  The result depends only on the texts and their
 * order.  Errors: more text than a table may have, out of memory. */
struct elfrw_err *elfrw_names(const char *const *name, size_t n, struct elfrw_name_head head,
			      uint32_t *off, struct elfrw_name_table *ret);
#endif
