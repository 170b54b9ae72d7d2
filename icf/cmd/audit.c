/* audit.c: icfold audit [OPTION]... INPUT, icfold audit --diff [OPTION]... OLD NEW; products are in
 * audit_product.c. */
#include "icf/cmd/audit.h"
#include "dwarf/symbolize/symbolize.h"
#include "icf/audit/diff.h"
#include "icf/audit/live.h"
#include "icf/cli/report_file.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold audit [OPTION]... INPUT\n"
	"       icfold audit [OPTION]... FILE... | DIRECTORY | ARCHIVE\n"
	"       icfold audit --diff [OPTION]... OLD NEW\n"
	"       icfold audit --why=FUNCTION [--json] INPUT\n"
	"Say what folding would save in a linked ELF program, where the duplicated code comes\n"
	"from, and what stands in the way.  Of several files, of all below a directory, and of a\n"
	"package or an archive: a line for each.  Only the report is written.\n"
	"\n"
	"      --icf=all|safe         list the groups of all (default) or of safe; savings of both\n"
	"                             are always given\n"
	"      --json                 print one JSON object\n"
	"      --csv                  print all tables as one list of comma-separated values\n"
	"      --format=text|json|csv|github|gitlab|sarif  the form of the report; with --diff, the\n"
	"                             last three are annotations for a review: functions that were\n"
	"                             added and were there already\n"
	"      --html=FILE            write a page for a web browser to FILE instead (-: standard\n"
	"                             output)\n"
	"      --rows=FILE            write one row a function to FILE instead (-: standard output),\n"
	"                             for databases: JSON Lines, or CSV if FILE ends in .csv\n"
	"      --package=NAME         what the rows say of the package of the files (default: the\n"
	"                             package that a file is in, or what the file says of itself)\n"
	"      --top=N                print at most N rows of a table, 0: all (default: 20; with\n"
	"                             --json and --csv: all)\n"
	"      --filter=REGEX         only functions with names that match (extended regular\n"
	"                             expression; demangled or linkage names)\n"
	"      --sort=saving|count|size|name  order of groups and tables (default: saving)\n"
	"      --full-names           print full names, and all functions of a group\n"
	"      --files-from=LIST      the files that LIST names, one a line or each with a zero byte\n"
	"                             behind it (-: standard input), too\n"
	"      --memory=BYTES         of several files: memory for all analyses at a time (default:\n"
	"                             1536M)\n"
	"      --no-sources           do not read the debug information\n"
	"      --why=FUNCTION         print instead why FUNCTION is used: who refers to it, up to a\n"
	"                             root; a name, a linkage name or a pattern (*, ?, [...]); may\n"
	"                             be repeated\n"
	"      --diff                 compare two builds: groups that are new, gone, grown, shrunk\n"
	"      --max-growth=BYTES     with --diff: exit 1 when duplicated code grew by more\n"
	"      --max-duplicated=BYTES exit 1 when there is more duplicated code (in NEW)\n" ICF_USAGE_COMMON
	"\n"
	"BYTES may end in K, M or G. Exit status: 0 all well, 1 more duplicated code than allowed,\n"
	"2 trouble.\n";

enum {
	OPT_ICF = 256,
	OPT_JSON,
	OPT_CSV,
	OPT_HTML,
	OPT_ROWS,
	OPT_PACKAGE,
	OPT_TOP,
	OPT_FILTER,
	OPT_SORT,
	OPT_FULL,
	OPT_FORMAT,
	OPT_FILES_FROM,
	OPT_MEMORY,
	OPT_NO_SOURCES,
	OPT_DIFF,
	OPT_WHY,
	OPT_MAX_GROWTH,
	OPT_MAX_DUPLICATED
};

