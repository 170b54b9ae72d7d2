/* claim.c: see claim.h.
 *
 * Few programs have code without rows of its own inside of a line sequence, so nothing is read
 * before the first question.  Then one DIE and at most one range list is read for each unit. */
#include "dwarf/rewrite/claim.h"
#include <dwarf.h>

static struct elfrw_err *add_ranges(struct dwr_rw_claim *claim, size_t i,
				    const struct dwr_value *ranges, struct dwr_list *list)
{
	struct dwr_rw *rw = claim->rw;
	const struct dwr_unit *unit = &rw->units.data[i];
	const struct dwr_unit_root *root = &rw->ru[i].root;
	const struct dwr_list_cu cu = { .params = unit->params,
					.has_base = root->has_low_pc,
					.base = root->has_low_pc ? root->low_pc : 0,
					.addr_base = root->addr_base,
					.rnglists_base = root->rnglists_base,
					.loclists_base = root->loclists_base };
	enum dwr_list_kind kind = unit->params.version >= 5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES;
	uint64_t off = ranges->u;
	if (ranges->form == DW_FORM_rnglistx)
		ELFRW_TRY(dwr_list_index(&rw->lists, kind, &cu, ranges->u, &off));
	ELFRW_TRY(dwr_list_read(&rw->lists, kind, &cu, off, DWR_LIST_NONE, list));
	for (size_t k = 0; k < list->entry.len; k++)
		ELFRW_TRY(dwr_spans_add(&claim->spans, list->entry.data[k].begin,
					list->entry.data[k].end, unit->off));
	return NULL;
}

/* Adds the code of DIE; *SAYS: it has some. */
static struct elfrw_err *add_die(struct dwr_rw_claim *claim, size_t i, const struct dwr_die *die,
				 struct dwr_list *list, bool *says)
{
	struct dwr_rw *rw = claim->rw;
	const struct dwr_unit *unit = &rw->units.data[i];
	const struct dwr_value *low = dwr_die_value(die, DW_AT_low_pc),
			       *high = dwr_die_value(die, DW_AT_high_pc),
			       *ranges = dwr_die_value(die, DW_AT_ranges);
	uint64_t lo, hi;
	*says = ranges || (low && high);
	if (ranges)
		return add_ranges(claim, i, ranges, list);
	if (!*says || !dwr_value_address(&rw->secs, unit, &rw->ru[i].root, low, &lo))
		return NULL;
	if (!dwr_form_is_address(high->form))
		hi = lo + high->u;
	else if (!dwr_value_address(&rw->secs, unit, &rw->ru[i].root, high, &hi))
		return NULL;
	return dwr_spans_add(&claim->spans, lo, hi, unit->off);
}

/* Adds the code of the unit's own DIE or, if that has none, of its functions. */
static struct elfrw_err *add_unit(struct dwr_rw_claim *claim, size_t i, struct dwr_list *list,
				  struct dwr_abbrev_table *table)
{
	struct dwr_rw *rw = claim->rw;
	struct dwr_want want = { 0 };
	struct dwr_die die;
	bool more = false, says = false;
	DWR_WANT_NAME(&want, DW_AT_low_pc);
	DWR_WANT_NAME(&want, DW_AT_high_pc);
	DWR_WANT_NAME(&want, DW_AT_ranges);
	struct elfrw_err *err = dwr_unit_abbrev(&rw->secs, &rw->units.data[i], &want, table);
	struct dwr_cursor cur;
	if (!err) {
		cur = dwr_cursor_at(&rw->secs, &rw->units.data[i], table, true);
		err = dwr_cursor_next(&cur, &die, &more);
	}
	if (!err && more && die.abbrev->tag == DW_TAG_compile_unit) {
		err = add_die(claim, i, &die, list, &says);
		for (bool said; !err && !says && more;) {
			err = dwr_cursor_next(&cur, &die, &more);
			if (!err && more && die.abbrev->tag == DW_TAG_subprogram)
				err = add_die(claim, i, &die, list, &said);
		}
	}
	return err;
}

static struct elfrw_err *read_units(struct dwr_rw_claim *claim)
{
	struct dwr_list list = { 0 };
	struct dwr_abbrev_table table = { 0 }; /* of all: units may share one */
	struct elfrw_err *err = NULL;
	claim->read = true;
	for (size_t i = 0; !err && !claim->all && i < claim->rw->units.len; i++)
		if (claim->rw->units.data[i].sec == DWR_INFO && claim->rw->ru[i].root.has_line)
			err = add_unit(claim, i, &list, &table);
	dwr_list_deinit(&list);
	dwr_abbrev_deinit(&table);
	if (err && err != &elfrw_err_nomem) { /* reported when the lists are rewritten */
		elfrw_err_free(err);
		claim->all = true;
		return NULL;
	}
	return err ? err : dwr_spans_flatten(&claim->spans, false);
}

struct elfrw_err *dwr_rw_claimed(void *arg, uint64_t va, bool *ret)
{
	struct dwr_rw_claim *claim = arg;
	if (!claim->read)
		ELFRW_TRY(read_units(claim));
	*ret = claim->all || dwr_spans_find(&claim->spans, va);
	return NULL;
}

void dwr_rw_claim_deinit(struct dwr_rw_claim *claim)
{
	free(claim->spans.data);
}
