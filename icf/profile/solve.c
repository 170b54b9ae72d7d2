/* solve.c: which functions the activations of a sample are.
 *
 * Each activation in shared code has a set of candidates.  A branch from one activation to another
 * excludes the callees that no candidate caller calls there, and the callers that call none of the
 * candidate callees.  The edges form trees, so repeating this until nothing changes finds all that
 * can be excluded.
 *
 * Cost: answers about branches are cached by (function, place, group), so an edge costs a look-up
 * for each candidate caller.  A caller with more than MAX_CALLERS candidates decides nothing. */
#include "icf/profile/state.h"

#define MAX_CALLERS 256
#define MAX_ROUNDS  64
#define ANSWERS     (1 << 18) /* slots; at most half are used */

static struct elfrw_err *ask(struct icf_profile *p, struct icf_prof_answer *a)
{
	struct dwr_callchain *cc = p->m->cc;
	const uint32_t *unit = NULL;
	size_t n = 0;
	switch (a->q.how) {
	case ICF_PROF_ENTERED:
		ELFRW_TRY(dwr_branch_entered(cc, a->q.from, a->q.site, a->q.group, &unit, &n));
		break;
	case ICF_PROF_LEFT:
		ELFRW_TRY(dwr_branch_left(cc, a->q.from, a->q.site, a->q.group, &unit, &n));
		break;
	case ICF_PROF_PART: ELFRW_TRY(dwr_branch_part(cc, a->q.from, a->q.group, &unit, &n)); break;
	case ICF_PROF_POINTED: ELFRW_TRY(dwr_branch_pointed(cc, a->q.group, &unit, &n)); break;
	}
	a->first = (uint32_t)p->answer_pool.len;
	for (size_t i = 0; i < n; i++) {
		uint32_t *m = VEC_PUSH(&p->answer_pool);
		if (!m)
			return &elfrw_err_nomem;
		*m = p->m->note->unit_member[unit[i]];
	}
	a->n = (uint32_t)n;
	return NULL;
}

static bool same(const struct icf_prof_question *a, const struct icf_prof_question *b)
{
	return a->site == b->site && a->from == b->from && a->group == b->group && a->how == b->how;
}

struct elfrw_err *icf_prof_answer(struct icf_profile *p, const struct icf_prof_question *q,
				  const uint32_t **ret, size_t *n)
{
	if (!p->answer && !(p->answer = calloc(ANSWERS, sizeof *p->answer)))
		return &elfrw_err_nomem;
	if (p->n_answers >= ANSWERS / 2 || p->answer_pool.len > 16 * ANSWERS) {
		memset(p->answer, 0, ANSWERS * sizeof *p->answer);
		p->n_answers = p->answer_pool.len = 0;
	}
	uint64_t key = (q->site * 4 + q->how) * 0x9e3779b97f4a7c15 ^
		       (((uint64_t)q->from << 32 | q->group) * 0xc2b2ae3d27d4eb4f);
	size_t i = (key ^ key >> 29) * 0x9e3779b97f4a7c15 >> 46 & (ANSWERS - 1);
	while (p->answer[i].used && !same(&p->answer[i].q, q))
		i = (i + 1) & (ANSWERS - 1);
	struct icf_prof_answer *a = &p->answer[i];
	if (!a->used) {
		a->q = *q;
		ELFRW_TRY(ask(p, a));
		a->used = true;
		p->n_answers++;
	}
	*ret = p->answer_pool.data ? p->answer_pool.data + a->first : NULL;
	*n = a->n;
	return NULL;
}

uint32_t icf_prof_candidate(const struct icf_profile *p, const struct icf_prof_act *a, uint32_t k)
{
	return a->full ? p->m->note->group[a->group].member + k : p->pool.data[a->set + k];
}

static bool has(const uint32_t *set, size_t n, uint32_t x)
{
	for (size_t i = 0; i < n; i++)
		if (set[i] == x)
			return true;
	return false;
}

bool icf_prof_meet(struct icf_profile *p, struct icf_prof_act *a, const uint32_t *set, size_t n,
		   bool *changed, bool *nomem)
{
	uint32_t at = (uint32_t)p->pool.len, left = 0;
	if (!VEC_RESERVE(&p->pool, p->pool.len + a->n)) {
		*nomem = true;
		return true;
	}
	if (a->full) { /* the members of a group have successive numbers */
		uint32_t first = p->m->note->group[a->group].member;
		for (size_t i = 0; i < n; i++)
			if (set[i] - first < a->n && !has(p->pool.data + at, left, set[i]))
				p->pool.data[at + left++] = set[i];
	} else
		for (uint32_t k = 0; k < a->n; k++)
			if (has(set, n, p->pool.data[a->set + k]))
				p->pool.data[at + left++] = p->pool.data[a->set + k];
	if (!left)
		return false;
	if (left == a->n)
		return true;
	p->pool.len += left;
	a->set = at;
	a->n = left;
	a->full = false;
	*changed = true;
	return true;
}

static bool is_open(const struct icf_prof_act *a)
{
	return a->group != ICF_PROF_NONE && a->n > 1;
}

/* The functions that A can be: candidate K. */
static uint32_t function_of(const struct icf_profile *p, const struct icf_prof_act *a, uint32_t k)
{
	return a->group == ICF_PROF_NONE ? a->unit
					 : p->m->note->member[icf_prof_candidate(p, a, k)].unit;
}

