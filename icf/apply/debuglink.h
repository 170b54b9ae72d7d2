/* debuglink.h: .gnu_debuglink, which leads from a program to its separate debug file. */
#ifndef ICF_APPLY_DEBUGLINK_H
#define ICF_APPLY_DEBUGLINK_H
#include "elfrw/base/newfile.h"
#include "elfrw/output.h"

/* Adds to OUT a .gnu_debuglink with the name of the file DEBUG_OUTPUT.  The checksum is set
 * later. */
struct elfrw_err *icf_debuglink_add_link(struct elfrw_output *out, const char *debug_output);
void icf_debuglink_set_checksum(struct elfrw_output *out, uint32_t crc);
#endif
