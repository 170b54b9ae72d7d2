/* icfold_read.c: reads .debug_icfold.
 *
 * Everything but the overlay is decoded in one pass into flat arrays (about a millisecond for 50
 * 000 units).  The overlay is read from the place in a member's DIE entry.  Counts are believed
 * only up to what the part's bytes can hold.  Format: icfold-format(5). */
#include "dwarf/calls/icfold_note.h"
#include "dwarf/calls/icfold_layout.h"
#include "elfrw/base/vec.h"

#define SECTION ".debug_icfold"

struct reader {
	struct dwr_icfold *note;
	struct elfrw_rbuf part[NOTE_PARTS];
	uint64_t count[NOTE_PARTS];
	const uint8_t *last_nul; /* of the strings; NULL: none */
	VEC(struct dwr_icfold_group) group;
	VEC(struct dwr_icfold_member) member;
	VEC(const char *) name;
	VEC(struct dwr_icfold_die) die;
};

static struct elfrw_err *broken(const struct reader *rd, unsigned part, const char *what)
{
	return elfrw_error_at(SECTION, (uint64_t)(rd->part[part].pos - rd->note->data), "%s", what);
}

static struct elfrw_err *read_header(struct reader *rd)
{
	struct dwr_icfold *n = rd->note;
	struct elfrw_rbuf r = elfrw_rbuf(n->data, n->size);
	const uint8_t *magic = elfrw_rbuf_take(&r, 8);
	if (!magic || memcmp(magic, DWR_ICFOLD_MAGIC, 8))
		return elfrw_error_at(SECTION, 0, "not written by this program");
	unsigned version = elfrw_rbuf_u16(&r), header = elfrw_rbuf_u16(&r);
	if (version != DWR_ICFOLD_VERSION && version != DWR_ICFOLD_VERSION_REMOVED)
		return elfrw_error_at(SECTION, 8, "unknown version %u", version);
	n->version = version;
	uint32_t policy = elfrw_rbuf_u32(&r);
	n->policy = (enum dwr_policy)policy;
	n->artificial_unit = elfrw_rbuf_u64(&r);
	n->map.trap_byte = elfrw_rbuf_u64(&r);
	n->map.thunks = elfrw_rbuf_u64(&r);
	n->map.thunks_end = elfrw_rbuf_u64(&r);
	for (unsigned i = 0; i < dwr_note_parts(version); i++) {
		uint64_t off = elfrw_rbuf_u64(&r), size = elfrw_rbuf_u64(&r);
		rd->count[i] = elfrw_rbuf_u64(&r);
		if (!elfrw_rbuf_ok(&r) || header < dwr_note_header_size(version) || off > n->size ||
		    n->size - off < size || rd->count[i] > size || rd->count[i] >= UINT32_MAX)
			return elfrw_error_at(SECTION, NOTE_FIXED + 24 * i, "broken header");
		rd->part[i] = elfrw_rbuf(n->data + off, size);
		if (i == NOTE_OVERLAY) {
			n->overlay = off;
			n->overlay_size = size;
			n->n_overlay = rd->count[i];
		}
	}
	if (policy > DWR_FOLDED_DROP)
		return elfrw_error_at(SECTION, 12, "unknown policy %u", policy);
	const struct elfrw_rbuf *s = &rd->part[NOTE_STRINGS];
	rd->last_nul = s->pos == s->end ? NULL : memrchr(s->pos, 0, elfrw_rbuf_left(s));
	return NULL;
}

/* The string at OFF, or NULL.  Its length is not computed: names may be ends of each other, each as
 * long as all. */
static const char *string_at(const struct reader *rd, uint64_t off)
{
	const struct elfrw_rbuf *s = &rd->part[NOTE_STRINGS];
	if (!rd->last_nul || off > (uint64_t)(rd->last_nul - s->pos))
		return NULL;
	return (const char *)s->pos + off;
}

