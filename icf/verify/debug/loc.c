/* loc.c: expressions, location lists and their views in DIEs. */
#include "elfrw/base/search.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/seen.h"
#include "icf/verify/debug/shift.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *icf_vd_expr(struct icf_vdebug *d, const struct icf_vexpr *x, const struct icf_vexpr *y)
{
	Dwarf_Op *a = x->op, *b = y->op;
	uint64_t want;
	if (x->n != y->n)
		return "as many operations";
	for (size_t i = 0; i < x->n; i++) {
		if (a[i].atom != b[i].atom || a[i].offset != b[i].offset)
			return "the same operations";
		switch (a[i].atom) {
		case DW_OP_addr:
			d->log->checked[ICF_VC_DIE_ADDRESS]++;
			if (!icf_vd_address(d, ICF_VD_POINTER, a[i].number, b[i].number, &want))
				return "the image of the address in DW_OP_addr";
			break;
		case DW_OP_addrx:
		case DW_OP_constx:
		case DW_OP_GNU_addr_index:
		case DW_OP_GNU_const_index: {
			Dwarf_Attribute p, q;
			Dwarf_Addr va, vb;
			if (dwarf_getlocation_attr(x->attr, &a[i], &p) || dwarf_formaddr(&p, &va))
				break; /* libdw cannot tell even for the input */
			if (dwarf_getlocation_attr(y->attr, &b[i], &q) || dwarf_formaddr(&q, &vb))
				return "an address in DW_OP_addrx";
			d->log->checked[ICF_VC_DIE_ADDRESS]++;
			if (va != vb && !icf_vd_address(d, ICF_VD_POINTER, va, vb, &want))
				return "the image of the address in DW_OP_addrx";
			break;
		}
		case DW_OP_entry_value:
		case DW_OP_GNU_entry_value:
		case DW_OP_implicit_value: {
			/* number2: the address of the block in memory, with its length before it */
			Dwarf_Attribute p, q;
			Dwarf_Block s, t;
			if (dwarf_getlocation_attr(x->attr, &a[i], &p) || dwarf_formblock(&p, &s))
				break;
			if (dwarf_getlocation_attr(y->attr, &b[i], &q) || dwarf_formblock(&q, &t) ||
			    s.length != t.length || memcmp(s.data, t.data, s.length) != 0)
				return "the same block";
			break;
		}
		case DW_OP_const_type:
		case DW_OP_GNU_const_type: {
			const uint8_t *p = (void *)(uintptr_t)a[i].number2,
				      *q = (void *)(uintptr_t)b[i].number2;
			if (a[i].number != b[i].number || memcmp(p, q, (size_t)*p + 1) != 0)
				return "the same typed constant";
			break;
		}
		default:
			if (a[i].number != b[i].number || a[i].number2 != b[i].number2)
				return "the same operands";
		}
	}
	return NULL;
}

struct entry {
	Dwarf_Addr lo, hi;
	struct icf_vexpr expr;
};

typedef VEC(struct entry) entries;

/* false: libdw cannot read the list. */
static bool read_entries(struct icf_vdebug *d, Dwarf_Attribute *attr, entries *ret)
{
	Dwarf_Addr base;
	ptrdiff_t off = 0;
	struct entry e = { .expr.attr = attr };
	while ((off = dwarf_getlocations(attr, off, &base, &e.lo, &e.hi, &e.expr.op, &e.expr.n)) >
	       0) {
		struct entry *slot = VEC_PUSH(ret);
		if (slot)
			*slot = e;
		else
			d->log->nomem = true;
	}
	return off == 0;
}

/* Does [LO, HI) lie in code that was removed?  An empty entry may stand behind the last instruction
 * of its function: then it goes with the others of its list, of which ALL says whether they go. */
static bool is_removed(const struct icf_vclaim *c, Dwarf_Addr lo, Dwarf_Addr hi, bool all)
{
	bool at = icf_v_removed(c, icf_v_find(c, lo));
	if (lo != hi || !lo)
		return at;
	return at == icf_v_removed(c, icf_v_find(c, lo - 1)) ? at : all;
}

