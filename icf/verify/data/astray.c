/* astray.c: numbers with a relocation that lie elsewhere than what its symbol names: a table is
 * addressed with a bias, a pointer has a tag in its high bits.  Such a number cannot follow what it
 * names, so that must be where it was; and so must be what happens to be at its value, or the
 * number changed with it. */
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"

/* The addend of a PC-relative relocation also counts the bytes up to the end of its instruction. */
#define SLACK 16
/* Data is addressed with a bias: numbers so close to the file are not unusual. */
#define NEAR ((uint64_t)1 << 24)

/* A relocation of IN: at PLACE, against SYM, of VALUE. */
struct number {
	const struct elfrw_section *sec;
	uint64_t place, value;
	Elf64_Sym sym;
	unsigned slack;
};

/* The section that SYM is defined in, if it is loaded, or NULL. */
static const struct elfrw_section *home_of(const struct icf_vclaim *c, const Elf64_Sym *sym)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= c->in.n_sections || type == STT_TLS ||
	    type == STT_GNU_IFUNC || !(c->in.section[sym->st_shndx].hdr.sh_flags & SHF_ALLOC))
		return NULL;
	return &c->in.section[sym->st_shndx];
}

/* Was what observers find at VA of IN moved? */
static bool moved(const struct icf_vclaim *c, uint64_t va)
{
	uint64_t to;
	return icf_v_in_exec(c, va) && icf_v_pointer(c, va, &to) && to != va;
}

/* Is VALUE outside of the unit that holds the symbol? */
static bool leaves_unit(const struct icf_vclaim *c, const struct number *n)
{
	uint32_t u = icf_v_find(c, n->sym.st_value);
	if (u == ICF_V_NONE)
		return n->value != n->sym.st_value;
	const struct icf_vunit *unit = &c->unit.data[u];
	return n->value - (unit->old - n->slack) > unit->end - unit->old + 2 * n->slack;
}

/* Is VALUE in code, and not close to HOME, which is data? */
static bool is_in_code(const struct icf_vclaim *c, const struct number *n,
		       const struct elfrw_section *home)
{
	return icf_v_in_exec(c, n->value) &&
	       n->value - (home->hdr.sh_addr - n->slack) > home->hdr.sh_size + 2 * n->slack;
}

static void bad(struct icf_v *v, const struct number *n, uint64_t va)
{
	char name[200];
	icf_vlog_bad(&v->log, ICF_VC_WORD,
		     "address: %s+0x%llx is 0x%llx: expected %s where it was, found that it moved",
		     n->sec->name, ICF_VX(n->place - n->sec->hdr.sh_addr), ICF_VX(n->value),
		     icf_v_where(&v->claim, va, name));
}

static void check(struct icf_v *v, const struct number *n)
{
	const struct icf_vclaim *c = &v->claim;
	const struct elfrw_section *home = home_of(c, &n->sym);
	if (!home || n->value == n->sym.st_value)
		return;
	if (!(home->hdr.sh_flags & SHF_EXECINSTR)) {
		if (is_in_code(c, n, home) && moved(c, n->value))
			bad(v, n, n->value);
		return;
	}
	if (ELF64_ST_TYPE(n->sym.st_info) == STT_SECTION) {
		const struct icf_vexec *e = icf_v_exec_of(c, n->sym.st_shndx);
		if (!icf_v_in_exec(c, n->value) && !icf_v_in_end(c, n->value) && !n->slack && e &&
		    !e->still)
			bad(v, n, n->sym.st_value);
		return;
	}
	uint32_t to = icf_v_find(c, n->value);
	if (!leaves_unit(c, n) ||
	    /* To another function's start an assembler may well lead, by a distance that it knew.
	     */
	    ((n->sec->hdr.sh_flags & SHF_EXECINSTR) && to != ICF_V_NONE &&
	     c->unit.data[to].old == n->value))
		return;
	if (moved(c, n->sym.st_value))
		bad(v, n, n->sym.st_value);
	else if (moved(c, n->value))
		bad(v, n, n->value);
}

/* Are the lowest SIZE bytes of A those of B?  Else the symbol is another one than the linker's:
 * eu-unstrip gives symbols other numbers, and leaves the relocations as they are. */
static bool is_cut(uint64_t a, uint64_t b, unsigned size)
{
	return (a ^ b) << (64 - 8 * size) == 0;
}

