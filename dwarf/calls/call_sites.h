/* call_sites.h: call-site DIEs (DW_TAG_call_site, DWARF 5 section 3.4; earlier
 * DW_TAG_GNU_call_site): which function a call calls, or how the called address is computed. */
#ifndef DWARF_CALLS_CALL_SITES_H
#define DWARF_CALLS_CALL_SITES_H
#include "dwarf/calls/function_names.h"
#include "dwarf/info.h"
#include <dwarf.h>

#define DWR_NO_SLOT UINT64_MAX

struct dwr_call_site {
	uint64_t site;   /* the return address */
	uint64_t origin; /* .debug_info offset of any DIE of the callee (declaration, abstract,
			    concrete); 0: unknown */
	uint64_t slot;   /* vtable slot, if the target is a word of the table at an object's first
			    word; else DWR_NO_SLOT */
};

struct dwr_call_sites {
	struct dwr_call_site *data; /* owned */
	size_t len, cap;
};

/* What is looked for.  Everything is borrowed. */
struct dwr_call_wanted {
	const uint64_t *site; /* return addresses, sorted; N of them */
	size_t n;
	const char *const *name; /* functions whose first DIE is wanted (function_names.h) */
	size_t n_names;
	const uint32_t *named; /* by name: the unit of the map that is meant */
	const uint32_t *unit;  /* units of the map that take part in calls: if one has no DIE and no
				  name that leads to one, a DIE stands in for it; ascending */
	size_t n_units;
};

/* What was found.  All zero: nothing yet. */
struct dwr_call_found {
	struct dwr_call_sites site; /* sorted by site: those that say something */
	uint64_t *die;              /* by wanted name: .debug_info offset, 0: none; owned */
};

void dwr_call_found_deinit(struct dwr_call_found *found);

/* A search that goes along on a walk over .debug_info, which shows it all DIEs. */
struct dwr_call_search {
	const struct dwr_sections *secs; /* borrowed, as WANTED */
	const struct dwr_call_wanted *wanted;
	struct dwr_function_names names;
};

/* SECS has its sections loaded.  *S needs no release if this fails. */
struct elfrw_err *dwr_call_search_init(struct dwr_call_search *s, const struct dwr_sections *secs,
				       const struct dwr_call_wanted *wanted);
void dwr_call_search_deinit(struct dwr_call_search *s);

/* The attributes that the search reads, of the DIEs that it looks at in units of LANGUAGE. */
void dwr_call_search_want(const struct dwr_call_search *s, uint64_t language, struct dwr_want *ret);

/* Does the search look at DIEs of TAG? */
static inline bool dwr_call_search_has(const struct dwr_call_search *s, uint32_t tag)
{
	return tag == DW_TAG_call_site || tag == DW_TAG_GNU_call_site ||
	       (tag == DW_TAG_subprogram && s->names.n);
}

/* Looks at DIE of UNIT, one that the search has a use for.  Appends to *RET a call site that says
 * something and whose return address is wanted.  Any thread may call it, in any order. */
struct elfrw_err *dwr_call_search_look(struct dwr_call_search *s, const struct dwr_unit *unit,
				       const struct dwr_unit_root *root, const struct dwr_die *die,
				       struct dwr_call_sites *ret);

/* Moves the call sites of PART to the end of FOUND's. */
struct elfrw_err *dwr_call_found_add(struct dwr_call_found *found, struct dwr_call_sites *part);

/* Ends the search: sorts FOUND's call sites, and adds the DIEs of the names. */
struct elfrw_err *dwr_call_search_end(const struct dwr_call_search *s,
				      struct dwr_call_found *found);

/* Scans .debug_info (SECS loaded, UNITS its units) on THREADS threads.  Errors: DIEs that cannot be
 * parsed. */
struct elfrw_err *dwr_call_sites_read(struct dwr_sections *secs, const struct dwr_units *units,
				      const struct dwr_call_wanted *wanted, unsigned threads,
				      struct dwr_call_found *ret);

/* A function's DIE and the DIEs that it refers to by DW_AT_specification and
 * DW_AT_abstract_origin. */
#define DWR_CHAIN_MAX 4
struct dwr_die_chain {
	uint64_t die[DWR_CHAIN_MAX];
	unsigned n;
	const char *name; /* the linkage name, else the plain name, else NULL; in the sections */
};

/* Follows the DIE at OFF.  TABLE is reused from call to call. */
struct elfrw_err *dwr_die_chain(struct dwr_sections *secs, const struct dwr_units *units,
				struct dwr_abbrev_table *table, uint64_t off,
				struct dwr_die_chain *ret);
#endif
