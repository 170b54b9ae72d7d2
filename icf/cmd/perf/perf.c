/* perf.c: icfold symbolize --perf: copies the text of `perf script` and replaces names of
 * functions.
 *
 * A frame is the address, the name (with or without +0xOFFSET), and the file in brackets.  Frames
 * of a call chain begin with a tab, and an empty line ends the chain.  A sample without a chain has
 * its frame at the end of its line.  Lines of calls that were inlined in a frame stand before it,
 * with "(inlined)" instead of the file.  Everything else is copied unchanged.  (Linux:
 * tools/perf/builtin-script.c and util/evsel_fprintf.c.)
 *
 * If perf's symbol for an address is not the name in the debug information, perf takes the function
 * itself for an inlined call.  It then prints a line "(inlined)" that names the function, without a
 * further line of the same address.  If its name for the inlined call is that of the function, the
 * line appears twice.
 *
 * Callers are return addresses or, in chains that perf unwound by DWARF, return addresses minus
 * one.  The address behind the call is used.
 *
 * One sample is held at a time.  Frames and stacks repeat, so results are cached by two keys (128
 * bits of hash): the text of a frame, and the addresses of adjacent frames in shared code with the
 * next outer frame, on which alone the answer depends. */
#include "icf/cmd/perf/perf.h"
#include "elfrw/base/printable.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/lines.h"
#include "icf/cmd/perf/state.h"
#include <inttypes.h>
#include <stdio.h>
#include <sys/stat.h>

#define MAX_LINES 32768      /* of one sample */
#define MAX_TEXT  (1u << 24) /* bytes of one sample before its last line */

static struct elfrw_err *take_mapping(struct icf_perf *p, const char *s, const char *end)
{
	struct icf_perf_mapping m;
	uint32_t module;
	if (!icf_perf_parse_mapping(s, end, &m))
		return NULL;
	ELFRW_TRY(icf_perf_module_of(p, m.path, (size_t)(end - m.path), &module));
	return module == ICF_PERF_NO_MODULE
		       ? NULL
		       : icf_perf_mapped(p->module.data[module], m.pid, m.start, m.offset);
}

/* Adds a line of N bytes to the sample.  F: the frame in the line, or NULL. */
static struct elfrw_err *add_line(struct icf_perf *p, const char *s, size_t n,
				  const struct icf_perf_parts *f)
{
	struct icf_perf_line *l = VEC_PUSH(&p->line);
	if (!l || !VEC_RESERVE(&p->text, p->text.len + n))
		return &elfrw_err_nomem;
	memcpy(p->text.data + p->text.len, s, n);
	*l = (struct icf_perf_line){ .at = (uint32_t)p->text.len,
				     .n = (uint32_t)n,
				     .is_frame = f,
				     .place.module = ICF_PERF_NO_MODULE,
				     .frame = UINT32_MAX };
	if (f)
		l->f = *f;
	p->text.len += n;
	return NULL;
}

/* Do the N bytes at NAME spell one of the names of MEMBER in perf's form? */
static bool is_named(struct icf_perf_module *m, uint32_t member, const char *name, size_t n)
{
	const struct dwr_icfold_member *k = &m->note->member[member];
	for (uint32_t i = 0; i < k->n_names; i++)
		if (icf_perf_same_name(m, m->note->names[k->name + i], name, n))
			return true;
	return false;
}

/* ---- output ---- */

static void put_named(const struct icf_perf *p, const struct icf_perf_line *l, const char *name)
{
	const char *s = p->text.data + l->at;
	fwrite(s, 1, l->f.name, stdout);
	elfrw_put_printable(stdout, name);
	fwrite(s + l->f.name + l->f.n_name, 1, l->n - l->f.name - l->f.n_name, stdout);
}

static void put_line(const struct icf_perf *p, const struct icf_perf_line *l)
{
	fwrite(p->text.data + l->at, 1, l->n, stdout);
}

static const char *inlined_name(struct icf_perf_module *m, const struct dwr_sym_frame *f,
				enum icf_perf_form form)
{
	return f->linkage ? icf_perf_spell(m, f->linkage, form) : f->function ? f->function : "??";
}

/* Prints the lines FIRST to LAST: calls inlined at LAST, which is the frame of a decided
 * function. */
