/* advice.h: what saves most, and the command that gets it. */
#ifndef ICF_AUDIT_PRODUCT_ADVICE_H
#define ICF_AUDIT_PRODUCT_ADVICE_H
#include "icf/audit/product/product.h"

struct icf_product_advice {
	uint64_t bytes;
	char what[1024]; /* for people */
	char command[4096];
};
#define ICF_PRODUCT_ADVICE 3

/* At most ICF_PRODUCT_ADVICE pieces, largest saving first; their number.  They may overlap. */
unsigned icf_product_advise(const struct icf_product *p, struct icf_product_advice *ret);
#endif
