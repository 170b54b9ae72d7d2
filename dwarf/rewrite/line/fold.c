/* fold.c: see fold.h.
 *
 * Files of different tables are compared and merged by their full path.  Each table's (directory,
 * name) is joined once, on first use, and numbered.  The first pair for a path goes into the
 * artificial table.  MD5 sums go into the table if every one of its files has one and no path has
 * two.  Members are first compared with the kept function by everything but files.  Cost: linear in
 * the rows taken out. */
#include "dwarf/rewrite/line/fold.h"
#include "dwarf/rewrite/line/texts.h"
#include "elfrw/addrmap.h"
#include "elfrw/base/search.h"
#include <dwarf.h>
#include <stdlib.h>

/* The files of one input table. */
struct table_files {
	struct dwr_line_files files;
	const char *comp_dir; /* or NULL */
	uint32_t *path;       /* number of each file's path; UINT32_MAX: not used yet */
	bool read;
};

/* One path. */
struct path {
	size_t dir_len;     /* of the path's bytes: the directory; 0: its name is absolute */
	uint32_t dir;       /* number in dirs, if it is in the artificial table */
	uint32_t file;      /* index in the artificial table, 0: not in it */
	const char *name;   /* borrowed from the input */
	const uint8_t *md5; /* borrowed; NULL: none, or several */
};

struct state {
	const struct dwr_line_folds *folds;
	const struct elfrw_addrmap *map;
	struct table_files *files; /* one per table */
	struct dwr_names dirs, paths;
	struct dwr_line_texts texts;         /* what version 5 has in .debug_line_str */
	VEC(struct path) path;               /* by number in paths */
	VEC(uint32_t) used;                  /* paths in the artificial table, in its order */
	const struct dwr_line_cover **cover; /* sorted by unit */
	size_t n_covers;
	uint32_t *first; /* [unit]: index of its first cover; n_units + 1 entries */
	struct elfrw_wbuf text;
	struct dwr_rows rows;
	bool relative;  /* a path of the artificial table is */
	size_t program; /* the table's first opcode, from the table's start */
};

static const struct dwr_rw_line_cu *find_cu(const struct dwr_rw_line_in *in, uint64_t off)
{
	size_t lo = LOWER_BOUND(0, in->n_cus, mid, in->cu[mid].stmt_list < off);
	const struct dwr_rw_line_cu *found =
		lo < in->n_cus && in->cu[lo].stmt_list == off ? &in->cu[lo] : NULL;
	for (; lo < in->n_cus && in->cu[lo].stmt_list == off; lo++)
		if (in->cu[lo].comp_dir)
			return &in->cu[lo];
	return found;
}

static struct elfrw_err *read_files(struct state *st, uint32_t table)
{
	struct table_files *f = &st->files[table];
	const struct dwr_rw_line_in *in = st->folds->in;
	const struct dwr_line_taken *taken = st->folds->table[table];
	const struct dwr_rw_line_cu *cu = find_cu(in, taken->off);
	struct dwr_line_header h;
	f->read = true;
	f->comp_dir = cu ? cu->comp_dir : NULL;
	ELFRW_TRY(dwr_line_header_read(in->name, in->line, taken->off, &h));
	uint64_t str_base = cu ? cu->str_offsets_base : UINT64_MAX;
	ELFRW_TRY(dwr_line_files_read(&h, &in->strings, str_base, taken->defines_files, &f->files));
	f->path = malloc((f->files.file.len + 1) * sizeof *f->path);
	if (!f->path)
		return &elfrw_err_nomem;
	memset(f->path, 0xff, (f->files.file.len + 1) * sizeof *f->path);
	return NULL;
}

/* Appends DIR to TEXT, or replaces TEXT if DIR is absolute. */
static void join(struct elfrw_wbuf *text, const char *dir)
{
	if (!dir || !*dir)
		return;
	if (*dir == '/')
		text->len = 0;
	else if (text->len && text->data[text->len - 1] != '/')
		elfrw_wbuf_u8(text, '/');
	elfrw_wbuf_bytes(text, dir, strlen(dir));
}

