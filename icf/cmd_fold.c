/* cmd_fold.c: icfold [OPTION]... INPUT -o OUTPUT. */
#include "icf/cmd.h"
#include "icf/report.h"
#include "icf/version.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold [OPTION]... INPUT -o OUTPUT\n"
	"Fold functions with identical machine code in a linked ELF program.\n"
	"INPUT must have been linked with -Wl,--emit-relocs.\n"
	"\n"
	"  -o, --output=FILE          write the result to FILE (may be INPUT)\n"
	"      --icf=safe|all|none    safe (default): functions whose address can be observed\n"
	"                             keep one of their own; all: addresses may merge;\n"
	"                             none: rewrite without folding\n"
	"      --no-thunks            with safe: do not fold functions whose address is observed\n"
	"      --keep-unique=SYMBOL   never fold SYMBOL; may be repeated\n"
	"      --keep-unique-file=FILE  the same for each line of FILE\n"
	"      --debug-folded=overlay|alias|drop\n"
	"                             debug information of folded functions (default: overlay)\n"
	"      --strip-debug          leave out the debug information\n"
	"      --emit-relocs          keep the relocations in the output\n"
	"      --keep-build-id        do not change the build-id\n"
	"      --print-icf-sections[=FILE]  list what was folded into what\n"
	"      --map=FILE             write old address, size, new address and name of each unit\n"
	"      --stats[=text|json]    print figures about the run\n"
	"      --threads=N            use N threads (default: all processors)\n"
	"      --time-passes          print the time that each pass took\n"
	"  -q, --quiet                print no summary\n"
	"  -v, --verbose              say what was not folded, and why (twice: each function)\n"
	"  -h, --help                 print this help\n"
	"  -V, --version              print the version\n"
	"      @FILE                  read further arguments from FILE\n"
	"\n"
	"Further commands, each with a --help of its own: icfold verify, icfold symbolize,\n"
	"icfold inlines, icfold dump.\n";

static int fail(const char *file, struct elfrw_err *err)
{
	if (file)
		fprintf(stderr, "icfold: %s: %s\n", file, elfrw_err_text(err));
	else
		fprintf(stderr, "icfold: %s\n", elfrw_err_text(err));
	elfrw_err_free(err);
	return 1;
}

/* Prints through FN to PATH, or to standard output without one. */
static int to_file(const char *path, const struct icf_run *run, void (*fn)(FILE *, const struct icf_run *))
{
	FILE *f = path ? fopen(path, "we") : stdout;
	if (!f)
		return fail(path, elfrw_error_errno(errno, "cannot create"));
	fn(f, run);
	bool bad = fflush(f) != 0 || ferror(f);
	int e = errno;
	if (path && fclose(f) != 0)
		bad = true;
	return bad ? fail(path ? path : "standard output", elfrw_error_errno(e, "cannot write")) : 0;
}

static int reports(const struct icf_run *run, const struct icf_options *opt)
{
	int status = 0;
	if (opt->print_sections)
		status |= to_file(opt->print_sections_file, run, icf_report_folds);
	if (opt->map_file)
		status |= to_file(opt->map_file, run, icf_report_map);
	if (opt->stats != ICF_STATS_NONE)
		icf_report_stats(stdout, run, opt->stats == ICF_STATS_JSON);
	if (opt->verbose)
		icf_report_verbose(stderr, run, opt->verbose);
	if (opt->time_passes)
		icf_report_passes(stderr, run);
	if (!opt->quiet && isatty(STDOUT_FILENO))
		icf_report_summary(stdout, run);
	if (fflush(stdout) != 0)
		status |= fail("standard output", elfrw_error_errno(errno, "cannot write"));
	return status;
}

int icf_cmd_fold(int argc, char **argv)
{
	struct icf_options opt;
	struct elfrw_err *err = icf_options_parse(&opt, argc, argv);
	int status = 0;
	if (err)
		status = fail(NULL, err);
	else if (opt.help)
		fputs(usage, stdout);
	else if (opt.version)
		printf("icfold %s\n", ICF_VERSION);
	else {
		struct icf_run run = { 0 };
		err = icf_run_fold(&run, &opt);
		if (err)
			status = fail(opt.input, err);
		else {
			struct icf_clock t = icf_now();
			err = elfrw_output_write(&run.out, opt.output);
			icf_pass_done(&run, "write", t);
			status = err ? fail(opt.output, err) : reports(&run, &opt);
		}
		icf_run_deinit(&run);
	}
	icf_options_deinit(&opt);
	return status;
}
