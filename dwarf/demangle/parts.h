/* parts.h: what the files of this folder share.
 *
 * libiberty's printers follow references back as often as they meet them: 30 bytes of a name can
 * keep one busy for ever, with or without output.  So what they would do is reckoned first, in time
 * that the length of the name bounds, and a name that costs too much is not given to them. */
#ifndef DWARF_DEMANGLE_PARTS_H
#define DWARF_DEMANGLE_PARTS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct demangle_component;

/* Longer readable forms are not made. */
#define DWR_DEMANGLE_TEXT ((size_t)1 << 20)
/* Steps of a printer; names of real programs need some thousands. */
#define DWR_DEMANGLE_STEPS ((uint64_t)1 << 18)

/* ---- cpp.c ---- */

/* Can the tree that libiberty has made of a name, of at most MAX nodes, be printed within the
 * bounds?  false also: out of memory, *NOMEM set. */
bool dwr_demangle_cpp_fits(const struct demangle_component *tree, size_t max, bool *nomem);

/* ---- d.c ---- */

/* Longer D names are not read. */
#define DWR_DEMANGLE_D ((size_t)1 << 14)

/* NAME, which begins with "_D", in *RET, which the caller frees, or NULL as dwr_demangle().  false:
 * out of memory. */
bool dwr_demangle_d(const char *name, char **ret);

/* ---- rust.c ---- */

/* Is NAME, which begins with "_R", a mangled name that can be printed within the bounds? */
bool dwr_demangle_rust_fits(const char *name);
#endif
