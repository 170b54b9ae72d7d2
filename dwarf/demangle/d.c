/* d.c: D names (https://dlang.org/spec/abi.html#name_mangling), spelled as libiberty and LLVM do.
 *
 * libiberty's own demangler reads what turns out to be something else a second time, and so does
 * each level within: a name of 200 letters keeps it busy for ever.  So this one is written anew;
 * every step is counted, and a name that takes too many, or levels, is given up.  Text is made
 * where it stands in the name; what has to change places is copied behind, in its new order. */
#include "dwarf/demangle/parts.h"
#include "elfrw/base/vec.h"
#include <ctype.h>
#include <stdio.h>

#define MAX_DEPTH 256
#define MAX_STEPS (1u << 17)

struct reader {
	const char *s; /* from "_D" on, with a NUL at the end */
	size_t at, n;
	size_t base; /* where in the text the part begins that "initializer for " goes before */
	size_t last; /* position of the reference to a type that is being followed: those within lie
			before it */
	unsigned steps, depth;
	bool nomem;
	VEC(char) text;
};

static bool type(struct reader *r);
static bool qualified(struct reader *r, bool modifiers);
static bool mangled_name(struct reader *r);
static bool value(struct reader *r, char of, size_t name, size_t name_len);

static char peek(const struct reader *r, size_t more)
{
	return r->at + more < r->n ? r->s[r->at + more] : 0;
}

static bool step(struct reader *r, size_t n)
{
	if (n >= MAX_STEPS || r->steps + n >= MAX_STEPS)
		return false;
	r->steps += (unsigned)n;
	return true;
}

static bool enter(struct reader *r)
{
	return step(r, 1) && ++r->depth <= MAX_DEPTH;
}
static bool leave(struct reader *r, bool ok)
{
	r->depth--;
	return ok;
}

static bool put(struct reader *r, const char *s, size_t n)
{
	if (!step(r, 1 + n / 64) || r->text.len + n > DWR_DEMANGLE_TEXT)
		return false;
	if (!VEC_RESERVE(&r->text, r->text.len + n)) {
		r->nomem = true;
		return false;
	}
	if (n)
		memcpy(r->text.data + r->text.len, s, n);
	r->text.len += n;
	return true;
}

static bool say(struct reader *r, const char *s)
{
	return put(r, s, strlen(s));
}

/* The text from FROM to TO once more. */
static bool put_again(struct reader *r, size_t from, size_t to)
{
	size_t n = to - from;
	if (!VEC_RESERVE(&r->text, r->text.len + n)) {
		r->nomem = true;
		return false;
	}
	return put(r, r->text.data + from, n);
}

/* Drops the text from FROM to TO. */
static void drop(struct reader *r, size_t from, size_t to)
{
	if (r->text.len > to)
		memmove(r->text.data + from, r->text.data + to, r->text.len - to);
	r->text.len -= to - from;
}

static bool starts(const struct reader *r, size_t at, const char *what)
{
	return at <= r->n && !strncmp(r->s + at, what, strlen(what));
}

static bool eat(struct reader *r, char c)
{
	if (peek(r, 0) != c)
		return false;
	r->at++;
	return true;
}

/* A decimal number that something follows. */
static bool number(struct reader *r, size_t *ret)
{
	size_t v = 0;
	if (!isdigit((unsigned char)peek(r, 0)))
		return false;
	while (isdigit((unsigned char)peek(r, 0))) {
		v = v * 10 + (size_t)(r->s[r->at++] - '0');
		if (v > UINT32_MAX)
			return false;
	}
	*ret = v;
	return r->at < r->n;
}

/* ---- references back: Q and how far, in base 26 with the last digit in lower case ---- */

static bool back_target(const struct reader *r, size_t at, size_t *to, size_t *next)
{
	size_t v = 0, q = at++;
	for (; at < r->n && isalpha((unsigned char)r->s[at]) && v <= r->n; at++) {
		bool low = islower((unsigned char)r->s[at]);
		v = v * 26 + (size_t)(r->s[at] - (low ? 'a' : 'A'));
		if (!low)
			continue;
		*to = q - v;
		*next = at + 1;
		return v && v <= q;
	}
	return false;
}

