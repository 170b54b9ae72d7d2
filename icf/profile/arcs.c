/* arcs.c: see arcs.h.
 *
 * First, the functions that a context can be are found: a set for each context, which grows with
 * the sets of the contexts that arcs come from.  Each arc then has edges, from one function to
 * another.  The shares are the solution of a linear system, since contexts call each other; it is
 * found by iteration.
 *
 * Cost: the questions are cached (solve.c); a step of the iteration costs one look at each edge.
 * Each function of a context may call each one of another: the number of such pairs is limited, and
 * with many of them there are fewer steps. */
#include "icf/profile/arcs.h"
#include "elfrw/arch/arch.h"
#include <errno.h>
#include <unistd.h>

#define MAX_STEPS 2000
#define MIN_STEPS 64
#define MAX_PAIRS (1 << 23) /* and shares, of all contexts */
#define MAX_LOOKS (UINT64_C(1) << 32)

void icf_arcs_deinit(struct icf_arcs *a)
{
	for (size_t i = 0; i < a->context.len; i++)
		free(a->context.data[i].member);
	VEC_FREE(&a->context);
	VEC_FREE(&a->arc);
	VEC_FREE(&a->site);
	VEC_FREE(&a->cost);
	VEC_FREE(&a->edge);
	VEC_FREE(&a->chosen);
	VEC_FREE(&a->share);
	VEC_FREE(&a->carry);
	free(a->asked);
	free(a->slot);
}

/* ---- contexts ---- */

static uint32_t *slot_of(const struct icf_arcs *a, uint32_t name, uint32_t unit, bool thunk)
{
	uint64_t k = ((uint64_t)name << 33 | (uint64_t)thunk << 32 | unit) * 0x9e3779b97f4a7c15;
	size_t i = (k ^ k >> 31) & (a->n_slots - 1);
	for (; a->slot[i]; i = (i + 1) & (a->n_slots - 1)) {
		const struct icf_arc_context *c = &a->context.data[a->slot[i] - 1];
		if (c->name == name && c->unit == unit && c->thunk == thunk)
			break;
	}
	return &a->slot[i];
}

static bool make_room(struct icf_arcs *a)
{
	if (2 * (a->context.len + 1) <= a->n_slots)
		return true;
	free(a->slot);
	a->n_slots = a->n_slots ? 2 * a->n_slots : 1024;
	a->slot = calloc(a->n_slots, sizeof *a->slot);
	for (size_t i = 0; i < a->context.len && a->slot; i++) {
		const struct icf_arc_context *c = &a->context.data[i];
		*slot_of(a, c->name, c->unit, c->thunk) = (uint32_t)i + 1;
	}
	return a->slot;
}

struct elfrw_err *icf_arcs_context(struct icf_profile *p, struct icf_arcs *a, uint32_t name,
				   uint64_t va, uint32_t *ret)
{
	const struct icf_prof_place *k;
	*ret = ICF_PROF_NONE;
	ELFRW_TRY(icf_prof_place(p, va, &k));
	if (k->p.unit == DWR_BRANCH_NONE)
		return NULL;
	if (!make_room(a))
		return &elfrw_err_nomem;
	uint32_t unit = k->p.thunk ? k->p.unit : k->kept;
	uint32_t *slot = slot_of(a, name, unit, k->p.thunk);
	if (!*slot) {
		struct icf_arc_context *c = VEC_PUSH(&a->context);
		if (!c)
			return &elfrw_err_nomem;
		*c = (struct icf_arc_context){
			.name = name, .unit = unit, .thunk = k->p.thunk, .group = k->p.group
		};
		*slot = (uint32_t)a->context.len;
		c->n = c->group == ICF_PROF_NONE;
	}
	*ret = *slot - 1;
	return NULL;
}

uint32_t icf_arcs_unit(const struct icf_profile *p, const struct icf_arc_context *c, uint32_t i)
{
	return c->group == ICF_PROF_NONE ? c->unit : p->m->note->member[c->member[i]].unit;
}

const double *icf_arcs_share(const struct icf_arcs *a, const struct icf_arc_context *c, int event)
{
	return a->share.data + c->share + (size_t)(event + 1) * c->n;
}

/* Adds MEMBER to those of C; *AT is its place, and before the call a place in front of which it
 * is unlikely to be. */
