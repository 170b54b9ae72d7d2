/* info.c: addresses in the DIEs of one unit.
 *
 * One walk, in place: the size of no attribute changes, so that no offset into .debug_info does.
 * Whether something was folded is asked of each address on its own; no DIE needs to know in which
 * function it lies.  That holds for inlined copies, cold parts and DIEs that are there twice.
 *
 * One owner per address: the range of a DIE that lay in a folded unit becomes empty, its low_pc
 * says where the code is now, and what it lost is collected for the overlay.  Return addresses are
 * ends: the call may be the last instruction of its unit. */
#include "dwarf/rewrite/state.h"
#include "dwarf/expr.h"
#include <dwarf.h>
#include <search.h>
#include <stdlib.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif
#ifndef DW_FORM_LLVM_addrx_offset
#define DW_FORM_LLVM_addrx_offset 0x2001
#endif

#define MAX_NESTING 8

/* What an address is to the attribute that holds it: a place, one past a place, a value that the
 * program sees. */
enum use { USE_POINT, USE_END, USE_POINTER };

struct scan {
	struct dwr_rw *rw;
	const struct dwr_unit *unit;
	struct dwr_rw_unit *ru;
	const char *section;
	uint8_t *out; /* the private copy of the section */
	struct dwr_list_cu cu;
	struct dwr_pieces pieces;
	struct dwr_list list;
	uint64_t expr_pos; /* of the expression that is being mapped */
	/* The functions around the DIE: the unit of the map at their start and the DIE's depth. */
	struct {
		uint32_t unit, depth;
	} function[MAX_NESTING];
	unsigned n_functions;
	void *noted; /* struct noted by list: a tree, balanced whatever the file has */
};

/* Any number of functions may state one list: what it says is kept.  The list begins at VALUE. */
struct noted {
	uint64_t value;
	uint8_t list;   /* enum dwr_list_kind */
	uint64_t begin; /* of the first range */
	VEC(uint64_t)
	start; /* where ranges begin that are not empty, and a unit that shares its code does */
};

static int noted_order(const void *pa, const void *pb)
{
	const struct noted *a = pa, *b = pb;
	if (a->list != b->list)
		return a->list < b->list ? -1 : 1;
	return a->value < b->value ? -1 : a->value > b->value;
}

static void free_noted(void *p)
{
	struct noted *n = p;
	VEC_FREE(&n->start);
	free(n);
}

void dwr_rw_info_want(struct dwr_want *want)
{
	static const uint16_t vendor[] = { DW_AT_GNU_locviews, DW_AT_GNU_macros,
					   DW_AT_LLVM_stmt_sequence, DW_AT_GNU_addr_base };
	static const uint8_t name[] = {
		DW_AT_low_pc,
		DW_AT_high_pc,
		DW_AT_ranges,
		DW_AT_start_scope,
		DW_AT_stmt_list,
		DW_AT_macros,
		DW_AT_rnglists_base,
		DW_AT_loclists_base,
		DW_AT_addr_base,
		/* these may be location lists */
		DW_AT_location,
		DW_AT_string_length,
		DW_AT_return_addr,
		DW_AT_frame_base,
		DW_AT_segment,
		DW_AT_static_link,
		DW_AT_use_location,
		DW_AT_vtable_elem_location,
		DW_AT_data_member_location,
	};
	*want = (struct dwr_want){ .vendor = vendor,
				   .n_vendor = sizeof vendor / sizeof *vendor,
				   .addresses = true,
				   .expressions = true,
				   .lists = true };
	for (unsigned i = 0; i < sizeof name; i++)
		DWR_WANT_NAME(want, name[i]);
}

bool dwr_put_uleb(uint8_t *p, uint64_t size, uint64_t value)
{
	if (!size || (size < 10 && value >> (7 * size)))
		return false;
	for (uint64_t i = 0; i < size; i++, value >>= 7)
		p[i] = (uint8_t)((value & 0x7f) | (i + 1 < size ? 0x80 : 0));
	return true;
}

bool dwr_put_sleb(uint8_t *p, uint64_t size, int64_t value)
{
	if (!size || (size < 10 && value >> (7 * size - 1) != 0 && value >> (7 * size - 1) != -1))
		return false;
	for (uint64_t i = 0; i < size; i++, value >>= 7)
		p[i] = (uint8_t)((value & 0x7f) | (i + 1 < size ? 0x80 : 0));
	return true;
}

