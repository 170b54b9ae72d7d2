/* values.h: values of options: numbers, sizes, threads; and suggestions for misspelled words. */
#ifndef ICF_CLI_VALUES_H
#define ICF_CLI_VALUES_H
#include <stdbool.h>
#include <stdint.h>

/* Reads the decimal number TEXT, at most MAX; false: TEXT is no such number. */
bool icf_number(const char *text, uint64_t max, uint64_t *ret);

/* The same for bytes; K, M and G, in either case, multiply by powers of 1024. */
bool icf_size(const char *text, uint64_t max, uint64_t *ret);

/* The number of threads that TEXT asks for, at most 64. */
bool icf_threads(const char *text, unsigned *ret);
unsigned icf_default_threads(void);
#define ICF_THREADS_MUST "must be a number from 1 to 1024"

/* The one of N words that WORD most likely means, or NULL.  One or two letters may be wrong,
 * missing, extra or swapped. */
const char *icf_suggest(const char *word, const char *const *words, int n);
#endif
