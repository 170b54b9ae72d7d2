/* artificial.c: the unit that OUT has and IN has not: what it says of itself, and the header of its
 * line table.
 *
 * Its rows are compared with those of IN elsewhere, by the paths of their files; here are the files
 * themselves: each is one of IN's, with the same checksum or time, and each directory is one of
 * IN's.  The header is read here once more, of OUT's table and of all of IN, so that libdw need not
 * say what it does not (DWARF 5, section 6.2.4; DWARF 2 to 4, the same section). Cost: one look at
 * each file of each line table, only where there is such a table. */
#include "dwarf/calls/vtables.h"
#include "icf/verify/debug/debug.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_FORMATS 16
#define MAX_PATH    4096

struct file {
	const char *name;
	uint64_t dir, mtime, size;
	const uint8_t *md5; /* NULL: none */
};

struct header {
	unsigned version;
	bool usual; /* the opcodes and sizes that everybody writes */
	unsigned opcode_base;
	uint64_t program, end; /* of the table's rows, in the section */
	VEC(const char *) dir; /* before version 5: from 1 on */
	VEC(struct file) file; /* the same */
	bool nomem;
};

/* The strings that a header may lead to. */
struct texts {
	const Elf_Data *line, *line_str, *str;
};

static struct texts texts_of(const struct icf_vdwarf *f)
{
	return (struct texts){ icf_vd_section(f, ".debug_line"),
			       icf_vd_section(f, ".debug_line_str"),
			       icf_vd_section(f, ".debug_str") };
}

static const char *text_at(const Elf_Data *s, uint64_t off)
{
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->d_buf : NULL, s ? s->d_size : 0);
	elfrw_rbuf_seek(&r, off);
	return r.bad ? NULL : elfrw_rbuf_cstr(&r);
}

/* A value of a form; false: of one that is not for headers. */
static bool value(struct elfrw_rbuf *r, const struct texts *t, uint64_t form, bool wide,
		  const char **text, uint64_t *number, const uint8_t **block)
{
	*text = NULL;
	*number = 0;
	*block = NULL;
	switch (form) {
	case DW_FORM_string: *text = elfrw_rbuf_cstr(r); break;
	case DW_FORM_line_strp:
	case DW_FORM_strp:
		*text = text_at(form == DW_FORM_strp ? t->str : t->line_str,
				wide ? elfrw_rbuf_u64(r) : elfrw_rbuf_u32(r));
		break;
	case DW_FORM_udata: *number = elfrw_rbuf_uleb(r); break;
	case DW_FORM_data1: *number = elfrw_rbuf_u8(r); break;
	case DW_FORM_data2: *number = elfrw_rbuf_u16(r); break;
	case DW_FORM_data4: *number = elfrw_rbuf_u32(r); break;
	case DW_FORM_data8: *number = elfrw_rbuf_u64(r); break;
	case DW_FORM_data16: *block = elfrw_rbuf_take(r, 16); break;
	case DW_FORM_block: elfrw_rbuf_skip(r, elfrw_rbuf_uleb(r)); break;
	default: return false;
	}
	return elfrw_rbuf_ok(r);
}

/* One of the two lists of version 5. */
static bool read_list(struct elfrw_rbuf *r, const struct texts *t, bool wide, bool files,
		      struct header *h)
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
		struct file f = { 0 };
		for (unsigned i = 0; i < n; i++) {
			const char *text;
			uint64_t number;
			const uint8_t *block;
			if (!value(r, t, form[i], wide, &text, &number, &block))
				return false;
			if (kind[i] == DW_LNCT_path)
				f.name = text;
			else if (kind[i] == DW_LNCT_directory_index)
				f.dir = number;
			else if (kind[i] == DW_LNCT_timestamp)
				f.mtime = number;
			else if (kind[i] == DW_LNCT_size)
				f.size = number;
			else if (kind[i] == DW_LNCT_MD5)
				f.md5 = block;
		}
		if (!f.name)
			return false;
		const char **dir = files ? NULL : VEC_PUSH(&h->dir);
		struct file *slot = files ? VEC_PUSH(&h->file) : NULL;
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
static bool read_old_lists(struct elfrw_rbuf *r, struct header *h)
{
	const char *s;
	while ((s = elfrw_rbuf_cstr(r)) && *s) {
		const char **dir = VEC_PUSH(&h->dir);
		if (!dir)
			return !(h->nomem = true);
		*dir = s;
	}
	while (s && (s = elfrw_rbuf_cstr(r)) && *s) {
		struct file f = { .name = s }, *slot = VEC_PUSH(&h->file);
		f.dir = elfrw_rbuf_uleb(r);
		f.mtime = elfrw_rbuf_uleb(r);
		f.size = elfrw_rbuf_uleb(r);
		if (!slot)
			return !(h->nomem = true);
		*slot = f;
	}
	return elfrw_rbuf_ok(r);
}

