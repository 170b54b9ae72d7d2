/* image.h: the input file, mapped and checked; const after elfrw_image_open().
 *
 * ELF-64 little-endian ET_EXEC and ET_DYN (System V gABI, chapters 4 and 5).  Every section that
 * occupies the file lies inside it, every loadable segment too, tables have the entry sizes they
 * must have: what is read through this interface needs no further range check against the file. */
#ifndef ELFRW_IMAGE_H
#define ELFRW_IMAGE_H
#include "elfrw/base/err.h"
#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

struct elfrw_arch;
struct elfrw_pair;
struct elfrw_image;

/* What an image that is put together of several files does in its own way; the image keeps no file
 * of its own then. */
struct elfrw_image_view {
	void (*close)(struct elfrw_image *img);
	struct elfrw_err *(*unchanged)(const struct elfrw_image *img);
	uint8_t *(*private_copy)(const struct elfrw_image *img);
	void (*forget)(const struct elfrw_image *img);
	size_t (*file_size)(const struct elfrw_image *img);
};

struct elfrw_section {
	const char *name; /* in the file's .shstrtab; never NULL */
	Elf64_Shdr hdr;
	const uint8_t *data; /* hdr.sh_size bytes of the mapped file; NULL for NOBITS, NULL type and
				empty sections */
	uint32_t in_program,
		in_debug; /* of a pair (pair.h): its index in either file, 0: it is not there */
};

struct elfrw_image {
	const uint8_t *base; /* the mapped file */
	size_t size;
	int fd;      /* of the mapped file */
	mode_t mode; /* permission bits */
	uid_t uid;
	gid_t gid;
	dev_t dev; /* which file it is, and when it was last written to */
	ino_t ino;
	struct timespec mtime;
	const char *path; /* borrowed from the caller */
	Elf64_Ehdr ehdr;
	const struct elfrw_arch *arch;
	struct elfrw_section *section; /* owned; n_sections entries, index = section header index */
	uint32_t n_sections;
	uint32_t shstrndx;
	Elf64_Phdr *phdr; /* owned copy */
	uint32_t n_phdrs;
	uint32_t symtab, dynsym, dynamic; /* section indices, 0 when absent */
	bool pic;                         /* ET_DYN: addresses are relative to a base */
	bool separate; /* a debug file: loaded sections have no contents, segments mean nothing */
	struct elfrw_image_index *index;     /* image_index.c; owned; or NULL */
	const struct elfrw_image_view *view; /* NULL: the image is one file */
	struct elfrw_pair *pair; /* IMG is a program and its debug file (pair.h), which this tells
				    apart; owned; or NULL */
};

/* Maps PATH and checks it.  Errors: not ELF, truncated, 32-bit, big-endian, ET_REL, ET_CORE,
 * unsupported machine, no section headers, any header that points outside the file. */
struct elfrw_err *elfrw_image_open(struct elfrw_image *img, const char *path);
/* The same for a separate debug file. */
struct elfrw_err *elfrw_image_open_separate(struct elfrw_image *img, const char *path);
void elfrw_image_close(struct elfrw_image *img);

/* An error if somebody wrote to the file or changed its size since it was opened: what was read
 * then fits no one state of it. */
struct elfrw_err *elfrw_image_unchanged(const struct elfrw_image *img);

/* Only maps PATH, a regular file of at least LEAST bytes, and sets what is known of it without
 * reading it (base to mtime, path aside).  The caller unmaps IMG->size bytes and closes IMG->fd.
 * Errors do not name PATH. */
struct elfrw_err *elfrw_image_map(struct elfrw_image *img, const char *path, size_t least);

/* A second mapping of the whole file, writable and private to the caller, who unmaps IMG->size
 * bytes.  NULL: errno tells. */
uint8_t *elfrw_image_private_copy(const struct elfrw_image *img);

/* Gives back the memory of what was read; it comes back when it is read again. */
void elfrw_image_forget(const struct elfrw_image *img);

/* The size of the program's file, which a pair's debug file adds nothing to. */
size_t elfrw_image_file_size(const struct elfrw_image *img);

/* The first section of that name, or NULL. */
const struct elfrw_section *elfrw_image_section(const struct elfrw_image *img, const char *name);

/* The size of the pages that IMG may be loaded in: what its segments are aligned to, within what
 * its machine knows. */
uint64_t elfrw_image_page(const struct elfrw_image *img);

/* SIZE bytes at the virtual address VA as the file holds them, when they lie in one section with
 * contents; or NULL. */
const uint8_t *elfrw_image_at(const struct elfrw_image *img, uint64_t va, uint64_t size);

/* Index of the alloc section (TLS NOBITS aside) that holds VA, or 0; and of the one with contents
 * that holds VA, or the next one behind VA, or 0. */
uint32_t elfrw_image_section_at(const struct elfrw_image *img, uint64_t va);
uint32_t elfrw_image_section_from(const struct elfrw_image *img, uint64_t va);

/* The sections of kept relocations (elfrw_image_kept_relocs) of section SHNDX, in their order: the
 * first one when AFTER is 0, the one behind AFTER; 0: no more. */
uint32_t elfrw_image_relocs_of(const struct elfrw_image *img, uint32_t shndx, uint32_t after);

/* Makes the index that these need, of whoever makes an image, and frees it.  Error: sections
 * overlap. */
struct elfrw_err *elfrw_image_index_make(struct elfrw_image *img);
void elfrw_image_index_free(struct elfrw_image *img);

/* The section that SYM stands in: st_shndx, unless its value lies outside of that section and
 * inside of another.  GNU strip leaves the numbers of .dynsym (DYNAMIC) as they were when it takes
 * out sections before others.  So a number of .dynsym may be that of an unloaded section, or of
 * none.  It is believed where the section holds the whole of a data object, as .rustc does.
 * SHN_UNDEF and reserved numbers are returned as they are. */
uint32_t elfrw_image_symbol_section(const struct elfrw_image *img, const Elf64_Sym *sym,
				    bool dynamic);

/* A section that SYM of .dynsym can name instead of a section that is not there: the one that holds
 * its address, or the unloaded one that is as long as the symbol, or the loaded one before its
 * address.  GONE: by section, what is not to be chosen.  SHN_UNDEF: there is none. */
uint32_t elfrw_image_stand_in(const struct elfrw_image *img, const Elf64_Sym *sym,
			      const bool *gone);

/* Are these relocations that the linker kept for S's `sh_info`?  Those that name no symbol table
 * (gold -s --emit-relocs) say nothing. */
bool elfrw_image_kept_relocs(const struct elfrw_image *img, const struct elfrw_section *s);

/* The string at OFF of the string table section SHNDX, or NULL when it is not inside or the table
 * does not end in NUL. */
const char *elfrw_image_string(const struct elfrw_image *img, uint32_t shndx, uint64_t off);
#endif
