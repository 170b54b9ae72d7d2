/* find.c: places in data, relocations, unwind tables, symbols and headers. */
#include "tests/mutate/mutate.h"

/* --- sections and tables ----------------------------------------------- */

void mutate_bytes(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	for (uint64_t i = 0;
	     s && i<s->hdr.sh_size; i += s->hdr.sh_size> 2000 ? s->hdr.sh_size / 997 : 1)
		mutate_add(c, s->data + i, 1);
}

/* Words of a section that are not zero. */
void mutate_words(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	for (uint64_t i = 0; s && i + 8 <= s->hdr.sh_size; i += 8)
		if (elfrw_get64(s->data + i))
			mutate_add(c, s->data + i, 8);
}

static struct elfrw_reloc_desc reloc_of(const struct ctx *c, const Elf64_Rela *r)
{
	return c->in.arch->reloc((uint32_t)ELF64_R_TYPE(r->r_info));
}

/* Fields of data that a kept relocation of the input describes: 4-byte distances to code (jump
 * tables), or words that hold an address of code. */
static void kept_fields(struct ctx *c, bool distance)
{
	const struct elfrw_image *in = &c->in;
	for (uint32_t i = 1; i < in->n_sections; i++) {
		const struct elfrw_section *r = &in->section[i];
		if (r->hdr.sh_type != SHT_RELA || (r->hdr.sh_flags & SHF_ALLOC) || !r->data)
			continue;
		const struct elfrw_section *s = &in->section[r->hdr.sh_info];
		if (!(s->hdr.sh_flags & SHF_ALLOC) || (s->hdr.sh_flags & SHF_EXECINSTR) ||
		    !s->data || strncmp(s->name, ".eh_frame", 9) == 0 ||
		    strncmp(s->name, ".gcc_except", 11) == 0)
			continue;
		for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= r->hdr.sh_size;
		     k += sizeof(Elf64_Rela)) {
			Elf64_Rela rel;
			memcpy(&rel, r->data + k, sizeof rel);
			struct elfrw_reloc_desc d = reloc_of(c, &rel);
			unsigned size = distance ? 4 : 8;
			const uint8_t *p = elfrw_image_at(&c->out, rel.r_offset, size);
			if (!p || d.size != size || d.form || d.call ||
			    d.kind != (distance ? ELFRW_RELOC_PCREL : ELFRW_RELOC_ABS))
				continue;
			Elf64_Sym sym = { 0 };
			if (ELF64_R_SYM(rel.r_info))
				memcpy(&sym,
				       in->section[r->hdr.sh_link].data +
					       ELF64_R_SYM(rel.r_info) * sizeof sym,
				       sizeof sym);
			if (distance ? sym.st_shndx < in->n_sections &&
					       (in->section[sym.st_shndx].hdr.sh_flags &
						SHF_EXECINSTR)
				     : !in->pic && mutate_in_code(&c->out, elfrw_get64(p)))
				mutate_add(c, p, size);
		}
	}
}
void mutate_table_entries(struct ctx *c)
{
	kept_fields(c, true);
}
/* The words behind jump tables. */
void mutate_table_ends(struct ctx *c)
{
	kept_fields(c, true);
	size_t n = 0;
	for (size_t i = 0; i < c->place.len; i++) {
		uint64_t behind = c->place.data[i].off + 4;
		bool taken = i + 1 < c->place.len && c->place.data[i + 1].off < behind + 4;
		if (!taken && behind + 4 <= c->out.size)
			c->place.data[n++] = (struct place){ behind, 4 };
	}
	c->place.len = n;
}
void mutate_code_words(struct ctx *c)
{
	kept_fields(c, false);
}

