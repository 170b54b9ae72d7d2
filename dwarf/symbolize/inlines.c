/* inlines.c: finds where a function was inlined.
 *
 * One walk over all units sees only entries with code.  Names show whether an inlined copy is of
 * the function in question, once for each origin in the cache of declarations.  Copies in folded
 * functions have lost their ranges to the note's overlay, which lists DIEs in the order of this
 * walk. */
#include "dwarf/symbolize/state.h"
#include <dwarf.h>

/* An entry around the current one; see func.c. */
struct open_entry {
	uint64_t end, outer, caller; /* DIEs: the function, and the function or copy, that it is in;
					UINT64_MAX: none */
	uint32_t depth;
};

struct search {
	struct dwr_sym *sym;
	const char *function;
	bool (*fn)(void *ctx, const struct dwr_sym_inline *item);
	void *ctx;
	struct dwr_sym_unit *unit;
	struct dwr_abbrev_table table; /* owned */
	VEC(struct open_entry) open;   /* owned */
	struct dwr_spans ranges;       /* owned; id: member */
	struct dwr_icfold_walk walk;
	struct dwr_icfold_entry entry;
	bool more; /* entry is one */
	bool stop;
};

/* Does DECL name the function in question?  Demangled names count with and without parameters. */
static bool matches(const struct search *s, const struct dwr_sym_decl *decl)
{
	if ((decl->name && !strcmp(decl->name, s->function)) ||
	    (decl->linkage && !strcmp(decl->linkage, s->function)))
		return true;
	if (!decl->name || !decl->linkage || !strstr(s->function, decl->name))
		return false;
	const char *full = dwr_sym_demangle(s->sym, decl->linkage);
	size_t n = strlen(s->function);
	return !strncmp(full, s->function, n) && (!full[n] || full[n] == '(');
}

static const char *name_of(const struct dwr_sym_decl *decl)
{
	return decl->linkage ? decl->linkage : decl->name;
}

static const char *name_at(struct search *s, uint64_t off)
{
	struct dwr_sym_die die;
	struct dwr_sym_decl decl;
	if (off == UINT64_MAX || !dwr_sym_die_read(s->sym, s->unit, off, &die))
		return NULL;
	dwr_sym_die_decl(s->sym, &die, &decl);
	return name_of(&decl);
}

/* The ranges of DIE in s->ranges. */
static struct elfrw_err *find_ranges(struct search *s, const struct dwr_sym_die *die)
{
	s->ranges.len = 0;
	const struct dwr_sym_extent extent = { &die->low, &die->high, &die->ranges };
	ELFRW_TRY(dwr_sym_ranges(s->sym, s->unit, &extent, UINT32_MAX, &s->ranges));
	while (s->more && s->entry.die < die->off)
		ELFRW_TRY(dwr_icfold_overlay_next(&s->walk, &s->entry, &s->more));
	if (!s->more || s->entry.die != die->off)
		return NULL;
	struct dwr_icfold_entry entry = s->entry;
	struct dwr_note_range r;
	const struct dwr_icfold *note = &s->sym->note;
	while (dwr_icfold_range_next(&entry, &r)) {
		uint64_t lo = note->map.unit[r.unit].body + r.start;
		ELFRW_TRY(dwr_spans_add(&s->ranges, lo, lo + r.len, note->unit_member[r.unit]));
	}
	return NULL;
}

static struct elfrw_err *report(struct search *s, const struct dwr_sym_die *die,
				const struct dwr_sym_decl *decl, const struct open_entry *around)
{
	struct dwr_sym_inline item = { .unit = s->unit->u.off,
				       .name = name_of(decl),
				       .decl_file = decl->file,
				       .decl_line = decl->line };
	item.call_file =
		die->call_file.form ? dwr_sym_file_name(s->sym, s->unit, die->call_file.u) : NULL;
	item.call_line = (uint32_t)die->call_line.u;
	item.call_column = (uint32_t)die->call_column.u;
	item.caller = around ? name_at(s, around->caller) : NULL;
	item.outer = around ? name_at(s, around->outer) : NULL;
	ELFRW_TRY(find_ranges(s, die));
	for (size_t i = 0; i < s->ranges.len && !s->stop; i++) {
		item.low = s->ranges.data[i].lo;
		item.high = s->ranges.data[i].hi;
		item.member = (uint32_t)s->ranges.data[i].id;
		s->stop = !s->fn(s->ctx, &item);
	}
	return NULL;
}

