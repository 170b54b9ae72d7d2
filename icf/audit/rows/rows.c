/* rows.c: see rows.h.
 *
 * Numbers are decimal and fit signed 64-bit integers; addresses, too.  What is not known is an
 * empty value in CSV and null in JSON.  A database can tell the columns' types from the schema
 * file; the first rows of a file may be empty in some. */
#include "icf/audit/rows/rows.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/printable.h"
#include "elfrw/note.h"
#include "icf/audit/audit.h"
#include "icf/audit/package.h"
#include "icf/fold/unused.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const column[] = { "file",    "build_id",     "package",     "arch",
				      "name",    "linkage_name", "source_file", "source_line",
				      "address", "size",         "hash",        "hash_version",
				      "class",   "foldable",     "reason",      "used" };

#define NAME_MAX_SHOWN 4096

enum { N_COLUMNS = sizeof column / sizeof *column };

bool icf_rows_is_csv(const char *path)
{
	size_t n = strlen(path);
	return n >= 4 && strcmp(path + n - 4, ".csv") == 0;
}

void icf_rows_head(const struct icf_rows *r)
{
	for (int i = 0; i < N_COLUMNS && r->csv; i++)
		fprintf(r->f, "%s%s", column[i], i + 1 < N_COLUMNS ? "," : "\n");
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

static void put_key(const struct icf_rows *r, int i)
{
	if (i)
		fputc(',', r->f);
	if (!r->csv)
		fprintf(r->f, "%s\"%s\":", i ? "" : "{", column[i]);
}

static void put_text(const struct icf_rows *r, int i, const char *s)
{
	put_key(r, i);
	if (!s)
		fputs(r->csv ? "" : "null", r->f);
	else if (r->csv)
		put_csv_text(r->f, s);
	else
		elfrw_put_json(r->f, s, "");
}

static void put_number(const struct icf_rows *r, int i, uint64_t v)
{
	put_key(r, i);
	fprintf(r->f, "%" PRIu64, v & INT64_MAX);
}

/* VALUE: 0, 1; -1: not known. */
static void put_truth(const struct icf_rows *r, int i, int value)
{
	put_key(r, i);
	if (value < 0)
		fputs(r->csv ? "" : "null", r->f);
	else
		fputs(value ? "true" : "false", r->f);
}

void icf_rows_put(const struct icf_rows *r, const struct icf_row *row)
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

/* ---- one program ---- */

/* The build-id of IMG in hexadecimal; false: it has none. */
static bool build_id(const struct elfrw_image *img, char *ret, size_t size)
{
	uint32_t n = 0;
	const uint8_t *id = elfrw_build_id(img, &n);
	*ret = 0;
	for (uint32_t i = 0; i < n && id && 2 * (size_t)i + 3 <= size; i++)
		snprintf(ret + (size_t)2 * i, 3, "%02x", id[i]);
	return id && n;
}

static bool is_function(const struct icf_unit *u)
{
	return u->kind == ICF_UNIT_FUNC ||
	       (u->kind == ICF_UNIT_OPAQUE && ((u->flags & ICF_UNIT_FUNC_SYMBOL) || u->n_fde));
}

/* Names in a broken file may be suffixes of one string, and each of them long. */
static const char *shown(const char *name, char **cut)
{
	free(*cut);
	*cut = strnlen(name, NAME_MAX_SHOWN) < NAME_MAX_SHOWN ? NULL
							      : strndup(name, NAME_MAX_SHOWN);
	return *cut ? *cut : name;
}

static struct elfrw_err *put_function(const struct icf_rows *r, const struct icf_audit *a,
				      uint32_t i, struct icf_row *row)
{
	const struct icf_program *prog = &a->run.prog;
	const struct icf_unit *u = &prog->unit.data[i];
	struct dwr_sym_source src = { 0 };
	char number[32], *cut[2] = { NULL, NULL };
	if (a->sym)
		ELFRW_TRY(dwr_sym_source(a->sym, u->start, &src));
	row->source_file = src.file;
	row->source_line = src.line;
	row->name = row->linkage_name = NULL;
	if (u->sym != ICF_NONE) {
		const char *linkage = icf_unit_name(prog, i, number);
		row->name = shown(a->sym ? dwr_sym_demangle(a->sym, linkage) : linkage, &cut[0]);
		row->linkage_name = shown(linkage, &cut[1]);
	}
	row->address = u->start;
	row->size = u->end - u->start;
	row->class = prog->unit.data[a->plan[ICF_AUDIT_ALL].cls[i]].start;
	row->reason = icf_why_key(a->unit[i].why[ICF_AUDIT_ALL]);
	icf_rows_put(r, row);
	free(cut[0]);
	free(cut[1]);
	return NULL;
}

/* Marks the units that --gc-functions would remove.  KNOWN: false if that cannot be said. */
static struct elfrw_err *find_unused(struct icf_program *prog, bool *known)
{
	const struct icf_options opt = { .mode = ICF_MODE_NONE,
					 .threads = 1,
					 .gc_functions = ICF_GC_OBJECTS,
					 .strip_debug = true };
	*known = !icf_unused_obstacle(prog, &opt);
	return *known ? icf_find_unused(prog, &opt, NULL) : NULL;
}

struct elfrw_err *icf_rows_put_program(const struct icf_rows *r, struct icf_audit *a,
				       const char *file, const char *package, unsigned threads)
{
	struct icf_program *prog = &a->run.prog;
	char id[129], own[ICF_PACKAGE];
	struct icf_row row = { .file = file, .package = package, .arch = prog->arch->name };
	bool known = false;
	if (build_id(prog->img, id, sizeof id))
		row.build_id = id;
	if (!package && icf_package_of_program(prog->img, own))
		row.package = own;
	struct icf_hash *hash = malloc((prog->unit.len + 1) * sizeof *hash);
	bool *foldable = malloc(prog->unit.len + 1);
	struct elfrw_err *err =
		hash && foldable ? icf_hash_functions(prog, threads, hash) : &elfrw_err_nomem;
	/* The search for what is unused changes the reasons. */
	for (uint32_t i = 0; i < prog->unit.len && !err; i++)
		foldable[i] = prog->unit.data[i].reason == ICF_OK;
	if (!err)
		err = find_unused(prog, &known);
	for (uint32_t i = 0; i < prog->unit.len && !err; i++) {
		const struct icf_unit *u = &prog->unit.data[i];
		if (!is_function(u))
			continue;
		row.hash = hash[i];
		row.foldable = foldable[i];
		row.used = known ? !(u->flags & ICF_UNIT_UNUSED) : -1;
		err = put_function(r, a, i, &row);
	}
	if (!err && a->sym)
		err = dwr_sym_complete(a->sym);
	free(hash);
	free(foldable);
	return err;
}
