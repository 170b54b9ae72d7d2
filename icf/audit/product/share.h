/* share.h: the functions that several files of a product have. */
#ifndef ICF_AUDIT_PRODUCT_SHARE_H
#define ICF_AUDIT_PRODUCT_SHARE_H
#include "icf/audit/product/product.h"

/* Fills P's groups, members and pairs, and what the files have in common with others. */
struct elfrw_err *icf_product_share(struct icf_product *p, const struct icf_audit_options *opt);

struct icf_product_entry {
	uint64_t hash[2];
	struct icf_product_member member;
};

/* The functions of all files that are no copies, by hash, file and place; *N of them.  The caller
 * frees the array; NULL: out of memory. */
struct icf_product_entry *icf_product_sort(const struct icf_product *p, unsigned threads,
					   size_t *n);

/* The pairs of files with most in common; the groups are there. */
struct elfrw_err *icf_product_pairs(struct icf_product *p);
#endif
