/* table.h: shared by the files that find jump tables. */
#ifndef ICF_REFS_TABLE_TABLE_H
#define ICF_REFS_TABLE_TABLE_H
#include "icf/infer/ask.h"
#include <stdatomic.h>

/* An address that code refers to, at which a relocated field stands. */
struct icf_base {
	uint64_t va;
	struct icf_ref *ref; /* one reference to it */
	uint32_t owner;      /* the unit that refers to it, or ICF_NONE: several */
};

struct icf_bases {
	VEC(struct icf_base) v; /* by address, then owner */
};

/* What an entry of a table means. */
struct icf_entry {
	uint64_t target;
	uint32_t field, unit; /* into dataref */
	bool own; /* counted from its own place, which leads to another unit than counted from the
		     table's start */
};

struct icf_entries {
	VEC(struct icf_entry) v;
};

/* Observations about a table. */
enum {
	ICF_TABLE_ASTRAY = 1, /* an entry leads elsewhere than to an instruction */
	/* A field, counted from its own place, leads elsewhere than to an instruction. */
	ICF_TABLE_NOT_OWN = 2,
	ICF_TABLE_AMBIGUOUS = 4, /* its fields lead to other units when counted from their own
				    places */
};

/* What the entries of all tables mean, by target, in RET, which is empty; and what is seen of each
 * table, in SEEN, which is zero.  entry.c. */
struct elfrw_err *icf_look_at_entries(const struct icf_program *prog, unsigned threads,
				      struct icf_entries *ret, atomic_uchar *seen);

/* The target of entry D if its distance counts from its own place. */
uint64_t icf_own_target(const struct icf_program *prog, const struct icf_dataref *d);

/* Removes the tables whose entries lead elsewhere than to instructions, and pins the possible
 * targets of fields that no table explains.  Error: entries hold addresses, or nothing has
 * relocations; the program is then not understood.  check.c. */
struct elfrw_err *icf_check_tables(struct icf_program *prog, const struct icf_bases *b,
				   struct icf_asker *ask, unsigned threads);
#endif
