/* infer.h: references of programs that were linked without --emit-relocs.
 *
 * In a position-independent file every absolute address of code has a dynamic relocation, and every
 * distance in code is in a decoded instruction.  Distances in data remain.  Jump tables are found
 * from the code that jumps through them.  The possible targets of all other words that could be
 * distances are pinned: a distance between two things that stay is still correct. */
#ifndef ICF_INFER_INFER_H
#define ICF_INFER_INFER_H
#include "elfrw/arch/effect.h"
#include "icf/program/program.h"

/* The decoded code of one unit; scratch memory of one thread, starts as { 0 }. */
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

/* An answer that is kept. */
enum { ICF_MAYBE, ICF_YES, ICF_NO };

struct icf_indices {
	VEC(uint32_t) v;
};

struct icf_trace {
	VEC(struct icf_insn_at) insn;
	bool inner;        /* an instruction that is no branch refers to the unit, by one field */
	uint8_t distances; /* the unit loads distances from tables: ICF_MAYBE until asked (jump.c)
			    */
	VEC(struct icf_edge) edge;   /* by `to`; only after icf_trace_edges() */
	VEC(struct icf_edge) sorted; /* room for sorting them */
	struct icf_indices jump;     /* the indirect jumps; only after icf_trace_edges() */
	struct icf_indices open;     /* those that may lead anywhere; at first, all */
	VEC(struct icf_edge) cases;  /* the targets of the others; by `to` */
	uint32_t budget; /* steps left for searches in this unit; at 0 jumps are unknown */
	bool forward; /* code without a branch, one of `cases` or an exception to it is not reached
		       */
	bool sealed;  /* nothing has the address of a place inside, except through the tables that
			 its own code refers to */
	bool plain;   /* sealed, and the code refers to no table either */
	VEC(struct icf_edge) pads; /* where exceptions lead, and from which calls; by `to` */
	VEC(uint8_t) start;        /* bit set: an instruction begins at that byte of the unit */
	VEC(struct icf_step) todo; /* of a search */
	VEC(uint8_t) seen;
	VEC(uint8_t) target; /* bit set: an instruction of the unit refers to that byte */
	/* Bit set: that instruction does something to control, or has a number of 8 bytes; it has a
	 * number of more than one byte.  Few do, so loops over these alone are fast. */
	VEC(uint64_t) turn;
	VEC(uint64_t) number;
};

/* The first instruction from K on whose bit is set in BITS (of N instructions); N: none. */
static inline size_t icf_trace_next(const uint64_t *bits, size_t k, size_t n)
{
	for (uint64_t m = k < n ? ~(uint64_t)0 << (k & 63) : 0; k < n; m = ~(uint64_t)0) {
		m &= bits[k >> 6];
		if (m)
			return (k & ~(size_t)63) + (unsigned)__builtin_ctzll(m);
		k = (k & ~(size_t)63) + 64;
	}
	return n;
}

/* Whoever decodes a unit of SIZE bytes fills T: begins here, decodes each instruction into the slot
 * that icf_trace_slot() returns, and adds it.  false, NULL: out of memory. */
bool icf_trace_begin(struct icf_trace *t, uint64_t size);

static inline struct elfrw_insn *icf_trace_slot(struct icf_trace *t)
{
	if (t->insn.len == t->insn.cap && !VEC_RESERVE(&t->insn, t->insn.cap + 1))
		return NULL;
	return &t->insn.data[t->insn.len].in;
}

/* Adds the instruction in the slot, POS bytes from the start of U. */
static inline void icf_trace_add(const struct elfrw_arch *arch, const struct icf_unit *u,
				 struct icf_trace *t, uint64_t pos)
{
	const size_t k = t->insn.len++;
	struct icf_insn_at *a = &t->insn.data[k];
	const struct elfrw_insn *in = &a->in;
	bool turn = (in->kind != ELFRW_INSN_OTHER) | (in->imm_size == 8),
	     number = (in->imm_size > 1) | ((in->flags & ELFRW_INSN_LEA) != 0);
	t->turn.data[k >> 6] |= (uint64_t)turn << (k & 63);
	t->number.data[k >> 6] |= (uint64_t)number << (k & 63);
	a->pos = (uint32_t)pos;
	t->start.data[pos >> 3] |= (uint8_t)(1u << (pos & 7));
	if (!in->pcrel_size)
		return;
	uint64_t to = in->target - u->start;
	if (to >= u->end - u->start || icf_is_half(arch, in))
		return;
	t->target.data[to >> 3] |= (uint8_t)(1u << (to & 7));
	t->inner |= in->kind != ELFRW_INSN_CALL && in->kind != ELFRW_INSN_JMP &&
		    in->kind != ELFRW_INSN_JCC;
}

