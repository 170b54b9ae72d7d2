/* thunk.c: the frames that OUT has in addition to the image of IN's.  Each must be a thunk's, and
 * each thunk must have one. */
#include "icf/verify/unwind/state.h"
#include <string.h>

/* In a thunk only the return address has been pushed. */
static bool is_entry_rule(const struct icf_v *v, const struct dwr_fde *f)
{
	const struct dwr_cie *c = &v->claim.cfi_out.cie.data[f->cie];
	const struct elfrw_arch *arch = v->claim.arch;
	/* As long as the pointer to an exception table, which is absent. */
	uint64_t size = f->pc_off + f->pc_size + f->range_size;
	if (c->augmented &&
	    (size >= f->size ||
	     v->claim.cfi_out.data[f->off + size] !=
		     (c->lsda_encoding == DWR_PE_OMIT
			      ? 0
			      : icf_vunwind_pointer_size(c->lsda_encoding, c->address_size))))
		return false;
	if (c->data_align != -(int64_t)arch->address_size || c->ra != arch->dwarf_ra ||
	    c->signal_frame || f->lsda)
		return false;
	if (c->insn_size == arch->entry_cfi_size && f->insn_size == 0)
		return memcmp(c->insn, arch->entry_cfi, c->insn_size) == 0;
	return c->insn_size == 0 && f->insn_size == arch->entry_cfi_size &&
	       memcmp(f->insn, arch->entry_cfi, f->insn_size) == 0;
}

/* Does F describe a thunk, and no unit's copy? */
bool icf_vunwind_is_thunk_frame(const struct icf_v *v, const struct dwr_fde *f)
{
	return f->pc_end > f->pc_begin && icf_v_out_exec(&v->claim, f->pc_begin) &&
	       icf_v_find_new(&v->claim, f->pc_begin) == ICF_V_NONE;
}

/* A thunk at its function's place keeps the function's description, whose first row must hold up to
 * the thunk's jump.  *WAS: IN's description. */
static bool is_kept_frame(const struct icf_v *v, const struct dwr_fde *f,
			  const struct dwr_fde **was)
{
	uint32_t u = icf_v_find(&v->claim, f->pc_begin),
		 k = icf_vunwind_fde_at(&v->claim.cfi_in, f->pc_begin);
	if (u == ICF_V_NONE || k == ICF_V_NONE)
		return false;
	const struct icf_vunit *x = &v->claim.unit.data[u];
	const struct dwr_fde *a = *was = &v->claim.cfi_in.fde.data[k];
	if (!x->thunk || x->entry != x->old || x->old != f->pc_begin || a->pc_end != f->pc_end ||
	    a->lsda != f->lsda || a->insn_size != f->insn_size ||
	    memcmp(a->insn, f->insn, f->insn_size) != 0 || !icf_vunwind_same_record(v, a, f) ||
	    icf_vunwind_cie_differs(v, &v->claim.cfi_in.cie.data[a->cie],
				    &v->claim.cfi_out.cie.data[f->cie]))
		return false;
	/* DWARF 5, section 6.4.2.1: DW_CFA_advance_loc and DW_CFA_advance_loc1; longer ones go
	 * further. */
	struct elfrw_thunk_read t;
	const struct icf_vexec *e = icf_v_out_exec(&v->claim, x->entry);
	if (!e || !e->new_data ||
	    !v->claim.arch->read_thunk(e->new_data + (x->entry - e->new), e->new_end - x->entry,
				       x->entry, &t))
		return false;
	uint64_t row = UINT64_MAX;
	if (f->insn_size && f->insn[0] >> 6 == 1)
		row = f->insn[0] & 0x3f;
	else if (f->insn_size > 1 && f->insn[0] == 2)
		row = f->insn[1];
	/* The first row holds up to here; an advance counts in units of the code alignment factor.
	 */
	return row == UINT64_MAX || row * v->claim.cfi_in.cie.data[a->cie].code_align > t.branch;
}

/* Does F describe only thunks, from its first byte to its last?  *T: the first thunk that may be at
 * or after F, by address. */
