/* unwind.c: the unwind tables.
 *
 * Each frame description of IN must be found in OUT at the image of its first address: same length,
 * same instructions, same meaning of its CIE, same meaning of its exception table with the landing
 * pads at their images.  For a folded function that is the kept one's: so this proves the fold,
 * too.  What OUT has more must be for thunks.  .eh_frame_hdr must lead an unwinder to each of them.
 * Then libdw, which shares no code with this program, evaluates a sample of rows in both files. */
#include "dwarf/lsda.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/base/wbuf.h"
#include "icf/verify/debug/debug.h"
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef VEC(uint64_t) addresses;

struct unwind {
	struct icf_v *v;
	addresses table_in, table_out; /* where exception tables begin, sorted */
	uint8_t *matched;              /* by FDE of OUT */
	struct dwr_lsda lsda_in, lsda_out;
	dwr_lsda_pads pads_in, pads_out;
	struct elfrw_wbuf text_in, text_out;
};

/* The first FDE of OUT that begins at VA and covers something, or NONE. */
static uint32_t fde_at(const struct dwr_cfi *cfi, uint64_t va)
{
	size_t lo = LOWER_BOUND(0, cfi->fde.len, mid, cfi->fde.data[cfi->by_pc[mid]].pc_begin < va);
	for (; lo < cfi->fde.len && cfi->fde.data[cfi->by_pc[lo]].pc_begin == va; lo++)
		if (cfi->fde.data[cfi->by_pc[lo]].pc_end > va)
			return cfi->by_pc[lo];
	return ICF_V_NONE;
}

static bool personality_ok(const struct icf_v *v, const struct dwr_cie *a, const struct dwr_cie *b)
{
	uint64_t want, body;
	if (a->personality_indirect != b->personality_indirect ||
	    !a->personality != !b->personality)
		return false;
	if (!icf_v_in_exec(v, a->personality))
		return b->personality == icf_v_data(v, a->personality);
	icf_v_pointer(v, a->personality, &want);
	icf_v_code(v, a->personality, &body);
	return b->personality == want || b->personality == body;
}

struct hole {
	uint64_t at;
	unsigned size;
};

/* Are two records of SIZE bytes the same outside of the N holes? */
static bool same_but(const uint8_t *p, const uint8_t *q, uint64_t size, const struct hole *hole,
		     int n)
{
	for (uint64_t k = 0; k < size; k++) {
		bool in = p[k] == q[k];
		for (int i = 0; i < n && !in; i++)
			in = k >= hole[i].at && k - hole[i].at < hole[i].size;
		if (!in)
			return false;
	}
	return true;
}

static unsigned pointer_size(uint8_t encoding, uint8_t address_size)
{
	int n = dwr_pe_size(encoding, address_size);
	return n > 0 ? (unsigned)n : 0;
}

static const char *cie_differs(const struct icf_v *v, const struct dwr_cie *a,
			       const struct dwr_cie *b)
{
	if (a->code_align != b->code_align || a->data_align != b->data_align)
		return "alignment factors";
	if (a->ra != b->ra)
		return "return address column";
	if (a->signal_frame != b->signal_frame || a->b_key != b->b_key || a->mte != b->mte ||
	    a->address_size != b->address_size)
		return "augmentation";
	if (a->insn_size != b->insn_size || memcmp(a->insn, b->insn, a->insn_size) != 0)
		return "initial rules";
	if (!personality_ok(v, a, b))
		return "personality routine";
	/* What the reader passes over: the lengths, and what follows them. */
	struct hole hole = { a->personality_off,
			     a->personality_off
				     ? pointer_size(a->personality_encoding, a->address_size)
				     : 0 };
	if (a->size == b->size && a->personality_off == b->personality_off &&
	    !same_but(v->cfi_in.data + a->off, v->cfi_out.data + b->off, a->size, &hole, 1))
		return "bytes";
	return NULL;
}

