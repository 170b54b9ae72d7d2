/* advice.c: see advice.h.
 *
 * One candidate of each kind, for the few files that give most of it: folding (--icf=safe, which
 * no program can notice), removing what is unused, linking with a library that has the code
 * already, sharing what two files have in common, and linking identical files. */
#include "icf/audit/product/advice.h"
#include "icf/audit/product/order.h"
#include <inttypes.h>
#include <string.h>

#define FEW        4 /* files of a command */
#define SONAME_MAX 1024

/* The file's name in a command: of a member, where it would be unpacked to. */
static const char *place(const struct icf_product_file *f)
{
	const char *colon = f->path ? NULL : strrchr(f->name, ':');
	return colon ? colon + 1 : f->name;
}

typedef uint64_t (*measure_fn)(const struct icf_product *, const struct icf_product_file *);

static uint64_t folding(const struct icf_product *p, const struct icf_product_file *f)
{
	(void)p;
	return f->state == ICF_FILE_DONE ? f->facts.saved[ICF_AUDIT_SAFE] : 0;
}

static uint64_t removing(const struct icf_product *p, const struct icf_product_file *f)
{
	(void)p;
	return f->state == ICF_FILE_DONE ? f->facts.unused : 0;
}

/* The FEW files with most by MEASURE; their number. */
static unsigned best(const struct icf_product *p, measure_fn measure, uint32_t id[FEW])
{
	unsigned n = 0;
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *f = &p->file.data[k];
		if (!measure(p, f))
			continue;
		unsigned at = n;
		while (at && measure(p, f) > measure(p, &p->file.data[id[at - 1]]))
			at--;
		if (at == FEW)
			continue;
		if (n < FEW)
			n++;
		memmove(id + at + 1, id + at, (n - at - 1) * sizeof *id);
		id[at] = (uint32_t)k;
	}
	return n;
}

static void advise_files(const struct icf_product *p, struct icf_advice *a, bool gc)
{
	measure_fn measure = gc ? removing : folding;
	const char *option = gc ? "--gc-functions --icf=none" : "--icf=safe";
	uint32_t id[FEW];
	unsigned n = best(p, measure, id);
	for (unsigned k = 0; k < n; k++)
		a->bytes += measure(p, &p->file.data[id[k]]);
	icf_advice_what(a, gc ? "Remove the functions that nothing uses, from "
			      : "Fold the identical functions ");
	if (n == 1) {
		icf_advice_what(a, gc ? "%s" : "in %s", p->file.data[id[0]].name);
		icf_advice_command(a, "icfold %s", option);
		icf_advice_word(a, place(&p->file.data[id[0]]));
		icf_advice_command(a, " -o folded");
		return;
	}
	icf_advice_what(a,
			gc ? "the %u files that have most of them"
			   : "in each of the %u files that have most of them",
			n);
	icf_advice_command(a, "for f in");
	for (unsigned k = 0; k < n; k++)
		icf_advice_word(a, place(&p->file.data[id[k]]));
	icf_advice_command(a, "; do icfold %s \"$f\" -o \"$f.folded\"; done", option);
}

static void advise_library(const struct icf_product *p, struct icf_advice *a)
{
	icf_product_rows rows = { 0 };
	struct elfrw_err *err = icf_product_table(p, ICF_BY_EXPORTER, &rows);
	elfrw_err_free(err);
	if (!err && rows.len) {
		const struct icf_product_row *r = &rows.data[0];
		const char *soname = icf_product_text(p, r->key, p->file.data[r->key].facts.soname);
		a->bytes = r->saving;
		icf_advice_what(a,
				"Link with %s, which exports %" PRIu32
				" functions that other files have copies of",
				soname ? soname : p->file.data[r->key].name, r->groups);
		char file[SONAME_MAX + 1];
		snprintf(file, sizeof file, ":%s", soname ? soname : "");
		icf_advice_command(a, "cc ... -l");
		icf_advice_word(a, file);
	}
	VEC_FREE(&rows);
}

static void advise_pair(const struct icf_product *p, struct icf_advice *a)
{
	if (!p->pair.len)
		return;
	const struct icf_product_pair *x = &p->pair.data[0];
	a->bytes = x->bytes;
	icf_advice_what(a,
			"Keep one copy, in a library, of the %" PRIu32
			" functions that %s and %s both have",
			x->functions, p->file.data[x->a].name, p->file.data[x->b].name);
	icf_advice_command(a, "icfold audit --full-names");
	icf_advice_word(a, place(&p->file.data[x->a]));
	icf_advice_word(a, place(&p->file.data[x->b]));
}

/* Can a link lead from A to B?  Both are files, or members of the same archive. */
static bool together(const struct icf_product_file *a, const struct icf_product_file *b)
{
	size_t n = (size_t)(place(a) - a->name);
	if (a->path || b->path)
		return a->path && b->path;
	return n == (size_t)(place(b) - b->name) && memcmp(a->name, b->name, n) == 0;
}

/* The bytes that are saved if all names of F become links to the file that it is a copy of. */
static uint64_t linking(const struct icf_product *p, const struct icf_product_file *f)
{
	const struct icf_product_file *of =
		f->state == ICF_FILE_COPY ? &p->file.data[f->copy_of] : NULL;
	if (!of || !together(f, of) || f->size != of->size ||
	    memcmp(f->facts.content, of->facts.content, sizeof f->facts.content) != 0 ||
	    f->same_as != ICF_NONE)
		return 0;
	return f->size;
}

static void advise_copies(const struct icf_product *p, struct icf_advice *a)
{
	uint32_t id[FEW], n_all = 0;
	unsigned n = best(p, linking, id);
	for (size_t k = 0; k < p->file.len; k++)
		n_all += linking(p, &p->file.data[k]) != 0;
	for (unsigned k = 0; k < n; k++) {
		const struct icf_product_file *f = &p->file.data[id[k]];
		a->bytes += f->size;
		for (size_t n_names = 0, j = id[k]; j < p->file.len; j++) {
			if (j != id[k] && p->file.data[j].same_as != id[k])
				continue;
			icf_advice_command(a, k || n_names++ ? " && ln -f" : "ln -f");
			icf_advice_word(a, place(&p->file.data[f->copy_of]));
			icf_advice_word(a, place(&p->file.data[j]));
		}
	}
	if (n < n_all)
		icf_advice_what(a,
				"Make links of the %u largest of the %" PRIu32
				" files that are copies of others",
				n, n_all);
	else
		icf_advice_what(a, n == 1 ? "Make a link of the file that is a copy of another"
					  : "Make links of the files that are copies of others");
}

unsigned icf_product_advise(const struct icf_product *p, struct icf_advice *ret)
{
	struct icf_advice all[5] = { 0 };
	advise_files(p, &all[0], false);
	advise_files(p, &all[1], true);
	advise_library(p, &all[2]);
	advise_pair(p, &all[3]);
	advise_copies(p, &all[4]);
	return icf_advice_best(all, 5, ret);
}