static const uint8_t lengths[] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };

/* The header at OFF of .debug_line; false: none that can be read. */
static bool read_header(const struct texts *t, uint64_t off, struct header *h)
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
	h->usual &= length && base <= sizeof lengths + 1 &&
		    memcmp(length, lengths, base ? base - 1 : 0) == 0;
	if (!elfrw_rbuf_ok(&r) || h->version < 2 || h->version > 5)
		return false;
	if (h->version < 5)
		return read_old_lists(&r, h);
	return read_list(&r, t, wide, false, h) && read_list(&r, t, wide, true, h);
}

/* The whole name of NAME in directory number DIR; false: there is no such directory, or the name is
 * too long to be one. */
static bool path_of(const struct header *h, uint64_t number, const char *name, const char *comp_dir,
		    char path[MAX_PATH])
{
	const char *dir = "", *base = h->version >= 5 && h->dir.len && h->dir.data[0][0] == '/'
					      ? h->dir.data[0]
				      : comp_dir ? comp_dir
						 : "";
	if (h->version < 5 ? number > h->dir.len : number >= h->dir.len)
		return false;
	if (h->version >= 5)
		dir = h->dir.data[number];
	else if (number)
		dir = h->dir.data[number - 1];
	const char *slash = *base && base[strlen(base) - 1] == '/' ? "" : "/";
	const char *between = *dir && dir[strlen(dir) - 1] == '/' ? "" : "/";
	int n;
	if (name[0] == '/')
		n = snprintf(path, MAX_PATH, "%s", name);
	else if (dir[0] == '/' || !*base || (h->version >= 5 && !number && strcmp(dir, base) == 0))
		n = snprintf(path, MAX_PATH, "%s%s%s", dir, between, name);
	else if (*dir)
		n = snprintf(path, MAX_PATH, "%s%s%s%s%s", base, slash, dir, between, name);
	else
		n = snprintf(path, MAX_PATH, "%s%s%s", base, slash, name);
	return n >= 0 && n < MAX_PATH;
}

/* A file that IN must have, or a directory, whose path ends with a slash. */
struct want {
	char *path;
	const struct file *file;
	bool found;
};

struct table {
	uint64_t off;
	const char *comp_dir;
};

static int want_order(const void *a, const void *b)
{
	return strcmp(((const struct want *)a)->path, ((const struct want *)b)->path);
}

static int table_order(const void *a, const void *b)
{
	const struct table *x = a, *y = b;
	if (x->off != y->off)
		return x->off < y->off ? -1 : 1;
	/* Type units do not say what paths are relative to. */
	return !x->comp_dir - !y->comp_dir;
}

static struct want *find(struct want *want, size_t n, char *path)
{
	struct want key = { .path = path };
	return bsearch(&key, want, n, sizeof *want, want_order);
}

static bool table_of(Dwarf_Die *die, struct table *t)
{
	Dwarf_Attribute attr;
	Dwarf_Word off;
	if (!dwarf_attr(die, DW_AT_stmt_list, &attr) || dwarf_formudata(&attr, &off))
		return false;
	t->off = off;
	t->comp_dir = dwarf_formstring(dwarf_attr(die, DW_AT_comp_dir, &attr));
	return true;
}

