/* parts.h: what the parts of the inference share. */
#ifndef ICF_INFER_PARTS_H
#define ICF_INFER_PARTS_H
#include "icf/infer/infer.h"

/* Instructions that control cannot reach from the one before, and that no instruction of their unit
 * names. */
struct icf_island {
	uint64_t va;
	uint32_t unit;
	bool refers; /* its bytes, read as instructions, refer to something outside of the unit */
};
struct icf_islands {
	VEC(struct icf_island) v; /* by address */
};

struct icf_places {
	VEC(uint64_t) v;
};

/* One bit for each byte of [lo, hi), and room to read 8 bytes anywhere in them. */
struct icf_bits {
	uint64_t lo, hi;
	uint8_t *bits; /* owned */
};

bool icf_bits_init(struct icf_bits *b, uint64_t lo, uint64_t hi); /* false: out of memory */
void icf_bits_deinit(struct icf_bits *b);

static inline bool icf_bit(const struct icf_bits *b, uint64_t va)
{
	return va - b->lo < b->hi - b->lo && (b->bits[(va - b->lo) >> 3] >> ((va - b->lo) & 7) & 1);
}

static inline void icf_set_bit(struct icf_bits *b, uint64_t va)
{
	if (va - b->lo < b->hi - b->lo)
		b->bits[(va - b->lo) >> 3] |= (uint8_t)(1u << ((va - b->lo) & 7));
}

/* code.c: finds them, sets ICF_UNIT_BLIND and ICF_UNIT_JUMPS, makes units opaque whose branches
 * lead into instructions, and sets the bits in INSN (of all code; may be NULL) where an instruction
 * begins.  With relocations, only of code that has neither a symbol nor an FDE; other units that
 * read bytes of their own become opaque. */
struct elfrw_err *icf_find_islands(struct icf_program *prog, unsigned threads,
				   struct icf_islands *ret, struct icf_bits *insn);

/* Makes the units opaque that have an island which nothing names, and those with ICF_UNIT_BLIND.
 * NAMED: the targets of jump tables. */
struct elfrw_err *icf_judge_islands(struct icf_program *prog, const struct icf_islands *islands,
				    const struct icf_places *named);

/* Sets ICF_UNIT_BLIND of units without a symbol and an FDE that may hold data.  gap.c. */
struct elfrw_err *icf_find_blind(struct icf_program *prog);

/* What data is made of; map.c. */
struct icf_data_map {
	struct icf_bits named; /* places that code, a dynamic relocation or a symbol names */
	struct icf_bits table; /* words that belong to a jump table */
};
struct elfrw_err *icf_data_map_init(const struct icf_program *prog, struct icf_data_map *map);
void icf_data_map_deinit(struct icf_data_map *map);

/* The first place after VA that something names, or the end of VA's section; no further than MOST
 * bytes from VA. */
uint64_t icf_next_named(const struct icf_program *prog, const struct icf_data_map *map, uint64_t va,
			uint64_t most);

/* table.c: the jump tables; pins the units whose jumps cannot be accounted for.  NAMED receives the
 * entries' targets. */
struct elfrw_err *icf_infer_tables(struct icf_program *prog, unsigned threads,
				   const struct icf_bits *insn, struct icf_data_map *map,
				   struct icf_places *named);

/* Pins what the units with ICF_UNIT_BLIND may reach by distances in data, and sets the flag of
 * those that nothing delimits and whose jumps were not accounted for.  All tables are known.
 * gap.c. */
struct elfrw_err *icf_infer_gaps(struct icf_program *prog, const struct icf_data_map *map);

/* An address that an instruction computes. */
struct icf_named_at {
	uint64_t va;
	uint32_t pos; /* of the instruction, from its unit's start */
	bool code;    /* the address is one of code */
};

/* Pins the functions that words of the object at BASE lead to, counted from those of the N
 * addresses FROM that are code: all of them with EVIDENCE that sums are called, else those in the
 * company of others.  word.c. */
void icf_pin_sums(struct icf_program *prog, const struct icf_data_map *map, uint64_t base,
		  const struct icf_named_at *from, size_t n, bool evidence);

/* Does unit U compute the address of code other than its own?  word.c. */
bool icf_names_code(const struct icf_program *prog, const struct icf_unit *u);

/* Is unit U, or will it be, one that is not understood? */
static inline bool icf_is_dark(const struct icf_unit *u)
{
	return u->kind == ICF_UNIT_OPAQUE ||
	       (__atomic_load_n(&u->flags, __ATOMIC_RELAXED) & ICF_UNIT_BLIND);
}

/* Sets the bits in CALLED (of all code; initialized here) of entries that are functions to someone.
 * table.c. */
struct elfrw_err *icf_find_called(const struct icf_program *prog, struct icf_bits *called);

/* Does unit A jump into unit B behind its entry?  infer.c. */
bool icf_jumps_inside(const struct icf_program *prog, const struct icf_unit *a,
		      const struct icf_unit *b);

/* Nothing may move, because of WHY at address AT; the first reason counts.  infer.c. */
void icf_infer_loose(struct icf_program *prog, uint64_t at, const char *why);

/* word.c: pins what other words in data could name; sets prog->loose. */
struct elfrw_err *icf_infer_words(struct icf_program *prog, const struct icf_data_map *map);

/* run/run.c: pins what distances of other shapes in data lead to, and distances that stand alone.
 * Writes flags of units only. */
struct elfrw_err *icf_infer_runs(struct icf_program *prog, const struct icf_data_map *map,
				 unsigned threads);

/* The same for what is not understood, as if it were data, once units are glued; lone words that
 * lead from their places or ends to an entry are all believed. */
struct elfrw_err *icf_infer_opaque_runs(struct icf_program *prog, unsigned threads);

/* Does S hold data that is neither unwind tables nor the dynamic linker's?  run/run.c. */
bool icf_holds_data(const struct elfrw_section *s);

/* sum.c: pins what differences of functions lead to that no relocation tells of, where relocations
 * were kept. */
struct elfrw_err *icf_infer_sums(struct icf_program *prog);

/* fixed.c: the same question for a file with fixed addresses, where nothing moves: which functions
 * may be entered in the middle. Makes units opaque that may hold data, and sets ICF_UNIT_INNER. */
struct elfrw_err *icf_infer_fixed(struct icf_program *prog, unsigned threads);
#endif
