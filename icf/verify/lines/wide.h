/* wide.h: line tables with numbers that are too large for libdw. */
#ifndef ICF_VERIFY_LINES_WIDE_H
#define ICF_VERIFY_LINES_WIDE_H
#include "elfrw/base/err.h"
#include <gelf.h>

/* Replaces numbers that are too large for libdw in DATA, the line tables, before libdw reads the
 * first one.  *COPY: DATA's new contents, to be freed after the handle is closed, or NULL. */
struct elfrw_err *icf_vd_narrow(Elf_Data *data, uint8_t **copy);
#endif