void mutate_dynamic_relocs(struct ctx *c)
{
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const struct elfrw_section *s = &c->out.section[i];
		if (s->hdr.sh_type != SHT_RELA || !(s->hdr.sh_flags & SHF_ALLOC) || !s->data)
			continue;
		for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= s->hdr.sh_size;
		     k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, s->data + k, sizeof r);
			bool relative = reloc_of(c, &r).kind == ELFRW_RELOC_RELATIVE,
			     code = mutate_in_code(&c->out, (uint64_t)r.r_addend);
			if ((c->arg == RELA_CODE && relative && code) ||
			    (c->arg == RELA_DATA && relative && !code) ||
			    (c->arg == RELA_SYMBOLIC && !relative))
				mutate_add(c, s->data + k + offsetof(Elf64_Rela, r_addend), 8);
			else if (c->arg == RELA_OFFSET)
				mutate_add(c, s->data + k, 8);
			else if (c->arg == RELA_INFO)
				mutate_add(c, s->data + k + offsetof(Elf64_Rela, r_info), 8);
		}
	}
}

void mutate_irelative(struct ctx *c)
{
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const struct elfrw_section *s = &c->out.section[i];
		for (uint64_t k = 0; s->hdr.sh_type == SHT_RELA && (s->hdr.sh_flags & SHF_ALLOC) &&
				     s->data && k + sizeof(Elf64_Rela) <= s->hdr.sh_size;
		     k += sizeof(Elf64_Rela)) {
			Elf64_Rela r;
			memcpy(&r, s->data + k, sizeof r);
			if (reloc_of(c, &r).kind == ELFRW_RELOC_IRELATIVE)
				mutate_add(c, s->data + k + offsetof(Elf64_Rela, r_addend), 8);
		}
	}
}

void mutate_dynamic(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".dynamic");
	for (uint64_t k = 0; s && k + sizeof(Elf64_Dyn) <= s->hdr.sh_size; k += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + k, sizeof d);
		if (c->arg ? d.d_tag == c->arg : d.d_tag != DT_NULL)
			mutate_add(c, s->data + k + 8, 8);
	}
}

void mutate_dynamic_tags(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".dynamic");
	for (uint64_t k = 0; s && k + sizeof(Elf64_Dyn) <= s->hdr.sh_size; k += sizeof(Elf64_Dyn))
		mutate_add(c, s->data + k, 8);
}

/* --- unwind tables ----------------------------------------------------- */

void mutate_fdes(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		const uint8_t *p = c->cfi.data + f->off;
		if (f->pc_end <= f->pc_begin || !mutate_in_code(&c->out, f->pc_begin))
			continue;
		switch (c->arg) {
		case FDE_BEGIN: mutate_add(c, p + f->pc_off, f->pc_size); break;
		case FDE_RANGE: mutate_add(c, p + f->pc_off + f->pc_size, f->range_size); break;
		case FDE_INSN:
			if (f->insn_size > 1)
				mutate_add(c, f->insn + f->insn_size - 1, 1);
			break;
		case FDE_CIE: mutate_add(c, p + 4, 4); break;
		case FDE_LSDA:
			if (f->lsda)
				mutate_add(c, p + f->lsda_off, 4);
			break;
		case FDE_LENGTH: mutate_add(c, p, 4); break;
		}
	}
}

void mutate_cies(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.cie.len; i++) {
		const struct dwr_cie *e = &c->cfi.cie.data[i];
		const uint8_t *p = c->cfi.data + e->off;
		if (!e->used)
			continue;
		if (c->arg == 0 && e->insn_size > 1)
			mutate_add(c, e->insn + 1, 1);
		else if (c->arg == 1 && e->personality_off)
			mutate_add(c, p + e->personality_off, 4);
		else if (c->arg == 2)
			mutate_add(c, p + 9 + strlen(e->augmentation) + 2,
				   1); /* data alignment, behind a code alignment of one byte */
	}
}

/* Bytes of the call-site tables: 0 start, 1 length, 2 landing pad, 3 action. */
void mutate_lsda_sites(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		const uint8_t *start = f->lsda && f->pc_end > f->pc_begin
					       ? elfrw_image_at(&c->out, f->lsda, 4)
					       : NULL;
		if (!start)
			continue;
		uint32_t s = elfrw_image_section_at(&c->out, f->lsda);
		struct elfrw_rbuf r =
			elfrw_rbuf(start, c->out.section[s].hdr.sh_size -
						  (f->lsda - c->out.section[s].hdr.sh_addr));
		if (elfrw_rbuf_u8(&r) != DWR_PE_OMIT)
			continue;
		if (elfrw_rbuf_u8(&r) != DWR_PE_OMIT)
			elfrw_rbuf_uleb(&r);
		if (elfrw_rbuf_u8(&r) != DWR_PE_ULEB128)
			continue;
		uint64_t size = elfrw_rbuf_uleb(&r);
		const uint8_t *end = r.pos + size;
		while (r.pos < end && elfrw_rbuf_ok(&r)) {
			const uint8_t *field[4];
			uint64_t value[4];
			for (int k = 0; k < 4; k++) {
				field[k] = r.pos;
				value[k] = elfrw_rbuf_uleb(&r);
			}
			if (c->arg < 2    ? value[1] > 1
			    : c->arg == 2 ? value[2] != 0
					  : value[2] && value[3])
				mutate_add(c, field[c->arg], 1);
		}
	}
}