/* The same for descriptions: all but where the CIE, the code and the exception table are. */
static bool same_record(const struct icf_v *v, const struct dwr_fde *a, const struct dwr_fde *b)
{
	const struct dwr_cie *c = &v->cfi_in.cie.data[a->cie];
	struct hole hole[3] = { { 4, 4 },
				{ a->pc_off, (unsigned)a->pc_size + a->range_size },
				{ a->lsda_off, 0 } };
	if (c->offset_size == 8)
		hole[0] = (struct hole){ 12, 8 };
	if (a->lsda_off)
		hole[2].size = pointer_size(c->lsda_encoding, c->address_size);
	if (a->size != b->size || a->pc_off != b->pc_off || a->pc_size != b->pc_size ||
	    a->range_size != b->range_size || a->lsda_off != b->lsda_off)
		return true; /* encoded anew: what it means was compared */
	return same_but(v->cfi_in.data + a->off, v->cfi_out.data + b->off, a->size, hole, 3);
}

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
static bool same_type(const struct unwind *w, size_t i)
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
static const char *bytes_differ(const struct unwind *w)
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
static struct elfrw_err *check_lsda(struct unwind *w, const struct dwr_fde *a,
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

/* The run [BEGIN, END) of A's code, which is together in OUT at WANT. */
static struct elfrw_err *check_run(struct unwind *w, const struct dwr_fde *a, uint64_t begin,
				   uint64_t end, uint64_t want, bool alias)
{
	struct icf_v *v = w->v;
	char name[200];
	uint32_t k = fde_at(&v->cfi_out, want);
	if (k == ICF_V_NONE) {
		icf_vlog_bad(
			&v->log, ICF_VC_FRAME,
			"frame: %s (0x%llx -> 0x%llx): expected a frame description, found none",
			icf_v_where(v, begin, name), ICF_VX(begin), ICF_VX(want));
		return NULL;
	}
	const struct dwr_fde *b = &v->cfi_out.fde.data[k];
	const struct dwr_cie *ca = &v->cfi_in.cie.data[a->cie], *cb = &v->cfi_out.cie.data[b->cie];
	w->matched[k] = 1;
	const char *what = cie_differs(v, ca, cb);
	uint8_t flags = a->cfa_flags | ca->cfa_flags;
	uint64_t moved = want - begin;
	if (!what && (a->insn_size != b->insn_size || memcmp(a->insn, b->insn, a->insn_size) != 0))
		what = "rules";
	if (!what && (flags & DWR_CFA_HAS_ADDRESS) && moved)
		what = "place for rules that hold addresses";
	if (!what && (flags & DWR_CFA_USES_PC) && (moved & 15))
		what = "residue of the place for rules that compute with it";
	if (!what && !same_record(v, a, b))
		what = "bytes";
	if (!what && !a->lsda != !b->lsda)
		what = "presence of an exception table";
	if (!what && begin != a->pc_begin && ((flags & DWR_CFA_ADVANCES) || a->lsda))
		what = "distance of its code from the description's start";
	if (what)
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "frame: %s (0x%llx -> 0x%llx): expected the same %s, found another",
			     icf_v_where(v, begin, name), ICF_VX(begin), ICF_VX(want), what);
	else if (end - begin != b->pc_end - b->pc_begin)
		icf_vlog_bad(
			&v->log, ICF_VC_FRAME,
			"length: frame of %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			icf_v_where(v, begin, name), ICF_VX(begin), ICF_VX(want),
			ICF_VX(end - begin), ICF_VX(b->pc_end - b->pc_begin));
	return a->lsda && b->lsda && begin == a->pc_begin ? check_lsda(w, a, b, alias, false)
							  : NULL;
}

