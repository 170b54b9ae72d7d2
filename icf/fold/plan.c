/* plan.c: folds, thunks and the new place of every unit.
 *
 * Units keep their old order and close up; later segments keep their addresses.  A unit moves by
 * multiples of the alignment that its old address shows (align.c). So no unit moves up, and pinned
 * units are never in the way of those before them. */
#include "icf/fold/plan.h"
#include "icf/fold/hazard.h"
#include "icf/fold/thunk.h"
#include "icf/fold/unused.h"
#include "elfrw/base/align.h"
#include "elfrw/base/search.h"
#include <stdlib.h>
#include <string.h>

static uint64_t min64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

#define PROMISED 0x80

/* The largest alignment of each group, for its keeper, as an exponent of two; 0: nothing to add.
 * PROMISED: some function of the group needs more than what compilers do without. */
static uint8_t *group_alignment(const struct icf_program *prog, const struct icf_plan *plan)
{
	uint8_t *shift = calloc(prog->unit.len + 1, 1);
	for (uint32_t i = 0; shift && i < prog->unit.len; i++) {
		uint32_t k = plan->kept[i];
		const struct icf_unit *u = &prog->unit.data[i];
		uint8_t s = (uint8_t)__builtin_ctzll(
			min64(min64((uint64_t)1 << u->grain, u->start | (uint64_t)1 << 63),
			      prog->arch->function_align));
		if (k != i && s > (shift[k] & ~PROMISED))
			shift[k] = (uint8_t)(s | (shift[k] & PROMISED));
		if ((uint64_t)1 << u->promise > prog->arch->inner_align || u->kind != ICF_UNIT_FUNC)
			shift[k] |= PROMISED;
	}
	return shift;
}

struct layout {
	struct icf_program *prog;
	const struct icf_options *opt;
	struct icf_plan *plan;
	const uint8_t *shift;
	uint64_t cursor;
	uint64_t gap, gap_end; /* the largest gap before a unit of the section that stays, or that
				  is aligned to more than others */
	bool no_room;          /* for the thunks */
};

/* The size of unit I's thunk at AT.  Code without a new place yet lies behind AT, and not behind
 * its old place. */
static unsigned thunk_size_at(const struct layout *l, uint32_t i, uint64_t at)
{
	const struct icf_program *prog = l->prog;
	uint32_t k = l->plan->kept[i];
	uint64_t to = prog->unit.data[k].sec <= l->plan->thunk_exec ? l->plan->map.unit[k].body
								    : prog->unit.data[k].start;
	return icf_thunk_size(prog, &prog->unit.data[i], at, to);
}

/* Puts the thunks one behind the other from AT on; MAP NULL: only measures.  Padding before a thunk
 * belongs to the thunk before it, so that one range describes all.  Returns the end.  Sets
 * l->no_room if a thunk does not reach. */
static uint64_t line_up_thunks(struct layout *l, uint64_t at, struct elfrw_addrmap *map)
{
	const struct icf_program *prog = l->prog;
	struct elfrw_addrmap_unit *last = NULL;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (l->plan->kept[i] == i || !icf_needs_thunk(l->plan->in_place, l->opt, u))
			continue;
		at = elfrw_align_up(at, icf_thunk_align(u));
		unsigned size = thunk_size_at(l, i, at);
		l->no_room |= !size;
		if (map) {
			if (last)
				last->thunk_size = (uint32_t)(at - last->entry);
			else
				map->thunks = at;
			last = &map->unit[i];
			last->flags |= ELFRW_UNIT_THUNK;
			last->entry = at;
			last->thunk_size = size;
			l->plan->n_thunks++;
		}
		at += size;
	}
	return at;
}

/* Places the run of thunks and the trap byte: at the end of the code or, if something that cannot
 * move holds that end, in the largest gap.  *FITS is false if there is no room. */
static void place_thunks(struct layout *l, const struct icf_exec *ex, struct elfrw_addrmap *map,
			 bool *fits)
{
	struct icf_plan *plan = l->plan;
	uint64_t at = l->cursor, end = line_up_thunks(l, at, NULL);
	uint64_t trap = plan->n_folded ? l->prog->arch->fill_size : 0;
	bool any = end != at, in_gap = end + trap > ex->end;
	*fits = true;
	if (in_gap) {
		at = l->gap;
		end = line_up_thunks(l, at, NULL);
		if (end + (trap ? trap : 1) > l->gap_end) {
			*fits = !any;
			map->thunks = map->thunks_end = l->cursor;
			return;
		}
	}
	line_up_thunks(l, at, map);
	if (!any)
		map->thunks = end;
	map->thunks_end = end;
	if (plan->n_folded)
		map->trap_byte = end;
	end += trap;
	if (!in_gap)
		l->cursor = end;
}

