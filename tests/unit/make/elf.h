/* elf.h: makes small ELF-64 images for tests, in memory and as temporary files.
 *
 * The pieces are given with their addresses; the file offset of what is loaded is its address less
 * BE_BASE, so that offsets and addresses are congruent by themselves. be_build() adds .rela.* (for
 * the relocations given), .symtab, .strtab and .shstrtab, in this order, and the section headers
 * behind everything else. The caller may damage the bytes before it opens them. */
#ifndef TESTS_UNIT_MAKE_ELF_H
#define TESTS_UNIT_MAKE_ELF_H
#include "tests/unit/make/err_check.h"
#include "elfrw/image.h"
#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BE_BASE         0x400000u
#define BE_MAX_SECTIONS 48
#define BE_MAX_SEGMENTS 16
#define BE_MAX_SYMBOLS  64
#define BE_MAX_RELOCS   64

struct be {
	uint16_t type;
	uint64_t entry;
	struct {
		const char *name;
		Elf64_Shdr hdr;
		uint8_t *data;
	} sec[BE_MAX_SECTIONS];
	uint32_t n_sec;
	Elf64_Phdr ph[BE_MAX_SEGMENTS];
	uint32_t n_ph;
	Elf64_Sym sym[BE_MAX_SYMBOLS];
	uint32_t n_sym;
	struct {
		uint32_t sec;
		Elf64_Rela rela;
	} rel[BE_MAX_RELOCS];
	uint32_t n_rel;
	char str[2048];
	uint32_t str_len;
	bool one_strtab;                   /* section names and symbol names share one table */
	uint32_t symtab, strtab, shstrtab; /* indices, set by be_build() */
};

static inline void be_init(struct be *b, uint16_t type)
{
	memset(b, 0, sizeof *b);
	b->type = type;
	b->n_sec = b->n_sym = b->str_len = 1;
}

static inline void be_deinit(struct be *b)
{
	for (uint32_t i = 0; i < b->n_sec; i++)
		free(b->sec[i].data);
	memset(b, 0, sizeof *b);
}

/* DATA NULL: zeros.  A section with an address is loaded.  Wide: the fields of a section header. */
static inline uint32_t be_section(struct be *b, const char *name, uint32_t type, uint64_t flags,
				  uint64_t addr, const void *data, size_t size)
{
	assert_true(b->n_sec < BE_MAX_SECTIONS);
	uint32_t i = b->n_sec++;
	b->sec[i].name = name;
	b->sec[i].hdr = (Elf64_Shdr){ .sh_type = type,
				      .sh_flags = flags,
				      .sh_addr = addr,
				      .sh_offset = addr ? addr - BE_BASE : 0,
				      .sh_size = size,
				      .sh_addralign = 1 };
	if (type != SHT_NOBITS) {
		b->sec[i].data = calloc(1, size + 1);
		assert_non_null(b->sec[i].data);
		if (data)
			memcpy(b->sec[i].data, data, size);
	}
	return i;
}

/* A section of SIZE bytes, each of which differs from its neighbours. SEED gives each section other
 * bytes. Wide: the fields of a section header. */
static inline uint32_t be_filled(struct be *b, const char *name, uint32_t type, uint64_t flags,
				 uint64_t addr, size_t size, unsigned seed)
{
	uint32_t i = be_section(b, name, type, flags, addr, NULL, size);
	for (size_t k = 0; k < size; k++)
		b->sec[i].data[k] = (uint8_t)(seed * 31 + k * 7 + (k >> 8));
	return i;
}

/* Wide: the fields of a program header. */
static inline Elf64_Phdr *be_segment(struct be *b, uint32_t type, uint32_t flags, uint64_t addr,
				     uint64_t filesz, uint64_t memsz, uint64_t align)
{
	assert_true(b->n_ph < BE_MAX_SEGMENTS);
	Elf64_Phdr *ph = &b->ph[b->n_ph++];
	*ph = (Elf64_Phdr){ .p_type = type,
			    .p_flags = flags,
			    .p_vaddr = addr,
			    .p_paddr = addr,
			    .p_offset = addr ? addr - BE_BASE : 0,
			    .p_filesz = filesz,
			    .p_memsz = memsz,
			    .p_align = align };
	return ph;
}