bool mutate_next_lsda(const struct ctx *c, size_t *i, struct dwr_lsda *l)
{
	while (*i < c->cfi.fde.len) {
		const struct dwr_fde *f = &c->cfi.fde.data[(*i)++];
		if (!f->lsda || f->pc_end <= f->pc_begin)
			continue;
		mutate_check(dwr_lsda_read(l, &c->out, f->lsda, f->pc_begin, f->pc_end));
		return true;
	}
	return false;
}

/* Entries of type tables that a chain of actions names. */
void mutate_lsda_types(struct ctx *c)
{
	struct dwr_lsda l = { 0 };
	for (size_t i = 0; mutate_next_lsda(c, &i, &l);) {
		for (size_t k = 0; k < l.field.len; k++) {
			const uint8_t *p =
				elfrw_image_at(&c->out, l.field.data[k].va, l.field.data[k].size);
			if (p && l.field.data[k].used && l.field.data[k].addr)
				mutate_add(c, p, l.field.data[k].size);
		}
	}
	dwr_lsda_deinit(&l);
}

void mutate_frame_hdr(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".eh_frame_hdr");
	if (!s || s->hdr.sh_size < 20)
		return;
	if (c->arg < 0) {
		mutate_add(c, s->data - c->arg, 4); /* pointer, count */
		return;
	}
	for (uint64_t k = 12 + (uint64_t)c->arg; k + 4 <= s->hdr.sh_size; k += 8)
		mutate_add(c, s->data + k, 4);
}

void mutate_frame_hdr_pairs(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".eh_frame_hdr");
	for (uint64_t k = 12; s && k + 8 <= s->hdr.sh_size; k += 8)
		mutate_add(c, s->data + k, 8);
}

void mutate_frame_end(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.terminator.len; i++)
		mutate_add(c, c->cfi.data + c->cfi.terminator.data[i], 4);
}

/* --- symbols, hash tables ---------------------------------------------- */

static void symbols(struct ctx *c, const char *table, unsigned field, unsigned size)
{
	const struct elfrw_section *s = mutate_section(c, table);
	for (uint64_t k = sizeof(Elf64_Sym); s && k + sizeof(Elf64_Sym) <= s->hdr.sh_size;
	     k += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		memcpy(&sym, s->data + k, sizeof sym);
		unsigned type = ELF64_ST_TYPE(sym.st_info);
		if (sym.st_shndx == SHN_UNDEF || type == STT_FILE || type == STT_SECTION ||
		    !sym.st_name)
			continue;
		if (c->arg == SYM_ANY || (c->arg == SYM_FUNC && type == STT_FUNC && sym.st_size) ||
		    (c->arg == SYM_OBJECT && type == STT_OBJECT) ||
		    (c->arg == SYM_FOLDED && type == STT_NOTYPE && !sym.st_size &&
		     mutate_in_code(&c->out, sym.st_value)))
			mutate_add(c, s->data + k + field, size);
	}
}
void mutate_sym_values(struct ctx *c)
{
	symbols(c, c->name, offsetof(Elf64_Sym, st_value), 8);
}
void mutate_sym_sizes(struct ctx *c)
{
	symbols(c, c->name, offsetof(Elf64_Sym, st_size), 8);
}
void mutate_sym_infos(struct ctx *c)
{
	symbols(c, c->name, offsetof(Elf64_Sym, st_info), 1);
}
void mutate_sym_others(struct ctx *c)
{
	symbols(c, c->name, offsetof(Elf64_Sym, st_other), 1);
}
void mutate_sym_names(struct ctx *c)
{
	symbols(c, c->name, offsetof(Elf64_Sym, st_name), 4);
}
void mutate_sym_shndx(struct ctx *c)
{
	symbols(c, c->name, offsetof(Elf64_Sym, st_shndx), 2);
}
/* Section numbers of dynamic symbols that had to be chosen anew, because the section of the input
 * is not in the output. */