/* Where unit I, which moves, goes if processors' errata do not matter.  *STEP: the distance of
 * other places. */
static uint64_t next_place(const struct layout *l, uint32_t i, uint64_t *step)
{
	const struct icf_unit *u = &l->prog->unit.data[i];
	const struct elfrw_arch *arch = l->prog->arch;
	uint64_t grain = (uint64_t)1 << u->grain,
		 better = elfrw_align_up(l->cursor, (uint64_t)1 << (l->shift[i] & ~PROMISED));
	uint64_t at = better <= u->start && ((u->start - better) & (grain - 1)) == 0
			      ? better
			      : l->cursor + ((u->start - l->cursor) & (grain - 1));
	/* Nothing moves only for less padding. */
	if (arch->inner_align && !(l->shift[i] & PROMISED) && at < u->start &&
	    at - l->cursor > arch->max_padding) {
		grain = min64(grain, arch->inner_align);
		at = l->cursor + ((u->start - l->cursor) & (grain - 1));
	}
	*step = grain;
	return at;
}

/* The end of unit I, or that of the padding behind it, if that stays. */
static uint64_t end_of(const struct icf_program *prog, uint32_t i)
{
	const struct icf_unit *u = &prog->unit.data[i];
	const struct icf_exec *e = &prog->exec.data[u->sec];
	if (!(u->flags & ICF_UNIT_PADDED))
		return u->end;
	return i + 1 < e->unit + e->n_units ? u[1].start : e->end;
}

/* Unit I, which is kept, at the cursor or behind it. */
static struct elfrw_err *place_unit(struct layout *l, uint32_t i)
{
	const struct icf_program *prog = l->prog;
	const struct icf_unit *u = &prog->unit.data[i];
	struct elfrw_addrmap_unit *m = &l->plan->map.unit[i];
	uint64_t at;
	if (u->flags & ICF_UNIT_PINNED) {
		if (l->cursor > u->start)
			return elfrw_error("no room before the code at 0x%llx, which must not move",
					   (unsigned long long)u->start);
		at = u->start;
		m->flags |= ELFRW_UNIT_PINNED;
	} else {
		uint64_t step;
		at = next_place(l, i, &step);
		/* Its old place is one of those. */
		while (!icf_may_lie_at(prog, i, at) && at < u->start)
			at += step;
	}
	if (at - l->cursor > l->gap_end - l->gap &&
	    icf_in_thunk_part(prog, l->plan->thunk_exec, u->start - 1)) {
		l->gap = l->cursor;
		l->gap_end = at;
	}
	m->body = m->entry = at;
	l->cursor = at + (end_of(prog, i) - u->start);
	return NULL;
}

/* The units of section E, from the address START on. */
static struct elfrw_err *place_units(struct layout *l, uint32_t e, uint64_t start)
{
	const struct icf_exec *ex = &l->prog->exec.data[e];
	struct elfrw_addrmap *map = &l->plan->map;
	map->section[e].new_start = l->cursor = start;
	l->gap = l->gap_end = 0;
	for (uint32_t i = ex->unit; i < ex->unit + ex->n_units; i++)
		if (!(map->unit[i].flags & ELFRW_UNIT_FOLDED))
			ELFRW_TRY(place_unit(l, i));
	return NULL;
}