static bool is_of_thunks(const struct icf_v *v, const struct dwr_fde *f, uint32_t *t)
{
	const uint32_t *thunk = v->claim.by_thunk;
	uint64_t covered = f->pc_begin;
	while (*t < v->claim.n_thunk && v->claim.unit.data[thunk[*t]].entry < covered)
		++*t;
	for (; *t < v->claim.n_thunk && v->claim.unit.data[thunk[*t]].entry == covered &&
	       covered < f->pc_end;
	     ++*t)
		covered += v->claim.unit.data[thunk[*t]].thunk;
	return covered == f->pc_end && is_entry_rule(v, f);
}

/* Does F describe code that is removed, where nothing moved?  The unwind tables stay as they were.
 */
static bool is_left(const struct icf_v *v, const struct dwr_fde *f)
{
	uint32_t u = icf_v_find(&v->claim, f->pc_begin),
		 k = icf_vunwind_fde_at(&v->claim.cfi_in, f->pc_begin);
	const struct dwr_fde *a = k != ICF_V_NONE ? &v->claim.cfi_in.fde.data[k] : NULL;
	return icf_v_removed(&v->claim, u) && a && a->pc_end == f->pc_end && a->off == f->off &&
	       a->size == f->size && a->lsda == f->lsda && a->insn_size == f->insn_size &&
	       icf_vunwind_same_record(v, a, f);
}

/* Each frame of OUT that is not the image of one of IN's must be a thunk's. */
static struct elfrw_err *check_added_frames(struct icf_vunwind *w)
{
	struct icf_v *v = w->v;
	uint64_t end = 0;
	uint32_t t = 0;
	for (size_t k = 0; k < v->claim.cfi_out.fde.len; k++) {
		uint32_t i = v->claim.cfi_out.by_pc[k];
		const struct dwr_fde *f = &v->claim.cfi_out.fde.data[i];
		if (f->pc_end <= f->pc_begin)
			continue;
		bool code = icf_v_out_exec(&v->claim, f->pc_begin);
		/* Linkers leave descriptions of discarded code. */
		if (!code && !icf_v_in_exec(&v->claim, f->pc_begin) &&
		    icf_vunwind_fde_at(&v->claim.cfi_in, f->pc_begin) != ICF_V_NONE)
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
				ELFRW_TRY(icf_vunwind_lsda(w, was, f, false, true));
			continue;
		}
		if (!is_of_thunks(v, f, &t) && !is_left(v, f))
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME,
				"frame: (-> 0x%llx to 0x%llx): expected none or a thunk's, found another",
				ICF_VX(f->pc_begin), ICF_VX(f->pc_end));
	}
	return NULL;
}

/* Each thunk of a described function must have a frame. */
static void check_thunks(struct icf_v *v)
{
	for (uint32_t k = 0; k < v->claim.n_thunk && v->claim.cfi_in.fde.len; k++) {
		const struct icf_vunit *x = &v->claim.unit.data[v->claim.by_thunk[k]];
		char name[200];
		v->log.checked[ICF_VC_FRAME]++;
		uint32_t f = dwr_cfi_find(&v->claim.cfi_out, x->entry),
			 g = dwr_cfi_find(&v->claim.cfi_out, x->entry + x->thunk - 1);
		/* If nothing described the function, nothing needs to describe its thunk. */
		if (f == ICF_V_NONE && g == ICF_V_NONE &&
		    dwr_cfi_find(&v->claim.cfi_in, x->old) == ICF_V_NONE)
			continue;
		/* check_added_frames checks the frame that a thunk at its function's place kept. */
		bool there = f != ICF_V_NONE && f == g;
		if (!there ||
		    (x->entry != x->old && !is_entry_rule(v, &v->claim.cfi_out.fde.data[f])))
			icf_vlog_bad(
				&v->log, ICF_VC_FRAME,
				"frame: thunk of %s (0x%llx -> 0x%llx): expected the rule of a function's entry, found another",
				icf_v_where(&v->claim, x->old, name), ICF_VX(x->old),
				ICF_VX(x->entry));
	}
}

struct elfrw_err *icf_vunwind_rest(struct icf_vunwind *w)
{
	ELFRW_TRY(check_added_frames(w));
	check_thunks(w->v);
	return NULL;
}
