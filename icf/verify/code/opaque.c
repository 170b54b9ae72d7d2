/* opaque.c: bytes of code that may not be code.
 *
 * A unit with data among its code, or with unknown instructions, may not move.  Nothing in it may
 * change, and all that it could refer to must be at its old place. */
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <string.h>

bool icf_vcode_has_object(const struct icf_vcode_job *job, const struct icf_vunit *u)
{
	size_t lo = LOWER_BOUND(0, job->objects.len, mid, job->objects.data[mid] < u->old);
	return lo < job->objects.len && job->objects.data[lo] < u->end;
}

/* Is R the relocation of a call that the linker removed (thread-local storage)?  It stands anywhere
 * in the replacement. */
static bool is_relaxed_call(const struct icf_v *v, const struct elfrw_relocs *rel,
			    const Elf64_Rela *r)
{
	Elf64_Sym sym;
	const char *name =
		elfrw_reloc_symbol(&v->claim.in, rel->symtab, r, &sym)
			? elfrw_image_string(&v->claim.in,
					     v->claim.in.section[rel->symtab].hdr.sh_link,
					     sym.st_name)
			: NULL;
	return name && strncmp(name, "__tls_get_addr", 14) == 0;
}

/* Does the unit have bytes that are not code, or relocations where no instruction has a field?  (A
 * stale relocation of a relaxed sequence says nothing about code that moved correctly.) */
bool icf_vcode_is_strange(const struct icf_vcode_at *at)
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
		if (!v->claim.arch->decode(x.code, at->size - pos, x.va, &x.in) ||
		    (x.in.flags & ELFRW_INSN_LONG_CALL))
			return true;
		for (; r < rel->n && rel->rela[r].r_offset < x.va + x.in.len; r++) {
			const struct elfrw_form *form;
			bool odd;
			icf_vcode_is_address(v, rel, &rel->rela[r], &x, &form, &odd);
			if (odd && !is_relaxed_call(v, rel, &rel->rela[r]))
				return true;
		}
	}
	return false;
}

/* All possible references of bytes that are not understood must lead to places that did not
 * move. */
void icf_vcode_opaque(struct icf_vcode_at *at)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	icf_vcode_compare_to(at, at->size);
	if (at->moved)
		icf_vcode_bad(at, ICF_VC_CODE, "bytes that are not understood moved", 0, at->u->old,
			      at->u->body);
	/* Without relocations, each byte may begin an instruction. */
	struct elfrw_insn in;
	for (uint64_t pos = 0; v->claim.inferred && pos < at->size; pos++) {
		if (!v->claim.arch->decode(at->a + pos, at->size - pos, at->u->old + pos, &in) ||
		    !in.pcrel_size)
			continue;
		if (icf_vcode_half_moved(v, &in))
			icf_vcode_bad(at, ICF_VC_CODE, "what half of an address may name moved",
				      pos, in.target, in.target);
		if (in.target - at->u->old < at->size)
			continue;
		uint32_t t = icf_v_find(&v->claim, in.target);
		const struct icf_vunit *x = t != ICF_V_NONE ? &v->claim.unit.data[t] : NULL;
		if (x && (in.target == x->old ? x->entry : x->body) != x->old)
			icf_vcode_bad(at, ICF_VC_CODE,
				      "what bytes that are not understood may refer to moved", pos,
				      in.target,
				      (in.target == x->old ? x->entry : x->body) +
					      (in.target - x->old));
	}
	for (size_t r = elfrw_relocs_from(rel, at->u->old);
	     r < rel->n && rel->rela[r].r_offset < at->u->end; r++) {
		Elf64_Sym sym;
		struct elfrw_reloc_desc d =
			v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(rel->rela[r].r_info));
		if ((d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_PCREL) ||
		    !elfrw_reloc_symbol(&v->claim.in, rel->symtab, &rel->rela[r], &sym))
			continue;
		uint64_t to = sym.st_value + (uint64_t)rel->rela[r].r_addend;
		/* A displacement may count from the instruction's end, SHORT bytes on.  A thunk may
		 * stand at its function's old place. */
		unsigned reloc_short = v->claim.arch->reloc_short;
		for (unsigned n = 0; n < (d.kind == ELFRW_RELOC_PCREL ? 2u : 1u); n++) {
			unsigned k = n * reloc_short, not_k = reloc_short - k;
			uint32_t t = icf_v_find(&v->claim, to + k),
				 other = icf_v_find(&v->claim, to + not_k);
			if (t == ICF_V_NONE || (v->claim.unit.data[t].old == to + k &&
						v->claim.unit.data[t].entry == to + k))
				continue;
			if (other != ICF_V_NONE && v->claim.unit.data[other].old == to + not_k &&
			    v->claim.unit.data[other].entry == to + not_k)
				continue;
			if (v->claim.unit.data[t].body != v->claim.unit.data[t].old)
				icf_vcode_bad(at, ICF_VC_CODE,
					      "what bytes that are not understood refer to moved",
					      rel->rela[r].r_offset - at->u->old, to + k,
					      v->claim.unit.data[t].body +
						      (to + k - v->claim.unit.data[t].old));
		}
	}
}
