/* row.h: rows of line tables. */
#ifndef ICF_VERIFY_LINES_ROW_H
#define ICF_VERIFY_LINES_ROW_H
#include "elfrw/base/vec.h"

/* A line row.  addr is in OUT; alt is another correct place, or 0. */
struct icf_vrow {
	uint64_t addr, alt;
	const char *file; /* owned by libdw, or by the list of rows, which outlives a handle */
	int line, col;
	unsigned flags, isa, disc;
	uint32_t unit;  /* of IN */
	uint64_t cu;    /* offset of the unit of debug information */
	uint32_t order; /* among the rows of its list */
	bool optional, used;
	bool empty; /* it stands at the end of its sequence and covers nothing */
	bool alone; /* so do all rows of its sequence: a function without code; also its end */
	bool first; /* the first of its sequence at the address; known only at the start of a
		       function with a thunk */
};

enum { /* flags */
       ICF_VROW_STMT = 1,
       ICF_VROW_BLOCK = 2,
       ICF_VROW_PROLOGUE = 4,
       ICF_VROW_EPILOGUE = 8,
       ICF_VROW_END = 16,
};

/* Rows that lists own. */
struct icf_vrow_refs {
	VEC(const struct icf_vrow *) v;
};

struct icf_vrows {
	VEC(struct icf_vrow) v;
	bool nomem;
	VEC(uint64_t) hollow; /* addresses of sequences that cover nothing, if they could be read */
	bool walked;          /* they could */
	bool told;            /* all that are empty or first are known */
	bool hides;           /* icf_vline_hides() of an operation */
	bool odd; /* an operation of the table is unknown, or has another length than its operands
		   */
};
#endif
