/* stack.c: see stack.h.
 *
 * dwr_callchain gives the function of each level; dwr_sym gives the frames of that function at the
 * address.  A return address belongs to the instruction before it, so lines are looked up one byte
 * earlier.  The address is shown as given.
 *
 * A level that is no address of the program (an invalid line, or an address in a library) stays in
 * the stack; it says nothing about the level inside.
 *
 * Cost: a few look-ups for each level; candidates are named only for undecided levels. */
#include "icf/cmd/stack.h"
#include "icf/cmd/cmd.h"
#include "dwarf/stack/callchain.h"
#include "dwarf/symbolize/symbolize.h"
#include "elfrw/arch/machine.h"
#include "elfrw/image.h"
#include "elfrw/arch/arch.h"
#include <ctype.h>
#include <errno.h>

struct level {
	uint64_t address; /* as given */
	char *bad;        /* owned: an invalid line; NULL: the level is an address */
};

struct icf_stack {
	const struct icf_sym_stack_in *in;
	struct elfrw_image code;
	struct elfrw_image
		debug; /* of the separate debug file, for this machine; sym owns its arrays */
	bool has_code;
	struct dwr_callchain *cc; /* NULL: no tables */
	struct dwr_chain chain;
	VEC(uint64_t) address; /* as linked, by level */
	VEC(const char *) candidate;
	struct dwr_sym_frames frames, scratch;
	struct icf_sym_merged merged; /* of the last answer */
	char *unknown;                /* the text for an unknown function with name_module; owned */
	bool warned;
};

/* Input from the command line or standard input. */
struct stacks {
	struct icf_stack *stack;
	VEC(struct level) level;
	VEC(uint64_t) address, vtable; /* as linked, by level */
};

static void warn(struct icf_stack *s, const char *text)
{
	if (s->warned)
		return;
	s->warned = true;
	icf_message(s->in->path, "%s", text);
}

/* Opens the tables for shared code.  A file without tables is looked up level by level. */
static struct elfrw_err *open_tables(struct icf_stack *s)
{
	struct elfrw_err *err = elfrw_image_open(&s->code, s->in->path);
	s->has_code = !err;
	if (err) { /* a machine, or a class, whose functions icfold does not fold: no tables to use
		    */
		bool memory = err == &elfrw_err_nomem;
		elfrw_err_free(err);
		return memory ? err : NULL;
	}
	bool apart;
	const struct elfrw_image *debug = dwr_sym_debug_image(s->in->sym, &apart);
	if (apart) {
		if (debug->ehdr.e_ident[EI_CLASS] != ELFCLASS64 ||
		    !elfrw_same_arch(&debug->ehdr, &s->code.ehdr))
			return NULL;
		s->debug = *debug;
		s->debug.arch = s->code.arch; /* sym handles all machines and does not set it */
	}
	err = dwr_callchain_open(&s->code, apart ? &s->debug : NULL, dwr_sym_debug_note(s->in->sym),
				 &s->cc);
	if (!err)
		return NULL;
	s->cc = NULL;
	if (err == &elfrw_err_nomem)
		return err;
	warn(s, elfrw_err_text(err));
	elfrw_err_free(err);
	return NULL;
}

