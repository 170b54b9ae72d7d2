/* symbolize.c: icfold symbolize [OPTION]... [ADDRESS]...: reads the options and passes the work to
 * questions.h, stack.h, core.h, log.h or perf.h. */
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/cmd/sym/core.h"
#include "icf/cmd/log/log.h"
#include "icf/cmd/perf/perf.h"
#include "icf/cmd/sym/questions.h"
#include "icf/cmd/sym/stack.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
	"Usage: icfold symbolize [OPTION]... [ADDRESS]...\n"
	"       icfold symbolize [OPTION]... --core=FILE|--pid=N\n"
	"Turn addresses into functions, files and lines.\n"
	"Without ADDRESS, addresses are read from standard input, one a line; without -e each line is\n"
	"FILE ADDRESS.  Addresses are hexadecimal, with or without 0x; SYMBOL+OFFSET works, too.\n"
	"\n"
	"  -e, --obj=FILE             the program or library (also --exe)\n"
	"  -i, --inlines              print the calls that were inlined at the address (default)\n"
	"      --no-inlines           print the innermost place only\n"
	"  -f, --functions[=none|short|linkage]\n"
	"                             print function names (default: linkage)\n"
	"  -C, --demangle[=llvm|gnu]  print names demangled (default), as the LLVM tools spell them, or\n"
	"                             as c++filt and gdb do\n"
	"      --no-demangle          print linkage names\n"
	"  -a, --addresses            print the address first\n"
	"  -p, --pretty-print         print one line for each frame\n"
	"  -s, --basenames            print file names without directories\n"
	"      --relativenames        print file names as the line table has them\n"
	"      --output-style=LLVM|GNU|JSON  (default: LLVM)\n"
	"      --json                 the same as --output-style=JSON\n"
	"      --relative-address     addresses are relative to the file's base\n"
	"      --adjust-vma=N         subtract N from each address\n"
	"      --stack                addresses are a stack, the innermost first: a PC, then return addresses;\n"
	"                             name the functions that were really called, even if they share code;\n"
	"                             on standard input an empty line ends a stack\n"
	"      --core=FILE            print the stack of every thread in a core file; -e is the program's file,\n"
	"                             if it is not where the core says\n"
	"      --pid=N                print the stack of every thread of a running process\n"
	"      --perf                 copy the text of `perf script` (arguments are files) and name the functions\n"
	"                             that were really called; -e: only in frames of that file\n"
	"      --log                  copy a log (arguments are files) and name the functions of its stack frames:\n"
	"                             reports of sanitizers, glibc's backtraces, strace -k, glog, Rust, the kernel;\n"
	"                             -e: the file that the log means by its name\n"
	"      --base=N               with --log and -e: where the file was loaded\n"
	"      --sysroot=DIR          search below DIR for the files of a core or a log of another machine\n"
	"      --debug-file=FILE      the separate debug file of the program, if it is not found by\n"
	"                             build-id or .gnu_debuglink\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n" ICF_USAGE_COMMON
	"\n"
	"-v prints all that is known about a frame. Exit status: 0, or 2 for trouble.\n";

struct session {
	struct icf_sym_style style;
	struct dwr_sym_options options;
	unsigned flags; /* DWR_SYM_* */
	bool inlines;
	uint64_t adjust;
	const char *obj;        /* NULL: each line names one */
	const char *core, *pid; /* the core or process to unwind, or NULL */
	bool perf;              /* the arguments are files of perf's text */
	bool log;               /* the arguments are logs */
	bool has_base;
	uint64_t base;
	bool stack; /* the addresses form one stack */
};

enum {
	OPT_NO_INLINES = 256,
	OPT_DEMANGLE,
	OPT_NO_DEMANGLE,
	OPT_RELATIVE,
	OPT_STYLE,
	OPT_RELATIVE_ADDRESS,
	OPT_ADJUST,
	OPT_DEBUG_DIR,
	OPT_FUNCTIONS,
	OPT_JSON,
	OPT_SYSROOT,
	OPT_DEBUG_FILE,
	OPT_PERF,
	OPT_LOG,
	OPT_BASE,
	OPT_STACK,
	OPT_CORE,
	OPT_PID,
};

