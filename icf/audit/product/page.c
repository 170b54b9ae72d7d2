/* page.c: the audit of a product as one page for a web browser.
 *
 * The page's style, body and script are in icf/audit/page/; the data goes between them as JSON.
 * Files and functions are numbers, rows are arrays, and long lists are cut, so that the page of a
 * thousand files stays below 5 MB. */
#include "icf/audit/page.h"
#include "icf/audit/name.h"
#include "icf/audit/product/advice.h"
#include "icf/audit/product/order.h"
#include "icf/cli/version.h"
#include <inttypes.h>
#include <string.h>

#define MAX_GROUPS 3000
#define MAX_FILES  24 /* of a group */
#define MAX_ROWS   400
#define MAX_LINES  5000 /* files that were not analysed */
#define COLUMNS    160

struct page {
	const struct icf_product *p;
	const struct icf_audit_options *opt;
};

static void put_brief(FILE *f, const char *name)
{
	char buf[1024];
	struct icf_name parts;
	if (!name) {
		fputs("\"\"", f);
		return;
	}
	icf_name_parse(&parts, name);
	icf_name_brief(&parts, COLUMNS, buf, sizeof buf);
	icf_put_json(f, buf);
}

static void put_totals(FILE *f, const struct icf_product *p)
{
	const struct icf_product_facts *t = &p->total;
	fprintf(f, ",\"total\":{\"files\":%" PRIu32 ",\"copies\":%" PRIu32 ",\"bad\":%" PRIu32,
		p->done, p->copies, p->bad);
	fprintf(f, ",\"functions\":%" PRIu32 ",\"code\":%" PRIu64 ",\"text\":%" PRIu64,
		t->functions, t->code, t->text);
	fprintf(f, ",\"saved\":[%" PRIu64 ",%" PRIu64 "],\"twice\":[%" PRIu64 ",%" PRIu64 "]",
		t->saved[0], t->saved[1], t->duplicated[0], t->duplicated[1]);
	fprintf(f,
		",\"unused\":%" PRIu64 ",\"unused_known\":%s,\"groups\":%zu,\"shared\":%" PRIu64
		"}",
		t->unused, t->unused_known ? "true" : "false", p->group.len, p->shared_saving);
}

static void put_advice(FILE *f, const struct icf_product *p)
{
	struct icf_advice a[ICF_ADVICE];
	fputc(',', f);
	icf_advice_json(f, a, icf_product_advise(p, a));
}

/* All files, so that their numbers are those of the product. */
static void put_files(FILE *f, const struct icf_product *p)
{
	uint32_t lines = 0;
	fputs(",\"files\":[", f);
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *x = &p->file.data[k];
		const struct icf_product_facts *t = &x->facts;
		fputs(k ? ",\n" : "\n", f);
		if (x->state == ICF_FILE_ARCHIVE ||
		    (x->state != ICF_FILE_DONE && lines++ >= MAX_LINES)) {
			fputs("[]", f);
			continue;
		}
		fprintf(f, "[%u,", x->state);
		icf_put_json(f, x->name);
		if (x->state == ICF_FILE_BAD) {
			fputc(',', f);
			icf_put_json(f, x->why ? x->why : "");
		} else if (x->state == ICF_FILE_COPY)
			fprintf(f, ",%" PRIu32, x->copy_of);
		else
			fprintf(f,
				",%" PRIu64 ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64
				",%" PRIu64 ",%" PRId64 ",%" PRIu64 ",%u",
				t->code, t->functions, t->saved[0], t->saved[1], t->duplicated[0],
				t->duplicated[1], t->unused_known ? (int64_t)t->unused : -1,
				x->shared_bytes, t->level);
		fputc(']', f);
	}
	fputc(']', f);
}

static void put_groups(FILE *f, const struct icf_product *p)
{
	uint32_t n = 0, all = 0;
	fputs(",\"groups\":[", f);
	for (size_t k = 0; k < p->group.len; k++) {
		const struct icf_product_group *g = &p->group.data[k];
		uint32_t last = ICF_NONE, shown = 0;
		all += g->match;
		if (!g->match || n >= MAX_GROUPS)
			continue;
		fprintf(f, "%s[%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu64 ",",
			n++ ? ",\n" : "\n", g->saving, g->files, g->count, g->size);
		put_brief(f, icf_product_name(p, g->name));
		fprintf(f, ",%" PRId64 ",[", g->exporter == ICF_NONE ? -1 : (int64_t)g->exporter);
		for (uint32_t i = g->member; i < g->member + g->count && shown < MAX_FILES; i++) {
			uint32_t file = p->member.data[i].file;
			if (file == last)
				continue;
			fprintf(f, "%s%" PRIu32, shown++ ? "," : "", file);
			last = file;
		}
		fputs("]]", f);
	}
	fprintf(f, "],\"matching\":%" PRIu32, all);
}

static struct elfrw_err *put_tables(FILE *f, const struct icf_product *p)
{
	static const char *const key[] = { [ICF_BY_FAMILY] = "families",
					   [ICF_BY_NAMESPACE] = "namespaces",
					   [ICF_BY_LIBRARY] = "libraries",
					   [ICF_BY_EXPORTER] = "exporters" };
	struct elfrw_err *err = NULL;
	for (int by = ICF_BY_FAMILY; by <= ICF_BY_EXPORTER && !err; by++) {
		icf_product_rows rows = { 0 };
		err = icf_product_table(p, by, &rows);
		fprintf(f, ",\"%s\":[", key[by]);
		for (size_t k = 0; k < rows.len && k < MAX_ROWS; k++) {
			const struct icf_product_row *r = &rows.data[k];
			fprintf(f, "%s[%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",", k ? "," : "",
				r->saving, r->groups, r->bodies);
			if (by == ICF_BY_EXPORTER)
				icf_put_json(f, p->file.data[r->key].name);
			else
				put_brief(f, icf_product_name(p, r->key));
			fputc(']', f);
		}
		fputc(']', f);
		VEC_FREE(&rows);
	}
	return err;
}

static struct elfrw_err *put_data(FILE *f, void *ctx)
{
	const struct page *page = ctx;
	const struct icf_product *p = page->p;
	fprintf(f, "{\"version\":\"" ICF_VERSION "\",\"mode\":\"%s\",\"filter\":",
		page->opt->mode == ICF_AUDIT_ALL ? "all" : "safe");
	icf_put_json(f, page->opt->filter ? page->opt->filter : "");
	put_totals(f, p);
	put_advice(f, p);
	put_files(f, p);
	put_groups(f, p);
	ELFRW_TRY(put_tables(f, p));
	fprintf(f, ",\"pairs_cut\":%s,\"pairs\":[", p->pairs_cut ? "true" : "false");
	for (size_t k = 0; k < p->pair.len; k++)
		fprintf(f, "%s[%" PRIu64 ",%" PRIu32 ",%" PRIu32 ",%" PRIu32 "]", k ? "," : "",
			p->pair.data[k].bytes, p->pair.data[k].functions, p->pair.data[k].a,
			p->pair.data[k].b);
	fputs("]}", f);
	return NULL;
}

struct elfrw_err *icf_product_write_html(const char *path, const struct icf_product *p,
					 const struct icf_audit_options *opt)
{
	char title[64];
	struct page data = { p, opt };
	snprintf(title, sizeof title, "%" PRIu32 " files", p->done);
	const struct icf_page page = { .title = title,
				       .body = icf_page_product_body,
				       .script = icf_page_product_script,
				       .put_data = put_data,
				       .ctx = &data };
	return icf_page_write(path, &page);
}
