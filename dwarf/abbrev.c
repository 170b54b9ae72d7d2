/* abbrev.c: reads abbreviation tables and compiles them for walking.
 *
 * Linked files have one table for each unit, with some hundred declarations.  A table is read once
 * for each unit (a shared one once for each thread and run of units) into reused flat arrays: the
 * cost is small against the unit's DIEs.  Format: DWARF 5, section 7.5.3; forms: table 7.6, and the
 * GNU and LLVM extensions. */
#include "dwarf/abbrev.h"
#include "elfrw/base/rbuf.h"
#include "elfrw/base/search.h"
#include <dwarf.h>

#ifndef DW_FORM_LLVM_addrx_offset
#define DW_FORM_LLVM_addrx_offset 0x2001
#endif

int dwr_form_size(uint32_t form, struct dwr_form_params p)
{
	switch (form) {
	case DW_FORM_flag_present:
	case DW_FORM_implicit_const: return 0;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
	case DW_FORM_strx1:
	case DW_FORM_addrx1: return 1;
	case DW_FORM_data2:
	case DW_FORM_ref2:
	case DW_FORM_strx2:
	case DW_FORM_addrx2: return 2;
	case DW_FORM_strx3:
	case DW_FORM_addrx3: return 3;
	case DW_FORM_data4:
	case DW_FORM_ref4:
	case DW_FORM_ref_sup4:
	case DW_FORM_strx4:
	case DW_FORM_addrx4: return 4;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
	case DW_FORM_ref_sup8: return 8;
	case DW_FORM_data16: return 16;
	case DW_FORM_addr: return p.address_size;
	case DW_FORM_ref_addr: return p.version <= 2 ? p.address_size : p.offset_size;
	case DW_FORM_strp:
	case DW_FORM_line_strp:
	case DW_FORM_sec_offset:
	case DW_FORM_strp_sup:
	case DW_FORM_GNU_ref_alt:
	case DW_FORM_GNU_strp_alt: return p.offset_size;
	case DW_FORM_block1:
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_block:
	case DW_FORM_exprloc:
	case DW_FORM_string:
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
	case DW_FORM_indirect:
	case DW_FORM_strx:
	case DW_FORM_addrx:
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_GNU_str_index:
	case DW_FORM_LLVM_addrx_offset: return -1;
	}
	return -2;
}

bool dwr_form_is_address(unsigned form)
{
	switch (form) {
	case DW_FORM_addr:
	case DW_FORM_addrx:
	case DW_FORM_addrx1:
	case DW_FORM_addrx2:
	case DW_FORM_addrx3:
	case DW_FORM_addrx4:
	case DW_FORM_GNU_addr_index:
	case DW_FORM_LLVM_addrx_offset: return true;
	}
	return false;
}

/* Is it a DIE of TAG whose attributes WANT is about? */
static bool is_about(const struct dwr_want *want, uint32_t tag)
{
	return !want->tag[0] || tag == want->tag[0] || tag == want->tag[1] || tag == want->tag[2];
}

/* Does the walker deliver the attribute? */
static bool is_wanted(const struct dwr_want *want, const struct dwr_abbrev_attr *at)
{
	if (at->name < 0x100) {
		if (want->name[at->name >> 6] >> (at->name & 63) & 1)
			return true;
	} else {
		for (unsigned i = 0; i < want->n_vendor; i++)
			if (want->vendor[i] == at->name)
				return true;
	}
	if (dwr_form_is_address(at->form))
		return want->addresses;
	switch (at->form) {
	case DW_FORM_exprloc: return want->expressions;
	case DW_FORM_block1: /* before DWARF 4 expressions are blocks, as are arrays of bytes
				(DW_AT_const_value) */
	case DW_FORM_block2:
	case DW_FORM_block4:
	case DW_FORM_block:
		return want->expressions && at->name != DW_AT_const_value &&
		       at->name != DW_AT_discr_list && at->name != DW_AT_default_value;
	case DW_FORM_loclistx:
	case DW_FORM_rnglistx: return want->lists;
	case DW_FORM_indirect: return true; /* only the DIE gives the form */
	}
	return false;
}

