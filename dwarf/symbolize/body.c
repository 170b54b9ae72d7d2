/* body.c: the inlined copies in one function.
 *
 * This is the third level of a look-up.  A walk over the function's entries answers for some
 * addresses at once: those that are known to be asked for next (dwr_sym_will_ask()).  It keeps only
 * the copies around these.  A function that is asked about again and again is laid out flat.  What
 * the last functions answered is cached. */
#include "dwarf/symbolize/state.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

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

/* A walk over one function: for the addresses in body->answer or, if there are none, to lay it
 * out. */
struct walk {
	struct dwr_sym *sym;
	struct dwr_sym_body *body;
	bool some;  /* only entries at the addresses: the insides of all others are skipped */
	bool noted; /* ranges come from the overlay */
	struct overlay ov;
	struct dwr_spans ranges;      /* of one entry; owned */
	VEC(struct open_entry) open;  /* owned */
	uint32_t best;                /* for addresses: the last node that holds one */
	struct dwr_sym_stated stated; /* laid out for good: lists still to be read; owned */
	size_t n_ranges;              /* for addresses: read so far */
	bool many;                    /* ... too many, so the walk was given up */
};

/* The most ranges read in a walk for addresses: many entries may share one list. */
#define RANGES_BEFORE_FLAT 10000

/* The values of an entry. */
struct values {
	struct dwr_sym_extent extent;
	const struct dwr_value *sibling;
};

static inline struct values values_of(const struct dwr_die *die)
{
	struct values ret = { 0 };
	for (unsigned i = die->n_values; i--;) { /* of several with one name the first counts */
		const struct dwr_value *v = &die->value[i];
		switch (v->name) {
		case DW_AT_low_pc: ret.extent.low = v; break;
		case DW_AT_high_pc: ret.extent.high = v; break;
		case DW_AT_ranges: ret.extent.ranges = v; break;
		case DW_AT_sibling: ret.sibling = v; break;
		}
	}
	return ret;
}

/* The entry that the current one is inside of, or NULL. */
static inline const struct open_entry *around(const struct walk *w)
{
	return w->open.len ? &w->open.data[w->open.len - 1] : NULL;
}

