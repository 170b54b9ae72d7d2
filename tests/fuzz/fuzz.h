/* fuzz.h: what the harnesses share.
 *
 * A harness is one file with LLVMFuzzerTestOneInput(): it feeds its bytes to one reader and then
 * asks for everything that the reader offers. Errors are freed and forgotten; what counts is that
 * nothing crashes, leaks, hangs or reads beyond its input.
 *
 * Readers of one section get the bytes as they are, readers of several sections a container of
 *	id (1 byte), size (2 bytes, little-endian), contents
 * with the ids below; readers of files get whole ELF files. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H
#include "dwarf/sections.h"
#include "elfrw/addrmap.h"
#include "elfrw/image.h"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Ends the process when COND is false: a promise of a header is broken. */
#define FUZZ_HOLDS(cond)         \
	do {                     \
		if (!(cond))     \
			abort(); \
	} while (0)

/* Ids of sections are indices of this table (fuzz.c); the container sets the upper bits. */
#define FUZZ_ID           0x3f
#define FUZZ_Z            0x40 /* named .zdebug_* */
#define FUZZ_COMPRESSED   0x80 /* SHF_COMPRESSED */
#define FUZZ_MAX_SECTIONS 40
extern const char *const fuzz_section_names[];

#define FUZZ_CODE      0x1000u /* address of .text: FUZZ_UNITS functions of FUZZ_UNIT_SIZE bytes */
#define FUZZ_UNITS     32u
#define FUZZ_UNIT_SIZE 32u
#define FUZZ_DATA(id)  (0x100000u * ((id) + 1u)) /* address of a section that is loaded */

/* An image that exists in memory only. */
struct fuzz_image {
	struct elfrw_image img;
	struct elfrw_section section[FUZZ_MAX_SECTIONS];
	char names[FUZZ_MAX_SECTIONS][32];
};
void fuzz_image_init(struct fuzz_image *f, const uint8_t *data, size_t size);
void fuzz_image_deinit(struct fuzz_image *f);
const struct elfrw_section *fuzz_section(const struct fuzz_image *f,
					 const char *name); /* an empty one if there is none */

/* Folds every fourth unit, some with a thunk, and moves the others together. */
void fuzz_map_init(struct elfrw_addrmap *map);

/* limit.c: starts the time that an input of SIZE bytes may take; SIZE_MAX: the input was read, and
 * the time ends. */
void fuzz_may_take(size_t size);

/* Frees ERR; true: there was none. */
bool fuzz_ok(struct elfrw_err *err);

/* A path whose file has these bytes until the next call with the same SLOT (0 to 3). */
const char *fuzz_file(unsigned slot, const uint8_t *data, size_t size);

/* Rewrites the debug information in a container.  POLICY: enum dwr_policy. */
void fuzz_rewrite(const uint8_t *data, size_t size, unsigned policy);
#endif