static struct elfrw_err *check_fde(struct unwind *w, uint32_t i)
{
	struct icf_v *v = w->v;
	const struct dwr_fde *a = &v->cfi_in.fde.data[i];
	uint32_t u = icf_v_find(v, a->pc_begin);
	/* Of discarded code, or never looked at: the first of several is what an unwinder finds. */
	if (a->pc_end <= a->pc_begin || !icf_v_in_exec(v, a->pc_begin) ||
	    fde_at(&v->cfi_in, a->pc_begin) != i)
		return NULL;
	v->log.checked[ICF_VC_FRAME]++;
	if (u == ICF_V_NONE) {
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "frame: 0x%llx: expected code in a unit, found none",
			     ICF_VX(a->pc_begin));
		return NULL;
	}
	/* Hand-written code may have one description for several units, which need not stay
	 * together. */
	for (uint64_t begin = a->pc_begin; begin < a->pc_end;) {
		uint64_t want = v->unit.data[u].body + (begin - v->unit.data[u].old),
			 end = v->unit.data[u].end;
		uint32_t next = u + 1;
		for (; end < a->pc_end && next < v->unit.len && v->unit.data[next].old < a->pc_end;
		     next++) {
			const struct icf_vunit *x = &v->unit.data[next];
			if (x->body - want != x->old - begin)
				break;
			end = x->end;
		}
		bool last = next >= v->unit.len || v->unit.data[next].old >= a->pc_end;
		ELFRW_TRY(check_run(w, a, begin, end > a->pc_end || last ? a->pc_end : end, want,
				    false));
		if (last)
			break;
		u = next;
		begin = v->unit.data[u].old;
	}
	return NULL;
}

/* Units that other code stands for in some folded function: their frames must be the same, too. */
static struct elfrw_err *check_aliases(struct unwind *w)
{
	struct icf_v *v = w->v;
	for (size_t i = 0; i < v->alias.len; i++) {
		const struct icf_vunit *x = &v->unit.data[v->alias.data[i].unit],
				       *y = &v->unit.data[v->alias.data[i].other];
		size_t lo = LOWER_BOUND(0, v->cfi_in.fde.len, mid,
					v->cfi_in.fde.data[v->cfi_in.by_pc[mid]].pc_begin < x->old);
		for (; lo < v->cfi_in.fde.len; lo++) {
			const struct dwr_fde *f = &v->cfi_in.fde.data[v->cfi_in.by_pc[lo]];
			if (f->pc_begin >= x->end)
				break;
			if (f->pc_end > f->pc_begin)
				ELFRW_TRY(check_run(w, f, f->pc_begin, f->pc_end,
						    y->body + (f->pc_begin - x->old), true));
		}
	}
	return NULL;
}

/* Throughout a thunk nothing was pushed yet but the return address. */
static bool is_entry_rule(const struct icf_v *v, const struct dwr_fde *f)
{
	const struct dwr_cie *c = &v->cfi_out.cie.data[f->cie];
	const struct elfrw_arch *arch = v->arch;
	/* As long as the pointer to an exception table, which there is none of. */
	uint64_t size = f->pc_off + f->pc_size + f->range_size;
	if (c->augmented && (size >= f->size ||
			     v->cfi_out.data[f->off + size] !=
				     (c->lsda_encoding == DWR_PE_OMIT
					      ? 0
					      : pointer_size(c->lsda_encoding, c->address_size))))
		return false;
	if (c->data_align != -(int64_t)arch->address_size || c->ra != arch->dwarf_ra ||
	    c->signal_frame || f->lsda)
		return false;
	if (c->insn_size == arch->entry_cfi_size && f->insn_size == 0)
		return memcmp(c->insn, arch->entry_cfi, c->insn_size) == 0;
	return c->insn_size == 0 && f->insn_size == arch->entry_cfi_size &&
	       memcmp(f->insn, arch->entry_cfi, f->insn_size) == 0;
}

/* Is F a thunk's: of no unit's copy? */
static bool is_thunk_frame(const struct icf_v *v, const struct dwr_fde *f)
{
	return f->pc_end > f->pc_begin && icf_v_out_exec(v, f->pc_begin) &&
	       icf_v_find_new(v, f->pc_begin) == ICF_V_NONE;
}

/* A thunk where its function was keeps the function's description, whose first row must hold up to
 * its jump.  *WAS: that of IN. */
