/* order.h: the files of a product in the order of the report. */
#ifndef ICF_AUDIT_PRODUCT_ORDER_H
#define ICF_AUDIT_PRODUCT_ORDER_H
#include "icf/audit/product/product.h"

/* The files in STATE, *N of them: those that were analysed in the order that OPT asks for, bad ones
 * with rare reasons first.  The caller frees the array.
 * NULL: out of memory. */
uint32_t *icf_product_order(const struct icf_product *p, const struct icf_audit_options *opt,
			    enum icf_product_state state, uint32_t *n);

/* The saving of a file: what folding saves of its .text, or, where nothing moves, what becomes
 * holes. */
static inline uint64_t icf_product_saving(const struct icf_product_facts *f, int mode)
{
	return f->level == ICF_LEVEL_IN_PLACE ? f->duplicated[mode] : f->saved[mode];
}
#endif
