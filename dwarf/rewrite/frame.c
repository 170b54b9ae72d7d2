/* frame.c: .eh_frame, .eh_frame_hdr and .debug_frame for the output.
 *
 * Records are copied whole and their fields (CIE pointer, address, range, LSDA, personality,
 * addresses inside of instructions) are encoded again for the new place with the encodings they
 * had, so everything keeps its width and a record's layout never changes.  First pass: where does
 * the code of each FDE go (pieces), which CIEs are still needed, and where do the records go;
 * second pass: write them.  An FDE's range is mapped piece by piece, because one FDE may cover
 * several units (.plt, hand-written code) that need not move together. Cost: linear, plus one sort
 * for the look-up table. */
#include "dwarf/rewrite/frame.h"
#include "dwarf/cfi.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/wbuf.h"
#include <stdlib.h>
#include <string.h>

bool dwr_rw_moved(const struct dwr_rw_moves *moves, uint64_t old, uint64_t *ret)
{
	size_t lo = LOWER_BOUND(0, moves->n, mid, moves->move[mid].old_end <= old);
	if (lo == moves->n || old < moves->move[lo].old || moves->move[lo].new == DWR_RW_GONE)
		return false;
	*ret = moves->move[lo].new + (old - moves->move[lo].old);
	return true;
}

/* A run of an FDE's old range that has a place in the output. */
struct piece {
	uint64_t old, old_end, new;
};

typedef VEC(struct piece) pieces;

/* Calls for the runs of [BEGIN, END) that exist in the output, in order.  Outside of the executable
 * sections nothing moves.  An empty range yields one empty run if the byte there lives.  OUT NULL:
 * stops at the first run.  Returns false when out of memory; *ANY: there was a run. */
static bool find_pieces(const struct elfrw_addrmap *map, uint64_t begin, uint64_t end,
			bool keep_folded, pieces *out, bool *any)
{
	uint64_t va = begin, last = end > begin ? end : begin + 1;
	uint32_t u = elfrw_addrmap_after(map, begin);
	*any = false;
	while (va < last) {
		/* In a section, or up to the next one? */
		const struct elfrw_addrmap_section *sec = NULL;
		uint64_t stop = last;
		size_t i = LOWER_BOUND(0, map->n_sections, mid, map->section[mid].old_end <= va);
		if (i < map->n_sections && va >= map->section[i].old)
			sec = &map->section[i++];
		if (i < map->n_sections && map->section[i].old > va && map->section[i].old < stop)
			stop = map->section[i].old;
		if (sec && sec->old_end < stop)
			stop = sec->old_end;
		if (!sec) {
			struct piece *p = out ? VEC_PUSH(out) : NULL;
			*any = true;
			if (!p)
				return !out;
			*p = (struct piece){ va, end > begin ? stop : va, va };
			va = stop;
			continue;
		}
		for (; va < stop && u < map->n_units && map->unit[u].old < stop; u++) {
			const struct elfrw_addrmap_unit *unit = &map->unit[u];
			uint64_t from = unit->old > va ? unit->old : va,
				 to = unit->old_end < stop ? unit->old_end : stop;
			if (from < to && (keep_folded || !(unit->flags & ELFRW_UNIT_FOLDED))) {
				struct piece *p = out ? VEC_PUSH(out) : NULL;
				*any = true;
				if (!p)
					return !out;
				*p = (struct piece){ from, end > begin ? to : from,
						     unit->body + (from - unit->old) };
			}
			va = to;
			if (unit->old_end > stop)
				break;
		}
		va = stop;
	}
	return true;
}

/* Never had an address: the linker threw its section away. */
static bool tombstone(const struct dwr_cfi *cfi, const struct dwr_fde *fde,
		      const struct elfrw_addrmap *map)
{
	if (!fde->pc_begin || fde->pc_begin >= UINT64_MAX - 1)
		return true;
	return !cfi->is_eh && map->n_sections && !elfrw_addrmap_covers(map, fde->pc_begin);
}

bool dwr_rw_fde_gone(const struct dwr_cfi *cfi, uint32_t fde, const struct elfrw_addrmap *map)
{
	const struct dwr_fde *f = &cfi->fde.data[fde];
	bool any;
	if (tombstone(cfi, f, map))
		return true;
	find_pieces(map, f->pc_begin, f->pc_end, false, NULL, &any);
	return !any;
}

/* What becomes of one FDE: pieces [first, first + n) of `pieces`, one record each. */
struct fde_plan {
	uint32_t first, n;
	uint64_t new_off; /* of the first record */
};

