/* addrmap.h: where every old address of the executable sections is in the output.
 *
 * This map is the centre of the program.  icf/fold/plan.c fills it; it is const afterwards.  It
 * lies in the lowest layer so that dwarf/ can read it without knowing of icf/.
 *
 * The map is a sorted array of disjoint old ranges, one for each unit (function, cold part, opaque
 * run).  Bytes in no unit (padding between units) are gone in the output.  There are two kinds of
 * look-up, which differ at a boundary.  A *point* is looked up in the unit that holds it.  An *end*
 * (one past the last byte, or a return address) is looked up in the unit that holds the byte before
 * it.  Addresses outside of the executable sections never change. */
#ifndef ELFRW_ADDRMAP_H
#define ELFRW_ADDRMAP_H
#include "elfrw/base/err.h"
#include "elfrw/blocks.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ELFRW_NO_UNIT UINT32_MAX

enum {
	ELFRW_UNIT_FOLDED = 1,   /* the body is gone; `body` is the kept member's new address */
	ELFRW_UNIT_THUNK = 2,    /* folded, and `entry` is the address of its thunk in the output */
	ELFRW_UNIT_KEPT = 4,     /* other units were folded into this one */
	ELFRW_UNIT_PINNED = 8,   /* stays at its old address */
	ELFRW_UNIT_REMOVED = 16, /* nothing can reach it, and it is gone; also FOLDED, although it
				    has no copy: `kept` is its own index, `body` and `entry` are
				    0, where linkers put what they discard */
};

struct elfrw_addrmap_unit {
	uint64_t old, old_end; /* half-open range in the input */
	uint64_t body;  /* where the byte at `old` is in the output; of a folded unit: in the kept
			   copy */
	uint64_t entry; /* the address that stands for the function's entry in data: the thunk, or
			   `body` */
	uint32_t kept; /* index of the unit whose copy this one uses; its own index unless folded */
	uint32_t thunk_size; /* bytes, 0 without a thunk */
	uint8_t flags;
};

/* One executable section, old and new. */
struct elfrw_addrmap_section {
	uint64_t old, old_end, new_start, new_end;
	uint32_t shndx; /* section header index in the input */
	bool end_taken; /* another section begins at old_end; as a point, that address is not in
			   this section */
};

struct elfrw_addrmap {
	struct elfrw_addrmap_unit *unit; /* sorted by old; owned */
	uint32_t n_units;
	struct elfrw_addrmap_section *section; /* sorted by old; owned */
	uint32_t n_sections;
	uint64_t lo, hi;            /* all executable sections lie in [lo, hi) of the input */
	struct elfrw_blocks blocks; /* of [lo, hi): the units */
	uint64_t trap_byte; /* address in the output of one byte at the end of the code that is
			       never a PC, or 0 */
	uint64_t thunks, thunks_end; /* the run of thunks in the output (empty: equal) */
	bool in_place; /* nothing moved: each thunk is where its function began, and `thunks` spans
			  more than thunks */
};

/* Builds `blocks`, lo and hi.  `unit` and `section` must be filled and sorted.  A map without units
 * is valid and maps each address to itself. */
struct elfrw_err *elfrw_addrmap_finish(struct elfrw_addrmap *map);
void elfrw_addrmap_deinit(struct elfrw_addrmap *map);

/* The unit that holds the byte at VA, or ELFRW_NO_UNIT (padding, or not in an executable
 * section). */
uint32_t elfrw_addrmap_find(const struct elfrw_addrmap *map, uint64_t va);

/* The first unit that ends after VA, or n_units; VA may be any address. */
uint32_t elfrw_addrmap_after(const struct elfrw_addrmap *map, uint64_t va);

/* Is VA inside (or at the very end of) an executable section of the input? */
bool elfrw_addrmap_covers(const struct elfrw_addrmap *map, uint64_t va);

/* The new address of the byte at VA.  false: VA lies in padding that is gone; *RET is then where
 * the next unit begins, or the section's new end.  Addresses outside the executable sections: true
 * and unchanged.  The old end of an executable section maps to its new end, unless something else
 * begins there. */
bool elfrw_addrmap_point(const struct elfrw_addrmap *map, uint64_t va, uint64_t *ret);

/* The new address of the end address VA (one past a byte), by the unit that holds VA - 1. */
bool elfrw_addrmap_end(const struct elfrw_addrmap *map, uint64_t va, uint64_t *ret);

/* The new address of VA, which lies in unit U.  POINTER: the program can look at the value, so it
 * stands for the function. */
static inline uint64_t elfrw_addrmap_in_unit(const struct elfrw_addrmap_unit *u, uint64_t va,
					     bool pointer)
{
	return pointer && va == u->old ? u->entry : u->body + (va - u->old);
}

/* What a pointer to code with the value VA becomes: the unit's `entry` at its first byte, else as
 * elfrw_addrmap_point(). */
bool elfrw_addrmap_pointer(const struct elfrw_addrmap *map, uint64_t va, uint64_t *ret);
#endif
