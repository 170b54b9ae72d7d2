/* json.c: the audit for programs: one JSON object, or CSV with one row for each row of each table.
 *
 * Names may hold any bytes.  icf_put_json() writes them so that the same text works in a page. */
#include "elfrw/base/printable.h"
#include "icf/audit/audit.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <string.h>

void icf_put_json(FILE *f, const char *text)
{
	elfrw_put_json(f, text, ELFRW_JSON_PAGE);
}

static void put_pool(FILE *f, const struct icf_audit *a, uint32_t key)
{
	if (key == ICF_NONE)
		fputs("null", f);
	else
		icf_put_json(f, icf_pool_text(&a->pool, key));
}

/* A member of an object, but not the first. */
static void put_number(FILE *f, const char *key, uint64_t v)
{
	fprintf(f, ", \"%s\": %" PRIu64, key, v);
}

static void put_totals(FILE *f, const struct icf_audit *a, int m)
{
	const struct icf_audit_totals *t = &a->total[m];
	fprintf(f, "  \"%s\": { \"folded\": %" PRIu32, m == ICF_AUDIT_ALL ? "all" : "safe",
		t->folded);
	put_number(f, "thunks", t->thunks);
	put_number(f, "groups", t->groups);
	put_number(f, "duplicated_bytes", t->duplicated);
	put_number(f, "thunk_bytes", t->thunk_bytes);
	put_number(f, "text_after", t->text_after);
	put_number(f, "text_saved", a->text - t->text_after);
	fputs(" },\n", f);
}

static void put_groups(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt)
{
	char number[32];
	fputs("  \"groups\": [", f);
	for (size_t k = 0; k < a->group.len && (!opt->top || k < opt->top); k++) {
		const struct icf_audit_group *g = &a->group.data[k];
		fprintf(f, "%s\n    { \"saving\": %" PRIu64, k ? "," : "", g->saving[opt->mode]);
		put_number(f, "saving_all", g->saving[ICF_AUDIT_ALL]);
		put_number(f, "saving_safe", g->saving[ICF_AUDIT_SAFE]);
		put_number(f, "count", g->count);
		put_number(f, "size", g->size);
		fputs(",\n", f);
		fputs("      \"name\": ", f);
		icf_put_json(f, icf_audit_name(a, g->keeper));
		fputs(", \"members\": [", f);
		for (uint32_t i = g->member; i < g->member + g->count; i++) {
			uint32_t u = a->member.data[i];
			fprintf(f,
				"%s\n        { \"address\": \"0x%" PRIx64
				"\", \"kept\": %s, \"symbol\": ",
				i > g->member ? "," : "", a->run.prog.unit.data[u].start,
				u == g->keeper ? "true" : "false");
			icf_put_json(f, icf_unit_name(&a->run.prog, u, number));
			fputs(", \"name\": ", f);
			icf_put_json(f, icf_audit_name(a, u));
			fputs(", \"file\": ", f);
			put_pool(f, a, a->unit[u].key[ICF_DIM_FILE]);
			fputs(", \"unit\": ", f);
			put_pool(f, a, a->unit[u].key[ICF_DIM_UNIT]);
			fputs(" }", f);
		}
		fputs(" ] }", f);
	}
	fputs(" ],\n", f);
}

static struct elfrw_err *put_table(FILE *f, const struct icf_audit *a,
				   const struct icf_audit_options *opt, enum icf_dimension dim)
{
	icf_audit_rows rows = { 0 };
	ELFRW_TRY(icf_audit_table(a, opt, dim, &rows));
	fprintf(f, "  \"%s\": [", icf_dimension_key(dim));
	uint32_t n = 0;
	for (size_t k = 0; k < rows.len && (!opt->top || n < opt->top); k++) {
		const struct icf_audit_row *r = &rows.data[k];
		if (!r->saving[0] && !r->saving[1])
			continue;
		fprintf(f, "%s\n    { \"name\": ", n++ ? "," : "");
		put_pool(f, a, r->key);
		put_number(f, "functions", r->count);
		put_number(f, "folded", r->folded);
		put_number(f, "bytes", r->bytes);
		put_number(f, "saving_all", r->saving[ICF_AUDIT_ALL]);
		put_number(f, "saving_safe", r->saving[ICF_AUDIT_SAFE]);
		fputs(" }", f);
	}
	fputs(" ],\n", f);
	VEC_FREE(&rows);
	return NULL;
}

