/* resolve.c: which function was called, from the stack alone.
 *
 * IN shows the callee of a direct call: the function at its target.  If that function shares its
 * code in OUT, the resolver of call chains gets the addresses of such a stack in OUT: a PC in the
 * shared code, the return address and, if the caller shares its code, too, the return addresses out
 * to a function that does not.  The resolver must name the function.  If IN has several callers, or
 * functions reached by jumps, with the same addresses in OUT, it must name all of these.  The sets
 * are computed here from IN's calls and jumps, without any table.  The walk goes inward from
 * functions that do not share their code, so each function gets the shortest stack that decides it.
 *
 * Slots of vtables: for a call through the slot, given the vtable, the resolver must name the
 * function in IN's slot.
 *
 * Cost: one resolution for each direct call of shared code and each slot. */
#include "dwarf/return_address.h"
#include "dwarf/calls/vtables.h"
#include "dwarf/stack/callchain.h"
#include "icf/verify/calls/calls.h"
#include <stdlib.h>
#include <string.h>

#define MAX_STACK 64
#define MAX_REACH 4096 /* limit of the resolver's search along jumps */

struct resolve {
	struct icf_v *v;
	struct dwr_callchain *cc;
	struct dwr_chain chain;
	uint32_t *first_call, *first_jump; /* by unit, and the end; owned */
	uint32_t *via;  /* by unit: the call (index in v->call) whose stack decides it; ICF_V_NONE:
			   none; owned */
	uint32_t *seen; /* by unit: number of the last walk that met it; owned */
	uint32_t walk;
	uint8_t *lacking; /* by group: 1 + whether a member has no entry; 0: unknown; owned */
	VEC(uint32_t) queue, reach, want;
	bool nameless;     /* the tables cannot name all functions that were met */
	uint32_t *decided; /* by unit: the decided member; UINT32_MAX: no stack decides it; the
			      result */
};

static uint32_t member_of(const struct icf_v *v, uint32_t u)
{
	return v->claim.note.unit_member[u];
}

static bool grouped(const struct icf_v *v, uint32_t u)
{
	return member_of(v, u) != UINT32_MAX;
}

static bool has_die(const struct icf_v *v, uint32_t u)
{
	const struct dwr_icfold_member *m = v->claim.note.member;
	return !grouped(v, u) || m[member_of(v, u)].n_dies || m[member_of(v, u)].stand_in;
}

static const struct dwr_icfold_group *group_of(const struct icf_v *v, uint32_t u)
{
	return &v->claim.note.group[v->claim.note.member[member_of(v, u)].group];
}

static struct elfrw_err *index_calls(struct resolve *r)
{
	const struct icf_v *v = r->v;
	size_t n = v->claim.unit.len;
	r->first_call = calloc(n + 1, sizeof *r->first_call);
	r->first_jump = calloc(n + 1, sizeof *r->first_jump);
	r->via = malloc((n + 1) * sizeof *r->via);
	r->seen = calloc(n + 1, sizeof *r->seen);
	r->decided = malloc((n + 1) * sizeof *r->decided);
	r->lacking = calloc(v->claim.note.n_groups + 1, 1);
	if (!r->first_call || !r->first_jump || !r->via || !r->seen || !r->decided || !r->lacking)
		return &elfrw_err_nomem;
	memset(r->via, 0xff, (n + 1) * sizeof *r->via);
	memset(r->decided, 0xff, (n + 1) * sizeof *r->decided);
	for (size_t u = 0, c = 0, j = 0; u <= n; u++) {
		while (c < v->call.len && v->call.data[c].unit < u)
			c++;
		while (j < v->jump.len && v->jump.data[j].unit < u)
			j++;
		r->first_call[u] = (uint32_t)c;
		r->first_jump[u] = (uint32_t)j;
	}
	return NULL;
}

static bool push(struct resolve *r, uint32_t u)
{
	uint32_t *p = VEC_PUSH(&r->reach);
	r->seen[u] = r->walk;
	if (p)
		*p = u;
	return p != NULL;
}

/* Adds to r->want the functions of GROUP that control can be in after a call of TARGET: TARGET
 * itself, and functions that jumps lead to. */