static struct elfrw_err *no_room(const struct scan *s, const struct dwr_value *v, uint64_t value)
{
	return elfrw_error_at(s->section, v->pos,
			      "new value 0x%llx does not fit into attribute 0x%x (form 0x%x)",
			      (unsigned long long)value, v->name, v->form);
}

static bool is_live(const struct scan *s, uint64_t va)
{
	return elfrw_addrmap_covers(s->rw->map, va);
}

static uint64_t mapped(const struct scan *s, uint64_t va, enum use use)
{
	uint64_t ret;
	/* An end is of the code before it: something else may begin there. */
	if (!is_live(s, use == USE_END && va ? va - 1 : va))
		return va;
	if (use == USE_END)
		elfrw_addrmap_end(s->rw->map, va, &ret);
	else if (use == USE_POINTER)
		elfrw_addrmap_pointer(s->rw->map, va, &ret);
	else
		elfrw_addrmap_point(s->rw->map, va, &ret);
	return ret;
}

/* The value of an address attribute in the input. */
static struct elfrw_err *get_address(const struct scan *s, const struct dwr_value *v, uint64_t *ret)
{
	if (dwr_value_address(&s->rw->secs, s->unit, &s->ru->root, v, ret))
		return NULL;
	return elfrw_error_at(s->section, v->pos, "address index 0x%llx is not inside .debug_addr",
			      (unsigned long long)v->u);
}

/* Where the address of an indexed form is in .debug_addr; get_address() has succeeded. */
static uint64_t slot_off(const struct scan *s, const struct dwr_value *v)
{
	uint64_t base = s->ru->root.addr_base;
	if (base == UINT64_MAX)
		base = v->form == DW_FORM_GNU_addr_index  ? 0
		       : s->unit->params.offset_size == 8 ? 16
							  : 8;
	return base + v->u * s->unit->params.address_size;
}

static struct elfrw_err *want_slot(struct scan *s, uint64_t off, uint64_t new, uint64_t pos)
{
	struct dwr_slot *slot = VEC_PUSH(&s->ru->slot);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct dwr_slot){ off, new, pos };
	return NULL;
}

/* Writes the new value of an address attribute. */
static struct elfrw_err *put_address(struct scan *s, const struct dwr_value *v, uint64_t new)
{
	if (v->form == DW_FORM_addr) {
		if (v->size < 8 && new >> (8 * v->size))
			return no_room(s, v, new);
		elfrw_put_le(s->out + v->pos, new, (unsigned)v->size);
		return NULL;
	}
	uint64_t off = slot_off(s, v);
	if (v->form != DW_FORM_LLVM_addrx_offset)
		return want_slot(s, off, new, v->pos);
	uint64_t base =
		elfrw_get_le(s->rw->secs.sec[DWR_ADDR].data + off, s->unit->params.address_size);
	base = mapped(s, base, USE_POINT);
	if (new < base || new - base > UINT32_MAX)
		return no_room(s, v, new);
	elfrw_put32(s->out + v->pos + v->size - 4, (uint32_t)(new - base));
	return want_slot(s, off, base, v->pos);
}

static struct elfrw_err *map_address(struct scan *s, const struct dwr_value *v, enum use use)
{
	uint64_t va;
	ELFRW_TRY(get_address(s, v, &va));
	return put_address(s, v, mapped(s, va, use));
}

/* Writes a number in a constant form. */
static struct elfrw_err *put_const(struct scan *s, const struct dwr_die *die,
				   const struct dwr_value *v, uint64_t value)
{
	if (value == v->u)
		return NULL;
	uint8_t *p = s->out + v->pos;
	switch (v->form) {
	case DW_FORM_udata: return dwr_put_uleb(p, v->size, value) ? NULL : no_room(s, v, value);
	case DW_FORM_sdata:
		return dwr_put_sleb(p, v->size, (int64_t)value) ? NULL : no_room(s, v, value);
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
		if (v->size < 8 && value >> (8 * v->size))
			return no_room(s, v, value);
		elfrw_put_le(p, value, (unsigned)v->size);
		return NULL;
	case DW_FORM_data16: elfrw_put64(p, value); return NULL;
	case DW_FORM_implicit_const: {
		struct dwr_abbrev_edit *e = VEC_PUSH(&s->ru->edit);
		if (!e)
			return &elfrw_err_nomem;
		*e = (struct dwr_abbrev_edit){ .die = die->off,
					       .code = die->abbrev->code,
					       .attr = v->attr - die->abbrev->attr,
					       .kind = DWR_EDIT_IMPLICIT,
					       .value = (int64_t)value };
		return NULL;
	}
	}
	return elfrw_error_at(s->section, v->pos, "attribute 0x%x in form 0x%x is not understood",
			      v->name, v->form);
}

