/* cmd_verify.c: icfold verify [OPTION]... IN OUT. */
#include "icf/cmd.h"
#include "icf/pair.h"
#include "icf/process.h"
#include "icf/verify.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "Usage: icfold verify [OPTION]... IN OUT\n"
			    "Prove from the two files alone that OUT is IN with functions folded and nothing\n"
			    "else changed.  Exit status: 0 equal, 1 different, 2 trouble.\n"
			    "\n"
			    "      --icf=safe|all   safe (default): functions whose address can be observed must\n"
			    "                       have one of their own; all: addresses may have merged\n"
			    "      --json           print the result as JSON\n"
			    "      --no-debug       leave the debug information alone, and what is said by it of\n"
			    "                       calls and lines\n"
			    "      --debug-file=FILE    the separate debug file of IN, if it is not found by build-id\n"
			    "                       or .gnu_debuglink\n"
			    "      --debug-output=FILE  the same of OUT\n"
			    "      --debug-file-directory=DIR  where debug files are (default: /usr/lib/debug)\n"
			    "      --max=N          print at most N differences of a kind (default: 20)\n"
			    "      --threads=N      use N threads (default: all processors)\n"
			    "  -v, --verbose        list checks that found nothing to check, too\n"
			    "  -h, --help           print this help\n";

enum { OPT_ICF = 256, OPT_JSON, OPT_NO_DEBUG, OPT_MAX, OPT_THREADS, OPT_DEBUG_IN, OPT_DEBUG_OUT, OPT_DEBUG_DIR };

static const struct option options[] = {
	{ "icf", required_argument, NULL, OPT_ICF },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "no-debug", no_argument, NULL, OPT_NO_DEBUG },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "debug-file", required_argument, NULL, OPT_DEBUG_IN },
	{ "debug-output", required_argument, NULL, OPT_DEBUG_OUT },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

#define MAX_NUMBER 1000000u

static bool number(const char *text, unsigned *ret)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || end == text || *end || n > MAX_NUMBER || *text == '-')
		return false;
	*ret = (unsigned)n;
	return true;
}

/* With threads at work nothing else can be done. */
static void __attribute__((noreturn)) no_memory(void)
{
	static const char text[] = "icfold: verify: out of memory\n";
	_exit(write(STDERR_FILENO, text, sizeof text - 1) < 0 ? 2 : 2);
}

/* Finds the debug files that OPT does not name.  A file without debug information is compared with one that has some as if it
 * was stripped. */
static struct elfrw_err *find_debug(const char *in, const char *out, const char *dir, struct icf_verify_options *opt,
				    char **found_in, char **found_out)
{
	bool own = false;
	if (!opt->debug_out) {
		struct elfrw_err *err = icf_pair_find(out, dir, found_out, &own);
		opt->debug_out = *found_out;
		/* Whether it is one is for the verifier to say. */
		if (err == &elfrw_err_nomem)
			return err;
		elfrw_err_free(err);
	}
	if (!opt->debug_in && (opt->debug_out || own)) {
		struct elfrw_err *err = icf_pair_find(in, dir, found_in, NULL);
		opt->debug_in = *found_in;
		if (err == &elfrw_err_nomem)
			return err;
		elfrw_err_free(err);
	}
	return NULL;
}

int icf_cmd_verify(int argc, char **argv)
{
	struct icf_verify_options opt = { .mode = ICF_VERIFY_SAFE, .no_memory = no_memory };
	const char *debug_dir = NULL;
	bool json = false, verbose = false;
	optind = 0; /* start over: the caller may have parsed options of its own */
	argv[0] = (char[]){ "icfold: verify" };
	for (int c; (c = getopt_long(argc, argv, "vh", options, NULL)) != -1;) {
		switch (c) {
		case OPT_ICF:
			if (strcmp(optarg, "all") == 0)
				opt.mode = ICF_VERIFY_ALL;
			else if (strcmp(optarg, "safe") != 0)
				return icf_usage_error("verify", 2, "--icf=%s: must be safe or all", optarg);
			break;
		case OPT_JSON:
			json = true;
			break;
		case OPT_NO_DEBUG:
			opt.no_debug = true;
			break;
		case OPT_MAX:
			if (!number(optarg, &opt.max_diffs) || !opt.max_diffs)
				return icf_usage_error("verify", 2, "--max=%s: must be a number from 1 to %u", optarg, MAX_NUMBER);
			break;
		case OPT_THREADS:
			if (!number(optarg, &opt.threads) || !opt.threads)
				return icf_usage_error("verify", 2, "--threads=%s: must be a number from 1 to %u", optarg, MAX_NUMBER);
			break;
		case OPT_DEBUG_IN:
			opt.debug_in = optarg;
			break;
		case OPT_DEBUG_OUT:
			opt.debug_out = optarg;
			break;
		case OPT_DEBUG_DIR:
			debug_dir = optarg;
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return icf_usage_error("verify", 2, NULL);
		}
	}
	if (argc - optind != 2)
		return icf_usage_error("verify", 2, "expected two files, IN and OUT");
	struct icf_verify_result result;
	icf_process_libdw(2);
	char *found_in = NULL, *found_out = NULL;
	struct elfrw_err *err = find_debug(argv[optind], argv[optind + 1], debug_dir, &opt, &found_in, &found_out);
	if (!err)
		err = icf_verify(argv[optind], argv[optind + 1], &opt, &result);
	free(found_in);
	free(found_out);
	if (err) {
		fprintf(stderr, "icfold: verify: %s\n", elfrw_err_text(err));
		elfrw_err_free(err);
		return 2;
	}
	if (json)
		icf_verify_print_json(stdout, argv[optind], argv[optind + 1], &result);
	else
		icf_verify_print(stdout, &result, verbose);
	int status = result.equal ? 0 : 1;
	icf_verify_result_deinit(&result);
	if (fflush(stdout) != 0) {
		fprintf(stderr, "icfold: standard output: cannot write\n");
		return 2;
	}
	return status;
}
