/* debuginfod.c: see debuginfod.h.
 *
 * The library is opened on demand, as libdw itself does: it loads a web client, which users without
 * a server do not need. */
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
	/* POSIX's way to turn the result of dlsym() into a function pointer. */
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
	/* The library stays open: unloading a web client early is risky. */
	return path;
}
