/* debug.c: the debug information of both files, unit by unit, and sets of addresses carried through
 * the map.
 *
 * libdw is not made for several threads, so each part of the units has handles of its own.  The
 * parts are runs of units of about the same size; what they find is put together in their order, so
 * the result does not depend on their number.  There are more of them than threads: what libdw
 * keeps of a part is given back before the next one begins. */
#include "icf/verify/debug/debug.h"
#include "elfrw/base/parallel.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void icf_vset_free(struct icf_vset *s)
{
	VEC_FREE(&s->v);
	VEC_FREE(&s->thunk);
}

static void push_piece(struct icf_vset *s, uint32_t unit, uint64_t lo, uint64_t hi)
{
	struct icf_vpiece *p = VEC_PUSH(&s->v);
	if (p)
		*p = (struct icf_vpiece){ unit, lo, hi };
	else
		s->nomem = true;
}

static void push_thunk(struct icf_vset *s, uint32_t unit)
{
	uint32_t *p = VEC_PUSH(&s->thunk);
	if (p)
		*p = unit;
	else
		s->nomem = true;
}

/* The first unit of IN that ends behind VA. */
static uint32_t first_ending_after(const struct icf_v *v, uint64_t va)
{
	return LOWER_BOUND(0, (uint32_t)v->unit.len, mid, v->unit.data[mid].end <= va);
}

void icf_vset_expect(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi)
{
	const struct icf_v *v = d->v;
	for (uint32_t i = first_ending_after(v, lo); i < v->unit.len && v->unit.data[i].old < hi;
	     i++) {
		const struct icf_vunit *u = &v->unit.data[i];
		uint64_t from = lo > u->old ? lo : u->old, to = hi < u->end ? hi : u->end;
		if (u->thunk && from == u->old && to == u->end)
			push_thunk(s, i);
		if (from >= to || ((u->flags & ICF_V_FOLDED) && d->policy != DWR_FOLDED_ALIAS))
			continue;
		push_piece(s, u->kept, u->body + (from - u->old), u->body + (to - u->old));
	}
}

