/* cmd_symbolize.c: icfold symbolize [OPTION]... [ADDRESS]... */
#include "icf/cmd.h"
#include "icf/sym_print.h"
#include "icf/version.h"
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold symbolize [OPTION]... [ADDRESS]...\n"
	"Turn addresses into functions, files and lines.\n"
	"Without ADDRESS they are read from standard input, one a line; without -e each line is\n"
	"FILE ADDRESS.  Addresses are hexadecimal, with or without 0x; SYMBOL+OFFSET will do too.\n"
	"\n"
	"  -e, --obj=FILE             the program or library (also --exe)\n"
	"  -i, --inlines              print the calls that were inlined at the address (default)\n"
	"      --no-inlines           print the innermost place only\n"
	"  -f, --functions[=none|short|linkage]\n"
	"                             print function names (default: linkage)\n"
	"  -C, --demangle             print names demangled (default)\n"
	"      --no-demangle          print linkage names\n"
	"  -a, --addresses            print the address first\n"
	"  -p, --pretty-print         print one line for each frame\n"
	"  -s, --basenames            print file names without directories\n"
	"      --relativenames        print file names as the line table has them\n"
	"      --output-style=LLVM|GNU|JSON  (default: LLVM)\n"
	"      --relative-address     addresses are relative to the file's base\n"
	"      --adjust-vma=N         subtract N from each address\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n"
	"      --verbose              print all that is known about a frame\n"
	"  -h, --help                 print this help\n"
	"  -V, --version              print the version\n";

struct module {
	char *path;          /* owned */
	struct dwr_sym *sym; /* NULL: could not be opened */
	char *error;         /* why; owned */
	bool warned;
};

struct session {
	struct icf_sym_style style;
	struct dwr_sym_options options;
	unsigned flags;      /* DWR_SYM_* */
	bool inlines;
	uint64_t adjust;
	const char *obj;     /* NULL: each line names one */
	struct module *module;
	size_t n_modules, last;
	struct dwr_sym_frames frames;
	bool list;           /* JSON objects go into one array */
	bool printed;
	int status;
};

static void complain(const char *file, const char *text)
{
	fflush(stdout);
	fprintf(stderr, "icfold: %s: %s\n", file, text);
}

/* The file PATH, opened at first mention; NULL: out of memory. */
static struct module *module_of(struct session *s, const char *path)
{
	if (s->n_modules && !strcmp(s->module[s->last].path, path))
		return &s->module[s->last];
	for (size_t k = 0; k < s->n_modules; k++)
		if (!strcmp(s->module[k].path, path))
			return &s->module[s->last = k];
	struct module *m = realloc(s->module, (s->n_modules + 1) * sizeof *m);
	if (!m)
		return NULL;
	s->module = m;
	m = &s->module[s->n_modules];
	*m = (struct module){ .path = strdup(path) };
	if (!m->path)
		return NULL;
	s->last = s->n_modules++;
	struct elfrw_err *err = dwr_sym_open(path, &s->options, &m->sym);
	if (err) {
		s->status = 1;
		complain(path, elfrw_err_text(err));
		m->error = strdup(elfrw_err_text(err));
		elfrw_err_free(err);
	}
	return m;
}

/* One question, taken apart. */
struct question {
	const char *module, *symbol; /* SYMBOL NULL: an address */
	uint64_t address;            /* or the offset from SYMBOL */
};

static bool parse_hex(const char *s, uint64_t *ret)
{
	if (s[0] == '0' && (s[1] == 'x' || s[1] == 'X'))
		s += 2;
	if (!isxdigit((unsigned char)*s))
		return false;
	char *end;
	errno = 0;
	unsigned long long v = strtoull(s, &end, 16);
	*ret = v;
	return !*end && !errno;
}

/* Takes LINE apart, writing into it. */
static bool parse(const struct session *s, char *line, struct question *q)
{
	char *p = line;
	if (!strncmp(p, "CODE ", 5))
		p += 5;
	p += strspn(p, " \t");
	q->module = s->obj;
	q->symbol = NULL;
	if (!q->module) {
		if (*p == '"' || *p == '\'') {
			char *end = strchr(p + 1, *p);
			if (!end)
				return false;
			*end = 0;
			q->module = p + 1;
			p = end + 1;
		} else {
			q->module = p;
			p += strcspn(p, " \t");
			if (!*p)
				return false;
			*p++ = 0;
		}
		if (!*q->module)
			return false;
		p += strspn(p, " \t");
	}
	p[strcspn(p, " \t\r\n")] = 0;
	if (!*p)
		return false;
	if (parse_hex(p, &q->address))
		return true;
	if (isdigit((unsigned char)*p))
		return false;
	char *plus = strrchr(p, '+');
	q->address = 0;
	if (plus && plus > p && parse_hex(plus + 1, &q->address))
		*plus = 0;
	else
		q->address = 0;
	q->symbol = p;
	return true;
}

static void begin_object(struct session *s)
{
	if (s->style.output != ICF_SYM_JSON || !s->list)
		return;
	if (s->printed)
		putchar(',');
	if (s->style.pretty)
		fputs("\n  ", stdout);
	s->printed = true;
}

