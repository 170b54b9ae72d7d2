/* addr.c: see addr.h.  A flat table beside the section records what is set; each use costs one
 * look-up. */
#include "dwarf/rewrite/addr.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/rbuf.h"
#include <stdlib.h>
#include <string.h>

struct elfrw_err *dwr_addr_table_init(struct dwr_addr_table *table, const uint8_t *data,
				      size_t size)
{
	uint8_t *copy = malloc(size ? size : 1), *set = calloc(size ? size : 1, 1);
	if (!copy || !set) {
		free(copy);
		free(set);
		return &elfrw_err_nomem;
	}
	if (size)
		memcpy(copy, data, size);
	*table = (struct dwr_addr_table){ copy, size, set };
	return NULL;
}

void dwr_addr_table_deinit(struct dwr_addr_table *table)
{
	free(table->data);
	free(table->set);
	*table = (struct dwr_addr_table){ 0 };
}

bool dwr_addr_can_set(const struct dwr_addr_table *table, uint64_t off, unsigned address_size,
		      uint64_t value)
{
	if (off > table->size || table->size - off < address_size)
		return false;
	if (!table->set[off])
		return true;
	return table->set[off] == address_size &&
	       elfrw_get_le(table->data + off, address_size) == value;
}

bool dwr_addr_set(struct dwr_addr_table *table, uint64_t off, unsigned address_size, uint64_t value)
{
	if (!dwr_addr_can_set(table, off, address_size, value))
		return false;
	elfrw_put_le(table->data + off, value, address_size);
	table->set[off] = (uint8_t)address_size;
	return true;
}

static void map_unset(struct dwr_addr_table *table, const struct elfrw_addrmap *map, size_t off,
		      size_t end, unsigned size)
{
	for (; end - off >= size; off += size) {
		if (table->set[off])
			continue;
		uint64_t new;
		elfrw_addrmap_pointer(map, elfrw_get_le(table->data + off, size), &new);
		elfrw_put_le(table->data + off, new, size);
	}
}

struct elfrw_err *dwr_addr_table_finish(struct dwr_addr_table *table,
					const struct elfrw_addrmap *map, bool headerless,
					unsigned address_size)
{
	if (headerless) {
		if (address_size != 4 && address_size != 8)
			return elfrw_error(".debug_addr: addresses of %u bytes are not supported",
					   address_size);
		map_unset(table, map, 0, table->size, address_size);
		return NULL;
	}
	struct elfrw_rbuf r = elfrw_rbuf(table->data, table->size);
	while (elfrw_rbuf_left(&r)) {
		size_t off = elfrw_rbuf_off(&r);
		uint64_t length = elfrw_rbuf_u32(&r);
		if (length == UINT32_MAX)
			length = elfrw_rbuf_u64(&r);
		if (!elfrw_rbuf_ok(&r) || length > elfrw_rbuf_left(&r) || length < 4)
			return elfrw_error_at(".debug_addr", off,
					      "contribution of 0x%jx bytes does not fit",
					      (uintmax_t)length);
		size_t end = elfrw_rbuf_off(&r) + length;
		unsigned version = elfrw_rbuf_u16(&r), size = elfrw_rbuf_u8(&r),
			 seg_size = elfrw_rbuf_u8(&r);
		if (version != 5 || seg_size || (size != 4 && size != 8))
			return elfrw_error_at(".debug_addr", off,
					      "contribution of version %u, address size %u, segment"
					      " selector size %u is not supported",
					      version, size, seg_size);
		map_unset(table, map, elfrw_rbuf_off(&r), end, size);
		elfrw_rbuf_seek(&r, end);
	}
	return NULL;
}
