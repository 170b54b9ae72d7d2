/* files.c: see files.h.
 *
 * The rows of a file are made in the process that analyses it, and wait in the spool of the
 * product's audit (jobs.h), on disk.  They are copied from there in the order of the files, and
 * leave the spool as they go, so that memory depends on the largest file alone and the disk holds
 * the rows once. */
#include "icf/audit/rows/files.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/base/newfile.h"
#include "elfrw/base/wbuf.h"
#include "icf/audit/product/analyse.h"
#include "icf/audit/product/collect.h"
#include "icf/audit/rows/rows.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct reader {
	struct icf_product_reader base;
	const char *package;
	unsigned threads; /* in one file */
	bool csv, no_sources;
};

static ssize_t append(void *ctx, const char *bytes, size_t n)
{
	struct elfrw_wbuf *w = ctx;
	elfrw_wbuf_bytes(w, bytes, n);
	return w->bad ? 0 : (ssize_t)n;
}

static struct elfrw_err *plan(struct icf_audit *a, const char *path, const struct reader *r)
{
	struct icf_options run = { .input = path, .mode = ICF_MODE_NONE, .threads = r->threads };
	struct dwr_sym_options sym = { .own_only = r->no_sources };
	char *debug_file = NULL;
	struct elfrw_err *err =
		r->no_sources ? NULL : dwr_sym_find_debug(path, NULL, &debug_file, NULL);
	if (err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err); /* the code below reports the fault of the file in other words */
	run.debug_file = debug_file;
	err = icf_audit_plan(a, &run);
	free(debug_file);
	if (!err)
		err = icf_audit_explain(a, r->threads);
	if (err)
		return err;
	/* Without a symbolizer, names stay as they are and sources are unknown. */
	err = dwr_sym_open(path, &sym, &a->sym);
	if (err == &elfrw_err_nomem)
		return err;
	elfrw_err_free(err);
	return NULL;
}

static struct elfrw_err *read_rows(const struct icf_product_reader *base,
				   const struct icf_product_file *f, const char *path,
				   struct icf_product_facts *facts, struct elfrw_wbuf *keep)
{
	const struct reader *r = (const struct reader *)base;
	const char *package = r->package ? r->package : f->package;
	struct icf_rows rows = { .f = fopencookie(keep, "w",
						  (cookie_io_functions_t){ .write = append }),
				 .csv = r->csv };
	struct icf_audit *a = rows.f ? calloc(1, sizeof *a) : NULL;
	struct elfrw_err *err = a ? plan(a, path, r) : &elfrw_err_nomem;
	if (!err) {
		icf_product_facts_of(a, facts);
		err = icf_rows_put_program(&rows, a, f->name, package, r->threads);
	}
	if (rows.f && fclose(rows.f) != 0 && !err)
		err = &elfrw_err_nomem;
	if (a)
		icf_audit_deinit(a);
	free(a);
	return err;
}

static struct elfrw_err *copy_rows(struct icf_product *p, FILE *f)
{
	for (uint32_t k = 0; k < p->file.len && !ferror(f); k++) {
		const struct icf_product_facts *x = &p->file.data[k].facts;
		if (p->file.data[k].state != ICF_FILE_DONE || !x->kept)
			continue;
		fwrite(icf_product_kept(p, k), 1, x->kept, f);
		fallocate(p->spool, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)x->spool,
			  (off_t)x->kept);
	}
	return ferror(f) ? elfrw_error_errno(errno, "cannot write the rows") : NULL;
}

struct elfrw_err *icf_rows_write(struct icf_product *p, const char *path, const char *package,
				 char **operand, int n, const struct icf_product_options *opt)
{
	struct elfrw_newfile file;
	struct icf_product_options own = *opt;
	struct reader r = { .base = { read_rows },
			    .package = package,
			    .threads = 1,
			    .csv = icf_rows_is_csv(path),
			    .no_sources = opt->audit.no_sources };
	own.reader = &r.base;
	/* One program has all processors and all memory. */
	if (n == 1 && !icf_product_takes(operand[0])) {
		r.threads = opt->audit.threads;
		own.memory = UINT64_MAX / 4;
	}
	ELFRW_TRY(elfrw_newfile_begin(&file, path, 0666));
	struct elfrw_err *err = icf_product_analyse(p, operand, n, &own);
	if (!err && icf_product_reads(p, path))
		err = elfrw_error("is an input and cannot be the rows too");
	if (err || !p->done) {
		elfrw_newfile_drop(&file);
		return err;
	}
	int fd = dup(file.fd);
	struct icf_rows rows = { .f = fd < 0 ? NULL : fdopen(fd, "w"), .csv = r.csv };
	if (!rows.f) {
		if (fd >= 0)
			close(fd);
		err = &elfrw_err_nomem;
	} else {
		icf_rows_head(&rows);
		err = copy_rows(p, rows.f);
		if (fclose(rows.f) != 0 && !err)
			err = elfrw_error_errno(errno, "cannot write the rows");
	}
	if (err) {
		elfrw_newfile_drop(&file);
		return err;
	}
	return elfrw_newfile_commit(&file);
}
