/* vec.h: a typed growable array.
 *
 *	VEC(uint32_t) v = { 0 };
 *	uint32_t *slot = VEC_PUSH(&v);     // NULL: out of memory, v unchanged; else one more
 *	  element, zeroed
 *	VEC_FREE(&v);
 *
 * Pointers into the array die at the next push or reserve. */
#ifndef ELFRW_BASE_VEC_H
#define ELFRW_BASE_VEC_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define VEC(T)              \
	struct {            \
		T *data;    \
		size_t len; \
		size_t cap; \
	}

/* Asks for large pages for the SIZE bytes at P, which may be NULL, before they are written: a fault
 * for each 4 KiB would cost more than the writing.  Returns P. */
static inline void *elfrw_large(void *p, size_t size)
{
	if (p && size >= (size_t)1 << 21) {
		uintptr_t from = (uintptr_t)p & ~(uintptr_t)4095; /* as malloc gets it */
		(void)madvise((void *)from, ((uintptr_t)p - from + size + 4095) & ~(size_t)4095,
			      MADV_HUGEPAGE);
	}
	return p;
}

/* Makes room for NEED elements of SIZE bytes in total; false: out of memory, nothing changed. */
static inline bool elfrw_vec_grow(void **data, size_t *cap, size_t need, size_t size)
{
	if (need <= *cap)
		return true;
	size_t n = *cap ? *cap : 8;
	while (n < need) {
		if (n > SIZE_MAX / 2)
			return false;
		n *= 2;
	}
	if (n > SIZE_MAX / size)
		return false;
	void *p = realloc(*data, n * size);
	if (!p)
		return false;
	*data = elfrw_large(p, n * size);
	*cap = n;
	return true;
}

static inline void *elfrw_vec_push(void **data, size_t *len, size_t *cap, size_t size)
{
	if (!elfrw_vec_grow(data, cap, *len + 1, size))
		return NULL;
	char *p = (char *)*data + *len * size;
	memset(p, 0, size);
	++*len;
	return p;
}

static inline bool elfrw_vec_append(void **data, size_t *len, size_t *cap, const void *more,
				    size_t n, size_t size)
{
	if (n > SIZE_MAX - *len || !elfrw_vec_grow(data, cap, *len + n, size))
		return false;
	if (n)
		memcpy((char *)*data + *len * size, more, n * size);
	*len += n;
	return true;
}

#define VEC_RESERVE(v, n) elfrw_vec_grow((void **)&(v)->data, &(v)->cap, (n), sizeof *(v)->data)
#define VEC_PUSH(v)                                                                       \
	((__typeof__((v)->data))elfrw_vec_push((void **)&(v)->data, &(v)->len, &(v)->cap, \
					       sizeof *(v)->data))
/* Adds N elements from P; false: out of memory, v unchanged. */
#define VEC_APPEND(v, p, n)                                         \
	elfrw_vec_append((void **)&(v)->data, &(v)->len, &(v)->cap, \
			 1 ? (p) : (__typeof__((v)->data))NULL, (n), sizeof *(v)->data)
/* Gives back what is not used, if it is much. */
static inline void elfrw_vec_trim(void **data, size_t len, size_t *cap, size_t size)
{
	void *p = len && *cap - len > len / 8 ? realloc(*data, len * size) : NULL;
	if (!p)
		return;
	*data = p;
	*cap = len;
}
#define VEC_TRIM(v) elfrw_vec_trim((void **)&(v)->data, (v)->len, &(v)->cap, sizeof *(v)->data)
#define VEC_FREE(v) (free((v)->data), (v)->data = NULL, (v)->len = (v)->cap = 0)
#endif