static struct elfrw_err *put_member(struct icf_arc_context *c, uint32_t member, bool *grown,
				    uint32_t *at)
{
	if (*at < c->n && c->member[*at] == member)
		return NULL;
	if (*at + 1 < c->n && c->member[*at + 1] == member) {
		++*at;
		return NULL;
	}
	for (*at = 0; *at < c->n; ++*at)
		if (c->member[*at] == member)
			return NULL;
	if (c->n == c->cap) {
		uint32_t *m = realloc(c->member, 2 * (c->cap + 2) * sizeof *m);
		if (!m)
			return &elfrw_err_nomem;
		c->member = m;
		c->cap = 2 * (c->cap + 2);
	}
	c->member[c->n++] = member;
	*grown = true;
	return NULL;
}

/* ---- arcs ---- */

struct elfrw_err *icf_arcs_add(struct icf_arcs *a, const struct icf_arc *arc,
			       const struct icf_arc_site *site, uint32_t n_sites,
			       const uint64_t *cost)
{
	struct icf_arc *k = VEC_PUSH(&a->arc);
	if (!k)
		return &elfrw_err_nomem;
	*k = *arc;
	k->site = (uint32_t)a->site.len;
	k->n_sites = n_sites;
	k->cost = a->cost.len;
	return VEC_APPEND(&a->site, site, n_sites) && VEC_APPEND(&a->cost, cost, a->n_events)
		       ? NULL
		       : &elfrw_err_nomem;
}

struct elfrw_err *icf_arcs_site(struct icf_profile *p, uint64_t va, struct icf_arc_site *ret)
{
	const struct icf_prof_place *k;
	ELFRW_TRY(icf_prof_place(p, va, &k));
	bool call = k->p.kind == ELFRW_INSN_CALL || k->p.kind == ELFRW_INSN_CALL_IND;
	*ret = (struct icf_arc_site){ k->p.next, call ? ICF_PROF_ENTERED : ICF_PROF_PART };
	return NULL;
}

static struct elfrw_err *spend(const struct icf_profile *p, struct icf_arcs *a, uint64_t n)
{
	a->pairs += n;
	if (a->pairs <= MAX_PAIRS)
		return NULL;
	return elfrw_error("too many calls from functions that share code to others%s",
			   p->in->undecided == ICF_PROFILE_SPREAD
				   ? "; there are fewer with --undecided=kept"
				   : "");
}

/* Begins a question. */
static void begin(struct icf_arcs *a)
{
	a->chosen.len = 0;
	a->question++;
}

/* Adds to a->chosen the members of GROUP that function UNIT leads to from site S; *ANY: all can be
 * meant. */
static struct elfrw_err *ask(struct icf_profile *p, struct icf_arcs *a, uint32_t unit,
			     const struct icf_arc_site *s, uint32_t group, bool *any)
{
	const uint32_t *set;
	size_t n;
	struct icf_prof_question q = { s->how == ICF_PROF_PART ? 0 : s->site, unit, group, s->how };
	ELFRW_TRY(icf_prof_answer(p, &q, &set, &n));
	if (!n && s->how == ICF_PROF_PART && s->site) { /* a jump to another function */
		q = (struct icf_prof_question){ s->site, unit, group, ICF_PROF_ENTERED };
		ELFRW_TRY(icf_prof_answer(p, &q, &set, &n));
	}
	*any |= !n;
	for (uint32_t i = 0; i < n && !*any; i++) {
		if (a->asked[set[i]] == a->question)
			continue;
		a->asked[set[i]] = a->question;
		if (!VEC_APPEND(&a->chosen, set + i, 1))
			return &elfrw_err_nomem;
	}
	return NULL;
}

/* Leaves in a->chosen what --undecided says, of all in GROUP if ANY; *OPEN: there was a choice. */
static struct elfrw_err *choose(struct icf_profile *p, struct icf_arcs *a, uint32_t group, bool any,
				bool *open)
{
	const struct dwr_icfold_group *g = &p->m->note->group[group];
	enum icf_profile_undecided how = p->in->undecided;
	bool kept = any;
	*open = any || a->chosen.len > 1;
	if (any)
		a->chosen.len = 0;
	for (uint32_t i = 0; any && i < (how == ICF_PROFILE_SPREAD ? g->n_members : 1); i++)
		if (!VEC_APPEND(&a->chosen, &(uint32_t){ g->member + i }, 1))
			return &elfrw_err_nomem;
	if (!*open || how == ICF_PROFILE_SPREAD)
		return NULL;
	for (size_t i = 0; i < a->chosen.len; i++)
		kept |= a->chosen.data[i] == g->member;
	if (kept)
		a->chosen.data[0] = g->member;
	a->chosen.len = how == ICF_PROFILE_KEPT;
	return NULL;
}

