/* dtables.c: tables that describe the whole program: .debug_frame, .gdb_index, .debug_macro, and
 * string tables, which do not change. */
#include "elfrw/base/sort.h"
#include "icf/verify/debug/debug.h"
#include "icf/verify/debug/set.h"
#include "icf/verify/lines/lines.h"
#include <dwarf.h>
#include <gelf.h>
#include <stdlib.h>
#include <string.h>

/* Is the range the single byte of the artificial unit? */
static bool is_trap(const struct icf_v *v, uint64_t lo, uint64_t len)
{
	return v->claim.has_note && v->claim.note.map.trap_byte &&
	       lo == v->claim.note.map.trap_byte && len == 1;
}

/* Is A equal to B or, with MORE, to the beginning of B? */
static bool same_bytes(const Elf_Data *a, const Elf_Data *b, bool more)
{
	return b && (more ? b->d_size >= a->d_size : b->d_size == a->d_size) &&
	       (!a->d_size || memcmp(a->d_buf, b->d_buf, a->d_size) == 0);
}

/* Sections without addresses must be equal, but for the names that the artificial table adds. */
static void check_constant(struct icf_vdebug *d)
{
	static const char *const name[] = { ".debug_str",          ".debug_line_str",
					    ".debug_str_offsets",  ".debug_pubnames",
					    ".debug_pubtypes",     ".debug_gnu_pubnames",
					    ".debug_gnu_pubtypes", ".debug_sup",
					    ".debug_gdb_scripts",  ".debug_cu_index",
					    ".debug_tu_index",     ".debug_macinfo",
					    ".debug_weaknames",    ".debug_funcnames",
					    ".debug_typenames",    ".debug_varnames" };
	for (size_t i = 0; i < sizeof name / sizeof *name; i++) {
		const Elf_Data *a = icf_vd_section(&d->in, name[i]),
			       *b = icf_vd_section(&d->out, name[i]);
		if ((!a || !a->d_size) && (!b || !b->d_size))
			continue;
		d->log->checked[ICF_VC_INDEX]++;
		uint64_t more = strcmp(name[i], ".debug_line_str") == 0 ? d->own_text : 0;
		bool same = a ? same_bytes(a, b, more) : more;
		if (!same || (b ? b->d_size : 0) != (a ? a->d_size : 0) + more)
			icf_vlog_bad(d->log, ICF_VC_INDEX,
				     "section: %s: expected the same bytes, found others", name[i]);
	}
}

struct line_offset {
	uint64_t in, out;
};

static int line_order(const void *a, const void *b)
{
	const struct line_offset *x = a, *y = b;
	return x->in < y->in ? -1 : x->in > y->in;
}

static bool unit_offset(Dwarf_Die *die, unsigned attr, uint64_t *ret)
{
	Dwarf_Attribute a;
	Dwarf_Word v;
	if (!dwarf_attr(die, attr, &a) || dwarf_formudata(&a, &v))
		return false;
	*ret = v;
	return true;
}

/* What the units of both files say of .debug_macro: the places of their line tables, and of their
 * macros. */
struct macro_units {
	VEC(struct line_offset) line;
	VEC(uint64_t) macro;
};

/* Reads units in pairs, as far as both files have one. */
static struct elfrw_err *read_macro_units(struct icf_vdebug *d, struct macro_units *ret)
{
	Dwarf_CU *x = NULL, *y = NULL;
	Dwarf_Die p, q;
	uint8_t type;
	while (dwarf_get_units(d->in.dw, x, &x, NULL, &type, &p, NULL) == 0 &&
	       dwarf_get_units(d->out.dw, y, &y, NULL, &type, &q, NULL) == 0) {
		uint64_t from, to, at;
		if (unit_offset(&p, DW_AT_stmt_list, &from) &&
		    unit_offset(&q, DW_AT_stmt_list, &to)) {
			struct line_offset *l = VEC_PUSH(&ret->line);
			if (!l)
				return &elfrw_err_nomem;
			*l = (struct line_offset){ from, to };
		}
		if (unit_offset(&p, DW_AT_macros, &at) || unit_offset(&p, DW_AT_GNU_macros, &at)) {
			uint64_t *m = VEC_PUSH(&ret->macro);
			if (!m)
				return &elfrw_err_nomem;
			*m = at;
		}
	}
	if (ret->line.len)
		qsort(ret->line.data, ret->line.len, sizeof *ret->line.data, line_order);
	return NULL;
}

