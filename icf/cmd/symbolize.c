/* symbolize.c: icfold symbolize [OPTION]... [ADDRESS]...
 *
 * Questions that are at hand together are answered in the order of their addresses, whatever is
 * read for one serving the next, and printed in their own order: a third less time for a profile,
 * and nobody waits for it. */
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/cmd/core.h"
#include "icf/cmd/perf.h"
#include "icf/cmd/stack.h"
#include "elfrw/base/vec.h"
#include "icf/cmd/sym_print.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
	"Usage: icfold symbolize [OPTION]... [ADDRESS]...\n"
	"       icfold symbolize [OPTION]... --core=FILE|--pid=N\n"
	"Turn addresses into functions, files and lines.\n"
	"Without ADDRESS they are read from standard input, one a line; without -e each line is\n"
	"FILE ADDRESS.  Addresses are hexadecimal, with or without 0x; SYMBOL+OFFSET will do too.\n"
	"\n"
	"  -e, --obj=FILE             the program or library (also --exe)\n"
	"  -i, --inlines              print the calls that were inlined at the address (default)\n"
	"      --no-inlines           print the innermost place only\n"
	"  -f, --functions[=none|short|linkage]\n"
	"                             print function names (default: linkage)\n"
	"  -C, --demangle[=llvm|gnu]  print names demangled (default), as the LLVM tools spell them, or\n"
	"                             as c++filt and gdb do\n"
	"      --no-demangle          print linkage names\n"
	"  -a, --addresses            print the address first\n"
	"  -p, --pretty-print         print one line for each frame\n"
	"  -s, --basenames            print file names without directories\n"
	"      --relativenames        print file names as the line table has them\n"
	"      --output-style=LLVM|GNU|JSON  (default: LLVM)\n"
	"      --json                 the same as --output-style=JSON\n"
	"      --relative-address     addresses are relative to the file's base\n"
	"      --adjust-vma=N         subtract N from each address\n"
	"      --stack                addresses are a stack, the innermost first: a PC, then return addresses;\n"
	"                             name the functions that were called although they share code with others;\n"
	"                             on standard input an empty line ends a stack\n"
	"      --core=FILE            print the stack of every thread in a core file; -e is the program's file,\n"
	"                             when it is not where the core says\n"
	"      --pid=N                print the stack of every thread of a running process\n"
	"      --perf                 copy the text of `perf script` (arguments are files) with the functions that\n"
	"                             were called for names; -e: only in frames of that file\n"
	"      --sysroot=DIR          what the core names is below DIR: a core of another machine\n"
	"      --debug-file=FILE      the separate debug file of the program, if it is not found by\n"
	"                             build-id or .gnu_debuglink\n"
	"      --debug-file-directory=DIR  where separate debug files are (default: /usr/lib/debug)\n" ICF_USAGE_COMMON
	"\n"
	"With -v all that is known about a frame is printed. Exit status: 0, or 2 for trouble.\n";

struct module {
	char *path;          /* owned */
	struct dwr_sym *sym; /* NULL: could not be opened */
	char *error;         /* why; owned */
	bool warned;
};

/* One question, taken apart; and its answer. */
struct question {
	const char *line; /* whole, with a NUL at its end; borrowed */
	bool bad;         /* makes no sense */
	uint32_t module;
	uint64_t address; /* or the offset from SYMBOL */
	char *symbol;     /* owned; NULL: an address */
	size_t frame, n_frames;
};

#define MAX_QUESTIONS 16384 /* that are answered together */

struct session {
	struct icf_sym_style style;
	struct dwr_sym_options options;
	unsigned flags; /* DWR_SYM_* */
	bool inlines;
	uint64_t adjust;
	const char *obj;        /* NULL: each line names one */
	const char *core, *pid; /* what is unwound, or NULL */
	struct module *module;
	uint32_t n_modules, last;
	VEC(struct question) question;
	uint32_t order[MAX_QUESTIONS];
	VEC(struct dwr_sym_frame) answer; /* the frames of all questions */
	struct dwr_sym_frames frames;
	bool perf;  /* arguments are files of perf's text */
	bool stack; /* the addresses are one stack */
	bool list;  /* JSON objects go into one array */
	bool printed;
	int status;
};