static bool back_type(struct reader *r, bool (*what)(struct reader *))
{
	size_t to, next, last = r->last;
	if (r->at >= last || !back_target(r, r->at, &to, &next))
		return false;
	r->last = r->at;
	r->at = to;
	bool ok = what(r);
	r->at = next;
	r->last = last;
	return ok;
}

/* ---- identifiers ---- */

static bool is_template(const struct reader *r, size_t at)
{
	return starts(r, at, "__T") || starts(r, at, "__U");
}

static bool is_name(const struct reader *r, size_t at)
{
	size_t to, next;
	if (at >= r->n)
		return false;
	if (isdigit((unsigned char)r->s[at]) || is_template(r, at))
		return true;
	return r->s[at] == 'Q' && back_target(r, at, &to, &next) &&
	       isdigit((unsigned char)r->s[to]);
}

/* LEN letters that mean something to the compiler: of a thing that belongs to what was named so far
 * ("." is behind that). */
static bool of_the_compiler(struct reader *r, size_t len, bool *done)
{
	static const struct {
		const char *name, *text;
		size_t len, eaten;
		bool before;
	} known[] = {
		{ "__ctor", "this", 6, 6, false },
		{ "__dtor", "~this", 6, 6, false },
		{ "__postblitMFZ", "this(this)", 10, 13, false },
		{ "__initZ", "initializer for ", 6, 6, true },
		{ "__vtblZ", "vtable for ", 6, 6, true },
		{ "__ClassZ", "ClassInfo for ", 7, 7, true },
		{ "__InterfaceZ", "Interface for ", 11, 11, true },
		{ "__ModuleInfoZ", "ModuleInfo for ", 12, 12, true },
	};
	*done = false;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		size_t n = strlen(known[i].text);
		if (known[i].len != len || !starts(r, r->at, known[i].name))
			continue;
		*done = true;
		r->at += known[i].eaten;
		if (!put(r, known[i].text, n) || !known[i].before)
			return r->text.len != 0;
		char *base = r->text.data + r->base;
		memmove(base + n, base, r->text.len - n - r->base);
		memcpy(base, known[i].text, n);
		if (r->text.len > r->base + n)
			r->text.len--;
		return step(r, r->text.len / 64);
	}
	return true;
}

static bool letters(struct reader *r, size_t len)
{
	bool done;
	if (!of_the_compiler(r, len, &done))
		return false;
	if (done)
		return true;
	r->at += len;
	return put(r, r->s + r->at - len, len);
}

static bool back_name(struct reader *r)
{
	size_t to, next, len;
	if (!back_target(r, r->at, &to, &next))
		return false;
	r->at = to;
	bool ok = number(r, &len) && len <= r->n - r->at && letters(r, len);
	r->at = next;
	return ok;
}

/* What stands where the length of an older name of a template argument may be mixed up with the
 * name's first digit. */
static bool mixed_symbol(struct reader *r)
{
	size_t first = r->at, len, saved = r->text.len;
	if (!number(r, &len) || !len)
		return false;
	size_t end = r->at;
	for (size_t want = len, from = end; want && from > first; want /= 10, from--) {
		r->at = from;
		bool ok = is_name(r, from) ? qualified(r, false)
					   : starts(r, from, "_D") && is_name(r, from + 2) &&
						     mangled_name(r);
		if (ok && r->at - from == want)
			return true;
		r->text.len = saved;
		if (!step(r, 1))
			return false;
	}
	r->at = first;
	return qualified(r, false);
}

static bool symbol_argument(struct reader *r)
{
	if (starts(r, r->at, "_D") && is_name(r, r->at + 2))
		return mangled_name(r);
	return peek(r, 0) == 'Q' ? qualified(r, false) : mixed_symbol(r);
}

static bool value_argument(struct reader *r)
{
	char of = peek(r, 0);
	size_t from = r->text.len, base = r->base, to, next;
	if (of == 'Q') {
		if (!back_target(r, r->at, &to, &next))
			return false;
		of = r->s[to];
	}
	r->base = from;
	bool ok = type(r);
	r->base = base;
	size_t len = r->text.len - from;
	if (!ok || !value(r, of, from, len))
		return false;
	drop(r, from, from + len);
	return true;
}

