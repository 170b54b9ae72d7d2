/* names.c: see names.h.
 *
 * Sorted by their reversed texts, a text that ends another one stands right before it, or before
 * others that it ends as well.  Texts that stand for themselves are written in the order of the
 * input.  Cost: one sort.
 *
 * In a broken file every name may be as long as the file.  So only their last bytes are sorted by
 * (what is alike beyond these may be written twice), and what would be far larger than any table is
 * refused. */
#include "elfrw/names.h"
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

struct elfrw_err *elfrw_names(const char *const *name, size_t n, const uint8_t *head,
			      size_t head_size, uint32_t *off, uint8_t **ret, size_t *ret_size)
{
	struct text *text = malloc((n + 1) * sizeof *text);
	size_t *sorted_at = malloc((n + 1) * sizeof *sorted_at); /* by index in NAME */
	size_t n_texts = 0, size = head_size ? head_size : 1;
	if (!text || !sorted_at) {
		free(text);
		free(sorted_at);
		return &elfrw_err_nomem;
	}
	for (size_t i = 0; i < n; i++)
		if (name[i])
			text[n_texts++] = (struct text){ name[i], strlen(name[i]), i, 0 };
	qsort(text, n_texts, sizeof *text, reversed_order);
	for (size_t k = n_texts; k-- > 0;) {
		const struct text *next = k + 1 < n_texts ? &text[k + 1] : NULL;
		sorted_at[text[k].i] = k;
		text[k].in = next && text[k].len <= next->len &&
					     !memcmp(next->s + next->len - text[k].len, text[k].s,
						     text[k].len)
				     ? next->in
				     : k;
		if (text[k].in == k)
			size += text[k].len + 1;
	}
	uint8_t *out = size <= MAX_TABLE ? calloc(1, size) : NULL;
	if (!out) {
		free(text);
		free(sorted_at);
		return size > MAX_TABLE
			       ? elfrw_error("names of sections of more than %d bytes", MAX_TABLE)
			       : &elfrw_err_nomem;
	}
	size = head_size ? head_size : 1;
	if (head_size)
		memcpy(out, head, head_size);
	for (size_t i = 0; i < n; i++) {
		if (!name[i] || text[sorted_at[i]].in != sorted_at[i])
			continue;
		off[i] = (uint32_t)size;
		memcpy(out + size, name[i], text[sorted_at[i]].len + 1);
		size += text[sorted_at[i]].len + 1;
	}
	for (size_t i = 0; i < n; i++)
		if (name[i]) {
			const struct text *t = &text[sorted_at[i]], *in = &text[t->in];
			off[i] = off[in->i] + (uint32_t)(in->len - t->len);
		}
	free(text);
	free(sorted_at);
	*ret = out;
	*ret_size = size;
	return NULL;
}
