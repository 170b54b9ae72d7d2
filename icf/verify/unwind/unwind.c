/* unwind.c: the unwind tables.
 *
 * Each frame description of IN must be in OUT at the image of its first address, with the same
 * length, the same instructions, the same meaning of its CIE, and the same meaning of its exception
 * table with the landing pads at their images.  For a folded function it is the kept function's
 * description, so this proves the fold, too.  Additional descriptions in OUT must be for thunks.
 * .eh_frame_hdr must lead an unwinder to each description.  Then libdw, which shares no code with
 * this program, evaluates a sample of rows in both files. */
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "icf/verify/unwind/state.h"
#include <stdlib.h>
#include <string.h>

/* The first FDE of OUT that begins at VA and is not empty, or NONE. */
uint32_t icf_vunwind_fde_at(const struct dwr_cfi *cfi, uint64_t va)
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
	if (!icf_v_in_exec(&v->claim, a->personality))
		return b->personality == icf_v_data(&v->claim, a->personality);
	icf_v_pointer(&v->claim, a->personality, &want);
	icf_v_code(&v->claim, a->personality, &body);
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

unsigned icf_vunwind_pointer_size(uint8_t encoding, uint8_t address_size)
{
	int n = dwr_pe_size(encoding, address_size);
	return n > 0 ? (unsigned)n : 0;
}

const char *icf_vunwind_cie_differs(const struct icf_v *v, const struct dwr_cie *a,
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
	/* Fields that the reader skips: the lengths, and what follows them. */
	struct hole hole = { a->personality_off,
			     a->personality_off ? icf_vunwind_pointer_size(a->personality_encoding,
									   a->address_size)
						: 0 };
	if (a->size == b->size && a->personality_off == b->personality_off &&
	    !same_but(v->claim.cfi_in.data + a->off, v->claim.cfi_out.data + b->off, a->size, &hole,
		      1))
		return "bytes";
	return NULL;
}

bool icf_vunwind_same_record(const struct icf_v *v, const struct dwr_fde *a,
			     const struct dwr_fde *b)
{
	const struct dwr_cie *c = &v->claim.cfi_in.cie.data[a->cie];
	struct hole hole[3] = { { 4, 4 },
				{ a->pc_off, (unsigned)a->pc_size + a->range_size },
				{ a->lsda_off, 0 } };
	if (c->offset_size == 8)
		hole[0] = (struct hole){ 12, 8 };
	if (a->lsda_off)
		hole[2].size = icf_vunwind_pointer_size(c->lsda_encoding, c->address_size);
	if (a->size != b->size || a->pc_off != b->pc_off || a->pc_size != b->pc_size ||
	    a->range_size != b->range_size || a->lsda_off != b->lsda_off)
		return true; /* encoded anew: its meaning was compared */
	return same_but(v->claim.cfi_in.data + a->off, v->claim.cfi_out.data + b->off, a->size,
			hole, 3);
}

/* Checks the run [BEGIN, END) of A's code, which is together in OUT at WANT. */
static struct elfrw_err *check_run(struct icf_vunwind *w, const struct dwr_fde *a, uint64_t begin,
				   uint64_t end, uint64_t want, bool alias)
{
	struct icf_v *v = w->v;
	char name[200];
	uint32_t k = icf_vunwind_fde_at(&v->claim.cfi_out, want);
	if (k == ICF_V_NONE) {
		icf_vlog_bad(
			&v->log, ICF_VC_FRAME,
			"frame: %s (0x%llx -> 0x%llx): expected a frame description, found none",
			icf_v_where(&v->claim, begin, name), ICF_VX(begin), ICF_VX(want));
		return NULL;
	}
	const struct dwr_fde *b = &v->claim.cfi_out.fde.data[k];
	const struct dwr_cie *ca = &v->claim.cfi_in.cie.data[a->cie],
			     *cb = &v->claim.cfi_out.cie.data[b->cie];
	w->matched[k] = 1;
	const char *what = icf_vunwind_cie_differs(v, ca, cb);
	uint8_t flags = a->cfa_flags | ca->cfa_flags;
	uint64_t moved = want - begin;
	if (!what && (a->insn_size != b->insn_size || memcmp(a->insn, b->insn, a->insn_size) != 0))
		what = "rules";
	if (!what && (flags & DWR_CFA_HAS_ADDRESS) && moved)
		what = "place for rules that hold addresses";
	if (!what && (flags & DWR_CFA_USES_PC) && (moved & 15))
		what = "residue of the place for rules that compute with it";
	if (!what && !icf_vunwind_same_record(v, a, b))
		what = "bytes";
	if (!what && !a->lsda != !b->lsda)
		what = "presence of an exception table";
	if (!what && begin != a->pc_begin && ((flags & DWR_CFA_ADVANCES) || a->lsda))
		what = "distance of its code from the description's start";
	if (what)
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "frame: %s (0x%llx -> 0x%llx): expected the same %s, found another",
			     icf_v_where(&v->claim, begin, name), ICF_VX(begin), ICF_VX(want),
			     what);
	else if (end - begin != b->pc_end - b->pc_begin)
		icf_vlog_bad(
			&v->log, ICF_VC_FRAME,
			"length: frame of %s (0x%llx -> 0x%llx): expected 0x%llx, found 0x%llx",
			icf_v_where(&v->claim, begin, name), ICF_VX(begin), ICF_VX(want),
			ICF_VX(end - begin), ICF_VX(b->pc_end - b->pc_begin));
	return a->lsda && b->lsda && begin == a->pc_begin ? icf_vunwind_lsda(w, a, b, alias, false)
							  : NULL;
}

