/* info.c: unit headers and the DIE cursor.
 *
 * The cursor takes most of the time: there are some million DIEs, one in ten with a wanted
 * attribute.  A DIE costs one LEB128 code, a table look-up and, for most, one addition (abbrev.h).
 * Each step checks bounds. */
#include "dwarf/info.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

#ifndef DW_FORM_LLVM_addrx_offset
#define DW_FORM_LLVM_addrx_offset 0x2001
#endif

struct elfrw_err *dwr_unit_header(struct elfrw_rbuf *r, const struct dwr_section *sec,
				  enum dwr_sec id, struct dwr_unit *u)
{
	u->sec = (uint8_t)id;
	u->off = elfrw_rbuf_off(r);
	u->params.offset_size = 4;
	uint64_t length = elfrw_rbuf_u32(r);
	if (length == 0xffffffff) {
		length = elfrw_rbuf_u64(r);
		u->params.offset_size = 8;
	} else if (length >= 0xfffffff0) {
		return elfrw_error_at(sec->name, u->off, "reserved unit length 0x%llx",
				      (unsigned long long)length);
	}
	if (!elfrw_rbuf_ok(r) || length > elfrw_rbuf_left(r))
		return elfrw_error_at(sec->name, u->off,
				      "unit of 0x%llx bytes goes beyond the section",
				      (unsigned long long)length);
	u->end = elfrw_rbuf_off(r) + length;
	struct elfrw_rbuf h = *r;
	h.end = r->start + u->end;
	r->pos = h.end;
	unsigned version = elfrw_rbuf_u16(&h);
	if (!elfrw_rbuf_ok(&h) || version < 2 || version > 5 || (id == DWR_TYPES && version == 5))
		return elfrw_error_at(sec->name, u->off, "unit of unknown DWARF version %u",
				      version);
	u->params.version = (uint8_t)version;
	u->type = id == DWR_TYPES ? DW_UT_type : DW_UT_compile;
	if (version >= 5) {
		u->type = elfrw_rbuf_u8(&h);
		u->params.address_size = elfrw_rbuf_u8(&h);
	}
	u->abbrev_pos = elfrw_rbuf_off(&h);
	u->abbrev_off = elfrw_rbuf_uint(&h, u->params.offset_size);
	if (version < 5)
		u->params.address_size = elfrw_rbuf_u8(&h);
	switch (u->type) {
	case DW_UT_compile:
	case DW_UT_partial: break;
	case DW_UT_type:
	case DW_UT_split_type:
		u->id = elfrw_rbuf_u64(&h);
		u->type_off = elfrw_rbuf_uint(&h, u->params.offset_size);
		break;
	case DW_UT_skeleton:
	case DW_UT_split_compile: u->id = elfrw_rbuf_u64(&h); break;
	default: return elfrw_error_at(sec->name, u->off, "unit of unknown type 0x%x", u->type);
	}
	if (!elfrw_rbuf_ok(&h))
		return elfrw_error_at(sec->name, u->off, "unit too small for its header");
	if (u->params.address_size != 4 && u->params.address_size != 8)
		return elfrw_error_at(sec->name, u->off, "unit with addresses of %u bytes",
				      u->params.address_size);
	u->die = elfrw_rbuf_off(&h);
	return NULL;
}

struct elfrw_err *dwr_units_read(struct dwr_sections *secs, struct dwr_units *ret)
{
	memset(ret, 0, sizeof *ret);
	ELFRW_TRY(dwr_sections_load(secs, DWR_ABBREV));
	static const enum dwr_sec ids[] = { DWR_INFO, DWR_TYPES };
	for (unsigned i = 0; i < 2; i++) {
		ELFRW_TRY(dwr_sections_load(secs, ids[i]));
		const struct dwr_section *sec = &secs->sec[ids[i]];
		struct elfrw_rbuf r = elfrw_rbuf(sec->data, sec->size);
		while (elfrw_rbuf_left(&r)) {
			struct dwr_unit u = { 0 }, *slot;
			struct elfrw_err *err = dwr_unit_header(&r, sec, ids[i], &u);
			if (!err && !(slot = VEC_PUSH(ret)))
				err = &elfrw_err_nomem;
			if (err) {
				dwr_units_deinit(ret);
				return err;
			}
			*slot = u;
		}
	}
	return NULL;
}

