/* loc.c: addresses, expressions, location lists and their views in DIEs. */
#include "elfrw/base/search.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/seen.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *icf_vd_die(Dwarf_Die *die, char buf[200])
{
	Dwarf_Attribute attr;
	const char *n = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attr));
	if (!n)
		n = dwarf_diename(die);
	snprintf(buf, 200, "DIE 0x%llx (tag 0x%x, %.120s)", ICF_VX(dwarf_dieoffset(die)),
		 (unsigned)dwarf_tag(die), n ? n : "no name");
	return buf;
}

/* The image of the end address VA: by the unit that holds the byte before it. */
static bool end_of(const struct icf_v *v, uint64_t va, uint64_t *ret)
{
	uint32_t u = icf_v_find_end(v, va);
	if (u == ICF_V_NONE)
		return false;
	*ret = v->unit.data[u].body + (va - v->unit.data[u].old);
	return true;
}

bool icf_vd_address(const struct icf_vdebug *d, enum icf_vd_how how, uint64_t a, uint64_t b,
		    uint64_t *want)
{
	const struct icf_v *v = d->v;
	uint64_t r;
	*want = a;
	if (!icf_v_in_exec(v, a)) {
		if (a == b || !a)
			return a == b;
		size_t i = LOWER_BOUND(0, v->exec.len, mid, v->exec.data[mid].old_end < a);
		for (; i < v->exec.len && v->exec.data[i].old_end == a; i++)
			if (a == v->exec.data[i].old_end &&
			    (end_of(v, a, want) ? b == *want || b == v->exec.data[i].new_end
						: b == v->exec.data[i].new_end))
				return true;
		*want = icf_v_data(v, a);
		return b == *want;
	}
	if (how == ICF_VD_END && end_of(v, a, want))
		return *want == b;
	uint32_t u = icf_v_find(v, a);
	if (u != ICF_V_NONE) {
		const struct icf_vunit *x = &v->unit.data[u];
		*want = x->body + (a - x->old);
		if (*want == b)
			return true;
		if (a == x->old) {
			/* The entry of a folded function is at its thunk.  A label at the end of a
			 * function is at that end. */
			if (x->thunk && x->entry == b)
				return true;
			if (how == ICF_VD_POINT && end_of(v, a, &r) && r == b)
				return true;
		}
		return (x->flags & ICF_V_FOLDED) && d->policy == DWR_FOLDED_DROP &&
		       !icf_v_out_exec(v, b);
	}
	if (end_of(v, a, &r) && r == b)
		return true;
	/* Between two units: no place in the output, unless it is a place there. */
	return icf_v_out_exec(v, b) || !b;
}

