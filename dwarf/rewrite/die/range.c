/* range.c: [low_pc, high_pc) of units, functions and scopes. */
#include "dwarf/rewrite/die/state.h"
#include <dwarf.h>
#include <string.h>

bool dwr_die_is_shared(const struct elfrw_addrmap *map, uint64_t low, uint32_t *u)
{
	*u = elfrw_addrmap_find(map, low);
	return *u != ELFRW_NO_UNIT && map->unit[*u].old == low &&
	       (map->unit[*u].flags & (ELFRW_UNIT_KEPT | ELFRW_UNIT_FOLDED)) &&
	       !(map->unit[*u].flags & ELFRW_UNIT_REMOVED);
}

struct elfrw_err *dwr_die_note_die(struct dwr_die_scan *s, const struct dwr_die *die, uint64_t low)
{
	const struct elfrw_addrmap *map = s->rw->map;
	uint32_t u;
	if (!dwr_die_is_shared(map, low, &u))
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

static struct elfrw_err *put_range(struct dwr_die_scan *s, const struct dwr_die *die,
				   const struct dwr_value *low, const struct dwr_value *high,
				   uint64_t begin, uint64_t end)
{
	ELFRW_TRY(dwr_die_put_address(s, low, begin));
	if (!dwr_form_is_address(high->form))
		return dwr_die_put_const(s, die, high, end - begin);
	return dwr_die_put_address(s, high, end);
}

/* Live units keep their order.  So nothing foreign lies between two of one compilation unit (END
 * and BEGIN in the output), except the run of thunks and the artificial unit's byte, if a gap
 * before pinned code was the only room for them, or if nothing moved. */
static bool one_piece(const struct dwr_ranger *r, uint64_t end, uint64_t begin)
{
	const struct elfrw_addrmap *map = r->map;
	bool thunks = !map->in_place && map->thunks < map->thunks_end && map->thunks < begin &&
		      map->thunks_end > end;
	bool trap = map->trap_byte >= end && map->trap_byte < begin;
	return r->ordered && begin >= end && !thunks && !trap;
}

/* A unit's code in the output: its live code, then N more pieces, from s->pieces.piece on. */
struct unit_code {
	struct dwr_piece live; /* empty: none */
	size_t n;
	uint64_t live_end; /* of the last run of live code */
};

/* Joins adjacent thunks among the N at P; returns their new number. */
static size_t join_thunks(struct dwr_piece *p, size_t n)
{
	size_t k = 0;
	if (!n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if (p[k].end == p[i].begin)
			p[k].end = p[i].end;
		else
			p[++k] = p[i];
	}
	return k + 1;
}

/* Finds the code of [VA, END): live code in one piece, or in two around the thunks, and the thunks
 * of folded functions. */
static struct elfrw_err *find_unit_code(struct dwr_die_scan *s, uint64_t va, uint64_t end,
					struct unit_code *ret)
{
	const struct elfrw_addrmap *map = s->rw->map;
	struct dwr_pieces *p = &s->pieces;
	struct dwr_piece *live = &ret->live, *run = live;
	size_t n = 0;
	*ret = (struct unit_code){ 0 };
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
		if (!folded && live->begin == live->end) {
			*live = *q;
			continue;
		}
		p->piece.data[n] = *q;
		if (!folded)
			run = &p->piece.data[n];
		n++;
	}
	ret->live_end = run->end;
	if (n && p->piece.data[0].begin == p->piece.data[0].end)
		n = 0;
	ret->n = join_thunks(p->piece.data, n);
	return NULL;
}

