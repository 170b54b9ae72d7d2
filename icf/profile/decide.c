/* decide.c: follows the branches of a sample, the oldest first, and its call chain.
 *
 * Each call begins an activation of a function; a return goes back to its caller, or, if the caller
 * has not been seen, begins one of a caller to which the code that was left is known to return.  A
 * jump to other code replaces the function (a tail call, or the other part of a function).  What
 * activations in shared code are is then found by solve.c; the addresses of a branch are those of
 * the activations around it.
 *
 * Branches from thunks do not exist in the other program: the branch to the thunk leads to the
 * function itself there. */
#include "dwarf/return_address.h"
#include "dwarf/stack/callchain.h"
#include "elfrw/arch/arch.h"
#include "icf/profile/state.h"

/* The state of the walk. */
struct walk {
	struct icf_profile *p;
	uint32_t cur; /* ICF_PROF_NONE: at the start, or after a gap */
};

static struct elfrw_err *begin(struct icf_profile *p, const struct icf_prof_place *k, uint32_t *ret)
{
	struct icf_prof_act *a = VEC_PUSH(&p->act);
	if (!a)
		return &elfrw_err_nomem;
	*ret = (uint32_t)(p->act.len - 1);
	*a = (struct icf_prof_act){ .unit = ICF_PROF_NONE,
				    .group = ICF_PROF_NONE,
				    .first = *ret,
				    .parent = ICF_PROF_NONE,
				    .n = 1,
				    .full = true };
	if (!k || k->p.unit == DWR_BRANCH_NONE)
		return NULL;
	a->unit = k->p.unit;
	a->group = k->p.group;
	if (a->group != ICF_PROF_NONE)
		a->n = p->m->note->group[a->group].n_members;
	return NULL;
}

static struct elfrw_err *put_edge(struct icf_profile *p, uint32_t from, uint64_t site, uint32_t to,
				  enum icf_prof_how how)
{
	struct icf_prof_edge *e = VEC_PUSH(&p->edge);
	if (!e)
		return &elfrw_err_nomem;
	*e = (struct icf_prof_edge){ from, to, site, how };
	return NULL;
}

/* The unit whose code activation A executes; of a thunk, that of its function. */
static uint32_t code_of(const struct icf_profile *p, uint32_t a)
{
	uint32_t u = p->act.data[a].unit;
	return u == ICF_PROF_NONE ? u : p->m->note->map.unit[u].kept;
}

static struct icf_prof_act *first_of(const struct icf_profile *p, uint32_t a)
{
	return &p->act.data[p->act.data[a].first];
}

static struct elfrw_err *enter(struct walk *w, uint64_t site, const struct icf_prof_place *to)
{
	struct icf_profile *p = w->p;
	uint32_t from = w->cur;
	ELFRW_TRY(begin(p, to, &w->cur));
	p->act.data[w->cur].parent = from;
	p->act.data[w->cur].site = site;
	return to && to->p.start && site ? put_edge(p, from, site, w->cur, ICF_PROF_ENTERED) : NULL;
}

/* CALLER, at which SITE is, called what began with activation FIRST. */
static struct elfrw_err *link_caller(struct icf_profile *p, uint32_t caller, uint64_t site,
				     uint32_t first)
{
	p->act.data[first].parent = caller;
	p->act.data[first].site = site;
	return put_edge(p, caller, site, first, ICF_PROF_LEFT);
}

/* A return to AT, which is TO.  If it is not to the known caller (an exception, longjmp), nothing
 * is known: another activation of the same code may be further out. */
static struct elfrw_err *leave(struct walk *w, const struct icf_prof_address *at,
			       const struct icf_prof_place *to)
{
	struct icf_profile *p = w->p;
	uint32_t first = p->act.data[w->cur].first, caller = p->act.data[first].parent;
	uint64_t site = 0;
	if (caller != ICF_PROF_NONE && (at->in ? p->act.data[first].site == at->va
					       : p->act.data[caller].unit == ICF_PROF_NONE)) {
		w->cur = caller;
		return NULL;
	}
	ELFRW_TRY(begin(p, to, &w->cur));
	if (caller != ICF_PROF_NONE)
		return NULL;
	if (at->in)
		ELFRW_TRY(icf_prof_site(p, at->va, &site, NULL));
	if (site && site == at->va)
		return link_caller(p, w->cur, site, first);
	if (!at->in)
		p->act.data[first].parent = w->cur;
	return NULL;
}