static struct elfrw_err *inward(struct icf_profile *p, const struct icf_prof_edge *e, bool *changed)
{
	const struct icf_prof_act *from = &p->act.data[e->from];
	struct icf_prof_act *to = &p->act.data[e->to];
	const uint32_t *set;
	size_t n;
	bool nomem = false;
	if (!is_open(to) || from->unit == ICF_PROF_NONE || from->n > MAX_CALLERS)
		return NULL;
	p->scratch.len = 0;
	for (uint32_t k = 0; k < from->n; k++) {
		const struct icf_prof_question q = { e->site, function_of(p, from, k), to->group,
						     e->how };
		ELFRW_TRY(icf_prof_answer(p, &q, &set, &n));
		if (!n)
			return NULL;
		if (!VEC_APPEND(&p->scratch, set, n))
			return &elfrw_err_nomem;
	}
	icf_prof_meet(p, to, p->scratch.data, p->scratch.len, changed, &nomem);
	return nomem ? &elfrw_err_nomem : NULL;
}

static bool can_be(const struct icf_profile *p, const struct icf_prof_act *a, const uint32_t *set,
		   size_t n)
{
	uint32_t first = a->full ? p->m->note->group[a->group].member : 0;
	for (size_t i = 0; i < n; i++)
		if (a->full ? set[i] - first < a->n : has(p->pool.data + a->set, a->n, set[i]))
			return true;
	return false;
}

static struct elfrw_err *outward(struct icf_profile *p, const struct icf_prof_edge *e,
				 bool *changed)
{
	struct icf_prof_act *from = &p->act.data[e->from];
	const struct icf_prof_act *to = &p->act.data[e->to];
	const uint32_t *set;
	size_t n;
	bool nomem = false;
	if (!is_open(from) || to->group == ICF_PROF_NONE || from->n > MAX_CALLERS)
		return NULL;
	p->scratch.len = 0;
	for (uint32_t k = 0; k < from->n; k++) {
		const struct icf_prof_question q = { e->site, function_of(p, from, k), to->group,
						     e->how };
		ELFRW_TRY(icf_prof_answer(p, &q, &set, &n));
		if (n && !can_be(p, to, set, n))
			continue;
		uint32_t *m = VEC_PUSH(&p->scratch);
		if (!m)
			return &elfrw_err_nomem;
		*m = icf_prof_candidate(p, from, k);
	}
	if (p->scratch.len)
		icf_prof_meet(p, from, p->scratch.data, p->scratch.len, changed, &nomem);
	return nomem ? &elfrw_err_nomem : NULL;
}

static struct elfrw_err *spread(struct icf_profile *p)
{
	bool changed = true;
	for (unsigned round = 0; changed && round < MAX_ROUNDS; round++) {
		changed = false;
		for (size_t i = 0; i < p->edge.len; i++)
			ELFRW_TRY(inward(p, &p->edge.data[i], &changed));
		for (size_t i = p->edge.len; i-- > 0;)
			ELFRW_TRY(outward(p, &p->edge.data[i], &changed));
	}
	return NULL;
}

/* Have all of A's candidates one name? */
static bool is_alike(const struct icf_profile *p, const struct icf_prof_act *a)
{
	const struct dwr_icfold *note = p->m->note;
	const char *first = NULL;
	for (uint32_t k = 0; k < a->n; k++) {
		const struct dwr_icfold_member *m = &note->member[icf_prof_candidate(p, a, k)];
		if (!m->n_names || (first && strcmp(first, note->names[m->name]) != 0))
			return false;
		first = note->names[m->name];
	}
	return true;
}

/* One of A's candidates, as --undecided says. */
static uint32_t choose(struct icf_profile *p, const struct icf_prof_act *a)
{
	uint32_t kept = p->m->note->group[a->group].member;
	if (p->in->undecided == ICF_PROFILE_SPREAD)
		return icf_prof_candidate(p, a, p->turn[a->group]++ % a->n);
	for (uint32_t k = 0; k < a->n; k++)
		if (icf_prof_candidate(p, a, k) == kept)
			return kept;
	return icf_prof_candidate(p, a, 0);
}

struct elfrw_err *icf_prof_solve(struct icf_profile *p)
{
	bool open = false, changed, nomem = false;
	for (size_t i = 0; i < p->act.len && !open; i++)
		open = is_open(&p->act.data[i]);
	if (!open)
		return NULL;
	ELFRW_TRY(spread(p));
	open = false;
	for (size_t i = 0; i < p->act.len; i++) {
		struct icf_prof_act *a = &p->act.data[i];
		open |= a->undecided = is_open(a);
		a->alike = a->undecided && is_alike(p, a);
	}
	/* A choice decides for the callees: what is chosen agrees with itself. */
	for (size_t i = 0; i < p->act.len && open; i++) {
		struct icf_prof_act *a = &p->act.data[i];
		if (!is_open(a))
			continue;
		uint32_t m = choose(p, a);
		icf_prof_meet(p, a, &m, 1, &changed, &nomem);
		if (nomem)
			return &elfrw_err_nomem;
		ELFRW_TRY(spread(p));
	}
	return NULL;
}