void dwr_units_deinit(struct dwr_units *units)
{
	VEC_FREE(units);
}

const struct dwr_unit *dwr_units_find(const struct dwr_units *units, enum dwr_sec sec, uint64_t off)
{
	const struct dwr_unit *u = units->data;
	size_t lo = LOWER_BOUND(0, units->len, mid,
				u[mid].sec < sec || (u[mid].sec == sec && u[mid].end <= off));
	if (lo == units->len || units->data[lo].sec != sec || units->data[lo].off > off)
		return NULL;
	return &units->data[lo];
}

struct dwr_cursor dwr_cursor_at(const struct dwr_sections *secs, const struct dwr_unit *unit,
				const struct dwr_abbrev_table *table, bool all)
{
	return dwr_cursor_at_die(secs, unit, table, all, unit->die);
}

struct dwr_cursor dwr_cursor_at_die(const struct dwr_sections *secs, const struct dwr_unit *unit,
				    const struct dwr_abbrev_table *table, bool all, uint64_t off)
{
	const uint8_t *data = secs->sec[unit->sec].data;
	struct dwr_cursor c = { .unit = unit,
				.table = table,
				.data = data,
				.pos = data + off,
				.end = data + unit->end,
				.all = all };
	c.done = off < unit->die || off >= unit->end;
	return c;
}

void dwr_value_read(struct elfrw_rbuf *r, uint32_t form, struct dwr_form_params params,
		    int64_t implicit, struct dwr_value *v)
{
	unsigned hops = 0;
	while (form == DW_FORM_indirect && elfrw_rbuf_ok(r)) {
		uint64_t f = elfrw_rbuf_uleb(r);
		/* An indirect implicit_const has no place for its value (section 7.5.3). */
		if (f > 0xffff || f == DW_FORM_implicit_const || ++hops > 4)
			r->bad = true;
		form = (uint32_t)f;
	}
	v->form = (uint16_t)form;
	v->implicit = form == DW_FORM_implicit_const;
	v->pos = elfrw_rbuf_off(r);
	switch (form) {
	case DW_FORM_flag_present: v->u = 1; break;
	case DW_FORM_implicit_const: v->u = (uint64_t)implicit; break;
	case DW_FORM_block1: v->u = elfrw_rbuf_u8(r); goto block;
	case DW_FORM_block2: v->u = elfrw_rbuf_u16(r); goto block;
	case DW_FORM_block4: v->u = elfrw_rbuf_u32(r); goto block;
	case DW_FORM_block:
	case DW_FORM_exprloc:
		v->u = elfrw_rbuf_uleb(r);
	block:
		v->pos = elfrw_rbuf_off(r);
		elfrw_rbuf_skip(r, v->u);
		break;
	case DW_FORM_string: elfrw_rbuf_cstr(r); break;
	case DW_FORM_sdata: v->u = (uint64_t)elfrw_rbuf_sleb(r); break;
	case DW_FORM_data16:
		v->u = elfrw_rbuf_u64(r);
		elfrw_rbuf_skip(r, 8);
		break;
	case DW_FORM_LLVM_addrx_offset:
		v->u = elfrw_rbuf_uleb(r);
		elfrw_rbuf_skip(r, 4);
		break;
	default:;
		int size = dwr_form_size(form, params);
		if (size >= 0)
			v->u = elfrw_rbuf_uint(r, (unsigned)size);
		else if (size == -1)
			v->u = elfrw_rbuf_uleb(r);
		else
			r->bad = true;
	}
	v->size = elfrw_rbuf_off(r) - v->pos;
}

static struct elfrw_err *broken(const struct dwr_cursor *cur, uint64_t off)
{
	return elfrw_error_at(cur->unit->sec == DWR_TYPES ? ".debug_types" : ".debug_info", off,
			      "entry goes beyond its unit, which ends at 0x%llx",
			      (unsigned long long)cur->unit->end);
}

/* A value that is not simply a number, or a rare form that is skipped. */
static void read_other(const struct dwr_abbrev_table *t, const struct dwr_step *s,
		       struct elfrw_rbuf *r, struct dwr_value *v)
{
	dwr_value_read(r, s->form, t->params, dwr_abbrev_implicit(t, &t->attr.data[s->attr]), v);
}