static struct elfrw_err *read_sections(struct reader *rd)
{
	struct elfrw_addrmap *map = &rd->note->map;
	struct elfrw_rbuf *r = &rd->part[NOTE_SECTIONS];
	map->section = calloc(rd->count[NOTE_SECTIONS] + 1, sizeof *map->section);
	if (!map->section)
		return &elfrw_err_nomem;
	uint64_t end = 0;
	for (; map->n_sections < rd->count[NOTE_SECTIONS]; map->n_sections++) {
		struct elfrw_addrmap_section *s = &map->section[map->n_sections];
		s->old = elfrw_rbuf_uleb(r);
		uint64_t size = elfrw_rbuf_uleb(r);
		s->old_end = s->old + size;
		s->new_start = elfrw_rbuf_uleb(r);
		s->new_end = s->new_start + elfrw_rbuf_uleb(r);
		s->shndx = (uint32_t)elfrw_rbuf_uleb(r);
		s->end_taken = elfrw_rbuf_u8(r) & 1;
		if (!elfrw_rbuf_ok(r) || s->old < end || s->old_end < s->old ||
		    s->old_end - map->section[0].old > ELFRW_BLOCKS_MAX)
			return broken(rd, NOTE_SECTIONS, "sections are not in order");
		end = s->old_end;
	}
	return NULL;
}

/* Is U, number I, removed?  *ODD: it is, with other flags or a copy. */
static bool is_removed(const struct elfrw_addrmap_unit *u, uint32_t i, bool *odd)
{
	bool removed = u->flags & ELFRW_UNIT_REMOVED;
	*odd = removed && (u->kept != i || !(u->flags & ELFRW_UNIT_FOLDED) ||
			   (u->flags & (ELFRW_UNIT_THUNK | ELFRW_UNIT_KEPT)));
	return removed;
}

/* Folded units are where their copies are; removed ones are nowhere. */
static struct elfrw_err *find_bodies(struct reader *rd)
{
	struct elfrw_addrmap *map = &rd->note->map;
	for (uint32_t i = 0; i < map->n_units; i++) {
		struct elfrw_addrmap_unit *u = &map->unit[i];
		bool odd, removed = is_removed(u, i, &odd);
		if (odd)
			return broken(rd, NOTE_MAP, "unit that is removed, and is not");
		if (!(u->flags & ELFRW_UNIT_FOLDED) || removed)
			continue;
		const struct elfrw_addrmap_unit *kept = &map->unit[u->kept];
		if (kept->flags & ELFRW_UNIT_FOLDED)
			return broken(rd, NOTE_MAP, "unit folded into a folded one");
		u->body = kept->body;
		if (!(u->flags & ELFRW_UNIT_THUNK))
			u->entry = u->body;
	}
	return NULL;
}

static struct elfrw_err *read_map(struct reader *rd)
{
	struct elfrw_addrmap *map = &rd->note->map;
	struct elfrw_rbuf *r = &rd->part[NOTE_MAP];
	uint32_t n = (uint32_t)rd->count[NOTE_MAP];
	map->unit = calloc((size_t)n + 1, sizeof *map->unit);
	if (!map->unit)
		return &elfrw_err_nomem;
	struct elfrw_addrmap_unit *unit = map->unit;
	uint64_t old_end = 0, shift = 0, thunk_end = map->thunks;
	struct elfrw_rbuf sizes = *r;
	for (uint32_t i = 0; i < n; i++)
		elfrw_rbuf_uleb(&sizes);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t gap = elfrw_rbuf_uleb(r);
		unit[i].old = old_end + (gap ? gap - 1 : dwr_note_usual_gap(old_end));
		unit[i].old_end = unit[i].old + elfrw_rbuf_uleb(&sizes);
		if (!elfrw_rbuf_ok(&sizes) || unit[i].old < old_end ||
		    unit[i].old_end < unit[i].old)
			return broken(rd, NOTE_MAP, "units are not in order");
		old_end = unit[i].old_end;
	}
	*r = sizes;
	for (uint32_t i = 0; i < n; i++)
		unit[i].flags = elfrw_rbuf_u8(r);
	for (uint32_t i = 0; i < n; i++) {
		unit[i].kept = i;
		if (!(unit[i].flags & ELFRW_UNIT_FOLDED)) {
			shift += (uint64_t)elfrw_rbuf_sleb(r);
			unit[i].body = unit[i].entry = unit[i].old + shift;
			continue;
		}
		uint64_t kept = i + (uint64_t)elfrw_rbuf_sleb(r);
		if (kept >= n)
			return broken(rd, NOTE_MAP, "unit folded into one that is not there");
		unit[i].kept = (uint32_t)kept;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!(unit[i].flags & ELFRW_UNIT_FOLDED) || !(unit[i].flags & ELFRW_UNIT_THUNK))
			continue;
		unit[i].entry = thunk_end + (uint64_t)elfrw_rbuf_sleb(r);
		unit[i].thunk_size = (uint32_t)elfrw_rbuf_uleb(r);
		thunk_end = unit[i].entry + unit[i].thunk_size;
	}
	map->n_units = n;
	ELFRW_TRY(find_bodies(rd));
	return elfrw_rbuf_ok(r) ? elfrw_addrmap_finish(map) : broken(rd, NOTE_MAP, "cut off");
}

