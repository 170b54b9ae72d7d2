/* lists.h: range lists and location lists, read: .debug_ranges and .debug_loc (DWARF 2 to 4,
 * sections 2.17.3 and 2.6.2), .debug_rnglists and .debug_loclists (DWARF 5, sections 7.25, 7.28,
 * 7.29), GNU location views (DW_AT_GNU_locviews and DW_LLE_GNU_view_pair). */
#ifndef DWARF_LISTS_H
#define DWARF_LISTS_H
#include "dwarf/abbrev.h"
#include "elfrw/base/err.h"
#include "elfrw/base/vec.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DWR_LIST_NONE UINT64_MAX /* no such offset, base or address */

enum dwr_list_kind {
	DWR_LIST_RANGES,
	DWR_LIST_RNGLISTS,
	DWR_LIST_LOC,
	DWR_LIST_LOCLISTS,
	DWR_LIST_KINDS
};

/* The values of a unit that its lists depend on. */
struct dwr_list_cu {
	struct dwr_form_params params;
	bool has_base;     /* the unit's DIE has a DW_AT_low_pc (directly or through .debug_addr) */
	uint64_t base;     /* its value in the input, 0 without one */
	uint64_t new_base; /* its value in the output, 0 without one; only read when rewriting */
	uint64_t addr_base;     /* start of the unit's addresses in .debug_addr (DW_AT_addr_base,
				   DW_AT_GNU_addr_base), or DWR_LIST_NONE */
	uint64_t rnglists_base; /* DW_AT_rnglists_base, DWR_LIST_NONE without one */
	uint64_t loclists_base; /* DW_AT_loclists_base, the same */
};

struct dwr_list_sec {
	const char *name; /* for messages; borrowed */
	const uint8_t *data;
	size_t size;
};

/* The sections; borrowed. */
struct dwr_list_secs {
	struct dwr_list_sec list[DWR_LIST_KINDS], addr;
};

enum dwr_list_how {
	DWR_LIST_PAIR, /* offsets from a base */
	DWR_LIST_START_END,
	DWR_LIST_START_LENGTH,
	DWR_LIST_STARTX_END, /* both are indices in .debug_addr */
	DWR_LIST_STARTX_LENGTH,
	DWR_LIST_DEFAULT, /* DW_LLE_default_location: no addresses */
};

/* One entry of a list that is not a base: [begin, end) and, in location lists, an expression. */
struct dwr_list_entry {
	uint64_t begin, end;      /* absolute, modulo the address size */
	uint64_t base;            /* PAIR: the base in effect */
	uint64_t operand[2];      /* as in the file */
	uint64_t view[2];         /* with has_view */
	uint64_t expr, expr_size; /* in the section; 0, 0 in range lists */
	uint64_t off;             /* of the entry in the section */
	uint8_t how;              /* enum dwr_list_how */
	bool has_view;            /* from a view list or from a DW_LLE_GNU_view_pair */
	bool own_base; /* PAIR: the base comes from an entry of the list, not from the unit */
};

struct dwr_list {
	VEC(struct dwr_list_entry) entry; /* owned */
	uint64_t off, end;                /* of its bytes in the section */
	uint64_t views, views_end;        /* its view list's, or DWR_LIST_NONE */
	bool inline_views;                /* views come from DW_LLE_GNU_view_pair */
};

/* Reads the list at OFF of the section of kind KIND into *LIST (zeroed at first, or from an earlier
 * call, whose memory is reused; after an error its contents are undefined).  VIEWS: the value of
 * DW_AT_GNU_locviews, or DWR_LIST_NONE.  Errors: past the end of the section, unknown entry kind,
 * an index without .debug_addr. */
struct elfrw_err *dwr_list_read(const struct dwr_list_secs *secs, enum dwr_list_kind kind,
				const struct dwr_list_cu *cu, uint64_t off, uint64_t views,
				struct dwr_list *list);
void dwr_list_deinit(struct dwr_list *list);

/* A walk over a range list (not a location list) that keeps nothing. */
struct dwr_list_walk {
	const struct dwr_list_secs *secs;
	enum dwr_list_kind kind;
	const struct dwr_list_cu *cu;
	uint64_t off;  /* of the next entry in the section */
	uint64_t base; /* for offsets: at first cu->base */
};

