/* half.c: addresses that two instructions hold together, a half each (elfrw/arch/form.h).
 *
 * Both files are read side by side, from top to bottom.  A register that gets a high half holds a
 * place in IN and a place in OUT, until it gets another value.  An instruction that adds a low half
 * to this register names an address, in both files: it is checked as any reference.  If the places
 * differ, or if code moved in that page, nothing else may read the register, and control may not
 * leave.  Where the bits of a low half changed, nothing may enter between the halves: that is known
 * when all code and data are read (icf_v_check_halves).
 *
 * A kept relocation that the bits of IN confirm tells the whole address of a half.  Such a half is
 * checked by itself: in OUT its bits must be those of the address's image. */
#include "dwarf/lsda.h"
#include "elfrw/arch/judge.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/verify/code/state.h"
#include <stdlib.h>

static uint64_t page_of(const struct elfrw_form *f)
{
	return (uint64_t)1 << f->page;
}

/* Did code move that a low half could name, if its high half names PLACE? */
static bool any_moved(const struct icf_v *v, const struct elfrw_form *high, uint64_t place)
{
	uint64_t from = high->base == ELFRW_BASE_HIGH ? place - page_of(high) / 2 : place;
	for (uint32_t i = icf_v_find_after(&v->claim, from); i < v->claim.unit.len; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		if (u->old >= from + page_of(high))
			return false;
		if (u->body != u->old || u->entry != u->old)
			return true;
	}
	return false;
}

bool icf_v_names(const struct icf_vclaim *c, struct icf_vhighs *h, const struct elfrw_insn *in,
		 const uint8_t *code, uint64_t *ret)
{
	struct elfrw_half_use use;
	if (!c->arch->judge->half || !c->arch->judge->half(in, code, &use))
		return false;
	const struct elfrw_form *form =
		in->pcrel_size ? &c->arch->form[c->arch->pcrel_form(in)] : NULL;
	if (form && elfrw_form_is_high(form) && use.writes) {
		unsigned r = (unsigned)__builtin_ctz(use.writes);
		h->reg[r].form = form;
		h->reg[r].place = in->target;
		return false;
	}
	if (!use.low || !h->reg[use.base].form)
		return false;
	*ret = elfrw_form_read(&c->arch->form[use.low], code, h->reg[use.base].place);
	return true;
}

/* Is code at TO, and did it move? */
static bool moved(const struct icf_v *v, uint64_t to)
{
	uint64_t now;
	return icf_v_in_exec(&v->claim, to) && (!icf_v_pointer(&v->claim, to, &now) || now != to);
}

/* The only relocation at VA, or NULL; *SYM: its symbol; *TO: the place that it names.  If there are
 * two, gold has put one of them to a wrong place. */
static const Elf64_Rela *reloc_at(const struct icf_vcode_at *at, uint64_t va, Elf64_Sym *sym,
				  uint64_t *to)
{
	const struct elfrw_relocs *rel = &at->job->rel[at->u->exec];
	size_t r = elfrw_relocs_from(rel, va);
	if (r == rel->n || rel->rela[r].r_offset != va ||
	    (r + 1 < rel->n && rel->rela[r + 1].r_offset == va) ||
	    !elfrw_reloc_symbol(&at->job->v->claim.in, rel->symtab, &rel->rela[r], sym))
		return NULL;
	*to = sym->st_value + (uint64_t)rel->rela[r].r_addend;
	return &rel->rela[r];
}

bool icf_vcode_widened(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_arch *arch = at->job->v->claim.arch;
	uint64_t n = arch->fill_size, to, high_to, low_to;
	if (!arch->judge->widened || pos < at->same + n ||
	    !arch->judge->widened(x->code - n, at->b + pos - n, x->va - n + at->moved, &to))
		return false;
	/* Whoever enters at the second instruction brings the page of the same address: that is
	 * what the relocations say of the code as it was before the linker relaxed it. */
	Elf64_Sym high_sym, low_sym;
	const Elf64_Rela *high = reloc_at(at, x->va - n, &high_sym, &high_to),
			 *low = reloc_at(at, x->va, &low_sym, &low_to);
	struct elfrw_reloc_desc h = arch->reloc(high ? (uint32_t)ELF64_R_TYPE(high->r_info) : 0),
				l = arch->reloc(low ? (uint32_t)ELF64_R_TYPE(low->r_info) : 0);
	if (!high || !low || ELF64_R_SYM(high->r_info) != ELF64_R_SYM(low->r_info) ||
	    high_to != low_to || arch->form[h.form].base != ELFRW_BASE_PAGE ||
	    arch->form[l.form].base != ELFRW_BASE_IN_PAGE)
		icf_vcode_bad(at, ICF_VC_ADDRESS, "two instructions for one, which were not two",
			      pos, elfrw_get32(x->code), elfrw_get32(at->b + pos));
	icf_vcode_compare_to(at, pos - n);
	at->same = pos + x->in.len;
	struct icf_vref r = { .insn = pos, .off = pos, .target = x->in.target, .found = to };
	icf_vcode_leads(at, r);
	return true;
}

