/* advice.c: what saves most, and the command that gets it. */
#include "elfrw/base/printable.h"
#include "icf/audit/audit.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void put(char *text, size_t size, const char *fmt, va_list ap)
{
	size_t n = strlen(text);
	vsnprintf(text + n, size - n, fmt, ap);
}

void icf_advice_what(struct icf_advice *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put(a->what, sizeof a->what, fmt, ap);
	va_end(ap);
}

void icf_advice_command(struct icf_advice *a, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	put(a->command, sizeof a->command, fmt, ap);
	va_end(ap);
}

void icf_advice_word(struct icf_advice *a, const char *s)
{
	static const char plain[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:@%,";
	if (*s && *s != '-' && strspn(s, plain) == strlen(s)) {
		icf_advice_command(a, " %s", s);
		return;
	}
	icf_advice_command(a, *s == '-' ? " ./'" : " '");
	for (; *s; s++)
		icf_advice_command(a, *s == '\'' ? "'\\''" : "%c", *s);
	icf_advice_command(a, "'");
}

static int order(const void *a, const void *b)
{
	const struct icf_advice *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->what, y->what);
}

unsigned icf_advice_best(struct icf_advice *all, unsigned n, struct icf_advice *ret)
{
	unsigned k = 0;
	qsort(all, n, sizeof *all, order);
	for (; k < n && k < ICF_ADVICE && all[k].bytes; k++)
		ret[k] = all[k];
	return k;
}

/* TEXT_AFTER: what remains of .text. */
static void add(const struct icf_audit *a, struct icf_advice *ret, uint64_t text_after,
		const char *what, const char *options)
{
	ret->bytes = a->text > text_after ? a->text - text_after : 0;
	icf_advice_what(ret, "%s", what);
	icf_advice_command(ret, "icfold %s", options);
	icf_advice_word(ret, a->run.img.path);
	icf_advice_command(ret, " -o folded");
}

unsigned icf_audit_advise(const struct icf_audit *a, struct icf_advice *ret)
{
	const uint64_t all = a->total[ICF_AUDIT_ALL].text_after,
		       safe = a->total[ICF_AUDIT_SAFE].text_after;
	struct icf_advice x[4] = { 0 };
	unsigned n = 0;
	add(a, &x[n++], safe, "Fold the identical functions", "--icf=safe");
	if (all < safe)
		add(a, &x[n++], all,
		    "Fold the identical functions, also where the program may compare their addresses",
		    "--icf=all");
	if (!a->unused.obstacle && a->unused.functions) {
		add(a, &x[n++], a->unused.alone, "Remove the functions that nothing uses",
		    "--gc-functions --icf=none");
		add(a, &x[n++], a->unused.with[ICF_AUDIT_SAFE],
		    "Remove the functions that nothing uses, and fold the identical ones",
		    "--gc-functions --icf=safe");
	}
	return icf_advice_best(x, n, ret);
}

void icf_advice_text(FILE *f, const struct icf_advice *a, unsigned n)
{
	if (n)
		fputs("\nWhat saves most\n", f);
	for (unsigned k = 0; k < n; k++) {
		fprintf(f, "%10" PRIu64 "   ", a[k].bytes);
		elfrw_put_printable_line(f, a[k].what);
		fprintf(f, "%13s", "");
		elfrw_put_printable_line(f, a[k].command);
	}
}

void icf_advice_json(FILE *f, const struct icf_advice *a, unsigned n)
{
	fputs("\"advice\": [", f);
	for (unsigned k = 0; k < n; k++) {
		fprintf(f, "%s\n    { \"bytes\": %" PRIu64 ", \"what\": ", k ? "," : "",
			a[k].bytes);
		icf_put_json(f, a[k].what);
		fputs(", \"command\": ", f);
		icf_put_json(f, a[k].command);
		fputs(" }", f);
	}
	fputs(" ]", f);
}
