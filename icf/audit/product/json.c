/* json.c: the audit of a product for programs: one JSON object, or CSV. */
#include "elfrw/base/printable.h"
#include "icf/audit/product/advice.h"
#include "icf/audit/product/order.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static void put_number(FILE *f, const char *key, uint64_t v)
{
	fprintf(f, ", \"%s\": %" PRIu64, key, v);
}

static void put_string(FILE *f, const char *key, const char *s)
{
	fprintf(f, ", \"%s\": ", key);
	if (s)
		icf_put_json(f, s);
	else
		fputs("null", f);
}

static void put_facts(FILE *f, const struct icf_product_facts *x)
{
	put_number(f, "code_bytes", x->code);
	put_number(f, "text_bytes", x->text);
	put_number(f, "functions", x->functions);
	for (int m = 0; m < ICF_AUDIT_MODES; m++) {
		fprintf(f, ", \"%s\": { \"folded\": %" PRIu32, m == ICF_AUDIT_ALL ? "all" : "safe",
			x->folded[m]);
		put_number(f, "duplicated_bytes", x->duplicated[m]);
		put_number(f, "text_saved", x->saved[m]);
		fputs(" }", f);
	}
	if (x->unused_known) {
		put_number(f, "unused_functions", x->unused_functions);
		put_number(f, "unused_bytes", x->unused);
	} else
		fputs(", \"unused_functions\": null, \"unused_bytes\": null", f);
}

static void put_file(FILE *f, const struct icf_product *p, uint32_t k)
{
	static const char *const state[] = {
		[ICF_FILE_DONE] = "analysed", [ICF_FILE_COPY] = "copy", [ICF_FILE_BAD] = "bad"
	};
	const struct icf_product_file *x = &p->file.data[k];
	fputs("    { \"name\": ", f);
	icf_put_json(f, x->name);
	fprintf(f, ", \"state\": \"%s\"", state[x->state]);
	put_number(f, "size", x->size);
	if (x->state == ICF_FILE_BAD)
		put_string(f, "error", x->why);
	else if (x->state == ICF_FILE_COPY)
		put_string(f, "copy_of", p->file.data[x->copy_of].name);
	else {
		put_string(f, "references", icf_product_level_key(x->facts.level));
		put_string(f, "soname", icf_product_text(p, k, x->facts.soname));
		put_facts(f, &x->facts);
		put_number(f, "shared_functions", x->shared);
		put_number(f, "shared_bytes", x->shared_bytes);
	}
	fputs(" }", f);
}

static void put_files(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	static const enum icf_product_state state[] = { ICF_FILE_DONE, ICF_FILE_COPY,
							ICF_FILE_BAD };
	bool any = false;
	fputs("  \"files\": [", f);
	for (size_t s = 0; s < sizeof state / sizeof *state; s++) {
		uint32_t n;
		uint32_t *id = icf_product_order(p, opt, state[s], &n);
		for (uint32_t k = 0; k < n && id && (!opt->top || k < opt->top); k++) {
			fputs(any ? ",\n" : "\n", f);
			put_file(f, p, id[k]);
			any = true;
		}
		free(id);
	}
	fputs(" ]", f);
}

static void put_advice(FILE *f, const struct icf_product *p)
{
	struct icf_advice a[ICF_ADVICE];
	fputs("  ", f);
	icf_advice_json(f, a, icf_product_advise(p, a));
	fputs(",\n", f);
}