static void end_object(const struct session *s)
{
	if (s->style.output == ICF_SYM_JSON && !s->list)
		putchar('\n');
}

static void print_answer(struct session *s, const char *module, const uint64_t *address, size_t n)
{
	begin_object(s);
	icf_sym_print(stdout, &s->style, module, address, s->frames.data, n, s->list);
	end_object(s);
}

static void print_error(struct session *s, const char *module, const uint64_t *address, const char *symbol,
			const char *text)
{
	if (s->style.output != ICF_SYM_JSON) {
		icf_sym_print(stdout, &s->style, module, address, NULL, 0, 0);
		return;
	}
	begin_object(s);
	icf_sym_print_error(stdout, &s->style, module, address, symbol, text, s->list);
	end_object(s);
}

static struct elfrw_err *look_up(struct session *s, struct dwr_sym *sym, uint64_t address)
{
	unsigned flags = s->flags;
	/* GNU style: one frame is the innermost one, under its own name. */
	if (!s->inlines && s->style.output != ICF_SYM_GNU)
		flags |= DWR_SYM_NO_INLINES;
	ELFRW_TRY(dwr_sym_frames(sym, address, flags, &s->frames));
	if (!s->inlines && s->frames.len > 1)
		s->frames.len = 1;
	return NULL;
}

static struct elfrw_err *answer_symbol(struct session *s, struct module *m, const struct question *q)
{
	struct dwr_sym_symbol found;
	size_t from = 0;
	bool any = false;
	unsigned inlines = s->inlines;
	while (dwr_sym_symbol_named(m->sym, q->symbol, &from, &found)) {
		s->inlines = false;
		struct elfrw_err *err = look_up(s, m->sym, found.address + q->address);
		s->inlines = inlines;
		ELFRW_TRY(err);
		print_answer(s, q->module, NULL, s->frames.len);
		any = true;
	}
	if (!any)
		print_answer(s, q->module, NULL, 0);
	return NULL;
}

static struct elfrw_err *answer(struct session *s, char *line)
{
	struct question q;
	char *whole = strdup(line);
	if (!whole)
		return &elfrw_err_nomem;
	if (!parse(s, line, &q)) {
		if (s->style.output == ICF_SYM_JSON)
			print_error(s, q.module ? q.module : "", NULL, whole, "unable to parse arguments");
		else
			puts(whole);
		free(whole);
		return NULL;
	}
	free(whole);
	struct module *m = module_of(s, q.module);
	if (!m)
		return &elfrw_err_nomem;
	if (!m->sym) {
		print_error(s, q.module, q.symbol ? NULL : &q.address, q.symbol, m->error ? m->error : "");
		return NULL;
	}
	struct elfrw_err *err = NULL;
	if (q.symbol)
		err = answer_symbol(s, m, &q);
	else if (!(err = look_up(s, m->sym, q.address - s->adjust)))
		print_answer(s, q.module, &q.address, s->frames.len);
	if (!m->warned && dwr_sym_warning(m->sym)) {
		m->warned = true;
		complain(m->path, dwr_sym_warning(m->sym));
	}
	return err;
}

/* Lines of standard input; what was answered is flushed before the program waits for more. */
static struct elfrw_err *answer_input(struct session *s)
{
	size_t len = 0, cap = 1 << 16;
	char *buf = malloc(cap);
	struct elfrw_err *err = buf ? NULL : &elfrw_err_nomem;
	bool end = false;
	while (!err && !end) {
		if (len + 1 == cap) {
			char *p = realloc(buf, 2 * cap);
			if (!p) {
				err = &elfrw_err_nomem;
				break;
			}
			buf = p;
			cap *= 2;
		}
		fflush(stdout);
		ssize_t n = read(STDIN_FILENO, buf + len, cap - len - 1);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			err = elfrw_error_errno(errno, "cannot read standard input");
		end = n <= 0;
		len += n > 0 ? (size_t)n : 0;
		char *line = buf, *nl;
		while (!err && (nl = memchr(line, '\n', len - (size_t)(line - buf)))) {
			*nl = 0;
			if (nl > line && nl[-1] == '\r')
				nl[-1] = 0;
			err = answer(s, line);
			line = nl + 1;
		}
		len -= (size_t)(line - buf);
		memmove(buf, line, len);
	}
	if (!err && len) {
		buf[len] = 0;
		err = answer(s, buf);
	}
	free(buf);
	return err;
}

static struct elfrw_err *answer_all(struct session *s, char **arg, int n)
{
	if (!n)
		return answer_input(s);
	bool json = s->style.output == ICF_SYM_JSON;
	struct elfrw_err *err = NULL;
	s->list = json;
	if (json)
		putchar('[');
	for (int i = 0; i < n && !err; i++)
		err = answer(s, arg[i]);
	if (json)
		fputs(s->style.pretty && s->printed ? "\n]\n" : "]\n", stdout);
	return err;
}

enum { OPT_NO_INLINES = 256, OPT_NO_DEMANGLE, OPT_RELATIVE, OPT_STYLE, OPT_RELATIVE_ADDRESS, OPT_ADJUST, OPT_DEBUG_DIR,
       OPT_VERBOSE, OPT_FUNCTIONS };