/* Has the function that begins at LOW more than one name now? */
static bool is_shared(const struct elfrw_addrmap *map, uint64_t low, uint32_t *u)
{
	*u = elfrw_addrmap_find(map, low);
	return *u != ELFRW_NO_UNIT && map->unit[*u].old == low &&
	       (map->unit[*u].flags & (ELFRW_UNIT_KEPT | ELFRW_UNIT_FOLDED));
}

static struct elfrw_err *note_die(struct scan *s, const struct dwr_die *die, uint64_t low)
{
	const struct elfrw_addrmap *map = s->rw->map;
	uint32_t u;
	if (!is_shared(map, low, &u))
		return NULL;
	struct dwr_note_die *d = VEC_PUSH(&s->ru->die);
	if (!d)
		return &elfrw_err_nomem;
	*d = (struct dwr_note_die){ u, die->off };
	if (map->unit[u].flags & ELFRW_UNIT_FOLDED)
		s->ru->folded_dies++;
	if (map->unit[u].flags & ELFRW_UNIT_THUNK)
		s->ru->thunk_dies++;
	return NULL;
}

static struct elfrw_err *put_range(struct scan *s, const struct dwr_die *die,
				   const struct dwr_value *low, const struct dwr_value *high,
				   uint64_t begin, uint64_t end)
{
	ELFRW_TRY(put_address(s, low, begin));
	if (!dwr_form_is_address(high->form))
		return put_const(s, die, high, end - begin);
	return put_address(s, high, end);
}

/* Live units keep their order: nothing foreign lies between two of one compilation unit, at END and
 * at BEGIN in the output, but the run of thunks, where a gap before pinned code was the only room
 * for it. */
static bool one_piece(const struct dwr_ranger *r, uint64_t end, uint64_t begin)
{
	const struct elfrw_addrmap *map = r->map;
	bool thunks = !map->in_place && map->thunks < map->thunks_end && map->thunks < begin &&
		      map->thunks_end > end;
	return r->ordered && begin >= end && !thunks;
}

/* The unit's own [low_pc, high_pc): its live code in one piece, or one before and one behind the
 * thunks, and the thunks of its folded functions.  When that is more than one piece, high_pc is
 * turned into DW_AT_ranges. */