static bool is_kept_frame(const struct icf_v *v, const struct dwr_fde *f,
			  const struct dwr_fde **was)
{
	uint32_t u = icf_v_find(v, f->pc_begin), k = fde_at(&v->cfi_in, f->pc_begin);
	if (u == ICF_V_NONE || k == ICF_V_NONE)
		return false;
	const struct icf_vunit *x = &v->unit.data[u];
	const struct dwr_fde *a = *was = &v->cfi_in.fde.data[k];
	if (!x->thunk || x->entry != x->old || x->old != f->pc_begin || a->pc_end != f->pc_end ||
	    a->lsda != f->lsda || a->insn_size != f->insn_size ||
	    memcmp(a->insn, f->insn, f->insn_size) != 0 ||
	    cie_differs(v, &v->cfi_in.cie.data[a->cie], &v->cfi_out.cie.data[f->cie]))
		return false;
	/* DWARF 5, section 6.4.2.1: DW_CFA_advance_loc and DW_CFA_advance_loc1; longer ones go
	 * further. */
	uint64_t jump = x->thunk > 8 ? 4 : 0, row = UINT64_MAX; /* behind a landing pad */
	if (f->insn_size && f->insn[0] >> 6 == 1)
		row = f->insn[0] & 0x3f;
	else if (f->insn_size > 1 && f->insn[0] == 2)
		row = f->insn[1];
	return row > jump;
}

static struct elfrw_err *check_rest(struct unwind *w)
{
	struct icf_v *v = w->v;
	uint64_t end = 0;
	const uint32_t *thunk = v->by_thunk;
	uint32_t n_thunks = v->n_thunk, t = 0;
	for (size_t k = 0; k < v->cfi_out.fde.len; k++) {
		uint32_t i = v->cfi_out.by_pc[k];
		const struct dwr_fde *f = &v->cfi_out.fde.data[i];
		if (f->pc_end <= f->pc_begin)
			continue;
		bool code = icf_v_out_exec(v, f->pc_begin);
		/* Linkers leave descriptions of discarded code. */
		if (!code && !icf_v_in_exec(v, f->pc_begin) &&
		    fde_at(&v->cfi_in, f->pc_begin) != ICF_V_NONE)
			continue;
		if (f->pc_begin < end)
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME,
				"overlap: frame at 0x%llx: expected 0x%llx or later, found 0x%llx",
				ICF_VX(f->pc_begin), ICF_VX(end), ICF_VX(f->pc_begin));
		end = f->pc_end > end ? f->pc_end : end;
		const struct dwr_fde *was;
		if (w->matched[i])
			continue;
		if (is_kept_frame(v, f, &was)) {
			if (was->lsda)
				ELFRW_TRY(check_lsda(w, was, f, false, true));
			continue;
		}
		/* Thunks only, from the first byte to the last. */
		uint64_t covered = f->pc_begin;
		while (t < n_thunks && v->unit.data[thunk[t]].entry < covered)
			t++;
		for (;
		     t < n_thunks && v->unit.data[thunk[t]].entry == covered && covered < f->pc_end;
		     t++)
			covered += v->unit.data[thunk[t]].thunk;
		if (covered != f->pc_end || !is_entry_rule(v, f))
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME,
				"frame: (-> 0x%llx to 0x%llx): expected none or a thunk's, found another",
				ICF_VX(f->pc_begin), ICF_VX(f->pc_end));
	}
	for (uint32_t k = 0; k < n_thunks && v->cfi_in.fde.len; k++) {
		const struct icf_vunit *x = &v->unit.data[thunk[k]];
		char name[200];
		v->log.checked[ICF_VC_FRAME]++;
		uint32_t f = dwr_cfi_find(&v->cfi_out, x->entry),
			 g = dwr_cfi_find(&v->cfi_out, x->entry + x->thunk - 1);
		/* Where nothing described the function, nothing has to describe its thunk. */
		if (f == ICF_V_NONE && g == ICF_V_NONE &&
		    dwr_cfi_find(&v->cfi_in, x->old) == ICF_V_NONE)
			continue;
		/* The one that a thunk in its function's place kept was looked at above. */
		bool there = f != ICF_V_NONE && f == g;
		if (!there || (x->entry != x->old && !is_entry_rule(v, &v->cfi_out.fde.data[f])))
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME,
				"frame: thunk of %s (0x%llx -> 0x%llx): expected the rule of a function's entry, found another",
				icf_v_where(v, x->old, name), ICF_VX(x->old), ICF_VX(x->entry));
	}
	return NULL;
}

