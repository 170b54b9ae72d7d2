/* pair.h: separate debug files: where they are, and what leads to them. */
#ifndef ICF_PAIR_H
#define ICF_PAIR_H
#include "elfrw/base/newfile.h"
#include "elfrw/output.h"

/* The debug file of PATH, by build-id or .gnu_debuglink, where gdb looks for it: below DIR (NULL: /usr/lib/debug), beside PATH, in
 * its .debug.  *RET is owned by the caller; NULL: there is none, or PATH has debug information itself, which *OWN (may be NULL)
 * tells. */
struct elfrw_err *icf_pair_find(const char *path, const char *dir, char **ret, bool *own);

/* Adds to OUT a .gnu_debuglink with the name of the file DEBUG_OUTPUT; its checksum is set afterwards. */
struct elfrw_err *icf_pair_add_link(struct elfrw_output *out, const char *debug_output);
void icf_pair_set_checksum(struct elfrw_output *out, uint32_t crc);
#endif
