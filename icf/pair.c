/* pair.c: see pair.h.  .gnu_debuglink: the file's name, NUL, zeros up to a multiple of four bytes, CRC-32 (GDB manual, "Separate
 * Debug Files"). */
#include "icf/pair.h"
#include "dwarf/symbolize/state.h"
#include "elfrw/base/rbuf.h"
#include <stdlib.h>
#include <string.h>

static const char link_name[] = ".gnu_debuglink";

struct elfrw_err *icf_pair_find(const char *path, const char *dir, char **ret, bool *own)
{
	struct dwr_sym_file *file, *debug = NULL;
	*ret = NULL;
	ELFRW_TRY(dwr_sym_file_open(path, &file));
	struct elfrw_err *err = NULL;
	bool has = dwr_sym_file_has_debug(file);
	if (own)
		*own = has;
	if (!has)
		err = dwr_sym_file_separate(file, dir ? dir : "/usr/lib/debug", "", &debug);
	if (debug && !(*ret = strdup(debug->path)))
		err = &elfrw_err_nomem;
	dwr_sym_file_close(debug);
	dwr_sym_file_close(file);
	return err;
}

struct elfrw_err *icf_pair_add_link(struct elfrw_output *out, const char *debug_output)
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

void icf_pair_set_checksum(struct elfrw_output *out, uint32_t crc)
{
	for (size_t i = 0; i < out->added.len; i++)
		if (strcmp(out->added.data[i].name, link_name) == 0)
			elfrw_put32(out->added.data[i].data + out->added.data[i].size - 4, crc);
}
