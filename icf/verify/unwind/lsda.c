/* lsda.c: exception tables: the same call sites, actions and types, with the landing pads at their
 * images; and, of functions that were not folded, the same bytes. */
#include "icf/verify/unwind/state.h"
#include <string.h>

/* Is the code at NEW one that was proved to be the same as that at OLD? */
static bool stands_for(const struct icf_v *v, uint64_t old, uint64_t new)
{
	uint32_t t = icf_v_find(v, old), o = icf_v_find_new(v, new);
	if (t == ICF_V_NONE || o == ICF_V_NONE ||
	    old - v->unit.data[t].old != new - v->unit.data[o].body)
		return false;
	return v->same && v->same[t] == v->same[o];
}

/* How many bytes there are from VA to the next table of LIST or the end of the section. */
static uint64_t behind(const addresses *list, uint64_t va, const struct elfrw_image *img,
		       uint32_t shndx)
{
	size_t lo = 0, hi = list->len;
	const Elf64_Shdr *s = &img->section[shndx].hdr;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (list->data[mid] < va)
			lo = mid + 1;
		else
			hi = mid;
	}
	uint64_t end = s->sh_addr + s->sh_size,
		 next = lo < list->len && list->data[lo] < end ? list->data[lo] : end;
	return next > va ? next - va : 0;
}

/* Does the pointer to a type at offset AT of the table mean the same in both files? */
static bool same_type(const struct icf_vunwind *w, size_t i)
{
	const struct icf_v *v = w->v;
	const struct dwr_lsda_field *f = &w->lsda_in.field.data[i], *g = &w->lsda_out.field.data[i];
	uint64_t want;
	if (f->encoding != g->encoding || f->size != g->size ||
	    f->va - w->lsda_in.start != g->va - w->lsda_out.start)
		return false;
	if (!f->addr || !icf_v_in_exec(v, f->addr))
		return g->addr == (f->addr ? icf_v_data(v, f->addr) : 0);
	icf_v_pointer(v, f->addr, &want);
	return g->addr == want;
}

/* The table of a function that was not folded, byte for byte: what no call site leads to does not
 * matter to anybody, but stays.  Only pointers to types and the base of landing pads know where
 * they are. */
static const char *bytes_differ(const struct icf_vunwind *w)
{
	const struct icf_v *v = w->v;
	const struct dwr_lsda *a = &w->lsda_in, *b = &w->lsda_out;
	const struct elfrw_section *s = &v->in.section[a->shndx], *t = &v->out.section[b->shndx];
	uint64_t size = a->end - a->start, n = behind(&w->table_in, a->end, &v->in, a->shndx),
		 m = behind(&w->table_out, b->end, &v->out, b->shndx);
	const uint8_t *p = s->data + (a->start - s->hdr.sh_addr),
		      *q = t->data + (b->start - t->hdr.sh_addr);
	if (b->end - b->start != size || a->field.len != b->field.len)
		return "size";
	/* Fields are in the order of falling addresses; those behind the last that is used may be
	 * anything, or entries that another range of the function uses. */
	size_t i = a->field.len, used = i;
	while (used && !a->field.data[used - 1].used)
		used--;
	for (uint64_t k = 0; k < size;) {
		while (i && a->field.data[i - 1].va - a->start < k)
			i--;
		if (a->start + k == a->sites_end && a->sites_end < a->actions) {
			/* The headers and call sites of its function's other ranges: their own
			 * frames name them. */
			k = a->actions - a->start;
		} else if (i && a->field.data[i - 1].va - a->start == k) {
			i--;
			if (memcmp(p + k, q + k, a->field.data[i].size) != 0 &&
			    ((i >= used && !a->lpstart_va) || !same_type(w, i)))
				return "types";
			k += a->field.data[i].size;
		} else if (a->lpstart_va && a->lpstart_va - a->start == k)
			k += a->lpstart_size;
		else if (p[k] != q[k])
			return "bytes";
		else
			k++;
	}
	/* What follows may be its own rest, or filled up, or be left out. */
	for (uint64_t k = 0; k < m; k++)
		if (q[size + k] && (k >= n || q[size + k] != p[size + k]))
			return "bytes behind it";
	return NULL;
}

/* KEPT: of a thunk where its function was, whose table has to be what it was. */
struct elfrw_err *icf_vunwind_lsda(struct icf_vunwind *w, const struct dwr_fde *a,
				   const struct dwr_fde *b, bool alias, bool kept)
{
	struct icf_v *v = w->v;
	char name[200];
	v->log.checked[ICF_VC_LSDA]++;
	w->pads_in.len = w->pads_out.len = 0;
	w->text_in.len = w->text_out.len = 0;
	ELFRW_TRY(icf_v_named(v->in.path,
			      dwr_lsda_read(&w->lsda_in, &v->in, a->lsda, a->pc_begin, a->pc_end)));
	struct elfrw_err *err =
		dwr_lsda_read(&w->lsda_out, &v->out, b->lsda, b->pc_begin, b->pc_end);
	if (err) {
		icf_vlog_bad(&v->log, ICF_VC_LSDA,
			     "table: %s (0x%llx -> 0x%llx): expected an exception table, found: %s",
			     icf_v_where(v, a->pc_begin, name), ICF_VX(a->lsda), ICF_VX(b->lsda),
			     elfrw_err_text(err));
		elfrw_err_free(err);
		return NULL;
	}
	dwr_lsda_canon(&w->lsda_in, &w->text_in, &w->pads_in);
	dwr_lsda_canon(&w->lsda_out, &w->text_out, &w->pads_out);
	if (w->text_in.bad || w->text_out.bad)
		return &elfrw_err_nomem;
	if (w->text_in.len != w->text_out.len ||
	    memcmp(w->text_in.data, w->text_out.data, w->text_in.len) != 0 ||
	    w->pads_in.len != w->pads_out.len) {
		icf_vlog_bad(
			&v->log, ICF_VC_LSDA,
			"table: %s (0x%llx -> 0x%llx): expected the same call sites, actions and types, found others",
			icf_v_where(v, a->pc_begin, name), ICF_VX(a->lsda), ICF_VX(b->lsda));
		return NULL;
	}
	uint32_t u = icf_v_find(v, a->pc_begin);
	const char *what = !alias && u != ICF_V_NONE && !(v->unit.data[u].flags & ICF_V_FOLDED)
				   ? bytes_differ(w)
				   : NULL;
	if (what)
		icf_vlog_bad(&v->log, ICF_VC_LSDA,
			     "table: %s (0x%llx -> 0x%llx): expected the same %s, found others",
			     icf_v_where(v, a->pc_begin, name), ICF_VX(a->lsda), ICF_VX(b->lsda),
			     what);
	for (size_t i = 0; i < w->pads_in.len; i++) {
		uint64_t want;
		icf_v_code(v, w->pads_in.data[i], &want);
		if (kept)
			want = w->pads_in.data[i];
		if (want == w->pads_out.data[i] ||
		    (alias && stands_for(v, w->pads_in.data[i], w->pads_out.data[i])))
			continue;
		icf_vlog_bad(&v->log, ICF_VC_LSDA,
			     "landing pad: %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			     icf_v_where(v, a->pc_begin, name), ICF_VX(w->pads_in.data[i]),
			     ICF_VX(want), ICF_VX(want), ICF_VX(w->pads_out.data[i]));
		break;
	}
	return NULL;
}
