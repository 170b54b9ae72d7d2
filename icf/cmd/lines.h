/* lines.h: filters: text from files or standard input, line by line, to standard output. */
#ifndef ICF_CMD_LINES_H
#define ICF_CMD_LINES_H
#include "elfrw/base/err.h"
#include <stdbool.h>
#include <stddef.h>

/* What a filter does; each function gets ARG. */
struct icf_lines {
	void *arg;
	/* Takes a line of N bytes; the last byte is its newline, if it has one.  It may be held. */
	struct elfrw_err *(*line)(void *arg, const char *s, size_t n);
	/* Prints what is held. */
	struct elfrw_err *(*flush)(void *arg);
	bool (*holds)(const void *arg); /* is anything held? */
};

/* Passes the N files PATH ("-": standard input), or standard input if N is 0.  Lines that are
 * longer than a quarter of a megabyte are copied.  Errors: a file that cannot be read, out of
 * memory, those of the filter. */
struct elfrw_err *icf_lines_run(const struct icf_lines *in, char **path, int n);
#endif
