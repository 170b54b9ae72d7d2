/* call_sites.c: see call_sites.h.  If no function is looked for by name, a walk of its own skips
 * units without call sites in their abbreviations.  Runs of units are walked on several threads.
 * Each run has its own results, which are joined in order. */
#include "dwarf/calls/call_sites.h"
#include "dwarf/expr.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

#define RUN 4 /* units */

struct scan {
	struct dwr_sections *secs;
	const struct dwr_units *units;
	struct dwr_call_search search;
	struct dwr_call_sites *run; /* by run */
};

struct elfrw_err *dwr_call_search_init(struct dwr_call_search *s, const struct dwr_sections *secs,
				       const struct dwr_call_wanted *wanted)
{
	*s = (struct dwr_call_search){ .secs = secs, .wanted = wanted };
	return wanted->n_names
		       ? dwr_function_names_init(&s->names, secs, wanted->name, wanted->n_names)
		       : NULL;
}

void dwr_call_search_deinit(struct dwr_call_search *s)
{
	dwr_function_names_deinit(&s->names);
}

void dwr_call_search_want(const struct dwr_call_search *s, uint64_t language, struct dwr_want *ret)
{
	static const uint16_t vendor[] = { DW_AT_GNU_call_site_target, DW_AT_MIPS_linkage_name };
	static const uint8_t name[] = { DW_AT_low_pc, DW_AT_abstract_origin, DW_AT_call_return_pc,
					DW_AT_call_origin, DW_AT_call_target };
	*ret = (struct dwr_want){ .vendor = vendor,
				  .n_vendor = s->names.n ? 2 : 1,
				  .tag = { DW_TAG_call_site, DW_TAG_GNU_call_site } };
	if (s->names.n) {
		ret->tag[2] = DW_TAG_subprogram;
		DWR_WANT_NAME(ret, dwr_function_names_attr(language));
	}
	for (unsigned i = 0; i < sizeof name; i++)
		DWR_WANT_NAME(ret, name[i]);
}

static bool reference(const struct dwr_unit *unit, const struct dwr_value *v, uint64_t *ret)
{
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata: *ret = unit->off + v->u; return v->u < unit->end - unit->off;
	case DW_FORM_ref_addr: *ret = v->u; return true;
	}
	return false;
}

/* *(*(object) + 8 * slot); the object is a register or a word of the frame. */
static uint64_t slot_of(const struct dwr_sections *secs, const struct dwr_unit *unit,
			const struct dwr_value *v)
{
	if (v->form != DW_FORM_exprloc && v->form != DW_FORM_block1 && v->form != DW_FORM_block)
		return DWR_NO_SLOT;
	struct dwr_expr_walk walk = dwr_expr_walk(secs->sec[unit->sec].data + v->pos, v->size,
						  unit->params, secs->sec[unit->sec].name, v->pos);
	struct dwr_op op;
	bool more;
	/* The object; dereferenced; an offset, perhaps; dereferenced. */
	enum { OBJECT, FIRST, OFFSET, PLUS, END, BAD } state = OBJECT;
	uint64_t offset = 0;
	bool frame = false;
	for (;;) {
		struct elfrw_err *err = dwr_expr_next(&walk, &op, &more);
		if (err) {
			elfrw_err_free(err);
			return DWR_NO_SLOT;
		}
		if (!more)
			break;
		if (op.depth) /* inside of DW_OP_entry_value */
			continue;
		switch (state) {
		case OBJECT:
			if (op.op >= DW_OP_breg0 && op.op <= DW_OP_breg31)
				state = op.operand[0] ? BAD : FIRST;
			else if (op.op == DW_OP_entry_value || op.op == DW_OP_GNU_entry_value)
				state = FIRST;
			else if (op.op == DW_OP_fbreg) {
				frame = true;
				state = FIRST;
			} else
				state = BAD;
			break;
		case FIRST:
			state = op.op != DW_OP_deref ? BAD : frame ? FIRST : OFFSET;
			frame = false;
			break;
		case OFFSET:
			if (op.op == DW_OP_deref)
				state = END;
			else if (op.op == DW_OP_plus_uconst) {
				offset = op.operand[0];
				state = PLUS;
			} else
				state = BAD;
			break;
		case PLUS: state = op.op == DW_OP_deref ? END : BAD; break;
		default: state = BAD;
		}
	}
	return state == END && offset % 8 == 0 ? offset / 8 : DWR_NO_SLOT;
}

