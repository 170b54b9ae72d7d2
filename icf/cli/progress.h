/* progress.h: one line that shows the progress of a long run. */
#ifndef ICF_CLI_PROGRESS_H
#define ICF_CLI_PROGRESS_H
#include <stdio.h>

/* Starts as { 0 }: silent. */
struct icf_progress {
	FILE *f;       /* a terminal; borrowed.  NULL: silent */
	double start;  /* seconds of a clock that only goes forward */
	double after;  /* nothing is shown before this many seconds have passed */
	unsigned done; /* steps */
	int width;     /* columns of the line shown now */
};

/* F shows the progress from NOW + AFTER seconds on, if F is a terminal. */
void icf_progress_init(struct icf_progress *p, FILE *f, double now, double after);

/* The step NAME ended at NOW. */
void icf_progress_step(struct icf_progress *p, const char *name, double now);

/* Removes the line; nothing is shown afterwards.  Call this before printing anything else. */
void icf_progress_end(struct icf_progress *p);
#endif
