/* thunks.c: the records for the run of thunks. */
#include "dwarf/rewrite/unwind/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/wbuf.h"
#include <string.h>

/* Can the thunks' FDE use this CIE? */
static bool entry_cie(const struct dwr_frame_rewriter *rw, const struct dwr_cie *cie)
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

/* Sets a record's length field once it is padded to a multiple of the address size, as assemblers
 * do. */
static void finish_record(struct elfrw_wbuf *w, size_t start, unsigned align)
{
	while ((w->len - start) % align)
		elfrw_wbuf_u8(w, 0);
	if (!w->bad)
		elfrw_put32(w->data + start, (uint32_t)(w->len - start - 4));
}

/* Does any thunk stand for a function that had an FDE?  If nothing could be unwound before, no FDE
 * is needed. */
static bool thunks_had_fde(const struct dwr_frame_rewriter *rw)
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

struct elfrw_err *dwr_frame_plan_thunks(struct dwr_frame_rewriter *rw)
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

struct elfrw_err *dwr_frame_write_thunks(const struct dwr_frame_rewriter *rw)
{
	const struct elfrw_addrmap *map = rw->in->map;
	uint64_t off = rw->thunk_off, cie_off = off;
	if (!rw->thunks)
		return NULL;
	memcpy(rw->out->data + off, rw->thunk_record, rw->thunk_cie_size + rw->thunk_fde_size);
	if (rw->thunk_cie != UINT32_MAX)
		cie_off = rw->cie_off[rw->thunk_cie];
	off += rw->thunk_cie_size;
	ELFRW_TRY(dwr_frame_write_cie_pointer(rw, off, cie_off, 4));
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
