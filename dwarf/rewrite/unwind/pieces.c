/* pieces.c: the new places of each FDE's code; see frame.c. */
#include "dwarf/rewrite/unwind/state.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/search.h"

bool dwr_rw_moved(const struct dwr_rw_moves *moves, uint64_t old, uint64_t *ret)
{
	size_t lo = LOWER_BOUND(0, moves->n, mid, moves->move[mid].old_end <= old);
	if (lo == moves->n || old < moves->move[lo].old || moves->move[lo].new == DWR_RW_GONE)
		return false;
	*ret = moves->move[lo].new + (old - moves->move[lo].old);
	return true;
}

/* Calls for the runs of [BEGIN, END) that exist in the output, in order.  Outside of the executable
 * sections nothing moves.  An empty range yields one empty run if the byte there lives.  OUT NULL:
 * stops at the first run.  Returns false when out of memory; *ANY: there was a run. */
static bool find_pieces(const struct elfrw_addrmap *map, uint64_t begin, uint64_t end,
			bool keep_folded, dwr_frame_pieces *out, bool *any)
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
			struct dwr_frame_piece *p = out ? VEC_PUSH(out) : NULL;
			*any = true;
			if (!p)
				return !out;
			*p = (struct dwr_frame_piece){ va, end > begin ? stop : va, va };
			va = stop;
			continue;
		}
		for (; va < stop && u < map->n_units && map->unit[u].old < stop; u++) {
			const struct elfrw_addrmap_unit *unit = &map->unit[u];
			uint64_t from = unit->old > va ? unit->old : va,
				 to = unit->old_end < stop ? unit->old_end : stop;
			if (from < to && (keep_folded || !(unit->flags & ELFRW_UNIT_FOLDED))) {
				struct dwr_frame_piece *p = out ? VEC_PUSH(out) : NULL;
				*any = true;
				if (!p)
					return !out;
				*p = (struct dwr_frame_piece){ from, end > begin ? to : from,
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

/* It never had an address: the linker discarded its section. */
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

/* Replaces the pieces from FIRST on by the ranges of the output's FDEs. */
static struct elfrw_err *join_pieces(struct dwr_frame_rewriter *rw, const struct dwr_fde *fde,
				     uint32_t first)
{
	struct dwr_frame_piece *p = rw->pieces.data + first;
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
						p[i].old; /* from here on only its length counts */
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

struct elfrw_err *dwr_frame_plan_fdes(struct dwr_frame_rewriter *rw)
{
	const struct dwr_cfi *cfi = rw->cfi;
	/* Each unit and each section belongs to one FDE; a larger number means endlessly
	 * overlapping FDEs. */
	size_t budget = 2 * cfi->fde.len +
			4 * ((size_t)rw->in->map->n_units + rw->in->map->n_sections) + 64;
	for (uint32_t i = 0; i < cfi->fde.len; i++) {
		const struct dwr_fde *fde = &cfi->fde.data[i];
		struct dwr_fde_plan *plan = &rw->fde[i];
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
