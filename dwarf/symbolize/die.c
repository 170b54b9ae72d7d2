/* die.c: single entries of .debug_info: their attributes, names and ranges.
 *
 * Only entries that are part of an answer are read in full.  Walks deliver only the places of code
 * (dwr_sym_abbrev). */
#include "dwarf/symbolize/state.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

#ifndef DW_AT_GNU_discriminator
#define DW_AT_GNU_discriminator 0x2136 /* of a call site that was inlined (LLVM) */
#endif

#define ABBREV_WAYS 4
#define MAX_HOPS    16 /* from a DIE to the one with its name */

struct elfrw_err *dwr_sym_abbrev_read(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				      struct dwr_abbrev_table *table)
{
	struct dwr_want want = { 0 };
	DWR_WANT_NAME(&want, DW_AT_low_pc);
	DWR_WANT_NAME(&want, DW_AT_high_pc);
	DWR_WANT_NAME(&want, DW_AT_ranges);
	DWR_WANT_NAME(&want, DW_AT_sibling);
	struct dwr_bytes sec = dwr_sym_sec(sym, unit->file, DWR_ABBREV);
	return dwr_abbrev_read(table, sec.data, sec.size, unit->u.abbrev_off, unit->u.params,
			       &want);
}

struct elfrw_err *dwr_sym_abbrev(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				 const struct dwr_abbrev_table **ret)
{
	uint64_t off = unit->u.abbrev_off, hash = off * UINT64_C(0x9e3779b97f4a7c15) >> 32;
	struct dwr_abbrev_table *
		set = &unit->file
			       ->abbrev[hash % (unit->file->n_abbrevs / ABBREV_WAYS) * ABBREV_WAYS],
	       *table = set;
	unsigned way = 0;
	while (way < ABBREV_WAYS && set[way].used && set[way].off != off)
		way++;
	table = &set[way < ABBREV_WAYS ? way : hash >> 16 & (ABBREV_WAYS - 1)];
	*ret = table;
	const bool known = table->used && table->off == off;
	if (known && !memcmp(&table->params, &unit->u.params, sizeof table->params))
		return NULL;
	ELFRW_TRY(dwr_sym_abbrev_read(sym, unit, table));
	if (!known)
		dwr_abbrev_trim(table);
	return NULL;
}

static struct dwr_value *slot_for(struct dwr_sym_die *die, uint64_t name)
{
	switch (name) {
	case DW_AT_name: return &die->name;
	case DW_AT_linkage_name:
	case DW_AT_MIPS_linkage_name: return &die->linkage;
	case DW_AT_abstract_origin: return &die->origin;
	case DW_AT_specification: return &die->spec;
	case DW_AT_low_pc: return &die->low;
	case DW_AT_high_pc: return &die->high;
	case DW_AT_ranges: return &die->ranges;
	case DW_AT_decl_file: return &die->decl_file;
	case DW_AT_decl_line: return &die->decl_line;
	case DW_AT_call_file: return &die->call_file;
	case DW_AT_call_line: return &die->call_line;
	case DW_AT_call_column: return &die->call_column;
	case DW_AT_GNU_discriminator: return &die->discriminator;
	case DW_AT_comp_dir: return &die->comp_dir;
	}
	return NULL;
}

bool dwr_sym_die_read(struct dwr_sym *sym, const struct dwr_sym_unit *unit, uint64_t off,
		      struct dwr_sym_die *ret)
{
	const struct dwr_abbrev_table *table;
	if (off < unit->u.die || off >= unit->u.end)
		return false;
	struct elfrw_err *err = dwr_sym_abbrev(sym, unit, &table);
	if (err) {
		dwr_sym_forget(sym, err);
		return false;
	}
	struct elfrw_rbuf r = elfrw_rbuf(unit->file->secs.sec[unit->u.sec].data, unit->u.end);
	elfrw_rbuf_seek(&r, off);
	const struct dwr_abbrev *ab = dwr_abbrev_find(table, elfrw_rbuf_uleb(&r));
	if (!ab || !elfrw_rbuf_ok(&r))
		return false;
	*ret = (struct dwr_sym_die){
		.unit = unit, .off = off, .tag = ab->tag, .children = ab->children
	};
	for (uint32_t i = 0; i < ab->n_attrs; i++) {
		const struct dwr_abbrev_attr *at = &table->attr.data[ab->attr + i];
		struct dwr_value skipped = { 0 }, *v = slot_for(ret, at->name);
		if (!v)
			v = &skipped;
		v->name = (uint16_t)at->name;
		dwr_value_read(&r, at->form, unit->u.params, dwr_abbrev_implicit(table, at), v);
		if (!elfrw_rbuf_ok(&r))
			return false;
	}
	return true;
}