static enum dwr_step_op skip_op(uint32_t form)
{
	switch (form) {
	case DW_FORM_string: return DWR_STEP_CSTR;
	case DW_FORM_block1: return DWR_STEP_BLOCK1;
	case DW_FORM_block2: return DWR_STEP_BLOCK2;
	case DW_FORM_block4: return DWR_STEP_BLOCK4;
	case DW_FORM_block:
	case DW_FORM_exprloc: return DWR_STEP_BLOCK;
	case DW_FORM_LLVM_addrx_offset:
	case DW_FORM_indirect: return DWR_STEP_OTHER;
	}
	return DWR_STEP_LEB;
}

/* The size of values of FORM that are little-endian numbers, or 0. */
static uint8_t number_size(uint32_t form, struct dwr_form_params params)
{
	const int size = dwr_form_size(form, params);
	return form != DW_FORM_data16 && (size == 1 || size == 2 || size == 4 || size == 8)
		       ? (uint8_t)size
		       : 0;
}

static struct elfrw_err *compile(struct dwr_abbrev_table *t, struct dwr_abbrev *ab,
				 const struct dwr_want *want)
{
	uint64_t skip = 0;
	bool variable = false;
	const bool any = is_about(want, ab->tag),
		   also = want->also && is_about(want->also, ab->tag);
	ab->step = (uint32_t)t->step.len;
	for (uint32_t i = 0; i < ab->n_attrs; i++) {
		const struct dwr_abbrev_attr *at = &t->attr.data[ab->attr + i];
		bool wanted = (any && is_wanted(want, at)) || (also && is_wanted(want->also, at));
		if (skip > UINT32_MAX / 2)
			return elfrw_error_at(".debug_abbrev", t->off + ab->pos,
					      "declaration too large");
		int size = dwr_form_size(at->form, t->params);
		if (size == -2)
			return elfrw_error_at(".debug_abbrev", t->off + ab->pos,
					      "unknown form 0x%x", at->form);
		if (size >= 0 && !wanted) {
			skip += (unsigned)size;
			continue;
		}
		struct dwr_step *s = VEC_PUSH(&t->step);
		if (!s)
			return &elfrw_err_nomem;
		*s = (struct dwr_step){ .skip = (uint32_t)skip,
					.op = wanted ? DWR_STEP_VALUE : skip_op(at->form),
					.size = wanted ? number_size(at->form, t->params) : 0,
					.form = at->form,
					.attr = ab->attr + i,
					.name = at->name };
		skip = 0;
		ab->wanted |= wanted;
		variable = true;
	}
	struct dwr_step *s = VEC_PUSH(&t->step);
	if (!s)
		return &elfrw_err_nomem;
	*s = (struct dwr_step){ .skip = (uint32_t)skip, .op = DWR_STEP_END };
	ab->fixed = variable ? UINT32_MAX : (uint32_t)skip;
	return NULL;
}

static int by_code(const void *a, const void *b)
{
	const struct dwr_abbrev *x = a, *y = b;
	if (x->code != y->code)
		return x->code < y->code ? -1 : 1;
	return x->pos < y->pos ? -1 : 1;
}

/* Reads the attributes of the declaration at POS. */
static struct elfrw_err *read_attrs(struct dwr_abbrev_table *t, struct elfrw_rbuf *r, uint64_t pos)
{
	for (;;) {
		uint64_t name = elfrw_rbuf_uleb(r), form = elfrw_rbuf_uleb(r);
		int64_t implicit = form == DW_FORM_implicit_const ? elfrw_rbuf_sleb(r) : 0;
		if (!elfrw_rbuf_ok(r) || (!name && !form))
			return NULL;
		if (name > 0xffff || form > 0xffff)
			return elfrw_error_at(".debug_abbrev", pos,
					      "attribute or form number out of range");
		struct dwr_abbrev_attr *at = VEC_PUSH(&t->attr);
		if (!at)
			return &elfrw_err_nomem;
		*at = (struct dwr_abbrev_attr){ (uint16_t)name, (uint16_t)form,
						(uint32_t)t->implicit.len };
		if (form != DW_FORM_implicit_const)
			continue;
		int64_t *value = VEC_PUSH(&t->implicit);
		if (!value)
			return &elfrw_err_nomem;
		*value = implicit;
	}
}

