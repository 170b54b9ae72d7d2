/* tree.c: the trees of DIEs of two units, side by side.
 *
 * If both units have the same form, only DIEs that may differ in meaning are visited (skip.c).
 * Otherwise libdw walks both trees.  That walk goes down to children and on to siblings by itself,
 * and visits none twice. */
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/seen.h"
#include "icf/verify/debug/shift.h"
#include "icf/verify/die/skip.h"
#include <dwarf.h>
#include <stdlib.h>

/* The end of the DIEs of DIE's unit; NULL: unknown. */
static const uint8_t *unit_end(Dwarf *dw, Dwarf_Die *die)
{
	Dwarf_Off at = dwarf_dieoffset(die), cu = at - dwarf_cuoffset(die), next;
	Dwarf_Half version;
	uint8_t type = 0;
	uint64_t signature;
	size_t header;
	dwarf_cu_info(die->cu, &version, &type, NULL, NULL, NULL, NULL, NULL);
	if (dwarf_next_unit(dw, cu, &next, &header, &version, NULL, NULL, NULL,
			    version < 5 && type == DW_UT_type ? &signature : NULL, NULL) ||
	    next < at)
		return NULL;
	return (const uint8_t *)die->addr + (next - at);
}

/* dwarf_siblingof() for a DIE whose last child is already known.  END: the result of
 * dwarf_siblingof() for the last child LAST (1: it was the last; -1: unreadable from there on).
 * libdw would go over all DIEs below once more, for each level. */
static int sibling_behind(Dwarf_Die *die, int end, const Dwarf_Die *last, const uint8_t *limit,
			  Dwarf_Die *ret)
{
	if (!limit || dwarf_hasattr(die, DW_AT_sibling))
		return dwarf_siblingof(die, ret);
	/* libdw gives the place of the zero that ends the children; it gives none if the unit ends
	 * before it. */
	uint8_t *at = end == 1 && last->addr ? (uint8_t *)last->addr + 1 : NULL;
	*ret = (Dwarf_Die){ .cu = die->cu };
	if (end < 0)
		return -1;
	if (!at || at >= limit)
		return 1;
	ret->addr = at;
	return *at == 0;
}

/* The way from the unit's DIE to the current one. */
struct walk {
	struct icf_vdie_pair *stack; /* as deep as the DIEs, each of which takes a byte */
	size_t cap, depth;
};

/* Room for one more pair, behind the current one. */
static struct icf_vdie_pair *reserve_child(struct icf_vdebug *d, struct walk *w)
{
	if (w->depth + 1 == w->cap) {
		struct icf_vdie_pair *more = realloc(w->stack, 2 * w->cap * sizeof *w->stack);
		if (!more) {
			d->log->nomem = true;
			return NULL;
		}
		w->stack = more;
		w->cap *= 2;
	}
	return &w->stack[w->depth + 1];
}

/* Checks the current DIE if it has children on both sides, and goes to the first of them. */
static bool to_child(struct icf_vdebug *d, struct walk *w, struct icf_vdie_pair *c)
{
	struct icf_vdie_pair *p = &w->stack[w->depth];
	char name[200];
	/* Both sides must agree on having children, and on where they end. */
	dwarf_tag(&p->a);
	dwarf_tag(&p->b);
	*c = (struct icf_vdie_pair){ 0 };
	int ra = dwarf_child(&p->a, &c->a), rb = dwarf_child(&p->b, &c->b);
	if (ra == 0 && rb == 0) {
		icf_vd_die_check(d, p);
		c->dead = p->dead;
		c->folded = p->folded;
		w->depth++;
		return true;
	}
	if (ra != rb)
		icf_vlog_bad(d->log, ICF_VC_DIE,
			     "tree: %s: expected the same children, found others",
			     icf_vd_die(&p->a, name));
	return false;
}