/* Does no branch lead into an instruction of T, which holds a unit of SIZE bytes? */
bool icf_trace_is_clean(const struct icf_trace *t, uint64_t size);

/* Decodes unit I into T.  *CLEAN is false if a branch leads into an instruction of the unit. */
struct elfrw_err *icf_trace_unit(const struct icf_program *prog, uint32_t i, struct icf_trace *t,
				 bool *clean);
struct elfrw_err *icf_trace_edges(const struct icf_program *prog, uint32_t i, struct icf_trace *t);
/* Sorts `cases`, of a unit of SIZE bytes, after some were added.  false: out of memory. */
bool icf_trace_sort_cases(struct icf_trace *t, uint64_t size);

/* Fills T->pads.  *GOOD is false if an exception table is not understood. */
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
	uint32_t group; /* of the jumps with the same number, at least one is true */
	uint64_t base;  /* TABLE: its address, or 0: the address was kept in memory; LOCAL: what is
			   added */
	const struct elfrw_table_shape *shape;
	uint64_t table; /* LOCAL: the table's address, or 0: unknown */
	uint64_t bound; /* the number of entries that a comparison proves, or 0 */
	uint64_t cap;   /* the most entries possible, or 0 */
	bool open;      /* there may be more entries than `bound` */
};

/* Where one indirect jump may get its target from, except from pointers. */
struct icf_jumps {
	struct icf_jump jump[64];
	unsigned n;
	bool adds;   /* maybe from an unknown sum */
	bool closed; /* only from the tables of `jump`, or from pointers that lead out of the unit
		      */
};

/* Does the indirect call T->insn[AT] of unit I go to a sum?  Reads only the code just before it. */
bool icf_call_adds(const struct icf_program *prog, uint32_t i, const struct icf_trace *t,
		   size_t at);

/* Finds how indirect jump T->insn[AT] of unit I gets its target.  Call icf_trace_edges() first. */
void icf_classify_jump(const struct icf_program *prog, uint32_t i, struct icf_trace *t, size_t at,
		       struct icf_jumps *ret);

/* refs/look.c: before the references of a program without relocations are found.  From then on
 * units are looked at when they are decoded. */
struct elfrw_err *icf_expect_looks(struct icf_program *prog);

/* Looks at unit I, which T holds and whose references are known.  Writes only what belongs to this
 * unit and its chunk. */
struct elfrw_err *icf_look_at_unit(struct icf_program *prog, uint32_t i, const struct icf_trace *t);

/* The addresses that a number in any instruction may count from: the file's first byte, tables of
 * addresses.  Returns how many.  run/number.c */
unsigned icf_number_bases(const struct icf_program *prog, uint64_t base[ICF_NUMBER_BASES]);
/* The number that the operand of SIZE bytes at P is; 0 bytes: 0. */
uint64_t icf_operand(const uint8_t *p, unsigned size);
/* Is no number in unit I, which T holds, the distance to code from a base or from data whose
 * address the unit computes?  May say false of a unit for which that holds. */
bool icf_is_plain(const struct icf_program *prog, uint32_t i, const struct icf_trace *t);

/* For --gc-functions.  References are inferred.  Sets KEEP, by unit, of all that something might
 * lead to although no reference is known; of units that are LIVE it need not.  When the tables and
 * the pinned units are known.  run/doubt.c */
struct elfrw_err *icf_find_doubtful(const struct icf_program *prog, unsigned threads,
				    const uint8_t *live, uint8_t *keep);
#endif