/* Writes the new place of the line table into the header at AT of WANT, which begins as a copy of
 * section A. */
static void expect_macro_line(const struct macro_units *u, const Elf_Data *a, uint64_t at,
			      uint8_t *want)
{
	struct elfrw_rbuf r = elfrw_rbuf(a->d_buf, a->d_size);
	elfrw_rbuf_seek(&r, at);
	elfrw_rbuf_u16(&r);
	unsigned flags = elfrw_rbuf_u8(&r), size = flags & 1 ? 8 : 4;
	uint64_t pos = elfrw_rbuf_off(&r);
	struct line_offset key = { elfrw_rbuf_uint(&r, size), 0 };
	const struct line_offset *l =
		u->line.len && elfrw_rbuf_ok(&r)
			? bsearch(&key, u->line.data, u->line.len, sizeof key, line_order)
			: NULL;
	if ((flags & 2) && l)
		elfrw_put_le(want + pos, l->out, size);
}

/* .debug_macro (DWARF 5, section 6.3.1): the headers refer to the line table of their unit, which
 * moves; the rest is the same. */
static struct elfrw_err *check_macros(struct icf_vdebug *d)
{
	const Elf_Data *a = icf_vd_section(&d->in, ".debug_macro"),
		       *b = icf_vd_section(&d->out, ".debug_macro");
	if (!a || !a->d_size)
		return NULL;
	struct macro_units u = { 0 };
	struct elfrw_err *err = read_macro_units(d, &u);
	uint8_t *want = err ? NULL : malloc(a->d_size);
	if (want) {
		memcpy(want, a->d_buf, a->d_size);
		for (size_t i = 0; i < u.macro.len; i++)
			expect_macro_line(&u, a, u.macro.data[i], want);
		const Elf_Data expected = { .d_buf = want, .d_size = a->d_size };
		d->log->checked[ICF_VC_INDEX] += u.macro.len + 1;
		if (!same_bytes(&expected, b, false))
			icf_vlog_bad(
				d->log, ICF_VC_INDEX,
				"section: .debug_macro: expected the same bytes but for line tables, found others");
	} else
		err = &elfrw_err_nomem;
	free(want);
	VEC_FREE(&u.line);
	VEC_FREE(&u.macro);
	return err;
}

/* .gdb_index (gdb manual, "Index Section Format", versions 4 to 9): header of offsets, then the
 * parts. */
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

static const uint8_t *part_of(const Elf_Data *data, const struct index *x, uint32_t i, size_t *size)
{
	*size = (i + 1 < x->n ? x->part[i + 1] : data->d_size) - x->part[i];
	return (const uint8_t *)data->d_buf + x->part[i];
}

static bool parts_same(const Elf_Data *a, const struct index *x, const Elf_Data *b,
		       const struct index *y, uint32_t i)
{
	size_t n, m;
	const uint8_t *p = part_of(a, x, i, &n), *q = part_of(b, y, i, &m);
	return n == m && memcmp(p, q, n) == 0;
}

/* The constant pool must be equal, except that type units, which are numbered behind the N others,
 * have one more unit before them. */
static struct elfrw_err *check_gdb_pool(struct icf_vdebug *d, const Elf_Data *a,
					const struct index *x, const Elf_Data *b,
					const struct index *y, uint32_t n)
{
	size_t size, have, n_symbols;
	const uint8_t *from = part_of(a, x, x->n - 1, &size), *to = part_of(b, y, y->n - 1, &have);
	const uint8_t *symbol = part_of(a, x, 3, &n_symbols);
	uint8_t *want = malloc(size + 1);
	VEC(uint32_t) vector = { 0 };
	struct elfrw_err *err = want ? NULL : &elfrw_err_nomem;
	if (!err)
		memcpy(want, from, size);
	for (size_t i = 0; i + 8 <= n_symbols && !err; i += 8) {
		uint32_t *slot = elfrw_get64(symbol + i) ? VEC_PUSH(&vector) : NULL;
		if (slot)
			*slot = elfrw_get32(symbol + i + 4);
		else if (elfrw_get64(symbol + i))
			err = &elfrw_err_nomem;
	}
	if (vector.len && !err)
		qsort(vector.data, vector.len, sizeof *vector.data, elfrw_u32_order);
	for (size_t i = 0; i < vector.len && !err; i++) {
		struct elfrw_rbuf r = elfrw_rbuf(from, size);
		elfrw_rbuf_seek(&r, vector.data[i]);
		for (uint32_t k = i && vector.data[i] == vector.data[i - 1] ? 0
									    : elfrw_rbuf_u32(&r);
		     k && elfrw_rbuf_ok(&r); k--) {
			uint64_t at = elfrw_rbuf_off(&r);
			uint32_t v = elfrw_rbuf_u32(&r);
			if (elfrw_rbuf_ok(&r) && (v & 0xffffff) >= n)
				elfrw_put_le(want + at, v + 1, 4);
		}
	}
	if (!err && (size != have || memcmp(want, to, size) != 0))
		icf_vlog_bad(d->log, ICF_VC_INDEX,
			     "index: .gdb_index: expected the same symbols of units, found others");
	free(want);
	VEC_FREE(&vector);
	return err;
}

