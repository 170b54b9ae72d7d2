/* log.c: icfold symbolize --log: copies a log and names the functions of its stack frames.
 *
 * Frames that follow each other in one form are a stack, and are decided together.  One stack is
 * held at a time; everything else passes through byte for byte, as it comes. */
#include "icf/cmd/log/log.h"
#include "icf/cmd/lines.h"
#include "icf/cmd/log/state.h"
#include <inttypes.h>

#define MAX_FRAMES 32768      /* of one stack */
#define MAX_FRAME  (1u << 20) /* bytes of one frame with the lines behind it */
#define MAX_TEXT   (1u << 24) /* bytes of one stack before its last frame */

/* ---- output ---- */

/* Decides the levels of FILE in the stack in hand. */
static struct elfrw_err *resolve(struct icf_log *g, uint32_t file)
{
	size_t first = !g->line.data[0].pc; /* a stack for icf_stack_resolve begins with a PC */
	g->address.len = 0;
	if (!VEC_RESERVE(&g->address, g->line.len + 1))
		return &elfrw_err_nomem;
	g->address.len = g->line.len + first;
	g->address.data[0] = 0;
	for (size_t i = 0; i < g->line.len; i++) {
		const struct icf_log_line *l = &g->line.data[i];
		/* A place that was interrupted is no return address; the byte behind it is taken
		 * for one. */
		g->address.data[i + first] = l->file == file ? l->address + (l->pc && i) : 0;
	}
	return icf_stack_resolve(g->file.data[file]->stack, g->address.data, NULL, g->address.len);
}

static bool is_numbered(const struct icf_log_line *l)
{
	return l->f.form == ICF_LOG_SANITIZER || l->f.form == ICF_LOG_THREAD;
}

static void put_line(const struct icf_log *g, const struct icf_log_line *l, uint64_t shift)
{
	const char *s = g->text.data + l->at;
	const struct icf_log_part *n = &l->f.number;
	if (!is_numbered(l) || !shift) {
		fwrite(s, 1, l->n, stdout);
		return;
	}
	fwrite(s, 1, n->at, stdout);
	printf("%" PRIu64, l->f.n + shift);
	fwrite(s + n->at + n->n, 1, l->n - n->at - n->n, stdout);
}

static struct elfrw_err *print_stack(struct icf_log *g)
{
	uint64_t shift = 0;
	size_t first = !g->line.data[0].pc;
	for (size_t i = 0; i < g->line.len; i++) {
		const struct icf_log_line *l = &g->line.data[i];
		struct icf_sym_answer a = { 0 };
		if (l->file != ICF_LOG_NO_FILE)
			ELFRW_TRY(icf_stack_answer(g->file.data[l->file]->stack, i + first,
						   &l->address, &a));
		bool right = !a.n || !a.frame[a.n - 1].function;
		if (!right && l->f.name.n && is_numbered(l))
			ELFRW_TRY(icf_log_is_right(g, l, &a, &right));
		if (!right)
			icf_log_print(g, l, &a, &shift);
		for (size_t k = 0; k <= l->n_inner && right; k++)
			put_line(g, icf_log_inner(g, l, k), shift);
	}
	return NULL;
}

/* Prints and clears the stack in hand. */
static struct elfrw_err *flush_stack(struct icf_log *g)
{
	if (!g->line.len)
		return NULL;
	ELFRW_TRY(icf_log_places(g));
	for (uint32_t f = 0; f < g->file.len; f++) {
		bool here = false;
		for (size_t i = 0; i < g->line.len && !here; i++)
			here = g->line.data[i].file == f;
		if (here)
			ELFRW_TRY(resolve(g, f));
	}
	struct elfrw_err *err = print_stack(g);
	g->line.len = g->inner.len = g->text.len = 0;
	return err;
}

/* ---- input ---- */

/* Does a frame F, in the line at S, go on with the stack in hand? */
static bool continues(const struct icf_log *g, const char *s, const struct icf_log_frame *f)
{
	const struct icf_log_line *last = g->line.len ? &g->line.data[g->line.len - 1] : NULL;
	return last && last->f.form == f->form && g->line.len < MAX_FRAMES &&
	       g->text.len < MAX_TEXT && f->form != ICF_LOG_KERNEL &&
	       (!f->has_number || f->n > last->f.n) &&
	       icf_log_same_source(icf_log_at(g, last, last->f.prefix), last->f.prefix.n,
				   s + f->prefix.at, f->prefix.n);
}