static struct elfrw_err *unit_range(struct scan *s, const struct dwr_die *die,
				    const struct dwr_value *low, const struct dwr_value *high,
				    uint64_t va, uint64_t end)
{
	const struct elfrw_addrmap *map = s->rw->map;
	struct dwr_pieces *p = &s->pieces;
	struct dwr_piece live = { 0 }, *run = &live;
	size_t n = 0;
	p->piece.len = p->taken.len = 0;
	ELFRW_TRY(dwr_range_map(&s->rw->ranger, DWR_FOR_UNIT, va, end, p));
	for (size_t i = 0; i < p->piece.len; i++) {
		struct dwr_piece *q = &p->piece.data[i];
		bool folded =
			q->unit != ELFRW_NO_UNIT && map->unit[q->unit].flags & ELFRW_UNIT_FOLDED;
		if (!folded && run->begin < run->end &&
		    one_piece(&s->rw->ranger, run->end, q->begin)) {
			run->end = q->end;
			continue;
		}
		if (!folded && live.begin == live.end) {
			live = *q;
			continue;
		}
		p->piece.data[n] = *q;
		if (!folded)
			run = &p->piece.data[n];
		n++;
	}
	if (n && p->piece.data[0].begin == p->piece.data[0].end)
		n = 0;
	struct dwr_piece *first = n ? &p->piece.data[0] : NULL;
	for (size_t i = 1; i < n; i++) { /* thunks that touch each other */
		if (first->end == p->piece.data[i].begin)
			first->end = p->piece.data[i].end;
		else
			*++first = p->piece.data[i];
	}
	n = first ? (size_t)(first - p->piece.data) + 1 : 0;
	size_t total = n + (live.begin < live.end);
	struct dwr_piece *only = live.begin < live.end ? &live : n ? &p->piece.data[0] : NULL;
	bool indexed = low->form != DW_FORM_addr;
	/* The unit's first function may share the slot; with a thunk, the thunk's address is what
	 * both can have. */
	uint64_t point = mapped(
		s, va, indexed && s->rw->in->policy != DWR_FOLDED_ALIAS ? USE_POINTER : USE_POINT);
	s->ru->has_base = true;
	if (!total) {
		s->ru->new_base = point;
		return put_range(s, die, low, high, point, point);
	}
	unsigned offset = s->unit->params.offset_size;
	bool convertible = !high->implicit && (high->size == offset || high->size == offset + 4u) &&
			   (high->form == DW_FORM_data4 || high->form == DW_FORM_data8 ||
			    high->form == DW_FORM_addr);
	if (total == 1 && (!indexed || only->begin == point)) {
		s->ru->new_base = only->begin;
		return put_range(s, die, low, high, only->begin, only->end);
	}
	s->ru->new_base = indexed ? point : only->begin;
	if (!convertible) {
		if (indexed && only->begin != point)
			return elfrw_error_at(
				s->section, die->off,
				"the unit's range cannot be written in its forms (64-bit DWARF with"
				" indexed addresses); --strip-debug drops it");
		/* The thunks are without a unit then: harmless, their functions are found by
		 * name. */
		return put_range(s, die, low, high, only->begin,
				 only == &live ? run->end : only->end);
	}
	ELFRW_TRY(put_address(s, low, s->ru->new_base));
	struct dwr_abbrev_edit *e = VEC_PUSH(&s->ru->edit);
	if (!e || !VEC_RESERVE(&s->ru->cu_range, total))
		return &elfrw_err_nomem;
	*e = (struct dwr_abbrev_edit){ .die = die->off,
				       .code = die->abbrev->code,
				       .attr = high->attr - die->abbrev->attr,
				       .kind = DWR_EDIT_RANGES,
				       .filler = (uint8_t)(high->size - offset) };
	if (only == &live)
		s->ru->cu_range.data[s->ru->cu_range.len++] =
			(struct dwr_list_range){ live.begin, live.end };
	for (size_t i = 0; i < n; i++)
		s->ru->cu_range.data[s->ru->cu_range.len++] =
			(struct dwr_list_range){ p->piece.data[i].begin, p->piece.data[i].end };
	s->ru->cu_range_pos = high->pos;
	memset(s->out + high->pos, 0, high->size);
	return NULL;
}

static bool is_thunk(const struct elfrw_addrmap *map, const struct dwr_piece *p)
{
	return p->unit != ELFRW_NO_UNIT && (map->unit[p->unit].flags & ELFRW_UNIT_THUNK) &&
	       p->begin == map->unit[p->unit].entry;
}

/* A DIE whose range is not within one live unit. */
static struct elfrw_err *hard_range(struct scan *s, const struct dwr_die *die,
				    const struct dwr_value *low, const struct dwr_value *high,
				    uint64_t va, uint64_t end)
{
	bool function = die->abbrev->tag == DW_TAG_subprogram;
	struct dwr_pieces *p = &s->pieces;
	p->piece.len = p->taken.len = 0;
	ELFRW_TRY(dwr_range_map(&s->rw->ranger, function ? DWR_FOR_FUNCTION : DWR_FOR_SCOPE, va,
				end, p));
	for (size_t i = 0; i < p->taken.len && s->unit->sec == DWR_INFO; i++) {
		struct dwr_note_range *r = VEC_PUSH(&s->ru->range);
		if (!r)
			return &elfrw_err_nomem;
		*r = (struct dwr_note_range){ die->off, p->taken.data[i].unit,
					      p->taken.data[i].start, p->taken.data[i].len };
	}
	if (!p->piece.len) {
		uint64_t point =
			s->rw->in->policy == DWR_FOLDED_DROP ? 0 : mapped(s, va, USE_POINT);
		s->ru->emptied += !function;
		/* An empty range needs no certain address: what else uses the slot decides. */
		if (low->form != DW_FORM_addr && !dwr_form_is_address(high->form))
			return put_const(s, die, high, 0);
		return put_range(s, die, low, high, point, point);
	}
	/* Policy alias: the kept body and a thunk.  Only one of them can be said here. */
	size_t n = 0;
	for (size_t i = 0; i < p->piece.len && p->piece.len > 1; i++)
		if (!is_thunk(s->rw->map, &p->piece.data[i]))
			p->piece.data[n++] = p->piece.data[i];
	p->piece.len = n ? n : p->piece.len;
	const struct dwr_piece *first = &p->piece.data[0], *last = &p->piece.data[p->piece.len - 1];
	for (size_t i = 1; i < p->piece.len; i++)
		if (p->piece.data[i].begin < p->piece.data[i - 1].end || !s->rw->ranger.ordered)
			return elfrw_error_at(s->section, die->off,
					      "the code of this entry moved apart");
	return put_range(s, die, low, high, first->begin, last->end);
}

