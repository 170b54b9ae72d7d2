/* overlay.c: what .debug_icfold keeps for the DIEs of functions that share their code: the places
 * of their entries, and the ranges in these. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/debug/overlay.h"
#include <stdlib.h>

static int overlay_order(const void *a, const void *b)
{
	const struct icf_voverlay *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Reads the whole overlay as a flat list. */
struct elfrw_err *icf_voverlay_read(struct icf_v *v, struct icf_voverlay **ret, size_t *n)
{
	VEC(struct icf_voverlay) list = { 0 };
	*ret = NULL;
	*n = 0;
	if (!v->claim.has_note)
		return NULL;
	struct dwr_icfold_walk w = dwr_icfold_overlay(&v->claim.note);
	for (;;) {
		struct dwr_icfold_entry e;
		struct dwr_note_range r;
		bool more;
		struct elfrw_err *err = dwr_icfold_overlay_next(&w, &e, &more);
		if (err) {
			icf_vlog_bad(&v->log, ICF_VC_OVERLAY,
				     "overlay: expected entries, found: %s", elfrw_err_text(err));
			elfrw_err_free(err);
			break;
		}
		if (!more)
			break;
		while (dwr_icfold_range_next(&e, &r)) {
			struct icf_voverlay *slot = VEC_PUSH(&list);
			if (!slot) {
				VEC_FREE(&list);
				return &elfrw_err_nomem;
			}
			*slot = (struct icf_voverlay){ e.die, r.unit, r.start, r.len };
		}
	}
	uint64_t last = 0;
	for (size_t i = 0; i < list.len; i++)
		last = list.data[i].die > last ? list.data[i].die : last;
	if (!elfrw_sort_numbers(list.data, list.len, sizeof *list.data, 0, last, overlay_order)) {
		VEC_FREE(&list);
		return &elfrw_err_nomem;
	}
	*ret = list.data;
	*n = list.len;
	return NULL;
}

static int owner_order(const void *a, const void *b)
{
	const struct icf_vowner *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

/* An overlay offset at which an entry begins that can be read on its own. */
struct start {
	uint64_t off, die;
};
typedef VEC(struct start) start_list;

/* Fills LIST, by offset.  Entries may be long, and many functions may refer to one, so each is read
 * once.  read_overlay reports broken ones. */
static struct elfrw_err *list_starts(const struct dwr_icfold *note, start_list *list)
{
	struct dwr_icfold_walk w = dwr_icfold_overlay(note);
	for (;;) {
		struct dwr_icfold_entry e;
		bool more;
		uint64_t off = (uint64_t)(w.r.pos - w.base) - note->overlay;
		struct elfrw_err *err = dwr_icfold_overlay_next(&w, &e, &more);
		elfrw_err_free(err);
		if (err || !more)
			return NULL;
		/* The others continue from the entry before. */
		if (!(note->data[note->overlay + off] & 1))
			continue;
		struct start *slot = VEC_PUSH(list);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct start){ off, e.die };
	}
}

static bool starts_at(const start_list *list, const struct dwr_icfold_die *d)
{
	size_t i = LOWER_BOUND(0, list->len, mid, list->data[mid].off < d->overlay);
	return i < list->len && list->data[i].off == d->overlay && list->data[i].die == d->die;
}

/* The note must name exactly the functions' DIEs of every member, and the starts of their parts of
 * the overlay. */
struct elfrw_err *icf_voverlay_owners(struct icf_v *v, struct icf_vowner *list, size_t n,
				      const struct icf_voverlay *overlay, size_t n_overlay)
{
	const struct dwr_icfold *note = &v->claim.note;
	char name[200];
	start_list starts = { 0 };
	struct elfrw_err *err = list_starts(note, &starts);
	if (err) {
		VEC_FREE(&starts);
		return err;
	}
	if (n)
		qsort(list, n, sizeof *list, owner_order);
	for (size_t i = 0, from = 0; i < note->n_members; i++) {
		const struct dwr_icfold_member *m = &note->member[i];
		size_t have = 0;
		/* Members are by group, the list by unit. */
		size_t lo = LOWER_BOUND(0, n, mid, list[mid].unit < m->unit);
		from = lo;
		while (from + have < n && list[from + have].unit == m->unit)
			have++;
		v->log.checked[ICF_VC_NOTE]++;
		bool same = have == m->n_dies;
		for (uint32_t k = 0; k < m->n_dies; k++) {
			const struct dwr_icfold_die *d = &note->dies[m->die + k];
			struct icf_vowner key = { m->unit, d->die };
			same &= have &&
				bsearch(&key, list + from, have, sizeof key, owner_order) != NULL;
			if (d->overlay == UINT64_MAX) {
				size_t i =
					LOWER_BOUND(0, n_overlay, mid, overlay[mid].die < d->die);
				if (i < n_overlay && overlay[i].die == d->die)
					icf_vlog_bad(
						&v->log, ICF_VC_OVERLAY,
						"overlay: of DIE 0x%llx: expected its entry, found none named",
						ICF_VX(d->die));
				continue;
			}
			if (!starts_at(&starts, d))
				icf_vlog_bad(
					&v->log, ICF_VC_OVERLAY,
					"overlay: of DIE 0x%llx: expected its entry at 0x%llx, found another",
					ICF_VX(d->die), ICF_VX(d->overlay));
		}
		if (!same)
			icf_vlog_bad(
				&v->log, ICF_VC_NOTE,
				"DIEs: of %s (0x%llx): expected the %zu that begin there, found %u%s",
				icf_v_where(&v->claim, v->claim.unit.data[m->unit].old, name),
				ICF_VX(v->claim.unit.data[m->unit].old), have, m->n_dies,
				have == m->n_dies ? " others" : "");
	}
	VEC_FREE(&starts);
	return NULL;
}