static struct elfrw_err *read_table(struct dwr_abbrev_table *t, const uint8_t *data, size_t size,
				    uint64_t off, const struct dwr_want *want)
{
	struct elfrw_rbuf r = elfrw_rbuf(data, size);
	elfrw_rbuf_seek(&r, off);
	bool dense = true;
	for (;;) {
		uint64_t pos = elfrw_rbuf_off(&r);
		uint64_t code = elfrw_rbuf_uleb(&r);
		if (!code)
			break;
		uint64_t tag = elfrw_rbuf_uleb(&r);
		struct dwr_abbrev ab = { .code = code,
					 .tag = (uint16_t)tag,
					 .children = elfrw_rbuf_u8(&r) != 0,
					 .attr = (uint32_t)t->attr.len,
					 .pos = (uint32_t)(pos - off) };
		ELFRW_TRY(read_attrs(t, &r, pos));
		if (!elfrw_rbuf_ok(&r))
			break;
		if (tag > 0xffff || t->attr.len > UINT32_MAX / 2)
			return elfrw_error_at(".debug_abbrev", pos, "tag number out of range");
		ab.n_attrs = (uint32_t)t->attr.len - ab.attr;
		ELFRW_TRY(compile(t, &ab, want));
		struct dwr_abbrev *slot = VEC_PUSH(&t->abbrev);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = ab;
		dense &= code == t->abbrev.len;
	}
	if (!elfrw_rbuf_ok(&r))
		return elfrw_error_at(".debug_abbrev", off, "abbreviation table without end");
	t->size = elfrw_rbuf_off(&r) - off;
	t->dense = dense;
	if (dense)
		return NULL;
	qsort(t->abbrev.data, t->abbrev.len, sizeof *t->abbrev.data, by_code);
	for (size_t i = 1; i < t->abbrev.len; i++)
		if (t->abbrev.data[i].code == t->abbrev.data[i - 1].code)
			return elfrw_error_at(".debug_abbrev", off + t->abbrev.data[i].pos,
					      "abbreviation code %llu is there twice",
					      (unsigned long long)t->abbrev.data[i].code);
	return NULL;
}

struct elfrw_err *dwr_abbrev_read(struct dwr_abbrev_table *table, const uint8_t *data, size_t size,
				  uint64_t off, struct dwr_form_params params,
				  const struct dwr_want *want)
{
	if (table->used && table->off == off && !memcmp(&table->params, &params, sizeof params))
		return NULL;
	table->used = false;
	table->abbrev.len = table->attr.len = table->step.len = table->implicit.len = 0;
	table->off = off;
	table->params = params;
	ELFRW_TRY(read_table(table, data, size, off, want));
	table->used = true;
	return NULL;
}

void dwr_abbrev_deinit(struct dwr_abbrev_table *table)
{
	VEC_FREE(&table->abbrev);
	VEC_FREE(&table->attr);
	VEC_FREE(&table->implicit);
	VEC_FREE(&table->step);
	table->used = false;
}

void dwr_abbrev_trim(struct dwr_abbrev_table *table)
{
	VEC_TRIM(&table->abbrev);
	VEC_TRIM(&table->attr);
	VEC_TRIM(&table->implicit);
	VEC_TRIM(&table->step);
}

const struct dwr_abbrev *dwr_abbrev_search(const struct dwr_abbrev_table *table, uint64_t code)
{
	size_t lo = LOWER_BOUND(0, table->abbrev.len, mid, table->abbrev.data[mid].code < code);
	return lo < table->abbrev.len && table->abbrev.data[lo].code == code
		       ? &table->abbrev.data[lo]
		       : NULL;
}
