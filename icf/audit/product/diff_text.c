/* diff_text.c: the comparison of two products, for people and for programs. */
#include "elfrw/base/printable.h"
#include "icf/audit/name.h"
#include "icf/audit/product/diff.h"
#include "icf/cli/version.h"
#include <inttypes.h>

#define NAME_COLUMNS 84

struct figure {
	const char *text, *key;
	uint64_t v[2];
};
#define FIGURES 6

static void figures(const struct icf_product_diff *d, int mode, struct figure *f)
{
	const struct icf_product *o = d->p[0], *n = d->p[1];
	const struct figure all[FIGURES] = {
		{ "files", "files", { o->done, n->done } },
		{ "functions", "functions", { o->total.functions, n->total.functions } },
		{ "bytes of code", "code_bytes", { o->total.code, n->total.code } },
		{ "duplicated bytes in files",
		  "duplicated_bytes",
		  { o->total.duplicated[mode], n->total.duplicated[mode] } },
		{ "bytes in several files",
		  "shared_saving",
		  { o->shared_saving, n->shared_saving } },
		{ "bytes never used", "unused_bytes", { o->total.unused, n->total.unused } },
	};
	memcpy(f, all, sizeof all);
}

static const char *kind(const struct icf_product_change *c)
{
	return c->old == ICF_NONE   ? "new"
	       : c->new == ICF_NONE ? "gone"
	       : c->delta > 0       ? "grown"
	       : c->delta < 0       ? "shrunk"
				    : "changed";
}

/* Of a long list, the first and the last rows: the largest growth, and what shrank most. */
static bool in_view(size_t k, size_t n, uint32_t top)
{
	return !top || k < top || n - k <= top / 2;
}

static const char *file_name(const struct icf_product_diff *d, const struct icf_product_change *c)
{
	return c->new == ICF_NONE ? d->p[0]->file.data[c->old].name
				  : d->p[1]->file.data[c->new].name;
}

static const char *group_name(const struct icf_product_diff *d, const struct icf_product_change *c)
{
	const struct icf_product *p = d->p[c->new != ICF_NONE];
	return icf_product_name(p, p->group.data[c->new == ICF_NONE ? c->old : c->new].name);
}

static void put_brief(FILE *f, const char *name, bool full)
{
	char buf[1024];
	struct icf_name parts;
	if (name && !full) {
		icf_name_parse(&parts, name);
		icf_name_brief(&parts, NAME_COLUMNS, buf, sizeof buf);
		name = buf;
	}
	elfrw_put_printable_line(f, name ? name : "(no name)");
}

static void text_added(FILE *f, const struct icf_product_diff *d,
		       const struct icf_audit_options *opt)
{
	const struct icf_product *p = d->p[1];
	fprintf(f, "\nFunctions that were added and were there already: %zu\n", d->added.len);
	if (d->added.len)
		fprintf(f, "%10s   %s\n", "size", "function, file, and where it was");
	for (size_t k = 0; k < d->added.len && (!opt->top || k < opt->top); k++) {
		const struct icf_product_added *x = &d->added.data[k];
		const char *name = icf_product_text(
			p, x->added.file, icf_product_funcs(p, x->added.file)[x->added.func].name);
		fprintf(f, "%10" PRIu32 "   ", x->size);
		put_brief(f, name, opt->full_names);
		fprintf(f, "%13s", "");
		elfrw_put_printable(f, p->file.data[x->added.file].name);
		fputs(" = ", f);
		elfrw_put_printable_line(f, p->file.data[x->first.file].name);
	}
	if (opt->top && d->added.len > opt->top)
		fprintf(f, "%10s   %zu more\n", "", d->added.len - opt->top);
}

