/* print.c: lines of a log with the functions and places of their frames, in the form of the log's
 * own writer where it has one.
 *
 *	#3 0x55d0 (prog+0x12a5)        #3 0x55d0 in work(int) /src/a.c:7:5
 *	#3 <null> <null> (prog+0x12a5) #3 work(int) /src/a.c:7:5 (prog+0x12a5)
 *	prog(f+0x12) [0x55d0]          prog(g+0x12) [0x55d0] g(int) at /src/a.c:7:5
 *	@ 0x55d0 (unknown)             @ 0x55d0 g(int) at /src/a.c:7:5
 *	4: 0x55d0 - <unknown>          4: 0x55d0 - g(int), and the place in the next line
 *
 * Sanitizers give each inlined call a frame with a number; elsewhere "(inlined by)" follows in the
 * same line, so that tools that count lines still find theirs. */
#include "elfrw/base/printable.h"
#include "icf/cmd/log/state.h"
#include <inttypes.h>

static void put_part(const struct icf_log *g, const struct icf_log_line *l, size_t from, size_t to)
{
	fwrite(g->text.data + l->at + from, 1, to - from, stdout);
}

/* Writes TEXT behind what L has so far. */
static void put_text(const struct icf_log_line *l, const char *text)
{
	if (l->f.json)
		elfrw_put_json_text(stdout, text, "");
	else
		elfrw_put_printable(stdout, text);
}

static void put_candidates(const struct icf_log_line *l, const struct icf_sym_merged *m)
{
	if (!m || m->decided || !m->n)
		return;
	fputs(" [one of: ", stdout);
	for (size_t i = 0; i < m->n; i++) {
		fputs(i ? ", " : "", stdout);
		put_text(l, m->candidate[i] ? m->candidate[i] : "??");
	}
	putchar(']');
}

static void put_function(const struct icf_log_line *l, const struct icf_sym_answer *a, size_t i)
{
	put_text(l, a->frame[i].function ? a->frame[i].function : "??");
	if (i + 1 == a->n)
		put_candidates(l, a->merged);
}

static void put_place(const struct icf_log_line *l, const struct dwr_sym_frame *f)
{
	put_text(l, f->file);
	if (f->line)
		printf(":%u", f->line);
	if (f->line && f->column)
		printf(":%u", f->column);
}

/* "FUNCTION at PLACE (inlined by) FUNCTION at PLACE" */
static void put_frames(const struct icf_log_line *l, const struct icf_sym_answer *a)
{
	for (size_t i = 0; i < a->n; i++) {
		fputs(i ? " (inlined by) " : "", stdout);
		put_function(l, a, i);
		if (!a->frame[i].file)
			continue;
		fputs(" at ", stdout);
		put_place(l, &a->frame[i]);
	}
}

/* One line for each frame, in place of as many lines as there were. */
static void print_numbered(const struct icf_log *g, const struct icf_log_line *level,
			   const struct icf_sym_answer *a, uint64_t *shift)
{
	bool thread = level->f.form == ICF_LOG_THREAD;
	for (size_t i = 0; i < a->n; i++) {
		const struct dwr_sym_frame *frame = &a->frame[i];
		const struct icf_log_line *l =
			icf_log_inner(g, level, i < level->n_inner ? i : level->n_inner);
		const struct icf_log_frame *f = &l->f;
		size_t end = f->cut.at + f->cut.n;
		put_part(g, l, 0, f->number.at);
		printf("%" PRIu64, level->f.n + *shift + i);
		put_part(g, l, f->number.at + f->number.n, f->cut.at);
		fputs(thread ? "" : " in ", stdout);
		put_function(l, a, i);
		if (frame->file) {
			putchar(' ');
			put_place(l, frame);
		} else if (thread)
			fputs(" <null>", stdout);
		else {
			putchar(' ');
			put_part(g, l, f->place.at, end);
		}
		put_part(g, l, end, l->n);
	}
	*shift += a->n - (1 + (uint64_t)level->n_inner);
}

/* Do the lines of L name the function already? */
static bool has_name(const struct icf_log *g, const struct icf_log_line *l,
		     const struct icf_sym_answer *a)
{
	const char *name = a->frame[a->n - 1].function;
	return memmem(g->text.data + l->at, l->n, name, strlen(name));
}

/* As Rust's standard library does, with the columns of its "full" style.  What it has found itself
 * is wrong only in shared code. */
static void print_rust(const struct icf_log *g, const struct icf_log_line *l,
		       const struct icf_sym_answer *a)
{
	size_t end = l->f.cut.at + l->f.cut.n;
	const char *newline = l->f.json ? "\\n" : "\n";
	if (l->f.name.n && (!a->merged || !a->merged->decided || has_name(g, l, a))) {
		put_part(g, l, 0, end);
		put_candidates(l, a->merged);
		put_part(g, l, end, l->n);
		return;
	}
	put_part(g, l, 0, l->f.cut.at);
	for (size_t i = 0; i < a->n; i++) {
		if (i)
			printf("%s%27s", newline, "");
		put_function(l, a, i);
		if (!a->frame[i].file)
			continue;
		printf("%s%31sat ", newline, "");
		put_place(l, &a->frame[i]);
	}
	put_part(g, l, end, l->first);
}

/* The name in brackets is that of the kept function. */
static const char *true_name(const struct icf_log_line *l, const struct icf_sym_answer *a)
{
	const struct dwr_sym_frame *f = &a->frame[a->n - 1];
	bool linkage = l->f.form == ICF_LOG_GLIBC;
	if (!l->f.name.n || !a->merged || !a->merged->decided)
		return NULL;
	return linkage && f->linkage ? f->linkage : f->function;
}

static void print_appended(const struct icf_log *g, const struct icf_log_line *l,
			   const struct icf_sym_answer *a)
{
	const struct icf_log_frame *f = &l->f;
	const char *name = true_name(l, a);
	size_t from = 0;
	if (name) {
		put_part(g, l, 0, f->name.at);
		put_text(l, name);
		from = f->name.at + f->name.n;
	}
	put_part(g, l, from, f->cut.at);
	if (g->text.data[l->at + f->cut.at - 1] != ' ')
		putchar(' ');
	put_frames(l, a);
	put_part(g, l, f->cut.at, l->n);
}

/* The answer stands in place of the name, and before anything else: "@ 0x" may be in any text. */
static void print_glog(const struct icf_log *g, const struct icf_log_line *l,
		       const struct icf_sym_answer *a)
{
	size_t n = icf_log_name_bytes(g, l, a), end = l->f.cut.at + n;
	put_part(g, l, 0, l->f.cut.at);
	put_frames(l, a);
	if (!n && l->f.cut.n)
		putchar(' ');
	put_part(g, l, end, l->n);
}

void icf_log_print(const struct icf_log *g, const struct icf_log_line *l,
		   const struct icf_sym_answer *a, uint64_t *shift)
{
	switch (l->f.form) {
	case ICF_LOG_SANITIZER:
	case ICF_LOG_THREAD: print_numbered(g, l, a, shift); return;
	case ICF_LOG_RUST: print_rust(g, l, a); return;
	case ICF_LOG_GLOG: print_glog(g, l, a); return;
	case ICF_LOG_GLIBC:
	case ICF_LOG_STRACE:
	case ICF_LOG_KERNEL:
	case ICF_LOG_OFFSET: print_appended(g, l, a); return;
	}
}