/* Reads the hexadecimal number at *P and moves *P behind it. */
static bool parse_hex(const char **p, uint64_t *ret)
{
	const char *c = *p;
	if (c[0] == '0' && (c[1] == 'x' || c[1] == 'X'))
		c += 2;
	const char *start = c;
	uint64_t v = 0;
	for (; isxdigit((unsigned char)*c) && c - start < 16; c++)
		v = v << 4 |
		    (unsigned)(isdigit((unsigned char)*c) ? *c - '0'
							  : tolower((unsigned char)*c) - 'a' + 10);
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

static struct elfrw_err *candidate_name(struct icf_stack *s, const struct dwr_chain_member *m,
					uint64_t address, const char **ret)
{
	const struct icf_sym_stack_in *in = s->in;
	const struct dwr_icfold *note = dwr_sym_note(in->sym);
	if (m->member == UINT32_MAX || !note || m->member >= note->n_members)
		return dwr_sym_die_name(in->sym, m->die, in->flags, ret);
	const struct dwr_icfold_member *k = &note->member[m->member];
	if (k->n_names && !(in->flags & (DWR_SYM_SHORT_NAMES | DWR_SYM_NO_SYMTAB))) {
		const char *name = note->names[k->name];
		*ret = in->flags & DWR_SYM_DEMANGLE ? dwr_sym_demangle(in->sym, name) : name;
		return NULL;
	}
	ELFRW_TRY(dwr_sym_frames_for_member(in->sym, address, m->member, in->flags, &s->scratch));
	*ret = s->scratch.len ? s->scratch.data[s->scratch.len - 1].function : NULL;
	return NULL;
}

/* Without .debug_icfold a call site names its callee, which may have jumped on to other code.  Then
 * the call site does not decide the frame. */
static bool called_directly(const struct icf_stack *s, uint64_t site, uint64_t address)
{
	const struct elfrw_arch *arch = s->code.arch;
	const uint8_t *p =
		site >= arch->call_size
			? elfrw_image_at(&s->code, site - arch->call_size, arch->call_size)
			: NULL;
	struct dwr_sym_symbol a, b;
	struct elfrw_insn in;
	if (!p ||
	    arch->decode(p, arch->call_size, site - arch->call_size, &in) != arch->call_size ||
	    in.kind != ELFRW_INSN_CALL)
		return true;
	return dwr_sym_symbol_at(s->in->sym, in.target, &a) &&
	       dwr_sym_symbol_at(s->in->sym, address, &b) && a.address == b.address;
}

/* The frames of level I, and the result for shared code; *MERGED false: nothing to say. */
static struct elfrw_err *find_frames(struct icf_stack *s, size_t i, bool *merged,
				     struct icf_sym_merged *ret)
{
	const struct icf_sym_stack_in *in = s->in;
	const struct dwr_chain_frame *f = s->cc ? &s->chain.frame.data[i] : NULL;
	uint64_t at = s->address.data[i];
	if (i && at)
		at--;
	unsigned flags = in->flags;
	if (!in->inlines && in->style->output != ICF_SYM_GNU)
		flags |= DWR_SYM_NO_INLINES;
	*merged = f && f->merged &&
		  (dwr_callchain_note(s->cc) || called_directly(s, s->address.data[i + 1], at));
	const struct dwr_chain_member *m = *merged && f->n ? &s->chain.member.data[f->first] : NULL;
	if (m && f->decided && m->member != UINT32_MAX)
		ELFRW_TRY(dwr_sym_frames_for_member(in->sym, at, m->member, flags, &s->frames));
	else
		ELFRW_TRY(dwr_sym_frames(in->sym, at, flags, &s->frames));
	s->candidate.len = 0;
	for (uint32_t k = 0; m && k < f->n; k++) {
		const char **name = VEC_PUSH(&s->candidate);
		if (!name)
			return &elfrw_err_nomem;
		ELFRW_TRY(candidate_name(s, &m[k], at, name));
	}
	if (m && f->decided && m->member == UINT32_MAX && s->frames.len && s->candidate.data[0])
		s->frames.data[s->frames.len - 1].function = s->candidate.data[0];
	if (!in->inlines && s->frames.len > 1)
		s->frames.len = 1;
	if (*merged)
		*ret = (struct icf_sym_merged){ f->decided,
						dwr_chain_by_text((enum dwr_chain_by)f->by),
						s->candidate.data, s->candidate.len };
	return NULL;
}

/* In text, code without a name gets the name of its file. */
static struct elfrw_err *name_module(struct icf_stack *s)
{
	if (!s->unknown && asprintf(&s->unknown, "?? (%s)", s->in->path) < 0) {
		s->unknown = NULL;
		return &elfrw_err_nomem;
	}
	if (!s->frames.len) {
		struct dwr_sym_frame *f = VEC_PUSH(&s->frames);
		if (!f)
			return &elfrw_err_nomem;
		f->die = DWR_SYM_NO_DIE;
	}
	for (size_t i = 0; i < s->frames.len; i++)
		if (!s->frames.data[i].function)
			s->frames.data[i].function = s->unknown;
	return NULL;
}

struct elfrw_err *icf_stack_answer(struct icf_stack *s, size_t i, const uint64_t *shown,
				   struct icf_sym_answer *ret)
{
	const struct icf_sym_stack_in *in = s->in;
	bool merged = false;
	ELFRW_TRY(find_frames(s, i, &merged, &s->merged));
	if (in->name_module && in->style->output != ICF_SYM_JSON)
		ELFRW_TRY(name_module(s));
	*ret = (struct icf_sym_answer){ .module = in->path,
					.address = shown,
					.merged = merged ? &s->merged : NULL,
					.frame = s->frames.data,
					.n = s->frames.len };
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
	if (dwr_sym_warning(s->in->sym))
		warn(s, dwr_sym_warning(s->in->sym));
}

struct elfrw_err *icf_stack_resolve(struct icf_stack *s, const uint64_t *addr,
				    const uint64_t *vtable, size_t n)
{
	if (addr != s->address.data) {
		if (!VEC_RESERVE(&s->address, n))
			return &elfrw_err_nomem;
		if (n)
			memcpy(s->address.data, addr, n * sizeof *addr);
		s->address.len = n;
	}
	return s->cc ? dwr_callchain_resolve(s->cc, s->address.data, vtable, n, &s->chain) : NULL;
}

struct elfrw_err *icf_stack_open(const struct icf_sym_stack_in *in, struct icf_stack **ret)
{
	struct icf_stack *s = calloc(1, sizeof *s);
	if (!s)
		return &elfrw_err_nomem;
	s->in = in;
	struct elfrw_err *err = open_tables(s);
	if (err)
		icf_stack_close(s);
	else
		*ret = s;
	return err;
}

void icf_stack_close(struct icf_stack *s)
{
	if (!s)
		return;
	VEC_FREE(&s->address);
	VEC_FREE(&s->candidate);
	dwr_chain_deinit(&s->chain);
	dwr_sym_frames_deinit(&s->frames);
	dwr_sym_frames_deinit(&s->scratch);
	dwr_callchain_close(s->cc);
	if (s->has_code)
		elfrw_image_close(&s->code);
	free(s->unknown);
	free(s);
}

struct dwr_callchain *icf_stack_tables(const struct icf_stack *s)
{
	return s->cc;
}
const struct dwr_chain *icf_stack_chain(const struct icf_stack *s)
{
	return &s->chain;
}
const struct elfrw_image *icf_stack_image(const struct icf_stack *s)
{
	return &s->code;
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
	return l->bad ? NULL : icf_stack_print(s->stack, i, l->address, 1);
}

/* Prints and clears the current stack, if any. */
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
	fflush(stdout);
	for (size_t i = 0; i < n; i++)
		free(s->level.data[i].bad);
	s->level.len = s->address.len = s->vtable.len = 0;
	if (!err)
		icf_stack_warn(s->stack);
	return err;
}

static struct elfrw_err *read_stacks(struct stacks *s)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	struct elfrw_err *err = NULL;
	errno = 0;
	while (!err && (n = getline(&line, &cap, stdin)) >= 0) {
		while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r'))
			line[--n] = 0;
		err = *skip_space(line) ? add_level(s, line) : print_stack(s);
		errno = 0;
	}
	if (!err && !feof(stdin))
		err = elfrw_error_errno(errno, "cannot read standard input");
	free(line);
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
	VEC_FREE(&s.level);
	VEC_FREE(&s.address);
	VEC_FREE(&s.vtable);
	icf_stack_close(s.stack);
	return err;
}