static void check_terminator(struct icf_v *v)
{
	const struct dwr_cfi *a = &v->cfi_in, *b = &v->cfi_out;
	uint64_t last_in = a->fde.len ? a->fde.data[a->fde.len - 1].off : 0,
		 last_out = b->fde.len ? b->fde.data[b->fde.len - 1].off : 0;
	bool end_in = a->terminator.len && a->terminator.data[0] > last_in,
	     end_out = b->terminator.len && b->terminator.data[0] > last_out;
	if (end_in && !end_out)
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "end: .eh_frame: expected one behind the last description, found %s",
			     b->terminator.len ? "one before" : "none");
}

static uint32_t fde_by_off(const struct dwr_cfi *cfi, uint64_t off)
{
	size_t lo = LOWER_BOUND(0, cfi->fde.len, mid, cfi->fde.data[mid].off < off);
	return lo < cfi->fde.len && cfi->fde.data[lo].off == off ? (uint32_t)lo : ICF_V_NONE;
}

static bool is_record(const struct dwr_cfi *cfi, uint64_t off)
{
	for (size_t k = 0; k < cfi->cie.len; k++)
		if (cfi->cie.data[k].off == off)
			return true;
	for (size_t k = 0; k < cfi->terminator.len; k++)
		if (cfi->terminator.data[k] == off)
			return true;
	return fde_by_off(cfi, off) != ICF_V_NONE;
}

/* A program that registers its frames itself (static start-up files) names the first record of its
 * own: what an unwinder reads from there on must be the same descriptions. */
static void check_refs(struct icf_v *v)
{
	const struct dwr_cfi *a = &v->cfi_in, *b = &v->cfi_out;
	const struct elfrw_section *frame = elfrw_image_section(&v->out, ".eh_frame");
	for (size_t i = 0; i < v->frameref.len; i++) {
		const struct icf_vframeref *f = &v->frameref.data[i];
		uint64_t off = f->target - v->frame_lo,
			 new = frame ? f->found - frame->hdr.sh_addr : UINT64_MAX;
		char name[200];
		bool record = is_record(b, new);
		uint32_t seen = 0, want = 0;
		v->log.checked[ICF_VC_ADDRESS]++;
		/* Other data, named from far away. */
		if (!is_record(a, off)) {
			if (f->found != f->target)
				icf_vlog_bad(&v->log, ICF_VC_ADDRESS,
					     "address: %s (0x%llx): expected 0x%llx, found 0x%llx",
					     icf_v_where(v, f->at, name), ICF_VX(f->target),
					     ICF_VX(f->target), ICF_VX(f->found));
			continue;
		}
		for (size_t k = 0; k < b->fde.len; k++)
			seen += b->fde.data[k].off >= new && !is_thunk_frame(v, &b->fde.data[k]);
		for (size_t k = 0; k < a->fde.len; k++) {
			uint32_t u = icf_v_find(v, a->fde.data[k].pc_begin);
			want += a->fde.data[k].off >= off && u != ICF_V_NONE &&
				!(v->unit.data[u].flags & ICF_V_FOLDED);
		}
		if (!record || seen != want)
			icf_vlog_bad(
				&v->log, ICF_VC_ADDRESS,
				"frame table: %s (0x%llx -> 0x%llx): expected a record with %u descriptions behind it, found %s with %u",
				icf_v_where(v, f->at, name), ICF_VX(f->target), ICF_VX(f->found),
				want, record ? "one" : "none", seen);
	}
}

struct hdr {
	uint64_t pc, fde;
};

