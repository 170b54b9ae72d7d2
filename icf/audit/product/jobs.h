/* jobs.h: analyses the files of a product, each in a process that ends with it.
 *
 * A process takes its memory with it when it ends, its limit of memory holds for one file alone,
 * and whatever a file does to it, the others go on. */
#ifndef ICF_AUDIT_PRODUCT_JOBS_H
#define ICF_AUDIT_PRODUCT_JOBS_H
#include "icf/audit/product/product.h"

/* Analyses the files that wait, and the members of the archives, which are added to P. */
struct elfrw_err *icf_product_run(struct icf_product *p, const struct icf_product_options *opt);
#endif
