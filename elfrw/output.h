/* output.h: the output file as the input plus edits: sections replaced, moved, dropped or added.
 * The edits are then laid out and written.  If the input is a program and its debug file (pair.h),
 * the output is two files as well.
 *
 * Edits come first and decide contents and addresses.  elfrw_output_layout() then decides file
 * offsets and headers.  elfrw_output_write() puts the result in place of PATH in one step. */
#ifndef ELFRW_OUTPUT_H
#define ELFRW_OUTPUT_H
#include "elfrw/image.h"
#include "elfrw/base/newfile.h"
#include "elfrw/tail.h"
#include "elfrw/base/vec.h"

struct elfrw_outsec {
	uint64_t addr, size;
	const uint8_t *data; /* SIZE bytes: the image's, or `edited` */
	uint8_t *edited;     /* NULL, the section in the private mapping, or `owned` */
	uint8_t *owned;      /* new contents (malloc), or NULL */
	uint64_t flags;      /* sh_flags */
	uint64_t align;      /* sh_addralign */
	uint32_t info;       /* sh_info; an input index if it is a section index */
	bool drop;
	bool debug;      /* it is in the debug file: set by the layout */
	bool referenced; /* something may refer to its address: it must not move to make room */
	/* Set by the layout. */
	uint32_t index; /* in the output, 0 when dropped */
	uint64_t offset;
};

struct elfrw_newsec {
	const char *name; /* borrowed */
	uint8_t *data;    /* owned */
	uint64_t size, flags, align;
	uint64_t offset;
	bool debug; /* it goes to the debug file */
};

/* A run of bytes of a loadable segment: becomes one PT_LOAD. */
struct elfrw_piece {
	Elf64_Phdr ph; /* new */
	uint32_t old;  /* index of the input's program header */
	bool first;    /* the first of its segment */
};

/* Zeros that need no room on disk. */
struct elfrw_hole {
	uint64_t va, size;
};

struct elfrw_output {
	const struct elfrw_image *img;
	struct elfrw_outsec *sec; /* by input index; owned */
	VEC(struct elfrw_newsec) added;
	VEC(struct elfrw_hole) hole;
	uint64_t entry;
	uint8_t *copy; /* a second, private mapping of the input; pages are copied on their first
			  change; owned */
	/* Set by the layout. */
	VEC(struct elfrw_piece) piece;
	VEC(Elf64_Phdr) phdr;
	Elf64_Ehdr ehdr;
	uint64_t file_size;
	bool unchanged;         /* the file is the input byte for byte, whatever the edits */
	struct elfrw_tail tail; /* data appended to the input */
	uint8_t *shdrs;         /* the section header table; owned */
	uint8_t *shstrtab;      /* owned; NULL: as in the input */
	uint64_t shstrtab_size;
	uint32_t n_out;     /* section headers */
	uint32_t n_split;   /* segments cut in two */
	uint32_t n_unsplit; /* holes that stay because there is no room for a program header */
	bool no_pt_phdr;    /* PT_PHDR gave its place to another header */
};

struct elfrw_err *elfrw_output_init(struct elfrw_output *out, const struct elfrw_image *img);
void elfrw_output_deinit(struct elfrw_output *out);

/* The section's bytes, to be changed in place.  Only changed pages are copied.  *RET is NULL for a
 * section without contents. */
struct elfrw_err *elfrw_output_edit(struct elfrw_output *out, uint32_t shndx, uint8_t **ret);

/* New contents; takes ownership of DATA. */
void elfrw_output_replace(struct elfrw_output *out, uint32_t shndx, uint8_t *data, uint64_t size);

void elfrw_output_drop(struct elfrw_output *out, uint32_t shndx);

/* Adds a section that is not loaded; of a pair, to the debug file.  Takes ownership of DATA, also
 * on failure. */
struct elfrw_err *elfrw_output_add(struct elfrw_output *out, const char *name, uint8_t *data,
				   uint64_t size, uint64_t flags, uint64_t align);

/* The SIZE bytes at virtual address VA (old = new), to be changed in place in the section's edited
 * copy.  *RET is NULL if no section with contents is there. */
struct elfrw_err *elfrw_output_at(struct elfrw_output *out, uint64_t va, uint64_t size,
				  uint8_t **ret);

/* Decides offsets and headers. */
struct elfrw_err *elfrw_output_layout(struct elfrw_output *out);

/* An error if the file is too long for data appended to the input to keep its place. */
struct elfrw_err *elfrw_output_tail_fits(const struct elfrw_output *out);

/* Replaces the layout, for an image that is no pair: the output is the input byte for byte. */
void elfrw_output_same(struct elfrw_output *out);

/* The offset in the output file of the byte at new address VA; false: not in the file. */
bool elfrw_output_offset(const struct elfrw_output *out, uint64_t va, uint64_t *ret);

/* Writes the file; elfrw_newfile_commit() then puts it in place as PATH.  The file gets the input's
 * permissions with the umask applied.  If PATH is the input itself, the whole mode and, if allowed,
 * the owner are kept.  Errors do not name PATH. */
struct elfrw_err *elfrw_output_begin(const struct elfrw_output *out, const char *path,
				     struct elfrw_newfile *ret);

/* The second half of elfrw_output_begin(): writes to the file F, which elfrw_newfile_begin() began.
 * The caller drops F after an error. */
struct elfrw_err *elfrw_output_fill(const struct elfrw_output *out, const struct elfrw_newfile *f);

/* Writes the debug file of a laid-out pair as elfrw_output_begin() does, and returns its checksum
 * for .gnu_debuglink. */
struct elfrw_err *elfrw_output_begin_debug(const struct elfrw_output *out, const char *path,
					   struct elfrw_newfile *ret, uint32_t *crc);

/* The same as elfrw_output_begin(), followed by the commit. */
struct elfrw_err *elfrw_output_write(const struct elfrw_output *out, const char *path);
#endif