/* Marks what IN's tables have of WANT. */
static struct elfrw_err *look_for(const struct icf_vdwarf *in, struct want *want, size_t n)
{
	VEC(struct table) list = { 0 };
	struct texts t = texts_of(in);
	struct header h = { 0 };
	struct table x;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	char path[MAX_PATH];
	struct elfrw_err *err = NULL;
	while (!err && dwarf_get_units(in->dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		struct table *slot = table_of(&die, &x) ? VEC_PUSH(&list) : &x;
		if (slot)
			*slot = x;
		else
			err = &elfrw_err_nomem;
	}
	if (list.len)
		qsort(list.data, list.len, sizeof *list.data, table_order);
	for (size_t i = 0; i < list.len && !err; i++) {
		if ((i && list.data[i].off == list.data[i - 1].off) ||
		    !read_header(&t, list.data[i].off, &h))
			continue;
		const char *comp_dir = list.data[i].comp_dir;
		struct want *w;
		for (size_t k = 0; k < h.dir.len; k++)
			if (path_of(&h, k + (h.version < 5), "", comp_dir, path) &&
			    (w = find(want, n, path)))
				w->found = true;
		for (size_t k = 0; k < h.file.len; k++) {
			const struct file *f = &h.file.data[k];
			if (!path_of(&h, f->dir, f->name, comp_dir, path) ||
			    !(w = find(want, n, path)))
				continue;
			const struct file *g = w->file;
			bool sum = !g->md5 || (f->md5 && memcmp(f->md5, g->md5, 16) == 0);
			w->found |= sum && (!g->mtime || g->mtime == f->mtime) &&
				    (!g->size || g->size == f->size);
		}
	}
	if (h.nomem)
		err = &elfrw_err_nomem;
	VEC_FREE(&list);
	VEC_FREE(&h.dir);
	VEC_FREE(&h.file);
	return err;
}

/* The unit's own name among its files: of no directory, time or sum. */
static bool is_own(const struct header *h, size_t i)
{
	static const uint8_t zero[16];
	const struct file *f = &h->file.data[i];
	return !i && strcmp(f->name, ICF_VD_ARTIFICIAL) == 0 && !f->dir && !f->mtime && !f->size &&
	       (!f->md5 || memcmp(f->md5, zero, 16) == 0);
}

static struct elfrw_err *check_files(struct icf_vdebug *d, const struct header *h,
				     const char *comp_dir)
{
	size_t n = 0;
	char path[MAX_PATH];
	struct elfrw_err *err = NULL;
	struct want *want = calloc(h->file.len + h->dir.len + 1, sizeof *want);
	uint8_t *used =
		calloc(h->dir.len + 2,
		       1); /* directories, by number; what their paths are is in their files' */
	if (!want || !used)
		err = &elfrw_err_nomem;
	bool fits = h->usual && h->file.len && is_own(h, 0);
	if (!err && h->version >= 5)
		fits &= h->dir.len && strcmp(h->dir.data[0], comp_dir ? comp_dir : ".") == 0;
	for (size_t i = 0; i < h->file.len && !err; i++) {
		const struct file *f = &h->file.data[i];
		d->log->checked[ICF_VC_FOLDED_LINE]++;
		if (!path_of(h, f->dir, f->name, comp_dir, path))
			fits = false;
		else if (f->dir <= h->dir.len)
			used[f->dir] = 1;
		if (!i || !fits)
			continue;
		want[n] = (struct want){ strdup(path), f, false };
		err = want[n].path ? NULL : &elfrw_err_nomem;
		n += !err;
	}
	/* Of older versions the first has number 1. */
	for (size_t i = 0; i < h->dir.len && !err; i++) {
		uint64_t number = i + (h->version < 5);
		if (used[number] || !path_of(h, number, "", comp_dir, path))
			continue;
		want[n] = (struct want){ strdup(path), NULL, false };
		err = want[n].path ? NULL : &elfrw_err_nomem;
		n += !err;
	}
	if (n > 1)
		qsort(want, n, sizeof *want, want_order);
	if (!err && fits)
		err = look_for(&d->in, want, n);
	if (!err && !fits)
		icf_vlog_bad(
			d->log, ICF_VC_FOLDED_LINE,
			"header: artificial unit: expected the usual opcodes and its own name, found others");
	for (size_t i = 0; i < n; i++) {
		if (!err && fits && !want[i].found)
			icf_vlog_bad(
				d->log, ICF_VC_FOLDED_LINE,
				"file: %s of the artificial unit: expected one of the input's, with its checksum, found another",
				want[i].path);
		free(want[i].path);
	}
	free(want);
	free(used);
	return err;
}

/* Does some unit of IN have the language? */
/* LANGUAGE is that of a unit; or C++, where none has one (assemblers' debug information). */
static bool has_language(Dwarf *dw, int language)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	bool any = false;
	while (dwarf_get_units(dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		int have = dwarf_srclang(&die);
		if (have == language)
			return true;
		any |= have != -1;
	}
	return !any && language == DW_LANG_C_plus_plus;
}

static int known_attribute(Dwarf_Attribute *attr, void *arg)
{
	bool *known = arg;
	switch (dwarf_whatattr(attr)) {
	case DW_AT_producer:
	case DW_AT_language:
	case DW_AT_name:
	case DW_AT_comp_dir:
	case DW_AT_stmt_list:
	case DW_AT_low_pc:
	case DW_AT_high_pc: return DWARF_CB_OK;
	default: *known = false; return DWARF_CB_ABORT;
	}
}

#define TAG_VTABLE 0x4fc1 /* as icfold-format(5) has it */

/* Does the mangled name have the class's own name in it, with its length before it? */
static bool names_class(const char *mangled, const char *name)
{
	char text[300];
	size_t n = name ? strcspn(name, "<") : 0;
	/* Nameless, or with an abbreviation of its own. */
	if (!n || n > 200 || strncmp(name, "basic_", 6) == 0 || strcmp(name, "allocator") == 0)
		return true;
	snprintf(text, sizeof text, "%zu%.*s", n, (int)n, name);
	return strstr(mangled, text) != NULL;
}

/* What the unit says of vtables: where one is, and which class's. */
static struct elfrw_err *check_vtables(struct icf_vdebug *d, Dwarf_Die *unit)
{
	Dwarf_Die die, type;
	Dwarf_Attribute attr;
	struct dwr_vtables vt;
	if (dwarf_child(unit, &die) != 0)
		return NULL;
	ELFRW_TRY(icf_v_named(d->v->in.path, dwr_vtables_read(&d->v->in, &d->v->in, &vt)));
	do {
		Dwarf_Op *op;
		size_t n;
		bool ok = dwarf_tag(&die) == TAG_VTABLE && !dwarf_haschildren(&die) &&
			  dwarf_formref_die(dwarf_attr(&die, DW_AT_type, &attr), &type) &&
			  !dwarf_getlocation(dwarf_attr(&die, DW_AT_location, &attr), &op, &n) &&
			  n == 1 && op->atom == DW_OP_addr;
		int tag = ok ? dwarf_tag(&type) : 0;
		const struct dwr_vtable *t = NULL;
		for (size_t i = 0; ok && i < vt.table.len && !t; i++)
			if (icf_v_data(d->v, vt.table.data[i].object) == op->number)
				t = &vt.table.data[i];
		d->log->checked[ICF_VC_DIE]++;
		if (!ok || !t || (tag != DW_TAG_class_type && tag != DW_TAG_structure_type) ||
		    !names_class(t->name, dwarf_diename(&type)))
			icf_vlog_bad(
				d->log, ICF_VC_DIE,
				"vtable: DIE 0x%llx: expected one of a vtable and its class, found another",
				ICF_VX(dwarf_dieoffset(&die)));
	} while (dwarf_siblingof(&die, &die) == 0);
	dwr_vtables_deinit(&vt);
	return NULL;
}

struct sequence {
	uint64_t off;
	const struct dwr_icfold_member *member;
};

static int sequence_order(const void *a, const void *b)
{
	const struct sequence *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

/* Passes over a sequence; false: it does not begin with an address, or does not end. */
static bool skip_sequence(struct elfrw_rbuf *r, unsigned opcode_base, uint64_t *va)
{
	for (bool first = true;; first = false) {
		unsigned op = elfrw_rbuf_u8(r);
		if (!elfrw_rbuf_ok(r) || (first && op))
			return false;
		if (op >= opcode_base)
			continue;
		if (op) {
			for (unsigned n = op == DW_LNS_fixed_advance_pc ? 0 : lengths[op - 1]; n;
			     n--)
				elfrw_rbuf_uleb(r);
			elfrw_rbuf_skip(r, op == DW_LNS_fixed_advance_pc ? 2 : 0);
			continue;
		}
		uint64_t n = elfrw_rbuf_uleb(r);
		const uint8_t *ext = elfrw_rbuf_take(r, n);
		if (!ext || !n || (first && (*ext != DW_LNE_set_address || n != 9)))
			return false;
		if (first)
			*va = elfrw_get64(ext + 1);
		if (*ext == DW_LNE_end_sequence)
			return true;
	}
}

/* From where the note says that a function's own rows are, up to the next function's or the end,
 * there are as many sequences as it says, all in its code. */
static struct elfrw_err *check_sequences(struct icf_vdebug *d, const struct texts *t,
					 const struct header *h)
{
	const struct icf_v *v = d->v;
	struct sequence *list = malloc((v->note.n_members + 1) * sizeof *list);
	size_t n = 0;
	char name[200];
	if (!list)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < v->note.n_members; i++) {
		const struct dwr_icfold_member *m = &v->note.member[i];
		if (m->rows.status == DWR_NOTE_ROWS_OWN)
			list[n++] = (struct sequence){ m->rows.seq, m };
	}
	if (n)
		qsort(list, n, sizeof *list, sequence_order);
	for (size_t i = 0; i < n && h->usual; i++) {
		const struct dwr_icfold_member *m = list[i].member;
		const struct icf_vunit *x = &v->unit.data[m->unit];
		uint64_t end = i + 1 < n ? list[i + 1].off : h->end, va = 0, seen = 0;
		bool ok = list[i].off >= h->program && end <= h->end && list[i].off < end;
		struct elfrw_rbuf r = elfrw_rbuf(t->line->d_buf, ok ? end : 0);
		elfrw_rbuf_seek(&r, ok ? list[i].off : 0);
		d->log->checked[ICF_VC_NOTE]++;
		for (; ok && elfrw_rbuf_left(&r); seen++) {
			ok = skip_sequence(&r, h->opcode_base, &va);
			if (ok && va == v->note.map.trap_byte)
				break; /* the unit's own */
			ok = ok && va - x->body < x->end - x->old;
		}
		if (!ok || seen != m->rows.n_seqs)
			icf_vlog_bad(
				d->log, ICF_VC_NOTE,
				"line rows: %s: expected %llu sequences of its own at offset 0x%llx, found %s",
				icf_v_where(v, x->old, name), ICF_VX(m->rows.n_seqs),
				ICF_VX(list[i].off), ok ? "another number" : "others");
	}
	free(list);
	return NULL;
}

struct elfrw_err *icf_vd_artificial_unit(struct icf_vdebug *d)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	uint64_t unit = d->v->has_note ? d->v->note.artificial_unit : UINT64_MAX;
	bool found = false;
	while (unit != UINT64_MAX && !found &&
	       dwarf_get_units(d->out.dw, cu, &cu, NULL, NULL, &die, NULL) == 0)
		found = (uint64_t)dwarf_dieoffset(&die) - dwarf_cuoffset(&die) == unit &&
			dwarf_diename(&die) && strcmp(dwarf_diename(&die), ICF_VD_ARTIFICIAL) == 0;
	if (!found)
		return NULL; /* reported before */
	Dwarf_Attribute attr;
	const char *producer = dwarf_formstring(dwarf_attr(&die, DW_AT_producer, &attr));
	int language = dwarf_srclang(&die);
	bool known = true;
	dwarf_getattrs(&die, known_attribute, &known, 0);
	d->log->checked[ICF_VC_DIE]++;
	if (!known || !producer || strncmp(producer, "icfold ", 7) != 0 ||
	    (language != -1 && !has_language(d->in.dw, language)))
		icf_vlog_bad(
			d->log, ICF_VC_DIE,
			"artificial unit: expected this program's, in a language of the input, found another");
	ELFRW_TRY(check_vtables(d, &die));
	struct table t;
	if (!table_of(&die, &t))
		return NULL;
	struct texts texts = texts_of(&d->out);
	struct header h = { 0 };
	struct elfrw_err *err = NULL;
	if (read_header(&texts, t.off, &h)) {
		err = check_files(d, &h, t.comp_dir);
		if (!err)
			err = check_sequences(d, &texts, &h);
	} else if (!h.nomem)
		icf_vlog_bad(d->log, ICF_VC_FOLDED_LINE,
			     "header: artificial unit: expected one that can be read, found none");
	if (h.nomem)
		err = &elfrw_err_nomem;
	VEC_FREE(&h.dir);
	VEC_FREE(&h.file);
	return err;
}