enum list_kind { NO_CODE, HAS_CODE, UNREADABLE };

/* Sets *ALL to the same for the first entry of IN's list LIST that has code. */
static enum list_kind list_removed(const struct icf_vclaim *c, Dwarf_Attribute *list, bool *all)
{
	enum list_kind ret = NO_CODE;
	Dwarf_Addr base, lo, hi;
	Dwarf_Op *op;
	size_t n;
	ptrdiff_t off = 0;
	while ((off = dwarf_getlocations(list, off, &base, &lo, &hi, &op, &n)) > 0)
		if (lo != hi && ret == NO_CODE) {
			*all = icf_v_removed(c, icf_v_find(c, lo));
			ret = HAS_CODE;
		}
	return off < 0 ? UNREADABLE : ret;
}

/* Skips the views in R of the first entries of IN's list LIST that lie in code that was removed;
 * *OFF: how far the list is read.  The entry behind them has views to compare. */
static void skip_removed(const struct icf_vclaim *c, Dwarf_Attribute *list, bool all,
			 ptrdiff_t *off, struct elfrw_rbuf *r)
{
	Dwarf_Addr base, lo, hi;
	Dwarf_Op *op;
	size_t n;
	while (c->n_removed &&
	       (*off = dwarf_getlocations(list, *off, &base, &lo, &hi, &op, &n)) > 0 &&
	       is_removed(c, lo, hi, all)) {
		elfrw_rbuf_uleb(r);
		elfrw_rbuf_uleb(r);
	}
}

/* The pair of views that stands before a list without entries, so that both have places of their
 * own. */
static bool is_filler(struct elfrw_rbuf b)
{
	return elfrw_rbuf_left(&b) == 2 && !b.pos[0] && !b.pos[1];
}

/* Are the views A of IN's list LIST, without those of removed code, the views B?  ALL: see
 * is_removed(). */
static bool same_views(const struct icf_vclaim *c, Dwarf_Attribute *list, bool all,
		       struct elfrw_rbuf a, struct elfrw_rbuf b)
{
	ptrdiff_t off = 0;
	for (unsigned k = 0;; k++) {
		/* Two views for each entry. */
		if (k % 2 == 0)
			skip_removed(c, list, all, &off, &a);
		if (!elfrw_rbuf_left(&a) && (!elfrw_rbuf_left(&b) || (!k && is_filler(b))))
			return true;
		uint64_t x = elfrw_rbuf_uleb(&a), y = elfrw_rbuf_uleb(&b);
		if (a.bad || b.bad || x != y)
			return false;
	}
}

/* Are A and B the same numbers of a byte each? */
static bool same_small(struct elfrw_rbuf a, struct elfrw_rbuf b)
{
	size_t n = elfrw_rbuf_left(&a);
	uint8_t all = 0;
	if (n != elfrw_rbuf_left(&b) || (n && memcmp(a.pos, b.pos, n) != 0))
		return false;
	for (size_t i = 0; i < n; i++)
		all |= a.pos[i];
	return all < 0x80;
}