static void complain(const char *file, const char *text)
{
	icf_message(file, "%s", text);
}

/* The file named by the N bytes at PATH, opened at first mention. */
static struct elfrw_err *module_of(struct session *s, const char *path, size_t n, uint32_t *ret)
{
	for (uint32_t i = 0; i < s->n_modules; i++) {
		uint32_t k = (s->last + i) % s->n_modules;
		if (!strncmp(s->module[k].path, path, n) && !s->module[k].path[n]) {
			*ret = s->last = k;
			return NULL;
		}
	}
	struct module *m = realloc(s->module, (s->n_modules + 1) * sizeof *m);
	if (!m)
		return &elfrw_err_nomem;
	s->module = m;
	m = &s->module[s->n_modules];
	*m = (struct module){ .path = strndup(path, n) };
	if (!m->path)
		return &elfrw_err_nomem;
	*ret = s->last = s->n_modules++;
	struct elfrw_err *err = dwr_sym_open(m->path, &s->options, &m->sym);
	if (err) {
		s->status = ICF_EXIT_TROUBLE;
		complain(m->path, elfrw_err_text(err));
		m->error = strdup(elfrw_err_text(err));
		elfrw_err_free(err);
	}
	return NULL;
}

/* The hexadecimal number in the N bytes at S. */
static bool parse_hex(const char *s, size_t n, uint64_t *ret)
{
	uint64_t v = 0;
	if (n > 2 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')) {
		s += 2;
		n -= 2;
	}
	if (!n || n > 16)
		return false;
	for (; n; n--, s++) {
		if (!isxdigit((unsigned char)*s))
			return false;
		v = v << 4 |
		    (unsigned)(isdigit((unsigned char)*s) ? *s - '0'
							  : tolower((unsigned char)*s) - 'a' + 10);
	}
	*ret = v;
	return true;
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* The next word of *P, in quotes or not; false: none. */
static bool word(const char **p, const char **ret, size_t *n)
{
	const char *s = *p;
	while (is_space(*s))
		s++;
	char quote = *s == '"' || *s == '\'' ? *s++ : 0;
	*ret = s;
	while (*s && (quote ? *s != quote : !is_space(*s)))
		s++;
	*n = (size_t)(s - *ret);
	if (quote && !*s)
		return false;
	*p = s + (quote != 0);
	return *n;
}

/* Takes Q's line apart. */
static struct elfrw_err *parse(struct session *s, struct question *q)
{
	const char *p = q->line, *file = s->obj, *what;
	size_t n = file ? strlen(file) : 0;
	q->bad = true;
	if (!strncmp(p, "CODE ", 5))
		p += 5;
	if (!file && !word(&p, &file, &n))
		return NULL;
	size_t len;
	if (!word(&p, &what, &len))
		return NULL;
	if (!parse_hex(what, len, &q->address)) {
		if (isdigit((unsigned char)*what))
			return NULL;
		const char *plus = memrchr(what, '+', len);
		q->address = 0;
		if (plus && plus > what &&
		    parse_hex(plus + 1, len - (size_t)(plus + 1 - what), &q->address))
			len = (size_t)(plus - what);
		q->symbol = strndup(what, len);
		if (!q->symbol)
			return &elfrw_err_nomem;
	}
	q->bad = false;
	return module_of(s, file, n, &q->module);
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

static void print_answer(struct session *s, const char *module, const uint64_t *address,
			 const struct dwr_sym_frame *frame, size_t n)
{
	begin_object(s);
	icf_sym_print(stdout, &s->style, module, address, frame, n, s->list);
	end_object(s);
}

static void print_error(struct session *s, const char *module, const uint64_t *address,
			const char *symbol, const char *text)
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

static struct elfrw_err *answer_symbol(struct session *s, struct module *m,
				       const struct question *q)
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
		print_answer(s, m->path, NULL, s->frames.data, s->frames.len);
		any = true;
	}
	if (!any)
		print_answer(s, m->path, NULL, NULL, 0);
	return NULL;
}