static struct elfrw_err *low_high(struct scan *s, const struct dwr_die *die,
				  const struct dwr_value *low, const struct dwr_value *high)
{
	const struct elfrw_addrmap *map = s->rw->map;
	uint64_t va, end;
	if (!dwr_form_is_address(low->form))
		return elfrw_error_at(s->section, low->pos, "DW_AT_low_pc in form 0x%x", low->form);
	ELFRW_TRY(get_address(s, low, &va));
	if (dwr_form_is_address(high->form))
		ELFRW_TRY(get_address(s, high, &end));
	else
		end = va + high->u;
	if (!is_live(s, va)) {
		s->ru->new_base = !die->depth ? va : s->ru->new_base;
		return NULL;
	}
	if (die->abbrev->tag == DW_TAG_subprogram && s->unit->sec == DWR_INFO)
		ELFRW_TRY(note_die(s, die, va));
	if (!die->depth)
		return unit_range(s, die, low, high, va, end);
	uint32_t u = elfrw_addrmap_find(map, va);
	if (die->abbrev->tag == DW_TAG_subprogram) {
		while (s->n_functions && s->function[s->n_functions - 1].depth >= die->depth)
			s->n_functions--;
		if (s->n_functions < MAX_NESTING) {
			s->function[s->n_functions].unit = u;
			s->function[s->n_functions++].depth = die->depth;
		}
	}
	if (end == va || (u != ELFRW_NO_UNIT && !(map->unit[u].flags & ELFRW_UNIT_FOLDED) &&
			  end > va && end <= map->unit[u].old_end)) {
		/* The usual case: within one live unit.  The length stays. */
		uint64_t begin = mapped(s, va, USE_POINT);
		ELFRW_TRY(put_address(s, low, begin));
		return dwr_form_is_address(high->form) ? put_address(s, high, begin + (end - va))
						       : NULL;
	}
	return hard_range(s, die, low, high, va, end);
}

static struct elfrw_err *push_site(struct scan *s, const struct dwr_die *die,
				   const struct dwr_value *v, enum dwr_list_kind list,
				   enum dwr_purpose purpose)
{
	struct dwr_site *t = VEC_PUSH(&s->ru->site);
	if (!t)
		return &elfrw_err_nomem;
	*t = (struct dwr_site){ .pos = v->pos,
				.value = v->u,
				.views = DWR_LIST_NONE,
				.die = die->off,
				.owner = ELFRW_NO_UNIT,
				.kind = DWR_SITE_LIST,
				.list = (uint8_t)list,
				.purpose = (uint8_t)purpose,
				.size = (uint8_t)v->size };
	while (s->n_functions && s->function[s->n_functions - 1].depth > die->depth)
		s->n_functions--;
	/* The function's own DIE counts as inside. */
	if (s->n_functions && (s->function[s->n_functions - 1].depth < die->depth ||
			       die->abbrev->tag == DW_TAG_subprogram))
		t->owner = s->function[s->n_functions - 1].unit;
	if (v->form == DW_FORM_rnglistx || v->form == DW_FORM_loclistx) {
		t->indexed = true;
		t->index = (uint32_t)v->u;
		ELFRW_TRY(dwr_list_index(&s->rw->lists, list, &s->cu, v->u, &t->value));
	}
	return NULL;
}