/* The number of the path of file FILE of TABLE. */
static struct elfrw_err *path_number(struct state *st, uint32_t table, uint32_t file, uint32_t *ret)
{
	struct table_files *f = &st->files[table];
	if (!f->read)
		ELFRW_TRY(read_files(st, table));
	size_t index = file < f->files.file.len
			       ? file
			       : f->files.file.len; /* the last one: not in the table */
	if (f->path[index] != UINT32_MAX) {
		*ret = f->path[index];
		return NULL;
	}
	struct dwr_line_file entry = { .name = "" };
	if (file < f->files.file.len)
		entry = f->files.file.data[file];
	const bool known = *entry.name;
	if (!known)
		entry.name = "<unknown>";
	st->text.len = 0;
	if (known && *entry.name != '/') {
		join(&st->text, f->comp_dir);
		/* DWARF 5's directory 0 is the unit's own once more. */
		const char *first = f->files.dir.len ? f->files.dir.data[0] : NULL;
		if (first && (!f->comp_dir || strcmp(first, f->comp_dir)))
			join(&st->text, first);
		if (entry.dir && entry.dir < f->files.dir.len)
			join(&st->text, f->files.dir.data[entry.dir]);
	}
	size_t dir_len = st->text.len;
	join(&st->text, entry.name);
	if (st->text.bad)
		return &elfrw_err_nomem;
	uint32_t n = dwr_names_number(&st->paths, st->text.data, st->text.len);
	if (n == UINT32_MAX)
		return &elfrw_err_nomem;
	if (n == st->path.len) {
		struct path *path = VEC_PUSH(&st->path);
		if (!path)
			return &elfrw_err_nomem;
		*path = (struct path){ .dir_len = dir_len, .name = entry.name, .md5 = entry.md5 };
	} else {
		struct path *path = &st->path.data[n];
		if (path->md5 && (!entry.md5 || memcmp(path->md5, entry.md5, 16)))
			path->md5 = NULL;
	}
	*ret = f->path[index] = n;
	return NULL;
}

/* Sorts the covers of all tables by unit; those of one unit stay in input order. */
static struct elfrw_err *collect_covers(struct state *st)
{
	const struct dwr_line_folds *folds = st->folds;
	uint32_t n_units = st->map->n_units;
	for (size_t t = 0; t < folds->n_tables; t++)
		st->n_covers += folds->table[t]->cover.len;
	st->first = calloc((size_t)n_units + 2, sizeof *st->first);
	st->cover = malloc((st->n_covers + 1) * sizeof *st->cover);
	st->files = calloc(folds->n_tables + 1, sizeof *st->files);
	if (!st->first || !st->cover || !st->files || st->n_covers >= UINT32_MAX)
		return &elfrw_err_nomem;
	for (size_t t = 0; t < folds->n_tables; t++)
		for (size_t i = 0; i < folds->table[t]->cover.len; i++)
			st->first[folds->table[t]->cover.data[i].unit + 2]++;
	for (size_t u = 2; u < (size_t)n_units + 2; u++)
		st->first[u] += st->first[u - 1];
	for (size_t t = 0; t < folds->n_tables; t++)
		for (size_t i = 0; i < folds->table[t]->cover.len; i++) {
			const struct dwr_line_cover *c = &folds->table[t]->cover.data[i];
			st->cover[st->first[c->unit + 1]++] = c;
		}
	return NULL;
}

static const struct dwr_row *cover_rows(const struct state *st, const struct dwr_line_cover *c)
{
	return st->folds->table[c->table]->rows.data + c->first;
}

/* Do two covers give the same place for every byte? */
static struct elfrw_err *same_cover(struct state *st, const struct dwr_line_cover *a,
				    const struct dwr_line_cover *b, bool *ret)
{
	enum {
		FLAGS = DWR_ROW_STMT | DWR_ROW_BLOCK | DWR_ROW_PROLOGUE_END | DWR_ROW_EPILOGUE_BEGIN
	};
	const struct dwr_row *x = cover_rows(st, a), *y = cover_rows(st, b);
	*ret = false;
	if (a->n != b->n || a->end != b->end)
		return NULL;
	for (size_t i = 0; i < a->n; i++)
		if (x[i].address != y[i].address || x[i].line != y[i].line ||
		    x[i].column != y[i].column || x[i].discriminator != y[i].discriminator ||
		    x[i].isa != y[i].isa || ((x[i].flags ^ y[i].flags) & FLAGS))
			return NULL;
	for (size_t i = 0; i < a->n; i++) {
		uint32_t p, q;
		if (a->table == b->table && x[i].file == y[i].file)
			continue;
		ELFRW_TRY(path_number(st, a->table, x[i].file, &p));
		ELFRW_TRY(path_number(st, b->table, y[i].file, &q));
		if (p != q)
			return NULL;
	}
	*ret = true;
	return NULL;
}