/* A jump to the code of another function, or to the start of the same. */
static struct elfrw_err *jump(struct walk *w, uint64_t site, const struct icf_prof_place *to)
{
	struct icf_profile *p = w->p;
	uint32_t from = w->cur, first = p->act.data[from].first;
	if (to && !to->p.start && to->kept != ICF_PROF_NONE) {
		/* Back from the cold part. */
		for (uint32_t a = from; a != ICF_PROF_NONE && a >= first; a--)
			if (p->act.data[a].first == first && code_of(p, a) == to->kept) {
				w->cur = a;
				return NULL;
			}
	}
	ELFRW_TRY(begin(p, to, &w->cur));
	p->act.data[w->cur].first = first;
	if (!to || to->p.group == DWR_BRANCH_NONE || p->act.data[from].unit == ICF_PROF_NONE)
		return NULL;
	const uint32_t *set;
	size_t n = 0;
	if (p->act.data[from].n == 1 || p->act.data[from].group != ICF_PROF_NONE) {
		uint32_t unit =
			p->act.data[from].group == ICF_PROF_NONE
				? p->act.data[from].unit
				: p->m->note->member[icf_prof_candidate(p, &p->act.data[from], 0)]
					  .unit;
		const struct icf_prof_question q = { 0, unit, to->p.group, ICF_PROF_PART };
		ELFRW_TRY(icf_prof_answer(p, &q, &set, &n));
	}
	return put_edge(p, from, n ? 0 : site, w->cur, n ? ICF_PROF_PART : ICF_PROF_ENTERED);
}

/* Does the jump from FROM to TO, within one body, call another function that shares it? */
static struct elfrw_err *is_tail_call(struct walk *w, const struct icf_prof_place *from,
				      const struct icf_prof_place *to, bool *ret)
{
	struct icf_profile *p = w->p;
	const struct icf_prof_act *a = &p->act.data[w->cur];
	const uint32_t *set;
	size_t n;
	*ret = false;
	if (!to->p.start || to->p.group == DWR_BRANCH_NONE || a->group == ICF_PROF_NONE)
		return NULL;
	for (uint32_t k = 0; k < a->n && k < 16 && !*ret; k++) {
		uint32_t unit = p->m->note->member[icf_prof_candidate(p, a, k)].unit;
		const struct icf_prof_question q = { from->p.next, unit, to->p.group,
						     ICF_PROF_ENTERED };
		ELFRW_TRY(icf_prof_answer(p, &q, &set, &n));
		*ret = n != 0;
	}
	return NULL;
}

/* From outside to inside. */
static struct elfrw_err *come_in(struct walk *w, const struct icf_prof_address *at,
				 const struct icf_prof_place *to)
{
	uint64_t site = 0;
	if (!to->p.start)
		ELFRW_TRY(icf_prof_site(w->p, at->va, &site, NULL));
	if (site == at->va && site)
		return leave(w, at, to);
	uint32_t from = w->cur;
	ELFRW_TRY(begin(w->p, to, &w->cur));
	struct icf_prof_act *a = &w->p->act.data[w->cur];
	a->parent = from;
	if (a->group == ICF_PROF_NONE || !to->p.start)
		return NULL;
	const uint32_t *set;
	size_t n;
	bool changed, nomem = false;
	const struct icf_prof_question q = { 0, 0, a->group, ICF_PROF_POINTED };
	ELFRW_TRY(icf_prof_answer(w->p, &q, &set, &n));
	icf_prof_meet(w->p, a, set, n, &changed, &nomem);
	return nomem ? &elfrw_err_nomem : NULL;
}