static const struct option options[] = {
	{ "obj", required_argument, NULL, 'e' },
	{ "exe", required_argument, NULL, 'e' },
	{ "inlines", no_argument, NULL, 'i' },
	{ "inlining", no_argument, NULL, 'i' },
	{ "no-inlines", no_argument, NULL, OPT_NO_INLINES },
	{ "functions", optional_argument, NULL, OPT_FUNCTIONS },
	{ "demangle", no_argument, NULL, 'C' },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "addresses", no_argument, NULL, 'a' },
	{ "pretty-print", no_argument, NULL, 'p' },
	{ "basenames", no_argument, NULL, 's' },
	{ "relativenames", no_argument, NULL, OPT_RELATIVE },
	{ "output-style", required_argument, NULL, OPT_STYLE },
	{ "relative-address", no_argument, NULL, OPT_RELATIVE_ADDRESS },
	{ "adjust-vma", required_argument, NULL, OPT_ADJUST },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "verbose", no_argument, NULL, OPT_VERBOSE },
	{ "help", no_argument, NULL, 'h' },
	{ "version", no_argument, NULL, 'V' },
	{ 0 },
};

static int bad_value(const char *option, const char *value)
{
	fprintf(stderr, "icfold symbolize: %s: bad value '%s'\n", option, value);
	return 1;
}

/* Sets one option; -1: go on, else the exit status. */
static int set_option(struct session *s, int c)
{
	switch (c) {
	case 'e': s->obj = optarg; return -1;
	case 'i': s->inlines = true; return -1;
	case OPT_NO_INLINES: s->inlines = false; return -1;
	case 'f': optarg = NULL; /* fall through */
	case OPT_FUNCTIONS:
		s->style.functions = !optarg || strcmp(optarg, "none");
		s->flags &= ~(unsigned)DWR_SYM_SHORT_NAMES;
		if (optarg && !strcmp(optarg, "short"))
			s->flags |= DWR_SYM_SHORT_NAMES;
		else if (optarg && strcmp(optarg, "none") && strcmp(optarg, "linkage"))
			return bad_value("--functions", optarg);
		return -1;
	case 'C': s->flags |= DWR_SYM_DEMANGLE; return -1;
	case OPT_NO_DEMANGLE: s->flags &= ~(unsigned)DWR_SYM_DEMANGLE; return -1;
	case 'a': s->style.addresses = true; return -1;
	case 'p': s->style.pretty = true; return -1;
	case 's': s->options.path = DWR_SYM_BASENAME; return -1;
	case OPT_RELATIVE: s->options.path = DWR_SYM_RELATIVE; return -1;
	case OPT_STYLE:
		if (!strcmp(optarg, "LLVM"))
			s->style.output = ICF_SYM_LLVM;
		else if (!strcmp(optarg, "GNU"))
			s->style.output = ICF_SYM_GNU;
		else if (!strcmp(optarg, "JSON"))
			s->style.output = ICF_SYM_JSON;
		else
			return bad_value("--output-style", optarg);
		return -1;
	case OPT_RELATIVE_ADDRESS: return -1; /* an ELF file's own addresses are relative to its base */
	case OPT_ADJUST: {
		char *end;
		errno = 0;
		s->adjust = strtoull(optarg, &end, 0);
		return *optarg && !*end && !errno ? -1 : bad_value("--adjust-vma", optarg);
	}
	case OPT_DEBUG_DIR: s->options.debug_dir = optarg; return -1;
	case OPT_VERBOSE: s->style.verbose = true; return -1;
	case 'h': fputs(usage, stdout); return 0;
	case 'V': printf("icfold %s\n", ICF_VERSION); return 0;
	}
	fputs("Try 'icfold symbolize --help'.\n", stderr);
	return 1;
}

int icf_cmd_symbolize(int argc, char **argv)
{
	struct session s = { .style.functions = true, .flags = DWR_SYM_DEMANGLE, .inlines = true };
	int c, status = -1;
	optind = 0; /* start over: the caller may have parsed options of its own */
	while (status < 0 && (c = getopt_long(argc, argv, "e:ifCapshV", options, NULL)) != -1)
		status = set_option(&s, c);
	if (status >= 0)
		return status;
	struct elfrw_err *err = NULL;
	struct module *m = s.obj ? module_of(&s, s.obj) : NULL;
	if (!s.obj || (m && m->sym))
		err = answer_all(&s, argv + optind, argc - optind);
	if (!err && (fflush(stdout) != 0 || ferror(stdout)))
		err = elfrw_error_errno(errno, "cannot write standard output");
	if (err) {
		fflush(stdout);
		fprintf(stderr, "icfold: %s\n", elfrw_err_text(err));
		elfrw_err_free(err);
		s.status = 1;
	}
	dwr_sym_frames_deinit(&s.frames);
	for (size_t i = 0; i < s.n_modules; i++) {
		dwr_sym_close(s.module[i].sym);
		free(s.module[i].path);
		free(s.module[i].error);
	}
	free(s.module);
	return s.status;
}
