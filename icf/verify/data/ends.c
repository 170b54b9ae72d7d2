/* ends.c: where a jump table of IN must end.
 *
 * The entries of a table count from its start, and the words behind it from elsewhere.  A table
 * ends with its section.  It also ends where something has a name or is pointed to by data: no
 * compiler names the middle of a table.  Cost: one pass over the symbols and relocations, when
 * there are words. */
#include "elfrw/base/search.h"
#include "elfrw/relocs.h"
#include "elfrw/symtab.h"
#include "icf/verify/state.h"
#include <stdlib.h>

static struct elfrw_err *add(struct icf_vwords *w, uint64_t va)
{
	size_t i = icf_v_may_have_word(w, va) ? icf_v_word_from(w, va) : w->word.len;
	if (i == w->word.len || w->word.data[i].place != va)
		return NULL;
	uint64_t *slot = VEC_PUSH(&w->end);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = va;
	return NULL;
}

static struct elfrw_err *add_named(struct icf_v *v)
{
	const struct elfrw_image *in = &v->claim.in;
	for (uint32_t i = 1; i < in->n_sections; i++) {
		if (!elfrw_holds_symbols(&in->section[i]))
			continue;
		for (struct elfrw_symbols it = elfrw_symbols(&in->section[i], 1);
		     elfrw_symbols_next(&it);) {
			unsigned char type = ELF64_ST_TYPE(it.sym.st_info);
			const char *name = NULL;
			if (it.sym.st_shndx != SHN_UNDEF &&
			    (type == STT_OBJECT || type == STT_NOTYPE) &&
			    icf_v_may_have_word(&v->words, it.sym.st_value))
				name = elfrw_image_string(in, in->section[i].hdr.sh_link,
							  it.sym.st_name);
			/* "$d": AArch64's mark of data. */
			if (name && name[0] && name[0] != '$')
				ELFRW_TRY(add(&v->words, it.sym.st_value));
		}
	}
	return NULL;
}

/* Addresses in the data of SEC, which has the relocations REL. */
static struct elfrw_err *add_stored(struct icf_v *v, const struct elfrw_section *rel,
				    const struct elfrw_section *sec)
{
	for (uint64_t k = 0; k + sizeof(Elf64_Rela) <= rel->hdr.sh_size; k += sizeof(Elf64_Rela)) {
		Elf64_Rela r;
		memcpy(&r, rel->data + k, sizeof r);
		struct elfrw_reloc_desc d = v->claim.arch->reloc((uint32_t)ELF64_R_TYPE(r.r_info));
		uint64_t off = r.r_offset - sec->hdr.sh_addr;
		if (d.kind != ELFRW_RELOC_ABS || d.size < 4 || off > sec->hdr.sh_size ||
		    sec->hdr.sh_size - off < d.size)
			continue;
		ELFRW_TRY(add(&v->words, elfrw_get_le(sec->data + off, d.size)));
	}
	return NULL;
}

static struct elfrw_err *add_pointed(struct icf_v *v)
{
	const struct elfrw_image *in = &v->claim.in;
	for (size_t i = 0; i < v->words.dynreloc.len; i++)
		if (v->words.dynreloc.data[i].kind == ELFRW_RELOC_RELATIVE)
			ELFRW_TRY(add(&v->words, v->words.dynreloc.data[i].addend));
	for (uint32_t i = 1; i < in->n_sections && !in->pic; i++) {
		const struct elfrw_section *s = &in->section[i];
		if (!s->data || !elfrw_image_kept_relocs(in, s))
			continue;
		const struct elfrw_section *to = &in->section[s->hdr.sh_info];
		uint64_t flags = to->hdr.sh_flags & (SHF_ALLOC | SHF_EXECINSTR);
		if (to->data && flags == SHF_ALLOC)
			ELFRW_TRY(add_stored(v, s, to));
	}
	return NULL;
}

static int address_order(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;
	return *x < *y ? -1 : *x > *y;
}

struct elfrw_err *icf_v_find_ends(struct icf_v *v)
{
	if (v->claim.inferred || !v->words.word.len)
		return NULL;
	ELFRW_TRY(add_named(v));
	ELFRW_TRY(add_pointed(v));
	if (v->words.end.len)
		qsort(v->words.end.data, v->words.end.len, sizeof *v->words.end.data,
		      address_order);
	return NULL;
}

uint64_t icf_v_table_limit(const struct icf_v *v, uint64_t va, uint64_t next)
{
	const uint64_t *end = v->words.end.data;
	size_t i = LOWER_BOUND(0, v->words.end.len, mid, end[mid] <= va);
	if (i < v->words.end.len && end[i] < next)
		next = end[i];
	uint32_t shndx = elfrw_image_section_at(&v->claim.in, va);
	const Elf64_Shdr *sh = &v->claim.in.section[shndx].hdr;
	return shndx && next - sh->sh_addr > sh->sh_size ? sh->sh_addr + sh->sh_size : next;
}
