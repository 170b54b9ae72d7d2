/* symbolize.c: see symbolize.h.  Joins the levels of a look-up.
 *
 * One address costs a search in the units' intervals, one in the unit's functions, one in the
 * function's inlined copies, one in the line table, and the reading of one or two DIEs for each
 * frame.  That is some microseconds if the unit is known already; otherwise a walk over the unit's
 * DIEs and its line program (milliseconds). */
#include "dwarf/symbolize/symbolize.h"
#include "dwarf/symbolize/state.h"
#include <stdio.h>
#include "elfrw/base/search.h"
#include <dwarf.h>

struct elfrw_err *dwr_sym_complete(const struct dwr_sym *sym)
{
	return sym->nomem ? &elfrw_err_nomem : NULL;
}

const char *dwr_sym_warning(const struct dwr_sym *sym)
{
	return sym->warning;
}

static struct elfrw_err *open_all(struct dwr_sym *sym, const char *path,
				  const struct dwr_sym_options *opt)
{
	sym->spelling = opt ? opt->spelling : DWR_SPELLING_LLVM;
	sym->path = opt ? opt->path : DWR_SYM_ABSOLUTE;
	const char *sysroot = opt && opt->sysroot ? opt->sysroot : "";
	if (opt && opt->debug_dir)
		sym->debug_dir = strdup(opt->debug_dir);
	else if (asprintf(&sym->debug_dir, "%s/usr/lib/debug", sysroot) < 0)
		sym->debug_dir = NULL;
	sym->sysroot = strdup(sysroot);
	if (!sym->debug_dir || !sym->sysroot)
		return &elfrw_err_nomem;
	ELFRW_TRY(dwr_sym_file_open(path, opt ? opt->mapped : NULL, &sym->main));
	sym->debug = sym->main;
	if (opt && opt->debug_file) {
		struct dwr_sym_file *named;
		ELFRW_TRY(elfrw_err_about(
			opt->debug_file,
			dwr_sym_file_open(opt->debug_file, opt->debug_mapped, &named)));
		sym->debug = named;
		return opt->own_only ? NULL : dwr_sym_file_fits(sym->main, named);
	}
	if (dwr_sym_file_has_debug(sym->main) || (opt && opt->own_only))
		return NULL;
	struct dwr_sym_file *other;
	const struct dwr_sym_places places = { sym->debug_dir, sym->sysroot };
	ELFRW_TRY(dwr_sym_file_separate(sym->main, &places, &other));
	if (!other)
		ELFRW_TRY(dwr_sym_file_from_server(sym->main, &other));
	if (other)
		sym->debug = other;
	return NULL;
}

struct elfrw_err *dwr_sym_open(const char *path, const struct dwr_sym_options *options,
			       struct dwr_sym **ret)
{
	struct dwr_sym *sym = calloc(1, sizeof *sym);
	struct elfrw_err *err = sym ? open_all(sym, path, options) : &elfrw_err_nomem;
	if (err) {
		dwr_sym_close(sym);
		return err;
	}
	sym->n_bodies = DWR_SYM_BODIES;
	*ret = sym;
	return NULL;
}

void dwr_sym_close(struct dwr_sym *sym)
{
	if (!sym)
		return;
	if (sym->has_note)
		dwr_icfold_deinit(&sym->note);
	VEC_FREE(&sym->group_order);
	VEC_FREE(&sym->units);
	VEC_FREE(&sym->bare);
	for (unsigned i = 0; i < DWR_SYM_BODIES; i++) {
		VEC_FREE(&sym->body[i].spans);
		VEC_FREE(&sym->body[i].node);
		VEC_FREE(&sym->body[i].answer);
	}
	dwr_symtab_free(sym->symtab);
	dwr_sym_demangled_free(sym);
	dwr_sym_file_close(sym->alt);
	if (sym->debug != sym->main)
		dwr_sym_file_close(sym->debug);
	dwr_sym_file_close(sym->main);
	dwr_arena_deinit(&sym->arena);
	free(sym->debug_dir);
	free(sym->sysroot);
	free(sym->warning);
	free(sym);
}

void dwr_sym_in_order(struct dwr_sym *sym)
{
	sym->n_bodies = DWR_SYM_BODIES_IN_ORDER;
	sym->debug->n_abbrevs = DWR_SYM_ABBREVS_IN_ORDER;
}

