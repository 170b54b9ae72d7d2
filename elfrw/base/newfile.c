/* newfile.c: see newfile.h. */
#include "elfrw/base/newfile.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

/* Small enough that a waiting signal is seen soon on slow file systems. */
#define CHUNK (16u << 20)

/* Signals that end a process and can be blocked.  Faults of the process itself cannot be blocked.
 * SIGQUIT is not blocked: it asks for a core dump now. */
static const int ending[] = { SIGHUP,  SIGINT,  SIGTERM, SIGPIPE, SIGALRM, SIGVTALRM,
			      SIGPROF, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ };

static void ending_set(sigset_t *set)
{
	sigemptyset(set);
	for (size_t i = 0; i < sizeof ending / sizeof *ending; i++) {
		struct sigaction now;
		/* An ignored signal that is blocked would become pending. */
		if (sigaction(ending[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaddset(set, ending[i]);
	}
}

static void hold(struct elfrw_newfile *f)
{
	sigset_t set;
	ending_set(&set);
	f->held = pthread_sigmask(SIG_BLOCK, &set, &f->mask) == 0;
}

void elfrw_newfile_hold(struct elfrw_newfile *f, sigset_t *mask)
{
	if (!f->held)
		hold(f);
	*mask = f->mask;
	f->held = false;
}

void elfrw_newfile_release(const sigset_t *mask)
{
	pthread_sigmask(SIG_SETMASK, mask, NULL);
}

/* Delivers pending signals, unless a file begun earlier holds them too. */
static void release(struct elfrw_newfile *f)
{
	if (f->held)
		elfrw_newfile_release(&f->mask);
	f->held = false;
}

bool elfrw_newfile_interrupted(const struct elfrw_newfile *f)
{
	sigset_t want, waiting;
	if (!f->held || sigpending(&waiting) != 0)
		return false;
	ending_set(&want);
	sigandset(&want, &want, &waiting);
	return !sigisemptyset(&want);
}

/* The folder of PATH; owned by the caller. */
static char *dir_name(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? strndup(path, slash == path ? 1 : (size_t)(slash - path)) : strdup(".");
}

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? slash + 1 : path;
}

bool elfrw_newfile_same_place(const char *a, const char *b)
{
	struct stat x, y;
	bool a_there = stat(a, &x) == 0, b_there = stat(b, &y) == 0;
	if (a_there && b_there)
		return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
	if (!strcmp(a, b))
		return true;
	if (a_there || b_there || strcmp(last_part(a), last_part(b)) != 0)
		return false;
	char *dir_a = dir_name(a), *dir_b = dir_name(b);
	bool same = dir_a && dir_b && stat(dir_a, &x) == 0 && stat(dir_b, &y) == 0 &&
		    x.st_dev == y.st_dev && x.st_ino == y.st_ino;
	free(dir_a);
	free(dir_b);
	return same;
}

/* "DIR/.NAME.icfold-PID-TRY".  NAME is cut so that the result is a valid name wherever NAME is.
 * NULL: out of memory. */
static char *temp_name(const char *path, unsigned try)
{
	const char *slash = strrchr(path, '/');
	int dir = slash ? (int)(slash - path + 1) : 0;
	char *name;
	if (asprintf(&name, "%.*s.%.200s.icfold-%ld-%u", dir, path, path + dir, (long)getpid(),
		     try) < 0)
		return NULL;
	return name;
}

/* Does PATH lead to a link of /proc to an open descriptor, as /dev/stdout does?  Renaming would
 * replace a link that is not ours. */
static bool is_descriptor(const char *path)
{
	char at[PATH_MAX], to[PATH_MAX],
		dir[PATH_MAX]; /* no allocation here: without memory, the answer must be right */
	if (snprintf(at, sizeof at, "%s", path) >= (int)sizeof at)
		return false;
	for (int depth = 0; depth < 40; depth++) {
		struct stat st;
		struct statfs fs;
		if (lstat(at, &st) != 0 || !S_ISLNK(st.st_mode))
			return false;
		const char *slash = strrchr(at, '/');
		size_t len = slash ? (size_t)(slash - at + 1) : 0;
		memcpy(dir, len ? at : "./", len ? len : 2);
		dir[len ? len : 2] = 0;
		if (statfs(dir, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC)
			return true;
		ssize_t n = readlink(at, to, sizeof to - 1);
		if (n <= 0)
			return false;
		to[n] = 0;
		size_t keep = to[0] == '/' ? 0 : len;
		if (keep + (size_t)n >= sizeof at)
			return false;
		memcpy(at + keep, to, (size_t)n + 1);
	}
	return false;
}

/* Writes to our own descriptor at its current offset, so that `>>file` appends. */
static int open_stream(const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;
	char *end;
	long n = strcmp(name, "stdout") == 0   ? 1
		 : strcmp(name, "stderr") == 0 ? 2
					       : strtol(name, &end, 10);
	struct stat named, ours;
	if (n > 0 && n < 1 << 20 && stat(path, &named) == 0 && fstat((int)n, &ours) == 0 &&
	    named.st_dev == ours.st_dev && named.st_ino == ours.st_ino &&
	    named.st_rdev == ours.st_rdev)
		return fcntl((int)n, F_DUPFD_CLOEXEC, 3);
	return open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
}

static struct elfrw_err *begin_stream(struct elfrw_newfile *f, bool descriptor)
{
	struct stat st;
	int fd = descriptor ? open_stream(f->path) : open(f->path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return elfrw_error_errno(errno, "cannot open");
	if (!descriptor && fstat(fd, &st) == 0 && S_ISCHR(st.st_mode) &&
	    lseek(fd, 0, SEEK_CUR) == 0) {
		f->fd = fd;
		f->in_place = f->open = true;
		return NULL;
	}
	f->fd = memfd_create("icfold", MFD_CLOEXEC);
	if (f->fd < 0) {
		struct elfrw_err *err = elfrw_error_errno(errno, "cannot create a file in memory");
		close(fd);
		return err;
	}
	f->stream = fd;
	f->open = true;
	return NULL;
}

static struct elfrw_err *begin_named(struct elfrw_newfile *f, mode_t mode)
{
	hold(f);
	for (unsigned try = 0; try < 100; try++) {
		f->temp = temp_name(f->path, try);
		if (!f->temp) {
			release(f);
			return &elfrw_err_nomem;
		}
		f->fd = open(f->temp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, mode);
		if (f->fd >= 0) {
			f->open = true;
			return NULL;
		}
		int e = errno;
		free(f->temp);
		f->temp = NULL;
		if (e != EEXIST) {
			release(f);
			return elfrw_error_errno(e, "cannot create");
		}
	}
	release(f);
	return elfrw_error("cannot create: too many temporary files");
}

struct elfrw_err *elfrw_newfile_begin(struct elfrw_newfile *f, const char *path, mode_t mode)
{
	struct stat st;
	*f = (struct elfrw_newfile){ .path = path, .fd = -1, .stream = -1 };
	bool there = stat(path, &st) == 0;
	if (there && S_ISDIR(st.st_mode))
		return elfrw_error("is a directory");
	/* A closed descriptor counts, too: its link exists. */
	bool descriptor = is_descriptor(path);
	if (descriptor || (there && !S_ISREG(st.st_mode)))
		return begin_stream(f, descriptor);
	char *dir = dir_name(path);
	if (!dir)
		return &elfrw_err_nomem;
	/* Without /proc the file could not get a name later. */
	f->fd = access("/proc/self/fd", X_OK) == 0 ? open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, mode)
						   : -1;
	free(dir);
	f->open = f->fd >= 0;
	return f->open ? NULL : begin_named(f, mode);
}

struct elfrw_err *elfrw_newfile_write(const struct elfrw_newfile *f, const void *data,
				      uint64_t size, uint64_t off)
{
	const char *p = data;
	while (size) {
		if (elfrw_newfile_interrupted(f))
			return elfrw_error("interrupted");
		ssize_t n = pwrite(f->fd, p, size > CHUNK ? CHUNK : size, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return elfrw_error_errno(n < 0 ? errno : ENOSPC, "cannot write");
		p += n;
		off += (uint64_t)n;
		size -= (uint64_t)n;
	}
	return NULL;
}

/* Reads N bytes at AT, or fewer at the end of the file; -1: error. */
static ssize_t read_at(int fd, char *buf, size_t n, off_t at)
{
	size_t done = 0;
	while (done < n) {
		ssize_t k = pread(fd, buf + done, n - done, at + (off_t)done);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return -1;
		if (k == 0)
			break;
		done += (size_t)k;
	}
	return (ssize_t)done;
}

#define COMPARE (1u << 18)

bool elfrw_newfile_is_same(const struct elfrw_newfile *f)
{
	struct stat a, b;
	if (f->stream >= 0 || f->in_place)
		return false;
	int old = open(f->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (old < 0)
		return false;
	/* Reads instead of mapping: the older file may shrink meanwhile. */
	char *buf = malloc(2 * (size_t)COMPARE);
	bool same = buf && fstat(f->fd, &a) == 0 && fstat(old, &b) == 0 && a.st_size == b.st_size &&
		    a.st_mode == b.st_mode;
	for (off_t at = 0; same && at <= a.st_size; at += COMPARE) {
		ssize_t n = read_at(f->fd, buf, COMPARE, at);
		same = n >= 0 && read_at(old, buf + COMPARE, COMPARE, at) == n &&
		       memcmp(buf, buf + COMPARE, (size_t)n) == 0;
	}
	free(buf);
	close(old);
	return same;
}

/* Copies the whole file FROM to the current offset of TO. */
static struct elfrw_err *copy_all(int from, int to)
{
	char *buf = malloc(1 << 20);
	if (!buf)
		return &elfrw_err_nomem;
	struct elfrw_err *err = NULL;
	off_t at = 0;
	while (!err) {
		ssize_t n = read_at(from, buf, 1 << 20, at);
		if (n < 0)
			err = elfrw_error_errno(errno, "cannot read back");
		if (n <= 0)
			break;
		at += n;
		for (ssize_t done = 0; done < n && !err;) {
			ssize_t k = write(to, buf + done, (size_t)(n - done));
			if (k > 0)
				done += k;
			else if (k == 0 || errno != EINTR)
				err = elfrw_error_errno(k ? errno : ENOSPC, "cannot write");
		}
	}
	free(buf);
	return err;
}

/* The unnamed file cannot get a name: replaces it by a named file with its contents. */
static struct elfrw_err *make_named(struct elfrw_newfile *f)
{
	struct stat st;
	int from = f->fd;
	release(f);
	f->open = false;
	/* A process that ends here must leave neither a set-uid file of the wrong owner nor a file
	 * that too many can read. */
	struct elfrw_err *err = fstat(from, &st) == 0 ? begin_named(f, 0600)
						      : elfrw_error_errno(errno, "cannot stat");
	if (!err)
		err = copy_all(from, f->fd);
	/* Keeps what is possible here: the owner, and a mode without the umask applied. */
	if (!err) {
		mode_t mode = st.st_mode & 07777;
		if (fchown(f->fd, st.st_uid, st.st_gid) != 0)
			mode &= 0777;
		/* File systems without modes of their own may refuse.  The mode that they report is
		 * then right. */
		if (fchmod(f->fd, mode) != 0 &&
		    (fstat(f->fd, &st) != 0 || mode & ~st.st_mode & S_IRWXU))
			err = elfrw_error_errno(errno, "cannot set the mode");
	}
	close(from);
	return err;
}

/* Gives the unnamed file a name: PATH if there is none yet, else a temporary one. */
static struct elfrw_err *link_file(struct elfrw_newfile *f, bool *in_place)
{
	char proc[64];
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", f->fd);
	*in_place = linkat(AT_FDCWD, proc, AT_FDCWD, f->path, AT_SYMLINK_FOLLOW) == 0;
	if (*in_place)
		return NULL;
	if (errno != EEXIST)
		return make_named(f);
	for (unsigned try = 0; try < 100; try++) {
		f->temp = temp_name(f->path, try);
		if (!f->temp)
			return &elfrw_err_nomem;
		if (linkat(AT_FDCWD, proc, AT_FDCWD, f->temp, AT_SYMLINK_FOLLOW) == 0)
			return NULL;
		int e = errno;
		free(f->temp);
		f->temp = NULL;
		if (e != EEXIST)
			return make_named(f);
	}
	return elfrw_error("cannot create: too many temporary files");
}

void elfrw_newfile_hide(struct elfrw_newfile *f)
{
	/* Without /proc the file could not be opened again. */
	if (!f->temp || access("/proc/self/fd", X_OK) != 0 || unlink(f->temp) != 0)
		return;
	free(f->temp);
	f->temp = NULL;
	release(f);
}

/* Renames the file.  An older one is exchanged with it, and removed then: renaming over a file has
 * some file systems (ext4) write all of the new one first, which takes as long as folding does.
 * What other processes see is the same. */
static bool put_in_place(struct elfrw_newfile *f)
{
	struct stat st;
	if (lstat(f->path, &st) == 0 && S_ISREG(st.st_mode) &&
	    renameat2(AT_FDCWD, f->temp, AT_FDCWD, f->path, RENAME_EXCHANGE) == 0)
		return unlink(f->temp) == 0;
	return rename(f->temp, f->path) == 0;
}

struct elfrw_err *elfrw_newfile_commit(struct elfrw_newfile *f)
{
	struct elfrw_err *err = NULL;
	bool in_place = f->in_place;
	if (f->stream >= 0)
		err = copy_all(f->fd, f->stream);
	else if (!in_place && !f->temp) {
		hold(f);
		err = link_file(f, &in_place);
	}
	if (!err && elfrw_newfile_interrupted(f) && f->temp)
		err = elfrw_error("interrupted");
	/* Network file systems report a full disk only at close(). */
	if (f->open && close(f->fd) != 0 && !err)
		err = elfrw_error_errno(errno, "cannot write");
	f->open = false;
	if (f->stream >= 0 && close(f->stream) != 0 && !err)
		err = elfrw_error_errno(errno, "cannot write");
	f->stream = -1;
	if (!err && f->temp) {
		if (put_in_place(f)) {
			free(f->temp);
			f->temp = NULL;
		} else
			err = elfrw_error_errno(errno, "cannot replace");
	}
	elfrw_newfile_drop(f);
	return err;
}

void elfrw_newfile_drop(struct elfrw_newfile *f)
{
	if (f->open)
		close(f->fd);
	if (f->open && f->stream >= 0)
		close(f->stream);
	if (f->temp)
		unlink(f->temp);
	free(f->temp);
	release(f);
	*f = (struct elfrw_newfile){ .fd = -1, .stream = -1 };
}
