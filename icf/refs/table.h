/* table.h: shared by the files that find jump tables. */
#ifndef ICF_REFS_TABLE_H
#define ICF_REFS_TABLE_H
#include "icf/infer/ask.h"

/* An address that code refers to, at which a relocated field stands. */
struct icf_base {
	uint64_t va;
	struct icf_ref *ref; /* one reference to it */
	uint32_t owner;      /* the unit that refers to it, or ICF_NONE: several */
};

struct icf_bases {
	VEC(struct icf_base) v; /* by address, then owner */
};

/* Removes the tables whose entries lead elsewhere than to instructions, and pins the possible
 * targets of fields that no table explains.  Error: entries hold addresses, or nothing has
 * relocations; the program is then not understood.  table_check.c. */
struct elfrw_err *icf_check_tables(struct icf_program *prog, const struct icf_bases *b,
				   struct icf_asker *ask);
#endif