static void put_groups(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	uint32_t n = 0;
	fputs(",\n  \"groups\": [", f);
	for (size_t k = 0; k < p->group.len && (!opt->top || n < opt->top); k++) {
		const struct icf_product_group *g = &p->group.data[k];
		if (!g->match)
			continue;
		fprintf(f, "%s\n    { \"hash\": \"%016" PRIx64 "%016" PRIx64 "\"", n++ ? "," : "",
			g->hash[1], g->hash[0]);
		put_number(f, "saving", g->saving);
		put_number(f, "size", g->size);
		put_number(f, "n_files", g->files);
		put_number(f, "copies", g->count);
		put_string(f, "name", icf_product_name(p, g->name));
		put_string(f, "family", icf_product_name(p, g->key[ICF_DIM_FAMILY]));
		put_string(f, "namespace", icf_product_name(p, g->key[ICF_DIM_NAMESPACE]));
		put_string(f, "library", icf_product_name(p, g->key[ICF_DIM_LIBRARY]));
		put_string(f, "exported_by",
			   g->exporter == ICF_NONE ? NULL : p->file.data[g->exporter].name);
		fputs(", \"functions\": [", f);
		for (uint32_t i = g->member; i < g->member + g->count; i++) {
			const struct icf_product_member *m = &p->member.data[i];
			const struct icf_product_func *x = &icf_product_funcs(p, m->file)[m->func];
			fprintf(f, "%s\n      { \"file\": ", i > g->member ? "," : "");
			icf_put_json(f, p->file.data[m->file].name);
			put_string(f, "symbol", icf_product_text(p, m->file, x->name));
			put_string(f, "source", icf_product_text(p, m->file, x->source));
			put_number(f, "line", x->line);
			fputs(" }", f);
		}
		fputs(" ] }", f);
	}
	fputs(" ]", f);
}

static const char *const by_key[] = { [ICF_BY_FAMILY] = "families",
				      [ICF_BY_NAMESPACE] = "namespaces",
				      [ICF_BY_LIBRARY] = "libraries",
				      [ICF_BY_EXPORTER] = "exporters" };

static const char *row_name(const struct icf_product *p, enum icf_product_by by, uint32_t key)
{
	return by == ICF_BY_EXPORTER ? p->file.data[key].name : icf_product_name(p, key);
}

static struct elfrw_err *put_table(FILE *f, const struct icf_product *p,
				   const struct icf_audit_options *opt, enum icf_product_by by)
{
	icf_product_rows rows = { 0 };
	struct elfrw_err *err = icf_product_table(p, by, &rows);
	fprintf(f, ",\n  \"%s\": [", by_key[by]);
	for (size_t k = 0; k < rows.len && (!opt->top || k < opt->top); k++) {
		const struct icf_product_row *r = &rows.data[k];
		const char *name = row_name(p, by, r->key);
		fprintf(f, "%s\n    { \"saving\": %" PRIu64, k ? "," : "", r->saving);
		put_number(f, "functions", r->groups);
		put_number(f, "copies", r->bodies);
		put_string(f, "name", name);
		fputs(" }", f);
	}
	fputs(" ]", f);
	VEC_FREE(&rows);
	return err;
}

static void put_pairs(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	fprintf(f, ",\n  \"pairs_complete\": %s,\n  \"pairs\": [", p->pairs_cut ? "false" : "true");
	for (size_t k = 0; k < p->pair.len && (!opt->top || k < opt->top); k++) {
		const struct icf_product_pair *x = &p->pair.data[k];
		fprintf(f, "%s\n    { \"bytes\": %" PRIu64, k ? "," : "", x->bytes);
		put_number(f, "functions", x->functions);
		fputs(", \"files\": [", f);
		icf_put_json(f, p->file.data[x->a].name);
		fputs(", ", f);
		icf_put_json(f, p->file.data[x->b].name);
		fputs("] }", f);
	}
	fputs(" ]", f);
}

