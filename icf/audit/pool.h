/* pool.h: a set of strings, each kept once and named by a small number. */
#ifndef ICF_AUDIT_POOL_H
#define ICF_AUDIT_POOL_H
#include "elfrw/base/vec.h"

#define ICF_POOL_NONE UINT32_MAX

/* Starts as { 0 }. */
struct icf_pool {
	VEC(char) text;    /* all strings, each with its final zero */
	VEC(size_t) start; /* by number */
	uint32_t *slot;    /* open hash table of numbers + 1; owned */
	size_t n_slots;
};

/* The number of the N bytes at S, which must hold no zero.  The same bytes have the same number.
 * Numbers count up from 0 in the order of the first calls.  ICF_POOL_NONE: out of memory. */
uint32_t icf_pool_add(struct icf_pool *pool, const char *s, size_t n);

/* The number of the N bytes at S; ICF_POOL_NONE if they were never added. */
uint32_t icf_pool_find(const struct icf_pool *pool, const char *s, size_t n);

/* The string of number ID; valid until the next icf_pool_add(). */
const char *icf_pool_text(const struct icf_pool *pool, uint32_t id);
void icf_pool_deinit(struct icf_pool *pool);
#endif
