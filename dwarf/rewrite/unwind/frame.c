/* frame.c: .eh_frame, .eh_frame_hdr and .debug_frame for the output.
 *
 * Records are copied as a whole.  Their fields (CIE pointer, address, range, LSDA, personality,
 * addresses in instructions) are encoded again for the new place with their old encodings, so every
 * field keeps its width and a record's layout never changes.  The first pass finds the new places
 * of each FDE's code (pieces), the CIEs that are still needed, and the places of the records.  The
 * second pass writes them.  An FDE's range is mapped piece by piece, because one FDE may cover
 * several units (.plt, hand-written code) that may move apart.  Cost: linear, plus one sort for the
 * look-up table. */
#include "dwarf/rewrite/unwind/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/rbuf.h"
#include <stdlib.h>
#include <string.h>

enum { REC_CIE, REC_FDE, REC_TERMINATOR, REC_END };

/* Walks CIEs, FDEs and terminators in section order. */
struct cursor {
	size_t cie, fde, terminator;
};

static int next_in_order(const struct dwr_cfi *cfi, struct cursor *c, size_t *index)
{
	uint64_t cie = c->cie < cfi->cie.len ? cfi->cie.data[c->cie].off : UINT64_MAX;
	uint64_t fde = c->fde < cfi->fde.len ? cfi->fde.data[c->fde].off : UINT64_MAX;
	uint64_t end = c->terminator < cfi->terminator.len ? cfi->terminator.data[c->terminator]
							   : UINT64_MAX;
	if (cie < fde && cie < end) {
		*index = c->cie++;
		return REC_CIE;
	}
	if (fde < end) {
		*index = c->fde++;
		return REC_FDE;
	}
	if (end == UINT64_MAX)
		return REC_END;
	*index = c->terminator++;
	return REC_TERMINATOR;
}

/* Gives every record its new offset. */
static struct elfrw_err *place_records(struct dwr_frame_rewriter *rw)
{
	const struct dwr_cfi *cfi = rw->cfi;
	size_t n = cfi->cie.len + cfi->fde.len + cfi->terminator.len;
	struct dwr_rw_move *move = malloc((n + 1) * sizeof *move);
	if (!move)
		return &elfrw_err_nomem;
	rw->out->moves.move = move;
	uint64_t pos = 0;
	bool thunks_placed = !rw->thunks;
	/* The thunks come last, but in front of the terminators that end the section. */
	size_t records = cfi->cie.len + cfi->fde.len, seen = 0;
	struct cursor c = { 0 };
	size_t index;
	for (int kind; (kind = next_in_order(cfi, &c, &index)) != REC_END; move++) {
		if (seen == records && !thunks_placed) {
			rw->thunk_off = pos;
			pos += rw->thunk_cie_size + rw->thunk_fde_size;
			thunks_placed = true;
		}
		uint64_t size = 0;
		move->new = pos;
		if (kind == REC_CIE) {
			const struct dwr_cie *cie = &cfi->cie.data[index];
			move->old = cie->off;
			move->old_end = cie->off + cie->size;
			size = rw->cie_live[index] ? cie->size : 0;
			rw->cie_off[index] = size ? pos : DWR_RW_GONE;
			seen++;
		} else if (kind == REC_FDE) {
			const struct dwr_fde *fde = &cfi->fde.data[index];
			move->old = fde->off;
			move->old_end = fde->off + fde->size;
			size = (uint64_t)fde->size * rw->fde[index].n;
			rw->fde[index].new_off = pos;
			seen++;
		} else {
			move->old = cfi->terminator.data[index];
			size = cfi->size - move->old < 4 ? cfi->size - move->old : 4;
			move->old_end = move->old + size;
		}
		if (!size)
			move->new = DWR_RW_GONE;
		pos += size;
	}
	if (!thunks_placed) {
		rw->thunk_off = pos;
		pos += rw->thunk_cie_size + rw->thunk_fde_size;
	}
	*move = (struct dwr_rw_move){ cfi->size, cfi->size + 1, pos };
	rw->out->moves.n = n + 1;
	rw->size = (size_t)pos;
	return NULL;
}

