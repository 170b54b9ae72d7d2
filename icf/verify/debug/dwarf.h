/* dwarf.h: a file in the form of libelf and libdw. */
#ifndef ICF_VERIFY_DEBUG_DWARF_H
#define ICF_VERIFY_DEBUG_DWARF_H
#include "icf/verify/state.h"
#include <elfutils/libdw.h>

struct icf_vdwarf {
	struct icf_velf file;
	Elf *elf;        /* file.elf */
	Dwarf *dw;       /* NULL: no debug information */
	const char *why; /* there is debug information that libdw must not see; static */
	uint8_t *line;   /* .debug_line with replaced numbers (wide.h), or NULL; owned */
	/* As bytes; NULL: none. */
	const Elf_Data *loc[2];    /* .debug_loc, .debug_loclists */
	const Elf_Data *ranges[2]; /* .debug_ranges, .debug_rnglists */
	const Elf_Data *abbrev;
};

/* If libdw cannot read the file, RET->dw is NULL, and RET->why may say why.  Close it also after an
 * error. */
struct elfrw_err *icf_vdwarf_open(struct icf_v *v, const struct elfrw_image *img,
				  struct icf_vdwarf *ret);
void icf_vdwarf_close(struct icf_vdwarf *d); /* may be { .file.fd = -1 } */
/* The decompressed bytes of a section; NULL: there is none, or it cannot be read.  Borrowed from
 * libelf. */
Elf_Data *icf_vd_section(const struct icf_vdwarf *f, const char *name);
/* bound.c: an error if libdw would take much more time or memory for F, which was read from IMG,
 * than F's size explains. */
struct elfrw_err *icf_vd_bound(const struct icf_vdwarf *f, const struct elfrw_image *img);

/* Are the operations the same? */
bool icf_v_ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb);
#endif