static inline uint32_t be_string(struct be *b, const char *s)
{
	size_t n = strlen(s) + 1;
	uint32_t at = b->str_len;
	assert_true(at + n <= sizeof b->str);
	memcpy(b->str + at, s, n);
	b->str_len += (uint32_t)n;
	return at;
}

static inline uint32_t be_symbol(struct be *b, const char *name, uint64_t value, uint64_t size,
				 unsigned char info, uint32_t shndx)
{
	assert_true(b->n_sym < BE_MAX_SYMBOLS);
	b->sym[b->n_sym] = (Elf64_Sym){ .st_name = be_string(b, name),
					.st_value = value,
					.st_size = size,
					.st_info = info,
					.st_shndx = (uint16_t)shndx };
	return b->n_sym++;
}

static inline void be_reloc(struct be *b, uint32_t sec, uint64_t place, uint32_t type, uint32_t sym,
			    int64_t addend)
{
	assert_true(b->n_rel < BE_MAX_RELOCS);
	b->rel[b->n_rel].sec = sec;
	b->rel[b->n_rel++].rela = (Elf64_Rela){ place, ELF64_R_INFO((uint64_t)sym, type), addend };
}

static inline void be_add_relocs(struct be *b)
{
	uint32_t n = b->n_sec;
	for (uint32_t i = 1; i < n; i++) {
		Elf64_Rela rela[BE_MAX_RELOCS];
		uint32_t k = 0;
		for (uint32_t r = 0; r < b->n_rel; r++)
			if (b->rel[r].sec == i)
				rela[k++] = b->rel[r].rela;
		if (!k)
			continue;
		uint32_t at =
			be_section(b, ".rela", SHT_RELA, SHF_INFO_LINK, 0, rela, k * sizeof *rela);
		b->sec[at].hdr.sh_info = i;
		b->sec[at].hdr.sh_entsize = sizeof *rela;
		b->sec[at].hdr.sh_addralign = 8;
	}
	for (uint32_t i = n; i < b->n_sec; i++)
		b->sec[i].hdr.sh_link = b->n_sec; /* where .symtab is going to be */
}

/* .symtab, .strtab and, unless they are one, .shstrtab. */
static inline void be_add_tables(struct be *b)
{
	b->symtab = be_section(b, ".symtab", SHT_SYMTAB, 0, 0, b->sym, b->n_sym * sizeof *b->sym);
	b->sec[b->symtab].hdr.sh_entsize = sizeof *b->sym;
	b->sec[b->symtab].hdr.sh_addralign = 8;
	b->sec[b->symtab].hdr.sh_link = b->symtab + 1;
	b->sec[b->symtab].hdr.sh_info = 1;
	b->strtab = b->shstrtab = be_section(b, ".strtab", SHT_STRTAB, 0, 0, NULL, 0);
	if (!b->one_strtab)
		b->shstrtab = be_section(b, ".shstrtab", SHT_STRTAB, 0, 0, NULL, 0);
	char names[2048];
	uint32_t names_len = b->one_strtab ? b->str_len : 1;
	memcpy(names, b->str, names_len);
	for (uint32_t i = 1; i < b->n_sec; i++) {
		size_t n = strlen(b->sec[i].name) + 1;
		assert_true(names_len + n <= sizeof names);
		b->sec[i].hdr.sh_name = names_len;
		memcpy(names + names_len, b->sec[i].name, n);
		names_len += (uint32_t)n;
	}
	for (int k = 0; k < 2; k++) {
		uint32_t i = k ? b->shstrtab : b->strtab, n = k ? names_len : b->str_len;
		free(b->sec[i].data);
		b->sec[i].data = malloc(n);
		assert_non_null(b->sec[i].data);
		memcpy(b->sec[i].data, k ? names : b->str, n);
		b->sec[i].hdr.sh_size = n;
	}
}

