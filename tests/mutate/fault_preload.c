/* fault_preload.c: what file systems and other processes may do to a program, done to it on
 * purpose; for LD_PRELOAD.
 *
 * FAULT is a list of words:
 *   notmpfile     there are no unnamed files
 *   nolink        an unnamed file cannot be given a name
 *   norename      nothing can be renamed
 *   nochmod       modes cannot be set
 *   nochown       owners cannot be set
 *   diechown      the process is killed where it sets an owner
 *   short         a write takes at most 1000 bytes
 *   eintr         every other write is interrupted
 *   full          the third write finds no room
 *   closefull     closing a file that was written to finds no room
 *   slow          every write waits 0.3 ms first
 *   cut, touch    the input (FAULT_FILE) is truncated to a page, or written to, when it has been
 *                 mapped
 *   latecut, latetouch   the same before the first write */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int wrote, written_fd = -1;

static int on(const char *word)
{
	const char *list = getenv("FAULT"), *p = list;
	size_t n = strlen(word);
	while (p && (p = strstr(p, word))) {
		if ((p == list || p[-1] == ' ') && (p[n] == ' ' || !p[n]))
			return 1;
		p += n;
	}
	return 0;
}

static void spoil(const char *cut, const char *touch)
{
	const char *file = getenv("FAULT_FILE");
	if (file && on(cut) && truncate(file, 4096) != 0)
		abort();
	if (file && on(touch)) {
		int (*real)(const char *, int, ...) =
			(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
		int fd = real(file, O_RDWR);
		char c;
		/* The clock of file times may be a coarse one. */
		usleep(20000);
		/* The same byte again: only the time tells. */
		if (fd < 0 || read(fd, &c, 1) != 1 || lseek(fd, 0, SEEK_SET) != 0 ||
		    write(fd, &c, 1) != 1)
			abort();
		close(fd);
	}
}

int open(const char *path, int flags, ...)
{
	int (*real)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	va_list ap;
	va_start(ap, flags);
	mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
	va_end(ap);
	if ((flags & O_TMPFILE) == O_TMPFILE && on("notmpfile")) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return real(path, flags, mode);
}

int linkat(int a, const char *from, int b, const char *to, int flags)
{
	int (*real)(int, const char *, int, const char *, int) =
		(int (*)(int, const char *, int, const char *, int))dlsym(RTLD_NEXT, "linkat");
	if (on("nolink")) {
		errno = EPERM;
		return -1;
	}
	return real(a, from, b, to, flags);
}

int rename(const char *from, const char *to)
{
	int (*real)(const char *, const char *) =
		(int (*)(const char *, const char *))dlsym(RTLD_NEXT, "rename");
	if (on("norename")) {
		errno = EIO;
		return -1;
	}
	return real(from, to);
}

/* File systems without an exchange of two names report EINVAL. */
int renameat2(int a, const char *from, int b, const char *to, unsigned flags)
{
	int (*real)(int, const char *, int, const char *, unsigned) =
		(int (*)(int, const char *, int, const char *, unsigned))dlsym(RTLD_NEXT,
									       "renameat2");
	if (on("norename") || on("noexchange")) {
		errno = on("norename") ? EIO : EINVAL;
		return -1;
	}
	return real(a, from, b, to, flags);
}

int fchmod(int fd, mode_t mode)
{
	int (*real)(int, mode_t) = (int (*)(int, mode_t))dlsym(RTLD_NEXT, "fchmod");
	if (on("nochmod")) {
		errno = EPERM;
		return -1;
	}
	return real(fd, mode);
}

int fchown(int fd, uid_t owner, gid_t group)
{
	int (*real)(int, uid_t, gid_t) = (int (*)(int, uid_t, gid_t))dlsym(RTLD_NEXT, "fchown");
	if (on("diechown"))
		raise(SIGKILL);
	if (on("nochown")) {
		errno = EPERM;
		return -1;
	}
	return real(fd, owner, group);
}

int close(int fd)
{
	int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "close");
	int rc = real(fd);
	if (fd == written_fd && on("closefull")) {
		errno = ENOSPC;
		return -1;
	}
	return rc;
}

ssize_t pwrite(int fd, const void *buf, size_t n, off_t at)
{
	ssize_t (*real)(int, const void *, size_t, off_t) =
		(ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
	written_fd = fd;
	if (wrote++ == 0)
		spoil("latecut", "latetouch");
	if (on("slow"))
		usleep(300);
	if (on("full") && wrote > 2) {
		errno = ENOSPC;
		return -1;
	}
	if (on("eintr") && wrote % 2) {
		errno = EINTR;
		return -1;
	}
	return real(fd, buf, on("short") && n > 1000 ? 1000 : n, at);
}

void *mmap(void *at, size_t size, int prot, int flags, int fd, off_t off)
{
	void *(*real)(void *, size_t, int, int, int, off_t) =
		(void *(*)(void *, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap");
	void *p = real(at, size, prot, flags, fd, off);
	struct stat a, b;
	const char *file = getenv("FAULT_FILE");
	if (fd >= 0 && file && p != MAP_FAILED && fstat(fd, &a) == 0 && stat(file, &b) == 0 &&
	    a.st_ino == b.st_ino)
		spoil("cut", "touch");
	return p;
}