bool dwr_sym_low_high(const struct dwr_sym_unit *unit, const struct dwr_sym_extent *extent,
		      struct dwr_span *ret)
{
	const struct dwr_value *low = extent->low, *high = extent->high;
	struct dwr_sym_file *file = unit->file;
	*ret = (struct dwr_span){ 0 };
	if (!low || !low->form || !high || !high->form ||
	    !dwr_value_address(&file->secs, &unit->u, &unit->root, low, &ret->lo))
		return false;
	if (!dwr_form_is_address(high->form))
		ret->hi = ret->lo + high->u;
	else if (!dwr_value_address(&file->secs, &unit->u, &unit->root, high, &ret->hi))
		ret->hi = 0;
	if (ret->lo < file->code_low || ret->hi <= ret->lo)
		ret->lo = ret->hi = 0;
	return true;
}

struct elfrw_err *dwr_sym_range(const struct dwr_sym_unit *unit,
				const struct dwr_sym_extent *extent, uint64_t id,
				struct dwr_spans *spans, bool *found)
{
	struct dwr_span s;
	*found = dwr_sym_low_high(unit, extent, &s);
	return *found ? dwr_spans_add(spans, s.lo, s.hi, id) : NULL;
}

/* The sections with UNIT's range lists, and their kind. */
static enum dwr_list_kind list_secs(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				    struct dwr_list_secs *ret)
{
	bool v5 = unit->u.params.version >= 5;
	enum dwr_list_kind kind = v5 ? DWR_LIST_RNGLISTS : DWR_LIST_RANGES;
	struct dwr_bytes list = dwr_sym_sec(sym, unit->file, v5 ? DWR_RNGLISTS : DWR_RANGES),
			 addr = dwr_sym_sec(sym, unit->file, DWR_ADDR);
	*ret = (struct dwr_list_secs){ .addr = { ".debug_addr", addr.data, addr.size } };
	ret->list[kind] = (struct dwr_list_sec){ v5 ? ".debug_rnglists" : ".debug_ranges",
						 list.data, list.size };
	return kind;
}

struct elfrw_err *dwr_sym_list_off(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				   const struct dwr_value *ranges, uint64_t *ret)
{
	struct dwr_list_secs secs;
	*ret = ranges->u;
	if (ranges->form != DW_FORM_rnglistx)
		return NULL;
	enum dwr_list_kind kind = list_secs(sym, unit, &secs);
	return dwr_list_index(&secs, kind, &unit->cu, ranges->u, ret);
}

struct elfrw_err *dwr_sym_list_ranges(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				      uint64_t off, uint64_t id, struct dwr_spans *spans,
				      struct dwr_sym_list_bytes *ret)
{
	struct dwr_list_secs secs;
	enum dwr_list_kind kind = list_secs(sym, unit, &secs);
	struct dwr_list_walk w = { &secs, kind, &unit->cu, off, unit->cu.base };
	const size_t before = spans->len;
	const uint64_t code_low = unit->file->code_low;
	uint64_t begin, end;
	bool more;
	*ret = (struct dwr_sym_list_bytes){ .section = secs.list[kind].size };
	for (;;) {
		struct elfrw_err *err = dwr_list_walk_next(&w, &begin, &end, &more);
		if (err) {
			spans->len = before;
			return dwr_sym_warn(sym, err);
		}
		if (!more)
			break;
		if (begin >= code_low)
			ELFRW_TRY(dwr_spans_add(spans, begin, end, id));
	}
	ret->list = w.off - off;
	return NULL;
}

struct elfrw_err *dwr_sym_ranges(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
				 const struct dwr_sym_extent *extent, uint64_t id,
				 struct dwr_spans *spans)
{
	struct dwr_sym_list_bytes bytes;
	bool found;
	uint64_t off;
	ELFRW_TRY(dwr_sym_range(unit, extent, id, spans, &found));
	if (found || !extent->ranges || !extent->ranges->form)
		return NULL;
	struct elfrw_err *err = dwr_sym_list_off(sym, unit, extent->ranges, &off);
	return err ? dwr_sym_warn(sym, err)
		   : dwr_sym_list_ranges(sym, unit, off, id, spans, &bytes);
}