static struct elfrw_err *place_section(struct layout *l, uint32_t e)
{
	const struct icf_program *prog = l->prog;
	const struct icf_exec *ex = &prog->exec.data[e];
	struct elfrw_addrmap *map = &l->plan->map;
	const Elf64_Shdr *sh = &prog->img->section[ex->shndx].hdr;
	/* A function at an even address stays at one, also in a section of alignment 1 (musl's
	 * _fini). */
	if (sh->sh_addralign > 1)
		l->cursor = elfrw_align_up(l->cursor, sh->sh_addralign);
	else
		l->cursor += (ex->start ^ l->cursor) & 1;
	if (l->cursor > ex->start ||
	    (ex->n_units && (prog->unit.data[ex->unit].flags & ICF_UNIT_PINNED)))
		l->cursor = ex->start;
	/* Programs calculate with distances in a section that they can delimit: tables of stubs,
	 * pages to be made writable. */
	if (ex->named && prog->inferred) {
		map->section[e].new_start = ex->start;
		map->section[e].new_end = l->cursor = ex->end;
		for (uint32_t i = ex->unit; i < ex->unit + ex->n_units; i++) {
			map->unit[i].body = map->unit[i].entry = prog->unit.data[i].start;
			map->unit[i].flags |= ELFRW_UNIT_PINNED;
		}
		return NULL;
	}
	ELFRW_TRY(place_units(l, e, l->cursor));
	/* Between a start that moved and code that must stay it would be larger than it was. */
	if (l->cursor - map->section[e].new_start > ex->end - ex->start)
		ELFRW_TRY(place_units(l, e, ex->start));
	if (e == l->plan->thunk_exec) {
		bool fits;
		place_thunks(l, ex, map, &fits);
		l->no_room |= !fits;
	}
	if (l->cursor > ex->end)
		return elfrw_error("section %s would grow", prog->img->section[ex->shndx].name);
	map->section[e].new_end = l->cursor;
	return NULL;
}

/* Everything stays; the first bytes of a folded function become its thunk. */
static void stay(struct icf_program *prog, struct icf_plan *plan)
{
	struct elfrw_addrmap *map = &plan->map;
	map->in_place = true;
	for (uint32_t e = 0; e < map->n_sections; e++) {
		map->section[e].new_start = map->section[e].old;
		map->section[e].new_end = map->section[e].old_end;
		plan->code_before += map->section[e].old_end - map->section[e].old;
	}
	plan->code_after = plan->code_before;
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		map->unit[i].body = map->unit[i].entry = u->start;
		if (map->unit[i].flags & ELFRW_UNIT_REMOVED) {
			plan->code_after -= u->end - u->start;
			continue;
		}
		if (plan->kept[i] == i) {
			map->unit[i].flags |= u->flags & ICF_UNIT_PINNED ? ELFRW_UNIT_PINNED : 0;
			continue;
		}
		map->unit[i].flags |= ELFRW_UNIT_THUNK;
		map->unit[i].thunk_size =
			icf_thunk_size(prog, u, u->start, prog->unit.data[plan->kept[i]].start);
		if (plan->n_thunks++ == 0)
			map->thunks = u->start;
		map->thunks_end = u->start + map->unit[i].thunk_size;
		map->trap_byte = u->end - prog->arch->fill_size;
		plan->code_after -= u->end - u->start - map->unit[i].thunk_size;
	}
}

/* By executable section: is there only code between it and the next one, or less than a page, and
 * are both in one segment?  The caller frees the array. */
static bool *find_adjoining(const struct icf_program *prog)
{
	const struct elfrw_image *img = prog->img;
	size_t n = prog->exec.len;
	bool *adjoins = malloc(n + 1);
	for (uint32_t e = 0; adjoins && e < n; e++)
		adjoins[e] = e + 1 < n && prog->exec.data[e + 1].start - prog->exec.data[e].end <
						  prog->arch->page_min;
	for (uint32_t p = 0; adjoins && p < img->n_phdrs; p++) {
		const Elf64_Phdr *ph = &img->phdr[p];
		size_t e = LOWER_BOUND(0, n, mid,
				       prog->exec.data[mid].start < ph->p_vaddr + ph->p_memsz);
		if (ph->p_type == PT_LOAD && e && prog->exec.data[e - 1].start >= ph->p_vaddr)
			adjoins[e - 1] = false;
	}
	for (uint32_t i = 1; adjoins && i < img->n_sections; i++) {
		const Elf64_Shdr *sh = &img->section[i].hdr;
		if (!(sh->sh_flags & SHF_ALLOC) || !sh->sh_size)
			continue;
		/* The sections before it. */
		size_t e = LOWER_BOUND(0, n, mid, prog->exec.data[mid].end <= sh->sh_addr);
		if (e && e < n && sh->sh_addr < prog->exec.data[e].start)
			adjoins[e - 1] = false;
	}
	return adjoins;
}