/* The answers to questions about addresses. */
static struct elfrw_err *find_answer(struct session *s, struct question *q)
{
	struct dwr_sym *sym = q->bad || q->symbol ? NULL : s->module[q->module].sym;
	if (!sym)
		return NULL;
	ELFRW_TRY(look_up(s, sym, q->address - s->adjust));
	if (!VEC_RESERVE(&s->answer, s->answer.len + s->frames.len))
		return &elfrw_err_nomem;
	q->frame = s->answer.len;
	q->n_frames = s->frames.len;
	if (s->frames.len)
		memcpy(s->answer.data + s->answer.len, s->frames.data,
		       s->frames.len * sizeof *s->frames.data);
	s->answer.len += s->frames.len;
	return NULL;
}

static struct elfrw_err *print_question(struct session *s, const struct question *q)
{
	if (q->bad) {
		if (s->style.output == ICF_SYM_JSON)
			print_error(s, s->obj ? s->obj : "", NULL, q->line,
				    "unable to parse arguments");
		else
			icf_sym_print_line(stdout, q->line);
		return NULL;
	}
	struct module *m = &s->module[q->module];
	struct elfrw_err *err = NULL;
	if (!m->sym)
		print_error(s, m->path, q->symbol ? NULL : &q->address, q->symbol,
			    m->error ? m->error : "");
	else if (q->symbol)
		err = answer_symbol(s, m, q);
	else
		print_answer(s, m->path, &q->address,
			     q->n_frames ? s->answer.data + q->frame : NULL, q->n_frames);
	if (!err && m->sym && !m->warned && dwr_sym_warning(m->sym)) {
		m->warned = true;
		complain(m->path, dwr_sym_warning(m->sym));
	}
	return err;
}

static int by_address(const void *a, const void *b, void *ctx)
{
	const struct question *x = (struct question *)ctx + *(const uint32_t *)a,
			      *y = (struct question *)ctx + *(const uint32_t *)b;
	if (x->module != y->module)
		return x->module < y->module ? -1 : 1;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* Answers and prints what was asked so far. */
static struct elfrw_err *answer(struct session *s)
{
	size_t n = s->question.len;
	struct elfrw_err *err = NULL;
	s->answer.len = 0;
	for (size_t i = 0; i < n; i++)
		s->order[i] = (uint32_t)i;
	qsort_r(s->order, n, sizeof *s->order, by_address, s->question.data);
	for (size_t i = 0; i < n && !err; i++)
		err = find_answer(s, &s->question.data[s->order[i]]);
	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = print_question(s, &s->question.data[i]);
		free(s->question.data[i].symbol);
	}
	s->question.len = 0;
	return err;
}

static struct elfrw_err *ask(struct session *s, const char *line)
{
	if (s->question.len == MAX_QUESTIONS)
		ELFRW_TRY(answer(s));
	struct question *q = VEC_PUSH(&s->question);
	if (!q)
		return &elfrw_err_nomem;
	q->line = line;
	return parse(s, q);
}

/* The whole lines among the *LEN bytes at BUF; moves the rest to the front. */
static struct elfrw_err *answer_lines(struct session *s, char *buf, size_t *len)
{
	char *line = buf, *nl;
	while ((nl = memchr(line, '\n', *len - (size_t)(line - buf)))) {
		*nl = 0;
		if (nl > line && nl[-1] == '\r')
			nl[-1] = 0;
		ELFRW_TRY(ask(s, line));
		line = nl + 1;
	}
	ELFRW_TRY(answer(s));
	*len -= (size_t)(line - buf);
	memmove(buf, line, *len);
	return NULL;
}

