/* name.c: cuts demangled names (Itanium C++ as the symbolizer spells them, Rust, plain C) into
 * their parts.
 *
 * One scan from the left with a stack of brackets.  Demangled names have no strict grammar, so a
 * name that does not balance is one part, and nothing here can fail. */
#include "icf/audit/name.h"
#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_NEST 200

static bool ident(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

static bool starts(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

/* The length of the operator name at S[I] ("operator<<"); 0: there is none.  A template argument
 * list may follow "operator<" directly: "operator<<int>(...)" is operator< of int. */
static size_t operator_length(const char *s, size_t i)
{
	static const char *const symbol[] = { "()", "[]", "->*", "->", "<=>", "<<=", ">>=",
					      "<=", ">=", ">>",  "<<", ">",   "<" };
	const char *p = s + i;
	if (p[0] != 'o' || (i && ident(s[i - 1])) || !starts(p, "operator"))
		return 0;
	p += 8;
	for (size_t k = 0; k < sizeof symbol / sizeof *symbol; k++) {
		size_t n = strlen(symbol[k]);
		if (!starts(p, symbol[k]))
			continue;
		if (strcmp(symbol[k], "<<") == 0 && p[2] != '(' && p[2] != '<')
			continue;
		return 8 + n;
	}
	return ident(*p) ? 0 : 8;
}

/* The index behind the group of brackets that opens at S[I]; 0: the group does not close. */
static size_t skip_group(const char *s, size_t i)
{
	char open[MAX_NEST];
	unsigned depth = 0;
	for (; s[i]; i++) {
		size_t op = operator_length(s, i);
		if (op) {
			i += op - 1;
			continue;
		}
		switch (s[i]) {
		case '<':
		case '(':
		case '[':
		case '{':
			if (depth == MAX_NEST)
				return 0;
			open[depth++] = s[i];
			break;
		case '>':
			if (i && s[i - 1] == '-')
				break;
			if (depth && open[depth - 1] == '<')
				depth--;
			break;
		case ')':
		case ']':
		case '}':
			/* A '<' that is still open was a comparison. */
			while (depth && open[depth - 1] == '<')
				depth--;
			if (!depth)
				return 0;
			depth--;
			break;
		default: break;
		}
		if (!depth)
			return i + 1;
	}
	return 0;
}

/* The index behind the qualifiers of a member function at S[I]. */
static size_t skip_qualifiers(const char *s, size_t i, bool *is_const)
{
	static const char *const word[] = { " const", " volatile", " restrict", " noexcept",
					    " &&",    " &",        "&&",        "&" };
	for (bool again = true; again;) {
		again = false;
		for (size_t k = 0; k < sizeof word / sizeof *word && !again; k++)
			if (starts(s + i, word[k]) && !ident(s[i + strlen(word[k])])) {
				*is_const |= k == 0;
				i += strlen(word[k]);
				again = true;
			}
	}
	return i;
}

static void whole(struct icf_name *name)
{
	name->n = 1;
	name->part[0].begin = 0;
	name->part[0].end = name->clone = strlen(name->text);
}

/* A plain symbol: the suffix that compilers append begins at the first dot. */
static void plain(struct icf_name *name)
{
	whole(name);
	const char *dot = strchr(name->text, '.');
	if (dot && dot > name->text)
		name->part[0].end = name->clone = (size_t)(dot - name->text);
}

/* Is the part [BEGIN, END) Rust's "h0123456789abcdef"? */
static bool is_rust_hash(const char *s, size_t begin, size_t end)
{
	if (end - begin != 17 || s[begin] != 'h')
		return false;
	for (size_t i = begin + 1; i < end; i++)
		if (!isxdigit((unsigned char)s[i]) || isupper((unsigned char)s[i]))
			return false;
	return true;
}

/* The state of the scan: the position, and what was found. */
struct scan {
	struct icf_name *name;
	const char *s;
	size_t i;
	size_t begin, end; /* of the last part; END is SIZE_MAX while it is unknown */
	bool after_operator;
};

/* The result of one step. */
enum step { STEP_ON, STEP_END, STEP_BROKEN };

/* Scans behind "operator": all of "operator new", or of a conversion, up to the parameters. */
static enum step scan_operator(struct scan *x, size_t length)
{
	const char *s = x->s;
	x->i += length;
	x->after_operator = true;
	while (length == 8 && s[x->i] && s[x->i] != '(') {
		bool group = s[x->i] == '<' || s[x->i] == '[' || s[x->i] == '{';
		size_t to = group ? skip_group(s, x->i) : x->i + 1;
		if (!to)
			return STEP_BROKEN;
		x->i = to;
	}
	return STEP_ON;
}

static bool is_clone(const char *s)
{
	return starts(s, " (.") || starts(s, " [clone");
}

/* Scans a group in brackets.  Parameters with nothing behind them end the name. */
static enum step scan_group(struct scan *x)
{
	const char *s = x->s;
	size_t to = skip_group(s, x->i);
	bool is_const = false, round = s[x->i] == '(';
	if (!to)
		return STEP_BROKEN;
	size_t more = round ? skip_qualifiers(s, to, &is_const) : to;
	if (round && (!s[more] || is_clone(s + more))) {
		x->end = x->i;
		x->name->is_const = is_const;
		x->name->clone = more;
		return STEP_END;
	}
	x->i = starts(s + more, "::") ? more : to;
	return STEP_ON;
}

/* At "::": a part ends. */
static enum step scan_part(struct scan *x)
{
	struct icf_name *name = x->name;
	if (name->n + 1 == ICF_NAME_PARTS)
		return STEP_BROKEN;
	name->part[name->n].begin = x->begin;
	name->part[name->n++].end = x->i;
	x->begin = x->i += 2;
	x->after_operator = false;
	return STEP_ON;
}

static enum step scan_step(struct scan *x)
{
	const char *s = x->s;
	size_t i = x->i, op = operator_length(s, i);
	if (op)
		return scan_operator(x, op);
	if (is_clone(s + i)) {
		x->name->clone = i;
		return STEP_END;
	}
	if (starts(s + i, "(anonymous namespace)")) {
		x->i += 21;
		return STEP_ON;
	}
	if (s[i] == '\'') {
		const char *close = strchr(s + i + 1, '\'');
		x->i = close ? (size_t)(close - s) + 1 : i + 1;
		return STEP_ON;
	}
	if (s[i] == '(' || s[i] == '<' || s[i] == '[' || s[i] == '{')
		return scan_group(x);
	if (s[i] == ':' && s[i + 1] == ':')
		return scan_part(x);
	if (s[i] == ' ' && !x->after_operator) {
		x->name->thunk |= i >= 8 && strncmp(s + i - 8, "thunk to", 8) == 0;
		x->name->n = 0;
		x->begin = i + 1;
	}
	x->i++;
	return STEP_ON;
}

void icf_name_parse(struct icf_name *name, const char *text)
{
	*name = (struct icf_name){ .text = text };
	if (!strpbrk(text, " (<:")) {
		plain(name);
		return;
	}
	name->clone = strlen(text);
	struct scan x = { .name = name, .s = text, .end = SIZE_MAX };
	enum step step = STEP_ON;
	while (step == STEP_ON && text[x.i])
		step = scan_step(&x);
	if (x.end == SIZE_MAX)
		x.end = name->clone;
	if (step == STEP_BROKEN || x.begin >= x.end) {
		whole(name);
		return;
	}
	if (name->n && is_rust_hash(text, x.begin, x.end))
		return;
	name->part[name->n].begin = x.begin;
	name->part[name->n++].end = x.end;
}

size_t icf_name_base(const struct icf_name *name, unsigned part)
{
	size_t begin = name->part[part].begin, i = begin, end = name->part[part].end;
	size_t op = operator_length(name->text, i);
	i += op;
	if (i == begin && (name->text[i] == '<' || name->text[i] == '('))
		return end - begin;
	while (i < end && name->text[i] != '<' && name->text[i] != '(')
		i++;
	return i - begin;
}

struct out {
	char *buf;
	size_t size, len; /* len: the length without the limit */
};

static void put(struct out *o, const char *s, size_t n)
{
	for (size_t i = 0; i < n; i++, o->len++)
		if (o->len + 1 < o->size)
			o->buf[o->len] = s[i];
	o->buf[o->len < o->size ? o->len : o->size - 1] = 0;
}

static void puts_to(struct out *o, const char *s)
{
	put(o, s, strlen(s));
}

/* The end of the template argument at I, if it is a default argument of the standard library or
 * LLVM; else 0. */
static size_t default_argument(const char *s, size_t i, size_t end)
{
	static const char *const type[] = { "std::allocator<",     "std::char_traits<",
					    "std::less<",          "std::default_delete<",
					    "std::hash<",          "std::equal_to<",
					    "llvm::DenseMapInfo<", "llvm::detail::DenseMapPair<" };
	for (size_t k = 0; k < sizeof type / sizeof *type; k++) {
		if (!starts(s + i, type[k]))
			continue;
		size_t to = skip_group(s, i + strlen(type[k]) - 1);
		if (!to || to > end)
			return 0;
		if (starts(s + to, ", void>") && k == 6)
			to += 6;
		return s[to] == '>' || s[to] == ',' ? to : 0;
	}
	return 0;
}

/* Writes [BEGIN, END) with template arguments to DEPTH levels, and about BUDGET columns of each
 * outermost argument list. */
static void render(struct out *o, const char *s, size_t begin, size_t end, unsigned depth,
		   size_t budget)
{
	unsigned level = 0;
	/* Rust: "<Vec<T> as Drop>::drop" begins with a type. */
	depth += begin < end && s[begin] == '<';
	size_t list = 0,
	       list_end =
		       0; /* where the outermost list begins in the output and ends in the input */
	for (size_t i = begin; i < end;) {
		if (level && list_end && o->len - list >= budget && i + 4 < list_end) {
			puts_to(o, "...>");
			i = list_end;
			level = 0;
			continue;
		}
		size_t op = operator_length(s, i);
		if (op) {
			put(o, s + i, op);
			i += op;
			continue;
		}
		if (s[i] == '<' && level >= depth) {
			size_t to = skip_group(s, i);
			if (to && to <= end) {
				puts_to(o, "<...>");
				i = to;
				continue;
			}
		}
		if (s[i] == '(' && level == 0 && !starts(s + i, "(anonymous namespace)")) {
			size_t to = skip_group(s, i);
			if (to && to <= end) {
				puts_to(o, "()");
				i = to;
				continue;
			}
		}
		if (s[i] == '<' && level++ == 0) {
			list = o->len;
			list_end = skip_group(s, i);
			if (list_end > end)
				list_end = 0;
		} else if (s[i] == '>' && level && s[i - 1] != '-')
			level--;
		if (s[i] == ',' && level && s[i + 1] == ' ') {
			size_t to = default_argument(s, i + 2, end);
			if (to) {
				i = to;
				continue;
			}
		}
		put(o, s + i, 1);
		i++;
	}
}

/* Replaces FROM by TO in place; TO is not longer. */
static void replace(char *s, const char *from, const char *to)
{
	size_t nf = strlen(from), nt = strlen(to);
	for (char *p = s; (p = strstr(p, from)); p += nt) {
		memcpy(p, to, nt);
		memmove(p + nt, p + nf, strlen(p + nf) + 1);
	}
}

/* How much of template arguments is shown. */
struct detail {
	unsigned depth; /* of nested lists */
	size_t budget;  /* bytes for each outermost list */
};

static void put_parts(const struct icf_name *name, unsigned from, unsigned to, struct detail detail,
		      char *buf, size_t size)
{
	struct out o = { buf, size, 0 };
	buf[0] = 0;
	for (unsigned p = from; p < to; p++) {
		if (p > from)
			puts_to(&o, "::");
		render(&o, name->text, name->part[p].begin, name->part[p].end, detail.depth,
		       detail.budget);
	}
	replace(buf, "std::__cxx11::basic_string<char>", "std::string");
	replace(buf, "std::basic_string_view<char>", "std::string_view");
	replace(buf, "std::__cxx11::", "std::");
}

void icf_name_parts(const struct icf_name *name, unsigned from, unsigned to, unsigned depth,
		    char *buf, size_t size)
{
	put_parts(name, from, to, (struct detail){ depth, SIZE_MAX }, buf, size);
}

bool icf_name_class(const struct icf_name *n, char *buf, size_t size)
{
	if (n->n < 2)
		return false;
	unsigned last = n->n - 1;
	size_t len = icf_name_base(n, last);
	const char *own = n->text + n->part[last].begin, *scope = n->text + n->part[last - 1].begin;
	bool same = len == icf_name_base(n, last - 1) && memcmp(own, scope, len) == 0;
	if (!same && !n->is_const && own[0] != '~')
		return false;
	icf_name_parts(n, 0, last, 0, buf, size);
	return true;
}

void icf_name_namespace(const struct icf_name *n, const struct icf_pool *classes, char *buf,
			size_t size)
{
	unsigned k = 0;
	for (; k + 1 < n->n; k++) {
		const char *part = n->text + n->part[k].begin;
		if (icf_name_base(n, k) != n->part[k].end - n->part[k].begin ||
		    isupper((unsigned char)*part) || *part == '\'' || *part == '<')
			break;
		icf_name_parts(n, 0, k + 1, 0, buf, size);
		if (icf_pool_find(classes, buf, strlen(buf)) != ICF_POOL_NONE)
			break;
	}
	if (k)
		icf_name_parts(n, 0, k, 0, buf, size);
	else
		snprintf(buf, size, "(global)");
}

void icf_name_family(const struct icf_name *name, char *buf, size_t size)
{
	struct out o = { buf, size, 0 };
	buf[0] = 0;
	if (name->n == 1) {
		put(&o, name->text + name->part[0].begin, icf_name_base(name, 0));
		return;
	}
	icf_name_parts(name, 0, name->n - 1, 0, buf, size);
	o.len = strlen(buf);
	puts_to(&o, "::");
	put(&o, name->text + name->part[name->n - 1].begin, icf_name_base(name, name->n - 1));
}

/* Removes the middle of a text that is longer than LIMIT. */
static void cut_middle(char *buf, size_t limit)
{
	size_t n = strlen(buf);
	if (n <= limit || limit < 16)
		return;
	size_t tail = (limit - 3) * 2 / 3, head = limit - 3 - tail;
	/* Do not cut inside of a multi-byte character. */
	while (head && (buf[head] & 0xc0) == 0x80)
		head--;
	while (tail && (buf[n - tail] & 0xc0) == 0x80)
		tail--;
	memcpy(buf + head, "...", 3);
	memmove(buf + head + 3, buf + n - tail, tail + 1);
}

/* The number of the parts [FROM, TO) that have template arguments. */
static unsigned n_lists(const struct icf_name *name, unsigned from, unsigned to)
{
	unsigned n = 0;
	for (unsigned p = from; p < to; p++)
		n += icf_name_base(name, p) < name->part[p].end - name->part[p].begin;
	return n;
}

/* Writes the parts [FROM, TO) with as many of their arguments as LIMIT columns allow. */
static void put_fitting(const struct icf_name *name, unsigned from, unsigned to, size_t limit,
			char *buf, size_t size)
{
	size_t first = name->part[from].begin, last = name->part[to - 1].end;
	for (unsigned depth = 4; depth > 0; depth--) {
		put_parts(name, from, to, (struct detail){ depth, SIZE_MAX }, buf, size);
		/* Without brackets the text is the same at every depth, and may be long. */
		if (strlen(buf) <= limit || !memchr(name->text + first, '<', last - first))
			return;
	}
	/* The lists share the columns that the rest leaves. */
	put_parts(name, from, to, (struct detail){ 0, SIZE_MAX }, buf, size);
	size_t used = strlen(buf), lists = n_lists(name, from, to);
	size_t room = lists && used < limit ? (limit - used) / lists : 0;
	if (room < 8)
		return;
	put_parts(name, from, to, (struct detail){ 2, room }, buf, size);
	if (strlen(buf) > limit)
		put_parts(name, from, to, (struct detail){ 0, SIZE_MAX }, buf, size);
}

void icf_name_part_brief(const struct icf_name *name, unsigned part, size_t limit, char *buf,
			 size_t size)
{
	size_t extra = part + 1 == name->n ? strlen(name->text) - name->clone : 0;
	put_fitting(name, part, part + 1, limit > extra ? limit - extra : 0, buf, size);
	struct out o = { buf, size, strlen(buf) };
	put(&o, name->text + name->clone, extra);
	cut_middle(buf, limit);
}

void icf_name_brief(const struct icf_name *name, size_t limit, char *buf, size_t size)
{
	size_t extra = strlen(name->text) - name->clone, head = 0;
	if (name->thunk && size > 16) {
		strcpy(buf, "[thunk] ");
		head = 8;
	}
	put_fitting(name, 0, name->n, limit > extra + head ? limit - extra - head : 0, buf + head,
		    size - head);
	struct out o = { buf, size, strlen(buf) };
	put(&o, name->text + name->clone, extra);
	cut_middle(buf, limit);
}

void icf_name_contrast(const char *text, const char *against, size_t limit, char *buf, size_t size)
{
	struct icf_name name;
	static const char *const data[] = { "typeinfo ", "vtable ", "VTT ", "guard variable ",
					    "construction vtable " };
	for (size_t k = 0; k < sizeof data / sizeof *data; k++)
		if (starts(text, data[k])) {
			/* A type follows, which has no parts. */
			snprintf(buf, size, "%s", text);
			cut_middle(buf, limit);
			return;
		}
	icf_name_parse(&name, text);
	icf_name_brief(&name, limit, buf, size);
	if (size < limit + 1 || strcmp(text, against) == 0)
		return;
	char *other = malloc(size);
	if (!other)
		return;
	icf_name_parse(&name, against);
	icf_name_brief(&name, limit, other, size);
	bool same = strcmp(buf, other) == 0;
	free(other);
	if (!same)
		return;
	/* Begin at the bracket or comma before the first difference. */
	size_t at = 0;
	while (text[at] && text[at] == against[at])
		at++;
	while (at && !strchr("<(,", text[at - 1]))
		at--;
	while (text[at] == ' ')
		at++;
	size_t room = limit * 2 / 5;
	icf_name_parse(&name, text);
	icf_name_brief(&name, limit - room - 4, buf, size);
	size_t n = strlen(buf);
	snprintf(buf + n, size - n, " [%s%.*s%s]", at ? ".." : "", (int)(room - 4), text + at,
		 strlen(text + at) > room - 4 ? ".." : "");
}
