/* symtab.h: the symbols of a table, one by one.
 *
 *	for (struct elfrw_symbols it = elfrw_symbols(s, 1); elfrw_symbols_next(&it);)
 *		... it.sym, it.index ... */
#ifndef ELFRW_SYMTAB_H
#define ELFRW_SYMTAB_H
#include "elfrw/image.h"
#include <string.h>

struct elfrw_symbols {
	const uint8_t *data; /* borrowed */
	uint64_t n, next;
	uint64_t index; /* of `sym` */
	Elf64_Sym sym;
};

/* The number of symbols of section S; 0 if S has no contents or is NULL. */
static inline uint64_t elfrw_symbols_count(const struct elfrw_section *s)
{
	return s && s->data ? s->hdr.sh_size / sizeof(Elf64_Sym) : 0;
}

/* Is S a symbol table with contents? */
static inline bool elfrw_holds_symbols(const struct elfrw_section *s)
{
	return (s->hdr.sh_type == SHT_SYMTAB || s->hdr.sh_type == SHT_DYNSYM) && s->data;
}

/* Starts before symbol FROM of section S, which may be NULL or without contents. */
static inline struct elfrw_symbols elfrw_symbols(const struct elfrw_section *s, uint64_t from)
{
	return (struct elfrw_symbols){ .data = s ? s->data : NULL,
				       .n = elfrw_symbols_count(s),
				       .next = from };
}

/* Starts before symbol FROM of the SIZE bytes of a table at DATA.  The table may be changed behind
 * the current symbol. */
static inline struct elfrw_symbols elfrw_symbols_in(const uint8_t *data, uint64_t size,
						    uint64_t from)
{
	return (struct elfrw_symbols){ .data = data, .n = size / sizeof(Elf64_Sym), .next = from };
}

/* Reads the next symbol into it->sym; false: there is none. */
static inline bool elfrw_symbols_next(struct elfrw_symbols *it)
{
	if (it->next >= it->n)
		return false;
	it->index = it->next++;
	memcpy(&it->sym, it->data + it->index * sizeof it->sym, sizeof it->sym);
	return true;
}

/* The symbols of all tables of an image, in the order of its sections:
 *
 *	for (struct elfrw_all_symbols it = { .img = img }; elfrw_all_symbols_next(&it);)
 *		... it.sym ... */
struct elfrw_all_symbols {
	const struct elfrw_image *img; /* borrowed */
	uint32_t table;                /* the section of `sym` */
	struct elfrw_symbols in;
	Elf64_Sym sym;
};

static inline bool elfrw_all_symbols_next(struct elfrw_all_symbols *it)
{
	while (!elfrw_symbols_next(&it->in)) {
		do
			if (++it->table >= it->img->n_sections)
				return false;
		while (!elfrw_holds_symbols(&it->img->section[it->table]));
		it->in = elfrw_symbols(&it->img->section[it->table], 1);
	}
	it->sym = it->in.sym;
	return true;
}

/* Is SYM, of IMG, a number, and no address?  It is absolute; or (gold) it names a section, but its
 * value is outside of all that is loaded.  (strip leaves dynamic symbols with wrong sections.) */
static inline bool elfrw_symbol_is_number(const struct elfrw_image *img, const Elf64_Sym *sym)
{
	const unsigned type = ELF64_ST_TYPE(sym->st_info);
	if (type == STT_FILE || type == STT_TLS || type == STT_SECTION || !sym->st_value)
		return false;
	if (sym->st_shndx == SHN_UNDEF || sym->st_shndx >= img->n_sections)
		return sym->st_shndx == SHN_ABS;
	uint64_t lo, hi;
	elfrw_image_span(img, &lo, &hi);
	return (img->section[sym->st_shndx].hdr.sh_flags & SHF_ALLOC) &&
	       (sym->st_value < lo || sym->st_value > hi);
}

/* Reads symbol INDEX of section S; false: there is none. */
static inline bool elfrw_symbol(const struct elfrw_section *s, uint64_t index, Elf64_Sym *ret)
{
	if (index >= elfrw_symbols_count(s))
		return false;
	memcpy(ret, s->data + index * sizeof *ret, sizeof *ret);
	return true;
}

/* The symbol of relocation R, whose section links to section SYMTAB of IMG; zeroed for symbol 0.
 * false: no such symbol. */
static inline bool elfrw_reloc_symbol(const struct elfrw_image *img, uint32_t symtab,
				      const Elf64_Rela *r, Elf64_Sym *ret)
{
	const struct elfrw_section *s = &img->section[symtab];
	*ret = (Elf64_Sym){ 0 };
	if (ELF64_R_SYM(r->r_info) == 0)
		return true;
	return elfrw_holds_symbols(s) && elfrw_symbol(s, ELF64_R_SYM(r->r_info), ret);
}
#endif