/* The members of ARC's callee, if it is called by function I of its context. */
static struct elfrw_err *callees(struct icf_profile *p, struct icf_arcs *a,
				 const struct icf_arc *arc, uint32_t i, bool *open)
{
	const struct icf_arc_context *to = &a->context.data[arc->to], *from = NULL;
	uint32_t unit = 0, n_sites = arc->n_sites;
	bool any = false;
	begin(a);
	if (arc->from != ICF_PROF_NONE) {
		from = &a->context.data[arc->from];
		unit = icf_arcs_unit(p, from, i);
	}
	if (from && from->thunk && p->m->note->map.unit[unit].kept == to->unit) {
		uint32_t *m = VEC_PUSH(&a->chosen);
		if (!m)
			return &elfrw_err_nomem;
		*m = p->m->note->unit_member[unit];
		n_sites = 0;
	} else if (!from || !n_sites) {
		const struct icf_arc_site pointed = { 0, ICF_PROF_POINTED };
		ELFRW_TRY(ask(p, a, 0, &pointed, to->group, &any));
		n_sites = 0;
	}
	for (uint32_t k = 0; k < n_sites; k++)
		ELFRW_TRY(ask(p, a, unit, &a->site.data[arc->site + k], to->group, &any));
	return choose(p, a, to->group, any, open);
}

/* ---- which functions ---- */

static uint32_t n_from(const struct icf_arcs *a, const struct icf_arc *arc)
{
	return arc->from == ICF_PROF_NONE ? 1 : a->context.data[arc->from].n;
}

static struct elfrw_err *grow(struct icf_profile *p, struct icf_arcs *a)
{
	bool grown = true, open;
	uint32_t at = 0;
	while (grown) {
		grown = false;
		for (size_t i = 0; i < a->arc.len; i++) {
			struct icf_arc *arc = &a->arc.data[i];
			if (a->context.data[arc->to].group == ICF_PROF_NONE)
				continue;
			for (; arc->done < n_from(a, arc); arc->done++) {
				ELFRW_TRY(callees(p, a, arc, arc->done, &open));
				ELFRW_TRY(spend(p, a, a->chosen.len + 1));
				for (size_t m = 0; m < a->chosen.len; m++)
					ELFRW_TRY(put_member(&a->context.data[arc->to],
							     a->chosen.data[m], &grown, &at));
			}
		}
	}
	return NULL;
}

/* Contexts that nothing known leads to: any of the group. */
static struct elfrw_err *seed(struct icf_profile *p, struct icf_arcs *a, struct icf_arc_context *c)
{
	const struct icf_arc_site pointed = { 0, ICF_PROF_POINTED };
	bool open, grown, any = false;
	uint32_t at = 0;
	c->seeded = true;
	begin(a);
	ELFRW_TRY(ask(p, a, 0, &pointed, c->group, &any));
	ELFRW_TRY(choose(p, a, c->group, any, &open));
	ELFRW_TRY(spend(p, a, a->chosen.len));
	for (size_t m = 0; m < a->chosen.len; m++)
		ELFRW_TRY(put_member(c, a->chosen.data[m], &grown, &at));
	c->n_seeds = c->n;
	return NULL;
}

static struct elfrw_err *find_members(struct icf_profile *p, struct icf_arcs *a)
{
	for (size_t i = 0; i < a->arc.len; i++)
		a->context.data[a->arc.data[i].to].entered |= a->arc.data[i].start;
	ELFRW_TRY(grow(p, a));
	for (size_t i = 0; i < a->context.len; i++) {
		struct icf_arc_context *c = &a->context.data[i];
		if (c->n || c->group == ICF_PROF_NONE)
			continue;
		ELFRW_TRY(seed(p, a, c));
		ELFRW_TRY(grow(p, a));
	}
	return NULL;
}

