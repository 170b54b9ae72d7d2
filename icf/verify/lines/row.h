/* row.h: rows of line tables. */
#ifndef ICF_VERIFY_LINES_ROW_H
#define ICF_VERIFY_LINES_ROW_H
#include "elfrw/base/vec.h"

/* A line row.  addr is in OUT; alt is another place that is right as well, or 0. */
struct icf_vrow {
	uint64_t addr, alt;
	const char *file; /* owned by libdw or by the list of rows that outlives a handle */
	int line, col;
	unsigned flags, isa, disc;
	uint32_t unit;  /* of IN */
	uint64_t cu;    /* offset of the unit of debug information */
	uint32_t order; /* among the rows of its list */
	bool optional, used;
	bool empty; /* it stands where its sequence ends, and covers nothing */
	bool first; /* the first of its sequence at the address; known where a function with a thunk
		       begins */
};

enum { /* flags */
       ICF_VROW_STMT = 1,
       ICF_VROW_BLOCK = 2,
       ICF_VROW_PROLOGUE = 4,
       ICF_VROW_EPILOGUE = 8,
       ICF_VROW_END = 16,
};

struct icf_vrows {
	VEC(struct icf_vrow) v;
	bool nomem;
	bool told; /* all that are empty or first are known */
	bool odd;  /* an operation of the table has another length than its operands, or is unknown
		    */
};
#endif
