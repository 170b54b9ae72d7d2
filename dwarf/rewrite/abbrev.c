/* abbrev.c: .debug_abbrev with changed declarations.
 *
 * Two rare cases need this.  A value in a declaration (DW_FORM_implicit_const) must change for one
 * DIE.  Or a unit's DW_AT_high_pc must become DW_AT_ranges.  The bytes of a DIE keep their size: a
 * new declaration gets a code whose LEB128 is as long as the old one.  A table of a single unit is
 * edited in place (later tables shift).  A table that several units share stays, and the edited
 * unit gets a copy at the end. */
#include "dwarf/rewrite/state.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

/* An unassigned attribute for left-over bytes (DWARF 5, table 7.5: the end of the vendors'
 * range). */
#define AT_FILLER 0x3fff

struct use {
	uint64_t off;  /* of the table */
	uint32_t unit; /* index */
};

static int by_table(const void *a, const void *b)
{
	const struct use *x = a, *y = b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Writes declaration AB of table T with its edits. */
static void write_declaration(struct elfrw_wbuf *w, const struct dwr_abbrev_table *t,
			      const struct dwr_abbrev *ab, uint64_t code,
			      const struct dwr_abbrev_edit *edit)
{
	elfrw_wbuf_uleb(w, code);
	elfrw_wbuf_uleb(w, ab->tag);
	elfrw_wbuf_u8(w, ab->children);
	for (uint32_t i = 0; i < ab->n_attrs; i++) {
		const struct dwr_abbrev_attr *at = &t->attr.data[ab->attr + i];
		bool edited = edit && edit->attr == i;
		if (edited && edit->kind == DWR_EDIT_RANGES) {
			unsigned form = t->params.version >= 4       ? DW_FORM_sec_offset
					: t->params.offset_size == 8 ? DW_FORM_data8
								     : DW_FORM_data4;
			elfrw_wbuf_uleb(w, DW_AT_ranges);
			elfrw_wbuf_uleb(w, form);
			if (edit->filler) {
				elfrw_wbuf_uleb(w, AT_FILLER);
				elfrw_wbuf_uleb(w, DW_FORM_data4);
			}
			continue;
		}
		elfrw_wbuf_uleb(w, at->name);
		elfrw_wbuf_uleb(w, at->form);
		if (at->form == DW_FORM_implicit_const)
			elfrw_wbuf_sleb(w, edited ? edit->value : dwr_abbrev_implicit(t, at));
	}
	elfrw_wbuf_u16(w, 0);
}

/* A free code whose LEB128 has SIZE bytes, from FROM on; 0: there is none. */
static uint64_t free_code(const struct dwr_abbrev_table *t, size_t size, uint64_t from)
{
	uint64_t first = size == 1 ? 1 : UINT64_C(1) << (7 * (size - 1));
	if (from < first)
		from = first;
	while (dwr_abbrev_find(t, from))
		from++;
	return elfrw_uleb_size(from) == size ? from : 0;
}

/* The edited table of one unit. */
static struct elfrw_err *write_table(struct dwr_rw *rw, uint32_t unit, struct elfrw_wbuf *w)
{
	const struct dwr_unit *u = &rw->units.data[unit];
	struct dwr_rw_unit *ru = &rw->ru[unit];
	const struct dwr_section *sec = &rw->secs.sec[DWR_ABBREV];
	const char *info = rw->secs.sec[u->sec].name;
	struct dwr_abbrev_table t = { 0 };
	struct dwr_want want = { 0 };
	struct elfrw_err *err =
		dwr_abbrev_read(&t, sec->data, sec->size, u->abbrev_off, u->params, &want);
	for (size_t i = 0; !err && i < t.abbrev.len; i++) {
		const struct dwr_abbrev_edit *own = NULL;
		for (size_t k = 0; k < ru->edit.len; k++)
			if (ru->edit.data[k].kind == DWR_EDIT_RANGES &&
			    ru->edit.data[k].code == t.abbrev.data[i].code)
				own = &ru->edit.data[k];
		write_declaration(w, &t, &t.abbrev.data[i], t.abbrev.data[i].code, own);
	}
	uint64_t next[11] = { 0 }, given = 0; /* the next code to try, by size */
	for (size_t k = 0; !err && k < ru->edit.len; k++) {
		const struct dwr_abbrev_edit *e = &ru->edit.data[k];
		if (e->kind != DWR_EDIT_IMPLICIT)
			continue;
		/* One declaration for equal edits that follow each other. */
		const struct dwr_abbrev_edit *p = k ? e - 1 : NULL;
		struct elfrw_rbuf r = elfrw_rbuf(rw->secs.sec[u->sec].data, u->end);
		elfrw_rbuf_seek(&r, e->die);
		elfrw_rbuf_uleb(&r);
		size_t size = elfrw_rbuf_off(&r) - e->die;
		if (!p || p->kind != e->kind || p->code != e->code || p->attr != e->attr ||
		    p->value != e->value || elfrw_uleb_size(given) != size) {
			given = size <= 10 ? free_code(&t, size, next[size]) : 0;
			if (!given) {
				err = elfrw_error_at(
					info, e->die,
					"no abbreviation code of %zu bytes is left for a changed constant",
					size);
				break;
			}
			next[size] = given + 1;
			write_declaration(w, &t, dwr_abbrev_find(&t, e->code), given, e);
		}
		dwr_put_uleb(rw->copy[u->sec] + e->die, size, given);
	}
	elfrw_wbuf_u8(w, 0);
	dwr_abbrev_deinit(&t);
	return err;
}

static struct elfrw_err *set_offset(struct dwr_rw *rw, uint32_t unit, uint64_t off)
{
	const struct dwr_unit *u = &rw->units.data[unit];
	if (u->params.offset_size == 4 && off >> 32)
		return elfrw_error_at(rw->secs.sec[u->sec].name, u->abbrev_pos,
				      ".debug_abbrev outgrows its offsets");
	elfrw_put_le(rw->copy[u->sec] + u->abbrev_pos, off, u->params.offset_size);
	return NULL;
}

/* The size of the table at OFF. */
static struct elfrw_err *table_size(struct dwr_rw *rw, uint32_t unit, uint64_t *ret)
{
	const struct dwr_section *sec = &rw->secs.sec[DWR_ABBREV];
	const struct dwr_unit *u = &rw->units.data[unit];
	struct dwr_abbrev_table t = { 0 };
	struct dwr_want want = { 0 };
	struct elfrw_err *err =
		dwr_abbrev_read(&t, sec->data, sec->size, u->abbrev_off, u->params, &want);
	*ret = t.size;
	dwr_abbrev_deinit(&t);
	return err;
}

/* Writes all tables in their old order; edited ones that cannot be edited in place go to the
 * end. */
static struct elfrw_err *rewrite_tables(struct dwr_rw *rw, const struct use *use, size_t n,
					uint32_t *deferred, struct elfrw_wbuf *w)
{
	const struct dwr_section *sec = &rw->secs.sec[DWR_ABBREV];
	uint64_t done = 0; /* of the old section */
	size_t n_deferred = 0;
	for (size_t i = 0, end; i < n; i = end) {
		uint64_t off = use[i].off, size = 0;
		for (end = i + 1; end < n && use[end].off == off; end++)
			;
		if (off > done) {
			elfrw_wbuf_bytes(w, sec->data + done, off - done);
			done = off;
		}
		if (end == i + 1 && off == done && rw->ru[use[i].unit].edit.len) {
			ELFRW_TRY(table_size(rw, use[i].unit, &size));
			if (end == n || use[end].off >= off + size) {
				ELFRW_TRY(set_offset(rw, use[i].unit, w->len));
				ELFRW_TRY(write_table(rw, use[i].unit, w));
				done = off + size;
				continue;
			}
		}
		for (size_t k = i; k < end; k++) {
			if (rw->ru[use[k].unit].edit.len)
				deferred[n_deferred++] = use[k].unit;
			else
				ELFRW_TRY(set_offset(rw, use[k].unit, w->len - (done - off)));
		}
	}
	elfrw_wbuf_bytes(w, sec->data + done, sec->size - done);
	for (size_t i = 0; i < n_deferred; i++) {
		ELFRW_TRY(set_offset(rw, deferred[i], w->len));
		ELFRW_TRY(write_table(rw, deferred[i], w));
	}
	return w->bad ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *dwr_rw_abbrev(struct dwr_rw *rw, struct elfrw_wbuf *w)
{
	size_t n = rw->units.len;
	bool any = false;
	for (size_t i = 0; i < n; i++)
		any |= rw->ru[i].edit.len != 0;
	if (!any)
		return NULL;
	struct use *use = malloc((n + 1) * sizeof *use);
	uint32_t *deferred = malloc((n + 1) * sizeof *deferred);
	struct elfrw_err *err = &elfrw_err_nomem;
	if (use && deferred) {
		for (size_t i = 0; i < n; i++)
			use[i] = (struct use){ rw->units.data[i].abbrev_off, (uint32_t)i };
		qsort(use, n, sizeof *use, by_table);
		err = rewrite_tables(rw, use, n, deferred, w);
	}
	free(use);
	free(deferred);
	return err;
}
