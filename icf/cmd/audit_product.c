/* audit_product.c: icfold audit FILE... | DIRECTORY | ARCHIVE | --files-from=LIST. */
#include "icf/cmd/audit.h"
#include "icf/audit/product/collect.h"
#include "icf/audit/product/diff.h"
#include "icf/audit/product/product.h"
#include "icf/audit/rows/files.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/cmdline.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef VEC(char *) names;

static int fail(const char *what, struct elfrw_err *err)
{
	icf_message(what, "%s", elfrw_err_text(err));
	elfrw_err_free(err);
	return ICF_EXIT_TROUBLE;
}

bool icf_audit_is_product(const struct icf_audit_command *c, char **operand, int n)
{
	if (c->files_from || n > (c->diff ? 2 : 1) || c->format >= FORMAT_GITHUB)
		return true;
	for (int k = 0; k < n; k++)
		if (icf_product_takes(operand[k]))
			return true;
	return false;
}

static void free_names(names *list, int borrowed)
{
	for (size_t k = (size_t)borrowed; k < list->len; k++)
		free(list->data[k]);
	VEC_FREE(list);
}

static struct elfrw_err *add_name(names *list, const char *name)
{
	if (!*name)
		return NULL;
	char *copy = strdup(name), **to = copy ? VEC_PUSH(list) : NULL;
	if (!to) {
		free(copy);
		return &elfrw_err_nomem;
	}
	*to = copy;
	return NULL;
}

static struct elfrw_err *add_lines(names *list, char *text)
{
	for (char *line; (line = strsep(&text, "\n"));)
		ELFRW_TRY(add_name(list, line));
	return NULL;
}

/* Adds the lines of PATH; "-": of standard input.  If there are zero bytes, they are the ends of
 * the names, as find(1) -print0 writes them: a list of lines has none. */
static struct elfrw_err *read_list(const char *path, names *list)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!f)
		return elfrw_error_errno(errno, "cannot open");
	char *text = NULL;
	size_t size = 0;
	bool zeros = false;
	struct elfrw_err *err = NULL;
	for (ssize_t n; !err && (n = getdelim(&text, &size, 0, f)) > 0;) {
		zeros |= !text[n - 1];
		err = zeros ? add_name(list, text) : add_lines(list, text);
	}
	if (!err && ferror(f))
		err = elfrw_error_errno(errno, "cannot read");
	free(text);
	if (f != stdin)
		fclose(f);
	return err;
}

/* Limits say nothing of what was not read. */
static int check_read(const struct icf_audit_command *c, const struct icf_product *p)
{
	if (c->max_duplicated == UINT64_MAX && c->max_growth == UINT64_MAX)
		return ICF_EXIT_OK;
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *f = &p->file.data[k];
		if (f->state != ICF_FILE_BAD || !f->unread)
			continue;
		icf_message(f->name, "%s: it is not known whether the limit holds",
			    f->why ? f->why : "out of memory");
		return ICF_EXIT_TROUBLE;
	}
	return ICF_EXIT_OK;
}

static int check_duplicated(const struct icf_audit_command *c, const struct icf_product *p)
{
	uint64_t twice = p->total.duplicated[c->opt.mode] + p->shared_saving;
	if (twice <= c->max_duplicated)
		return check_read(c, p);
	icf_message(NULL, "%" PRIu64 " bytes of duplicated code, more than the %" PRIu64 " allowed",
		    twice, c->max_duplicated);
	return ICF_EXIT_NO;
}

/* No file of P could be analysed.  If there is one only, it says why. */
static int nothing(const char *what, const struct icf_product *p)
{
	const struct icf_product_file *one = NULL;
	for (size_t k = 0; k < p->file.len && p->bad == 1; k++)
		if (p->file.data[k].state == ICF_FILE_BAD)
			one = &p->file.data[k];
	if (one && one->why)
		icf_message(one->name, "%s: no file could be analysed", one->why);
	else
		icf_message(what, "no file could be analysed");
	return ICF_EXIT_TROUBLE;
}

static struct elfrw_err *write_page(const char *path, const struct icf_product *p,
				    const struct icf_audit_options *opt)
{
	/* What a folder or a list held is known only now. */
	if (icf_product_reads(p, path))
		return elfrw_error("is an input and cannot be the page too");
	return icf_product_write_html(path, p, opt);
}