static struct elfrw_err *check_fde(struct icf_vunwind *w, uint32_t i)
{
	struct icf_v *v = w->v;
	const struct dwr_fde *a = &v->claim.cfi_in.fde.data[i];
	uint32_t u = icf_v_find(&v->claim, a->pc_begin);
	/* Of discarded code, or never used: an unwinder finds the first of several. */
	if (a->pc_end <= a->pc_begin || !icf_v_in_exec(&v->claim, a->pc_begin) ||
	    icf_vunwind_fde_at(&v->claim.cfi_in, a->pc_begin) != i)
		return NULL;
	if (icf_v_removed(&v->claim, u) && a->pc_end <= v->claim.unit.data[u].end)
		return NULL;
	v->log.checked[ICF_VC_FRAME]++;
	if (u == ICF_V_NONE) {
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "frame: 0x%llx: expected code in a unit, found none",
			     ICF_VX(a->pc_begin));
		return NULL;
	}
	/* Hand-written code may have one description for several units, which may move apart. */
	for (uint64_t begin = a->pc_begin; begin < a->pc_end;) {
		uint64_t want = v->claim.unit.data[u].body + (begin - v->claim.unit.data[u].old),
			 end = v->claim.unit.data[u].end;
		uint32_t next = u + 1;
		for (; end < a->pc_end && next < v->claim.unit.len &&
		       v->claim.unit.data[next].old < a->pc_end;
		     next++) {
			const struct icf_vunit *x = &v->claim.unit.data[next];
			if (x->body - want != x->old - begin)
				break;
			end = x->end;
		}
		bool last = next >= v->claim.unit.len || v->claim.unit.data[next].old >= a->pc_end;
		if (!icf_v_removed(&v->claim, u))
			ELFRW_TRY(check_run(w, a, begin, end > a->pc_end || last ? a->pc_end : end,
					    want, false));
		if (last)
			break;
		u = next;
		begin = v->claim.unit.data[u].old;
	}
	return NULL;
}

/* Checks units that other code replaces in some folded function: their frames must be the same,
 * too. */
static struct elfrw_err *check_aliases(struct icf_vunwind *w)
{
	struct icf_v *v = w->v;
	for (size_t i = 0; i < v->alias.len; i++) {
		const struct icf_vunit *x = &v->claim.unit.data[v->alias.data[i].unit],
				       *y = &v->claim.unit.data[v->alias.data[i].other];
		size_t lo = LOWER_BOUND(
			0, v->claim.cfi_in.fde.len, mid,
			v->claim.cfi_in.fde.data[v->claim.cfi_in.by_pc[mid]].pc_begin < x->old);
		for (; lo < v->claim.cfi_in.fde.len; lo++) {
			const struct dwr_fde *f =
				&v->claim.cfi_in.fde.data[v->claim.cfi_in.by_pc[lo]];
			if (f->pc_begin >= x->end)
				break;
			if (f->pc_end > f->pc_begin)
				ELFRW_TRY(check_run(w, f, f->pc_begin, f->pc_end,
						    y->body + (f->pc_begin - x->old), true));
		}
	}
	return NULL;
}

static void check_terminator(struct icf_v *v)
{
	const struct dwr_cfi *a = &v->claim.cfi_in, *b = &v->claim.cfi_out;
	uint64_t last_in = a->fde.len ? a->fde.data[a->fde.len - 1].off : 0,
		 last_out = b->fde.len ? b->fde.data[b->fde.len - 1].off : 0;
	bool end_in = a->terminator.len && a->terminator.data[0] > last_in,
	     end_out = b->terminator.len && b->terminator.data[0] > last_out;
	if (end_in && !end_out)
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "end: .eh_frame: expected one behind the last description, found %s",
			     b->terminator.len ? "one before" : "none");
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
	struct icf_vunwind w = { .v = v };
	struct elfrw_err *err =
		dwr_eh_frame_read(&v->claim.cfi_out, &v->claim.out, v->claim.arch->address_size);
	if (err) {
		icf_vlog_bad(&v->log, ICF_VC_FRAME,
			     "table: .eh_frame: expected frame descriptions, found: %s",
			     elfrw_err_text(err));
		elfrw_err_free(err);
		return NULL;
	}
	w.matched = calloc(v->claim.cfi_out.fde.len + 1, 1);
	if (!w.matched || !collect_tables(&v->claim.cfi_in, &w.table_in) ||
	    !collect_tables(&v->claim.cfi_out, &w.table_out))
		err = &elfrw_err_nomem;
	for (uint32_t i = 0; i < v->claim.cfi_in.fde.len && !err; i++)
		err = check_fde(&w, i);
	if (!err)
		err = check_aliases(&w);
	if (!err)
		err = icf_vunwind_rest(&w);
	if (!err) {
		check_terminator(v);
		icf_vunwind_refs(v);
		err = icf_vunwind_hdr(&v->claim, &v->log);
	}
	if (!err && v->claim.cfi_in.fde.len)
		icf_vunwind_rows(&v->claim, &v->log);
	VEC_FREE(&w.table_in);
	VEC_FREE(&w.table_out);
	free(w.matched);
	return err;
}