static void put_reasons(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt)
{
	struct icf_audit_reason r[ICF_N_WHYS];
	unsigned n = icf_audit_reasons(a, opt, r);
	fputs("  \"reasons\": [", f);
	for (unsigned k = 0; k < n; k++) {
		fprintf(f, "%s\n    { \"reason\": \"%s\", \"text\": ", k ? "," : "",
			icf_why_key(r[k].why));
		icf_put_json(f, icf_why_text(r[k].why));
		put_number(f, "functions_all", r[k].count[ICF_AUDIT_ALL]);
		put_number(f, "bytes_all", r[k].bytes[ICF_AUDIT_ALL]);
		put_number(f, "functions_safe", r[k].count[ICF_AUDIT_SAFE]);
		put_number(f, "bytes_safe", r[k].bytes[ICF_AUDIT_SAFE]);
		fputs(" }", f);
	}
	fputs(" ],\n", f);
}

static void put_near(FILE *f, const struct icf_audit *a)
{
	fprintf(f, "  \"n_near_misses\": %" PRIu32 ",\n  \"near_misses\": [", a->n_near);
	for (size_t k = 0; k < a->near.len; k++) {
		const struct icf_audit_near *n = &a->near.data[k];
		fprintf(f, "%s\n    { \"kind\": \"%s\"", k ? "," : "", icf_near_kind_text(n->kind));
		put_number(f, "saving", n->saving);
		put_number(f, "count", n->count);
		put_number(f, "size", n->size);
		put_number(f, "offset", n->off);
		put_number(f, "places", n->places);
		fputs(", \"members\": [", f);
		for (uint32_t i = n->member; i < n->member + n->count; i++) {
			const struct icf_audit_near_member *m = &a->near_member.data[i];
			fprintf(f, "%s\n        { \"name\": ", i > n->member ? "," : "");
			icf_put_json(f, icf_audit_name(a, m->unit));
			fputs(", \"value\": ", f);
			icf_put_json(f, icf_pool_text(&a->pool, m->text));
			fputs(" }", f);
		}
		fputs(" ] }", f);
	}
	fputs(" ],\n", f);
}

static void put_after(FILE *f, const char *key, uint64_t before, uint64_t after)
{
	fprintf(f, ",\n    \"%s\": { \"text_after\": %" PRIu64, key, after);
	put_number(f, "text_saved", before - after);
	fputs(" }", f);
}

static struct elfrw_err *put_unused_table(FILE *f, const struct icf_audit *a,
					  const struct icf_audit_options *opt,
					  enum icf_dimension dim)
{
	icf_audit_rows rows = { 0 };
	struct elfrw_err *err = icf_audit_unused_table(a, opt, dim, &rows);
	fprintf(f, ",\n    \"%s\": [", icf_dimension_key(dim));
	for (size_t k = 0; k < rows.len && (!opt->top || k < opt->top); k++) {
		const struct icf_audit_row *r = &rows.data[k];
		fprintf(f, "%s\n      { \"name\": ", k ? "," : "");
		put_pool(f, a, r->key);
		put_number(f, "unused_functions", r->unused);
		put_number(f, "unused_bytes", r->unused_bytes);
		put_number(f, "functions", r->count);
		put_number(f, "bytes", r->bytes);
		fputs(" }", f);
	}
	fputs(" ]", f);
	VEC_FREE(&rows);
	return err;
}

static struct elfrw_err *put_unused_list(FILE *f, const struct icf_audit *a,
					 const struct icf_audit_options *opt)
{
	icf_audit_units list = { 0 };
	char number[32];
	struct elfrw_err *err = icf_audit_unused_list(a, opt, &list);
	fputs(",\n    \"list\": [", f);
	for (size_t k = 0; k < list.len && (!opt->top || k < opt->top); k++) {
		uint32_t i = list.data[k];
		fprintf(f,
			"%s\n      { \"bytes\": %" PRIu64 ", \"address\": \"0x%" PRIx64
			"\", \"symbol\": ",
			k ? "," : "", icf_audit_size(a, i), a->run.prog.unit.data[i].start);
		icf_put_json(f, icf_unit_name(&a->run.prog, i, number));
		fputs(", \"name\": ", f);
		icf_put_json(f, icf_audit_name(a, i));
		fputs(", \"file\": ", f);
		put_pool(f, a, a->unit[i].key[ICF_DIM_FILE]);
		fputs(", \"unit\": ", f);
		put_pool(f, a, a->unit[i].key[ICF_DIM_UNIT]);
		fputs(" }", f);
	}
	fputs(" ]", f);
	VEC_FREE(&list);
	return err;
}

