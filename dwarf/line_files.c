/* line_files.c: the tables of directories and files of a line table (DWARF 5, section 6.2.4); see
 * line.h. */
#include "dwarf/line.h"
#include "elfrw/base/rbuf.h"
#include <dwarf.h>

/* The string at OFF of SEC, or NULL. */
static const char *string_at(struct dwr_bytes sec, uint64_t off)
{
	if (off >= sec.size || !memchr(sec.data + off, 0, sec.size - off))
		return NULL;
	return (const char *)sec.data + off;
}

static const char *string_x(const struct dwr_line_header *h, const struct dwr_line_strings *str,
			    uint64_t base, uint64_t index)
{
	struct dwr_bytes x = str->str_offsets;
	if (base == UINT64_MAX)
		base = h->offset_size == 8 ? 16 : 8;
	if (base > x.size || index >= (x.size - base) / h->offset_size)
		return NULL;
	return string_at(str->str,
			 elfrw_get_le(x.data + base + index * h->offset_size, h->offset_size));
}

struct form_value {
	uint64_t u;
	const char *str;
	const uint8_t *md5;
};

/* Reads one field of an entry of the DWARF 5 tables (section 6.2.4.1); false: an unknown form. */
static bool read_form(const struct dwr_line_header *h, const struct dwr_line_strings *str,
		      uint64_t str_base, uint64_t form, struct elfrw_rbuf *r, struct form_value *v)
{
	*v = (struct form_value){ 0 };
	switch (form) {
	case DW_FORM_string: v->str = elfrw_rbuf_cstr(r); return true;
	case DW_FORM_line_strp:
		v->str = string_at(str->line_str, elfrw_rbuf_uint(r, h->offset_size));
		return true;
	case DW_FORM_strp:
		v->str = string_at(str->str, elfrw_rbuf_uint(r, h->offset_size));
		return true;
	case DW_FORM_strx: v->str = string_x(h, str, str_base, elfrw_rbuf_uleb(r)); return true;
	case DW_FORM_strx1:
	case DW_FORM_strx2:
	case DW_FORM_strx3:
	case DW_FORM_strx4:
		v->str = string_x(h, str, str_base,
				  elfrw_rbuf_uint(r, (unsigned)(form - DW_FORM_strx1) + 1));
		return true;
	case DW_FORM_strp_sup:
	case DW_FORM_sec_offset:
	case DW_FORM_GNU_strp_alt: v->u = elfrw_rbuf_uint(r, h->offset_size); return true;
	case DW_FORM_udata: v->u = elfrw_rbuf_uleb(r); return true;
	case DW_FORM_sdata: v->u = (uint64_t)elfrw_rbuf_sleb(r); return true;
	case DW_FORM_data1:
	case DW_FORM_flag: v->u = elfrw_rbuf_u8(r); return true;
	case DW_FORM_data2: v->u = elfrw_rbuf_u16(r); return true;
	case DW_FORM_data4: v->u = elfrw_rbuf_u32(r); return true;
	case DW_FORM_data8: v->u = elfrw_rbuf_u64(r); return true;
	case DW_FORM_data16: v->md5 = elfrw_rbuf_take(r, 16); return true;
	case DW_FORM_block: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); return true;
	case DW_FORM_block1: elfrw_rbuf_skip(r, elfrw_rbuf_u8(r)); return true;
	case DW_FORM_block2: elfrw_rbuf_skip(r, elfrw_rbuf_u16(r)); return true;
	case DW_FORM_block4: elfrw_rbuf_skip(r, elfrw_rbuf_u32(r)); return true;
	}
	return false;
}

/* Reads one of the two tables of DWARF 5: its format, then its entries.  Every form takes at least
 * a byte, so the bytes bound the number of entries. */
