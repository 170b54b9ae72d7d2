/* fold.c: icfold [OPTION]... INPUT -o OUTPUT. */
#include "icf/audit/live.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/cli/depfile.h"
#include "icf/cli/report_file.h"
#include "icf/fold/unused.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/parallel.h"
#include "icf/apply/debuglink.h"
#include "icf/cmd/process.h"
#include "icf/report.h"
#include "icf/verify/verify.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold COMMAND [ARGUMENT]...\n"
	"       icfold [fold] [OPTION]... INPUT -o OUTPUT\n"
	"\n"
	"Commands:\n"
	"  fold                       fold functions with identical machine code in a linked ELF\n"
	"                             program; what icfold does without a command\n"
	"  verify                     prove that a program is another one, folded\n"
	"  symbolize                  functions, files and lines of addresses, stacks, cores, profiles\n"
	"  inlines                    where a function was inlined\n"
	"  profile                    a profile of a folded program, for the program before folding\n"
	"  symbols                    what is known of a program's code, for other tools\n"
	"  audit                      what folding would save, and what stands in the way\n"
	"  dump                       what folding recorded in a file\n"
	"  --linker-wrapper           run a linker, then fold what it has linked\n"
	"  help [COMMAND]             print the help of COMMAND, as COMMAND --help does\n"
	"\n"
	"Options of fold:\n"
	"  -o, --output=FILE          write the result to FILE (may be INPUT)\n"
	"      --icf=safe|all|none    safe (default): functions whose address can be observed\n"
	"                             keep distinct addresses; all: addresses may merge;\n"
	"                             none: rewrite without folding\n"
	"      --no-thunks            with safe: do not fold functions whose address is observed\n"
	"      --keep-unique=SYMBOL   never fold SYMBOL; may be repeated\n"
	"      --keep-unique-file=FILE  the same for each line of FILE\n"
	"      --gc-functions[=objects|functions]  remove functions that nothing can reach;\n"
	"                             functions: all virtual tables count as used\n"
	"      --keep=SYMBOL          with it: SYMBOL is used; may be a pattern (*, ?, [...]), and\n"
	"                             be repeated\n"
	"      --keep-file=FILE       the same for each line of FILE\n"
	"      --why-live=SYMBOL      with --gc-functions: print why SYMBOL stays; may be a\n"
	"                             pattern, and be repeated\n"
	"      --debug-folded=overlay|alias|drop\n"
	"                             debug information of folded functions (default: overlay)\n"
	"      --debug-output=FILE    fold INPUT's separate debug file too, and write it to FILE\n"
	"      --debug-file=FILE      the separate debug file of INPUT (default: found by\n"
	"                             build-id or .gnu_debuglink)\n"
	"      --debug-file-directory=DIR  where debug files are (default: /usr/lib/debug)\n"
	"      --strip-debug          leave out the debug information\n"
	"      --strip-all            leave out the debug information and the symbols\n"
	"      --emit-relocs          keep the relocations in the output\n"
	"      --emit-vtables         describe vtables with folded functions in the debug information\n"
	"      --in-place             move nothing: folded functions become jumps\n"
	"      --allow-growth         fold even if FILE gets larger than INPUT (default: FILE\n"
	"                             is then INPUT byte for byte)\n"
	"      --require-compact      fail if only folding in place is possible\n"
	"      --keep-build-id        do not change the build-id\n"
	"      --verify               write FILE only if it is proved to be INPUT folded\n"
	"      --write-if-changed     do not touch FILE if it already has the right bytes\n"
	"      --print-icf-sections[=FILE]  list what was folded into what\n"
	"      --print-gc-functions[=FILE]  list what was removed\n"
	"      --map=FILE             write old address, size, new address and name of each unit\n"
	"      --depfile=FILE         write a rule for make and ninja: OUTPUT: INPUT ...  For these four,\n"
	"                             - is standard output\n"
	"      --summary[=always|auto|never]  print what was saved; auto: on a terminal (default)\n"
	"      --stats[=text|json]    print figures about the run\n"
	"      --json                 the same as --stats=json\n"
	"      --time-passes          print the time that each pass took\n"
	"      @FILE                  read further arguments from FILE\n" ICF_USAGE_COMMON "\n"
	"Link INPUT with -Wl,--emit-relocs; without it, code that cannot be proved movable stays.\n"
	"-v says what was not folded, and why; -v -v names each function. Exit status: 0 OUTPUT is\n"
	"complete, 1 INPUT cannot be folded safely, 2 trouble (a file, the command line).\n";