struct elfrw_err *icf_product_print_json(FILE *f, const struct icf_product *p,
					 const struct icf_audit_options *opt)
{
	fprintf(f, "{\n  \"icfold\": \"" ICF_VERSION "\",\n  \"mode\": \"%s\",\n",
		opt->mode == ICF_AUDIT_ALL ? "all" : "safe");
	fprintf(f, "  \"total\": { \"files\": %" PRIu32, p->done);
	put_number(f, "copies", p->copies);
	put_number(f, "bad", p->bad);
	put_facts(f, &p->total);
	put_number(f, "groups", p->group.len);
	put_number(f, "shared_saving", p->shared_saving);
	fputs(" },\n", f);
	put_advice(f, p);
	put_files(f, p, opt);
	put_groups(f, p, opt);
	for (int by = ICF_BY_FAMILY; by <= ICF_BY_EXPORTER; by++)
		ELFRW_TRY(put_table(f, p, opt, by));
	put_pairs(f, p, opt);
	fputs("\n}\n", f);
	return NULL;
}

/* ---- CSV: RFC 4180 ---- */

static void put_row(FILE *f, const char *table, const char *name, uint64_t functions,
		    const uint64_t number[3])
{
	fprintf(f, "%s,", table);
	icf_audit_put_csv(f, name);
	fprintf(f, ",%" PRIu64, functions);
	for (int k = 0; k < 3; k++)
		fprintf(f, ",%" PRIu64, number[k]);
	fputc('\n', f);
}

static struct elfrw_err *csv_table(FILE *f, const struct icf_product *p,
				   const struct icf_audit_options *opt, enum icf_product_by by)
{
	icf_product_rows rows = { 0 };
	struct elfrw_err *err = icf_product_table(p, by, &rows);
	char table[64];
	snprintf(table, sizeof table, "shared_%s", by_key[by]);
	for (size_t k = 0; k < rows.len && (!opt->top || k < opt->top); k++) {
		const char *name = row_name(p, by, rows.data[k].key);
		put_row(f, table, name ? name : "", rows.data[k].groups,
			(uint64_t[]){ 0, rows.data[k].saving, 0 });
	}
	VEC_FREE(&rows);
	return err;
}

struct elfrw_err *icf_product_print_csv(FILE *f, const struct icf_product *p,
					const struct icf_audit_options *opt)
{
	uint32_t n;
	const struct icf_product_facts *t = &p->total;
	fputs("table,name,functions,bytes,saving_all,saving_safe\n", f);
	put_row(f, "total", "", t->functions, (uint64_t[]){ t->code, t->saved[0], t->saved[1] });
	uint32_t *id = icf_product_order(p, opt, ICF_FILE_DONE, &n);
	for (uint32_t k = 0; k < n && id && (!opt->top || k < opt->top); k++) {
		const struct icf_product_file *x = &p->file.data[id[k]];
		put_row(f, "product_files", x->name, x->facts.functions,
			(uint64_t[]){ x->facts.code, x->facts.saved[0], x->facts.saved[1] });
	}
	for (uint32_t k = 0; k < n && id && (!opt->top || k < opt->top); k++) {
		const struct icf_product_file *x = &p->file.data[id[k]];
		if (x->facts.unused)
			put_row(f, "product_unused", x->name, x->facts.unused_functions,
				(uint64_t[]){ x->facts.unused, 0, 0 });
	}
	free(id);
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *x = &p->file.data[k];
		if (x->state == ICF_FILE_COPY || x->state == ICF_FILE_BAD)
			put_row(f, x->state == ICF_FILE_COPY ? "product_copies" : "product_bad",
				x->name, 0, (uint64_t[]){ x->size, 0, 0 });
	}
	for (size_t k = 0, shown = 0; k < p->group.len && (!opt->top || shown < opt->top); k++) {
		const struct icf_product_group *g = &p->group.data[k];
		if (g->match && ++shown)
			put_row(f, "shared_groups",
				g->name == ICF_NONE ? "" : icf_product_name(p, g->name), g->files,
				(uint64_t[]){ g->size, g->saving, 0 });
	}
	for (int by = ICF_BY_FAMILY; by <= ICF_BY_EXPORTER; by++)
		ELFRW_TRY(csv_table(f, p, opt, by));
	return NULL;
}