/* Encodes the addresses inside of the instructions of a record again, now at OFF. */
static struct elfrw_err *fix_instructions(const struct dwr_frame_rewriter *rw,
					  const struct dwr_cie *cie, const uint8_t *insn,
					  uint32_t insn_size, uint64_t old_off, uint64_t off)
{
	struct dwr_cfa_address address[32];
	struct dwr_cfa_walk walk = { .address = address, .max = 32 };
	uint64_t insn_off = (uint64_t)(insn - rw->cfi->data);
	long n = dwr_cfa_walk(cie, insn, insn_size, &walk);
	if (n < 0 || n > 32)
		return elfrw_error_at(rw->cfi->name, insn_off,
				      "too many addresses in frame instructions");
	for (long i = 0; i < n; i++) {
		uint64_t old_at = insn_off + address[i].off, at = off + (old_at - old_off), raw,
			 value;
		struct elfrw_rbuf r = elfrw_rbuf(insn + address[i].off, insn_size - address[i].off);
		if (address[i].indexed || !dwr_pe_read(&r, address[i].encoding, cie->address_size,
						       rw->cfi->va + old_at, &raw, &value))
			return elfrw_error_at(rw->cfi->name, old_at,
					      "frame instructions with an unusable address");
		elfrw_addrmap_point(rw->in->map, value, &value);
		if (!dwr_pe_write(rw->out->data + at, address[i].encoding, cie->address_size,
				  rw->in->va + at, value))
			return elfrw_error_at(rw->cfi->name, old_at,
					      "address 0x%llx does not fit its field",
					      (unsigned long long)value);
	}
	return NULL;
}

static struct elfrw_err *write_cie(const struct dwr_frame_rewriter *rw, uint32_t index)
{
	const struct dwr_cie *cie = &rw->cfi->cie.data[index];
	uint64_t off = rw->cie_off[index], va = cie->personality;
	if (off == DWR_RW_GONE)
		return NULL;
	uint8_t *p = rw->out->data + off;
	memcpy(p, rw->cfi->data + cie->off, cie->size);
	/* The slot of an indirect pointer is data, which stays. */
	if (va && !cie->personality_indirect && !elfrw_addrmap_pointer(rw->in->map, va, &va))
		return elfrw_error_at(rw->cfi->name, cie->off,
				      "the personality routine 0x%llx is no function",
				      (unsigned long long)cie->personality);
	if (va && (va != cie->personality || rw->in->va + off != rw->cfi->va + cie->off) &&
	    !dwr_pe_write(p + cie->personality_off, cie->personality_encoding, cie->address_size,
			  rw->in->va + off + cie->personality_off, va))
		return elfrw_error_at(rw->cfi->name, cie->off,
				      "the personality routine's address does not fit");
	if (cie->cfa_flags & DWR_CFA_HAS_ADDRESS)
		return fix_instructions(rw, cie, cie->insn, cie->insn_size, cie->off, off);
	return NULL;
}

struct elfrw_err *dwr_frame_write_cie_pointer(const struct dwr_frame_rewriter *rw, uint64_t off,
					      uint64_t cie_off, uint8_t offset_size)
{
	uint64_t at = off + (offset_size == 8 ? 12 : 4),
		 v = rw->cfi->is_eh ? at - cie_off : cie_off;
	if (offset_size == 4 && v > UINT32_MAX && !(rw->cfi->is_eh && v >= (uint64_t)INT32_MIN))
		return elfrw_error_at(rw->cfi->name, off, "CIE too far from its FDE");
	elfrw_put_le(rw->out->data + at, v, offset_size);
	return NULL;
}

/* The new place of an FDE's LSDA. */
static bool new_lsda(const struct dwr_rw_moves *moves, uint64_t lsda, uint64_t *ret)
{
	*ret = lsda;
	if (!moves || !moves->n || lsda < moves->move[0].old ||
	    lsda >= moves->move[moves->n - 1].old_end)
		return true;
	return dwr_rw_moved(moves, lsda, ret);
}

