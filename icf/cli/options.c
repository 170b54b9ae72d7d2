/* options.c: the command line of the fold command. */
#include "icf/cli/options.h"
#include "dwarf/folding.h"
#include "icf/cli/report_file.h"
#include "icf/cli/values.h"
#include <stdlib.h>
#include <string.h>

static struct elfrw_err *add_name(const char ***list, size_t *n, const char *name)
{
	const char **v = realloc(*list, (*n + 1) * sizeof *v);
	if (!v)
		return &elfrw_err_nomem;
	*list = v;
	v[(*n)++] = name;
	return NULL;
}

static struct elfrw_err *add_unique(struct icf_options *opt, const char *name)
{
	return add_name(&opt->keep_unique, &opt->n_keep_unique, name);
}

static struct elfrw_err *add_keep(struct icf_options *opt, const char *name)
{
	return add_name(&opt->keep, &opt->n_keep, name);
}

static struct elfrw_err *add_why_live(struct icf_options *opt, const char *name)
{
	return add_name(&opt->why_live, &opt->n_why_live, name);
}

/* Calls ADD for each line of the file PATH: one symbol a line; blank lines and lines that begin
 * with # do not count. */
static struct elfrw_err *add_lines(struct icf_options *opt, const char *path,
				   struct elfrw_err *(*add)(struct icf_options *, const char *))
{
	char *text, *save = NULL;
	opt->misused = false;
	ELFRW_TRY(icf_args_read_text(&opt->args, path, &text));
	opt->misused = true;
	for (char *line = strtok_r(text, "\r\n", &save); line;
	     line = strtok_r(NULL, "\r\n", &save)) {
		while (*line == ' ' || *line == '\t')
			line++;
		size_t n = strlen(line);
		while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
			line[--n] = 0;
		if (*line && *line != '#')
			ELFRW_TRY(add(opt, line));
	}
	return NULL;
}

static struct elfrw_err *add_unique_file(struct icf_options *opt, const char *path)
{
	return add_lines(opt, path, add_unique);
}

static struct elfrw_err *add_keep_file(struct icf_options *opt, const char *path)
{
	return add_lines(opt, path, add_keep);
}

/* If ARG is NAME=VALUE or NAME followed by its value, sets *VALUE and advances *I. */
static bool value_of(const struct icf_args *a, size_t *i, const char *name, const char **value,
		     struct elfrw_err **err)
{
	const char *arg = a->v[*i];
	size_t n = strlen(name);
	/* As with linkers, long options may have one dash. */
	if (arg[0] == '-' && arg[1] != '-' && name[0] == '-' && name[1] == '-' && name[2] &&
	    strncmp(arg, name + 1, n - 1) == 0 && (arg[n - 1] == '=' || !arg[n - 1])) {
		arg--; /* arg + n is then what follows the name */
	} else if (strncmp(arg, name, n) != 0)
		return false;
	if (arg[n] == '=') {
		*value = arg + n + 1;
		return true;
	}
	if (arg[n])
		return false;
	if (*i + 1 >= a->n) {
		*err = elfrw_error("option '%s' requires an argument", name);
		return true;
	}
	*value = a->v[++*i];
	return true;
}

static bool is_flag(const char *arg, const char *name)
{
	return strcmp(arg, name) == 0 ||
	       (name[1] == '-' && arg[0] == '-' && arg[1] != '-' && strcmp(arg, name + 1) == 0);
}

static struct elfrw_err *parse_icf(struct icf_options *opt, const char *v)
{
	if (strcmp(v, "safe") == 0)
		opt->mode = ICF_MODE_SAFE;
	else if (strcmp(v, "all") == 0)
		opt->mode = ICF_MODE_ALL;
	else if (strcmp(v, "none") == 0)
		opt->mode = ICF_MODE_NONE;
	else
		return elfrw_error("--icf=%s: must be safe, all or none", v);
	return NULL;
}

static struct elfrw_err *parse_threads(struct icf_options *opt, const char *v)
{
	return icf_threads(v, &opt->threads) ? NULL
					     : elfrw_error("--threads=%s: " ICF_THREADS_MUST, v);
}

static struct elfrw_err *parse_summary(struct icf_options *opt, const char *v)
{
	static const char *const when[] = { "auto", "always", "never" };
	for (int i = 0; i < 3; i++)
		if (strcmp(v, when[i]) == 0) {
			opt->summary = (enum icf_summary)i;
			return NULL;
		}
	return elfrw_error("--summary=%s: must be auto, always or never", v);
}

static struct elfrw_err *parse_folded(struct icf_options *opt, const char *v)
{
	static const struct {
		const char *name;
		int value;
	} how[] = { { "overlay", DWR_FOLDED_OVERLAY },
		    { "alias", DWR_FOLDED_ALIAS },
		    { "drop", DWR_FOLDED_DROP } };
	for (size_t k = 0; k < sizeof how / sizeof *how; k++)
		if (strcmp(v, how[k].name) == 0) {
			opt->debug_folded = how[k].value;
			return NULL;
		}
	return elfrw_error("--debug-folded=%s: must be overlay, alias or drop", v);
}

