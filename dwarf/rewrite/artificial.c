/* artificial.c: the unit that owns the rows of folded functions, the vtables, and the DIEs that
 * stand in for functions without one.
 *
 * The call tables name functions by their DIEs, but compilers write none for many functions if only
 * lines are asked for (-gline-tables-only), and none for objects without debug information.  If
 * such a function shares its code and takes part in calls, a DIE of one byte stands in for it;
 * .debug_icfold says whose it is, and has the name. */
#include "dwarf/rewrite/run.h"
#include "elfrw/arch/arch.h"
#include "elfrw/base/search.h"
#include "elfrw/base/sort.h"
#include "elfrw/image.h"
#include <dwarf.h>
#include <stdlib.h>
#include <string.h>

/* The form of the artificial unit: that of its line table or, without one, of the first unit. */
static struct dwr_form_params unit_form(const struct dwr_rw_run *run, bool lines)
{
	const struct dwr_rw *rw = &run->rw;
	struct dwr_form_params p =
		rw->units.len ? rw->units.data[0].params
			      : (struct dwr_form_params){ .version = 4, .offset_size = 4 };
	if (lines) {
		p.version = (uint8_t)rw->line.folded_version;
		p.offset_size = (uint8_t)rw->line.folded_offset_size;
	}
	for (size_t i = 0; i < run->vtables.v.len && p.version < 4; i++)
		if (run->vtables.v.data[i].signature)
			p.version = 4;
	p.address_size = rw->in->image->arch->address_size;
	return p;
}

/* The attributes of the unit's own DIE, with values: declaration and DIE are made together. */
struct builder {
	struct elfrw_wbuf *abbrev, *info;
};

static void put_attribute(struct builder *b, unsigned name, unsigned form)
{
	elfrw_wbuf_uleb(b->abbrev, name);
	elfrw_wbuf_uleb(b->abbrev, form);
}

static void put_string(struct builder *b, unsigned name, const char *value)
{
	put_attribute(b, name, DW_FORM_string);
	elfrw_wbuf_cstr(b->info, value);
}

static void put_uint(struct builder *b, unsigned name, unsigned form, uint64_t value, unsigned size)
{
	put_attribute(b, name, form);
	elfrw_wbuf_uint(b->info, value, size);
}

/* DW_AT_stmt_list. */
static void put_stmt_list(struct builder *b, struct dwr_form_params p, uint64_t value)
{
	unsigned form = p.version >= 4       ? DW_FORM_sec_offset
			: p.offset_size == 8 ? DW_FORM_data8
					     : DW_FORM_data4;
	put_uint(b, DW_AT_stmt_list, form, value, p.offset_size);
}

/* Puts the range of the one byte at ADDRESS. */
static void put_byte_range(struct builder *b, struct dwr_form_params p, uint64_t address)
{
	put_uint(b, DW_AT_low_pc, DW_FORM_addr, address, p.address_size);
	if (p.version >= 4)
		put_uint(b, DW_AT_high_pc, DW_FORM_data8, 1, 8);
	else
		put_uint(b, DW_AT_high_pc, DW_FORM_addr, address + 1, p.address_size);
}

/* The unit's header, with unit_length open; ABBREV_OFF: of its declarations.  Returns where the
 * length is. */
static size_t put_unit_header(struct elfrw_wbuf *w, struct dwr_form_params p, uint64_t abbrev_off)
{
	if (p.offset_size == 8)
		elfrw_wbuf_u32(w, 0xffffffff);
	size_t length_at = w->len;
	elfrw_wbuf_uint(w, 0, p.offset_size);
	elfrw_wbuf_u16(w, p.version);
	if (p.version >= 5) {
		elfrw_wbuf_u8(w, DW_UT_compile);
		elfrw_wbuf_u8(w, p.address_size);
	}
	elfrw_wbuf_uint(w, abbrev_off, p.offset_size);
	if (p.version < 5)
		elfrw_wbuf_u8(w, p.address_size);
	return length_at;
}

static uint64_t language_of(const struct dwr_rw *rw)
{
	for (size_t i = 0; i < rw->units.len; i++)
		if (rw->ru[i].root.language)
			return rw->ru[i].root.language;
	return DW_LANG_C_plus_plus;
}

/* The directory of relative paths before DWARF 5.  dwz moves strings of several files into a common
 * one, which need not be there.  If all units with a directory there have the same one, the paths
 * count from it. */
