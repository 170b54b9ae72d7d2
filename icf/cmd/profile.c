/* profile.c: icfold profile [OPTION]... FILE [PROFILE]... */
#include "icf/profile/profile.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold profile [OPTION]... FILE [PROFILE]...\n"
	"Write a profile of the folded program FILE for the program as it was before folding. Samples in\n"
	"shared code are attributed to the function that was called. PROFILE is the text of `perf script`\n"
	"(default: standard input), or perf.data, which perf has to be there for. The text needs the mappings\n"
	"of programs that are loaded anywhere: perf script --show-mmap-events.\n"
	"\n"
	"      --to=perfscript        the same text (default)\n"
	"      --to=profgen           counts for llvm-profgen --unsymbolized-profile\n"
	"      --to=bolt              counts for perf2bolt --pa\n"
	"      --to=autofdo           counts for create_llvm_prof --profiler=text\n"
	"      --to=pprof             profile.proto, compressed, for pprof\n"
	"      --to=collapsed         stacks for flame graphs\n"
	"      --to=gmon              gmon.out for gprof; PROFILE is gmon.out, too\n"
	"      --to=callgrind         callgrind.out; PROFILE is callgrind.out with addresses (valgrind\n"
	"                             --tool=callgrind --dump-instr=yes)\n"
	"      --undecided=kept       attribute what is undecided to the function whose code was kept (default)\n"
	"      --undecided=drop       leave it out\n"
	"      --undecided=spread     attribute it to all possible functions in turn\n"
	"      --event=NAME           only samples of this event\n"
	"      --forward              the profile is of the program before folding, and is wanted for FILE\n"
	"      --debug-file=FILE      the separate debug file of the program, if it is not found by\n"
	"                             build-id or .gnu_debuglink\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n" ICF_USAGE_COMMON
	"\n"
	"What was undecided is counted on standard error. Exit status: 0, or 2 for trouble.\n";

enum { OPT_TO = 256, OPT_UNDECIDED, OPT_EVENT, OPT_FORWARD, OPT_DEBUG_FILE, OPT_DEBUG_DIR };

static const struct option options[] = {
	{ "to", required_argument, NULL, OPT_TO },
	{ "undecided", required_argument, NULL, OPT_UNDECIDED },
	{ "event", required_argument, NULL, OPT_EVENT },
	{ "forward", no_argument, NULL, OPT_FORWARD },
	{ "debug-file", required_argument, NULL, OPT_DEBUG_FILE },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ 0 },
};

/* The number of VALUE among the N words of CHOICE, or -1. */
static int choice_of(const char *value, const char *const *choice, int n)
{
	for (int i = 0; i < n; i++)
		if (strcmp(value, choice[i]) == 0)
			return i;
	return -1;
}

/* Sets one option; -1: go on, else the exit status. */
static int set_option(struct icf_profile_in *in, struct dwr_sym_options *opt, int c, bool *to_given)
{
	static const char *const to[] = { "perfscript", "profgen",   "bolt", "autofdo",
					  "pprof",      "collapsed", "gmon", "callgrind" };
	static const char *const undecided[] = { "kept", "drop", "spread" };
	int i;
	switch (c) {
	case OPT_TO:
		if ((i = choice_of(optarg, to, 8)) < 0)
			return icf_usage_error("profile",
					       "--to=%s: must be perfscript, profgen, bolt, "
					       "autofdo, pprof, collapsed, gmon or callgrind",
					       optarg);
		in->to = (enum icf_profile_to)i;
		*to_given = true;
		return -1;
	case OPT_UNDECIDED:
		if ((i = choice_of(optarg, undecided, 3)) < 0)
			return icf_usage_error(
				"profile", "--undecided=%s: must be kept, drop or spread", optarg);
		in->undecided = (enum icf_profile_undecided)i;
		return -1;
	case OPT_EVENT: in->event = optarg; return -1;
	case OPT_FORWARD: in->forward = true; return -1;
	case OPT_DEBUG_FILE: opt->debug_file = optarg; return -1;
	case OPT_DEBUG_DIR: opt->debug_dir = optarg; return -1;
	}
	return -1;
}

