/* lists.h: rewrites range lists and location lists through the address map.
 *
 * The caller has found all uses of lists in the DIEs; each use gets the new place of its list. */
#ifndef DWARF_REWRITE_LISTS_LISTS_H
#define DWARF_REWRITE_LISTS_LISTS_H
#include "dwarf/lists.h"
#include "dwarf/rewrite/range.h"

struct dwr_addr_table;

/* One attribute that refers to a list. */
struct dwr_list_use {
	uint64_t off;   /* of the list in its section (behind an index: dwr_list_index) */
	uint64_t views; /* DW_AT_GNU_locviews of the same DIE, or DWR_LIST_NONE */
	uint64_t new_off, new_views; /* results, in the new section.  DWR_LIST_NONE: no views */
	uint32_t cu;                 /* index in struct dwr_rw_lists_in's cu */
	uint32_t owner;  /* the unit of the map that the DIE's function is, ELFRW_NO_UNIT: none or
			    unknown */
	uint32_t index;  /* with `indexed`: the value of the DW_FORM_rnglistx or _loclistx, which
			    stays valid */
	uint8_t kind;    /* enum dwr_list_kind */
	uint8_t purpose; /* enum dwr_purpose */
	bool indexed;
	bool empty; /* result: the new list is empty */
};

/* A range that a use lost (policy overlay, purposes FUNCTION and SCOPE). */
struct dwr_list_taken {
	uint32_t use; /* index in use */
	uint32_t unit;
	uint64_t start, len; /* bytes; start relative to the unit's old start */
};

/* A new range list, not in the input. */
struct dwr_list_range {
	uint64_t begin, end; /* in the output */
};
struct dwr_list_new {
	uint32_t cu; /* index; its version decides on the section: .debug_ranges or .debug_rnglists
		      */
	const struct dwr_list_range *range; /* borrowed */
	size_t n_ranges;
	uint64_t new_off; /* result: offset in the new section (DW_FORM_sec_offset) */
};

/* A contribution's base in the input and in the output. */
struct dwr_list_base {
	uint64_t old, new;
};

/* All borrowed, except the results in use[], add[] and *addr. */
struct dwr_rw_lists_in {
	const struct elfrw_addrmap *map;
	enum dwr_policy policy;
	unsigned threads; /* the result does not depend on it */
	struct dwr_list_secs secs;
	const struct dwr_list_cu *cu;
	uint32_t n_cus;
	struct dwr_list_use *use; /* any order; new_off, new_views and empty are set */
	size_t n_uses;
	struct dwr_list_new *add;
	size_t n_add;
	/* The needs of DIEs are already set; those of lists are added.  A list refers to
	 * .debug_addr only if the entry can have the value that the list needs.  NULL without
	 * .debug_addr. */
	struct dwr_addr_table *addr;
};

struct dwr_rw_lists_out {
	struct {
		uint8_t *
			data; /* the new section, owned; NULL: unchanged (no use, nothing to add) */
		size_t size;
		struct dwr_list_base *base; /* RNGLISTS and LOCLISTS: one for each contribution, in
					       file order; owned */
		size_t n_bases;
	} sec[DWR_LIST_KINDS];
	struct dwr_list_taken *taken; /* sorted by use, then in the order of the list; owned */
	size_t n_taken;
	uint32_t patched, encoded; /* lists that kept their bytes except for addresses, and lists
				      that were encoded anew */
};

/* Rebuilds the four sections.  Contributions and lists keep their order; lists without a use are
 * left out.  Errors: lists that cannot be read (dwr_list_read, dwr_expr_next), an address that
 * would need another value for each of its uses and cannot be written in place, a section that
 * outgrows its offsets. */
struct elfrw_err *dwr_rw_lists(const struct dwr_rw_lists_in *in, struct dwr_rw_lists_out *out);
void dwr_rw_lists_deinit(struct dwr_rw_lists_out *out);

/* The new value of DW_AT_rnglists_base or DW_AT_loclists_base OLD (KIND: RNGLISTS, LOCLISTS).  The
 * new value is OLD itself when the section is unchanged; DWR_LIST_NONE: no contribution has this
 * base. */
uint64_t dwr_rw_lists_base(const struct dwr_rw_lists_out *out, enum dwr_list_kind kind,
			   uint64_t old);
#endif