static const struct option options[] = {
	{ "icf", required_argument, NULL, OPT_ICF },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "csv", no_argument, NULL, OPT_CSV },
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "html", required_argument, NULL, OPT_HTML },
	{ "rows", required_argument, NULL, OPT_ROWS },
	{ "package", required_argument, NULL, OPT_PACKAGE },
	{ "top", required_argument, NULL, OPT_TOP },
	{ "filter", required_argument, NULL, OPT_FILTER },
	{ "sort", required_argument, NULL, OPT_SORT },
	{ "full-names", no_argument, NULL, OPT_FULL },
	{ "files-from", required_argument, NULL, OPT_FILES_FROM },
	{ "memory", required_argument, NULL, OPT_MEMORY },
	{ "no-sources", no_argument, NULL, OPT_NO_SOURCES },
	{ "diff", no_argument, NULL, OPT_DIFF },
	{ "why", required_argument, NULL, OPT_WHY },
	{ "max-growth", required_argument, NULL, OPT_MAX_GROWTH },
	{ "max-duplicated", required_argument, NULL, OPT_MAX_DUPLICATED },
	{ 0 },
};

#define LEAST_MEMORY (128ULL << 20)

static int trouble(const char *what, const char *text)
{
	icf_message(what, "%s", text);
	return 2;
}

static int fail(const char *file, struct elfrw_err *err)
{
	int status = trouble(file, elfrw_err_text(err));
	elfrw_err_free(err);
	return status;
}

static bool is_regex(const char *value)
{
	regex_t re;
	if (regcomp(&re, value, REG_EXTENDED | REG_NOSUB) != 0)
		return false;
	regfree(&re);
	return true;
}

/* The index of VALUE among N words, or -1. */
static int word(const char *const *words, size_t n, const char *value)
{
	for (size_t k = 0; k < n; k++)
		if (strcmp(value, words[k]) == 0)
			return (int)k;
	return -1;
}

/* Puts the value of an option into C.  Returns what the value must be, or NULL. */
static const char *take(struct icf_audit_command *c, int option, const char *value)
{
	static const char *const order[] = { [ICF_SORT_SAVING] = "saving",
					     [ICF_SORT_COUNT] = "count",
					     [ICF_SORT_SIZE] = "size",
					     [ICF_SORT_NAME] = "name" };
	static const char *const format[] = {
		[FORMAT_TEXT] = "text",     [FORMAT_JSON] = "json",     [FORMAT_CSV] = "csv",
		[FORMAT_GITHUB] = "github", [FORMAT_GITLAB] = "gitlab", [FORMAT_SARIF] = "sarif"
	};
	uint64_t n;
	int k;
	switch (option) {
	case OPT_ICF:
		if (strcmp(value, "all") != 0 && strcmp(value, "safe") != 0)
			return "all or safe";
		c->opt.mode = *value == 'a' ? ICF_AUDIT_ALL : ICF_AUDIT_SAFE;
		return NULL;
	case OPT_JSON: c->format = FORMAT_JSON; return NULL;
	case OPT_CSV: c->format = FORMAT_CSV; return NULL;
	case OPT_HTML: c->html = value; return *value ? NULL : "the name of a file";
	case OPT_ROWS: c->rows = value; return *value ? NULL : "the name of a file";
	case OPT_PACKAGE: c->package = value; return NULL;
	case OPT_TOP:
		if (!icf_number(value, UINT32_MAX, &n))
			return "a number";
		c->opt.top = (uint32_t)n;
		c->top_given = true;
		return NULL;
	case OPT_FILTER:
		c->opt.filter = value;
		return is_regex(value) ? NULL : "an extended regular expression";
	case OPT_SORT:
		k = word(order, sizeof order / sizeof *order, value);
		if (k < 0)
			return "saving, count, size or name";
		c->opt.sort = (enum icf_audit_sort)k;
		return NULL;
	case OPT_FORMAT:
		k = word(format, sizeof format / sizeof *format, value);
		if (k < 0)
			return "text, json, csv, github, gitlab or sarif";
		c->format = k;
		return NULL;
	case OPT_FULL: c->opt.full_names = true; return NULL;
	case OPT_FILES_FROM: c->files_from = value; return *value ? NULL : "the name of a file";
	case OPT_MEMORY:
		return icf_size(value, INT64_MAX, &c->memory) && c->memory >= LEAST_MEMORY
			       ? NULL
			       : "a number of bytes, 128M or more";
	case OPT_NO_SOURCES: c->opt.no_sources = true; return NULL;
	case OPT_DIFF: c->diff = true; return NULL;
	case OPT_WHY: c->why[c->n_why++] = value; return *value ? NULL : "a name or a pattern";
	case OPT_MAX_GROWTH:
		return icf_size(value, INT64_MAX, &c->max_growth) ? NULL : "a number of bytes";
	case OPT_MAX_DUPLICATED:
		return icf_size(value, INT64_MAX, &c->max_duplicated) ? NULL : "a number of bytes";
	}
	return NULL;
}