/* Is SYM in data that has a byte of [LOW, LOW + SIZE)?  Its address is then the only thing to
 * trust: addends of merged strings are stale. */
static bool is_data_there(const struct icf_v *v, const Elf64_Sym *sym, uint64_t low, uint64_t size)
{
	const struct elfrw_image *img = &v->claim.in;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= img->n_sections)
		return false;
	const Elf64_Shdr *sh = &img->section[sym->st_shndx].hdr;
	return (sh->sh_flags & (SHF_ALLOC | SHF_EXECINSTR)) == SHF_ALLOC &&
	       sh->sh_addr < low + size && low <= sh->sh_addr + sh->sh_size;
}

/* Does a relocation tell what the half H, from address VA on, names together with its low half? */
static void find_name(const struct icf_vcode_at *at, struct icf_vhalf *h, uint64_t va)
{
	uint64_t size = page_of(h->high),
		 low = h->high->base == ELFRW_BASE_HIGH ? h->in - size / 2 : h->in;
	Elf64_Sym sym;
	h->named = reloc_at(at, va, &sym, &h->name) != NULL;
	if (h->named && is_data_there(at->job->v, &sym, low, size))
		h->name = at->job->v->claim.in.section[sym.st_shndx].hdr.sh_addr;
	else
		h->named &= h->name >= low && h->name - low < size;
}

/* Could a slot of the GOT lie in the page of FORM from PAGE on? */
static bool may_hold_slots(const struct icf_vclaim *c, const struct elfrw_form *form, uint64_t page)
{
	for (uint32_t i = 1; i < c->in.n_sections; i++) {
		const Elf64_Shdr *sh = &c->in.section[i].hdr;
		if ((sh->sh_flags & SHF_ALLOC) && (sh->sh_flags & SHF_WRITE) &&
		    sh->sh_addr < page + page_of(form) && page < sh->sh_addr + sh->sh_size)
			return true;
	}
	return false;
}

/* The kind of the relocation D of a field of FORM.  Linkers turn a load from the GOT into an
 * addition, whose number is not scaled, and keep the relocations. */
static enum elfrw_reloc_kind kind_now(const struct icf_vclaim *c, const struct elfrw_reloc_desc *d,
				      const struct elfrw_form *form, uint64_t page)
{
	if (d->kind != ELFRW_RELOC_GOTPCREL || !d->form)
		return d->kind;
	if (form->base == ELFRW_BASE_PAGE)
		return may_hold_slots(c, form, page) ? d->kind : ELFRW_RELOC_PCREL;
	return form->shift == 0 && c->arch->form[d->form].shift ? ELFRW_RELOC_LOW : d->kind;
}

/* Does a relocation tell that the field of FORM at POS, whose page is PAGE if it is a high half, is
 * a half of the address *TO of code? */
static bool is_told(const struct icf_vcode_at *at, const struct elfrw_form *form, uint64_t pos,
		    uint64_t page, uint64_t *to)
{
	const struct icf_vclaim *c = &at->job->v->claim;
	Elf64_Sym sym;
	const Elf64_Rela *r = reloc_at(at, at->u->old + pos, &sym, to);
	uint64_t rest = page_of(form) - 1;
	if (!r || sym.st_shndx == SHN_UNDEF || sym.st_shndx >= c->in.n_sections ||
	    !(c->in.section[sym.st_shndx].hdr.sh_flags & SHF_EXECINSTR) || !icf_v_in_exec(c, *to))
		return false;
	struct elfrw_reloc_desc d = c->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	enum elfrw_reloc_kind kind = kind_now(c, &d, form, page);
	if (form->base == ELFRW_BASE_PAGE)
		return kind == ELFRW_RELOC_PCREL && d.form &&
		       c->arch->form[d.form].base == ELFRW_BASE_PAGE && (*to & ~rest) == page;
	return form->base == ELFRW_BASE_IN_PAGE && kind == ELFRW_RELOC_LOW &&
	       elfrw_form_number(form, at->a + pos) << form->shift == (*to & rest);
}

