/* verify_dtables.c: what describes the whole program: .debug_aranges, .debug_frame, .gdb_index, and the tables of strings,
 * which do not change. */
#include "icf/verify_debug.h"
#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

struct arange {
	Dwarf_Off cu;
	Dwarf_Addr lo;
	Dwarf_Word len;
};

static int by_cu(const void *a, const void *b)
{
	const struct arange *x = a, *y = b;
	if (x->cu != y->cu)
		return x->cu < y->cu ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static struct elfrw_err *read_aranges(Dwarf *dw, struct arange **ret, size_t *n)
{
	Dwarf_Aranges *set = NULL;
	*n = 0;
	*ret = NULL;
	if (dwarf_getaranges(dw, &set, n) || !set) {
		*n = 0;
		return NULL;
	}
	*ret = calloc(*n + 1, sizeof **ret);
	if (!*ret)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < *n; i++)
		dwarf_getarangeinfo(dwarf_onearange(set, i), &(*ret)[i].lo, &(*ret)[i].len, &(*ret)[i].cu);
	if (*n)
		qsort(*ret, *n, sizeof **ret, by_cu);
	return NULL;
}

/* The one byte that is the artificial unit's range. */
static bool is_trap(const struct icf_v *v, uint64_t lo, uint64_t len)
{
	return v->has_note && v->note.map.trap_byte && lo == v->note.map.trap_byte && len == 1;
}

static struct elfrw_err *check_aranges(struct icf_vdebug *d)
{
	struct arange *a = NULL, *b = NULL;
	size_t na = 0, nb = 0;
	struct elfrw_err *err = read_aranges(d->in.dw, &a, &na);
	if (!err)
		err = read_aranges(d->out.dw, &b, &nb);
	for (size_t i = 0, k = 0; !err && (i < na || k < nb);) {
		Dwarf_Off cu = i < na && (k == nb || a[i].cu <= b[k].cu) ? a[i].cu : b[k].cu;
		struct icf_vset want = { 0 }, have = { 0 };
		char buf[200];
		for (; i < na && a[i].cu == cu; i++)
			if (a[i].len && icf_v_in_exec(d->v, a[i].lo))
				icf_vset_expect(&want, d, a[i].lo, a[i].lo + a[i].len);
		bool fits = true;
		for (; k < nb && b[k].cu == cu; k++)
			fits &= !b[k].len || icf_vset_add(&have, d, b[k].lo, b[k].lo + b[k].len) ||
				is_trap(d->v, b[k].lo, b[k].len) ||
				(na && bsearch(&b[k], a, na, sizeof *a, by_cu) && !icf_v_in_exec(d->v, b[k].lo));
		const char *why = icf_vset_differ(&want, &have, d, d->policy == DWR_FOLDED_OVERLAY, buf, sizeof buf);
		if (!why && !fits)
			why = "expected the bounds of code, found fill";
		d->log->checked[ICF_VC_ARANGE]++;
		if (why)
			icf_vlog_bad(d->log, ICF_VC_ARANGE, "ranges: .debug_aranges, unit 0x%llx: %s", ICF_VX(cu), why);
		if (want.nomem || have.nomem)
			err = &elfrw_err_nomem;
		icf_vset_free(&want);
		icf_vset_free(&have);
	}
	free(a);
	free(b);
	return err;
}

static Elf_Data *section_data(struct icf_vdwarf *f, const char *want)
{
	size_t names;
	if (elf_getshdrstrndx(f->elf, &names))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(f->elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(f->elf, names, sh->sh_name) : NULL;
		if (!name || strcmp(name, want) != 0)
			continue;
		if ((sh->sh_flags & SHF_COMPRESSED) && elf_compress(scn, 0, 0) < 0)
			return NULL;
		return elf_getdata(scn, NULL);
	}
	return NULL;
}

/* Sections that hold no address: the same, or longer for the artificial unit. */
static void check_constant(struct icf_vdebug *d)
{
	static const char *const name[] = { ".debug_str",	   ".debug_line_str", ".debug_str_offsets",
					    ".debug_pubnames",	   ".debug_pubtypes", ".debug_gnu_pubnames",
					    ".debug_gnu_pubtypes", ".debug_sup",      ".debug_gdb_scripts",
					    ".debug_cu_index",	   ".debug_tu_index" };
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		const Elf_Data *a = section_data(&d->in, name[i]), *b = section_data(&d->out, name[i]);
		if (!a || !a->d_size)
			continue;
		d->log->checked[ICF_VC_INDEX]++;
		if (!b || b->d_size < a->d_size || memcmp(a->d_buf, b->d_buf, a->d_size) != 0)
			icf_vlog_bad(d->log, ICF_VC_INDEX, "section: %s: expected the same bytes, found others",
				     name[i]);
	}
}

