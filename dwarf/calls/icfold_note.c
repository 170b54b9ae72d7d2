/* icfold_note.c: writes .debug_icfold.
 *
 * The section has one header of fixed size, then parts of LEB128 numbers.  Numbers whose neighbours
 * are similar are deltas: a unit that moved with the one before it costs five bytes, or one and a
 * half if the section is compressed.  The overlay is the largest part.  Entries that a member
 * refers to can be read on their own.  Format: icfold-format(5). */
#include "dwarf/calls/icfold_note.h"
#include "dwarf/calls/icfold_layout.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/base/vec.h"
#include "elfrw/base/wbuf.h"

static void write_sections(struct elfrw_wbuf *w, const struct elfrw_addrmap *map)
{
	for (uint32_t i = 0; i < map->n_sections; i++) {
		const struct elfrw_addrmap_section *s = &map->section[i];
		elfrw_wbuf_uleb(w, s->old);
		elfrw_wbuf_uleb(w, s->old_end - s->old);
		elfrw_wbuf_uleb(w, s->new_start);
		elfrw_wbuf_uleb(w, s->new_end - s->new_start);
		elfrw_wbuf_uleb(w, s->shndx);
		elfrw_wbuf_u8(w, s->end_taken);
	}
}

/* Column by column, with gaps relative to those of aligned code.  Nearly all numbers except sizes
 * are then 0, and compress to nothing. */
static void write_map(struct elfrw_wbuf *w, const struct elfrw_addrmap *map)
{
	const struct elfrw_addrmap_unit *unit = map->unit;
	uint64_t old_end = 0, shift = 0, thunk_end = map->thunks;
	for (uint32_t i = 0; i < map->n_units; i++) {
		uint64_t gap = unit[i].old - old_end;
		elfrw_wbuf_uleb(w, gap == dwr_note_usual_gap(old_end) ? 0 : gap + 1);
		old_end = unit[i].old_end;
	}
	for (uint32_t i = 0; i < map->n_units; i++)
		elfrw_wbuf_uleb(w, unit[i].old_end - unit[i].old);
	for (uint32_t i = 0; i < map->n_units; i++)
		elfrw_wbuf_u8(w, unit[i].flags);
	for (uint32_t i = 0; i < map->n_units; i++) {
		if (unit[i].flags & ELFRW_UNIT_FOLDED) {
			elfrw_wbuf_sleb(w, (int64_t)unit[i].kept - (int64_t)i);
			continue;
		}
		elfrw_wbuf_sleb(w, (int64_t)(unit[i].body - unit[i].old - shift));
		shift = unit[i].body - unit[i].old;
	}
	for (uint32_t i = 0; i < map->n_units; i++) {
		if (!(unit[i].flags & ELFRW_UNIT_THUNK))
			continue;
		elfrw_wbuf_sleb(w, (int64_t)(unit[i].entry - thunk_end));
		elfrw_wbuf_uleb(w, unit[i].thunk_size);
		thunk_end = unit[i].entry + unit[i].thunk_size;
	}
}

/* A string of the input in which names begin.  Linkers let names share their ends, and as many
 * names may do so as the string has bytes.  So the string is written once, with its first name. */
struct string {
	const char *start;
	size_t size;  /* with the zero */
	uint64_t off; /* where it was written, UINT64_MAX: not yet */
};

/* State for writing groups, in addition to the input. */
struct groups {
	const struct dwr_note_in *in;
	struct elfrw_wbuf strings;
	VEC(struct string) string; /* sorted by start */
	const uint64_t
		*entry_at; /* by index of a DIE's first range: the place of its overlay entry */
};

static size_t first_die(const struct dwr_note_in *in, uint32_t unit)
{
	return LOWER_BOUND(0, in->n_dies, mid, in->die[mid].unit < unit);
}

static size_t first_alias(const struct dwr_rewrite_in *rw, uint32_t unit)
{
	return LOWER_BOUND(0, rw->n_aliases, mid, rw->alias[mid].unit < unit);
}

/* The place of DIE's overlay entry, or UINT64_MAX. */
static uint64_t overlay_of(const struct groups *g, uint64_t die)
{
	size_t lo = LOWER_BOUND(0, g->in->n_ranges, mid, g->in->range[mid].die < die);
	return lo < g->in->n_ranges && g->in->range[lo].die == die ? g->entry_at[lo] : UINT64_MAX;
}

