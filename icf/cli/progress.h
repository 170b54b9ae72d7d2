/* progress.h: one line that tells how far a long run is, for somebody who watches. */
#ifndef ICF_CLI_PROGRESS_H
#define ICF_CLI_PROGRESS_H
#include <stdio.h>

/* Starts as { 0 }: silent. */
struct icf_progress {
	FILE *f;       /* a terminal; borrowed.  NULL: silent */
	double start;  /* seconds of a clock that only goes forward */
	double after;  /* nothing is shown before this many seconds have passed */
	unsigned done; /* steps */
	int width;     /* columns of the line that is shown now */
};

/* Shows on F, if it is a terminal, what goes on at NOW once that has taken AFTER seconds. */
void icf_progress_init(struct icf_progress *p, FILE *f, double now, double after);

/* A step, NAME, was finished at NOW. */
void icf_progress_step(struct icf_progress *p, const char *name, double now);

/* Takes the line away; nothing is shown from here on.  To be called before anything else is
 * printed. */
void icf_progress_end(struct icf_progress *p);
#endif
