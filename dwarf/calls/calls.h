/* calls.h: the call tables .debug_dcall and .debug_vcall (Coutant, "DWARF Extensions for Unwinding
 * Across Merged Functions", 2009): which function was called at a return address, and through which
 * vtable slot.
 *
 * There are two dialects.  The proposal has a 1-byte version, an address-sized call site, and DIE
 * offsets that count from .debug_info.  GCC 4.5 and 4.6 (-fenable-icf-debug, output_dcall_table and
 * output_vcall_table in dwarf2out.c) have a 2-byte version, an offset-sized call site, and DIE
 * offsets that count from the unit.  They also have entries with call site 0, "new caller", whose
 * number is the DIE of the function that makes the following calls.  Both dialects are read.  The
 * proposal's is written, as one unit for the whole file, with GCC's markers for callers that share
 * their code. */
#ifndef DWARF_CALLS_CALLS_H
#define DWARF_CALLS_CALLS_H
#include "dwarf/info.h"

/* A direct call, or a tail jump.  The site of a tail jump is the address after the jump, which is
 * never a return address. */
struct dwr_dcall {
	uint64_t site;   /* the address after the instruction */
	uint64_t die;    /* the callee's DIE, .debug_info offset */
	uint64_t caller; /* the calling function's DIE; 0: not stated */
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

/* Reads both sections (a missing one is empty).  UNITS, all units of the file, is used to check DIE
 * offsets.  Errors: a contribution that is neither complete nor plausible in either dialect.  Cost:
 * one pass, and a DIE look-up for up to 32 entries of each ambiguous contribution. */
struct elfrw_err *dwr_calls_read(struct dwr_sections *secs, const struct dwr_units *units,
				 struct dwr_calls *ret);
void dwr_calls_deinit(struct dwr_calls *calls);

/* Sorts CALL by caller, site and DIE, those without a caller first, removes duplicates, and encodes
 * it.  *N: the number of entries without markers.  *RET is malloc'ed; NULL if there is no entry. */
struct elfrw_err *dwr_dcall_write(struct dwr_dcall *call, size_t *n, unsigned address_size,
				  uint8_t **ret, size_t *ret_size);

/* The same for virtual calls, by site. */
struct elfrw_err *dwr_vcall_write(struct dwr_vcall *call, size_t *n, unsigned address_size,
				  uint8_t **ret, size_t *ret_size);

/* Orders struct dwr_vcall by site, then slot, for qsort(). */
int dwr_vcall_order(const void *a, const void *b);
#endif
