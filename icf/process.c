/* process.c: see process.h.
 *
 * Input files are mapped, not read: reading llc into memory costs a tenth of its folding and half of its memory again.  The price
 * is SIGBUS when somebody cuts the file meanwhile.  The handler needs no state: the kernel tells the address, and /proc/self/maps
 * the file that is mapped there, also one that a library mapped.  No temporary name exists while a mapping is read through
 * (newfile.h), so that there is nothing to remove.  Only calls that are safe in a handler are used. */
#include "icf/process.h"
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>
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

static bool covers(const char *line, uint64_t at)
{
	uint64_t from = hex(&line);
	if (*line++ != '-')
		return false;
	return at >= from && at < hex(&line);
}

/* The path of the file that is mapped at AT, in LINE; NULL: none. */
static const char *mapped_file(uint64_t at, struct maps_line *line)
{
	char buf[1024];
	int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	const char *found = NULL;
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

static void say(const char *file)
{
	static const char tail[] = ": was truncated while it was read\n";
	struct iovec v[] = {
		{ (char *)"icfold: ", 8 },
		{ (char *)file, strlen(file) },
		{ (char *)tail, sizeof tail - 1 },
	};
	if (writev(STDERR_FILENO, v, 3) < 0)
		return;
}

static void on_sigbus(const siginfo_t *info, int status)
{
	struct maps_line line;
	const char *file = info->si_code == BUS_ADRERR ? mapped_file((uint64_t)(uintptr_t)info->si_addr, &line) : NULL;
	if (!file) {
		/* A fault of the program: as without a handler. */
		signal(SIGBUS, SIG_DFL);
		return;
	}
	say(file);
	_exit(status);
}

static void exit_with_1(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	on_sigbus(info, 1);
}

static void exit_with_2(int sig, siginfo_t *info, void *context)
{
	(void)sig;
	(void)context;
	on_sigbus(info, 2);
}

void icf_process_init(int status)
{
	for (int fd = 0; fd <= 2; fd++)
		/* Opened the wrong way round, so that using it still fails. */
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_RDONLY : O_WRONLY) < 0)
			break;
	struct sigaction act = { .sa_sigaction = status == 2 ? exit_with_2 : exit_with_1, .sa_flags = SA_SIGINFO };
	sigemptyset(&act.sa_mask);
	sigaction(SIGBUS, &act, NULL);
}
