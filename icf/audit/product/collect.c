/* collect.c: see collect.h.  Cost: a few system calls for each file below the folders, and one
 * reading of files of equal size. */
#include "icf/audit/product/collect.h"
#include "elfrw/base/regular.h"
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#define SNIFF 512        /* bytes that tell what a file is */
#define BLOCK (64 << 10) /* bytes that are hashed at once */

/* A header of tar as it was before POSIX has no magic, but the sum of its bytes, for which those of
 * the sum itself count as spaces. */
static bool is_old_tar(const uint8_t *header)
{
	unsigned sum = 8 * ' ', said = 0, k = 148;
	for (unsigned i = 0; i < 512; i++)
		sum += i < 148 || i >= 156 ? header[i] : 0;
	while (k < 156 && header[k] == ' ')
		k++;
	for (; k < 156 && header[k] >= '0' && header[k] <= '7'; k++)
		said = said * 8 + (header[k] - '0');
	return header[0] && sum == said;
}

enum icf_product_kind icf_product_kind(const void *bytes, size_t n)
{
	static const struct {
		const char *magic;
		unsigned short size, at;
		enum icf_product_kind kind;
	} known[] = {
		{ "\177ELF", 4, 0, ICF_KIND_ELF },
		{ "\x1f\x8b", 2, 0, ICF_KIND_COMPRESSED },         /* gzip */
		{ "\xfd\x37zXZ\0", 6, 0, ICF_KIND_COMPRESSED },    /* xz */
		{ "\x28\xb5\x2f\xfd", 4, 0, ICF_KIND_COMPRESSED }, /* zstd */
		{ "BZh", 3, 0, ICF_KIND_COMPRESSED },              /* bzip2 */
		{ "\x5d\0\0", 3, 0, ICF_KIND_COMPRESSED },         /* lzma */
		{ "PK\3\4", 4, 0, ICF_KIND_ARCHIVE },              /* zip */
		{ "\xed\xab\xee\xdb", 4, 0, ICF_KIND_ARCHIVE },    /* rpm */
		{ "debian-binary", 13, 8, ICF_KIND_ARCHIVE }, /* ar, as packages of Debian are */
		{ "070701", 6, 0, ICF_KIND_ARCHIVE },         /* cpio */
		{ "070702", 6, 0, ICF_KIND_ARCHIVE },         /* with checksums */
		{ "070707", 6, 0, ICF_KIND_ARCHIVE },         /* old */
		{ "ustar", 5, 257, ICF_KIND_ARCHIVE },        /* tar */
	};
	for (size_t k = 0; k < sizeof known / sizeof *known; k++)
		if (n >= (size_t)known[k].at + known[k].size &&
		    memcmp((const char *)bytes + known[k].at, known[k].magic, known[k].size) == 0)
			return known[k].kind;
	return n >= 512 && is_old_tar(bytes) ? ICF_KIND_ARCHIVE : ICF_KIND_OTHER;
}

static bool ends_in(const char *name, const char *const *end, size_t n_ends)
{
	size_t n = strlen(name);
	for (size_t k = 0; k < n_ends; k++) {
		size_t m = strlen(end[k]);
		if (n > m && strcasecmp(name + n - m, end[k]) == 0)
			return true;
	}
	return false;
}

bool icf_product_archive_name(const char *name)
{
	static const char *const end[] = { ".deb", ".udeb", ".rpm",      ".apk",    ".zip",
					   ".tar", ".tgz",  ".txz",      ".tzst",   ".tbz2",
					   ".ipk", ".whl",  ".tar.gz",   ".tar.xz", ".tar.zst",
					   ".aar", ".cpio", ".tar.lzma", ".tar.bz2" };
	return ends_in(name, end, sizeof end / sizeof *end);
}

bool icf_product_opens(enum icf_product_kind kind, const char *name)
{
	/* Pages of the manual, modules of the kernel: single files. */
	static const char *const single[] = { ".gz", ".xz", ".zst", ".bz2", ".lzma" };
	return kind == ICF_KIND_ARCHIVE ||
	       (kind == ICF_KIND_COMPRESSED &&
		(icf_product_archive_name(name) ||
		 !ends_in(name, single, sizeof single / sizeof *single)));
}

