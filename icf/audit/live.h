/* live.h: why functions stay (audit --why, --why-live). */
#ifndef ICF_AUDIT_LIVE_H
#define ICF_AUDIT_LIVE_H
#include "icf/pipeline.h"
#include <stdio.h>

/* The patterns of the user. */
struct icf_live_query {
	const char **pattern; /* names or linkage names of functions, or patterns with * ? [ */
	size_t n;
	bool json;
};

/* Reads the file PATH as far as it takes for icf_live_print().  RUN starts as { 0 }; deinitialise
 * it also after an error.  *OBSTACLE: why nothing can be said, or NULL. */
struct elfrw_err *icf_live_analyse(struct icf_run *run, const char *path, unsigned threads,
				   const char **obstacle);

/* Writes to F, for each function that a pattern matches, one of the shortest ways to it from a
 * root, or that it is unused.  RUN was made with `ask_use`; without an answer in it (see
 * icf_unused_obstacle()) nothing is written.  *MISSING: the first pattern that no function
 * matches, or NULL. */
struct elfrw_err *icf_live_print(FILE *f, const struct icf_run *run,
				 const struct icf_live_query *query, const char **missing);
#endif
