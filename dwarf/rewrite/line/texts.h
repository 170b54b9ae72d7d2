/* texts.h: private to this folder: numbered strings, and the places of strings in
 * .debug_line_str. */
#ifndef DWARF_REWRITE_LINE_TEXTS_H
#define DWARF_REWRITE_LINE_TEXTS_H
#include "dwarf/sections.h"
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/wbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_name {
	size_t off, len;
	uint64_t hash; /* only gives a place to look */
};

/* Numbered strings; zeroed at first. */
struct dwr_names {
	struct elfrw_wbuf bytes;
	VEC(struct dwr_name) name;
	uint32_t *slot; /* number + 1, 0: free */
	size_t n_slots; /* a power of two */
};

/* The number of a string; a new number on first use; UINT32_MAX: out of memory. */
uint32_t dwr_names_number(struct dwr_names *names, const void *str, size_t len);
/* Its number; UINT32_MAX: it has none. */
uint32_t dwr_names_find(const struct dwr_names *names, const void *str, size_t len);
const char *dwr_names_text(const struct dwr_names *names, uint32_t i);
void dwr_names_deinit(struct dwr_names *names);

/* Strings that need a place in .debug_line_str, and their places.  Zeroed at first, but `have`. */
struct dwr_line_texts {
	struct dwr_bytes have;   /* the section as it is; borrowed */
	struct elfrw_wbuf add;   /* what comes behind it; owned */
	struct dwr_names wanted; /* those that are not strings of the section's own bytes */
	uint64_t *at;            /* by number: offset */
};

/* Asks for a place for STR.  A string that lies in the section has one.  False: out of memory. */
bool dwr_line_texts_want(struct dwr_line_texts *t, const char *str);
/* Finds the places: those of equal strings in the section, or behind its end.  One pass over the
 * section.  Errors: offsets of OFFSET_SIZE bytes cannot reach so far. */
struct elfrw_err *dwr_line_texts_place(struct dwr_line_texts *t, unsigned offset_size);
/* The place of STR, which was asked for. */
uint64_t dwr_line_texts_at(const struct dwr_line_texts *t, const char *str);
void dwr_line_texts_deinit(struct dwr_line_texts *t);
#endif
