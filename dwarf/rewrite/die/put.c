/* put.c: addresses and numbers in attributes: read, mapped, and written in place. */
#include "dwarf/rewrite/die/state.h"
#include <dwarf.h>

#ifndef DW_FORM_LLVM_addrx_offset
#define DW_FORM_LLVM_addrx_offset 0x2001
#endif

bool dwr_put_uleb(uint8_t *p, uint64_t size, uint64_t value)
{
	if (!size || (size < 10 && value >> (7 * size)))
		return false;
	for (uint64_t i = 0; i < size; i++, value >>= 7)
		p[i] = (uint8_t)((value & 0x7f) | (i + 1 < size ? 0x80 : 0));
	return true;
}

bool dwr_put_sleb(uint8_t *p, uint64_t size, int64_t value)
{
	if (!size || (size < 10 && value >> (7 * size - 1) != 0 && value >> (7 * size - 1) != -1))
		return false;
	for (uint64_t i = 0; i < size; i++, value >>= 7)
		p[i] = (uint8_t)((value & 0x7f) | (i + 1 < size ? 0x80 : 0));
	return true;
}

struct elfrw_err *dwr_die_no_room(const struct dwr_die_scan *s, const struct dwr_value *v,
				  uint64_t value)
{
	return elfrw_error_at(s->section, v->pos,
			      "new value 0x%llx does not fit into attribute 0x%x (form 0x%x)",
			      (unsigned long long)value, v->name, v->form);
}

bool dwr_die_is_live(const struct dwr_die_scan *s, uint64_t va)
{
	return elfrw_addrmap_covers(s->rw->map, va);
}

uint64_t dwr_die_mapped(const struct dwr_die_scan *s, uint64_t va, enum dwr_die_use use)
{
	uint64_t ret;
	/* An end belongs to the code before it: something else may begin there. */
	if (!dwr_die_is_live(s, use == USE_END && va ? va - 1 : va))
		return va;
	if (use == USE_END)
		elfrw_addrmap_end(s->rw->map, va, &ret);
	else if (use == USE_POINTER)
		elfrw_addrmap_pointer(s->rw->map, va, &ret);
	else
		elfrw_addrmap_point(s->rw->map, va, &ret);
	return ret;
}

struct elfrw_err *dwr_die_address(const struct dwr_die_scan *s, const struct dwr_value *v,
				  uint64_t *ret)
{
	if (dwr_value_address(&s->rw->secs, s->unit, &s->ru->root, v, ret))
		return NULL;
	return elfrw_error_at(s->section, v->pos, "address index 0x%llx is not inside .debug_addr",
			      (unsigned long long)v->u);
}

uint64_t dwr_die_slot(const struct dwr_die_scan *s, const struct dwr_value *v)
{
	uint64_t base = s->ru->root.addr_base;
	if (base == UINT64_MAX)
		base = v->form == DW_FORM_GNU_addr_index  ? 0
		       : s->unit->params.offset_size == 8 ? 16
							  : 8;
	return base + v->u * s->unit->params.address_size;
}

struct elfrw_err *dwr_die_want_slot(struct dwr_die_scan *s, uint64_t off, uint64_t new,
				    uint64_t pos)
{
	struct dwr_slot *slot = VEC_PUSH(&s->ru->slot);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = (struct dwr_slot){ off, new, pos };
	return NULL;
}

struct elfrw_err *dwr_die_put_address(struct dwr_die_scan *s, const struct dwr_value *v,
				      uint64_t new)
{
	if (v->form == DW_FORM_addr) {
		if (v->size < 8 && new >> (8 * v->size))
			return dwr_die_no_room(s, v, new);
		elfrw_put_field(s->out + v->pos, new, (unsigned)v->size);
		return NULL;
	}
	uint64_t off = dwr_die_slot(s, v);
	if (v->form != DW_FORM_LLVM_addrx_offset)
		return dwr_die_want_slot(s, off, new, v->pos);
	uint64_t base =
		elfrw_get_le(s->rw->secs.sec[DWR_ADDR].data + off, s->unit->params.address_size);
	base = dwr_die_mapped(s, base, USE_POINT);
	if (new < base || new - base > UINT32_MAX)
		return dwr_die_no_room(s, v, new);
	elfrw_put32(s->out + v->pos + v->size - 4, (uint32_t)(new - base));
	return dwr_die_want_slot(s, off, base, v->pos);
}

struct elfrw_err *dwr_die_map_address(struct dwr_die_scan *s, const struct dwr_value *v,
				      enum dwr_die_use use)
{
	uint64_t va;
	ELFRW_TRY(dwr_die_address(s, v, &va));
	return dwr_die_put_address(s, v, dwr_die_mapped(s, va, use));
}

struct elfrw_err *dwr_die_put_const(struct dwr_die_scan *s, const struct dwr_die *die,
				    const struct dwr_value *v, uint64_t value)
{
	if (value == v->u)
		return NULL;
	uint8_t *p = s->out + v->pos;
	switch (v->form) {
	case DW_FORM_udata:
		return dwr_put_uleb(p, v->size, value) ? NULL : dwr_die_no_room(s, v, value);
	case DW_FORM_sdata:
		return dwr_put_sleb(p, v->size, (int64_t)value) ? NULL
								: dwr_die_no_room(s, v, value);
	case DW_FORM_data1:
	case DW_FORM_data2:
	case DW_FORM_data4:
	case DW_FORM_data8:
		if (v->size < 8 && value >> (8 * v->size))
			return dwr_die_no_room(s, v, value);
		elfrw_put_field(p, value, (unsigned)v->size);
		return NULL;
	case DW_FORM_data16: elfrw_put64(p, value); return NULL;
	case DW_FORM_implicit_const: {
		struct dwr_abbrev_edit *e = VEC_PUSH(&s->ru->edit);
		if (!e)
			return &elfrw_err_nomem;
		*e = (struct dwr_abbrev_edit){ .die = die->off,
					       .code = die->abbrev->code,
					       .attr = v->attr - die->abbrev->attr,
					       .kind = DWR_EDIT_IMPLICIT,
					       .value = (int64_t)value };
		return NULL;
	}
	}
	return elfrw_error_at(s->section, v->pos, "attribute 0x%x in form 0x%x is not understood",
			      v->name, v->form);
}

struct elfrw_err *dwr_die_put_offset(struct dwr_die_scan *s, const struct dwr_value *v,
				     uint64_t value)
{
	if (v->size != 4 && v->size != 8)
		return elfrw_error_at(s->section, v->pos,
				      "attribute 0x%x in form 0x%x is not understood", v->name,
				      v->form);
	if (v->size == 4 && value >> 32)
		return dwr_die_no_room(s, v, value);
	elfrw_put_field(s->out + v->pos, value, (unsigned)v->size);
	return NULL;
}