/* Follows branch B; its ends are the addresses FROM and FROM + 1. */
static struct elfrw_err *follow(struct walk *w, struct icf_prof_branch *b)
{
	struct icf_profile *p = w->p;
	struct icf_prof_address *f = &p->address.data[b->from], *t = f + 1;
	const struct icf_prof_place *k = NULL;
	struct icf_prof_place from = { .kept = ICF_PROF_NONE }, to = from;
	if (f->in) {
		ELFRW_TRY(icf_prof_place(p, f->va, &k));
		from = *k;
	}
	if (t->in) {
		ELFRW_TRY(icf_prof_place(p, t->va, &k));
		to = *k;
	}
	/* Between the branches before and this one control only went forward. */
	if (w->cur == ICF_PROF_NONE || code_of(p, w->cur) != from.kept ||
	    (from.p.thunk && p->act.data[w->cur].unit != from.p.unit))
		ELFRW_TRY(begin(p, f->in ? &from : NULL, &w->cur));
	f->act = w->cur;
	struct elfrw_err *err = NULL;
	bool other = from.kept != to.kept || to.p.thunk, tail = false;
	const struct icf_prof_place *there = t->in ? &to : NULL;
	if (from.kept == ICF_PROF_NONE)
		err = to.kept == ICF_PROF_NONE ? NULL : come_in(w, t, &to);
	else if (from.p.thunk && from.kept == to.kept && to.p.start) {
		b->thunk = true; /* the activation goes on in the shared code */
	} else
		switch (from.p.kind) {
		case ELFRW_INSN_CALL:
		case ELFRW_INSN_CALL_IND: err = enter(w, from.p.next, there); break;
		case ELFRW_INSN_RET: err = leave(w, t, there); break;
		case ELFRW_INSN_JMP:
		case ELFRW_INSN_JCC:
		case ELFRW_INSN_JMP_IND:
			if (!other)
				err = is_tail_call(w, &from, &to, &tail);
			if (!err && (other || tail))
				err = jump(w, from.p.next, there);
			break;
		default:
			if (other)
				err = begin(p, there, &w->cur);
		}
	t->act = w->cur;
	return err;
}

/* ---- the call chain ---- */

static bool is_kernel(uint64_t raw)
{
	return raw >> 63;
}

/* The activation that called INNER (ICF_PROF_NONE: unknown) and to which that returns at SITE, in
 * the frame at address A. */
static struct elfrw_err *join(struct icf_profile *p, const struct icf_prof_address *a,
			      uint64_t site, uint32_t inner, uint32_t *ret)
{
	const struct icf_prof_place *k;
	ELFRW_TRY(icf_prof_place(p, site ? dwr_call_at(site) : a->va, &k));
	const struct icf_prof_place place = *k;
	const struct icf_prof_act *f = inner == ICF_PROF_NONE ? NULL : first_of(p, inner);
	if (f && f->parent != ICF_PROF_NONE && f->site == site && site &&
	    code_of(p, f->parent) == place.kept) {
		*ret = f->parent;
		return NULL;
	}
	bool open = f && f->parent == ICF_PROF_NONE && site && place.kept != ICF_PROF_NONE;
	ELFRW_TRY(begin(p, &place, ret));
	return open ? link_caller(p, *ret, site, p->act.data[inner].first) : NULL;
}

/* The activation of a frame outside of the program: the one that called INNER, or INNER itself if
 * it is outside as well; all frames between two of the program are one.  PC: it is where the sample
 * was taken, and the branches ended in TOP. */
static uint32_t outside(const struct icf_profile *p, bool pc, uint32_t top, uint32_t inner)
{
	uint32_t a = pc ? top : inner;
	if (!pc && a != ICF_PROF_NONE && p->act.data[a].unit != ICF_PROF_NONE)
		a = first_of(p, a)->parent;
	return a == ICF_PROF_NONE || p->act.data[a].unit != ICF_PROF_NONE ? ICF_PROF_NONE : a;
}