static struct elfrw_err *want_from(struct resolve *r, uint32_t target,
				   const struct dwr_icfold_group *group)
{
	const struct icf_v *v = r->v;
	r->walk++;
	r->reach.len = 0;
	if (!push(r, target))
		return &elfrw_err_nomem;
	for (size_t i = 0; i < r->reach.len && r->reach.len < MAX_REACH; i++) {
		uint32_t u = r->reach.data[i];
		r->nameless |= !has_die(v, u);
		for (uint32_t j = r->first_jump[u]; j < r->first_jump[u + 1]; j++)
			if (r->seen[v->jump.data[j].target] != r->walk &&
			    !push(r, v->jump.data[j].target))
				return &elfrw_err_nomem;
		if (!grouped(v, u) || group_of(v, u) != group)
			continue;
		bool there = false;
		for (size_t k = 0; k < r->want.len && !there; k++)
			there = r->want.data[k] == member_of(v, u);
		uint32_t *p = there ? NULL : VEC_PUSH(&r->want);
		if (!there && !p)
			return &elfrw_err_nomem;
		if (p)
			*p = member_of(v, u);
	}
	return NULL;
}

/* The call of unit U that returns to its offset OFF, or NULL. */
static const struct icf_vcall *call_at(const struct resolve *r, uint32_t u, uint64_t off)
{
	for (uint32_t i = r->first_call[u]; i < r->first_call[u + 1]; i++)
		if (r->v->call.data[i].site - r->v->claim.unit.data[u].old == off)
			return &r->v->call.data[i];
	return NULL;
}

/* Has a member of GROUP no entry in the debug information?  The answer is cached: all calls of a
 * group ask. */
static bool lacks_die(struct resolve *r, const struct dwr_icfold_group *group)
{
	const struct icf_v *v = r->v;
	uint8_t *known = &r->lacking[group - v->claim.note.group];
	for (uint32_t m = group->member; !*known && m < group->member + group->n_members; m++)
		*known = has_die(v, v->claim.note.member[m].unit) ? 0 : 2;
	if (!*known)
		*known = 1;
	return *known == 2;
}

/* Fills r->want with all functions of IN that can be in the callee's code for the addresses of call
 * C in OUT.  KNOWN: the stack decides the caller. */
static struct elfrw_err *want_of(struct resolve *r, const struct icf_vcall *c, bool known)
{
	const struct icf_v *v = r->v;
	const struct dwr_icfold_group *group = group_of(v, c->target);
	r->want.len = 0;
	r->nameless = !has_die(v, c->unit);
	r->nameless |= lacks_die(r, group);
	if (known || !grouped(v, c->unit))
		return want_from(r, c->target, group);
	const struct dwr_icfold_group *callers = group_of(v, c->unit);
	for (uint32_t m = callers->member; m < callers->member + callers->n_members; m++) {
		uint32_t u = v->claim.note.member[m].unit;
		const struct icf_vcall *x =
			call_at(r, u, c->site - v->claim.unit.data[c->unit].old);
		r->nameless |= !has_die(v, u);
		if (x)
			ELFRW_TRY(want_from(r, x->target, group));
	}
	return NULL;
}

/* Puts the stack of call I in OUT into ADDR.  Returns its length; 0: too deep. */
static size_t stack_of(const struct resolve *r, uint32_t i, uint64_t addr[MAX_STACK])
{
	const struct icf_v *v = r->v;
	size_t n = 0;
	addr[n++] = v->claim.unit.data[v->call.data[i].target].body;
	for (; i != ICF_V_NONE && n < MAX_STACK; i = r->via[v->call.data[i].unit]) {
		const struct icf_vunit *u = &v->claim.unit.data[v->call.data[i].unit];
		addr[n++] = u->body + (v->call.data[i].site - u->old);
	}
	return n < MAX_STACK ? n : 0;
}

static bool in_set(const uint32_t *set, size_t n, uint32_t x)
{
	for (size_t i = 0; i < n; i++)
		if (set[i] == x)
			return true;
	return false;
}

/* Names of a frame's members, as many as fit. */
static const char *list(const struct icf_v *v, const struct dwr_chain *chain,
			const struct dwr_chain_frame *f, char *buf, size_t size)
{
	char name[200];
	size_t n = (size_t)snprintf(buf, size, "%u functions:", f->n);
	for (uint32_t i = 0; i < f->n && n < size; i++) {
		uint32_t m = chain->member.data[f->first + i].member;
		n += (size_t)snprintf(
			buf + n, size - n, " %s",
			m < v->claim.note.n_members
				? icf_v_where(&v->claim,
					      v->claim.unit.data[v->claim.note.member[m].unit].old,
					      name)
				: "?");
	}
	return buf;
}

