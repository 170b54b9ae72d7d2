/* sections.c: finds the .debug_* sections of an image, decompresses them, and compresses new
 * contents.
 *
 * Decompression goes directly into one buffer of the claimed size.  A claimed size is believed only
 * within the maximum ratio of deflate (1032:1) plus a constant for tiny sections, and only if the
 * stream really ends there: a bomb costs an error, not memory.  Compression works in fixed shards
 * that do not depend on the number of threads (raw deflate pieces closed by a sync flush, RFC 1951;
 * several zstd frames, RFC 8878 section 3), so the output does not either. */
#include "dwarf/sections.h"
#include "elfrw/image.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/vec.h"
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#ifndef ELFCOMPRESS_ZSTD
#define ELFCOMPRESS_ZSTD 2
#endif

#define MAX_RATIO   1032
#define RATIO_SLACK (UINT64_C(1) << 20)
#define SHARD       (UINT64_C(1) << 20)

static const char *const names[DWR_SECS] = {
	[DWR_INFO] = ".debug_info",
	[DWR_TYPES] = ".debug_types",
	[DWR_ABBREV] = ".debug_abbrev",
	[DWR_LINE] = ".debug_line",
	[DWR_STR] = ".debug_str",
	[DWR_LINE_STR] = ".debug_line_str",
	[DWR_STR_OFFSETS] = ".debug_str_offsets",
	[DWR_ADDR] = ".debug_addr",
	[DWR_ARANGES] = ".debug_aranges",
	[DWR_RANGES] = ".debug_ranges",
	[DWR_RNGLISTS] = ".debug_rnglists",
	[DWR_LOC] = ".debug_loc",
	[DWR_LOCLISTS] = ".debug_loclists",
	[DWR_FRAME] = ".debug_frame",
	[DWR_NAMES] = ".debug_names",
	[DWR_GDB_INDEX] = ".gdb_index",
	[DWR_MACRO] = ".debug_macro",
	[DWR_DCALL] = ".debug_dcall",
	[DWR_VCALL] = ".debug_vcall",
	[DWR_ICFOLD] = ".debug_icfold",
};

struct elfrw_err *dwr_sections_init(struct dwr_sections *secs, const struct elfrw_image *image)
{
	memset(secs, 0, sizeof *secs);
	secs->image = image;
	for (unsigned id = 0; id < DWR_SECS; id++)
		secs->sec[id] = (struct dwr_section){ .name = names[id], .align = 1 };
	for (uint32_t i = 1; i < image->n_sections; i++) {
		const struct elfrw_section *s = &image->section[i];
		bool z = !strncmp(s->name, ".zdebug_", 8);
		if (!z && strncmp(s->name, ".debug_", 7) && strcmp(s->name, ".gdb_index"))
			continue;
		if (s->hdr.sh_type == SHT_NULL || s->hdr.sh_type == SHT_NOBITS ||
		    s->hdr.sh_type == SHT_RELA || s->hdr.sh_type == SHT_REL)
			continue;
		for (unsigned id = 0; id < DWR_SECS; id++) {
			struct dwr_section *sec = &secs->sec[id];
			if (strcmp(s->name + (z ? 2 : 1), names[id] + 1))
				continue;
			if (sec->shndx)
				return elfrw_error("section %s is there twice", s->name);
			if (s->hdr.sh_flags & SHF_ALLOC)
				return elfrw_error(
					"section %s is part of the loaded program, which is not supported",
					s->name);
			sec->file_name = s->name;
			sec->shndx = i;
			sec->align = s->hdr.sh_addralign;
			sec->compression = z ? DWR_ZDEBUG : DWR_PLAIN;
			if (!(s->hdr.sh_flags & SHF_COMPRESSED))
				break;
			if (z || !s->data || s->hdr.sh_size < sizeof(Elf64_Chdr))
				return elfrw_error_at(s->name, 0, "broken compression header");
			uint32_t type = elfrw_get32(s->data + offsetof(Elf64_Chdr, ch_type));
			sec->align = elfrw_get64(s->data + offsetof(Elf64_Chdr, ch_addralign));
			if (type == ELFCOMPRESS_ZLIB)
				sec->compression = DWR_ZLIB;
			else if (type == ELFCOMPRESS_ZSTD)
				sec->compression = DWR_ZSTD;
			else
				return elfrw_error_at(s->name, 0, "unknown compression type %u",
						      type);
			break;
		}
	}
	return NULL;
}

