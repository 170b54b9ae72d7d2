/* names.c: .debug_names (DWARF 5, section 6.1.1).
 *
 * The indices must be equal, but one of them may have the artificial unit as its last one.  If that
 * index had one unit before, its entries need not have said which, and now they must: what is
 * different then are the declarations of such entries, a number in each of them, and the places of
 * entries.  Or the artificial unit has an index of its own behind the others, without names.  Cost:
 * one walk over the entries of both files, for the index that changed. */
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include "icf/verify/debug/debug.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* Attributes of entries. */
enum { IDX_UNIT = 1, IDX_TYPE_UNIT = 2, IDX_PARENT = 4 };

#define MAX_ATTRS 32

/* One index.  Places count from its start. */
struct nindex {
	const uint8_t *at;
	uint64_t size; /* with its length */
	unsigned wide; /* 8: 64-bit DWARF; else 4 */
	uint64_t fixed, units, lists, places, abbrevs, pool;
	uint32_t n[7]; /* units, local and foreign type units, buckets, names, bytes of
			  abbreviations, of augmentation */
};

/* Reads the index at R, and moves R behind it. */
static bool read_index(struct elfrw_rbuf *r, struct nindex *x)
{
	*x = (struct nindex){ .at = r->pos, .wide = 4 };
	uint64_t length = elfrw_rbuf_u32(r), head = 4;
	if (length == 0xffffffff) {
		x->wide = 8;
		head = 12;
		length = elfrw_rbuf_u64(r);
	}
	const uint8_t *body = elfrw_rbuf_take(r, length);
	if (!body)
		return false;
	struct elfrw_rbuf b = elfrw_rbuf(x->at, length + head);
	elfrw_rbuf_seek(&b, head);
	x->size = length + head;
	unsigned version = elfrw_rbuf_u16(&b);
	elfrw_rbuf_u16(&b);
	x->fixed = elfrw_rbuf_off(&b);
	for (unsigned i = 0; i < 7; i++)
		x->n[i] = elfrw_rbuf_u32(&b);
	elfrw_rbuf_skip(&b, (x->n[6] + UINT64_C(3)) / 4 * 4);
	x->units = elfrw_rbuf_off(&b);
	elfrw_rbuf_skip(&b, (uint64_t)x->n[0] * x->wide);
	x->lists = elfrw_rbuf_off(&b);
	elfrw_rbuf_skip(&b, (uint64_t)x->n[1] * x->wide + (uint64_t)x->n[2] * 8);
	if (x->n[3])
		elfrw_rbuf_skip(&b, ((uint64_t)x->n[3] + x->n[4]) * 4);
	elfrw_rbuf_skip(&b, (uint64_t)x->n[4] * x->wide); /* the names */
	x->places = elfrw_rbuf_off(&b);
	elfrw_rbuf_skip(&b, (uint64_t)x->n[4] * x->wide);
	x->abbrevs = elfrw_rbuf_off(&b);
	elfrw_rbuf_skip(&b, x->n[5]);
	x->pool = elfrw_rbuf_off(&b);
	return elfrw_rbuf_ok(&b) && version == 5;
}

/* The declaration of entries with a code, in one of the files. */
struct ndecl {
	uint64_t code, tag;
	unsigned n;
	bool says; /* says which unit an entry is of */
	uint64_t attr[MAX_ATTRS], form[MAX_ATTRS];
	int64_t number[MAX_ATTRS]; /* in the declaration itself */
};

struct ndecls {
	VEC(struct ndecl) v;
	bool nomem;
};

static int decl_order(const void *a, const void *b)
{
	const struct ndecl *x = a, *y = b;
	return x->code < y->code ? -1 : x->code > y->code;
}

