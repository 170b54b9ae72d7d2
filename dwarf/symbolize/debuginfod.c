/* debuginfod.c: see debuginfod.h.
 *
 * The library is opened when it is needed, as libdw itself does it: it brings a web client along,
 * and who has no server needs neither. */
#include "dwarf/symbolize/debuginfod.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct debuginfod_client debuginfod_client;

char *dwr_debuginfod_find(const unsigned char *id, size_t n, enum dwr_debuginfod_kind kind)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char *path = NULL;
	if (!urls || !*urls || !n || n > 64)
		return NULL;
	void *lib = dlopen("libdebuginfod.so.1", RTLD_LAZY);
	if (!lib)
		return NULL;
	debuginfod_client *(*begin)(void);
	void (*end)(debuginfod_client *);
	int (*find)(debuginfod_client *, const unsigned char *, int, char **);
	/* POSIX's way to make a function of what dlsym() gives. */
	*(void **)&begin = dlsym(lib, "debuginfod_begin");
	*(void **)&end = dlsym(lib, "debuginfod_end");
	*(void **)&find =
		dlsym(lib, kind == DWR_DEBUGINFOD_EXECUTABLE ? "debuginfod_find_executable"
							     : "debuginfod_find_debuginfo");
	debuginfod_client *client = begin && end && find ? begin() : NULL;
	if (client) {
		int fd = find(client, id, (int)n, &path);
		if (fd >= 0)
			close(fd);
		else
			path = NULL;
		end(client);
	}
	/* It stays open: a web client that ends its library early is asking for trouble. */
	return path;
}
