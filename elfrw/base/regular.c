/* regular.c: see regular.h.
 *
 * The file is held without being opened (O_PATH), looked at, and opened through that hold, so that
 * nothing can take its place in between.  Where /proc is missing it is opened without waiting, and
 * looked at then. */
#include "elfrw/base/regular.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

/* FD when it is regular, else closed and -1. */
static int checked(int fd)
{
	struct stat st;
	int e = fstat(fd, &st) != 0   ? errno
		: S_ISREG(st.st_mode) ? 0
		: S_ISDIR(st.st_mode) ? EISDIR
				      : EINVAL;
	if (!e)
		return fd;
	close(fd);
	errno = e;
	return -1;
}

int elfrw_open_regular(const char *path)
{
	char held[64];
	int hold = open(path, O_PATH | O_CLOEXEC);
	if (hold < 0 || checked(hold) < 0)
		return -1;
	snprintf(held, sizeof held, "/proc/self/fd/%d", hold);
	int fd = open(held, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int e = errno;
	close(hold);
	if (fd < 0 && e == ENOENT) {
		fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
		return fd < 0 ? -1 : checked(fd);
	}
	errno = e;
	return fd;
}
