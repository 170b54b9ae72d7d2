/* parallel.c: see parallel.h.  Threads are started for each loop: a few per run, tens of
 * microseconds each. */
#include "elfrw/base/parallel.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

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

struct elfrw_err *elfrw_parallel(unsigned threads, size_t n,
				 struct elfrw_err *(*fn)(void *, size_t), void *arg)
{
	struct loop l = { .n = n, .fn = fn, .arg = arg, .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t tid[64];
	unsigned started = 0;
	if (threads > n)
		threads = (unsigned)n;
	while (started + 1 < threads && started < 64 &&
	       pthread_create(&tid[started], NULL, work, &l) == 0)
		started++;
	work(&l);
	for (unsigned i = 0; i < started; i++)
		pthread_join(tid[i], NULL);
	pthread_mutex_destroy(&l.lock);
	return l.err;
}