/* Places what has no address behind all that has one.  Returns where the section headers go. */
static inline uint64_t be_place(struct be *b)
{
	uint64_t end = sizeof(Elf64_Ehdr) + b->n_ph * sizeof *b->ph;
	for (uint32_t i = 1; i < b->n_sec; i++)
		if (b->sec[i].hdr.sh_addr && b->sec[i].data &&
		    b->sec[i].hdr.sh_offset + b->sec[i].hdr.sh_size > end)
			end = b->sec[i].hdr.sh_offset + b->sec[i].hdr.sh_size;
	for (uint32_t p = 0; p < b->n_ph; p++)
		if (b->ph[p].p_offset + b->ph[p].p_filesz > end)
			end = b->ph[p].p_offset + b->ph[p].p_filesz;
	for (uint32_t i = 1; i < b->n_sec; i++) {
		if (b->sec[i].hdr.sh_addr)
			continue;
		end = (end + 7) & ~(uint64_t)7;
		b->sec[i].hdr.sh_offset = end;
		end += b->sec[i].data ? b->sec[i].hdr.sh_size : 0;
	}
	return (end + 7) & ~(uint64_t)7;
}

/* The whole file, in memory that the caller frees. */
static inline uint8_t *be_build(struct be *b, size_t *size)
{
	be_add_relocs(b);
	be_add_tables(b);
	uint64_t end = be_place(b);
	Elf64_Ehdr eh = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				       EV_CURRENT },
			  .e_type = b->type,
			  .e_machine = EM_X86_64,
			  .e_version = EV_CURRENT,
			  .e_entry = b->entry,
			  .e_phoff = b->n_ph ? sizeof eh : 0,
			  .e_shoff = end,
			  .e_ehsize = sizeof eh,
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = (uint16_t)b->n_ph,
			  .e_shentsize = sizeof(Elf64_Shdr),
			  .e_shnum = (uint16_t)b->n_sec,
			  .e_shstrndx = (uint16_t)b->shstrtab };
	*size = end + b->n_sec * sizeof(Elf64_Shdr);
	uint8_t *f = calloc(1, *size);
	assert_non_null(f);
	memcpy(f, &eh, sizeof eh);
	if (b->n_ph)
		memcpy(f + sizeof eh, b->ph, b->n_ph * sizeof *b->ph);
	for (uint32_t i = 0; i < b->n_sec; i++) {
		if (b->sec[i].data && b->sec[i].hdr.sh_size)
			memcpy(f + b->sec[i].hdr.sh_offset, b->sec[i].data, b->sec[i].hdr.sh_size);
		memcpy(f + end + i * sizeof(Elf64_Shdr), &b->sec[i].hdr, sizeof(Elf64_Shdr));
	}
	return f;
}

/* The headers of a built file. */
static inline Elf64_Ehdr *be_ehdr(uint8_t *f)
{
	return (Elf64_Ehdr *)f;
}
static inline Elf64_Phdr *be_phdr(uint8_t *f, uint32_t i)
{
	return (Elf64_Phdr *)(f + be_ehdr(f)->e_phoff) + i;
}
static inline Elf64_Shdr *be_shdr(uint8_t *f, uint32_t i)
{
	return (Elf64_Shdr *)(f + be_ehdr(f)->e_shoff) + i;
}

#define BE_PATH_SIZE 256

/* A name for a temporary file or directory, in $TMPDIR or /tmp; ends in XXXXXX. */
static inline void be_template(char path[BE_PATH_SIZE])
{
	const char *dir = getenv("TMPDIR");
	snprintf(path, BE_PATH_SIZE, "%s/icfold-test-XXXXXX", dir && *dir ? dir : "/tmp");
}

static inline void be_save(const void *f, size_t size, char path[BE_PATH_SIZE])
{
	be_template(path);
	int fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, f, size), size);
	close(fd);
}

/* Opens the bytes as an image; the file is gone again when this returns (the mapping and its
 * descriptor stay). */
static inline struct elfrw_err *be_open(const void *f, size_t size, struct elfrw_image *img)
{
	char path[BE_PATH_SIZE];
	be_save(f, size, path);
	struct elfrw_err *err = elfrw_image_open(img, path);
	unlink(path);
	if (!err)
		img->path = "built image";
	return err;
}

#endif