/* Options without a value.  false: ARG is none of them. */
static bool set_flag(struct icf_options *opt, const char *arg)
{
	static const struct {
		const char *name;
		size_t off;
	} flag[] = {
		{ "--no-thunks", offsetof(struct icf_options, no_thunks) },
		{ "--strip-debug", offsetof(struct icf_options, strip_debug) },
		{ "--strip-all", offsetof(struct icf_options, strip_all) },
		{ "--emit-relocs", offsetof(struct icf_options, emit_relocs) },
		{ "--in-place", offsetof(struct icf_options, in_place) },
		{ "--allow-growth", offsetof(struct icf_options, allow_growth) },
		{ "--require-compact", offsetof(struct icf_options, require_compact) },
		{ "--emit-vtables", offsetof(struct icf_options, emit_vtables) },
		{ "--write-if-changed", offsetof(struct icf_options, write_if_changed) },
		{ "--verify", offsetof(struct icf_options, verify) },
		{ "--keep-build-id", offsetof(struct icf_options, keep_build_id) },
		{ "--quiet", offsetof(struct icf_options, quiet) },
		{ "-q", offsetof(struct icf_options, quiet) },
		{ "--time-passes", offsetof(struct icf_options, time_passes) },
		{ "--help", offsetof(struct icf_options, help) },
		{ "-h", offsetof(struct icf_options, help) },
		{ "--version", offsetof(struct icf_options, version) },
		{ "-V", offsetof(struct icf_options, version) },
		{ "--print-gc-functions", offsetof(struct icf_options, print_gc) },
		{ "--print-icf-sections", offsetof(struct icf_options, print_sections) },
	};
	for (size_t k = 0; k < sizeof flag / sizeof *flag; k++)
		if (is_flag(arg, flag[k].name)) {
			*(bool *)((char *)opt + flag[k].off) = true;
			return true;
		}
	if (is_flag(arg, "--verbose") || strcmp(arg, "-v") == 0)
		opt->verbose++;
	else if (is_flag(arg, "--gc-functions"))
		opt->gc_functions = ICF_GC_OBJECTS;
	else if (is_flag(arg, "--stats"))
		opt->stats = ICF_STATS_TEXT;
	else if (is_flag(arg, "--json"))
		opt->stats = ICF_STATS_JSON;
	else if (is_flag(arg, "--summary"))
		opt->summary = ICF_SUMMARY_ALWAYS;
	else
		return false;
	return true;
}

/* A list goes to standard output without a file, and with "-". */
static const char *list_file(const char *value)
{
	return strcmp(value, "-") == 0 ? NULL : value;
}

/* Options with an optional value: --NAME alone is a flag, so a value follows '='. */
static struct elfrw_err *set_optional(struct icf_options *opt, const char *arg, bool *taken)
{
	*taken = true;
	if (strncmp(arg, "--print-icf-sections=", 21) == 0) {
		opt->print_sections = true;
		opt->print_sections_file = list_file(arg + 21);
	} else if (strncmp(arg, "--print-gc-functions=", 21) == 0) {
		opt->print_gc = true;
		opt->print_gc_file = list_file(arg + 21);
	} else if (strncmp(arg, "--gc-functions=", 15) == 0) {
		if (strcmp(arg + 15, "objects") != 0 && strcmp(arg + 15, "functions") != 0)
			return elfrw_error(
				"%s: must be --gc-functions, --gc-functions=objects or --gc-functions=functions",
				arg);
		opt->gc_functions = arg[15] == 'o' ? ICF_GC_OBJECTS : ICF_GC_FUNCTIONS;
	} else if (strncmp(arg, "--stats=", 8) == 0) {
		if (strcmp(arg + 8, "json") != 0 && strcmp(arg + 8, "text") != 0)
			return elfrw_error("%s: must be --stats, --stats=text or --stats=json",
					   arg);
		opt->stats = arg[8] == 'j' ? ICF_STATS_JSON : ICF_STATS_TEXT;
	} else if (strncmp(arg, "--summary=", 10) == 0)
		return parse_summary(opt, arg + 10);
	else
		*taken = false;
	return NULL;
}

/* Options with a value, in the same argument or the next. */
static struct elfrw_err *set_value(struct icf_options *opt, const struct icf_args *a, size_t *i,
				   bool *taken)
{
	static const struct {
		const char *name;
		size_t off;                                                       /* of a string */
		struct elfrw_err *(*set)(struct icf_options *opt, const char *v); /* else */
	} option[] = {
		{ "--output", offsetof(struct icf_options, output), NULL },
		{ "-o", offsetof(struct icf_options, output), NULL },
		{ "--icf", 0, parse_icf },
		{ "--keep-unique", 0, add_unique },
		{ "--keep-unique-file", 0, add_unique_file },
		{ "--keep", 0, add_keep },
		{ "--keep-file", 0, add_keep_file },
		{ "--why-live", 0, add_why_live },
		{ "--map", offsetof(struct icf_options, map_file), NULL },
		{ "--Map", offsetof(struct icf_options, map_file), NULL },
		{ "--depfile", offsetof(struct icf_options, depfile), NULL },
		{ "--debug-file", offsetof(struct icf_options, debug_file), NULL },
		{ "--debug-output", offsetof(struct icf_options, debug_output), NULL },
		{ "--debug-file-directory", offsetof(struct icf_options, debug_dir), NULL },
		{ "--threads", 0, parse_threads },
		{ "--debug-folded", 0, parse_folded },
	};
	const char *v = NULL;
	struct elfrw_err *err = NULL;
	for (size_t k = 0; k < sizeof option / sizeof *option; k++) {
		if (!value_of(a, i, option[k].name, &v, &err))
			continue;
		*taken = true;
		if (!err && option[k].set)
			return option[k].set(opt, v);
		if (!err)
			*(const char **)((char *)opt + option[k].off) = v;
		return err;
	}
	*taken = false;
	return NULL;
}

