/* walk.c: addresses in the DIEs of one unit.
 *
 * One walk, in place: the size of no attribute changes, so that no offset into .debug_info does.
 * Whether something was folded is asked of each address on its own; no DIE needs to know in which
 * function it lies.  That holds for inlined copies, cold parts and DIEs that are there twice.
 *
 * One owner per address: the range of a DIE that lay in a folded unit becomes empty, its low_pc
 * says where the code is now, and what it lost is collected for the overlay.  Return addresses are
 * ends: the call may be the last instruction of its unit. */
#include "dwarf/rewrite/die/state.h"
#include "dwarf/expr.h"
#include <dwarf.h>
#include <search.h>

#ifndef DW_AT_LLVM_stmt_sequence
#define DW_AT_LLVM_stmt_sequence 0x3e0c
#endif

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

static struct elfrw_err *expr_ref(void *arg, enum dwr_expr_ref ref, uint64_t value,
				  const struct dwr_op *op)
{
	struct dwr_die_scan *s = arg;
	if (ref != DWR_EXPR_ADDRX && ref != DWR_EXPR_CONSTX)
		return NULL;
	struct dwr_value v = { .form = s->unit->params.version < 5 ? DW_FORM_GNU_addr_index
								   : DW_FORM_addrx,
			       .u = value };
	uint64_t va;
	ELFRW_TRY(dwr_die_address(s, &v, &va));
	return dwr_die_want_slot(s, dwr_die_slot(s, &v),
				 ref == DWR_EXPR_ADDRX ? dwr_die_mapped(s, va, USE_POINTER) : va,
				 s->expr_pos + op->off);
}

/* Nine in ten expressions are a single operator without an address: a register, or the frame base
 * plus a number. */
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

static struct elfrw_err *expression(struct dwr_die_scan *s, const struct dwr_value *v)
{
	if (harmless(s->out + v->pos, v->size))
		return NULL;
	s->expr_pos = v->pos;
	struct dwr_expr_mapping mapping = { .map = s->rw->map, .fn = expr_ref, .arg = s };
	return dwr_expr_map(s->out + v->pos, v->size, s->unit->params, s->section, v->pos,
			    &mapping);
}

static bool is_offset_form(const struct dwr_die_scan *s, const struct dwr_value *v)
{
	return v->form == DW_FORM_sec_offset ||
	       (s->unit->params.version < 4 &&
		(v->form == DW_FORM_data4 || v->form == DW_FORM_data8));
}

/* An attribute with an address that is not part of a [low_pc, high_pc). */
static struct elfrw_err *address(struct dwr_die_scan *s, const struct dwr_die *die,
				 const struct dwr_value *v)
{
	bool call =
		die->abbrev->tag == DW_TAG_GNU_call_site || die->abbrev->tag == DW_TAG_call_site;
	switch (v->name) {
	case DW_AT_low_pc: return dwr_die_map_address(s, v, call ? USE_END : USE_POINT);
	case DW_AT_high_pc:
	case DW_AT_call_return_pc: return dwr_die_map_address(s, v, USE_END);
	case DW_AT_entry_pc:
	case DW_AT_call_pc: return dwr_die_map_address(s, v, USE_POINT);
	}
	return dwr_die_map_address(s, v, USE_POINTER);
}

static struct elfrw_err *stmt_list(struct dwr_die_scan *s, const struct dwr_value *v)
{
	if (!s->rw->has_line)
		return NULL;
	uint64_t off = dwr_rw_line_unit_off(&s->rw->line, v->u);
	if (off == UINT64_MAX)
		return elfrw_error_at(s->section, v->pos, "no line table begins at 0x%llx",
				      (unsigned long long)v->u);
	return dwr_die_put_offset(s, v, off);
}

static struct elfrw_err *stmt_sequence(struct dwr_die_scan *s, const struct dwr_value *v)
{
	if (!s->rw->has_line || v->u == (v->size == 4 ? UINT32_MAX : UINT64_MAX))
		return NULL;
	uint64_t off = dwr_rw_line_seq_off(&s->rw->line, v->u);
	return dwr_die_put_offset(s, v, off == UINT64_MAX && v->size == 4 ? UINT32_MAX : off);
}

static struct elfrw_err *macros(struct dwr_die_scan *s, const struct dwr_value *v)
{
	uint64_t *m = VEC_PUSH(&s->ru->macro);
	if (!m)
		return &elfrw_err_nomem;
	*m = v->u;
	return NULL;
}

