/* units.c: finds the unit that holds an address.
 *
 * This is the first level of a look-up.  .debug_aranges answers without reading the units.  Only if
 * it has no answer, the units that it does not list are read: first by the ranges in their own
 * DIEs, then, for units without ranges, by their functions.  Formats: DWARF 5, sections 6.1.2 and
 * 7.5.1 (and 2 to 4, the same sections). */
#include "dwarf/symbolize/state.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

/* Reads the header of the unit at OFF; false: not a readable unit.  *NEXT: the start of the next
 * one, if the length is valid (else OFF). */
static bool read_header(struct dwr_sym *sym, struct dwr_bytes sec, uint64_t off, struct dwr_unit *u,
			uint64_t *next)
{
	const struct dwr_section info = { .name = ".debug_info",
					  .data = sec.data,
					  .size = sec.size };
	struct elfrw_rbuf r = elfrw_rbuf(sec.data, sec.size);
	*u = (struct dwr_unit){ 0 };
	elfrw_rbuf_seek(&r, off);
	struct elfrw_err *err = dwr_unit_header(&r, &info, DWR_INFO, u);
	*next = u->end ? u->end : off;
	bool sound = !err && u->type != DW_UT_type && u->type != DW_UT_split_type;
	dwr_sym_forget(sym, err);
	return sound;
}

