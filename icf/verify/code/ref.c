/* ref.c: references of code: which fields of an instruction are references, and does each lead to
 * the image of its old target? */
#include "elfrw/base/search.h"
#include "icf/verify/code/state.h"

size_t icf_vcode_reloc_from(const struct icf_vcode_relocs *rel, uint64_t va)
{
	return LOWER_BOUND(0, rel->n, mid, rel->rela[mid].r_offset < va);
}

/* The copy branches to other code at the same distance from its start: to be proved. */
static bool is_alias(struct icf_vcode_at *at, uint64_t target, uint64_t found)
{
	const struct icf_v *v = at->job->v;
	uint32_t t = icf_v_find(v, target), o = icf_v_find_new(v, found);
	if (!(at->u->flags & ICF_V_FOLDED) || t == ICF_V_NONE || o == ICF_V_NONE)
		return false;
	const struct icf_vunit *x = &v->unit.data[t], *y = &v->unit.data[o];
	/* Only calls of the function's entry.  A reference into the middle of code that is really
	 * folded would show the other function in a stack. */
	if (found - y->body != target - x->old || (target != x->old && !at->alias) ||
	    y->end - y->old != x->end - x->old)
		return false;
	struct icf_valias *slot = VEC_PUSH(&at->part->alias);
	if (slot)
		*slot = (struct icf_valias){ t, o };
	else
		at->part->log.nomem = true;
	return true;
}

static void name(struct icf_vcode_at *at, uint64_t target)
{
	struct icf_vnamed *n = &at->part->named;
	if (!at->loads && n->n_code < sizeof n->code / sizeof *n->code &&
	    icf_v_in_exec(at->job->v, target))
		n->code[n->n_code++] = target;
	if (n->n_data < sizeof n->data / sizeof *n->data)
		n->data[n->n_data++] = target;
}

/* A reference: the field of form FORM at OFF leads to TARGET in IN and to FOUND in OUT. */
void icf_vcode_ref(struct icf_vcode_at *at, uint64_t insn, uint64_t off,
		   const struct elfrw_form *form, bool branch, uint64_t target, uint64_t found)
{
	const struct icf_v *v = at->job->v;
	icf_vcode_compare_to(at, off);
	if (!elfrw_form_same_rest(form, at->a + off, at->b + off))
		icf_vcode_bad(at, ICF_VC_CODE, "instruction around the field of a reference", insn,
			      elfrw_get_le(at->a + off, form->bytes),
			      elfrw_get_le(at->b + off, form->bytes));
	at->same = off + form->bytes;
	enum icf_verify_check check = branch ? ICF_VC_BRANCH : ICF_VC_ADDRESS;
	at->part->log.checked[check]++;
	if (!branch)
		name(at, target);
	uint64_t want;
	if (target >= v->lo && target <= v->hi &&
	    (icf_v_in_exec(v, target) || elfrw_image_section_at(&v->in, target) == 0)) {
		bool known =
			branch ? icf_v_code(v, target, &want) : icf_v_pointer(v, target, &want);
		uint32_t t = known && !branch ? icf_v_find(v, target) : ICF_V_NONE;
		if (t != ICF_V_NONE && v->unit.data[t].old == target)
			__atomic_store_n(&v->unit.data[t].observed, 1, __ATOMIC_RELAXED);
		/* The end of a section (etext) is a place; padding is not.  But compilers let
		 * impossible cases lead to the end of their own function.  That end moves with the
		 * function or with the code behind it. */
		const struct icf_vunit *next =
			at->index + 1 < v->unit.len ? &v->unit.data[at->index + 1] : NULL;
		if (!known && target == at->u->end &&
		    (found == at->u->body + at->size ||
		     (next && found == next->body - (next->old - target))))
			return;
		/* Or to an empty cold part, which is the end of another unit. */
		uint32_t before = known ? ICF_V_NONE : icf_v_find_end(v, target);
		const struct icf_vunit *b = before != ICF_V_NONE ? &v->unit.data[before] : NULL;
		if (b && b->end == target && found == b->body + (b->end - b->old))
			return;
		/* In a section that stays, padding stays, too. */
		const struct icf_vexec *e = &v->exec.data[at->u->exec];
		if (!known && found == target && e->old == e->new && e->old_end == e->new_end)
			return;
		if (!known && icf_v_in_exec(v, target))
			icf_vcode_bad(at, check, "reference to code that is in no unit", insn,
				      target, found);
		else if (found != want && !(branch && known && is_alias(at, target, found)))
			icf_vcode_bad(at, check, branch ? "branch" : "address", insn, want, found);
		else if (!branch && t != ICF_V_NONE && v->unit.data[t].old != target &&
			 !icf_v_stays_aligned(v, target, found))
			icf_vcode_bad(at, ICF_VC_OBSERVED, "alignment of the place it names", insn,
				      target, found);
		return;
	}
	if (!branch && target >= v->frame_lo && target < v->frame_hi) {
		struct icf_vframeref *f = VEC_PUSH(&at->part->frameref);
		if (f)
			*f = (struct icf_vframeref){ at->index, at->u->old + insn, target, found };
		else
			at->part->log.nomem = true;
		return;
	}
	want = icf_v_data(v, target);
	/* 0: the load address of the file. */
	if (!branch && (v->inferred ? target == 0 || elfrw_image_at(&v->in, target, 4) != NULL
				    : icf_v_may_have_word(v, target))) {
		size_t w = icf_v_word_from(v, target);
		if (v->inferred || (w < v->word.len && v->word.data[w].place == target)) {
			struct icf_vbase *base = VEC_PUSH(&at->part->base);
			if (base)
				*base = (struct icf_vbase){ target, at->index, at->loads };
			else
				at->part->log.nomem = true;
		}
	}
	if (found == want)
		return;
	if (branch || !(at->u->flags & ICF_V_FOLDED)) {
		icf_vcode_bad(at, check, branch ? "branch" : "address", insn, want, found);
		return;
	}
	struct icf_vpair *p = VEC_PUSH(&at->part->pair);
	if (p)
		*p = (struct icf_vpair){ at->index, at->u->kept, at->u->old + insn, target, found };
	else
		at->part->log.nomem = true;
}