/* Turns DW_AT_high_pc of the unit's DIE into DW_AT_ranges, which list CODE. */
static struct elfrw_err *state_ranges(struct dwr_die_scan *s, const struct dwr_die *die,
				      const struct dwr_value *high, const struct unit_code *code)
{
	const struct dwr_piece *live = &code->live, *p = s->pieces.piece.data;
	struct dwr_abbrev_edit *e = VEC_PUSH(&s->ru->edit);
	if (!e || !VEC_RESERVE(&s->ru->cu_range, code->n + 1))
		return &elfrw_err_nomem;
	*e = (struct dwr_abbrev_edit){
		.die = die->off,
		.code = die->abbrev->code,
		.attr = high->attr - die->abbrev->attr,
		.kind = DWR_EDIT_RANGES,
		.filler = (uint8_t)(high->size - s->unit->params.offset_size),
	};
	if (live->begin < live->end)
		s->ru->cu_range.data[s->ru->cu_range.len++] =
			(struct dwr_list_range){ live->begin, live->end };
	for (size_t i = 0; i < code->n; i++)
		s->ru->cu_range.data[s->ru->cu_range.len++] =
			(struct dwr_list_range){ p[i].begin, p[i].end };
	s->ru->cu_range_pos = high->pos;
	memset(s->out + high->pos, 0, high->size);
	return NULL;
}

/* Has HIGH a form that can become DW_AT_ranges in place? */
static bool convertible(const struct dwr_die_scan *s, const struct dwr_value *high)
{
	unsigned offset = s->unit->params.offset_size;
	return !high->implicit && (high->size == offset || high->size == offset + 4u) &&
	       (high->form == DW_FORM_data4 || high->form == DW_FORM_data8 ||
		high->form == DW_FORM_addr);
}

/* GNU as states a unit's length in as few bytes as it needs, and a part that stays in place can be
 * far from the rest. */
static struct elfrw_err *put_unit_range(struct dwr_die_scan *s, const struct dwr_die *die,
					const struct dwr_value *low, const struct dwr_value *high,
					uint64_t begin, uint64_t end)
{
	struct elfrw_err *err = put_range(s, die, low, high, begin, end);
	if (!err || err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err);
	return elfrw_error_at(s->section, die->off,
			      "the unit's range does not fit into its form, since a part of its"
			      " code stays in place; --in-place moves nothing, --strip-debug drops"
			      " the debug information");
}

/* Does [BEGIN, END), the code of a unit that has CODE, cover thunks that are not its own? */
static bool covers_thunks(const struct dwr_die_scan *s, const struct unit_code *code,
			  uint64_t begin, uint64_t end)
{
	const struct elfrw_addrmap *map = s->rw->map;
	uint64_t other = map->thunks_end - map->thunks;
	if (map->in_place || begin > map->thunks || end < map->thunks_end)
		return false;
	for (size_t i = 0; i < code->n; i++) {
		const struct dwr_piece *p = &s->pieces.piece.data[i];
		uint64_t lo = p->begin > map->thunks ? p->begin : map->thunks,
			 hi = p->end < map->thunks_end ? p->end : map->thunks_end;
		other -= lo < hi ? hi - lo : 0;
	}
	return other != 0;
}

/* Maps the unit's own [low_pc, high_pc).  If its code is more than one piece, high_pc becomes
 * DW_AT_ranges. */
static struct elfrw_err *unit_range(struct dwr_die_scan *s, const struct dwr_die *die,
				    const struct dwr_value *low, const struct dwr_value *high,
				    uint64_t va, uint64_t end)
{
	struct unit_code code;
	ELFRW_TRY(find_unit_code(s, va, end, &code));
	const bool is_live = code.live.begin < code.live.end;
	const size_t total = code.n + is_live;
	const struct dwr_piece *only = is_live  ? &code.live
				       : code.n ? &s->pieces.piece.data[0]
						: NULL;
	bool indexed = low->form != DW_FORM_addr;
	/* The unit's first function may use the same slot; with a thunk, both can have the thunk's
	 * address. */
	uint64_t point = dwr_die_mapped(
		s, va, indexed && s->rw->in->policy != DWR_FOLDED_ALIAS ? USE_POINTER : USE_POINT);
	s->ru->has_base = true;
	if (!total) {
		s->ru->new_base = point;
		return put_range(s, die, low, high, point, point);
	}
	if (total == 1 && (!indexed || only->begin == point)) {
		s->ru->new_base = only->begin;
		return put_unit_range(s, die, low, high, only->begin, only->end);
	}
	s->ru->new_base = indexed ? point : only->begin;
	if (convertible(s, high)) {
		ELFRW_TRY(dwr_die_put_address(s, low, s->ru->new_base));
		return state_ranges(s, die, high, &code);
	}
	if (indexed && only->begin != point)
		return elfrw_error_at(
			s->section, die->off,
			"the unit's range cannot be written in its forms (64-bit DWARF with"
			" indexed addresses); --strip-debug drops it");
	/* The thunks then have no unit.  This is harmless: their functions are found by name. */
	uint64_t last = is_live ? code.live_end : only->end;
	s->ru->crowded = covers_thunks(s, &code, only->begin, last);
	return put_unit_range(s, die, low, high, only->begin, last);
}

