/* func.c: the functions of a unit, and the inlined copies in one function.
 *
 * These are the second and third level of a look-up.  A first walk over a unit skips the insides of
 * functions and of types if DW_AT_sibling allows it.  Only if an address is in none of the
 * functions found, the unit is walked again in full, for the nested functions of some languages.
 * The inlined copies of a function are laid out flat only for functions in question; the tables of
 * the last ones are cached. */
#include "dwarf/symbolize/state.h"
#include <dwarf.h>

/* Skips the insides of DIE, if it says where they end. */
static bool step_over(const struct dwr_sym_unit *unit, struct dwr_cursor *cur,
		      const struct dwr_die *die)
{
	const struct dwr_value *sibling = dwr_die_value(die, DW_AT_sibling);
	uint64_t to = sibling && die->abbrev->children && die->depth
			      ? dwr_sym_local_ref(unit, sibling)
			      : UINT64_MAX;
	if (to >= unit->u.end || to <= (uint64_t)(cur->pos - cur->data))
		return false;
	cur->pos = cur->data + to;
	cur->depth = die->depth;
	return true;
}

static struct dwr_sym_extent extent_of(const struct dwr_die *die)
{
	return (struct dwr_sym_extent){ dwr_die_value(die, DW_AT_low_pc),
					dwr_die_value(die, DW_AT_high_pc),
					dwr_die_value(die, DW_AT_ranges) };
}

/* Is TAG that of a type, whose insides are declarations only, with rare exceptions? */
static bool is_type(uint32_t tag)
{
	return tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
	       tag == DW_TAG_union_type || tag == DW_TAG_enumeration_type ||
	       tag == DW_TAG_subroutine_type || tag == DW_TAG_array_type;
}

struct elfrw_err *dwr_sym_functions(struct dwr_sym *sym, struct dwr_sym_unit *unit,
				    enum dwr_sym_funcs which)
{
	const struct dwr_abbrev_table *table;
	struct dwr_die die;
	bool more, skipped = false;
	if (unit->funcs_read >= which)
		return NULL;
	unit->funcs_read = DWR_FUNCS_ALL;
	unit->funcs.len = 0;
	struct elfrw_err *err = dwr_sym_abbrev(sym, unit, &table);
	if (err)
		return dwr_sym_warn(sym, err);
	struct dwr_cursor cur = dwr_cursor_at(&unit->file->secs, &unit->u, table, false);
	struct dwr_sym_stated stated = { 0 };
	while (!err) {
		err = dwr_cursor_next(&cur, &die, &more);
		if (err) { /* the results so far still count */
			err = dwr_sym_warn(sym, err);
			break;
		}
		if (!more)
			break;
		bool function = die.abbrev->tag == DW_TAG_subprogram;
		if (function && (die.n_values > 1 || die.value[0].name != DW_AT_sibling)) {
			const struct dwr_sym_extent extent = extent_of(&die);
			if (extent.low || extent.ranges)
				err = dwr_sym_state(sym, unit, &extent, die.off, &stated,
						    &unit->funcs);
		}
		if (function ? which < DWR_FUNCS_ALL
			     : which < DWR_FUNCS_OUTER && is_type(die.abbrev->tag))
			skipped |= step_over(unit, &cur, &die);
	}
	if (skipped)
		unit->funcs_read = which;
	if (!err)
		err = dwr_sym_read_stated(sym, &stated, false, &unit->funcs);
	VEC_FREE(&stated);
	return err ? err : dwr_spans_flatten(&unit->funcs, false);
}

struct elfrw_err *dwr_sym_function(struct dwr_sym *sym, struct dwr_sym_unit *unit, uint64_t address,
				   uint64_t *die, bool *found)
{
	const struct dwr_span *s = NULL;
	static const enum dwr_sym_funcs which[] = { DWR_FUNCS_FEW, DWR_FUNCS_ALL };
	for (unsigned i = 0; i < 2 && !s; i++) {
		ELFRW_TRY(dwr_sym_functions(sym, unit, which[i]));
		s = dwr_spans_find(&unit->funcs, address);
	}
	*found = s != NULL;
	if (s)
		*die = s->id;
	return NULL;
}

