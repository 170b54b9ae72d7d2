/* archive.c: see archive.h.
 *
 * Limits, so that no archive costs more than its size lets expect: what it unpacks to, with all
 * nested archives (RATIO times its size, and SPARE bytes more), the size of a program in it (the
 * memory of the audit, since temporary files may lie in memory), the number of its members, and how
 * deep archives nest.  Reading stops at the limit, with an error. */
#include "icf/audit/product/archive.h"
#include "elfrw/base/heap.h"
#include "elfrw/base/regular.h"
#include "icf/audit/product/collect.h"
#include "icf/audit/product/libarchive.h"
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define RATIO       200
#define SPARE       (256ULL << 20)
#define MAX_MEMBERS 1000000
#define MAX_DEPTH   4
#define MAX_PARTS   16 /* of an initramfs */
#define BLOCK       65536
#define NO_ARCHIVE  "Unrecognized archive format" /* libarchive has no number for it alone */
#define TOO_MUCH    "unpacks to much more than its size lets expect: not read further"

int icf_archive_nameless(void)
{
	const char *dir = getenv("TMPDIR");
	if (!dir || !*dir)
		dir = "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != ENOENT))
		return fd;
	char path[4096];
	if (snprintf(path, sizeof path, "%s/icfold-XXXXXX", dir) >= (int)sizeof path)
		return -1;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

/* ---- the process that reads ---- */

struct reader {
	struct icf_libarchive lib;
	int socket;
	uint64_t left;    /* bytes that may still be unpacked */
	uint64_t largest; /* bytes of a member */
	uint32_t members, nameless;
	struct icf_archive_member m;
};

/* One level of nesting. */
struct level {
	struct reader *r;
	struct archive *outer;
	uint8_t block[BLOCK];
	size_t have; /* bytes of `block` that were read but not taken */
};

static bool send_member(struct reader *r)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec io = { &r->m, sizeof r->m };
	struct msghdr msg = { .msg_iov = &io, .msg_iovlen = 1 };
	if (r->m.fd >= 0) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof control;
		control.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(int)),
						 .cmsg_level = SOL_SOCKET,
						 .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(&control.head), &r->m.fd, sizeof(int));
	}
	ssize_t n;
	do
		n = sendmsg(r->socket, &msg, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	if (r->m.fd >= 0)
		close(r->m.fd);
	r->m.fd = -1;
	r->m.error[0] = 0;
	r->m.none = r->m.elf = false;
	return n >= 0;
}

static bool send_error(struct reader *r, const char *text)
{
	snprintf(r->m.error, sizeof r->m.error, "%s", text ? text : "cannot be read");
	return send_member(r);
}

/* A cannot be opened.  PREFIX: of the names in it, see walk().  Most compressed files hold no
 * archive: that is only said if the name does, or of the file itself. */
static bool cannot_open(struct reader *r, struct archive *a, size_t prefix)
{
	const char *why = r->lib.archive_error_string(a);
	r->m.none = why && strcmp(why, NO_ARCHIVE) == 0;
	if (r->m.none && prefix && !icf_product_archive_name(r->m.name))
		return true;
	return send_error(r, why);
}

/* Nothing further is read. */
static bool out_of_memory(struct reader *r)
{
	send_error(r, "needs more memory than --memory allows: not read further");
	return false;
}

/* false: libarchive is not installed.  It stays open. */
static bool open_library(struct icf_libarchive *ret)
{
	void *lib = dlopen("libarchive.so.13", RTLD_LAZY);
	bool all = lib != NULL;
	/* POSIX's way to turn the result of dlsym() into a function pointer. */
#define FIND(name) all = all && (*(void **)&ret->name = dlsym(lib, #name)) != NULL;
	ICF_LIBARCHIVE(FIND)
#undef FIND
	return all;
}

