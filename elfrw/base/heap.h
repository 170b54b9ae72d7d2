/* heap.h: malloc's memory on large pages. */
#ifndef ELFRW_BASE_HEAP_H
#define ELFRW_BASE_HEAP_H
#include <stdbool.h>
#include <stddef.h>

/* Is this built with a sanitizer that replaces malloc or has signal handlers? */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ELFRW_SANITIZED true
#elif defined(__has_feature)
#define ELFRW_SANITIZED                                                         \
	(__has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	 __has_feature(memory_sanitizer))
#else
#define ELFRW_SANITIZED false
#endif

/* For a program, at its start: memory that is freed is kept for what comes next, and blocks come
 * from a heap, not from mappings of their own.  A library must not decide that. */
void elfrw_heap_init(void);

/* Asks for large pages for SIZE more bytes of the thread's heap (at most 1 GiB), before they are
 * used. */
void elfrw_heap_reserve(size_t size);

/* For each further thread of that program, at its start. */
void elfrw_heap_start(void);
#endif