/* Fills g->string. */
static struct elfrw_err *find_strings(struct groups *g)
{
	const struct dwr_rewrite_in *rw = g->in->rw;
	VEC(uint64_t) at = { 0 };
	if (!VEC_RESERVE(&at, 2 * (size_t)rw->map->n_units + rw->n_aliases + 1))
		return &elfrw_err_nomem;
	for (uint32_t i = 0; rw->unit_name && i < rw->map->n_units; i++) {
		uint32_t kept = rw->map->unit[i].kept;
		if (!(rw->map->unit[i].flags & ELFRW_UNIT_FOLDED))
			continue;
		/* `kept` of a removed unit is the unit itself. */
		if (rw->unit_name[i])
			at.data[at.len++] = (uintptr_t)rw->unit_name[i];
		if (rw->unit_name[kept])
			at.data[at.len++] = (uintptr_t)rw->unit_name[kept];
	}
	for (size_t i = 0; i < rw->n_aliases; i++)
		at.data[at.len++] = (uintptr_t)rw->alias[i].name;
	if (at.len)
		qsort(at.data, at.len, sizeof *at.data, elfrw_u64_order);
	struct elfrw_err *err = NULL;
	for (size_t i = 0; i < at.len && !err; i++) {
		const char *s = (const char *)(uintptr_t)at.data[i];
		struct string *last = g->string.len ? &g->string.data[g->string.len - 1] : NULL;
		if (last && (uintptr_t)s - (uintptr_t)last->start < last->size)
			continue;
		struct string *slot = VEC_PUSH(&g->string);
		if (slot)
			*slot = (struct string){ s, strlen(s) + 1, UINT64_MAX };
		else
			err = &elfrw_err_nomem;
	}
	VEC_FREE(&at);
	return err;
}

static void write_name(struct elfrw_wbuf *w, struct groups *g, const char *name)
{
	size_t i = LOWER_BOUND(0, g->string.len, mid,
			       (uintptr_t)g->string.data[mid].start <= (uintptr_t)name);
	struct string *s = &g->string.data[i - 1];
	if (s->off == UINT64_MAX) {
		s->off = g->strings.len;
		elfrw_wbuf_bytes(&g->strings, s->start, s->size);
	}
	elfrw_wbuf_uleb(w, s->off + (uint64_t)(name - s->start));
}

static void write_names(struct elfrw_wbuf *w, struct groups *g, uint32_t unit)
{
	const struct dwr_note_in *in = g->in;
	const char *name = in->rw->unit_name ? in->rw->unit_name[unit] : NULL;
	size_t a = first_alias(in->rw, unit), a_end = a;
	while (a_end < in->rw->n_aliases && in->rw->alias[a_end].unit == unit)
		a_end++;
	elfrw_wbuf_uleb(w, (name != NULL) + (a_end - a));
	/* The name that the input's symbolizers print comes first: readers print the first one. */
	for (size_t k = a; k < a_end; k++)
		if (in->rw->alias[k].shown)
			write_name(w, g, in->rw->alias[k].name);
	if (name)
		write_name(w, g, name);
	for (; a < a_end; a++)
		if (!in->rw->alias[a].shown)
			write_name(w, g, in->rw->alias[a].name);
}

static void write_member(struct elfrw_wbuf *w, struct groups *g, uint32_t unit)
{
	const struct dwr_note_in *in = g->in;
	write_names(w, g, unit);
	size_t d = first_die(in, unit), d_end = d;
	while (d_end < in->n_dies && in->die[d_end].unit == unit)
		d_end++;
	elfrw_wbuf_uleb(w, d_end - d);
	for (; d < d_end; d++) {
		elfrw_wbuf_uleb(w, in->die[d].die);
		elfrw_wbuf_uleb(w, overlay_of(g, in->die[d].die) + 1); /* none: 0 */
	}
	static const struct dwr_note_rows none = { 0 };
	const struct dwr_note_rows *rows = in->rows ? &in->rows[unit] : &none;
	elfrw_wbuf_uleb(w, rows->status);
	if (rows->status == DWR_NOTE_ROWS_OWN) {
		elfrw_wbuf_uleb(w, rows->n_seqs);
		elfrw_wbuf_uleb(w, rows->seq);
	}
}

