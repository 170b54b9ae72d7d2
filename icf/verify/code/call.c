/* call.c: direct calls and jumps in IN's code, recorded for the call tables. */
#include "icf/verify/code/state.h"
#include <string.h>

/* Records jumps to other functions, and calls of shared code, for the call tables. */
void icf_vcode_note_call(struct icf_vcode_at *at, const struct elfrw_insn *in, uint64_t end)
{
	const struct icf_v *v = at->job->v;
	uint64_t target = in->target;
	bool optional = in->kind != ELFRW_INSN_CALL;
	if (at->alias || (optional && target - at->u->old < at->size))
		return;
	uint32_t t = icf_v_find(&v->claim, target);
	if (t == ICF_V_NONE)
		return;
	if (v->claim.unit.data[t].old == target)
		__atomic_fetch_or(&v->claim.unit.data[t].named,
				  optional ? ICF_V_JUMPED : ICF_V_NAMED, __ATOMIC_RELAXED);
	if (optional) {
		struct icf_vjump *j = VEC_PUSH(&at->part->jump);
		if (j)
			*j = (struct icf_vjump){ at->index, t,
						 v->claim.unit.data[t].old != target };
		else
			at->part->log.nomem = true;
	}
	/* Linkage code jumps through a slot that the dynamic linker sets to a symbol's value. */
	const struct icf_vexec *e = &v->claim.exec.data[v->claim.unit.data[t].exec];
	if (strncmp(v->claim.in.section[e->in].name, ".plt", 4) == 0) {
		uint64_t slot;
		const struct icf_vdynreloc *d =
			v->claim.arch->read_stub(e->old_data + (target - e->old),
						 e->old_end - target, target, &slot)
				? icf_v_dynreloc_at(&v->words, slot)
				: NULL;
		if (!d || d->kind != ELFRW_RELOC_SYMBOLIC)
			return;
		target = d->value;
		optional = true;
		t = icf_v_find(&v->claim, target);
	}
	if (t == ICF_V_NONE ||
	    !((v->claim.unit.data[t].flags & ICF_V_FOLDED) || v->claim.unit.data[t].shared))
		return;
	optional |= v->claim.unit.data[t].old != target;
	struct icf_vcall *c = VEC_PUSH(&at->part->call);
	if (c)
		*c = (struct icf_vcall){ at->index, t, end, optional, false };
	else
		at->part->log.nomem = true;
}

/* The function whose address is TARGET, if it shares its code; else ICF_V_NONE. */
static uint32_t shared_at(const struct icf_v *v, uint64_t target)
{
	uint32_t t = target ? icf_v_find(&v->claim, target) : ICF_V_NONE;
	return t != ICF_V_NONE && v->claim.unit.data[t].old == target &&
			       ((v->claim.unit.data[t].flags & ICF_V_FOLDED) ||
				v->claim.unit.data[t].shared)
		       ? t
		       : ICF_V_NONE;
}

/* The final value of the GOT's slot SLOT; 0: not known. */
static uint64_t slot_value(const struct icf_v *v, uint64_t slot)
{
	const struct icf_vdynreloc *d = icf_v_dynreloc_at(&v->words, slot);
	const uint8_t *p = d || v->claim.in.pic ? NULL : elfrw_image_at(&v->claim.in, slot, 8);
	return !d                                ? p ? elfrw_get64(p) : 0
	       : d->kind == ELFRW_RELOC_SYMBOLIC ? d->value
	       : d->kind == ELFRW_RELOC_RELATIVE ? d->addend
						 : 0;
}

static void note_taken(struct icf_vcode_at *at, uint64_t target, bool loaded)
{
	uint32_t t = shared_at(at->job->v, target);
	if (at->alias || t == ICF_V_NONE || at->job->v->opt->mode != ICF_VERIFY_ALL)
		return;
	struct icf_vtaken *slot = VEC_PUSH(&at->part->taken);
	if (slot)
		*slot = (struct icf_vtaken){ at->index, t, loaded };
	else
		at->part->log.nomem = true;
}

void icf_vcode_note_taken(struct icf_vcode_at *at, uint64_t target)
{
	note_taken(at, target, false);
}

void icf_vcode_note_loaded(struct icf_vcode_at *at, uint64_t place)
{
	const struct elfrw_section *got = at->job->got;
	if (got && place - got->hdr.sh_addr < got->hdr.sh_size)
		note_taken(at, slot_value(at->job->v, place), true);
}

/* The same for a call or jump through a GOT slot: the target is the slot's final value. */
void icf_vcode_note_bound_call(struct icf_vcode_at *at, uint64_t slot, uint64_t end)
{
	const struct icf_v *v = at->job->v;
	uint32_t s = elfrw_image_section_at(&v->claim.in, slot);
	if (at->alias || !s || strncmp(v->claim.in.section[s].name, ".got", 4) != 0)
		return;
	uint32_t t = shared_at(v, slot_value(v, slot));
	if (t == ICF_V_NONE)
		return;
	struct icf_vcall *c = VEC_PUSH(&at->part->call);
	if (c)
		*c = (struct icf_vcall){ at->index, t, end, true, false };
	else
		at->part->log.nomem = true;
}
