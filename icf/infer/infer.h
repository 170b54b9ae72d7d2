/* infer.h: references of programs that were linked without --emit-relocs.
 *
 * In a position-independent file every absolute address of code has a dynamic relocation, and every
 * distance in code is a decoded instruction.  What is left are distances in data: jump tables,
 * which are found from the code that jumps through them, and whatever else could be one, whose
 * targets are pinned: a distance between two things that stay is still right. */
#ifndef ICF_INFER_INFER_H
#define ICF_INFER_INFER_H
#include "icf/program/program.h"

/* What the code of one unit tells; scratch memory of one thread, starts as { 0 }. */
struct icf_insn_at {
	struct elfrw_insn in;
	uint32_t pos; /* from the unit's start */
};

/* A direct branch inside the unit. */
struct icf_edge {
	uint32_t to;   /* from the unit's start */
	uint32_t from; /* instruction */
};

struct icf_step {
	uint32_t at; /* instruction */
	uint8_t reg;
};

struct icf_indices {
	VEC(uint32_t) v;
};

struct icf_trace {
	VEC(struct icf_insn_at) insn;
	VEC(struct icf_edge) edge;  /* by `to`; only after icf_trace_edges() */
	struct icf_indices jump;    /* the indirect jumps; only after icf_trace_edges() */
	struct icf_indices open;    /* those that may lead anywhere; in the beginning, all */
	VEC(struct icf_edge) cases; /* where the others lead; by `to` */
	uint32_t budget; /* steps that searches of this unit may still take; then jumps are unknown
			  */
	bool forward; /* what neither a branch nor one of `cases` nor an exception leads to is not
			 reached */
	bool sealed;  /* nobody has the address of a place inside, other than by the tables that its
			 own code names */
	bool plain;   /* sealed, and the code names no table either */
	VEC(struct icf_edge) pads; /* where exceptions lead, and from what calls; by `to` */
	VEC(uint8_t) start;        /* bit set: an instruction begins at that byte of the unit */
	VEC(struct icf_step) todo; /* of a search */
	VEC(uint8_t) seen;
	VEC(uint8_t) target; /* bit set: an instruction of the unit names that byte */
};

/* Decodes unit I into T.  *CLEAN is false when a branch leads into an instruction of the unit. */
struct elfrw_err *icf_trace_unit(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				 bool *clean);
struct elfrw_err *icf_trace_edges(const struct icf_program *prog, uint32_t i, struct icf_trace *t);
void icf_trace_sort_cases(struct icf_trace *t); /* once some were added */

/* Fills T->pads.  *GOOD is false when a table of exceptions is not understood. */
struct elfrw_err *icf_trace_pads(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				 bool *good);
void icf_trace_deinit(struct icf_trace *t);

static inline bool icf_trace_bit(const uint8_t *bits, uint64_t i)
{
	return bits[i >> 3] >> (i & 7) & 1;
}

/* How a jump through a register gets its target. */
enum icf_jump_kind {
	ICF_JUMP_TABLE, /* a distance from a table, added to the table's address */
	ICF_JUMP_LOCAL, /* a distance, added to an address of this unit's code */
	ICF_JUMP_UNKNOWN,
};

struct icf_jump {
	uint8_t kind;   /* enum icf_jump_kind */
	uint32_t group; /* of those with the same number, one or more are true */
	uint64_t base;  /* TABLE: its address, or 0: it was kept in memory */
	uint64_t bound; /* TABLE: the number of entries that a comparison proves, or 0 */
	uint64_t cap;   /* TABLE: there cannot be more entries, or 0 */
};

/* Where one indirect jump may get its target from, other than from pointers. */
struct icf_jumps {
	struct icf_jump jump[64];
	unsigned n;
	bool adds;   /* maybe from a sum of something else */
	bool closed; /* from the tables of `jump` alone, or from pointers that lead out of the unit
		      */
};

/* Does the indirect call T->insn[AT] of unit I go to a sum?  Only the code just before it is
 * read. */
bool icf_call_adds(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
		   size_t at);

/* Reads how indirect jump T->insn[AT] of unit I gets its target; icf_trace_edges() was called. */
void icf_classify_jump(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
		       struct icf_jumps *ret);
#endif
