/* answer.c: which functions the frames in shared code were called as.  Stacks repeat, so answers
 * are cached by a hash of the addresses.  An undecided answer is cached with its text. */
#include "icf/cmd/perf/state.h"
#include "elfrw/base/memstream.h"
#include <inttypes.h>
#include <stdio.h>

#define MOST_CANDIDATES 8 /* named at most */

void icf_perf_forget(struct icf_perf *p)
{
	for (size_t i = 0; i < p->answer.len; i++)
		for (unsigned f = 0; f < ICF_PERF_FORMS; f++)
			free(p->answer.data[i].text[f]);
	p->answer.len = p->candidate.len = p->n_stacks = 0;
	memset(p->stack, 0, ICF_PERF_SLOTS * sizeof *p->stack);
}

/* Decides frames LO to HI, all in shared code of one file. */
static struct elfrw_err *resolve(struct icf_perf *p, size_t lo, size_t hi, uint32_t *ret)
{
	struct icf_perf_module *m = p->module.data[p->frame.data[lo].module];
	bool pc = lo == 0;
	ELFRW_TRY(dwr_callchain_resolve(m->cc, p->address.data, NULL, p->address.len,
					&p->answer_chain));
	*ret = (uint32_t)p->answer.len;
	for (size_t i = lo; i < hi; i++) {
		const struct dwr_chain_frame *f = &p->answer_chain.frame.data[i - lo + !pc];
		struct icf_perf_answer *a = VEC_PUSH(&p->answer);
		if (!a)
			return &elfrw_err_nomem;
		*a = (struct icf_perf_answer){ .member = UINT32_MAX,
					       .first = (uint32_t)p->candidate.len,
					       .n = f->n };
		if (!f->merged || f->group == UINT32_MAX)
			continue;
		a->decided = f->decided;
		a->all = f->n == m->note->group[f->group].n_members;
		a->member = f->decided ? p->answer_chain.member.data[f->first].member
				       : m->note->group[f->group].member;
		for (uint32_t k = 0; k < f->n && !a->all; k++) {
			uint32_t *c = VEC_PUSH(&p->candidate);
			if (!c)
				return &elfrw_err_nomem;
			*c = p->answer_chain.member.data[f->first + k].member;
		}
	}
	return NULL;
}

struct elfrw_err *icf_perf_answer(struct icf_perf *p, size_t lo, size_t hi)
{
	p->address.len = 0;
	if (!VEC_RESERVE(&p->address, hi - lo + 2))
		return &elfrw_err_nomem;
	if (lo) /* the first entry is a PC; the others are return addresses */
		p->address.data[p->address.len++] = 0;
	for (size_t i = lo; i < hi; i++)
		p->address.data[p->address.len++] = p->frame.data[i].address;
	if (hi < p->frame.len && p->frame.data[hi].module == p->frame.data[lo].module)
		p->address.data[p->address.len++] = p->frame.data[hi].address;
	XXH128_hash_t key =
		XXH3_128bits_withSeed(p->address.data, p->address.len * sizeof *p->address.data,
				      p->frame.data[lo].module);
	size_t i = key.low64 & (ICF_PERF_SLOTS - 1);
	while (p->stack[i].used && !icf_perf_same_key(p->stack[i].key, key))
		i = (i + 1) & (ICF_PERF_SLOTS - 1);
	if (!p->stack[i].used) {
		p->stack[i] = (struct icf_perf_known_stack){ key, true, UINT32_MAX };
		p->n_stacks++;
		ELFRW_TRY(resolve(p, lo, hi, &p->stack[i].answer));
	}
	for (size_t k = lo; k < hi; k++)
		p->frame.data[k].answer = p->stack[i].answer + (uint32_t)(k - lo);
	return NULL;
}

const char *icf_perf_linkage(struct icf_perf *p, struct icf_perf_module *m, uint32_t member,
			     uint64_t address)
{
	const struct dwr_icfold_member *k = &m->note->member[member];
	if (k->n_names)
		return m->note->names[k->name];
	struct elfrw_err *err = dwr_sym_frames_for_member(m->sym, address, member, 0, &p->frames);
	if (err)
		elfrw_err_free(err);
	return !err && p->frames.len && p->frames.data[p->frames.len - 1].function
		       ? p->frames.data[p->frames.len - 1].function
		       : "??";
}

struct elfrw_err *icf_perf_undecided(struct icf_perf *p, struct icf_perf_module *m,
				     struct icf_perf_answer *a, uint64_t address,
				     enum icf_perf_form form, const char **ret)
{
	enum icf_perf_form f = form == ICF_PERF_LINKAGE ? form : ICF_PERF_SHORT;
	if (a->text[f]) {
		*ret = a->text[f];
		return NULL;
	}
	const char *name[MOST_CANDIDATES + 1],
		*kept = icf_perf_spell(m, icf_perf_linkage(p, m, a->member, address), f);
	uint32_t n = 0, more = 0;
	for (uint32_t i = 0; i < a->n; i++) {
		const char *s = icf_perf_spell(
			m,
			icf_perf_linkage(p, m,
					 a->all ? a->member + i : p->candidate.data[a->first + i],
					 address),
			f);
		bool there = false;
		for (uint32_t k = 0; k < n && s; k++)
			there |= !strcmp(name[k], s);
		if (!s)
			return &elfrw_err_nomem;
		if (there)
			continue;
		if (n < MOST_CANDIDATES)
			name[n++] = s;
		else
			more++;
	}
	if (!kept)
		return &elfrw_err_nomem;
	char *text;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return &elfrw_err_nomem;
	if (n == 1) /* overloaded functions: this form cannot tell them apart */
		fputs(name[0], out);
	else {
		fprintf(out, "%s[one of: ", kept);
		for (uint32_t i = 0; i < n; i++)
			fprintf(out, "%s%s", i ? "|" : "", name[i]);
		fprintf(out, more ? "|%" PRIu32 " more]" : "]", more);
	}
	if (!elfrw_memstream_close(out, &text))
		return &elfrw_err_nomem;
	*ret = a->text[f] = text;
	return NULL;
}
