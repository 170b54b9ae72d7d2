/* unit.h: the jump tables of one unit, for infer_table.c, which asks for all units. */
#ifndef ICF_INFER_UNIT_H
#define ICF_INFER_UNIT_H
#include "icf/infer/parts.h"

/* Data that unit I names and whose first word leads into it. */
struct icf_candidate {
	uint64_t base;
	uint64_t n; /* entries that its jumps can use; 0: none goes through it */
};

struct icf_candidates {
	VEC(struct icf_candidate) v; /* by base */
};

/* What was found in a run of units. */
struct icf_found {
	VEC(struct icf_inferred_table) table;
	struct icf_places named; /* labels that tables lead to */
	VEC(uint32_t) doubt;     /* units to look at again when all tables are known */
	const char *loose;       /* the first reason why nothing may move, and where */
	uint64_t loose_at;
};

/* Reads units; one for each run of units, so that several can work at the same time.  Of the
 * program it writes flags only, by or-ing. */
struct icf_finder {
	struct icf_program *prog;
	const struct icf_data_map *map;
	const struct icf_bits *insn;   /* where instructions begin */
	const struct icf_bits *called; /* unit entries that a call, an address or a symbol of a
					  function names; by byte of code */
	const struct icf_bits *joined; /* where units jump to in others; NULL: not known */
	struct icf_found *found;
	bool last; /* all tables are known: their words are explained */
	struct icf_trace t;
	struct icf_candidates cand; /* of the unit that `t` holds */
	struct {
		uint32_t a, b;
		bool yes;
	} linked[64];               /* answers of are_linked() */
	struct icf_places branches; /* where it jumps to and what it calls; ascending */
	struct icf_places bases,
		leas; /* the data that it names; that whose address it computes; ascending */
	struct icf_places
		loads; /* where the unit that `t` holds loads 4 bytes from a fixed place */
	struct icf_indices todo;    /* jumps of that unit that are not accounted for */
	struct icf_indices closed;  /* and those that have just been */
	uint64_t work;              /* on its labels */
	bool adds;                  /* one of `todo` may go to another sum */
	VEC(struct icf_edge) cases; /* where some of them lead */
};

void icf_finder_deinit(struct icf_finder *f);

/* Finds the tables that unit I jumps through; pins it, with all that it could jump to, when a jump
 * cannot be accounted for.  What is left in doubt is told in f->found->doubt. */
struct elfrw_err *icf_find_unit_tables(struct icf_finder *f, uint32_t i);

/* All tables are known now (f->map): what unit I, which was in doubt, names and no jump was found
 * to use keeps it where it is. */
struct elfrw_err *icf_settle_unit(struct icf_finder *f, uint32_t i);

/* Where a table of words of 4 bytes at BASE ends at the latest: where something else can begin,
 * MOST bytes on at most. */
uint64_t icf_table_limit(const struct icf_program *prog, const struct icf_data_map *map,
			 uint64_t base, uint64_t most);

/* Keeps unit I (or ICF_NONE) where it is. */
void icf_pin_unit(struct icf_program *prog, uint32_t i);

/* The 4-byte distance at VA; false: there is no data. */
bool icf_distance_at(const struct icf_program *prog, uint64_t va, uint64_t *ret);
#endif