/* The walk through a member's ranges in the note, in parallel to the walk through its DIEs. */
struct overlay {
	struct dwr_icfold_walk walk;
	struct dwr_icfold_entry entry;
	bool more;
	uint32_t unit; /* of the map: ranges in other units are not of this body */
	uint64_t body; /* where that unit's code is */
};

static struct elfrw_err *overlay_begin(struct dwr_sym *sym, uint32_t member, uint64_t die,
				       struct overlay *ov)
{
	const struct dwr_icfold_member *m = &sym->note.member[member];
	for (uint32_t i = 0; i < m->n_dies; i++) {
		const struct dwr_icfold_die *d = &sym->note.dies[m->die + i];
		if (d->die != die || d->overlay == UINT64_MAX)
			continue;
		ov->walk = dwr_icfold_overlay_at(&sym->note, d);
		ov->unit = m->unit;
		ov->body = sym->note.map.unit[m->unit].body;
		return dwr_icfold_overlay_next(&ov->walk, &ov->entry, &ov->more);
	}
	return NULL;
}

/* The ranges of the DIE at OFF as ID; DIEs are asked for in ascending order. */
static struct elfrw_err *overlay_ranges(struct overlay *ov, uint64_t off, uint64_t id,
					struct dwr_spans *spans)
{
	while (ov->more && ov->entry.die < off)
		ELFRW_TRY(dwr_icfold_overlay_next(&ov->walk, &ov->entry, &ov->more));
	struct dwr_note_range r;
	if (!ov->more || ov->entry.die != off)
		return NULL;
	while (dwr_icfold_range_next(&ov->entry, &r))
		if (r.unit == ov->unit)
			ELFRW_TRY(dwr_spans_add(spans, ov->body + r.start,
						ov->body + r.start + r.len, id));
	return NULL;
}

/* An entry around the current one.  The walk does not see entries with neither code nor a sibling.
 * So depth alone does not show that an entry has ended; its end, or that of one around it, does. */
struct open_entry {
	uint64_t end;
	uint32_t depth, node; /* its own node, or that of the entry around it */
	bool own;
};

/* A walk over one function. */
struct walk {
	struct dwr_sym *sym;
	struct dwr_sym_body *body;
	bool one; /* only entries at `address`: the insides of all others are skipped */
	uint64_t address;
	bool noted; /* ranges come from the overlay */
	struct overlay ov;
	struct dwr_spans ranges;      /* of one entry; owned */
	VEC(struct open_entry) open;  /* owned */
	uint32_t best;                /* the last node that holds the address */
	struct dwr_sym_stated stated; /* laid out for good: lists still to be read; owned */
	size_t n_ranges;              /* for one address: read so far */
	bool many;                    /* ... too many, so the walk was given up */
};

/* The most ranges read for one address: many entries may share one list. */
#define RANGES_BEFORE_FLAT 10000

/* The ranges of DIE in w->ranges (or, laid out for good, in the body's). */
static struct elfrw_err *ranges_of(struct walk *w, const struct dwr_die *die, uint64_t id,
				   struct dwr_spans *spans)
{
	if (w->noted)
		return overlay_ranges(&w->ov, die->off, id, spans);
	const struct dwr_sym_extent extent = extent_of(die);
	return w->one ? dwr_sym_ranges(w->sym, w->body->unit, &extent, id, spans)
		      : dwr_sym_state(w->sym, w->body->unit, &extent, id, &w->stated, spans);
}

/* The entry that DIE is inside of, or NULL. */
static const struct open_entry *around(const struct walk *w)
{
	return w->open.len ? &w->open.data[w->open.len - 1] : NULL;
}

static struct elfrw_err *open_entry(struct walk *w, const struct dwr_die *die, uint32_t node,
				    bool own)
{
	const struct dwr_value *sibling = dwr_die_value(die, DW_AT_sibling);
	uint64_t end =
		sibling && die->depth ? dwr_sym_local_ref(w->body->unit, sibling) : UINT64_MAX;
	if (!die->abbrev->children)
		return NULL;
	if (end == UINT64_MAX || end <= die->off)
		end = around(w) ? around(w)->end : UINT64_MAX;
	struct open_entry *o = VEC_PUSH(&w->open);
	if (!o)
		return &elfrw_err_nomem;
	*o = (struct open_entry){ end, die->depth, node, own };
	return NULL;
}

