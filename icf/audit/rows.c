/* rows.c: see rows.h.
 *
 * Numbers are decimal and fit signed 64-bit integers; addresses, too.  What is not known is an
 * empty value in CSV and null in JSON.  A database can tell the columns' types from the schema
 * file; the first rows of a file may be empty in some. */
#include "icf/audit/rows.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/printable.h"
#include "elfrw/note.h"
#include "icf/audit/audit.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const column[] = { "file",    "build_id",     "package",     "arch",
				      "name",    "linkage_name", "source_file", "source_line",
				      "address", "size",         "hash",        "hash_version",
				      "class",   "foldable",     "reason",      "used" };

enum { N_COLUMNS = sizeof column / sizeof *column };

struct elfrw_err *icf_rows_begin(struct icf_rows *r, const char *path)
{
	size_t n = strlen(path);
	*r = (struct icf_rows){ .csv = n >= 4 && strcmp(path + n - 4, ".csv") == 0 };
	ELFRW_TRY(elfrw_newfile_begin(&r->file, path, 0666));
	int fd = dup(r->file.fd);
	r->f = fd < 0 ? NULL : fdopen(fd, "w");
	if (!r->f) {
		if (fd >= 0)
			close(fd);
		elfrw_newfile_drop(&r->file);
		return &elfrw_err_nomem;
	}
	for (int i = 0; i < N_COLUMNS && r->csv; i++)
		fprintf(r->f, "%s%s", column[i], i + 1 < N_COLUMNS ? "," : "\n");
	return NULL;
}

struct elfrw_err *icf_rows_commit(struct icf_rows *r)
{
	bool bad = ferror(r->f) != 0;
	bad |= fclose(r->f) != 0;
	r->f = NULL;
	if (bad) {
		elfrw_newfile_drop(&r->file);
		return elfrw_error("cannot be written");
	}
	return elfrw_newfile_commit(&r->file);
}

void icf_rows_drop(struct icf_rows *r)
{
	if (r->f)
		fclose(r->f);
	r->f = NULL;
	elfrw_newfile_drop(&r->file);
}

/* ---- values ---- */

/* Bytes that are not UTF-8 would stop a database's reader: they become U+FFFD. */
static void put_csv_text(FILE *f, const char *s)
{
	fputc('"', f);
	for (size_t left = strlen(s), n; left; s += n, left -= n) {
		unsigned code;
		n = elfrw_utf8_bytes(s, left, &code);
		if (!n) {
			fputs("\xef\xbf\xbd", f);
			n = 1;
			continue;
		}
		if (*s == '"')
			fputc('"', f);
		fwrite(s, 1, n, f);
	}
	fputc('"', f);
}

static void put_key(struct icf_rows *r, int i)
{
	if (i)
		fputc(',', r->f);
	if (!r->csv)
		fprintf(r->f, "%s\"%s\":", i ? "" : "{", column[i]);
}

static void put_text(struct icf_rows *r, int i, const char *s)
{
	put_key(r, i);
	if (!s)
		fputs(r->csv ? "" : "null", r->f);
	else if (r->csv)
		put_csv_text(r->f, s);
	else
		elfrw_put_json(r->f, s, "");
}

static void put_number(struct icf_rows *r, int i, uint64_t v)
{
	put_key(r, i);
	fprintf(r->f, "%" PRIu64, v & INT64_MAX);
}

/* VALUE: 0, 1; -1: not known. */
static void put_truth(struct icf_rows *r, int i, int value)
{
	put_key(r, i);
	if (value < 0)
		fputs(r->csv ? "" : "null", r->f);
	else
		fputs(value ? "true" : "false", r->f);
}

void icf_rows_put(struct icf_rows *r, const struct icf_row *row)
{
	char hash[ICF_HASH_TEXT];
	int i = 0;
	icf_hash_text(&row->hash, hash);
	put_text(r, i++, row->file);
	put_text(r, i++, row->build_id);
	put_text(r, i++, row->package);
	put_text(r, i++, row->arch);
	put_text(r, i++, row->name);
	put_text(r, i++, row->linkage_name);
	put_text(r, i++, row->source_file);
	if (row->source_line)
		put_number(r, i++, row->source_line);
	else
		put_truth(r, i++, -1);
	put_number(r, i++, row->address);
	put_number(r, i++, row->size);
	put_text(r, i++, hash);
	put_number(r, i++, ICF_HASH_VERSION);
	put_number(r, i++, row->class);
	put_truth(r, i++, row->foldable);
	put_text(r, i++, row->reason);
	put_truth(r, i++, row->used);
	fputs(r->csv ? "\n" : "}\n", r->f);
}

