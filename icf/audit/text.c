/* text.c: the audit as tables for people. */
#include "elfrw/base/printable.h"
#include "icf/audit/audit.h"
#include "icf/audit/name.h"
#include <inttypes.h>
#include <string.h>

#define NAME_COLUMNS 96

static double percent(uint64_t part, uint64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void print_head(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt)
{
	elfrw_put_printable(f, a->run.img.path);
	fprintf(f, ": %" PRIu32 " functions, %" PRIu64 " bytes of code, .text %" PRIu64 "\n",
		a->functions, a->code, a->text);
	if (a->run.prog.inferred)
		fputs("references: from the code and dynamic relocations (no relocations of the code were kept)\n",
		      f);
	if (a->in_place)
		fprintf(f,
			"in place: nothing may move, %s (address 0x%" PRIx64
			"); folded functions become holes, and thunks\n",
			a->run.prog.loose ? a->run.prog.loose : "as was asked for",
			a->run.prog.loose_at);
	const char *why = icf_all_writable_text(&a->run.prog);
	if (why)
		fprintf(f, "writable: %s\n", why);
	if (a->by_address)
		fputs("names: none; functions are given by their addresses (bounds from .eh_frame)\n",
		      f);
	fputs("sources: ", f);
	if (opt->no_sources)
		fputs("not read\n", f);
	else if (!a->functions)
		fputs("none: there are no functions to name the sources of\n", f);
	else if (!a->from_debug && !a->from_symbols)
		fputs("not known (no debug information, no file symbols)\n", f);
	else {
		if (a->from_debug)
			fprintf(f, "debug information for %" PRIu32 " functions%s", a->from_debug,
				a->from_symbols ? ", " : "");
		if (a->from_symbols)
			fprintf(f, "file symbols for %" PRIu32 "%s", a->from_symbols,
				a->from_debug ? "" : " functions");
		if (a->from_debug + a->from_symbols < a->functions)
			fprintf(f, ", none for %" PRIu32,
				a->functions - a->from_debug - a->from_symbols);
		fputc('\n', f);
	}
	if (a->root) {
		fputs("paths: relative to ", f);
		elfrw_put_printable_line(f, a->root);
	}
	if (opt->filter) {
		fprintf(f, "filter: %" PRIu32 " functions match ", a->n_match);
		elfrw_put_printable(f, opt->filter);
		fputs("; the tables are about them\n", f);
	}
}

static void print_totals(FILE *f, const struct icf_audit *a)
{
	const struct icf_audit_totals *x = &a->total[ICF_AUDIT_ALL], *y = &a->total[ICF_AUDIT_SAFE];
	fprintf(f, "\n%-28s %20s %20s\n", "", "--icf=all", "--icf=safe");
	const struct {
		const char *text;
		uint64_t all, safe;
	} row[] = {
		{ "functions folded", x->folded, y->folded },
		{ "  of these with a thunk", x->thunks, y->thunks },
		{ "groups", x->groups, y->groups },
		{ "duplicated bytes", x->duplicated, y->duplicated },
		{ "bytes of thunks", x->thunk_bytes, y->thunk_bytes },
		{ ".text after", x->text_after, y->text_after },
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		fprintf(f, "%-28s %20" PRIu64 " %20" PRIu64 "\n", row[i].text, row[i].all,
			row[i].safe);
	if (a->in_place)
		fprintf(f, "%-28s %20" PRIu64 " %20" PRIu64 "\n", "bytes of holes",
			x->duplicated - x->thunk_bytes, y->duplicated - y->thunk_bytes);
	uint64_t sx = a->text - x->text_after, sy = a->text - y->text_after;
	fprintf(f, "%-28s %20" PRIu64 " %20" PRIu64 "\n", ".text saved", sx, sy);
	fprintf(f, "%-28s %18.2f %% %18.2f %%\n", "", percent(sx, a->text), percent(sy, a->text));
}

static const char *other(int mode)
{
	return mode == ICF_AUDIT_ALL ? "safe" : "all";
}

static const char *mode_name(int mode)
{
	return mode == ICF_AUDIT_ALL ? "all" : "safe";
}

/* The number of members shown whose names differ from the keeper's without template arguments. */
#define MORE_NAMES 2

static void print_other(FILE *f, const char *name)
{
	fprintf(f, "%40s= ", "");
	elfrw_put_printable_line(f, name);
}

static void print_members(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt,
			  const struct icf_audit_group *g)
{
	char buf[1024];
	unsigned shown = 0, left = 0;
	for (uint32_t k = g->member; k < g->member + g->count; k++) {
		uint32_t i = a->member.data[k];
		if (i == g->keeper)
			continue;
		if (opt->full_names)
			print_other(f, icf_audit_name(a, i));
		else if (a->unit[i].key[ICF_DIM_FAMILY] == ICF_NONE ||
			 a->unit[i].key[ICF_DIM_FAMILY] == a->unit[g->keeper].key[ICF_DIM_FAMILY])
			continue;
		else if (shown++ < MORE_NAMES)
			print_other(f, icf_audit_brief(a, i, NAME_COLUMNS - 2, buf, sizeof buf));
		else
			left++;
	}
	if (left)
		fprintf(f, "%40s= %u more of other names\n", "", left);
}

static void print_groups(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt)
{
	char buf[1024];
	uint64_t rest[ICF_AUDIT_MODES] = { 0 };
	int m = opt->mode;
	fprintf(f, "\nGroups of identical functions (--icf=%s): %zu\n", mode_name(m), a->group.len);
	if (!a->group.len)
		return;
	fprintf(f, "%10s %8s %6s %8s   %s\n", "saving", other(m), "count", "size", "functions");
	for (size_t k = 0; k < a->group.len; k++) {
		const struct icf_audit_group *g = &a->group.data[k];
		if (opt->top && k >= opt->top) {
			rest[0] += g->saving[0];
			rest[1] += g->saving[1];
			continue;
		}
		const char *name = opt->full_names ? icf_audit_name(a, g->keeper)
						   : icf_audit_brief(a, g->keeper, NAME_COLUMNS,
								     buf, sizeof buf);
		fprintf(f, "%10" PRIu64 " %8" PRIu64 " %6" PRIu32 " %8" PRIu64 "   ", g->saving[m],
			g->saving[!m], g->count, g->size);
		elfrw_put_printable_line(f, name);
		print_members(f, a, opt, g);
	}
	if (opt->top && a->group.len > opt->top)
		fprintf(f, "%10" PRIu64 " %8" PRIu64 " %15s   %zu more\n", rest[m], rest[!m], "",
			a->group.len - opt->top);
}

static struct elfrw_err *print_table(FILE *f, const struct icf_audit *a,
				     const struct icf_audit_options *opt, enum icf_dimension dim,
				     const char *title, const char *what)
{
	icf_audit_rows rows = { 0 };
	struct elfrw_err *err = icf_audit_table(a, opt, dim, &rows);
	if (err)
		return err;
	uint64_t rest[ICF_AUDIT_MODES] = { 0 };
	uint32_t shown = 0, useful = 0, known = 0, functions = 0, folded = 0;
	int m = opt->mode;
	for (size_t k = 0; k < rows.len; k++) {
		known += rows.data[k].key != ICF_NONE;
		useful += (rows.data[k].saving[0] || rows.data[k].saving[1]);
	}
	if (known && useful)
		fprintf(f, "\n%s\n%10s %8s %9s %7s %10s   %s\n", title, "saving", other(m),
			"functions", "folded", "bytes", what);
	for (size_t k = 0; k < rows.len && known && useful; k++) {
		const struct icf_audit_row *r = &rows.data[k];
		if (!r->saving[0] && !r->saving[1])
			continue;
		if (opt->top && shown >= opt->top) {
			rest[0] += r->saving[0];
			rest[1] += r->saving[1];
			functions += r->count;
			folded += r->folded;
			continue;
		}
		const char *text =
			r->key == ICF_NONE ? "(not known)" : icf_pool_text(&a->pool, r->key);
		fprintf(f, "%10" PRIu64 " %8" PRIu64 " %9" PRIu32 " %7" PRIu32 " %10" PRIu64 "   ",
			r->saving[m], r->saving[!m], r->count, r->folded, r->bytes);
		elfrw_put_printable_n(f, text,
				      strnlen(text, opt->full_names ? 8192 : NAME_COLUMNS));
		fputs(!opt->full_names && strlen(text) > NAME_COLUMNS ? "...\n" : "\n", f);
		shown++;
	}
	if (known && useful > shown)
		fprintf(f,
			"%10" PRIu64 " %8" PRIu64 " %9" PRIu32 " %7" PRIu32 " %10s   %" PRIu32
			" more\n",
			rest[m], rest[!m], functions, folded, "", useful - shown);
	VEC_FREE(&rows);
	return NULL;
}

static void print_reasons(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt)
{
	struct icf_audit_reason r[ICF_N_WHYS];
	unsigned n = icf_audit_reasons(a, opt, r);
	fprintf(f, "\nWhat becomes of the code, and why\n%20s %20s\n", "--icf=all", "--icf=safe");
	fprintf(f, "%9s %10s %9s %10s\n", "functions", "bytes", "functions", "bytes");
	for (unsigned k = 0; k < n; k++)
		fprintf(f, "%9" PRIu32 " %10" PRIu64 " %9" PRIu32 " %10" PRIu64 "   %s\n",
			r[k].count[0], r[k].bytes[0], r[k].count[1], r[k].bytes[1],
			icf_why_text(r[k].why));
}

static void print_near_name(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%31s", "");
	elfrw_put_printable(f, name);
	fputs(": ", f);
	elfrw_put_printable_line(f, value);
}

static void print_near_member(FILE *f, const struct icf_audit *a,
			      const struct icf_audit_options *opt, const struct icf_audit_near *n,
			      uint32_t i)
{
	/* Contrast each member with the one before it, and the first with the second. */
	const struct icf_audit_near_member *m = &a->near_member.data[n->member + i],
					   *o = i ? m - 1 : m + 1;
	const char *value = icf_pool_text(&a->pool, m->text),
		   *other = icf_pool_text(&a->pool, o->text);
	char name_buf[512], value_buf[512];
	if (opt->full_names) {
		print_near_name(f, icf_audit_name(a, m->unit), value);
		return;
	}
	icf_name_contrast(icf_audit_name(a, m->unit), icf_audit_name(a, o->unit), NAME_COLUMNS - 16,
			  name_buf, sizeof name_buf);
	if (n->kind == ICF_NEAR_CALLEE || (n->kind == ICF_NEAR_ADDRESS && *value != '"'))
		icf_name_contrast(value, other, NAME_COLUMNS - 16, value_buf, sizeof value_buf);
	else
		snprintf(value_buf, sizeof value_buf, "%s", value);
	print_near_name(f, name_buf, value_buf);
}

static void print_near(FILE *f, const struct icf_audit *a, const struct icf_audit_options *opt)
{
	fprintf(f, "\nNear misses, the same but for one value: %" PRIu32 "\n", a->n_near);
	if (!a->near.len)
		return;
	fprintf(f, "%10s %6s %8s   %s\n", "would save", "count", "size",
		"functions, with what they have there");
	for (size_t k = 0; k < a->near.len; k++) {
		const struct icf_audit_near *n = &a->near.data[k];
		fprintf(f,
			"%10" PRIu64 " %6" PRIu32 " %8" PRIu64 "   differ in %s%s at +0x%" PRIx32,
			n->saving, n->count, n->size,
			n->kind == ICF_NEAR_ADDRESS || n->kind == ICF_NEAR_OFFSET ? "an " : "a ",
			icf_near_kind_text(n->kind), n->off);
		if (n->places > 1)
			fprintf(f, " (and %" PRIu32 " more places)", n->places - 1);
		fputc('\n', f);
		uint32_t most = opt->full_names ? n->count : n->count > 4 ? 3 : n->count;
		for (uint32_t i = 0; i < most; i++)
			print_near_member(f, a, opt, n, i);
		if (most < n->count)
			fprintf(f, "%31s%" PRIu32 " more\n", "", n->count - most);
	}
}

static void print_unused_totals(FILE *f, const struct icf_audit *a)
{
	const struct icf_audit_unused *u = &a->unused;
	const uint64_t after[] = { u->alone, u->with[ICF_AUDIT_ALL], u->with[ICF_AUDIT_SAFE] };
	fprintf(f, "%-28s %14s %14s %14s\n%-28s", "with --gc-functions", "--icf=none", "--icf=all",
		"--icf=safe", ".text after");
	for (size_t k = 0; k < 3; k++)
		fprintf(f, " %14" PRIu64, after[k]);
	fprintf(f, "\n%-28s", ".text saved");
	for (size_t k = 0; k < 3; k++)
		fprintf(f, " %14" PRIu64, a->text - after[k]);
	fprintf(f, "\n%-28s", "");
	for (size_t k = 0; k < 3; k++)
		fprintf(f, " %12.2f %%", percent(a->text - after[k], a->text));
	fputc('\n', f);
}

static struct elfrw_err *print_unused_table(FILE *f, const struct icf_audit *a,
					    const struct icf_audit_options *opt,
					    enum icf_dimension dim, const char *what)
{
	icf_audit_rows rows = { 0 };
	struct elfrw_err *err = icf_audit_unused_table(a, opt, dim, &rows);
	bool known = rows.len && (rows.len > 1 || rows.data[0].key != ICF_NONE);
	uint64_t bytes = 0, functions = 0;
	if (known)
		fprintf(f, "\n%10s %9s %10s %9s   %s\n", "unused", "functions", "of bytes",
			"functions", what);
	for (size_t k = 0; k < rows.len && known; k++) {
		const struct icf_audit_row *r = &rows.data[k];
		if (opt->top && k >= opt->top) {
			bytes += r->unused_bytes;
			functions += r->unused;
			continue;
		}
		const char *text =
			r->key == ICF_NONE ? "(not known)" : icf_pool_text(&a->pool, r->key);
		fprintf(f, "%10" PRIu64 " %9" PRIu32 " %10" PRIu64 " %9" PRIu32 "   ",
			r->unused_bytes, r->unused, r->bytes, r->count);
		elfrw_put_printable_n(f, text,
				      strnlen(text, opt->full_names ? 8192 : NAME_COLUMNS));
		fputs(!opt->full_names && strlen(text) > NAME_COLUMNS ? "...\n" : "\n", f);
	}
	if (known && opt->top && rows.len > opt->top)
		fprintf(f, "%10" PRIu64 " %9" PRIu64 " %20s   %zu more\n", bytes, functions, "",
			rows.len - opt->top);
	VEC_FREE(&rows);
	return err;
}

static struct elfrw_err *print_unused_list(FILE *f, const struct icf_audit *a,
					   const struct icf_audit_options *opt)
{
	icf_audit_units list = { 0 };
	struct elfrw_err *err = icf_audit_unused_list(a, opt, &list);
	uint64_t bytes = 0;
	char buf[1024];
	if (list.len)
		fprintf(f, "\n%10s   functions\n", "unused");
	for (size_t k = 0; k < list.len; k++) {
		uint32_t i = list.data[k];
		if (opt->top && k >= opt->top) {
			bytes += icf_audit_size(a, i);
			continue;
		}
		fprintf(f, "%10" PRIu64 "   ", icf_audit_size(a, i));
		elfrw_put_printable_line(
			f, opt->full_names ? icf_audit_name(a, i)
					   : icf_audit_brief(a, i, NAME_COLUMNS, buf, sizeof buf));
	}
	if (opt->top && list.len > opt->top)
		fprintf(f, "%10" PRIu64 "   %zu more\n", bytes, list.len - opt->top);
	VEC_FREE(&list);
	return err;
}

static struct elfrw_err *print_unused(FILE *f, const struct icf_audit *a,
				      const struct icf_audit_options *opt)
{
	const struct icf_audit_unused *u = &a->unused;
	if (u->obstacle) {
		fputs("\nNever used: not known, ", f);
		elfrw_put_printable_line(f, u->obstacle);
		return NULL;
	}
	fprintf(f, "\nNever used: %" PRIu32 " functions, %" PRIu64 " bytes\n", u->functions,
		u->bytes);
	if (!u->functions)
		return NULL;
	print_unused_totals(f, a);
	ELFRW_TRY(print_unused_table(f, a, opt, ICF_DIM_LIBRARY, "library"));
	ELFRW_TRY(print_unused_table(f, a, opt, ICF_DIM_NAMESPACE, "namespace"));
	ELFRW_TRY(print_unused_table(f, a, opt, ICF_DIM_FILE, "file"));
	if (!a->from_debug)
		ELFRW_TRY(print_unused_table(f, a, opt, ICF_DIM_UNIT, "unit"));
	return print_unused_list(f, a, opt);
}

static void print_advice(FILE *f, const struct icf_audit *a)
{
	struct icf_advice x[ICF_ADVICE];
	icf_advice_text(f, x, icf_audit_advise(a, x));
}

struct elfrw_err *icf_audit_print_text(FILE *f, const struct icf_audit *a,
				       const struct icf_audit_options *opt)
{
	print_head(f, a, opt);
	print_totals(f, a);
	print_advice(f, a);
	print_groups(f, a, opt);
	ELFRW_TRY(print_table(f, a, opt, ICF_DIM_FAMILY, "By template family", "family"));
	ELFRW_TRY(print_table(f, a, opt, ICF_DIM_NAMESPACE, "By namespace", "namespace"));
	ELFRW_TRY(print_table(f, a, opt, ICF_DIM_LIBRARY,
			      "By library (folder of the compilation unit)", "library"));
	ELFRW_TRY(print_table(f, a, opt, ICF_DIM_DIRECTORY, "By directory of the source file",
			      "directory"));
	ELFRW_TRY(
		print_table(f, a, opt, ICF_DIM_FILE, "By source file (headers included)", "file"));
	ELFRW_TRY(print_table(f, a, opt, ICF_DIM_UNIT,
			      a->from_debug ? "By compilation unit"
					    : "By compilation unit (from file symbols)",
			      "unit"));
	print_reasons(f, a, opt);
	print_near(f, a, opt);
	return print_unused(f, a, opt);
}
