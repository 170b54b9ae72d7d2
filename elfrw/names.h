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

/* Makes *RET a string table for the N texts of NAME, of which NULL needs none.  It begins with
 * HEAD's bytes, or, when these are none, with one zero byte.  A text that another one ends with is
 * not written twice.  OFF[i], for each text: its offset.  The result depends on the texts and their
 * order alone.  Errors: more text than a table may have, out of memory. */
struct elfrw_err *elfrw_names(const char *const *name, size_t n, struct elfrw_name_head head,
			      uint32_t *off, struct elfrw_name_table *ret);
#endif
