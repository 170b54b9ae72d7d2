/* code_reloc.c: what each kept relocation of code means for its instruction.
 *
 * After a linker's relaxations a kept relocation has a stale type and place.  So it answers only
 * one question: is the number in this field an address?  An absolute relocation says so.  A
 * relocation for a GOT slot says so if the linker turned the load into an immediate.  A relocation
 * that no field explains says that these bytes are not the instructions that they look like. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/symtab.h"
#include "icf/refs/code_reloc.h"
#include <stdlib.h>
#include <string.h>

static bool symbol_in_code(const struct icf_program *prog, const Elf64_Sym *sym)
{
	return sym->st_shndx != SHN_UNDEF && sym->st_shndx < prog->img->n_sections &&
	       (prog->img->section[sym->st_shndx].hdr.sh_flags & SHF_EXECINSTR);
}

/* The offset of relocation R in the table of S's section. */
static uint64_t offset_of(const struct icf_insn_site *s, const Elf64_Rela *r)
{
	return (uint64_t)((const char *)r - (const char *)s->rel->rela);
}

/* Judges kinds that say nothing about any field, or that forbid moving the code.  *DONE: no further
 * test is needed. */
static struct elfrw_err *judge_kind(const struct icf_insn_site *s, const Elf64_Rela *r,
				    const struct elfrw_reloc_desc *d, enum icf_reloc_verdict *ret,
				    bool *done)
{
	Elf64_Sym data;
	*done = true;
	*ret = ICF_RELOC_IGNORE;
	if (!d->name)
		return elfrw_error_at(s->rel->name, offset_of(s, r), "unknown relocation type %u",
				      (unsigned)ELF64_R_TYPE(r->r_info));
	switch (d->kind) {
	case ELFRW_RELOC_NONE:
	case ELFRW_RELOC_TLS: return NULL;
	case ELFRW_RELOC_GOTREL:
		/* The distance of data from the GOT; neither moves. */
		if (elfrw_reloc_symbol(s->prog->img, s->rel->symtab, r, &data) &&
		    data.st_shndx != SHN_UNDEF && data.st_shndx < s->prog->img->n_sections &&
		    !symbol_in_code(s->prog, &data))
			return NULL;
		/* fall through */
	case ELFRW_RELOC_HARD:
		return elfrw_error_at(s->rel->name, offset_of(s, r),
				      "%s in code is not supported (large or medium code model?)",
				      d->name);
	case ELFRW_RELOC_ABS:
	case ELFRW_RELOC_PCREL:
	case ELFRW_RELOC_LOW:
	case ELFRW_RELOC_PART:
	case ELFRW_RELOC_GOTPCREL: *done = false; return NULL;
	default: *ret = ICF_RELOC_DYNAMIC; return NULL;
	}
}

/* A relaxed TLS sequence keeps its call's relocation, now at any place in other instructions. */
static bool is_relaxed_call(const struct icf_insn_site *s, const Elf64_Sym *sym)
{
	const struct elfrw_image *img = s->prog->img;
	const char *name =
		sym->st_name ? elfrw_image_string(img, img->section[s->rel->symtab].hdr.sh_link,
						  sym->st_name)
			     : NULL;
	return name && strncmp(name, "__tls_get_addr", 14) == 0;
}

/* The displacement (DISP) or immediate of S, which relocation D against SYM fills. */
static enum icf_reloc_verdict judge_number(const struct icf_insn_site *s,
					   const struct elfrw_reloc_desc *d, const Elf64_Sym *sym,
					   bool disp, struct icf_ref *ref)
{
	const struct icf_program *prog = s->prog;
	const struct elfrw_insn *in = s->in;
	unsigned size = disp ? in->disp_size : in->imm_size, at = disp ? in->disp_off : in->imm_off;
	if (d->kind == ELFRW_RELOC_ABS && d->size > size)
		return ICF_RELOC_TOO_WIDE;
	if (d->kind == ELFRW_RELOC_ABS)
		size = d->size;
	bool sign = size < 8 && (d->kind == ELFRW_RELOC_GOTPCREL || d->sign || disp);
	uint8_t form = prog->arch->address_form(size, sign);
	if (!form)
		return symbol_in_code(prog, sym) ? ICF_RELOC_NARROW : ICF_RELOC_IGNORE;
	uint64_t value = elfrw_form_read(&prog->arch->form[form], s->code + at, 0);
	/* Data does not move, but a field may refer to it with a large addend.  Code with a large
	 * addend could move away from its target. */
	if (!icf_in_exec(prog, value) && !icf_ends_exec(prog, value) &&
	    d->kind == ELFRW_RELOC_ABS && symbol_in_code(prog, sym) && sym->st_value != 0)
		return ICF_RELOC_FAR;
	/* An immediate under a GOT relocation: the address, or (relaxed TLS) a constant. */
	if (d->kind == ELFRW_RELOC_GOTPCREL && value != sym->st_value)
		return ICF_RELOC_IGNORE;
	*ref = (struct icf_ref){ .target = value,
				 .unit = ICF_NONE,
				 .table = ICF_NONE,
				 .form = form,
				 .kind = ICF_REF_ABS,
				 .flags = (in->flags & ELFRW_INSN_LEA) || !disp ? ICF_REF_LEA : 0 };
	return ICF_RELOC_ADDRESS;
}