static bool template_arguments(struct reader *r)
{
	for (size_t n = 0; !eat(r, 'Z'); n++) {
		size_t len;
		if (r->at >= r->n || (n && !say(r, ", ")))
			return false;
		eat(r, 'H');
		bool ok = false;
		switch (peek(r, 0)) {
		case 'S':
			r->at++;
			ok = symbol_argument(r);
			break;
		case 'T':
			r->at++;
			ok = type(r);
			break;
		case 'V':
			r->at++;
			ok = value_argument(r);
			break;
		case 'X':
			r->at++;
			ok = number(r, &len) && len <= r->n - r->at && put(r, r->s + r->at, len);
			r->at += ok ? len : 0;
			break;
		}
		if (!ok)
			return false;
	}
	return true;
}

static bool identifier(struct reader *r);

/* __T or __U, a name, arguments; LEN letters, or 0: not known. */
static bool template(struct reader *r, size_t len)
{
	size_t from = r->at, base = r->base;
	if (!is_name(r, r->at + 3) || r->s[r->at + 3] == '0')
		return false;
	r->at += 3;
	if (!identifier(r) || !say(r, "!("))
		return false;
	r->base = r->text.len;
	bool ok = template_arguments(r) && say(r, ")");
	r->base = base;
	return ok && (!len || r->at - from == len);
}

static bool identifier_here(struct reader *r)
{
	size_t len;
	if (peek(r, 0) == 'Q')
		return back_name(r);
	if (is_template(r, r->at))
		return template(r, 0);
	if (!number(r, &len) || !len || len > r->n - r->at)
		return false;
	if (len >= 5 && is_template(r, r->at))
		return template(r, len);
	/* __S1: a parent made up so that names in one function differ. */
	if (len >= 4 && starts(r, r->at, "__S") &&
	    3 + strspn(r->s + r->at + 3, "0123456789") >= len) {
		r->at += len;
		return identifier(r);
	}
	return letters(r, len);
}

static bool identifier(struct reader *r)
{
	return enter(r) && leave(r, identifier_here(r));
}

/* ---- functions ---- */

static bool is_convention(char c)
{
	return c && strchr("FUVWRY", c);
}

static bool convention(struct reader *r)
{
	static const char *const text[] = { "",
					    "extern(C) ",
					    "extern(Pascal) ",
					    "extern(Windows) ",
					    "extern(C++) ",
					    "extern(Objective-C) " };
	char c = peek(r, 0);
	if (!is_convention(c))
		return false;
	r->at++;
	return say(r, text[strchr("FUVWRY", c) - "FUVWRY"]);
}

/* Of `this`. */
static bool modifiers(struct reader *r)
{
	for (;;) {
		if (eat(r, 'x'))
			return say(r, " const");
		if (eat(r, 'y'))
			return say(r, " immutable");
		bool shared = peek(r, 0) == 'O';
		if (!shared && peek(r, 0) != 'N')
			return r->at < r->n;
		if (!shared && peek(r, 1) != 'g')
			return false;
		r->at += shared ? 1 : 2;
		if (!say(r, shared ? " shared" : " inout"))
			return false;
	}
}

static bool attributes(struct reader *r)
{
	static const char *const text[] = { "pure ",     "nothrow ", "ref ", "@property ",
					    "@trusted ", "@safe ",   NULL,   NULL,
					    "@nogc ",    "return ",  NULL,   "scope ",
					    "@live " };
	while (peek(r, 0) == 'N') {
		char c = peek(r, 1);
		if (c && strchr("ghkn", c)) /* begins a parameter */
			return true;
		if (c < 'a' || c > 'm' || !text[c - 'a'])
			return false;
		r->at += 2;
		if (!say(r, text[c - 'a']))
			return false;
	}
	return r->at < r->n;
}

