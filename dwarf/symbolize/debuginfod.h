/* debuginfod.h: files from debuginfod servers, through elfutils' libdebuginfod where it is
 * installed. */
#ifndef DWARF_SYMBOLIZE_DEBUGINFOD_H
#define DWARF_SYMBOLIZE_DEBUGINFOD_H
#include <stddef.h>

enum dwr_debuginfod_kind { DWR_DEBUGINFOD_EXECUTABLE, DWR_DEBUGINFOD_DEBUGINFO };

/* The path of the file with the build-id ID (N bytes), in the cache of libdebuginfod; owned by the
 * caller.  NULL: there is no server (DEBUGINFOD_URLS is not set), no library, or no such file.  May
 * take as long as the network does; limits are libdebuginfod's (DEBUGINFOD_TIMEOUT and the like,
 * debuginfod_find_debuginfo(3)). */
char *dwr_debuginfod_find(const unsigned char *id, size_t n, enum dwr_debuginfod_kind kind);
#endif
