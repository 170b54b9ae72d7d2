/* parts.h: what the parts of the inference share. */
#ifndef ICF_INFER_PARTS_H
#define ICF_INFER_PARTS_H
#include "icf/infer/infer.h"

struct icf_islands {
	VEC(struct icf_island) v; /* by address */
};

struct icf_places {
	VEC(uint64_t) v;
};

/* One bit for each byte of [lo, hi), readable in 8-byte units at any place. */
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

/* The last high half that was put into each register, where FORM is not 0.  Starts as { 0 }. */
struct icf_halves {
	uint64_t page[ELFRW_MAX_REGS];
	uint8_t form[ELFRW_MAX_REGS];
};

/* Call it for each instruction in turn.  IN, decoded from CODE, adds a low half to a high one: *RET
 * is what both name.  Else false.  half.c */
bool icf_half_names(const struct elfrw_arch *arch, struct icf_halves *h,
		    const struct elfrw_insn *in, const uint8_t *code, uint64_t *ret);

/* Does unit U have references with ICF_REF_HALF? */
bool icf_has_halves(const struct icf_program *prog, const struct icf_unit *u);

/* If it has, appends to ALL what its halves may name, and to COMPUTED (may be NULL) that of which
 * the address is computed.  false: out of memory. */
bool icf_push_half_names(const struct icf_program *prog, const struct icf_unit *u,
			 struct icf_places *all, struct icf_places *computed);

/* code.c: sets the bits in PADS (of code) where a landing pad begins, of all LSDAs that can be
 * read. */
void icf_mark_pads(const struct icf_program *prog, struct icf_bits *pads);

/* refs/look.c: finds islands, sets ICF_UNIT_BLIND and ICF_UNIT_JUMPS, and makes units opaque if
 * their branches lead into instructions.  Sets the bits in INSN (of all code; may be NULL) where an
 * instruction begins.  With relocations, only for code that has neither a symbol nor an FDE; other
 * units that read their own bytes become opaque. */
struct elfrw_err *icf_find_islands(struct icf_program *prog, unsigned threads,
				   struct icf_islands *ret, struct icf_bits *insn);

/* Makes units opaque that have an island without references, and those with ICF_UNIT_BLIND.  NAMED:
 * the targets of jump tables. */
struct elfrw_err *icf_judge_islands(struct icf_program *prog, const struct icf_islands *islands,
				    const struct icf_places *named);

/* Sets ICF_UNIT_BLIND of units that have neither a symbol nor an FDE and may hold data.  gap.c. */
struct elfrw_err *icf_find_blind(struct icf_program *prog);

/* The structure of data; map.c. */
struct icf_data_map {
	struct icf_bits named; /* places that code, a dynamic relocation or a symbol refers to */
	struct icf_bits table; /* words that belong to a jump table */
	struct icf_bits entry; /* of code: where units begin */
};
struct elfrw_err *icf_data_map_init(const struct icf_program *prog, struct icf_data_map *map);
void icf_data_map_deinit(struct icf_data_map *map);

/* The first place after VA with a reference to it, or the end of VA's section; at most MOST bytes
 * from VA. */
uint64_t icf_next_named(const struct icf_program *prog, const struct icf_data_map *map, uint64_t va,
			uint64_t most);

/* The last place in [FLOOR, *VA) with a reference to it: *VA; false: there is none. */
bool icf_last_named(const struct icf_data_map *map, uint64_t floor, uint64_t *va);

/* table.c: makes MAP, finds the jump tables, and pins the units with unexplained jumps.  NAMED
 * receives the entries' targets. */
struct elfrw_err *icf_infer_tables(struct icf_program *prog, unsigned threads,
				   const struct icf_bits *insn, struct icf_data_map *map,
				   struct icf_places *named);

/* Pins what the units with ICF_UNIT_BLIND may reach by distances in data, and sets the flag of
 * undelimited units with unexplained jumps.  All tables must be known.  gap.c. */
