/* text.c: the audit of a product as tables for people. */
#include "elfrw/base/printable.h"
#include "icf/audit/name.h"
#include "icf/audit/product/advice.h"
#include "icf/audit/product/order.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_totals(FILE *f, const struct icf_product *p)
{
	const struct icf_product_facts *t = &p->total;
	fprintf(f, "%" PRIu32 " files, %" PRIu32 " functions, %" PRIu64 " bytes of code", p->done,
		t->functions, t->code);
	if (p->copies)
		fprintf(f, "; %" PRIu32 " copies", p->copies);
	if (p->bad)
		fprintf(f, "; %" PRIu32 " not analysed", p->bad);
	fprintf(f, "\n\n%-28s %20s %20s\n", "", "--icf=all", "--icf=safe");
	fprintf(f, "%-28s %20" PRIu32 " %20" PRIu32 "\n", "functions folded", t->folded[0],
		t->folded[1]);
	fprintf(f, "%-28s %20" PRIu64 " %20" PRIu64 "\n", "duplicated bytes", t->duplicated[0],
		t->duplicated[1]);
	fprintf(f, "%-28s %20" PRIu64 " %20" PRIu64 "\n", ".text saved", t->saved[0], t->saved[1]);
	fprintf(f, "%-28s %18.2f %% %18.2f %%\n", "", percent(t->saved[0], t->text),
		percent(t->saved[1], t->text));
	fprintf(f, "%-28s %20" PRIu64 "   at best, by one copy of %zu functions\n",
		"in several files, bytes", p->shared_saving, p->group.len);
	if (t->unused_known)
		fprintf(f, "%-28s %20" PRIu64 "   in %" PRIu32 " functions\n", "never used, bytes",
			t->unused, t->unused_functions);
}

static void print_advice(FILE *f, const struct icf_product *p)
{
	struct icf_advice a[ICF_ADVICE];
	icf_advice_text(f, a, icf_product_advise(p, a));
}

static void print_files(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	uint32_t n;
	uint32_t *id = icf_product_order(p, opt, ICF_FILE_DONE, &n);
	int m = opt->mode;
	fprintf(f, "\nFiles: %" PRIu32 "\n%10s %8s %10s %9s %9s %9s %9s %-11s   %s\n", n, "saving",
		m == ICF_AUDIT_ALL ? "safe" : "all", "code", "functions", "twice", "unused",
		"shared", "references", "file");
	for (uint32_t k = 0; k < n && id && (!opt->top || k < opt->top); k++) {
		const struct icf_product_file *x = &p->file.data[id[k]];
		char unused[24];
		snprintf(unused, sizeof unused, "%" PRIu64, x->facts.unused);
		fprintf(f,
			"%10" PRIu64 " %8" PRIu64 " %10" PRIu64 " %9" PRIu32 " %9" PRIu64
			" %9s %9" PRIu64 " %-11s   ",
			x->facts.saved[m], x->facts.saved[!m], x->facts.code, x->facts.functions,
			x->facts.duplicated[m], x->facts.unused_known ? unused : "?",
			x->shared_bytes, icf_product_level_key(x->facts.level));
		elfrw_put_printable_line(f, x->name);
	}
	if (opt->top && n > opt->top)
		fprintf(f, "%82s   %" PRIu32 " more\n", "", n - opt->top);
	free(id);
}

#define NAME_COLUMNS 96
#define SHOWN_FILES  4

/* The files of a group. */
static void print_members(FILE *f, const struct icf_product *p, const struct icf_product_group *g,
			  const struct icf_audit_options *opt)
{
	uint32_t shown = 0, last = ICF_NONE;
	for (uint32_t k = g->member; k < g->member + g->count; k++) {
		uint32_t file = p->member.data[k].file;
		if (file == last || (!opt->full_names && shown >= SHOWN_FILES))
			continue;
		last = file;
		fprintf(f, "%40s", shown++ ? "" : "in ");
		elfrw_put_printable_line(f, p->file.data[file].name);
	}
	if (shown < g->files)
		fprintf(f, "%40s%" PRIu32 " more\n", "", g->files - shown);
}

static void print_groups(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	uint32_t n = 0, more = 0;
	uint64_t rest = 0;
	for (size_t k = 0; k < p->group.len; k++)
		n += p->group.data[k].match;
	fprintf(f, "\nFunctions in several files: %" PRIu32 "\n", n);
	if (n)
		fprintf(f, "%10s %7s %7s %8s   %s\n", "at best", "files", "copies", "size",
			"function");
	n = 0;
	for (size_t k = 0; k < p->group.len; k++) {
		const struct icf_product_group *g = &p->group.data[k];
		const char *name =
			g->name == ICF_NONE ? "(no name)" : icf_pool_text(&p->pool, g->name);
		char buf[1024];
		struct icf_name parts;
		if (!g->match)
			continue;
		if (opt->top && n++ >= opt->top) {
			more++;
			rest += g->saving;
			continue;
		}
		if (g->name != ICF_NONE && !opt->full_names) {
			icf_name_parse(&parts, name);
			icf_name_brief(&parts, NAME_COLUMNS, buf, sizeof buf);
			name = buf;
		}
		fprintf(f, "%10" PRIu64 " %7" PRIu32 " %7" PRIu32 " %8" PRIu64 "   ", g->saving,
			g->files, g->count, g->size);
		elfrw_put_printable_line(f, name);
		print_members(f, p, g, opt);
	}
	if (more)
		fprintf(f, "%10" PRIu64 " %24s   %" PRIu32 " more\n", rest, "", more);
}