static struct elfrw_err *visit(struct search *s, const struct dwr_die *at)
{
	while (s->open.len && (s->open.data[s->open.len - 1].depth >= at->depth ||
			       s->open.data[s->open.len - 1].end <= at->off))
		s->open.len--;
	const struct open_entry *around = s->open.len ? &s->open.data[s->open.len - 1] : NULL;
	bool copy = at->abbrev->tag == DW_TAG_inlined_subroutine;
	struct dwr_sym_die die;
	struct dwr_sym_decl decl;
	if (copy && dwr_sym_die_read(s->sym, s->unit, at->off, &die)) {
		dwr_sym_die_decl(s->sym, &die, &decl);
		if (matches(s, &decl))
			ELFRW_TRY(report(s, &die, &decl, around));
	}
	if (!at->abbrev->children)
		return NULL;
	const struct dwr_value *sibling = dwr_die_value(at, DW_AT_sibling);
	struct open_entry e =
		around ? *around : (struct open_entry){ UINT64_MAX, UINT64_MAX, UINT64_MAX, 0 };
	uint64_t end = sibling ? dwr_sym_local_ref(s->unit, sibling) : UINT64_MAX;
	if (end != UINT64_MAX && end > at->off)
		e.end = end;
	e.depth = at->depth;
	if (at->abbrev->tag == DW_TAG_subprogram)
		e.outer = e.caller = at->off;
	else if (copy)
		e.caller = at->off;
	struct open_entry *slot = VEC_PUSH(&s->open);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = e;
	return NULL;
}

static struct elfrw_err *search_unit(struct search *s, uint64_t off)
{
	bool more;
	struct dwr_die die;
	ELFRW_TRY(dwr_sym_unit_at(s->sym, s->sym->debug, off, &s->unit));
	if (!s->unit)
		return NULL;
	s->open.len = 0;
	struct elfrw_err *err = dwr_sym_abbrev_read(s->sym, s->unit, &s->table);
	if (err)
		return dwr_sym_warn(s->sym, err);
	struct dwr_cursor cur = dwr_cursor_at(&s->unit->file->secs, &s->unit->u, &s->table, false);
	while (!s->stop) {
		err = dwr_cursor_next(&cur, &die, &more);
		if (err)
			return dwr_sym_warn(s->sym, err);
		if (!more)
			break;
		ELFRW_TRY(visit(s, &die));
	}
	return NULL;
}

struct elfrw_err *dwr_sym_inlines(struct dwr_sym *sym, const char *function,
				  bool (*fn)(void *ctx, const struct dwr_sym_inline *item),
				  void *ctx)
{
	struct search s = { .sym = sym, .function = function, .fn = fn, .ctx = ctx };
	struct elfrw_err *err = dwr_sym_all_units(sym, sym->debug);
	const struct dwr_icfold *note = dwr_sym_note(sym);
	if (!err && note) {
		s.walk = dwr_icfold_overlay(note);
		err = dwr_icfold_overlay_next(&s.walk, &s.entry, &s.more);
	}
	for (size_t i = 0; i < sym->debug->unit_off.len && !err && !s.stop; i++)
		err = search_unit(&s, sym->debug->unit_off.data[i]);
	dwr_abbrev_deinit(&s.table);
	VEC_FREE(&s.open);
	VEC_FREE(&s.ranges);
	return err ? err : dwr_sym_complete(sym);
}