static struct elfrw_err *put_decided(struct icf_perf *p, size_t first, size_t last,
				     struct icf_perf_module *m, const struct icf_perf_answer *a,
				     uint64_t at)
{
	const struct icf_perf_line *l = &p->line.data[last];
	const char *text = p->text.data + l->at;
	enum icf_perf_form form = icf_perf_form_of(text + l->f.name, l->f.n_name);
	bool kept = m->note->group[m->note->member[a->member].group].member == a->member,
	     inlines = p->inlines_seen && !kept;
	size_t n = last - first, want = n;
	const char *name;
	if (inlines) {
		ELFRW_TRY(dwr_sym_frames_for_member(m->sym, at, a->member, DWR_SYM_DEMANGLE,
						    &p->frames));
		want = p->frames.len ? p->frames.len - 1 : 0;
	}
	for (size_t i = 0; i < want; i++) {
		const struct icf_perf_line *k = i < n ? &p->line.data[first + i] : l;
		if (!inlines) {
			put_line(p, k);
			continue;
		}
		if (!(name = inlined_name(m, &p->frames.data[i],
					  i < n ? icf_perf_form_of(p->text.data + k->at + k->f.name,
								   k->f.n_name)
						: form)))
			return &elfrw_err_nomem;
		if (i < n)
			put_named(p, k, name);
		else { /* the kept function has no inlined call here */
			const char *open = memrchr(text, '(', l->n);
			fwrite(text, 1, l->f.name, stdout);
			elfrw_put_printable(stdout, name);
			fwrite(text + l->f.name + l->f.n_name, 1,
			       (size_t)(open - text) - l->f.name - l->f.n_name, stdout);
			fputs("(inlined)\n", stdout);
		}
	}
	if (is_named(m, a->member, text + l->f.name, l->f.n_name)) {
		put_line(p, l);
		return NULL;
	}
	if (!(name = icf_perf_spell(m, icf_perf_linkage(p, m, a->member, at), form)))
		return &elfrw_err_nomem;
	put_named(p, l, name);
	return NULL;
}

/* Prints and clears the sample. */
static struct elfrw_err *flush_sample(struct icf_perf *p)
{
	struct elfrw_err *err = icf_perf_frames(p);
	if (p->n_stacks >= ICF_PERF_KNOWN / 2 || p->answer.len >= 2 * ICF_PERF_KNOWN ||
	    p->candidate.len >= 4 * ICF_PERF_KNOWN)
		icf_perf_forget(p);
	for (size_t i = 0; i < p->frame.len && !err;) {
		size_t hi = i;
		while (hi < p->frame.len && p->frame.data[hi].shared &&
		       p->frame.data[hi].module == p->frame.data[i].module)
			hi++;
		if (hi > i)
			err = icf_perf_answer(p, i, hi);
		i = hi > i ? hi : i + 1;
	}
	size_t inlined = 0; /* lines of inlined calls that wait for the line of their function */
	for (size_t i = 0; i < p->line.len && !err; i++) {
		const struct icf_perf_line *l = &p->line.data[i];
		const struct icf_perf_frame *f =
			l->frame == UINT32_MAX ? NULL : &p->frame.data[l->frame];
		struct icf_perf_answer *a =
			f && f->answer != UINT32_MAX ? &p->answer.data[f->answer] : NULL;
		if (l->is_frame && l->f.inlined && !f) {
			inlined++;
			continue;
		}
		struct icf_perf_module *m = a ? p->module.data[f->module] : NULL;
		uint64_t at = f ? f->address - (l->frame != 0) : 0;
		if (a && a->decided) {
			err = put_decided(p, i - inlined, i, m, a, at);
			inlined = 0;
			continue;
		}
		for (; inlined; inlined--)
			put_line(p, l - inlined);
		if (a && a->member != UINT32_MAX) {
			const char *name;
			err = icf_perf_undecided(
				p, m, a, at,
				icf_perf_form_of(p->text.data + l->at + l->f.name, l->f.n_name),
				&name);
			if (!err)
				put_named(p, l, name);
		} else
			put_line(p, l);
	}
	for (; inlined; inlined--)
		put_line(p, p->line.data + p->line.len - inlined);
	p->text.len = p->line.len = p->frame.len = 0;
	p->chain = false;
	return err;
}

/* ---- input ---- */