static size_t slot_of(uint64_t off, size_t n_slots)
{
	return (size_t)((off * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (n_slots - 1);
}

static bool grow_table(struct dwr_sym_file *f)
{
	size_t n = f->n_slots ? 2 * f->n_slots : 64;
	struct dwr_sym_unit **t = calloc(n, sizeof(*t));
	if (!t)
		return false;
	for (size_t i = 0; i < f->n_slots; i++)
		if (f->unit[i]) {
			size_t k = slot_of(f->unit[i]->u.off, n);
			while (t[k])
				k = (k + 1) & (n - 1);
			t[k] = f->unit[i];
		}
	free(f->unit);
	f->unit = t;
	f->n_slots = n;
	return true;
}

struct elfrw_err *dwr_sym_unit_at(struct dwr_sym *sym, struct dwr_sym_file *file, uint64_t off,
				  struct dwr_sym_unit **ret)
{
	*ret = NULL;
	if (2 * file->n_units >= file->n_slots && !grow_table(file))
		return &elfrw_err_nomem;
	size_t k = slot_of(off, file->n_slots);
	for (; file->unit[k]; k = (k + 1) & (file->n_slots - 1))
		if (file->unit[k]->u.off == off) {
			*ret = file->unit[k];
			return NULL;
		}
	struct dwr_unit u;
	uint64_t next;
	if (!read_header(sym, dwr_sym_sec(sym, file, DWR_INFO), off, &u, &next))
		return NULL;
	static const enum dwr_sec needed[] = { DWR_ABBREV, DWR_STR, DWR_LINE_STR, DWR_STR_OFFSETS,
					       DWR_ADDR };
	for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
		dwr_sym_sec(sym, file, needed[i]);
	struct dwr_unit_root root;
	struct elfrw_err *err = dwr_unit_read_root(&file->secs, &u, &root);
	if (err)
		return dwr_sym_warn(sym, err);
	struct dwr_sym_unit *unit = calloc(1, sizeof *unit);
	if (!unit)
		return &elfrw_err_nomem;
	unit->u = u;
	unit->file = file;
	unit->root = root;
	unit->cu = (struct dwr_list_cu){ .params = u.params,
					 .has_base = root.has_low_pc,
					 .base = root.low_pc,
					 .addr_base = root.addr_base,
					 .rnglists_base = root.rnglists_base,
					 .loclists_base = DWR_LIST_NONE };
	file->unit[k] = unit;
	file->n_units++;
	struct dwr_sym_die die; /* the folder may be named in the supplementary file */
	if (!root.comp_dir && dwr_sym_die_read(sym, unit, u.die, &die) && die.comp_dir.form)
		unit->root.comp_dir = dwr_sym_string(sym, unit, &die.comp_dir);
	*ret = unit;
	return NULL;
}

struct elfrw_err *dwr_sym_all_units(struct dwr_sym *sym, struct dwr_sym_file *file)
{
	if (file->all_units)
		return NULL;
	struct dwr_bytes sec = dwr_sym_sec(sym, file, DWR_INFO);
	for (uint64_t off = 0; off < sec.size;) {
		struct dwr_unit u;
		uint64_t next;
		if (read_header(sym, sec, off, &u, &next)) {
			uint64_t *slot = VEC_PUSH(&file->unit_off);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = off;
		}
		if (next <= off) {
			ELFRW_TRY(
				dwr_sym_warn(sym, elfrw_error_at(".debug_info", off,
								 "unit goes beyond the section")));
			break;
		}
		off = next;
	}
	file->all_units = true;
	return NULL;
}

struct elfrw_err *dwr_sym_unit_around(struct dwr_sym *sym, struct dwr_sym_file *file, uint64_t off,
				      struct dwr_sym_unit **ret)
{
	*ret = NULL;
	ELFRW_TRY(dwr_sym_all_units(sym, file));
	size_t lo = LOWER_BOUND(0, file->unit_off.len, mid, file->unit_off.data[mid] <= off);
	if (!lo)
		return NULL;
	struct dwr_sym_unit *unit;
	ELFRW_TRY(dwr_sym_unit_at(sym, file, file->unit_off.data[lo - 1], &unit));
	if (unit && off < unit->u.end)
		*ret = unit;
	return NULL;
}

/* One set of .debug_aranges: adds its ranges, and its unit to LISTED. */
static bool read_set(struct dwr_sym *sym, struct elfrw_rbuf *all, struct dwr_spans *listed,
		     struct elfrw_err **err)
{
	unsigned offset_size = 4;
	uint64_t start = elfrw_rbuf_off(all), length = elfrw_rbuf_u32(all);
	if (length == 0xffffffff) {
		offset_size = 8;
		length = elfrw_rbuf_u64(all);
	}
	const uint8_t *body = elfrw_rbuf_take(all, length);
	if (!body)
		return false;
	struct elfrw_rbuf r = { all->start, body, all->pos, false };
	unsigned version = elfrw_rbuf_u16(&r);
	uint64_t unit = elfrw_rbuf_uint(&r, offset_size);
	unsigned size = elfrw_rbuf_u8(&r), segment = elfrw_rbuf_u8(&r);
	if (!elfrw_rbuf_ok(&r) || version != 2 || (size != 4 && size != 8) || segment)
		return true;
	uint64_t head = elfrw_rbuf_off(&r) - start;
	elfrw_rbuf_skip(&r, (2 * size - head % (2 * size)) % (2 * size));
	*err = dwr_spans_add(listed, unit, unit + 1, unit);
	while (!*err && elfrw_rbuf_left(&r) >= 2 * size && elfrw_rbuf_ok(&r)) {
		uint64_t lo = elfrw_rbuf_uint(&r, size), n = elfrw_rbuf_uint(&r, size);
		if (lo >= sym->debug->code_low && lo + n > lo)
			*err = dwr_spans_add(&sym->units, lo, lo + n, unit);
	}
	return !*err;
}

/* Adds the ranges in the unit's own DIE. */
static struct elfrw_err *add_unit(struct dwr_sym *sym, uint64_t off, struct dwr_sym_stated *stated)
{
	struct dwr_sym_unit *unit;
	struct dwr_sym_die die;
	ELFRW_TRY(dwr_sym_unit_at(sym, sym->debug, off, &unit));
	if (!unit || unit->u.type == DW_UT_partial || unit->u.type == DW_UT_split_compile ||
	    !dwr_sym_die_read(sym, unit, unit->u.die, &die) || die.tag == DW_TAG_partial_unit)
		return NULL;
	if (!die.ranges.form && !(die.low.form && die.high.form)) {
		uint64_t *slot = die.children ? VEC_PUSH(&sym->bare) : &off;
		if (!slot)
			return &elfrw_err_nomem;
		*slot = off;
		return NULL;
	}
	const struct dwr_sym_extent extent = { &die.low, &die.high, &die.ranges };
	return dwr_sym_state(sym, unit, &extent, off, stated, &sym->units);
}

/* Adds units that the index does not list. */
static struct elfrw_err *add_others(struct dwr_sym *sym, struct dwr_spans *listed)
{
	ELFRW_TRY(dwr_spans_flatten(listed, false));
	struct dwr_sym_stated stated = { 0 };
	struct elfrw_err *err = dwr_sym_all_units(sym, sym->debug);
	for (size_t i = 0; i < sym->debug->unit_off.len && !err; i++) {
		uint64_t off = sym->debug->unit_off.data[i];
		if (!dwr_spans_find(listed, off))
			err = add_unit(sym, off, &stated);
	}
	if (!err)
		err = dwr_sym_read_stated(sym, &stated, true, &sym->units);
	VEC_FREE(&stated);
	return err ? err : dwr_spans_flatten(&sym->units, true);
}

static struct elfrw_err *read_index(struct dwr_sym *sym, struct dwr_spans *listed)
{
	struct dwr_bytes sec = dwr_sym_sec(sym, sym->debug, DWR_ARANGES);
	struct elfrw_rbuf r = elfrw_rbuf(sec.data, sec.size);
	struct elfrw_err *err = NULL;
	while (elfrw_rbuf_left(&r) && read_set(sym, &r, listed, &err))
		;
	return err ? err : dwr_spans_flatten(&sym->units, true);
}

static struct elfrw_err *look_up(struct dwr_sym *sym, uint64_t address, struct dwr_sym_unit **ret)
{
	const struct dwr_span *s = dwr_spans_find(&sym->units, address);
	return s ? dwr_sym_unit_at(sym, sym->debug, s->id, ret) : NULL;
}

/* The last resort: the functions of units without ranges. */
static struct elfrw_err *read_bare(struct dwr_sym *sym)
{
	for (size_t i = 0; i < sym->bare.len; i++) {
		struct dwr_sym_unit *unit;
		ELFRW_TRY(dwr_sym_unit_at(sym, sym->debug, sym->bare.data[i], &unit));
		if (!unit)
			continue;
		ELFRW_TRY(dwr_sym_functions(sym, unit, DWR_FUNCS_OUTER));
		for (size_t k = 0; k < unit->funcs.len; k++)
			ELFRW_TRY(dwr_spans_add(&sym->units, unit->funcs.data[k].lo,
						unit->funcs.data[k].hi, unit->u.off));
	}
	return dwr_spans_flatten(&sym->units, true);
}

/* Each part of the index, read at the first call. */
static struct elfrw_err *read_listed(struct dwr_sym *sym)
{
	if (sym->units_read)
		return NULL;
	struct dwr_spans listed = { 0 };
	sym->units_read = true;
	sym->units.len = 0;
	struct elfrw_err *err = read_index(sym, &listed);
	free(listed.data);
	return err;
}

static struct elfrw_err *read_others(struct dwr_sym *sym)
{
	if (sym->others_read)
		return NULL;
	struct dwr_spans listed = { 0 };
	sym->others_read = true;
	sym->units.len = 0;
	struct elfrw_err *err = read_index(sym, &listed);
	if (!err)
		err = add_others(sym, &listed);
	free(listed.data);
	return err;
}

struct elfrw_err *dwr_sym_unit_spans(struct dwr_sym *sym)
{
	sym->units_read = true;
	ELFRW_TRY(read_others(sym));
	if (sym->bare_read || !sym->bare.len)
		return NULL;
	sym->bare_read = true;
	return read_bare(sym);
}

struct elfrw_err *dwr_sym_unit_for(struct dwr_sym *sym, uint64_t address, struct dwr_sym_unit **ret)
{
	*ret = NULL;
	ELFRW_TRY(read_listed(sym));
	ELFRW_TRY(look_up(sym, address, ret));
	if (*ret)
		return NULL;
	if (!sym->others_read) {
		ELFRW_TRY(read_others(sym));
		ELFRW_TRY(look_up(sym, address, ret));
		if (*ret)
			return NULL;
	}
	if (!sym->bare_read && sym->bare.len) {
		sym->bare_read = true;
		ELFRW_TRY(read_bare(sym));
		ELFRW_TRY(look_up(sym, address, ret));
	}
	return NULL;
}
