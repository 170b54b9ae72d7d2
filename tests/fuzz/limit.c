/* limit.c: how long an input may take.
 *
 * An input may take a second of processor time, and one more for each megabyte; with sanitizers
 * LIMIT_FACTOR times that. An input that takes longer ends the process as a crash does, so that the
 * fuzzer keeps the input. */
#include "tests/fuzz/fuzz.h"
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#if defined __SANITIZE_ADDRESS__
#define LIMIT_FACTOR 10
#elif defined __has_feature
#if __has_feature(address_sanitizer)
#define LIMIT_FACTOR 10
#endif
#endif
#ifndef LIMIT_FACTOR
#define LIMIT_FACTOR 1
#endif

static void slow(int sig)
{
	static const char text[] =
		"ERROR: fuzz: slow: more than a second for each megabyte of input\n";
	(void)sig;
	if (write(2, text, sizeof text - 1) != (ssize_t)sizeof text - 1)
		_exit(77);
	abort();
}

void fuzz_may_take(size_t size)
{
	struct itimerval t = { .it_value.tv_sec = size == SIZE_MAX ? 0
								   : (time_t)(LIMIT_FACTOR *
									      (1 + (size >> 20))) };
	signal(SIGPROF, slow);
	setitimer(ITIMER_PROF, &t, NULL);
}

/* In a build for libFuzzer the harness has the name FUZZ_ONE, and this function calls it. */
#ifdef FUZZ_ONE
#undef LLVMFuzzerTestOneInput
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	fuzz_may_take(size);
	int ret = FUZZ_ONE(data, size);
	fuzz_may_take(SIZE_MAX);
	return ret;
}
#endif