void icf_vd_views(struct icf_vdebug *d, Dwarf_Die *die, Dwarf_Attribute *va, Dwarf_Attribute *la,
		  Dwarf_Attribute *vb, Dwarf_Attribute *lb)
{
	Dwarf_Half version = (Dwarf_Half)d->list_version;
	uint64_t oa, ob, ea, eb;
	char name[200];
	if (!version)
		dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	const Elf_Data *da = d->in.loc[version >= 5], *db = d->out.loc[version >= 5];
	/* The pairs of views lie between the place of DW_AT_GNU_locviews and the list itself. */
	if (la->form == DW_FORM_loclistx || !icf_vd_place(d, va, &oa) ||
	    !icf_vd_place(d, la, &ea) || !da || oa > ea || ea > da->d_size)
		return;
	d->log->checked[ICF_VC_LOCATION]++;
	if (!icf_vd_place(d, vb, &ob) || !icf_vd_place(d, lb, &eb) || !db || ob > eb ||
	    eb > db->d_size) {
		icf_vlog_bad(d->log, ICF_VC_LOCATION,
			     "views: %s: expected before their list, found elsewhere",
			     icf_vd_die(die, name));
		return;
	}
	struct elfrw_rbuf a = elfrw_rbuf((const uint8_t *)da->d_buf + oa, ea - oa),
			  b = elfrw_rbuf((const uint8_t *)db->d_buf + ob, eb - ob);
	const struct icf_vclaim *c = &d->v->claim;
	if (!c->n_removed && same_small(a, b))
		return;
	/* A list without code may belong to the code before its entries as well as behind. */
	bool all = false;
	enum list_kind kind = c->n_removed ? list_removed(c, la, &all) : HAS_CODE;
	if (kind != UNREADABLE && !same_views(c, la, all, a, b) &&
	    (kind == HAS_CODE || !same_views(c, la, true, a, b)))
		icf_vlog_bad(d->log, ICF_VC_LOCATION, "views: %s: expected the same, found others",
			     icf_vd_die(die, name));
}

/* Does nothing of OUT lie in [LO, HI), between the code of units A and B? */
static bool only_padding(const struct icf_v *v, const struct icf_vunit *a,
			 const struct icf_vunit *b, uint64_t lo, uint64_t hi)
{
	if (hi == lo)
		return true;
	if (hi < lo || a->exec != b->exec ||
	    (v->claim.has_note && v->claim.note.map.trap_byte >= lo &&
	     v->claim.note.map.trap_byte < hi))
		return false;
	size_t unit = LOWER_BOUND(0, v->claim.n_new, mid,
				  v->claim.unit.data[v->claim.by_new[mid]].body < lo);
	size_t thunk = LOWER_BOUND(0, v->claim.n_thunk, mid,
				   v->claim.unit.data[v->claim.by_thunk[mid]].entry < lo);
	return (unit == v->claim.n_new || v->claim.unit.data[v->claim.by_new[unit]].body >= hi) &&
	       (thunk == v->claim.n_thunk ||
		v->claim.unit.data[v->claim.by_thunk[thunk]].entry >= hi);
}

/* Two lists.  Their memory is reused for the next lists. */
struct both {
	entries a, b;
};

void icf_vd_loclist_deinit(struct icf_vdebug *d)
{
	struct both *both = d->entries;
	if (!both)
		return;
	VEC_FREE(&both->a);
	VEC_FREE(&both->b);
	free(both);
	d->entries = NULL;
}

/* The comparison of two lists. */
struct comparison {
	struct icf_vdebug *d;
	struct icf_vdie_pair *pair; /* of DIEs that have the lists */
	unsigned code;              /* of the attribute */
	bool views;
	const entries *in, *out;
	size_t k;              /* the entries of OUT before it are done */
	const struct entry *e; /* the current entry of IN */
	/* This entry of OUT is equal up to `done`, the end of unit `last`, and continues; or NULL.
	 */
	const struct entry *open;
	const struct icf_vunit *last;
	uint64_t done;
	uint64_t want_lo, want_hi; /* what was not found */
};

/* The part of an entry of IN that is in one unit, and its image in OUT. */
struct piece {
	const struct icf_vunit *unit; /* NULL: of the default entry */
	uint64_t lo, hi, want_lo, want_hi;
	bool folded, optional;
};

static bool is_default(const struct entry *e)
{
	return e->lo == 0 && e->hi == UINT64_MAX;
}

/* The piece of the current entry that begins at LO, in UNIT. */
static struct piece cut_entry(const struct comparison *c, const struct icf_vunit *unit, uint64_t lo)
{
	uint64_t end = c->e->hi;
	if (!unit)
		return (struct piece){ .lo = lo, .hi = end, .want_lo = lo, .want_hi = end };
	uint64_t hi = end < unit->end ? end : unit->end;
	bool folded = (unit->flags & ICF_V_FOLDED) && c->d->policy == DWR_FOLDED_DROP;
	const struct icf_vclaim *claim = &c->d->v->claim;
	/* An empty entry may belong to the function before it. */
	bool gone = (unit->flags & ICF_V_REMOVED) ||
		    (lo == end && lo && icf_v_removed(claim, icf_v_find(claim, lo - 1)));
	return (struct piece){ .unit = unit,
			       .lo = lo,
			       .hi = hi,
			       .want_lo = unit->body + (lo - unit->old),
			       .want_hi = unit->body + (hi - unit->old),
			       .folded = folded,
			       .optional = folded || gone || (lo == end && !c->views) };
}