/* Puts path P into the artificial table, and its directory. */
static struct elfrw_err *use_path(struct state *st, uint32_t p)
{
	const uint32_t first_file = st->folds->version >= 5 ? 1 : 2;
	struct path *path = &st->path.data[p];
	const char *text = dwr_names_text(&st->paths, p);
	uint32_t *slot = VEC_PUSH(&st->used);
	if (!slot)
		return &elfrw_err_nomem;
	*slot = p;
	st->relative |= *text != '/' && strcmp(path->name, "<unknown>");
	path->file = first_file + (uint32_t)st->used.len - 1;
	/* An absolute name does not depend on its directory, index 0. */
	path->dir = path->dir_len ? dwr_names_number(&st->dirs, text, path->dir_len) : 0;
	return path->dir == UINT32_MAX ? &elfrw_err_nomem : NULL;
}

static struct elfrw_err *same_unit(struct state *st, uint32_t a, uint32_t b, bool *ret)
{
	size_t n = st->first[a + 1] - st->first[a];
	*ret = n == st->first[b + 1] - st->first[b];
	for (size_t i = 0; *ret && i < n; i++)
		ELFRW_TRY(same_cover(st, st->cover[st->first[a] + i], st->cover[st->first[b] + i],
				     ret));
	return NULL;
}

/* Chooses the members that need sequences, and puts their files into the artificial table. */
static struct elfrw_err *choose(struct state *st, struct dwr_rw_line_fold *fold)
{
	for (uint32_t u = 0; u < st->map->n_units; u++) {
		const struct elfrw_addrmap_unit *unit = &st->map->unit[u];
		if (!(unit->flags & ELFRW_UNIT_FOLDED) || st->first[u] == st->first[u + 1])
			continue;
		bool same = false;
		if (unit->kept < st->map->n_units)
			ELFRW_TRY(same_unit(st, u, unit->kept, &same));
		fold[u].line = cover_rows(st, st->cover[st->first[u]])->line;
		fold[u].status = same ? DWR_FOLD_SAME : DWR_FOLD_OWN;
		for (uint32_t c = st->first[u]; !same && c < st->first[u + 1]; c++) {
			const struct dwr_row *rows = cover_rows(st, st->cover[c]);
			for (size_t i = 0; i < st->cover[c]->n; i++) {
				uint32_t p;
				ELFRW_TRY(path_number(st, st->cover[c]->table, rows[i].file, &p));
				if (!st->path.data[p].file)
					ELFRW_TRY(use_path(st, p));
			}
		}
	}
	return NULL;
}

/* The artificial table's header, as dwr_line_encode needs it. */
static struct dwr_line_header make_header(const struct dwr_line_folds *folds)
{
	struct dwr_line_header h = { .section = folds->in->name,
				     .version = folds->version,
				     .offset_size = folds->offset_size,
				     .min_inst_length = 1,
				     .max_ops = 1,
				     .default_is_stmt = true,
				     .line_base = -5,
				     .line_range = 14,
				     .opcode_base = 13,
				     .address_size = folds->in->address_size,
				     .off = folds->base };
	dwr_line_header_finish(&h);
	return h;
}

/* Directory I of the artificial table.  RELATIVE: the first one is "." for those that are
 * relative. */
static const char *dir_text(const struct state *st, uint32_t i)
{
	return i || !st->relative ? dwr_names_text(&st->dirs, i) : ".";
}

/* Name I of its files: 0 is the unit itself, the others are used[I - 1]. */
static const char *file_text(const struct state *st, size_t i)
{
	const char *own = st->folds->in->folded_name;
	return i ? st->path.data[st->used.data[i - 1]].name : own ? own : DWR_FOLDED_UNIT_NAME;
}

/* Version 5: finds a place in .debug_line_str for each name.  Some editors of debug information
 * (debugedit) know names in no other place. */
static struct elfrw_err *place_texts(struct state *st)
{
	bool ok = true;
	for (uint32_t i = 0; i < st->dirs.name.len; i++)
		ok &= dwr_line_texts_want(&st->texts, dir_text(st, i));
	for (size_t i = 0; i <= st->used.len; i++)
		ok &= dwr_line_texts_want(&st->texts, file_text(st, i));
	if (!ok)
		return &elfrw_err_nomem;
	return dwr_line_texts_place(&st->texts, st->folds->offset_size);
}