struct rewriter {
	const struct dwr_rw_frame_in *in;
	const struct dwr_cfi *cfi;
	pieces pieces;
	struct fde_plan *fde; /* by FDE */
	uint64_t *cie_off;    /* by CIE, DWR_RW_GONE: dropped */
	bool *cie_live;
	size_t size;        /* of the new section */
	uint32_t thunk_cie; /* index of the CIE for the thunks, UINT32_MAX: a new one */
	bool thunks;
	uint64_t thunk_off; /* of the records for the thunks */
	uint8_t thunk_record[128];
	size_t thunk_cie_size, thunk_fde_size;
	struct dwr_rw_frame_out *out;
};

/* Replaces the pieces from FIRST on by the ranges that the output's FDEs get. */
static struct elfrw_err *join_pieces(struct rewriter *rw, const struct dwr_fde *fde, uint32_t first)
{
	struct piece *p = rw->pieces.data + first;
	size_t n = rw->pieces.len - first;
	uint8_t flags = fde->cfa_flags | rw->cfi->cie.data[fde->cie].cfa_flags;
	if (!n)
		return NULL;
	bool together = true;
	for (size_t i = 1; i < n; i++)
		together = together && p[i].new - p[i].old == p[0].new - p[0].old;
	if (together) {
		p[0].old_end = p[n - 1].old_end;
		n = 1;
	} else if (!(flags & DWR_CFA_ADVANCES)) {
		size_t k = 0;
		for (size_t i = 1; i < n; i++) {
			if (p[i].new == p[k].new + (p[k].old_end - p[k].old))
				p[k].old_end += p[i].old_end -
						p[i].old; /* only its length counts from here on */
			else
				p[++k] = p[i];
		}
		n = k + 1;
	}
	rw->pieces.len = first + n;
	/* Rows count from pc_begin, and so do an LSDA's call sites. */
	if (((flags & DWR_CFA_ADVANCES) || fde->lsda) && (n > 1 || p[0].old != fde->pc_begin))
		return elfrw_error_at(
			rw->cfi->name, fde->off,
			"the code of one FDE with several rows or an LSDA (0x%llx) moved apart",
			(unsigned long long)fde->pc_begin);
	for (size_t i = 0; i < n && (flags & DWR_CFA_USES_PC); i++)
		if ((p[i].new - p[i].old) % 16)
			return elfrw_error_at(
				rw->cfi->name, fde->off,
				"the code at 0x%llx has unwind rules that depend on its alignment",
				(unsigned long long)p[i].old);
	return NULL;
}

static struct elfrw_err *plan_fdes(struct rewriter *rw)
{
	const struct dwr_cfi *cfi = rw->cfi;
	/* Each unit and each section belongs to one FDE; more means that FDEs overlap without
	 * end. */
	size_t budget = 2 * cfi->fde.len +
			4 * ((size_t)rw->in->map->n_units + rw->in->map->n_sections) + 64;
	for (uint32_t i = 0; i < cfi->fde.len; i++) {
		const struct dwr_fde *fde = &cfi->fde.data[i];
		struct fde_plan *plan = &rw->fde[i];
		bool any;
		plan->first = (uint32_t)rw->pieces.len;
		if (!tombstone(cfi, fde, rw->in->map)) {
			if (!find_pieces(rw->in->map, fde->pc_begin, fde->pc_end,
					 rw->in->keep_folded, &rw->pieces, &any))
				return &elfrw_err_nomem;
			if (rw->pieces.len - plan->first > budget)
				return elfrw_error_at(cfi->name, fde->off, "overlapping FDEs");
			budget -= rw->pieces.len - plan->first;
			ELFRW_TRY(join_pieces(rw, fde, plan->first));
		}
		plan->n = (uint32_t)rw->pieces.len - plan->first;
		if (plan->n)
			rw->cie_live[fde->cie] = true;
		rw->out->n_fdes += plan->n;
		rw->out->n_dropped += !plan->n;
		rw->out->n_split += plan->n > 1;
	}
	return NULL;
}

/* Can the thunks' FDE use this CIE? */
static bool entry_cie(const struct rewriter *rw, const struct dwr_cie *cie)
{
	const struct elfrw_arch *arch = rw->in->arch;
	bool form = rw->cfi->is_eh ? !strcmp(cie->augmentation, "zR") &&
					     cie->fde_encoding == (DWR_PE_PCREL | DWR_PE_SDATA4)
				   : !*cie->augmentation && cie->offset_size == 4;
	return form && cie->address_size == arch->address_size &&
	       cie->data_align == -(int64_t)arch->address_size && cie->ra == arch->dwarf_ra &&
	       cie->insn_size == arch->entry_cfi_size &&
	       !memcmp(cie->insn, arch->entry_cfi, cie->insn_size);
}