/* The only relocation at PLACE, or NULL. */
static const Elf64_Rela *only_reloc(const struct elfrw_relocs *rel, uint64_t place)
{
	size_t r = elfrw_relocs_from(rel, place);
	return r < rel->n && rel->rela[r].r_offset == place &&
			       (r + 1 == rel->n || rel->rela[r + 1].r_offset != place)
		       ? &rel->rela[r]
		       : NULL;
}

/* The low bits that the field of FORM at P holds are those of VA. */
static bool has_low_bits(const struct elfrw_form *form, const uint8_t *p, uint64_t va)
{
	uint64_t page = (uint64_t)1 << form->page;
	return elfrw_form_read(form, p, 0) == (va & (page - 1));
}

bool icf_tells_half(const struct icf_program *prog, uint32_t exec, const struct elfrw_relocs *rel,
		    uint64_t place, uint64_t *target)
{
	const struct elfrw_arch *arch = prog->arch;
	const struct icf_exec *e = &prog->exec.data[exec];
	const uint8_t *p = prog->img->section[e->shndx].data + (place - e->start);
	const Elf64_Rela *r = icf_is_doubted(prog, exec, place) ? NULL : only_reloc(rel, place);
	struct elfrw_reloc_desc d =
		r ? arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info)) : (struct elfrw_reloc_desc){ 0 };
	Elf64_Sym sym;
	struct elfrw_insn in;
	if (!d.form || !elfrw_reloc_symbol(prog->img, rel->symtab, r, &sym) ||
	    !symbol_in_code(prog, &sym) || !arch->decode(p, e->end - place, place, &in))
		return false;
	*target = sym.st_value + (uint64_t)r->r_addend;
	if (!icf_in_exec(prog, *target))
		return false;
	uint8_t form = in.pcrel_size ? arch->pcrel_form(&in) : arch->low_form(&in, p);
	const struct elfrw_form *f = &arch->form[form];
	if (d.kind == ELFRW_RELOC_LOW)
		return form && f->base == ELFRW_BASE_IN_PAGE && has_low_bits(f, p, *target);
	return d.kind == ELFRW_RELOC_PCREL && f->base == ELFRW_BASE_PAGE &&
	       arch->form[d.form].base == ELFRW_BASE_PAGE &&
	       elfrw_form_read(f, p, place) == (*target & ~(((uint64_t)1 << f->page) - 1));
}

bool icf_was_halves(const struct icf_program *prog, uint32_t exec, const struct elfrw_relocs *rel,
		    uint64_t place)
{
	const struct elfrw_arch *arch = prog->arch;
	const Elf64_Rela *high = only_reloc(rel, place - arch->fill_size),
			 *low = only_reloc(rel, place);
	if (icf_is_doubted(prog, exec, place) ||
	    icf_is_doubted(prog, exec, place - arch->fill_size) || !high || !low ||
	    ELF64_R_SYM(high->r_info) != ELF64_R_SYM(low->r_info) ||
	    high->r_addend != low->r_addend)
		return false;
	struct elfrw_reloc_desc h = arch->reloc((uint32_t)ELF64_R_TYPE(high->r_info)),
				l = arch->reloc((uint32_t)ELF64_R_TYPE(low->r_info));
	bool address = h.kind == ELFRW_RELOC_PCREL && l.kind == ELFRW_RELOC_LOW,
	     slot = h.kind == ELFRW_RELOC_GOTPCREL && l.kind == ELFRW_RELOC_GOTPCREL;
	return (address || slot) && elfrw_form_is_high(&arch->form[h.form]) &&
	       elfrw_form_is_low(&arch->form[l.form]);
}