void dwr_sym_will_ask(struct dwr_sym *sym, const uint64_t *address, size_t n)
{
	sym->ahead = address;
	sym->n_ahead = n;
}

void dwr_sym_frames_deinit(struct dwr_sym_frames *frames)
{
	VEC_FREE(frames);
}

static struct dwr_sym_frame *push_frame(struct dwr_sym_frames *frames)
{
	struct dwr_sym_frame *f = VEC_PUSH(frames);
	if (f)
		f->die = DWR_SYM_NO_DIE;
	return f;
}

static void set_place(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
		      const struct dwr_place *place, struct dwr_sym_frame *frame)
{
	const char *file = dwr_sym_file_name(sym, unit, place->file);
	if (!file)
		return;
	frame->file = file;
	frame->line = place->line;
	frame->column = place->column;
	frame->discriminator = place->discriminator;
}

/* The frames of one function's inlined copies at ADDRESS. */
struct chain {
	struct dwr_sym_unit *unit;
	struct dwr_sym_inside in;              /* body NULL: no function */
	const struct dwr_sym_unit *place_unit; /* whose files PLACE counts; NULL: no place known */
	struct dwr_place place;
};

static struct elfrw_err *add_frames(struct dwr_sym *sym, const struct chain *c, unsigned flags,
				    struct dwr_sym_frames *frames)
{
	struct dwr_place call = { 0 };
	if (!c->in.body) { /* code without a function: a unit with only line numbers, or a .dwo file
			      elsewhere */
		if (!c->place_unit || !dwr_sym_file_name(sym, c->place_unit, c->place.file))
			return NULL;
		struct dwr_sym_frame *f = push_frame(frames);
		if (!f)
			return &elfrw_err_nomem;
		set_place(sym, c->place_unit, &c->place, f);
		return NULL;
	}
	for (uint32_t node = c->in.node;; node = c->in.body->node.data[node].parent) {
		struct dwr_sym_frame *f = push_frame(frames);
		struct dwr_sym_die die;
		struct dwr_sym_decl decl;
		if (!f)
			return &elfrw_err_nomem;
		f->die = c->in.body->node.data[node].die;
		f->inlined = node != 0;
		if (frames->len > 1)
			set_place(sym, c->unit, &call, f);
		else if (c->place_unit)
			set_place(sym, c->place_unit, &c->place, f);
		call = (struct dwr_place){ 0 };
		if (!(flags & DWR_SYM_NO_DECL) && dwr_sym_die_read(sym, c->unit, f->die, &die)) {
			dwr_sym_die_decl(sym, &die, &decl);
			f->linkage = !(flags & DWR_SYM_SHORT_NAMES) && decl.linkage ? decl.linkage
										    : decl.name;
			f->start_file = decl.file;
			f->start_line = decl.line;
			f->has_start_address =
				die.low.form &&
				dwr_value_address(&c->unit->file->secs, &c->unit->u, &c->unit->root,
						  &die.low, &f->start_address);
			call = (struct dwr_place){ (uint32_t)die.call_file.u,
						   (uint32_t)die.call_line.u,
						   (uint32_t)die.call_column.u,
						   (uint32_t)die.discriminator.u };
		}
		if (!node || flags & DWR_SYM_NO_INLINES)
			return NULL;
	}
}

static void finish_names(struct dwr_sym *sym, unsigned flags, struct dwr_sym_frames *frames)
{
	for (size_t i = 0; i < frames->len; i++) {
		struct dwr_sym_frame *f = &frames->data[i];
		f->function = f->linkage && flags & DWR_SYM_DEMANGLE
				      ? dwr_sym_demangle(sym, f->linkage)
				      : f->linkage;
	}
}

static struct elfrw_err *find_chain(struct dwr_sym *sym, uint64_t address, struct chain *c)
{
	ELFRW_TRY(dwr_sym_unit_for(sym, address, &c->unit));
	if (!c->unit)
		return NULL;
	uint64_t die;
	bool found;
	ELFRW_TRY(dwr_sym_function(sym, c->unit, address, &die, &found));
	if (found) {
		ELFRW_TRY(dwr_sym_body_at(sym, c->unit, die, UINT32_MAX, address, &c->in));
		if (!c->in.body->node.len)
			c->in.body = NULL;
	}
	ELFRW_TRY(dwr_sym_unit_lines(sym, c->unit));
	if (c->unit->lines && dwr_lines_find(c->unit->lines, address, &c->place))
		c->place_unit = c->unit;
	return NULL;
}