/* Fixes a record's length field once it is padded: a multiple of the address size, as assemblers
 * do. */
static void finish_record(struct elfrw_wbuf *w, size_t start, unsigned align)
{
	while ((w->len - start) % align)
		elfrw_wbuf_u8(w, 0);
	if (!w->bad)
		elfrw_put32(w->data + start, (uint32_t)(w->len - start - 4));
}

/* Does any thunk stand for a function that had an FDE?  What could not be unwound before needs
 * none. */
static bool thunks_had_fde(const struct rewriter *rw)
{
	const struct elfrw_addrmap *map = rw->in->map;
	const struct dwr_cfi *cfi = rw->cfi;
	uint64_t end = 0; /* of the FDEs that begin before */
	size_t f = 0;
	for (uint32_t i = 0; i < map->n_units; i++) {
		for (;
		     f < cfi->fde.len && cfi->fde.data[cfi->by_pc[f]].pc_begin <= map->unit[i].old;
		     f++)
			if (cfi->fde.data[cfi->by_pc[f]].pc_end > end)
				end = cfi->fde.data[cfi->by_pc[f]].pc_end;
		if ((map->unit[i].flags & ELFRW_UNIT_THUNK) && end > map->unit[i].old)
			return true;
	}
	return false;
}

/* The records for the run of thunks, but for addresses and the CIE pointer.  The factors that
 * arch->entry_cfi is written for: code 1, data minus the address size. */
