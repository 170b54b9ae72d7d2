/* vtable.c: see vtable.h.
 *
 * The symbol of a vtable object holds the mangled name of its class, and the linkage name of each
 * virtual function that the class declares begins with the same text (Itanium C++ ABI, section
 * 5.1.6.2):
 *
 *	_ZTV N 3foo3BarIiE E_ZN 3foo3BarIiE 1f E v
 *
 * Substitutions are numbered from the left, so that the text is the same in both, whatever template
 * arguments are in it: how a compiler spells a template in DW_AT_name does not matter.  A class
 * that declares no virtual function has its name built from its scopes, unless it is a template.
 * What the object of a construction vtable (_ZTC) is one of tells its type information.
 *
 * A name of external linkage means one class in the whole program (basic.def.odr): the first DIE is
 * as good as the others.  A local name may mean several, and compilers leave linkage names out of
 * their DIEs.  There a function in one of the object's slots tells: its symbol says whether the
 * object's class is where it is declared, and its DIE leads to the declaration.  When none does so,
 * a local name must have one DIE and one object alone. Cost: a walk of .debug_info that delivers
 * few attributes, and another one of the units with local names. */
#include "dwarf/rewrite/vtable/state.h"
#include "elfrw/base/parallel.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static int address_order(const void *a, const void *b)
{
	const struct dwr_rw_vtable *x = a, *y = b;
	return x->address < y->address ? -1 : x->address > y->address;
}

/* How other units refer to the class; false: they cannot. */
static bool refer(const struct dwr_vtable_search *s, const struct dwr_vtable_hit *h,
		  struct dwr_rw_vtable *ret)
{
	const struct dwr_unit *unit = &s->units->data[h->unit];
	bool by_signature = unit->type == DW_UT_type;
	ret->type = by_signature ? unit->id : h->die;
	ret->signature = by_signature;
	return !by_signature || unit->off + unit->type_off == h->die;
}

static void settle(struct dwr_vtable_search *s, size_t runs, bool by_scopes)
{
	for (size_t r = 0; r < runs; r++)
		for (size_t i = 0; i < s->run[r].v.len; i++) {
			const struct dwr_vtable_hit *h = &s->run[r].v.data[i];
			struct dwr_vtable_object *o = &s->object.data[h->object];
			if (h->by_scopes != by_scopes)
				continue;
			if (!o->sure && refer(s, h, &o->type)) {
				o->sure = true;
				o->from = h->die;
			} else if (o->local && o->from != h->die)
				o->several = true;
		}
}

struct elfrw_err *dwr_rw_vtables(struct dwr_rw *rw, struct dwr_rw_vtables *ret)
{
	struct dwr_vtable_search s = { .rw = rw, .units = &rw->units };
	size_t runs = (rw->units.len + DWR_VTABLE_RUN - 1) / DWR_VTABLE_RUN;
	*ret = (struct dwr_rw_vtables){ 0 };
	struct elfrw_err *err = rw->in->n_vslots ? dwr_vtable_read_symbols(&s) : NULL;
	if (!err && s.symbol.len)
		err = dwr_vtable_collect(&s, ret);
	if (!err && s.object.len) {
		s.run = calloc(runs + 1, sizeof *s.run);
		err = s.run ? elfrw_parallel(rw->in->threads, runs, dwr_vtable_walk_run, &s)
			    : &elfrw_err_nomem;
		if (!err)
			settle(&s, runs, false);
		if (!err)
			settle(&s, runs, true);
		if (!err)
			err = dwr_vtable_settle_by_slots(&s);
	}
	for (size_t i = 0, first = 0; i < s.object.len && !err; i++) {
		const struct dwr_vtable_object *o = &s.object.data[i], *p = &s.object.data[first];
		bool again = i && dwr_vtable_text_order(o->name, o->len, p->name, p->len) == 0;
		if (!again)
			p = &s.object.data[first = i];
		/* Several objects of one class: a vtable and construction vtables.  With a local
		 * name they may be of several classes. */
		bool single =
			!again && (i + 1 == s.object.len ||
				   dwr_vtable_text_order(o->name, o->len, o[1].name, o[1].len));
		if (o->exact)
			p = o;
		else if (!p->sure || (o->local && (p->several || !single))) {
			ret->left_out++;
			continue;
		}
		struct dwr_rw_vtable *v = VEC_PUSH(&ret->v);
		if (!v)
			err = &elfrw_err_nomem;
		else
			*v = (struct dwr_rw_vtable){ o->address, p->type.type, p->type.signature };
	}
	if (!err && ret->v.len)
		qsort(ret->v.data, ret->v.len, sizeof *ret->v.data, address_order);
	for (size_t r = 0; s.run && r < runs; r++)
		VEC_FREE(&s.run[r].v);
	free(s.run);
	VEC_FREE(&s.symbol);
	VEC_FREE(&s.object);
	VEC_FREE(&s.slot);
	VEC_FREE(&s.lead);
	if (err)
		dwr_rw_vtables_deinit(ret);
	return err;
}

void dwr_rw_vtables_deinit(struct dwr_rw_vtables *vt)
{
	VEC_FREE(&vt->v);
}

void dwr_rw_vtables_write(const struct dwr_rw_vtables *vt, struct dwr_form_params params,
			  unsigned first, struct elfrw_wbuf *abbrev, struct elfrw_wbuf *info)
{
	for (unsigned k = 0; k < 2; k++) {
		elfrw_wbuf_uleb(abbrev, first + k);
		elfrw_wbuf_uleb(abbrev, DWR_TAG_VTABLE);
		elfrw_wbuf_u8(abbrev, DW_CHILDREN_no);
		elfrw_wbuf_uleb(abbrev, DW_AT_location);
		elfrw_wbuf_uleb(abbrev, params.version >= 4 ? DW_FORM_exprloc : DW_FORM_block1);
		elfrw_wbuf_uleb(abbrev, DW_AT_type);
		elfrw_wbuf_uleb(abbrev, k ? DW_FORM_ref_sig8 : DW_FORM_ref_addr);
		elfrw_wbuf_u16(abbrev, 0);
	}
	for (size_t i = 0; i < vt->v.len; i++) {
		const struct dwr_rw_vtable *v = &vt->v.data[i];
		elfrw_wbuf_uleb(info, first + v->signature);
		elfrw_wbuf_u8(info, 1u + params.address_size);
		elfrw_wbuf_u8(info, DW_OP_addr);
		elfrw_wbuf_uint(info, v->address, params.address_size);
		/* Until DWARF 2 a reference to another unit was of the size of an address. */
		elfrw_wbuf_uint(info, v->type,
				v->signature          ? 8
				: params.version == 2 ? params.address_size
						      : params.offset_size);
	}
}