static bool is_folded(const struct elfrw_addrmap *map, uint32_t unit)
{
	return (map->unit[unit].flags & (ELFRW_UNIT_FOLDED | ELFRW_UNIT_REMOVED)) ==
	       ELFRW_UNIT_FOLDED;
}

/* The names of the removed units, in the order of the map. */
static uint64_t write_removed(struct elfrw_wbuf *w, struct groups *g)
{
	const struct elfrw_addrmap *map = g->in->rw->map;
	uint64_t n = 0;
	for (uint32_t i = 0; i < map->n_units; i++)
		if (map->unit[i].flags & ELFRW_UNIT_REMOVED) {
			write_names(w, g, i);
			n++;
		}
	return n;
}

/* Groups in the order of their kept units; in a group the kept unit first, then the folded ones in
 * address order. */
static struct elfrw_err *write_groups(struct elfrw_wbuf *w, struct groups *g, uint64_t *n_groups)
{
	const struct elfrw_addrmap *map = g->in->rw->map;
	/* A counting sort of the folded units by their kept units: group i is then [start[i],
	 * start[i + 1]). */
	uint32_t *start = calloc((size_t)map->n_units + 2, sizeof *start);
	uint32_t *member = malloc(((size_t)map->n_units + 1) * sizeof *member);
	if (!start || !member) {
		free(start);
		free(member);
		return &elfrw_err_nomem;
	}
	for (uint32_t i = 0; i < map->n_units; i++)
		if (is_folded(map, i))
			start[map->unit[i].kept + 2]++;
	for (uint32_t i = 2; i < map->n_units + 2; i++)
		start[i] += start[i - 1];
	for (uint32_t i = 0; i < map->n_units; i++)
		if (is_folded(map, i))
			member[start[map->unit[i].kept + 1]++] = i;
	uint32_t prev = 0;
	for (uint32_t i = 0; i < map->n_units; i++) {
		if (start[i] == start[i + 1])
			continue;
		elfrw_wbuf_uleb(w, i - prev);
		elfrw_wbuf_uleb(w, start[i + 1] - start[i]);
		prev = i;
		++*n_groups;
		write_member(w, g, i);
		uint32_t before = i;
		for (uint32_t k = start[i]; k < start[i + 1]; k++) {
			elfrw_wbuf_sleb(w, (int64_t)member[k] - (int64_t)before);
			before = member[k];
			write_member(w, g, member[k]);
		}
	}
	free(start);
	free(member);
	return NULL;
}

static void write_vslots(struct elfrw_wbuf *w, const struct dwr_rewrite_in *rw)
{
	uint64_t prev = 0;
	for (size_t i = 0; i < rw->n_vslots; i++) {
		elfrw_wbuf_uleb(w, rw->vslot[i].slot - prev);
		elfrw_wbuf_uleb(w, rw->vslot[i].unit);
		prev = rw->vslot[i].slot;
	}
}

/* Writes the overlay; ENTRY_AT has an element for each range of IN. */
static struct elfrw_err *write_overlay(struct elfrw_wbuf *w, const struct dwr_note_in *in,
				       uint64_t *entry_at, uint64_t *n_entries)
{
	uint64_t *function = malloc((in->n_dies + 1) * sizeof *function);
	if (!function)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < in->n_dies; i++)
		function[i] = in->die[i].die;
	qsort(function, in->n_dies, sizeof *function, elfrw_u64_order);
	uint64_t prev = 0, unit = 0;
	size_t f = 0;
	for (size_t i = 0, end; i < in->n_ranges; i = end) {
		uint64_t die = in->range[i].die;
		for (end = i + 1; end < in->n_ranges && in->range[end].die == die; end++)
			;
		while (f < in->n_dies && function[f] < die)
			f++;
		bool alone = f < in->n_dies && function[f] == die;
		if (alone)
			prev = unit = 0;
		entry_at[i] = w->len;
		elfrw_wbuf_uleb(w, (uint64_t)(end - i) << 1 | alone);
		elfrw_wbuf_uleb(w, die - prev);
		prev = die;
		++*n_entries;
		for (size_t k = i; k < end; k++) {
			elfrw_wbuf_sleb(w, (int64_t)(in->range[k].unit - unit));
			unit = in->range[k].unit;
			elfrw_wbuf_uleb(w, in->range[k].start);
			elfrw_wbuf_uleb(w, in->range[k].len);
		}
	}
	free(function);
	return NULL;
}

