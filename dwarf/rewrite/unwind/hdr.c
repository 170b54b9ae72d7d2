/* hdr.c: .eh_frame_hdr (LSB Core 5.0). */
#include "dwarf/rewrite/unwind/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/rbuf.h"
#include <stdlib.h>
#include <string.h>

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

struct elfrw_err *dwr_frame_write_hdr(const struct dwr_frame_rewriter *rw)
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
			const struct dwr_frame_piece *p = &rw->pieces.data[rw->fde[i].first + k];
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