static void write_dirs(const struct state *st, const struct dwr_line_header *h,
		       struct elfrw_wbuf *w)
{
	const bool v5 = h->version >= 5;
	if (v5) {
		elfrw_wbuf_u8(w, 1);
		elfrw_wbuf_uleb(w, DW_LNCT_path);
		elfrw_wbuf_uleb(w, DW_FORM_line_strp);
		elfrw_wbuf_uleb(w, st->dirs.name.len);
	}
	for (uint32_t i = v5 ? 0 : 1; i < st->dirs.name.len; i++)
		if (v5)
			elfrw_wbuf_uint(w, dwr_line_texts_at(&st->texts, dir_text(st, i)),
					h->offset_size);
		else
			elfrw_wbuf_cstr(w, dir_text(st, i));
	if (!v5)
		elfrw_wbuf_u8(w, 0);
}

/* The files.  File 0 (before v5: 1) is the unit itself. */
static void write_files(const struct state *st, const struct dwr_line_header *h,
			struct elfrw_wbuf *w)
{
	const bool v5 = h->version >= 5;
	bool md5 = true;
	for (size_t i = 0; i < st->used.len; i++)
		md5 &= st->path.data[st->used.data[i]].md5 != NULL;
	if (v5) {
		elfrw_wbuf_u8(w, md5 ? 3 : 2);
		elfrw_wbuf_uleb(w, DW_LNCT_path);
		elfrw_wbuf_uleb(w, DW_FORM_line_strp);
		elfrw_wbuf_uleb(w, DW_LNCT_directory_index);
		elfrw_wbuf_uleb(w, DW_FORM_udata);
		if (md5) {
			elfrw_wbuf_uleb(w, DW_LNCT_MD5);
			elfrw_wbuf_uleb(w, DW_FORM_data16);
		}
		elfrw_wbuf_uleb(w, st->used.len + 1);
	}
	for (size_t i = 0; i <= st->used.len; i++) {
		const struct path *path = i ? &st->path.data[st->used.data[i - 1]] : NULL;
		if (v5)
			elfrw_wbuf_uint(w, dwr_line_texts_at(&st->texts, file_text(st, i)),
					h->offset_size);
		else
			elfrw_wbuf_cstr(w, file_text(st, i));
		elfrw_wbuf_uleb(w, path ? path->dir : 0);
		if (!v5)
			elfrw_wbuf_u16(w, 0);
		else if (md5 && path)
			elfrw_wbuf_bytes(w, path->md5, 16);
		else if (md5)
			elfrw_wbuf_grow(w, 16);
	}
	if (!v5)
		elfrw_wbuf_u8(w, 0);
}

/* Writes the header H with its tables; unit_length is left open. */
static void write_header(const struct state *st, const struct dwr_line_header *h,
			 struct elfrw_wbuf *w)
{
	static const uint8_t lengths[12] = { 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1 };
	const unsigned size = h->offset_size;
	if (size == 8)
		elfrw_wbuf_u32(w, 0xffffffff);
	elfrw_wbuf_uint(w, 0, size);
	elfrw_wbuf_u16(w, h->version);
	if (h->version >= 5) {
		elfrw_wbuf_u8(w, h->address_size);
		elfrw_wbuf_u8(w, 0);
	}
	size_t length_pos = w->len;
	elfrw_wbuf_uint(w, 0, size);
	elfrw_wbuf_u8(w, h->min_inst_length);
	elfrw_wbuf_u8(w, h->max_ops);
	elfrw_wbuf_u8(w, h->default_is_stmt);
	elfrw_wbuf_u8(w, (uint8_t)h->line_base);
	elfrw_wbuf_u8(w, h->line_range);
	elfrw_wbuf_u8(w, h->opcode_base);
	elfrw_wbuf_bytes(w, lengths, sizeof lengths);
	write_dirs(st, h, w);
	write_files(st, h, w);
	if (!w->bad)
		elfrw_put_le(w->data + length_pos, w->len - length_pos - size, size);
}

/* Begins a sequence that valgrind ignores.  It takes the rows of all units as one table, whatever
 * the units' ranges, and would show lines of folded functions for the kept one's code.  It executes
 * what vendors' opcodes hold, where others skip it: to valgrind, which ignores lines of 2^20 and
 * up, these bytes are advance_line by 2^20, and twice set_prologue_end.  This opcode, since BFD
 * knows no other; to readelf the bytes are a DW_LNE_HP_SFC_associate with three numbers. */
static void hide_from_valgrind(struct elfrw_wbuf *w)
{
	/* 0, 8: an extended opcode of 8 bytes; 0x80: DW_LNE_HP_source_file_correlation */
	static const uint8_t opcode[] = {
		0,    8,    0x80, DW_LNS_advance_line,     0x80,
		0x80, 0xc0, 0x00, DW_LNS_set_prologue_end, DW_LNS_set_prologue_end
	};
	elfrw_wbuf_bytes(w, opcode, sizeof opcode);
}