static bool read_decls(const struct nindex *x, struct ndecls *list)
{
	struct elfrw_rbuf r = elfrw_rbuf(x->at + x->abbrevs, x->n[5]);
	uint64_t code;
	while (elfrw_rbuf_left(&r) && (code = elfrw_rbuf_uleb(&r)) != 0) {
		struct ndecl *d = VEC_PUSH(&list->v);
		if (!d)
			return !(list->nomem = true);
		*d = (struct ndecl){ .code = code, .tag = elfrw_rbuf_uleb(&r) };
		for (;;) {
			uint64_t attr = elfrw_rbuf_uleb(&r), form = elfrw_rbuf_uleb(&r);
			if (!elfrw_rbuf_ok(&r) || d->n == MAX_ATTRS)
				return false;
			if (!attr && !form)
				break;
			d->says |= attr == IDX_UNIT || attr == IDX_TYPE_UNIT;
			d->number[d->n] = form == DW_FORM_implicit_const ? elfrw_rbuf_sleb(&r) : 0;
			d->attr[d->n] = attr;
			d->form[d->n++] = form;
		}
	}
	if (list->v.len)
		qsort(list->v.data, list->v.len, sizeof *list->v.data, decl_order);
	return elfrw_rbuf_ok(&r);
}

static const struct ndecl *decl_of(const struct ndecls *list, uint64_t code)
{
	const struct ndecl key = { .code = code };
	return list->v.len ? bsearch(&key, list->v.data, list->v.len, sizeof key, decl_order)
			   : NULL;
}

/* Do the declarations mean the same, but that OUT's says the unit where IN's does not? */
static bool same_decls(const struct ndecls *a, const struct ndecls *b)
{
	bool same = a->v.len == b->v.len;
	for (size_t i = 0; same && i < a->v.len; i++) {
		const struct ndecl *x = &a->v.data[i], *y = &b->v.data[i];
		unsigned extra = y->n - x->n, k = 0;
		same = x->code == y->code && x->tag == y->tag && y->n >= x->n &&
		       extra == !x->says &&
		       (!extra || (y->attr[0] == IDX_UNIT && y->form[0] == DW_FORM_udata));
		for (; same && k < x->n; k++)
			same = x->attr[k] == y->attr[k + extra] &&
			       x->form[k] == y->form[k + extra] &&
			       x->number[k] == y->number[k + extra];
	}
	return same;
}

static uint64_t read_number(struct elfrw_rbuf *r, uint64_t form, bool *known)
{
	switch (form) {
	case DW_FORM_implicit_const:
	case DW_FORM_flag_present: return 0;
	case DW_FORM_flag:
	case DW_FORM_ref1:
	case DW_FORM_data1: return elfrw_rbuf_u8(r);
	case DW_FORM_ref2:
	case DW_FORM_data2: return elfrw_rbuf_u16(r);
	case DW_FORM_ref4:
	case DW_FORM_data4: return elfrw_rbuf_u32(r);
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_data8: return elfrw_rbuf_u64(r);
	case DW_FORM_ref_udata:
	case DW_FORM_udata: return elfrw_rbuf_uleb(r);
	}
	*known = false;
	return 0;
}

/* Places in both pools that mean the same. */
struct nplace {
	uint64_t in, out;
};

struct nwalk {
	struct elfrw_rbuf a, b;
	struct ndecls da, db;
	VEC(struct nplace) entry, parent;
	bool nomem;
};

static bool note_place(struct nwalk *w, bool parent, uint64_t in, uint64_t out)
{
	struct nplace *p = parent ? VEC_PUSH(&w->parent) : VEC_PUSH(&w->entry);
	if (!p)
		return !(w->nomem = true);
	*p = (struct nplace){ in, out };
	return true;
}