/* Checks the current DIE, which has no children to go to, and goes to the next one: its sibling, or
 * one of the DIEs around it.  false: it was the last. */
static bool to_sibling(struct icf_vdebug *d, struct walk *w)
{
	struct icf_vdie_pair *p = &w->stack[w->depth];
	char name[200];
	Dwarf_Die na, nb;
	int ra, rb;
	if (!w->depth)
		icf_vd_die_check(d, p);
	for (bool checked = false; w->depth > 0; w->depth--) {
		p = &w->stack[w->depth];
		if (!checked) {
			ra = dwarf_siblingof(&p->a, &na);
			rb = dwarf_siblingof(&p->b, &nb);
			icf_vd_die_check(d, p);
		} else {
			Dwarf_Die la = na, lb = nb;
			ra = sibling_behind(&p->a, ra, &la, d->end[0], &na);
			rb = sibling_behind(&p->b, rb, &lb, d->end[1], &nb);
		}
		checked = true;
		if (ra != rb)
			icf_vlog_bad(d->log, ICF_VC_DIE,
				     "tree: %s: expected the same siblings, found others",
				     icf_vd_die(&p->a, name));
		if (ra == 0 && rb == 0) {
			*p = (struct icf_vdie_pair){
				.a = na, .b = nb, .dead = p[-1].dead, .folded = p[-1].folded
			};
			return true;
		}
	}
	return false;
}

static struct elfrw_err *walk_all(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	struct walk w = { .cap = 64 };
	w.stack = malloc(w.cap * sizeof *w.stack);
	if (!w.stack)
		return &elfrw_err_nomem;
	w.stack[0] = (struct icf_vdie_pair){ .a = *a, .b = *b, .folded = ICF_V_NONE };
	struct icf_vdie_pair *c;
	while ((c = reserve_child(d, &w)) && (to_child(d, &w, c) || to_sibling(d, &w)))
		continue;
	free(w.stack);
	return NULL;
}

/* Visits the DIEs of S only. */
static void visit(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b, struct icf_vskip *s)
{
	d->log->checked[ICF_VC_DIE] += s->n_plain;
	d->log->checked[ICF_VC_LOCATION] += s->n_expressions;
	if (s->tail)
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"end: unit 0x%llx: expected the same bytes behind its DIEs, found others",
			ICF_VX(dwarf_dieoffset(a)));
	for (size_t i = 0; i < s->todo.len; i++) {
		struct icf_vtodo *t = &s->todo.data[i];
		const struct icf_vtodo *up = &s->todo.data[t->up];
		struct icf_vdie_pair p = {
			.a = { .addr = (uint8_t *)a->addr + t->at, .cu = a->cu },
			.b = { .addr = (uint8_t *)b->addr + t->at, .cu = b->cu },
			.dead = i && up->dead,
			.folded = i ? up->folded : ICF_V_NONE,
			.alike = t->alike,
			.equal = t->equal,
			.end = (uint8_t *)a->addr + t->end,
			.values = t->values - t->at,
			.shape = t->alike ? &s->shape.data[t->abbrev] : NULL,
		};
		icf_vd_die_check(d, &p);
		t->dead = p.dead;
		t->folded = p.folded;
	}
}

struct elfrw_err *icf_vd_tree(struct icf_vdebug *d, Dwarf_Die *a, Dwarf_Die *b)
{
	struct icf_vskip *s = icf_vskip_get(d);
	if (!s)
		return &elfrw_err_nomem;
	d->end[0] = unit_end(d->in.dw, a);
	d->end[1] = unit_end(d->out.dw, b);
	icf_vd_header(d, a, b);
	icf_vseen_unit(d, a, b);
	icf_vshift_unit(d, a, b);
	if (icf_vskip_unit(d, a, b, s))
		visit(d, a, b, s);
	else
		ELFRW_TRY(walk_all(d, a, b));
	return d->log->nomem ? &elfrw_err_nomem : NULL;
}