static bool parameter(struct reader *r)
{
	if (eat(r, 'M') && !say(r, "scope "))
		return false;
	if (starts(r, r->at, "Nk")) {
		r->at += 2;
		if (!say(r, "return "))
			return false;
	}
	switch (peek(r, 0)) {
	case 'I':
		r->at++;
		if (!say(r, eat(r, 'K') ? "in ref " : "in "))
			return false;
		break;
	case 'J':
		r->at++;
		if (!say(r, "out "))
			return false;
		break;
	case 'K':
		r->at++;
		if (!say(r, "ref "))
			return false;
		break;
	case 'L':
		r->at++;
		if (!say(r, "lazy "))
			return false;
		break;
	}
	return type(r);
}

static bool parameters(struct reader *r)
{
	for (size_t n = 0; r->at < r->n; n++) {
		if (eat(r, 'X'))
			return say(r, "...)");
		if (eat(r, 'Y'))
			return say(r, n ? ", ...)" : "...)");
		if (eat(r, 'Z'))
			return say(r, ")");
		if ((n && !say(r, ", ")) || !parameter(r))
			return false;
	}
	return false;
}

/* Convention, attributes, parameters, result; printed as convention, result, parameters,
 * attributes. */
static bool function(struct reader *r)
{
	size_t base = r->base;
	if (!convention(r))
		return false;
	size_t a = r->text.len;
	if (!attributes(r))
		return false;
	size_t b = r->base = r->text.len;
	bool ok = say(r, "(") && parameters(r);
	size_t c = r->base = r->text.len;
	ok = ok && type(r);
	r->base = base;
	size_t d = r->text.len;
	if (!ok || !put_again(r, c, d) || !put_again(r, b, c) || !say(r, " ") ||
	    !put_again(r, a, b))
		return false;
	drop(r, a, d);
	return true;
}

/* The parameters of a function that something is in, if that is what stands here. */
static bool outer_function(struct reader *r, bool show)
{
	size_t saved = r->text.len, mods = 0;
	if (eat(r, 'M')) {
		mods = r->at;
		if (!modifiers(r))
			return false;
	}
	if (!convention(r) || !attributes(r))
		return false;
	r->text.len = saved;
	if (!say(r, "(") || !parameters(r) || r->at >= r->n)
		return false;
	size_t next = r->at;
	if (mods && show) {
		r->at = mods;
		if (!modifiers(r))
			return false;
		r->at = next;
	}
	return true;
}

/* Names with a point in between, functions with their parameters; with MODIFIERS also what `this`
 * is there. */
static bool qualified(struct reader *r, bool show)
{
	size_t n = 0;
	if (!enter(r))
		return false;
	do {
		if (peek(r, 0) == '0') { /* without a name */
			while (eat(r, '0'))
				;
			continue;
		}
		if ((n++ && !say(r, ".")) || !identifier(r))
			return leave(r, false);
		if (peek(r, 0) != 'M' && !is_convention(peek(r, 0)))
			continue;
		size_t at = r->at, saved = r->text.len, base = r->base, last = r->last;
		unsigned depth = r->depth;
		if (!outer_function(r, show)) {
			if (r->nomem)
				return leave(r, false);
			r->at = at;
			r->text.len = saved;
			r->base = base;
			r->last = last;
			r->depth = depth;
		}
	} while (is_name(r, r->at) && step(r, 1));
	return leave(r, true);
}

static bool mangled_name(struct reader *r)
{
	if (!enter(r))
		return false;
	r->at += 2;
	bool ok = qualified(r, true);
	if (ok && !eat(r, 'Z')) { /* the type of a variable, or of a result, is not shown */
		size_t saved = r->text.len, base = r->base;
		r->base = saved;
		ok = type(r);
		r->text.len = saved;
		r->base = base;
	}
	return leave(r, ok);
}

/* ---- types ---- */

static const char *basic(char c)
{
	static const char *const text[] = {
		"char",  "bool",         "creal",  "double",  "real",   "float",
		"byte",  "ubyte",        "int",    "ireal",   "uint",   "long",
		"ulong", "typeof(null)", "ifloat", "idouble", "cfloat", "cdouble",
		"short", "ushort",       "wchar",  "void",    "dchar",
	};
	return c >= 'a' && c <= 'w' ? text[c - 'a'] : NULL;
}