/* ---- what a file says of itself ---- */

bool icf_rows_build_id(const struct elfrw_image *img, char *ret, size_t size)
{
	uint32_t n = 0;
	const uint8_t *id = elfrw_build_id(img, &n);
	*ret = 0;
	for (uint32_t i = 0; i < n && id && 2 * (size_t)i + 3 <= size; i++)
		snprintf(ret + (size_t)2 * i, 3, "%02x", id[i]);
	return id && n;
}

/* The value of "name" in the JSON object of N bytes at S: systemd, "Package Metadata for ELF
 * Files". */
static bool find_name(const char *s, size_t n, char *ret, size_t size)
{
	static const char key[] = "\"name\"";
	const char *end = s + n, *p = memmem(s, n, key, sizeof key - 1);
	if (!p)
		return false;
	p += sizeof key - 1;
	while (p < end && (*p == ' ' || *p == ':'))
		p++;
	if (p == end || *p++ != '"')
		return false;
	size_t len = 0;
	while (p < end && *p != '"' && *p != '\\' && len + 1 < size)
		ret[len++] = *p++;
	ret[len] = 0;
	return p < end && *p == '"' && len;
}

bool icf_rows_package(const struct elfrw_image *img, char *ret, size_t size)
{
	for (uint32_t i = 1; i < img->n_sections; i++) {
		const struct elfrw_section *s = &img->section[i];
		struct elfrw_note note;
		if (s->hdr.sh_type != SHT_NOTE || !s->data)
			continue;
		struct elfrw_rbuf r = elfrw_rbuf(s->data, s->hdr.sh_size);
		while (elfrw_note_next(&r, 4, &note))
			if (elfrw_note_is(&note, "FDO", 0xcafe1a7e))
				return find_name((const char *)note.data, note.size, ret, size);
	}
	return false;
}

/* ---- one file ---- */

static struct elfrw_err *put_function(struct icf_rows *r, const struct icf_audit *a, uint32_t i,
				      struct icf_row *row)
{
	const struct icf_program *prog = &a->run.prog;
	const struct icf_unit *u = &prog->unit.data[i];
	struct dwr_sym_source src = { 0 };
	char number[32];
	if (a->sym)
		ELFRW_TRY(dwr_sym_source(a->sym, u->start, &src));
	row->source_file = src.file;
	row->source_line = src.line;
	row->name = u->sym == ICF_NONE ? NULL : icf_audit_name(a, i);
	row->linkage_name = u->sym == ICF_NONE ? NULL : icf_unit_name(prog, i, number);
	row->address = u->start;
	row->size = u->end - u->start;
	row->class = prog->unit.data[a->plan[ICF_AUDIT_ALL].cls[i]].start;
	row->foldable = u->reason == ICF_OK;
	row->reason = icf_why_key(a->unit[i].why[ICF_AUDIT_ALL]);
	row->used = a->unused.is ? !a->unused.is[i] : -1;
	icf_rows_put(r, row);
	return NULL;
}

struct elfrw_err *icf_rows_put_audit(struct icf_rows *r, const struct icf_audit *a,
				     const char *file, const char *package, unsigned threads)
{
	const struct icf_program *prog = &a->run.prog;
	char build_id[129], own[256];
	struct icf_row row = { .file = file, .package = package, .arch = prog->arch->name };
	if (icf_rows_build_id(prog->img, build_id, sizeof build_id))
		row.build_id = build_id;
	if (!package && icf_rows_package(prog->img, own, sizeof own))
		row.package = own;
	struct icf_hash *hash = malloc((prog->unit.len + 1) * sizeof *hash);
	struct elfrw_err *err = hash ? icf_hash_functions(prog, threads, hash) : &elfrw_err_nomem;
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		bool opaque = u->kind == ICF_UNIT_OPAQUE &&
			      ((u->flags & ICF_UNIT_FUNC_SYMBOL) || u->n_fde);
		if (u->kind != ICF_UNIT_FUNC && !opaque)
			continue;
		row.hash = hash[i];
		err = put_function(r, a, i, &row);
	}
	free(hash);
	return err;
}