static void skip_attr(const struct dwr_abbrev_table *t, const struct dwr_step *s,
		      struct elfrw_rbuf *r)
{
	struct dwr_value v;
	switch (s->op) {
	case DWR_STEP_LEB:
		while (r->pos < r->end && *r->pos & 0x80)
			r->pos++;
		elfrw_rbuf_skip(r, 1);
		break;
	case DWR_STEP_CSTR: elfrw_rbuf_cstr(r); break;
	case DWR_STEP_BLOCK: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); break;
	case DWR_STEP_BLOCK1: elfrw_rbuf_skip(r, elfrw_rbuf_u8(r)); break;
	case DWR_STEP_BLOCK2: elfrw_rbuf_skip(r, elfrw_rbuf_u16(r)); break;
	case DWR_STEP_BLOCK4: elfrw_rbuf_skip(r, elfrw_rbuf_u32(r)); break;
	default: dwr_value_read(r, s->form, t->params, 0, &v);
	}
}

/* The attributes of one DIE from r->pos on. */
static struct elfrw_err *read_attrs(struct dwr_cursor *cur, struct elfrw_rbuf *r,
				    struct dwr_die *die)
{
	const struct dwr_abbrev_table *t = cur->table;
	unsigned n = 0;
	for (const struct dwr_step *s = &t->step.data[die->abbrev->step];; s++) {
		if (s->skip > elfrw_rbuf_left(r))
			return broken(cur, die->off);
		r->pos += s->skip;
		if (s->op == DWR_STEP_END) {
			die->n_values = n;
			return NULL;
		}
		if (s->op != DWR_STEP_VALUE) {
			skip_attr(t, s, r);
		} else if (n == DWR_MAX_VALUES) {
			return elfrw_error_at(cur->unit->sec == DWR_TYPES ? ".debug_types"
									  : ".debug_info",
					      die->off, "entry with too many attributes");
		} else {
			struct dwr_value *v = &die->value[n++];
			v->name = (uint16_t)s->name;
			v->attr = s->attr;
			if (s->size && s->size <= elfrw_rbuf_left(r)) {
				v->form = s->form;
				v->implicit = false;
				v->pos = elfrw_rbuf_off(r);
				v->size = s->size;
				v->u = elfrw_get_le(r->pos, s->size);
				r->pos += s->size;
				continue;
			}
			read_other(t, s, r, v);
		}
		if (!elfrw_rbuf_ok(r))
			return broken(cur, die->off);
	}
}

struct elfrw_err *dwr_cursor_next(struct dwr_cursor *cur, struct dwr_die *die, bool *more)
{
	struct elfrw_rbuf r = { cur->data, cur->pos, cur->end, false };
	*more = false;
	while (!cur->done && r.pos < r.end) {
		const uint8_t *at = r.pos;
		uint64_t code = *at & 0x80 ? elfrw_rbuf_uleb(&r) : *r.pos++;
		if (!code) {
			if (cur->depth <= 1)
				cur->done = true;
			else
				cur->depth--;
			if (!elfrw_rbuf_ok(&r))
				return broken(cur, (uint64_t)(at - cur->data));
			continue;
		}
		const struct dwr_abbrev *ab = dwr_abbrev_find(cur->table, code);
		if (!ab)
			return elfrw_error_at(
				cur->unit->sec == DWR_TYPES ? ".debug_types" : ".debug_info",
				(uint64_t)(at - cur->data), "unknown abbreviation code %llu",
				(unsigned long long)code);
		uint32_t depth = cur->depth;
		if (ab->children)
			cur->depth++;
		else if (!depth)
			cur->done = true;
		if (ab->fixed != UINT32_MAX && !cur->all) {
			if (elfrw_rbuf_left(&r) < ab->fixed)
				return broken(cur, (uint64_t)(at - cur->data));
			r.pos += ab->fixed;
			continue;
		}
		die->off = (uint64_t)(at - cur->data);
		die->depth = depth;
		die->abbrev = ab;
		die->attrs = elfrw_rbuf_off(&r);
		ELFRW_TRY(read_attrs(cur, &r, die));
		if (die->n_values || cur->all) {
			cur->pos = r.pos;
			*more = true;
			return NULL;
		}
	}
	cur->pos = r.pos;
	cur->done = true;
	return NULL;
}