/* Appends the names of one unit, which follow in part PART; *RET: how many. */
static struct elfrw_err *read_names(struct reader *rd, unsigned part, uint32_t *ret)
{
	struct elfrw_rbuf *r = &rd->part[part];
	uint64_t n = elfrw_rbuf_uleb(r);
	if (n > elfrw_rbuf_left(r))
		return broken(rd, part, "cut off");
	*ret = (uint32_t)n;
	while (n--) {
		const char *name = string_at(rd, elfrw_rbuf_uleb(r)), **slot = VEC_PUSH(&rd->name);
		if (!name)
			return broken(rd, part, "name outside of the strings");
		if (!slot)
			return &elfrw_err_nomem;
		*slot = name;
	}
	return NULL;
}

/* The names of the units that the map says are removed. */
static struct elfrw_err *read_removed(struct reader *rd)
{
	struct dwr_icfold *n = rd->note;
	uint64_t count = rd->count[NOTE_REMOVED];
	n->removed = calloc(count + 1, sizeof *n->removed);
	if (!n->removed)
		return &elfrw_err_nomem;
	for (uint32_t i = 0; i < n->map.n_units; i++) {
		if (!(n->map.unit[i].flags & ELFRW_UNIT_REMOVED))
			continue;
		if (n->n_removed == count)
			return broken(rd, NOTE_REMOVED, "fewer than the map says");
		struct dwr_icfold_removed *x = &n->removed[n->n_removed++];
		*x = (struct dwr_icfold_removed){ .unit = i, .name = (uint32_t)rd->name.len };
		ELFRW_TRY(read_names(rd, NOTE_REMOVED, &x->n_names));
	}
	return n->n_removed == count && elfrw_rbuf_ok(&rd->part[NOTE_REMOVED])
		       ? NULL
		       : broken(rd, NOTE_REMOVED, "not as many as the map says");
}