static struct elfrw_err *make_edges(struct icf_profile *p, struct icf_arcs *a, struct icf_arc *arc)
{
	struct icf_arc_context *to = &a->context.data[arc->to];
	arc->edge = a->edge.len;
	for (uint32_t i = 0; i < n_from(a, arc); i++) {
		bool open = false, grown;
		size_t n = 1;
		if (to->group != ICF_PROF_NONE) {
			ELFRW_TRY(callees(p, a, arc, i, &open));
			n = a->chosen.len;
		}
		uint32_t k = 0;
		for (size_t m = 0; m < n; m++) {
			if (to->group != ICF_PROF_NONE)
				ELFRW_TRY(put_member(to, a->chosen.data[m], &grown, &k));
			struct icf_arc_edge *e = VEC_PUSH(&a->edge);
			if (!e)
				return &elfrw_err_nomem;
			*e = (struct icf_arc_edge){ i, k, 1.0 / (double)n, open };
		}
	}
	arc->n_edges = a->edge.len - arc->edge;
	return NULL;
}

/* ---- shares ---- */

static double weight(const struct icf_arcs *a, const struct icf_arc *arc, int event)
{
	const struct icf_arc_context *to = &a->context.data[arc->to];
	if (to->entered && !arc->start)
		return 0;
	return event < 0 ? (double)arc->n : (double)a->cost.data[arc->cost + (size_t)event];
}

/* What arrives, by function, with the shares as they are; of arcs from shared code only if ALL. */
static void flow(struct icf_arcs *a, int event, bool all, double *in, double *total)
{
	memset(in, 0, a->share.len * sizeof *in);
	memset(total, 0, a->context.len * sizeof *total);
	for (size_t i = 0; i < a->arc.len; i++) {
		const struct icf_arc *arc = &a->arc.data[i];
		struct icf_arc_context *to = &a->context.data[arc->to], *from = NULL;
		if (arc->from != ICF_PROF_NONE)
			from = &a->context.data[arc->from];
		if (to->group == ICF_PROF_NONE || (from && from->group != ICF_PROF_NONE && !all))
			continue;
		double w = weight(a, arc, event);
		const double *share = from ? icf_arcs_share(a, from, event) : NULL;
		double *at = in + to->share + (size_t)(event + 1) * to->n;
		total[arc->to] += w;
		for (size_t k = 0; k < arc->n_edges; k++) {
			const struct icf_arc_edge *e = &a->edge.data[arc->edge + k];
			at[e->k] += w * e->part * (share ? share[e->i] : 1);
		}
	}
}

static double larger(double a, double b)
{
	return a > b ? a : b;
}

/* Moves the shares of context C half the way to what arrives; returns by how much. */
static double adjust(struct icf_arcs *a, struct icf_arc_context *c, int event, const double *in,
		     double total, bool first)
{
	double *share = a->share.data + c->share + (size_t)(event + 1) * c->n, most = 0;
	in += c->share + (size_t)(event + 1) * c->n;
	for (uint32_t i = 0; i < c->n; i++) {
		double want = in[i] / total, by = first ? want - share[i] : (want - share[i]) / 2;
		share[i] += by;
		most = larger(most, by < 0 ? -by : by);
	}
	return most;
}

static void iterate(struct icf_arcs *a, int event, double *in, double *total)
{
	double most = 1;
	const uint64_t looks = (a->edge.len + a->arc.len + a->share.len) * (a->n_events + 1) + 1;
	const uint64_t steps = MAX_LOOKS / looks < MIN_STEPS ? MIN_STEPS : MAX_LOOKS / looks;
	for (unsigned step = 0; step < MAX_STEPS && step < steps && most > 1e-12; step++) {
		most = 0;
		flow(a, event, step > 0, in, total);
		for (size_t i = 0; i < a->context.len; i++) {
			struct icf_arc_context *c = &a->context.data[i];
			if (c->group == ICF_PROF_NONE || c->seeded || !c->n || !(total[i] > 0))
				continue;
			most = larger(most, adjust(a, c, event, in, total[i], !step));
		}
		most = step ? most : 1;
	}
	/* Where an event never happened in a callee, calls count. */
	for (size_t i = 0; i < a->context.len && event >= 0; i++) {
		const struct icf_arc_context *c = &a->context.data[i];
		if (!(total[i] > 0) && c->n)
			memcpy(a->share.data + c->share + (size_t)(event + 1) * c->n,
			       icf_arcs_share(a, c, -1), c->n * sizeof(double));
	}
}

