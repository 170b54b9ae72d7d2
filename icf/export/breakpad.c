/* breakpad.c: the text symbol files of Breakpad ("Breakpad Symbol Files", docs/symbol_files.md of
 * that project).
 *
 * Files and names of inlined functions come first in the file, and are known last.  So the records
 * of functions are collected in memory, about as large as the output.  Addresses count from the
 * first segment. */
#include "elfrw/arch/arch.h"
#include "elfrw/base/memstream.h"
#include "elfrw/base/printable.h"
#include "elfrw/note.h"
#include "icf/export/state.h"
#include <inttypes.h>

struct breakpad {
	struct icf_export *x;
	FILE *body, *public; /* records of functions, and of symbols */
	struct icf_strings file, origin;
};

static const char *name_or_none(const char *name)
{
	return name && *name ? name : "<name omitted>";
}

/* ---- the module ---- */

/* The 16 bytes that stand for the file: the start of the build-id or, without one, the first page
 * of .text, folded. */
static void module_id(const struct elfrw_image *img, uint8_t ret[16])
{
	uint32_t n;
	const uint8_t *id = elfrw_build_id(img, &n);
	memset(ret, 0, 16);
	if (id) {
		memcpy(ret, id, n < 16 ? n : 16);
		return;
	}
	const struct elfrw_section *text = elfrw_image_section(img, ".text");
	uint64_t size = text && text->data ? text->hdr.sh_size : 0;
	for (uint64_t i = 0; i < size && i < 4096; i++)
		ret[i % 16] ^= text->data[i];
}

/* The id is printed as a GUID, whose first three numbers are little-endian, and an age of 0. */
static void put_module(struct breakpad *b)
{
	static const uint8_t order[16] = { 3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15 };
	const struct elfrw_image *img = &b->x->code;
	FILE *out = b->x->in->out;
	uint8_t id[16];
	uint32_t n = 0;
	module_id(img, id);
	fprintf(out, "MODULE Linux %s ", img->arch->breakpad);
	for (unsigned i = 0; i < 16; i++)
		fprintf(out, "%02X", id[order[i]]);
	fputs("0 ", out);
	elfrw_put_printable_line(out, b->x->name);
	const uint8_t *full = elfrw_build_id(img, &n);
	if (!full)
		return;
	fputs("INFO CODE_ID ", out);
	for (uint32_t i = 0; i < n; i++)
		fprintf(out, "%02X", full[i]);
	fputc('\n', out);
}

static void put_strings(FILE *out, const char *record, const struct icf_strings *s)
{
	for (uint32_t i = 0; i < s->off.len; i++) {
		fprintf(out, "%s %" PRIu32 " ", record, i);
		elfrw_put_printable_line(out, icf_strings_get(s, i));
	}
}

/* ---- functions ---- */

static struct elfrw_err *file_number(struct breakpad *b, const char *file, uint32_t *ret)
{
	return icf_strings_add(&b->file, file, strlen(file), ret);
}

static struct elfrw_err *put_inlines(struct breakpad *b, const struct icf_export_function *f)
{
	for (size_t i = 0; i < f->in.copy.len; i++) {
		const struct dwr_sym_copy *c = &f->in.copy.data[i];
		const char *name = name_or_none(c->function);
		uint32_t file = 0, origin;
		if (c->call_file)
			ELFRW_TRY(file_number(b, c->call_file, &file));
		else
			ELFRW_TRY(file_number(b, "", &file));
		ELFRW_TRY(icf_strings_add(&b->origin, name, strlen(name), &origin));
		fprintf(b->body, "INLINE %" PRIu32 " %" PRIu32 " %" PRIu32 " %" PRIu32, c->depth,
			c->call_line, file, origin);
		for (uint32_t k = 0; k < c->n; k++) {
			const struct dwr_sym_code *r = &f->in.range.data[c->range + k];
			fprintf(b->body, " %" PRIx64 " %" PRIx64, r->lo - b->x->base,
				r->hi - r->lo);
		}
		fputc('\n', b->body);
	}
	return NULL;
}

/* Rows with one file and line after each other are one record; line 0 is no line. */
static struct elfrw_err *put_lines(struct breakpad *b, const struct icf_export_function *f)
{
	for (size_t i = 0, next; i < f->in.row.len; i = next) {
		const struct dwr_sym_row *r = &f->in.row.data[i];
		uint64_t hi = r->hi;
		uint32_t file;
		for (next = i + 1; next < f->in.row.len; next++) {
			const struct dwr_sym_row *n = &f->in.row.data[next];
			if (n->lo != hi || n->line != r->line || strcmp(n->file, r->file))
				break;
			hi = n->hi;
		}
		if (!r->line)
			continue;
		ELFRW_TRY(file_number(b, r->file, &file));
		fprintf(b->body, "%" PRIx64 " %" PRIx64 " %" PRIu32 " %" PRIu32 "\n",
			r->lo - b->x->base, hi - r->lo, r->line, file);
	}
	return NULL;
}

static struct elfrw_err *put_piece(struct breakpad *b, const struct dwr_sym_piece *p,
				   struct icf_export_function *f)
{
	bool shared = icf_export_group(b->x, p) != NULL;
	b->x->counts->shared += shared;
	ELFRW_TRY(icf_export_function(b->x, p, UINT32_MAX, f));
	b->x->counts->crowded += f->in.crowded;
	if (p->die == DWR_SYM_NO_DIE && !f->in.row.len) {
		fprintf(b->public, "PUBLIC %s%" PRIx64 " 0 ", shared || p->several ? "m " : "",
			p->lo - b->x->base);
		elfrw_put_printable_line(b->public, name_or_none(f->name));
		return NULL;
	}
	fprintf(b->body, "FUNC %s%" PRIx64 " %" PRIx64 " 0 ", shared ? "m " : "",
		p->lo - b->x->base, p->hi - p->lo);
	elfrw_put_printable_line(b->body, name_or_none(f->name));
	ELFRW_TRY(put_inlines(b, f));
	return put_lines(b, f);
}

/* Closes F, a stream in memory, and copies its contents to OUT. */
static struct elfrw_err *copy_out(FILE *f, char **text, const size_t *size, FILE *out)
{
	if (!f)
		return NULL;
	if (!elfrw_memstream_close(f, text))
		return &elfrw_err_nomem;
	if (out)
		fwrite(*text, 1, *size, out);
	return NULL;
}

struct elfrw_err *icf_export_breakpad(struct icf_export *x)
{
	struct breakpad b = { .x = x };
	struct icf_export_function f = { 0 };
	char *body = NULL, *public = NULL;
	size_t body_size, public_size;
	b.body = open_memstream(&body, &body_size);
	b.public = b.body ? open_memstream(&public, &public_size) : NULL;
	struct elfrw_err *err = b.public ? NULL : &elfrw_err_nomem;
	for (size_t i = 0; i < x->pieces.len && !err; i++)
		err = put_piece(&b, &x->pieces.data[i], &f);
	if (!err) {
		put_module(&b);
		put_strings(x->in->out, "FILE", &b.file);
		put_strings(x->in->out, "INLINE_ORIGIN", &b.origin);
	}
	struct elfrw_err *first = copy_out(b.body, &body, &body_size, err ? NULL : x->in->out),
			 *second =
				 copy_out(b.public, &public, &public_size, err ? NULL : x->in->out);
	if (!err)
		err = first ? first : second;
	if (!err)
		err = icf_export_cfi(x);
	free(body);
	free(public);
	icf_strings_deinit(&b.file);
	icf_strings_deinit(&b.origin);
	icf_export_function_deinit(&f);
	return err;
}
