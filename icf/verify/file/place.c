/* place.c: code that must stay where it was, because something outside of the file knows its
 * places: IN is loaded elsewhere than it runs, by start-up code that copies it, or is entered at an
 * address that is not in its code. */
#include "icf/verify/state.h"

static const char *why_still(const struct icf_vclaim *c)
{
	const struct elfrw_image *in = &c->in;
	for (uint32_t p = 0; p < in->n_phdrs; p++)
		if (in->phdr[p].p_type == PT_LOAD && in->phdr[p].p_memsz && in->phdr[p].p_paddr &&
		    in->phdr[p].p_paddr != in->phdr[p].p_vaddr)
			return "is loaded elsewhere than it runs";
	return in->ehdr.e_entry && !icf_v_in_exec(c, in->ehdr.e_entry)
		       ? "is entered outside of its code"
		       : NULL;
}

void icf_v_check_places(const struct icf_vclaim *c, struct icf_vlog *log)
{
	const char *why = why_still(c);
	char name[200];
	for (uint32_t i = 0; why && i < c->unit.len; i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		if (u->entry != u->old || (u->body != u->old && !(u->flags & ICF_V_FOLDED)))
			icf_vlog_bad(
				log, ICF_VC_OBSERVED,
				"place: %s: expected it where it was, since the file %s, found 0x%llx",
				icf_v_where(c, u->old, name), why, ICF_VX(u->entry));
	}
}
