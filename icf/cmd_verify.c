/* cmd_verify.c: icfold verify [OPTION]... IN OUT. */
#include "icf/cmd.h"
#include "icf/verify.h"
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] = "Usage: icfold verify [OPTION]... IN OUT\n"
			    "Prove from the two files alone that OUT is IN with functions folded and nothing\n"
			    "else changed.  Exit status: 0 equal, 1 different, 2 trouble.\n"
			    "\n"
			    "      --icf=safe|all   safe (default): functions whose address can be observed must\n"
			    "                       have one of their own; all: addresses may have merged\n"
			    "      --json           print the result as JSON\n"
			    "      --no-debug       leave the debug information alone\n"
			    "      --max=N          print at most N differences of a kind (default: 20)\n"
			    "      --threads=N      use N threads (default: all processors)\n"
			    "  -v, --verbose        list checks that found nothing to check, too\n"
			    "  -h, --help           print this help\n";

enum { OPT_ICF = 256, OPT_JSON, OPT_NO_DEBUG, OPT_MAX, OPT_THREADS };

static const struct option options[] = {
	{ "icf", required_argument, NULL, OPT_ICF },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "no-debug", no_argument, NULL, OPT_NO_DEBUG },
	{ "max", required_argument, NULL, OPT_MAX },
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ NULL, 0, NULL, 0 },
};

static bool number(const char *text, unsigned *ret)
{
	char *end;
	errno = 0;
	unsigned long n = strtoul(text, &end, 10);
	if (errno || end == text || *end || n > 1000000 || *text == '-')
		return false;
	*ret = (unsigned)n;
	return true;
}

static int trouble(const char *text)
{
	fprintf(stderr, "icfold: verify: %s\n", text);
	return 2;
}

int icf_cmd_verify(int argc, char **argv)
{
	struct icf_verify_options opt = { .mode = ICF_VERIFY_SAFE };
	bool json = false, verbose = false;
	optind = 0;
	opterr = 0;
	for (int c; (c = getopt_long(argc, argv, "vh", options, NULL)) != -1;) {
		switch (c) {
		case OPT_ICF:
			if (strcmp(optarg, "all") == 0)
				opt.mode = ICF_VERIFY_ALL;
			else if (strcmp(optarg, "safe") != 0)
				return trouble("--icf takes safe or all");
			break;
		case OPT_JSON:
			json = true;
			break;
		case OPT_NO_DEBUG:
			opt.no_debug = true;
			break;
		case OPT_MAX:
			if (!number(optarg, &opt.max_diffs) || !opt.max_diffs)
				return trouble("--max takes a number");
			break;
		case OPT_THREADS:
			if (!number(optarg, &opt.threads) || !opt.threads)
				return trouble("--threads takes a number");
			break;
		case 'v':
			verbose = true;
			break;
		case 'h':
			fputs(usage, stdout);
			return 0;
		default:
			return trouble("unknown option or missing value; see icfold verify --help");
		}
	}
	if (argc - optind != 2)
		return trouble("expected two files, IN and OUT; see icfold verify --help");
	struct icf_verify_result result;
	struct elfrw_err *err = icf_verify(argv[optind], argv[optind + 1], &opt, &result);
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
	if (fflush(stdout) != 0)
		return trouble("cannot write to standard output");
	return status;
}