uint64_t dwr_sym_local_ref(const struct dwr_sym_unit *unit, const struct dwr_value *v)
{
	switch (v->form) {
	case DW_FORM_ref1:
	case DW_FORM_ref2:
	case DW_FORM_ref4:
	case DW_FORM_ref8:
	case DW_FORM_ref_udata:
		return v->u < unit->u.end - unit->u.off ? unit->u.off + v->u : UINT64_MAX;
	}
	return UINT64_MAX;
}

/* The DIE that the value V of a DIE of UNIT refers to. */
static bool follow(struct dwr_sym *sym, const struct dwr_sym_unit *unit, const struct dwr_value *v,
		   struct dwr_sym_die *ret)
{
	struct dwr_sym_unit *other = NULL;
	struct dwr_sym_file *file = unit->file;
	uint64_t local = dwr_sym_local_ref(unit, v);
	if (local != UINT64_MAX)
		return dwr_sym_die_read(sym, unit, local, ret);
	switch (v->form) {
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_ref_sup4:
	case DW_FORM_ref_sup8: file = dwr_sym_alt(sym); break;
	case DW_FORM_ref_addr:
		if (v->u >= unit->u.off && v->u < unit->u.end)
			return dwr_sym_die_read(sym, unit, v->u, ret);
		break;
	default: return false;
	}
	struct elfrw_err *err = file ? dwr_sym_unit_around(sym, file, v->u, &other) : NULL;
	dwr_sym_forget(sym, err);
	return other && dwr_sym_die_read(sym, other, v->u, ret);
}

bool dwr_sym_die_origin(struct dwr_sym *sym, const struct dwr_sym_die *die, struct dwr_sym_die *ret)
{
	if (die->spec.form)
		return follow(sym, die->unit, &die->spec, ret);
	return die->origin.form && follow(sym, die->unit, &die->origin, ret);
}

const char *dwr_sym_string(struct dwr_sym *sym, const struct dwr_sym_unit *unit,
			   const struct dwr_value *v)
{
	if (v->form != DW_FORM_GNU_strp_alt && v->form != DW_FORM_strp_sup)
		return dwr_value_string(&unit->file->secs, &unit->u, &unit->root, v);
	struct dwr_sym_file *alt = dwr_sym_alt(sym);
	struct dwr_bytes str = alt ? dwr_sym_sec(sym, alt, DWR_STR) : (struct dwr_bytes){ 0 };
	if (v->u >= str.size || !memchr(str.data + v->u, 0, str.size - v->u))
		return NULL;
	return (const char *)str.data + v->u;
}

/* Adds the values of DIE that *RET lacks; true: *RET is complete. */
static bool add_decl(struct dwr_sym *sym, const struct dwr_sym_die *die, bool *has_file,
		     bool *has_line, struct dwr_sym_decl *ret)
{
	if (!ret->name && die->name.form)
		ret->name = dwr_sym_string(sym, die->unit, &die->name);
	if (!ret->linkage && die->linkage.form)
		ret->linkage = dwr_sym_string(sym, die->unit, &die->linkage);
	if (!*has_file && die->decl_file.form) {
		*has_file = true;
		ret->file = dwr_sym_file_name(sym, die->unit, die->decl_file.u);
	}
	if (!*has_line && die->decl_line.form) {
		*has_line = true;
		ret->line = (uint32_t)die->decl_line.u;
	}
	return ret->name && ret->linkage && *has_file && *has_line;
}

/* Most entries are inlined copies, which only refer to their origin: the origin's values are
 * cached. */
void dwr_sym_die_decl(struct dwr_sym *sym, const struct dwr_sym_die *first,
		      struct dwr_sym_decl *ret)
{
	struct dwr_sym_die die, next = *first;
	struct dwr_sym_decl_of *kept = NULL;
	bool has_file = false, has_line = false,
	     bare = !first->name.form && !first->linkage.form && !first->spec.form &&
		    !first->decl_file.form && !first->decl_line.form;
	uint64_t origin = bare ? dwr_sym_local_ref(first->unit, &first->origin) : UINT64_MAX;
	if (origin != UINT64_MAX) {
		kept = &sym->decl[(origin * UINT64_C(0x9e3779b97f4a7c15) >> 40) % DWR_SYM_DECLS];
		if (kept->unit == first->unit && kept->die == origin) {
			*ret = kept->decl;
			return;
		}
	}
	*ret = (struct dwr_sym_decl){ 0 };
	for (unsigned hops = 0; hops < MAX_HOPS; hops++) {
		die = next;
		if (add_decl(sym, &die, &has_file, &has_line, ret) ||
		    !dwr_sym_die_origin(sym, &die, &next))
			break;
	}
	if (kept)
		*kept = (struct dwr_sym_decl_of){ first->unit, origin, *ret };
}