static bool is_thunk(const struct elfrw_addrmap *map, const struct dwr_piece *p)
{
	return p->unit != ELFRW_NO_UNIT && (map->unit[p->unit].flags & ELFRW_UNIT_THUNK) &&
	       p->begin == map->unit[p->unit].entry;
}

/* Maps the range of a DIE that is not within one live unit. */
static struct elfrw_err *hard_range(struct dwr_die_scan *s, const struct dwr_die *die,
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
			s->rw->in->policy == DWR_FOLDED_DROP ? 0 : dwr_die_mapped(s, va, USE_POINT);
		s->ru->emptied += !function;
		/* An empty range needs no particular address: another use of the slot decides. */
		if (low->form != DW_FORM_addr && !dwr_form_is_address(high->form))
			return dwr_die_put_const(s, die, high, 0);
		return put_range(s, die, low, high, point, point);
	}
	/* Policy alias: the kept body and a thunk.  Only one of them can be stated here. */
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

struct elfrw_err *dwr_die_low_high(struct dwr_die_scan *s, const struct dwr_die *die,
				   const struct dwr_value *low, const struct dwr_value *high)
{
	const struct elfrw_addrmap *map = s->rw->map;
	uint64_t va, end;
	if (!dwr_form_is_address(low->form))
		return elfrw_error_at(s->section, low->pos, "DW_AT_low_pc in form 0x%x", low->form);
	ELFRW_TRY(dwr_die_address(s, low, &va));
	if (dwr_form_is_address(high->form))
		ELFRW_TRY(dwr_die_address(s, high, &end));
	else
		end = va + high->u;
	if (!dwr_die_is_live(s, va)) {
		s->ru->new_base = !die->depth ? va : s->ru->new_base;
		return NULL;
	}
	/* A function without an instruction is none of those that begin there; nobody calls it. */
	if (die->abbrev->tag == DW_TAG_subprogram && s->unit->sec == DWR_INFO && end != va)
		ELFRW_TRY(dwr_die_note_die(s, die, va));
	if (!die->depth)
		return unit_range(s, die, low, high, va, end);
	uint32_t u = elfrw_addrmap_find(map, va);
	if (die->abbrev->tag == DW_TAG_subprogram) {
		while (s->n_functions && s->function[s->n_functions - 1].depth >= die->depth)
			s->n_functions--;
		if (s->n_functions < DWR_DIE_NESTING) {
			s->function[s->n_functions].unit = u;
			s->function[s->n_functions++].depth = die->depth;
		}
	}
	if (end == va || (u != ELFRW_NO_UNIT && !(map->unit[u].flags & ELFRW_UNIT_FOLDED) &&
			  end > va && end <= map->unit[u].old_end)) {
		/* The usual case: within one live unit.  The length stays. */
		uint64_t begin = dwr_die_mapped(s, va, USE_POINT);
		ELFRW_TRY(dwr_die_put_address(s, low, begin));
		return dwr_form_is_address(high->form)
			       ? dwr_die_put_address(s, high, begin + (end - va))
			       : NULL;
	}
	return hard_range(s, die, low, high, va, end);
}