/* Takes a line of N bytes; the last byte is its newline, if it has one. */
static struct elfrw_err *take_line(struct icf_perf *p, const char *s, size_t n)
{
	const char *end = s + n, *c = s;
	struct icf_perf_parts f;
	while (end > s && (end[-1] == '\n' || end[-1] == '\r'))
		end--;
	while (c < end && (*c == ' ' || *c == '\t'))
		c++;
	bool indented = c > s;
	if (c == end) {
		ELFRW_TRY(flush_sample(p));
		fwrite(s, 1, n, stdout);
		return NULL;
	}
	if (p->line.len >= MAX_LINES || p->text.len >= MAX_TEXT)
		ELFRW_TRY(flush_sample(p));
	if (indented && (*s == '\t' || p->chain) && icf_perf_parse_frame(s, c, end, &f) &&
	    (*s == '\t' || !memmem(s + f.name, f.n_name, ": ", 2)))
		return add_line(p, s, n, &f);
	p->fileless += *s == '\t' && icf_perf_parse_bare(s, c, end, &f) && f.n_name && !f.n_dso;
	if (indented && p->line.len) /* more text about the frame before: its source line */
		return add_line(p, s, n, NULL);
	ELFRW_TRY(flush_sample(p));
	if (memmem(s, (size_t)(end - s), "PERF_RECORD_MMAP", 16)) {
		fwrite(s, 1, n, stdout);
		return take_mapping(p, s, end);
	}
	p->pid = icf_perf_parse_pid(s, end);
	if ((indented && icf_perf_parse_frame(s, c, end, &f) &&
	     !memmem(s + f.name, f.n_name, ": ", 2)) ||
	    icf_perf_parse_sample(s, end, &f)) {
		ELFRW_TRY(add_line(p, s, n, &f));
		return flush_sample(p);
	}
	p->fileless += *s != '\t' && icf_perf_ends_bare(s, end);
	p->chain = true;
	fwrite(s, 1, n, stdout);
	return NULL;
}

static struct elfrw_err *pass_line(void *arg, const char *s, size_t n)
{
	return take_line(arg, s, n);
}

static struct elfrw_err *pass_flush(void *arg)
{
	return flush_sample(arg);
}

static bool holds(const void *arg)
{
	const struct icf_perf *p = arg;
	return p->line.len != 0;
}

static struct elfrw_err *run(struct icf_perf *p, char **arg, int n)
{
	struct stat st;
	if (p->in->obj) {
		struct icf_perf_module **m = VEC_PUSH(&p->module);
		if (!m)
			return &elfrw_err_nomem;
		*m = NULL;
		ELFRW_TRY(elfrw_err_about(p->in->obj,
					  icf_perf_open(p->in->obj, p->in->options, true, m)));
		p->have_id = stat(p->in->obj, &st) == 0;
		p->dev = st.st_dev;
		p->ino = st.st_ino;
	}
	p->known = calloc(ICF_PERF_SLOTS, sizeof *p->known);
	p->stack = calloc(ICF_PERF_SLOTS, sizeof *p->stack);
	if (!p->known || !p->stack)
		return &elfrw_err_nomem;
	const struct icf_lines lines = { p, pass_line, pass_flush, holds };
	return icf_lines_run(&lines, arg, n);
}

struct elfrw_err *icf_sym_perf(const struct icf_sym_perf_in *in, char **arg, int n)
{
	struct icf_perf p = { .in = in, .pid = -1 };
	struct elfrw_err *err = run(&p, arg, n);
	if (!err && p.fileless)
		icf_message(NULL,
			    "%" PRIu64 " frames name no file, and are left as they are; "
			    "perf script shows files with the field dso",
			    p.fileless);
	if (p.stack)
		icf_perf_forget(&p);
	for (size_t i = 0; i < p.module.len; i++)
		icf_perf_close(p.module.data[i]);
	icf_perf_forget_files(&p);
	VEC_FREE(&p.module);
	VEC_FREE(&p.file);
	VEC_FREE(&p.dso);
	free(p.dso_slot);
	VEC_FREE(&p.text);
	VEC_FREE(&p.line);
	VEC_FREE(&p.frame);
	VEC_FREE(&p.address);
	VEC_FREE(&p.answer);
	VEC_FREE(&p.candidate);
	dwr_chain_deinit(&p.answer_chain);
	dwr_sym_frames_deinit(&p.frames);
	free(p.known);
	free(p.stack);
	return err;
}
