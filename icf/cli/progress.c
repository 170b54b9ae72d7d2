/* progress.c: see progress.h.  The line is overwritten in place with blanks, which works on any
 * terminal. */
#include "icf/cli/progress.h"
#include <unistd.h>

#define COLUMNS 72

void icf_progress_init(struct icf_progress *p, FILE *f, double now, double after)
{
	*p = (struct icf_progress){ .f = isatty(fileno(f)) ? f : NULL,
				    .start = now,
				    .after = after };
}

void icf_progress_step(struct icf_progress *p, const char *name, double now)
{
	p->done++;
	if (!p->f || now - p->start < p->after)
		return;
	char text[COLUMNS + 1];
	int n = snprintf(text, sizeof text, "icfold: %u steps in %.1f s, the last: %s", p->done,
			 now - p->start, name);
	if (n > COLUMNS)
		n = COLUMNS;
	fprintf(p->f, "\r%-*s", p->width > n ? p->width : n, text);
	fflush(p->f);
	p->width = n;
}

void icf_progress_end(struct icf_progress *p)
{
	if (p->f && p->width) {
		fprintf(p->f, "\r%*s\r", p->width, "");
		fflush(p->f);
	}
	*p = (struct icf_progress){ 0 };
}