void icf_product_diff_text(FILE *f, const struct icf_product_diff *d,
			   const struct icf_audit_options *opt)
{
	struct figure fig[FIGURES];
	figures(d, opt->mode, fig);
	fprintf(f, "%-28s %12s %12s %12s\n", "", "old", "new", "change");
	for (int k = 0; k < FIGURES; k++)
		fprintf(f, "%-28s %12" PRIu64 " %12" PRIu64 " %+12" PRId64 "\n", fig[k].text,
			fig[k].v[0], fig[k].v[1], (int64_t)(fig[k].v[1] - fig[k].v[0]));
	if (d->p[0]->bad || d->p[1]->bad)
		fprintf(f, "%-28s %12" PRIu32 " %12" PRIu32 "\n", "not analysed", d->p[0]->bad,
			d->p[1]->bad);
	fprintf(f, "\nFiles that changed: %zu\n", d->file.len);
	if (d->file.len)
		fprintf(f, "%10s %7s   %s\n", "twice", "", "file");
	for (size_t k = 0; k < d->file.len; k++) {
		const struct icf_product_change *c = &d->file.data[k];
		if (!in_view(k, d->file.len, opt->top))
			continue;
		fprintf(f, "%+10" PRId64 " %7s   ", c->delta, kind(c));
		elfrw_put_printable_line(f, file_name(d, c));
	}
	fprintf(f, "\nFunctions in several files whose saving changed: %zu\n", d->group.len);
	if (d->group.len)
		fprintf(f, "%10s %7s %13s   %s\n", "change", "", "files", "function");
	for (size_t k = 0; k < d->group.len; k++) {
		const struct icf_product_change *c = &d->group.data[k];
		char count[32];
		if (!in_view(k, d->group.len, opt->top))
			continue;
		snprintf(count, sizeof count, "%" PRIu32 " -> %" PRIu32,
			 c->old == ICF_NONE ? 0 : d->p[0]->group.data[c->old].files,
			 c->new == ICF_NONE ? 0 : d->p[1]->group.data[c->new].files);
		fprintf(f, "%+10" PRId64 " %7s %13s   ", c->delta, kind(c), count);
		put_brief(f, group_name(d, c), opt->full_names);
	}
	text_added(f, d, opt);
}

static void put_place(FILE *f, const struct icf_product *p, const struct icf_product_member *m)
{
	const struct icf_product_func *x = &icf_product_funcs(p, m->file)[m->func];
	const char *name = icf_product_text(p, m->file, x->name);
	const char *source = icf_product_text(p, m->file, x->source);
	fputs("{ \"file\": ", f);
	icf_put_json(f, p->file.data[m->file].name);
	fputs(", \"symbol\": ", f);
	if (name)
		icf_put_json(f, name);
	else
		fputs("null", f);
	fputs(", \"source\": ", f);
	if (source)
		icf_put_json(f, source);
	else
		fputs("null", f);
	fprintf(f, ", \"line\": %" PRIu32 " }", x->line);
}

static void json_changes(FILE *f, const struct icf_product_diff *d,
			 const struct icf_audit_options *opt, bool groups)
{
	size_t n = groups ? d->group.len : d->file.len;
	bool any = false;
	fprintf(f, ",\n  \"%s\": [", groups ? "groups" : "files");
	for (size_t k = 0; k < n; k++) {
		const struct icf_product_change *c = groups ? &d->group.data[k] : &d->file.data[k];
		const char *name = groups ? group_name(d, c) : file_name(d, c);
		if (!in_view(k, n, opt->top))
			continue;
		fprintf(f, "%s\n    { \"kind\": \"%s\", \"change\": %" PRId64 ", \"name\": ",
			any ? "," : "", kind(c), c->delta);
		if (name)
			icf_put_json(f, name);
		else
			fputs("null", f);
		if (groups)
			fprintf(f, ", \"old_files\": %" PRIu32 ", \"new_files\": %" PRIu32,
				c->old == ICF_NONE ? 0 : d->p[0]->group.data[c->old].files,
				c->new == ICF_NONE ? 0 : d->p[1]->group.data[c->new].files);
		fputs(" }", f);
		any = true;
	}
	fputs(" ]", f);
}

void icf_product_diff_json(FILE *f, const struct icf_product_diff *d,
			   const struct icf_audit_options *opt)
{
	struct figure fig[FIGURES];
	figures(d, opt->mode, fig);
	fprintf(f,
		"{\n  \"icfold\": \"" ICF_VERSION
		"\",\n  \"mode\": \"%s\",\n  \"growth\": %" PRId64,
		opt->mode == ICF_AUDIT_ALL ? "all" : "safe", d->growth);
	for (int k = 0; k < FIGURES; k++)
		fprintf(f,
			",\n  \"%s\": { \"old\": %" PRIu64 ", \"new\": %" PRIu64
			", \"change\": %" PRId64 " }",
			fig[k].key, fig[k].v[0], fig[k].v[1], (int64_t)(fig[k].v[1] - fig[k].v[0]));
	fprintf(f, ",\n  \"bad\": { \"old\": %" PRIu32 ", \"new\": %" PRIu32 " }", d->p[0]->bad,
		d->p[1]->bad);
	json_changes(f, d, opt, false);
	json_changes(f, d, opt, true);
	fputs(",\n  \"added\": [", f);
	for (size_t k = 0; k < d->added.len && (!opt->top || k < opt->top); k++) {
		const struct icf_product_added *x = &d->added.data[k];
		fprintf(f, "%s\n    { \"size\": %" PRIu32 ", \"function\": ", k ? "," : "",
			x->size);
		put_place(f, d->p[1], &x->added);
		fputs(", \"first\": ", f);
		put_place(f, d->p[1], &x->first);
		fputs(" }", f);
	}
	fputs(" ]\n}\n", f);
}
