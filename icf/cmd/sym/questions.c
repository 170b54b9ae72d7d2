/* questions.c: see questions.h.
 *
 * Questions that are available together are answered in the order of their addresses: each look-up
 * reuses what the last one read, and one walk over a function answers for all addresses in it. They
 * are printed in their own order.  This saves half of the time for 10,000 addresses, and nobody
 * waits longer. */
#include "icf/cmd/sym/questions.h"
#include "elfrw/base/vec.h"
#include "elfrw/image.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include "icf/cmd/sym/input.h"
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct module {
	char *path;          /* owned */
	struct dwr_sym *sym; /* NULL: could not be opened */
	char *error;         /* why not; owned */
	bool warned;
};

/* One parsed question and its answer. */
struct question {
	const char *line; /* the whole line, NUL-terminated; borrowed */
	bool bad;         /* cannot be parsed */
	uint32_t module;
	uint64_t address; /* or the offset from SYMBOL */
	char *symbol;     /* owned; NULL: an address */
	size_t frame, n_frames;
};

#define MAX_QUESTIONS 16384 /* answered together */
#define MANY          1024  /* so many are worth no memory of what is behind */

struct icf_questions {
	const struct icf_questions_in *in;
	struct module *module;
	uint32_t n_modules, last;
	VEC(struct question) question;
	uint32_t order[MAX_QUESTIONS];
	VEC(struct dwr_sym_frame) answer; /* the frames of all questions */
	struct dwr_sym_frames frames;
	bool list;   /* JSON objects go into one array */
	bool server; /* questions come one by one, each after the last answer */
	bool printed;
	int status;
};

/* The file that the N bytes at PATH name, opened on first use. */
static struct elfrw_err *module_of(struct icf_questions *s, const char *path, size_t n,
				   uint32_t *ret)
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
	struct elfrw_err *err = dwr_sym_open(m->path, s->in->options, &m->sym);
	if (!err && s->server)
		dwr_sym_expect_many(m->sym);
	if (err) {
		s->status = ICF_EXIT_TROUBLE;
		icf_message(m->path, "%s", elfrw_err_text(err));
		m->error = strdup(elfrw_err_text(err));
		elfrw_err_free(err);
	}
	return NULL;
}

/* Reads the hexadecimal number in the N bytes at S. */
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

/* Reads the next word of *P, in quotes or not; false: none. */
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

