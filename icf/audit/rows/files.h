/* files.h: the rows of the functions of many files, in one file. */
#ifndef ICF_AUDIT_ROWS_FILES_H
#define ICF_AUDIT_ROWS_FILES_H
#include "icf/audit/product/product.h"

/* Writes the rows of all files that the N OPERANDS name (as icf_product_collect() takes them) to
 * PATH, complete or not at all, in the order of the files.  Copies have no rows of their own.
 * PACKAGE: of all rows; NULL: of each file the package that it is in, or that it names itself.  P
 * starts as { .spool = -1 }, and has the files afterwards, also those that cannot be read; nothing
 * is written if that is all of them.  Deinitialise it also after an error. */
struct elfrw_err *icf_rows_write(struct icf_product *p, const char *path, const char *package,
				 char **operand, int n, const struct icf_product_options *opt);
#endif