const char *icf_vd_expr(struct icf_vdebug *d, Dwarf_Attribute *x, Dwarf_Op *a, size_t na,
			Dwarf_Attribute *y, Dwarf_Op *b, size_t nb)
{
	uint64_t want;
	if (na != nb)
		return "as many operations";
	for (size_t i = 0; i < na; i++) {
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
			if (dwarf_getlocation_attr(x, &a[i], &p) || dwarf_formaddr(&p, &va))
				break; /* libdw cannot tell even for the input */
			if (dwarf_getlocation_attr(y, &b[i], &q) || dwarf_formaddr(&q, &vb))
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
			if (dwarf_getlocation_attr(x, &a[i], &p) || dwarf_formblock(&p, &s))
				break;
			if (dwarf_getlocation_attr(y, &b[i], &q) || dwarf_formblock(&q, &t) ||
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
	Dwarf_Op *op;
	size_t n;
};

typedef VEC(struct entry) entries;

/* false: libdw cannot read the list. */
static bool read_entries(struct icf_vdebug *d, Dwarf_Attribute *attr, entries *ret)
{
	Dwarf_Addr base;
	ptrdiff_t off = 0;
	struct entry e;
	while ((off = dwarf_getlocations(attr, off, &base, &e.lo, &e.hi, &e.op, &e.n)) > 0) {
		struct entry *slot = VEC_PUSH(ret);
		if (slot)
			*slot = e;
		else
			d->log->nomem = true;
	}
	return off == 0;
}

void icf_vd_views(struct icf_vdebug *d, Dwarf_Die *die, Dwarf_Attribute *va, Dwarf_Attribute *la,
		  Dwarf_Attribute *vb, Dwarf_Attribute *lb)
{
	Dwarf_Half version = 0;
	Dwarf_Word oa, ob, ea, eb;
	char name[200];
	dwarf_cu_info(die->cu, &version, NULL, NULL, NULL, NULL, NULL, NULL);
	const Elf_Data *da = d->in.loc[version >= 5], *db = d->out.loc[version >= 5];
	/* The pairs of views lie between the place of DW_AT_GNU_locviews and the list itself. */
	if (la->form == DW_FORM_loclistx || dwarf_formudata(va, &oa) || dwarf_formudata(la, &ea) ||
	    !da || oa > ea || ea > da->d_size)
		return;
	d->log->checked[ICF_VC_LOCATION]++;
	if (dwarf_formudata(vb, &ob) || dwarf_formudata(lb, &eb) || !db || ob > eb ||
	    eb > db->d_size) {
		icf_vlog_bad(d->log, ICF_VC_LOCATION,
			     "views: %s: expected before their list, found elsewhere",
			     icf_vd_die(die, name));
		return;
	}
	struct elfrw_rbuf a = elfrw_rbuf((const uint8_t *)da->d_buf + oa, ea - oa),
			  b = elfrw_rbuf((const uint8_t *)db->d_buf + ob, eb - ob);
	while (elfrw_rbuf_left(&a) || elfrw_rbuf_left(&b)) {
		uint64_t x = elfrw_rbuf_uleb(&a), y = elfrw_rbuf_uleb(&b);
		if (a.bad || b.bad || x != y) {
			icf_vlog_bad(d->log, ICF_VC_LOCATION,
				     "views: %s: expected the same, found others",
				     icf_vd_die(die, name));
			return;
		}
	}
}

/* Does nothing of OUT lie in [LO, HI), between the code of units A and B? */
static bool only_padding(const struct icf_v *v, const struct icf_vunit *a,
			 const struct icf_vunit *b, uint64_t lo, uint64_t hi)
{
	if (hi < lo || a->exec != b->exec ||
	    (v->has_note && v->note.map.trap_byte >= lo && v->note.map.trap_byte < hi))
		return false;
	size_t unit = LOWER_BOUND(0, v->n_new, mid, v->unit.data[v->by_new[mid]].body < lo);
	size_t thunk = LOWER_BOUND(0, v->n_thunk, mid, v->unit.data[v->by_thunk[mid]].entry < lo);
	return (unit == v->n_new || v->unit.data[v->by_new[unit]].body >= hi) &&
	       (thunk == v->n_thunk || v->unit.data[v->by_thunk[thunk]].entry >= hi);
}

/* Compares one entry of IN, cut at units, with the entries of OUT from *K on.  One of these may
 * cover pieces that are adjacent there as in IN.  NULL: found, or not required. */
static const char *find_entry(struct icf_vdebug *d, const struct entry *e, const entries *out,
			      size_t *k, Dwarf_Attribute *x, Dwarf_Attribute *y, bool views,
			      uint64_t *want_lo, uint64_t *want_hi)
{
	const struct icf_v *v = d->v;
	bool any = e->lo == 0 && e->hi == UINT64_MAX; /* the default entry */
	uint64_t lo = e->lo, done = 0;
	const struct entry *open =
		NULL; /* equal up to `done`, the end of unit `last`; the entry continues */
	const struct icf_vunit *last = NULL;
	do {
		uint32_t u = any ? ICF_V_NONE : icf_v_find(v, lo);
		uint64_t to = e->hi, wl = lo, wh = to;
		bool optional = false, folded = false;
		const char *why = "such an entry";
		if (!any && u == ICF_V_NONE) {
			/* In padding, or at the end of a function, an empty entry says nothing. */
			uint32_t next = icf_v_find_after(v, lo);
			uint64_t r;
			if (lo == e->hi && *k < out->len && end_of(v, lo, &r) &&
			    out->data[*k].lo == r && out->data[*k].hi == r &&
			    !icf_vd_expr(d, x, e->op, e->n, y, out->data[*k].op, out->data[*k].n))
				++*k;
			if (next == ICF_V_NONE || v->unit.data[next].old >= e->hi)
				break;
			lo = v->unit.data[next].old;
			continue;
		}
		const struct icf_vunit *n = any ? NULL : &v->unit.data[u];
		if (n) {
			to = e->hi < n->end ? e->hi : n->end;
			wl = n->body + (lo - n->old);
			wh = n->body + (to - n->old);
			folded = (n->flags & ICF_V_FOLDED) && d->policy == DWR_FOLDED_DROP;
			optional = folded || (lo == e->hi && !views);
		}
		size_t try = *k;
		if (open) {
			if (wh > open->hi || !only_padding(v, last, n, done, wl))
				break;
			done = wh;
			last = n;
			open = wh < open->hi ? open : NULL;
			lo = to;
			continue;
		}
		for (; try < out->len; try++) {
			const struct entry *o = &out->data[try];
			bool more = n && o->lo == wl && o->hi > wh && to == n->end && to < e->hi;
			bool same = (o->lo == wl && o->hi == wh) || more;
			/* An entry that has lost its place, if nothing of folded functions is kept:
			 * it may be at the kept copy's, a little further on. */
			if (!same && folded && (o->lo == o->hi || !icf_v_out_exec(v, o->lo)))
				same = !(try + 1 < out->len && out->data[try + 1].lo == wl &&
					 out->data[try + 1].hi == wh);
			/* An empty entry at a boundary belongs to either neighbour. */
			uint64_t r;
			if (!same && lo == e->hi && o->lo == o->hi)
				same = end_of(v, lo, &r) && r == o->lo;
			if (same) {
				why = icf_vd_expr(d, x, e->op, e->n, y, o->op, o->n);
				if (!why && more) {
					open = o;
					done = wh;
					last = n;
				}
				if (!why || !optional)
					break;
			}
			/* An entry without a place in the program may be skipped. */
			if (o->lo != o->hi && icf_v_out_exec(v, o->lo)) {
				try = out->len;
				break;
			}
		}
		if (try < out->len && !why)
			*k = try + 1;
		else if (!optional) {
			*want_lo = wl;
			*want_hi = wh;
			return why ? why : "such an entry";
		}
		if (to == lo)
			break;
		lo = to;
	} while (lo < e->hi);
	if (!open)
		return NULL;
	*want_lo = open->lo;
	*want_hi = done;
	--*k;
	return "such an entry";
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

void icf_vd_loclist(struct icf_vdebug *d, Dwarf_Die *die, bool dead, uint32_t folded,
		    Dwarf_Attribute *x, Dwarf_Attribute *y, bool views)
{
	struct both *both = d->entries ? d->entries : calloc(1, sizeof *both);
	d->entries = both;
	if (!both) {
		d->log->nomem = true;
		return;
	}
	both->a.len = both->b.len = 0;
	size_t k = 0;
	struct icf_vkey key;
	bool keyed =
		icf_vseen_list(d, ICF_VSEEN_LOCATIONS,
			       (uint64_t)folded << 2 | (uint64_t)dead << 1 | views, x, y, &key);
	if (keyed && icf_vseen(d, &key))
		return;
	char name[200];
	uint64_t wl, wh;
	if (!read_entries(d, x, &both->a)) {
		if (keyed && both->a.len > ICF_VSEEN_LONG)
			icf_vseen_add(d, &key);
		return;
	}
	const entries a = both->a;
	if (!read_entries(d, y, &both->b)) {
		icf_vlog_bad(d->log, ICF_VC_LOCATION,
			     "list: %s, attribute 0x%x: expected one that libdw reads, found: %s",
			     icf_vd_die(die, name), x->code, dwarf_errmsg(-1));
		return;
	}
	const entries b = both->b;
	for (size_t i = 0; i < a.len && !dead; i++) {
		bool any = a.data[i].lo == 0 && a.data[i].hi == UINT64_MAX;
		if (!any && !icf_v_in_exec(d->v, a.data[i].lo))
			continue;
		d->log->checked[ICF_VC_LOCATION]++;
		const char *why = find_entry(d, &a.data[i], &b, &k, x, y, views, &wl, &wh);
		if (!why)
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x (0x%llx to 0x%llx -> 0x%llx to 0x%llx): expected %s, found %s0x%llx to 0x%llx",
			icf_vd_die(die, name), x->code, ICF_VX(a.data[i].lo), ICF_VX(a.data[i].hi),
			ICF_VX(wl), ICF_VX(wh), why, k < b.len ? "" : "none; ",
			ICF_VX(k < b.len ? b.data[k].lo : 0), ICF_VX(k < b.len ? b.data[k].hi : 0));
		return;
	}
	/* Empty entries must stand where one of the input's does. */
	for (size_t i = 0; i < b.len && !dead; i++) {
		const struct entry *o = &b.data[i];
		bool ok = o->lo != o->hi || !icf_v_out_exec(d->v, o->lo);
		uint64_t want;
		for (size_t m = 0; m < a.len && !ok; m++)
			ok = icf_vd_address(d, ICF_VD_POINT, a.data[m].lo, o->lo, &want) ||
			     icf_vd_address(d, ICF_VD_END, a.data[m].hi, o->lo, &want) ||
			     icf_vd_address(d, ICF_VD_END, a.data[m].lo, o->lo, &want);
		if (ok)
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x: expected empty ones only where the input's are, found one at 0x%llx",
			icf_vd_die(die, name), x->code, ICF_VX(o->lo));
		return;
	}
	for (; k < b.len && !dead; k++) {
		const struct entry *o = &b.data[k];
		if (o->lo >= o->hi || !icf_v_out_exec(d->v, o->lo) ||
		    (folded != ICF_V_NONE && d->policy == DWR_FOLDED_DROP))
			continue;
		icf_vlog_bad(
			d->log, ICF_VC_LOCATION,
			"entry: %s, attribute 0x%x (-> 0x%llx to 0x%llx): expected no more, found one",
			icf_vd_die(die, name), x->code, ICF_VX(o->lo), ICF_VX(o->hi));
		return;
	}
	if (keyed && a.len + b.len > ICF_VSEEN_LONG)
		icf_vseen_add(d, &key);
}
