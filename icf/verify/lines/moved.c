/* moved.c: line tables whose sequences only moved.
 *
 * With a section for each function, each sequence sets the function's address once, before its
 * first row, and ends with the function.  In OUT the sequences of folded functions are gone, and
 * most others have the same bytes, except for that address.  No operation but DW_LNE_set_address
 * makes an address that is not counted from the one before (DWARF 5, section 6.2.5): with the same
 * header (header.c), the same operations behind an address that moved with the function make the
 * same rows, moved with it.  So such rows of OUT need no reading: IN's operations are walked for
 * their addresses, and OUT's bytes are compared with IN's.  If a sequence is encoded in another
 * way, the rows of both are made here and compared one by one.  IN's rows are libdw's in any case.
 *
 * lines.c would find the same: all rows are at their images, in the same order, and ends of
 * sequences, too.  libdw puts the rows of all sequences in one list, by address.  There a row at
 * the very end of a function could hide the first row of the function behind it in OUT, if that
 * one's sequence comes earlier.  A table with such a row is left to lines.c.  So is one with
 * anything else: other rows, sequences over several functions, thunks, unusual operations, other
 * policies than the overlay.  So nothing is called wrong here.
 *
 * What later checks need of IN's rows is kept from a second walk: libdw would take most of the time
 * of the whole comparison.  This rests on the operations that are walked here making the rows that
 * libdw would show.  For functions with rows of their own that is checked: libdw reads these rows
 * in OUT, and they must be the same (folded.c).
 *
 * Cost: one pass over OUT's table, two over IN's. */
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/walk.h"
#include <stdlib.h>
#include <string.h>

/* A sequence: its address, that of its end, and its bytes, N before the address and M behind. */
struct sequence {
	uint64_t low, high;
	struct elfrw_rbuf r; /* of the table, at its start */
	size_t n, m;
	bool empty; /* the last row is at the end */
	bool code;  /* the first one is not */
};

/* Takes the next sequence of T; false: it is of another kind. */
static bool take_sequence(struct icf_vline_ops *t, struct sequence *s)
{
	struct icf_vline_walk w = icf_vline_begin(t);
	uint64_t first = UINT64_MAX, row = UINT64_MAX;
	*s = (struct sequence){ .r = t->r };
	while (!w.end) {
		if (!icf_vline_next(&w))
			return false;
		if (w.row)
			row = w.addr;
		if (w.row && first == UINT64_MAX)
			first = row;
	}
	s->low = elfrw_get64(w.at);
	s->high = w.addr;
	s->n = (size_t)(w.at - s->r.pos);
	s->m = (size_t)(t->r.pos - w.at) - 8;
	s->empty = row == w.addr;
	s->code = first < w.addr;
	return true;
}

/* Where OUT must have a sequence. */
struct place {
	uint64_t want;
	bool gone;  /* nowhere */
	bool clear; /* without rows at the end */
};

/* Has OUT's table B next the bytes of S, but for the address, which P says?  Then takes them. */
static bool take_same(const struct sequence *s, const struct place *place, struct icf_vline_ops *b)
{
	struct elfrw_rbuf r = b->r;
	const uint8_t *p = elfrw_rbuf_take(&r, s->n + 8 + s->m), *q = s->r.pos;
	if (!p || (place->clear && s->empty) || memcmp(p, q, s->n) != 0 ||
	    elfrw_get64(p + s->n) != place->want || memcmp(p + s->n + 8, q + s->n + 8, s->m) != 0)
		return false;
	b->r = r;
	return true;
}

static bool same_place(const struct icf_vline_says *a, const struct icf_vline_says *b)
{
	return a->file == b->file && a->line == b->line && a->col == b->col;
}

/* X is at a row of S or its end, Y at the end of OUT's sequence; LAST: the row before.  X may have
 * more rows at the end, which describe nothing; the end may have the place of any row there, or of
 * the last one. */
static bool same_end(const struct sequence *s, struct icf_vline_walk *x,
		     const struct icf_vline_walk *y, const struct icf_vline_says *last)
{
	bool same = same_place(last, &y->s);
	for (;;) {
		same |= same_place(&x->s, &y->s);
		if (x->end)
			return same;
		if (x->addr != s->high || !icf_vline_next(x))
			return false;
	}
}

/* Has OUT's table B next a sequence with the rows of S, which A has, moved to P?  Takes it. */
static bool take_rows(const struct icf_vline_ops *a, const struct sequence *s,
		      const struct place *p, struct icf_vline_ops *b)
{
	struct icf_vline_ops again = *a;
	again.r = s->r;
	struct icf_vline_walk x = icf_vline_begin(&again), y = icf_vline_begin(b);
	struct icf_vline_says last = { 0 };
	for (bool below = false;; below |= x.addr < s->high) {
		if (!icf_vline_next(&x) || !icf_vline_next(&y))
			return false;
		if (y.end)
			return below && y.addr - p->want == s->high - s->low &&
			       same_end(s, &x, &y, &last);
		if (x.end || y.addr - p->want != x.addr - s->low ||
		    memcmp(&x.s, &y.s, sizeof x.s) != 0 || (p->clear && x.addr == s->high))
			return false;
		last = x.s;
	}
}

/* Is S neither in code of one of the files nor beside it? */
static bool is_dead(const struct icf_vclaim *c, const struct sequence *s)
{
	for (size_t i = 0; i < c->exec.len; i++) {
		const struct icf_vexec *e = &c->exec.data[i];
		if ((s->low <= e->old_end && s->high >= e->old) ||
		    (s->low <= e->new_end && s->high >= e->new))
			return false;
	}
	return true;
}

/* Finds where OUT must have the sequence S of IN.  BEGUN: units with a sequence before this one.
 * false: not known here. */