/* Opens DIE, which has the node NODE of its own, or (not OWN) is inside of that. */
static struct elfrw_err *open_entry(struct walk *w, const struct dwr_die *die,
				    const struct dwr_value *sibling, uint32_t node, bool own)
{
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

/* In a walk for addresses, a copy that neither holds one nor has one inside that does is dropped
 * again. */
static inline void close_entry(struct walk *w)
{
	const struct open_entry *o = &w->open.data[--w->open.len];
	if (w->some && o->own && o->node > w->best)
		w->body->node.len = o->node;
}

static struct elfrw_err *add_node(struct walk *w, const struct dwr_die *die,
				  const struct dwr_value *sibling)
{
	struct dwr_sym_nodes *nodes = &w->body->node;
	uint32_t id = (uint32_t)nodes->len;
	struct dwr_sym_node *node = VEC_PUSH(nodes);
	if (!node)
		return &elfrw_err_nomem;
	*node = (struct dwr_sym_node){ die->off, around(w) ? around(w)->node : 0 };
	return open_entry(w, die, sibling, id, true);
}

static bool is_block(unsigned tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_try_block ||
	       tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt;
}

/* Answers for the addresses in S with the node that comes next. */
static void hold(struct walk *w, const struct dwr_span *s)
{
	struct dwr_sym_answers *a = &w->body->answer;
	if (s->hi <= a->data[0].address || s->lo > a->data[a->len - 1].address)
		return;
	size_t i = LOWER_BOUND(0, a->len, mid, a->data[mid].address < s->lo);
	for (; i < a->len && a->data[i].address < s->hi; i++)
		a->data[i].node = w->best = (uint32_t)w->body->node.len;
}

/* What the ranges of a copy say about the addresses. */
enum held {
	HELD_SOME,
	HELD_NONE,
	HELD_UNKNOWN, /* none, but a copy inside of it may hold some */
};

/* Code that was inlined into a copy lies in the code of that copy.  But of a copy with code in
 * several places GCC says nothing, or only a part, if it keeps to DWARF 2 (-gstrict-dwarf), which
 * has no DW_AT_ranges. */
static bool hold_insides(const struct walk *w)
{
	return !w->noted && w->body->unit->u.params.version > 2;
}

/* Answers for the addresses in the copy DIE. */
static struct elfrw_err *hold_copy(struct walk *w, const struct dwr_die *die,
				   const struct dwr_sym_extent *extent, enum held *ret)
{
	struct dwr_span span;
	const uint32_t next = (uint32_t)w->body->node.len;
	bool code;
	if (!w->noted && dwr_sym_low_high(w->body->unit, extent, &span)) {
		hold(w, &span);
		code = span.lo < span.hi;
		w->n_ranges++;
	} else {
		w->ranges.len = 0;
		ELFRW_TRY(w->noted ? overlay_ranges(&w->ov, die->off, 0, &w->ranges)
				   : dwr_sym_ranges(w->sym, w->body->unit, extent, 0, &w->ranges));
		for (size_t i = 0; i < w->ranges.len; i++)
			hold(w, &w->ranges.data[i]);
		code = w->ranges.len;
		w->n_ranges += w->ranges.len;
	}
	*ret = w->best == next           ? HELD_SOME /* NEXT is not 0: that is the function's own */
	       : code && hold_insides(w) ? HELD_NONE
					 : HELD_UNKNOWN;
	return NULL;
}

/* Adds the ranges of DIE to the body's. */
static struct elfrw_err *lay_out(struct walk *w, const struct dwr_die *die,
				 const struct dwr_sym_extent *extent)
{
	struct dwr_sym_body *body = w->body;
	const uint64_t id = body->node.len;
	return w->noted ? overlay_ranges(&w->ov, die->off, id, &body->spans)
			: dwr_sym_state(w->sym, body->unit, extent, id, &w->stated, &body->spans);
}

/* Visits one entry of the function's insides. */
static struct elfrw_err *visit(struct walk *w, struct dwr_cursor *cur, const struct dwr_die *die)
{
	const unsigned tag = die->abbrev->tag;
	const bool function = die->off == w->body->die;
	const struct values v = values_of(die);
	while (w->open.len && (around(w)->depth >= die->depth || around(w)->end <= die->off))
		close_entry(w);
	if (!function && tag != DW_TAG_inlined_subroutine) {
		if (w->some && !is_block(tag) &&
		    dwr_sym_step_over(w->body->unit, cur, die, v.sibling))
			return NULL;
		return open_entry(w, die, v.sibling, around(w) ? around(w)->node : 0, false);
	}
	enum held held = HELD_SOME;
	if (!w->some)
		ELFRW_TRY(lay_out(w, die, &v.extent));
	else if (!function)
		ELFRW_TRY(hold_copy(w, die, &v.extent, &held));
	if (held == HELD_NONE && dwr_sym_step_over(w->body->unit, cur, die, v.sibling))
		return NULL;
	return held == HELD_SOME || die->abbrev->children ? add_node(w, die, v.sibling) : NULL;
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

/* Answers for the addresses in body->answer or, if there are none, lays the function out. */
static struct elfrw_err *fill_body(struct dwr_sym *sym, struct dwr_sym_body *body)
{
	struct walk w = { .sym = sym, .body = body, .some = body->answer.len };
	body->spans.len = body->node.len = 0;
	body->whole = body->flat = false;
	struct elfrw_err *err = walk_body(&w);
	if (!err && !w.some)
		err = dwr_sym_read_stated(sym, &w.stated, false, &body->spans);
	VEC_FREE(&w.ranges);
	VEC_FREE(&w.open);
	VEC_FREE(&w.stated);
	body->many = w.many;
	body->whole = !err && !w.some;
	if (w.many)
		body->answer.len = 0;
	return err; /* the answers so far still count */
}

static struct elfrw_err *fill_whole(struct dwr_sym *sym, struct dwr_sym_body *body)
{
	body->answer.len = 0;
	return fill_body(sym, body);
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
		body->walks = body->searched = 0;
		body->many = false;
		body->whole = body->flat = false;
		body->answer.len = 0;
	}
	return body;
}

struct elfrw_err *dwr_sym_body_of(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  uint64_t die, uint32_t member, const struct dwr_sym_body **ret)
{
	struct dwr_sym_body *body = slot_for(sym, unit, die, member);
	*ret = body;
	struct elfrw_err *err = body->whole ? NULL : fill_whole(sym, body);
	return dwr_sym_warn(sym, err ? err : lay_flat(body));
}

/* Puts ADDRESS into body->answer, and those behind it that will be asked for in the same stretch of
 * the function. */
static struct elfrw_err *take_ahead(const struct dwr_sym *sym, struct dwr_sym_body *body,
				    uint64_t address)
{
	const struct dwr_span *s =
		body->member == UINT32_MAX ? dwr_spans_find(&body->unit->funcs, address) : NULL;
	const uint64_t *ahead = sym->ahead;
	size_t from = sym->n_ahead, to = from;
	if (s && s->id == body->die) {
		from = LOWER_BOUND(0, sym->n_ahead, mid, ahead[mid] <= address);
		to = LOWER_BOUND(from, sym->n_ahead, mid, ahead[mid] < s->hi);
	}
	struct dwr_sym_answers *a = &body->answer;
	a->len = 0;
	if (!VEC_RESERVE(a, 1 + to - from))
		return &elfrw_err_nomem;
	a->data[a->len++] = (struct dwr_sym_answer){ .address = address };
	for (size_t i = from; i < to; i++)
		a->data[a->len++] = (struct dwr_sym_answer){ .address = ahead[i] };
	return NULL;
}

/* The answer for ADDRESS that BODY has, or NULL. */
static const struct dwr_sym_answer *answer_for(const struct dwr_sym_body *body, uint64_t address)
{
	const struct dwr_sym_answers *a = &body->answer;
	size_t i = LOWER_BOUND(0, a->len, mid, a->data[mid].address < address);
	return i < a->len && a->data[i].address == address ? &a->data[i] : NULL;
}

/* Walks over a function before it is laid out, which costs as much as a few of them. */
#define WALKS_BEFORE_WHOLE 3

struct elfrw_err *dwr_sym_body_at(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				  uint64_t die, uint32_t member, uint64_t address,
				  struct dwr_sym_inside *ret)
{
	struct dwr_sym_body *body = slot_for(sym, unit, die, member);
	const struct dwr_sym_answer *answer = answer_for(body, address);
	struct elfrw_err *err = NULL;
	*ret = (struct dwr_sym_inside){ .body = body };
	if (!answer && !body->whole && !body->many && body->walks < WALKS_BEFORE_WHOLE) {
		body->walks++;
		err = take_ahead(sym, body, address);
		if (!err)
			err = fill_body(sym, body);
		answer = answer_for(body, address);
	}
	if (answer)
		ret->node = answer->node;
	else if (!err) {
		if (!body->whole)
			err = fill_whole(sym, body);
		if (!err)
			err = node_at(body, address, &ret->node);
	}
	return dwr_sym_warn(sym, err);
}
