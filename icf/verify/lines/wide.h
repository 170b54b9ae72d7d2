/* wide.h: line tables with numbers that are too large for libdw. */
#ifndef ICF_VERIFY_LINES_WIDE_H
#define ICF_VERIFY_LINES_WIDE_H
#include "elfrw/base/err.h"
#include <gelf.h>
#include <stdint.h>

enum { ICF_VD_COLUMN_BITS = 16, ICF_VD_DISCRIMINATOR_BITS = 24 };

/* X in BITS bits, in which libdw has it: a hash of X if X has more. */
static inline uint32_t icf_vd_narrowed(uint64_t x, unsigned bits)
{
	return (uint32_t)(x >> bits ? x * UINT64_C(0x9e3779b97f4a7c15) >> (64 - bits) : x);
}

/* Replaces numbers that are too large for libdw in DATA, the line tables, in the one at OFF, before
 * libdw reads it.  *COPY: DATA's new contents, to be freed after the handle is closed, or NULL; the
 * same for all tables of a handle. */
struct elfrw_err *icf_vd_narrow(Elf_Data *data, uint64_t off, uint8_t **copy);
#endif
