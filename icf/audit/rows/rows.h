/* rows.h: one row a function, for databases (`icfold audit --rows=FILE`).
 *
 * A file whose name ends in .csv has comma-separated values (RFC 4180) with a line of names in
 * front; any other has JSON Lines, one object a line, which may be appended to each other.  The
 * columns and their types are in integration/fleet/schema.json. */
#ifndef ICF_AUDIT_ROWS_ROWS_H
#define ICF_AUDIT_ROWS_ROWS_H
#include "icf/hash/hash.h"
#include <stdio.h>

struct icf_audit;

/* Texts are borrowed; NULL: not known. */
struct icf_row {
	const char *file, *build_id, *package, *arch;
	const char *name, *linkage_name;
	const char *source_file;
	uint32_t source_line; /* 0: not known */
	uint64_t address, size;
	struct icf_hash hash;
	uint64_t class;     /* the address of the first function of its class with --icf=all */
	bool foldable;      /* may be folded, if something equals it */
	const char *reason; /* icf_why_key() with --icf=all */
	int used;           /* 1: used; 0: nothing uses it (--gc-functions); -1: not known */
};

struct icf_rows {
	FILE *f;
	bool csv;
};

/* Should the rows in the file PATH be comma-separated values? */
bool icf_rows_is_csv(const char *path);
/* Writes the line of names, if there is one. */
void icf_rows_head(const struct icf_rows *r);
void icf_rows_put(const struct icf_rows *r, const struct icf_row *row);

/* Writes the functions of A, a program after icf_audit_plan().  Changes its units.  FILE is the
 * name to be shown.  PACKAGE NULL: the one that the program names itself. */
struct elfrw_err *icf_rows_put_program(const struct icf_rows *r, struct icf_audit *a,
				       const char *file, const char *package, unsigned threads);
#endif
