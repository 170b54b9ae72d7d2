/* verify.c: icfold verify [OPTION]... IN OUT. */
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "dwarf/symbolize/symbolize.h"
#include "icf/cmd/process.h"
#include "icf/verify/verify.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold verify [OPTION]... IN OUT\n"
	"Prove from the two files alone that OUT is IN with functions folded and nothing\n"
	"else changed.  Exit status: 0 equal, 1 different, 2 trouble.\n"
	"\n"
	"      --icf=safe|all         safe (default): functions whose address can be observed must\n"
	"                             have one of their own; all: addresses may have merged\n"
	"      --gc-functions         functions may be missing if nothing can reach them\n"
	"      --json                 print the result as JSON\n"
	"      --no-debug             skip debug information, and the checks of calls and lines\n"
	"      --debug-file=FILE      the separate debug file of IN, if it is not found by build-id\n"
	"                             or .gnu_debuglink\n"
	"      --debug-output=FILE    the same for OUT\n"
	"      --debug-file-directory=DIR  where debug files are (default: /usr/lib/debug)\n"
	"      --max=N                print at most N differences of a kind (default: 20)\n" ICF_USAGE_COMMON
	"\n"
	"-q prints nothing: see the exit status. -v also lists checks that found nothing to check.\n";

enum {
	OPT_ICF = 256,
	OPT_JSON,
	OPT_NO_DEBUG,
	OPT_MAX,
	OPT_DEBUG_IN,
	OPT_DEBUG_OUT,
	OPT_DEBUG_DIR,
	OPT_GC
};

static const struct option options[] = {
	{ "icf", required_argument, NULL, OPT_ICF },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "no-debug", no_argument, NULL, OPT_NO_DEBUG },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "debug-file", required_argument, NULL, OPT_DEBUG_IN },
	{ "debug-output", required_argument, NULL, OPT_DEBUG_OUT },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "gc-functions", no_argument, NULL, OPT_GC },
	{ 0 },
};

#define MAX_NUMBER 1000000u

/* With threads at work nothing else can be done. */
static void __attribute__((noreturn)) no_memory(void)
{
	static const char text[] = "icfold: verify: out of memory\n";
	_exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 2 : 2);
}

/* Finds the debug files that OPT does not name.  A file without debug information is compared with
 * one that has some as if that one were stripped. */
static struct elfrw_err *find_debug(const char *in, const char *out, const char *dir,
				    struct icf_verify_options *opt, char **found_in,
				    char **found_out)
{
	bool own = false;
	if (!opt->debug_out) {
		struct elfrw_err *err = dwr_sym_find_debug(out, dir, found_out, &own);
		opt->debug_out = *found_out;
		/* The verifier reports other errors. */
		if (err == &elfrw_err_nomem)
			return err;
		elfrw_err_free(err);
	}
	if (!opt->debug_in && (opt->debug_out || own)) {
		struct elfrw_err *err = dwr_sym_find_debug(in, dir, found_in, NULL);
		opt->debug_in = *found_in;
		if (err == &elfrw_err_nomem)
			return err;
		elfrw_err_free(err);
	}
	return NULL;
}

struct question {
	struct icf_verify_options opt;
	const char *debug_dir;
	bool json;
};

/* Sets the option C; its value is in optarg.  Returns -1, or the exit status for a wrong value. */
static int set_option(struct question *q, int c)
{
	uint64_t n;
	switch (c) {
	case OPT_ICF:
		if (strcmp(optarg, "all") == 0)
			q->opt.mode = ICF_VERIFY_ALL;
		else if (strcmp(optarg, "safe") != 0)
			return icf_usage_error("verify", "--icf=%s: must be safe or all", optarg);
		break;
	case OPT_JSON: q->json = true; break;
	case OPT_GC: q->opt.gc_functions = true; break;
	case OPT_NO_DEBUG: q->opt.no_debug = true; break;
	case OPT_MAX:
		if (!icf_number(optarg, MAX_NUMBER, &n) || !n)
			return icf_usage_error("verify", "--max=%s: must be a number from 1 to %u",
					       optarg, MAX_NUMBER);
		q->opt.max_diffs = (unsigned)n;
		break;
	case OPT_DEBUG_IN: q->opt.debug_in = optarg; break;
	case OPT_DEBUG_OUT: q->opt.debug_out = optarg; break;
	case OPT_DEBUG_DIR: q->debug_dir = optarg; break;
	}
	return -1;
}

/* Compares IN and OUT and prints as LINE says.  Returns the exit status. */
static int answer(struct question *q, const struct icf_cmdline *line, const char *in,
		  const char *out)
{
	struct icf_verify_result result;
	char *found_in = NULL, *found_out = NULL;
	struct elfrw_err *err = find_debug(in, out, q->debug_dir, &q->opt, &found_in, &found_out);
	if (!err)
		err = icf_verify(in, out, &q->opt, &result);
	free(found_in);
	free(found_out);
	if (err) {
		icf_message("verify", "%s", elfrw_err_text(err));
		elfrw_err_free(err);
		return ICF_EXIT_TROUBLE;
	}
	if (q->json)
		icf_verify_print_json(stdout, in, out, &result);
	else if (!line->quiet)
		icf_verify_print(stdout, &result, line->verbose);
	int status = result.equal ? ICF_EXIT_OK : ICF_EXIT_NO;
	icf_verify_result_deinit(&result);
	if (fflush(stdout) == 0)
		return status;
	icf_message("standard output", "cannot write");
	return ICF_EXIT_TROUBLE;
}

int icf_cmd_verify(int argc, char **argv)
{
	struct question q = { .opt = { .mode = ICF_VERIFY_SAFE, .no_memory = no_memory } };
	struct icf_cmdline line = ICF_CMDLINE("verify", usage, argc, argv);
	icf_cmdline_init(&line, "", options);
	int c, status = -1;
	while (status < 0 && (c = icf_cmdline_next(&line)) != -1)
		status = c == ICF_CMDLINE_EXIT ? line.status : set_option(&q, c);
	if (status >= 0)
		return status;
	if (line.n != 2)
		return icf_usage_error("verify", "expected two files, IN and OUT");
	q.opt.threads = line.threads;
	icf_process_libdw();
	return answer(&q, &line, line.operand[0], line.operand[1]);
}
