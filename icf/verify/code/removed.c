/* removed.c: code that OUT has no more, because nothing reaches it.
 *
 * There is nothing to compare it with.  It is read for the places in data that it refers to: its
 * jump tables would otherwise be words that nothing explains. */
#include "icf/verify/code/state.h"

/* R is the relocation of data among the code. */
static void read_literal(struct icf_vcode_at *at, const Elf64_Rela *r)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	uint64_t off = r->r_offset - at->u->old;
	if (off > at->size || at->size - off < 8 ||
	    c->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)).size != 8)
		return;
	uint64_t target = elfrw_get64(at->a + off);
	if (!icf_v_in_exec(c, target))
		icf_vcode_note_base(at, target);
}

void icf_vcode_removed(struct icf_vcode_at *at)
{
	const struct icf_v *v = at->job->v;
	const struct icf_vunit *u = at->u;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	size_t r = elfrw_relocs_from(rel, at->u->old);
	struct icf_vcode_insn x;
	for (uint64_t pos = 0; pos < at->size; pos += x.in.len) {
		uint64_t data = icf_vcode_data(at, u->old + pos);
		for (; data && r < rel->n && rel->rela[r].r_offset < u->old + pos + data; r++)
			read_literal(at, &rel->rela[r]);
		if (data) {
			x.in.len = 0;
			pos += data;
			continue;
		}
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