static struct elfrw_err *plan_thunks(struct rewriter *rw)
{
	const struct elfrw_arch *arch = rw->in->arch;
	const struct elfrw_addrmap *map = rw->in->map;
	if (rw->in->no_thunks || map->thunks_end <= map->thunks || !thunks_had_fde(rw))
		return NULL;
	rw->thunks = true;
	rw->out->n_fdes++;
	rw->thunk_cie = UINT32_MAX;
	for (uint32_t i = 0; i < rw->cfi->cie.len; i++)
		if (entry_cie(rw, &rw->cfi->cie.data[i]) &&
		    (rw->thunk_cie == UINT32_MAX || rw->cie_live[i])) {
			rw->thunk_cie = i;
			if (rw->cie_live[i])
				break;
		}
	struct elfrw_wbuf w = { 0 };
	if (rw->thunk_cie != UINT32_MAX) {
		rw->cie_live[rw->thunk_cie] = true;
	} else {
		elfrw_wbuf_u32(&w, 0);
		elfrw_wbuf_u32(&w, rw->cfi->is_eh ? 0 : UINT32_MAX);
		elfrw_wbuf_u8(&w, rw->cfi->is_eh ? 1 : 3);
		elfrw_wbuf_cstr(&w, rw->cfi->is_eh ? "zR" : "");
		elfrw_wbuf_uleb(&w, 1);
		elfrw_wbuf_sleb(&w, -(int64_t)arch->address_size);
		elfrw_wbuf_u8(&w, arch->dwarf_ra);
		if (rw->cfi->is_eh) {
			elfrw_wbuf_uleb(&w, 1);
			elfrw_wbuf_u8(&w, DWR_PE_PCREL | DWR_PE_SDATA4);
		}
		elfrw_wbuf_bytes(&w, arch->entry_cfi, arch->entry_cfi_size);
		finish_record(&w, 0, arch->address_size);
	}
	rw->thunk_cie_size = w.len;
	elfrw_wbuf_u32(&w, 0);
	elfrw_wbuf_u32(&w, 0);
	elfrw_wbuf_uint(&w, 0, rw->cfi->is_eh ? 4 : arch->address_size);
	elfrw_wbuf_uint(&w, 0, rw->cfi->is_eh ? 4 : arch->address_size);
	if (rw->cfi->is_eh)
		elfrw_wbuf_u8(&w, 0);
	finish_record(&w, rw->thunk_cie_size, arch->address_size);
	rw->thunk_fde_size = w.len - rw->thunk_cie_size;
	bool bad = w.bad || w.len > sizeof rw->thunk_record;
	if (!bad)
		memcpy(rw->thunk_record, w.data, w.len);
	elfrw_wbuf_free(&w);
	return bad ? &elfrw_err_nomem : NULL;
}

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
static struct elfrw_err *place_records(struct rewriter *rw)
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
static struct elfrw_err *fix_instructions(const struct rewriter *rw, const struct dwr_cie *cie,
					  const uint8_t *insn, uint32_t insn_size, uint64_t old_off,
					  uint64_t off)
{
	struct dwr_cfa_address address[32];
	uint8_t flags;
	size_t length;
	uint64_t insn_off = (uint64_t)(insn - rw->cfi->data);
	long n = dwr_cfa_walk(cie, insn, insn_size, &flags, &length, address, 32);
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

static struct elfrw_err *write_cie(const struct rewriter *rw, uint32_t index)
{
	const struct dwr_cie *cie = &rw->cfi->cie.data[index];
	uint64_t off = rw->cie_off[index], va = cie->personality;
	if (off == DWR_RW_GONE)
		return NULL;
	uint8_t *p = rw->out->data + off;
	memcpy(p, rw->cfi->data + cie->off, cie->size);
	/* The slot of an indirect one is data, which stays. */
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

/* The CIE pointer of the record at OFF (header of 4, or 12 bytes). */
static struct elfrw_err *write_cie_pointer(const struct rewriter *rw, uint64_t off,
					   uint64_t cie_off, uint8_t offset_size)
{
	uint64_t at = off + (offset_size == 8 ? 12 : 4),
		 v = rw->cfi->is_eh ? at - cie_off : cie_off;
	if (offset_size == 4 && v > UINT32_MAX && !(rw->cfi->is_eh && v >= (uint64_t)INT32_MIN))
		return elfrw_error_at(rw->cfi->name, off, "CIE too far from its FDE");
	elfrw_put_le(rw->out->data + at, v, offset_size);
	return NULL;
}

/* Where an FDE's LSDA is now. */
static bool new_lsda(const struct dwr_rw_moves *moves, uint64_t lsda, uint64_t *ret)
{
	*ret = lsda;
	if (!moves || !moves->n || lsda < moves->move[0].old ||
	    lsda >= moves->move[moves->n - 1].old_end)
		return true;
	return dwr_rw_moved(moves, lsda, ret);
}

static struct elfrw_err *write_fde(const struct rewriter *rw, uint32_t index)
{
	const struct dwr_cfi *cfi = rw->cfi;
	const struct dwr_fde *fde = &cfi->fde.data[index];
	const struct dwr_cie *cie = &cfi->cie.data[fde->cie];
	const struct fde_plan *plan = &rw->fde[index];
	for (uint32_t i = 0; i < plan->n; i++) {
		const struct piece *piece = &rw->pieces.data[plan->first + i];
		uint64_t off = plan->new_off + (uint64_t)i * fde->size, va = rw->in->va + off;
		uint8_t *p = rw->out->data + off;
		memcpy(p, cfi->data + fde->off, fde->size);
		ELFRW_TRY(write_cie_pointer(rw, off, rw->cie_off[fde->cie],
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

static struct elfrw_err *write_thunks(const struct rewriter *rw)
{
	const struct elfrw_addrmap *map = rw->in->map;
	uint64_t off = rw->thunk_off, cie_off = off;
	if (!rw->thunks)
		return NULL;
	memcpy(rw->out->data + off, rw->thunk_record, rw->thunk_cie_size + rw->thunk_fde_size);
	if (rw->thunk_cie != UINT32_MAX)
		cie_off = rw->cie_off[rw->thunk_cie];
	off += rw->thunk_cie_size;
	ELFRW_TRY(write_cie_pointer(rw, off, cie_off, 4));
	uint8_t encoding = rw->cfi->is_eh ? DWR_PE_PCREL | DWR_PE_SDATA4 : DWR_PE_ABSPTR;
	uint8_t size = rw->in->arch->address_size, width = rw->cfi->is_eh ? 4 : size;
	if (!dwr_pe_write(rw->out->data + off + 8, encoding, size, rw->in->va + off + 8,
			  map->thunks) ||
	    !dwr_pe_write(rw->out->data + off + 8 + width, encoding & 0x07, size, 0,
			  map->thunks_end - map->thunks))
		return elfrw_error_at(rw->cfi->name, 0,
				      "the thunks' address 0x%llx does not fit an FDE",
				      (unsigned long long)map->thunks);
	return NULL;
}

struct entry {
	uint64_t pc, off;
	bool empty;
};

/* By address, an empty range behind a full one, then by place. */
static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	if (x->pc != y->pc)
		return x->pc < y->pc ? -1 : 1;
	if (x->empty != y->empty)
		return x->empty ? 1 : -1;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* .eh_frame_hdr (LSB Core 5.0): version 1, three encodings, pointer to .eh_frame, count, table of
 * (address, FDE) relative to the section.  One entry per address: a look-up cannot tell two
 * apart. */
static struct elfrw_err *write_hdr(const struct rewriter *rw)
{
	const struct dwr_rw_frame_in *in = rw->in;
	const uint8_t *old = in->hdr;
	static const char name[] = ".eh_frame_hdr";
	if (!old)
		return NULL;
	if (in->hdr_size < 8 || old[0] != 1 || old[1] != (DWR_PE_PCREL | DWR_PE_SDATA4))
		return elfrw_error_at(name, 0, "unknown version or pointer encoding");
	bool table = old[2] != DWR_PE_OMIT && old[3] != DWR_PE_OMIT;
	if (table && (old[2] != DWR_PE_UDATA4 || old[3] != (DWR_PE_DATAREL | DWR_PE_SDATA4)))
		return elfrw_error_at(name, 0, "unknown table encodings 0x%x and 0x%x", old[2],
				      old[3]);
	size_t n = 0, max = table ? rw->pieces.len + 1 : 0;
	struct entry *entry = malloc((max + 1) * sizeof *entry);
	uint8_t *hdr = rw->out->hdr = malloc(12 + max * 8);
	if (!entry || !hdr) {
		free(entry);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; table && i < rw->cfi->fde.len; i++)
		for (uint32_t k = 0; k < rw->fde[i].n; k++) {
			const struct piece *p = &rw->pieces.data[rw->fde[i].first + k];
			entry[n++] =
				(struct entry){ p->new,
						rw->fde[i].new_off +
							(uint64_t)k * rw->cfi->fde.data[i].size,
						p->old == p->old_end };
		}
	if (table && rw->thunks)
		entry[n++] = (struct entry){ in->map->thunks, rw->thunk_off + rw->thunk_cie_size,
					     false };
	bool sorted = true;
	for (size_t i = 1; i < n && sorted; i++)
		sorted = compare_entries(&entry[i - 1], &entry[i]) < 0;
	if (!sorted)
		qsort(entry, n, sizeof *entry, compare_entries);
	memcpy(hdr, old, 8);
	bool fits = dwr_pe_write(hdr + 4, old[1], 8, in->hdr_va + 4, in->va);
	size_t k = 0;
	for (size_t i = 0; i < n; i++) {
		if (i && entry[i].pc == entry[i - 1].pc)
			continue;
		uint64_t pc = entry[i].pc - in->hdr_va, at = in->va + entry[i].off - in->hdr_va;
		fits = fits && (int64_t)pc == (int32_t)pc && (int64_t)at == (int32_t)at;
		elfrw_put32(hdr + 12 + k * 8, (uint32_t)pc);
		elfrw_put32(hdr + 16 + k * 8, (uint32_t)at);
		k++;
	}
	free(entry);
	if (!fits || k > UINT32_MAX)
		return elfrw_error_at(name, 0, "an address does not fit the table");
	rw->out->hdr_size = 8;
	if (table) {
		elfrw_put32(hdr + 8, (uint32_t)k);
		rw->out->hdr_size = 12 + k * 8;
	}
	return NULL;
}

static struct elfrw_err *rewrite(struct rewriter *rw)
{
	const struct dwr_cfi *cfi = rw->cfi;
	rw->fde = calloc(cfi->fde.len + 1, sizeof *rw->fde);
	rw->cie_off = calloc(cfi->cie.len + 1, sizeof *rw->cie_off);
	rw->cie_live = calloc(cfi->cie.len + 1, sizeof *rw->cie_live);
	if (!rw->fde || !rw->cie_off || !rw->cie_live ||
	    !VEC_RESERVE(&rw->pieces, cfi->fde.len + 1))
		return &elfrw_err_nomem;
	ELFRW_TRY(plan_fdes(rw));
	ELFRW_TRY(plan_thunks(rw));
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
	ELFRW_TRY(write_thunks(rw));
	return cfi->is_eh ? write_hdr(rw) : NULL;
}

static struct elfrw_err *run(const struct dwr_rw_frame_in *in, struct dwr_rw_frame_out *out)
{
	struct dwr_rw_frame_out result = { 0 };
	struct rewriter rw = { .in = in, .cfi = in->cfi, .out = &result };
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