/* For one address a copy that neither holds it nor has one inside that does is dropped again. */
static void close_entry(struct walk *w)
{
	const struct open_entry *o = &w->open.data[--w->open.len];
	if (w->one && o->own && o->node > w->best)
		w->body->node.len = o->node;
}

static struct elfrw_err *add_node(struct walk *w, const struct dwr_die *die)
{
	struct dwr_sym_nodes *nodes = &w->body->node;
	uint32_t id = (uint32_t)nodes->len;
	struct dwr_sym_node *node = VEC_PUSH(nodes);
	if (!node)
		return &elfrw_err_nomem;
	*node = (struct dwr_sym_node){ die->off, around(w) ? around(w)->node : 0 };
	return open_entry(w, die, id, true);
}

static bool is_block(unsigned tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

/* Visits one entry of the function's insides. */
static struct elfrw_err *visit(struct walk *w, struct dwr_cursor *cur, const struct dwr_die *die)
{
	unsigned tag = die->abbrev->tag;
	bool function = die->off == w->body->die;
	while (w->open.len && (around(w)->depth >= die->depth || around(w)->end <= die->off))
		close_entry(w);
	if (!function && is_block(tag))
		return open_entry(w, die, around(w) ? around(w)->node : 0, false);
	if (!function && tag != DW_TAG_inlined_subroutine) {
		if (w->one && step_over(w->body->unit, cur, die))
			return NULL;
		return open_entry(w, die, around(w) ? around(w)->node : 0, false);
	}
	if (!w->one) {
		ELFRW_TRY(ranges_of(w, die, w->body->node.len, &w->body->spans));
		return add_node(w, die);
	}
	if (function)
		return add_node(w, die);
	bool holds = false;
	w->ranges.len = 0;
	ELFRW_TRY(ranges_of(w, die, 0, &w->ranges));
	w->n_ranges += w->ranges.len;
	for (size_t i = 0; i < w->ranges.len && !holds; i++)
		holds = w->ranges.data[i].lo <= w->address && w->address < w->ranges.data[i].hi;
	if (holds)
		w->best = (uint32_t)w->body->node.len;
	else if (!die->abbrev->children)
		return NULL;
	/* A copy inside of it may hold the address all the same: of one with code in several places
	 * GCC says nothing, or only a part, if it keeps to DWARF 2 (-gstrict-dwarf), which has no
	 * DW_AT_ranges. */
	return add_node(w, die);
}

static struct elfrw_err *walk_body(struct walk *w)
{
	const struct dwr_sym_unit *unit = w->body->unit;
	const struct dwr_abbrev_table *table;
	struct dwr_die die;
	bool more;
	uint32_t nested = UINT32_MAX; /* depth of a function inside of this one, which is skipped */
	if (w->body->member != UINT32_MAX) {
		ELFRW_TRY(overlay_begin(w->sym, w->body->member, w->body->die, &w->ov));
		w->noted = w->ov.more;
	}
	ELFRW_TRY(dwr_sym_abbrev(w->sym, unit, &table));
	struct dwr_cursor cur =
		dwr_cursor_at_die(&unit->file->secs, &unit->u, table, false, w->body->die);
	for (;;) {
		ELFRW_TRY(dwr_cursor_next(&cur, &die, &more));
		if (!more || w->many)
			return NULL;
		if (die.depth > nested)
			continue;
		nested = UINT32_MAX;
		if (die.abbrev->tag == DW_TAG_subprogram && die.off != w->body->die)
			nested = die.depth;
		else
			ELFRW_TRY(visit(w, &cur, &die));
		w->many = w->n_ranges > RANGES_BEFORE_FLAT;
	}
}

/* Look-ups in one function before it is laid out flat, which costs as much as about ten
 * look-ups. */
#define LOOKUPS_BEFORE_FLAT 3

/* ONE: visits only ADDRESS; body->asked shows afterwards if that was too much. */
static struct elfrw_err *fill_body(struct dwr_sym *sym, struct dwr_sym_body *body, bool one,
				   uint64_t address, uint32_t *node)
{
	struct walk w = { .sym = sym, .body = body, .one = one, .address = address };
	body->spans.len = body->node.len = 0;
	body->whole = body->flat = false;
	struct elfrw_err *err = walk_body(&w);
	free(w.ranges.data);
	free(w.open.data);
	if (!err && w.many) {
		body->asked = LOOKUPS_BEFORE_FLAT + 1;
		return NULL;
	}
	if (!err && !one)
		err = dwr_sym_read_stated(sym, &w.stated, false, &body->spans);
	VEC_FREE(&w.stated);
	body->whole = !err && !one;
	*node = w.best;
	return err;
}

static struct elfrw_err *lay_flat(struct dwr_sym_body *body)
{
	struct elfrw_err *err = body->flat ? NULL : dwr_spans_flatten(&body->spans, false);
	body->whole = body->flat = !err;
	VEC_TRIM(&body->spans);
	VEC_TRIM(&body->node);
	return err;
}

/* Searches for addresses in spans that are not flat yet: making them flat costs as much as about so
 * many. */
#define SEARCHES_BEFORE_FLAT 32

/* The node of a whole body that holds ADDRESS: of several the last. */
static struct elfrw_err *node_at(struct dwr_sym_body *body, uint64_t address, uint32_t *node)
{
	if (!body->flat && ++body->searched > SEARCHES_BEFORE_FLAT)
		ELFRW_TRY(lay_flat(body));
	*node = 0;
	if (body->flat) {
		const struct dwr_span *s = dwr_spans_find(&body->spans, address);
		*node = s ? (uint32_t)s->id : 0;
		return NULL;
	}
	for (size_t i = 0; i < body->spans.len; i++) {
		const struct dwr_span *s = &body->spans.data[i];
		if (address - s->lo < s->hi - s->lo && s->id > *node)
			*node = (uint32_t)s->id;
	}
	return NULL;
}

/* The place in the cache for a function, emptied if it held another one. */
static struct dwr_sym_body *slot_for(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				     uint64_t die, uint32_t member)
{
	uint64_t hash = (die + member) * UINT64_C(0x9e3779b97f4a7c15) >> 40;
	struct dwr_sym_body *body = &sym->body[hash % sym->n_bodies];
	if (body->unit != unit || body->die != die || body->member != member) {
		body->unit = unit;
		body->die = die;
		body->member = member;
		body->asked = body->searched = 0;
		body->whole = body->flat = false;
	}
	return body;
}

struct elfrw_err *dwr_sym_body_of(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  uint64_t die, uint32_t member, const struct dwr_sym_body **ret)
{
	struct dwr_sym_body *body = slot_for(sym, unit, die, member);
	uint32_t node;
	*ret = body;
	struct elfrw_err *err = body->whole ? NULL : fill_body(sym, body, false, 0, &node);
	return dwr_sym_warn(sym, err ? err : lay_flat(body));
}

/* Is a later question about the function DIE, too? */
static bool asked_later(const struct dwr_sym *sym, const struct dwr_sym_unit *unit, uint64_t die)
{
	const struct dwr_span *s =
		sym->later == UINT64_MAX ? NULL : dwr_spans_find(&unit->funcs, sym->later);
	return s && s->id == die;
}

struct elfrw_err *dwr_sym_body_at(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  uint64_t die, uint32_t member, uint64_t address,
				  struct dwr_sym_inside *ret)
{
	struct dwr_sym_body *body = slot_for(sym, unit, die, member);
	*ret = (struct dwr_sym_inside){ .body = body };
	if (!body->whole) {
		bool one = ++body->asked <= LOOKUPS_BEFORE_FLAT && !asked_later(sym, unit, die);
		struct elfrw_err *err = fill_body(sym, body, one, address, &ret->node);
		if (!err && one && body->asked == LOOKUPS_BEFORE_FLAT + 1) {
			one = false;
			err = fill_body(sym, body, one, address, &ret->node);
		}
		if (err || one)
			return dwr_sym_warn(sym, err);
	}
	return dwr_sym_warn(sym, node_at(body, address, &ret->node));
}
