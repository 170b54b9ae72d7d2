/* regular.c: see regular.h.
 *
 * The file is first held without being opened (O_PATH), then checked, then opened through that
 * descriptor, so that nothing can replace it in between.  Without /proc the file is opened with
 * O_NONBLOCK and then checked.
 *
 * Below a root the kernel resolves names as it does after chroot (openat2, Linux 5.6).  If the
 * kernel cannot, the name is appended to the root's, and a name with ".." is refused. */
#include "elfrw/base/regular.h"
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Returns FD if it is regular; else closes it and returns -1. */
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

/* Is ".." one of the parts of NAME? */
static bool climbs(const char *name)
{
	for (const char *p = strstr(name, ".."); p; p = strstr(p + 1, ".."))
		if ((p == name || p[-1] == '/') && (!p[2] || p[2] == '/'))
			return true;
	return false;
}

/* The path of the file that FD holds; NULL: unknown. */
static char *place_of(int fd)
{
	char held[64], path[4096];
	snprintf(held, sizeof held, "/proc/self/fd/%d", fd);
	ssize_t n = readlink(held, path, sizeof path);
	return n > 0 && (size_t)n < sizeof path && *path == '/' ? strndup(path, (size_t)n) : NULL;
}

char *elfrw_path_below(const char *root, const char *name)
{
	struct open_how how = { .flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_IN_ROOT };
	char *ret = NULL;
	int dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return NULL;
	int fd = (int)syscall(SYS_openat2, dir, name, &how, sizeof how);
	bool unable = fd < 0 && (errno == ENOSYS || errno == EPERM || errno == EINVAL);
	close(dir);
	if (fd >= 0) {
		ret = place_of(fd);
		unable = !ret;
		close(fd);
	}
	if (unable && !climbs(name) && asprintf(&ret, "%s/%s", root, name) < 0)
		ret = NULL;
	return ret;
}