/* Moves *LO from padding to the next unit.  false: the current entry ends before it.  In padding,
 * or at the end of a function, an empty entry says nothing. */
static bool skip_padding(struct comparison *c, uint64_t *lo)
{
	const struct icf_v *v = c->d->v;
	uint32_t next = icf_v_find_after(&v->claim, *lo);
	const struct entry *o = c->k < c->out->len ? &c->out->data[c->k] : NULL;
	uint64_t r;
	if (*lo == c->e->hi && o && icf_vd_end(v, *lo, &r) && o->lo == r && o->hi == r &&
	    !icf_vd_expr(c->d, &c->e->expr, &o->expr))
		c->k++;
	if (next == ICF_V_NONE || v->claim.unit.data[next].old >= c->e->hi)
		return false;
	*lo = v->claim.unit.data[next].old;
	return true;
}

/* Does the open entry of OUT cover P as well? */
static bool continue_open(struct comparison *c, const struct piece *p)
{
	if (p->want_hi > c->open->hi ||
	    !only_padding(c->d->v, c->last, p->unit, c->done, p->want_lo))
		return false;
	c->done = p->want_hi;
	c->last = p->unit;
	if (p->want_hi >= c->open->hi)
		c->open = NULL;
	return true;
}

/* Does entry O of OUT begin with P, and go on with the next piece of the current entry? */
static bool covers_more(const struct comparison *c, const struct piece *p, const struct entry *o)
{
	return p->unit && o->lo == p->want_lo && o->hi > p->want_hi && p->hi == p->unit->end &&
	       p->hi < c->e->hi;
}

/* Is entry I of OUT where P may be? */
static bool has_place(const struct comparison *c, const struct piece *p, size_t i)
{
	const struct icf_v *v = c->d->v;
	const struct entry *o = &c->out->data[i], *next = i + 1 < c->out->len ? o + 1 : NULL;
	uint64_t r;
	if ((o->lo == p->want_lo && o->hi == p->want_hi) || covers_more(c, p, o))
		return true;
	/* An entry that has lost its place, if nothing of folded functions is kept: it may be at
	 * the kept copy's, a little further on. */
	if (p->folded && (o->lo == o->hi || !icf_v_out_exec(&v->claim, o->lo)) &&
	    !(next && next->lo == p->want_lo && next->hi == p->want_hi))
		return true;
	/* An empty entry at a boundary belongs to either neighbour. */
	return p->lo == c->e->hi && o->lo == o->hi && icf_vd_end(v, p->lo, &r) && r == o->lo;
}

/* Is entry O of OUT one of IN that is outside of its code?  OUT's code may be there.
 * (check_dead_entries() sees that all such entries are in OUT.) */
static bool is_dead(const struct comparison *c, const struct entry *o)
{
	for (size_t i = 0; i < c->in->len; i++) {
		const struct entry *e = &c->in->data[i];
		if (e->lo == o->lo && e->hi == o->hi && !icf_v_in_exec(&c->d->v->claim, e->lo))
			return !icf_vd_expr(c->d, &e->expr, &o->expr);
	}
	return false;
}