void dwr_sections_deinit(struct dwr_sections *secs)
{
	for (unsigned id = 0; id < DWR_SECS; id++)
		free(secs->sec[id].owned);
	memset(secs, 0, sizeof *secs);
}

/* zlib counts in 32 bits; sections may be larger.  *OK: the stream has that many bytes. */
static struct elfrw_err *inflate_all(uint8_t *out, uint64_t out_size, const uint8_t *in,
				     uint64_t in_size, bool *ok)
{
	z_stream z = { 0 };
	if (inflateInit(&z) != Z_OK)
		return &elfrw_err_nomem;
	int rc = Z_OK;
	uint64_t in_left = in_size, out_left = out_size;
	z.next_in = (Bytef *)in;
	z.next_out = out;
	while (rc == Z_OK) {
		if (!z.avail_in) {
			z.avail_in = in_left > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)in_left;
			in_left -= z.avail_in;
		}
		if (!z.avail_out) {
			z.avail_out = out_left > UINT32_MAX / 2 ? UINT32_MAX / 2 : (uInt)out_left;
			out_left -= z.avail_out;
		}
		rc = inflate(&z,
			     Z_NO_FLUSH); /* without progress: Z_BUF_ERROR, which ends the loop */
	}
	*ok = rc == Z_STREAM_END && !z.avail_out && !out_left;
	inflateEnd(&z);
	return rc == Z_MEM_ERROR ? &elfrw_err_nomem : NULL;
}

struct elfrw_err *dwr_sections_load(struct dwr_sections *secs, enum dwr_sec id)
{
	struct dwr_section *sec = &secs->sec[id];
	if (sec->loaded || !sec->shndx) {
		sec->loaded = true;
		return NULL;
	}
	const struct elfrw_section *s = &secs->image->section[sec->shndx];
	if (sec->compression == DWR_PLAIN) {
		sec->data = s->data;
		sec->size = s->data ? s->hdr.sh_size : 0;
		sec->loaded = true;
		return NULL;
	}
	uint64_t size, head;
	if (sec->compression == DWR_ZDEBUG) {
		if (!s->data || s->hdr.sh_size < 12 || memcmp(s->data, "ZLIB", 4))
			return elfrw_error_at(s->name, 0, "broken compression header");
		size = __builtin_bswap64(elfrw_get64(s->data + 4));
		head = 12;
	} else {
		size = elfrw_get64(s->data + offsetof(Elf64_Chdr, ch_size));
		head = sizeof(Elf64_Chdr);
	}
	const uint8_t *in = s->data + head;
	uint64_t in_size = s->hdr.sh_size - head;
	if (size > RATIO_SLACK && (size - RATIO_SLACK) / MAX_RATIO > in_size)
		return elfrw_error_at(
			s->name, 0,
			"claims to grow from %llu to %llu bytes, which is not believable",
			(unsigned long long)in_size, (unsigned long long)size);
	uint8_t *out = elfrw_large(malloc(size ? size : 1), size);
	if (!out)
		return &elfrw_err_nomem;
	bool ok = false;
	struct elfrw_err *err = NULL;
	if (sec->compression == DWR_ZSTD) {
		size_t n = ZSTD_decompress(out, size, in, in_size);
		ok = !ZSTD_isError(n) && n == size;
		if (ZSTD_getErrorCode(n) == ZSTD_error_memory_allocation)
			err = &elfrw_err_nomem;
	} else {
		err = inflate_all(out, size, in, in_size, &ok);
	}
	if (!ok) {
		free(out);
		return err ? err : elfrw_error_at(s->name, 0, "broken compressed data");
	}
	sec->data = sec->owned = out;
	sec->size = size;
	sec->loaded = true;
	return NULL;
}

static struct elfrw_err *load_part(void *ctx, size_t part)
{
	return dwr_sections_load(ctx, (enum dwr_sec)part);
}

struct elfrw_err *dwr_sections_load_all(struct dwr_sections *secs, unsigned threads)
{
	bool any = false;
	for (unsigned id = 0; id < DWR_SECS; id++)
		any |= secs->sec[id].shndx && secs->sec[id].compression != DWR_PLAIN;
	return elfrw_parallel(any ? threads : 1, DWR_SECS, load_part, secs);
}

struct shard {
	uint8_t *data;
	size_t size;
	uint32_t adler;
};

struct pack {
	const uint8_t *data;
	size_t size;
	bool zstd;
	struct shard *shard;
	size_t n;
};

