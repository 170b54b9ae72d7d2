/* room.c: the large memory of a rewriting: the copies of .debug_info and .debug_types, and the
 * places in .debug_info that refer to lists. */
#include "dwarf/rewrite/run.h"
#include "elfrw/image.h"
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES_PER_LIST 16
#define LARGE          ((size_t)1 << 21)

static const enum dwr_sec list_sec[] = { DWR_RANGES, DWR_RNGLISTS, DWR_LOC, DWR_LOCLISTS };

/* Memory of large pages for the sites of all units, if the lists, of LISTS bytes, are so many that
 * most of it will be used. */
static struct elfrw_err *make_sites(size_t info, size_t lists, struct dwr_site **ret)
{
	const size_t n = info / DWR_BYTES_PER_SITE, size = (n + 1) * sizeof **ret;
	*ret = NULL;
	if (lists / BYTES_PER_LIST < n / 2)
		return NULL;
	*ret = elfrw_large(malloc(size), size);
	return *ret ? NULL : &elfrw_err_nomem;
}

static size_t sites_size(size_t info)
{
	return (info / DWR_BYTES_PER_SITE + 1) * sizeof(struct dwr_site);
}

/* Memory for the copy of a .debug_info of SIZE bytes, and for the unit that is appended to it
 * (artificial.c): to grow the block then would mean to copy it. */
static uint8_t *make_info(size_t size)
{
	const size_t n = size + size / 16 + 4096;
	return elfrw_large(malloc(n), n);
}

/* Has the system clear the SIZE bytes at P now, not when they are first written.  In pieces: nobody
 * else gets memory meanwhile. */
static void populate(uint8_t *p, size_t size)
{
#ifdef MADV_POPULATE_WRITE
	uint8_t *at = p + (-(uintptr_t)p & (LARGE - 1));
	for (; p && (size_t)(at - p) < size && size - (size_t)(at - p) >= LARGE; at += LARGE)
		if (madvise(at, LARGE, MADV_POPULATE_WRITE) != 0)
			return;
#else
	(void)p;
	(void)size;
#endif
}

struct elfrw_err *dwr_rewrite_room_make(const struct elfrw_image *image,
					struct dwr_rewrite_room *ret)
{
	struct dwr_sections secs;
	size_t lists = 0;
	*ret = (struct dwr_rewrite_room){ 0 };
	ELFRW_TRY(dwr_sections_init(&secs, image));
	const struct dwr_section *info = &secs.sec[DWR_INFO];
	const size_t size = info->shndx && info->compression == DWR_PLAIN
				    ? image->section[info->shndx].hdr.sh_size
				    : 0;
	for (unsigned k = 0; k < sizeof list_sec / sizeof *list_sec; k++)
		if (secs.sec[list_sec[k]].shndx)
			lists += image->section[secs.sec[list_sec[k]].shndx].hdr.sh_size;
	dwr_sections_deinit(&secs);
	if (size < LARGE || size > image->size)
		return NULL;
	ret->info = make_info(size);
	struct elfrw_err *err = ret->info ? make_sites(size, lists, &ret->site) : &elfrw_err_nomem;
	if (err) {
		dwr_rewrite_room_deinit(ret);
		return err;
	}
	populate(ret->info, size);
	populate((uint8_t *)ret->site, sites_size(size));
	return NULL;
}

void dwr_rewrite_room_deinit(struct dwr_rewrite_room *room)
{
	free(room->info);
	free(room->site);
	*room = (struct dwr_rewrite_room){ 0 };
}

struct elfrw_err *dwr_rw_make_copies(struct dwr_rw *rw)
{
	const size_t info = rw->secs.sec[DWR_INFO].size, types = rw->secs.sec[DWR_TYPES].size;
	struct dwr_rewrite_room *room = rw->in->room;
	if (types && !(rw->copy[DWR_TYPES] = elfrw_large(malloc(types), types)))
		return &elfrw_err_nomem;
	if (room && room->info) {
		rw->copy[DWR_INFO] = room->info;
		rw->room = room->site;
		*room = (struct dwr_rewrite_room){ 0 };
		return NULL;
	}
	if (info && !(rw->copy[DWR_INFO] = make_info(info)))
		return &elfrw_err_nomem;
	size_t lists = 0;
	for (unsigned k = 0; k < DWR_LIST_KINDS; k++)
		lists += rw->lists.list[k].size;
	return make_sites(info, lists, &rw->room);
}
