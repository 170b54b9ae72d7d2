/* chunk.c: rewrites the lists of one chunk, each once, however many uses it has. */
#include "dwarf/rewrite/lists/state.h"
#include <string.h>

/* The least size of a range that counts against the budget. */
#define TAKEN_BYTES 3
#define MAX_SHARED  16 /* results of one list that later uses are compared with */

/* A result for one list. */
struct shared {
	uint32_t use;
	struct dwr_list_result result;
	size_t taken, n_taken; /* in w->taken */
};

static bool same_question(const struct dwr_list_use *a, const struct dwr_list_use *b)
{
	return a->cu == b->cu && a->views == b->views && a->purpose == b->purpose &&
	       (a->purpose != DWR_FOR_LOCATION || a->owner == b->owner);
}

static bool same_bytes(const struct dwr_list_work *w, const struct dwr_list_result *a,
		       const struct dwr_list_result *b)
{
	return a->end - a->views == b->end - b->views && a->off - a->views == b->off - b->views &&
	       !memcmp(w->out.data + a->views, w->out.data + b->views, a->end - a->views);
}

static struct elfrw_err *rewrite_made_up(struct dwr_list_work *w, const struct dwr_list_use *use,
					 uint32_t index, struct dwr_list_result *ret)
{
	/* It is unknown whether there is a list at all. */
	struct elfrw_err *err = dwr_list_read(&w->in->secs, use->kind, &w->in->cu[use->cu],
					      use->off, use->views, &w->list);
	if (err && err != &elfrw_err_nomem) {
		elfrw_err_free(err);
		struct dwr_list_outs none = { 0 };
		ret->in_end = use->off;
		return dwr_list_encode(w, use->kind, &w->in->cu[use->cu], &none, DWR_VIEWS_NONE,
				       ret);
	}
	return err ? err : dwr_list_rewrite(w, use, index, ret);
}

/* Gives S the bytes of an equal list: an earlier result for the same list, or the tail of the LAST
 * one if S is in its tail in the input, too (GCC lets a scope use the end of the enclosing scope's
 * list). */
static void share_bytes(struct dwr_list_work *w, uint64_t off, const struct shared *shared,
			unsigned n, struct dwr_list_result *last, struct dwr_list_result *s)
{
	for (unsigned k = 0; k < n; k++)
		if (same_bytes(w, &shared[k].result, s)) {
			w->out.len = s->views;
			*s = shared[k].result;
			return;
		}
	uint64_t size = s->end - s->off;
	if (s->views == s->off && off < last->in_end && size <= last->end - last->off &&
	    !memcmp(w->out.data + last->end - size, w->out.data + s->off, size)) {
		w->out.len = s->off;
		s->end = last->end;
		s->views = s->off = last->end - size;
		return;
	}
	*last = *s;
}

static struct elfrw_err *copy_taken(struct dwr_list_work *w, size_t from, size_t n, uint32_t use)
{
	for (size_t i = 0; i < n; i++) {
		struct dwr_list_taken *t = VEC_PUSH(&w->taken);
		if (!t)
			return &elfrw_err_nomem;
		*t = w->taken.data[from + i];
		t->use = use;
	}
	return NULL;
}

struct elfrw_err *dwr_lists_rewrite_chunk(void *arg, size_t index)
{
	struct dwr_lists_run *r = arg;
	struct dwr_lists_chunk *c = &r->chunk.data[index];
	struct dwr_list_work *w = &c->w;
	struct shared shared[MAX_SHARED];
	struct dwr_list_result last = { 0 };
	unsigned n = 0;
	/* Most lists keep their size; those that grow find more room as they need it. */
	uint64_t span = r->order[c->first + c->n - 1].key - r->order[c->first].key;
	if (span < 1 << 20 && !VEC_RESERVE(&w->out, span + 4096))
		return &elfrw_err_nomem;
	for (uint32_t i = c->first; i < c->first + c->n; i++) {
		uint32_t u = r->order[i].index;
		struct dwr_list_use *use = dwr_lists_use(r, u);
		if (i == c->first || r->order[i - 1].key != r->order[i].key)
			n = 0;
		const struct shared *same = NULL;
		for (unsigned k = 0; k < n && !same; k++)
			if (same_question(use, dwr_lists_use(r, shared[k].use)))
				same = &shared[k];
		struct shared s = { .use = u, .taken = w->taken.len };
		if (same) {
			s.result = same->result;
			/* The overlay's ranges are not shared. */
			ELFRW_TRY(dwr_list_charge(w->budget, TAKEN_BYTES * same->n_taken));
			ELFRW_TRY(copy_taken(w, same->taken, same->n_taken, u));
		} else {
			ELFRW_TRY(u >= r->in->n_uses ? rewrite_made_up(w, use, u, &s.result)
						     : dwr_list_rewrite(w, use, u, &s.result));
			s.n_taken = w->taken.len - s.taken;
			share_bytes(w, use->off, shared, n, &last, &s.result);
			if (n < MAX_SHARED)
				shared[n++] = s;
		}
		use->new_off = s.result.off;
		use->new_views = use->views != DWR_LIST_NONE ? s.result.views : DWR_LIST_NONE;
		use->empty = s.result.empty;
	}
	return dwr_list_charge_rest(w);
}