/* The field of FORM at POS holds a half of the address TO; OUT: what it names there, all but the
 * bits of the other half. */
static void check_told(struct icf_vcode_at *at, const struct icf_vcode_insn *x,
		       const struct elfrw_form *form, uint64_t pos, uint64_t to, uint64_t out)
{
	uint64_t rest = page_of(form) - 1, now = to;
	at->own |= to - at->u->old <= at->size;
	bool high = form->base == ELFRW_BASE_PAGE;
	icf_v_pointer(&at->job->v->claim, to, &now);
	struct icf_vref r = { .insn = pos, .off = pos, .form = form, .target = to };
	r.found = high ? out | (now & rest) : (now & ~rest) | out;
	at->loads = !high && (x->in.flags & ELFRW_INSN_MEM);
	at->label |= !high && !at->loads && to != at->u->old && to - at->u->old < at->size &&
		     !icf_vcode_literals(at, to);
	icf_vcode_ref(at, r);
	if (at->loads)
		at->sum = icf_vcode_loaded(at, pos, to);
	at->loads = false;
}

/* Something unknown uses the half in R.  If relocations tell what the halves name, it is enough
 * that this did not move. */
static void escape(struct icf_vcode_at *at, struct icf_vhalf *h)
{
	const struct icf_v *v = at->job->v;
	if (h->high && !h->told &&
	    (h->in != h->out || (h->named ? moved(v, h->name) : any_moved(v, h->high, h->in))))
		icf_vcode_bad(at, ICF_VC_ADDRESS, "half of an address, used in an unknown way",
			      h->insn, h->in, h->out);
}

/* The register of H gets another value. */
static void forget(struct icf_vcode_at *at, struct icf_vhalf *h)
{
	struct icf_vspan *s = h->high && h->last ? VEC_PUSH(&at->part->span) : NULL;
	if (s)
		*s = (struct icf_vspan){ at->index, (uint32_t)h->insn, (uint32_t)h->last };
	else if (h->high && h->last)
		at->part->log.nomem = true;
	h->high = NULL;
}

static void forget_all(struct icf_vcode_at *at)
{
	for (unsigned r = 0; r < ICF_V_REGS; r++)
		if (at->part->half[r].high) {
			escape(at, &at->part->half[r]);
			forget(at, &at->part->half[r]);
		}
}

static void check_low(struct icf_vcode_at *at, struct icf_vhalf *h, const struct icf_vcode_insn *x,
		      const struct elfrw_form *form, uint64_t pos)
{
	struct icf_vref r = { .insn = pos, .off = pos, .form = form };
	r.target = elfrw_form_read(form, at->a + pos, h->in);
	r.found = elfrw_form_read(form, at->b + pos, h->out);
	Elf64_Sym sym;
	uint64_t to;
	const Elf64_Rela *rel = reloc_at(at, x->va, &sym, &to);
	/* A relocation says that the base holds the high half of this address on every path. */
	bool low = rel && at->job->v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(rel->r_info)).kind ==
				  ELFRW_RELOC_LOW;
	if (!low && elfrw_form_number(form, at->a + pos) != elfrw_form_number(form, at->b + pos))
		h->last = pos;
	at->own |= r.target - at->u->old <= at->size;
	at->loads = (x->in.flags & ELFRW_INSN_MEM) != 0;
	at->label |= !at->loads && r.target != at->u->old && r.target - at->u->old < at->size &&
		     !icf_vcode_literals(at, r.target);
	at->sum = at->loads ? icf_vcode_loaded(at, pos, r.target) : r.target;
	icf_vcode_ref(at, r);
	at->loads = false;
}

/* The low half in X belongs to a high half that is not known.  If a relocation shows it, its bits
 * are right only if what it names did not move. */
static void check_lone(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_arch *arch = at->job->v->claim.arch;
	Elf64_Sym sym;
	uint64_t to;
	const Elf64_Rela *r = reloc_at(at, x->va, &sym, &to);
	if (r && arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)).kind == ELFRW_RELOC_LOW &&
	    moved(at->job->v, to))
		icf_vcode_bad(at, ICF_VC_ADDRESS, "low half of an address, used in an unknown way",
			      pos, to, to);
}

