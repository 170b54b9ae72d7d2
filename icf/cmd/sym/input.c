/* input.c: see input.h.  Blocks are read and lines are found in them, since a profile has millions
 * of lines: that takes half the time of getline(). */
#include "icf/cmd/sym/input.h"
#include "elfrw/base/err.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK ((size_t)1 << 18)

/* Makes room for more bytes, and for an end of the last line. */
static struct elfrw_err *make_room(struct icf_input *in)
{
	if (in->at)
		memmove(in->data, in->data + in->at, in->len - in->at);
	in->len -= in->at;
	in->at = 0;
	if (in->cap && in->len + 1 < in->cap)
		return NULL;
	size_t cap = in->cap ? 2 * in->cap : BLOCK; /* one line fills the buffer */
	char *p = realloc(in->data, cap);
	if (!p)
		return &elfrw_err_nomem;
	in->data = p;
	in->cap = cap;
	return NULL;
}

struct elfrw_err *icf_input_more(struct icf_input *in)
{
	ELFRW_TRY(make_room(in));
	fflush(stdout);
	ssize_t n;
	while ((n = read(STDIN_FILENO, in->data + in->len, in->cap - in->len - 1)) < 0)
		if (errno != EINTR)
			return elfrw_error_errno(errno, "cannot read standard input");
	in->end = n == 0;
	in->len += (size_t)n;
	if (in->end && in->len && in->data[in->len - 1] != '\n')
		in->data[in->len++] = '\n';
	return NULL;
}

char *icf_input_line(struct icf_input *in)
{
	char *line = in->data + in->at, *end = memchr(line, '\n', in->len - in->at);
	if (!end)
		return NULL;
	in->at += (size_t)(end + 1 - line);
	*end = 0;
	if (end > line && end[-1] == '\r')
		end[-1] = 0;
	return line;
}

bool icf_input_waits(void)
{
	struct pollfd p = { .fd = STDIN_FILENO, .events = POLLIN };
	return poll(&p, 1, 0) == 0;
}

void icf_input_deinit(struct icf_input *in)
{
	free(in->data);
}
