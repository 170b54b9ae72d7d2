/* names.c: see names.h.
 *
 * The texts are sorted by their reversals, so a text that ends another one stands right before it,
 * or before others that it ends as well.  Texts that end no other are written in the order of the
 * input.  Cost: one sort.
 *
 * In a broken file every name may be as long as the file.  So the sort compares only the last bytes
 * of a name; names that are alike beyond these may be written twice.  A table that would be far
 * larger than any real one is refused. */
#include "elfrw/names.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { SORTED_BY = 256, MAX_TABLE = 1 << 28 };

struct text {
	const char *s;
	size_t len, i;
	size_t in; /* index, in the sorted array, of the text that this one ends; its own: none */
};

static int reversed_order(const void *a, const void *b)
{
	const struct text *x = a, *y = b;
	for (size_t k = 1; k <= x->len && k <= y->len && k <= SORTED_BY; k++)
		if (x->s[x->len - k] != y->s[y->len - k])
			return (unsigned char)x->s[x->len - k] < (unsigned char)y->s[y->len - k]
				       ? -1
				       : 1;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return x->i < y->i ? -1 : x->i > y->i; /* qsort() is not stable */
}

struct texts {
	struct text *text; /* sorted */
	size_t n;
	size_t *at; /* by index in the input: its place among the sorted texts */
};

/* Sorts the texts and finds for each the text that it ends.  Returns the total size of those that
 * end no other. */
static size_t arrange(struct texts *t, const char *const *name, size_t n)
{
	struct text *text = t->text;
	size_t size = 0;
	for (size_t i = 0; i < n; i++)
		if (name[i])
			text[t->n++] = (struct text){ name[i], strlen(name[i]), i, 0 };
	qsort(text, t->n, sizeof *text, reversed_order);
	for (size_t k = t->n; k-- > 0;) {
		const struct text *next = k + 1 < t->n ? &text[k + 1] : NULL;
		bool ends = next && text[k].len <= next->len &&
			    !memcmp(next->s + next->len - text[k].len, text[k].s, text[k].len);
		t->at[text[k].i] = k;
		text[k].in = ends ? next->in : k;
		if (!ends)
			size += text[k].len + 1;
	}
	return size;
}

/* Writes the texts behind the first AT bytes of OUT. */
static void write_texts(const struct texts *t, size_t n, uint8_t *out, size_t at, uint32_t *off)
{
	for (size_t i = 0; i < n; i++) {
		const struct text *x = t->at[i] == SIZE_MAX ? NULL : &t->text[t->at[i]];
		if (!x || x->in != t->at[i])
			continue;
		off[i] = (uint32_t)at;
		memcpy(out + at, x->s, x->len + 1);
		at += x->len + 1;
	}
	for (size_t k = 0; k < t->n; k++) {
		const struct text *x = &t->text[k], *in = &t->text[x->in];
		off[x->i] = off[in->i] + (uint32_t)(in->len - x->len);
	}
}

struct elfrw_err *elfrw_names(const char *const *name, size_t n, struct elfrw_name_head head,
			      uint32_t *off, struct elfrw_name_table *ret)
{
	struct texts t = { malloc((n + 1) * sizeof *t.text), 0, malloc((n + 1) * sizeof *t.at) };
	size_t first = head.size ? head.size : 1, size = first;
	struct elfrw_err *err = t.text && t.at ? NULL : &elfrw_err_nomem;
	if (!err) {
		memset(t.at, 0xff, (n + 1) * sizeof *t.at);
		size += arrange(&t, name, n);
		if (size > MAX_TABLE)
			err = elfrw_error("names of sections of more than %d bytes", MAX_TABLE);
	}
	uint8_t *out = err ? NULL : calloc(1, size);
	if (!err && !out)
		err = &elfrw_err_nomem;
	if (!err) {
		if (head.size)
			memcpy(out, head.data, head.size);
		write_texts(&t, n, out, first, off);
		*ret = (struct elfrw_name_table){ out, size };
	}
	free(t.text);
	free(t.at);
	return err;
}
