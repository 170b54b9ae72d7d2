/* layout.c: the output's headers: file offsets of everything outside loadable segments (pieces.c
 * places these), program and section headers, symbols' sections, and data appended to the file. */
#include "elfrw/output.h"
#include "elfrw/base/align.h"
#include "elfrw/names.h"
#include "elfrw/pair.h"
#include "elfrw/pieces.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

bool elfrw_output_offset(const struct elfrw_output *out, uint64_t va, uint64_t *ret)
{
	/* Ends of pieces are looked up last: the end of one may be the start of another. */
	for (int at_end = 0; at_end < 2; at_end++)
		for (size_t i = 0; i < out->piece.len; i++) {
			const Elf64_Phdr *ph = &out->piece.data[i].ph;
			if (va >= ph->p_vaddr && (at_end ? va - ph->p_vaddr <= ph->p_memsz
							 : va - ph->p_vaddr < ph->p_filesz)) {
				*ret = ph->p_offset + (va - ph->p_vaddr);
				return true;
			}
		}
	return false;
}

/* Is the byte at VA of the input in memory? */
static bool is_loaded(const struct elfrw_image *img, uint64_t va)
{
	for (uint32_t p = 0; p < img->n_phdrs; p++)
		if (img->phdr[p].p_type == PT_LOAD &&
		    va - img->phdr[p].p_vaddr < img->phdr[p].p_memsz)
			return true;
	return false;
}

/* The new value of OFFSET, which no bytes belong to: that of a section or program header without
 * contents, aligned to ALIGN, which lies outside of the memory of all segments.  Such a section is
 * told to lie where a segment begins or ends.  (lld gives a lone .tbss between two segments the
 * offset of the second segment.) */
static uint64_t unloaded_offset(const struct elfrw_output *out, uint64_t offset, uint64_t align)
{
	const Elf64_Phdr *before = NULL;
	uint64_t best = 0;
	for (size_t i = 0; i < out->piece.len; i++) {
		const struct elfrw_piece *piece = &out->piece.data[i];
		uint64_t old = out->img->phdr[piece->old].p_offset;
		if (piece->first && old == offset)
			return piece->ph.p_offset;
		if (old < offset && old >= best) {
			before = &piece->ph;
			best = old;
		}
	}
	if (!before)
		return offset;
	uint64_t end = before->p_offset + before->p_filesz;
	return end + ((offset - end) & ((align > 1 ? align : 1) - 1));
}

/* Any program header but PT_LOAD follows the sections that it describes. */
static struct elfrw_err *describe(const struct elfrw_output *out, Elf64_Phdr *ph, uint32_t n_phdrs)
{
	const struct elfrw_image *img = out->img;
	if (ph->p_type == PT_PHDR) {
		ph->p_filesz = ph->p_memsz = (uint64_t)n_phdrs * sizeof *ph;
		return NULL;
	}
	if (ph->p_memsz == 0 && ph->p_filesz == 0 && ph->p_vaddr == 0)
		return NULL;
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const Elf64_Shdr *sh = &img->section[i].hdr;
		if (!(sh->sh_flags & SHF_ALLOC) || sh->sh_addr != ph->p_vaddr || sh->sh_size == 0)
			continue;
		if (sh->sh_size == ph->p_memsz && out->sec[i].size != sh->sh_size)
			ph->p_filesz = ph->p_memsz = out->sec[i].size;
		ph->p_vaddr = out->sec[i].addr;
		ph->p_paddr += ph->p_vaddr - sh->sh_addr;
		break;
	}
	/* mold's PT_GNU_RELRO begins with .tbss, before the loaded data.  Readers use its addresses
	 * only. */
	if (!is_loaded(img, ph->p_vaddr) && (!ph->p_filesz || ph->p_type == PT_GNU_RELRO)) {
		ph->p_offset = unloaded_offset(out, ph->p_offset, ph->p_align);
		return NULL;
	}
	uint64_t off;
	if (!elfrw_output_offset(out, ph->p_vaddr, &off)) {
		if (ph->p_filesz)
			return elfrw_error("segment of type 0x%x describes nothing that is loaded",
					   ph->p_type);
		return NULL;
	}
	ph->p_offset = off;
	return NULL;
}

