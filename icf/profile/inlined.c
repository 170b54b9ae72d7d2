/* inlined.c: lines of call chains that perf shows for calls that were inlined.
 *
 * They stand before the frame that they were inlined in, with its address and "(inlined)" in place
 * of a file.  perf finds them in the debug information of the folded program, which has those of
 * the function whose code was kept, and so are the source lines (-F +srcline) behind all lines.
 *
 * perf takes one for the other in two cases (icf/cmd/perf/perf.c): its name for the address is not
 * the one in the debug information, as where two functions share code; then the function's own line
 * says "(inlined)".  Or the inlined call has the function's name; then its line names a file. */
#include "elfrw/base/printable.h"
#include "icf/profile/state.h"
#include <ctype.h>
#include <stddef.h>

/* ---- which line is what ---- */

/* The line of frame K says (inlined), and none of its address follows: it is the function's. */
static void take_orphan(struct icf_profile *p, struct icf_prof_frame *k)
{
	struct icf_prof_address *a = &p->address.data[k->address];
	const struct icf_perf_shown shown = { .pid = p->pid,
					      .ip = a->raw,
					      .name = p->text.data + k->line + k->f.name,
					      .n_name = k->f.n_name,
					      .offset = k->f.offset };
	if (p->in->forward || !icf_perf_known(p->m, &shown, &a->va) || a->va < p->lo ||
	    a->va > p->hi)
		return;
	a->in = true;
	k->inlined = false;
}

/* Frames K and its next have one address: is it one place, or did a function call itself? */
static struct elfrw_err *take_double(struct icf_profile *p, struct icf_prof_frame *k)
{
	struct icf_prof_address *a = &p->address.data[k->address];
	uint64_t site;
	bool again;
	ELFRW_TRY(icf_prof_site(p, a->va, &site, &again));
	if (site && again)
		return NULL;
	a->in = false;
	k->inlined = true;
	return NULL;
}

struct elfrw_err *icf_prof_inlined(struct icf_profile *p)
{
	for (size_t i = 0; i < p->frame.len; i++) {
		struct icf_prof_frame *k = &p->frame.data[i], *next = k + 1;
		const struct icf_prof_address *a = &p->address.data[k->address], *b = NULL;
		if (i + 1 < p->frame.len)
			b = &p->address.data[next->address];
		bool same = b && a->raw == b->raw;
		if (k->inlined && !same)
			take_orphan(p, k);
		else if (!k->inlined && same && a->in && b->in && k->f.n_name && !p->in->forward)
			ELFRW_TRY(take_double(p, k));
		p->inlines |= k->inlined;
	}
	return NULL;
}

/* ---- the text ---- */

/* The member that frame K with the address A is attributed to, if its inlined calls and lines are
 * not those in the text: it is not the one that was kept, or the text has another name. */
static struct elfrw_err *other_member(struct icf_profile *p, const struct icf_prof_frame *k,
				      const struct icf_prof_address *a, uint32_t *ret)
{
	const struct dwr_icfold *note = p->m->note;
	uint32_t m = !a->in || a->unit == ICF_PROF_NONE || p->in->forward
			     ? UINT32_MAX
			     : note->unit_member[a->unit];
	const char *name;
	*ret = m;
	if (m == UINT32_MAX || note->group[note->member[m].group].member != m)
		return NULL;
	ELFRW_TRY(icf_prof_other_name(p, a, k, &name));
	*ret = name ? m : UINT32_MAX;
	return NULL;
}

/* The source line behind the line of frame K, from *FROM to *TO in the text; false: there is none.
 * It is "FILE:LINE" behind two spaces, with or without a discriminator; of inlined calls,
 * "(inlined)" stands behind it. */
static bool find_source(const struct icf_profile *p, const struct icf_prof_frame *k, size_t *from,
			size_t *to)
{
	const char *s = p->text.data, *end = s + p->text.len, *c = s + k->line + k->f.end;
	static const char behind[] = " (discriminator ", inlined[] = " (inlined)";
	c = memchr(c, '\n', (size_t)(end - c));
	if (!c || end - c < 4 || c[1] != ' ' || c[2] != ' ' || c[3] == ' ' || c[3] == '\t')
		return false;
	const char *stop = memchr(c + 1, '\n', (size_t)(end - c - 1));
	if (!stop)
		return false;
	if (stop - c > (ptrdiff_t)strlen(inlined) &&
	    !memcmp(stop - strlen(inlined), inlined, strlen(inlined)))
		stop -= strlen(inlined);
	*from = (size_t)(c + 3 - s);
	*to = (size_t)(stop - s);
	const char *more = memmem(c, (size_t)(stop - c), behind, strlen(behind));
	for (c = more ? more : stop; isdigit((unsigned char)c[-1]);)
		c--;
	return c[-1] == ':' && c < stop && isdigit((unsigned char)*c);
}