void icf_vd_sequence(struct icf_vdebug *d, uint32_t u)
{
	const struct icf_v *v = d->v;
	const Elf_Data *s = icf_vd_section(&d->out, ".debug_line");
	const struct dwr_icfold_member *m = v->note.unit_member[u] != UINT32_MAX
						    ? &v->note.member[v->note.unit_member[u]]
						    : NULL;
	const struct icf_vunit *x = &v->unit.data[u];
	char name[200];
	if (!m || m->rows.status != DWR_NOTE_ROWS_OWN)
		return;
	struct elfrw_rbuf r = elfrw_rbuf(s ? s->d_buf : NULL, s ? s->d_size : 0);
	elfrw_rbuf_seek(&r, m->rows.seq);
	/* DW_LNE_set_address */
	bool ok = elfrw_rbuf_u8(&r) == 0 && elfrw_rbuf_uleb(&r) == 9 &&
		  elfrw_rbuf_u8(&r) == DW_LNE_set_address;
	uint64_t va = elfrw_rbuf_u64(&r);
	d->log->checked[ICF_VC_NOTE]++;
	if (!ok || !elfrw_rbuf_ok(&r) || va - x->body >= x->end - x->old || !m->rows.n_seqs)
		icf_vlog_bad(
			d->log, ICF_VC_NOTE,
			"line rows: %s: expected a sequence at 0x%llx, found none at offset 0x%llx",
			icf_v_where(v, x->old, name), ICF_VX(x->body), ICF_VX(m->rows.seq));
}