static struct elfrw_err *write_member(struct state *st, const struct dwr_line_header *h, uint32_t u,
				      struct dwr_rw_line_fold *fold, struct elfrw_wbuf *w)
{
	fold->seq = w->len - st->program;
	for (uint32_t c = st->first[u]; c < st->first[u + 1]; c++) {
		const struct dwr_line_cover *cover = st->cover[c];
		const struct dwr_row *rows = cover_rows(st, cover);
		if (!VEC_RESERVE(&st->rows, cover->n))
			return &elfrw_err_nomem;
		for (size_t i = 0; i < cover->n; i++) {
			uint32_t p;
			ELFRW_TRY(path_number(st, cover->table, rows[i].file, &p));
			st->rows.data[i] = rows[i];
			st->rows.data[i].file = st->path.data[p].file;
		}
		if (c == st->first[u])
			fold->file = st->rows.data[0].file;
		fold->n_seqs++;
		const struct dwr_line_sequence seq = { .row = st->rows.data,
						       .n = cover->n,
						       .end = cover->end,
						       .delta = st->map->unit[u].body };
		hide_from_valgrind(w);
		ELFRW_TRY(dwr_line_encode(h, st->folds->in->address_size, &seq, w));
	}
	return NULL;
}

static struct elfrw_err *write_table(struct state *st, struct dwr_rw_line_fold *fold,
				     struct elfrw_wbuf *w)
{
	const struct dwr_line_header h = make_header(st->folds);
	if (h.version >= 5)
		ELFRW_TRY(place_texts(st));
	write_header(st, &h, w);
	st->program = w->len;
	if (st->map->trap_byte) {
		/* The unit's own range: gdb does not read a unit without a range, or whose table
		 * does not cover its range. */
		struct dwr_row row = { .address = st->map->trap_byte,
				       .file = h.version >= 5 ? 0 : 1,
				       .line = 1,
				       .flags = DWR_ROW_STMT };
		const struct dwr_line_sequence seq = { &row, 1, row.address + 1, 0 };
		ELFRW_TRY(dwr_line_encode(&h, st->folds->in->address_size, &seq, w));
	}
	for (uint32_t u = 0; u < st->map->n_units; u++)
		if (fold[u].status == DWR_FOLD_OWN)
			ELFRW_TRY(write_member(st, &h, u, &fold[u], w));
	if (w->bad)
		return &elfrw_err_nomem;
	if (h.offset_size == 8)
		elfrw_put64(w->data + 4, w->len - 12);
	else if (w->len - 4 >= 0xfffffff0)
		return elfrw_error("line table of the folded functions grows over 4 GB");
	else
		elfrw_put32(w->data, (uint32_t)(w->len - 4));
	return NULL;
}

static struct elfrw_err *run(struct state *st, struct dwr_rw_line_fold *fold, struct elfrw_wbuf *w)
{
	const char *dir = st->folds->in->folded_dir ? st->folds->in->folded_dir : "/";
	ELFRW_TRY(collect_covers(st));
	if (dwr_names_number(&st->dirs, dir, strlen(dir)) == UINT32_MAX)
		return &elfrw_err_nomem;
	ELFRW_TRY(choose(st, fold));
	return st->used.len ? write_table(st, fold, w) : NULL;
}

struct elfrw_err *dwr_rw_line_folds(const struct dwr_line_folds *folds,
				    struct dwr_rw_line_fold *fold, struct dwr_line_folded *ret)
{
	struct state st = { .folds = folds,
			    .map = folds->in->map,
			    .texts.have = folds->in->strings.line_str };
	struct elfrw_err *err = run(&st, fold, &ret->table);
	ret->relative = st.relative;
	ret->strings = st.texts.add;
	st.texts.add = (struct elfrw_wbuf){ 0 };
	for (size_t i = 0; st.files && i < folds->n_tables; i++) {
		dwr_line_files_deinit(&st.files[i].files);
		free(st.files[i].path);
	}
	free(st.files);
	free(st.cover);
	free(st.first);
	free(st.rows.data);
	VEC_FREE(&st.path);
	VEC_FREE(&st.used);
	dwr_names_deinit(&st.dirs);
	dwr_names_deinit(&st.paths);
	dwr_line_texts_deinit(&st.texts);
	elfrw_wbuf_free(&st.text);
	return err;
}