bool icf_vset_add(struct icf_vset *s, const struct icf_vdebug *d, uint64_t lo, uint64_t hi)
{
	const struct icf_v *v = d->v;
	if (lo >= hi)
		return true;
	/* It begins and ends in code, not in the fill between. */
	if ((icf_v_find_new(v, lo) == ICF_V_NONE && icf_v_find_thunk(v, lo) == ICF_V_NONE) ||
	    (icf_v_find_new(v, hi - 1) == ICF_V_NONE && icf_v_find_thunk(v, hi - 1) == ICF_V_NONE))
		return false;
	uint32_t a = 0, b = v->n_new;
	while (a < b) {
		uint32_t mid = a + (b - a) / 2;
		const struct icf_vunit *u = &v->unit.data[v->by_new[mid]];
		if (u->body + (u->end - u->old) <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	for (; a < v->n_new && v->unit.data[v->by_new[a]].body < hi; a++) {
		const struct icf_vunit *u = &v->unit.data[v->by_new[a]];
		uint64_t end = u->body + (u->end - u->old);
		push_piece(s, v->by_new[a], lo > u->body ? lo : u->body, hi < end ? hi : end);
	}
	for (a = 0, b = v->n_thunk; a < b;) {
		uint32_t mid = a + (b - a) / 2;
		const struct icf_vunit *u = &v->unit.data[v->by_thunk[mid]];
		if (u->entry + u->thunk <= lo)
			a = mid + 1;
		else
			b = mid;
	}
	bool whole = true;
	for (; a < v->n_thunk && v->unit.data[v->by_thunk[a]].entry < hi; a++) {
		const struct icf_vunit *u = &v->unit.data[v->by_thunk[a]];
		whole &= lo <= u->entry && u->entry + u->thunk <= hi;
		push_thunk(s, v->by_thunk[a]);
	}
	return whole;
}

static int piece_order(const void *a, const void *b)
{
	const struct icf_vpiece *x = a, *y = b;
	if (x->lo != y->lo)
		return x->lo < y->lo ? -1 : 1;
	return x->hi < y->hi ? -1 : x->hi > y->hi;
}

static int u32_order(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

/* Sorts, and joins the pieces that touch inside of one unit; true: some had bytes in common. */
static bool normalize(struct icf_vset *s)
{
	size_t n = 0, t = 0;
	bool overlap = false;
	if (s->v.len > 1)
		qsort(s->v.data, s->v.len, sizeof *s->v.data, piece_order);
	for (size_t i = 0; i < s->v.len; i++) {
		struct icf_vpiece p = s->v.data[i], *last = n ? &s->v.data[n - 1] : NULL;
		if (last && last->unit == p.unit && p.lo <= last->hi) {
			overlap |= p.lo < last->hi;
			if (p.hi > last->hi)
				last->hi = p.hi;
		} else
			s->v.data[n++] = p;
	}
	s->v.len = n;
	if (s->thunk.len > 1)
		qsort(s->thunk.data, s->thunk.len, sizeof *s->thunk.data, u32_order);
	for (size_t i = 0; i < s->thunk.len; i++)
		if (!t || s->thunk.data[t - 1] != s->thunk.data[i])
			s->thunk.data[t++] = s->thunk.data[i];
	s->thunk.len = t;
	return overlap;
}

const char *icf_vset_differ(struct icf_vset *want, struct icf_vset *have,
			    const struct icf_vdebug *d, bool thunks, char *buf, size_t size)
{
	const struct icf_v *v = d->v;
	bool a = normalize(want), b = normalize(have);
	for (size_t i = 0; i < want->v.len || i < have->v.len; i++) {
		const struct icf_vpiece *w = i < want->v.len ? &want->v.data[i] : NULL,
					*h = i < have->v.len ? &have->v.data[i] : NULL;
		if (w && h && w->lo == h->lo && w->hi == h->hi)
			continue;
		snprintf(buf, size, "expected 0x%llx to 0x%llx, found 0x%llx to 0x%llx",
			 ICF_VX(w ? w->lo : 0), ICF_VX(w ? w->hi : 0), ICF_VX(h ? h->lo : 0),
			 ICF_VX(h ? h->hi : 0));
		return buf;
	}
	for (size_t i = 0, k = 0; i < want->thunk.len || k < have->thunk.len;) {
		uint32_t w = i < want->thunk.len ? want->thunk.data[i] : UINT32_MAX,
			 h = k < have->thunk.len ? have->thunk.data[k] : UINT32_MAX;
		if (w == h) {
			i++;
			k++;
		} else if (h < w || thunks) {
			snprintf(buf, size,
				 h < w ? "expected no thunk at 0x%llx, found one"
				       : "expected the thunk at 0x%llx, found none",
				 ICF_VX(v->unit.data[h < w ? h : w].entry));
			return buf;
		} else
			i++;
	}
	return b && !a ? "expected ranges that are apart, found some that overlap" : NULL;
}

/* libdw reads strings up to their NUL, wherever that is. */
static bool is_open_ended(Elf_Scn *scn)
{
	const Elf_Data *data = elf_getdata(scn, NULL);
	return !data ||
	       (data->d_size && (!data->d_buf || ((const char *)data->d_buf)[data->d_size - 1]));
}

/* libdw ignores sections that it cannot decompress, and does not say when that was for want of
 * memory.  Decompressed once, a section stays so. */
static struct elfrw_err *decompress(struct icf_v *v, Elf *elf)
{
	size_t names;
	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(elf, names, sh->sh_name) : NULL;
		if (!name || !(sh->sh_flags & SHF_COMPRESSED) || strncmp(name, ".debug_", 7) != 0)
			continue;
		errno = 0;
		if (elf_compress(scn, 0, 0) < 0 && errno == ENOMEM && !v->sure) {
			__atomic_store_n(&v->doubt, true, __ATOMIC_RELAXED);
			return &elfrw_err_nomem;
		}
	}
	return NULL;
}

static struct elfrw_err *narrow_lines(struct icf_vdwarf *d)
{
	size_t names;
	if (elf_getshdrstrndx(d->elf, &names))
		return NULL;
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(d->elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(d->elf, names, sh->sh_name) : NULL;
		if (name && (strcmp(name, ".debug_line") == 0 || strcmp(name, ".zdebug_line") == 0))
			return icf_vd_narrow(elf_getdata(scn, NULL), &d->line);
	}
	return NULL;
}

/* What libdw cannot read: RET->dw NULL. */
static struct elfrw_err *open_dwarf(struct icf_v *v, const struct elfrw_image *img,
				    struct icf_vdwarf *ret)
{
	*ret = (struct icf_vdwarf){ 0 };
	icf_v_elf_open(img, &ret->file);
	if (!img->pair && ret->file.fd < 0)
		return elfrw_error_errno(errno, "%s: cannot open", img->path);
	ret->elf = ret->file.elf;
	if (ret->elf)
		ELFRW_TRY(decompress(v, ret->elf));
	ret->dw = ret->elf ? dwarf_begin_elf(ret->elf, DWARF_C_READ, NULL) : NULL;
	if (!ret->elf)
		return elfrw_error("%s: libelf cannot read it: %s", img->path, elf_errmsg(-1));
	if (ret->dw && v->opt->no_memory)
		dwarf_new_oom_handler(ret->dw, v->opt->no_memory);
	/* libdw has them decompressed by now. */
	ELFRW_TRY(narrow_lines(ret));
	size_t names;
	if (elf_getshdrstrndx(ret->elf, &names))
		return elfrw_error("%s: libelf cannot read it: %s", img->path, elf_errmsg(-1));
	for (Elf_Scn *scn = NULL; (scn = elf_nextscn(ret->elf, scn));) {
		Elf64_Shdr *sh = elf64_getshdr(scn);
		const char *name = sh ? elf_strptr(ret->elf, names, sh->sh_name) : NULL;
		if (name && strcmp(name, ".debug_loc") == 0)
			ret->loc[0] = elf_getdata(scn, NULL);
		else if (name && strcmp(name, ".debug_loclists") == 0)
			ret->loc[1] = elf_getdata(scn, NULL);
		else if (ret->dw && name &&
			 (strcmp(name, ".debug_str") == 0 ||
			  strcmp(name, ".debug_line_str") == 0) &&
			 is_open_ended(scn)) {
			dwarf_end(ret->dw);
			ret->dw = NULL;
			ret->why = "a section of strings does not end with a NUL";
		}
	}
	return NULL;
}

static void close_dwarf(struct icf_vdwarf *d)
{
	if (d->dw)
		dwarf_end(d->dw);
	icf_v_elf_close(&d->file);
	free(d->line);
	*d = (struct icf_vdwarf){ .file.fd = -1 };
}

static int owner_order(const void *a, const void *b)
{
	const struct icf_vowner *x = a, *y = b;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->die < y->die ? -1 : x->die > y->die;
}

/* Where in the overlay an entry begins that can be read from there. */
struct start {
	uint64_t off, die;
};
typedef VEC(struct start) start_list;

/* Fills LIST, by offset.  Entries may be long, and many functions may name one: each is read once.
 * A broken one was told by read_overlay. */
static struct elfrw_err *list_starts(const struct dwr_icfold *note, start_list *list)
{
	struct dwr_icfold_walk w = dwr_icfold_overlay(note);
	for (;;) {
		struct dwr_icfold_entry e;
		bool more;
		uint64_t off = (uint64_t)(w.r.pos - w.base) - note->overlay;
		struct elfrw_err *err = dwr_icfold_overlay_next(&w, &e, &more);
		elfrw_err_free(err);
		if (err || !more)
			return NULL;
		/* Others count on from the entry before. */
		if (!(note->data[note->overlay + off] & 1))
			continue;
		struct start *slot = VEC_PUSH(list);
		if (!slot)
			return &elfrw_err_nomem;
		*slot = (struct start){ off, e.die };
	}
}

static bool starts_at(const start_list *list, const struct dwr_icfold_die *d)
{
	size_t i = LOWER_BOUND(0, list->len, mid, list->data[mid].off < d->overlay);
	return i < list->len && list->data[i].off == d->overlay && list->data[i].die == d->die;
}

/* The note names exactly the functions' DIEs of every member, and where their part of the overlay
 * begins. */
static struct elfrw_err *check_owners(struct icf_v *v, struct icf_vowner *list, size_t n,
				      const struct icf_voverlay *overlay, size_t n_overlay)
{
	const struct dwr_icfold *note = &v->note;
	char name[200];
	start_list starts = { 0 };
	struct elfrw_err *err = list_starts(note, &starts);
	if (err) {
		VEC_FREE(&starts);
		return err;
	}
	if (n)
		qsort(list, n, sizeof *list, owner_order);
	for (size_t i = 0, from = 0; i < note->n_members; i++) {
		const struct dwr_icfold_member *m = &note->member[i];
		size_t have = 0;
		/* Members are by group, the list by unit. */
		size_t lo = LOWER_BOUND(0, n, mid, list[mid].unit < m->unit);
		from = lo;
		while (from + have < n && list[from + have].unit == m->unit)
			have++;
		v->log.checked[ICF_VC_NOTE]++;
		bool same = have == m->n_dies;
		for (uint32_t k = 0; k < m->n_dies; k++) {
			const struct dwr_icfold_die *d = &note->dies[m->die + k];
			struct icf_vowner key = { m->unit, d->die };
			same &= have &&
				bsearch(&key, list + from, have, sizeof key, owner_order) != NULL;
			if (d->overlay == UINT64_MAX) {
				size_t i =
					LOWER_BOUND(0, n_overlay, mid, overlay[mid].die < d->die);
				if (i < n_overlay && overlay[i].die == d->die)
					icf_vlog_bad(
						&v->log, ICF_VC_OVERLAY,
						"overlay: of DIE 0x%llx: expected its entry, found none named",
						ICF_VX(d->die));
				continue;
			}
			if (!starts_at(&starts, d))
				icf_vlog_bad(
					&v->log, ICF_VC_OVERLAY,
					"overlay: of DIE 0x%llx: expected its entry at 0x%llx, found another",
					ICF_VX(d->die), ICF_VX(d->overlay));
		}
		if (!same)
			icf_vlog_bad(
				&v->log, ICF_VC_NOTE,
				"DIEs: of %s (0x%llx): expected the %zu that begin there, found %u%s",
				icf_v_where(v, v->unit.data[m->unit].old, name),
				ICF_VX(v->unit.data[m->unit].old), have, m->n_dies,
				have == m->n_dies ? " others" : "");
	}
	VEC_FREE(&starts);
	return NULL;
}

#define MAX_PARTS        32
#define PARTS_PER_THREAD 4

struct job {
	struct icf_v *v;
	struct icf_vdebug *part;
	struct icf_vlog *log;
	uint64_t *first; /* by part: offset of its first unit, counted through .debug_info and
			    .debug_types */
	size_t n;
};

/* A position that orders the units of both sections. */
static uint64_t position(Dwarf_Die *die, Dwarf_CU *cu, bool types)
{
	(void)cu;
	return (uint64_t)dwarf_dieoffset(die) | (types ? UINT64_C(1) << 63 : 0);
}

struct walk {
	Dwarf *dw;
	Dwarf_CU *cu;
	Dwarf_Die die;
	uint64_t last;
	uint8_t type;
	bool types, more;
};

static void next(struct walk *w)
{
	w->more = dwarf_get_units(w->dw, w->cu, &w->cu, NULL, &w->type, &w->die, NULL) == 0;
	if (!w->more)
		return;
	uint64_t off = (uint64_t)dwarf_dieoffset(&w->die);
	/* .debug_types comes behind .debug_info. */
	w->types |= w->last && off < w->last;
	w->last = off;
}

static bool is_artificial(Dwarf_Die *die)
{
	const char *name = dwarf_diename(die);
	return name && strcmp(name, ICF_VD_ARTIFICIAL) == 0;
}

/* The artificial unit may not claim an address of the program. */
static struct elfrw_err *check_artificial(struct icf_vdebug *d, Dwarf_Die *die)
{
	struct icf_vset want = { 0 }, have = { 0 };
	Dwarf_Addr base, lo, hi;
	char buf[200];
	uint64_t trap = d->v->has_note ? d->v->note.map.trap_byte : 0;
	for (ptrdiff_t off = 0; (off = dwarf_ranges(die, off, &base, &lo, &hi)) > 0;) {
		icf_vset_add(&have, d, lo, hi);
		if (d->v->has_note && (lo != trap || hi != trap + 1))
			icf_vlog_bad(
				d->log, ICF_VC_DIE_RANGE,
				"ranges: artificial unit: expected the trap byte 0x%llx, found 0x%llx to 0x%llx",
				ICF_VX(trap), ICF_VX(lo), ICF_VX(hi));
	}
	const char *why = icf_vset_differ(&want, &have, d, false, buf, sizeof buf);
	d->log->checked[ICF_VC_DIE_RANGE]++;
	d->n_artificial++;
	if (why)
		icf_vlog_bad(d->log, ICF_VC_DIE_RANGE, "ranges: artificial unit: %s", why);
	icf_vset_free(&want);
	icf_vset_free(&have);
	if (d->v->has_note && d->v->note.artificial_unit != UINT64_MAX) {
		Dwarf_Off unit = (Dwarf_Off)dwarf_dieoffset(die) - dwarf_cuoffset(die);
		if (unit != d->v->note.artificial_unit)
			icf_vlog_bad(d->log, ICF_VC_NOTE,
				     "artificial unit: expected at 0x%llx, found at 0x%llx",
				     ICF_VX(d->v->note.artificial_unit), ICF_VX(unit));
	}
	/* It may be there for other things than line rows. */
	Dwarf_Attribute attr;
	return dwarf_attr(die, DW_AT_stmt_list, &attr) ? icf_vd_artificial_lines(d, die) : NULL;
}

static struct elfrw_err *check_units(const struct job *job, size_t p)
{
	struct icf_vdebug *d = &job->part[p];
	uint64_t from = job->first[p], to = p + 1 < job->n ? job->first[p + 1] : UINT64_MAX;
	ELFRW_TRY(open_dwarf(d->v, &d->v->in, &d->in));
	ELFRW_TRY(open_dwarf(d->v, &d->v->out, &d->out));
	if (!d->in.dw || !d->out.dw)
		return elfrw_error("%s: cannot read the debug information: %s", d->v->in.path,
				   dwarf_errmsg(-1));
	struct walk a = { .dw = d->in.dw }, b = { .dw = d->out.dw };
	next(&a);
	next(&b);
	while (a.more || b.more) {
		/* The units that were added are what IN has not got. */
		bool same = a.more && b.more &&
			    dwarf_dieoffset(&a.die) == dwarf_dieoffset(&b.die) &&
			    a.types == b.types;
		uint64_t at = a.more && (same || !b.more || !is_artificial(&b.die))
				      ? position(&a.die, a.cu, a.types)
				      : position(&b.die, b.cu, b.types);
		bool mine = at >= from && at < to;
		if (!same && b.more && is_artificial(&b.die)) {
			if (mine)
				ELFRW_TRY(check_artificial(d, &b.die));
			next(&b);
			continue;
		}
		if (!same || a.type != b.type) {
			if (mine)
				icf_vlog_bad(d->log, ICF_VC_DIE,
					     "unit: expected at 0x%llx, found at 0x%llx",
					     ICF_VX(a.more ? dwarf_dieoffset(&a.die) : 0),
					     ICF_VX(b.more ? dwarf_dieoffset(&b.die) : 0));
			return NULL;
		}
		if (mine) {
			ELFRW_TRY(icf_vd_tree(d, &a.die, &b.die));
			if (!is_artificial(&a.die))
				ELFRW_TRY(icf_vd_lines(d, &a.die, &b.die));
		}
		next(&a);
		next(&b);
	}
	return NULL;
}

static struct elfrw_err *check_part(void *arg, size_t p)
{
	int was = errno; /* of the steps before, where this is the caller's thread */
	errno = 0;
	struct icf_vdebug *d = &((const struct job *)arg)->part[p];
	d->in.file.fd = d->out.file.fd = -1;
	struct elfrw_err *err = icf_v_unless_nomem(d->v, d->log, check_units(arg, p));
	icf_vd_tree_deinit(d);
	icf_vd_lines_deinit(d);
	icf_vd_loclist_deinit(d);
	icf_vd_ranges_deinit(d);
	icf_vseen_deinit(d);
	close_dwarf(&d->in);
	close_dwarf(&d->out);
	if (errno != ENOMEM)
		errno = was;
	return err;
}

/* Cuts the units of IN into JOB->n parts of about the same size. */
static void cut_units(struct icf_vdwarf *in, struct job *job)
{
	struct walk w = { .dw = in->dw };
	uint64_t total = 0, done = 0, prev = 0;
	for (next(&w); w.more; next(&w))
		if (!w.types)
			total = w.last;
	size_t p = 1;
	w = (struct walk){ .dw = in->dw };
	job->first[0] = 0;
	for (next(&w); w.more && p < job->n; next(&w)) {
		if (!w.types)
			done = w.last;
		if (prev && done >= total / job->n * p)
			job->first[p++] = position(&w.die, w.cu, w.types);
		prev = 1;
	}
	job->n = p;
}

static int overlay_order(const void *a, const void *b)
{
	const struct icf_voverlay *x = a, *y = b;
	if (x->die != y->die)
		return x->die < y->die ? -1 : 1;
	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* The whole overlay as a flat list. */
static struct elfrw_err *read_overlay(struct icf_v *v, struct icf_voverlay **ret, size_t *n)
{
	VEC(struct icf_voverlay) list = { 0 };
	*ret = NULL;
	*n = 0;
	if (!v->has_note)
		return NULL;
	struct dwr_icfold_walk w = dwr_icfold_overlay(&v->note);
	for (;;) {
		struct dwr_icfold_entry e;
		struct dwr_note_range r;
		bool more;
		struct elfrw_err *err = dwr_icfold_overlay_next(&w, &e, &more);
		if (err) {
			icf_vlog_bad(&v->log, ICF_VC_OVERLAY,
				     "overlay: expected entries, found: %s", elfrw_err_text(err));
			elfrw_err_free(err);
			break;
		}
		if (!more)
			break;
		while (dwr_icfold_range_next(&e, &r)) {
			struct icf_voverlay *slot = VEC_PUSH(&list);
			if (!slot) {
				VEC_FREE(&list);
				return &elfrw_err_nomem;
			}
			*slot = (struct icf_voverlay){ e.die, r.unit, r.start, r.len };
		}
	}
	if (list.len)
		qsort(list.data, list.len, sizeof *list.data, overlay_order);
	*ret = list.data;
	*n = list.len;
	return NULL;
}

static struct elfrw_err *run_parts(struct icf_v *v, struct icf_vdwarf *in, struct icf_vdwarf *out,
				   struct icf_vplaces *place, size_t n_parts)
{
	struct job job = { .v = v, .n = n_parts };
	struct icf_voverlay *overlay = NULL;
	size_t n_overlay = 0;
	job.part = calloc(job.n, sizeof *job.part);
	job.log = calloc(job.n, sizeof *job.log);
	job.first = calloc(job.n, sizeof *job.first);
	struct icf_vdebug all = { .v = v,
				  .log = &v->log,
				  .policy = v->has_note ? v->note.policy : DWR_FOLDED_OVERLAY,
				  .in = *in,
				  .out = *out };
	size_t n = job.n;
	struct elfrw_err *err = job.part && job.log && job.first
					? read_overlay(v, &overlay, &n_overlay)
					: &elfrw_err_nomem;
	if (!err) {
		cut_units(in, &job);
		for (size_t p = 0; p < job.n; p++) {
			job.log[p].max = v->log.max;
			job.part[p] = (struct icf_vdebug){ .v = v,
							   .log = &job.log[p],
							   .policy = all.policy,
							   .overlay = overlay,
							   .n_overlay = n_overlay,
							   .in.file.fd = -1,
							   .out.file.fd = -1,
							   .names = icf_vnames_create() };
			if (!job.part[p].names)
				err = &elfrw_err_nomem;
		}
	}
	if (!err)
		err = elfrw_parallel(v->threads, job.n, check_part, &job);
	uint64_t seen = 0;
	for (size_t p = 0; p < job.n && job.part && job.log; p++) {
		struct icf_vdebug *d = &job.part[p];
		place[p] = d->place;
		icf_vlog_merge(&v->log, &job.log[p]);
		seen += d->overlay_seen;
		all.n_artificial += d->n_artificial;
		if (!VEC_RESERVE(&all.group.v, all.group.v.len + d->group.v.len) ||
		    !VEC_RESERVE(&all.artificial.v, all.artificial.v.len + d->artificial.v.len))
			err = err ? err : &elfrw_err_nomem;
		else {
			if (d->group.v.len)
				memcpy(all.group.v.data + all.group.v.len, d->group.v.data,
				       d->group.v.len * sizeof *d->group.v.data);
			if (d->artificial.v.len)
				memcpy(all.artificial.v.data + all.artificial.v.len,
				       d->artificial.v.data,
				       d->artificial.v.len * sizeof *d->artificial.v.data);
			all.group.v.len += d->group.v.len;
			all.artificial.v.len += d->artificial.v.len;
		}
		if (!VEC_RESERVE(&all.owner, all.owner.len + d->owner.len))
			err = err ? err : &elfrw_err_nomem;
		else if (d->owner.len) {
			memcpy(all.owner.data + all.owner.len, d->owner.data,
			       d->owner.len * sizeof *d->owner.data);
			all.owner.len += d->owner.len;
		}
		VEC_FREE(&d->owner);
		VEC_FREE(&d->group.v);
		VEC_FREE(&d->artificial.v);
	}
	if (!err && v->has_note &&
	    (v->note.artificial_unit != UINT64_MAX) != (all.n_artificial != 0))
		icf_vlog_bad(&v->log, ICF_VC_NOTE, "artificial unit: expected %s, found %u",
			     v->note.artificial_unit != UINT64_MAX ? "one" : "none",
			     all.n_artificial);
	if (!err && seen != n_overlay)
		icf_vlog_bad(
			&v->log, ICF_VC_OVERLAY,
			"overlay: expected ranges of DIEs that lost them, found %llu of others",
			ICF_VX(n_overlay - seen));
	if (!err && v->has_note)
		err = check_owners(v, all.owner.data, all.owner.len, overlay, n_overlay);
	VEC_FREE(&all.owner);
	if (!err)
		err = icf_vd_folded_lines(&all);
	if (!err)
		err = icf_vd_artificial_unit(&all);
	if (!err)
		err = icf_vd_tables(&all);
	VEC_FREE(&all.group.v);
	VEC_FREE(&all.artificial.v);
	for (size_t p = 0; p < n && job.part; p++)
		icf_vnames_destroy(job.part[p].names);
	free(overlay);
	free(job.part);
	free(job.log);
	free(job.first);
	return err;
}

struct elfrw_err *icf_v_check_debug(struct icf_v *v)
{
	struct icf_vdwarf in = { .file.fd = -1 }, out = { .file.fd = -1 };
	struct icf_vplaces place[MAX_PARTS] = { 0 };
	size_t n_parts = v->threads < MAX_PARTS / PARTS_PER_THREAD ? v->threads * PARTS_PER_THREAD
								   : MAX_PARTS;
	bool any = false;
	struct elfrw_err *err = NULL;
	/* All or nothing: a file may be stripped of it. */
	for (uint32_t i = 1; i < v->in.n_sections; i++)
		any |= v->to_out[i] && (strcmp(v->in.section[i].name, ".debug_info") == 0 ||
					strcmp(v->in.section[i].name, ".zdebug_info") == 0);
	for (uint32_t i = 1; i < v->in.n_sections && any; i++) {
		v->log.checked[ICF_VC_SECTION] += icf_v_is_debug_name(v->in.section[i].name);
		if (icf_v_is_debug_name(v->in.section[i].name) && !v->to_out[i])
			icf_vlog_bad(&v->log, ICF_VC_SECTION,
				     "section: %s: expected in the output, found nothing",
				     v->in.section[i].name);
	}
	elf_version(EV_CURRENT);
	err = open_dwarf(v, &v->in, &in);
	if (!err)
		err = open_dwarf(v, &v->out, &out);
	if (!err && any)
		err = icf_vd_bound(&in, &v->in);
	if (!err && any)
		err = icf_vd_bound(&out, &v->out);
	if (!err && any && !in.dw)
		err = elfrw_error("%s: libdw cannot read its debug information: %s", v->in.path,
				  in.why ? in.why : dwarf_errmsg(-1));
	else if (!err && any && !out.dw)
		icf_vlog_bad(&v->log, ICF_VC_DIE,
			     "debug information: expected some that libdw reads, found: %s",
			     out.why ? out.why : dwarf_errmsg(-1));
	else if (!err && any)
		err = run_parts(v, &in, &out, place, n_parts);
	if (!any && v->has_note && v->note.artificial_unit != UINT64_MAX)
		icf_vlog_bad(
			&v->log, ICF_VC_NOTE,
			"artificial unit: expected none without debug information, found 0x%llx",
			ICF_VX(v->note.artificial_unit));
	if (!err)
		err = icf_v_check_calls(v, &in, &out);
	close_dwarf(&in);
	close_dwarf(&out);
	if (!err)
		err = icf_v_check_symbolize(v, place, n_parts);
	for (size_t p = 0; p < n_parts; p++)
		VEC_FREE(&place[p].v);
	return err;
}