/* Compares the attributes of two entries. */
static bool same_entry(struct nwalk *w, const struct ndecl *x, const struct ndecl *y)
{
	bool known = true;
	unsigned extra = y->n - x->n;
	/* The only unit that the entry can be of. */
	if (extra && read_number(&w->b, y->form[0], &known) != 0)
		return false;
	for (unsigned i = 0; i < x->n && known; i++) {
		uint64_t p = read_number(&w->a, x->form[i], &known),
			 q = read_number(&w->b, x->form[i], &known);
		if (x->attr[i] == IDX_PARENT && x->form[i] != DW_FORM_flag_present &&
		    x->form[i] != DW_FORM_implicit_const) {
			if (!note_place(w, true, p, q))
				return false;
		} else if (p != q)
			return false;
	}
	return known && elfrw_rbuf_ok(&w->a) && elfrw_rbuf_ok(&w->b);
}

/* Walks both pools.  Behind the end of IN's, OUT's may have zeros up to a multiple of 4. */
static bool same_pools(struct nwalk *w)
{
	while (elfrw_rbuf_left(&w->a)) {
		if (!note_place(w, false, elfrw_rbuf_off(&w->a), elfrw_rbuf_off(&w->b)))
			return false;
		uint64_t code = elfrw_rbuf_uleb(&w->a);
		const struct ndecl *x = decl_of(&w->da, code), *y = decl_of(&w->db, code);
		if (elfrw_rbuf_uleb(&w->b) != code || !elfrw_rbuf_ok(&w->b) ||
		    (code && (!x || !y || !same_entry(w, x, y))))
			return false;
	}
	bool rest = elfrw_rbuf_left(&w->b) < 4;
	while (rest && elfrw_rbuf_left(&w->b))
		rest = elfrw_rbuf_u8(&w->b) == 0;
	return rest;
}

static bool is_place(const struct nwalk *w, uint64_t in, uint64_t out)
{
	size_t i = LOWER_BOUND(0, w->entry.len, mid, w->entry.data[mid].in < in);
	return i < w->entry.len && w->entry.data[i].in == in && w->entry.data[i].out == out;
}

static uint64_t number_at(const struct nindex *x, uint64_t at)
{
	return elfrw_get_le(x->at + at, x->wide);
}

/* Are all places of entries in OUT those of IN's entries? */
static bool same_places(const struct nindex *a, const struct nindex *b, const struct nwalk *w)
{
	bool same = true;
	for (uint32_t i = 0; same && i < a->n[4]; i++)
		same = is_place(w, number_at(a, a->places + (uint64_t)i * a->wide),
				number_at(b, b->places + (uint64_t)i * b->wide));
	for (size_t i = 0; same && i < w->parent.len; i++)
		same = is_place(w, w->parent.data[i].in, w->parent.data[i].out);
	return same;
}

/* Are B's entries those of A, but that each now says that it is of the first unit? */
static struct elfrw_err *same_grown(const struct nindex *a, const struct nindex *b, bool *ret)
{
	struct nwalk w = { .a = elfrw_rbuf(a->at + a->pool, a->size - a->pool),
			   .b = elfrw_rbuf(b->at + b->pool, b->size - b->pool) };
	*ret = read_decls(a, &w.da) && read_decls(b, &w.db) && same_decls(&w.da, &w.db) &&
	       same_pools(&w) && same_places(a, b, &w);
	bool nomem = w.nomem || w.da.nomem || w.db.nomem;
	VEC_FREE(&w.da.v);
	VEC_FREE(&w.db.v);
	VEC_FREE(&w.entry);
	VEC_FREE(&w.parent);
	return nomem ? &elfrw_err_nomem : NULL;
}

/* Does some entry of A, which has one unit, not say its unit? */
static struct elfrw_err *is_silent(const struct nindex *a, bool *ret)
{
	struct ndecls d = { 0 };
	*ret = !read_decls(a, &d);
	for (size_t i = 0; i < d.v.len; i++)
		*ret |= !d.v.data[i].says;
	VEC_FREE(&d.v);
	return d.nomem ? &elfrw_err_nomem : NULL;
}