static void put_dir(struct builder *b, const struct dwr_rw *rw, struct dwr_form_params p,
		    bool relative)
{
	const struct dwr_unit_root *found = NULL;
	if (!relative)
		put_string(b, DW_AT_comp_dir, "/");
	if (!relative || p.version >= 5)
		return;
	for (size_t i = 0; i < rw->units.len; i++) {
		const struct dwr_unit_root *r = &rw->ru[i].root;
		if (r->comp_dir && *r->comp_dir != '/')
			return;
		if (r->comp_dir || !r->comp_dir_form)
			continue;
		if (found && (found->comp_dir_form != r->comp_dir_form ||
			      found->comp_dir_off != r->comp_dir_off))
			return;
		found = r;
	}
	if (found && (p.offset_size == 8 || !(found->comp_dir_off >> 32)))
		put_uint(b, DW_AT_comp_dir, found->comp_dir_form, found->comp_dir_off,
			 p.offset_size);
}

#define VTABLES   2 /* the first of two abbreviations */
#define STANDS_IN 4

struct stand_ins {
	VEC(uint32_t) unit; /* of the map, ascending */
};

static bool has_die(const struct dwr_rw_run *run, uint32_t unit)
{
	const struct dwr_note_die *d = run->out.die;
	size_t k = LOWER_BOUND(0, run->out.n_dies, mid, d[mid].unit < unit);
	return k < run->out.n_dies && d[k].unit == unit;
}

/* Does the name of the unit, which has no DIE, lead to the DIE of a declaration?  OWN: the DIEs of
 * all shared functions, sorted. */
static bool is_declared(const struct dwr_rw_run *run, uint32_t unit, const uint64_t *own)
{
	const struct dwr_call_wanted *w = run->rw.in->calls;
	const size_t k = LOWER_BOUND(0, w->n_names, mid, w->named[mid] < unit);
	const uint64_t die = k < w->n_names && w->named[k] == unit ? run->out.found.die[k] : 0;
	return die && !bsearch(&die, own, run->out.n_dies, sizeof die, elfrw_u64_order);
}

static struct elfrw_err *find_stand_ins(const struct dwr_rw_run *run, struct stand_ins *ret)
{
	const struct dwr_call_wanted *w = run->rw.in->calls;
	if (!w || !run->out.searched || !w->n_units)
		return NULL;
	uint64_t *own = malloc((run->out.n_dies + 1) * sizeof *own);
	for (size_t i = 0; own && i < run->out.n_dies; i++)
		own[i] = run->out.die[i].die;
	bool ok = own && elfrw_sort_runs(own, run->out.n_dies, sizeof *own, elfrw_u64_order);
	for (size_t i = 0; ok && i < w->n_units; i++) {
		if (has_die(run, w->unit[i]) || is_declared(run, w->unit[i], own))
			continue;
		uint32_t *slot = VEC_PUSH(&ret->unit);
		ok = slot;
		if (slot)
			*slot = w->unit[i];
	}
	free(own);
	return ok ? NULL : &elfrw_err_nomem;
}

/* DW_TAG_subprogram, DW_AT_declaration: debuggers skip functions that are defined elsewhere. */
static void put_stand_ins(const struct stand_ins *s, struct dwr_form_params p, struct builder *b)
{
	elfrw_wbuf_uleb(b->abbrev, STANDS_IN);
	elfrw_wbuf_uleb(b->abbrev, DW_TAG_subprogram);
	elfrw_wbuf_u8(b->abbrev, DW_CHILDREN_no);
	put_attribute(b, DW_AT_declaration, p.version >= 4 ? DW_FORM_flag_present : DW_FORM_flag);
	elfrw_wbuf_u16(b->abbrev, 0);
	for (size_t i = 0; i < s->unit.len; i++) {
		elfrw_wbuf_uleb(b->info, STANDS_IN);
		if (p.version < 4)
			elfrw_wbuf_u8(b->info, 1);
	}
}

/* The DIEs of S end at END in .debug_info, but for the end of the unit's children. */
static struct elfrw_err *note_stand_ins(struct dwr_rw_run *run, const struct stand_ins *s,
					struct dwr_form_params p, uint64_t end)
{
	const size_t n = s->unit.len, bytes = p.version < 4 ? 2 : 1;
	struct dwr_note_die *die = realloc(run->out.die, (run->out.n_dies + n + 1) * sizeof *die);
	if (!die)
		return &elfrw_err_nomem;
	run->out.die = die;
	for (size_t i = 0; i < n; i++)
		die[run->out.n_dies++] =
			(struct dwr_note_die){ s->unit.data[i], end - (n - i) * bytes };
	qsort(die, run->out.n_dies, sizeof *die, dwr_rw_note_die_order);
	return NULL;
}