static struct elfrw_err *read_member(struct reader *rd, uint32_t unit)
{
	struct elfrw_rbuf *r = &rd->part[NOTE_GROUPS];
	if (unit >= rd->note->map.n_units || rd->note->unit_member[unit] != UINT32_MAX)
		return broken(rd, NOTE_GROUPS, "member is no unit, or in two groups");
	rd->note->unit_member[unit] = (uint32_t)rd->member.len;
	struct dwr_icfold_member *m = VEC_PUSH(&rd->member);
	if (!m)
		return &elfrw_err_nomem;
	m->unit = unit;
	m->group = (uint32_t)rd->group.len - 1;
	m->name = (uint32_t)rd->name.len;
	m->die = (uint32_t)rd->die.len;
	ELFRW_TRY(read_names(rd, NOTE_GROUPS, &m->n_names));
	uint64_t n = elfrw_rbuf_uleb(r);
	if (n > elfrw_rbuf_left(r))
		return broken(rd, NOTE_GROUPS, "cut off");
	m->n_dies = 0;
	m->stand_in = 0;
	while (n--) {
		struct dwr_icfold_die d;
		d.die = elfrw_rbuf_uleb(r);
		d.overlay = elfrw_rbuf_uleb(r) - 1;
		if (d.overlay != UINT64_MAX && d.overlay >= rd->note->overlay_size)
			return broken(rd, NOTE_GROUPS, "place outside of the overlay");
		/* The artificial unit is the last one. */
		if (d.die >= rd->note->artificial_unit) {
			if (m->stand_in || d.overlay != UINT64_MAX)
				return broken(rd, NOTE_GROUPS, "two DIEs, or ranges, stand in");
			m->stand_in = d.die;
			continue;
		}
		struct dwr_icfold_die *slot = VEC_PUSH(&rd->die);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = d;
		m->n_dies++;
	}
	m->rows.status = (uint8_t)elfrw_rbuf_uleb(r);
	if (m->rows.status > DWR_NOTE_ROWS_OWN)
		return broken(rd, NOTE_GROUPS, "unknown kind of line rows");
	if (m->rows.status == DWR_NOTE_ROWS_OWN) {
		m->rows.n_seqs = (uint32_t)elfrw_rbuf_uleb(r);
		m->rows.seq = elfrw_rbuf_uleb(r);
	}
	return elfrw_rbuf_ok(r) ? NULL : broken(rd, NOTE_GROUPS, "cut off");
}

static struct elfrw_err *read_groups(struct reader *rd)
{
	struct elfrw_rbuf *r = &rd->part[NOTE_GROUPS];
	uint32_t n_units = rd->note->map.n_units;
	rd->note->unit_member = malloc(((size_t)n_units + 1) * sizeof *rd->note->unit_member);
	if (!rd->note->unit_member)
		return &elfrw_err_nomem;
	memset(rd->note->unit_member, 0xff, ((size_t)n_units + 1) * sizeof *rd->note->unit_member);
	uint64_t kept = 0;
	for (uint64_t i = 0; i < rd->count[NOTE_GROUPS]; i++) {
		kept += elfrw_rbuf_uleb(r);
		uint64_t n = elfrw_rbuf_uleb(r);
		struct dwr_icfold_group *g = VEC_PUSH(&rd->group);
		if (!g)
			return &elfrw_err_nomem;
		if (!elfrw_rbuf_ok(r) || kept >= n_units || n >= n_units)
			return broken(rd, NOTE_GROUPS, "broken group");
		*g = (struct dwr_icfold_group){ (uint32_t)rd->member.len, (uint32_t)n + 1 };
		ELFRW_TRY(read_member(rd, (uint32_t)kept));
		uint64_t unit = kept;
		while (n--) {
			unit += (uint64_t)elfrw_rbuf_sleb(r);
			if (unit >= n_units || rd->note->map.unit[unit].kept != kept)
				return broken(rd, NOTE_GROUPS,
					      "member that the map folds elsewhere");
			ELFRW_TRY(read_member(rd, (uint32_t)unit));
		}
	}
	return NULL;
}

static struct elfrw_err *read_vslots(struct reader *rd)
{
	struct elfrw_rbuf *r = &rd->part[NOTE_VSLOTS];
	struct dwr_icfold *n = rd->note;
	n->vslot = calloc(rd->count[NOTE_VSLOTS] + 1, sizeof *n->vslot);
	if (!n->vslot)
		return &elfrw_err_nomem;
	uint64_t slot = 0;
	for (; n->n_vslots < rd->count[NOTE_VSLOTS]; n->n_vslots++) {
		uint64_t delta = elfrw_rbuf_uleb(r), unit = elfrw_rbuf_uleb(r);
		if (!elfrw_rbuf_ok(r) || unit >= n->map.n_units || slot + delta < slot)
			return broken(rd, NOTE_VSLOTS, "broken vtable slot");
		slot += delta;
		n->vslot[n->n_vslots] = (struct dwr_vslot){ slot, (uint32_t)unit };
	}
	return NULL;
}

