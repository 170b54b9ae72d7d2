/* wrap.c: icfold --linker-wrapper [OPTION]... -- LINKER ARGUMENT...: links, then folds the result.
 *
 * The wrapper is for builds that cannot be changed except for the place of their linker.  Such a
 * build must never get worse.  If anything goes wrong because of icfold, the linker runs once more
 * with the original arguments, and its exit status and messages become ours.  So the messages of
 * the first run, with --emit-relocs added, are held back until that run has succeeded.  If nothing
 * was linked, nothing is folded: after -r, --version and the like the output file is old.
 *
 * Cost: the link, the folding, no copy of the file; a second link if the program is refused. */
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/cli/link_args.h"
#include "icf/cli/options.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Set while the linker runs: the number of wrappers above it. */
#define DEPTH_VARIABLE "ICFOLD_LINKER_WRAPPER_DEPTH"
#define MAX_DEPTH      8

static const char usage[] =
	"Usage: icfold --linker-wrapper [OPTION]... -- LINKER ARGUMENT...\n"
	"Run LINKER, a linker or a compiler that links, and fold what it has linked.\n"
	"LINKER runs with --emit-relocs added. A program that icfold refuses is linked again\n"
	"without it, and a warning is printed.\n"
	"\n"
	"      --fatal-warnings       fail instead, and leave no program\n"
	"      --no-warnings          do not print warnings\n"
	"  -h, --help                 print this help\n"
	"\n"
	"Further options are those of icfold (see icfold --help), but for the files' names.\n";

struct wrap {
	bool fatal, silent;
	struct icf_options opt;
	struct icf_link link;
	int argc; /* the linker's command */
	char **argv;
	int fd[2]; /* the linker's standard output and standard error; both may be the same */
};

static int fail(const char *file, const char *what)
{
	icf_message(file, "%s", what);
	return 1;
}

/* Runs the original program in place of this process. */
static int become(char **argv)
{
	execvp(argv[0], argv);
	int e = errno;
	icf_message(argv[0], "cannot run: %s", strerror(e));
	return e == ENOENT ? 127 : 126;
}

static bool same_file(int a, int b)
{
	struct stat s, t;
	return fstat(a, &s) == 0 && fstat(b, &t) == 0 && s.st_dev == t.st_dev &&
	       s.st_ino == t.st_ino;
}

static void replay(int from, int to)
{
	char buf[65536];
	lseek(from, 0, SEEK_SET);
	for (ssize_t n; (n = read(from, buf, sizeof buf)) > 0;)
		for (ssize_t at = 0, w; at < n; at += w)
			if ((w = write(to, buf + at, (size_t)(n - at))) <= 0)
				return;
}

/* Runs the edited command with its output held back.  Returns its wait status; -1: it could not be
 * run. */
static int run_held_back(struct wrap *w)
{
	w->fd[0] = memfd_create("icfold-stdout", MFD_CLOEXEC);
	w->fd[1] = same_file(STDOUT_FILENO, STDERR_FILENO)
			   ? w->fd[0]
			   : memfd_create("icfold-stderr", MFD_CLOEXEC);
	if (w->fd[0] < 0 || w->fd[1] < 0)
		return -1;
	/* Two descriptors may write to the same file in turn. */
	fcntl(w->fd[0], F_SETFL, O_APPEND);
	fcntl(w->fd[1], F_SETFL, O_APPEND);
	pid_t pid = fork();
	if (pid < 0)
		return -1;
	if (pid == 0) {
		if (dup2(w->fd[0], STDOUT_FILENO) >= 0 && dup2(w->fd[1], STDERR_FILENO) >= 0)
			execvp(w->link.edit.v[0], (char **)w->link.edit.v);
		_exit(127);
	}
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return status;
}

/* Did somebody end this build?  A linker that crashes does not count. */
static bool was_stopped(int status)
{
	if (!WIFSIGNALED(status))
		return false;
	switch (WTERMSIG(status)) {
	case SIGINT:
	case SIGTERM:
	case SIGHUP:
	case SIGQUIT:
	case SIGKILL:
	case SIGPIPE:
	case SIGXCPU: return true;
	}
	return false;
}

struct stamp {
	bool is_file;
	ino_t ino;
	off_t size;
	struct timespec changed;
};

static struct stamp stamp_of(const char *path)
{
	struct stat st;
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode))
		return (struct stamp){ 0 };
	return (struct stamp){ true, st.st_ino, st.st_size, st.st_ctim };
}

/* An ELF program or library? */
static bool is_linked(const char *path)
{
	Elf64_Ehdr h;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	bool good = read(fd, &h, sizeof h) == (ssize_t)sizeof h &&
		    memcmp(h.e_ident, ELFMAG, SELFMAG) == 0 &&
		    (h.e_type == ET_EXEC || h.e_type == ET_DYN);
	close(fd);
	return good;
}

/* The program cannot be folded: links again with the original arguments. */
static int without_folding(const struct wrap *w, const char *why)
{
	const char *out = w->link.output;
	if (w->fatal) {
		unlink(out);
		return fail(out, why);
	}
	if (!w->silent)
		icf_message(NULL, "warning: %s: %s; linked without folding", out, why);
	return become(w->argv);
}