static const struct option options[] = {
	{ "obj", required_argument, NULL, 'e' },
	{ "exe", required_argument, NULL, 'e' },
	{ "inlines", no_argument, NULL, 'i' },
	{ "inlining", no_argument, NULL, 'i' },
	{ "no-inlines", no_argument, NULL, OPT_NO_INLINES },
	{ "functions", optional_argument, NULL, OPT_FUNCTIONS },
	{ "demangle", optional_argument, NULL, OPT_DEMANGLE },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "addresses", no_argument, NULL, 'a' },
	{ "pretty-print", no_argument, NULL, 'p' },
	{ "basenames", no_argument, NULL, 's' },
	{ "relativenames", no_argument, NULL, OPT_RELATIVE },
	{ "output-style", required_argument, NULL, OPT_STYLE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "relative-address", no_argument, NULL, OPT_RELATIVE_ADDRESS },
	{ "adjust-vma", required_argument, NULL, OPT_ADJUST },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "debug-file", required_argument, NULL, OPT_DEBUG_FILE },
	{ "sysroot", required_argument, NULL, OPT_SYSROOT },
	{ "perf", no_argument, NULL, OPT_PERF },
	{ "log", no_argument, NULL, OPT_LOG },
	{ "base", required_argument, NULL, OPT_BASE },
	{ "stack", no_argument, NULL, OPT_STACK },
	{ "core", required_argument, NULL, OPT_CORE },
	{ "pid", required_argument, NULL, OPT_PID },
	{ 0 },
};

static int bad_value(const char *option, const char *value, const char *want)
{
	return icf_usage_error("symbolize", "%s=%s: must be %s", option, value, want);
}

static int set_number(const char *option, uint64_t *ret)
{
	char *end;
	errno = 0;
	*ret = strtoull(optarg, &end, 0);
	return *optarg && !*end && !errno ? -1 : bad_value(option, optarg, "a number");
}

/* Sets one option; -1: go on, else the exit status. */
static int set_option(struct session *s, int c)
{
	switch (c) {
	case 'e': s->obj = optarg; return -1;
	case 'i': s->inlines = true; return -1;
	case OPT_NO_INLINES: s->inlines = false; return -1;
	case 'f': optarg = NULL; /* fall through */
	case OPT_FUNCTIONS:
		s->style.functions = !optarg || strcmp(optarg, "none");
		s->flags &= ~(unsigned)DWR_SYM_SHORT_NAMES;
		if (optarg && !strcmp(optarg, "short"))
			s->flags |= DWR_SYM_SHORT_NAMES;
		else if (optarg && strcmp(optarg, "none") && strcmp(optarg, "linkage"))
			return bad_value("--functions", optarg, "linkage, short or none");
		return -1;
	case 'C': optarg = NULL; /* fall through */
	case OPT_DEMANGLE:
		if (optarg && strcmp(optarg, "llvm") && strcmp(optarg, "gnu"))
			return bad_value("--demangle", optarg, "llvm or gnu");
		s->flags |= DWR_SYM_DEMANGLE;
		s->options.spelling =
			optarg && !strcmp(optarg, "gnu") ? DWR_SPELLING_GNU : DWR_SPELLING_LLVM;
		return -1;
	case OPT_NO_DEMANGLE: s->flags &= ~(unsigned)DWR_SYM_DEMANGLE; return -1;
	case 'a': s->style.addresses = true; return -1;
	case 'p': s->style.pretty = true; return -1;
	case 's': s->options.path = DWR_SYM_BASENAME; return -1;
	case OPT_RELATIVE: s->options.path = DWR_SYM_RELATIVE; return -1;
	case OPT_STYLE:
		if (!strcmp(optarg, "LLVM"))
			s->style.output = ICF_SYM_LLVM;
		else if (!strcmp(optarg, "GNU"))
			s->style.output = ICF_SYM_GNU;
		else if (!strcmp(optarg, "JSON"))
			s->style.output = ICF_SYM_JSON;
		else
			return bad_value("--output-style", optarg, "LLVM, GNU or JSON");
		return -1;
	case OPT_JSON: s->style.output = ICF_SYM_JSON; return -1;
	case OPT_RELATIVE_ADDRESS:
		return -1; /* addresses of an ELF file are already relative to its base */
	case OPT_ADJUST: return set_number("--adjust-vma", &s->adjust);
	case OPT_DEBUG_DIR: s->options.debug_dir = optarg; return -1;
	case OPT_DEBUG_FILE: s->options.debug_file = optarg; return -1;
	case OPT_SYSROOT: s->options.sysroot = optarg; return -1;
	case OPT_PERF: s->perf = true; return -1;
	case OPT_LOG: s->log = true; return -1;
	case OPT_BASE: s->has_base = true; return set_number("--base", &s->base);
	case OPT_STACK: s->stack = true; return -1;
	case OPT_CORE: s->core = optarg; return -1;
	case OPT_PID: s->pid = optarg; return -1;
	}
	return -1;
}