void mutate_sym_stale(struct ctx *c)
{
	const struct elfrw_section *a = elfrw_image_section(&c->in, ".dynsym"),
				   *b = mutate_section(c, ".dynsym");
	for (uint64_t k = 0; a && b && k + sizeof(Elf64_Sym) <= a->hdr.sh_size;
	     k += sizeof(Elf64_Sym)) {
		Elf64_Sym old;
		memcpy(&old, a->data + k, sizeof old);
		if (old.st_shndx == SHN_UNDEF || old.st_shndx >= SHN_LORESERVE)
			continue;
		if (old.st_shndx >= c->in.n_sections ||
		    !elfrw_image_section(&c->out, c->in.section[old.st_shndx].name))
			mutate_add(c, b->data + k + offsetof(Elf64_Sym, st_shndx), 2);
	}
}
/* Data behind the program. */
void mutate_tail(struct ctx *c)
{
	struct elfrw_tail tail;
	mutate_check(elfrw_tail_find(&c->out, &tail));
	for (uint64_t k = 0; k < tail.size; k++)
		mutate_add_off(c, tail.offset + k, 1);
}
void mutate_sym_whole(struct ctx *c)
{
	symbols(c, c->name, 0, sizeof(Elf64_Sym));
}

/* --- headers ----------------------------------------------------------- */

void mutate_ehdr(struct ctx *c)
{
	mutate_add_off(c, (uint64_t)c->arg & 0xff, (unsigned)(c->arg >> 8));
}

/* Bytes of the file that are loaded and in no section. */
void mutate_gaps(struct ctx *c)
{
	uint64_t headers = c->out.ehdr.e_phoff + c->out.n_phdrs * sizeof(Elf64_Phdr);
	for (uint32_t p = 0; p < c->out.n_phdrs; p++) {
		const Elf64_Phdr *ph = &c->out.phdr[p];
		for (uint64_t k = 0; ph->p_type == PT_LOAD && k < ph->p_filesz; k++) {
			uint64_t at = ph->p_offset + k, next = 0;
			for (uint32_t i = 1; i < c->out.n_sections && !next; i++) {
				const Elf64_Shdr *s = &c->out.section[i].hdr;
				if (s->sh_type != SHT_NOBITS && at - s->sh_offset < s->sh_size)
					next = s->sh_offset + s->sh_size;
			}
			if (at >= headers && !next)
				mutate_add_off(c, at, 1);
			else if (next > at)
				k += next - at - 1;
		}
	}
}

/* arg: type << 8 | offset of the field. */
void mutate_phdrs(struct ctx *c)
{
	for (uint32_t i = 0; i < c->out.n_phdrs; i++) {
		unsigned field = (unsigned)(c->arg & 0xff);
		if (c->out.phdr[i].p_type != (uint32_t)(c->arg >> 8) ||
		    (field == offsetof(Elf64_Phdr, p_filesz) && !c->out.phdr[i].p_filesz))
			continue;
		mutate_add_off(c, c->out.ehdr.e_phoff + i * sizeof(Elf64_Phdr) + field,
			       field < 8 ? 4 : 8);
	}
}

void mutate_shdrs(struct ctx *c)
{
	for (uint32_t i = 1; i < c->out.n_sections; i++) {
		const struct elfrw_section *s = &c->out.section[i];
		if (strcmp(c->name, s->name) == 0 ||
		    (!*c->name && s->data && (s->hdr.sh_flags & SHF_ALLOC)))
			mutate_add_off(c,
				       c->out.ehdr.e_shoff + i * sizeof(Elf64_Shdr) +
					       (uint64_t)(c->arg & 0xff),
				       c->arg >> 8 ? (unsigned)(c->arg >> 8) : 8);
	}
}
