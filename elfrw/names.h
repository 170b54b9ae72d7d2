/* names.h: makes string tables (gABI, "String Table"). */
#ifndef ELFRW_NAMES_H
#define ELFRW_NAMES_H
#include "elfrw/base/err.h"
#include <stddef.h>
#include <stdint.h>

/* A string table that begins with HEAD (HEAD_SIZE bytes; 0: with one zero byte), for the N texts of
 * NAME, of which NULL needs none.  A text that another one ends with is not written twice.  OFF[i],
 * for each that is not NULL: its offset.  *RET is malloc'ed.  The result depends on the texts and
 * their order alone. */
struct elfrw_err *elfrw_names(const char *const *name, size_t n, const uint8_t *head,
			      size_t head_size, uint32_t *off, uint8_t **ret, size_t *ret_size);
#endif