static struct elfrw_err *put_unused(FILE *f, const struct icf_audit *a,
				    const struct icf_audit_options *opt)
{
	const struct icf_audit_unused *u = &a->unused;
	fputs("  \"never_used\": { \"obstacle\": ", f);
	if (u->obstacle) {
		icf_put_json(f, u->obstacle);
		fputs(" }\n", f);
		return NULL;
	}
	fputs("null", f);
	put_number(f, "functions", u->functions);
	put_number(f, "bytes", u->bytes);
	put_after(f, "alone", a->text, u->alone);
	put_after(f, "all", a->text, u->with[ICF_AUDIT_ALL]);
	put_after(f, "safe", a->text, u->with[ICF_AUDIT_SAFE]);
	for (int d = 0; d < ICF_N_DIMS; d++)
		ELFRW_TRY(put_unused_table(f, a, opt, d));
	ELFRW_TRY(put_unused_list(f, a, opt));
	fputs(" }\n", f);
	return NULL;
}

static void put_advice(FILE *f, const struct icf_audit *a)
{
	struct icf_advice x[ICF_ADVICE];
	fputs("  ", f);
	icf_advice_json(f, x, icf_audit_advise(a, x));
	fputs(",\n", f);
}

struct elfrw_err *icf_audit_print_json(FILE *f, const struct icf_audit *a,
				       const struct icf_audit_options *opt)
{
	fputs("{\n  \"icfold\": \"" ICF_VERSION "\",\n  \"file\": ", f);
	icf_put_json(f, a->run.img.path);
	fprintf(f, ",\n  \"mode\": \"%s\",\n", opt->mode == ICF_AUDIT_ALL ? "all" : "safe");
	fprintf(f, "  \"references\": \"%s\",\n",
		a->run.prog.inferred ? "inferred" : "relocations");
	fprintf(f, "  \"in_place\": %s,\n", a->in_place ? "true" : "false");
	fprintf(f, "  \"names\": \"%s\",\n", a->by_address ? "addresses" : "symbols");
	fprintf(f,
		"  \"sources\": { \"debug_information\": %" PRIu32 ", \"file_symbols\": %" PRIu32
		", \"root\": ",
		a->from_debug, a->from_symbols);
	if (a->root)
		icf_put_json(f, a->root);
	else
		fputs("null", f);
	fputs(" },\n  \"filter\": ", f);
	if (opt->filter)
		icf_put_json(f, opt->filter);
	else
		fputs("null", f);
	fprintf(f, ",\n  \"functions\": %" PRIu32 ",\n  \"matching\": %" PRIu32 ",\n", a->functions,
		a->n_match);
	fprintf(f, "  \"code_bytes\": %" PRIu64 ",\n  \"text_bytes\": %" PRIu64 ",\n", a->code,
		a->text);
	for (int m = 0; m < ICF_AUDIT_MODES; m++)
		put_totals(f, a, m);
	put_advice(f, a);
	fprintf(f, "  \"n_groups\": %zu,\n", a->group.len);
	put_groups(f, a, opt);
	for (int d = 0; d < ICF_N_DIMS; d++)
		ELFRW_TRY(put_table(f, a, opt, d));
	put_reasons(f, a, opt);
	put_near(f, a);
	ELFRW_TRY(put_unused(f, a, opt));
	fputs("}\n", f);
	return NULL;
}

/* ---- CSV: RFC 4180 ---- */

void icf_audit_put_csv(FILE *f, const char *s)
{
	if (!strpbrk(s, ",\"\r\n")) {
		elfrw_put_printable(f, s);
		return;
	}
	fputc('"', f);
	for (size_t n; *s; s += n + (s[n] == '"')) {
		n = strcspn(s, "\"");
		elfrw_put_printable_n(f, s, n);
		fputs(s[n] ? "\"\"" : "", f);
	}
	fputc('"', f);
}

struct csv_row {
	const char *table, *name;
	uint64_t functions, bytes, all, safe;
};