/* What relocation R of section N->sec says, if that is a number of the kind in question: *N. */
static bool read_number(const struct icf_v *v, const struct elfrw_reloc_desc *d,
			const Elf64_Rela *r, struct number *n)
{
	const struct icf_vclaim *c = &v->claim;
	const bool code = n->sec->hdr.sh_flags & SHF_EXECINSTR;
	const uint64_t off = r->r_offset - n->sec->hdr.sh_addr;
	const uint64_t says = n->sym.st_value + (uint64_t)r->r_addend;
	n->place = r->r_offset;
	n->slack = 0;
	if (d->kind == ELFRW_RELOC_ABS && d->size >= 4) {
		const struct icf_vdynreloc *dyn = icf_v_dynreloc_at(&v->words, n->place);
		if (off > n->sec->hdr.sh_size || d->size > n->sec->hdr.sh_size - off)
			return false;
		n->value = elfrw_get_le(n->sec->data + off, d->size);
		if (d->size == 4 && d->sign)
			n->value = (uint64_t)(int64_t)(int32_t)n->value;
		if (dyn)
			n->value = dyn->addend;
		/* A zero is what names a discarded section. */
		return n->value && (!dyn || dyn->kind == ELFRW_RELOC_RELATIVE) &&
		       (dyn || !c->in.pic) && is_cut(n->value, says, dyn ? 8 : d->size);
	}
	/* In data such a distance may count from the start of a table. */
	if (!code || (d->kind != ELFRW_RELOC_PCREL && d->kind != ELFRW_RELOC_LOW &&
		      d->kind != ELFRW_RELOC_PART))
		return false;
	n->value = says;
	if (d->form)
		return true;
	n->value += 4;
	n->slack = SLACK;
	return d->size == 4 && off <= n->sec->hdr.sh_size - 4 && n->sec->hdr.sh_size >= 4 &&
	       is_cut(elfrw_get32(n->sec->data + off) + n->place, says, 4);
}

/* Without relocations of code: a pointer that leads out of the file may be any address, with a tag.
 * Then all functions begin where they did. */
static void check_outside(struct icf_v *v)
{
	const struct elfrw_image *in = &v->claim.in;
	bool still = true;
	uint64_t lo = UINT64_MAX, hi = 0;
	for (size_t k = 0; k < v->claim.exec.len; k++)
		still &= v->claim.exec.data[k].still;
	for (unsigned i = 0; i < in->n_phdrs; i++) {
		const Elf64_Phdr *ph = &in->phdr[i];
		if (ph->p_type == PT_LOAD && ph->p_vaddr < lo)
			lo = ph->p_vaddr;
		if (ph->p_type == PT_LOAD && ph->p_vaddr + ph->p_memsz > hi)
			hi = ph->p_vaddr + ph->p_memsz;
	}
	for (size_t i = 0; i < v->words.dynreloc.len && !still; i++) {
		const struct icf_vdynreloc *d = &v->words.dynreloc.data[i];
		if (d->kind == ELFRW_RELOC_RELATIVE && d->addend - (lo - NEAR) > hi - lo + 2 * NEAR)
			icf_vlog_bad(
				&v->log, ICF_VC_WORD,
				"address: the word at 0x%llx is 0x%llx: expected all functions where they were, found that some moved",
				ICF_VX(d->place), ICF_VX(d->addend));
	}
}

void icf_v_check_astray(struct icf_v *v)
{
	const struct elfrw_image *in = &v->claim.in;
	if (v->claim.inferred)
		check_outside(v);
	for (uint32_t i = 1; i < in->n_sections; i++) {
		const struct elfrw_section *rel = &in->section[i];
		if (!rel->data || !elfrw_image_kept_relocs(in, rel) || !rel->hdr.sh_info)
			continue;
		struct number n = { .sec = &in->section[rel->hdr.sh_info] };
		if (!(n.sec->hdr.sh_flags & SHF_ALLOC) || !n.sec->data ||
		    icf_v_is_unwind_name(n.sec->name))
			continue;
		for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= rel->hdr.sh_size;
		     k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, rel->data + k, sizeof r);
			struct elfrw_reloc_desc d =
				in->arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
			if (elfrw_reloc_symbol(in, rel->hdr.sh_link, &r, &n.sym) &&
			    read_number(v, &d, &r, &n))
				check(v, &n);
		}
	}
}