/* ---- members of folded groups ---- */

static struct elfrw_err *read_note(struct dwr_sym *sym)
{
	if (sym->note_read)
		return NULL;
	sym->note_read = true;
	sym->note_file = sym->main;
	struct dwr_bytes sec = dwr_sym_sec(sym, sym->main, DWR_ICFOLD);
	if (!sec.size) {
		sym->note_file = sym->debug;
		sec = dwr_sym_sec(sym, sym->debug, DWR_ICFOLD);
	}
	if (!sec.size)
		return NULL;
	struct elfrw_err *err = dwr_icfold_read(&sym->note, sec.data, sec.size);
	if (err)
		return dwr_sym_warn(sym, err);
	sym->has_note = true;
	return NULL;
}

const struct dwr_icfold *dwr_sym_note(struct dwr_sym *sym)
{
	dwr_sym_forget(sym, read_note(sym));
	return sym->has_note ? &sym->note : NULL;
}

const struct dwr_icfold *dwr_sym_debug_note(struct dwr_sym *sym)
{
	const struct dwr_icfold *note = dwr_sym_note(sym);
	return sym->note_file == sym->debug ? note : NULL;
}

/* The unit of the map that group G's body is. */
static const struct elfrw_addrmap_unit *group_unit(const struct dwr_icfold *note, uint32_t g)
{
	return &note->map.unit[note->member[note->group[g].member].unit];
}

static int by_body(const void *a, const void *b, void *ctx)
{
	uint64_t x = group_unit(ctx, *(const uint32_t *)a)->body,
		 y = group_unit(ctx, *(const uint32_t *)b)->body;
	return x < y ? -1 : x > y;
}

bool dwr_sym_group_at(struct dwr_sym *sym, uint64_t address, uint32_t *group)
{
	const struct dwr_icfold *n = dwr_sym_note(sym);
	if (!n || !n->n_groups)
		return false;
	if (!sym->group_order.len) {
		if (!VEC_RESERVE(&sym->group_order, n->n_groups)) {
			sym->nomem = true;
			return false;
		}
		for (uint32_t i = 0; i < n->n_groups; i++)
			sym->group_order.data[i] = i;
		sym->group_order.len = n->n_groups;
		qsort_r(sym->group_order.data, n->n_groups, sizeof(uint32_t), by_body, (void *)n);
	}
	size_t lo = LOWER_BOUND(0, n->n_groups, mid,
				group_unit(n, sym->group_order.data[mid])->body <= address);
	if (!lo)
		return false;
	const struct elfrw_addrmap_unit *u = group_unit(n, sym->group_order.data[lo - 1]);
	if (address - u->body >= u->old_end - u->old)
		return false;
	*group = sym->group_order.data[lo - 1];
	return true;
}

static bool has_name(const struct dwr_icfold *n, const struct dwr_icfold_member *m,
		     const char *name)
{
	for (uint32_t i = 0; i < m->n_names; i++)
		if (!strcmp(n->names[m->name + i], name))
			return true;
	return false;
}

/* The symbol at ADDRESS, as dwr_sym_symbol_at().  But in shared code a symbol without a size does
 * not extend over the code behind it, which may not be the folded function's. */
static bool symbol_at(struct dwr_sym *sym, uint64_t address, struct dwr_sym_symbol *s)
{
	uint32_t g;
	if (!dwr_sym_symbol_at(sym, address, s))
		return false;
	if (s->size || s->address == address || !dwr_sym_group_at(sym, s->address, &g))
		return true;
	const struct elfrw_addrmap_unit *u = group_unit(&sym->note, g);
	return address - u->body < u->old_end - u->old;
}

/* In .symtab names of folded functions have no size, so the kept name is found at their address,
 * unless it has no size either.  In .dynsym, which is all that a stripped file has, sizes stay;
 * there the note gives the owner of a name.  Makes *S the kept function's symbol; false: there is
 * none, and *S is another's. */
