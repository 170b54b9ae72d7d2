/* reach.c: distances in data of unknown origin, which no table explains.
 *
 * Such a word is right in OUT if it is unchanged and none of its possible targets moved.  A
 * possible target is the place at the word's distance from any byte of the word's section.  If all
 * such words of a section lead to entries of functions, counted from their own places, they are
 * what they seem to be.  Cost: one pass over the words, and one over the units if there is such a
 * word. */
#include "icf/verify/state.h"
#include <stdlib.h>

static bool is_loose(const struct icf_vword *w)
{
	return w->kind == ICF_VW_RELATIVE && w->table == ICF_V_NONE;
}

static bool leads_to_entry(const struct icf_vclaim *c, uint64_t va)
{
	uint32_t u = icf_v_find(c, va);
	return u != ICF_V_NONE && c->unit.data[u].old == va;
}

/* The possible targets of one word: any place of [lo, hi]. */
struct reach {
	uint64_t lo, hi, place;
};

static int reach_order(const void *a, const void *b)
{
	const struct reach *x = a, *y = b;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* Did the code that R could mean stay?  R is one of a sorted list.  Only the first unit that moved
 * is reported; places before FROM were checked already. */
static bool expect_still(const struct icf_vclaim *c, struct icf_vlog *log, const struct reach *r,
			 uint64_t from)
{
	char name[200];
	uint64_t lo = r->lo > from ? r->lo : from;
	for (uint32_t i = icf_v_find_after(c, lo ? lo - 1 : 0);
	     i < c->unit.len && c->unit.data[i].old <= r->hi; i++) {
		const struct icf_vunit *u = &c->unit.data[i];
		if (u->body == u->old && u->entry == u->old && !(u->flags & ICF_V_FOLDED))
			continue;
		icf_vlog_bad(
			log, ICF_VC_WORD,
			"word: 0x%llx: expected all code that it could mean where it was, found %s (0x%llx -> 0x%llx) moved or folded",
			ICF_VX(r->place), icf_v_where(c, u->old, name), ICF_VX(u->old),
			ICF_VX(u->body));
		return false;
	}
	return true;
}

/* The words [FROM, TO) of section S are in doubt. */
static struct elfrw_err *check_section(const struct icf_vclaim *c, const struct icf_vwords *words,
				       struct icf_vlog *log, const struct elfrw_section *s,
				       size_t from, size_t to)
{
	VEC(struct reach) reach = { 0 };
	for (size_t i = from; i < to; i++) {
		struct icf_vword *w = &words->word.data[i];
		if (!is_loose(w))
			continue;
		w->still = true;
		log->checked[ICF_VC_WORD]++;
		uint64_t lo = s->hdr.sh_addr + (w->target - w->place), hi = lo + s->hdr.sh_size;
		struct reach *r = VEC_PUSH(&reach);
		if (!r) {
			VEC_FREE(&reach);
			return &elfrw_err_nomem;
		}
		/* Addresses do not wrap around. */
		*r = (struct reach){ hi < lo ? 0 : lo, hi, w->place };
	}
	if (reach.len)
		qsort(reach.data, reach.len, sizeof *reach.data, reach_order);
	uint64_t seen = 0;
	for (size_t i = 0; i < reach.len && expect_still(c, log, &reach.data[i], seen); i++)
		seen = reach.data[i].hi > seen ? reach.data[i].hi : seen;
	VEC_FREE(&reach);
	return NULL;
}

struct elfrw_err *icf_v_check_reach(const struct icf_vclaim *c, const struct icf_vwords *words,
				    struct icf_vlog *log)
{
	for (size_t i = 0, end; i < words->word.len && !c->inferred; i = end) {
		const struct elfrw_section *s =
			&c->in.section[elfrw_image_section_at(&c->in, words->word.data[i].place)];
		bool doubt = false;
		for (end = i;
		     end < words->word.len &&
		     (end == i || words->word.data[end].place - s->hdr.sh_addr < s->hdr.sh_size);
		     end++)
			doubt |= is_loose(&words->word.data[end]) &&
				 !leads_to_entry(c, words->word.data[end].target);
		if (doubt)
			ELFRW_TRY(check_section(c, words, log, s, i, end));
	}
	return NULL;
}
