/* start.h: private to this folder: the starts of functions in the output. */
#ifndef DWARF_REWRITE_LINE_START_H
#define DWARF_REWRITE_LINE_START_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct elfrw_addrmap;

struct dwr_line_starts {
	uint64_t *va; /* sorted; owned */
	size_t n;
};

/* The starts of all units that are in the output, and of all thunks.  false: out of memory. */
bool dwr_line_starts_make(struct dwr_line_starts *s, const struct elfrw_addrmap *map);
void dwr_line_starts_deinit(struct dwr_line_starts *s);

/* Does one begin at VA of the output? */
bool dwr_line_starts_has(const struct dwr_line_starts *s, uint64_t va);
#endif
