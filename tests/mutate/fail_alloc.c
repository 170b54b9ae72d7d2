/* fail_alloc.c: a library to preload: the N-th allocation of the program fails.
 *
 * FAIL_ALLOC=N: the N-th call fails; FAIL_ALLOC=N+: that one and all after it.
 * FAIL_ALLOC_COUNT=FILE: the number of calls is written there at the end.  FAIL_ALLOC_TRACE=1: the
 * first call that fails says on standard error where it came from.
 *
 * Calls count from the start of main, those of all threads; what the C library allocates for itself
 * (strdup, asprintf, stdio) comes through here as well.  realloc to a smaller size may fail like
 * any other. */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static long fail_at, count;
static bool all_after, counting, trace;
static char early[1 << 16]; /* for dlsym before the real functions are known */
static size_t early_used;
static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void (*real_free)(void *);
static void *(*real_mmap)(void *, size_t, int, int, int, off_t);
static void *(*real_memalign)(size_t, size_t);

static void init(void)
{
	if (real_free)
		return;
	real_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
	real_calloc = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "calloc");
	real_realloc = (void *(*)(void *, size_t))dlsym(RTLD_NEXT, "realloc");
	real_mmap = (void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	real_memalign = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "aligned_alloc");
	real_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

__attribute__((constructor)) static void start(void)
{
	init();
	const char *s = getenv("FAIL_ALLOC");
	if (s) {
		fail_at = strtol(s, NULL, 10);
		all_after = strchr(s, '+') != NULL;
	}
	trace = getenv("FAIL_ALLOC_TRACE") != NULL;
	counting = true;
}

__attribute__((destructor)) static void stop(void)
{
	counting = false;
	const char *path = getenv("FAIL_ALLOC_COUNT");
	int fd = path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	char text[32];
	int n = snprintf(text, sizeof text, "%ld\n", count);
	if (write(fd, text, (size_t)n) != n)
		_exit(99);
	close(fd);
}

static bool fails(void)
{
	if (!counting)
		return false;
	long n = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	if (!fail_at || (all_after ? n < fail_at : n != fail_at))
		return false;
	if (trace && n == fail_at) {
		void *frame[24];
		counting = false;
		backtrace_symbols_fd(frame, backtrace(frame, 24), 2);
		counting = true;
	}
	errno = ENOMEM;
	return true;
}

static void *early_alloc(size_t n)
{
	n = (n + 15) & ~(size_t)15;
	if (n > sizeof early - early_used)
		_exit(99);
	early_used += n;
	return early + early_used - n;
}

void *malloc(size_t n)
{
	if (!real_malloc)
		return early_alloc(n);
	return fails() ? NULL : real_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	if (!real_calloc)
		return early_alloc(n * size);
	return fails() ? NULL : real_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	init();
	return fails() ? NULL : real_realloc(p, n);
}

void *reallocarray(void *p, size_t n, size_t size)
{
	return size && n > SIZE_MAX / size ? NULL : realloc(p, n * size);
}

void *aligned_alloc(size_t align, size_t n)
{
	init();
	return fails() ? NULL : real_memalign(align, n);
}

int posix_memalign(void **ret, size_t align, size_t n)
{
	void *p = aligned_alloc(align, n);
	if (p)
		*ret = p;
	return p ? 0 : ENOMEM;
}

void *mmap(void *addr, size_t n, int prot, int flags, int fd, off_t off)
{
	init();
	return fails() ? MAP_FAILED : real_mmap(addr, n, prot, flags, fd, off);
}

void *mmap64(void *addr, size_t n, int prot, int flags, int fd, off_t off)
{
	return mmap(addr, n, prot, flags, fd, off);
}

void free(void *p)
{
	if ((char *)p >= early && (char *)p < early + sizeof early)
		return;
	if (real_free)
		real_free(p);
}