static struct elfrw_err *pack_shard(void *ctx, size_t part)
{
	struct pack *p = ctx;
	struct shard *s = &p->shard[part];
	const uint8_t *in = p->data + part * SHARD;
	size_t n = p->size - part * SHARD < SHARD ? p->size - part * SHARD : SHARD;
	size_t cap = p->zstd ? ZSTD_compressBound(n) : compressBound(n) + 64;
	s->data = malloc(cap);
	if (!s->data)
		return &elfrw_err_nomem;
	if (p->zstd) {
		s->size = ZSTD_compress(s->data, cap, in, n, ZSTD_CLEVEL_DEFAULT);
		if (ZSTD_getErrorCode(s->size) == ZSTD_error_memory_allocation)
			return &elfrw_err_nomem;
		return ZSTD_isError(s->size) ? elfrw_error("zstd: %s", ZSTD_getErrorName(s->size))
					     : NULL;
	}
	z_stream z = { .next_in = (Bytef *)in,
		       .avail_in = (uInt)n,
		       .next_out = s->data,
		       .avail_out = (uInt)cap };
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8,
			 Z_DEFAULT_STRATEGY) != Z_OK)
		return &elfrw_err_nomem;
	bool last = part + 1 == p->n;
	int rc = deflate(&z, last ? Z_FINISH : Z_SYNC_FLUSH);
	bool ok = !z.avail_in && (last ? rc == Z_STREAM_END : rc == Z_OK);
	s->size = cap - z.avail_out;
	s->adler = (uint32_t)adler32(1, in, (uInt)n);
	deflateEnd(&z);
	return ok ? NULL : elfrw_error("zlib: compression failed");
}

static struct elfrw_err *pack_join(const struct dwr_section *sec, const struct pack *p,
				   uint8_t **ret, size_t *ret_size)
{
	size_t total = sizeof(Elf64_Chdr) + 2 + 4;
	for (size_t i = 0; i < p->n; i++)
		total += p->shard[i].size;
	uint8_t *out = malloc(total);
	if (!out)
		return &elfrw_err_nomem;
	uint8_t *pos = out;
	if (sec->compression == DWR_ZDEBUG) {
		memcpy(pos, "ZLIB", 4);
		elfrw_put64(pos + 4, __builtin_bswap64(p->size));
		pos += 12;
	} else {
		elfrw_put32(pos, p->zstd ? ELFCOMPRESS_ZSTD : ELFCOMPRESS_ZLIB);
		elfrw_put32(pos + 4, 0);
		elfrw_put64(pos + 8, p->size);
		elfrw_put64(pos + 16, sec->align);
		pos += sizeof(Elf64_Chdr);
	}
	if (!p->zstd) { /* RFC 1950: deflate, 32 KB window, default level */
		*pos++ = 0x78;
		*pos++ = 0x9c;
	}
	uint32_t adler = 1;
	for (size_t i = 0; i < p->n; i++) {
		memcpy(pos, p->shard[i].data, p->shard[i].size);
		pos += p->shard[i].size;
		size_t n = p->size - i * SHARD < SHARD ? p->size - i * SHARD : SHARD;
		adler = (uint32_t)adler32_combine(adler, p->shard[i].adler, (z_off_t)n);
	}
	if (!p->zstd) {
		elfrw_put32(pos, __builtin_bswap32(adler));
		pos += 4;
	}
	*ret = out;
	*ret_size = (size_t)(pos - out);
	return NULL;
}

struct elfrw_err *dwr_section_pack(const struct dwr_section *sec, uint8_t *data, size_t size,
				   unsigned threads, uint8_t **ret, size_t *ret_size)
{
	if (sec->compression == DWR_PLAIN) {
		*ret = data;
		*ret_size = size;
		return NULL;
	}
	struct pack p = { data, size, sec->compression == DWR_ZSTD, NULL, 0 };
	uint64_t n = size ? (size + SHARD - 1) / SHARD : 1;
	p.n = n;
	p.shard = calloc(n, sizeof *p.shard);
	struct elfrw_err *err =
		p.shard ? elfrw_parallel(threads, p.n, pack_shard, &p) : &elfrw_err_nomem;
	if (!err)
		err = pack_join(sec, &p, ret, ret_size);
	for (size_t i = 0; p.shard && i < p.n; i++)
		free(p.shard[i].data);
	free(p.shard);
	free(data);
	return err;
}
