/* stack.c: see stack.h.  dwarf/stack/lookup.h finds the functions.  The address is shown as given.
 *
 * A level that is no address of the program (an invalid line, or an address in a library) stays in
 * the stack; it says nothing about the level inside. */
#include "icf/cmd/sym/stack.h"
#include "dwarf/stack/lookup.h"
#include "elfrw/base/memstream.h"
#include "elfrw/base/vec.h"
#include "icf/cmd/cmd.h"
#include "icf/cmd/sym/input.h"
#include <ctype.h>

struct level {
	uint64_t address; /* as given */
	char *bad;        /* owned: an invalid line; NULL: the level is an address */
};

struct icf_stack {
	const struct icf_sym_stack_in *in;
	struct dwr_lookup *lookup;
	struct dwr_sym_frames *frames; /* of the last answer; borrowed */
	struct icf_sym_merged merged;  /* the same */
	char *unknown; /* the text for an unknown function with name_module; owned */
	bool warned;
};

/* What is printed for a level, each time it comes up. */
struct text {
	char *data; /* owned; NULL: not known yet */
	size_t size;
};

#define MAX_TEXT ((size_t)64 << 20) /* bytes of text that are kept */

/* Input from the command line or standard input. */
struct stacks {
	struct icf_stack *stack;
	VEC(struct level) level;
	VEC(struct text) text; /* by dwr_lookup_same() */
	size_t text_bytes;
	VEC(uint64_t) address, vtable; /* as linked, by level */
};

/* Reads the hexadecimal number at *P and moves *P behind it. */
static bool parse_hex(const char **p, uint64_t *ret)
{
	const char *c = *p;
	if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	const char *start = c;
	uint64_t v = 0;
	for (; c - start < 16; c++) {
		unsigned digit = (unsigned)(unsigned char)*c - '0', letter = (*c | 32u) - 'a';
		if (digit > 9 && letter > 5)
			break;
		v = v << 4 | (digit <= 9 ? digit : letter + 10);
	}
	*p = c;
	*ret = v;
	return c > start;
}

static const char *skip_space(const char *p)
{
	while (isspace((unsigned char)*p))
		p++;
	return p;
}

/* ADDRESS[[,] vtable=ADDRESS] */
static bool parse_level(const char *text, uint64_t *address, uint64_t *vtable)
{
	const char *p = skip_space(text);
	*vtable = 0;
	if (!parse_hex(&p, address) || (*p && *p != ',' && !isspace((unsigned char)*p)))
		return false;
	p = skip_space(p);
	if (!*p)
		return true;
	if (*p == ',')
		p = skip_space(p + 1);
	if (strncmp(p, "vtable=", 7))
		return false;
	p += 7;
	return parse_hex(&p, vtable) && !*skip_space(p);
}

static struct elfrw_err *add_level(struct stacks *s, const char *text)
{
	struct level *l = VEC_PUSH(&s->level);
	uint64_t *address = VEC_PUSH(&s->address), *vtable = VEC_PUSH(&s->vtable);
	if (!l || !address || !vtable)
		return &elfrw_err_nomem;
	if (parse_level(text, &l->address, vtable)) {
		*address = l->address - s->stack->in->adjust;
		*vtable -= *vtable ? s->stack->in->adjust : 0;
		return NULL;
	}
	*vtable = 0;
	l->bad = strdup(text);
	return l->bad ? NULL : &elfrw_err_nomem;
}

/* The frames of level I, and the result for shared code; *MERGED false: nothing to say. */
static struct elfrw_err *find_frames(struct icf_stack *s, size_t i, bool *merged)
{
	const struct icf_sym_stack_in *in = s->in;
	unsigned flags = in->flags;
	struct dwr_level l;
	if (!in->inlines && in->style->output != ICF_SYM_GNU)
		flags |= DWR_SYM_NO_INLINES;
	ELFRW_TRY(dwr_lookup_level(s->lookup, i, flags, &l));
	s->frames = l.frames;
	if (!in->inlines && l.frames->len > 1)
		l.frames->len = 1;
	*merged = l.merged;
	s->merged = (struct icf_sym_merged){ l.decided, l.by, l.candidate, l.n_candidates };
	return NULL;
}

