/* json.c: everything that is known of the code, as JSON (the form is in icfold-symbols(1)).  A
 * function is printed as soon as it is read. */
#include "elfrw/arch/arch.h"
#include "elfrw/base/printable.h"
#include "elfrw/note.h"
#include "icf/export/state.h"
#include <inttypes.h>

struct json {
	struct icf_export *x;
	FILE *out;
	struct icf_export_function member; /* reused */
};

/* Puts "KEY": TEXT behind other members; nothing for NULL. */
static void put_text(FILE *out, const char *key, const char *text)
{
	if (!text)
		return;
	fprintf(out, ",\"%s\":", key);
	elfrw_put_json(out, text, "");
}

static void put_number(FILE *out, const char *key, uint64_t number)
{
	if (number)
		fprintf(out, ",\"%s\":%" PRIu64, key, number);
}

static void put_range(FILE *out, uint64_t lo, uint64_t hi)
{
	fprintf(out, "\"address\":\"0x%" PRIx64 "\",\"size\":%" PRIu64, lo, hi - lo);
}

static void put_lines(FILE *out, const struct icf_export_function *f)
{
	fputs(",\"lines\":[", out);
	for (size_t i = 0; i < f->in.row.len; i++) {
		const struct dwr_sym_row *r = &f->in.row.data[i];
		fputs(i ? ",\n  {" : "\n  {", out);
		put_range(out, r->lo, r->hi);
		put_text(out, "file", r->file);
		fprintf(out, ",\"line\":%" PRIu32, r->line);
		put_number(out, "column", r->column);
		put_number(out, "discriminator", r->discriminator);
		fputc('}', out);
	}
	fputc(']', out);
}

static void put_inlines(FILE *out, const struct icf_export_function *f)
{
	fputs(",\"inlines\":[", out);
	for (size_t i = 0; i < f->in.copy.len; i++) {
		const struct dwr_sym_copy *c = &f->in.copy.data[i];
		fprintf(out, "%s\n  {\"depth\":%" PRIu32, i ? "," : "", c->depth);
		put_text(out, "name", c->function);
		put_text(out, "linkage_name", c->linkage);
		put_text(out, "file", c->start_file);
		put_number(out, "line", c->start_line);
		put_text(out, "call_file", c->call_file);
		put_number(out, "call_line", c->call_line);
		put_number(out, "call_column", c->call_column);
		fputs(",\"ranges\":[", out);
		for (uint32_t k = 0; k < c->n; k++) {
			const struct dwr_sym_code *r = &f->in.range.data[c->range + k];
			fputs(k ? ",{" : "{", out);
			put_range(out, r->lo, r->hi);
			fputc('}', out);
		}
		fputs("]}", out);
	}
	fputc(']', out);
}

static void put_calls(const struct json *j, const struct icf_export_function *f)
{
	const struct icf_export *x = j->x;
	bool some = false;
	fputs(",\"calls\":[", j->out);
	for (size_t i = icf_export_calls_of(x, f);
	     i < x->call.len && x->call.data[i].site <= f->piece->hi; i++) {
		const struct icf_export_call *c = &x->call.data[i];
		if (!icf_export_call_of(x, i, f))
			continue;
		fprintf(j->out, "%s\n  {\"return_address\":\"0x%" PRIx64 "\"", some ? "," : "",
			c->site);
		some = true;
		if (c->slot != UINT64_MAX)
			fprintf(j->out, ",\"slot\":%" PRIu64, c->slot);
		fputs(",\"callees\":[", j->out);
		for (uint32_t k = 0; k < c->n; k++) {
			if (k)
				fputc(',', j->out);
			elfrw_put_json(j->out, x->callee.data[c->first + k], "");
		}
		fputs("]}", j->out);
	}
	fputc(']', j->out);
}

/* What an object says of a function, behind its first member. */
static void put_function(const struct json *j, const struct icf_export_function *f)
{
	put_text(j->out, "name", f->name);
	put_text(j->out, "linkage_name", f->linkage);
	put_text(j->out, "file", f->file);
	put_number(j->out, "line", f->line);
}

