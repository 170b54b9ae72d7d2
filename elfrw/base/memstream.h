/* memstream.h: the end of a stream that open_memstream made. */
#ifndef ELFRW_BASE_MEMSTREAM_H
#define ELFRW_BASE_MEMSTREAM_H
#include <stdbool.h>
#include <stdio.h>

/* Closes F, whose text is *TEXT.  True: all of the text is there; the caller frees it.  False: out
 * of memory; *TEXT is NULL.  (fclose alone does not say it: glibc shortens the text when it closes
 * the stream, and where that fails it returns 0 and leaves NULL as the text.) */
bool elfrw_memstream_close(FILE *f, char **text);
#endif
