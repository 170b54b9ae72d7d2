/* debuglink.c: see debuglink.h.  .gnu_debuglink: the file's name, NUL, zeros up to a multiple of
 * four bytes, CRC-32 (GDB manual, "Separate Debug Files"). */
#include "icf/apply/debuglink.h"
#include "elfrw/base/rbuf.h"
#include <stdlib.h>
#include <string.h>

static const char link_name[] = ".gnu_debuglink";

struct elfrw_err *icf_debuglink_add_link(struct elfrw_output *out, const char *debug_output)
{
	const char *slash = strrchr(debug_output, '/'), *name = slash ? slash + 1 : debug_output;
	size_t n = (strlen(name) + 1 + 3) & ~(size_t)3;
	uint8_t *data = calloc(1, n + 4);
	if (!data)
		return &elfrw_err_nomem;
	strcpy((char *)data, name);
	ELFRW_TRY(elfrw_output_add(out, link_name, data, n + 4, 0, 4));
	out->added.data[out->added.len - 1].debug = false;
	return NULL;
}

void icf_debuglink_set_checksum(struct elfrw_output *out, uint32_t crc)
{
	for (size_t i = 0; i < out->added.len; i++)
		if (strcmp(out->added.data[i].name, link_name) == 0)
			elfrw_put32(out->added.data[i].data + out->added.data[i].size - 4, crc);
}