/* Do the N bytes at S belong to the frame in hand?  Behind a name, Rust writes inlined calls and
 * places in lines that are indented further than any frame. */
static bool goes_on(const struct icf_log *g, const char *s, size_t n)
{
	enum { INDENTED = 20 };
	const struct icf_log_line *l = g->line.len ? &g->line.data[g->line.len - 1] : NULL;
	if (!l || l->f.form != ICF_LOG_RUST || !l->f.name.n || n <= INDENTED || l->n > MAX_FRAME)
		return false;
	for (size_t i = 0; i < INDENTED; i++)
		if (s[i] != ' ')
			return false;
	return true;
}

/* Is F, in the line at S, a function that the one in hand was inlined in?  Rust gives it a number,
 * too.  A function that calls itself has its own name again. */
static bool is_inlined(const struct icf_log *g, const char *s, const struct icf_log_frame *f)
{
	const struct icf_log_line *l = g->line.len ? &g->line.data[g->line.len - 1] : NULL;
	return l && f->form == ICF_LOG_RUST && l->f.form == f->form && f->name.n && l->f.name.n &&
	       f->address == l->f.address && l->n < MAX_FRAME &&
	       (f->name.n != l->f.name.n ||
		memcmp(s + f->name.at, icf_log_at(g, l, l->f.name), f->name.n) != 0);
}

/* Adds N bytes to line L, the last one. */
static struct elfrw_err *add_text(struct icf_log *g, struct icf_log_line *l, const char *s,
				  size_t n)
{
	if (!VEC_RESERVE(&g->text, g->text.len + n))
		return &elfrw_err_nomem;
	memcpy(g->text.data + g->text.len, s, n);
	g->text.len += n;
	l->n += (uint32_t)n;
	return NULL;
}

/* Takes a line of N bytes; the last byte is its newline, if it has one. */
static struct elfrw_err *take_line(struct icf_log *g, const char *s, size_t n)
{
	struct icf_log_frame f;
	struct icf_log_mapping m;
	size_t len = n;
	while (len && (s[len - 1] == '\n' || s[len - 1] == '\r'))
		len--;
	if (goes_on(g, s, len))
		return add_text(g, &g->line.data[g->line.len - 1], s, n);
	if (!icf_log_parse(s, len, &f)) {
		ELFRW_TRY(flush_stack(g));
		fwrite(s, 1, n, stdout);
		return icf_log_parse_mapping(s, len, &m) ? icf_log_map(g, &m, s) : NULL;
	}
	if (is_inlined(g, s, &f))
		return add_text(g, &g->line.data[g->line.len - 1], s, n);
	if (!continues(g, s, &f))
		ELFRW_TRY(flush_stack(g));
	struct icf_log_line *l = VEC_PUSH(&g->line);
	if (!l)
		return &elfrw_err_nomem;
	*l = (struct icf_log_line){ .at = (uint32_t)g->text.len, .first = (uint32_t)n, .f = f };
	return add_text(g, l, s, n);
}

static struct elfrw_err *pass_line(void *arg, const char *s, size_t n)
{
	return take_line(arg, s, n);
}

static struct elfrw_err *pass_flush(void *arg)
{
	return flush_stack(arg);
}

static bool holds(const void *arg)
{
	const struct icf_log *g = arg;
	return g->line.len != 0;
}

struct elfrw_err *icf_sym_log(const struct icf_sym_log_in *in, char **arg, int n)
{
	struct icf_log g = { .in = in };
	const struct icf_lines lines = { &g, pass_line, pass_flush, holds };
	struct elfrw_err *err = icf_log_open_obj(&g);
	if (!err)
		err = icf_lines_run(&lines, arg, n);
	icf_log_close_files(&g);
	VEC_FREE(&g.text);
	VEC_FREE(&g.line);
	VEC_FREE(&g.inner);
	dwr_sym_frames_deinit(&g.frames);
	VEC_FREE(&g.address);
	return err;
}