struct elfrw_err *icf_infer_gaps(struct icf_program *prog, const struct icf_data_map *map);

/* An address that an instruction computes. */
struct icf_named_at {
	uint64_t va;
	uint32_t pos; /* of the instruction, from its unit's start */
	bool code;    /* the address is one of code */
};

/* Pins the functions that words of the object at BASE lead to, counted from those of the N
 * addresses FROM that are code.  With EVIDENCE that sums are called, all words count; else only
 * words in the company of others.  word.c. */
void icf_pin_sums(struct icf_program *prog, const struct icf_data_map *map, uint64_t base,
		  const struct icf_named_at *from, size_t n, bool evidence);

/* Does unit U compute the address of code in other units?  word.c. */
bool icf_names_code(const struct icf_program *prog, const struct icf_unit *u);

/* Is unit U not understood, or about to be so? */
static inline bool icf_is_dark(const struct icf_unit *u)
{
	return u->kind == ICF_UNIT_OPAQUE ||
	       (__atomic_load_n(&u->flags, __ATOMIC_RELAXED) & ICF_UNIT_BLIND);
}

/* Sets the bits in CALLED (of all code; initialized here) of entries that something uses as
 * functions.  table.c. */
struct elfrw_err *icf_find_called(const struct icf_program *prog, struct icf_bits *called);

/* Does unit A jump into unit B behind B's entry?  infer.c. */
bool icf_jumps_inside(const struct icf_program *prog, const struct icf_unit *a,
		      const struct icf_unit *b);

/* Nothing may move, because of WHY at address AT.  The first reason counts.  infer.c. */
void icf_infer_loose(struct icf_program *prog, uint64_t at, const char *why);

/* word.c: pins the possible targets of other words in data; sets prog->loose. */
struct elfrw_err *icf_infer_words(struct icf_program *prog, const struct icf_data_map *map,
				  unsigned threads);

/* run/run.c: pins the targets of distances of other shapes in data, and of lone distances.  Writes
 * only flags of units. */
struct elfrw_err *icf_infer_runs(struct icf_program *prog, const struct icf_data_map *map,
				 unsigned threads);

/* The same for units that are not understood, as if they were data; call it after units are glued.
 * All lone words that lead from their places or ends to an entry are believed. */
struct elfrw_err *icf_infer_opaque_runs(struct icf_program *prog, unsigned threads);

/* Does the program ask the dynamic linker for its load address?  run/run.c */
bool icf_asks_for_image(const struct icf_program *prog);

/* bare/bare.c: pins the targets of distances in data that count from other data, and with
 * relocations also of words that count from their own place, or are addresses.  MAP: with all
 * tables; NULL: relocations were kept. */
struct elfrw_err *icf_infer_bare(struct icf_program *prog, const struct icf_data_map *map,
				 unsigned threads);

/* bare/absolute.c: pins what lies at the distance of an absolute symbol from what code names. */
void icf_infer_absolute(struct icf_program *prog);

/* Does S hold data other than unwind tables and the dynamic linker's data?  run/run.c. */
bool icf_holds_data(const struct elfrw_section *s);

/* sum.c: relocations were kept; pins the targets of differences of functions that have none. */
struct elfrw_err *icf_infer_sums(struct icf_program *prog, unsigned threads);

/* arith.c: pins functions to whose addresses code adds numbers, and what the sums name; if it adds
 * something else, nothing may move. */
struct elfrw_err *icf_infer_arithmetic(struct icf_program *prog, unsigned threads);

/* place.c: nothing moves, or some functions do not, where others know the program's places. */
struct elfrw_err *icf_infer_places(struct icf_program *prog);

/* fixed.c: the same question for a file with fixed addresses, where nothing moves: which functions
 * may be entered in the middle?  Makes units opaque that may hold data, and sets ICF_UNIT_INNER. */
struct elfrw_err *icf_infer_fixed(struct icf_program *prog, unsigned threads);
#endif