static struct elfrw_err *write_fde(const struct dwr_frame_rewriter *rw, uint32_t index)
{
	const struct dwr_cfi *cfi = rw->cfi;
	const struct dwr_fde *fde = &cfi->fde.data[index];
	const struct dwr_cie *cie = &cfi->cie.data[fde->cie];
	const struct dwr_fde_plan *plan = &rw->fde[index];
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct dwr_frame_piece *piece = &rw->pieces.data[plan->first + i];
		uint64_t off = plan->new_off + (uint64_t)i * fde->size, va = rw->in->va + off;
		uint8_t *p = rw->out->data + off;
		memcpy(p, cfi->data + fde->off, fde->size);
		ELFRW_TRY(dwr_frame_write_cie_pointer(rw, off, rw->cie_off[fde->cie],
						      fde->pc_off == 20 ? 8 : 4));
		if (!dwr_pe_write(p + fde->pc_off, cie->fde_encoding, cie->address_size,
				  va + fde->pc_off, piece->new) ||
		    !dwr_pe_write(p + fde->pc_off + fde->pc_size, cie->fde_encoding & 0x07,
				  cie->address_size, 0, piece->old_end - piece->old))
			return elfrw_error_at(cfi->name, fde->off,
					      "the new address 0x%llx does not fit its FDE",
					      (unsigned long long)piece->new);
		if (fde->lsda) {
			uint64_t lsda;
			if (!new_lsda(rw->in->lsda, fde->lsda, &lsda))
				return elfrw_error_at(cfi->name, fde->off,
						      "the LSDA at 0x%llx has no place",
						      (unsigned long long)fde->lsda);
			if (!dwr_pe_write(p + fde->lsda_off, cie->lsda_encoding, cie->address_size,
					  va + fde->lsda_off, lsda))
				return elfrw_error_at(cfi->name, fde->off,
						      "the LSDA's address does not fit its FDE");
		}
		if (fde->cfa_flags & DWR_CFA_HAS_ADDRESS)
			ELFRW_TRY(fix_instructions(rw, cie, fde->insn, fde->insn_size, fde->off,
						   off));
	}
	return NULL;
}

static struct elfrw_err *rewrite(struct dwr_frame_rewriter *rw)
{
	const struct dwr_cfi *cfi = rw->cfi;
	rw->fde = calloc(cfi->fde.len + 1, sizeof *rw->fde);
	rw->cie_off = calloc(cfi->cie.len + 1, sizeof *rw->cie_off);
	rw->cie_live = calloc(cfi->cie.len + 1, sizeof *rw->cie_live);
	if (!rw->fde || !rw->cie_off || !rw->cie_live ||
	    !VEC_RESERVE(&rw->pieces, cfi->fde.len + 1))
		return &elfrw_err_nomem;
	ELFRW_TRY(dwr_frame_plan_fdes(rw));
	ELFRW_TRY(dwr_frame_plan_thunks(rw));
	ELFRW_TRY(place_records(rw));
	/* Zero: what is left are the terminators. */
	rw->out->data = calloc(rw->size + 1, 1);
	rw->out->size = rw->size;
	if (!rw->out->data)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < cfi->cie.len; i++)
		ELFRW_TRY(write_cie(rw, i));
	for (uint32_t i = 0; i < cfi->fde.len; i++)
		ELFRW_TRY(write_fde(rw, i));
	ELFRW_TRY(dwr_frame_write_thunks(rw));
	return cfi->is_eh ? dwr_frame_write_hdr(rw) : NULL;
}

static struct elfrw_err *run(const struct dwr_rw_frame_in *in, struct dwr_rw_frame_out *out)
{
	struct dwr_rw_frame_out result = { 0 };
	struct dwr_frame_rewriter rw = { .in = in, .cfi = in->cfi, .out = &result };
	struct elfrw_err *err = rewrite(&rw);
	VEC_FREE(&rw.pieces);
	free(rw.fde);
	free(rw.cie_off);
	free(rw.cie_live);
	if (err)
		dwr_rw_frame_deinit(&result);
	else
		*out = result;
	return err;
}

struct elfrw_err *dwr_rw_eh_frame(const struct dwr_rw_frame_in *in, struct dwr_rw_frame_out *out)
{
	return run(in, out);
}

struct elfrw_err *dwr_rw_debug_frame(const struct dwr_rw_frame_in *in, struct dwr_rw_frame_out *out)
{
	struct dwr_rw_frame_in frame = *in;
	frame.va = 0;
	frame.hdr = NULL;
	return run(&frame, out);
}

void dwr_rw_frame_deinit(struct dwr_rw_frame_out *out)
{
	free(out->data);
	free(out->hdr);
	free(out->moves.move);
	*out = (struct dwr_rw_frame_out){ 0 };
}
