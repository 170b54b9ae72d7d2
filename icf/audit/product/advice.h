/* advice.h: what saves most, and the command that gets it. */
#ifndef ICF_AUDIT_PRODUCT_ADVICE_H
#define ICF_AUDIT_PRODUCT_ADVICE_H
#include "icf/audit/product/product.h"

/* At most ICF_ADVICE pieces, largest saving first; their number.  They may overlap. */
unsigned icf_product_advise(const struct icf_product *p, struct icf_advice *ret);
#endif