static struct elfrw_err *read_noted(struct scan *s, const struct noted *key, struct noted **ret)
{
	struct noted *n = NULL;
	uint32_t u;
	ELFRW_TRY(dwr_list_read(&s->rw->lists, (enum dwr_list_kind)key->list, &s->cu, key->value,
				DWR_LIST_NONE, &s->list));
	/* Units may share one, too: as in rewrite/lists/lists.c there is an end to that. */
	uint64_t size = s->list.end - key->value;
	if (atomic_fetch_add_explicit(&s->rw->list_bytes, size, memory_order_relaxed) >
	    32 * (uint64_t)s->rw->lists.list[key->list].size + (1 << 20))
		return elfrw_error_at(s->rw->lists.list[key->list].name, key->value,
				      "range and location lists overlap each other too much");
	if (!(n = malloc(sizeof *n)))
		return &elfrw_err_nomem;
	*n = *key;
	n->begin = s->list.entry.len ? s->list.entry.data[0].begin : UINT64_MAX;
	bool ok = true;
	for (size_t i = 0; i < s->list.entry.len && ok; i++) {
		const struct dwr_list_entry *e = &s->list.entry.data[i];
		if (e->begin >= e->end || !is_shared(s->rw->map, e->begin, &u))
			continue;
		uint64_t *slot = VEC_PUSH(&n->start);
		if ((ok = slot != NULL))
			*slot = e->begin;
	}
	if (!ok || !tsearch(n, &s->noted, noted_order)) {
		free_noted(n);
		return &elfrw_err_nomem;
	}
	*ret = n;
	return NULL;
}

/* The functions whose parts are in a subprogram's range list. */
static struct elfrw_err *note_ranges(struct scan *s, const struct dwr_die *die,
				     const struct dwr_site *site)
{
	struct noted key = { .value = site->value, .list = site->list },
		     **at = tfind(&key, &s->noted, noted_order), *n;
	if (at)
		n = *at;
	else
		ELFRW_TRY(read_noted(s, &key, &n));
	if (n->begin != UINT64_MAX) {
		while (s->n_functions && s->function[s->n_functions - 1].depth >= die->depth)
			s->n_functions--;
		if (s->n_functions < MAX_NESTING) {
			s->function[s->n_functions].unit = elfrw_addrmap_find(s->rw->map, n->begin);
			s->function[s->n_functions++].depth = die->depth;
		}
	}
	for (size_t i = 0; i < n->start.len; i++)
		ELFRW_TRY(note_die(s, die, n->start.data[i]));
	return NULL;
}

static struct elfrw_err *ranges_attr(struct scan *s, const struct dwr_die *die,
				     const struct dwr_value *v)
{
	bool function = die->abbrev->tag == DW_TAG_subprogram;
	enum dwr_purpose purpose = !die->depth ? DWR_FOR_UNIT
				   : function  ? DWR_FOR_FUNCTION
					       : DWR_FOR_SCOPE;
	ELFRW_TRY(push_site(s, die, v,
			    s->unit->params.version >= 5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES,
			    purpose));
	if (function && s->rw->has_folded && s->unit->sec == DWR_INFO) {
		struct dwr_site *t = &s->ru->site.data[s->ru->site.len - 1];
		t->function = true;
		return note_ranges(s, die, t);
	}
	return NULL;
}

static struct elfrw_err *location_list(struct scan *s, const struct dwr_die *die,
				       const struct dwr_value *v)
{
	ELFRW_TRY(push_site(s, die, v,
			    s->unit->params.version >= 5 ? DWR_LIST_LOCLISTS : DWR_LIST_LOC,
			    DWR_FOR_LOCATION));
	const struct dwr_value *views =
		v->name == DW_AT_location ? dwr_die_value(die, DW_AT_GNU_locviews) : NULL;
	if (!views)
		return NULL;
	struct dwr_site *t = &s->ru->site.data[s->ru->site.len - 1];
	t->views = views->u;
	t->views_pos = views->pos;
	return NULL;
}

static struct elfrw_err *expr_ref(void *arg, enum dwr_expr_ref ref, uint64_t value,
				  const struct dwr_op *op)
{
	struct scan *s = arg;
	if (ref != DWR_EXPR_ADDRX && ref != DWR_EXPR_CONSTX)
		return NULL;
	struct dwr_value v = { .form = s->unit->params.version < 5 ? DW_FORM_GNU_addr_index
								   : DW_FORM_addrx,
			       .u = value };
	uint64_t va;
	ELFRW_TRY(get_address(s, &v, &va));
	return want_slot(s, slot_off(s, &v),
			 ref == DWR_EXPR_ADDRX ? mapped(s, va, USE_POINTER) : va,
			 s->expr_pos + op->off);
}

