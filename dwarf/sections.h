/* sections.h: the .debug_* sections of an image, decompressed on demand. */
#ifndef DWARF_SECTIONS_H
#define DWARF_SECTIONS_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A section's bytes; borrowed. */
struct dwr_bytes {
	const uint8_t *data;
	size_t size;
};

struct elfrw_image;

enum dwr_sec {
	DWR_INFO,
	DWR_TYPES,
	DWR_ABBREV,
	DWR_LINE,
	DWR_STR,
	DWR_LINE_STR,
	DWR_STR_OFFSETS,
	DWR_ADDR,
	DWR_ARANGES,
	DWR_RANGES,
	DWR_RNGLISTS,
	DWR_LOC,
	DWR_LOCLISTS,
	DWR_FRAME,
	DWR_NAMES,
	DWR_GDB_INDEX,
	DWR_MACRO,
	DWR_DCALL,
	DWR_VCALL,
	DWR_ICFOLD,
	DWR_SECS
};

enum dwr_compression {
	DWR_PLAIN,
	DWR_ZLIB,   /* SHF_COMPRESSED, ELFCOMPRESS_ZLIB (gABI) */
	DWR_ZSTD,   /* SHF_COMPRESSED, ELFCOMPRESS_ZSTD */
	DWR_ZDEBUG, /* .zdebug_*: "ZLIB", size as 8 bytes big-endian, zlib stream */
};

struct dwr_section {
	const char *name;      /* ".debug_info", whatever the file calls it; static */
	const char *file_name; /* as in the file (".zdebug_info"); borrowed from the image; NULL:
				  the file has none */
	uint32_t shndx;        /* 0: the file has none */
	uint8_t compression;   /* enum dwr_compression */
	uint64_t align;        /* of the decompressed section */
	const uint8_t *data;   /* NULL until loaded */
	size_t size;           /* 0 until loaded */
	uint8_t *owned;        /* what data points to when it was decompressed */
	bool loaded;
};

struct dwr_sections {
	const struct elfrw_image *image; /* borrowed */
	struct dwr_section sec[DWR_SECS];
};

/* Finds the sections; decompresses nothing.  Errors: a section twice, or a .debug_* section that is
 * SHF_ALLOC. */
struct elfrw_err *dwr_sections_init(struct dwr_sections *secs, const struct elfrw_image *image);
void dwr_sections_deinit(struct dwr_sections *secs);

/* The decompressed contents of one section (size 0 if the file has none).  Not for several threads
 * at once on one section.  The bytes live as long as SECS.  Errors: a broken compressed stream, or
 * an impossible size. */
struct elfrw_err *dwr_sections_load(struct dwr_sections *secs, enum dwr_sec id);

/* Loads all of the sections that exist, with THREADS threads. */
struct elfrw_err *dwr_sections_load_all(struct dwr_sections *secs, unsigned threads);

/* DATA (SIZE bytes) in its form for the file: compressed as SEC was in the input.  For a plain
 * section *RET is DATA itself.  Takes ownership of DATA (malloc'ed) in every case; *RET is
 * malloc'ed. */
struct elfrw_err *dwr_section_pack(const struct dwr_section *sec, uint8_t *data, size_t size,
				   unsigned threads, uint8_t **ret, size_t *ret_size);
#endif
