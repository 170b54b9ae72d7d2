/* open_libdw.c: open() as libdw sees it: regular files only.
 *
 * libdwfl opens every path in a core file's list of loaded files without any check.  It would block
 * on a pipe, open a device, and take what lies in the current folder for a file that a core names
 * without a "/" in front.  So the dynamic linker binds libdwfl's open() to this one.  All other
 * calls go on to the C library. */
#include "elfrw/base/regular.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

int open(const char *path, int flags, ...);
int open64(const char *path, int flags, ...);

static bool is_libdw(void *code)
{
	Dl_info info;
	if (!dladdr(code, &info) || !info.dli_fname)
		return false;
	const char *slash = strrchr(info.dli_fname, '/');
	return strncmp(slash ? slash + 1 : info.dli_fname, "libdw", 5) == 0;
}

static int open_for(void *caller, const char *path, int flags, mode_t mode)
{
	if ((flags & (O_ACCMODE | O_CREAT | O_PATH | O_DIRECTORY)) == O_RDONLY && is_libdw(caller))
		return *path == '/' ? elfrw_open_regular(path) : (errno = ENOENT, -1);
	int (*next)(const char *, int, ...) =
		(int (*)(const char *, int, ...))dlsym(RTLD_NEXT, "open");
	return next ? next(path, flags, mode)
		    : (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

static mode_t mode_of(int flags, va_list *ap)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(*ap, mode_t) : 0;
}

int open(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = mode_of(flags, &ap);
	va_end(ap);
	return open_for(__builtin_return_address(0), path, flags, mode);
}

int open64(const char *path, int flags, ...)
{
	va_list ap;
	va_start(ap, flags);
	mode_t mode = mode_of(flags, &ap);
	va_end(ap);
	return open_for(__builtin_return_address(0), path, flags | O_LARGEFILE, mode);
}