/* ---- perf.data ---- */

static bool is_perf_data(int fd)
{
	char magic[8];
	return pread(fd, magic, sizeof magic, 0) == sizeof magic &&
	       (!memcmp(magic, "PERFILE2", 8) || !memcmp(magic, "2ELIFREP", 8));
}

#define FIELDS "comm,pid,tid,time,period,event,ip,sym,symoff,dso,brstack"

/* Starts `perf script` of PATH; *RET: what it prints. */
static struct elfrw_err *start_perf(const char *path, pid_t *child, int *ret)
{
	const char *arg[] = {
		"perf", "script", "--show-mmap-events", "-F", FIELDS, "-i", path, NULL
	};
	int end[2];
	if (pipe2(end, O_CLOEXEC) != 0)
		return elfrw_error_errno(errno, "cannot start perf");
	*child = fork();
	if (*child == 0) {
		if (dup2(end[1], STDOUT_FILENO) >= 0)
			execvp(arg[0], (char *const *)arg);
		_exit(127);
	}
	close(end[1]);
	*ret = end[0];
	if (*child > 0)
		return NULL;
	close(end[0]);
	return elfrw_error_errno(errno, "cannot start perf");
}

static struct elfrw_err *read_perf_data(struct icf_profile *p, const char *path)
{
	pid_t child;
	int fd, status = 0;
	ELFRW_TRY(start_perf(path, &child, &fd));
	struct elfrw_err *err = icf_profile_read(p, fd, path);
	close(fd); /* a perf that still writes ends by it */
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (err || (WIFEXITED(status) && WEXITSTATUS(status) == 0))
		return err;
	return WIFEXITED(status) && WEXITSTATUS(status) == 127
		       ? elfrw_error("%s is perf.data, and there is no perf to read it", path)
		       : elfrw_error("%s: perf script cannot read it", path);
}

/* ---- the command ---- */

/* gmon.out and callgrind.out are written in their own form. */
static bool is_counts(enum icf_profile_to to)
{
	return to == ICF_PROFILE_GMON || to == ICF_PROFILE_CALLGRIND;
}

static struct elfrw_err *check_form(const struct icf_profile_in *in, int fd, const char *name)
{
	enum icf_profile_to form;
	if (!icf_profile_sniff(fd, &form) || form == in->to)
		return NULL;
	const char *word = form == ICF_PROFILE_GMON ? "gmon" : "callgrind";
	return elfrw_error("%s is %s.out, which is written with --to=%s", name, word, word);
}

static struct elfrw_err *read_profile(const struct icf_profile_in *in, struct icf_profile *p,
				      const char *path)
{
	bool standard = strcmp(path, "-") == 0;
	const char *name = standard ? "standard input" : path;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return elfrw_error_errno(errno, "cannot open %s", path);
	struct elfrw_err *err = check_form(in, fd, name);
	if (!err)
		err = !standard && is_perf_data(fd) && !is_counts(in->to)
			      ? read_perf_data(p, path)
			      : icf_profile_read(p, fd, name);
	if (!standard)
		close(fd);
	return err;
}

/* Without --to, the first profile says the form. */
static void find_form(struct icf_profile_in *in, const char *path)
{
	enum icf_profile_to form;
	bool standard = strcmp(path, "-") == 0;
	int fd = standard ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && icf_profile_sniff(fd, &form))
		in->to = form;
	if (fd >= 0 && !standard)
		close(fd);
}