static struct elfrw_err *make_phdrs(struct elfrw_output *out)
{
	const struct elfrw_image *img = out->img;
	uint32_t n = img->n_phdrs + out->n_split - out->no_pt_phdr;
	for (uint32_t p = 0; p < img->n_phdrs; p++) {
		if (img->phdr[p].p_type == PT_PHDR && out->no_pt_phdr)
			continue;
		if (img->phdr[p].p_type != PT_LOAD) {
			Elf64_Phdr *ph = VEC_PUSH(&out->phdr);
			if (!ph)
				return &elfrw_err_nomem;
			*ph = img->phdr[p];
			if (ph->p_type != PT_NULL)
				ELFRW_TRY(describe(out, ph, n));
			continue;
		}
		for (size_t i = 0; i < out->piece.len; i++)
			if (out->piece.data[i].old == p) {
				Elf64_Phdr *ph = VEC_PUSH(&out->phdr);
				if (!ph)
					return &elfrw_err_nomem;
				*ph = out->piece.data[i].ph;
			}
	}
	return NULL;
}

struct byoffset {
	uint64_t offset;
	uint32_t i;
};

static int offset_order(const void *a, const void *b)
{
	const struct byoffset *x = a, *y = b;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->i < y->i ? -1 : 1;
}

/* Makes a new table of section names.  If symbols may share the old table, or nothing is dropped,
 * the old table is kept and new names are appended. */
static struct elfrw_err *name_sections(struct elfrw_output *out, uint32_t *name_off)
{
	const struct elfrw_image *img = out->img;
	bool shared = img->symtab && !out->sec[img->symtab].drop &&
		      img->section[img->symtab].hdr.sh_link == img->shstrndx;
	const struct elfrw_outsec *old = &out->sec[img->shstrndx];
	bool dropped = false;
	for (uint32_t i = 1; i < img->n_sections && !dropped; i++)
		dropped = out->sec[i].drop;
	shared |= !dropped;
	size_t n = img->n_sections + out->added.len;
	const char **name = calloc(n + 1, sizeof *name);
	if (!name)
		return &elfrw_err_nomem;
	for (size_t i = 1; i < n; i++) {
		const struct elfrw_newsec *new =
			i < img->n_sections ? NULL : &out->added.data[i - img->n_sections];
		if (new ? new->debug : out->sec[i].drop)
			continue;
		if (!new &&shared)
			name_off[i] = img->section[i].hdr.sh_name;
		else
			name[i] = new ? new->name : img->section[i].name;
	}
	struct elfrw_name_table names = { 0 };
	struct elfrw_name_head head = { 0 };
	if (shared)
		head = (struct elfrw_name_head){ old->data, old->size };
	struct elfrw_err *err = elfrw_names(name, n, head, name_off, &names);
	out->shstrtab = names.data;
	out->shstrtab_size = names.size;
	free(name);
	return err;
}

static struct elfrw_err *place_unloaded(struct elfrw_output *out)
{
	const struct elfrw_image *img = out->img;
	struct byoffset *list = malloc(img->n_sections * sizeof *list);
	if (!list)
		return &elfrw_err_nomem;
	uint32_t n = 0;
	for (uint32_t i = 1; i < img->n_sections; i++)
		if (!out->sec[i].drop && !(img->section[i].hdr.sh_flags & SHF_ALLOC))
			list[n++] = (struct byoffset){ img->section[i].hdr.sh_offset, i };
	qsort(list, n, sizeof *list, offset_order);
	for (uint32_t k = 0; k < n; k++) {
		struct elfrw_outsec *s = &out->sec[list[k].i];
		out->file_size = elfrw_align_up(out->file_size, s->align);
		s->offset = out->file_size;
		if (img->section[list[k].i].hdr.sh_type != SHT_NOBITS)
			out->file_size += list[k].i == img->shstrndx ? out->shstrtab_size : s->size;
	}
	for (size_t i = 0; i < out->added.len; i++) {
		struct elfrw_newsec *s = &out->added.data[i];
		if (s->debug)
			continue;
		out->file_size = elfrw_align_up(out->file_size, s->align);
		s->offset = out->file_size;
		out->file_size += s->size;
	}
	free(list);
	return NULL;
}

static uint32_t n_added(const struct elfrw_output *out)
{
	uint32_t n = 0;
	for (size_t i = 0; i < out->added.len; i++)
		n += !out->added.data[i].debug;
	return n;
}

static void put_shdr(struct elfrw_output *out, uint32_t index, const Elf64_Shdr *sh)
{
	memcpy(out->shdrs + (size_t)index * sizeof *sh, sh, sizeof *sh);
}