/* Looks for P among the next entries of OUT.  NULL: found, or not required. */
static const char *find_piece(struct comparison *c, const struct piece *p)
{
	for (size_t i = c->k; i < c->out->len; i++) {
		const struct entry *o = &c->out->data[i];
		if (has_place(c, p, i)) {
			const char *why = icf_vd_expr(c->d, &c->e->expr, &o->expr);
			if (!why) {
				c->k = i + 1;
				if (covers_more(c, p, o)) {
					c->open = o;
					c->done = p->want_hi;
					c->last = p->unit;
				}
				return NULL;
			}
			if (!p->optional)
				return why;
		}
		/* An entry without a place in the program may be skipped. */
		if (o->lo != o->hi && icf_v_out_exec(&c->d->v->claim, o->lo) && !is_dead(c, o))
			break;
	}
	return p->optional ? NULL : "such an entry";
}

/* Compares the current entry of IN, cut at units, with the next entries of OUT.  One of these may
 * cover pieces that are adjacent there as in IN.  NULL: found, or not required. */
static const char *find_entry(struct comparison *c)
{
	const struct icf_v *v = c->d->v;
	bool any = is_default(c->e);
	uint64_t lo = c->e->lo;
	c->open = NULL;
	do {
		uint32_t u = any ? ICF_V_NONE : icf_v_find(&v->claim, lo);
		if (!any && u == ICF_V_NONE) {
			if (!skip_padding(c, &lo))
				break;
			continue;
		}
		struct piece p = cut_entry(c, any ? NULL : &v->claim.unit.data[u], lo);
		if (c->open) {
			if (!continue_open(c, &p))
				break;
		} else {
			const char *why = find_piece(c, &p);
			c->want_lo = p.want_lo;
			c->want_hi = p.want_hi;
			if (why)
				return why;
			if (p.hi == lo)
				break;
		}
		lo = p.hi;
	} while (lo < c->e->hi);
	if (!c->open)
		return NULL;
	c->want_lo = c->open->lo;
	c->want_hi = c->done;
	c->k--;
	return "such an entry";
}

/* Each entry of IN must be in OUT.  false: one is not. */
static bool check_entries(struct comparison *c)
{
	struct icf_vdebug *d = c->d;
	char name[200];
	for (size_t i = 0; i < c->in->len; i++) {
		c->e = &c->in->data[i];
		if (!is_default(c->e) && !icf_v_in_exec(&d->v->claim, c->e->lo))
			continue;
		d->log->checked[ICF_VC_LOCATION]++;
		const char *why = find_entry(c);
		if (!why)
			continue;
		const struct entry *o = c->k < c->out->len ? &c->out->data[c->k] : NULL;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x (0x%llx to 0x%llx -> 0x%llx to 0x%llx): expected %s, found %s0x%llx to 0x%llx",
			icf_vd_die(&c->pair->a, name), c->code, ICF_VX(c->e->lo), ICF_VX(c->e->hi),
			ICF_VX(c->want_lo), ICF_VX(c->want_hi), why, o ? "" : "none; ",
			ICF_VX(o ? o->lo : 0), ICF_VX(o ? o->hi : 0));
		return false;
	}
	return true;
}

/* Entries of IN that are outside of its code must be in OUT as they were, in their order.  (GCC's
 * lists for -gstrict-dwarf -gdwarf-2 are such: it does not count their addresses from the unit's.)
 * false: one is not. */
static bool check_dead_entries(const struct comparison *c)
{
	struct icf_vdebug *d = c->d;
	char name[200];
	for (size_t i = 0, k = 0; i < c->in->len && d->policy != DWR_FOLDED_DROP; i++) {
		const struct entry *e = &c->in->data[i], *o;
		if (is_default(e) || e->lo >= e->hi || icf_v_in_exec(&d->v->claim, e->lo))
			continue;
		do
			o = k < c->out->len ? &c->out->data[k++] : NULL;
		while (o && (o->lo != e->lo || o->hi != e->hi));
		if (o && !icf_vd_expr(d, &e->expr, &o->expr))
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x, outside of the code: expected 0x%llx to 0x%llx, found another",
			icf_vd_die(&c->pair->a, name), c->code, ICF_VX(e->lo), ICF_VX(e->hi));
		return false;
	}
	return true;
}

