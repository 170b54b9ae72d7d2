/* own_header.c: the header of a line table with its files (DWARF 5, section 6.2.4; DWARF 2 to 4,
 * the same section), which libdw does not give in full. */
#include "icf/verify/lines/state.h"
#include <dwarf.h>
#include <string.h>

#define MAX_FORMATS 16

struct icf_vtexts icf_vtexts_of(const struct icf_vdwarf *f)
{
	return (struct icf_vtexts){ icf_vd_section(f, ".debug_line"),
				    icf_vd_section(f, ".debug_line_str"),
				    icf_vd_section(f, ".debug_str") };
}

static const char *text_at(const Elf_Data *s, uint64_t off)
{
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->d_buf : NULL, s ? s->d_size : 0);
	elfrw_rbuf_seek(&r, off);
	return r.bad ? NULL : elfrw_rbuf_cstr(&r);
}

/* A value of a header's lists: what its form is not for stays NULL or 0. */
struct value {
	const char *text;
	uint64_t number;
	const uint8_t *block; /* 16 bytes */
};

/* Reads a value of FORM; false: a form that headers do not use. */
static bool read_value(struct elfrw_rbuf *r, const struct icf_vtexts *t, uint64_t form, bool wide,
		       struct value *ret)
{
	*ret = (struct value){ 0 };
	switch (form) {
	case DW_FORM_string: ret->text = elfrw_rbuf_cstr(r); break;
	case DW_FORM_line_strp:
	case DW_FORM_strp:
		ret->text = text_at(form == DW_FORM_strp ? t->str : t->line_str,
				    wide ? elfrw_rbuf_u64(r) : elfrw_rbuf_u32(r));
		break;
	case DW_FORM_udata: ret->number = elfrw_rbuf_uleb(r); break;
	case DW_FORM_data1: ret->number = elfrw_rbuf_u8(r); break;
	case DW_FORM_data2: ret->number = elfrw_rbuf_u16(r); break;
	case DW_FORM_data4: ret->number = elfrw_rbuf_u32(r); break;
	case DW_FORM_data8: ret->number = elfrw_rbuf_u64(r); break;
	case DW_FORM_data16: ret->block = elfrw_rbuf_take(r, 16); break;
	case DW_FORM_block: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); break;
	default: return false;
	}
	return elfrw_rbuf_ok(r);
}

/* One of the two lists of version 5. */
static bool read_list(struct elfrw_rbuf *r, const struct icf_vtexts *t, bool wide, bool files,
		      struct icf_vline_header *h)
{
	uint64_t kind[MAX_FORMATS], form[MAX_FORMATS];
	unsigned n = elfrw_rbuf_u8(r);
	for (unsigned i = 0; i < n && i < MAX_FORMATS; i++) {
		kind[i] = elfrw_rbuf_uleb(r);
		form[i] = elfrw_rbuf_uleb(r);
	}
	uint64_t count = elfrw_rbuf_uleb(r);
	if (n > MAX_FORMATS || !elfrw_rbuf_ok(r) || (!n && count) || count > elfrw_rbuf_left(r))
		return false;
	while (count--) {
		struct icf_vline_file f = { 0 };
		for (unsigned i = 0; i < n; i++) {
			struct value v;
			if (!read_value(r, t, form[i], wide, &v))
				return false;
			if (kind[i] == DW_LNCT_path)
				f.name = v.text;
			else if (kind[i] == DW_LNCT_directory_index)
				f.dir = v.number;
			else if (kind[i] == DW_LNCT_timestamp)
				f.mtime = v.number;
			else if (kind[i] == DW_LNCT_size)
				f.size = v.number;
			else if (kind[i] == DW_LNCT_MD5)
				f.md5 = v.block;
		}
		if (!f.name)
			return false;
		const char **dir = files ? NULL : VEC_PUSH(&h->dir);
		struct icf_vline_file *slot = files ? VEC_PUSH(&h->file) : NULL;
		if (dir)
			*dir = f.name;
		else if (slot)
			*slot = f;
		else
			return !(h->nomem = true);
	}
	return true;
}

/* The two lists of the older versions. */
static bool read_old_lists(struct elfrw_rbuf *r, struct icf_vline_header *h)
{
	const char *s;
	while ((s = elfrw_rbuf_cstr(r)) && *s) {
		const char **dir = VEC_PUSH(&h->dir);
		if (!dir)
			return !(h->nomem = true);
		*dir = s;
	}
	while (s && (s = elfrw_rbuf_cstr(r)) && *s) {
		struct icf_vline_file f = { .name = s }, *slot = VEC_PUSH(&h->file);
		f.dir = elfrw_rbuf_uleb(r);
		f.mtime = elfrw_rbuf_uleb(r);
		f.size = elfrw_rbuf_uleb(r);
		if (!slot)
			return !(h->nomem = true);
		*slot = f;
	}
	return elfrw_rbuf_ok(r);
}

const uint8_t icf_vline_lengths[12] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

/* The header at OFF of .debug_line; false: none that can be read. */
bool icf_vline_header(const struct icf_vtexts *t, uint64_t off, struct icf_vline_header *h)
{
	struct elfrw_rbuf r =
		elfrw_rbuf(t->line ? t->line->d_buf : NULL, t->line ? t->line->d_size : 0);
	h->dir.len = h->file.len = 0;
	elfrw_rbuf_seek(&r, off);
	uint64_t size = elfrw_rbuf_u32(&r);
	bool wide = size == 0xffffffff;
	if (wide)
		size = elfrw_rbuf_u64(&r);
	h->end = elfrw_rbuf_off(&r) + (size < elfrw_rbuf_left(&r) ? size : elfrw_rbuf_left(&r));
	h->version = elfrw_rbuf_u16(&r);
	h->usual = true;
	if (h->version >= 5)
		h->usual = elfrw_rbuf_u16(&r) == 8;
	uint64_t header = wide ? elfrw_rbuf_u64(&r) : elfrw_rbuf_u32(&r);
	h->program =
		elfrw_rbuf_off(&r) + (header < elfrw_rbuf_left(&r) ? header : elfrw_rbuf_left(&r));
	h->usual &= elfrw_rbuf_u8(&r) == 1;
	if (h->version >= 4)
		h->usual &= elfrw_rbuf_u8(&r) == 1;
	elfrw_rbuf_skip(&r, 3);
	unsigned base = h->opcode_base = elfrw_rbuf_u8(&r);
	const uint8_t *length = elfrw_rbuf_take(&r, base ? base - 1 : 0);
	h->usual &= length && base <= sizeof icf_vline_lengths + 1 &&
		    memcmp(length, icf_vline_lengths, base ? base - 1 : 0) == 0;
	if (!elfrw_rbuf_ok(&r) || h->version < 2 || h->version > 5)
		return false;
	if (h->version < 5)
		return read_old_lists(&r, h);
	return read_list(&r, t, wide, false, h) && read_list(&r, t, wide, true, h);
}

bool icf_vline_table_of(Dwarf_Die *die, struct icf_vline_table *t)
{
	Dwarf_Attribute attr;
	Dwarf_Word off;
	if (!dwarf_attr(die, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &off))
		return false;
	t->off = off;
	t->comp_dir = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attr));
	return true;
}
