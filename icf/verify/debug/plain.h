/* plain.h: what cannot have changed if its bytes have not. */
#ifndef ICF_VERIFY_DEBUG_PLAIN_H
#define ICF_VERIFY_DEBUG_PLAIN_H
#include "elfrw/base/rbuf.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Does the attribute NAME hold the same in both files if the bytes of its value are the same?  It
 * holds no address and no place in a section that may change. */
bool icf_vplain_attr(unsigned name, unsigned form);
/* May the value be an expression or a list of them? */
bool icf_vplain_is_location(unsigned name);
bool icf_vplain_is_block(unsigned form);
/* Is the expression of SIZE bytes at P made of known operations without addresses? */
bool icf_vplain_expr(const uint8_t *p, size_t size, unsigned offset_size);
/* Skips the operation at R; false: it may hold an address, or is not known here. */
bool icf_vplain_operation(struct elfrw_rbuf *r, unsigned offset_size);
#endif
