/* pair.h: a stripped program and its separate debug file as one image.
 *
 * What `objcopy --only-keep-debug` or `eu-strip -f` took apart is put together again in memory,
 * without a copy: the view is a run of addresses to which first the program and then the debug file
 * are mapped, and behind them the section headers of the whole.  It is an ELF file like one that
 * was never stripped: loaded sections with the program's bytes; symbols, debug information and kept
 * relocations with the debug file's.  Sections are numbered as in the debug file, to which symbols
 * refer; those that only the program has follow.  The program's .gnu_debuglink is no part of it. */
#ifndef ELFRW_PAIR_H
#define ELFRW_PAIR_H
#include "elfrw/image.h"
#include "elfrw/base/vec.h"

struct elfrw_patch {
	uint64_t off, size;
};

struct elfrw_pair {
	struct elfrw_image program, debug; /* as they are */
	uint64_t second;                   /* where the debug file begins in the view */
	VEC(struct elfrw_patch) patch;     /* bytes of the view that no file has */
};

/* Opens PATH and DEBUG_PATH as one image IMG, to be closed with elfrw_image_close(); both names are
 * borrowed.  Errors, also: the two do not belong together (build-id, CRC of .gnu_debuglink, section
 * headers); what concerns the debug file names it. */
struct elfrw_err *elfrw_pair_open(struct elfrw_image *img, const char *path,
				  const char *debug_path);

/* The number that .gnu_debuglink has of a file (GDB manual, "Separate Debug Files"). */
uint32_t elfrw_crc32(const uint8_t *data, size_t size);
#endif
