/* group.c: the lines that sanitizers write with names.
 *
 * For a place with inlined calls a sanitizer writes several lines, all with the same place: they
 * are one level of the stack.  But a function that calls itself gives levels of the same place,
 * too. So the debug information says how many lines a place has, if these have the names that it
 * says; otherwise equal lines are levels, and different ones calls inlined. */
#include "icf/cmd/log/state.h"

const struct icf_log_line *icf_log_inner(const struct icf_log *g, const struct icf_log_line *l,
					 size_t i)
{
	return i ? &g->inner.data[l->inner + i - 1] : l;
}

/* Can line B be of the place of A, the one before it? */
static bool same_place(const struct icf_log_line *a, const struct icf_log_line *b)
{
	return a->f.name.n && b->f.name.n && a->file != ICF_LOG_NO_FILE && a->file == b->file &&
	       a->address == b->address && b->f.n == a->f.n + 1;
}

/* Do N lines at L have the names of the frames in hand, over and over? */
static bool has_names(const struct icf_log *g, const struct icf_log_line *l, size_t n)
{
	bool are = g->frames.len && n % g->frames.len == 0;
	for (size_t i = 0; i < n && are; i++)
		are = icf_log_may_name(icf_log_at(g, &l[i], l[i].f.name), l[i].f.name.n,
				       g->frames.data[i % g->frames.len].function);
	return are;
}

/* Are N lines at L the first K of them, over and over? */
static bool repeats(const struct icf_log *g, const struct icf_log_line *l, size_t n, size_t k)
{
	bool are = n % k == 0;
	for (size_t i = k; i < n && are; i++)
		are = l[i].f.name.n == l[i - k].f.name.n &&
		      !memcmp(icf_log_at(g, &l[i], l[i].f.name),
			      icf_log_at(g, &l[i - k], l[i - k].f.name), l[i].f.name.n);
	return are;
}

/* How many of the N lines at L, all of one place, are one level? */
static struct elfrw_err *lines_of_level(struct icf_log *g, const struct icf_log_line *l, size_t n,
					size_t *ret)
{
	const unsigned flags = g->in->flags & ~(unsigned)DWR_SYM_NO_INLINES;
	*ret = 1;
	if (n == 1)
		return NULL;
	ELFRW_TRY(dwr_sym_frames(g->file.data[l->file]->sym, l->address, flags, &g->frames));
	if (has_names(g, l, n)) {
		*ret = g->frames.len;
		return NULL;
	}
	while (*ret < n && !repeats(g, l, n, *ret))
		++*ret;
	return NULL;
}

struct elfrw_err *icf_log_group(struct icf_log *g)
{
	size_t to = 0;
	for (size_t i = 0, n; i < g->line.len; i += n) {
		struct icf_log_line *l = &g->line.data[i];
		size_t k;
		for (n = 1; i + n < g->line.len && same_place(&l[n - 1], &l[n]);)
			n++;
		ELFRW_TRY(lines_of_level(g, l, n, &k));
		if (!VEC_RESERVE(&g->inner, g->inner.len + n))
			return &elfrw_err_nomem;
		for (size_t at = 0; at < n; at += k) {
			struct icf_log_line head = l[at];
			head.inner = (uint32_t)g->inner.len;
			head.n_inner = (uint32_t)(k - 1);
			memcpy(g->inner.data + g->inner.len, l + at + 1, (k - 1) * sizeof *l);
			g->inner.len += k - 1;
			g->line.data[to++] = head;
		}
	}
	g->line.len = to;
	return NULL;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

struct elfrw_err *icf_log_is_right(struct icf_log *g, const struct icf_log_line *l,
				   const struct icf_sym_answer *a, bool *ret)
{
	*ret = !a->merged;
	if (*ret || !a->merged->decided)
		return NULL;
	/* What is there is about the function that was kept: is that the one? */
	const uint64_t at = l->address - !l->pc;
	ELFRW_TRY(dwr_sym_frames(g->file.data[l->file]->sym, at, g->in->flags, &g->frames));
	*ret = a->n == g->frames.len;
	for (size_t i = 0; i < a->n && *ret; i++) {
		const struct dwr_sym_frame *x = &a->frame[i], *y = &g->frames.data[i];
		*ret = x->line == y->line && same_text(x->function, y->function) &&
		       same_text(x->file, y->file);
	}
	return NULL;
}
