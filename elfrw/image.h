/* image.h: the input file, mapped and checked; const after elfrw_image_open().
 *
 * ELF-64 little-endian ET_EXEC and ET_DYN (System V gABI, chapters 4 and 5).  Every section with
 * contents and every loadable segment lies inside the file.  Tables have the entry sizes that the
 * gABI requires.  Reads through this interface need no further check against the file's bounds. */
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

/* The operations of an image that is made of several files.  Such an image has no file of its
 * own. */
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
		in_debug; /* of a pair (pair.h): its index in either file, 0: not in that file */
};

struct elfrw_image {
	const uint8_t *base; /* the mapped file */
	size_t size;
	int fd;      /* of the mapped file */
	mode_t mode; /* permission bits */
	uid_t uid;
	gid_t gid;
	dev_t dev; /* identity of the file, and the time of its last change */
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
	struct elfrw_pair *pair; /* IMG is a program and its debug file (pair.h); owned; or NULL */
};

/* Maps PATH and checks it.  Errors: not ELF, truncated, 32-bit, big-endian, ET_REL, ET_CORE,
 * unsupported machine, no section headers, any header that points outside the file. */
struct elfrw_err *elfrw_image_open(struct elfrw_image *img, const char *path);
/* The same for a separate debug file. */
struct elfrw_err *elfrw_image_open_separate(struct elfrw_image *img, const char *path);
void elfrw_image_close(struct elfrw_image *img);

/* An error if somebody wrote to the file or changed its size since it was opened: the bytes read
 * then belong to no single state of the file. */
struct elfrw_err *elfrw_image_unchanged(const struct elfrw_image *img);

/* Maps PATH, a regular file of at least LEAST bytes, and sets the fields that need no reading (base
 * to mtime, except path).  The caller unmaps IMG->size bytes and closes IMG->fd.  Errors do not
 * name PATH. */
struct elfrw_err *elfrw_image_map(struct elfrw_image *img, const char *path, size_t least);

/* A second mapping of the whole file, writable and private to the caller, who unmaps IMG->size
 * bytes.  NULL: see errno. */
uint8_t *elfrw_image_private_copy(const struct elfrw_image *img);

/* Gives back the memory of pages that were read.  They are read again on the next access. */
void elfrw_image_forget(const struct elfrw_image *img);
/* The same for the section NAME alone, if IMG is one file. */
void elfrw_image_forget_section(const struct elfrw_image *img, const char *name);

/* The size of the program's file; of a pair, without the debug file. */
size_t elfrw_image_file_size(const struct elfrw_image *img);

/* The first section of that name, or NULL. */
const struct elfrw_section *elfrw_image_section(const struct elfrw_image *img, const char *name);

/* The page size that IMG may be loaded with: the alignment of its segments, within the limits of
 * its machine. */
uint64_t elfrw_image_page(const struct elfrw_image *img);

/* The addresses from the first that is loaded to behind the last, as [*LO, *HI); without any, *LO
 * is UINT64_MAX and *HI 0. */
void elfrw_image_span(const struct elfrw_image *img, uint64_t *lo, uint64_t *hi);
/* The SIZE bytes at virtual address VA in the file, if they lie in one section with contents; or
 * NULL. */
const uint8_t *elfrw_image_at(const struct elfrw_image *img, uint64_t va, uint64_t size);

/* May the program write to section S without asking: by the section's own flags, or those of a
 * segment that holds some of it? */
bool elfrw_image_is_writable(const struct elfrw_image *img, const struct elfrw_section *s);

/* elfrw_image_section_at: the index of the alloc section (except TLS NOBITS) that holds VA, or 0.
 * The other: the index of the section with contents that holds VA, or of the next one behind VA, or
 * 0. */
uint32_t elfrw_image_section_at(const struct elfrw_image *img, uint64_t va);
uint32_t elfrw_image_section_from(const struct elfrw_image *img, uint64_t va);

/* The sections of kept relocations (elfrw_image_kept_relocs) of section SHNDX, in order.  AFTER 0:
 * the first one; else the one behind AFTER.  0: no more. */
uint32_t elfrw_image_relocs_of(const struct elfrw_image *img, uint32_t shndx, uint32_t after);

/* Makes the index for the functions above, and frees it.  Whoever makes an image calls this.
 * Error: sections overlap. */
struct elfrw_err *elfrw_image_index_make(struct elfrw_image *img);
void elfrw_image_index_free(struct elfrw_image *img);

/* The section that SYM stands in: st_shndx, unless its value lies outside of that section and
 * inside of another.  When GNU strip removes sections, it does not renumber .dynsym (DYNAMIC).  So
 * a number in .dynsym may be that of an unloaded section, or of none.  The number is believed if
 * the section holds the whole of a data object, as .rustc does.  SHN_UNDEF and reserved numbers are
 * returned unchanged. */
uint32_t elfrw_image_symbol_section(const struct elfrw_image *img, const Elf64_Sym *sym,
				    bool dynamic);

/* A section that SYM of .dynsym can name instead of a section that does not exist: the one that
 * holds its address, or the unloaded one that is as long as the symbol, or the loaded one before
 * its address.  GONE: by section, those not to be chosen.  SHN_UNDEF: there is none. */
uint32_t elfrw_image_stand_in(const struct elfrw_image *img, const Elf64_Sym *sym,
			      const bool *gone);

/* Does S hold relocations that the linker kept for section `sh_info`?  Relocations that name no
 * symbol table (gold -s --emit-relocs) do not count: they say nothing. */
bool elfrw_image_kept_relocs(const struct elfrw_image *img, const struct elfrw_section *s);

/* The string at OFF of the string table section SHNDX; NULL if OFF is outside or the table does not
 * end in NUL. */
const char *elfrw_image_string(const struct elfrw_image *img, uint32_t shndx, uint64_t off);
#endif
