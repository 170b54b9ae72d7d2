/* pair.h: a stripped program and its separate debug file as one image.
 *
 * This puts together in memory, without a copy, what `objcopy --only-keep-debug` or `eu-strip -f`
 * took apart.  The view is a run of addresses: the mapped program, the mapped debug file, then the
 * section headers of the whole.  It is an ELF file like one that was never stripped.  Loaded
 * sections have the program's bytes.  Symbols, debug information and kept relocations have the
 * debug file's bytes.  Sections are numbered as in the debug file, whose symbols use these numbers;
 * sections that only the program has follow.  The program's .gnu_debuglink is not part of the
 * view. */
#ifndef ELFRW_PAIR_H
#define ELFRW_PAIR_H
#include "elfrw/image.h"
#include "elfrw/base/vec.h"

struct elfrw_patch {
	uint64_t off, size;
};

struct elfrw_pair {
	struct elfrw_image program, debug; /* unchanged */
	uint64_t second;                   /* where the debug file begins in the view */
	VEC(struct elfrw_patch) patch;     /* bytes of the view that no file has */
};

/* Opens PATH and DEBUG_PATH as one image IMG, to be closed with elfrw_image_close().  Both names
 * are borrowed.  Further errors: the two files do not belong together (build-id, CRC of
 * .gnu_debuglink, section headers).  Errors about the debug file name it. */
struct elfrw_err *elfrw_pair_open(struct elfrw_image *img, const char *path,
				  const char *debug_path);

/* The checksum of a file for .gnu_debuglink (GDB manual, "Separate Debug Files"). */
uint32_t elfrw_crc32(const uint8_t *data, size_t size);
#endif