/* Nine in ten expressions are one operator without an address: a register, the frame base plus a
 * number. */
static bool harmless(const uint8_t *p, uint64_t size)
{
	if (size < 2)
		return true;
	if (*p != DW_OP_fbreg && (*p < DW_OP_breg0 || *p > DW_OP_breg31))
		return false;
	uint64_t i = 1;
	while (i < size && p[i] & 0x80)
		i++;
	return i + 1 == size;
}

static struct elfrw_err *expression(struct scan *s, const struct dwr_value *v)
{
	if (harmless(s->out + v->pos, v->size))
		return NULL;
	s->expr_pos = v->pos;
	return dwr_expr_map(s->out + v->pos, v->size, s->unit->params, s->section, v->pos,
			    s->rw->map, expr_ref, s, NULL);
}

static struct elfrw_err *put_offset(struct scan *s, const struct dwr_value *v, uint64_t value)
{
	if (v->size != 4 && v->size != 8)
		return elfrw_error_at(s->section, v->pos,
				      "attribute 0x%x in form 0x%x is not understood", v->name,
				      v->form);
	if (v->size == 4 && value >> 32)
		return no_room(s, v, value);
	elfrw_put_le(s->out + v->pos, value, (unsigned)v->size);
	return NULL;
}

static bool is_offset_form(const struct scan *s, const struct dwr_value *v)
{
	return v->form == DW_FORM_sec_offset ||
	       (s->unit->params.version < 4 &&
		(v->form == DW_FORM_data4 || v->form == DW_FORM_data8));
}

static struct elfrw_err *base_site(struct scan *s, const struct dwr_die *die,
				   const struct dwr_value *v, uint8_t kind)
{
	ELFRW_TRY(push_site(s, die, v, DWR_LIST_RNGLISTS, DWR_FOR_UNIT));
	s->ru->site.data[s->ru->site.len - 1].kind = kind;
	return NULL;
}

/* One attribute that is not part of a [low_pc, high_pc). */
static struct elfrw_err *attribute(struct scan *s, const struct dwr_die *die,
				   const struct dwr_value *v)
{
	switch (v->form) {
	case DW_FORM_exprloc: return expression(s, v);
	case DW_FORM_block:
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
		/* Since DWARF 4 a block is bytes, whatever the attribute. */
		if (s->unit->params.version >= 4 || v->name == DW_AT_const_value)
			return NULL;
		return expression(s, v);
	case DW_FORM_loclistx: return location_list(s, die, v);
	case DW_FORM_rnglistx: return ranges_attr(s, die, v);
	}
	if (dwr_form_is_address(v->form)) {
		bool call = die->abbrev->tag == DW_TAG_GNU_call_site ||
			    die->abbrev->tag == DW_TAG_call_site;
		switch (v->name) {
		case DW_AT_low_pc: return map_address(s, v, call ? USE_END : USE_POINT);
		case DW_AT_high_pc:
		case DW_AT_call_return_pc: return map_address(s, v, USE_END);
		case DW_AT_entry_pc:
		case DW_AT_call_pc: return map_address(s, v, USE_POINT);
		}
		return map_address(s, v, USE_POINTER);
	}
	switch (v->name) {
	case DW_AT_ranges: return is_offset_form(s, v) ? ranges_attr(s, die, v) : NULL;
	case DW_AT_start_scope:
		return v->form == DW_FORM_sec_offset ? ranges_attr(s, die, v) : NULL;
	case DW_AT_data_member_location: /* a list only in the form that is nothing else */
		return v->form == DW_FORM_sec_offset ? location_list(s, die, v) : NULL;
	case DW_AT_location:
	case DW_AT_string_length:
	case DW_AT_return_addr:
	case DW_AT_frame_base:
	case DW_AT_segment:
	case DW_AT_static_link:
	case DW_AT_use_location:
	case DW_AT_vtable_elem_location:
		return is_offset_form(s, v) ? location_list(s, die, v) : NULL;
	case DW_AT_stmt_list: {
		if (!s->rw->has_line)
			return NULL;
		uint64_t off = dwr_rw_line_unit_off(&s->rw->line, v->u);
		if (off == UINT64_MAX)
			return elfrw_error_at(s->section, v->pos, "no line table begins at 0x%llx",
					      (unsigned long long)v->u);
		return put_offset(s, v, off);
	}
	case DW_AT_LLVM_stmt_sequence: {
		if (!s->rw->has_line || v->u == (v->size == 4 ? UINT32_MAX : UINT64_MAX))
			return NULL;
		uint64_t off = dwr_rw_line_seq_off(&s->rw->line, v->u);
		return put_offset(s, v, off == UINT64_MAX && v->size == 4 ? UINT32_MAX : off);
	}
	case DW_AT_macros:
	case DW_AT_GNU_macros: {
		uint64_t *m = VEC_PUSH(&s->ru->macro);
		if (!m)
			return &elfrw_err_nomem;
		*m = v->u;
		return NULL;
	}
	case DW_AT_rnglists_base: return base_site(s, die, v, DWR_SITE_RNG_BASE);
	case DW_AT_loclists_base: return base_site(s, die, v, DWR_SITE_LOC_BASE);
	}
	return NULL;
}

