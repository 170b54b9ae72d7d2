/* parallel.c: see parallel.h.  Each loop starts its own threads: a few loops in a run, tens of
 * microseconds each.
 *
 * Limits of the process are respected.  libdw alone needs 170 KB of stack.  If the stack may be
 * smaller than ENOUGH, a thread with a stack of that size does the work, and the caller waits.  A
 * thread takes address space for its stack and its memory.  If the address space is limited, there
 * is one thread for each SPACE bytes of it. */
#include "elfrw/base/parallel.h"
#include "elfrw/base/heap.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/resource.h>

#define ENOUGH ((rlim_t)2 << 20)
#define SPACE  ((rlim_t)256 << 20)

struct loop {
	atomic_size_t next;
	size_t n;
	struct elfrw_err *(*fn)(void *, size_t);
	void *arg;
	pthread_mutex_t lock;
	struct elfrw_err *err; /* of the lowest failing index; owned */
	size_t err_index;
};

static void *work(void *arg)
{
	struct loop *l = arg;
	for (;;) {
		size_t i = atomic_fetch_add(&l->next, 1);
		if (i >= l->n)
			return NULL;
		struct elfrw_err *err = l->fn(l->arg, i);
		if (!err)
			continue;
		pthread_mutex_lock(&l->lock);
		if (!l->err || i < l->err_index) {
			elfrw_err_free(l->err);
			l->err = err;
			l->err_index = i;
		} else
			elfrw_err_free(err);
		pthread_mutex_unlock(&l->lock);
	}
}

static void *start(void *arg)
{
	elfrw_heap_start();
	return work(arg);
}

static bool is_small(int what, rlim_t least)
{
	struct rlimit r;
	return getrlimit(what, &r) == 0 && r.rlim_cur != RLIM_INFINITY && r.rlim_cur < least;
}

unsigned elfrw_threads_for_limits(unsigned threads)
{
	while (threads > 1 && is_small(RLIMIT_AS, threads * SPACE))
		threads--;
	return threads;
}

struct elfrw_err *elfrw_parallel(unsigned threads, size_t n,
				 struct elfrw_err *(*fn)(void *, size_t), void *arg)
{
	struct loop l = { .n = n, .fn = fn, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t tid[64];
	pthread_attr_t attr;
	unsigned started = 0;
	bool instead = is_small(RLIMIT_STACK, ENOUGH);
	if (threads > n)
		threads = (unsigned)n;
	threads = elfrw_threads_for_limits(threads);
	if (n && pthread_attr_init(&attr) == 0) {
		if (instead)
			pthread_attr_setstacksize(&attr, ENOUGH);
		while (started + !instead < threads && started < 64 &&
		       pthread_create(&tid[started], &attr, start, &l) == 0)
			started++;
		pthread_attr_destroy(&attr);
	}
	if (!instead || !started)
		work(&l);
	for (unsigned i = 0; i < started; i++)
		pthread_join(tid[i], NULL);
	pthread_mutex_destroy(&l.lock);
	return l.err;
}