static int hdr_order(const void *a, const void *b)
{
	const struct hdr *x = a, *y = b;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

/* .eh_frame_hdr (LSB Core 5.0): encodings as linkers write them. */
static struct elfrw_err *check_hdr(struct icf_v *v)
{
	const struct elfrw_section *a = elfrw_image_section(&v->in, ".eh_frame_hdr"),
				   *s = elfrw_image_section(&v->out, ".eh_frame_hdr");
	const struct elfrw_section *frame = elfrw_image_section(&v->out, ".eh_frame");
	if (!a || !a->data)
		return NULL;
	/* Some linkers leave one behind that leads nowhere. */
	if (!elfrw_image_section(&v->in, ".eh_frame") && !frame && s && s->data &&
	    s->hdr.sh_addr == a->hdr.sh_addr && s->hdr.sh_size == a->hdr.sh_size &&
	    memcmp(a->data, s->data, a->hdr.sh_size) == 0)
		return NULL;
	if (!s || !s->data || !frame || a->hdr.sh_size < 4) {
		icf_vlog_bad(&v->log, ICF_VC_FRAME_HDR,
			     "section: .eh_frame_hdr: expected in the output, found nothing");
		return NULL;
	}
	struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
	uint64_t raw, ptr = 0, count = 0;
	unsigned version = elfrw_rbuf_u8(&r);
	uint8_t ptr_enc = elfrw_rbuf_u8(&r), count_enc = elfrw_rbuf_u8(&r),
		table_enc = elfrw_rbuf_u8(&r);
	if (!elfrw_rbuf_ok(&r) || version != 1 || ptr_enc != a->data[1] ||
	    count_enc != a->data[2] || table_enc != a->data[3] ||
	    !dwr_pe_read(&r, ptr_enc, 8, s->hdr.sh_addr + elfrw_rbuf_off(&r), &raw, &ptr)) {
		icf_vlog_bad(
			&v->log, ICF_VC_FRAME_HDR,
			"header: .eh_frame_hdr: expected version 1 and the encodings of the input, found others");
		return NULL;
	}
	if (ptr != frame->hdr.sh_addr)
		icf_vlog_bad(&v->log, ICF_VC_FRAME_HDR,
			     "pointer: .eh_frame_hdr: expected 0x%llx, found 0x%llx",
			     ICF_VX(frame->hdr.sh_addr), ICF_VX(ptr));
	/* Without a table unwinders read .eh_frame from its start. */
	if (count_enc == DWR_PE_OMIT || table_enc == DWR_PE_OMIT)
		return NULL;
	if (table_enc != (DWR_PE_DATAREL | DWR_PE_SDATA4))
		return elfrw_error_at(a->name, 3, "%s: table of an unknown kind", v->in.path);
	if (!dwr_pe_read(&r, count_enc, 8, s->hdr.sh_addr + elfrw_rbuf_off(&r), &raw, &count) ||
	    count > elfrw_rbuf_left(&r) / 8) {
		icf_vlog_bad(
			&v->log, ICF_VC_FRAME_HDR,
			"table: .eh_frame_hdr: expected room for %llu entries, found %llu bytes",
			ICF_VX(count), ICF_VX(elfrw_rbuf_left(&r)));
		return NULL;
	}
	struct hdr *e = malloc((count + 1) * sizeof *e);
	if (!e)
		return &elfrw_err_nomem;
	for (uint64_t i = 0; i < count; i++) {
		e[i].pc = s->hdr.sh_addr + (uint64_t)(int64_t)(int32_t)elfrw_rbuf_u32(&r);
		e[i].fde = s->hdr.sh_addr + (uint64_t)(int64_t)(int32_t)elfrw_rbuf_u32(&r);
		v->log.checked[ICF_VC_FRAME_HDR]++;
		if (i && e[i].pc < e[i - 1].pc)
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME_HDR,
				"order: .eh_frame_hdr entry %llu: expected 0x%llx or more, found 0x%llx",
				ICF_VX(i), ICF_VX(e[i - 1].pc), ICF_VX(e[i].pc));
	}
	qsort(e, count, sizeof *e, hdr_order);
	uint64_t n = 0;
	for (size_t k = 0; k < v->cfi_out.fde.len; k++) {
		const struct dwr_fde *f = &v->cfi_out.fde.data[v->cfi_out.by_pc[k]];
		if (f->pc_end <= f->pc_begin || !icf_v_out_exec(v, f->pc_begin))
			continue;
		/* Both lists are in order. */
		while (n < count && e[n].pc < f->pc_begin)
			n++;
		uint64_t m = n;
		while (m < count && e[m].pc == f->pc_begin &&
		       e[m].fde != frame->hdr.sh_addr + f->off)
			m++;
		if (m == count || e[m].pc != f->pc_begin)
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME_HDR,
				"entry: .eh_frame_hdr for 0x%llx: expected 0x%llx, found %s0x%llx",
				ICF_VX(f->pc_begin), ICF_VX(frame->hdr.sh_addr + f->off),
				n < count && e[n].pc == f->pc_begin ? "" : "none; next is for ",
				ICF_VX(n == count               ? 0
				       : e[n].pc == f->pc_begin ? e[n].fde
								: e[n].pc));
	}
	/* And each entry names a description of its own address. */
	for (uint64_t i = 0; i < count; i++) {
		uint32_t f = fde_by_off(&v->cfi_out, e[i].fde - frame->hdr.sh_addr);
		if (f == ICF_V_NONE || v->cfi_out.fde.data[f].pc_begin != e[i].pc)
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME_HDR,
				"entry: .eh_frame_hdr for 0x%llx: expected a description of that address, found %s at 0x%llx",
				ICF_VX(e[i].pc), f == ICF_V_NONE ? "none" : "another",
				ICF_VX(e[i].fde));
	}
	free(e);
	return NULL;
}

