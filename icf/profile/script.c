/* script.c: a sample as the text that it was read from, with the addresses and names of the other
 * program.  Records of branches from thunks are left out.  An address that has no place there, or
 * is undecided and not wanted, becomes 0: readers take 0 for code outside of the program. */
#include "elfrw/base/printable.h"
#include "elfrw/image.h"
#include "icf/profile/state.h"
#include <inttypes.h>

/* Writes the text up to address A, then the other address, in the same width if there is room. */
void icf_prof_put_address(const struct icf_profile *p, const struct icf_prof_address *a,
			  size_t *pos)
{
	char text[32];
	const char *s = p->text.data;
	bool prefix = a->n > 1 && s[a->at + 1] == 'x';
	uint64_t raw = a->dropped ? 0 : a->raw + (a->other - a->va);
	int n = snprintf(text, sizeof text, prefix ? "0x%" PRIx64 : "%" PRIx64, raw);
	size_t end = a->at;
	if (!prefix)
		for (int more = n - (int)a->n;
		     more > 0 && end > *pos + 1 && s[end - 2] == ' ' && s[end - 1] == ' '; more--)
			end--;
	fwrite(s + *pos, 1, end - *pos, p->in->out);
	if (!prefix)
		for (int k = n; k < (int)a->n; k++)
			fputc(' ', p->in->out);
	fwrite(text, 1, (size_t)n, p->in->out);
	*pos = a->at + a->n;
}

struct elfrw_err *icf_prof_other_name(struct icf_profile *p, const struct icf_prof_address *a,
				      const struct icf_prof_frame *frame, const char **ret)
{
	const struct icf_perf_parts *f = &frame->f;
	const char *line = p->text.data + frame->line;
	const struct dwr_icfold *note = p->m->note;
	uint32_t m = a->unit == ICF_PROF_NONE ? UINT32_MAX : note->unit_member[a->unit];
	*ret = NULL;
	if (p->in->forward || m == UINT32_MAX || !f->n_name)
		return NULL;
	const struct dwr_icfold_member *k = &note->member[m];
	for (uint32_t i = 0; i < k->n_names; i++)
		if (icf_perf_same_name(p->m, note->names[k->name + i], line + f->name, f->n_name))
			return NULL;
	if (!k->n_names)
		return NULL;
	*ret = icf_perf_spell(p->m, note->names[k->name],
			      icf_perf_form_of(line + f->name, f->n_name));
	if (!*ret)
		return &elfrw_err_nomem;
	if (icf_perf_is(line + f->name, f->n_name, *ret)) /* memory was short before */
		*ret = NULL;
	return NULL;
}

struct elfrw_err *icf_prof_put_frame(struct icf_profile *p, const struct icf_prof_frame *f,
				     size_t *pos)
{
	const struct icf_prof_address *a = &p->address.data[f->address];
	const char *s = p->text.data;
	const char *name;
	if (!a->in)
		return NULL;
	icf_prof_put_address(p, a, pos);
	ELFRW_TRY(icf_prof_other_name(p, a, f, &name));
	if (name) {
		size_t at = f->line + f->f.name;
		fwrite(s + *pos, 1, at - *pos, p->in->out);
		elfrw_put_printable(p->in->out, name);
		*pos = at + f->f.n_name;
	}
	if (f->f.n_dso && f->f.file_offset != ICF_PERF_NO_OFFSET) {
		size_t at = f->line + f->f.dso + f->f.n_dso;
		const char *close = memchr(s + at, ')', p->text.len - at);
		fwrite(s + *pos, 1, at - *pos, p->in->out);
		fprintf(p->in->out, "+0x%" PRIx64,
			a->dropped ? 0 : f->f.file_offset + (a->other - a->va));
		*pos = close ? (size_t)(close - s) : at;
	}
	return NULL;
}

struct elfrw_err *icf_prof_put_script(struct icf_profile *p)
{
	FILE *out = p->in->out;
	const char *s = p->text.data;
	size_t pos = 0;
	bool chain = p->frame.len > 1 && !p->branch.len;
	for (size_t i = 0; i < p->frame.len && chain; i++)
		if (p->address.data[p->frame.data[i].address].dropped)
			return NULL;
	for (size_t i = 0, last; i < p->frame.len; i = last + 1) {
		for (last = i; last + 1 < p->frame.len && p->frame.data[last].inlined;)
			last++;
		ELFRW_TRY(icf_prof_put_inlined(p, i, last, &pos));
	}
	for (size_t i = 0; i < p->branch.len; i++) {
		const struct icf_prof_branch *b = &p->branch.data[i];
		const struct icf_prof_address *a = &p->address.data[b->from];
		if (b->thunk || (a[0].dropped && (a[1].dropped || !a[1].in)) ||
		    (a[1].dropped && !a[0].in)) {
			size_t from = b->at;
			while (from > pos && s[from - 1] == ' ')
				from--;
			fwrite(s + pos, 1, from - pos, out);
			pos = b->end;
			continue;
		}
		for (unsigned k = 0; k < 2; k++)
			if (a[k].in)
				icf_prof_put_address(p, &a[k], &pos);
	}
	fwrite(s + pos, 1, p->text.len - pos, out);
	return NULL;
}

/* The code of the other program may end elsewhere, so the mapping's length is changed. */
void icf_prof_put_mapping(struct icf_profile *p, const char *s, size_t n,
			  const struct icf_perf_mapping *m)
{
	const struct elfrw_addrmap *map = &p->m->note->map;
	const char *open = memchr(s, '(', n),
		   *close = open ? memchr(open, ')', n - (size_t)(open - s)) : NULL;
	uint64_t start = m->start - p->recent[0], page = elfrw_image_page(&p->m->code), end = 0;
	for (uint32_t i = 0; i < map->n_sections; i++) {
		uint64_t e = p->in->forward ? map->section[i].new_end : map->section[i].old_end;
		end = e > end ? e : end;
	}
	if (!close || start > p->lo || end <= start) {
		fwrite(s, 1, n, p->in->out);
		return;
	}
	fwrite(s, 1, (size_t)(open - s), p->in->out);
	fprintf(p->in->out, "(0x%" PRIx64, (end - start + page - 1) & ~(page - 1));
	fwrite(close, 1, n - (size_t)(close - s), p->in->out);
}