/* The next range, absolute, modulo the address size; *MORE false: the list has ended before
 * w->off.  Errors as in dwr_list_read(). */
struct elfrw_err *dwr_list_walk_next(struct dwr_list_walk *w, uint64_t *begin, uint64_t *end,
				     bool *more);

/* One entry as it is in the file, for copying bytes. */
enum dwr_list_code {
	DWR_LIST_CODE_END = DWR_LIST_DEFAULT + 1, /* smaller codes: enum dwr_list_how */
	DWR_LIST_CODE_BASE,
	DWR_LIST_CODE_BASEX,
	DWR_LIST_CODE_VIEWS, /* DW_LLE_GNU_view_pair: the operands are the views */
};

struct dwr_list_raw {
	uint8_t code; /* enum dwr_list_how or dwr_list_code */
	uint64_t off, end;
	uint64_t operand[2];
	uint64_t operand_off[2]; /* in the section */
	uint64_t expr, expr_size;
};

/* Reads the entry at OFF.  Errors: as dwr_list_read. */
struct elfrw_err *dwr_list_raw_read(const struct dwr_list_sec *sec, enum dwr_list_kind kind,
				    const struct dwr_list_cu *cu, uint64_t off,
				    struct dwr_list_raw *ret);

/* An address by index, and where it is in .debug_addr. */
struct dwr_list_addr {
	uint64_t value, slot;
};

/* The address with index INDEX of CU.  SEC and OFF are the place of the index, for messages.
 * Errors: no .debug_addr or base, an index outside of it. */
struct elfrw_err *dwr_list_addrx(const struct dwr_list_secs *secs, const struct dwr_list_cu *cu,
				 uint64_t index, const struct dwr_list_sec *sec, uint64_t off,
				 struct dwr_list_addr *ret);

/* The range of an entry and, for indexed forms, its slots of .debug_addr. */
struct dwr_list_extent {
	uint64_t begin, end;
	uint64_t begin_slot, end_slot;
};

/* The range of the entry RAW of section SEC; BASE is the base in effect.  Errors: as
 * dwr_list_addrx. */
struct elfrw_err *dwr_list_raw_range(const struct dwr_list_secs *secs, const struct dwr_list_cu *cu,
				     const struct dwr_list_sec *sec, const struct dwr_list_raw *raw,
				     uint64_t base, struct dwr_list_extent *ret);

/* All bits of an address of CU. */
static inline uint64_t dwr_list_mask(const struct dwr_list_cu *cu)
{
	return UINT64_MAX >> (64 - 8 * cu->params.address_size);
}

static inline bool dwr_list_is_v5(enum dwr_list_kind kind)
{
	return kind == DWR_LIST_RNGLISTS || kind == DWR_LIST_LOCLISTS;
}

static inline bool dwr_list_has_expr(enum dwr_list_kind kind)
{
	return kind == DWR_LIST_LOC || kind == DWR_LIST_LOCLISTS;
}

/* One contribution to .debug_rnglists or .debug_loclists. */
struct dwr_list_contrib {
	uint64_t off, end; /* header included */
	uint64_t base;  /* after the header: the value of DW_AT_rnglists_base or DW_AT_loclists_base
			 */
	uint64_t lists; /* after the offset table */
	uint32_t n_offsets;
	uint8_t offset_size, address_size;
};

struct dwr_list_contribs {
	struct dwr_list_contrib *data; /* owned; in file order */
	size_t len, cap;
};

/* Reads all headers of SEC.  Errors: sizes that do not fit, a version that is not 5, segment
 * selectors. */
struct elfrw_err *dwr_list_contribs_read(const struct dwr_list_sec *sec,
					 struct dwr_list_contribs *ret);
void dwr_list_contribs_deinit(struct dwr_list_contribs *contribs);

/* The contribution that holds offset OFF, or NULL. */
const struct dwr_list_contrib *dwr_list_contrib_find(const struct dwr_list_contribs *contribs,
						     uint64_t off);

/* The section offset of the list that DW_FORM_rnglistx or _loclistx with the value INDEX means.
 * KIND: RNGLISTS or LOCLISTS.  Errors: no base, an index outside of the table. */
struct elfrw_err *dwr_list_index(const struct dwr_list_secs *secs, enum dwr_list_kind kind,
				 const struct dwr_list_cu *cu, uint64_t index, uint64_t *ret);
#endif