struct elfrw_err *dwr_unit_abbrev(struct dwr_sections *secs, const struct dwr_unit *unit,
				  const struct dwr_want *want, struct dwr_abbrev_table *table)
{
	const struct dwr_section *ab = &secs->sec[DWR_ABBREV];
	return dwr_abbrev_read(table, ab->data, ab->size, unit->abbrev_off, unit->params, want);
}

static const char *string_at(const struct dwr_sections *secs, enum dwr_sec id, uint64_t off)
{
	const struct dwr_section *s = &secs->sec[id];
	if (off >= s->size || !memchr(s->data + off, 0, s->size - off))
		return NULL;
	return (const char *)s->data + off;
}

const char *dwr_value_string(const struct dwr_sections *secs, const struct dwr_unit *unit,
			     const struct dwr_unit_root *root, const struct dwr_value *v)
{
	switch (v->form) {
	case DW_FORM_string: return (const char *)secs->sec[unit->sec].data + v->pos;
	case DW_FORM_strp: return string_at(secs, DWR_STR, v->u);
	case DW_FORM_line_strp: return string_at(secs, DWR_LINE_STR, v->u);
	case DW_FORM_strx:
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
	case DW_FORM_GNU_str_index: break;
	default: return NULL;
	}
	const struct dwr_section *s = &secs->sec[DWR_STR_OFFSETS];
	unsigned size = unit->params.offset_size;
	uint64_t base = root->str_offsets_base == UINT64_MAX
				? (v->form == DW_FORM_GNU_str_index ? 0 : size * 2u)
				: root->str_offsets_base;
	if (v->u > s->size / size || base > s->size || s->size - base < (v->u + 1) * size)
		return NULL;
	return string_at(secs, DWR_STR, elfrw_get_le(s->data + base + v->u * size, size));
}

bool dwr_value_address(const struct dwr_sections *secs, const struct dwr_unit *unit,
		       const struct dwr_unit_root *root, const struct dwr_value *v, uint64_t *ret)
{
	if (v->form == DW_FORM_addr) {
		*ret = v->u;
		return true;
	}
	if (!dwr_form_is_address(v->form))
		return false;
	const struct dwr_section *s = &secs->sec[DWR_ADDR];
	unsigned size = unit->params.address_size;
	uint64_t base = root->addr_base;
	if (base ==
	    UINT64_MAX) /* after the header of the only contribution; the GNU form has none */
		base = v->form == DW_FORM_GNU_addr_index ? 0
		       : unit->params.offset_size == 8   ? 16
							 : 8;
	if (v->u > s->size / size || base > s->size || s->size - base < (v->u + 1) * size)
		return false;
	*ret = elfrw_get_le(s->data + base + v->u * size, size);
	if (v->form == DW_FORM_LLVM_addrx_offset)
		*ret += elfrw_get32(secs->sec[unit->sec].data + v->pos + v->size - 4);
	return true;
}

/* Finds the declaration of CODE without reading the whole table: a unit's own DIE usually has the
 * first one. */
static bool find_declaration(struct elfrw_rbuf *r, uint64_t code)
{
	for (;;) {
		uint64_t c = elfrw_rbuf_uleb(r);
		if (!c || !elfrw_rbuf_ok(r))
			return false;
		elfrw_rbuf_uleb(r);
		elfrw_rbuf_u8(r);
		if (c == code)
			return true;
		for (;;) {
			uint64_t name = elfrw_rbuf_uleb(r), form = elfrw_rbuf_uleb(r);
			if (form == DW_FORM_implicit_const)
				elfrw_rbuf_sleb(r);
			if (!elfrw_rbuf_ok(r))
				return false;
			if (!name && !form)
				break;
		}
	}
}

static bool is_root_attr(uint64_t name)
{
	switch (name) {
	case DW_AT_name:
	case DW_AT_comp_dir:
	case DW_AT_stmt_list:
	case DW_AT_low_pc:
	case DW_AT_language:
	case DW_AT_addr_base:
	case DW_AT_rnglists_base:
	case DW_AT_loclists_base:
	case DW_AT_str_offsets_base:
	case DW_AT_dwo_name:
	case DW_AT_GNU_dwo_name:
	case DW_AT_GNU_ranges_base:
	case DW_AT_GNU_addr_base: return true;
	}
	return false;
}

