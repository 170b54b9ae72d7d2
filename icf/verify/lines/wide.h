/* wide.h: line tables with numbers that libdw has no room for. */
#ifndef ICF_VERIFY_LINES_WIDE_H
#define ICF_VERIFY_LINES_WIDE_H
#include "elfrw/base/err.h"
#include <gelf.h>

/* Replaces what libdw has no room for in DATA, the line tables before libdw reads the
 * first one.  *COPY: what DATA holds then, to be freed behind the handle, or NULL. */
struct elfrw_err *icf_vd_narrow(Elf_Data *data, uint8_t **copy);
#endif
