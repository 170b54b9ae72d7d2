/* cmdline.c: see cmdline.h. */
#include "icf/cmd/cmdline.h"
#include "icf/cmd/cmd.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPT_THREADS = 1000 };

static const struct option common[] = {
	{ "threads", required_argument, NULL, OPT_THREADS },
	{ "quiet", no_argument, NULL, 'q' },
	{ "verbose", no_argument, NULL, 'v' },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
};

void icf_cmdline_init(struct icf_cmdline *c, const char *shorts, const struct option *options)
{
	size_t n = 0;
	c->operand = c->argv + 1;
	c->which = -1;
	c->threads = icf_default_threads();
	while (options[n].name && n < ICF_CMDLINE_OPTIONS - sizeof common / sizeof *common) {
		c->all[n] = options[n];
		n++;
	}
	memcpy(c->all + n, common, sizeof common);
	/* '-' makes getopt return non-options in turn, so that ARGV keeps its order.  ':'
	 * suppresses getopt's messages; ours spell names out. */
	snprintf(c->shorts, sizeof c->shorts, "-:%sqvhV", shorts);
	optind = 0; /* start over: the caller may have parsed its own options */
}

static int leave(struct icf_cmdline *c, int status)
{
	c->status = status;
	return ICF_CMDLINE_EXIT;
}

int icf_print_help(const char *text)
{
	fputs(text, stdout);
	if (fflush(stdout) == 0 && !ferror(stdout))
		return ICF_EXIT_OK;
	icf_message("standard output", "cannot write");
	return ICF_EXIT_TROUBLE;
}

/* getopt_long() accepts an abbreviated name; we do not. */
static bool is_abbreviated(const struct icf_cmdline *c, int at)
{
	const char *text = c->argv[at] + 2;
	return c->which >= 0 && strlen(c->all[c->which].name) != strcspn(text, "=");
}

/* Reports what getopt_long() rejected about ARG.  optopt is 0 for an unknown long option. */
static int wrong_option(const struct icf_cmdline *c, const char *arg, bool lacks_value)
{
	if (arg[0] != '-' || arg[1] != '-')
		return icf_usage_error(c->command,
				       lacks_value ? "option requires an argument -- '%c'"
						   : "invalid option -- '%c'",
				       optopt);
	if (lacks_value)
		return icf_usage_error(c->command, "option '%s' requires an argument", arg);
	if (!optopt)
		return icf_usage_error(c->command, "unrecognized option '%s'", arg);
	return icf_usage_error(c->command, "option '%.*s' doesn't allow an argument",
			       (int)strcspn(arg, "="), arg);
}

int icf_cmdline_next(struct icf_cmdline *c)
{
	for (;;) {
		int at = optind ? optind : 1;
		c->which = -1;
		int k = getopt_long(c->argc, c->argv, c->shorts, c->all, &c->which);
		if (k != -1 && k != '?' && is_abbreviated(c, at))
			return leave(c,
				     icf_usage_error(c->command,
						     "unrecognized option '%s'; is '--%s' meant?",
						     c->argv[at], c->all[c->which].name));
		switch (k) {
		case 1: c->operand[c->n++] = optarg; break;
		case -1:
			for (; optind < c->argc; optind++)
				c->operand[c->n++] = c->argv[optind];
			return -1;
		case 'q': c->quiet = true; break;
		case 'v': c->verbose++; break;
		case 'h': return leave(c, icf_print_help(c->usage));
		case 'V': return leave(c, icf_print_version());
		case OPT_THREADS:
			if (!icf_threads(optarg, &c->threads))
				return leave(c, icf_usage_error(c->command,
								"--threads=%s: " ICF_THREADS_MUST,
								optarg));
			break;
		case '?':
		case ':': return leave(c, wrong_option(c, c->argv[at], k == ':'));
		default: return k;
		}
	}
}
