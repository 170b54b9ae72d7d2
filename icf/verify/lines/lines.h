/* lines.h: the comparison of line tables. */
#ifndef ICF_VERIFY_LINES_LINES_H
#define ICF_VERIFY_LINES_LINES_H
#include "icf/verify/debug/debug.h"

/* lines.c: compares the line table of one unit.  folded.c: compares the rows of folded functions,
 * with the rows of all parts in ALL. */
struct elfrw_err *icf_vd_lines(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b);
struct elfrw_err *icf_vd_artificial_lines(struct icf_vdebug *d, Dwarf_Die *b);
struct elfrw_err *icf_vd_folded_lines(struct icf_vdebug *all);
void icf_vd_lines_deinit(struct icf_vdebug *d);
/* rows.c: adds the rows of FROM, which are no longer there, to TO; false: no memory. */
bool icf_vrows_join(struct icf_vrows *to, struct icf_vrows *from);
/* The same file: the rows of N lists, by unit, of which there are UNITS, table, address and all
 * else.  RET is empty. */
struct elfrw_err *icf_vrows_gather(struct icf_vrow_refs *ret, const struct icf_vrows *const *list,
				   size_t n, size_t units);
/* moved.c: is it clear, without reading OUT's rows, that those of the table at TO are the images of
 * IN's at FROM, and that there are no others?  The headers are not compared. */
bool icf_vd_lines_moved(struct icf_vdebug *d, uint64_t from, uint64_t to);
/* The same file: keeps what later checks need of the rows of such a table, at FROM of IN.  CU: the
 * unit's place. */
void icf_vd_lines_keep_moved(struct icf_vdebug *d, uint64_t cu, uint64_t from);
/* header.c: directories, files and opcodes of the table of A in IN and B in OUT. */
void icf_vd_line_header(struct icf_vdebug *d, uint64_t cu, Dwarf_Die *a, Dwarf_Die *b);
void icf_vd_line_headers(
	struct icf_vdebug *d); /* the same for all tables, whether a unit refers to them or not */
/* tail.c: sets `empty` and `first` in the rows of the table at OFF of .debug_line, in libdw's
 * order. */
struct elfrw_err *icf_vd_line_tails(const struct icf_v *v, const Elf_Data *section, uint64_t off,
				    struct icf_vrows *rows);
/* own_files.c: checks the line table of UNIT, which only OUT has: its header, its files, its
 * sequences. */
struct elfrw_err *icf_vd_own_table(struct icf_vdebug *d, Dwarf_Die *unit);
/* sequences.c: the sequence that the note gives for a folded unit must begin with the address of
 * the unit's code. */
void icf_vd_sequence(struct icf_vdebug *d, uint32_t u);
/* The same file: DW_AT_LLVM_stmt_sequence, X in IN and Y in OUT, of a pair of DIEs. */
void icf_vd_stmt_sequence(struct icf_vdebug *d, struct icf_vdie_pair *p, Dwarf_Attribute *x,
			  Dwarf_Attribute *y);
#endif