static void put_row(FILE *f, struct csv_row r)
{
	fprintf(f, "%s,", r.table);
	icf_audit_put_csv(f, r.name);
	fprintf(f, ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "\n", r.functions, r.bytes,
		r.all, r.safe);
}

static struct elfrw_err *csv_unused(FILE *f, const struct icf_audit *a,
				    const struct icf_audit_options *opt)
{
	const struct icf_audit_unused *u = &a->unused;
	char key[64];
	if (u->obstacle)
		return NULL;
	put_row(f, (struct csv_row){ "unused", a->run.img.path, u->functions, u->bytes,
				     a->text - u->with[ICF_AUDIT_ALL],
				     a->text - u->with[ICF_AUDIT_SAFE] });
	for (int d = 0; d < ICF_N_DIMS; d++) {
		icf_audit_rows rows = { 0 };
		struct elfrw_err *err = icf_audit_unused_table(a, opt, d, &rows);
		snprintf(key, sizeof key, "unused_%s", icf_dimension_key(d));
		for (size_t k = 0; k < rows.len && (!opt->top || k < opt->top); k++) {
			const struct icf_audit_row *r = &rows.data[k];
			put_row(f, (struct csv_row){ key,
						     r->key == ICF_NONE
							     ? ""
							     : icf_pool_text(&a->pool, r->key),
						     r->unused, r->unused_bytes, 0, 0 });
		}
		VEC_FREE(&rows);
		if (err)
			return err;
	}
	icf_audit_units list = { 0 };
	struct elfrw_err *err = icf_audit_unused_list(a, opt, &list);
	for (size_t k = 0; k < list.len && (!opt->top || k < opt->top); k++)
		put_row(f, (struct csv_row){ "unused_list", icf_audit_name(a, list.data[k]), 1,
					     icf_audit_size(a, list.data[k]), 0, 0 });
	VEC_FREE(&list);
	return err;
}

struct elfrw_err *icf_audit_print_csv(FILE *f, const struct icf_audit *a,
				      const struct icf_audit_options *opt)
{
	fputs("table,name,functions,bytes,saving_all,saving_safe\n", f);
	put_row(f, (struct csv_row){ "total", a->run.img.path, a->functions, a->text,
				     a->text - a->total[ICF_AUDIT_ALL].text_after,
				     a->text - a->total[ICF_AUDIT_SAFE].text_after });
	for (size_t k = 0; k < a->group.len && (!opt->top || k < opt->top); k++) {
		const struct icf_audit_group *g = &a->group.data[k];
		put_row(f,
			(struct csv_row){ "groups", icf_audit_name(a, g->keeper), g->count, g->size,
					  g->saving[ICF_AUDIT_ALL], g->saving[ICF_AUDIT_SAFE] });
	}
	for (int d = 0; d < ICF_N_DIMS; d++) {
		icf_audit_rows rows = { 0 };
		ELFRW_TRY(icf_audit_table(a, opt, d, &rows));
		uint32_t n = 0;
		for (size_t k = 0; k < rows.len && (!opt->top || n < opt->top); k++) {
			const struct icf_audit_row *r = &rows.data[k];
			if (!r->saving[0] && !r->saving[1])
				continue;
			n++;
			put_row(f, (struct csv_row){ icf_dimension_key(d),
						     r->key == ICF_NONE
							     ? ""
							     : icf_pool_text(&a->pool, r->key),
						     r->count, r->bytes, r->saving[ICF_AUDIT_ALL],
						     r->saving[ICF_AUDIT_SAFE] });
		}
		VEC_FREE(&rows);
	}
	struct icf_audit_reason why[ICF_N_WHYS];
	unsigned n = icf_audit_reasons(a, opt, why);
	for (int m = 0; m < ICF_AUDIT_MODES; m++)
		for (unsigned k = 0; k < n; k++)
			if (why[k].count[m])
				put_row(f,
					(struct csv_row){ m == ICF_AUDIT_ALL ? "reasons_all"
									     : "reasons_safe",
							  icf_why_key(why[k].why), why[k].count[m],
							  why[k].bytes[m], 0, 0 });
	for (size_t k = 0; k < a->near.len; k++) {
		const struct icf_audit_near *x = &a->near.data[k];
		put_row(f, (struct csv_row){ "near_misses",
					     icf_audit_name(a, a->near_member.data[x->member].unit),
					     x->count, x->size, x->saving, 0 });
	}
	return csv_unused(f, a, opt);
}
