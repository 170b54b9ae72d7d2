/* except.h: one exception table (LSDA), read as a personality routine reads it.
 *
 * This is the verifier's own decoder.  The folder has another (dwarf/lsda.h); the two share only
 * the reader of bytes.  Nothing is expanded: a table is a place in its section.  A comparison asks
 * both tables for the next call site, the next action, a type.  Source: Itanium C++ ABI, "Exception
 * Handling Tables"; the encodings of pointers: LSB Core 5.0, "DWARF Exception Header Encoding". */
#ifndef ICF_VERIFY_UNWIND_EXCEPT_H
#define ICF_VERIFY_UNWIND_EXCEPT_H
#include "elfrw/base/rbuf.h"
#include "elfrw/image.h"

/* Places are offsets in the section, unless the comment says "address". */
struct icf_vexcept {
	const struct elfrw_image *img;
	const struct elfrw_section *sec;
	uint64_t start;
	uint64_t base;      /* the base address of landing pads */
	uint64_t base_at;   /* of the field that states it; 0: no field, the base is the function */
	unsigned base_size; /* bytes of that field */
	uint64_t sites, actions,
		types; /* types: the end of its entries, which grow downwards; 0: none */
	uint8_t base_coding, type_coding, site_coding;
	unsigned type_size;
	uint64_t function; /* size of the function's code */
	/* After icf_vexcept_read(): */
	uint64_t sites_end;   /* behind the last call site of this range of the function */
	uint64_t range_end;   /* the header of the function's next range, or the actions */
	uint64_t actions_end; /* behind the last action that a call site leads to */
	uint64_t end;         /* behind everything that a call site leads to */
	uint64_t named;       /* the highest number of a type that is used */
	uint64_t n_types;     /* entries of the type table, as far as known */
};

struct icf_vsite {
	uint64_t start, size; /* from the function's start */
	uint64_t pad;         /* address, 0: none */
	uint64_t action;      /* 0: none, else 1 + offset in the action table */
};

struct icf_vaction {
	int64_t filter;
	uint64_t next; /* place of the next one; 0: the last */
};

struct icf_vtype {
	uint64_t target; /* address, 0: every type */
	bool indirect;   /* a slot that holds the type's address is there */
};

/* Opens the table at address VA of the function [BEGIN, END) and walks all of it, so that the
 * questions below cannot lead out of it.  Error: the fault, with section and offset. */
struct elfrw_err *icf_vexcept_read(struct icf_vexcept *ret, const struct elfrw_image *img,
				   uint64_t va, uint64_t begin, uint64_t end);
/* The call site at *POS; moves *POS behind it; false: there is none.  Begin with T->sites. */
bool icf_vexcept_site(const struct icf_vexcept *t, uint64_t *pos, struct icf_vsite *ret);
/* The action at POS; false: no action can be there. */
bool icf_vexcept_action(const struct icf_vexcept *t, uint64_t pos, struct icf_vaction *ret);
/* The type with this NUMBER, from 1 on; false: there is no such entry. */
bool icf_vexcept_type(const struct icf_vexcept *t, uint64_t number, struct icf_vtype *ret);
/* The start of the list of types for the filter of an exception specification (FILTER < 0): ULEB128
 * numbers, then 0. */
bool icf_vexcept_list(const struct icf_vexcept *t, int64_t filter, struct elfrw_rbuf *ret);
#endif