/* .gdb_index (gdb manual, "Index Section Format", versions 4 to 9): header of offsets, then the parts. */
struct index {
	struct elfrw_rbuf r;
	uint32_t version, part[6], n;
};

static bool read_index(const Elf_Data *data, struct index *x)
{
	x->r = elfrw_rbuf(data->d_buf, data->d_size);
	x->version = elfrw_rbuf_u32(&x->r);
	x->n = x->version >= 9 ? 6 : 5;
	for (uint32_t i = 0; i < x->n; i++)
		x->part[i] = elfrw_rbuf_u32(&x->r);
	for (uint32_t i = 1; i < x->n; i++)
		if (x->part[i] < x->part[i - 1] || x->part[i] > data->d_size)
			return false;
	return elfrw_rbuf_ok(&x->r);
}

struct area {
	uint32_t cu;
	uint64_t lo, hi;
};

static int by_area(const void *a, const void *b)
{
	const struct area *x = a, *y = b;
	if (x->cu != y->cu)
		return x->cu < y->cu ? -1 : 1;
	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

/* The address part: entries of 20 bytes. */
static struct area *read_areas(const Elf_Data *data, const struct index *x, size_t *n)
{
	*n = (x->part[3] - x->part[2]) / 20;
	struct area *a = calloc(*n + 1, sizeof *a);
	struct elfrw_rbuf r = elfrw_rbuf(data->d_buf, data->d_size);
	elfrw_rbuf_seek(&r, x->part[2]);
	for (size_t i = 0; a && i < *n; i++) {
		a[i].lo = elfrw_rbuf_u64(&r);
		a[i].hi = elfrw_rbuf_u64(&r);
		a[i].cu = elfrw_rbuf_u32(&r);
	}
	if (a && *n)
		qsort(a, *n, sizeof *a, by_area);
	return a;
}

static struct elfrw_err *check_gdb_index(struct icf_vdebug *d)
{
	const Elf_Data *a = section_data(&d->in, ".gdb_index"), *b = section_data(&d->out, ".gdb_index");
	struct index x, y;
	if (!a || !a->d_size || !read_index(a, &x))
		return NULL;
	if (!b || !b->d_size || !read_index(b, &y) || x.version != y.version) {
		icf_vlog_bad(d->log, ICF_VC_INDEX, "index: .gdb_index: expected version %u, found another or none",
			     x.version);
		return NULL;
	}
	size_t na, nb;
	struct area *p = read_areas(a, &x, &na), *q = read_areas(b, &y, &nb);
	struct elfrw_err *err = p && q ? NULL : &elfrw_err_nomem;
	/* Units: the artificial one may have been added behind the others; the rest must be the same. */
	uint32_t n_in = (x.part[1] - x.part[0]) / 16, n_out = (y.part[1] - y.part[0]) / 16;
	if (n_out < n_in || memcmp((const uint8_t *)a->d_buf + x.part[0], (const uint8_t *)b->d_buf + y.part[0],
				   (size_t)n_in * 16) != 0)
		icf_vlog_bad(d->log, ICF_VC_INDEX, "index: .gdb_index: expected the same %u units, found others", n_in);
	for (size_t i = 0, k = 0; !err && (i < na || k < nb);) {
		uint32_t cu = i < na && (k == nb || p[i].cu <= q[k].cu) ? p[i].cu : q[k].cu;
		struct icf_vset want = { 0 }, have = { 0 };
		char buf[200];
		for (; i < na && p[i].cu == cu; i++)
			if (icf_v_in_exec(d->v, p[i].lo))
				icf_vset_expect(&want, d, p[i].lo, p[i].hi);
		bool fits = true;
		for (; k < nb && q[k].cu == cu; k++)
			fits &= icf_vset_add(&have, d, q[k].lo, q[k].hi) || is_trap(d->v, q[k].lo, q[k].hi - q[k].lo) ||
				!icf_v_out_exec(d->v, q[k].lo);
		const char *why = icf_vset_differ(&want, &have, d, d->policy == DWR_FOLDED_OVERLAY, buf, sizeof buf);
		if (!why && !fits)
			why = "expected the bounds of code, found fill";
		d->log->checked[ICF_VC_INDEX]++;
		if (why)
			icf_vlog_bad(d->log, ICF_VC_INDEX, "ranges: .gdb_index, unit number %u: %s", cu, why);
		icf_vset_free(&want);
		icf_vset_free(&have);
	}
	free(p);
	free(q);
	return err;
}

static bool ops_same(const Dwarf_Op *a, size_t na, const Dwarf_Op *b, size_t nb)
{
	if (na != nb)
		return false;
	for (size_t i = 0; i < na; i++)
		if (a[i].atom != b[i].atom || a[i].number != b[i].number || a[i].number2 != b[i].number2)
			return false;
	return true;
}

static bool frames_same(Dwarf_Frame *a, Dwarf_Frame *b)
{
	Dwarf_Op *x, *y, mx[3], my[3];
	size_t nx, ny;
	bool sa, sb;
	if (dwarf_frame_info(a, NULL, NULL, &sa) != dwarf_frame_info(b, NULL, NULL, &sb) || sa != sb)
		return false;
	if (dwarf_frame_cfa(a, &x, &nx) || dwarf_frame_cfa(b, &y, &ny) || !ops_same(x, nx, y, ny))
		return false;
	for (int r = 0; r <= 16; r++) {
		int ra = dwarf_frame_register(a, r, mx, &x, &nx), rb = dwarf_frame_register(b, r, my, &y, &ny);
		if (ra != rb || (!ra && (!ops_same(x, nx, y, ny) || (!nx && !x != !y))))
			return false;
	}
	return true;
}

/* Every row of .debug_frame of every unit, folded ones too: their rules are the kept copy's. */
static void check_debug_frame(struct icf_vdebug *d)
{
	const struct icf_v *v = d->v;
	Dwarf_CFI *in = dwarf_getcfi(d->in.dw), *out = dwarf_getcfi(d->out.dw);
	if (!in)
		return;
	if (!out) {
		icf_vlog_bad(d->log, ICF_VC_FRAME_ROW,
			     "table: .debug_frame: expected one that libdw reads, found none");
		return;
	}
	for (uint32_t i = 0; i < v->unit.len; i++) {
		const struct icf_vunit *u = &v->unit.data[i];
		char name[200];
		for (uint64_t off = 0; off < u->end - u->old;) {
			Dwarf_Frame *a = NULL, *b = NULL;
			Dwarf_Addr start, end = 0;
			int ra = dwarf_cfi_addrframe(in, u->old + off, &a),
			    rb = dwarf_cfi_addrframe(out, u->body + off, &b);
			if (ra == 0) {
				dwarf_frame_info(a, &start, &end, NULL);
				d->log->checked[ICF_VC_FRAME_ROW]++;
				if (rb || !frames_same(a, b))
					icf_vlog_bad(
						d->log, ICF_VC_FRAME_ROW,
						"row: .debug_frame, %s (0x%llx -> 0x%llx): expected the same, found %s",
						icf_v_where(v, u->old + off, name), ICF_VX(u->old + off),
						ICF_VX(u->body + off), rb ? "none" : "another");
			} else if (rb == 0 && !(u->flags & ICF_V_FOLDED))
				icf_vlog_bad(d->log, ICF_VC_FRAME_ROW,
					     "row: .debug_frame, %s (0x%llx -> 0x%llx): expected none, found one",
					     icf_v_where(v, u->old + off, name), ICF_VX(u->old + off),
					     ICF_VX(u->body + off));
			free(a);
			free(b);
			/* To the next row; without one, the last byte is looked at besides. */
			uint64_t size = u->end - u->old;
			off = ra == 0 && end > u->old + off ? end - u->old : off < size - 1 ? size - 1 : size;
		}
	}
}

struct elfrw_err *icf_vd_tables(struct icf_vdebug *d)
{
	ELFRW_TRY(check_aranges(d));
	check_constant(d);
	ELFRW_TRY(check_gdb_index(d));
	check_debug_frame(d);
	return NULL;
}