static bool kept_name(struct dwr_sym *sym, uint64_t address, struct dwr_sym_symbol *s)
{
	uint32_t g;
	if (!dwr_sym_group_at(sym, address, &g))
		return true;
	const struct dwr_icfold *n = &sym->note;
	const struct dwr_icfold_member *kept = &n->member[n->group[g].member];
	if (s->address != n->map.unit[kept->unit].body)
		return true;
	if (!dwr_symtab_is_dynamic(sym))
		return kept->n_names;
	if (has_name(n, kept, s->name))
		return true;
	if (kept->n_names)
		s->name = n->names[kept->name];
	return kept->n_names;
}

/* Is S, which kept_name() takes for the kept function's or not (OWN), the name of FRAMES' last one?
 * KEPT: of the functions that share the code, the kept one is meant.  A symbol without a size
 * reaches up to the next symbol, as for llvm-symbolizer; but `_init` of .init is no better name for
 * what .text begins with than the one that debugging entries give. */
static bool names_frame(const struct dwr_sym_symbol *s, bool own, bool kept,
			const struct dwr_sym_frames *frames)
{
	bool named = frames->len && frames->data[frames->len - 1].linkage;
	return own ? !(s->in_other_section && named) : !kept && !named;
}

/* KEPT: of the functions that share the code, the kept one is meant. */
static struct elfrw_err *frames_at(struct dwr_sym *sym, uint64_t address, bool kept, unsigned flags,
				   struct dwr_sym_frames *frames)
{
	struct chain c = { 0 };
	frames->len = 0;
	ELFRW_TRY(find_chain(sym, address, &c));
	ELFRW_TRY(add_frames(sym, &c, flags, frames));
	/* The symbol table knows linkage names that minimal debug information lacks, and code
	 * without debug information. */
	struct dwr_sym_symbol s;
	if (flags & (DWR_SYM_SHORT_NAMES | DWR_SYM_NO_SYMTAB) || !symbol_at(sym, address, &s) ||
	    !names_frame(&s, kept_name(sym, address, &s), kept, frames)) {
		finish_names(sym, flags, frames);
		return dwr_sym_complete(sym);
	}
	struct dwr_sym_frame *f = frames->len ? &frames->data[frames->len - 1] : push_frame(frames);
	if (!f)
		return &elfrw_err_nomem;
	f->linkage = s.name;
	f->has_start_address = true;
	f->start_address = s.address;
	if (!f->file)
		f->file = s.file;
	finish_names(sym, flags, frames);
	return dwr_sym_complete(sym);
}

struct elfrw_err *dwr_sym_frames(struct dwr_sym *sym, uint64_t address, unsigned flags,
				 struct dwr_sym_frames *frames)
{
	return frames_at(sym, address, false, flags, frames);
}

/* Finds the member's own function.  Its DIEs may be in several units, each with a copy that the
 * linker merged.  The first unit counts, as for other addresses, and in it the last DIE. */
struct elfrw_err *dwr_sym_member_body(struct dwr_sym *sym, uint32_t member, uint64_t address,
				      struct dwr_sym_unit **ret_unit, struct dwr_sym_inside *ret)
{
	const struct dwr_icfold_member *m = &sym->note.member[member];
	const struct dwr_icfold_die *die = m->n_dies ? sym->note.dies + m->die : NULL;
	for (uint32_t i = 0; i < m->n_dies; i++) {
		struct dwr_sym_unit *unit;
		ELFRW_TRY(dwr_sym_unit_around(sym, sym->debug, die[i].die, &unit));
		while (unit && i + 1 < m->n_dies && die[i + 1].die < unit->u.end)
			i++;
		if (!unit)
			continue;
		ELFRW_TRY(dwr_sym_body_at(sym, unit, die[i].die, member, address, ret));
		*ret_unit = unit;
		if (ret->body->node.len)
			return NULL;
		ret->body = NULL;
	}
	return NULL;
}