/* Compares all but the ranges.  The artificial unit may have been added behind the other
 * compilation units; the rest must be equal. */
static struct elfrw_err *check_gdb_rest(struct icf_vdebug *d, const Elf_Data *a,
					const struct index *x, const Elf_Data *b,
					const struct index *y)
{
	uint32_t n_in = (x->part[1] - x->part[0]) / 16, n_out = (y->part[1] - y->part[0]) / 16;
	const uint8_t *units = (const uint8_t *)b->d_buf + y->part[0];
	d->log->checked[ICF_VC_INDEX] += 3;
	if (n_out < n_in || n_out > n_in + 1 ||
	    memcmp((const uint8_t *)a->d_buf + x->part[0], units, (size_t)n_in * 16) != 0)
		icf_vlog_bad(d->log, ICF_VC_INDEX,
			     "index: .gdb_index: expected the same %u units, found others", n_in);
	else if (n_out > n_in) {
		const Elf_Data *info = icf_vd_section(&d->out, ".debug_info");
		uint64_t off = elfrw_get64(units + (size_t)n_in * 16),
			 size = elfrw_get64(units + (size_t)n_in * 16 + 8);
		if (!d->v->claim.has_note || off != d->v->claim.note.artificial_unit || !info ||
		    off > info->d_size || size != info->d_size - off)
			icf_vlog_bad(
				d->log, ICF_VC_INDEX,
				"index: .gdb_index: expected the artificial unit behind the others, found 0x%llx, %llu bytes",
				ICF_VX(off), ICF_VX(size));
	}
	bool same = parts_same(a, x, b, y, 1) && parts_same(a, x, b, y, 3);
	if (x->n > 5)
		same &= parts_same(a, x, b, y, 4);
	if (!same)
		icf_vlog_bad(
			d->log, ICF_VC_INDEX,
			"index: .gdb_index: expected the same type units and symbols, found others");
	bool types = x->part[2] > x->part[1];
	return check_gdb_pool(d, a, x, b, y, n_out > n_in && types ? n_in : UINT32_MAX);
}

static struct elfrw_err *check_gdb_index(struct icf_vdebug *d)
{
	const Elf_Data *a = icf_vd_section(&d->in, ".gdb_index"),
		       *b = icf_vd_section(&d->out, ".gdb_index");
	struct index x, y;
	if (!a || !a->d_size || !read_index(a, &x))
		return NULL;
	if (!b || !b->d_size || !read_index(b, &y) || x.version != y.version) {
		icf_vlog_bad(d->log, ICF_VC_INDEX,
			     "index: .gdb_index: expected version %u, found another or none",
			     x.version);
		return NULL;
	}
	size_t na, nb;
	struct area *p = read_areas(a, &x, &na), *q = read_areas(b, &y, &nb);
	struct elfrw_err *err = p && q ? check_gdb_rest(d, a, &x, b, &y) : &elfrw_err_nomem;
	for (size_t i = 0, k = 0; !err && (i < na || k < nb);) {
		uint32_t cu = i < na && (k == nb || p[i].cu <= q[k].cu) ? p[i].cu : q[k].cu;
		struct icf_vset want = { 0 }, have = { 0 };
		char buf[200];
		for (; i < na && p[i].cu == cu; i++)
			if (icf_v_in_exec(&d->v->claim, p[i].lo))
				icf_vset_expect(&want, d, p[i].lo, p[i].hi);
		bool fits = true;
		for (; k < nb && q[k].cu == cu; k++)
			fits &= icf_vset_add(&have, d, q[k].lo, q[k].hi) ||
				is_trap(d->v, q[k].lo, q[k].hi - q[k].lo) ||
				!icf_v_out_exec(&d->v->claim, q[k].lo);
		const char *why = icf_vset_differ(&want, &have, d, d->policy == DWR_FOLDED_OVERLAY,
						  buf, sizeof buf);
		if (!why && !fits)
			why = "expected the bounds of code, found fill";
		d->log->checked[ICF_VC_INDEX]++;
		if (why)
			icf_vlog_bad(d->log, ICF_VC_INDEX, "ranges: .gdb_index, unit number %u: %s",
				     cu, why);
		icf_vset_free(&want);
		icf_vset_free(&have);
	}
	free(p);
	free(q);
	return err;
}

