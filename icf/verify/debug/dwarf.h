/* dwarf.h: a file as libelf and libdw have it. */
#ifndef ICF_VERIFY_DEBUG_DWARF_H
#define ICF_VERIFY_DEBUG_DWARF_H
#include "icf/verify/state.h"
#include <elfutils/libdw.h>

struct icf_vdwarf {
	struct icf_velf file;
	Elf *elf;               /* file.elf */
	Dwarf *dw;              /* NULL: no debug information */
	const char *why;        /* there is some that libdw had better not see; static */
	uint8_t *line;          /* .debug_line with other numbers (icf_vd_narrow), or NULL; owned */
	const Elf_Data *loc[2]; /* .debug_loc, .debug_loclists as bytes; NULL: none */
};

/* What libdw cannot read: RET->dw NULL, and RET->why perhaps.  To be closed, also after an error.
 */
struct elfrw_err *icf_vdwarf_open(struct icf_v *v, const struct elfrw_image *img,
				  struct icf_vdwarf *ret);
void icf_vdwarf_close(struct icf_vdwarf *d); /* may be { .file.fd = -1 } */
/* The bytes of a section, decompressed; NULL: there is none, or none that can be read.  Borrowed
 * from libelf. */
const Elf_Data *icf_vd_section(const struct icf_vdwarf *f, const char *name);
/* bound.c: an error, where libdw would take much more time or memory for F, which IMG is read from,
 * than any size of it explains. */
struct elfrw_err *icf_vd_bound(const struct icf_vdwarf *f, const struct elfrw_image *img);

/* The same operations? */
bool icf_v_ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb);
#endif