static bool within(struct reader *r, const char *open)
{
	return say(r, open) && type(r) && say(r, ")");
}

static bool array(struct reader *r)
{
	size_t from = r->at;
	while (isdigit((unsigned char)peek(r, 0)))
		r->at++;
	size_t n = r->at - from;
	return type(r) && say(r, "[") && put(r, r->s + from, n) && say(r, "]");
}

static bool associative(struct reader *r)
{
	size_t a = r->text.len, base = r->base;
	r->base = a;
	bool ok = type(r);
	r->base = base;
	size_t b = r->text.len;
	if (!ok || !type(r) || !say(r, "[") || !put_again(r, a, b) || !say(r, "]"))
		return false;
	drop(r, a, b);
	return true;
}

static bool delegate(struct reader *r)
{
	size_t mods = r->at, saved = r->text.len;
	if (!modifiers(r))
		return false;
	r->text.len = saved;
	bool ok = peek(r, 0) == 'Q' ? back_type(r, function) : function(r);
	size_t next = r->at;
	if (!ok || !say(r, "delegate"))
		return false;
	r->at = mods;
	ok = modifiers(r);
	r->at = next;
	return ok;
}

static bool tuple(struct reader *r)
{
	size_t n;
	if (!number(r, &n) || !say(r, "Tuple!("))
		return false;
	while (n--)
		if (!type(r) || (n && !say(r, ", ")))
			return false;
	return say(r, ")");
}

static bool type_here(struct reader *r)
{
	char c = peek(r, 0);
	if (c == 'Q')
		return back_type(r, type);
	if (is_convention(c) || (c == 'P' && is_convention(peek(r, 1)))) {
		r->at += c == 'P';
		return function(r) && say(r, "function");
	}
	r->at++;
	switch (c) {
	case 'O': return within(r, "shared(");
	case 'x': return within(r, "const(");
	case 'y': return within(r, "immutable(");
	case 'N':
		if (eat(r, 'g'))
			return within(r, "inout(");
		if (eat(r, 'h'))
			return within(r, "__vector(");
		return eat(r, 'n') && say(r, "typeof(*null)");
	case 'A': return type(r) && say(r, "[]");
	case 'G': return array(r);
	case 'H': return associative(r);
	case 'P': return type(r) && say(r, "*");
	case 'C':
	case 'S':
	case 'E':
	case 'T': return qualified(r, false);
	case 'D': return delegate(r);
	case 'B': return tuple(r);
	case 'z': return eat(r, 'i') ? say(r, "cent") : eat(r, 'k') && say(r, "ucent");
	default: return basic(c) && say(r, basic(c));
	}
}

static bool type(struct reader *r)
{
	return enter(r) && leave(r, r->at < r->n && type_here(r));
}

/* ---- values ---- */

static bool character(struct reader *r, char of)
{
	size_t v;
	char text[24];
	if (!number(r, &v))
		return false;
	if (of == 'a' && v >= 0x20 && v < 0x7f)
		snprintf(text, sizeof text, "'%c'", (char)v);
	else
		snprintf(text, sizeof text,
			 of == 'a'   ? "'\\x%02zx'"
			 : of == 'u' ? "'\\u%04zx'"
				     : "'\\U%08zx'",
			 v);
	return say(r, text);
}

static bool integer(struct reader *r, char of)
{
	size_t v, from = r->at;
	if (of == 'a' || of == 'u' || of == 'w')
		return character(r, of);
	if (of == 'b')
		return number(r, &v) && say(r, v ? "true" : "false");
	while (isdigit((unsigned char)peek(r, 0)))
		r->at++;
	if (r->at == from || !put(r, r->s + from, r->at - from))
		return false;
	return say(r, of == 'h' || of == 't' || of == 'k' ? "u"
		      : of == 'l'                         ? "L"
		      : of == 'm'                         ? "uL"
							  : "");
}