/* Writes F's source line in place of the one behind frame K. */
static void put_source(const struct icf_profile *p, const struct icf_prof_frame *k,
		       const struct dwr_sym_frame *f, size_t *pos)
{
	size_t from, to;
	if (!find_source(p, k, &from, &to))
		return;
	const char *file = f->file, *s = p->text.data;
	if (file && !memchr(s + from, '/', to - from) && strrchr(file, '/'))
		file = strrchr(file, '/') + 1;
	if (!file || !f->line) { /* the whole line, from the newline before it */
		from -= strlen("\n  ");
		fwrite(s + *pos, 1, from - *pos, p->in->out);
	} else {
		fwrite(s + *pos, 1, from - *pos, p->in->out);
		elfrw_put_printable(p->in->out, file);
		fprintf(p->in->out, ":%u", f->line);
	}
	*pos = to;
}

/* Writes the line of frame K, whose address is A's in the text, with the name of the inlined call
 * F; NULL: as it is.  The text before it is written.  EXTRA: K is no inlined call, and is still to
 * be written. */
static struct elfrw_err *put_call(struct icf_profile *p, const struct icf_prof_frame *k,
				  const struct icf_prof_address *a, const struct dwr_sym_frame *f,
				  bool extra, size_t *pos)
{
	struct icf_prof_address shown = *a;
	FILE *out = p->in->out;
	const char *s = p->text.data, *name = s + k->line + k->f.name;
	size_t start = *pos;
	shown.at = p->address.data[k->address].at;
	shown.n = p->address.data[k->address].n;
	icf_prof_put_address(p, &shown, pos);
	if (!f)
		return NULL;
	const char *called =
		f->linkage ? icf_perf_spell(p->m, f->linkage, icf_perf_form_of(name, k->f.n_name))
		: f->function ? f->function
			      : "??";
	if (!called)
		return &elfrw_err_nomem;
	fwrite(s + *pos, 1, (size_t)(name - s) - *pos, out);
	elfrw_put_printable(out, called);
	*pos = (size_t)(name - s) + k->f.n_name;
	if (extra) {
		size_t open = k->line + k->f.dso - strlen("(");
		fwrite(s + *pos, 1, open - *pos, out);
		fputs("(inlined)\n", out);
		*pos = start;
	}
	return NULL;
}

struct elfrw_err *icf_prof_put_inlined(struct icf_profile *p, size_t first, size_t last,
				       size_t *pos)
{
	const struct icf_prof_frame *k = &p->frame.data[first], *host = &p->frame.data[last];
	const struct icf_prof_address *a = &p->address.data[host->address];
	for (; k < host && p->address.data[k->address].raw != a->raw; k++)
		;
	uint32_t m;
	size_t n = (size_t)(host - k), want = n, from, to;
	struct dwr_sym_frames *f = &p->inlined;
	if (!a->in)
		return NULL;
	ELFRW_TRY(other_member(p, host, a, &m));
	if (m != UINT32_MAX && (p->inlines || find_source(p, host, &from, &to))) {
		ELFRW_TRY(dwr_sym_frames_for_member(p->m->sym, a->va - a->ret, m, DWR_SYM_DEMANGLE,
						    f));
		want = f->len && p->inlines ? f->len - 1 : 0;
	} else
		m = UINT32_MAX;
	for (size_t i = 0; i < n && (i < want || m == UINT32_MAX); i++, k++) {
		ELFRW_TRY(put_call(p, k, a, m == UINT32_MAX ? NULL : &f->data[i], false, pos));
		if (m != UINT32_MAX)
			put_source(p, k, &f->data[i], pos);
	}
	fwrite(p->text.data + *pos, 1, k->line - *pos, p->in->out);
	*pos = host->line;
	for (size_t i = n; i < want && host->f.n_name && host->f.n_dso; i++)
		ELFRW_TRY(put_call(p, host, a, &f->data[i], true, pos));
	ELFRW_TRY(icf_prof_put_frame(p, host, pos));
	/* With inlined calls, perf shows each function's own line. */
	if (m != UINT32_MAX && f->len)
		put_source(p, host, &f->data[p->inlines ? f->len - 1 : 0], pos);
	return NULL;
}
