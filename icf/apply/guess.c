/* guess.c: see guess.h.  What a caller takes is read once, for all of its calls. */
#include "icf/apply/guess.h"
#include "icf/refs/guard.h"
#include <stdlib.h>

struct elfrw_err *icf_guesses_init(struct icf_guesses *g, const struct icf_apply *a)
{
	*g = (struct icf_guesses){ .caller = ICF_NONE };
	if (a->opt->mode != ICF_MODE_ALL || a->plan->map.in_place)
		return NULL;
	g->got = elfrw_image_section(a->prog->img, ".got");
	g->kept = calloc(a->prog->unit.len + 1, sizeof *g->kept);
	return g->kept ? NULL : &elfrw_err_nomem;
}

static struct elfrw_err *read_caller(struct icf_guesses *g, const struct icf_apply *a,
				     uint32_t caller)
{
	const struct icf_unit *u = &a->prog->unit.data[caller];
	const struct icf_ref *ref = icf_unit_refs(a->prog, u);
	for (size_t i = 0; i < g->taken.len; i++)
		g->kept[g->taken.data[i]] = false;
	g->taken.len = 0;
	g->caller = caller;
	for (uint32_t r = 0; r < u->n_ref; r++) {
		const uint32_t t = icf_taken_by(a->prog, g->got, u, &ref[r]);
		if (t == ICF_NONE || g->kept[a->plan->map.unit[t].kept])
			continue;
		uint32_t *to = VEC_PUSH(&g->taken);
		if (!to)
			return &elfrw_err_nomem;
		*to = a->plan->map.unit[t].kept;
		g->kept[*to] = true;
	}
	return NULL;
}

struct elfrw_err *icf_guesses_ask(struct icf_guesses *g, const struct icf_apply *a,
				  const struct icf_call *c, bool *guess)
{
	*guess = false;
	if (!g->kept)
		return NULL;
	if (c->caller != g->caller)
		ELFRW_TRY(read_caller(g, a, c->caller));
	*guess = g->kept[a->plan->map.unit[c->callee].kept];
	return NULL;
}

void icf_guesses_deinit(struct icf_guesses *g)
{
	free(g->kept);
	VEC_FREE(&g->taken);
}