/* The member's own rows. */
static struct elfrw_err *member_place(struct dwr_sym *sym, uint32_t member, uint64_t address,
				      struct chain *c)
{
	const struct dwr_note_rows *rows = &sym->note.member[member].rows;
	if (rows->status == DWR_NOTE_ROWS_SAME) {
		struct chain kept = { 0 };
		ELFRW_TRY(find_chain(sym, address, &kept));
		c->place_unit = kept.place_unit;
		c->place = kept.place;
		return NULL;
	}
	if (rows->status != DWR_NOTE_ROWS_OWN || sym->note.artificial_unit == UINT64_MAX)
		return NULL;
	struct dwr_sym_unit *unit;
	ELFRW_TRY(dwr_sym_unit_at(sym, sym->debug, sym->note.artificial_unit, &unit));
	if (!unit)
		return NULL;
	ELFRW_TRY(dwr_sym_unit_lines(sym, unit));
	if (unit->lines &&
	    dwr_lines_find_in(unit->lines, rows->seq, rows->n_seqs, address, &c->place))
		c->place_unit = unit;
	return NULL;
}

/* The source file of the folded unit U by the symbol table, used without line numbers; NULL: none,
 * or several. */
static const char *symbol_file(struct dwr_sym *sym, const char *name,
			       const struct elfrw_addrmap_unit *u)
{
	struct dwr_sym_symbol s;
	size_t from = 0;
	const char *file = NULL;
	while (dwr_sym_symbol_named(sym, name, &from, &s)) {
		if (s.address != u->body && s.address != u->entry)
			continue;
		if (!s.file || (file && strcmp(file, s.file)))
			return NULL;
		file = s.file;
	}
	return file;
}

struct elfrw_err *dwr_sym_frames_for_member(struct dwr_sym *sym, uint64_t address, uint32_t member,
					    unsigned flags, struct dwr_sym_frames *frames)
{
	const struct dwr_icfold *n = dwr_sym_note(sym);
	frames->len = 0;
	if (!n)
		ELFRW_TRY(dwr_sym_complete(sym));
	if (!n || member >= n->n_members)
		return elfrw_error("no folded function has the number %u", member);
	const struct dwr_icfold_member *m = &n->member[member];
	const struct elfrw_addrmap_unit *u = &n->map.unit[m->unit];
	/* With overlapping ranges the kept function is one of several, too. */
	bool plain = !(u->flags & ELFRW_UNIT_FOLDED) && n->policy != DWR_FOLDED_ALIAS;
	if (plain || address - u->body >= u->old_end - u->old)
		return frames_at(sym, address, plain, flags, frames);
	struct chain c = { 0 };
	/* The places come first: the body's data are in a cache that another look-up may reuse. */
	ELFRW_TRY(member_place(sym, member, address, &c));
	ELFRW_TRY(dwr_sym_member_body(sym, member, address, &c.unit, &c.in));
	if (n->policy == DWR_FOLDED_ALIAS && c.unit && !c.place_unit) {
		bool found;
		ELFRW_TRY(dwr_sym_alias_place(sym, member, c.unit, address, &c.place, &found));
		c.place_unit = found ? c.unit : NULL;
	}
	ELFRW_TRY(add_frames(sym, &c, flags, frames));
	struct dwr_sym_frame *f = frames->len ? &frames->data[frames->len - 1] : push_frame(frames);
	if (!f)
		return &elfrw_err_nomem;
	if (m->n_names && !f->file)
		f->file = symbol_file(sym, n->names[m->name], u);
	if (m->n_names && (!f->linkage || !(flags & (DWR_SYM_SHORT_NAMES | DWR_SYM_NO_SYMTAB))))
		f->linkage = n->names[m->name];
	f->has_start_address = true;
	f->start_address = u->body;
	finish_names(sym, flags, frames);
	return dwr_sym_complete(sym);
}

struct elfrw_err *dwr_sym_die_name(struct dwr_sym *sym, uint64_t die, unsigned flags,
				   const char **ret)
{
	struct dwr_sym_unit *unit;
	struct dwr_sym_die d;
	struct dwr_sym_decl decl = { 0 };
	*ret = NULL;
	ELFRW_TRY(dwr_sym_unit_around(sym, sym->debug, die, &unit));
	if (!unit || !dwr_sym_die_read(sym, unit, die, &d))
		return NULL;
	dwr_sym_die_decl(sym, &d, &decl);
	const char *name =
		decl.linkage && !(flags & DWR_SYM_SHORT_NAMES) ? decl.linkage : decl.name;
	*ret = name && (flags & DWR_SYM_DEMANGLE) ? dwr_sym_demangle(sym, name) : name;
	return NULL;
}
