/* audit_product.c: icfold audit FILE... | DIRECTORY | ARCHIVE | --files-from=LIST. */
#include "icf/cmd/audit.h"
#include "icf/audit/product/collect.h"
#include "icf/audit/product/product.h"
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
	if (c->files_from || n > (c->diff ? 2 : 1))
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

/* Adds the lines of PATH; "-": of standard input. */
static struct elfrw_err *read_list(const char *path, names *list)
{
	FILE *f = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	if (!f)
		return elfrw_error_errno(errno, "cannot open");
	char *line = NULL;
	size_t size = 0;
	struct elfrw_err *err = NULL;
	for (ssize_t n; !err && (n = getline(&line, &size, f)) > 0;) {
		if (line[n - 1] == '\n')
			line[--n] = 0;
		char *copy = n ? strdup(line) : NULL, **to = copy ? VEC_PUSH(list) : NULL;
		if (to)
			*to = copy;
		else if (n) {
			free(copy);
			err = &elfrw_err_nomem;
		}
	}
	if (!err && ferror(f))
		err = elfrw_error_errno(errno, "cannot read");
	free(line);
	if (f != stdin)
		fclose(f);
	return err;
}

static int report(const struct icf_audit_command *c, const struct icf_product *p)
{
	if (c->format == FORMAT_JSON)
		icf_product_print_json(stdout, p, &c->opt);
	else if (c->format == FORMAT_CSV)
		icf_product_print_csv(stdout, p, &c->opt);
	else
		icf_product_print_text(stdout, p, &c->opt);
	if (fflush(stdout) != 0 || ferror(stdout))
		return fail("standard output", elfrw_error("cannot write"));
	if (!p->done) {
		icf_message(NULL, "audit: no file could be analysed");
		return ICF_EXIT_TROUBLE;
	}
	uint64_t twice = p->total.duplicated[c->opt.mode] + p->shared_saving;
	if (twice <= c->max_duplicated)
		return ICF_EXIT_OK;
	icf_message(NULL, "%" PRIu64 " bytes of duplicated code, more than the %" PRIu64 " allowed",
		    twice, c->max_duplicated);
	return ICF_EXIT_NO;
}

int icf_audit_product(const struct icf_audit_command *c, char **operand, int n)
{
	const struct icf_product_options opt = { .audit = c->opt,
						 .memory = c->memory,
						 .progress =
							 c->quiet || !isatty(2) ? NULL : stderr };
	struct icf_product p = { .spool = -1 };
	names list = { 0 };
	int status = 0;
	struct elfrw_err *err = VEC_APPEND(&list, operand, (size_t)n) ? NULL : &elfrw_err_nomem;
	if (!err && c->files_from && (err = read_list(c->files_from, &list)))
		status = fail(c->files_from, err);
	else if (err || (err = icf_product_analyse(&p, list.data, (int)list.len, &opt)))
		status = fail(NULL, err);
	else
		status = report(c, &p);
	icf_product_deinit(&p);
	free_names(&list, n);
	return status;
}
