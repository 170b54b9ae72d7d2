/* removed.c: code that OUT has no more, because nothing reaches it.
 *
 * There is nothing to compare it with.  It is read for the places in data that it refers to: its
 * jump tables would otherwise be words that nothing explains. */
#include "icf/verify/code/state.h"

void icf_vcode_removed(struct icf_vcode_at *at)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	size_t r = elfrw_relocs_from(rel, at->u->old);
	struct icf_vcode_insn x;
	for (uint64_t pos = 0; pos < at->size; pos += x.in.len) {
		if (at->a[pos] == 0)
			pos += icf_v_pad(v, at->u->old + pos);
		x.va = at->u->old + pos;
		x.code = at->a + pos;
		if (!v->claim.arch->decode(x.code, at->size - pos, x.va, &x.in)) {
			char name[200];
			icf_vlog_bad(&at->part->log, ICF_VC_REMOVED,
				     "bytes: %s: expected code that is understood, found 0x%02x",
				     icf_v_where(&v->claim, x.va, name), at->a[pos]);
			return;
		}
		at->loads = !(x.in.flags & ELFRW_INSN_LEA);
		if (x.in.pcrel_size && !icf_v_in_exec(&v->claim, x.in.target))
			icf_vcode_note_base(at, x.in.target);
		at->loads = false;
		for (; r < rel->n && rel->rela[r].r_offset < x.va + x.in.len; r++) {
			const struct elfrw_form *form;
			bool odd;
			if (!icf_vcode_is_address(v, rel, &rel->rela[r], &x, &form, &odd))
				continue;
			uint64_t off = rel->rela[r].r_offset - at->u->old;
			uint64_t target = elfrw_form_read(form, at->a + off, 0);
			if (!icf_v_in_exec(&v->claim, target))
				icf_vcode_note_base(at, target);
		}
	}
	at->part->log.checked[ICF_VC_REMOVED]++;
}
