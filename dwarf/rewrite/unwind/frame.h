/* frame.h: unwind tables for the output: .gcc_except_table, then .eh_frame with .eh_frame_hdr, and
 * .debug_frame. */
#ifndef DWARF_REWRITE_UNWIND_FRAME_H
#define DWARF_REWRITE_UNWIND_FRAME_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dwr_cfi;
struct elfrw_addrmap;
struct elfrw_arch;
struct elfrw_image;

#define DWR_RW_GONE UINT64_MAX

/* A run of bytes that moved as one: [old, old_end) is now at `new`, or gone (DWR_RW_GONE). */
struct dwr_rw_move {
	uint64_t old, old_end, new;
};

/* Sorted, disjoint; owned. */
struct dwr_rw_moves {
	struct dwr_rw_move *move;
	size_t n;
};

/* Where the byte at OLD is now; false: gone, or not in any run. */
bool dwr_rw_moved(const struct dwr_rw_moves *moves, uint64_t old, uint64_t *ret);

/* Is the FDE left out of the output (its code is folded or was padding, or it never had an
 * address)?  This rule applies to .eh_frame, .debug_frame and the liveness of LSDAs. */
bool dwr_rw_fde_gone(const struct dwr_cfi *cfi, uint32_t fde, const struct elfrw_addrmap *map);

struct dwr_rw_except_in {
	const struct elfrw_image *img;
	const struct dwr_cfi *cfi; /* .eh_frame of the input */
	const struct elfrw_addrmap *map;
	uint32_t shndx; /* of .gcc_except_table */
	uint64_t va; /* its address in the output (congruent to the old one modulo its alignment) */
};

struct dwr_rw_except_out {
	uint8_t *data; /* owned, malloc */
	size_t size;
	struct dwr_rw_moves moves; /* by VA; when not compacted one run: the section */
	bool compacted;        /* dead LSDAs are out; false: none was dead, or some bytes are not
				  understood */
	size_t n_live, n_dead; /* blobs */
	uint64_t unknown; /* nonzero bytes that no LSDA covers, and LSDAs that do not parse: then
			     nothing is dropped */
};

/* Rebuilds .gcc_except_table.  LSDAs move as rigid blocks: overlapping ones together; those with
 * multi-byte fields keep the residue of their address modulo the section's alignment.  LSDAs
 * without a remaining FDE are dropped.  PC-relative type pointers and explicit LPStart fields are
 * set for the new place.  Errors: a pointer that no longer fits its field, landing pads that moved
 * apart from their base, out of memory. */
struct elfrw_err *dwr_rw_gcc_except(const struct dwr_rw_except_in *in,
				    struct dwr_rw_except_out *out);
void dwr_rw_except_deinit(struct dwr_rw_except_out *out);

struct dwr_rw_frame_in {
	const struct dwr_cfi *cfi;
	const struct elfrw_addrmap *map;
	const struct elfrw_arch *arch;
	uint64_t va;                     /* of .eh_frame in the output; ignored for .debug_frame */
	const struct dwr_rw_moves *lsda; /* where LSDAs went, by VA; NULL: they stay */
	/* .eh_frame_hdr of the input, or NULL, and its address in the output. */
	const uint8_t *hdr;
	size_t hdr_size;
	uint64_t hdr_va;
	bool keep_folded; /* .debug_frame: FDEs of folded functions stay, at the kept copy */
	bool no_thunks;   /* add no FDE for the run of thunks */
};

struct dwr_rw_frame_out {
	uint8_t *data; /* the new section; owned, malloc */
	size_t size;
	uint8_t *hdr; /* the new .eh_frame_hdr, or NULL without one; owned, malloc */
	size_t hdr_size;
	/* By section offset, one run for each record.  A split FDE is where its first piece is.  An
	 * end (old section size) is looked up as an end. */
	struct dwr_rw_moves moves;
	size_t n_fdes, n_dropped, n_split;
};

/* Rebuilds .eh_frame and .eh_frame_hdr.  Order, encodings and the layout of records stay.  FDEs of
 * code that is gone (dwr_rw_fde_gone) and CIEs without FDEs are left out.  One FDE is added for the
 * thunks, if a function of theirs had an FDE.  An FDE over several units that moved apart is split
 * if its rules are the same throughout.  Either may make the tables longer.  Errors: overflow of a
 * field, an FDE with several rows whose code moved apart, an unknown .eh_frame_hdr, out of
 * memory. */
struct elfrw_err *dwr_rw_eh_frame(const struct dwr_rw_frame_in *in, struct dwr_rw_frame_out *out);

/* The same for .debug_frame. */
struct elfrw_err *dwr_rw_debug_frame(const struct dwr_rw_frame_in *in,
				     struct dwr_rw_frame_out *out);
void dwr_rw_frame_deinit(struct dwr_rw_frame_out *out);
#endif