/* Parses Q's line. */
static struct elfrw_err *parse(struct icf_questions *s, struct question *q)
{
	const char *p = q->line, *file = s->in->obj, *what;
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

static void begin_object(struct icf_questions *s)
{
	if (s->in->style->output != ICF_SYM_JSON || !s->list)
		return;
	if (s->printed)
		putchar(',');
	if (s->in->style->pretty)
		fputs("\n  ", stdout);
	s->printed = true;
}

static void end_object(const struct icf_questions *s)
{
	if (s->in->style->output == ICF_SYM_JSON && !s->list)
		putchar('\n');
}

static void print_answer(struct icf_questions *s, const struct icf_sym_answer *answer)
{
	begin_object(s);
	icf_sym_print(stdout, s->in->style, answer, s->list);
	end_object(s);
}

static struct elfrw_err *look_up(struct icf_questions *s, struct dwr_sym *sym, uint64_t address,
				 bool inlines)
{
	unsigned flags = s->in->flags;
	/* GNU style: a single frame is the innermost one, under its own name. */
	if (!inlines && s->in->style->output != ICF_SYM_GNU)
		flags |= DWR_SYM_NO_INLINES;
	ELFRW_TRY(dwr_sym_frames(sym, address, flags, &s->frames));
	if (!inlines && s->frames.len > 1)
		s->frames.len = 1;
	return NULL;
}

static struct elfrw_err *answer_symbol(struct icf_questions *s, struct module *m,
				       const struct question *q)
{
	struct dwr_sym_symbol found;
	size_t from = 0;
	bool any = false;
	while (dwr_sym_symbol_named(m->sym, q->symbol, &from, &found)) {
		ELFRW_TRY(look_up(s, m->sym, found.address + q->address, false));
		print_answer(s, &(struct icf_sym_answer){ .module = m->path,
							  .frame = s->frames.data,
							  .n = s->frames.len });
		any = true;
	}
	if (!any)
		print_answer(s, &(struct icf_sym_answer){ .module = m->path });
	return NULL;
}

/* Is Q about an address? */
static bool is_plain(const struct question *q)
{
	return !q->bad && !q->symbol;
}

/* Finds the answers to questions about addresses. */
static struct elfrw_err *find_answer(struct icf_questions *s, struct question *q)
{
	struct dwr_sym *sym = is_plain(q) ? s->module[q->module].sym : NULL;
	if (!sym)
		return NULL;
	ELFRW_TRY(look_up(s, sym, q->address - s->in->adjust, s->in->inlines));
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

static struct elfrw_err *print_question(struct icf_questions *s, const struct question *q)
{
	if (q->bad) {
		if (s->in->style->output == ICF_SYM_JSON)
			print_answer(s, &(struct icf_sym_answer){
						.module = s->in->obj ? s->in->obj : "",
						.symbol = q->line,
						.error = "unable to parse arguments" });
		else
			icf_sym_print_line(stdout, q->line);
		return NULL;
	}
	struct module *m = &s->module[q->module];
	struct icf_sym_answer a = { .module = m->path, .address = q->symbol ? NULL : &q->address };
	struct elfrw_err *err = NULL;
	if (!m->sym) {
		a.symbol = q->symbol;
		a.error = m->error ? m->error : "";
		print_answer(s, &a);
	} else if (q->symbol) {
		err = answer_symbol(s, m, q);
	} else {
		a.frame = q->n_frames ? s->answer.data + q->frame : NULL;
		a.n = q->n_frames;
		print_answer(s, &a);
	}
	if (!err && m->sym && !m->warned && dwr_sym_warning(m->sym)) {
		m->warned = true;
		icf_message(m->path, "%s", dwr_sym_warning(m->sym));
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

/* Answers come in the order of addresses, so what was read for them is hardly read again. */
static void forget(struct dwr_sym *sym)
{
	bool apart;
	const struct elfrw_image *img = dwr_sym_debug_image(sym, &apart);
	if (img)
		elfrw_image_forget(img);
}

/* Questions whose addresses are told in advance.  Where their answers are is in memory until all of
 * them are found: at the start of a program they are in as many units. */
#define TOGETHER 256

/* Finds the answers to the questions from the I-th one by address on that are about one file, at
 * most TOGETHER.  *END: the first that is left. */
static struct elfrw_err *find_some(struct icf_questions *s, size_t i, size_t *end)
{
	const struct question *q = s->question.data, *first = &q[s->order[i]];
	struct dwr_sym *sym = s->module ? s->module[first->module].sym : NULL;
	uint64_t address[TOGETHER];
	size_t n = 0, to = i;
	for (; to < s->question.len && to - i < TOGETHER; to++) {
		const struct question *next = &q[s->order[to]];
		if (next->module != first->module)
			break;
		if (!is_plain(next))
			continue;
		address[n] = next->address - s->in->adjust;
		if (n && address[n] < address[n - 1]) /* it was smaller than the adjustment */
			break;
		n++;
	}
	struct elfrw_err *err = NULL;
	if (sym)
		dwr_sym_will_ask(sym, address, n);
	for (; i < to && !err; i++)
		err = find_answer(s, &s->question.data[s->order[i]]);
	if (sym)
		dwr_sym_will_ask(sym, NULL, 0);
	if (sym && n == TOGETHER)
		forget(sym);
	*end = to;
	return err;
}

/* Answers and prints all pending questions. */
static struct elfrw_err *answer(struct icf_questions *s)
{
	size_t n = s->question.len;
	struct elfrw_err *err = NULL;
	s->answer.len = 0;
	for (size_t i = 0; i < n; i++)
		s->order[i] = (uint32_t)i;
	qsort_r(s->order, n, sizeof *s->order, by_address, s->question.data);
	for (uint32_t i = 0; i < s->n_modules && n >= MANY; i++)
		if (s->module[i].sym)
			dwr_sym_in_order(s->module[i].sym);
	for (size_t i = 0; i < n && !err;)
		err = find_some(s, i, &i);
	for (size_t i = 0; i < n; i++) {
		if (!err)
			err = print_question(s, &s->question.data[i]);
		free(s->question.data[i].symbol);
	}
	s->question.len = 0;
	return err;
}

static struct elfrw_err *ask(struct icf_questions *s, const char *line)
{
	if (s->question.len == MAX_QUESTIONS)
		ELFRW_TRY(answer(s));
	struct question *q = VEC_PUSH(&s->question);
	if (!q)
		return &elfrw_err_nomem;
	q->line = line;
	return parse(s, q);
}

/* Answers lines of standard input.  Answers are flushed before the program waits for more input. */
static struct elfrw_err *answer_input(struct icf_questions *s)
{
	struct icf_input in = { 0 };
	struct elfrw_err *err = icf_input_more(&in);
	s->server = !err && !in.end && icf_input_waits();
	for (uint32_t i = 0; s->server && i < s->n_modules; i++)
		if (s->module[i].sym)
			dwr_sym_expect_many(s->module[i].sym);
	for (; !err; err = icf_input_more(&in)) {
		for (char *line; !err && (line = icf_input_line(&in));)
			err = ask(s, line);
		if (!err)
			err = answer(s);
		if (err || in.end)
			break;
	}
	icf_input_deinit(&in);
	return err;
}

struct elfrw_err *icf_questions_ask(struct icf_questions *s, char **arg, int n)
{
	if (!n)
		return answer_input(s);
	bool json = s->in->style->output == ICF_SYM_JSON;
	struct elfrw_err *err = NULL;
	s->list = json;
	if (json)
		putchar('[');
	for (int i = 0; i < n && !err; i++)
		err = ask(s, arg[i]);
	if (!err)
		err = answer(s);
	if (json)
		fputs(s->in->style->pretty && s->printed ? "\n]\n" : "]\n", stdout);
	return err;
}

struct elfrw_err *icf_questions_file(struct icf_questions *s, const char *path, const char **name,
				     struct dwr_sym **ret)
{
	uint32_t m = 0;
	ELFRW_TRY(module_of(s, path, strlen(path), &m));
	*name = s->module[m].path;
	*ret = s->module[m].sym;
	return NULL;
}

struct elfrw_err *icf_questions_open(const struct icf_questions_in *in, struct icf_questions **ret)
{
	struct icf_questions *s = calloc(1, sizeof *s);
	if (!s)
		return &elfrw_err_nomem;
	s->in = in;
	*ret = s;
	return NULL;
}

struct elfrw_err *icf_questions_complete(struct icf_questions *s, int *status)
{
	for (uint32_t i = 0; i < s->n_modules; i++)
		if (s->module[i].sym)
			ELFRW_TRY(dwr_sym_complete(s->module[i].sym));
	*status = s->status;
	return NULL;
}

void icf_questions_close(struct icf_questions *s)
{
	if (!s)
		return;
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
