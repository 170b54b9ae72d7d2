/* replay.c: runs all harnesses without libFuzzer.
 *
 * replay [--mutate N | --seconds S] NAME FILE...: each file once, and N random changes of it
 * (always the same ones), or as many as S seconds allow.  replay --list: the names; --spin: takes
 * for ever, to see that the limit is kept. */
#include "tests/fuzz/fuzz.h"
#include "elfrw/base/rbuf.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

/* Each harness is compiled a second time under a name of its own. */
/* clang-format off */
#define HARNESSES(X) \
	X(elf) X(x86) X(cfi) X(lsda) X(line) X(info) X(lists) X(expr) X(calls) X(note) X(indices) \
	X(compressed) X(symbolize) X(symbols) X(fold) X(verify) X(text) X(demangle) X(profile) \
	X(library)
/* clang-format on */
#define DECLARE(n) int fuzz_##n(const uint8_t *data, size_t size);
HARNESSES(DECLARE)
#define ENTRY(n) { #n, fuzz_##n },
static const struct {
	const char *name;
	int (*run)(const uint8_t *data, size_t size);
} harness[] = { HARNESSES(ENTRY) };
#define N (sizeof harness / sizeof *harness)

static uint8_t *load(const char *path, size_t *size)
{
	FILE *f = fopen(path, "rb");
	size_t cap = 1 << 16, n = 0, got;
	uint8_t *p = malloc(cap);
	if (!f || !p) {
		fprintf(stderr, "replay: cannot read %s\n", path);
		exit(2);
	}
	while ((got = fread(p + n, 1, cap - n, f)) > 0)
		if ((n += got) == cap && !(p = realloc(p, cap *= 2)))
			exit(2);
	fclose(f);
	*size = n;
	return p;
}

static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

/* A few changes of the kinds that fuzzers make. */
static size_t mutate(uint8_t *p, size_t n, uint64_t *state)
{
	static const uint64_t odd[] = { 0,          1,          0x7f,       0x80,
					0xff,       0xffff,     0x7fffffff, 0x80000000,
					0xffffffff, 0xfffffff0, UINT64_MAX, UINT64_MAX >> 1 };
	for (unsigned k = 1 + next(state) % 4; k && n; k--) {
		size_t at = next(state) % n, w = (size_t)1 << next(state) % 4;
		switch (next(state) % 6) {
		case 0: p[at] ^= (uint8_t)(1u << next(state) % 8); break;
		case 1: p[at] = (uint8_t)next(state); break;
		case 2: p[at] += next(state) & 1 ? 1 : (uint8_t)-1; break;
		case 3:
			if (n - at >= w)
				elfrw_put_le(p + at, odd[next(state) % (sizeof odd / sizeof *odd)],
					     (unsigned)w);
			break;
		case 4:
			if (next(state) % 4 == 0)
				n = at;
			break;
		case 5: {
			size_t from = next(state) % n, len = next(state) % 16;
			if (len <= n - at && len <= n - from)
				memmove(p + at, p + from, len);
			break;
		}
		}
	}
	return n;
}

int main(int argc, char **argv)
{
	long n_mutations = 0, seconds = 0, runs = 0;
	int i = 1;
	if (argc > 1 && !strcmp(argv[1], "--spin")) {
		fuzz_may_take(1);
		for (volatile unsigned k = 0;; k++)
			;
	}
	if (argc > 1 && !strcmp(argv[1], "--list")) {
		for (size_t k = 0; k < N; k++)
			puts(harness[k].name);
		return 0;
	}
	if (argc > 2 && (!strcmp(argv[1], "--mutate") || !strcmp(argv[1], "--seconds"))) {
		*(argv[1][2] == 'm' ? &n_mutations : &seconds) = strtol(argv[2], NULL, 10);
		i = 3;
	}
	size_t h = 0;
	while (h < N && (i >= argc || strcmp(harness[h].name, argv[i])))
		h++;
	if (h == N) {
		fputs("usage: replay [--mutate N | --seconds S] NAME FILE... | --list\n", stderr);
		return 2;
	}
	int first = i + 1;
	uint64_t seed = 88172645463325252u;
	if (seconds)
		n_mutations = 50;
	for (time_t end = time(NULL) + seconds;;) {
		for (i = first; i < argc; i++) {
			size_t n;
			uint8_t *whole = load(argv[i], &n);
			uint64_t state = seed;
			for (long k = 0; k <= n_mutations; k++) {
				uint8_t *p = malloc(n + !n); /* an allocation of its own, so that a
								sanitizer sees reads beyond it */
				if (!p)
					return 2;
				memcpy(p, whole, n);
				size_t size = k ? mutate(p, n, &state) : n;
				fuzz_may_take(size);
				harness[h].run(p, size);
				fuzz_may_take(SIZE_MAX);
				free(p);
				runs++;
			}
			free(whole);
		}
		next(&seed);
		if (first >= argc || time(NULL) >= end)
			break;
	}
	fprintf(stderr, "%ld runs\n", runs);
	return 0;
}