/* The kind of the regular file PATH; -1: cannot be read, see errno. */
static int kind_of(const char *path)
{
	char bytes[SNIFF];
	int fd = elfrw_open_regular(path);
	if (fd < 0)
		return -1;
	ssize_t n = pread(fd, bytes, sizeof bytes, 0);
	int e = errno;
	close(fd);
	errno = e;
	return n < 0 ? -1 : (int)icf_product_kind(bytes, (size_t)n);
}

bool icf_product_takes(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0)
		return false;
	return S_ISDIR(st.st_mode) || (S_ISREG(st.st_mode) && kind_of(path) >= ICF_KIND_ARCHIVE);
}

struct icf_product_file *icf_product_add(struct icf_product *p, const char *name, const char *path,
					 enum icf_product_state state)
{
	if (p->file.len >= ICF_NONE - 1)
		return NULL;
	struct icf_product_file *f = VEC_PUSH(&p->file);
	if (!f)
		return NULL;
	f->fd = -1;
	f->state = (uint8_t)state;
	f->copy_of = f->same_as = ICF_NONE;
	f->name = strdup(name);
	f->path = path ? strdup(path) : NULL;
	if (f->name && (f->path || !path))
		return f;
	free(f->name);
	free(f->path);
	p->file.len--;
	return NULL;
}

struct elfrw_err *icf_product_bad(struct icf_product_file *f, const char *why, ...)
{
	va_list ap;
	va_start(ap, why);
	char *text = NULL;
	int n = vasprintf(&text, why, ap);
	va_end(ap);
	free(f->why);
	f->state = ICF_FILE_BAD;
	f->why = n < 0 ? NULL : text;
	return n < 0 ? &elfrw_err_nomem : NULL;
}

static struct elfrw_err *add_bad(struct icf_product *p, const char *path, int errnum)
{
	struct icf_product_file *f = icf_product_add(p, path, path, ICF_FILE_BAD);
	if (!f)
		return &elfrw_err_nomem;
	f->unread = true;
	return icf_product_bad(f, "%s", strerror(errnum));
}

