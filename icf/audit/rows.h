/* rows.h: one row a function, for databases (`icfold audit --rows=FILE`).
 *
 * A file whose name ends in .csv has comma-separated values (RFC 4180) with a line of names in
 * front; any other has JSON Lines, one object a line, which may be appended to each other.  The
 * columns and their types are in integration/fleet/schema.json. */
#ifndef ICF_AUDIT_ROWS_H
#define ICF_AUDIT_ROWS_H
#include "elfrw/base/newfile.h"
#include "icf/hash/hash.h"
#include <stdio.h>

struct icf_audit;
struct elfrw_image;

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
	struct elfrw_newfile file;
	FILE *f;
	bool csv;
};

/* Begins the file PATH, which must outlive R.  Errors do not name PATH. */
struct elfrw_err *icf_rows_begin(struct icf_rows *r, const char *path);
void icf_rows_put(struct icf_rows *r, const struct icf_row *row);
/* Puts the file in place, or gives it up. */
struct elfrw_err *icf_rows_commit(struct icf_rows *r);
void icf_rows_drop(struct icf_rows *r);

/* Writes the functions of A.  FILE is the name to be shown.  PACKAGE NULL: the one that the file
 * names itself. */
struct elfrw_err *icf_rows_put_audit(struct icf_rows *r, const struct icf_audit *a,
				     const char *file, const char *package, unsigned threads);

/* The name in IMG's note of its package (type 0xcafe1a7e of owner FDO), copied to RET; false: it
 * has none. */
bool icf_rows_package(const struct elfrw_image *img, char *ret, size_t size);

/* The build-id of IMG in hexadecimal; false: it has none. */
bool icf_rows_build_id(const struct elfrw_image *img, char *ret, size_t size);
#endif
