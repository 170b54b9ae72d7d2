/* table.h: jump tables that more than their functions may read (--gc-functions). */
#ifndef ICF_FOLD_UNUSED_TABLE_H
#define ICF_FOLD_UNUSED_TABLE_H
#include "icf/program/program.h"

/* Sets RET[t] for each table t of PROG that something refers to besides the function whose table it
 * is.  Whoever finds such a table can jump by it, even if nothing reaches that function. */
struct elfrw_err *icf_find_offered_tables(const struct icf_program *prog, uint8_t *ret);
#endif
