/* claim.h: both files, and what OUT claims of IN's code: which unit is where, and which uses whose
 * copy.  A check that needs no more takes this and a log.
 *
 * map.c makes the claim, from .debug_icfold, or symclaim.c does, from the symbols.  Later only what
 * is found out about units changes. */
#ifndef ICF_VERIFY_CLAIM_H
#define ICF_VERIFY_CLAIM_H
#include "dwarf/calls/icfold_note.h"
#include "dwarf/cfi.h"
#include "dwarf/sections.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/blocks.h"
#include "elfrw/image.h"

#define ICF_V_NONE UINT32_MAX

#define ICF_V_FOLDED  1
#define ICF_V_PINNED  2
#define ICF_V_REMOVED 4 /* nothing reaches it, and it is in OUT no more; also FOLDED */

#define ICF_V_NAMED  1
#define ICF_V_JUMPED 2

/* A claimed unit: the bytes [old, end) of IN are at `body` in OUT, and `entry` is its address for
 * observers. */
struct icf_vunit {
	uint64_t old, end, body, entry;
	uint32_t kept;  /* whose copy it uses; its own index unless folded */
	uint32_t thunk; /* bytes of the thunk at `entry`, 0: none */
	uint32_t exec;  /* index into exec */
	uint8_t flags;  /* of the claim */
	bool shared;    /* others are folded into it */
	bool endbr;     /* found: begins with a landing pad of indirect branches */
	bool opaque;    /* found: no code, or code that is not understood; it did not move */
	uint32_t tail;  /* found: bytes of literals at its end, with the padding before */
	bool literals;  /* found: its data are literals that it alone loads */
	bool mixed;     /* found: something leads into the middle of an apparent instruction */
	bool computes; /* found: jumps to a target in a register or memory, or returns to an address
			  that it stored */
	uint8_t observed; /* found while code and data are read: any thread may set it */
	uint8_t taken;    /* found, in the same way: an instruction computes its address */
	uint8_t named; /* found, in the same way: something other than a table of distances leads to
			  its start; ICF_V_JUMPED: only jumps do */
	/* Found: from here on, the padding in front of it is what it was, where it was. */
	uint64_t padded;
};

/* An executable section of both files. */
struct icf_vexec {
	uint32_t in, out; /* section indices */
	uint64_t old, old_end, new, new_end;
	const uint8_t *old_data, *new_data;
	uint64_t padded; /* found: as a unit's, of the padding behind the last one */
	uint32_t unit, n_units;
	bool apart;    /* not where compilers put code: its functions do not share theirs */
	bool writable; /* the program may change the code: it stays, byte for byte */
	bool still;    /* every function begins where it did, as code or as a thunk */
};

struct icf_vclaim {
	struct elfrw_image in, out;
	const struct elfrw_arch *arch;
	uint32_t *to_out;   /* by section of IN: section of OUT, 0: dropped */
	uint32_t *from_out; /* by section of OUT: section of IN, 0: added */
	bool typed;         /* OUT keeps relocations: names of folded functions keep their type */
	bool inferred;      /* IN has no relocations of its code: distances in data must be found */
	uint64_t moved_lo, moved_hi; /* addresses of IN's data sections that moved; empty: none */
	VEC(struct icf_vexec) exec;  /* sorted by old */
	uint32_t *exec_at; /* by section of IN: its index in exec + 1, 0: not executable; owned */
	VEC(struct icf_vunit) unit; /* sorted by old */
	uint32_t n_removed;         /* of them */
	struct elfrw_blocks blocks; /* of [lo, hi): the units */
	uint64_t lo, hi;
	uint32_t *by_new; /* units that are not folded, sorted by body; owned */
	uint32_t n_new;
	uint32_t *by_thunk; /* units with a thunk, sorted by its address; owned */
	uint32_t n_thunk;
	struct dwr_sections note_secs; /* of OUT, for its .debug_icfold */
	struct dwr_icfold note;        /* when has_note */
	bool has_note;
	uint64_t frame_lo, frame_hi; /* IN's .eh_frame */
	struct dwr_cfi cfi_in, cfi_out;
};

/* Is unit U (or ICF_V_NONE) removed? */
static inline bool icf_v_removed(const struct icf_vclaim *c, uint32_t u)
{
	return u != ICF_V_NONE && (c->unit.data[u].flags & ICF_V_REMOVED);
}

/* map.c: look-ups, of addresses of IN unless another is said. */
uint32_t icf_v_find(const struct icf_vclaim *c, uint64_t va); /* the unit that holds VA */
uint32_t icf_v_find_after(const struct icf_vclaim *c,
			  uint64_t va); /* the same, or the first one behind VA */
uint32_t icf_v_find_end(const struct icf_vclaim *c,
			uint64_t va); /* the unit that ends at VA, or holds VA - 1 */
uint32_t icf_v_find_new(const struct icf_vclaim *c,
			uint64_t va); /* the unit whose copy holds VA of OUT */
uint32_t icf_v_find_thunk(const struct icf_vclaim *c,
			  uint64_t va); /* the unit whose thunk holds VA of OUT */
bool icf_v_in_exec(const struct icf_vclaim *c, uint64_t va); /* of IN */
/* Does a section of code end at VA, in IN, in OUT? */
bool icf_v_in_end(const struct icf_vclaim *c, uint64_t va);
bool icf_v_out_end(const struct icf_vclaim *c, uint64_t va);
const struct icf_vexec *icf_v_out_exec(const struct icf_vclaim *c,
				       uint64_t va); /* of OUT, or NULL */
const struct icf_vexec *icf_v_exec_of(const struct icf_vclaim *c,
				      uint32_t shndx); /* what section SHNDX of IN is, or NULL */
/* The image of the code at VA; false: in no unit (*RET is then the new end, if VA is the end of a
 * section). */
bool icf_v_code(const struct icf_vclaim *c, uint64_t va, uint64_t *ret);
/* The image of the address VA for observers. */
bool icf_v_pointer(const struct icf_vclaim *c, uint64_t va, uint64_t *ret);
/* The image of a label at VA: the end of a unit is a place, too. */
bool icf_v_label(const struct icf_vclaim *c, uint64_t va, uint32_t owner, uint64_t *ret);
/* The image of data at VA. */
uint64_t icf_v_data(const struct icf_vclaim *c, uint64_t va);
/* "NAME+0xOFF" for an address of IN's code, for messages. */
const char *icf_v_where(const struct icf_vclaim *c, uint64_t va, char buf[200]);

/* align.c: the address OLD of IN's code is NEW in OUT.  Does it keep its alignment, up to its
 * section's?  In no unit: true. */
bool icf_v_stays_aligned(const struct icf_vclaim *c, uint64_t old, uint64_t new);
/* The address OLD became NEW.  If it could be a function's with a tag in its low bits, is it that
 * still? */
bool icf_v_keeps_tag(const struct icf_vclaim *c, uint64_t old, uint64_t new);
/* A relocation with the symbol SYM leads to VA, behind that function.  Is the distance from it no
 * longer the same? */
bool icf_v_loses_tag(const struct icf_vclaim *c, const Elf64_Sym *sym, uint64_t va);
#endif
