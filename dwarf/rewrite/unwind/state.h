/* state.h: private to this folder: the state of one rewriting of .eh_frame or .debug_frame. */
#ifndef DWARF_REWRITE_UNWIND_STATE_H
#define DWARF_REWRITE_UNWIND_STATE_H
#include "dwarf/cfi.h"
#include "dwarf/rewrite/unwind/frame.h"
#include "elfrw/base/vec.h"

/* A run of an FDE's old range that has a place in the output. */
struct dwr_frame_piece {
	uint64_t old, old_end, new;
};

typedef VEC(struct dwr_frame_piece) dwr_frame_pieces;

/* The result for one FDE: pieces [first, first + n) of `pieces`, one record each. */
struct dwr_fde_plan {
	uint32_t first, n;
	uint64_t new_off; /* of the first record */
};

struct dwr_frame_rewriter {
	const struct dwr_rw_frame_in *in;
	const struct dwr_cfi *cfi;
	dwr_frame_pieces pieces;
	struct dwr_fde_plan *fde; /* by FDE */
	uint64_t *cie_off;        /* by CIE, DWR_RW_GONE: dropped */
	bool *cie_live;
	size_t size;        /* of the new section */
	uint32_t thunk_cie; /* index of the CIE for the thunks, UINT32_MAX: a new one */
	bool thunks;
	uint64_t thunk_off; /* of the records for the thunks */
	uint8_t thunk_record[128];
	size_t thunk_cie_size, thunk_fde_size;
	struct dwr_rw_frame_out *out;
};

/* ---- pieces.c ---- */

/* Finds the pieces of each FDE and the CIEs that are still needed. */
struct elfrw_err *dwr_frame_plan_fdes(struct dwr_frame_rewriter *rw);

/* ---- thunks.c ---- */

/* The records for the run of thunks, without addresses and the CIE pointer.  arch->entry_cfi
 * assumes these factors: code 1, data minus the address size. */
struct elfrw_err *dwr_frame_plan_thunks(struct dwr_frame_rewriter *rw);

struct elfrw_err *dwr_frame_write_thunks(const struct dwr_frame_rewriter *rw);

/* ---- hdr.c ---- */

/* .eh_frame_hdr (LSB Core 5.0): version 1, three encodings, pointer to .eh_frame, count, table of
 * (address, FDE) relative to the section.  There is one entry for each address: a look-up cannot
 * distinguish two. */
struct elfrw_err *dwr_frame_write_hdr(const struct dwr_frame_rewriter *rw);

/* ---- frame.c ---- */

/* The CIE pointer of the record at OFF (header of 4, or 12 bytes). */
struct elfrw_err *dwr_frame_write_cie_pointer(const struct dwr_frame_rewriter *rw, uint64_t off,
					      uint64_t cie_off, uint8_t offset_size);
#endif