static void set_high(struct icf_vcode_at *at, const struct icf_vcode_insn *x,
		     const struct elfrw_form *form, uint64_t pos, unsigned reg)
{
	uint64_t off = pos + x->in.pcrel_off, to;
	icf_vcode_compare_to(at, off);
	if (!elfrw_form_same_rest(form, at->a + off, at->b + off))
		icf_vcode_bad(at, ICF_VC_CODE, "instruction around the half of an address", pos,
			      elfrw_get_le(at->a + off, form->bytes),
			      elfrw_get_le(at->b + off, form->bytes));
	at->same = off + form->bytes;
	uint64_t from = x->va + (at->job->v->claim.arch->from_end ? x->in.len : 0);
	struct icf_vhalf *h = &at->part->half[reg];
	*h = (struct icf_vhalf){ .high = form,
				 .insn = pos,
				 .in = elfrw_form_read(form, at->a + off, from),
				 .out = elfrw_form_read(form, at->b + off, from + at->moved) };
	find_name(at, h, x->va + x->in.pcrel_off);
	h->told = is_told(at, form, off, h->in, &to);
	if (!h->told)
		return;
	check_told(at, x, form, off, to, h->out);
	/* The address of a page may have no low half: linkers turn an addition of nothing into a
	 * no-op.  Whoever else uses the register takes its number for the address. */
	h->told = (to & (page_of(form) - 1)) != 0;
}

/* X, POS bytes from the unit's start, adds a low half to the high half right before it, in its
 * register. */
static void note_whole(struct icf_vcode_at *at, const struct icf_vcode_insn *x,
		       const struct elfrw_half_use *use, uint64_t pos)
{
	const struct icf_vhalf *h = &at->part->half[use->base];
	if (!h->high || (x->in.flags & ELFRW_INSN_MEM) || use->reads ||
	    use->writes != UINT32_C(1) << use->base || h->insn + x->in.len != pos)
		return;
	at->whole_from = h->insn;
	at->whole_to = pos + x->in.len;
	at->whole_reg = use->base;
}

bool icf_vcode_goes_to_whole(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_judge *judge = at->job->v->claim.arch->judge;
	if (x->in.kind != ELFRW_INSN_JMP_IND || !judge->half || at->whole_to != pos || !pos ||
	    judge->goes_to(&x->in) != at->whole_reg)
		return false;
	struct icf_vwhole *slot = VEC_PUSH(&at->part->whole);
	if (slot)
		*slot = (struct icf_vwhole){ at->whole_from, pos };
	else
		at->part->log.nomem = true;
	return slot != NULL;
}

void icf_vcode_half(struct icf_vcode_at *at, const struct icf_vcode_insn *x, uint64_t pos)
{
	const struct elfrw_arch *arch = at->job->v->claim.arch;
	struct elfrw_half_use use;
	at->sum = 0;
	if (!arch->judge->half(&x->in, x->code, &use)) {
		forget_all(at);
		use = (struct elfrw_half_use){ 0 };
	}
	if (use.low)
		note_whole(at, x, &use, pos);
	uint64_t to;
	if (use.low && is_told(at, &arch->form[use.low], pos, 0, &to))
		check_told(at, x, &arch->form[use.low], pos, to,
			   elfrw_form_number(&arch->form[use.low], at->b + pos)
				   << arch->form[use.low].shift);
	else if (use.low && at->part->half[use.base].high)
		check_low(at, &at->part->half[use.base], x, &arch->form[use.low], pos);
	else if (use.low)
		check_lone(at, x, pos);
	for (unsigned r = 0; r < ICF_V_REGS; r++)
		if ((use.reads >> r & 1) && at->part->half[r].high) {
			escape(at, &at->part->half[r]);
			forget(at, &at->part->half[r]);
		}
	if (x->in.kind != ELFRW_INSN_OTHER && x->in.kind != ELFRW_INSN_NOP)
		forget_all(at);
	for (unsigned r = 0; r < ICF_V_REGS; r++)
		if (use.writes >> r & 1)
			forget(at, &at->part->half[r]);
	const struct elfrw_form *form =
		x->in.pcrel_size ? &arch->form[arch->pcrel_form(&x->in)] : NULL;
	if (!form || !elfrw_form_is_high(form))
		return;
	if (use.writes && !(use.writes & (use.writes - 1)))
		set_high(at, x, form, pos, (unsigned)__builtin_ctz(use.writes));
	else
		icf_vcode_bad(at, ICF_VC_CODE, "half of an address in no register", pos, 0, 0);
}