struct elfrw_err *dwr_unit_read_root(const struct dwr_sections *secs, const struct dwr_unit *unit,
				     struct dwr_unit_root *ret)
{
	const struct dwr_section *ab = &secs->sec[DWR_ABBREV];
	struct elfrw_rbuf r = elfrw_rbuf(secs->sec[unit->sec].data, unit->end),
			  d = elfrw_rbuf(ab->data, ab->size);
	struct dwr_die die = { .off = unit->die };
	elfrw_rbuf_seek(&r, unit->die);
	elfrw_rbuf_seek(&d, unit->abbrev_off);
	uint64_t code = elfrw_rbuf_left(&r) ? elfrw_rbuf_uleb(&r) : 0;
	if (code && !find_declaration(&d, code))
		return elfrw_error_at(secs->sec[unit->sec].name, unit->die,
				      "unknown abbreviation code %llu", (unsigned long long)code);
	while (code) {
		uint64_t name = elfrw_rbuf_uleb(&d), form = elfrw_rbuf_uleb(&d);
		int64_t implicit = form == DW_FORM_implicit_const ? elfrw_rbuf_sleb(&d) : 0;
		struct dwr_value v = { .name = (uint16_t)name };
		if (!elfrw_rbuf_ok(&d) || form > 0xffff || name > 0xffff)
			return elfrw_error_at(ab->name, unit->abbrev_off,
					      "broken abbreviation table");
		if (!name && !form)
			break;
		dwr_value_read(&r, (uint32_t)form, unit->params, implicit, &v);
		if (!elfrw_rbuf_ok(&r))
			return elfrw_error_at(secs->sec[unit->sec].name, unit->die,
					      "entry goes beyond its unit");
		if (is_root_attr(name) && die.n_values < DWR_MAX_VALUES)
			die.value[die.n_values++] = v;
	}
	dwr_die_root(secs, unit, &die, ret);
	return NULL;
}

void dwr_die_root(const struct dwr_sections *secs, const struct dwr_unit *unit,
		  const struct dwr_die *die, struct dwr_unit_root *ret)
{
	*ret = (struct dwr_unit_root){ .addr_base = UINT64_MAX,
				       .rnglists_base = UINT64_MAX,
				       .loclists_base = UINT64_MAX,
				       .str_offsets_base = UINT64_MAX };
	for (unsigned i = 0; i < die->n_values;
	     i++) { /* the bases first: the rest is read through them */
		const struct dwr_value *v = &die->value[i];
		switch (v->name) {
		case DW_AT_addr_base:
		case DW_AT_GNU_addr_base: ret->addr_base = v->u; break;
		case DW_AT_rnglists_base: ret->rnglists_base = v->u; break;
		case DW_AT_loclists_base: ret->loclists_base = v->u; break;
		case DW_AT_str_offsets_base: ret->str_offsets_base = v->u; break;
		case DW_AT_GNU_ranges_base: ret->gnu_ranges_base = v->u; break;
		case DW_AT_stmt_list:
			ret->has_line = true;
			ret->line = v->u;
			break;
		case DW_AT_language: ret->language = v->u; break;
		}
	}
	for (unsigned i = 0; i < die->n_values; i++) {
		const struct dwr_value *v = &die->value[i];
		switch (v->name) {
		case DW_AT_name: ret->name = dwr_value_string(secs, unit, ret, v); break;
		case DW_AT_comp_dir:
			ret->comp_dir = dwr_value_string(secs, unit, ret, v);
			if (v->form == DW_FORM_GNU_strp_alt || v->form == DW_FORM_strp_sup) {
				ret->comp_dir_form = v->form;
				ret->comp_dir_off = v->u;
			}
			break;
		case DW_AT_dwo_name:
		case DW_AT_GNU_dwo_name:
			ret->has_dwo = true;
			ret->dwo_name = dwr_value_string(secs, unit, ret, v);
			break;
		case DW_AT_low_pc:
			ret->has_low_pc = dwr_value_address(secs, unit, ret, v, &ret->low_pc);
			break;
		}
	}
}
