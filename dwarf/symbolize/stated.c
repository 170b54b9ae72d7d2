/* stated.c: the range lists of entries, each read once.
 *
 * Any number of entries may share one list; in a flat table only one of them counts, by its id.  So
 * lists are first collected and then read: time and memory depend on the lists, not on the number
 * of entries.  Lists that begin inside of others (no tool writes these) are read for each entry, up
 * to a limit. */
#include "dwarf/symbolize/state.h"

/* The most that may be read for one table, in multiples of the section's size. */
#define MOST_READ 8

struct elfrw_err *dwr_sym_state(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				const struct dwr_sym_extent *extent, uint64_t id,
				struct dwr_sym_stated *stated, struct dwr_spans *spans)
{
	bool found;
	ELFRW_TRY(dwr_sym_range(unit, extent, id, spans, &found));
	uint64_t off;
	if (found || !extent->ranges || !extent->ranges->form)
		return NULL;
	struct elfrw_err *err = dwr_sym_list_off(sym, unit, extent->ranges, &off);
	if (err)
		return dwr_sym_warn(sym, err);
	struct dwr_sym_list *slot = VEC_PUSH(stated);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct dwr_sym_list){ unit, off, id };
	return NULL;
}

/* Sorts lists of the same meaning next to each other. */
static int list_order(const void *a, const void *b)
{
	const struct dwr_sym_list *x = a, *y = b;
	const struct dwr_list_cu *p = &x->unit->cu, *q = &y->unit->cu;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	if (p->params.version != q->params.version)
		return p->params.version < q->params.version ? -1 : 1;
	if (p->base != q->base)
		return p->base < q->base ? -1 : 1;
	if (p->addr_base != q->addr_base)
		return p->addr_base < q->addr_base ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

static bool same_list(const struct dwr_sym_list *x, const struct dwr_sym_list *y)
{
	return x->off == y->off && x->unit->cu.params.version == y->unit->cu.params.version &&
	       x->unit->cu.base == y->unit->cu.base &&
	       x->unit->cu.addr_base == y->unit->cu.addr_base;
}

/* Compilers write lists in the order of the entries that name them. */
static bool in_order(const struct dwr_sym_stated *stated)
{
	for (size_t i = 1; i < stated->len; i++)
		if (list_order(&stated->data[i - 1], &stated->data[i]) > 0)
			return false;
	return true;
}

struct elfrw_err *dwr_sym_read_stated(struct dwr_sym *sym, struct dwr_sym_stated *stated,
				      bool lowest, struct dwr_spans *spans)
{
	uint64_t n = 0;
	struct elfrw_err *err = NULL;
	if (!in_order(stated))
		qsort(stated->data, stated->len, sizeof *stated->data, list_order);
	for (size_t i = 0, end; i < stated->len && !err; i = end) {
		for (end = i + 1;
		     end < stated->len && same_list(&stated->data[i], &stated->data[end]);)
			end++;
		const struct dwr_sym_list *l = &stated->data[lowest ? i : end - 1];
		struct dwr_sym_list_bytes bytes;
		err = dwr_sym_list_ranges(sym, l->unit, l->off, l->id, spans, &bytes);
		n += bytes.list;
		if (!err && n / MOST_READ > bytes.section) {
			err = dwr_sym_warn(sym, elfrw_error("range lists lie in each other"));
			break;
		}
	}
	VEC_FREE(stated);
	return err;
}
