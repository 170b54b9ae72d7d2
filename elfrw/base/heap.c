/* heap.c: see heap.h.  The first RESERVED bytes of each thread's heap are on large pages: for pages
 * of 4 KiB, page faults were 14 % of the time of an audit.  What a thread does not use is never
 * touched.
 *
 * Rests on how glibc works: a block just below the threshold lies in the thread's heap, and when it
 * is freed, it becomes the end of the heap, from which the next blocks are taken.  Other allocators
 * take a block and give it back, nothing else. */
#include "elfrw/base/heap.h"
#include "elfrw/base/vec.h"
#include <malloc.h>
#include <sys/resource.h>

#define THRESHOLD \
	(32 << 20) /* of blocks with mappings of their own; the largest that glibc allows */
#define KEPT     (256 << 20)
#define RESERVED ((size_t)31 << 20)

void elfrw_heap_reserve(size_t size)
{
	void *block[32];
	size_t n = 0;
	struct rlimit space;
	/* A sanitizer's malloc would mark all of the blocks.  Address space that is limited is left
	 * to what needs it. */
	if (ELFRW_SANITIZED || getrlimit(RLIMIT_AS, &space) != 0 || space.rlim_cur != RLIM_INFINITY)
		return;
	for (; n < 32 && n * RESERVED < size; n++)
		block[n] = elfrw_large(malloc(RESERVED), RESERVED);
	while (n)
		free(block[--n]);
}

void elfrw_heap_start(void)
{
	elfrw_heap_reserve(RESERVED);
}

void elfrw_heap_init(void)
{
	mallopt(M_MMAP_THRESHOLD, THRESHOLD);
	mallopt(M_TRIM_THRESHOLD, KEPT);
	elfrw_heap_start();
}