static struct elfrw_err *run(const struct icf_profile_in *in, char **arg, int n,
			     struct icf_profile_counts *counts)
{
	struct icf_profile *p = NULL;
	struct elfrw_err *err = elfrw_err_about(in->file, icf_profile_open(in, &p));
	for (int i = 0; i < (n ? n : 1) && !err; i++)
		err = read_profile(in, p, n ? arg[i] : "-");
	if (!err)
		err = icf_profile_finish(p, counts);
	icf_profile_close(p);
	if (!err && (fflush(in->out) != 0 || ferror(in->out)))
		err = elfrw_error_errno(errno, "cannot write standard output");
	return err;
}

static void remark(const struct icf_profile_in *in, const struct icf_profile_counts *c)
{
	double percent = c->places ? 100.0 * (double)c->undecided / (double)c->places : 0;
	if (is_counts(in->to))
		icf_message(in->file,
			    "%" PRIu64 " calls: %" PRIu64 " of shared code, %" PRIu64
			    " undecided (%.2f %%)",
			    c->places, c->shared, c->undecided, percent);
	else if (in->forward)
		icf_message(in->file,
			    "%" PRIu64 " samples, %" PRIu64 " places in the program: %" PRIu64
			    " in shared code, %" PRIu64 " in code that is gone",
			    c->samples, c->places, c->shared, c->nowhere);
	else
		icf_message(in->file,
			    "%" PRIu64 " samples, %" PRIu64 " places in the program: %" PRIu64
			    " in shared code, %" PRIu64 " undecided (%.2f %%)",
			    c->samples, c->places, c->shared, c->undecided, percent);
	if (c->alike)
		icf_message(in->file,
			    "%" PRIu64 " of the undecided places are between functions of one "
			    "name: copies of one function",
			    c->alike);
	if (c->nameless)
		icf_message(in->file,
			    "%" PRIu64 " frames of call chains are offsets without a file, and are "
			    "left as they are; perf script shows files with the field dso",
			    c->nameless);
	else if (!c->places && !is_counts(in->to))
		icf_message(in->file, "no sample is in this program; are its mappings there "
				      "(perf script --show-mmap-events)?");
	if (c->odd)
		icf_message(in->file,
			    "%" PRIu64
			    " lines have branches or places in a form that is not read, the "
			    "first is line %" PRIu64,
			    c->odd, c->first_odd);
	if (c->events_differ && !in->event)
		icf_message(in->file, "samples of several events are counted together; "
				      "--event=NAME takes one");
}

int icf_cmd_profile(int argc, char **argv)
{
	struct dwr_sym_options opt = { 0 };
	struct icf_profile_in in = { .options = &opt, .out = stdout };
	struct icf_profile_counts counts = { 0 };
	struct icf_cmdline line = ICF_CMDLINE("profile", usage, argc, argv);
	bool to_given = false;
	int c, status = -1;
	icf_cmdline_init(&line, "", options);
	while (status < 0 && (c = icf_cmdline_next(&line)) != -1)
		status = c == ICF_CMDLINE_EXIT ? line.status : set_option(&in, &opt, c, &to_given);
	if (status >= 0)
		return status;
	if (!line.n)
		return icf_usage_error("profile", "expected FILE, the folded program");
	if (in.to == ICF_PROFILE_PPROF && isatty(STDOUT_FILENO))
		return icf_usage_error("profile", "--to=pprof writes binary data; "
						  "standard output is a terminal");
	if (!to_given)
		find_form(&in, line.n > 1 ? line.operand[1] : "-");
	if (is_counts(in.to) && (in.forward || in.event))
		return icf_usage_error("profile", "--forward and --event are for the text of perf "
						  "script");
	if (in.to == ICF_PROFILE_GMON && isatty(STDOUT_FILENO))
		return icf_usage_error("profile", "--to=gmon writes binary data; standard output "
						  "is a terminal");
	in.file = line.operand[0];
	struct elfrw_err *err = run(&in, line.operand + 1, line.n - 1, &counts);
	if (!err && !line.quiet)
		remark(&in, &counts);
	if (!err)
		return ICF_EXIT_OK;
	icf_message(NULL, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return ICF_EXIT_TROUBLE;
}