/* Lines of standard input; what was answered is flushed before the program waits for more. */
static struct elfrw_err *answer_input(struct session *s)
{
	size_t len = 0, cap = 1 << 18;
	char *buf = malloc(cap);
	struct elfrw_err *err = buf ? NULL : &elfrw_err_nomem;
	bool end = false;
	while (!err && !end) {
		if (len + 1 == cap) { /* one line fills it */
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
		if (end && !err && len && buf[len - 1] != '\n')
			buf[len++] = '\n';
		if (!err)
			err = answer_lines(s, buf, &len);
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
		err = ask(s, arg[i]);
	if (!err)
		err = answer(s);
	if (json)
		fputs(s->style.pretty && s->printed ? "\n]\n" : "]\n", stdout);
	return err;
}

enum {
	OPT_NO_INLINES = 256,
	OPT_DEMANGLE,
	OPT_NO_DEMANGLE,
	OPT_RELATIVE,
	OPT_STYLE,
	OPT_RELATIVE_ADDRESS,
	OPT_ADJUST,
	OPT_DEBUG_DIR,
	OPT_FUNCTIONS,
	OPT_JSON,
	OPT_SYSROOT,
	OPT_DEBUG_FILE,
	OPT_PERF,
	OPT_STACK,
	OPT_CORE,
	OPT_PID,
};

static const struct option options[] = {
	{ "obj", required_argument, NULL, 'e' },
	{ "exe", required_argument, NULL, 'e' },
	{ "inlines", no_argument, NULL, 'i' },
	{ "inlining", no_argument, NULL, 'i' },
	{ "no-inlines", no_argument, NULL, OPT_NO_INLINES },
	{ "functions", optional_argument, NULL, OPT_FUNCTIONS },
	{ "demangle", optional_argument, NULL, OPT_DEMANGLE },
	{ "no-demangle", no_argument, NULL, OPT_NO_DEMANGLE },
	{ "addresses", no_argument, NULL, 'a' },
	{ "pretty-print", no_argument, NULL, 'p' },
	{ "basenames", no_argument, NULL, 's' },
	{ "relativenames", no_argument, NULL, OPT_RELATIVE },
	{ "output-style", required_argument, NULL, OPT_STYLE },
	{ "json", no_argument, NULL, OPT_JSON },
	{ "relative-address", no_argument, NULL, OPT_RELATIVE_ADDRESS },
	{ "adjust-vma", required_argument, NULL, OPT_ADJUST },
	{ "debug-file-directory", required_argument, NULL, OPT_DEBUG_DIR },
	{ "debug-file", required_argument, NULL, OPT_DEBUG_FILE },
	{ "sysroot", required_argument, NULL, OPT_SYSROOT },
	{ "perf", no_argument, NULL, OPT_PERF },
	{ "stack", no_argument, NULL, OPT_STACK },
	{ "core", required_argument, NULL, OPT_CORE },
	{ "pid", required_argument, NULL, OPT_PID },
	{ 0 },
};

static int bad_value(const char *option, const char *value, const char *want)
{
	return icf_usage_error("symbolize", "%s=%s: must be %s", option, value, want);
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
			return bad_value("--functions", optarg, "linkage, short or none");
		return -1;
	case 'C': optarg = NULL; /* fall through */
	case OPT_DEMANGLE:
		if (optarg && strcmp(optarg, "llvm") && strcmp(optarg, "gnu"))
			return bad_value("--demangle", optarg, "llvm or gnu");
		s->flags |= DWR_SYM_DEMANGLE;
		s->options.spelling =
			optarg && !strcmp(optarg, "gnu") ? DWR_SPELLING_GNU : DWR_SPELLING_LLVM;
		return -1;
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
			return bad_value("--output-style", optarg, "LLVM, GNU or JSON");
		return -1;
	case OPT_JSON: s->style.output = ICF_SYM_JSON; return -1;
	case OPT_RELATIVE_ADDRESS:
		return -1; /* an ELF file's own addresses are relative to its base */
	case OPT_ADJUST: {
		char *end;
		errno = 0;
		s->adjust = strtoull(optarg, &end, 0);
		return *optarg && !*end && !errno ? -1
						  : bad_value("--adjust-vma", optarg, "a number");
	}
	case OPT_DEBUG_DIR: s->options.debug_dir = optarg; return -1;
	case OPT_DEBUG_FILE: s->options.debug_file = optarg; return -1;
	case OPT_SYSROOT: s->options.sysroot = optarg; return -1;
	case OPT_PERF: s->perf = true; return -1;
	case OPT_STACK: s->stack = true; return -1;
	case OPT_CORE: s->core = optarg; return -1;
	case OPT_PID: s->pid = optarg; return -1;
	}
	return -1;
}

/* What does not go together in a command line with N addresses, or NULL. */
static const char *contradiction(const struct session *s, int n)
{
	if (s->options.debug_file && !s->obj && !s->core && !s->pid)
		return "--debug-file needs the file that it belongs to: --obj=FILE";
	if (s->perf)
		return NULL;
	if ((s->core || s->pid) && (n || s->stack || (s->core && s->pid)))
		return "--core and --pid go with neither addresses, nor --stack, nor each other";
	if (s->stack && !s->core && !s->pid && !s->obj)
		return "--stack needs the file of the addresses: --obj=FILE";
	return NULL;
}

static struct elfrw_err *run(struct session *s, char **arg, int n)
{
	uint32_t m = 0;
	if (s->perf) {
		struct icf_sym_perf_in perf = { s->obj, &s->options };
		return icf_sym_perf(&perf, arg, n);
	}
	if (s->core || s->pid) {
		struct icf_core_in core = { s->core,     s->pid,   s->obj,    &s->style,
					    &s->options, s->flags, s->inlines };
		s->status = icf_sym_core(&core);
		return NULL;
	}
	if (s->obj) {
		ELFRW_TRY(module_of(s, s->obj, strlen(s->obj), &m));
		if (!s->module[m].sym)
			return NULL;
	}
	if (!s->stack)
		return answer_all(s, arg, n);
	struct icf_sym_stack_in in = { s->module[m].sym, s->module[m].path, &s->style, s->flags,
				       s->inlines,       s->adjust,         false };
	return icf_sym_stacks(&in, arg, n);
}

static void close_session(struct session *s)
{
	dwr_sym_frames_deinit(&s->frames);
	for (size_t i = 0; i < s->question.len; i++)
		free(s->question.data[i].symbol);
	VEC_FREE(&s->question);
	VEC_FREE(&s->answer);
	for (uint32_t i = 0; i < s->n_modules; i++) {
		dwr_sym_close(s->module[i].sym);
		free(s->module[i].path);
		free(s->module[i].error);
	}
	free(s->module);
	free(s);
}

int icf_cmd_symbolize(int argc, char **argv)
{
	struct session *s = calloc(1, sizeof *s);
	if (!s) {
		icf_message(NULL, "out of memory");
		return ICF_EXIT_TROUBLE;
	}
	s->style.functions = s->inlines = true;
	s->flags = DWR_SYM_DEMANGLE;
	int c, status = -1;
	struct icf_cmdline line;
	icf_cmdline_init(&line, "symbolize", usage, "e:ifCaps", options, argc, argv);
	while (status < 0 && (c = icf_cmdline_next(&line)) != -1)
		status = c == ICF_CMDLINE_EXIT ? line.status : set_option(s, c);
	s->style.verbose = line.verbose;
	const char *wrong = status < 0 ? contradiction(s, line.n) : NULL;
	if (wrong)
		status = icf_usage_error("symbolize", "%s", wrong);
	if (status < 0) {
		struct elfrw_err *err = run(s, line.operand, line.n);
		for (uint32_t i = 0; i < s->n_modules && !err; i++)
			err = s->module[i].sym ? dwr_sym_complete(s->module[i].sym) : NULL;
		if (!err && (fflush(stdout) != 0 || ferror(stdout)))
			err = elfrw_error_errno(errno, "cannot write standard output");
		if (err) {
			icf_message(NULL, "%s", elfrw_err_text(err));
			elfrw_err_free(err);
			s->status = ICF_EXIT_TROUBLE;
		}
		status = s->status;
	}
	close_session(s);
	return status;
}
