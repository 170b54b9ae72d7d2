/* process.c: a running process, stopped as a whole (PTRACE_SEIZE and PTRACE_INTERRUPT, which leave
 * no trace in it), so that registers, stacks and objects are consistent.  libdwfl then reads
 * threads that are already stopped. */
#include "icf/trace/state.h"
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_THREADS 65536

static bool traced(const struct icf_unwind *u, pid_t tid)
{
	for (size_t i = u->tracee.len; i-- > 0;)
		if (u->tracee.data[i].tid == tid)
			return true;
	return false;
}

/* Stops thread TID; *STOPPED false: it no longer exists, or refuses (then errno is in *WHY). */
static struct elfrw_err *stop(struct icf_unwind *u, pid_t tid, bool *stopped, int *why)
{
	*stopped = false;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
		*why = errno;
		return NULL;
	}
	struct tracee *t = VEC_PUSH(&u->tracee);
	if (!t) {
		ptrace(PTRACE_DETACH, tid, NULL, NULL);
		return &elfrw_err_nomem;
	}
	*t = (struct tracee){ .tid = tid };
	int status;
	ptrace(PTRACE_INTERRUPT, tid, NULL, NULL);
	while (waitpid(tid, &status, __WALL) < 0)
		if (errno != EINTR) {
			u->tracee.len--;
			return NULL;
		}
	if (!WIFSTOPPED(status)) {
		u->tracee.len--;
		return NULL;
	}
	if (status >> 16 ==
	    0) /* not our stop but an earlier signal, which the thread gets at the end */
		t->signal = WSTOPSIG(status);
	*stopped = true;
	return NULL;
}

/* Stops all threads, including those that are made meanwhile. */
static struct elfrw_err *freeze(struct icf_unwind *u, pid_t pid)
{
	char path[64];
	int why = 0;
	bool more = true;
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	while (more) {
		more = false;
		DIR *dir = opendir(path);
		if (!dir)
			return errno == ENOENT ? elfrw_error("no such process")
					       : elfrw_error_errno(errno, "cannot read %s", path);
		struct elfrw_err *err = NULL;
		for (struct dirent *e; !err && (e = readdir(dir));) {
			pid_t tid = (pid_t)atoi(e->d_name);
			bool stopped = false;
			if (tid <= 0 || traced(u, tid) || u->tracee.len >= MAX_THREADS)
				continue;
			err = stop(u, tid, &stopped, &why);
			more |= stopped;
		}
		closedir(dir);
		ELFRW_TRY(err);
	}
	if (!u->tracee.len)
		return why ? elfrw_error_errno(why, "cannot stop the process")
			   : elfrw_error("the process has ended");
	return NULL;
}

struct elfrw_err *icf_unwind_open_process(struct icf_unwind *u, pid_t pid,
					  const struct icf_unwind_options *options)
{
	u->pid = pid;
	ELFRW_TRY(freeze(u, pid));
	dwfl_report_begin(u->dwfl);
	int rc = dwfl_linux_proc_report(u->dwfl, pid);
	if (dwfl_report_end(u->dwfl, NULL, NULL) != 0 || rc < 0)
		return icf_unwind_problem("cannot read the process");
	if (rc > 0)
		return elfrw_error_errno(rc, "cannot read the process");
	ELFRW_TRY(icf_unwind_list_modules(u));
	char link[64], exe[4096];
	snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
	ssize_t n = readlink(link, exe, sizeof exe - 1);
	exe[n > 0 ? n : 0] = 0;
	unsigned char want[64], got[64];
	size_t n_want = 0, n_got = 0;
	if (options->exe) {
		ELFRW_TRY(icf_unwind_file_id(options->exe, got, sizeof got, &n_got));
		elfrw_err_free(icf_unwind_file_id(link, want, sizeof want, &n_want));
	}
	if (n_want && (n_want != n_got || n_want > sizeof want || memcmp(want, got, n_want)))
		return elfrw_error("%s is not the program of this process: another build-id",
				   options->exe);
	ELFRW_TRY(icf_unwind_place_exe(u, options->exe, exe));
	rc = dwfl_linux_proc_attach(u->dwfl, pid, true);
	if (rc < 0)
		return icf_unwind_problem("cannot read the process");
	if (rc > 0)
		return elfrw_error_errno(rc, "cannot read the process");
	return NULL;
}

void icf_unwind_thaw(struct icf_unwind *u)
{
	for (size_t i = 0; i < u->tracee.len; i++)
		ptrace(PTRACE_DETACH, u->tracee.data[i].tid, NULL,
		       (void *)(intptr_t)u->tracee.data[i].signal);
	VEC_FREE(&u->tracee);
}
