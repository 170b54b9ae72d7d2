/* call_sites.h: call-site DIEs (DW_TAG_call_site, DWARF 5 section 3.4; earlier
 * DW_TAG_GNU_call_site): which function a call calls, or how the called address is computed. */
#ifndef DWARF_CALLS_CALL_SITES_H
#define DWARF_CALLS_CALL_SITES_H
#include "dwarf/calls/function_names.h"
#include "dwarf/info.h"

#define DWR_NO_SLOT UINT64_MAX

struct dwr_call_site {
	uint64_t site;   /* the return address */
	uint64_t origin; /* .debug_info offset of any DIE of the callee (declaration, abstract,
			    concrete); 0: unknown */
	uint64_t slot;   /* vtable slot, if the target is a word of the table at an object's first
			    word; else DWR_NO_SLOT */
};

struct dwr_call_sites {
	struct dwr_call_site *data; /* owned; sorted by site */
	size_t len, cap;
};

/* What is looked for. */
struct dwr_call_wanted {
	const uint64_t *site; /* return addresses, sorted; N of them; borrowed */
	size_t n;
	struct dwr_function_names *names; /* besides, on the same way; or NULL */
};

/* Scans .debug_info (SECS loaded, UNITS its units) on THREADS threads.  Keeps only call sites that
 * say something and whose return address is wanted.  Errors: DIEs that cannot be parsed. */
struct elfrw_err *dwr_call_sites_read(struct dwr_sections *secs, const struct dwr_units *units,
				      const struct dwr_call_wanted *wanted, unsigned threads,
				      struct dwr_call_sites *ret);

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