/* Resolves call I; *DECIDED: it is decided, and correctly. */
static struct elfrw_err *resolve_call(struct resolve *r, uint32_t i, bool known, bool *decided)
{
	struct icf_v *v = r->v;
	const struct icf_vcall *c = &v->call.data[i];
	uint64_t addr[MAX_STACK];
	char callee[200], caller[200], text[400];
	*decided = false;
	size_t n = stack_of(r, i, addr);
	if (!n)
		return NULL;
	ELFRW_TRY(want_of(r, c, known));
	ELFRW_TRY(dwr_callchain_resolve(r->cc, addr, NULL, n, &r->chain));
	const struct dwr_chain_frame *f = &r->chain.frame.data[0];
	v->log.checked[ICF_VC_RESOLVE]++;
	bool all = true, extra = false;
	for (size_t k = 0; k < r->want.len; k++) {
		bool there = false;
		for (uint32_t m = 0; m < f->n && !there; m++)
			there = r->chain.member.data[f->first + m].member == r->want.data[k];
		all &= there;
	}
	for (uint32_t m = 0; m < f->n; m++)
		extra |= !in_set(r->want.data, r->want.len,
				 r->chain.member.data[f->first + m].member);
	if (f->merged && all && (!extra || r->nameless)) {
		v->calls_undecided += f->n > 1;
		*decided = f->decided;
		return NULL;
	}
	icf_vlog_bad(
		&v->log, ICF_VC_RESOLVE, "callee: call in %s (-> 0x%llx): expected %s%s, found %s",
		icf_v_where(&v->claim, dwr_call_at(c->site), caller), ICF_VX(addr[1]),
		icf_v_where(&v->claim, v->claim.unit.data[c->target].old, callee),
		r->want.len > 1 ? " among others" : "", list(v, &r->chain, f, text, sizeof text));
	return NULL;
}

static bool enqueue(struct resolve *r, uint32_t u)
{
	uint32_t *p = VEC_PUSH(&r->queue);
	if (p)
		*p = u;
	return p != NULL;
}

/* Resolves all direct calls of shared code, from callers that the stack decides. */
static struct elfrw_err *resolve_calls(struct resolve *r)
{
	struct icf_v *v = r->v;
	bool decided;
	for (uint32_t u = 0; u < v->claim.unit.len; u++)
		if (!grouped(v, u) && r->first_call[u] < r->first_call[u + 1] && !enqueue(r, u))
			return &elfrw_err_nomem;
	for (size_t q = 0; q < r->queue.len; q++) {
		uint32_t u = r->queue.data[q];
		for (uint32_t i = r->first_call[u]; i < r->first_call[u + 1]; i++) {
			uint32_t t = v->call.data[i].target;
			if (v->call.data[i].optional)
				continue;
			ELFRW_TRY(resolve_call(r, i, true, &decided));
			if (!decided || r->via[t] != ICF_V_NONE)
				continue;
			r->via[t] = i;
			r->decided[t] = r->chain.member.data[r->chain.frame.data[0].first].member;
			if (!enqueue(r, t))
				return &elfrw_err_nomem;
		}
	}
	/* The others: the caller is undecided. */
	for (uint32_t i = 0; i < v->call.len; i++) {
		uint32_t u = v->call.data[i].unit;
		if (!v->call.data[i].optional && grouped(v, u) && r->via[u] == ICF_V_NONE)
			ELFRW_TRY(resolve_call(r, i, false, &decided));
	}
	return NULL;
}

