/* json.c: the audit of a product for programs: one JSON object, or CSV. */
#include "elfrw/base/printable.h"
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

void icf_product_print_json(FILE *f, const struct icf_product *p,
			    const struct icf_audit_options *opt)
{
	fprintf(f, "{\n  \"icfold\": \"" ICF_VERSION "\",\n  \"mode\": \"%s\",\n",
		opt->mode == ICF_AUDIT_ALL ? "all" : "safe");
	fprintf(f, "  \"total\": { \"files\": %" PRIu32, p->done);
	put_number(f, "copies", p->copies);
	put_number(f, "bad", p->bad);
	put_facts(f, &p->total);
	fputs(" },\n", f);
	put_files(f, p, opt);
	fputs("\n}\n", f);
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

void icf_product_print_csv(FILE *f, const struct icf_product *p,
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
}
