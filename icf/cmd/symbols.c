/* symbols.c: icfold symbols --format=FORMAT [OPTION]... FILE */
#include "elfrw/base/newfile.h"
#include "icf/cli/report_file.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/export/export.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold symbols --format=FORMAT [OPTION]... FILE\n"
	"Write what is known of the code of FILE, a program, library or debug file, in the format of another\n"
	"tool: functions, lines, inlined calls.\n"
	"\n"
	"      --format=breakpad      symbol file of Breakpad and Crashpad, with unwind rules\n"
	"      --format=gsym          GSYM, with all functions that share code, and their calls\n"
	"      --format=json          JSON, with the same\n"
	"  -o, --output=FILE          write there (default: standard output)\n"
	"      --debug-file=FILE      the separate debug file of the program, if it is not found by\n"
	"                             build-id or .gnu_debuglink\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n" ICF_USAGE_COMMON
	"\n"
	"Exit status: 0, or 2 for trouble.\n";

enum { OPT_FORMAT = 256, OPT_DEBUG_FILE, OPT_DEBUG_DIR };

static const struct option options[] = {
	{ "format", required_argument, NULL, OPT_FORMAT },
	{ "output", required_argument, NULL, 'o' },
	{ "debug-file", required_argument, NULL, OPT_DEBUG_FILE },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ 0 },
};

static const char *const format_name[] = {
	[ICF_EXPORT_BREAKPAD] = "breakpad",
	[ICF_EXPORT_GSYM] = "gsym",
	[ICF_EXPORT_JSON] = "json",
};

/* -1: go on, else the exit status. */
static int set_format(struct icf_export_in *in, const char *name)
{
	for (int i = 1; i < ICF_EXPORT_FORMATS; i++)
		if (!strcmp(name, format_name[i])) {
			in->format = (enum icf_export_format)i;
			return -1;
		}
	return icf_usage_error("symbols", "--format=%s: must be breakpad, gsym or json", name);
}

/* Writes to F, which has no name yet, by a stream of its own. */
static struct elfrw_err *write_file(struct icf_export_in *in, const struct elfrw_newfile *f,
				    struct icf_export_counts *counts)
{
	int fd = dup(f->fd);
	in->out = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!in->out) {
		int errnum = errno;
		if (fd >= 0)
			close(fd);
		return elfrw_error_errno(errnum, "cannot write");
	}
	struct elfrw_err *err = icf_export(in, counts);
	bool bad = ferror(in->out);
	if ((fclose(in->out) != 0 || bad) && !err)
		err = elfrw_err_about(f->path, elfrw_error_errno(errno, "cannot write"));
	else
		err = elfrw_err_about(in->file, err);
	return err;
}

static struct elfrw_err *run(struct icf_export_in *in, const char *output,
			     struct icf_export_counts *counts)
{
	struct elfrw_newfile f = { 0 };
	if (output) {
		char *input = (char *)in->file;
		ELFRW_TRY(elfrw_err_about(output,
					  icf_report_check(output, "the symbols", &input, 1)));
		ELFRW_TRY(elfrw_err_about(output, elfrw_newfile_begin(&f, output, 0666)));
		struct elfrw_err *err = write_file(in, &f, counts);
		if (!err)
			return elfrw_err_about(output, elfrw_newfile_commit(&f));
		elfrw_newfile_drop(&f);
		return err;
	}
	in->out = stdout;
	struct elfrw_err *err = elfrw_err_about(in->file, icf_export(in, counts));
	if (!err && (fflush(stdout) != 0 || ferror(stdout)))
		err = elfrw_error_errno(errno, "cannot write standard output");
	return err;
}

static void remark(const struct icf_export_in *in, const struct icf_export_counts *c,
		   unsigned verbose)
{
	if (c->warning)
		icf_message(in->file, "%s", c->warning);
	if (c->crowded)
		icf_message(in->file,
			    "the inlined calls of %" PRIu64
			    " functions are left out: there are too many",
			    c->crowded);
	if (verbose)
		icf_message(in->file,
			    "%" PRIu64 " pieces of code, %" PRIu64
			    " of them shared by several functions",
			    c->functions, c->shared);
}

int icf_cmd_symbols(int argc, char **argv)
{
	struct dwr_sym_options opt = { 0 };
	struct icf_export_in in = { .options = &opt };
	struct icf_export_counts counts = { 0 };
	struct icf_cmdline line = ICF_CMDLINE("symbols", usage, argc, argv);
	const char *output = NULL;
	int status = -1;
	icf_cmdline_init(&line, "o:", options);
	for (int c; status < 0 && (c = icf_cmdline_next(&line)) != -1;)
		switch (c) {
		case OPT_FORMAT: status = set_format(&in, optarg); break;
		case 'o': output = strcmp(optarg, "-") == 0 ? NULL : optarg; break;
		case OPT_DEBUG_FILE: opt.debug_file = optarg; break;
		case OPT_DEBUG_DIR: opt.debug_dir = optarg; break;
		default: status = line.status;
		}
	if (status >= 0)
		return status;
	if (line.n != 1)
		return icf_usage_error("symbols", "expected FILE");
	if (!in.format)
		return icf_usage_error("symbols", "expected --format=FORMAT");
	if (in.format == ICF_EXPORT_GSYM && !output && isatty(STDOUT_FILENO))
		return icf_usage_error("symbols", "--format=gsym writes binary data; "
						  "standard output is a terminal");
	in.file = line.operand[0];
	struct elfrw_err *err = run(&in, output, &counts);
	if (!err && !line.quiet)
		remark(&in, &counts, line.verbose);
	free(counts.warning);
	if (!err)
		return ICF_EXIT_OK;
	icf_message(NULL, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return ICF_EXIT_TROUBLE;
}
