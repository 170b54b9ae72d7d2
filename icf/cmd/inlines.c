/* inlines.c: icfold inlines [OPTION]... FUNCTION FILE. */
#include "elfrw/base/printable.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/vec.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"Usage: icfold inlines [OPTION]... FUNCTION FILE\n"
	"List where FUNCTION was inlined: for each unit its declaration, then a line for each\n"
	"piece of code that is a copy: address range, place of the call, direct caller, and the\n"
	"function whose code holds it, if that is another one.\n"
	"FUNCTION is a name as in the source, a qualified name, or a linkage name.\n"
	"\n"
	"  -C, --demangle             print names demangled (default)\n"
	"      --no-demangle          print linkage names\n"
	"  -s, --basenames            print file names without directories\n"
	"      --relativenames        print file names as the line table has them\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n"
	"      --json                 print an array of objects\n" ICF_USAGE_COMMON "\n"
	"Exit status: 0, or 2 for trouble.\n";

struct listing {
	struct dwr_sym *sym;
	bool demangle, json, any;
	uint64_t unit; /* unit of the last line; with the declaration in its heading */
	const char *decl_file;
	uint32_t decl_line;
};

static const char *shown(const struct listing *l, const char *name)
{
	if (!name)
		return "??";
	return l->demangle ? dwr_sym_demangle(l->sym, name) : name;
}

/* A C function gets parentheses, which a demangled name already has. */
static void print_name(const struct listing *l, const char *name)
{
	const char *text = shown(l, name);
	elfrw_put_printable(stdout, text);
	if (name && !strchr(text, '('))
		fputs("()", stdout);
}

/* A member of an object; NULL is null. */
static void json_text(const char *key, const char *text)
{
	printf("\"%s\": ", key);
	if (text)
		elfrw_put_json(stdout, text, "");
	else
		fputs("null", stdout);
}

static bool print_json(void *ctx, const struct dwr_sym_inline *item)
{
	struct listing *l = ctx;
	const char *outer = item->outer ? item->outer : item->caller;
	printf("%s\n  { ", l->any ? "," : "");
	l->any = true;
	json_text("decl_file", item->decl_file);
	printf(", \"decl_line\": %u, \"low\": \"0x%" PRIx64 "\", \"high\": \"0x%" PRIx64 "\", ",
	       item->decl_line, item->low, item->high);
	json_text("call_file", item->call_file);
	printf(", \"call_line\": %u, ", item->call_line);
	/* One at a time: the next name overwrites the text of a demangled name. */
	json_text("caller", item->caller ? shown(l, item->caller) : NULL);
	fputs(", ", stdout);
	json_text("function", outer ? shown(l, outer) : NULL);
	fputs(" }", stdout);
	return !ferror(stdout);
}

static bool print_item(void *ctx, const struct dwr_sym_inline *item)
{
	struct listing *l = ctx;
	const char *file = item->decl_file ? item->decl_file : "??";
	if (!l->any || l->unit != item->unit || l->decl_line != item->decl_line ||
	    strcmp(l->decl_file, file)) {
		elfrw_put_printable(stdout, file);
		printf(":%u\n", item->decl_line);
		l->any = true;
		l->unit = item->unit;
		l->decl_file = file;
		l->decl_line = item->decl_line;
	}
	printf("\t[0x%" PRIx64 " - 0x%" PRIx64 "]\t", item->low, item->high);
	elfrw_put_printable(stdout, item->call_file ? item->call_file : "??");
	printf(":%u\t", item->call_line);
	print_name(l, item->caller);
	if (item->outer && (!item->caller || strcmp(item->outer, item->caller))) {
		fputs(" in ", stdout);
		print_name(l, item->outer);
	}
	putchar('\n');
	return !ferror(stdout);
}

static int fail(const char *file, struct elfrw_err *err)
{
	icf_message(file, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return ICF_EXIT_TROUBLE;
}

/* Lists the copies as L says. */
static int list(struct listing l, const char *function, const char *file,
		const struct dwr_sym_options *options, bool quiet)
{
	struct elfrw_err *err = dwr_sym_open(file, options, &l.sym);
	if (err)
		return fail(file, err);
	int status = 0;
	if (l.json)
		putchar('[');
	err = dwr_sym_inlines(l.sym, function, l.json ? print_json : print_item, &l);
	if (l.json)
		fputs("\n]\n", stdout);
	if (err)
		status = fail(file, err);
	else if (fflush(stdout) != 0 || ferror(stdout))
		status = fail("standard output", elfrw_error_errno(errno, "cannot write"));
	else if (dwr_sym_warning(l.sym) && !quiet)
		icf_message(file, "%s", dwr_sym_warning(l.sym));
	dwr_sym_close(l.sym);
	return status;
}

enum { OPT_NO_DEMANGLE = 256, OPT_RELATIVE, OPT_DEBUG_DIR, OPT_JSON };

static const struct option options[] = {
	{ "demangle", no_argument, NULL, 'C' },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "basenames", no_argument, NULL, 's' },
	{ "relativenames", no_argument, NULL, OPT_RELATIVE },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "json", no_argument, NULL, OPT_JSON },
	{ 0 },
};

int icf_cmd_inlines(int argc, char **argv)
{
	struct dwr_sym_options opt = { 0 };
	struct listing how = { .demangle = true };
	struct icf_cmdline line = ICF_CMDLINE("inlines", usage, argc, argv);
	icf_cmdline_init(&line, "Cs", options);
	for (int c; (c = icf_cmdline_next(&line)) != -1;)
		switch (c) {
		case 'C': how.demangle = true; break;
		case OPT_NO_DEMANGLE: how.demangle = false; break;
		case 's': opt.path = DWR_SYM_BASENAME; break;
		case OPT_RELATIVE: opt.path = DWR_SYM_RELATIVE; break;
		case OPT_DEBUG_DIR: opt.debug_dir = optarg; break;
		case OPT_JSON: how.json = true; break;
		default: return line.status;
		}
	if (line.n != 2)
		return icf_usage_error("inlines", "expected FUNCTION and FILE");
	return list(how, line.operand[0], line.operand[1], &opt, line.quiet);
}