static int report(const struct icf_audit_command *c, const struct icf_product *p)
{
	struct elfrw_err *err =
		c->html                    ? write_page(c->html, p, &c->opt)
		: c->format == FORMAT_JSON ? icf_product_print_json(stdout, p, &c->opt)
		: c->format == FORMAT_CSV  ? icf_product_print_csv(stdout, p, &c->opt)
					   : icf_product_print_text(stdout, p, &c->opt);
	if (err)
		return fail(c->html, err);
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail("standard output", elfrw_error("cannot write"));
	return p->done ? check_duplicated(c, p) : nothing(NULL, p);
}

static struct icf_product_options options_of(const struct icf_audit_command *c)
{
	return (struct icf_product_options){ .audit = c->opt,
					     .memory = c->memory,
					     .progress = c->quiet || !isatty(2) ? NULL : stderr };
}

static int report_changes(const struct icf_audit_command *c, const struct icf_product_diff *d)
{
	switch (c->format) {
	case FORMAT_JSON: icf_product_diff_json(stdout, d, &c->opt); break;
	case FORMAT_GITHUB: icf_product_github(stdout, d, &c->opt); break;
	case FORMAT_GITLAB: icf_product_gitlab(stdout, d, &c->opt); break;
	case FORMAT_SARIF: icf_product_sarif(stdout, d, &c->opt); break;
	default: icf_product_diff_text(stdout, d, &c->opt);
	}
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail("standard output", elfrw_error("cannot write"));
	if (d->growth > 0 && (uint64_t)d->growth > c->max_growth) {
		icf_message(NULL,
			    "duplicated code grew by %" PRId64 " bytes, more than the %" PRIu64
			    " allowed",
			    d->growth, c->max_growth);
		return ICF_EXIT_NO;
	}
	int status = check_duplicated(c, d->p[1]);
	return status ? status : check_read(c, d->p[0]);
}

int icf_audit_products(const struct icf_audit_command *c, char **operand)
{
	const struct icf_product_options opt = options_of(c);
	struct icf_product p[2] = { { .spool = -1 }, { .spool = -1 } };
	struct icf_product_diff d = { 0 };
	int status = 0;
	for (int k = 0; k < 2 && !status; k++) {
		struct elfrw_err *err = icf_product_analyse(&p[k], operand + k, 1, &opt);
		if (err)
			status = fail(operand[k], err);
		else if (!p[k].done)
			status = nothing(operand[k], &p[k]);
	}
	if (!status) {
		struct elfrw_err *err = icf_product_compare(&d, &p[0], &p[1], &c->opt);
		status = err ? fail(NULL, err) : report_changes(c, &d);
	}
	icf_product_diff_deinit(&d);
	icf_product_deinit(&p[0]);
	icf_product_deinit(&p[1]);
	return status;
}

/* The operands and the lines of the list. */
static struct elfrw_err *list_files(const struct icf_audit_command *c, char **operand, int n,
				    names *list)
{
	if (!VEC_APPEND(list, operand, (size_t)n))
		return &elfrw_err_nomem;
	return c->files_from ? read_list(c->files_from, list) : NULL;
}

/* A line for each file without rows. */
static void complain(const struct icf_product *p)
{
	for (size_t k = 0; k < p->file.len; k++)
		if (p->file.data[k].state == ICF_FILE_BAD)
			icf_message(p->file.data[k].name, "%s",
				    p->file.data[k].why ? p->file.data[k].why : "out of memory");
}

int icf_audit_write_rows(const struct icf_audit_command *c, char **operand, int n)
{
	const struct icf_product_options opt = options_of(c);
	struct icf_product p = { .spool = -1 };
	names list = { 0 };
	int status = ICF_EXIT_TROUBLE;
	struct elfrw_err *err = list_files(c, operand, n, &list);
	if (err)
		fail(c->files_from, err);
	else if ((err = icf_rows_write(&p, c->rows, c->package, list.data, (int)list.len, &opt)))
		fail(c->rows, err);
	else {
		complain(&p);
		if (p.done)
			status = check_duplicated(c, &p);
		else if (p.bad != 1)
			icf_message(NULL, "no file could be analysed");
	}
	icf_product_deinit(&p);
	free_names(&list, n);
	return status;
}

int icf_audit_product(const struct icf_audit_command *c, char **operand, int n)
{
	const struct icf_product_options opt = options_of(c);
	struct icf_product p = { .spool = -1 };
	names list = { 0 };
	int status = 0;
	struct elfrw_err *err = list_files(c, operand, n, &list);
	if (err)
		status = fail(c->files_from, err);
	else if ((err = icf_product_analyse(&p, list.data, (int)list.len, &opt)))
		status = fail(NULL, err);
	else
		status = report(c, &p);
	icf_product_deinit(&p);
	free_names(&list, n);
	return status;
}