/* Frames, the innermost first.  TOP: what the branches ended in. */
static struct elfrw_err *follow_chain(struct icf_profile *p, uint32_t top)
{
	uint32_t inner = ICF_PROF_NONE;
	bool pc = true;
	for (size_t i = 0; i < p->frame.len; i++) {
		const struct icf_prof_frame *f = &p->frame.data[i];
		struct icf_prof_address *a = &p->address.data[f->address];
		if (f->inlined)
			continue;
		if (!a->in) {
			/* The kernel does not call the program: the next one is a PC. */
			if (pc && is_kernel(a->raw))
				continue;
			inner = outside(p, pc, top, inner);
			pc = false;
			continue;
		}
		uint64_t site = 0;
		if (!pc) {
			ELFRW_TRY(icf_prof_site(p, a->va, &site, NULL));
			a->ret = site != 0;
		}
		const struct icf_prof_place *k;
		ELFRW_TRY(icf_prof_place(p, a->va, &k));
		if (pc && top != ICF_PROF_NONE && code_of(p, top) == k->kept &&
		    k->kept != ICF_PROF_NONE)
			inner = top;
		else {
			uint32_t outer;
			ELFRW_TRY(join(p, a, site, inner, &outer));
			inner = outer;
		}
		a->act = inner;
		pc = false;
	}
	return NULL;
}

/* ---- results ---- */

/* Maps address A, of the old program, to the folded one. */
static void forward(struct icf_profile *p, struct icf_prof_address *a)
{
	const struct elfrw_addrmap *map = &p->m->note->map;
	uint32_t u = elfrw_addrmap_find(map, a->va);
	a->unit = u;
	if (u == ELFRW_NO_UNIT || map->unit[u].flags & ELFRW_UNIT_REMOVED) {
		a->unit = ICF_PROF_NONE;
		a->dropped = true;
		p->counts.nowhere++;
		return;
	}
	p->counts.shared += map->unit[u].kept != u || map->unit[u].flags & ELFRW_UNIT_KEPT;
	a->other = map->unit[u].body + (a->va - map->unit[u].old);
}

static void backward(struct icf_profile *p, struct icf_prof_address *a)
{
	const struct icf_prof_act *act = &p->act.data[a->act];
	if (act->unit == ICF_PROF_NONE) { /* padding */
		a->dropped = true;
		p->counts.nowhere++;
		return;
	}
	a->unit = act->unit;
	if (act->group != ICF_PROF_NONE) {
		p->counts.shared++;
		a->unit = p->m->note->member[icf_prof_candidate(p, act, 0)].unit;
		a->undecided = act->undecided;
		p->counts.undecided += act->undecided;
		p->counts.alike += act->undecided && act->alike;
		a->dropped = act->undecided && p->in->undecided == ICF_PROFILE_DROP;
	}
	a->other = icf_prof_other(p, a->unit, a->va);
}

struct elfrw_err *icf_prof_decide(struct icf_profile *p)
{
	struct walk w = { p, ICF_PROF_NONE };
	p->act.len = p->edge.len = p->pool.len = 0;
	for (size_t i = 0; i < p->address.len; i++) {
		p->address.data[i].act = p->address.data[i].unit = ICF_PROF_NONE;
		p->address.data[i].other = p->address.data[i].raw;
	}
	if (!p->in->forward) {
		for (size_t i = p->branch.len; i-- > 0;)
			ELFRW_TRY(follow(&w, &p->branch.data[i]));
		ELFRW_TRY(follow_chain(p, w.cur));
		ELFRW_TRY(icf_prof_solve(p));
	}
	for (size_t i = 0; i < p->frame.len; i++) {
		const struct icf_prof_frame *f = &p->frame.data[i];
		p->counts.frames += !f->inlined;
	}
	for (size_t i = 0; i < p->address.len; i++) {
		struct icf_prof_address *a = &p->address.data[i];
		if (!a->in)
			continue;
		p->counts.places++;
		if (p->in->forward)
			forward(p, a);
		else if (a->act != ICF_PROF_NONE)
			backward(p, a);
	}
	return NULL;
}
