/* options.c: command line of the main job. */
#include "icf/options.h"
#include "dwarf/rewrite.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct args {
	const char **v; /* owned array of borrowed strings */
	size_t n, cap;
};

static struct elfrw_err *push_arg(struct args *a, const char *s)
{
	if (a->n == a->cap) {
		size_t cap = a->cap ? 2 * a->cap : 32;
		const char **v = realloc(a->v, cap * sizeof *v);
		if (!v)
			return &elfrw_err_nomem;
		a->v = v;
		a->cap = cap;
	}
	a->v[a->n++] = s;
	return NULL;
}

/* Reads a whole small text file; the text becomes OPT's. */
static struct elfrw_err *read_text(struct icf_options *opt, const char *path, char **ret)
{
	FILE *f = fopen(path, "re");
	if (!f)
		return elfrw_error_errno(errno, "%s: cannot open", path);
	struct stat st;
	char *text = NULL;
	struct elfrw_err *err = NULL;
	if (fstat(fileno(f), &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > 64 << 20)
		err = elfrw_error("%s: not a small regular file", path);
	else if (!(text = malloc((size_t)st.st_size + 1)))
		err = &elfrw_err_nomem;
	else {
		size_t n = fread(text, 1, (size_t)st.st_size, f);
		text[n] = 0;
		char **owned = realloc(opt->owned, (opt->n_owned + 1) * sizeof *owned);
		if (!owned)
			err = &elfrw_err_nomem;
		else {
			opt->owned = owned;
			opt->owned[opt->n_owned++] = text;
			*ret = text;
			text = NULL;
		}
	}
	free(text);
	fclose(f);
	return err;
}

/* Splits TEXT in place as GNU tools do: white space separates, quotes and backslashes protect. */
static struct elfrw_err *split_response(struct args *out, char *p)
{
	for (;;) {
		while (*p == ' ' || (*p >= '\t' && *p <= '\r'))
			p++;
		if (!*p)
			return NULL;
		char *word = p, *to = p, quote = 0;
		for (; *p && (quote || !(*p == ' ' || (*p >= '\t' && *p <= '\r'))); p++) {
			if (*p == '\\' && p[1])
				*to++ = *++p;
			else if (quote && *p == quote)
				quote = 0;
			else if (!quote && (*p == '"' || *p == '\''))
				quote = *p;
			else
				*to++ = *p;
		}
		bool last = !*p;
		*to = 0;
		ELFRW_TRY(push_arg(out, word));
		if (last)
			return NULL;
		p++;
	}
}

static struct elfrw_err *expand(struct icf_options *opt, struct args *out, const char *arg, unsigned depth)
{
	if (arg[0] != '@' || !arg[1] || access(arg + 1, F_OK) != 0)
		return push_arg(out, arg);
	if (depth > 16)
		return elfrw_error("%s: response files are nested too deeply", arg);
	char *text;
	struct args inner = { 0 };
	struct elfrw_err *err = read_text(opt, arg + 1, &text);
	if (!err)
		err = split_response(&inner, text);
	for (size_t i = 0; i < inner.n && !err; i++)
		err = expand(opt, out, inner.v[i], depth + 1);
	free(inner.v);
	return err;
}

static struct elfrw_err *add_unique(struct icf_options *opt, const char *name)
{
	const char **v = realloc(opt->keep_unique, (opt->n_keep_unique + 1) * sizeof *v);
	if (!v)
		return &elfrw_err_nomem;
	opt->keep_unique = v;
	v[opt->n_keep_unique++] = name;
	return NULL;
}

/* One symbol a line; blank lines and lines that begin with # do not count. */
static struct elfrw_err *add_unique_file(struct icf_options *opt, const char *path)
{
	char *text, *save = NULL;
	ELFRW_TRY(read_text(opt, path, &text));
	for (char *line = strtok_r(text, "\r\n", &save); line; line = strtok_r(NULL, "\r\n", &save)) {
		while (*line == ' ' || *line == '\t')
			line++;
		size_t n = strlen(line);
		while (n && (line[n - 1] == ' ' || line[n - 1] == '\t'))
			line[--n] = 0;
		if (*line && *line != '#')
			ELFRW_TRY(add_unique(opt, line));
	}
	return NULL;
}

/* If ARG is NAME=VALUE or NAME followed by its value, sets *VALUE and advances *I. */
static bool value_of(const struct args *a, size_t *i, const char *name, const char **value, struct elfrw_err **err)
{
	const char *arg = a->v[*i];
	size_t n = strlen(name);
	/* Long options may have one dash, as linkers' do. */
	if (arg[0] == '-' && arg[1] != '-' && name[0] == '-' && name[1] == '-' && name[2] && strncmp(arg, name + 1, n - 1) == 0 &&
	    (arg[n - 1] == '=' || !arg[n - 1])) {
		arg--; /* so that arg + n is what follows the name */
	} else if (strncmp(arg, name, n) != 0)
		return false;
	if (arg[n] == '=') {
		*value = arg + n + 1;
		return true;
	}
	if (arg[n])
		return false;
	if (*i + 1 >= a->n) {
		*err = elfrw_error("option %s needs a value", name);
		return true;
	}
	*value = a->v[++*i];
	return true;
}

static bool is_flag(const char *arg, const char *name)
{
	return strcmp(arg, name) == 0 || (name[1] == '-' && arg[0] == '-' && arg[1] != '-' && strcmp(arg, name + 1) == 0);
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
	char *end;
	errno = 0;
	unsigned long n = strtoul(v, &end, 10);
	if (errno || *end || !*v || *v == '-' || n == 0 || n > 1024)
		return elfrw_error("--threads=%s: must be a number from 1 to 1024", v);
	opt->threads = n > 64 ? 64 : (unsigned)n;
	return NULL;
}

static struct elfrw_err *parse_one(struct icf_options *opt, const struct args *a, size_t *i)
{
	const char *arg = a->v[*i], *v = NULL;
	struct elfrw_err *err = NULL;
	static const struct { const char *name; size_t off; bool value; } flag[] = {
		{ "--no-thunks", offsetof(struct icf_options, no_thunks), true },
		{ "--strip-debug", offsetof(struct icf_options, strip_debug), true },
		{ "--emit-relocs", offsetof(struct icf_options, emit_relocs), true },
		{ "--keep-build-id", offsetof(struct icf_options, keep_build_id), true },
		{ "--quiet", offsetof(struct icf_options, quiet), true },
		{ "-q", offsetof(struct icf_options, quiet), true },
		{ "--time-passes", offsetof(struct icf_options, time_passes), true },
		{ "--help", offsetof(struct icf_options, help), true },
		{ "-h", offsetof(struct icf_options, help), true },
		{ "--version", offsetof(struct icf_options, version), true },
		{ "-V", offsetof(struct icf_options, version), true },
	};
	for (size_t k = 0; k < sizeof flag / sizeof *flag; k++)
		if (is_flag(arg, flag[k].name)) {
			*(bool *)((char *)opt + flag[k].off) = flag[k].value;
			return NULL;
		}
	if (is_flag(arg, "--verbose") || strcmp(arg, "-v") == 0)
		opt->verbose++;
	else if (is_flag(arg, "--print-icf-sections"))
		opt->print_sections = true;
	else if (strncmp(arg, "--print-icf-sections=", 21) == 0) {
		opt->print_sections = true;
		opt->print_sections_file = arg + 21;
	} else if (is_flag(arg, "--stats"))
		opt->stats = ICF_STATS_TEXT;
	else if (strncmp(arg, "--stats=", 8) == 0) {
		if (strcmp(arg + 8, "json") != 0 && strcmp(arg + 8, "text") != 0)
			return elfrw_error("%s: must be --stats, --stats=text or --stats=json", arg);
		opt->stats = arg[8] == 'j' ? ICF_STATS_JSON : ICF_STATS_TEXT;
	} else if (value_of(a, i, "--output", &v, &err) || value_of(a, i, "-o", &v, &err))
		opt->output = v;
	else if (strncmp(arg, "-o", 2) == 0 && arg[2] && arg[2] != '=')
		opt->output = arg + 2;
	else if (value_of(a, i, "--icf", &v, &err))
		return err ? err : parse_icf(opt, v);
	else if (value_of(a, i, "--keep-unique", &v, &err))
		return err ? err : add_unique(opt, v);
	else if (value_of(a, i, "--keep-unique-file", &v, &err))
		return err ? err : add_unique_file(opt, v);
	else if (value_of(a, i, "--map", &v, &err) || value_of(a, i, "--Map", &v, &err))
		opt->map_file = v;
	else if (value_of(a, i, "--threads", &v, &err))
		return err ? err : parse_threads(opt, v);
	else if (value_of(a, i, "--debug-folded", &v, &err)) {
		if (err)
			return err;
		if (strcmp(v, "overlay") == 0)
			opt->debug_folded = DWR_FOLDED_OVERLAY;
		else if (strcmp(v, "alias") == 0)
			opt->debug_folded = DWR_FOLDED_ALIAS;
		else if (strcmp(v, "drop") == 0)
			opt->debug_folded = DWR_FOLDED_DROP;
		else
			return elfrw_error("--debug-folded=%s: must be overlay, alias or drop", v);
	} else if (arg[0] == '-' && arg[1])
		return elfrw_error("unknown option %s (try --help)", arg);
	else if (opt->input)
		return elfrw_error("more than one input: %s and %s", opt->input, arg);
	else
		opt->input = arg;
	return err;
}

struct elfrw_err *icf_options_parse(struct icf_options *opt, int argc, char **argv)
{
	*opt = (struct icf_options){ .mode = ICF_MODE_SAFE };
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	opt->threads = cpus < 1 ? 1 : cpus > 64 ? 64 : (unsigned)cpus;
	struct args a = { 0 };
	struct elfrw_err *err = NULL;
	bool only_names = false;
	for (int i = 1; i < argc && !err; i++)
		err = expand(opt, &a, argv[i], 0);
	for (size_t i = 0; i < a.n && !err; i++) {
		if (!only_names && strcmp(a.v[i], "--") == 0)
			only_names = true;
		else if (only_names && !opt->input)
			opt->input = a.v[i];
		else
			err = parse_one(opt, &a, &i);
	}
	free(a.v);
	if (err || opt->help || opt->version)
		return err;
	if (!opt->input)
		return elfrw_error("no input file (try --help)");
	if (!opt->output)
		return elfrw_error("no output file: give -o OUTPUT");
	return NULL;
}

void icf_options_deinit(struct icf_options *opt)
{
	for (size_t i = 0; i < opt->n_owned; i++)
		free(opt->owned[i]);
	free(opt->owned);
	free(opt->keep_unique);
	*opt = (struct icf_options){ 0 };
}
