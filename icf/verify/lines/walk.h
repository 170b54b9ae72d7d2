/* walk.h: the rows of one sequence after the other, and the names of their files, without libdw. */
#ifndef ICF_VERIFY_LINES_WALK_H
#define ICF_VERIFY_LINES_WALK_H
#include "icf/verify/lines/state.h"

/* The operations of a table. */
struct icf_vline_ops {
	struct elfrw_rbuf r; /* from the first operation to the end */
	unsigned step;       /* of addresses */
	unsigned base, range;
	int line_base;
	bool stmt; /* default_is_stmt */
};

/* Reads the header of the table at OFF of DATA; false: it is not a usual one. */
bool icf_vline_open(const Elf_Data *data, uint64_t off, struct icf_vline_ops *t);

/* What a row says, besides its address. */
struct icf_vline_says {
	uint32_t file, line, col, disc, isa, flags;
};

/* A walk over the rows of a sequence (DWARF 5, section 6.2.2). */
struct icf_vline_walk {
	struct icf_vline_ops *t;
	struct icf_vline_says s; /* at a row; what is for one row only is reset behind it */
	uint64_t addr;           /* the same */
	const uint8_t *at;       /* the operand of DW_LNE_set_address; NULL: not yet there */
	bool row, end;           /* it is at a row, at the end */
	bool any;                /* addresses may be stated again, and may go back */
};

/* At the start of the next sequence of T. */
struct icf_vline_walk icf_vline_begin(struct icf_vline_ops *t);
/* Goes to the next row, or to the end; false: the sequence is of another kind than compilers make.
 * Addresses never go back. */
bool icf_vline_next(struct icf_vline_walk *w);

/* The names of a table's files. */
struct icf_vline_names {
	struct icf_vdebug *d;
	struct icf_vtexts texts;
	uint64_t at; /* the table */
	struct icf_vline_header h;
	const char **whole; /* by number: the full names that were asked for; NULL: not yet */
	bool read;
};
/* The full name of file N, which D's names own; NULL: no memory. */
const char *icf_vline_name(struct icf_vline_names *f, uint32_t n);
void icf_vline_names_deinit(struct icf_vline_names *f);

/* own_rows.c: the artificial table of OUT. */
struct icf_vline_own {
	struct icf_vline_ops ops;
	struct icf_vline_names names;
	bool known;
};
void icf_vline_own_open(struct icf_vdebug *d, struct icf_vline_own *ret);
void icf_vline_own_close(struct icf_vline_own *own);
/* Has OUT, where the note says that the rows of the folded function U are, its rows?  They are the
 * N rows at W, as the tables of IN have them, by table. */
void icf_vline_own_check(struct icf_vdebug *d, struct icf_vline_own *own, uint32_t u,
			 const struct icf_vrow *const *w, size_t n);
#endif