/* Does R, of section E, stand at an instruction that no linker makes of the one that R is for? */
static bool is_misplaced(const struct icf_program *prog, const struct icf_exec *e,
			 const Elf64_Rela *r)
{
	const struct elfrw_arch *arch = prog->arch;
	uint64_t place = r->r_offset;
	struct elfrw_reloc_desc d = arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	struct elfrw_insn in;
	if (place < e->start || place >= e->end || !d.form ||
	    (d.kind != ELFRW_RELOC_PCREL && d.kind != ELFRW_RELOC_LOW))
		return false;
	const uint8_t *p = prog->img->section[e->shndx].data + (place - e->start);
	/* Linkers relax by no-ops and other PC-relative instructions. */
	return !arch->decode(p, e->end - place, place, &in) ||
	       (!in.pcrel_size && in.kind != ELFRW_INSN_NOP &&
		(d.kind == ELFRW_RELOC_PCREL || !arch->low_form(&in, p)));
}

struct elfrw_err *icf_find_doubted(struct icf_program *prog, uint32_t exec)
{
	struct icf_exec *e = &prog->exec.data[exec];
	uint32_t i = elfrw_image_relocs_of(prog->img, e->shndx, 0);
	const struct elfrw_section *s = &prog->img->section[i];
	size_t n = i && prog->arch->low_form ? s->hdr.sh_size / sizeof(Elf64_Rela) : 0;
	for (size_t from = 0, to; from < n; from = to) {
		Elf64_Rela r, before = { 0 };
		bool bad = false;
		for (to = from; to < n; to++) {
			memcpy(&r, s->data + to * sizeof r, sizeof r);
			if (r.r_offset < before.r_offset)
				break;
			bad |= is_misplaced(prog, e, &r);
			before = r;
		}
		for (size_t k = from; k < to && bad; k++) {
			memcpy(&r, s->data + k * sizeof r, sizeof r);
			uint64_t *slot = VEC_PUSH(&e->doubted);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = r.r_offset;
		}
	}
	if (e->doubted.len)
		qsort(e->doubted.data, e->doubted.len, sizeof *e->doubted.data, elfrw_u64_order);
	return NULL;
}

bool icf_is_doubted(const struct icf_program *prog, uint32_t exec, uint64_t place)
{
	const struct icf_exec *e = &prog->exec.data[exec];
	size_t k = LOWER_BOUND(0, e->doubted.len, mid, e->doubted.data[mid] < place);
	return k < e->doubted.len && e->doubted.data[k] == place;
}

/* The low half of TARGET, AT bytes from the start of S. */
static enum icf_reloc_verdict judge_low(const struct icf_insn_site *s, uint64_t target, unsigned at,
					struct icf_ref *ref)
{
	uint64_t told;
	const struct elfrw_arch *arch = s->prog->arch;
	uint8_t form = at == 0 && arch->low_form ? arch->low_form(s->in, s->code) : 0;
	if (!icf_in_exec(s->prog, target))
		return ICF_RELOC_IGNORE;
	*ref = (struct icf_ref){ .target = target,
				 .unit = ICF_NONE,
				 .table = ICF_NONE,
				 .form = form,
				 .kind = ICF_REF_PCREL,
				 .flags = ICF_REF_HALF };
	if (form && icf_tells_half(s->prog, s->exec, s->rel, s->va, &told))
		ref->flags = s->in->flags & ELFRW_INSN_MEM ? 0 : ICF_REF_LEA;
	return form ? ICF_RELOC_LOW : ICF_RELOC_NO_FIELD;
}

/* The field of S, AT bytes from its start, holds the part D of TARGET.  It stays, so what it names
 * must, too. */
static enum icf_reloc_verdict judge_part(const struct icf_insn_site *s,
					 const struct elfrw_reloc_desc *d, uint64_t target,
					 unsigned at, struct icf_ref *ref)
{
	if (!icf_in_exec(s->prog, target) && !icf_ends_exec(s->prog, target))
		return ICF_RELOC_IGNORE;
	*ref = (struct icf_ref){ .target = target,
				 .unit = ICF_NONE,
				 .table = ICF_NONE,
				 .form = d->form,
				 .kind = ICF_REF_PCREL,
				 .flags = ICF_REF_HALF };
	return at == 0 ? ICF_RELOC_LOW : ICF_RELOC_NO_FIELD;
}

/* A relocation of a packed field tells nothing that the instruction does not, except of low halves
 * and parts.  Linkers relax the instruction into another one, and gold writes the relocations of
 * the section that its stubs follow to wrong places. */
