/* process.c: see process.h.
 *
 * Input files are mapped, not read: reading llc into memory would cost a tenth of its folding time
 * and half of its memory again.  The price is SIGBUS if somebody truncates the file meanwhile.  The
 * handler needs no state: the kernel gives the address, and /proc/self/maps the file mapped there,
 * even one that a library mapped.  While a mapping is read there is no temporary name
 * (elfrw/base/newfile.h), so there is nothing to remove.  The handler uses only async-signal-safe
 * calls. */
#include "elfrw/arch/host.h"
#include "icf/cmd/process.h"
#include "elfrw/base/heap.h"
#include "elfrw/base/printable.h"
#include "icf/cmd/cmdline.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* One line of /proc/self/maps: "START-END PERMS OFFSET DEV INODE   PATH". */
struct maps_line {
	char text[4600]; /* a path has at most 4095 bytes */
	size_t n;
};

static uint64_t hex(const char **p)
{
	uint64_t v = 0;
	for (;; (*p)++) {
		char c = **p;
		int d = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
		if (d < 0)
			return v;
		v = v << 4 | (uint64_t)d;
	}
}

/* The code of this program, or of the libraries that read debug information. */
struct code {
	uint64_t from, to;
	bool theirs;
};
#define MAX_CODE    16
#define STACK_WORDS 4096

static size_t read_maps(struct code ret[MAX_CODE], uint64_t *stack_end, uint64_t sp)
{
	struct maps_line line = { .n = 0 };
	char buf[1024];
	size_t n_code = 0;
	uint64_t own = (uint64_t)(uintptr_t)&icf_process_libdw;
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	*stack_end = sp;
	if (fd < 0)
		return 0;
	for (ssize_t n; (n = read(fd, buf, sizeof buf)) > 0;)
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] != '\n') {
				if (line.n < sizeof line.text - 1)
					line.text[line.n++] = buf[i];
				continue;
			}
			line.text[line.n] = 0;
			line.n = 0;
			const char *p = line.text, *file = strchr(p, '/'),
				   *base = file ? strrchr(file, '/') + 1 : "";
			struct code c = { .from = hex(&p) };
			c.to = *p++ == '-' ? hex(&p) : 0;
			if (sp >= c.from && sp < c.to)
				*stack_end = c.to;
			c.theirs =
				strncmp(base, "libdw", 5) == 0 || strncmp(base, "libelf", 6) == 0;
			if (strncmp(p, " r-xp", 5) == 0 && n_code < MAX_CODE &&
			    (c.theirs || (own >= c.from && own < c.to)))
				ret[n_code++] = c;
		}
	close(fd);
	return n_code;
}

/* Was libdw or libelf at work where the thread stopped?  They call the C library, so the PC alone
 * does not tell.  Nearly always, the first word of the stack that is an address in their code or
 * ours does. */
static bool in_libdw(const ucontext_t *u)
{
	struct code code[MAX_CODE];
	uint64_t at, sp, end;
	elfrw_host_stopped(u, &at, &sp);
	size_t n = read_maps(code, &end, sp);
	for (size_t i = 0; i <= STACK_WORDS && n; i++) {
		for (size_t k = 0; k < n; k++)
			if (at >= code[k].from && at < code[k].to)
				return code[k].theirs;
		if ((sp & 7) || end - sp < 8)
			return false;
		memcpy(&at, (const void *)(uintptr_t)sp, sizeof at);
		sp += 8;
	}
	return false;
}

/* A signal handler has no memory to spell out characters that affect a terminal. */
static void make_plain(char *s, size_t n)
{
	unsigned code;
	for (size_t at = 0, len; at < n; at += len) {
		len = elfrw_plain_bytes(s + at, n - at, &code);
		if (!len) {
			s[at] = '?';
			len = 1;
		}
	}
}

/* The command's arguments, since the handler does not know which of the files it is. */
static size_t command_line(char *buf, size_t size)
{
	int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, buf, size);
	if (fd >= 0)
		close(fd);
	while (n > 0 && !buf[n - 1])
		n--;
	if (n <= 0)
		return 0;
	for (ssize_t i = 0; i < n; i++)
		if (!buf[i])
			buf[i] = ' ';
	make_plain(buf, (size_t)n);
	return (size_t)n;
}

static void on_crash(int sig, siginfo_t *info, void *context)
{
	(void)info;
	bool no_memory = errno == ENOMEM;
	char args[4096];
	if (!in_libdw(context)) {
		/* A fault of the program itself: act as without a handler. */
		signal(sig, SIG_DFL);
		raise(sig);
		return;
	}
	static const char memory[] = "icfold: out of memory\n",
			  broken[] =
				  "icfold: libdw cannot read the debug information, and crashed: ";
	struct iovec v[] = {
		{ no_memory ? (char *)memory : (char *)broken,
		  no_memory ? sizeof memory - 1 : sizeof broken - 1 },
		{ args, no_memory ? 0 : command_line(args, sizeof args) },
		{ (char *)"\n", no_memory ? 0 : 1 },
	};
	ssize_t written = writev(STDERR_FILENO, v, 3);
	(void)written;
	_exit(ICF_EXIT_TROUBLE);
}

static bool covers(const char *line, uint64_t at)
{
	uint64_t from = hex(&line);
	if (*line++ != '-')
		return false;
	return at >= from && at < hex(&line);
}

/* The path of the file that is mapped at AT, in LINE; NULL: none. */
static char *mapped_file(uint64_t at, struct maps_line *line)
{
	char buf[1024];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	char *found = NULL;
	line->n = 0;
	for (ssize_t n; !found && (n = read(fd, buf, sizeof buf)) > 0;)
		for (ssize_t i = 0; i < n && !found; i++) {
			if (buf[i] != '\n') {
				if (line->n < sizeof line->text - 1)
					line->text[line->n++] = buf[i];
				continue;
			}
			line->text[line->n] = 0;
			line->n = 0;
			if (covers(line->text, at))
				found = strchr(line->text, '/');
		}
	close(fd);
	return found;
}

static void say(char *file)
{
	make_plain(file, strlen(file));
	static const char tail[] = ": was truncated while it was read\n";
	struct iovec v[] = {
		{ (char *)"icfold: ", 8 },
		{ file, strlen(file) },
		{ (char *)tail, sizeof tail - 1 },
	};
	if (writev(STDERR_FILENO, v, 3) < 0)
		return;
}

static void on_sigbus(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	struct maps_line line;
	char *file = info->si_code == BUS_ADRERR
			     ? mapped_file((uint64_t)(uintptr_t)info->si_addr, &line)
			     : NULL;
	if (!file) {
		/* A fault of the program itself: act as without a handler. */
		signal(SIGBUS, SIG_DFL);
		return;
	}
	say(file);
	_exit(ICF_EXIT_TROUBLE);
}

void icf_process_init(void)
{
	for (int fd = 0; fd <= 2; fd++)
		/* Opened with the wrong access mode, so that using the descriptor still fails. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			break;
	struct sigaction act = { .sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO };
	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, &act, NULL);
	elfrw_heap_init();
}

void icf_process_libdw(void)
{
	static const int signals[] = { SIGABRT, SIGSEGV, SIGFPE };
	struct sigaction act = { .sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_NODEFER };
	sigemptyset(&act.sa_mask);
	for (size_t i = 0; i < sizeof signals / sizeof *signals && !ELFRW_SANITIZED; i++)
		sigaction(signals[i], &act, NULL);
}
