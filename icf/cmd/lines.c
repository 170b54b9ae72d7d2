/* lines.c: see lines.h. */
#include "icf/cmd/lines.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BUFFER  (1 << 18)
#define SILENCE 1000 /* milliseconds */

/* Passes the whole lines among the LEN bytes at BUF, and at the end of the input (LAST) the rest.
 * Returns the bytes that are left in *LEFT.  *INSIDE: they go on with a line that is copied. */
static struct elfrw_err *pass(const struct icf_lines *in, char *buf, size_t len, bool last,
			      bool *inside, size_t *left)
{
	char *s = buf, *end = buf + len, *nl;
	while ((nl = memchr(s, '\n', (size_t)(end - s))) || (last && s < end)) {
		size_t n = (size_t)((nl ? nl + 1 : end) - s);
		if (*inside)
			fwrite(s, 1, n, stdout);
		else
			ELFRW_TRY(in->line(in->arg, s, n));
		*inside = false;
		s += n;
	}
	*left = (size_t)(end - s);
	memmove(buf, s, *left);
	if (*left < BUFFER)
		return NULL;
	ELFRW_TRY(in->flush(in->arg));
	fwrite(buf, 1, *left, stdout);
	*inside = true;
	*left = 0;
	return NULL;
}

/* Keeps nothing from a reader while the writer is silent.  What is held waits for its rest, but no
 * longer than a writer that is at it would need. */
static struct elfrw_err *before_reading(const struct icf_lines *in, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	fflush(stdout);
	if (!in->holds(in->arg) || poll(&p, 1, SILENCE) != 0)
		return NULL;
	ELFRW_TRY(in->flush(in->arg));
	fflush(stdout);
	return NULL;
}

static struct elfrw_err *copy(const struct icf_lines *in, int fd, const char *path, char *buf)
{
	size_t len = 0;
	bool inside = false;
	for (;;) {
		ssize_t got = read(fd, buf + len, BUFFER - len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return elfrw_error_errno(errno, "cannot read %s", path);
		ELFRW_TRY(pass(in, buf, len + (size_t)got, got == 0, &inside, &len));
		if (got == 0 || ferror(stdout))
			return in->flush(in->arg);
		ELFRW_TRY(before_reading(in, fd));
	}
}

struct elfrw_err *icf_lines_run(const struct icf_lines *in, char **path, int n)
{
	char *buf = malloc(BUFFER);
	struct elfrw_err *err = buf ? NULL : &elfrw_err_nomem;
	if (!err && !n)
		err = copy(in, STDIN_FILENO, "standard input", buf);
	for (int i = 0; i < n && !err; i++) {
		int fd = strcmp(path[i], "-") ? open(path[i], O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
		err = fd < 0 ? elfrw_error_errno(errno, "cannot open %s", path[i])
			     : copy(in, fd, path[i], buf);
		if (fd > STDIN_FILENO)
			close(fd);
	}
	free(buf);
	return err;
}