static bool is_told(const struct icf_insn_site *s, const struct elfrw_reloc_desc *d)
{
	const struct elfrw_arch *arch = s->prog->arch;
	return d->form && (d->kind != ELFRW_RELOC_LOW || !arch->low_form(s->in, s->code));
}

/* Notes relocation R, of kind D against SYM, if it leads astray.  ADDRESS: the reference that it
 * tells of, or NULL. */
static void note_astray(const struct icf_insn_site *s, const Elf64_Rela *r,
			const struct elfrw_reloc_desc *d, const Elf64_Sym *sym,
			const struct icf_ref *address, struct icf_astray *ret)
{
	const struct icf_program *prog = s->prog;
	const struct elfrw_insn *in = s->in;
	bool halves = d->form && (d->kind == ELFRW_RELOC_LOW || d->kind == ELFRW_RELOC_PART ||
				  elfrw_form_is_high(&prog->arch->form[d->form])),
	     field = d->kind == ELFRW_RELOC_PCREL && in->pcrel_size &&
		     r->r_offset - s->va == in->pcrel_off && in->kind == ELFRW_INSN_OTHER;
	const uint64_t says = sym->st_value + (uint64_t)r->r_addend;
	uint64_t value;
	if (address) {
		value = address->target;
		/* The symbol may be another one than the linker's: astray.c. */
		if ((uint32_t)value != (uint32_t)says)
			return;
	} else if (halves && d->kind != ELFRW_RELOC_GOTPCREL &&
		   !icf_is_doubted(prog, s->exec, r->r_offset))
		value = says;
	else if (field && !halves &&
		 elfrw_get32(s->code + in->pcrel_off) + (uint32_t)r->r_offset == (uint32_t)says)
		value = in->target;
	else
		return;
	if (!icf_leads_astray(prog, sym, value))
		return;
	/* To another function's start an assembler may well lead, by a distance that it knew. */
	uint32_t to = icf_unit_at(prog, value);
	if (!symbol_in_code(prog, sym) || to == ICF_NONE || value != prog->unit.data[to].start)
		*ret = (struct icf_astray){ *sym, r->r_offset, value };
}

struct elfrw_err *icf_judge_reloc(const struct icf_insn_site *s, const Elf64_Rela *r,
				  enum icf_reloc_verdict *ret, struct icf_ref *ref,
				  struct icf_astray *astray)
{
	astray->place = 0;
	const struct elfrw_insn *in = s->in;
	struct elfrw_reloc_desc d = s->prog->arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
	bool done;
	ELFRW_TRY(judge_kind(s, r, &d, ret, &done));
	if (done)
		return NULL;
	Elf64_Sym sym;
	if (!elfrw_reloc_symbol(s->prog->img, s->rel->symtab, r, &sym))
		return elfrw_error_at(s->rel->name, offset_of(s, r),
				      "relocation against a symbol that does not exist");
	unsigned at = (unsigned)(r->r_offset - s->va);
	bool disp = in->disp_size && at == in->disp_off, imm = in->imm_size && at == in->imm_off;
	if (d.kind == ELFRW_RELOC_PART)
		*ret = judge_part(s, &d, sym.st_value + (uint64_t)r->r_addend, at, ref);
	else if (d.kind != ELFRW_RELOC_ABS && is_told(s, &d))
		*ret = ICF_RELOC_IGNORE;
	else if (d.kind == ELFRW_RELOC_LOW)
		*ret = judge_low(s, sym.st_value + (uint64_t)r->r_addend, at, ref);
	else if (in->pcrel_size && at == in->pcrel_off)
		*ret = d.kind == ELFRW_RELOC_ABS ? ICF_RELOC_IN_DISTANCE : ICF_RELOC_IGNORE;
	else if (d.kind != ELFRW_RELOC_ABS && is_relaxed_call(s, &sym))
		*ret = ICF_RELOC_IGNORE;
	else if (!disp && !imm)
		/* A relaxed GOT load may be one byte off. */
		*ret = d.kind == ELFRW_RELOC_GOTPCREL ? ICF_RELOC_IGNORE : ICF_RELOC_NO_FIELD;
	else if (d.kind == ELFRW_RELOC_PCREL)
		*ret = ICF_RELOC_IN_NUMBER;
	else
		*ret = judge_number(s, &d, &sym, disp, ref);
	note_astray(s, r, &d, &sym, *ret == ICF_RELOC_ADDRESS ? ref : NULL, astray);
	return NULL;
}