/* In text, code without a name gets the name of its file. */
static struct elfrw_err *name_module(struct icf_stack *s)
{
	if (!s->unknown && asprintf(&s->unknown, "?? (%s)", s->in->path) < 0) {
		s->unknown = NULL;
		return &elfrw_err_nomem;
	}
	if (!s->frames->len) {
		struct dwr_sym_frame *f = VEC_PUSH(s->frames);
		if (!f)
			return &elfrw_err_nomem;
		f->die = DWR_SYM_NO_DIE;
	}
	for (size_t i = 0; i < s->frames->len; i++)
		if (!s->frames->data[i].function)
			s->frames->data[i].function = s->unknown;
	return NULL;
}

struct elfrw_err *icf_stack_answer(struct icf_stack *s, size_t i, const uint64_t *shown,
				   struct icf_sym_answer *ret)
{
	const struct icf_sym_stack_in *in = s->in;
	bool merged = false;
	ELFRW_TRY(find_frames(s, i, &merged));
	if (in->name_module && in->style->output != ICF_SYM_JSON)
		ELFRW_TRY(name_module(s));
	*ret = (struct icf_sym_answer){ .module = in->path,
					.address = shown,
					.merged = merged ? &s->merged : NULL,
					.frame = s->frames->data,
					.n = s->frames->len };
	return NULL;
}

struct elfrw_err *icf_stack_print(struct icf_stack *s, size_t i, uint64_t shown, unsigned depth)
{
	struct icf_sym_answer a;
	ELFRW_TRY(icf_stack_answer(s, i, &shown, &a));
	icf_sym_print(stdout, s->in->style, &a, depth);
	return NULL;
}

void icf_stack_warn(struct icf_stack *s)
{
	const char *text = dwr_lookup_warning(s->lookup);
	if (!text || s->warned)
		return;
	s->warned = true;
	icf_message(s->in->path, "%s", text);
}

struct elfrw_err *icf_stack_resolve(struct icf_stack *s, const uint64_t *addr,
				    const uint64_t *vtable, size_t n)
{
	return dwr_lookup_resolve(s->lookup, addr, vtable, n);
}

struct elfrw_err *icf_stack_open(const struct icf_sym_stack_in *in, struct icf_stack **ret)
{
	struct icf_stack *s = calloc(1, sizeof *s);
	if (!s)
		return &elfrw_err_nomem;
	s->in = in;
	struct elfrw_err *err = dwr_lookup_open(in->sym, in->path, &s->lookup);
	if (err) {
		icf_stack_close(s);
		return err;
	}
	icf_stack_warn(s);
	*ret = s;
	return NULL;
}

void icf_stack_close(struct icf_stack *s)
{
	if (!s)
		return;
	dwr_lookup_close(s->lookup);
	free(s->unknown);
	free(s);
}

struct dwr_callchain *icf_stack_tables(const struct icf_stack *s)
{
	return dwr_lookup_tables(s->lookup);
}
const struct dwr_chain *icf_stack_chain(const struct icf_stack *s)
{
	return dwr_lookup_chain(s->lookup);
}
const struct elfrw_image *icf_stack_image(const struct icf_stack *s)
{
	return dwr_lookup_image(s->lookup);
}

/* Prints level I, at the address SHOWN, to a text that the caller owns. */
static struct elfrw_err *make_text(struct stacks *s, size_t i, uint64_t shown, struct text *ret)
{
	struct icf_sym_answer a;
	ELFRW_TRY(icf_stack_answer(s->stack, i, &shown, &a));
	FILE *f = open_memstream(&ret->data, &ret->size);
	if (!f)
		return &elfrw_err_nomem;
	icf_sym_print(f, s->stack->in->style, &a, 1);
	return elfrw_memstream_close(f, &ret->data) ? NULL : &elfrw_err_nomem;
}