static struct elfrw_err *start_shares(struct icf_profile *p, struct icf_arcs *a)
{
	size_t n = 0;
	for (size_t i = 0; i < a->context.len; i++) {
		a->context.data[i].share = n;
		n += a->context.data[i].n * (size_t)(a->n_events + 1);
	}
	ELFRW_TRY(spend(p, a, n));
	if (!VEC_RESERVE(&a->share, n + 1) || !VEC_RESERVE(&a->carry, n + 1))
		return &elfrw_err_nomem;
	a->share.len = a->carry.len = n;
	memset(a->carry.data, 0, n * sizeof *a->carry.data);
	for (size_t i = 0; i < a->context.len; i++) {
		const struct icf_arc_context *c = &a->context.data[i];
		uint32_t among = c->seeded ? c->n_seeds : c->n;
		for (size_t k = 0; k < c->n * (size_t)(a->n_events + 1); k++)
			a->share.data[c->share + k] = k % c->n < among ? 1.0 / among : 0;
	}
	for (size_t i = 0; i < a->arc.len; i++)
		ELFRW_TRY(make_edges(p, a, &a->arc.data[i]));
	return NULL;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static void count(struct icf_arcs *a)
{
	for (size_t i = 0; i < a->arc.len; i++) {
		const struct icf_arc *arc = &a->arc.data[i];
		const struct icf_arc_context *to = &a->context.data[arc->to], *from = NULL;
		if (arc->from != ICF_PROF_NONE)
			from = &a->context.data[arc->from];
		a->calls = sum(a->calls, arc->n);
		if (to->group == ICF_PROF_NONE)
			continue;
		a->shared = sum(a->shared, arc->n);
		double decided = 0;
		for (size_t k = 0; k < arc->n_edges; k++) {
			const struct icf_arc_edge *e = &a->edge.data[arc->edge + k];
			if (!e->open)
				decided += from ? icf_arcs_share(a, from, -1)[e->i] : 1;
		}
		a->undecided += (double)arc->n * larger(0, 1 - decided);
	}
}

struct elfrw_err *icf_arcs_solve(struct icf_profile *p, struct icf_arcs *a)
{
	a->asked = calloc(p->m->note->n_members + (size_t)1, sizeof *a->asked);
	if (!a->asked)
		return &elfrw_err_nomem;
	ELFRW_TRY(find_members(p, a));
	ELFRW_TRY(start_shares(p, a));
	double *in = calloc(a->share.len + a->context.len + 1, sizeof *in);
	if (!in)
		return &elfrw_err_nomem;
	for (int event = -1; event < (int)a->n_events; event++)
		iterate(a, event, in, in + a->share.len);
	free(in);
	count(a);
	return NULL;
}

uint64_t icf_prof_whole(long double x)
{
	return x >= 0x1p64L ? UINT64_MAX : x > 0 ? (uint64_t)x : 0;
}

void icf_arcs_count(struct icf_profile *p, const struct icf_arcs *a)
{
	p->counts.samples += a->arc.len;
	p->counts.places += a->calls;
	p->counts.shared += a->shared;
	uint64_t undecided = icf_prof_whole(a->undecided + 0.5);
	p->counts.undecided += undecided < a->shared ? undecided : a->shared;
}

void icf_arcs_divide(uint64_t total, const double *share, double *carry, size_t n, uint64_t *ret)
{
	long double sum = 0, whole = 0;
	uint64_t before = 0;
	for (size_t i = 0; i < n; i++)
		whole += share[i];
	/* A sum that should be 1 is not left to rounding. */
	uint64_t end = whole > 1 - 1e-6L && whole < 1 + 1e-6L
			       ? total
			       : icf_prof_whole((long double)total * whole);
	for (size_t i = 0; i < n; i++) {
		long double part = (long double)total * share[i] + (carry ? carry[i] : 0);
		sum += part;
		long double here = sum + 0.5L;
		uint64_t at = here < 0 ? 0 : here > (long double)end ? end : (uint64_t)here;
		at = i + 1 == n ? end : at < before ? before : at;
		ret[i] = at - before;
		before = at;
		if (carry)
			carry[i] = (double)(part - (long double)ret[i]);
	}
}

struct elfrw_err *icf_prof_read_all(int fd, const char *name, uint8_t **ret, size_t *size)
{
	VEC(uint8_t) v = { 0 };
	*ret = NULL;
	for (;;) {
		if (!VEC_RESERVE(&v, v.len + (1 << 16))) {
			VEC_FREE(&v);
			return &elfrw_err_nomem;
		}
		ssize_t got = read(fd, v.data + v.len, v.cap - v.len - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			VEC_FREE(&v);
			return elfrw_error_errno(errno, "cannot read %s", name);
		}
		if (!got)
			break;
		v.len += (size_t)got;
	}
	v.data[v.len] = 0;
	*ret = v.data;
	*size = v.len;
	return NULL;
}