/* What the map has of the input, and who is folded. */
static void start_map(const struct icf_program *prog, struct icf_plan *plan)
{
	struct elfrw_addrmap *map = &plan->map;
	for (uint32_t i = 0; i < map->n_units; i++) {
		struct elfrw_addrmap_unit *m = &map->unit[i];
		m->old = prog->unit.data[i].start;
		m->old_end = prog->unit.data[i].end;
		m->kept = plan->kept[i];
		if (prog->unit.data[i].flags & ICF_UNIT_UNUSED) {
			m->flags |= ELFRW_UNIT_FOLDED | ELFRW_UNIT_REMOVED;
			plan->n_removed++;
			plan->removed_bytes += m->old_end - m->old;
		} else if (m->kept != i) {
			m->flags |= ELFRW_UNIT_FOLDED;
			map->unit[m->kept].flags |= ELFRW_UNIT_KEPT;
			plan->n_folded++;
			plan->folded_bytes += m->old_end - m->old;
		}
	}
	for (uint32_t e = 0; e < map->n_sections; e++) {
		const struct icf_exec *x = &prog->exec.data[e];
		map->section[e] = (struct elfrw_addrmap_section){
			.old = x->start,
			.old_end = x->end,
			.shndx = x->shndx,
			.end_taken = elfrw_image_section_at(prog->img, x->end) != 0
		};
	}
	plan->thunk_exec = icf_thunk_section(prog);
}

/* Folded units are where their copies are; what the plan comes to. */
static void finish_map(struct icf_plan *plan)
{
	struct elfrw_addrmap *map = &plan->map;
	for (uint32_t i = 0; i < map->n_units; i++) {
		struct elfrw_addrmap_unit *m = &map->unit[i];
		if (!(m->flags & ELFRW_UNIT_FOLDED))
			continue;
		if (m->flags & ELFRW_UNIT_REMOVED) {
			m->body = m->entry = 0;
			continue;
		}
		m->body = map->unit[m->kept].body;
		if (!(m->flags & ELFRW_UNIT_THUNK))
			m->entry = m->body;
	}
	for (uint32_t i = 0; i < map->n_units; i++) {
		plan->n_groups += (map->unit[i].flags & ELFRW_UNIT_KEPT) != 0;
		plan->changes |= map->unit[i].body != map->unit[i].old ||
				 map->unit[i].entry != map->unit[i].old;
	}
}

static struct elfrw_err *lay_out(struct icf_program *prog, const struct icf_options *opt,
				 struct icf_plan *plan, bool *no_room)
{
	struct elfrw_addrmap *map = &plan->map;
	map->n_units = (uint32_t)prog->unit.len;
	map->n_sections = (uint32_t)prog->exec.len;
	map->unit = calloc(map->n_units + 1, sizeof *map->unit);
	map->section = calloc(map->n_sections, sizeof *map->section);
	uint8_t *shift = group_alignment(prog, plan);
	bool *adjoins = find_adjoining(prog);
	if (!map->unit || !map->section || !shift || !adjoins) {
		free(shift);
		free(adjoins);
		return &elfrw_err_nomem;
	}
	start_map(prog, plan);
	struct layout l = { .prog = prog, .opt = opt, .plan = plan, .shift = shift };
	struct elfrw_err *err = NULL;
	/* If nothing records where code went (no symbols, no fold to record), nothing moves. */
	bool stays = plan->in_place || (prog->inferred && !plan->n_folded && !plan->n_removed);
	if (stays)
		stay(prog, plan);
	for (uint32_t e = 0; e < map->n_sections && !err && !stays; e++) {
		if (e == 0 || !adjoins[e - 1])
			l.cursor = prog->exec.data[e].start;
		err = place_section(&l, e);
		plan->code_before += map->section[e].old_end - map->section[e].old;
		plan->code_after += map->section[e].new_end - map->section[e].new_start;
	}
	free(shift);
	free(adjoins);
	*no_room = l.no_room;
	if (err)
		return err;
	finish_map(plan);
	return elfrw_addrmap_finish(map);
}

static void start_over(struct icf_plan *plan)
{
	elfrw_addrmap_deinit(&plan->map);
	plan->n_groups = plan->n_folded = plan->n_thunks = plan->n_removed = 0;
	plan->folded_bytes = plan->removed_bytes = plan->code_before = plan->code_after = 0;
	plan->changes = false;
}

/* There is no room for the thunks, or for their frame descriptions: functions that need thunks
 * stay. */
static struct elfrw_err *without_thunks(struct icf_program *prog, const struct icf_options *opt,
					struct icf_plan *plan)
{
	bool no_room;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (plan->kept[i] != i &&
		    icf_needs_thunk(plan->in_place, opt, &prog->unit.data[i])) {
			plan->kept[i] = i;
			prog->unit.data[i].reason = ICF_ADDRESS_OBSERVED;
			plan->n_short++;
		}
	ELFRW_TRY(icf_keep_partners(prog, plan));
	start_over(plan);
	return lay_out(prog, opt, plan, &no_room);
}

