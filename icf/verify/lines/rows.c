/* rows.c: the rows of a line table as libdw decodes them: stored, ordered and printed. */
#include "elfrw/base/sort.h"
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/names.h"
#include "icf/verify/lines/state.h"
#include "icf/verify/lines/wide.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MANY 4096 /* rows that are sorted by distribution */

void icf_vrows_add(struct icf_vrows *s, const struct icf_vrow *r)
{
	struct icf_vrow *slot = VEC_PUSH(&s->v);
	if (!slot) {
		s->nomem = true;
		return;
	}
	*slot = *r;
	slot->order = (uint32_t)(s->v.len - 1);
}

/* Removes components "." from a relative path: readers differ in how many they keep. */
static void drop_dots(char *path)
{
	char *to = path;
	for (const char *from = path; *from;) {
		size_t n = strcspn(from, "/");
		n += from[n] == '/';
		if (strncmp(from, "./", 2) != 0)
			to = (char *)memmove(to, from, n) + n;
		from += n;
	}
	*to = 0;
}

/* libdw puts a unit's directory before the names of files in directory 0 only.  If that directory
 * is relative itself, the name may already begin with it. */
const char *icf_vrows_whole(struct icf_vdebug *d, const char *file)
{
	static const char none[] = "";
	const char *dir = d->comp_dir ? d->comp_dir : none, *ret;
	size_t n = strlen(dir);
	bool has = file[0] == '/' || !n ||
		   (dir[0] != '/' && strncmp(file, dir, n) == 0 && file[n] == '/');
	char *whole = NULL;
	if (asprintf(&whole, "%s%s%s", has ? "" : dir, has || dir[n - 1] == '/' ? "" : "/", file) <
	    0)
		whole = NULL;
	if (whole && whole[0] != '/')
		drop_dots(whole);
	ret = whole ? icf_vnames_get(d->names, whole) : NULL;
	free(whole);
	return ret;
}

/* icf_vrows_whole() of FILE, a string of libdw: rows of a function mostly name the same. */
static const char *whole_again(struct icf_vdebug *d, const char *file)
{
	if (!d->kept_name || file != d->kept_file || d->comp_dir != d->kept_dir) {
		d->kept_file = file;
		d->kept_dir = d->comp_dir;
		d->kept_name = icf_vrows_whole(d, file);
	}
	return d->kept_name;
}

void icf_vrows_keep_all(struct icf_vdebug *d, struct icf_vrows *s, struct icf_vrows *more)
{
	for (size_t i = 0; i < more->v.len; i++) {
		more->v.data[i].file = whole_again(d, more->v.data[i].file);
		s->nomem |= !more->v.data[i].file;
	}
	s->nomem |= !icf_vrows_join(s, more);
}

bool icf_vrows_join(struct icf_vrows *to, struct icf_vrows *from)
{
	if (to->v.len)
		return VEC_APPEND(&to->v, from->v.data, from->v.len);
	const struct icf_vrows empty = *to;
	to->v = from->v;
	from->v = empty.v;
	return true;
}

void icf_vrows_keep(struct icf_vdebug *d, struct icf_vrows *s, struct icf_vrow r)
{
	r.file = whole_again(d, r.file);
	if (!r.file)
		s->nomem = true;
	else
		icf_vrows_add(s, &r);
}

/* Reads what L says besides its address, its line and whether it is an end. */
static void read_row(Dwarf_Line *l, struct icf_vrow *r)
{
	bool f = false;
	r->file = dwarf_linesrc(l, NULL, NULL);
	if (!r->file)
		r->file = "??";
	dwarf_linecol(l, &r->col);
	if (!dwarf_linebeginstatement(l, &f) && f)
		r->flags |= ICF_VROW_STMT;
	if (!dwarf_lineblock(l, &f) && f)
		r->flags |= ICF_VROW_BLOCK;
	if (!dwarf_lineprologueend(l, &f) && f)
		r->flags |= ICF_VROW_PROLOGUE;
	if (!dwarf_lineepiloguebegin(l, &f) && f)
		r->flags |= ICF_VROW_EPILOGUE;
	dwarf_lineisa(l, &r->isa);
	dwarf_linediscriminator(l, &r->disc);
}

bool icf_vrows_read(const struct icf_v *v, struct icf_vdwarf *f, Dwarf_Die *cu,
		    struct icf_vrows *ret)
{
	Dwarf_Lines *lines;
	Dwarf_Attribute attr;
	Dwarf_Word off;
	size_t n;
	Elf_Data *data = icf_vd_section(f, ".debug_line");
	const bool known = !dwarf_formudata(dwarf_attr(cu, DW_AT_stmt_list, &attr), &off);
	if (known && icf_vd_narrow(data, off, &f->line)) {
		ret->nomem = true;
		return true;
	}
	if (dwarf_getsrclines(cu, &lines, &n))
		return false;
	ret->walked = ret->told = ret->odd = ret->hides = false;
	if (!VEC_RESERVE(&ret->v, n)) {
		ret->nomem = true;
		return true;
	}
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *l = dwarf_onesrcline(lines, i);
		struct icf_vrow r = { .unit = ICF_V_NONE, .file = "??" };
		bool end = false;
		Dwarf_Addr addr = 0;
		dwarf_lineaddr(l, &addr);
		r.addr = addr;
		dwarf_lineno(l, &r.line);
		if (!dwarf_lineendsequence(l, &end) && end)
			r.flags |= ICF_VROW_END;
		read_row(l, &r);
		ret->v.data[ret->v.len++] = r;
	}
	if (known && icf_vd_line_tails(v, data, off, ret))
		ret->nomem = true;
	return true;
}

