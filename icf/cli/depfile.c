/* depfile.c: see depfile.h.
 *
 * Names are written as compilers do with -MD, which make and ninja both read: a backslash before a
 * blank, a number sign or a colon, with backslashes in front of it doubled; and two dollar signs
 * for one.  A name that has no spelling for both is refused, above all a name that make would run
 * (GNU make, "Rule Syntax", "Setting Variables", "Target-specific").  A semicolon begins a recipe;
 * a bar begins prerequisites that are not looked at; "a: SHELL=b" and "a: b!=c" are assignments,
 * not rules.  A name with a folder in front is harmless: nothing reads such a variable. */
#include "icf/cli/depfile.h"
#include <string.h>

static void print_name(FILE *f, const char *name)
{
	size_t backslashes = 0;
	for (const char *p = name; *p; p++) {
		switch (*p) {
		case ' ':
		case '\t':
		case '#':
		case ':':
			while (backslashes--)
				fputc('\\', f);
			fputc('\\', f);
			break;
		case '$': fputc('$', f); break;
		}
		backslashes = *p == '\\' ? backslashes + 1 : 0;
		fputc(*p, f);
	}
}

static struct elfrw_err *check_name(const char *name)
{
	const char *equal = strchr(name, '=');
	if (strpbrk(name, "\r\n"))
		return elfrw_error(
			"%s: a file name with a line break cannot be written to a depfile", name);
	if (strpbrk(name, ";|") || strstr(name, "!=") ||
	    (equal && !memchr(name, '/', (size_t)(equal - name))))
		return elfrw_error(
			"%s: make would not take this for the name of a file: it cannot be written to a depfile",
			name);
	return NULL;
}

struct elfrw_err *icf_depfile_check(const struct icf_options *opt)
{
	ELFRW_TRY(check_name(opt->output));
	ELFRW_TRY(check_name(opt->input));
	if (opt->debug_file)
		ELFRW_TRY(check_name(opt->debug_file));
	for (size_t i = 0; i < opt->args.n_file; i++)
		ELFRW_TRY(check_name(opt->args.file[i]));
	return NULL;
}

void icf_depfile_print(FILE *f, const struct icf_options *opt)
{
	print_name(f, opt->output);
	fputc(':', f);
	/* A file made from itself is a circle to make, and not worth a rule. */
	if (strcmp(opt->input, opt->output) != 0) {
		fputc(' ', f);
		print_name(f, opt->input);
	}
	if (opt->debug_file &&
	    (!opt->debug_output || strcmp(opt->debug_file, opt->debug_output) != 0)) {
		fputc(' ', f);
		print_name(f, opt->debug_file);
	}
	for (size_t i = 0; i < opt->args.n_file; i++) {
		fputs(" \\\n  ", f);
		print_name(f, opt->args.file[i]);
	}
	fputc('\n', f);
}
