/* advice.c: see advice.h.
 *
 * One candidate of each kind, for the few files that give most of it: folding (--icf=safe, which
 * no program can notice), removing what is unused, linking with a library that has the code
 * already, sharing what two files have in common, and linking identical files. */
#include "icf/audit/product/advice.h"
#include "icf/audit/product/order.h"
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FEW 4 /* files of a command */

struct text {
	char *at;
	size_t left; /* with the final zero */
};

static void put(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct text *t, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	int n = vsnprintf(t->at, t->left, fmt, ap);
	va_end(ap);
	if (n > 0 && (size_t)n >= t->left)
		n = (int)t->left - 1;
	t->at += n > 0 ? n : 0;
	t->left -= n > 0 ? (size_t)n : 0;
}

/* S as one word of a shell. */
static void put_word(struct text *t, const char *s)
{
	if (*s && *s != '-' &&
	    strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-+=./:@%,") ==
		    strlen(s)) {
		put(t, "%s", s);
		return;
	}
	put(t, *s == '-' ? "./'" : "'");
	for (; *s; s++)
		if (*s == '\'')
			put(t, "'\\''");
		else
			put(t, "%c", *s);
	put(t, "'");
}

/* The file's name in a command: of a member, where it would be unpacked to. */
static const char *place(const struct icf_product_file *f)
{
	const char *colon = f->path ? NULL : strrchr(f->name, ':');
	return colon ? colon + 1 : f->name;
}

static uint64_t folding(const struct icf_product_file *f)
{
	return f->facts.saved[ICF_AUDIT_SAFE];
}

static uint64_t removing(const struct icf_product_file *f)
{
	return f->facts.unused;
}

/* The FEW files with most by MEASURE; their number. */
static unsigned best(const struct icf_product *p,
		     uint64_t (*measure)(const struct icf_product_file *), uint32_t id[FEW])
{
	unsigned n = 0;
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *f = &p->file.data[k];
		if (f->state != ICF_FILE_DONE || !measure(f))
			continue;
		unsigned at = n;
		while (at && measure(f) > measure(&p->file.data[id[at - 1]]))
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

static void advise_files(const struct icf_product *p, struct icf_product_advice *a, bool gc)
{
	uint64_t (*measure)(const struct icf_product_file *) = gc ? removing : folding;
	const char *option = gc ? "--gc-functions --icf=none" : "--icf=safe";
	uint32_t id[FEW];
	unsigned n = best(p, measure, id);
	struct text what = { a->what, sizeof a->what }, c = { a->command, sizeof a->command };
	for (unsigned k = 0; k < n; k++)
		a->bytes += measure(&p->file.data[id[k]]);
	put(&what, gc ? "Remove the functions that nothing uses, from "
		      : "Fold the identical functions in each of ");
	if (n == 1) {
		put(&what, "%s", p->file.data[id[0]].name);
		put(&c, "icfold %s ", option);
		put_word(&c, place(&p->file.data[id[0]]));
		put(&c, " -o folded");
		return;
	}
	put(&what, "the %u files that have most of them", n);
	put(&c, "for f in");
	for (unsigned k = 0; k < n; k++) {
		put(&c, " ");
		put_word(&c, place(&p->file.data[id[k]]));
	}
	put(&c, "; do icfold %s \"$f\" -o \"$f.folded\"; done", option);
}

static void advise_library(const struct icf_product *p, struct icf_product_advice *a)
{
	icf_product_rows rows = { 0 };
	struct text what = { a->what, sizeof a->what }, c = { a->command, sizeof a->command };
	struct elfrw_err *err = icf_product_table(p, ICF_BY_EXPORTER, &rows);
	elfrw_err_free(err);
	if (!err && rows.len) {
		const struct icf_product_row *r = &rows.data[0];
		const char *soname = icf_product_text(p, r->key, p->file.data[r->key].facts.soname);
		a->bytes = r->saving;
		put(&what,
		    "Link with %s, which exports %" PRIu32
		    " functions that other files have copies of",
		    soname ? soname : p->file.data[r->key].name, r->groups);
		put(&c, "cc ... -l:");
		put_word(&c, soname ? soname : "");
	}
	VEC_FREE(&rows);
}

static void advise_pair(const struct icf_product *p, struct icf_product_advice *a)
{
	struct text what = { a->what, sizeof a->what }, c = { a->command, sizeof a->command };
	if (!p->pair.len)
		return;
	const struct icf_product_pair *x = &p->pair.data[0];
	a->bytes = x->bytes;
	put(&what,
	    "Keep one copy, in a library, of the %" PRIu32 " functions that %s and %s both have",
	    x->functions, p->file.data[x->a].name, p->file.data[x->b].name);
	put(&c, "icfold audit --full-names ");
	put_word(&c, place(&p->file.data[x->a]));
	put(&c, " ");
	put_word(&c, place(&p->file.data[x->b]));
}

static void advise_copies(const struct icf_product *p, struct icf_product_advice *a)
{
	struct text what = { a->what, sizeof a->what }, c = { a->command, sizeof a->command };
	const struct icf_product_file *largest = NULL;
	uint32_t n = 0;
	for (size_t k = 0; k < p->file.len; k++) {
		const struct icf_product_file *f = &p->file.data[k];
		const struct icf_product_file *of =
			f->state == ICF_FILE_COPY ? &p->file.data[f->copy_of] : NULL;
		if (!of || f->size != of->size ||
		    (f->path && f->dev == of->dev && f->ino == of->ino))
			continue;
		n++;
		a->bytes += f->size;
		if (!largest || f->size > largest->size)
			largest = f;
	}
	if (!n)
		return;
	put(&what,
	    "Make links of the files that are copies of others (%" PRIu32 "); the largest is %s", n,
	    largest->name);
	put(&c, "ln -f ");
	put_word(&c, place(&p->file.data[largest->copy_of]));
	put(&c, " ");
	put_word(&c, place(largest));
}

static int advice_order(const void *a, const void *b)
{
	const struct icf_product_advice *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->what, y->what);
}

unsigned icf_product_advise(const struct icf_product *p, struct icf_product_advice *ret)
{
	struct icf_product_advice *all = calloc(5, sizeof *all);
	unsigned n = 0;
	if (!all)
		return 0;
	advise_files(p, &all[0], false);
	advise_files(p, &all[1], true);
	advise_library(p, &all[2]);
	advise_pair(p, &all[3]);
	advise_copies(p, &all[4]);
	qsort(all, 5, sizeof *all, advice_order);
	while (n < ICF_PRODUCT_ADVICE && all[n].bytes) {
		ret[n] = all[n];
		n++;
	}
	free(all);
	return n;
}