static struct archive *new_archive(const struct icf_libarchive *lib)
{
	struct archive *a = lib->archive_read_new();
	if (!a)
		return NULL;
	/* Only what libarchive reads itself: for other filters it would start programs. */
	lib->archive_read_support_filter_gzip(a);
	lib->archive_read_support_filter_bzip2(a);
	lib->archive_read_support_filter_xz(a);
	lib->archive_read_support_filter_lzma(a);
	lib->archive_read_support_filter_zstd(a);
	lib->archive_read_support_filter_rpm(a);
	lib->archive_read_support_format_tar(a);
	lib->archive_read_support_format_cpio(a);
	lib->archive_read_support_format_ar(a);
	lib->archive_read_support_format_zip(a);
	/* A package of Alpine is several archives, one behind the other. */
	lib->archive_read_set_option(a, "tar", "read_concatenated_archives", "1");
	return a;
}

/* The next bytes of the member that A is at; 0: the end, -1: an error, which was sent. */
static ssize_t read_block(struct reader *r, struct archive *a, uint8_t *block)
{
	ssize_t n = r->lib.archive_read_data(a, block, BLOCK);
	if (n > 0 && (uint64_t)n > r->left) {
		send_error(r, TOO_MUCH);
		r->left = 0;
		return -1;
	}
	if (n < 0)
		send_error(r, r->lib.archive_error_string(a));
	else
		r->left -= (uint64_t)n;
	return n < 0 ? -1 : n;
}