static int fail(const char *file, struct elfrw_err *err)
{
	icf_message(file, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return ICF_EXIT_TROUBLE;
}

/* A run of more seconds shows its progress. */
#define PROGRESS_AFTER 2.0

/* An output file besides OUTPUT. */
struct side {
	const char *path;
	void (*print)(FILE *f, const struct icf_run *run); /* NULL: the depfile */
	struct elfrw_newfile file;
};
#define MAX_SIDES 4

static size_t sides_of(const struct icf_options *opt, struct side *side)
{
	size_t n = 0;
	if (opt->print_sections && opt->print_sections_file)
		side[n++] = (struct side){ .path = opt->print_sections_file,
					   .print = icf_report_folds };
	if (opt->print_gc && opt->print_gc_file)
		side[n++] =
			(struct side){ .path = opt->print_gc_file, .print = icf_report_removed };
	if (opt->map_file)
		side[n++] = (struct side){ .path = opt->map_file, .print = icf_report_map };
	if (opt->depfile)
		side[n++] = (struct side){ .path = opt->depfile };
	return n;
}

/* Were arguments or names read from PATH? */
static bool is_list(const struct icf_options *opt, const char *path)
{
	for (size_t i = 0; i < opt->args.n_file; i++)
		if (elfrw_newfile_same_place(path, opt->args.file[i]))
			return true;
	return false;
}

/* Checks, before anything is done, that no file would replace another one. */
static int check_files(const struct icf_options *opt)
{
	struct side side[MAX_SIDES];
	size_t n = sides_of(opt, side);
	const char *written[MAX_SIDES + 2] = { opt->output, opt->debug_output };
	for (size_t i = 0; i < n; i++)
		written[2 + i] = side[i].path;
	for (size_t i = 0; i < n + 2; i++)
		if (written[i] && is_list(opt, written[i]))
			return fail(
				written[i],
				elfrw_error("holds arguments or names and cannot be written too"));
	if (opt->debug_output) {
		if (elfrw_newfile_same_place(opt->debug_output, opt->input))
			return fail(opt->debug_output,
				    elfrw_error("is the input and cannot be a debug file too"));
		if (elfrw_newfile_same_place(opt->debug_output, opt->output))
			return fail(opt->debug_output,
				    elfrw_error("is asked for as two different files"));
	}
	for (size_t i = 0; i < n; i++) {
		if (opt->debug_file && elfrw_newfile_same_place(side[i].path, opt->debug_file))
			return fail(side[i].path,
				    elfrw_error("is the debug file and cannot be a report too"));
		if (elfrw_newfile_same_place(side[i].path, opt->input))
			return fail(side[i].path,
				    elfrw_error("is the input and cannot be a report too"));
		bool twice = elfrw_newfile_same_place(side[i].path, opt->output) ||
			     (opt->debug_output &&
			      elfrw_newfile_same_place(side[i].path, opt->debug_output));
		for (size_t k = 0; k < i; k++)
			twice |= elfrw_newfile_same_place(side[i].path, side[k].path);
		if (twice)
			return fail(side[i].path,
				    elfrw_error("is asked for as two different files"));
		struct elfrw_err *err = icf_report_check(side[i].path, "a report", NULL, 0);
		if (err)
			return fail(side[i].path, err);
	}
	struct elfrw_err *err = icf_output_check(opt->output);
	if (err)
		return fail(opt->output, err);
	err = opt->depfile ? icf_depfile_check(opt) : NULL;
	return err ? fail(NULL, err) : 0;
}

/* After an error there is nothing to drop. */
static struct elfrw_err *begin_side(struct side *side, const struct icf_run *run,
				    const struct icf_options *opt)
{
	ELFRW_TRY(elfrw_newfile_begin(&side->file, side->path, 0666));
	int fd = fcntl(side->file.fd, F_DUPFD_CLOEXEC, 3);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
	bool bad = !f;
	int e = errno;
	if (!f && fd >= 0)
		close(fd);
	if (f) {
		if (side->print)
			side->print(f, run);
		else
			icf_depfile_print(f, opt);
		errno = 0;
		bad = fflush(f) != 0 || ferror(f);
		e = errno ? errno : EIO;
		fclose(f);
	}
	if (!bad)
		return NULL;
	elfrw_newfile_drop(&side->file);
	return elfrw_error_errno(e, "cannot write");
}

/* The path to write to: OUTPUT.  If INPUT is the same symbolic link as OUTPUT, the link's target
 * instead.  The caller frees it; NULL: out of memory. */
static char *target_of(const struct icf_options *opt)
{
	struct stat in, out;
	if (lstat(opt->output, &out) == 0 && S_ISLNK(out.st_mode) && lstat(opt->input, &in) == 0 &&
	    in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return realpath(opt->output, NULL);
	return strdup(opt->output);
}

static const char *path_of(const struct elfrw_newfile *f, char buf[64])
{
	snprintf(buf, 64, "/proc/self/fd/%d", f->fd);
	return f->temp ? f->temp : buf;
}

/* Proves that the complete file OUT, with or without DEBUG, is the folded input, while OUT has no
 * name yet.  First gives back the memory of the fold, since the proof needs more. */
static int verify_output(struct icf_run *run, const struct icf_options *opt,
			 const struct elfrw_newfile *out, const struct elfrw_newfile *debug)
{
	struct icf_verify_options how = { .mode = opt->mode == ICF_MODE_ALL ? ICF_VERIFY_ALL
									    : ICF_VERIFY_SAFE,
					  .threads = opt->threads,
					  .gc_functions = opt->gc_functions != ICF_GC_NONE };
	struct icf_verify_result result;
	char path[64], debug_path[64];
	icf_run_release(run);
	icf_process_libdw();
	if (debug->open) {
		how.debug_in = run->debug_file;
		how.debug_out = path_of(debug, debug_path);
	}
	struct elfrw_err *err = icf_verify(opt->input, path_of(out, path), &how, &result);
	if (err) {
		icf_message(opt->output, "cannot be verified: %s", elfrw_err_text(err));
		int status = elfrw_err_is_system(err) ? ICF_EXIT_TROUBLE : ICF_EXIT_NO;
		elfrw_err_free(err);
		return status;
	}
	bool equal = result.equal;
	if (!equal)
		icf_verify_print_differences(stderr, opt->output, &result);
	icf_verify_result_deinit(&result);
	return equal ? ICF_EXIT_OK : ICF_EXIT_NO;
}

/* A device cannot be read back, so the proof reads a copy in memory. */
static int verify_copy(struct icf_run *run, const struct icf_options *opt,
		       const struct elfrw_newfile *debug)
{
	struct elfrw_newfile copy;
	char path[64];
	int fd = memfd_create("icfold", MFD_CLOEXEC);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct elfrw_err *err = fd < 0 ? elfrw_error_errno(errno, "cannot create a file in memory")
				       : elfrw_output_begin(&run->out, path, &copy);
	int status = err ? fail(opt->output, err) : verify_output(run, opt, &copy, debug);
	if (!err)
		elfrw_newfile_drop(&copy);
	if (fd >= 0)
		close(fd);
	return status;
}

/* Writes DEBUG, then OUT, which holds DEBUG's checksum.  After an error neither is left. */
static int write_outputs(struct icf_run *run, const struct icf_options *opt, const char *target,
			 struct elfrw_newfile *out, struct elfrw_newfile *debug)
{
	const char *name = opt->output;
	uint32_t crc;
	struct elfrw_err *err = NULL;
	if (run->debug_file && elfrw_newfile_same_place(run->debug_file, target))
		return fail(opt->output,
			    elfrw_error("is the debug file and cannot be the output too"));
	*debug = (struct elfrw_newfile){ .fd = -1 };
	if (run->img.pair) {
		err = elfrw_newfile_begin(out, target, run->img.mode & 0777);
		if (!err &&
		    (err = elfrw_output_begin_debug(&run->out, opt->debug_output, debug, &crc)))
			name = opt->debug_output;
		if (!err) {
			icf_debuglink_set_checksum(&run->out, crc);
			if ((err = elfrw_output_fill(&run->out, out)))
				elfrw_newfile_drop(debug);
		}
		if (err)
			elfrw_newfile_drop(out);
	} else
		err = elfrw_output_begin(&run->out, target, out);
	if (!err)
		return 0;
	/* If the mapped input was truncated, writing from it fails, too. */
	struct elfrw_err *cause = elfrw_image_unchanged(&run->img);
	if (!cause)
		return fail(name, err);
	elfrw_err_free(err);
	return fail(opt->input, cause);
}

/* Gives DEBUG its name, then OUT.  *REPLACED: holds the file that OUT replaces; -1: none. */
static int commit_outputs(const struct icf_options *opt, struct elfrw_newfile *out,
			  struct elfrw_newfile *debug, int *replaced)
{
	struct elfrw_err *err;
	if (opt->write_if_changed && elfrw_newfile_is_same(out) &&
	    (!debug->open || elfrw_newfile_is_same(debug))) {
		elfrw_newfile_drop(debug);
		elfrw_newfile_drop(out);
		return 0;
	}
	/* An older debug file keeps a second name until OUT is in place. */
	bool with = debug->open, fresh = with && access(opt->debug_output, F_OK) != 0;
	sigset_t mask;
	if (with)
		elfrw_newfile_hold(out, &mask);
	char *older = NULL;
	if (with && !fresh &&
	    asprintf(&older, "%s.icfold-%ld", opt->debug_output, (long)getpid()) < 0)
		older = NULL;
	if (older && link(opt->debug_output, older) != 0) {
		free(older);
		older = NULL;
	}
	const char *name = opt->debug_output;
	err = with ? elfrw_newfile_commit(debug) : NULL;
	if (err)
		elfrw_newfile_drop(out);
	else {
		name = opt->output;
		if (out->stream < 0 && !out->in_place)
			*replaced = open(out->path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		err = elfrw_newfile_commit(out);
		if (err && older && rename(older, opt->debug_output) == 0) {
			free(older);
			older = NULL;
		} else if (err && fresh)
			unlink(opt->debug_output);
	}
	if (older)
		unlink(older);
	free(older);
	if (with)
		elfrw_newfile_release(&mask);
	return err ? fail(name, err) : 0;
}

/* All files are complete before the first one gets its name.  OUTPUT gets its name last.
 * *REPLACED: see commit_outputs(). */
static int write_files(struct icf_run *run, const struct icf_options *opt, const char *target,
		       int *replaced)
{
	struct side side[MAX_SIDES];
	size_t n = sides_of(opt, side), begun = 0;
	struct icf_clock t = icf_now();
	struct elfrw_newfile out, debug;
	struct elfrw_err *err;
	int status = write_outputs(run, opt, target, &out, &debug);
	if (status)
		return status;
	icf_pass_done(run, "write", t);
	if (opt->verify) {
		t = icf_now();
		/* The proof takes time and reads from mappings. */
		elfrw_newfile_hide(&debug);
		elfrw_newfile_hide(&out);
		status = out.in_place ? verify_copy(run, opt, &debug)
				      : verify_output(run, opt, &out, &debug);
		icf_pass_done(run, "verify", t);
	}
	for (; begun < n && !status; begun++) {
		err = begin_side(&side[begun], run, opt);
		if (err) {
			status = fail(side[begun].path, err);
			break;
		}
	}
	err = status ? NULL : elfrw_image_unchanged(&run->img);
	if (err)
		status = fail(opt->input, err);
	while (begun--) {
		err = NULL;
		if (status)
			elfrw_newfile_drop(&side[begun].file);
		else
			err = elfrw_newfile_commit(&side[begun].file);
		if (err)
			status = fail(side[begun].path, err);
	}
	if (!status)
		return commit_outputs(opt, &out, &debug, replaced);
	elfrw_newfile_drop(&debug);
	elfrw_newfile_drop(&out);
	return status;
}

static void say_debug_file(const struct icf_run *run, const struct icf_options *opt)
{
	char *found = NULL;
	if (run->debug_file)
		icf_message(NULL, "debug file %s -> %s", run->debug_file, opt->debug_output);
	else
		elfrw_err_free(dwr_sym_find_debug(opt->input, opt->debug_dir, &found, NULL));
	if (found)
		icf_message(NULL, "debug file %s is left as it is: see --debug-output", found);
	free(found);
}

/* Says so if nothing could be removed, although the user asked for it. */
static void say_unused(const struct icf_run *run, const struct icf_options *opt)
{
	const char *why = opt->quiet ? NULL : icf_unused_obstacle(&run->prog, opt);
	if (why)
		icf_message(opt->input, "--gc-functions removes nothing: %s", why);
}

static int print_live(const struct icf_run *run, const struct icf_options *opt)
{
	const struct icf_live_query query = { opt->why_live, opt->n_why_live, false };
	const char *missing;
	struct elfrw_err *err = icf_live_print(stdout, run, &query, &missing);
	if (err)
		return fail(opt->input, err);
	if (missing && !opt->quiet)
		icf_message(opt->input, "--why-live: no function is named %s", missing);
	return 0;
}

static int print_reports(const struct icf_run *run, const struct icf_options *opt)
{
	errno = 0;
	say_unused(run, opt);
	if (opt->print_sections && !opt->print_sections_file)
		icf_report_folds(stdout, run);
	if (opt->print_gc && !opt->print_gc_file)
		icf_report_removed(stdout, run);
	int status = print_live(run, opt);
	if (opt->stats != ICF_STATS_NONE)
		icf_report_stats(stdout, run, opt->stats == ICF_STATS_JSON);
	if (opt->verbose) {
		icf_report_verbose(stderr, run, opt->verbose);
		say_debug_file(run, opt);
	}
	if (opt->time_passes)
		icf_report_passes(stderr, run);
	if (opt->summary == ICF_SUMMARY_ALWAYS ||
	    (opt->summary == ICF_SUMMARY_AUTO && !opt->quiet && !opt->standard_output &&
	     isatty(STDOUT_FILENO)))
		icf_report_summary(stdout, run);
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail("standard output",
			    elfrw_error_errno(errno ? errno : EIO, "cannot write"));
	return status;
}

/* What is left to be released at the end. */
struct end {
	struct icf_run *run;
	int replaced; /* holds the file that the output replaced, or -1 */
};

/* The kernel takes as long to free the pages of a large file as those of a process. */
static struct elfrw_err *release(void *arg, size_t i)
{
	struct end *end = arg;
	if (i == 0)
		icf_run_deinit(end->run);
	else
		close(end->replaced);
	return NULL;
}

int icf_fold_file(const struct icf_options *opt, struct elfrw_err **refusal)
{
	int status = check_files(opt);
	if (status != 0)
		return status;
	if (opt->verify && opt->strip_all)
		return fail(
			NULL,
			elfrw_error(
				"--verify and --strip-all may not be used together: nothing would say what went where"));
	/* Exceeding the file size limit is an error like a full disk.  A linker that runs again
	 * gets the original handler. */
	void (*on_too_large)(int) = signal(SIGXFSZ, SIG_IGN);
	struct icf_run run = { .ask_use = opt->n_why_live != 0 };
	struct end end = { &run, -1 };
	if (!opt->quiet)
		icf_progress_init(&run.progress, stderr, icf_now().wall, PROGRESS_AFTER);
	struct elfrw_err *err = icf_run_fold(&run, opt);
	icf_progress_end(&run.progress);
	if (err && refusal)
		*refusal = err, status = ICF_EXIT_NO;
	else if (err) {
		status = elfrw_err_is_system(err) ? ICF_EXIT_TROUBLE : ICF_EXIT_NO;
		fail(opt->input, err);
	} else {
		char *target = target_of(opt);
		status = target ? write_files(&run, opt, target, &end.replaced)
				: fail(opt->output, &elfrw_err_nomem);
		free(target);
		if (!status)
			status = print_reports(&run, opt);
	}
	(void)elfrw_parallel(opt->threads, end.replaced < 0 ? 1 : 2, release, &end);
	signal(SIGXFSZ, on_too_large);
	return status;
}

int icf_cmd_fold(int argc, char **argv)
{
	struct icf_options opt;
	struct elfrw_err *err = icf_options_parse(&opt, argc, argv);
	int status = 0;
	if (opt.misused) {
		status = icf_usage_error(NULL, "%s", elfrw_err_text(err));
		elfrw_err_free(err);
	} else if (err)
		status = fail(NULL, err);
	else if (opt.help)
		status = icf_print_help(usage);
	else if (opt.version)
		status = icf_print_version();
	else
		status = icf_fold_file(&opt, NULL);
	icf_options_deinit(&opt);
	return status;
}
