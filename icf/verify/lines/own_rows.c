/* own_rows.c: where the note says that a folded function's own rows are, they are.
 *
 * folded.c shows that the artificial table has all rows of such functions and no others.  Functions
 * that share their code have rows at the same addresses there.  So here each function's sequences
 * are walked, from the place in the note on, and must have all of its rows, in their order, and no
 * others.  With this the symbolizer, which reads these sequences alone, finds the function's own
 * rows.
 *
 * Cost: a walk over the artificial table, and a look-up for each row of a folded function. */
#include "icf/verify/lines/walk.h"
#include "icf/verify/lines/lines.h"
#include <dwarf.h>
#include <stdlib.h>

/* Takes the operation that begins each sequence of a folded function. */
static bool take_hiding(struct elfrw_rbuf *r)
{
	const unsigned op = elfrw_rbuf_u8(r);
	const uint64_t n = elfrw_rbuf_uleb(r);
	const uint8_t *ext = elfrw_rbuf_take(r, n);
	return !op && ext && icf_vline_hides(ext, n);
}

/* The rows of N sequences, from the next one of T on; false: they cannot be read here. */
static bool read_rows(struct icf_vline_ops *t, uint32_t n, struct icf_vline_names *names,
		      struct icf_vrows *ret)
{
	while (n--) {
		if (!take_hiding(&t->r))
			return false;
		struct icf_vline_walk w = icf_vline_begin(t);
		w.any = true;
		while (icf_vline_next(&w) && !w.end) {
			const struct icf_vrow row = { .addr = w.addr,
						      .file = icf_vline_name(names, w.s.file),
						      .line = (int)w.s.line,
						      .col = (int)w.s.col,
						      .flags = w.s.flags,
						      .isa = w.s.isa,
						      .disc = w.s.disc };
			ret->nomem |= !row.file;
			if (row.file)
				icf_vrows_add(ret, &row);
		}
		if (!w.end)
			return false;
	}
	return true;
}

/* Rows, by reference. */
typedef VEC(const struct icf_vrow *) row_list;

static int by_place(const void *pa, const void *pb)
{
	return icf_vrow_by_address(*(const struct icf_vrow *const *)pa,
				   *(const struct icf_vrow *const *)pb);
}

static int by_all(const void *pa, const void *pb)
{
	return icf_vrow_by_all(*(const struct icf_vrow *const *)pa,
			       *(const struct icf_vrow *const *)pb);
}

static bool keep(row_list *list, const struct icf_vrow *row)
{
	const struct icf_vrow **slot = VEC_PUSH(list);
	if (slot)
		*slot = row;
	return slot != NULL;
}

/* Are the rows HAVE, in the order of their places, the certain rows WANT, in this order, and
 * between them at most rows of OPTIONAL (sorted by_all)? */
static bool fits(const struct icf_vrows *have, const row_list *want, const row_list *optional)
{
	size_t k = 0;
	for (size_t i = 0; i < have->v.len; i++) {
		const struct icf_vrow *h = &have->v.data[i];
		if (k < want->len && !icf_vrow_by_all(h, want->data[k]))
			k++;
		else if (!optional->len || !bsearch(&h, optional->data, optional->len,
						    sizeof *optional->data, by_all))
			return false;
	}
	return k == want->len;
}

/* Several tables may describe a function; one of them, with a certain row, must fit, as in
 * folded.c. HAVE: sorted icf_vrow_by_address. */
static bool one_fits(const struct icf_vrows *have, const struct icf_vrow *const *w, size_t n,
		     bool *nomem)
{
	row_list want = { 0 }, optional = { 0 };
	bool ok = true, ret = false;
	for (size_t i = 0; i < n; i++)
		ok &= !w[i]->optional || keep(&optional, w[i]);
	if (optional.len)
		qsort(optional.data, optional.len, sizeof *optional.data, by_all);
	for (size_t i = 0, k; i < n && ok && !ret; i = k) {
		want.len = 0;
		for (k = i; k < n && w[k]->cu == w[i]->cu; k++)
			ok &= w[k]->optional || keep(&want, w[k]);
		if (want.len)
			qsort(want.data, want.len, sizeof *want.data, by_place);
		ret = ok && want.len && fits(have, &want, &optional);
	}
	*nomem |= !ok;
	VEC_FREE(&want);
	VEC_FREE(&optional);
	return ret;
}

void icf_vline_own_open(struct icf_vdebug *d, struct icf_vline_own *ret)
{
	*ret = (struct icf_vline_own){
		.names = { .d = d, .texts = icf_vtexts_of(&d->out), .at = d->own_table }
	};
	ret->known =
		d->own_program && icf_vline_open(ret->names.texts.line, d->own_table, &ret->ops);
}

void icf_vline_own_close(struct icf_vline_own *own)
{
	icf_vline_names_deinit(&own->names);
}

void icf_vline_own_check(struct icf_vdebug *d, struct icf_vline_own *own, uint32_t u,
			 const struct icf_vrow *const *w, size_t n)
{
	const struct icf_vclaim *c = &d->v->claim;
	const uint32_t member = c->has_note ? c->note.unit_member[u] : UINT32_MAX;
	const struct dwr_note_rows *rows =
		member != UINT32_MAX ? &c->note.member[member].rows : NULL;
	struct icf_vrows have = { 0 };
	char name[200];
	/* Anything else about the place and the number was checked before (sequences.c). */
	if (!rows || rows->status != DWR_NOTE_ROWS_OWN || !own->known)
		return;
	struct icf_vline_ops t = own->ops;
	const size_t first = elfrw_rbuf_off(&t.r);
	bool ok = rows->seq < elfrw_rbuf_left(&t.r);
	if (ok) {
		elfrw_rbuf_seek(&t.r, first + rows->seq);
		ok = read_rows(&t, rows->n_seqs, &own->names, &have);
	}
	icf_vrows_sort(&have, icf_vrow_by_address);
	if (!ok || !one_fits(&have, w, n, &have.nomem))
		icf_vlog_bad(
			d->log, ICF_VC_FOLDED_LINE,
			"rows: of the folded %s: expected them at the note's place, found others",
			icf_v_where(c, c->unit.data[u].old, name));
	d->log->nomem |= have.nomem | own->names.h.nomem;
	VEC_FREE(&have.v);
}