/* Options that exclude each other in a command line with N addresses, or NULL. */
static const char *contradiction(const struct session *s, int n)
{
	if (s->options.debug_file && !s->obj && !s->core && !s->pid)
		return "--debug-file needs the file that it belongs to: --obj=FILE";
	if (s->has_base && !(s->log && s->obj))
		return "--base needs a log and the file that was loaded there: --log --obj=FILE";
	if (s->log && (s->perf || s->stack || s->core || s->pid))
		return "--log goes with neither --perf, --stack, --core, nor --pid";
	if (s->perf || s->log)
		return NULL;
	if ((s->core || s->pid) && (n || s->stack || (s->core && s->pid)))
		return "--core and --pid go with neither addresses, nor --stack, nor each other";
	if (s->stack && !s->core && !s->pid && !s->obj)
		return "--stack needs the file of the addresses: --obj=FILE";
	return NULL;
}

#define OUTPUT (1 << 16) /* bytes of output that are written at once */

/* Answers single addresses, or stacks. */
static struct elfrw_err *answer(const struct session *s, struct icf_questions *q, char **arg, int n)
{
	struct icf_sym_stack_in in = {
		.style = &s->style, .flags = s->flags, .inlines = s->inlines, .adjust = s->adjust
	};
	if (s->obj) {
		ELFRW_TRY(icf_questions_file(q, s->obj, &in.path, &in.sym));
		if (!in.sym)
			return NULL;
	}
	/* Whoever waits for more input flushes first. */
	char *buffer = n ? NULL : malloc(OUTPUT);
	if (buffer)
		setvbuf(stdout, buffer, _IOFBF, OUTPUT);
	struct elfrw_err *err =
		s->stack ? icf_sym_stacks(&in, arg, n) : icf_questions_ask(q, arg, n);
	if (buffer) {
		fflush(stdout); /* what fails here is seen at the end */
		setvbuf(stdout, NULL, _IONBF, 0);
		free(buffer);
	}
	return err;
}

static struct elfrw_err *run(const struct session *s, char **arg, int n, int *status)
{
	if (s->perf) {
		struct icf_sym_perf_in perf = { s->obj, &s->options };
		return icf_sym_perf(&perf, arg, n);
	}
	if (s->log) {
		struct icf_sym_log_in log = { s->obj,      s->has_base, s->base,   &s->style,
					      &s->options, s->flags,    s->inlines };
		return icf_sym_log(&log, arg, n);
	}
	if (s->core || s->pid) {
		struct icf_core_in core = { s->core,     s->pid,   s->obj,    &s->style,
					    &s->options, s->flags, s->inlines };
		*status = icf_sym_core(&core);
		return NULL;
	}
	struct icf_questions_in in = { &s->style,  &s->options, s->flags,
				       s->inlines, s->adjust,   s->obj };
	struct icf_questions *q = NULL;
	struct elfrw_err *err = icf_questions_open(&in, &q);
	if (!err)
		err = answer(s, q, arg, n);
	if (!err)
		err = icf_questions_complete(q, status);
	icf_questions_close(q);
	return err;
}

int icf_cmd_symbolize(int argc, char **argv)
{
	struct session s = { .style.functions = true, .inlines = true, .flags = DWR_SYM_DEMANGLE };
	int c, status = -1;
	struct icf_cmdline line = ICF_CMDLINE("symbolize", usage, argc, argv);
	icf_cmdline_init(&line, "e:ifCaps", options);
	while (status < 0 && (c = icf_cmdline_next(&line)) != -1)
		status = c == ICF_CMDLINE_EXIT ? line.status : set_option(&s, c);
	s.style.verbose = line.verbose;
	const char *wrong = status < 0 ? contradiction(&s, line.n) : NULL;
	if (wrong)
		return icf_usage_error("symbolize", "%s", wrong);
	if (status >= 0)
		return status;
	status = ICF_EXIT_OK;
	struct elfrw_err *err = run(&s, line.operand, line.n, &status);
	if (!err && (fflush(stdout) != 0 || ferror(stdout)))
		err = elfrw_error_errno(errno, "cannot write standard output");
	if (!err)
		return status;
	icf_message(NULL, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return ICF_EXIT_TROUBLE;
}