static bool info_is_section(const Elf64_Shdr *sh)
{
	return (sh->sh_flags & SHF_INFO_LINK) || sh->sh_type == SHT_REL || sh->sh_type == SHT_RELA;
}

static struct elfrw_err *make_shdrs(struct elfrw_output *out, const uint32_t *name_off)
{
	const struct elfrw_image *img = out->img;
	out->shdrs = calloc(out->n_out, sizeof(Elf64_Shdr));
	if (!out->shdrs)
		return &elfrw_err_nomem;
	Elf64_Shdr sh =
		img->section[0].hdr; /* holds numbers that are too large for the ELF header */
	sh.sh_size = out->n_out >= SHN_LORESERVE ? out->n_out : 0;
	sh.sh_link =
		out->sec[img->shstrndx].index >= SHN_LORESERVE ? out->sec[img->shstrndx].index : 0;
	put_shdr(out, 0, &sh);
	for (uint32_t i = 1; i < img->n_sections; i++) {
		struct elfrw_outsec *s = &out->sec[i];
		if (s->drop)
			continue;
		sh = img->section[i].hdr;
		sh.sh_name = name_off[i];
		sh.sh_addr = s->addr;
		sh.sh_size = i == img->shstrndx ? out->shstrtab_size : s->size;
		sh.sh_flags = s->flags;
		sh.sh_addralign = s->align;
		if (img->section[i].hdr.sh_flags & SHF_ALLOC) {
			/* Zeros of threads, and empty sections, may have an address that no segment
			 * has, or has no more. */
			if (!elfrw_output_offset(out, s->addr, &s->offset))
				s->offset = unloaded_offset(out, sh.sh_offset, s->align);
		}
		sh.sh_offset = s->offset;
		sh.sh_link = out->sec[sh.sh_link].index;
		sh.sh_info = s->info;
		if (info_is_section(&sh) && sh.sh_info < img->n_sections)
			sh.sh_info = out->sec[sh.sh_info].index;
		put_shdr(out, s->index, &sh);
	}
	uint32_t index = out->n_out - n_added(out);
	for (size_t i = 0; i < out->added.len; i++) {
		const struct elfrw_newsec *s = &out->added.data[i];
		if (s->debug)
			continue;
		sh = (Elf64_Shdr){ .sh_name = name_off[img->n_sections + i],
				   .sh_type = SHT_PROGBITS,
				   .sh_flags = s->flags,
				   .sh_offset = s->offset,
				   .sh_size = s->size,
				   .sh_addralign = s->align };
		put_shdr(out, index++, &sh);
	}
	return NULL;
}

/* The sections of the input that have no place in the output. */
static bool *gone_sections(const struct elfrw_output *out)
{
	bool *gone = calloc(out->img->n_sections, sizeof *gone);
	for (uint32_t i = 1; gone && i < out->img->n_sections; i++)
		gone[i] = out->sec[i].drop;
	return gone;
}

/* Updates symbol SYM of a table that is DYNAMIC or not. */
static void update_symbol(const struct elfrw_output *out, bool dynamic, const bool *gone,
			  Elf64_Sym *sym)
{
	const struct elfrw_image *img = out->img;
	uint32_t s = sym->st_shndx;
	if (s == SHN_UNDEF || s >= SHN_LORESERVE)
		return;
	/* A defined symbol stays defined, whatever section number GNU strip left it with
	 * (elfrw_image_symbol_section). */
	if (dynamic && (s >= img->n_sections || gone[s]))
		s = elfrw_image_stand_in(img, sym, gone);
	if (s == SHN_UNDEF || s >= img->n_sections)
		return;
	/* Symbols like __ehdr_start belong to a section in name only. */
	if (elfrw_may_make_room(out, s) &&
	    sym->st_value - img->section[s].hdr.sh_addr <= img->section[s].hdr.sh_size)
		sym->st_value += out->sec[s].addr - img->section[s].hdr.sh_addr;
	sym->st_shndx = (uint16_t)out->sec[s].index;
}

/* Symbols name their section by its index, which changes when sections are dropped.  Symbols in
 * sections that made room move with these. */
