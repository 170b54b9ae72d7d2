/* table.h: what the files that find jump tables share. */
#ifndef ICF_REFS_TABLE_H
#define ICF_REFS_TABLE_H
#include "icf/infer/ask.h"

/* An address that code refers to and where a relocated field stands. */
struct icf_base {
	uint64_t va;
	struct icf_ref *ref; /* one that names it */
	uint32_t owner;      /* the unit that refers to it, or ICF_NONE: several */
};

struct icf_bases {
	VEC(struct icf_base) v; /* by address, then owner */
};

/* Fields FROM to TO are not those of a table after all: they name again what they name counted from
 * their own places. */
void icf_unmake_table(struct icf_program *prog, size_t from, size_t to);

/* Unmakes the tables whose entries lead elsewhere than to instructions, and pins what fields that
 * no table explains could mean.  An error where entries hold addresses, or nothing has relocations:
 * the program is not understood then.  table_check.c. */
struct elfrw_err *icf_check_tables(struct icf_program *prog, const struct icf_bases *b,
				   struct icf_asker *ask);
#endif