static bool listed(const struct dwr_call_wanted *w, uint64_t site)
{
	size_t lo = LOWER_BOUND(0, w->n, mid, w->site[mid] < site);
	return lo < w->n && w->site[lo] == site;
}

static struct elfrw_err *one_site(const struct dwr_call_search *s, const struct dwr_unit *unit,
				  const struct dwr_unit_root *root, const struct dwr_die *die,
				  struct dwr_call_sites *ret)
{
	bool gnu = die->abbrev->tag == DW_TAG_GNU_call_site;
	const struct dwr_value *pc = dwr_die_value(die, gnu ? DW_AT_low_pc : DW_AT_call_return_pc);
	const struct dwr_value *origin =
		dwr_die_value(die, gnu ? DW_AT_abstract_origin : DW_AT_call_origin);
	const struct dwr_value *target =
		dwr_die_value(die, gnu ? DW_AT_GNU_call_site_target : DW_AT_call_target);
	struct dwr_call_site site = { .slot = DWR_NO_SLOT };
	if (!pc || (!origin && !target) ||
	    !dwr_value_address(s->secs, unit, root, pc, &site.site) ||
	    !listed(s->wanted, site.site))
		return NULL;
	if (origin && !reference(unit, origin, &site.origin))
		site.origin = 0;
	if (target)
		site.slot = slot_of(s->secs, unit, target);
	if (!site.origin && site.slot == DWR_NO_SLOT)
		return NULL;
	struct dwr_call_site *slot = VEC_PUSH(ret);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = site;
	return NULL;
}

struct elfrw_err *dwr_call_search_look(struct dwr_call_search *s, const struct dwr_unit *unit,
				       const struct dwr_unit_root *root, const struct dwr_die *die,
				       struct dwr_call_sites *ret)
{
	if (die->abbrev->tag != DW_TAG_subprogram)
		return one_site(s, unit, root, die, ret);
	dwr_function_names_look(&s->names, unit, root, die);
	return NULL;
}

static bool has_call_sites(const struct dwr_abbrev_table *table)
{
	for (size_t i = 0; i < table->abbrev.len; i++)
		if (table->abbrev.data[i].tag == DW_TAG_call_site ||
		    table->abbrev.data[i].tag == DW_TAG_GNU_call_site)
			return true;
	return false;
}

static struct elfrw_err *scan_unit(struct scan *s, const struct dwr_unit *unit,
				   const struct dwr_unit_root *root,
				   const struct dwr_abbrev_table *table, struct dwr_call_sites *ret)
{
	struct dwr_cursor cur = dwr_cursor_at(s->secs, unit, table, false);
	struct dwr_die die;
	bool more;
	for (;;) {
		ELFRW_TRY(dwr_cursor_next(&cur, &die, &more));
		if (!more)
			return NULL;
		if (dwr_call_search_has(&s->search, die.abbrev->tag))
			ELFRW_TRY(dwr_call_search_look(&s->search, unit, root, &die, ret));
	}
}

static struct elfrw_err *scan_run(void *arg, size_t r)
{
	struct scan *s = arg;
	struct dwr_abbrev_table table = { 0 };
	struct dwr_want w;
	struct elfrw_err *err = NULL;
	struct dwr_unit_root root;
	unsigned attr = 0;
	bool known = false, has = false;
	for (size_t i = r * RUN; i < (r + 1) * RUN && i < s->units->len && !err; i++) {
		const struct dwr_unit *unit = &s->units->data[i];
		if (unit->sec != DWR_INFO)
			continue;
		/* Units may share a table of any size. */
		known = known && table.off == unit->abbrev_off;
		err = dwr_unit_read_root(s->secs, unit, &root);
		if (!err && attr != dwr_function_names_attr(root.language)) {
			attr = dwr_function_names_attr(root.language);
			dwr_call_search_want(&s->search, root.language, &w);
			table.used = known = false;
		}
		if (!err)
			err = dwr_unit_abbrev(s->secs, unit, &w, &table);
		if (!err && !known)
			has = s->search.names.n || has_call_sites(&table);
		known = true;
		if (!err && has)
			err = scan_unit(s, unit, &root, &table, &s->run[r]);
	}
	dwr_abbrev_deinit(&table);
	return err;
}