/* The unit's own DIE, and the vtables and stand-ins as its children. */
static void put_unit(struct dwr_rw_run *run, struct dwr_form_params p, bool lines,
		     const struct stand_ins *s, struct elfrw_wbuf *w)
{
	const struct dwr_rw *rw = &run->rw;
	const struct dwr_rewrite_in *in = rw->in;
	const bool vtables = run->vtables.v.len != 0, children = vtables || s->unit.len;
	struct builder b = { &run->abbrev, w };
	elfrw_wbuf_uleb(b.abbrev, 1);
	elfrw_wbuf_uleb(b.abbrev, DW_TAG_compile_unit);
	elfrw_wbuf_u8(b.abbrev, children ? DW_CHILDREN_yes : DW_CHILDREN_no);
	elfrw_wbuf_uleb(w, 1);
	put_string(&b, DW_AT_producer, in->producer ? in->producer : "icfold");
	put_uint(&b, DW_AT_language, DW_FORM_data2, (uint16_t)language_of(rw), 2);
	put_string(&b, DW_AT_name,
		   in->folded_unit_name ? in->folded_unit_name : DWR_FOLDED_UNIT_NAME);
	put_dir(&b, rw, p, lines && rw->line.folded_relative);
	if (lines)
		put_stmt_list(&b, p, rw->line.folded_unit);
	if (run->has_range)
		put_byte_range(&b, p, rw->map->trap_byte);
	elfrw_wbuf_u16(b.abbrev, 0);
	if (vtables)
		dwr_rw_vtables_write(&run->vtables, p, VTABLES, b.abbrev, w);
	if (s->unit.len)
		put_stand_ins(s, p, &b);
	if (children)
		elfrw_wbuf_u8(w, 0);
	elfrw_wbuf_u8(b.abbrev, 0);
}

/* Appends the bytes of W to the new .debug_info. */
static struct elfrw_err *append_info(struct dwr_rw_run *run, const struct elfrw_wbuf *w)
{
	struct dwr_rw *rw = &run->rw;
	uint8_t *info = w->bad || run->abbrev.bad
				? NULL
				: realloc(rw->copy[DWR_INFO], run->info_size + w->len);
	if (!info)
		return &elfrw_err_nomem;
	memcpy(info + run->info_size, w->data, w->len);
	rw->copy[DWR_INFO] = info;
	run->artificial = run->info_size;
	run->info_size += w->len;
	return NULL;
}

/* Can the unit, of offsets of 4 bytes, be where it is?  Beyond 4 GiB are only units of 64-bit
 * DWARF, and what refers to places there needs offsets of their size. */
static bool in_reach(const struct dwr_rw_run *run, uint64_t table, bool lines)
{
	const struct dwr_units *units = &run->rw.units;
	bool wide = units->len && units->data[units->len - 1].params.offset_size == 8;
	return !(table >> 32) && !(lines && run->rw.line.folded_unit >> 32) &&
	       (!(run->info_size >> 32) || (wide && !run->vtables.v.len));
}

static struct elfrw_err *append(struct dwr_rw_run *run, bool lines, const struct stand_ins *s)
{
	struct dwr_rw *rw = &run->rw;
	const struct dwr_form_params p = unit_form(run, lines);
	if (!run->abbrev.len)
		elfrw_wbuf_bytes(&run->abbrev, rw->secs.sec[DWR_ABBREV].data,
				 rw->secs.sec[DWR_ABBREV].size);
	const uint64_t table = run->abbrev.len;
	run->has_range = lines && rw->map->trap_byte;
	struct elfrw_wbuf w = { 0 };
	size_t length_at = put_unit_header(&w, p, table);
	put_unit(run, p, lines, s, &w);
	if (!w.bad)
		elfrw_put_le(w.data + length_at, w.len - length_at - p.offset_size, p.offset_size);
	struct elfrw_err *err = append_info(run, &w);
	elfrw_wbuf_free(&w);
	if (!err && s->unit.len)
		err = note_stand_ins(run, s, p, run->info_size - 1);
	if (!err && p.offset_size == 4 && !in_reach(run, table, lines))
		err = elfrw_error(".debug_info outgrows its offsets");
	return err;
}

/* The unit's own range is one byte that is never a PC.  Debuggers ignore the lines of a unit
 * without a range; and no look-up by address enters a unit whose range does not hold the
 * address. */
struct elfrw_err *dwr_rw_append_unit(struct dwr_rw_run *run)
{
	struct dwr_rw *rw = &run->rw;
	struct stand_ins s = { 0 };
	bool lines = rw->has_line && rw->line.folded_unit && rw->in->policy == DWR_FOLDED_OVERLAY &&
		     rw->copy[DWR_INFO];
	if (rw->in->vtables && rw->copy[DWR_INFO])
		ELFRW_TRY(dwr_rw_vtables(rw, &run->vtables));
	struct elfrw_err *err = rw->copy[DWR_INFO] ? find_stand_ins(run, &s) : NULL;
	if (!err && (lines || run->vtables.v.len || s.unit.len))
		err = append(run, lines, &s);
	VEC_FREE(&s.unit);
	return err;
}