static struct elfrw_err *update_symbols(struct elfrw_output *out)
{
	const struct elfrw_image *img = out->img;
	bool same = true;
	for (uint32_t i = 0; i < img->n_sections && same; i++)
		same = out->sec[i].drop || (out->sec[i].index == i &&
					    !(elfrw_may_make_room(out, i) &&
					      out->sec[i].addr != img->section[i].hdr.sh_addr));
	bool *gone = gone_sections(out);
	if (!gone)
		return &elfrw_err_nomem;
	struct elfrw_err *err = NULL;
	for (uint32_t i = 1; i < img->n_sections && !err; i++) {
		uint32_t type = img->section[i].hdr.sh_type;
		/* Whoever dropped a section removed its symbols from .symtab; .dynsym keeps all its
		 * symbols. */
		if (gone[i] || !out->sec[i].data ||
		    (type != SHT_DYNSYM && (type != SHT_SYMTAB || same)))
			continue;
		struct elfrw_symbols it = elfrw_symbols_in(out->sec[i].data, out->sec[i].size, 0);
		while (!err && elfrw_symbols_next(&it)) {
			Elf64_Sym new = it.sym;
			update_symbol(out, type == SHT_DYNSYM, gone, &new);
			uint8_t *p;
			if (memcmp(&it.sym, &new, sizeof new) == 0)
				continue;
			err = elfrw_output_edit(out, i, &p);
			if (!err)
				memcpy(p + it.index * sizeof new, &new, sizeof new);
		}
	}
	free(gone);
	return err;
}

/* Places the section headers and the appended data.  Appended data keeps its distance to the start
 * of the file, to its end and to the section headers, since readers find it by one of these. */
static struct elfrw_err *place_end(struct elfrw_output *out)
{
	const struct elfrw_image *img = out->img->pair ? &out->img->pair->program : out->img;
	uint64_t bytes = (uint64_t)out->n_out * sizeof(Elf64_Shdr);
	ELFRW_TRY(elfrw_tail_find(img, &out->tail));
	out->ehdr.e_shoff = elfrw_align_up(out->file_size, 8);
	out->file_size = out->ehdr.e_shoff + bytes + out->tail.size;
	if (!out->tail.size || out->tail.zeros || out->file_size > img->size)
		return NULL;
	if (out->tail.headers)
		out->ehdr.e_shoff = out->tail.offset - bytes;
	out->file_size = img->size;
	return NULL;
}

struct elfrw_err *elfrw_output_tail_fits(const struct elfrw_output *out)
{
	uint64_t size = elfrw_image_file_size(out->img);
	if (!out->tail.size || out->tail.zeros || out->file_size <= size)
		return NULL;
	return elfrw_error_at(
		NULL, out->tail.offset,
		"%llu bytes that belong to no section follow the program, which would be %llu bytes longer",
		(unsigned long long)out->tail.size, (unsigned long long)(out->file_size - size));
}

void elfrw_output_same(struct elfrw_output *out)
{
	out->unchanged = true;
	out->file_size = out->img->size;
}

struct elfrw_err *elfrw_output_layout(struct elfrw_output *out)
{
	const struct elfrw_image *img = out->img;
	uint32_t index = 0;
	/* Sections that only the debug file has are not part of this file. */
	for (uint32_t i = 1; i < img->n_sections && img->pair; i++) {
		out->sec[i].debug = img->section[i].in_debug && !out->sec[i].drop;
		out->sec[i].drop |= !img->section[i].in_program;
	}
	for (uint32_t i = 0; i < img->n_sections; i++)
		if (!out->sec[i].drop)
			out->sec[i].index = index++;
	out->n_out = index + n_added(out);
	uint32_t *name_off = calloc(img->n_sections + out->added.len, sizeof *name_off);
	if (!name_off)
		return &elfrw_err_nomem;
	struct elfrw_err *err = name_sections(out, name_off);
	if (!err)
		err = elfrw_make_pieces(out);
	if (!err)
		err = update_symbols(out);
	if (!err) {
		elfrw_place_pieces(out);
		err = make_phdrs(out);
	}
	if (!err)
		err = place_unloaded(out);
	if (!err)
		err = make_shdrs(out, name_off);
	free(name_off);
	if (err)
		return err;
	out->ehdr = img->ehdr;
	out->ehdr.e_entry = out->entry;
	out->ehdr.e_phnum = (uint16_t)out->phdr.len;
	out->ehdr.e_shnum = out->n_out >= SHN_LORESERVE ? 0 : (uint16_t)out->n_out;
	uint32_t names = out->sec[img->shstrndx].index;
	out->ehdr.e_shstrndx = names >= SHN_LORESERVE ? SHN_XINDEX : (uint16_t)names;
	return place_end(out);
}