static int link_and_fold(struct wrap *w)
{
	const char *out = w->link.output;
	struct stamp before = stamp_of(out);
	int status = run_held_back(w);
	if (was_stopped(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		raise(WTERMSIG(status));
		return 128 + WTERMSIG(status);
	}
	if (status == 0) {
		replay(w->fd[0], STDOUT_FILENO);
		if (w->fd[1] != w->fd[0])
			replay(w->fd[1], STDERR_FILENO);
	} else if (w->link.emit_relocs && !w->link.strip_all) {
		/* The first run was already the original command. */
		return become(w->argv);
	} else {
		/* Either the command is wrong, and will say so again, or the linker cannot do what
		 * was added. */
		pid_t pid = fork();
		if (pid < 0)
			return fail(NULL, "cannot start a process");
		if (pid == 0)
			_exit(become(w->argv));
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (status == 0 && w->fatal) {
			unlink(out);
			return fail(out, "the linker fails with --emit-relocs");
		}
		if (status == 0 && !w->silent)
			icf_message(
				NULL,
				"warning: %s: the linker fails with --emit-relocs; linked without folding",
				out);
		return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	struct stamp after = stamp_of(out);
	if (!after.is_file ||
	    (before.is_file && before.ino == after.ino && before.size == after.size &&
	     before.changed.tv_sec == after.changed.tv_sec &&
	     before.changed.tv_nsec == after.changed.tv_nsec))
		return 0;
	if (!is_linked(out))
		return 0;
	struct elfrw_err *refusal = NULL;
	int rc = icf_fold_file(&w->opt, &refusal);
	if (refusal) {
		rc = without_folding(w, elfrw_err_text(refusal));
		elfrw_err_free(refusal);
	} else if (rc != 0)
		unlink(out);
	return rc;
}

/* The options for folding, with the output as both files. */
static struct elfrw_err *fold_options(struct wrap *w, char **own, int n, char *file)
{
	char **v = calloc((size_t)n + 4, sizeof *v);
	if (!v)
		return &elfrw_err_nomem;
	int k = 4;
	v[0] = "icfold";
	v[1] = "-o";
	v[2] = v[3] = file;
	for (int i = 0; i < n; i++)
		if (strcmp(own[i], "--fatal-warnings") == 0)
			w->fatal = true;
		else if (strcmp(own[i], "--no-warnings") == 0)
			w->silent = true;
		else
			v[k++] = own[i];
	struct elfrw_err *err = icf_options_parse(&w->opt, k, v);
	free(v);
	if (!err && strcmp(w->opt.input, w->opt.output) != 0) {
		w->opt.misused = true;
		err = elfrw_error("-o is the linker's business");
	}
	if (err)
		return err;
	w->opt.emit_relocs |= w->link.emit_relocs && !w->link.strip_all;
	w->opt.strip_all |= w->link.strip_all;
	w->opt.strip_debug |= w->opt.strip_all;
	if (w->opt.strip_all)
		w->opt.emit_relocs = false;
	return NULL;
}

/* Counts the depth; true if the linker that we call is again ourselves. */
static bool too_deep(int *depth)
{
	const char *v = getenv(DEPTH_VARIABLE);
	char text[16];
	uint64_t n;
	*depth = !v || *v < '0' || *v > '9' ? 0 : icf_number(v, MAX_DEPTH, &n) ? (int)n : MAX_DEPTH;
	snprintf(text, sizeof text, "%d", *depth + 1);
	setenv(DEPTH_VARIABLE, text, 1);
	return *depth >= MAX_DEPTH;
}

/* The linker may still read an argument that cannot be read here, such as a response file that is a
 * pipe. */
static int unreadable(const struct wrap *w, const char *why)
{
	if (w->fatal)
		return fail(NULL, why);
	if (!w->silent)
		icf_message(NULL, "warning: %s; linked without folding", why);
	return become(w->argv);
}

int icf_cmd_wrap(int argc, char **argv)
{
	int split = 1, depth;
	while (split < argc && strcmp(argv[split], "--") != 0) {
		if (strcmp(argv[split], "--help") == 0 || strcmp(argv[split], "-h") == 0) {
			return icf_print_help(usage);
		}
		split++;
	}
	if (split + 1 >= argc)
		return icf_usage_error("--linker-wrapper",
				       "expected -- and the linker's command behind it");
	struct wrap w = { .argc = argc - split - 1, .argv = argv + split + 1 };
	if (too_deep(&depth))
		return fail(w.argv[0],
			    "is icfold again, not a linker: give the linker's full path");
	struct elfrw_err *unread = icf_link_read(&w.link, w.argc, w.argv),
			 *err = unread == &elfrw_err_nomem ? unread : NULL;
	char *file = NULL;
	if (!err &&
	    asprintf(&file, "%s%s", w.link.output[0] == '@' || w.link.output[0] == '-' ? "./" : "",
		     w.link.output) < 0)
		err = &elfrw_err_nomem;
	if (!err)
		err = fold_options(&w, argv + 1, split - 1, file);
	int rc;
	/* Below another wrapper the outer one folds. */
	if (!err && depth > 0)
		rc = become(w.argv);
	else if (!err && unread)
		rc = unreadable(&w, elfrw_err_text(unread));
	else if (!err && w.link.plain)
		rc = become(w.argv);
	else {
		if (!err)
			err = icf_link_edit(&w.link, w.argc, w.argv);
		if (w.opt.misused)
			rc = icf_usage_error("--linker-wrapper", "%s", elfrw_err_text(err));
		else
			rc = err ? fail(NULL, elfrw_err_text(err)) : link_and_fold(&w);
	}
	elfrw_err_free(err);
	elfrw_err_free(unread);
	icf_options_deinit(&w.opt);
	icf_link_deinit(&w.link);
	free(file);
	return rc;
}
