/* parts.h: shared by the files of this folder.
 *
 * libiberty's printers follow a reference each time they meet it: a name of 30 bytes can keep one
 * busy for ever, with or without output.  So the cost of printing is computed first, in time
 * bounded by the length of the name.  A name that costs too much is not printed. */
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

/* Can libiberty's tree of a name, with at most MAX nodes, be printed within the bounds?  false also
 * if out of memory; *NOMEM is then set. */
bool dwr_demangle_cpp_fits(const struct demangle_component *tree, size_t max, bool *nomem);

/* ---- d.c ---- */

/* Longer D names are not read. */
#define DWR_DEMANGLE_D ((size_t)1 << 14)

/* Demangles NAME, which begins with "_D", into *RET, which the caller frees; NULL as in
 * dwr_demangle().  false: out of memory. */
bool dwr_demangle_d(const char *name, char **ret);

/* ---- rust.c ---- */

/* Is NAME, which begins with "_R", a mangled name that can be printed within the bounds? */
bool dwr_demangle_rust_fits(const char *name);
#endif