/* Is index B the index A with the unit at UNIT as its last one? */
static struct elfrw_err *one_more_unit(const struct nindex *a, const struct nindex *b,
				       uint64_t unit, bool *ret)
{
	const uint64_t names = a->places - a->lists;
	bool silent = false;
	*ret = a->wide == b->wide && a->n[0] && b->n[0] == a->n[0] + UINT64_C(1) &&
	       memcmp(a->at + a->fixed - 4, b->at + b->fixed - 4, 4) == 0 &&
	       memcmp(a->n + 1, b->n + 1, 4 * sizeof *a->n) == 0 && a->n[6] == b->n[6] &&
	       memcmp(a->at + a->fixed + 28, b->at + b->fixed + 28, a->lists - a->fixed - 28) ==
		       0 &&
	       number_at(b, b->lists - b->wide) == unit && b->places - b->lists == names &&
	       memcmp(a->at + a->lists, b->at + b->lists, names) == 0;
	if (!*ret)
		return NULL;
	bool rest = a->size - a->places == b->size - b->places &&
		    memcmp(a->at + a->places, b->at + b->places, a->size - a->places) == 0;
	if (a->n[0] == 1)
		ELFRW_TRY(is_silent(a, &silent));
	if (silent)
		return same_grown(a, b, ret);
	*ret = rest;
	return NULL;
}

/* Is index B one of the unit at UNIT alone, without names? */
static bool is_own(const struct nindex *b, uint64_t unit)
{
	bool own = b->n[0] == 1 && !b->n[1] && !b->n[2] && !b->n[4] && !b->n[6] &&
		   number_at(b, b->units) == unit;
	for (uint64_t i = b->lists; own && i < b->size; i++)
		own = b->at[i] == 0;
	return own;
}

/* Compares the indices in the order of the sections.  *AT: the first one that is wrong. */
static struct elfrw_err *compare(struct elfrw_rbuf *in, struct elfrw_rbuf *out, uint64_t unit,
				 bool *same)
{
	bool joined = unit == UINT64_MAX;
	struct nindex a, b;
	*same = true;
	while (*same && elfrw_rbuf_left(in)) {
		const uint8_t *p = in->pos, *q = out->pos;
		size_t left = elfrw_rbuf_left(in);
		if (!read_index(in, &a)) {
			/* What is no index is the same up to the end. */
			in->pos = in->end;
			const uint8_t *rest = elfrw_rbuf_take(out, left);
			*same = rest && memcmp(p, rest, left) == 0;
			break;
		}
		if (elfrw_rbuf_left(out) >= a.size && memcmp(p, q, a.size) == 0) {
			elfrw_rbuf_skip(out, a.size);
			continue;
		}
		*same = !joined && read_index(out, &b);
		if (*same)
			ELFRW_TRY(one_more_unit(&a, &b, unit, same));
		joined = true;
	}
	if (*same && elfrw_rbuf_left(out))
		*same = !joined && read_index(out, &b) && !elfrw_rbuf_left(out) && is_own(&b, unit);
	return NULL;
}

struct elfrw_err *icf_vd_names(struct icf_vdebug *d)
{
	const Elf_Data *a = icf_vd_section(&d->in, ".debug_names"),
		       *b = icf_vd_section(&d->out, ".debug_names");
	if (!a || !a->d_size)
		return NULL;
	struct elfrw_rbuf in = elfrw_rbuf(a->d_buf, a->d_size),
			  out = elfrw_rbuf(b ? b->d_buf : NULL, b ? b->d_size : 0);
	bool same;
	d->log->checked[ICF_VC_INDEX]++;
	ELFRW_TRY(compare(&in, &out,
			  d->v->claim.has_note ? d->v->claim.note.artificial_unit : UINT64_MAX,
			  &same));
	if (!same)
		icf_vlog_bad(
			d->log, ICF_VC_INDEX,
			"index: .debug_names, offset 0x%llx: expected the same names, with the artificial unit, found others",
			ICF_VX(elfrw_rbuf_off(&in)));
	return NULL;
}