static bool place_of(const struct icf_vclaim *c, const struct sequence *s, uint8_t *begun,
		     struct place *ret)
{
	uint32_t u = icf_v_find(c, s->low);
	*ret = (struct place){ .want = s->low };
	if (u == ICF_V_NONE)
		return is_dead(c, s);
	const struct icf_vunit *x = &c->unit.data[u];
	if (s->high <= s->low || s->high > x->end || x->thunk || !s->code)
		return false;
	uint64_t end = x->body + (x->end - x->old);
	uint32_t behind = icf_v_find_new(c, end);
	begun[u] = 1;
	ret->want = x->body + (s->low - x->old);
	ret->gone = x->flags & (ICF_V_FOLDED | ICF_V_REMOVED);
	ret->clear = s->high == x->end && ((behind != ICF_V_NONE && begun[behind]) ||
					   icf_v_find_thunk(c, end) != ICF_V_NONE);
	return true;
}

static bool are_moved(const struct icf_vclaim *c, struct icf_vline_ops *a, struct icf_vline_ops *b,
		      uint8_t *begun)
{
	struct sequence s;
	struct place p;
	while (elfrw_rbuf_left(&a->r)) {
		if (!take_sequence(a, &s) || !place_of(c, &s, begun, &p) ||
		    (!p.gone && !take_same(&s, &p, b) && !take_rows(a, &s, &p, b)))
			return false;
	}
	return elfrw_rbuf_ok(&a->r) && elfrw_rbuf_ok(&b->r) && !elfrw_rbuf_left(&b->r);
}

bool icf_vd_lines_moved(struct icf_vdebug *d, uint64_t from, uint64_t to)
{
	const struct icf_vclaim *c = &d->v->claim;
	struct icf_vline_ops a, b;
	if (d->policy != DWR_FOLDED_OVERLAY ||
	    !icf_vline_open(icf_vd_section(&d->in, ".debug_line"), from, &a) ||
	    !icf_vline_open(icf_vd_section(&d->out, ".debug_line"), to, &b))
		return false;
	uint8_t *begun = calloc(c->unit.len + 1, 1);
	d->log->nomem |= !begun;
	bool ret = begun && are_moved(c, &a, &b, begun);
	free(begun);
	return ret;
}

/* The row of IN that W is at, as a row in the copy of unit U, of table CU. */
static struct icf_vrow row_of(const struct icf_vclaim *c, const struct icf_vline_walk *w,
			      uint32_t u, uint64_t cu)
{
	const struct icf_vunit *x = &c->unit.data[u];
	return (struct icf_vrow){ .addr = x->body + (w->addr - x->old),
				  .line = (int)w->s.line,
				  .col = (int)w->s.col,
				  .flags = w->s.flags,
				  .isa = w->s.isa,
				  .disc = w->s.disc,
				  .unit = u,
				  .cu = cu };
}

/* A walk over the rows of unit U in IN's table. */
struct keeping {
	struct icf_vdebug *d;
	struct icf_vline_names *files;
	uint64_t cu;
	uint32_t u;
};

/* Keeps ROW of the file that W names, for folded.c. */
static void keep_row(const struct keeping *k, const struct icf_vline_walk *w, struct icf_vrow row)
{
	row.file = icf_vline_name(k->files, w->s.file);
	if (!row.file)
		k->d->group.nomem = true;
	else
		icf_vrows_add(&k->d->group, &row);
}

/* Keeps what is needed of the row at which W is: like expect_rows() of lines.c. */
static void keep_one(const struct keeping *k, const struct icf_vline_walk *w)
{
	const struct icf_vclaim *c = &k->d->v->claim;
	const struct icf_vunit *x = &c->unit.data[k->u];
	struct icf_vrow row = row_of(c, w, k->u, k->cu);
	const bool grouped = icf_vlines_grouped(k->d->v, k->u);
	if (w->end) {
		row.optional = row.used = true;
		if (grouped)
			keep_row(k, w, row);
		return;
	}
	k->d->log->checked[ICF_VC_LINE]++;
	/* Behind the last instruction it describes nothing. */
	row.optional = w->addr == x->end;
	if (grouped)
		keep_row(k, w, row);
	if (!row.optional && !icf_vplace_add(&k->d->place, k->u, w->addr - x->old, ICF_VP_ROW))
		k->d->log->nomem = true;
	const uint32_t prev = w->addr == x->old ? icf_v_find_end(c, w->addr) : k->u;
	if (prev == ICF_V_NONE || prev == k->u || !icf_vlines_grouped(k->d->v, prev))
		return;
	/* At the end of a function that shares its code, without code of its own there. */
	row = row_of(c, w, prev, k->cu);
	row.optional = true;
	keep_row(k, w, row);
}

void icf_vd_lines_keep_moved(struct icf_vdebug *d, uint64_t cu, uint64_t from)
{
	struct icf_vline_names files = { .d = d, .texts = icf_vtexts_of(&d->in), .at = from };
	struct keeping k = { d, &files, cu, ICF_V_NONE };
	struct icf_vline_ops t;
	bool ok = icf_vline_open(icf_vd_section(&d->in, ".debug_line"), from, &t);
	while (ok && elfrw_rbuf_left(&t.r)) {
		struct icf_vline_walk w = icf_vline_begin(&t);
		while (!w.end && (ok = icf_vline_next(&w))) {
			if (w.at && (w.row || w.end) && k.u == ICF_V_NONE)
				k.u = icf_v_find(&d->v->claim, elfrw_get64(w.at));
			if (k.u != ICF_V_NONE)
				keep_one(&k, &w);
		}
		k.u = ICF_V_NONE;
	}
	d->group.nomem |= files.h.nomem;
	icf_vline_names_deinit(&files);
}