static bool real(struct reader *r)
{
	if (starts(r, r->at, "NAN") || starts(r, r->at, "INF")) {
		r->at += 3;
		return say(r, r->s[r->at - 1] == 'N' ? "NaN" : "Inf");
	}
	if (starts(r, r->at, "NINF")) {
		r->at += 4;
		return say(r, "-Inf");
	}
	if (eat(r, 'N') && !say(r, "-"))
		return false;
	if (!isxdigit((unsigned char)peek(r, 0)) || !say(r, "0x") || !put(r, r->s + r->at++, 1) ||
	    !say(r, "."))
		return false;
	while (isxdigit((unsigned char)peek(r, 0)))
		if (!put(r, r->s + r->at++, 1))
			return false;
	if (!eat(r, 'P') || !say(r, eat(r, 'N') ? "p-" : "p"))
		return false;
	while (isdigit((unsigned char)peek(r, 0)))
		if (!put(r, r->s + r->at++, 1))
			return false;
	return true;
}

static bool string(struct reader *r)
{
	char kind = r->s[r->at++];
	size_t n;
	if (!number(r, &n) || !eat(r, '_') || !say(r, "\""))
		return false;
	for (; n; n--, r->at += 2) {
		unsigned v;
		char hex[3] = { peek(r, 0), peek(r, 0) ? peek(r, 1) : 0 }, text[8];
		if (!isxdigit((unsigned char)hex[0]) || !isxdigit((unsigned char)hex[1]))
			return false;
		sscanf(hex, "%x", &v);
		const char *at = v ? strchr("\tt\nn\rr\ff\vv", (int)v) : NULL;
		if (v < 0x20 && at)
			snprintf(text, sizeof text, "\\%c", at[1]);
		else if (v >= 0x20 && v < 0x7f)
			snprintf(text, sizeof text, "%c", (char)v);
		else
			snprintf(text, sizeof text, "\\x%s", hex);
		if (!say(r, text))
			return false;
	}
	return say(r, "\"") && (kind == 'a' || put(r, &kind, 1));
}

/* A counted list of values, or of pairs. */
static bool list(struct reader *r, const char *open, const char *close, bool pairs)
{
	size_t n;
	if (!number(r, &n) || !say(r, open))
		return false;
	while (n--)
		if (!value(r, 0, 0, 0) || (pairs && (!say(r, ":") || !value(r, 0, 0, 0))) ||
		    (n && !say(r, ", ")))
			return false;
	return say(r, close);
}

static bool value_here(struct reader *r, char of, size_t name, size_t name_len)
{
	char c = peek(r, 0);
	if (isdigit((unsigned char)c))
		return integer(r, of);
	if (c && strchr("awd", c))
		return string(r);
	r->at++;
	switch (c) {
	case 'n': return say(r, "null");
	case 'N': return say(r, "-") && integer(r, of);
	case 'i': return integer(r, of);
	case 'e': return real(r);
	case 'c': return real(r) && say(r, "+") && eat(r, 'c') && real(r) && say(r, "i");
	case 'A': return list(r, "[", "]", of == 'H');
	case 'S': {
		size_t at = r->at, n;
		bool ok = number(r, &n);
		r->at = at;
		return ok && put_again(r, name, name + name_len) && list(r, "(", ")", false);
	}
	case 'f': return starts(r, r->at, "_D") && is_name(r, r->at + 2) && mangled_name(r);
	default: return false;
	}
}

/* A value of a type that begins with OF and whose name is NAME_LEN letters of the text at NAME. */
static bool value(struct reader *r, char of, size_t name, size_t name_len)
{
	return enter(r) && leave(r, r->at < r->n && value_here(r, of, name, name_len));
}

bool dwr_demangle_d(const char *name, char **ret)
{
	struct reader r = { .s = name, .n = strlen(name), .last = SIZE_MAX };
	*ret = NULL;
	if (!strcmp(name, "_Dmain")
		    ? !say(&r, "D main")
		    : r.n > DWR_DEMANGLE_D || r.n < 3 || !mangled_name(&r) || r.at != r.n)
		goto out;
	/* Where memory was wanting, another reading may have been taken. */
	if (!r.nomem && r.text.len && put(&r, "", 1)) {
		*ret = r.text.data;
		return true;
	}
out:
	free(r.text.data);
	return !r.nomem;
}