static struct elfrw_err *print_address(struct stacks *s, size_t i, uint64_t shown)
{
	uint32_t k = dwr_lookup_same(s->stack->lookup, i);
	if (k != DWR_MEMO_NONE)
		while (s->text.len <= k)
			if (!VEC_PUSH(&s->text))
				return &elfrw_err_nomem;
	struct text *t = k == DWR_MEMO_NONE ? NULL : &s->text.data[k];
	if (t && !t->data && s->text_bytes < MAX_TEXT) {
		ELFRW_TRY(make_text(s, i, shown, t));
		s->text_bytes += t->size;
	}
	if (!t || !t->data)
		return icf_stack_print(s->stack, i, shown, 1);
	fwrite_unlocked(t->data, 1, t->size, stdout);
	return NULL;
}

static struct elfrw_err *print_level(struct stacks *s, size_t i)
{
	const struct icf_sym_stack_in *in = s->stack->in;
	const struct level *l = &s->level.data[i];
	bool json = in->style->output == ICF_SYM_JSON;
	if (json && i)
		putchar(',');
	if (json && in->style->pretty)
		fputs("\n  ", stdout);
	if (l->bad && json) {
		struct icf_sym_answer a = { .module = in->path,
					    .symbol = l->bad,
					    .error = "unable to parse arguments" };
		icf_sym_print(stdout, in->style, &a, 1);
	} else if (l->bad)
		icf_sym_print_line(stdout, l->bad);
	return l->bad ? NULL : print_address(s, i, l->address);
}

/* Prints and clears the current stack, if any.  Whoever waits for more input flushes the output. */
static struct elfrw_err *print_stack(struct stacks *s)
{
	size_t n = s->level.len;
	const struct icf_sym_style *style = s->stack->in->style;
	bool json = style->output == ICF_SYM_JSON;
	if (!n)
		return NULL;
	struct elfrw_err *err = icf_stack_resolve(s->stack, s->address.data, s->vtable.data, n);
	if (json && !err)
		putchar('[');
	for (size_t i = 0; i < n && !err; i++)
		err = print_level(s, i);
	if (!err)
		puts(!json ? "" : style->pretty ? "\n]" : "]");
	for (size_t i = 0; i < n; i++)
		free(s->level.data[i].bad);
	s->level.len = s->address.len = s->vtable.len = 0;
	if (!err)
		icf_stack_warn(s->stack);
	return err;
}

static struct elfrw_err *read_stacks(struct stacks *s)
{
	struct icf_input in = { 0 };
	struct elfrw_err *err = NULL;
	while (!err && !in.end) {
		err = icf_input_more(&in);
		if (!err && !in.end && icf_input_waits())
			dwr_sym_expect_many(s->stack->in->sym);
		for (char *line; !err && (line = icf_input_line(&in));)
			err = *skip_space(line) ? add_level(s, line) : print_stack(s);
	}
	icf_input_deinit(&in);
	return err ? err : print_stack(s);
}

struct elfrw_err *icf_sym_stacks(const struct icf_sym_stack_in *in, char **arg, int n)
{
	struct stacks s = { 0 };
	struct elfrw_err *err = icf_stack_open(in, &s.stack);
	for (int i = 0; i < n && !err; i++)
		err = add_level(&s, arg[i]);
	if (!err)
		err = n ? print_stack(&s) : read_stacks(&s);
	for (size_t i = 0; i < s.level.len; i++)
		free(s.level.data[i].bad);
	for (size_t i = 0; i < s.text.len; i++)
		free(s.text.data[i].data);
	VEC_FREE(&s.text);
	VEC_FREE(&s.level);
	VEC_FREE(&s.address);
	VEC_FREE(&s.vtable);
	icf_stack_close(s.stack);
	return err;
}
