/* ref.c: references of code: which fields of an instruction are references, and does each lead to
 * the image of its old target? */
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <string.h>

/* The copy branches to other code at the same distance from its start: to be proved. */
static bool is_alias(struct icf_vcode_at *at, uint64_t target, uint64_t found)
{
	const struct icf_v *v = at->job->v;
	uint32_t t = icf_v_find(&v->claim, target), o = icf_v_find_new(&v->claim, found);
	if (!(at->u->flags & ICF_V_FOLDED) || t == ICF_V_NONE || o == ICF_V_NONE)
		return false;
	const struct icf_vunit *x = &v->claim.unit.data[t], *y = &v->claim.unit.data[o];
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

/* The address that the global offset table of IN has at SLOT; SLOT: none. */
static uint64_t in_got(const struct icf_v *v, uint64_t slot)
{
	const uint32_t s = elfrw_image_section_at(&v->claim.in, slot);
	const uint8_t *p = elfrw_image_at(&v->claim.in, slot, 8);
	if (!p || strncmp(v->claim.in.section[s].name, ".got", 4) != 0)
		return slot;
	const struct icf_vdynreloc *d = icf_v_dynreloc_at(&v->words, slot);
	if (d)
		return d->kind == ELFRW_RELOC_RELATIVE ? d->addend : slot;
	return v->claim.in.pic ? slot : elfrw_get64(p);
}

static void name(struct icf_vcode_at *at, uint64_t target)
{
	struct icf_vnamed *n = &at->part->named;
	/* Only distances in absolute symbols count from there. */
	const uint64_t loaded =
		at->loads && at->job->v->absolute.v.len ? in_got(at->job->v, target) : target;
	if (loaded != target && n->n_code < sizeof n->code / sizeof *n->code &&
	    icf_v_in_exec(&at->job->v->claim, loaded))
		n->code[n->n_code++] = loaded;
	if (!at->loads && n->n_code < sizeof n->code / sizeof *n->code &&
	    icf_v_in_exec(&at->job->v->claim, target))
		n->code[n->n_code++] = target;
	icf_v_name_data(n, target, !at->loads && !icf_v_in_exec(&at->job->v->claim, target));
}

/* --- what a reference into code may lead to in OUT ---
 *
 * Each of these functions is a reason to accept what was found. */

/* The image of its target. */
static bool is_image(struct icf_vcode_at *at, const struct icf_vref *r)
{
	return r->found == r->want && (r->known || !icf_v_in_exec(&at->job->v->claim, r->target));
}

/* Control that gets to the end of unit K and runs through padding into the next unit must do so as
 * before: not all assembler leads there in impossible cases only. */
static bool goes_on(const struct icf_v *v, uint32_t k)
{
	const struct icf_vunit *u = &v->claim.unit.data[k], *next = u + 1;
	const struct icf_vexec *e = &v->claim.exec.data[u->exec];
	if (!icf_vcode_runs_on(&v->claim, k) || next->old == u->end)
		return true;
	const struct icf_vexec *o = icf_v_out_exec(&v->claim, next->body);
	uint64_t gap = next->old - u->end, end = u->body + (u->end - u->old);
	return !((u->flags | next->flags) & ICF_V_FOLDED) && next->body == end + gap && o &&
	       end >= o->new && o->new_data &&
	       !memcmp(e->old_data + (u->end - e->old), o->new_data + (end - o->new), gap);
}

/* The end of its own function: compilers let impossible cases lead there.  That end moves with the
 * function or with the code behind it. */
static bool is_own_end(struct icf_vcode_at *at, const struct icf_vref *r)
{
	const struct icf_v *v = at->job->v;
	const struct icf_vunit *next =
		at->index + 1 < v->claim.unit.len ? &v->claim.unit.data[at->index + 1] : NULL;
	return !r->known && r->target == at->u->end && (!r->branch || goes_on(v, at->index)) &&
	       (r->found == at->u->body + at->size ||
		(next && r->found == next->body - (next->old - r->target)));
}

/* The end of another unit: an empty cold part is there. */
static bool is_empty_part(struct icf_vcode_at *at, const struct icf_vref *r)
{
	const struct icf_v *v = at->job->v;
	uint32_t before = r->known ? ICF_V_NONE : icf_v_find_end(&v->claim, r->target);
	const struct icf_vunit *b = before != ICF_V_NONE ? &v->claim.unit.data[before] : NULL;
	return b && b->end == r->target && r->found == b->body + (b->end - b->old) &&
	       (!r->branch || goes_on(v, before));
}

/* Padding that stays, with what follows it.  The fold did not understand the code around the
 * reference, or it would be a part of the unit behind it. */
static bool is_padding_that_stays(struct icf_vcode_at *at, const struct icf_vref *r)
{
	return !r->known && r->found == r->target &&
	       icf_vcode_padding_stays(&at->job->v->claim, r->target, r->branch);
}

/* Code that is the same as the target's: noted, and proved later. */
static bool is_same_code(struct icf_vcode_at *at, const struct icf_vref *r)
{
	return r->branch && r->known && is_alias(at, r->target, r->found);
}

/* In this order: the last one makes an assumption, which the others spare. */
static bool (*const acceptable[])(struct icf_vcode_at *, const struct icf_vref *) = {
	is_image, is_own_end, is_empty_part, is_padding_that_stays, is_same_code,
};

static bool is_acceptable(struct icf_vcode_at *at, const struct icf_vref *r)
{
	for (size_t i = 0; i < sizeof acceptable / sizeof *acceptable; i++)
		if (acceptable[i](at, r))
			return true;
	return false;
}

/* Is it the label of a switch, at the end of its function?  Code behind that is not meant. */
static bool is_switch_end(struct icf_vcode_at *at, const struct icf_vref *r)
{
	const struct elfrw_judge *judge = at->job->v->claim.arch->judge;
	return !r->branch && r->target == at->u->end && judge->ends_in_switch &&
	       judge->ends_in_switch(at->a, at->size) == at->size - r->insn;
}

/* Does the relocation of R, an address, name a function in front of the one that it leads to, and
 * did their distance change? */
static bool loses_tag(const struct icf_vcode_at *at, const struct icf_vref *r)
{
	const struct icf_v *v = at->job->v;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	uint64_t place = at->u->old + r->off;
	size_t k = elfrw_relocs_from(rel, place);
	Elf64_Sym sym;
	return k < rel->n && rel->rela[k].r_offset == place &&
	       elfrw_reloc_symbol(&v->claim.in, rel->symtab, &rel->rela[k], &sym) &&
	       icf_v_loses_tag(&v->claim, &sym, r->target);
}

static void check_code_ref(struct icf_vcode_at *at, struct icf_vref *r)
{
	const struct icf_v *v = at->job->v;
	enum icf_verify_check check = r->branch ? ICF_VC_BRANCH : ICF_VC_ADDRESS;
	if (is_switch_end(at, r)) {
		r->want = at->u->body + at->size;
		if (r->found != r->want)
			icf_vcode_bad(at, check, "address of the end, from which a switch counts",
				      r->insn, r->want, r->found);
		return;
	}
	icf_vcode_note_entered(at, r->target);
	if (icf_v_removed(&v->claim, icf_v_find(&v->claim, r->target))) {
		icf_vcode_bad(at, ICF_VC_REMOVED, "reference to code that was removed", r->insn,
			      r->target, r->found);
		return;
	}
	r->known = r->branch ? icf_v_code(&v->claim, r->target, &r->want)
			     : icf_v_pointer(&v->claim, r->target, &r->want);
	uint32_t t = r->known && !r->branch ? icf_v_find(&v->claim, r->target) : ICF_V_NONE;
	if (t != ICF_V_NONE && v->claim.unit.data[t].old == r->target) {
		__atomic_store_n(&v->claim.unit.data[t].observed, 1, __ATOMIC_RELAXED);
		__atomic_store_n(&v->claim.unit.data[t].taken, 1, __ATOMIC_RELAXED);
		icf_vcode_note_taken(at, r->target);
	}
	icf_vcode_note_outside(at, r->target);
	/* Pages of code get their permissions by such an address. */
	if (!r->branch && !icf_v_in_exec(&v->claim, r->target) && !(r->target & 4095) &&
	    (r->found & 4095))
		icf_vcode_bad(at, ICF_VC_OBSERVED, "end of the code, which is the end of a page",
			      r->insn, r->target, r->found);
	if (is_acceptable(at, r)) {
		if (icf_vcode_literals(at, r->target)) {
			unsigned size = at->loads ? icf_vcode_load_size(at, r->insn) : 0;
			if (size && !(r->target & (size - 1)) && (r->found & (size - 1)))
				icf_vcode_bad(at, ICF_VC_OBSERVED,
					      "alignment of a literal that it loads", r->insn,
					      r->target, r->found);
		} else if (t != ICF_V_NONE && v->claim.unit.data[t].old != r->target &&
			   !icf_v_stays_aligned(&v->claim, r->target, r->found))
			icf_vcode_bad(at, ICF_VC_OBSERVED, "alignment of the place it names",
				      r->insn, r->target, r->found);
		else if (!r->branch && !at->loads && t != at->index &&
			 (!icf_v_keeps_tag(&v->claim, r->target, r->found) || loses_tag(at, r)))
			icf_vcode_bad(at, ICF_VC_OBSERVED, "tag of the function it names", r->insn,
				      r->target, r->found);
	} else if (!r->known && icf_v_in_exec(&v->claim, r->target))
		icf_vcode_bad(at, check,
			      r->found == r->target
				      ? "reference to padding that changed, or leads elsewhere now"
				      : "reference to code that is in no unit",
			      r->insn, r->target, r->found);
	else
		icf_vcode_bad(at, check, r->branch ? "branch" : "address", r->insn, r->want,
			      r->found);
}

/* Does a kept relocation of the field at VA name something in .eh_frame? */
static bool names_frames(const struct icf_vcode_at *at, uint64_t va)
{
	const struct elfrw_image *img = &at->job->v->claim.in;
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	bool found = false;
	for (size_t r = elfrw_relocs_from(rel, va); r < rel->n && rel->rela[r].r_offset == va;
	     r++) {
		Elf64_Sym sym;
		if (elfrw_reloc_symbol(img, rel->symtab, &rel->rela[r], &sym) &&
		    sym.st_shndx != SHN_UNDEF && sym.st_shndx < img->n_sections)
			found |= strcmp(img->section[sym.st_shndx].name, ".eh_frame") == 0;
	}
	return found;
}

/* Notes a reference into an unwind table, which is checked with the table. */
static void note_frame_ref(struct icf_vcode_at *at, const struct icf_vref *r)
{
	struct icf_vframeref *f = VEC_PUSH(&at->part->frameref);
	if (f)
		*f = (struct icf_vframeref){ at->index, names_frames(at, at->u->old + r->off),
					     at->u->old + r->insn, r->target, r->found };
	else
		at->part->log.nomem = true;
}

void icf_vcode_note_base(struct icf_vcode_at *at, uint64_t target)
{
	const struct icf_v *v = at->job->v;
	/* 0: the load address of the file. */
	if (!(v->claim.inferred ? target == 0 || elfrw_image_at(&v->claim.in, target, 4) != NULL
				: icf_v_may_have_word(&v->words, target)))
		return;
	size_t w = icf_v_word_from(&v->words, target);
	if (!v->claim.inferred && (w >= v->words.word.len || v->words.word.data[w].place != target))
		return;
	struct icf_vbase *base = VEC_PUSH(&at->part->base);
	if (base)
		*base = (struct icf_vbase){ target, at->index, at->loads };
	else
		at->part->log.nomem = true;
}

static void check_data_ref(struct icf_vcode_at *at, struct icf_vref *r)
{
	const struct icf_v *v = at->job->v;
	r->want = icf_v_data(&v->claim, r->target);
	if (r->target >= v->lost_lo && r->target <= v->lost_hi) {
		struct icf_vobjref *slot = VEC_PUSH(&at->part->objref);
		if (slot)
			*slot = (struct icf_vobjref){ at->u->old + r->off, r->target };
		else
			at->part->log.nomem = true;
	}
	if (!r->branch) {
		icf_vcode_note_base(at, r->target);
		icf_vcode_note_loaded(at, r->target);
	}
	if (r->found == r->want)
		return;
	if (r->branch || !(at->u->flags & ICF_V_FOLDED)) {
		icf_vcode_bad(at, r->branch ? ICF_VC_BRANCH : ICF_VC_ADDRESS,
			      r->branch ? "branch" : "address", r->insn, r->want, r->found);
		return;
	}
	struct icf_vpair *p = VEC_PUSH(&at->part->pair);
	if (p)
		*p = (struct icf_vpair){ at->index, at->u->kept, at->u->old + r->insn, r->target,
					 r->found };
	else
		at->part->log.nomem = true;
}

void icf_vcode_ref(struct icf_vcode_at *at, struct icf_vref r)
{
	const uint8_t *a = at->a + r.off, *b = at->b + r.off;
	icf_vcode_compare_to(at, r.off);
	if (!elfrw_form_same_rest(r.form, a, b))
		icf_vcode_bad(at, ICF_VC_CODE, "instruction around the field of a reference",
			      r.insn, elfrw_get_le(a, r.form->bytes),
			      elfrw_get_le(b, r.form->bytes));
	at->same = r.off + r.form->bytes;
	icf_vcode_leads(at, r);
}

void icf_vcode_leads(struct icf_vcode_at *at, struct icf_vref r)
{
	const struct icf_v *v = at->job->v;
	at->part->log.checked[r.branch ? ICF_VC_BRANCH : ICF_VC_ADDRESS]++;
	if (!r.branch)
		name(at, r.target);
	if (r.target >= v->claim.lo && r.target <= v->claim.hi &&
	    (icf_v_in_exec(&v->claim, r.target) ||
	     elfrw_image_section_at(&v->claim.in, r.target) == 0))
		check_code_ref(at, &r);
	else if (!r.branch && r.target >= v->claim.frame_lo && r.target < v->claim.frame_hi)
		note_frame_ref(at, &r);
	else
		check_data_ref(at, &r);
}

/* Does relocation R, in the instruction INSN, mark a field of it as an address?  *ODD: R stands
 * at no field, so these may not be the instructions. */
bool icf_vcode_is_address(const struct icf_v *v, const struct elfrw_relocs *rel,
			  const Elf64_Rela *r, const struct icf_vcode_insn *insn,
			  const struct elfrw_form **form, bool *odd)
{
	const struct elfrw_insn *in = &insn->in;
	struct elfrw_reloc_desc d = v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	unsigned at = (unsigned)(r->r_offset - insn->va);
	bool disp = in->disp_size && at == in->disp_off, imm = in->imm_size && at == in->imm_off;
	*odd = false;
	if (d.kind != ELFRW_RELOC_ABS && d.kind != ELFRW_RELOC_GOTPCREL) {
		/* Of packed fields, the instruction tells all. */
		*odd = d.kind == ELFRW_RELOC_PCREL && !(in->pcrel_size && at == in->pcrel_off) &&
		       !d.form;
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
	uint8_t number = v->claim.arch->address_form(
		size, size < 8 && (d.sign || disp || d.kind == ELFRW_RELOC_GOTPCREL));
	if (!number)
		return false;
	*form = &v->claim.arch->form[number];
	if (d.kind == ELFRW_RELOC_ABS)
		return true;
	/* A load from the GOT that the linker turned into an immediate; or a stale one
	 * (thread-local storage). */
	Elf64_Sym sym;
	return elfrw_reloc_symbol(&v->claim.in, rel->symtab, r, &sym) &&
	       elfrw_form_read(*form, insn->code + at, 0) == sym.st_value;
}