static int close_output(int status)
{
	if (fflush(stdout) != 0 || ferror(stdout))
		return trouble("standard output", "cannot write");
	return status;
}

/* Checks the duplicated code of A against the limit, and reports an excess. */
static int check_duplicated(const struct icf_audit_command *c, const struct icf_audit *a,
			    const char *path)
{
	uint64_t bytes = a->total[c->opt.mode].duplicated;
	if (bytes <= c->max_duplicated)
		return ICF_EXIT_OK;
	icf_message(path, "%" PRIu64 " bytes of duplicated code, more than the %" PRIu64 " allowed",
		    bytes, c->max_duplicated);
	return ICF_EXIT_NO;
}

static int audit_one(const struct icf_audit_command *c, const char *path)
{
	struct icf_audit a = { 0 };
	int status = 0;
	struct elfrw_err *err = icf_audit_analyse(&a, path, &c->opt);
	if (err)
		status = fail(path, err);
	else {
		if (c->html)
			err = icf_audit_write_html(c->html, &a, &c->opt);
		else if (c->format == FORMAT_JSON)
			err = icf_audit_print_json(stdout, &a, &c->opt);
		else if (c->format == FORMAT_CSV)
			err = icf_audit_print_csv(stdout, &a, &c->opt);
		else
			err = icf_audit_print_text(stdout, &a, &c->opt);
		status = err ? fail(c->html ? c->html : path, err) : close_output(0);
		if (!status)
			status = check_duplicated(c, &a, path);
		if (a.warning && !c->quiet)
			icf_message(path, "%s", a.warning);
	}
	icf_audit_deinit(&a);
	return status;
}

static int audit_why(const struct icf_audit_command *c, const char *path)
{
	struct icf_run run = { 0 };
	const struct icf_live_query query = { c->why, c->n_why, c->format == FORMAT_JSON };
	const char *obstacle, *missing = NULL;
	int status = 0;
	struct elfrw_err *err = icf_live_analyse(&run, path, c->opt.threads, &obstacle);
	if (!err && obstacle)
		err = elfrw_error("it cannot be said what is used: %s", obstacle);
	if (!err)
		err = icf_live_print(stdout, &run, &query, &missing);
	status = err ? fail(path, err) : close_output(0);
	if (!status && missing) {
		icf_message(path, "--why: no function is named %s", missing);
		status = ICF_EXIT_NO;
	}
	icf_run_deinit(&run);
	return status;
}

static int audit_two(const struct icf_audit_command *c, char **path)
{
	struct icf_audit a[2];
	struct icf_audit_options opt = c->opt;
	struct icf_audit_diff d = { 0 };
	int status = 0;
	memset(a, 0, sizeof a);
	opt.no_sources = true;
	for (int k = 0; k < 2 && !status; k++) {
		struct elfrw_err *err = icf_audit_analyse(&a[k], path[k], &opt);
		if (err)
			status = fail(path[k], err);
	}
	if (!status) {
		struct elfrw_err *err = icf_audit_compare_builds(&d, &a[0], &a[1], &opt);
		if (!err && c->format == FORMAT_JSON)
			icf_audit_diff_json(stdout, &d, &opt);
		else if (!err)
			icf_audit_diff_text(stdout, &d, &opt);
		status = err ? fail(path[1], err) : close_output(0);
	}
	if (!status && d.growth > 0 && (uint64_t)d.growth > c->max_growth) {
		icf_message(path[1],
			    "duplicated code grew by %" PRId64 " bytes, more than the %" PRIu64
			    " allowed",
			    d.growth, c->max_growth);
		status = ICF_EXIT_NO;
	} else if (!status)
		status = check_duplicated(c, &a[1], path[1]);
	icf_audit_diff_deinit(&d);
	icf_audit_deinit(&a[0]);
	icf_audit_deinit(&a[1]);
	return status;
}

