/* slots.c: class DIEs found by the functions in an object's slots; see vtable.c. */
#include "dwarf/calls/call_sites.h"
#include "dwarf/rewrite/vtable/state.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

static int lead_order(const void *a, const void *b)
{
	const struct dwr_vtable_lead *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* Goes from object K through the functions of its slots to their declarations.  DIE: N of them,
 * sorted by unit of the map. */
static struct elfrw_err *follow_slots(struct dwr_vtable_search *s, uint32_t k,
				      const struct dwr_note_die *die, size_t n,
				      struct dwr_abbrev_table *table)
{
	const uint64_t address = s->object.data[k].address;
	size_t i = LOWER_BOUND(0, s->slot.len, mid, s->slot.data[mid].address < address);
	for (; i < s->slot.len && s->slot.data[i].address == address; i++) {
		uint32_t unit = s->slot.data[i].unit;
		const char *linkage = s->rw->in->unit_name ? s->rw->in->unit_name[unit] : NULL;
		size_t d = LOWER_BOUND(0, n, mid, die[mid].unit < unit);
		for (; linkage && d < n && die[d].unit == unit; d++) {
			struct dwr_die_chain chain;
			ELFRW_TRY(dwr_die_chain(&s->rw->secs, s->units, table, die[d].die, &chain));
			struct dwr_vtable_lead *l = chain.n ? VEC_PUSH(&s->lead) : NULL;
			if (chain.n && !l)
				return &elfrw_err_nomem;
			if (l)
				*l = (struct dwr_vtable_lead){ chain.die[chain.n - 1], k, linkage };
		}
	}
	return NULL;
}

/* Is the function with the symbol LINKAGE, declared in a class named CLASS, a member of the class
 * of object O? */
static bool member_of(const struct dwr_vtable_search *s, const struct dwr_vtable_object *o,
		      const char *linkage, const char *class)
{
	if (linkage[0] != '_' || linkage[1] != 'Z')
		return false;
	uint32_t k = linkage[2] == 'Z' ? dwr_vtable_local_class_of(s, linkage, class)
				       : dwr_vtable_class_of(s, linkage);
	return k != UINT32_MAX &&
	       dwr_vtable_text_order(s->object.data[k].name, s->object.data[k].len, o->name,
				     o->len) == 0;
}

/* A possible class around a declaration. */
struct around {
	uint64_t die;
	bool class, declared;
	struct dwr_value name, signature; /* form 0: none */
};

static struct around around_of(const struct dwr_die *die)
{
	unsigned tag = die->abbrev->tag;
	struct around a = { .die = die->off,
			    .class = tag == DW_TAG_class_type || tag == DW_TAG_structure_type };
	const struct dwr_value *name = dwr_die_value(die, DW_AT_name),
			       *sig = dwr_die_value(die, DW_AT_signature);
	const struct dwr_value *declared = dwr_die_value(die, DW_AT_declaration);
	a.declared = declared && declared->u;
	if (name)
		a.name = *name;
	if (sig)
		a.signature = *sig;
	return a;
}

/* The classes around the declarations of LEAD (N of them, sorted, all in unit K). */
static struct elfrw_err *walk_leads(struct dwr_vtable_search *s, const struct dwr_vtable_lead *lead,
				    size_t n, uint32_t k, struct dwr_abbrev_table *table)
{
	const struct dwr_rw *rw = s->rw;
	const struct dwr_unit *unit = &s->units->data[k];
	const struct dwr_unit_root *root = &rw->ru[k].root;
	struct dwr_want want = { .vendor = NULL };
	struct around scope[DWR_VTABLE_DEPTH] = { 0 }; /* the last one at each depth */
	struct dwr_die die;
	bool more;
	DWR_WANT_NAME(&want, DW_AT_name);
	DWR_WANT_NAME(&want, DW_AT_declaration);
	DWR_WANT_NAME(&want, DW_AT_signature);
	ELFRW_TRY(dwr_unit_abbrev(&s->rw->secs, unit, &want, table));
	struct dwr_cursor cur = dwr_cursor_at(&s->rw->secs, unit, table, true);
	while (n) {
		ELFRW_TRY(dwr_cursor_next(&cur, &die, &more));
		if (!more)
			return NULL;
		for (; n && lead->die < die.off; lead++)
			n--;
		const struct around *class =
			die.depth && die.depth < DWR_VTABLE_DEPTH ? &scope[die.depth - 1] : NULL;
		for (; n && lead->die == die.off; lead++, n--) {
			struct dwr_vtable_object *o = &s->object.data[lead->object];
			const char *text =
				class && class->name.form
					? dwr_value_string(&rw->secs, unit, root, &class->name)
					: NULL;
			if (!class || !class->class || o->exact ||
			    !member_of(s, o, lead->linkage, text ? text : ""))
				continue;
			bool by_signature = class->signature.form == DW_FORM_ref_sig8;
			if (class->declared && !by_signature)
				continue;
			o->type = (struct dwr_rw_vtable){ o->address,
							  by_signature ? class->signature.u
								       : class->die,
							  by_signature };
			o->exact = true;
		}
		if (die.depth < DWR_VTABLE_DEPTH && die.abbrev->children)
			scope[die.depth] = around_of(&die);
	}
	return NULL;
}

struct elfrw_err *dwr_vtable_settle_by_slots(struct dwr_vtable_search *s)
{
	struct dwr_note_die *die = NULL;
	size_t n_dies = 0;
	struct dwr_abbrev_table table = { 0 };
	struct elfrw_err *err = NULL;
	bool any = false;
	for (size_t i = 0; i < s->object.len; i++)
		any |= s->object.data[i].local || !s->object.data[i].sure;
	if (!any)
		return NULL;
	ELFRW_TRY(dwr_rw_shared_dies(s->rw, &die, &n_dies));
	for (uint32_t i = 0; i < s->object.len && !err; i++)
		if (s->object.data[i].local || !s->object.data[i].sure)
			err = follow_slots(s, i, die, n_dies, &table);
	dwr_abbrev_deinit(&table);
	if (!err && s->lead.len)
		qsort(s->lead.data, s->lead.len, sizeof *s->lead.data, lead_order);
	for (size_t i = 0, n; i < s->lead.len && !err; i += n) {
		const struct dwr_unit *unit =
			dwr_units_find(s->units, DWR_INFO, s->lead.data[i].die);
		for (n = 1; unit && i + n < s->lead.len && s->lead.data[i + n].die < unit->end;)
			n++;
		if (unit)
			err = walk_leads(s, &s->lead.data[i], n, (uint32_t)(unit - s->units->data),
					 &table);
	}
	dwr_abbrev_deinit(&table);
	free(die);
	return err;
}