/* REGS: the number of registers that rules may describe. */
static bool frames_same(Dwarf_Frame *a, Dwarf_Frame *b, int regs)
{
	Dwarf_Op *x, *y, mx[3], my[3];
	size_t nx, ny;
	bool sa, sb;
	if (dwarf_frame_info(a, NULL, NULL, &sa) != dwarf_frame_info(b, NULL, NULL, &sb) ||
	    sa != sb)
		return false;
	if (dwarf_frame_cfa(a, &x, &nx) || dwarf_frame_cfa(b, &y, &ny) ||
	    !icf_v_ops_same(x, nx, y, ny))
		return false;
	for (int r = 0; r < regs; r++) {
		int ra = dwarf_frame_register(a, r, mx, &x, &nx),
		    rb = dwarf_frame_register(b, r, my, &y, &ny);
		if (ra != rb || (!ra && (!icf_v_ops_same(x, nx, y, ny) || (!nx && !x != !y))))
			return false;
	}
	return true;
}

/* Does a row of OUT hold for the image of [FROM, TO), for which it holds in IN?  If that reaches
 * out of unit U, its image may be in several places. */
static bool extents_same(const struct icf_vunit *u, uint64_t from, uint64_t to, uint64_t start,
			 uint64_t end)
{
	if (from < u->old || to > u->end)
		return true;
	return start == u->body + (from - u->old) && end == u->body + (to - u->old);
}

/* Compares every row of .debug_frame of every unit.  For folded units the rules are the kept
 * copy's. */
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
	for (uint32_t i = 0; i < v->claim.unit.len; i++) {
		const struct icf_vunit *u = &v->claim.unit.data[i];
		char name[200];
		for (uint64_t off = 0; off < u->end - u->old && !(u->flags & ICF_V_REMOVED);) {
			Dwarf_Frame *a = NULL, *b = NULL;
			Dwarf_Addr start, end = 0, start_out, end_out;
			int ra = dwarf_cfi_addrframe(in, u->old + off, &a),
			    rb = dwarf_cfi_addrframe(out, u->body + off, &b);
			if (ra == 0) {
				dwarf_frame_info(a, &start, &end, NULL);
				if (rb == 0)
					dwarf_frame_info(b, &start_out, &end_out, NULL);
				d->log->checked[ICF_VC_FRAME_ROW]++;
				if (rb || !frames_same(a, b, v->claim.arch->dwarf_registers) ||
				    !extents_same(u, start, end, start_out, end_out))
					icf_vlog_bad(
						d->log, ICF_VC_FRAME_ROW,
						"row: .debug_frame, %s (0x%llx -> 0x%llx): expected the same, found %s",
						icf_v_where(&v->claim, u->old + off, name),
						ICF_VX(u->old + off), ICF_VX(u->body + off),
						rb ? "none" : "another");
			} else if (rb == 0 && !(u->flags & ICF_V_FOLDED))
				icf_vlog_bad(
					d->log, ICF_VC_FRAME_ROW,
					"row: .debug_frame, %s (0x%llx -> 0x%llx): expected none, found one",
					icf_v_where(&v->claim, u->old + off, name),
					ICF_VX(u->old + off), ICF_VX(u->body + off));
			free(a);
			free(b);
			/* Go to the next row.  Without one, also examine the last byte. */
			uint64_t size = u->end - u->old;
			off = ra == 0 && end > u->old + off ? end - u->old
			      : off < size - 1              ? size - 1
							    : size;
		}
	}
}

struct elfrw_err *icf_vd_tables(struct icf_vdebug *d)
{
	icf_vd_aranges(d);
	icf_vd_headers(d);
	icf_vd_abbrevs(d);
	check_constant(d);
	icf_vd_line_headers(d);
	ELFRW_TRY(icf_vd_names(d));
	ELFRW_TRY(check_macros(d));
	ELFRW_TRY(check_gdb_index(d));
	check_debug_frame(d);
	return NULL;
}