static struct elfrw_err *take_input(struct icf_options *opt, const char *arg)
{
	if (opt->input)
		return elfrw_error("more than one input: %s and %s", opt->input, arg);
	opt->input = arg;
	return NULL;
}

static struct elfrw_err *parse_one(struct icf_options *opt, const struct icf_args *a, size_t *i)
{
	const char *arg = a->v[*i];
	bool taken;
	if (set_flag(opt, arg))
		return NULL;
	struct elfrw_err *err = set_optional(opt, arg, &taken);
	if (!taken)
		err = set_value(opt, a, i, &taken);
	if (taken)
		return err;
	if (strncmp(arg, "-o", 2) == 0 && arg[2] && arg[2] != '=') {
		opt->output = arg + 2;
		return NULL;
	}
	if (strcmp(arg, "-s") == 0)
		return elfrw_error("unrecognized option '-s'; is '--strip-all' meant?");
	if (arg[0] == '-' && arg[1])
		return elfrw_error("unrecognized option '%s'", arg);
	return take_input(opt, arg);
}

/* The map and the depfile may go to standard output, alone: other programs read them. */
static struct elfrw_err *take_standard_output(struct icf_options *opt)
{
	const struct {
		const char *name, **file;
	} report[] = { { "--map", &opt->map_file }, { "--depfile", &opt->depfile } };
	bool taken = (opt->print_sections && !opt->print_sections_file) ||
		     (opt->print_gc && !opt->print_gc_file) || opt->n_why_live ||
		     opt->stats != ICF_STATS_NONE || opt->summary == ICF_SUMMARY_ALWAYS;
	for (size_t k = 0; k < sizeof report / sizeof *report; k++) {
		if (!*report[k].file || strcmp(*report[k].file, "-") != 0)
			continue;
		if (taken)
			return elfrw_error("%s=-: another report goes to standard output",
					   report[k].name);
		*report[k].file = icf_report_file("-");
		taken = opt->standard_output = true;
	}
	return NULL;
}

static struct elfrw_err *parse(struct icf_options *opt, int argc, char **argv)
{
	*opt = (struct icf_options){ .mode = ICF_MODE_SAFE };
	opt->threads = icf_default_threads();
	struct icf_args *a = &opt->args;
	struct elfrw_err *err = NULL;
	bool only_names = false;
	for (int i = 1; i < argc && !err; i++)
		err = icf_args_expand(a, argv[i]);
	opt->misused = !err;
	for (size_t i = 0; i < a->n && !err; i++) {
		if (!only_names && strcmp(a->v[i], "--") == 0)
			only_names = true;
		else if (only_names)
			err = take_input(opt, a->v[i]);
		else
			err = parse_one(opt, a, &i);
	}
	if (err || opt->help || opt->version)
		return err;
	if (!opt->input)
		return elfrw_error("no input file");
	if (!opt->output)
		return elfrw_error("no output file: give -o OUTPUT");
	if (opt->in_place && opt->require_compact)
		return elfrw_error("--in-place and --require-compact may not be used together");
	if (opt->strip_all && opt->emit_relocs)
		return elfrw_error("--strip-all and --emit-relocs may not be used together");
	if (opt->n_why_live && !opt->gc_functions)
		return elfrw_error("--why-live needs --gc-functions");
	ELFRW_TRY(take_standard_output(opt));
	opt->strip_debug |= opt->strip_all;
	/* These options ask for something that may take room.  With --debug-output the debug file
	 * holds the record. */
	opt->allow_growth |= opt->in_place || opt->emit_vtables || opt->debug_output;
	if (opt->debug_file && !opt->debug_output)
		return elfrw_error("--debug-file needs --debug-output");
	if (opt->debug_output && opt->strip_debug)
		return elfrw_error("--debug-output and --strip-debug may not be used together");
	return NULL;
}

struct elfrw_err *icf_options_parse(struct icf_options *opt, int argc, char **argv)
{
	struct elfrw_err *err = parse(opt, argc, argv);
	opt->misused &= err && err != &elfrw_err_nomem;
	return err;
}

void icf_options_deinit(struct icf_options *opt)
{
	icf_args_deinit(&opt->args);
	free(opt->keep_unique);
	free(opt->keep);
	free(opt->why_live);
	*opt = (struct icf_options){ 0 };
}