void icf_vcode_note_entered(struct icf_vcode_at *at, uint64_t target)
{
	if (!at->job->v->claim.arch->judge->half)
		return;
	uint64_t *slot = VEC_PUSH(&at->part->entered.v);
	if (slot)
		*slot = target;
	else
		at->part->log.nomem = true;
}

/* A branch in the unit leads to the offset TO in it. */
void icf_vcode_note_inner(struct icf_vcode_at *at, uint64_t to)
{
	uint64_t *slot = VEC_PUSH(&at->part->inner);
	if (slot)
		*slot = to;
	else
		at->part->log.nomem = true;
}

/* The unit ends. */
void icf_vcode_end_halves(struct icf_vcode_at *at)
{
	struct icf_vcode_part *part = at->part;
	/* Where the code itself is no longer there, the low halves of data differ, too.  If it has
	 * no address of its own, a jump's target comes from data or from other code, which is
	 * looked at in icf_v_check_halves(). */
	bool computes = at->u->computes && (at->own || !(at->u->flags & ICF_V_FOLDED));
	forget_all(at);
	/* Who enters between comes with another address. */
	for (size_t i = 0; i < part->inner.len; i++) {
		uint64_t to = part->inner.data[i];
		size_t w = LOWER_BOUND(0, part->whole.len, mid, part->whole.data[mid].to < to);
		computes |= w < part->whole.len && part->whole.data[w].from < to;
	}
	for (size_t s = part->unit_span; s < part->span.len; s++) {
		const struct icf_vspan *x = &part->span.data[s];
		bool entered = computes;
		for (size_t i = 0; i < part->inner.len && !entered; i++)
			entered = part->inner.data[i] > x->from && part->inner.data[i] <= x->to;
		if (entered)
			icf_vcode_bad(at, ICF_VC_ADDRESS, "entry between the halves of an address",
				      x->from, at->u->old + x->from, at->u->old + x->to);
	}
}

/* --- when all code and data are read --- */

static bool add(uint64_t va, const struct icf_v *v, struct icf_ventries *ret)
{
	uint64_t *slot = icf_v_in_exec(&v->claim, va) ? VEC_PUSH(&ret->v) : NULL;
	if (slot)
		*slot = va;
	return slot || !icf_v_in_exec(&v->claim, va);
}

static struct elfrw_err *add_pads(const struct icf_v *v, struct icf_ventries *ret)
{
	struct dwr_lsda lsda = { 0 };
	struct elfrw_err *err = NULL;
	for (size_t k = 0; k < v->claim.cfi_in.fde.len && !err; k++) {
		const struct dwr_fde *f = &v->claim.cfi_in.fde.data[k];
		if (!f->lsda || f->pc_end <= f->pc_begin)
			continue;
		err = dwr_lsda_read(&lsda, &v->claim.in, f->lsda, f->pc_begin, f->pc_end);
		for (size_t s = 0; s < lsda.site.len && !err; s++)
			if (!add(lsda.site.data[s].landing_pad, v, ret))
				err = &elfrw_err_nomem;
	}
	dwr_lsda_deinit(&lsda);
	return err;
}

struct elfrw_err *icf_v_check_halves(struct icf_v *v)
{
	struct icf_ventries *e = &v->entered;
	bool ok = true;
	if (!v->span.len)
		return NULL;
	for (size_t i = 0; i < v->words.word.len && ok; i++)
		ok = add(v->words.word.data[i].target, v, e);
	struct elfrw_err *err = ok ? add_pads(v, e) : &elfrw_err_nomem;
	if (!err && e->v.len)
		qsort(e->v.data, e->v.len, sizeof *e->v.data, elfrw_u64_order);
	for (size_t i = 0; i < v->span.len && !err; i++) {
		const struct icf_vspan *s = &v->span.data[i];
		uint64_t old = v->claim.unit.data[s->unit].old;
		size_t k = LOWER_BOUND(0, e->v.len, mid, e->v.data[mid] <= old + s->from);
		if (k == e->v.len || e->v.data[k] > old + s->to)
			continue;
		char name[200];
		icf_vlog_bad(&v->log, ICF_VC_ADDRESS,
			     "entry between the halves of an address: %s, at 0x%llx",
			     icf_v_where(&v->claim, old + s->from, name), ICF_VX(e->v.data[k]));
	}
	return err;
}