/* Resolves every slot of a vtable in which IN has a function that shares its code. */
static struct elfrw_err *resolve_slots(struct resolve *r)
{
	struct icf_v *v = r->v;
	struct dwr_vtables vt;
	char name[200], text[400];
	ELFRW_TRY(icf_v_named(v->claim.in.path, dwr_vtables_read(&v->claim.in, &v->claim.in, &vt)));
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < vt.table.len && !err; i++) {
		const struct dwr_vtable *t = &vt.table.data[i];
		for (uint64_t slot = 0; slot < ICF_V_SLOTS && t->point + 8 * slot < t->end && !err;
		     slot++) {
			uint64_t place = t->point + 8 * slot;
			size_t w = v->slot_site[slot] ? icf_v_word_from(&v->words, place)
						      : v->words.word.len;
			if (w == v->words.word.len || v->words.word.data[w].place != place)
				continue;
			uint32_t u = icf_v_find(&v->claim, v->words.word.data[w].target);
			if (u == ICF_V_NONE || !grouped(v, u) ||
			    v->claim.unit.data[u].old != v->words.word.data[w].target)
				continue;
			uint64_t addr[2] = { v->claim.unit.data[u].body, v->slot_site[slot] },
				 vtable[2] = { icf_v_data(&v->claim, t->point), 0 };
			err = dwr_callchain_resolve(r->cc, addr, vtable, 2, &r->chain);
			if (err)
				break;
			const struct dwr_chain_frame *f = &r->chain.frame.data[0];
			v->log.checked[ICF_VC_VIRTUAL]++;
			bool found = false;
			for (uint32_t m = 0; m < f->n && !found; m++)
				found = r->chain.member.data[f->first + m].member ==
					member_of(v, u);
			if (found && f->decided && r->via[u] == ICF_V_NONE &&
			    r->decided[u] == UINT32_MAX)
				r->decided[u] = member_of(v, u);
			/* Additional functions: those that it jumps to. */
			if (found && (f->n == 1 || r->first_jump[u] < r->first_jump[u + 1]))
				v->calls_undecided += f->n > 1;
			else
				icf_vlog_bad(
					&v->log, ICF_VC_VIRTUAL,
					"callee: slot %llu of %s (0x%llx): expected %s, found %s",
					ICF_VX(slot), t->name, ICF_VX(place),
					icf_v_where(&v->claim, v->claim.unit.data[u].old, name),
					list(v, &r->chain, f, text, sizeof text));
		}
	}
	dwr_vtables_deinit(&vt);
	return err;
}

/* Every thunk stands for one function. */
static struct elfrw_err *resolve_thunks(struct resolve *r)
{
	struct icf_v *v = r->v;
	char name[200], text[400];
	for (uint32_t u = 0; u < v->claim.unit.len; u++) {
		uint64_t addr = v->claim.unit.data[u].entry;
		if (!v->claim.unit.data[u].thunk || !grouped(v, u))
			continue;
		ELFRW_TRY(dwr_callchain_resolve(r->cc, &addr, NULL, 1, &r->chain));
		const struct dwr_chain_frame *f = &r->chain.frame.data[0];
		v->log.checked[ICF_VC_RESOLVE]++;
		if (!f->decided || r->chain.member.data[f->first].member != member_of(v, u))
			icf_vlog_bad(&v->log, ICF_VC_RESOLVE,
				     "thunk: of %s (-> 0x%llx): expected it alone, found %s",
				     icf_v_where(&v->claim, v->claim.unit.data[u].old, name),
				     ICF_VX(addr), list(v, &r->chain, f, text, sizeof text));
	}
	return NULL;
}

static struct elfrw_err *run(struct resolve *r)
{
	struct icf_v *v = r->v;
	/* The decoded claim serves: a second decoding by the same reader would prove nothing more.
	 */
	struct elfrw_err *err = dwr_callchain_open(&v->claim.out, NULL, &v->claim.note, &r->cc);
	if (err) {
		r->cc = NULL;
		if (err == &elfrw_err_nomem)
			return err;
		icf_vlog_bad(&v->log, ICF_VC_RESOLVE,
			     "call tables: expected readable ones, found: %s", elfrw_err_text(err));
		elfrw_err_free(err);
		return NULL;
	}
	/* A callee that the claim calls shared is in a group, or the call was reported
	 * (verify/data/note.c). */
	for (size_t i = 0; i < v->call.len; i++)
		if (!grouped(v, v->call.data[i].target))
			return NULL;
	/* A file without tables cannot say this. */
	if (!icf_v_has_debug(&v->claim.out))
		return resolve_thunks(r);
	ELFRW_TRY(resolve_calls(r));
	ELFRW_TRY(resolve_slots(r));
	return resolve_thunks(r);
}

struct elfrw_err *icf_v_resolve_calls(struct icf_v *v, uint32_t **decided)
{
	struct resolve r = { .v = v };
	struct elfrw_err *err = index_calls(&r);
	if (!err && v->claim.has_note)
		err = run(&r);
	*decided = r.decided;
	if (err) {
		free(r.decided);
		*decided = NULL;
	}
	free(r.first_call);
	free(r.lacking);
	free(r.first_jump);
	free(r.via);
	free(r.seen);
	VEC_FREE(&r.queue);
	VEC_FREE(&r.reach);
	VEC_FREE(&r.want);
	dwr_chain_deinit(&r.chain);
	if (r.cc)
		dwr_callchain_close(r.cc);
	return err;
}
