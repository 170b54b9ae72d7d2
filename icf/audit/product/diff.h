/* diff.h: two builds of a product. */
#ifndef ICF_AUDIT_PRODUCT_DIFF_H
#define ICF_AUDIT_PRODUCT_DIFF_H
#include "icf/audit/product/product.h"

struct icf_product_change {
	uint32_t old, new; /* files or groups; ICF_NONE: not in that build */
	int64_t delta;     /* of duplicated bytes: in the file, or of the group */
};

/* A function that the new build added although it had the code already. */
struct icf_product_added {
	struct icf_product_member added, first; /* both of the new build */
	uint32_t size;
	bool fresh; /* the old build has no such code: only the new one has it twice */
};

/* Starts as { 0 }. */
struct icf_product_diff {
	const struct icf_product *p[2];       /* old and new, borrowed */
	VEC(struct icf_product_change) file;  /* those that changed, the largest growth first */
	VEC(struct icf_product_change) group; /* the same for groups */
	VEC(struct icf_product_added) added;  /* the largest first */
	int64_t growth; /* of the bytes that are there twice, in files and across them */
};

struct elfrw_err *icf_product_compare(struct icf_product_diff *d, const struct icf_product *old,
				      const struct icf_product *new,
				      const struct icf_audit_options *opt);
void icf_product_diff_deinit(struct icf_product_diff *d);

void icf_product_diff_text(FILE *f, const struct icf_product_diff *d,
			   const struct icf_audit_options *opt);
void icf_product_diff_json(FILE *f, const struct icf_product_diff *d,
			   const struct icf_audit_options *opt);

/* The functions that were added, as annotations for a review: commands of GitHub's workflows, code
 * quality of GitLab, SARIF 2.1.0 (OASIS).  Paths below the current folder are relative to it. */
void icf_product_github(FILE *f, const struct icf_product_diff *d,
			const struct icf_audit_options *opt);
void icf_product_gitlab(FILE *f, const struct icf_product_diff *d,
			const struct icf_audit_options *opt);
void icf_product_sarif(FILE *f, const struct icf_product_diff *d,
		       const struct icf_audit_options *opt);
#endif