/* DWARF that lies in another file uses addresses and lists of this one in ways that cannot be seen
 * from here. */
static struct elfrw_err *check_split(const struct scan *s, const struct dwr_die *die)
{
	const struct dwr_unit_root *root = &s->ru->root;
	if ((s->unit->type != DW_UT_skeleton && !root->has_dwo) || !s->rw->changes)
		return NULL;
	if (!dwr_die_value(die, DW_AT_low_pc) && !dwr_die_value(die, DW_AT_ranges) &&
	    root->addr_base == UINT64_MAX)
		return NULL;
	return elfrw_error_at(
		s->section, s->unit->off,
		"debug information is in %s%s%s: split DWARF cannot be kept right, use --strip-debug",
		root->dwo_name ? root->dwo_name : "another file", root->name ? ", of unit " : "",
		root->name ? root->name : "");
}

static struct elfrw_err *scan_die(struct scan *s, const struct dwr_die *die)
{
	const struct dwr_value *low = dwr_die_value(die, DW_AT_low_pc), *high = NULL;
	if (!die->depth)
		ELFRW_TRY(check_split(s, die));
	if (low)
		high = dwr_die_value(die, DW_AT_high_pc);
	if (high)
		ELFRW_TRY(low_high(s, die, low, high));
	else if (low && !die->depth && s->ru->root.has_low_pc)
		s->ru->new_base = mapped(s, s->ru->root.low_pc, USE_POINT);
	for (unsigned i = 0; i < die->n_values; i++) {
		const struct dwr_value *v = &die->value[i];
		if (high && (v == low || v == high))
			continue;
		ELFRW_TRY(attribute(s, die, v));
	}
	return NULL;
}

struct elfrw_err *dwr_rw_info_unit(struct dwr_rw *rw, size_t i,
				   const struct dwr_abbrev_table *table)
{
	const struct dwr_unit *unit = &rw->units.data[i];
	struct dwr_rw_unit *ru = &rw->ru[i];
	struct scan s = { .rw = rw,
			  .unit = unit,
			  .ru = ru,
			  .section = rw->secs.sec[unit->sec].name,
			  .out = rw->copy[unit->sec] };
	s.cu = (struct dwr_list_cu){ .params = unit->params,
				     .has_base = ru->root.has_low_pc,
				     .base = ru->root.has_low_pc ? ru->root.low_pc : 0,
				     .addr_base = ru->root.addr_base,
				     .rnglists_base = ru->root.rnglists_base,
				     .loclists_base = ru->root.loclists_base };
	ru->has_base = ru->root.has_low_pc;
	ru->new_base = s.cu.base;
	struct dwr_cursor cur = dwr_cursor_at(&rw->secs, unit, table, false);
	struct dwr_die die;
	bool more;
	struct elfrw_err *err;
	while (!(err = dwr_cursor_next(&cur, &die, &more)) && more)
		if ((err = scan_die(&s, &die)))
			break;
	dwr_pieces_deinit(&s.pieces);
	dwr_list_deinit(&s.list);
	tdestroy(s.noted, free_noted);
	return err;
}
