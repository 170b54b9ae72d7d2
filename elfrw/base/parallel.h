/* parallel.h: loops over several threads.  The result does not depend on the number of threads. */
#ifndef ELFRW_BASE_PARALLEL_H
#define ELFRW_BASE_PARALLEL_H
#include "elfrw/base/err.h"
#include <stddef.h>

/* Calls FN(ARG, i) once for each i in [0, N), on up to THREADS threads (1: on the caller's, in
 * order).  FN must touch only what belongs to index i.  Returns the error of the lowest failing
 * index. */
struct elfrw_err *elfrw_parallel(unsigned threads, size_t n,
				 struct elfrw_err *(*fn)(void *arg, size_t i), void *arg);

/* THREADS, or fewer if the process's limit of address space has no room for so many; at least 1. */
unsigned elfrw_threads_for_limits(unsigned threads);
#endif