static void put_insides(const struct json *j, const struct icf_export_function *f)
{
	put_lines(j->out, f);
	put_inlines(j->out, f);
	put_calls(j, f);
}

/* A function of a group: where it was, and all its names. */
static struct elfrw_err *put_member(struct json *j, const struct dwr_sym_piece *piece,
				    uint32_t member, bool kept)
{
	const struct dwr_icfold *n = j->x->note;
	const struct dwr_icfold_member *m = &n->member[member];
	const struct elfrw_addrmap_unit *u = &n->map.unit[m->unit];
	fprintf(j->out,
		"{\"kept\":%s,\"original_address\":\"0x%" PRIx64 "\",\"original_size\":%" PRIu64,
		kept ? "true" : "false", u->old, u->old_end - u->old);
	if (u->flags & ELFRW_UNIT_THUNK)
		fprintf(j->out, ",\"thunk\":\"0x%" PRIx64 "\"", u->entry);
	fputs(",\"symbols\":[", j->out);
	for (uint32_t i = 0; i < m->n_names; i++) {
		if (i)
			fputc(',', j->out);
		elfrw_put_json(j->out, n->names[m->name + i], "");
	}
	fputc(']', j->out);
	if (!kept) {
		ELFRW_TRY(icf_export_function(j->x, piece, member, &j->member));
		j->x->counts->crowded += j->member.in.crowded;
		put_function(j, &j->member);
		put_insides(j, &j->member);
	}
	fputc('}', j->out);
	return NULL;
}

static struct elfrw_err *put_piece(struct json *j, const struct dwr_sym_piece *piece,
				   struct icf_export_function *f)
{
	const struct dwr_icfold_group *group = icf_export_group(j->x, piece);
	j->x->counts->shared += group != NULL;
	ELFRW_TRY(icf_export_function(j->x, piece, UINT32_MAX, f));
	j->x->counts->crowded += f->in.crowded;
	if (group)
		f->member = group->member;
	fputs("\n {", j->out);
	put_range(j->out, piece->lo, piece->hi);
	put_function(j, f);
	fprintf(j->out, ",\"debug_info\":%s", piece->die == DWR_SYM_NO_DIE ? "false" : "true");
	put_insides(j, f);
	fputs(",\"members\":[", j->out);
	for (uint32_t k = 0; group && k < group->n_members; k++) {
		fputs(k ? ",\n  " : "\n  ", j->out);
		ELFRW_TRY(put_member(j, piece, group->member + k, !k));
	}
	fputs("]}", j->out);
	return NULL;
}

static void put_module(const struct json *j)
{
	const struct elfrw_image *img = &j->x->code;
	uint32_t n = 0;
	const uint8_t *id = elfrw_build_id(img, &n);
	fputs("{\"version\":1,\n\"module\":{\"name\":", j->out);
	elfrw_put_json(j->out, j->x->name, "");
	put_text(j->out, "machine", img->arch->name);
	fprintf(j->out, ",\"base\":\"0x%" PRIx64 "\",\"folded\":%s,\"build_id\":\"", j->x->base,
		j->x->note ? "true" : "false");
	for (uint32_t i = 0; id && i < n; i++)
		fprintf(j->out, "%02x", id[i]);
	fputs("\"},\n\"functions\":[", j->out);
}

struct elfrw_err *icf_export_json(struct icf_export *x)
{
	struct json j = { .x = x, .out = x->in->out };
	struct icf_export_function f = { 0 };
	struct elfrw_err *err = icf_export_read_calls(x);
	if (err)
		return err;
	put_module(&j);
	for (size_t i = 0; i < x->pieces.len && !err; i++) {
		if (i)
			fputc(',', j.out);
		err = put_piece(&j, &x->pieces.data[i], &f);
	}
	fputs("\n]}\n", j.out);
	icf_export_function_deinit(&f);
	icf_export_function_deinit(&j.member);
	return err;
}