/* Handles an attribute that is known by its name. */
static struct elfrw_err *by_name(struct dwr_die_scan *s, const struct dwr_die *die,
				 const struct dwr_value *v)
{
	switch (v->name) {
	case DW_AT_ranges: return is_offset_form(s, v) ? dwr_die_ranges(s, die, v) : NULL;
	case DW_AT_start_scope:
		return v->form == DW_FORM_sec_offset ? dwr_die_ranges(s, die, v) : NULL;
	case DW_AT_data_member_location: /* a list only in the form that is nothing else */
		return v->form == DW_FORM_sec_offset ? dwr_die_location_list(s, die, v) : NULL;
	case DW_AT_location:
	case DW_AT_string_length:
	case DW_AT_return_addr:
	case DW_AT_frame_base:
	case DW_AT_segment:
	case DW_AT_static_link:
	case DW_AT_use_location:
	case DW_AT_vtable_elem_location:
		return is_offset_form(s, v) ? dwr_die_location_list(s, die, v) : NULL;
	case DW_AT_stmt_list: return stmt_list(s, v);
	case DW_AT_LLVM_stmt_sequence: return stmt_sequence(s, v);
	case DW_AT_macros:
	case DW_AT_GNU_macros: return macros(s, v);
	case DW_AT_rnglists_base: return dwr_die_lists_base(s, die, v, DWR_SITE_RNG_BASE);
	case DW_AT_loclists_base: return dwr_die_lists_base(s, die, v, DWR_SITE_LOC_BASE);
	}
	return NULL;
}

/* One attribute that is not part of a [low_pc, high_pc). */
static struct elfrw_err *attribute(struct dwr_die_scan *s, const struct dwr_die *die,
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
	case DW_FORM_loclistx: return dwr_die_location_list(s, die, v);
	case DW_FORM_rnglistx: return dwr_die_ranges(s, die, v);
	}
	return dwr_form_is_address(v->form) ? address(s, die, v) : by_name(s, die, v);
}

/* DWARF in another file uses addresses and lists of this file in ways that cannot be seen from
 * here. */
static struct elfrw_err *check_split(const struct dwr_die_scan *s, const struct dwr_die *die)
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

static struct elfrw_err *scan_die(struct dwr_die_scan *s, const struct dwr_die *die)
{
	const struct dwr_value *low = dwr_die_value(die, DW_AT_low_pc), *high = NULL;
	if (!die->depth)
		ELFRW_TRY(check_split(s, die));
	if (low)
		high = dwr_die_value(die, DW_AT_high_pc);
	if (high)
		ELFRW_TRY(dwr_die_low_high(s, die, low, high));
	else if (low && !die->depth && s->ru->root.has_low_pc)
		s->ru->new_base = dwr_die_mapped(s, s->ru->root.low_pc, USE_POINT);
	for (unsigned i = 0; i < die->n_values; i++) {
		const struct dwr_value *v = &die->value[i];
		if (high && (v == low || v == high))
			continue;
		ELFRW_TRY(attribute(s, die, v));
	}
	return NULL;
}

/* Room for as many sites as optimized code has. */
static bool make_room(const struct dwr_rw *rw, const struct dwr_unit *unit, struct dwr_rw_unit *ru)
{
	const uint64_t first = (unit->off + DWR_BYTES_PER_SITE - 1) / DWR_BYTES_PER_SITE,
		       end = unit->end / DWR_BYTES_PER_SITE;
	ru->lent = rw->room && unit->sec == DWR_INFO && first < end;
	/* Memory that is not written costs nothing. */
	if (!ru->lent)
		return VEC_RESERVE(&ru->site, (unit->end - unit->off) / DWR_BYTES_PER_SITE);
	ru->site.data = rw->room + first;
	ru->site.cap = end - first;
	return true;
}

struct elfrw_err *dwr_rw_info_unit(struct dwr_rw *rw, size_t i,
				   const struct dwr_abbrev_table *table)
{
	const struct dwr_unit *unit = &rw->units.data[i];
	struct dwr_rw_unit *ru = &rw->ru[i];
	struct dwr_die_scan s = { .rw = rw,
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
	struct elfrw_err *err = NULL;
	if (!make_room(rw, unit, ru))
		return &elfrw_err_nomem;
	const bool search = rw->in->calls && unit->sec == DWR_INFO;
	while (!(err = dwr_cursor_next(&cur, &die, &more)) && more) {
		if ((err = scan_die(&s, &die)))
			break;
		if (search && dwr_call_search_has(&rw->search, die.abbrev->tag) &&
		    (err = dwr_call_search_look(&rw->search, unit, &ru->root, &die, &ru->call)))
			break;
	}
	for (size_t k = 0; k < ru->site.len; k++)
		ru->n_lists += ru->site.data[k].kind == DWR_SITE_LIST;
	dwr_pieces_deinit(&s.pieces);
	dwr_list_deinit(&s.list);
	tdestroy(s.noted, dwr_die_free_noted);
	return err;
}