/* Compares all but the address. */
int icf_vrow_cmp(const struct icf_vrow *a, const struct icf_vrow *b)
{
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	if (a->col != b->col)
		return a->col < b->col ? -1 : 1;
	if (a->flags != b->flags)
		return a->flags < b->flags ? -1 : 1;
	if (a->disc != b->disc)
		return a->disc < b->disc ? -1 : 1;
	if (a->isa != b->isa)
		return a->isa < b->isa ? -1 : 1;
	return a->file == b->file ? 0 : strcmp(a->file, b->file);
}

int icf_vrow_by_all(const void *pa, const void *pb)
{
	const struct icf_vrow *a = pa, *b = pb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return icf_vrow_cmp(a, b);
}

/* Rows of one address keep their order, which has a meaning. */
int icf_vrow_by_address(const void *pa, const void *pb)
{
	const struct icf_vrow *a = pa, *b = pb;
	if (a->addr != b->addr)
		return a->addr < b->addr ? -1 : 1;
	return a->order < b->order ? -1 : a->order > b->order;
}

static bool is_sorted(const struct icf_vrow *v, size_t n, int (*cmp)(const void *, const void *))
{
	for (size_t i = 1; i < n; i++)
		if (cmp(&v[i - 1], &v[i]) > 0)
			return false;
	return true;
}

void icf_vrows_sort(struct icf_vrows *s, int (*cmp)(const void *, const void *))
{
	struct icf_vrow *v = s->v.data;
	const size_t n = s->v.len;
	uint64_t lo = UINT64_MAX, hi = 0;
	if (is_sorted(v, n, cmp))
		return;
	for (size_t i = 0; i < n; i++) {
		lo = v[i].addr < lo ? v[i].addr : lo;
		hi = v[i].addr > hi ? v[i].addr : hi;
	}
	if (n < MANY || !elfrw_sort_numbers(v, n, sizeof *v, lo, hi, cmp))
		qsort(v, n, sizeof *v, cmp);
}

static int by_unit(const void *pa, const void *pb)
{
	const struct icf_vrow *a = *(const struct icf_vrow *const *)pa,
			      *b = *(const struct icf_vrow *const *)pb;
	if (a->unit != b->unit)
		return a->unit < b->unit ? -1 : 1;
	if (a->cu != b->cu)
		return a->cu < b->cu ? -1 : 1;
	return icf_vrow_by_all(a, b);
}

/* Sorts the rows of one unit.  They mostly are in order. */
static void sort_unit(const struct icf_vrow **v, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (by_unit(&v[i - 1], &v[i]) > 0) {
			qsort(v, n, sizeof *v, by_unit);
			return;
		}
}

struct elfrw_err *icf_vrows_gather(struct icf_vrow_refs *ret, const struct icf_vrows *const *list,
				   size_t n, size_t units)
{
	size_t rows = 0, *end = calloc(units + 1, sizeof *end); /* of each unit's rows */
	for (size_t k = 0; k < n && end; k++)
		for (size_t i = 0; i < list[k]->v.len; i++)
			end[list[k]->v.data[i].unit]++;
	for (size_t u = 0; u < units && end; u++) {
		const size_t here = end[u];
		end[u] = rows;
		rows += here;
	}
	if (!end || !VEC_RESERVE(&ret->v, rows)) {
		free(end);
		return &elfrw_err_nomem;
	}
	ret->v.len = rows;
	for (size_t k = 0; k < n; k++)
		for (size_t i = 0; i < list[k]->v.len; i++)
			ret->v.data[end[list[k]->v.data[i].unit]++] = &list[k]->v.data[i];
	for (size_t u = 0, from = 0; u < units && rows; from = end[u++])
		sort_unit(ret->v.data + from, end[u] - from);
	free(end);
	return NULL;
}

const char *icf_vrow_show(const struct icf_vrow *r, char buf[400])
{
	snprintf(buf, 400, "0x%llx %.300s:%d:%d%s%s%s%s disc %u", ICF_VX(r->addr), r->file, r->line,
		 r->col, r->flags & ICF_VROW_STMT ? " stmt" : "",
		 r->flags & ICF_VROW_BLOCK ? " block" : "",
		 r->flags & ICF_VROW_PROLOGUE ? " prologue_end" : "",
		 r->flags & ICF_VROW_EPILOGUE ? " epilogue_begin" : "", r->disc);
	return buf;
}