static int site_order(const void *a, const void *b)
{
	const struct dwr_call_site *x = a, *y = b;
	if (x->site != y->site)
		return x->site < y->site ? -1 : 1;
	if (x->origin != y->origin)
		return x->origin < y->origin ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

struct elfrw_err *dwr_call_found_add(struct dwr_call_found *found, struct dwr_call_sites *part)
{
	if (!part->len)
		return NULL;
	if (!VEC_RESERVE(&found->site, found->site.len + part->len))
		return &elfrw_err_nomem;
	memcpy(found->site.data + found->site.len, part->data, part->len * sizeof *part->data);
	found->site.len += part->len;
	VEC_FREE(part);
	return NULL;
}

struct elfrw_err *dwr_call_search_end(const struct dwr_call_search *s, struct dwr_call_found *found)
{
	found->die = calloc(s->names.n + 1, sizeof *found->die);
	if (!found->die)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < s->names.n; i++)
		found->die[i] = dwr_function_names_die(&s->names, i);
	if (found->site.len)
		qsort(found->site.data, found->site.len, sizeof *found->site.data, site_order);
	return NULL;
}

void dwr_call_found_deinit(struct dwr_call_found *found)
{
	VEC_FREE(&found->site);
	free(found->die);
	*found = (struct dwr_call_found){ 0 };
}

struct elfrw_err *dwr_call_sites_read(struct dwr_sections *secs, const struct dwr_units *units,
				      const struct dwr_call_wanted *wanted, unsigned threads,
				      struct dwr_call_found *ret)
{
	const size_t runs = (units->len + RUN - 1) / RUN;
	struct dwr_call_found found = { 0 };
	struct scan s = { .secs = secs, .units = units };
	ELFRW_TRY(dwr_call_search_init(&s.search, secs, wanted));
	s.run = calloc(runs + 1, sizeof *s.run);
	struct elfrw_err *err = s.run ? NULL : &elfrw_err_nomem;
	if (!err && (wanted->n || wanted->n_names))
		err = elfrw_parallel(threads, runs, scan_run, &s);
	for (size_t r = 0; s.run && r < runs; r++) {
		if (!err)
			err = dwr_call_found_add(&found, &s.run[r]);
		VEC_FREE(&s.run[r]);
	}
	free(s.run);
	if (!err)
		err = dwr_call_search_end(&s.search, &found);
	dwr_call_search_deinit(&s.search);
	if (err)
		dwr_call_found_deinit(&found);
	else
		*ret = found;
	return err;
}

struct elfrw_err *dwr_die_chain(struct dwr_sections *secs, const struct dwr_units *units,
				struct dwr_abbrev_table *table, uint64_t off,
				struct dwr_die_chain *ret)
{
	static const uint16_t vendor[] = { DW_AT_MIPS_linkage_name };
	struct dwr_want w = { .vendor = vendor, .n_vendor = 1 };
	DWR_WANT_NAME(&w, DW_AT_name);
	DWR_WANT_NAME(&w, DW_AT_linkage_name);
	DWR_WANT_NAME(&w, DW_AT_specification);
	DWR_WANT_NAME(&w, DW_AT_abstract_origin);
	const char *plain = NULL;
	*ret = (struct dwr_die_chain){ 0 };
	while (ret->n < DWR_CHAIN_MAX) {
		const struct dwr_unit *unit = dwr_units_find(units, DWR_INFO, off);
		if (!unit || off < unit->die)
			break;
		ret->die[ret->n++] = off;
		ELFRW_TRY(dwr_unit_abbrev(secs, unit, &w, table));
		struct dwr_cursor cur = dwr_cursor_at_die(secs, unit, table, true, off);
		struct dwr_die die;
		bool more;
		ELFRW_TRY(dwr_cursor_next(&cur, &die, &more));
		if (!more)
			break;
		/* Only indexed strings need the root. */
		struct dwr_unit_root root;
		ELFRW_TRY(dwr_unit_read_root(secs, unit, &root));
		const struct dwr_value *v = dwr_die_value(&die, DW_AT_linkage_name);
		if (!v)
			v = dwr_die_value(&die, DW_AT_MIPS_linkage_name);
		if (v && !ret->name)
			ret->name = dwr_value_string(secs, unit, &root, v);
		if ((v = dwr_die_value(&die, DW_AT_name)) && !plain)
			plain = dwr_value_string(secs, unit, &root, v);
		v = dwr_die_value(&die, DW_AT_abstract_origin);
		if (!v)
			v = dwr_die_value(&die, DW_AT_specification);
		if (!v || !reference(unit, v, &off))
			break;
	}
	if (!ret->name)
		ret->name = plain;
	return NULL;
}