static struct elfrw_err *read_table(const struct dwr_line_header *h,
				    const struct dwr_line_strings *str, uint64_t str_base,
				    struct elfrw_rbuf *r, bool dirs, struct dwr_line_files *files)
{
	uint64_t type[255], form[255];
	unsigned n = elfrw_rbuf_u8(r);
	for (unsigned i = 0; i < n; i++) {
		type[i] = elfrw_rbuf_uleb(r);
		form[i] = elfrw_rbuf_uleb(r);
	}
	uint64_t count = elfrw_rbuf_uleb(r);
	if (elfrw_rbuf_ok(r) && count > (n ? elfrw_rbuf_left(r) / n : 0))
		return elfrw_error_at(h->section, elfrw_rbuf_off(r),
				      "more files than the line table can hold");
	for (uint64_t e = 0; e < count; e++) {
		struct dwr_line_file file = { .name = "" };
		for (unsigned i = 0; i < n; i++) {
			struct form_value v;
			if (!read_form(h, str, str_base, form[i], r, &v))
				return elfrw_error_at(h->section, elfrw_rbuf_off(r),
						      "unknown form 0x%llx in a line table",
						      (unsigned long long)form[i]);
			if (type[i] == DW_LNCT_path && v.str)
				file.name = v.str;
			else if (type[i] == DW_LNCT_directory_index)
				file.dir = v.u;
			else if (type[i] == DW_LNCT_MD5)
				file.md5 = v.md5;
		}
		if (!elfrw_rbuf_ok(r))
			break;
		if (dirs) {
			const char **slot = VEC_PUSH(&files->dir);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = file.name;
		} else {
			struct dwr_line_file *slot = VEC_PUSH(&files->file);
			if (!slot)
				return &elfrw_err_nomem;
			*slot = file;
		}
	}
	if (!elfrw_rbuf_ok(r))
		return elfrw_error_at(h->section, h->off,
				      "file tables of the line table are truncated");
	return NULL;
}

/* name, directory, time, size: an entry before DWARF 5 (section 6.2.4, file_names); an empty name
 * ends the table. */
static bool read_old_file(struct elfrw_rbuf *r, struct dwr_line_file *file)
{
	*file = (struct dwr_line_file){ .name = elfrw_rbuf_cstr(r) };
	if (!file->name || !*file->name)
		return false;
	file->dir = elfrw_rbuf_uleb(r);
	elfrw_rbuf_uleb(r);
	elfrw_rbuf_uleb(r);
	return elfrw_rbuf_ok(r);
}

static struct elfrw_err *read_old_tables(const struct dwr_line_header *h, struct elfrw_rbuf *r,
					 struct dwr_line_files *files)
{
	const char **slot = VEC_PUSH(&files->dir);
	struct dwr_line_file file = { .name = "" }, *fslot = VEC_PUSH(&files->file);
	if (!slot || !fslot)
		return &elfrw_err_nomem;
	*fslot = file;
	for (;;) {
		const char *dir = elfrw_rbuf_cstr(r);
		if (!dir || !*dir)
			break;
		if (!(slot = VEC_PUSH(&files->dir)))
			return &elfrw_err_nomem;
		*slot = dir;
	}
	while (read_old_file(r, &file)) {
		if (!(fslot = VEC_PUSH(&files->file)))
			return &elfrw_err_nomem;
		*fslot = file;
	}
	if (!elfrw_rbuf_ok(r))
		return elfrw_error_at(h->section, h->off,
				      "file tables of the line table are truncated");
	return NULL;
}

struct elfrw_err *dwr_line_files_read(const struct dwr_line_header *h,
				      const struct dwr_line_strings *str, uint64_t str_offsets_base,
				      bool defined, struct dwr_line_files *files)
{
	files->dir.len = files->file.len = 0;
	struct elfrw_rbuf r = elfrw_rbuf(h->data, h->program);
	elfrw_rbuf_seek(&r, h->tables);
	if (h->version >= 5) {
		ELFRW_TRY(read_table(h, str, str_offsets_base, &r, true, files));
		ELFRW_TRY(read_table(h, str, str_offsets_base, &r, false, files));
	} else
		ELFRW_TRY(read_old_tables(h, &r, files));
	for (uint64_t off = h->program; defined;) {
		struct dwr_line_ext ext;
		struct dwr_line_file file;
		ELFRW_TRY(dwr_line_next_ext(h, &off, h->end, &ext));
		if (!ext.op)
			break;
		if (ext.op != DW_LNE_define_file)
			continue;
		struct elfrw_rbuf arg = elfrw_rbuf(h->data + ext.arg, ext.size);
		if (!read_old_file(&arg, &file))
			return elfrw_error_at(h->section, ext.off, "malformed DW_LNE_define_file");
		struct dwr_line_file *slot = VEC_PUSH(&files->file);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = file;
	}
	return NULL;
}

void dwr_line_files_deinit(struct dwr_line_files *files)
{
	VEC_FREE(&files->dir);
	VEC_FREE(&files->file);
}