/* Would the page or the rows replace what is read? */
static struct elfrw_err *check_outputs(const struct icf_audit_command *c,
				       const struct icf_cmdline *line)
{
	char *list = (char *)c->files_from;
	ELFRW_TRY(icf_report_check(c->html, "the page", line->operand, (size_t)line->n));
	ELFRW_TRY(icf_report_check(c->html, "the page", &list, list != NULL));
	ELFRW_TRY(icf_report_check(c->rows, "the rows", line->operand, (size_t)line->n));
	return icf_report_check(c->rows, "the rows", &list, list != NULL);
}

static int run_command(struct icf_audit_command *c, struct icf_cmdline *line)
{
	for (int k; (k = icf_cmdline_next(line)) != -1;) {
		if (k == ICF_CMDLINE_EXIT)
			return line->status;
		const char *must = take(c, k, optarg);
		if (must)
			return icf_usage_error("audit", "--%s=%s: must be %s",
					       options[line->which].name, optarg, must);
	}
	c->html = icf_report_file(c->html);
	c->rows = icf_report_file(c->rows);
	c->opt.threads = line->threads;
	c->quiet = line->quiet;
	if (!c->top_given && (c->format != FORMAT_TEXT || c->html))
		c->opt.top = 0;
	if (c->diff && (c->html || c->format == FORMAT_CSV))
		return icf_usage_error("audit", "--diff prints text or JSON");
	if (c->n_why && (c->html || c->diff || c->format == FORMAT_CSV))
		return icf_usage_error("audit", "--why prints text or JSON, of one file");
	if (c->rows && (c->html || c->diff || c->n_why || c->format != FORMAT_TEXT))
		return icf_usage_error("audit", "--rows writes no other report");
	struct elfrw_err *err = check_outputs(c, line);
	if (err)
		return fail(c->html ? c->html : c->rows, err);
	if (c->max_growth != UINT64_MAX && !c->diff)
		return icf_usage_error("audit", "--max-growth goes with --diff");
	if (c->format >= FORMAT_GITHUB && (!c->diff || c->html || c->n_why))
		return icf_usage_error("audit", "--format=github, gitlab and sarif go with --diff");
	if (c->diff && line->n == 2 && !c->files_from &&
	    icf_audit_is_product(c, line->operand, line->n))
		return icf_audit_products(c, line->operand);
	if (c->rows && (line->n || c->files_from))
		return icf_audit_write_rows(c, line->operand, line->n);
	if ((line->n || c->files_from) && icf_audit_is_product(c, line->operand, line->n)) {
		if (c->n_why || c->diff)
			return icf_usage_error("audit", "%s is about %s",
					       c->n_why ? "--why" : "--diff",
					       c->diff ? "two files or products" : "one file");
		return icf_audit_product(c, line->operand, line->n);
	}
	if (line->n != (c->diff ? 2 : 1))
		return icf_usage_error("audit", c->diff ? "expected two files, OLD and NEW"
							: "expected one file");
	if (c->n_why)
		return audit_why(c, line->operand[0]);
	return c->diff ? audit_two(c, line->operand) : audit_one(c, line->operand[0]);
}

int icf_cmd_audit(int argc, char **argv)
{
	struct icf_audit_command c = { .opt = { .top = 20 },
				       .memory = 1536ULL << 20,
				       .why = malloc((size_t)argc * sizeof *c.why),
				       .max_growth = UINT64_MAX,
				       .max_duplicated = UINT64_MAX };
	struct icf_cmdline line = ICF_CMDLINE("audit", usage, argc, argv);
	if (!c.why)
		return trouble(NULL, "out of memory");
	icf_cmdline_init(&line, "", options);
	int status = run_command(&c, &line);
	free(c.why);
	return status;
}
