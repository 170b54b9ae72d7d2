/* cmd_usage.c: what every command says when its command line is wrong: what it is, then where to look it up, as the GNU tools do. */
#include "icf/cmd.h"
#include "icf/cmdline.h"
#include <stdarg.h>
#include <stdio.h>

int icf_usage_error(const char *command, const char *fmt, ...)
{
	fflush(stdout);
	if (fmt) {
		va_list ap;
		fprintf(stderr, "icfold: %s%s", command ? command : "", command ? ": " : "");
		va_start(ap, fmt);
		vfprintf(stderr, fmt, ap);
		va_end(ap);
		fputc('\n', stderr);
	}
	fprintf(stderr, "Try 'icfold %s%s--help'.\n", command ? command : "", command ? " " : "");
	return ICF_EXIT_TROUBLE;
}
