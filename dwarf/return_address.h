/* return_address.h: the meaning of a return address. */
#ifndef DWARF_RETURN_ADDRESS_H
#define DWARF_RETURN_ADDRESS_H
#include <stdint.h>

/* A place in the call that returns to SITE.  SITE itself is the end of the call: if the callee does
 * not return, something else begins at SITE. */
static inline uint64_t dwr_call_at(uint64_t site)
{
	return site - 1;
}
#endif
