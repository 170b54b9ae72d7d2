/* relocs.c: see relocs.h. */
#include "elfrw/relocs.h"
#include "elfrw/base/search.h"
#include "elfrw/symtab.h"
#include <stdlib.h>
#include <string.h>

static int rela_order(const void *a, const void *b)
{
	const Elf64_Rela *x = a, *y = b;
	return x->r_offset < y->r_offset ? -1 : x->r_offset > y->r_offset;
}

struct elfrw_err *elfrw_relocs_open(struct elfrw_relocs *ret, const struct elfrw_image *img,
				    uint32_t shndx)
{
	*ret = (struct elfrw_relocs){ 0 };
	for (uint32_t i = 0; (i = elfrw_image_relocs_of(img, shndx, i));) {
		const struct elfrw_section *s = &img->section[i];
		if (ret->rela)
			return elfrw_error_at(s->name, 0,
					      "a second relocation section for one code section");
		if ((uintptr_t)s->data % _Alignof(Elf64_Rela) == 0)
			ret->rela = (const Elf64_Rela *)s->data;
		ret->n = s->hdr.sh_size / sizeof(Elf64_Rela);
		ret->symtab = s->hdr.sh_link;
		ret->name = s->name;
		bool sorted = ret->rela != NULL;
		for (size_t k = 1; k < ret->n && sorted; k++)
			sorted = ret->rela[k - 1].r_offset <= ret->rela[k].r_offset;
		if (sorted)
			continue;
		ret->owned = malloc(s->hdr.sh_size);
		if (!ret->owned)
			return &elfrw_err_nomem;
		memcpy(ret->owned, s->data, s->hdr.sh_size);
		qsort(ret->owned, ret->n, sizeof *ret->owned, rela_order);
		ret->rela = ret->owned;
	}
	return NULL;
}

void elfrw_relocs_close(struct elfrw_relocs *rel)
{
	free(rel->owned);
	*rel = (struct elfrw_relocs){ 0 };
}

size_t elfrw_relocs_from(const struct elfrw_relocs *rel, uint64_t va)
{
	return LOWER_BOUND(0, rel->n, mid, rel->rela[mid].r_offset < va);
}

bool elfrw_dynrelocs_name_sections(const struct elfrw_image *img)
{
	for (uint32_t i = 1; img->dynsym && i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		size_t size = s->hdr.sh_type == SHT_REL ? sizeof(Elf64_Rel) : sizeof(Elf64_Rela);
		if ((s->hdr.sh_type != SHT_RELA && s->hdr.sh_type != SHT_REL) || !s->data ||
		    s->hdr.sh_link != img->dynsym)
			continue;
		for (uint64_t off = 0; off + size <= s->hdr.sh_size; off += size) {
			Elf64_Rela r = { 0 };
			Elf64_Sym sym;
			memcpy(&r, s->data + off, size);
			if (elfrw_reloc_symbol(img, img->dynsym, &r, &sym) &&
			    ELF64_ST_TYPE(sym.st_info) == STT_SECTION)
				return true;
		}
	}
	return false;
}

/* Of bionic's linker: relocations packed as differences (DT_ANDROID_REL to DT_ANDROID_RELASZ), and
 * the first form of DT_RELR.  DT_CREL is LLVM's. */
static bool is_packed(int64_t tag)
{
	return (tag >= 0x6000000f && tag <= 0x60000012) || tag == 0x6fffe000 || tag == 0x26;
}

/* Do sections of TYPE hold all addresses from START to END?  Linkers sort them by address. */
static bool in_sections(const struct elfrw_image *img, uint32_t type, uint64_t start, uint64_t end)
{
	for (uint32_t i = 1; i < img->n_sections && start < end; i++) {
		const Elf64_Shdr *h = &img->section[i].hdr;
		if (h->sh_type == type && (h->sh_flags & SHF_ALLOC) &&
		    start - h->sh_addr < h->sh_size)
			start = h->sh_addr + h->sh_size;
	}
	return start >= end;
}

static struct elfrw_err *dynrelocs_known(const struct elfrw_image *img)
{
	static const struct {
		int64_t start, size;
		uint32_t type;
	} table[] = { { DT_RELA, DT_RELASZ, SHT_RELA },
		      { DT_JMPREL, DT_PLTRELSZ, SHT_RELA },
		      { DT_RELR, DT_RELRSZ, SHT_RELR } };
	const struct elfrw_section *s = &img->section[img->dynamic];
	uint64_t start[3] = { 0 }, size[3] = { 0 };
	for (uint32_t p = 0; p < img->n_phdrs; p++)
		if (img->phdr[p].p_type == PT_DYNAMIC && img->phdr[p].p_filesz &&
		    (!img->dynamic || img->phdr[p].p_vaddr != s->hdr.sh_addr))
			return elfrw_error_at(NULL, img->ehdr.e_phoff + p * sizeof *img->phdr,
					      "the dynamic section is in no section of its type");
	if (!img->dynamic || !s->data)
		return NULL;
	for (uint64_t off = 0; off + sizeof(Elf64_Dyn) <= s->hdr.sh_size;
	     off += sizeof(Elf64_Dyn)) {
		Elf64_Dyn d;
		memcpy(&d, s->data + off, sizeof d);
		if (d.d_tag == DT_NULL)
			break;
		if (d.d_tag == DT_SYMTAB && d.d_un.d_ptr &&
		    (!img->dynsym || img->section[img->dynsym].hdr.sh_addr != d.d_un.d_ptr))
			return elfrw_error_at(
				s->name, off,
				"the dynamic symbol table is in no section of its type");
		if (is_packed(d.d_tag))
			return elfrw_error_at(
				s->name, off,
				"packed relocations are not supported (lld: link with --pack-dyn-relocs=relr or none)");
		for (unsigned k = 0; k < 3; k++) {
			start[k] = d.d_tag == table[k].start ? d.d_un.d_ptr : start[k];
			size[k] = d.d_tag == table[k].size ? d.d_un.d_val : size[k];
		}
	}
	for (unsigned k = 0; k < 3; k++)
		if (size[k] > UINT64_MAX - start[k] ||
		    !in_sections(img, table[k].type, start[k], start[k] + size[k]))
			return elfrw_error_at(
				s->name, 0,
				"the relocations at 0x%llx, %llu bytes, are in no section of relocations",
				(unsigned long long)start[k], (unsigned long long)size[k]);
	return NULL;
}

/* Not in every elf.h: LLVM's compact relocations, and Android's. */
#define SHT_CREL_         0x40000014
#define SHT_ANDROID_REL_  0x60000001
#define SHT_ANDROID_RELA_ 0x60000002

struct elfrw_err *elfrw_relocs_known(const struct elfrw_image *img)
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		switch (s->hdr.sh_type) {
		case SHT_CREL_:
			return elfrw_error_at(
				s->name, 0,
				"relocations of this form (CREL) are not supported (clang: compile without -Wa,--crel)");
		case SHT_ANDROID_REL_:
		case SHT_ANDROID_RELA_:
			return elfrw_error_at(
				s->name, 0,
				"packed relocations are not supported (lld: link with --pack-dyn-relocs=relr or none)");
		}
	}
	return dynrelocs_known(img);
}