static bool write_all(int fd, const uint8_t *p, size_t n)
{
	while (n) {
		ssize_t k = write(fd, p, n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		p += k;
		n -= (size_t)k;
	}
	return true;
}

/* Hands over the member whose first *N bytes are in BLOCK.  *N: as read_block() returned last. */
static bool take_elf(struct reader *r, struct archive *a, uint8_t *block, ssize_t *n)
{
	int fd = icf_archive_nameless();
	r->m.elf = true;
	if (fd < 0)
		return send_error(r, "no temporary file can be made");
	r->m.size = 0;
	while (*n > 0) {
		if (r->m.size + (uint64_t)*n > r->largest) {
			close(fd);
			return send_error(r, "is larger than --memory");
		}
		if (!write_all(fd, block, (size_t)*n)) {
			close(fd);
			return send_error(r, "the folder of temporary files is full");
		}
		r->m.size += (uint64_t)*n;
		*n = read_block(r, a, block);
	}
	if (*n < 0) {
		close(fd);
		return r->left != 0;
	}
	r->m.fd = fd;
	return send_member(r);
}

static la_ssize_t read_outer(struct archive *inner, void *ctx, const void **to)
{
	struct level *l = ctx;
	ssize_t n = (ssize_t)l->have;
	l->have = 0;
	if (!n)
		n = l->r->lib.archive_read_data(l->outer, l->block, BLOCK);
	if (n < 0) {
		l->r->lib.archive_set_error(inner, EIO, "%s",
					    l->r->lib.archive_error_string(l->outer));
		return -1;
	}
	if ((uint64_t)n > l->r->left) {
		l->r->lib.archive_set_error(inner, EFBIG, "%s", TOO_MUCH);
		l->r->left = 0;
		return -1;
	}
	l->r->left -= (uint64_t)n;
	*to = l->block;
	return n;
}

static bool walk(struct reader *r, struct archive *a, size_t prefix, unsigned depth);

/* The member is an archive itself, of which the first HAVE bytes are in BLOCK. */
static bool take_nested(struct reader *r, struct archive *a, const uint8_t *block, ssize_t have,
			unsigned depth)
{
	char outer[ICF_PACKAGE];
	size_t n = strlen(r->m.name);
	struct level *l = malloc(sizeof *l);
	struct archive *inner = new_archive(&r->lib);
	bool go = true;
	if (n + 2 >= sizeof r->m.name)
		go = send_error(r, "is an archive with too long a name: not read");
	else if (!l || !inner)
		go = out_of_memory(r);
	else {
		*l = (struct level){ .r = r, .outer = a, .have = (size_t)have };
		memcpy(l->block, block, (size_t)have);
		if (r->lib.archive_read_open(inner, l, NULL, read_outer, NULL) != ARCHIVE_OK)
			go = cannot_open(r, inner, n + 1);
		else {
			memcpy(outer, r->m.package, sizeof outer);
			bool package = icf_package_of_file(r->m.name, r->m.package);
			memcpy(r->m.name + n, ":", 2);
			go = walk(r, inner, n + 1, depth + 1);
			r->m.name[n] = 0;
			if (package)
				memcpy(r->m.package, outer, sizeof outer);
		}
	}
	r->lib.archive_read_free(inner);
	free(l);
	return go;
}

/* The name of a member without what would lead out of the archive; nobody opens it. */
static void take_name(struct reader *r, struct archive_entry *e, size_t prefix)
{
	const char *name = r->lib.archive_entry_pathname(e);
	char number[64];
	if (!name) {
		/* Members that nobody could tell apart would be one file to a comparison. */
		snprintf(number, sizeof number, "(name %" PRIu32 " that is no text)",
			 ++r->nameless);
		name = number;
	}
	while (*name == '/' || (name[0] == '.' && name[1] == '/'))
		name++;
	snprintf(r->m.name + prefix, sizeof r->m.name - prefix, "%s", name);
}

/* WANTED: the member is a regular file. */
static bool take_member(struct reader *r, struct archive *a, bool wanted, unsigned depth)
{
	uint8_t *block = malloc(BLOCK);
	if (!block)
		return out_of_memory(r);
	ssize_t n = read_block(r, a, block);
	enum icf_product_kind kind =
		n > 0 && wanted ? icf_product_kind(block, (size_t)n) : ICF_KIND_OTHER;
	bool go = r->left != 0;
	if (kind == ICF_KIND_OTHER && n > 0 && wanted)
		icf_package_of_control(r->m.name, block, (size_t)n, r->m.package);
	if (kind == ICF_KIND_ELF)
		go = take_elf(r, a, block, &n);
	else if (icf_product_opens(kind, r->m.name)) {
		if (depth < MAX_DEPTH)
			go = take_nested(r, a, block, n, depth);
		else
			go = send_error(r, "archives in archives, too deep: not read");
	}
	/* What is left is read here and not skipped by libarchive, which knows no limit. */
	while (go && n > 0)
		n = read_block(r, a, block);
	free(block);
	return go && r->left;
}

/* The members of A, whose names follow the first PREFIX bytes of r->m.name. */
static bool walk(struct reader *r, struct archive *a, size_t prefix, unsigned depth)
{
	for (bool first = true;;) {
		struct archive_entry *e;
		int status = r->lib.archive_read_next_header(a, &e);
		r->m.name[prefix ? prefix - 1 : 0] = 0;
		if (status == ARCHIVE_EOF)
			break;
		if (status != ARCHIVE_OK && status != ARCHIVE_WARN) {
			return first ? cannot_open(r, a, prefix)
				     : send_error(r, r->lib.archive_error_string(a));
		}
		first = false;
		if (prefix)
			r->m.name[prefix - 1] = ':';
		if (++r->members > MAX_MEMBERS)
			return send_error(r, "too many members: not read further") && false;
		take_name(r, e, prefix);
		/* Of hard links one has the data: in cpio, and so in RPM, the last one. */
		if (!take_member(r, a, r->lib.archive_entry_filetype(e) == AE_IFREG, depth))
			return false;
	}
	return true;
}

/* Is there another archive in FD from *AT on, behind zeros?  *AT: where it begins. */
static bool find_next(int fd, off_t *at)
{
	uint8_t head[512]; /* as much as tells what it is */
	for (;;) {
		ssize_t n = pread(fd, head, sizeof head, *at), zeros = 0;
		while (zeros < n && !head[zeros])
			zeros++;
		if (n <= 0)
			return false;
		if (!zeros)
			return icf_product_kind(head, (size_t)n) >= ICF_KIND_ARCHIVE;
		*at += zeros;
	}
}

/* Reads the archive in FD.  Several that follow each other are an initramfs: cpio, of which the
 * last one may be compressed. */
static void read_all(struct reader *r, int fd)
{
	const struct icf_libarchive *lib = &r->lib;
	bool more = true;
	off_t at = 0;
	for (unsigned n = 0; more && n < MAX_PARTS; n++) {
		struct archive *a = new_archive(lib);
		if (!a || lseek(fd, at, SEEK_SET) < 0)
			_exit(1);
		if (lib->archive_read_open_fd(a, fd, BLOCK) != ARCHIVE_OK) {
			cannot_open(r, a, 0);
			return;
		}
		more = walk(r, a, 0, 0) &&
		       (lib->archive_format(a) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_CPIO &&
		       lib->archive_filter_count(a) == 1;
		at += lib->archive_filter_bytes(a, 0);
		more = more && find_next(fd, &at);
		lib->archive_read_free(a);
	}
}

static void read_archive(const char *path, int socket, uint64_t memory)
{
	/* Names that an archive says to be UTF-8 are lost where the characters of the locale are
	 * those of ASCII.  Whatever the user's locale is, the names are the same. */
	setlocale(LC_CTYPE, "C.UTF-8");
	struct reader *r = calloc(1, sizeof *r);
	bool there = r && open_library(&r->lib);
	int fd = elfrw_open_regular(path);
	struct stat st;
	if (!r)
		_exit(1);
	r->socket = socket;
	r->largest = memory;
	r->m.fd = -1;
	if (!there)
		send_error(r, "archives need libarchive.so.13, which is not installed");
	else if (fd < 0 || fstat(fd, &st) != 0)
		send_error(r, strerror(errno));
	else {
		r->left = SPARE + RATIO * (uint64_t)st.st_size;
		icf_package_of_file(path, r->m.package);
		read_all(r, fd);
	}
	/* An empty message is the end: without it the process was ended. */
	r->m = (struct icf_archive_member){ .fd = -1 };
	send_member(r);
	_exit(0);
}

/* ---- the other side ---- */

struct elfrw_err *icf_archive_start(struct icf_archive *a, const char *path, uint64_t memory)
{
	int pair[2], small = 4096;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) != 0)
		return elfrw_error_errno(errno, "cannot read the archive");
	setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
	fflush(NULL);
	a->pid = fork();
	if (a->pid == 0) {
		struct rlimit limit = { memory / 2, memory / 2 };
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		close(pair[0]);
		if (!ELFRW_SANITIZED) /* takes more, for itself */
			setrlimit(RLIMIT_DATA, &limit);
		read_archive(path, pair[1], memory);
	}
	int e = errno;
	close(pair[1]);
	a->socket = pair[0];
	if (a->pid > 0)
		return NULL;
	close(pair[0]);
	return elfrw_error_errno(e, "cannot read the archive");
}

bool icf_archive_next(struct icf_archive *a, struct icf_archive_member *m)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec io = { m, sizeof *m };
	struct msghdr msg = { .msg_iov = &io,
			      .msg_iovlen = 1,
			      .msg_control = &control,
			      .msg_controllen = sizeof control };
	ssize_t n;
	do
		n = recvmsg(a->socket, &msg, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	m->fd = -1;
	if (n != (ssize_t)sizeof *m) {
		*m = (struct icf_archive_member){ .fd = -1 };
		snprintf(m->error, sizeof m->error, "the reading of the archive ended early");
		icf_archive_stop(a);
		return true;
	}
	struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&m->fd, CMSG_DATA(c), sizeof(int));
	m->name[sizeof m->name - 1] = m->error[sizeof m->error - 1] = 0;
	m->package[sizeof m->package - 1] = 0;
	return m->fd >= 0 || m->error[0];
}

void icf_archive_stop(struct icf_archive *a)
{
	if (a->pid <= 0)
		return;
	close(a->socket);
	kill(a->pid, SIGKILL);
	while (waitpid(a->pid, NULL, 0) < 0 && errno == EINTR)
		;
	a->pid = 0;
	a->socket = -1;
}
