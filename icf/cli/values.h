/* values.h: what stands behind an option: numbers, sizes, threads, and words that are almost
 * right. */
#ifndef ICF_CLI_VALUES_H
#define ICF_CLI_VALUES_H
#include <stdbool.h>
#include <stdint.h>

/* The number TEXT, decimal, no more than MAX; false: it is none. */
bool icf_number(const char *text, uint64_t max, uint64_t *ret);

/* The same in bytes; K, M and G, in either case, multiply by powers of 1024. */
bool icf_size(const char *text, uint64_t max, uint64_t *ret);

/* The number of threads TEXT asks for; more than 64 are taken for 64. */
bool icf_threads(const char *text, unsigned *ret);
unsigned icf_default_threads(void);
#define ICF_THREADS_MUST "must be a number from 1 to 1024"

/* Of the N words the one that WORD most likely means, or NULL: one or two letters wrong, missing,
 * too many or exchanged. */
const char *icf_suggest(const char *word, const char *const *words, int n);
#endif
