/* usage.c: messages.  An error in a command line is followed by a hint to --help, as in the GNU
 * tools. */
#include "elfrw/base/memstream.h"
#include "elfrw/base/printable.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static void put_line(FILE *to, const char *head, const char *text)
{
	fputs("icfold: ", to);
	if (head) {
		elfrw_put_printable(to, head);
		fputs(": ", to);
	}
	elfrw_put_printable_line(to, text);
}

/* Prints HEAD and text as one line.  If there is memory, the line is written at once, since others
 * may write to the same terminal. */
static void put_message(const char *head, const char *fmt, va_list ap)
{
	char few[512], *text = NULL, *line = NULL;
	size_t size;
	va_list again;
	va_copy(again, ap);
	if (vsnprintf(few, sizeof few, fmt, ap) < (int)sizeof few ||
	    vasprintf(&text, fmt, again) < 0)
		text = NULL;
	va_end(again);
	FILE *f = open_memstream(&line, &size);
	if (f)
		put_line(f, head, text ? text : few);
	if (f && elfrw_memstream_close(f, &line))
		fwrite(line, 1, size, stderr);
	else
		put_line(stderr, head, text ? text : few);
	free(line);
	free(text);
}

void icf_message(const char *file, const char *fmt, ...)
{
	va_list ap;
	fflush(stdout);
	va_start(ap, fmt);
	put_message(file, fmt, ap);
	va_end(ap);
}

int icf_usage_error(const char *command, const char *fmt, ...)
{
	va_list ap;
	fflush(stdout);
	va_start(ap, fmt);
	put_message(command, fmt, ap);
	va_end(ap);
	fprintf(stderr, "Try 'icfold %s%s--help'.\n", command ? command : "", command ? " " : "");
	return ICF_EXIT_TROUBLE;
}