/* COARSE: see icf_partition(). */
static struct elfrw_err *make_once(struct icf_program *prog, const struct icf_options *opt,
				   const uint32_t *coarse, bool no_frame_room,
				   struct icf_plan *plan)
{
	uint32_t n = (uint32_t)prog->unit.len;
	*plan = (struct icf_plan){ .no_frame_room = no_frame_room };
	plan->in_place = opt->in_place || prog->loose || no_frame_room;
	/* In place every function keeps its address, so code that refers to different functions
	 * differs. */
	struct icf_options distinct = *opt;
	if (plan->in_place && opt->mode == ICF_MODE_ALL) {
		distinct.mode = ICF_MODE_SAFE;
		opt = &distinct;
	}
	if (prog->loose && opt->require_compact)
		return elfrw_error("nothing may move: %s (address 0x%llx)", prog->loose,
				   (unsigned long long)prog->loose_at);
	plan->cls = malloc((n + 1) * sizeof *plan->cls);
	plan->kept = malloc((n + 1) * sizeof *plan->kept);
	if (!plan->cls || !plan->kept)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < n; i++)
		plan->cls[i] = plan->kept[i] = i;
	if (opt->mode != ICF_MODE_NONE) {
		ELFRW_TRY(icf_partition(prog, opt, coarse, plan->cls, &plan->rounds));
		ELFRW_TRY(icf_choose_kept(prog, opt, plan));
		ELFRW_TRY(icf_keep_partners(prog, plan));
		if (plan->in_place)
			ELFRW_TRY(icf_keep_pads(prog, plan));
	}
	bool no_room;
	ELFRW_TRY(lay_out(prog, opt, plan, &no_room));
	return no_room ? without_thunks(prog, opt, plan) : NULL;
}

/* A plan in which all references reach. */
static struct elfrw_err *make(struct icf_program *prog, const struct icf_options *opt,
			      const uint32_t *coarse, bool no_frame_room, struct icf_plan *plan)
{
	struct elfrw_err *err = make_once(prog, opt, coarse, no_frame_room, plan);
	for (unsigned round = 0; !err && icf_pin_short(prog, plan, round); round++) {
		icf_plan_deinit(plan);
		err = make_once(prog, opt, coarse, no_frame_room, plan);
	}
	return err;
}

struct elfrw_err *icf_make_plan(struct icf_program *prog, const struct icf_options *opt,
				struct icf_plan *plan)
{
	return make(prog, opt, NULL, false, plan);
}

struct elfrw_err *icf_make_safe_plan(struct icf_program *prog, const struct icf_options *opt,
				     const struct icf_plan *all, struct icf_plan *plan)
{
	return make(prog, opt, all->cls, false, plan);
}

struct elfrw_err *icf_plan_less(struct icf_program *prog, const struct icf_options *opt,
				struct icf_plan *plan)
{
	if (plan->n_thunks) {
		ELFRW_TRY(without_thunks(prog, opt, plan));
		if (!icf_pin_short(prog, plan, 0))
			return NULL;
	}
	if (opt->require_compact)
		return elfrw_error(
			"nothing may move: there is no room for the frame descriptions of code that would move apart");
	/* Units that the plan had to keep may fold in place. */
	for (uint32_t i = 0; i < prog->unit.len; i++) {
		struct icf_unit *u = &prog->unit.data[i];
		if (u->reason == ICF_UNIQUE || u->reason == ICF_ADDRESS_OBSERVED ||
		    u->reason == ICF_PARTNER_STAYS)
			u->reason = ICF_OK;
	}
	icf_plan_deinit(plan);
	return make(prog, opt, NULL, true, plan);
}

struct elfrw_err *icf_plan_nothing(struct icf_program *prog, const struct icf_options *opt,
				   struct icf_plan *plan)
{
	struct icf_options none = *opt;
	none.mode = ICF_MODE_NONE;
	for (uint32_t i = 0; i < prog->unit.len; i++)
		if (prog->unit.data[i].reason == ICF_OK)
			prog->unit.data[i].reason = ICF_NOT_WORTH;
	icf_keep_unused(prog);
	icf_plan_deinit(plan);
	return make(prog, &none, NULL, false, plan);
}

void icf_plan_deinit(struct icf_plan *plan)
{
	free(plan->cls);
	free(plan->kept);
	elfrw_addrmap_deinit(&plan->map);
	*plan = (struct icf_plan){ 0 };
}
