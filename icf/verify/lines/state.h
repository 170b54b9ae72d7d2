/* state.h: shared by the files that compare line tables. */
#ifndef ICF_VERIFY_LINES_STATE_H
#define ICF_VERIFY_LINES_STATE_H
#include "icf/verify/debug/debug.h"

/* rows.c: adds a row; sets S->nomem. */
void icf_vrows_add(struct icf_vrows *s, const struct icf_vrow *r);
/* The same, with a full file name that outlives the handle: units differ in the base of their
 * names. */
void icf_vrows_keep(struct icf_vdebug *d, struct icf_vrows *s, struct icf_vrow r);
/* The same for all rows of MORE, which are no longer there. */
void icf_vrows_keep_all(struct icf_vdebug *d, struct icf_vrows *s, struct icf_vrows *more);
/* The full name of FILE of the current unit, owned by D->names; NULL: no memory. */
const char *icf_vrows_whole(struct icf_vdebug *d, const char *file);
/* All rows in libdw's order; false: there is no table. */
bool icf_vrows_read(const struct icf_v *v, struct icf_vdwarf *f, Dwarf_Die *cu,
		    struct icf_vrows *ret);
/* tail.c: the next sequence of ROWS, from *AT on, that has no row, or whose rows are all at its end
 * and cover nothing; false: no more.  If the table could not be walked, libdw's order tells, which
 * shows such sequences also where others overlap and end at one place. */
bool icf_vrows_next_empty(const struct icf_vrows *rows, size_t *at, uint64_t *addr);
/* The same file.  Some readers skip an operation by its length, others by its operands.  Only the
 * rows of folded functions are hidden.  IN: the rows of IN's table, or NULL. */
void icf_vrows_check_lengths(struct icf_vdebug *d, uint64_t cu, const struct icf_vrows *in,
			     const struct icf_vrows *out);
/* Does U of IN share its code? */
static inline bool icf_vlines_grouped(const struct icf_v *v, uint32_t u)
{
	return !icf_v_removed(&v->claim, u) &&
	       ((v->claim.unit.data[u].flags & ICF_V_FOLDED) || v->claim.unit.data[u].shared);
}
/* Compares all but the address. */
int icf_vrow_cmp(const struct icf_vrow *a, const struct icf_vrow *b);
/* For qsort: by address and all else; by address and place in the table. */
int icf_vrow_by_all(const void *pa, const void *pb);
int icf_vrow_by_address(const void *pa, const void *pb);
void icf_vrows_sort(struct icf_vrows *s, int (*cmp)(const void *, const void *));
const char *icf_vrow_show(const struct icf_vrow *r, char buf[400]);

/* sequences.c: is EXT, an extended opcode of N bytes, the one that begins a folded function's rows?
 */
bool icf_vline_hides(const uint8_t *ext, uint64_t n);

/* own_header.c: the header of a line table; libdw does not give all of it. */

struct icf_vline_file {
	const char *name;
	uint64_t dir, mtime, size;
	const uint8_t *md5; /* NULL: none */
};

struct icf_vline_header {
	unsigned version;
	bool usual; /* the usual opcodes and sizes */
	unsigned opcode_base;
	uint64_t program, end;           /* offsets of the table's rows, in the section */
	VEC(const char *) dir;           /* before version 5: from 1 on */
	VEC(struct icf_vline_file) file; /* the same */
	bool nomem;
};

/* The string sections that a header may refer to. */
struct icf_vtexts {
	const Elf_Data *line, *line_str, *str;
};

struct icf_vline_table {
	uint64_t off;
	const char *comp_dir;
};

/* The string sections of F. */
struct icf_vtexts icf_vtexts_of(const struct icf_vdwarf *f);
/* The header at OFF of .debug_line; false: none that can be read. */
bool icf_vline_header(const struct icf_vtexts *t, uint64_t off, struct icf_vline_header *h);
/* The place of the table of DIE's unit; false: none. */
bool icf_vline_table_of(Dwarf_Die *die, struct icf_vline_table *t);
/* Operands of the standard opcodes. */
extern const uint8_t icf_vline_lengths[12];
/* sequences.c: from the place of a function's own rows in the note, up to the next function's or
 * the end, there must be the stated number of sequences, all in the function's code. */
struct elfrw_err *icf_vline_sequences(struct icf_vdebug *d, const struct icf_vtexts *t,
				      const struct icf_vline_header *h);
#endif
