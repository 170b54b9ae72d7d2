/* text.c: the audit of a product as tables for people. */
#include "elfrw/base/printable.h"
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
	if (t->unused_known)
		fprintf(f, "%-28s %20" PRIu64 "   in %" PRIu32 " functions\n", "never used, bytes",
			t->unused, t->unused_functions);
}

static void print_files(FILE *f, const struct icf_product *p, const struct icf_audit_options *opt)
{
	uint32_t n;
	uint32_t *id = icf_product_order(p, opt, ICF_FILE_DONE, &n);
	int m = opt->mode;
	fprintf(f, "\nFiles: %" PRIu32 "\n%10s %8s %10s %9s %9s %9s %-11s   %s\n", n, "saving",
		m == ICF_AUDIT_ALL ? "safe" : "all", "code", "functions", "twice", "unused",
		"references", "file");
	for (uint32_t k = 0; k < n && id && (!opt->top || k < opt->top); k++) {
		const struct icf_product_file *x = &p->file.data[id[k]];
		char unused[24];
		snprintf(unused, sizeof unused, "%" PRIu64, x->facts.unused);
		fprintf(f,
			"%10" PRIu64 " %8" PRIu64 " %10" PRIu64 " %9" PRIu32 " %9" PRIu64
			" %9s %-11s   ",
			x->facts.saved[m], x->facts.saved[!m], x->facts.code, x->facts.functions,
			x->facts.duplicated[m], x->facts.unused_known ? unused : "?",
			icf_product_level_key(x->facts.level));
		elfrw_put_printable_line(f, x->name);
	}
	if (opt->top && n > opt->top)
		fprintf(f, "%72s   %" PRIu32 " more\n", "", n - opt->top);
	free(id);
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
	uint32_t shown = 0;
	if (p->bad)
		fprintf(f, "\nNot analysed: %" PRIu32 "\n", p->bad);
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *x = &p->file.data[k];
		if (x->state != ICF_FILE_BAD || (opt->top && shown++ >= opt->top))
			continue;
		fputs("  ", f);
		elfrw_put_printable(f, x->name);
		fputs(": ", f);
		elfrw_put_printable_line(f, x->why ? x->why : "out of memory");
	}
	if (opt->top && shown > opt->top)
		fprintf(f, "  %" PRIu32 " more\n", shown - opt->top);
}

void icf_product_print_text(FILE *f, const struct icf_product *p,
			    const struct icf_audit_options *opt)
{
	print_totals(f, p);
	print_files(f, p, opt);
	print_copies(f, p, opt);
	print_bad(f, p, opt);
}