/* Does relocation R, in the instruction IN at VA, mark a field of it as an address?  *ODD: R stands
 * at no field, so these may not be the instructions. */
bool icf_vcode_is_address(const struct icf_v *v, const struct icf_vcode_relocs *rel,
			  const Elf64_Rela *r, const struct elfrw_insn *in, uint64_t va,
			  const uint8_t *code, const struct elfrw_form **form, bool *odd)
{
	struct elfrw_reloc_desc d = v->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	unsigned at = (unsigned)(r->r_offset - va);
	bool disp = in->disp_size && at == in->disp_off, imm = in->imm_size && at == in->imm_off;
	*odd = false;
	if (d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_GOTPCREL) {
		*odd = d.kind == ELFRW_RELOC_PCREL && !(in->pcrel_size && at == in->pcrel_off);
		return false;
	}
	if (in->pcrel_size && at == in->pcrel_off) {
		*odd = d.kind == ELFRW_RELOC_ABS;
		return false;
	}
	if (!disp && !imm) {
		*odd = d.kind == ELFRW_RELOC_ABS;
		return false;
	}
	unsigned size = disp ? in->disp_size : in->imm_size;
	if (d.kind == ELFRW_RELOC_ABS && d.size < size)
		size = d.size;
	uint8_t number = v->arch->address_form(
		size, size < 8 && (d.sign || disp || d.kind == ELFRW_RELOC_GOTPCREL));
	if (!number)
		return false;
	*form = &v->arch->form[number];
	if (d.kind == ELFRW_RELOC_ABS)
		return true;
	/* A load from the GOT that the linker turned into an immediate; or a stale one
	 * (thread-local storage). */
	Elf64_Sym sym;
	return icf_v_reloc_symbol(&v->in, rel->symtab, r, &sym) &&
	       elfrw_form_read(*form, code + at, 0) == sym.st_value;
}
