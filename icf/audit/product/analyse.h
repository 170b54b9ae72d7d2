/* analyse.h: what the audit of a product keeps of one file. */
#ifndef ICF_AUDIT_PRODUCT_ANALYSE_H
#define ICF_AUDIT_PRODUCT_ANALYSE_H
#include "icf/audit/product/product.h"
#include "elfrw/base/wbuf.h"

/* Analyses PATH.  FACTS is complete but for its place in the spool.  LINES gets the functions, and
 * then the strings; the caller frees it, also after an error. */
struct elfrw_err *icf_product_read(const char *path, const struct icf_audit_options *opt,
				   struct icf_product_facts *facts, struct elfrw_wbuf *lines);

/* Sets the sums and hashes of FACTS, after icf_audit_plan(). */
void icf_product_facts_of(const struct icf_audit *a, struct icf_product_facts *facts);
#endif