/* Does each folded unit of the map lead to a kept one? */
static struct elfrw_err *check_map(const struct elfrw_addrmap *map)
{
	for (uint32_t i = 0; i < map->n_units; i++)
		if (is_folded(map, i) && (map->unit[i].kept >= map->n_units ||
					  map->unit[map->unit[i].kept].flags & ELFRW_UNIT_FOLDED))
			return elfrw_error(
				"unit %u of the address map is folded into what is no kept unit",
				i);
	return NULL;
}

/* The parts of a note, by their number in the header. */
struct parts {
	struct elfrw_wbuf part[NOTE_PARTS];
	uint64_t count[NOTE_PARTS];
};

static struct elfrw_err *make_parts(const struct dwr_note_in *in, struct groups *g,
				    uint64_t *entry_at, struct parts *p)
{
	const struct elfrw_addrmap *map = in->rw->map;
	ELFRW_TRY(check_map(map));
	ELFRW_TRY(write_overlay(&p->part[NOTE_OVERLAY], in, entry_at, &p->count[NOTE_OVERLAY]));
	ELFRW_TRY(find_strings(g));
	ELFRW_TRY(write_groups(&p->part[NOTE_GROUPS], g, &p->count[NOTE_GROUPS]));
	p->count[NOTE_REMOVED] = write_removed(&p->part[NOTE_REMOVED], g);
	write_sections(&p->part[NOTE_SECTIONS], map);
	p->count[NOTE_SECTIONS] = map->n_sections;
	write_map(&p->part[NOTE_MAP], map);
	p->count[NOTE_MAP] = map->n_units;
	write_vslots(&p->part[NOTE_VSLOTS], in->rw);
	p->count[NOTE_VSLOTS] = in->rw->n_vslots;
	p->part[NOTE_STRINGS] = g->strings;
	memset(&g->strings, 0, sizeof g->strings);
	return NULL;
}

/* The header, and the parts behind it. */
static void join_parts(const struct dwr_note_in *in, const struct parts *p, struct elfrw_wbuf *w)
{
	const struct elfrw_addrmap *map = in->rw->map;
	unsigned version = p->count[NOTE_REMOVED] ? DWR_ICFOLD_VERSION_REMOVED : DWR_ICFOLD_VERSION;
	elfrw_wbuf_bytes(w, DWR_ICFOLD_MAGIC, 8);
	elfrw_wbuf_u16(w, (uint16_t)version);
	elfrw_wbuf_u16(w, (uint16_t)dwr_note_header_size(version));
	elfrw_wbuf_u32(w, in->rw->policy);
	elfrw_wbuf_u64(w, in->artificial_unit);
	elfrw_wbuf_u64(w, map->trap_byte);
	elfrw_wbuf_u64(w, map->thunks);
	elfrw_wbuf_u64(w, map->thunks_end);
	uint64_t off = dwr_note_header_size(version);
	for (unsigned i = 0; i < dwr_note_parts(version); i++) {
		elfrw_wbuf_u64(w, off);
		elfrw_wbuf_u64(w, p->part[i].len);
		elfrw_wbuf_u64(w, p->count[i]);
		off += p->part[i].len;
	}
	for (unsigned i = 0; i < dwr_note_parts(version); i++) {
		w->bad |= p->part[i].bad;
		elfrw_wbuf_bytes(w, p->part[i].data, p->part[i].len);
	}
}

struct elfrw_err *dwr_note_write(const struct dwr_note_in *in, uint8_t **ret, size_t *ret_size)
{
	uint64_t *entry_at = malloc((in->n_ranges + 1) * sizeof *entry_at);
	struct groups g = { .in = in, .entry_at = entry_at };
	struct parts p = { 0 };
	struct elfrw_wbuf w = { 0 };
	if (!entry_at)
		return &elfrw_err_nomem;
	struct elfrw_err *err = make_parts(in, &g, entry_at, &p);
	if (!err)
		join_parts(in, &p, &w);
	if (!err && w.bad)
		err = &elfrw_err_nomem;
	if (!err) {
		*ret_size = w.len;
		*ret = elfrw_wbuf_take(&w);
	}
	elfrw_wbuf_free(&w);
	elfrw_wbuf_free(&g.strings);
	VEC_FREE(&g.string);
	for (unsigned i = 0; i < NOTE_PARTS; i++)
		elfrw_wbuf_free(&p.part[i]);
	free(entry_at);
	return err;
}
