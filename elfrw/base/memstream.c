/* memstream.c: see memstream.h. */
#include "elfrw/base/memstream.h"
#include <stdlib.h>

bool elfrw_memstream_close(FILE *f, char **text)
{
	bool bad = ferror(f);
	if (fclose(f) == 0 && !bad && *text)
		return true;
	free(*text);
	*text = NULL;
	return false;
}