struct elfrw_err *dwr_icfold_read(struct dwr_icfold *ret, const uint8_t *data, size_t size)
{
	struct dwr_icfold note = { .data = data, .size = size };
	struct reader rd = { .note = &note };
	struct elfrw_err *err = read_header(&rd);
	if (!err)
		err = read_sections(&rd);
	if (!err)
		err = read_map(&rd);
	if (!err)
		err = read_groups(&rd);
	if (!err)
		err = read_vslots(&rd);
	if (!err)
		err = read_removed(&rd);
	note.group = rd.group.data;
	note.n_groups = rd.group.len;
	note.member = rd.member.data;
	note.n_members = rd.member.len;
	note.names = rd.name.data;
	note.n_names = rd.name.len;
	note.dies = rd.die.data;
	note.n_dies = rd.die.len;
	if (err)
		dwr_icfold_deinit(&note);
	else
		*ret = note;
	return err;
}

void dwr_icfold_deinit(struct dwr_icfold *note)
{
	elfrw_addrmap_deinit(&note->map);
	free(note->group);
	free(note->member);
	free(note->names);
	free(note->dies);
	free(note->vslot);
	free(note->removed);
	free(note->unit_member);
	memset(note, 0, sizeof *note);
}

struct dwr_icfold_walk dwr_icfold_overlay(const struct dwr_icfold *note)
{
	return (struct dwr_icfold_walk){ .r = elfrw_rbuf(note->data + note->overlay,
							 note->overlay_size),
					 .base = note->data,
					 .n_units = note->map.n_units };
}

struct dwr_icfold_walk dwr_icfold_overlay_at(const struct dwr_icfold *note,
					     const struct dwr_icfold_die *die)
{
	struct dwr_icfold_walk w = dwr_icfold_overlay(note);
	if (die->overlay == UINT64_MAX)
		w.r.pos = w.r.end;
	else
		elfrw_rbuf_seek(&w.r, die->overlay);
	return w;
}

struct elfrw_err *dwr_icfold_overlay_next(struct dwr_icfold_walk *walk,
					  struct dwr_icfold_entry *ret, bool *more)
{
	struct elfrw_rbuf *r = &walk->r;
	uint64_t at = (uint64_t)(r->pos - walk->base);
	*more = false;
	if (!elfrw_rbuf_left(r))
		return NULL;
	uint64_t head = elfrw_rbuf_uleb(r), delta = elfrw_rbuf_uleb(r);
	if (head & 1)
		walk->die = walk->unit = 0;
	walk->die += delta;
	if (!elfrw_rbuf_ok(r) || head >> 1 > elfrw_rbuf_left(r))
		return elfrw_error_at(SECTION, at, "broken overlay entry");
	*ret = (struct dwr_icfold_entry){ .die = walk->die,
					  .n_ranges = (uint32_t)(head >> 1),
					  .ranges = *r,
					  .unit = walk->unit };
	for (uint64_t i = 0; i < head >> 1; i++) {
		walk->unit += (uint64_t)elfrw_rbuf_sleb(r);
		elfrw_rbuf_uleb(r);
		elfrw_rbuf_uleb(r);
		if (!elfrw_rbuf_ok(r) || walk->unit >= walk->n_units)
			return elfrw_error_at(SECTION, at, "broken overlay entry");
	}
	ret->ranges.end = r->pos;
	*more = true;
	return NULL;
}

bool dwr_icfold_range_next(struct dwr_icfold_entry *entry, struct dwr_note_range *ret)
{
	struct elfrw_rbuf *r = &entry->ranges;
	if (!elfrw_rbuf_left(r))
		return false;
	entry->unit += (uint64_t)elfrw_rbuf_sleb(r);
	*ret = (struct dwr_note_range){ .die = entry->die, .unit = (uint32_t)entry->unit };
	ret->start = elfrw_rbuf_uleb(r);
	ret->len = elfrw_rbuf_uleb(r);
	return elfrw_rbuf_ok(r);
}