bool icf_v_ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (a[i].atom != b[i].atom || a[i].number != b[i].number ||
		    a[i].number2 != b[i].number2)
			return false;
	return true;
}

static const char *rows_differ(Dwarf_Frame *a, Dwarf_Frame *b)
{
	Dwarf_Op *x, *y, mx[3], my[3];
	size_t nx, ny;
	bool sa, sb;
	if (dwarf_frame_info(a, NULL, NULL, &sa) != dwarf_frame_info(b, NULL, NULL, &sb) ||
	    sa != sb)
		return "return address column or kind of frame";
	/* libdw cannot tell all of them. */
	int ca = dwarf_frame_cfa(a, &x, &nx), cb = dwarf_frame_cfa(b, &y, &ny);
	if (!ca != !cb || (!ca && !icf_v_ops_same(x, nx, y, ny)))
		return "canonical frame address";
	for (int r = 0; r <= 16; r++) {
		int ra = dwarf_frame_register(a, r, mx, &x, &nx),
		    rb = dwarf_frame_register(b, r, my, &y, &ny);
		if (ra != rb || (!ra && (!icf_v_ops_same(x, nx, y, ny) || (!nx && !x != !y))))
			return "register rule";
	}
	return NULL;
}

#define MAX_SAMPLES 2048

/* libdw's rows at the start, in the middle and at the end of up to MAX_SAMPLES descriptions. */
static void sample_rows(struct icf_v *v, Dwarf_CFI *in, Dwarf_CFI *out)
{
	size_t n = v->cfi_in.fde.len, step = n / MAX_SAMPLES + 1;
	for (size_t k = 0; k < n; k += step) {
		const struct dwr_fde *f = &v->cfi_in.fde.data[v->cfi_in.by_pc[k]];
		uint64_t size = f->pc_end - f->pc_begin, place[3] = { 0, size / 2, size - 1 }, new;
		if (f->pc_end <= f->pc_begin || !icf_v_code(v, f->pc_begin, &new))
			continue;
		for (int p = 0; p < 3; p++) {
			Dwarf_Frame *a = NULL, *b = NULL;
			const char *what = NULL;
			char name[200];
			if (dwarf_cfi_addrframe(in, f->pc_begin + place[p], &a) == 0) {
				v->log.checked[ICF_VC_FRAME_ROW]++;
				what = dwarf_cfi_addrframe(out, new + place[p], &b)
					       ? "row"
					       : rows_differ(a, b);
			}
			if (what)
				icf_vlog_bad(
					&v->log, ICF_VC_FRAME_ROW,
					"row: %s (0x%llx -> 0x%llx): expected the same %s, found another",
					icf_v_where(v, f->pc_begin + place[p], name),
					ICF_VX(f->pc_begin + place[p]), ICF_VX(new + place[p]),
					what);
			free(a);
			free(b);
		}
	}
}

