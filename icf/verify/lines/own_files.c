/* own_files.c: the files of the line table that only OUT has.
 *
 * The rows of this table are compared with IN's elsewhere, by the paths of their files.  Here the
 * files themselves are checked: each must be one of IN's, with the same checksum or time, and each
 * directory must be one of IN's.  Cost: one look at each file of each line table, if there is such
 * a table. */
#include "icf/verify/lines/lines.h"
#include "icf/verify/lines/state.h"
#include <dwarf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_PATH 4096

/* The full path of NAME in directory number DIR; false: no such directory, or the path is too
 * long. */
static bool path_of(const struct icf_vline_header *h, uint64_t number, const char *name,
		    const char *comp_dir, char path[MAX_PATH])
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

/* A file or directory that IN must have; the path of a directory ends with a slash. */
struct want {
	char *path;
	const struct icf_vline_file *file;
	bool found;
};

static int want_order(const void *a, const void *b)
{
	return strcmp(((const struct want *)a)->path, ((const struct want *)b)->path);
}

static int table_order(const void *a, const void *b)
{
	const struct icf_vline_table *x = a, *y = b;
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

/* Marks the elements of WANT that IN's tables have. */
static struct elfrw_err *look_for(const struct icf_vdwarf *in, struct want *want, size_t n)
{
	VEC(struct icf_vline_table) list = { 0 };
	struct icf_vtexts t = icf_vtexts_of(in);
	struct icf_vline_header h = { 0 };
	struct icf_vline_table x;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die;
	char path[MAX_PATH];
	struct elfrw_err *err = NULL;
	while (!err && dwarf_get_units(in->dw, cu, &cu, NULL, NULL, &die, NULL) == 0) {
		struct icf_vline_table *slot = icf_vline_table_of(&die, &x) ? VEC_PUSH(&list) : &x;
		if (slot)
			*slot = x;
		else
			err = &elfrw_err_nomem;
	}
	if (list.len)
		qsort(list.data, list.len, sizeof *list.data, table_order);
	for (size_t i = 0; i < list.len && !err; i++) {
		if ((i && list.data[i].off == list.data[i - 1].off) ||
		    !icf_vline_header(&t, list.data[i].off, &h))
			continue;
		const char *comp_dir = list.data[i].comp_dir;
		struct want *w;
		for (size_t k = 0; k < h.dir.len; k++)
			if (path_of(&h, k + (h.version < 5), "", comp_dir, path) &&
			    (w = find(want, n, path)))
				w->found = true;
		for (size_t k = 0; k < h.file.len; k++) {
			const struct icf_vline_file *f = &h.file.data[k];
			if (!path_of(&h, f->dir, f->name, comp_dir, path) ||
			    !(w = find(want, n, path)))
				continue;
			const struct icf_vline_file *g = w->file;
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

/* Is it the unit's own name among its files: without directory, time or checksum? */
static bool is_own(const struct icf_vline_header *h, size_t i)
{
	static const uint8_t zero[16];
	const struct icf_vline_file *f = &h->file.data[i];
	return !i && strcmp(f->name, ICF_VD_ARTIFICIAL) == 0 && !f->dir && !f->mtime && !f->size &&
	       (!f->md5 || memcmp(f->md5, zero, 16) == 0);
}

static struct elfrw_err *check_files(struct icf_vdebug *d, const struct icf_vline_header *h,
				     const char *comp_dir)
{
	size_t n = 0;
	char path[MAX_PATH];
	struct elfrw_err *err = NULL;
	struct want *want = calloc(h->file.len + h->dir.len + 1, sizeof *want);
	uint8_t *used =
		calloc(h->dir.len + 2,
		       1); /* directories, by number; their paths are part of their files' paths */
	if (!want || !used)
		err = &elfrw_err_nomem;
	bool fits = h->usual && h->file.len && is_own(h, 0);
	if (!err && h->version >= 5)
		fits &= h->dir.len && strcmp(h->dir.data[0], comp_dir ? comp_dir : ".") == 0;
	for (size_t i = 0; i < h->file.len && !err; i++) {
		const struct icf_vline_file *f = &h->file.data[i];
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
	/* In older versions the first has number 1. */
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

static int text_order(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;
	return (*x > *y) - (*x < *y);
}

/* Finds the names that OUT's .debug_line_str has behind IN's: those of the artificial table H and
 * no others, which follow each other up to the end. */
static struct elfrw_err *check_texts(struct icf_vdebug *d, const struct icf_vtexts *out,
				     const struct icf_vline_header *h)
{
	const Elf_Data *old = icf_vtexts_of(&d->in).line_str, *new = out->line_str;
	const size_t had = old ? old->d_size : 0, has = new ? new->d_size : 0;
	if (has <= had)
		return NULL;
	const char *start = new->d_buf, *next = start + had;
	const char **text = malloc((h->dir.len + h->file.len + 1) * sizeof *text);
	size_t n = 0;
	if (!text)
		return &elfrw_err_nomem;
	for (size_t i = 0; i < h->dir.len; i++)
		text[n++] = h->dir.data[i];
	for (size_t i = 0; i < h->file.len; i++)
		text[n++] = h->file.data[i].name;
	if (n)
		qsort(text, n, sizeof *text, text_order);
	for (size_t i = 0; i < n; i++)
		if (text[i] == next && next < start + has)
			next += strlen(next) + 1;
	free(text);
	d->own_text = (uint64_t)(next - start) - had;
	return NULL;
}

struct elfrw_err *icf_vd_own_table(struct icf_vdebug *d, Dwarf_Die *unit)
{
	struct icf_vline_table t;
	if (!icf_vline_table_of(unit, &t))
		return NULL;
	struct icf_vtexts texts = icf_vtexts_of(&d->out);
	struct icf_vline_header h = { 0 };
	struct elfrw_err *err = NULL;
	if (icf_vline_header(&texts, t.off, &h)) {
		d->own_program = h.program;
		d->own_table = t.off;
		d->comp_dir = t.comp_dir;
		err = check_texts(d, &texts, &h);
		if (!err)
			err = check_files(d, &h, t.comp_dir);
		if (!err)
			err = icf_vline_sequences(d, &texts, &h);
	} else if (!h.nomem)
		icf_vlog_bad(d->log, ICF_VC_FOLDED_LINE,
			     "header: artificial unit: expected one that can be read, found none");
	if (h.nomem)
		err = &elfrw_err_nomem;
	VEC_FREE(&h.dir);
	VEC_FREE(&h.file);
	return err;
}
