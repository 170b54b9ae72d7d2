/* values.c: see values.h. */
#include "icf/cli/values.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The number at the beginning of TEXT; *END is the text behind it. */
static bool leading_number(const char *text, uint64_t max, uint64_t *ret, const char **end)
{
	char *stop;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	unsigned long long n = strtoull(text, &stop, 10);
	*end = stop;
	*ret = n;
	return !errno && n <= max;
}

bool icf_number(const char *text, uint64_t max, uint64_t *ret)
{
	const char *end;
	uint64_t n;
	if (!leading_number(text, max, &n, &end) || *end)
		return false;
	*ret = n;
	return true;
}

bool icf_size(const char *text, uint64_t max, uint64_t *ret)
{
	const char *end;
	uint64_t n;
	if (!leading_number(text, max, &n, &end))
		return false;
	int shift = 0;
	switch (toupper((unsigned char)*end)) {
	case 'K': shift = 10; break;
	case 'M': shift = 20; break;
	case 'G': shift = 30; break;
	}
	if (end[shift != 0] || n > max >> shift)
		return false;
	*ret = n << shift;
	return true;
}

bool icf_threads(const char *text, unsigned *ret)
{
	uint64_t n;
	if (!icf_number(text, 1024, &n) || !n)
		return false;
	*ret = n > 64 ? 64 : (unsigned)n;
	return true;
}

unsigned icf_default_threads(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	return cpus < 1 ? 1 : cpus > 64 ? 64 : (unsigned)cpus;
}

#define MAX_WORD 32

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

/* The number of letters to change, remove, insert or swap with the next one to turn A into B.  Both
 * are shorter than MAX_WORD. */
static unsigned distance(const char *a, const char *b)
{
	unsigned row[MAX_WORD + 1][MAX_WORD + 1];
	size_t n = strlen(a), m = strlen(b);
	for (size_t i = 0; i <= n; i++)
		for (size_t k = 0; k <= m; k++) {
			if (!i || !k) {
				row[i][k] = (unsigned)(i + k);
				continue;
			}
			row[i][k] = least(least(row[i - 1][k], row[i][k - 1]) + 1,
					  row[i - 1][k - 1] + (a[i - 1] != b[k - 1]));
			if (i > 1 && k > 1 && a[i - 1] == b[k - 2] && a[i - 2] == b[k - 1])
				row[i][k] = least(row[i][k], row[i - 2][k - 2] + 1);
		}
	return row[n][m];
}

const char *icf_suggest(const char *word, const char *const *words, int n)
{
	const char *best = NULL;
	unsigned fewest = 3;
	if (strlen(word) >= MAX_WORD || strlen(word) < 3)
		return NULL;
	for (int i = 0; i < n; i++) {
		unsigned d = strlen(words[i]) < MAX_WORD ? distance(word, words[i]) : fewest;
		if (d < fewest) {
			fewest = d;
			best = words[i];
		}
	}
	return best;
}