void icf_v_elf_open(const struct elfrw_image *img, struct icf_velf *ret)
{
	*ret = (struct icf_velf){ .fd = -1, .size = img->size };
	if (img->pair) {
		/* It is in no one file; where libelf decompresses a section it changes the
		 * header. */
		ret->copy = elfrw_image_private_copy(img);
		ret->elf = ret->copy ? elf_memory((char *)ret->copy, img->size) : NULL;
		return;
	}
	ret->fd = open(img->path, O_RDONLY | O_CLOEXEC);
	ret->elf = ret->fd < 0 ? NULL : elf_begin(ret->fd, ELF_C_READ_MMAP, NULL);
}

void icf_v_elf_close(struct icf_velf *e)
{
	if (e->elf)
		elf_end(e->elf);
	if (e->fd >= 0)
		close(e->fd);
	if (e->copy)
		munmap(e->copy, e->size);
	*e = (struct icf_velf){ .fd = -1 };
}

static void check_rows(struct icf_v *v)
{
	struct icf_velf a, b;
	elf_version(EV_CURRENT);
	icf_v_elf_open(&v->in, &a);
	icf_v_elf_open(&v->out, &b);
	Dwarf_CFI *x = a.elf ? dwarf_getcfi_elf(a.elf) : NULL,
		  *y = b.elf ? dwarf_getcfi_elf(b.elf) : NULL;
	if (x && y)
		sample_rows(v, x, y);
	else if (x)
		icf_vlog_bad(&v->log, ICF_VC_FRAME_ROW,
			     "table: .eh_frame: expected one that libdw reads, found: %s",
			     dwarf_errmsg(-1));
	if (x)
		dwarf_cfi_end(x);
	if (y)
		dwarf_cfi_end(y);
	icf_v_elf_close(&a);
	icf_v_elf_close(&b);
}

static bool collect_tables(const struct dwr_cfi *cfi, addresses *list)
{
	for (size_t i = 0; i < cfi->fde.len; i++) {
		uint64_t *slot = cfi->fde.data[i].lsda ? VEC_PUSH(list) : NULL;
		if (cfi->fde.data[i].lsda && !slot)
			return false;
		if (slot)
			*slot = cfi->fde.data[i].lsda;
	}
	if (list->len)
		qsort(list->data, list->len, sizeof *list->data, elfrw_u64_order);
	return true;
}

struct elfrw_err *icf_v_check_unwind(struct icf_v *v)
{
	struct unwind w = { .v = v };
	const struct elfrw_section *s = elfrw_image_section(&v->out, ".eh_frame");
	struct elfrw_err *err = dwr_cfi_read(&v->cfi_out, ".eh_frame", s ? s->data : NULL,
					     s && s->data ? s->hdr.sh_size : 0,
					     s ? s->hdr.sh_addr : 0, true, v->arch->address_size);
	if (err) {
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "table: .eh_frame: expected frame descriptions, found: %s",
			     elfrw_err_text(err));
		elfrw_err_free(err);
		return NULL;
	}
	w.matched = calloc(v->cfi_out.fde.len + 1, 1);
	if (!w.matched || !collect_tables(&v->cfi_in, &w.table_in) ||
	    !collect_tables(&v->cfi_out, &w.table_out))
		err = &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->cfi_in.fde.len && !err; i++)
		err = check_fde(&w, i);
	if (!err)
		err = check_aliases(&w);
	if (!err)
		err = check_rest(&w);
	if (!err) {
		check_terminator(v);
		check_refs(v);
		err = check_hdr(v);
	}
	if (!err && v->cfi_in.fde.len)
		check_rows(v);
	dwr_lsda_deinit(&w.lsda_in);
	dwr_lsda_deinit(&w.lsda_out);
	VEC_FREE(&w.pads_in);
	VEC_FREE(&w.pads_out);
	elfrw_wbuf_free(&w.text_in);
	elfrw_wbuf_free(&w.text_out);
	VEC_FREE(&w.table_in);
	VEC_FREE(&w.table_out);
	free(w.matched);
	return err;
}
