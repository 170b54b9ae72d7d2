/* cmd_inlines.c: icfold inlines [OPTION]... FUNCTION FILE. */
#include "icf/cmd.h"
#include "dwarf/symbolize.h"
#include "elfrw/vec.h"
#include "icf/version.h"
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
	"Usage: icfold inlines [OPTION]... FUNCTION FILE\n"
	"List where FUNCTION was inlined: for each unit its declaration, then a line for each\n"
	"piece of code that is a copy: address range, place of the call, direct caller, and the\n"
	"function whose code holds it when that is another one.\n"
	"FUNCTION is a name as in the source, a qualified name, or a linkage name.\n"
	"\n"
	"  -C, --demangle             print names demangled (default)\n"
	"      --no-demangle          print linkage names\n"
	"  -s, --basenames            print file names without directories\n"
	"      --relativenames        print file names as the line table has them\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n"
	"  -h, --help                 print this help\n"
	"  -V, --version              print the version\n";

struct listing {
	struct dwr_sym *sym;
	bool demangle, any;
	uint64_t unit;        /* of the last line; with the declaration that its heading names */
	const char *decl_file;
	uint32_t decl_line;
};

static const char *shown(const struct listing *l, const char *name)
{
	if (!name)
		return "??";
	return l->demangle ? dwr_sym_demangle(l->sym, name) : name;
}

/* A C function gets the parentheses that a demangled name brings along. */
static void print_name(const struct listing *l, const char *name)
{
	const char *text = shown(l, name);
	fputs(text, stdout);
	if (name && !strchr(text, '('))
		fputs("()", stdout);
}

static bool print_item(void *ctx, const struct dwr_sym_inline *item)
{
	struct listing *l = ctx;
	const char *file = item->decl_file ? item->decl_file : "??";
	if (!l->any || l->unit != item->unit || l->decl_line != item->decl_line || strcmp(l->decl_file, file)) {
		printf("%s:%u\n", file, item->decl_line);
		l->any = true;
		l->unit = item->unit;
		l->decl_file = file;
		l->decl_line = item->decl_line;
	}
	printf("\t[0x%" PRIx64 " - 0x%" PRIx64 "]\t%s:%u\t", item->low, item->high, item->call_file ? item->call_file : "??",
	       item->call_line);
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
	fflush(stdout);
	fprintf(stderr, "icfold: %s: %s\n", file, elfrw_err_text(err));
	elfrw_err_free(err);
	return 1;
}

static int list(const char *function, const char *file, const struct dwr_sym_options *options, bool demangle)
{
	struct listing l = { .demangle = demangle };
	struct elfrw_err *err = dwr_sym_open(file, options, &l.sym);
	if (err)
		return fail(file, err);
	int status = 0;
	err = dwr_sym_inlines(l.sym, function, print_item, &l);
	if (err)
		status = fail(file, err);
	else if (fflush(stdout) != 0 || ferror(stdout))
		status = fail("standard output", elfrw_error_errno(errno, "cannot write"));
	else if (dwr_sym_warning(l.sym))
		fprintf(stderr, "icfold: %s: %s\n", file, dwr_sym_warning(l.sym));
	dwr_sym_close(l.sym);
	return status;
}

enum { OPT_NO_DEMANGLE = 256, OPT_RELATIVE, OPT_DEBUG_DIR };

static const struct option options[] = {
	{ "demangle", no_argument, NULL, 'C' },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "basenames", no_argument, NULL, 's' },
	{ "relativenames", no_argument, NULL, OPT_RELATIVE },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

int icf_cmd_inlines(int argc, char **argv)
{
	struct dwr_sym_options opt = { 0 };
	bool demangle = true;
	int c;
	optind = 0; /* start over: the caller may have parsed options of its own */
	argv[0] = (char[]){ "icfold: inlines" };
	while ((c = getopt_long(argc, argv, "CshV", options, NULL)) != -1)
		switch (c) {
		case 'C': demangle = true; break;
		case OPT_NO_DEMANGLE: demangle = false; break;
		case 's': opt.path = DWR_SYM_BASENAME; break;
		case OPT_RELATIVE: opt.path = DWR_SYM_RELATIVE; break;
		case OPT_DEBUG_DIR: opt.debug_dir = optarg; break;
		case 'h': fputs(usage, stdout); return 0;
		case 'V': printf("icfold %s\n", ICF_VERSION); return 0;
		default: return icf_usage_error("inlines", 1, NULL);
		}
	if (argc - optind != 2)
		return icf_usage_error("inlines", 1, "expected FUNCTION and FILE");
	return list(argv[optind], argv[optind + 1], &opt, demangle);
}