/* Is O of OUT, which is empty or ends before it begins, the image of IN's entry E? */
static bool is_empty_image(struct icf_vdebug *d, const struct entry *e, const struct entry *o)
{
	uint64_t want;
	if (o->lo > o->hi ? e->lo <= e->hi
			  : !icf_vd_address(d, ICF_VD_POINT, e->lo, o->lo, &want) &&
				    !icf_vd_address(d, ICF_VD_END, e->hi, o->lo, &want) &&
				    !icf_vd_address(d, ICF_VD_END, e->lo, o->lo, &want))
		return false;
	return !icf_vd_expr(d, &e->expr, &o->expr);
}

/* Empty entries must stand where one of the input's does.  false: one does not. */
static bool check_empty_entries(const struct comparison *c)
{
	struct icf_vdebug *d = c->d;
	char name[200];
	for (size_t i = 0; i < c->out->len; i++) {
		const struct entry *o = &c->out->data[i];
		bool ok = o->lo < o->hi || (o->lo == o->hi && !icf_v_out_exec(&d->v->claim, o->lo));
		for (size_t m = 0; m < c->in->len && !ok; m++)
			ok = is_empty_image(d, &c->in->data[m], o);
		if (ok)
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x: expected empty ones only where the input's are, found one at 0x%llx",
			icf_vd_die(&c->pair->a, name), c->code, ICF_VX(o->lo));
		return false;
	}
	return true;
}

/* OUT must have no more entries than IN.  false: it has. */
static bool check_more_entries(const struct comparison *c)
{
	const struct icf_vdebug *d = c->d;
	char name[200];
	for (size_t i = c->k; i < c->out->len; i++) {
		const struct entry *o = &c->out->data[i];
		if (o->lo >= o->hi || !icf_v_out_exec(&d->v->claim, o->lo) ||
		    (c->pair->folded != ICF_V_NONE && d->policy == DWR_FOLDED_DROP) ||
		    is_dead(c, o))
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x (-> 0x%llx to 0x%llx): expected no more, found one",
			icf_vd_die(&c->pair->a, name), c->code, ICF_VX(o->lo), ICF_VX(o->hi));
		return false;
	}
	return true;
}

void icf_vd_loclist(struct icf_vdebug *d, struct icf_vdie_pair *pair, Dwarf_Attribute *x,
		    Dwarf_Attribute *y, bool views)
{
	uint64_t more = (uint64_t)pair->folded << 2 | (uint64_t)pair->dead << 1 | views;
	if (icf_vshift_list(d, pair, more, x, y))
		return;
	struct both *both = d->entries ? d->entries : calloc(1, sizeof *both);
	d->entries = both;
	if (!both) {
		d->log->nomem = true;
		return;
	}
	both->a.len = both->b.len = 0;
	struct icf_vkey key;
	bool keyed = icf_vseen_list(d, ICF_VSEEN_LOCATIONS, more, x, y, &key);
	if (keyed && icf_vseen(d, &key))
		return;
	char name[200];
	if (!read_entries(d, x, &both->a)) {
		if (icf_vshift_is_wrong(d, pair, x, y))
			icf_vlog_bad(
				d->log, ICF_VC_LOCATION,
				"list: %s, attribute 0x%x: expected the image of the input's, found another",
				icf_vd_die(&pair->a, name), x->code);
		if (keyed && both->a.len > ICF_VSEEN_LONG)
			icf_vseen_add(d, &key);
		return;
	}
	if (!read_entries(d, y, &both->b)) {
		icf_vlog_bad(d->log, ICF_VC_LOCATION,
			     "list: %s, attribute 0x%x: expected one that libdw reads, found: %s",
			     icf_vd_die(&pair->a, name), x->code, dwarf_errmsg(-1));
		return;
	}
	struct comparison c = { .d = d,
				.pair = pair,
				.code = x->code,
				.views = views,
				.in = &both->a,
				.out = &both->b };
	if (!pair->dead && (!check_entries(&c) || !check_dead_entries(&c) ||
			    !check_empty_entries(&c) || !check_more_entries(&c)))
		return;
	if (keyed && both->a.len + both->b.len > ICF_VSEEN_LONG)
		icf_vseen_add(d, &key);
}