/* Adds the regular file PATH.  The part of the name that other builds share begins at REL. */
static struct elfrw_err *add_regular(struct icf_product *p, const char *path, size_t rel,
				     const struct stat *st, int kind)
{
	struct icf_product_file *f = icf_product_add(
		p, path, path, kind >= ICF_KIND_ARCHIVE ? ICF_FILE_ARCHIVE : ICF_FILE_WAITS);
	if (!f)
		return &elfrw_err_nomem;
	f->rel = rel;
	f->size = (uint64_t)st->st_size;
	f->dev = st->st_dev;
	f->ino = st->st_ino;
	return NULL;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

static struct elfrw_err *visit(struct icf_product *p, const FTSENT *e, size_t rel)
{
	switch (e->fts_info) {
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS: return add_bad(p, e->fts_path, e->fts_errno);
	case FTS_F: break;
	default: return NULL;
	}
	if (e->fts_statp->st_size < 4 || !S_ISREG(e->fts_statp->st_mode))
		return NULL;
	int kind = kind_of(e->fts_path);
	if (kind < 0)
		return add_bad(p, e->fts_path, errno);
	if (kind == ICF_KIND_ELF || icf_product_opens((enum icf_product_kind)kind, e->fts_name))
		return add_regular(p, e->fts_path, rel, e->fts_statp, kind);
	return NULL;
}

static struct elfrw_err *add_folder(struct icf_product *p, char *path)
{
	char *const root[] = { path, NULL };
	struct elfrw_err *err = NULL;
	size_t rel = strlen(path);
	FTS *fts = fts_open(root, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, by_name);
	if (!fts)
		return add_bad(p, path, errno);
	for (FTSENT *e; !err && (e = fts_read(fts));) {
		size_t at = rel;
		while (e->fts_path[at] == '/')
			at++;
		err = visit(p, e, at);
	}
	fts_close(fts);
	return err;
}

struct elfrw_err *icf_product_collect(struct icf_product *p, char **operand, int n)
{
	for (int k = 0; k < n; k++) {
		struct stat st;
		char *path = operand[k];
		if (stat(path, &st) != 0) {
			ELFRW_TRY(add_bad(p, path, errno));
			continue;
		}
		if (S_ISDIR(st.st_mode)) {
			ELFRW_TRY(add_folder(p, path));
			continue;
		}
		int kind = S_ISREG(st.st_mode) ? kind_of(path) : ICF_KIND_OTHER;
		const char *slash = strrchr(path, '/');
		if (kind < 0)
			ELFRW_TRY(add_bad(p, path, errno));
		else {
			ELFRW_TRY(add_regular(p, path, slash ? (size_t)(slash + 1 - path) : 0, &st,
					      kind));
			p->file.data[p->file.len - 1].asked = true;
		}
	}
	return NULL;
}

bool icf_product_reads(const struct icf_product *p, const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return false;
	for (size_t k = 0; k < p->file.len; k++)
		if (p->file.data[k].ino == st.st_ino && p->file.data[k].dev == st.st_dev)
			return true;
	return false;
}

/* ---- copies ---- */

/* Hashes the SIZE bytes of FD.  They are read and not mapped: if somebody truncates a mapped file,
 * the process ends (icf/cmd/process.h), and with this process the whole audit. */
static bool hash_bytes(int fd, uint64_t size, uint64_t hash[2])
{
	uint8_t block[BLOCK];
	XXH3_state_t s;
	XXH3_INITSTATE(&s);
	XXH3_128bits_reset(&s);
	for (uint64_t at = 0; at < size;) {
		const uint64_t left = size - at;
		ssize_t n = pread(fd, block, left < BLOCK ? left : BLOCK, (off_t)at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		XXH3_128bits_update(&s, block, (size_t)n);
		at += (uint64_t)n;
	}
	XXH128_hash_t h = XXH3_128bits_digest(&s);
	hash[0] = h.low64;
	hash[1] = h.high64;
	return true;
}

/* false: not known, since the file cannot be read, or changed its size. */
static bool content_hash(const char *path, uint64_t size, uint64_t hash[2])
{
	int fd = elfrw_open_regular(path);
	struct stat st;
	bool ok = fd >= 0 && fstat(fd, &st) == 0 && (uint64_t)st.st_size == size &&
		  hash_bytes(fd, size, hash);
	if (fd >= 0)
		close(fd);
	return ok;
}

static int size_order(const void *a, const void *b, void *ctx)
{
	const struct icf_product_file *file = ctx;
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	if (file[x].size != file[y].size)
		return file[x].size < file[y].size ? -1 : 1;
	return x < y ? -1 : x > y;
}

/* The files ID[0..N) have the same size. */
static void mark_equal(struct icf_product *p, const uint32_t *id, size_t n)
{
	struct icf_product_file *file = p->file.data;
	for (size_t k = 0; k < n && n > 1; k++) {
		struct icf_product_file *f = &file[id[k]];
		uint64_t *h = f->facts.content;
		size_t o = 0;
		while (o < k && (file[id[o]].dev != f->dev || file[id[o]].ino != f->ino))
			o++;
		bool known = o < k; /* the same file under another name */
		if (known)
			f->same_as = file[id[o]].same_as == ICF_NONE ? id[o] : file[id[o]].same_as;
		if (!known && content_hash(f->path, f->size, h))
			for (o = 0; o < k && !known; o += !known)
				known = file[id[o]].state == ICF_FILE_WAITS &&
					memcmp(file[id[o]].facts.content, h,
					       sizeof f->facts.content) == 0;
		if (!known)
			continue;
		f->state = ICF_FILE_COPY;
		f->copy_of = file[id[o]].state == ICF_FILE_COPY ? file[id[o]].copy_of : id[o];
	}
}

struct elfrw_err *icf_product_mark_copies(struct icf_product *p)
{
	VEC(uint32_t) id = { 0 };
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *f = &p->file.data[k];
		uint32_t *to = f->state == ICF_FILE_WAITS && f->path ? VEC_PUSH(&id) : NULL;
		if (to)
			*to = (uint32_t)k;
		else if (f->state == ICF_FILE_WAITS && f->path) {
			VEC_FREE(&id);
			return &elfrw_err_nomem;
		}
	}
	if (id.len)
		qsort_r(id.data, id.len, sizeof *id.data, size_order, p->file.data);
	for (size_t k = 0, e; k < id.len; k = e) {
		e = k + 1;
		while (e < id.len && p->file.data[id.data[e]].size == p->file.data[id.data[k]].size)
			e++;
		mark_equal(p, id.data + k, e - k);
	}
	VEC_FREE(&id);
	return NULL;
}