static const char *row_text(const struct icf_product *p, enum icf_product_by by, uint32_t key)
{
	if (key == ICF_NONE)
		return "(not known)";
	if (by == ICF_BY_EXPORTER)
		return icf_product_text(p, key, p->file.data[key].facts.soname);
	return icf_pool_text(&p->pool, key);
}

static struct elfrw_err *print_table(FILE *f, const struct icf_product *p,
				     const struct icf_audit_options *opt, enum icf_product_by by,
				     const char *title)
{
	icf_product_rows rows = { 0 };
	struct elfrw_err *err = icf_product_table(p, by, &rows);
	uint64_t rest = 0;
	bool known = rows.len && (rows.len > 1 || rows.data[0].key != ICF_NONE);
	if (known)
		fprintf(f, "\n%s\n%10s %9s %9s\n", title, "at best", "functions", "copies");
	for (size_t k = 0; k < rows.len && known; k++) {
		const struct icf_product_row *r = &rows.data[k];
		if (opt->top && k >= opt->top) {
			rest += r->saving;
			continue;
		}
		fprintf(f, "%10" PRIu64 " %9" PRIu32 " %9" PRIu32 "   ", r->saving, r->groups,
			r->bodies);
		elfrw_put_printable_line(f, row_text(p, by, r->key));
	}
	if (known && opt->top && rows.len > opt->top)
		fprintf(f, "%10" PRIu64 " %19s   %zu more\n", rest, "", rows.len - opt->top);
	VEC_FREE(&rows);
	return err;
}

static void print_pairs(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	if (p->pair.len)
		fprintf(f, "\nFiles with most in common%s\n%10s %9s\n",
			p->pairs_cut ? " (functions in very many files are not counted)" : "",
			"bytes", "functions");
	for (size_t k = 0; k < p->pair.len && (!opt->top || k < opt->top); k++) {
		const struct icf_product_pair *x = &p->pair.data[k];
		fprintf(f, "%10" PRIu64 " %9" PRIu32 "   ", x->bytes, x->functions);
		elfrw_put_printable(f, p->file.data[x->a].name);
		fputs(" and ", f);
		elfrw_put_printable_line(f, p->file.data[x->b].name);
	}
}

static void print_copies(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	uint32_t shown = 0;
	if (p->copies)
		fprintf(f, "\nCopies, which are counted once: %" PRIu32 "\n", p->copies);
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *x = &p->file.data[k];
		if (x->state != ICF_FILE_COPY || (opt->top && shown++ >= opt->top))
			continue;
		fputs("  ", f);
		elfrw_put_printable(f, x->name);
		fputs(" = ", f);
		elfrw_put_printable_line(f, p->file.data[x->copy_of].name);
	}
	if (opt->top && shown > opt->top)
		fprintf(f, "  %" PRIu32 " more\n", shown - opt->top);
}

static void print_bad(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	uint32_t n, shown = 0;
	uint32_t *id = icf_product_order(p, opt, ICF_FILE_BAD, &n);
	if (p->bad)
		fprintf(f, "\nNot analysed: %" PRIu32 "\n", p->bad);
	for (uint32_t k = 0; id && k < n && (!opt->top || k < opt->top); k++, shown++) {
		const struct icf_product_file *x = &p->file.data[id[k]];
		fputs("  ", f);
		elfrw_put_printable(f, x->name);
		fputs(": ", f);
		elfrw_put_printable_line(f, x->why ? x->why : "out of memory");
	}
	if (shown < p->bad)
		fprintf(f, "  %" PRIu32 " more\n", p->bad - shown);
	free(id);
}

struct elfrw_err *icf_product_print_text(FILE *f, const struct icf_product *p,
					 const struct icf_audit_options *opt)
{
	print_totals(f, p);
	print_advice(f, p);
	print_files(f, p, opt);
	print_groups(f, p, opt);
	ELFRW_TRY(print_table(f, p, opt, ICF_BY_FAMILY, "By template family"));
	ELFRW_TRY(print_table(f, p, opt, ICF_BY_NAMESPACE, "By namespace"));
	ELFRW_TRY(print_table(f, p, opt, ICF_BY_LIBRARY,
			      "By library (folder of the compilation unit)"));
	ELFRW_TRY(print_table(f, p, opt, ICF_BY_EXPORTER, "Exported already by a shared library"));
	print_pairs(f, p, opt);
	print_copies(f, p, opt);
	print_bad(f, p, opt);
	return NULL;
}
