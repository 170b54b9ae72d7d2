/* calls.h: the call tables .debug_dcall and .debug_vcall (Coutant, "DWARF Extensions for Unwinding
 * Across Merged Functions", 2009): which function was called at a return address, and through which
 * vtable slot.
 *
 * Two dialects exist.  The proposal's: 1-byte version, address-sized call site, DIE offsets that
 * count from .debug_info. GCC 4.5 and 4.6 (-fenable-icf-debug, output_dcall_table and
 * output_vcall_table in dwarf2out.c): 2-byte version, offset-sized call site, DIE offsets that
 * count from the unit, and entries with call site 0, "new caller": their number is the DIE of the
 * function that makes the calls which follow.  Both are read; the proposal's is written, as one
 * unit for the whole file, with GCC's markers for callers that share their code. */
#ifndef DWARF_CALLS_CALLS_H
#define DWARF_CALLS_CALLS_H
#include "dwarf/info.h"

/* A direct call (or a tail jump: its site is the address after the jump, which no return address is
 * equal to). */
struct dwr_dcall {
	uint64_t site;   /* the address after the instruction */
	uint64_t die;    /* the callee's DIE, .debug_info offset */
	uint64_t caller; /* the calling function's DIE, 0: not said */
};

struct dwr_vcall {
	uint64_t site;
	uint64_t slot; /* index in the vtable, counted from its address point */
};

struct dwr_calls {
	VEC(struct dwr_dcall) dcall; /* in file order as read */
	VEC(struct dwr_vcall) vcall;
	uint32_t n_dcall_units, n_vcall_units,
		n_gcc_units; /* contributions, and how many were in GCC's dialect */
};

/* Reads both sections (a missing one is empty).  UNITS, all units of the file, serves to check DIE
 * offsets.  Errors: a contribution that is complete and plausible in neither dialect.  Cost: one
 * pass, and a DIE look-up for up to 32 entries of each contribution whose reading is not
 * obvious. */
struct elfrw_err *dwr_calls_read(struct dwr_sections *secs, const struct dwr_units *units,
				 struct dwr_calls *ret);
void dwr_calls_deinit(struct dwr_calls *calls);

/* Sorts CALL by caller, site and DIE, those without a caller first, drops what is there twice, and
 * encodes it.  *N becomes the number of entries, markers apart; *RET is malloc'ed, NULL when there
 * is no entry. */
struct elfrw_err *dwr_dcall_write(struct dwr_dcall *call, size_t *n, unsigned address_size,
				  uint8_t **ret, size_t *ret_size);

/* The same for virtual calls, by site. */
struct elfrw_err *dwr_vcall_write(struct dwr_vcall *call, size_t *n, unsigned address_size,
				  uint8_t **ret, size_t *ret_size);

/* Orders struct dwr_vcall by site, then slot, for qsort(). */
int dwr_vcall_order(const void *a, const void *b);
#endif
