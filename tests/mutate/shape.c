/* shape.c: places that readers may skip: headers of sets, lengths, bytes that nothing refers to. */
#include "tests/mutate/mutate.h"
#include <dwarf.h>

static void add_bytes(struct ctx *c, const uint8_t *p, uint64_t n)
{
	while (n--)
		mutate_add(c, p++, 1);
}

/* The program headers of the interpreter and of the first loaded segment behind it, whole. */
void mutate_phdr_order(struct ctx *c)
{
	bool interp = false, load = false;
	for (uint32_t i = 0; i < c->out.n_phdrs; i++) {
		uint32_t type = c->out.phdr[i].p_type;
		if ((type == PT_INTERP && !interp) || (type == PT_LOAD && !load && interp))
			mutate_add_off(c, c->out.ehdr.e_phoff + i * sizeof(Elf64_Phdr),
				       sizeof(Elf64_Phdr));
		interp |= type == PT_INTERP;
		load |= type == PT_LOAD && interp;
	}
	if (!load)
		c->place.len = 0;
}

/* Entry 0 of the section headers. */
void mutate_null_section(struct ctx *c)
{
	for (unsigned k = 0; k < sizeof(Elf64_Shdr); k++)
		mutate_add_off(c, c->out.ehdr.e_shoff + k, 1);
}

/* Entry 0 of a table of symbols. */
void mutate_null_symbol(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	if (s && s->hdr.sh_size >= sizeof(Elf64_Sym))
		add_bytes(c, s->data, sizeof(Elf64_Sym));
}

/* A field of the relocations of a section: arg is its offset and size. */
void mutate_relas(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	for (uint64_t k = 0; s && k + sizeof(Elf64_Rela) <= s->hdr.sh_size; k += sizeof(Elf64_Rela))
		mutate_add(c, s->data + k + (c->arg & 0xff), (unsigned)(c->arg >> 8));
}

/* The header of a compressed section, except for its kind and size. */
void mutate_compression(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	if (!s || !(s->hdr.sh_flags & SHF_COMPRESSED) || s->hdr.sh_size < sizeof(Elf64_Chdr))
		return;
	add_bytes(c, s->data + offsetof(Elf64_Chdr, ch_reserved), 4);
	add_bytes(c, s->data + offsetof(Elf64_Chdr, ch_addralign), 8);
}

/* The length of the augmentation data of FDEs. */
void mutate_fde_lengths(struct ctx *c)
{
	for (size_t i = 0; i < c->cfi.fde.len; i++) {
		const struct dwr_fde *f = &c->cfi.fde.data[i];
		if (f->pc_end > f->pc_begin && mutate_in_code(&c->out, f->pc_begin) &&
		    c->cfi.cie.data[f->cie].augmented)
			mutate_add(c, c->cfi.data + f->off + f->pc_off + f->pc_size + f->range_size,
				   1);
	}
}

/* All bytes of exception tables. */
void mutate_lsda_bytes(struct ctx *c)
{
	struct dwr_lsda l = { 0 };
	for (size_t i = 0; mutate_next_lsda(c, &i, &l);) {
		/* The tables of the function's other ranges, which lie between call sites and
		 * actions, belong to FDEs of their own. */
		const uint8_t *p = elfrw_image_at(&c->out, l.start, l.end - l.start);
		if (p) {
			add_bytes(c, p, l.sites_end - l.start);
			add_bytes(c, p + (l.actions - l.start), l.end - l.actions);
		}
	}
	dwr_lsda_deinit(&l);
}

/* The headers of a section that is made of sets, ARG bytes each; 0: of .debug_aranges, its padding
 * and its end. */
void mutate_set_headers(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, c->name);
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->data : NULL, s ? s->hdr.sh_size : 0);
	while (s && !(s->hdr.sh_flags & SHF_COMPRESSED) && elfrw_rbuf_left(&r) > 16) {
		const uint8_t *start = r.pos;
		uint64_t n = elfrw_rbuf_u32(&r);
		if (n > elfrw_rbuf_left(&r))
			return;
		add_bytes(c, start, c->arg ? (uint64_t)c->arg : 16);
		elfrw_rbuf_skip(&r, n);
		if (!c->arg)
			add_bytes(c, r.pos - 16, 16);
	}
}

/* The byte of each abbreviation that says whether there are children. */
void mutate_children(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_abbrev");
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->data : NULL, s ? s->hdr.sh_size : 0);
	while (elfrw_rbuf_left(&r)) {
		if (!elfrw_rbuf_uleb(&r))
			continue;
		elfrw_rbuf_uleb(&r);
		mutate_add(c, r.pos, 1);
		elfrw_rbuf_u8(&r);
		for (uint64_t name = 1, form = 1; (name || form) && elfrw_rbuf_ok(&r);) {
			name = elfrw_rbuf_uleb(&r);
			form = elfrw_rbuf_uleb(&r);
			if (form == DW_FORM_implicit_const)
				elfrw_rbuf_sleb(&r);
		}
	}
}

/* The header of .debug_icfold, byte by byte. */
void mutate_note_header_bytes(struct ctx *c)
{
	const struct elfrw_section *s = mutate_section(c, ".debug_icfold");
	if (s && !(s->hdr.sh_flags & SHF_COMPRESSED) && s->hdr.sh_size >= NOTE_HEADER_SIZE)
		add_bytes(c, s->data, NOTE_HEADER_SIZE);
}
